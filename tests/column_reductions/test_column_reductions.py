"""Reductions down columns: each operation, dtype and layout against the oracle; what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from bits import same_bits
from gather_cases import agree, numbers

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics.column_reductions import REDUCTIONS
from ptxgen.numerics.formula import Formula, Output, read
from ptxgen.ops import OPERATIONS
from ptxgen.oracle.column_reductions import reduce_columns as oracle
from ptxgen.oracle.reduction_order import reduce
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec.column_reductions import ColumnsSpec, variant


def reduce_columns(name, *arrays, **options):
    return OPERATIONS[name](*arrays, **options)


PLAIN = ("sum", "prod", "max", "min", "mean")


@pytest.fixture(autouse=True)
def device():
    with ptxgen.use_device(CpuDevice()):
        yield


@pytest.mark.parametrize("dtype", ["bf16", "f32", "f64", "i32"])
def test_plain_reductions(dtype):
    rng = np.random.default_rng(1)
    for how in PLAIN:
        name = f"{how}_columns"
        for shape, kind in (((2, 70, 8), "special"), ((1, 3, 5), "subnormal"), ((2, 1, 1), "wide")):
            x = numbers(rng, shape, dtype, kind)
            if how == "mean" and dtype.startswith("i"):
                with pytest.raises(DtypeError, match="x has dtype int"):
                    reduce_columns(name, x)
                continue
            agree(reduce_columns(name, x), oracle(name, x), what=f"{how} {dtype} {shape} {kind}")


def test_a_column_has_the_bits_of_a_row():
    x = numbers(np.random.default_rng(2), (2100, 3), "f32", "wide")
    got = reduce_columns("sum_columns", x[None])
    same_bits(got[0], reduce("sum", np.ascontiguousarray(x.T))[:, 0])


def test_wider_results_and_own_memory():
    rng = np.random.default_rng(3)
    x, n = numbers(rng, (2, 9, 4), "bf16"), numbers(rng, (1, 40, 4), "i32")
    wide = reduce_columns("sum_columns", x, out_dtype="float32")
    agree(wide, oracle("sum_columns", x, out_dtype="float32"))
    long = reduce_columns("sum_columns", n, out_dtype="int64")
    same_bits(long[0], n.sum(axis=1, dtype=np.int32)[0].astype(np.int64))
    into = np.full((2, 4), np.nan, np.float32)
    assert reduce_columns("sum_columns", x, out=into) is into
    same_bits(into, wide)


def test_empty_reductions():
    nothing = np.zeros((2, 0, 3), np.float32)
    for how, value in (("sum", 0), ("prod", 1), ("max", -np.inf), ("min", np.inf)):
        same_bits(reduce_columns(f"{how}_columns", nothing), np.full((2, 3), value, np.float32))
    assert reduce_columns("sum_columns", np.zeros((0, 4, 3), np.float32)).shape == (0, 3)


def test_rows_further_apart():
    """Matrices that overlap, rows with gaps, and one row for all: any strides but along columns."""
    x = numbers(np.random.default_rng(4), (3, 80, 24), "bf16")
    for part in (x[:, ::2, :16], x[::2, :, 3:11], np.broadcast_to(x[:1, :1], (2, 50, 24))):
        agree(reduce_columns("sum_columns", part), oracle("sum_columns", part))


@pytest.mark.parametrize("dtypes", [("bf16", "bf16"), ("f32", "bf16"), ("f16", "f32")])
def test_gradients_of_norms(dtypes):
    rng = np.random.default_rng(5)
    dy, x = (numbers(rng, (3, 40, 24), d) for d in dtypes)
    mean, rstd = (numbers(rng, (3, 40), "f32") for _ in range(2))
    agree(ptxgen.rms_norm_wgrad(dy, x, rstd), reference.rms_norm_wgrad(dy, x, rstd))
    got = ptxgen.layer_norm_wgrad(dy, x, mean, rstd, out_dtype="float32")
    agree(got, reference.layer_norm_wgrad(dy, x, mean, rstd, out_dtype="float32"))
    flat = (a.reshape(-1, *a.shape[2:]) for a in (dy, x, mean, rstd))
    agree(ptxgen.layer_norm_wgrad(*flat, out_dtype="float32"), got)


def test_what_is_refused():
    x = np.ones((2, 5, 4), np.float32)
    with pytest.raises(ShapeError, match=r"x has shape \[5, 4\]; takes \[O, N, I\]"):
        reduce_columns("sum_columns", x[0])
    with pytest.raises(DtypeError, match="x has dtype int16"):
        reduce_columns("sum_columns", x.astype(np.int16))
    with pytest.raises(DtypeError, match="out_dtype is 'float64'; takes 'float32'"):
        reduce_columns("sum_columns", x, out_dtype="float64")
    with pytest.raises(DtypeError, match="rstd has dtype float16; takes float32"):
        ptxgen.rms_norm_wgrad(x, x, np.ones((2, 5), np.float16))
    with pytest.raises(OptionError, match="it requires 16 <= ALIGN"):
        reduce_columns("sum_columns", x[..., :3], kernel=_route("whole", 16, 8))


def _route(part, width, share):
    dtype = variant("sum_columns", REDUCTIONS["sum_columns"].formula(("f32",), "f32"))
    return ColumnsSpec(part, width, share, dtype=dtype).name


def test_formulas_that_no_kernel_of_columns_computes():
    x = read("x", "f32")
    twice = (x - x.reduce("sum")).reduce("max")
    for node in (x, twice, x.reduce("sum") + x):
        with pytest.raises(ptxgen.SpecError, match="columns are reduced once"):
            variant("wrong", Formula((Output("out", "f32", node),)))
    many = [(x * float(i)).reduce("sum") for i in range(17)]
    with pytest.raises(ptxgen.SpecError, match="17 sums"):
        variant("many", Formula(tuple(Output(f"o{i}", "f32", m) for i, m in enumerate(many))))
