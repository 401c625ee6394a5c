"""Operands whose rows are one row (stride 0), on the CPU device: their tensor maps have pitch 0."""

from __future__ import annotations

import numpy as np
import pytest
from bits import operand, same_bits
from interp_launch import Matrix
from steps import fire

from ptxgen import reference
from ptxgen.ops.explaining import explain
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec import ALONE, Problem
from ptxgen.tiles import SPECS

K, N = 64, 48


@pytest.fixture(scope="module")
def device():
    return CpuDevice()


def with_maps():
    """The first kernel that takes tensor maps."""
    found = explain("linear", 200, N, K, dtype="f16").candidates
    return next(c.kernels[0] for c in found if c.correct and SPECS[c.kernels[0]].abi.maps)


@pytest.mark.parametrize("expanded", ["x", "w"])
@pytest.mark.parametrize(
    ("m", "maps"), [(1, False), (2, False), (40, False), (40, True), (200, True)]
)
def test_rows_of_stride_0(m, maps, expanded, device):
    rng = np.random.default_rng(6)
    x, w = operand(rng, (m, K), dtype="f16"), operand(rng, (K, N), dtype="f16")
    one = (x if expanded == "x" else w)[:1]
    seen = {"x": x, "w": w} | {expanded: np.broadcast_to(one, (m if expanded == "x" else K,
                                                               one.shape[1]))}  # fmt: skip
    stored = {"x": x, "w": w} | {expanded: one}
    a, b = (Matrix(device.memory, name, s.shape, s, dtype="f16") for name, s in stored.items())
    out = Matrix(device.memory, "out", (m, N), dtype="f16")
    lda, ldb = 0 if expanded == "x" else a.pitch, 0 if expanded == "w" else b.pitch
    problem = Problem(
        table=("NN", "chunks", "half", "tc"),
        dtype="f16",
        values=(("M", m), ("N", N), ("K", K), ("ALIGN_A", 16), ("ALIGN_B", 16)),
        scalars=(*ALONE, ("LDA", lda), ("LDB", ldb), ("LDC", out.pitch), ("FLAGS", 0)),
        what=f"rows of stride 0, {m}",
    )
    try:
        pointers = {"a": a.ptr, "b": b.ptr, "bias": 0, "c": out.ptr}
        fire(problem, pointers, device, with_maps() if maps else None)
        same_bits(
            out.values.copy(),
            reference.linear(seen["x"], seen["w"], layout="kn"),
            what=f"{m} {expanded}",
        )
    finally:
        for matrix in (a, b, out):
            matrix.free()
