"""Every kernel on the CPU device, bit for bit the oracle: all edges, operations and epilogues.

The tests follow from the tables: a new spec needs none of its own.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import itertools
import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from bits import KINDS, NUMPY, same_bits
from edge_cases import at_edge, literal, unmet
from interp_cases import (
    EPILOGUES,
    alignments,
    check_product,
    checks,
    chunked,
    representatives,
    sizes,
    twin,
)
from interp_launch import KERNELS, ROUTED, SEED, Case, admits, factors

import ptxgen
from ptxgen import reference
from ptxgen.build.render import render
from ptxgen.errors import OptionError
from ptxgen.numerics.contract import AUTO_TIER, CONTRACTS, ITEMSIZE, OPERATIONS, TIERS
from ptxgen.runtime.cpu import SMS, CpuDevice
from ptxgen.tiles import SPECS

PROJECT = Path(__file__).parents[2]


def some(names, *fields):
    """Runs a test on one of all kernels that are alike in ``fields``. (GPU tests run
    every kernel.)
    """
    return pytest.mark.parametrize("name", representatives(names, *fields))


@functools.lru_cache(maxsize=1)
def device(name):
    """A device for the tests of a kernel, which come one after the other and decode it once."""
    return CpuDevice()


@contextlib.contextmanager
def settings(name, **changes):
    """The device of a kernel, run differently."""
    found = device(name)
    before = found.settings
    found.settings = replace(before, **changes)
    try:
        yield found
    finally:
        found.settings = before


def check(name, case, where=None):
    """Runs ``case`` and compares it with the oracle."""
    check_product(name, case, where or device(name))


# -- every kernel -----------------------------------------------------------------------


def by_turns(names):
    """Returns one name of each group of products that differ in layout alone, layouts in turn."""
    alike = {}
    for name in sorted(names):
        told = [f.name for f in fields(SPECS[name]) if f.name not in ("layout", "name")]
        key = (type(SPECS[name]), *(str(getattr(SPECS[name], field)) for field in told))
        alike.setdefault(key, []).append(name)
    return {group[turn % len(group)] for turn, group in enumerate(alike.values())}


def variant(name):
    """Returns all of a kernel's spec but its numbers: kernels that are alike in it come from the
    same lines of a template.
    """
    told = ((f.name, getattr(SPECS[name], f.name)) for f in fields(SPECS[name]))
    return type(SPECS[name]), *(
        str(value)
        for field, value in told
        if field != "name" and (isinstance(value, bool) or not isinstance(value, int))
    )


def routes():
    """Routes, of which those of products that differ in their tiles are long, all but one. Tests of
    attention and of its gradients run the other kernels of attention. Of products that differ in
    their layouts alone there is one; of twins, which differ from their originals in what
    :func:`test_twins_differ_in_one_way` says, one of each family and split. Of other kernels that
    differ in numbers alone (threads, elements of a lane) there is the smallest; others are long.
    """
    products = [n for n in ROUTED if hasattr(SPECS[n], "bm")]
    attention = [n for n in ROUTED if hasattr(SPECS[n], "head_dim_v")]
    plain = [n for n in ROUTED if not n.startswith("conv")]  # whose twins differ as those do
    shown = representatives(plain, "family", "split", twins=True)
    told = ("family", "part", "capped", "result", "layout", "split", "dtype")
    shown += representatives(products, *told)
    others = sorted({*ROUTED} - {*products, *attention}, key=lambda n: (SPECS[n].threads, n))
    shown += {variant(name): name for name in reversed(others)}.values()
    more = by_turns(n for n in products if not twin(n)) | {*others}
    yield from sorted({*shown})
    for name in sorted(more - {*shown}):
        if name in others or not twin(name):
            yield pytest.param(name, marks=pytest.mark.long)


def difference(name):
    """The lines that a twin has in place of its original's, but for names and tile sizes."""
    one, other = (
        [
            re.sub(r"m64n\d+k", "m64nNk", line.replace(spec.name, "NAME"))
            for line in render(spec).splitlines()
            if not line.startswith("//")
        ]
        for spec in (SPECS[name].of("bf16"), SPECS[name])
    )
    changes = difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return [(one[a:b], other[c:d]) for what, a, b, c, d in changes if what != "equal"]


def kind(name):
    """Family, and what a kernel does of it, where they do not do all the same."""
    told = ("family", "part", "has_softcap", "result")
    return " ".join(str(getattr(SPECS[name], fact, "")) for fact in told)


