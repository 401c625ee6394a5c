"""The microscope: known patterns are counted right, and kernels do what their specs promise."""

from __future__ import annotations

import functools
import json
import re
import struct

import numpy as np
import pytest
from interp_cases import representatives

import ptxgen
from ptxgen.cli import main
from ptxgen.errors import OptionError, ShapeError
from ptxgen.interp import GlobalMemory, Program, Settings, launch, parse
from ptxgen.interp.run.profile import (
    CLASSES,
    Count,
    Profiler,
    classify,
    locations,
    sectors,
    wavefronts,
)
from ptxgen.spec.mma import STEP
from ptxgen.tiles import ROUTES, SPECS

LANES = np.arange(32)


def shared(address, width, lanes=None, **options):
    address = np.asarray(address, np.int64)
    return wavefronts(32, address if lanes is None else address[lanes], lanes, width, **options)


def from_global(address, width, lanes=None):
    address = np.asarray(address, np.uint64)
    return sectors(32, address if lanes is None else address[lanes], lanes, width)


# -- models: (requests, taken, ideal) ------------------------------------------------
@pytest.mark.parametrize(
    ("stride", "expected"),
    [(1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (16, 16), (31, 1), (32, 32), (33, 1), (0, 1)],
)
def test_conflicts_of_a_stride_of_words(stride: int, expected: int) -> None:
    assert shared(LANES * 4 * stride, 4) == (1, expected, 1)


def test_conflicts_do_not_depend_on_where_it_starts() -> None:
    for start in (4, 64, 100, 1020):
        assert shared(start + LANES * 8, 4) == (1, 2, 1)


def test_a_word_is_broadcast_and_different_words_of_a_bank_are_not() -> None:
    assert shared(LANES // 2 * 4, 4) == (1, 1, 1)
    assert shared(LANES % 2 * 128, 4) == (1, 2, 1)
    assert shared(LANES % 4 * 128, 4) == (1, 4, 1)
    assert shared(LANES, 1) == (1, 1, 1)  # four lanes to a word


def test_wide_accesses_go_by_parts_of_the_warp() -> None:
    assert shared(LANES * 8, 8) == (1, 2, 2)
    assert shared(LANES * 16, 16) == (1, 4, 4)
    # Lanes 0 and 16 want the same banks, but in different parts.
    assert shared(LANES % 16 * 8 + LANES // 16 * 128, 8) == (1, 2, 2)
    assert shared(LANES % 8 * 16 + LANES // 8 * 1024, 16) == (1, 4, 4)
    # Within a part they collide.
    assert shared(LANES * 16, 8) == (1, 4, 2)
    assert shared(LANES * 32, 16) == (1, 8, 4)
    assert shared(LANES * 128, 16) == (1, 32, 4)


def test_loads_of_equal_neighbours_are_served_together() -> None:
    for pattern in (LANES // 2, LANES % 2 + LANES // 4 * 2, np.zeros(32, int)):
        assert shared(pattern * 8, 8, pairs=True) == (1, 1, 1)
        assert shared(pattern * 16, 16, pairs=True) == (1, 2, 2)
        assert shared(pattern * 16, 16) == (1, 4, 4)
    # One lane that differs spoils it, and so do equal lanes that are not neighbours.
    assert shared(np.where(LANES == 5, 0, LANES // 2) * 16, 16, pairs=True) == (1, 4, 4)
    assert shared(LANES % 4 * 16, 16, pairs=True) == (1, 4, 4)
    # Served together, they can collide: two different rows of the same banks.
    assert shared(LANES // 2 % 2 * 16 + LANES // 4 * 128, 16, pairs=True) == (1, 8, 2)
    # Words of 4 bytes need no rule.
    assert shared(LANES // 2 * 4, 4, pairs=True) == (1, 1, 1)


def test_lanes_that_do_not_take_part_cost_nothing() -> None:
    assert shared(LANES * 128, 4, LANES[:3]) == (1, 3, 1)
    assert shared(LANES * 16, 16, LANES[8:16]) == (1, 1, 1)
    assert shared(LANES * 16, 16, LANES[::8]) == (1, 4, 4)
    # Inactive lanes are no neighbours that differ.
    assert shared(LANES // 4 * 16, 16, LANES[::4], pairs=True) == (1, 2, 2)
    assert wavefronts(96, np.array([0, 128]), np.array([40, 41]), 4) == (1, 2, 1)


def test_an_address_that_all_share_may_come_as_one() -> None:
    assert wavefronts(64, np.array([12]), None, 4) == (2, 2, 2)
    assert sectors(64, np.array([12], np.uint64), None, 4) == (2, 2, 2)


def test_sectors() -> None:
    assert from_global(LANES * 4, 4) == (1, 4, 4)
    assert from_global(LANES * 16, 16) == (1, 16, 16)
    assert from_global(4 + LANES * 4, 4) == (1, 5, 4)
    assert from_global(32 + LANES[::-1] * 4, 4) == (1, 4, 4)
    assert from_global(LANES * 8, 4) == (1, 8, 4)
    assert from_global(LANES * 32, 4) == (1, 32, 4)
    assert from_global(LANES * 4096, 4) == (1, 32, 4)
    assert from_global(LANES * 0, 4) == (1, 1, 1)
    assert from_global(LANES % 8 * 4 + LANES // 8 * 4096, 4) == (1, 4, 4)
    assert from_global(LANES * 4, 4, LANES[:9]) == (1, 2, 2)
    assert from_global(16 + LANES * 4, 4, LANES[:8]) == (1, 2, 1)


# -- launches ------------------------------------------------------------------------
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
KERNEL = (
    HEAD
    + """\
.visible .entry probe(.param .u64 data, .param .u32 count) {{
.reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<8>; .reg .f32 %f<20>;
.shared .align 16 .b8 store[8192];
ld.param.u64 %rd1, [data];
mov.u32 %r1, %tid.x;
{body}
ret;
}}
"""
)


def observed(body: str, *, grid: int = 1, threads: int = 32, count: int = 0, **settings):
    """Runs a kernel with this body; returns its profile and the lines of its PTX."""
    memory = GlobalMemory()
    data = memory.alloc(1 << 16, "data", written=True)
    text = KERNEL.format(body=body)
    program = Program(parse(text), "probe", memory, 90)
    observer = Profiler()
    params = struct.pack("<QI", data.base, count)
    launch(
        program, memory, (grid, 1, 1), (threads, 1, 1), params, 0,
        Settings(observer=observer, **settings),
    )  # fmt: skip
    (found,) = observer.kernels()
    return found, text.splitlines()


def store_and_load(stride: int, vector: int = 1) -> str:
    names = [f"%f{i}" for i in range(vector)]
    kind, value = ("f32", "%f0") if vector == 1 else (f"v{vector}.f32", f"{{{', '.join(names)}}}")
    zeros = "".join(f"mov.f32 {name}, 0f00000000;\n" for name in names)
    return (
        f"{zeros}mov.u32 %r2, store;\nmad.lo.s32 %r3, %r1, {stride * 4}, %r2;\n"
        f"st.shared.{kind} [%r3], {value};\nbar.sync 0;\nld.shared.{kind} {value}, [%r3];\n"
    )


@pytest.mark.parametrize(
    ("stride", "vector", "taken", "ideal"),
    [(1, 1, 1, 1), (2, 1, 2, 1), (32, 1, 32, 1), (33, 1, 1, 1), (2, 2, 2, 2), (4, 4, 4, 4),
     (8, 4, 8, 4), (4, 2, 4, 2), (34, 2, 2, 2)],
)  # fmt: skip
def test_a_launch_counts_conflicts(stride: int, vector: int, taken: int, ideal: int) -> None:
    found, lines = observed(store_and_load(stride, vector))
    assert [s.kind for s in found.sites] == ["store", "load"]
    for site in found.sites:
        assert (site.requests, site.units, site.ideal) == (1, taken, ideal)
        assert (site.width, site.bytes, site.space) == (4 * vector, 128 * vector, "shared")
        assert site.text in lines[site.line - 1]
        assert found.site(site.line, "shared") is site
    assert found.shared_memory.conflicts == 2 * (taken - ideal)
    with pytest.raises(KeyError, match="line 1"):
        found.site(1, "shared")


def test_a_launch_counts_by_warps_and_ctas() -> None:
    body = store_and_load(1)
    for settings in ({}, {"wave_lanes": 64}, {"seed": 3}):
        found, _ = observed(body, grid=5, threads=64, **settings)
        assert (found.launches, found.ctas, found.threads) == (1, 5, 64)
        assert [(s.requests, s.units, s.lanes) for s in found.sites] == [(10, 10, 320)] * 2
        assert found.cta_barriers == 10 and found.warp_barriers == 0
        assert found.mix["bar.sync"] == Count(10, 320)
        assert found.partial == 0 and found.lanes_per_instruction == 32


def test_a_launch_counts_sectors_and_distinct_bytes() -> None:
    found, _ = observed(
        "cvta.to.global.u64 %rd2, %rd1;\n"
        "mul.wide.u32 %rd3, %r1, 8;\nadd.s64 %rd4, %rd2, %rd3;\n"
        "ld.global.f32 %f1, [%rd4];\nld.global.f32 %f2, [%rd4];\nld.global.f32 %f3, [%rd2];\n"
        "st.global.v2.f32 [%rd4], {%f1, %f2};\n",
        grid=2,
    )
    memory = found.global_memory
    assert [(s.requests, s.units, s.ideal) for s in found.sites] == [
        (2, 16, 8),
        (2, 16, 8),
        (2, 2, 2),
        (2, 16, 16),
    ]
    assert (memory.sectors, memory.ideal_sectors, memory.moved) == (50, 34, 1600)
    assert (memory.loaded, memory.stored) == (3 * 2 * 128, 2 * 256)
    assert (memory.touched_loads, memory.touched_stores) == (128, 256)


def test_a_launch_counts_instructions() -> None:
    found, _ = observed(
        "mov.f32 %f1, 0f3F800000;\nmov.u32 %r4, 0;\n"
        "again:\n"
        "fma.rn.f32 %f1, %f1, %f1, %f1;\nadd.rn.f32 %f2, %f1, %f1;\nadd.s32 %r4, %r4, 1;\n"
        "setp.lt.u32 %p1, %r4, 5;\n@%p1 bra again;\n"
        "setp.gt.u32 %p2, %r1, 11;\n@%p2 bra done;\n"
        "mul.rn.f32 %f3, %f2, %f2;\n"
        "done:\n",
        threads=48,
    )
    assert found.mix["fma.rn.f32"] == Count(10, 240)
    assert found.mix["mul.rn.f32"] == Count(1, 12)
    assert found.classes["fma"] == Count(10, 240)
    assert found.classes["float"] == Count(11, 252)
    assert found.classes["integer"] == Count(22, 528)
    assert found.classes["control"] == Count(14, 336)
    assert found.flop == 2 * 240 + 240 + 12
    assert found.partial == 1  # the second warp has 16 threads, and all are there
    assert found.total == sum(found.mix.values(), Count()) == sum(found.classes.values(), Count())
    assert {k: c.lanes for k, c in found.loop.items()} == {
        "fma": 240, "float": 240, "integer": 480, "control": 240,
    }  # fmt: skip
    assert "fma" in found.table() and "1.000" in found.table()


def test_a_launch_counts_copies() -> None:
    found, _ = observed(
        "mov.u32 %r2, store;\nmad.lo.s32 %r3, %r1, 16, %r2;\nmul.wide.u32 %rd3, %r1, 16;\n"
        "add.s64 %rd4, %rd1, %rd3;\n"
        "cp.async.cg.shared.global [%r3], [%rd4], 16;\ncp.async.commit_group;\n"
        "cp.async.ca.shared.global [%r3+4096], [%rd4], 4;\n"
        "cp.async.wait_group 0;\ncp.async.wait_all;\n",
        threads=64,
    )
    assert found.copies == type(found.copies)(copies=4, commits=2, waits=4, bytes=64 * 20)
    assert [(s.space, s.kind, s.requests, s.units, s.ideal) for s in found.sites] == [
        ("global", "async", 2, 32, 32),
        ("shared", "async", 2, 8, 8),
        ("global", "async", 2, 32, 8),
        ("shared", "async", 2, 8, 2),
    ]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("fma.rn.f32 %f1, %f1, %f1, %f1", "fma"),
        ("mad.lo.s32 %r1, %r1, %r1, %r1", "integer"),
        ("setp.lt.f32 %p1, %f1, %f2", "float"),
        ("cvt.rn.f32.s32 %f1, %r1", "move"),
        ("ld.shared.v2.f32 {%f1, %f2}, [%r1]", "shared load"),
        ("ld.volatile.global.f32 %f1, [%rd1]", "global load"),
        ("ld.f32 %f1, [%rd1]", "generic load"),
        ("ld.param.u32 %r1, [count]", "param load"),
        ("st.local.f32 [%r1], %f1", "local store"),
        ("cp.async.cg.shared.global [%r1], [%rd1], 16", "async copy"),
        ("cp.async.commit_group", "barrier"),
        ("bar.sync 0", "barrier"),
        ("shfl.sync.idx.b32 %r1, %r2, 0, 31, -1", "warp"),
        ("atom.global.add.u32 %r1, [%rd1], 1", "atomic"),
        ("xor.b32 %r1, %r1, %r2", "integer"),
    ],
)
def test_classes(text: str, kind: str) -> None:
    body = parse(KERNEL.format(body=text + ";")).entries["probe"].body
    (instruction,) = [i for i in body if getattr(i, "text", "").startswith(text)]
    assert classify(instruction) == kind and kind in CLASSES


def test_lines_of_inlined_calls() -> None:
    text = "\n".join(
        (
            ".loc 1 50 5",
            ".loc 1 40 3, function_name $info0, inlined_at 1 50 5",
            "a;",
            ".loc\t1 9 1, function_name $info1, inlined_at 1 40 3",
            "b;",
            ".loc 1 51 1",
            "c;",
        )
    )
    assert locations(text) == {3: (40, 50), 5: (9, 40, 50), 7: (51,)}


# -- kernels of the library ----------------------------------------------------------
SMALL = next(
    route.name
    for route in ROUTES["NN", "chunks", "f32", "simt"]
    if (spec := route.main).split == "none"
    and (spec.bm, spec.bn, spec.bk, spec.stages) == (16, 32, 32, 4)
    and (spec.copy_a, spec.copy_b, spec.persistent) == ("transpose", "vector", False)
)


@functools.cache
def profiled(name: str, m: int, n: int, k: int, **options):
    return ptxgen.profile(name, m, n, k, **options)


def test_a_kernel_multiplies_as_often_as_its_tiles_say() -> None:
    spec = SPECS[SMALL]
    for m, n, k in ((16, 32, 32), (16, 32, 64), (32, 64, 96), (17, 36, 40)):
        found = profiled(SMALL, m, n, k)
        (kernel,) = found.kernels
        tiles = -(-m // spec.bm) * -(-n // spec.bn)
        steps = -(-k // spec.bk)
        assert kernel.ctas == tiles
        assert kernel.classes["fma"].lanes == tiles * spec.bm * spec.bn * steps * spec.bk
        assert kernel.loop["fma"] == kernel.classes["fma"]
        # Per tile: one before the loop, one in each step, one behind it, two per stripe of rows.
        warps, stripes = spec.threads // 32, spec.tm // spec.group("a")
        assert kernel.cta_barriers == tiles * warps * (1 + steps + 1 + 2 * stripes)
        assert kernel.global_memory.touched_stores == 4 * m * n
        assert found.minimum_bytes == 4 * (m * k + k * n + m * n)
        assert min(found.moved_bytes, found.requested_bytes) >= found.minimum_bytes


def test_an_inner_tile_moves_each_byte_once() -> None:
    found = profiled(SMALL, 16, 32, 128)  # as many steps as stages: none is filled with zeros
    (kernel,) = found.kernels
    assert found.requested_bytes == found.moved_bytes == found.minimum_bytes
    assert kernel.global_memory.sectors == kernel.global_memory.ideal_sectors
    assert kernel.copies.bytes == 4 * (16 * 128 + 128 * 32)


def test_a_route_of_two_kernels() -> None:
    route = next(r for r in ROUTES["TN", "chunks", "f32", "simt"] if len(r.kernels) == 2)
    spec, reduce = route.kernels
    found = profiled(route.name, spec.bm, spec.bn, 2304)
    assert found.op == "linear_wgrad" and found.layout == "TN"
    assert [kernel.name for kernel in found.kernels] == [spec.name, reduce.name]
    chunks = found.kernels[0].ctas
    assert chunks == 3
    assert found.kernels[0].global_memory.stored == chunks * spec.bm * spec.bn * 4
    assert found.kernels[1].global_memory.touched_loads == chunks * spec.bm * spec.bn * 4
    assert found.kernels[1].classes["float"].lanes >= (chunks - 1) * spec.bm * spec.bn


def test_the_epilogue_is_counted() -> None:
    plain = profiled(SMALL, 16, 32, 32).kernels[0]
    biased = profiled(SMALL, 16, 32, 32, bias=True)
    assert biased.kernels[0].classes["float"].lanes == plain.classes["float"].lanes + 16 * 32
    assert biased.minimum_bytes == profiled(SMALL, 16, 32, 32).minimum_bytes + 4 * 32
    gelu = profiled(SMALL, 16, 32, 32, activation="gelu").kernels[0]
    assert gelu.classes["fma"].lanes > plain.classes["fma"].lanes
    assert gelu.loop["fma"] == plain.loop["fma"]


def test_counts_are_the_same_again() -> None:
    one = ptxgen.profile(SMALL, 16, 32, 32)
    assert one == ptxgen.profile(SMALL, 16, 32, 32)
    assert one.json() == profiled(SMALL, 16, 32, 32).json()


def test_lines_show_the_source() -> None:
    found = ptxgen.profile(SMALL, 16, 32, 32, lines=True)
    plain = profiled(SMALL, 16, 32, 32)
    (kernel,) = found.kernels
    fetches = [s for s in kernel.sites if s.name.startswith("ld.shared") and s.hot]
    assert fetches and all("load_fragment" in s.cuda for s in fetches)
    assert all(len(s.lines) >= 2 for s in fetches)
    assert kernel.classes == plain.kernels[0].classes
    assert "load_fragment" not in plain.table() and all(not s.lines for s in plain.kernels[0].sites)


def test_json_is_of_integers_and_keeps_its_keys() -> None:
    value = json.loads(json.dumps(profiled(SMALL, 16, 32, 32).json()))
    assert list(value) == [
        "kernel", "op", "layout", "m", "n", "k", "flop", "minimum_bytes", "requested_bytes",
        "moved_bytes", "kernels",
    ]  # fmt: skip
    (kernel,) = value["kernels"]
    assert list(kernel) == [
        "name", "launches", "ctas", "threads", "mix", "classes", "loop", "total", "partial",
        "cta_barriers", "warp_barriers", "flop", "copies", "global_memory", "shared_memory",
        "sites",
    ]  # fmt: skip
    assert list(kernel["sites"][0]) == [
        "line", "text", "name", "space", "kind", "width", "hot", "requests", "lanes", "bytes",
        "units", "ideal", "lines", "cuda",
    ]  # fmt: skip
    assert kernel["classes"]["fma"] == {"warps": 16 * 32 * 32 // 32, "lanes": 16 * 32 * 32}

    def numbers(of):
        if isinstance(of, dict | list):
            for item in of.values() if isinstance(of, dict) else of:
                yield from numbers(item)
        elif not isinstance(of, str | bool):
            yield of

    assert all(type(number) is int for number in numbers(value))


def test_what_is_refused() -> None:
    with pytest.raises(OptionError, match=re.escape(SMALL)):
        ptxgen.profile(SMALL[:-1], 16, 32, 32)
    reduce = next(name for name, spec in SPECS.items() if spec.family == "reduce")
    with pytest.raises(OptionError, match="only serves with other kernels"):
        ptxgen.profile(reduce, 16, 32, 32)
    with pytest.raises(OptionError, match="takes linear"):
        ptxgen.profile(SMALL, 16, 32, 32, op="linear_wgrad")
    with pytest.raises(OptionError, match="activation is 'tanh'"):
        ptxgen.profile(SMALL, 16, 32, 32, activation="tanh")
    with pytest.raises(OptionError, match="requires"):
        ptxgen.profile(SMALL, 16, 33, 32)
    with pytest.raises(ShapeError, match="k is 0"):
        ptxgen.profile(SMALL, 16, 32, 0)


# -- the command ---------------------------------------------------------------------
def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", SMALL, "16", "32", "32", "--sites", "1"]) == 0
    out = capsys.readouterr().out
    assert "C[16, 32] = A[16, 32] . B[32, 32], stored NN" in out and SMALL in out
    assert main(["profile", SMALL, "16x32x32", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == profiled(SMALL, 16, 32, 32).json()


def test_the_command_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", SMALL[:-1], "16x32x32"]) == 2
    assert "did you mean" in capsys.readouterr().err
    assert main(["profile", SMALL, "0x32x32"]) == 2
    assert "sizes are '0x32x32'" in capsys.readouterr().err


# -- every kernel, on one inner tile -------------------------------------------------
def firsts(*families: str) -> list[str]:
    """The routes' first kernels; of twins for bf16 and f16, that for bf16."""
    return list(
        dict.fromkeys(
            route.name
            for table in ROUTES.values()
            for route in table
            if route.kernels[0].family in families and route.kernels[0].dtype != "f16"
        )
    )


def may_conflict(spec) -> set[str]:
    """Returns the kinds of access that may conflict in a kernel's main loop; no others may."""
    known = set()
    if spec.lanes < 32:  # several slices in a warp, whose rings start at the same bank
        known |= {"load", "async", "store"} if spec.staged else {"load", "async"}
    for operand, copy in (("a", spec.copy_a), ("b", spec.copy_b)):
        if copy == "staged" and spec.bk >= 16:  # k's 8 apart meet
            known.add("store")
        if copy == "kvector" and spec.bk * spec.size(operand) == 64:
            known.add("async")  # two rows of 80 bytes per quarter-warp
    return known


def halves_sectors(spec) -> bool:
    """Whether a load takes 16 bytes of a row; another one finds the rest of the sector in L1."""
    return spec.dtype != "f32" and any(
        copy == "transpose" or (copy == "staged" and spec.bk == 8) for _, copy in spec.copies
    )


def some(*families: str):
    """Marks one kernel of each family, dtype and way to copy as always run, with slices and
    without; the others are long. Splits of another kind differ behind the main loop alone.
    """
    names, told = firsts(*families), ("family", "dtype", "copy_a", "copy_b")
    sliced = [n for n in names if SPECS[n].split == "slices"]
    shown = representatives(sliced, *told)
    shown += representatives([n for n in names if n not in sliced], *told)
    rest = [pytest.param(n, marks=pytest.mark.long) for n in names if n not in shown]
    return pytest.mark.parametrize("name", [*shown, *rest])


@some("simt")
def test_main_loops_are_free_of_waste(name: str) -> None:
    spec = SPECS[name]
    n = max(spec.bn, 4)
    found = ptxgen.profile(name, spec.bm, n, spec.bk * spec.stages)
    kernel = found.kernels[0]
    known = may_conflict(spec)
    hot = [site for site in kernel.sites if site.hot]
    assert {site.space for site in hot} == {"shared", "global"}
    for site in hot:
        if site.space == "shared":
            assert not site.excess or site.kind in known, site
        else:
            assert not site.excess or halves_sectors(spec), site
    # No instruction but the epilogue's touches global memory more than it must.
    if not halves_sectors(spec):
        assert kernel.global_memory.sectors == kernel.global_memory.ideal_sectors
    assert "generic load" not in kernel.classes and "local load" not in kernel.classes
    # Fragments are loaded once per k: as many bytes as the products of a thread take.
    steps = kernel.loop["fma"].lanes // (spec.tm * spec.tn)
    loads = sum(site.bytes for site in hot if site.kind == "load" and site.space == "shared")
    assert loads == steps * (spec.size("a") * spec.tm + spec.size("b") * spec.tn)


@some("mma", "wgmma")
def test_main_loops_of_tensor_cores_are_free_of_waste(name: str) -> None:
    spec = SPECS[name]
    copies = {spec.copy_a, spec.copy_b} if spec.family == "mma" else set()
    (kernel, *_) = ptxgen.profile(name, spec.bm, spec.bn, spec.bk * spec.stages).kernels
    hot = [site for site in kernel.sites if site.hot]
    shared = [site for site in hot if site.space == "shared"]
    # A thread copies a vector word by word, so that its neighbours write 16 bytes further.
    known = {"async"} if "words" in copies else set()
    assert {site.kind for site in shared if site.excess} <= known
    assert kernel.loop["tensor"].lanes and kernel.classes.keys().isdisjoint(
        {"generic load", "local load"}
    )
    if spec.family == "wgmma":  # operands are copied and read by engines, not by threads
        assert not hot
    else:  # fragments are loaded once for each step of 16 k
        wide, slim = spec.wide_side.fragments, spec.slim_side.fragments
        steps = kernel.loop["tensor"].lanes // (32 * wide * slim)
        loads = sum(site.bytes for site in shared if site.kind == "load")
        assert loads == steps * 2 * STEP * (16 * wide + 8 * slim)
    if copies <= {"vector"}:
        assert kernel.global_memory.sectors == kernel.global_memory.ideal_sectors
