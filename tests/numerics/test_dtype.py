"""Names of dtypes: every way in which the frameworks write one, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError
from ptxgen.numerics.dtype import DTYPES, ITEMSIZE, NAMES, STORABLE, name_of


def test_the_table() -> None:
    assert set(STORABLE.values()) == set(ITEMSIZE)
    for long, short in STORABLE.items():
        assert name_of(long, known=STORABLE) == name_of(short, known=STORABLE) == long
        if hasattr(np, long):
            kind = np.dtype(long)
            assert kind.itemsize == ITEMSIZE[short]
            for each in (kind, kind.type, kind.newbyteorder("=")):
                assert name_of(each, known=STORABLE) == long


def test_of_numpys_bool_before_its_version_2() -> None:
    assert name_of(type("bool_", (), {}), known=NAMES) == "bool"


def test_of_ml_dtypes_and_jax() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for long in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        kind = getattr(ml_dtypes, long)
        assert name_of(kind, known=STORABLE) == name_of(np.dtype(kind), known=STORABLE) == long
    jax_like = SimpleNamespace(dtype=np.dtype(np.float16))  # jax.numpy.float16 is such an object
    assert name_of(jax_like) == "float16"


def test_of_torch() -> None:
    torch = pytest.importorskip("torch")
    for long in DTYPES:
        assert name_of(getattr(torch, long)) == long


@pytest.mark.parametrize(
    "wrong", [3, None, float, "single", "float8", np.int32, np.dtype(">f4"), object(), [], "TORCH"]
)
def test_refused(wrong: object) -> None:
    with pytest.raises(
        DtypeError, match=r"^out_dtype is .*; takes 'float32', 'float64', 'bfloat16', "
    ):
        name_of(wrong, "out_dtype")


@pytest.mark.parametrize("asked", ["float32", "f32", np.float32, np.dtype(np.float32)])
def test_results_of_a_dtype_object(asked: object) -> None:
    rng = np.random.default_rng(5)
    x, w = (rng.standard_normal(s).astype(np.float16) for s in ((3, 20), (20, 4)))
    expected = reference.linear(x, w, out_dtype="float32", tier="simt", layout="kn")
    assert expected.dtype == np.float32
    assert (reference.linear(x, w, out_dtype=asked, tier="simt", layout="kn") == expected).all()
    with ptxgen.use_device("cpu"):
        got = ptxgen.linear(x, w, out_dtype=asked, tier="simt", layout="kn")
    assert got.dtype == np.float32 and (got == expected).all()
    assert ptxgen.explain("linear", 3, 4, 20, dtype=asked).dtype == "f32"


def test_a_dtype_that_no_tier_has_is_refused_without_a_tier() -> None:
    x = np.zeros((2, 3), np.int32)
    with pytest.raises(DtypeError) as caught, ptxgen.use_device("cpu"):
        ptxgen.linear(x, x.T, layout="kn")
    said = str(caught.value)
    takes = " or ".join(DTYPES)
    assert said == f"x has dtype int32; takes {takes}; convert it first"


class Refusing:
    """An array, as far as its type tells, of which nothing can be had."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __dlpack_device__(self) -> tuple[int, int]:
        if self.where == "device":
            raise RuntimeError("no device")
        return 1, 0

    def __dlpack__(self, **_: object) -> object:
        raise BufferError("not today")


@pytest.mark.parametrize(("where", "said"), [("device", "no device"), ("data", "not today")])
def test_operands_whose_producer_raises(where: str, said: str) -> None:
    with pytest.raises(ptxgen.DeviceError, match=f"^w is a .*Refusing whose __dlpack.*{said}") as e:
        ptxgen.linear(np.zeros((2, 3), np.float32), Refusing(where), layout="kn")
    assert isinstance(e.value.__cause__, (RuntimeError, BufferError))


def test_sizes_of_explain_are_integers() -> None:
    with pytest.raises(ptxgen.ShapeError, match="M is '16'; takes an integer"):
        ptxgen.explain("linear", "16", 1, 1)  # type: ignore[arg-type]
    with pytest.raises(ptxgen.ShapeError, match=r"K is 1\.5; takes an integer"):
        ptxgen.explain("linear", 1, 1, 1.5)  # type: ignore[arg-type]
    assert ptxgen.explain("linear", np.int64(16), 1, 1).values["M"] == 16
