"""Products of 4-bit integers: the contract, the ranges of elements, their packing, and the
signature of ``int4.gemm``.

The ``int4`` contract, version 1
--------------------------------
For one output with the operand vectors ``a`` and ``b`` of length K, all s4 or all u4:

1. ``acc`` is the sum of ``a[k] * b[k]``, exact in int32 in any order, as K is at most
   ``ELEMENTS[dtype].k_max``. There is no plan.
2. In f32, each step rounded once, to nearest even: ``v = float(acc)``; ``v * alpha``. Then, each
   only where given: ``v + beta * float(c)``, the product rounded, then the sum;
   ``v + float(bias[n])``; the activation.
3. The result is v, rounded to an integer (half to even) and clamped to the range of the elements;
   NaN gives 0. ``out_dtype`` may select ``acc`` (int32) or v (float32) instead.

Without C, beta is ignored. K = 0 gives sums of 0.

Packing
-------
A byte holds two elements, the one of even index in its low half, along the contiguous axis: K for A
and for B in layout "rcr" (B is [N, K]); N for B in "rrr" ([K, N]), for C and for the result.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass
from typing import Any

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.dtype import name_of
from ptxgen.numerics.option import Choice
from ptxgen.numerics.signature import Signature

INT4 = Contract(
    "int4", 1, "acc = acc + a[k] * b[k], exact in int32; then f32", "tc", accumulator="s32"
)
SUM_MAX = (1 << 31) - 1
"""The largest int32."""


@dataclass(frozen=True)
class Element:
    """Value range of a 4-bit integer dtype, ``low`` to ``high``."""

    low: int
    high: int

    @property
    def product(self) -> int:
        """Largest magnitude of a product of two elements."""
        return max(self.low**2, self.high**2)

    @property
    def k_max(self) -> int:
        """Largest K at which a sum of K products never overflows int32."""
        return SUM_MAX // self.product


ELEMENTS = {"s4": Element(-8, 7), "u4": Element(0, 15)}
"""Value ranges of the 4-bit dtypes, by name."""
LAYOUTS = ("rcr", "rrr")
EPILOGUES = ("identity", "bias", "relu", "gelu", "silu")
"""Epilogues of ``int4.gemm``: "identity" adds no bias, all others add one, and the last three then
apply the activation of their name."""
BIASES = ("float32", "int32")
WIDE = ("int32", "float32")
"""Dtypes of unpacked results: the int32 sums, or the f32 values before rounding to 4 bits."""
STAIRS = {
    "gelu": (
        "0x1.563802p-1 0x1.96ca92p+0 0x1.41ea86p+1 0x1.c01a9ap+1 0x1.200042p+2 "
        "0x1.6p+2 0x1.a00002p+2 0x1.ep+2 0x1.100002p+3 0x1.3p+3 0x1.500002p+3 0x1.7p+3 "
        "0x1.900002p+3 0x1.bp+3 0x1.d00002p+3"
    ),
    "silu": (
        "0x1.7a4898p-1 0x1.c22ab2p+0 0x1.561a08p+1 0x1.cc4a38p+1 0x1.230ceep+2 "
        "0x1.616842p+2 0x1.a09e94p+2 0x1.e043aep+2 0x1.100e26p+3 0x1.3005d2p+3 "
        "0x1.50026p+3 0x1.7000f4p+3 0x1.900064p+3 0x1.b00026p+3 0x1.d00012p+3"
    ),
}
"""Thresholds of activations as step functions to integers: the least f32 numbers, as hexadecimal
literals, whose activations round to 1, 2, 3 .. 15. Smaller numbers and NaN give 0. A search over
the activations' formulas found them; a test repeats it."""
PACKED = "uint8"
"""Dtype of arrays of packed elements, two a byte."""

