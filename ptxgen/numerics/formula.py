"""Formulas: computations on elements, or on rows, as expression graphs.

A formula is a graph of :class:`Node`. Calling a Python function with nodes builds one
(:func:`trace`). From it follow the kernel's source (:mod:`ptxgen.spec.formula`), the oracle
(:mod:`ptxgen.oracle.formula`) and the gradient (:mod:`ptxgen.numerics.gradient`), so that a
sequence of operations is written once.

Bits
----
Every node is one operation, which IEEE 754 (or two's complement arithmetic) defines to the bit:
one rounding to nearest even in the node's type, subnormals kept. Nothing is contracted or
reordered. Inf and NaN are as in IEEE 754, and any NaN equals any NaN. Floats of 16 and 8 bits are
converted to f32 (exactly) when read, and results are rounded once to their dtype when written;
integers of 8 bits are read as i32, and results keep their low bits.

- ``max`` and ``min`` give a NaN if either operand is one, and order +0.0 above -0.0.
- ``convert`` from a float to an integer truncates and saturates; a NaN gives 0. From an integer to
  a narrower one it keeps the low bits; a bool gives 0 or 1.
- Rounding to e4m3 (FN, which has no Inf) saturates: larger magnitudes, Inf among them, give 448.
  Rounding to e5m2 gives Inf for magnitudes from 61440 on. The NaN of both is 0x7f. A result that
  is an input of the same 8-bit dtype is moved bit by bit.
- Shifts take their count modulo the width; right shifts are arithmetic.
- Functions (:mod:`ptxgen.numerics.functions`) are formulas themselves.
- A complex value is a pair of floats, made by "complex" and read by "real" and "imag". Operators on
  complex values are formulas of these (:mod:`ptxgen.numerics.complex`).

Levels
------
A node's level says how many values it has: ``"element"``, one for each element of a row; ``"row"``,
one for each row; ``"all"``, one in total (constants, scalars). :meth:`Node.reduce` reduces elements
to a row's value: ``"sum"`` and ``"prod"`` in the order of contract ``rows/1``
(:mod:`ptxgen.numerics.reduction_order`); the order of ``"max"`` and ``"min"`` changes no bit.
"""

from __future__ import annotations

import hashlib
import inspect
import struct
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any
from weakref import WeakValueDictionary

from ptxgen.errors import DtypeError, FormulaError, described

FLOATS = ("f32", "f64")
INTEGERS = ("i32", "i64")
COMPLEX = {"c64": "f32", "c128": "f64"}
"""Complex types, with the type of the real and of the imaginary part."""
DIFFERENTIABLE = (*FLOATS, *COMPLEX)
"""Types of values that have gradients."""
TYPES = (*FLOATS, *INTEGERS, "bool", *COMPLEX)
"""Types of a node's value, in which it computes."""
STORED = {
    "f16": "f32",
    "bf16": "f32",
    "f32": "f32",
    "f64": "f64",
    "i32": "i32",
    "i64": "i64",
    "bool": "bool",
    "u8": "i32",
    "i8": "i32",
    "e4m3": "f32",
    "e5m2": "f32",
    "c64": "c64",
    "c128": "c128",
}
"""Compute type of each array dtype (short names): floats of 16 and 8 bits compute in f32, integers
of 8 bits in i32."""
BYTE_RANGES = {"u8": (0, 255), "i8": (-128, 127)}
"""Least and largest value of the 8-bit integers, by short dtype."""
LEVELS = ("all", "row", "element")
KINDS = {"element": "element", "column": "element", "row": "row", "scalar": "all"}
"""Level of each kind of input, which says how many values it has for a row: see the module's
docstring. An input of kind "element" has one value per element, "column" one per column (shared by
all rows), "row" one per row, and "scalar" one in total."""
REDUCERS = ("sum", "prod", "max", "min")

