"""``ptxgen new``: skeletons that work as they are, and an operation that needs no other edit."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import calls
import numpy as np
import pytest
from registries import registries_kept

import ptxgen
from ptxgen import cli
from ptxgen.cli.new import KINDS, SKELETONS, write
from ptxgen.dispatch import emit
from ptxgen.errors import DtypeError, FormulaError, OptionError, ShapeError
from ptxgen.ops import HELPERS, register
from ptxgen.program.operation import Op

CHECKOUT = Path(__file__).parents[2]


def imported(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def kept():
    """Registries and modules as they were."""
    with registries_kept():
        yield
    for name in ("squares", "scaled", "similarities", "squat"):
        sys.modules.pop(name, None)


def test_every_kind_has_a_skeleton_and_every_skeleton_a_kind():
    kinds = {path.name.partition(".")[0] for path in SKELETONS.iterdir()}
    assert kinds == set(KINDS)


def test_an_operation_is_registered_and_has_an_oracle(tmp_path, kept):
    (path,) = write("operation", "squares", tmp_path)
    call = register(imported(path).squares)
    x = np.random.default_rng(0).standard_normal((3, 40), dtype=np.float32)
    with ptxgen.use_device("cpu"):
        assert (call(x) == ptxgen.reference.squares(x)).all()
        assert (call(x[:1]) == call(x)[:1]).all()
        with pytest.raises(DtypeError, match="x has dtype int32; takes float32 or"):
            call(x.astype(np.int32))
    assert "2 launches" in ptxgen.explain("squares", 3, 40).brief()


def test_a_format_is_registered_and_has_products(tmp_path, kept):
    (path,) = write("format", "squat", tmp_path)
    row = ptxgen.quantized.register(imported(path).FORMAT)
    rng = np.random.default_rng(0)
    data = rng.integers(0, 256, (5, 32), np.uint8)
    scales, offsets = (rng.standard_normal((5, 2)).astype("f2") for _ in range(2))
    q = ptxgen.quantized.QuantizedWeight(row.name, data, scales, offsets, shape=(5, 64))
    x = rng.standard_normal((3, 64), dtype=np.float32)
    with ptxgen.use_device("cpu"):
        y = ptxgen.quantized.linear(x, q)
    assert (y == ptxgen.reference.quantized_linear(x, q)).all()
    with pytest.raises(OptionError, match="there is a format 'squat' already"):
        write("format", "squat", tmp_path)


@pytest.mark.parametrize("factor", ["2.0", "3.0"])
def test_wrong_gradients_are_found(tmp_path, kept, factor):
    (path,) = write("operation", "squares", tmp_path)
    path.write_text(path.read_text().replace("dy), 2.0)}", f"dy), {factor})}}"))
    made = imported(path).squares
    register(made)
    fault = calls.gradient_fault(made, 5)
    assert ("the gradient by x is" in fault) == (factor == "3.0"), fault


def test_a_kernel_is_proved_and_has_its_oracles_bits(tmp_path, kept):
    made = write("kernel", "scaled", tmp_path)
    assert [path.name for path in made] == ["scaled.cu.j2", "scaled.py"]
    module = imported(made[1])
    x = np.random.default_rng(0).standard_normal(1000, dtype=np.float32)
    with ptxgen.use_device("cpu"):
        assert (ptxgen.scaled(x, by=0.1) == module.reference(x, by=0.1)).all()
        with pytest.raises(DtypeError, match="x has dtype float64; takes float32"):
            ptxgen.scaled(x.astype(np.float64))
        with pytest.raises(ShapeError, match=r"x has shape \[1, 1000\]; takes \[N\]"):
            ptxgen.scaled(x[None])
    pytest.importorskip("z3")
    from ptxgen.dispatch.prove import prove

    results = prove(emit.tables(module.TABLES))
    assert results and all(result.ok for result in results)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("class", "takes a Python identifier in lower case"),
        ("Two", "takes a Python identifier in lower case"),
        ("a-b", "takes a Python identifier in lower case"),
        ("linear", "there is an operation 'linear' already"),
        ("there", "there is a file .*there.py already"),
    ],
)
def test_names_that_cannot_be_are_refused_and_nothing_is_written(tmp_path, name, said):
    (tmp_path / "there.py").touch()
    with pytest.raises(OptionError, match=said):
        write("kernel", name, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["there.py"]


def test_the_command_says_what_is_left(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["new", "operation", "squares"]) == 0
    said = capsys.readouterr().out
    assert "make generate" in said and "-k squares" in said
    assert (tmp_path / "squares.py").exists()
    (tmp_path / "ptxgen" / "ops").mkdir(parents=True)
    assert cli.main(["new", "operation", "cubes"]) == 0
    assert (tmp_path / "ptxgen" / "ops" / "cubes.py").exists()


def test_modules_without_operations_have_none():
    for name in HELPERS:
        home = importlib.import_module(f"ptxgen.ops.{name}")
        own = [n for n, v in vars(home).items() if isinstance(v, Op) and v.name == n]
        assert not [n for n in own if vars(home)[n].lower.__module__ == home.__name__], name


COSINE = '''"""Similarities of rows."""

from __future__ import annotations

from ptxgen.numerics.signature import Signature
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.operation import op

FORMS = Signature(
    "cosine", ("x", "y"), ("out",), {"": {"x": "... N", "y": "... N", "out": "..."}}, ("M", "N")
)


@op(forms=FORMS)
def cosine(b: ProgramBuilder, x: Buffer, y: Buffer) -> Buffer:
    """``sum(x * y) / sqrt(sum(x * x) * sum(y * y) + 1)`` of each row.

    Shapes
        ``x`` and ``y`` ``[..., N]``; the result ``[...]``.
    Dtypes
        float32, bfloat16, float16 or float64, the same for both.
    Order
        Sums as those of :func:`ptxgen.sum`.
    Errors
        ShapeError or DtypeError, before anything is launched.
    """
    squares = b.mul(b.sum(b.mul(x, x), axis=-1), b.sum(b.mul(y, y), axis=-1))
    found: Buffer = b.div(b.sum(b.mul(x, y), axis=-1), b.sqrt(b.add(squares, 1.0)))
    return found
'''
ROW = '    Row("halved_sum", lambda x, y: (x + y) * 0.5, "``(x + y) * 0.5``, in this order."),\n'


def test_declared_shapes_are_enforced_and_errors_name_the_call(tmp_path, kept):
    path = tmp_path / "similarities.py"
    path.write_text(COSINE)
    call = register(imported(path).cosine)
    x = np.ones((3, 300), np.float32)
    for function in (call, ptxgen.reference.cosine):
        with ptxgen.use_device("cpu"):
            with pytest.raises(ShapeError, match=r"y has shape \[300\]; takes the leading dim"):
                function(x, x[0])
            with pytest.raises(ShapeError, match=r"y has shape \[3, 4\]; takes \[..., N\] with N"):
                function(x, x[:, :4])
            with pytest.raises(
                FormulaError, match=r"(?s)^cosine: mul takes .*\(in its step mul, whose"
            ):
                function(x, x.astype(np.float64))


@pytest.mark.long
def test_what_one_file_adds_passes_every_gate(tmp_path):
    """A composed operation, a pointwise one and a weight format, each in one file of a copy of the
    checkout: after the commands of the recipes the stubs, pages, goldens and tests have them.
    """
    copy = tmp_path / "copy"
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    for name in files:
        if (CHECKOUT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, copy / name)
    (copy / "ptxgen/ops/similarities.py").write_text(COSINE)
    (copy / "ptxgen/numerics/formats/squat.py").write_text(
        (SKELETONS / "format.py.txt").read_text().replace("NAME", "squat")
    )
    table = copy / "ptxgen/ops/pointwise_table.py"
    text = table.read_text()
    assert text.count('    Row("swiglu"') == 1
    table.write_text(text.replace('    Row("swiglu"', ROW + '    Row("swiglu"'))

    def run(*words: str) -> None:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy)},
            capture_output=True,
            text=True,
        )
        assert not done.returncode, done.stdout[-3000:] + done.stderr[-3000:]

    run("-m", "ptxgen", "generate")
    run("tools/support.py", "--write")
    run("-m", "ptxgen", "generate", "--check")
    for page in ("docs/reference/operations.md", "docs/reference/support.md"):
        assert "cosine" in (copy / page).read_text()
    assert "| `squat` | 4, unsigned | 32 |" in (copy / "docs/reference/quantized.md").read_text()
    run("-m", "ptxgen", "golden", "bits", "--update")
    run("-m", "ptxgen", "golden", "bits")
    quiet = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-x")
    run(*quiet, "tests/test_docs.py", "tests/test_support.py", "tests/test_families.py")
    run(*quiet, "tests/test_calls.py", "-k", "drawn or cosine or halved_sum")
    run(*quiet, "tests/quantized", "-k", "squat")
    run("-m", "mypy", "ptxgen/ops/similarities.py", "ptxgen/numerics/formats/squat.py")
    run("-m", "ruff", "check", "ptxgen/ops", "ptxgen/cli/new.py")
