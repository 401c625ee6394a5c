"""Random programs over every dtype of formulas, drawn from seeds, and every way to run them.

A program reads arrays of any dtype, applies operations to them and to one another's results, and
returns several of these. Tests of passes, files and compiled graphs draw from here. By hand::

    python tests/program/random_programs.py 17        # one seed: its text, and whether it differs
    python tests/program/random_programs.py 0:2000    # a range of seeds
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from bits import difference

import ptxgen
from ptxgen import functions as f
from ptxgen import graph
from ptxgen.graph import PASSES
from ptxgen.ops import OPERATIONS
from ptxgen.program.buffer import Buffer, Memory
from ptxgen.program.replay import Replayed
from ptxgen.program.step import Operand, Program
from ptxgen.runtime.cpu import CpuDevice

REALS, INTEGERS = ("f32", "f64", "bf16", "f16"), ("i32", "i64")
NUMBERS = (*REALS, *INTEGERS)
DTYPES = (*NUMBERS, "bool")
NUMPY = {
    **{"f32": "f4", "f64": "f8", "f16": "f2", "i32": "i4", "i64": "i8", "bool": "?"},
    "bf16": ml_dtypes.bfloat16,
}
WIDTHS = (8, 7)
"""Row lengths: whole vectors of elements, and rows that begin anywhere."""
SUBSETS = 8
"""Random subsets of the passes, beside none, all, each alone and each left out."""
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan)


class Type(NamedTuple):
    """Dtype and kind of a value. An "element" has shape [rows, 3, width], a "row" [rows, 3, 1], a
    "column" [width], a "matrix" [width, width].
    """

    dtype: str
    kind: str

    def shape(self, width: int, rows: int = 2) -> tuple[int, ...]:
        """Shape for ``rows`` times three rows of ``width`` elements."""
        shapes = {"row": (rows, 3, 1), "column": (width,), "matrix": (width, width)}
        return shapes.get(self.kind, (rows, 3, width))


class Rule(NamedTuple):
    """An operation of programs.

    ``takes`` has the dtypes of its operands, each a group of which one is drawn. An operand has the
    dtype of the first one where its group is (). ``kinds`` are those of the operands, "any" for an
    element, a row or a column. ``gives`` has the result types, "" for that of the first operand.
    ``run`` computes it by ptxgen, ``torch`` by PyTorch, from operands and one of ``data``.
    """

    takes: tuple[tuple[str, ...], ...]
    kinds: tuple[str, ...]
    gives: tuple[tuple[str, str], ...]
    run: Callable[..., Any]
    torch: Callable[..., Any] | None = None
    data: tuple[Any, ...] = (None,)
    weight: int = 2


_chosen = ptxgen.pointwise(lambda x, y: f.where(x > y, x * y, x - y))
_chosen_gradient = _chosen.gradient((True, True))
SAME, ANY, ELEMENT = (), ("any",), ("element",)


def _operation(name: str) -> Callable[..., Any]:
    return OPERATIONS[name].function


def _exchanged(x: Any, join: Callable[..., Any]) -> Any:
    half = x.shape[-1] // 2
    return join((x[..., half:], x[..., :half]), -1)


def _strided(x: Any, join: Callable[..., Any]) -> Any:
    return join((x[..., ::2], x[..., 1::2]), -1)


def _turned(x: Any) -> Any:
    return ptxgen.layout.contiguous(f.copy(x.swapaxes(0, 2)).swapaxes(0, 2))


def _shared(q: Any, k: Any, v: Any) -> Any:
    """Attention written out: heads of queries (4 of 2 rows), of which pairs share keys and
    values.
    """
    rows = q.shape[0]

    def repeated(x: Any) -> Any:
        lead = x.reshape(1, rows, 1, 3, x.shape[-1])
        wide = ptxgen.layout.contiguous(ptxgen.layout.expand(lead, (1, rows, 2, *lead.shape[3:])))
        return wide.reshape(1, 2 * rows, *lead.shape[3:])

    heads = _concat((q, k), 0).reshape(1, 2 * rows, 3, q.shape[-1])
    scores = ptxgen.matmul(heads, repeated(k).swapaxes(2, 3))
    return ptxgen.matmul(ptxgen.softmax(scores), repeated(v))[0, :rows]


def _torch_shared(q: Any, k: Any, v: Any) -> Any:
    def repeated(x: Any) -> Any:
        lead = x.reshape(1, 2, 1, 3, x.shape[-1])
        return lead.expand(1, 2, 2, *lead.shape[3:]).reshape(1, 4, *lead.shape[3:])

    scores = _cat((q, k), 0)[None] @ repeated(k).transpose(2, 3)
    return (scores.softmax(-1) @ repeated(v))[0, :2]


def _concat(parts: Sequence[Any], axis: int) -> Any:
    return ptxgen.layout.concat(parts, axis)


def _cat(parts: Sequence[Any], axis: int) -> Any:
    return sys.modules["torch"].cat(tuple(parts), axis)


def _where(condition: Any, x: Any, y: Any) -> Any:
    return sys.modules["torch"].where(condition, x, y)


def _to(x: Any, dtype: str) -> Any:
    torch = sys.modules["torch"]
    return x.to(getattr(torch, ptxgen.numerics.dtype.FULL[dtype]))


def _minus(x: Any, y: Any) -> Any:
    return x - y


VIEWS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "shifted": lambda x: (x.reshape(-1)[1 : 1 + _half(x)], x.reshape(-1)[: _half(x)]),
    "folded": lambda x: (x.reshape(-1)[: _half(x)], x.reshape(-1)[_half(x) :]),
    "neighbours": lambda x: (x.reshape(-1, 2)[:, 1:], x.reshape(-1, 2)[:, :1]),
    "crossed": lambda x: (x.reshape(2, -1), x.reshape(-1, 2).T),
    "broadcast": lambda x: (x, x[:1, :1]),
}
"""Pairs of views of an element that broadcast, of as many elements or of half as many."""


def _like(x: Any, found: Any, join: Callable[..., Any]) -> Any:
    """``found``, of which there is half as much or more, in the shape of ``x``."""
    flat = found.reshape(-1)
    return join((flat, flat), 0)[: prod(x.shape)].reshape(x.shape)


def _flat(x: Any) -> Any:
    return x.reshape(3 * x.shape[0], -1)


def _half(x: Any) -> int:
    return prod(x.shape) // 2


RULES: dict[str, Rule] = {
    "neg": Rule((NUMBERS,), ANY, (("", ""),), lambda d, x: f.neg(x), lambda d, x: -x),
    "abs": Rule((NUMBERS,), ANY, (("", ""),), lambda d, x: f.abs(x), lambda d, x: abs(x)),
    "exp": Rule((REALS,), ANY, (("", ""),), lambda d, x: f.exp(x), lambda d, x: x.exp()),
    "relu": Rule((REALS,), ANY, (("", ""),), lambda d, x: f.relu(x), lambda d, x: x.relu()),
    "floor": Rule((REALS,), ANY, (("", ""),), lambda d, x: f.floor(x), lambda d, x: x.floor()),
    "scale": Rule(
        (NUMBERS,), ANY, (("", ""),), lambda d, x: f.mul(x, d), lambda d, x: x * d, (2, -3)
    ),
    "shift": Rule((NUMBERS,), ANY, (("", ""),), lambda d, x: f.add(x, 1), lambda d, x: x + 1),
    "not": Rule(
        ((*INTEGERS, "bool"),), ANY, (("", ""),), lambda d, x: f.bitwise_not(x), lambda d, x: ~x
    ),
    "binary": Rule(
        (NUMBERS, SAME),
        ("element", "any"),
        (("", ""),),
        lambda d, x, y: getattr(f, d)(x, y),
        lambda d, x, y: getattr(sys.modules["torch"], d)(x, y),
        ("add", "sub", "mul", "maximum"),
        6,
    ),
    "bits": Rule(
        ((*INTEGERS, "bool"), SAME),
        ("element", "any"),
        (("", ""),),
        lambda d, x, y: getattr(f, d)(x, y),
        lambda d, x, y: getattr(sys.modules["torch"], d)(x, y),
        ("bitwise_and", "bitwise_or", "bitwise_xor"),
        3,
    ),
    "compare": Rule(
        (NUMBERS, SAME),
        ("element", "any"),
        (("bool", ""),),
        lambda d, x, y: getattr(f, d)(x, y),
        lambda d, x, y: getattr(sys.modules["torch"], d)(x, y),
        ("lt", "le", "gt", "ge", "eq", "ne"),
        4,
    ),
    "positive": Rule((NUMBERS,), ANY, (("bool", ""),), lambda d, x: f.gt(x, 0), lambda d, x: x > 0),
    "equal": Rule(
        (DTYPES, SAME),
        ("element", "any"),
        (("bool", ""),),
        lambda d, x, y: getattr(f, d)(x, y),
        lambda d, x, y: getattr(sys.modules["torch"], d)(x, y),
        ("eq", "ne"),
    ),
    "where": Rule(
        (DTYPES, ("bool",), SAME),
        ("element", "any", "any"),
        (("", ""),),
        lambda d, x, c, y: f.where(c, x, y),
        lambda d, x, c, y: _where(c, x, y),
        weight=7,
    ),
    "masked": Rule(
        (NUMBERS, ("bool",)),
        ELEMENT * 2,
        (("", ""),),
        lambda d, x, c: f.where(c, x, d),
        lambda d, x, c: x.masked_fill(~c, d),
        (0, -1),
        3,
    ),
    **{
        f"cast {to}": Rule(
            (tuple(d for d in DTYPES if d != to),),
            ANY,
            ((to, ""),),
            lambda d, x: f.cast(x, d),
            lambda d, x: _to(x, d),
            (to,),
            1,
        )
        for to in DTYPES
    },
    "softmax": Rule(
        (REALS,),
        ELEMENT,
        (("", ""),),
        lambda d, x: ptxgen.softmax(x),
        lambda d, x: x.softmax(-1),
        weight=4,
    ),
    "log_softmax": Rule(
        (REALS,),
        ELEMENT,
        (("", ""),),
        lambda d, x: ptxgen.log_softmax(x),
        lambda d, x: x.log_softmax(-1),
        weight=1,
    ),
    "rms_norm": Rule(
        (REALS, SAME),
        ("element", "column"),
        (("", ""),),
        lambda d, x, w: ptxgen.rms_norm(x, w),
        lambda d, x, w: sys.modules["torch"].nn.functional.rms_norm(x, w.shape, w, 1e-6),
        weight=3,
    ),
    "layer_norm": Rule(
        (REALS,),
        ELEMENT,
        (("", ""),),
        lambda d, x: ptxgen.layer_norm(x),
        lambda d, x: sys.modules["torch"].nn.functional.layer_norm(x, x.shape[-1:]),
        weight=3,
    ),
    "sum": Rule(
        (REALS,),
        ELEMENT,
        (("", "row"),),
        lambda d, x: ptxgen.sum(x, axis=-1, keepdims=True),
        lambda d, x: x.sum((-1,), keepdim=True),
        weight=3,
    ),
    "count": Rule(
        ((*INTEGERS, "bool"),),
        ELEMENT,
        (("i64", "row"),),
        lambda d, x: ptxgen.sum(x, axis=-1, keepdims=True),
        lambda d, x: x.sum((-1,), keepdim=True),
        weight=4,
    ),
    "mean": Rule(
        (REALS,),
        ELEMENT,
        (("", "row"),),
        lambda d, x: ptxgen.mean(x, axis=-1, keepdims=True),
        lambda d, x: x.mean((-1,), keepdim=True),
    ),
    "extreme": Rule(
        (NUMBERS,),
        ELEMENT,
        (("", "row"),),
        lambda d, x: getattr(ptxgen, d)(x, axis=-1, keepdims=True),
        lambda d, x: getattr(x, d)((-1,), keepdim=True),
        ("amax", "amin"),
        3,
    ),
    "place": Rule(
        (NUMBERS,),
        ELEMENT,
        (("i64", "row"),),
        lambda d, x: getattr(ptxgen, d)(x, axis=-1, keepdims=True),
        None,
        ("argmax", "argmin"),
        3,
    ),
    "total": Rule(
        (REALS,),
        ELEMENT,
        (("", "column"),),
        lambda d, x: ptxgen.sum(x, axis=(0, 1)),
        lambda d, x: x.sum((0, 1)),
    ),
    "cumsum": Rule(
        (REALS,),
        ELEMENT,
        (("", ""),),
        lambda d, x: ptxgen.cumsum(x),
        lambda d, x: x.cumsum(-1),
        weight=1,
    ),
    "linear": Rule(
        (REALS, SAME),
        ("element", "matrix"),
        (("", ""),),
        lambda d, x, w: ptxgen.linear(x, w, layout="kn"),
        lambda d, x, w: x @ w,
        weight=4,
    ),
    "copy": Rule((DTYPES,), ELEMENT, (("", ""),), lambda d, x: f.copy(x), lambda d, x: x.clone()),
    "shared": Rule(
        (REALS, SAME, SAME),
        ELEMENT * 3,
        (("", ""),),
        lambda d, q, k, v: _shared(q, k, v),
        lambda d, q, k, v: _torch_shared(q, k, v),
        weight=1,
    ),
    "exchanged": Rule(
        (DTYPES,),
        ELEMENT,
        (("", ""),),
        lambda d, x: _exchanged(x, _concat),
        lambda d, x: _exchanged(x, _cat),
        weight=3,
    ),
    "strided": Rule(
        (DTYPES,),
        ELEMENT,
        (("", ""),),
        lambda d, x: _strided(x, _concat),
        lambda d, x: _strided(x, _cat),
        weight=1,
    ),
    "stacked": Rule(
        (DTYPES, SAME),
        ELEMENT * 2,
        (("", ""),),
        lambda d, x, y: _concat((x[1:], y[:1]), 0),
        lambda d, x, y: _cat((x[1:], y[:1]), 0),
        weight=3,
    ),
    "turned": Rule(
        (DTYPES,),
        ELEMENT,
        (("", ""),),
        lambda d, x: _turned(x),
        lambda d, x: x.transpose(0, 2).clone().transpose(0, 2),
        weight=1,
    ),
    "merged": Rule(
        (NUMBERS,),
        ELEMENT,
        (("", ""),),
        lambda d, x: f.add(_flat(x), _flat(x)).reshape(x.shape),
        lambda d, x: (x.reshape(6, -1) + x.reshape(6, -1)).reshape(x.shape),
        weight=1,
    ),
    "first row": Rule(
        (DTYPES,),
        ELEMENT,
        (("", "column"),),
        lambda d, x: x[0, 0],
        lambda d, x: x[0, 0],
        weight=1,
    ),
    "first column": Rule(
        (DTYPES,),
        ELEMENT,
        (("", "row"),),
        lambda d, x: x[..., :1],
        lambda d, x: x[..., :1],
        weight=1,
    ),
    "views": Rule(
        (NUMBERS,),
        ELEMENT,
        (("", ""),),
        lambda d, x: _like(x, f.sub(*VIEWS[d](x)), _concat),
        lambda d, x: _like(x, _minus(*VIEWS[d](x)), _cat),
        tuple(VIEWS),
        3,
    ),
    "gathered": Rule(
        (DTYPES, INTEGERS),
        ("element", "row"),
        (("", ""),),
        lambda d, x, i: ptxgen.gather(x, f.clamp(i, 0, 1).reshape(-1)[: x.shape[0]]),
        lambda d, x, i: x[i.clamp(0, 1).reshape(6)[:2]],
        weight=1,
    ),
    "chosen": Rule(
        (REALS, SAME, SAME),
        ELEMENT * 3,
        (("", ""), ("", "")),
        lambda d, x, y, dy: _chosen_gradient(x, y, dy),
        None,
    ),
    "softmax_backward": Rule(
        (REALS, SAME),
        ELEMENT * 2,
        (("", ""),),
        lambda d, dy, x: _operation("softmax_backward")(dy, ptxgen.softmax(x)),
        None,
    ),
    "rms_norm_backward": Rule(
        (REALS, SAME, SAME),
        ("element", "element", "column"),
        (("", ""), ("", "")),
        lambda d, dy, x, w: _rms_norm_and_gradient(dy, x, w),
        None,
    ),
}


def _rms_norm_and_gradient(dy: Any, x: Any, w: Any) -> Any:
    y, scale = _operation("native_rms_norm")(x, w)
    return y, _operation("native_rms_norm_backward")(dy, x, w, scale)


TORCH = frozenset(name for name, rule in RULES.items() if rule.torch is not None)
"""Operations that PyTorch has, too."""


class Line(NamedTuple):
    """An operation of a program: its rule's name, a datum, and the values that it reads."""

    name: str
    data: Any
    operands: tuple[int, ...]


