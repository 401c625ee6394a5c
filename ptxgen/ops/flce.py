"""Fused linear cross-entropy: the last layer and the loss, chunk by chunk of the rows.

Made of other operations: product, maxima and sums of the logits' segments, loss and gradient over
rows, products. A chunk's logits become their gradient in place, and their memory the next chunk's.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ptxgen.errors import DtypeError, IndexRangeError, OptionError, ShapeError, UncoveredError
from ptxgen.numerics.dtype import DTYPES, ITEMSIZE, name_of
from ptxgen.numerics.flce import LINEAR_CROSS_ENTROPY, chunk_of, rows_at_once, segmented
from ptxgen.numerics.formula import cast
from ptxgen.numerics.logits import segments
from ptxgen.numerics.pointwise import FULL
from ptxgen.ops.dgrad import linear_dgrad
from ptxgen.ops.forward import linear
from ptxgen.ops.logits import linear_segments, logit_gradient, logit_segments
from ptxgen.ops.op import Options, Plan
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.replay import remembered
from ptxgen.ops.rowcalls import reduced
from ptxgen.ops.rowwise import run
from ptxgen.ops.run import refuse_gradients
from ptxgen.ops.views import ALIGN_MAX, apart, check_contiguous
from ptxgen.ops.wgrad import linear_wgrad
from ptxgen.runtime import Call, framework_of
from ptxgen.runtime.arrays import ArrayView, empty, host_empty, view

FRAMEWORKS = ("torch", "cupy", "numpy")
"""Whose arrays can be cut into chunks, and written to."""

_ones = {
    "float32": Pointwise(lambda t: cast(t - t + 1, "f32"), "ones"),
    "float64": Pointwise(lambda t: cast(t - t + 1, "f64"), "ones"),
}
"""By what is summed in: a column of ones, for each target one."""
_added = Pointwise(lambda old, new: old + new, "added")
_stored = Pointwise(lambda x: x, "stored")


@remembered("x", "w", "target", "bias")
def linear_cross_entropy(
    x: Any,
    w: Any,
    target: Any,
    bias: Any = None,
    *,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    softcap: float | None = None,
    z_loss: float = 0.0,
    layout: str = "nk",
    tier: str = "auto",
    chunk: int | None = None,
    check_targets: bool = False,
    stream: Any = None,
) -> Any:
    """``cross_entropy(linear(x, w, bias), target)``, without the logits in memory.

    Shapes
        ``x`` [..., H]; ``w`` [V, H] (``layout="nk"``) or [H, V] ("kn"); ``target`` [...], int64 or
        int32; ``bias`` [V]. The loss is a number, or [...] of ``reduction="none"``; float32
        (float64 of float64).
    Dtypes
        x and w: bfloat16, float16, float32 or float64; the bias as they are, or float32.
    Options
        ``reduction``: "mean" (over targets that are not ``ignore_index``; 0 if there are none),
        "sum", "none". A row whose target is ``ignore_index``, or none of the V, has a loss of 0;
        the latter counts in the mean. ``check_targets`` raises IndexRangeError for such, and waits.
        ``label_smoothing``, ``softcap``, ``z_loss``: as in :func:`ptxgen.cross_entropy`.
        ``chunk``: rows at a time, rounded up to a multiple of 16 where logits are in memory; by
        default such that what is in memory takes less than 64 MB (:mod:`ptxgen.numerics.flce`).
    Bits
        Contract ``flce/2`` (:mod:`ptxgen.numerics.flce`): a row's loss depends on that row and on
        ``w`` alone; not on the batch, nor on the chunk.
        :func:`ptxgen.reference.linear_cross_entropy` returns the same bits.
    Memory
        8 bytes for 256 of a chunk's logits and a loss a row, and where no product keeps such
        segments alone the chunk's logits; of the arrays' framework.

    Takes torch, CuPy and NumPy arrays. Raises ShapeError, DtypeError, OptionError, DeviceError,
    GradError, IndexRangeError or CompileError, before anything is written. No call waits for the
    GPU. Source: ``ptxgen/ops/flce.py``; the chunked way is Liger-Kernel's.
    """
    head = _read(
        x,
        w,
        target,
        bias,
        (reduction, ignore_index, label_smoothing, softcap, z_loss, layout, tier, chunk),
        stream,
        gradients=False,
    )
    head.check(check_targets)
    return head.compute()[0]


@remembered("x", "w", "target", "bias", "dy", flags=("dx", "dw", "dbias"))
def linear_cross_entropy_grad(
    x: Any,
    w: Any,
    target: Any,
    bias: Any = None,
    *,
    dx: Any = True,
    dw: Any = True,
    dbias: Any = None,
    dy: Any = None,
    accumulate: bool = False,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    softcap: float | None = None,
    z_loss: float = 0.0,
    layout: str = "nk",
    tier: str = "auto",
    chunk: int | None = None,
    check_targets: bool = False,
    stream: Any = None,
) -> tuple[Any, Any, Any, Any]:
    """The loss and its gradients ``(loss, dx, dw, dbias)``, in one pass over the rows.

    As :func:`linear_cross_entropy`, and besides:

    Gradients
        ``dx``, ``dw``, ``dbias``: True, False (then None is returned), or memory to write to, of
        the operand's dtype or as wide as sums (float32; float64 of float64). ``dbias`` is by
        default wanted where there is a bias. ``accumulate`` adds dw and dbias to what their memory
        holds, as a main gradient wants it.
        ``dy``: the gradient by the loss that comes from above: a number, an array of one (both cost
        nothing), or for "none" one a row (by default 1 for each).
    Bits
        Contract ``flce/2``. dx depends on neither chunk nor other rows; dw and dbias as wide as
        sums are one chain over all rows, whatever the chunk. A dw of 16 bits is rounded after each
        chunk, so it depends on that: pass float32 memory if it must not.
    Memory
        A chunk's logits (by default about what x takes, at least 128 and at most 2048 rows), 8
        bytes for 256 of them, 20 bytes a row, and for dbias 4 bytes a class.
    """
    head = _read(
        x,
        w,
        target,
        bias,
        (reduction, ignore_index, label_smoothing, softcap, z_loss, layout, tier, chunk),
        stream,
        gradients=any(g is not False for g in (dx, dw)) or dbias not in (None, False),
    )
    wanted = head.wanted(dx, dw, dbias, bool(accumulate))
    share = head.shares_read(dy)
    head.check(check_targets)
    return head.compute(wanted, share, bool(accumulate))


def _pitch(n: int, itemsize: int) -> int:
    """Elements from row to row of logits: rows begin at multiples of 16 bytes."""
    unit = ALIGN_MAX // itemsize
    return -(-n // unit) * unit


def _plan(gradients: bool, sizes: tuple[int, ...], dtype: Any, options: Options) -> Plan:
    """The steps of chunks, for sizes M, N and K (rows, classes, features).

    What is of all rows, their shares of the mean and the loss of their losses, is a launch each.
    """
    if len(sizes) != 3:
        raise ShapeError(f"linear_cross_entropy is given {len(sizes)} sizes; takes M, N, K")
    known = LINEAR_CROSS_ENTROPY.options
    if unknown := sorted(options.keys() - known.keys()):
        raise OptionError(
            f"linear_cross_entropy has no option {unknown[0]!r}; takes {sorted(known)}"
        )
    given = {name: options.get(name, option.default) for name, option in known.items()}
    LINEAR_CROSS_ENTROPY.check(given)
    m, n, k = sizes
    full = name_of("float32" if dtype is None else dtype, "dtype")
    itemsize = ITEMSIZE[DTYPES[full]]
    wide = "f64" if full == "float64" else "f32"
    how = {"layout": given["layout"], "tier": given["tier"]}
    capped, smoothing = {"softcap": given["softcap"]}, given["label_smoothing"]
    joined = {**capped, "label_smoothing": smoothing, "z_loss": given["z_loss"], "classes": n}

    def plan(chunk: int, whole: bool, otherwise: Plan | None = None) -> Plan:
        """``whole``: of logits in memory, chunk by chunk."""
        rows, count = min(chunk, m), -(-m // chunk)
        steps: list[tuple[str, tuple[int, ...], str, Options, int]] = []
        scratch = {"segments": rows * segments(n) * 2 * ITEMSIZE[wide]}
        if whole:
            steps.append(("linear", (rows, n, k), full, how, count))
            steps.append(("logit_segments", (rows, n), full, capped, count))
            scratch = {"logits": rows * _pitch(n, itemsize) * itemsize, **scratch}
        else:
            steps.append(("linear_segments", (rows, n, k), full, {**how, **capped}, count))
        if smoothing:
            steps.append(("capped_mean", (rows, n), full, capped, count))
        steps.append(("cross_entropy_joined", (rows, segments(n)), FULL[wide], joined, count))
        scratch |= {"rows": rows * 4 * ITEMSIZE[wide], "losses": m * ITEMSIZE[wide]}
        if gradients:
            turned = {**capped, "label_smoothing": smoothing}
            steps.append(("logit_gradient", (rows, n), full, turned, count))
            steps.append(("linear_dgrad", (rows, n, k), full, how, count))
            summed = {**how, "chain": True, "out_dtype": full}
            steps.append(("linear_wgrad", (rows, n, k), full, summed, count))
            if given["reduction"] == "mean":
                scratch["shares"] = m * ITEMSIZE[wide]
        what = f"M={m} N={n} K={k} {full}: {count} chunks of {rows} rows"
        return Plan(what, tuple(steps), scratch, otherwise)

    found = plan(chunk_of(m, n, k, itemsize, gradients, given["chunk"]), True)
    if gradients or not segmented(DTYPES[full], given["tier"], smoothing):
        return found
    return plan(rows_at_once(n, given["chunk"]), False, found)


PLANS: Mapping[str, Callable[..., Plan]] = {
    "linear_cross_entropy": partial(_plan, False),
    "linear_cross_entropy_grad": partial(_plan, True),
}
"""How problems of each operation are cut, and into what."""


@dataclass(frozen=True)
class _Head:
    """A call, understood. ``rows`` [M, K] and ``targets`` [M] are views of x and target."""

    x: ArrayView
    rows: Any
    w: Any
    targets: Any
    bias: Any
    views: dict[str, ArrayView]
    shape: tuple[int, ...]
    sizes: tuple[int, int, int]
    reduction: str
    numbers: tuple[Any, ...]
    layout: str
    tier: str
    chunk: int
    asked: int | None
    """The chunk that the caller wants."""
    call: Call
    stream: Any

    @property
    def wide(self) -> str:
        """What is summed in."""
        return "float64" if self.x.dtype == "float64" else "float32"

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Memory in x's framework."""
        if self.call.host:
            return host_empty(self.x, shape, dtype)
        if self.stream is None and self.x.framework == "torch":  # as replay can follow it
            return self.rows.new_empty(shape, dtype=getattr(sys.modules["torch"], dtype))
        return empty(self.x, shape, dtype, self.call.device, self.call.stream)[1]()

    def check(self, targets: bool) -> None:
        """IndexRangeError for targets that are none of the classes, where that is asked for."""
        if not targets or self.sizes[0] == 0:
            return
        ignored = self.targets == self.numbers[0]
        wrong = ~ignored & ((self.targets < 0) | (self.targets >= self.sizes[1]))
        if bool(wrong.any()):
            found = int(self.targets[wrong][0])
            raise IndexRangeError(
                f"target has {found}; takes 0 .. {self.sizes[1] - 1}, or {self.numbers[0]} for "
                "rows that are left out"
            )

    def wanted(self, dx: Any, dw: Any, dbias: Any, accumulate: bool) -> dict[str, Any]:
        """The gradients that are wanted: their memory, or None for such as is to be made."""
        if dbias is None:
            dbias = self.bias is not None
        elif dbias is not False and self.bias is None:
            raise OptionError("dbias is wanted, but there is no bias; leave it away")
        found: dict[str, Any] = {}
        seen = dict(self.views)
        for name, of, memory in (("dx", "x", dx), ("dw", "w", dw), ("dbias", "bias", dbias)):
            if memory is False:
                continue
            if memory is True:
                found[name] = None
                continue
            target = view(memory, name)
            like = self.views[of]
            if target.shape != like.shape:
                raise ShapeError(f"{name} has shape {list(target.shape)}; takes {list(like.shape)}")
            taken = tuple(dict.fromkeys((self.x.dtype, like.dtype, self.wide)))
            if target.dtype not in taken:
                raise DtypeError(f"{name} has dtype {target.dtype}; takes {' or '.join(taken)}")
            if target.readonly:
                raise ShapeError(f"{name} is read-only; pass an array that can be written")
            check_contiguous(name, target, result=True)
            for other, source in seen.items():
                if target.overlaps(source):
                    raise ShapeError(f"{name} shares memory with {other}; pass one of its own")
            seen[name] = target
            found[name] = memory
        if accumulate and not any(found.get(n) is not None for n in ("dw", "dbias")):
            raise OptionError("accumulate=True adds to dw and dbias, but no memory is passed")
        refuse_gradients({n: m for n, m in found.items() if m is not None})
        return found

    def shares_read(self, dy: Any) -> Callable[[], Any] | None:
        """What makes each row's share of the gradient from above; None where it is 1."""
        name = "mean" if self.reduction == "mean" else "sum"
        op = f"{name}_shares_{'f64' if self.wide == 'float64' else 'f32'}"
        ignored, number = self.numbers[0], not hasattr(dy, "__setitem__")
        if dy is not None and not number:
            found = view(dy, "dy")
            by_row = self.reduction == "none" and found.shape == self.shape
            if not by_row and math.prod(found.shape) != 1:
                takes = f"{list(self.shape)}, or [] for all" if self.reduction == "none" else "[]"
                raise ShapeError(f"dy has shape {list(found.shape)}; takes {takes}")
            if DTYPES.get(found.dtype) is None or (found.dtype == "float64") != (
                self.wide == "float64"
            ):
                raise DtypeError(f"dy has dtype {found.dtype}; takes {self.wide}")
            check_contiguous("dy", found)
            if by_row:
                return lambda: dy.reshape(-1)
            return lambda: run(op)(
                self.targets, dy.reshape(()), None, self.stream, (ignored, 1.0, None)
            )
        times = 1.0 if dy is None else float(dy)
        if name == "sum" and times == 1:
            return None
        return lambda: run(op)(self.targets, None, None, self.stream, (ignored, times, None))

    def chunks(self) -> Iterator[tuple[int, int]]:
        """From and to which rows; one empty chunk of none."""
        count = self.sizes[0]
        for first in range(0, max(count, 1), self.chunk):
            yield first, min(first + self.chunk, count)

    def compute(
        self,
        wanted: dict[str, Any] | None = None,
        shares: Callable[[], Any] | None = None,
        accumulate: bool = False,
    ) -> tuple[Any, Any, Any, Any]:
        """The loss and the gradients that are wanted."""
        m, _, k = self.sizes
        of = {"layout": self.layout, "tier": self.tier, "stream": self.stream}
        losses = self.empty((m,), self.wide)
        if not wanted and self.evaluated(losses):
            return self.reduced(losses), None, None, None
        logits = _Logits(self, min(self.chunk, m))
        grads = dict(wanted or {})
        adds = {name: accumulate and memory is not None for name, memory in grads.items()}
        for name, shape, dtype in (
            ("dx", self.x.shape, self.x.dtype),
            ("dw", self.views["w"].shape, self.views["w"].dtype),
        ):
            if name in grads and grads[name] is None:
                grads[name] = self.empty(shape, dtype)
        down = _Down(self, grads, adds.get("dbias", False)) if "dbias" in grads else None
        share = shares() if shares is not None and grads else None
        dx = None if "dx" not in grads else grads["dx"].reshape((m, k))
        for first, last in self.chunks():
            x, target = self.rows[first:last], self.targets[first:last]
            logits.begin(last - first)
            z = logits.z
            linear(x, self.w, self.bias, out=z, **of)
            logits.loss(target, losses[first:last])
            if not grads:
                continue
            logits.turn(target, None if share is None else share[first:last])
            if dx is not None:
                linear_dgrad(z, self.w, out=dx[first:last], **of)
            if "dw" in grads:
                begun = first > 0 or adds["dw"]
                linear_wgrad(x, z, out=grads["dw"], accumulate=begun, chain=True, **of)
            if down is not None:
                down.add(z, target, first)
        if down is not None:
            grads["dbias"] = down.result()
        return (self.reduced(losses), *(grads.get(name) for name in ("dx", "dw", "dbias")))

    def evaluated(self, losses: Any) -> bool:
        """Computes the rows' losses with no logit in memory; false where no product does so."""
        m, n, _ = self.sizes
        if not segmented(DTYPES[self.x.dtype], self.tier, self.numbers[1]):
            return False
        chunk = rows_at_once(n, self.asked)
        rows = _Rows(self, min(chunk, m))
        try:
            for first in range(0, m, chunk):
                last = min(first + chunk, m)
                rows.begin(last - first)
                rows.product(self.rows[first:last], self.targets[first:last])
                rows.join(self.targets[first:last], losses[first:last])
        except UncoveredError:  # at the first chunk, before anything is launched
            return False
        return True

    def reduced(self, losses: Any) -> Any:
        """The rows' losses, their sum or their mean."""
        shaped, (ignored, *_) = losses.reshape(self.shape), self.numbers
        return reduced(shaped, self.targets, self.reduction, ignored, self.stream)


