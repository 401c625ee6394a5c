"""Losses: cross-entropy, and cross-entropy fused with the last layer, in chunks of rows.

A fused loss is composed of other operations: product, maxima and sums of the logits' segments, loss
and gradient over rows, products. A chunk's gradient overwrites its logits, and all chunks share one
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Annotated, Any

from ptxgen.errors import DtypeError, IndexRangeError, OptionError, ShapeError, UncoveredError
from ptxgen.numerics.dtype import DTYPES
from ptxgen.numerics.flce import LINEAR_CROSS_ENTROPY, chunk_of, rows_at_once, segmented
from ptxgen.numerics.option import Bool, Choice, Dtype, Integer, Kernel, Real, Reduction, Tier
from ptxgen.numerics.row_reductions import TABLE, Z_LOSS, no_class
from ptxgen.numerics.vocab_segments import segments
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import ALIGN_MAX, check_contiguous, check_dtype, result_dtype, single
from ptxgen.ops.vocab_segments import Ignored, Smoothing, Softcap
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Either, Out, Written

ZLoss = Annotated[float, Z_LOSS]
Chunk = Annotated[int | None, Integer(1)]
NkLayout = Annotated[str, Choice("nk", "kn")]
Wanted = Annotated[Any, Written(flag=True)]

_added = Pointwise(lambda old, new: old + new, "added")
_stored = Pointwise(lambda x: x, "stored")


# -- targets ----------------------------------------------------------------------------------
def _in_range(of: str, classes: Callable[[Mapping[str, Any], Mapping[str, Any]], int]) -> Any:
    """Returns a check of a call's targets. It raises IndexRangeError for a target that is neither
    in 0 .. N - 1 nor ``ignore_index``, where N is ``classes(arrays, options)``. ``of``: the
    argument that has the classes, for the message.
    """

    def check(arrays: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        target, ignored, count = arrays["target"], options["ignore_index"], classes(arrays, options)
        if 0 in target.shape:
            return
        wrong = no_class(target, ignored, count)
        if bool(wrong.any()):
            found = int(target[wrong][0]) if target.shape else int(target)
            raise IndexRangeError(
                f"target has {found}; of the {count} classes of {of} takes 0 .. {count - 1}, or "
                f"{ignored} for rows that are left out"
            )

    return check


def _reduced(
    b: Any, losses: Any, target: Any, reduction: str, ignore_index: int, out: Any = None
) -> Any:
    """Reduces the rows' losses: returns them ("none"), their "sum", or their "mean". ``out``:
    memory of the losses' dtype for a sum or mean, or None.
    """
    if reduction == "none":
        return losses
    flat = b.reshape(losses, (prod(losses.shape),))
    if reduction == "sum":
        return b.rows("sum", flat, out=out)
    targets = b.packed(b.reshape(target, flat.shape))
    return b.rows("mean_loss", flat, targets, ignore_index=ignore_index, out=out)


# -- of logits --------------------------------------------------------------------------------
def _cross_entropy_vjp(b: Builder, at: Backward) -> Gradients:
    x, target, how = b.packed(at["x"]), b.packed(at["target"]), at.options
    (dy,), shape = at.dys, tuple(at["target"].shape)
    if how["reduction"] == "mean":
        flat = b.reshape(target, (prod(shape),))
        dy = b.rows("mean_loss_backward", dy, flat, ignore_index=how["ignore_index"])
        dy = b.reshape(dy, shape)
    elif how["reduction"] == "sum":
        dy = b.expand(dy, shape)
    of = at.only("ignore_index", "label_smoothing", "softcap", "z_loss")
    return {"x": b.rows("cross_entropy_backward", x, target, b.packed(dy), **of)}


@op(
    forms=TABLE["cross_entropy"].signature,
    vjp=_cross_entropy_vjp,
    checks=_in_range("x", lambda arrays, _: arrays["x"].shape[-1]),
    dtypes={"target": "int64"},
)
def cross_entropy(
    b: ProgramBuilder,
    x: Buffer,
    target: Buffer,
    *,
    reduction: Reduction = "mean",
    ignore_index: Ignored = -100,
    label_smoothing: Smoothing = 0.0,
    softcap: Softcap = None,
    z_loss: ZLoss = 0.0,
    check: Bool = False,
    kernel: Kernel = None,
) -> Buffer:
    """The cross-entropy of logits ``x`` at the classes ``target``.

    Let ``z = x``, or ``softcap * tanh(x / softcap)``, ``m = max(z)`` and ``l = log(sum(exp(z -
    m)))``. The loss of a row is ``(1 - e) * (l - (z[target] - m)) + e * (l - (mean(z) - m)) +
    z_loss * (l + m)**2``, with ``label_smoothing`` e. It is 0 where the target is
    ``ignore_index``.

    Shapes
        ``x`` ``[..., N]``; ``target`` ``[...]``; the loss is a scalar ``[]``, or ``[...]`` with
        ``reduction="none"``.
    Dtypes
        ``x`` float32, bfloat16, float16 or float64; ``target`` int64 or int32. The loss is float32
        (float64 of float64).
    Options
        ``reduction``: "none" returns the rows' losses; "sum"; "mean" divides the sum by the number
        of targets that are not ``ignore_index``. Without such targets the mean and its gradients
        are 0.0; PyTorch returns NaN. ``label_smoothing``: 0 .. 1. ``softcap``: above 0, or None.
        ``z_loss``: at least 0. ``check``: waits for the targets, and raises IndexRangeError for one
        that is no class; targets in host memory are always checked. Without it, such a row has the
        loss 0, and counts in the mean. ``kernel``: the kernel of the rows' losses.
    Order
        Contract ``rows/1``: each operation is rounded once in f32 (f64 of float64); rows are added
        in an order that N alone decides, losses in one that the number of rows decides.
        :func:`ptxgen.reference.cross_entropy` returns the same bits.
    Errors
        IndexRangeError for a target that is no class, in host memory or with ``check``; ShapeError,
        DtypeError, OptionError, DeviceError, GradError or CompileError, before anything is launched
        or written.
    Source
        ``ptxgen/ops/losses.py``, ``ptxgen/numerics/row_reductions.py``.
    """
    how = {"label_smoothing": label_smoothing, "softcap": softcap, "z_loss": z_loss}
    losses = b.rows("cross_entropy", x, target, ignore_index=ignore_index, kernel=kernel, **how)
    found: Buffer = _reduced(b, losses, target, reduction, ignore_index)
    return found


# -- of the last layer ------------------------------------------------------------------------
def _linear_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``linear_cross_entropy``; the logits are recomputed."""
    wanted = {f"d{n}": n in at.needs for n in ("x", "w", "bias")}
    given = (at[n] for n in ("x", "w", "target", "bias"))
    how = {n: v for n, v in at.options.items() if n not in ("check", "out_dtype")}
    _, *found = b.linear_cross_entropy_grad(*given, **wanted, dy=b.packed(at.dys[0]), **how)
    return {n: d for n, d in zip(("x", "w", "bias"), found, strict=True) if n in at.needs}


