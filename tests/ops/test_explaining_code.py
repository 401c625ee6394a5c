"""``explain --code``: the texts are those that calls run."""

from __future__ import annotations

import ast

import pytest

from ptxgen import cli
from ptxgen.errors import OptionError, ShapeError
from ptxgen.ops import OPERATIONS
from ptxgen.ops.explaining_code import explain_code
from ptxgen.program import prepared


def functions(text):
    return {node.name: node for node in ast.parse(text).body}


def test_one_launch_is_straight_line_code():
    text = explain_code("linear", (64, 4096, 4096), "bf16")
    front, code = functions(text).values()
    assert [a.arg for a in front.args.args] == ["x", "w", "bias"]
    assert ast.unparse(code).splitlines()[-1] == "    return t2"
    assert "launch0(stream, a0, a1, 0, p2)" in text  # no bias
    assert "#   empty2: memory of bfloat16 [64, 4096]" in text
    assert "#   launch0: linear M=64 N=4096 K=4096, wgmma_" in text


def test_the_front_is_the_one_that_is_called():
    text = explain_code("softmax", (8, 100))
    assert OPERATIONS["softmax"].frame.function.__dict__["source"].rstrip() in text
    assert "requires_grad" in text and "axis" in text


def test_several_steps_share_one_allocation():
    text = explain_code("conv", (2, 3, 30, 30, 128, 7, 7), "bf16", stride=2)
    code = functions(text)["code"]
    lines = ast.unparse(code).splitlines()
    assert sum("launch" in line for line in lines) == 4
    assert "one allocation for all temporaries" in text
    assert any("+" in line for line in lines if "launch" in line), "temporaries lie at offsets"


def test_the_code_of_a_call_is_the_text_of_it():
    """The printed text is the one that is compiled."""
    made = prepared._compiled_function(
        "f", (), ["def $call():", "    return $x"], "<a test>", {"$x": 7}
    )
    assert made() == 7 and made.__dict__["source"] == "def _call():\n    return _x\n"


def test_the_command(capsys):
    assert cli.main(["explain", "logsumexp", "64x1000", "--code"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("# ptxgen.logsumexp: ") and "def code(a0):" in said
    assert cli.main(["explain", "logsumexp", "64x1000", "--code", "--arch", "sm_80"]) == 2
    assert "--arch is given, but --code shows a call on an H200" in capsys.readouterr().err


def test_bad_sizes_are_refused():
    with pytest.raises(ShapeError, match="logsumexp is given 1 sizes; takes M, N"):
        explain_code("logsumexp", (64,))
    with pytest.raises(OptionError, match="unknown operation 'nothing'"):
        explain_code("nothing", (64,))
