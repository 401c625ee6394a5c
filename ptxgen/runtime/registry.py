"""Registry of devices, and the default device, which computes on arrays in host memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from types import TracebackType

from ptxgen.errors import DeviceError, NoGpuError, OptionError
from ptxgen.locks import Lock
from ptxgen.runtime.device import Device

META = "meta"
"""Kind of devices that run nothing (:mod:`ptxgen.runtime.compiling`), on which PyTorch's tensors
without memory are while there is one.
"""


class _Kind:
    """One kind of device, such as "cuda"; its devices are opened at first use."""

    def __init__(self, factory: Callable[[], Sequence[Device]]) -> None:
        self.factory = factory
        self.opened: Sequence[Device] | None = None
        self.lock = Lock()

    def devices(self) -> Sequence[Device]:
        if self.opened is None:
            with self.lock:
                if self.opened is None:
                    self.opened = tuple(self.factory())
        return self.opened


_kinds: dict[str, _Kind] = {}
_process_default: Device | None = None
_no_gpu = False
_context_default: ContextVar[Device | None] = ContextVar("ptxgen_device", default=None)


def register(kind: str, factory: Callable[[], Sequence[Device]]) -> None:
    """Adds the kind ``kind`` of devices, or replaces it.

    ``factory`` is called once, at first use, and returns the devices in index order; it raises
    DeviceError if this machine has none.
    """
    global _no_gpu
    _kinds[kind] = _Kind(factory)
    _no_gpu = False


def unregister(kind: str) -> None:
    """Removes the kind ``kind`` of devices, if there is one."""
    _kinds.pop(kind, None)


def is_registered(kind: str) -> bool:
    """Whether there is a kind ``kind`` of devices."""
    return kind in _kinds


def _cuda_devices() -> Sequence[Device]:
    from ptxgen.runtime import cuda

    return cuda.open_devices()


def _cpu_devices() -> Sequence[Device]:
    from ptxgen.runtime import cpu

    return cpu.open_devices()


register("cuda", _cuda_devices)
register("cpu", _cpu_devices)


def devices() -> tuple[Device, ...]:
    """Returns every usable device of every kind: the GPUs, if there are any, and the CPU device."""
    found: list[Device] = []
    for kind in _kinds.values():
        try:
            found.extend(kind.devices())
        except DeviceError:
            continue
    return tuple(found)


def get_device(spec: str | Device, argument: str = "spec") -> Device:
    """Returns the device that ``spec`` names: ``"cuda"``, ``"cuda:1"``, ``"cpu"`` or a Device.

    ``argument``: name of the argument in errors.

    Raises OptionError for an unknown name, DeviceError when there is no such device here.
    """
    if isinstance(spec, Device):
        return spec
    kind, colon, number = spec.partition(":") if isinstance(spec, str) else (None, "", "")
    if kind not in _kinds or (colon and not re.fullmatch("[0-9]{1,9}", number)):
        raise OptionError(
            f"{argument} is {spec!r}; takes a Device or one of "
            + ", ".join(f'"{k}", "{k}:<index>"' for k in _kinds)
        )
    found = _kinds[kind].devices()
    index = int(number or 0)
    if index >= len(found):
        missing = NoGpuError if kind == "cuda" and not found else DeviceError
        raise missing(f"there is no device {kind}:{index}; {len(found)} of kind {kind!r} exist")
    return found[index]


def default_device() -> Device:
    """Returns the device that computes on arrays in host memory.

    This is the innermost :class:`use_device` of this context, else the device that
    :func:`set_default_device` set for the process, else ``"cuda:0"``, or ``"cpu"`` where there
    is no GPU. Raises DeviceError when there is a GPU that cannot be used.
    """
    return _context_default.get() or _process_default or _best_device()


def _best_device() -> Device:
    global _no_gpu
    if not _no_gpu:
        try:
            return get_device("cuda")
        except NoGpuError:
            _no_gpu = True  # for good: asking again costs a search for the driver
    return get_device("cpu")


def set_default_device(spec: str | Device | None) -> None:
    """Sets the default device of the process (all threads); None restores the automatic choice.

    ``spec``: ``"cuda"``, ``"cuda:1"``, ``"cpu"`` or a device. Raises OptionError for an unknown
    name, DeviceError when there is no such device here.
    """
    global _process_default
    _process_default = None if spec is None else get_device(spec)


class use_device:  # noqa: N801 - reads as a statement: with ptxgen.use_device("cuda:1")
    """Context manager that sets the default device of this thread (or asyncio task).

    Like every context variable it does not reach threads started inside the ``with`` block. Arrays
    on a GPU are computed on that GPU, whatever the default.

    Raises OptionError for an unknown name, DeviceError when there is no such device here.
    """

    def __init__(self, spec: str | Device) -> None:
        self.device = get_device(spec)
        self._tokens: list[Token[Device | None]] = []

    def __enter__(self) -> Device:
        self._tokens.append(_context_default.set(self.device))
        return self.device

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _context_default.reset(self._tokens.pop())
