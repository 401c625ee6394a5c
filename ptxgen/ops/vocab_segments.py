"""Maxima and sums of segments of logits, and the logits' gradient (contract ``flce/3``)."""

from __future__ import annotations

from typing import Annotated

from ptxgen.errors import OptionError, ShapeError
from ptxgen.numerics.dtype import FULL
from ptxgen.numerics.formula import STORED, const
from ptxgen.numerics.gemm import LINEAR
from ptxgen.numerics.option import Kernel, Layout, Tier
from ptxgen.numerics.row_reductions import INDEX, REAL, SMOOTHING, SOFTCAP
from ptxgen.numerics.signature import Signature
from ptxgen.numerics.vocab_segments import LINEAR_SEGMENTS, LOGIT_GRADIENT, LOGIT_SEGMENTS, segments
from ptxgen.ops import gemm
from ptxgen.ops.views import alignment, check_dtype, dense, leading, results, rows_of, single
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.operation import op
from ptxgen.program.parameters import Out, OverX
from ptxgen.spec import ALONE, Problem
from ptxgen.spec.vocab_segments import WIDE_TARGET
from ptxgen.tiles.vocab_segments import TABLES, key, product_key

_DTYPES = {FULL[short]: short for short in REAL}
Scalars = tuple[tuple[str, int | float], ...]
Ignored = Annotated[int, INDEX]
Smoothing = Annotated[float, SMOOTHING]
Softcap = Annotated[float | None, SOFTCAP]


def _pitch(name: str, view: Buffer, count: int, width: int) -> int:
    """Returns the pitch, in elements, of ``view`` with ``count`` rows of ``width`` elements (of a
    single row: ``width`` rounded up to 16 bytes). Raises ShapeError unless rows are evenly spaced
    and have stride 1.
    """
    *_, down = rows_of(name, view)
    alignment(name, view, down if count > 1 else 0)
    return leading(count, width, down, view.itemsize)


def _read(signature: Signature, **given: Buffer | None) -> tuple[str, int, int]:
    """Checks the arrays; returns the logits' short dtype, number of rows, and of classes."""
    there = {name: x for name, x in given.items() if x is not None}
    x = there["x"]
    check_dtype("x", x.dtype, _DTYPES)
    dtype = _DTYPES[x.dtype]
    for name, view in there.items():
        wide = (FULL[STORED[dtype]],)
        taken = {"x": (x.dtype,), "target": ("int64", "int32")}.get(name, wide)
        check_dtype(name, view.dtype, taken)
        if name != "x":
            dense(name, view, result=False)
    width = x.shape[-1] if x.shape else 0
    if width == 0:
        raise ShapeError(f"{signature.name} takes at least one class; got rows of none")
    shapes = {name: view.shape for name, view in there.items()}
    return dtype, signature.infer(shapes, given={"S": segments(width)}).sizes["M"], width


def _caps(softcap: float | None, wide: str) -> Scalars:
    """Returns the scalars of a softcap: the cap and its inverse; none without a softcap."""
    if softcap is None:
        return ()
    cap = const(softcap, wide).data
    return ("SOFTCAP", cap), ("INVERSE", const(1 / cap, wide).data)  # f64 holds enough for f32


def _wide(target: Buffer) -> int:
    return WIDE_TARGET if target.dtype == "int64" else 0


def _memory(
    b: ProgramBuilder, signature: Signature, out: object, lead: tuple[int, ...], n: int, dtype: str
) -> tuple[Buffer, ...]:
    """Returns memory for the maxima and sums of segments, and for the logit of each target:
    ``out``, checked, or new buffers of ``dtype``. ``lead``: shape of the rows; ``n``: classes.
    """
    shapes = signature.shapes({"S": segments(n)}, next(iter(signature.forms)), lead, _KEPT)
    memory = results(out, 3)  # type: ignore[arg-type]
    made = zip(_KEPT, shapes, memory, strict=True)
    targets = tuple(b.result(shape, dtype, m, name) for name, shape, m in made)
    for name, target in zip(_KEPT, targets, strict=True):
        dense(name, target)
    return targets


_KEPT = ("top", "total", "hit")


@op(forms=LOGIT_SEGMENTS, public=False, dtypes={"target": "int64"})
def logit_segments(
    b: ProgramBuilder,
    x: Buffer,
    target: Buffer,
    *,
    softcap: Softcap = None,
    out: Out = None,
    kernel: Kernel = None,
) -> tuple[Buffer, ...]:
    """``max(z)`` and ``sum(exp(z - max(z)))`` of each segment of a row of logits, and the target's
    logit (:mod:`ptxgen.numerics.vocab_segments`).
    """
    dtype, count, width = _read(LOGIT_SEGMENTS, x=x, target=target)
    kept = _memory(b, LOGIT_SEGMENTS, out, x.shape[:-1], width, FULL[STORED[dtype]])
    if not b.abstract and count:
        scalars: Scalars = (("LDX", _pitch("x", x, count, width)), ("FLAGS", _wide(target)))
        scalars += _caps(softcap, STORED[dtype])
        values, what = (("ROWS", count), ("COLS", width)), f"logit_segments M={count} N={width}"
        table = key("segments", softcap is not None)
        bind = {"x": x, "target": target, **dict(zip(_KEPT, kept, strict=True))}
        b.launch(lambda: Problem(table, dtype, values, scalars, what), bind, kernel)
    return kept


