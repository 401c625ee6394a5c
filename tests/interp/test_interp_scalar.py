"""``interp.scalar``: every instruction against Python's integers and rational numbers.

Operands and results are bit patterns here; NaN are one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import interp_exact as exact
import numpy as np
import pytest
from loops import for_each
from numpy.typing import NDArray

from ptxgen.errors import PtxError
from ptxgen.interp.text.ptx import Immediate, Instruction, Pair, Register
from ptxgen.interp.values.scalar import STORAGE, Scalar, constant, lookup

SEED = 20252
Reference = Callable[..., Any]

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


# --- The instruction under test -----------------------------------------------------------------
def instruction(name: str, operands: int, *, pair: bool = False) -> Instruction:
    """``operands`` registers, the destination included; lop3's fifth is a constant."""
    opcode, *modifiers = name.split(".")
    registers: list[Any] = [Register(f"%r{i}") for i in range(operands)]
    if pair:
        registers[0] = Pair(Register("%p0"), Register("%p1"))
    if opcode == "lop3" and operands > 4:
        registers[4] = Immediate(0xE8)
    return Instruction(opcode, tuple(modifiers), tuple(registers), line=7, text=name)


def scalar(name: str, operands: int, *, pair: bool = False) -> Scalar:
    found = lookup(instruction(name, operands, pair=pair))
    assert found is not None
    return found


def width(kind: str) -> int:
    return 1 if kind == "pred" else 8 * STORAGE[kind].itemsize


def array(bits: Sequence[int], kind: str) -> NDArray[Any]:
    if kind == "pred":
        return np.array(bits, np.bool_)
    return np.array(bits, f"u{STORAGE[kind].itemsize}").view(STORAGE[kind])


def bits_of(value: NDArray[Any], kind: str) -> list[int]:
    assert value.dtype == STORAGE[kind], f"{value.dtype} is not the storage of {kind}"
    if kind == "pred":
        return [int(x) for x in value]
    found = [int(x) for x in value.view(f"u{value.dtype.itemsize}")]
    return [canonical(x, kind) for x in found]


def canonical(bits: int, kind: str) -> int:
    if kind in exact.FORMATS:
        return exact.canonical(bits, kind)
    if kind in ("f16x2", "bf16x2"):
        base = kind[:-2]
        halves = (exact.canonical(bits >> 16, base), exact.canonical(bits & 0xFFFF, base))
        return halves[0] << 16 | halves[1]
    return bits


def run(function: Scalar, columns: Sequence[NDArray[Any]]) -> list[list[int]]:
    before = [x.copy() for x in columns]
    results = function.function(*columns)
    for x, y in zip(columns, before, strict=True):
        assert x.tobytes() == y.tobytes(), "an operand was written to"
    if len(function.dst) == 1:
        results = (results,)
    size = max(len(x) for x in columns)
    assert all(x.ndim == 1 and len(x) in (1, size) for x in results)
    spread = (np.broadcast_to(x, (size,)) for x in results)
    return [
        bits_of(np.ascontiguousarray(x), kind) for x, kind in zip(spread, function.dst, strict=True)
    ]


