"""Edges of ``requires``: kernels are refused beyond them, and right beside them.

At the edges inside, kernels are forced and compared in test_interp_kernels.py (``test_bits``).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bits import NUMPY, operand, same_bits
from edges import conjuncts, edges, far_edges, holds, least
from gather_cases import numbers
from interp_launch import SEED
from recurrence_cases import drawn
from steps import unchecked

import ptxgen
from ptxgen import reference
from ptxgen.errors import OptionError
from ptxgen.expr import TRUE, ceil_div, var
from ptxgen.program.launch import launch
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec import Key, OneOf, Problem, Space
from ptxgen.spec.space import Between
from ptxgen.tiles import TABLES

A, B, C, PARTS, SMS = map(var, ("A", "B", "C", "PARTS", "SMS"))
SPACE = Space(
    "toy",
    (
        ("A", Between(1, 1 << 30)),
        ("B", Between(0, 1 << 30)),
        ("C", OneOf((2, 4, 8, 16))),
        ("SMS", Between(1, 200)),
    ),
    derived=(("PARTS", ceil_div(A, 100)),),
)


def found(requires: Any) -> dict[str, tuple[int, int | None]]:
    """Both sides of each edge, by variable and direction."""
    sides = {}
    for edge in edges(SPACE, requires):
        inside, out = edge.inside[edge.variable], edge.outside
        beyond = None if out is None else out[edge.variable]
        up = beyond is None or beyond > inside
        sides[edge.variable + "-+"[up]] = inside, beyond
        for values in (edge.inside, edge.outside):
            other = values and {n: v for n, v in values.items() if n != edge.variable}
            assert not other or other.items() <= edge.inside.items()
        assert out is None or edge.unmet
    return sides


@pytest.mark.parametrize(
    ("requires", "sides"),
    [
        (A <= 1024, {"A+": (1024, 1025)}),
        (A <= 1025, {"A+": (1025, 1026)}),
        ((A <= 77) & (B >= 3), {"A+": (77, 78), "B-": (3, 2), "B+": (1 << 30, None)}),
        (C >= 8, {"C-": (8, 4), "C+": (16, None)}),
        (C.eq(4), {"C-": (4, 2), "C+": (4, 8)}),
        (PARTS <= 1, {"A+": (100, 101)}),
        (A * B <= 1 << 20, {"B+": (1 << 20, (1 << 20) + 1), "A+": (1 << 20, (1 << 20) + 1)}),
        ((B % 8).eq(0) & (B >= 8), {"B-": (8, 7), "B+": (8, 9)}),
        ((A % 64).eq(0) | (PARTS <= 2), {"A+": (200, 201)}),
        ((SMS >= 2) & (SMS <= 132), {"SMS-": (2, 1), "SMS+": (132, 133)}),
        (TRUE, {}),
    ],
    ids=str,
)
def test_edges_are_where_a_predicate_ends(requires, sides):
    assert found(requires) == sides


def test_edges_of_two_sizes_together_begin_far_away():
    requires = ceil_div(A, 8) * ceil_div(B, 8) <= 1 << 30
    assert found(requires) == {"A+": (1 << 30, None), "B+": (1 << 30, None)}
    far = [edge for edge in far_edges(SPACE, requires) if edge.outside]
    assert {(e.variable, e.inside["A"], e.inside["B"]) for e in far} == {
        ("B", 1 << 30, 64),
        ("A", 64, 1 << 30),
    }


def test_edges_begin_with_a_problem_that_is_admitted():
    requires = (B % 16).eq(0) & (B >= 1) & (C <= 4)
    base = least(SPACE, requires)
    assert base is not None and holds(SPACE, requires)(base) and base["B"] == 16
    assert least(SPACE, A <= 0) is None


ROUTES = [(key, route) for key, table in TABLES.items() for route in table.routes]


@pytest.mark.parametrize("key", TABLES, ids=" ".join)
def test_kernels_are_refused_beyond_every_edge(key: Key):
    """Kernels are refused beyond each edge, by the unmet term's text; nothing is compiled or
    allocated, so any size will do.
    """
    table, device, seen = TABLES[key], CpuDevice(), set()
    for route in table.routes:
        near = edges(table.space, route.requires)
        for edge in (*near, *far_edges(table.space, route.requires)):
            beyond = edge.outside
            unmet = [t for t in conjuncts(route.requires) if t in edge.unmet]
            if beyond is None or not unmet:
                continue
            device.sms = beyond["SMS"]
            values = {n: v for n, v in beyond.items() if n != "SMS"}
            problem = Problem(key, table.dtypes[0], tuple(values.items()), (), str(edge))
            with pytest.raises(OptionError, match=r"does not serve .*it requires") as refused:
                launch(problem, (), device, route.name)
            assert all(str(term) in str(refused.value) for term in unmet)
            assert not device.prepared
            seen.add(route.name)
    domains = [(d.low, min(d.low + 4097, d.high), d.high) for d in table.space.domains.values()]
    for route in table.routes:
        if route.name not in seen:  # without an edge, it is right for all there is
            admits = holds(table.space, route.requires)
            for picked in itertools.product(*domains):
                values = dict(zip(table.space.arguments, picked, strict=True))
                assert admits(values) or not holds(table.space, table.space.within)(values), values


# -- just outside, and at sizes that nothing here says -----------------------------------


@functools.cache
def device() -> CpuDevice:
    """Returns a CPU device that chooses kernels, and decodes each once."""
    return CpuDevice()


def agree(got, expected, what):
    got, expected = (x if isinstance(x, tuple) else (x,) for x in (got, expected))
    for one, other in zip(got, expected, strict=True):
        same_bits(one, other, seed=SEED, what=what)


def both(call: Callable[[Any], Any], what: str) -> None:
    """An operation of the library, which chooses the kernel, and its oracle."""
    with ptxgen.use_device(device()):
        got = call(ptxgen)
    agree(got, call(reference), what)


def beyond(key: Key, variable: str) -> list[int]:
    """Returns the values of a variable just outside the edges of a table's kernels, ascending."""
    table = TABLES[key]
    found = {
        edge.outside[variable]
        for route in table.routes
        for edge in edges(table.space, route.requires)
        if edge.variable == variable and edge.outside
    }
    return sorted(found)


