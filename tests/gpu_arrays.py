"""GPU memory with guard bands, and the contracts as the plainest possible CUDA kernels."""

from __future__ import annotations

import functools
import struct

import numpy as np
from bits import NUMPY

from ptxgen.build.compile import compile_cubin
from ptxgen.numerics.contract import CONTRACTS, ITEMSIZE, OPERATIONS, PLANS
from ptxgen.oracle.dot16 import tensor_core
from ptxgen.runtime import Parameters, get_device, torch_current
from ptxgen.spec import GemmSpec
from ptxgen.spec.conv import ConvSpec
from ptxgen.tiles import TABLES

POISON = {8: 0x7FF8A5A5A5A5A5A5, 4: 0x7FC5A5A5, 2: 0x7FE5}
"""A NaN, by bytes of an element. Read by mistake it spoils sums; overwritten by mistake, or not
at all, it shows."""
BAND = 128
"""Elements before and behind every guarded array."""
NAMES = {"f32": "float32", "f64": "float64", "bf16": "bfloat16", "f16": "float16"}
"""The dtypes as torch calls them."""


def integers(torch, tensor):
    """The bits of a tensor."""
    return tensor.view({8: torch.int64, 4: torch.int32, 2: torch.int16}[tensor.element_size()])


def from_host(torch, values):
    """A NumPy array as a torch tensor in host memory, bfloat16 included."""
    values = np.ascontiguousarray(values)
    if values.dtype == NUMPY["bf16"]:
        return torch.from_numpy(values.view("i2")).view(torch.bfloat16)
    return torch.from_numpy(values)


def to_host(torch, tensor):
    """A tensor as a NumPy array."""
    name = next(short for short, name in NAMES.items() if tensor.dtype == getattr(torch, name))
    return integers(torch, tensor.cpu().contiguous()).numpy().view(NUMPY[name])


class Guarded:
    """A poisoned [rows, columns] matrix on the GPU, in rows of ``pitch`` elements.

    It starts ``offset`` elements past a 256-byte boundary. ``view`` is the torch tensor.
    """

    def __init__(self, torch, rows, columns, *, dtype="f32", pitch=None, offset=0, values=None):
        pitch = max(pitch or columns, columns, 1)
        total = 2 * BAND + offset + rows * pitch
        kind = {8: torch.int64, 4: torch.int32, 2: torch.int16}[ITEMSIZE[dtype]]
        self.poison = POISON[ITEMSIZE[dtype]]
        self.bits = torch.full((total,), self.poison, dtype=kind, device="cuda")
        place = (rows, columns), (pitch, 1), BAND + offset
        self.view = self.bits.view(getattr(torch, NAMES[dtype])).as_strided(*place)
        self._inside = torch.zeros(total, dtype=torch.bool, device="cuda")
        self._inside.as_strided(*place).fill_(True)
        self.rows = self.bits.as_strided(*place)
        if values is not None:
            self.view.copy_(from_host(torch, values))

    def intact(self):
        """Whether nothing outside the matrix was written."""
        return bool(((self.bits == self.poison) | self._inside).all())

    def written(self):
        """Whether every element was written."""
        return not bool((self.rows == self.poison).any())