class _Rows:
    """What the rows of a chunk have besides their logits: segments, and what these make."""

    def __init__(self, head: _Head, rows: int) -> None:
        self.head = head
        self.segments = head.empty((2, rows, segments(head.sizes[1])), head.wide)
        self.by_row = head.empty((4, rows), head.wide)
        """The target's logit, the maximum, the gradient's scale, the mean."""

    def begin(self, count: int) -> None:
        """A chunk of as many rows."""
        self.top, self.total = (self.segments[i, :count] for i in range(2))
        self.hit, self.peak, self.scale, self.even = (self.by_row[i, :count] for i in range(4))

    def product(self, x: Any, target: Any) -> None:
        """The segments of a product whose logits nobody sees. UncoveredError where none serves."""
        head, found = self.head, (self.top, self.total, self.hit)
        how = (head.layout, head.tier, head.numbers[2], None)
        linear_segments(x, head.w, target, head.bias, *found, head.stream, how)

    def join(self, target: Any, out: Any, even: Any = None) -> None:
        """The rows' losses, of their segments."""
        ignored, smoothing, softcap, z_loss = self.head.numbers
        how = (ignored, self.head.sizes[1], smoothing, softcap, z_loss, None)
        given = self.top, self.total, self.hit, target, even
        run("cross_entropy_joined")(*given, out, self.peak, self.scale, self.head.stream, how)


