"""``ptxgen bench serving``: times between tokens, comparison of request 0, rows of three ways."""

from __future__ import annotations

import json
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest
from test_bench import fake_area

from ptxgen.bench import serving
from ptxgen.errors import OptionError, PtxgenError


class Engine:
    """An engine whose step takes 3 s. A step prefills one request, or decodes a token of each."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.tokens: dict[str, list[int]] = {}
        self.clock = 0.0

    def add_request(self, name: str, prompt: dict[str, list[int]], most: int) -> None:
        assert most > serving.WARM + 2 * serving.STEPS and prompt["prompt_token_ids"]
        self.waiting.append(name)

    def step(self) -> list[Any]:
        self.clock += 3.0
        if self.waiting:
            self.tokens[self.waiting[0]] = [0]
            grown = [self.waiting.pop(0)]
        else:
            grown = [*self.tokens]
            for name in grown:
                self.tokens[name].append(0)
        reply = {n: [SimpleNamespace(token_ids=self.tokens[n])] for n in grown}
        return [SimpleNamespace(request_id=n, outputs=o) for n, o in reply.items()]

    def abort_request(self, names: list[str]) -> None:
        for name in names:
            del self.tokens[name]

    def has_unfinished_requests(self) -> bool:
        return bool(self.tokens or self.waiting)


def test_tokens_are_timed_while_all_requests_decode(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    monkeypatch.setattr(serving.time, "perf_counter", lambda: engine.clock)
    found = serving.between_tokens(engine, [[5], [6], [7]], lambda most: most, 2)
    assert found == pytest.approx([3.0, 3.0], rel=1e-12) and not engine.has_unfinished_requests()


def prompts(many: int, length: int, seed: int) -> list[list[int]]:
    return [[seed, i, *range(length)] for i in range(many)]


@pytest.mark.parametrize("wrong", [None, 0, 1, 2, 3, 4, 5])
def test_request_0_is_compared_in_every_batch(wrong: int | None) -> None:
    seen: list[int] = []

    def replies(batch: list[list[int]], tokens: int) -> list[tuple[int, ...]]:
        seen.append(len(batch))
        return [(*p, len(seen) - 1 == wrong) for p in batch]

    assert serving.is_invariant(replies, prompts) is (wrong is None)
    assert seen == [1, 2, 8, 32, 64, 64][: len(seen)] and (wrong is not None or len(seen) == 6)


def child(same: str = "ours invariant", fails: str = "") -> Any:
    """A stand-in for ``subprocess.run``, whose ways take 2, 3 and 5 ms."""

    def run(command: list[str], env: dict[str, str], **_: Any) -> Any:
        way = next(w for w, of in serving.WAYS.items() if of.items() <= env.items())
        asked = json.loads(command[-1])
        assert asked["layers"] == 2 and asked["repeats"] == 1
        times = {"start": 9e3, "work": {"ours": 2.0, "stock": 3.0, "invariant": 5.0}[way]}
        line = json.dumps({"times": times, "same": way in same, "pages": len(way)})
        return SimpleNamespace(
            returncode=int(way == fails), stdout=f"warning\n{line}\n", stderr="no memory"
        )

    return run


def test_rows_of_the_three_ways(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    area = fake_area(serving.Serving, "--quick", "--layers", "2", "--models", "Llama-8B")
    monkeypatch.setattr(subprocess, "run", child())
    start, row = area.timed(area.cases())
    assert (start.work, start.ours_ms, row.work, row.layers) == ("start", 9e3, "work", 2)
    assert (row.ratio, row.invariant_ratio, [*row.same]) == (1.5, 2.5, ["ours", "invariant"])
    assert (row.ours_pages, row.stock_pages) == (len("ours"), len("stock"))
    area.show([start, row], [])
    assert "1.500" in capsys.readouterr().out
    monkeypatch.setattr(subprocess, "run", child(same="invariant"))
    assert not list(area.timed(area.cases())) and "request 0 depends" in area.wrong[0]
    monkeypatch.setattr(subprocess, "run", child(fails="stock"))
    assert not list(area.timed(area.cases())) and "Llama-8B, stock: no memory" in area.wrong[1]
    only = fake_area(serving.Serving, "--ways", "ours", "--quick", "--layers", "2")
    monkeypatch.setattr(subprocess, "run", child())
    assert [r.ratio for r in only.timed(only.cases())] == [0.0, 0.0, 0.0, 0.0]


def test_layers_out_of_range() -> None:
    with pytest.raises(OptionError, match="--layers is 0; takes 1 or more"):
        fake_area(serving.Serving, "--layers", "0").cases()
    with pytest.raises((PtxgenError, SystemExit)):
        fake_area(serving.Serving, "--models", "Lama-8B")
