"""``ptxgen bench vision``: models by names, drawn ones, rows and their table."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_bench import fake_area

import ptxgen
from ptxgen.bench import vision
from ptxgen.bench.vision import Row

pytestmark = pytest.mark.torch

ROWS = [
    Row("resnet18", block_ms=1.5, stock_ms=2.0, block_host_ms=1.4, stock_host_ms=1.9, served=9),
    Row("odd", 3.0, 2.0, 2.9, 1.9, 4, unknown={"aten.odd.default": 2}, same=False),
]


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def fake(torch: Any) -> Any:
    """A library of small models, in families that have one each."""
    sizes = {f"model{i}": 3 + i for i in range(6)}

    def create_model(name: str, pretrained: bool) -> Any:
        assert not pretrained
        of = torch.nn
        made = of.Sequential(
            of.Conv2d(3, sizes[name], 3), of.BatchNorm2d(sizes[name]), of.Flatten(1)
        )
        made.default_cfg = {"input_size": (3, 5, 5)}
        return made

    return SimpleNamespace(
        create_model=create_model,
        list_modules=lambda: [*sizes, "known"],
        list_models=lambda module: [*vision.MODELS[:1]] if module == "known" else [module],
    )


def test_a_model_is_compared_and_timed(torch: Any) -> None:
    with ptxgen.use_device("cpu"):
        area = fake_area(vision.Vision, "--dtype", "f32", torch=torch)
        area.timm = fake(torch)
        row = area.measured("model1", 1)
    assert (row.model, row.served, row.unknown, row.same) == ("model1", 2, {}, True)
    assert 0 < row.block_host_ms <= row.block_ms and 0 < row.stock_host_ms <= row.stock_ms


def test_models_are_drawn_from_other_families(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    timm = fake(torch)
    found = vision.drawn(timm, torch, 4, seed=1)
    assert len(set(found)) == 4 and set(found) < {f"model{i}" for i in range(6)}
    assert found == vision.drawn(timm, torch, 4, seed=1) != vision.drawn(timm, torch, 4, seed=2)
    monkeypatch.setattr(vision, "LARGEST", 150)  # parameters, which the three smallest have
    assert set(vision.drawn(timm, torch, 9, seed=1)) == {"model0", "model1", "model2"}


def test_rows_are_kept_and_shown(
    tmp_path: Path, torch: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ptxgen.bench import measure, results

    surroundings = results.Environment(*["x"] * len(results.Environment.__dataclass_fields__))
    monkeypatch.setattr(results, "heading", lambda environment: "heading")
    monkeypatch.setattr(measure, "require_torch", lambda: torch)
    monkeypatch.setattr(measure, "warm_up", lambda torch: None)
    monkeypatch.setattr(measure, "limits", lambda torch, tier: None)
    monkeypatch.setattr(measure, "environment", lambda *given: surroundings)
    monkeypatch.setitem(sys.modules, "timm", SimpleNamespace())
    monkeypatch.setattr(vision.Vision, "measured", lambda self, name, turns: rows[name])
    path = tmp_path / "rows.json"
    rows = {row.model: row for row in ROWS}
    assert (
        vision.main(["--models", "resnet18,odd", "--save", str(path)]) == 1
    )  # a row that depends on the batch
    first = capsys.readouterr().out
    assert vision.main(["--rows", str(path)]) == 0
    again = capsys.readouterr().out
    for text in (first, again):
        assert "0.750" in text and "aten.odd.default" in text and "worst 1.500" in text
        assert "geometric mean 1.061" in text
