"""Kernels that calls launch, found by tensors without memory (:mod:`ptxgen.runtime.compiling`).

The dispatcher chooses them, as it does when the call runs: there is no list of kernels here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import torch

from ptxgen.errors import DeviceError, PtxgenError
from ptxgen.program.launch import kernels_of
from ptxgen.runtime import get_device
from ptxgen.runtime.compiling import CompilingDevice
from ptxgen.runtime.cpu import GPU, SMS
from ptxgen.runtime.registry import META
from ptxgen.spec import KernelSpec, Problem, architecture_named


def device_for(arch: str | None = None, sms: int | None = None) -> CompilingDevice:
    """Returns the device that stands for a GPU: this machine's, or without one an H200. With
    ``arch`` or ``sms`` it stands for a GPU of that architecture (default: sm_90a) with so many SMs
    (default: those of an H200). Raises OptionError for an unknown architecture.
    """
    if arch is None and sms is None:
        try:
            gpu = get_device("cuda")
            return CompilingDevice(gpu.name, gpu.compute, gpu.sms, gpu.max_shared, gpu.rates)
        except DeviceError:
            pass
    of = architecture_named(arch or "sm_90")
    name = GPU if (of.name, sms or SMS) == ("sm_90", SMS) else f"a GPU of {of.name}"
    return CompilingDevice(name, divmod(of.compute, 10), sms or SMS, of.shared_per_cta)


def problems(
    make: Callable[[], Any], device: CompilingDevice
) -> Iterator[tuple[Problem, str | None]]:
    """Yields each problem of a call of meta tensors on ``device``, which is open, with the name of
    the kernel that the call forces, or None.
    """
    device.prepared.clear()
    make()
    for problem, _, forced in device.prepared:
        yield problem, forced


class Layout(NamedTuple):
    """Layout of a tensor, from which a meta tensor is made."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype


class Recipe(NamedTuple):
    """A call whose tensors are replaced by their layouts, so that it can be kept and made again."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, function: Callable[..., Any], *arguments: Any, **options: Any) -> Recipe:
        """Returns the recipe of ``function(*arguments, **options)``."""
        named = tuple((name, _layout(x)) for name, x in options.items())
        return cls(function, _layout(arguments), named)

    def make(self) -> Any:
        """Makes the call with meta tensors."""
        options = {name: _meta(x) for name, x in self.options}
        return self.function(*_meta(self.arguments), **options)


def _layout(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return Layout(tuple(x.shape), tuple(x.stride()), x.dtype)
    return tuple(map(_layout, x)) if isinstance(x, tuple | list) else x


def _meta(x: Any) -> Any:
    if isinstance(x, Layout):
        return torch.empty_strided(x.shape, x.strides, dtype=x.dtype, device=META)
    return tuple(map(_meta, x)) if isinstance(x, tuple) else x


@cache
def launched(recipe: Recipe) -> tuple[KernelSpec, ...]:
    """Returns the kernels of a call on this machine's GPU, or on an H200 where there is none, in
    the order of their launches; none for a call that ptxgen refuses.
    """
    device = device_for()
    with device.opened(), torch.no_grad():
        try:
            found = [kernels_of(made, device, of) for made, of in problems(recipe.make, device)]
        except PtxgenError:
            return ()
    return tuple(spec for specs in found for spec in specs)
