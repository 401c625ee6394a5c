"""f64 in kernels: loads and stores, arithmetic, conversions, and the tensor step."""

from __future__ import annotations

import itertools
from typing import Any

import interp_exact as exact
import numpy as np
import pytest
from interp_snippet import run
from numpy.typing import NDArray

F64 = NDArray[np.float64]
SEED = 642


def wide(rng: np.random.Generator, *shape: int) -> F64:
    """Numbers whose products and sums lose bits, cancel, overflow and underflow here and there."""
    value = rng.standard_normal(shape) * np.ldexp(1.0, rng.integers(-30, 30, shape))
    rare = rng.random(shape) < 0.02
    return np.where(rare, np.ldexp(value, rng.choice([-560, 520], shape)), value)


def chain(a: F64, b: F64, c: float) -> int:
    """The bits of c + a[0] * b[0] + ..., every step rounded once."""
    total = int(np.float64(c).view(np.uint64))
    for x, y in zip(a.view(np.uint64).tolist(), b.view(np.uint64).tolist(), strict=True):
        total = exact.operate("fma", "f64", "rn", x, y, total)
    return total


SHAPES = [(8, 4), (16, 4), (16, 8), (16, 16)]


@pytest.mark.parametrize("m,k", SHAPES)
def test_mma(m: int, k: int) -> None:
    """Every element is a chain of fma, k ascending; fragments as in PTX ISA 9.0, 9.7.14.5."""
    rng = np.random.default_rng([SEED, m, k])
    a, b, c = wide(rng, m, k), wide(rng, k, 8), wide(rng, m, 8)
    g, t = np.arange(32) // 4, np.arange(32) % 4
    blocks = m // 8
    given = [a[g + 8 * (i % blocks), t + 4 * (i // blocks)] for i in range(m * k // 32)]
    given += [b[t + 4 * i, g] for i in range(k // 4)]
    sums = [(g + 8 * (i // 2), 2 * t + i % 2) for i in range(m // 4)]
    given += [c[place] for place in sums]
    counts = (m * k // 32, k // 4, m // 4)
    names = iter(f"%d{i}" for i in range(len(given)))
    fragments = ["{" + ", ".join(itertools.islice(names, n)) + "}" for n in counts]
    loads = "".join(f"    ld.global.f64 %d{i}, [%rd9+{256 * i}];\n" for i in range(len(given)))
    first = len(given) - counts[2]
    stores = "".join(
        f"    st.global.f64 [%rd10+{256 * i}], %d{first + i};\n" for i in range(counts[2])
    )
    found = run(
        f"""    mad.wide.u32 %rd9, %r0, 8, %rd0;
    mad.wide.u32 %rd10, %r0, 8, %rd1;
{loads}
    mma.sync.aligned.m{m}n8k{k}.row.col.f64.f64.f64.f64 {fragments[2]}, {", ".join(fragments)};
{stores}""",
        [np.stack(given)],
        np.zeros((counts[2], 32)),
    )
    for i, (row, column) in enumerate(sums):
        for lane in range(32):
            r, n = int(row[lane]), int(column[lane])
            got = exact.canonical(int(found[i, lane].view(np.uint64)), "f64")
            assert got == chain(a[r], b[:, n].copy(), c[r, n]), (r, n)


def test_vectors_through_shared_memory() -> None:
    """ld.global.v2, st.shared.v2, ld.shared.v2, st.global.v2: each thread gets its neighbour's."""
    value = wide(np.random.default_rng(SEED), 32, 2)
    found = run(
        """    mad.wide.u32 %rd9, %r0, 16, %rd0;
    mad.wide.u32 %rd10, %r0, 16, %rd1;
    ld.global.v2.f64 {%d0, %d1}, [%rd9];
    mov.u32 %r1, tile;
    shl.b32 %r2, %r0, 4;
    add.u32 %r3, %r1, %r2;
    st.shared.v2.f64 [%r3], {%d0, %d1};
    bar.sync 0;
    xor.b32 %r2, %r2, 16;
    add.u32 %r3, %r1, %r2;
    ld.shared.v2.f64 {%d2, %d3}, [%r3];
    st.global.v2.f64 [%rd10], {%d3, %d2};""",
        [value],
        np.zeros((32, 2)),
        head=".shared .align 16 .b8 tile[512];\n",
    )
    assert found.tobytes() == value[np.arange(32) ^ 1][:, ::-1].tobytes()


def binary(text: str, a: F64, b: F64, out: NDArray[Any], type: str = "f64") -> NDArray[Any]:
    """Runs one instruction on %d0 and %d1; its result is %d2, or ``type``'s other register."""
    register = {"f64": "%d2", "f32": "%f2", "s32": "%r2", "u64": "%rd20"}[type]
    return run(
        f"""    mad.wide.u32 %rd9, %r0, 8, %rd0;
    mad.wide.u32 %rd10, %r0, 8, %rd1;
    mad.wide.u32 %rd11, %r0, {out.itemsize}, %rd2;
    ld.global.f64 %d0, [%rd9];
    ld.global.f64 %d1, [%rd10];
    {text}
    st.global.{type} [%rd11], {register};""",
        [a, b],
        out,
        block=len(a),
    )


def test_arithmetic_and_selection() -> None:
    rng = np.random.default_rng(SEED)
    a, b = wide(rng, 64), wide(rng, 64)
    none = np.zeros(64)
    with np.errstate(all="ignore"):
        assert binary("add.rn.f64 %d2, %d0, %d1;", a, b, none).tobytes() == (a + b).tobytes()
        assert binary("mul.rn.f64 %d2, %d0, %d1;", a, b, none).tobytes() == (a * b).tobytes()
    assert binary("mov.f64 %d2, %d0;", a, b, none).tobytes() == a.tobytes()
    found = binary("setp.lt.f64 %p0, %d0, %d1; selp.f64 %d2, %d0, %d1, %p0;", a, b, none)
    assert found.tobytes() == np.minimum(a, b).tobytes()
    found = binary("fma.rn.f64 %d2, %d0, %d1, 0d3FF0000000000000;", a, b, none)
    for x, y, got in zip(*(v.view(np.uint64).tolist() for v in (a, b, found)), strict=True):
        assert got == exact.operate("fma", "f64", "rn", x, y, 0x3FF0000000000000)


def test_conversions() -> None:
    a = np.array([0.0, -0.0, 1.5, -2.5, 1e300, -1e-300, 2.0**24 + 1, 2.0**31, np.inf, -1e10])
    f32 = binary("cvt.rn.f32.f64 %f2, %d0;", a, a, np.zeros(10, np.float32), "f32")
    with np.errstate(over="ignore"):
        assert f32.tobytes() == a.astype(np.float32).tobytes()
    back = binary("cvt.rn.f32.f64 %f2, %d0; cvt.f64.f32 %d2, %f2;", a, a, np.zeros(10))
    assert back.tobytes() == f32.astype(np.float64).tobytes()
    integers = binary("cvt.rzi.s32.f64 %r2, %d0;", a, a, np.zeros(10, np.int32), "s32")
    top = 2**31 - 1
    assert integers.tolist() == [0, 0, 1, -2, top, 0, 2**24 + 1, top, top, -top - 1]