_NUMBER, _BITS = (*FLOATS, *INTEGERS), (*INTEGERS, "bool")
PRIMITIVES: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "add": (2, _NUMBER),
    "sub": (2, _NUMBER),
    "mul": (2, _NUMBER),
    "div": (2, FLOATS),
    "fma": (3, FLOATS),
    "sqrt": (1, FLOATS),
    "neg": (1, _NUMBER),
    "abs": (1, _NUMBER),
    "max": (2, _NUMBER),
    "min": (2, _NUMBER),
    "floor": (1, FLOATS),
    "ceil": (1, FLOATS),
    "trunc": (1, FLOATS),
    "round": (1, FLOATS),  # to even
    "and": (2, _BITS),
    "or": (2, _BITS),
    "xor": (2, _BITS),
    "not": (1, _BITS),
    "shl": (2, INTEGERS),
    "shr": (2, INTEGERS),
}
"""Operations whose operands and result have the same type: the number of operands, and the types
allowed."""

_interned: WeakValueDictionary[tuple[Any, ...], Node] = WeakValueDictionary()


class Node:
    """A node of a formula: one operation, or a leaf. Equal nodes are one object (hash consing).

    ``args``: the operands; ``type``: one of TYPES; ``level``: one of LEVELS. ``op``: a key of
    PRIMITIVES, a comparison ("eq", "ne", "lt", "le", "gt", "ge"), "select" (condition, then, else),
    "convert", "round_to" (rounds to the dtype ``data`` of 16 or 8 bits, kept in its compute type),
    "bits" (bit cast of a float to an integer), "float" (the reverse), "complex" (of a real and an
    imaginary part), "real" and "imag" (a complex value's parts), "call" (``data``: a
    :class:`Function`), "reduce" (``data``: one of REDUCERS). Leaves: "input" (``data``: an
    :class:`Input`), "const" (``data``: its value), "index" (the element's index in its row, i64),
    "length" (the row's number of elements, i64).
    """

    __slots__ = ("__weakref__", "args", "data", "level", "op", "type")

    op: str
    args: tuple[Node, ...]
    type: str
    data: Any
    level: str

    def __new__(cls, op: str, args: tuple[Node, ...], type: str, data: Any = None) -> Node:
        identity = (op, *map(id, args), type, _data_text(data))  # by id: nodes compare to nodes
        found = _interned.get(identity)
        if found is None:
            found = object.__new__(cls)
            found.op, found.args, found.type, found.data = op, args, type, data
            found.level = _level(op, args, data)
            _interned[identity] = found
        return found

    def __repr__(self) -> str:
        return f"<{self.type} {self.op} {_data_text(self.data)}>"

    # -- arithmetic: Python numbers take the other operand's type ----------------------------
    def __add__(self, other: Any) -> Node:
        return primitive("add", self, other)

    def __radd__(self, other: Any) -> Node:
        return primitive("add", other, self)

    def __sub__(self, other: Any) -> Node:
        return primitive("sub", self, other)

    def __rsub__(self, other: Any) -> Node:
        return primitive("sub", other, self)

    def __mul__(self, other: Any) -> Node:
        return primitive("mul", self, other)

    def __rmul__(self, other: Any) -> Node:
        return primitive("mul", other, self)

    def __truediv__(self, other: Any) -> Node:
        return primitive("div", self, other)

    def __rtruediv__(self, other: Any) -> Node:
        return primitive("div", other, self)

    def __neg__(self) -> Node:
        return primitive("neg", self)

    def __pos__(self) -> Node:
        return self

    def __abs__(self) -> Node:
        return primitive("abs", self)

    def __and__(self, other: Any) -> Node:
        return primitive("and", self, other)

    def __rand__(self, other: Any) -> Node:
        return primitive("and", other, self)

    def __or__(self, other: Any) -> Node:
        return primitive("or", self, other)

    def __ror__(self, other: Any) -> Node:
        return primitive("or", other, self)

    def __xor__(self, other: Any) -> Node:
        return primitive("xor", self, other)

    def __rxor__(self, other: Any) -> Node:
        return primitive("xor", other, self)

    def __invert__(self) -> Node:
        return primitive("not", self)

    def __lshift__(self, other: Any) -> Node:
        return primitive("shl", self, other)

    def __rshift__(self, other: Any) -> Node:
        return primitive("shr", self, other)

    def __lt__(self, other: Any) -> Node:
        return compare("lt", self, other)

    def __le__(self, other: Any) -> Node:
        return compare("le", self, other)

    def __gt__(self, other: Any) -> Node:
        return compare("gt", self, other)

    def __ge__(self, other: Any) -> Node:
        return compare("ge", self, other)

    def __eq__(self, other: Any) -> Any:
        return compare("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        return compare("ne", self, other)

    __hash__ = object.__hash__

    def __pow__(self, other: Any) -> Node:
        return OPERATORS["**"](self, other)

    def __rpow__(self, other: Any) -> Node:
        return OPERATORS["**"](other, self)

    def __bool__(self) -> bool:
        raise FormulaError(
            "a formula's value has no truth value: use where(condition, a, b) in place of if, and "
            "&, |, ~ in place of and, or, not"
        )

    def _refuse_conversion(self) -> Any:
        raise FormulaError(
            "a formula's value is no number yet: call functions of ptxgen.functions, not of math "
            "or NumPy"
        )

    __float__ = __int__ = __index__ = __len__ = __iter__ = _refuse_conversion
    __array__: Any = None  # NumPy's operators leave it alone
    __array_ufunc__ = None

    def reduce(self, how: str) -> Node:
        """Returns the node's reduction over each row; ``how`` is one of REDUCERS."""
        if how not in REDUCERS:
            raise FormulaError(f"reduce takes {', '.join(REDUCERS)}; got {how!r}")
        if self.type not in _NUMBER:
            raise FormulaError(f"{how} takes real numbers; got {self.type}: convert it")
        return Node("reduce", (self,), self.type, how)


OPERATORS: dict[str, Callable[..., Node]] = {}
"""Implementations of operators on nodes for which this module would import others:
:mod:`ptxgen.numerics.functions` adds ``**``, and :mod:`ptxgen.numerics.complex` the operations of
complex values, by their names in PRIMITIVES ("eq" and "ne", too)."""


def _data_text(data: Any) -> str:
    """Returns a text of a node's ``data``: exact for floats, and the same in every process."""
    if isinstance(data, float):
        return data.hex() if data == data else "nan"
    return str(data)


def _level(op: str, args: tuple[Node, ...], data: Any) -> str:
    if op == "reduce" or op == "length":
        return "row"
    if op == "index":
        return "element"
    if op == "input":
        return KINDS[data.kind]
    return max((a.level for a in args), key=LEVELS.index, default="all")


@dataclass(frozen=True)
class Input:
    """An array or a scalar that a formula reads.

    ``dtype``: a key of STORED; ``kind``: a key of KINDS, such as "element" (a value per element).
    """

    name: str
    dtype: str
    kind: str = "element"

    def __str__(self) -> str:
        return f"{self.name}:{self.dtype}:{self.kind}"


@dataclass(frozen=True, eq=False)
class Function:
    """A named formula of operands of one type, which kernels compile to a device function.

    ``body``: builds the result from nodes; ``arity``: number of operands; ``types``: types that
    they may have. ``slope``: builds the derivatives by each operand from the operands and the
    result; None if there is no derivative. ``rare``: whether the result is a rarely selected
    operand of ``select``; kernels then branch, and compute it only if selected. ``bounds``: builds
    two bounds of the result, in either order, much cheaper than the result and with the same sign
    of zero; where both round to the same 16-bit value, so does the result. ``pullback``: builds the
    gradients by each operand from the gradient by the result, the operands and the result; takes
    the place of ``slope``.
    """

    name: str
    body: Callable[..., Node]
    arity: int
    slope: Callable[..., tuple[Node, ...]] | None = None
    types: tuple[str, ...] = ("f32",)
    rare: bool = False
    bounds: Callable[..., tuple[Node, Node]] | None = None
    pullback: Callable[..., tuple[Node, ...]] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.body.__doc__)

    def __str__(self) -> str:
        return self.name

    def __call__(self, *operands: Any) -> Node:
        args = unify(self.name, operands)
        if args[0].type not in self.types:
            raise FormulaError(
                f"{self.name} takes {' or '.join(self.types)}; got {args[0].type}: cast it"
            )
        return Node("call", args, args[0].type, self)

    def formula(self, type: str) -> tuple[tuple[Node, ...], Node]:
        """Returns the function's parameters, as input nodes of ``type``, and its result node."""
        found = _bodies.get((self, type))
        if found is None:
            names = (f"x{i}" for i in range(self.arity))
            dtype = next(d for d, computed in STORED.items() if computed == type and d == type)
            parameters = tuple(Node("input", (), type, Input(n, dtype)) for n in names)
            found = _bodies[self, type] = parameters, self.body(*parameters)
        return found


