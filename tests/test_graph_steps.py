"""The kinds of steps of a neural network's op graph, each at small odd sizes and at its limits.

:data:`KINDS` has one entry for each kind. tools/graph_steps.py writes the list to
docs/reference/graph-steps.md. Calls are judged by tests/calls.py: their bits are the oracle's, and
they are as near to a float64 formula as its bound says.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import calls
import formulas
import ml_dtypes
import numpy as np
import pytest
import splat_cases
from bits import difference
from quantized.format_cases import weight

import ptxgen
from ptxgen import functions as f
from ptxgen import graph, layout, reference
from ptxgen.errors import DtypeError, OptionError, PtxgenError, ShapeError, TraceError
from ptxgen.numerics.formats import FORMATS
from ptxgen.numerics.grouped import GROUPS_MAX
from ptxgen.ops import OPERATIONS
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.depends import Touch, before
from ptxgen.program.description import Backward
from ptxgen.program.interpret import Interpreter
from ptxgen.runtime.arrays import view
from ptxgen.runtime.cpu import CpuDevice

SEED = 65
bfloat16 = ml_dtypes.bfloat16


@pytest.fixture(autouse=True, scope="module")
def on_cpu() -> Iterator[None]:
    """A device that forgets its kernels afterwards."""
    with ptxgen.use_device(CpuDevice()):
        yield


# -- what an entry consists of --------------------------------------------------------------------
@dataclass(frozen=True)
class Call:
    """A call of a public operation."""

    by: ClassVar[str] = ""
    name: str
    given: dict[str, Any]

    def check(self) -> None:
        """Fails unless the call has the oracle's bits, and is near the float64 formula."""
        assert not calls.judge(calls.Call(self.name, self.given)), self.name


@dataclass(frozen=True)
class Gradient:
    """The gradients of an operation by the arguments ``of``, at float32 arrays ``given``.
    ``differences``: whether they are compared with differences of results, in float64.
    """

    by: ClassVar[str] = "gradient of "
    name: str
    given: dict[str, Any]
    of: tuple[str, ...]
    differences: bool = True

    def check(self) -> None:
        """Fails unless the gradients' program has its oracle's bits, and the oracle in float64
        agrees with differences of results along random directions.
        """
        op = OPERATIONS[self.name.rpartition(".")[2]]
        op = op.keeping or op
        rng = np.random.default_rng(SEED)
        arrays = {n: x for n, x in self.given.items() if isinstance(x, np.ndarray)}
        named = {n: x for n, x in self.given.items() if n not in arrays}
        options = op.check(named)

        def lowered(b: Any, given: dict[str, Any], array: Any) -> Any:
            own = {n: given.get(n) for n in op.arrays}
            made = b.call(op, **own, **named)
            made = made if isinstance(made, tuple) else (made,)
            dy = array("dy", made[0])
            found = op.vjp(b, Backward(own, options, made, (dy,), frozenset(self.of)))
            return made[0], [b.copied(found[n]) for n in self.of]

        b = ProgramBuilder(OPERATIONS)
        given = {n: b.input(n, view(x, n)) for n, x in arrays.items()}
        y, found = lowered(b, given, b.input)
        dy = rng.standard_normal(y.shape).astype(np.float32)
        got = ptxgen.capture(b.finish(found))(*arrays.values(), dy)
        got = got if isinstance(got, tuple) else (got,)
        wide = {n: x.astype(np.float64) if x.dtype.kind == "f" else x for n, x in arrays.items()}
        fine: list[Any] = []
        each = (arrays, dy), (wide, dy.astype(np.float64))
        for values, out in each if self.differences else each[:1]:
            at = Interpreter(self.name)
            own = {n: at.array(n, x) for n, x in values.items()}
            _, made = lowered(at, own, lambda n, _, at=at, out=out: at.array(n, out))
            fine = [at.value(v) for v in made]
            if values is arrays:
                for one, other in zip(got, fine, strict=True):
                    assert not difference(one, other), self.name
        if not self.differences:
            return
        oracle = calls.operations()[self.name].oracle

        def total(name: str, by: Any) -> float:
            found = oracle(**{**wide, name: wide[name] + by}, **named)
            return float(np.sum((found[0] if isinstance(found, tuple) else found) * dy))

        for name, gradient in zip(self.of, fine, strict=True):
            way = rng.standard_normal(wide[name].shape) * 1e-6
            expected = (total(name, way) - total(name, -way)) / 2e-6
            got_along = float(np.sum(gradient * way)) * 1e6
            assert abs(got_along - expected) <= 1e-4 * max(1.0, abs(expected)), (self.name, name)


@dataclass(frozen=True)
class Program:
    """A function of arrays that becomes ``steps`` steps, by a pass ``name``; its results are those
    of the calls.
    """

    by: ClassVar[str] = "pass "
    name: str
    function: Callable[..., Any]
    arrays: tuple[Any, ...]
    steps: int = 1

    def check(self) -> None:
        """Fails unless the captured program has that many steps, and the bits of the calls."""
        captured = ptxgen.capture(self.function, *self.arrays, passes=graph.fewer)
        assert len(captured.program.steps) == self.steps
        several = (x if isinstance(x, tuple) else (x,) for x in (
            captured(*self.arrays), self.function(*self.arrays)))  # fmt: skip
        for got, expected in zip(*several, strict=True):
            assert not difference(got, expected)


Item = Call | Gradient | Program


@dataclass(frozen=True)
class Kind:
    """A kind of step. ``limits``: the sizes and values at its limits that it is run at."""

    name: str
    limits: str
    items: Callable[[np.random.Generator], Iterator[Item]]

    def run(self) -> list[Item]:
        """Returns its calls, gradients and programs."""
        return list(self.items(np.random.default_rng(SEED)))

    @property
    def served(self) -> list[str]:
        """Operations, gradients of operations and passes that serve it, as text."""
        return [*dict.fromkeys(f"{i.by}`{i.name}`" for i in self.run())]


