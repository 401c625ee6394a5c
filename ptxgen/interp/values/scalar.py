"""Scalar instructions of PTX as functions on NumPy arrays, one element per lane.

:func:`lookup` returns the :class:`Scalar` of an instruction: the PTX types of its destinations and
sources, and the function between them. Arrays have the dtypes of :data:`STORAGE`; :func:`constant`
converts immediates. Operands are contiguous arrays of shape (L,) or (1,), in any mix; a result has
shape (L,), or (1,) if it is equal in all lanes. A result may share memory with an operand, so
neither may be written to. Under ``np.errstate(all="ignore")`` no operand values raise or warn.

Where PTX ISA 9.0 leaves a result open, it is:

- of an integer quotient or remainder by zero: all bits set;
- of a NaN: an arbitrary payload and sign; mov, selp, abs, neg and copysign keep the bits, and
  conversions to f16 and bf16 give 0x7FFF, as GPUs do;
- of ``.sat`` for -0: +0.

Refused, as no document specifies the bits: ``.approx`` and ``.full``, and add, sub and mul of
floats without a rounding mode, which the assembler may fuse. Refused, as subnormals are kept here:
``.ftz``. The one exception is ``ex2.approx.ftz.f32`` (:mod:`ptxgen.numerics.ex2`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptxgen.errors import PtxError
from ptxgen.interp.text.ptx import Immediate, Instruction, Pair
from ptxgen.interp.values import floats
from ptxgen.numerics.weight_format import E4M3
from ptxgen.oracle.ex2 import ex2

Array: TypeAlias = NDArray[Any]
Function: TypeAlias = Callable[..., Any]

STORAGE: dict[str, np.dtype[Any]] = {
    **{f"b{bits}": np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(np.uint16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "f16x2": np.dtype(np.uint32),
    "bf16x2": np.dtype(np.uint32),
    "pred": np.dtype(np.bool_),
}
"""NumPy dtype of each PTX type, one element per lane; bf16 and packed types are stored as bits."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """An instruction as a function: ``dst`` and ``src`` are the PTX types of its destinations and
    sources, in the order of the text.

    ``function`` takes an array for each source, and returns an array; a tuple for two destinations.
    """

    dst: tuple[str, ...]
    src: tuple[str, ...]
    function: Function


# --- Immediates ---------------------------------------------------------------------------------
def constant(immediate: Immediate, kind: str) -> Array:
    """Converts an immediate to a one-element array of type ``kind``; raises PtxError if it does not
    fit.

    An integer may be signed or unsigned: -1 and 4294967295 are the same ``u32``. A literal with a
    decimal point is an f64 and is rounded to the type; ``0f...`` and ``0d...`` are the bits of f32
    and f64, and of untyped operands of their width. For predicates 0 is false, 1 and -1 are true.
    """
    dtype = STORAGE[kind]
    value = immediate.value
    if kind == "pred":
        if immediate.type != "int" or value not in (-1, 0, 1):
            raise PtxError(f"{value!r} is no constant predicate; 0, 1 and -1 are")
        return np.array([bool(value)])
    if kind in floats.FORMATS:
        if immediate.type == "int" or (immediate.type == "f32" and kind != "f32"):
            raise PtxError(f"{_literal(immediate)} is no constant of type .{kind}")
        if immediate.type == "f32":
            return np.array([immediate.bits], np.uint32).view(np.float32)
        return floats.narrow(_f64(immediate), kind)
    if immediate.type != "int":
        bits = (
            immediate.bits if immediate.type == "f32" else int(_f64(immediate).view(np.uint64)[0])
        )
        if kind != ("b32" if immediate.type == "f32" else "b64") or bits is None:
            raise PtxError(f"{_literal(immediate)} is no constant of type .{kind}")
        return np.array([bits], dtype)
    if kind in ("f16x2", "bf16x2"):
        raise PtxError(f"an operand of type .{kind} takes no constant; put it into a register")
    width = 8 * dtype.itemsize
    if not isinstance(value, int) or not -(1 << (width - 1)) <= value < 1 << width:
        low, high = -(1 << (width - 1)), (1 << width) - 1
        raise PtxError(f"{value!r} does not fit .{kind}, which takes {low} to {high}")
    return np.array([value & ((1 << width) - 1)], f"u{dtype.itemsize}").view(dtype)


def _f64(immediate: Immediate) -> floats.F64:
    with np.errstate(all="ignore"):
        if immediate.bits is not None:
            return np.array([immediate.bits], np.uint64).view(np.float64)
        return np.array([immediate.value], np.float64)


def _literal(immediate: Immediate) -> str:
    if immediate.type == "f32":
        return f"0f{immediate.bits:08X}"
    return repr(immediate.value)


# --- Lookup -------------------------------------------------------------------------------------
_Key: TypeAlias = tuple[str, tuple[str, ...], int, bool]
_found: dict[_Key, Scalar] = {}


def lookup(instruction: Instruction) -> Scalar | None:
    """Returns a scalar instruction as a function; None if the opcode is not scalar.

    Raises PtxError if a type, modifier or operand count is outside the subset. Of ``mov`` only the
    form between registers is handled.
    """
    operands = instruction.operands
    key = (
        instruction.opcode,
        instruction.modifiers,
        len(operands),
        bool(operands) and isinstance(operands[0], Pair),
    )
    found = _found.get(key)
    if found is None:
        build = _BUILDERS.get(instruction.opcode)
        if build is None:
            return None
        form = _Modifiers(instruction)
        found = build(form)
        form.check(found)
        _found[key] = found
    if instruction.opcode == "lop3":
        table = operands[4]
        if not isinstance(table, Immediate) or not 0 <= table.value <= 255:
            _refuse(instruction, "the table of lop3 is a constant from 0 to 255")
    return found


def _refuse(instruction: Instruction, why: str) -> NoReturn:
    raise PtxError(
        f"{instruction.name}: {why}", line=instruction.line, text=instruction.text
    ) from None


class _Modifiers:
    """Reader of an instruction's modifiers, from left to right."""

    def __init__(self, instruction: Instruction) -> None:
        self.instruction = instruction
        self.opcode = instruction.opcode
        self.rest = list(instruction.modifiers)
        self.pair = bool(instruction.operands) and isinstance(instruction.operands[0], Pair)

    def take(self, *choices: str) -> str | None:
        """Consumes and returns the next modifier if it is one of ``choices``; else returns None."""
        return self.rest.pop(0) if self.rest and self.rest[0] in choices else None

    def need(self, choices: Iterable[str]) -> str:
        """Consumes and returns the next modifier; raises PtxError if it is none of ``choices``."""
        choices = tuple(choices)
        found = self.take(*choices)
        if found is None:
            got = f".{self.rest[0]}" if self.rest else "nothing"
            self.refuse(f"got {got} where one of .{', .'.join(choices)} is known")
        return found

    def refuse(self, why: str) -> NoReturn:
        """Raises PtxError for the instruction, with the reason ``why``."""
        if "ftz" in self.instruction.modifiers:
            why = "subnormals are kept here, .ftz is not supported (compile with -ftz=false)"
        elif {"approx", "full"} & {*self.instruction.modifiers}:
            why = "the bits of an approximation are documented nowhere; use a rounding mode"
        _refuse(self.instruction, why)

    def check(self, found: Scalar) -> None:
        """Raises PtxError if a modifier has not been consumed, or if the instruction's operands are
        not as many as the decoded function ``found`` takes and gives.
        """
        if self.rest:
            self.refuse(f".{self.rest[0]} is not supported here")
        pair = len(found.dst) == 2
        if pair != self.pair:
            self.refuse("takes a pair a|b as destination" if pair else "takes one destination")
        got, want = len(self.instruction.operands), len(found.src) + 1
        if got != want:
            self.refuse(f"got {got} operands, takes {want}")


