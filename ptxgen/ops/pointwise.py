"""Pointwise functions: a Python function of values becomes a kernel and an oracle.

:func:`pointwise` makes a :class:`Pointwise` of a function. What that is called with decides the
formula (:mod:`ptxgen.numerics.pointwise`), and how the arrays lie which kernel computes it
(:mod:`ptxgen.spec.pointwise`); kernels are made when they are first needed.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NoReturn
from weakref import WeakValueDictionary

from ptxgen.errors import DtypeError, FormulaError, OptionError, ShapeError
from ptxgen.numerics import pointwise as numerics
from ptxgen.numerics.dtype import name_of
from ptxgen.numerics.formula import Formula, Node, cast, trace
from ptxgen.numerics.pointwise import FULL, NAMES
from ptxgen.numerics.signature import Option, Signature
from ptxgen.ops.launch import serving
from ptxgen.ops.op import Op, Options, Question, Result
from ptxgen.ops.run import Caller, as_computed, caller
from ptxgen.ops.views import alignment
from ptxgen.runtime import Call
from ptxgen.runtime.arrays import ArrayView, framework_of, view
from ptxgen.spec import Problem
from ptxgen.spec.pointwise import BESIDE, RANK_MAX, Form, PointwiseSpec, told, vectors

TABLE = ("pointwise",)
PARAMETERS_MAX = 4096
"""Bytes of parameters that CUDA gives every kernel."""
_NAMED = ("out", "out_dtype", "stream", "kernel")
"""What calls take besides the function's own arguments."""
_AS_USUAL = (None, None)
_ONE = (None,)
"""The memory of one result that is not given."""
_BITS = struct.Struct("<Q")
_known: WeakValueDictionary[str, Pointwise] = WeakValueDictionary()
_count = itertools.count()


def pointwise(function: Callable[..., Any]) -> Pointwise:
    """Makes of a function of values an operation on arrays: one kernel, and one oracle.

    Formula
        ``function`` is called once per combination of dtypes, with values of a formula
        (:mod:`ptxgen.numerics.formula`), of which it computes one or a tuple of several with
        operators, :mod:`ptxgen.functions`, and other pointwise functions. It cannot branch on
        values: that is what ``where`` is for.
    Arguments
        Arrays that broadcast, of any strides (negative ones, too), and Python numbers, which are
        given to the kernel at each call. ``out`` may be an argument (in place); of several results
        it is a tuple. ``out_dtype`` is a dtype, or one for each result.
    Dtypes
        float32, float16, bfloat16, float64, int32, int64, bool. 16-bit floats are computed with in
        f32, and operands of one operation are of one type: cast others
        (``ptxgen.functions.cast``). The results have the one dtype of the arrays that are computed
        with in their type, else that type.
    Bits
        Contract ``pointwise/1``: every operation of the function is rounded once, every result once
        more. ``.reference`` computes the same bits with NumPy.
    Gradients
        With PyTorch's tensors that require them: one kernel computes those of all arguments.

    Raises FormulaError, which names the line, for a function that is no formula; ShapeError,
    DtypeError, OptionError, DeviceError or CompileError before anything is launched or written.
    Source: ``ptxgen/templates/pointwise/elements.cu.j2``.

    >>> import numpy, ptxgen
    >>> @ptxgen.pointwise
    ... def lerp(x, y, t):
    ...     return x + t * (y - x)
    >>> lerp.reference(numpy.zeros(2, "f4"), numpy.ones(2, "f4"), 0.25)
    array([0.25, 0.25], dtype=float32)
    """
    return Pointwise(function)