KINDS: dict[str, Kind] = {}


def kind(name: str, limits: str) -> Callable[[Any], Any]:
    """Adds an entry."""

    def add(items: Any) -> Any:
        assert name not in KINDS
        KINDS[name] = Kind(name, limits, items)
        return items

    return add


def normal(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    return rng.standard_normal(shape).astype(dtype)


# -- elementwise ----------------------------------------------------------------------------------
@kind("Binary", "scalars, broadcasts, empty arrays; infinities, NaN, zeros of both signs")
def _binary(rng: Any) -> Iterator[Item]:
    odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38], np.float32)
    for name in ("add", "sub", "mul", "div", "maximum", "minimum", "pow"):
        x, y = getattr(f, name).arguments
        yield Call(f"functions.{name}", {x: normal(rng, 3, 7), y: normal(rng, 7)})
        yield Call(f"functions.{name}", {x: odd[:, None], y: odd})
        yield Call(f"functions.{name}", {x: normal(rng, 0, 5), y: 2.5})


@kind("Compare", "NaN, equal values, zeros of both signs")
def _compare(rng: Any) -> Iterator[Item]:
    odd = np.array([0.0, -0.0, np.inf, np.nan, 1.5], np.float32)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        x, y = getattr(f, name).arguments
        yield Call(f"functions.{name}", {x: odd[:, None], y: odd})


@kind("Where", "conditions that are broadcast; NaN on the side that is not taken")
def _where(rng: Any) -> Iterator[Item]:
    there = rng.random((3, 1)) < 0.5
    c, x, y = f.where.arguments
    yield Call(
        "functions.where", {c: there, x: normal(rng, 3, 5), y: np.full((3, 5), np.nan, "f4")}
    )


UNARY = (
    *("relu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "neg", "abs", "gelu", "silu"),
    *("gelu_tanh", "round", "sin", "cos", "tan", "atan"),
)


@kind("Unary", "infinities, NaN, subnormal and the largest numbers")
def _unary(rng: Any) -> Iterator[Item]:
    odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -3e38, 0.5, 2.5], np.float32)
    for name in UNARY:
        yield Call(f"functions.{name}", {"x": np.concatenate([odd, normal(rng, 8)])})


@kind("FusedBinaryUnary", "all 17 functions behind a sum")
def _binary_unary(rng: Any) -> Iterator[Item]:
    x, y = abs(normal(rng, 3, 7)), abs(normal(rng, 7))
    for name in UNARY:
        yield Program("fuse", lambda x, y, name=name: getattr(f, name)(f.add(x, y)), (x, y))


@kind(
    "ElementwiseRegion",
    "16 operands and a result, 32 operations, broadcasts; images of twice the size",
)
def _region(rng: Any) -> Iterator[Item]:
    arrays = tuple(normal(rng, *(shape)) for shape in itertools.islice(
        itertools.cycle([(4, 6), (6,), (4, 1), (1, 6)]), 16))  # fmt: skip

    def total(*arrays: Any) -> Any:
        found = f.mul(arrays[0], 0.5)
        for i, x in enumerate(arrays[1:]):
            found = f.add(f.maximum(found, x) if i % 2 else f.mul(found, x), x)
        return f.tanh(found)

    yield Program("fuse", total, arrays)
    yield Call("resize_nearest_2x", {"x": normal(rng, 2, 3, 5)})


@kind("BatchElementwiseRegion", "64 slices of one array, 64 arrays of one shape")
def _batch(rng: Any) -> Iterator[Item]:
    def gate(x: Any, y: Any) -> Any:
        return f.mul(f.silu(x), y)

    rows = normal(rng, 64, 3, 5), normal(rng, 64, 5)
    slices = range(64)
    yield Program("batch", lambda x, y: tuple(gate(x[i], y[i]) for i in slices), rows)
    arrays = tuple(normal(rng, 7) for _ in range(128))
    yield Program(
        "batch", lambda *x: tuple(gate(x[i], x[64 + i]) for i in slices), arrays
    )  # fmt: skip


@kind("Cast", "rounding to even, overflow to infinity, integers and bool")
def _cast(rng: Any) -> Iterator[Item]:
    x = np.concatenate([normal(rng, 9), np.float32([65520, 1e-8, 2049, 2051, -0.0, np.nan])])
    for dtype in ("float16", "bfloat16", "float64"):
        yield Call("functions.cast", {"x": x, "dtype": dtype})


# -- rows -----------------------------------------------------------------------------------------
@kind("Reduce", "any axes, rows of 1 element and of 1025 (two leaves), no elements")
def _reduce(rng: Any) -> Iterator[Item]:
    for name in ("sum", "mean", "amax", "amin", "prod"):
        yield Call(name, {"x": normal(rng, 3, 5, 7), "axis": (0, 2)})
        yield Call(name, {"x": normal(rng, 2, 1025), "axis": -1})
        yield Call(name, {"x": normal(rng, 5, 1), "axis": 1, "keepdims": True})
    yield Call("sum", {"x": normal(rng, 0, 3), "axis": 0})


@kind("Softmax", "rows of 1 and of 1025 elements, -inf, another axis")
def _softmax(rng: Any) -> Iterator[Item]:
    x = normal(rng, 3, 1025)
    x[0, 5:] = -np.inf
    yield Call("softmax", {"x": x})
    yield Call("softmax", {"x": normal(rng, 4, 1)})
    yield Call("softmax", {"x": normal(rng, 3, 5, 2), "axis": 1})


@kind("LayerNorm", "without weight and bias, equal elements, rows of 1 element")
def _layer_norm(rng: Any) -> Iterator[Item]:
    x = normal(rng, 3, 37)
    x[0] = 2
    yield Call("layer_norm", {"x": x, "weight": normal(rng, 37), "bias": normal(rng, 37)})
    yield Call("layer_norm", {"x": x})
    yield Call("layer_norm", {"x": normal(rng, 3, 1), "weight": normal(rng, 1)})


