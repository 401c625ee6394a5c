"""A device that runs nothing, for PyTorch's meta tensors: calls choose and prepare their kernels.

While it is open, functions of :mod:`ptxgen.torch` take tensors on ``device="meta"``, which have
shapes and strides but no memory. Each call is lowered and planned as it would be on the GPU that
the device stands for; its problems are then the keys of :attr:`Device.prepared`. Nothing is
compiled. This is how kernels are found before an engine starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ptxgen.cost.gpu import Rates
from ptxgen.runtime import registry
from ptxgen.runtime.device import Device
from ptxgen.runtime.launch import Dim3, Function, GenericLaunch, Parameters, TensorBox


class CompilingDevice(Device):
    """A device that stands for the GPU ``name`` and launches nothing; other arguments are those of
    :class:`Device`.
    """

    can_run = False

    def __init__(
        self,
        name: str,
        compute: tuple[int, int],
        sms: int,
        max_shared: int,
        rates: Rates | None = None,
    ) -> None:
        limits = {"sms": sms, "max_shared": max_shared}
        super().__init__(registry.META, 0, name=name, compute=compute, rates=rates, **limits)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Context manager: meta tensors are on this device."""
        registry.register(registry.META, lambda: (self,))
        try:
            yield
        finally:
            registry.unregister(registry.META)

    def kernel(self, symbol: str, image: Callable[[str], bytes], shared_bytes: int = 0) -> Function:
        """Returns a kernel without an image; ``image`` is not called."""
        return Function(self, symbol, 0, shared_bytes)

    def prepare(
        self,
        function: Function,
        grid: Dim3,
        block: Dim3,
        params: Parameters,
        pointers: int,
        what: str,
        programmatic: bool = False,
    ) -> _NoLaunch:
        """Returns a launch that does nothing when it is fired."""
        return _NoLaunch(function, grid, block, params, pointers, what, programmatic)

    # -- primitives, which do nothing ---------------------------------------------
    def _load(self, image: bytes, symbol: str) -> int:
        return 0

    def _allow_shared(self, handle: int, symbol: str, nbytes: int) -> None:
        pass

    def launch(
        self, function: Function, grid: Dim3, block: Dim3, stream: int, params: bytes, what: str
    ) -> None:
        pass

    def tensor_map(self, box: TensorBox, pointer: int) -> bytes:
        return b""

    def alloc(self, nbytes: int) -> int:
        """Returns an aligned address, of no memory."""
        return 1 << 32

    def free(self, ptr: int) -> None:
        pass

    def copy_in(self, dst: int, src: int, nbytes: int, stream: int = 0) -> None:
        pass

    def copy_out(self, dst: int, src: int, nbytes: int, stream: int = 0) -> None:
        pass

    def copy(self, dst: int, src: int, nbytes: int, stream: int = 0) -> None:
        pass

    def memset(self, ptr: int, value: int, nbytes: int, stream: int = 0) -> None:
        pass

    def synchronize(self, stream: int | None = None) -> None:
        pass


class _NoLaunch(GenericLaunch):
    """A launch that does nothing: addresses of meta tensors are apart, but no pointers."""

    __slots__ = ()

    def fire(self, stream: int, *pointers: int) -> None:
        pass
