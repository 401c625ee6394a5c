"""The library's operations on a fake GPU: what they launch, what they refuse, what they return."""

import ctypes
import doctest
import os
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
from bits import operand, same_bits
from ops_fakes import FakeGpu, known_to_nobody, torch_for_ops

import ptxgen
from ptxgen import reference
from ptxgen.build import cache, render
from ptxgen.dispatch import choose
from ptxgen.errors import DeviceError, DtypeError, GradError, OptionError, ShapeError
from ptxgen.numerics.contract import ACTIVATIONS, FMA, OPERATIONS
from ptxgen.ops.explaining import problem_of
from ptxgen.program import invoke, launch
from ptxgen.runtime import arrays
from ptxgen.runtime import registry as device
from ptxgen.spec import GemmSpec
from ptxgen.tiles import ROUTES, SPECS, TABLES

F4 = np.float32
PRODUCTS = ("linear", "linear_dgrad", "linear_wgrad", "matmul")


@pytest.fixture
def gpus(monkeypatch):
    """Two fake GPUs, and memos of their own for the test."""
    pair = FakeGpu(0), FakeGpu(1)
    monkeypatch.setattr(device, "_kinds", dict(device._kinds))
    monkeypatch.setattr(device, "_process_default", None)
    device.register("cuda", lambda: pair)
    monkeypatch.setattr(launch, "_cubin", lambda spec, arch: f"{spec.name} {arch}".encode())
    monkeypatch.setattr(arrays, "_cuda_index", lambda ptr: 0)
    known_to_nobody(monkeypatch, *PRODUCTS)
    return pair


@pytest.fixture
def gpu(gpus):
    return gpus[0]


@pytest.fixture
def torch(gpus, monkeypatch):
    module = torch_for_ops()
    monkeypatch.setitem(sys.modules, "torch", module)
    arrays._framework_of_type.cache_clear()
    yield module
    arrays._framework_of_type.cache_clear()


@pytest.fixture
def careful(monkeypatch):
    """The operations whose calls were followed, in order."""
    calls = []
    real = invoke.invoke

    def followed(frame, *rest):
        calls.append(frame.op.name)
        return real(frame, *rest)

    monkeypatch.setattr(invoke, "invoke", followed)
    return calls


def chosen(op, sizes, layout="kn", sms=132, arch="sm_90"):
    """Returns the dispatcher's choice for aligned f32 operands."""
    problem = problem_of(op, sizes, "float32", 16, {"layout": layout})
    return choose(problem.table, dict(problem.values), arch=arch, sms=sms)


def at(shape, offset=0, pitch=None, fill=np.nan, dtype=F4):
    """A matrix ``offset`` bytes past a 64-byte boundary, in rows of ``pitch`` elements."""
    rows, columns = shape
    pitch = pitch or columns
    raw = np.full(rows * pitch + 64, fill, dtype)
    start = (-raw.ctypes.data % 64 + offset) // raw.itemsize
    assert offset % raw.itemsize == 0
    flat = raw[start : start + rows * pitch]
    return flat.reshape(rows, pitch)[:, :columns]


def put(values, offset=0, pitch=None):
    """``values`` (a matrix) stored as :func:`at` says."""
    array = at(values.shape, offset, pitch, dtype=values.dtype)
    array[...] = values
    return array


def numbers(*shape, seed=0, kind="normal", dtype="f32"):
    return operand(np.random.default_rng([seed, *shape]), shape, kind, dtype)


# -- the module -------------------------------------------------------------------------


def bare_python(code):
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    ).stdout


def test_importing_does_nothing():
    code = (
        "import sys, ptxgen; print([m for m in sys.modules if m.startswith('ptxgen.')]); "
        "dir(ptxgen); print(sorted({m.partition('.')[0] for m in sys.modules}"
        " & {'cuda', 'jinja2', 'z3', 'torch', 'numpy'}))"
    )
    assert bare_python(code) == "['ptxgen.lazy']\n[]\n"


def test_importing_the_operations_loads_no_compiler_and_no_driver():
    code = (
        "import sys, ptxgen; ptxgen.linear, ptxgen.explain; print(sorted({m.partition('.')[0] "
        "for m in sys.modules} & {'cuda', 'jinja2', 'z3', 'torch', 'numpy'}))"
    )
    assert bare_python(code) == "[]\n"


def test_public_names_exist():
    for name in ptxgen.__all__:
        assert getattr(ptxgen, name) is getattr(ptxgen, name)
    assert set(ptxgen.__all__) <= set(dir(ptxgen))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = ptxgen.nonsense


def test_documentation_runs(gpus):
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    for name in PRODUCTS:
        (test,) = finder.find(getattr(ptxgen, name), name, globs={})
        assert runner.run(test).failed == 0
    assert runner.tries >= 12


def test_explain_is_the_dispatchers():
    found = ptxgen.explain("linear", 3, 5, 7, layout="nk", arch="sm_80", sms=100)
    assert found.choice == chosen("linear", (3, 5, 7), "nk", 100, "sm_80")


# -- what is launched and returned ------------------------------------------------------


def op_case(op, layout, m=5, n=9, k=7, seed=0):
    """(call, operands in order, reference) of an operation at [m, n, k]."""
    x, w, dy = numbers(m, k, seed=seed), numbers(k, n, seed=seed + 1), numbers(m, n, seed=seed + 2)
    if layout == "nk":
        w = np.ascontiguousarray(w.T)
    return {
        "linear": (ptxgen.linear, (x, w), reference.linear),
        "linear_dgrad": (ptxgen.linear_dgrad, (dy, w), reference.linear_dgrad),
        "linear_wgrad": (ptxgen.linear_wgrad, (x, dy), reference.linear_wgrad),
    }[op]


TRIAD = [
    (op, layout) for op in ("linear", "linear_dgrad", "linear_wgrad") for layout in ("kn", "nk")
]


