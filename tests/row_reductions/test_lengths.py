"""Lengths that only the device knows: how many elements of each row count."""

from __future__ import annotations

import numpy as np
import pytest
from batch_cases import numbers
from bits import same_bits
from steps import unchecked

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, IndexRangeError, OptionError, ShapeError, SpecError
from ptxgen.numerics.signature import Signature
from ptxgen.ops.explaining import program_of
from ptxgen.runtime.cpu import CpuDevice

BEYOND = {"softmax": 0.0, "log_softmax": -np.inf}
NAMES = list(BEYOND)


@pytest.fixture(autouse=True)
def device():
    with ptxgen.use_device(CpuDevice()):
        yield


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        ("f32", np.int32),
        ("f32", np.int64),
        ("bf16", np.int32),
        ("f16", np.int64),
        ("f64", np.int32),
    ],
)
@pytest.mark.parametrize("width", [1, 33, 1024, 5000])
@pytest.mark.parametrize("name", NAMES)
def test_padding_never_shows(name, width, dtype, kind):
    """Padding (NaN and infinities too), its length and other rows change no bit of a row."""
    x = numbers(5, width, dtype=dtype)
    lengths = np.array([0, 1, width // 2, width - 1, width], kind)
    for row, length in zip(x, lengths, strict=True):
        row[length:] = np.resize(np.array([np.nan, np.inf, -np.inf, 3e4], x.dtype), width - length)
    got = getattr(ptxgen, name)(x, lengths=lengths)
    same_bits(getattr(reference, name)(x, lengths=lengths), got)
    for row, of, length in zip(x, got, lengths, strict=True):
        assert (of[length:].astype("f4") == BEYOND[name]).all()
        if length:
            same_bits(of[:length], getattr(reference, name)(row[:length]))
    whole = np.full(5, width, kind)
    x = numbers(5, width, dtype=dtype)
    same_bits(getattr(ptxgen, name)(x, lengths=whole), getattr(reference, name)(x))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("name", NAMES)
def test_along_any_axis_of_what_broadcasts(name, axis):
    x = numbers(3, 4, 40)
    lead = [n for i, n in enumerate(x.shape) if i != axis % 3]
    rng = np.random.default_rng(axis % 3)
    for shape in (lead, [lead[0], 1], [lead[1]], []):
        lengths = rng.integers(0, x.shape[axis] + 1, shape)
        got = getattr(ptxgen, name)(x, axis, lengths=lengths)
        same_bits(got, getattr(reference, name)(x, axis, lengths=lengths))
        rows, each = np.moveaxis(got, axis, -1), np.broadcast_to(lengths, lead)
        count = (rows != BEYOND[name]).sum(-1)
        assert (count == each).all()


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("name", NAMES)
def test_what_nobody_checks_is_defined_and_in_bounds(name, kind):
    """Lengths out of range, which nobody checks on a GPU, are clamped; nothing is read outside."""
    x = numbers(6, 40)
    limits = np.iinfo(kind)
    lengths = np.array([-1, limits.min, 41, limits.max, 7, 0], kind)
    got = unchecked(name)(x, lengths=lengths)
    same_bits(got, getattr(reference, name)(x, lengths=np.clip(lengths.astype("i8"), 0, 40)))
    same_bits(got, getattr(reference, name)(x, lengths=lengths))


def test_bad_lengths_are_refused():
    x = numbers(2, 3, 40)
    one = np.ones((2, 3), np.int64)
    for wrong in (41, -1):
        with pytest.raises(
            IndexRangeError, match=rf"lengths has a length {wrong}; takes 0 \.\. 40"
        ):
            ptxgen.softmax(x, lengths=np.where(one * [[1], [0]], wrong, 1))
    with pytest.raises(IndexRangeError, match=r"takes 0 \.\. 3, N"):
        ptxgen.softmax(x, 1, lengths=np.full((2, 40), 4))
    with pytest.raises(ShapeError, match=r"lengths has shape \[3, 2\]; takes.*\[2, 3\]"):
        ptxgen.softmax(x, lengths=one.T)
    with pytest.raises(DtypeError, match="lengths has dtype float32; takes int64 or int32"):
        ptxgen.softmax(x, lengths=one.astype("f4"))
    with pytest.raises(OptionError, match="check is 2"):
        ptxgen.softmax(x, lengths=one, check=2)


def test_programs_read_them():
    (step,) = program_of("softmax", (16, 4096), options={"lengths": True}).steps
    assert step.read == ["x", "lengths"] and "lengths=i64" in step.problem.dtype
    (plain,) = program_of("softmax", (16, 4096)).steps
    assert plain.read == ["x"] and "lengths" not in plain.problem.dtype


def test_a_signature_says_what_they_bound():
    forms = {"": {"q": "B S D", "kv": "B T D", "lengths": "B", "out": "B S D"}}
    of = Signature("toy", ("q", "kv", "lengths"), ("out",), forms, (), lengths={"lengths": "T"})
    shapes = {"q": (2, 1, 8), "kv": (2, 100, 8), "lengths": (2,)}
    sizes = of.infer(shapes).sizes
    of.counted({"lengths": np.array([0, 100])}, sizes)
    of.counted({}, sizes)
    with pytest.raises(IndexRangeError, match=r"lengths has a length 101; takes 0 \.\. 100, T"):
        of.counted({"lengths": np.array([0, 101])}, sizes)
    for wrong in ({"length": "T"}, {"lengths": "U"}):
        with pytest.raises(
            SpecError, match="there are arguments q, kv, lengths, and sizes B, D, S"
        ):
            Signature("toy", of.arguments, of.results, forms, (), lengths=wrong)


def test_what_has_no_lengths_is_prepared_as_before():
    """Calls without lengths are prepared (the second runs the first's code); calls with lengths are
    not.
    """
    device = CpuDevice()
    x = numbers(2, 8)
    with ptxgen.use_device(device):
        for _ in range(2):
            ptxgen.softmax(x)
        assert len(device.calls) == 1
        for _ in range(2):
            ptxgen.softmax(x, lengths=np.array([1, 2]))
        assert len(device.calls) == 1
