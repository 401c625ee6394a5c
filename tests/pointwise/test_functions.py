"""Functions of formulas: their errors, special values, slopes, and source = oracle, bit for bit."""

from __future__ import annotations

import importlib.util
import math
import re
import shutil
import subprocess
from collections.abc import Callable
from ctypes import CDLL, c_long, c_void_p
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from function_cases import THREADS, applied, of_type, run, samples, together
from numpy.typing import NDArray
from test_reference_f32 import assert_same

import ptxgen.functions
from ptxgen.build.render import render
from ptxgen.errors import FormulaError
from ptxgen.numerics import functions
from ptxgen.numerics.contract import ACTIVATIONS
from ptxgen.numerics.formula import Formula, Node, Output, read, trace
from ptxgen.numerics.functions import FUNCTIONS, power
from ptxgen.oracle import activate
from ptxgen.oracle.formula import call, evaluate
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec import formula as source
from ptxgen.spec.pointwise import Form, PointwiseSpec

CHECKOUT = Path(__file__).parents[2]
SEED = 5
STRIDE = 251
"""The long tests try every 127th f32."""
F32 = NDArray[np.float32]
PI = (
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534"
)
PI_DECIMAL = Decimal(PI + "2117067982148086513282306647093844609550582231725359408128")
GATES = [name for name in ACTIVATIONS if name != "none"]


def tool(name: str) -> Any:
    """A module of tools/."""
    path = CHECKOUT / "tools" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


measure = tool("function_errors")


def documented() -> dict[str, tuple[float, float]]:
    """The largest errors of normal and subnormal results in the document's table."""
    text = (CHECKOUT / "docs" / "reference" / "functions.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \| [^|]*\| ([\d.]+|exact) \|", text, re.M)
    return {name: (float(n), 0.0 if s == "exact" else float(s)) for name, n, s in rows}


def documented_f64() -> dict[str, float]:
    """The largest errors found of those that f64 has."""
    text = (CHECKOUT / "docs" / "reference" / "functions.md").read_text(encoding="utf-8")
    return {name: float(e) for name, e in re.findall(r"^\| `(\w+)` \| ([\d.]+) \|$", text, re.M)}


def test_all_are_documented() -> None:
    assert set(documented()) == set(measure.TRUTH) | {"pow"} == set(FUNCTIONS)


@pytest.mark.parametrize("name", measure.TRUTH)
def test_error(name: str) -> None:
    normal, small = documented()[name]
    x = samples(40_000)
    found = measure.worst(name, [x])
    assert found.normal <= normal, f"{name}({found.at!r}) is off by {found.normal} ulp"
    assert found.subnormal <= small, f"{name}({found.at_subnormal!r}): {found.subnormal} units"
    assert found.normal >= 0.3 * normal


@pytest.mark.long
@pytest.mark.parametrize("name", measure.TRUTH)
def test_error_of_many(name: str) -> None:
    """Tens of millions, all binades evenly (the tool takes every one, in hours)."""
    normal, small = documented()[name]
    found = measure.sweep(name, STRIDE)
    assert 0.8 * normal <= found.normal <= normal, found
    assert 0.8 * small <= found.subnormal <= small, found


LONG = np.longdouble
PRECISE: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "relu": lambda x: np.where(x <= 0, LONG(0), x),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "silu": lambda x: np.where(x < -12_000, LONG(-0.0), x / (1 + np.exp(-x))),
    "gelu_tanh": lambda x: np.where(
        np.abs(x) > 50,
        np.maximum(x, LONG(-0.0)),
        x / (1 + np.exp(-np.sqrt(8 / LONG(PI)) * (x + LONG("0.044715") * x**3))),
    ),
}
"""Functions in numbers of 64 bits and more, as truth to measure errors by."""


@pytest.mark.skipif(np.finfo(LONG).nmant < 63, reason="long double has no more bits than float64")
@pytest.mark.parametrize("name", PRECISE)
def test_error_of_f64(name: str) -> None:
    x = samples(20_000, "f64")
    with np.errstate(all="ignore"):
        exact = PRECISE[name](x.astype(LONG))
        value = call(FUNCTIONS[name], x)
        rounded = exact.astype(np.float64)
        finite = np.isfinite(rounded) & np.isfinite(value)
        same = (value == rounded) | (np.isnan(value) & np.isnan(exact))
        assert same[~finite].all(), f"{name}({x[~finite & ~same][0]})"
        size = np.abs(exact).astype(np.float64)
        ulp = np.ldexp(LONG(1), np.maximum(np.frexp(size)[1] - 53, -1074))
        error = np.where(finite, np.abs(value - exact) / ulp, 0)
    zero = (value == 0) & (exact == 0)
    assert (np.signbit(value) == np.signbit(exact))[zero].all()
    worst = int(np.argmax(error))
    bound = documented_f64()[name]
    assert 0.3 * bound <= error[worst] <= bound, f"{name}({x[worst]!r}): {error[worst]} ulp"


