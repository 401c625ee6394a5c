"""Chains that are continued, on the GPU: every kernel, at the edges of its tile."""

from __future__ import annotations

import numpy as np
import pytest
from bits import KINDS, operand, same_bits
from gpu_arrays import Guarded, from_host, operand_on_gpu, to_host
from interp_launch import CONTINUED

import ptxgen
from ptxgen import reference
from ptxgen.program.launch import architecture
from ptxgen.runtime import get_device

try:
    import torch
except ImportError:
    torch = None

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch is None, reason="needs PyTorch"),
]
SEED = 20262


def shapes(spec):
    """(M, N, K, elements between rows): past the tile, short of it, whole, by vectors."""
    bm, bn, bk, stages = spec.bm, spec.bn, spec.bk, spec.stages
    return (
        (bm + 1, bn + 3, bk + 5, 1),
        (max(bm - 3, 1), max(bn - 1, 1), (stages + 1) * bk + 17, 2),
        (2 * bm, 2 * bn, stages * bk, 0),
        (bm + 8, bn + 8, 2 * bk, 8),
    )


@pytest.mark.parametrize("name", sorted(CONTINUED))
def test_a_kernel_continues_a_chain(name):
    spec = CONTINUED[name].main
    arch = architecture(get_device("cuda"))
    if not spec.runs_on(arch):
        pytest.skip(f"{name} does not run on {arch}")
    result = getattr(spec, "result", 0)  # of some, 16-byte aligned and of this width
    wide = "f64" if spec.dtype == "f64" else spec.dtype if result == 2 else "f32"
    for i, (m, n, k, extra) in enumerate(shapes(spec)):
        if result:
            n, extra = n + -n % (16 // result), extra // 2 * 16
        kind = KINDS[i % 3]
        rng = np.random.default_rng([SEED, m, n, k])
        x, dy = operand(rng, (k, m), kind, spec.dtype), operand(rng, (k, n), kind, spec.dtype)
        old = operand(rng, (m, n), kind, wide)
        (a, _), (b, _) = (operand_on_gpu(torch, v, dtype=spec.dtype) for v in (x, dy))
        out = Guarded(torch, m, n, dtype=wide, pitch=n + extra, offset=0 if result else i % 3)
        out.view.copy_(from_host(torch, old))
        how = {"tier": spec.tier, "chain": True, "layout": "kn"}
        cut, expected = k // 2 // 16 * 16, old
        for rows in slice(0, cut), slice(cut, k):
            ptxgen.linear_wgrad(a[rows], b[rows], out=out.view, accumulate=True, kernel=name, **how)
            if result == 2:  # rounded where a call ends
                parts = x[rows], dy[rows]
                asked = {"out_old": expected, "out_dtype": old.dtype, "arch": arch, **how}
                expected = reference.linear_wgrad(*parts, **asked)
        if result != 2:
            expected = reference.linear_wgrad(x, dy, out_old=old, arch=arch, **how)
        what = f"{m, n, k} {kind}"
        same_bits(to_host(torch, out.view), expected, seed=SEED, spec=name, what=what)
        assert out.intact(), what