@pytest.mark.parametrize(("op", "layout"), TRIAD)
def test_launch_is_what_the_dispatcher_chose(gpu, torch, op, layout):
    call, operands, oracle = op_case(op, layout)
    first, second = (torch.Tensor(put(o, pitch=o.shape[1] + 4 - o.shape[1] % 4)) for o in operands)
    result = call(first, second, layout=layout)
    same_bits(result.array, oracle(*operands, layout=layout))

    choice = chosen(op, (5, 9, 7), layout)
    launches = gpu.launches()
    assert [x[0] for x in launches] == list(choice.kernels)
    product = OPERATIONS[op].products[layout]
    a, b = (first, second) if product.operands == (0, 1) else (second, first)
    m, n, k = ({"M": 5, "N": 9, "K": 7}[d] for d in product.dims)
    chunk = OPERATIONS[op].plan(FMA).chunk_length(k)
    for (symbol, grid, block, stream, p, what), ctas in zip(launches, choice.grids, strict=True):
        spec = SPECS[symbol]
        assert (grid, block, stream) == ((ctas, 1, 1), (spec.threads, 1, 1), torch.raw_stream)
        assert what == f"{op} M=5 N=9 K=7"
        assert (p["a"], p["b"], p["bias"], p["c"]) == (
            a.data_ptr(), b.data_ptr(), 0, result.data_ptr(),
        )  # fmt: skip
        assert (p["lda"], p["ldb"], p["ldc"]) == (a.stride()[0], b.stride()[0], n)
        assert (p["m"], p["n"], p["k"], p["chunk"], p["flags"]) == (m, n, k, chunk, 0)
        assert gpu._functions[symbol].shared_bytes == spec.shared_bytes
        assert ("load", f"{symbol} sm_90a".encode(), symbol) in gpu.log


@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
@pytest.mark.parametrize("letters", ["nn", "nt", "tn", "tt"])
def test_matmul_storages_and_transposed_views(gpu, torch, letters, transposed):
    transpose_a, transpose_b = (c == "t" for c in letters)
    left, right = numbers(6, 3), numbers(3, 10)
    left, right = left.T if transpose_a else left, right.T if transpose_b else right
    a = put(left.T).T if "a" in transposed else put(left)
    b = put(right.T).T if "b" in transposed else put(right)
    options = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    y = ptxgen.matmul(torch.Tensor(a), torch.Tensor(b), **options)
    same_bits(y.array, reference.matmul(left, right, **options))
    symbol, *_ = gpu.launches()[0]
    stored = "NT"[transpose_a ^ ("a" in transposed)] + "NT"[transpose_b ^ ("b" in transposed)]
    assert SPECS[symbol].layout == stored


@pytest.mark.parametrize("op", ["linear", "linear_dgrad"])
def test_a_transposed_weight_is_the_other_layout(gpu, torch, op):
    call, (x, w), _ = op_case(op, "kn")
    one = call(torch.Tensor(put(x)), torch.Tensor(put(w)), layout="kn")
    other = call(torch.Tensor(put(x)), torch.Tensor(put(w.T).T), layout="kn")
    same_bits(one.array, other.array)
    (first, *_), (second, *_) = gpu.launches()
    assert {SPECS[first].layout, SPECS[second].layout} == {"NN", "NT"}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_epilogue(gpu, torch, name):
    x, w, bias = numbers(4, 7), numbers(7, 6), numbers(6)
    got = ptxgen.linear(*map(torch.Tensor, (x, w, bias)), activation=name, layout="kn")
    same_bits(got.array, reference.linear(x, w, bias, activation=name, layout="kn"))
    ((*_, p, _),) = gpu.launches()
    assert p["flags"] == ACTIVATIONS.index(name) << 8
    assert p["bias"] == bias.ctypes.data


def test_leading_dimensions_are_flattened(gpu, torch):
    x, w = numbers(2, 3, 4, 7), numbers(7, 6)
    y = ptxgen.linear(torch.Tensor(x), torch.Tensor(w), layout="kn")
    assert y.shape == (2, 3, 4, 6)
    same_bits(y.array, reference.linear(x, w, layout="kn"))
    dw = ptxgen.linear_wgrad(torch.Tensor(x), torch.Tensor(y.array), layout="kn")
    same_bits(dw.array, reference.linear_wgrad(x, y.array, layout="kn"))
    row = ptxgen.linear(torch.Tensor(x[0, 0, 0]), torch.Tensor(w), layout="kn")
    assert row.shape == (6,)
    same_bits(row.array, reference.linear(x[0, 0, 0], w, layout="kn"))
    out = torch.Tensor(np.full((2, 3, 4, 10), np.nan, F4)[..., :6])
    assert ptxgen.linear(torch.Tensor(x), torch.Tensor(w), out=out, layout="kn") is out
    same_bits(out.array, y.array)
    assert np.isnan(out.array.base[..., 6:]).all()


@pytest.mark.parametrize("offset", [0, 4, 8, 12])
@pytest.mark.parametrize("pitch", [8, 9, 10, 12])
def test_alignment_is_that_of_pointer_and_rows(gpu, torch, monkeypatch, offset, pitch):
    seen = []
    real = launch.choose
    monkeypatch.setattr(
        launch,
        "choose",
        lambda t, values, **k: (
            seen.append((values["ALIGN_A"], values["ALIGN_B"])) or real(t, values, **k)
        ),
    )
    x, w = numbers(4, 8), numbers(8, 8)
    y = ptxgen.linear(torch.Tensor(put(x, offset, pitch)), torch.Tensor(put(w)), layout="kn")
    same_bits(y.array, reference.linear(x, w, layout="kn"))
    low = (offset | pitch * 4) & 15
    assert seen == [({0: 16, 8: 8}.get(low, 4), 16)]


