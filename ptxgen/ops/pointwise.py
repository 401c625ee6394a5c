"""Pointwise functions: a Python function of values becomes an operation, its kernels and oracle.

:func:`pointwise` makes a :class:`Pointwise` of a function. The dtypes of a call's arrays decide the
formula (:mod:`ptxgen.numerics.pointwise`), and their strides decide the kernel
(:mod:`ptxgen.spec.pointwise`); kernels are made when they are first needed.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any
from weakref import WeakValueDictionary

from ptxgen.errors import DtypeError, FormulaError, OptionError, ShapeError
from ptxgen.numerics import pointwise as numerics
from ptxgen.numerics.dtype import FULL, NAMES, STORABLE, name_of
from ptxgen.numerics.formula import DIFFERENTIABLE, STORED, Formula, Node, cast, const, trace
from ptxgen.numerics.gradient import gradients
from ptxgen.numerics.option import DtypeName
from ptxgen.numerics.signature import broadcast
from ptxgen.ops.pointwise_table import INNER, ROWS
from ptxgen.ops.views import alignment, results
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import Builder, ProgramBuilder
from ptxgen.program.invoke import Number, numbers_of
from ptxgen.program.launch import serving
from ptxgen.program.operation import Backward, Gradients, Op, lowering
from ptxgen.program.parameters import OPERAND, Parameter, outward
from ptxgen.program.step import Operand
from ptxgen.runtime.strided import spread
from ptxgen.spec import Problem
from ptxgen.spec.abi import PARAMETERS_MAX
from ptxgen.spec.pointwise import BESIDE, RANK_MAX, Form, PointwiseSpec, loop_parameters, vectors

TABLE = ("pointwise",)
NODES_MAX = 20_000
"""Most operations of one formula. Compile time grows faster than the length, and takes some seconds
at this one."""
TILED_MAX = 4
"""Most arrays of a kernel whose innermost loop is tiled (:meth:`LoopNest._tile_innermost`): the
strides of more arrays are too many kernel parameters."""
_NAMED = ("out", "out_dtype", "stream", "kernel")
"""Keyword arguments of every call, besides the function's own arguments."""
_BITS = struct.Struct("<Q")
_by_key: WeakValueDictionary[str, Pointwise] = WeakValueDictionary()
_count = itertools.count()


