"""Problems of kernels of grouped products: groups of any size, rows that no group has."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from bits import KINDS, NUMPY, operand, same_bits
from interp_launch import BAND, SEED, Matrix

import ptxgen
from ptxgen import reference
from ptxgen.numerics.contract import ACTIVATIONS, ITEMSIZE
from ptxgen.program.launch import launch
from ptxgen.spec import OUT_F32, Problem
from ptxgen.spec.grouped import GroupedStagedSpec
from ptxgen.tiles import SPECS
from ptxgen.tiles.gemm import WIDTH_OF

ODD = (5, 3, 9, -4, 30)
"""Offsets that do not ascend, and lie outside: as 5, 5, 9, 9 and all rows."""


@dataclass(frozen=True)
class Case:
    """``ends``: the offsets. ``m``: rows of x, ``n`` and ``k``: the columns of y and x."""

    ends: tuple[int, ...]
    m: int
    n: int
    k: int
    kind: str = "normal"
    bias: bool = False
    activation: str | None = None
    wide: bool = False


def layout_of(spec):
    """Returns the storage order of weights ("nk" or "kn") that a kernel reads without a copy."""
    return "nk" if spec.layout[1] == "T" else "kn"


def check(name, case, device):
    """Runs a case and compares it with the oracle."""
    spec = SPECS[name]
    rng = np.random.default_rng([SEED, *case.ends, case.m, case.n, case.k])
    draw = functools.partial(operand, rng, kind=case.kind, dtype=spec.dtype)
    x, offsets = draw((case.m, case.k)), np.array(case.ends, np.int32)
    how = {"out_dtype": "float32" if case.wide else NUMPY[spec.dtype].name}
    if spec.grouped_by == "sums":
        function, oracle = ptxgen.grouped_linear_wgrad, reference.grouped_linear_wgrad
        how["layout"] = "kn"
        given = [x, draw((case.m, case.n)), offsets]
    else:
        function, oracle = ptxgen.grouped_linear, reference.grouped_linear
        how |= {"layout": layout_of(spec), "activation": case.activation}
        shape = (case.n, case.k) if how["layout"] == "nk" else (case.k, case.n)
        given = [x, draw((len(case.ends), *shape)), offsets]
        given += [draw((len(case.ends), case.n))] if case.bias else []
    with ptxgen.use_device(device):
        got = function(*given, **how, kernel=name)
    same_bits(got, oracle(*given, **how), seed=SEED, spec=name, what=str(case))


def check_walk(name, case, device):
    """Runs a case, of a shape that no other has, on a device of one SM, whose few CTAs walk over
    more tiles than they are.
    """
    found, device.sms = device.sms, 1
    try:
        check(name, case, device)
    finally:
        device.sms = found


def check_pitched(name, case, device):
    """Runs a case with rows at a pitch of whole 16-byte units, which no NumPy array has, and
    compares it with the oracle.
    """
    if device.kind != "cpu":  # (tools/sanitize.py)
        return
    spec, (e, m, n, k) = SPECS[name], (len(case.ends), case.m, case.n, case.k)
    rng = np.random.default_rng([SEED, m, n, k])
    x, turned = operand(rng, (m, k), case.kind, spec.dtype), spec.layout[1] == "T"
    w = operand(rng, (e, n, k) if turned else (e, k, n), case.kind, spec.dtype)
    whole = 16 // x.itemsize
    pitches = [-(-v.shape[-1] // whole) * whole for v in (x, w)]
    place = functools.partial(Matrix, device.memory, dtype=spec.dtype)
    flat = w.reshape(-1, w.shape[-1])
    arrays = (
        place("x", (m, k), x, pitch=pitches[0]),
        place("w", flat.shape, flat, pitch=pitches[1]),
        Matrix(device.memory, "offsets", (1, e), np.array([case.ends], np.int32), dtype="int32"),
        Matrix(device.memory, "out", (m, n), dtype="f32", band=BAND),
    )
    values = {"M": m, "N": n, "K": k, "GROUPS": e, "ALIGN_A": 16, "ALIGN_B": 16}
    scalars = {"LDA": pitches[0], "LDB": pitches[1], "LDC": n, "FLAGS": OUT_F32, "K": k}
    scalars["BATCH_B"] = w.shape[1] * pitches[1]
    key = "grouped", spec.layout, "rows", WIDTH_OF[spec.dtype], spec.tier
    problem = Problem(key, spec.dtype, tuple(values.items()), tuple(scalars.items()), str(case))
    try:
        prepared = launch(problem, ("x", "w", "biases", "offsets", "y"), device, name)
        prepared.fire(0, arrays[0].ptr, arrays[1].ptr, 0, arrays[2].ptr, arrays[3].ptr)
        how = {"layout": layout_of(spec), "out_dtype": "float32"}
        expected = reference.grouped_linear(x, w, np.array(case.ends, np.int32), **how)
        same_bits(arrays[3].values.copy(), expected, seed=SEED, spec=name, what=str(case))
        assert arrays[3].intact(), f"{case}: wrote beside the result"
    finally:
        for each in arrays:
            each.free()


def products(name):
    """Groups of none, of one, of a tile, of more; of K that ends within a stage, and is cut."""
    spec = SPECS[name]
    turn = sorted(n for n in SPECS if n.startswith("grouped")).index(name)
    tile = spec.bm if spec.grouped_by == "rows" else spec.bk
    unit = 1 if "plain" in name or spec.dtype == "f32" else 8
    unit = 1 if getattr(spec, "copy_a", "") == "plain" else unit
    rows, kind = 2 * tile + 5, KINDS[turn % len(KINDS)]
    ends = (0, 1, 1, tile + 1, tile + tile // 2 + 4, rows)
    found = [
        Case(ends, rows + 3, 3 * unit + unit * (turn % 2), 3 * unit, bias=True, wide=True),
        Case((rows, rows), rows, spec.bn + unit, spec.bk + unit, activation=ACTIVATIONS[turn % 5]),
        Case((3,), 5, 8, 16, "special", bias=True),
        Case((), 0, 8, 16),
    ][:3]
    found.append(Case((2, 7, 7, 7), 9, 5 * unit, 16, kind if kind != "special" else "wide"))
    if spec.grouped_by == "rows" and spec.split != "none":
        cut = 2064 if spec.tier == "simt" else 4112
        found.append(Case((2, 3), 4, 8, cut, wide=True))
    if spec.dtype == "f16":
        found = [found[turn % len(found)]]
    checks = [functools.partial(check, name, case) for case in found]
    if isinstance(spec, GroupedStagedSpec) and spec.grouped_by == "rows":
        walk = Case(ends, rows + 2, 5 * unit, 2 * spec.bk + unit, wide=True)
        checks.append(functools.partial(check_walk, name, walk))
    if spec.grouped_by == "rows" and spec.dtype != "f16":
        checks.append(functools.partial(check_pitched, name, Case(ODD, 19, 24, 32)))
    return checks


def at_edge(name, key, route, edge):
    """Few rows and columns, of rows that are aligned as the edge says."""
    spec, at = route.main, edge.inside
    item = ITEMSIZE[spec.dtype]
    if min(at["ALIGN_A"], at["ALIGN_B"]) < item:
        return None
    units = {"a": at["ALIGN_A"] // item, "b": at["ALIGN_B"] // item}
    if spec.layout == "NT":
        units = dict.fromkeys(units, units["a" if edge.variable == "ALIGN_A" else "b"])
    if spec.grouped_by == "sums":  # M and N of a group's result are widths, and K is all rows
        rows, k, n = max(at["K"], 3), _odd(at["M"], units["a"]), _odd(at["N"], units["b"])
    else:
        rows, n = max(at["M"], 3), _odd(at["N"], units["b"]) if spec.layout == "NN" else at["N"]
        k = at["K"] if edge.variable == "K" else _odd(at["K"], units["a"])
    groups = at["GROUPS"]
    pitched = edge.variable in ("K", "N", "M") and min(at["ALIGN_A"], at["ALIGN_B"]) == 16
    if pitched and spec.grouped_by == "rows":
        case = Case((rows,) * groups, rows, at["N"], at["K"], wide=True)
        return functools.partial(check_pitched, name, case)
    ends = (*(min(2, rows),) * (groups - 1), rows)
    return functools.partial(check, name, Case(ends, rows, n, k, wide=True))


def _odd(least, unit):
    """The least odd multiple of ``unit`` that is no less."""
    return (-(-least // unit) | 1) * unit
