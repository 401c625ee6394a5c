"""The special function unit's powers of two: every fraction, of either sign."""

from __future__ import annotations

import numpy as np
import pytest
from conformance import runner
from conformance.case import elementwise
from test_reference_f32 import assert_same

from ptxgen.oracle.ex2 import ex2
from ptxgen.runtime import get_device

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("first", [-126.0, -2.0, -1.0, 0.0, 1.0, 127.0])
def test_every_fraction(first: float) -> None:
    x = (first + np.arange(1 << 23) / 2.0**23).astype(np.float32)
    case = elementwise(
        *("special", f"ex2 from {first}", ("f32",), ("f32",)),
        "ex2.approx.ftz.f32 {d0}, {a0};",
        lanes=x.size,
        columns=lambda: [x.view(np.uint32)],
    )
    (raw,) = runner.run(case, get_device("cuda:0"))
    assert_same(np.frombuffer(raw, np.float32), ex2(x), x, context=f"from {first}:")