@dataclass(frozen=True)
class Drawn:
    """A program that was drawn from a seed. ``types`` are those of all values, inputs first."""

    seed: int
    width: int
    inputs: int
    types: tuple[Type, ...]
    lines: tuple[Line, ...]
    returned: tuple[int, ...]

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        """The results that ptxgen's operations make of arrays, or of nodes of a program."""
        return self._run(given, lambda rule: rule.run)

    def torch(self, *given: Any) -> tuple[Any, ...]:
        """The results that PyTorch's operators make of tensors."""
        return self._run(given, lambda rule: rule.torch)

    def _run(self, given: Sequence[Any], how: Callable[[Rule], Any]) -> tuple[Any, ...]:
        values = list(given)
        for name, data, operands in self.lines:
            rule = RULES[name]
            made = how(rule)(data, *(values[i] for i in operands))
            values += made if len(rule.gives) > 1 else (made,)
        return tuple(values[i] for i in self.returned)

    def arrays(self, rows: int = 2) -> list[Any]:
        """Inputs: normal numbers and a few special ones, integers, bools."""
        rng = np.random.default_rng(self.seed)
        found = []
        for of in self.types[: self.inputs]:
            shape = of.shape(self.width, rows)
            if of.dtype == "bool":
                x = rng.random(shape) < 0.5
            elif of.dtype in INTEGERS:
                x = rng.integers(-9, 10, shape)
            else:
                x = rng.standard_normal(shape)
                x = np.where(rng.random(shape) < 0.02, rng.choice(SPECIAL, shape), x)
            found.append(x.astype(NUMPY[of.dtype]))
        return found

    def __str__(self) -> str:
        lines = [f"seed {self.seed}, width {self.width}"]
        lines += [f"  v{i}: {t.dtype} {t.kind}" for i, t in enumerate(self.types[: self.inputs])]
        at = self.inputs
        for name, data, operands in self.lines:
            count = len(RULES[name].gives)
            made = ", ".join(f"v{at + i}: {self.types[at + i].dtype}" for i in range(count))
            given = ", ".join([f"v{i}" for i in operands] + [repr(data)] * (data is not None))
            lines.append(f"  {made} = {name}({given})")
            at += count
        return "\n".join([*lines, f"  return {', '.join(f'v{i}' for i in self.returned)}"])


