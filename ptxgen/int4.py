"""Matrices of 4-bit integers: packing them.

Both take arrays of NumPy, PyTorch or CuPy. :mod:`ptxgen.numerics.int4` has the format. Importing
this does no work.
"""

from __future__ import annotations

from ptxgen.numerics.int4 import pack, unpack

__all__ = ["pack", "unpack"]