def _classes(arrays: Mapping[str, Any], options: Mapping[str, Any]) -> int:
    return int(arrays["w"].shape[options["layout"].index("n")])


@op(
    forms=LINEAR_CROSS_ENTROPY,
    vjp=_linear_vjp,
    checks=_in_range("w", _classes),
    dtypes={"target": "int64"},
)
def linear_cross_entropy(
    b: ProgramBuilder,
    x: Buffer,
    w: Buffer,
    target: Buffer,
    bias: Buffer | None = None,
    *,
    reduction: Reduction = "mean",
    ignore_index: Ignored = -100,
    label_smoothing: Smoothing = 0.0,
    softcap: Softcap = None,
    z_loss: ZLoss = 0.0,
    layout: NkLayout = "nk",
    tier: Tier = "auto",
    chunk: Chunk = None,
    check: Bool = False,
    out: Out = None,
    out_dtype: Dtype = None,
) -> Buffer:
    """``cross_entropy(linear(x, w, bias), target)``, without the logits in memory.

    Shapes
        ``x`` ``[..., H]``; ``w`` ``[V, H]`` (``layout="nk"``) or ``[H, V]`` (``"kn"``); ``target``
        ``[...]``; ``bias`` ``[V]``. The loss is a scalar ``[]``, or ``[...]`` with
        ``reduction="none"``.
    Dtypes
        ``x`` and ``w`` bfloat16, float16, float32 or float64; ``bias`` as they are, or float32;
        ``target`` int64 or int32. The loss is float32 (float64 of float64) or, if ``out`` or
        ``out_dtype`` says so, has the dtype of ``x``: it is then rounded once more.
    Options
        ``reduction``, ``ignore_index``, ``label_smoothing``, ``softcap``, ``z_loss``, ``check``: as
        of :func:`ptxgen.cross_entropy`. If every target is ``ignore_index``, the mean and its
        gradients are 0.0; PyTorch returns NaN. ``chunk``: rows at a time, rounded up to a multiple
        of 16 where logits are in memory; by default such that a call's temporaries take less than
        64 MB (:mod:`ptxgen.numerics.flce`).
    Order
        Contract ``flce/3`` (:mod:`ptxgen.numerics.flce`): a row's loss depends on that row and on
        ``w`` alone; not on the batch, nor on the chunk.
        :func:`ptxgen.reference.linear_cross_entropy` returns the same bits.
    Memory
        8 bytes for 256 of a chunk's logits, a loss a row and, where no product kernel reduces
        logits to such segments, the chunk's logits; allocated by the arrays' framework.
    Errors
        As of :func:`ptxgen.cross_entropy`. A call waits for the GPU only with ``check``.
    Source
        ``ptxgen/ops/losses.py``; chunking follows Liger-Kernel.
    """
    how = _Options(reduction, ignore_index, label_smoothing, softcap, z_loss, layout, tier, chunk)
    of = _FusedLoss(b, x, w, target, bias, how, {}, single(out), out_dtype)
    loss: Buffer = of.lowered(None, False)[0]
    return loss