# --- Types --------------------------------------------------------------------------------------
_U = ("u16", "u32", "u64")
_S = ("s16", "s32", "s64")
_B = ("b16", "b32", "b64")
_INT = _U + _S
_F = ("f32", "f64")
_HALF = ("f16", "bf16")
_PACKED = ("f16x2", "bf16x2")
_FLOAT = _F + _HALF
_TWICE = {"u16": "u32", "u32": "u64", "s16": "s32", "s32": "s64"}


def _bits(kind: str) -> int:
    return 8 * STORAGE[kind].itemsize


def _packed(kind: str, function: Function) -> Function:
    """Returns ``function`` applied to both 16-bit halves of packed operands."""
    half = STORAGE[kind[:-2]]

    def apply(*operands: Array) -> Array:
        pairs = (x.view(half).reshape(-1, 2) for x in operands)
        return np.ascontiguousarray(function(*pairs)).view(np.uint32).reshape(-1)

    return apply


def _identity(a: Array) -> Array:
    return a


# --- Integers -----------------------------------------------------------------------------------
def _clamped(function: Function, dtype: np.dtype[Any]) -> Function:
    """Returns ``function`` (add or sub of s32) with saturation, computed in s64."""
    info = np.iinfo(dtype)

    def apply(a: Array, b: Array) -> Array:
        wide: Array = function(a.astype(np.int64), b.astype(np.int64))
        return np.clip(wide, info.min, info.max).astype(dtype)

    return apply


def _high(kind: str) -> Function:
    """Returns the function for the upper half of a product (mul.hi)."""
    dtype = STORAGE[kind]
    if kind == "u64":
        return _high_u64
    if kind == "s64":
        return _high_s64
    wide = STORAGE[_TWICE[kind]]
    shift = wide.type(_bits(kind))
    return lambda a, b: (np.multiply(a, b, dtype=wide) >> shift).astype(dtype)


_32 = np.uint64(32)
_LOW32 = np.uint64(0xFFFFFFFF)


def _high_u64(a: Array, b: Array) -> Array:
    a0, a1, b0, b1 = a & _LOW32, a >> _32, b & _LOW32, b >> _32
    middle = a1 * b0 + ((a0 * b0) >> _32)  # below 2**64: (2**32 - 1)**2 + 2**32 - 1
    other = a0 * b1 + (middle & _LOW32)
    high: Array = a1 * b1 + (middle >> _32) + (other >> _32)
    return high


