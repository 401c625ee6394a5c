"""Syntax tree of PTX, and its parser.

The subset is what NVRTC 13.0 emits for kernels, and what hand-written PTX for them needs.
Functions, calls, textures and vector registers are outside it; error messages name them.

Source: Parallel Thread Execution ISA 9.0, sections 4 (syntax), 5 (state spaces, types, variables),
6 (operands), 10 (special registers) and 11 (directives).
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass, field, replace
from typing import Literal, NoReturn, TypeAlias

from ptxgen.errors import PtxError

WARP = 32
"""Threads of a warp: WARP_SZ of the PTX ISA."""


# --- Operands -----------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Register:
    """A declared register, such as ``%f12``.

    A register of an inner scope has the scope's number as a suffix, ``t#3``, so that names are
    unique in the kernel.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Special:
    """A special register, such as ``%tid.x``; a vector register includes its component."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Immediate:
    """A constant operand.

    ``bits`` is None for integers, which are 64 bits wide in PTX: -2**63 to 2**64 - 1. For
    ``0f3F800000`` it is the f32's bit pattern, for ``0d...`` and ``1.5`` the f64's.
    """

    value: int | float
    bits: int | None = None
    type: Literal["int", "f32", "f64"] = "int"

    # By bits, so that a NaN equals itself and 0.0 is not -0.0.
    def _key(self) -> tuple[str, int | float]:
        return self.type, self.value if self.bits is None else self.bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Immediate) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable or parameter, or a label; ``offset`` in bytes."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Sink:
    """The destination ``_``, which discards a result."""


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector operand, ``{a, b, ...}``."""

    items: tuple[Register | Special | Immediate | Symbol | Sink, ...]


