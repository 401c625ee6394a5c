"""The CPU device beside a GPU: the same kernels, the same inputs, the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from bits import NUMPY, same_bits
from gpu_arrays import NAMES, routes_by_name

import ptxgen
from ptxgen.errors import OptionError
from ptxgen.numerics.contract import ITEMSIZE
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.tiles import SPECS

pytestmark = pytest.mark.gpu


def shapes(spec):
    """(M, N, K): tails everywhere; whole vectors of everything; the same with a chunked K. Kernels
    of whole tiles get the next multiple of their rows.
    """
    unit = 16 // ITEMSIZE[spec.dtype]
    yield spec.rows_from(spec.bm + 1), spec.bn + 3, 2 * spec.bk + 5
    m, n, k = (unit * (extent // unit + 1) for extent in (spec.bm, spec.bn, 2 * spec.bk))
    m = spec.rows_from(m)
    yield m, n, k
    yield m, n, 2088


def computed(device, name, a, b, out_dtype):
    """The product of a and b as the kernel reads them; None if it does not serve it."""
    left, right = routes_by_name()[name][0]
    try:
        with ptxgen.use_device(device):
            return ptxgen.matmul(
                a,
                b,
                transpose_a=left == "T",
                transpose_b=right == "T",
                tier=SPECS[name].tier,
                out_dtype=out_dtype,
                kernel=name,
            )
    except OptionError as refusal:
        assert "it requires" in str(refusal)
        return None


@pytest.mark.parametrize("name", [name for name in routes_by_name() if name in SPECS])
def test_gpu_and_interpreter_agree(name):
    layout, _ = routes_by_name()[name]
    spec = SPECS[name]
    random = np.random.default_rng(len(name))
    for m, n, k in shapes(spec):
        a = random.standard_normal((k, m) if layout[0] == "T" else (m, k), dtype=np.float32)
        b = random.standard_normal((n, k) if layout[1] == "T" else (k, n), dtype=np.float32)
        a.flat[:: a.size // 7 + 1] = np.float32(1e-42)
        a, b = (x.astype(NUMPY[spec.dtype]) for x in (a, b))
        wide = len(name) % 2 and spec.dtype != "f64"
        out_dtype = "float32" if wide else NAMES[spec.dtype]
        expected = computed(CpuDevice(), name, a, b, out_dtype)
        if expected is not None:  # one problem for each kernel: this is slow
            same_bits(computed("cuda", name, a, b, out_dtype), expected, spec=name)
            return
    raise AssertionError("the kernel serves none of these problems")