def _high_s64(a: Array, b: Array) -> Array:
    # As unsigned numbers a and b are larger by 2**64 where they are negative.
    high = _high_u64(a.view(np.uint64), b.view(np.uint64)).view(np.int64)
    result: Array = high - np.where(a < 0, b, 0) - np.where(b < 0, a, 0)
    return result


def _wide(kind: str) -> Function:
    wide = STORAGE[_TWICE[kind]]
    return lambda a, b: np.multiply(a, b, dtype=wide)


def _mul24(kind: str, high: bool) -> Function:
    """Returns a function for 24-bit products: their low 32 bits, or if ``high``, bits 16 to 47."""
    eight, wide = STORAGE[kind].type(8), STORAGE[_TWICE[kind]]
    shift = wide.type(16 if high else 0)

    def apply(a: Array, b: Array) -> Array:
        product: Array = np.multiply((a << eight) >> eight, (b << eight) >> eight, dtype=wide)
        shifted: Array = product >> shift
        return shifted.astype(STORAGE[kind])

    return apply


def _divide(kind: str) -> Function:
    ones = STORAGE[kind].type(-1 if kind[0] == "s" else (1 << _bits(kind)) - 1)
    zero = STORAGE[kind].type(0)

    def unsigned(a: Array, b: Array) -> Array:
        quotient: Array = a // b
        none = b == zero
        return np.where(none, ones, quotient) if np.count_nonzero(none) else quotient

    def signed(a: Array, b: Array) -> Array:
        floor: Array = a // b
        up = (floor < zero) & (floor * b != a)  # towards zero
        quotient: Array = np.where(b == zero, ones, floor + up.astype(floor.dtype))
        return quotient

    return signed if kind[0] == "s" else unsigned


def _remainder(kind: str) -> Function:
    ones = STORAGE[kind].type(-1 if kind[0] == "s" else (1 << _bits(kind)) - 1)
    zero = STORAGE[kind].type(0)
    return lambda a, b: np.where(b == zero, ones, np.fmod(a, b))


def _absolute_difference(a: Array, b: Array, c: Array) -> Array:
    result: Array = c + np.where(a < b, b - a, a - b)
    return result


# --- Bits ---------------------------------------------------------------------------------------
# NumPy shifts by the width or more as one would wish: everything out, signs in.
def _left(kind: str) -> Function:
    if kind == "b16":
        return lambda a, b: a << np.minimum(b, np.uint32(16)).astype(np.uint16)
    return np.left_shift


def _right(kind: str) -> Function:
    if kind[1:] == "16":
        small = STORAGE[kind]
        return lambda a, b: a >> np.minimum(b, np.uint32(16)).astype(small)
    if kind == "s32":  # amounts from 2**31 on are negative, and large as well
        return lambda a, b: a >> b.view(np.int32)
    return np.right_shift


def _funnel(left: bool, wrap: bool) -> Function:
    most = np.uint32(31 if wrap else 32)

    def apply(a: Array, b: Array, c: Array) -> Array:
        amount = c & most if wrap else np.minimum(c, most)
        both = (b.astype(np.uint64) << _32) | a
        return ((both << amount) >> _32 if left else both >> amount).astype(np.uint32)

    return apply


_BYTE = np.uint32(0xFF)


def _mask(length: Array, dtype: np.dtype[Any]) -> Array:
    """Returns a mask of the ``length`` lowest bits, or of all if ``dtype`` has fewer."""
    one = dtype.type(1)
    mask: Array = (one << length.astype(dtype)) - one
    return mask


def _byte(kind: str) -> Function:
    """Returns the function that reduces a bit field's position or length to 0 to 255.

    For 32-bit types it takes the low byte, as in the PTX ISA; for 64-bit types it clamps, as
    measured on an H200.
    """
    if _bits(kind) == 32:
        return lambda a: a & _BYTE
    return lambda a: np.minimum(a, _BYTE)


def _extract(kind: str) -> Function:
    dtype = STORAGE[kind]
    width = np.uint32(_bits(kind))
    byte = _byte(kind)

    def unsigned(a: Array, b: Array, c: Array) -> Array:
        field: Array = (a >> byte(b).astype(dtype)) & _mask(byte(c), dtype)
        return field

    def signed(a: Array, b: Array, c: Array) -> Array:
        # Above the highest bit come signs, as they do from an arithmetic shift.
        rest = (width - np.minimum(byte(c), width)).astype(dtype)
        field: Array = ((a >> byte(b).astype(dtype)) << rest) >> rest
        return field

    return unsigned if kind[0] == "u" else signed


def _insert(kind: str) -> Function:
    dtype = STORAGE[kind]
    byte = _byte(kind)

    def apply(a: Array, b: Array, c: Array, d: Array) -> Array:
        position = byte(c).astype(dtype)
        mask = _mask(byte(d), dtype) << position
        result: Array = b ^ (((a << position) ^ b) & mask)
        return result

    return apply


