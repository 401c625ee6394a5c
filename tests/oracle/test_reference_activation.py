"""Activations: accuracy of the mirror, special values, and mirror = CUDA text, bit for bit."""

from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess
import warnings
from collections.abc import Callable
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from test_reference_f32 import assert_same

from ptxgen.build.render import environment
from ptxgen.errors import OptionError
from ptxgen.numerics import activation as constants
from ptxgen.numerics.contract import ACTIVATIONS
from ptxgen.oracle import activate
from ptxgen.oracle import activation as mirror

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
SEED = 11
SMOOTH = ["gelu", "gelu_tanh", "silu"]

# The largest errors over *every* f32 of magnitude up to 128 (`STEP = 1` below; five minutes) are
# 1.581, 1.115 and 1.094 ulp (gelu, gelu_tanh, silu), and 1.117, 0.958 and 0.988 units of 2**-149
# where the result is subnormal. Beyond 128 the results are x or -0.0, without error. The bounds
# are these figures rounded up to tenths; the float64 truth adds less than 2**-16 ulp.
ULP = {"gelu": 1.6, "gelu_tanh": 1.2, "silu": 1.1}
SUBNORMAL_UNITS = {"gelu": 1.2, "gelu_tanh": 1.0, "silu": 1.0}
STEP = 199


def truth(name: str, x: F64) -> F64:
    """The activation in float64, relative error below 2**-40 where it is not subnormal in f32."""
    with np.errstate(over="ignore"):
        if name == "gelu":
            erfc: Callable[[F64], F64] = np.vectorize(math.erfc, otypes=[np.float64])
            return 0.5 * x * erfc(-x / math.sqrt(2))
        t = x if name == "silu" else 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return np.asarray(x / (1 + np.exp(-t)), np.float64)


def errors(name: str, x: F32) -> tuple[F64, NDArray[np.bool_]]:
    """The error of each result in its own ulp (a subnormal's is 2**-149), and which are normal."""
    exact = truth(name, x.astype(np.float64))
    normal = np.abs(exact) >= 2.0**-126
    ulp = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - 24, -149))
    return np.abs(activate(name, x) - exact) / ulp, normal


