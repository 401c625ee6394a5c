# As `ptxgen generate` writes it.
from collections.abc import Sequence
from ptxgen.types import Array, ArrayT, Stream

def concat(
    arrays: Sequence[ArrayT],
    axis: int = 0,
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def contiguous(
    x: ArrayT,
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def expand(x: ArrayT, shape: Sequence[int]) -> ArrayT: ...
def narrow(x: ArrayT, axis: int, start: int, length: int) -> ArrayT: ...
def pad(
    x: ArrayT,
    widths: Sequence[int],
    value: float = 0,
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def rope(
    x: ArrayT,
    cos: Array,
    sin: Array,
    *,
    interleaved: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> ArrayT: ...
def split_qkv(x: ArrayT, heads: int, kv_heads: int) -> tuple[ArrayT, ArrayT, ArrayT]: ...
def transpose(x: ArrayT, first: int = -2, second: int = -1) -> ArrayT: ...
def view_as_complex(x: ArrayT) -> ArrayT: ...
def view_as_real(x: ArrayT) -> ArrayT: ...