def _size(nodes: Iterable[Node]) -> int:
    return sum(_body_size(n.data, n.type) if n.op == "call" else 1 for n in nodes)


@cache
def _body_size(function: Function, type: str) -> int:
    return _size(ordered([function.formula(type)[1]]))


_bodies: dict[tuple[Function, str], tuple[tuple[Node, ...], Node]] = {}


# -- making nodes -----------------------------------------------------------------------------
def const(value: complex | int | bool, type: str) -> Node:
    """Returns a constant node. Floats are rounded once to ``type``; raises FormulaError for a value
    that ``type`` cannot hold.
    """
    if type in COMPLEX:
        whole = complex(value)
        return complex_of(*(const(part, COMPLEX[type]) for part in (whole.real, whole.imag)))
    if isinstance(value, complex):
        raise FormulaError(f"{described(value)} is no {type}")
    if type in FLOATS:
        try:
            value = float(value)
        except OverflowError:
            raise FormulaError(f"{described(value)} is no {type}") from None
        if type == "f32":
            value = _f32(value)
    elif type == "bool" or isinstance(value, bool):
        if type != "bool" or not isinstance(value, bool):
            raise FormulaError(f"a {_type_name(value)} is no {type}")
    else:
        bound = 1 << (31 if type == "i32" else 63)
        if not isinstance(value, int) or not -bound <= value < bound:
            raise FormulaError(f"{described(value)} is no {type}: cast the other operand")
    return Node("const", (), type, value)


