"""The bits that the GPU returns: of every kernel, at every edge, whatever the route."""

from __future__ import annotations

import functools
import itertools
from functools import partial

import numpy as np
import pytest
from bits import KINDS, operand, same_bits, sums_and_bound
from gpu_arrays import (
    NAMES,
    Guarded,
    admits,
    chunk_of,
    edge_shapes,
    from_host,
    integers,
    naive,
    operand_on_gpu,
    routes_by_name,
    same_on_gpu,
    to_host,
)

import ptxgen
from ptxgen import reference
from ptxgen.dispatch import choose
from ptxgen.errors import OptionError
from ptxgen.numerics.contract import ACTIVATIONS, CONTRACTS, ITEMSIZE, TENSOR_CORES, TIERS
from ptxgen.ops.explaining import problem_of
from ptxgen.oracle.dot16 import tensor_core
from ptxgen.oracle.gemm import chain16
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

ROUTES_BY_NAME = {
    name: (layout, route)
    for name, (layout, route) in routes_by_name().items()
    # Of f16, copies are those of bf16, and what reads them is tested without.
    if not (route.main.dtype == "f16" and route.kernels[0].prepares)
}
SEED = 20250

NUMBERS = [(dtype, tier) for tier, dtypes in TIERS.items() for dtype in dtypes]
numbers = pytest.mark.parametrize(("dtype", "tier"), NUMBERS)
every_kernel = pytest.mark.parametrize("name", sorted(ROUTES_BY_NAME))


def launched(params):
    """The kernels that a test with these parameters may launch."""
    if "name" in params:
        return {params["name"]}
    wanted = params.get("dtype"), params.get("tier", "tc")
    firsts = {name: route.main for name, (_, route) in ROUTES_BY_NAME.items()}
    return {name for name, spec in firsts.items() if (spec.dtype, spec.tier) == wanted}


@pytest.fixture(scope="module", autouse=True)
def device(request):
    """The GPU, with the kernels of the chosen tests compiled (in parallel, into the cache)."""
    from ptxgen.build.compile import Job, compile_many
    from ptxgen.build.render import render

    found = get_device("cuda")
    arch = architecture(found)
    items = [item for item in request.session.items if item.path == request.path]
    names = set().union(
        *(launched(item.callspec.params) for item in items if hasattr(item, "callspec"))
    )
    routes = [ROUTES_BY_NAME[name][1] for name in sorted(names)]
    routes = [r for r in routes if all(k.runs_on(arch) for k in r.kernels)]
    specs = {k.name: k for r in routes for k in r.kernels}
    compile_many([Job(render(s), s.name, found.arch) for s in specs.values()])
    return found


def cuda(values):
    return from_host(torch, values).cuda()


def torch_type(dtype):
    return getattr(torch, NAMES[dtype])


def beside(dtype, turn):
    """The dtype of a bias or result beside operands of ``dtype``: theirs, or f32 (not of f64)."""
    return "f32" if turn % 2 and dtype != "f64" else dtype


def twin(name):
    """Whether the route is another but for its dtype, or for copies that it reads, and so is tested
    less.
    """
    _, route = ROUTES_BY_NAME[name]
    return route.main.dtype == "f16" or route.kernels[0].prepares


def turn_of(name):
    """Returns the third (0 to 2) of the problems that a twin runs; some twins run each third."""
    return sorted(ROUTES_BY_NAME).index(name) % 3


def activated(turn, dtype, tier):
    """An activation by turns, of a contract that has them."""
    has = CONTRACTS[tier][dtype].activations
    return ACTIVATIONS[turn % len(ACTIVATIONS)] if has else "none"


@functools.lru_cache(maxsize=128)
def case(m, n, k, kind, dtype="f32"):
    """Operands of a product, on the host; bias and old result in their dtype and in f32."""
    rng = np.random.default_rng([SEED, m, n, k, KINDS.index(kind)])
    x, w = operand(rng, (m, k), kind, dtype), operand(rng, (k, n), kind, dtype)
    both = dict.fromkeys((dtype, beside(dtype, 1)))
    biases = {one: operand(rng, (n,), kind, one) for one in both}
    return x, w, biases, {one: operand(rng, (m, n), kind, one) for one in both}