@op(
    forms=LINEAR_CROSS_ENTROPY,
    checks=_in_range("w", _classes),
    dtypes={"target": "int64"},
    results=("loss", "dx", "dw", "dbias"),
)
def linear_cross_entropy_grad(
    b: ProgramBuilder,
    x: Buffer,
    w: Buffer,
    target: Buffer,
    bias: Buffer | None = None,
    *,
    loss: Out = None,
    dx: Wanted = True,
    dw: Wanted = True,
    dbias: Wanted = None,
    dy: Annotated[Any, Either(Real(least=-3e38, most=3e38))] = None,
    accumulate: Bool = False,
    reduction: Reduction = "mean",
    ignore_index: Ignored = -100,
    label_smoothing: Smoothing = 0.0,
    softcap: Softcap = None,
    z_loss: ZLoss = 0.0,
    layout: NkLayout = "nk",
    tier: Tier = "auto",
    chunk: Chunk = None,
    check: Bool = False,
    out_dtype: Dtype = None,
) -> tuple[Buffer | None, ...]:
    """The loss and its gradients ``(loss, dx, dw, dbias)``, in one pass over the rows.

    Shapes
        Those of :func:`ptxgen.linear_cross_entropy`; a gradient has its argument's shape.
    Dtypes
        As there, the loss by ``loss`` or ``out_dtype``; a gradient has its argument's dtype, or
        that of the memory passed.
    Gradients
        ``loss``: memory for the loss, or None. ``dx``, ``dw``, ``dbias``: True, False (then None is
        returned), or memory to write to, of the operand's dtype or the accumulation dtype (float32;
        float64 of float64). ``dbias`` is by default True if there is a bias. ``accumulate`` adds dw
        and dbias to their memory, such as a main gradient.
        ``dy``: the incoming gradient by the loss: a scalar, an array of one (both at no cost), or
        for "none" one a row (default: 1).
    Options
        The others are those of :func:`ptxgen.linear_cross_entropy`.
    Order
        Contract ``flce/3``. dx depends on neither chunk nor other rows; dw and dbias in the
        accumulation dtype are one chain over all rows, whatever the chunk. A 16-bit dw is rounded
        after each chunk, so it depends on ``chunk``: pass float32 memory if it must not.
        :func:`ptxgen.reference.linear_cross_entropy_grad` returns the same bits.
    Memory
        A chunk's logits (by default about the bytes of x; 128 to 2048 rows), 8 bytes for 256 of
        them, 20 bytes a row, and for dbias 4 bytes a class.
    Errors
        As of :func:`ptxgen.linear_cross_entropy`; OptionError for ``dbias`` without a bias, and for
        ``accumulate`` without memory.
    """
    how = _Options(reduction, ignore_index, label_smoothing, softcap, z_loss, layout, tier, chunk)
    if dbias is None:
        dbias = bias is not None
    elif dbias is not False and bias is None:
        raise OptionError("dbias is wanted, but there is no bias; leave it away")
    given = (("dx", dx), ("dw", dw), ("dbias", dbias))
    wanted = {n: None if m is True else m for n, m in given if m is not False and m is not None}
    if accumulate and not any(wanted.get(n) is not None for n in ("dw", "dbias")):
        raise OptionError("accumulate=True adds to dw and dbias, but no memory is passed")
    of = _FusedLoss(b, x, w, target, bias, how, wanted, single(loss), out_dtype)
    return of.lowered(dy, accumulate)