def _f32(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def unify(what: str, operands: Iterable[Any]) -> tuple[Node, ...]:
    """Returns ``operands`` as nodes of one type; Python numbers become constants of that type.

    ``what``: the operation, for FormulaError if no operand is a node or types differ.
    """
    given = tuple(operands)
    nodes = [x for x in given if isinstance(x, Node)]
    for x in given:
        if not isinstance(x, Node | bool | int | float):
            raise FormulaError(f"{what} takes values of a formula and numbers; got {_type_name(x)}")
    if not nodes:
        raise FormulaError(f"{what} takes at least one value of the formula; got only numbers")
    types = dict.fromkeys(x.type for x in nodes)
    if len(types) > 1:
        raise FormulaError(
            f"{what} takes operands of one type; got {' and '.join(types)}: cast one"
        )
    (type,) = types
    return tuple(x if isinstance(x, Node) else const(x, type) for x in given)


def _type_name(x: Any) -> str:
    return type(x).__name__


def primitive(op: str, *operands: Any) -> Node:
    """Applies ``op``, a key of PRIMITIVES, to ``operands``; returns a node."""
    if any_complex(operands):
        return _complex_operation(op, operands)
    args = unify(op, operands)
    arity, types = PRIMITIVES[op]
    if len(args) != arity or args[0].type not in types:
        raise FormulaError(
            f"{op} takes {arity} of {' or '.join(types)}; got {', '.join(a.type for a in args)}"
        )
    return Node(op, args, args[0].type)


def compare(op: str, a: Any, b: Any) -> Node:
    """Compares ``a`` and ``b`` by ``op`` ("eq", "lt", ...); returns a bool node."""
    if any_complex((a, b)):
        return _complex_operation(op, (a, b))
    args = unify(op, (a, b))
    if args[0].type == "bool" and op not in ("eq", "ne"):
        raise FormulaError(f"{op} takes numbers; got bool")
    return Node(op, args, "bool")


def fma(a: Any, b: Any, c: Any) -> Node:
    """``a * b + c``, rounded once."""
    return primitive("fma", a, b, c)


def where(condition: Any, a: Any, b: Any) -> Node:
    """Selects ``a`` where ``condition`` holds, else ``b``. Both are computed."""
    if not isinstance(condition, Node) or condition.type != "bool":
        raise FormulaError(f"where takes a condition of type bool; got {condition!r}")
    if not isinstance(a, Node) and not isinstance(b, Node):
        raise FormulaError("where takes at least one value of the formula; cast a number")
    if any_complex((a, b)):
        return _complex_operation("where", (condition, a, b))
    return Node("select", (condition, *unify("where", (a, b))), unify("where", (a, b))[0].type)


def cast(x: Node, dtype: str) -> Node:
    """Converts ``x`` to ``dtype``, a key of STORED; to 16 or 8 bits as a value of its compute type,
    rounded. A float saturates to an integer of any width.
    """
    if dtype not in STORED:
        raise FormulaError(f"cast takes {', '.join(STORED)}; got {dtype!r}")
    type = STORED[dtype]
    if x.type in COMPLEX and type not in COMPLEX:
        raise FormulaError(
            f"cast to {dtype} would drop the imaginary part of a {x.type}; take real(x) or imag(x)"
        )
    if type in COMPLEX:
        parts = (real(x), imag(x)) if x.type in COMPLEX else (x, const(0.0, COMPLEX[type]))
        return complex_of(*(cast(part, COMPLEX[type]) for part in parts))
    if x.type != type:
        x = x if type != "bool" else compare("ne", x, 0)
        cut = x.type in FLOATS and dtype in BYTE_RANGES
        x = x if x.type == type else Node("convert", (x,), type)
        if cut:
            low, high = BYTE_RANGES[dtype]
            x = primitive("min", primitive("max", x, low), high)
    return x if type == dtype else Node("round_to", (x,), type, dtype)


def bits(x: Node) -> Node:
    """Bit-casts a float node to an integer of its size."""
    if x.type not in FLOATS:
        raise FormulaError(f"bits takes {' or '.join(FLOATS)}; got {x.type}")
    return Node("bits", (x,), "i" + x.type[1:])


def from_bits(x: Node) -> Node:
    """Bit-casts an integer node to a float of its size."""
    if x.type not in INTEGERS:
        raise FormulaError(f"from_bits takes {' or '.join(INTEGERS)}; got {x.type}")
    return Node("float", (x,), "f" + x.type[1:])


# -- complex values ---------------------------------------------------------------------------
def any_complex(operands: Iterable[Any]) -> bool:
    """Whether an operand is a complex value, or a Python number with an imaginary part."""
    return any(
        x.type in COMPLEX if isinstance(x, Node) else isinstance(x, complex) for x in operands
    )


def _complex_operation(op: str, operands: tuple[Any, ...]) -> Node:
    found = OPERATORS.get(op)
    if found is None:
        raise FormulaError(
            f"{op} takes no complex values; compute with real(x), imag(x), abs(x) or angle(x)"
        )
    return found(*operands)


def complex_of(re: Node, im: Node) -> Node:
    """Returns the complex node with real part ``re`` and imaginary part ``im``, both f32 or f64."""
    types = {part: type for type, part in COMPLEX.items()}
    if re.type != im.type or re.type not in types:
        raise FormulaError(f"complex takes two of f32 or of f64; got {re.type} and {im.type}")
    if re.op == "real" and im.op == "imag" and re.args == im.args:
        return re.args[0]
    return Node("complex", (re, im), types[re.type])


def real(x: Node) -> Node:
    """Returns the real part of a complex node; another node of numbers as it is."""
    if x.type == "bool":
        raise FormulaError("real takes numbers; got bool")
    if x.type not in COMPLEX:
        return x
    return x.args[0] if x.op == "complex" else Node("real", (x,), COMPLEX[x.type])


def imag(x: Node) -> Node:
    """Returns the imaginary part of a complex node. Raises FormulaError for other nodes."""
    if x.type not in COMPLEX:
        raise FormulaError(f"imag takes a complex value; got {x.type}")
    return x.args[1] if x.op == "complex" else Node("imag", (x,), COMPLEX[x.type])


def index() -> Node:
    """Node of an element's index in its row, from 0, i64."""
    return Node("index", (), "i64")


def length() -> Node:
    """Node of the number of elements of a row, i64."""
    return Node("length", (), "i64")


def read(name: str, dtype: str, kind: str = "element") -> Node:
    """Node that reads input ``name`` of ``dtype``, a key of STORED (DtypeError for others), in its
    compute type. ``kind``: a key of KINDS.
    """
    if dtype not in STORED:
        raise DtypeError(f"{name} has dtype {dtype}; takes {', '.join(STORED)}")
    return Node("input", (), STORED[dtype], Input(name, dtype, kind))


# -- formulas ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class Output:
    """Result of a formula: its name, the dtype it is stored in, and the node of its value.

    ``down``: whether the result is the sum of the values down all rows, one per column, in the
    order of contract ``rows/1``.
    """

    name: str
    dtype: str
    node: Node
    down: bool = False

    def __post_init__(self) -> None:
        if self.dtype not in STORED or STORED[self.dtype] != self.node.type:
            raise FormulaError(
                f"{self.name} is {self.node.type}; {self.dtype} cannot hold it: cast"
            )

    @property
    def moved(self) -> bool:
        """Whether the result is an input of its dtype, and no sum."""
        same = self.node.op == "input" and bool(self.node.data.dtype == self.dtype)
        return same and not self.down

    @property
    def level(self) -> str:
        """Level of the result, which has one value per "row", "element" or "column"."""
        if self.down:
            return "column"
        return "row" if self.node.level == "row" else "element"


@dataclass(frozen=True, eq=False)
class Formula:
    """The computation of a kernel: its results, each a graph of nodes down to inputs.

    Formulas with the same text are equal, whichever Python functions built them.
    """

    outputs: tuple[Output, ...]

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes of the formula, in a deterministic topological order, operands first."""
        return tuple(ordered(o.node for o in self.outputs))

    @cached_property
    def size(self) -> int:
        """Number of operations of the formula; each call of a function counts its whole body."""
        return _size(self.nodes)

    @cached_property
    def work(self) -> int:
        """Number of operations per element of a row: a reduction counts as one, and operations on a
        row's value or on scalars do not count.
        """
        return _size(n for n in self.nodes if n.op == "reduce" or n.level not in ("all", "row"))

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """Arrays and scalars that the formula reads, in the order of their first use."""
        return tuple(n.data for n in self.nodes if n.op == "input")

    @cached_property
    def dtypes(self) -> frozenset[str]:
        """Short dtypes that the formula reads, writes or rounds to."""
        rounded = (n.data for n in self.nodes if n.op == "round_to")
        read, written = (i.dtype for i in self.inputs), (o.dtype for o in self.outputs)
        return frozenset((*rounded, *read, *written))

    @cached_property
    def functions(self) -> tuple[tuple[Function, str], ...]:
        """Functions that the formula calls, directly or not, each with its type, callees first."""
        found: dict[tuple[Function, str], None] = {}

        def visit(nodes: Iterable[Node]) -> None:
            for node in nodes:
                if node.op == "call" and (node.data, node.type) not in found:
                    visit(ordered([node.data.formula(node.type)[1]]))
                    found[node.data, node.type] = None

        visit(self.nodes)
        return tuple(found)

    @cached_property
    def text(self) -> str:
        """The formula as text: one line per node, and the functions that it calls."""
        lines = []
        for function, type in self.functions:
            lines += [f"{function}({type}):", *_lines([function.formula(type)[1]])]
        lines += _lines(o.node for o in self.outputs)
        names = {n: i for i, n in enumerate(self.nodes)}
        for o in self.outputs:
            lines.append(f"{o.name}: {o.dtype} = {'down ' if o.down else ''}v{names[o.node]}")
        return "\n".join(lines)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of :attr:`text`, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def __str__(self) -> str:
        return self.digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def _lines(roots: Iterable[Node]) -> Iterator[str]:
    names: dict[Node, str] = {}
    for i, node in enumerate(ordered(roots)):
        names[node] = f"v{i}"
        data = "" if node.data is None else f" {_data_text(node.data)}"
        args = "".join(f" {names[a]}" for a in node.args)
        yield f"v{i} = {node.type} {node.op}{data}{args}"


def ordered(roots: Iterable[Node], known: Container[Node] = ()) -> list[Node]:
    """Returns the nodes under ``roots`` in topological order, operands first; nodes in ``known``,
    and those reached only through them, are left out.
    """
    found: dict[Node, None] = {}
    for root in roots:
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if node in found or node in known:
                continue
            if ready:
                found[node] = None
            else:
                stack.append((node, True))
                stack.extend((a, False) for a in reversed(node.args) if a not in found)
    return list(found)


def substituted(roots: Iterable[Node], given: Mapping[Node, Node]) -> list[Node]:
    """Rebuilds ``roots``, with each node that is a key of ``given`` replaced by its value."""
    several = tuple(roots)
    found = dict(given)
    for node in ordered(several, found):
        args = tuple(found[a] for a in node.args)
        found[node] = Node(node.op, args, node.type, node.data)
    return [found[root] for root in several]


def trace(function: Callable[..., Any], arguments: Mapping[str, Node]) -> tuple[Node, ...]:
    """Calls ``function`` with nodes by parameter name, and returns its result nodes.

    Raises FormulaError, which quotes the line of ``function`` that cannot be traced.
    """
    try:
        result = function(**arguments)
    except FormulaError as error:
        raise FormulaError(f"{error}{_failing_line(function)}") from error
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise FormulaError(
            f"{_name(function)} cannot be traced: {error}{_failing_line(function)}"
        ) from error
    results = result if isinstance(result, tuple) else (result,)
    for each in results:
        if not isinstance(each, Node):
            raise FormulaError(
                f"{_name(function)} returns {_type_name(each)}; a formula returns values computed "
                "of its arguments, one or a tuple"
            )
    return results


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", str(function))


def _failing_line(function: Callable[..., Any]) -> str:
    """Returns, as text, the line of ``function`` that raised the exception being handled."""
    code, trace = getattr(function, "__code__", None), sys.exc_info()[2]
    line = 0
    while trace is not None:
        if trace.tb_frame.f_code is code:
            line = trace.tb_lineno
        trace = trace.tb_next
    if not line or code is None:
        return ""
    lines, first = [], code.co_firstlineno
    with suppress(OSError):
        lines = inspect.getsourcelines(function)[0]
    text = lines[line - first].strip() if 0 <= line - first < len(lines) else ""
    return f"\n    at {code.co_filename}:{line}: {text}"
