"""``ptxgen bench sort``: sorts, searches and counts of random sizes, against PyTorch's.

Each entry of :data:`OPERATIONS` draws cases of one operation. PyTorch sorts stably, too; results
are compared element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from random import Random
from typing import Any

from ptxgen.bench import draw
from ptxgen.bench.measure import torch_dtype
from ptxgen.bench.opcase import DrawnArea, OpCase, Work, device_of
from ptxgen.numerics.dtype import ITEMSIZE

DTYPES = ("f32", "i32", "bf16", "i64")
"""Dtypes of keys, which cases take with equal probability."""
LONG, MOST = 1 << 16, 1 << 27
"""Least and largest number of keys of a vector."""
INDEX = 8
"""Bytes of an index."""


def keys(torch: Any, dtype: str, *shape: int) -> Any:
    """Returns random keys: normal floats, or integers of all values."""
    device = device_of(torch)
    if dtype[0] != "i":
        return torch.randn(shape, device=device).to(torch_dtype(torch, dtype))
    of = getattr(torch, f"int{dtype[1:]}")
    limits = torch.iinfo(of)
    return torch.randint(limits.min, limits.max, shape, device=device, dtype=of)


def integers(torch: Any, count: int, below: int) -> Any:
    """Returns ``count`` random int64 from 0 to ``below`` - 1."""
    return torch.randint(0, below, (count,), device=device_of(torch))


def same(ours: Any, theirs: Any) -> bool:
    """Returns whether tensors, or all tensors of two tuples, have equal elements."""
    import torch

    pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
    return all(torch.equal(a, b) for a, b in pairs)


def first_same(ours: Any, theirs: Any) -> bool:
    """Returns whether the first of several tensors have equal elements."""
    return same(ours[0], theirs[0])


# -- cases ----------------------------------------------------------------------------------
def sort_case(name: str, dtype: str, *shape: int) -> OpCase:
    """Returns a case of ``sort`` or ``argsort`` along the last dimension of ``shape``."""

    def make(torch: Any) -> Work:
        import ptxgen.torch as ours

        x = keys(torch, dtype, *shape)
        call = ours.argsort if name.startswith("argsort") else ours.sort
        stock = torch.argsort if name.startswith("argsort") else torch.sort

        def of_torch(x: Any) -> Any:
            found = stock(x, dim=-1, stable=True)
            return tuple(found) if not isinstance(found, torch.Tensor) else found

        return Work((x,), call, of_torch, compiled=False, agree=same)

    size, kept = ITEMSIZE[dtype], not name.startswith("argsort")
    nbytes = prod(shape) * (size * (1 + kept) + INDEX)
    return OpCase(name, f"{'x'.join(map(str, shape))} {dtype}", nbytes, make)


def search_case(n: int, count: int) -> OpCase:
    """Returns a case of ``searchsorted``: ``count`` values in a sorted vector of ``n``."""

    def make(torch: Any) -> Work:
        import ptxgen.torch as ours

        rising, values = keys(torch, "f32", n).sort()[0], keys(torch, "f32", count)
        given = rising, values
        return Work(given, ours.searchsorted, torch.searchsorted, compiled=False, agree=same)

    return OpCase("searchsorted", f"{count} in {n}", 4 * n + (4 + INDEX) * count, make)


def count_case(name: str, n: int, below: int) -> OpCase:
    """Returns a case of ``bincount`` or ``unique`` of ``n`` integers smaller than ``below``.

    PyTorch's wait for the host, as their results have a size that the numbers decide.
    """

    def make(torch: Any) -> Work:
        import ptxgen.torch as ours

        x = integers(torch, n, below)
        if name == "bincount":
            stock = partial(torch.bincount, minlength=below)
            return Work((x,), partial(ours.bincount, minlength=below), stock, False, agree=same)

        def agree(ours: Any, theirs: Any) -> bool:
            values, count, inverse, counts = ours
            n = int(count)
            return n == len(theirs[0]) and same((values[:n], inverse, counts[:n]), theirs)

        stock = partial(torch.unique, return_inverse=True, return_counts=True)
        return Work((x,), partial(ours.unique, size=below), stock, False, agree=agree)

    nbytes = INDEX * (n + below) if name == "bincount" else INDEX * 2 * (n + below)
    return OpCase(name, f"{n} below {below}", nbytes, make)


def topk_case(m: int, n: int, k: int) -> OpCase:
    """Returns a case of ``topk`` of m rows of n; of equal elements PyTorch may take others."""

    def make(torch: Any) -> Work:
        import ptxgen.torch as ours

        stock = partial(torch.topk, k=k)
        return Work(
            (keys(torch, "f32", m, n),), partial(ours.topk, k=k), stock, False, None, first_same
        )

    return OpCase("topk", f"{k} of {m}x{n}", 4 * m * n + (4 + INDEX) * m * k, make)


# -- draws ----------------------------------------------------------------------------------
def _vector(random: Random, name: str) -> OpCase:
    dtype = random.choice(DTYPES)
    return sort_case(name, dtype, draw.rows(random, LONG, MOST >> (dtype == "i64")))


def _rows(random: Random, name: str) -> OpCase:
    dtype, n = random.choice(DTYPES), draw.rows(random, 8, 1 << 17)
    return sort_case(name, dtype, max(1, draw.integer(random, 1 << 18, 1 << 25) // n), n)


def _search(random: Random) -> OpCase:
    return search_case(*(draw.integer(random, 1 << 10, 1 << 23) for _ in range(2)))


def _counts(random: Random, name: str) -> OpCase:
    return count_case(name, draw.integer(random, LONG, 1 << 24), draw.integer(random, 16, 1 << 18))


def _topk(random: Random) -> OpCase:
    n = draw.integer(random, 256, 1 << 18)
    return topk_case(max(1, (1 << 23) // n), n, draw.integer(random, 1, n))


OPERATIONS: Mapping[str, Callable[[Random], OpCase]] = {
    "sort": partial(_vector, name="sort"),
    "argsort": partial(_vector, name="argsort"),
    "sort rows": partial(_rows, name="sort rows"),
    "searchsorted": _search,
    "bincount": partial(_counts, name="bincount"),
    "unique": partial(_counts, name="unique"),
    "topk": _topk,
}
"""Functions that draw a random case, by name of the case."""


class Sort(DrawnArea):
    """Benchmark ``ptxgen bench sort``: random sorts, searches and counts, against PyTorch."""

    name = "sort"
    about = (
        "Times sorts, searches and counts beside PyTorch's (CUB), in one run, with a cold L2, "
        "after comparing results; medians in µs. limit = bytes / 4.3 TB/s, each element once."
    )
    operations = OPERATIONS


main, _parser = Sort.main, Sort.parser