@op(forms=LOGIT_GRADIENT, public=False, dtypes={"target": "int64", "top": "wide", "scale": "wide"})
def logit_gradient(
    b: ProgramBuilder,
    x: Buffer,
    target: Buffer,
    top: Buffer,
    scale: Buffer,
    dy: Buffer | None = None,
    *,
    ignore_index: Ignored = -100,
    label_smoothing: Smoothing = 0.0,
    softcap: Softcap = None,
    out: OverX = None,
    kernel: Kernel = None,
) -> Buffer:
    """Computes the gradient of a row's loss by its logits ``x``, times ``dy`` of the row
    (:mod:`ptxgen.numerics.vocab_segments`). ``top``: the row's largest logit; ``scale``: the factor
    that turns ``exp(z - top)`` into the gradient by logit z, before the target's and smoothing's
    terms (``1 / sum(exp(z - top))``, if there is no ``z_loss``).
    """
    given = {"x": x, "target": target, "top": top, "scale": scale, "dy": dy}
    dtype, count, width = _read(LOGIT_GRADIENT, **given)
    g = b.result(x.shape, x.dtype, single(out), "g")
    if not b.abstract and count:
        scalars: Scalars = (
            ("LDX", _pitch("x", x, count, width)),
            ("FLAGS", _wide(target)),
            ("IGNORE_INDEX", ignore_index),
            ("SMOOTHING", label_smoothing),
            *_caps(softcap, STORED[dtype]),
            ("LDG", _pitch("g", g, count, width)),
        )
        values, what = (("ROWS", count), ("COLS", width)), f"logit_gradient M={count} N={width}"
        table = key("gradient", softcap is not None)
        b.launch(lambda: Problem(table, dtype, values, scalars, what), {**given, "g": g}, kernel)
    return g


@op(forms=LINEAR_SEGMENTS, public=False, dtypes={"target": "int64"})
def linear_segments(
    b: ProgramBuilder,
    x: Buffer,
    w: Buffer,
    target: Buffer,
    bias: Buffer | None = None,
    *,
    layout: Layout = "nk",
    tier: Tier = "auto",
    softcap: Softcap = None,
    out: Out = None,
    kernel: Kernel = None,
) -> tuple[Buffer, ...]:
    """Computes :func:`logit_segments` of the logits ``x . W + bias``, which are not stored.

    Raises UncoveredError if no kernel of a product does that.
    """
    check_dtype("target", target.dtype, ("int64", "int32"))
    dense("target", target, result=False)
    factors = {n: v for n, v in (("x", x), ("w", w), ("bias", bias)) if v is not None}
    found = gemm.read(
        LINEAR,
        factors,
        layout=layout,
        tier=tier,
        wanted=x.dtype,
        kernel=kernel,
        served=lambda storage, _: product_key(storage, False) in TABLES,
    )
    if found.tier != "tc":
        raise OptionError(f"tier is {found.tier!r}; linear_segments takes 'tc'")
    m, n, k = found.dims
    shapes = {name: view.shape for name, view in (*factors.items(), ("target", target))}
    LINEAR_SEGMENTS.infer(shapes, layout, given={"S": segments(n)})
    kept = _memory(b, LINEAR_SEGMENTS, out, x.shape[:-1], n, "float32")
    if b.abstract or m == 0:
        return kept
    scalars: dict[str, int | float] = {**dict(ALONE), "LDA": found.lds[0], "LDB": found.lds[1]}
    scalars |= {"FLAGS": found.flags | _wide(target), "K": k, **dict(_caps(softcap, "f32"))}
    aligns = (("ALIGN_A", found.aligns[0]), ("ALIGN_B", found.aligns[1]))
    problem = Problem(
        product_key(found.storage, softcap is not None),
        found.dtype,
        (("M", m), ("N", n), ("K", max(k, 1)), *aligns),
        tuple(scalars.items()),
        f"linear_segments M={m} N={n} K={k}",
    )
    b.require(problem)
    bind = {"a": x, "b": w, "target": target, "bias": bias, **dict(zip(_KEPT, kept, strict=True))}
    b.launch(lambda: problem, bind, kernel)
    return kept
