"""Formulas in the epilogues of products, on a GPU: every kernel has the bits of separate steps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_epilogues import DTYPES, drawn, epilogues, gated, only, residual, three, ways
from test_passes import _all

import ptxgen
from ptxgen import graph

pytestmark = pytest.mark.gpu

SHAPES = ((1, 4096, 4096), (7, 1000, 333), (48, 4096, 1024), (700, 520, 1000), (1031, 2048, 777))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("function", [gated, residual, three])
def test_every_kernel_has_the_bits_of_separate_steps(function, shape, dtype):
    m, k, n = shape
    arrays = [drawn(dtype, *s) for s in ((m, k), (n, k), (n,), (m, n))]
    arrays += [drawn("f32", m, 1), drawn("f16", n)]
    expected = _all(ptxgen.capture(function, *arrays)(*arrays))
    step = only(graph.trace(function, *arrays))
    for name in (None, *(route.name for route in ways(step).values())):

        def passes(program, name=name):
            return replace(program, steps=(replace(only(program), kernel=name),))

        found = _all(ptxgen.capture(function, *arrays, passes=passes)(*arrays))
        for a, b in zip(expected, found, strict=True):
            assert a.tobytes() == b.tobytes(), name


@pytest.mark.parametrize("dtype", DTYPES)
def test_replayed_from_memory_that_moves(dtype):
    """A captured program reads what is beside a product where it was copied to, each time."""
    arrays = [drawn(dtype, *s) for s in ((5, 64), (96, 64), (96,), (5, 96), (5, 1), (96,))]
    captured = ptxgen.capture(residual, *arrays, passes=epilogues)
    for _ in range(3):
        arrays[3] = -arrays[3]
        expected = ptxgen.capture(residual, *arrays)(*arrays)
        assert captured(*arrays).tobytes() == expected.tobytes()
