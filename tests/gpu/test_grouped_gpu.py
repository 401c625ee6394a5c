"""Products of groups, and the way to experts, on a real GPU."""

from __future__ import annotations

import functools

import pytest

import ptxgen
from ptxgen import reference
from ptxgen.ops import OPERATIONS
from ptxgen.oracle import counting_sort
from ptxgen.tiles import TABLES

torch = pytest.importorskip("torch")
pt = pytest.importorskip("ptxgen.torch")
pytestmark = pytest.mark.gpu

NAMES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
ROUTES = {
    route.name: (key, dtype)
    for key, table in TABLES.items()
    if key[0] == "grouped"
    for dtype in table.dtypes
    for route in (each.of(dtype) for each in table.routes)
}
PROBLEMS = [
    (300, 264, 264, (0, 1, 1, 140, 290)),
    (37, 72, 136, (37, 37)),
    (200, 520, 72, (66, 60, 199)),
    (900, 2008, 72, (66, 60, 700)),
]
"""Rows, columns, depth, and ends: of empty groups, of none, some that do not ascend, and of more
tiles than CTAs that run at a time."""


def spans(ends):
    begin = 0
    for group, end in enumerate(ends):
        yield group, slice(begin, max(begin, end))
        begin = max(begin, end)


@functools.cache
def drawn(shape, dtype, seed):
    torch.manual_seed(seed)
    return torch.randn(shape, device="cuda").to(NAMES[dtype])


@pytest.mark.parametrize("name", sorted(ROUTES))
def test_every_route_has_the_bits_of_linear(name):
    (_, layout, over, *_), dtype = ROUTES[name]
    for m, n, k, ends in PROBLEMS:
        x, offsets = drawn((m, k), dtype, 0), torch.tensor(ends, dtype=torch.int32, device="cuda")
        if over == "sums":
            dy, out = drawn((m, n), dtype, 1), torch.full((len(ends), k, n), torch.nan).cuda()
            ptxgen.grouped_linear_wgrad(x, dy, offsets, out=out, kernel=name, layout="kn")
            for g, rows in spans(ends):
                one = ptxgen.linear_wgrad(x[rows], dy[rows], chain=True, layout="kn")
                assert torch.equal(out[g], one), (name, m, n, k, g)
            continue
        how = "nk" if layout[1] == "T" else "kn"
        w = drawn((len(ends), n, k) if how == "nk" else (len(ends), k, n), dtype, 1)
        bias, out = (
            drawn((len(ends), n), dtype, 2),
            torch.full_like(drawn((m, n), dtype, 3), torch.nan),
        )
        of = {"layout": how, "activation": "silu"}
        ptxgen.grouped_linear(x, w, offsets, bias, **of, out=out, kernel=name)
        for g, rows in spans(ends):
            one = ptxgen.linear(x[rows], w[g], bias[g], **of)
            assert torch.equal(out[rows], one), (name, m, n, k, g)
        assert not out[max(ends) :].any()


def test_a_graph_serves_other_loads_and_nothing_waits():
    x, w = drawn((64, 128), "bf16", 0), drawn((4, 96, 128), "bf16", 1)
    offsets = torch.tensor([3, 3, 40, 64], dtype=torch.int32, device="cuda")
    with pt.batch_invariant():
        call = functools.partial(torch._grouped_mm, x, w.transpose(1, 2), offs=offsets)
        call()
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            call()
        finally:
            torch.cuda.set_sync_debug_mode("default")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = call()
    ends = (10, 20, 20, 50)
    offsets.copy_(torch.tensor(ends, dtype=torch.int32))
    y.fill_(torch.nan)
    graph.replay()
    for g, rows in spans(ends):
        assert torch.equal(y[rows], ptxgen.linear(x[rows], w[g], layout="nk"))
    assert not y[50:].any()


@pytest.mark.parametrize("count", [1, 5, 4096, 4097, 70000])
def test_vectors_of_integers(count):
    torch.manual_seed(count)
    x = torch.randint(-3, 200, (count,))
    for dtype in (torch.int32, torch.int64):
        given = x.to(dtype)
        found = OPERATIONS["sort_integers"](given.cuda())
        for got, expected in zip(found, counting_sort.sort_integers(given.numpy()), strict=True):
            assert torch.equal(got.cpu(), torch.from_numpy(expected))
        for up_to in (False, True):
            how = {"first": -1, "up_to": up_to}
            got = OPERATIONS["count_integers"](given.cuda(), 100, **how)
            expected = counting_sort.count_integers(given.numpy(), 100, **how)
            assert torch.equal(got.cpu(), torch.from_numpy(expected))
    there = torch.randperm(count)
    assert torch.equal(OPERATIONS["placed"](there.cuda()).cpu(), there.argsort())
    rows = torch.arange(2 * count).reshape(1, count, 2)
    got = OPERATIONS["put_rows"](torch.zeros_like(rows).cuda(), there.cuda(), rows.cuda())
    assert torch.equal(got.cpu(), rows[:, there.argsort()])


@pytest.mark.parametrize("tokens", [1, 40, 512, 700])
@pytest.mark.parametrize("plain", [False, True])
def test_a_mixture_has_the_bits_of_the_oracle(tokens, plain):
    torch.manual_seed(tokens)
    x, logits = torch.randn(tokens, 64), torch.randn(tokens, 128)
    w, bias = torch.randn(128, 64, 64) / 8, torch.rand(128)
    how = {"normalize": True, "scale": 2.5}
    if not plain:
        how |= {"scoring": "sigmoid", "groups": 8, "top_groups": 4}
    results = []
    for of, given in (
        (ptxgen, [v.cuda() for v in (x, logits, w, bias)]),
        (reference, [v.numpy() for v in (x, logits, w, bias)]),
    ):
        x_, logits_, w_, bias_ = given
        weights, experts = of.moe_router(logits_, 8, bias=None if plain else bias_, **how)
        rows, places, offsets = of.moe_dispatch(x_, experts, 128)
        y = of.moe_combine(of.grouped_linear(rows, w_, offsets, layout="kn"), places, weights)
        results.append([weights, experts, rows, places, offsets, y])
    for got, expected in zip(*results, strict=True):
        assert torch.equal(got.cpu(), torch.from_numpy(expected))