def test_the_pitch_of_a_single_row_does_not_count(gpu, torch, monkeypatch):
    seen = []
    real = launch.choose
    monkeypatch.setattr(
        launch,
        "choose",
        lambda t, values, **k: (
            seen.append((values["ALIGN_A"], values["ALIGN_B"])) or real(t, values, **k)
        ),
    )
    x, w = numbers(1, 7), numbers(1, 7)
    ptxgen.linear(torch.Tensor(put(x, pitch=9)), torch.Tensor(put(w)), layout="nk")
    assert seen == [(16, 16)]


def test_rows_may_repeat_or_lie_apart(gpu, torch):
    x, w = numbers(1, 7), numbers(7, 6)
    y = ptxgen.linear(torch.Tensor(np.broadcast_to(x, (4, 7))), torch.Tensor(w[:, :5]), layout="kn")
    same_bits(y.array, reference.linear(np.repeat(x, 4, 0), w[:, :5], layout="kn"))


def test_accumulate_adds_to_out(gpu, torch):
    x, dy, old = numbers(5, 4), numbers(5, 3), numbers(4, 3)
    out = torch.Tensor(put(old, pitch=7))
    assert (
        ptxgen.linear_wgrad(
            torch.Tensor(x), torch.Tensor(dy), out=out, accumulate=True, layout="kn"
        )
        is out
    )
    same_bits(out.array, reference.linear_wgrad(x, dy, out_old=old, layout="kn"))
    ((*_, p, _),) = gpu.launches()
    assert (p["flags"], p["ldc"]) == (1, 7)


@pytest.mark.parametrize("layout", ["kn", "nk"])
def test_numpy_in_and_out(gpu, layout):
    for op in ("linear", "linear_dgrad", "linear_wgrad"):
        call, operands, oracle = op_case(op, layout)
        expected = oracle(*operands, layout=layout)
        got = call(*operands, layout=layout)
        assert type(got) is np.ndarray
        same_bits(got, expected)
        out = np.full((2 * expected.shape[0], 2 * expected.shape[1]), np.nan, F4)[::2, ::-2]
        assert call(*operands, layout=layout, out=out) is out
        same_bits(np.ascontiguousarray(out), expected)
    call, (x, dy), oracle = op_case("linear_wgrad", layout)
    old = numbers(*expected.shape, seed=9)
    total = old.copy()
    call(x, dy, layout=layout, out=total, accumulate=True)
    same_bits(total, oracle(x, dy, layout=layout, out_old=old))
    same_bits(
        ptxgen.linear(x[::-1, ::-1], numbers(7, 2), layout="kn"),
        reference.linear(np.ascontiguousarray(x[::-1, ::-1]), numbers(7, 2), layout="kn"),
    )


def test_use_device_is_where_numpy_goes(gpus):
    x, w = numbers(2, 3), numbers(3, 4)
    with ptxgen.use_device("cuda:1"):
        same_bits(ptxgen.linear(x, w, layout="kn"), reference.linear(x, w, layout="kn"))
    assert not gpus[0].launches()
    assert gpus[1].launches()


def test_random_calls_return_the_oracles_bits(gpu, torch):
    for seed in range(250):
        rng = np.random.default_rng(seed)
        m, n, k = (int(s) for s in rng.integers(1, 40, 3))
        op, layout = TRIAD[rng.integers(len(TRIAD))]
        call, operands, oracle = op_case(op, layout, m, n, k, seed)
        kind = str(rng.choice(["normal", "wide", "cancelling", "subnormal", "special"]))
        operands = [operand(rng, o.shape, kind) for o in operands]
        given = []
        for o in operands:
            offset, slack = 4 * int(rng.integers(4)), int(rng.integers(5))
            turned = rng.random() < 0.3
            source = o.T if turned else o
            stored = put(source, offset, source.shape[1] + slack)
            given.append(torch.Tensor(stored.T if turned else stored))
        options, extra = {"layout": layout}, {}
        if op == "linear":
            if rng.random() < 0.5:
                extra["bias"] = operand(rng, (n,), kind)
            extra["activation"] = str(rng.choice(ACTIVATIONS))
        shape = oracle(*operands, **options).shape
        old = operand(rng, shape, kind)
        out = torch.Tensor(put(old, 4 * int(rng.integers(4)), shape[1] + int(rng.integers(3))))
        if op == "linear_wgrad" and rng.random() < 0.5:
            expected = oracle(*operands, **options, out_old=old)
            options["accumulate"] = True
        else:
            expected = oracle(*operands, **options, **extra)
        if "bias" in extra:
            extra["bias"] = torch.Tensor(extra["bias"])
        for repeat in range(3):
            if repeat and options.get("accumulate"):
                out.array[...] = old
            call(*given, **options, **extra, out=out)
            same_bits(out.array, expected, seed=seed, what=f"{op} {m, n, k} {options} {kind}")


@pytest.mark.parametrize("op", ["linear", "linear_dgrad", "linear_wgrad"])
def test_chunks_are_the_plans(gpu, torch, op):
    long = 4 * 700 + 3
    m, n, k = {"linear": (3, 4, long), "linear_dgrad": (3, long, 4), "linear_wgrad": (long, 4, 3)}[
        op
    ]
    call, operands, oracle = op_case(op, "kn", m, n, k)
    got = call(*(torch.Tensor(put(o)) for o in operands), layout="kn")
    expected = oracle(*operands, layout="kn")
    same_bits(got.array, expected)
    chunk = OPERATIONS[op].plan(FMA).chunk_length(long)
    assert {p["chunk"] for *_, p, _ in gpu.launches()} == {chunk}