def test_f64_is_documented() -> None:
    assert set(documented_f64()) == set(of_type("f64")) == {*PRECISE, "erf", "gelu"}


def normal_tail(x: Decimal) -> Decimal:
    """Returns ``erfc(|x| / sqrt(2))``: twice the normal distribution's tail beyond ``|x|``."""
    square = x * x / 2
    term = total = Decimal(1)
    for i in range(1, 2000):
        term *= -square / i
        total += term / (2 * i + 1)
        if abs(term) < Decimal(10) ** -110:
            break
    return 1 - total * abs(x) * (2 / PI_DECIMAL).sqrt()


def test_error_of_f64_integrals() -> None:
    """erf and gelu, by their series in 120 digits."""
    x = np.random.default_rng(SEED).uniform(-10, 10, 300)
    x[:100] /= 10
    for name in ("erf", "gelu"):
        for each, value in zip(x, call(FUNCTIONS[name], x), strict=True):
            with localcontext(prec=120):
                if name == "erf":
                    exact = (1 - normal_tail(Decimal(each) * Decimal(2).sqrt())).copy_sign(
                        Decimal(each)
                    )
                else:
                    tail = normal_tail(Decimal(each)) / 2
                    exact = Decimal(each) * (tail if each < 0 else 1 - tail)
                error = abs(Decimal(float(value)) - exact) / Decimal(math.ulp(float(exact)))
            assert error <= Decimal(documented_f64()[name]), f"{name}({each})"


def pairs(count: int) -> tuple[F32, F32]:
    """Operands whose power is a number of f32, or nearly."""
    rng = np.random.default_rng(SEED)
    x = np.exp(rng.uniform(-88, 88, count))
    x[: count // 2] = rng.uniform(0.9, 1.1, count // 2)
    x = x.astype(np.float32)
    y = rng.uniform(-104, 89, count) / np.log(x.astype(np.float64))
    return x, y.astype(np.float32)


def test_error_of_pow() -> None:
    x, y = pairs(200_000)
    exact = (x.astype(np.longdouble) ** y.astype(np.longdouble)).astype(np.float64)
    error, normal = measure.errors(call(FUNCTIONS["pow"], x, y), exact)
    largest = documented()["pow"]
    assert 0.5 < error[normal].max() <= largest[0]
    assert error[~normal].max() <= largest[1]


def test_pow_of_special_values() -> None:
    """Special values give the results of C's pow (and of NumPy's in float64)."""
    sizes = [0, 0.5, 1, 1.5, 2, 3, np.inf, 1e-40, 3e38, 16777217, 0.9999999]
    special = np.array([*sizes, *(-s for s in sizes), np.nan], np.float32)
    x, y = (np.ascontiguousarray(v).reshape(-1) for v in np.meshgrid(special, special))
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
    error, _ = measure.errors(call(FUNCTIONS["pow"], x, y), exact)
    for a, b, e in zip(x, y, error, strict=True):
        assert e < 1, f"pow({a}, {b})"


@pytest.mark.parametrize("name", sorted({*measure.TRUTH} - {"rsqrt"}))
def test_special_values(name: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3.4e38, -3.4e38], np.float32)
    with np.errstate(all="ignore"):
        exact = measure.TRUTH[name](x.astype(np.float64))
    value = call(FUNCTIONS[name], x)
    error, _ = measure.errors(value, exact)
    assert error.max() <= 1.5, f"{name}: {value}, should be {exact}"


def test_roots_of_special_values() -> None:
    x = np.array([np.nan, np.inf, -1, 0.0, -0.0, 1e-45], np.float32)
    inf = np.inf
    expected = np.array([np.nan, 0, np.nan, inf, -inf, 2.6713e22], np.float32)
    value = call(FUNCTIONS["rsqrt"], x)
    np.testing.assert_allclose(value, expected, 1e-4)  # the constant above has five digits
    assert not np.signbit(value[1])


@pytest.mark.parametrize("name", GATES)
def test_gates_have_the_bits_of_epilogues(name: str) -> None:
    x = samples(100_000)
    assert_same(call(FUNCTIONS[name], x), activate(name, x), x)


@pytest.mark.long
@pytest.mark.parametrize("name", GATES)
def test_many_gates_have_the_bits_of_epilogues(name: str) -> None:
    for x in measure.arguments(0, 1 << 32, STRIDE):
        assert_same(call(FUNCTIONS[name], x), activate(name, x), x)


