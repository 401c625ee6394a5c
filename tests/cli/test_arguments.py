"""Arguments of commands: one spelling of sizes and dtypes, and errors of one line."""

from __future__ import annotations

import argparse
import json
import os
import random
from pathlib import Path

import numpy as np
import pytest
from test_docs import commands

import ptxgen
from ptxgen import arguments, cli
from ptxgen.bench import gemm, results
from ptxgen.cli import main
from ptxgen.errors import OptionError
from ptxgen.numerics.dtype import DTYPES
from ptxgen.ops import OPERATIONS
from ptxgen.ops.explaining import posed_names, size_names
from ptxgen.ui import emit

PROJECT = Path(__file__).parents[2]
ROWS = "bench/results/random-f32-h200-20261201-ff131ae1.json"
SEED = int(os.environ.get("PTXGEN_SEED", "0"))
DRAWS = 60


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    def call(*argv: object) -> tuple[int, str, str]:
        try:
            status = main([str(a) for a in argv])
        except SystemExit as stop:
            status = int(stop.code or 0)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


# -- sizes ----------------------------------------------------------------------------------
def test_sizes_of_products_are_m_k_n(run) -> None:
    out = run("explain", "linear", "16x4096x11008")[1]
    assert out.startswith("linear M=16 N=11008 K=4096 ")
    assert arguments.written(("M", "N", "K", "E")) == ("M", "K", "N", "E")
    assert arguments.written(("B", "L", "D", "N")) == ("B", "L", "D", "N")
    found = json.loads(run("profile", "simt_nn_f32_16x32x32_448b5d", "16x64x32", "--json")[1])
    assert (found["m"], found["k"], found["n"]) == (16, 64, 32)


def test_the_old_order_warns_and_gives_the_same(run) -> None:
    for argv, old in (
        (("explain", "linear"), (16, 11008, 4096)),
        (("profile", "simt_nn_f32_16x32x32_448b5d", "--json"), (16, 32, 64)),
    ):
        m, n, k = old
        status, out, err = run(*argv, *old)
        assert (status, err.count("\n")) == (0, 1)
        assert f"written MxKxN: {m}x{k}x{n}; the next version takes no M N K" in err
        assert run(*argv, f"{m}x{k}x{n}") == (0, out, "")


@pytest.mark.parametrize("text", ["", "x", "0x1x2", "1x2", "1x2x3x4", "-1x2x3", "1x2x³", "1x2x 3"])
def test_what_is_no_sizes_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match=r"sizes are .*; takes MxKxN"):
        arguments.sizes(text)
    with pytest.raises(OptionError, match="takes MxKxN"):
        arguments.ranges(text)


def test_ranges() -> None:
    assert arguments.ranges("1..3x4x05") == (range(1, 4), range(4, 5), range(5, 6))
    for text in ("3..1x1x1", "0..1x1x1", "1..x1x1", "1...2x1x1"):
        with pytest.raises(OptionError, match="takes MxKxN"):
            arguments.ranges(text)


def test_every_operation_that_sizes_pose_names_its_sizes(run) -> None:
    for name in posed_names():
        err = run("explain", name, "1x1x1x1x1x1x1x1x1")[2]
        if name.startswith("attention"):
            assert arguments.FORM in err or "M" in size_names(OPERATIONS[name])
        else:
            assert "x".join(arguments.written(size_names(OPERATIONS[name]))) in err, name