class Pointwise:
    """A function of arrays, element by element (:func:`pointwise`)."""

    _traced: Callable[[], bool] = staticmethod(lambda: False)
    """Whether torch.compile traces; ``ptxgen.torch`` puts torch's own in its place."""
    _shown: Callable[..., Any]
    """Computes where autograd or a compiler watches; that of ``ptxgen.torch``."""

    def __init__(
        self, function: Callable[..., Any], name: str = "", parameters: tuple[str, ...] = ()
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = name or function.__name__
        plain = (parameters, {}) if parameters else _parameters(function, self.name)
        self.parameters, self.defaults = plain
        self.key = f"{self.name}.{next(_count)}"
        """Names it among all of the process."""
        self._calls: dict[tuple[type, ...], tuple[Caller, tuple[None, ...]]] = {}
        self._ops: dict[tuple[bool, ...], tuple[Caller, tuple[None, ...]]] = {}
        self._formulas: dict[Any, Formula] = {}
        self._gradients: dict[tuple[tuple[bool, ...], int], Pointwise] = {}
        self.plans: dict[Any, Callable[..., Any]] = {}
        """Of its gradients, as ``ptxgen.torch`` has them."""
        _known[self.key] = self
        self.__class__ = _called(Pointwise, len(self.parameters))
        watch_torch()

    def __repr__(self) -> str:
        return f"<pointwise {self.name}({', '.join(self.parameters)})>"

    def __call__(
        self,
        *args: Any,
        out: Any = None,
        out_dtype: Any = None,
        stream: Any = None,
        kernel: str | None = None,
        **named: Any,
    ) -> Any:
        """The results, arrays in the framework of the first one given (:func:`pointwise`).

        Called with values of a formula it is part of that.
        """
        if named or len(args) != len(self.parameters):
            args = self._bound(args, named)
        if self._traced():
            return self.operator(args, out, out_dtype)
        if any(isinstance(a, Node) for a in args):
            return self.function(*args)
        call, outs = self._calls.get(tuple(map(type, args))) or self._prepared(args)
        if out is not None:
            outs = self._outs(out, len(outs))
        return call(*args, *outs, stream, (out_dtype, kernel))

    def reference(self, *args: Any, out_dtype: Any = None, **named: Any) -> Any:
        """The same bits, with NumPy."""
        import numpy as np

        from ptxgen.reference import formula as oracle

        args = self._bound(args, named)
        arrays = [None if _scalar(type(a)) else np.asarray(a) for a in args]
        dtypes = tuple(None if a is None else _short(a.dtype.name, "argument") for a in arrays)
        found = self.formula(dtypes, wanted_dtypes(out_dtype))
        given: dict[str, Any] = {}
        for i in found.inputs:
            at = int(i.name[1:])
            array = arrays[at]
            if array is None:
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
        results = tuple(np.array(np.broadcast_to(v, shape)) for v in values)
        return results[0] if len(results) == 1 else results

    def formula(self, dtypes: tuple[str | None, ...], wanted: Any = None) -> Formula:
        """What it computes of arrays of ``dtypes`` (None for a number)."""
        key = dtypes, wanted
        found = self._formulas.get(key)
        if found is None:
            found = numerics.formula(self.function, self.parameters, dtypes, wanted)
            self._formulas[key] = found
        return found

    def gradient(self, needs: tuple[bool, ...], results: int = 1) -> Pointwise:
        """The gradients of those arguments that ``needs`` says, in order, as a function of the
        arguments and, behind them, the gradients of the results, of which there are so many.
        """
        found = self._gradients.get((needs, results))
        if found is None:
            found = self._gradients[needs, results] = _gradient(self, needs, results)
        return found

    def operator(self, args: tuple[Any, ...], out: Any, out_dtype: Any) -> Any:
        """As PyTorch's operator, which autograd and compilers see."""
        if out is not None:
            raise OptionError(f"{self.name}: out= cannot be traced; leave it away")
        which = "".join("n" if _scalar(type(a)) else "a" for a in args)
        if "n" in which:
            arrays = [a for a, w in zip(args, which, strict=True) if w == "a"]
            numbers = [a for a, w in zip(args, which, strict=True) if w == "n"]
        else:
            arrays, numbers = list(args), []
        wanted = None if out_dtype is None else _texts(out_dtype)
        found = self._shown(self.key, which, arrays, numbers, wanted)
        return found[0] if len(found) == 1 else tuple(found)

    def kernels(self, *args: Any, **named: Any) -> tuple[str, ...]:
        """The kernels that compute this of such arguments, the one that is taken first: what
        ``kernel=`` may be. They differ in speed alone.
        """
        args = self._bound(args, named)
        _, outs = self._prepared(args)
        which = tuple(_scalar(type(a)) for a in args)
        signature = self.row(which, len(outs)).signature
        given = dict(zip(signature.arguments, args, strict=True))
        call = Call({name: given[name] for name in signature.arrays}, backwards=True)
        reading = read(self, signature, as_computed(call), {"out_dtype": None}, (None,) * len(outs))
        targets = tuple(call.output(r.shape, r.dtype) for r in reading.results)
        problem = reading.problem(targets)
        if problem is None:
            return ()
        return tuple(route.name for route in serving(problem, call.device.sms))

    # -- how ------------------------------------------------------------------------------------
    def _bound(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """All arguments in order."""
        given = dict(zip(self.parameters, args, strict=False))
        unknown = [n for n in named if n not in self.parameters or n in given]
        given = {**self.defaults, **given, **named}
        missing = [n for n in self.parameters if n not in given]
        if unknown or missing or len(args) > len(self.parameters):
            raise OptionError(
                f"{self.name} takes {', '.join(self.parameters)}; got {len(args)} arguments"
                + (f", not {', '.join(missing)}" if missing else "")
                + (f", and {', '.join(unknown)}" if unknown else "")
            )
        return tuple(given[n] for n in self.parameters)

    def _prepared(self, args: tuple[Any, ...]) -> tuple[Caller, tuple[None, ...]]:
        """What calls kernels for arguments of such types."""
        which = tuple(_scalar(type(a)) for a in args)
        if all(which):
            raise DtypeError(f"{self.name} takes at least one array; got only numbers")
        found = self._ops.get(which)
        if found is None:
            watch_torch()
            dtypes = tuple(
                None if number else _short(_dtype(a, name), name)
                for a, name, number in zip(args, self.parameters, which, strict=True)
            )
            op = self.row(which, len(self.formula(dtypes).outputs))
            count = len(op.signature.results)
            found = self._ops[which] = caller(op), _ONE if count == 1 else (None,) * count
        types = tuple(map(type, args))
        if len(self._calls) > 256:  # types without end
            self._calls.clear()
        self._calls[types] = found
        return found

    def row(self, which: tuple[bool, ...], count: int) -> Op:
        """The row of calls of which ``which`` arguments are numbers, and ``count`` results."""
        names = tuple(map(_variable, self.parameters))
        results = ("out",) if count == 1 else tuple(f"out{i}" for i in range(count))
        arrays = tuple(n for n, number in zip(names, which, strict=True) if not number)
        signature = Signature(
            self.name,
            names,
            results,
            {"": dict.fromkeys((*arrays, *results), "*")},
            (),
            options={"out_dtype": Option()},
            over=dict.fromkeys(results, arrays),
            scalars=tuple(n for n, number in zip(names, which, strict=True) if number),
        )

        def watched(arguments: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
            return self.operator(arguments, None, options[0])

        reader = functools.partial(read, self, signature)
        return Op(signature, reader, _unposed, watched=watched, backwards=True)

    def _outs(self, out: Any, count: int) -> tuple[Any, ...]:
        outs = tuple(out) if isinstance(out, tuple | list) else (out,)
        if len(outs) != count:
            raise OptionError(f"{self.name} has {count} results; out= gives {len(outs)}")
        return outs


def casts() -> dict[str, Pointwise]:
    """What converts arrays, by the dtype."""
    return {d: Pointwise(functools.partial(cast, dtype=d), f"cast_{d}", ("x",)) for d in FULL}


@functools.cache
def _called(base: type[Pointwise], count: int) -> type[Pointwise]:
    """``base`` for functions of so many arguments, whose calls of nothing else are straight-line
    code, which costs half of what the general one does. (Types have calls, objects have not.)
    """
    names = [f"_{i}" for i in range(count)]
    types = "".join(f"type({n}), " for n in names)
    given = "".join(f"{n}, " for n in names)
    heads = "".join(f"{n}=missing, " for n in names)
    source = f"""
def __call__(self, {heads}/, *args, out=None, **named):
    if not args and not named and not self._traced():
        found = self._calls.get(({types}))
        if found is not None and found[1] is one:
            return found[0]({given}out, None, as_usual)
    given = [x for x in ({given}) if x is not missing]
    return general(self, *given, *args, out=out, **named)
"""
    namespace: dict[str, Any] = {
        "general": base.__call__,
        "one": _ONE,
        "as_usual": _AS_USUAL,
        "missing": object(),
    }
    exec(compile(source, "<calls of pointwise functions>", "exec"), namespace)
    return type(base.__name__, (base,), {"__call__": namespace["__call__"]})


def named(key: str) -> Pointwise:
    """The function of a :attr:`Pointwise.key`. Raises OptionError for one that is gone."""
    found = _known.get(key)
    if found is None:
        raise OptionError(f"the pointwise function {key!r} is no longer there: keep it")
    return found


def watch_torch() -> None:
    """Lets torch.compile see operators, if there is torch."""
    if "torch" in sys.modules and "ptxgen.torch.pointwise" not in sys.modules:
        import importlib

        importlib.import_module("ptxgen.torch.pointwise")
        importlib.import_module("ptxgen.torch.layout")


def _gradient(of: Pointwise, needs: tuple[bool, ...], results: int) -> Pointwise:
    from ptxgen.numerics.formula import const
    from ptxgen.numerics.gradient import gradients

    count = len(of.parameters)

    def function(**given: Node) -> tuple[Node, ...]:
        values = tuple(given.values())
        arguments, seeds = values[:count], values[count:]
        found = trace(of.function, dict(zip(of.parameters, arguments, strict=True)))
        wanted = [a for a, need in zip(arguments, needs, strict=True) if need]
        made = gradients(found, seeds, wanted)
        pairs = zip(made, wanted, strict=True)
        return tuple(const(0.0, w.type) if g is None else g for g, w in pairs)

    names = (*of.parameters, *(f"gradient_{count + i}" for i in range(results)))
    return Pointwise(function, f"{of.name}_gradient", names)


# -- calls --------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Reading:
    """Arrays to be computed with (:class:`ptxgen.ops.op.Numbered`)."""

    name: str
    formula: Formula
    views: tuple[ArrayView | None, ...]
    """Of each argument, None for a number."""
    names: tuple[str, ...]
    results: tuple[Result, ...]
    encoders: tuple[Callable[[Any], int], ...]

    def problem(self, targets: tuple[ArrayView, ...]) -> Problem | None:
        """See :meth:`ptxgen.ops.op.Reading.problem`."""
        shape = self.results[0].shape
        count = prod(shape)
        if count == 0:
            return None
        arrays = {numerics.operand(i): v for i, v in enumerate(self.views) if v is not None}
        arrays |= {numerics.result(i): t for i, t in enumerate(targets)}
        names = {numerics.operand(i): n for i, n in enumerate(self.names)}
        used = [i.name for i in self.formula.inputs if i.kind != "scalar"]
        used += [o.name for o in self.formula.outputs]
        for name in used:
            alignment(names.get(name, "out"), arrays[name], 0)
        strides = [_stretched(arrays[name], shape) for name in used]
        sizes, steps = collapse(shape, strides, len(used) - len(targets))
        lie = Lie([arrays[name] for name in used], sizes, steps, len(used) - len(targets))
        step, blocks = lie.step(*vectors(self.formula))
        sets = {each: i for i, each in enumerate(dict.fromkeys(lie.ways))}
        letters = "".join(letter for letter, _ in sets)
        form = Form(self.formula, tuple(sets[each] for each in lie.ways), letters, len(sizes))
        side = form.side if blocks else 0
        in_place = form.factor is not None and arrays[form.factor[0]].ptr == targets[0].ptr
        numbers = told(lie.sizes, [steps for _, steps in sets], form.vector, side)
        self._fits(form, shape)
        values = {
            "COUNT": count,
            "CHUNKS": -(-count // form.vector),
            "BLOCKS": blocks,
            "RANK": len(sizes),
            "STEP": step,
            "FACTOR": int(in_place),
        }
        return Problem(
            TABLE,
            form,
            tuple(values.items()),
            tuple((k.upper(), v) for k, v in numbers.items()),
            (
                *(numerics.operand(i) for i in range(len(self.views))),
                *(numerics.result(i) for i in range(len(targets))),
            ),
            f"{self.name} of shape {list(shape)}",
        )

    def _fits(self, form: Form, shape: tuple[int, ...]) -> None:
        """Refuses what has more strides than a kernel has parameters."""
        bytes_ = PointwiseSpec("wide", form).abi.size if form.rank <= RANK_MAX else PARAMETERS_MAX
        if form.rank > RANK_MAX or bytes_ > PARAMETERS_MAX:
            raise ShapeError(
                f"{self.name}: arrays of shape {list(shape)} lie in {form.rank} dimensions of "
                f"uneven strides, in {len(form.steps)} ways; a kernel takes {RANK_MAX} dimensions "
                f"and {PARAMETERS_MAX} bytes of parameters: pass contiguous copies"
            )


def read(
    function: Pointwise,
    signature: Signature,
    views: Mapping[str, ArrayView],
    options: Options,
    targets: tuple[str | None, ...],
) -> Reading:
    """The arrays that a call computes with."""
    dtypes = tuple(_short(views[n].dtype, n) if n in views else None for n in signature.arguments)
    wanted = wanted_dtypes(options["out_dtype"])
    if wanted is None and any(t is not None for t in targets):
        wanted = tuple(None if t is None else _short(t, "out") for t in targets)
    formula = function.formula(dtypes, wanted)
    if len(formula.outputs) != len(signature.results):
        raise FormulaError(
            f"{function.name} returned {len(signature.results)} results for other dtypes, "
            f"{len(formula.outputs)} for {', '.join(map(str, dtypes))}"
        )
    inferred = signature.infer({name: x.shape for name, x in views.items()})
    type = numerics.scalar_type([d for d in dtypes if d is not None])
    return Reading(
        function.name,
        formula,
        tuple(views.get(n) for n in signature.arguments),
        signature.arguments,
        tuple(
            Result(shape, FULL[o.dtype])
            for shape, o in zip(inferred.results, formula.outputs, strict=True)
        ),
        (_encoder(type),) * len(signature.scalars),
    )


@functools.cache
def _encoder(type: str) -> Callable[[Any], int]:
    """See :attr:`ptxgen.ops.op.Numbered.encoders`."""
    bits, number = _BITS.unpack, numerics.number

    if type in ("f32", "f64"):
        pack = struct.Struct("<d").pack

        def encode(value: Any) -> int:
            try:
                return int(bits(pack(value))[0])
            except (struct.error, OverflowError):
                return int(bits(number(type, value))[0])

        return encode
    return lambda value: int(bits(number(type, value))[0])


def collapse(
    shape: tuple[int, ...], strides: Sequence[tuple[int, ...]], first: int
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """The sizes of the fewest dimensions that walk all arrays, and each one's strides, innermost
    first: as array ``first`` lies in memory.
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


def _stretched(array: ArrayView, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array that is broadcast to ``shape``."""
    lead = len(shape) - len(array.shape)
    pairs = zip(array.shape, array.strides, strict=True)
    return (0,) * lead + tuple(0 if size == 1 else stride for size, stride in pairs)


class Lie:
    """How arrays lie in the fewest dimensions, innermost first: ``sizes``, each one's ``steps``."""

    ways: tuple[tuple[str, tuple[int, ...]], ...]
    """Of each its letter in :attr:`Form.steps`, and its steps."""

    def __init__(
        self,
        views: Sequence[ArrayView],
        sizes: tuple[int, ...],
        steps: Sequence[tuple[int, ...]],
        first: int,
    ) -> None:
        self.views, self.sizes, self.steps, self.first = views, sizes, tuple(steps), first

    def step(self, vector: int, side: int) -> tuple[int, int]:
        """The variables STEP and BLOCKS (:mod:`ptxgen.spec.pointwise`). Of squares, the second
        dimension is the one that arrays lie along.
        """
        whole = len(self.sizes) == 1 or self.sizes[0] % vector == 0
        letters = self._letters(vector)
        if "s" in letters and (blocks := self._blocks(side)):
            return 3, blocks
        found = (2, 0) if whole and letters[self.first] == "v" else (0, 0)
        self.ways = tuple(zip(letters, self.steps, strict=True))
        return found

    def _letters(self, length: int) -> list[str]:
        """Those of vectors of ``length`` elements along the innermost dimension."""
        pairs = zip(self.views, self.steps, strict=True)
        return [
            "u" if s[0] == 0 else "v" if s[0] == 1 and _aligned(v, s, 0, length) else "s"
            for v, s in pairs
        ]

    def _blocks(self, side: int) -> int:
        """The threads of square blocks; 0 if there are no such."""
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
            self.ways = tuple(zip(letters, steps, strict=True))
            wide, high, *rest = self.sizes
            around = -(-(high // side) // BESIDE) * BESIDE
            return wide // side * around * prod(rest)
        return 0


def _aligned(array: ArrayView, steps: tuple[int, ...], along: int, length: int) -> bool:
    """Whether all vectors of ``length`` elements along a dimension can be read whole."""
    low = array.ptr
    for dimension, each in enumerate(steps):
        if dimension != along:
            low |= each * array.itemsize
    return low % min(16, length * array.itemsize) == 0


def wanted_dtypes(dtype: Any) -> tuple[str | None, ...] | str | None:
    """What ``out_dtype`` says: nothing, one for all results, or one for each."""
    if dtype is None:
        return None
    if isinstance(dtype, tuple | list):
        return tuple(None if d is None else short_name(d) for d in dtype)
    return short_name(dtype)


def short_name(dtype: Any) -> str:
    """The short name of a dtype of arrays, however it is given."""
    if isinstance(dtype, str) and dtype in FULL:
        return dtype
    return NAMES[name_of(dtype, "out_dtype", NAMES)]


def _texts(dtype: Any) -> list[str]:
    """``out_dtype`` as operators take it."""
    found = wanted_dtypes(dtype)
    return [found] if isinstance(found, str) else [d or "" for d in found or ()]


def _dtype(array: Any, name: str) -> str:
    """The full name of an array's dtype; of a fake tensor, too, which has no memory to view."""
    if framework_of(array) == "torch":
        return str(array.dtype).removeprefix("torch.")
    return view(array, name, backwards=True).dtype


def _short(dtype: str, name: str) -> str:
    if dtype not in NAMES:
        raise DtypeError(f"{name} has dtype {dtype}; takes {', '.join(NAMES)}")
    return NAMES[dtype]


def _scalar(kind: type) -> bool:
    """Whether this is a type of numbers: Python's, or what torch.compile has for those."""
    return issubclass(kind, int | float) or kind.__name__ in ("SymInt", "SymFloat", "SymBool")


def _unposed(question: Question) -> NoReturn:
    raise OptionError("a pointwise function has no problems of bare sizes: call it")


def _variable(parameter: str) -> str:
    """A parameter's name in the hot path, whose own names it must not take."""
    taken = parameter in _TAKEN or parameter[:2] in ("p_", "k_", "e_") or parameter[:3] == "out"
    return f"{parameter}_" if taken else parameter


_TAKEN = frozenset(
    (
        *("key", "entry", "grad", "low", "stream", "options", "sizes", "index", "handle", "given"),
        *("tensors", "optional", "find", "torch_key", "torch_current", "resolve", "careful"),
        *("call", "type"),
    )
)


def _parameters(function: Callable[..., Any], name: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The names of a function's arguments, and the numbers that some need not be given."""
    found = inspect.signature(function).parameters.values()
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
