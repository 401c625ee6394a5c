"""Experts of gpt-oss in MXFP4, loaded into a model by ``convert``; on the CPU device."""

from __future__ import annotations

import copy

import checkpoint_cases
import pytest

import ptxgen
from ptxgen import quantized
from ptxgen.errors import CheckpointError

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("transformers", reason="needs transformers")
pytest.importorskip("safetensors", reason="needs the package safetensors")
pt = pytest.importorskip("ptxgen.torch")


@pytest.fixture(autouse=True)
def on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


def gpt_oss(folder):
    """A gpt-oss converted with the weights of a folder, and one with these weights dense."""
    pt.register_experts()
    made, dense = (checkpoint_cases.model(torch, "GptOss", seed) for seed in (3, 4))
    done = pt.convert(made, weights=folder)
    assert (done.missing, done.unused) == ([], [])
    assert done.converted == ["model.layers.0.mlp.experts"]
    experts = made.get_submodule(done.converted[0])
    for name, parameter in dense.named_parameters():
        layer, _, last = name.rpartition(".")
        if layer in done.converted and last in ("gate_up_proj", "down_proj"):
            w = quantized.dequantize(experts.weight(last))
            parameter.copy_(w.reshape(parameter.mT.shape).mT)
        else:
            parameter.copy_(made.get_parameter(name))
    dense.set_experts_implementation("ptxgen")
    return made, dense


def test_experts_in_mxfp4_are_converted(tmp_path):
    """They have the bits of dense ones, with and without the block, and so have gradients."""
    checkpoint_cases.mxfp4(torch, tmp_path)
    made, dense = gpt_oss(tmp_path)
    blocks = checkpoint_cases.experts(tmp_path)["model.layers.0.mlp.experts.down_proj"][0]
    layer = made.model.layers[0].mlp.experts
    assert torch.equal(layer.weight("down_proj").data.flatten(), blocks.flatten())
    tokens = torch.randint(0, 32, (3, 7))
    with pt.batch_invariant(strict=True), torch.no_grad():
        whole = made(tokens).logits
        assert torch.equal(whole, dense(tokens).logits)
        assert torch.equal(made(tokens[:1]).logits, whole[:1])
        assert torch.equal(copy.deepcopy(made)(tokens).logits, whole)
    assert "gate_up_proj='mxfp4'" in repr(layer)
    x, at = torch.randn(5, 64), torch.randint(0, 4, (5, 2))
    weights, dy, found = torch.rand(5, 2), torch.randn(5, 64), []
    for model in made, dense:
        given = x.clone().requires_grad_()
        y = model.model.layers[0].mlp.experts(given, at, weights)
        y.backward(dy)
        found.append((y, given.grad))
    assert all(map(torch.equal, *found))
    low = made.bfloat16()
    assert low.model.layers[0].mlp.experts.weight("down_proj").scales.dtype is torch.uint8
    assert low(tokens).logits.dtype is torch.bfloat16


def test_experts_that_do_not_fit_are_refused(tmp_path):
    """By name, before the model is changed."""
    name = "model.layers.0.mlp.experts"
    cases = (
        (lambda t: t.pop(f"{name}.down_proj_scales"), f"there is no {name}.down_proj_scales"),
        (
            lambda t: t.update({f"{name}.down_proj_blocks": t[f"{name}.down_proj_blocks"][:3]}),
            r"have shapes \[3, 64, 4, 16\] and \[4, 64, 4\]; the experts take \[4, 64, 4, 16\]",
        ),
        (
            lambda t: t.update({f"{name}.down_proj_scales": t[f"{name}.down_proj_scales"].float()}),
            "down_proj_blocks: scales has dtype float32; takes uint8",
        ),
    )
    for i, (change, message) in enumerate(cases):
        (tmp_path / str(i)).mkdir()
        folder = checkpoint_cases.mxfp4(torch, tmp_path / str(i), change)
        made = checkpoint_cases.model(torch, "GptOss")
        before = {key: t.clone() for key, t in made.state_dict().items()}
        with pytest.raises(CheckpointError, match=message):
            pt.convert(made, weights=folder)
        assert all(torch.equal(made.state_dict()[key], t) for key, t in before.items())
    (tmp_path / "whole").mkdir()
    folder = checkpoint_cases.mxfp4(torch, tmp_path / "whole")
    done = pt.convert(checkpoint_cases.model(torch, "GptOss"), weights=folder, skip=["*.experts"])
    assert done.skipped == {name: "skip says so"} and not done.converted
    assert done.missing == [f"{name}.down_proj", f"{name}.gate_up_proj"]
    made = checkpoint_cases.model(torch, "GptOss")
    made.get_submodule(name).__class__ = torch.nn.Module
    with pytest.raises(CheckpointError, match=f"experts {name} .* the module is a torch.nn.*Modu"):
        pt.convert(made, weights=folder)
