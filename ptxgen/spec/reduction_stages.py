"""A formula over rows cut into stages at its reductions, as CUDA C++.

A stage computes values of each element of a row and reduces them; values of the row itself follow.
The last stage writes the results that have a value for each element. The templates of
:mod:`ptxgen.spec.row_reductions` put the stages together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from ptxgen.errors import ShapeError
from ptxgen.numerics import row_reductions
from ptxgen.numerics.dtype import ITEMSIZE
from ptxgen.numerics.formula import STORED, Formula, Input, Node, Output
from ptxgen.numerics.reduction_order import GROUP
from ptxgen.spec import formula as cuda

KEPT_SIZES = (2, 4, 8, 16, 32)
"""Sizes to which the bytes that a kernel keeps for an element are rounded up."""

STARTS = {
    "sum": {"f32": "0.0f", "f64": "0.0", "i32": "0", "i64": "0ll"},
    "prod": {"f32": "1.0f", "f64": "1.0", "i32": "1", "i64": "1ll"},
    "max": {
        "f32": "-ptxgen_inf",
        "f64": "-(double)ptxgen_inf",
        "i32": "(-2147483647 - 1)",
        "i64": "(-9223372036854775807ll - 1)",
    },
    "min": {
        "f32": "ptxgen_inf",
        "f64": "(double)ptxgen_inf",
        "i32": "2147483647",
        "i64": "9223372036854775807ll",
    },
}
"""C++ initial values of reductions, by operation and dtype."""
PACKED = {
    ("max", "bf16"): "0xff80ff80u",
    ("min", "bf16"): "0x7f807f80u",
    ("max", "f16"): "0xfc00fc00u",
    ("min", "f16"): "0x7c007c00u",
}
"""C++ initial values of two packed 16-bit maxima or minima, by operation and dtype."""
_COSTLY = ("call", "div", "sqrt")


@dataclass(frozen=True)
class Array:
    """An argument or a result of a row formula, with its C++ types.

    ``kind``: "element" (a value for each row and column), "row", "column" or "scalar". ``value``:
    for a result, the name of the C++ variable that is stored.
    """

    name: str
    dtype: str
    kind: str
    value: str = ""

    @property
    def ctype(self) -> str:
        """C++ type in which the kernel computes."""
        return cuda.CTYPES[STORED[self.dtype]]

    @property
    def storage(self) -> str:
        """C++ type of the elements in memory."""
        return cuda.STORAGE[self.dtype]

    @property
    def nbytes(self) -> int:
        """Bytes of an element in memory."""
        return ITEMSIZE[self.dtype]

    @property
    def words(self) -> int:
        """32-bit words of a lane's group of elements."""
        return GROUP * self.nbytes // 4


class Reduction:
    """A reduction in a stage of a row formula, with the C++ names and initial values that the
    template uses.
    """

    def __init__(self, node: Node, number: int) -> None:
        self.node, self.name = node, f"r{number}"
        self.ctype, self.start = cuda.CTYPES[node.type], STARTS[node.data][node.type]
        self.ordered = node.data in ("sum", "prod")
        """Whether the order of operands matters (sum, prod), so that leaves are combined in
        order."""
        found = node.args[0].data if node.args[0].op == "input" else None
        halves = found is not None and found.dtype in ("bf16", "f16") and found.kind == "element"
        self.packed: Input | None = found if halves and not self.ordered else None
        """Array whose 16-bit elements are compared two at a time, without conversion, else None;
        the result is the same, since every 16-bit float is an f32 value."""
        self.at = _selected_index(node)
        """Index of the only element that contributes to the sum; None if several do."""
        self.value = self.where = ""
        """C++ names of the reduced value, and of ``at``."""
        self.body: list[str] = []
        """C++ statements that compute the reduced value of the only element."""

    @property
    def packed_start(self) -> str:
        """C++ initial value of two packed 16-bit maxima or minima."""
        assert self.packed is not None
        return PACKED[self.node.data, self.packed.dtype]

    @property
    def packed_result(self) -> str:
        """C++ expression that reduces the two packed extremes to one, in f32."""
        assert self.packed is not None
        words = f"{self.name}_p & 0xffffu", f"{self.name}_p >> 16"
        low, high = (f"ptxgen_from_{self.packed.dtype}((unsigned short)({w}))" for w in words)
        return self.join(low, high)

    def join(self, a: str, b: str) -> str:
        """Returns the C++ expression that combines ``a`` and ``b``, each evaluated once."""
        if not self.ordered:
            return f"ptxgen_{self.node.data}({a}, {b})"
        op = {"sum": "add", "prod": "mul"}[self.node.data]
        return cuda.expression(Node(op, (self.node, self.node), self.node.type), [a, b])


