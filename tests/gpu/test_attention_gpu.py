"""Attention on a GPU: the oracle's bits, by every kernel, into memory that holds something else."""

from __future__ import annotations

import numpy as np
import pytest
from attention_cases import (
    BF16,
    FEATURES,
    HEADS,
    SHAPES,
    asked,
    cluster,
    draw,
    few_keys,
    in_pages,
    ints,
    mask_of,
    numbers,
    serves,
)
from attention_draws import SEED, combinations, drawn, kernels
from bits import same_bits
from gpu_arrays import from_host, to_host

import ptxgen
from ptxgen import reference
from ptxgen.build.compile import Job, compile_many
from ptxgen.build.render import render
from ptxgen.runtime import get_device
from ptxgen.spec.attention import PAGES, Form, PagedSpec
from ptxgen.spec.attention_grad import THREE_MAX
from ptxgen.tiles import TABLES
from ptxgen.tiles.attention_grad import THREE

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu


KEYS = 2300, 1000, 120
"""More than a split has, no more, and as few as a CTA has at once."""


def on_gpu(x):
    """A tensor with the bits of a NumPy array; other things as they are."""
    return from_host(torch, x).cuda() if isinstance(x, np.ndarray) else x


def check(*arrays, kernel=None, **how):
    given = {name: on_gpu(x) for name, x in how.items()}
    expected = reference.attention(*arrays, return_lse=True, **how)
    out = tuple(torch.full_like(on_gpu(x), torch.nan) for x in expected)
    moved = [on_gpu(x) for x in arrays]
    ptxgen.attention(*moved, return_lse=True, out=out, kernel=kernel, **given)
    for x, y in zip(out, expected, strict=True):
        same_bits(to_host(torch, x), y, what=str(sorted(how)))


@pytest.mark.parametrize("dtype", [BF16, np.float16, np.float32])
@pytest.mark.parametrize(("head", "head_v"), HEADS)
def test_head_dimensions(dtype, head, head_v):
    shapes = (2, 4, 130, head), (2, 2, 1500, head), (2, 2, 1500, head_v)
    check(*draw(head, *shapes, dtype=dtype), causal=True)


@pytest.mark.parametrize("what", FEATURES)
def test_features(what):
    """Each feature has the oracle's bits, by the chosen kernel and by those for other numbers of
    keys.
    """
    arrays, how = draw(1, *SHAPES), FEATURES[what]
    heads = SHAPES[0][-1], SHAPES[2][-1]
    for kernel in (None, few_keys("bf16", *heads, 16, **how), cluster("bf16", *heads, **how)):
        check(*arrays, kernel=kernel, **how)


ALLOCATION = 32 << 20
"""Bytes of an allocation that PyTorch divides among no others."""
ALL = kernels() + kernels(backward=True)


def at_the_end(x):
    """Returns a tensor with a NumPy array's bits at the very end of an allocation, so that reading
    on faults; NaN lies before it. Returns anything else unchanged.
    """
    if not isinstance(x, np.ndarray):
        return x
    tensor = from_host(torch, x)
    room = torch.full((ALLOCATION,), 0xFF, dtype=torch.uint8, device="cuda")
    begin = ALLOCATION - x.nbytes
    room[begin:] = tensor.reshape(-1).view(torch.uint8).cuda()
    return room[begin:].view(tensor.dtype).view(x.shape)


@pytest.fixture(scope="module")
def _compiled():
    """All kernels of the calls with options, compiled beside each other."""
    arch = get_device("cuda").arch
    specs = {spec.name: spec for kernel in ALL for spec in kernel.route.kernels}
    compile_many([Job(render(spec), name, arch) for name, spec in specs.items()])


@pytest.mark.usefixtures("_compiled")
@pytest.mark.parametrize("kernel", ALL, ids=str)
def test_every_option(kernel):
    """Each option, and random combinations, have the oracle's bits for 1 to 17 queries."""
    function = ptxgen.attention_grad if kernel.backward else ptxgen.attention

    def on_device(*given, **how):
        moved = {name: at_the_end(x) for name, x in how.items()}
        found = function(*map(at_the_end, given), **moved)
        return [to_host(torch, x) for x in found]

    for n, (queries, names) in enumerate(combinations(kernel, SEED, 2)):
        drawn(kernel, n, queries, names).check(on_device, kernel)


@pytest.mark.parametrize("table", ["half", "f32"])
def test_every_route(table):
    dtype, form = (np.float32, "f32") if table == "f32" else (BF16, "bf16")
    for head in (64, 128):
        shapes = (1, 6, 70, head), (1, 2, 2300, head), (1, 2, 2300, head)
        arrays = draw(head, *shapes, dtype=dtype)
        for route in TABLES["attention", table].routes:
            kernel, (q, k, v) = route.of(Form(form, head, head)).name, arrays
            how = {"causal": True, "sinks": numbers(6)}
            if isinstance(route.main, PagedSpec):
                k, v, how["block_table"] = in_pages(k, v, 128)
                how["lengths"] = ints(2300)
            else:  # as many as it takes
                maps = int(route.main.mapped)
                keys = next(n for n in KEYS if serves(route, 210, 2, n, head, head, maps=maps))
                k, v = k[:, :, :keys], v[:, :, :keys]
                if maps:
                    how["mask"] = mask_of(1, 6, 70, keys)
            check(q, k, v, kernel=kernel, **how)


