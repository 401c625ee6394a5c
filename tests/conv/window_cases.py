"""Problems of kernels that read windows where they lie: convolutions that are one launch."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from bits import KINDS, NUMPY, operand, same_bits
from interp_launch import SEED

import ptxgen
from ptxgen import reference
from ptxgen.numerics.option import Activation, Bool, Dtype, Kernel
from ptxgen.ops import implicit_gemm
from ptxgen.ops.conv import Groups, Padding, Sizes, Steps, _along, _axis_phases, _geometry
from ptxgen.ops.implicit_gemm import TapSubset
from ptxgen.program.buffer import Buffer
from ptxgen.program.operation import op
from ptxgen.spec.depthwise import TAPS_MAX
from ptxgen.spec.gemm.loads import Gather
from ptxgen.tiles import SPECS, TABLES
from ptxgen.tiles.conv import DEPTHWISE, KEY, SUMMED, TURNED


@op(public=False)
def windows(
    b,
    x: Buffer,
    w: Buffer,
    bias: Buffer | None = None,
    *,
    stride: Steps = 1,
    padding: Padding = 0,
    dilation: Steps = 1,
    groups: Groups = 1,
    turned: Bool = False,
    activation: Activation = None,
    out_dtype: Dtype = None,
    kernel: Kernel = None,
) -> Buffer:
    """``conv`` of channels last, by a kernel that is asked for; ``turned``: of filters [C, *taps,
    O].
    """
    w = b.permute(w, (len(w.shape) - 1, *range(1, len(w.shape) - 1), 0)) if turned else w
    how, taps = _geometry(len(x.shape) - 2, stride, padding, dilation), w.shape[1:-1]
    count = how.results(x.shape[1:-1], taps)
    y = b.result((x.shape[0], *count, w.shape[0]), out_dtype or x.dtype)
    serve = implicit_gemm.fprop if groups == 1 else implicit_gemm.depthwise
    serve(b, x, _along(how, taps, count), w, bias, y, activation, kernel)
    return y


@op(public=False)
def image_gradient(
    b,
    dy: Buffer,
    w: Buffer,
    bias: Buffer | None = None,
    *,
    image: Sizes,
    stride: Steps = 1,
    padding: Padding = 0,
    dilation: Steps = 1,
    activation: Activation = None,
    out_dtype: Dtype = None,
    kernel: Kernel = None,
) -> Buffer:
    """``conv_dgrad`` of channels last, with a bias, by a kernel that is asked for."""
    dx = b.result((dy.shape[0], *image, w.shape[-1]), out_dtype or dy.dtype)
    ways = _axis_phases(_geometry(len(image), stride, padding, dilation), image, w.shape[1:-1])
    several = [
        [TapSubset(along, tap, every) for _, (tap, _, every), along in each] for each in ways
    ]
    turned = b.permute(w, (len(image) + 1, *range(1, len(image) + 1), 0))
    implicit_gemm.strided_dgrad(b, dy, several, turned, bias, dx, activation, kernel)
    return dx


@op(public=False)
def filter_gradient(
    b,
    x: Buffer,
    dy: Buffer,
    *,
    taps: Sizes,
    stride: Steps = 1,
    padding: Padding = 0,
    dilation: Steps = 1,
    out_dtype: Dtype = None,
    kernel: Kernel = None,
) -> Buffer:
    """``conv_wgrad`` of channels last, by a kernel that is asked for."""
    along = _along(_geometry(len(taps), stride, padding, dilation), taps, dy.shape[1:-1])
    dw = b.result((dy.shape[-1], *taps, x.shape[-1]), out_dtype or x.dtype)
    rows = b.reshape(dy, (-1, dy.shape[-1]))
    implicit_gemm.wgrad(b, x, along, rows, b.reshape(dw, (dy.shape[-1], -1)), kernel)
    return dw


@dataclass(frozen=True)
class Case:
    """``image``: batch, sides, channels; ``taps`` and ``outs`` of the filters."""

    image: tuple[int, ...]
    taps: tuple[int, ...]
    outs: int
    stride: tuple[int, ...] | int = 1
    padding: tuple[int, ...] | int = 0
    dilation: tuple[int, ...] | int = 1
    kind: str = "normal"
    bias: str = ""
    activation: str | None = None
    wide: bool = False
    groups: int = 1


def route_of(name):
    """The route whose kernel it is, maybe behind a copy."""
    tables = [TABLES[key] for key in (KEY, TURNED, SUMMED, DEPTHWISE)]
    routes = (r.of(dtype) for table in tables for r in table.routes for dtype in table.dtypes)
    return next(r.name for r in routes if r.main.name == name)


def turn_of(name):
    """Returns a kernel's index among all convolution kernels."""
    return sorted(n for n in SPECS if n.startswith("conv_")).index(name)


