"""Measures the f32 functions of formulas against float64, over every f32 argument.

``python tools/function_errors.py`` prints the table of ``docs/reference/functions.md``; it takes
about two hours on two processors. Names select functions; ``--step N`` takes every N-th argument
only.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.numerics import functions
from ptxgen.oracle.formula import call

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
BLOCK = 1 << 14
"""Number of arguments computed at a time, so that intermediate arrays stay in the L2 cache."""
CHUNK = 1 << 26
"""Number of arguments in one task of the process pool."""

_erf: Callable[[F64], F64] = np.vectorize(math.erf, otypes=[np.float64])
_erfc: Callable[[F64], F64] = np.vectorize(math.erfc, otypes=[np.float64])


def _probability(t: F64) -> F64:
    return np.asarray(1 / (1 + np.exp(-t)), np.float64)


def _times(x: F64, probability: F64) -> F64:
    """Returns ``x * probability``, but -0.0 where the probability is 0."""
    return np.where(probability == 0, -0.0, x * probability)


TRUTH: dict[str, Callable[[F64], F64]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log1p": np.log1p,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "atan": np.arctan,
    "erf": _erf,
    "tanh": np.tanh,
    "sigmoid": _probability,
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "relu": lambda x: np.where(x <= 0, 0.0, x),
    "silu": lambda x: _times(x, _probability(x)),
    "gelu": lambda x: _times(x, 0.5 * _erfc(-x * math.sqrt(0.5))),
    "gelu_tanh": lambda x: _times(
        x, _probability(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    ),
}
"""Functions of one argument in float64, with relative errors below about 2**-40, by name."""


class Worst(NamedTuple):
    """Largest errors and their arguments: normal results in ulp, subnormal ones in units of
    2**-149.
    """

    normal: float
    at: float
    subnormal: float
    at_subnormal: float


def errors(value: F32, exact: F64) -> tuple[F64, NDArray[np.bool_]]:
    """Returns the error of each value in ulp, and whether its exact result is a normal number.

    The error is infinite if only one of both is a NaN, if only one is infinite and the other is far
    from overflow, or if both are zeros of different signs.
    """
    with np.errstate(all="ignore"):
        wide, size = value.astype(np.float64), np.abs(exact)
        normal = size >= 2.0**-126
        ulp = np.where(normal, np.ldexp(1.0, np.frexp(exact)[1] - 24), 2.0**-149)
        beyond = np.copysign(2.0**128, exact)  # an infinity is where f32 ends
        error = np.abs(
            np.where(np.isinf(wide), np.copysign(2.0**128, wide), wide)
            - np.where(size > 2.0**128, beyond, exact)
        )
        error = error / np.where(size >= 2.0**128, 2.0**104, ulp)
    same = np.isnan(value) & np.isnan(exact)
    error = np.where(np.isnan(error), np.where(same, 0, np.inf), error)
    wrong = (value == 0) & (exact == 0) & (np.signbit(value) != np.signbit(exact))
    return np.where(wrong, np.inf, error), normal | ~np.isfinite(exact)


def worst(name: str, blocks: Iterable[F32]) -> Worst:
    """Returns the largest errors of function ``name`` over ``blocks`` of arguments."""
    found = [0.0, 0.0, 0.0, 0.0]
    for x in blocks:
        with np.errstate(all="ignore"):
            exact = np.asarray(TRUTH[name](x.astype(np.float64)), np.float64)
        error, normal = errors(call(functions.FUNCTIONS[name], x), exact)
        for i, kind in ((0, normal), (2, ~normal)):
            of_kind = np.where(kind, error, 0)
            index = int(np.argmax(of_kind))
            if of_kind[index] > found[i]:
                found[i : i + 2] = float(of_kind[index]), float(x[index])
    return Worst(*found)


def arguments(first: int, last: int, step: int = 1) -> Iterator[F32]:
    """Yields, in blocks, the f32 values whose bits are ``range(first, last, step)``."""
    for start in range(first, last, BLOCK * step):
        bits = np.arange(start, min(start + BLOCK * step, last), step, dtype=np.uint32)
        yield bits.view(np.float32)


def _task(task: tuple[str, int, int]) -> Worst:
    name, first, step = task
    return worst(name, arguments(first, first + CHUNK, step))


def sweep(name: str, step: int, run: Callable[..., Iterable[Any]] = map) -> Worst:
    """Returns the largest errors of a function over every ``step``-th f32.

    ``step`` divides CHUNK or is below BLOCK; ``run`` maps tasks, such as a pool's ``map``.
    """
    parts = list(run(_task, [(name, first, step) for first in range(0, 1 << 32, CHUNK)]))
    normal = max(parts, key=lambda w: w.normal)
    small = max(parts, key=lambda w: w.subnormal)
    return Worst(normal.normal, normal.at, small.subnormal, small.at_subnormal)


def main() -> None:
    """Prints the table of docs/reference/functions.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--step", type=int, default=1)
    options = parser.parse_args()
    print("| function | largest error, ulp | where | of subnormal results | where |")
    print("|---|---|---|---|---|")
    with ProcessPoolExecutor() as pool:
        for name in options.names or TRUTH:
            found = sweep(name, options.step, pool.map)
            normal = f"{_up(found.normal)} | {found.at!r}" if found.normal else "0.000 |"
            small = "exact |"
            if found.subnormal:
                small = f"{_up(found.subnormal)} | {found.at_subnormal!r}"
            print(f"| `{name}` | {normal} | {small} |", flush=True)


def _up(error: float) -> str:
    return f"{math.ceil(1000 * error) / 1000:.3f}"


if __name__ == "__main__":
    main()
