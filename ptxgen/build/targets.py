"""Architectures that kernels are compiled for without a GPU, and the target of their PTX."""

from __future__ import annotations

from ptxgen.errors import SpecError
from ptxgen.spec import KernelSpec

ARCHES = ("sm_80", "sm_90a", "sm_120")
"""Architectures that goldens are compiled for, oldest first. PTX for sm_90a may use all
instructions of PTX for sm_90."""


def arches(spec: KernelSpec) -> tuple[str, ...]:
    """Returns the members of :data:`ARCHES` that a kernel runs on. Raises SpecError for none."""
    fitting = tuple(arch for arch in ARCHES if spec.runs_on(arch.rstrip("af")))
    if not fitting:
        raise SpecError(f"{spec.name} runs on none of the recorded architectures, {ARCHES}")
    return fitting


def portable_target(spec: KernelSpec) -> str:
    """Returns the target of a kernel's PTX, such as "compute_80": the first of :data:`ARCHES` that
    the kernel runs on. Newer GPUs load that PTX, too, unless it is for compute_90a.
    """
    return arches(spec)[0].replace("sm_", "compute_")
