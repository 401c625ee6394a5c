"""The largest of rows, and draws from them, against their oracles; what is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from bits import operand, same_bits
from gather_cases import agree, numbers
from steps import unchecked

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.oracle.select import philox
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec.select import SiftSpec
from ptxgen.tiles import TABLES

STORED = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}
WAYS = (
    {},
    {"temperature": 1.0},
    {"temperature": 0.7, "top_k": 3},
    {"temperature": 1.3, "top_p": 0.8},
    {"temperature": 0.9, "top_k": 20, "top_p": 0.9},
    {"temperature": 1.0, "top_p": 1e-9},
)


@pytest.fixture(autouse=True)
def device():
    with ptxgen.use_device(CpuDevice()):
        yield


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32", "i32"])
def test_the_largest(dtype):
    rng = np.random.default_rng(1)
    for shape, k in (((2, 3, 5), 5), ((2, 1), 1), ((3, 200), 37), ((1, 7), 0)):
        for largest in (True, False):
            x = numbers(rng, shape, dtype, "special")
            x[..., ::3] = x[..., :1]
            got = ptxgen.topk(x, k, largest=largest)
            agree(got, reference.topk(x, k, largest=largest), what=f"{dtype} {shape} {k}")


def test_ties_zeros_and_nan():
    x = np.array([[0.0, np.nan, -0.0, 1.0, -np.inf, np.nan, 1.0]], np.float32)
    values, indices = ptxgen.topk(x, 7)
    assert indices.tolist() == [[1, 5, 3, 6, 0, 2, 4]]
    same_bits(values, np.take_along_axis(x, indices, 1))
    assert ptxgen.topk(x, 7, largest=False)[1].tolist() == [[4, 0, 2, 3, 6, 1, 5]]
    equal = np.full((1, 700), -np.inf, np.float32)
    assert ptxgen.topk(equal, 300)[1].tolist() == [list(range(300))]


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_however_the_largest_lie(dtype):
    """Rows with the most candidates that can be left to sort, ascending rows, equal elements."""
    part = SiftSpec(part="part")
    thread = np.arange(part.span) % (8 * part.threads) // 8  # whose element it is
    rows = [np.where(thread < 128, thread, -1.0), np.arange(part.span) // 64, np.zeros(part.span)]
    x = np.tile(np.stack(rows), 2)[:, : part.span + 500].astype(STORED[dtype])
    tried = set()
    for columns, k in ((x.shape[1], 128), (4096, 128), (4096, 1000), (200, 30)):
        row = x[:, :columns]
        for route in TABLES["topk",].routes[:4]:
            name = route.of(dtype).name
            given = (("ROWS", 3), ("COLS", columns), ("K", k))
            if not route.requires.evaluate(dict(given)):
                continue
            tried.add(name)
            for largest in (True, False)[: 1 if dtype == "f32" else 2]:
                got = ptxgen.topk(row, k, largest=largest, kernel=name)
                agree(got, reference.topk(row, k, largest=largest), what=f"{name} {columns} {k}")
    assert len(tried) == 4


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_draws(dtype):
    sample = unchecked("sample")  # of rows, too, of which nothing can be drawn
    rng = np.random.default_rng(2)
    for shape in ((3, 5), (2, 1), (2, 600)):
        for kind, how in enumerate(WAYS):
            x = operand(rng, shape, "normal", dtype)
            if kind % 2:
                x[:, ::4], x[0] = np.nan, -np.inf  # a row of which none is more likely
                x[-1, -1] = np.inf
            where = {"seed": int(rng.integers(-(2**62), 2**62)), "offset": kind << 40}
            got = sample(x, **how, **where)
            same_bits(got, reference.sample(x, **how, **where), what=f"{dtype} {shape} {how}")


def test_every_kernel_draws_alike():
    """Every kernel draws alike from numbers, from rows of NaN, of equal elements and with
    infinities.
    """
    sample = unchecked("sample")
    rng = np.random.default_rng(4)
    x = operand(rng, (4, 140), "normal", "bf16")
    x[0, 50:], x[1], x[2], x[3, ::3], x[3, 10] = -np.inf, np.nan, 0.5, np.nan, np.inf
    tried = set()
    for how in (WAYS[0], {"temperature": 1.0, "top_k": 128, "top_p": 0.5}):
        expected = reference.sample(x, **how, seed=9, offset=1)
        k = how.get("top_k", 0) if how else 1
        for route in TABLES["sample",].routes:
            if route.requires.evaluate({"ROWS": 4, "COLS": 140, "K": k}):
                tried.add(route.name)
                got = sample(x, **how, seed=9, offset=1, kernel=route.name)
                same_bits(got, expected, what=f"{route.name} {how}")
    assert len(tried) == len(TABLES["sample",].routes)


def test_random_bits_are_those_that_are_published():
    """Philox4x32-10's known answers (Random123, kat_vectors)."""
    assert philox(0, 0) == 0xE169C58D_6627E8D5
    assert philox(-1, 0) != philox(0, 0) != philox(0, 1)


