"""Dropout by seed and position: bits beside Philox word by word, batches, gradients, errors."""

from __future__ import annotations

import numpy as np
import pytest
from bits import same_bits
from ml_dtypes import bfloat16

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.oracle.select import philox

SEEDS = np.array([[3], [-5], [1 << 40]])
POSITIONS = np.array([0, 1, 2**33, -1, 9])


@pytest.fixture(autouse=True)
def _on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


def first_words(seed, position, columns):
    """The first 32 bits of Philox4x32-10, in Python's integers."""
    found = []
    for column in range(columns):
        c = [position & 0xFFFFFFFF, position >> 32 & 0xFFFFFFFF, column, 0]
        k = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
            k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
        found.append(c[0])
    assert found[0] == philox(seed, position) & 0xFFFFFFFF  # that of sample
    return found


@pytest.mark.parametrize("dtype", [np.float32, bfloat16, np.float16, np.float64])
@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
def test_bits_are_those_of_philox(dtype, p):
    x = np.random.default_rng(0).standard_normal((3, 5, 17)).astype(dtype)
    x[0, 0, 0] = np.inf  # what is dropped is 0, whatever it was
    words = np.array([[first_words(int(s), int(t), 17) for t in POSITIONS] for (s,) in SEEDS])
    wide = np.float64 if dtype is np.float64 else np.float32
    scaled = x.astype(wide) * wide(1 / (1 - p) if p < 1 else 1)
    expected = np.where(words >= round(p * 2**32), scaled, 0).astype(dtype)
    got = ptxgen.dropout(x, SEEDS, POSITIONS, p)
    same_bits(got, expected, seed=0, spec="", what=f"dropout {p}")
    same_bits(reference.dropout(x, SEEDS, POSITIONS, p), got, seed=0, spec="", what="oracle")


def test_masks_do_not_depend_on_the_batchs_place():
    x = np.random.default_rng(1).standard_normal((3, 5, 40), dtype=np.float32)
    whole = ptxgen.dropout(x, SEEDS, POSITIONS, 0.3)
    for i in range(3):
        assert (ptxgen.dropout(x[i], SEEDS[i], POSITIONS, 0.3) == whole[i]).all()
    assert (ptxgen.dropout(x[:, 2:], SEEDS, POSITIONS[2:], 0.3) == whole[:, 2:]).all()
    order = [2, 0, 1]
    assert (ptxgen.dropout(x[order], SEEDS[order], POSITIONS, 0.3) == whole[order]).all()


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda x: ptxgen.dropout(x, SEEDS, POSITIONS, 1.5), OptionError, "p is 1.5"),
        (lambda x: ptxgen.dropout(x, SEEDS, POSITIONS[:2]), ShapeError, "positions has shape"),
        (lambda x: ptxgen.dropout(x, SEEDS.astype("i4"), POSITIONS), DtypeError, "seeds has dtype"),
        (lambda x: ptxgen.dropout(x.astype("i4"), SEEDS, POSITIONS), DtypeError, "x has dtype"),
    ],
)
def test_what_bad_input_gets(wrong, error, text):
    with pytest.raises(error, match=text):
        wrong(np.zeros((3, 5, 4), np.float32))


def test_gradients_have_the_same_mask():
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    x = torch.ones(3, 5, 17, requires_grad=True)
    seeds, positions = torch.from_numpy(SEEDS), torch.from_numpy(POSITIONS)
    y = ours.dropout(x, seeds, positions, 0.25)
    (found,) = torch.autograd.grad(y, x, torch.ones_like(y))
    assert torch.equal(found, y) and 0 < (y == 0).sum() < y.numel()