def _selected_index(node: Node) -> Node | None:
    """Returns the node ``at`` if a reduction is ``sum(where(index == at, x, 0))``, else None."""
    arg = node.args[0]
    if node.data != "sum" or arg.op != "select" or arg.args[2].op != "const" or arg.args[2].data:
        return None
    condition = arg.args[0]
    if condition.op != "eq" or condition.args[1].level == "element":
        return None
    index = condition.args[0]
    while index.op == "convert":
        index = index.args[0]
    return condition.args[1] if index.op == "index" and condition.args[1].type == "i32" else None


class Stage:
    """One stage of a row formula: values of each element, reductions of these, then values of the
    row.

    ``reductions``: the stage's reductions; ``outputs``: results for elements, in the last stage;
    ``reads``: arrays of elements and columns; ``body``: C++ statements for an element; ``after``:
    C++ statements for the row, once its reductions are known; ``values``: C++ names of the nodes
    that are known in the stage.
    """

    reductions: list[Reduction]
    outputs: list[Array]
    downs: list[Array]
    """Results for each column: sums over rows."""
    reads: list[Array]
    body: list[str]
    after: list[str]
    kept: list[tuple[str, str]]
    """Values of elements that later stages reuse: (array that keeps them, C++ value)."""
    held: list[tuple[str, str, str]]
    """Values of elements that earlier stages kept: (C++ type, name, array)."""
    values: dict[Node, str]

    @property
    def alone(self) -> list[Reduction]:
        """Reductions to which only the element at a known index contributes (:attr:`Reduction.at`);
        the kernel reads that element directly from memory, instead of reducing the row.
        """
        return [r for r in self.reductions if r.at is not None and not self.held]

    @property
    def joined(self) -> list[Reduction]:
        """Reductions over all elements of a row."""
        return [r for r in self.reductions if r not in self.alone]

    @property
    def loaded(self) -> list[Array]:
        """Arrays of kind "element" that the stage reads."""
        return [i for i in self.reads if i.kind == "element"]


