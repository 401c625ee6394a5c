"""Random calls of every public operation: valid ones with oracle and formula, and bad ones.

A call is an operation's name and its arguments by name. :func:`valid` draws one that the operation
takes, with NumPy scalars, 0-d arrays, Python numbers, strided, negative, offset and read-only
arrays among its arguments. :func:`bad` spoils one argument of a valid call. What comes of a call is
judged by :func:`judge`: a valid one has the oracle's bits; a bad one is refused by an error of
ptxgen that names the argument, or is no bad one, as the oracle takes it, too, and gives the same.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial, wraps
from math import prod
from random import Random
from typing import Any

import formulas
import numpy as np
import splat_cases
from bits import NUMPY, difference, operand

import ptxgen
from ptxgen import functions, graph, layout, reference
from ptxgen.autograd import operation as watched_operation
from ptxgen.errors import DtypeError, FormulaError, PtxgenError, TraceError
from ptxgen.ops import OPERATIONS
from ptxgen.ops.fft_functions import ROWS
from ptxgen.ops.pointwise import Pointwise, short_name
from ptxgen.program.description import Backward
from ptxgen.program.interpret import Interpreter, derived
from ptxgen.program.trace import Traced

FLOATS = ("f32", "bf16", "f16", "f64")
KINDS = {**NUMPY, "i32": np.dtype("i4"), "i64": np.dtype("i8"), "bool": np.dtype("?")}

RULED = [
    name
    for name, row in ptxgen.quantized.FORMATS.items()
    if row.quantize == "absmax" and row.encoding in (None, "signed")
]
"""Formats that weights are quantized to by their largest magnitudes, of integers or codebooks."""
UNTRACED = {"int4.pack", "int4.unpack", "quantized.dequantize", "quantized.quantize"}
"""Operations that a framework computes where its arrays are: they are no steps of programs."""


@dataclass(frozen=True)
class Call:
    """A call of an operation: ``given`` arguments by name; ``spoiled``: the bad one, and
    ``how``.
    """

    name: str
    given: dict[str, Any]
    spoiled: str = ""
    how: str = ""

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={_shown(value)}" for name, value in self.given.items())
        return f"{self.name}({shown})" + (f"  # {self.spoiled}: {self.how}" if self.how else "")


@dataclass(frozen=True)
class Operation:
    """An operation: its function, its oracle, and a function that draws arguments."""

    function: Callable[..., Any]
    oracle: Callable[..., Any]
    draw: Callable[[Draw], dict[str, Any]]


class Draw:
    """Random source from which arguments of calls are drawn."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.numpy = np.random.default_rng(seed)
        self.calm = self.random.random() < 0.6
        """Whether all numbers are ordinary ones."""

    def size(self, most: int = 40, least: int = 0) -> int:
        """Draws a size, mostly small: odd and round ones, now and then 0."""
        found = self.random.choice((1, 2, 3, 5, 7, 8, 16, 17, 31, 32, 33, 40, 0))
        return max(min(found, most), least)

    def shape(self, rank: int, most: int = 12) -> tuple[int, ...]:
        return tuple(self.size(most) for _ in range(rank))

    def one(self, *of: Any) -> Any:
        return self.random.choice(of)

    def some(self, name: str, value: Any, chance: float = 0.4) -> dict[str, Any]:
        """Draws an optional argument, which is mostly left out."""
        return {name: value() if callable(value) else value} if self.maybe(chance) else {}

    def maybe(self, chance: float = 0.5) -> bool:
        return self.random.random() < chance

    def array(self, shape: tuple[int, ...], dtype: str, scalars: bool = True) -> Any:
        """Draws an array of ``dtype`` with any layout; without dimensions perhaps a NumPy
        scalar.
        """
        if dtype == "bool":
            found = self.numpy.random(shape) < 0.5
        elif dtype in ("c64", "c128"):
            parts = self.numpy.standard_normal((2, *shape))
            return self.placed((parts[0] + 1j * parts[1]).astype(f"c{8 if dtype == 'c64' else 16}"))
        elif dtype.startswith("i"):
            found = self.numpy.integers(-9, 10, shape).astype(KINDS[dtype])
        else:
            kind = self.one("normal", "wide", "special") if shape and not self.calm else "normal"
            found = np.asarray(operand(self.numpy, shape or (1,), kind, dtype)).reshape(shape)
        return self.placed(np.asarray(found, KINDS[dtype]), scalars)

    def placed(self, found: np.ndarray, scalars: bool = True) -> Any:
        """Returns an array of the same values with random strides, offset and writeability."""
        if not found.shape:
            return found[()] if scalars and self.maybe() else found
        how = self.one("plain", "plain", "steps", "turned", "back", "offset", "locked")
        if how == "steps":
            wide = np.zeros([2 * n for n in found.shape], found.dtype)
            wide[tuple(slice(None, None, 2) for _ in found.shape)] = found
            found = wide[tuple(slice(None, None, 2) for _ in found.shape)]
        elif how == "turned":
            found = np.ascontiguousarray(found.T).T
        elif how == "back":
            found = np.ascontiguousarray(found[::-1])[::-1]
        elif how == "offset":
            flat = np.zeros(found.size + 1, found.dtype)
            flat[1:] = found.reshape(-1)
            found = flat[1:].reshape(found.shape)
        elif how == "locked":
            found = found.copy()
            found.flags.writeable = False
        return found

    def indices(self, shape: tuple[int, ...], size: int) -> Any:
        dtype = self.one("i32", "i64")
        found = self.numpy.integers(0, max(size, 1), shape).astype(KINDS[dtype])
        return self.placed(found if size else found[:0] if shape else found)

    def axis(self, rank: int) -> int:
        return self.random.randrange(-rank, rank)


# -- what is drawn ----------------------------------------------------------------------------
def _product(d: Draw) -> tuple[str, int, int, int]:
    return d.one(*FLOATS), d.size(20), d.size(20), d.size(40)


def _linear(d: Draw) -> dict[str, Any]:
    dtype, m, n, k = _product(d)
    how = d.one("kn", "nk")
    given = {
        "x": d.array((*d.one((m,), (m, 2), ()), k), dtype),
        "w": d.array((k, n) if how == "kn" else (n, k), dtype),
        "layout": how,
    }
    given |= d.some("bias", lambda: d.array((n,), dtype))
    if dtype != "f64":
        given |= d.some("activation", d.one("relu", "gelu", "gelu_tanh", "silu", None))
    if dtype in ("bf16", "f16"):
        given |= d.some("out_dtype", "float32") | d.some("tier", d.one("simt", "tc", "auto"))
    return given


def _dgrad(d: Draw) -> dict[str, Any]:
    dtype, m, n, k = _product(d)
    how = d.one("kn", "nk")
    w = d.array((k, n) if how == "kn" else (n, k), dtype)
    return {"dy": d.array((m, n), dtype), "w": w, "layout": how}


def _wgrad(d: Draw) -> dict[str, Any]:
    dtype, m, n, k = _product(d)
    given = {"x": d.array((m, k), dtype), "dy": d.array((m, n), dtype)}
    return given | d.some("chain", True) | {"layout": d.one("kn", "nk")}


def _matmul(d: Draw) -> dict[str, Any]:
    dtype, m, n, k = _product(d)
    ta, tb = d.maybe(), d.maybe()
    batch = d.one((), (), (2,), (3, 2))
    return {
        "a": d.array((*batch, *((k, m) if ta else (m, k))), dtype),
        "b": d.array((*d.one(batch, ()), *((n, k) if tb else (k, n))), dtype),
        "transpose_a": ta,
        "transpose_b": tb,
        **d.some("bias", lambda: d.array((n,), dtype)),
        **(d.some("activation", d.one("relu", "gelu", "silu")) if dtype != "f64" else {}),
    }


def _triangular(d: Draw) -> dict[str, Any]:
    dtype, n, batch = d.one("f32", "f64"), d.size(40), d.one((), (), (2,), (3, 2))
    return {
        "a": d.array((*batch, n, n), dtype),
        "b": d.array((*d.one(batch, ()), n, d.size(40)), dtype),
        **d.some("upper", True),
        **d.some("unitriangular", True),
    }


def _fft(d: Draw) -> dict[str, Any]:
    x = d.array((*d.one((), (2,), (3, 2), (0,)), 2 * d.size(40, 1)), d.one("f32", "f64"))
    norm = d.some("norm", d.one("backward", "ortho", "forward"))
    return {"x": x, **d.some("inverse", True), **norm}


