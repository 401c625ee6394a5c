"""An operation from a folder of its own goes through every room, and no room knows its name."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import numpy as np
import pytest
from registries import registries_kept
from toy import thrice

import ptxgen
from ptxgen import cli, dispatch, golden, tiles
from ptxgen.build.render import source
from ptxgen.dispatch import emit, read
from ptxgen.errors import OptionError, ShapeError, SpecError
from ptxgen.numerics.columns import REDUCTIONS
from ptxgen.numerics.contract import OPERATIONS
from ptxgen.numerics.rowops import TABLE
from ptxgen.ops import OPS, register
from ptxgen.ops.explaining import explain
from ptxgen.ops.run import caller
from ptxgen.runtime.cpu import CpuDevice

PACKAGE = Path(ptxgen.__file__).parent
KEY = ("toy", "f32")


@pytest.fixture
def toy():
    """The operation, registered as long as a test runs."""
    with registries_kept():
        register(thrice.OP, thrice.TABLES)
        yield caller(thrice.OP)


def run(toy, x, *, outs=(None, None), amount=1.0, kernel=None):
    return toy(x, None, *outs, None, (amount, kernel))


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000])
def test_four_launches_two_results(toy, n):
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    with ptxgen.use_device(CpuDevice()):
        y, z = run(toy, x, amount=0.3)
        into = np.full(n, np.nan, np.float32), np.full(n, np.nan, np.float32)
        again = run(toy, x, outs=into, amount=0.3)
    expected = thrice.reference(x, 0.3)
    for got in ((y, z), again, into):
        for a, b in zip(got, expected, strict=True):
            assert (a.view(np.uint32) == b.view(np.uint32)).all()
    assert again[0] is into[0] and again[1] is into[1]


def test_what_is_refused(toy):
    x = np.ones(5, np.float32)
    with ptxgen.use_device(CpuDevice()):
        assert [r.shape for r in run(toy, x[:0])] == [(0,), (0,)]
        with pytest.raises(ShapeError, match=r"x has shape \[5, 1\]; takes \[N\]"):
            run(toy, x[:, None])
        with pytest.raises(OptionError, match="results are given, but not z"):
            run(toy, x, outs=(x.copy(), None))
        with pytest.raises(ShapeError, match="z shares memory with y"):
            both = x.copy()
            run(toy, x, outs=(both, both))
        with pytest.raises(OptionError, match="which only serves with others"):
            run(toy, x, kernel=thrice.SQUARE.name)
    with pytest.raises(SpecError, match="already"):
        register(thrice.OP, {})


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


def test_it_has_an_operator(toy):
    torch = pytest.importorskip("torch")
    import ptxgen.torch

    x = torch.randn(70, requires_grad=True)
    with ptxgen.use_device(CpuDevice()):
        y, z = ptxgen.torch.thrice(x, amount=0.5)
        (y.sum() + z.sum()).backward()
        torch.library.opcheck(torch.ops.ptxgen.thrice, (x,))
    assert torch.equal(x.grad, 1 + 2 * y)


NAMES = frozenset({*OPS, *OPERATIONS, *TABLE, *REDUCTIONS, "thrice"})
"""The names of all operations, from their tables."""
WORDS = frozenset({"sum", "mean", "prod", "amax", "amin", "var"})
"""Names that also say how something is reduced, in formulas and in arguments, or what a variable
is: in a question they say nothing."""
# What is about one operation, one kind of them, or a framework's own products.
ITS_OWN = (
    "ops/gemm.py",
    "numerics/",
    "bench/",
    "torch/functional.py",
    "torch/serve.py",
    "reference/",
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


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
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
