"""Compiles CUDA C++ to PTX or cubin with NVRTC; sources in PTX are only retargeted.

NVRTC needs neither a GPU nor a driver. A compilation depends on the source text, the
options, the architecture and the NVRTC version, all of which are in the cache key, and on
nothing else: no include files, no clock, no environment (those are refused or switched off).

>>> compile_ptx(source, name="axpy").text                                # doctest: +SKIP
>>> compile_cubin(source, name="axpy", arch="sm_90a").resources          # doctest: +SKIP
"""

from __future__ import annotations

import functools
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, fields, replace
from types import EllipsisType
from typing import Any, TypeVar

from ptxgen.build.cache import Cache, Entry, Key, default_cache
from ptxgen.build.ptx import carrier, is_ptx, retargeted
from ptxgen.errors import CompileError, OptionError

T = TypeVar("T")


@dataclass(frozen=True)
class Toolchain:
    """The compiler that goldens are made with: name of its wheel, version of NVRTC."""

    distribution: str
    nvrtc: str


TOOLCHAIN = Toolchain(distribution="nvidia-cuda-nvrtc", nvrtc="13.0.88")
"""The pinned compiler. PTX text depends on its version; results do not (contracts fix them)."""

BASE_OPTIONS: tuple[str, ...] = (
    "--std=c++17",
    # a*b + c stays a product rounded and a sum rounded; where one rounding is meant, the
    # source says fma. The default (true) lets the compiler choose, and so change bits.
    "--fmad=false",
    # The other three are NVRTC's defaults, fixed here because the contracts rest on them:
    "--ftz=false",  # subnormal operands and results are kept, not flushed to zero
    "--prec-div=true",  # x / y is div.rn, correctly rounded, not an approximation
    "--prec-sqrt=true",  # sqrtf is sqrt.rn, correctly rounded, not an approximation
    # No effect on numbers:
    "--no-source-include",  # no header from the working directory: the key has only the text
    "--no-cache",  # nor kernels from the driver's cache, whose key is not documented
)
"""NVRTC options of every compilation, with their numeric effect. No fast math, ever.

``--device-as-default-execution-space`` is left out on purpose: with ``__device__`` written
out, a rendered kernel is plain CUDA that nvcc takes too.
"""

CUBIN_OPTIONS: tuple[str, ...] = ("--ptxas-options=-v",)
"""Additional NVRTC options for cubins: ptxas then logs registers, spills and memory."""

_FREE_OPTIONS = re.compile(r"--maxrregcount=\d+|--generate-line-info|--device-debug")
"""Pattern of the NVRTC options that a job may add; none of them changes a bit or reads a file."""

# Environment variables that reach into NVRTC. The first, in no manual, changes the PTX of
# 13.0.88 (measured). The second stands in its binary too, but did nothing when tried.
_STEERING = ("NV_NVVM_VERSION", "NVRTC_APPEND_FLAGS")

# The file name that NVRTC gets for every source. It shows in symbols with internal linkage, so
# a kernel's own name here would change the output, although the key does not contain it.
_PROGRAM_NAME = b"kernel.cu"

_UNKEYED = re.compile(
    r"^[ \t]*#[ \t]*include\b.*|\b__(?:DATE|TIME|TIMESTAMP)__\b|\b__has_include\b", re.MULTILINE
)
_UNKEYED_WORDS = ("include", "__DATE__", "__TIME__", "__TIMESTAMP__")
"""Words of which every match of ``_UNKEYED`` (text that makes a result depend on more than the
cache key) contains one. A source is searched for them first, which is much faster than the pattern.
"""
_ARCH = re.compile(r"(compute|sm)_(\d{2,3})[af]?")
_KIND = {"compute": "ptx", "sm": "cubin"}


@dataclass(frozen=True)
class Resources:
    """Resources of one kernel, as ptxas reports them: bytes, except ``registers`` and ``barriers``.

    Spills include those of functions that were not inlined. ``shared`` is static shared memory;
    ``constant`` sums the constant banks that ptxas lists, which since sm_90 exclude parameters.
    """

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int
    constant: int
    barriers: int


