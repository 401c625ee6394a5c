"""Exported models on a GPU: saved and loaded, and caches that are written where they are."""

from __future__ import annotations

import copy

import pytest

import ptxgen
from ptxgen.errors import DeviceError, ShapeError
from ptxgen.program import replay

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")
test_exported = pytest.importorskip("test_exported")
test_inplace = pytest.importorskip("test_inplace")
same, llama = test_exported.same, test_exported.llama
pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def anew():
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_is_saved_and_loaded(dtype, tmp_path):
    test_exported.test_a_model_is_saved_and_loaded(dtype, tmp_path, "cuda")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_decoding_writes_caches_where_they_are(dtype, tmp_path):
    model = llama(dtype, "cuda", size=256, words=128)
    made = test_exported.decoded(model, tmp_path, "cuda")
    assert sum(s.problem.table == ("counting_sort", "put") for s in made.program.steps) == 4


def test_more_caches_than_graphs_are_kept_for(tmp_path, monkeypatch):
    """With more caches than graphs are kept for, each is written alone, also on another stream."""
    monkeypatch.setattr(replay, "GRAPHS_MAX", 2)
    model = llama(torch.bfloat16, "cuda", layers=1)
    sets = [[model.caches(1) for _ in range(4)] for _ in range(2)]
    ids, places = torch.tensor([[3]], device="cuda"), torch.tensor([0], device="cuda")
    made = pt.export(model, (ids, places, sets[0][0]))
    made.save(tmp_path / "it")
    loaded, stream = ptxgen.load(tmp_path / "it", device="cuda"), torch.cuda.Stream()
    for place, which in enumerate((0, 1, 2, 3, 3, 0, 2, 1)):
        places.fill_(place)
        with pt.batch_invariant():
            expected = model(ids, places, sets[0][which])["logits"]
        torch.cuda.synchronize()
        with torch.cuda.stream(stream if place % 3 else torch.cuda.current_stream()):
            found = loaded(ids, places, *test_exported.flat(sets[1][which]))[0]
        torch.cuda.synchronize()
        assert same(found, expected)
        for own, ours in zip(*sets, strict=True):
            assert all(map(same, test_exported.flat(own), test_exported.flat(ours))), place
    assert len(loaded._runs) == 2


def test_buffers_of_a_model_are_written(tmp_path):
    torch.manual_seed(0)
    model = test_inplace.Cached(indexed=True).cuda().requires_grad_(False)
    expected = copy.deepcopy(model)
    at = torch.tensor([0], device="cuda")
    made = pt.export(model, (torch.randn(1, 1, 16, device="cuda"), at))
    made.save(tmp_path / "it")
    loaded = ptxgen.load(tmp_path / "it", device="cuda")
    for place in range(4):
        x = torch.randn(1, 1, 16, device="cuda")
        at.fill_(place)
        with pt.batch_invariant():
            wanted = expected(x, at)
        assert same(made(x, at), wanted) and same(loaded(x, at), wanted)
        assert same(model.keys, expected.keys) and same(model.values, expected.values)


def test_what_cannot_be_written_where_it_is():
    def function(x, c):
        return ptxgen.functions.add(c, x, out=c)

    x, c = torch.ones(4, 8, device="cuda"), torch.zeros(4, 8, device="cuda")
    made = ptxgen.capture(function, x, c)
    assert made(x, c) is c and torch.equal(c, x)
    wide = torch.zeros(5, 8, device="cuda").flatten()
    for own, says in [
        (torch.zeros(8, 4, device="cuda").T, r"c is written, and has strides \[1, 4\]"),
        (wide[1:33].view(4, 8), "lies 4 bytes behind a multiple of 16"),
        (x, "c is written, and shares memory with x"),
    ]:
        with pytest.raises(ShapeError, match=says):
            made(x, own)
    with pytest.raises(DeviceError):
        made(x, c.cpu())
    with ptxgen.use_device("cuda"):
        host = ptxgen.capture(function, x.cpu().numpy(), c.cpu().numpy())
        with pytest.raises(DeviceError, match="c is written, and in host memory"):
            host(x.cpu().numpy(), c.cpu().numpy())