def check(
    name: str, cases: Sequence[Sequence[int]], expected: Reference, *, pair: bool = False
) -> None:
    """All cases as arrays, then with each operand in turn the same in all lanes."""
    cases = [tuple(x) for x in cases]
    function = scalar(name, len(cases[0]) + 1, pair=pair)
    assert len(function.src) == len(cases[0])
    for uniform in range(-1, len(cases[0]) if len(cases[0]) > 1 else 0):
        rows = cases
        if uniform >= 0:
            some = cases[:: max(1, len(cases) // 50)]
            value = some[len(some) // 2][uniform]
            rows = [(*x[:uniform], value, *x[uniform + 1 :]) for x in some]
        columns = [
            array(x, kind) for x, kind in zip(zip(*rows, strict=True), function.src, strict=True)
        ]
        if uniform >= 0:
            columns[uniform] = columns[uniform][:1].copy()
        actual = run(function, columns)
        want = [expected(*x) for x in rows]
        table = [[x] for x in want] if len(function.dst) == 1 else want
        for results, kind, column in zip(
            actual, function.dst, zip(*table, strict=True), strict=True
        ):
            mask = (1 << width(kind)) - 1
            for row, got, right in zip(rows, results, column, strict=True):
                right = canonical(int(right) & mask, kind)
                operands = ", ".join(map(hex, row))
                assert got == right, f"{name}({operands}) gave {got:#x}, expected {right:#x}"
    assert run(function, [x[:1] for x in columns])[0][0] == actual[0][0]


# --- Operands -----------------------------------------------------------------------------------
def integers(kind: str) -> list[int]:
    bits = width(kind)
    top = 1 << (bits - 1)
    pool = [0, 1, 2, 3, 7, top - 1, top, top + 1, 2 * top - 1, 2 * top - 2, top >> 1]
    pool += [0xAAAAAAAAAAAAAAAA % (2 * top), 0x0123456789ABCDEF % (2 * top)]
    return sorted({*pool, (1 << (bits // 2)) - 1, 1 << (bits // 2)})


AMOUNTS = [0, 1, 5, 8, 15, 16, 17, 23, 31, 32, 33, 40, 63, 64, 65, 127, 128, 255, 256, 257, 1 << 31]
AMOUNTS += [(1 << 32) - 1, (1 << 32) - 32, 288, 0x1F04]


def bit_edges(kind: str) -> list[int]:
    fraction_bits = exact.FORMATS[kind][1]
    hidden, top = 1 << fraction_bits, exact.infinity(kind)
    one = ((1 << (exact.FORMATS[kind][0] - 1)) - 1) << fraction_bits
    pool = [
        0,
        1,
        hidden - 1,
        hidden,
        one - 1,
        one,
        one + 1,
        one + hidden // 2,
        one + 4 * hidden + 3,
    ]
    pool += [one - hidden, one + fraction_bits * hidden, top - 1, top, top + 1, exact.nan(kind)]
    return pool + [x | 1 << (exact.width(kind) - 1) for x in pool]


def cases(*kinds: str, count: int = 200) -> list[tuple[int, ...]]:
    """Products of edge values, thinned if they are many, then random bits."""
    pools = []
    for kind in kinds:
        if kind == "amount":
            pools.append(AMOUNTS)
        elif kind == "pred":
            pools.append([0, 1])
        elif kind in exact.FORMATS:
            pools.append(bit_edges(kind))
        else:
            pools.append(integers(kind))
    rng = np.random.default_rng(SEED)
    size = math.prod(map(len, pools))
    if size <= 1000:
        rows = list(itertools.product(*pools))
    else:
        rows = [tuple(x[int(rng.integers(len(x)))] for x in pools) for _ in range(1000)]
    for _ in range(count):
        widths = (32 if x == "amount" else width(x) for x in kinds)
        row = tuple(int.from_bytes(rng.bytes(8), "little") & ((1 << w) - 1) for w in widths)
        rows.append(tuple(x & 63 if k == "amount" else x for x, k in zip(row, kinds, strict=True)))
    return rows


def signed(bits: int, kind: str) -> int:
    """The integer that the bits are in the type."""
    return bits - (1 << width(kind)) if kind[0] == "s" and bits >> (width(kind) - 1) else bits


def on_integers(function: Reference, *kinds: str) -> Reference:
    return lambda *bits: function(*(signed(x, k) for x, k in zip(bits, kinds, strict=True)))


U, S = ("u16", "u32", "u64"), ("s16", "s32", "s64")
B = ("b16", "b32", "b64")


# --- Integer arithmetic -------------------------------------------------------------------------
def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else -1


@pytest.mark.parametrize("kind", U + S)
def test_integer_arithmetic(kind: str) -> None:
    bits = width(kind)
    two: dict[str, Reference] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul.lo": lambda a, b: a * b,
        "mul.hi": lambda a, b: a * b >> bits,
        "div": truncated,
        "rem": lambda a, b: a - truncated(a, b) * b if b else -1,
        "min": min,
        "max": max,
    }
    for name, reference in two.items():
        check(f"{name}.{kind}", cases(kind, kind), on_integers(reference, kind, kind))
    three: dict[str, Reference] = {
        "mad.lo": lambda a, b, c: a * b + c,
        "mad.hi": lambda a, b, c: (a * b >> bits) + c,
        "sad": lambda a, b, c: c + abs(a - b),
    }
    for name, reference in three.items():
        check(f"{name}.{kind}", cases(kind, kind, kind), on_integers(reference, kind, kind, kind))


@pytest.mark.parametrize("kind", ["u16", "u32", "s16", "s32"])
def test_wide_products(kind: str) -> None:
    wide = f"{kind[0]}{2 * width(kind)}"
    check(f"mul.wide.{kind}", cases(kind, kind), on_integers(lambda a, b: a * b, kind, kind))
    check(
        f"mad.wide.{kind}",
        cases(kind, kind, wide),
        on_integers(lambda a, b, c: a * b + c, kind, kind, wide),
    )


@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_24_bit_products(kind: str) -> None:
    def product(a: int, b: int) -> int:
        low = [x & 0xFFFFFF for x in (a, b)]
        if kind == "s32":
            low = [x - (1 << 24) if x >> 23 else x for x in low]
        return low[0] * low[1]

    check(f"mul24.lo.{kind}", cases(kind, kind), product)
    check(f"mul24.hi.{kind}", cases(kind, kind), lambda a, b: product(a, b) >> 16)
    check(f"mad24.lo.{kind}", cases(kind, kind, kind), lambda a, b, c: product(a, b) + c)
    check(f"mad24.hi.{kind}", cases(kind, kind, kind), lambda a, b, c: (product(a, b) >> 16) + c)


@pytest.mark.parametrize("kind", S)
def test_abs_and_neg(kind: str) -> None:
    check(f"abs.{kind}", cases(kind), on_integers(abs, kind))
    check(f"neg.{kind}", cases(kind), on_integers(lambda a: -a, kind))


def clamp(value: int, kind: str) -> int:
    low = -(1 << (width(kind) - 1)) if kind[0] == "s" else 0
    return max(low, min(value, low + (1 << width(kind)) - 1))


def test_saturating_sums() -> None:
    for name, sign in (("add", 1), ("sub", -1)):
        check(
            f"{name}.sat.s32",
            cases("s32", "s32"),
            on_integers(lambda a, b, sign=sign: clamp(a + sign * b, "s32"), "s32", "s32"),
        )


@pytest.mark.parametrize("first, second", list(itertools.product(["u32", "s32"], repeat=2)))
def test_dot_products(first: str, second: str) -> None:
    def part(x: int, i: int, bits: int, kind: str) -> int:
        return signed(x >> (bits * i) & ((1 << bits) - 1), f"{kind[0]}{bits}")

    def four(a: int, b: int, c: int) -> int:
        return c + sum(part(a, i, 8, first) * part(b, i, 8, second) for i in range(4))

    rows = cases(first, second, "u32")
    check(f"dp4a.{first}.{second}", rows, four)
    for half, start in (("lo", 0), ("hi", 2)):

        def two(a: int, b: int, c: int, start: int = start) -> int:
            terms = (part(a, i, 16, first) * part(b, start + i, 8, second) for i in range(2))
            return c + sum(terms)

        check(f"dp2a.{half}.{first}.{second}", rows, two)
    both_unsigned = first == second == "u32"
    assert scalar(f"dp4a.{first}.{second}", 4).dst == ("u32" if both_unsigned else "s32",)


# --- Bits ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", (*B, "pred"))
def test_bitwise(kind: str) -> None:
    check(f"and.{kind}", cases(kind, kind), lambda a, b: a & b)
    check(f"or.{kind}", cases(kind, kind), lambda a, b: a | b)
    check(f"xor.{kind}", cases(kind, kind), lambda a, b: a ^ b)
    check(f"not.{kind}", cases(kind), lambda a: ~a)
    if kind != "pred":
        check(f"cnot.{kind}", cases(kind), lambda a: a == 0)


@pytest.mark.parametrize("kind", B)
def test_left_shift(kind: str) -> None:
    check(f"shl.{kind}", cases(kind, "amount"), lambda a, n: a << min(n, 64))


@pytest.mark.parametrize("kind", B + U + S)
def test_right_shift(kind: str) -> None:
    reference = on_integers(lambda a, n: a >> min(n, 64), kind, "u32")
    check(f"shr.{kind}", cases(kind, "amount"), reference)


@pytest.mark.parametrize("mode", ["wrap", "clamp"])
def test_funnel_shift(mode: str) -> None:
    def amount(c: int) -> int:
        return c & 31 if mode == "wrap" else min(c, 32)

    def left(a: int, b: int, c: int) -> int:
        return b << amount(c) | a >> (32 - amount(c))

    def right(a: int, b: int, c: int) -> int:
        return b << (32 - amount(c)) | a >> amount(c)

    check(f"shf.l.{mode}.b32", cases("b32", "b32", "amount"), left)
    check(f"shf.r.{mode}.b32", cases("b32", "b32", "amount"), right)


def in_a_byte(kind: str, amount: int) -> int:
    """Positions and lengths: the ISA's low byte for 32 bits; for 64, what an H200 does."""
    return amount & 0xFF if width(kind) == 32 else min(amount, 255)


@pytest.mark.parametrize("kind", ["u32", "u64", "s32", "s64"])
def test_bit_field_extract(kind: str) -> None:
    top = width(kind) - 1

    def reference(a: int, b: int, c: int) -> int:
        """The loop of PTX ISA, bfe."""
        position, length = in_a_byte(kind, b), in_a_byte(kind, c)
        sign = 0
        if kind[0] == "s" and length:
            sign = a >> min(position + length - 1, top) & 1
        result = 0
        for i in range(top + 1):
            inside = i < length and position + i <= top
            result |= (a >> (position + i) & 1 if inside else sign) << i
        return result

    check(f"bfe.{kind}", cases(kind, "amount", "amount", count=800), reference)


@pytest.mark.parametrize("kind", ["b32", "b64"])
def test_bit_field_insert(kind: str) -> None:
    top = width(kind) - 1

    def reference(a: int, b: int, c: int, d: int) -> int:
        """The loop of PTX ISA, bfi."""
        position, length = in_a_byte(kind, c), in_a_byte(kind, d)
        for i in range(length):
            if position + i <= top:
                b = b & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
        return b

    check(f"bfi.{kind}", cases(kind, kind, "amount", "amount", count=800), reference)


@pytest.mark.parametrize("kind", ["u32", "u64", "s32", "s64"])
def test_find_highest_bit(kind: str) -> None:
    def position(a: int) -> int:
        return (~a if a < 0 else a).bit_length() - 1

    def amount(a: int) -> int:
        return width(kind) - 1 - position(a) if position(a) >= 0 else -1

    rows = [*cases(kind), *((1 << i,) for i in range(width(kind)))]
    check(f"bfind.{kind}", rows, on_integers(position, kind))
    check(f"bfind.shiftamt.{kind}", rows, on_integers(amount, kind))


@pytest.mark.parametrize("kind", ["b32", "b64"])
def test_count_and_reverse_bits(kind: str) -> None:
    bits = width(kind)
    rows = [
        *cases(kind),
        *((1 << i,) for i in range(bits)),
        *(((1 << i) - 1,) for i in range(bits)),
    ]
    check(f"clz.{kind}", rows, lambda a: bits - a.bit_length())
    check(f"popc.{kind}", rows, lambda a: a.bit_count())
    check(f"brev.{kind}", rows, lambda a: int(f"{a:0{bits}b}"[::-1], 2))


def test_permute_bytes() -> None:
    def data(a: int, b: int) -> list[int]:
        return [*a.to_bytes(4, "little"), *b.to_bytes(4, "little")]

    def default(a: int, b: int, c: int) -> int:
        result = 0
        for i in range(4):
            selector = c >> (4 * i) & 15
            byte = data(a, b)[selector & 7]
            if selector & 8:
                byte = 0xFF if byte & 0x80 else 0
            result |= byte << (8 * i)
        return result

    def indices(mode: str, c: int) -> list[int]:
        """Returns the indices into the bytes of {b, a} that prmt puts into bytes 0 to 3."""
        n = c & 3
        return {
            "f4e": [n, n + 1, n + 2, n + 3],
            "b4e": [n, (n - 1) % 8, (n - 2) % 8, (n - 3) % 8],
            "rc8": [n] * 4,
            "ecl": [max(i, n) for i in range(4)],
            "ecr": [min(i, n) for i in range(4)],
            "rc16": [2 * (n & 1), 2 * (n & 1) + 1] * 2,
        }[mode]

    rows = cases("b32", "b32", "b32", count=1000)
    check("prmt.b32", rows, default)
    for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):

        def special(a: int, b: int, c: int, mode: str = mode) -> int:
            chosen = bytes(data(a, b)[i] for i in indices(mode, c))
            return int.from_bytes(chosen, "little")

        check(f"prmt.b32.{mode}", [*rows, *((x, y, 1) for x, y, _ in rows[:50])], special)


def lop3(a: int, b: int, c: int, table: int) -> int:
    result = 0
    for i in range(32):
        index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)
        result |= (table >> index & 1) << i
    return result


@for_each("table", range(256))
def test_logic_of_three(table: int) -> None:
    rows = [(0xF0, 0xCC, 0xAA), (0x12345678, 0x9ABCDEF0, 0x0F1E2D3C), (0, 0xFFFFFFFF, 1)]
    check("lop3.b32", [(*x, table) for x in rows], lop3)
    expected = lambda a, b, c, t, q: (lop3(a, b, c, t), lop3(a, b, c, t) != 0 or q)  # noqa: E731
    predicated = [(*x, table, q) for x in [*rows, (0, 0, 0)] for q in (0, 1)]
    check("lop3.or.b32", predicated, expected, pair=True)
    assert lop3(0xF0, 0xCC, 0xAA, table) & 0xFF == table


def test_logic_table_must_be_a_constant() -> None:
    good = instruction("lop3.b32", 5)
    assert lookup(good) is not None
    for operand in (Register("%r4"), Immediate(256), Immediate(-1)):
        with pytest.raises(PtxError, match="constant from 0 to 255"):
            lookup(Instruction("lop3", ("b32",), (*good.operands[:4], operand)))


# --- Comparisons and selection ------------------------------------------------------------------
COMPARE: dict[str, Reference] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
COMBINE: dict[str, Reference] = {
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "xor": lambda a, b: a != b,
}


def comparisons(kind: str) -> dict[str, Reference]:
    """Returns the reference comparisons of a type by name, on bit patterns."""
    if kind not in exact.FORMATS:
        names = ["eq", "ne"] if kind[0] == "b" else list(COMPARE)
        found = {x: on_integers(COMPARE[x], kind, kind) for x in names}
        if kind[0] == "u":
            found |= {x: COMPARE[y] for x, y in UNSIGNED.items()}
        return found

    def compare(function: Reference, unordered: bool) -> Reference:
        def apply(a: int, b: int) -> bool:
            x, y = exact.decode(a, kind), exact.decode(b, kind)
            return unordered if x is None or y is None else bool(function(x, y))

        return apply

    found = {x: compare(f, False) for x, f in COMPARE.items()}
    found |= {f"{x}u": compare(f, True) for x, f in COMPARE.items()}
    found["num"] = compare(lambda x, y: True, False)
    found["nan"] = compare(lambda x, y: False, True)
    return found


@pytest.mark.parametrize("kind", (*B, *U, *S, "f16", "bf16", "f32", "f64"))
def test_setp(kind: str) -> None:
    rows = cases(kind, kind)
    for name, reference in comparisons(kind).items():
        check(f"setp.{name}.{kind}", rows, reference)


@pytest.mark.parametrize("kind", ["b32", "s32", "u64", "f32"])
def test_setp_with_a_third_operand_and_two_results(kind: str) -> None:
    rows = cases(kind, kind, "pred")
    for (name, reference), combine in itertools.product(comparisons(kind).items(), COMBINE):

        def both(a: int, b: int, c: int, f: Reference = reference, by: str = combine) -> Any:
            return COMBINE[by](bool(f(a, b)), bool(c)), COMBINE[by](not f(a, b), bool(c))

        check(f"setp.{name}.{combine}.{kind}", rows[::3], lambda *x, f=both: f(*x)[0])
        check(f"setp.{name}.{combine}.{kind}", rows[::3], both, pair=True)
    for name, reference in comparisons(kind).items():

        def two(a: int, b: int, f: Reference = reference) -> Any:
            return f(a, b), not f(a, b)

        check(f"setp.{name}.{kind}", cases(kind, kind), two, pair=True)


@pytest.mark.parametrize("kind", ["u32", "s64", "f32", "f64"])
def test_set(kind: str) -> None:
    for name, reference in comparisons(kind).items():
        for result, yes in (("u32", 0xFFFFFFFF), ("s32", 0xFFFFFFFF), ("f32", 0x3F800000)):
            check(
                f"set.{name}.{result}.{kind}",
                cases(kind, kind, count=50),
                lambda a, b, f=reference, yes=yes: yes if f(a, b) else 0,
            )
        check(
            f"set.{name}.and.u32.{kind}",
            cases(kind, kind, "pred", count=50),
            lambda a, b, c, f=reference: 0xFFFFFFFF if f(a, b) and c else 0,
        )


@pytest.mark.parametrize("kind", (*B, *U, *S, "f32", "f64"))
def test_selection_and_moves(kind: str) -> None:
    check(f"selp.{kind}", cases(kind, kind, "pred"), lambda a, b, c: a if c else b)
    check(f"mov.{kind}", cases(kind), lambda a: a)
    by_sign = on_integers(lambda c: c >= 0, "s32")
    check(f"slct.{kind}.s32", cases(kind, kind, "s32"), lambda a, b, c: a if by_sign(c) else b)

    def by_float(a: int, b: int, c: int) -> int:
        value = exact.decode(c, "f32")
        return a if value is not None and value >= 0 else b

    check(f"slct.{kind}.f32", cases(kind, kind, "f32"), by_float)


def test_move_of_predicates() -> None:
    check("mov.pred", cases("pred"), lambda a: a)


def test_moves_and_selections_keep_the_bits_of_nan() -> None:
    bits = np.array([0x7F800001, 0xFFC12345], np.uint32)
    value = bits.view(np.float32)
    no = np.zeros(1, np.bool_)
    assert scalar("mov.f32", 2).function(value).tobytes() == bits.tobytes()
    assert scalar("selp.f32", 4).function(value, value, no).tobytes() == bits.tobytes()


# --- Floats -------------------------------------------------------------------------------------
ARITHMETIC = [
    (operation, kind, mode)
    for operation in ("add", "sub", "mul", "fma", "div", "sqrt", "rcp", "mad")
    for kind in exact.FORMATS
    for mode in ("rn", "rz", "rm", "rp")
    if kind in ("f32", "f64") or (mode == "rn" and operation in ("add", "sub", "mul", "fma"))
]


@pytest.mark.parametrize("operation, kind, mode", ARITHMETIC)
def test_float_arithmetic(operation: str, kind: str, mode: str) -> None:
    count = {"fma": 3, "mad": 3, "sqrt": 1, "rcp": 1}.get(operation, 2)
    same = "fma" if operation == "mad" else operation
    check(
        f"{operation}.{mode}.{kind}",
        cases(*[kind] * count, count=100),
        lambda *bits: exact.operate(same, kind, mode, *bits),
    )


def on_halves(function: Reference) -> Reference:
    def apply(*bits: int) -> int:
        low = function(*(x & 0xFFFF for x in bits))
        return function(*(x >> 16 for x in bits)) << 16 | low

    return apply


def pairs(kind: str, count: int) -> list[tuple[int, ...]]:
    rows = cases(*[kind] * count)
    return [
        tuple(x << 16 | y for x, y in zip(a, b, strict=True)) for a, b in itertools.pairwise(rows)
    ]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma"])
def test_packed_arithmetic(operation: str, kind: str) -> None:
    check(
        f"{operation}.rn.{kind}x2",
        pairs(kind, 3 if operation == "fma" else 2),
        on_halves(lambda *bits: exact.operate(operation, kind, "rn", *bits)),
    )


def test_pairs_of_e4m3_are_widened() -> None:
    """cvt.rn.f16x2.e4m3x2 of every byte in either half; the reference decodes sign, exponent and
    fraction (OCP 8-bit floating point specification).
    """

    def widened(byte: int) -> int:
        raised, low, sign = byte >> 3 & 15, byte & 7, -1 if byte >> 7 else 1
        if byte & 127 == 127:
            return exact.nan("f16")
        if byte & 127 == 0:
            return byte << 8
        size = Fraction(low + 8 * (raised > 0), 8) * Fraction(2) ** (max(raised, 1) - 7)
        return exact.encode(sign * size, "f16")

    rows = [(low | (low * 7 + 3) % 256 << 8,) for low in range(256)]
    check("cvt.rn.f16x2.e4m3x2", rows, lambda x: widened(x >> 8) << 16 | widened(x & 255))


def saturated(bits: int, kind: str) -> int:
    value = exact.decode(bits, kind)
    if value is None or value <= 0:
        return 0
    return exact.encode(min(Fraction(1), value), kind)


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma"])
def test_saturated_arithmetic(operation: str) -> None:
    count = 3 if operation == "fma" else 2
    for kind in ("f32", "f16"):

        def reference(*bits: int, kind: str = kind) -> int:
            return saturated(exact.operate(operation, kind, "rn", *bits), kind)

        check(f"{operation}.rn.sat.{kind}", cases(*[kind] * count), reference)
    check(f"{operation}.rn.sat.f16x2", pairs("f16", count), on_halves(reference))


def extreme(name: str, kind: str, with_nan: bool) -> Reference:
    def apply(a: int, b: int) -> int:
        x, y = exact.decode(a, kind), exact.decode(b, kind)
        if x is None or y is None:
            if with_nan:
                return exact.nan(kind)
            return b if x is None else a
        keys = [(z, not exact.negative(z)) for z in (x, y)]
        first = keys[0] <= keys[1] if name == "min" else keys[0] >= keys[1]
        return a if first else b

    return apply


@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_float_extremes(name: str, kind: str) -> None:
    check(f"{name}.{kind}", cases(kind, kind), extreme(name, kind, False))
    if kind != "f64":
        check(f"{name}.NaN.{kind}", cases(kind, kind), extreme(name, kind, True))
    if kind in ("f16", "bf16"):
        check(f"{name}.{kind}x2", pairs(kind, 2), on_halves(extreme(name, kind, False)))
        check(f"{name}.NaN.{kind}x2", pairs(kind, 2), on_halves(extreme(name, kind, True)))


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_signs(kind: str) -> None:
    sign = 1 << (exact.width(kind) - 1)
    check(f"abs.{kind}", cases(kind), lambda a: a & ~sign)
    check(f"neg.{kind}", cases(kind), lambda a: a ^ sign)
    if kind in ("f32", "f64"):
        check(f"copysign.{kind}", cases(kind, kind), lambda a, b: b & ~sign | a & sign)
    else:
        check(f"abs.{kind}x2", pairs(kind, 1), on_halves(lambda a: a & ~sign))
        check(f"neg.{kind}x2", pairs(kind, 1), on_halves(lambda a: a ^ sign))


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_testp(kind: str) -> None:
    hidden = 1 << exact.FORMATS[kind][1]
    sign = 1 << (exact.width(kind) - 1)
    top = exact.infinity(kind)
    tests: dict[str, Reference] = {
        "finite": lambda m: m < top,
        "infinite": lambda m: m == top,
        "number": lambda m: m <= top,
        "notanumber": lambda m: m > top,
        "normal": lambda m: m == 0 or hidden <= m < top,
        "subnormal": lambda m: 0 < m < hidden,
    }
    for name, test in tests.items():
        check(f"testp.{name}.{kind}", cases(kind), lambda a, test=test: test(a & ~sign))


# --- Conversions --------------------------------------------------------------------------------
INTEGERS = [f"{sign}{bits}" for sign in "us" for bits in (8, 16, 32, 64)]
FLOATS = list(exact.FORMATS)
MIXED = [
    x for x in itertools.product(INTEGERS, FLOATS) if x not in (("u8", "bf16"), ("s8", "bf16"))
]


@pytest.mark.parametrize("source", INTEGERS)
def test_integers_to_integers(source: str) -> None:
    for target in INTEGERS:
        rows = cases(source)
        check(f"cvt.{target}.{source}", rows, on_integers(lambda a: a, source))
        ends = (
            1 << (width(source) - 1),
            (1 << (width(source) - 1)) - 1,
            (1 << width(source)) - 1,
            0,
        )
        if all(clamp(x, target) == x for x in (signed(y, source) for y in ends)):
            with pytest.raises(PtxError, match="does nothing"):
                lookup(instruction(f"cvt.sat.{target}.{source}", 2))
            continue
        clamped = on_integers(lambda a, target=target: clamp(a, target), source)
        check(f"cvt.sat.{target}.{source}", rows, clamped)


@pytest.mark.parametrize("source, target", MIXED)
def test_integers_to_floats(source: str, target: str) -> None:
    # Midpoints of the target's numbers, and their neighbours.
    precision = exact.FORMATS[target][1] + 1
    rows = cases(source)
    for exponent in range(precision, width(source)):
        half = 1 << (exponent - precision)
        for units in ((1 << precision) + 1, (1 << precision) + 3, (1 << (precision + 1)) - 1):
            rows += [((units * half + x) & ((1 << width(source)) - 1),) for x in (-1, 0, 1)]
    for mode in ("rn", "rz", "rm", "rp"):

        def reference(a: int, mode: str = mode) -> int:
            return exact.encode(Fraction(a) if a else 0.0, target, mode)

        check(f"cvt.{mode}.{target}.{source}", rows, on_integers(reference, source))


def float_cases(source: str) -> list[tuple[int, ...]]:
    """Edges, random bits, and numbers about the limits of integers and about halves."""
    rows = cases(source)
    for bits in (0, 1, 7, 8, 15, 16, 31, 32, 63, 64):
        for offset in (Fraction(-3, 2), -1, Fraction(-1, 2), 0, Fraction(1, 2), 1, Fraction(3, 2)):
            for sign in (1, -1):
                value = sign * (Fraction(2) ** bits + offset)
                near = exact.encode(value if value else 0.0, source)
                rows += [(near,), (near - 1,), (near + 1,)]
    return [(x & ((1 << exact.width(source)) - 1),) for (x,) in rows]


@pytest.mark.parametrize("target, source", MIXED)
def test_floats_to_integers(source: str, target: str) -> None:
    for mode in ("rn", "rz", "rm", "rp"):

        def reference(a: int, mode: str = mode) -> int:
            value = exact.decode(a, source)
            if value is None:
                return 1 << (width(target) - 1) if source == "f64" or target[1:] == "64" else 0
            if value in (math.inf, -math.inf):
                return clamp(int(math.copysign(1 << 70, value)), target)
            return clamp(exact.round_integer(Fraction(value), mode), target)

        check(f"cvt.{mode}i.{target}.{source}", float_cases(source), reference)
        if source != "bf16":
            check(f"cvt.{mode}i.sat.{target}.{source}", float_cases(source), reference)


def midpoints(source: str, target: str) -> list[tuple[int, ...]]:
    """Numbers of the source on midpoints of the target, and beside them."""
    shift = exact.FORMATS[source][1] - exact.FORMATS[target][1]
    form = exact.FORMATS[target]
    rows = []
    smallest = 2 - (1 << (form[0] - 1))
    for exponent in (smallest - form[1] - 1, smallest - 3, smallest, -1, 0, 3, -smallest + 1):
        for units in (1, 2, 3, 5, (1 << (form[1] + 2)) - 1, (1 << form[1]) + 1):
            value = Fraction(units) * Fraction(2) ** (exponent - (1 if shift <= 0 else 0))
            near = exact.encode(value, source)
            rows += [(near - 1,), (near,), (near + 1,)]
    return [(x | s << (exact.width(source) - 1),) for (x,) in rows if x > 0 for s in (0, 1)]


@pytest.mark.parametrize("source, target", list(itertools.permutations(FLOATS, 2)))
def test_floats_to_floats(source: str, target: str) -> None:
    rows = cases(source) + midpoints(source, target)
    narrower = exact.width(target) <= exact.width(source)
    for mode in ("rn", "rz", "rm", "rp") if narrower else ("",):

        def reference(a: int, mode: str = mode) -> int:
            return exact.encode(exact.decode(a, source), target, mode or "rn")

        middle = f".{mode}" if mode else ""
        check(f"cvt{middle}.{target}.{source}", rows, reference)
        if "bf16" not in (source, target):
            clamped = lambda a, f=reference: saturated(f(a), target)  # noqa: E731
            check(f"cvt{middle}.sat.{target}.{source}", rows, clamped)


@pytest.mark.parametrize("kind", FLOATS)
def test_floats_to_integral_floats(kind: str) -> None:
    check(f"cvt.{kind}.{kind}", cases(kind), lambda a: a)
    for mode in ("rn", "rz", "rm", "rp"):

        def reference(a: int, mode: str = mode) -> int:
            value = exact.decode(a, kind)
            if value is None or isinstance(value, float):
                return a
            whole = exact.round_integer(value, mode)
            return exact.encode(Fraction(whole) or math.copysign(0.0, value), kind)

        check(f"cvt.{mode}i.{kind}.{kind}", float_cases(kind), reference)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("mode", ["rn", "rz"])
def test_packed_conversion(kind: str, mode: str) -> None:
    def reference(high: int, low: int) -> int:
        halves = [exact.encode(exact.decode(x, "f32"), kind, mode) for x in (high, low)]
        return halves[0] << 16 | halves[1]

    rows = cases("f32", "f32")
    rows += [(x, y) for ((x,), (y,)) in itertools.pairwise(midpoints("f32", kind))]
    check(f"cvt.{mode}.{kind}x2.f32", rows, reference)


# --- Constants ----------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["b8", "s8", "u8", *B, *U, *S])
def test_integer_constants(kind: str) -> None:
    bits = width(kind)
    for value in (0, 1, -1, -(1 << (bits - 1)), (1 << bits) - 1, 1 << (bits - 1)):
        made = constant(Immediate(value), kind)
        assert made.shape == (1,)
        assert bits_of(made, kind) == [value & ((1 << bits) - 1)]
    for value in (1 << bits, -(1 << (bits - 1)) - 1):
        with pytest.raises(PtxError, match=rf"{value} does not fit \.{kind}"):
            constant(Immediate(value), kind)


def f64_bits(value: float) -> int:
    return int(np.float64(value).view(np.uint64))


def test_float_constants() -> None:
    single = Immediate(1.5, 0x3FC00000, "f32")
    assert bits_of(constant(single, "f32"), "f32") == [0x3FC00000]
    assert bits_of(constant(single, "b32"), "b32") == [0x3FC00000]
    payload = constant(Immediate(math.nan, 0x7FA00001, "f32"), "f32")
    assert payload.view(np.uint32)[0] == 0x7FA00001
    double = Immediate(0.1, f64_bits(0.1), "f64")
    assert constant(double, "f64")[0] == 0.1
    assert constant(double, "f32")[0] == np.float32(0.1)
    assert bits_of(constant(double, "b64"), "b64") == [f64_bits(0.1)]
    assert bits_of(constant(double, "f16"), "f16") == [0x2E66]
    assert bits_of(constant(double, "bf16"), "bf16") == [0x3DCD]
    large = Immediate(1e300, f64_bits(1e300), "f64")
    assert np.isinf(constant(large, "f32")[0])


def test_predicate_constants() -> None:
    assert [bool(constant(Immediate(x), "pred")[0]) for x in (0, 1, -1)] == [False, True, True]


@pytest.mark.parametrize(
    "immediate, kind",
    [
        (Immediate(2), "pred"),
        (Immediate(1), "f32"),
        (Immediate(1), "f64"),
        (Immediate(1), "f16x2"),
        (Immediate(1.5, 0x3FC00000, "f32"), "f64"),
        (Immediate(1.5, 0x3FC00000, "f32"), "u32"),
        (Immediate(1.5, 0x3FC00000, "f32"), "b64"),
        (Immediate(1.5, f64_bits(1.5), "f64"), "b32"),
        (Immediate(1.5, f64_bits(1.5), "f64"), "s32"),
        (Immediate(1.0, 0x3F800000, "f32"), "pred"),
    ],
)
def test_constants_of_the_wrong_type(immediate: Immediate, kind: str) -> None:
    with pytest.raises(PtxError):
        constant(immediate, kind)


# --- Refusals -----------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["ld.global.f32", "bra.uni", "shfl.sync.bfly.b32", "mma.sync"])
def test_other_opcodes_are_none(name: str) -> None:
    assert lookup(instruction(name, 2)) is None


@pytest.mark.parametrize(
    "name, operands, why",
    [
        ("add.ftz.f32", 3, "subnormals"),
        ("fma.rn.ftz.f32", 4, "subnormals"),
        ("setp.lt.ftz.f32", 3, "subnormals"),
        ("cvt.rn.ftz.f32.f64", 2, "subnormals"),
        ("div.approx.f32", 3, "approximation"),
        ("div.full.f32", 3, "approximation"),
        ("sqrt.approx.f32", 2, "approximation"),
        ("ex2.approx.f32", 2, "approximation"),
        ("ex2.approx.ftz.f16", 2, "subnormals"),
        ("tanh.approx.f32", 2, "approximation"),
        ("add.f32", 3, "write .rn"),
        ("mul.f64", 3, "write .rn"),
        ("fma.f32", 4, "rounding mode"),
        ("fma.rz.f16", 4, "only rounded by .rn"),
        ("add.rn.s32", 3, "takes no"),
        ("mul.s32", 3, "needs .lo, .hi or .wide"),
        ("mul.wide.u64", 3, "u16"),
        ("add.b32", 3, "got .b32"),
        ("add.cc.u32", 3, "got .cc"),
        ("addc.u32", 3, "not supported"),
        ("fns.b32", 4, "not supported"),
        ("and.s32", 3, "got .s32"),
        ("shl.s32", 3, "got .s32"),
        ("setp.lt.b32", 3, "only compared by"),
        ("setp.lo.s32", 3, "does not compare"),
        ("setp.equ.u32", 3, "does not compare"),
        ("setp.hi.f32", 3, "does not compare"),
        ("setp.lt.f16x2", 3, "got .f16x2"),
        ("cvt.s32.f32", 2, ".rni"),
        ("cvt.rn.s32.f32", 2, ".rni"),
        ("cvt.f32.s32", 2, "rounding mode"),
        ("cvt.f16.f32", 2, "rounding mode"),
        ("cvt.rn.f64.f32", 2, "no rounding mode"),
        ("cvt.rzi.s32.u32", 2, "no rounding mode"),
        ("cvt.rna.tf32.f32", 2, "got .rna"),
        ("cvt.rn.satfinite.e4m3x2.f32", 3, "got .satfinite"),
        ("cvt.rn.f16x2.e5m2x2", 2, "got .e5m2x2"),
        ("cvt.rz.f16x2.e4m3x2", 2, "two numbers of .e4m3 become .f16x2 by .rn"),
        ("cvt.rn.relu.bf16x2.f32", 3, "got .relu"),
        ("cvt.rm.bf16x2.f32", 3, ".rn or .rz"),
        ("cvt.pack.sat.s8.s32.b32", 4, "got .pack"),
        ("cvt.rn.bf16.s8", 2, "no conversion"),
        ("cvt.rzi.u8.bf16", 2, "no conversion"),
        ("cvt.sat.f32.bf16", 2, ".sat is not"),
        ("min.relu.s32", 3, "got .relu"),
        ("min.NaN.f64", 3, "f64"),
        ("max.xorsign.abs.f32", 3, "got .xorsign"),
        ("add.u16x2", 3, "got .u16x2"),
        ("shf.l.wrap.u32", 4, "got .u32"),
        ("prmt.b32.xyz", 4, ".xyz"),
        ("and.b32", 4, "got 4 operands, takes 3"),
        ("mov.b128", 2, "got .b128"),
    ],
)
def test_refusals_name_the_statement(name: str, operands: int, why: str) -> None:
    with pytest.raises(PtxError) as caught:
        lookup(instruction(name, operands))
    assert why in str(caught.value)
    assert (caught.value.line, caught.value.text) == (7, name)


def test_pairs_of_destinations_belong_to_few() -> None:
    with pytest.raises(PtxError, match="one destination"):
        lookup(instruction("add.s32", 3, pair=True))
    with pytest.raises(PtxError, match="pair"):
        lookup(instruction("lop3.or.b32", 6))


def test_lookups_are_kept() -> None:
    assert lookup(instruction("xor.b64", 3)) is lookup(instruction("xor.b64", 3))
    assert lookup(instruction("setp.eq.s32", 3)) is not lookup(
        instruction("setp.eq.s32", 3, pair=True)
    )