def check(name, case, device):
    """Runs a case and compares it with the oracle, which knows columns only."""
    dtype = SPECS[name].dtype
    rng = np.random.default_rng([SEED, *case.image, *case.taps, case.outs])
    draw = functools.partial(operand, rng, kind=case.kind)
    given = [draw(case.image, dtype=dtype)]
    given.append(draw((case.outs, *case.taps, case.image[-1] // case.groups), dtype=dtype))
    if case.bias:
        given.append(draw((case.outs,), dtype=case.bias if case.bias == "f32" else dtype))
    how = {n: getattr(case, n) for n in ("stride", "padding", "dilation", "activation", "groups")}
    how["out_dtype"] = "float32" if case.wide else NUMPY[dtype].name
    turned = getattr(SPECS[name], "layout", "NT") == "NN"
    asked = list(given)
    if turned:
        asked[1] = np.ascontiguousarray(np.swapaxes(given[1], 0, -1))
    with ptxgen.use_device(device):
        got = windows(*asked, **how, turned=turned, kernel=route_of(name))
    expected = reference.conv(*given, **how, layout="channels_last")
    same_bits(got, expected, seed=SEED, spec=name, what=str(case))


def check_gradient(name, case, device):
    """Runs a gradient and compares it with the oracle: by the filters if the kernel sums over
    windows, else by the image, with a bias as in ``conv_transpose``.
    """
    spec, rank = SPECS[name], len(case.taps)
    rng = np.random.default_rng([SEED, *case.image, *case.taps, case.outs])
    draw = functools.partial(operand, rng, kind=case.kind, dtype=spec.dtype)
    how = {n: getattr(case, n) for n in ("stride", "padding", "dilation")}
    sides, lies = case.image[1:-1], _geometry(rank, *how.values())
    count = lies.results(sides, case.taps)
    how["out_dtype"] = "float32" if case.wide else NUMPY[spec.dtype].name
    last = {"layout": "channels_last"}
    dy = draw((case.image[0], *count, case.outs))
    if spec.summed:
        given, call, sizes = [draw(case.image), dy], filter_gradient, {"taps": case.taps}
        expected = reference.conv_wgrad(*given, **sizes, **how, **last)
    else:
        given, call, sizes = [dy, draw((case.outs, *case.taps, case.image[-1]))], image_gradient, {}
        sizes["image"] = sides
        how["activation"] = case.activation
        if case.bias:
            wide = {"dtype": "f32"} if case.bias == "f32" else {}
            given.append(draw((case.image[-1],), **wide))
        more = [
            n - ((c - 1) * s - 2 * p + d * (t - 1) + 1)
            for n, c, s, p, d, t in zip(
                sides, count, lies.stride, lies.padding, lies.dilation, case.taps, strict=True
            )
        ]
        expected = reference.conv_transpose(*given, **how, **last, output_padding=more)
    with ptxgen.use_device(device):
        got = call(*given, **sizes, **how, kernel=route_of(name))
    same_bits(got, expected, seed=SEED, spec=name, what=str(case))


def loose(spec):
    """1 where it takes channels in no eights, else 0."""
    return int(spec.unit == 1)


def gradients(name):
    """More outputs and columns, or windows of each phase, than a tile has; phases of 1, 2 and 4
    taps, and of none; phases of which only one is cut into chunks; sums of more windows than the
    ring has, that end within a stage.
    """
    spec, turn = SPECS[name], turn_of(name)
    if spec.summed:
        channels = 72 if spec.store.panels else 24  # a panel, and 8 more
        half = 32 * spec.stages + 5
        wide, long = (
            Case((3, 9, 8, channels), (spec.bn // 64, 3), spec.bm + 8, stride=(2, 1), padding=1),
            Case((2, half, 8), (3,), 8, dilation=2, kind="special", wide=True),
        )
        return [functools.partial(check_gradient, name, case) for case in (wide, long)]
    rows, odd, unit = -(-(spec.bm + 1) // 9) * 2 - 1, loose(spec), max(spec.unit, 8)
    wide = Case(
        (2, rows, 9, spec.bn + 8),
        (3, 2),
        16 + unit + odd,
        stride=2,
        padding=1,
        bias=("", "f32", "own")[turn % 3],
        activation=("silu", None)[turn % 2],
        wide=turn % 4 == 1,
    )
    long = 64 * spec.stages + unit + odd
    none = Case((1, 9, 16), (1,), long, stride=2, bias="own", kind="special")
    cut = Case((1, 5, 4, 16), (4, 3), 1024 + unit + odd, stride=2, kind="cancelling")
    return [functools.partial(check_gradient, name, case) for case in (wide, none, cut)]


def products(name):
    """More windows and outputs than a tile has, of several images; taps that end within a stage;
    more stages than the ring has; chunks that end within a tap.
    """
    spec, turn = SPECS[name], turn_of(name)
    if spec.layout == "TN":
        return gradients(name)
    rows = -(-(spec.bm + 1) // (3 * 9)) * 2 + 1
    kind = KINDS[turn % len(KINDS)]
    found = [
        Case(
            (3, rows, 10, 32 + spec.unit),
            (3, 2),
            spec.bn + (8 if spec.layout == "NN" else 9),
            stride=(2, 1),
            padding=(1, 0),
            dilation=(1, 1),
            kind="normal" if kind == "special" else kind,
            bias=("", "f32", "own")[turn % 3],
            activation=("silu", None)[turn % 2],
            wide=turn % 4 == 1,
        ),
        Case(
            (2, 23, 64 + spec.unit),
            (spec.stages,),
            24,
            padding=2,
            dilation=2,
            kind="special",
        ),
    ]
    if spec.load == Gather("threads", "copy"):
        # Of the fewest channels; of all remainders, in rows that begin anywhere.
        found += [Case((2, 5, 9, c), (2, 3), 24, padding=1) for c in (9, 12, 18, 31)]
    if spec.split != "none":
        image = (1, 4, 5, 128 + loose(spec))
        found.append(Case(image, (3, 3), 16, padding=1, kind="cancelling", bias="own"))
    if spec.spilled_sums or spec.split == "workspace":  # cut, and more pixels than filters
        found.append(Case((1, 5, 4, 464 + loose(spec)), (3, 3), 2, padding=1, kind="cancelling"))
    few = found if spec.dtype == "bf16" else found[turn % len(found) :][:1]
    more = gradients(name) if spec.schedule.phased else []
    return [*(functools.partial(check, name, case) for case in few), *more]


def depthwise(name):
    """More channels than a tile has, and more windows; filters of as many taps as are taken;
    windows that share no pixels; channels that are copied two by two, and one by one.
    """
    turn = sorted(n for n in SPECS if n.startswith("depthwise")).index(name)
    many = Case(
        (3, 9, 21, 72),
        (3, 2),
        72,
        padding=(2, 1),
        kind="wide",
        bias="f32",
        activation="gelu",
        groups=72,
    )
    long = Case((2, TAPS_MAX + 9, 8), (TAPS_MAX,), 8, kind="special", wide=turn == 0, groups=8)
    strided = Case((1, 6, 40, 70), (3, 2), 70, stride=(1, 2), wide=turn == 1, groups=70)
    apart = Case((1, 9, 9, 15), (5, 3), 15, padding=4, dilation=(1, 3), bias="own", groups=15)
    return [functools.partial(check, name, case) for case in (many, long, strided, apart)]


def depthwise_edge(name, key, route, edge):
    """Returns a check with the edge's number of taps; None for variables that no call sets."""
    if edge.variable != "TAPS":
        return None
    case = Case((1, edge.inside["TAPS"] + 2, 8), (edge.inside["TAPS"],), 8, groups=8)
    return functools.partial(check, name, case)


def at_edge(name, key, route, edge):
    """Returns a check with as many windows, outputs or taps (16 in a row) as the edge has. None for
    edges that no call has: K is whole taps, and unaligned images are copied first.
    """
    at, variable = edge.inside, edge.variable
    count, outs = (at[n] if variable == n else few for n, few in (("M", 3), ("N", 8)))
    least = 4 if loose(SPECS[name]) else 16
    taps = (at["K"] // (least * 16), 16) if variable == "K" else (1, 2)
    if variable.startswith("ALIGN") or variable in ("PHASES", "FLAT"):
        return None
    channels = at["UNIT"] if variable == "UNIT" else least
    if SPECS[name].layout == "TN":
        outs, length, count = (at[n] if variable == n else 16 for n in "MNK")
        case = Case((1, count + length // 16 - 1, 16), (length // 16,), outs // 8 * 8)
        return functools.partial(check_gradient, name, case)
    case = Case((1, taps[0], count + taps[1] - 1, channels), taps, outs)
    return functools.partial(check, name, case)
