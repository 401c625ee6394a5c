"""Cross entropy over a vocabulary: kernels that read logits once, by segments (``flce/3``).

=================  ==============================================================
``ROWS, COLS``     rows, and classes; 1 .. 2^31 - 1
``SEGMENTS``       ceil(COLS / SEGMENT), of the contract
``SMS``            streaming multiprocessors of the device
=================  ==============================================================

Further scalar parameters: the row strides ``LDX`` and ``LDG`` in elements, ``FLAGS``, and the
formula's scalars. Rows may be unaligned; rows aligned to 16 bytes are read by vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.expr import TRUE, Expr, ceil_div, minimum, var
from ptxgen.numerics import softcap, vocab_segments
from ptxgen.numerics.contract import ITEMSIZE, Contract
from ptxgen.numerics.formula import STORED, Formula
from ptxgen.numerics.row_reductions import REAL
from ptxgen.numerics.vocab_segments import SEGMENT
from ptxgen.spec import formula as cuda
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import ARCHITECTURES, INDEX_MAX, WARP, Expect, KernelSpec, check
from ptxgen.spec.space import SIZE, SMS_MAX, Between, Space

ROWS, COLS, SEGMENTS, SMS = var("ROWS"), var("COLS"), var("SEGMENTS"), var("SMS")
SPACE = Space(
    "logits",
    (("ROWS", SIZE), ("COLS", SIZE), ("SMS", Between(1, SMS_MAX))),
    derived=(("SEGMENTS", ceil_div(COLS, SEGMENT)),),
)

WIDE_TARGET = 1
"""Bit of ``flags``: targets are 64-bit integers."""
PARTS = ("segments", "gradient")
RUN = 4
"""Neighbouring segments (of 256 classes) of a row that a warp computes."""
ABREAST_MAX = 2048
"""Most rows of logits that are computed at a time; CTAs loop over the others."""


@dataclass(frozen=True)
class LogitsSpec(KernelSpec):
    """A kernel that loops over rows of logits; each of a CTA's ``warps`` computes a run of
    :data:`RUN` neighbouring segments.

    ``part``: "segments" (writes maximum and sum of each segment, and the target's logit) or
    "gradient" (writes the gradient of each logit, possibly in place). ``has_softcap``: whether
    logits have a softcap.
    """

    part: str
    has_softcap: bool = False
    warps: int = 4
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = vocab_segments.FLCE

    family: ClassVar[str] = "vocab_segments_logits"
    template: ClassVar[str] = "vocab_segments/segments.cu.j2"
    shared_bytes: ClassVar[int] = 0
    legible: ClassVar[bool] = False
    WIDE_TARGET: ClassVar[int] = WIDE_TARGET
    RUN: ClassVar[int] = RUN
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "part": "result: segments (maximum and sum of each) or gradient",
        "has_softcap": "whether logits have a softcap",
        "warps": "warps of a CTA",
    }

    def __post_init__(self) -> None:
        check(self.part in PARTS, type(self).__name__, "part", self.part, PARTS)
        name = self.name
        check(self.dtype in REAL, name, "dtype", self.dtype, REAL)
        check(1 <= self.warps <= WARP, name, "warps", self.warps, f"1 .. {WARP}")
        check(self.min_arch in ARCHITECTURES, name, "min_arch", self.min_arch, [*ARCHITECTURES])

    @property
    def label(self) -> str:
        return f"{self.part}_{'capped_' if self.has_softcap else ''}{self.dtype}"

    @property
    def threads(self) -> int:
        return self.warps * WARP

    @property
    def itemsize(self) -> int:
        """Bytes of a logit."""
        return ITEMSIZE[self.dtype]

    @property
    def abreast(self) -> int:
        """Segments whose elements a warp loads at a time: 64 bytes a lane."""
        return {2: 4, 4: 2, 8: 1}[self.itemsize]

    @property
    def resident(self) -> int:
        """Resident CTAs per SM, as registers allow."""
        return 3 if self.itemsize == 8 else 6 if self.part == "segments" else 5

    @property
    def wide(self) -> str:
        """Dtype in which the kernel computes with logits."""
        return STORED[self.dtype]

    @property
    def context(self) -> Mapping[str, Any]:
        return MappingProxyType(
            {
                "T": cuda.STORAGE[self.dtype],
                "C": cuda.CTYPES[self.wide],
                "SEGMENT": SEGMENT,
                "formula": formula(self.part, self.dtype, self.has_softcap),
                "functions": cuda.functions,
                **logit_context(self.part, self.dtype, self.has_softcap),
            }
        )

    @property
    def abi(self) -> Abi:
        storage, wide = cuda.STORAGE[self.dtype], cuda.CTYPES[self.wide]
        x, target = ptr("x", f"const {storage}*"), ptr("target", "const void*")
        counts = tuple(Param(name, "u32") for name in ("rows", "cols", "flags"))
        numbers = softcap_params(self.wide) if self.has_softcap else ()
        if self.part == "segments":
            results = (ptr(name, f"{wide}*") for name in ("top", "total", "hit"))
            return Abi((x, target, *results, Param("ldx", "i64"), *counts, *numbers))
        given = (ptr(name, f"const {wide}*") for name in ("top", "scale"))
        dy = ptr("dy", f"const {wide}*", optional=True)
        strides = tuple(Param(name, "i64") for name in ("ldx", "ldg", "ignore_index"))
        numbers = (Param("smoothing", self.wide), *numbers)
        return Abi((x, target, *given, dy, ptr("g", f"{storage}*"), *strides, *counts, *numbers))

    @property
    def grid(self) -> Expr:
        return ceil_div(SEGMENTS, self.warps * RUN) * minimum(ROWS, ABREAST_MAX)

    @property
    def requires(self) -> Expr:
        return TRUE

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        columns = self.warps * RUN * SEGMENT
        return (
            ("segments + WARPS * RUN - 1", SEGMENTS + (self.warps * RUN - 1), INDEX_MAX),
            ("columns of the last CTA", COLS + 2 * columns, INDEX_MAX),
            ("row + gridDim.x / ctas", ROWS + ABREAST_MAX, INDEX_MAX),
        )

    @property
    def expects(self) -> tuple[Expect, ...]:
        letter = self.wide
        return (Expect(f"fma.rn.{letter}", ("fma.*", "*mma.*")), *super().expects)

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"{self.part}: CTAs {self.grid} of {self.threads} threads",
        )


def softcap_params(wide: str) -> tuple[Param, ...]:
    """Returns the scalar parameters of a softcap, its value and its reciprocal. ``wide``: their
    dtype.
    """
    return tuple(Param(name, wide) for name in ("softcap", "inverse"))


def formula(part: str, dtype: str, capped: bool, near: bool = False) -> Formula:
    """Returns the formula of each logit: its term of the sum ("segments"), or its gradient.
    ``capped``: with a softcap; ``near``: a cheaper formula for segments whose logits are all small.
    """
    build = vocab_segments.term if part == "segments" else vocab_segments.gradient
    return build(dtype, capped, near)


def logit_context(part: str, dtype: str, capped: bool) -> dict[str, Any]:
    """Returns the variables that templates read for the computation of a logit, by name: constants,
    and the statements of :func:`code_paths`. ``capped``: with a softcap.
    """
    return {
        "NEAR": softcap.NEAR,
        "CAP": vocab_segments.CAP,
        "LEAST": vocab_segments.LEAST,
        "ways": code_paths(part, dtype, capped),
    }


def code_paths(part: str, dtype: str, capped: bool) -> dict[str, dict[str, list[str]]]:
    """Returns the C++ statements for a logit and for a segment's maximum, by code path: "Any"
    logits, or "Near" (cheaper, for segments whose logits are all small). ``capped``: with a
    softcap.
    """
    near = dtype != "f64" if capped else part == "segments" and ITEMSIZE[dtype] == 2
    paths = {"Any": False, **({"Near": True} if near else {})}
    return {
        name: {
            "each": _statements(formula(part, dtype, capped, near)),
            "peak": _statements(vocab_segments.peak(dtype, capped, near)),
        }
        for name, near in paths.items()
    }


def _statements(formula: Formula) -> list[str]:
    """Returns the C++ statements that return ``formula``'s result; inputs keep their names."""
    names = {n: n.data.name for n in formula.nodes if n.op == "input"}
    names |= {n: "(long long)cols" for n in formula.nodes if n.op == "length"}
    for node in formula.nodes:  # the reciprocal is a parameter
        if node.op == "div" and names.get(node.args[1]) == "softcap":
            names[node] = "inverse"
    (output,) = formula.outputs
    node = output.node.args[0] if output.node.op == "round_to" else output.node
    return [*cuda.statements([node], names), f"return {names[node]};"]