def test_draws_have_the_probabilities():
    """The oracle's, which the kernels' are: of so many that wrong weights would be seen."""
    logits = np.tile(np.log(np.array([1, 2, 4, 1], np.float32)), (4000, 1))
    counts = np.bincount(reference.sample(logits, temperature=1.0, seed=5), minlength=4)
    expected = 4000 * np.array([1, 2, 4, 1]) / 8
    assert (abs(counts - expected) < 4.5 * np.sqrt(expected)).all(), counts
    kept = reference.sample(logits[:200], temperature=1.0, top_p=0.7, seed=5)
    assert set(kept.tolist()) == {1, 2}
    few = logits[:9]
    assert set(ptxgen.sample(few, temperature=1.0, top_k=1, seed=5).tolist()) == {2}
    same_bits(
        ptxgen.sample(few, temperature=1.0, seed=5), reference.sample(few, temperature=1.0, seed=5)
    )


def test_a_draw_depends_on_its_row_alone():
    x = operand(np.random.default_rng(3), (4, 90), "normal", "bf16")
    seeds, offsets = np.arange(4) + 7, np.arange(4) * 3
    whole = ptxgen.sample(x, temperature=1.0, seed=seeds, offset=offsets)
    for i in range(4):
        alone = ptxgen.sample(x[i], temperature=1.0, seed=seeds[i : i + 1].reshape(()),
                              offset=offsets[i : i + 1].reshape(()))  # fmt: skip
        assert alone == whole[i]
    counted = ptxgen.sample(x, temperature=1.0, seed=7, offset=5)
    same_bits(counted[2:], ptxgen.sample(x[2:], temperature=1.0, seed=7, offset=7))


def test_what_is_refused():
    x = np.ones((2, 5), np.float32)
    for k, text in ((-1, r"-1; takes 0 \.\. "), (6, r"6; takes 0 \.\. 5"), (2.5, "2.5; takes")):
        with pytest.raises(OptionError, match=f"k is {text}"):
            ptxgen.topk(x, k)
    with pytest.raises(DtypeError, match="x has dtype complex64"):
        ptxgen.topk(x.astype(np.complex64), 1)
    for option, wrong in (
        ("temperature", -1.0), ("temperature", np.inf), ("top_k", -1), ("top_p", 0.0),
        ("top_p", 1.5), ("seed", 1 << 63),
    ):  # fmt: skip
        with pytest.raises(OptionError, match=f"{option} is"):
            ptxgen.sample(x, **{"temperature": 1.0, option: wrong})
    with pytest.raises(ShapeError, match="takes rows that are not empty"):
        ptxgen.sample(x[:, :0])
    with pytest.raises(DtypeError, match="seed is int32"):
        ptxgen.sample(x, seed=np.ones(2, np.int32))