# -- zero sizes -------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n", "k"), [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0), (0, 4, 0)])
@pytest.mark.parametrize(("op", "layout"), TRIAD)
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_zero_sizes(gpu, torch, op, layout, kind, m, n, k):
    call, operands, oracle = op_case(op, layout, m, n, k)
    expected = oracle(*operands, layout=layout)
    if kind == "torch":
        got = call(*map(torch.Tensor, operands), layout=layout).array
    else:
        got = call(*operands, layout=layout)
    same_bits(got, expected)
    assert bool(gpu.launches()) == bool(expected.size)


def test_an_empty_reduction_still_has_an_epilogue(gpu, torch):
    x, w, bias = numbers(3, 0), numbers(0, 5), numbers(5)
    y = ptxgen.linear(*map(torch.Tensor, (x, w, bias)), activation="gelu", layout="kn")
    same_bits(y.array, reference.linear(x, w, bias, activation="gelu", layout="kn"))
    old = np.array([[-0.0, 1.0, np.nan, -np.inf, 1e-45]], F4)
    out = torch.Tensor(old.copy())
    x, dy = torch.Tensor(numbers(0, 1)), torch.Tensor(numbers(0, 5))
    ptxgen.linear_wgrad(x, dy, out=out, accumulate=True, layout="kn")
    same_bits(out.array, reference.linear_wgrad(x.array, dy.array, out_old=old, layout="kn"))
    assert not np.signbit(out.array[0, 0])


# -- forcing a kernel -------------------------------------------------------------------


FIRST = {
    twin.name: twin
    for table in TABLES.values()
    for dtype in table.dtypes
    for twin in (table.route(index, dtype) for index in range(len(table.routes)))
    if isinstance(twin.kernels[0], GemmSpec) and {"b", "c"} <= twin.kernels[0].abi.offsets.keys()
    if dtype != "f64"  # of which the fakes know nothing
    if not twin.kernels[0].continues  # which serve no matmul: test_chain.py
}
"""The kernels that can be forced, and a route of each."""


@pytest.mark.parametrize("name", sorted(FIRST))
def test_every_kernel_can_be_forced_and_returns_the_same_bits(gpu, torch, name):
    spec, tier, m = SPECS[name], SPECS[name].tier, SPECS[name].rows_from(70)
    left, right = numbers(m, 40, dtype=spec.dtype), numbers(40, 72, dtype=spec.dtype)
    turn_a, turn_b = (c == "T" for c in spec.layout)
    a = put(left.T, pitch=m + 2).T if turn_a else put(left)
    b = put(right.T).T if turn_b else put(right)
    got = ptxgen.matmul(torch.Tensor(a), torch.Tensor(b), tier=tier, kernel=name)
    same_bits(got.array, reference.matmul(left, right, tier=tier), spec=name)
    launches = gpu.launches()
    assert [x[0] for x in launches] == [kernel.name for kernel in FIRST[name].kernels]
    pointers = {x[4]["workspace"] for x in launches}
    assert len(pointers) == 1
    assert (pointers == {0}) == (len(launches) == 1)
    assert not gpu.events("alloc")  # it is memory of the caller's framework
    for _ in range(2):
        gpu.log.clear()
        again = ptxgen.matmul(torch.Tensor(a), torch.Tensor(b), tier=tier, kernel=name)
        same_bits(again.array, got.array, spec=name)
        assert [x[0] for x in gpu.launches()] == [kernel.name for kernel in FIRST[name].kernels]
        assert len({x[4]["workspace"] for x in gpu.launches()}) == 1


@pytest.mark.parametrize(("compute", "ahead"), [((8, 0), False), ((9, 0), True), ((12, 0), True)])
def test_the_second_kernel_may_start_ahead_where_it_can_wait(gpu, compute, ahead, monkeypatch):
    prepared, real = [], FakeGpu.prepare

    def prepare(self, function, *rest):
        prepared.append((function.symbol, rest[-1]))
        return real(self, function, *rest)

    monkeypatch.setattr(FakeGpu, "prepare", prepare)
    device.register("cuda", lambda: (FakeGpu(compute=compute),))
    route = next(r for r in ROUTES["TN", "chunks", "f32", "simt"] if len(r.kernels) == 2)
    ptxgen.linear_wgrad(numbers(300, 8), numbers(300, 12), kernel=route.name, layout="kn")
    assert prepared == [(route.name, False), (route.kernels[1].name, ahead)]


@pytest.mark.parametrize("name", sorted(n for n in FIRST if SPECS[n].dtype != "f16"))
def test_vectors_are_stored_as_a_forced_kernel_reads_them(gpu, torch, name):
    spec, tier = SPECS[name], SPECS[name].tier
    turn_a, turn_b = (c == "T" for c in spec.layout)
    for m, n, k in ((1, 1, 1), (1, 5, 3), (5, 1, 3), (5, 6, 1), (1, 1, 4), (2, 3, 0)):
        m = spec.rows_from(m)
        left, right = numbers(m, k, dtype=spec.dtype), numbers(k, n, dtype=spec.dtype)
        a = put(left.T, pitch=8).T if turn_a else put(left, pitch=8)
        b = put(right.T, pitch=8).T if turn_b else put(right, pitch=8)
        got = ptxgen.matmul(torch.Tensor(a), torch.Tensor(b), tier=tier, kernel=name)
        expected = reference.matmul(left, right, tier=tier)
        same_bits(got.array, expected, spec=name, what=f"{m, n, k}")


def test_a_forced_kernel_that_does_not_fit_is_refused(gpu, torch):
    name, *_ = (
        r.name
        for (layout, *_), table in ROUTES.items()
        for r in table
        if layout == "NN" and "16 <= ALIGN_B" in str(r.requires)
    )
    x, w = torch.Tensor(put(numbers(4, 8))), torch.Tensor(put(numbers(8, 9)))
    with pytest.raises(OptionError, match=r"does not serve linear .* 16 <= ALIGN_B .*ALIGN_B = 4"):
        ptxgen.linear(x, w, kernel=name, layout="kn")
    with pytest.raises(OptionError, match="takes operands stored NN, got NT"):
        ptxgen.linear(x, torch.Tensor(put(numbers(9, 8))), layout="nk", kernel=name)
    with pytest.raises(OptionError, match="unknown; takes for example"):
        ptxgen.linear(x, w, kernel="simt_none", layout="kn")
    with pytest.raises(OptionError, match="kernel is 3; takes None or the name"):
        ptxgen.linear(x, w, kernel=3, layout="kn")
    assert not gpu.launches()


