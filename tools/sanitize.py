"""Runs every kernel on shapes at the edges of its tiles, under compute-sanitizer.

    compute-sanitizer --tool memcheck python tools/sanitize.py
    compute-sanitizer --tool racecheck python tools/sanitize.py

All allocations are ptxgen's own, each of exactly the size of its operand, so that an access one
element out of bounds is detected. Kernels are compiled (in parallel, into the cache) before the
first launch. Results are compared with the NumPy oracle. Exit status 1 if any differ. Sorts,
transforms and splats have cases of whole operations, too, named ``edges_...``.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from ptxgen import quantized, reference, use_device
from ptxgen.build.compile import Job, compile_many
from ptxgen.build.render import render
from ptxgen.errors import OptionError
from ptxgen.numerics.contract import ACTIVATIONS, OPERATIONS
from ptxgen.numerics.dtype import FULL
from ptxgen.numerics.formats import format_named
from ptxgen.numerics.weight_format import Quantized, WeightFormat
from ptxgen.ops.gemm import table_of
from ptxgen.ops.quantized import quantized_dequantize
from ptxgen.program.launch import architecture, launch
from ptxgen.runtime import get_device
from ptxgen.runtime.arrays import ArrayView
from ptxgen.spec import (
    ACCUMULATE,
    ACTIVATION_SHIFT,
    ALONE,
    BIAS_F32,
    CONTINUE,
    OUT_F32,
    GemmSpec,
    Key,
    Problem,
    Route,
    of_result,
)
from ptxgen.spec.quantized import LOOKED_UP
from ptxgen.spec.quantized_packed import QuantizedGemmSpec
from ptxgen.tiles import TABLES

NUMPY = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "bf16": np.dtype(bfloat16),
    "f16": np.dtype(np.float16),
}
DEVICE: Any = None
"""The device of the run."""
Array = np.ndarray[Any, Any]
import shared_tests  # noqa: E402, F401


class Buffer:
    """A matrix on the GPU that begins ``offset`` elements into an allocation and fills its rest.

    ``pitch``: row stride in elements.
    """

    def __init__(self, values: Array, offset: int = 0, pitch: int = 0) -> None:
        rows, columns = values.shape
        self.shape, self.dtype, self.pitch = values.shape, values.dtype, max(pitch, columns, 1)
        self.size = max((rows - 1) * self.pitch + columns, 1)
        self.base = DEVICE.alloc((offset + self.size) * self.dtype.itemsize)
        self.ptr = self.base + offset * self.dtype.itemsize
        flat = np.full(self.size, 0x5A if self.dtype.kind == "u" else np.nan).astype(self.dtype)
        self._matrix(flat)[...] = values
        DEVICE.copy_in(self.ptr, flat.ctypes.data, flat.nbytes)
        DEVICE.synchronize()

    def _matrix(self, flat: Array) -> Array:
        item = self.dtype.itemsize
        return np.lib.stride_tricks.as_strided(flat, self.shape, (self.pitch * item, item))

    @property
    def align(self) -> int:
        """Alignment in bytes (at most 16) of the matrix's address and row stride."""
        low = self.ptr | self.pitch * self.dtype.itemsize | 16
        return int(low & -low)

    def read(self) -> Array:
        """Returns a copy of the matrix on the host."""
        flat = np.empty(self.size, self.dtype)
        DEVICE.copy_out(flat.ctypes.data, self.ptr, flat.nbytes)
        DEVICE.synchronize()
        return self._matrix(flat).copy()

    def free(self) -> None:
        """Frees the GPU memory of the matrix."""
        DEVICE.free(self.base)


def shapes(spec: Any) -> Iterator[tuple[int, int, int]]:
    """Yields sizes (M, N, K): partial tiles of every kind, several tiles, one output, a chunked
    reduction.
    """
    bm, bn, bk = (getattr(spec, name, 32) for name in ("bm", "bn", "bk"))
    yield bm + 1, bn + 3, bk + 5
    yield max(bm - 1, 1), 5, 2 * bk + 3
    yield bm, bn, 4 * bk
    yield bm + 9, bn + 8, bk
    yield 1, 1, 1
    yield 2, 3, 0
    yield 3, 7, 4229  # every contract cuts it


