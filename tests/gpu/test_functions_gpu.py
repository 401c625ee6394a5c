"""Functions of formulas on the GPU: the bits of the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from function_cases import THREADS, of_type, run, samples
from test_reference_f32 import assert_same

from ptxgen.numerics.functions import FUNCTIONS
from ptxgen.reference.formula import call
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
