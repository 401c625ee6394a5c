"""Tensor cores of a warp: mma.sync on values of every kind, ldmatrix, stmatrix, movmatrix."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from conformance.case import Case, Kernel, view
from conformance.values import FORMATS, Array, Random, bits_of, hard_floats

_U = np.uint64


# -- moving fragments -----------------------------------------------------------------


def moves() -> Iterator[Case]:
    """ldmatrix and stmatrix, plain and transposed; rows in any order, also the same row twice."""
    family = "fragments"
    for count in (1, 2, 4):
        for transposed in ("", ".trans"):
            kernel = Kernel(f"ldmatrix.x{count}{transposed}", 64)
            kernel.declare(".shared .align 128 .b8 tile[2048];")
            four = [kernel.load("b32") for _ in range(8)]
            row, base, mine = kernel.load("b32"), *kernel.regs("b32", 2)
            kernel(f"mov.u32 {base}, tile;")
            kernel(f"mad.lo.u32 {mine}, %thread, 32, {base};")
            for half in (0, 4):
                listed = ", ".join(four[half : half + 4])
                kernel(f"st.shared.v4.b32 [{mine}+{4 * half}], {{{listed}}};")
            kernel("bar.sync 0;")
            kernel(f"mad.lo.u32 {row}, {row}, 16, {base};")
            found = kernel.regs("b32", count)
            kernel(
                f"ldmatrix.sync.aligned.m8n8.x{count}{transposed}.shared.b16 "
                f"{{{', '.join(found)}}}, [{row}];"
            )
            for register in found:
                kernel.store("b32", register)

            def columns(name: str = kernel.name) -> list[Array]:
                random = Random(name)
                words = [view(random.words(64), "u32") for _ in range(8)]
                return [*words, view(random.below(128, 64), "u32")]

            yield kernel.case(family, columns)

            kernel = Kernel(f"stmatrix.x{count}{transposed}", 64, target="sm_90a")
            kernel.declare(".shared .align 128 .b8 tile[2048];")
            four = [kernel.load("b32") for _ in range(count)]
            row, base, mine, zero = kernel.load("b32"), *kernel.regs("b32", 3)
            kernel(f"mov.u32 {base}, tile;")
            kernel(f"mad.lo.u32 {mine}, %thread, 32, {base};")
            kernel(f"mov.u32 {zero}, 0;")
            for half in (0, 16):
                kernel(f"st.shared.v4.b32 [{mine}+{half}], {{{zero}, {zero}, {zero}, {zero}}};")
            kernel("bar.sync 0;")
            kernel(f"mad.lo.u32 {row}, {row}, 16, {base};")
            kernel(
                f"stmatrix.sync.aligned.m8n8.x{count}{transposed}.shared.b16 "
                f"[{row}], {{{', '.join(four)}}};"
            )
            kernel("bar.sync 0;")
            for half in (0, 16):
                for word in range(4):
                    value = kernel.reg("b32")
                    kernel(f"ld.shared.b32 {value}, [{mine}+{half + 4 * word}];")
                    kernel.store("b32", value)

            def rows(name: str = kernel.name, count: int = count) -> list[Array]:
                random = Random(name)
                words = [view(random.words(64), "u32") for _ in range(count)]
                return [*words, view(random.permutation(128)[:64], "u32")]

            yield kernel.case(family, rows)
    kernel = Kernel("movmatrix", 64)
    value, turned = kernel.load("b32"), kernel.reg("b32")
    kernel(f"movmatrix.sync.aligned.m8n8.trans.b16 {turned}, {value};")
    kernel.store("b32", turned)
    yield kernel.case("beyond", lambda: [view(Random("movmatrix").words(64), "u32")])


# -- operands of products -------------------------------------------------------------


def _number(t: str, sign: Array, exponent: Array, mantissa: Array) -> Array:
    """Bit patterns from fields; the exponent is unbiased and clamped to normal numbers."""
    e, f = FORMATS[t]
    bias = (1 << (e - 1)) - 1
    biased = np.clip(exponent.astype(np.int64) + bias, 1, (1 << e) - 2).astype(np.uint64)
    return sign << _U(e + f) | biased << _U(f) | (mantissa & _U((1 << f) - 1))


def _spread(t: str, random: Random, n: int, low: int, high: int) -> Array:
    """Random numbers with exponents in low .. high."""
    words = random.words(n)
    exponent = random.below(high - low + 1, n).astype(np.int64) + low
    return _number(t, words >> _U(63), exponent, words)


def _subnormal(t: str, random: Random, n: int) -> Array:
    e, f = FORMATS[t]
    words = random.words(n)
    shift = random.below(f, n)
    return (words >> _U(63)) << _U(e + f) | (words & _U((1 << f) - 1)) >> shift


def _flip(t: str, values: Array) -> Array:
    return values ^ _U(1 << sum(FORMATS[t]))


KINDS = (
    "near",
    "wide",
    "widest",
    "cancelling",
    "subnormal",
    "tiny",
    "floor",
    "overflowing",
    "excess",
    "special",
    "sparse",
    "aligned",
    "order",
    "hard",
    "small",
    "zeros",
)
"""Kinds of operands of a product; see :func:`matrices`."""


def _finite(t: str) -> list[int]:
    """The hard values that are neither infinite nor NaN."""
    exponent, fraction = FORMATS[t]
    top = (1 << exponent) - 1
    return [v for v in hard_floats(t) if v >> fraction & top != top]


def matrices(kind: str, t: str, random: Random, w: int) -> tuple[Array, Array, Array]:
    """``w`` triples A[16,16], B[16,8] of type ``t`` and C[16,8] of f32, as bit patterns.

    near: exponents −2 .. 2. wide, widest: farther apart than the sum holds bits. cancelling: the
    products cancel but for their last bits. subnormal: factors, products and sums below the normal
    range. tiny: a few products, and C, around the smallest numbers. floor: one to three products
    on both sides of them, C mostly zero. overflowing: sums around the largest number. excess:
    single products beyond it, which cancel. special: a few Inf, NaN and zeros of both signs.
    sparse: one or two products against C, far apart. aligned: one large product, the others where
    it cuts them off. order: large terms that cancel at any two places of k, small ones elsewhere.
    hard: the table of hard values. small: integers. zeros: many zeros of both signs.
    """
    a_shape, b_shape, c_shape = (w, 16, 16), (w, 16, 8), (w, 16, 8)
    na, nb, nc = w * 256, w * 128, w * 128
    top = 15 if t == "f16" else 60

    def three(low: int, high: int, clow: int, chigh: int) -> tuple[Array, Array, Array]:
        return (
            _spread(t, random, na, low, high).reshape(a_shape),
            _spread(t, random, nb, low, high).reshape(b_shape),
            _spread("f32", random, nc, clow, chigh).reshape(c_shape),
        )

    if kind == "near":
        return three(-2, 2, -3, 3)
    if kind == "wide":
        return three(-8, 8, -18, 18)
    if kind == "widest":
        return three(-14 if t == "f16" else -70, top, -127, 126)
    if kind == "cancelling":
        a, b, c = three(-1, 1, -28, -6)
        e, f = FORMATS[t]
        a[:, :, 8:], b[:, 8:] = a[:, :, :8], _flip(t, b[:, :8])
        nudge = random.below(4, w * 64).reshape(w, 8, 8) == 0
        b[:, 8:] ^= nudge.astype(np.uint64)  # the last bit of some
        for i in range(w):
            order = random.permutation(16)
            a[i], b[i] = a[i][:, order], b[i][order]
        return a, b, c
    if kind == "subnormal":
        a, b, c = three(-14 if t == "f16" else -126, -10 if t == "f16" else -60, -149, -120)
        mask = (random.below(2, na) == 0).reshape(a_shape)
        a = np.where(mask, _subnormal(t, random, na).reshape(a_shape), a)
        if t == "bf16":  # the other factor large enough for the products to be representable
            big = _spread(t, random, nb, -30, 4).reshape(b_shape)
            b = np.where((random.below(4, nb) > 0).reshape(b_shape), big, b)
        else:
            small = _subnormal(t, random, nb).reshape(b_shape)
            b = np.where((random.below(2, nb) > 0).reshape(b_shape), small, b)
        tiny = _subnormal("f32", random, nc).reshape(c_shape)
        low = _spread("f32", random, nc, -50, -24).reshape(c_shape)
        c = np.where((random.below(2, nc) > 0).reshape(c_shape), tiny, low if t == "f16" else c)
        return a, b, c
    if kind == "overflowing":
        if t == "f16":  # products reach 2^32 only: C does it
            return three(10, 15, 126, 127)
        return three(60, 64, 120, 127)
    if kind == "tiny":
        if t == "f16":
            a = _subnormal(t, random, na).reshape(a_shape)
            b = _subnormal(t, random, nb).reshape(b_shape)
            c = _spread("f32", random, nc, -60, -30).reshape(c_shape)
        else:
            a, b, c = three(-80, -58, -149, -120)
            low = _subnormal("f32", random, nc).reshape(c_shape)
            c = np.where((random.below(2, nc) > 0).reshape(c_shape), low, c)
        return np.where((random.below(6, na) == 0).reshape(a_shape), a, _U(0)), b, c
    if kind == "floor":
        if t == "f16":
            a, b, c = three(-24, -14, -60, -30)
        else:
            a, b, c = three(-82, -62, -149, -126)
        c = np.where((random.below(4, nc) > 0).reshape(c_shape), _U(0), c)
        c |= random.below(2, nc).reshape(c_shape) << _U(31)
        keep = np.zeros(a_shape, bool)
        for i in range(w):
            keep[i][:, random.permutation(16)[: 1 + i % 3]] = True
        return np.where(keep, a, _U(0)), b, c
    if kind == "excess":
        a, b, c = three(12, 15, 126, 127) if t == "f16" else three(61, 66, 110, 127)
        a[:, :, 8:], b[:, 8:] = a[:, :, :8], _flip(t, b[:, :8])
        nudge = random.below(6, w * 64).reshape(w, 8, 8) == 0
        b[:, 8:] ^= nudge.astype(np.uint64) << _U(FORMATS[t][1] - 1)
        return a, b, c
    if kind == "special":
        a, b, c = three(-2, 2, -3, 3)
        e, f = FORMATS[t]
        infinity = ((1 << e) - 1) << f
        odd = [0, 1 << (e + f), infinity, infinity | 1 << (e + f)]
        for values, nan, n in ((a, infinity | 1, na), (b, infinity | 1 << (f - 1), nb)):
            rare = random.below(64, n).reshape(values.shape)
            chosen = random.pick([*odd, nan, *odd], n).reshape(values.shape)
            values[rare < 2] = chosen[rare < 2]
        rare = random.below(32, nc).reshape(c_shape)
        odd = [0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001]
        c[rare < 2] = random.pick(odd, nc).reshape(c_shape)[rare < 2]
        return a, b, c
    if kind == "sparse":
        # Products of 2^0 .. 2^1 with full fractions and C up to 30 binary places apart.
        a, b, c = three(0, 0, -30, 30)
        keep = np.zeros(a_shape, bool)
        for i in range(w):
            keep[i][:, random.permutation(16)[: 1 + i % 2]] = True
        return np.where(keep, a, _U(0)), b, c
    if kind == "aligned":
        # One product of about 2^20, the others 2^-8 .. 2^2: cut at the 24th, 25th, 26th bit.
        a, b, c = three(-4, 1, -8, 2)
        for i in range(w):
            k = int(random.below(16, 1)[0])
            a[i][:, k] = _spread(t, random, 16, 9, 11)
            b[i][k] = _spread(t, random, 8, 9, 11)
        return a, b, c
    if kind == "order":
        a, b, c = three(-6, -2, -6, -2)
        for i in range(w):
            first, second = random.permutation(16)[:2]
            a[i][:, first] = a[i][:, second] = _spread(t, random, 16, 8, 9)
            b[i][first] = _spread(t, random, 8, 8, 9)
            b[i][second] = _flip(t, b[i][first])
        return a, b, c
    if kind == "hard":
        a = random.pick(_finite(t), na).reshape(a_shape)
        b = random.pick(_finite(t), nb).reshape(b_shape)
        zero = (random.below(4, na) > 0).reshape(a_shape)
        return np.where(zero, _U(0), a), b, random.pick(_finite("f32"), nc).reshape(c_shape)
    if kind == "small":
        table = [bits_of(float(v), t) for v in range(-8, 9)]
        floats = [bits_of(float(v), "f32") for v in range(-8, 9)]
        return (
            random.pick(table, na).reshape(a_shape),
            random.pick(table, nb).reshape(b_shape),
            random.pick(floats, nc).reshape(c_shape),
        )
    if kind == "zeros":
        sign = 1 << sum(FORMATS[t])
        table = [0, sign, 0, sign, bits_of(1.0, t), bits_of(-1.0, t)]
        a = random.pick(table, na).reshape(a_shape)
        b = random.pick(table[:4], nb).reshape(b_shape)
        return a, b, random.pick([0, 1 << 31], nc).reshape(c_shape)
    raise ValueError(kind)


def fragments(a: Array, b: Array, c: Array) -> list[Array]:
    """The registers of each lane: 4 of A, 2 of B, 4 of C (PTX ISA, mma.m16n8k16)."""
    lane = np.arange(32)
    group, pair = lane // 4, 2 * (lane % 4)

    def two(low: Array, high: Array) -> Array:
        return view((low | high << _U(16)).reshape(-1), "b32")

    rows = [two(a[:, group + r, pair + k], a[:, group + r, pair + k + 1])
            for k in (0, 8) for r in (0, 8)]  # fmt: skip
    columns = [two(b[:, pair + k, group], b[:, pair + k + 1, group]) for k in (0, 8)]
    sums = [view(c[:, group + r, pair + j].reshape(-1), "b32") for r in (0, 8) for j in (0, 1)]
    return rows + columns + sums


def products() -> Iterator[Case]:
    """mma.sync.m16n8k16 with f32 sums: single steps on operands of all kinds, and chains."""
    for t in ("bf16", "f16"):
        for kind in KINDS:
            warps = 24 if kind not in ("small", "zeros") else 4
            kernel = Kernel(f"mma.{t}.{kind}", 128, warps // 4)
            registers = [kernel.load("b32") for _ in range(6)]
            sums = [kernel.load("f32") for _ in range(4)]
            a, b, c = (", ".join(r) for r in (registers[:4], registers[4:], sums))
            kernel(
                f"mma.sync.aligned.m16n8k16.row.col.f32.{t}.{t}.f32 "
                f"{{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};"
            )
            for register in sums:
                kernel.store("f32", register)

            def columns(kind: str = kind, t: str = t, w: int = warps) -> list[Array]:
                return fragments(*matrices(kind, t, Random(f"mma {t} {kind}"), w))

            yield kernel.case("mma", columns)

        # A chain of eight steps, from zero.
        for kind in ("near", "wide"):
            kernel = Kernel(f"mma.{t}.{kind}.chain", 128, 2)
            sums = kernel.regs("f32", 4)
            for register in sums:
                kernel(f"mov.f32 {register}, 0f00000000;")
            for _ in range(8):
                registers = [kernel.load("b32") for _ in range(6)]
                a, b, c = (", ".join(r) for r in (registers[:4], registers[4:], sums))
                kernel(
                    f"mma.sync.aligned.m16n8k16.row.col.f32.{t}.{t}.f32 "
                    f"{{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};"
                )
            for register in sums:
                kernel.store("f32", register)

            def chain(kind: str = kind, t: str = t) -> list[Array]:
                random = Random(f"chain {t} {kind}")
                steps = [fragments(*matrices(kind, t, random, 8))[:6] for _ in range(8)]
                return [register for step in steps for register in step]

            yield kernel.case("mma", chain)
    yield from _others()


def integers() -> Iterator[Case]:
    """Products of 8-bit integers, signed or not: any sums, which wrap, and the largest products."""
    for a, b in itertools.product(("s8", "u8"), repeat=2):
        for kind in ("any", "ends"):
            kernel = Kernel(f"mma.{a}.{b}.{kind}", 128)
            registers = [kernel.load("b32") for _ in range(10)]
            left, right, sums = (
                ", ".join(r) for r in (registers[:4], registers[4:6], registers[6:])
            )
            kernel(
                f"mma.sync.aligned.m16n8k32.row.col.s32.{a}.{b}.s32 "
                f"{{{sums}}}, {{{left}}}, {{{right}}}, {{{sums}}};"
            )
            for register in registers[6:]:
                kernel.store("s32", register)

            def columns(name: str = kernel.name, ends: bool = kind == "ends") -> list[Array]:
                random = Random(name)
                words = np.split(random.words(1280), 10)
                if ends:  # bytes of 0x00, 0x7f, 0x80, 0xff
                    two = [w & _U(0x01010101) for w in words]
                    words = [
                        (t * _U(0x7F)) ^ ((w >> _U(1) & _U(0x01010101)) * _U(0x80))
                        for t, w in zip(two, words, strict=True)
                    ]
                return [view(w, "u32") for w in words]

            yield kernel.case("mma8", columns)


def _others() -> Iterator[Case]:
    """Shapes and types that no kernel of ours uses."""
    for t in ("bf16", "f16"):
        kernel = Kernel(f"mma.m16n8k8.{t}", 128)
        registers = [kernel.load("b32") for _ in range(3)]
        sums = [kernel.load("f32") for _ in range(4)]
        a, b, c = (", ".join(r) for r in (registers[:2], registers[2:], sums))
        kernel(
            f"mma.sync.aligned.m16n8k8.row.col.f32.{t}.{t}.f32 {{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};"
        )
        for register in sums:
            kernel.store("f32", register)

        def columns(t: str = t) -> list[Array]:
            found = fragments(*matrices("wide", t, Random(f"k8 {t}"), 4))
            return [*found[:2], found[4], *found[6:]]

        yield kernel.case("beyond", columns)
    kernel = Kernel("mma.f16.f16", 128)
    registers = [kernel.load("b32") for _ in range(8)]
    a, b, c = (", ".join(r) for r in (registers[:4], registers[4:6], registers[6:]))
    kernel(f"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};")
    for register in registers[6:]:
        kernel.store("f16x2", register)
    yield kernel.case(
        "beyond", lambda: (fragments(*matrices("near", "f16", Random("f16 sums"), 4)))[:8]
    )
    kernel = Kernel("mma.tf32", 128)
    registers = [kernel.load("b32") for _ in range(6)]
    sums = [kernel.load("f32") for _ in range(4)]
    a, b, c = (", ".join(r) for r in (registers[:4], registers[4:], sums))
    kernel(
        f"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};"
    )
    for register in sums:
        kernel.store("f32", register)

    def words() -> list[Array]:
        random = Random("tf32")
        factors = [_spread("f32", random, 128, -5, 5) & _U(0xFFFFE000) for _ in range(6)]
        sums = [_spread("f32", random, 128, -9, 9) for _ in range(4)]
        return [view(column, "u32") for column in factors + sums]

    yield kernel.case("beyond", words)
    kernel = Kernel("mma.s8.satfinite", 128)
    registers = [kernel.load("b32") for _ in range(10)]
    a, b, c = (", ".join(r) for r in (registers[:4], registers[4:6], registers[6:]))
    kernel(
        "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 "
        f"{{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};"
    )
    for register in registers[6:]:
        kernel.store("s32", register)
    yield kernel.case(
        "beyond", lambda: [view(w, "u32") for w in np.split(Random("s8").words(1280), 10)]
    )


def cases() -> Iterator[Case]:
    """Yields all cases of warp-level matrix instructions."""
    yield from moves()
    yield from products()
    yield from integers()