@functools.lru_cache(maxsize=512)
def oracle(m, n, k, kind, activation, bias, dtype, tier, out, arch):
    """``bias``: its dtype, or None."""
    x, w, biases, _ = case(m, n, k, kind, dtype)
    return reference.linear(
        x,
        w,
        biases[bias] if bias else None,
        activation=activation,
        tier=tier,
        out_dtype=NAMES[out],
        arch=arch,
        layout="kn",
    )


@functools.lru_cache(maxsize=128)
def oracle_wgrad(m, n, k, kind, dtype, tier, out, arch):
    """Product dimensions: [m, n], summed over k."""
    x, dy, _, olds = case(m, n, k, kind, dtype)
    how = {"tier": tier, "out_dtype": NAMES[out], "arch": arch, "layout": "kn"}
    return reference.linear_wgrad(np.ascontiguousarray(x.T), dy, out_old=olds[out], **how)


# -- the yardstick ----------------------------------------------------------------------


@numbers
@pytest.mark.parametrize("kind", KINDS)
def test_the_plain_kernel_is_the_oracle(kind, dtype, tier, device):
    arch = architecture(device)
    for i, (m, n, k) in enumerate(((1, 1, 1), (3, 70, 33), (37, 41, 130), (5, 7, 0), (3, 4, 2100))):
        x, w, biases, _ = case(m, n, k, kind, dtype)
        out, bias = beside(dtype, i), beside(dtype, i // 2)
        expected = oracle(m, n, k, kind, "none", bias, dtype, tier, out, arch)
        got = naive(
            torch,
            cuda(x),
            cuda(w.T).T,
            chunk_of(k, tier, dtype),
            bias=cuda(biases[bias]),
            tier=tier,
            out_dtype=out,
        )
        what = f"{m, n, k} {kind} {dtype}"
        same_bits(to_host(torch, got), expected, seed=SEED, spec="naive", what=what)


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


def alignments(dtype, turn):
    """16 bytes, and one of the others, in turn."""
    others = {2: (2, 4, 8), 4: (4,), 8: (8,)}[ITEMSIZE[dtype]]
    return 16, others[turn % len(others)]


def forced(run, name, op, m, n, k, align, device):
    """Runs a forced kernel where it is correct; elsewhere checks that it is refused.

    Every kernel serves operands of whole 16 bytes whose reduction is one chunk, so no kernel
    passes its test by refusing everything.
    """
    _, route = ROUTES_BY_NAME[name]
    arch, tier = architecture(device), route.main.tier
    if not all(kernel.runs_on(arch) for kernel in route.kernels):
        pytest.skip(f"{name} does not run on {arch}")
    run = partial(run, kernel=name, tier=tier)
    if admits(route, op, m, n, k, align=align, sms=device.sms):
        run()
        return True
    dtype = route.main.dtype
    assert align < 16 or chunk_of(k, tier, dtype) < k, f"{name} refuses {m, n, k}"
    with pytest.raises(OptionError, match="it requires"):
        run()
    return False


def intact(what, *guards):
    for guard in guards:
        assert guard.intact(), f"{what}: wrote beside an array of shape {list(guard.view.shape)}"


@every_kernel
def test_forced_kernel_equals_the_oracle(name, device):
    layout, route = ROUTES_BY_NAME[name]
    dtype, tier = route.main.dtype, route.main.tier
    for i, ((m, n, k), kind) in enumerate(itertools.product(SMALL, KINDS)):
        if twin(name) and i % 3 != turn_of(name):
            continue
        m = route.main.rows_from(m)
        x, w, biases, _ = case(m, n, k, kind, dtype)
        activation = activated(i + i // 5, dtype, tier)
        for turn, align in enumerate(alignments(dtype, i)):
            bias, kind_out = beside(dtype, i), beside(dtype, i // 2 + turn)
            how = {"dtype": dtype, "align": align}
            a, guard_a = operand_on_gpu(torch, x, turned=layout[0] == "T", **how)
            b, guard_b = operand_on_gpu(torch, w, turned=layout[1] == "T", **how)
            out = Guarded(torch, m, n, dtype=kind_out, pitch=n + 3, offset=i % 3)
            vector = cuda(biases[bias])
            run = partial(
                ptxgen.linear, a, b, vector, layout="kn", activation=activation, out=out.view
            )
            if not forced(run, name, "linear", m, n, k, align, device):
                continue
            what = f"linear {m, n, k} {kind} {activation} align={align} {bias} {kind_out}"
            expected = oracle(
                m, n, k, kind, activation, bias, dtype, tier, kind_out, architecture(device)
            )
            same_bits(to_host(torch, out.view), expected, seed=SEED, spec=name, what=what)
            intact(what, out, guard_a, guard_b)


@every_kernel
def test_forced_kernel_at_the_edges_of_its_tile(name, device):
    layout, route = ROUTES_BY_NAME[name]
    dtype, tier = route.main.dtype, route.main.tier
    for i, (m, n, k) in enumerate(edge_shapes(route.main)):
        if twin(name) and i % 3 != turn_of(name):
            continue
        m = route.main.rows_from(m)
        x, w, biases, _ = case(m, n, k, "normal", dtype)
        for align in alignments(dtype, i):
            how = {"dtype": dtype, "align": align}
            a, guard_a = operand_on_gpu(torch, x, turned=layout[0] == "T", **how)
            b, guard_b = operand_on_gpu(torch, w, turned=layout[1] == "T", **how)
            kind_out = beside(dtype, i // 2)
            out = Guarded(torch, m, n, dtype=kind_out, pitch=n + m % 4)
            some_bias = cuda(biases[beside(dtype, i // 4)]) if m % 2 else None
            run = partial(ptxgen.linear, a, b, some_bias, layout="kn", out=out.view)
            if not forced(run, name, "linear", m, n, k, align, device):
                continue
            what = f"linear {m, n, k} align={align}"
            chunk = chunk_of(k, tier, dtype)
            expected = naive(torch, a, b, chunk, bias=some_bias, tier=tier, out_dtype=kind_out)
            if not same_on_gpu(torch, out.view, expected):
                got, wanted = to_host(torch, out.view), to_host(torch, expected)
                same_bits(got, wanted, seed=SEED, spec=name, what=what)
            assert out.written(), what
            intact(what, out, guard_a, guard_b)


@pytest.mark.parametrize(
    "name", sorted(n for n, (layout, _) in ROUTES_BY_NAME.items() if layout == "TN")
)
def test_forced_kernel_accumulates(name, device):
    _, route = ROUTES_BY_NAME[name]
    dtype, tier = route.main.dtype, route.main.tier
    shapes = [(s, kind) for s in (*SMALL, (70, 41, 0)) for kind in KINDS]
    shapes += [(s, "normal") for s in edge_shapes(route.main)[::3]]
    for i, ((m, n, k), kind) in enumerate(shapes):
        if twin(name) and i % 3 != turn_of(name):
            continue
        x, dy, _, olds = case(m, n, k, kind, dtype)
        for align in alignments(dtype, i):
            # As the batch stores them: [k, m] and [k, n].
            a, guard_a = operand_on_gpu(torch, x.T, dtype=dtype, align=align)
            b, guard_b = operand_on_gpu(torch, dy, dtype=dtype, align=align)
            kind_out = beside(dtype, i + i // 5)
            old = olds[kind_out]
            out = Guarded(torch, m, n, dtype=kind_out, pitch=n + 1, values=old)
            run = partial(ptxgen.linear_wgrad, a, b, layout="kn", out=out.view, accumulate=True)
            if not forced(run, name, "linear_wgrad", m, n, k, align, device):
                continue
            what = f"linear_wgrad {m, n, k} {kind} align={align} {kind_out}"
            if m * n * k < 10**6:
                expected = oracle_wgrad(m, n, k, kind, dtype, tier, kind_out, architecture(device))
            else:
                chunk = chunk_of(k, tier, dtype)
                how = {"out": cuda(old), "accumulate": True, "tier": tier, "out_dtype": kind_out}
                expected = to_host(torch, naive(torch, a.T, b, chunk, **how))
            same_bits(to_host(torch, out.view), expected, seed=SEED, spec=name, what=what)
            intact(what, out, guard_a, guard_b)


# -- every kernel, on millions of hard numbers --------------------------------------------

HARD = {
    "normal": (1 << 12, 1 << 12), "wide": (1 << 12, 1 << 12), "cancelling": (1 << 12, 1 << 12),
    "subnormal": (1 << 12, 1 << 12), "special": (1 << 12, 1 << 12), "long": (1 << 9, 1 << 16),
}  # fmt: skip
"""Distributions: the outputs are square, of this edge; reduction length."""


def hard(kind, dtype, outer, length):
    """A factor [outer, length] on the GPU.

    "wide": factors whose products and partial sums go over many binades. "cancelling": pairs of
    opposite products. "subnormal": rows of small numbers, subnormal ones among them. "special":
    a NaN, an infinity or a huge number here and there, and zeros of both signs.
    """
    x = torch.randn((outer, length), device="cuda", generator=generator())

    def pick(values, shape):
        table = torch.tensor(values, dtype=torch.float32, device="cuda")
        index = torch.randint(len(values), shape, device="cuda", generator=generator())
        return table[index]

    if kind in ("wide", "long"):
        span = 20 if dtype == "bf16" else 6
        x *= pick([2.0**i for i in range(-span, span + 1)], x.shape)
    elif kind == "cancelling":
        x[:, length // 2 :] = x[:, : length // 2] * pick([-1.0, 1.0], (outer, 1))
        x *= pick([1.0, 1.0 + 2.0**-7], x.shape)
    elif kind == "subnormal":
        small = [2.0**-132, 2.0**-126, 2.0**-70, 2.0**-64, 1.0]
        if dtype == "f16":
            small = [2.0**-24, 2.0**-20, 2.0**-14, 2.0**-8, 1.0]
        x *= pick(small, (outer, 1))
        x *= pick([1.0, 2.0**-4], x.shape)
    elif kind == "special":
        largest = 3.3e38 if dtype == "bf16" else 65504.0
        odd = [float("inf"), -float("inf"), float("nan"), largest, -largest]
        rare = torch.rand(x.shape, device="cuda", generator=generator())
        x = torch.where(rare < 0.1 / length, pick(odd, x.shape), x)
        x = torch.where(rare > 0.9, pick([0.0, -0.0], x.shape), x)
    return x.to(torch_type(dtype))


@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("dtype", TIERS["tc"])
def test_tensor_core_kernels_agree_on_millions_of_hard_numbers(dtype, kind, layout, device):
    """wgmma = mma.sync = the contract's plain kernel, on every output, in f32."""
    arch = architecture(device)
    size, length = HARD[kind]
    a, b = hard(kind, dtype, size, length), hard(kind, dtype, size, length).T
    if kind == "cancelling":
        b[length // 2 :] = b[: length // 2]
    chunk = chunk_of(length, "tc")
    expected = naive(torch, a, b, chunk, tier="tc")
    if kind == "special":
        assert expected.isnan().any()
        assert expected.isinf().any()
        assert expected.isfinite().any()
    if kind == "subnormal" and dtype == "bf16":
        tiny = (expected != 0) & (expected.abs() < 2.0**-126)
        assert tiny.float().mean() > 0.05
    x = a.T.contiguous().T if layout[0] == "T" else a.contiguous()
    w = b.T.contiguous().T if layout[1] == "T" else b.contiguous()
    families, out = set(), torch.empty_like(expected)
    for name, (stored, route) in sorted(ROUTES_BY_NAME.items()):
        spec = route.main
        if stored != layout or spec.dtype != dtype or spec.tier != "tc":
            continue
        runs = all(kernel.runs_on(arch) for kernel in route.kernels)
        if not runs or not admits(route, "matmul", size, size, length, align=16, sms=device.sms):
            continue
        out.fill_(float("nan") if kind != "special" else 0.0)
        ptxgen.matmul(x, w, out=out, kernel=name)
        compare(out, expected, f"{name} {kind}")
        families.add(spec.family)
    assert families == ({"mma", "wgmma"} if arch == "sm_90" else {"mma"})
    ours = to_host(torch, expected[:48, :48])
    bits = (to_host(torch, v).view(np.uint16) for v in (a[:48], b[:, :48]))
    sample = chain16(*bits, chunk, dtype, tensor_core(arch))  # cut as the whole is
    same_bits(ours, sample, seed=SEED, spec="naive", what=f"{kind} {dtype}")


@pytest.mark.parametrize(("dtype", "tier"), [n for n in NUMBERS if n[0] != "f64"])
def test_close_to_float64(dtype, tier, device):
    """Sums too long for the oracle: no further from exact ones than the contract's steps allow."""
    m, k, n = 300, 3000, 500
    core = TENSOR_CORES[architecture(device)] if tier == "tc" else None
    for op, (rows, inner, columns) in (("linear", (m, k, n)), ("linear_wgrad", (k, m, n))):
        x = random(rows, inner, dtype=dtype)
        y = random(inner if op == "linear" else rows, columns, dtype=dtype)
        left = x if op == "linear" else x.T
        got = getattr(ptxgen, op)(x, y, layout="kn", tier=tier, out_dtype="float32")
        chunk = chunk_of(left.shape[1], tier, dtype)
        exact, bound = sums_and_bound(torch, left.double(), y.double(), chunk, core)
        assert bool(((got.double() - exact).abs() <= bound).all())
        rounded = getattr(ptxgen, op)(x, y, layout="kn", tier=tier, out_dtype=NAMES[dtype])
        compare(rounded, got.to(torch_type(dtype)), f"{op} rounded once")


# -- chosen kernels, large shapes -------------------------------------------------------

LARGE = (
    (1, 4096, 4096), (2, 4096, 1024), (8, 2048, 512), (16, 4096, 14336), (32, 14336, 4096),
    (64, 4096, 4096), (100, 4097, 1023), (128, 641, 257), (256, 4096, 1024), (1000, 1000, 1000),
    (2048, 768, 512), (2048, 768, 3072), (4096, 1536, 3072), (4099, 1031, 2053), (3000, 1, 5000),
    (5000, 3000, 1), (777, 2500, 7), (20000, 64, 64), (4096, 4096, 4096),
)  # fmt: skip
"""(M, K, N)."""


def random(*shape, dtype="f32"):
    of = torch.float64 if dtype == "f64" else torch.float32
    values = torch.randn(shape, device="cuda", generator=generator(), dtype=of)
    return values.to(torch_type(dtype))


@functools.cache
def generator():
    return torch.Generator("cuda").manual_seed(SEED)


def compare(got, expected, what):
    if not same_on_gpu(torch, got, expected):
        same_bits(to_host(torch, got), to_host(torch, expected), seed=SEED, what=what)


@numbers
@pytest.mark.parametrize(("m", "k", "n"), LARGE)
def test_large_products(m, k, n, dtype, tier):
    if dtype == "f16" and (m + k + n) % 3:
        pytest.skip("as bf16, of which all are tested")
    x, dy = random(m, k, dtype=dtype), random(m, n, dtype=dtype)
    how, plain = {"tier": tier}, {"tier": tier, "out_dtype": dtype}
    summed = {"tier": tier, "out_dtype": beside(dtype, 1)}  # of weight gradients
    for layout in ("kn", "nk"):
        w = random(*((k, n) if layout == "kn" else (n, k)), dtype=dtype)
        matrix = w if layout == "kn" else w.T
        expected = naive(torch, x, matrix, chunk_of(k, tier, dtype), **plain)
        got = ptxgen.linear(x, w, layout=layout, **how)
        compare(got, expected, f"linear {m, n, k} {layout}")
        expected = naive(torch, dy, matrix.T, chunk_of(n, tier, dtype), **plain)
        got = ptxgen.linear_dgrad(dy, w, layout=layout, **how)
        compare(got, expected, f"linear_dgrad {m, n, k} {layout}")
    expected = naive(torch, x.T, dy, chunk_of(m, tier, dtype), **summed)
    compare(ptxgen.linear_wgrad(x, dy, layout="kn", **how), expected, f"linear_wgrad {m, n, k} kn")
    # The other layout is another product: A and B swapped, so a plan of its own.
    expected = naive(torch, dy.T, x, chunk_of(m, tier, dtype), **plain)
    got = ptxgen.linear_wgrad(x, dy, layout="nk", out_dtype=NAMES[dtype], **how)
    compare(got, expected, f"linear_wgrad {m, n, k} nk")


@numbers
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1000, 900), (37, 2049, 300), (515, 300, 1029)])
def test_products_of_all_storages(m, k, n, transpose_a, transpose_b, dtype, tier):
    a = random(*((k, m) if transpose_a else (m, k)), dtype=dtype)
    b = random(*((n, k) if transpose_b else (k, n)), dtype=dtype)
    left, right = a.T if transpose_a else a, b.T if transpose_b else b
    chunk = chunk_of(k, tier, dtype)
    expected = naive(torch, left, right, chunk, tier=tier, out_dtype=dtype)
    options = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    got = ptxgen.matmul(a, b, tier=tier, **options)
    compare(got, expected, f"matmul {m, n, k} {options}")
    got = ptxgen.matmul(left, right, tier=tier)
    compare(got, expected, f"matmul of views {m, n, k} {options}")


@pytest.mark.xdist_group("tens of GiB")  # which a GPU has but once
@pytest.mark.parametrize(("dtype", "tier"), [n for n in NUMBERS if n[0] != "f16"])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(8, 65537, 70000), (1_100_000, 2048, 8), (65537, 3, 33000)]
)
def test_more_than_two_to_the_31_elements(m, k, n, dtype, tier):
    elements = m * k + k * n + 2 * m * n
    needed = max(9, 2 * ITEMSIZE[dtype] + 1) * elements
    if torch.cuda.mem_get_info()[0] < needed:
        pytest.skip(f"needs {needed >> 30} GiB of free GPU memory")
    x, w = random(m, k, dtype=dtype), random(k, n, dtype=dtype)
    chunk = chunk_of(k, tier, dtype)
    expected = naive(torch, x, w, chunk, tier=tier, out_dtype=dtype)
    assert torch.equal(ptxgen.linear(x, w, tier=tier, layout="kn"), expected)
    del x, w, expected
    torch.cuda.empty_cache()


# -- batch invariance -------------------------------------------------------------------

ROWS_MAX = 4096
WEIGHTS = (
    (64, 64), (127, 131), (1, 1), (7, 1), (1, 129), (257, 641), (641, 257), (1000, 1024),
    (2048, 512), (4096, 1024), (2053, 97), (768, 3072), (3072, 40), (4096, 4096),
)  # fmt: skip
"""Shapes (K, N) of weights."""


def batches(op, layout, k, n, device, dtype, tier):
    """Every M up to 130, samples, and both sides of every border between routes."""

    def route(m, align):
        problem = problem_of(op, (m, n, k), NAMES[dtype], align, {"layout": layout, "tier": tier})
        how = {"arch": architecture(device), "sms": device.sms, "gpu": device.gpu}
        return choose(problem.table, dict(problem.values), dtype=dtype, **how).kernels

    borders = {
        m + d
        for align in (ITEMSIZE[dtype], 16)
        for m in range(2, ROWS_MAX + 1)
        if route(m, align) != route(m - 1, align)
        for d in (-2, -1, 0, 1)
    }
    samples = {131, 191, 192, 193, 255, 256, 257, 500, 511, 512, 513, 1000, 1024, 1537, 2047, 2048,
               2049, 3000, 4095, 4096}  # fmt: skip
    wanted = {*range(1, 131), *samples, *borders}
    return sorted(m for m in wanted if 1 <= m <= ROWS_MAX)


@numbers
@pytest.mark.parametrize("layout", ["kn", "nk"])
@pytest.mark.parametrize("op", ["linear", "linear_dgrad"])
@pytest.mark.parametrize(("k", "n"), WEIGHTS)
def test_rows_do_not_depend_on_the_batch(op, layout, k, n, dtype, tier, device):
    if dtype == "f16" and WEIGHTS.index((k, n)) % 3:
        pytest.skip("as bf16, of which all are tested")
    call = partial(getattr(ptxgen, op), layout=layout, tier=tier)
    inner = k if op == "linear" else n
    x = random(ROWS_MAX, inner, dtype=dtype)
    w = random(*((k, n) if layout == "kn" else (n, k)), dtype=dtype)
    whole = call(x, w)
    matrix = w if layout == "kn" else w.T
    matrix = matrix if op == "linear" else matrix.T
    chunk = chunk_of(inner, tier, dtype)
    compare(whole, naive(torch, x, matrix, chunk, tier=tier, out_dtype=dtype), f"{op} {k, n}")
    rng = np.random.default_rng(SEED)
    bits, wrong = integers(torch, whole), []
    for m in batches(op, layout, k, n, device, dtype, tier):
        start = int(rng.integers(ROWS_MAX - m + 1))
        y = call(x[start : start + m], w)
        if not torch.equal(integers(torch, y), bits[start : start + m]):
            wrong.append((m, start))
    assert not wrong, f"seed {SEED}: rows of {op} {layout} K={k} N={n} differ at (M, first row)"


# -- launches ---------------------------------------------------------------------------

REPEATED = ((1, 4096, 1024), (32, 2048, 512), (300, 333, 77), (1024, 1024, 1024))


@numbers
@pytest.mark.parametrize(("m", "k", "n"), REPEATED)
def test_repeats_streams_and_graphs(m, k, n, dtype, tier):
    x, w, dy = (random(*s, dtype=dtype) for s in ((m, k), (k, n), (m, n)))

    def everything(outs):
        ptxgen.linear(
            x, w, activation=activated(2, dtype, tier), out=outs[0], tier=tier, layout="kn"
        )
        ptxgen.linear_dgrad(dy, w, out=outs[1], tier=tier, layout="kn")
        ptxgen.linear_wgrad(x, dy, out=outs[2], tier=tier, layout="kn")

    def fresh():
        kinds = ((m, n), dtype), ((m, k), dtype), ((k, n), beside(dtype, 1))
        nan = float("nan")
        return [torch.full(s, nan, dtype=torch_type(d), device="cuda") for s, d in kinds]

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


@pytest.mark.parametrize("name", sorted(n for n in ROUTES_BY_NAME if not twin(n)))
def test_every_kernel_in_a_graph_beside_eager_work(name, device):
    layout, route = ROUTES_BY_NAME[name]
    dtype, tier = route.main.dtype, route.main.tier
    m, n, k = route.main.rows_from(70), 72, 96
    op = "linear"
    x, w, *_ = case(m, n, k, "normal", dtype)
    a, _ = operand_on_gpu(torch, x, dtype=dtype, turned=layout[0] == "T")
    b, _ = operand_on_gpu(torch, w, dtype=dtype, turned=layout[1] == "T")
    out = torch.empty(m, n, dtype=torch_type(dtype), device="cuda")
    run = partial(ptxgen.linear, a, b, layout="kn", out=out)
    if not forced(run, name, op, m, n, k, 16, device):
        pytest.skip(f"{name} does not serve {m, n, k}")
    expected = out.clone()
    plain = naive(torch, a, b, chunk_of(k, tier, dtype), tier=tier, out_dtype=dtype)
    compare(expected, plain, name)
    run, graph = partial(run, kernel=name, tier=tier), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    side = torch.cuda.Stream()
    out.fill_(float("nan"))
    torch.cuda.synchronize()
    other = torch.empty_like(out)
    with torch.cuda.stream(side):
        graph.replay()
        for _ in range(5):
            run(out=other, stream=torch.cuda.default_stream())
        graph.replay()
    torch.cuda.synchronize()
    compare(out, expected, f"graph of {name}")
    compare(other, expected, f"{name} beside its graph")