def draw(seed: int, lines: int = 8, rules: Sequence[str] | frozenset[str] = tuple(RULES)) -> Drawn:
    """A program of at most ``lines`` operations among ``rules``."""
    random = Random(seed)
    main = random.choice((*REALS, *NUMBERS))  # most values have one dtype, so that they meet
    real = main if main in REALS else random.choice(REALS)
    other, third = random.choice(DTYPES), random.choice(DTYPES)
    types = [Type(real, "matrix"), Type(real, "column"), Type(third, "row"), Type(real, "element")]
    types += [Type(other, "element"), Type("bool", "element"), Type(other, "element")]
    types += [Type(main, "element"), Type(main, "element")]
    inputs, found = len(types), []
    names = [name for name in RULES if name in rules for _ in range(RULES[name].weight)]
    count = random.randint(min(4, lines), lines)
    while len(found) < count:
        name = random.choice(names)
        rule = RULES[name]
        operands = _operands(rule, types, random)
        if operands is None:
            continue
        line = Line(name, random.choice(rule.data), operands)
        if found and random.random() < 0.06:
            line = random.choice(found)  # once more
        found.append(line)
        rule, first = RULES[line.name], types[line.operands[0]]
        kind = "element" if "element" in (types[i].kind for i in line.operands) else first.kind
        types += [Type(dtype or first.dtype, own or kind) for dtype, own in rule.gives]
    made = range(inputs, len(types))
    kept = [i for i in made[:-1] if random.random() < (0.15 if types[i].dtype in REALS else 0.7)]
    order = tuple(random.sample([made[-1], *kept], 1 + len(kept)))
    return Drawn(seed, random.choice(WIDTHS), inputs, tuple(types), tuple(found), order)


