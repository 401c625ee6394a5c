"""Goldens: what check finds, what update writes, what diff says, and the committed ones."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from ptxgen import golden, tiles
from ptxgen.build import compile as compile_module
from ptxgen.build.compile import Job
from ptxgen.build.targets import portable_target
from ptxgen.cli import main
from ptxgen.errors import CompileError, OptionError, PtxgenError
from ptxgen.expr import TRUE, Expr, const
from ptxgen.golden import Goldens, Record, Usage, instructions, load, rules, save, summary
from ptxgen.golden import fresh as fresh_module
from ptxgen.golden.ptx import entries, forbidden, local_depot
from ptxgen.numerics.contract import FMA, Contract
from ptxgen.spec import Expect, KernelSpec
from ptxgen.spec.abi import Abi, ptr

COMMITTED = golden.checkout_folder()
KERNELS = [*tiles.SPECS.values(), *tiles.PINNED.values()]
ARCHES = ("sm_80", "sm_90a", "sm_120")
RECORDS = "records/scale_f32.jsonl"

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@dataclass(frozen=True)
class Scale(KernelSpec):
    """A kernel small enough to compile in no time: out[i] = factor * in[i]."""

    factor: int
    body: str = field(default="", compare=False)
    dynamic: int = 0
    way: str = "plain"
    wants: tuple[Expect, ...] = ()
    min_arch: str = "sm_80"
    dtype: str = "f32"
    contract: Contract = FMA
    family: str = field(default="scale", init=False)

    @property
    def label(self) -> str:
        return ""

    @property
    def name(self) -> str:
        return f"scale_{self.factor}"

    @property
    def abi(self) -> Abi:
        return Abi((ptr("in", "const float*"), ptr("out", "float*")))

    @property
    def template(self) -> str:
        return "none"

    @property
    def threads(self) -> int:
        return 32

    @property
    def shared_bytes(self) -> int:
        return self.dynamic

    @property
    def grid(self) -> Expr:
        return const(1)

    @property
    def requires(self) -> Expr:
        return TRUE

    @property
    def expects(self) -> tuple[Expect, ...]:
        return self.wants

    def describe(self) -> tuple[str, ...]:
        return ("scales",)

    @property
    def source(self) -> str:
        return (
            f'extern "C" __global__ void {self.name}(const float* in, float* out)\n'
            f"{{ int i = threadIdx.x; {self.body} out[i] = in[i] * {self.factor}.0f; }}\n"
        )


# An array that is indexed by values lives in local memory.
LOCAL = """float a[64]; for (int j = 0; j < 64; j++) a[j] = in[j];
for (int j = 0; j < 64; j++) a[int(in[j])] += in[i + j]; out[i + 99] = a[int(in[i])];"""
FUSED = "out[i + 64] = __fmaf_rn(in[i], in[i], 1.0f);"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def specs(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, KernelSpec]]:
    """A registry of two kernels, of two ways to work, in the place of the real one."""
    monkeypatch.setattr(fresh_module, "render", lambda spec: spec.source)
    monkeypatch.setattr("ptxgen.build.render.source", lambda spec: spec.source)
    registry: dict[str, KernelSpec] = {s.name: s for s in (Scale(2), Scale(3, way="other"))}
    monkeypatch.setattr(tiles, "SPECS", registry)
    monkeypatch.setattr(tiles, "PINNED", {})
    yield registry


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*argv: object) -> tuple[int, str, str]:
        status = main([str(a) for a in argv])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def committed(tmp_path: Path, specs: dict[str, KernelSpec], run: Run) -> Path:
    """A folder with the goldens of ``specs``."""
    folder = tmp_path / "golden"
    assert run("golden", "update", "--golden", folder)[0] == 0
    return folder


@pytest.fixture
def check(committed: Path, run: Run) -> Callable[..., tuple[int, list[str]]]:
    """The status of golden check and, of its problems, kind, architecture and kernel."""

    def check(*arguments: str) -> tuple[int, list[str]]:
        status, out, _ = run("golden", "check", "--golden", committed, *arguments)
        assert re.fullmatch(r"\d sources? rendered: \d not as recorded", out.splitlines()[0])
        lines = [line.split(":")[0].split() for line in out.splitlines()[1:]]
        return status, [" ".join(words) for words in lines] if status else []

    return check


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels and architectures that the compiler is run for, past every cache."""
    seen: list[str] = []
    translate = compile_module._translate

    def counted(job: Job) -> object:
        if job.name != "probe":  # what asks for the compiler's version
            seen.append(f"{job.name} {job.arch}")
        return translate(job)

    monkeypatch.setattr(compile_module, "_translate", counted)
    return seen