@kind("RmsNorm", "without weight, zeros, rows of 1 element")
def _rms_norm(rng: Any) -> Iterator[Item]:
    x = normal(rng, 3, 37)
    x[0] = 0
    yield Call("rms_norm", {"x": x, "weight": normal(rng, 37), "bias": normal(rng, 37)})
    yield Call("rms_norm", {"x": normal(rng, 2, 1)})


@kind("GroupNorm", "one group, as many groups as channels")
def _group_norm(rng: Any) -> Iterator[Item]:
    of = {"x": normal(rng, 2, 6, 3, 5), "weight": normal(rng, 6), "bias": normal(rng, 6)}
    for groups in (1, 3, 6):
        yield Call("group_norm", {**of, "groups": groups})


@kind("LayerNorm2d", "one position, one channel")
def _layer_norm2d(rng: Any) -> Iterator[Item]:
    yield Call("layer_norm2d", {"x": normal(rng, 2, 7, 3, 5), "weight": normal(rng, 7)})
    yield Call("layer_norm2d", {"x": normal(rng, 1, 1, 1, 1)})


@kind("FusedResidualLn", "with and without a bias of the residual")
def _residual_ln(rng: Any) -> Iterator[Item]:
    of = {"x": normal(rng, 3, 19), "residual": normal(rng, 3, 19)}
    of |= {"weight": normal(rng, 19), "bias": normal(rng, 19)}
    yield Call("layer_norm", of)
    yield Call("layer_norm", {**of, "residual_bias": normal(rng, 19)})


@kind("FusedResidualRmsNorm", "with and without a bias of the residual, and beta")
def _residual_rms(rng: Any) -> Iterator[Item]:
    of = {"x": normal(rng, 3, 19), "residual": normal(rng, 3, 19), "weight": normal(rng, 19)}
    yield Call("rms_norm", of)
    yield Call("rms_norm", {**of, "residual_bias": normal(rng, 19), "bias": normal(rng, 19)})


@kind("RmsNormBackwardInput", "rows of 1 element")
def _rms_input(rng: Any) -> Iterator[Item]:
    for n in (1, 19):
        yield Gradient("rms_norm", {"x": normal(rng, 3, n), "weight": normal(rng, n)}, ("x",))


@kind("RmsNormBackwardGamma", "one row")
def _rms_gamma(rng: Any) -> Iterator[Item]:
    yield Gradient("rms_norm", {"x": normal(rng, 5, 19), "weight": normal(rng, 19)}, ("weight",))
    for rows in (1, 5):
        of = {"dy": normal(rng, rows, 19), "x": normal(rng, rows, 19)}
        yield Call("rms_norm_wgrad", {**of, "rstd": abs(normal(rng, rows))})


@kind("RmsNormBackwardBeta", "one row")
def _rms_beta(rng: Any) -> Iterator[Item]:
    for rows in (1, 5):
        of = {"x": normal(rng, rows, 19), "weight": normal(rng, 19), "bias": normal(rng, 19)}
        yield Gradient("rms_norm", of, ("bias",))


@kind("LayerNormBackward", "gradients by input, gamma and beta; one row")
def _layer_backward(rng: Any) -> Iterator[Item]:
    for rows in (1, 5):
        of = {"x": normal(rng, rows, 19), "weight": normal(rng, 19), "bias": normal(rng, 19)}
        yield Gradient("layer_norm", of, ("x", "weight", "bias"))


@kind("SoftmaxBackward", "rows of 1 element")
def _softmax_backward(rng: Any) -> Iterator[Item]:
    for n in (1, 19):
        yield Gradient("softmax", {"x": normal(rng, 3, n)}, ("x",))


@kind("Argmax", "equal elements, NaN, all axes")
def _argmax(rng: Any) -> Iterator[Item]:
    x = np.round(normal(rng, 5, 37))
    x[1, 7:9] = np.nan
    yield Call("argmax", {"x": x, "axis": 1})
    yield Call("argmax", {"x": x, "axis": None})


@kind("TopK", "k = 1, k = the row's length, also above 1024; equal elements, NaN")
def _topk(rng: Any) -> Iterator[Item]:
    x = np.round(normal(rng, 3, 33))
    x[0, 3] = np.nan
    for k in (1, 7, 33):
        yield Call("topk", {"x": x, "k": k})
    long = np.round(normal(rng, 2, 1100) * 50)
    for k in (1024, 1025, 1100):
        yield Call("topk", {"x": long, "k": k})


@kind("Cumsum", "rows of 1 and of 1025 elements, exclusive, from the end")
def _cumsum(rng: Any) -> Iterator[Item]:
    yield Call("cumsum", {"x": normal(rng, 2, 1025)})
    yield Call("cumsum", {"x": normal(rng, 3, 7), "exclusive": True, "reverse": True})
    yield Call("cumsum", {"x": normal(rng, 3, 1)})


@kind("CumsumBackward", "exclusive")
def _cumsum_backward(rng: Any) -> Iterator[Item]:
    for exclusive in (False, True):
        yield Gradient("cumsum", {"x": normal(rng, 3, 19), "exclusive": exclusive}, ("x",))


@kind("Sample", "greedy (temperature 0), top-k of 1, top-p, min-p, one logit")
def _sample(rng: Any) -> Iterator[Item]:
    x = normal(rng, 5, 37)
    for how in ({}, {"temperature": 0.7, "seed": 9}, {"temperature": 1.0, "top_k": 1},
                {"temperature": 1.0, "top_k": 5, "top_p": 0.9, "seed": 3},
                {"temperature": np.linspace(0, 2, 5, dtype=np.float32), "min_p": 0.1}):  # fmt: skip
        yield Call("sample", {"logits": x, **how})
    yield Call("sample", {"logits": normal(rng, 2, 1), "temperature": 1.0})