@dataclass(frozen=True)
class Compiled:
    """A compiled kernel.

    ``image``: cubin, or PTX text without a NUL at its end. ``resources`` is None for PTX, and if
    NVRTC's log could not be parsed. ``log``: the compiler's warnings, and for cubins the report of
    ptxas. ``cached``: whether the kernel came from the cache.
    """

    name: str
    image: bytes = field(repr=False)
    kind: str
    arch: str
    log: str = field(repr=False)
    resources: Resources | None
    cached: bool

    @property
    def text(self) -> str:
        """PTX text. Raises AttributeError for a cubin."""
        if self.kind != "ptx":
            raise AttributeError(f"{self.name} is a {self.kind} for {self.arch}; it has no text")
        return self.image.decode("utf-8")


@dataclass(frozen=True)
class Job:
    """One compilation by NVRTC: to PTX for ``compute_…`` architectures, to a cubin for ``sm_…``.

    ``name`` is the symbol of an ``extern "C"`` kernel in ``source``. ``options`` are added to
    :data:`BASE_OPTIONS`; those that could change bits or read files are refused.
    """

    source: str = field(repr=False)
    name: str
    arch: str
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.name.isascii() and self.name.isidentifier()):
            raise CompileError(f"a kernel's name is a C identifier, not {self.name!r}")
        if not _ARCH.fullmatch(self.arch):
            raise CompileError(
                f"{self.name}: unknown architecture {self.arch!r}; {_supported_architectures()}"
            )
        for option in self.options:
            if not _FREE_OPTIONS.fullmatch(option):
                raise CompileError(
                    f"{self.name}: the option {option!r} is not accepted; a job may add "
                    "--maxrregcount=N, --generate-line-info, --device-debug"
                )
        suspect = any(word in self.source for word in _UNKEYED_WORDS)
        if suspect and (found := _UNKEYED.search(self.source)):
            line = self.source.count("\n", 0, found.start()) + 1
            raise CompileError(
                f"{self.name}: line {line} has {found.group().strip()!r}: a source must hold "
                "everything that its result depends on (the cache key is made from its text)"
            )

    @property
    def kind(self) -> str:
        """Kind of the image: ``"ptx"`` or ``"cubin"``."""
        return _KIND[self.arch.partition("_")[0]]

    @property
    def to_ptx(self) -> Job:
        """The job for the PTX that NVRTC makes on its way to this job's cubin."""
        return replace(self, arch=self.arch.replace("sm_", "compute_"))

    def key(self, nvrtc: str) -> Key:
        """Returns the cache key of the image that NVRTC ``nvrtc`` makes; ``name``, which changes
        nothing in it, is no part of the key.
        """
        extra = CUBIN_OPTIONS if self.kind == "cubin" else ()
        return Key(self.source, BASE_OPTIONS + extra + self.options, self.arch, nvrtc, self.kind)


def compile_ptx(
    source: str,
    *,
    name: str,
    arch: str = "compute_80",
    options: Sequence[str] = (),
    cache: Cache | EllipsisType | None = ...,
) -> Compiled:
    """Compiles kernel ``name`` to PTX: the same bytes on every machine for one NVRTC version.

    ``cache``: None always compiles; the default is the user's cache. Raises CompileError.
    """
    return _compile_as("ptx", Job(source, name, arch, tuple(options)), cache)


def compile_cubin(
    source: str,
    *,
    name: str,
    arch: str = "sm_90a",
    options: Sequence[str] = (),
    cache: Cache | EllipsisType | None = ...,
) -> Compiled:
    """Compiles kernel ``name`` to a cubin, with its :class:`Resources`.

    ``cache``: None always compiles; the default is the user's cache. Raises CompileError.
    """
    return _compile_as("cubin", Job(source, name, arch, tuple(options)), cache)


def compile_many(
    jobs: Iterable[Job],
    *,
    workers: int | None = None,
    progress: Callable[[int, int, Job], None] | None = None,
    cache: Cache | EllipsisType | None = ...,
) -> list[Compiled]:
    """Compiles jobs in parallel; results come in the order of the jobs.

    ``workers``: number of threads, by default the CPUs that this process may use; less than 1 is an
    OptionError. Threads scale as processes do, since the binding releases the GIL and NVRTC
    compiles concurrently. ``progress(done, total, job)`` is called in the caller's thread after
    each job. The first failure (in time) cancels the jobs that have not started, and is raised.
    """
    return _in_parallel(lambda job: compile_job(job, cache=cache), jobs, workers, progress)


def compile_pairs(
    jobs: Iterable[Job],
    *,
    workers: int | None = None,
    progress: Callable[[int, int, Job], None] | None = None,
    cache: Cache | EllipsisType | None = ...,
) -> list[tuple[Compiled, Compiled]]:
    """Compiles jobs for ``sm_…`` like :func:`compile_many`; returns the PTX and the cubin of each.

    One run of the compiler makes both, and both are cached, each under its own job's key.
    """
    return _in_parallel(lambda job: _compile_pair(job, cache), jobs, workers, progress)


