"""Functions of formulas on the GPU: the bits of the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from function_cases import THREADS, of_type, run, samples
from test_reference_f32 import assert_same

import ptxgen
from ptxgen.numerics.functions import FUNCTIONS
from ptxgen.oracle.formula import call
from ptxgen.runtime import get_device

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_bits(type: str) -> None:
    x = samples(1_000_000 if type == "f32" else 100_000, type, seed=17)
    x = x[: x.size // THREADS * THREADS]
    y = np.random.default_rng(17).permutation(x)
    found = run(get_device("cuda:0"), x, y, type)
    assert set(found) == set(of_type(type))
    for name, z in found.items():
        function = FUNCTIONS[name]
        expected = call(function, *(x, y)[: function.arity])
        assert_same(z, expected, x, context=f"{name} of {type}:")


@pytest.mark.parametrize("name", [name for name, f in FUNCTIONS.items() if f.bounds])
def test_bounds_of_every_argument(name: str) -> None:
    """Rounded to bf16 by bounds, beside the f32 result rounded by PyTorch: all 2**32."""
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    function = getattr(ptxgen.functions, name)
    chunk = torch.arange(1 << 27, dtype=torch.int32, device="cuda")
    for first in range(-(1 << 31), 1 << 31, 1 << 27):
        x = (chunk + first).view(torch.float32)
        got = torch.full_like(x, -7, dtype=torch.bfloat16)
        function(x, out=got)
        wanted = function(x).bfloat16()
        differ = (got.view(torch.int16) != wanted.view(torch.int16)) & ~wanted.isnan()
        differ |= got.isnan() != wanted.isnan()
        assert not differ.any(), (x[differ][0].item(), got[differ][0], wanted[differ][0])
