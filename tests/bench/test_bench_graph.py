"""``ptxgen bench graph``: what needs no GPU, and that the command runs on one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_bench import fake_area

import ptxgen
from ptxgen.bench import as_shipped, graph, model
from ptxgen.bench.graph import Row
from ptxgen.errors import DeviceError, OptionError, PtxgenError

ROWS = [
    Row("decode", "8 x 2048", 4.0, 1.0, 2.0, True, 1_500_000, 1_200_000),
    Row("host", "first result, ptxgen", cold_ms=2000.0, warm_ms=500.0),
]


def test_rows_are_shown() -> None:
    """Columns that no row has are left out."""
    header, decode, host = graph.row_table(ROWS).splitlines()
    for name in ("eager ms", "MB / stock", "graphs"):
        assert name not in header
    shown = ["1.000", "2.000", "0.500", "4.000", "0.250", "True", "1.50", "1.250", "-", "-"]
    assert decode.split()[-10:] == shown
    assert host.split()[-10:] == [*"--------", "2000.000", "500.000"]


def test_recorded_rows_are_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    recorded = sorted(Path(__file__).parents[2].glob("bench/results/graph-*.json"))
    assert recorded
    for path in recorded:
        assert graph.main(["--rows", str(path)]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 3 + len(json.loads(path.read_text()))
    other = tmp_path / "rows.json"
    other.write_text("[]")
    with pytest.raises(PtxgenError, match="holds no rows of `ptxgen bench graph`"):
        graph.main(["--rows", str(other)])


def test_it_says_what_it_takes_and_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        graph.main(["--help"])
    assert "--only LIST" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        graph.main(["--only", "forward,prefill"])
    assert "unknown value 'prefill'; takes forward, training" in capsys.readouterr().err
    with pytest.raises(OptionError, match="streams is 0; takes an integer from 1 to 128"):
        graph.main(["--streams", "0"])
    torch = pytest.importorskip("torch", reason="timing needs torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DeviceError, match="timing needs an NVIDIA GPU"):
        graph.main([])


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """PyTorch on the CPU device; stock ``torch.compile`` compiles nothing."""
    torch = pytest.importorskip("torch", reason="timing needs torch")

    def compiled(function: Any, backend: Any = "eager", mode: Any = None, **how: Any) -> Any:
        return compile(function, backend=backend, **how)

    compile = torch.compile
    monkeypatch.setattr(torch, "compile", compiled)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    with ptxgen.use_device("cpu"):
        yield torch
    torch._dynamo.reset()


SMALL = model.Shape(
    layers=1, hidden=64, heads=2, kv_heads=1, inner=32, vocabulary=40, batch=1, length=6,
    attention="sdpa",
)  # fmt: skip


def area(torch: Any = None, *options: str) -> Any:
    """The parts, of a small model, each once."""
    found = fake_area(graph.Graph, *options, torch=torch)
    found.shape, found.count = SMALL, 1
    return found


@pytest.mark.parametrize(
    "parts", ["small", pytest.param("forward training decode", marks=pytest.mark.long)]
)
def test_models_of_plain_pytorch_run(
    parts: str, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FORWARDS", ((1, 6),)), ("DECODED", (2,)), ("KEYS", 9), ("SMALL", (64,))):
        monkeypatch.setattr(graph, name, value)
    monkeypatch.setattr(graph, "SMALL_KEYS", 7)
    bench = area(torch)
    found = [row for part in parts.split() for row in getattr(bench, part)()]
    assert [row.part for row in found] == parts.split()
    for row in found:
        assert row.same, row.what
        assert row.ours_ms and row.stock_ms and row.block_ms and row.arena
        assert row.least and row.arena <= 1.25 * row.least


def test_a_model_whose_sizes_change_runs(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sets = {"first": (2, 4), "second": (2, 3), "second again": (2, 3)}
    monkeypatch.setattr(graph, "SMALL", (64,))
    monkeypatch.setattr(graph, "SETS", sets)
    found = list(area(torch).sizes())
    assert [(r.what.split(" set")[0], r.same) for r in found] == [(name, True) for name in sets]
    assert all(r.ours_ms and r.stock_ms for r in found)


TINY = {"vocab_size": 32, "hidden_size": 32, "intermediate_size": 32, "head_dim": 16}
TINY |= {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}


@pytest.mark.parametrize("name", ["Llama", pytest.param("Mixtral", marks=pytest.mark.long)])
def test_models_of_transformers_run(
    name: str, torch: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("transformers", reason="needs transformers")
    experts = {"num_local_experts": 2, "num_experts_per_tok": 1} if name == "Mixtral" else {}
    tiny = as_shipped.Model(name, {**TINY, **experts}, steps=((1, 6),), tokens=(2,))
    monkeypatch.setattr(as_shipped, "MODELS", {name: tiny})
    monkeypatch.setattr(as_shipped, "KEYS", 9)
    found = list(area(torch, "--models", name).transformers())
    works = "step 1 x 6", "forward 1 x 6", "token 2 x 9"
    assert [r.what for r in found] == [f"{name}, {work}" for work in works]
    assert all(r.same and r.different == 0 and r.compared for r in found)
    assert found[0].compared == 2 + 12 and found[2].compared == 1
    assert all(r.ours_ms and r.stock_ms and r.block_ms and r.eager_ms for r in found)


def test_models_are_left_out_without_transformers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert list(area().transformers()) == []
    assert "transformers is not installed" in capsys.readouterr().out


def test_the_first_result_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        graph, "_FIRST", "import os; print(len(os.environ['PTXGEN_CACHE_DIR']) > 9)"
    )
    monkeypatch.setattr(graph.json, "loads", lambda text: 7.5 if text == "True" else None)
    monkeypatch.setattr(graph.Graph, "loaded", lambda self: ROWS[0])
    *found, last = area().host()
    assert [(r.cold_ms, r.warm_ms) for r in found] == [(7.5, 7.5)] * 2 and last is ROWS[0]


def test_a_deep_model_is_saved_and_loaded(torch: Any) -> None:
    row = area(torch).loaded(hidden=64, layers=3)
    assert (row.part, row.what, row.same) == ("host", "loaded, 3 layers", True)
    assert row.ours_ms and row.ours_ms > 0


@pytest.mark.gpu
def test_the_command_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="timing needs torch")
    path = tmp_path / "rows.json"
    assert graph.main(["--quick", "--only", "small", "--save", str(path)]) == 0
    rows = json.loads(path.read_text())
    assert len(rows) == len(graph.SMALL) and all(r["same"] for r in rows)
