"""NVRTC: options, determinism, resources, errors, parallel builds. No GPU, no driver."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ptxgen.build import compile as compile_module
from ptxgen.build.cache import Cache, Entry
from ptxgen.build.compile import (
    BASE_OPTIONS,
    CUBIN_OPTIONS,
    TOOLCHAIN,
    Compiled,
    Job,
    Resources,
    compile_cubin,
    compile_job,
    compile_many,
    compile_pairs,
    compile_ptx,
    normalise_ptx,
    parse_resources,
    require_pinned_toolchain,
    toolchain_version,
)
from ptxgen.errors import CompileError

PROJECT = Path(__file__).parents[2]

# Static shared memory, a barrier, a product and a sum, a quotient, a root.
SOURCE = """\
extern "C" __global__ void kernel(float* out, float a, float b, float c)
{
    __shared__ float tile[64];
    tile[threadIdx.x] = a * b + c;
    __syncthreads();
    out[threadIdx.x] = tile[63 - threadIdx.x] / a + sqrtf(b);
}
"""
# 80 values that must all be alive at once do not fit into 32 registers.
HUNGRY = """\
extern "C" __global__ void hungry(const float* in, float* out)
{
    float x[80];
    #pragma unroll
    for (int i = 0; i < 80; i++) x[i] = in[i * 32 + threadIdx.x];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 80; i++) out[(80 - i) * 32 + threadIdx.x] = x[i] * x[(i * 7 + 3) % 80];
}
"""
BROKEN = 'extern "C" __global__ void broken(float* out)\n{\n    out[0] = undefined_name;\n}\n'


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """An empty cache."""
    return Cache(tmp_path / "cache")


@pytest.fixture(autouse=True)
def kept_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Directory that receives the sources of failed compilations."""
    directory = tmp_path / "kept"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    return directory


def run_python(code: str, cwd: Path, **variables: str) -> str:
    """The output of ``code`` in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(PROJECT), **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# -- options ---------------------------------------------------------------------
def test_numeric_options_are_honoured() -> None:
    """No contraction, no flush to zero, IEEE quotient and root."""
    ptx = compile_ptx(SOURCE, name="kernel", cache=None).text
    instructions = re.findall(r"^\t([a-z]+\.[\w.]+)", ptx, re.MULTILINE)
    assert "mul.rn.f32" in instructions and "add.rn.f32" in instructions
    assert "div.rn.f32" in instructions and "sqrt.rn.f32" in instructions
    assert not [i for i in instructions if "fma" in i or "ftz" in i or "approx" in i]


def test_a_fused_product_is_fused_only_where_it_is_written() -> None:
    source = SOURCE.replace("a * b + c", "fmaf(a, b, c)")
    assert compile_ptx(source, name="kernel", cache=None).text.count("fma.rn.f32") == 1


def test_every_option_reaches_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    """The options of the key are those of the compilation, for both kinds of output."""
    nvrtc = compile_module._nvrtc()
    seen: list[list[bytes]] = []

    class Recorder:
        def __getattr__(self, name: str) -> Any:
            return getattr(nvrtc, name)

        def nvrtcCompileProgram(self, program: Any, count: int, options: list[bytes]) -> Any:  # noqa: N802
            assert count == len(options)
            seen.append(options)
            return nvrtc.nvrtcCompileProgram(program, count, options)

    monkeypatch.setattr(compile_module, "_nvrtc", Recorder)
    for arch, extra in (("compute_80", ()), ("sm_80", CUBIN_OPTIONS)):
        job = Job(SOURCE, "kernel", arch, ("--maxrregcount=64",))
        compile_job(job, cache=None)
        expected = [*BASE_OPTIONS, *extra, "--maxrregcount=64"]
        assert list(job.key("13.0.88").options) == expected
        assert [o.decode() for o in seen[-1]] == [f"--gpu-architecture={arch}", *expected]


@pytest.mark.parametrize(
    "option", ["--use_fast_math", "--fmad=true", "--ftz=true", "-I/usr/include", "-DX=1", ""]
)
def test_options_that_could_change_bits_are_refused(option: str) -> None:
    with pytest.raises(CompileError, match=re.escape(repr(option))):
        compile_ptx(SOURCE, name="kernel", options=[option], cache=None)


@pytest.mark.parametrize(
    "line", ["#include <mma.h>", '  #  include "/etc/passwd"', "int x = __LINE__; // __TIME__"]
)
def test_sources_that_are_not_self_contained_are_refused(line: str) -> None:
    with pytest.raises(CompileError, match=r"line 2 .*everything that its result depends on"):
        compile_ptx(f"// a kernel\n{line}\n{SOURCE}", name="kernel", cache=None)


@pytest.mark.parametrize("variable", compile_module._STEERING)
def test_environment_that_steers_nvrtc_is_refused(
    variable: str, monkeypatch: pytest.MonkeyPatch, cache: Cache
) -> None:
    compile_ptx(SOURCE, name="kernel", cache=cache)
    monkeypatch.setenv(variable, "nvvm-latest")
    with pytest.raises(CompileError, match=f"{variable}='nvvm-latest'"):
        compile_ptx(SOURCE, name="kernel", cache=None)
    assert compile_ptx(SOURCE, name="kernel", cache=cache).cached, "a hit needs no compiler"


# -- output ----------------------------------------------------------------------
def test_ptx_is_text_with_one_newline_at_its_end() -> None:
    compiled = compile_ptx(SOURCE, name="kernel", arch="compute_90a", cache=None)
    assert (compiled.kind, compiled.arch, compiled.name) == ("ptx", "compute_90a", "kernel")
    assert compiled.resources is None and compiled.log == "" and not compiled.cached
    assert ".target sm_90a" in compiled.text
    assert compiled.image.endswith(b"}\n") and b"\0" not in compiled.image
    assert normalise_ptx(compiled.image + b"\n\0") == compiled.image


def test_cubin_has_no_text() -> None:
    compiled = compile_cubin(SOURCE, name="kernel", arch="sm_80", cache=None)
    assert compiled.image.startswith(b"\x7fELF")
    with pytest.raises(AttributeError, match="cubin"):
        _ = compiled.text


def test_output_is_the_same_in_every_process_and_directory(tmp_path: Path) -> None:
    """Byte for byte, whatever the directory, home and clock; and no path shows in it."""
    code = f"""