@pytest.mark.parametrize("exponent", [0, 123, -124])
@pytest.mark.parametrize("step", [257, pytest.param(1, marks=pytest.mark.long)])
def test_quotients_of_gates_are_rounded_once(exponent: int, step: int) -> None:
    """Every mantissa; the sequence is the same for every exponent between these."""
    mantissas = np.arange(0, 1 << 23, step, np.uint32)
    mantissas = np.append(mantissas, np.arange((1 << 23) - 100, 1 << 23, dtype=np.uint32))
    x = (mantissas + np.uint32(127 + exponent << 23)).view(np.float32)
    for part in np.array_split(x, 1 + x.size // measure.BLOCK):
        assert_same(value(functions._rounded_reciprocal(read("x", "f32")), x=part), 1 / part, part)


BOUNDED = [name for name, function in FUNCTIONS.items() if function.bounds]


def bounds(name: str, x: F32) -> list[F32]:
    found = FUNCTIONS[name].bounds
    assert found is not None
    return evaluate(found(read("x", "f32")), {"x": x})


def as_bf16(x: F32) -> NDArray[np.uint16]:
    return x.astype(ml_dtypes.bfloat16).view(np.uint16)


@pytest.mark.parametrize("name", BOUNDED)
def test_bounds(name: str) -> None:
    """A result lies between, and nearly always both are one number of bf16. (The GPU's tests try
    every f32.)
    """
    x = samples(400_000)
    low, high = bounds(name, x)
    y = call(FUNCTIONS[name], x)
    nan = np.isnan(x)
    assert np.isnan(low[nan]).all() and np.isnan(high[nan]).all()
    inside = (np.minimum(low, high) <= y) & (y <= np.maximum(low, high))
    assert inside[~nan].all(), x[~nan & ~inside][:5]
    known = as_bf16(low) == as_bf16(high)
    np.testing.assert_array_equal(as_bf16(low)[known & ~nan], as_bf16(y)[known & ~nan])
    usual = np.random.default_rng(SEED).normal(size=100_000).astype(np.float32)
    assert (as_bf16(bounds(name, usual)[0]) == as_bf16(bounds(name, usual)[1])).mean() > 0.999


@pytest.mark.parametrize("name", BOUNDED)
def test_kernels_go_by_bounds(name: str) -> None:
    """Vectors whose bounds are one number, and such with others among them."""
    x = samples(4_000)
    doubtful = np.flatnonzero(np.not_equal(*map(as_bf16, bounds(name, x))))
    x[::7][: doubtful.size] = x[doubtful][: x[::7].size]
    x = x[: 250 * 8 + 3].reshape(1, -1)
    pair = np.concatenate([x, x[:, ::-1]])
    with ptxgen.use_device(CpuDevice()):
        for each in (x, pair[:, :2000]):  # one row, with a tail; rows, of vectors
            got = getattr(ptxgen.functions, name)(each, out_dtype="bfloat16")
            wanted = call(FUNCTIONS[name], np.ascontiguousarray(each))
            nan = np.isnan(wanted)
            np.testing.assert_array_equal(got.view(np.uint16)[~nan], as_bf16(wanted)[~nan])
            assert np.isnan(got.astype(np.float32)[nan]).all() and nan.any()
    narrow = getattr(ptxgen.functions, name).formula(("f32",), "bfloat16")
    specs = {out: pointwise_spec(narrow, out) for out in ("bf16", "f16", "f32")}
    assert [out for out, text in specs.items() if "bound(" in text] == ["bf16"]


def pointwise_spec(formula: Formula, out: str) -> str:
    """The source of a kernel that writes the formula's result as ``out``."""
    outputs = tuple(Output(o.name, out, o.node) for o in formula.outputs)
    return render(PointwiseSpec("flat", Form(Formula(outputs), (0, 0), "v", 1)))


# -- the kernels' source ------------------------------------------------------------------------
HOST = r"""
#include <cmath>
#include <cstring>
#define __device__
#define __forceinline__ inline
#define ptxgen_inf __int_as_float(0x7f800000)
#define ptxgen_nan __int_as_float(0x7fffffff)
template <class To, class From> static inline To as(From x) {
    To y; static_assert(sizeof x == sizeof y, ""); std::memcpy(&y, &x, sizeof y); return y;
}
static inline float __fmaf_rn(float a, float b, float c) { return std::fmaf(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
#define OPERATIONS(T, l) \
    static inline T __##l##add_rn(T a, T b) { return a + b; } \
    static inline T __##l##sub_rn(T a, T b) { return a - b; } \
    static inline T __##l##mul_rn(T a, T b) { return a * b; } \
    static inline T __##l##div_rn(T a, T b) { return a / b; } \
    static inline T __##l##sqrt_rn(T a) { return std::sqrt(a); }
OPERATIONS(float, f)
OPERATIONS(double, d)
static inline float __int_as_float(int i) { return as<float>(i); }
static inline int __float_as_int(float f) { return as<int>(f); }
static inline double __longlong_as_double(long long i) { return as<double>(i); }
static inline long long __double_as_longlong(double f) { return as<long long>(f); }
static inline float __double2float_rn(double x) { return (float)x; }
static inline float __int2float_rn(int i) { return (float)i; }
static inline double __ll2double_rn(long long i) { return (double)i; }
template <class T> static T extreme(T a, T b, bool larger) {
    if (a != a || b != b) return a + b;
    if (a == b) return std::signbit(a) == larger ? b : a;
    return (a < b) == larger ? b : a;
}
template <class T> static T ptxgen_max(T a, T b) { return extreme(a, b, true); }
template <class T> static T ptxgen_min(T a, T b) { return extreme(a, b, false); }
template <class T> static T ptxgen_opaque(T x) { return x; }
template <class T> static T ptxgen_choose(bool c, T a, T b) { return c ? a : b; }
"""
LOOP = r"""
extern "C" void apply_@(long count, const # *x, const # *y, # *z) {
    for (long i = 0; i < count; i++) z[i] = ptxgen_@(x[i]%);
}
"""
BOTH = [(name, type) for type in ("f32", "f64") for name in of_type(type)]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> CDLL:
    """The functions as kernels have them, compiled as C++ for this machine."""
    compiler = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler (g++, clang++ or c++) to run the CUDA text on the host")
    folder = tmp_path_factory.mktemp("host")
    text = HOST
    for type in ("f32", "f64"):
        text += "\n".join(source.functions(together(type)))
    for name, type in BOTH:
        loop = LOOP.replace("@", f"{name}_{type}").replace("#", source.CTYPES[type])
        text += loop.replace("%", ", y[i]" * (FUNCTIONS[name].arity - 1))
    (folder / "functions.cpp").write_text(text)
    flags = ["-std=c++17", "-O1", "-ffp-contract=off", "-frounding-math", "-fPIC", "-shared"]
    library = folder / "functions.so"
    command = [compiler, *flags, "-o", library, folder / "functions.cpp", "-lm"]
    subprocess.run(command, check=True)
    return CDLL(str(library))


@pytest.mark.parametrize(("name", "type"), BOTH)
def test_oracle_equals_the_cuda_text(host: CDLL, name: str, type: str) -> None:
    x = samples(60_000 if type == "f32" else 6_000, type)
    y = np.random.default_rng(SEED).permutation(x)
    z = np.empty_like(x)
    pointers = (c_void_p(a.ctypes.data) for a in (x, y, z))
    getattr(host, f"apply_{name}_{type}")(c_long(x.size), *pointers)
    operands = (x, y)[: FUNCTIONS[name].arity]
    assert_same(call(FUNCTIONS[name], *operands), z, x)


def test_rare_functions_stand_where_they_are_chosen() -> None:
    """A branch, not a call whose result is thrown away nearly always."""
    text = "\n".join(source.functions(applied("cos")))
    assert re.search(r"\? ptxgen_opaque\(\w+\) : ptxgen_cos_far_f32\(\w+\)\)", text)
    assert text.count("ptxgen_cos_far_f32(") == 2  # its definition, and that


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_the_cpu_device_computes_them(type: str) -> None:
    """Each function, compiled by NVRTC and interpreted, has the oracle's bits on some arguments."""
    rng = np.random.default_rng(SEED)
    x = rng.permutation(samples(4_000, type))[: 3 * THREADS]
    x[:THREADS] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5] * (THREADS // 8)
    y = rng.permutation(x)
    y[:THREADS] = np.repeat(x[:8], THREADS // 8)
    for name, z in run(CpuDevice(), x, y, type).items():
        operands = (x, y)[: FUNCTIONS[name].arity]
        assert_same(z, call(FUNCTIONS[name], *operands), *operands, context=name)


# -- slopes -------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", FUNCTIONS)
def test_slope(name: str) -> None:
    """The derivatives, beside differences of float64."""
    function = FUNCTIONS[name]
    assert function.slope is not None
    operands = [read(f"x{i}", "f32") for i in range(function.arity)]
    rng = np.random.default_rng(SEED)
    positive = name in ("log", "log2", "log1p", "rsqrt", "pow")
    values = [
        rng.uniform(0.3 if positive else -1.4, 3, 400).astype(np.float32)
        for _ in range(function.arity)
    ]
    found = evaluate(
        function.slope(*operands, function(*operands)),
        {f"x{i}": v for i, v in enumerate(values)},
    )
    exact: Any = np.power if name == "pow" else measure.TRUTH[name]
    wide = [v.astype(np.float64) for v in values]
    for i, slope in enumerate(found):
        step = [1e-6 * (i == j) for j in range(function.arity)]
        above = exact(*(v + s for v, s in zip(wide, step, strict=True)))
        below = exact(*(v - s for v, s in zip(wide, step, strict=True)))
        # central differences: their own error is 1e-12 + 2^-53 / 1e-6 of a third derivative's size
        np.testing.assert_allclose(slope, (above - below) / 2e-6, 2e-5, 2e-6)


def value(node: Node, **inputs: Any) -> Any:
    return evaluate([node], {k: np.asarray(v, np.float32) for k, v in inputs.items()})[0]


def test_slopes_at_zero() -> None:
    x, y = read("x", "f32"), read("y", "f32")
    assert FUNCTIONS["relu"].slope and FUNCTIONS["pow"].slope
    (slope,) = FUNCTIONS["relu"].slope(x, FUNCTIONS["relu"](x))
    assert value(slope, x=[-1, -0.0, 0, 1]).tolist() == [0, 0, 0, 1]
    by_x, by_y = FUNCTIONS["pow"].slope(x, y, FUNCTIONS["pow"](x, y))
    assert value(by_x, x=[0, 0, 0], y=[0, 1, 2]).tolist() == [0, 1, 0]
    assert value(by_y, x=[0, 0], y=[0, 2]).tolist() == [0, 0]


# -- what users write ---------------------------------------------------------------------------
def test_powers() -> None:
    """Powers by 2, 0.5, -1 and the like are other operations; any other power is ``pow``."""
    x = read("x", "f32")
    assert x**2 is x * x
    assert x**0.5 is ptxgen.functions.sqrt(x)
    assert x**-1 is 1 / x
    assert x**2.5 is FUNCTIONS["pow"](x, 2.5)
    assert 2**x is power(2, x)
    assert value(2**x, x=3.0) == 8
    assert read("n", "i32") ** 3 is read("n", "i32") * read("n", "i32") * read("n", "i32")
    with pytest.raises(FormulaError, match="pow takes f32; got i32: cast it"):
        read("n", "i32") ** 5


def test_plain_functions() -> None:
    x = read("x", "f32")
    f = ptxgen.functions
    given = [-2.5, -0.0, 0.5, 1.5, np.inf, np.nan]
    expected = {
        "sign": [-1, -0.0, 1, 1, 1, np.nan],
        "round": [-2, -0.0, 0, 2, np.inf, np.nan],
        "floor": [-3, -0.0, 0, 1, np.inf, np.nan],
        "ceil": [-2, -0.0, 1, 2, np.inf, np.nan],
        "trunc": [-2, -0.0, 0, 1, np.inf, np.nan],
        "abs": [2.5, 0.0, 0.5, 1.5, np.inf, np.nan],
        "isnan": [0, 0, 0, 0, 0, 1],
        "isinf": [0, 0, 0, 0, 1, 0],
        "isfinite": [1, 1, 1, 1, 0, 0],
    }
    for name, wanted in expected.items():
        found = value(getattr(f, name)(x), x=given).astype(np.float32)
        assert_same(found, np.array(wanted, np.float32), np.array(given, np.float32), context=name)
    clamped = value(f.clamp(x, -1, 1), x=given)
    assert_same(clamped, np.array([-1, -0.0, 0.5, 1, 1, np.nan], np.float32), clamped)


def test_the_public_module_has_them_all() -> None:
    assert set(ptxgen.functions.__all__) >= set(FUNCTIONS)
    for name, function in FUNCTIONS.items():
        values = [read(f"x{i}", "f32") for i in range(function.arity)]
        assert getattr(ptxgen.functions, name)(*values) is function(*values)
    for name, x in [("exp", "i32"), ("tanh", "bool"), ("sin", "f64"), ("log2", "f64")]:
        taken = " or ".join(FUNCTIONS[name].types)
        with pytest.raises(FormulaError, match=f"{name} takes {taken}; got {x}: cast it"):
            getattr(ptxgen.functions, name)(read("x", x))
    with pytest.raises(FormulaError, match=r"takes at least one array.*\n.*sin\(1"):
        trace(lambda x: x + ptxgen.functions.sin(1.0), {"x": read("x", "f32")})
