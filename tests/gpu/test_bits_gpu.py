"""The bits that the GPU returns: of every kernel, at every edge, whatever the route."""

from __future__ import annotations

import functools
import itertools
from functools import partial

import numpy as np
import pytest
from bits import KINDS, operand, same_bits
from gpu_arrays import (
    Guarded,
    admits,
    chunk_of,
    edge_shapes,
    first_kernels,
    naive,
    operand_on_gpu,
    same_on_gpu,
)

import ptxgen
from ptxgen import reference
from ptxgen.contract import ACTIVATIONS
from ptxgen.dispatch import choose
from ptxgen.errors import OptionError
from ptxgen.ops.launch import architecture
from ptxgen.runtime import get_device

try:
    import torch
except ImportError:
    torch = None

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch is None, reason="needs PyTorch"),
]

ROUTES_BY_NAME = first_kernels()
SEED = 20250


@pytest.fixture(scope="module", autouse=True)
def device():
    """The GPU, with all kernels compiled (in parallel, into the cache)."""
    from ptxgen.compile import Job, compile_many
    from ptxgen.render import render

    found = get_device("cuda")
    arch = architecture(found)
    routes = [r for _, r in ROUTES_BY_NAME.values() if all(k.runs_on(arch) for k in r.kernels)]
    specs = {k.name: k for r in routes for k in r.kernels}
    compile_many([Job(render(s), s.name, found.arch) for s in specs.values()])
    return found


def cuda(values):
    return torch.from_numpy(np.ascontiguousarray(values)).cuda()


@functools.lru_cache(maxsize=64)
def case(m, n, k, kind):
    """Operands and bias of a product, on the host."""
    rng = np.random.default_rng([SEED, m, n, k, KINDS.index(kind)])
    return operand(rng, (m, k), kind), operand(rng, (k, n), kind), operand(rng, (n,), kind)


@functools.lru_cache(maxsize=256)
def oracle(m, n, k, kind, activation, with_bias):
    x, w, bias = case(m, n, k, kind)
    return reference.linear(x, w, bias if with_bias else None, activation=activation)


@functools.lru_cache(maxsize=64)
def oracle_wgrad(m, n, k, kind):
    """Product dimensions: [m, n], summed over k."""
    x, dy, _ = case(m, n, k, kind)
    old = operand(np.random.default_rng([SEED, m, n]), (m, n), kind)
    return reference.linear_wgrad(np.ascontiguousarray(x.T), dy, out_old=old)


# -- the yardstick ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_plain_kernel_is_the_oracle(kind):
    for m, n, k in ((1, 1, 1), (3, 70, 33), (37, 41, 130), (5, 7, 0), (3, 4, 2100)):
        x, w, bias = case(m, n, k, kind)
        expected = oracle(m, n, k, kind, "none", True)
        got = naive(torch, cuda(x), cuda(w.T).T, chunk_of("linear", m, n, k), bias=cuda(bias))
        same_bits(got.cpu(), expected, seed=SEED, spec="naive", what=f"{m, n, k} {kind}")


# -- every kernel, forced ---------------------------------------------------------------

SMALL = (
    (1, 1, 1),
    (2, 3, 5),
    (17, 33, 65),
    (70, 41, 129),
    (1, 200, 77),
    (130, 1, 40),
    (3, 9, 2100),
)


def forced(run, name, op, m, n, k, aligned, device):
    """Runs a forced kernel where it is correct; elsewhere checks that it is refused."""
    _, route = ROUTES_BY_NAME[name]
    arch = architecture(device)
    if not all(kernel.runs_on(arch) for kernel in route.kernels):
        pytest.skip(f"{name} does not run on {arch}")
    if admits(route, op, m, n, k, aligned=aligned, sms=device.sms):
        run(kernel=name)
        return True
    with pytest.raises(OptionError, match="it requires"):
        run(kernel=name)
    return False


def intact(what, *guards):
    for guard in guards:
        assert guard.intact(), f"{what}: wrote beside an array of shape {list(guard.view.shape)}"


