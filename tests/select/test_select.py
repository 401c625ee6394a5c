"""The largest of rows, draws from them, and log-probabilities, against their oracles; what is
refused.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from bits import operand, same_bits
from gather_cases import agree, numbers
from steps import unchecked

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, IndexRangeError, OptionError, ShapeError
from ptxgen.oracle.logsumexp import exp
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
    {"temperature": 1.2, "min_p": 0.3, "top_p": 0.9},
)
BAD = {
    "temperature": ([-1.0, np.nan, np.inf, 1e-31], [0.0, 0.0, 1e38, 0.0]),
    "top_k": ([-3, 0, 2**31 - 1, -(2**31)], [0, 0, 140, 0]),
    "top_p": ([2.0, np.nan, -1.0, 0.0], [1.0, 1.0, 1e-9, 1e-9]),
    "min_p": ([-1.0, np.nan, 7.0, -0.0], [0.0, 0.0, 1.0, 0.0]),
}
"""Settings out of range in arrays, and the numbers that they count as."""
INTEGERS = ("top_k",)


def settings(rng, count):
    """Settings of rows: arrays by name."""
    return {
        "temperature": rng.choice(np.float32([0, 0.7, 1, 1.9]), count),
        "top_k": rng.choice(np.int32([0, 1, 5, 100]), count),
        "top_p": rng.choice(np.float32([1, 0.9, 0.3]), count),
        "min_p": rng.choice(np.float32([0, 0.05, 0.5]), count),
        "seed": rng.integers(-(2**62), 2**62, count),
        "offset": rng.integers(0, 2**40, count),
    }


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


@pytest.mark.parametrize("dtype", ["bf16", pytest.param("f32", marks=pytest.mark.long)])
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
    rows = settings(rng, 4) | {"temperature": np.float32([0.9, 1.4, 0.0, 1.1]), "top_k": 128}
    del rows["seed"], rows["offset"]
    for how in (WAYS[0], {"temperature": 1.0, "top_k": 128, "top_p": 0.5}, rows):
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


def test_a_row_has_its_own_settings():
    """A batch with arrays of settings draws as each row alone does with numbers."""
    rng = np.random.default_rng(11)
    x = 2 * operand(rng, (24, 140), "normal", "f32")
    given = settings(rng, 24)
    whole = ptxgen.sample(x, **given)
    same_bits(whole, reference.sample(x, **given))
    for i in (0, 5, 10, 15, 20):
        alone = {name: array[i].item() for name, array in given.items()}
        assert ptxgen.sample(x[i : i + 1], **alone) == whole[i], alone
        assert ptxgen.sample(x[i], **{n: a[i] for n, a in given.items()}) == whole[i]  # scalars
        assert ptxgen.sample(x[i], **{n: np.array(a[i]) for n, a in given.items()}) == whole[i]
    mixed = given | {"top_p": 0.9, "top_k": 5, "seed": 7}
    same_bits(ptxgen.sample(x, **mixed), reference.sample(x, **mixed))


def test_settings_out_of_range_in_arrays_are_clamped():
    """Kernels for any k, and for small ones."""
    x = operand(np.random.default_rng(12), (4, 140), "normal", "bf16")
    plain = {"temperature": 1.0, "seed": 3}
    for name, (wrong, meant) in BAD.items():
        array = np.array(wrong, np.int32 if name in INTEGERS else np.float32)
        for few in ({}, {"top_k": 20}) if name != "top_k" else ({},):
            how = plain | few
            got = ptxgen.sample(x, **how | {name: array})
            same_bits(got, reference.sample(x, **how | {name: array}), what=f"{name} {few}")
            for i, number in enumerate(meant):
                alone = ptxgen.sample(x[i : i + 1], **how | {name: number}, offset=i)
                assert alone == got[i], f"{name} {wrong[i]}"


def test_min_p_keeps_what_is_likely_enough():
    """Draws have the probabilities of the tokens kept, by a chi-square test at 0.001 (seed 5)."""
    p = np.array([1, 2, 8, 4, 1, 6], np.float32)
    logits = np.tile(np.log(p), (4000, 1))
    counts = np.bincount(reference.sample(logits, temperature=1.0, min_p=0.4, seed=5), minlength=6)
    kept = p >= 0.4 * 8
    expected = 4000 * p[kept] / p[kept].sum()
    assert not counts[~kept].any()
    assert ((counts[kept] - expected) ** 2 / expected).sum() < 13.8, counts  # 2 degrees of freedom
    few = {"temperature": 1.0, "min_p": 0.4, "seed": 5}
    same_bits(ptxgen.sample(logits[:40], **few), reference.sample(logits[:40], **few))
    edge = np.tile(np.float32([0, -1, -1, -2]), (40, 1))
    ratio = exp(np.float32([-1]))[0]  # which is likely enough, the next number is not
    for least, many in ((ratio, 3), (np.nextafter(ratio, np.float32(1)), 1)):
        found = ptxgen.sample(edge, temperature=1.0, min_p=least, seed=1)
        assert set(found.tolist()) == set(range(many))


def test_min_p_comes_before_top_p():
    """The share of top_p is of what min_p leaves: .5 of (4, 3) is one token, of all it is two."""
    logits = np.tile(np.log(np.float32([4, 3, 1, 1, 1])), (60, 1))
    both = {"temperature": 1.0, "top_p": 0.5, "seed": 1}
    assert set(reference.sample(logits, **both).tolist()) == {0, 1}
    assert set(reference.sample(logits, **both, min_p=0.5).tolist()) == {0}


def test_settings_in_a_recorded_program():
    """A program reads arrays of settings when it runs."""
    rng = np.random.default_rng(13)
    x, given = operand(rng, (3, 40), "normal", "f32"), settings(rng, 3)

    def drawn(x, warm, top_k, least):
        tokens = ptxgen.sample(x, temperature=warm, top_k=top_k, min_p=least, seed=np.int64(3))
        return tokens, ptxgen.token_logprobs(x, tokens, warm)

    names = ("temperature", "top_k", "min_p")
    program = ptxgen.capture(drawn, x, *(given[n] for n in names))
    for each in (given, settings(rng, 3)):
        how = {n: each[n] for n in names}
        tokens, logprobs = program(x, *how.values())
        same_bits(tokens, reference.sample(x, **how, seed=3))
        same_bits(logprobs, reference.token_logprobs(x, tokens, how["temperature"]))
    shown = str(ptxgen.explain("sample", 3, 40000, temperature=0.8, top_k=20, seed="int64"))
    assert "small k" in shown
    assert "rows" in str(ptxgen.explain("token_logprobs", 64, 40000, temperature=True))


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
def test_log_probabilities_are_those_of_log_softmax(dtype):
    """Bits of the operations one after another, from arrays and from numbers, in kernels too."""
    rng = np.random.default_rng(14)
    x = operand(rng, (6, 1100), "normal", dtype)
    x[1, 3], x[2, 5], x[3], x[4, ::2] = np.inf, np.nan, -np.inf, -np.inf
    ids = np.array([0, 3, 9, 7, 4, 1099])
    warm = np.float32([0.7, 1, 3, 0, 1e38, -2])
    for temperature in (1, 0.7, 0.0, warm):
        t = np.broadcast_to(np.float32(temperature), 6)
        z = x.astype(np.float32) / np.where(t > 0, t, np.float32(1))[:, None]
        expected = np.take_along_axis(reference.log_softmax(z), ids[:, None], 1)[:, 0]
        same_bits(reference.token_logprobs(x, ids, temperature), expected, what=f"{temperature}")
        same_bits(ptxgen.token_logprobs(x, ids.astype("i4"), temperature), expected)
    assert ptxgen.token_logprobs(x[0], np.array(0, np.int32), warm[0]) == expected[0]
    best, at = ptxgen.topk(ptxgen.log_softmax(x[:1].astype(np.float32)), 3)
    each = [ptxgen.token_logprobs(x[:1], at[:, i]) for i in range(3)]
    same_bits(best, np.stack(each, 1))


def test_log_probabilities_of_no_tokens():
    x, ids = np.zeros((3, 4), np.float32), np.array([4, -1, 2**32 + 1])
    with pytest.raises(IndexRangeError, match=r"ids has 4; takes 0 \.\. 3"):
        ptxgen.token_logprobs(x, ids)
    got = unchecked("token_logprobs")(x, ids)
    assert np.isnan(got).all() and ptxgen.token_logprobs(x[:0], ids[:0]).shape == (0,)
    ids %= 4
    for wrong, error, text in (
        ({"ids": ids.astype(np.float32)}, DtypeError, "ids has dtype float32"),
        ({"ids": ids[:2]}, ShapeError, "ids has shape"),
        ({"logits": x.astype(np.float64)}, DtypeError, "logits has dtype float64"),
        ({"temperature": -1.0}, OptionError, "temperature is -1.0"),
        ({"temperature": 1e-31}, OptionError, "temperature is 1e-31"),
        ({"temperature": np.ones(2, np.float32)}, ShapeError, "temperature has shape"),
        ({"temperature": np.ones(3)}, DtypeError, "temperature has dtype float64"),
    ):
        with pytest.raises(error, match=text):
            ptxgen.token_logprobs(**{"logits": x, "ids": ids, **wrong})


def test_what_is_refused():
    x = np.ones((2, 5), np.float32)
    for k, text in ((-1, r"-1; takes 0 \.\. "), (6, r"6; takes 0 \.\. 5"), (2.5, "2.5; takes")):
        with pytest.raises(OptionError, match=f"k is {text}"):
            ptxgen.topk(x, k)
    with pytest.raises(DtypeError, match="x has dtype complex64"):
        ptxgen.topk(x.astype(np.complex64), 1)
    for option, wrong in (
        ("temperature", -1.0), ("temperature", np.inf), ("temperature", 1e-31), ("top_k", -1),
        ("top_p", 0.0), ("top_p", 1.5), ("min_p", -0.1), ("min_p", 1.1), ("seed", 1 << 63),
    ):  # fmt: skip
        with pytest.raises(OptionError, match=f"{option} is"):
            ptxgen.sample(x, **{"temperature": 1.0, option: wrong})
    with pytest.raises(ShapeError, match="takes rows that are not empty"):
        ptxgen.sample(x[:, :0])
    for option, wrong in (
        ("seed", np.int32), ("temperature", np.float64), ("top_k", np.int64), ("min_p", np.float16),
    ):  # fmt: skip
        with pytest.raises(DtypeError, match=f"{option} has dtype {np.dtype(wrong)}; takes"):
            ptxgen.sample(x, **{option: np.ones(2, wrong)})
    with pytest.raises(ShapeError, match=r"top_p has shape \[1\]"):
        ptxgen.sample(x, temperature=1.0, top_p=np.ones(1, np.float32))
