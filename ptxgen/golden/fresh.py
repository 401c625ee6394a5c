"""Goldens as the specs, templates and compiler of now make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import EllipsisType

from ptxgen.build.cache import Cache
from ptxgen.build.compile import (
    TOOLCHAIN,
    Compiled,
    Job,
    compile_many,
    require_pinned_toolchain,
)
from ptxgen.build.render import render
from ptxgen.errors import CompileError
from ptxgen.golden.store import Goldens, Key, Usage
from ptxgen.spec import KernelSpec

ARCHES = ("sm_80", "sm_90a", "sm_120")
"""Architectures whose resource use is recorded."""


def targets(spec: KernelSpec) -> tuple[str, ...]:
    """The PTX targets of a kernel: portable PTX, or Hopper's if it needs Hopper."""
    oldest = getattr(spec, "min_arch", "sm_80")
    return ("compute_80",) if int(oldest.removeprefix("sm_")) < 90 else ("compute_90a",)


def arches(spec: KernelSpec) -> tuple[str, ...]:
    """Those of :data:`ARCHES` that the kernel fits."""
    return tuple(arch for arch in ARCHES if spec.runs_on(arch.rstrip("af")))


def expected(specs: Iterable[KernelSpec]) -> set[Key]:
    """Every golden that ``specs`` must have, by (target or architecture, kernel)."""
    return {(arch, spec.name) for spec in specs for arch in (*targets(spec), *arches(spec))}


def jobs(specs: Iterable[KernelSpec]) -> Iterator[Job]:
    """The compilations behind the goldens of ``specs``."""
    for spec in specs:
        source = render(spec)
        for arch in (*targets(spec), *arches(spec)):
            yield Job(source, spec.name, arch)


def build(
    specs: Iterable[KernelSpec],
    *,
    progress: Callable[[int, int, Job], None] | None = None,
    workers: int | None = None,
    cache: Cache | EllipsisType | None = ...,
) -> Goldens:
    """Renders and compiles ``specs``. Raises CompileError, also for another NVRTC version."""
    require_pinned_toolchain()
    kernels = {spec.name: spec for spec in specs}
    ptx, usage = {}, {}
    for made in compile_many(
        jobs(kernels.values()), progress=progress, workers=workers, cache=cache
    ):
        if made.kind == "ptx":
            ptx[made.arch, made.name] = made.text
        else:
            usage[made.arch, made.name] = usage_of(kernels[made.name], made)
    return Goldens(TOOLCHAIN.nvrtc, ptx, usage)


def usage_of(spec: KernelSpec, made: Compiled) -> Usage:
    """What ptxas said about a cubin, with the spec's dynamic shared memory."""
    if made.resources is None:
        raise CompileError(
            f"{made.name} for {made.arch}: the compiler's log does not say what it uses",
            log=made.log,
        )
    r = made.resources
    return Usage(r.registers, r.spill_stores, r.spill_loads, r.stack, r.shared + spec.shared_bytes)
