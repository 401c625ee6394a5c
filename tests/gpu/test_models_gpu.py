"""Models of `transformers` on a GPU, compiled: the bits that they have in the block."""

from __future__ import annotations

import model_cases
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("ptxgen.torch")
pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("padding", ["none", "left", "right", "packed"])
@pytest.mark.parametrize("name", model_cases.MODELS)
def test_a_compiled_model_is_the_model_in_the_block(name, padding):
    """In bfloat16, of 136 tokens: more than the tiles of short prompts have."""
    pytest.importorskip("transformers", reason="needs transformers")
    torch._dynamo.reset()
    how = {"times": 17, "device": "cuda", "dtype": torch.bfloat16}
    assert model_cases.different(torch, name, padding, **how) == []
