"""The problems of kernels that reduce columns, move with indices, scan and select."""

from __future__ import annotations

import functools

import numpy as np
from bits import NUMPY, operand, same_bits
from interp_launch import SEED
from steps import unchecked

import ptxgen
from ptxgen import reference
from ptxgen.numerics.column_reductions import REDUCTIONS
from ptxgen.ops import OPERATIONS
from ptxgen.oracle import counting_sort as order_oracle
from ptxgen.oracle.column_reductions import reduce_columns as columns_oracle
from ptxgen.spec.column_reductions import FORMULAS, variant
from ptxgen.spec.scan import LogScanSpec
from ptxgen.spec.select import DrawSpec, LanesSpec, SelectSpec, SiftSpec
from ptxgen.tiles import SPECS, TABLES


def numbers(rng, shape, dtype, kind="normal"):
    """Draws numbers of a dtype given by its short name; integers have random bits."""
    if dtype in ("i32", "i64"):
        kinds = {"i32": np.int32, "i64": np.int64}
        limits = np.iinfo(kinds[dtype])
        return rng.integers(limits.min, limits.max, shape, kinds[dtype], endpoint=True)
    return operand(rng, shape, kind, dtype)


def agree(got, expected, **where):
    """All results have the oracle's bits."""
    got, expected = ((x if isinstance(x, tuple) else (x,)) for x in (got, expected))
    for a, b in zip(got, expected, strict=True):
        same_bits(a, b, seed=SEED, **where)


def check_columns(route, how, shape, kind, device):
    """A reduction of [OUTER, N, INNER], bf16, by a route."""
    rng = np.random.default_rng([SEED, *shape])
    arguments = []
    for name, of in REDUCTIONS[how].kinds.items():
        own = shape if how.endswith("columns") else shape[:2] if of == "column" else shape
        arguments.append(operand(rng, own, kind, "bf16" if of == "element" else "f32"))
        assert name
    with ptxgen.use_device(device):
        got = OPERATIONS[how](*arguments, kernel=route)
    agree(got, columns_oracle(how, *arguments), spec=route, what=f"{how} {shape} {kind}")


def check_sums(route, shape, dtype, device):
    """Sums of columns of another dtype than the table's, by a route of the table."""
    x = numbers(np.random.default_rng([SEED, *shape]), shape, dtype, "wide")
    formula = REDUCTIONS["sum_columns"].formula((dtype,), dtype)
    kernel = route.of(variant("sum_columns", formula)).name
    with ptxgen.use_device(device):
        got = OPERATIONS["sum_columns"](x, kernel=kernel)
    agree(got, columns_oracle("sum_columns", x), spec=kernel, what=f"{shape} {dtype}")


def columns(name):
    """A few columns, short of a leaf and beyond a branch; and rows that are no whole groups."""
    route = next(r.name for r in _routes("column_reductions") if r.kernels[0].name == name)
    (how,) = (h for h in REDUCTIONS if SPECS[name].dtype.startswith(h))
    assert SPECS[name].dtype in FORMULAS
    shapes = [((2, 1100, 16), "wide"), ((1, 33 * 1024 + 9, 8), "normal")]
    if how != "sum_columns" or "whole" in name:
        shapes = [((2, 1100, 16), "wide"), ((1, 45, 24), "special")]
    if "cluster" in name:  # a leaf of each CTA
        shapes = [((2, 1100, 16), "wide"), ((1, 7 * 1024 + 9, 8), "normal")]
    found = [functools.partial(check_columns, route, how, *shape) for shape in shapes]
    if (
        how == "sum_columns" and SPECS[name].warps_per_leaf > 1
    ):  # in f32, where no rounding hides an order
        made = TABLES["column_reductions",].named[route]
        long = 7 if "cluster" in name else 33
        found.append(functools.partial(check_sums, made, (1, long * 1024 + 9, 8), "f32"))
    return found


def _routes(*key):
    return [r.of(d) for d in TABLES[key].dtypes for r in TABLES[key].routes]


def _route(key, name):
    """The name of a route that has the kernel ``name``."""
    return next(r.name for r in _routes(key) if name in r.names)


def check_gather(route, rows, width, device):
    """Rows of bytes that are read, some of them missing."""
    rng = np.random.default_rng([SEED, rows, width])
    x, which = rng.integers(0, 256, (7, width), np.uint8), rng.integers(-1, 8, rows)
    with ptxgen.use_device(device):
        got = unchecked("embedding")(x, which, kernel=route)
    assert (got == reference.embedding(x, which)).all(), (SEED, route, rows, width)


def gather(name):
    """A row shorter than a turn, and one of several CTAs; kernels of few bytes take any."""
    shapes = (9, 3 * SPECS[name].vector_bytes), (3, 6000)
    return [functools.partial(check_gather, name, *shape) for shape in shapes]


