"""The stub of ``ptxgen.torch``, which ``ptxgen generate`` writes without PyTorch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ptxgen
from ptxgen.cli.torch_stubs import torch_stubs


def test_the_stub_has_every_name():
    torch = pytest.importorskip("ptxgen.torch")
    ((path, text),) = torch_stubs().items()
    assert path == Path(ptxgen.__file__).parent / "torch" / "__init__.pyi"
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.asname}
    assert names == set(dir(torch))


def test_what_was_not_imported_is_named():
    code = "import ptxgen; ptxgen.torch.linear"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip().endswith(
        "AttributeError: ptxgen.torch is loaded by itself: import ptxgen.torch"
    )
