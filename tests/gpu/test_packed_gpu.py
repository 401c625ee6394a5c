"""Products of 4-bit integers by wgmma on a real GPU: the oracle's bits."""

from __future__ import annotations

import int4_cases
import numpy as np
import pytest
from int4_cases import Case
from test_int4_packed import ROUTES, cases

from ptxgen import int4, reference

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu
every_route = pytest.mark.parametrize("name", sorted(ROUTES))


def placed(values, shift):
    """Rows on the GPU that start ``shift`` bytes from a multiple of 16, and lie apart."""
    rows, width = values.shape
    memory = torch.full((rows, -(-width // 16) * 16 + 32), 0x5A, dtype=torch.uint8, device="cuda")
    memory[:, shift : shift + width] = torch.from_numpy(values).cuda()
    return memory[:, shift : shift + width]


def check(name, case, turn):
    """Runs ``case``, and compares every byte of the result and of what is beside it."""
    given, options = int4_cases.operands(case, *int4_cases.served(name))
    expected = reference.int4_gemm(**given, **options)
    on_gpu = {"a": placed(given["a"], turn % 5), "b": placed(given["b"], 0)}
    for x in ("c", "bias"):
        on_gpu[x] = None if given[x] is None else torch.from_numpy(given[x]).cuda()
    rows, width = expected.shape
    wide = width + (0, 8, 3)[turn % 3]
    kind = torch.from_numpy(expected).dtype
    memory = torch.full((rows + 2, wide), 77, dtype=kind, device="cuda")
    out = memory[1:-1, :width]
    int4.gemm(**on_gpu, **options, out=out, kernel=name)
    assert out.cpu().numpy().tobytes() == expected.tobytes(), case
    assert (memory[0] == 77).all() and (memory[-1] == 77).all()
    assert (memory[1:-1, width:] == 77).all()


@every_route
def test_bits(name):
    spec = ROUTES[name].main
    more = [
        Case(spec.bm * 5 + 3, spec.bn * 9 + 66, 1030, epilogue, "int32", with_c)
        for epilogue, with_c in (("identity", "beside"), ("bias", ""), ("gelu", "beside"))
    ]
    for turn, case in enumerate([*cases(name), *more]):
        check(name, case, turn)


@every_route
def test_calls_share_the_scratch_one_after_the_other(name):
    """A product reads what its own unpacking wrote: in a row, on two streams, and in a graph."""
    dtype, layout = int4_cases.served(name)
    found = []
    for k in (256, 4096, 544):
        given, options = int4_cases.operands(Case(300, 512, k), dtype, layout)
        on_gpu = {
            x: None if v is None else torch.from_numpy(np.ascontiguousarray(v)).cuda()
            for x, v in given.items()
        }
        found.append((on_gpu, options, torch.from_numpy(reference.int4_gemm(**given, **options))))
    outs = [torch.full((300, 256), 77, dtype=torch.uint8, device="cuda") for _ in range(24)]
    streams = [torch.cuda.Stream() for _ in range(2)]
    torch.cuda.synchronize()
    for i, out in enumerate(outs):
        on_gpu, options, _ = found[i % 3]
        with torch.cuda.stream(streams[i % 2]):
            int4.gemm(**on_gpu, **options, out=out, kernel=name)
    torch.cuda.synchronize()
    assert all((out.cpu() == found[i % 3][2]).all() for i, out in enumerate(outs))
    on_gpu, options, expected = found[1]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        int4.gemm(**on_gpu, **options, out=outs[0], kernel=name)
    outs[0].fill_(77)
    graph.replay()
    assert (outs[0].cpu() == expected).all()