def test_a_kernel_too_big_for_the_architecture_is_refused(gpu, monkeypatch):
    small = FakeGpu(compute=(8, 6), max_shared=99 << 10)
    device.register("cuda", lambda: (small,))
    name = next(iter(r.name for r in ROUTES["NN", "chunks", "f32", "simt"]))
    monkeypatch.setattr(type(SPECS[name]), "runs_on", lambda spec, arch: arch != "sm_86")
    with pytest.raises(OptionError, match=f"{name} does not serve .* on sm_86: .* not run there"):
        ptxgen.linear(numbers(2, 3), numbers(3, 4), kernel=name, layout="kn")


@pytest.mark.parametrize(
    ("compute", "shared", "arch"),
    [
        ((8, 0), 163, "sm_80"), ((8, 6), 99, "sm_86"), ((9, 0), 227, "sm_90"),
        ((10, 0), 227, "sm_100"), ((10, 3), 227, "sm_103"), ((11, 0), 227, "sm_110"),
        ((12, 0), 99, "sm_120"),
    ],
)  # fmt: skip
def test_architecture_of_a_device(compute, shared, arch):
    assert launch.architecture(FakeGpu(compute=compute, max_shared=shared << 10)) == arch


def test_old_devices_are_refused():
    with pytest.raises(DeviceError, match=r"compute capability 7\.5 .* kernels for 8\.0, 8\.6"):
        launch.architecture(FakeGpu(compute=(7, 5), max_shared=64 << 10))


# -- refusals ---------------------------------------------------------------------------


def a(*shape, **options):
    return lambda t: t.Tensor(put(np.zeros(shape, F4), **options))


def a64(*shape):
    return lambda t: t.Tensor(np.zeros(shape))


def i32(*shape):
    return lambda t: t.Tensor(np.zeros(shape, np.int32))


def half(*shape):
    return lambda t: t.Tensor(np.zeros(shape, np.uint16), dtype="bfloat16")


def on(where, *shape):
    return lambda t: t.Tensor(np.zeros(shape, F4), where)


def view_of(make):
    return lambda t: t.Tensor(make(np.zeros((16, 16), F4)))


def off_by_one(t):
    raw = np.zeros(200, np.uint8)
    start = -raw.ctypes.data % 16 + 1
    return t.Tensor(np.ndarray((4, 4), F4, raw.data, start))


X, W = a(5, 7), a(7, 9)

