"""The ptxgen command: results, exit statuses, messages. No GPU."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from ops_fakes import FakeGpu

from ptxgen import runtime, tiles, ui
from ptxgen.build.render import render
from ptxgen.cli import fields, main, parser, work
from ptxgen.dispatch.emit import Difference
from ptxgen.dispatch.prove import Result
from ptxgen.golden import Goldens, Record, Usage
from ptxgen.numerics.contract import OPERATIONS
from ptxgen.ops.explaining import explain
from ptxgen.runtime.cpu import CpuDevice

PROJECT = Path(__file__).parents[2]
NAME = next(name for name, spec in tiles.SPECS.items() if spec.min_arch == "sm_80")
SPEC = tiles.SPECS[NAME]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    def call(*argv: object) -> tuple[int, str, str]:
        try:
            status = main([str(a) for a in argv])
        except SystemExit as stop:  # argparse's way out
            status = int(stop.code or 0)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("PTXGEN_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def subcommands(
    of: argparse.ArgumentParser, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    yield path
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                yield from subcommands(sub, (*path, name))


# The options of a benchmark, --help too, are its module's.
COMMANDS = [path for path in subcommands(parser()) if path != ("bench", "gemm")]


def process(*argv: str, **options: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return subprocess.run(
        [sys.executable, *argv], text=True, env=environment, timeout=300, **options
    )  # type: ignore[call-overload]


# -- the command as a whole ----------------------------------------------------------
def test_the_commands_are_those_of_the_design() -> None:
    assert {path[0] for path in COMMANDS if path} == {
        "list", "show", "explain", "render", "generate", "build", "golden", "prove", "cache",
        "env", "engines", "demo", "bench", "profile", "tune", "completion", "new",
    }  # fmt: skip
    assert {p[1] for p in COMMANDS if p[:1] == ("golden",) and p[1:]} == {
        "check", "update", "diff", "bits",
    }  # fmt: skip
    assert {p[1] for p in COMMANDS if p[:1] == ("cache",) and p[1:]} == {"info", "verify", "clear"}


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "ptxgen")
def test_help(path: tuple[str, ...], run) -> None:
    status, out, err = run(*path, "--help")
    assert (status, err) == (0, "")
    assert out.startswith("usage: ptxgen")


def test_usage_errors_are_status_2(run) -> None:
    for argv in ((), ("nothing",), ("show",), ("explain",), ("golden",)):
        status, out, err = run(*argv)
        assert (status, out, err.count("\n")) == (2, "", 1) and "see ptxgen" in err
    assert run("explain", "linear", "1x1x1", "--align", 5)[0] == 2
    assert "takes 1, 2, 4, 8 or 16" in run("explain", "linear", "1x1x1", "--align", "x")[2]


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from ptxgen.cli import parser; parser().format_help();"
        "print([m for m in ('cuda', 'jinja2', 'numpy', 'z3', 'ptxgen.tiles') if m in sys.modules])"
    )
    assert process("-c", code, stdout=subprocess.PIPE).stdout == "[]\n"


def test_as_a_module_into_a_closed_pipe() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = process("-m", "ptxgen", "list", stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr


def test_interrupt_is_status_130(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ptxgen.dispatch.prove.prove", interrupted)
    assert run("prove") == (130, "", "ptxgen: interrupted\n")


# -- kernels -------------------------------------------------------------------------
def test_list_names_every_kernel(run) -> None:
    status, out, _ = run("list")
    head, *rows = out.splitlines()
    assert status == 0
    columns = ["kernel", "dtype", "layout", "tier", "threads", "shared", "regs", "spills"]
    assert head.split() == columns
    assert [row.split()[0] for row in rows] == list(tiles.SPECS)
    assert max(map(len, [head, *rows])) <= 132


def test_list_is_filtered(run) -> None:
    rows = json.loads(run("list", "--layout", "tn", "--json")[1])
    assert [r["name"] for r in rows] == [
        n for n, s in tiles.SPECS.items() if getattr(s, "layout", "") == "TN"
    ]
    assert {r["layout"] for r in rows} == {"TN"}
    status, out, err = run("list", "--layout", "XY")
    assert (status, out) == (2, "") and "--layout XY: no kernel has it; takes NT, NN, TN" in err


def listed(run, *argv: str) -> list[str]:
    status, out, _ = run("list", *argv, "--json")
    assert status == 0
    return [row["name"] for row in json.loads(out)]


def test_the_filters_of_list(run, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = tiles.SPECS.values()
    some = listed(run, "--dtype", "bfloat16", "--tier", "tc", "--family", "wgmma", "--layout", "tn")
    assert some and some == [
        s.name for s in specs
        if (s.dtype, s.tier, s.family, getattr(s, "layout", "")) == ("bf16", "tc", "wgmma", "TN")
    ]  # fmt: skip
    assert listed(run, "--match", "^mma_.*x128_") == [
        n for n in tiles.SPECS if n.startswith("mma_") and "x128_" in n
    ]
    assert listed(run, "--arch", "sm_80", "--family", "wgmma") == []
    assert listed(run, "--sort", "name") == sorted(tiles.SPECS)
    shared = [tiles.SPECS[n].shared_bytes for n in listed(run, "--sort", "shared")]
    assert shared == sorted(shared, reverse=True)
    record = Record("", "", "", 0, Usage(7, 4, 4, 0, 0))
    records = {("sm_90a", NAME): record, ("sm_80", some[0]): record}
    monkeypatch.setattr("ptxgen.cli.kernels._goldens", lambda: Goldens(records=records))
    assert listed(run, "--spills") == [NAME]
    assert listed(run, "--sort", "spills")[0] == listed(run, "--sort", "regs")[0] == NAME
    assert run("list", "--match", "(")[2].startswith("ptxgen: --match '(': missing )")


def test_architectures_have_one_name_in_all_commands(run, cache: Path) -> None:
    for command in (("list",), ("build", NAME), ("explain", "linear", "1x1x1")):
        plain = run(*command, "--arch", "sm_90")
        assert plain[0] == 0
        if command[0] != "build":  # which says how long it took
            assert run(*command, "--arch", "sm_90a") == plain
        status, out, err = run(*command, "--arch", "sm_99")
        assert (status, out) == (2, "")
        assert "unknown architecture 'sm_99'; did you mean sm_90" in err and err.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="/dev/full is no device")
def test_a_full_disk_and_a_poor_encoding_are_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = process("-m", "ptxgen", "list", stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ptxgen: [Errno 28] No space left on device"
    assert "Traceback" not in done.stderr
    code = (
        "from ptxgen import ui; from ptxgen.cli import main, kernels;"
        "kernels._list = lambda arguments: ui.emit('\u2026'); raise SystemExit(main(['list']))"
    )
    os.environ["PYTHONIOENCODING"] = "ascii"
    try:
        done = process("-c", code, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        del os.environ["PYTHONIOENCODING"]
    assert (done.returncode, done.stdout, done.stderr) == (0, "\\u2026\n", "")


def test_list_shows_recorded_resources(run, monkeypatch: pytest.MonkeyPatch) -> None:
    record = Record("", "", "", 0, Usage(77, 8, 4, 16, 1024))
    recorded = Goldens(records={("sm_90a", NAME): record})
    monkeypatch.setattr("ptxgen.cli.kernels._goldens", lambda: recorded)
    row = next(line for line in run("list")[1].splitlines() if line.startswith(NAME + " "))
    assert row.split()[-2:] == ["77", "12"]
    status, _, err = run("list", "--arch", "sm_80")
    assert status == 0 and "no resources are recorded for sm_80 (recorded: sm_90a)" in err
    found = next(r for r in json.loads(run("list", "--json")[1]) if r["name"] == NAME)
    assert found["resources"]["sm_90a"]["registers"] == 77
    assert "sm_90a  registers 77, spill stores 8" in run("show", NAME)[1]


def test_show(run) -> None:
    status, out, _ = run("show", NAME)
    assert status == 0
    assert out.splitlines()[0] == NAME
    assert str(SPEC.requires) in out and str(SPEC.grid) in out
    shown = json.loads(run("show", NAME, "--json")[1])
    assert shown["derived"]["threads"] == SPEC.threads
    assert shown["derived"]["shared_bytes"] == SPEC.shared_bytes
    assert shown["fields"] == json.loads(SPEC.canonical())
    assert shown["routes"]


@pytest.mark.parametrize("family", sorted({spec.family for spec in tiles.SPECS.values()}))
def test_every_field_has_a_meaning(family: str) -> None:
    specs = [spec for spec in tiles.SPECS.values() if spec.family == family]
    assert specs
    for spec in specs:
        rows = list(fields.table_of(spec))
        assert [row.name for row in rows if not row.meaning] == []
        named = [each.name for each in dataclasses.fields(spec)]
        assert [row.name for row in rows] == named


def test_show_says_what_the_fields_are(run) -> None:
    specs = tiles.SPECS.items()
    name = next(n for n, s in specs if s.family == "wgmma" and s.registers == 232)
    lines = [line.split() for line in run("show", name)[1].splitlines()]
    assert ["bm", str(tiles.SPECS[name].bm), "rows", "of", "C"] in [line[:5] for line in lines]
    assert ["registers", "232", "registers", "of"] in [line[:4] for line in lines]


def test_show_knows_every_route_of_every_kernel(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxgen.cli.kernels._goldens", Goldens)  # reads a large file each time
    serving: dict[str, set[tuple[object, ...]]] = {name: set() for name in tiles.SPECS}
    for key, table in tiles.TABLES.items():
        for dtype in table.dtypes:
            for i in range(len(table.routes)):
                for kernel in table.route(i, dtype).kernels:
                    serving[kernel.name].add((*key, str(dtype), i))
    for name in list(tiles.SPECS)[::10]:
        shown = json.loads(run("show", name, "--json")[1])["routes"]
        assert {(*r["table"], r["dtype"], r["route"]) for r in shown} == serving[name]
        assert serving[name], "a kernel that no route launches"


@pytest.mark.parametrize("command", [("show",), ("render",), ("build",), ("golden", "check")])
def test_an_unknown_kernel_is_status_2_with_a_proposal(command: tuple[str, ...], run) -> None:
    status, out, err = run(*command, NAME[:-1])
    assert (status, out) == (2, "")
    assert f"there is no kernel {NAME[:-1]!r}; did you mean" in err and NAME in err
    assert "see ptxgen list" in run(*command, "????")[2]


def test_render(run, tmp_path: Path) -> None:
    assert run("render", NAME) == (0, render(SPEC).rstrip("\n") + "\n", "")
    path = tmp_path / "kernel.cu"
    assert run("render", NAME, "-o", path)[0] == 0
    assert path.read_text() == render(SPEC)
    status, _, err = run("render", NAME, "-o", tmp_path / "no" / "kernel.cu")
    assert status == 1 and err.startswith("ptxgen: --output") and err.count("\n") == 1


def test_render_ptx(run) -> None:
    status, out, _ = run("render", NAME, "--ptx")
    assert status == 0 and f".visible .entry {NAME}(" in out and ".target sm_80" in out
    assert ".target sm_90a" in run("render", NAME, "--ptx", "compute_90a")[1]


def test_build(run, cache: Path) -> None:
    status, out, _ = run("build", NAME, "--arch", "sm_80", "--arch", "sm_90a")
    head, first, second, total = out.splitlines()
    assert status == 0
    assert head.split() == ["kernel", "arch", "regs", "spills", "shared", "bytes", "seconds"]
    assert [line.split()[:2] for line in (first, second)] == [[NAME, "sm_80"], [NAME, "sm_90a"]]
    assert float(first.split()[-1]) >= 0
    assert total.startswith("2 kernels, 2 compiled in")
    again = run("build", NAME, "--arch", "sm_80")[1].splitlines()
    assert again[1].split()[-1] == "cached"
    assert again[2].startswith("1 kernel, 0 compiled") and "1 from the cache" in again[2]
    for jobs in (-1, 0):
        status, out, err = run("build", NAME, "-j", jobs)
        assert (status, out) == (
            2,
            "",
        ) and err == f"ptxgen: {jobs} compilations at a time; takes 1 or more\n"


def test_build_for_a_gpu_that_nothing_serves(run, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = FakeGpu(compute=(13, 0), max_shared=227 << 10)
    monkeypatch.setattr("ptxgen.runtime.default_device", lambda: gpu)
    for argv in ((NAME,), ("--for", "linear", "1x3x2")):
        status, out, err = run("build", *argv)
        assert (status, out) == (1, "") and err.count("\n") == 1
        assert "compute capability 13.0" in err and "kernels for 8.0, 8.6" in err


def test_packages_that_are_missing_are_named(run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, advice in (("matplotlib", "'ptxgen[bench]', or"), ("torch", "torch\n")):
        monkeypatch.setitem(work._BENCHES, "gemm", ("ptxgen.bench.none", ""))

        def without(module: str, name: str = name) -> None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        monkeypatch.setattr(work.importlib, "import_module", without)
        status, _, err = run("bench", "gemm")
        assert status == 1 and f"the benchmark needs the package {name}," in err
        assert f"pip install {advice}" in err
        monkeypatch.undo()


def test_build_for_a_model(run, cache: Path) -> None:
    status, out, err = run("build", "--for", "linear", "1..40x66x4800", "--dtype", "f16")
    built = [line.split()[0] for line in out.splitlines()[1:-1]]
    expected = {}
    for m in range(1, 41):  # rows of 66 elements are 4 bytes off, and a row alone is not
        found = explain("linear", m, 4800, 66, dtype="f16", align=(16 if m == 1 else 4, 16))
        expected.update(dict.fromkeys(found.choice.kernels))
    assert status == 0 and built == list(expected) and len(built) > 1
    said = err.splitlines()[0]
    assert said.startswith("linear 1..40x66x4800 kn float16 on NVIDIA H200 (sm_90, 132 SMs): ")
    assert said.endswith(f"40 problems, served by {len(built)} kernels")


def test_build_for_elements_that_no_array_has(run, cache: Path) -> None:
    status, out, err = run("build", "--for", "int4_gemm", "1..3x4098x4096", "--layout", "rrr")
    expected = [  # rows of 4098 elements are 2049 bytes, and a row alone is aligned
        explain("int4_gemm", m, 4096, 4098, layout="rrr", align=(align, 16)).choice.kernels
        for m, align in ((1, 16), (2, 1))
    ]
    built = [line.split()[0] for line in out.splitlines()[1:-1]]
    assert status == 0 and built == list(dict.fromkeys(sum(expected, ()))) and len(built) > 1
    assert err.startswith("int4_gemm 1..3x4098x4096 rrr s4 on NVIDIA H200")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("linear", "xx1x1"), "sizes are 'xx1x1'; takes MxKxN"),
        (("linear", "5..1x1x1"), "sizes are '5..1x1x1'; takes"),
        (("linear", "0..1x1x1"), "sizes are '0..1x1x1'; takes"),
        (("linear", "1..999999999x1x1"), "takes up to 1000000"),
        (("lineal", "1x1x1"), "unknown operation 'lineal'"),
        (("linear", "1x1x1", "--layout", "xx"), "layout is 'xx'; takes"),
        (("linear", "1x1x1", "--dtype", "int4"), "--dtype is 'int4'; takes 'float32'"),
        (("linear", "1x1x1", "--tier", "tc"), "(tier 'tc')"),
        (("linear", "1x1x1", "--arch", "sm_80"), "takes no SPEC and no --arch"),
    ],
)  # fmt: skip
def test_build_for_nothing_is_one_line(argv: tuple[object, ...], said: str, run) -> None:
    status, out, err = run("build", "--for", *argv)
    assert (status, out) == (2, "") and said in err and err.count("\n") == 1


def test_a_compile_error_names_its_log(run, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ptxgen.build.render.render",
        lambda spec: f'extern "C" __global__ void {spec.name}() {{ oops; }}',
    )
    status, out, err = run("build", NAME, "--arch", "sm_90a")
    assert (status, out) == (1, "")
    said, where = err.splitlines()
    assert said.startswith(f"ptxgen: {NAME} for sm_90a:") and '"oops" is undefined' in said
    log = Path(where.rpartition(" ")[2])
    assert '"oops" is undefined' in log.read_text()
    log.unlink()
    log.with_suffix(".cu").unlink()


# -- routes --------------------------------------------------------------------------
@pytest.mark.parametrize("op", OPERATIONS)
def test_explain(op: str, run) -> None:
    status, out, _ = run("explain", op, "16x4096x128")
    assert status == 0 and out.startswith(f"{op} M=16 N=128 K=4096")
    assert len(out.splitlines()) <= 20 and "others correct as well" in out
    assert "predicted" in out and "\n  launch    one launch\n" in out
    whole = run("explain", op, "16x4096x128", "--all")[1]
    assert "winner: route" in whole and "also correct:" in whole
    found = json.loads(run("explain", op, "16x4096x128", "--align", "4,8", "--json")[1])
    winner = found["candidates"][found["choice"]["route"]]
    assert winner["kernels"] == found["choice"]["kernels"] and not winner["failures"]
    assert (found["values"]["ALIGN_A"], found["values"]["ALIGN_B"]) == (4, 8)


def test_explain_is_brief(run) -> None:
    status, out, _ = run("explain", "linear_wgrad", "8192x768x3072")
    assert status == 0
    found = explain("linear_wgrad", 8192, 3072, 768)
    for launch in found.launches:
        assert f"{launch.kernel}: grid {launch.grid}, block {launch.block}," in out
    assert f"scratch 'workspace': {found.scratch['workspace']} bytes\n" in out
    assert f"CHUNK {found.values['CHUNK']}, CHUNKS {found.values['CHUNKS']}" in out
    assert found.winner.prediction in out
    assert f"{len(found.also_correct)} others correct" in out


def test_explain_of_a_gpu_without_a_tuning(run) -> None:
    status, out, err = run("explain", "linear", "1x3x2", "--gpu", "NVIDIA A100")
    assert (status, out) == (2, "")
    assert "no tuning of 'NVIDIA A100' (of: " in err and "NVIDIA H200 with 132 SMs" in err
    own = ("--arch", "sm_80", "--sms", 108)
    status, out, _ = run("explain", "linear", "1x3x2", "--gpu", "NVIDIA A100", *own)
    said = "no tuning of NVIDIA A100 with 108 SMs: routed by its architecture"
    assert status == 0 and said in out
    assert said in run("explain", "linear", "1x3x2", "--gpu", "NVIDIA A100", *own, "--all")[1]
    assert said not in run("explain", "linear", "1x3x2", *own)[1]


def test_explain_takes_operands_of_16_bits_off_4_bytes(run) -> None:
    status, out, _ = run("explain", "linear", "8x11x9", "--dtype", "bf16", "--align", 2)
    assert status == 0 and "ALIGN_A 2, ALIGN_B 2" in out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("lineal", "1x1x1"), "unknown operation 'lineal'"),
        (("linear", "0x1x1"), "sizes are '0x1x1'; takes MxKxN, numbers from 1 on"),
        (("linear", "1x1x1", "--layout", "xx"), "layout is 'xx'"),
        (("linear", "1x1x1", "--arch", "sm_1"), "unknown architecture"),
        (("linear", "1x1x1", "--dtype", "int4"), "dtype is 'int4'; takes 'float32', "),
        (("linear", "1x1x1", "--sms", 0), "sms is 0; takes an integer, 1 or more"),
        (("linear", "1x1x1", "--sms", -5), "sms is -5; takes an integer, 1 or more"),
        (("linear", "1x1x1", "--align", 2), "operands of float32 are aligned to 4, 8, 16"),
    ],
)
def test_explain_errors_are_one_line(argv: tuple[object, ...], said: str, run) -> None:
    status, out, err = run("explain", *argv)
    assert (status, out) == (2, "") and said in err and err.count("\n") == 1


def test_generate(run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def generate(check: bool) -> list[Difference]:
        asked.append(check)
        return [Difference(Path("nn.py"), "stale", "-old\n+new")]

    monkeypatch.setattr("ptxgen.dispatch.emit.generate", generate)
    status, out, err = run("generate", "--check")
    assert status == 1 and "nn.py: stale" in out and "+new" in out and "`ptxgen generate`" in err
    assert run("generate") == (0, "nn.py: was stale\n", "")
    assert asked == [True, False]
    monkeypatch.setattr("ptxgen.dispatch.emit.generate", lambda check: [])
    assert run("generate", "--check")[0] == 0


def test_prove(run, monkeypatch: pytest.MonkeyPatch) -> None:
    good = Result("coverage", "nn", ("sm_80",), "", True, 0.5)
    bad = Result("grid", "nt", ("sm_80",), "route 1", False, 0.5, "too large", {"M": 7, "N": 9})

    def proving(*results: Result) -> None:
        def prove(of, report) -> list[Result]:
            for result in results:
                report(result)
            return list(results)

        monkeypatch.setattr("ptxgen.dispatch.prove.prove", prove)

    proving(good, good)
    status, out, err = run("prove")
    assert (status, out) == (0, "all 2 goals proved in 1.0 s\n")
    assert err == "nn on sm_80: 2 of 2 goals proved, 1.0 s\n"
    assert "ok   coverage nn" in run("prove", "--verbose")[1]
    proving(good, bad)
    status, out, err = run("prove")
    assert status == 1 and "too large [M=7, N=9]" in out and "1 of 2 goals failed" in err
    status, out, _ = run("prove", "--json")
    assert status == 1 and [r["ok"] for r in json.loads(out)] == [True, False]

    def without_z3(of, report) -> list[Result]:
        raise ModuleNotFoundError("No module named 'z3'", name="z3")

    monkeypatch.setattr("ptxgen.dispatch.prove.prove", without_z3)
    status, _, err = run("prove")
    assert status == 1 and "the package z3, " in err and "pip install 'ptxgen[test]'" in err


def test_prove_some_tables(run) -> None:
    pytest.importorskip("z3")
    status, out, err = run("prove", "logsum*", "gather")
    assert status == 0 and "goals proved" in out
    assert {line.split(" on ")[0] for line in err.splitlines()} == {"logsumexp", "gather"}
    status, _, err = run("prove", "nothing")
    assert status == 2 and "no table matches nothing; there are" in err and "logsumexp" in err


# -- cache, env, demo, bench ---------------------------------------------------------
def test_cache(run, cache: Path) -> None:
    assert json.loads(run("cache", "info", "--json")[1]) == {
        "root": str(cache), "entries": 0, "tuned": 0, "bytes": 0, "temporaries": 0, "distrust": "",
    }  # fmt: skip
    run("build", NAME)
    assert json.loads(run("cache", "info", "--json")[1])["entries"] == 1
    assert run("cache", "verify")[:2] == (0, "1 entries, all sound\n")
    (entry,) = cache.glob("*.kernel")
    entry.write_bytes(entry.read_bytes()[:-1])
    status, out, err = run("cache", "verify")
    assert status == 1 and str(entry) in out and "--remove" in err
    assert run("cache", "verify", "--remove")[0] == 1
    assert run("cache", "verify")[0] == 0 and not entry.exists()
    run("render", NAME, "--ptx")
    entries = len(list(cache.glob("*.kernel")))
    assert run("cache", "clear")[1] == f"removed {ui.plural(entries, 'file')} from {cache}\n"
    assert "0, 0 bytes" in run("cache", "info")[1]


@pytest.mark.skipif(sys.platform == "win32", reason="directories have no mode bits there")
def test_a_warning_is_one_line(run, cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    status, _, err = run("render", NAME, "--ptx")
    assert status == 0
    assert err.startswith(f"ptxgen: warning: the kernel cache {cache} is not used")
    assert err.count("\n") == 1
    assert "not used" in run("cache", "info")[1]


def test_env(run, cache: Path) -> None:
    found = json.loads(run("env", "--json")[1])
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["numpy"] == np.__version__
    assert found["nvrtc_pinned"] == (found["nvrtc"] == "13.0.88")
    assert found["cache"] == str(cache)
    assert {line.split()[0] for line in run("env")[1].splitlines()} >= {"ptxgen", "driver", "nvrtc"}


def test_env_without_a_compiler(run, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptxgen.errors import CompileError

    def missing() -> str:
        raise CompileError("NVRTC cannot be loaded")

    monkeypatch.setattr("ptxgen.build.compile.toolchain_version", missing)
    status, out, _ = run("env")
    assert status == 0 and "NVRTC cannot be loaded" in out


SMALL = ("--batch", 3, "--inputs", 5, "--outputs", 4)


def test_demo_computes_on_the_cpu_device(run, monkeypatch) -> None:
    named, fresh = runtime.get_device, CpuDevice()  # of what others have loaded it tells nothing
    monkeypatch.setattr(runtime, "get_device", lambda of, _: fresh if of == "cpu" else named(of))
    status, out, _ = run("demo", "--device", "cpu", *SMALL)
    assert status == 0
    assert re.findall("in (.+), forward", out) == ["float32", "float16"]
    assert out.count("have the same bits") == 2 * 4
    assert "device: cpu:0, PTX interpreter" in out
    assert out.count("against NumPy: all ") == 2 * 3
    assert "ran simt_" in out and re.search("ran (w?g?mma)_", out)
    status, out, _ = run("demo", "--device", "cpu", "--dtype", "bf16", *SMALL)
    assert status == 0 and re.findall("in (.+), forward", out) == ["bfloat16"]
    assert out.count("have the same bits") == 4
    assert run("demo", "--batch", 0)[0] == 2
    assert run("demo", "--device", "tpu")[0] == 2


def test_demo_says_how_far_it_is(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui, "_PLAIN_EVERY_S", 0.0)
    status, out, err = run("demo", "--device", "cpu", "--dtype", "float32", *SMALL)
    assert status == 0 and "each row of y, computed alone: 1/3, 0 s" in err
    steps = re.findall(r"^  (y|dx|dw) = .*: ran .* \([0-9.]+ s\)$", out, re.MULTILINE)
    assert steps == ["y", "dx", "dw"]


def test_demo_says_where_bits_differ(run, monkeypatch: pytest.MonkeyPatch) -> None:
    import ptxgen
    from ptxgen import reference

    def wrong(dy: np.ndarray, w: np.ndarray, layout: str) -> np.ndarray:
        result = reference.linear_dgrad(dy, w, layout=layout)
        result[1, 2] = np.nextafter(result[1, 2], np.float32(9))
        return result

    monkeypatch.setattr(ptxgen, "linear_dgrad", wrong, raising=False)
    status, out, _ = run("demo", "--device", "cpu", *SMALL)
    assert status == 1 and "1 of 15 results differ, first at (1, 2)" in out


def test_demo_tells_zeros_apart(capsys: pytest.CaptureFixture[str]) -> None:
    zero = np.zeros(3, np.float32)
    assert not work._compare("same", zero, zero)
    assert work._compare("sign", -zero, zero)
    assert "0x80000000" in capsys.readouterr().out


@pytest.mark.gpu
def test_demo_on_a_gpu(run) -> None:
    status, out, _ = run("demo")
    assert status == 0 and out.count("have the same bits") == 2 * 4
    assert "device: cuda:0" in out


def test_bench_passes_its_arguments_on(run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    module = SimpleNamespace(main=lambda argv: seen.append(argv) or 3)
    monkeypatch.setitem(sys.modules, "ptxgen.bench", SimpleNamespace(gemm=module))
    monkeypatch.setitem(sys.modules, "ptxgen.bench.gemm", module)
    assert run("bench", "gemm", "--shapes", "decode", "--help")[0] == 3
    assert seen == [["--shapes", "decode", "--help"]]
    assert run("bench", "dance")[0] == 2


# -- text on terminals ---------------------------------------------------------------
def test_tables_are_aligned() -> None:
    assert ui.table([("a", 7, None), ("long", 123, "x")], ("name", "n", "what")) == (
        "name    n  what\n"
        "a       7  -\n"
        "long  123  x"
    )  # fmt: skip
    assert ui.pairs([("a", 1), ("long", "two\nlines")]) == "  a     1\n  long  two\n        lines"


def test_sizes_and_plurals() -> None:
    assert [ui.size(n) for n in (0, 1023, 1024, 1536, 1 << 20, 5 << 30)] == [
        "0 bytes", "1023 bytes", "1.0 KiB", "1.5 KiB", "1.0 MiB", "5.0 GiB",
    ]  # fmt: skip
    assert (ui.plural(1, "kernel"), ui.plural(0, "kernel")) == ("1 kernel", "0 kernels")


def test_progress_in_a_pipe_is_rare(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 1.0, 4.0, 5.0, 6.0, 11.0])
    monkeypatch.setattr(ui, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with ui.Progress("compiling") as progress:
        for done in range(1, 6):
            progress(done, 9, SimpleNamespace(name="k"))
    assert capsys.readouterr().err == "compiling: 3/9, 5 s\ncompiling: 5/9, 11 s\n"


def test_progress_on_a_terminal_is_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    with ui.Progress("compiling") as progress:
        progress(1, 2, SimpleNamespace(name="n" * 99))
    drawn, cleared = capsys.readouterr().err.split("\x1b[K")[:2]
    assert drawn.startswith("\rcompiling [" + "#" * 12 + "." * 12 + "] 1/2")
    assert len(drawn) == 60 and cleared == "\r"


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal, pipe = SimpleNamespace(isatty=lambda: True), SimpleNamespace(isatty=lambda: False)
    assert ui.paint("x", "red", terminal) == "\x1b[31mx\x1b[0m"
    assert ui.paint("x", "red", pipe) == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert ui.paint("x", "red", terminal) == "x"
