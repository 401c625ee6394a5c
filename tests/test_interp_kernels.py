"""Every kernel on the CPU device, bit for bit the oracle: all edges, operations and epilogues.

The tests follow from the tables: a new spec needs none of its own.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bits import KINDS, same_bits
from interp_launch import KERNELS, SEED, Case, admits, factors, oracle, run

import ptxgen
from ptxgen import reference
from ptxgen.contract import ACTIVATIONS, OPERATIONS
from ptxgen.errors import OptionError
from ptxgen.runtime.cpu import CpuDevice

PROJECT = Path(__file__).parents[1]
EPILOGUES = list(itertools.product(ACTIVATIONS, (True, False)))
"""Activation, and whether there is a bias."""

every_kernel = pytest.mark.parametrize("name", sorted(KERNELS))


@functools.cache
def device():
    """One device for all tests, which decodes each kernel once."""
    return CpuDevice()


@contextlib.contextmanager
def settings(**changes):
    """The device, run differently."""
    found = device()
    before = found.settings
    found.settings = replace(before, **changes)
    try:
        yield found
    finally:
        found.settings = before


def check(name, case, where=None):
    """Runs ``case`` and compares it with the oracle."""
    got, intact = run(where or device(), name, case)
    same_bits(got, oracle(case), seed=SEED, spec=name, what=str(case))
    assert intact, f"{case}: wrote beside the result"


def sizes(spec):
    """BM, BN, BK and stages; something for kernels that have none."""
    names = {"bm": 32, "bn": 32, "bk": 32, "stages": 2}
    return tuple(getattr(spec, name, other) for name, other in names.items())


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
        (band, bn + 1, bk + 3),
    ]
    return list(dict.fromkeys(found))


def chunked(name):
    """Problems whose reduction is split: evenly and not, also in more chunks than slices."""
    layout, route = KERNELS[name]
    bm, bn, _, _ = sizes(route.kernels[0])
    found = [Case(2, bn + 3, 2085, kind="cancelling", activation="silu", extra=2)]
    if getattr(route.kernels[0], "slices", 1) > 1:
        some_rows = Case(min(bm, 32) + 1, 5, 2048, bias=False)
        found += [replace(found[0], kind="wide", aligned=(False, False)), some_rows]
    if layout == "TN":
        many = 1100 if getattr(route.kernels[0], "slices", 1) > 1 else 270
        batch = Case(3, bn + 3, many, op="linear_wgrad", bias=False, accumulate=True)
        found += [batch, replace(batch, m=bm + 1, n=4, k=256, accumulate=False)]
    return found


ALIGNMENTS = ((False, False), (False, True), (True, False))


def edge_cases(name, sms):
    """What a kernel serves at its edges: every shape, aligned and not, all epilogues."""
    layout, route = KERNELS[name]
    found = []
    epilogue = itertools.cycle(EPILOGUES)
    for i, (m, n, k) in enumerate(edges(route.kernels[0])):
        where = [(True, True)]
        turn = ALIGNMENTS[i // 2 % 3 :] + ALIGNMENTS[: i // 2 % 3]
        if i % 2 and k:
            where += [a for a in turn if admits(route, Case(m, n, k, aligned=a), sms)][:1]
        for aligned in where:
            kind = KINDS[len(found) % 5]
            if kind == "special" and k > 20:
                kind = "normal"  # else everything is NaN
            plain = Case(
                m,
                n,
                k,
                kind=kind,
                aligned=aligned,
                odd=("both", "offset", "pitch")[i % 3],
                extra=(0, 3, 4, 1)[len(found) % 4],
                offset=len(found) % 3,
            )
            if admits(route, plain, sms):
                activation, bias = next(epilogue)
                found.append(replace(plain, activation=activation, bias=bias))
            if layout == "TN":
                plain = replace(plain, op="linear_wgrad", bias=False)
                if admits(route, plain, sms):
                    found.append(replace(plain, accumulate=len(found) % 4 < 2))
    return found + [case for case in chunked(name) if admits(route, case, sms)]


def store_cases(name, sms):
    """Results that can be stored by vectors, and each reason why not."""
    layout, route = KERNELS[name]
    bm, bn, bk, _ = sizes(route.kernels[0])
    whole = Case(bm + 1, -(-(bn + 1) // 4) * 4, bk + 1, bias=False)
    found = []
    for extra, offset in ((0, 0), (4, 0), (1, 0), (0, 1)):
        case = replace(whole, extra=extra, offset=offset, bias=extra == offset)
        found.append(case)
        if layout == "TN" and extra in (0, 4):
            found.append(replace(case, op="linear_wgrad", bias=False, accumulate=True))
    return [case for case in found if admits(route, case, sms)]


@every_kernel
def test_edges(name):
    cases = edge_cases(name, device().sms)
    for case in cases:
        check(name, case)
    assert len(cases) >= 10
    plain = {(c.activation, c.bias) for c in cases if not c.accumulate}
    layout, route = KERNELS[name]
    if admits(route, Case(1, 1, 1), device().sms):
        assert plain >= set(EPILOGUES)
    if layout == "TN":
        assert {c.accumulate for c in cases if c.op == "linear_wgrad"} == {True, False}


@every_kernel
def test_stores(name):
    cases = store_cases(name, device().sms)
    for case in cases:
        check(name, case)
    assert len(cases) >= 2


# -- through the library ----------------------------------------------------------------


def arguments(op, layout, m, n, k, kind="normal"):
    """The operation's arguments for a product [m, k] x [k, n], as they are stored."""
    product = OPERATIONS[op].products[layout]
    x, w, bias, old = factors(m, n, k, kind)
    a = x.T if product.layout[0] == "T" else x
    b = w.T if product.layout[1] == "T" else w
    pair = [np.ascontiguousarray(v) for v in (a, b)]
    return [pair[i] for i in product.operands], bias, old