class Plan:
    """A row formula, cut into stages at its reductions.

    Stage s computes the reductions that depend on s earlier ones, each on the one before, and the
    element values that they reduce. The last stage writes the results for elements. ``keep``:
    whether expensive element values that a later stage needs again are kept, instead of recomputed.
    """

    def __init__(self, formula: Formula, keep: bool) -> None:
        self.formula = formula
        self.depth: dict[Node, int] = {}
        for node in formula.nodes:
            below = max((self.depth[a] for a in node.args), default=0)
            self.depth[node] = below + (node.op == "reduce")
        inputs = [n.data for n in formula.nodes if n.op == "input"]
        arrays = [Array(i.name, i.dtype, i.kind) for i in inputs]
        self.elements = [i for i in arrays if i.kind == "element"]
        self.columns = [i for i in arrays if i.kind == "column"]
        self.rows = [i for i in arrays if i.kind == "row"]
        self.kept: dict[Node, str] = {}
        self.names = dict(self._input_names())
        self.before = self._row_values(0)
        count = max((d for n, d in self.depth.items() if n.op == "reduce"), default=0)
        numbers = iter(range(1000))
        written = [o for level in ("element", "column") for o in self._outputs(level)]
        roots = [self._roots(s) for s in range(count)] + [[o.node for o in written]]
        self.stages: list[Stage] = []
        for s in range(count):
            nodes = [n for n in formula.nodes if n.op == "reduce" and self.depth[n] == s + 1]
            later = [n for r in roots[s + 1 :] for n in r] if keep else []
            reductions = [Reduction(n, next(numbers)) for n in nodes]
            stage = self._stage(roots[s], later, reductions)
            for each in stage.reductions:
                self.names[each.node] = each.name
            stage.after = self._row_values(s + 1)
            self.stages.append(stage)
        self.last = self._stage(roots[-1], [], []) if written else None
        values = self.last.values if self.last else self.names
        self.element_outputs = self._results("element", values)
        self.downs = self._results("column", values)
        self.row_outputs = self._results("row", self.names)
        if self.last:
            self.last.outputs, self.last.downs = self.element_outputs, self.downs

    @property
    def all_stages(self) -> list[Stage]:
        """All stages in order, with the last one, which writes results for elements, if there is
        one.
        """
        return [*self.stages, *([self.last] if self.last else [])]

    @property
    def held(self) -> int:
        """Most bytes that a kernel keeps for an element at any stage: arrays that are still to be
        read, and values kept for later stages. Rounded up to one of :data:`KEPT_SIZES`; raises
        ShapeError if that is not enough.
        """
        most = 0
        for s in range(len(self.all_stages)):
            later = {i for each in self.all_stages[s:] for i in each.loaded}
            kept = sum(ITEMSIZE[n.type] for n, at in self.kept.items() if self._is_live(at, s))
            most = max(most, kept + sum(i.nbytes for i in later))
        if most > KEPT_SIZES[-1]:
            raise ShapeError(
                f"{most} bytes of an element are held; at most {KEPT_SIZES[-1]} can be"
            )
        return next(h for h in KEPT_SIZES if h >= most)

    @property
    def kept_values(self) -> list[tuple[str, str]]:
        """Values that are kept for later stages, as pairs (C++ type, name)."""
        return [(cuda.CTYPES[n.type], name) for n, name in self.kept.items()]

    @property
    def in_place(self) -> bool:
        """Whether kept values can overwrite the elements in shared memory: a single f32 value is
        kept for later stages, and these read no elements.
        """
        made = next((i for i, s in enumerate(self.stages) if s.kept), None)
        if made is None or [n.type for n in self.kept] != ["f32"]:
            return False
        return not any(s.loaded for s in self.all_stages[made + 1 :])

    def _is_live(self, array: str, stage: int) -> bool:
        made = next(i for i, s in enumerate(self.stages) if array in (a for a, _ in s.kept))
        used = [i for i, s in enumerate(self.all_stages) if array in (a for _, _, a in s.held)]
        return made < stage <= max(used, default=-1)

    def _input_names(self) -> Iterator[tuple[Node, str]]:
        for node in self.formula.nodes:
            if node.op == "input":
                suffix = {"element": "_e", "column": "_e", "row": "_r", "all": ""}[
                    "all" if node.data.kind == "scalar" else node.data.kind
                ]
                yield node, node.data.name + suffix
            elif node.op == "index":
                yield node, "index"
            elif node.op == "length":
                yield node, "(long long)cols"

    def _outputs(self, level: str) -> list[Output]:
        return [o for o in self.formula.outputs if o.level == level]

    def _results(self, level: str, names: Mapping[Node, str]) -> list[Array]:
        return [Array(o.name, o.dtype, level, names[o.node]) for o in self._outputs(level)]

    def _roots(self, s: int) -> list[Node]:
        return [
            n.args[0] for n in self.formula.nodes if n.op == "reduce" and self.depth[n] == s + 1
        ]

    def _row_values(self, depth: int) -> list[str]:
        """Returns the C++ statements that compute, once for a row, the values that follow from the
        reductions of the first ``depth`` stages.
        """
        known = [
            n
            for n in self.formula.nodes
            if n.level != "element" and self.depth[n] <= depth and n.op not in ("reduce", "input")
        ]
        return list(cuda.statements(known, self.names, prefix="w"))

    def _stage(self, roots: list[Node], later: list[Node], reductions: list[Reduction]) -> Stage:
        stage = Stage()
        stage.reductions, stage.outputs, stage.downs, stage.after = reductions, [], [], []
        values = {**self.names, **{n: f"{at}_e" for n, at in self.kept.items()}}
        cone = _dependencies(roots, values)
        stage.held = [
            (cuda.CTYPES[n.type], f"{at}_e", at) for n, at in self.kept.items() if n in cone
        ]
        stage.reads = [i for i in (*self.elements, *self.columns) if _input(cone, i)]
        new = []
        for node in _needed_again(later, cone, values):
            self.kept[node] = f"k{len(self.kept)}"
            new.append(node)
        alone = {r.node.args[0] for r in reductions if r.at is not None}
        stage.body = list(cuda.statements([*(n for n in roots if n not in alone), *new], values))
        for each in reductions:
            value = each.node.args[0]
            if each.at is not None:  # its value may be computed for all elements already
                value = value.args[1]
                each.body = list(cuda.statements([value], values, prefix="p"))
                each.where = self.names[each.at]
            each.value = values[value]
        stage.kept = [(self.kept[n], values[n]) for n in new]
        stage.values = values
        return stage


def _dependencies(roots: Iterable[Node], known: Mapping[Node, str]) -> dict[Node, None]:
    """Returns all nodes that ``roots`` depend on, down to the ``known`` ones."""
    found: dict[Node, None] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node not in found:
            found[node] = None
            if node not in known:
                stack.extend(node.args)
    return found


def _input(cone: Mapping[Node, None], of: Array) -> bool:
    return any(n.op == "input" and n.data.name == of.name for n in cone)


def _needed_again(
    later: list[Node], cone: Mapping[Node, None], known: Mapping[Node, str]
) -> Iterator[Node]:
    """Yields the expensive element values among the nodes ``cone`` on which the nodes ``later``
    depend, too. ``known``: nodes that need no computation, at which the search ends.
    """
    seen: set[Node] = set()
    stack = list(reversed(later))
    while stack:
        node = stack.pop()
        if node in seen or node in known:
            continue
        seen.add(node)
        wanted = node.level == "element" and node in cone
        if wanted and any(
            n.op in _COSTLY and n.level == "element" for n in _dependencies([node], known)
        ):
            yield node
        else:
            stack.extend(node.args)


@cache
def plan(variant: str, keep: bool) -> Plan:
    """Returns the stages of ``variant``. ``keep``: whether expensive element values are kept for
    later stages, not recomputed.
    """
    return Plan(row_reductions.formula(variant), keep)
