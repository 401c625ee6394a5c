"""Weight gradients in one chain: whatever cuts a batch into calls, one call has the bits."""

from __future__ import annotations

import numpy as np
import pytest
from bits import KINDS, NUMPY, operand, same_bits
from interp_launch import CONTINUED

import ptxgen
from ptxgen import reference
from ptxgen.errors import OptionError
from ptxgen.numerics.contract import CHAIN, CONTRACTS, PLANS, TIERS
from ptxgen.ops.explaining import problem_of
from ptxgen.tiles import TABLES

SEED = 4711
ROWS, K, N = 80, 5, 9
WAYS = [(dtype, tier) for tier, dtypes in TIERS.items() for dtype in dtypes]
"""The dtypes of products, and their tiers."""


def cuts(tier: str) -> list[list[int]]:
    """Returns lists of K offsets where calls end (none: one call): multiples of 16 for "tc"."""
    return [[], [16], [64], [16, 32, 64]] if tier == "tc" else [[], [1], [7, 8, 61], [40]]


def operands(kind: str, dtype: str):
    rng = np.random.default_rng([SEED, KINDS.index(kind)])
    wide = "f64" if dtype == "f64" else "f32"
    old = operand(rng, (K, N), kind, wide)
    old[0, :2] = -0.0, 0.0
    return operand(rng, (ROWS, K), kind, dtype), operand(rng, (ROWS, N), kind, dtype), old


def in_calls(wgrad, x, dy, out, ends, accumulate, **how):
    """The gradient, by a call for the rows up to each of ``ends``, and one for the rest."""
    for begin, end in zip([0, *ends], [*ends, len(x)], strict=True):
        rows = slice(begin, end)
        wgrad(x[rows], dy[rows], out=out, chain=True, accumulate=accumulate or begin > 0, **how)
    return out


@pytest.mark.parametrize("kind", ["wide", "cancelling", "subnormal", "special"])
@pytest.mark.parametrize(("dtype", "tier"), WAYS)
def test_the_oracle_does_not_see_cuts(dtype: str, tier: str, kind: str) -> None:
    x, dy, old = operands(kind, dtype)
    for accumulate in (False, True):
        how = {"tier": tier, "layout": "kn", "out_old": old if accumulate else None}
        whole = reference.linear_wgrad(x, dy, chain=True, **how)
        for ends in cuts(tier):
            got = in_calls(
                reference.linear_wgrad, x, dy, old.copy(), ends, accumulate, tier=tier, layout="kn"
            )
            same_bits(got, whole, seed=SEED, what=f"{ends} {accumulate}")


def test_what_chain_means() -> None:
    """Element by element, with the fma of a single number."""
    x, dy, old = operands("normal", "f32")
    for begin in (np.zeros_like(old), old):
        acc = begin.copy()
        for row in range(ROWS):
            acc = reference.fma(x[row, :, None], dy[row, None, :], acc)
        got = reference.linear_wgrad(x, dy, chain=True, out_old=begin, layout="kn")
        same_bits(got, acc + np.float32(0))
    added = reference.linear_wgrad(x, dy, out_old=old, layout="kn")
    assert (got != added).any()  # which rounds elsewhere


def test_the_sign_of_a_zero_does_not_matter() -> None:
    """A chain may be at -0.0 where it is cut, and continues from +0.0 then."""
    tiny = np.float32(1e-30)
    x = np.array([[-tiny], [0], [-0.0], [1], [tiny], [0]], np.float32)
    dy = np.array([[tiny, tiny, 0], [1, -1, 1], [1, 1, 1], [0, tiny, -0.0], [tiny, -tiny, tiny],
                   [-1, 1, -1]], np.float32)  # fmt: skip
    states = np.zeros((len(x) + 1, 1, 3), np.float32)
    for row in range(len(x)):
        states[row + 1] = reference.fma(x[row, :, None], dy[row, None, :], states[row])
    assert (np.signbit(states) & (states == 0)).any()  # else this shows nothing
    whole = reference.linear_wgrad(x, dy, chain=True, layout="kn")
    assert not (np.signbit(whole) & (whole == 0)).any()
    for cut in range(len(x) + 1):
        begin = reference.linear_wgrad(x[:cut], dy[:cut], chain=True, layout="kn")
        for zero in (begin, np.where(begin == 0, np.float32(-0.0), begin)):
            rest = reference.linear_wgrad(x[cut:], dy[cut:], chain=True, out_old=zero, layout="kn")
            same_bits(rest, whole, what=str(cut))