class _Logits(_Rows):
    """A chunk's logits, and their gradient in the same memory."""

    def __init__(self, head: _Head, rows: int) -> None:
        super().__init__(head, rows)
        n = head.sizes[1]
        # NumPy's arrays travel without gaps anyway.
        pitch = n if head.call.host else _pitch(n, head.x.itemsize)
        self.memory = head.empty((rows, pitch), head.x.dtype)

    def begin(self, count: int) -> None:
        super().begin(count)
        self.z = self.memory[:count, : self.head.sizes[1]]

    def loss(self, target: Any, out: Any) -> None:
        """The rows' losses."""
        _, smoothing, softcap, _ = self.head.numbers
        stream = self.head.stream
        found = self.top, self.total, self.hit
        logit_segments(self.z, target, *found, stream, (softcap, None))
        even = self.even if smoothing else None
        if even is not None:
            run("capped_mean")(self.z, even, stream, (softcap, None))
        self.join(target, out, even)

    def turn(self, target: Any, share: Any) -> None:
        """The logits become their gradient."""
        ignored, smoothing, softcap, _ = self.head.numbers
        given = self.z, target, self.peak, self.scale, share
        logit_gradient(*given, self.z, self.head.stream, (ignored, smoothing, softcap, None))


class _Down:
    """The gradient of the bias: a chain over the rows, as wide as sums."""

    def __init__(self, head: _Head, grads: dict[str, Any], adds: bool) -> None:
        self.head, self.memory, self.adds = head, grads["dbias"], adds
        n = head.sizes[1]
        self.wide = self.memory is not None and view(self.memory, "dbias").dtype == head.wide
        self.sums = self.memory.reshape((n, 1)) if self.wide else head.empty((n, 1), head.wide)

    def add(self, z: Any, target: Any, first: int) -> None:
        """The rows from ``first`` on."""
        head = self.head
        ones = _ones[head.wide](target.reshape((-1, 1)), out_dtype=head.x.dtype, stream=head.stream)
        begun = first > 0 or (self.adds and self.wide)
        linear_wgrad(
            ones,
            z,
            layout="nk",
            tier="simt",
            out=self.sums,
            accumulate=begun,
            chain=True,
            stream=head.stream,
        )

    def result(self) -> Any:
        """The gradient, once all rows have been added."""
        head, found = self.head, self.sums.reshape((-1,))
        if self.wide:
            return self.memory
        dtype = head.views["bias"].dtype if self.memory is None else view(self.memory, "").dtype
        how = {"out": self.memory, "out_dtype": dtype, "stream": head.stream}
        return _added(self.memory, found, **how) if self.adds else _stored(found, **how)


