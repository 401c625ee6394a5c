"""Computes the shapes of attention's arrays from sizes, for ``explain``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptxgen.errors import OptionError, ShapeError
from ptxgen.numerics.option import Integer

SIZES = ("SEQUENCES", "HEADS", "KV_HEADS", "QUERIES", "KEYS", "DEPTH")
"""Names of attention's sizes, in the order of ``explain``'s arguments."""
ATTENDING = ("attention", "attention_grad")
"""Operations whose array shapes follow from attention's sizes (``SIZES``)."""
PAGE = "page"
"""Option of ``explain``: number of keys per page of a paged KV cache; without it, keys and values
are not in pages.
"""

Array = tuple[tuple[int, ...], str]
"""Shape and dtype of an array."""


def arrays(named: Mapping[str, int], dtype: str, layout: str, page: int | None) -> dict[str, Array]:
    """Returns shape and dtype of every argument of attention and its gradient, by name.

    ``page``: keys of a page, or None for keys without pages. Raises ShapeError, OptionError.
    """
    seqs, heads, kv_heads, queries, keys, depth = (named[name] for name in SIZES)
    if heads % kv_heads:
        raise ShapeError(f"HEADS is {heads}, KV_HEADS {kv_heads}; takes a multiple of KV_HEADS")

    def lying(count: int, tokens: int) -> Array:
        own = (count, tokens) if layout == "bhsd" else (tokens, count)
        return (seqs, *own, depth), dtype

    of_queries, of_keys = lying(heads, queries), lying(kv_heads, keys)
    counts: Array = (seqs,), "int32"
    of_heads: Array = (heads,), "float32"
    found: dict[str, Array] = {
        **dict.fromkeys(("q", "o", "do"), of_queries),
        **dict.fromkeys("kv", of_keys),
        **dict.fromkeys(("lengths", "starts", "query_lengths"), counts),
        **dict.fromkeys(("sinks", "slopes"), of_heads),
        "lse": ((seqs, heads, queries), "float32"),
        "mask": ((seqs, 1, queries, keys), "bool"),
        "bias": ((queries, keys), dtype),
    }
    if page is not None:
        blocks = -(-keys // page)
        found |= dict.fromkeys("kv", ((seqs * blocks, page, kv_heads, depth), dtype))
        found["block_table"] = (seqs, blocks), "int32"
    return found


def read(options: dict[str, Any], op: str) -> int | None:
    """Removes the option ``page`` from ``options`` and returns it, or None; with pages, adds the
    arrays that they need, ``block_table`` and ``lengths``. Raises OptionError for a ragged batch.
    """
    given = options.pop(PAGE, None)
    page = None if given is None else Integer(1).read(PAGE, given)
    if page is not None:
        options |= {"block_table": True, "lengths": True}
    for name in ("cu_seqlens", "cu_seqlens_k", *(() if page else ("block_table",))):
        if options.get(name):
            raise OptionError(
                f"{name} is {options[name]!r}; sizes pose {op} of separate sequences, with "
                f"{PAGE}= of pages; call {op}.kernels"
            )
    return page