@dataclass(frozen=True)
class _Options:
    """Options of a fused loss, as :func:`linear_cross_entropy` takes them."""

    reduction: str
    ignore_index: int
    label_smoothing: float
    softcap: float | None
    z_loss: float
    layout: str
    tier: str
    chunk: int | None

    def only(self, *names: str) -> dict[str, Any]:
        """Returns the options of these names as a dict."""
        return {name: getattr(self, name) for name in names}


class _FusedLoss:
    """Lowers one call of a fused loss, and of its gradients. ``how``: its options; ``wanted``:
    names of the gradients to compute ("dx", "dw", "dbias"), with their memory, or None for new
    memory; ``out``, ``out_dtype``: memory and dtype of the loss, or None.
    """

    def __init__(
        self,
        b: ProgramBuilder,
        x: Buffer,
        w: Buffer,
        target: Buffer,
        bias: Buffer | None,
        how: _Options,
        wanted: Mapping[str, Buffer | None],
        out: Buffer | None,
        out_dtype: str | None,
    ) -> None:
        check_dtype("x", x.dtype, DTYPES)
        check_dtype("target", target.dtype, ("int64", "int32"))
        given = {"x": x, "w": w, "target": target, "bias": bias}
        shapes = {n: v.shape for n, v in given.items() if v is not None}
        inferred = LINEAR_CROSS_ENTROPY.infer(shapes, how.layout)
        m, n, k = self.sizes = tuple(inferred.sizes[s] for s in LINEAR_CROSS_ENTROPY.sizes)
        if n == 0:
            raise ShapeError("w has no class; takes at least one")
        self.b, self.how, self.dtype = b, how, x.dtype
        self.wide = "float64" if x.dtype == "float64" else "float32"
        self.like = given
        self.shape = target.shape
        self.given = {n for n, memory in wanted.items() if memory is not None}
        self.wanted = {n: self._memory(n, memory) for n, memory in wanted.items()}
        rows = b.reshape(x, (m, k))
        self.x = rows if b.abstract or k <= 1 or rows.strides[1] == 1 else b.contiguous(rows)
        self.w, self.bias = w, b.packed(bias)
        self.target = b.packed(b.reshape(target, (m,)))
        self.chunk = chunk_of(m, n, k, x.itemsize, bool(wanted), how.chunk)
        self.of = {"layout": how.layout, "tier": how.tier}
        dtype = result_dtype(out_dtype, out, self.wide, (self.wide, self.dtype))
        shape = self.shape if how.reduction == "none" else ()
        self.out = None if out is None else b.result(shape, dtype, out)
        self.loss = shape, dtype

    def _memory(self, name: str, memory: Buffer | None) -> Buffer:
        """Returns memory for gradient ``name``: ``memory``, checked, or a new buffer for None."""
        like = self.like[name[1:]]
        assert like is not None, "checked before"
        if memory is None:
            return self.b.empty(like.shape, like.dtype, name)
        taken = tuple(dict.fromkeys((self.dtype, like.dtype, self.wide)))
        check_dtype(name, memory.dtype, taken)
        check_contiguous(name, memory, result=True)
        return self.b.result(like.shape, memory.dtype, memory, name)

    def lowered(self, dy: Any, accumulate: bool) -> tuple[Any, ...]:
        """Records the launches of the call; returns the loss, dx, dw and dbias, or Nones."""
        b, (m, _, k), wanted = self.b, self.sizes, self.wanted
        if b.abstract:
            return (b.result(*self.loss, self.out), *map(wanted.get, ("dx", "dw", "dbias")))
        losses = b.empty((m,), self.wide, "losses")
        share = self._share(dy) if wanted else None
        if wanted or not self._try_without_logits(losses):
            logits = _Logits(self, min(self.chunk, m))
            adds = {n: accumulate and n in self.given for n in wanted}
            down = (
                _BiasGradient(self, wanted["dbias"], adds["dbias"]) if "dbias" in wanted else None
            )
            dx = b.reshape(wanted["dx"], (m, k)) if "dx" in wanted else None
            for first, last in self._chunks(self.chunk):
                count = last - first
                x, target = (b.narrow(v, 0, first, count) for v in (self.x, self.target))
                z = logits.loss(x, target, b.narrow(losses, 0, first, count))
                if not wanted:
                    continue
                logits.to_gradient(z, target, share and b.narrow(share, 0, first, count))
                if dx is not None:
                    b.linear_dgrad(z, self.w, out=b.narrow(dx, 0, first, count), **self.of)
                if "dw" in wanted:
                    how = {"accumulate": first > 0 or adds["dw"], "chain": True, **self.of}
                    b.linear_wgrad(x, z, out=wanted["dw"], **how)
                if down is not None:
                    down.add(z, first)
            if down is not None:
                down.finish()
        options, rows = self.how, b.reshape(losses, self.shape)
        memory = self.out if self.loss[1] == self.wide else None
        loss = _reduced(b, rows, self.target, options.reduction, options.ignore_index, memory)
        loss = b.delivered(b.cast(loss, self.loss[1]), self.out)
        return (loss, *map(wanted.get, ("dx", "dw", "dbias")))

    def _chunks(self, rows: int) -> Iterator[tuple[int, int]]:
        """Yields the range [first, last) of each chunk of ``rows`` rows; without rows, (0, 0)."""
        count = self.sizes[0]
        for first in range(0, max(count, 1), rows):
            yield first, min(first + rows, count)

    def _try_without_logits(self, losses: Buffer) -> bool:
        """Records the rows' losses without logits in memory; False if no kernel can do that."""
        (m, n, _), b = self.sizes, self.b
        if not segmented(DTYPES[self.dtype], self.how.tier, self.how.label_smoothing):
            return False
        chunk = rows_at_once(n, self.how.chunk)
        rows = _ChunkBuffers(self, min(chunk, m))
        try:
            for first, last in self._chunks(chunk):
                count = last - first
                x, target = (b.narrow(v, 0, first, count) for v in (self.x, self.target))
                kept, how = rows.kept(count), {**self.of, "softcap": self.how.softcap}
                b.linear_segments(x, self.w, target, self.bias, out=kept, **how)
                rows.combine(target, b.narrow(losses, 0, first, count))
        except UncoveredError:  # raised by the first chunk: others differ only in rows
            return False
        return True

    def _share(self, dy: Any) -> Buffer | None:
        """Returns the gradient by the loss of each row. ``dy``: the gradient by the reduced loss, a
        number or array (None: 1), which is spread over the rows as the reduction demands. Returns
        None if all are 1.
        """
        name = "mean" if self.how.reduction == "mean" else "sum"
        op = f"{name}_shares_{'f64' if self.wide == 'float64' else 'f32'}"
        how = {"ignore_index": self.how.ignore_index}
        if isinstance(dy, Buffer):
            by_row = self.how.reduction == "none" and dy.shape == self.shape
            if not by_row and dy.size != 1:
                takes = f"{list(self.shape)}, or [] for all" if self.how.reduction == "none" else []
                raise ShapeError(f"dy has shape {list(dy.shape)}; takes {takes}")
            if dy.dtype not in DTYPES or (dy.dtype == "float64") != (self.wide == "float64"):
                raise DtypeError(f"dy has dtype {dy.dtype}; takes {self.wide}")
            check_contiguous("dy", dy)
            found: Buffer
            if by_row:
                found = self.b.cast(self.b.reshape(dy, (self.sizes[0],)), self.wide)
            else:
                found = self.b.rows(op, self.target, self.b.reshape(dy, ()), **how)
            return found
        times = 1.0 if dy is None else dy
        if name == "sum" and times == 1:
            return None
        found = self.b.rows(op, self.target, times=times, **how)
        return found