REFUSALS = {
    # dtypes
    "f64": ("linear", (a64(5, 7), W), {}, DtypeError, "w has dtype float32; takes float64, that"),
    "i32": ("linear", (i32(5, 7), W), {}, DtypeError, "x has dtype int32; takes float32"),
    "bf16": (
        "linear",
        (X, half(7, 9)),
        {"tier": "tc"},
        DtypeError,
        "x has dtype float32; takes bf",
    ),
    "f32": (
        "linear",
        (half(5, 7), W),
        {"tier": "tc"},
        DtypeError,
        "w has dtype float32; takes bfl",
    ),
    "mixed": ("linear", (X, a64(7, 9)), {}, DtypeError, "w has dtype float64; takes float32, that"),
    "bias dtype": ("linear", (X, W, a64(9)), {}, DtypeError, "bias has dtype float64; takes float"),
    "no array": ("linear", (lambda t: "x", W), {}, DtypeError, r"x is a builtins\.str; takes an a"),
    "None": ("linear", (lambda t: None, W), {}, DtypeError, "x is None; takes an array"),
    "out dtype": ("linear", (X, W), {"out": a64(5, 9)}, DtypeError, "out has dtype float64; takes"),
    # shapes
    "K": (
        "linear",
        (X, a(8, 9)),
        {},
        ShapeError,
        r"w has shape \[8, 9\]; takes \[K, N\] with K = 7"
        r", that of x \(layout 'kn'\)",
    ),
    "K nk": (
        "linear",
        (X, W),
        {"layout": "nk"},
        ShapeError,
        r"w has .*; takes \[N, K\] with K = 7",
    ),
    "w 3-D": ("linear", (X, view_of(lambda z: z[None])), {}, ShapeError, r"w has .*takes \[K, N\]"),
    "w 1-D": ("linear", (X, view_of(lambda z: z[0])), {}, ShapeError, r"w has shape \[16\]; takes"),
    "x 0-D": (
        "linear",
        (view_of(lambda z: z[0, :1].reshape(())), W),
        {},
        ShapeError,
        r"x has .*takes \[..., K",
    ),
    "bias": (
        "linear",
        (X, W, view_of(lambda z: z[0, :8])),
        {},
        ShapeError,
        r"bias has shape \[8\]; takes \[N\] with N = 9, that of w",
    ),
    "bias 2-D": ("linear", (X, W, a(1, 9)), {}, ShapeError, r"bias has shape \[1, 9\]; takes"),
    "dgrad N": (
        "linear_dgrad",
        (X, W),
        {},
        ShapeError,
        r"w has shape \[7, 9\]; .* N = 7, that of dy",
    ),
    "wgrad M": ("linear_wgrad", (X, a(4, 9)), {}, ShapeError, r"dy has .*dimensions of x, \[5\]"),
    "matmul K": (
        "matmul",
        (X, a(5, 9)),
        {},
        ShapeError,
        r"b has shape \[5, 9\]; takes .* K = 7, tha",
    ),
    "matmul 1-D": (
        "matmul",
        (view_of(lambda z: z[0, :7]), W),
        {},
        ShapeError,
        r"a has .*takes \[\.\.\., M, K\]",
    ),
    "matmul batches": (
        "matmul",
        tuple(view_of(lambda z, s=s: z.reshape(4, 8, 8)[s]) for s in (slice(2), slice(3))),
        {},
        ShapeError,
        r"b has shape \[3, 8, 8\]; .* broadcast with those of a, which has shape \[2, 8, 8\]",
    ),
    "huge": (
        "linear",
        (view_of(lambda z: np.lib.stride_tricks.as_strided(z, (1 << 31, 7), (0, 4))), W),
        {},
        ShapeError,
        r"x has .*so M = 2147483648; takes at most 2147483647",
    ),
    "out shape": ("linear", (X, W), {"out": a(9, 5)}, ShapeError, r"out has .*takes \[5, 9\]"),
    # strides and pointers
    "no unit": (
        "linear",
        (view_of(lambda z: z[:5, :14:2]), W),
        {},
        ShapeError,
        r"x has .*takes stride 1 along the last dimension \(or a transposed view.*copy of x",
    ),
    "wgrad view": (
        "linear_wgrad",
        (view_of(lambda z: z[:7, :5].T), a(5, 9)),
        {"chain": True},
        ShapeError,
        "x has .*takes stride 1 along the last dimension; pass a contiguous copy of x",
    ),
    "unflat": (
        "linear",
        (view_of(lambda z: z.reshape(4, 4, 16)[:, :2, :7]), W),
        {},
        ShapeError,
        "x has .*leading dimensions do not flatten",
    ),
    "bias strides": (
        "linear",
        (X, W, view_of(lambda z: z[:9, 0])),
        {},
        ShapeError,
        "bias has stride 16; takes stride 1: pass a contiguous copy of bias",
    ),
    "out strides": (
        "linear",
        (X, W),
        {"out": view_of(lambda z: z[:9, :5].T)},
        ShapeError,
        "out has strides .*takes stride 1 along the last dimension",
    ),
    "out itself": (
        "linear",
        (X, W),
        {"out": view_of(lambda z: np.lib.stride_tricks.as_strided(z, (5, 9), (4, 4)))},
        ShapeError,
        "out has strides .*share memory",
    ),
    "off": (
        "matmul",
        (off_by_one, a(4, 4)),
        {},
        ShapeError,
        "a starts 1 bytes behind a multiple of 16; takes a multiple of 4",
    ),
    "out off": ("matmul", (a(4, 4), a(4, 4)), {"out": off_by_one}, ShapeError, "out starts 1 byte"),
    # devices
    "CPU torch": (
        "linear",
        (on("cpu", 5, 7), W),
        {},
        DeviceError,
        "x is in host memory, w in cuda:0",
    ),
    "all CPU": (
        "linear",
        (on("cpu", 5, 7), on("cpu", 7, 9)),
        {},
        DeviceError,
        "x is a CPU torch ten",
    ),
    "CPU bias": (
        "linear",
        (X, W, on("cpu", 9)),
        {},
        DeviceError,
        "bias in host memory; move bias to",
    ),
    "two GPUs": ("linear", (X, on("cuda:1", 7, 9)), {}, DeviceError, "x is in cuda:0, w in cuda:1"),
    "out on CPU": ("linear", (X, W), {"out": on("cpu", 5, 9)}, DeviceError, "out in host memory"),
    # options
    "layout": ("linear", (X, W), {"layout": "km"}, OptionError, "layout is 'km'; takes 'kn', 'nk'"),
    "layout list": (
        "linear",
        (X, W),
        {"layout": ["kn"]},
        OptionError,
        r"layout is \['kn'\]; takes",
    ),
    "tier": (
        "linear",
        (X, W),
        {"tier": "fast"},
        OptionError,
        "tier is 'fast'; takes 'auto', 'simt'",
    ),
    "tier list": ("linear", (X, W), {"tier": []}, OptionError, r"tier is \[\]; takes 'auto'"),
    "tc": (
        "linear",
        (X, W),
        {"tier": "tc"},
        DtypeError,
        "x has dtype float32; takes bfloat16 or fl",
    ),
    "result": (
        "linear",
        (X, W),
        {"out_dtype": "bfloat16"},
        DtypeError,
        "out_dtype is 'bfloat16'; takes 'flo",
    ),
    "result-kind": (
        "linear",
        (X, W),
        {"out_dtype": 3},
        DtypeError,
        "out_dtype is 3; takes 'float32', ",
    ),
    "activation": (
        "linear",
        (X, W),
        {"activation": "tanh"},
        OptionError,
        "activation is 'tanh'; takes None, 'none', 'relu'",
    ),
    "accumulate": (
        "linear_wgrad",
        (X, a(5, 9)),
        {"accumulate": True},
        OptionError,
        "accumulate=True adds to out",
    ),
    "stream": ("linear", (X, W), {"stream": "main"}, OptionError, "stream is 'main'; takes"),
}


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_is_refused_before_anything_happens(gpus, torch, case, warm):
    op, operands, options, error, message = REFUSALS[case]
    if warm:  # the hot path has been there before
        for _ in range(3):
            ptxgen.linear(X(torch), W(torch), out=a(5, 9)(torch), layout="kn")
    arguments = [o(torch) for o in operands]
    options = {n: v(torch) if callable(v) else v for n, v in options.items()}
    if op.startswith("linear"):
        options = {"layout": "kn", **options}
    out = options.get("out")
    before = None if out is None else out.array.tobytes()
    counts = [len(g.launches()) for g in gpus]
    with pytest.raises(error, match=message):
        getattr(ptxgen, op)(*arguments, **options)
    assert [len(g.launches()) for g in gpus] == counts
    assert out is None or out.array.tobytes() == before


