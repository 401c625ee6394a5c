"""The examples run, and say where."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

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


def run(name: str) -> str:
    """The output of an example, in a process of its own."""
    path = os.pathsep.join(filter(None, (str(EXAMPLES.parent), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"],
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
