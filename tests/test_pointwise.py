"""Pointwise functions: kernels against the oracle, calls, dtypes, errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bits import same_bits
from pointwise_cases import KINDS, LAYOUTS, drawn, computed, strided

import ptxgen
from ptxgen import functions as f
from ptxgen.errors import DtypeError, FormulaError, OptionError, ShapeError
from ptxgen.numerics.formula import bits, const
from ptxgen.ops.launch import formed
from ptxgen.ops.pointwise import collapse
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec.pointwise import WAYS, magic

SEED = 20261


@pytest.fixture(autouse=True)
def _on_cpu():
    with ptxgen.use_device("cpu"):
        yield


@pytest.fixture(scope="module")
def device():
    return CpuDevice()


@ptxgen.pointwise
def mixed(x, y, s):
    return f.where(x > y, x * s, f.fma(x, y, s))


def equal(found, wanted, what="") -> None:
    """Bit for bit, any NaN like any other."""
    found = found if isinstance(found, tuple) else (found,)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), what
        if a.dtype.kind in "ib":
            np.testing.assert_array_equal(a, b, str(what))
        else:
            same_bits(a, b, seed=SEED, what=str(what))


# -- kernels ------------------------------------------------------------------------------------
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["bf16", "f32"])
def test_every_kernel_gives_the_bits_of_the_oracle(device, layout, kind) -> None:
    """The one that serves such arrays, and every other that can; and writes nowhere else."""
    lies, way = LAYOUTS[layout]
    if kind == "f32" and way in ("flat", "any"):
        pytest.skip("alike in both")
    rng = np.random.default_rng(SEED)
    bases = [drawn(kind, lie.size + 5, rng) for lie in lies]
    x, y = (strided(lie, base) for lie, base in zip(lies[:2], bases[:2], strict=True))
    wanted = bases[2].copy()
    strided(lies[2], wanted)[...] = mixed.reference(x, y, 0.3)
    places = (lies[0], lies[1], None, lies[2])
    out = np.empty_like(bases[2])
    problem = computed(device, mixed, places, (*bases[:2], 0.3, bases[2]), (out,))
    same_bits(out, wanted, seed=SEED, what=layout)
    names = {route.main.way: name for name, (route, *_) in formed(problem, device.sms).items()}
    taken = [w for w in WAYS if w in names]
    assert taken[0] == way
    for other in taken[1:]:
        out[...] = 0
        computed(device, mixed, places, (*bases[:2], 0.3, bases[2]), (out,), names[other])
        same_bits(out, wanted, seed=SEED, what=f"{layout} {other}")