def _reduction(name: str) -> Callable[[Draw], dict[str, Any]]:
    def draw(d: Draw) -> dict[str, Any]:
        rank = d.one(1, 2, 2, 3)
        dtypes = FLOATS
        if name in ("sum", "prod"):
            dtypes = (*FLOATS, "i32", "i64", "bool")
        elif name[:3] in ("ama", "ami", "arg"):
            dtypes = (*FLOATS, "i32", "i64")
        shape = tuple(d.size(20, 1) for _ in range(rank))
        given = {"x": d.array(shape, d.one(*dtypes))}
        axis = d.one(None, d.axis(rank), rank - 1, 0, -1)
        if name[:3] != "arg" and d.maybe(0.2):
            axis = tuple(d.random.sample(range(rank), d.random.randrange(1, rank + 1)))
        given |= d.some("axis", axis, 0.8) | d.some("keepdims", True, 0.2)
        if name in ("var", "std"):
            given |= d.some("correction", d.one(0, 1, 0.5, 2))
        return given

    return draw


def _along(d: Draw) -> dict[str, Any]:
    rank = d.one(1, 2, 3)
    given = {"x": d.array(tuple(d.size(20, 1) for _ in range(rank)), d.one(*FLOATS))}
    return given | d.some("axis", d.axis(rank))


def _last(d: Draw) -> dict[str, Any]:
    return {"x": d.array((*d.shape(d.one(0, 1, 2)), d.size()), d.one(*FLOATS))}


def _cumsum(d: Draw) -> dict[str, Any]:
    dtype = d.one(*FLOATS, "i32", "i64")
    given = {"x": d.array((*d.shape(d.one(0, 1, 2)), d.size()), dtype)}
    return given | d.some("exclusive", True) | d.some("reverse", True)


def _logcumsumexp(d: Draw) -> dict[str, Any]:
    return _last(d) | d.some("exclusive", True) | d.some("reverse", True)


def _selective_scan(d: Draw) -> dict[str, Any]:
    dtype, batch, tokens, channels = d.one("f32", "bf16", "f16"), *d.shape(2, 5), d.size()
    rows, own = (batch, tokens, channels), (channels, d.one(1, 4, 16, 20))
    shared = (batch, tokens, own[1])
    given = {name: d.array(rows, dtype) for name in ("x", "delta")}
    given |= {"A": d.array(own, "f32"), "B": d.array(shared, dtype), "C": d.array(shared, dtype)}
    given |= d.some("D", lambda: d.array((channels,), "f32"))
    given |= d.some("z", lambda: d.array(rows, dtype))
    given |= d.some("delta_bias", lambda: d.array((channels,), "f32"))
    given |= d.some("state", lambda: d.array((batch, *own), "f32"))
    return given | d.some("softplus", True) | d.some("return_state", True)


def _linear_recurrence(d: Draw) -> dict[str, Any]:
    dtype, rows = d.one("f32", "bf16", "f16"), (*d.shape(2, 5), d.size())
    given = {name: d.array(rows, dtype) for name in "ab"}
    given |= d.some("state", lambda: d.array(rows[::2], "f32"))
    return given | d.some("return_state", True)


def _attention(d: Draw) -> dict[str, Any]:
    dtype, batch, heads, group = d.one("bf16", "bf16", "f16", "f32"), d.one(1, 2), 2, d.one(1, 3)
    queries, keys = d.one(1, 3, 17), d.one(0, 1, 5, 40, 140)
    head, head_v = d.one(64, 64, 24), d.one(64, 64, 20)
    turned = d.maybe(0.7)

    def shape(tokens: int, heads: int, size: int) -> tuple[int, ...]:
        return (batch, heads, tokens, size) if turned else (batch, tokens, heads, size)

    given = {
        "q": d.array(shape(queries, heads * group, head), dtype),
        "k": d.array(shape(keys, heads, head), dtype),
        "v": d.array(shape(keys, heads, head_v), dtype),
    }
    if not turned:
        given["layout"] = "bshd"
    counts = {"lengths": keys, "starts": keys, "query_lengths": queries}
    for name, most in counts.items():
        drawn = d.numpy.integers(0, most + 1, batch).astype(np.int32)
        given |= d.some(name, drawn, 0.2)
    scores = d.one((queries, keys), (batch, 1, queries, keys), (heads * group, 1, keys))
    given |= d.some("mask", lambda: d.array(scores, "bool"), 0.2)
    given |= d.some("bias", lambda: d.array(scores, d.one(dtype, "f32")), 0.2)
    for name in ("sinks", "slopes"):
        given |= d.some(name, lambda: d.numpy.random(heads * group).astype("f4"), 0.2)
    given |= d.some("causal", True) | d.some("window", d.one(1, 7), 0.2)
    given |= d.some("scale", d.one(0.5, -1.0), 0.2) | d.some("softcap", 2.0, 0.2)
    return given | d.some("return_lse", True)


def _attention_grad(d: Draw) -> dict[str, Any]:
    given = _attention(d)
    given.pop("return_lse", None)
    q, v = given["q"], given["v"]
    shape = *q.shape[:-1], v.shape[-1]
    dtype = next(name for name, kind in KINDS.items() if kind == q.dtype)
    given |= {name: d.array(shape, dtype) for name in ("do", "o")}
    given["lse"] = d.array(shape[:-1], "f32")
    for name in ("bias", "sinks"):
        if name in given:
            given |= d.some(f"{name}_grad", True)
    return given


def _recurrent(name: str) -> Callable[[Draw], dict[str, Any]]:
    def draw(d: Draw) -> dict[str, Any]:
        dtype, rows, cols = d.one("bf16", "f16", "f32"), d.one(8, 24), d.one(8, 16)
        groups, tokens, lead = d.one(1, 2), d.one(0, 1, 9), d.one((), (2,))
        heads, wide = groups * d.one(1, 2), d.one("f32", dtype)
        keys, own = (*lead, tokens, groups, rows), (*lead, tokens, heads)
        v = d.array((*own, cols), dtype)
        if name == "gated_delta_rule":
            given = {"q": d.array(keys, dtype), "k": d.array(keys, dtype), "v": v}
            given |= {"g": -np.abs(d.array(own, wide)), "beta": d.array(own, wide)}
            given |= d.some("scale", d.one(0.5, 1)) | d.some("l2_norm", True)
            state = heads, rows, cols
        else:
            given = {"x": v, "dt": d.array(own, wide), "a": -np.abs(d.array((heads,), wide))}
            given |= {"b": d.array(keys, dtype), "c": d.array(keys, dtype)}
            for each in ("d", "dt_bias"):
                given |= d.some(each, lambda: d.array((heads,), wide))
            given |= d.some("softplus", True)
            state = heads, cols, rows
        given |= d.some("state", lambda: d.array((*lead, *state), "f32"))
        return given | d.some("return_state", True)

    return draw


def _losses(d: Draw) -> dict[str, Any]:
    rows, n = d.one((), (), (3,), (2, 5)), d.size(40, 1)
    target = d.indices(rows, n)
    given = {"x": d.array((*rows, n), d.one(*FLOATS)), "target": target}
    given |= d.some("reduction", d.one("none", "sum", "mean"))
    given |= d.some("label_smoothing", d.one(0.1, 0.5, 0.0)) | d.some("softcap", 30.0)
    return given | d.some("z_loss", 0.25) | d.some("ignore_index", d.one(-100, 0))


def _fused(d: Draw) -> dict[str, Any]:
    dtype, m, n, k = d.one(*FLOATS), d.size(20), d.size(40, 1), d.size(20)
    given = {
        "x": d.array((m, k), dtype),
        "w": d.array((n, k), dtype),
        "target": d.indices((m,), n),
    }
    given |= d.some("bias", lambda: d.array((n,), dtype))
    given |= d.some("reduction", d.one("none", "sum", "mean")) | d.some("softcap", 30.0)
    given |= d.some("out_dtype", NUMPY[dtype].name, 0.3)
    return given | d.some("chunk", d.one(1, 7, 16))


def _norm(*vectors: str) -> Callable[[Draw], dict[str, Any]]:
    def draw(d: Draw) -> dict[str, Any]:
        dtype, n = d.one(*FLOATS), d.size(40, 1)
        shape = (*d.shape(d.one(0, 1, 2)), n)
        given = {"x": d.array(shape, dtype)}
        for name in vectors:
            given |= d.some(name, lambda: d.array((n,), dtype), 0.6)
        given |= d.some("residual", lambda: d.array(shape, dtype))
        if "residual" in given:
            given |= d.some("residual_bias", lambda: d.array((n,), dtype))
        return given | d.some("eps", d.one(1e-6, 1e-3, 0.0))

    return draw


def _rms_norm(d: Draw) -> dict[str, Any]:
    given = _norm("weight", "bias")(d) | d.some("rounded", True)
    return given | (d.some("offset", d.one(1.0, -0.3)) if "weight" in given else {})


def _group_norm(d: Draw) -> dict[str, Any]:
    dtype, groups = d.one(*FLOATS), d.one(1, 2, 3)
    channels = groups * d.one(1, 2, 5)
    shape = (d.size(4), channels, *d.one((), (3,), (2, 5)))
    given = {"x": d.array(shape, dtype), "groups": groups}
    for name in ("weight", "bias"):
        given |= d.some(name, lambda: d.array((channels,), dtype))
    return given