# -- places ---------------------------------------------------------------------------------------
@kind("Gather, axis 0", "repeated indices, no index, one row; rows of several dimensions")
def _gather_rows(rng: Any) -> Iterator[Item]:
    x = normal(rng, 5, 3, 7)
    yield Call("gather", {"x": x, "indices": rng.integers(0, 5, (2, 3)), "axis": 0})
    for at in (np.array([4, 0, 4]), np.zeros(0, np.int64)):
        yield Call("embedding", {"weight": x[:, 0], "indices": at})
    yield Call("embedding", {"weight": x[:1, 0], "indices": np.zeros((2, 3), np.int32)})


@kind("Gather, any axis", "the last axis and one between; repeated indices, no index, one element")
def _gather(rng: Any) -> Iterator[Item]:
    x = normal(rng, 5, 3, 7)
    for axis in (1, -1):
        for shape in ((2, 3), (0,)):
            at = rng.integers(0, x.shape[axis], shape)
            yield Call("gather", {"x": x, "indices": at, "axis": axis})
    yield Call("gather", {"x": normal(rng, 3, 1), "indices": np.zeros(4, np.int64), "axis": 1})


@kind("GatherBackward", "repeated indices, rows without any")
def _gather_backward(rng: Any) -> Iterator[Item]:
    at = np.array([4, 0, 4, 4])
    yield Call("embedding_backward", {"dy": normal(rng, 4, 7), "indices": at, "rows": 6})
    yield Gradient("gather", {"x": normal(rng, 3, 5), "indices": at, "axis": 1}, ("x",))


@kind("ScatterAdd", "onto zeros and onto values, repeated indices, another axis")
def _scatter_add(rng: Any) -> Iterator[Item]:
    at, source = rng.integers(0, 3, (7, 5)), normal(rng, 7, 5)
    for x in (np.zeros((3, 5), np.float32), normal(rng, 3, 5)):
        yield Call("scatter_add", {"x": x, "indices": at, "source": source, "axis": 0})
    yield Call("index_add", {"x": normal(rng, 3, 5), "indices": at[:, 0], "source": source})


@kind("Narrow", "no elements, all elements")
def _narrow(rng: Any) -> Iterator[Item]:
    for start, length in ((0, 7), (2, 3), (7, 0)):
        yield Call("layout.narrow", {"x": normal(rng, 3, 7), "axis": 1, "start": start,
                                     "length": length})  # fmt: skip


@kind("Concat", "one array, parts without elements, more than 8 parts")
def _concat(rng: Any) -> Iterator[Item]:
    for parts in ((3,), (3, 0, 5), (1,) * 11):
        yield Call("layout.concat", {"arrays": [normal(rng, 2, n) for n in parts], "axis": 1})


@kind("Transpose", "any two axes; the copy of a transposed array")
def _transpose(rng: Any) -> Iterator[Item]:
    x = normal(rng, 3, 5, 7)
    yield Call("layout.transpose", {"x": x, "first": 0, "second": 2})
    yield Call("layout.contiguous", {"x": x.transpose(2, 0, 1)})


@kind("Expand", "several axes at once")
def _expand(rng: Any) -> Iterator[Item]:
    yield Call("layout.expand", {"x": normal(rng, 3, 1), "shape": (2, 3, 5)})


@kind("Rope", "a part of the row, neighbours as pairs, one pair")
def _rope(rng: Any) -> Iterator[Item]:
    for width, half, pairs in ((10, 5, False), (9, 3, True), (2, 1, False)):
        angles = [normal(rng, 3, half) for _ in range(2)]
        yield Call("layout.rope", {"x": normal(rng, 2, 3, width), "cos": angles[0],
                                   "sin": angles[1], "interleaved": pairs})  # fmt: skip


@kind("RopeBackward", "a part of the row")
def _rope_backward(rng: Any) -> Iterator[Item]:
    of = {"cos": normal(rng, 3, 3), "sin": normal(rng, 3, 3)}
    yield Gradient("layout.rope", {"x": normal(rng, 2, 3, 9), **of}, ("x",))


# -- products -------------------------------------------------------------------------------------
ACTIVATIONS = (None, "relu", "gelu", "gelu_tanh", "silu")
WEIGHTS = (np.float16, bfloat16)
"""Dtypes of 16 bits that weights are kept in."""


@kind(
    "Matmul",
    "rows of several dimensions, K = 0 and 1, all epilogues; weights of 16 bits, read as they are; "
    "17 functions in its epilogue",
)
def _matmul(rng: Any) -> Iterator[Item]:
    for activation in ACTIVATIONS:
        of = {"a": normal(rng, 2, 3, 9), "b": normal(rng, 9, 5), "bias": normal(rng, 5)}
        yield Call("matmul", {**of, "activation": activation})
    for k in (0, 1):
        yield Call("matmul", {"a": normal(rng, 3, k), "b": normal(rng, k, 5)})
    x, bias = normal(rng, 3, 17), normal(rng, 5)
    for dtype in WEIGHTS:
        w, narrow = normal(rng, 17, 5, dtype=dtype), bias.astype(dtype)
        for x_dtype, of_bias in ((dtype, narrow), (np.float32, bias), (np.float32, narrow)):
            given = {"x": x.astype(x_dtype), "w": w, "bias": of_bias}
            yield Call("linear", {**given, "layout": "kn"})
            yield Program("epilogues", lambda x, w, b: f.tanh(
                ptxgen.linear(x, w, b, layout="kn")), tuple(given.values()))  # fmt: skip
    w = normal(rng, 17, 5)
    for name in UNARY:
        yield Program("epilogues", lambda x, w, b, name=name: getattr(f, name)(
            ptxgen.linear(x, w, b, layout="kn")), (x, w, bias))  # fmt: skip


