"""Recurrences of a matrix on a real GPU: bits of every route, cuts, and graphs."""

from __future__ import annotations

from functools import partial

import delta_cases as cases
import numpy as np
import pytest
from bits import same_bits

import ptxgen

pytestmark = pytest.mark.gpu
ROUTES = [(n, k) for n in cases.FORMS for rows in (32, 128, 256) for k in cases.routes(n, rows)]


@pytest.mark.parametrize(("name", "kernel"), ROUTES)
def test_bits_of_every_route(name, kernel):
    """Every route has the oracle's bits for its number of rows and more columns than a CTA has."""
    rows = int(kernel.split("_")[3])
    for dtype, kind in (("bf16", "normal"), ("f32", "special")):
        names = dict(zip(cases.routes(name, rows), cases.routes(name, rows, dtype), strict=True))
        sizes = 1, 2, rows, 72
        cases.check(name, names[kernel], sizes, {}, "cuda", tokens=37, dtype=dtype, kind=kind)


@pytest.mark.parametrize("name", cases.FORMS)
@pytest.mark.parametrize("rows", [32, 104, 256])
def test_bits_of_gradients(name, rows):
    """Gradients have the oracle's bits for tokens beyond whole stages, columns beyond a CTA's."""
    for dtype, kind in (("bf16", "normal"), ("f32", "special")):
        cases.check_gradients(name, (1, 2, rows, 72), "cuda", 21, dtype, kind)


@pytest.mark.parametrize("name", cases.FORMS)
def test_a_token_does_not_depend_on_how_the_sequence_is_cut(name):
    sizes = 2, 4, 128, 64
    given = cases.draw(name, 7, 3, 150, sizes)
    call = partial(getattr(ptxgen, name), **cases.TAME[name])
    with ptxgen.use_device("cuda"):
        whole, last = call(**given, return_state=True)
        for lengths in ([64, 86], [149, 1], [7, 1, 1, 141]):
            now, at = None, 0
            for n in lengths:
                part = cases.cut(given, at, at + n)
                y, now = call(**part, state=now, return_state=True)
                same_bits(y, whole[:, at : at + n], what=(lengths, at))
                at += n
            same_bits(now, last, what=lengths)
        alone = {n: x[1:2] if x.ndim > 2 else x for n, x in given.items()}
        same_bits(call(**alone), whole[1:2])
        assert np.isfinite(whole.astype(np.float32)).all()
