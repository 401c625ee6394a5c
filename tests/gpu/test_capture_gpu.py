"""Captured functions on a GPU: CUDA graphs have the bits of the operations that they call."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ptxgen
from ptxgen import functions as f
from ptxgen import int4
from ptxgen.errors import DeviceError, ShapeError, TraceError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu


def drawn(*shape: int, dtype=None) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype or torch.bfloat16)


@pytest.fixture
def block():
    w, scale = drawn(64, 96), drawn(96)

    def function(x):
        y = ptxgen.rms_norm(ptxgen.linear(x, w, activation="silu", layout="kn"), scale)
        return y, ptxgen.sum(f.mul(y, 2.0), axis=0), ptxgen.softmax(y[:, :32]).T

    function.outside = w, scale
    return function


def test_a_graph_has_the_bits_of_its_operations(block) -> None:
    captured = ptxgen.capture(block, drawn(40, 64))
    for _ in range(3):
        x = drawn(40, 64)
        for got, wanted in zip(captured(x), block(x), strict=True):
            assert torch.equal(got, wanted) and got.shape == wanted.shape
    block.outside[0].mul_(0.5)  # read where it lies, at each replay
    x = drawn(64, 40).T
    for got, wanted in zip(captured(x), block(x.contiguous()), strict=True):
        assert torch.equal(got, wanted)


def test_results_are_the_callers_own(block) -> None:
    captured = ptxgen.capture(block, drawn(40, 64))
    x = drawn(40, 64)
    first = captured(x)
    kept = [t.clone() for t in first]
    captured(drawn(40, 64))
    assert all(torch.equal(a, b) for a, b in zip(first, kept, strict=True))


def test_replaying_reads_and_writes_its_own_memory(block) -> None:
    captured = ptxgen.capture(block, drawn(40, 64))
    x = drawn(40, 64)
    captured.arguments[0].copy_(x)
    captured.replay()
    for got, wanted in zip(captured.results, block(x), strict=True):
        assert torch.equal(got, wanted)


def test_calls_on_other_streams_follow_one_another(block) -> None:
    captured = ptxgen.capture(block, drawn(4096, 64))
    streams = [torch.cuda.Stream() for _ in range(3)]
    inputs = [drawn(4096, 64) for _ in range(12)]
    torch.cuda.synchronize()
    found = []
    for i, x in enumerate(inputs):
        with torch.cuda.stream(streams[i % 3]):
            found.append(captured(x))
    torch.cuda.synchronize()
    for x, results in zip(inputs, found, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(results, block(x), strict=True))


def test_an_arena_above_4_gib() -> None:
    """Three temporaries of 2 GiB, at offsets beyond 32 bits; rows are those of a small program."""

    def wide(x, y):
        first = f.add(x, y)
        second = f.mul(first, y)
        return ptxgen.sum(f.add(first, second), axis=-1)

    x, y = drawn(1 << 14, 1, dtype=torch.float32), drawn(1, (1 << 15) + 8, dtype=torch.float32)
    captured = ptxgen.capture(wide, x, y, extent=(0, None))
    assert captured.nbytes > 6 << 30
    found = captured(x, y)
    for rows in (slice(0, 64), slice((1 << 14) - 64, None)):
        assert torch.equal(captured(x[rows], y), found[rows])
        assert torch.equal(wide(x[rows], y), found[rows])


def test_fewer_rows_and_some_outputs_have_graphs_of_their_own() -> None:
    w, keys = drawn(64, 96), drawn(40, 96) * 0

    def step(x, w, keys):
        y = ptxgen.linear(x, w, layout="kn")
        f.add(keys, ptxgen.sum(y, axis=0), out=keys)
        return {"y": ptxgen.softmax(y), "x": f.mul(x, 2.0)}

    x, held = drawn(40, 64), keys.clone()
    captured = ptxgen.capture(step, x, constants={"w": w}, state={"keys": held}, extent=0)
    for rows in (40, 7, 1, 40, 7):
        wanted = step(x[:rows], w, keys)
        found = captured(x, extent=rows)
        assert all(torch.equal(found[n], wanted[n]) for n in wanted)
        assert torch.equal(held, keys) and torch.equal(captured.read("keys"), keys)
        step(x[:rows], w, keys)
        out = torch.empty(64, rows, device="cuda", dtype=x.dtype).T
        assert captured(x[:rows], outputs=["x"], out={"x": out})["x"] is out
        assert torch.equal(out, wanted["x"]) and torch.equal(held, keys)
    other = keys.clone()
    captured.bind("keys", other)
    captured(x[:7])
    step(x[:7], w, keys)
    assert torch.equal(other, keys) and not torch.equal(held, keys)
    captured.feed("keys", torch.zeros(40, 96, dtype=keys.dtype))
    assert not other.any()


def test_a_timeline_has_the_times_of_steps_on_the_device(block, tmp_path) -> None:
    captured, x = ptxgen.capture(block, drawn(512, 64)), drawn(512, 64)
    wanted = captured(x)
    with ptxgen.timeline(tmp_path / "it.json"):
        ptxgen.softmax(x)
        for got, one in zip(captured(x), wanted, strict=True):
            assert torch.equal(got, one)
    events = json.loads((tmp_path / "it.json").read_text())["traceEvents"]
    steps = [e for e in events if e.get("cat") == "step"]
    assert len(steps) == len(captured.program.steps)
    assert all(0 < e["dur"] < 1e5 and e["pid"] == 1 for e in steps)
    assert [e["name"] for e in events if e.get("cat") == "call"][:1] == ["softmax"]


def test_batches_in_host_memory_are_copied_beside_kernels() -> None:
    """Uploads, kernels and downloads of 20 batches overlap, and each has its own bits."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((512, 384), np.float32)

    def layer(x, w):
        y = ptxgen.linear(x, w, layout="kn")
        return {"y": y, "sums": ptxgen.sum(y, axis=-1)}

    sizes = [4096, 4096, 1, 4096, 777] * 4
    batches = [rng.standard_normal((n, 512), np.float32) for n in sizes]
    with ptxgen.use_device("cuda"):
        captured = ptxgen.capture(layer, batches[0], constants={"w": w}, extent=0)
        wanted = [captured(x) for x in batches]
        for _ in range(3):
            for found, one in zip(captured.map(batches), wanted, strict=True):
                assert all((found[name] == one[name]).all() for name in one)


def test_bytes_of_any_dtype_are_brought(block) -> None:
    a = torch.randint(0, 255, (64, 64), dtype=torch.uint8, device="cuda")
    captured = ptxgen.capture(lambda a: int4.gemm(a, a), a)
    assert torch.equal(captured(a), int4.gemm(a, a))
    with pytest.raises(ShapeError, match="a has strides"):
        captured(a.T)


def test_arrays_of_other_places_are_refused(block) -> None:
    captured = ptxgen.capture(block, drawn(40, 64))
    with pytest.raises(DeviceError, match="x is a CPU torch tensor"):
        captured(drawn(40, 64).cpu())
    with pytest.raises(TraceError, match="captured in cuda:0"):
        ptxgen.capture(f.neg, torch.ones(3, device="cuda"))(np.ones(3, "f4"))


def test_what_is_traced_within_a_capture_goes_with_it(block) -> None:
    """Many captures, made and dropped while their graphs may still run."""
    for _ in range(20):
        captured = ptxgen.capture(block, drawn(512, 64))
        x = drawn(512, 64)
        found = captured(x)
        del captured
        assert torch.equal(found[0], block(x)[0])