class _ChunkBuffers:
    """Buffers for a chunk of rows of a fused loss, without its logits: the maximum and sum of each
    segment of a row's logits, and arrays of one element a row. ``rows``: most rows of a chunk.
    """

    def __init__(self, call: _FusedLoss, rows: int) -> None:
        self.call, b = call, call.b
        shape = (rows, segments(call.sizes[1]))
        self.segments = [b.empty(shape, call.wide, name) for name in ("top", "total")]
        by_row = ("hit", "peak", "scale", "even")
        """Arrays of one element a row: target's logit, maximum, scale of the gradient, mean logit.
        """
        self.by_row = {name: b.empty((rows,), call.wide, name) for name in by_row}

    def kept(self, count: int) -> tuple[Buffer, Buffer, Buffer]:
        """Returns the buffers of the first ``count`` rows that :func:`logit_segments` fills: the
        segments' maxima and sums, and the targets' logits.
        """
        top, total = (self.call.b.narrow(s, 0, 0, count) for s in self.segments)
        return top, total, self.row("hit", count)

    def row(self, name: str, count: int) -> Buffer:
        """Returns the first ``count`` elements of the per-row array ``name``."""
        return self.call.b.narrow(self.by_row[name], 0, 0, count)

    def combine(self, target: Buffer, out: Buffer, even: Buffer | None = None) -> None:
        """Records the launch that combines the segments of each row to the row's loss (``out``),
        and to its maximum and the scale of its gradient, which are stored in these buffers.
        ``even``: mean logit of each row, needed for label smoothing.
        """
        how, b, count = self.call.how, self.call.b, target.shape[0]
        kept, made = self.kept(count), (out, self.row("peak", count), self.row("scale", count))
        of = how.only("ignore_index", "label_smoothing", "softcap", "z_loss")
        classes = self.call.sizes[1]
        b.rows("cross_entropy_joined", *kept, target, even, out=made, classes=classes, **of)


