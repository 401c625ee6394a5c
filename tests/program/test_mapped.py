"""Captures over many batches of arrays in host memory: the bits of calls, one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from bits import difference

import ptxgen
from ptxgen import functions as f
from ptxgen.errors import DeviceError, ShapeError, TraceError
from ptxgen.program.buffer import imagined
from ptxgen.program.place import put
from ptxgen.runtime import get_device
from ptxgen.runtime.cpu import CpuDevice

RNG = np.random.default_rng(4)
W = RNG.standard_normal((8, 5)).astype("f4")


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


def layer(x, y):
    both = f.add(ptxgen.linear(x, W, layout="kn"), y)
    return both, None, ptxgen.sum(both, axis=0)


class Streams(CpuDevice):
    """A device whose streams have numbers, and that notes what waits for which."""

    def __init__(self) -> None:
        super().__init__()
        self.copies: list[tuple[str, int]] = []
        self.orders: list[tuple[int, int]] = []

    def streams(self, count):
        from contextlib import nullcontext

        return nullcontext(tuple(range(1, count + 1)))

    def copy_in(self, dst, src, nbytes, stream=0):
        self.copies.append(("in", stream))
        super().copy_in(dst, src, nbytes, stream)

    def copy_out(self, dst, src, nbytes, stream=0):
        self.copies.append(("out", stream))
        super().copy_out(dst, src, nbytes, stream)

    def order(self, stream, after):
        self.orders.append((stream, after))


def test_batches_have_the_bits_of_calls(tmp_path) -> None:
    with ptxgen.use_device("cpu"):
        batches = [(normal(4, 8), normal(4, 5)) for _ in range(4)]
        captured = ptxgen.capture(layer, *batches[0])
        captured.save(tmp_path / "it")
        for each in (captured, ptxgen.load(tmp_path / "it")):
            for count in (0, 1, 2, 4):
                given = [dict(zip(each.inputs, b, strict=True)) for b in batches[:count]]
                for own in (batches[:count], given):
                    found = list(each.map(iter(own)))
                    for made, batch in zip(found, batches[:count], strict=True):
                        wanted = layer(*batch)
                        assert made[1] is None
                        assert not difference(made[0], wanted[0])
                        assert not difference(made[2], wanted[2])


def test_batches_of_fewer_rows_and_state_in_their_order() -> None:
    def step(x, total):
        f.add(total, ptxgen.sum(x, axis=0), out=total)
        return f.mul(x, total)

    with ptxgen.use_device("cpu"):
        zeros = np.zeros(8, "f4")
        captured = ptxgen.capture(step, normal(6, 8), state={"total": zeros}, extent=0)
        batches = [normal(n, 8)[:, ::-1] for n in (6, 2, 6, 2, 1)]
        wanted = [captured(x) for x in batches]
        captured.feed("total", zeros)
        for made, one in zip(captured.map(batches), wanted, strict=True):
            assert not difference(made, one)


def test_copies_have_streams_of_their_own() -> None:
    device = Streams()
    with ptxgen.use_device(device):
        captured = ptxgen.capture(lambda x: f.exp(x), normal(4, 8))
        device.copies.clear(), device.orders.clear()
        list(captured.map([normal(4, 8) for _ in range(3)]))
    copies = [each for each in device.copies if each[1]]  # others are within the device
    assert copies == [(way, stream) for stream in (2, 1, 2) for way in ("in", "out")]
    assert device.orders == [(0, 2), (0, 0), (2, 0), (0, 1), (0, 0), (1, 0), (0, 2), (0, 0), (2, 0)]


def test_an_error_ends_the_batches_and_leaves_a_usable_capture() -> None:
    with ptxgen.use_device("cpu"):
        captured, x = ptxgen.capture(lambda x: f.exp(x), normal(4, 8)), normal(4, 8)
        found = captured.map([x, x[:2], x])
        with pytest.raises(ShapeError, match=r"x has shape \[2, 8\]"):
            list(found)
        begun = captured.map(x for _ in range(5))
        assert not difference(next(begun), f.exp(x))
        begun.close()
        assert not difference(captured(x), f.exp(x))


def test_what_cannot_be_mapped_is_refused() -> None:
    cpu, x = get_device("cpu"), normal(4, 8)
    with ptxgen.use_device("cpu"):
        written = ptxgen.capture(lambda x, y: f.add(x, y, out=y), x, x)
        state = ptxgen.capture(lambda x, y: f.add(x, y, out=y), x, state={"y": x})
        plain = ptxgen.capture(lambda x: f.exp(x), x)
        own = put(imagined((4, 8), "float32"), x.view("u4"), cpu, 0)[1]
        for call, error, says in [
            (lambda: written.map([(x, x)]), TraceError, "writes y; call it"),
            (lambda: state.map([x]), TraceError, "returns y, its state"),
            (lambda: list(plain.map([(x, x)])), TraceError, "1 arguments; got 2"),
            (
                lambda: list(plain.map([own])),
                DeviceError,
                "x is in cpu:0; map takes arrays in host",
            ),
        ]:
            with pytest.raises(error, match=says):
                call()
