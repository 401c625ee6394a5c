"""The library's operations. :mod:`ptxgen` exports them.

``problem`` reads what the arguments ask for, ``launch`` finds and prepares kernels for it,
and ``run`` drives both. Each operation adds its signature and its contract for readers.
"""

from ptxgen.ops.dgrad import linear_dgrad
from ptxgen.ops.forward import linear
from ptxgen.ops.product import matmul
from ptxgen.ops.wgrad import linear_wgrad

__all__ = ["linear", "linear_dgrad", "linear_wgrad", "matmul"]