def every(kind: str, name: str) -> list[str]:
    """Returns a problem's entries on every architecture, in the order of the listing."""
    return [f"{kind} {arch} {name}" for arch in sorted(ARCHES)]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_update_then_check(committed: Path, check) -> None:
    assert check() == (0, [])
    files = sorted(p.relative_to(committed).as_posix() for p in committed.rglob("*.*"))
    assert files == ["ptx/scale_2.ptx", "ptx/scale_3.ptx", "records/compiler.json", RECORDS]
    assert json.loads((committed / "records/compiler.json").read_text())["nvrtc"] == "13.0.88"
    # One line for each kernel and architecture, so that a change of one shows as one.
    rows = [json.loads(line) for line in (committed / RECORDS).read_text().splitlines()]
    assert [(row["kernel"], row["arch"]) for row in rows] == [
        (kernel, arch) for kernel in ("scale_2", "scale_3") for arch in ARCHES
    ]
    text = (committed / "ptx/scale_2.ptx").read_text()
    assert rows[0]["size"] == len(text) and rows[0]["mix"] == summary(text)
    assert rows[0]["registers"] > 0 and "spill_stores" not in rows[0]
    # Loading and saving is the identity.
    assert save(committed, load(committed)) == []


def test_update_is_repeatable_and_compiles_nothing(
    committed: Path, run: Run, compiled: list[str]
) -> None:
    before = {p: p.read_bytes() for p in committed.rglob("*.*")}
    status, out, err = run("golden", "update", "--golden", committed)
    assert (status, err, compiled) == (0, "", []) and out.startswith("goldens: 0 files changed")
    status, out, err = run("golden", "update", "--all", "--golden", committed)
    assert status == 0 and "compiling 2 kernels (all): 6 compilations on" in err
    assert {p: p.read_bytes() for p in committed.rglob("*.*")} == before


def test_update_compiles_only_what_changed(
    committed: Path, specs: dict[str, KernelSpec], run: Run
) -> None:
    specs["scale_2"] = Scale(2, body=FUSED)
    status, out, err = run("golden", "update", "--golden", committed)
    assert (
        status == 0
        and "compiling 1 kernel (changed, or without its text): 3 compilations on" in err
    )
    assert out.splitlines()[:-1] == ["ptx/scale_2.ptx", RECORDS]


def test_missing(committed: Path, specs: dict[str, KernelSpec], run: Run, check) -> None:
    specs["scale_5"] = Scale(5)
    assert check() == (1, every("missing", "scale_5"))
    # A check of another kernel alone does not mind.
    assert check("scale_2") == (0, [])
    assert check("scale_[23]") == (0, [])
    # An update of the new one alone leaves the others as they are.
    old = load(committed)
    status, out, _ = run("golden", "update", "--golden", committed, "scale_5")
    assert (status, out.splitlines()[:-1]) == (0, [RECORDS])  # scale_2 is its kind's text
    assert load(committed).only({"scale_2", "scale_3"}) == old
    assert check() == (0, [])


def test_a_removed_line_or_text_is_missing(committed: Path, run: Run, check) -> None:
    (committed / "ptx/scale_3.ptx").unlink()
    lines = (committed / RECORDS).read_text().splitlines(keepends=True)
    (committed / RECORDS).write_text("".join([lines[0], *lines[2:]]))
    assert check() == (1, ["missing sm_90a scale_2", "missing text scale_3"])
    assert run("golden", "update", "--golden", committed)[0] == 0
    assert (committed / RECORDS).read_text() == "".join(lines)
    assert check() == (0, [])


def test_orphan(committed: Path, specs: dict[str, KernelSpec], run: Run, check) -> None:
    del specs["scale_3"]
    assert check() == (1, [*every("orphan", "scale_3"), "orphan text scale_3"])
    # Even an update of another kernel removes it.
    assert run("golden", "update", "--golden", committed, "scale_2")[0] == 0
    assert not (committed / "ptx/scale_3.ptx").exists()
    assert check() == (0, [])


def test_text_is_kept_for_the_smallest_kernel_of_each_way_to_work(
    committed: Path, specs: dict[str, KernelSpec], run: Run, check
) -> None:
    specs["scale_9"] = Scale(9)
    specs["scale_1"] = Scale(1, dynamic=64)
    assert golden.read_by_people(specs.values()) == {"scale_2", "scale_3"}
    specs["scale_2"] = Scale(2, dynamic=64)
    assert golden.read_by_people(specs.values()) == {"scale_9", "scale_3"}
    assert run("golden", "update", "--golden", committed)[0] == 0
    assert sorted(p.stem for p in committed.glob("ptx/*")) == ["scale_3", "scale_9"]
    assert check() == (0, [])