@kind(
    "Matmul, batched",
    "equal rank, batches that broadcast, one product, K = 0 and 1, all epilogues; weights of 16 "
    "bits; functions in its epilogue",
)
def _batched_matmul(rng: Any) -> Iterator[Item]:
    a, b, bias = normal(rng, 2, 3, 5, 17), normal(rng, 2, 3, 17, 7), normal(rng, 7)
    for second in (b, b[:1], b[:1, :1]):
        yield Call("matmul", {"a": a, "b": second})
    yield Call("matmul", {"a": a[:1, :1], "b": b[:1, :1]})
    for activation in ACTIVATIONS:
        yield Call("matmul", {"a": a, "b": b, "bias": bias, "activation": activation})
    for k in (0, 1):
        yield Call("matmul", {"a": a[..., :k], "b": b[..., :k, :]})
    for dtype in WEIGHTS:
        yield Call("matmul", {"a": a, "b": b.astype(dtype)})
    for name in ("sigmoid", "atan", "round"):
        yield Program("epilogues", lambda a, b, c, name=name: getattr(f, name)(
            ptxgen.matmul(a, b, c)), (a, b, bias))  # fmt: skip


@kind("GroupedMatmul", f"empty groups, rows after the last group, {GROUPS_MAX} groups")
def _grouped(rng: Any) -> Iterator[Item]:
    ends = np.array([0, 3, 3, 7], np.int32)
    yield Call("grouped_linear", {"x": normal(rng, 9, 17), "w": normal(rng, 4, 17, 5),
                                  "offsets": ends, "layout": "kn"})  # fmt: skip
    many = np.minimum(np.arange(1, GROUPS_MAX + 1), 5).astype(np.int32)
    yield Call("grouped_linear", {"x": normal(rng, 5, 3), "w": normal(rng, GROUPS_MAX, 3, 1),
                                  "offsets": many, "layout": "kn"})  # fmt: skip


def _dequant(names: tuple[str, ...], rng: Any, grouped: bool = False) -> Iterator[Item]:
    for name in names:
        row = FORMATS[name]
        q, _ = weight(row, 6, 1, SEED)
        x = normal(rng, 3, q.k)
        if grouped:
            given = {"x": x, "q": q, "ends": np.array([1, 1, 3], np.int32)}
            yield Dequant("quantized.grouped_linear", given)
        else:
            yield Dequant("quantized.linear", {"x": x, "q": q})


@dataclass(frozen=True)
class Dequant(Call):
    """A product with a weight, which is also compared with a product of the dequantized weight."""

    def check(self) -> None:
        """Fails unless the call has the bits of the oracle, and of the dense product."""
        assert not calls.judge(calls.Call(self.name, self.given), False), self.given["q"].format
        x, q = self.given["x"], self.given["q"]
        w = reference.dequantize(q, x.dtype)
        got = calls.operations()[self.name].function(**self.given)
        if "ends" in self.given:
            dense = {"w": w.reshape(len(self.given["ends"]), -1, q.k), "layout": "nk"}
            expected = ptxgen.grouped_linear(x, offsets=self.given["ends"], **dense)
            judged = formulas.judge("grouped_linear", {"x": x, "offsets": self.given["ends"],
                                                       **dense}, got)  # fmt: skip
        else:
            expected = ptxgen.linear(x, w, layout="nk")
            judged = formulas.judge("linear", {"x": x, "w": w, "layout": "nk"}, got)
        assert not difference(got, expected) and not judged, (self.given["q"].format, judged)


BLOCKS = ("int8_block", "int8_block_asym", "int4_block", "fp8_e4m3", "fp8_e5m2", "fp4_e2m1")


@kind("DequantMatmul", "one block a row; all codes of each format")
def _dequant_matmul(rng: Any) -> Iterator[Item]:
    yield from _dequant(BLOCKS, rng)


K_QUANTS = ("q2_k", "q3_k", "q4_k", "q5_k", "q6_k")


@kind("DequantMatmul, GGUF", "one block of 256 a row; all codes of each format")
def _dequant_gguf(rng: Any) -> Iterator[Item]:
    yield from _dequant((*K_QUANTS, "q8_0", "q4_0"), rng)


@kind("DequantGroupedMatmul", "an empty group, one block a row; each format of blocks")
def _dequant_grouped(rng: Any) -> Iterator[Item]:
    yield from _dequant(BLOCKS, rng, grouped=True)


@kind("DequantGroupedMatmul, GGUF", "an empty group, one block of 256 a row; each K-quant")
def _dequant_grouped_gguf(rng: Any) -> Iterator[Item]:
    yield from _dequant(K_QUANTS, rng, grouped=True)


# -- attention ------------------------------------------------------------------------------------
@kind("Attention", "no mask, causal, own masks, windows of 1, biases; both layouts, packed QKV, "
      "softcap")  # fmt: skip
def _attention(rng: Any) -> Iterator[Item]:
    q, k, v = normal(rng, 2, 4, 5, 16), normal(rng, 2, 2, 9, 16), normal(rng, 2, 2, 9, 16)
    seen = rng.random((5, 9)) < 0.6
    for how in ({}, {"causal": True}, {"mask": seen}, {"causal": True, "window": 1},
                {"bias": normal(rng, 5, 9)}, {"scale": 0.3, "softcap": 2.0}):  # fmt: skip
        yield Call("attention", {"q": q, "k": k, "v": v, **how})
    packed = layout.split_qkv(normal(rng, 2, 5, 8 * 16), heads=4, kv_heads=2)
    yield Call("attention", {**dict(zip("qkv", packed, strict=True)), "layout": "bshd",
                             "causal": True})  # fmt: skip