def samples(rng: np.random.Generator, count: int) -> F32:
    """Every binade evenly, and the range where the functions bend once more."""
    bits = rng.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    bits = bits[np.abs(bits) < 3e38]
    near = [rng.uniform(-low, low, count // 4).astype(np.float32) for low in (1, 16, 120)]
    return np.concatenate([bits, *near])


@pytest.mark.parametrize("name", SMOOTH)
def test_error_bound(name: str) -> None:
    x = samples(np.random.default_rng(SEED), 300_000)
    error, normal = errors(name, x)
    assert normal.sum() > 200_000
    for kind, bound in ((normal, ULP[name]), (~normal, SUBNORMAL_UNITS[name])):
        worst = int(np.argmax(np.where(kind, error, 0)))
        assert error[worst] <= bound, f"{name}({float(x[worst]).hex()}) is off by {error[worst]}"


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_special_values(name: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e38, -1e38, -200.0], np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        signalling = np.array([0x7F800001, 0xFFC00001], np.uint32).view(np.float32)
        assert np.isnan(activate(name, signalling)).all()
        y = activate(name, x)
    nan, inf = np.nan, np.inf
    expected = {
        "none": x,
        "relu": np.array([nan, inf, 0.0, 0.0, 0.0, 1e38, 0.0, 0.0], np.float32),
    }
    smooth = np.array([nan, inf, -0.0, 0.0, -0.0, 1e38, -0.0, -0.0], np.float32)
    assert_same(y, expected.get(name, smooth), x)


@pytest.mark.parametrize("name", SMOOTH)
def test_limit(name: str) -> None:
    """Beyond the limit the negative side is zero anyway, just before and just after."""
    limit = np.float32(constants.LIMIT[name])
    x = -np.array([np.nextafter(limit, np.float32(0)), limit, np.nextafter(limit, limit * 2)])
    x = x.astype(np.float32)
    assert (np.abs(truth(name, x.astype(np.float64))) < 2.0**-150).all()
    assert_same(activate(name, x), np.full(3, -0.0, np.float32), x)


def test_shapes_and_names() -> None:
    assert activate("gelu", np.float32(1)).shape == ()
    assert activate("silu", np.zeros((2, 0, 3), np.float32)).shape == (2, 0, 3)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert_same(activate("silu", x.T), activate("silu", x).T.copy(), x)
    assert_same(activate(None, x), x)
    with pytest.raises(OptionError, match=r"activation='swish'.*'silu'"):
        activate("swish", x)


def split(value: Decimal) -> tuple[float, float]:
    high = float(np.float32(float(value)))
    return high, float(np.float32(float(value - Decimal(high))))


def test_constants() -> None:
    """The numbers that have a closed form."""
    with localcontext(prec=40):
        pi = Decimal("3.141592653589793238462643383279502884197")
        ln2, linear = Decimal(2).ln(), 2 * (2 / pi).sqrt()
        assert split(ln2) == (constants.LN2_HIGH, constants.LN2_LOW)
        assert split(1 / ln2)[0] == constants.LOG2_E
        assert split(linear) == (constants.TANH_LINEAR_HIGH, constants.TANH_LINEAR_LOW)
        cubic = linear * Decimal("0.044715")
        assert split(cubic) == (constants.TANH_CUBIC_HIGH, constants.TANH_CUBIC_LOW)
    bits = np.float32(constants.ROUNDER).view(np.uint32)
    assert bits == constants.ROUNDER_BITS
    polynomials = (*constants.EXP, *constants.TAIL, constants.TAIL_SHIFT)
    assert all(float(np.float32(c)) == c for c in polynomials)


def test_fitted_polynomials() -> None:
    """The fit errors that ``ptxgen.numerics.activation`` states."""
    r = np.linspace(-0.347, 0.347, 20_001)
    exp = 1 + r + r * r * np.polynomial.Polynomial(constants.EXP)(r)
    assert np.abs(exp / np.exp(r) - 1).max() <= 2.0**-28
    y = np.linspace(0, 15, 20_001)
    erfc: Callable[[F64], F64] = np.vectorize(math.erfc)
    target = (y + constants.TAIL_SHIFT) * 0.5 * erfc(y / math.sqrt(2)) * np.exp(y * y / 2)
    tail = np.polynomial.Polynomial(constants.TAIL)(y / (y + constants.TAIL_SHIFT) - 0.5)
    assert np.abs(tail / target - 1).max() <= 2.0**-27


def cuda_text() -> str:
    return environment().get_template("include/activation.cuh.j2").render(activation=constants)


# The device functions run on the host: each intrinsic is the IEEE operation of the same name.
HOST = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
#define __device__
#define __forceinline__ inline
#ifdef TRACE
static float* next_step;
static inline float step(float result) { return *next_step++ = result; }
#else
static inline float step(float result) { return result; }
#endif
static inline float __fmaf_rn(float a, float b, float c) { return step(std::fmaf(a, b, c)); }
static inline float __fadd_rn(float a, float b) { return step(a + b); }
static inline float __fmul_rn(float a, float b) { return step(a * b); }
static inline float __fdiv_rn(float a, float b) { return step(a / b); }
static inline float __int_as_float(int i) { float f; std::memcpy(&f, &i, 4); return f; }
static inline int __float_as_int(float f) { int i; std::memcpy(&i, &f, 4); return i; }
using std::fabs;
@TEXT@
extern "C" void activate(unsigned code, long count, const float* x, float* y) {
    for (long i = 0; i < count; i++) y[i] = ptxgen_activation(code, x[i]);
}
#ifdef TRACE
// The results of all operations for one argument; returns their number.
extern "C" long trace(unsigned code, float x, float* steps) {
    next_step = steps;
    ptxgen_activation(code, x);
    return next_step - steps;
}
#else
// The largest error over every step-th f32 of the bit range, in ulp: [0] normal, [1] subnormal.
extern "C" void worst(unsigned code, uint64_t first, uint64_t last, uint64_t step, double* out) {
    for (uint64_t bits = first; bits < last; bits += step) {
        const float x = __int_as_float((int)(uint32_t)bits);
        const double z = x, t = code == PTXGEN_SILU
            ? z : 2 * 0.79788456080286535588 * (z + 0.044715 * z * z * z);
        const double exact = code == PTXGEN_GELU
            ? 0.5 * z * std::erfc(-z * 0.70710678118654752440) : z / (1 + std::exp(-t));
        int exponent;
        std::frexp(exact, &exponent);
        const bool normal = std::fabs(exact) >= 0x1p-126;
        const double ulp = std::ldexp(1.0, normal ? exponent - 24 : -149);
        const double error = std::fabs(ptxgen_activation(code, x) - exact) / ulp;
        if (!(error <= out[!normal])) out[!normal] = error;
    }
}
#endif
"""


def compile_host(folder: Path, *options: str) -> ctypes.CDLL:
    """The rendered CUDA text, compiled as C++ for this machine."""
    compiler = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler (g++, clang++ or c++) to run the CUDA text on the host")
    source, library = folder / "activation.cpp", folder / "activation.so"
    source.write_text(HOST.replace("@TEXT@", cuda_text()))
    flags = ["-std=c++17", "-O2", "-ffp-contract=off", "-frounding-math", "-fPIC", "-shared"]
    subprocess.run([compiler, *flags, *options, "-o", library, source, "-lm"], check=True)
    return ctypes.CDLL(str(library))


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_host(tmp_path_factory.mktemp("host"))


@pytest.fixture(scope="module")
def tracing_host(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_host(tmp_path_factory.mktemp("trace"), "-DTRACE")


def host_activate(host: ctypes.CDLL, name: str, x: F32) -> F32:
    x = np.ascontiguousarray(x)
    y = np.empty_like(x)
    host.activate(
        ctypes.c_uint(constants.CODES[name]),
        ctypes.c_long(x.size),
        ctypes.c_void_p(x.ctypes.data),
        ctypes.c_void_p(y.ctypes.data),
    )
    return y


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_mirror_equals_the_cuda_text(host: ctypes.CDLL, name: str) -> None:
    x = samples(np.random.default_rng(SEED), 1_500_000)
    exponents = np.arange(256, dtype=np.uint32) << 23  # each binade's ends, zeros, inf, NaN
    edges = np.concatenate([exponents, exponents - 1, exponents + 1, exponents + 0x7FFFFF])
    edges = np.concatenate([edges, edges | np.uint32(1 << 31)]).view(np.float32)
    x = np.concatenate([x, edges])
    assert_same(activate(name, x), host_activate(host, name, x), x, context=f"seed {SEED}:")


@pytest.mark.parametrize("name", SMOOTH)
def test_mirror_and_cuda_text_take_the_same_steps(
    tracing_host: ctypes.CDLL, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The results of all operations agree, so a difference that rarely shows at the end is seen.

    Sorted, because C++ leaves the order of a call's arguments open.
    """
    x = samples(np.random.default_rng(SEED), 500)
    steps: list[F32] = []

    def recorded(operation: Callable[..., F32]) -> Callable[..., F32]:
        def call(*operands: F32) -> F32:
            result = operation(*operands)
            steps.append(np.broadcast_to(result, x.shape))
            return result

        return call

    for operation in ("fma", "add", "mul", "div"):
        monkeypatch.setattr(mirror, operation, recorded(getattr(mirror, operation)))
    activate(name, x)
    assert len(steps) > 30
    buffer = np.empty(2 * len(steps), np.float32)
    for i, value in enumerate(x.tolist()):
        code, argument = ctypes.c_uint(constants.CODES[name]), ctypes.c_float(value)
        count = tracing_host.trace(code, argument, ctypes.c_void_p(buffer.ctypes.data))
        assert count == len(steps), f"{name}({value.hex()})"
        ours = np.sort(np.array([step[i] for step in steps]).view(np.uint32))
        theirs = np.sort(buffer[:count].view(np.uint32))
        assert ours.tolist() == theirs.tolist(), f"{name}({value.hex()})"


@pytest.mark.parametrize("name", SMOOTH)
def test_dense_error_bound_of_the_cuda_text(host: ctypes.CDLL, name: str) -> None:
    """All exponents from zero to 128, both signs, more than 10**7 points."""
    out = np.zeros(2)
    points = 0
    for sign in (0, 1 << 31):
        first, last = sign, sign | int(np.float32(128).view(np.uint32))
        points += (last - first) // STEP
        host.worst(
            ctypes.c_uint(constants.CODES[name]),
            ctypes.c_uint64(first),
            ctypes.c_uint64(last),
            ctypes.c_uint64(STEP),
            ctypes.c_void_p(out.ctypes.data),
        )
    assert 0.5 <= out[0] <= ULP[name]
    assert 0 < out[1] <= SUBNORMAL_UNITS[name]
    assert points > 10**7


def test_ptx_has_only_ieee_operations() -> None:
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    source = cuda_text() + (
        '\nextern "C" __global__ void probe(float* x, unsigned code) {'
        "\n    x[threadIdx.x] = ptxgen_activation(code, x[threadIdx.x]);\n}\n"
    )
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"probe.cu", 0, [], [])
    (status,) = nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=compute_80"])
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = bytearray(size)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, log.decode()
    _, size = nvrtc.nvrtcGetPTXSize(program)
    buffer = bytearray(size)
    nvrtc.nvrtcGetPTX(program, buffer)
    ptx = buffer.decode()
    assert "div.rn.f32" in ptx
    assert "fma.rn.f32" in ptx
    for unwanted in (".approx", ".ftz", "call"):
        assert unwanted not in ptx
    # Without an explicit .rn, ptxas may contract a multiplication and an addition.
    assert re.findall(r"\b(?:add|sub|mul)\.f32\b", ptx) == []
