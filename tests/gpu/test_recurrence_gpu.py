"""Recurrences on a GPU: the oracles' bits, by every kernel; cuts; gradients run to run."""

from __future__ import annotations

import numpy as np
import pytest
from bits import operand
from recurrence_cases import agree, drawn, without

import ptxgen
from ptxgen import reference
from ptxgen.ops import OPERATIONS
from ptxgen.tiles import TABLES

torch = pytest.importorskip("torch")
pt = pytest.importorskip("ptxgen.torch")
pytestmark = pytest.mark.gpu
DTYPES = ("bf16", "f16", "f32")
SIZES = ((2, 70, 130, 16), (1, 33, 40, 64), (3, 17, 9, 250), (4, 1, 200, 16), (1, 5, 3, 1))
SCANNED = ("x", "delta", "A", "B", "C", "D", "z", "delta_bias", "state")


@pytest.mark.parametrize("dtype", DTYPES)
def test_scans_by_every_kernel(dtype):
    """NumPy's arrays, so that memory is new: what a kernel leaves unwritten is not the oracle's."""
    for sizes in SIZES:
        given = drawn(sizes, dtype)
        how = {"softplus": True, "return_state": True}
        expected = reference.selective_scan(**given, **how)
        served = 0
        for route in TABLES["selective_scan",].routes:
            if route.steps[0].requires.evaluate(_values(sizes)):
                name = route.of(dtype).name
                agree(ptxgen.selective_scan(**given, **how, kernel=name), expected, spec=name)
                served += 1
        assert served


def _values(sizes):
    return dict(zip(("BATCH", "TOKENS", "CHANNELS", "STATES"), sizes, strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients(dtype):
    kept_op, op = (OPERATIONS[f"selective_scan_{n}"] for n in ("kept", "backward"))
    for sizes in SIZES:
        given = without(drawn(sizes, dtype), "z")
        kept = kept_op.oracle(**given, softplus=True, gated=True)
        agree(kept_op.function(**given, softplus=True, gated=True), kept, what=sizes)
        rng = np.random.default_rng(4)
        dy, dlast = (operand(rng, v.shape, "normal", "f32") for v in (kept[0], given["state"]))
        given = {**without(given, "state"), "dlast": dlast, "softplus": True}
        expected = op.oracle(dy, kept[1], **given)
        agree(op.function(dy, kept[1], **given), expected, what=sizes)


@pytest.mark.parametrize("dtype", DTYPES)
def test_linear_recurrences(dtype):
    op = OPERATIONS["linear_recurrence_backward"]
    for sizes in ((2, 150, 70), (3, 1, 5), (1, 33, 300)):
        rng = np.random.default_rng(5)
        a, b = (operand(rng, sizes, "normal", dtype) for _ in range(2))
        state, dy = (operand(rng, s, "normal", "f32") for s in (sizes[::2], sizes))
        expected = reference.linear_recurrence(a, b, state, return_state=True)
        for route in TABLES["linear_recurrence",].routes:
            name = route.of(dtype).name
            got = ptxgen.linear_recurrence(a, b, state, return_state=True, kernel=name)
            agree(got, expected, spec=name)
        h = reference.linear_recurrence(a, b, state, out_dtype="float32")
        agree(op(dy, a, h, state, state), op.oracle(dy, a, h, state, state), what=sizes)


def tensors(sizes):
    torch.manual_seed(0)
    batch, tokens, channels, states = sizes
    rows, own = (batch, tokens, channels), (channels, states)
    shapes = rows, rows, own, *[(batch, tokens, states)] * 2, own[:1], rows, own[:1], (batch, *own)
    found = [torch.randn(s, device="cuda") for s in shapes]
    wide = (2, 5, 7, 8)
    found = [v if i in wide else v.bfloat16() for i, v in enumerate(found)]
    return dict(zip(SCANNED, found, strict=True)) | {"A": -found[2].abs()}


def test_cuts_and_neighbours_at_models_sizes():
    given = tensors((4, 300, 1536, 16))
    how = {"softplus": True, "return_state": True}
    whole, last = ptxgen.selective_scan(**given, **how)
    state, begin = given["state"], 0
    for end in (1, 2, 100, 299, 300):
        each = ("x", "delta", "B", "C", "z")
        part = {n: v[1:2, begin:end] if n in each else v for n, v in given.items()}
        part["state"] = state[1:2] if begin == 0 else state
        y, state = ptxgen.selective_scan(**part, **how)
        assert torch.equal(y, whole[1:2, begin:end]), (begin, end)
        begin = end
    assert torch.equal(state, last[1:2])


def test_gradients_are_the_same_run_to_run():
    given = {n: v.requires_grad_() for n, v in tensors((2, 200, 768, 16)).items()}
    found = []
    for _ in range(2):
        y, last = pt.selective_scan(**given, softplus=True, return_state=True)
        found.append(torch.autograd.grad((y, last), list(given.values()), (y, last)))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_a_captured_decode_goes_on():
    """A CUDA graph whose state takes the place of the last one."""
    given = tensors((2, 3, 256, 16))
    whole, last = ptxgen.selective_scan(**given, return_state=True)
    each = ("x", "delta", "B", "C", "z")
    step = {n: v[:, :1].clone() if n in each else v for n, v in given.items()}
    state, y = given["state"].clone(), torch.empty_like(step["x"])
    step["state"] = state
    ptxgen.selective_scan(**step, return_state=True, out=(y, state))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ptxgen.selective_scan(**step, return_state=True, out=(y, state))
    state.copy_(given["state"])
    for t in range(3):
        for n in each:
            step[n].copy_(given[n][:, t : t + 1])
        graph.replay()
        assert torch.equal(y, whole[:, t : t + 1])
    assert torch.equal(state, last)
