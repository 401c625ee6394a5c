"""Dequantization of weights into scratch memory, for the dense GEMM kernels.

==========  ==========================================================================
``BLOCKS``  blocks of 64 elements, in the order of :mod:`ptxgen.numerics.weight_format`
``COUNT``   elements, for formats whose blocks are no multiples of 64
``COLUMNS`` elements of a row of the weight, for formats with groups
==========  ==========================================================================

A route's :class:`~ptxgen.spec.route.Step` defines both by the variables of its table's space.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, Self, cast

from ptxgen.cost.kernel import MOVE, KernelCost
from ptxgen.errors import SpecError
from ptxgen.expr import Expr, ceil_div, var
from ptxgen.numerics import formula as f
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.dtype import ITEMSIZE
from ptxgen.numerics.formats import FORMATS, is_prepared
from ptxgen.numerics.weight_format import Quantized, WeightFormat
from ptxgen.spec import formula as cuda
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import SCRATCH_MAX, Expect, KernelSpec, check
from ptxgen.spec.prepare import PreparingSpec
from ptxgen.spec.space import SIZE, SMS_MAX, Between, Space

BLOCKS, COUNT = var("BLOCKS"), var("COUNT")
STORAGE = {**cuda.STORAGE, **dict.fromkeys(("u5", "e8m0"), "unsigned char")}
"""C++ types of scales and offsets in memory, by short dtype."""
PIECE = 64
"""Consecutive elements of a row of the weight that make a block; formats in :data:`LOOKED_UP` have
a scale for each. The variable ``BLOCKS`` counts the blocks of all rows."""
SPACE = Space(
    "quantized weights",
    (("BLOCKS", SIZE), ("COUNT", SIZE), ("COLUMNS", SIZE), ("SMS", Between(1, SMS_MAX))),
    within=BLOCKS * (PIECE * 4) <= SCRATCH_MAX,
)
"""Problems of dequantizing a weight; results have at most :data:`SCRATCH_MAX` bytes in f32."""
FORMAT = "format in which the weight is stored"
"""Description of the field ``format``, for the ``ptxgen`` command."""
_DTYPES = ("f32", "bf16", "f16")


def looked_up(format: WeightFormat) -> bool:
    """Returns whether kernels can hold the values of all codes of ``format`` in a table, which they
    multiply by the scale: prepared formats (:func:`ptxgen.numerics.formats.is_prepared`) without
    offsets, in blocks of :data:`PIECE` elements.
    """
    plain = format.decoding == "scale * code" and format.block == PIECE and format.bits == 4
    return plain and format.scales == "f32" and is_prepared(format)


LOOKED_UP = tuple(format for format in FORMATS.values() if looked_up(format))
"""Weight formats that GEMM kernels can read as they are stored (:func:`looked_up`); the codebook is
in registers or in shared memory."""


class QuantizedSpec(KernelSpec):
    """Base of the kernels that read a quantized weight as it is stored, in ``format``."""

    format: WeightFormat

    def seen(self, dtype: Hashable) -> Hashable:
        """Returns ``dtype`` unchanged: these kernels depend on the weight format, too."""
        return dtype

    def takes(self, dtype: Hashable) -> bool:
        return isinstance(dtype, Quantized)

    def of(self, dtype: Hashable) -> Self:
        """Returns this kernel for another dtype of x, or for another dtype and format."""
        wanted = dtype if isinstance(dtype, Quantized) else Quantized(str(dtype), self.format)
        check(
            self.takes(wanted),
            self.name,
            "format",
            wanted.format,
            "one that it reads as it is stored",
        )
        own = {"dtype": self.dtype, "format": self.format}
        changed = {name: v for name, v in wanted._asdict().items() if v != own[name]}
        return replace(cast(Any, self), **changed) if changed else self


@cache
def _fits(spec: KernelSpec, format: WeightFormat) -> bool:
    """Returns whether a kernel exists with another format: a stage may be larger."""
    try:
        replace(cast(Any, spec), format=format)
    except SpecError:
        return False
    return True


class PreparedSpec(QuantizedSpec):
    """Base of the kernels that read weights of prepared formats: codes of 4 bits are looked up in a
    table of 16 numbers for each block, codes of 8 bits decoded one by one.
    """

    def takes(self, dtype: Hashable) -> bool:
        if not isinstance(dtype, Quantized) or not is_prepared(dtype.format):
            return False
        return dtype.format == self.format or _fits(self, dtype.format)

    def decoded(self, code: str) -> str:
        """Returns the C++ expression of an element in f32, from that of its code's value; its
        scale and offset are called so.
        """
        items = {name: f.read(name, "f32") for name in ("code", "scale", "offset")}
        names = {items["code"]: code, items["scale"]: "scale", items["offset"]: "offset"}
        return cuda.nested(self.format.decode(**items), names)


class LookedUpSpec(QuantizedSpec):
    """Base of the kernels that decode a weight by a table in registers or in shared memory, for the
    formats in :data:`LOOKED_UP`.
    """

    def takes(self, dtype: Hashable) -> bool:
        return isinstance(dtype, Quantized) and looked_up(dtype.format)


@dataclass(frozen=True)
class DequantizeSpec(QuantizedSpec, PreparingSpec):
    """A kernel that decodes a weight in ``format``, rounds once to ``dtype`` and stores it densely.

    A thread converts ``vectors_per_thread`` times 8 elements. Codes of :data:`LOOKED_UP` formats
    are looked up by shuffles in a half warp; for other formats a thread evaluates the decoding
    formula.
    """

    dtype: str = "f32"
    cta_threads: int = 256
    vectors_per_thread: int = 4
    min_arch: str = "sm_80"
    format: WeightFormat = LOOKED_UP[0]

    family: ClassVar[str] = "quantized"
    template: ClassVar[str] = "quantized/dequantize.cu.j2"
    meanings: ClassVar[Mapping[str, str]] = {
        **PreparingSpec.meanings,
        "dtype": "dtype of the dequantized weight",
        "vectors_per_thread": "vectors of 8 elements that a thread converts",
        "format": FORMAT,
    }

    def __post_init__(self) -> None:
        name = self.name
        check(self.dtype in _DTYPES, name, "dtype", self.dtype, _DTYPES)
        self.check_threads()

    @property
    def label(self) -> str:
        return f"{self.format.name}_{self.dtype}"

    @property
    def contract(self) -> Contract:
        return self.format.contract

    @property
    def decoder(self) -> str:
        """Macro file of the template that loads and decodes codes."""
        return f"quantized/decode/{'codebook' if looked_up(self.format) else 'formula'}.cuh.j2"

    @property
    def context(self) -> Mapping[str, Any]:
        return MappingProxyType({"CODE": self.format.values, "decoding": self.decoding})

    def decoding(self, code: str) -> tuple[list[str], str]:
        """Returns the C++ statements that decode the element in ``code``, and the result's name."""
        row = self.format
        names = {f.read("code", "f32"): code}
        items = {
            name: f.read(name, "f32") for *_, several in row.beside.values() for name in several
        }
        for name, node in items.items():
            names[node] = f"{name}[t]" + (
                "[q]" if row.grouped and name not in row.outer_items else ""
            )
        found = row.decode(f.read("code", "f32"), **items)
        lines = list(cuda.statements([found], names))
        return lines, names[found]

    @property
    def abi(self) -> Abi:
        row, restrict = self.format, "__restrict__"
        if looked_up(row):
            data, beside = "unsigned", [ptr("scales", f"const float* {restrict}")]
        else:
            data = "unsigned char"
            beside = [
                ptr(name, f"const {STORAGE[dtype]}* {restrict}")
                for name, (dtype, *_) in row.beside.items()
            ]
        grouped = (ptr("groups", f"const unsigned* {restrict}"),) if row.grouped else ()
        columns = (Param("columns", "u32"),) if row.grouped else ()
        count = "blocks" if looked_up(row) else "count"
        stored = ptr("data", f"const {data}* {restrict}")
        return Abi((stored, *beside, *grouped, ptr("y", "uint4*"), Param(count, "u32"), *columns))

    @property
    def scratch(self) -> Mapping[str, Expr]:
        return {"y": BLOCKS * (PIECE * ITEMSIZE[self.dtype])}

    @property
    def grid(self) -> Expr:
        return ceil_div(BLOCKS * (PIECE // 8), self.threads * self.vectors_per_thread)

    @property
    def cost(self) -> KernelCost:
        read = BLOCKS * (PIECE // 2 + 4)
        return KernelCost(self.slots, self.grid, (MOVE,), read, read, self.scratch["y"])

    @property
    def expects(self) -> tuple[Expect, ...]:
        stored = Expect(
            f"st.global.v4.{'f32' if self.dtype == 'f32' else 'u32'}", ("st.global.[fu]*",)
        )
        next_one = Expect("griddepcontrol.launch_dependents", since="sm_90")
        product = Expect("mul.rn.f32", ("mul.f32", "mul.ftz*", "fma.*"))
        return (product, stored, next_one) if "*" in self.format.decoding else (stored, next_one)

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"CTAs {self.grid} of {self.threads} threads",
        )
