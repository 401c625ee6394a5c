"""Kernels of products under plans of short chunks, bit for bit the oracle."""

from __future__ import annotations

import functools
from dataclasses import replace

import grouped_cases
import pytest
import quantized_cases
import segment_cases
import window_cases
from interp_cases import check_product, representatives, twin
from interp_launch import KERNELS, Case, admits, oracle
from plans import chunks_of

from ptxgen.runtime.cpu import SMS, CpuDevice
from ptxgen.spec.conv import ConvSpec
from ptxgen.tiles import SPECS

SERIAL = sorted(n for n in KERNELS if SPECS[n].family == "wgmma" and SPECS[n].split == "serial")
"""Kernels of wgmma whose CTAs take the chunks of a tile one after the other."""
SPILLING = [name for name in SERIAL if SPECS[name].spilled_sums]
SHOWN = representatives(SPILLING, "layout") + representatives(SERIAL, "layout")


GROUPED = sorted(n for n, s in SPECS.items() if s.family == "grouped_wgmma" and s.split == "serial")


def runs(names, shown):
    """Kernels, each with a length of chunks that its stages divide: 64 and 128 by turns. Those that
    are not ``shown``, which differ from these in their tiles, are long.
    """
    for turn, name in enumerate(names):
        chunk = 64 if turn % 2 == 0 and SPECS[name].bk <= 64 else 128
        marks = () if name in shown else pytest.mark.long
        yield pytest.param(name, chunk, marks=marks)


@functools.lru_cache(maxsize=1)
def device(name):
    return CpuDevice()


def cases(spec, chunk):
    """Returns cases for each epilogue of a kernel: 16-bit rows without and with bias, off 16 bytes,
    and accumulated; f32 rows, and accumulated; an activation. Tiles are partial and whole;
    reductions have one chunk, two, whole chunks, and a short last one. Cases have the least
    number of rows from there on that the kernel takes.
    """
    bm, bn = spec.bm, spec.bn
    columns = -(-bn // 8) * 8
    last = 4 * chunk + chunk // 2 + 3
    found = (
        Case(bm - 1, columns, 2 * chunk, bias=False, kind="special"),
        Case(bm, columns, last, kind="wide", bias_f32=True),
        Case(3, bn + 1, last, bias=chunk == 64, extra=2, offset=1),
        Case(5, columns, 2 * chunk + 1, bias=False, accumulate=True),
        Case(bm + 1, columns, 3 * chunk, bias=False, out_f32=True),
        Case(9, columns, last, bias=False, accumulate=True, out_f32=True, kind="wide"),
        Case(7, 11, last, activation="gelu", accumulate=True, bias_f32=True),
        Case(2, columns, chunk, activation="silu"),
    )
    return tuple(replace(case, m=spec.rows_from(case.m)) for case in found)


@pytest.mark.parametrize(("name", "chunk"), list(runs(SERIAL, SHOWN)))
def test_chunks(name, chunk):
    """Totals are added chunk by chunk, in order, whatever becomes of them: by the kernels that are
    shown in every way, by the others in one way, by turns.
    """
    spec, (_, route) = SPECS[name], KERNELS[name]
    found = cases(spec, chunk)
    turn = SERIAL.index(name)
    with chunks_of(chunk, device(name)):
        for case in found if name in SHOWN else (found[turn % len(found)],):
            assert admits(route, case, SMS), case
            check_product(name, case, device(name))


@pytest.mark.parametrize(
    ("name", "chunk"), list(runs(GROUPED, [n for n in GROUPED if not twin(n)]))
)
def test_chunks_of_groups(name, chunk):
    """Groups of no row, of one, and of more than a tile; and rows that belong to no group."""
    spec, ends = SPECS[name], (0, 1, SPECS[name].bm + 3)
    wide = grouped_cases.Case(ends, ends[-1] + 2, spec.bn, 4 * chunk + 40, wide=True)
    found = [wide, grouped_cases.Case((2, 5), 6, 24, 2 * chunk, bias=True, activation="silu")]
    with chunks_of(chunk, device(name)):
        for case in found[twin(name) :]:
            grouped_cases.check(name, case, device(name))


SEGMENTED = sorted(
    n for n, s in SPECS.items() if s.family == "vocab_segments_wgmma" and s.split == "serial"
)


@pytest.mark.parametrize(("name", "chunk"), list(runs(SEGMENTED, SEGMENTED[:1])))
def test_chunks_of_logits(name, chunk):
    """Logits of which segments are kept, with a softcap and without."""
    spec = SPECS[name]
    sizes = (spec.bm + 3, spec.bn + 40, 3 * chunk + 24)
    with chunks_of(chunk, device(name)):
        segment_cases.check_product(name, sizes, "wide", 30.0, chunk == 64, device(name))


SUMMED = sorted(n for n, s in SPECS.items() if isinstance(s, ConvSpec) and s.summed)


SUMS_SHOWN = representatives(SUMMED, "family", "split")


@pytest.mark.parametrize(("name", "chunk"), list(runs(SUMMED, SUMS_SHOWN)))
def test_chunks_of_windows(name, chunk):
    """Sums over windows, in chunks that end within an image."""
    with chunks_of(chunk, device(name)):
        for check in window_cases.gradients(name):
            check(device(name))


WIDENED = sorted(
    n for n, s in SPECS.items() if s.family == "quantized_wgmma" and s.split == "serial"
)


@pytest.mark.parametrize(("name", "chunk"), list(runs(WIDENED, WIDENED[:1])))
def test_chunks_of_quantized(name, chunk):
    """Products with NF4 weights, which helping warps widen."""
    spec = SPECS[name]
    block = quantized_cases.NF4.block
    columns, k = -(-spec.bn // block) * block + block, 5 * chunk - (chunk > block) * block
    with chunks_of(chunk, device(name)):
        for m, wide in ((spec.bm + 1, True), (7, False)):
            case = quantized_cases.Case(m, columns, k, "wide", wide=wide)
            quantized_cases.check(name, case, device(name))


def test_plans_of_tests_cut():
    """Bits under a plan of short chunks are others than those of one chain, in the oracle too."""
    spec = SPECS[SHOWN[0]]
    case = Case(3, 8, 600, bias=False, out_f32=True, kind="wide").of(spec)
    whole = oracle(case).copy()
    with chunks_of(64, device(spec.name)):
        assert (oracle(case) != whole).any()
    assert (oracle(case) == whole).all()