@pytest.mark.parametrize(("head", "head_v"), [(64, 64), (128, 128), (192, 128), (256, 256)])
@pytest.mark.parametrize("group", [1, 7])
def test_ctas_that_walk_over_many_tiles(head, head_v, group):
    """More tiles of 128 rows than a GPU has SMs, with several splits."""
    heads = 9 if group == 1 else 6  # all kernels have room for sums of splits
    keys = ((2, heads, 1200, n) for n in (head, head_v))
    arrays = draw(5, (2, heads * group, 1200, head), *keys)
    given = [on_gpu(x) for x in arrays]
    given[2][1, :, 1100:] = torch.nan
    lengths = on_gpu(ints(1200, 1100))
    how = {"causal": True, "lengths": lengths, "return_lse": True}
    # What causal says as well, for each of both sequences.
    seen = torch.ones(2, 1, 1200, 1200, dtype=torch.bool, device="cuda").tril()
    seen[1] = seen[1].tril(-100)
    *caches, table = map(on_gpu, in_pages(*(to_host(torch, x) for x in given[1:]), 64))
    found = {}
    for route in TABLES["attention", "half"].routes:
        pages = isinstance(route.main, PagedSpec)
        sizes = 1200 * group, 2 * heads, 1200, head, head_v, 64 * pages
        if not serves(route, *sizes, int(route.main.mapped)):
            continue
        name = route.of(Form("bf16", head, head_v)).name
        keys, more = (caches, {"block_table": table}) if pages else (given[1:], {})
        if route.main.mapped:
            more = {"mask": seen}
        found[name] = ptxgen.attention(given[0], *keys, kernel=name, **how, **more)
    first, *others = found.values()
    assert not any(t.isnan().any() for t in first)
    for name, each in zip(list(found)[1:], others, strict=True):
        assert all(map(torch.equal, each, first)), name


@pytest.mark.parametrize("rows", [1, 3, 16])
@pytest.mark.parametrize("head", [64, 128, 256])
def test_few_rows(rows, head):
    """Few query rows per sequence are right on grids below and beyond one CTA per SM."""
    for sequences, keys in ((1, 5000), (40, 2100)):
        q, k, v = draw(7, (sequences, rows, 1, head), *((sequences, 1, keys, head),) * 2)
        check(q, k, v, lengths=ints(*range(keys - sequences, keys)), causal=True)


def test_pages_and_packed_queries():
    q, k, v = draw(3, (7, 8, 128), (40, 64, 2, 128), (40, 64, 2, 128))
    table = np.random.default_rng(4).permutation(40)[:36].astype(np.int32).reshape(3, 12)
    counts = {"lengths": ints(700, 3, 0), "cu_seqlens": ints(0, 4, 7, 7)}
    check(q, k, v, block_table=table, causal=True, **counts)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("head", "head_v"), [(64, 64), (128, 128), (192, 128), (256, 256)])
def test_many_rows_of_pages(head, head_v, page):
    """Chunks of prefill: halves of a cache, among pages that hold NaN."""
    q, k, v = draw(page, (900, 8, head), (4, 2, 1300, head), (4, 2, 1300, head_v))
    k, v, table = in_pages(k, v, page)
    counts = {"cu_seqlens": ints(0, 400, 400, 401, 890), "lengths": ints(1290, 30, 700, 489)}
    check(q, k, v, block_table=table, causal=True, **counts)
    check(q, k, v, block_table=table, window=100, sinks=numbers(8), **counts)


@pytest.mark.parametrize("dtype", [BF16, np.float16, np.float32])
@pytest.mark.parametrize(("head", "head_v"), HEADS)
def test_gradients(dtype, head, head_v):
    shapes = (2, 4, 130, head), (2, 2, 300, head), (2, 2, 300, head_v), (2, 4, 130, head_v)
    q, k, v, do = draw(head, *shapes, dtype=dtype)
    for how in ({"causal": True}, {"window": 60, "lengths": ints(290, 7), "starts": ints(3, 20)}):
        given = do, q, k, v, *reference.attention(q, k, v, return_lse=True, **how)
        expected = reference.attention_grad(*given, **how)
        on = {name: on_gpu(x) for name, x in how.items()}
        found = ptxgen.attention_grad(*map(on_gpu, given), **on)
        for x, y in zip(found, expected, strict=True):
            same_bits(to_host(torch, x), y, what=f"{head} {sorted(how)}")