@pytest.mark.parametrize("layout", ["kn", "nk"])
@pytest.mark.parametrize(("dtype", "tier"), WAYS)
def test_kernels_do_not_see_cuts(dtype: str, tier: str, layout: str) -> None:
    x, dy, old = operands("wide", dtype)
    old = old if layout == "kn" else np.ascontiguousarray(old.T)
    how = {"tier": tier, "layout": layout}
    with ptxgen.use_device("cpu"):
        for ends, accumulate in ((cuts(tier)[2], False), (cuts(tier)[1], True)):
            got = in_calls(ptxgen.linear_wgrad, x, dy, old.copy(), ends, accumulate, **how)
            begin = old if accumulate else None
            expected = reference.linear_wgrad(x, dy, chain=True, out_old=begin, **how)
            same_bits(got, expected, seed=SEED, what=str(ends))


def test_results_of_16_bits_are_rounded_once() -> None:
    x, dy, _ = operands("normal", "bf16")
    with ptxgen.use_device("cpu"):
        got = ptxgen.linear_wgrad(x, dy, chain=True, out_dtype="bfloat16", layout="kn")
    wide = reference.linear_wgrad(x, dy, chain=True, layout="kn")
    same_bits(got, wide.astype(NUMPY["bf16"]))
    same_bits(got, reference.linear_wgrad(x, dy, chain=True, out_dtype="bfloat16", layout="kn"))


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("tier", ["tc", "simt"])
def test_16_bits_are_continued_as_rounded(tier, dtype) -> None:
    x, dy, old = operands("normal", dtype)
    old = old.astype(NUMPY[dtype])
    wide = reference.linear_wgrad(
        x, dy, chain=True, tier=tier, out_old=old.astype(np.float32), layout="kn"
    )
    how = {"tier": tier, "chain": True, "layout": "kn"}
    same_bits(
        reference.linear_wgrad(x, dy, out_old=old, out_dtype=old.dtype, **how),
        wide.astype(old.dtype),
    )
    with ptxgen.use_device("cpu"):
        got = ptxgen.linear_wgrad(x, dy, out=old.copy(), accumulate=True, **how)
    same_bits(got, wide.astype(old.dtype))


@pytest.mark.parametrize("room", [ptxgen, reference])
def test_what_is_continued_must_be_there(room) -> None:
    x, dy, _ = operands("normal", "bf16")
    with ptxgen.use_device("cpu"), pytest.raises(OptionError, match="out is None"):
        room.linear_wgrad(x, dy, chain=True, accumulate=True, layout="kn")


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
def test_no_rows_leave_what_is_there(dtype: str) -> None:
    x, dy, old = operands("normal", dtype)
    out = old.copy()
    with ptxgen.use_device("cpu"):
        ptxgen.linear_wgrad(x[:0], dy[:0], out=out, chain=True, accumulate=True, layout="kn")
        zeros = ptxgen.linear_wgrad(x[:0], dy[:0], chain=True, layout="kn")
    same_bits(out, old + old.dtype.type(0))  # -0.0 never leaves a chain
    same_bits(out, reference.linear_wgrad(x[:0], dy[:0], chain=True, out_old=old, layout="kn"))
    same_bits(zeros, np.zeros_like(old))


def test_it_is_another_plan() -> None:
    """A long batch is cut otherwise; of products, only weight gradients may be continued."""
    assert all(PLANS[c.name]["chain"] is CHAIN for of in CONTRACTS.values() for c in of.values())
    key = "TN", "chain", "half", "tc"
    assert problem_of("linear_wgrad", (4096, 64, 64), "bfloat16", 16, {"chain": True}).table == key
    assert problem_of("linear_wgrad", (4096, 64, 64), "bfloat16", 16, {}).table[1] == "chunks"
    found = str(ptxgen.explain("linear_wgrad", 4096, 64, 64, dtype="bfloat16", chain=True))
    assert "table TN chain half tc" in found and "continues an earlier result" in found
    x, dy = (operand(np.random.default_rng(SEED), (4096, n), "normal", "f32") for n in (2, 3))
    assert (
        reference.linear_wgrad(x, dy, layout="kn")
        != reference.linear_wgrad(x, dy, chain=True, layout="kn")
    ).any()
    with pytest.raises(TypeError, match="chain"):
        ptxgen.matmul(x.T, dy, chain=True)


def test_kernels_serve_no_other_plan() -> None:
    """A kernel that continues chains is refused for other plans, and other kernels for chains."""
    x, dy, old = operands("normal", "f32")
    continued = next(n for n, r in CONTINUED.items() if r.main.dtype == "f32")
    other = TABLES["TN", "chunks", "f32", "simt"].routes[-1].name
    for kernel, chain in ((continued, False), (other, True)):
        with ptxgen.use_device("cpu"), pytest.raises(OptionError, match="begin with"):
            ptxgen.linear_wgrad(
                x, dy, out=old, accumulate=True, chain=chain, kernel=kernel, layout="kn"
            )
