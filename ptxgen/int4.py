"""Matrices of 4-bit integers: packing them, and their products.

:func:`pack` and :func:`unpack` take arrays of NumPy, PyTorch or CuPy, and :func:`gemm` whatever
operations take. :mod:`ptxgen.numerics.int4` has the contract and the format. Importing this does no
work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxgen.numerics.int4 import pack, unpack

if TYPE_CHECKING:
    from ptxgen.ops.int4 import int4_gemm as gemm

__all__ = ["gemm", "pack", "unpack"]


def __getattr__(name: str) -> Any:
    if name != "gemm":
        raise AttributeError(f"module 'ptxgen.int4' has no attribute {name!r}")
    from ptxgen.ops.int4 import int4_gemm as gemm

    globals()[name] = gemm
    return gemm
