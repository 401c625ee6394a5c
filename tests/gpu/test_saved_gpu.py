"""Saved programs on a GPU: cubins and tensor maps from a file have the bits of what was saved."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ptxgen
from ptxgen import functions as f
from ptxgen import graph
from ptxgen.errors import SavedError, ShapeError
from ptxgen.runtime import get_device

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


@pytest.fixture
def block():
    """A function of products by tensor maps, a weight that is a view, scratch memory, no result."""
    held, scale = drawn(256, 512), drawn(256)
    w = held[:, 128:384].T  # strides, and a beginning of its own

    def function(x):
        y = ptxgen.rms_norm(ptxgen.linear(x, w, activation="silu", layout="kn"), scale)
        z = y.reshape(1, -1, 4, 64).swapaxes(1, 2)
        return ptxgen.attention(z, z, z, causal=True), None, ptxgen.sum(f.mul(y, 2.0), axis=0)

    function.outside = w, scale
    return function


def same(found, expected) -> bool:
    pairs = zip(found, expected, strict=True)
    return all(a is b if b is None else torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("rows", [1, 192, 4096])
def test_what_is_loaded_has_the_bits_of_what_was_saved(block, rows, tmp_path) -> None:
    captured = ptxgen.capture(block, drawn(rows, 256), passes=graph.fewer)
    captured.save(tmp_path / "with")
    captured.save(tmp_path / "without", arrays=False)
    runs = (
        captured,
        ptxgen.load(tmp_path / "with", device="cuda"),
        ptxgen.load(tmp_path / "without", device="cuda", arrays=block.outside),
    )
    stream = torch.cuda.Stream()
    for number in range(3):
        x = drawn(rows, 256) if number else drawn(256, rows).T
        expected = block(x.contiguous())
        assert all(same(run(x), expected) for run in runs)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            found = runs[1](x)
        stream.synchronize()
        assert same(found, expected)
    runs[1].save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "with").read_bytes()


def test_weights_that_are_given_are_read_where_they_are(block, tmp_path) -> None:
    x = drawn(64, 256)
    captured = ptxgen.capture(block, x)
    captured.save(tmp_path / "it", arrays=False)
    loaded = ptxgen.load(tmp_path / "it", device="cuda", arrays=captured.outside)
    block.outside[1].mul_(0.5)
    assert same(loaded(x), block(x))
    with pytest.raises(ShapeError, match="outside0 has strides"):
        ptxgen.load(
            tmp_path / "it",
            device="cuda",
            arrays=[block.outside[0].contiguous(), block.outside[1]],
        )


def test_arrays_in_host_memory_are_taken(tmp_path) -> None:
    x = np.random.default_rng(0).standard_normal((5, 300)).astype("f4")
    with ptxgen.use_device("cuda"):
        captured = ptxgen.capture(lambda x: ptxgen.softmax(f.mul(x, 2.0)), x)
        captured.save(tmp_path / "it")
        loaded = ptxgen.load(tmp_path / "it")
        expected = ptxgen.softmax(x * 2)
        assert loaded(x).tobytes() == captured(x).tobytes() == expected.tobytes()
        assert loaded(torch.from_numpy(x).cuda()).cpu().numpy().tobytes() == expected.tobytes()
    with ptxgen.use_device("cpu"), pytest.raises(SavedError, match=r"has cubin for .*takes ptx"):
        ptxgen.load(tmp_path / "it")


def test_a_program_of_nodes_is_captured() -> None:
    b = graph.Builder(device="cuda")
    x, w = b.input("x", (64, 256), "bf16"), b.input("w", (256, 128), "bf16")
    b.output(b.softmax(b.linear(x, w, layout="kn")))
    with ptxgen.use_device("cuda"):
        captured = ptxgen.capture(b.program())
    x, w = drawn(64, 256), drawn(256, 128)
    assert torch.equal(captured(x, w), ptxgen.softmax(ptxgen.linear(x, w, layout="kn")))


def test_steps_are_timed(block, tmp_path) -> None:
    captured = ptxgen.capture(block, drawn(4096, 256))
    x = drawn(4096, 256)
    found = captured.profile(x)
    assert all(0 < step.us < 1e4 for step in found.steps)
    assert found.device.startswith(str(get_device("cuda")))
    found.trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    steps = [e for e in events if e["ph"] == "X"]
    assert [e["dur"] for e in steps] == [step.us for step in found.steps]
    assert found.us < 2 * sum(step.us for step in found.steps)
    assert same(captured(x), block(x)), "and nothing is left of it"