@pytest.mark.parametrize("name", sorted(ROUTES_BY_NAME))
def test_forced_kernel_equals_the_oracle(name, device):
    layout, _ = ROUTES_BY_NAME[name]
    served = 0
    for (i, (m, n, k)), kind, aligned in itertools.product(enumerate(SMALL), KINDS, (True, False)):
        x, w, bias = case(m, n, k, kind)
        activation = ACTIVATIONS[(i + KINDS.index(kind)) % len(ACTIVATIONS)]
        a, guard_a = operand_on_gpu(torch, x, turned=layout[0] == "T", aligned=aligned)
        b, guard_b = operand_on_gpu(torch, w, turned=layout[1] == "T", aligned=aligned)
        out = Guarded(torch, m, n, pitch=n + 3, offset=i % 3)
        run = partial(ptxgen.linear, a, b, cuda(bias), activation=activation, out=out.view)
        if not forced(run, name, "linear", m, n, k, aligned, device):
            continue
        served += 1
        what = f"linear {m, n, k} {kind} {activation} aligned={aligned}"
        expected = oracle(m, n, k, kind, activation, True)
        same_bits(out.view.cpu(), expected, seed=SEED, spec=name, what=what)
        intact(what, out, guard_a, guard_b)
    assert served >= 10


@pytest.mark.parametrize("name", sorted(ROUTES_BY_NAME))
def test_forced_kernel_at_the_edges_of_its_tile(name, device):
    layout, route = ROUTES_BY_NAME[name]
    served = 0
    for (m, n, k), aligned in itertools.product(edge_shapes(route.kernels[0]), (True, False)):
        x, w, bias = case(m, n, k, "normal")
        a, guard_a = operand_on_gpu(torch, x, turned=layout[0] == "T", aligned=aligned)
        b, guard_b = operand_on_gpu(torch, w, turned=layout[1] == "T", aligned=aligned)
        out = Guarded(torch, m, n, pitch=n + m % 4)
        some_bias = cuda(bias) if m % 2 else None
        run = partial(ptxgen.linear, a, b, some_bias, out=out.view)
        if not forced(run, name, "linear", m, n, k, aligned, device):
            continue
        served += 1
        what = f"linear {m, n, k} aligned={aligned}"
        expected = naive(torch, a, b, chunk_of("linear", m, n, k), bias=some_bias)
        if not same_on_gpu(torch, out.view, expected):
            same_bits(out.view.cpu(), expected.cpu(), seed=SEED, spec=name, what=what)
        assert out.written(), what
        intact(what, out, guard_a, guard_b)
    assert served >= 20


@pytest.mark.parametrize(
    "name", sorted(n for n, (layout, _) in ROUTES_BY_NAME.items() if layout == "TN")
)
def test_forced_kernel_accumulates(name, device):
    _, route = ROUTES_BY_NAME[name]
    shapes = [(s, kind) for s in (*SMALL, (70, 41, 0)) for kind in KINDS]
    shapes += [(s, "normal") for s in edge_shapes(route.kernels[0])[::3]]
    served = 0
    for ((m, n, k), kind), aligned in itertools.product(shapes, (True, False)):
        x, dy, _ = case(m, n, k, kind)
        # As the batch stores them: [k, m] and [k, n].
        a, guard_a = operand_on_gpu(torch, x.T, aligned=aligned)
        b, guard_b = operand_on_gpu(torch, dy, aligned=aligned)
        old = operand(np.random.default_rng([SEED, m, n]), (m, n), kind)
        out = Guarded(torch, m, n, pitch=n + 1, values=old)
        run = partial(ptxgen.linear_wgrad, a, b, out=out.view, accumulate=True)
        if not forced(run, name, "linear_wgrad", m, n, k, aligned, device):
            continue
        served += 1
        what = f"linear_wgrad {m, n, k} {kind} aligned={aligned}"
        if m * n * k < 10**6:
            expected = oracle_wgrad(m, n, k, kind)
        else:
            chunk = chunk_of("linear_wgrad", m, n, k)
            expected = naive(torch, a.T, b, chunk, out=cuda(old), accumulate=True).cpu()
        same_bits(out.view.cpu(), expected, seed=SEED, spec=name, what=what)
        intact(what, out, guard_a, guard_b)
    assert served >= 10


# -- chosen kernels, large shapes -------------------------------------------------------

LARGE = (
    (1, 4096, 4096), (2, 4096, 1024), (8, 2048, 512), (16, 4096, 14336), (32, 14336, 4096),
    (64, 4096, 4096), (100, 4097, 1023), (128, 641, 257), (256, 4096, 1024), (1000, 1000, 1000),
    (2048, 768, 512), (2048, 768, 3072), (4096, 1536, 3072), (4099, 1031, 2053), (3000, 1, 5000),
    (5000, 3000, 1), (777, 2500, 7), (20000, 64, 64), (4096, 4096, 4096),
)  # fmt: skip
"""(M, K, N)."""