def options(op, layout):
    """How the library is told of a layout."""
    if op == "matmul":
        return {"transpose_a": layout[0] == "t", "transpose_b": layout[1] == "t"}
    return {"layout": layout}


def call(op, layout, m, n, k, *, epilogue=("none", False), old=False, kernel=None, kind="normal"):
    """An operation of the library, and its oracle."""
    given, bias, before = arguments(op, layout, m, n, k, kind)
    how, also, theirs = options(op, layout), {}, {}
    if op == "linear":
        activation, with_bias = epilogue
        how["activation"] = activation
        how["bias"] = bias if with_bias else None
    if op == "linear_wgrad" and old:
        also, theirs = {"out": before.copy(), "accumulate": True}, {"out_old": before}
    got = getattr(ptxgen, op)(*given, **how, **also, kernel=kernel)
    what = f"{op} {layout} {m}x{n}x{k} {kind} {epilogue} old={old}"
    same_bits(got, getattr(reference, op)(*given, **how, **theirs), spec=kernel, what=what)


@every_kernel
def test_operations(name):
    layout, route = KERNELS[name]
    bm, bn, bk, _ = sizes(route.kernels[0])
    served = set()
    ways = [
        (op, way)
        for op, operation in OPERATIONS.items()
        for way, product in operation.products.items()
        if product.layout == layout
    ]
    epilogue = EPILOGUES[sorted(KERNELS).index(name) % len(EPILOGUES)]
    with ptxgen.use_device(device()):
        for i, (op, way) in enumerate(ways):
            for m, n, k in ((bm + 1, bn + 1, bk + 1), (4 * (bm // 4 + 1), 4 * (bn // 4 + 1), 36)):
                # Host arrays arrive packed.
                a, b = (m if layout[0] == "T" else k), (k if layout[1] == "T" else n)
                case = Case(m, n, k, op=op, aligned=(a % 4 == 0, b % 4 == 0))
                run_it = functools.partial(
                    call, op, way, m, n, k, epilogue=epilogue, old=bool(i % 2), kernel=name
                )
                if admits(route, case, device().sms):
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


@pytest.mark.parametrize("op", sorted(OPERATIONS))
def test_chosen_kernels(op):
    chooser = CpuDevice()
    some = itertools.cycle(EPILOGUES)
    for sms in (132, 8):  # other routes, the same bits
        chooser.sms = sms
        with ptxgen.use_device(chooser):
            for layout, (i, (m, n, k)) in itertools.product(
                OPERATIONS[op].products, enumerate(SHAPES)
            ):
                call(op, layout, m, n, k, epilogue=next(some), old=bool(i % 2))


@pytest.mark.parametrize("op", sorted(OPERATIONS))
@pytest.mark.parametrize("kind", KINDS)
def test_chosen_kernels_on_hard_numbers(op, kind):
    with ptxgen.use_device(device()):
        for layout, (m, n, k) in itertools.product(
            OPERATIONS[op].products, ((5, 40, 20), (1, 9, 33), (3, 33, 2100))
        ):
            call(op, layout, m, n, k, epilogue=("gelu", True), kind=kind)


def test_leading_dimensions_and_empty_results():
    rng = np.random.default_rng(SEED)
    with ptxgen.use_device(device()):
        x, w = rng.standard_normal((2, 3, 9), "f4"), rng.standard_normal((9, 5), "f4")
        same_bits(ptxgen.linear(x, w), reference.linear(x, w))
        assert ptxgen.linear(x[:0], w).shape == (0, 3, 5)
        assert ptxgen.linear(x, w[:, :0]).shape == (2, 3, 0)


# -- results do not depend on how the device runs ----------------------------------------


@every_kernel
def test_schedules(name):
    _, route = KERNELS[name]
    bm, bn, bk, stages = sizes(route.kernels[0])
    tall = max(bm - 3, 1) if bm > 16 else bm + 1
    case = Case(tall, bn + 1, (stages + 1) * bk + 5, activation="relu")
    if not admits(route, case, device().sms):
        case = Case(tall, bn + 1, 400, op="linear_wgrad", bias=False)
    number = sorted(KERNELS).index(name)
    for change in ({"seed": number}, {"seed": number + 1, "early": True, "wave_lanes": 1}):
        with settings(**change) as changed:
            check(name, case, changed)


def some_kernels():
    """A kernel of every way to copy, split and synchronise."""
    found = {}
    for name, (layout, route) in sorted(KERNELS.items()):
        spec = route.kernels[0]
        key = [layout, len(route.kernels)]
        key += [
            getattr(spec, a, None) for a in ("copy_a", "copy_b", "split", "persistent", "lanes")
        ]
        threads = getattr(spec, "slice_threads", 0)
        found.setdefault((*key, threads > 32, getattr(spec, "slices", 1) > 1), name)
    return sorted(found.values())


@pytest.mark.parametrize("name", some_kernels())
def test_many_schedules(name):
    layout, route = KERNELS[name]
    bm, bn, bk, _ = sizes(route.kernels[0])
    cases = [Case(bm + 1, bn + 1, bk + 1), Case(1, 5, 2 * bk + 3, bias=False, activation="silu")]
    if layout == "TN":
        cases.append(Case(3, bn, 300, op="linear_wgrad", bias=False, accumulate=True))
    for i, case in enumerate(c for c in cases if admits(route, c, device().sms)):
        for seed in range(2 * i, 2 * i + 2):
            with settings(seed=seed, early=seed % 2 == 0, wave_lanes=1 << 8 * (seed % 3)) as found:
                check(name, case, found)


class FewCtas(CpuDevice):
    """A device that starts no more than ``limit`` CTAs of a kernel that walks over its tiles."""

    limit = 1

    def launch(self, function, grid, block, stream, params, what):
        super().launch(function, (min(grid[0], self.limit), 1, 1), block, stream, params, what)


@pytest.mark.parametrize(
    "name", [n for n, (_, r) in sorted(KERNELS.items()) if getattr(r.kernels[0], "persistent", 0)]
)
def test_persistent_kernels_walk(name):
    _, route = KERNELS[name]
    bm, bn, bk, _ = sizes(route.kernels[0])
    few = FewCtas()
    for limit, aligned in ((1, (True, True)), (2, (False, False)), (3, (True, True))):
        few.limit = limit
        case = Case(bm + 1, 2 * bn + 1, bk + 1, aligned=aligned, extra=limit)
        if admits(route, case, few.sms):
            check(name, case, few)


# -- a new spec -------------------------------------------------------------------------


def test_a_new_spec_is_picked_up(tmp_path):
    """As somebody adds it: one edit of the table, and no test."""
    from test_add_a_kernel import EDIT

    for room in ("ptxgen", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "conformance", "gpu")
        shutil.copytree(PROJECT / room, tmp_path / room, ignore=ignored)
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    with (tmp_path / "ptxgen/tiles/simt.py").open("a") as table:
        table.write(EDIT)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider",
         "tests/test_interp_kernels.py", "-k", "_r11"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
    for test in ("test_edges", "test_stores", "test_operations", "test_schedules"):
        assert f"{test}[" in done.stdout
