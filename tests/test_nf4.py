"""NF4 weights on the CPU device: the dequantise kernel, its routes, and the operations."""

from __future__ import annotations

import numpy as np
import pytest
from bits import NUMPY, operand, same_bits
from interp_launch import Matrix

from ptxgen import nf4, reference
from ptxgen.build.compile import compile_ptx
from ptxgen.build.render import render
from ptxgen.errors import SpecError
from ptxgen.golden import targets
from ptxgen.numerics.nf4 import BLOCK
from ptxgen.ops.launch import parameters
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec import Step
from ptxgen.spec.nf4 import DequantiseSpec

SEED = 16


def image(spec):
    return lambda _: compile_ptx(render(spec), name=spec.name, arch=targets(spec)[-1]).image


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_the_kernel_dequantises(dtype):
    """Bit for bit, any number of blocks, scales of all kinds; nothing beside them is touched."""
    spec, device = DequantiseSpec(dtype), CpuDevice()
    function = device.kernel(spec.name, image(spec), spec.shared_bytes)
    whole = spec.threads * spec.turns * 8 // BLOCK  # blocks of a CTA
    kinds = ("normal", "subnormal", "special", "wide")
    for turn, blocks in enumerate((1, 3, whole, whole + 1, 2 * whole + 5)):
        rng = np.random.default_rng([SEED, turn])
        scales = np.abs(operand(rng, (1, blocks), kinds[turn % len(kinds)]))
        data = rng.integers(0, 256, (1, blocks * BLOCK // 2), np.uint8)
        expected = reference.nf4_dequantize(
            nf4.Weight(data[0], scales[0], 1, blocks * BLOCK), NUMPY[dtype]
        )
        given = {
            "data": Matrix(device.memory, "data", (1, blocks * 8), data.view("f4")),
            "scales": Matrix(device.memory, "scales", scales.shape, scales),
            "y": Matrix(device.memory, "y", expected.shape, dtype=dtype, band=64),
        }
        prepared = device.prepare(
            function, (spec.grid.evaluate({"BLOCKS": blocks}), 1, 1), (spec.threads, 1, 1),
            parameters(Step(spec), tuple(given), {"blocks": blocks}), 3, "dequantise", False,
        )  # fmt: skip
        prepared.fire(0, *(matrix.ptr for matrix in given.values()))
        same_bits(given["y"].values, expected, seed=SEED, spec=spec.name, what=f"{blocks} blocks")
        assert given["y"].intact(), blocks


def test_a_spec_refuses_what_it_cannot_be():
    for bad, why in (
        ({"dtype": "f64"}, "dtype: f64 vs"),
        ({"cta_threads": 48}, "whole warps: 48 vs 32"),
        ({"turns": 0}, "turns: 0 vs >= 1"),
        ({"min_arch": "sm_70"}, "min_arch: sm_70 vs"),
    ):
        with pytest.raises(SpecError, match=why):
            DequantiseSpec(**bad)