class _Logits(_ChunkBuffers):
    """Buffers for a chunk of rows of a fused loss that keeps the chunk's logits in memory. The
    logits' gradient overwrites the logits.
    """

    def __init__(self, call: _FusedLoss, rows: int) -> None:
        super().__init__(call, rows)
        n, unit = call.sizes[1], ALIGN_MAX // call.x.itemsize
        pitch = -(-n // unit) * unit  # rows begin at multiples of 16 bytes
        self.memory = call.b.narrow(call.b.empty((rows, pitch), call.dtype, "logits"), 1, 0, n)

    def loss(self, x: Buffer, target: Buffer, out: Buffer) -> Buffer:
        """Records the logits of rows ``x`` and their losses ``out``, and returns the logits."""
        call, b, count = self.call, self.call.b, target.shape[0]
        z: Buffer = b.narrow(self.memory, 0, 0, count)
        b.linear(x, call.w, call.bias, out=z, **call.of)
        softcap = call.how.softcap
        b.logit_segments(z, target, softcap=softcap, out=self.kept(count))
        even = self.row("even", count) if call.how.label_smoothing else None
        if even is not None:
            b.rows("capped_mean", z, softcap=softcap, out=even)
        self.combine(target, out, even)
        return z

    def to_gradient(self, z: Buffer, target: Buffer, share: Buffer | None) -> None:
        """Records the logits' gradient, in place of the logits ``z``; ``share``: dy of each row."""
        how, count = self.call.how, target.shape[0]
        given = target, self.row("peak", count), self.row("scale", count), share
        of = how.only("ignore_index", "label_smoothing", "softcap")
        self.call.b.logit_gradient(z, *given, **of, out=z)


class _BiasGradient:
    """Gradient of a fused loss by the bias: the sum of the logits' gradients over all rows, one
    chain in the accumulation dtype. ``memory``: memory of the result; ``adds``: whether the sum is
    added to its old values.
    """

    def __init__(self, call: _FusedLoss, memory: Buffer, adds: bool) -> None:
        self.call, self.memory, self.adds = call, memory, adds
        b, n, rows = call.b, call.sizes[1], min(call.chunk, call.sizes[0])
        self.wide = memory.dtype == call.wide
        self.sums = b.reshape(memory, (n, 1)) if self.wide else b.empty((n, 1), call.wide, "sums")
        self.ones = b.filled((rows, 1), call.dtype, 1.0)

    def add(self, z: Buffer, first: int) -> None:
        """Records adding the logits' gradients ``z`` of the rows from index ``first`` on."""
        b, begun = self.call.b, first > 0 or (self.adds and self.wide)
        ones = b.narrow(self.ones, 0, 0, z.shape[0])
        how = {"layout": "nk", "tier": "simt", "accumulate": begun, "chain": True}
        b.linear_wgrad(ones, z, out=self.sums, **how)

    def finish(self) -> None:
        """Records the write of the sums to the gradient's memory, after the last rows."""
        if self.wide:
            return
        b, found = self.call.b, self.call.b.reshape(self.sums, self.memory.shape)
        if self.adds:
            b.call(_added, self.memory, found, out=self.memory)
        else:
            b.call(_stored, found, out=self.memory)