def _operands(rule: Rule, types: Sequence[Type], random: Random) -> tuple[int, ...] | None:
    """Values that a rule takes, late ones more often; None where there are none."""
    found: list[int] = []
    for group, kind in zip(rule.takes, rule.kinds, strict=True):
        dtypes = group or (types[found[0]].dtype,)
        kinds = ("element", "row", "column") if kind == "any" else (kind,)
        fits = [i for i, t in enumerate(types) if t.dtype in dtypes and t.kind in kinds]
        fits = [i for i in fits if i not in found]  # x > x and x - x would hide what x is
        if not fits:
            return None
        found.append(fits[-1 - min(int(random.expovariate(1.0)), len(fits) - 1)])
    return tuple(found)


# -- passes -----------------------------------------------------------------------------------
def subsets(seed: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Subsets of the passes, each with a name: none, all, each alone, each left out, random."""
    names, random = tuple(PASSES), Random(seed)
    yield "none", ()
    yield "all", names
    yield from ((f"only {name}", (name,)) for name in names)
    yield from ((f"all but {name}", tuple(n for n in names if n != name)) for name in names)
    for _ in range(SUBSETS):
        some = tuple(n for n in names if random.random() < 0.5)
        yield f"only {', '.join(some)}", some


def facts(program: Program) -> tuple[Any, ...]:
    """A value that two programs share if they have the same steps, over alike memories."""
    number: dict[Memory, int] = {}

    def fact(operand: Operand | None) -> Any:
        if not isinstance(operand, Buffer):
            return operand
        memory = operand.memory
        at = number.setdefault(memory, len(number))
        lies = memory.role, operand.offset, operand.shape, operand.strides, operand.dtype
        return at, *lies

    inputs = tuple(fact(memory.natural) for memory in program.inputs)
    steps = tuple(
        (s.problem, s.kernel, tuple((n, fact(x)) for n, x in s.bind.items())) for s in program.steps
    )
    return inputs, steps, tuple(fact(x) for x in program.outputs)


def distinct(before: Program, seed: int) -> Iterator[tuple[str, Program]]:
    """The programs that :func:`subsets` of passes make of one, without repetitions."""
    known: dict[Any, Program] = {facts(before): before}
    done: dict[tuple[int, str], Program] = {}
    told = set()
    for title, names in (*subsets(seed), ("graph.fewer", None)):
        if names is None:
            program = graph.fewer(before)
            program = known.setdefault(facts(program), program)
        else:
            program = before
            for name in PASSES:
                if name in names:
                    key = id(program), name
                    if key not in done:
                        made = PASSES[name](program)
                        done[key] = known.setdefault(facts(made), made)
                    program = done[key]
        if id(program) not in told:
            told.add(id(program))
            yield title, program


# -- runs -------------------------------------------------------------------------------------
def regions(captured: Replayed) -> list[tuple[int, int]]:
    """Addresses and sizes of the arguments, results and arena of a captured program."""
    found = [(v.ptr, v.nbytes) for v in (*captured._own, *captured._found) if v is not None]
    arena = [(captured._where[-1], captured.nbytes)] if captured.nbytes else []
    return [each for each in (*found, *arena) if each[1]]


def poisoned(captured: Replayed) -> Replayed:
    """A captured program whose memory has a pattern that no result has."""
    for address, nbytes in regions(captured):
        captured._device.memset(address, 0xA5, nbytes)
    return captured


def several(found: Any) -> tuple[Any, ...]:
    """Results, of which there may be one."""
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def mismatch(got: Any, expected: Any) -> str:
    """The first result that differs, and where; empty if all bits agree."""
    pairs = zip(several(got), several(expected), strict=True)
    found = ((i, difference(a, b)) for i, (a, b) in enumerate(pairs))
    return next((f"result {i}: {text}" for i, text in found if text), "")


def compare(drawn: Drawn, path: Path) -> Iterator[str]:
    """Yields differences from eager calls: captured, with every subset of passes, and loaded from
    ``path``.
    """
    arrays = drawn.arrays()
    expected = several(drawn(*arrays))
    saved = {"none", "all"} | {f"all but {Random(drawn.seed).choice([*PASSES])}"}
    for title, program in distinct(graph.trace(drawn, *arrays), drawn.seed):
        captured = ptxgen.capture(program)
        if text := mismatch(poisoned(captured)(*arrays), expected):
            yield f"passes: {title}: {text}"
        elif title in saved:
            captured.save(path)
            if text := mismatch(poisoned(ptxgen.load(path))(*arrays), expected):
                yield f"saved, passes: {title}: {text}"
    captured = ptxgen.capture(drawn, *arrays, passes=graph.fewer)
    if text := mismatch(captured(*arrays), expected):
        yield f"captured: {text}"


def check(seeds: Sequence[int]) -> None:
    """Compares programs, on a device that forgets their kernels afterwards. Raises AssertionError
    with the first seed that differs, and its text.
    """
    with TemporaryDirectory() as folder, ptxgen.use_device(CpuDevice()):
        for seed in seeds:
            drawn = draw(seed)
            for text in compare(drawn, Path(folder, "it")):
                again = f"reproduce: PYTHONPATH=. python tests/program/random_programs.py {seed}"
                raise AssertionError(f"{text}\n{drawn}\n{again}")


def main(seeds: str) -> int:
    """Compares the programs of ``seeds``, as "17" or "0:2000"."""
    first, _, last = seeds.partition(":")
    wrong, begun = 0, time.monotonic()
    chosen = range(int(first), int(last or int(first) + 1))
    for seed in chosen:
        try:
            check([seed])
        except AssertionError as error:
            wrong += 1
            print(error, flush=True)
        if not last:
            print(draw(seed))
    print(f"{len(chosen)} programs, {wrong} differ, {time.monotonic() - begun:.0f} s")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
