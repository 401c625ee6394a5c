"""The models of ``examples/model_families.py`` in the block, on the CPU device, with fewer rows."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

import ptxgen

torch = pytest.importorskip("torch", reason="needs PyTorch")
serve = pytest.importorskip("ptxgen.torch.serve")

PATH = Path(__file__).parents[2] / "examples" / "model_families.py"
_spec = importlib.util.spec_from_file_location("model_families", PATH)
families = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = families
_spec.loader.exec_module(families)


@pytest.mark.long
@pytest.mark.parametrize("name", families.MODELS)
def test_rows_do_not_depend_on_the_batch(name, monkeypatch):
    if name not in ("unet", "autoencoder"):
        pytest.importorskip("transformers", reason="needs transformers")
    for what, less in (("BATCH", 3), ("PIECES", (1, 2)), ("LATENT", 4), ("TRAINED", 2)):
        monkeypatch.setattr(families, what, less)
    with ptxgen.use_device("cpu"):
        found = families.check(name, "cpu", torch.float32)
    assert found.invariant, found


def test_what_depends_on_the_batch_is_found(monkeypatch):
    """The example finds results that depend on the batch, unknown operators and differing
    gradients.
    """

    class Drawing(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x) + torch.rand(len(x), 1, 1, 1)

    made = families.Family(lambda: Drawing(families.LATENT, 4), {"x": "latents"}, ())
    monkeypatch.setitem(families.MODELS, "drawing", made)
    with ptxgen.use_device("cpu"):
        found = families.check("drawing", "cpu", torch.float32)
    assert found.rows and found.gradients and found.unknown and not found.invariant