def _in_parallel(
    work: Callable[[Job], T],
    jobs: Iterable[Job],
    workers: int | None,
    progress: Callable[[int, int, Job], None] | None,
) -> list[T]:
    if workers is not None and workers < 1:
        raise OptionError(f"{workers} compilations at a time; takes 1 or more")
    todo = list(jobs)
    total = len(todo)
    with ThreadPoolExecutor(workers or cpus(), thread_name_prefix="nvrtc") as pool:
        try:
            futures = {pool.submit(work, job): job for job in todo}
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                if progress is not None:
                    progress(done, total, futures[future])
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return [future.result() for future in futures]


def compile_job(job: Job, *, cache: Cache | EllipsisType | None = ...) -> Compiled:
    """Compiles one job, to PTX or to a cubin. ``cache``: as in :func:`compile_ptx`."""
    store = default_cache() if cache is ... else cache
    if store is None:
        return _compiled(job, _build(job), cached=False)
    return _get_or_build(store, job, lambda: _build(job))


def _compile_pair(job: Job, cache: Cache | EllipsisType | None) -> tuple[Compiled, Compiled]:
    store = default_cache() if cache is ... else cache
    _require_kind("cubin", job)
    if store is None:
        ptx, cubin = _translate(job)
        return _compiled(job.to_ptx, ptx, cached=False), _compiled(job, cubin, cached=False)
    passed: list[Entry] = []

    def build() -> Entry:
        ptx, cubin = _translate(job)
        passed.append(ptx)
        return cubin

    made = _get_or_build(store, job, build)
    ptx_job = job.to_ptx
    return _get_or_build(store, ptx_job, lambda: passed[0] if passed else _build(ptx_job)), made


def _get_or_build(store: Cache, job: Job, build: Callable[[], Entry]) -> Compiled:
    """Returns the result of ``job`` from the cache ``store``, or calls ``build`` and stores it."""
    # Loading NVRTC costs more than a warm start may, so a hit trusts the version that is
    # installed; what is stored goes under the version that the compiler itself states.
    installed = _installed_version()
    check = functools.partial(_fault, job)
    if installed is not None:
        entry = store.get(job.key(installed), check)
        if entry is not None:
            return _compiled(job, entry, cached=True)
    entry, cached = store.get_or_build(job.key(toolchain_version()), build, check)
    return _compiled(job, entry, cached=cached)


@functools.cache
def toolchain_version() -> str:
    """Returns the full version of this process's NVRTC, such as "13.0.88".

    nvrtcVersion knows only two of the three numbers, and a package's metadata would describe
    a library that may not be the one loaded, so this reads the compiler's signature in its PTX.
    Without a signature the result is "13.0 (build unknown)", which equals no pinned version.
    """
    probe = _build(Job('extern "C" __global__ void probe() {}', "probe", "compute_80"))
    signature = re.search(rb"^// Cuda compilation tools, .*\bV(\d+\.\d+\.\d+)", probe.image, re.M)
    if signature is not None:
        return signature[1].decode("ascii")
    major, minor = _call(_nvrtc().nvrtcVersion)
    return f"{major}.{minor} (build unknown)"


def require_pinned_toolchain() -> None:
    """Raises CompileError unless NVRTC is the version that goldens are made with."""
    found = toolchain_version()
    if found != TOOLCHAIN.nvrtc:
        raise CompileError(
            f"goldens are made with NVRTC {TOOLCHAIN.nvrtc}, but this is {found}; "
            f"install {TOOLCHAIN.distribution}=={TOOLCHAIN.nvrtc}"
        )