import hashlib, os
from ptxgen.build.compile import compile_ptx, compile_cubin
source = '''static __device__ int counter;\\nstatic __constant__ float table[2] = {{1, 2}};\\n'''
source += {SOURCE.replace("sqrtf(b)", "table[counter++ & 1]")!r}
images = [compile_ptx(source, name="kernel", arch="compute_90a", cache=None).image]
images += [compile_cubin(source, name="kernel", arch="sm_90a", cache=None).image]
assert not any(os.getcwd().encode() in i for i in images)
print(*(hashlib.sha256(i).hexdigest() for i in images))
"""
    outputs = set()
    for name in ("one", "two"):
        directory = tmp_path / name
        directory.mkdir()
        outputs.add(run_python(code, directory, HOME=str(directory), TMPDIR=str(directory)))
        assert list(directory.iterdir()) == [], "compiling leaves nothing behind"
    assert len(outputs) == 1


def test_name_does_not_reach_the_output() -> None:
    """The name is not in the key, so two jobs that differ in it alone give the same image."""
    source = SOURCE + SOURCE.replace("kernel", "twin") + "static __device__ int counter;\n"
    images = {compile_ptx(source, name=name, cache=None).image for name in ("kernel", "twin")}
    assert len(images) == 1


def test_no_driver_is_loaded(tmp_path: Path) -> None:
    """A machine without libcuda compiles: nothing asks for it, so nothing can miss it."""
    code = f"""
import sys, ctypes
from ptxgen.build.compile import compile_cubin
real = ctypes.CDLL.__init__
def load(self, name, *args, **kwargs):
    assert "libcuda.so" not in str(name), name
    real(self, name, *args, **kwargs)