def check_bag(route, each, inner, kinds, device, rows=7):
    """Weighted sums of ``rows`` rows, some of them missing; ``kinds``: dtypes of indices and
    weights.
    """
    rng = np.random.default_rng([SEED, each, inner])
    dtype = SPECS[route].dtype
    x, which = operand(rng, (rows, inner), "special", dtype), rng.integers(-1, rows + 1, (5, each))
    x[:3] = operand(rng, (3, inner), "wide", dtype)[:rows]  # whose sums show their order
    which[:2] = rng.integers(0, 3, (2, each))
    weights = operand(rng, (5, each), "wide", kinds[1] or dtype)
    weights[4, :1] = np.inf
    given = x, which.astype(kinds[0]), weights
    with ptxgen.use_device(device):
        got = OPERATIONS["embedding_bag"](*given, kernel=route)
    agree(got, reference.embedding_bag(*given), spec=route, what=f"{each} rows of {inner}")


def bag(name):
    """Bags without rows, of a lane of the contract and of four; rows of one tile and of two; bags
    of an array that has no rows.
    """
    columns = SPECS[name].columns
    shapes = (0, 3 * columns), (3, 129 * columns), (8, columns), (21, columns), (32, 3 * columns)
    kinds = ("i8", "f32"), ("i4", None)
    found = [functools.partial(check_bag, name, *s, kinds[i % 2]) for i, s in enumerate(shapes)]
    return [*found, functools.partial(check_bag, name, 3, columns, kinds[0], rows=0)]


def check_order(of, route, given, options, device):
    """Vectors of integers that are sorted, counted, or say where rows are put."""
    with ptxgen.use_device(device):
        got = OPERATIONS[of](*given, **options, kernel=route)
    agree(got, getattr(order_oracle, of)(*given, **options), spec=route, what=of)


def order(name, counts=(1, 7, 4099)):
    """Returns checks of sorting and counting kernels: few different integers, so that many are
    equal, and integers with random bits.
    """
    spec, rng = SPECS[name], np.random.default_rng(SEED)
    if spec.part == "put":
        kind = {"b16": np.float16, "b32": np.float32, "b64": np.int64}[spec.dtype]
        x, source = (numbers_of(rng, (2, n, 3), kind) for n in (9, 20))
        given = x, rng.integers(-2, 11, 20), source
        return [functools.partial(check_order, "put_rows", name, given, {})]
    if spec.part == "place":
        given = rng.permutation(700), rng.integers(0, 99, 700)
        each = (given, given[:1])
        return [functools.partial(check_order, "placed", name, g, {}) for g in each]
    kind = {"i32": np.int32, "i64": np.int64}[spec.dtype]
    drawn = [rng.integers(-3, 5, n).astype(kind) for n in counts]
    drawn.append(numbers(rng, (300,), spec.dtype))
    if spec.part == "count":
        how = {"bins": 6, "first": -2}
        ways = [(x, how | {"up_to": i % 2 == 0}) for i, x in enumerate(drawn)]
        return [functools.partial(check_order, "count_integers", name, (x,), h) for x, h in ways]
    route = next(r.name for r in _routes("counting_sort", "sort") if name in r.names)
    most = {"block": 4096}.get(spec.part, 1 << 30)
    fit = [x for x in drawn if x.size <= most]
    return [functools.partial(check_order, "sort_integers", route, (x,), {}) for x in fit]


def experts(name):
    """Returns checks of a sort by expert: a slot, as many as the kernel takes, some of no expert,
    of all experts and of a few.
    """
    spec, rng = SPECS[name], np.random.default_rng(SEED)
    slots, most = 64 if spec.bits == spec.warps else 512, (1 << spec.bits) - 1
    few = most // 2 + 1 if spec.bits > 8 else 3
    shapes = ((1, 1), few), ((slots, 8), most), ((slots - 7, 8), few)
    kind = {"i32": np.int32, "i64": np.int64}[spec.dtype]
    drawn = [(rng.integers(-2, count + 2, shape).astype(kind), count) for shape, count in shapes]
    drawn[-1][0][:, 0] = np.iinfo(kind).max
    return [functools.partial(check_order, "sort_experts", name, given, {}) for given in drawn]


def numbers_of(rng, shape, kind):
    """Draws integers below 2^15, converted to dtype ``kind``."""
    return rng.integers(0, 1 << 15, shape).astype(kind)


def check_scan(of, route, shape, kind, exclusive, reverse, device):
    """Prefix sums, of numbers or of exponentials."""
    x = operand(np.random.default_rng([SEED, *shape]), shape, kind, "bf16")
    with ptxgen.use_device(device):
        got = OPERATIONS[of](x, exclusive=exclusive, reverse=reverse, kernel=route)
    expected = getattr(reference, of)(x, exclusive=exclusive, reverse=reverse)
    same_bits(got, expected, seed=SEED, spec=route, what=f"{shape} {kind} {exclusive} {reverse}")