def parse_resources(log: str) -> dict[str, Resources]:
    """Parses the resources of every kernel in a cubin's log (``--ptxas-options=-v``)."""
    kernels: dict[str, dict[str, int]] = {}
    kernel: dict[str, int] = {}
    own = True  # whether the properties are the kernel's, not those of a function it calls
    name = ""
    for line in log.splitlines():
        if found := re.search(r"Compiling entry function '(\w+)'", line):
            name, own = found[1], True
            kernel = kernels.setdefault(name, {"spill_stores": 0, "spill_loads": 0, "stack": 0})
        elif found := re.search(r"Function properties for (\w+)", line):
            own = found[1] == name
        elif found := re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line
        ):
            if kernels:
                kernel["stack"] = max(kernel["stack"], int(found[1])) if own else kernel["stack"]
                kernel["spill_stores"] += int(found[2])
                kernel["spill_loads"] += int(found[3])
        elif kernels and (found := re.search(r"Used (\d+) registers", line)):
            kernel["registers"] = int(found[1])
            kernel["barriers"] = _sum(r"used (\d+) barriers", line)
            kernel["shared"] = _sum(r"(\d+) bytes smem", line)
            kernel["constant"] = _sum(r"(\d+) bytes cmem", line)
            # With calls, the depth of the stack is more than the kernel's own frame.
            kernel["stack"] = max(kernel["stack"], _sum(r"(\d+) bytes cumulative stack", line))
    return {name: Resources(**values) for name, values in kernels.items() if "registers" in values}


def _sum(pattern: str, line: str) -> int:
    return sum(map(int, re.findall(pattern, line)))


