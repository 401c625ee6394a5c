"""Every architecture that is served: its limits, its devices, and that its kernels are its own."""

from __future__ import annotations

import pytest

from ptxgen.build.compile import Job, compile_many
from ptxgen.build.render import render
from ptxgen.build.targets import ARCHES
from ptxgen.errors import OptionError
from ptxgen.numerics.contract import TENSOR_CORES
from ptxgen.spec import ARCHITECTURES, KernelSpec, architecture_named, standing_for
from ptxgen.spec.wgmma import WgmmaSpec
from ptxgen.tiles import ROUTES

KIB = 1024
OTHERS = [a for a in ARCHITECTURES.values() if a.target not in ARCHES]
"""Architectures for which the goldens compile nothing."""


def routed(arch: str) -> list[KernelSpec]:
    """Every kernel that the dispatcher may choose on an architecture."""
    routes = [r for table in ROUTES.values() for r in table]
    kernels = {
        k.name: k for r in routes if all(k.runs_on(arch) for k in r.kernels) for k in r.kernels
    }
    return list(kernels.values())


def compiled(kernels: list[KernelSpec], target: str) -> None:
    jobs = [Job(render(kernel), kernel.name, target) for kernel in kernels]
    for kernel, made in zip(kernels, compile_many(jobs), strict=True):
        assert made.kind == "cubin" and made.resources is not None
        shared = kernel.shared_bytes + made.resources.shared
        assert shared <= ARCHITECTURES[target.rstrip("a")].shared_per_cta


@pytest.mark.parametrize(
    ("compute", "shared", "arch"),
    [
        ((8, 0), 163, "sm_80"), ((8, 6), 99, "sm_86"), ((8, 7), 163, "sm_87"),
        ((8, 8), 99, "sm_86"), ((8, 9), 99, "sm_89"), ((9, 0), 227, "sm_90"),
        ((10, 0), 227, "sm_100"), ((10, 1), 227, "sm_100"), ((10, 3), 227, "sm_103"),
        ((11, 0), 227, "sm_110"), ((12, 0), 99, "sm_120"), ((12, 1), 99, "sm_121"),
        ((7, 5), 64, None), ((9, 0), 99, None), ((13, 0), 227, None),
    ],
)  # fmt: skip
def test_what_a_device_stands_for(compute: tuple[int, int], shared: int, arch: str | None) -> None:
    found = standing_for(compute, shared * KIB)
    assert (found and found.name) == arch


def test_kernels_of_one_architecture_serve_no_other() -> None:
    hopper = [k for r in ROUTES.values() for route in r for k in route.kernels]
    hopper = [k for k in hopper if isinstance(k, WgmmaSpec)]
    assert hopper
    for compute in ((a.compute // 10, a.compute % 10) for a in OTHERS):
        found = standing_for(compute, 227 * KIB)
        assert found is not None and not any(k.runs_on(found.name) for k in hopper), compute


def test_every_architecture_has_a_model_of_its_tensor_cores() -> None:
    assert TENSOR_CORES.keys() == ARCHITECTURES.keys()


def test_architectures_are_named_alike_everywhere() -> None:
    for arch in ARCHITECTURES.values():
        assert architecture_named(arch.name) is architecture_named(arch.target) is arch
    assert ARCHITECTURES["sm_90"].target == "sm_90a"
    for name in ("sm_99", "sm_9", "90", "sm_80a", ""):
        with pytest.raises(
            OptionError, match=r"unknown architecture .* takes sm_80, sm_86, .*sm_1"
        ):
            architecture_named(name)


@pytest.mark.long
@pytest.mark.parametrize("arch", OTHERS[::3], ids=lambda arch: arch.name)
def test_one_kernel_of_each_family_compiles(arch) -> None:
    """The one with the least code, for every third architecture; the goldens compile all kernels
    for three others.
    """
    least: dict[str, KernelSpec] = {}
    for kernel in routed(arch.name):
        known = least.setdefault(kernel.family, kernel)
        if _cost(kernel) < _cost(known):
            least[kernel.family] = kernel
    assert {"simt", "mma", "reduce"} <= least.keys() and "wgmma" not in least
    compiled(list(least.values()), arch.target)


def _cost(kernel: KernelSpec) -> tuple[int, str]:
    tile = getattr(kernel, "bm", 1) * getattr(kernel, "bn", 1)
    return tile // kernel.threads, kernel.name