@pytest.mark.parametrize("group", [1, 3, 7, 8])
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("head", [64, 128])
def test_gradients_by_every_kernel(head, layout, group):
    rows, keys = (2, 2 * group, 150, head), (2, 2, 190, head)
    q, k, v, do = draw(9, rows, keys, keys, rows)
    if layout == "bshd":
        q, k, v, do = (np.ascontiguousarray(x.swapaxes(1, 2)) for x in (q, k, v, do))
    how = {"causal": True, "lengths": ints(190, 130), "layout": layout}
    given = do, q, k, v, *reference.attention(q, k, v, return_lse=True, **how)
    expected = reference.attention_grad(*given, **how)
    on = {name: on_gpu(x) for name, x in how.items()}
    # What causal says as well, for each of both sequences.
    seen = torch.ones(2, 1, 150, 190, dtype=torch.bool, device="cuda").tril(40)
    seen[1] = seen[1].tril(-20)
    for part in ("dkdv", "dq"):
        for route in TABLES["attention_grad", part, "half"].routes:
            spec = route.of(Form("bf16", head, head)).main
            if head > THREE_MAX and spec.warps == THREE["warps"]:
                continue
            kernel, more = asked(spec), {"mask": seen} if spec.mapped else {}
            found = ptxgen.attention_grad(*map(on_gpu, given), kernel=kernel, **on, **more)
            for x, y in zip(found, expected, strict=True):
                same_bits(to_host(torch, x), y, spec=kernel)


def test_gradients_are_the_same_in_any_batch_and_again():
    kinds = {"dtype": torch.bfloat16, "device": "cuda"}
    torch.manual_seed(2)
    q, do = (torch.randn(3, 8, 1500, 128, **kinds) for _ in range(2))
    k, v = (torch.randn(3, 2, 1500, 128, **kinds) for _ in range(2))

    def gradients(i):
        o, lse = ptxgen.attention(q[i], k[i], v[i], causal=True, return_lse=True)
        return ptxgen.attention_grad(do[i], q[i], k[i], v[i], o, lse, causal=True)

    whole = gradients(slice(None))
    for _ in range(3):
        assert all(map(torch.equal, whole, gradients(slice(None))))
    for i in range(3):
        one = gradients(slice(i, i + 1))
        assert all(torch.equal(x, y[i : i + 1]) for x, y in zip(one, whole, strict=True))


@pytest.mark.parametrize("length", [4096, 20000])
def test_decoding_is_prefill(length):
    """Bits of single queries, against growing caches, are those of the whole; no oracle."""
    kinds = {"dtype": torch.bfloat16, "device": "cuda"}
    torch.manual_seed(1)
    q = torch.randn(1, 8, length, 128, **kinds)
    k, v = (torch.randn(1, 2, length, 128, **kinds) for _ in range(2))
    whole = ptxgen.attention(q, k, v, causal=True)
    rng = np.random.default_rng(length)
    for n in (1, 127, 128, 129, 1024, 1025, length, *rng.integers(1, length, 40).tolist()):
        one = ptxgen.attention(q[:, :, n - 1 : n], k[:, :, :n], v[:, :, :n], causal=True)
        assert torch.equal(one, whole[:, :, n - 1 : n]), n
    for begin, end in ((0, 777), (777, 3000), (3000, length)):
        chunk = q[:, :, begin:end], k[:, :, :end], v[:, :, :end]
        assert torch.equal(ptxgen.attention(*chunk, causal=True), whole[:, :, begin:end])


@pytest.mark.parametrize("sharp", [1, 8])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_accuracy_is_that_of_flash_attention(dtype, sharp):
    """Errors to f64 (root mean square) of results and gradients, on the same inputs; 2 % are left
    to chance. ``sharp``: what logits are multiplied by.
    """
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    torch.manual_seed(3)
    kinds = {"dtype": getattr(torch, dtype), "device": "cuda"}
    q, k, v, do = (torch.randn(2, 8, 1200, 64, **kinds) for _ in range(4))
    how = {"is_causal": True, "scale": sharp / 8}

    def errors(make, exact):
        given = [x.detach().requires_grad_() for x in (q, k, v)]
        with torch.enable_grad():
            o = make(*given)
            found = o, *torch.autograd.grad(o, given, do)
        return [
            (x.double() - y).square().mean().sqrt().item()
            for x, y in zip(found, exact, strict=True)
        ]

    wide = [x.double().requires_grad_() for x in (q, k, v)]
    with sdpa_kernel(SDPBackend.MATH):
        o = scaled_dot_product_attention(*wide, **how)
        exact = [x.detach() for x in (o, *torch.autograd.grad(o, wide, do.double()))]
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        theirs = errors(lambda *x: scaled_dot_product_attention(*x, **how), exact)
    from ptxgen.torch import attention

    ours = errors(lambda *x: attention(*x, causal=True, scale=sharp / 8), exact)
    ratios = [x / y for x, y in zip(ours, theirs, strict=True)]
    assert max(ratios) <= 1.02, ratios
