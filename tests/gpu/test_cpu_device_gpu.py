"""The CPU device beside a GPU: the same kernels, the same inputs, the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_arrays import first_kernels

import ptxgen
from ptxgen.errors import OptionError
from ptxgen.tiles import SPECS

pytestmark = pytest.mark.gpu


def shapes(spec):
    """(M, N, K): tails everywhere; whole vectors of everything; the same with a chunked K."""
    yield spec.bm + 1, spec.bn + 3, 2 * spec.bk + 5
    whole = [4 * (extent // 4 + 1) for extent in (spec.bm, spec.bn, 2 * spec.bk)]
    yield tuple(whole)
    yield whole[0], whole[1], 2088


@pytest.mark.parametrize("name", first_kernels())
def test_gpu_and_interpreter_agree(name):
    layout, _ = first_kernels()[name]
    spec = SPECS[name]
    random = np.random.default_rng(len(name))
    served = 0
    for m, n, k in shapes(spec):
        a = random.standard_normal((k, m) if layout[0] == "T" else (m, k), dtype=np.float32)
        b = random.standard_normal((n, k) if layout[1] == "T" else (k, n), dtype=np.float32)
        a.flat[:: a.size // 7 + 1] = np.float32(1e-42)
        results = []
        for device in ("cuda", "cpu"):
            try:
                with ptxgen.use_device(device):
                    result = ptxgen.matmul(
                        a,
                        b,
                        transpose_a=layout[0] == "T",
                        transpose_b=layout[1] == "T",
                        kernel=name,
                    )
            except OptionError as refusal:
                assert "it requires" in str(refusal)
                continue
            results.append(result.view(np.uint32))
        if results:
            assert len(results) == 2
            np.testing.assert_array_equal(*results)
            served += 1
    assert served