def _length(a: Array) -> Array:
    """Returns the position, from 1, of the highest bit set (int32); 0 if there is none."""
    if a.dtype.itemsize < 8:
        exponent: Array = np.frexp(a.astype(np.float64))[1]
        return exponent
    high = (a >> _32).astype(np.uint32)
    low = (a & _LOW32).astype(np.uint32)
    return np.where(high, _length(high) + 32, _length(low))


def _find(kind: str, amount: bool) -> Function:
    unsigned = STORAGE["u" + kind[1:]]
    top = np.uint32(_bits(kind) - 1)

    def apply(a: Array) -> Array:
        if kind[0] == "s":
            a = a ^ (a >> a.dtype.type(top))
        position = (_length(a.view(unsigned)) - 1).astype(np.uint32)
        if amount:
            position = np.where(position > top, position, top - position)
        return position

    return apply


def _leading_zeros(kind: str) -> Function:
    bits = _bits(kind)
    return lambda a: (bits - _length(a)).astype(np.uint32)


def _population(a: Array) -> Array:
    ones = np.unpackbits(a.view(np.uint8).reshape(len(a), -1), axis=1)
    count: Array = ones.sum(axis=1, dtype=np.uint32)
    return count


def _reverse(a: Array) -> Array:
    data: Array = a.view(np.uint8).reshape(len(a), -1)[:, ::-1]
    for shift, low in ((4, 0x0F), (2, 0x33), (1, 0x55)):
        data = ((data >> shift) & low) | ((data & low) << shift)
    return np.ascontiguousarray(data).view(a.dtype).reshape(-1)


