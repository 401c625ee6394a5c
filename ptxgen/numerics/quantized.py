"""Matrix products with quantized weights: their contracts and signatures.

A weight is ``data``, ``scales`` and, in some formats, ``offsets``, ``outer`` and ``groups``
(:mod:`ptxgen.numerics.weight_format`). The option ``accumulate`` selects the contract:

======== ==========================================================================================
"tc"     ``tc16`` on the weight in x's dtype, bfloat16 or float16
"simt"   ``fma`` on the weight in f32
"f64"    ``wide``, for f32 operands: ``acc = fma(x[k], w[k], acc)`` in f64, where products are
         exact, k ascending, one chain from +0.0; ``acc + 0.0``; rounded once to f32; then the
         epilogue of the other contracts
======== ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import gcd
from typing import Any

from ptxgen.errors import OptionError
from ptxgen.numerics.contract import Contract, K, Plan
from ptxgen.numerics.formats import FORMATS, format_named
from ptxgen.numerics.option import Choice, Option
from ptxgen.numerics.signature import Signature
from ptxgen.numerics.weight_format import ARRAYS

WIDE = Contract(
    "wide",
    1,
    "acc = fma_rn(x[k], w[k], acc) in f64 of f32 operands, k ascending; rounded to f32 at the end",
    "f64",
    accumulator="f64",
)
"""The contract of ``accumulate="f64"``; its plan is :data:`WHOLE`."""
WHOLE = Plan("whole", K)
"""Plan of contract ``wide``: one chain over all of K."""

ACCUMULATED = {"float32": ("simt", "f64"), "bfloat16": ("tc",), "float16": ("tc",)}
"""Allowed values of option ``accumulate`` by operand dtype; ``"auto"`` means the first."""

ACCUMULATE = Choice("auto", "tc", "simt", "f64")
"""Option ``accumulate`` of products with quantized weights, which selects the contract: "tc" for
tensor cores, "simt" for fma in f32, "f64" for sums in f64, or "auto". :data:`ACCUMULATED` lists
those that each operand dtype allows."""


class _Forms(Mapping[str, Mapping[str, str]]):
    """Shapes of a product's arrays as text, such as ``"N K/2"`` for packed 4-bit codes, by name of
    the weight's format, then by array name (:attr:`Signature.forms`).

    Forms of the weight's arrays follow from the format's bits and block; ``given`` has the others.
    """

    def __init__(self, **given: str) -> None:
        self._given = given

    def __getitem__(self, name: str) -> Mapping[str, str]:
        try:
            row = format_named(name)
        except OptionError:
            raise KeyError(name) from None
        together = gcd(row.bits, 8)
        items = f"K/{8 // together}*{row.bits // together}"
        stored = {"data": f"N {items.removesuffix('*1').removesuffix('/1')}", "groups": "K"}
        for name, (_, block, several) in row.beside.items():
            stored[name] = f"N K/{block}*{len(several)}".removesuffix("*1")
        absent = dict.fromkeys(ARRAYS, f"N K/{row.block}")
        return {**self._given, **absent, **stored}

    def __iter__(self) -> Iterator[str]:
        return iter(FORMATS)

    def __len__(self) -> int:
        return len(FORMATS)


LINEAR = Signature(
    "quantized_linear",
    ("x", *ARRAYS, "bias"),
    ("out",),
    _Forms(x="... K", bias="N", out="... N"),
    ("M", "N", "K"),
    optional=frozenset({*ARRAYS[2:], "bias"}),
    by="format",
)
DGRAD = Signature(
    "quantized_linear_dgrad",
    ("dy", *ARRAYS),
    ("out",),
    _Forms(dy="... N", out="... K"),
    ("M", "N", "K"),
    optional=frozenset(ARRAYS[2:]),
    by="format",
)
DEQUANTIZE = Signature(
    "quantized_dequantize",
    ARRAYS,
    ("out",),
    _Forms(out="N K"),
    ("N", "K"),
    optional=frozenset(ARRAYS[2:]),
    by="format",
)
EMBEDDING = Signature(
    "quantized_embedding",
    ("indices", *ARRAYS),
    ("out",),
    _Forms(indices="...", out="... K"),
    ("M", "N", "K"),
    optional=frozenset(ARRAYS[2:]),
    by="format",
)
GROUPED = Signature(
    "quantized_grouped_linear",
    ("x", "ends", *ARRAYS, "bias"),
    ("out",),
    _Forms(x="M K", ends="E", bias="E L", out="M L"),
    ("M", "N", "K", "E", "L"),
    optional=frozenset({*ARRAYS[2:], "bias"}),
    by="format",
)


@dataclass(frozen=True)
class FormatName(Option):
    """Option that takes a weight format, or its name, and reads it as the name."""

    shown = "str"

    @property
    def key(self) -> str | None:
        """Source of the option's part of a prepared call's key (see :attr:`Option.key`): the value
        itself.
        """
        return "{0}"

    def read(self, name: str, value: Any) -> str:
        return format_named(value, name).name