def random(*shape):
    return torch.randn(shape, device="cuda", generator=generator())


@functools.cache
def generator():
    return torch.Generator("cuda").manual_seed(SEED)


def compare(got, expected, what):
    if not same_on_gpu(torch, got, expected):
        same_bits(got.cpu(), expected.cpu(), seed=SEED, what=what)


@pytest.mark.parametrize(("m", "k", "n"), LARGE)
def test_large_products(m, k, n):
    x, dy = random(m, k), random(m, n)
    for layout in ("kn", "nk"):
        w = random(k, n) if layout == "kn" else random(n, k)
        matrix = w if layout == "kn" else w.T
        expected = naive(torch, x, matrix, chunk_of("linear", m, n, k))
        compare(ptxgen.linear(x, w, layout=layout), expected, f"linear {m, n, k} {layout}")
        expected = naive(torch, dy, matrix.T, chunk_of("linear_dgrad", m, k, n))
        got = ptxgen.linear_dgrad(dy, w, layout=layout)
        compare(got, expected, f"linear_dgrad {m, n, k} {layout}")
    expected = naive(torch, x.T, dy, chunk_of("linear_wgrad", k, n, m))
    compare(ptxgen.linear_wgrad(x, dy), expected, f"linear_wgrad {m, n, k} kn")
    # The other layout is another product: A and B swapped, so a plan of its own.
    expected = naive(torch, dy.T, x, chunk_of("linear_wgrad", n, k, m))
    compare(ptxgen.linear_wgrad(x, dy, layout="nk"), expected, f"linear_wgrad {m, n, k} nk")


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1000, 900), (37, 2049, 300), (515, 300, 1029)])
def test_products_of_all_storages(m, k, n, transpose_a, transpose_b):
    a = random(k, m) if transpose_a else random(m, k)
    b = random(n, k) if transpose_b else random(k, n)
    left, right = a.T if transpose_a else a, b.T if transpose_b else b
    expected = naive(torch, left, right, chunk_of("matmul", m, n, k))
    options = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    compare(ptxgen.matmul(a, b, **options), expected, f"matmul {m, n, k} {options}")
    compare(ptxgen.matmul(left, right), expected, f"matmul of views {m, n, k} {options}")


@pytest.mark.parametrize(
    ("m", "k", "n"), [(8, 65537, 70000), (1_100_000, 2048, 8), (65537, 3, 33000)]
)
def test_more_than_two_to_the_31_elements(m, k, n):
    elements = m * k + k * n + 2 * m * n
    if torch.cuda.mem_get_info()[0] < 5 * elements:
        pytest.skip(f"needs {5 * elements >> 30} GiB of free GPU memory")
    x, w = random(m, k), random(k, n)
    expected = naive(torch, x, w, chunk_of("linear", m, n, k))
    assert torch.equal(ptxgen.linear(x, w), expected)
    del x, w, expected
    torch.cuda.empty_cache()


# -- batch invariance -------------------------------------------------------------------

ROWS_MAX = 4096
WEIGHTS = (
    (64, 64), (127, 131), (1, 1), (7, 1), (1, 129), (257, 641), (641, 257), (1000, 1024),
    (2048, 512), (4096, 1024), (2053, 97), (768, 3072), (3072, 40), (4096, 4096),
)  # fmt: skip
"""(K, N)."""


def batches(op, layout, k, n, device):
    """Every M up to 130, samples, and both sides of every border between routes."""

    def route(m, align):
        chosen = choose(
            op, layout, m, n, k,
            arch=architecture(device), sms=device.sms, align_a=align, align_b=align,
        )  # fmt: skip
        return chosen.kernels

    borders = {
        m + d
        for align in (4, 16)
        for m in range(2, ROWS_MAX + 1)
        if route(m, align) != route(m - 1, align)
        for d in (-2, -1, 0, 1)
    }
    samples = {131, 191, 192, 193, 255, 256, 257, 500, 511, 512, 513, 1000, 1024, 1537, 2047, 2048,
               2049, 3000, 4095, 4096}  # fmt: skip
    wanted = {*range(1, 131), *samples, *borders}
    return sorted(m for m in wanted if 1 <= m <= ROWS_MAX)