@dataclass(frozen=True, slots=True)
class Address:
    """A memory operand, ``[base+offset]``; of a tensor copy ``[base, {coordinates}]``."""

    base: Register | Symbol | Immediate
    offset: int = 0
    coordinates: tuple[Register | Special | Immediate | Symbol | Sink, ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair of destinations, ``first|second``."""

    first: Register | Sink
    second: Register | Sink


@dataclass(frozen=True, slots=True)
class Negated:
    """A negated predicate, ``!p``."""

    register: Register


Operand: TypeAlias = (
    Register | Special | Immediate | Symbol | Sink | Vector | Address | Pair | Negated
)


# --- Statements ---------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; ``cp.async.cg.shared.global`` has opcode ``cp`` and four modifiers.

    ``guard``: the predicate of ``@p``, ``negated`` for ``@!p``; None without a guard. ``line``:
    line number in the PTX, from 1; ``text``: the statement without comments, white space collapsed;
    ``source``: file and line of the last ``.loc``.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | None = None
    negated: bool = False
    line: int = 0
    text: str = ""
    source: tuple[str, int] | None = None

    @property
    def name(self) -> str:
        """Opcode and modifiers, with dots."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True, slots=True)
class Label:
    """A label. NVRTC's line information has labels that nothing branches to."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in memory: ``count`` elements of ``vector`` values of ``type``.

    ``space`` is "global", "const", "shared" or "local". ``count`` is 0 for ``.extern x[]``, whose
    size the launch determines. ``init`` holds the bytes of the initialiser, little-endian,
    zero-padded; ``addresses`` lists the variable addresses in it: byte offset, variable, and
    whether its generic address is meant.
    """

    name: str
    space: str
    type: str
    align: int
    count: int = 1
    vector: int = 1
    init: bytes | None = None
    extern: bool = False
    line: int = 0
    addresses: tuple[tuple[int, Symbol, bool], ...] = ()

    @property
    def nbytes(self) -> int:
        return SIZES[self.type] * self.vector * self.count


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel parameter; ``offset`` is its byte offset in the parameter buffer."""

    name: str
    type: str
    align: int
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel (``.entry``).

    ``registers`` maps each register to its type ("f32", "pred"); ``variables`` are those declared
    inside. ``directives`` maps directives such as ``maxntid`` to their values; ``maxntid``,
    ``reqntid`` and ``reqnctapercluster`` always have three.
    """

    name: str
    parameters: tuple[Parameter, ...]
    registers: dict[str, str]
    variables: tuple[Variable, ...]
    body: tuple[Instruction | Label, ...]
    directives: dict[str, tuple[int, ...]]
    line: int


@dataclass(frozen=True, slots=True)
class Module:
    """A parsed PTX file: ``version`` such as (9, 0), ``target`` such as "sm_80", ``variables`` of
    the module, kernels (``entries``) by name, names of source files (``files``) by the number of
    ``.file``; ``text``, the PTX, and ``file``, its name in messages.
    """

    version: tuple[int, int]
    target: str
    address_size: int
    variables: tuple[Variable, ...]
    entries: dict[str, Entry]
    files: dict[int, str]
    text: str = field(repr=False)
    file: str


SIZES: dict[str, int] = {
    f"{kind}{bits}": bits // 8
    for kind, widths in (
        ("b", (8, 16, 32, 64, 128)),
        ("u", (8, 16, 32, 64)),
        ("s", (8, 16, 32, 64)),
        ("f", (16, 32, 64)),
        ("bf", (16,)),
    )
    for bits in widths
} | {"f16x2": 4, "bf16x2": 4}
"""Bytes of each type that a register or variable can have."""


_VECTORS = "tid ntid ctaid nctaid clusterid nclusterid cluster_ctaid cluster_nctaid"
_SCALARS = """
    laneid warpid nwarpid smid nsmid gridid is_explicit_cluster cluster_ctarank cluster_nctarank
    clock clock_hi clock64 globaltimer globaltimer_lo globaltimer_hi total_smem_size
    aggr_smem_size dynamic_smem_size current_graph_exec lanemask_eq lanemask_le lanemask_lt
    lanemask_ge lanemask_gt reserved_smem_offset_begin reserved_smem_offset_end
    reserved_smem_offset_cap reserved_smem_offset_0 reserved_smem_offset_1
"""
SPECIALS: frozenset[str] = frozenset(
    [f"%{name}" for name in _SCALARS.split()]
    + [f"%{name}.{axis}" for name in _VECTORS.split() for axis in "xyzw"]
    + [f"%envreg{i}" for i in range(32)]
    + [f"%pm{i}{width}" for i in range(8) for width in ("", "_64")]
)
"""The special registers of PTX ISA 9.0, section 10."""


def parse(text: str, file: str = "<ptx>") -> Module:
    """Parses PTX; raises PtxError, with file and line, if it is malformed.

    Checks syntax, that registers, variables and labels are declared, and only once, and that guards
    are predicates. Does not check whether instructions are legal.
    """
    return _Parser(text, file).module()


# --- Lexis --------------------------------------------------------------------------------
# Quantifiers are possessive (*+), so that nonsense is refused in linear time.
_NAME = r"(?:[A-Za-z][\w$]*|[_$%][\w$]+)"
_INT = r"(?:0[xX][\da-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)U?"
_OFFSET = rf"(?:\s*+(\+\s*+-?|-)\s*+({_INT}))?"
_LINK = r"(?:\.(?:visible|extern|weak|common)\b\s*+)*"


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


# Strings too, so as to leave what is in them alone.
_COMMENT = _compile(r'"[^"\n]*"|//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)')
# Statements; each includes the white space after it. Guard, opcode with modifiers, operands.
_INSTRUCTION = _compile(
    r"(?:@\s*+(!?)\s*+([\w$%]+)\s++)?([a-z](?:[\w.]+|::)*+)(?!\s*+:)\s*+([^;]*+);\s*+"
)
_STOP = _compile(r"[;\n]")
_LABEL = _compile(rf"({_NAME})\s*+:(?!:)\s*+")
_BRACE = _compile(r"([{}])\s*+")
_DIRECTIVE = _compile(rf"{_LINK}\.([A-Za-z_]\w*)\b")
_VERSION = _compile(r"\.version\s++(\d{1,4})\.(\d{1,4})\s++")
_TARGET = _compile(r"\.target\s++(sm_\d+[af]?)\b((?:\s*+,\s*+\w+)*)\s++")
_ADDRESS_SIZE = _compile(r"\.address_size\s++(\d{1,4})\b\s*+")
_FILE = _compile(r'\.file\s++(\d{1,9})\s++"([^"\n]*)"(?:\s*+,\s*+\d+\s*+,\s*+\d+)?\s*+')
_LOC = _compile(
    r"\.loc\s++(\d{1,9})\s++(\d{1,9})\s++\d+"
    r"(?:\s*+,\s*+function_name\s++[\w$.]+(?:\s*+\+\s*+\d+)?\s*+,\s*+inlined_at\s++\d+\s++\d+\s++\d+)?"
    r"\s*+(?=[^\s,])"
)
_SECTION = _compile(r"\.section\s++[\w.$]+\s*+\{[^{}]*+\}\s*+")
_PRAGMA = _compile(r'\.pragma\s++"[^"\n]*"(?:\s*+,\s*+"[^"\n]*")*\s*+;\s*+')
_REG = _compile(r"\.reg\s++(?:\.(v\d)\s++)?\.(\w+)\s++([^;]*+);\s*+")
_REG_ITEM = _compile(rf"\s*+({_NAME})\s*+(?:<\s*+(\d+)\s*+>)?\s*+")
_VARIABLE = _compile(
    rf"({_LINK})\.(global|const|shared|local)\s++(?:\.align\s++(\d+)\s++)?(?:\.v([24])\s++)?"
    r"\.(\w+)\s++([^;]*+);\s*+"
)
_DECLARATOR = _compile(rf"({_NAME})\s*+((?:\[\s*+\d*\s*+\]\s*+)*)(?:=\s*+([\s\S]*))?")
_ENTRY = _compile(rf"{_LINK}\.entry\s++({_NAME})\s*+(?:\(([^()]*+)\)\s*+)?(?=[.{{])")
_PARAMETER = _compile(
    r"\s*+\.param\s++(?:\.align\s++(\d+)\s++)?\.(\w+)\s++"
    r"(?:\.ptr\b\s*+(?:\.(?:const|global|local|shared)\b\s*+)?(?:\.align\s++\d+\s++)?)?"
    rf"({_NAME})\s*+(?:\[\s*+(\d+)\s*+\])?\s*+"
)
_TUNING = _compile(r"\.(\w+)\b[ \t]*+(\d{1,9}(?:\s*+,\s*+\d{1,9})*)?\s*+(?=[.{])")
# Operands.
_OPERAND = _compile(r"\s*+(\{[^{}]*+\}|\[[^\[\]]*+\]|[^,{}\[\]]++)\s*+(?:,|\Z)")
_ADDRESS = _compile(rf"\[\s*+({_NAME}|{_INT}){_OFFSET}\s*+(?:,\s*+\{{([^{{}}]*+)\}}\s*+)?\]")
_SYMBOL = _compile(rf"({_NAME}){_OFFSET}")
_SPECIAL = _compile(r"%[a-z]\w*(?:\.\w+)?")
_INTEGER = _compile(rf"(-?)\s*+({_INT})")
_FLOAT32 = _compile(r"0[fF]([\da-fA-F]{8})")
_FLOAT64 = _compile(r"0[dD]([\da-fA-F]{16})")
_DECIMAL = _compile(r"-?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?")
_GENERIC = _compile(r"generic\s*+\(\s*+([^()]*+)\)")

# Directives for the launch or the compiler, and the most numbers that each takes.
_TUNINGS = {
    "maxntid": 3,
    "reqntid": 3,
    "minnctapersm": 1,
    "maxnctapersm": 1,
    "maxnreg": 1,
    "noreturn": 0,
    "explicitcluster": 0,
    "reqnctapercluster": 3,
    "maxclusterrank": 1,
    "blocksareclusters": 0,
}
_OUTSIDE = {
    **dict.fromkeys(("call", "alloca", "stacksave", "stackrestore"), "functions are inlined here"),
    "brx": "branches go to one label",
    **dict.fromkeys(("tex", "tld4", "txq", "suld", "sust", "sured", "suq", "istypep"), "textures"),
    **dict.fromkeys(("addc", "subc", "madc"), "carry chains"),
}
"""Opcodes that the parser refuses, each with the reason for the message."""
_MOST_REGISTERS = 1 << 20
_MOST_SCOPES = 100
_SINK = Sink()


class _OperandError(Exception):
    """Raised for a malformed part of a statement; becomes a PtxError with file and line."""


class _Scope(dict[str, Operand]):
    """Scope of names: the registers, variables and labels that are declared between two braces. As
    a dict, it caches parsed operands by their text.
    """

    __slots__ = ("branches", "depth", "labels", "number", "parent", "registers", "symbols")

    def __init__(self, parent: _Scope | None, number: int) -> None:
        super().__init__()
        self.parent, self.number = parent, number
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.registers: dict[str, str] = {}  # to the type
        self.symbols: set[str] = set()
        self.labels: set[str] = set()
        self.branches: list[tuple[int, str]] = []  # index in the body, and the label

    def unique(self, name: str) -> str:
        return f"{name}#{self.number}" if self.number else name

    def declared(self, name: str) -> bool:
        return name in self.registers or name in self.symbols or name in self.labels

    def find(self, name: str) -> Register | Symbol | None:
        """Returns the register or variable ``name`` of the innermost declaration, or None."""
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.registers:
                return Register(scope.unique(name))
            if name in scope.symbols:
                return Symbol(scope.unique(name))
            scope = scope.parent
        return None

    def type_of(self, register: str) -> str:
        name, _, number = register.partition("#")
        scope: _Scope | None = self
        while scope is not None:
            if scope.number == int(number or 0) and name in scope.registers:
                return scope.registers[name]
            scope = scope.parent
        raise KeyError(register)

    def operands(self, text: str) -> tuple[Operand, ...]:
        """Parses the operands of an instruction."""
        if "{" not in text:
            # self[piece], which for the usual operand is a look-up and nothing more
            return tuple([self[piece] for piece in text.split(",")]) if text else ()
        found, at = [], 0
        while at < len(text):
            match = _OPERAND.match(text, at)
            if match is None:
                raise _OperandError(f"cannot read the operands from {_short(text[at:])!r} on")
            found.append(self[match[1]])
            at = match.end()
        if text.rstrip().endswith(","):
            raise _OperandError("an operand is missing")
        return tuple(found)

    def __missing__(self, piece: str) -> Operand:
        stripped = piece.strip()
        operand = self[piece] = self._read(piece) if stripped == piece else self[stripped]
        return operand

    def _read(self, text: str) -> Operand:
        first = text[:1]
        if not first:
            raise _OperandError("an operand is missing")
        if first == "[":
            return self._address(text)
        if first == "{":
            return Vector(self._items(text[1:-1]))
        if first in "-.0123456789":
            return immediate(text)
        if first == "!":
            register = self[text[1:].strip()]
            if not isinstance(register, Register) or self.type_of(register.name) != "pred":
                raise _OperandError(f"{text!r} is no predicate, so it cannot be inverted")
            return Negated(register)
        if "|" in text:
            pair = [self[half.strip()] for half in text.split("|")]
            match pair:
                case [Register() | Sink() as a, Register() | Sink() as b]:
                    return Pair(a, b)
            raise _OperandError(f"{text!r} is no pair of registers")
        if text == "_":
            return _SINK
        if first == "'":
            raise _OperandError("character constants are outside the subset")
        match = _SYMBOL.fullmatch(text)
        if match is None:
            if _SPECIAL.fullmatch(text) and text in SPECIALS:
                return Special(text)
            if _SPECIAL.fullmatch(text):
                raise _OperandError(f"there is no special register {text}")
            raise _OperandError(f"cannot read the operand {_short(text)!r}")
        name, sign, digits = match.groups()
        found = self.find(name)
        if isinstance(found, Symbol):
            return Symbol(found.name, _offset(sign, digits)) if sign else found
        if sign:
            raise _OperandError(f"{name} is no variable, so {text!r} is no address")
        if found is not None:
            return found
        if name in SPECIALS:
            return Special(name)
        if name == "WARP_SZ":
            return Immediate(32)
        if f"{name}.x" in SPECIALS:
            raise _OperandError(f"{name} is a vector: write {name}.x, .y or .z")
        if first == "%":
            raise _OperandError(f"{name} is neither a declared register nor a special one")
        raise _OperandError(f"{name} is not declared")

    def _items(self, text: str) -> tuple[Register | Special | Immediate | Symbol | Sink, ...]:
        items = []
        for piece in text.split(","):
            item = self[piece]
            if isinstance(item, Vector | Address | Pair | Negated):
                raise _OperandError(f"{piece.strip()!r} cannot be an element of a vector")
            items.append(item)
        return tuple(items)

    def _address(self, text: str) -> Address:
        match = _ADDRESS.fullmatch(text)
        if match is None:
            raise _OperandError(f"cannot read the address {_short(text)!r}")
        name, sign, digits, coordinates = match.groups()
        offset = _offset(sign, digits)
        base = self[name]
        if isinstance(base, Register):
            type = self.type_of(base.name)
            if type not in ("b32", "u32", "s32", "b64", "u64", "s64"):
                raise _OperandError(f"{name} is .{type}, which holds no address")
        elif not isinstance(base, Symbol | Immediate):
            raise _OperandError(f"{name} holds no address")
        return Address(base, offset, () if coordinates is None else self._items(coordinates))


def immediate(text: str) -> Immediate:
    """Parses a constant; raises _OperandError if ``text`` is none."""
    if match := _INTEGER.fullmatch(text):
        sign, digits = match.groups()
        value = _integer(digits)
        if sign:
            value = -value
        if not -(1 << 63) <= value < 1 << 64:
            raise _OperandError(f"{text} does not fit into 64 bits")
        return Immediate(value)
    if match := _FLOAT32.fullmatch(text):
        bits = int(match[1], 16)
        return Immediate(struct.unpack("<f", struct.pack("<I", bits))[0], bits, "f32")
    if match := _FLOAT64.fullmatch(text):
        bits = int(match[1], 16)
        return Immediate(struct.unpack("<d", struct.pack("<Q", bits))[0], bits, "f64")
    if _DECIMAL.fullmatch(text):
        real = float(text)
        if abs(real) == float("inf"):
            raise _OperandError(f"{text} does not fit into an f64")
        return Immediate(real, struct.unpack("<Q", struct.pack("<d", real))[0], "f64")
    raise _OperandError(f"{_short(text)!r} is no constant")


def _integer(digits: str) -> int:
    digits = digits.removesuffix("U")
    base = {"x": 16, "b": 2}.get(digits[1:2].lower(), 8 if digits[0] == "0" else 10)
    if len(digits) > 80:
        raise _OperandError(f"{_short(digits)} does not fit into 64 bits")
    return int(digits, base)


def _offset(sign: str | None, digits: str) -> int:
    if sign is None:
        return 0
    value = -_integer(digits) if "-" in sign else _integer(digits)
    if not -(1 << 31) <= value < 1 << 31:
        raise _OperandError(f"the offset {value} does not fit into 32 bits")
    return value


def _short(text: str, most: int = 160) -> str:
    """Returns ``text`` on one line, cut to ``most`` characters."""
    text = " ".join(text[: 4 * most].split())
    return text if len(text) <= most else text[: most - 3] + "..."


def _blank(match: re.Match[str]) -> str:
    """Returns the replacement of a comment: its line ends, or a space; strings are unchanged."""
    found = match[0]
    if found[0] == '"':
        return found
    if found[1] == "*" and (len(found) < 4 or not found.endswith("*/")):
        return "/*"
    return "\n" * found.count("\n") or " "


class _Parser:
    """Single-pass parser of a PTX file; ``pos`` is always at the start of a statement."""

    def __init__(self, text: str, file: str) -> None:
        self.original, self.file = text, file
        if text.endswith("\0"):
            text = text.rstrip("\0")
        self.text = _COMMENT.sub(_blank, text)
        self.pos = self.line = 0
        self.files: dict[int, str] = {}
        self.source: tuple[str, int] | None = None
        self.opcodes: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.scope = _Scope(None, 0)
        self.variables: list[Variable] = []

    # --- Places ---
    def fail(self, message: str, start: int | None = None, end: int | None = None) -> NoReturn:
        """Raises PtxError for the text from ``start`` to ``end``; default: the statement at
        ``pos``.
        """
        start = self.pos if start is None else start
        if end is None:
            stop = _STOP.search(self.text, start)
            end = stop.end() if stop else len(self.text)
        line = self.line + self.text.count("\n", self.pos, start)
        raise PtxError(message, file=self.file, line=line, text=_short(self.text[start:end]))

    def take(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """Returns the match of ``pattern`` at ``pos``, which stays where it is (see
        :meth:`advance`). Raises PtxError if there is none; ``what`` names the statement in its
        message.
        """
        match = pattern.match(self.text, self.pos)
        if match is None:
            self.fail(f"{what} is malformed, or the text ends inside it")
        return match

    def advance(self, end: int) -> None:
        self.line += self.text.count("\n", self.pos, end)
        self.pos = end

    # --- The module ---
    def module(self) -> Module:
        start = len(self.text) - len(self.text.lstrip())
        self.line = 1
        self.advance(start)
        if not self.text.startswith(".version", self.pos):
            self.fail("PTX begins with .version")
        match = self.take(_VERSION, ".version")
        version = int(match[1]), int(match[2])
        self.advance(match.end())
        if not self.text.startswith(".target", self.pos):
            self.fail(".version is followed by .target")
        match = self.take(_TARGET, ".target")
        target = match[1]
        self.advance(match.end())
        if ".file" in self.text:
            # NVRTC puts these after the kernels that refer to them.
            for match in _FILE.finditer(self.text):
                self.files[int(match[1])] = match[2]

        address_size = 64
        entries: dict[str, Entry] = {}
        while self.pos < len(self.text):
            found = _DIRECTIVE.match(self.text, self.pos)
            kind = found[1] if found else ""
            if kind == "entry":
                entry = self.entry()
                entries[entry.name] = entry
            elif kind in ("global", "const", "shared", "local"):
                self.variables += self.declare_variables()
            elif kind == "address_size":
                match = self.take(_ADDRESS_SIZE, ".address_size")
                address_size = int(match[1])
                if address_size != 64:
                    self.fail("only 64-bit addresses are inside the subset")
                self.advance(match.end())
            elif kind in ("version", "target"):
                self.fail(f".{kind} stands twice")
            elif kind == "reg":
                self.fail("registers are declared inside a kernel")
            elif kind in ("texref", "samplerref", "surfref", "tex"):
                self.fail("textures are outside the subset")
            elif kind == "func":
                self.pass_over_function()
            elif not self.common(kind):
                self.unreadable(found)
        if not entries:
            self.line -= self.text.endswith("\n")
            self.fail("the text holds no kernel (.entry)")
        return Module(
            version=version,
            target=target,
            address_size=address_size,
            variables=tuple(self.variables),
            entries=entries,
            files=self.files,
            text=self.original,
            file=self.file,
        )

    def pass_over_function(self) -> None:
        """Skips a function. Calls are refused, but NVRTC leaves inlined functions in the text."""
        depth = 0
        for match in _BRACE.finditer(self.text, self.pos):
            depth += 1 if match[1] == "{" else -1
            if depth == 0:
                return self.advance(match.end())
        self.fail("the text ends inside a function (.func)")

    def unreadable(self, directive: re.Match[str] | None) -> NoReturn:
        """Raises PtxError for the statement at ``pos``, which the parser cannot read, with the
        likely reason. ``directive``: the match if it begins with a directive, else None.
        """
        if directive:
            self.fail(f"unknown or misplaced directive .{directive[1]}")
        if self.text.startswith("/*", self.pos):
            self.fail("the comment is not closed")
        if ";" not in self.text[self.pos :]:
            self.fail("the text ends inside this statement, or its semicolon is missing")
        self.fail("cannot read this statement")

    def common(self, kind: str) -> bool:
        """Parses ``.loc``, ``.pragma``, ``.file`` or ``.section``; returns False for any other
        ``kind``.
        """
        if kind == "loc":
            match = self.take(_LOC, ".loc")
            number = int(match[1])
            if number not in self.files:
                self.fail(f".loc refers to file {number}, which no .file names")
            self.source = self.files[number], int(match[2])
        elif kind == "pragma":
            match = self.take(_PRAGMA, ".pragma")
        elif kind == "file":
            match = self.take(_FILE, ".file")
        elif kind == "section":
            match = self.take(_SECTION, ".section")
        else:
            return False
        self.advance(match.end())
        return True

    # --- Declarations ---
    def new_name(self, name: str) -> str:
        """Returns ``name``; raises PtxError if this scope declares it, or a special register has
        it.
        """
        if self.scope.declared(name):
            self.fail(f"{name} is declared twice")
        if name in SPECIALS or f"{name}.x" in SPECIALS:
            self.fail(f"{name} is a special register")
        return name

    def declare_registers(self) -> None:
        match = self.take(_REG, ".reg")
        vector, type, items = match.groups()
        if vector:
            self.fail("vector registers are outside the subset: declare scalar ones")
        if type != "pred" and type not in SIZES:
            self.fail(f"unknown register type .{type}")
        scope = self.scope
        scope.clear()  # a name may have meant an outer scope's register so far
        for text in items.split(","):
            item = _REG_ITEM.fullmatch(text)
            if item is None:
                self.fail(f"cannot read the register {_short(text)!r}", end=match.end())
            name, count = item.groups()
            if count is None:
                scope.registers[self.new_name(name)] = type
                continue
            if len(count) > 8 or int(count) > _MOST_REGISTERS:
                self.fail(f"{count} registers are too many; the most is {_MOST_REGISTERS}")
            new = dict.fromkeys([f"{name}{i}" for i in range(int(count))], type)
            for known in (scope.registers.keys(), scope.symbols, scope.labels, SPECIALS):
                if not new.keys().isdisjoint(known):
                    self.new_name(next(each for each in new if each in known))
            scope.registers |= new
        self.advance(match.end())

    def declare_variables(self) -> list[Variable]:
        match = self.take(_VARIABLE, "the declaration of a variable")
        link, space, align, vector, type, declarators = match.groups()
        if type not in SIZES:
            self.fail(f"unknown type .{type} of a variable")
        per = int(vector or 1)
        alignment = self.alignment(align, SIZES[type] * per)
        found = []
        self.scope.clear()
        for text in _split(declarators):
            parts = _DECLARATOR.fullmatch(text)
            if parts is None:
                self.fail(f"cannot read the variable {_short(text)!r}", end=match.end())
            name, extents, init = parts.groups()
            name = self.new_name(name)
            extents = re.findall(r"\[\s*(\d*)\s*\]", extents)
            if any(len(extent) > 12 for extent in extents) or "" in extents[1:]:
                self.fail(f"cannot read the size of {name}", end=match.end())
            extern = "extern" in link
            unsized = extents[:1] == [""]
            count = math.prod(int(extent) for extent in extents if extent)
            if unsized and init is None and not extern:
                self.fail(f"{name}[] has no size: only .extern arrays may have none")
            if init is not None and (extern or space in ("shared", "local")):
                self.fail(f"{name} cannot have an initialiser", end=match.end())
            data: bytes | None = None
            addresses: tuple[tuple[int, Symbol, bool], ...] = ()
            if init is not None:
                try:
                    data, addresses = self.initialiser(init, type)
                except _OperandError as error:
                    self.fail(f"{name}: {error}", end=match.end())
                size = SIZES[type] * per
                if unsized and count:
                    count *= -(-len(data) // (size * count))
                if len(data) > count * size:
                    self.fail(f"the initialiser of {name} is too long", end=match.end())
                data = data.ljust(count * size, b"\0")
            elif unsized:
                count = 0
            self.scope.symbols.add(name)
            found.append(
                Variable(
                    name=self.scope.unique(name),
                    space=space,
                    type=type,
                    align=alignment,
                    count=count,
                    vector=per,
                    init=data,
                    extern=extern,
                    line=self.line,
                    addresses=addresses,
                )
            )
        self.advance(match.end())
        return found

    def alignment(self, align: str | None, natural: int) -> int:
        if align is None:
            return natural
        if len(align) > 9 or int(align) < 1 or int(align) & (int(align) - 1):
            self.fail(f"the alignment {align} is not a power of two")
        return int(align)

    def initialiser(
        self, text: str, type: str
    ) -> tuple[bytes, tuple[tuple[int, Symbol, bool], ...]]:
        """Parses the initialiser ``text`` of a variable of ``type``. Returns its bytes, with zeros
        where addresses of variables belong, and these addresses: (byte offset, variable, whether
        its generic address is meant).
        """
        text = text.strip()
        braced = text.startswith("{")
        if braced:
            if not text.endswith("}") or "{" in text[1:]:
                raise _OperandError("the initialiser is malformed, or nested")
            text = text[1:-1].strip()
        elif "," in text:
            raise _OperandError("the initialiser is malformed")
        data = bytearray()
        addresses = []
        cache: dict[str, bytes] = {}
        for piece in text.split(",") if text else ():
            packed = cache.get(piece)
            if packed is None:
                piece = piece.strip()
                if match := _GENERIC.fullmatch(piece):
                    value, generic = self.scope[match[1]], True
                else:
                    value, generic = self.scope[piece], False
                if isinstance(value, Symbol):
                    if SIZES[type] != 8:
                        raise _OperandError(f"an address takes 8 bytes, .{type} has not")
                    addresses.append((len(data), value, generic))
                    data += bytes(8)
                    continue
                if not isinstance(value, Immediate) or generic:
                    raise _OperandError(f"{piece!r} is no constant")
                packed = cache[piece] = _pack(value, type)
            data += packed
        return bytes(data), tuple(addresses)

    # --- Kernels ---
    def entry(self) -> Entry:
        match = self.take(_ENTRY, ".entry")
        name = self.new_name(match[1])
        outer = self.scope
        line = self.line
        outer.symbols.add(name)
        outer.clear()
        self.scope = _Scope(outer, 0)
        parameters = self.parameters(match[2] or "", match.start(2))
        self.advance(match.end())

        directives: dict[str, tuple[int, ...]] = {}
        while not self.text.startswith("{", self.pos):
            if self.text.startswith(".pragma", self.pos):
                self.common("pragma")
                continue
            match = self.take(_TUNING, f"the head of kernel {name}")
            kind, numbers = match.groups()
            if kind not in _TUNINGS:
                self.fail(f"unknown directive .{kind} of a kernel")
            if kind in directives:
                self.fail(f".{kind} stands twice")
            values = tuple(int(each) for each in numbers.split(",")) if numbers else ()
            if len(values) > _TUNINGS[kind] or bool(values) != bool(_TUNINGS[kind]):
                self.fail(f".{kind} takes {_TUNINGS[kind] or 'no'} numbers")
            directives[kind] = values + (1,) * (3 - len(values)) if _TUNINGS[kind] == 3 else values
            self.advance(match.end())

        self.advance(_skip_space(self.text, self.pos + 1))
        registers = self.scope.registers
        variables: list[Variable] = []
        body = self.body(name, registers, variables)
        self.scope = outer
        return Entry(name, parameters, registers, tuple(variables), body, directives, line)

    def parameters(self, text: str, start: int) -> tuple[Parameter, ...]:
        found: list[Parameter] = []
        offset = 0
        for piece in text.split(",") if text.strip() else ():
            here = start + len(piece) - len(piece.lstrip())
            match = _PARAMETER.fullmatch(piece)
            if match is None:
                self.fail(f"cannot read the parameter {_short(piece)!r}", here, start + len(piece))
            align, type, name, count = match.groups()
            if type not in SIZES:
                self.fail(f"unknown type .{type} of a parameter", here, start + len(piece))
            if len(count or "") > 9:
                self.fail(f"the parameter {name} is too large", here, start + len(piece))
            alignment = self.alignment(align, SIZES[type])
            nbytes = SIZES[type] * int(count or 1)
            offset = -(-offset // alignment) * alignment
            self.scope.symbols.add(self.new_name(name))
            found.append(Parameter(name, type, alignment, offset, nbytes))
            offset += nbytes
            start += len(piece) + 1
        return tuple(found)

    def body(
        self, name: str, registers: dict[str, str], variables: list[Variable]
    ) -> tuple[Instruction | Label, ...]:
        """Parses the statements of kernel ``name`` up to the brace that closes it, and returns
        them. Adds what inner scopes declare to ``registers`` (type by name), and the variables
        declared inside the kernel to ``variables``.
        """
        text, instruction = self.text, _INSTRUCTION.match
        body: list[Instruction | Label] = []
        opcodes, scope, scopes = self.opcodes, self.scope, 0
        while True:
            match = instruction(text, self.pos)
            if match is not None:
                invert, guard, opcode, rest = match.groups()
                statement = " ".join(match[0].split())
                try:
                    known = opcodes.get(opcode) or self.opcode(opcode)
                    if known[0] == "bra":
                        scope.branches.append((len(body), target := _label(rest)))
                        operands: tuple[Operand, ...] = (Symbol(target),)
                    else:
                        operands = scope.operands(rest)
                    predicate = None if guard is None else self.guard(guard)
                except _OperandError as error:
                    hint = "; is a semicolon missing?" if "\n" in match[0].strip() else ""
                    self.fail(f"{error}{hint}", end=match.end())
                body.append(
                    Instruction(
                        *known,
                        operands,
                        predicate,
                        invert == "!",
                        self.line,
                        statement,
                        self.source,
                    )
                )
                end = match.end()
                self.line += text.count("\n", self.pos, end)
                self.pos = end
                continue

            first = text[self.pos : self.pos + 1]
            if first == "}":
                self.advance(_skip_space(text, self.pos + 1))
                self.close(scope, body)
                if scope.number == 0:
                    return tuple(body)
                registers |= {scope.unique(n): type for n, type in scope.registers.items()}
                assert scope.parent is not None
                scope = self.scope = scope.parent
            elif first == "{":
                if scope.depth == _MOST_SCOPES:
                    self.fail(f"scopes are nested more than {_MOST_SCOPES} deep")
                self.advance(_skip_space(text, self.pos + 1))
                scopes += 1
                scope = self.scope = _Scope(scope, scopes)
            elif first == ".":
                found = _DIRECTIVE.match(text, self.pos)
                kind = found[1] if found else ""
                if kind == "reg":
                    self.declare_registers()
                elif kind in ("shared", "local"):
                    variables += self.declare_variables()
                elif kind in ("global", "const"):
                    self.fail(f"a .{kind} variable is declared outside of kernels")
                elif kind in ("branchtargets", "calltargets", "callprototype"):
                    self.fail(f".{kind} is outside the subset: branches go to one label")
                elif kind == "param":
                    self.fail("parameters of calls are outside the subset")
                elif not self.common(kind):
                    self.unreadable(found)
            elif match := _LABEL.match(text, self.pos):
                scope.labels.add(self.new_name(match[1]))
                body.append(Label(scope.unique(match[1]), self.line))
                self.advance(match.end())
            elif not first:
                self.line -= text.endswith("\n")
                self.fail(f"the text ends inside kernel {name}: a brace is missing")
            else:
                self.unreadable(None)

    def close(self, scope: _Scope, body: list[Instruction | Label]) -> None:
        """Resolves the branches in ``body`` that ``scope`` contains, at its closing brace: those to
        its own labels get the labels' unique names, the others are left to the enclosing scope.
        Raises PtxError if there is none.
        """
        for index, label in scope.branches:
            branch = body[index]
            assert isinstance(branch, Instruction)
            if label in scope.labels:
                if scope.number:
                    body[index] = replace(branch, operands=(Symbol(scope.unique(label)),))
            elif scope.number and scope.parent is not None:
                scope.parent.branches.append((index, label))
            else:
                raise PtxError(
                    f"the label {label} is not defined",
                    file=self.file,
                    line=branch.line,
                    text=branch.text,
                )

    def opcode(self, text: str) -> tuple[str, tuple[str, ...]]:
        opcode, *modifiers = text.split(".")
        if not opcode or not all(modifiers) or ":" in opcode:
            raise _OperandError(f"cannot read the opcode {text}")
        if opcode in _OUTSIDE:
            raise _OperandError(f"{opcode} is outside the subset: {_OUTSIDE[opcode]}")
        if modifiers and modifiers[0] == "cc":
            raise _OperandError(f"{text} is outside the subset: it has carry chains")
        found = self.opcodes[text] = opcode, tuple(modifiers)
        return found

    def guard(self, name: str) -> Register:
        register = self.scope[name]
        if not isinstance(register, Register):
            raise _OperandError(f"the guard {name} is no register")
        type = self.scope.type_of(register.name)
        if type != "pred":
            raise _OperandError(f"the guard {name} is .{type}, not .pred")
        return register


def _skip_space(text: str, pos: int) -> int:
    """Returns the position after the white space that starts at ``pos``."""
    while text[pos : pos + 1].isspace():
        pos += 1
    return pos


def _label(text: str) -> str:
    name = text.strip()
    if not re.fullmatch(_NAME, name, re.ASCII):
        raise _OperandError("bra takes one label")
    return name


def _split(text: str) -> list[str]:
    """Splits ``text`` at the commas that are outside braces."""
    parts, depth, start = [], 0, 0
    for match in re.finditer(r"[,{}]", text):
        if match[0] == ",":
            if depth == 0:
                parts.append(text[start : match.start()].strip())
                start = match.end()
        else:
            depth += 1 if match[0] == "{" else -1
    parts.append(text[start:].strip())
    return parts


def _pack(value: Immediate, type: str) -> bytes:
    """Encodes a constant as the bytes of one ``type`` element of an initialiser."""
    size = SIZES[type]
    if type in ("f32", "f64"):
        if value.type == type and value.bits is not None:
            return value.bits.to_bytes(size, "little")
        try:
            return struct.pack("<f" if type == "f32" else "<d", value.value)
        except OverflowError:
            raise _OperandError(f"{value.value} does not fit into .{type}") from None
    if isinstance(value.value, float) or type[0] not in "bus":
        raise _OperandError(f"{value.value} cannot initialise .{type}")
    if not -(1 << 8 * size - 1) <= value.value < 1 << 8 * size:
        raise _OperandError(f"{value.value} does not fit into .{type}")
    return (value.value % (1 << 8 * size)).to_bytes(size, "little")
