"""Operands off 16 bytes: copies with rows at multiples of 16, and the routes that read these."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bits import operand, same_bits
from interp_launch import BAND, ROUTES, SEED, Case, Matrix, admits, oracle, run

import ptxgen
from ptxgen import reference
from ptxgen.build.compile import compile_ptx
from ptxgen.build.render import render
from ptxgen.build.targets import portable_target
from ptxgen.errors import OptionError
from ptxgen.expr import ceil_div, var
from ptxgen.numerics.contract import ITEMSIZE
from ptxgen.program.launch import parameters
from ptxgen.runtime.cpu import SMS, CpuDevice
from ptxgen.spec import Step
from ptxgen.spec.conv import ConvSpec
from ptxgen.spec.realign import RealignSpec
from ptxgen.tiles import SPECS

COPYING = sorted(n for n, kernel in SPECS.items() if isinstance(kernel, RealignSpec))
REALIGNED = sorted(
    n
    for n, r in ROUTES.items()
    if isinstance(r.kernels[0], RealignSpec) and r.main.dtype in ITEMSIZE
    if not isinstance(r.main, ConvSpec)
)
"""The dense ones; test_int4_gemm.py has those of 4-bit integers, test_conv.py those of images."""


def image(spec):
    return lambda _: compile_ptx(render(spec), name=spec.name, arch=portable_target(spec)).image


@pytest.mark.parametrize("name", COPYING)
def test_copies(name):
    """Every byte of rows that start and end anywhere, zeros behind them, and nothing else is read:
    what is between the rows has never been written, and the matrix ends with its allocation.
    """
    spec, device = SPECS[name], CpuDevice()
    dtype, kind = {1: ("u1", "u1"), 2: ("f16", "f2"), 4: ("f32", "f4")}[spec.itemsize]
    rng = np.random.default_rng(SEED)
    function = device.kernel(spec.name, image(spec), spec.shared_bytes)
    several = (
        spec.threads * spec.vectors_per_thread // 3 + 1
    )  # rows of three vectors or more, for two CTAs
    shapes = [(3, c) for c in (1, 2, spec.unit - 1, spec.unit, spec.unit + 1, 5 * spec.unit + 3)]
    shapes += [(several, 2 * spec.unit + 1), (1, 3 * spec.unit), (2, 0)]
    for turn, shape in enumerate(shapes * spec.unit):
        values, sources, targets_, fired = {}, [], [], {}
        for i in range(spec.matrices):
            rows, cols = shape if i == 0 else shapes[(turn + 3) % len(shapes)]
            bits = rng.integers(0, 1 << 8 * spec.itemsize, (rows, cols), f"u{spec.itemsize}")
            pitch = cols + (turn + i) % 4
            x = Matrix(
                device.memory, f"x{i}", (rows, cols), bits.view(kind),
                dtype=dtype, pitch=pitch, offset=(turn // len(shapes) + i) % spec.unit,
            )  # fmt: skip
            wide = -(-cols // spec.unit) * spec.unit
            y = Matrix(device.memory, f"y{i}", (rows, wide), dtype=dtype, band=BAND)
            sources.append(np.pad(bits, ((0, 0), (0, wide - cols))))
            targets_.append(y)
            values |= {f"ldx{i}": x.pitch, f"rows{i}": rows, f"cols{i}": cols}
            fired |= {f"x{i}": x.ptr, f"y{i}": y.ptr}
        grid = spec.grid.evaluate({name.upper(): value for name, value in values.items()})
        prepared = device.prepare(
            function, (max(grid, 1), 1, 1), (spec.threads, 1, 1),
            parameters(Step(spec), tuple(fired), values), len(fired), "copies", False,
        )  # fmt: skip
        prepared.fire(0, *fired.values())
        for expected, y in zip(sources, targets_, strict=True):
            if expected.size:
                assert (y.values.view(f"u{spec.itemsize}") == expected).all(), (turn, values)
            assert y.intact(), (turn, values)


def test_what_a_kernel_is_told_of_a_copy_is_so():
    """Steps after a copy are told the copy's pitch, a multiple of 16 bytes, all in
    scratch memory.
    """
    for route in ROUTES.values():
        if route.name in REALIGNED:
            for step in route.steps:
                copied = [x for x in "ab" if step.bound(x) != x]
                assert (
                    set(step.given)
                    == {name for x in copied for name in (f"ALIGN_{x.upper()}", f"LD{x.upper()}")}
                    or step.kernel.prepares
                )
                for x in copied if not step.kernel.prepares else ():
                    scratch = route.scratch[step.bound(x)]
                    (copy,) = (s for s in route.steps if step.bound(x) in s.scratch())
                    assert route.steps.index(copy) < route.steps.index(step)
                    turned = step.kernel.layout["ab".index(x)] == "T"
                    rows, cols = [("M", "K"), ("K", "N")]["ab".index(x)][:: -1 if turned else 1]
                    item = ITEMSIZE[step.kernel.dtype]
                    pitch = step.given[f"LD{x.upper()}"]
                    assert pitch == ceil_div(var(cols), 16 // item) * (16 // item)
                    for sizes in ({"M": 3, "N": 17, "K": 129}, {"M": 1, "N": 8, "K": 1}):
                        assert scratch.evaluate(sizes) == (
                            sizes[rows] * pitch.evaluate(sizes) * item
                        )
                    assert step.given[f"ALIGN_{x.upper()}"].evaluate({}) == 16


def by_kind():
    """The routes of every kind of kernel, layout and choice of operands, those of twins left out:
    one each is always run, the others are long.
    """
    seen = set()
    for name in REALIGNED:
        route = ROUTES[name]
        kind = (
            route.main.family, route.main.layout, route.steps[0].label, len(route.steps),
            getattr(route.main, "swap_operands", False), getattr(route.main, "streamed", ""),
        )  # fmt: skip
        if route.main.dtype != "f16":
            yield pytest.param(name, marks=[pytest.mark.long] if kind in seen else [])
            seen.add(kind)


@pytest.mark.parametrize("name", list(by_kind()))
def test_routes(name):
    """Bit for bit the oracle, at edges in all dimensions; scratch has never been written before."""
    route, device = ROUTES[name], CpuDevice()
    spec = route.main
    item = ITEMSIZE[spec.dtype]
    cases = [
        Case(1, 9, 2 * spec.bk + 5, extra=1),
        Case(spec.bm + 1, 7, spec.bk + 1, kind="wide", activation="silu"),
        Case(5, spec.bn + 1, 2100 if spec.tier == "simt" else 33, kind="cancelling", odd="pitch"),
        Case(2, 3, 0),
    ]
    if spec.layout == "TN":
        batch = Case(3, 5, 1030, op="linear_wgrad", bias=False, accumulate=True, odd="offset")
        cases.append(batch)
    if spec.continues:  # only weight gradients, results as the kernel takes them
        wide, unit = spec.result == 4, 16 // spec.result
        how = {"op": "linear_wgrad", "chain": True, "accumulate": True, "bias": False}
        cases = [
            replace(c, n=c.n + -c.n % unit, **how, out_f32=wide, extra=unit, activation="none")
            for c in cases
        ]
    copied = route.steps[0].label.removeprefix("realign_")
    align = tuple(item if x in copied else 16 for x in "ab")
    served = 0
    for case in cases:
        for lies in dict.fromkeys((align, (8, 8) if case.k else align)):
            placed = replace(case, align=lies)
            if admits(route, placed, SMS):
                got, intact = run(device, name, placed)
                same_bits(got, oracle(placed.of(spec)), seed=SEED, spec=name, what=str(placed))
                assert intact, f"{placed}: wrote beside the result"
                served += 1
    assert served >= 2


def test_they_serve_where_nothing_else_is_off_16_bytes():
    problems = [
        {"M": m, "N": 4096, "K": 4096, "SMS": 132, "CHUNK": 4096 // chunks, "CHUNKS": chunks}
        | {"ALIGN_C": 16, "ITEM_C": item}
        for m in (64, 4096)
        for chunks in (1, 4)
        for item in (2, 4)
    ]
    for name in REALIGNED:
        route = ROUTES[name]
        needs = {x for x in "ab" if f"ALIGN_{x.upper()}" in route.main.requires.variables()}
        copied = set(route.steps[0].label.removeprefix("realign_"))
        for off in ("", "a", "b", "ab"):
            lies = {f"ALIGN_{x.upper()}": 8 if x in off else 16 for x in "ab"}
            serves = any(route.requires.evaluate({**one, **lies}) for one in problems)
            assert serves == (not (needs - copied) & set(off)), (name, off)


def test_through_the_library():
    rng = np.random.default_rng(SEED)
    x, w = operand(rng, (2, 37), "normal", "bf16"), operand(rng, (37, 11), "normal", "bf16")
    names = [n for n in REALIGNED if ROUTES[n].main.dtype == "bf16"]
    both = next(n for n in names if n.startswith("realign_ab+wgmma_nn_bf16_64x64"))
    first = ROUTES[both].kernels[0].name
    with ptxgen.use_device(CpuDevice()):
        for rows in (x, x[:1]):
            same_bits(
                ptxgen.linear(rows, w, kernel=both, layout="kn"),
                reference.linear(rows, w, layout="kn"),
                spec=both,
            )
        with pytest.raises(OptionError, match=r"only serves with others.*realign_ab"):
            ptxgen.linear(x, w, kernel=first, layout="kn")
        with pytest.raises(OptionError, match="it requires 16 <= ALIGN_B"):
            ptxgen.linear(x, w, kernel=both.replace("realign_ab", "realign_a"), layout="kn")