def _channels(*vectors: str, train: bool = False) -> Callable[[Draw], dict[str, Any]]:
    """Returns a function that draws norms over channels. ``vectors``: arguments always given."""

    def draw(d: Draw) -> dict[str, Any]:
        dtype, channels = d.one(*FLOATS), d.one(1, 2, 5)
        shape = (d.size(4, 2 * train), channels, *d.one((), (3,), (2, 5)))
        given = {"x": d.array(shape, dtype)}
        for name in vectors:
            given[name] = d.array((channels,), dtype)
        for name in ("weight", "bias", *(_RUNNING if train else ())):
            given |= d.some(name, lambda: d.array((channels,), dtype))
        return given | d.some("eps", d.one(1e-6, 1e-3)) | (d.some("momentum", 0.3) if train else {})

    return draw


def _grouped(d: Draw) -> dict[str, Any]:
    dtype, layout = d.one("f32", "bf16", "f16"), d.one("kn", "nk")
    m, n, k, groups = d.size(), d.size(), d.size(), d.size(8, 1)
    ends = np.sort(d.numpy.integers(0, m + 1, groups)).astype(np.int32)
    shape = (groups, k, n) if layout == "kn" else (groups, n, k)
    given = {"x": d.array((m, k), dtype), "w": d.array(shape, dtype), "offsets": ends}
    given |= d.some("bias", lambda: d.array((groups, n), dtype)) | {"layout": layout}
    return given | d.some("activation", d.one("relu", "gelu", "silu"))


def _grouped_wgrad(d: Draw) -> dict[str, Any]:
    given = _grouped(d)
    wide = given["w"].shape[2 if given["layout"] == "kn" else 1]
    dtype = {np.dtype("f4"): "f32", np.dtype("f2"): "f16"}.get(given["x"].dtype, "bf16")
    dy = d.array((given["x"].shape[0], wide), dtype)
    return {"x": given["x"], "dy": dy, "offsets": given["offsets"], "layout": given["layout"]}


def _dispatch(d: Draw) -> dict[str, Any]:
    tokens, each, count = d.size(), d.one(1, 2, 3), d.size(9, 3)
    x = d.array((tokens, d.size(20)), d.one("f32", "bf16", "f16", "i32"))
    return {"x": x, "experts": d.indices((tokens, each), count), "count": count}


def _combine(d: Draw) -> dict[str, Any]:
    tokens, each, dtype = d.size(20), d.one(1, 2, 3), d.one("f32", "bf16", "f16")
    places = d.numpy.permutation(tokens * each).reshape(tokens, each)
    weights = d.array((tokens, each), d.one("f32", dtype))
    return {"y": d.array((tokens * each, d.size(20)), dtype), "places": places, "weights": weights}


def _router(d: Draw) -> dict[str, Any]:
    groups = d.one(1, 1, 2, 4)
    experts, top = groups * d.one(2, 4), d.random.randint(1, groups)
    given = {"logits": d.array((d.size(), experts), d.one("f32", "bf16", "f16"))}
    given |= {"k": 2} | d.some("bias", lambda: d.array((experts,), "f32"))
    given |= {"scoring": d.one("softmax", "sigmoid"), "normalize": d.maybe(), "scale": 2.5}
    return given | ({"groups": groups, "top_groups": top} if groups > 1 else {})


class Convolution:
    """Sizes of a drawn convolution, and its stride, padding and dilation."""

    def __init__(self, d: Draw) -> None:
        rank = d.one(1, 2, 2, 3)
        self.d, self.dtype, self.last = d, d.one("f32", "bf16", "f16", "f64"), d.maybe()
        self.count, self.groups = d.one(1, 2, 3), d.one(1, 1, 1, 2, 3)
        self.channels = self.groups * d.one(1, 2, 3, 8)
        self.outs = self.groups * d.one(1, 2, 4)
        self.taps = tuple(d.one(1, 2, 3) for _ in range(rank))
        self.how = {
            "stride": tuple(d.one(1, 1, 2, 3) for _ in range(rank)),
            "padding": tuple(d.one(0, 1, 2) for _ in range(rank)),
            "dilation": tuple(d.one(1, 1, 2) for _ in range(rank)),
        }
        places = zip(self.taps, *self.how.values(), strict=True)
        several = [(far * (taps - 1) + 1, step, pad) for taps, step, pad, far in places]
        more = d.one(0, 1, 3)
        self.image = tuple(max(wide - 2 * pad, 1) + more for wide, _, pad in several)
        triples = zip(self.image, several, strict=True)
        self.windows = tuple((n + 2 * pad - wide) // s + 1 for n, (wide, s, pad) in triples)
        self.options = self.how | {"groups": self.groups}
        self.options |= {"layout": "channels_last"} if self.last else {}

    def array(self, lead: int, image: tuple[int, ...], channels: int) -> Any:
        shape = (lead, *image, channels) if self.last else (lead, channels, *image)
        return self.d.array(shape, self.dtype)

    def x(self) -> Any:
        return self.array(self.count, self.image, self.channels)

    def w(self) -> Any:
        return self.array(self.outs, self.taps, self.channels // self.groups)

    def dy(self) -> Any:
        return self.array(self.count, self.windows, self.outs)


def _ended(d: Draw, c: Convolution, given: dict[str, Any], channels: int) -> dict[str, Any]:
    given |= d.some("bias", lambda: d.array((channels,), c.dtype)) | c.options
    if c.dtype != "f64":
        given |= d.some("activation", d.one("relu", "gelu", "gelu_tanh", "silu"))
    return given


def _conv(d: Draw) -> dict[str, Any]:
    c = Convolution(d)
    return _ended(d, c, {"x": c.x(), "w": c.w()}, c.outs)


def _conv_transpose(d: Draw) -> dict[str, Any]:
    c = Convolution(d)
    given = _ended(d, c, {"x": c.dy(), "w": c.w()}, c.channels)
    size = [
        (n - 1) * s - 2 * p + far * (taps - 1) + 1
        for n, taps, s, p, far in zip(c.windows, c.taps, *c.how.values(), strict=True)
    ]
    if min(size) < 1:
        given["padding"] = 0
    steps = zip(c.how["stride"], c.how["dilation"], strict=True)
    return given | d.some("output_padding", tuple(max(pair) - 1 for pair in steps))


def _conv_dgrad(d: Draw) -> dict[str, Any]:
    c = Convolution(d)
    return {"dy": c.dy(), "w": c.w(), "image": c.image} | c.options


def _conv_wgrad(d: Draw) -> dict[str, Any]:
    c = Convolution(d)
    return {"x": c.x(), "dy": c.dy(), "taps": c.taps} | c.options | d.some("chain", True)


def _embedding(d: Draw) -> dict[str, Any]:
    size = d.size(20, 1)
    weight = d.array((size, d.size(20)), d.one(*FLOATS, "i32", "i64"))
    return {"weight": weight, "indices": d.indices(d.shape(d.one(0, 1, 2)), size)}


def _gather(d: Draw) -> dict[str, Any]:
    shape = tuple(d.size(9, 1) for _ in range(d.one(1, 2, 3)))
    axis = d.axis(len(shape))
    x = d.array(shape, d.one(*FLOATS, "i32"))
    return {"x": x, "indices": d.indices(d.shape(d.one(0, 1, 2)), shape[axis]), "axis": axis}


def _embedding_backward(d: Draw) -> dict[str, Any]:
    rows, lead = d.size(20, 1), d.shape(d.one(0, 1, 2))
    dy = d.array((*lead, d.size(20)), d.one(*FLOATS, "i32"))
    return {"dy": dy, "indices": d.indices(lead, rows), "rows": rows}


def _index_add(d: Draw) -> dict[str, Any]:
    dtype, rows, count, width = d.one(*FLOATS, "i32"), d.size(9, 1), d.size(20), d.size(20)
    return {
        "x": d.array((rows, width), dtype),
        "indices": d.indices((count,), rows),
        "source": d.array((count, width), dtype),
    }


def _scatter_add(d: Draw) -> dict[str, Any]:
    dtype, shape = d.one(*FLOATS, "i32"), [d.size(9, 1) for _ in range(d.one(1, 2, 3))]
    axis = d.axis(len(shape))
    other = list(shape)
    other[axis] = d.size(9)
    return {
        "x": d.array(tuple(shape), dtype),
        "indices": d.indices(tuple(other), shape[axis]),
        "source": d.array(tuple(other), dtype),
        "axis": axis,
    }


def _roll(d: Draw) -> dict[str, Any]:
    shape = d.shape(d.one(1, 2, 3))
    axis = d.axis(len(shape))
    x = d.array(shape, d.one(*FLOATS, "i32", "i64", "bool"))
    return {"x": x, "shifts": d.random.randrange(-20, 20), "axis": axis}


def _topk(d: Draw) -> dict[str, Any]:
    n = d.size(40, 1)
    x = d.array((*d.shape(d.one(0, 1, 2)), n), d.one("f32", "bf16", "f16", "i32"))
    return {"x": x, "k": d.random.randrange(n + 1)} | d.some("largest", False)


def _sorted(d: Draw) -> dict[str, Any]:
    shape = d.shape(d.one(1, 2, 3))
    x = d.array(shape, d.one(*FLOATS, "i32", "i64", "bool"))
    given = {"x": x} | d.some("axis", d.axis(len(shape)))
    return given | d.some("descending", True)


def _searchsorted(d: Draw) -> dict[str, Any]:
    lead, dtype = d.shape(d.one(0, 0, 1, 2)), d.one(*FLOATS, "i32", "i64")
    x = reference.sort(d.array((*lead, d.size()), dtype))[0]
    shape = (*lead, d.size()) if lead else d.shape(d.one(0, 1, 2))
    return {"x": x, "values": d.array(shape, dtype)} | d.some("right", True)


def _bincount(d: Draw) -> dict[str, Any]:
    count, bins = d.size(), d.size(20, 1)
    weights = d.some("weights", lambda: d.array((count,), d.one(*FLOATS, "i32")))
    return {"x": d.indices((count,), bins), "minlength": bins} | weights


def _unique(d: Draw) -> dict[str, Any]:
    x = d.array(d.shape(d.one(1, 2), 9), d.one(*FLOATS, "i32", "bool"))
    return {"x": x, "size": d.size(20)}


def _sample(d: Draw) -> dict[str, Any]:
    lead = d.shape(d.one(0, 1, 2))
    logits = d.array((*lead, d.size(40, 1)), d.one("f32", "bf16", "f16"))
    given = {"logits": logits} | _setting(d, "temperature", lead, "f32", 0.0, 0.5, 1)
    given |= _setting(d, "top_k", lead, "i32", 3, 0, 1)
    given |= _setting(d, "top_p", lead, "f32", 0.5, 1.0)
    given |= _setting(d, "min_p", lead, "f32", 0.3, 0.0, 1)
    given |= _setting(d, "seed", lead, "i64", 0, 7, -3)
    return given | d.some("offset", lambda: d.placed(d.numpy.integers(0, 99, lead), False))


def _setting(
    d: Draw, name: str, lead: tuple[int, ...], dtype: str, *values: float
) -> dict[str, Any]:
    """A setting of rows: a number, or an array with one for each row."""
    if d.maybe():
        return d.some(name, d.one(*values))
    each = np.asarray(d.numpy.choice(values, lead), KINDS[dtype])
    return d.some(name, lambda: d.placed(each, False))


def _token_logprobs(d: Draw) -> dict[str, Any]:
    lead, n = d.shape(d.one(0, 1, 2)), d.size(40, 1)
    given = {"logits": d.array((*lead, n), d.one("f32", "bf16", "f16")), "ids": d.indices(lead, n)}
    return given | _setting(d, "temperature", lead, "f32", 0.0, 0.5, 1, 1.3)


def _wgrads(*rows: str) -> Callable[[Draw], dict[str, Any]]:
    def draw(d: Draw) -> dict[str, Any]:
        dtype, lead, n = d.one(*FLOATS), d.shape(d.one(1, 2)), d.size(20)
        wide = "f64" if dtype == "f64" else "f32"
        given = {name: d.array((*lead, n), dtype) for name in ("dy", "x")}
        return given | {name: d.array(lead, wide, False) for name in rows}

    return draw


def _pointwise(name: str, count: int) -> Callable[[Draw], dict[str, Any]]:
    function = getattr(functions, name)

    def draw(d: Draw) -> dict[str, Any]:
        while True:
            given = drawn(d)
            dtypes = [_short(given[n]) for n in function.arguments]
            try:
                function.formula(tuple(dtypes))
            except (DtypeError, FormulaError):  # not all functions are of f64
                continue
            return given

    def drawn(d: Draw) -> dict[str, Any]:
        dtype = d.one(*_TAKEN.get(name, FLOATS))
        shape = d.shape(d.one(0, 1, 2, 3), 9)
        given: dict[str, Any] = {}
        arrays = 0
        for i, each in enumerate(function.arguments):
            own = "bool" if each == "condition" else dtype
            if own != "bool" and (arrays or i + 1 < count) and name != "where" and d.maybe(0.2):
                number: float = d.one(2, -1, 3)
                given[each] = number if own.startswith("i") or d.maybe(0.3) else number + 0.5
                continue
            arrays += own != "bool" or dtype == "bool"
            part = tuple(1 if d.maybe(0.15) else n for n in shape)
            given[each] = d.array(part[d.one(0, 0, 0, len(shape)) :], own, name != "where")
        return given

    return draw


def _short(value: Any) -> str | None:
    if not isinstance(value, np.ndarray | np.generic):
        return None
    return short_name(value.dtype.name)


_INTEGERS = ("i32", "i64", "bool")
_TAKEN = {
    **{f"bitwise_{how}": _INTEGERS for how in ("and", "or", "xor", "not")},
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "where"), (*FLOATS, "i32", "i64")),
    **dict.fromkeys(("add", "sub", "mul", "neg", "abs"), (*FLOATS, "i32", "i64")),
    **dict.fromkeys(("maximum", "minimum", "clamp"), (*FLOATS, "i32", "i64")),
    "copy": (*FLOATS, "i32", "i64", "bool"),
    **dict.fromkeys(("real", "imag", "conj", "angle"), ("c64", "c128")),
    **dict.fromkeys(("complex", "atan2"), ("f32", "f64")),
    "polar": ("f32",),
}