def operand_on_gpu(torch, values, *, dtype="f32", turned=False, align=16, extra=0):
    """(tensor, guard) holding the matrix ``values``; ``turned``: stored transposed.

    Start and rows are multiples of ``align`` bytes, and, below 16, of no more.
    """
    source = values.T if turned else values
    rows, columns = source.shape
    unit, whole = (size // ITEMSIZE[dtype] for size in (align, 16))
    pitch, offset = (-(-columns // whole) + extra) * whole, 0
    if unit < whole:
        pitch, offset = (-(-columns // unit) | 1) * unit, unit
    guard = Guarded(torch, rows, columns, dtype=dtype, pitch=pitch, offset=offset, values=source)
    return (guard.view.T if turned else guard.view), guard


# -- the plain kernels ------------------------------------------------------------------
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

SOURCE64 = (
    SOURCE.replace("naive", "naive64")
    .replace("float", "double")
    .replace("0.0f", "0.0")
    .replace("__fmaf_rn", "__fma_rn")
    .replace("__fadd_rn", "__dadd_rn")
)
"""CUDA source of the naive product in f64."""

SOURCE16 = r"""
// FRACTION and BIAS of the operands' format; TERMS, BITS and FLOOR of the tensor cores.
struct Number { int significand, exponent; };  // significand * 2^(exponent - FRACTION)

__device__ bool finite(unsigned short x)
{
    return (x >> FRACTION & (1 << (15 - FRACTION)) - 1) != (1 << (15 - FRACTION)) - 1;
}

__device__ Number decode(unsigned short x)
{
    const int field = x >> FRACTION & (1 << (15 - FRACTION)) - 1;
    const int fraction = x & (1 << FRACTION) - 1;
    const int magnitude = field ? fraction | 1 << FRACTION : fraction;
    return {x >> 15 ? -magnitude : magnitude, max(field, 1) - BIAS};
}

__device__ double wide(unsigned short x)
{
    const Number number = decode(x);
    if (finite(x)) return scalbn((double)number.significand, number.exponent - FRACTION);
    const double end = x & (1 << FRACTION) - 1 ? nan("") : 1.0 / 0.0;
    return x >> 15 ? -end : end;
}

__device__ long long cut(long long significand, int shift)  // significand * 2^shift, to zero
{
    if (shift >= 0) return significand << shift;
    const long long magnitude = shift > -63 ? llabs(significand) >> -shift : 0;
    return significand < 0 ? -magnitude : magnitude;
}

__device__ float step(const unsigned short* x, const unsigned short* y, float acc)
{
    bool all = isfinite(acc);
    for (int t = 0; t < TERMS; ++t) all = all && finite(x[t]) && finite(y[t]);
    if (!all) {
        double sum = acc;
        for (int t = 0; t < TERMS; ++t) sum += wide(x[t]) * wide(y[t]);
        return (float)sum;
    }
    const unsigned bits = __float_as_uint(acc);
    const int field = bits >> 23 & 255, fraction = bits & 0x7fffff;
    const int magnitude = field ? fraction | 0x800000 : fraction;
    const int start = bits >> 31 ? -magnitude : magnitude, exponent = max(field, 1) - 127;
    int top = start ? max(FLOOR, exponent) : FLOOR;
    for (int t = 0; t < TERMS; ++t) {
        const Number u = decode(x[t]), v = decode(y[t]);
        if (u.significand && v.significand) top = max(top, u.exponent + v.exponent);
    }
    long long sum = cut(start, exponent - 23 - (top - BITS));
    for (int t = 0; t < TERMS; ++t) {
        const Number u = decode(x[t]), v = decode(y[t]);
        const int unit = u.exponent + v.exponent - 2 * FRACTION;
        sum += cut((long long)u.significand * v.significand, unit - (top - BITS));
    }
    const unsigned long long rest = llabs(sum);
    if (rest == 0) return 0.0f;
    const int last = 63 - __clzll(rest), power = last + top - BITS;
    unsigned out;
    if (power >= 128)
        out = 0x7f800000;
    else if (power >= -126)
        out = (power + 126 << 23) + (unsigned)cut(rest, 23 - last);
    else
        out = (unsigned)cut(rest, top - BITS + 149);
    return __uint_as_float(out | (sum < 0 && out ? 0x80000000u : 0u));
}

extern "C" __global__ void NAME(
    const unsigned short* a, const unsigned short* b, const float* bias, float* c,
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
        for (unsigned long long first = begin; first < end; first += TERMS) {
            unsigned short x[TERMS], y[TERMS];
            for (int t = 0; t < TERMS; ++t) {
                const long long r = first + t;
                x[t] = r < end ? a[i * am + r * ak] : 0;
                y[t] = r < end ? b[r * bk + j * bn] : 0;
            }
            acc = step(x, y, acc);
        }
        acc = __fadd_rn(acc, 0.0f);
        total = begin == 0 ? acc : __fadd_rn(total, acc);
    }
    if (bias) total = __fadd_rn(total, bias[j]);
    float* const out = c + i * ldc + j;
    *out = accumulate ? __fadd_rn(total, *out) : total;
}
"""
_PARAMS = struct.Struct("<4Q5q5I")


def plain_source(dtype, tier, arch):
    """The source and name of a contract's plain kernel."""
    if tier == "simt":
        return (SOURCE64, "naive64") if dtype == "f64" else (SOURCE, "naive")
    core, name = tensor_core(arch), f"naive16_{dtype}_{arch}"
    fraction, bias = {"bf16": (7, 127), "f16": (10, 15)}[dtype]
    values = {"FRACTION": fraction, "BIAS": bias, "NAME": name}
    values |= {"TERMS": core.terms, "BITS": core.bits, "FLOOR": f"({core.floor})"}
    lines = "".join(f"#define {key} {value}\n" for key, value in values.items())
    return lines + SOURCE16, name


@functools.cache
def _function(device, dtype, tier):
    arch = device.arch.rstrip("af")
    source, name = plain_source(dtype, tier, arch)
    build = lambda arch: compile_cubin(source, name=name, arch=arch).image  # noqa: E731
    return device.kernel(name, build)


def naive(
    torch, a, b, chunk, *, bias=None, out=None, accumulate=False, tier="simt", out_dtype="f32"
):
    """``a @ b`` of two matrices of any strides, in a tier's contract, one thread per output.

    ``bias`` and ``out`` (an old result, if ``accumulate``) may have any dtype. The result is in
    f32 (of f64 operands, f64; ``out`` itself then, if there is one), or rounded to ``out_dtype``.
    """
    dtype = next(short for short, name in NAMES.items() if a.dtype == getattr(torch, name))
    real = torch.float64 if dtype == "f64" else torch.float32
    a, b = (x.to(real) if tier == "simt" else x for x in (a, b))
    a, b = (x if x.stride(1) == 1 else x.contiguous() for x in (a, b))  # only for speed
    bias = None if bias is None else bias.to(real)
    (m, k), n = a.shape, b.shape[1]
    total = torch.empty((m, n), dtype=real, device=a.device) if out is None else out
    total = total.to(real)
    if m * n:
        device = get_device(f"cuda:{a.get_device()}")
        packed = _PARAMS.pack(
            0, 0, 0, 0, *a.stride(), *b.stride(), total.stride(0), m, n, k, chunk, accumulate
        )
        params = Parameters(packed, (0, 1, 2, 3))
        function = _function(device, dtype, tier)
        grid = (-(-m * n // 128), 1, 1)
        launch = device.prepare(function, grid, (128, 1, 1), params, 4, f"{m}x{n}x{k}")
        pointers = a.data_ptr(), b.data_ptr(), 0 if bias is None else bias.data_ptr()
        launch.fire(torch_current(a.get_device()), *pointers, total.data_ptr())
    return total.to(getattr(torch, NAMES[out_dtype]))


def chunk_of(length, tier="simt", dtype=None):
    """The contract's chunk length for products of reductions of ``length``.

    ``dtype`` may be left away where all of the tier have the same contract, but for f64.
    """
    return PLANS[CONTRACTS[tier][dtype or "bf16"].name]["chunks"].chunk_length(length)


def same_on_gpu(torch, got, expected):
    """Whether two float tensors have the same bits, NaNs aside; cheap when they do."""
    if got.dtype != expected.dtype:
        return False
    mine, theirs = integers(torch, got), integers(torch, expected)
    if torch.equal(mine, theirs):
        return True
    return bool(((mine == theirs) | (got.isnan() & expected.isnan())).all())


# -- kernels ----------------------------------------------------------------------------
def routes_by_name():
    """The routes of products of two dense operands, of every dtype, by name, with their layout."""
    twins = (
        table.route(index, dtype)
        for table in TABLES.values()
        if "ALIGN_B" in table.space.names
        for dtype in table.dtypes
        for index in range(len(table.routes))
    )
    return {
        r.name: (r.main.layout, r)
        for r in twins
        if isinstance(r.main, GemmSpec)
        and "c" in r.main.abi.offsets  # others: test_flce_gpu.py
        and not r.main.continues  # those: test_chain_gpu.py
        and not isinstance(r.main, ConvSpec)  # those: test_conv_gpu.py
    }


def admits(route, op, m, n, k, *, align, sms):
    """Whether every kernel of ``route`` is correct for the product [m, k] x [k, n] of ``op``."""
    align = align if k else 16  # nothing is read of empty operands
    values = {"M": m, "N": n, "K": max(k, 1), "ALIGN_A": align, "ALIGN_B": align, "SMS": sms}
    plan = OPERATIONS[op].plan(route.main.contract)
    return route.requires.evaluate(plan.environment(values))


def edge_shapes(spec):
    """(M, N, K) on both sides of the edges of a kernel's tile, stages and chunks."""
    bm, bn, bk = (getattr(spec, name, 32) for name in ("bm", "bn", "bk"))
    stages = getattr(spec, "stages", 2)
    rows = [1, max(bm - 1, 2), bm, bm + 1, 2 * bm + 3]
    columns = [bn + 1, 1, 2 * bn + 3, max(bn - 1, 2), bn]
    lengths = [bk + 1, 1, (stages + 2) * bk + 3, bk, 0, max(bk - 1, 2), stages * bk]
    shapes = [(rows[i % 5], columns[(2 * i + i // 5) % 5], lengths[i % 7]) for i in range(35)]
    return [*dict.fromkeys(shapes), (bm + 1, bn + 3, 2085), (bm + 3, 5, 4100), (2, bn, 2048)]
