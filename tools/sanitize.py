"""Every kernel on shapes that cross its edges, to be run under compute-sanitizer.

    compute-sanitizer --tool memcheck python tools/sanitize.py
    compute-sanitizer --tool racecheck python tools/sanitize.py

Nothing but ptxgen's own allocations, each of exactly the size of its operand, so that a read
or write one element too far is seen. Kernels are compiled (in parallel, into the cache) before
the first launch. Results are compared with the NumPy oracle. Ends with status 1 if any differ.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import ptxgen
from ptxgen import reference
from ptxgen.compile import Job, compile_many
from ptxgen.errors import OptionError
from ptxgen.ops.launch import architecture
from ptxgen.render import render
from ptxgen.runtime import get_device
from ptxgen.tiles import ROUTES, SPECS

ACTIVATIONS = ("gelu", "silu", "relu", "gelu_tanh", "none")
DEVICE: Any = get_device("cuda")


class Buffer:
    """A matrix on the GPU in an allocation of its exact size, ``offset`` elements into it."""

    def __init__(self, values: np.ndarray[Any, Any], offset: int = 0, pitch: int = 0) -> None:
        rows, columns = values.shape
        self.shape, self.pitch = values.shape, max(pitch, columns)
        self.size = max((rows - 1) * self.pitch + columns, 1)
        self.base = DEVICE.alloc((offset + self.size) * 4)
        self.ptr = self.base + offset * 4
        flat = np.full(self.size, np.nan, np.float32)
        self._matrix(flat)[...] = values
        DEVICE.copy_in(self.ptr, flat.ctypes.data, flat.nbytes)
        DEVICE.synchronize()

    def _matrix(self, flat: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.lib.stride_tricks.as_strided(flat, self.shape, (self.pitch * 4, 4))

    def array(self, *, turned: bool = False, vector: bool = False) -> Any:
        """This as something with ``__cuda_array_interface__``; ``turned``: its transpose."""
        shape: tuple[int, ...] = self.shape
        strides: tuple[int, ...] = (self.pitch * 4, 4)
        if vector:
            shape, strides = shape[1:], strides[1:]
        if turned:
            shape, strides = shape[::-1], strides[::-1]
        interface = {
            "version": 3,
            "shape": shape,
            "strides": strides,
            "typestr": "<f4",
            "data": (self.ptr, False),
        }
        return type("Array", (), {"__cuda_array_interface__": interface})()

    def read(self) -> np.ndarray[Any, Any]:
        """The matrix, on the host."""
        flat = np.empty(self.size, np.float32)
        DEVICE.copy_out(flat.ctypes.data, self.ptr, flat.nbytes)
        DEVICE.synchronize()
        return self._matrix(flat).copy()

    def free(self) -> None:
        """Returns the memory."""
        DEVICE.free(self.base)


def shapes(spec: Any) -> Iterator[tuple[int, int, int]]:
    """(M, N, K): tails of every kind, one output, a chunked reduction."""
    bm, bn, bk = (getattr(spec, name, 32) for name in ("bm", "bn", "bk"))
    yield bm + 1, bn + 3, bk + 5
    yield max(bm - 1, 1), 5, 2 * bk + 3
    yield bm, bn, 4 * bk
    yield 1, 1, 1
    yield 2, 3, 0
    yield 3, 7, 2085


def run(name: str, layout: str, m: int, n: int, k: int, aligned: bool, rng: Any) -> str | None:
    """Whether the bits are "same" or "different"; None where the kernel is not correct."""
    x, w, bias = (rng.standard_normal(s, dtype=np.float32) for s in ((m, k), (k, n), (1, n)))
    activation = ACTIVATIONS[(m + n + k) % len(ACTIVATIONS)]

    def put(values: np.ndarray[Any, Any]) -> Buffer:
        columns = values.shape[1]
        return Buffer(values, 0, -(-columns // 4) * 4) if aligned else Buffer(values, 1)

    a, b = put(x.T if layout[0] == "T" else x), put(w.T if layout[1] == "T" else w)

    def result(values: np.ndarray[Any, Any]) -> Buffer:
        return Buffer(values, 0, -(-n // 4) * 4) if aligned else Buffer(values, 1, n + 1)

    held = [a, b, Buffer(bias), result(np.full((m, n), np.nan, dtype=np.float32))]
    try:
        ptxgen.linear(
            a.array(turned=layout[0] == "T"),
            b.array(turned=layout[1] == "T"),
            held[2].array(vector=True),
            activation=activation,
            out=held[3].array(),
            kernel=name,
        )
        pairs = [(held[3].read(), reference.linear(x, w, bias[0], activation=activation))]
        if layout == "TN":
            old = rng.standard_normal((m, n), dtype=np.float32)
            held.append(result(old))
            ptxgen.linear_wgrad(
                a.array(), b.array(), out=held[4].array(), accumulate=True, kernel=name
            )
            expected = reference.linear_wgrad(np.ascontiguousarray(x.T), w, out_old=old)
            pairs.append((held[4].read(), expected))
    except OptionError as refusal:
        if "it requires" not in str(refusal):
            raise
        return None
    finally:
        for buffer in held:
            buffer.free()
    return "same" if all(g.tobytes() == e.tobytes() for g, e in pairs) else "different"


def main() -> int:
    """Runs all kernels; the number of kernels with different bits."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="a regular expression for kernel names")
    pattern = re.compile(parser.parse_args().only)
    arch = architecture(DEVICE)
    routes = {
        r.name: (layout, r)
        for (layout, _), table in ROUTES.items()
        for r in table
        if pattern.search(r.name) and all(kernel.runs_on(arch) for kernel in r.kernels)
    }
    names = {kernel.name for _, r in routes.values() for kernel in r.kernels}
    compile_many([Job(render(SPECS[name]), name, DEVICE.arch) for name in sorted(names)])
    rng = np.random.default_rng(7)
    wrong = 0
    for name, (layout, route) in sorted(routes.items()):
        found = [
            run(name, layout, m, n, k, aligned, rng)
            for m, n, k in shapes(route.kernels[0])
            for aligned in (True, False)
        ]
        served, different = len(found) - found.count(None), found.count("different")
        wrong += different > 0 or served == 0
        print(f"{name}: {served} problems, {different} different", flush=True)
    print(f"{len(routes)} kernels, {wrong} wrong")
    return wrong


if __name__ == "__main__":
    with DEVICE.current():  # the checker counts the refused launch of a thread without a context
        sys.exit(min(main(), 1))