def test_attention_is_explained_from_its_sizes(run) -> None:
    status, out, _ = run("explain", "attention", "2x8/2x64x64x128c", "--dtype", "bf16")
    assert status == 0 and "QUERIES=64 KEYS=64 SEQS=2 HEADS=8/2" in out
    paged = json.loads(run("explain", "attention", "2x8/2x1x100x128p16", "--json")[1])
    assert (paged["values"]["PAGED"], paged["values"]["KEYS"]) == (16, 112)
    options = "--set", "return_lse=True", "--set", "sinks=True", "--set", "layout=bshd"
    assert run("explain", "attention", "2x8/2x9x9x64", *options)[0] == 0
    assert run("explain", "attention_grad", "2x8/2x9x9x64", "--dtype", "f16")[0] == 0
    assert "takes a multiple of KV_HEADS" in run("explain", "attention", "2x8/3x9x9x64")[2]
    said = run("explain", "attention", "2x8/2x9x9x64", "--set", "cu_seqlens=True")
    assert said[0] == 2 and "attention.kernels" in said[2]


# -- dtypes ---------------------------------------------------------------------------------
@pytest.mark.parametrize(("full", "short"), DTYPES.items())
def test_dtypes_go_by_either_name(full: str, short: str, run) -> None:
    found = run("explain", "linear", "3x4x5", "--dtype", full)
    assert found[0] == 0 and found == run("explain", "linear", "3x4x5", "--dtype", short)
    for parser in commands(cli.parser(deferred=False)):
        for option in parser._actions:
            if option.dest == "dtype" and (option.choices is None or short in option.choices):
                read = {str(parser._get_values(option, [name])) for name in (full, short)}
                assert len(read) == 1 and full not in read, parser.prog
    assert arguments.words("f32", "bf16", "f16", "f64")(f"{full},{short}") == [short, short]


# -- JSON -----------------------------------------------------------------------------------
def test_rows_of_a_benchmark_are_printed_as_json(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)
    status, out, err = run("bench", "gemm", "--rows", ROWS, "--json")
    assert status == 0 and json.loads(out) == json.loads((PROJECT / ROWS).read_text())
    assert "all" in err, "the tables"


def test_json_is_all_that_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = arguments.Parser(prog="x")
    arguments.add_rows(parser)

    def work(options: argparse.Namespace) -> int:
        emit("a table")
        results.store(options, [{"us": float("nan"), "kernel": "k"}])
        return 1

    path, rows = tmp_path / "rows.json", [{"us": None, "kernel": "k"}]
    assert arguments.run(parser, work, ["--json", "--save", str(path)]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out) == json.loads(path.read_text()) == rows and err == "a table\n"
    assert arguments.run(parser, work, []) == 1
    assert capsys.readouterr().out == "a table\n"


def test_the_old_spelling_of_a_file_warns(capsys: pytest.CaptureFixture[str]) -> None:
    parser = gemm._parser()
    for old in (["--json", "a.json", "--quick"], ["--json=a.json", "--quick"]):
        options = parser.parse_args(arguments._renamed(old))
        assert (options.save, options.json, options.quick) == (Path("a.json"), False, True)
        assert "a file is --save FILE" in capsys.readouterr().err
    options = parser.parse_args(arguments._renamed(["--json", "--quick"]))
    assert options.json and options.save is None and not capsys.readouterr().err


# -- errors ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("argv", "meant"),
    [
        (("explian", "linear", "1x1x1"), "explain"),
        (("explain", "lineal", "1x1x1"), "linear"),
        (("explain", "linear", "1x1x1", "--lyout", "nk"), "--layout"),
        (("explain", "linear", "1x1x1", "--gpu", "h10"), "h100"),
        (("bench", "attenton"), "attention"),
        (("bench", "gemm", "--dtype", "bfloat1"), "bfloat16"),
        (("bench", "conv", "--kinds", "foward"), "forward"),
        (("golden", "chek"), "check"),
        (("list", "--family", "wgma"), "wgmma"),
        (("prove", "logsumex"), "logsumexp"),
    ],
)
def test_a_close_word_is_proposed(argv: tuple[str, ...], meant: str, run) -> None:
    status, out, err = run(*argv)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "did you mean" in err and meant in err


