"""``ptxgen bench serving --bits``: counts of differences, the requests and processes, the table."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_bench import ENVIRONMENT, fake_area

import ptxgen
from ptxgen.bench import results, serving, serving_bits
from ptxgen.bench.serving_bits import Bits, Case, differing
from ptxgen.errors import OptionError, PtxgenError

VALUES = [-0.5, 0.0, -0.0078125, -7.0]


def bits(*options: str) -> Any:
    """The comparison without a GPU, with the parser of ``ptxgen bench serving``."""
    parsed = serving.Serving.parser().parse_args(["--bits", *options])
    return Bits(parsed, fake_area(serving.Serving).torch, "cpu")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, float(np.nextafter(np.float32(-0.5), np.float32(0)))),
        (1, -0.0),
        (2, math.nan),
        (3, -7.0 - 1e-12),  # no f32, though its nearest f32 is equal
        (3, -math.inf),
    ],
)
def test_a_planted_difference_is_counted(place: int, value: float) -> None:
    wrong = [*VALUES]
    wrong[place] = value
    assert differing(VALUES, VALUES) == 0
    assert differing(wrong, VALUES) == differing(VALUES, wrong) == 1
    assert differing(wrong, wrong) == (math.isnan(value) or value == -7.0 - 1e-12)


def test_other_lengths_are_an_error() -> None:
    for found in ([], VALUES[:3]):
        with pytest.raises(PtxgenError, match=f"{len(found)} values beside"):
            differing(found, VALUES)
    with pytest.raises(PtxgenError, match="nothing to compare"):
        differing([], [])


def test_options() -> None:
    whole = bits().cases()
    assert len(whole) == len(serving_bits.MODELS) * len(serving_bits.ENGINES)
    some = bits("--models", "Mixtral,gpt-oss", "--engines", "pages")
    assert some.cases() == [Case("Mixtral", "pages"), Case("gpt-oss", "pages")]
    for options, text in (
        (("--layers", "2"), "neither --layers nor --ways"),
        (("--ways", "ours"), "neither --layers nor --ways"),
        (("--jobs", "0"), "--jobs is 0"),
        (("--models", "Llama-8B"), "no model Llama-8B"),
    ):
        with pytest.raises(OptionError, match=text):
            bits(*options).cases()
    with pytest.raises(OptionError, match="only --bits takes a model Mixtral"):
        fake_area(serving.Serving, "--models", "Mixtral").cases()
    with pytest.raises(OptionError, match="--engines is for --bits"):
        fake_area(serving.Serving, "--engines", "pages").cases()


def test_missing_vllm_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_bits, "find_spec", lambda name: None if name == "vllm" else name)
    with pytest.raises(PtxgenError, match="needs vLLM and transformers; missing: vllm"):
        bits().prepare([])


def test_requests_differ_in_length_and_share_prefixes() -> None:
    drawn = serving_bits.requests(serving_bits.REPLIES)
    lengths = [len(each.prompt) for each in drawn]
    assert drawn == serving_bits.requests(256)[: len(drawn)] and len(set(lengths)) > 30
    assert lengths.count(serving_bits.LONGEST) == 1 == lengths.index(serving_bits.LONGEST)
    assert {each.temperature for each in drawn[::2]} == {0.8}
    assert {each.temperature for each in drawn[1::2]} == {0.0}
    begin = tuple(tuple(each.prompt[:50]) for each in drawn[::3] if len(each.prompt) > 50)
    assert len(begin) > 8 and len(set(begin)) == 1


def logprobs(tokens: list[int]) -> list[float]:
    """Values of a stand-in for a model: one for each token from the second on."""
    return [-float(np.float32(1 + a * 0.37 + b)) for a, b in pairwise(tokens)]


class Engine:
    """A stand-in for vLLM's engine with the values of :func:`logprobs`, where every third batch
    preempts a request.
    """

    def __init__(self, planted: str = "") -> None:
        self.planted, self.batches = planted, list[int]()
        self.scheduler = SimpleNamespace(_preempt_request=lambda *given: None)
        core = SimpleNamespace(engine_core=SimpleNamespace(scheduler=self.scheduler))
        config = SimpleNamespace(use_v2_model_runner=True)
        self.llm_engine = SimpleNamespace(engine_core=core, vllm_config=config)

    def generate(self, prompts: list[Any], how: list[Any], use_tqdm: bool) -> list[Any]:
        self.batches.append(len(prompts))
        if self.planted == "preempted":
            self.scheduler._preempt_request("request", 0.0)
        found = []
        for i, (given, options) in enumerate(zip(prompts, how, strict=True)):
            prompt = given["prompt_token_ids"]
            assert options.ignore_eos and ("seed" in vars(options)) == bool(options.temperature)
            reply = [(options.temperature > 0) + len(prompt) + j for j in range(options.max_tokens)]
            values = logprobs([*prompt, *reply])
            if self.planted == "reply" and i == 5:
                values[-1] *= 2
            if self.planted == "prompt" and i == 1:
                values[3] *= 2
            if self.planted == "beside" and len(self.batches) == 4 and i == len(prompts) - 1:
                reply[-1] += 1
            each = [
                {t: SimpleNamespace(logprob=v)} for t, v in zip(reply, values[-48:], strict=True)
            ]
            of_prompt = None
            if options.prompt_logprobs is not None:
                pairs = zip(prompt[1:], values, strict=False)
                of_prompt = [None, *({t: SimpleNamespace(logprob=v)} for t, v in pairs)]
            out = SimpleNamespace(token_ids=reply, logprobs=each)
            found.append(
                SimpleNamespace(outputs=[out], prompt_logprobs=of_prompt, num_cached_tokens=i)
            )
        return found


@pytest.mark.parametrize("planted", ["", "reply", "prompt", "beside", "preempted"])
def test_rows_of_a_stand_in_for_vllm(
    planted: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[bool] = []

    def trainer(model: Any) -> Any:
        def values(tokens: list[int], training: bool) -> list[float]:
            seen.append(training)
            return logprobs(tokens)

        return values

    engine = Engine(planted)
    made = SimpleNamespace(save_pretrained=lambda folder: None, to=lambda device: None)
    monkeypatch.setattr(serving_bits, "make_model", lambda model: made)
    monkeypatch.setattr(serving_bits, "_load", lambda folder, options: engine)
    monkeypatch.setattr(serving_bits, "trainer", trainer)
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(SamplingParams=_Options))

    def run(command: list[str], env: dict[str, str], **_: Any) -> Any:
        assert env["PTXGEN_VLLM"] == "strict" and "serving_bits.serve(" in command[-2]
        serving_bits.serve(command[-1])
        return SimpleNamespace(returncode=0, stdout=capsys.readouterr().out, stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    area = bits("--models", "Llama", "--engines", "eager", "--quick")
    (row,) = area.timed(area.cases())
    assert engine.batches == [48, 1, 32, 32] and sorted(seen) == [False] * 6 + [True] * 6
    assert (row.replies, row.prompt, row.beside) == (12 * 48, 300, 3 * 2 * 48)
    found = row.replies_differ, row.prompt_differ, row.beside_differ
    assert found == tuple(int(planted == name) for name in ("reply", "prompt", "beside"))
    assert area.status([row]) == int(planted in ("reply", "prompt", "beside"))
    assert (row.runner, row.preempted, row.cached) == ("V2", int(planted == "preempted"), 1128)
    area.show([row], [])
    assert f"{row.replies_differ} of 576" in capsys.readouterr().out


class _Options:
    def __init__(self, **options: Any) -> None:
        self.__dict__.update(options)


def test_a_failing_process_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    done = SimpleNamespace(returncode=1, stdout="", stderr="EngineError: no operation serves it")
    monkeypatch.setattr(subprocess, "run", lambda *command, **given: done)
    area = bits("--models", "Llama,Qwen3", "--engines", "graphs")
    assert not list(area.timed(area.cases()))
    assert area.wrong == [f"{m}, graphs: vLLM: {done.stderr}" for m in ("Llama", "Qwen3")]


def test_rows_of_a_file_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = serving_bits.Row("Llama", "pages", "V2", 48, 0, 2304, 0, 300, 1, 288, None, 700)
    path = tmp_path / "rows.json"
    results.write_records(path, results.records([row], ENVIRONMENT))
    assert row.differ == 1 and serving.main(["--bits", "--rows", str(path)]) == 0
    assert {"pages", "1 of 288", "700"} <= {*re.split(r"\s{2,}", capsys.readouterr().out.strip())}


@pytest.mark.long
@pytest.mark.parametrize("name", serving_bits.MODELS)
def test_a_checkpoint_has_the_weights_of_the_model(name: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    small = dict(serving_bits.MODELS[name].values, hidden_size=32, head_dim=8, vocab_size=64)
    model = serving_bits.Model(serving_bits.MODELS[name].family, small | {"num_hidden_layers": 1})
    made = serving_bits.make_model(model)
    made.save_pretrained(tmp_path)
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.bfloat16)
    pairs = list(zip(made.named_parameters(), again.parameters(), strict=True))
    assert pairs and all(torch.equal(x, y) and x.std() > 0 for (_, x), y in pairs)


@pytest.mark.long
def test_training_mode_has_the_bits_of_evaluation() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    small = {"hidden_size": 32, "intermediate_size": 32, "head_dim": 16, "num_hidden_layers": 1}
    values = dict(serving_bits.MODELS["Mixtral"].values, vocab_size=64, **small)
    model = serving_bits.make_model(serving_bits.Model("Mixtral", values)).to(torch.float32)
    with ptxgen.use_device("cpu"):
        computed = serving_bits.trainer(model)
        evaluated, trained = (computed([5, 9, 2, 63], training) for training in (False, True))
        assert len(evaluated) == 3 and differing(trained, evaluated) == 0
        model.requires_grad_(False)
        with pytest.raises(PtxgenError, match="gradients are recorded: False, not True"):
            computed([5, 9, 2], True)