_SELECTORS = {  # by mode, the selectors of the four bytes for c = 0, 1, 2, 3
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


def _permute(mode: str | None) -> Function:
    selectors = np.array(_SELECTORS[mode], np.uint64) if mode else None

    def apply(a: Array, b: Array, c: Array) -> Array:
        both = (b.astype(np.uint64) << _32) | a
        chosen = selectors[c & np.uint32(3)] if selectors is not None else c.astype(np.uint64)
        result: Array = np.zeros(1, np.uint64)
        for byte in range(4):
            nibble = chosen >> np.uint64(4 * byte)
            shift = (nibble & np.uint64(7)) << np.uint64(3)
            value = (both >> shift) & np.uint64(0xFF)
            # The selector's highest bit asks for eight copies of the byte's sign.
            sign = ((nibble >> np.uint64(3)) & (value >> np.uint64(7))) & np.uint64(1)
            replicated = nibble & np.uint64(8)
            value = np.where(replicated, sign * np.uint64(0xFF), value)
            result = result | (value << np.uint64(8 * byte))
        return result.astype(np.uint32)

    return apply


_ZERO32 = np.uint32(0)
_ONES32 = np.uint32(0xFFFFFFFF)
# By truth table: bit 2 * b + c of the index is the value for the bits b and c.
_TWO_INPUT: tuple[Function, ...] = (
    lambda b, c: _ZERO32,
    lambda b, c: ~(b | c),
    lambda b, c: ~b & c,
    lambda b, c: ~b,
    lambda b, c: b & ~c,
    lambda b, c: ~c,
    lambda b, c: b ^ c,
    lambda b, c: ~(b & c),
    lambda b, c: b & c,
    lambda b, c: ~(b ^ c),
    lambda b, c: c,
    lambda b, c: ~b | c,
    lambda b, c: b,
    lambda b, c: b | ~c,
    lambda b, c: b | c,
    lambda b, c: _ONES32,
)


def _logic(a: Array, b: Array, c: Array, table: Array) -> Array:
    """Computes lop3: for each bit of a, b and c, bit ``4 * a + 2 * b + c`` of ``table``."""
    index = int(table[0])
    clear, change = index & 15, (index >> 4) ^ (index & 15)
    # The operands' shape, also where the table ignores some of them.
    result: Array = _TWO_INPUT[clear](b, c) ^ (a & _TWO_INPUT[change](b, c))
    return result


def _dot(types: tuple[str, str], parts: int, start: int, dtype: np.dtype[Any]) -> Function:
    """Returns the function (a, b, c) of dp4a (``parts`` 4) or dp2a (``parts`` 2): c plus the dot
    product of the parts of a with as many bytes of b, from byte ``start`` on.

    ``types``: PTX types of a and b, signed or unsigned; ``dtype``: the dtype of c and of the
    result.
    """
    first = STORAGE[f"{types[0][0]}{32 // parts}"]
    second = STORAGE[f"{types[1][0]}8"]

    def apply(a: Array, b: Array, c: Array) -> Array:
        x = a.view(first).reshape(-1, parts)
        y = b.view(second).reshape(-1, 4)[:, start : start + parts]
        products = np.multiply(x, y, dtype=np.int64)
        result: Array = c + products.sum(axis=1).astype(dtype)
        return result

    return apply


# --- Comparisons --------------------------------------------------------------------------------
_UNORDERED = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt"}
_SAME = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_COMPARE: dict[str, Function] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_COMBINE: dict[str, Function] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def _comparison(form: _Modifiers) -> tuple[str, Callable[[str], Function]]:
    """Consumes a comparison modifier, such as ``lt``. Returns its name, and a function that takes
    the operands' PTX type and returns the comparison as a function of two arrays.
    """
    name = form.need((*_COMPARE, *_SAME, *_UNORDERED, "num", "nan"))

    def choose(kind: str) -> Function:
        if kind in _FLOAT:
            return _compare_floats(name, kind, form)
        if kind[0] == "b" and name not in ("eq", "ne"):
            form.refuse(f"untyped operands are only compared by .eq and .ne, got .{name}")
        if name in _SAME and kind[0] == "u":
            return _COMPARE[_SAME[name]]
        if name not in _COMPARE:
            form.refuse(f".{name} does not compare .{kind}")
        return _COMPARE[name]

    return name, choose


def _compare_floats(name: str, kind: str, form: _Modifiers) -> Function:
    numeric = floats.number(kind)
    if name in _SAME:
        form.refuse(f".{name} does not compare .{kind}")
    if name == "num":
        return lambda a, b: ~np.isnan(numeric(a)) & ~np.isnan(numeric(b))
    if name == "nan":
        return lambda a, b: np.isnan(numeric(a)) | np.isnan(numeric(b))
    compare = _COMPARE[_UNORDERED.get(name, name)]
    if kind != "bf16" and name in _COMPARE and name != "ne":
        return compare
    if name == "neu":
        return lambda a, b: np.not_equal(numeric(a), numeric(b))
    if name in ("ne", "equ"):  # NumPy's `!=` holds for NaN
        inverse = name == "equ"

        def ordered_unequal(a: Array, b: Array) -> Array:
            x, y = numeric(a), numeric(b)
            return ((x < y) | (x > y)) ^ inverse

        return ordered_unequal
    if name in _UNORDERED:
        return lambda a, b: ~compare(numeric(a), numeric(b))
    return lambda a, b: compare(numeric(a), numeric(b))


def _test(
    form: _Modifiers, types: Iterable[str], before: str | None = None
) -> tuple[str, int, Function]:
    """Decodes the modifiers of set and setp, from the comparison to the operands' type, which must
    be one of ``types``. Returns that type, the number of operands (3 with a boolean operator), and
    the function that computes the result.

    ``before``: a modifier that must stand in front of the type, the result's type of set.
    """
    _, choose = _comparison(form)
    combine = form.take(*_COMBINE)
    if before is not None:
        form.need((before,))
    kind = form.need(types)
    compare = choose(kind)
    if combine is None:
        return kind, 2, compare
    with_third = _COMBINE[combine]
    return kind, 3, lambda a, b, c: with_third(compare(a, b), c)


# --- Builders -----------------------------------------------------------------------------------
def _add(form: _Modifiers) -> Scalar:
    function: Function = np.add if form.opcode == "add" else np.subtract
    if form.take("sat"):
        kind = form.need(("s32",))
        function = _clamped(function, STORAGE[kind])
    elif form.rest and form.rest[0] in _INT:
        kind = form.need(_INT)
    else:
        return _arithmetic(form)
    return Scalar((kind,), (kind, kind), function)


def _arithmetic(form: _Modifiers) -> Scalar:
    """Returns add, sub, mul, fma, div, rcp or sqrt of floats (by ``form.opcode``) as a function,
    with the rounding mode, saturation and type in ``form``. Raises PtxError without a mode.
    """
    operation = form.opcode
    mode = form.take(*floats.MODES)
    saturate = form.take("sat") is not None
    if operation in ("add", "sub", "mul"):
        kind = form.need(_INT + _FLOAT + _PACKED)
        if kind in _INT:
            form.refuse("needs .lo, .hi or .wide" if operation == "mul" else "takes no mode")
    else:
        kind = form.need(_FLOAT + _PACKED if operation == "fma" else _F)
    if mode is None:
        form.refuse(
            "without a rounding mode it may be fused with others; write .rn (compile with "
            "-fmad=false)"
            if operation in ("add", "sub", "mul")
            else "needs a rounding mode"
        )
    if mode != "rn" and kind not in _F:
        form.refuse(f".{kind} is only rounded by .rn, got .{mode}")
    base = kind.removesuffix("x2")
    function = floats.function(operation, base, mode)
    if saturate:
        if base not in ("f32", "f16") or operation in ("div", "rcp", "sqrt"):
            form.refuse(f".sat is not supported for .{kind}")
        exact, clamp = function, floats.saturate(base)
        function = lambda *operands: clamp(exact(*operands))  # noqa: E731
    if kind in _PACKED:
        function = _packed(kind, function)
    count = {"fma": 3, "rcp": 1, "sqrt": 1}.get(operation, 2)
    return Scalar((kind,), (kind,) * count, function)


def _mul(form: _Modifiers) -> Scalar:
    part = form.take("lo", "hi", "wide")
    if part is None:
        return _arithmetic(form)
    kind = form.need(_TWICE if part == "wide" else _INT)
    product: Function = np.multiply
    if part != "lo":
        product = _high(kind) if part == "hi" else _wide(kind)
    result = _TWICE[kind] if part == "wide" else kind
    if form.opcode == "mul":
        return Scalar((result,), (kind, kind), product)
    return Scalar((result,), (kind, kind, result), lambda a, b, c: product(a, b) + c)


def _mad(form: _Modifiers) -> Scalar:
    if form.rest and form.rest[0] in floats.MODES:  # mad.rn.f32 is fma.rn.f32
        mode = form.need(floats.MODES)
        kind = form.need(_F)
        return Scalar((kind,), (kind,) * 3, floats.function("fma", kind, mode))
    return _mul(form)


def _mul24_or_mad24(form: _Modifiers) -> Scalar:
    part = form.need(("lo", "hi"))
    kind = form.need(("u32", "s32"))
    product = _mul24(kind, part == "hi")
    if form.opcode == "mul24":
        return Scalar((kind,), (kind, kind), product)
    return Scalar((kind,), (kind,) * 3, lambda a, b, c: product(a, b) + c)


def _div(form: _Modifiers) -> Scalar:
    if form.rest and form.rest[0] in _INT:
        kind = form.need(_INT)
        return Scalar((kind,), (kind, kind), _divide(kind))
    return _arithmetic(form)


def _rem(form: _Modifiers) -> Scalar:
    kind = form.need(_INT)
    return Scalar((kind,), (kind, kind), _remainder(kind))


def _sad(form: _Modifiers) -> Scalar:
    kind = form.need(_INT)
    return Scalar((kind,), (kind,) * 3, _absolute_difference)


def _abs_or_neg(form: _Modifiers) -> Scalar:
    """Returns abs or neg (``form.opcode``) as a function, for the type that ``form`` has."""
    integers: Function = np.absolute if form.opcode == "abs" else np.negative
    choose = floats.absolute if form.opcode == "abs" else floats.negate
    kind = form.need(_S + _FLOAT + _PACKED)
    if kind in _S:
        return Scalar((kind,), (kind,), integers)
    function = choose(kind.removesuffix("x2"))
    return Scalar((kind,), (kind,), _packed(kind, function) if kind in _PACKED else function)


def _min(form: _Modifiers) -> Scalar:
    nan = form.take("NaN") is not None
    kind = form.need(_FLOAT + _PACKED if nan else _INT + _FLOAT + _PACKED)
    if kind in _INT:
        integers: Function = np.minimum if form.opcode == "min" else np.maximum
        return Scalar((kind,), (kind, kind), integers)
    if nan and kind == "f64":
        form.refuse(".NaN is not supported for .f64")
    function = floats.extreme(form.opcode, kind.removesuffix("x2"), nan=nan)
    return Scalar((kind,), (kind, kind), _packed(kind, function) if kind in _PACKED else function)


def _bitwise(form: _Modifiers) -> Scalar:
    function: Function = {
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "not": np.invert,
    }[form.opcode]
    kind = form.need((*_B, "pred"))
    return Scalar((kind,), (kind,) * (1 if form.opcode == "not" else 2), function)


def _cnot(form: _Modifiers) -> Scalar:
    kind = form.need(_B)
    dtype = STORAGE[kind]
    return Scalar((kind,), (kind,), lambda a: (a == dtype.type(0)).astype(dtype))


def _shl(form: _Modifiers) -> Scalar:
    kind = form.need(_B)
    return Scalar((kind,), (kind, "u32"), _left(kind))


def _shr(form: _Modifiers) -> Scalar:
    kind = form.need(_B + _INT)
    return Scalar((kind,), (kind, "u32"), _right(kind))


def _shf(form: _Modifiers) -> Scalar:
    left = form.need(("l", "r")) == "l"
    wrap = form.need(("wrap", "clamp")) == "wrap"
    form.need(("b32",))
    return Scalar(("b32",), ("b32", "b32", "u32"), _funnel(left, wrap))


def _bfe(form: _Modifiers) -> Scalar:
    kind = form.need(("u32", "u64", "s32", "s64"))
    return Scalar((kind,), (kind, "u32", "u32"), _extract(kind))


def _bfi(form: _Modifiers) -> Scalar:
    kind = form.need(("b32", "b64"))
    return Scalar((kind,), (kind, kind, "u32", "u32"), _insert(kind))


def _bfind(form: _Modifiers) -> Scalar:
    amount = form.take("shiftamt") is not None
    kind = form.need(("u32", "u64", "s32", "s64"))
    return Scalar(("u32",), (kind,), _find(kind, amount))


def _count(form: _Modifiers) -> Scalar:
    """Returns clz or popc (``form.opcode``) as a function, for the type that ``form`` has."""
    kind = form.need(("b32", "b64"))
    function = _leading_zeros(kind) if form.opcode == "clz" else _population
    return Scalar(("u32",), (kind,), function)


def _brev(form: _Modifiers) -> Scalar:
    kind = form.need(("b32", "b64"))
    return Scalar((kind,), (kind,), _reverse)


def _prmt(form: _Modifiers) -> Scalar:
    form.need(("b32",))
    return Scalar(("b32",), ("b32", "b32", "b32"), _permute(form.take(*_SELECTORS)))


def _lop3(form: _Modifiers) -> Scalar:
    combine = form.take("or", "and")
    form.need(("b32",))
    source = ("b32", "b32", "b32", "u32")
    if combine is None:
        return Scalar(("b32",), source, _logic)
    with_predicate = _COMBINE[combine]

    def both(a: Array, b: Array, c: Array, table: Array, q: Array) -> tuple[Array, Array]:
        result = _logic(a, b, c, table)
        return result, with_predicate(result != _ZERO32, q)

    return Scalar(("b32", "pred"), (*source, "pred"), both)


def _dp(form: _Modifiers) -> Scalar:
    parts, start = 4, 0
    if form.opcode == "dp2a":
        parts, start = 2, 2 * (form.need(("lo", "hi")) == "hi")
    first, second = form.need(("u32", "s32")), form.need(("u32", "s32"))
    kind = "u32" if first == second == "u32" else "s32"
    function = _dot((first, second), parts, start, STORAGE[kind])
    return Scalar((kind,), (first, second, kind), function)


def _setp(form: _Modifiers) -> Scalar:
    kind, count, test = _test(form, _B + _INT + _FLOAT)
    source = (kind, kind, "pred")[:count]
    if not form.pair:
        return Scalar(("pred",), source, test)
    inverse = _compare_and_inverse(test) if count == 2 else _second(form, kind)
    return Scalar(("pred", "pred"), source, inverse)


def _compare_and_inverse(test: Function) -> Function:
    def both(a: Array, b: Array) -> tuple[Array, Array]:
        result = test(a, b)
        return result, ~result

    return both


def _second(form: _Modifiers, kind: str) -> Function:
    """Returns the function (a, b, c) of a setp with two destinations, for operands a and b of type
    ``kind``: the comparison of a and b combined with the predicate c, and its inverse combined with
    c.
    """
    again = _Modifiers(form.instruction)
    _, choose = _comparison(again)
    compare, combine = choose(kind), _COMBINE[again.need(_COMBINE)]

    def both(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
        result = compare(a, b)
        return combine(result, c), combine(~result, c)

    return both


def _set(form: _Modifiers) -> Scalar:
    result = next((x for x in form.rest if x in ("u32", "s32", "f32")), "u32")
    kind, count, test = _test(form, _B + _INT + _F, before=result)
    dtype = STORAGE[result]
    yes = dtype.type(1 if result == "f32" else -1 if result == "s32" else 0xFFFFFFFF)
    no = dtype.type(0)
    source = (kind, kind, "pred")[:count]
    return Scalar((result,), source, lambda *operands: np.where(test(*operands), yes, no))


def _selp(form: _Modifiers) -> Scalar:
    kind = form.need(_B + _INT + _F)
    return Scalar((kind,), (kind, kind, "pred"), lambda a, b, c: np.where(c, a, b))


def _slct(form: _Modifiers) -> Scalar:
    kind = form.need(_B + _INT + _F)
    selector = form.need(("s32", "f32"))
    zero = STORAGE[selector].type(0)
    return Scalar((kind,), (kind, kind, selector), lambda a, b, c: np.where(c >= zero, a, b))


def _mov(form: _Modifiers) -> Scalar:
    kind = form.need(_B + _INT + _F + ("pred",))
    return Scalar((kind,), (kind,), _identity)


def _ex2(form: _Modifiers) -> Scalar:
    if form.rest != ["approx", "ftz", "f32"]:
        _approximate(form)
    form.rest.clear()
    return Scalar(("f32",), ("f32",), ex2)


def _approximate(form: _Modifiers) -> Scalar:
    form.refuse("the bits of an approximation are documented nowhere; use IEEE operations")


def _unsupported(form: _Modifiers) -> Scalar:
    form.refuse("this instruction is not supported")


def _testp(form: _Modifiers) -> Scalar:
    test = form.need(("finite", "infinite", "number", "notanumber", "normal", "subnormal"))
    kind = form.need(_F)
    return Scalar(("pred",), (kind,), floats.classify(test, kind))


def _copysign(form: _Modifiers) -> Scalar:
    kind = form.need(_F)
    return Scalar((kind,), (kind, kind), lambda a, b: np.copysign(b, a))


# --- Conversions --------------------------------------------------------------------------------
_ALL_INT = tuple(f"{sign}{bits}" for sign in "us" for bits in (8, 16, 32, 64))
_TO_INTEGER = {f"{mode}i": mode for mode in floats.MODES}


def _cvt(form: _Modifiers) -> Scalar:
    mode = form.take(*floats.MODES, *_TO_INTEGER)
    saturate = form.take("sat") is not None
    target = form.need(_ALL_INT + _FLOAT + _PACKED)
    if form.take("e4m3x2"):
        if (target, mode, saturate) != ("f16x2", "rn", False):
            form.refuse("two numbers of .e4m3 become .f16x2 by .rn")
        return Scalar((target,), ("b16",), _from_e4m3)
    source = form.need(_ALL_INT + _FLOAT)
    if target in _PACKED:
        if source != "f32" or mode not in ("rn", "rz") or saturate:
            form.refuse(f".{target} is made of two .f32 by .rn or .rz")
        return Scalar((target,), (source, source), _pack(target, mode))
    function = _conversion(form, mode, target, source)
    if "bf16" in (target, source) and {"u8", "s8"} & {target, source}:
        form.refuse(f"there is no conversion from .{source} to .{target}")
    if saturate and "bf16" in (target, source):
        form.refuse(".sat is not supported for .bf16")
    if saturate and target in _FLOAT:
        exact, clamp = function, floats.saturate(target)
        function = lambda a: clamp(exact(a))  # noqa: E731
    elif saturate and source in _ALL_INT:
        have, want = np.iinfo(STORAGE[source]), np.iinfo(STORAGE[target])
        if want.min <= have.min and have.max <= want.max:
            form.refuse(f".sat does nothing from .{source} to .{target}")
        function = _clamp_integer(source, target)
    return Scalar((target,), (source,), function)


def _conversion(form: _Modifiers, mode: str | None, target: str, source: str) -> Function:
    dtype = STORAGE[target]
    if source in _ALL_INT and target in _ALL_INT:
        if mode is not None:
            form.refuse("takes no rounding mode between integers")
        if STORAGE[source].itemsize == dtype.itemsize:
            return _identity if source == target else lambda a: a.view(dtype)
        return lambda a: a.astype(dtype)
    if target in _ALL_INT:
        if mode not in _TO_INTEGER:
            form.refuse("needs a mode of rounding to integers: .rni, .rzi, .rmi or .rpi")
        towards = _TO_INTEGER[mode]
        return lambda a: floats.to_integer(a, source, dtype, towards)
    if source in _ALL_INT:
        if mode not in floats.MODES:
            form.refuse("needs a rounding mode: .rn, .rz, .rm or .rp")
        return lambda a: floats.from_integer(a, target, mode)
    if source == target:
        if mode in _TO_INTEGER:
            towards = _TO_INTEGER[mode]
            return lambda a: floats.integral(a, source, towards)
        if mode is not None:
            form.refuse("takes a mode of rounding to integers or none")
        return _identity
    narrower = STORAGE[source].itemsize >= dtype.itemsize
    if narrower != (mode in floats.MODES) or (mode is not None and not narrower):
        form.refuse(
            "needs a rounding mode: .rn, .rz, .rm or .rp" if narrower else "takes no rounding mode"
        )
    return floats.convert(source, target, mode or "rn")


def _pack(target: str, mode: str) -> Function:
    half = floats.convert("f32", target.removesuffix("x2"), mode)
    sixteen = np.uint32(16)

    def apply(high: Array, low: Array) -> Array:
        upper = half(high).view(np.uint16).astype(np.uint32) << sixteen
        result: Array = upper | half(low).view(np.uint16)
        return result

    return apply


_E4M3 = np.array(E4M3, np.float16).view(np.uint16)


def _from_e4m3(pairs: Array) -> Array:
    """Returns the f16 numbers of pairs of e4m3, the lower byte in the lower half."""
    bytes = pairs.view(np.uint8).reshape(-1, 2)
    return np.ascontiguousarray(_E4M3[bytes]).view(np.uint32).reshape(-1)


def _clamp_integer(source: str, target: str) -> Function:
    """Returns the function that clamps integers of ``source`` to the range of ``target``."""
    have, want = np.iinfo(STORAGE[source]), np.iinfo(STORAGE[target])
    low = STORAGE[source].type(max(int(have.min), int(want.min)))
    high = STORAGE[source].type(min(int(have.max), int(want.max)))
    dtype = STORAGE[target]
    return lambda a: np.minimum(np.maximum(a, low), high).astype(dtype)


_BUILDERS: dict[str, Callable[[_Modifiers], Scalar]] = {
    "abs": _abs_or_neg,
    "add": _add,
    "and": _bitwise,
    "bfe": _bfe,
    "bfi": _bfi,
    "bfind": _bfind,
    "brev": _brev,
    "clz": _count,
    "cnot": _cnot,
    "copysign": _copysign,
    "cvt": _cvt,
    "div": _div,
    "dp2a": _dp,
    "dp4a": _dp,
    "ex2": _ex2,
    "fma": _arithmetic,
    "lop3": _lop3,
    "mad": _mad,
    "mad24": _mul24_or_mad24,
    "max": _min,
    "min": _min,
    "mov": _mov,
    "mul": _mul,
    "mul24": _mul24_or_mad24,
    "neg": _abs_or_neg,
    "not": _bitwise,
    "or": _bitwise,
    "popc": _count,
    "prmt": _prmt,
    "rcp": _arithmetic,
    "rem": _rem,
    "sad": _sad,
    "selp": _selp,
    "set": _set,
    "setp": _setp,
    "shf": _shf,
    "shl": _shl,
    "shr": _shr,
    "slct": _slct,
    "sqrt": _arithmetic,
    "sub": _add,
    "testp": _testp,
    "xor": _bitwise,
    **dict.fromkeys(("cos", "lg2", "rsqrt", "sin", "tanh"), _approximate),
    **dict.fromkeys(("addc", "bmsk", "fns", "madc", "subc", "szext"), _unsupported),
}
