"""Goldens: what check finds, what update writes, what diff says, and the committed ones."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from ptxgen import golden, tiles
from ptxgen.cli import main
from ptxgen.errors import CompileError, OptionError, PtxgenError
from ptxgen.expr import TRUE, Expr, const
from ptxgen.golden import Goldens, Usage, instructions, load, rules, save
from ptxgen.golden import fresh as fresh_module
from ptxgen.golden.ptx import entries, forbidden, local_depot
from ptxgen.numerics.contract import FMA, Contract
from ptxgen.spec import KernelSpec

COMMITTED = golden.checkout_folder()


@dataclass(frozen=True)
class Scale(KernelSpec):
    """A kernel small enough to compile in no time: out[i] = factor * in[i]."""

    factor: int
    body: str = ""
    dynamic: int = 0
    min_arch: str = "sm_80"
    dtype: str = "f32"
    contract: Contract = FMA
    family: str = field(default="scale", init=False)

    @property
    def name(self) -> str:
        return f"scale_{self.factor}"

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


@pytest.fixture
def specs(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, KernelSpec]]:
    """A registry of two kernels in the place of the real one."""
    monkeypatch.setattr(fresh_module, "render", lambda spec: spec.source)
    registry: dict[str, KernelSpec] = {s.name: s for s in (Scale(2), Scale(3))}
    monkeypatch.setattr(tiles, "SPECS", registry)
    yield registry


def run(capsys: pytest.CaptureFixture[str], *argv: object) -> tuple[int, str, str]:
    status = main([str(a) for a in argv])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture
def committed(
    tmp_path: Path, specs: dict[str, KernelSpec], capsys: pytest.CaptureFixture[str]
) -> Path:
    """A folder with the goldens of ``specs``."""
    folder = tmp_path / "golden"
    assert run(capsys, "golden", "update", "--golden", folder)[0] == 0
    return folder


def check(capsys: pytest.CaptureFixture[str], folder: Path, *names: str) -> tuple[int, list[str]]:
    """The status of golden check and, of its problems, kind, architecture and kernel."""
    status, out, _ = run(capsys, "golden", "check", "--golden", folder, *names)
    lines = [line.split(":")[0].split() for line in out.splitlines()]
    return status, [" ".join(words) for words in lines] if status else []


ARCHES = ("compute_80", "sm_120", "sm_80", "sm_90a")


def test_update_then_check(committed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, committed) == (0, [])
    files = sorted(p.relative_to(committed).as_posix() for p in committed.rglob("*.*"))
    assert files == ["compute_80/scale_2.ptx", "compute_80/scale_3.ptx", "resources.json"]
    text = (committed / "resources.json").read_text()
    recorded = json.loads(text)
    assert recorded["nvrtc"] == "13.0.88"
    assert list(recorded["kernels"]["scale_2"]) == ["sm_80", "sm_90a", "sm_120"]
    assert recorded["kernels"]["scale_2"]["sm_80"].keys() == {
        "registers", "spill_stores", "spill_loads", "stack", "shared",
    }  # fmt: skip
    # One line for each kernel and architecture, so that a change of one shows as one.
    assert len([line for line in text.splitlines() if '"registers"' in line]) == 2 * 3
    # Loading and saving is the identity.
    assert save(committed, load(committed)) == []


def test_update_is_repeatable(committed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {p: p.read_bytes() for p in committed.rglob("*.*")}
    status, out, _ = run(capsys, "golden", "update", "--golden", committed)
    assert status == 0 and out.startswith("goldens: 0 files changed")
    assert {p: p.read_bytes() for p in committed.rglob("*.*")} == before


def test_missing(
    committed: Path, specs: dict[str, KernelSpec], capsys: pytest.CaptureFixture[str]
) -> None:
    specs["scale_5"] = Scale(5)
    assert check(capsys, committed) == (1, [f"missing {a} scale_5" for a in ARCHES])
    # A check of another kernel alone does not mind.
    assert check(capsys, committed, "scale_2") == (0, [])
    # An update of the new one alone leaves the others as they are.
    old = (committed / "compute_80/scale_2.ptx").stat().st_mtime_ns
    status, out, _ = run(capsys, "golden", "update", "--golden", committed, "scale_5")
    assert (status, out.splitlines()[:-1]) == (0, ["compute_80/scale_5.ptx", "resources.json"])
    assert (committed / "compute_80/scale_2.ptx").stat().st_mtime_ns == old
    assert check(capsys, committed) == (0, [])


def test_a_removed_file_is_missing(committed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (committed / "compute_80/scale_3.ptx").unlink()
    assert check(capsys, committed) == (1, ["missing compute_80 scale_3"])


def test_orphan(
    committed: Path, specs: dict[str, KernelSpec], capsys: pytest.CaptureFixture[str]
) -> None:
    del specs["scale_3"]
    assert check(capsys, committed) == (1, [f"orphan {a} scale_3" for a in ARCHES])
    # Even an update of another kernel removes it.
    assert run(capsys, "golden", "update", "--golden", committed, "scale_2")[0] == 0
    assert not (committed / "compute_80/scale_3.ptx").exists()
    assert check(capsys, committed) == (0, [])


def test_orphan_in_an_unknown_target(committed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (committed / "compute_70").mkdir()
    (committed / "compute_80/scale_2.ptx").rename(committed / "compute_70/scale_2.ptx")
    assert check(capsys, committed) == (
        1, ["orphan compute_70 scale_2", "missing compute_80 scale_2"],
    )  # fmt: skip


def test_a_spec_that_does_not_fit_an_architecture_has_no_resources_there(
    committed: Path, specs: dict[str, KernelSpec], capsys: pytest.CaptureFixture[str]
) -> None:
    specs["scale_2"] = Scale(2, dynamic=120 << 10)  # more than sm_120's 99 KiB
    status, problems = check(capsys, committed)
    assert status == 1
    assert problems == ["orphan sm_120 scale_2", "stale sm_80 scale_2", "stale sm_90a scale_2"]
    out = run(capsys, "golden", "check", "--golden", committed)[1]
    assert "stale     sm_90a      scale_2: shared 0 -> 122880\n" in out
    assert run(capsys, "golden", "update", "--golden", committed)[0] == 0
    assert load(committed).usage["sm_90a", "scale_2"].shared == 120 << 10


def test_a_kernel_for_hopper_has_hoppers_ptx() -> None:
    assert golden.targets(Scale(2, min_arch="sm_90")) == ("compute_90a",)
    assert golden.arches(Scale(2, min_arch="sm_90")) == ("sm_90a", "sm_120")


def test_stale(
    committed: Path, specs: dict[str, KernelSpec], capsys: pytest.CaptureFixture[str]
) -> None:
    specs["scale_2"] = Scale(2, body="out[i + 64] = __fmaf_rn(in[i], in[i], 1.0f);")
    status, out, err = run(capsys, "golden", "check", "--golden", committed)
    assert status == 1
    assert "stale     compute_80  scale_2: its PTX has changed" in out
    assert "scale_3" not in out
    assert "ptxgen golden diff" in err and "ptxgen golden update" in err


def test_one_changed_byte_is_stale(committed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = committed / "compute_80/scale_3.ptx"
    text = path.read_text()
    assert "0f40400000" in text  # 3.0
    path.write_text(text.replace("0f40400000", "0f40400001"))
    assert check(capsys, committed) == (1, ["stale compute_80 scale_3"])


def test_another_compiler_is_stale_and_refused(
    committed: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = committed / "resources.json"
    path.write_text(path.read_text().replace("13.0.88", "12.9.41"))
    status, out, _ = run(capsys, "golden", "check", "--golden", committed)
    assert status == 1 and "made with NVRTC 12.9.41, pinned is 13.0.88" in out
    status, _, err = run(capsys, "golden", "update", "--golden", committed, "scale_2")
    assert status == 1 and "update all kernels at once" in err

    monkeypatch.setattr("ptxgen.build.compile.toolchain_version", lambda: "13.1.1")
    with pytest.raises(CompileError, match=r"goldens are made with NVRTC 13\.0\.88"):
        golden.build([])


def test_local_memory_needs_a_reason_and_a_reason_needs_local_memory(
    committed: Path, specs: dict[str, KernelSpec], capsys: pytest.CaptureFixture[str]
) -> None:
    specs["scale_2"] = Scale(2, body=LOCAL)
    status, _, err = run(capsys, "golden", "update", "--golden", committed)
    assert status == 1 and "accepted_spills.json has no reason" in err
    expected = [f"spill {arch} scale_2" for arch in ARCHES]
    assert check(capsys, committed) == (1, expected)

    accepted = committed / "accepted_spills.json"
    accepted.write_text(json.dumps({"scale_2": dict.fromkeys(ARCHES, "indexes an array")}))
    assert check(capsys, committed) == (0, [])
    accepted.write_text(json.dumps({"scale_2": dict.fromkeys(ARCHES, " ")}))
    assert check(capsys, committed) == (1, expected)  # an empty reason is none

    accepted.write_text(
        json.dumps({"scale_2": dict.fromkeys(ARCHES, "indexed"), "scale_3": {"sm_80": "why"}})
    )
    assert check(capsys, committed) == (1, ["unneeded sm_80 scale_3"])
    run(capsys, "golden", "update", "--golden", committed)
    assert "why" in accepted.read_text()  # people's words are theirs to change


def test_forbidden_instructions_are_found(
    committed: Path, specs: dict[str, KernelSpec], capsys: pytest.CaptureFixture[str]
) -> None:
    specs["scale_2"] = Scale(2, body="atomicAdd(out, 1.0f);")
    status, _, err = run(capsys, "golden", "update", "--golden", committed)
    assert status == 1 and "atomics" in err
    assert check(capsys, committed) == (1, ["forbidden compute_80 scale_2"])


def test_unreadable_resources(committed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("{", "[]", '{"nvrtc": "13.0.88", "kernels": {"a": {"sm_80": {"regs": 1}}}}'):
        (committed / "resources.json").write_text(text)
        with pytest.raises(PtxgenError, match="cannot be read"):
            load(committed)
    assert run(capsys, "golden", "check", "--golden", committed)[0] == 1


# -- diff ------------------------------------------------------------------------
def test_no_difference(committed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "golden", "diff", "--exit-code", "--golden", committed) == (
        0, "", "goldens: no difference\n",
    )  # fmt: skip


def test_diff_says_numbers_then_text(
    committed: Path, specs: dict[str, KernelSpec], capsys: pytest.CaptureFixture[str]
) -> None:
    specs["scale_2"] = Scale(2, body="out[i + 64] = __fmaf_rn(in[i], in[i], 1.0f);", dynamic=64)
    specs["scale_7"] = Scale(7)
    del specs["scale_3"]
    status, out, err = run(capsys, "golden", "diff", "--golden", committed)
    assert status == 0  # a difference is no failure, unless asked for
    assert run(capsys, "golden", "diff", "--exit-code", "--golden", committed)[0] == 1
    assert err == "goldens: 1 added, 1 removed, 1 changed\n"
    numbers, text = out.split("\n\n", 1)
    head, mix, *usage = numbers.splitlines()[:5]
    assert head == "changed  scale_2"
    assert "fma.rn.f32 0 -> 1" in mix and "st.global.f32 1 -> 2" in mix
    assert [line.split()[0] for line in usage] == ["sm_80", "sm_90a", "sm_120"]
    assert all("shared 0 -> 64" in line for line in usage)
    assert "removed  scale_3" in numbers and "added    scale_7" in numbers
    assert "--- old/compute_80/scale_2.ptx\n+++ new/compute_80/scale_2.ptx\n@@" in text
    assert any(line.startswith("+") and "fma.rn.f32" in line for line in text.splitlines())
    assert "scale_7" not in text  # all of it is new: the numbers say so

    stat = run(capsys, "golden", "diff", "--stat", "--golden", committed)[1]
    assert stat.rstrip() == numbers
    one = run(capsys, "golden", "diff", "--stat", "--golden", committed, "scale_2")[1]
    assert one.splitlines() == numbers.splitlines()[:5]


def test_a_difference_without_another_mix_says_so() -> None:
    key = ("compute_80", "k")
    (change,) = golden.changes(
        Goldens(ptx={key: "mov.u32 %r1, 1;\n"}), Goldens(ptx={key: "mov.u32 %r1, 2;\n"})
    )
    assert change.numbers == (
        "compute_80 1 instructions, the same mix in another order or with other operands",
    )


def test_diff_of_usage_names_only_what_changed() -> None:
    use = Usage(registers=126, spill_stores=0, spill_loads=0, stack=0, shared=49152)
    old = Goldens(usage={("sm_80", "k"): use, ("sm_90a", "k"): use})
    new = Goldens(usage={**old.usage, ("sm_90a", "k"): replace(use, registers=128, stack=8)})
    (change,) = golden.changes(old, new)
    assert change.numbers == ("sm_90a     registers 126 -> 128, stack 0 -> 8",)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_diff_between_revisions(
    committed: Path, specs: dict[str, KernelSpec], capsys: pytest.CaptureFixture[str]
) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
        subprocess.run(("git", *identity, *arguments), cwd=committed.parent, check=True)

    diff = ("golden", "diff", "--stat", "--golden", committed, "--against")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    assert run(capsys, *diff, "HEAD")[1:] == ("", "goldens: no difference\n")
    specs["scale_2"] = Scale(2, dynamic=64)
    assert run(capsys, "golden", "update", "--golden", committed)[0] == 0
    wanted = "changed  scale_2\n" + "".join(
        f"  {arch:<10} shared 0 -> 64\n" for arch in ("sm_80", "sm_90a", "sm_120")
    )
    assert run(capsys, *diff, "HEAD")[1] == wanted
    git("commit", "-qam", "two")
    assert run(capsys, *diff, "HEAD~1", "--to", "HEAD")[1] == wanted
    status, _, err = run(capsys, *diff, "nowhere")
    assert status == 1 and "no goldens in revision 'nowhere'" in err
    assert run(capsys, "golden", "diff", "--to", "HEAD", "--golden", committed)[0] == 1


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
    assert forbidden(PTX) == []


@pytest.mark.parametrize(
    "statement",
    [
        "atom.global.add.f32 %f1, [%rd1], %f2;",
        "@%p1 red.global.add.f32 [%rd1], %f2;",
        "multimem.red.add.f32 [%rd1], %f2;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], 16;",
        "ex2.approx.f32 %f1, %f2;",
        "ex2.approx.ftz.f32 %f1, %f2;",
        "div.full.f32 %f1, %f2, %f3;",
        "fma.rn.ftz.f32 %f1, %f2, %f3, %f4;",
        "L: { atom.shared.cas.b32 %r1, [%r2], %r3, %r4;",
    ],
)
def test_what_is_forbidden(statement: str) -> None:
    assert forbidden(PTX.replace("bar.sync \t0;", statement))


def test_local_depots_are_measured() -> None:
    text = "{\n\t.local .align 16 .b8 \t__local_depot0[256];\n\t.reg .b64 %SP;\n"
    assert local_depot(text) == 256
    assert local_depot(PTX) == 0


def test_a_kernel_must_export_its_own_name() -> None:
    (problem,) = rules(Goldens(ptx={("compute_80", "other"): PTX}))
    assert (problem.kind, problem.kernel) == ("forbidden", "other")


def test_outside_of_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxgen.golden.store.__file__", str(tmp_path / "a/ptxgen/golden/store.py"))
    with pytest.raises(OptionError, match="--golden DIR"):
        golden.checkout_folder()


# -- the committed goldens ---------------------------------------------------------
# What needs no compilation. That they are fresh is the work of `ptxgen golden check`,
# which `make test` runs, and is tried here on the smallest kernel.
def test_the_committed_goldens_are_complete() -> None:
    stored = load(COMMITTED)
    assert stored.ptx.keys() | stored.usage.keys() == golden.expected(tiles.SPECS.values())


@pytest.mark.parametrize("name", sorted(tiles.SPECS))
def test_the_committed_golden_obeys(name: str) -> None:
    stored = load(COMMITTED)
    own = {key: text for key, text in stored.ptx.items() if key[1] == name}
    assert own, f"{name} has no golden; run `ptxgen golden update`"
    usage = {key: use for key, use in stored.usage.items() if key[1] == name}
    accepted = {key: why for key, why in stored.accepted.items() if key[1] == name}
    assert [str(p) for p in rules(Goldens(stored.nvrtc, own, usage, accepted))] == []


def test_accepted_spills_are_of_known_kernels() -> None:
    assert {kernel for _, kernel in load(COMMITTED).accepted} <= tiles.SPECS.keys()


def test_the_smallest_golden_is_fresh() -> None:
    stored = load(COMMITTED)
    (_, name), _ = min(stored.ptx.items(), key=lambda item: len(item[1]))
    fresh = golden.build([tiles.SPECS[name]], cache=None)
    assert fresh.ptx == {key: text for key, text in stored.ptx.items() if key[1] == name}
    assert fresh.usage == {key: use for key, use in stored.usage.items() if key[1] == name}