AROUND = [p + d for p in (128, 256, 512, 1024, 2048, 4096) for d in (-1, 0, 1)]
"""Literal sizes, whatever kernels say of themselves."""
LONG_ROWS = [p + d for p in (8192, 16384, 32768, 65536, 131072) for d in (-1, 0, 1)]


def sizes(literal: list[int], key: Key, variable: str, most: int) -> list[int]:
    """Returns ``literal`` sizes and those just outside a variable's edges, ascending."""
    return sorted({*literal, *(n for n in beyond(key, variable) if 1 < n <= most)})


ROW_OPS = (
    ("softmax", "bf16"),
    ("sum", "f32"),
    ("softmax", "f32"),
    ("var", "bf16"),
    ("sum", "f16"),
    ("amax", "bf16"),
)


@pytest.mark.parametrize("part", [0, *(pytest.param(i, marks=pytest.mark.long) for i in (1, 2))])
def test_rows_of_every_size(part):
    """Rows of sizes on both sides of every edge, by turns of operations."""
    for i, n in enumerate(sizes(AROUND, ("row_reductions",), "COLS", 8192)):
        name, dtype = ROW_OPS[(i + 2 * part) % len(ROW_OPS)]
        x = operand(np.random.default_rng([SEED, n]), (2, n), "normal", dtype)
        along = {} if name == "softmax" else {"axis": -1}
        both(lambda lib, x=x, how=along, f=name: getattr(lib, f)(x, **how), f"{name} {n} {dtype}")


@pytest.mark.long
def test_long_rows_of_every_size():
    for i, n in enumerate(sizes(LONG_ROWS, ("row_reductions",), "COLS", 1 << 18)):
        name, dtype = ROW_OPS[i % len(ROW_OPS)]
        x = operand(np.random.default_rng([SEED, n]), (1, n), "normal", dtype)
        along = {} if name == "softmax" else {"axis": -1}
        both(lambda lib, x=x, how=along, f=name: getattr(lib, f)(x, **how), f"{name} {n} {dtype}")


PRODUCTS = {
    ("f32", "linear"): (("NN", "chunks", "f32", "simt"), (2047, 2048, 2049)),
    ("bf16", "linear"): (("NT", "chunks", "half", "tc"), (4095, 4096, 4097)),
    ("f64", "linear"): (("NN", "chunks", "f64", "simt"), (2047, 2048, 2049)),
    ("f32", "linear_wgrad"): (("TN", "chunks", "f32", "simt"), (2048, 2049, 3073)),
    ("f16", "linear_wgrad"): (("TN", "chunks", "half", "tc"), (4096, 4097)),
}


@pytest.mark.parametrize(("dtype", "op"), PRODUCTS)
def test_products_of_every_length(dtype, op):
    """Sums on both sides of where one chain is right, and where the plans cut."""
    key, literal = PRODUCTS[dtype, op]
    for k in sizes(list(literal), key, "K", 5000):
        rng = np.random.default_rng([SEED, k])
        x, w = operand(rng, (3, k), "normal", dtype), operand(rng, (k, 8), "normal", dtype)
        if op == "linear_wgrad":
            x = np.ascontiguousarray(x.T)
        how = {"layout": "kn"} | ({} if dtype == "f64" else {"out_dtype": "float32"})
        both(lambda lib, x=x, w=w, how=how: getattr(lib, op)(x, w, **how), f"{op} {k} {dtype}")


