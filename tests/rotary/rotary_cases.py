"""The problems of kernels that rotate the heads of queries and keys."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from bits import operand, same_bits
from interp_launch import SEED

import ptxgen
from ptxgen import reference
from ptxgen.numerics.rotary import rotate
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.rotary import rotate_heads
from ptxgen.oracle.row_reductions import compute
from ptxgen.spec.rotary import Form
from ptxgen.tiles import SPECS

EPS = 1e-5
_rotated = Pointwise(rotate, "rotary")


def expected(x: Any, positions: Any, table: Any, weight: Any) -> Any:
    """Returns heads that are normalised by a weight, if there is one, and rotated."""
    half = x.shape[-1] // 2
    if weight is not None:
        x = compute("rms_norm_rounded", x, weight, eps=EPS)
    rows = reference.embedding(table, positions)[:, None]
    parts = x[..., :half], x[..., half:], rows[..., :half], rows[..., half:]
    return np.concatenate(_rotated.reference(*parts), -1)


def check_heads(
    name: str, form: Form, sizes: tuple[int, int, int], kind: str, in_place: bool, device: Any
) -> None:
    """Heads of queries and keys that are slices of one array, of tokens of which some have
    positions beyond the table.
    """
    (tokens, of_q, of_k), width = sizes, form.head_dim
    rng = np.random.default_rng([SEED, *sizes, width])
    draw = functools.partial(operand, rng, kind=kind, dtype=form.dtype)
    qkv, table = draw((tokens, of_q + 2 * of_k, width)), draw((7, width))
    positions = rng.integers(-1, 8, tokens)
    weights = [draw((width,)) for _ in "qk"] if form.normed else [None, None]
    q, k = qkv[:, :of_q], qkv[:, of_q : of_q + of_k]
    rest = qkv[:, of_q + of_k :].copy()
    made = [expected(x, positions, table, w) for x, w in zip((q, k), weights, strict=True)]
    out = {"q_out": q, "k_out": k} if in_place else {}
    with ptxgen.use_device(device):
        found = rotate_heads(q, k, positions, table, *weights, eps=EPS, kernel=name, **out)
    for got, one in zip(found, made, strict=True):
        same_bits(got, one, seed=SEED, spec=name, what=f"{form} {sizes} {kind}")
    same_bits(qkv[:, of_q + of_k :], rest, what="values beside the keys")


def heads(name: str) -> list[Callable[[Any], None]]:
    """Tokens that do not fill a CTA, new results and results in place, and numbers of all kinds; by
    the kernel, and by those of the narrowest and the widest heads, and of heads without a norm.
    """
    cases = (
        (SPECS[name].form, (3, 5, 2), "wide", False),
        (Form("bf16", 16, True), (9, 2, 1), "special", True),
        (Form("f16", 256, True), (2, 1, 2), "normal", True),
        (Form("f16", 96, False), (3, 4, 3), "special", False),
    )
    return [functools.partial(check_heads, SPECS[name].of(c[0]).name, *c) for c in cases]
