"""Moves: views where a view will do, else one pass; rotary embedding."""

from __future__ import annotations

import numpy as np
import pytest
from pointwise_cases import KINDS

import ptxgen
from ptxgen import layout
from ptxgen.errors import DtypeError, ShapeError


@pytest.fixture(autouse=True)
def _on_cpu():
    with ptxgen.use_device("cpu"):
        yield


def test_views_share_memory() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for view, wanted in (
        (layout.narrow(x, 1, 1, 2), x[:, 1:3]),
        (layout.transpose(x), x.swapaxes(1, 2)),
        (layout.transpose(x, 0, 1), x.swapaxes(0, 1)),
        (layout.expand(x[:, :1], (5, 2, 3, 4)), np.broadcast_to(x[:, :1], (5, 2, 3, 4))),
    ):
        np.testing.assert_array_equal(view, wanted)
        assert np.shares_memory(view, x)


@pytest.mark.parametrize("kv_heads", [4, 2])
def test_packed_projections_are_split_without_copies(kv_heads) -> None:
    """Packed projections are split into views, also of strided rows, and attention reads the views
    in place.
    """
    x = np.random.default_rng(5).standard_normal((2, 3, (4 + 2 * kv_heads) * 16 + 4), dtype="f4")
    rows = x[..., : (4 + 2 * kv_heads) * 16]
    q, k, v = layout.split_qkv(rows, 4, kv_heads)
    assert all(np.shares_memory(part, x) for part in (q, k, v))
    wanted = np.split(rows, [64, 64 + 16 * kv_heads], -1)
    for part, all_of in zip((q, k, v), wanted, strict=True):
        np.testing.assert_array_equal(part, all_of.reshape(2, 3, -1, 16))
    seen = ptxgen.attention(q, k, v, layout="bshd", causal=True)
    apart = (np.ascontiguousarray(part) for part in (q, k, v))
    np.testing.assert_array_equal(seen, ptxgen.attention(*apart, layout="bshd", causal=True))


@pytest.mark.parametrize("kind", ["f32", "i64", "bool"])
def test_concat_and_pad_are_numpys(kind) -> None:
    rng = np.random.default_rng(3)
    x, y, z = (rng.integers(0, 2, (3, n, 5)).astype(KINDS[kind]) for n in (2, 0, 4))
    np.testing.assert_array_equal(layout.concat([x, y, z], 1), np.concatenate([x, y, z], 1))
    widths = [(1, 0), (0, 3), (2, 1)]
    for each in (x, y):
        wanted = np.pad(each, widths, constant_values=1)
        np.testing.assert_array_equal(layout.pad(each, widths, 1), wanted)
    turned = layout.contiguous(layout.transpose(x))
    np.testing.assert_array_equal(turned, x.swapaxes(1, 2))
    assert turned.flags.c_contiguous


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("turned", [8, 6])
def test_rope_turns_pairs(interleaved, turned) -> None:
    """Bit for bit the formula in f32; backwards, by -sin, it gives the gradient."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((2, 5, 3, 8)).astype(KINDS["bf16"])
    cos, sin = (rng.standard_normal((5, 1, turned // 2)).astype(np.float32) for _ in range(2))
    wide = x.astype(np.float32)
    parts = (np.s_[0:turned:2], np.s_[1:turned:2])
    if not interleaved:
        parts = np.s_[: turned // 2], np.s_[turned // 2 : turned]
    a, b = (wide[..., p] for p in parts)
    wanted = x.copy()
    wanted[..., parts[0]] = (a * cos - b * sin).astype(x.dtype)
    wanted[..., parts[1]] = (b * cos + a * sin).astype(x.dtype)
    found = layout.rope(x, cos, sin, interleaved=interleaved)
    np.testing.assert_array_equal(found.view("u2"), wanted.view("u2"))
    place = x.copy()
    assert layout.rope(place, cos, sin, interleaved=interleaved, out=place) is place
    np.testing.assert_array_equal(place.view("u2"), wanted.view("u2"))


def test_errors_of_moves() -> None:
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(ShapeError, match=r"axis is 2; x has shape \[2, 3\]"):
        layout.narrow(x, 2, 0, 1)
    with pytest.raises(ShapeError, match="start is 2 and length 2; x has 3 elements along"):
        layout.narrow(x, 1, 2, 2)
    for heads, few in ((2, 2), (1, 0), (1.5, 1)):
        with pytest.raises(ShapeError, match="x has 3 elements a row, which so many heads"):
            layout.split_qkv(x, heads, few)
    with pytest.raises(ShapeError, match=r"\[2, 3\].*does not broadcast to \[2, 4\]"):
        layout.expand(x, (2, 4))
    with pytest.raises(ShapeError, match=r"arrays\[1\] has shape \[1, 4\].*\[2, 3\].*axis 0 only"):
        layout.concat([x, np.zeros((1, 4), np.float32)])
    with pytest.raises(DtypeError, match=r"arrays\[1\] has dtype float64.*float32: cast one"):
        layout.concat([x, x.astype(np.float64)])
    with pytest.raises(ShapeError, match="takes pairs of integers that are not negative"):
        layout.pad(x, [(1, -1), (0, 0)])
    with pytest.raises(DtypeError, match="x has dtype uint16; takes"):
        layout.rope(x.astype(np.uint16), x[:, :1], x[:, :1])
    with pytest.raises(ShapeError, match="4 angles, for pairs of x, which has 3"):
        layout.rope(x, np.zeros(4, np.float32), np.zeros(4, np.float32))
