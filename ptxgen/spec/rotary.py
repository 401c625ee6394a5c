"""Rotary embedding of the heads of queries and keys, after an RMS norm of each head if wanted.

============  ==============================================================
``TOKENS``    tokens
``HEADS``     heads of a token: those of queries and those of keys
``LANES``     threads that share a head: head dimension / 16
``SMS``       streaming multiprocessors of the device
============  ==============================================================

Further scalar parameters: ``Q_HEADS``, the heads that are queries; ``POSITIONS_MAX``, the rows of
the table of cos and sin; ``EPS`` of the norm; and for each array its strides in elements, such as
``Q_TOKEN`` and ``Q_HEAD``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.cost.kernel import Roofline
from ptxgen.expr import TRUE, Expr, ceil_div, var
from ptxgen.numerics import pointwise, rotary, row_reductions
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.formula import Formula, Node, ordered
from ptxgen.numerics.reduction_order import GROUP, LANES, POINTWISE, ROWS
from ptxgen.spec import formula as cuda
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import ARCHITECTURES, INDEX_MAX, Expect, KernelSpec, check
from ptxgen.spec.space import SIZE, SMS_MAX, Between, Space

TOKENS, HEADS, LANES_OF_HEAD = var("TOKENS"), var("HEADS"), var("LANES")
THREADS = 128
PER_LANE = 2 * GROUP
"""Elements of a head that a thread computes: a group of the first half, and its partners."""
LANES_MAX = LANES // 2
"""Most threads that share a head."""
HEADS_MAX = 1 << 16
DTYPES = ("bf16", "f16")
ARRAYS = ("q", "k", "q_out", "k_out")
"""Arrays of heads, each with strides of its own."""

SPACE = Space(
    "rotary embedding",
    (
        ("TOKENS", SIZE),
        ("HEADS", Between(1, HEADS_MAX)),
        ("LANES", Between(1, LANES_MAX)),
        ("SMS", Between(1, SMS_MAX)),
    ),
    within=TOKENS * HEADS * LANES_OF_HEAD <= INDEX_MAX - THREADS,
)


@dataclass(frozen=True)
class Form:
    """Variant of a rotary embedding. ``dtype``: dtype of all arrays of floats; ``head_dim``: head
    dimension; ``normed``: whether an RMS norm of each head comes first.
    """

    dtype: str
    head_dim: int
    normed: bool

    def __str__(self) -> str:
        return f"{self.dtype}_{self.head_dim}{'_normed' if self.normed else ''}"

    @property
    def served(self) -> bool:
        """Whether there is a kernel. A norm needs threads of a head whose number is a power of two,
        as they exchange sums in the order of ``rows/1``.
        """
        lanes, rest = divmod(self.head_dim, PER_LANE)
        fits = self.dtype in DTYPES and rest == 0 and 1 <= lanes <= LANES_MAX
        return fits and not (self.normed and lanes & (lanes - 1))


@dataclass(frozen=True)
class RotarySpec(KernelSpec):
    """A kernel that rotates the heads of queries and keys by the angles of their positions.

    ``head_dim / 16`` threads share a head; each has 8 elements of the first half and the 8 with
    which they are rotated.
    """

    dtype: str = "bf16"
    head_dim: int = 128
    normed: bool = False
    min_arch: str = "sm_80"

    family: ClassVar[str] = "rotary"
    template: ClassVar[str] = "rotary/rotary.cu.j2"
    threads: ClassVar[int] = THREADS
    shared_bytes: ClassVar[int] = 0
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "head_dim": "head dimension",
        "normed": "whether an RMS norm of each head comes first",
    }

    def __post_init__(self) -> None:
        self.check_choices(min_arch=ARCHITECTURES)
        check(self.form.served, type(self).__name__, "form", self.form, "of a kernel")

    @property
    def form(self) -> Form:
        """Variant that the kernel is compiled for."""
        return Form(self.dtype, self.head_dim, self.normed)

    def of(self, dtype: Hashable) -> RotarySpec:
        """Returns this kernel for a :class:`Form`; for a dtype, that kernel of the dtype."""
        if isinstance(dtype, Form):
            return replace(self, **vars(dtype))
        return replace(self, dtype=str(dtype))

    @property
    def contract(self) -> Contract:
        return ROWS if self.normed else POINTWISE

    @property
    def label(self) -> str:
        return str(self.form)

    @property
    def lanes(self) -> int:
        """Threads that share a head."""
        return self.head_dim // PER_LANE

    @property
    def abi(self) -> Abi:
        element = cuda.STORAGE[self.dtype]
        read = f"const {element}*"  # not restricted: results may be in place
        pointers = [ptr("q", read), ptr("k", read)]
        pointers += [ptr("positions", "const long long* __restrict__")]
        weights = ("q_weight", "k_weight") if self.normed else ()
        pointers += [ptr(n, f"{read} __restrict__") for n in ("cos_sin", *weights)]
        pointers += [ptr(n, f"{element}*") for n in ("q_out", "k_out")]
        strides = [Param(f"{n}_{of}", "i64") for n in ARRAYS for of in ("token", "head")]
        scalars = [Param("positions_max", "i64")]
        scalars += [Param("eps", "f32")] if self.normed else []
        sizes = [Param(n, "u32") for n in ("tokens", "heads", "q_heads")]
        return Abi((*pointers, *strides, *scalars, *sizes))

    @property
    def grid(self) -> Expr:
        return ceil_div(TOKENS * HEADS * LANES_OF_HEAD, self.threads)

    @property
    def requires(self) -> Expr:
        return TRUE

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        items = TOKENS * HEADS * LANES_OF_HEAD
        return (("blockIdx.x * THREADS + threadIdx.x", items + self.threads, INDEX_MAX),)

    def roofline(self, dtype: Hashable) -> Roofline:
        return Roofline(nbytes=TOKENS * HEADS * LANES_OF_HEAD * (PER_LANE * 2 * 2))

    @property
    def context(self) -> Mapping[str, Any]:
        turn = pointwise.formula(
            rotary.rotate, ("first", "second", "cos", "sin"), (self.dtype,) * 4
        )
        norm = self._norm
        return MappingProxyType(
            {
                "formula": norm,
                "functions": cuda.functions,
                "rotated": [*_pairs(turn, {})],
                "scale": [*_scale(norm)],
                "scaled": [*_pairs(norm, {_root(norm): "scale"})],
            }
        )

    @property
    def _norm(self) -> Formula:
        """Formula of the RMS norm of a head, the same as of :func:`ptxgen.rms_norm`."""
        d = self.dtype
        return row_reductions.formula(f"rms_norm_rounded x={d} weight={d} eps=f32 > {d}")

    @property
    def expects(self) -> tuple[Expect, ...]:
        exchange = (Expect("shfl"),) if self.normed and self.lanes > 1 else ()
        both = Expect(f"cvt.rn.{self.dtype}x2.f32", (f"cvt.rn.{self.dtype}.f32",))
        return (Expect("mul.rn.f32", ("fma.*",)), both, *exchange, *super().expects)

    def describe(self) -> tuple[str, ...]:
        lines = f"heads of {self.head_dim} elements, {self.lanes} threads each; CTAs {self.grid}"
        return (f"contract {self.contract}: {self.contract.step}", lines)


def _root(norm: Formula) -> Node:
    """Returns the node ``rsqrt(mean + eps)`` of a norm's formula."""
    return next(n for n in norm.nodes if n.op == "call" and n.level == "row")