@kind("AttentionBackward", "causal, one key, grouped queries")
def _attention_backward(rng: Any) -> Iterator[Item]:
    for keys, how in ((9, {"causal": True}), (1, {})):
        q = normal(rng, 1, 4, 5, 16)
        k, v = (normal(rng, 1, 2, keys, 16) for _ in "kv")
        o, lse = reference.attention(q, k, v, return_lse=True, **how)
        yield Call("attention_grad", {"do": normal(rng, *q.shape), "q": q, "k": k, "v": v,
                                      "o": o, "lse": lse, **how})  # fmt: skip


# -- images ---------------------------------------------------------------------------------------
@kind("Conv", "1 to 3 dimensions, groups, depthwise, dilation, one tap")
def _conv(rng: Any) -> Iterator[Item]:
    for rank, groups in ((1, 1), (2, 3), (3, 1)):
        of = {"x": normal(rng, 2, 6, *(7, 5, 4)[:rank]), "bias": normal(rng, 9)}
        of |= {"w": normal(rng, 9, 6 // groups, *(3, 2, 1)[:rank]), "groups": groups}
        yield Call("conv", {**of, "padding": 1, "stride": 2, "dilation": 2 if rank == 1 else 1})
    yield Call("conv", {"x": normal(rng, 1, 6, 5, 5), "w": normal(rng, 6, 1, 3, 3), "groups": 6})
    yield Call("conv", {"x": normal(rng, 1, 3, 1, 1), "w": normal(rng, 5, 3, 1, 1)})


@kind("ConvTranspose2d", "stride 2 with padding of the output, groups")
def _conv_transpose(rng: Any) -> Iterator[Item]:
    of = {"x": normal(rng, 2, 6, 4, 3), "bias": normal(rng, 4)}
    yield Call("conv_transpose", {**of, "w": normal(rng, 6, 4, 3, 2), "stride": 2,
                                  "output_padding": 1})  # fmt: skip
    yield Call("conv_transpose", {**of, "w": normal(rng, 6, 2, 3, 3), "groups": 2, "padding": 1})


@kind("Conv2dBackwardInput", "stride that leaves a rest, groups")
def _conv_dgrad(rng: Any) -> Iterator[Item]:
    yield Call("conv_dgrad", {"dy": normal(rng, 2, 4, 3, 2), "w": normal(rng, 4, 3, 3, 3),
                              "image": (8, 5), "stride": 2})  # fmt: skip
    yield Call("conv_dgrad", {"dy": normal(rng, 1, 4, 5, 5), "w": normal(rng, 4, 1, 1, 1),
                              "image": (5, 5), "groups": 2})  # fmt: skip


@kind("Conv2dBackwardWeight", "stride that leaves a rest, groups")
def _conv_wgrad(rng: Any) -> Iterator[Item]:
    yield Call("conv_wgrad", {"x": normal(rng, 2, 3, 8, 5), "dy": normal(rng, 2, 4, 3, 2),
                              "taps": (3, 3), "stride": 2})  # fmt: skip
    yield Call("conv_wgrad", {"x": normal(rng, 1, 2, 5, 5), "dy": normal(rng, 1, 4, 5, 5),
                              "taps": (1, 1), "groups": 2})  # fmt: skip


@kind("Im2Col", "padding beyond the window, windows that leave a rest; its adjoint")
def _im2col(rng: Any) -> Iterator[Item]:
    how = {"window": (3, 2), "stride": 2, "padding": 4}
    x = normal(rng, 2, 3, 5, 6)
    yield Call("im2col", {"x": x, **how})
    yield Call("col2im", {"x": reference.im2col(x, **how), "size": (5, 6), **how})


@kind("Pool", "max, min, mean, sum, product; 1 to 3 dimensions; windows of more than 32 elements")
def _pool(rng: Any) -> Iterator[Item]:
    for name in ("max_pool", "min_pool", "avg_pool", "sum_pool", "prod_pool"):
        for size, window in (((9,), (3,)), ((7, 6), (3, 2)), ((4, 3, 5), (2, 2, 2))):
            yield Call(name, {"x": normal(rng, 2, 3, *size), "window": window, "stride": 2,
                              "padding": 1, "ceil": True})  # fmt: skip
        yield Call(name, {"x": normal(rng, 2, 7, 6), "window": (7, 6)})


@kind("MaxPool2dBackward", "windows that overlap, equal elements")
def _pool_backward(rng: Any) -> Iterator[Item]:
    x = normal(rng, 2, 7, 6)
    yield Gradient("max_pool", {"x": x, "window": (3, 3), "stride": (1, 2), "padding": (1, 1)},
                   ("x",))  # fmt: skip


@kind("ResizeNearest2x", "one element")
def _resize(rng: Any) -> Iterator[Item]:
    for shape in ((2, 3, 5, 3), (1, 1)):
        yield Call("resize_nearest_2x", {"x": normal(rng, *shape)})


# -- sequences ------------------------------------------------------------------------------------
@kind("SelectiveScan", "256 states, one token, a state that is carried")
def _selective_scan(rng: Any) -> Iterator[Item]:
    for tokens, states in ((5, 3), (1, 256)):
        rows, own = (2, tokens, 7), (7, states)
        of = {
            "x": normal(rng, *rows),
            "delta": abs(normal(rng, *rows)),
            "A": -abs(normal(rng, *own)),
        }
        of |= {n: normal(rng, 2, tokens, states) for n in "BC"}
        yield Call("selective_scan", {**of, "state": normal(rng, 2, *own), "return_state": True})


@kind("GatedDeltaNet", "one token, a state that is carried")
def _delta(rng: Any) -> Iterator[Item]:
    for tokens in (1, 9):
        of = {n: normal(rng, 1, tokens, 2, 8) for n in "qk"} | {"v": normal(rng, 1, tokens, 4, 16)}
        of |= {"g": -abs(normal(rng, 1, tokens, 4)), "beta": abs(normal(rng, 1, tokens, 4))}
        yield Call("gated_delta_rule", {**of, "l2_norm": True, "state": normal(rng, 1, 4, 8, 16),
                                        "return_state": True})  # fmt: skip


# -- spectra --------------------------------------------------------------------------------------
@kind("Fft", "one element, a prime length; inverse, norms, float64, complex numbers")
def _fft(rng: Any) -> Iterator[Item]:
    for n, how in ((1, {}), (37, {"inverse": True}), (96, {"norm": "ortho"})):
        yield Call("fft_block", {"x": normal(rng, 3, 2 * n), **how})
    yield Call("fft_block", {"x": normal(rng, 2, 2 * 45, dtype=np.float64)})
    yield Call("ifft", {"x": (normal(rng, 3, 7) + 1j * normal(rng, 3, 7)).astype(np.complex64)})
    yield Gradient("fft_block", {"x": normal(rng, 2, 10), "norm": "ortho"}, ("x",))


@kind("LogMel", "one filter, one bin, silence; a clamp, float64")
def _log_mel(rng: Any) -> Iterator[Item]:
    for bins, filters, how in ((9, 4, {}), (1, 1, {"floor": 1e-3}), (9, 3, {"clamp": 0.5})):
        of = {"spectrum": normal(rng, 5, 2 * bins), "filters": abs(normal(rng, filters, bins))}
        yield Call("log_mel", {**of, **how})
    yield Call("log_mel", {"spectrum": np.zeros((2, 6)), "filters": np.ones((2, 2))})


@kind("LogMelBackward", "gradients by spectrum and filters; fewer filters than bins")
def _log_mel_backward(rng: Any) -> Iterator[Item]:
    of = {"spectrum": normal(rng, 5, 14), "filters": abs(normal(rng, 3, 6))}
    yield Gradient("log_mel", of, ("spectrum", "filters"))


@kind("WelchPeaks", "one segment, all bins, equal powers")
def _welch(rng: Any) -> Iterator[Item]:
    for segments, k in ((1, 1), (3, 4), (3, 7)):
        yield Call("welch_peaks", {"spectra": normal(rng, 6, 14), "segments": segments, "k": k})
    yield Call("welch_peaks", {"spectra": np.ones((2, 8), np.float32), "segments": 2, "k": 3})


# -- splats ---------------------------------------------------------------------------------------
SPLATS = ("positions", "scales", "rotations", "opacities", "colours")


def _scene(count: int, harmonics: int = 0) -> dict[str, Any]:
    given = splat_cases.scene(SEED, count, 19, 17, harmonics)
    of = dict(zip((*SPLATS, "view", "intrinsics"), given, strict=True))
    return {**of, "width": 19, "height": 17}


@kind("GaussianSplatPrepare", "splats behind the camera, no splat; harmonics up to degree 3")
def _prepare(rng: Any) -> Iterator[Item]:
    for count, harmonics in ((0, 0), (7, 0), (9, 16)):
        yield Call("splat_prepare", _scene(count, harmonics))


@kind("GaussianSplatRasterize", "tiles of both sizes, borders, a limit of splats, no splat")
def _rasterize(rng: Any) -> Iterator[Item]:
    for count, tile, how in ((0, 16, {}), (9, 16, {}), (30, 8, {"max_splat_steps": 2})):
        given = {**_scene(count), "tile_size": tile}
        of = {name: given[name] for name in ("width", "height", "tile_size")}
        points, depths, boxes = reference.splat_prepare(**given)
        lists = reference.splat_sort(depths, boxes, **of)
        names = ("points", "tiles", "splats", "places", "ends", "order")
        arrays = dict(zip(names, (points, *lists[:5]), strict=True))
        yield Call("splat_rasterize", {**arrays, **of, **how})


@kind("GaussianSplatRender", "one splat; a background")
def _render(rng: Any) -> Iterator[Item]:
    yield Call("splat_render", _scene(1))
    yield Call("splat_render", {**_scene(12), "background": splat_cases.BACKGROUND})


@kind("GaussianSplatRenderBackward", "gradients of splats, coefficients and background")
def _render_backward(rng: Any) -> Iterator[Item]:
    of = {**_scene(12, 4), "background": splat_cases.BACKGROUND}
    yield Gradient("splat_render", of, (*SPLATS, "background"), differences=False)


# -- others ---------------------------------------------------------------------------------------
@kind("UmapKnn", "one neighbour, all points")
def _knn(rng: Any) -> Iterator[Item]:
    for k in (1, 4, 11):
        yield Call("umap_knn", {"x": normal(rng, 11, 5), "k": k})


@kind("GroupLimitedGate", "one group, experts of one group alone")
def _gate(rng: Any) -> Iterator[Item]:
    of = {"logits": normal(rng, 5, 12), "k": 2, "scoring": "sigmoid", "bias": normal(rng, 12)}
    for groups, top in ((1, 1), (4, 2), (4, 1)):
        yield Call("moe_router", {**of, "groups": groups, "top_groups": top, "normalize": True})


# -- tests ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", KINDS)
def test_step(name: str) -> None:
    for item in KINDS[name].run():
        item.check()


def test_the_page_lists_them() -> None:
    made = tool()
    text = made.PAGE.read_text(encoding="utf-8")
    assert text == made.page(KINDS), "python tools/graph_steps.py"


def tool() -> ModuleType:
    """The module tools/graph_steps.py."""
    path = Path(__file__).parents[1] / "tools" / "graph_steps.py"
    spec = importlib.util.spec_from_file_location("graph_steps", path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


# -- mistakes that graph backends have made -------------------------------------------------------
@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
def test_half_products_do_not_ignore_the_batch(dtype: Any) -> None:
    rng = np.random.default_rng(SEED)
    a, b = normal(rng, 2, 3, 5, 17, dtype=dtype), normal(rng, 2, 3, 17, 7, dtype=dtype)
    got = ptxgen.matmul(a, b)
    for at in np.ndindex(2, 3):
        assert not difference(got[at], ptxgen.matmul(a[at], b[at]))
    assert len({got[at].tobytes() for at in np.ndindex(2, 3)}) == 6


def test_streams_wait_for_readers_and_for_writers() -> None:
    """Read after write, write after read and write after write order steps."""
    read, write = (Touch(0, 0, 64, written) for written in (False, True))
    assert before([[write], [read], [write], [write]], [0]) == [set(), {0}, {0, 1}, {2}]
    assert before([[read], [write]], [0]) == [set(), {0}]
    x, y = (normal(np.random.default_rng(SEED), 64, 64) for _ in range(2))

    def function(x: Any, y: Any) -> Any:
        found = ptxgen.softmax(x)
        f.exp(y, out=x)  # after softmax has read x
        return found, ptxgen.linear(y, y, layout="kn")

    mine, expected = x.copy(), ptxgen.softmax(x)
    captured = ptxgen.capture(function, mine, y, streams=4)
    for got in (captured(mine, y)[0],):
        assert not difference(got, expected)
    assert not difference(mine, f.exp(y))


def test_what_needs_the_host_is_refused_when_it_is_captured() -> None:
    """So no step of a program runs on the host, early, late, or only when it is captured."""
    x = normal(np.random.default_rng(SEED), 3, 5)
    for function in (
        lambda x: f.mul(x, float(x[0, 0])),
        lambda x: f.exp(x) if f.gt(x, 0.0) else x,
        lambda x: np.exp(x),
    ):
        with pytest.raises(TraceError):
            ptxgen.capture(function, x)


def test_fusion_keeps_every_output() -> None:
    def function(x: Any, w: Any) -> Any:
        y = f.add(x, 1.0)
        z = f.exp(y)
        product = ptxgen.linear(z, w, layout="kn")
        return y, z, product, f.relu(product), ptxgen.softmax(z), f.add(y, z)

    rng = np.random.default_rng(SEED)
    x, w = normal(rng, 5, 7), normal(rng, 7, 3)
    captured = ptxgen.capture(function, x, w, passes=graph.fewer)
    for got, expected in zip(captured(x, w), function(x, w), strict=True):
        assert not difference(got, expected)


def test_an_active_extent_is_not_scaled_by_a_count() -> None:
    """A capture of 5 rows of 3 heads, run with fewer: steps take as many rows, or heads of rows, as
    are active. What is behind the last is neither read nor written.
    """
    x = normal(np.random.default_rng(SEED), 5, 3, 7)

    def function(x: Any, seen: Any) -> Any:
        found = ptxgen.softmax(x)
        f.add(seen, found, out=seen)
        return found, ptxgen.sum(x, axis=0)

    captured = ptxgen.capture(function, x, np.zeros_like(x), extent=0)
    for rows in (4, 1):
        given, seen = x.copy(), np.zeros_like(x)
        given[rows:] = np.nan
        got = captured(given, seen, extent=rows)
        expected = function(x[:rows].copy(), np.zeros_like(x[:rows]))
        for one, other in zip((*got, seen[:rows]), (*expected, expected[0]), strict=True):
            assert one.shape == other.shape and not difference(one, other)
        assert not seen[rows:].any()
        (softmax, _, _) = captured.at(rows).program.steps
        assert dict(softmax.problem.values)["ROWS"] == 3 * rows


def test_layer_norm_without_beta_adds_nothing() -> None:
    rng = np.random.default_rng(SEED)
    x, gamma = normal(rng, 3, 19), normal(rng, 19)
    got = ptxgen.layer_norm(x, gamma)
    assert not difference(got, ptxgen.layer_norm(x, gamma, np.zeros(19, "f4")))
    assert not formulas.judge("layer_norm", {"x": x, "weight": gamma}, got)


def test_a_cast_rounds_and_is_no_alias() -> None:
    def function(x: Any) -> Any:
        half = f.cast(x, "float16")
        return f.cast(half, "float32"), f.cast(x, "float32")

    x = normal(np.random.default_rng(SEED), 33)
    kept = x.copy()
    captured = ptxgen.capture(function, x, passes=graph.fewer)
    rounded, same = captured(x)
    x[:] = 7
    assert not difference(rounded, kept.astype(np.float16).astype(np.float32))
    assert not difference(same, kept) and (rounded != kept).any()


def test_unknown_names_and_wrong_lengths_are_refused() -> None:
    x = normal(np.random.default_rng(SEED), 3, 5)
    b = graph.Builder("network", device="cpu")
    node = b.input("x", (3, 5), "float32")
    other = graph.Builder("another", device="cpu")
    one, two = other.input("x", (3, 5), "float32"), other.input("y", (3, 4), "float32")
    for wrong, error, text in (
        (lambda: b.call("soft_max", node), OptionError, "there is no operation 'soft_max'"),
        (lambda: b.input("x", (3, 5), "float32"), TraceError, "an input is named 'x'"),
        (lambda: b.softmax(node, axes=1), TypeError, "axes"),
        (lambda: other.add(one, two), ShapeError, r"y has shape \[3, 4\]"),
        (lambda: b.input("z", (3,), "float33"), DtypeError, "float33"),
        (lambda: ptxgen.softmax(x, axes=1), (TypeError, PtxgenError), "axes"),
    ):
        with pytest.raises(error, match=text):
            wrong()
    b.output(b.softmax(node))
    captured = ptxgen.capture(b.program())
    for arrays in ((), (x, x), (x[:2],), (x[:, :4],), (x.astype(np.float16),)):
        with pytest.raises((PtxgenError, TypeError)):
            captured(*arrays)
    assert not difference(captured(x), ptxgen.softmax(x))