@pytest.mark.parametrize("of", sorted({kind(n) for n in SPECS if twin(n)}))
def test_twins_differ_in_one_way(of):
    """The f16 twins of one kind differ from their bf16 kernels by the same source changes."""
    first, *others = [difference(n) for n in SPECS if twin(n) and kind(n) == of]
    assert all(other == first for other in others)
    # Conversions of single elements and of pairs, and the instruction: nothing that knows a tile.
    assert len(first) <= 8 and sum(len(new) for _, new in first) <= 12


@pytest.mark.parametrize("name", list(routes()))
def test_bits(name, request):
    """Every route returns the oracle's bits, on the few problems that cross all of its tile's
    edges, and at each edge of what it requires, wherever that says the edge is.
    """
    found = checks(name)
    assert found
    for each in (*found, *literal(name)):
        each(device(name))
    for key, route, edge in unmet(name, device(name), request.config.getoption("--long")):
        if run := at_edge(name, key, route, edge):
            run(device(name))


# -- at the edges -----------------------------------------------------------------------


def edges(spec):
    """(M, N, K) on both sides of the edges of a kernel's tile, stages, chunks and raster."""
    bm, bn, bk, stages = sizes(spec)
    less_m, less_n = max(bm - 1, 1), max(bn - 1, 1)
    band = getattr(spec, "raster", 8) * bm + 1
    found = [
        (bm, bn, bk),
        (bm + 1, bn + 1, bk + 1),
        (less_m, less_n, bk - 1),
        (bm, bn + 4, stages * bk),
        (1, bn + 1, (stages + 2) * bk + 3),
        (bm + 1, 1, (stages - 1) * bk),
        (1, 1, 1),
        (2 * bm + 3, less_n, 2),
        (less_m, 2 * bn + 3, stages * bk + bk // 2),
        (bm + 1, bn, 0),
        (band, bn + 1, 3),
    ]
    return list(dict.fromkeys(found))


def edge_cases(name, sms):
    """Returns cases at a kernel's edges: every shape, aligned and not, all epilogues in turn."""
    layout, route = KERNELS[name]
    dtype = route.kernels[0].dtype
    found = []
    turn = 0
    off = alignments(dtype)
    for i, (m, n, k) in enumerate(edges(route.kernels[0])):
        m = route.kernels[0].rows_from(m)
        where = [(16, 16)]
        others = off[i // 2 % len(off) :] + off[: i // 2 % len(off)]
        if i % 2 and k:
            where += [a for a in others if admits(route, Case(m, n, k, align=a), sms)][:1]
        for align in where:
            kind = KINDS[len(found) % 5]
            if kind == "special" and k > 20:
                kind = "normal"  # else everything is NaN
            plain = Case(
                m,
                n,
                k,
                kind=kind,
                align=align,
                odd=("both", "offset", "pitch")[i % 3],
                extra=(0, 3, 4, 1)[len(found) % 4],
                offset=len(found) % 3,
                bias_f32=turn // 2 % 2 == 1,
                out_f32=turn // 4 % 2 == 1,
            )
            if admits(route, plain, sms):
                activation, bias = EPILOGUES[turn % len(EPILOGUES)]
                found.append(replace(plain, activation=activation, bias=bias))
                turn += 1
            if layout == "TN":
                plain = replace(plain, op="linear_wgrad", bias=False, out_f32=i % 3 != 0)
                if admits(route, plain, sms):
                    found.append(replace(plain, accumulate=len(found) % 4 < 2))
    return found + [case for case in chunked(name) if admits(route, case, sms)]


def store_cases(name, sms):
    """Results that can be stored by vectors, and each reason why not."""
    layout, route = KERNELS[name]
    bm, bn, bk, _ = sizes(route.kernels[0])
    half = route.kernels[0].dtype != "f32"
    unit = 8 if half else 4
    whole = Case(bm + 1, -(-(bn + 1) // unit) * unit, bk + 1, bias=False)
    found = [replace(whole, n=3, extra=2)]  # rows of less than a vector, which start anywhere
    lies = [(0, 0, False), (4, 0, False), (1, 0, half), (0, 1, False)]
    if half:
        lies += [(4, 0, True), (2, 2, False), (8, 0, False)]
        found.append(replace(whole, n=bn + 3, extra=-(bn + 3) % unit))  # rows end inside a vector
    for extra, offset, wide in lies:
        case = replace(whole, extra=extra, offset=offset, bias=extra == offset, out_f32=wide)
        found.append(case)
        if layout == "TN" and extra in (0, 4):
            found.append(replace(case, op="linear_wgrad", bias=False, accumulate=True))
    return [case for case in found if admits(route, case, sms)]


@pytest.mark.long
@some(sorted(KERNELS), "family", "store", "layout", "dtype")
def test_edges(name):
    cases = edge_cases(name, SMS)
    layout, route = KERNELS[name]
    for case in cases:
        check(name, case)
    assert len(cases) >= 10
    plain = {(c.activation, c.bias) for c in cases if not c.accumulate}
    if admits(route, Case(1, 1, 1), SMS):
        assert plain >= set(EPILOGUES)
    if layout == "TN":
        assert {c.accumulate for c in cases if c.op == "linear_wgrad"} == {True, False}
    if route.kernels[0].dtype != "f32":
        beside = [(c.bias_f32, c.out_f32) for c in cases if c.bias and c.op == "linear"]
        assert len(set(beside)) == 4


STORES = [n for n in sorted(KERNELS) if KERNELS[n][0] in ("NN", "TN")]


@some(STORES, "family", "store", "split", "dtype")
def test_stores(name):
    """Operands' layout has no part in how results are stored, but TN may add to old values."""
    cases = store_cases(name, SMS)
    for case in cases:
        check(name, case)
    assert len(cases) >= 2


# -- through the library ----------------------------------------------------------------


def arguments(op, layout, m, n, k, kind, dtype):
    """The operation's arguments for a product [m, k] x [k, n], as they are stored."""
    product = OPERATIONS[op].products[layout]
    x, w, biases, olds = factors(m, n, k, kind, dtype)
    a = x.T if product.layout[0] == "T" else x
    b = w.T if product.layout[1] == "T" else w
    pair = [np.ascontiguousarray(v) for v in (a, b)]
    return [pair[i] for i in product.operands], biases, olds


def contract(tier, dtype):
    """Returns the contract of products in a tier, which may be "auto"."""
    return CONTRACTS[AUTO_TIER[dtype] if tier == "auto" else tier][dtype]


def options(op, layout):
    """Returns the keyword arguments that state a layout."""
    if op == "matmul":
        return {"transpose_a": layout[0] == "t", "transpose_b": layout[1] == "t"}
    return {"layout": layout}


def call(
    op,
    layout,
    m,
    n,
    k,
    *,
    dtype="f32",
    tier="auto",
    turn=0,
    epilogue=("none", False),
    kernel=None,
    kind="normal",
):
    """An operation of the library, and its oracle.

    ``turn`` picks the dtypes of bias and result, and whether a result is added to.
    """
    given, biases, olds = arguments(op, layout, m, n, k, kind, dtype)
    how, also, theirs = {**options(op, layout), "tier": tier}, {}, {}
    beside = list(olds)
    out = beside[turn // 2 % len(beside)]
    if op == "linear":
        activation, with_bias = epilogue
        how["activation"] = activation if contract(tier, dtype).activations else None
        how["bias"] = biases[beside[turn % len(beside)]] if with_bias else None
    if op == "linear_wgrad" and turn % 2:
        also, theirs = {"out": olds[out].copy(), "accumulate": True}, {"out_old": olds[out]}
        theirs["out_dtype"] = NUMPY[out].name
    else:
        how["out_dtype"] = None if turn % 3 == 0 else NUMPY[out].name
    got = getattr(ptxgen, op)(*given, **how, **also, kernel=kernel)
    what = f"{op} {layout} {m}x{n}x{k} {dtype} {tier} {kind} {epilogue} turn={turn}"
    same_bits(got, getattr(reference, op)(*given, **how, **theirs), spec=kernel, what=what)


@some(sorted(KERNELS), "layout", "tier", "dtype")
def test_operations(name):
    layout, route = KERNELS[name]
    spec = route.kernels[0]
    bm, bn, bk, _ = sizes(spec)
    item = ITEMSIZE[spec.dtype]
    unit = 16 // item
    shapes = (
        (bm + 1, bn + 1, bk + 1),
        (unit * (bm // unit + 1), unit * (bn // unit + 1), 32 + unit),
    )
    served = set()
    ways = [
        (op, way)
        for op, operation in OPERATIONS.items()
        for way, product in operation.products.items()
        if product.layout == layout
    ]
    epilogue = EPILOGUES[sorted(KERNELS).index(name) % len(EPILOGUES)]
    with ptxgen.use_device(device(name)):
        for i, (op, way) in enumerate(ways):
            for m, n, k in shapes[twin(name) :]:
                # Host arrays arrive packed.
                rows = (m if layout[0] == "T" else k), (k if layout[1] == "T" else n)
                align = tuple((item * size | 16) & -(item * size | 16) for size in rows)
                run_it = functools.partial(
                    call,
                    *(op, way, m, n, k),
                    dtype=spec.dtype,
                    tier=spec.tier,
                    turn=i,
                    epilogue=epilogue,
                    kernel=name,
                )
                if admits(route, Case(m, n, k, op=op, align=align), SMS):
                    run_it()
                    served.add((op, way))
                else:
                    with pytest.raises(OptionError, match="it requires"):
                        run_it()
    assert served == set(ways)


SHAPES = (
    (1, 1, 1), (1, 130, 70), (2, 64, 2304), (5, 33, 0), (7, 300, 129), (16, 256, 256),
    (33, 70, 65), (64, 200, 96), (100, 129, 40), (150, 1, 50), (260, 132, 20),
)  # fmt: skip
"""(M, N, K) of products, for which the library chooses."""

NUMBERS = [(dtype, tier) for tier, dtypes in TIERS.items() for dtype in dtypes]


CHOOSER = functools.cache(CpuDevice)
"""Device shared by the tests in which the library chooses: it decodes each kernel once."""


@contextlib.contextmanager
def choosing(sms):
    """The library chooses for a device of ``sms`` multiprocessors."""
    chooser = CHOOSER()
    chooser.sms = sms
    chooser.prepared.clear()
    with ptxgen.use_device(chooser):
        yield


SOME = {"f32": 1, "f64": 4, "bf16": 2, "f16": 4}
"""Stride through a list of problems, by dtype: one of so many is run, in turn."""

PARTS = 8
"""Number of parts of the problems; the first always runs, the others are long tests."""


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS))]
)
@pytest.mark.parametrize(("dtype", "tier"), NUMBERS)
@pytest.mark.parametrize("op", sorted(OPERATIONS))
def test_chosen_kernels(op, dtype, tier, part):
    epilogue = itertools.cycle(EPILOGUES)
    ran = 0
    for sms in (SMS, 8):  # other routes, the same bits
        with choosing(sms):
            for turn, (layout, (m, n, k)) in enumerate(
                itertools.product(OPERATIONS[op].products, SHAPES)
            ):
                number, rest = divmod(turn + sms // 8, SOME[dtype])
                if rest == 0:
                    how = {"dtype": dtype, "tier": tier, "turn": turn, "epilogue": next(epilogue)}
                    if number % PARTS == part:
                        call(op, layout, m, n, k, **how)
                        ran += 1
    assert ran


def hard():
    """Operation, numbers, dtype and tier: each of the numbers with each dtype and tier always, on
    operations by turns, but for those of f16 that are no harder than in bf16; the others are long.
    """
    ops = sorted(OPERATIONS)
    for (o, op), (k, kind), (d, numbers) in itertools.product(
        enumerate(ops), enumerate(KINDS), enumerate(NUMBERS)
    ):
        alike = numbers[0] == "f16" and kind in ("wide", "cancelling")  # as in bf16
        marks = pytest.mark.long if (o + k + d) % len(ops) or alike else ()
        yield pytest.param(op, kind, *numbers, marks=marks)


@pytest.mark.parametrize(("op", "kind", "dtype", "tier"), list(hard()))
def test_chosen_kernels_on_hard_numbers(op, kind, dtype, tier):
    how = {"epilogue": ("gelu", True), "kind": kind, "dtype": dtype, "tier": tier}
    shapes = (5, 40, 20), (1, 9, 33), (3, 33, 2100)
    problems = list(itertools.product(OPERATIONS[op].products, shapes))
    with choosing(SMS):
        for layout, (m, n, k) in problems[KINDS.index(kind) % SOME[dtype] :: SOME[dtype]]:
            call(op, layout, m, n, k, turn=m, **how)


def test_leading_dimensions_and_empty_results():
    rng = np.random.default_rng(SEED)
    with ptxgen.use_device(CpuDevice()):
        x, w = rng.standard_normal((2, 3, 9), "f4"), rng.standard_normal((9, 5), "f4")
        for dtype in NUMPY.values():
            a, b = x.astype(dtype), w.astype(dtype)
            same_bits(ptxgen.linear(a, b, layout="kn"), reference.linear(a, b, layout="kn"))
            assert ptxgen.linear(a[:0], b, layout="kn").shape == (0, 3, 5)
            assert ptxgen.linear(a, b[:, :0], layout="kn").shape == (2, 3, 0)


# -- results do not depend on how the device runs ----------------------------------------


@some(sorted(KERNELS), "family", "split", "persistent", "swap_operands")
def test_schedules(name):
    _, route = KERNELS[name]
    bm, bn, bk, stages = sizes(route.kernels[0])
    tall = max(bm - 3, 1) if bm > 16 else bm + 1
    case = Case(tall, bn + 1, (stages + 1) * bk + 5, activation="relu")
    if not admits(route, case, SMS):
        case = Case(tall, bn + 1, 400, op="linear_wgrad", bias=False)
    number = sorted(KERNELS).index(name)
    change = {"early": True, "wave_lanes": 1} if number % 2 else {}
    with settings(name, seed=number, **change) as changed:
        check(name, case, changed)


WAYS = (
    "family", "copy_a", "copy_b", "split", "persistent", "lanes", "swap_operands", "prefetch",
    "consumers", "cluster_m", "cluster_n",
)  # fmt: skip
"""Spec fields that say how a kernel copies, splits and synchronises."""


def some_kernels():
    """A kernel of every way to copy, split and synchronise."""
    found = {}
    for name, (_, route) in sorted(KERNELS.items()):
        if twin(name):
            continue
        spec = route.kernels[0]
        threads = getattr(spec, "slice_threads", 0)
        way = [spec.dtype, len(route.kernels), *(getattr(spec, a, None) for a in WAYS)]
        way += [threads > 32, getattr(spec, "slices", 1) > 1, getattr(spec, "registers", 0) > 0]
        found.setdefault(tuple(way), name)
    return sorted(found.values())


@pytest.mark.long
@pytest.mark.parametrize("name", some_kernels())
def test_many_schedules(name):
    layout, route = KERNELS[name]
    bm, bn, bk, _ = sizes(route.kernels[0])
    cases = [Case(bm + 1, bn + 1, bk + 1), Case(1, 5, 2 * bk + 3, bias=False, activation="silu")]
    if layout == "TN":
        cases.append(Case(3, bn, 300, op="linear_wgrad", bias=False, accumulate=True))
    for seed, case in enumerate(c for c in cases if admits(route, c, SMS)):
        how = {"seed": seed, "early": seed % 2 == 0, "wave_lanes": 1 << 8 * (seed % 3)}
        with settings(name, **how) as found:
            check(name, case, found)


def walks(spec):
    """Whether CTAs, or clusters of them, walk over the tiles, however many there are."""
    return getattr(spec, "persistent", spec.family == "wgmma" and spec.split != "cluster")


class FewCtas(CpuDevice):
    """A device that starts no more than ``limit`` CTAs or clusters of a kernel that walks."""

    limit = 1

    def launch(self, function, grid, block, stream, params, what):
        spec = SPECS[function.symbol]
        if walks(spec):
            grid = (min(grid[0], self.limit * getattr(spec, "ctas", 1)), 1, 1)
        super().launch(function, grid, block, stream, params, what)


@some([n for n, (_, r) in sorted(KERNELS.items()) if walks(r.kernels[0])], "family", "split")
def test_persistent_kernels_walk(name):
    layout, route = KERNELS[name]
    bm, bn, bk, _ = sizes(route.kernels[0])
    low = ITEMSIZE[route.kernels[0].dtype]
    few = FewCtas()
    for limit, align in ((1, (16, 16)), (2, (low, low)), (3, (16, 16))):
        few.limit = limit
        case = Case(bm + 1, 2 * bn + 1, bk + 1, align=align, extra=limit)
        if limit == 1 and layout == "TN":
            case = replace(case, k=600, op="linear_wgrad", bias=False)
        if admits(route, case, few.sms):
            check(name, case, few)


# -- a new spec -------------------------------------------------------------------------


def test_a_new_spec_is_picked_up(tmp_path):
    """One edit of a table adds a kernel together with its tests."""
    from test_add_a_kernel import EDIT

    for room in ("ptxgen", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "conformance", "gpu")
        shutil.copytree(PROJECT / room, tmp_path / room, ignore=ignored)
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    with (tmp_path / "ptxgen/tiles/simt.py").open("a") as table:
        table.write(EDIT)

    def python(*argv):
        return subprocess.run(
            [sys.executable, *argv],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=300,
        )

    names = python("-c", "from ptxgen.tiles import SPECS; print(*SPECS)").stdout.split()
    (new,) = set(names) - SPECS.keys()
    run_it = ("-m", "pytest", "-v", "-p", "no:cacheprovider", "tests/interp/test_interp_kernels.py")
    done = python(*run_it, "-k", new)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"test_bits[{new}] PASSED" in done.stdout