@pytest.mark.parametrize("hot", [False, True], ids=["first call", "prepared"])
def test_overlap_of_out_and_operands_is_refused(gpu, torch, hot):
    memory = np.arange(1000, dtype=F4)
    x, w = torch.Tensor(memory[:35].reshape(5, 7)), torch.Tensor(memory[100:163].reshape(7, 9))
    bias = torch.Tensor(memory[200:209])

    def out_at(start):
        return torch.Tensor(memory[start : start + 45].reshape(5, 9))

    if hot:
        for _ in range(3):
            ptxgen.linear(x, w, bias, out=out_at(300), layout="kn")
    before = memory.copy()
    for start, name in ((0, "x"), (34, "x"), (56, "w"), (162, "w"), (156, "w"), (208, "bias")):
        with pytest.raises(ShapeError, match=f"out shares memory with {name}"):
            ptxgen.linear(x, w, bias, out=out_at(start), layout="kn")
        assert memory.tobytes() == before.tobytes()
    for start in (36, 209):  # right beside
        ptxgen.linear(x, w, bias, out=out_at(start), layout="kn")


def test_columns_of_one_buffer_do_not_overlap(gpu, torch, careful):
    memory = np.zeros((8, 32), F4)
    memory[:, :8], w = numbers(8, 8), numbers(8, 16)
    x, out = torch.Tensor(memory[:, :8]), torch.Tensor(memory[:, 8:24])
    for _ in range(3):
        ptxgen.linear(x, torch.Tensor(w), out=out, layout="kn")
        same_bits(out.array, reference.linear(x.array, w, layout="kn"))
    assert len(careful) == 3  # the hot path sees extents only and asks


def test_read_only_out_is_refused(gpu):
    out = np.zeros((5, 9), F4)
    out.flags.writeable = False
    with pytest.raises(ShapeError, match="out is read-only"):
        ptxgen.linear(numbers(5, 7), numbers(7, 9), out=out, layout="kn")
    assert not out.any()


def test_without_a_gpu_the_cpu_device_computes():
    code = (
        "import numpy, ptxgen\n"
        "x = numpy.ones((2, 2), 'f4')\n"
        "print(ptxgen.linear(x, x).sum())\n"
        "from ptxgen.runtime import default_device\n"
        "print(default_device())"
    )
    assert bare_python(code) == "8.0\ncpu:0\n"


