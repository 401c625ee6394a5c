"""Kernels of quantized products written in PTX on a real GPU: the oracle's bits, on every route."""

from __future__ import annotations

import numpy as np
import pytest
from bits import operand, same_bits

from ptxgen import nf4, reference
from ptxgen.errors import OptionError
from ptxgen.tiles import TABLES

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu

SEED = 21
ROUTES = {
    route.name: key
    for key, table in TABLES.items()
    if key[0] == "quantized"
    for route in table.routes
    if route.main.ptx_since
}
SHAPES = [(1, 1, 64), (1, 37, 192), (65, 70, 320), (130, 260, 1152), (3, 8, 4160), (2, 4160, 64)]


@pytest.mark.parametrize("name", sorted(ROUTES))
def test_every_route_has_the_bits_of_the_oracle(name):
    """Every route has the oracle's bits, on numbers of all kinds, into poisoned strided rows."""
    _, layout, *_, accumulate = ROUTES[name]
    served = 0
    for i, (m, n, k) in enumerate(SHAPES):
        kind = ("normal", "cancelling", "wide", "subnormal")[i % 4]
        rng = np.random.default_rng([SEED, m, n, k])
        q = nf4.quantize(operand(rng, (n, k), kind))
        there = nf4.Weight(*(torch.from_numpy(a).cuda() for a in (q.data, q.scales)), n, k)
        x, bias = operand(rng, (m, k if layout == "NT" else n), kind), operand(rng, (n,), kind)
        width = n if layout == "NT" else k
        out = torch.full((m, width + 7), float("nan"), device="cuda")
        given = {"accumulate": accumulate, "out": out[:, 3 : 3 + width], "kernel": name}
        on_gpu, beta = torch.from_numpy(x).cuda(), torch.from_numpy(bias).cuda()
        try:
            if layout == "NT":
                nf4.linear(on_gpu, there, beta, activation="gelu", **given)
                expected = reference.quantized_linear(
                    x, q, bias, activation="gelu", accumulate=accumulate
                )
            else:
                nf4.linear_dgrad(on_gpu, there, **given)
                expected = reference.quantized_linear_dgrad(x, q, accumulate=accumulate)
        except OptionError as error:
            assert "it requires" in str(error)
            continue
        whole = out.cpu().numpy()
        same_bits(whole[:, 3 : 3 + width], expected, seed=SEED, spec=name, what=f"{m} {n} {k}")
        assert np.isnan(whole[:, :3]).all() and np.isnan(whole[:, 3 + width :]).all()
        served += 1
    assert served


def test_rows_have_their_bits_in_every_batch_and_graph():
    torch.manual_seed(0)
    q = nf4.quantize(torch.randn(700, 1024, device="cuda"))
    x, dy = torch.randn(300, 1024, device="cuda"), torch.randn(300, 700, device="cuda")
    for accumulate in "simt", "f64":
        y = nf4.linear(x, q, accumulate=accumulate)
        dx = nf4.linear_dgrad(dy, q, accumulate=accumulate)
        for m in 1, 2, 17, 64, 130:
            assert torch.equal(nf4.linear(x[:m], q, accumulate=accumulate), y[:m])
            assert torch.equal(nf4.linear_dgrad(dy[:m], q, accumulate=accumulate), dx[:m])
        graph, out = torch.cuda.CUDAGraph(), torch.zeros_like(y)
        with torch.cuda.graph(graph):
            nf4.linear(x, q, out=out, accumulate=accumulate)
        graph.replay()
        assert torch.equal(out, y)