def _read(
    x: Any,
    w: Any,
    target: Any,
    bias: Any,
    options: tuple[Any, ...],
    stream: Any,
    gradients: bool,
) -> _Head:
    reduction, ignore_index, smoothing, softcap, z_loss, layout, tier, chunk = options
    named = {"x": x, "w": w, "target": target, "bias": bias}
    given = {name: array for name, array in named.items() if array is not None}
    for name in ("x", "w", "target"):
        if name not in given:
            raise DtypeError(f"{name} is None; takes an array")
    for name, array in given.items():
        if framework_of(array) not in FRAMEWORKS:
            raise DtypeError(
                f"{name} is a {type(array).__qualname__}; takes arrays of {', '.join(FRAMEWORKS)}"
            )
    LINEAR_CROSS_ENTROPY.check({"reduction": reduction, "layout": layout, "tier": tier})
    refuse_gradients(given)
    call = Call(given, stream)
    views = dict(call.views)
    if views["x"].dtype not in DTYPES:
        raise DtypeError(f"x has dtype {views['x'].dtype}; takes {' or '.join(DTYPES)}")
    if views["target"].dtype not in ("int64", "int32"):
        raise DtypeError(f"target has dtype {views['target'].dtype}; takes int64 or int32")
    inferred = LINEAR_CROSS_ENTROPY.infer({n: v.shape for n, v in views.items()}, layout)
    m, n, k = (inferred.sizes[s] for s in LINEAR_CROSS_ENTROPY.sizes)
    if n == 0:
        raise ShapeError("w has no class; takes at least one")
    numbers = (
        _whole("ignore_index", ignore_index),
        _number("label_smoothing", smoothing, 0.0, 1.0),
        None if softcap is None else _number("softcap", softcap, None),
        _number("z_loss", z_loss, 0.0),
    )
    if chunk is not None and _whole("chunk", chunk) < 1:
        raise OptionError(f"chunk is {chunk!r}; takes 1 or more rows")
    rows, targets = x.reshape((m, k)), target.reshape((m,))
    for name, of in (("x", rows), ("target", targets)):
        if views[name].size and not call.host and view(of, name).ptr != views[name].ptr:
            raise ShapeError(
                f"{name} has strides {list(views[name].strides)}; takes an array whose leading "
                "dimensions lie one behind the other"
            )
    if k > 1 and m and views["x"].strides[-1] != 1:
        raise apart("x", views["x"])
    for name in ("target", "bias"):
        if name in views:
            check_contiguous(name, views[name])
    itemsize = ITEMSIZE[DTYPES[views["x"].dtype]]
    return _Head(
        views["x"],
        rows,
        w,
        targets,
        bias,
        views,
        inferred.results[0],
        (m, n, k),
        reduction,
        numbers,
        layout,
        tier,
        chunk_of(m, n, k, itemsize, gradients, chunk),
        chunk,
        call,
        stream,
    )


def _whole(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise OptionError(f"{name} is {value!r}; takes an integer") from None


def _number(name: str, value: Any, least: float | None, most: float = math.inf) -> float:
    """A finite number of at least ``least``; None: a positive one."""
    found = float(value) if isinstance(value, (int, float)) else math.nan
    if math.isfinite(found) and (found > 0 if least is None else least <= found <= most):
        return found
    above = "above 0" if least is None else f"of at least {least}"
    takes = above if math.isinf(most) else f"from {least} to {most}"
    raise OptionError(f"{name} is {value!r}; takes a number {takes}")