def _scale(norm: Formula) -> Iterator[str]:
    """Yields the C++ statements that return ``rsqrt(mean + eps)`` from ``total``, the sum of a
    head's squares, and ``eps``. A head with a norm has a power of two elements, so the mean is an
    exact product.
    """
    (mean,) = (n for n in norm.nodes if n.op == "div" and n.args[0].op == "reduce")
    names = {n: n.data.name for n in norm.nodes if n.op == "input"}
    names[mean], root = "__fmul_rn(total, 1.0f / DIM)", _root(norm)
    yield from cuda.statements([root], names)
    yield f"return {names[root]};"


def _pairs(formula: Formula, known: Mapping[Node, str]) -> Iterator[str]:
    """Yields the C++ statements that compute the results of a formula for two neighbours, each pair
    in a word, from words of its inputs. One instruction rounds both. ``known``: C++ names of nodes
    that are the same for both.
    """
    names = {node: (name, name) for node, name in known.items()}
    for node in formula.nodes:
        if node.op == "input":
            names.setdefault(node, (f"lower({node.data.name})", f"upper({node.data.name})"))
    for node in ordered([o.node for o in formula.outputs], names):
        own = f"v{len(names)}"
        low, high = ([names[each][i] for each in node.args] for i in (0, 1))
        if node.op == "round_to":
            yield f"const unsigned {own} = rounded({low[0]}, {high[0]});"
            names[node] = f"lower({own})", f"upper({own})"
            continue
        names[node] = f"{own}_low", f"{own}_high"
        for name, given in zip(names[node], (low, high), strict=True):
            yield f"const float {name} = {cuda.expression(node, given)};"
    for output in formula.outputs:
        yield f"{output.name} = rounded({', '.join(names[output.node])});"