def test_a_spec_that_does_not_fit_an_architecture_has_no_record_there(
    committed: Path, specs: dict[str, KernelSpec], run: Run, check
) -> None:
    specs["scale_2"] = Scale(2, dynamic=120 << 10)  # more than sm_120's 99 KiB
    assert check() == (
        1, ["orphan sm_120 scale_2", "stale sm_80 scale_2", "stale sm_90a scale_2"],
    )  # fmt: skip
    out = run("golden", "check", "--golden", committed)[1]
    assert "stale     sm_90a  scale_2: shared 0 -> 122880\n" in out
    assert run("golden", "update", "--golden", committed)[0] == 0
    assert load(committed).usage["sm_90a", "scale_2"].shared == 120 << 10
    assert check() == (0, [])


def test_a_kernel_for_hopper_has_hoppers_ptx() -> None:
    assert portable_target(Scale(2, min_arch="sm_90")) == "compute_90a"
    assert golden.arches(Scale(2, min_arch="sm_90")) == ("sm_90a", "sm_120")


def test_a_changed_source_is_compiled_and_found(
    committed: Path, specs: dict[str, KernelSpec], run: Run
) -> None:
    specs["scale_2"] = Scale(2, body=FUSED)
    status, out, err = run("golden", "check", "--golden", committed, "--sample", "0")
    assert status == 1
    assert "2 sources rendered: 1 not as recorded" in out
    assert re.search(r"stale     sm_80   scale_2: .*instructions \d+ -> \d+: .*fma.rn.f32 \+1", out)
    assert "scale_3" not in out
    assert "ptxgen golden diff" in err and "ptxgen golden update" in err


def test_a_source_that_changed_without_its_ptx_is_stale_until_updated(
    committed: Path, specs: dict[str, KernelSpec], run: Run, check
) -> None:
    specs["scale_2"] = Scale(2, body="/* said otherwise */")
    assert check() == (1, every("stale", "scale_2"))
    out = run("golden", "check", "--golden", committed)[1]
    assert "the source has changed, the PTX has not" in out
    assert run("golden", "update", "--golden", committed)[0] == 0
    assert check() == (0, [])


def test_nothing_is_compiled_but_a_sample_and_that_afresh(
    committed: Path, run: Run, compiled: list[str]
) -> None:
    def sampled(*arguments: str) -> set[str]:
        compiled.clear()
        status, _, err = run("golden", "check", "--golden", committed, *arguments)
        assert status == 0 and ("--seed" in err) == bool(compiled and "--all" not in arguments)
        return set(compiled)

    assert sampled("--sample", "0") == set()
    one = "--sample", "1", "--seed"
    for seed in "abc":
        (kernel,) = {job.split()[0] for job in sampled(*one, seed)}
        assert sampled(*one, seed) == {f"{kernel} {arch}" for arch in ARCHES}
    assert {next(iter(sampled(*one, seed))).split()[0] for seed in "abcdefgh"} == {
        "scale_2", "scale_3",
    }  # fmt: skip
    everything = {f"{kernel} {arch}" for kernel in ("scale_2", "scale_3") for arch in ARCHES}
    assert sampled("--sample", "2") == sampled("--all") == everything


def test_the_sample_is_compared(committed: Path, run: Run, check) -> None:
    """A record that is consistent, and wrong: only compiling can tell."""
    goldens = load(committed)
    key = ("sm_90a", "scale_2")
    wrong = replace(goldens.records[key], usage=replace(goldens.usage[key], registers=99))
    save(committed, replace(goldens, records={**goldens.records, key: wrong}))
    assert check("--sample", "0") == (0, [])
    for arguments in (("--sample", "2"), ("--all",)):
        assert check(*arguments) == (1, ["stale sm_90a scale_2"])
    assert run("golden", "update", "--golden", committed)[0] == 0  # which trusts the record
    assert check("--all")[0] == 1
    assert run("golden", "update", "--all", "--golden", committed)[0] == 0
    assert check("--all") == (0, [])


@pytest.mark.parametrize("what", ["registers", "size", "ptx", "inputs", "mix"])
def test_an_edited_line_is_found_by_every_check(committed: Path, run: Run, check, what) -> None:
    lines = (committed / RECORDS).read_text().splitlines()
    row = json.loads(lines[1])
    value = row[what]
    row[what] = (
        value + 1 if isinstance(value, int) else {**value, "ret": 7} if what == "mix" else "0" * 32
    )
    (committed / RECORDS).write_text("\n".join([lines[0], json.dumps(row), *lines[2:], ""]))
    assert check("--sample", "0") == (1, ["stale sm_90a scale_2"])
    assert run("golden", "update", "--golden", committed)[0] == 0
    assert (committed / RECORDS).read_text().splitlines() == lines


