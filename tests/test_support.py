"""docs/reference/support.md says what the code does: every operation is called with every dtype."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from bits import same_bits

import ptxgen
from ptxgen import reference
from ptxgen.ops import OPERATIONS
from ptxgen.ops.pointwise import Pointwise

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
    """The page is up to date; without PyTorch its cells about PyTorch are taken as they stand."""
    assert support.page(page) == page, "python tools/support.py --write"


def test_operations_that_no_table_names_have_a_line(support):
    text = support.OPERATIONS_PAGE.read_text(encoding="utf-8")
    assert support.others(text) == text, "python tools/support.py --write"
    found = support.others(text.replace("`topk", "`none").replace("`swiglu", "`none"))
    assert "| `topk(x, k)` | `sort(x)[:k]` of each row" in found
    assert "| `swiglu(x, y)` of `ptxgen.functions` |" in found
    with pytest.raises(ValueError, match="has no line"):
        support.others("# Operations")


def test_formats_have_a_line(support):
    text = support.FORMATS_PAGE.read_text(encoding="utf-8")
    assert support.formats(text) == text, "python tools/support.py --write"
    found = support.formats(text.replace("| `nf4`", "| `none`"))
    assert found == text and "| `nf4` | 4, codebook | 64 | f32 scales | 4.5 |" in found
    with pytest.raises(ValueError, match="has no line"):
        support.formats("# Formats")


@pytest.mark.filterwarnings("ignore:.*(FakeTensor|lru_cache|data pointer)")
def test_gradients_and_compilation(support, page):
    pytest.importorskip("torch")
    assert support.page() == page, "python tools/support.py --write"


def test_every_operation_has_a_line(support, page):
    names = {operation.call for operation in support.operations()}
    public = {getattr(ptxgen, n) for n, op in OPERATIONS.items() if op.public}
    assert len(public) > 20 and public <= names
    assert set(support.kept(page)) == {operation.name for operation in support.operations()}


def oracle(operation):
    """Returns an operation's oracle; None for casts and operations that only move elements."""
    if isinstance(operation.call, Pointwise):
        return operation.call.reference
    if not operation.row:
        return None
    return getattr(reference, operation.row, None) or getattr(reference, operation.name)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_what_is_served_has_the_bits_of_the_oracle(support, page, every):
    """Each operation has the oracle's bits on the CPU device, in the first dtype that it takes or
    in all.
    """
    lines = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    cells = {
        line[0].strip("`"): dict(zip(support.DTYPES, line[1:], strict=False)) for line in lines
    }
    with ptxgen.use_device("cpu"):
        for operation in support.operations():
            taken = [d for d, cell in cells[operation.name].items() if cell == support.YES]
            for dtype in taken if every else taken[:1]:
                given = operation.arguments(dtype)
                got, truth = operation.call(**given), oracle(operation)
                named = {n: given.pop(n) for n in support.STATED if n in given}
                if truth is None:
                    continue
                expected = truth(*given.values(), **named)
                pairs = zip(got, expected, strict=True) if type(got) is tuple else [(got, expected)]
                for ours, theirs in pairs:
                    if ours is theirs is None:  # the gradient of a bias that there is none
                        continue
                    same_bits(ours, theirs, what=f"{operation.name} of {dtype}")
