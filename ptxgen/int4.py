"""Matrices of 4-bit integers: packing them, and their products.

:func:`pack` and :func:`unpack` take arrays of NumPy, PyTorch or CuPy, and :func:`gemm` whatever
operations take. :mod:`ptxgen.numerics.int4` has the contract and the format. Importing this does no
work.
"""

from __future__ import annotations

from ptxgen.later import later
from ptxgen.numerics.int4 import pack, unpack

__all__ = ["gemm", "pack", "unpack"]

__getattr__, __dir__ = later(__name__, {"gemm": "ptxgen.ops.int4:int4_gemm.function"}, __all__)