def scan(name):
    """Several chunks of a warp, by vectors and not, and more rows than warps."""
    table, of = "scan", "cumsum"
    if isinstance(SPECS[name], LogScanSpec):
        table, of = "logscan", "logcumsumexp"
    route, longest = _route(table, name), 256 * SPECS[name].warps_per_row
    if SPECS[name].lanes < 32:  # two rows of a warp, one of which may not be there
        shapes = ((5, 128), "wide"), ((33, 99), "normal"), ((9, 5), "special")
        return [functools.partial(check_scan, of, route, *s, True, True) for s in shapes]
    cases = [
        ((2, longest + 264), "wide", False, False),
        ((2, longest + 3), "normal", True, True),
        ((9, 5), "special", False, True),
        ((1, 256), "wide", True, False),
    ]
    return [functools.partial(check_scan, of, route, *case) for case in cases]


def check_topk(route, shape, k, largest, device):
    """Rows of few different numbers, so that many are equal."""
    rng = np.random.default_rng([SEED, *shape])
    x = operand(rng, shape, "special", "bf16")
    x[:, ::3] = rng.choice(x[0], x[:, ::3].shape)
    with ptxgen.use_device(device):
        got = ptxgen.topk(x, k, largest=largest, kernel=route)
    agree(got, reference.topk(x, k, largest=largest), spec=route, what=f"{shape} {k}")


def check_edge(route, n, k, device):
    """The largest of a row whose last ones are, and of one in which half of all threads have
    nothing but large ones, nearly all of them different.
    """
    at = np.arange(n)
    rising = at * max(0x7F00 // n, 1) % 0x7F00
    crowded = at * 7919 % 0x1FFF + np.where(at // 8 % 2 == 0, 0x4000, 0x2000)
    for bits in (rising, crowded):
        x = bits.astype(np.uint16).view(NUMPY["bf16"])[None]
        with ptxgen.use_device(device):
            got = ptxgen.topk(x, k, kernel=route)
        agree(got, reference.topk(x, k), spec=route, what=f"{n} {k}")


def topk(name):
    """Returns checks of the top 1, of all, and of a few of rows up to the longest the
    kernel takes.
    """
    cases = {
        LanesSpec: [((2, 1), 1, True), ((9, 45), 32, False), ((2, 256), 20, True)],
        SiftSpec: [((2, 1), 1, True), ((2, 45), 45, False), ((1, 1000), 300, True)],
        SelectSpec: [((2, 1), 1, True), ((2, 45), 45, False), ((1, 4100), 300, True)],
    }[type(SPECS[name])]
    if getattr(SPECS[name], "part", "whole") != "whole":
        cases = [((2, 1), 1, True), ((1, 16390), 100, False)]
    return [functools.partial(check_topk, _route("topk", name), *case) for case in cases]


def check_route(route, shape, k, how, device):
    """Routes tokens by a route and compares the choice with the oracle's."""
    rng = np.random.default_rng([SEED, *shape])
    x = operand(rng, shape, "normal", SPECS[route].dtype)
    x[:, ::3] = rng.choice(x[0], x[:, ::3].shape)  # many are equal
    x[-1, :] = operand(rng, shape[1:], "special", SPECS[route].dtype)
    with ptxgen.use_device(device):
        got = OPERATIONS["route_tokens"](x, k, **how, kernel=route)
    agree(got, reference.route_tokens(x, k, **how), spec=route, what=f"{shape} {k} {how}")


def router(name):
    """Routes to one expert, to all, and to a few of as many as the kernel takes."""
    most = 256 * SPECS[name].groups
    cases = [
        ((1, 1), 1, {"normalize": True}),
        ((3, 20), 20, {"normalize": True, "narrow": True, "index": "int32"}),
        ((7, most - 8), 8, {"scale": 2.5}),
        ((5, most), 32, {"normalize": True, "scale": 0.3}),
    ]
    return [functools.partial(check_route, name, *case) for case in cases]


def check_sample(route, shape, options, device):
    """Draws samples by a route and compares them with the oracle's."""
    x = operand(np.random.default_rng([SEED, *shape]), shape, "normal", "bf16")
    with ptxgen.use_device(device):
        got = ptxgen.sample(x, seed=SEED, offset=3, kernel=route, **options)
    expected = reference.sample(x, seed=SEED, offset=3, **options)
    same_bits(got, expected, seed=SEED, spec=route, what=f"{shape} {options}")


def sample(name):
    """The largest, and draws from all and from few, with settings of rows and of all."""
    cases = [
        ((3, 45), {}),
        ((3, 45), {"temperature": np.array([0.9, 0, 2], np.float32), "min_p": 0.2, "top_k": 9}),
        ((2, 4100), {"temperature": 0.8}),
        ((2, 600), {"temperature": 1.5, "top_k": 40, "top_p": 0.7}),
    ]
    if SPECS[name].together > 1:
        cases[2:] = [
            ((2, 4100), {"temperature": 0.8, "top_p": 0.9}),
            ((1, 2100), {"temperature": 1.5, "top_k": 40, "top_p": 0.7}),
        ]
    if isinstance(SPECS[name], DrawSpec):
        cases[2:] = [
            ((1, 16390), {"temperature": 0.8, "top_k": 128}),
            ((2, 600), {"temperature": 1.5, "top_k": 40, "top_p": 0.7}),
        ]
    route = _route("sample", name)
    return [functools.partial(check_sample, route, *case) for case in cases]
