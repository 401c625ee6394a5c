"""Matrices of 4-bit integers: packing them, and their products.

:func:`pack` and :func:`unpack` take arrays of NumPy, PyTorch or CuPy, and :func:`gemm` whatever
operations take. :mod:`ptxgen.numerics.int4` has the contract and the format. Importing this does no
work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxgen.later import later
from ptxgen.numerics.int4 import pack, unpack

if TYPE_CHECKING:
    from ptxgen.ops.int4 import int4_gemm as gemm

__all__ = ["gemm", "pack", "unpack"]

__getattr__, __dir__ = later(__name__, {"gemm": "ptxgen.ops.int4:int4_gemm"})