def test_one_changed_byte_of_a_text_is_stale(committed: Path, run: Run, check) -> None:
    edit(committed / "ptx/scale_3.ptx", "0f40400000", "0f40400001")  # 3.0
    assert check("--sample", "0") == (1, ["stale text scale_3"])
    run("golden", "update", "--golden", committed)
    assert check("--sample", "0") == (0, [])


def test_another_compiler_is_stale_and_refused(
    committed: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(committed / "records/compiler.json", "13.0.88", "12.9.41")
    status, out, err = run("golden", "check", "--golden", committed)
    assert status == 1 and "made with NVRTC 12.9.41, pinned is 13.0.88" in out
    assert "compiling" not in err
    status, _, err = run("golden", "update", "--golden", committed, "scale_2")
    assert status == 2 and "update all kernels at once" in err
    # Another pin is in the digest of every record.
    pinned = replace(compile_module.TOOLCHAIN, nvrtc="12.9.41")
    monkeypatch.setattr(fresh_module, "TOOLCHAIN", pinned)
    assert len(golden.changed(load(committed), tiles.SPECS.values())) == 2

    monkeypatch.setattr(compile_module, "toolchain_version", lambda: "13.1.1")
    with pytest.raises(CompileError, match=r"goldens are made with NVRTC 13\.0\.88"):
        golden.build([])
    assert run("golden", "check", "--golden", committed)[0] == 1


def test_other_options_change_every_input(
    committed: Path, specs: dict[str, KernelSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = load(committed)
    assert golden.changed(stored, specs.values()) == []
    options = (*compile_module.BASE_OPTIONS, "--generate-line-info")
    monkeypatch.setattr(compile_module, "BASE_OPTIONS", options)
    assert golden.changed(stored, specs.values()) == list(specs.values())


def test_local_memory_needs_a_reason_and_a_reason_needs_local_memory(
    committed: Path, specs: dict[str, KernelSpec], run: Run, check
) -> None:
    specs["scale_2"] = Scale(2, body=LOCAL)
    status, _, err = run("golden", "update", "--golden", committed)
    assert status == 1 and "accepted_spills.json has no reason" in err
    assert check() == (1, every("spill", "scale_2"))

    accepted = committed / "accepted_spills.json"
    accepted.write_text(json.dumps({"scale_2": dict.fromkeys(ARCHES, "indexes an array")}))
    assert check() == (0, [])
    accepted.write_text(json.dumps({"scale_2": dict.fromkeys(ARCHES, " ")}))
    assert check() == (1, every("spill", "scale_2"))  # an empty reason is none

    accepted.write_text(
        json.dumps({"scale_2": dict.fromkeys(ARCHES, "indexed"), "scale_3": {"sm_80": "why"}})
    )
    assert check() == (1, ["unneeded sm_80 scale_3"])
    run("golden", "update", "--golden", committed)
    assert "why" in accepted.read_text()  # people's words are theirs to change


def test_forbidden_instructions_are_found(
    committed: Path, specs: dict[str, KernelSpec], run: Run, check
) -> None:
    specs["scale_2"] = Scale(2, body="atomicAdd(out, 1.0f);")
    status, _, err = run("golden", "update", "--golden", committed)
    assert status == 1 and "atomics" in err
    # The record says so, whether the kernel is compiled again or not.
    assert check("--sample", "0") == (1, every("forbidden", "scale_2"))


def test_what_a_spec_expects_is_looked_for(
    committed: Path, specs: dict[str, KernelSpec], run: Run, check
) -> None:
    early = Expect("griddepcontrol.wait", since="sm_90")
    specs["scale_2"] = Scale(2, wants=(Expect("mul.rn.f32", ("mul.*",)), early))
    lacking = [
        f"lacks {arch} scale_2" for arch in sorted(ARCHES) for what in (1, 2)
        if (arch, what) != ("sm_80", 2)
    ]  # fmt: skip
    assert check("--sample", "0") == (1, lacking)  # x * 2 is x + x to NVRTC
    wait = 'asm volatile("griddepcontrol.wait;"); out[i + 9] = __fmul_rd(in[i], 3.0f);'
    guarded = f"\n#if __CUDA_ARCH__ >= 900\n{wait}\n#endif\n"
    specs["scale_2"] = Scale(2, body=guarded, wants=(Expect("add.rn.f32", ("mul.*",)), early))
    assert run("golden", "update", "--golden", committed)[0] == 1
    out = run("golden", "check", "--sample", "0", "--golden", committed)[1]
    assert "1 x mul.rm.f32: the spec expects add.rn.f32 in its place" in out
    assert check("--sample", "0") == (
        1, ["forbidden sm_120 scale_2", "forbidden sm_90a scale_2"],
    )  # fmt: skip


def test_unreadable_records(committed: Path, run: Run) -> None:
    for text in ("{", "[]", '{"kernel": "a", "arch": "sm_80"}'):
        (committed / RECORDS).write_text(text)
        with pytest.raises(PtxgenError, match=f"{RECORDS} of .* cannot be read"):
            load(committed)
    assert run("golden", "check", "--golden", committed)[0] == 1
    (committed / "accepted_spills.json").write_text("[1]")
    (committed / RECORDS).write_text("")
    with pytest.raises(PtxgenError, match=r"accepted_spills.json of .* cannot be read"):
        load(committed)


def test_patterns(committed: Path, run: Run) -> None:
    status, out, _ = run("golden", "check", "--golden", committed, "scale_*")
    assert status == 0 and "goldens: 2 kernels as committed" in out
    status, _, err = run("golden", "check", "--golden", committed, "other_*")
    assert (status, err) == (2, "ptxgen: no kernel matches 'other_*'; see ptxgen list\n")


# -- diff ------------------------------------------------------------------------
def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    subprocess.run(("git", *identity, *arguments), cwd=folder, check=True)


# Stands for the package as it was: it makes the PTX of what is in sources/.
PACKAGE = f"""
import sys
sys.path.remove(sys.path[0])
sys.modules.pop("ptxgen", None)
sys.path.insert(0, {str(Path(golden.__file__).parents[2])!r})
from pathlib import Path
from ptxgen.build.compile import compile_ptx
_, command, kernel, _, target, _, output = sys.argv
assert command == "render"
source = (Path(__file__).parent / "sources" / kernel).read_text()
Path(output).write_text(compile_ptx(source, name=kernel, arch=target).text)
"""


@pytest.fixture
def repository(committed: Path, specs: dict[str, KernelSpec]) -> Path:
    """A repository of one commit: goldens, and a package that makes their kernels."""
    package = committed.parent / "ptxgen"
    (package / "sources").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(PACKAGE)
    for name, spec in specs.items():
        (package / "sources" / name).write_text(spec.source)
    git(committed.parent, "init", "-q")
    git(committed.parent, "add", ".")
    git(committed.parent, "commit", "-qm", "one")
    return committed


@needs_git
def test_no_difference(repository: Path, run: Run, compiled: list[str]) -> None:
    assert run("golden", "diff", "--exit-code", "--golden", repository) == (
        0, "", "goldens: no difference\n",
    )  # fmt: skip
    assert compiled == []


@needs_git
def test_diff_says_numbers_then_text(
    repository: Path, specs: dict[str, KernelSpec], run: Run
) -> None:
    specs["scale_2"] = Scale(2, body=FUSED, dynamic=64)
    specs["scale_7"] = Scale(7)
    del specs["scale_3"]
    status, out, err = run("golden", "diff", "--golden", repository)
    assert status == 0  # a difference is no failure, unless asked for
    assert run("golden", "diff", "--exit-code", "--golden", repository)[0] == 1
    assert err.endswith("goldens: 1 added, 1 removed, 1 changed\n")
    numbers, text = out.split("\n\n", 1)
    head, line = numbers.splitlines()[:2]
    assert head == "changed  scale_2"
    assert line.startswith("  sm_80, sm_90a: registers ") and "shared 0 -> 64" in line
    assert "fma.rn.f32 +1" in line and "st.global.f32 +1" in line
    assert "removed  scale_3" in numbers and "added    scale_7" in numbers
    assert text.startswith("--- scale_2 for sm_80, HEAD\n+++ scale_2 for sm_80, now\n@@")
    assert any(line.startswith("+") and "fma.rn.f32" in line for line in text.splitlines())
    assert "scale_7" not in text  # all of it is new: the numbers say so

    stat = run("golden", "diff", "--stat", "--golden", repository)[1]
    assert stat.rstrip() == numbers
    one = run("golden", "diff", "--stat", "--golden", repository, "scale_2")[1]
    assert one.splitlines() == numbers.splitlines()[:3]


@needs_git
def test_diff_makes_both_sides(repository: Path, specs: dict[str, KernelSpec], run: Run) -> None:
    """Without stored texts, the old side of a diff is made by the old revision's code, the new one
    by today's.
    """
    for name in specs:
        (repository / f"ptx/{name}.ptx").unlink()
    git(repository.parent, "commit", "-qam", "no texts")
    specs["scale_2"] = Scale(2, body=FUSED)
    specs["scale_3"] = Scale(3, body=FUSED + "out[i + 65] = __fmaf_rd(in[i], in[i], 2.0f);")
    status, out, err = run("golden", "diff", "--golden", repository, "--limit", "1")
    assert status == 0
    # The one that changed most, and how many are not shown.
    assert "no text" not in err, err
    text = out.split("\n\n", 1)[1]
    assert text.startswith("--- scale_3 for sm_80, HEAD")
    assert [line for line in text.splitlines() if line.startswith("+") and "fma.rm" in line]
    assert "text of 1 more kernel is not shown; --limit N shows N" in err

    # Code that does not make the kernel is said, and numbers stay.
    (repository.parent / "ptxgen/sources/scale_2").unlink()
    git(repository.parent, "commit", "-qam", "lost")
    out, err = run("golden", "diff", "--golden", repository, "scale_2")[1:]
    assert "changed  scale_2" in out and "---" not in out
    assert "no text of scale_2: the code of HEAD does not make scale_2: FileNotFound" in err


@needs_git
def test_diff_between_revisions(
    repository: Path, specs: dict[str, KernelSpec], run: Run, compiled: list[str]
) -> None:
    specs["scale_2"] = Scale(2, dynamic=64)
    assert run("golden", "update", "--golden", repository)[0] == 0
    compiled.clear()
    diff = ("golden", "diff", "--golden", repository, "--against")
    wanted = "changed  scale_2\n  sm_80, sm_90a, sm_120: shared 0 -> 64\n"
    assert run(*diff, "HEAD")[1] == wanted
    git(repository.parent, "commit", "-qam", "two")
    assert run(*diff, "HEAD~1", "--to", "HEAD")[1] == wanted
    assert run(*diff, "HEAD")[1] == ""
    # A change that is taken back is known from the older side.
    specs["scale_2"] = Scale(2)
    assert run(*diff, "HEAD~1")[1] == ""
    assert compiled == []
    status, _, err = run(*diff, "nowhere")
    assert status == 2 and "no golden/ in revision 'nowhere'" in err


@needs_git
def test_diff_against_a_revision_that_had_all_ptx_as_text(
    repository: Path, specs: dict[str, KernelSpec], run: Run
) -> None:
    goldens = load(repository)
    (repository / "compute_80").mkdir()
    for name, text in goldens.texts.items():
        (repository / f"compute_80/{name}.ptx").write_text(text)
    uses = {name: {arch: vars(goldens.usage[arch, name]) for arch in ARCHES} for name in specs}
    resources = {"nvrtc": "13.0.88", "kernels": uses}
    shutil.rmtree(repository / "records")
    shutil.rmtree(repository / "ptx")
    shutil.rmtree(repository.parent / "ptxgen/sources")  # the text is all there is
    (repository / "resources.json").write_text(json.dumps(resources))
    git(repository.parent, "add", "-A")
    git(repository.parent, "commit", "-qm", "as it was")
    assert run("golden", "diff", "--golden", repository)[1] == ""
    specs["scale_2"] = Scale(2, body=FUSED)
    out = run("golden", "diff", "--golden", repository)[1]
    assert out.startswith("changed  scale_2\n  sm_80: ") and "fma.rn.f32 +1" in out
    assert "\n--- scale_2 for sm_80, HEAD\n" in out and "removed" not in out


def record(mix: dict[str, int], ptx: str = "", **use: int) -> Record:
    usage = Usage(**{"registers": 126, "spill_stores": 0, "spill_loads": 0, "stack": 0,
                     "shared": 49152, **use})  # fmt: skip
    return Record("g", "i", ptx or "p", 1, usage, 0, mix)


def numbers(old: dict[str, Record], new: dict[str, Record]) -> tuple[str, ...]:
    """Returns the numbers that the diff of two golden files reports for one kernel."""
    (change,) = golden.changes(
        *(Goldens(records={(arch, "k"): r for arch, r in side.items()}) for side in (old, new))
    )
    return change.numbers


def test_numbers_name_only_what_changed() -> None:
    old = record({"fma.rn.f32": 2, "bra": 1})
    assert numbers(
        {"sm_80": old, "sm_90a": old}, {"sm_80": old, "sm_90a": record({}, registers=128, stack=8)}
    ) == ("sm_90a: registers 126 -> 128, stack 0 -> 8",)
    assert numbers({"sm_80": old}, {"sm_80": record({"fma.rn.f32": 5}, "q")}) == (
        "sm_80: instructions 3 -> 5: fma.rn.f32 +3, bra -1",
    )
    assert numbers({"sm_80": old}, {"sm_80": replace(old, ptx="q")}) == (
        "sm_80: the same instructions in another order or otherwise used",
    )
    many = record({f"op{i}": 1 for i in range(11)}, "q")
    assert numbers({"sm_80": record({})}, {"sm_80": many})[0].endswith("op6 +1, and 3 more")


# -- text with the names of the other side ----------------------------------------
def kernel_text(steps: list[str]) -> str:
    """PTX as NVRTC numbers it: by order of appearance."""
    names: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"%f{len(names) + 1}")

    return re.sub(r"%\w+", number, "\n".join(steps)) + "\n"


STEPS = [
    line
    for i in range(60)
    for line in (
        f"ld.shared.f32 %a{i}, [%base];",
        f"fma.rn.f32 %s{i + 1}, %a{i}, %b{i}, %s{i};",
        f"fma.rn.f32 %t{i + 1}, %a{i}, %c{i}, %t{i};",
    )
]


@needs_git
def test_an_inserted_instruction_is_one_line() -> None:
    old = kernel_text(STEPS)
    inserted = [*STEPS[:7], "add.rn.f32 %new, %a1, %b1;", *STEPS[7:]]
    new = kernel_text(inserted)
    raw = sum(a != b for a, b in zip(old.splitlines(), new.splitlines(), strict=False))
    assert raw > 150  # what a plain diff would show
    lines = golden.text_diff(old, new)
    assert lines[:2] == ["--- old", "+++ new"]
    changed = [line for line in lines[2:] if line[0] in "+-"]
    assert len(changed) == 1 and changed[0].startswith("+add.rn.f32 %f")
    # The new register has a name that no other has.
    (name,) = re.findall(r"(%f\d+), %f\d+, %f\d+;", changed[0])
    assert name not in old
    assert golden.text_diff(old, old) == []


@needs_git
def test_a_changed_operand_is_not_renamed_away() -> None:
    old = kernel_text(STEPS)
    swapped = [*STEPS]
    swapped[40] = "fma.rn.f32 %s14, %a13, %c13, %s13;"
    lines = golden.text_diff(old, kernel_text(swapped))
    changed = [line for line in lines[2:] if line[0] in "+-"]
    assert 2 <= len(changed) <= 4 and all("fma.rn.f32" in line for line in changed)


@needs_git
def test_labels_and_kinds_of_registers_keep_their_kind() -> None:
    old = "$L__BB0_1:\nmov.u32 %r1, %tid.x;\ncvt.u16.u32 %rs1, %r1;\nbra $L__BB0_1;\n"
    new = "$L__BB0_7:\nmov.u32 %r5, %tid.x;\ncvt.u16.u32 %rs9, %r5;\nbra $L__BB0_7;\n"
    assert golden.renamed(old, new) == old
    fresh = golden.renamed(old, new + "mov.u32 %r1, %r5;\n").splitlines()[-1]
    assert re.fullmatch(r"mov.u32 %r[2-9]\d*, %r1;", fresh)


# -- reading PTX -----------------------------------------------------------------
PTX = """\
.version 9.0
.extern .shared .align 16 .b8 smem[];
.visible .entry k(
	.param .u64 k_param_0
)
.maxntid 256
{
	.reg .pred 	%p<3>;
	.reg .f32 	%f<9>;
$L__BB0_1: // the loop; ends here
	.pragma "nounroll";
	@!%p1 bra 	$L__BB0_2;
	ld.shared.v4.f32 	{%f1, %f2, %f3, %f4}, [%r1];
	// begin inline asm
	{ .reg .b32 t; cp.async.cg.shared.global [%r2], [%rd1], 16; cp.async.commit_group; }
	// end inline asm
	fma.rn.f32 %f1, %f2, %f3, %f1; fma.rn.f32 %f2, %f2, %f3, %f1;
	{ // callseq 0
	.param .b64 param0;
	call.uni (retval0),
	helper,
	(param0);
	}
$L__BB0_2:
	bar.sync 	0;
	/* atom.add.f32 in a comment */
	ret;
}
"""


def test_instructions_are_counted() -> None:
    assert dict(instructions(PTX)) == {
        "bra": 1,
        "ld.shared.v4.f32": 1,
        "cp.async.cg.shared.global": 1,
        "cp.async.commit_group": 1,
        "fma.rn.f32": 2,
        "call.uni": 1,
        "bar.sync": 1,
        "ret": 1,
    }
    assert entries(PTX) == ["k"]
    assert forbidden(summary(PTX)) == []
    assert forbidden({"ld.acquire.cta.shared.u32": 1, "st.volatile.shared.u32": 1}) == []


@pytest.mark.parametrize(
    "statement",
    [
        "atom.global.add.f32 %f1, [%rd1], %f2;",
        "@%p1 red.global.add.f32 [%rd1], %f2;",
        "multimem.red.add.f32 [%rd1], %f2;",
        "ld.acquire.gpu.global.u32 %r1, [%rd1];",
        "ld.relaxed.sys.u32 %r1, [%rd1];",
        "st.release.gpu.global.u32 [%rd1], %r1;",
        "st.volatile.global.u32 [%rd1], %r1;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], 16;",
        "ex2.approx.f32 %f1, %f2;",
        "ex2.approx.ftz.f32 %f1, %f2;",
        "div.full.f32 %f1, %f2, %f3;",
        "fma.rn.ftz.f32 %f1, %f2, %f3, %f4;",
        "L: { atom.shared.cas.b32 %r1, [%r2], %r3, %r4;",
    ],
)
def test_what_is_forbidden(statement: str) -> None:
    assert len(forbidden(summary(PTX.replace("bar.sync \t0;", statement)))) >= 1


def test_a_measured_approximation_is_allowed_where_a_spec_expects_it() -> None:
    mix = summary(PTX.replace("bar.sync \t0;", "ex2.approx.ftz.f32 %f1, %f2;"))
    assert len(forbidden(mix)) == 2
    assert forbidden(mix, {"ex2.approx.ftz.f32"}) == []
    mix = summary(PTX.replace("bar.sync \t0;", "ex2.approx.f32 %f1, %f2;"))
    assert len(forbidden(mix, {"ex2.approx.f32"})) == 1


def test_local_depots_are_measured() -> None:
    text = "{\n\t.local .align 16 .b8 \t__local_depot0[256];\n\t.reg .b64 %SP;\n"
    assert local_depot(text) == 256
    assert local_depot(PTX) == 0


def test_records_keep_the_shape_of_products() -> None:
    assert summary(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}; wgmma.fence.sync.aligned;"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%f1}; add.s32 %r1, %r2, %r3;"
        "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1]; add.s64 %rd1, %rd2, %rd3;"
    ) == {
        "mbarrier.try_wait": 1,
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": 1,
        "other": 2,
        "wgmma.fence": 1,
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16": 1,
    }


def test_a_kernel_must_export_its_own_name() -> None:
    (problem,) = rules(Goldens(texts={"other": PTX}), [])
    assert (problem.kind, problem.kernel) == ("forbidden", "other")


# -- where goldens are --------------------------------------------------------------
def test_outside_of_a_checkout(
    tmp_path: Path, committed: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "site/ptxgen/golden"
    shutil.copytree(committed / "records", installed / "records")
    monkeypatch.setattr("ptxgen.golden.store.__file__", str(installed / "store.py"))
    with pytest.raises(OptionError, match="--golden DIR"):
        golden.checkout_folder()
    # What a wheel has: the numbers.
    assert golden.recorded().usage == load(committed).usage != {}
    for action in ("check", "update", "diff"):
        status, out, err = run("golden", action)
        assert (status, out) == (2, "") and "this wants a checkout" in err, action


@pytest.mark.skipif(find_spec("hatchling") is None, reason="needs the build backend, hatchling")
def test_a_wheel_has_the_records(tmp_path: Path) -> None:
    build = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", build, tmp_path], cwd=COMMITTED.parent, check=True, timeout=120
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if "/records/" in name}
    assert names == {
        f"ptxgen/golden/records/{path.name}" for path in (COMMITTED / "records").iterdir()
    }


# -- the committed goldens ---------------------------------------------------------
# That they are fresh is the work of `ptxgen golden check`, which `make test` runs.
def test_the_committed_goldens_obey() -> None:
    assert [str(p) for p in golden.check(load(COMMITTED), Goldens(), KERNELS)] == []


def test_every_family_says_what_it_expects() -> None:
    lacking = {spec.family for spec in tiles.SPECS.values() if not spec.expects}
    assert lacking == set()


def test_the_committed_text_is_little() -> None:
    sizes = {p: p.stat().st_size for p in COMMITTED.rglob("*") if p.is_file()}
    assert sum(sizes.values()) < 28 << 18, "goldens are for people: few texts, short lines"


def test_the_smallest_golden_is_fresh() -> None:
    stored = load(COMMITTED)
    (_, name), _ = min(stored.records.items(), key=lambda item: item[1].size)
    fresh = golden.build([tiles.SPECS[name]], cache=None)
    assert fresh.records == {key: r for key, r in stored.records.items() if key[1] == name}
