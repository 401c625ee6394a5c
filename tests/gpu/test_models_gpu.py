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
    """A compiled bfloat16 model of 136 tokens (more than a short prompt's tiles) has the block's
    bits.
    """
    pytest.importorskip("transformers", reason="needs transformers")
    torch._dynamo.reset()
    how = {"times": 17, "device": "cuda", "dtype": torch.bfloat16}
    assert model_cases.different(torch, name, padding, **how) == []
