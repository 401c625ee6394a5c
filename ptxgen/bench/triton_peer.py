"""A batch-invariant product in Triton, a peer of ``ptxgen bench gemm``.

It follows the idea of Thinking Machines' batch_invariant_ops: a persistent kernel with one fixed
tile, each output reduced by one CTA in one order, whatever the batch. The code is our own.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N, BLOCK_K_BYTES, GROUP = 128, 128, 128, 8
"""Tile of 128 x 128 with 128 bytes of K a step (32 elements of f32, 64 of 16 bits), and tile rows
in a band of the rasterisation; accumulators are f32.
"""


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def _product(  # type: ignore[no-untyped-def, unused-ignore]
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    a_row,
    a_step,
    b_step,
    b_column,
    c_row,
    BM: tl.constexpr,  # noqa: N803
    BN: tl.constexpr,  # noqa: N803
    BK: tl.constexpr,  # noqa: N803
    RASTER: tl.constexpr,  # noqa: N803
    CTAS: tl.constexpr,  # noqa: N803
):
    tiles_m = tl.cdiv(m, BM)
    tiles_n = tl.cdiv(n, BN)
    for tile in range(tl.program_id(0), tiles_m * tiles_n, CTAS):
        # Bands of RASTER tile rows, walked column by column: operands stay in L2.
        band = tile // (RASTER * tiles_n)
        first = band * RASTER
        height = min(tiles_m - first, RASTER)
        within = tile % (RASTER * tiles_n)
        rows = (first + within % height) * BM + tl.arange(0, BM).to(tl.int64)
        columns = (within // height) * BN + tl.arange(0, BN).to(tl.int64)
        steps = tl.arange(0, BK).to(tl.int64)
        a = a_ptr + rows[:, None] * a_row + steps[None, :] * a_step
        b = b_ptr + steps[:, None] * b_step + columns[None, :] * b_column
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, k, BK):
            left = k - start
            a_tile = tl.load(a, mask=(rows[:, None] < m) & (steps[None, :] < left), other=0.0)
            b_tile = tl.load(b, mask=(steps[:, None] < left) & (columns[None, :] < n), other=0.0)
            acc = tl.dot(a_tile, b_tile, acc, input_precision="ieee")
            a += BK * a_step
            b += BK * b_step
        c = c_ptr + rows[:, None] * c_row + columns[None, :]
        result = acc.to(c_ptr.dtype.element_ty)
        tl.store(c, result, mask=(rows[:, None] < m) & (columns[None, :] < n))


def matmul(a: Any, b: Any, out: Any) -> None:
    """Computes ``out = a @ b`` of [M, K] and [K, N], any strides; ``out`` has contiguous rows."""
    (m, k), n = a.shape, b.shape[1]
    ctas = torch.cuda.get_device_properties(a.device).multi_processor_count
    tiles = triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N)
    _product[(min(ctas, tiles),)](
        a,
        b,
        out,
        m,
        n,
        k,
        a.stride(0),
        a.stride(1),
        b.stride(0),
        b.stride(1),
        out.stride(0),
        BM=BLOCK_M,
        BN=BLOCK_N,
        BK=BLOCK_K_BYTES // a.element_size(),
        RASTER=GROUP,
        CTAS=ctas,
        num_warps=8,
        num_stages=3,
    )
