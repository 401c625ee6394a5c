"""Convolutions, forward and backward, as matrix products of image windows.

Images are viewed as ``[N, *, C]``, filters as ``[O, *, C / groups]``. Where a kernel reads windows
directly from the image, a convolution is one launch (:mod:`ptxgen.ops.implicit_gemm`). Elsewhere
the windows are a view with overlapping strides, whose rows are the operand of ``linear``: read in
place where kernels can, else from im2col copies, in pieces of bounded size. A row's bits do not
depend on other rows, so not on the pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import product
from math import gcd, prod
from typing import Annotated, Any

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics import functions
from ptxgen.numerics.dtype import BYTES, DTYPES
from ptxgen.numerics.formula import Node, fma
from ptxgen.numerics.option import Activation, Bool, Choice, Dtype, Integer, PerAxis, Tier
from ptxgen.numerics.signature import DIM_MAX, Signature
from ptxgen.ops import implicit_gemm
from ptxgen.ops.gradients import through_activation
from ptxgen.ops.implicit_gemm import AxisWindows, TapSubset
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.products import bias_gradient
from ptxgen.ops.views import alignment, check_dtype, readable, result_dtype, single
from ptxgen.program.algorithms import Algorithm, RefusedError, first_served, needs
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.operation import Backward, Gradients, op
from ptxgen.program.parameters import Out

COLUMNS_MAX = 1 << 28
"""Most bytes of one im2col buffer, unless a single row of windows needs more."""
TAPS_MAX = 23
"""Most taps of a depthwise filter that one pointwise kernel computes; each tap is two of its input
arrays. A sum of so few terms is never split into chunks."""
PLANES_MAX = 1 << 24
"""Most bytes of images plus results for which 1-tap convolutions read channels-first images in
place although rows are not aligned to 16 bytes: above it, transposed copies are faster.
"""
FIRST, LAST = "channels_first", "channels_last"
Channels = Annotated[str, Choice(FIRST, LAST)]
Steps = Annotated[Any, PerAxis(1)]
Padding = Annotated[Any, PerAxis(0)]
Sizes = Annotated[Any, PerAxis(1, DIM_MAX)]
Groups = Annotated[int, Integer(1, DIM_MAX)]


def _signature(name: str, first: tuple[str, str, str], *others: str) -> Signature:
    """Builds the signature of a convolution. ``first``: image, filter and result, each as
    ``name:kind``; kind "x" or "y" is an image of C or of O channels, "w" or "wt" filters with O or
    with C as first dimension. ``others``: optional vectors ``[O]``.
    """
    image, second, out = first
    forms = {
        FIRST: {"x": "B C H W", "y": "B O P Q", "w": "O C R T", "wt": "C O R T"},
        LAST: {"x": "B H W C", "y": "B P Q O", "w": "O R T C", "wt": "C R T O"},
    }
    kinds = dict(pair.split(":") for pair in (image, second, out))
    names = [n for n in kinds if n != "out"]
    layouts = {
        layout: {n: form[kind] for n, kind in kinds.items()} | dict.fromkeys(others, "O")
        for layout, form in forms.items()
    }
    sizes = [d for n in names for d in layouts[FIRST][n].split()]
    return Signature(
        name,
        (*names, *others),
        ("out",),
        layouts,
        tuple(dict.fromkeys(sizes)),
        optional=frozenset(others),
    )


CONV = _signature("conv", ("x:x", "w:w", "out:y"), "bias")
TRANSPOSE = _signature("conv_transpose", ("x:x", "w:wt", "out:y"), "bias")
DGRAD = _signature("conv_dgrad", ("dy:y", "w:w", "out:x"))
WGRAD = _signature("conv_wgrad", ("x:x", "dy:y", "out:w"))


# -- sizes ----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Geometry:
    """Stride, padding and dilation of a convolution, one integer per image dimension."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    def results(self, image: Sequence[int], taps: Sequence[int]) -> tuple[int, ...]:
        """Returns the number of windows of ``taps`` along each dimension of an image; raises
        ShapeError for filters larger than the padded image.
        """
        found = []
        for i, (size, count) in enumerate(zip(image, taps, strict=True)):
            padded, wide = size + 2 * self.padding[i], self.dilation[i] * (count - 1) + 1
            if wide > padded:
                raise ShapeError(
                    f"w has {count} taps along dimension {i} of the image, with dilation "
                    f"{self.dilation[i]} over {wide} elements; x has {size}, with padding "
                    f"{padded}: takes filters that are no larger"
                )
            found.append((padded - wide) // self.stride[i] + 1)
        return tuple(found)

    def partitions(self, image: Sequence[int], taps: Sequence[int], count: Sequence[int]) -> bool:
        """Whether ``count`` windows of ``taps`` cover the whole image and do not overlap."""
        alike = tuple(taps) == self.stride and not any(self.padding) and set(self.dilation) == {1}
        sizes = zip(image, count, self.stride, strict=True)
        return alike and all(size == n * step for size, n, step in sizes)


def _each(name: str, value: Any, rank: int) -> tuple[int, ...]:
    """Returns ``value``, an integer or a sequence, as one integer for each of ``rank`` dimensions;
    raises ShapeError for a sequence of another length.
    """
    several = (value,) if isinstance(value, int) else tuple(value)
    if len(several) == 1:
        return several * rank
    if len(several) != rank:
        raise ShapeError(
            f"{name} is {list(several)}; takes a number, or {rank}: one for each dimension of the "
            "image"
        )
    return several


def _geometry(rank: int, stride: Any, padding: Any, dilation: Any) -> _Geometry:
    return _Geometry(
        _each("stride", stride, rank),
        _each("padding", padding, rank),
        _each("dilation", dilation, rank),
    )


def _rank(**arrays: Buffer) -> int:
    """Returns the number of image dimensions, 1 to 3; raises ShapeError unless arrays agree."""
    (first, x), *others = arrays.items()
    if not 3 <= len(x.shape) <= 5:
        raise ShapeError(
            f"{first} has shape {list(x.shape)}; takes 3, 4 or 5 dimensions: those of the batch "
            "and of channels, and 1, 2 or 3 of images"
        )
    for name, other in others:
        if len(other.shape) != len(x.shape):
            raise ShapeError(
                f"{name} has shape {list(other.shape)}; takes {len(x.shape)} dimensions, as "
                f"{first} has"
            )
    return len(x.shape) - 2


def _dtypes(**arrays: Buffer) -> str:
    """Returns the common dtype of the operands; raises DtypeError if they differ."""
    (first, x), *others = arrays.items()
    check_dtype(first, x.dtype, tuple(DTYPES))
    for name, other in others:
        if other.dtype != x.dtype:
            raise DtypeError(f"{name} has dtype {other.dtype}; takes {x.dtype}, that of {first}")
    return x.dtype


def _mixed(dtype: str) -> tuple[str, ...]:
    """Returns the dtypes that bias and result may have for operands of ``dtype``."""
    return (dtype, "float32") if BYTES[dtype] == 2 else (dtype,)


def _last(b: Any, x: Any, layout: str) -> Any:
    """Returns a view of ``x`` with channels last."""
    return b.move(x, 1, -1) if layout == FIRST else x


def _shape(layout: str, lead: int, image: Sequence[int], channels: int) -> tuple[int, ...]:
    return (lead, channels, *image) if layout == FIRST else (lead, *image, channels)


def _divided(name: str, count: int, groups: int) -> None:
    if count % groups:
        raise ShapeError(f"{name} has {count} channels; takes a multiple of groups, {groups}")


def _filters(x: str, channels: int, w: Buffer, groups: int) -> None:
    """Raises ShapeError unless filters ``w`` [O, *, C / groups] fit the ``channels`` of array ``x``
    (a name).
    """
    _divided(x, channels, groups)
    _divided("w", w.shape[0], groups)
    if w.shape[-1] * groups != channels:
        raise ShapeError(
            f"w is of {w.shape[-1]} channels a group; takes {channels // groups}, as {x} has "
            f"{channels} in {groups} groups"
        )
    if 0 in w.shape[1:-1]:
        raise ShapeError(f"w has {list(w.shape[1:-1])} taps; takes 1 or more along each dimension")


def _bias(bias: Buffer | None, count: int, dtype: str) -> None:
    if bias is None:
        return
    if bias.shape != (count,):
        raise ShapeError(f"bias has shape {list(bias.shape)}; takes [{count}], one a channel")
    check_dtype("bias", bias.dtype, _mixed(dtype))


def _tier(tier: str, groups: int, *each: int) -> str:
    """Returns the tier; "auto" becomes "simt" for depthwise filters, as tensor cores would have no
    data to reuse. ``each``: input and output channels of a group.
    """
    return "simt" if tier == "auto" and groups > 1 and each == (1, 1) else tier


# -- windows --------------------------------------------------------------------------------------
def _padded(
    b: Any, x: Buffer, several: Sequence[Sequence[AxisWindows]]
) -> tuple[Buffer, list[int]]:
    """Pads ``x`` [N, *, C] with zeros so that it contains all windows of ``several``; returns it,
    and the padding before it along each dimension. Returns ``x`` itself if it contains them.
    """
    widths = []
    for size, each in zip(x.shape[1:-1], zip(*several, strict=True), strict=True):
        lows, highs = zip(*(a.span for a in each), strict=True)
        low, high = min(lows), max(highs)
        widths.append((max(-low, 0), max(high - size + 1, 0)))
    if any(map(any, widths)):
        x = b.pad(x, [(0, 0), *widths, (0, 0)])
    return x, [low for low, _ in widths]


def _windows(x: Buffer, before: Sequence[int], along: Sequence[AxisWindows]) -> Buffer:
    """Returns the view [N, *windows, *taps, C] of a padded image. ``before``: padding before the
    image along each dimension.
    """
    own = list(zip(x.strides[1:-1], before, along, strict=True))
    start = sum((low + a.first) * step for step, low, a in own)
    return replace(
        x,
        shape=(x.shape[0], *(a.count for a in along), *(a.taps for a in along), x.shape[-1]),
        strides=(
            x.strides[0],
            *(a.step * step for step, _, a in own),
            *(a.dilation * step for step, _, a in own),
            x.strides[-1],
        ),
        offset=x.offset + start * x.itemsize,
    )


class _Image:
    """Makes views of windows of an image ``x`` [N, *, C]. When windows first reach beyond the
    image, it is padded once, for all windows of ``several``, those that may be read.
    """

    def __init__(self, b: Any, x: Buffer, several: Sequence[Sequence[AxisWindows]]) -> None:
        self.b, self.x, self._several = b, x, several

    @cached_property
    def _wide(self) -> tuple[Buffer, list[int]]:
        return _padded(self.b, self.x, self._several)

    def windows(self, along: Sequence[AxisWindows]) -> Buffer:
        """Returns windows of the image as a view [N, *windows, *taps, C]."""
        own = (self.x, [0] * len(along)) if self.inside(along) else self._wide
        return _windows(*own, along)

    def inside(self, along: Sequence[AxisWindows]) -> bool:
        """Whether all taps of windows ``along`` are within the unpadded image."""
        spans = zip((a.span for a in along), self.x.shape[1:-1], strict=True)
        return all(low >= 0 and high < size for (low, high), size in spans)


def _along(how: _Geometry, taps: Sequence[int], count: Sequence[int]) -> list[AxisWindows]:
    """Returns the windows of a convolution along each image dimension."""
    return [
        AxisWindows(-how.padding[i], count[i], how.stride[i], taps[i], how.dilation[i])
        for i in range(len(count))
    ]


def _by_group(windows: Buffer, groups: int) -> Buffer:
    """Returns ``windows`` as a view [groups, N, *windows, *taps, C / groups]."""
    *outer, channels = windows.shape
    *steps, step = windows.strides
    each = channels // groups
    return windows.laid((groups, *outer, each), (each * step, *steps, step))


def _matrices(windows: Buffer, rank: int, lead: int) -> Buffer | None:
    """Returns windows as a view [..., M, K] that keeps the first ``lead`` dimensions; M counts
    windows, K their elements. ``rank``: dimensions of the image.

    Returns None if products cannot read such matrices in place: neither K nor M has unit stride, or
    rows of 16-bit elements overlap (TMA may refuse them).
    """
    cut = len(windows.shape) - rank - 1
    outer, columns = windows.shape[:lead], prod(windows.shape[cut:])
    rows = prod(windows.shape[lead:cut])
    found = windows.reshaped((*outer, rows, columns))
    if found is None or columns == 0:
        return found
    down, along = found.strides[-2:]
    least = columns if windows.itemsize == 2 else 1
    if (along == 1 or columns == 1) and (down >= least or rows == 1):
        return found
    return found if (down == 1 or rows == 1) and (along >= rows or columns == 1) else None


@cache
def _chain(taps: int, biased: bool, activation: str | None) -> Pointwise:
    """Returns the pointwise function ``activation(sum(x_j * w_j) + bias)`` of one depthwise window,
    by contract ``fma``; 16-bit inputs are computed in f32.
    """

    def formula(*given: Node) -> Node:
        total: Any = 0.0
        for x, w in zip(given[:taps], given[taps : 2 * taps], strict=True):
            total = fma(x, w, total)
        total = total + 0.0  # a chain never ends in -0.0
        total = total + given[-1] if biased else total
        if activation not in (None, "none"):
            total = getattr(functions, str(activation))(total)
        found: Node = total
        return found

    names = [f"{letter}{j}" for letter in "xw" for j in range(taps)] + ["bias"] * biased
    return Pointwise(lambda **given: formula(*given.values()), "depthwise", tuple(names))


def _depthwise(
    b: Any, windows: Buffer, w: Buffer, bias: Buffer | None, target: Buffer, activation: str | None
) -> None:
    """Records depthwise filters as one pointwise launch that reads each tap as a view, uncopied."""
    vectors = [] if bias is None else [bias]
    pairs = []
    for at in product(*map(range, w.shape[1:-1])):
        x, own = windows, b.squeeze(w, -1)
        for j in reversed(at):
            x, own = x.one(-2, j), own.one(-1, j)
        pairs.append((x, own))
    xs, ws = zip(*pairs, strict=True)
    formula = _chain(len(pairs), bias is not None, activation)
    b.call(formula, *xs, *ws, *vectors, out=target, out_dtype=target.dtype)


# -- products -------------------------------------------------------------------------------------
def _planes(x: Buffer) -> Buffer | None:
    """Returns ``x`` [N, *, C] as a view [N, C, M] with unit stride along its M pixels (an image in
    channels-first memory); None if there is no such view.
    """
    rank = x.ndim - 2
    planes = x.permuted((0, rank + 1, *range(1, rank + 1)))
    found = planes.reshaped((x.shape[0], x.shape[-1], prod(x.shape[1:-1])))
    return found if found is not None and found.strides[-1] == 1 != x.strides[-1] else None


def _plain(bias: Buffer | None, activation: str | None) -> bool:
    """Whether a product has neither a bias nor an activation."""
    return bias is None and activation in (None, "none")


def _multiplied(
    b: Any,
    x: Buffer,
    y: Buffer,
    bias: Buffer | None,
    activation: str | None,
    out: Buffer,
    shape: Sequence[int],
    **how: Any,
) -> None:
    """Computes ``out = activation(matmul(x, y) + bias)``. ``shape``: shape of ``matmul(x, y)``,
    whose elements ``out`` holds in the same order; ``how``: options of the product, such as its
    tier.

    A product without bias and activation is written to ``out`` directly where its strides allow.
    Else a second launch applies bias and activation in the accumulator's dtype, or copies the
    product.
    """
    plain = _plain(bias, activation)
    flat = out.reshaped(shape) if plain else None
    if flat is not None and (flat.shape[-1] == 1 or flat.strides[-1] == 1):
        b.matmul(x, y, out=flat, **how)
        return
    made = b.matmul(x, y, out_dtype=out.dtype if plain else b.wide(x), **how)
    found = b.reshape(made, out.shape)
    act = activation not in (None, "none")
    if bias is not None:
        found = b.add(found, bias, **({"out_dtype": found.dtype} if act else {"out": out}))
    if act:
        getattr(b, str(activation))(found, out=out)
    elif plain:
        b.copied(found, out)


def _pieces(lead: Sequence[int], nbytes: int) -> Iterator[tuple[int, int, int, int]]:
    """Yields pieces of windows [N, P, ...] of at most :data:`COLUMNS_MAX` bytes, as (first image,
    images, first index along P, length along P). ``lead``: the shape; ``nbytes``: bytes per window.
    """
    count, down, *rest = lead
    row = max(prod(rest) * nbytes, 1)
    images = COLUMNS_MAX // max(row * down, 1)
    if images:
        for start in range(0, count, images):
            yield start, min(images, count - start), 0, down
        return
    rows = max(COLUMNS_MAX // row, 1)
    for image in range(count):
        for start in range(0, down, rows):
            yield image, 1, start, min(rows, down - start)


@dataclass(frozen=True)
class _Product:
    """Lowers ``target = activation(windows · wᵀ + bias)``, per group: windows ``along`` an image,
    ``w`` [O, *taps, C / groups], ``target`` [N, *windows, O]. Each public method is one algorithm,
    which raises RefusedError if it cannot compute the call; :meth:`record` takes the first that
    can.
    """

    b: Any
    image: _Image
    along: Sequence[AxisWindows]
    w: Buffer
    bias: Buffer | None
    target: Buffer
    groups: int
    tier: str
    activation: str | None

    def record(self) -> None:
        """Records the launches of the first algorithm that can compute the product."""
        first_served(self.b, "products of windows", self._algorithms())

    def _algorithms(self) -> Iterator[Algorithm]:
        yield Algorithm("depthwise kernel", self.depthwise_kernel)
        yield Algorithm("depthwise formula", self.depthwise_formula)
        yield Algorithm("filters times images as they lie", self.filters_times_images)
        yield Algorithm("windows as rows", self.windows_as_rows)
        yield Algorithm("implicit GEMM", self.implicit_gemm)
        yield Algorithm("a result row by row, copied", self.copied_result)
        yield Algorithm("columns", self.columns)

    # -- depthwise filters --------------------------------------------------------------------
    def _needs_depthwise(self) -> None:
        channels = self.target.shape[-1]
        needs(self.groups == channels > 1 and self.w.shape[-1] == 1, "groups of several channels")
        wide = BYTES[self.image.x.dtype] > 2
        needs(self.tier == "simt" or wide, "depthwise filters of 16 bits are asked of tensor cores")

    @property
    def _few_taps(self) -> bool:
        """Whether filters have 1 to ``TAPS_MAX`` taps, so that one formula computes a window."""
        return 0 < self.w.size <= TAPS_MAX * self.target.shape[-1]

    def depthwise_kernel(self) -> None:
        """Multiplies depthwise filters in a kernel that reads each channel's windows once."""
        self._needs_depthwise()
        contiguous = self.image.x.strides[-1] == 1 or not self._few_taps
        needs(contiguous, "channels of a pixel are not adjacent, and a formula reads no copy")
        given = self.image.x, self.along, self.w, self.bias, self.target, self.activation
        implicit_gemm.depthwise(self.b, *given)

    def depthwise_formula(self) -> None:
        """Multiplies depthwise filters in an elementwise kernel; each tap is an input array."""
        self._needs_depthwise()
        needs(self._few_taps, f"more than {TAPS_MAX} taps, or none")
        windows = self.image.windows(self.along)
        _depthwise(self.b, windows, self.w, self.bias, self.target, self.activation)

    # -- products of one group ----------------------------------------------------------------
    @cached_property
    def _rows(self) -> Buffer | None:
        """The target as a matrix [windows, O]; None if products cannot write it in place."""
        channels, rows = self.target.shape[-1], prod(self.target.shape[:-1])
        flat = self.target.reshaped((rows, channels))
        if flat is None or (rows > 1 and flat.strides[0] < channels):
            return None
        return flat if channels == 1 or flat.strides[1] == 1 else None

    def _matrices(self, lead: int) -> Buffer | None:
        rank = len(self.target.shape) - 2
        return _matrices(self.image.windows(self.along), rank, lead)

    @cached_property
    def _weight(self) -> Buffer:
        channels, length = self.target.shape[-1], prod(self.w.shape[1:])
        found: Buffer = readable(self.b, self.b.reshape(self.w, (channels, length)))
        return found

    @cached_property
    def _linear(self) -> Any:
        how = {"tier": self.tier, "activation": self.activation}
        return partial(self.b.linear, bias=self.bias, layout="nk", **how)

    def filters_times_images(self) -> None:
        """Computes ``filters · image`` for filters of one tap and channels-first images, in place.
        Sums have the order of ``windows · filtersᵀ``.
        """
        b, x = self.b, self.image.x
        needs(self.groups == 1, "several groups")
        sides = zip(self.along, x.shape[1:-1], strict=True)
        one = all((a.first, a.count, a.step, a.taps) == (0, size, 1, 1) for a, size in sides)
        needs(one, "windows are not all pixels")
        image, planes = _planes(x), _planes(self.target)
        if image is None or planes is None:
            raise RefusedError("neighbouring pixels of a channel are not adjacent in memory")
        low = (alignment("x", v, *v.strides[:-1], v.shape[-1]) for v in (image, planes))
        few = image.nbytes + planes.nbytes <= PLANES_MAX
        needs(few or all(a == 16 for a in low), "planes off 16 bytes")
        weight = readable(b, b.reshape(self.w, (self.w.shape[0], self.w.shape[-1])))
        vector = None if self.bias is None else b.reshape(self.bias, (self.bias.shape[0], 1))
        given = weight, image, vector, self.activation, planes, planes.shape
        _multiplied(b, *given, tier=self.tier)

    def windows_as_rows(self) -> None:
        """Computes one matrix product whose rows are the windows, read in place, and which writes
        the target.
        """
        needs(self.groups == 1, "several groups")
        needs(self._rows is not None, "the result is no rows")
        needs(self.image.inside(self.along), "windows reach beyond the image")
        found = self._matrices(0)
        if found is None:
            raise RefusedError("windows overlap, or are no rows")
        self._linear(found, self._weight, out=self._rows)

    def implicit_gemm(self) -> None:
        """Multiplies in one implicit-GEMM kernel, which gathers windows from the image."""
        needs(self.groups == 1, "several groups")
        needs(self.tier != "simt", "kernels of the tier simt read no windows")
        given = self.image.x, self.along, self.w, self.bias, self.target, self.activation
        implicit_gemm.fprop(self.b, *given)

    def copied_result(self) -> None:
        """Computes the product into contiguous memory and copies it to the target."""
        needs(self.groups == 1, "several groups")
        needs(self._rows is None, "the result is rows")
        made = self.b.empty(self.target.shape, self.target.dtype)
        replace(self, target=made).record()
        self.b.copied(made, self.target)

    # -- columns ------------------------------------------------------------------------------
    def columns(self) -> None:
        """Multiplies windows of the padded image: in place where they are matrices, else as im2col
        copies, in pieces.
        """
        if self.groups == 1:
            self._columns_of_one()
        else:
            self._columns_of_groups()

    def _columns_of_one(self) -> None:
        b, flat, weight = self.b, self._rows, self._weight
        found = self._matrices(0)
        if found is not None:
            self._linear(found, weight, out=flat)
            return
        found = self._matrices(1) if _plain(self.bias, self.activation) else None
        if found is not None:
            out = b.reshape(flat, (*found.shape[:2], self.target.shape[-1]))
            b.matmul(found, weight, transpose_b=True, tier=self.tier, out=out)
            return
        for part, place in self._copies(self.image.windows(self.along), 0):
            rows = (prod(place.shape[:-1]), -1)
            self._linear(b.reshape(part, rows), weight, out=b.reshape(place, rows))

    def _columns_of_groups(self) -> None:
        b, groups = self.b, self.groups
        each = self.target.shape[-1] // groups
        weight = readable(b, b.reshape(self.w, (groups, each, prod(self.w.shape[1:]))))
        one = partial(_grouped, b, bias=self.bias, tier=self.tier, activation=self.activation)
        windows = _by_group(self.image.windows(self.along), groups)
        found = _matrices(windows, len(self.target.shape) - 2, 1)
        if found is not None:
            one(found, weight, out=self.target)
            return
        for part, place in self._copies(windows, 1):
            rows = b.reshape(part, (groups, prod(place.shape[:-1]), -1))
            one(rows, weight, out=place)

    def _copies(self, windows: Buffer, at: int) -> Iterator[tuple[Buffer, Buffer]]:
        """Copies the windows in pieces of limited size (:data:`COLUMNS_MAX`). Yields each copy with
        the part of the target that its product writes. ``at``: dimension of ``windows`` that counts
        images.
        """
        b, length = self.b, prod(self.w.shape[1:])
        nbytes = length * self.groups * windows.itemsize
        for image, images, start, down in _pieces(self.target.shape[:-1], nbytes):
            part = b.narrow(b.narrow(windows, at, image, images), at + 1, start, down)
            place = b.narrow(b.narrow(self.target, 0, image, images), 1, start, down)
            yield b.copied(part), place


def _grouped(
    b: Any,
    x: Buffer,
    w: Buffer,
    *,
    bias: Buffer | None,
    tier: str,
    activation: str | None,
    out: Buffer,
) -> None:
    """Computes ``out[..., g, :] = activation(x[g] · w[g]ᵀ + bias[g])`` in one batched product:
    ``x`` [G, M, K], ``w`` [G, N, K], ``out`` [*M, G N].
    """
    groups, rows, each = x.shape[0], x.shape[1], w.shape[1]
    lead = out.shape[:-1]
    split = b.reshape(out, (*lead, groups, each))
    place = b.permute(split, (len(lead), *range(len(lead)), len(lead) + 1))
    vector = None if bias is None else b.reshape(bias, (-1, *[1] * len(lead), each))
    how = {"transpose_b": True, "tier": tier}
    _multiplied(b, x, w, vector, activation, place, (groups, rows, each), **how)


# -- forward --------------------------------------------------------------------------------------
_OPTIONS = ("stride", "padding", "dilation", "groups", "layout", "tier")


def window_rows(b: Any, dy: Any, layout: str) -> Any:
    """Returns ``dy`` of a convolution as a contiguous matrix [windows, O]."""
    dy = b.packed(_last(b, dy, layout))
    return b.reshape(dy, (prod(dy.shape[:-1]), dy.shape[-1]))


def _image(x: Any, layout: str) -> tuple[int, ...]:
    return tuple(x.shape[2:] if layout == FIRST else x.shape[1:-1])


def _wgrad(b: Builder, x: Any, dy: Any, like: Any, of: Mapping[str, Any]) -> Any:
    """Computes ``conv_wgrad(x, dy)``, rounded once to the dtype of the filters ``like``."""
    taps = _image(like, of["layout"])
    return b.conv_wgrad(x, dy, taps, **of, out_dtype=b.dtype(like))


def _conv_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``conv``: dx by ``conv_dgrad``, dw by ``conv_wgrad``, dbias as in ``linear``."""
    x, w, bias = (at[n] for n in ("x", "w", "bias"))
    of, found = at.only(*_OPTIONS), {}
    dy = through_activation(b, at, partial(b.conv, x, w, bias, **of))
    if "x" in at.needs:
        found["x"] = b.conv_dgrad(dy, w, _image(x, of["layout"]), **of)
    if "w" in at.needs:
        found["w"] = _wgrad(b, x, dy, w, of)
    if "bias" in at.needs:
        found["bias"] = bias_gradient(b, window_rows(b, dy, of["layout"]), b.dtype(bias))
    return found


@op(forms=CONV, any_rank=True, vjp=_conv_vjp)
def conv(
    b: ProgramBuilder,
    x: Buffer,
    w: Buffer,
    bias: Buffer | None = None,
    *,
    stride: Steps = 1,
    padding: Padding = 0,
    dilation: Steps = 1,
    groups: Groups = 1,
    activation: Activation = None,
    layout: Channels = "channels_first",
    tier: Tier = "auto",
    out: Out = None,
    out_dtype: Dtype = None,
) -> Buffer:
    """``y = activation(w ⋆ x + bias)``: a convolution of 1, 2 or 3 dimensions, batch-invariant.

    It is a cross-correlation, as PyTorch's. Before the activation ``y[n, o, p]`` is the sum over
    j and c of ``x[n, c, p * stride + j * dilation - padding] * w[o, c, j]``, plus ``bias[o]``. p
    is the index of a window, j of a tap. Elements outside the image are +0.0. With ``groups``, c
    runs over the channels of the output's group.

    Shapes
        ``x`` ``[N, C, *]``; ``w`` ``[O, C / groups, *]``; ``bias`` ``[O]``; the result
        ``[N, O, *]``, with ``(size + 2 * padding - dilation * (taps - 1) - 1) // stride + 1``
        elements along a dimension of the image. With ``layout="channels_last"`` they are
        ``[N, *, C]``, ``[O, *, C / groups]`` and ``[N, *, O]``, which kernels read without a copy.
    Dtypes
        float32, bfloat16, float16 or float64, the same for x and w, and so the result. Where these
        have 16 bits, ``bias`` may be float32, and so may the result, if ``out`` or ``out_dtype``
        say so.
    Order
        A window is a row of ``K = taps * C / groups`` elements: taps ascending (the last dimension
        fastest), channels ascending within a tap. The result has the bits of :func:`ptxgen.linear`
        of these rows, with each group's filters as its weight. So a window's result depends on its
        own elements alone: on no other image, and not on the layout. Where groups have one channel
        and one output (depthwise filters), ``tier="auto"`` is ``"simt"``.
        :func:`ptxgen.reference.conv` returns the same bits.
    Storage
        Any strides. Where no kernel reads windows in place, the image is padded by one copy, and
        windows are copied, in pieces of at most 256 MiB. On Hopper, 16-bit kernels read the windows
        of sequences and 2-D images in place if channels have unit stride (else the image is
        transposed first). If channels are no multiple of 8, filters are copied; in large problems
        windows are. Filters of one tap and stride 1 need no copy, nor do 16-bit depthwise filters.
    Options
        ``stride``, ``padding``, ``dilation``: an integer, or one for each dimension. ``tier``,
        ``activation``, ``out``, ``stream``: as of :func:`ptxgen.linear`.
    Errors
        ShapeError (filters larger than the padded image, channels that groups do not divide),
        DtypeError, OptionError, DeviceError, GradError or CompileError, before anything is launched
        or written.
    Source
        ``ptxgen/ops/conv.py``.

    >>> import numpy, ptxgen
    >>> x, w = numpy.arange(4, dtype="f4").reshape(1, 1, 4), numpy.ones((1, 1, 3), "f4")
    >>> ptxgen.reference.conv(x, w, padding=1)
    array([[[1., 3., 6., 5.]]], dtype=float32)
    """
    rank, dtype = _rank(x=x, w=w), _dtypes(x=x, w=w)
    how = _geometry(rank, stride, padding, dilation)
    x, w = _last(b, x, layout), _last(b, w, layout)
    _filters("x", x.shape[-1], w, groups)
    _bias(bias, w.shape[0], dtype)
    taps, tier = w.shape[1:-1], _tier(tier, groups, w.shape[-1], w.shape[0] // groups)
    count = how.results(x.shape[1:-1], taps)
    target = single(out)
    wanted = result_dtype(out_dtype, target, dtype, _mixed(dtype))
    _activated(activation, dtype)
    y = b.result(_shape(layout, x.shape[0], count, w.shape[0]), wanted, target)
    if b.abstract or y.size == 0:
        return y
    along = _along(how, taps, count)
    given = w, b.packed(bias), _last(b, y, layout)
    _Product(b, _Image(b, x, [along]), along, *given, groups, tier, activation).record()
    return y


def _activated(activation: str | None, dtype: str) -> None:
    if activation not in (None, "none") and dtype == "float64":
        raise OptionError(f"activation is {activation!r}; of float64 takes None")


# -- transposed -----------------------------------------------------------------------------------
_Reached = tuple[tuple[int, int, int], tuple[int, int, int], AxisWindows]
"""Triple along one axis: elements of the image (start, count, step), the taps that reach them
(start, count, step), and the windows of ``dy`` that these taps multiply."""


def _axis_phases(how: _Geometry, image: Sequence[int], taps: Sequence[int]) -> list[list[_Reached]]:
    """Returns, for each dimension, the :data:`_Reached` triple of each phase: the elements of
    ``image`` whose indices are equal modulo the stride, and the taps and windows of dy that reach
    them.
    """
    each: list[list[_Reached]] = []
    for i, size in enumerate(image):
        step, shift, far = how.stride[i], how.padding[i], how.dilation[i]
        unit = step // gcd(step, far)
        found = []
        for start in range(min(step, size)):
            count = -(-(size - start) // step)
            own = [j for j in range(min(unit, taps[i])) if (start + shift - j * far) % step == 0]
            if own:
                (j,) = own
                several, first = -(-(taps[i] - j) // unit), (start + shift - j * far) // step
                along = AxisWindows(first, count, 1, several, -far * unit // step)
            else:
                j, several, along = 0, 0, AxisWindows(0, count, 1, 0, 0)
            found.append(((start, count, step), (j, several, unit), along))
        each.append(found)
    return each


@dataclass(frozen=True)
class _Transposed:
    """Lowers a transposed convolution to ``target`` [N, *, C], from ``dy`` [N, *, O] and filters
    ``w`` [O, *, C / groups]. ``how``: stride, padding and dilation. Each public method is one
    algorithm, which raises RefusedError if it cannot compute the call; :meth:`record` takes the
    first that can.
    """

    b: Any
    dy: Buffer
    w: Buffer
    bias: Buffer | None
    target: Buffer
    how: _Geometry
    groups: int
    tier: str
    activation: str | None

    def record(self) -> None:
        """Records the launches of the first algorithm that can compute the convolution."""
        first_served(self.b, "windows of a gradient", self._algorithms())

    def _algorithms(self) -> Iterator[Algorithm]:
        yield Algorithm("implicit GEMM of all phases", self.implicit_gemm)
        yield Algorithm("products of each tap", self.patches)
        yield Algorithm("products of each phase", self.phases)

    @cached_property
    def _axis_phases(self) -> list[list[_Reached]]:
        return _axis_phases(self.how, self.target.shape[1:-1], self.w.shape[1:-1])

    def implicit_gemm(self) -> None:
        """Computes the transposed convolution of a stride above 1 in one implicit-GEMM kernel. A
        phase, the results whose indices are equal modulo the stride, uses a subset of the taps.
        """
        needs(self.groups == 1, "several groups")
        needs(prod(self.how.stride) > 1, "a stride of 1")
        needs(self.tier != "simt", "kernels of the tier simt read no windows")
        rank = len(self.how.stride)
        subsets = [
            [TapSubset(along, tap, every) for _, (tap, _, every), along in each]
            for each in self._axis_phases
        ]
        whole = self.b.permute(self.w, (rank + 1, *range(1, rank + 1), 0))
        implicit_gemm.strided_dgrad(
            self.b, self.dy, subsets, whole, self.bias, self.target, self.activation
        )

    def patches(self) -> None:
        """Multiplies all taps in one batched product, for windows that do not overlap."""
        needs(self.groups == 1, "several groups")
        taps = self.w.shape[1:-1]
        needs(prod(taps) > 1, "one tap")
        disjoint = self.how.partitions(self.target.shape[1:-1], taps, self.dy.shape[1:-1])
        needs(disjoint, "windows share elements, or leave some out")
        given = self.dy, self.w, self.bias, self.target, self.tier, self.activation
        _patches(self.b, *given)

    def phases(self) -> None:
        """Computes each phase, the results whose indices are equal modulo the stride, as a separate
        product of windows and the phase's taps.
        """
        b, target, groups = self.b, self.target, self.groups
        taps, rank = self.w.shape[1:-1], len(self.how.stride)
        each = self.w.shape[0] // groups, self.w.shape[-1]
        split = b.reshape(self.w, (groups, each[0], *taps, each[1]))
        turned = b.permute(split, (0, rank + 2, *range(2, rank + 2), 1))
        if groups > 1:  # with one group each product copies its own taps, if at all
            turned = b.packed(turned)
        turned = b.reshape(turned, (target.shape[-1], *taps, each[0]))
        phases = [tuple(zip(*chosen, strict=True)) for chosen in product(*self._axis_phases)]
        reached = [phase for phase in phases if all(a.taps for a in phase[-1])]
        if len(reached) < len(phases) and _plain(self.bias, self.activation):
            b.fill(target, 0, out=target)
            phases = reached
        image = _Image(b, self.dy, [along for *_, along in phases])
        for elements, of_taps, along in phases:
            part, weight = target, turned
            for i in range(rank):
                part = b.narrow(part, i + 1, *elements[i])
                weight = b.narrow(weight, i + 1, *of_taps[i])
            how = self.bias, part, groups, self.tier, self.activation
            _Product(b, image, along, weight, *how).record()


def _patches(
    b: Any,
    dy: Buffer,
    w: Buffer,
    bias: Buffer | None,
    target: Buffer,
    tier: str,
    activation: str | None,
) -> None:
    """Computes ``target`` where windows do not overlap: one batched product for all taps, and a
    copy that scatters its results to ``target``.
    """
    taps, count, rank = w.shape[1:-1], dy.shape[1:-1], len(dy.shape) - 2
    every, rows = prod(taps), prod(dy.shape[:-1])
    each = b.permute(w, (*range(1, rank + 2), 0))
    each = b.reshape(b.packed(each), (every, w.shape[-1], w.shape[0]))
    made = b.empty((rows, every * w.shape[-1]), target.dtype)
    x = b.expand(b.packed(b.reshape(dy, (rows, dy.shape[-1]))), (every, rows, dy.shape[-1]))
    _grouped(b, x, each, bias=bias, tier=tier, activation=activation, out=made)
    along = [AxisWindows(0, n, step, step, 1) for n, step in zip(count, taps, strict=True)]
    windows = _windows(target, [0] * rank, along)
    b.copied(b.reshape(made, windows.shape), windows)


def _transpose_vjp(b: Builder, at: Backward) -> Gradients:
    """Gradients of ``conv_transpose``: dx by ``conv``, dw by ``conv_wgrad(dy, x)``."""
    x, w, bias = (at[n] for n in ("x", "w", "bias"))
    of, found = at.only(*_OPTIONS), {}
    more = at.only("output_padding")
    dy = through_activation(b, at, partial(b.conv_transpose, x, w, bias, **of, **more))
    if "x" in at.needs:
        found["x"] = b.conv(dy, w, **of)
    if "w" in at.needs:
        found["w"] = _wgrad(b, dy, x, w, of)
    if "bias" in at.needs:
        found["bias"] = bias_gradient(b, window_rows(b, dy, of["layout"]), b.dtype(bias))
    return found


@op(forms=TRANSPOSE, any_rank=True, vjp=_transpose_vjp)
def conv_transpose(
    b: ProgramBuilder,
    x: Buffer,
    w: Buffer,
    bias: Buffer | None = None,
    *,
    stride: Steps = 1,
    padding: Padding = 0,
    output_padding: Padding = 0,
    dilation: Steps = 1,
    groups: Groups = 1,
    activation: Activation = None,
    layout: Channels = "channels_first",
    tier: Tier = "auto",
    out: Out = None,
    out_dtype: Dtype = None,
) -> Buffer:
    """``y = activation(wᵀ ⋆ x + bias)``: a transposed convolution, batch-invariant.

    ``y[n, o, p] = activation(sum over j, c of x[n, c, (p + padding - j * dilation) / stride] *
    w[c, o, j] + bias[o])``, over the taps j for which the quotient is whole. It is
    :func:`ptxgen.conv_dgrad` of ``x``, plus a bias.

    Shapes
        ``x`` ``[N, C, *]``; ``w`` ``[C, O / groups, *]``; ``bias`` ``[O]``; the result
        ``[N, O, *]``, with ``(size - 1) * stride - 2 * padding + dilation * (taps - 1) + 1 +
        output_padding`` elements along a dimension. With ``layout="channels_last"`` they are
        ``[N, *, C]``, ``[C, *, O / groups]`` and ``[N, *, O]``.
    Dtypes
        Those of :func:`ptxgen.conv`.
    Order
        That of :func:`ptxgen.conv`: the row of an element holds the taps that reach it, ascending,
        and channels c ascending within a tap; +0.0 outside x. The taps depend on the element's
        index alone. :func:`ptxgen.reference.conv_transpose` returns the same bits.
    Options
        ``output_padding``: number of elements added at the end of each dimension; less than
        ``stride`` or ``dilation``. Others: those of :func:`ptxgen.conv`.
    Errors
        Those of :func:`ptxgen.conv`.
    Source
        ``ptxgen/ops/conv.py``.

    >>> import numpy, ptxgen
    >>> x, w = numpy.arange(1, 3, dtype="f4").reshape(1, 1, 2), numpy.ones((1, 1, 3), "f4")
    >>> ptxgen.reference.conv_transpose(x, w, stride=2)
    array([[[1., 1., 3., 2., 2.]]], dtype=float32)
    """
    rank, dtype = _rank(x=x, w=w), _dtypes(x=x, w=w)
    how = _geometry(rank, stride, padding, dilation)
    more = _each("output_padding", output_padding, rank)
    x, w = _last(b, x, layout), _last(b, w, layout)
    channels = w.shape[-1] * groups
    if w.shape[0] != x.shape[-1]:
        raise ShapeError(f"w is of {w.shape[0]} channels; takes {x.shape[-1]}, those of x")
    _filters("the result", channels, w, groups)
    _bias(bias, channels, dtype)
    tier = _tier(tier, groups, w.shape[-1], w.shape[0] // groups)
    taps, image = w.shape[1:-1], []
    for i, size in enumerate(x.shape[1:-1]):
        if more[i] >= max(how.stride[i], how.dilation[i]):
            raise ShapeError(
                f"output_padding is {list(more)}; takes less than stride {list(how.stride)} or "
                f"dilation {list(how.dilation)}"
            )
        wide = how.dilation[i] * (taps[i] - 1) + 1 + more[i]
        image.append((size - 1) * how.stride[i] - 2 * how.padding[i] + wide)
        if image[i] < 1 or size < 1:
            raise ShapeError(
                f"x has {size} elements along dimension {i} of the image, with padding "
                f"{how.padding[i]} the result {image[i]}; takes 1 or more"
            )
    target = single(out)
    wanted = result_dtype(out_dtype, target, dtype, _mixed(dtype))
    _activated(activation, dtype)
    y = b.result(_shape(layout, x.shape[0], image, channels), wanted, target)
    if b.abstract or y.size == 0:
        return y
    given = w, b.packed(bias), _last(b, y, layout), how, groups, tier, activation
    _Transposed(b, x, *given).record()
    return y


# -- gradients ------------------------------------------------------------------------------------
def _dgrad_vjp(b: Builder, at: Backward) -> Gradients:
    dy, w, of, found = at["dy"], at["w"], at.only(*_OPTIONS), {}
    g = b.packed(b.cast(at.dys[0], b.dtype(dy)))
    if "dy" in at.needs:
        found["dy"] = b.conv(g, w, **of)
    if "w" in at.needs:
        found["w"] = _wgrad(b, g, dy, w, of)
    return found


def _agrees(
    dy: Buffer, how: _Geometry, count: tuple[int, ...], name: str, sizes: Sequence[int]
) -> None:
    """Raises ShapeError unless ``dy`` [N, *, O] has ``count`` windows along each dimension.
    ``name``, ``sizes``: the argument from which ``count`` follows, for the message.
    """
    if tuple(dy.shape[1:-1]) != count:
        raise ShapeError(
            f"dy is of {list(dy.shape[1:-1])} windows; with {name} {list(sizes)}, stride "
            f"{list(how.stride)}, padding {list(how.padding)} and dilation {list(how.dilation)} "
            f"there are {list(count)}"
        )


@op(forms=DGRAD, any_rank=True, vjp=_dgrad_vjp)
def conv_dgrad(
    b: ProgramBuilder,
    dy: Buffer,
    w: Buffer,
    image: Sizes,
    *,
    stride: Steps = 1,
    padding: Padding = 0,
    dilation: Steps = 1,
    groups: Groups = 1,
    layout: Channels = "channels_first",
    tier: Tier = "auto",
    out: Out = None,
    out_dtype: Dtype = None,
) -> Buffer:
    """``dx = wᵀ ⋆ dy``: the gradient of a convolution's image, batch-invariant.

    ``dx[n, c, s] = sum over j, o of dy[n, o, (s + padding - j * dilation) / stride] * w[o, c, j]``,
    over the taps j for which the quotient is whole.

    Shapes
        ``dy`` ``[N, O, *]``; ``w`` ``[O, C / groups, *]``; the result ``[N, C, *]`` with ``image``
        elements along its last dimensions. ``layout``: as of :func:`ptxgen.conv`.
    Dtypes
        Those of :func:`ptxgen.conv`, without a bias.
    Order
        A gather: the row of an element holds the taps that reach it, ascending, and the channels o
        of its group ascending within a tap; +0.0 outside dy. The result has the bits of
        :func:`ptxgen.linear` of these rows. Elements whose indices are equal modulo the stride
        share a product. :func:`ptxgen.reference.conv_dgrad` returns the same bits.
    Errors
        Those of :func:`ptxgen.conv`; ShapeError for a ``dy`` whose sizes are not the numbers of
        windows of ``image``.
    Source
        ``ptxgen/ops/conv.py``.

    >>> import numpy, ptxgen
    >>> dy, w = numpy.ones((1, 1, 2), "f4"), numpy.arange(1, 4, dtype="f4").reshape(1, 1, 3)
    >>> ptxgen.reference.conv_dgrad(dy, w, 4)
    array([[[1., 3., 5., 3.]]], dtype=float32)
    """
    rank, dtype = _rank(dy=dy, w=w), _dtypes(dy=dy, w=w)
    how, sizes = _geometry(rank, stride, padding, dilation), _each("image", image, rank)
    dy, w = _last(b, dy, layout), _last(b, w, layout)
    if w.shape[0] != dy.shape[-1]:
        raise ShapeError(f"w has {w.shape[0]} channels; takes {dy.shape[-1]}, those of dy")
    channels = w.shape[-1] * groups
    _filters("the image", channels, w, groups)
    _agrees(dy, how, how.results(sizes, w.shape[1:-1]), "image", sizes)
    tier = _tier(tier, groups, w.shape[-1], w.shape[0] // groups)
    target = single(out)
    wanted = result_dtype(out_dtype, target, dtype, _mixed(dtype))
    dx = b.result(_shape(layout, dy.shape[0], sizes, channels), wanted, target)
    if b.abstract or dx.size == 0:
        return dx
    _Transposed(b, dy, w, None, _last(b, dx, layout), how, groups, tier, None).record()
    return dx


def _wgrad_vjp(b: Builder, at: Backward) -> Gradients:
    x, dy, of, found = at["x"], at["dy"], at.only(*_OPTIONS), {}
    g = b.packed(b.cast(at.dys[0], b.dtype(x)))
    if "x" in at.needs:
        found["x"] = b.conv_dgrad(dy, g, _image(x, of["layout"]), **of)
    if "dy" in at.needs:
        found["dy"] = b.conv(x, g, **of)
    return found


@op(forms=WGRAD, any_rank=True, vjp=_wgrad_vjp)
def conv_wgrad(
    b: ProgramBuilder,
    x: Buffer,
    dy: Buffer,
    taps: Sizes,
    *,
    stride: Steps = 1,
    padding: Padding = 0,
    dilation: Steps = 1,
    groups: Groups = 1,
    layout: Channels = "channels_first",
    tier: Tier = "auto",
    chain: Bool = False,
    out: Out = None,
    out_dtype: Dtype = None,
) -> Buffer:
    """``dw = x ⋆ dy``: the gradient of a convolution's filters, summed over the batch and windows.

    ``dw[o, c, j] = sum over n, p of x[n, c, p * stride + j * dilation - padding] * dy[n, o, p]``.

    Shapes
        ``x`` ``[N, C, *]``; ``dy`` ``[N, O, *]``; the result ``[O, C / groups, *]`` with ``taps``
        elements along its last dimensions. ``layout``: as of :func:`ptxgen.conv`.
    Dtypes
        float32, bfloat16, float16 or float64, the same for both. The result is float32 (float64 of
        float64) unless ``out`` or ``out_dtype`` give the operands' dtype (one rounding, at the
        end).
    Order
        That of :func:`ptxgen.linear_wgrad` with windows as the rows of x: images ascending, windows
        ascending within an image (the last dimension fastest); the same in each group.
        ``chain``: one chain, never split into chunks, as ``linear_wgrad(chain=True)``.
        :func:`ptxgen.reference.conv_wgrad` returns the same bits.
    Storage
        Where no kernel reads windows in place, one copy holds all of them; with ``chain`` and one
        group, they are copied in pieces of about 256 MiB.
    Errors
        Those of :func:`ptxgen.conv`; ShapeError for a ``dy`` whose sizes are not the numbers of
        windows of ``taps`` in ``x``.
    Source
        ``ptxgen/ops/conv.py``.

    >>> import numpy, ptxgen
    >>> x, dy = numpy.arange(4, dtype="f4").reshape(1, 1, 4), numpy.ones((1, 1, 3), "f4")
    >>> ptxgen.reference.conv_wgrad(x, dy, 2)
    array([[[3., 6.]]], dtype=float32)
    """
    rank, dtype = _rank(x=x, dy=dy), _dtypes(x=x, dy=dy)
    how, sizes = _geometry(rank, stride, padding, dilation), _each("taps", taps, rank)
    x, dy = _last(b, x, layout), _last(b, dy, layout)
    if x.shape[0] != dy.shape[0]:
        raise ShapeError(f"dy is of {dy.shape[0]} images; takes {x.shape[0]}, those of x")
    _divided("x", x.shape[-1], groups)
    _divided("dy", dy.shape[-1], groups)
    count = how.results(x.shape[1:-1], sizes)
    _agrees(dy, how, count, "taps", sizes)
    given, each = single(out), x.shape[-1] // groups
    tier = _tier(tier, groups, each, dy.shape[-1] // groups)
    wide = "float64" if dtype == "float64" else "float32"
    wanted = result_dtype(out_dtype, given, wide, _mixed(dtype))
    dw = b.result(_shape(layout, dy.shape[-1], sizes, each), wanted, given)
    if b.abstract or dw.size == 0:
        return dw
    target = _last(b, dw, layout)
    made = target if target.contiguous else b.empty(target.shape, wanted)
    along = _along(how, sizes, count)
    image, flat = _Image(b, x, [along]), b.reshape(made, (dy.shape[-1], -1))
    rows = b.reshape(b.packed(dy), (prod(dy.shape[:-1]), dy.shape[-1]))

    def by_kernel() -> None:
        needs(groups == 1, "several groups")
        needs(tier != "simt", "kernels of the tier simt read no windows")
        needs(not chain, "kernels that read windows cut chains")
        is_matrix = image.inside(along) and _matrices(image.windows(along), rank, 0) is not None
        needs(not is_matrix, "windows are rows where they lie")
        implicit_gemm.wgrad(b, x, along, rows, flat)

    def columns() -> None:
        if groups == 1:
            _summed(b, image.windows(along), rows, flat, tier, chain)
        else:
            _summed_by_group(b, image.windows(along), rows, made, groups, tier, chain)

    algorithms = Algorithm("implicit GEMM", by_kernel), Algorithm("columns", columns)
    first_served(b, "sums over windows", algorithms)
    if made is not target:
        b.copied(made, target)
    return dw


def _summed(b: Any, windows: Buffer, dy: Buffer, out: Buffer, tier: str, chain: bool) -> None:
    """Computes ``out`` [O, K] as ``linear_wgrad`` of windows [N, *windows, *taps, C] and ``dy``."""
    count, length = dy.shape[0], out.shape[1]
    of = {"layout": "nk", "tier": tier, "chain": chain}
    found = _matrices(windows, (len(windows.shape) - 2) // 2, 0)
    if found is not None and (found.strides[1] == 1 or length == 1):
        b.linear_wgrad(found, dy, **of, out=out)
        return
    images, each = windows.shape[0], count // max(windows.shape[0], 1)
    unit = 16 // gcd(each, 16)  # chains on tensor cores continue at multiples of 16 rows
    most = COLUMNS_MAX // max(each * length * windows.itemsize, 1) // unit * unit
    step = max(most, unit) if chain else max(images, 1)
    total = out if step >= images else b.empty(out.shape, b.wide(dy))
    for start in range(0, images, step):
        part = b.narrow(windows, 0, start, min(step, images - start))
        rows = b.reshape(b.copied(part), (part.shape[0] * each, length))
        own = b.narrow(dy, 0, start * each, rows.shape[0])
        b.linear_wgrad(rows, own, **of, out=total, accumulate=start > 0)
    if total is not out:
        b.call(b.operations["copy"], total, out=out)


def _summed_by_group(
    b: Any, windows: Buffer, dy: Buffer, out: Buffer, groups: int, tier: str, chain: bool
) -> None:
    """Computes ``out`` [O, *taps, C / groups] as ``linear_wgrad`` of each group's windows: in one
    batched product, or with ``chain`` in one product for each group.
    """
    rows, channels = dy.shape
    of_group = (groups, channels // groups, prod(out.shape[1:]))
    out = b.reshape(out, of_group)
    split = _by_group(windows, groups)
    x = b.reshape(b.copied(split), (groups, rows, of_group[2]))
    dy = b.packed(b.permute(b.reshape(dy, (rows, *of_group[:2])), (1, 0, 2)))
    if not chain:
        b.matmul(dy, x, transpose_a=True, tier=tier, out=out)
        return
    for i in range(groups):
        own = (b.squeeze(b.narrow(v, 0, i, 1), 0) for v in (x, dy, out))
        one, other, place = own
        b.linear_wgrad(one, other, layout="nk", tier=tier, chain=True, out=place)
