"""An operation from a folder of its own goes through every room, and no room knows its name."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import numpy as np
import pytest
from loops import for_each
from registries import registries_kept
from toy import thrice

import ptxgen
from ptxgen import cli, dispatch, golden, tiles
from ptxgen.build.render import source
from ptxgen.dispatch import emit, read
from ptxgen.errors import OptionError, ShapeError, SpecError
from ptxgen.numerics.row_reductions import TABLE
from ptxgen.ops import OPERATIONS, register
from ptxgen.ops.explaining import explain
from ptxgen.ops.pointwise_table import ROWS
from ptxgen.runtime.cpu import CpuDevice

PACKAGE = Path(ptxgen.__file__).parent
KEY = ("toy", "f32")


@pytest.fixture
def toy():
    """The operation, registered as long as a test runs."""
    with registries_kept():
        yield register(thrice.thrice, thrice.TABLES)


@pytest.fixture
def composed(toy):
    """Operation composed of the toy operation."""
    return register(thrice.sixfold)


def same(got, expected):
    for a, b in zip(got, expected, strict=True):
        assert (a.view(np.uint32) == b.view(np.uint32)).all()


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000])
def test_four_launches_two_results(toy, n):
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    with ptxgen.use_device(CpuDevice()):
        first = toy(x, amount=0.3)
        into = np.full(n, np.nan, np.float32), np.full(n, np.nan, np.float32)
        again = toy(x, out=into, amount=0.3)
    expected = thrice.reference(x, amount=0.3)
    for got in (first, again, into):
        same(got, expected)
    assert again[0] is into[0] and again[1] is into[1]
    same(ptxgen.thrice(x[:0]), thrice.reference(x[:0]))


def test_what_is_refused(toy):
    x = np.ones(5, np.float32)
    with ptxgen.use_device(CpuDevice()):
        assert [r.shape for r in toy(x[:0])] == [(0,), (0,)]
        with pytest.raises(ShapeError, match=r"x has shape \[5, 1\]; takes \[N\]"):
            toy(x[:, None])
        with pytest.raises(OptionError, match="out has None beside arrays"):
            toy(x, out=(x.copy(), None))
        with pytest.raises(ShapeError, match=r"out\[1\] shares memory with out\[0\]"):
            both = x.copy()
            toy(x, out=(both, both))
        with pytest.raises(OptionError, match="amount is 'much'; takes a finite number"):
            toy(x, amount="much")
        with pytest.raises(OptionError, match="which only serves with others"):
            toy(x, kernel=thrice.SQUARE.name)
    with pytest.raises(SpecError, match="already"):
        register(thrice.thrice)


def test_what_is_made_of_it_needs_one_function(composed):
    """A composed operation is one function: oracle, programs and their memory follow from it."""
    x = np.random.default_rng(1).standard_normal(100).astype(np.float32)
    expected = thrice.reference(thrice.reference(x, amount=0.3)[0], amount=0.3)[0]
    same((ptxgen.reference.sixfold(x, amount=0.3),), (expected,))
    with ptxgen.use_device(CpuDevice()):
        same((composed(x, amount=0.3), ptxgen.sixfold(x, amount=0.3)), (expected,) * 2)
    found = explain("sixfold", 100)
    assert found.launches == 8 and [count for count, _ in found.steps] == [2]
    assert "2 x thrice" in found.brief() and found.memory >= 400


def test_nothing_is_left_of_what_cannot_be_registered(monkeypatch):
    """A failed registration adds nothing: a dispatch function fails, or a table exists already."""
    with registries_kept():
        before = set(tiles.TABLES), set(tiles.SPECS), set(dispatch._installed)
        monkeypatch.setattr(emit, "functions", lambda table: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            register(thrice.thrice, thrice.TABLES)
        assert (set(tiles.TABLES), set(tiles.SPECS), set(dispatch._installed)) == before
        monkeypatch.undo()
        with pytest.raises(SpecError, match="exist already"):
            register(thrice.thrice, {**thrice.TABLES, ("gather",): tiles.TABLES["gather",]})
        assert (set(tiles.TABLES), set(tiles.SPECS), set(dispatch._installed)) == before
        register(thrice.thrice, thrice.TABLES)


def test_it_is_dispatched_explained_and_proved(toy, capsys):
    choice = dispatch.choose(KEY, {"N": 1000}, arch="sm_90", sms=132)
    assert choice.grids == (16,) * 4 and choice.scratch == (4000, 4000)
    assert choice.kernels == (*[thrice.HELD.name] * 2, thrice.ADD.name, thrice.SQUARE.name)
    assert explain("thrice", 1000).choice == choice
    assert cli.main(["explain", "thrice", "1000"]) == 0
    assert thrice.SQUARE.name in capsys.readouterr().out
    pytest.importorskip("z3")
    from ptxgen.dispatch.prove import prove

    (table,) = emit.tables({KEY: tiles.TABLES[KEY]})
    results = prove([table])
    assert results and all(result.ok for result in results), [r for r in results if not r.ok]
    (function,) = read.functions(emit.source(table), table.name, table.space)
    assert function.archs == tuple(ptxgen.spec.ARCHITECTURES)


def test_it_has_a_golden(toy):
    made = golden.build([thrice.ADD])
    assert made.kernels() == {thrice.ADD.name}
    assert not list(golden.rules(made, [thrice.ADD])), "no atomics, no spills"


def test_a_template_of_its_own_is_in_the_key_of_its_source(toy, monkeypatch, tmp_path):
    first = source(thrice.ADD)
    text = (thrice.ToySpec.folder / "step.cu.j2").read_text()
    (tmp_path / "step.cu.j2").write_text(text + "// changed\n")
    monkeypatch.setattr(thrice.ToySpec, "folder", tmp_path)
    assert source(thrice.ADD) == first + "// changed\n"


def test_it_has_an_operator(toy, composed):
    torch = pytest.importorskip("torch")
    import ptxgen.torch
    from ptxgen.torch.operators import operator

    x = torch.randn(70, requires_grad=True)
    with ptxgen.use_device(CpuDevice()):
        y, z = ptxgen.torch.thrice(x, amount=0.5)
        (y.sum() + z.sum()).backward()
        assert torch.equal(x.grad, 1 + 2 * y)
        for op, count in ((thrice.thrice, 2), (thrice.sixfold, 1)):
            torch.library.opcheck(operator(op), (x,))
            assert len(operator(op)(x)) == (count if count > 1 else 70)
        found = torch.autograd.grad(ptxgen.torch.sixfold(x).sum(), x)
    assert torch.equal(found[0], torch.ones(70))


POINTWISE = frozenset(row.name for row in ROWS)
NAMES = frozenset({*OPERATIONS, *TABLE, "thrice"}) - POINTWISE
"""The names of all operations, from their tables; what is pointwise are words of formulas."""
WORDS = frozenset({"sum", "mean", "prod", "amax", "amin", "var", "sort", "im2col"})
"""Names that also say how something is reduced, in formulas and in arguments, what a variable is,
which step a kernel computes, or in which mode it copies (PTX): in a question they say nothing."""
# What is about one operation, one kind of them, or a framework's own products.
ITS_OWN = (
    "ops/gemm.py",
    "numerics/",
    "bench/",
    "engines/",
    "oracle/",
    "torch/",
)


SEARCHES = ("startswith", "endswith", "removeprefix", "removesuffix")


def asked(source: str) -> list[str]:
    """The names of operations that something is compared with, or looked for among."""
    found = []
    for node in ast.walk(ast.parse(source)):
        sides: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            sides = [node.value]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in SEARCHES:
            sides = node.args
        for side in sides:
            several = isinstance(side, ast.Tuple | ast.List | ast.Set)
            for each in side.elts if several else [side]:
                if isinstance(each, ast.Constant) and each.value in NAMES - WORDS:
                    found.append(each.value)
    return found


@for_each("path", sorted(PACKAGE.rglob("*.py")))
def test_no_room_asks_for_an_operation_by_name(path):
    if path.relative_to(PACKAGE).as_posix().startswith(ITS_OWN):
        return
    found = asked(path.read_text())
    assert not found, f"{path.name} asks whether an operation is {found}"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('if op == "linear": pass', ["linear"]),
        ('x = op in ("linear_wgrad", "other", "matmul")', ["linear_wgrad", "matmul"]),
        ('y = "softmax" != name', ["softmax"]),
        ('match name:\n    case "cumsum": pass', ["cumsum"]),
        ('z = name.startswith(("thrice", "x"))', ["thrice"]),
        ('made = rows["layer_norm_backward"]', []),
        ('if how == "sum": pass', []),
    ],
)
def test_the_search_finds_such_questions(source, names):
    assert asked(source) == names


def test_the_search_knows_all_tables():
    """Products, rows, columns, moves, scans and selections are among what is searched for."""
    assert {"matmul", "rms_norm", "max_columns", "index_add", "cumsum", "topk"} <= NAMES
    assert len(NAMES) > 60 and WORDS < NAMES | {"var"} and "toy" in sys.modules