def test_sources_are_cached_by_all_that_rendering_reads(monkeypatch, tmp_path):
    rendered = []
    real = render.render
    monkeypatch.setattr(render, "render", lambda spec: rendered.append(spec.name) or real(spec))
    monkeypatch.setattr(cache, "default_cache", lambda: cache.Cache(tmp_path / "cache"))
    specs = list(SPECS.values())[:3]
    for _ in range(2):
        for spec in specs:
            assert render.source(spec) == real(spec)
    assert rendered == [spec.name for spec in specs]

    copy = tmp_path / "package"
    shutil.copytree(render.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = render.renderer.__wrapped__(copy)
    assert before == render.renderer.__wrapped__(render.PACKAGE)
    changing = [
        *(copy / "spec").rglob("*.py"),
        *(copy / "numerics").rglob("*.py"),
        *(copy / "templates").rglob("*.j2"),
    ]
    for file in changing:
        text = file.read_text()
        file.write_text(text + " ")
        assert render.renderer.__wrapped__(copy) != before, file.name
        file.write_text(text)
    monkeypatch.setattr(render, "version", lambda package: "0")
    assert render.renderer.__wrapped__(copy) != before


def test_a_failing_launch_names_kernel_and_shape(gpu, torch, monkeypatch):
    def fail(function, grid, block, stream, params, what):
        raise DeviceError(f"launching {function.symbol} for {what} on {gpu} failed")

    monkeypatch.setattr(gpu, "launch", fail)
    with pytest.raises(DeviceError, match=r"launching simt_\w+ for linear M=5 N=9 K=7 on cuda:0"):
        ptxgen.linear(X(torch), W(torch), layout="kn")


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("which", ["x", "w", "bias", "out"])
def test_gradients_are_refused_unless_grad_mode_is_off(gpu, torch, which, warm):
    given = {"x": X(torch), "w": W(torch), "bias": torch.Tensor(numbers(9)), "out": a(5, 9)(torch)}
    given["layout"] = "kn"
    if warm:
        for _ in range(3):
            ptxgen.linear(**given)
    given[which].requires_grad = True
    count = len(gpu.launches())
    with pytest.raises(GradError, match=rf"{which} requires grad.*no_grad.*{which}\.detach"):
        ptxgen.linear(**given)
    assert len(gpu.launches()) == count
    torch.grad_enabled = False
    ptxgen.linear(**given)
    assert len(gpu.launches()) > count


# -- the hot path -----------------------------------------------------------------------


def test_a_known_call_is_not_prepared_again(gpu, torch, careful, monkeypatch):
    x, w, out = numbers(5, 8), numbers(8, 12), np.zeros((5, 12), F4)
    bias = numbers(12)
    expected = reference.linear(x, w, bias, activation="silu", layout="kn")
    call = lambda: ptxgen.linear(  # noqa: E731
        torch.Tensor(put(x)), torch.Parameter(put(w)), torch.Tensor(put(bias[None])[0]),
        activation="silu", out=torch.Tensor(put(out)), layout="kn",
    )  # fmt: skip
    for _ in range(3):
        call()
    warm = len(careful)
    monkeypatch.setattr(launch, "choose", None)  # nobody may ask
    for _ in range(5):
        same_bits(call().array, expected)  # new tensors, other addresses, same key
    assert len(careful) == warm


def test_results_are_allocated_on_the_hot_path(gpu, torch, careful):
    x, w = put(numbers(6, 8)), put(numbers(8, 12))
    results = [ptxgen.linear(torch.Tensor(x), torch.Tensor(w), layout="kn") for _ in range(5)]
    assert len(careful) == 2  # the first call learns the types, the second the problem
    for y in results:
        same_bits(y.array, reference.linear(x, w, layout="kn"))
    assert len({y.data_ptr() for y in results}) == 5


@pytest.mark.parametrize(
    "other", ["shape", "strides", "options", "alignment", "device", "bias", "kernel", "stream"]
)
def test_what_the_launch_depends_on_is_in_the_key(gpus, torch, other):
    x, w = numbers(8, 8), numbers(8, 8)
    for _ in range(3):
        out = torch.Tensor(at((8, 8)))
        ptxgen.linear(torch.Tensor(put(x)), torch.Tensor(put(w)), out=out, layout="kn")
        same_bits(out.array, reference.linear(x, w, layout="kn"))
    options, oracle, where, offset = {"layout": "kn"}, {"layout": "kn"}, "cuda:0", 0
    if other == "shape":
        x = numbers(7, 8)
    if other == "options":
        options["layout"] = oracle["layout"] = "nk"
    if other == "bias":
        oracle["bias"] = numbers(8)
        options["bias"] = torch.Tensor(oracle["bias"])
    if other == "kernel":
        options["kernel"] = ROUTES["NN", "chunks", "f32", "simt"][-1].name
    if other == "alignment":
        offset = 4
    if other == "device":
        where = "cuda:1"
    if other == "stream":
        options["stream"] = 1234
    stored = put(x.T).T if other == "strides" else put(x, offset)
    out = torch.Tensor(at((len(x), 8)), where)
    ptxgen.linear(torch.Tensor(stored, where), torch.Tensor(put(w), where), out=out, **options)
    same_bits(out.array, reference.linear(x, w, **oracle))
    symbol, _, _, stream, _, _ = gpus[other == "device"].launches()[-1]
    assert SPECS[symbol].layout == {"options": "NT", "strides": "TN"}.get(other, "NN")
    assert stream == {"stream": 1234, "device": torch.raw_stream + 1}.get(other, torch.raw_stream)
    if other == "kernel":
        assert symbol == options["kernel"]


def test_hot_calls_go_to_the_current_stream(gpu, torch):
    for stream in (77, 77, 77, 88, 99):
        torch.raw_stream = stream
        ptxgen.linear(X(torch), W(torch), out=a(5, 9)(torch), layout="kn")
        assert gpu.launches()[-1][3] == stream
    ptxgen.linear(X(torch), W(torch), out=a(5, 9)(torch), stream=5, layout="kn")
    assert gpu.launches()[-1][3] == 5


def test_swapped_operands_stay_swapped(gpu, torch, careful):
    x, dy = numbers(8, 4), numbers(8, 12)
    for _ in range(4):
        dw = ptxgen.linear_wgrad(torch.Tensor(put(x)), torch.Tensor(put(dy)), layout="nk")
        same_bits(dw.array, reference.linear_wgrad(x, dy, layout="nk"))
    assert len(careful) == 2


def test_parameters_without_grad_mode_are_hot(gpu, torch, careful):
    w = torch.Parameter(put(numbers(8, 12)))
    w.requires_grad = True
    torch.grad_enabled = False
    for _ in range(5):
        ptxgen.linear(torch.Tensor(put(numbers(5, 8))), w, layout="kn")
    assert len(careful) == 2
    torch.grad_enabled = True
    with pytest.raises(GradError):
        ptxgen.linear(torch.Tensor(put(numbers(5, 8))), w, layout="kn")


def test_subclasses_take_the_careful_way(gpu, torch, careful):
    class Mine(torch.Tensor):
        pass

    for _ in range(3):
        ptxgen.linear(Mine(put(numbers(5, 8))), torch.Tensor(put(numbers(8, 12))), layout="kn")
    assert len(careful) == 3


def test_memos_are_bounded(gpu, torch, monkeypatch):
    monkeypatch.setattr(launch, "ENTRIES_MAX", 4)
    memo = ptxgen.linear.__globals__["_find"].__self__
    for m in range(1, 20):
        for _ in range(3):
            x, w = numbers(m, 8), numbers(8, 4)
            same_bits(
                ptxgen.linear(torch.Tensor(put(x)), torch.Tensor(put(w)), layout="kn").array,
                reference.linear(x, w, layout="kn"),
            )
            assert len(memo) <= 4
            assert len(gpu.prepared) <= 4


def test_threads(gpu, torch):
    failures = []

    def work(seed):
        try:
            for i in range(60):
                x, w = numbers(1 + i % 5, 8, seed=seed), numbers(8, 4, seed=seed)
                y = ptxgen.linear(torch.Tensor(put(x)), torch.Tensor(put(w)), layout="kn")
                same_bits(y.array, reference.linear(x, w, layout="kn"), seed=seed)
        except BaseException as error:  # anything, to be told outside
            failures.append(error)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_dlpack_and_cuda_array_interface_operands(gpu):
    class Cai:
        def __init__(self, array):
            self.array = array
            self.__cuda_array_interface__ = {
                "version": 3, "shape": array.shape, "strides": array.strides,
                "typestr": "<f4", "data": (array.ctypes.data, False),
            }  # fmt: skip

    x, w = put(numbers(5, 7)), put(numbers(9, 7)).T
    result = ptxgen.linear(Cai(x), Cai(w), layout="kn")
    assert type(result) is arrays.DeviceArray
    got = np.frombuffer((ctypes.c_float * 45).from_address(result.ptr), F4).reshape(5, 9)
    same_bits(got, reference.linear(x, w, layout="kn"))
    with pytest.raises(ShapeError, match=r"x has negative strides \[-7, 1\]; pass a contiguous"):
        ptxgen.linear(Cai(x[::-1]), Cai(w), layout="kn")
