"""The problems of kernels of recurrences."""

from __future__ import annotations

import functools

import numpy as np
from bits import operand, same_bits
from interp_launch import SEED

import ptxgen
from ptxgen import reference
from ptxgen.ops import OPERATIONS
from ptxgen.tiles import SPECS


def drawn(sizes, dtype, kind="normal", seed=SEED):
    """All arguments of a selective scan, by name."""
    batch, tokens, channels, states = sizes
    rng = np.random.default_rng([seed, *sizes])
    x, delta, z = (operand(rng, (batch, tokens, channels), kind, dtype) for _ in range(3))
    b, c = (operand(rng, (batch, tokens, states), kind, dtype) for _ in range(2))
    a, state = (operand(rng, (n, states), "normal", "f32") for n in (channels, batch * channels))
    skip, bias = operand(rng, (2, channels), "normal", "f32")
    named = {"x": x, "delta": delta, "A": -abs(a), "B": b, "C": c, "D": skip, "z": z}
    return named | {"delta_bias": bias, "state": state.reshape(batch, channels, states)}


def agree(got, expected, **where):
    """All results have the oracle's bits."""
    for one, other in zip(got, expected, strict=True):
        same_bits(one, other, seed=SEED, **where)


def without(given, *names):
    """The other arguments."""
    return {n: v for n, v in given.items() if n not in names}


def check_forward(name, sizes, kind, left, softplus, device):
    """A scan without the arguments ``left``; and what gradients are made of."""
    given = without(drawn(sizes, SPECS[name].dtype, kind), *left)
    how = {"softplus": softplus, "return_state": True}
    with ptxgen.use_device(device):
        got = ptxgen.selective_scan(**given, **how, kernel=name)
    agree(got, reference.selective_scan(**given, **how), spec=name, what=f"{sizes} {kind}")


def check_backward(name, sizes, kind, left, softplus, device):
    """The gradients of a scan."""
    given = without(drawn(sizes, SPECS[name].dtype, kind), "z", *left)
    kept_op, op = (OPERATIONS[f"selective_scan_{n}"] for n in ("kept", "backward"))
    with ptxgen.use_device(device):
        got = kept_op(**given, softplus=softplus, gated=True)
    kept = kept_op.oracle(**given, softplus=softplus, gated=True)
    agree(got, kept, spec=name, what=f"{sizes} {kind}: kept")
    rng = np.random.default_rng([SEED, *sizes])
    dy = operand(rng, given["x"].shape, kind, "f32")
    dlast = None if "state" in left else operand(rng, kept[1][:, 0].shape, "normal", "f32")
    given = {**without(given, "state"), "dlast": dlast, "softplus": softplus}
    with ptxgen.use_device(device):
        got = op(dy, kept[1], **given, kernel=name)
    agree(got, op.oracle(dy, kept[1], **given), spec=name, what=f"{sizes} {kind}")


def selective(name):
    """Beyond a tile and a CTA's channels, with states to spare; one token of all; special ones."""
    spec = SPECS[name]
    check = check_forward if spec.part == "forward" else check_backward
    tile, own, most = spec.tile_tokens, spec.channels, spec.width
    cases = [
        ((2, 2 * tile + 3, own + 1, most), "normal", (), True),
        ((1, 1, own, most - 1), "special", (), False),
        ((1, tile, 1, spec.least), "wide", ("D", "z", "delta_bias", "state"), True),
    ]
    return [functools.partial(check, name, *case) for case in cases]


def check_linear(name, sizes, kind, begun, device):
    """A linear recurrence, forward or backward."""
    spec, rng = SPECS[name], np.random.default_rng([SEED, *sizes])
    a, b = (operand(rng, sizes, kind, spec.dtype) for _ in range(2))
    state = operand(rng, sizes[::2], "normal", "f32") if begun else None
    wide = reference.linear_recurrence(a, b, state, out_dtype="float32")
    with ptxgen.use_device(device):
        if spec.part == "forward":
            got = ptxgen.linear_recurrence(a, b, state, return_state=True, kernel=name)
            same_bits(ptxgen.linear_recurrence(a, b, state, out_dtype="float32"), wide)
            expected = reference.linear_recurrence(a, b, state, return_state=True)
        else:
            op = OPERATIONS["linear_recurrence_backward"]
            given = operand(rng, sizes, kind, "f32"), a, wide, state, state
            got, expected = op(*given, kernel=name), op.oracle(*given)
    agree(got, expected, spec=name, what=f"{sizes} {kind}")


def linear(name):
    """Beyond what a thread reads at a time and a CTA's channels; one token; special ones."""
    spec = SPECS[name]
    cases = [
        ((2, 2 * spec.prefetch + 3, spec.channels + 1), "normal", True),
        ((1, 1, 3), "special", True),
        ((2, spec.prefetch, 1), "wide", False),
    ]
    return [functools.partial(check_linear, name, *case) for case in cases]
