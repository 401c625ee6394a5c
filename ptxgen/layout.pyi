# As `ptxgen generate` writes it.
from collections.abc import Sequence
from ptxgen.types import Array, Stream
from typing import Any

def concat(
    arrays: Sequence[Array],
    axis: int = 0,
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> Any: ...
def contiguous(
    x: Array,
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> Any: ...
def expand(x: Any, shape: Sequence[int]) -> Any: ...
def narrow(x: Any, axis: int, start: int, length: int) -> Any: ...
def pad(
    x: Array,
    widths: Sequence[int],
    value: float = 0,
    *,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> Any: ...
def rope(
    x: Array,
    cos: Array,
    sin: Array,
    *,
    interleaved: bool = False,
    out: Array | tuple[Array, ...] | None = None,
    stream: Stream = None,
) -> Any: ...
def split_qkv(x: Any, heads: int, kv_heads: int) -> tuple[Any, Any, Any]: ...
def transpose(x: Any, first: int = -2, second: int = -1) -> Any: ...
