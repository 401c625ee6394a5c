"""docs/support.md says what the code does: every operation is called with every dtype."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "tools" / "support.py"


@pytest.fixture(scope="module")
def support():
    spec = importlib.util.spec_from_file_location("support", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def page(support):
    return support.PAGE.read_text(encoding="utf-8")


def test_dtypes(support, page):
    """Without PyTorch: what the page says about that is left as it stands."""
    assert support.page(page) == page, "python tools/support.py --write"


@pytest.mark.filterwarnings("ignore:.*(FakeTensor|lru_cache|data pointer)")
def test_gradients_and_compilation(support, page):
    pytest.importorskip("torch")
    assert support.page() == page, "python tools/support.py --write"


def test_every_operation_has_a_line(support, page):
    import ptxgen
    from ptxgen import ops

    names = {operation.call for operation in support.operations()}
    public = {getattr(ops, n) for n in dir(ptxgen) if hasattr(ops, n) and n in ops.__all__}
    assert len(public) > 20 and public <= names
    assert set(support.kept(page)) == {operation.name for operation in support.operations()}
