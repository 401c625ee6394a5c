# As `ptxgen generate` writes it.
from ptxgen.types import Array, ArrayT, Stream
from typing import Any

def gemm(
    a: ArrayT,
    b: Array,
    c: Array | None = None,
    bias: Array | None = None,
    *,
    dtype: str = 's4',
    layout: str = 'rcr',
    activation: str | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    out: Array | tuple[Array, ...] | None = None,
    out_dtype: Any | None = None,
    stream: Stream = None,
    kernel: str | None = None,
) -> ArrayT: ...
def pack(x: ArrayT, dtype: str = 's4') -> ArrayT: ...
def unpack(x: ArrayT, dtype: str = 's4') -> ArrayT: ...