NO_SIZES = (
    *("0x1x1", "-3x2x1", "axb", "1x1", "1x1x1x1x1", "x", "1xx1", "٣x1x1", "1e3x1x1", "nan"),
    *("1x1x1\n2", "\udcff", "9" * 5000 + "x1x1", "1.5x2x3", "0x10x1x1", "１x1x1", "1x1x1c"),
    *("\x1b[31m", "1 1 1"),
)
TOO_LARGE = "1x9999999999x1", "4294967296x1x1"
BAD_FLAGS = ("--", "--no-such", "-Z", "--dtype", "--dtype=q", "--align=3", "--sms=-1", "--arch=x")
WORDS = ("\u202e", "🙂", "", " ", "-", "None", "*", "a" * 3000, "\x00", "--json=x", "%s", "{0}")


def bad_line(draw: random.Random) -> list[str]:
    """A command line with something wrong in it."""
    no, flag, word = (draw.choice(some) for some in (NO_SIZES, BAD_FLAGS, WORDS))
    bad = draw.choice((*NO_SIZES, *TOO_LARGE))
    flag = draw.choice(BAD_FLAGS[1:]) if flag == "--" else flag
    return draw.choice(
        [
            ["explain", "linear", bad],
            ["explain", "linear", "1x1x1", flag],
            ["explain", word, "1x1x1"],
            ["explain", "linear", "1x1x1", "--set", word],
            ["explain", "linear", "1x1x1", "--gpu", word],
            ["explain", "softmax", bad, bad],
            ["explain", "attention", bad],
            ["profile", "simt_nn_f32_16x32x32_448b5d", bad],
            ["profile", word, "1x1x1"],
            ["build", "--for", "linear", bad],
            ["build", "--for", word, "1x1x1"],
            ["list", "--dtype", f"_{word}"],
            ["show", word],
            ["demo", "--batch", f"{word}-1"],
            ["demo", "--device", f"{word}:"],
            ["golden", f"{word}x"],
            ["bench", f"{word}x"],
            ["bench", "gemm", "--shapes", no],
            ["bench", "gemm", flag, word],
            ["bench", "bmm", "--shapes", no],
            ["bench", "attention", "--shapes", no],
            ["bench", "flce", "--shapes", no],
            ["bench", "routes", "--k", no],
            ["tune", "--dtype", f"{word}_"],
            ["completion", word],
            [word],
        ]
    )


def refused(line: list[str], run) -> None:
    status, out, err = run(*line)
    assert (status, out) == (2, ""), f"seed {SEED}: {line!r}: {status}, {out}{err}"
    said = [each for each in err.splitlines() if not each.startswith("ptxgen: warning: ")]
    assert len(said) == 1 and "Traceback" not in err, f"seed {SEED}: {line!r}: {err!r}"


def test_bad_command_lines_are_one_line_and_status_2(run) -> None:
    draw = random.Random(SEED)
    for _ in range(DRAWS):
        refused(bad_line(draw), run)


@pytest.mark.long
def test_many_bad_command_lines(run) -> None:
    draw = random.Random(SEED + 1)
    for _ in range(20 * DRAWS):
        refused(bad_line(draw), run)


@pytest.mark.parametrize("name", ["op", "arch", "gpu"])
@pytest.mark.parametrize("value", [np.zeros(3), np.array("sm_90"), 7, [], {}, None, b"linear"])
def test_explain_names_the_argument_that_is_no_text(name: str, value: object) -> None:
    if name != "op" and value is None:
        return  # the default
    given: dict[str, object] = {"op": "linear", name: value}
    with pytest.raises(OptionError, match=f"^{name} is "):
        ptxgen.explain(given.pop("op"), 1, 2, 3, **given)


@pytest.mark.parametrize("value", [np.zeros(3), 7, [], "tpu", "cuda:x", "cpu:" + "9" * 5000])
def test_set_default_device_names_its_argument(value: object) -> None:
    for function in (ptxgen.set_default_device, ptxgen.use_device):
        with pytest.raises(OptionError, match=r"^spec is "):
            function(value)
