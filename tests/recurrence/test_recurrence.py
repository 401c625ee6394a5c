"""``selective_scan`` and ``linear_recurrence``: cuts, neighbours, gradients, layouts, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from bits import operand, same_bits
from recurrence_cases import agree, drawn, without

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.ops import OPERATIONS
from ptxgen.runtime.cpu import CpuDevice

TOKENS = ("x", "delta", "B", "C", "z")
"""Arguments that have values for each token."""


@pytest.fixture(autouse=True)
def device():
    with ptxgen.use_device(CpuDevice()):
        yield


def scanned(given, **how):
    return ptxgen.selective_scan(**given, softplus=True, return_state=True, **how)


def part(given, tokens):
    return {n: v[:, tokens] if n in TOKENS else v for n, v in given.items()}


# -- what a token does not depend on ------------------------------------------------------------
@pytest.mark.parametrize("ends", [(1, 2, 3, 40), (16, 17, 40), (39, 40), (7, 23, 23, 40)], ids=str)
def test_a_cut_changes_no_bit(ends):
    """Prefill in chunks, and decode token by token, whose state may take the place of the last."""
    given = drawn((2, 40, 33, 16), "bf16")
    whole, last = scanned(given)
    state, begin = given["state"].copy(), 0
    for end in ends:
        got, after = scanned(part(given, slice(begin, end)) | {"state": state})
        same_bits(got, whole[:, begin:end], what=(begin, end))
        state, begin = after, end
    same_bits(state, last)


def test_decode_in_the_place_of_the_state():
    given = drawn((2, 3, 9, 16), "f32")
    whole, last = scanned(given)
    state, y = given["state"].copy(), np.full((2, 1, 9), np.nan, np.float32)
    for t in range(3):
        found = scanned(part(given, slice(t, t + 1)) | {"state": state}, out=(y, state))
        assert found[0] is y and found[1] is state
        same_bits(y, whole[:, t : t + 1])
    same_bits(state, last)


def test_sequences_and_channels_are_alone():
    given = drawn((3, 20, 70, 20), "f16")
    whole, last = scanned(given)
    one = {n: v[1:2] if n in (*TOKENS, "state") else v for n, v in given.items()}
    same_bits(scanned(one)[0], whole[1:2])
    some = {n: v[..., 3:40] if n in ("x", "delta", "z", "D", "delta_bias") else v
            for n, v in given.items()}  # fmt: skip
    some |= {"A": given["A"][3:40], "state": given["state"][:, 3:40]}
    got = scanned(some)
    same_bits(got[0], whole[..., 3:40])
    same_bits(got[1], last[:, 3:40])


def test_cuts_of_a_linear_recurrence():
    rng = np.random.default_rng(2)
    a, b = (operand(rng, (2, 75, 37), "normal", "bf16") for _ in range(2))
    whole, last = ptxgen.linear_recurrence(a, b, return_state=True)
    state, begin = None, 0
    for end in (1, 2, 34, 34, 75):
        at = slice(begin, end)
        y, state = ptxgen.linear_recurrence(a[:, at], b[:, at], state, return_state=True)
        same_bits(y, whole[:, at])
        begin = end
    same_bits(state, last)
    same_bits(ptxgen.linear_recurrence(a[1:, :, 5:9], b[1:, :, 5:9]), whole[1:, :, 5:9])


def test_states_that_are_not_there_add_nothing():
    """Infinite states stay infinite: lanes with room for more states than there are add no 0 * inf,
    which would be a NaN.
    """
    kept_op, op = (OPERATIONS[f"selective_scan_{n}"] for n in ("kept", "backward"))
    for states in (1, 5, 20, 65):
        one = np.ones((1, 2, 3), np.float32)
        shared, a = np.ones((1, 2, states), np.float32), -np.ones((3, states), np.float32)
        given = {"x": one * np.inf, "delta": one, "A": a, "B": shared, "C": shared}
        y, state = ptxgen.selective_scan(**given, return_state=True)
        assert (y == np.inf).all() and (state == np.inf).all()
        kept = kept_op(**given)
        same_bits(kept, kept_op.oracle(**given))
        got, expected = op(one, kept, **given), op.oracle(one, kept, **given)
        agree(got, expected, what=states)
        assert np.isfinite(got[0]).all() and (got[1][:, 0] == np.inf).all()


# -- layouts ------------------------------------------------------------------------------------
def test_by_any_strides():
    given = drawn((2, 19, 35, 16), "bf16")
    expected = reference.selective_scan(**given)
    turned = {n: np.ascontiguousarray(given[n].swapaxes(1, 2)).swapaxes(1, 2) for n in TOKENS}
    same_bits(ptxgen.selective_scan(**given | turned), expected)
    wide = np.concatenate([given["B"], given["C"]], -1)  # as a projection gives them
    split = {"B": wide[..., :16], "C": wide[..., 16:], "A": given["A"].T.copy().T}
    same_bits(ptxgen.selective_scan(**given | split), expected)
    out = np.zeros((2, 35, 19), given["x"].dtype).swapaxes(1, 2)
    ptxgen.selective_scan(**given, out=out)
    same_bits(out, expected)
    a, b = turned["x"], turned["z"]
    same_bits(ptxgen.linear_recurrence(a, b), reference.linear_recurrence(a, b))


def test_nothing():
    for sizes in ((0, 3, 4, 5), (2, 0, 4, 5), (2, 3, 0, 5)):
        given = drawn(sizes, "f32") if all(sizes) else _empty(sizes)
        y, state = scanned(given)
        assert y.shape == sizes[:3]
        same_bits(state, given["state"])
        ones = {"a": given["x"], "b": given["x"]}
        y, state = ptxgen.linear_recurrence(**ones, return_state=True)
        assert y.shape == sizes[:3] and (state == 0).all() and state.shape == sizes[:3:2]


def _empty(sizes):
    batch, tokens, channels, states = sizes
    full = drawn((max(batch, 1), max(tokens, 1), max(channels, 1), states), "f32")
    lead = {n: v[:batch, :tokens] for n, v in full.items() if n in TOKENS}
    lead |= {n: lead[n][..., :channels] for n in ("x", "delta", "z")}
    own = {n: full[n][:channels] for n in ("A", "D", "delta_bias")}
    return lead | own | {"state": full["state"][:batch, :channels]}


# -- refused ------------------------------------------------------------------------------------
def refused(error, words, given, **how):
    before = {n: v.copy() for n, v in given.items()}
    with pytest.raises(error, match=words):
        ptxgen.selective_scan(**given, **how)
    for n, v in given.items():
        same_bits(v, before[n])


def test_what_does_not_fit_is_refused_by_name():
    given = drawn((2, 5, 6, 4), "bf16")
    other = drawn((2, 5, 6, 3), "bf16")
    refused(ShapeError, r"state has shape \[2, 6, 3\]", given | {"state": other["state"]})
    refused(ShapeError, r"B has shape \[2, 5, 3\]", given | {"B": other["B"]})
    refused(ShapeError, r"delta has shape \[2, 4, 6\]", given | {"delta": given["delta"][:, :4]})
    refused(DtypeError, "state has dtype bfloat16; selective_scan takes float32",
            given | {"state": given["state"].astype(given["x"].dtype)})  # fmt: skip
    refused(DtypeError, "delta has dtype float32; selective_scan takes bfloat16, that of x",
            given | {"delta": given["delta"].astype("f4")})  # fmt: skip
    refused(DtypeError, "x has dtype float64", given | {"x": given["x"].astype("f8")})
    refused(OptionError, "softplus is 1; takes True or False", given, softplus=1)
    refused(OptionError, "out is 1 arrays; takes a tuple of 2", given, return_state=True,
            out=np.zeros((2, 5, 6), given["x"].dtype))  # fmt: skip
    many = {"A": np.zeros((6, 257), "f4"), **dict.fromkeys("BC", np.zeros((2, 5, 257), "f4"))}
    refused(ShapeError, "A has 257 states of a channel; takes 1 .. 256",
            {n: v.astype("f4") for n, v in without(given, "state").items()} | many)  # fmt: skip
    a = given["x"]
    with pytest.raises(ShapeError, match=r"state has shape \[2, 5\]; takes \[B, D\] with D = 6"):
        ptxgen.linear_recurrence(a, a, np.zeros((2, 5), "f4"))
    with pytest.raises(DtypeError, match="b has dtype float32; linear_recurrence takes bfloat16"):
        ptxgen.linear_recurrence(a, a.astype("f4"))
    with pytest.raises(DtypeError, match="out_dtype is 'float16'"):
        ptxgen.linear_recurrence(a, a, out_dtype="float16")


# -- beside exact numbers -----------------------------------------------------------------------
def _plain(torch, x, delta, a, b, c, d, z, bias, state, softplus):
    """The formula in PyTorch, in what it is given in."""
    d_t = delta if bias is None else delta + bias
    d_t = torch.nn.functional.softplus(d_t) if softplus else d_t
    h, ys = x.new_zeros((x.shape[0], *a.shape)) if state is None else state, []
    for t in range(x.shape[1]):
        h = torch.exp(d_t[:, t, :, None] * a) * h
        h = h + (d_t[:, t] * x[:, t])[..., None] * b[:, t, None]
        ys.append((h * c[:, t, None]).sum(-1))
    y = torch.stack(ys, 1)
    y = y if d is None else y + d * x
    return y if z is None else y * torch.nn.functional.silu(z), h


def close(got, exact, size):
    """Within ``size`` units of 2^-24 of the largest."""
    got, exact = got.detach().double(), exact.detach()
    assert (got - exact).abs().max() <= size * 2.0**-24 * exact.abs().max()


@pytest.mark.parametrize("left", [(), ("D", "z", "delta_bias", "state"), ("delta_bias",)], ids=str)
def test_results_and_gradients_beside_exact_ones(left):
    """Results and gradients match the formula and its gradients in f64.

    States decay to half in a token or faster (d >= 0.7, A <= -1), so that the errors of a token, of
    a product of at most six roundings and an exponential of 8 units, are at most doubled by those
    before. Sums over 40 tokens, 6 states, 37 channels or 2 sequences have no more terms than 80,
    each of which may be as large as the largest result.
    """
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    named = drawn((2, 20, 37, 6), "f32") | {"A": None}
    rng = np.random.default_rng(3)
    named["A"] = -1 - rng.random((37, 6), dtype=np.float32)
    if "delta_bias" in left:
        named["delta"] = 0.7 + rng.random((2, 20, 37), dtype=np.float32)
    else:
        named["delta"], named["delta_bias"] = abs(named["delta"]), abs(named["delta_bias"])
    given = {n: torch.from_numpy(v).requires_grad_() for n, v in without(named, *left).items()}
    softplus = "delta_bias" not in left
    exact = {n: v.detach().double().requires_grad_() for n, v in given.items()}
    names = ("x", "delta", "A", "B", "C", "D", "z", "delta_bias", "state")
    got = ours.selective_scan(**given, softplus=softplus, return_state=True)
    wanted = _plain(torch, *(exact.get(n) for n in names), softplus)
    dys = [torch.randn(v.shape) for v in got]
    gradients = torch.autograd.grad(got, list(given.values()), dys)
    truth = torch.autograd.grad(wanted, list(exact.values()), [d.double() for d in dys])
    for one, other in zip((*got, *gradients), (*wanted, *truth), strict=True):
        close(one, other, 80 * 2 * 14)


def test_gradients_of_a_linear_recurrence():
    """Factors are below 1/2, so that errors of a token are at most doubled; each has two roundings
    of f32; of bf16 results have one of 2^-8 besides.
    """
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    torch.manual_seed(1)
    for kind, size in ((torch.float32, 8), (torch.bfloat16, 2.0**16 + 8)):
        given = [0.5 * torch.rand(2, 40, 35), torch.randn(2, 40, 35)]
        given = [v.to(kind).requires_grad_() for v in given]
        given.append(torch.randn(2, 35, requires_grad=True))
        a, b, h = (v.detach().double().requires_grad_() for v in given)
        exact, ys = (a, b, h), []
        for t in range(40):
            h = a[:, t] * h + b[:, t]
            ys.append(h)
        got = ours.linear_recurrence(*given, return_state=True)
        wanted = torch.stack(ys, 1), h
        dys = [torch.randn(v.shape).to(v.dtype) for v in got]
        found = torch.autograd.grad(got, given, dys)
        truth = torch.autograd.grad(wanted, exact, [d.double() for d in dys])
        for one, other in zip((*got, *found), (*wanted, *truth), strict=True):
            close(one, other, size)


def test_gradients_of_no_tokens():
    """The state after none is the one before."""
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    given = {n: torch.from_numpy(v).requires_grad_() for n, v in _empty((2, 0, 4, 5)).items()}
    a, h = torch.zeros(2, 0, 4), torch.ones(2, 4, requires_grad=True)
    both = (
        (ours.selective_scan(**given, return_state=True), given["state"]),
        (ours.linear_recurrence(a, a, h, return_state=True), h),
    )
    for found, state in both:
        seed = torch.rand(state.shape)
        assert torch.equal(found[1], state)
        assert torch.equal(torch.autograd.grad(found[1], state, seed)[0], seed)


def test_operators():
    """Fakes, and torch.compile in one graph: the same bits, whether the state is asked for."""
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours
    from ptxgen.torch.operators import operator

    given = {n: torch.from_numpy(v) for n, v in drawn((1, 5, 9, 4), "f32").items()}
    given["x"].requires_grad_()
    a = torch.rand(1, 5, 9, requires_grad=True)
    opcheck = torch.library.opcheck
    scan = operator(OPERATIONS["selective_scan"]).default
    opcheck(scan, tuple(given.values()), {"softplus": True})
    opcheck(operator(OPERATIONS["linear_recurrence"]).default, (a, a), {"return_state": True})
    y, state = ours.selective_scan(**given, return_state=True)
    for asked in (False, True):
        made = torch.compile(
            lambda given, asked=asked: ours.selective_scan(**given, return_state=asked),
            backend="aot_eager",
            fullgraph=True,
        )
        found = made(given)
        assert torch.equal(found[0], y) if asked else torch.equal(found, y)
        assert not asked or torch.equal(found[1], state)
    with pytest.raises(ptxgen.errors.GradError, match="selective_scan_kept has no gradient"):
        (dx,) = torch.autograd.grad(y.sum(), given["x"], create_graph=True)
        dx.sum().backward()