class Pointwise(Op):
    """Operation that applies a Python function to each element (:func:`ptxgen.pointwise`)."""

    typed_each = True

    def __init__(
        self,
        function: Callable[..., Any],
        name: str = "",
        names: tuple[str, ...] = (),
        *,
        says: str = "",
        autograd: Callable[..., Any] | None = None,
        public: bool = False,
        known: Mapping[str, str] = NAMES,
    ) -> None:
        if not callable(function):
            raise FormulaError(f"function is {function!r}; takes a function of values")
        name = name or getattr(function, "__name__", type(function).__name__)
        self.known = known
        """Dtypes that arrays may have, full name to short name."""
        arguments, self.defaults = (names, {}) if names else _arguments(function, name)
        super().__init__(
            self._lowered,
            name=name,
            oracle=self.reference,
            vjp=self._vjp,
            backwards=True,
            autograd=autograd,
            public=public,
            takes=self._parameters(arguments),
        )
        functools.update_wrapper(self, function)
        self.__name__ = self.__qualname__ = name
        self.__doc__ = says or function.__doc__
        self.formulated, self.arguments = function, arguments
        self.key = f"{name}.{next(_count)}"
        """Name of the function that is unique in the process."""
        self._formulas: dict[Any, Formula] = {}
        self._first: tuple[Any, ...] | None = None
        self._gradients: dict[tuple[tuple[bool, ...], int], Pointwise] = {}
        _by_key[self.key] = self

    def _parameters(self, arguments: tuple[str, ...]) -> tuple[Parameter, ...]:
        given = (
            Parameter(n, OPERAND, **({"default": self.defaults[n]} if n in self.defaults else {}))
            for n in arguments
        )
        return (
            *given,
            *outward(DtypeName(tuple(self.known), several=True), arguments),
        )

    def __repr__(self) -> str:
        return f"<pointwise {self.name}({', '.join(self.arguments)})>"

    @property
    def doc(self) -> str:
        return self.__doc__ or f"``{self.name}`` of each element."

    def of_values(self, given: Mapping[str, Any]) -> Any:
        """Returns the function's result as a formula node if an argument in ``given`` is a node, so
        that formulas can call it; else returns NotImplemented.
        """
        values = [given[n] for n in self.arguments]
        if not any(isinstance(v, Node) for v in values):
            return NotImplemented
        return self.formulated(*values)

    def reference(self, /, *args: Any, out_dtype: Any = None, **named: Any) -> Any:
        """Computes the function with NumPy; the bits are those of the kernels."""
        import numpy as np

        from ptxgen.oracle import formula as oracle

        args = self._ordered(args, named)
        which = numbers_of(args)
        arrays = [None if n else np.asarray(a) for a, n in zip(args, which, strict=True)]
        if all(a is None for a in arrays):
            raise DtypeError(f"{self.name} takes at least one array; got only numbers")
        dtypes = tuple(
            None if a is None else short(a.dtype.name, name, self.known)
            for a, name in zip(arrays, self.arguments, strict=True)
        )
        wanted = DtypeName(tuple(self.known), several=True).read("out_dtype", out_dtype)
        found = self.formula(dtypes, wanted)
        given: dict[str, Any] = {}
        for i in found.inputs:
            at = int(i.name[1:])
            array = arrays[at]
            if array is None:
                with _naming(self.arguments[at]):
                    word = numerics.number(i.dtype, args[at])
                kind = "f64" if i.dtype in ("f32", "f64") else i.dtype
                array = np.frombuffer(word, oracle.KINDS[kind], 1)[0]
            given[i.name] = array
        try:
            shape = np.broadcast_shapes(*(a.shape for a in arrays if a is not None))
        except ValueError:
            shapes = [list(a.shape) for a in arrays if a is not None]
            raise ShapeError(f"arrays of shapes {shapes} do not broadcast") from None
        with np.errstate(all="ignore"):
            values = oracle.results(found, given)
        made = tuple(np.array(np.broadcast_to(v, shape)) for v in values)
        return made[0] if len(made) == 1 else made

    def formula(self, dtypes: tuple[str | None, ...], wanted: Any = None) -> Formula:
        """Returns the formula for arrays of short ``dtypes`` (None for a scalar) and result dtypes
        ``wanted``.

        Raises FormulaError if the function computes something else than when it was first traced,
        for instance because a value that it closes over has changed.
        """
        key = dtypes, wanted
        found = self._formulas.get(key)
        if found is None:
            to = _short(wanted)
            if self._first is not None:
                again = numerics.formula(self.formulated, self.arguments, *self._first[:2])
                if again.digest != self._first[2]:
                    raise FormulaError(
                        f"{self.name} computes something else than when it was first called: a "
                        "value that it reads from outside has changed; pass that as an argument, "
                        "or make a new function"
                    )
            found = numerics.formula(self.formulated, self.arguments, dtypes, to)
            if found.size > NODES_MAX:
                raise FormulaError(
                    f"{self.name} has {found.size} operations; a kernel has at most "
                    f"{NODES_MAX}: compute in several steps"
                )
            self._first = self._first or (dtypes, to, found.digest)
            self._formulas[key] = found
        return found

    def gradient(self, needs: tuple[bool, ...], count: int = 1) -> Pointwise:
        """Returns the function that computes the gradients by the arguments whose flag in ``needs``
        is set. It takes the arguments, then the gradients of the ``count`` results.
        """
        found = self._gradients.get((needs, count))
        if found is None:
            found = self._gradients[needs, count] = _gradient(self, needs, count)
        return found

    def kernels(self, /, *args: Any, **named: Any) -> tuple[str, ...]:
        """Returns the names that ``kernel=`` accepts for a call with these arguments, the chosen
        kernel first. They differ in speed alone.
        """
        given = dict(zip(self.arguments, self._ordered(args, named), strict=True))
        call, lowered = lowering(self, given)
        steps = lowered.program.steps
        return tuple(route.name for s in steps for route in serving(s.problem, call.device.sms))

    def _ordered(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Returns all arguments in order; raises OptionError for missing or unknown ones."""
        given = dict(zip(self.arguments, args, strict=False))
        unknown = [n for n in named if n not in self.arguments or n in given]
        given = {**self.defaults, **given, **named}
        missing = [n for n in self.arguments if n not in given]
        if unknown or missing or len(args) > len(self.arguments):
            raise OptionError(
                f"{self.name} takes {', '.join(self.arguments)}; got {len(args)} arguments"
                + (f", not {', '.join(missing)}" if missing else "")
                + (f", and {', '.join(unknown)}" if unknown else "")
            )
        return tuple(given[n] for n in self.arguments)

    # -- lowering -------------------------------------------------------------------------------
    def _lowered(self, b: ProgramBuilder, /, *args: Any, **named: Any) -> Any:
        """Records the launch of the function's kernel, and returns its results."""
        all = self.bound(args, named)
        given, out, out_dtype = [all[n] for n in self.arguments], all["out"], all["out_dtype"]
        dtypes = tuple(
            short(x.dtype, n, self.known) if isinstance(x, Buffer) else None
            for x, n in zip(given, self.arguments, strict=True)
        )
        if out_dtype is None and out is not None:
            several = out if isinstance(out, tuple) else (out,)
            out_dtype = tuple(FULL[short(o.dtype, "out", self.known)] for o in several)
        try:
            formula = self.formula(dtypes, out_dtype)
        except FormulaError as error:
            each = zip(self.arguments, dtypes, strict=True)
            of = ", ".join(f"{n} is {'a number' if d is None else FULL[d]}" for n, d in each)
            raise FormulaError(f"{error}\n    called with: {of}") from error
        shape: tuple[int, ...] = ()
        joined: list[str] = []
        for name, x in zip(self.arguments, given, strict=True):
            if isinstance(x, Buffer):
                shape = _broadcast(name, joined, shape, x)
                joined.append(name)
        names = ("out",) if len(formula.outputs) == 1 else [f"out[{i}]" for i in range(99)]
        memory = zip(formula.outputs, results(out, len(formula.outputs)), names, strict=False)
        targets = tuple(b.result(shape, FULL[o.dtype], m, n) for o, m, n in memory)
        type = numerics.scalar_type([d for d in dtypes if d is not None])
        bind: dict[str, Operand] = {}
        for i in sorted(formula.inputs, key=lambda i: int(i.name[1:])):
            at = int(i.name[1:])
            x = given[at]
            bind[i.name] = x if isinstance(x, Buffer) else _word(self.arguments[at], type, x)
        if prod(shape):
            bind |= {numerics.result(i): t for i, t in enumerate(targets)}
            b.launch(
                lambda: problem(self.name, formula, shape, bind, len(targets)), bind, all["kernel"]
            )
        return targets[0] if len(targets) == 1 else targets

    def _vjp(self, b: Builder, at: Backward) -> Gradients:
        """Returns the gradients by the arguments in ``at.needs`` that are arrays of floats or
        complex numbers. One kernel computes all of them; gradients by arguments that were broadcast
        are then summed to their shapes.
        """
        values = [at[n] for n in self.arguments]
        plain = numbers_of(values)
        needs = tuple(
            n in at.needs and not number and STORED[STORABLE[b.dtype(x)]] in DIFFERENTIABLE
            for n, x, number in zip(self.arguments, values, plain, strict=True)
        )
        of = {n: x for n, x, needed in zip(self.arguments, values, needs, strict=True) if needed}
        if not of:
            return {}
        shape = tuple(at.dys[0].shape)
        # Gradients that are summed over broadcast dimensions are rounded after the sum.
        dtypes = tuple(
            b.dtype(x) if tuple(x.shape) == shape else FULL[STORED[STORABLE[b.dtype(x)]]]
            for x in of.values()
        )
        function = self.gradient(needs, len(at.dys))
        made = b.call(function, *values, *at.dys, out_dtype=dtypes)
        several = made if isinstance(made, tuple | list) else (made,)
        return {
            n: g if tuple(x.shape) == shape else b.cast(b.summed_to(g, x.shape), b.dtype(x))
            for (n, x), g in zip(of.items(), several, strict=True)
        }


@contextmanager
def _naming(argument: str) -> Iterator[None]:
    """Context that puts the argument's name before a DtypeError about a scalar."""
    try:
        yield
    except DtypeError as error:
        raise DtypeError(f"{argument}: {error}") from error


def _word(argument: str, type: str, value: Any) -> Operand:
    """Encodes the Python scalar ``value`` as the 8 bytes (an integer) that kernels convert to
    ``type``, such as "f32". ``argument``: its name, for messages. For a :class:`Number`, whose
    value differs from call to call, returns an operand that encodes it in each call.
    """
    encode = _encoder(type, argument)
    return value.scalar(encode) if isinstance(value, Number) else encode(value)


@functools.cache
def _encoder(type: str, argument: str) -> Callable[[Any], int]:
    """Returns a function that encodes a Python scalar as the 8 bytes (an integer) that kernels
    convert to ``type``. Its DtypeErrors name the argument.
    """
    bits, number = _BITS.unpack, numerics.number

    def exactly(value: Any) -> int:
        try:
            return int(bits(number(type, value))[0])
        except DtypeError as error:
            raise DtypeError(f"{argument}: {error}") from error

    if type not in ("f32", "f64"):
        return exactly
    pack = struct.Struct("<d").pack

    def encode(value: Any) -> int:
        try:
            return int(bits(pack(value))[0])
        except (struct.error, OverflowError):
            return exactly(value)

    return encode


def _broadcast(
    name: str, joined: Sequence[str], shape: tuple[int, ...], x: Buffer
) -> tuple[int, ...]:
    found = broadcast(shape, x.shape)
    if found is None:
        raise ShapeError(
            f"{name} has shape {list(x.shape)}, which does not broadcast with {list(shape)}, that "
            f"of {', '.join(joined)}"
        )
    return found


def problem(
    name: str, formula: Formula, shape: tuple[int, ...], bind: Mapping[str, Operand], count: int
) -> Problem:
    """Returns the problem of a pointwise formula over arrays that are broadcast to ``shape``: its
    loops, strides and vectors. ``bind``: the arguments and results by name (arrays and scalars);
    ``count``: number of results, the last arrays; ``name``: the function's, for messages.
    """
    arrays = {n: b for n, b in bind.items() if isinstance(b, Buffer)}
    used = [i.name for i in formula.inputs if i.kind != "scalar"]
    used += [o.name for o in formula.outputs]
    for each in used:
        alignment(each, arrays[each], 0)
    strides = [_stretched(arrays[each], shape) for each in used]
    first = len(used) - count
    sizes, steps = collapse(shape, strides, first)
    loops = LoopNest([arrays[each] for each in used], sizes, steps, first)
    step, blocks = loops.step(*vectors(formula))
    sets = {each: i for i, each in enumerate(dict.fromkeys(loops.accesses))}
    letters = "".join(letter for letter, _ in sets)
    form = _form(formula, tuple(sets[each] for each in loops.accesses), letters, len(loops.sizes))
    side = form.side if blocks else 0
    in_place = False
    if form.factor is not None:
        x, y = arrays[form.factor[0]], arrays[used[first]]
        in_place = x.memory is y.memory and x.offset == y.offset
    scalars = loop_parameters(loops.sizes, [steps for _, steps in sets], form.vector, side)
    _fits(name, form, shape)
    total = prod(shape)
    values = {
        "COUNT": total,
        "CHUNKS": -(-total // form.vector),
        "BLOCKS": blocks,
        "RANK": len(loops.sizes),
        "STEP": step,
        "FACTOR": int(in_place),
    }
    given, what = ((k.upper(), v) for k, v in scalars.items()), f"{name} of shape {list(shape)}"
    return Problem(TABLE, form, tuple(values.items()), tuple(given), what)


_form = functools.lru_cache(maxsize=4096)(Form)
"""Makes the :class:`Form` for which a kernel is compiled; cached. A form does not contain sizes."""


@functools.lru_cache(maxsize=4096)
def _bytes(form: Form) -> int:
    """Returns the size of the parameters of a kernel of ``form``, in bytes."""
    return PointwiseSpec("wide", form).abi.size


def _fits(name: str, form: Form, shape: tuple[int, ...]) -> None:
    """Raises ShapeError for a form with more dimensions or strides than a kernel can take."""
    if form.rank > RANK_MAX or _bytes(form) > PARAMETERS_MAX:
        raise ShapeError(
            f"{name}: arrays of shape {list(shape)} lie in {form.rank} dimensions of "
            f"uneven strides, in {len(form.steps)} ways; a kernel takes {RANK_MAX} dimensions "
            f"and {PARAMETERS_MAX} bytes of parameters: pass contiguous copies"
        )


def collapse(
    shape: tuple[int, ...], strides: Sequence[tuple[int, ...]], first: int
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Merges dimensions that are evenly spaced in all arrays. Returns the sizes, and the strides of
    each array, innermost dimension first: by ascending stride of array ``first``.
    """
    order = [i for i, size in enumerate(shape) if size > 1]
    order.sort(key=lambda i: abs(strides[first][i]))
    sizes: list[int] = []
    steps: list[list[int]] = []
    for i in order:
        step = [s[i] for s in strides]
        if sizes and all(a == b * sizes[-1] for a, b in zip(step, steps[-1], strict=True)):
            sizes[-1] *= shape[i]
            continue
        sizes.append(shape[i])
        steps.append(step)
    if not sizes:
        return (1,), ((1,),) * len(strides)
    return tuple(sizes), tuple(zip(*steps, strict=True))


def _stretched(array: Buffer, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the strides of an array that is broadcast to ``shape``: 0 along new dimensions."""
    found = spread(array.shape, array.strides, shape)
    assert found is not None, "shapes have been joined"
    return found


class LoopNest:
    """Nested loops over the elements of the arrays ``views``, innermost loop first. ``sizes``:
    number of iterations of each loop; ``steps``: for each array, its stride in each loop, in
    elements; ``first``: index of the first result in ``views``, which holds arguments, then
    results.
    """

    accesses: tuple[tuple[str, tuple[int, ...]], ...]
    """Access letter (:attr:`Form.steps`) and strides of each array; set by :meth:`step`."""

    def __init__(
        self,
        views: Sequence[Buffer],
        sizes: tuple[int, ...],
        steps: Sequence[tuple[int, ...]],
        first: int,
    ) -> None:
        self.views, self.sizes, self.steps, self.first = views, sizes, tuple(steps), first

    def step(self, vector: int, side: int) -> tuple[int, int]:
        """Orders or tiles the loops for coalesced accesses. Returns the route variables STEP (0:
        any strides along the innermost dimension; 2: aligned vectors of results; 3: each thread
        transposes a square block) and BLOCKS (number of threads that do so, else 0). ``vector``:
        elements of a vector; ``side``: elements along a side of a square block.
        """
        whole = len(self.sizes) == 1 or self.sizes[0] % vector == 0
        letters = self._letters(vector)
        if "s" in letters and (blocks := self._blocks(side)):
            return 3, blocks
        found = (2, 0) if whole and letters[self.first] == "v" else (0, 0)
        if found[0] and "s" in letters:
            self._tile_innermost(2 * vector)
        self.accesses = tuple(zip(letters, self.steps, strict=True))
        return found

    def _tile_innermost(self, length: int) -> None:
        """Splits the innermost loop into tiles of ``length`` elements (for 16-bit results a
        sector), and moves another loop between the loop within a tile and that over tiles: one
        along which an array has unit stride. So neighbouring threads read neighbouring elements of
        that array. Does nothing if there is no such loop, or if the sizes do not allow it.
        """
        along = [s.index(1) for s in self.steps if s[0] not in (0, 1) and 1 in s]
        if not along or self.sizes[0] <= length or self.sizes[0] % length:
            return
        if len(self.sizes) == RANK_MAX or len(self.steps) > TILED_MAX:
            return
        other = along[0]

        def tiled(given: tuple[int, ...], within: int, beyond: int) -> tuple[int, ...]:
            rest = (x for i, x in enumerate(given) if i not in (0, other))
            return (within, given[other], beyond, *rest)

        self.steps = tuple(tiled(s, s[0], s[0] * length) for s in self.steps)
        self.sizes = tiled(self.sizes, length, self.sizes[0] // length)

    def _letters(self, length: int) -> list[str]:
        """Returns each array's access letter along the innermost dimension: "u" stride 0, "v"
        aligned vectors of ``length`` elements, "s" any stride.
        """
        pairs = zip(self.views, self.steps, strict=True)
        return [
            "u" if s[0] == 0 else "v" if s[0] == 1 and _aligned(v, s, 0, length) else "s"
            for v, s in pairs
        ]

    def _blocks(self, side: int) -> int:
        """Arranges the loops such that each thread transposes a square block of ``side * side``
        elements, whose dimensions become the first two. Returns the number of threads; or 0, and
        changes nothing, if strides or sizes do not allow that.
        """
        for other in range(1, len(self.sizes)):
            if any(s[0] not in (0, 1) and s[other] != 1 for s in self.steps):
                continue
            if side == 1 or self.sizes[0] % side or self.sizes[other] % side:
                return 0
            order = (0, other, *(i for i in range(1, len(self.sizes)) if i != other))
            steps = tuple(tuple(s[i] for i in order) for s in self.steps)
            letters = ["w" if s[0] not in (0, 1) else "uv"[s[0]] for s in steps]
            for array, step, letter in zip(self.views, steps, letters, strict=True):
                if letter != "u" and not _aligned(array, step, int(letter == "w"), side):
                    return 0
            self.sizes, self.steps = tuple(self.sizes[i] for i in order), steps
            self.accesses = tuple(zip(letters, steps, strict=True))
            wide, high, *rest = self.sizes
            around = -(-(high // side) // BESIDE) * BESIDE
            return wide // side * around * prod(rest)
        return 0


def _aligned(array: Buffer, steps: tuple[int, ...], along: int, length: int) -> bool:
    """Whether all vectors of ``length`` elements of ``array`` along dimension ``along`` are
    aligned, to their size or to 16 bytes. ``steps``: strides of the array, in elements.
    """
    low = array.address
    for dimension, each in enumerate(steps):
        if dimension != along:
            low |= each * array.itemsize
    return low % min(16, length * array.itemsize) == 0


def short(dtype: str, name: str, known: Mapping[str, str] = NAMES) -> str:
    """Returns the short name of argument ``name``'s dtype; DtypeError unless it is ``known``."""
    if dtype not in known:
        raise DtypeError(f"{name} has dtype {dtype}; takes {', '.join(known)}")
    return known[dtype]


def short_name(dtype: Any) -> str:
    """Returns the short name of a dtype: of a short or full name, or a framework's dtype."""
    if isinstance(dtype, str) and dtype in FULL:
        return dtype
    return STORABLE[name_of(dtype, "dtype", STORABLE)]


def _short(wanted: Any) -> Any:
    """Returns the short names of result dtypes: of one, of a tuple, or None for None."""
    if wanted is None or isinstance(wanted, str):
        return None if wanted is None else STORABLE[wanted]
    return tuple(None if d is None else STORABLE[d] for d in wanted)


def named(key: str) -> Pointwise:
    """Returns the function with this :attr:`Pointwise.key`; OptionError if it no longer exists."""
    found = _by_key.get(key)
    if found is None:
        raise OptionError(f"the pointwise function {key!r} is no longer there: keep it")
    return found


def operation(name: str) -> Pointwise:
    """Returns the pointwise operation ``name``: a table row, ``fill``, or a cast such as
    ``cast_bf16``.
    """
    kind, _, dtype = name.partition("_")
    if kind == "cast" and dtype in FULL:
        return Pointwise(functools.partial(cast, dtype=dtype), name, ("x",), known=STORABLE)
    row = next(row for row in (*ROWS, *INNER) if row.name == name)
    return Pointwise(row.formula, name, says=row.doc, known=row.dtypes)


def _gradient(of: Pointwise, needs: tuple[bool, ...], count: int) -> Pointwise:
    arguments = len(of.arguments)

    def function(**given: Node) -> tuple[Node, ...]:
        values = tuple(given.values())
        given_, seeds = values[:arguments], values[arguments:]
        found = trace(of.formulated, dict(zip(of.arguments, given_, strict=True)))
        wanted = [a for a, need in zip(given_, needs, strict=True) if need]
        made = gradients(found, seeds, wanted)
        pairs = zip(made, wanted, strict=True)
        return tuple(const(0.0, w.type) if g is None else g for g, w in pairs)

    head = "gradient_"
    while any(n.startswith(head) for n in of.arguments):
        head = f"_{head}"
    names = (*of.arguments, *(f"{head}{arguments + i}" for i in range(count)))
    return Pointwise(function, f"{of.name}_gradient", names, autograd=of.autograd, known=of.known)


def _arguments(function: Callable[..., Any], name: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Returns the names of a function's arguments, and the defaults of those that have one."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise FormulaError(f"{name}: function has no signature that can be read: {error}") from None
    for each in found:
        if each.name in _NAMED:
            raise FormulaError(f"{name}: no argument can be called {each.name}, as calls take that")
    plain = [p for p in found if p.kind is p.POSITIONAL_OR_KEYWORD]
    if len(plain) < len(found):
        raise FormulaError(f"{name}: takes arguments by name and position, no * or **")
    return (
        tuple(p.name for p in plain),
        {p.name: p.default for p in plain if p.default is not p.empty},
    )