def run(name: str, first: Any, m: int, n: int, k: int, aligned: bool, rng: Any) -> str | None:
    """Runs a matrix product; returns "same" or "different" (bits), None if it is refused."""
    dtype, tier, layout, contract = first.dtype, first.tier, first.layout, first.contract
    turn = m + n + k
    kind, beside = NUMPY[dtype], NUMPY["f64" if dtype == "f64" else "f32"]
    kind_bias, kind_out = (kind if i % 2 else beside for i in (turn, turn // 2))
    if first.continues:  # as wide as its sums, or as the kernel takes it
        kind_out = kind if getattr(first, "result", 0) == 2 else beside
    activation = ACTIVATIONS[turn % len(ACTIVATIONS)] if contract.activations else "none"

    def random(shape: tuple[int, int], to: Any) -> Array:
        return np.asarray(rng.standard_normal(shape, dtype=np.float32).astype(to))

    def put(values: Array) -> Buffer:
        unit = 16 // values.itemsize
        whole = max(-(-values.shape[1] // unit), 1) * unit
        return Buffer(values, 0, whole) if aligned or not values.size else Buffer(values, 1)

    def result(values: Array) -> Buffer:
        unit = 16 // values.itemsize
        return Buffer(values, 0, -(-n // unit) * unit) if aligned else Buffer(values, 1, n + 1)

    def fire(op: str, out: Buffer, vector: Buffer | None, flags: int) -> None:
        flags |= OUT_F32 if out.dtype != kind else 0
        plan = OPERATIONS[op].asked({"chain": first.continues})
        table = table_of(layout, plan, dtype, tier)
        assert table is not None, "every layout is served"
        aligns = (a.align, b.align) if k else (16, 16)
        values = {"M": m, "N": n, "K": max(k, 1), "ALIGN_A": aligns[0], "ALIGN_B": aligns[1]}
        values |= of_result(TABLES[table].space, out.align, out.dtype.itemsize)
        scalars = dict(ALONE) | {"LDA": a.pitch, "LDB": b.pitch, "LDC": out.pitch}
        scalars |= {"FLAGS": flags, "K": k}
        problem = Problem(
            table=table,
            dtype=dtype,
            values=tuple(values.items()),
            scalars=tuple(scalars.items()),
            what=f"{op} {m} {n} {k}",
        )
        prepared = launch(problem, ("a", "b", "bias", "c"), DEVICE, name)
        prepared.fire(0, a.ptr, b.ptr, vector.ptr if vector else 0, out.ptr)

    x, w, bias = random((m, k), kind), random((k, n), kind), random((1, n), kind_bias)
    a, b = put(x.T if layout[0] == "T" else x), put(w.T if layout[1] == "T" else w)
    nothing = np.full((m, n), np.nan, np.float32).astype(kind_out)
    held = [a, b, Buffer(bias), result(nothing)]
    how: dict[str, Any] = {"tier": tier, "out_dtype": kind_out.name, "arch": DEVICE.arch}
    how["layout"] = "kn"
    try:
        flags = ACTIVATIONS.index(activation) << ACTIVATION_SHIFT
        flags |= BIAS_F32 if kind_bias != kind else 0
        pairs = []
        if not first.continues:
            fire("linear", held[3], held[2], flags)
            expected = reference.linear(x, w, bias[0], activation=activation, **how)
            pairs = [(held[3].read(), expected)]
        if (
            n % 8 == 0 and not first.continues
        ):  # without bias and activation, kernels have shorter ways out
            for to in dict.fromkeys((kind, beside)):
                held.append(result(nothing.astype(to)))
                fire("linear", held[-1], None, 0)
                how["out_dtype"] = to.name
                pairs.append((held[-1].read(), reference.linear(x, w, **how)))
            how["out_dtype"] = kind_out.name
        if layout == "TN":
            old = random((m, n), kind_out)
            held.append(result(old))
            fire("linear_wgrad", held[-1], None, CONTINUE if first.continues else ACCUMULATE)
            how["chain"] = first.continues
            expected = reference.linear_wgrad(np.ascontiguousarray(x.T), w, out_old=old, **how)
            pairs.append((held[-1].read(), expected))
    except OptionError as refusal:
        if "it requires" not in str(refusal):
            raise
        return None
    finally:
        for buffer in held:
            buffer.free()
    return "same" if all(g.tobytes() == e.tobytes() for g, e in pairs) else "different"


def run_cases(route: Route, key: Key, rng: Any) -> list[str | None]:
    """Runs a route of another kind than a product on its cases; returns "same", "different" or None
    for each.

    The cases are those of the CPU device's tests. Host arrays are copied into allocations of their
    exact sizes.
    """
    import attention_cases
    import interp_cases

    if key[0] == "scatter":
        return [run_scatter(route.name, key, rng, shape) for shape in ((45, 3), (1500, 24))]
    found: list[str | None] = []
    if key[0] == "attention":  # whose forms are not all listed
        checks = attention_cases.cases(route.main)
    else:
        checks = interp_cases.checks(route.main.name)
    for check in checks:
        try:
            check(DEVICE)
            found.append("same")
        except AssertionError:
            found.append("different")
        except OptionError:  # a case for another device: this kernel does not serve it here
            found.append(None)
    return found


def run_scatter(name: str, key: Key, rng: Any, shape: tuple[int, int]) -> str | None:
    """Adds rows at random indices, many of them equal and some out of range; returns as
    :func:`run`.
    """
    from steps import unchecked

    dy = rng.standard_normal(shape, dtype=np.float32).astype(NUMPY["bf16"])
    which = rng.integers(-2, 72, shape[0])
    which[rng.random(shape[0]) < 0.5] = 33
    old = np.zeros((70, shape[1]), dy.dtype)
    try:
        with use_device(DEVICE):
            if "old" in key:
                got = unchecked("index_add")(old, which, dy, kernel=name)
            else:
                got = unchecked("embedding_backward")(dy, which, 70, kernel=name)
    except OptionError as refusal:
        if "it requires" not in str(refusal):
            raise
        return None
    expected = reference.embedding_backward(dy, which, 70)
    return "same" if got.tobytes() == expected.tobytes() else "different"


def weight_of(row: WeightFormat, shape: tuple[int, int], rng: Any) -> quantized.QuantizedWeight:
    """Returns a weight of random codes, scales and offsets."""
    n, sizes = shape[0], row.sizes(shape[1])
    arrays: dict[str, Any] = {"data": rng.integers(0, 256, (n, sizes.pop("data")), np.uint8)}
    for name, size in sizes.items():
        drawn = rng.integers(0, 17, (n, size)), rng.standard_normal((n, size))
        arrays[name] = drawn[row.dtypes[name] != "uint8"].astype(row.dtypes[name])
    return quantized.QuantizedWeight(row, **arrays, shape=shape)


def run_dequantize(first: Any, m: int, n: int, k: int, rng: Any) -> str | None:
    """Dequantizes a weight of rows rounded up to blocks; returns as :func:`run`."""
    row = first.format
    q = weight_of(row, (max(n, 1), max(-(-k // row.block), 1) * row.block), rng)
    with use_device(DEVICE):
        got = quantized_dequantize.function(*q.operands, format=row.name, dtype=FULL[first.dtype])
    expected = reference.dequantize(q, FULL[first.dtype])
    return "same" if got.tobytes() == expected.tobytes() else "different"


def run_quantized(name: str, first: Any, m: int, n: int, k: int, rng: Any) -> str | None:
    """Runs a product with quantized weights, sizes rounded up to blocks; returns as :func:`run`."""
    forward, row = first.layout == "NT", getattr(first, "format", LOOKED_UP[0])
    rows, columns = (n, k) if forward else (k, n)
    whole = max(rows, 1), max(-(-columns // row.block), 1) * row.block
    q = weight_of(row, whole, rng)
    x = rng.standard_normal((m, whole[forward]), dtype=np.float32).astype(NUMPY[first.dtype])
    how = "linear" if forward else "linear_dgrad"
    try:
        with use_device(DEVICE):
            got = getattr(quantized, how)(x, q, kernel=name, accumulate=first.tier)
    except OptionError as refusal:
        if "it requires" not in str(refusal):
            raise
        return None
    oracle = getattr(reference, f"quantized_{how}")
    expected = oracle(x, q, arch=DEVICE.arch, accumulate=first.tier)
    return "same" if got.tobytes() == expected.tobytes() else "different"


def run_int4(name: str, key: Key, m: int, n: int, k: int, rng: Any) -> list[str | None]:
    """Runs 4-bit products, aligned and not, N and K rounded up to even; returns as :func:`run` for
    each.
    """
    from steps import Arrays

    _, layout, dtype = key
    n, k = (x + x % 2 for x in (n, k))
    b_shape = (n, k // 2) if layout == "rcr" else (k, n // 2)
    bias = np.resize(np.array([0.5, -3, 1e9], np.float32), n)[None]
    a, b, c = (
        rng.integers(0, 256, shape, np.uint8) for shape in ((m, k // 2), b_shape, (m, n // 2))
    )
    options = {"dtype": dtype, "layout": layout, "activation": "silu", "alpha": 0.01}
    options |= {"beta": -0.5}
    expected = reference.int4_gemm(a, b, c, bias[0], **options)
    found: list[str | None] = []
    for aligned in (True, False):
        held = [
            Buffer(x, 0, -(-x.shape[1] // 16) * 16) if aligned else Buffer(x, 1, x.shape[1] + 2)
            for x in (a, b, c, np.zeros_like(c))
        ]
        held.append(Buffer(bias))
        views = dict(zip(("a", "b", "c", "out", "bias"), map(_view, held), strict=True))
        views["bias"] = dataclasses.replace(views["bias"], shape=(n,), strides=(1,))
        out = views.pop("out")
        try:
            arrays = Arrays("int4_gemm")
            given = {x: arrays.seen(x, view) for x, view in views.items()}
            target = arrays.seen("out", out, written=True)
            arrays.fire(arrays.program("int4_gemm", **given, **options, out=target), DEVICE, name)
            same = held[3].read().tobytes() == expected.tobytes()
            found.append("same" if same else "different")
        except OptionError as refusal:
            if "it requires" not in str(refusal):
                raise
            found.append(None)
        finally:
            for buffer in held:
                buffer.free()
    return found


def run_edges(pattern: re.Pattern[str]) -> int:
    """Runs operations at the edges of tiles of the families that have such cases; returns the
    number with different bits.
    """
    import fft_cases
    import sort_cases
    import splat_cases

    wrong = 0
    for label, check in chain(sort_cases.edges(), fft_cases.edges(), splat_cases.edges()):
        if not pattern.search(f"edges_{label}"):
            continue
        try:
            check(DEVICE)
            found = "same"
        except AssertionError as error:
            wrong, found = wrong + 1, f"different: {error}"
        print(f"edges_{label}: {found}", flush=True)
    return wrong


def _view(held: Buffer) -> ArrayView:
    strides = (held.pitch, 1)
    dtype = held.dtype.name
    return ArrayView(held.ptr, held.shape, strides, dtype, "cuda", 0, False, "ptxgen", held)


def main(only: str = "") -> int:
    """Runs the kernels and cases whose names match the regular expression ``only``; returns the
    number with different bits, or without a served case.
    """
    pattern = re.compile(only)
    arch = architecture(DEVICE)
    twins = [
        (route.of(dtype), key)
        for key, table in TABLES.items()
        for dtype in table.dtypes
        for route in table.routes
    ]
    # Logits that are rounded numbers have kernels of their own, with slopes and a bias.
    twins += [
        (route.of(dataclasses.replace(route.main.form, rounds_scores=True)), key)
        for route, key in twins
        if key[0] == "attention" and not getattr(route.main, "mapped", False)
    ]
    # Prepared formats, of 4 bits with offsets and of 8 bits, have kernels of their own.
    prepared = [format_named(name) for name in ("int4_zero_point", "int8_block")]
    twins += [
        (route.of(Quantized("bf16", row)), key)
        for key in TABLES
        if key[0] == "quantized" and key[-1] == "tc"
        for route in TABLES[key].routes
        for row in prepared
        if isinstance(route.main, QuantizedGemmSpec) and route.takes(Quantized("bf16", row))
    ]
    routes = {
        r.name: (r, key)
        for r, key in twins
        if pattern.search(r.name) and all(kernel.runs_on(arch) for kernel in r.kernels)
    }
    specs = {kernel.name: kernel for r, _ in routes.values() for kernel in r.kernels}
    compile_many([Job(render(specs[name]), name, DEVICE.arch) for name in sorted(specs)])
    rng = np.random.default_rng(7)
    wrong = 0
    for name, (route, key) in sorted(routes.items()):
        first: Any = route.main
        found: list[str | None]
        if key[0] == "dequantize":
            found = [run_dequantize(first, m, n, k, rng) for m, n, k in ((1, 1, 1), (3, 5, 700))]
        elif "data" in route.kernels[0].abi.offsets:
            found = [run_quantized(name, first, m, n, k, rng) for m, n, k in shapes(first)]
        elif key[0] == "int4":
            found = [x for mnk in shapes(first) for x in run_int4(name, key, *mnk, rng)]
        elif isinstance(first, GemmSpec) and key[0] != "conv" and "c" in first.abi.offsets:
            found = [
                run(name, first, m, n, k, aligned, rng)
                for m, n, k in shapes(first)
                for aligned in (True, False)
            ]
        else:
            found = run_cases(route, key, rng)
        served, different = len(found) - found.count(None), found.count("different")
        wrong += different > 0 or served == 0
        print(f"{name}: {served} problems, {different} different", flush=True)
    print(f"{len(routes)} kernels, {wrong} wrong", flush=True)
    return wrong + run_edges(pattern)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="a regular expression for names")
    parser.add_argument("--device", default="cuda", help="cpu: the interpreter, for a trial")
    chosen = parser.parse_args()
    DEVICE = get_device(chosen.device)
    # The checker counts the refused launch of a thread without a context.
    with DEVICE.current() if DEVICE.kind == "cuda" else nullcontext():
        sys.exit(min(main(chosen.only), 1))
