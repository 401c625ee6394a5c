"""Rotary embedding of the heads of queries and keys, with the roundings of `transformers`."""

from __future__ import annotations

from typing import Annotated, Any

from ptxgen.errors import OptionError, ShapeError
from ptxgen.numerics.dtype import NAMES, SINGLE
from ptxgen.numerics.option import Bool, Eps, Kernel
from ptxgen.numerics.rotary import rotate
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.views import ALIGN_MAX, alignment, check_dtype
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.operation import op
from ptxgen.program.parameters import Written
from ptxgen.spec import Problem
from ptxgen.spec.rotary import ARRAYS, HEADS_MAX, PER_LANE, SPACE, Form
from ptxgen.tiles.rotary import KEY

_rotated = Pointwise(rotate, "rotary")


@op(name="rotary", public=False)
def rotate_heads(
    b: ProgramBuilder,
    q: Buffer,
    k: Buffer | None,
    positions: Buffer,
    cos_sin: Buffer,
    q_weight: Buffer | None = None,
    k_weight: Buffer | None = None,
    *,
    eps: Eps = 1e-6,
    interleaved: Bool = False,
    q_out: Annotated[Any, Written(over=("q",))] = None,
    k_out: Annotated[Any, Written(over=("k",))] = None,
    kernel: Kernel = None,
) -> Any:
    """``x * cos + rotate_half(x) * sin`` of the heads of ``q`` and ``k``, each normalised before if
    there are weights (:func:`ptxgen.rms_norm`, ``rounded``).

    ``cos_sin``: cos and sin of each position, ``[P, R]``; a position beyond it gives zeros. The
    first R elements of a head are rotated, element i with element i + R / 2 or, ``interleaved``,
    2 i with 2 i + 1. One kernel computes both arrays where it can (:func:`_launch`); else a launch
    gathers the rows of angles, and each array has launches of its own.
    """
    check_dtype("q", q.dtype, SINGLE)
    check_dtype("cos_sin", cos_sin.dtype, (q.dtype,))
    if len(cos_sin.shape) != 2 or cos_sin.shape[1] % 2:
        raise ShapeError(f"cos_sin has shape {list(cos_sin.shape)}; takes [P, R], R even")
    tokens, width = positions.shape, cos_sin.shape[1]
    given = {"q": (q, q_weight, q_out), "k": (k, k_weight, k_out)}
    heads: list[tuple[Buffer, Buffer | None, Buffer]] = []
    for name, (x, weight, out) in given.items():
        if x is None:
            continue
        check_dtype(name, x.dtype, (q.dtype,))
        if len(x.shape) != 3 or x.shape[:1] != tokens or x.shape[2] < width:
            raise ShapeError(
                f"{name} has shape {list(x.shape)}, positions {list(tokens)}; takes [T, H, D], D "
                f"at least {width}"
            )
        if weight is not None:
            check_dtype(f"{name}_weight", weight.dtype, (q.dtype,))
        heads.append((x, weight, b.result(x.shape, x.dtype, out)))
    if not _launch(b, heads, positions, cos_sin, eps, interleaved, kernel):
        rows = b.embedding(cos_sin, positions)
        for x, weight, y in heads:
            normed = x if weight is None else b.rms_norm(x, weight, eps, rounded=True)
            _rotate(b, normed, rows, y, interleaved)
    return heads[0][2] if len(heads) == 1 else tuple(y for _, _, y in heads)


def _rotate(b: ProgramBuilder, x: Buffer, rows: Buffer, y: Buffer, interleaved: bool) -> None:
    """Writes ``x``, rotated by the ``rows`` [T, R] of cos and sin, to ``y``."""
    width = rows.shape[1]
    half = width // 2
    starts, step = ((0, 1), 2) if interleaved else ((0, half), 1)
    angles = [b.unsqueeze(b.narrow(rows, -1, at, half), 1) for at in (0, half)]
    parts = [[b.narrow(v, -1, at, half, step) for at in starts] for v in (x, y)]
    b.call(_rotated, *parts[0], *angles, out=tuple(parts[1]))
    rest = x.shape[2] - width
    if rest and not y.same(x):
        b.copied(b.narrow(x, -1, width, rest), b.narrow(y, -1, width, rest))


def _launch(
    b: ProgramBuilder,
    heads: list[tuple[Buffer, Buffer | None, Buffer]],
    positions: Buffer,
    cos_sin: Buffer,
    eps: float,
    interleaved: bool,
    kernel: str | None,
) -> bool:
    """Records the launch of the kernel that rotates ``heads``, for queries and keys the array, the
    weight of a norm and the result. Returns whether there is one: for halves of whole heads of 16
    bits, with rows at multiples of 16 bytes. Raises OptionError for a ``kernel`` where none is.
    """
    (q, q_weight, q_out), (k, k_weight, k_out) = heads[0], heads[-1]
    arrays = dict(zip(ARRAYS, (q, k, q_out, k_out), strict=True))
    weights = {"q_weight": q_weight, "k_weight": k_weight}
    given = {n: w for n, w in weights.items() if w is not None}
    count, tokens, width = q.shape[1] + k.shape[1], q.shape[0], q.shape[2]
    form = Form(NAMES[q.dtype], width, bool(given))
    values = {"TOKENS": tokens, "HEADS": count, "LANES": width // PER_LANE}
    fits = (
        len(heads) == 2
        and form.served
        and not interleaved
        and cos_sin.shape[1] == width
        and positions.dtype == "int64"
        and len(given) in (0, 2)
        and all(w.shape == (width,) for w in given.values())
        and q.size > 0 < k.size
        and count <= HEADS_MAX
        and bool(SPACE.within.evaluate(values))
        and all(map(_aligned, (*arrays.values(), cos_sin, *given.values())))
        and positions.contiguous
        and cos_sin.contiguous
    )
    if not fits:
        if kernel is not None:
            raise OptionError(f"kernel is {kernel!r}, which does not take arrays as these")
        return False
    scalars: list[tuple[str, int | float]] = [("POSITIONS_MAX", cos_sin.shape[0])]
    for name, x in arrays.items():
        scalars += zip((f"{name.upper()}_TOKEN", f"{name.upper()}_HEAD"), x.strides, strict=False)
    scalars += [("Q_HEADS", q.shape[1]), ("EPS", eps)]
    what = f"rotary of {tokens} tokens of {q.shape[1]} and {k.shape[1]} heads of {width}"
    problem = Problem(KEY, form, tuple(values.items()), tuple(scalars), what)
    bind = {**arrays, "positions": positions, "cos_sin": cos_sin, **given}
    order = ("q", "k", "positions", "cos_sin", *given, "q_out", "k_out")
    b.launch(lambda: problem, {n: bind[n] for n in order}, kernel)
    return True


def _aligned(x: Buffer) -> bool:
    """Whether the rows of ``x`` are contiguous and begin at multiples of 16 bytes."""
    return x.strides[-1] == 1 and alignment("x", x, *x.strides[:-1]) == ALIGN_MAX
