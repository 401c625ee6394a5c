"""Arithmetic, logic, comparisons and conversions: what one thread does by itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conformance.case import Case, elementwise
from conformance.values import DTYPE, FORMATS, PACKED, WIDTH, Random, bits_of

INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
FLOATS = ("f32", "f64")
ROUNDINGS = ("rn", "rz", "rm", "rp")


def _wide(kind: str) -> str:
    return kind[0] + str(2 * WIDTH[kind])


def _slots(kinds: tuple[str, ...]) -> str:
    """The placeholders of the operands: {a0}, {a1} …"""
    return ", ".join(f"{{a{i}}}" for i in range(len(kinds)))


# -- integers -----------------------------------------------------------------------


def integers() -> Iterator[Case]:
    """add to sad, carry chains, immediates."""
    family = "integer"

    def simple(op: str, kinds: tuple[str, ...], result: str, lanes: int = 384) -> Case:
        slots = _slots(kinds)
        return elementwise(family, op, kinds, (result,), f"{op} {{d0}}, {slots};", lanes=lanes)

    for t in INTEGERS:
        for op in ("add", "sub", "mul.lo", "mul.hi", "min", "max"):
            yield simple(f"{op}.{t}", (t, t), t)
        for op in ("mad.lo", "mad.hi", "sad"):
            yield simple(f"{op}.{t}", (t, t, t), t)
        for op in ("div", "rem"):
            yield simple(f"{op}.{t}", (t, f"{t}:nonzero"), t)
        if WIDTH[t] < 64:
            yield simple(f"mul.wide.{t}", (t, t), _wide(t))
            yield simple(f"mad.wide.{t}", (t, t, _wide(t)), _wide(t))
        if t[0] == "s":
            yield simple(f"abs.{t}", (t,), t, 128)
            yield simple(f"neg.{t}", (t,), t, 128)
    for t in ("u32", "s32"):
        yield simple(f"mul24.lo.{t}", (t, t), t)
        yield simple(f"mul24.hi.{t}", (t, t), t)
        yield simple(f"mad24.lo.{t}", (t, t, t), t)
        yield simple(f"mad24.hi.{t}", (t, t, t), t)
    yield simple("add.sat.s32", ("s32", "s32"), "s32")
    yield simple("sub.sat.s32", ("s32", "s32"), "s32")

    literals = {
        "16": ("1", "-1", "0x7fff", "-32768"),
        "32": ("3", "-1", "0x80000000", "-2147483647", "0xfU", "012", "0b101"),
        "64": ("7", "-1", "0x8000000000000000", "-9223372036854775807", "4294967296", "0xffffffff"),
    }
    for t in INTEGERS:
        values = literals[t[1:]]
        for op in ("add", "sub", "mul.lo", "div", "rem", "min", "max"):
            body = [f"{op}.{t} {{d{i}}}, {{a0}}, {v};" for i, v in enumerate(values)]
            yield elementwise(
                family, f"{op}.{t}.imm", (t,), (t,) * len(values), "\n".join(body), lanes=64
            )
        body = [f"mov.{t} {{d{i}}}, {v};" for i, v in enumerate(values)]
        yield elementwise(family, f"mov.{t}.imm", (), (t,) * len(values), "\n".join(body), lanes=32)
    for t in ("u32", "s32"):
        yield elementwise(
            family,
            f"mad.{t}.imm",
            (t, t),
            (t, t, _wide(t)),
            f"mad.lo.{t} {{d0}}, {{a0}}, 12, {{a1}};\n"
            f"mad.lo.{t} {{d1}}, {{a0}}, {{a1}}, -7;\n"
            f"mul.wide.{t} {{d2}}, {{a0}}, -3;",
            lanes=128,
        )


def bits() -> Iterator[Case]:
    """Logic, shifts, fields, counts, permutes and dot products of bytes."""
    family = "bits"

    def simple(op: str, kinds: tuple[str, ...], result: str, lanes: int = 256) -> Case:
        slots = _slots(kinds)
        return elementwise(family, op, kinds, (result,), f"{op} {{d0}}, {slots};", lanes=lanes)

    for t in ("b16", "b32", "b64"):
        for op in ("and", "or", "xor"):
            yield simple(f"{op}.{t}", (t, t), t)
            literals = ("1", "-1", "0x5a5a")
            body = [f"{op}.{t} {{d{i}}}, {{a0}}, {v};" for i, v in enumerate(literals)]
            yield elementwise(family, f"{op}.{t}.imm", (t,), (t,) * 3, "\n".join(body), lanes=64)
        for op in ("not", "cnot"):
            yield simple(f"{op}.{t}", (t,), t, 64)
        u, s = "u" + t[1:], "s" + t[1:]
        for op in (f"shl.{t}", f"shr.{t}", f"shr.{u}", f"shr.{s}"):
            kind = op.split(".")[1]
            yield simple(op, (kind, "u32:shift"), kind, 384)
            amounts = (0, 1, 8, WIDTH[t] - 1, WIDTH[t], WIDTH[t] + 1, 255)
            body = [f"{op} {{d{i}}}, {{a0}}, {n};" for i, n in enumerate(amounts)]
            yield elementwise(
                family, f"{op}.imm", (kind,), (kind,) * len(amounts), "\n".join(body), lanes=64
            )
    for op in ("and", "or", "xor"):
        yield simple(f"{op}.pred", ("pred", "pred"), "pred", 32)
    yield simple("not.pred", ("pred",), "pred", 32)
    for way in ("l", "r"):
        for mode in ("wrap", "clamp"):
            op = f"shf.{way}.{mode}.b32"
            yield simple(op, ("b32", "b32", "u32:shift"), "b32", 384)
            amounts = (0, 1, 31, 32, 33)
            body = [f"{op} {{d{i}}}, {{a0}}, {{a1}}, {n};" for i, n in enumerate(amounts)]
            yield elementwise(
                family, f"{op}.imm", ("b32",) * 2, ("b32",) * 5, "\n".join(body), lanes=64
            )
    for t in ("u32", "s32", "u64", "s64"):
        yield simple(f"bfe.{t}", (t, "u32:field", "u32:field"), t, 512)
        yield simple(f"bfind.{t}", (t,), "u32", 128)
        yield simple(f"bfind.shiftamt.{t}", (t,), "u32", 128)
    for t in ("b32", "b64"):
        yield simple(f"bfi.{t}", (t, t, "u32:field", "u32:field"), t, 512)
        yield simple(f"brev.{t}", (t,), t, 128)
        yield simple(f"popc.{t}", (t,), "u32", 128)
        yield simple(f"clz.{t}", (t,), "u32", 128)
    yield elementwise(
        family,
        "bfe.bfi.imm",
        ("b32", "b32"),
        ("b32",) * 4,
        "bfe.u32 {d0}, {a0}, 5, 9;\nbfe.s32 {d1}, {a0}, 23, 12;\n"
        "bfi.b32 {d2}, {a0}, {a1}, 7, 13;\nbfi.b32 {d3}, {a0}, 0, 28, 8;",
        lanes=64,
    )

    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        op = f"prmt.b32{mode}"
        yield simple(op, ("b32", "b32", "b32"), "b32")
    selectors = (0x3210, 0x7654, 0x5410, 0x7632, 0x0123, 0xFEDC, 0x8A9B, 0x4321, 0x1054)
    body = [f"prmt.b32 {{d{i}}}, {{a0}}, {{a1}}, {v:#x};" for i, v in enumerate(selectors)]
    yield elementwise(
        family, "prmt.b32.imm", ("b32",) * 2, ("b32",) * len(selectors), "\n".join(body), lanes=64
    )
    tables = (0x96, 0xE8, 0xCA, 0x80, 0xFE, 0x1E, 0x6A, 0xF8, 0x00, 0xFF, 0x01, 0x27, 0xB8, 0xE2)
    tables += (0xF0, 0xCC, 0xAA, 0x0F, 0x33, 0x55, 0x3C, 0x5A, 0x66, 0xC0)
    for at in range(0, len(tables), 8):
        chosen = tables[at : at + 8]
        body = [f"lop3.b32 {{d{i}}}, {{a0}}, {{a1}}, {{a2}}, {v:#x};" for i, v in enumerate(chosen)]
        yield elementwise(
            family, f"lop3.b32.{at // 8}", ("b32",) * 3, ("b32",) * 8, "\n".join(body), lanes=64
        )
    for a in ("u32", "s32"):
        for b in ("u32", "s32"):
            result = "u32" if a == b == "u32" else "s32"
            yield simple(f"dp4a.{a}.{b}", (a, b, result), result)
            for half in ("lo", "hi"):
                yield simple(f"dp2a.{half}.{a}.{b}", (a, b, result), result)


# -- comparisons --------------------------------------------------------------------

ORDERED = ("eq", "ne", "lt", "le", "gt", "ge")
UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def _flags(pieces: list[str]) -> str:
    """A body that gathers predicates: bit i of {d0} says whether the i-th holds.

    A piece is an instruction that writes {t0}, or "instruction | combination".
    """
    lines = ["mov.b32 {d0}, 0;"]
    for i, piece in enumerate(pieces):
        lines += [piece, f"selp.b32 {{t2}}, {1 << i}, 0, {{t0}};", "or.b32 {d0}, {d0}, {t2};"]
    return "\n".join(lines)


def comparisons() -> Iterator[Case]:
    """setp and set with all their comparisons, selp, slct, testp."""
    family = "compare"
    temps = ("pred", "pred", "b32")
    relations = {
        **{t: ("eq", "ne") for t in ("b16", "b32", "b64")},
        **{f"s{w}": ORDERED for w in (16, 32, 64)},
        **{f"u{w}": (*ORDERED, "lo", "ls", "hi", "hs") for w in (16, 32, 64)},
        **{t: ORDERED + UNORDERED for t in ("f32", "f64", "f16", "bf16")},
    }
    for t, found in relations.items():
        target = "sm_90a" if t == "bf16" else "sm_80"
        lanes = 1024 if t in FORMATS else 768
        body = _flags([f"setp.{r}.{t} {{t0}}, {{a0}}, {{a1}};" for r in found])
        yield elementwise(
            family, f"setp.{t}", (t, t), ("b32",), body, lanes=lanes, temps=temps, target=target
        )
        if t in ("f16", "bf16"):
            continue
        number = "0f3F800000" if t == "f32" else "0dBFF0000000000000" if t == "f64" else "-1"
        body = _flags([f"setp.{r}.{t} {{t0}}, {{a0}}, {number};" for r in found])
        yield elementwise(family, f"setp.{t}.imm", (t,), ("b32",), body, lanes=64, temps=temps)
    pieces = []
    for logic in ("and", "or", "xor"):
        for negated in ("", "!"):
            pieces.append(f"setp.lt.{logic}.s32 {{t0}}|{{t1}}, {{a0}}, {{a1}}, {negated}{{a2}};")
            pieces.append("mov.pred {t0}, {t1};")
    yield elementwise(
        family,
        "setp.combined",
        ("s32", "s32", "pred"),
        ("b32",),
        _flags(pieces),
        lanes=512,
        temps=temps,
    )
    pieces = ["setp.gt.f32 {t0}|{t1}, {a0}, {a1};", "mov.pred {t0}, {t1};"]
    pieces += ["setp.leu.or.f32 {t0}|{t1}, {a0}, {a1}, {a2};", "mov.pred {t0}, {t1};"]
    yield elementwise(
        family,
        "setp.combined.f32",
        ("f32", "f32", "pred"),
        ("b32",),
        _flags(pieces),
        lanes=512,
        temps=temps,
    )
    for number, t in enumerate(("b32", "u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64")):
        found = relations[t]
        for result in ("u32", "s32", "f32"):
            relation = found[(3 * number + len(result)) % len(found)]
            op = f"set.{relation}.{result}.{t}"
            yield elementwise(
                family, op, (t, t), (result,), f"{op} {{d0}}, {{a0}}, {{a1}};", lanes=256
            )
    yield elementwise(
        family,
        "set.combined",
        ("s32", "s32", "pred"),
        ("u32", "u32"),
        "set.lt.and.u32.s32 {d0}, {a0}, {a1}, {a2};\nset.ge.xor.u32.s32 {d1}, {a0}, {a1}, !{a2};",
        lanes=256,
    )
    for t in ("b16", "b32", "b64", "u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64"):
        op = f"selp.{t}"
        yield elementwise(
            family, op, (t, t, "pred"), (t,), f"{op} {{d0}}, {{a0}}, {{a1}}, {{a2}};", lanes=64
        )
        if t[0] == "u":
            continue
        for by in ("s32", "f32"):
            op = f"slct.{t}.{by}"
            yield elementwise(
                family, op, (t, t, by), (t,), f"{op} {{d0}}, {{a0}}, {{a1}}, {{a2}};", lanes=128
            )
    yield elementwise(
        family,
        "selp.imm",
        ("b32", "pred"),
        ("b32", "f32", "u64"),
        "selp.b32 {d0}, 7, {a0}, {a1};\nselp.f32 {d1}, 0f40490FDB, 0fBF800000, {a1};\n"
        "selp.u64 {d2}, 0x123456789abcdef, -2, {a1};",
        lanes=64,
    )
    tests = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    for t in FLOATS:
        body = _flags([f"testp.{test}.{t} {{t0}}, {{a0}};" for test in tests])
        yield elementwise(family, f"testp.{t}", (t,), ("b32",), body, lanes=256, temps=temps)
    yield elementwise(
        family,
        "guards",
        ("s32", "s32", "pred"),
        ("s32", "s32"),
        "mov.b32 {d0}, 5;\nmov.b32 {d1}, 6;\nsetp.lt.s32 {t0}, {a0}, {a1};\n"
        "@{t0} add.s32 {d0}, {a0}, {a1};\n@!{t0} sub.s32 {d0}, {a0}, {a1};\n"
        "@{a2} mov.b32 {d1}, {a0};\n@!{a2} xor.b32 {d1}, {d1}, {d0};",
        lanes=128,
        temps=("pred",),
    )


# -- floating point -----------------------------------------------------------------


def floats() -> Iterator[Case]:
    """f32 and f64, in every rounding mode."""
    family = "float"

    def simple(op: str, kinds: tuple[str, ...], result: str, lanes: int = 1024) -> Case:
        slots = _slots(kinds)
        return elementwise(family, op, kinds, (result,), f"{op} {{d0}}, {slots};", lanes=lanes)

    for t in FLOATS:
        lanes = 1024 if t == "f32" else 640
        for op, count in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3), ("div", 2)):
            for r in ROUNDINGS:
                yield simple(f"{op}.{r}.{t}", (t,) * count, t, lanes)
        for op in ("sqrt", "rcp"):
            for r in ROUNDINGS:
                yield simple(f"{op}.{r}.{t}", (t,), t, 512)
        for op in ("min", "max", "copysign"):
            yield simple(f"{op}.{t}", (t, t), t, lanes)
        for op in ("abs", "neg"):
            yield simple(f"{op}.{t}", (t,), t, 128)
        for r in ROUNDINGS:
            yield elementwise(
                family,
                f"fma.{r}.{t}.cancelling",
                (t, t, t),
                (t,),
                f"fma.{r}.{t} {{d0}}, {{a0}}, {{a1}}, {{a2}};",
                lanes=512,
                columns=lambda t=t, r=r: _cancelling(t, 512, f"cancelling {t} {r}"),
            )
    yield simple("mad.rn.f32", ("f32",) * 3, "f32", 512)
    yield simple("mad.rz.f64", ("f64",) * 3, "f64", 256)
    for op in ("min", "max"):
        yield simple(f"{op}.NaN.f32", ("f32", "f32"), "f32")
    for op, count in (("add.rn", 2), ("sub.rz", 2), ("mul.rn", 2), ("fma.rp", 3), ("add.rm", 2)):
        base, _, rounding = op.partition(".")
        yield simple(f"{base}.{rounding}.sat.f32", ("f32",) * count, "f32", 512)
    yield elementwise(
        family,
        "immediates.f32",
        ("f32", "f32"),
        ("f32",) * 7,
        "add.rn.f32 {d0}, {a0}, 0f3F800001;\nmul.rn.f32 {d1}, {a0}, 0f80000001;\n"
        "fma.rn.f32 {d2}, {a0}, 0fBFB8AA3B, {a1};\nfma.rn.f32 {d3}, {a0}, {a1}, 0f7F800000;\n"
        "mov.f32 {d4}, 0f7FC00000;\nmax.f32 {d5}, {a0}, 0f00000000;\nmov.f32 {d6}, 1.5;",
        lanes=256,
    )
    yield elementwise(
        family,
        "immediates.f64",
        ("f64", "f64"),
        ("f64",) * 5,
        "add.rn.f64 {d0}, {a0}, 0d3FF0000000000001;\nmul.rn.f64 {d1}, {a0}, 0d8000000000000001;\n"
        "fma.rn.f64 {d2}, {a0}, 0dBFF71547652B82FE, {a1};\nmov.f64 {d3}, 0d7FF0000000000000;\n"
        "mov.f64 {d4}, -0.1;",
        lanes=128,
    )


def special() -> Iterator[Case]:
    """The special function unit: powers of two."""
    name, lanes, each = "ex2.approx.ftz.f32", 1536, 4
    yield elementwise("special", name, ("f32",), ("f32",), f"{name} {{d0}}, {{a0}};", lanes=1024)
    yield elementwise(
        *("special", f"{name}.inside", ("f32",) * each, ("f32",) * each),
        "\n".join(f"{name} {{d{i}}}, {{a{i}}};" for i in range(each)),
        lanes=lanes,
        columns=lambda: [_inside(lanes, f"inside {i}") for i in range(each)],
    )


def _inside(lanes: int, key: str) -> np.ndarray:  # type: ignore[type-arg]
    """Numbers of either sign from 2**-28 to 2**7, as bits; some of them whole."""
    random, word = Random(key), np.uint32
    sign, exponent = random.below(2, lanes).astype(word), random.below(35, lanes).astype(word)
    fraction = random.words(lanes).astype(word) & word((1 << 23) - 1)
    fraction[::16] = 0
    return sign << word(31) | (exponent + word(127 - 28)) << word(23) | fraction


def _cancelling(t: str, lanes: int, key: str) -> list[np.ndarray]:  # type: ignore[type-arg]
    """a, b, and c close to −a·b: the sum is as small as the rounding of the product."""
    _, fraction = FORMATS[t]
    random, dtype = Random(key), np.dtype(f"<f{WIDTH[t] // 8}")
    word = DTYPE[WIDTH[t]]
    one = np.uint64(bits_of(1.0, t))
    parts = []
    for _ in range(2):
        mantissa = random.words(lanes) & np.uint64((1 << fraction) - 1)
        parts.append((one | mantissa).astype(word).view(dtype))
    product = (-(parts[0] * parts[1])).view(word)
    wobble = random.below(5, lanes).astype(word) - word.type(2)
    return [p.view(word) for p in parts] + [product + wobble]


def halves() -> Iterator[Case]:
    """f16 and bf16, single and packed."""
    family = "half"
    lanes = 1024
    for t in ("f16", "bf16", "f16x2", "bf16x2"):
        brain = t.startswith("b")

        def simple(op: str, kinds: tuple[str, ...], target: str, n: int = lanes) -> Case:
            slots = _slots(kinds)
            body = f"{op} {{d0}}, {slots};"
            return elementwise(family, op, kinds, kinds[:1], body, lanes=n, target=target)

        for op in ("add", "sub", "mul"):
            yield simple(f"{op}.rn.{t}", (t, t), "sm_90a" if brain else "sm_80")
        yield simple(f"fma.rn.{t}", (t, t, t), "sm_80")
        if not brain:
            yield simple(f"fma.rn.sat.{t}", (t, t, t), "sm_80")
        for op in ("min", "max"):
            yield simple(f"{op}.{t}", (t, t), "sm_80")
            yield simple(f"{op}.NaN.{t}", (t, t), "sm_80")
        for op in ("neg", "abs"):
            yield simple(f"{op}.{t}", (t,), "sm_80", 128)
    yield elementwise(
        family,
        "half.moves",
        ("b16", "b16"),
        ("b32", "b16", "b16", "b16"),
        "mov.b32 {d0}, {{{a0}, {a1}}};\nmov.b32 {{{d1}, {d2}}}, {d0};\nmov.b32 {{_, {d3}}}, {d0};",
        lanes=64,
        version="8.3",
    )


# -- conversions --------------------------------------------------------------------


def conversions() -> Iterator[Case]:
    """cvt between all types, in every rounding mode and saturation that the ISA has."""
    family = "convert"
    kinds = [f"{k}{w}" for w in (8, 16, 32, 64) for k in "us"]

    def held(kind: str) -> str:
        """The type that carries a narrow integer: its upper bits are garbage or extension."""
        return "b32" if WIDTH[kind] == 8 else kind

    def many(
        name: str,
        source: str,
        result: str,
        modes: list[str],
        pair: str,
        target: str = "sm_80",
        lanes: int = 256,
    ) -> Case:
        body = [f"cvt{m}.{pair} {{d{i}}}, {{a0}};" for i, m in enumerate(modes)]
        results = (result,) * len(modes)
        return elementwise(
            family, name, (source,), results, "\n".join(body), lanes=lanes, target=target
        )

    for d in kinds:
        for s in kinds:
            modes = [""]
            if _can_overflow(s, d):
                modes.append(".sat")
            yield many(f"cvt.{d}.{s}", held(s), held(d), modes, f"{d}.{s}", lanes=96)
    for f in ("f16", "f32", "f64", "bf16"):
        target = "sm_90a" if f == "bf16" else "sm_80"
        for i in kinds:
            if f == "bf16" and WIDTH[i] == 8:
                continue
            lanes, modes = 256, [f".{r}" for r in ROUNDINGS]
            if FORMATS[f][1] >= WIDTH[i]:  # every value fits
                lanes, modes = 96, [".rn"]
            if f != "bf16":
                modes.append(".rn.sat")
            yield many(f"cvt.{f}.{i}", held(i), f, modes, f"{f}.{i}", target, lanes)
            modes = [".rni", ".rzi", ".rmi", ".rpi"] + [".rni.sat"] * (f != "bf16")
            yield many(f"cvt.{i}.{f}", f"{f}:integral", held(i), modes, f"{i}.{f}", target)
    for f in ("f16", "f32", "f64"):
        modes = [".rni", ".rzi", ".rmi", ".rpi", ".sat", ".rzi.sat"]
        yield many(f"cvt.{f}.{f}", f"{f}:integral", f, modes, f"{f}.{f}", lanes=384)
    modes = [".rni", ".rzi", ".rmi", ".rpi"]
    yield many("cvt.bf16.bf16", "bf16:integral", "bf16", modes, "bf16.bf16", "sm_90a")
    for d, s, modes, target in (
        ("f32", "f16", ["", ".sat"], "sm_80"),
        ("f64", "f16", ["", ".sat"], "sm_80"),
        ("f64", "f32", ["", ".sat"], "sm_80"),
        ("f32", "bf16", [""], "sm_80"),
        ("f64", "bf16", [""], "sm_90a"),
        ("f16", "bf16", [".rn", ".rz", ".rm", ".rp"], "sm_90a"),
        ("bf16", "f16", [".rn", ".rz", ".rm", ".rp"], "sm_90a"),
    ):
        kind = s if WIDTH[s] < WIDTH[d] else f"{s}:{d}" if (d, s) == ("f16", "bf16") else s
        kind = s if kind == "bf16:f16" else kind
        yield many(f"cvt.{d}.{s}", kind, d, modes, f"{d}.{s}", target, 512)
    for d, s in (("f16", "f32"), ("bf16", "f32"), ("f32", "f64"), ("f16", "f64"), ("bf16", "f64")):
        for r in ROUNDINGS:
            target = "sm_90a" if (d, s) == ("bf16", "f64") else "sm_80"
            yield many(f"cvt.{r}.{d}.{s}", f"{s}:{d}", d, [f".{r}"], f"{d}.{s}", target, 1024)
    yield many("cvt.rn.sat.f16.f32", "f32:f16", "f16", [".rn.sat", ".rz.sat"], "f16.f32")
    yield many("cvt.rn.sat.f32.f64", "f64:f32", "f32", [".rn.sat", ".rp.sat"], "f32.f64")
    for d in ("f16", "bf16"):
        for m in ("rn", "rz"):
            op = f"cvt.{m}.{d}x2.f32"
            yield elementwise(
                family,
                op,
                (f"f32:{d}", f"f32:{d}"),
                (f"{d}x2",),
                f"{op} {{d0}}, {{a0}}, {{a1}};",
                lanes=1024,
            )
    op = "cvt.rn.f16x2.e4m3x2"
    body = f"{op} {{d0}}, {{a0}};"
    yield elementwise(family, op, ("b16",), ("f16x2",), body, lanes=1024, target="sm_90a")
    yield elementwise(
        family,
        "mov.halves.b64",
        ("b32", "b32", "b16", "b16", "b16", "b16"),
        ("b64", "b32", "b32", "b64", "b16", "f32", "f64"),
        "mov.b64 {d0}, {{{a0}, {a1}}};\nmov.b64 {{{d1}, {d2}}}, {d0};\n"
        "mov.b64 {d3}, {{{a2}, {a3}, {a4}, {a5}}};\nmov.b64 {{{t0}, {t1}, {d4}, {t2}}}, {d3};\n"
        "mov.b32 {d5}, {a0};\nmov.b64 {d6}, {d3};",
        lanes=96,
        temps=("b16", "b16", "b16"),
    )


def _can_overflow(source: str, result: str) -> bool:
    """Whether the integer type ``source`` has values outside of ``result``."""
    bits = WIDTH[source] - (source[0] == "s"), WIDTH[result] - (result[0] == "s")
    return bits[0] > bits[1] or (source[0] == "s" and result[0] == "u")


# -- outside of what the library's kernels use ------------------------------------------


def beyond() -> Iterator[Case]:
    """Carries, flushing, ReLU, packed integers, f8, tf32: legal, but in none of our kernels."""
    family = "beyond"

    def simple(
        op: str, kinds: tuple[str, ...], result: str, lanes: int = 512, target: str = "sm_80"
    ) -> Case:
        slots = _slots(kinds)
        body = f"{op} {{d0}}, {slots};"
        return elementwise(family, op, kinds, (result,), body, lanes=lanes, target=target)

    for op, count in (
        ("add.rn", 2), ("sub.rn", 2), ("mul.rz", 2), ("fma.rn", 3), ("div.rn", 2), ("sqrt.rn", 1),
        ("rcp.rn", 1), ("min", 2), ("max", 2), ("abs", 1), ("neg", 1),
    ):  # fmt: skip
        base, _, rounding = op.partition(".")
        name = ".".join(part for part in (base, rounding, "ftz", "f32") if part)
        yield simple(name, ("f32",) * count, "f32")
    for op in ("add.ftz.f16", "mul.ftz.f16x2", "min.ftz.f16"):
        kind = op.rpartition(".")[2]
        yield simple(op, (kind, kind), kind)
    yield simple("cvt.rn.ftz.f16.f32", ("f32:f16",), "f16")
    yield simple("cvt.ftz.f32.f16", ("f16",), "f32")
    for op in ("min", "max"):
        yield simple(f"{op}.relu.s32", ("s32", "s32"), "s32", 256, "sm_90a")
        yield simple(f"{op}.u16x2", ("b32", "b32"), "b32", 256, "sm_90a")
        yield simple(f"{op}.s16x2", ("b32", "b32"), "b32", 256, "sm_90a")
        yield simple(f"{op}.xorsign.abs.f32", ("f32", "f32"), "f32", target="sm_90a")
    yield simple("add.u16x2", ("b32", "b32"), "b32", 256, "sm_90a")
    for kind in ("e4m3x2", "e5m2x2"):
        for relu in ("", ".relu"):
            yield simple(
                f"cvt.rn.satfinite{relu}.{kind}.f32",
                ("f32:f16", "f32:f16"),
                "b16",
                target="sm_90a",
            )
            if (kind, relu) != ("e4m3x2", ""):  # in the subset
                yield simple(f"cvt.rn{relu}.f16x2.{kind}", ("b16",), "f16x2", target="sm_90a")
    yield simple("cvt.pack.sat.u8.s32.b32", ("s32", "s32", "b32"), "b32")
    yield simple("cvt.pack.sat.s16.s32", ("s32", "s32"), "b32")
    yield simple("set.lt.f16.f16", ("f16", "f16"), "f16")
    yield simple("set.gt.u32.f16x2", ("f16x2", "f16x2"), "b32")
    yield simple("set.geu.bf16x2.bf16x2", ("bf16x2", "bf16x2"), "bf16x2", target="sm_90a")
    for t in FLOATS:  # without a rounding mode the assembler may fuse: not here, alone
        for op in ("add", "sub", "mul"):
            yield simple(f"{op}.{t}", (t, t), t)
    for t in ("f16", "f16x2", "bf16", "bf16x2"):
        brain = t.startswith("b")
        yield simple(f"add.{t}", (t, t), t, 256, "sm_90a" if brain else "sm_80")
        yield simple(f"fma.rn.relu.{t}", (t, t, t), t)
        for m in ("rn.relu", "rz.relu"):
            kinds = (f"f32:{PACKED.get(t, t)}",) * (2 if t in PACKED else 1)
            yield simple(f"cvt.{m}.{t}.f32", kinds, t)
        if not brain:
            for op in ("add", "sub", "mul"):
                yield simple(f"{op}.sat.{t}", (t, t), t)
    yield simple("mad.hi.sat.s32", ("s32", "s32", "s32"), "s32")
    yield simple("szext.wrap.u32", ("u32", "u32:shift"), "u32", 256)
    yield simple("szext.clamp.s32", ("s32", "u32:shift"), "s32", 256)
    yield simple("bmsk.clamp.b32", ("u32:shift", "u32:shift"), "b32", 256)
    yield simple("bmsk.wrap.b32", ("u32:shift", "u32:shift"), "b32", 256)
    yield simple("cvt.rna.tf32.f32", ("f32:f16",), "b32")
    yield simple("cvt.rn.tf32.f32", ("f32:f16",), "b32", target="sm_90a")
    yield simple("cvt.rz.tf32.f32", ("f32:f16",), "b32", target="sm_90a")
    for t in ("f16x2", "bf16x2"):
        target = "sm_90a" if t == "bf16x2" else "sm_80"
        pieces = []
        for r in (*ORDERED, *UNORDERED):
            pieces.append(f"setp.{r}.{t} {{t0}}|{{t1}}, {{a0}}, {{a1}};")
            pieces.append("mov.pred {t0}, {t1};")
        yield elementwise(
            family,
            f"setp.{t}",
            (t, t),
            ("b32",),
            _flags(pieces),
            lanes=1024,
            temps=("pred", "pred", "b32"),
            target=target,
        )
    for w in ("32", "64"):
        u = f"u{w}"
        yield elementwise(
            family,
            f"add.cc.{u}",
            (u,) * 4,
            (u,) * 3,
            f"add.cc.{u} {{d0}}, {{a0}}, {{a2}};\n"
            f"addc.cc.{u} {{d1}}, {{a1}}, {{a3}};\n"
            f"addc.{u} {{d2}}, 0, 0;",
            lanes=256,
        )
        yield elementwise(
            family,
            f"sub.cc.{u}",
            (u,) * 4,
            (u,) * 3,
            f"sub.cc.{u} {{d0}}, {{a0}}, {{a2}};\n"
            f"subc.cc.{u} {{d1}}, {{a1}}, {{a3}};\n"
            f"subc.{u} {{d2}}, 0, 0;",
            lanes=256,
        )
        yield elementwise(
            family,
            f"mad.cc.{u}",
            (u,) * 4,
            (u,) * 3,
            f"mad.lo.cc.{u} {{d0}}, {{a0}}, {{a1}}, {{a2}};\n"
            f"madc.hi.cc.{u} {{d1}}, {{a0}}, {{a1}}, {{a3}};\n"
            f"addc.{u} {{d2}}, 0, 0;",
            lanes=256,
        )
    yield simple("fns.b32", ("b32", "u32:below32", "s32:below8"), "b32", 256)


def cases() -> Iterator[Case]:
    """Yields all cases of scalar instructions."""
    for source in (integers, bits, comparisons, floats, special, halves, conversions, beyond):
        yield from source()