ctypes.CDLL.__init__ = load
print(compile_cubin({SOURCE!r}, name="kernel", cache=None).resources.registers > 0)
maps = open("/proc/self/maps").read() if sys.platform == "linux" else ""
print("libnvrtc" in maps, "libcuda.so" in maps)
"""
    expected = ["True", "True False"] if sys.platform == "linux" else ["True", "False False"]
    assert run_python(code, tmp_path).splitlines() == expected


def test_importing_loads_no_compiler(tmp_path: Path) -> None:
    code = (
        "import ptxgen.build.compile, sys; print([m for m in sys.modules if m.startswith('cuda')])"
    )
    assert run_python(code, tmp_path) == "[]"


# -- resources -------------------------------------------------------------------
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_120"])
def test_resources(arch: str) -> None:
    resources = compile_cubin(SOURCE, name="kernel", arch=arch, cache=None).resources
    assert resources is not None
    assert 8 <= resources.registers <= 40
    assert (resources.shared, resources.barriers) == (256, 1)
    assert (resources.spill_stores, resources.spill_loads, resources.stack) == (0, 0, 0)


def test_spills_are_reported() -> None:
    free = compile_cubin(HUNGRY, name="hungry", cache=None).resources
    options = ["--maxrregcount=32"]
    capped = compile_cubin(HUNGRY, name="hungry", options=options, cache=None).resources
    assert free is not None and capped is not None
    assert free.registers > 80 and (free.spill_stores, free.spill_loads, free.stack) == (0, 0, 0)
    assert capped.registers <= 32
    assert capped.spill_stores > 0 and capped.spill_loads > 0 and capped.stack > 0


def test_each_kernel_of_a_source_has_its_own_resources() -> None:
    source = HUNGRY + SOURCE
    both = [compile_cubin(source, name=n, cache=None) for n in ("hungry", "kernel")]
    alone = [
        compile_cubin(HUNGRY, name="hungry", cache=None),
        compile_cubin(SOURCE, name="kernel", cache=None),
    ]
    assert both[0].image == both[1].image
    assert [c.resources for c in both] == [c.resources for c in alone]
    assert both[0].resources != both[1].resources


LOG = """\
kernel.cu(1): warning #177-D: variable "q" was declared but never referenced
ptxas info    : Overriding maximum register limit 256 for 'k' with  32 of maxrregcount option
ptxas info    : 8 bytes gmem, 40 bytes cmem[3]
ptxas info    : Compiling entry function 'k2' for 'sm_80'
ptxas info    : Function properties for k2
ptxas         .     160 bytes stack frame, 0 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 30 registers, used 2 barriers, 192 bytes cumulative stack size, 364 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Function properties for _Z1ffi
ptxas         .     32 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers, 49152 bytes smem, 372 bytes cmem[0]
ptxas info    : Compiling entry function 'unfinished' for 'sm_80'
"""  # noqa: E501


def test_log_with_several_kernels_and_a_function() -> None:
    assert parse_resources(LOG) == {
        "k2": Resources(30, 12, 20, stack=192, shared=0, constant=372, barriers=2),
        "k": Resources(255, 0, 0, stack=0, shared=49152, constant=372, barriers=0),
    }
    assert parse_resources("") == {}
    assert (
        parse_resources(
            "ptxas . 1 bytes stack frame, 2 bytes spill stores, 3 bytes spill loads"
            "\nUsed 3 registers"
        )
        == {}
    )


def test_log_has_warnings_and_no_timings() -> None:
    source = SOURCE.replace("__shared__", "int unused; __shared__")
    log = compile_cubin(source, name="kernel", cache=None).log
    assert 'variable "unused" was declared but never referenced' in log
    assert "ptxas info" in log and "Compile time" not in log


# -- errors ----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("compiler", "arch"), [(compile_ptx, "compute_80"), (compile_cubin, "sm_90a")]
)
def test_broken_source(
    compiler: Callable[..., Compiled], arch: str, cache: Cache, kept_sources: Path
) -> None:
    with pytest.raises(CompileError) as caught:
        compiler(BROKEN, name="broken", arch=arch, cache=cache)
    error, path = caught.value, caught.value.source_path
    first = 'kernel.cu(3): error: identifier "undefined_name" is undefined'
    assert path is not None and Path(path).parent == kept_sources
    assert Path(path).read_text() == BROKEN
    assert str(error) == f"broken for {arch}: {first}; the source is kept in {path}"
    assert first in error.log and "1 error detected" in error.log
    assert cache.info().entries <= 1, "at most the toolchain's, never a failed one"


def test_error_of_ptxas() -> None:
    """An error that only the assembler can find; the log has it."""
    source = SOURCE.replace("tile[64]", "tile[100000]")
    with pytest.raises(CompileError, match=r"kernel for sm_80: ptxas error .*too much shared"):
        compile_cubin(source, name="kernel", arch="sm_80", cache=None)


@pytest.mark.parametrize("arch", ["compute_12", "compute_999", "hopper", "", "compute_80 "])
def test_unknown_architecture(arch: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_ptx(SOURCE, name="kernel", arch=arch, cache=None)
    assert f"unknown architecture {arch!r}" in str(caught.value)
    assert re.search(r"\b80\b.*\b90\b", str(caught.value)), "it lists what there is"


def test_wrong_kind_of_architecture() -> None:
    with pytest.raises(CompileError, match="ptx is compute_"):
        compile_ptx(SOURCE, name="kernel", arch="sm_80", cache=None)
    with pytest.raises(CompileError, match="cubin is sm_"):
        compile_cubin(SOURCE, name="kernel", arch="compute_80", cache=None)


@pytest.mark.parametrize("arch", ["compute_80", "sm_80"])
def test_kernel_that_is_not_there(arch: str, cache: Cache) -> None:
    for _ in range(2):  # built, and cached
        with pytest.raises(CompileError, match=r'no kernel extern "C" kerne$'):
            compile_job(Job(SOURCE, "kerne", arch), cache=cache)


@pytest.mark.parametrize("name", ["", "1st", "a b", "../x", "ü"])
def test_name_is_an_identifier(name: str) -> None:
    with pytest.raises(CompileError, match="C identifier"):
        compile_ptx(SOURCE, name=name, cache=None)


def test_source_that_cannot_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    with pytest.raises(CompileError, match="undefined_name") as caught:
        compile_ptx(BROKEN, name="broken", cache=None)
    assert caught.value.source_path is None


def test_no_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    compile_module._nvrtc.cache_clear()
    try:
        with pytest.raises(
            CompileError, match=r"NVRTC cannot be loaded.*nvidia-cuda-nvrtc==13\.0\.88"
        ):
            compile_ptx(SOURCE, name="kernel", cache=None)
    finally:
        compile_module._nvrtc.cache_clear()


# -- the toolchain ---------------------------------------------------------------
def test_version_is_what_the_compiler_signs_with() -> None:
    version = toolchain_version()
    assert f"V{version}\n" in compile_ptx(SOURCE, name="kernel", cache=None).text


def test_version_of_a_compiler_that_does_not_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two numbers of three are not passed off as a full version."""
    monkeypatch.setattr(compile_module, "_build", lambda job: Entry(b".version 9.0\n", {}))
    version = toolchain_version.__wrapped__()
    assert re.fullmatch(r"\d+\.\d+ \(build unknown\)", version)
    assert version != TOOLCHAIN.nvrtc