def test_selections_of_every_size():
    columns = sizes([255, 256, 257, 1025, 4095, 4097], ("topk",), "COLS", 5000)
    for n in columns:
        x = numbers(np.random.default_rng([SEED, n]), (2, n), "bf16", "special")
        for k in sorted({1, *sizes([31, 33], ("topk",), "K", 200)}) if n == 1025 else (min(n, 32),):
            both(lambda lib, x=x, k=k: lib.topk(x, k), f"topk {n} {k}")
    for n in (1, 1023, 1024, 1025, 4097):
        x = operand(np.random.default_rng([SEED, n]), (2, n), "normal", "bf16")
        both(lambda lib, x=x: lib.sample(x, seed=7, offset=1, top_k=129), f"sample {n}")


def test_scans_of_every_size():
    for n in AROUND[3:]:
        x = operand(np.random.default_rng([SEED, n]), (1, n), "wide", "bf16")
        both(lambda lib, x=x: lib.cumsum(x), f"cumsum {n}")
        both(lambda lib, x=x: lib.logcumsumexp(x), f"logcumsumexp {n}")
        both(lambda lib, x=x: lib.logsumexp(x), f"logsumexp {n}")


def test_recurrences_of_so_many_states():
    for n in sizes([1, 4, 5, 16, 64, 256], ("selective_scan",), "STATES", 256):
        given = drawn((1, 2, 5, n), "f32")
        both(lambda lib, given=given: lib.selective_scan(**given), f"selective_scan {n}")


@pytest.mark.parametrize("dtype", ["bf16", "f64"])
def test_columns_and_moves_of_every_alignment(dtype):
    """Rows of few elements, so that their bytes are a multiple of 2, 4, 8, 16 or of none."""
    rng = np.random.default_rng(SEED)
    for width in (1, 2, 3, 4, 6, 8, 12, 16, 33):
        x = numbers(rng, (1, 1025, width), dtype)
        which = rng.integers(0, 7, 1025)
        both(lambda lib, x=x: lib.sum(x, 1), f"sum {width} {dtype}")
        both(lambda lib, x=x, w=which: lib.embedding(x[0], w[:9]), f"embedding {width} {dtype}")
        if width in (1, 8, 33):
            both(lambda lib, x=x, w=which: lib.embedding_backward(x[0], w, 7), f"{width} {dtype}")
    x = np.zeros((2, 0, 5), NUMPY[dtype])
    both(lambda lib: lib.sum(x, 1), "sums of nothing")


SCATTERS = TABLES["scatter",]


def scattered(count: int, width: int, route: str | None) -> None:
    """Gradients of three rows of an embedding, from many of few indices."""
    rng = np.random.default_rng([SEED, count, width])
    dy, which = numbers(rng, (count, width), "bf16", "wide"), rng.integers(0, 3, count)
    with ptxgen.use_device(device()):
        got = unchecked("embedding_backward")(dy, which, 3, kernel=route)
    same_bits(got, reference.embedding_backward(dy, which, 3), seed=SEED, spec=route or "")


@pytest.mark.parametrize(
    "most", [5000, pytest.param(100_000, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_sums_into_rows_are_right_up_to_their_edges(most):
    """Indices that just fit into what is sorted, rows that just fit into a warp, and one more."""
    ran = set()
    for route in SCATTERS.routes:
        space = SCATTERS.space
        for edge in edges(space, route.requires):
            if edge.variable not in ("COUNT", "INNER") or edge.inside[edge.variable] > most:
                continue
            count, width = edge.inside["COUNT"], edge.inside["INNER"]
            if edge.variable == "COUNT":
                width = 8 if "_16_" in route.name else 3
                if count < most // 100:
                    continue
            scattered(count, width, route.name)
            more = (count + 1, width) if edge.variable == "COUNT" else (count, width + 1)
            with pytest.raises(OptionError, match="it requires"):
                scattered(*more, route.name)
            scattered(*more, None)
            ran.add(edge.variable)
    assert ran == {"COUNT", "INNER"}


@pytest.mark.parametrize("route", [route.name for route in SCATTERS.routes[::4]])
def test_sums_into_rows_off_16_bytes_are_right_or_refused(route):
    """Whatever a route says that it requires."""
    refused = 0
    for width in (1, 5, 12, 40):
        try:
            scattered(40, width, route)
        except OptionError as error:
            assert "it requires" in str(error)
            refused += 1
    assert refused < 4
