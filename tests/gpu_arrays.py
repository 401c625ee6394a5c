"""GPU memory with guard bands, and the contract as the plainest possible CUDA kernel."""

from __future__ import annotations

import functools
import struct

import numpy as np

from ptxgen.compile import compile_cubin
from ptxgen.contract import OPERATIONS
from ptxgen.runtime import get_device, torch_current
from ptxgen.tiles import ROUTES

POISON = 0x7FC5A5A5
"""A NaN. Read by mistake it spoils sums; overwritten by mistake, or not at all, it shows."""
BAND = 128
"""Elements before and behind every guarded array."""


class Guarded:
    """A poisoned [rows, columns] f32 matrix on the GPU, in rows of ``pitch`` elements.

    It starts ``offset`` elements past a 512-byte boundary. ``view`` is the torch tensor.
    """

    def __init__(self, torch, rows, columns, *, pitch=None, offset=0, values=None):
        pitch = max(pitch or columns, columns, 1)
        total = 2 * BAND + offset + rows * pitch
        self.bits = torch.full((total,), POISON, dtype=torch.int32, device="cuda")
        place = (rows, columns), (pitch, 1), BAND + offset
        self.view = self.bits.view(torch.float32).as_strided(*place)
        self._inside = torch.zeros(total, dtype=torch.bool, device="cuda")
        self._inside.as_strided(*place).fill_(True)
        self.rows = self.bits.as_strided(*place)
        if values is not None:
            self.view.copy_(torch.from_numpy(np.ascontiguousarray(values)))

    def intact(self):
        """Whether nothing outside the matrix was written."""
        return bool(((self.bits == POISON) | self._inside).all())

    def written(self):
        """Whether every element was written."""
        return not bool((self.rows == POISON).any())


def operand_on_gpu(torch, values, *, turned=False, aligned=True, extra=0):
    """(tensor, guard) holding the matrix ``values``; ``turned``: stored transposed.

    Aligned ones have rows of whole 16 bytes; others start 4 bytes off, at an odd pitch.
    """
    source = values.T if turned else values
    rows, columns = source.shape
    pitch = (-(-columns // 4) + extra) * 4 if aligned else columns | 1
    guard = Guarded(torch, rows, columns, pitch=pitch, offset=0 if aligned else 1, values=source)
    return (guard.view.T if turned else guard.view), guard


# -- the plain kernel -------------------------------------------------------------------
SOURCE = r"""
extern "C" __global__ void naive(
    const float* a, const float* b, const float* bias, float* c,
    long long am, long long ak, long long bk, long long bn, long long ldc,
    unsigned m, unsigned n, unsigned k, unsigned chunk, unsigned accumulate)
{
    const unsigned long long e = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (e >= (unsigned long long)m * n) return;
    const long long i = e / n, j = e % n;
    float total = 0.0f;
    for (unsigned long long begin = 0; begin < k; begin += chunk) {
        const unsigned long long end = min(begin + chunk, (unsigned long long)k);
        float acc = 0.0f;
        for (long long r = begin; r < end; ++r)
            acc = __fmaf_rn(a[i * am + r * ak], b[r * bk + j * bn], acc);
        acc = __fadd_rn(acc, 0.0f);
        total = begin == 0 ? acc : __fadd_rn(total, acc);
    }
    if (bias) total = __fadd_rn(total, bias[j]);
    float* const out = c + i * ldc + j;
    *out = accumulate ? __fadd_rn(total, *out) : total;
}
"""
_PARAMS = struct.Struct("<4Q5q5I")


@functools.cache
def _function(device):
    build = lambda arch: compile_cubin(SOURCE, name="naive", arch=arch).image  # noqa: E731
    return device.kernel("naive", build)


def naive(torch, a, b, chunk, *, bias=None, out=None, accumulate=False):
    """``a @ b`` of two matrices of any strides, in the contract ``fma``, one thread per output."""
    a, b = (x if x.stride(1) == 1 else x.contiguous() for x in (a, b))  # only for speed
    (m, k), n = a.shape, b.shape[1]
    if out is None:
        out = torch.empty((m, n), dtype=torch.float32, device=a.device)
    if m * n == 0:
        return out
    device = get_device(f"cuda:{a.get_device()}")
    params = _PARAMS.pack(
        0, 0, 0, 0, *a.stride(), *b.stride(), out.stride(0), m, n, k, chunk, accumulate
    )
    launch = device.prepare(
        _function(device), (-(-m * n // 128), 1, 1), (128, 1, 1), params, 4, f"{m}x{n}x{k}"
    )
    pointers = a.data_ptr(), b.data_ptr(), 0 if bias is None else bias.data_ptr(), out.data_ptr()
    launch.fire(torch_current(a.get_device()), *pointers)
    return out


def chunk_of(op, rows, columns, length):
    """The contract's chunk length for the product [rows, length] x [length, columns] of ``op``."""
    return OPERATIONS[op].plan.chunk_length(max(rows, 1), max(columns, 1), max(length, 1))


def same_on_gpu(torch, got, expected):
    """Whether two f32 tensors have the same bits, NaNs aside; cheap when they do."""
    mine, theirs = got.view(torch.int32), expected.view(torch.int32)
    if torch.equal(mine, theirs):
        return True
    return bool(((mine == theirs) | (got.isnan() & expected.isnan())).all())


# -- kernels ----------------------------------------------------------------------------
def first_kernels():
    """The routes by the name of their first kernel, with the layout of their operands."""
    return {r.name: (layout, r) for (layout, _), table in ROUTES.items() for r in table}


def admits(route, op, m, n, k, *, aligned, sms):
    """Whether every kernel of ``route`` is correct for the product [m, k] x [k, n] of ``op``."""
    plan = OPERATIONS[op].plan
    align = 16 if aligned or k == 0 else 4  # nothing is read of empty operands
    env = {"M": m, "N": n, "K": max(k, 1), "ALIGN_A": align, "ALIGN_B": align, "SMS": sms}
    env["CHUNK"] = plan.chunk_length(m, n, env["K"])
    env["CHUNKS"] = plan.chunks(m, n, env["K"])
    return route.requires.evaluate(env)


def edge_shapes(spec):
    """(M, N, K) on both sides of the edges of a kernel's tile, stages and chunks."""
    bm, bn, bk = (getattr(spec, name, 32) for name in ("bm", "bn", "bk"))
    stages = getattr(spec, "stages", 2)
    rows = [1, max(bm - 1, 2), bm, bm + 1, 2 * bm + 3]
    columns = [bn + 1, 1, 2 * bn + 3, max(bn - 1, 2), bn]
    lengths = [bk + 1, 1, (stages + 2) * bk + 3, bk, 0, max(bk - 1, 2), stages * bk]
    shapes = [(rows[i % 5], columns[(2 * i + i // 5) % 5], lengths[i % 7]) for i in range(35)]
    return [*dict.fromkeys(shapes), (bm + 1, bn + 3, 2085), (3, 5, 4100), (2, bn, 2048)]