def test_goldens_want_the_pinned_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_module, "toolchain_version", lambda: TOOLCHAIN.nvrtc)
    require_pinned_toolchain()
    monkeypatch.setattr(compile_module, "toolchain_version", lambda: "13.1.2")
    with pytest.raises(CompileError, match=r"13\.0\.88, but this is 13\.1\.2; install nvidia-cuda"):
        require_pinned_toolchain()


def test_another_installed_version_is_another_kernel(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgraded compiler builds afresh; what it builds goes under its own statement."""
    assert not compile_ptx(SOURCE, name="kernel", cache=cache).cached
    monkeypatch.setattr(compile_module, "_installed_version", lambda: "13.9.9")
    monkeypatch.setattr(compile_module, "toolchain_version", lambda: "13.9.10")
    assert not compile_ptx(SOURCE, name="kernel", cache=cache).cached
    job = Job(SOURCE, "kernel", "compute_80")
    assert cache.get(job.key("13.9.10")) is not None
    assert cache.get(job.key("13.9.9")) is None
    assert compile_ptx(SOURCE, name="kernel", cache=cache).cached


@pytest.mark.parametrize("installed", [True, False])
def test_warm_start(cache: Cache, monkeypatch: pytest.MonkeyPatch, installed: bool) -> None:
    """A cache hit does not load NVRTC if its version is known from the installed wheel."""
    cold = compile_cubin(SOURCE, name="kernel", cache=cache)
    version = toolchain_version()
    monkeypatch.setattr(
        compile_module, "_installed_version", lambda: version if installed else None
    )

    def forbidden() -> str:
        assert not installed, "a hit asked the compiler for its version"
        return version

    monkeypatch.setattr(compile_module, "toolchain_version", forbidden)
    warm = compile_cubin(SOURCE, name="kernel", cache=Cache(cache.root))
    assert (cold.cached, warm.cached) == (False, True)
    assert dataclasses.replace(warm, cached=False) == cold


def test_kinds_and_architectures_are_kept_apart(cache: Cache) -> None:
    arches = ["compute_80", "compute_90a", "sm_80", "sm_90a"]
    for expected in (False, True):
        compiled = [compile_job(Job(SOURCE, "kernel", a), cache=cache) for a in arches]
        assert [c.cached for c in compiled] == [expected] * 4
        assert len({c.image for c in compiled}) == 4


def test_default_cache_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXGEN_CACHE_DIR", str(tmp_path / "default"))
    assert [compile_ptx(SOURCE, name="kernel").cached for _ in range(2)] == [False, True]
    assert not compile_ptx(SOURCE, name="kernel", cache=None).cached


# -- many ------------------------------------------------------------------------
def jobs(count: int) -> list[Job]:
    """Different kernels that share a name."""
    return [
        Job(SOURCE.replace("sqrtf(b)", f"{i}.0f"), "kernel", ("compute_80", "sm_80")[i % 2])
        for i in range(count)
    ]


def test_many_are_the_same_as_one_by_one_in_order(cache: Cache) -> None:
    todo = [*jobs(6), *jobs(6)]  # a job may come twice: it is built once
    steps: list[tuple[int, int, Job]] = []
    many = compile_many(todo, workers=2, cache=cache, progress=lambda *step: steps.append(step))
    assert [c.image for c in many] == [compile_job(j, cache=None).image for j in todo]
    assert sum(not c.cached for c in many) == 6
    assert [(done, total) for done, total, _ in steps] == [(i, 12) for i in range(1, 13)]
    assert sorted(map(repr, todo)) == sorted(repr(job) for _, _, job in steps)
    assert [c.cached for c in compile_many(iter(todo), cache=cache)] == [True] * 12
    assert compile_many([], cache=cache) == []


def test_many_run_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers are inside the compiler together, or the barrier breaks."""
    barrier = threading.Barrier(2, timeout=30)

    def build(job: Job) -> Entry:
        barrier.wait()
        return Entry(b".entry kernel()", {"log": "", "resources": {}})

    monkeypatch.setattr(compile_module, "_build", build)
    assert len(compile_many([j for j in jobs(8) if j.kind == "ptx"], workers=2, cache=None)) == 4


def test_first_failure_of_many_cancels_the_rest(cache: Cache) -> None:
    built: list[int] = []
    todo = [Job(BROKEN, "broken", "compute_80"), *jobs(40)]
    with pytest.raises(CompileError, match=r"broken for compute_80: .*undefined_name") as caught:
        compile_many(todo, workers=1, cache=cache, progress=lambda done, *_: built.append(done))
    assert "1 error detected" in caught.value.log
    assert len(built) < 40
    assert cache.info().entries < 40, "what had not started was not built"


def test_failing_progress_callback_is_passed_on(cache: Cache) -> None:
    def progress(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compile_many(jobs(30), workers=1, cache=cache, progress=progress)
    assert cache.info().entries < 30


# -- PTX and cubin at once -------------------------------------------------------
def test_a_pair_is_what_two_jobs_give_and_one_run_makes_it(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    warns = SOURCE.replace("{", "{ int unused_here;", 1)  # which is in the log of both
    job = Job(warns, "kernel", "sm_90a")
    separate = [compile_job(j, cache=None) for j in (Job(warns, "kernel", "compute_90a"), job)]
    assert all("unused_here" in made.log for made in separate)
    runs: list[str] = []
    translate = compile_module._translate

    def counted(job: Job) -> tuple[Entry, ...]:
        runs.append(job.arch)
        return translate(job)

    toolchain_version()
    monkeypatch.setattr(compile_module, "_translate", counted)
    assert [list(pair) for pair in compile_pairs([job], cache=None)] == [separate]
    assert [list(pair) for pair in compile_pairs([job], cache=cache)] == [separate]
    assert runs == ["sm_90a", "sm_90a"]
    # Both are in the cache, for whoever asks for one of them.
    assert all(compile_job(j, cache=cache).cached for j in (job, job.to_ptx))
    assert all(made.cached for made in compile_pairs([job], cache=cache)[0])
    assert len(runs) == 2


def test_a_pair_whose_ptx_is_gone_is_completed(cache: Cache) -> None:
    job = Job(SOURCE, "kernel", "sm_80")
    compile_job(job, cache=cache)
    ptx, cubin = compile_pairs([job], cache=cache)[0]
    assert (ptx.cached, cubin.cached) == (False, True)
    assert ptx.image == compile_job(job.to_ptx, cache=None).image


def test_a_pair_is_of_a_cubin() -> None:
    with pytest.raises(CompileError, match=r"architecture of a cubin is sm_…, not 'compute_80'"):
        compile_pairs([Job(SOURCE, "kernel", "compute_80")], cache=None)
