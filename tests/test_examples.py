"""The examples run, and say where."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ptxgen

EXAMPLES = Path(__file__).parents[1] / "examples"
SAYS = {
    "quickstart": "same bits",
    "batch_invariance": "the row's bits do not depend on M",
    "explain_routes": "winner: route",
    "own_kernel": "registers=",
    "decode_invariance": "the logits do not depend on the batch",
    "train_twice": "identical losses and weights",
    "save_and_load": "loaded elsewhere: same bits",
    "qlora": "identical losses and weights in",
    "quantized_checkpoint": "the tokens and logits of a sequence do not depend on the batch",
    "compile_model": "results and gradients have the same bits",
    "splats": "identical losses and splats in both runs",
    "spectrogram": "alone: the same bits",
    "on_policy": "on policy in every step, identical weights in both runs",
    "whole_models": "no result depends on the batch",
    "model_families": "no result depends on the batch",
}
# These need PyTorch and a GPU, and say so where there is none. (qlora, compile_model,
# quantized_checkpoint, splats and on_policy need no GPU.)
NEEDS_TORCH = ("decode_invariance", "train_twice", "whole_models", "model_families")


def run(name: str, *options: str) -> str:
    """The output of an example, in a process of its own."""
    path = os.pathsep.join(filter(None, (str(EXAMPLES.parent), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", *options],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_is_tested_and_listed() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == SAYS.keys()
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name}.py`" in listed for name in names)


@pytest.mark.parametrize("name", SAYS)
def test_example(name: str) -> None:
    output = run(name)
    if name in NEEDS_TORCH and "needs PyTorch and an NVIDIA GPU" in output:
        needed = ("torch", "transformers") if "model" in name else ("torch",)
        without = any(importlib.util.find_spec(each) is None for each in needed)
        assert ptxgen.devices()[0].kind == "cpu" or without
        return
    needed = {name: ("torch",) for name in ("qlora", "compile_model", "splats")}
    needed["quantized_checkpoint"] = "torch", "transformers", "gguf"
    needed["on_policy"] = "torch", "transformers"
    if any(importlib.util.find_spec(each) is None for each in needed.get(name, ())):
        assert "This example needs PyTorch" in output
        return
    assert SAYS[name] in output
    if name in ("quickstart", "batch_invariance"):
        assert f"on {ptxgen.devices()[0]}" in output


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed")
def test_rollouts_by_vllm_are_refused_without_it() -> None:
    output = run("on_policy", "--rollout", "vllm")
    assert "needs PyTorch and transformers and vLLM; missing:" in output and "vllm.\n" in output


def test_rollouts_by_vllm_are_of_the_present_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """With stand-ins for vLLM, whose log-probabilities are those that the weights had last, and for
    a model.
    """

    class Engine:
        def __init__(self) -> None:
            self.weights: dict[str, float] = {}
            self.fresh, self.batches = False, list[int]()

        def load_weights(self, pairs: list[tuple[str, float]]) -> None:
            self.weights, self.fresh = dict(pairs), False

        def apply_model(self, call: Any) -> None:
            call(self)

        def reset_prefix_cache(self) -> None:
            self.fresh = True

        def generate(self, prompts: list[Any], how: list[Any], use_tqdm: bool) -> Iterator[Any]:
            assert self.fresh
            self.batches.append(len(prompts))
            for prompt, options in zip(prompts, how, strict=True):
                token = options["seed"] + prompt["prompt_token_ids"][0]
                values = [{token: SimpleNamespace(logprob=self.weights["w"])}] * 3
                reply = SimpleNamespace(token_ids=[token] * options["max_tokens"], logprobs=values)
                yield SimpleNamespace(outputs=[reply])

    spec = importlib.util.spec_from_file_location("on_policy", EXAMPLES / "on_policy.py")
    example = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "on_policy", example)
    spec.loader.exec_module(example)
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(SamplingParams=dict))
    sample = example.SampleByVllm()
    sample.engine = Engine()
    for weight, budget in ((-0.5, 64), (-0.25, 6)):
        parameter = SimpleNamespace(detach=lambda weight=weight: weight)
        model = SimpleNamespace(named_parameters=lambda p=parameter: [("w", p)])
        found = sample(None, model, [[5], [5, 6], [7]], [10, 20, 30], 3, budget)
        assert found == ([[15] * 3, [25] * 3, [37] * 3], [[weight] * 3] * 3)
    assert sample.engine.batches == [3, 1, 1, 1]