def _int4(d: Draw) -> dict[str, Any]:
    m, n, k = d.size(20), 2 * d.size(10, 1), 2 * d.size(16, 1)

    def packed(*shape: int) -> Any:
        return d.placed(d.numpy.integers(0, 256, shape).astype(np.uint8))

    given = {"a": packed(m, k // 2), "b": packed(n, k // 2), "dtype": d.one("s4", "u4")}
    return given | d.some("alpha", d.one(0.5, 2)) | d.some("c", lambda: packed(m, n // 2))


def _quantized(d: Draw, n: int, blocks: int) -> Any:
    """A weight of some format."""
    row = ptxgen.quantized.FORMATS[d.one(*RULED)]
    w = d.numpy.standard_normal((n, row.block * blocks)).astype("f4")
    return ptxgen.quantized.quantize(w, row)


def _by_quantized(argument: str) -> Callable[[Draw], dict[str, Any]]:
    def draw(d: Draw) -> dict[str, Any]:
        n, dtype = d.size(9, 1), d.one("f32", "bf16", "f16")
        q = _quantized(d, n, 1)
        return {argument: d.array((d.size(9), q.k if argument == "x" else n), dtype), "q": q}

    return draw


def _quantized_rows(d: Draw) -> dict[str, Any]:
    q = _quantized(d, d.size(9, 1), 1)
    shape = tuple(d.size(5) for _ in range(d.one(0, 1, 2)))
    return {"indices": d.indices(shape, q.n), "q": q} | d.some("dtype", d.one("float32", "float16"))


def _quantized_groups(d: Draw) -> dict[str, Any]:
    m, each, groups = d.size(9), d.size(5, 1), d.size(4, 1)
    q = _quantized(d, each * groups, 1)
    ends = np.sort(d.numpy.integers(0, m + 1, groups)).astype(np.int32)
    dtype = d.one("f32", "bf16", "f16")
    given = {"x": d.array((m, q.k), dtype), "q": q, "ends": ends}
    given |= d.some("bias", lambda: d.array((groups, each), dtype))
    return given | d.some("activation", d.one("relu", "gelu", "silu"))


def _packing(d: Draw) -> dict[str, Any]:
    kind = d.one("s4", "u4")
    low, high = (-8, 8) if kind == "s4" else (0, 16)
    x = d.numpy.integers(low, high, (*d.shape(d.one(0, 1, 2)), 2 * d.size(9)))
    return {"x": d.placed(x.astype(d.one("i1", "i4", "i8"))), "dtype": kind}


def _unpacking(d: Draw) -> dict[str, Any]:
    x = d.numpy.integers(0, 256, (*d.shape(d.one(0, 1, 2)), d.size(9))).astype(np.uint8)
    return {"x": d.placed(x)} | d.some("dtype", d.one("s4", "u4"))


def _weights(d: Draw) -> dict[str, Any]:
    layout, format = d.one("nk", "kn"), d.one(*RULED)
    k = ptxgen.quantized.FORMATS[format].block * d.one(1, 2)
    w = d.array((d.size(9), k), d.one("f32", "bf16", "f16"))
    return {"w": w if layout == "nk" else w.T, "format": format, "layout": layout}


def _arrays(quantize: Any) -> Any:
    """``quantize``, whose results are the arrays of a weight."""

    @wraps(quantize)
    def function(*args: Any, **named: Any) -> Any:
        q = quantize(*args, **named)
        return q.data, q.scales

    return function


def _quantized_oracle(w: Any, format: str, layout: str = "nk") -> Any:
    """Quantized weights: of two codes equally near the lower, by the middles of neighbours."""
    row = ptxgen.quantized.FORMATS[format]
    blocks = np.asarray(w if layout == "nk" else w.T).astype(np.float32).reshape(-1, row.block)
    values = np.array(row.values)
    scales = (abs(blocks).max(-1) / np.float32(values.max()))[:, None]
    order = np.argsort(values)
    middles = scales.astype(np.float64) * (values[order][1:] + values[order][:-1])
    index = order[(2 * blocks.astype(np.float64)[..., None] > middles[:, None]).sum(-1)]
    index = np.where(scales == 0, list(values).index(0), index).astype(np.uint8)
    bits = np.unpackbits(index.reshape(-1, 1), axis=1, bitorder="little")[:, : row.bits]
    return np.packbits(bits.reshape(-1), bitorder="little"), scales[:, 0]


def _dequantizing(d: Draw) -> dict[str, Any]:
    dtype = d.one("float32", "bfloat16", "float16")
    given = {"q": _quantized(d, d.size(9), d.one(1, 2))} | d.some("dtype", dtype)
    return given | d.some("layout", d.one("nk", "kn"))


def _cast_of(d: Draw) -> dict[str, Any]:
    x = d.array(d.shape(d.one(0, 1, 2)), d.one(*FLOATS), scalars=False)
    return {"x": x, "dtype": d.one("float32", "bfloat16", "float16")}


def _cast(x: Any, dtype: Any) -> Any:
    short = short_name(dtype)
    return watched_operation(f"cast_{short}").reference(x, out_dtype=short)


def _narrow(d: Draw) -> dict[str, Any]:
    shape = tuple(d.size(9, 1) for _ in range(d.one(1, 2, 3)))
    axis = d.axis(len(shape))
    start = d.random.randrange(shape[axis] + 1)
    length = d.random.randrange(shape[axis] - start + 1)
    return {"x": d.array(shape, "f32"), "axis": axis, "start": start, "length": length}


def _transpose(d: Draw) -> dict[str, Any]:
    rank = d.one(2, 3)
    return {"x": d.array(d.shape(rank), "f32"), "first": d.axis(rank), "second": d.axis(rank)}


def _expand(d: Draw) -> dict[str, Any]:
    shape = d.shape(2)
    return {"x": d.array(tuple(d.one(n, 1) for n in shape), "f32"), "shape": (2, *shape)}


def _qkv(d: Draw) -> dict[str, Any]:
    heads, few = d.one(1, 2, 4), d.one(1, 2)
    x = np.ascontiguousarray(d.array((*d.shape(d.one(0, 2)), (heads + 2 * few) * 3), "f32"))
    return {"x": x, "heads": heads, "kv_heads": few}


def _parts(x: Any, heads: int, kv_heads: int) -> Any:
    size = x.shape[-1] // (heads + 2 * kv_heads)
    parts = np.split(x, [heads * size, (heads + kv_heads) * size], -1)
    counts = zip(parts, (heads, kv_heads, kv_heads), strict=True)
    return tuple(p.reshape(*x.shape[:-1], count, size) for p, count in counts)


def _contiguous(d: Draw) -> dict[str, Any]:
    return {"x": d.array(d.shape(d.one(0, 1, 2, 3)), d.one(*FLOATS, "i32", "bool"))}


def _complex_numbers(d: Draw) -> dict[str, Any]:
    return {"x": d.array(d.shape(d.one(1, 2, 3)), d.one("c64", "c128"))}


def _pairs(d: Draw) -> dict[str, Any]:
    shape, kind = (*d.shape(d.one(0, 1, 2)), 2), NUMPY[d.one("f32", "f64")]
    return {"x": d.numpy.standard_normal(shape).astype(kind)}


def _concat(d: Draw) -> dict[str, Any]:
    dtype, rank = d.one(*FLOATS, "i64"), d.one(1, 2, 3)
    shape, axis = list(d.shape(rank)), d.axis(rank)
    parts = []
    for _ in range(d.one(1, 2, 3)):
        shape[axis] = d.size(9)
        parts.append(d.array(tuple(shape), dtype))
    return {"arrays": parts, "axis": axis}


def _pad(d: Draw) -> dict[str, Any]:
    shape = d.shape(d.one(1, 2))
    widths = [(d.one(0, 1, 3), d.one(0, 2)) for _ in shape]
    return {"x": d.array(shape, d.one(*FLOATS)), "widths": widths, "value": d.one(0, 2.5)}


def _rope(d: Draw) -> dict[str, Any]:
    dtype, rows, half = d.one(*FLOATS), d.size(9), d.size(9, 1)
    x = d.array((2, rows, 2 * half + d.one(0, 3)), dtype)
    angles = [d.array((rows, half), dtype) for _ in range(2)]
    return {"x": x, "cos": angles[0], "sin": angles[1], "interleaved": d.maybe()}


# -- oracles of what has none in ptxgen.reference -----------------------------------------------
def _as_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **given: function(**given)


def _padded(x: Any, widths: Any, value: float = 0) -> Any:
    if isinstance(value, int) and x.dtype.kind not in "biu":
        value = float(value)  # NumPy has no dtype for large ones
    return np.pad(x, widths, constant_values=np.asarray(value).astype(x.dtype))


def _turned(x: Any, cos: Any, sin: Any, interleaved: bool = False) -> Any:
    x, cos, sin = (np.asarray(each) for each in (x, cos, sin))
    half, found = cos.shape[-1], np.array(x)
    first, second = (
        (slice(0, 2 * half, 2), slice(1, 2 * half, 2))
        if interleaved
        else (slice(0, half), slice(half, 2 * half))
    )
    turn = ptxgen.pointwise(lambda a, b, c, s: (a * c - b * s, b * c + a * s))
    own = {"float32": "f32", "float64": "f64", "bfloat16": "bf16", "float16": "f16"}[x.dtype.name]
    parts = turn.reference(x[..., first], x[..., second], cos, sin, out_dtype=(own, own))
    found[..., first], found[..., second] = parts
    return found


def _row(name: str) -> Operation:
    draw = _reduction(name) if name in _REDUCTIONS else _along
    return Operation(getattr(ptxgen, name), getattr(reference, name), draw)


_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin", "argmax", "argmin", "var", "std")


def _own(name: str, draw: Callable[[Draw], dict[str, Any]]) -> Operation:
    return Operation(getattr(ptxgen, name), getattr(reference, name), draw)


def _moved(name: str, oracle: Callable[..., Any], draw: Any) -> Operation:
    return Operation(getattr(layout, name), oracle, draw)


def _pool(d: Draw, *, mean: bool = False) -> dict[str, Any]:
    rank = d.one(1, 2, 3)
    window = tuple(d.one(1, 2, 3) for _ in range(rank))
    sizes = tuple(d.size(8, k) for k in window)
    given = {"x": d.array((d.size(3), *sizes), d.one(*FLOATS)), "window": window}
    given |= d.some("stride", d.one(1, 2, (1,) * rank))
    given |= d.some("padding", tuple(k // 2 for k in window), 0.7) | d.some("ceil", True)
    if mean:
        given |= {"count_padding": d.maybe()} | d.some("divisor", 3, 0.2)
    return given


def _columns(d: Draw, *, back: bool = False) -> dict[str, Any]:
    rank = d.one(1, 2, 3)
    window = tuple(d.one(1, 2, 3) for _ in range(rank))
    size = tuple(d.size(8, k) for k in window)
    how = d.some("stride", d.one(1, 2, (2,) * rank)) | d.some("padding", d.one(1, 3))
    channels, lead = d.size(3), d.one((), (2,))
    if not back:
        return {"x": d.array((*lead, channels, *size), d.one(*FLOATS)), "window": window, **how}
    stride, padding = (
        formulas._per(how.get(n, v), rank) for n, v in (("stride", 1), ("padding", 0))
    )
    of = zip(size, window, stride, padding, strict=True)
    counts = [(n + 2 * p - k) // s + 1 for n, k, s, p in of]
    shape = (*lead, channels * prod(window), prod(counts))
    return {"x": d.array(shape, d.one(*FLOATS)), "size": size, "window": window, **how}


def _adaptive(d: Draw) -> dict[str, Any]:
    rank = d.one(1, 2, 3)
    size = tuple(d.size(5, 1) for _ in range(rank))
    shape = (d.size(3), *(d.size(8, 1) for _ in size))
    return {"x": d.array(shape, d.one(*FLOATS)), "size": size}


def _resize(d: Draw) -> dict[str, Any]:
    given = _adaptive(d)
    how = d.one({}, {"mode": "nearest"}, {"mode": "linear"})
    return given | how | (d.some("align_corners", True) if how == {"mode": "linear"} else {})


def _images(d: Draw) -> dict[str, Any]:
    return {"x": d.array((*d.one((), (3,)), *d.shape(2, 8)), d.one(*FLOATS))}


def _dropout(d: Draw) -> dict[str, Any]:
    batch, rows, width = d.size(3), d.size(5), d.size(20)
    given = {"x": d.array((batch, rows, width), d.one(*FLOATS))}
    given |= {"seeds": d.array((batch, 1), "i64"), "positions": d.array((rows,), "i64")}
    return given | d.some("p", d.one(0.1, 0.9, 1.0))


def _neighbours(d: Draw) -> dict[str, Any]:
    count = d.size(20, 1)
    x = d.array((count, d.size(12)), d.one("f32", "bf16", "f16"))
    return {"x": x, "k": d.one(1, count)}


# -- splats and spectra ---------------------------------------------------------------------------
def _scene(d: Draw) -> dict[str, Any]:
    """Splats before a camera, and the size of the picture."""
    of = {"width": d.size(24, 1), "height": d.size(24, 1)} | d.some("tile_size", 8)
    count = d.size(12)
    given = [*splat_cases.scene(d.random.randrange(99), count, of["width"], of["height"])]
    names = ("positions", "scales", "rotations", "opacities", "colours", "view", "intrinsics")
    found = {n: d.placed(x) for n, x in zip(names, given, strict=True)}
    if d.maybe(0.3):
        found["colours"] = d.array((count, 4, 3), "f32")
    return found | of | d.some("max_anisotropy", 2.0) | d.some("radius_scale", 2.5)


def _listed(d: Draw) -> dict[str, Any]:
    given = _scene(d)
    of = {n: given[n] for n in ("width", "height", "tile_size") if n in given}
    _, depths, boxes = reference.splat_prepare(**given)
    how = d.some("overflow", "drop") | d.some("max_list_entries", 999)
    return {"depths": d.placed(depths), "boxes": d.placed(boxes)} | of | how


def _rastered(d: Draw) -> dict[str, Any]:
    given = _scene(d)
    of = {n: given[n] for n in ("width", "height", "tile_size") if n in given}
    points, depths, boxes = reference.splat_prepare(**given)
    lists = reference.splat_sort(depths, boxes, **of)
    names = ("points", "tiles", "splats", "places", "ends", "order")
    found = {n: d.placed(x) for n, x in zip(names, (points, *lists), strict=False)}
    how = d.some("background", lambda: d.array((3,), "f32")) | d.some("max_splat_steps", 3)
    return found | of | how | d.some("transmittance_threshold", 0.2)


def _rendered(d: Draw) -> dict[str, Any]:
    return _scene(d) | d.some("background", lambda: d.array((3,), "f32"))


def _mel(d: Draw) -> dict[str, Any]:
    bins, dtype = d.size(12, 1), d.one("f32", "f64")
    spectrum = d.array((*d.one((), (2,)), d.size(6), 2 * bins), dtype)
    filters = d.array((d.size(6), d.one(1, bins)), dtype)
    return {"spectrum": spectrum, "filters": filters} | d.some("clamp", 8.0)


def _segments(d: Draw, *, peaks: bool = False) -> dict[str, Any]:
    bins, segments = d.size(12, 1), d.one(1, 2, 3)
    x = d.array((*d.one((), (2,)), segments * d.size(4), 2 * bins), d.one("f32", "f64"))
    how = {"k": d.one(1, bins)} if peaks else {}
    return {"spectra": x, "segments": segments} | how | d.some("scale", 0.5)


def _framed(d: Draw, n_fft: int, dtype: str) -> dict[str, Any]:
    """Options of short-time transforms, with windows that never add up to zero."""
    length = d.one(n_fft, max(n_fft - 1, 1))
    given = {"n_fft": n_fft, "hop_length": d.one(1, max(length // 3, 1), length)}
    given |= {"win_length": length} if length < n_fft else d.some("win_length", n_fft)
    real = {"c64": "f32", "c128": "f64"}.get(dtype, dtype)
    window = (0.5 + d.numpy.random(length)).astype(KINDS[real])
    return given | d.some("window", lambda: d.placed(window)) | d.some("normalized", True)


def _stft(d: Draw) -> dict[str, Any]:
    n_fft, dtype = d.one(1, 2, 5, 8, 12), d.one("f32", "f64", "c64", "c128")
    given = _framed(d, n_fft, dtype) | d.some("center", False) | d.some("onesided", False)
    given |= d.some("pad_mode", d.one("constant", "replicate", "circular"))
    given |= d.some("return_complex", False, 0.2)
    return {"x": d.array((*d.one((), (2,)), n_fft + d.size(20)), dtype)} | given


def _istft(d: Draw) -> dict[str, Any]:
    n_fft, dtype, whole = d.one(2, 5, 8, 12), d.one("c64", "c128"), d.maybe(0.3)
    given = _framed(d, n_fft, dtype) | {"hop_length": 1} | d.some("length", n_fft // 2)
    given |= {"return_complex": True} if whole else {}
    shape = n_fft if whole else n_fft // 2 + 1, n_fft + d.size(6)
    return {"x": d.array((*d.one((), (2,)), *shape), dtype)} | given


def _spectrogram(d: Draw) -> dict[str, Any]:
    n_fft, dtype = d.one(8, 12, 25), d.one("f32", "f64")
    given = {"n_fft": n_fft, "hop_length": d.one(3, n_fft // 2), "n_mels": d.one(1, 2, 5)}
    given |= {"floor": 1e-3} | d.some("scale", "htk") | d.some("norm", None)
    given |= d.some("drop_last", True) | d.some("low", 700.0) | d.some("high", 3000.0)
    return {"waveform": d.array((*d.one((), (2,)), 2 * n_fft + d.size(20)), dtype)} | given


def _transform(name: str) -> Callable[[Draw], dict[str, Any]]:
    def draw(d: Draw) -> dict[str, Any]:
        row, dtypes = ROWS[name], {"spectrum": ("f32", "f64"), "half": ("c64", "c128")}
        least = 2 if row.kind == "half" else 1
        shape = tuple(d.size(20, least) for _ in range(d.one(1, 2, 3) if row.rank != 2 else 2))
        given = {"x": d.array(shape, d.one(*dtypes.get(row.kind, ("f32", "c64", "c128"))))}
        given |= d.some("norm", d.one("backward", "ortho", "forward"))
        if row.rank == 1:
            return given | d.some("n", d.size(33, 1)) | d.some("axis", d.axis(len(shape)))
        return given | d.some("s", tuple(d.size(20, 1) for _ in range(row.rank or len(shape))))

    return draw


_RUNNING = ("running_mean", "running_var")


@cache
def operations() -> dict[str, Operation]:
    """All public operations by name."""
    found = dict(written())
    for name, op in OPERATIONS.items():
        if op.public and name not in found:
            found[name] = _own(name, partial(_of_forms, op))
    return found


@cache
def written() -> dict[str, Operation]:
    """Returns the operations whose calls this file draws, by name."""
    found = {name: _row(name) for name in (*_REDUCTIONS, "softmax", "log_softmax")}
    for name, draw in (
        *(("linear", _linear), ("linear_dgrad", _dgrad), ("linear_wgrad", _wgrad)),
        *(("matmul", _matmul), ("logsumexp", _last), ("cumsum", _cumsum)),
        *(("solve_triangular", _triangular), ("fft_block", _fft)),
        *(("logcumsumexp", _logcumsumexp), ("attention", _attention)),
        *(("selective_scan", _selective_scan), ("linear_recurrence", _linear_recurrence)),
        ("attention_grad", _attention_grad),
        *((name, _recurrent(name)) for name in ("gated_delta_rule", "ssd")),
        *(("cross_entropy", _losses), ("linear_cross_entropy", _fused)),
        *(("linear_cross_entropy_grad", _fused), ("group_norm", _group_norm)),
        *(("batch_norm", _channels(*_RUNNING)), ("batch_norm_train", _channels(train=True))),
        ("layer_norm2d", _channels()),
        *(("max_pool", _pool), ("avg_pool", partial(_pool, mean=True))),
        *((name, _pool) for name in ("min_pool", "sum_pool", "prod_pool")),
        *(("im2col", _columns), ("col2im", partial(_columns, back=True))),
        *(("dropout", _dropout), ("umap_knn", _neighbours)),
        *(("resize", _resize), ("resize_nearest_2x", _images)),
        *(("adaptive_max_pool", _adaptive), ("adaptive_avg_pool", _adaptive)),
        *(("rms_norm", _rms_norm), ("layer_norm", _norm("weight", "bias"))),
        *(("grouped_linear", _grouped), ("grouped_linear_wgrad", _grouped_wgrad)),
        *(("moe_dispatch", _dispatch), ("moe_combine", _combine), ("moe_router", _router)),
        *(("conv", _conv), ("conv_transpose", _conv_transpose)),
        *(("conv_dgrad", _conv_dgrad), ("conv_wgrad", _conv_wgrad)),
        *(("embedding", _embedding), ("gather", _gather), ("index_add", _index_add)),
        *(("embedding_backward", _embedding_backward), ("scatter_add", _scatter_add)),
        *(("roll", _roll), ("topk", _topk), ("sample", _sample)),
        ("token_logprobs", _token_logprobs),
        *(("sort", _sorted), ("argsort", _sorted), ("searchsorted", _searchsorted)),
        *(("bincount", _bincount), ("unique", _unique), ("log_mel", _mel)),
        *(("welch", _segments), ("welch_peaks", partial(_segments, peaks=True))),
        *((name, _transform(name)) for name in ROWS),
        *(("stft", _stft), ("istft", _istft), ("log_mel_spectrogram", _spectrogram)),
        *(("splat_prepare", _scene), ("splat_sort", _listed)),
        *(("splat_rasterize", _rastered), ("splat_render", _rendered)),
        *(("rms_norm_wgrad", _wgrads("rstd")), ("layer_norm_wgrad", _wgrads("mean", "rstd"))),
    ):
        found[name] = _own(name, draw)
    for name in functions.__all__:
        if name != "cast":
            function = getattr(functions, name)
            draw = _pointwise(name, len(function.arguments))
            found[f"functions.{name}"] = Operation(function, function.reference, draw)
    cast = Operation(functions.cast, lambda x, dtype: _cast(x, dtype), _cast_of)
    found["functions.cast"] = cast
    packing = Operation(ptxgen.int4.pack, formulas.int4_pack, _packing)
    found["int4.pack"] = packing
    found["int4.unpack"] = Operation(ptxgen.int4.unpack, formulas.int4_unpack, _unpacking)
    found["quantized.quantize"] = Operation(
        _arrays(ptxgen.quantized.quantize), _quantized_oracle, _weights
    )
    found["quantized.dequantize"] = Operation(
        ptxgen.quantized.dequantize, formulas.dequantize, _dequantizing
    )
    found["int4.gemm"] = Operation(ptxgen.int4.gemm, reference.int4_gemm, _int4)
    found["quantized.linear"] = Operation(
        ptxgen.quantized.linear, reference.quantized_linear, _by_quantized("x")
    )
    found["quantized.embedding"] = Operation(
        ptxgen.quantized.embedding, reference.quantized_embedding, _quantized_rows
    )
    found["quantized.grouped_linear"] = Operation(
        ptxgen.quantized.grouped_linear, reference.quantized_grouped_linear, _quantized_groups
    )
    found["quantized.linear_dgrad"] = Operation(
        ptxgen.quantized.linear_dgrad, reference.quantized_linear_dgrad, _by_quantized("dy")
    )
    for name, oracle, draw in (
        ("narrow", lambda x, axis, start, length: np.take(x, range(start, start + length), axis),
         _narrow),
        ("transpose", lambda x, first=-2, second=-1: np.swapaxes(x, first, second), _transpose),
        ("expand", lambda x, shape: np.broadcast_to(x, shape), _expand),
        ("split_qkv", _parts, _qkv),
        ("contiguous", lambda x: np.array(x), _contiguous),
        ("view_as_real", lambda x: np.stack([np.real(x), np.imag(x)], -1), _complex_numbers),
        ("view_as_complex", lambda x: x[..., 0] + 1j * x[..., 1], _pairs),
        ("concat", lambda arrays, axis=0: np.concatenate(arrays, axis), _concat),
        ("pad", _padded, _pad),
        ("rope", _turned, _rope),
    ):  # fmt: skip
        found[f"layout.{name}"] = _moved(name, oracle, draw)
    return found


def _dtypes(op: Any) -> list[str]:
    """The dtypes that the docstring of an operation names."""
    said = re.search(r"\nDtypes\n(.*?)\n\w", op.doc, re.DOTALL)
    return [short for short in FLOATS if NUMPY[short].name in (said[1] if said else "float32")]


def _of_forms(op: Any, d: Draw, dtype: str = "") -> dict[str, Any]:
    """Arguments of an operation as its forms say, of the dtypes that its docstring names."""
    forms, dtype = op.forms.forms[d.one(*op.forms.forms)], dtype or d.one(*_dtypes(op))
    lead, sizes = d.shape(d.one(0, 1, 2)), defaultdict(lambda: d.size(20, 1))
    given = {}
    for name in op.forms.arguments:
        if name in op.forms.optional and d.maybe():
            continue
        first, *rest = forms[name].split()
        dims = [*lead] if first in ("...", "*") else [first]
        shape = tuple(n if isinstance(n, int) else sizes[n] for n in (*dims, *rest))
        given[name] = d.array(shape, op.dtypes.get(name, dtype))
    return given


def valid(name: str, seed: int) -> Call:
    """A call that the operation takes."""
    return Call(name, operations()[name].draw(Draw(seed)))


# -- bad ones -----------------------------------------------------------------------------------
class _Odd:
    """An object of no use."""

    def __repr__(self) -> str:
        return "<odd>"


def failing(interface: Any) -> Any:
    """An object whose ``__cuda_array_interface__`` is this, or raises this."""
    return _producer(__cuda_array_interface__=interface)


def _producer(**members: Any) -> Any:
    """An object whose ``members`` are these; exceptions are raised when they are asked for."""

    def asked(value: Any) -> Any:
        def get(self: Any) -> Any:
            if isinstance(value, Exception):
                raise value
            return value

        return property(get)

    made = {n: asked(v) for n, v in members.items()}
    return type("Producer", (), {**made, "__repr__": lambda self: f"<producer {members}>"})()


def raising(*protocols: str) -> Any:
    """An object whose methods of these names raise."""

    def fail(*_: Any) -> Any:
        raise RuntimeError("this protocol is broken")

    named = dict.fromkeys(protocols, fail)
    return type("Raising", (), {**named, "__repr__": lambda self: f"<{protocols} raise>"})()


class _Unreadable(np.ndarray):
    """An array of NumPy that does not tell where it lies."""

    @property
    def __array_interface__(self) -> Any:
        raise RuntimeError("this protocol is broken")


def _producers() -> tuple[Any, ...]:
    """Objects that claim to be arrays of other frameworks, and are none."""
    plain = {"version": 3, "shape": (0,), "typestr": "<f4", "data": (0, False)}
    wrong: list[dict[str, Any]] = [
        {"shape": "abc"}, {"shape": (-1,)}, {"shape": None}, {"shape": (2, 3)}, {"typestr": 7},
        {"typestr": ""}, {"typestr": "<f4,<f4"}, {"data": None}, {"data": ("x", 1)}, {"data": 3},
        {"strides": (4, 4)}, {"strides": "x"}, {"stream": 0}, {"mask": 1},
    ]  # fmt: skip
    interfaces = [{}, None, 3, RuntimeError("broken"), *({**plain, **each} for each in wrong)]
    cai = [failing(x) for x in interfaces]
    answers = [lambda **_: None, lambda **_: object(), RuntimeError("broken"), 3]
    devices = [lambda: (1, 0), lambda: (99, 0), lambda: None, lambda: ("x", 0), RuntimeError("no")]
    dlpack = [
        _producer(__dlpack__=answer, __dlpack_device__=device)
        for answer in answers
        for device in devices
    ]
    return (*cai, *dlpack, np.zeros(3, "f4").view(_Unreadable), np.dtype("f4"), np.add)


def _spoilt_arrays(d: Draw, value: Any) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = [
        ("None", None), ("text", "x"), ("odd", _Odd()), ("list", [1.0, 2.0]), ("dict", {}),
        ("class", np.ndarray), ("objects", np.array([None, 1])), ("complex", np.ones(3, "c8")),
        ("swapped", np.ones(3, ">f4")), ("words", np.array(["a", "b"])), ("bytes", b"abc"),
        ("dates", np.array(["2020-01-01"], "M8[D]")), ("records", np.zeros(2, "f4,f4")),
        ("0-d", np.float32(1)), ("a dimension more", None), ("other dtype", None),
        ("masked", np.ma.array([1.0, 2.0])), ("of 7", np.ones(7, "f4")), ("bool", True),
        ("number", 1.5), ("empty", np.zeros((0, 0), "f4")), ("int8", np.ones((3, 3), "i1")),
    ]  # fmt: skip
    if isinstance(value, np.ndarray):
        found += [("a dimension more", value[None]), ("other dtype", np.zeros(value.shape, "u2"))]
        if value.ndim:
            found += [("shorter", value[..., :-1]), ("flat", value.reshape(-1))]
    if d.maybe(0.3):
        return [("a producer of no array", d.one(*_producers()))]
    how, spoilt = d.one(*found)
    return [(how, spoilt)]


_VALUES: tuple[Any, ...] = (
    None, "x", "", b"x", -1, -7, 2, 10**6, 2**31, 2**63, 2**70, -(2**70), 1.5, 1e300, -1e300, 0.0,
    float("nan"), float("inf"), True, False, (), [], {}, (0,), (0, 0), [0, 5], ("x",), "0", 1 + 2j,
    np.float32(0.5), np.int64(1), np.array(1), np.array([1, 2]), np.float64("nan"), _Odd(), object,
    [[1]], (1, 2, 3), range(2), lambda: 0, 10**5000, -(10**400), (10**5000,), {1: 2}, ..., slice(1),
    raising("__index__", "__float__", "__int__"), raising("__len__", "__getitem__", "__iter__"),
    raising("__len__"), raising("__bool__", "__eq__"), [raising("__index__")], np.dtype("f4"),
    np.array(["a"]), np.datetime64("2020"), memoryview(b"ab"), frozenset((1,)), "kn\0", "é" * 300,
)  # fmt: skip

_ALSO = (
    "out",
    "out_dtype",
    "stream",
    "kernel",
    "axis",
    "eps",
    "keepdims",
    "check",
    "layout",
    "tier",
)


def bad(name: str, seed: int) -> Call:
    """A call with one argument spoiled (which may turn out to be no harm)."""
    d = Draw(seed)
    of = operations()[name]
    given = of.draw(d)
    accepted = _accepted(of.function)
    more = [each for each in accepted if each not in given]
    spoiled = d.one(*given, *more)
    value = given.get(spoiled)
    if spoiled == "out":
        how, spoilt = _spoilt_out(d, of, given)
    elif isinstance(value, np.ndarray | np.generic) or (spoiled in given and d.maybe(0.1)):
        ((how, spoilt),) = _spoilt_arrays(d, value)
    else:
        spoilt = d.one(*_VALUES)
        how = _shown(spoilt)
    return Call(name, {**given, spoiled: spoilt}, spoiled, how)


def traced(call: Call) -> str:
    """Fault of the error that a call raises whose other arrays are nodes of a program; empty for
    none, and where it is taken: values are not known then.
    """
    b = graph.Builder("bad", device="cpu")
    given = dict(call.given)
    for name, value in call.given.items():
        if name != call.spoiled and isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            given[name] = b.input(name, value.shape, value.dtype)
    if not any(isinstance(x, Traced) for x in given.values()):
        return ""
    try:
        b.call(operations()[call.name].function, **given)
    except PtxgenError as error:
        related = call.given if _plain(call.given[call.spoiled]) else (call.spoiled,)
        if isinstance(error, TraceError) or any(_names(name, str(error)) for name in related):
            return ""
        return f"{type(error).__name__} does not name {call.spoiled}: {error}"
    except Exception as error:
        return f"traced: bare {type(error).__name__}: {error}"
    return ""


def _accepted(function: Any) -> list[str]:
    try:
        named = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []
    if isinstance(function, Pointwise):
        return [*function.arguments, "out", "out_dtype", "stream", "kernel"]
    return [n for n in named if n not in ("args", "named")]


def _spoilt_out(d: Draw, of: Operation, given: dict[str, Any]) -> tuple[str, Any]:
    try:
        like = of.oracle(**given)
    except Exception:
        return "text", "x"
    like = like[0] if isinstance(like, tuple) else like
    like = np.asarray(like)
    locked = np.zeros(like.shape, like.dtype)
    locked.flags.writeable = False
    first = next(iter(given.values()))
    choices: list[tuple[str, Any]] = [
        ("text", "x"), ("odd", _Odd()), ("number", 3), ("list", [1.0]), ("read-only", locked),
        ("int16", np.zeros(like.shape, "i2")), ("complex", np.zeros(like.shape, "c8")),
        ("a dimension more", np.zeros((1, *like.shape), like.dtype)),
        ("zero strides", np.broadcast_to(np.zeros((), like.dtype), like.shape)),
        ("pair", (np.zeros(3, "f4"),) * 2), ("triple", (None,) * 3), ("class", np.ndarray),
        ("an argument", first), ("u1", np.zeros(like.shape, "u1")),
    ]  # fmt: skip
    return d.one(*choices)


# -- judging --------------------------------------------------------------------------------------
def judge(call: Call, by_formula: bool = True) -> str:
    """Fault of what comes of a call, by its oracle and, unless told otherwise, by the float64
    formula; empty if there is none.
    """
    of = operations()[call.name]
    kept = {n: _copied(v) for n, v in call.given.items()}
    try:
        got = of.function(**call.given)
    except PtxgenError as error:
        if not call.spoiled:
            return f"refused: {type(error).__name__}: {error}"
        related = call.given if _plain(call.given[call.spoiled]) else (call.spoiled,)
        if not any(_names(name, str(error)) for name in related):
            return f"{type(error).__name__} does not name {call.spoiled}: {error}"
        return ""
    except Exception as error:
        return f"bare {type(error).__name__}: {error}"
    given = {n: v for n, v in kept.items() if n not in ("stream", "kernel", "out", "check")}
    out = call.given.get("out")
    given_out = out is not None and not (isinstance(out, tuple) and all(o is None for o in out))
    try:
        with np.errstate(all="ignore"):
            if given_out and not given.get("out_dtype") and "out_dtype" in _accepted(of.oracle):
                given["out_dtype"] = np.asarray(out[0] if isinstance(out, tuple) else out).dtype
            expected = of.oracle(**given)
    except Exception as error:
        return f"taken, where the oracle raises {type(error).__name__}: {error}"
    if by_formula and not call.spoiled and formulas.has(call.name):
        with np.errstate(all="ignore"):
            found = formulas.judge(call.name, given, got)
        if found:
            return found
    for mine, theirs in zip(_several(got), _several(expected), strict=True):
        if theirs is None or mine is None:
            unasked = any(v is None for v in call.given.values())  # dw=None: no gradient
            if mine is not theirs and not (mine is None and unasked):
                return f"got {mine!r}, expected {theirs!r}"
            continue
        objects = (
            getattr(mine, "dtype", np.dtype("f4")).kind in "OVSU"
        )  # views of any dtype are taken
        found = "" if objects and np.array_equal(mine, theirs) else difference(mine, theirs)
        if found:
            return found
    written = {id(v) for v in _several(out)}
    for name, new in call.given.items():
        if not isinstance(new, np.ndarray) or id(new) in written or new.dtype.kind in "OVSU":
            continue
        if difference(_raw(new), _raw(kept[name])):
            return f"{name} has been changed"
    return ""


def _copied(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_copied(v) for v in value)
    return np.array(value, copy=True) if isinstance(value, np.ndarray) else value


def _plain(value: Any) -> bool:
    """Whether this is an array or a number, so that what is wrong may be said of another's."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "biuf"
    return isinstance(value, int | float)


def _raw(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind in "OMUS" or array.dtype.itemsize not in (1, 2, 4, 8):
        return np.zeros(0)
    return np.ascontiguousarray(array).view(f"u{array.itemsize}").astype("f8")


def _several(found: Any) -> tuple[Any, ...]:
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def _names(argument: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(argument.removesuffix('s'))}", text) is not None


def _shown(value: Any) -> str:
    if isinstance(value, int) and abs(value) > 2**80:
        return f"<an integer of {value.bit_length()} bits>"
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))},)"
    if isinstance(value, np.ndarray):
        strides = [s // value.itemsize for s in value.strides]
        return f"<{value.dtype} {list(value.shape)} {strides}>"
    return repr(value)[:60]


# -- gradients ----------------------------------------------------------------------------------
def gradient_fault(op: Any, seed: int) -> str:
    """Fault of the gradients of an operation of float64, beside differences of results along a
    random direction; empty if there is none, or the operation takes no float64.
    """
    if op.vjp is None or "f64" not in _dtypes(op):
        return ""
    d = Draw(seed)
    given = {n: d.numpy.standard_normal(np.shape(x)) for n, x in _of_forms(op, d, "f64").items()}

    def results(arrays: dict[str, Any]) -> tuple[Any, ...]:
        found = reference_of(op)(**arrays)
        return found if isinstance(found, tuple) else (found,)

    at = Interpreter(op.name)
    arguments = {name: at.array(name, x) for name, x in given.items()}
    made = op.lower(at, **arguments)
    made = made if isinstance(made, tuple) else (made,)
    weights = tuple(d.numpy.standard_normal(y.shape) for y in made)
    dys = tuple(at.array(f"dy{i}", w) for i, w in enumerate(weights))
    of = Backward(arguments, op.check({}), made, dys, frozenset(arguments))
    for name, found in op.vjp(at, of).items():
        way, step = d.numpy.standard_normal(given[name].shape), 1e-6
        ends = (results({**given, name: given[name] + by * way}) for by in (step, -step))
        moved = [(a - b) / (2 * step) for a, b in zip(*ends, strict=True)]
        expected = sum(float(np.sum(w * m)) for w, m in zip(weights, moved, strict=True))
        got = float(np.sum(at.value(found) * way))
        if not abs(got - expected) <= 1e-4 * max(1.0, abs(expected)):
            return f"the gradient by {name} is {got} along a direction; differences say {expected}"
    return ""


def reference_of(op: Any) -> Callable[..., Any]:
    """The oracle of an operation, registered or not."""
    return op.oracle or derived(op)