VARIANTS = tuple(
    (dtype, layout, epilogue, bias)
    for dtype, layout, epilogue in itertools.product(ELEMENTS, LAYOUTS, EPILOGUES)
    for bias in ((None,) if epilogue == "identity" else BIASES)
)
"""Kernel variants of ``int4.gemm``: (dtype, layout, epilogue, bias dtype or None)."""

DTYPE = Choice(*ELEMENTS)
LAYOUT = Choice(*LAYOUTS)
ACTIVATION = Choice(None, *(e for e in EPILOGUES if e != "bias"))
"""Option ``activation`` of ``int4.gemm``, with its allowed values."""

GEMM = Signature(
    "int4_gemm",
    ("a", "b", "c", "bias"),
    ("out",),
    {
        "rcr": {"a": "M K/2", "b": "N K/2", "c": "M N/2", "bias": "N", "out": "M N/2"},
        "rrr": {"a": "M K/2", "b": "K N/2", "c": "M N/2", "bias": "N", "out": "M N/2"},
    },
    ("M", "N", "K"),
    optional=frozenset({"c", "bias"}),
    over={"out": ("c",)},
)


def epilogue(activation: str | None, bias: bool) -> str:
    """Returns the epilogue of a call, one of :data:`EPILOGUES`; ``bias``: whether one is passed.

    Raises OptionError if the activation needs a bias, or takes none.
    """
    found = activation or ("bias" if bias else "identity")
    if bias != (found != "identity"):
        has = "takes none" if bias else "takes one: float32 or int32, of length N"
        raise OptionError(f"bias is {'given' if bias else 'None'}; activation {activation!r} {has}")
    return found


def check_k(dtype: str, k: int) -> None:
    """Raises ShapeError if sums of ``k`` products of ``dtype`` may overflow int32."""
    if k > ELEMENTS[dtype].k_max:
        raise ShapeError(
            f"K is {k}; of {dtype} takes at most {ELEMENTS[dtype].k_max}, so that every sum is an "
            "int32"
        )


def result(dtype: str, out_dtype: Any, out: str | None) -> str:
    """Returns the array dtype of the result: :data:`PACKED` or one of :data:`WIDE`.

    ``dtype``: that of the elements; ``out_dtype``: the option; ``out``: dtype of the array to write
    to, if there is one. Raises DtypeError for other dtypes.
    """
    accepted = (PACKED, *WIDE)
    if out_dtype is None:
        what, found = "out's dtype", PACKED if out is None else out
    else:
        what = "out_dtype"
        same = isinstance(out_dtype, str) and out_dtype == dtype  # numpy.dtype("u4") is uint32
        found = PACKED if same else name_of(out_dtype, what, accepted)
    if found not in accepted:
        raise DtypeError(f"{what} is {found!r}; takes {', '.join(map(repr, (dtype, *accepted)))}")
    return found


def shape(m: int, n: int, dtype: str) -> tuple[int, int]:
    """Returns the array shape of a result [m, n]: [m, n // 2] if ``dtype`` is :data:`PACKED`."""
    return m, n if dtype in WIDE else n // 2


def pack(x: Any) -> Any:
    """Packs integers two a byte along the last axis: ``x[2i] & 15 | x[2i + 1] << 4``."""
    bits = sys.modules[_module(x)].asarray(x & 15, dtype=sys.modules[_module(x)].uint8)
    return bits[..., ::2] | bits[..., 1::2] << 4


def unpack(x: Any, dtype: str) -> Any:
    """Unpacks bytes to two integers each along the last axis, as int8 ("s4") or uint8 ("u4")."""
    xp = sys.modules[_module(x)]
    *outer, last = x.shape
    both = xp.stack((x & 15, x >> 4), -1).reshape(*outer, 2 * last)
    return (both ^ 8).view(xp.int8) - 8 if ELEMENTS[dtype].low < 0 else both


def _module(x: Any) -> str:
    """Returns the name of the array library of ``x`` (numpy, torch), which is imported already."""
    return type(x).__module__.partition(".")[0]