def cpus() -> int:
    """Returns the number of CPUs that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


@functools.cache
def _installed_version() -> str | None:
    """Returns the version of the NVRTC wheel, or None if there is no wheel."""
    from importlib import metadata

    try:
        return metadata.version(TOOLCHAIN.distribution)
    except metadata.PackageNotFoundError:
        return None


def _compile_as(kind: str, job: Job, cache: Cache | EllipsisType | None) -> Compiled:
    _require_kind(kind, job)
    return compile_job(job, cache=cache)


def _require_kind(kind: str, job: Job) -> None:
    if job.kind != kind:
        prefix = next(p for p, k in _KIND.items() if k == kind)
        raise CompileError(
            f"{job.name}: the architecture of a {kind} is {prefix}_…, not {job.arch!r}"
        )


def _has_kernel(job: Job, image: bytes) -> bool:
    """Whether an image has the kind of ``job`` and contains its kernel."""
    if job.kind == "ptx":
        return re.search(rb"\.entry\s+" + job.name.encode() + rb"\b", image) is not None
    section = b"\0.text." + job.name.encode() + b"\0"
    return image.startswith(b"\x7fELF") and section in image


def _fault(job: Job, entry: Entry) -> str | None:
    """Returns why a cached entry cannot be a result of ``job``, or None."""
    log, resources = entry.meta.get("log"), entry.meta.get("resources")
    if not isinstance(log, str) or not isinstance(resources, dict):
        return "its metadata has no log or no resources"
    values = resources.get(job.name)
    names = [each.name for each in fields(Resources)]
    if values is not None and not (
        isinstance(values, dict)
        and sorted(values) == sorted(names)
        and all(type(value) is int for value in values.values())
    ):
        return f"its metadata has no resources of {job.name}"
    return None if _has_kernel(job, entry.image) else f"its image has no kernel {job.name}"


def _compiled(job: Job, entry: Entry, *, cached: bool) -> Compiled:
    if not _has_kernel(job, entry.image):
        raise CompileError(
            f'{job.name} for {job.arch}: the source has no kernel extern "C" {job.name}',
            log=entry.meta["log"],
            source_path=_save_source(job),
        )
    values: Mapping[str, int] | None = entry.meta["resources"].get(job.name)
    return Compiled(
        name=job.name,
        image=entry.image,
        kind=job.kind,
        arch=job.arch,
        log=entry.meta["log"],
        resources=None if values is None else Resources(**values),
        cached=cached,
    )


# -- NVRTC -----------------------------------------------------------------------
@functools.cache
def _nvrtc() -> Any:
    """Returns the binding ``cuda.bindings.nvrtc``, with the library loaded."""
    try:
        from cuda.bindings import nvrtc  # type: ignore[import-untyped, import-not-found, unused-ignore]

        nvrtc.nvrtcVersion()  # loads the library
    except (ImportError, RuntimeError) as error:
        raise CompileError(
            f"NVRTC cannot be loaded ({error}); install cuda-bindings and "
            f"{TOOLCHAIN.distribution}=={TOOLCHAIN.nvrtc} (Linux and Windows have them)"
        ) from error
    return nvrtc


def _call(function: Callable[..., tuple[Any, ...]], *arguments: Any) -> Any:
    """Calls a function of the NVRTC binding; returns its value, or several as a list. Raises
    CompileError unless its status is success.
    """
    status, *values = function(*arguments)
    if status != 0:
        raise CompileError(f"{function.__name__} failed: {status.name}")
    return values[0] if len(values) == 1 else values


def _buffer(size: int, fill: Callable[..., tuple[Any, ...]], program: Any) -> bytes:
    buffer = bytearray(size)
    _call(fill, program, buffer)
    return bytes(buffer)


def _build(job: Job) -> Entry:
    """Compiles ``job``; returns image, log and resources as a cache entry, which is the same for
    any ``job.name``.
    """
    return _translate(job)[-1]


def _translate(job: Job) -> tuple[Entry, ...]:
    """Compiles ``job``; returns the cache entry of its PTX, and after it that of a cubin if ``job``
    is for one.
    """
    if not is_ptx(job.source):
        return _through_nvrtc(job)
    text = retargeted(job.source, job.to_ptx.arch.replace("compute_", "sm_")).encode("utf-8")
    ptx = Entry(normalise_ptx(text), {"log": "", "resources": {}})
    if job.kind == "ptx":
        return (ptx,)
    return ptx, _through_nvrtc(replace(job, source=carrier(job.source)))[-1]


def _through_nvrtc(job: Job) -> tuple[Entry, ...]:
    nvrtc = _nvrtc()
    for variable in _STEERING:
        if value := os.environ.get(variable):
            raise CompileError(
                f"the environment variable {variable}={value!r} may change what NVRTC makes; "
                "unset it to compile"
            )
    options = [f"--gpu-architecture={job.arch}", *job.key("").options]
    program = _call(
        nvrtc.nvrtcCreateProgram, job.source.encode("utf-8"), _PROGRAM_NAME, 0, None, None
    )
    try:
        (status,) = nvrtc.nvrtcCompileProgram(
            program, len(options), [o.encode("utf-8") for o in options]
        )
        log = _clean_log(
            _buffer(_call(nvrtc.nvrtcGetProgramLogSize, program), nvrtc.nvrtcGetProgramLog, program)
        )
        if status != 0:
            raise _failure(job, status.name, log)
        ptx = _buffer(_call(nvrtc.nvrtcGetPTXSize, program), nvrtc.nvrtcGetPTX, program)
        cubin = b""
        if job.kind == "cubin":
            cubin = _buffer(_call(nvrtc.nvrtcGetCUBINSize, program), nvrtc.nvrtcGetCUBIN, program)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    # Without the log of ptxas, so that the entry equals that of a job for PTX.
    text = Entry(normalise_ptx(ptx), {"log": log.partition("ptxas ")[0].rstrip(), "resources": {}})
    if job.kind == "ptx":
        return (text,)
    resources = {name: asdict(r) for name, r in parse_resources(log).items()}
    return text, Entry(cubin, {"log": log, "resources": resources})


def normalise_ptx(image: bytes) -> bytes:
    """Returns PTX as a text file, with one newline at the end and no NUL."""
    return image.rstrip(b"\0\n ") + b"\n"


def _clean_log(log: bytes) -> str:
    """Decodes NVRTC's log, without the lines of ptxas's timings, which differ from run to run."""
    # ptxas's errors come after a NUL of their own.
    text = log.decode("utf-8", errors="replace").replace("\0", "")
    lines = text.strip().splitlines(keepends=True)
    return "".join(line for line in lines if "Compile time =" not in line)


def _failure(job: Job, status: str, log: str) -> CompileError:
    headline = re.search(r"^.*\b(?:error|fatal)\b\s*:.*$", log, re.MULTILINE)
    if headline is not None and "--gpu-architecture" in headline[0]:
        return CompileError(
            f"{job.name}: unknown architecture {job.arch!r}; {_supported_architectures()}", log=log
        )
    path = _save_source(job)
    reason = headline[0].strip() if headline is not None else status
    kept = f"; the source is kept in {path}" if path is not None else ""
    return CompileError(f"{job.name} for {job.arch}: {reason}{kept}", log=log, source_path=path)


def _save_source(job: Job) -> str | None:
    """Writes the source of ``job`` to a new temporary file; returns its path, None on failure."""
    try:
        descriptor, path = tempfile.mkstemp(".cu", f"ptxgen-{job.name}-{job.arch}-")
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(job.source)
    except OSError:
        return None
    return path


def _supported_architectures() -> str:
    try:
        numbers = _call(_nvrtc().nvrtcGetSupportedArchs)
    except CompileError:
        return "examples are compute_80 and sm_90a"
    listed = ", ".join(str(n) for n in numbers)
    return f"this NVRTC knows compute_N and sm_N for N in {listed}, some with a suffix a or f"