@pytest.mark.parametrize("layout", ["kn", "nk"])
@pytest.mark.parametrize("op", ["linear", "linear_dgrad"])
@pytest.mark.parametrize(("k", "n"), WEIGHTS)
def test_rows_do_not_depend_on_the_batch(op, layout, k, n, device):
    call = getattr(ptxgen, op)
    inner, outer = (k, n) if op == "linear" else (n, k)
    x, w = random(ROWS_MAX, inner), random(*((k, n) if layout == "kn" else (n, k)))
    whole = call(x, w, layout=layout)
    matrix = w if (layout == "kn") == (op == "linear") else w.T
    compare(whole, naive(torch, x, matrix, chunk_of(op, 1, outer, inner)), f"{op} {k, n}")
    rng = np.random.default_rng(SEED)
    bits, wrong = whole.view(torch.int32), []
    for m in batches(op, layout, k, n, device):
        start = int(rng.integers(ROWS_MAX - m + 1))
        y = call(x[start : start + m], w, layout=layout)
        if not torch.equal(y.view(torch.int32), bits[start : start + m]):
            wrong.append((m, start))
    assert not wrong, f"seed {SEED}: rows of {op} {layout} K={k} N={n} differ at (M, first row)"


# -- launches ---------------------------------------------------------------------------

REPEATED = ((1, 4096, 1024), (32, 2048, 512), (300, 333, 77), (1024, 1024, 1024))


@pytest.mark.parametrize(("m", "k", "n"), REPEATED)
def test_repeats_streams_and_graphs(m, k, n):
    x, w, dy = random(m, k), random(k, n), random(m, n)

    def everything(outs):
        ptxgen.linear(x, w, activation="gelu", out=outs[0])
        ptxgen.linear_dgrad(dy, w, out=outs[1])
        ptxgen.linear_wgrad(x, dy, out=outs[2])

    def fresh():
        return [torch.full(s, float("nan"), device="cuda") for s in ((m, n), (m, k), (k, n))]

    def check(outs, what):
        for got, wanted in zip(outs, expected, strict=True):
            compare(got, wanted, f"{what} {m, k, n}")

    expected = fresh()
    everything(expected)
    for i in range(100):
        outs = fresh()
        everything(outs)
        check(outs, f"repeat {i}")
    sides = [torch.cuda.Stream() for _ in range(4)]
    torch.cuda.synchronize()
    results = [fresh() for _ in sides]
    torch.cuda.synchronize()
    for side, outs in zip(sides, results, strict=True):
        with torch.cuda.stream(side):
            everything(outs)
    torch.cuda.synchronize()
    for outs in results:
        check(outs, "another stream")
    outs = fresh()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        everything(outs)
    for _ in range(10):
        for out in outs:
            out.fill_(float("nan"))
        graph.replay()
        check(outs, "graph")


@pytest.mark.parametrize("name", sorted(n for n, (_, r) in ROUTES_BY_NAME.items()))
def test_every_kernel_in_a_graph_beside_eager_work(name, device):
    layout, _ = ROUTES_BY_NAME[name]
    m, n, k = 70, 72, 96
    op = "linear"
    x, w, _ = case(m, n, k, "normal")
    a, _ = operand_on_gpu(torch, x, turned=layout[0] == "T")
    b, _ = operand_on_gpu(torch, w, turned=layout[1] == "T")
    out = torch.empty(m, n, device="cuda")
    run = partial(ptxgen.linear, a, b, out=out)
    if not forced(run, name, op, m, n, k, True, device):
        pytest.skip(f"{name} does not serve {m, n, k}")
    expected = out.clone()
    compare(expected, naive(torch, a, b, chunk_of(op, m, n, k)), name)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run(kernel=name)
    side = torch.cuda.Stream()
    out.fill_(float("nan"))
    torch.cuda.synchronize()
    other = torch.empty_like(out)
    with torch.cuda.stream(side):
        graph.replay()
        for _ in range(5):
            ptxgen.linear(a, b, out=other, kernel=name, stream=torch.cuda.default_stream())
        graph.replay()
    torch.cuda.synchronize()
    compare(out, expected, f"graph of {name}")
    compare(other, expected, f"{name} beside its graph")
