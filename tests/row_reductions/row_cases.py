"""Arguments of operations over rows, and calls of them on the CPU device, beside their oracles."""

from __future__ import annotations

import functools

import numpy as np
from bits import same_bits
from ml_dtypes import bfloat16

import ptxgen
from ptxgen.numerics.dtype import FULL
from ptxgen.numerics.row_reductions import TABLE
from ptxgen.ops import OPERATIONS
from ptxgen.oracle.row_reductions import compute
from ptxgen.runtime.cpu import CpuDevice

SEED = 77
NATIVE = {"float32": np.float32, "bfloat16": bfloat16, "float16": np.float16}
NATIVE |= {"float64": np.float64, "int32": np.int32, "int64": np.int64, "bool": np.bool_}


@functools.cache
def device():
    """Device for all calls that ask for no other: it decodes each kernel once."""
    return CpuDevice()


def arrays(name, shape, dtype, kind="normal"):
    """Arguments of an operation: rows of ``shape``, all that are optional too."""
    rng = np.random.default_rng([SEED, *shape])
    row, found = TABLE[name], []
    for argument, of in row.arrays.items():
        size = {"element": shape, "row": shape[:1], "column": shape[1:]}[of]
        if argument in row.integers:
            least = 0 if argument in row.lengths else -1
            found.append(rng.integers(least, shape[1] + 1, size))
            continue
        values = rng.standard_normal(size) * 3
        if kind == "special" and of == "element":
            odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40])
            values = np.where(rng.random(size) < 0.01, rng.choice(odd, size), values)
            values[0], values[-1] = -np.inf, 2.0
        wide = NATIVE[FULL[row.wide]] if row.wide else np.float32
        wide = np.float64 if dtype == np.float64 else wide
        with np.errstate(all="ignore"):
            found.append(values.astype(wide if of == "row" else dtype))
    return found


def over_rows(name):
    """The name of an operation of the table, over the last dimension."""
    return f"{name}_rows" if TABLE[name].form else name


def call(name, given, kernel=None, on=None):
    """An operation with its default options, on the device ``on``."""
    with ptxgen.use_device(on or device()):
        return OPERATIONS[over_rows(name)](*given, kernel=kernel)


def check(name, given, kernel=None, on=None):
    """Calls it, and compares with the oracle."""
    got, expected = call(name, given, kernel, on), compute(name, *given)
    pairs = zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
    for one, other in pairs:
        same_bits(one, other, seed=SEED, spec=kernel or name, what=f"{name} {given[0].shape}")
