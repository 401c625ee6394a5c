"""Devices: what the library needs from a machine that runs kernels.

:class:`Device` holds everything that is the same for all kinds (which arch to compile
for, lazily loaded functions, shared-memory limits, the default device) on top of a few
primitives. A CUDA device implements the primitives through the driver
(:mod:`ptxgen.runtime.cuda`); another kind joins with :func:`register`.
"""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar

from ptxgen.errors import DeviceError, NoGpuError, OptionError
from ptxgen.runtime.launch import GenericLaunch, Launch, Parameters, TensorBox
from ptxgen.runtime.workspace import Workspace
from ptxgen.spec import ARCHITECTURES

DEFAULT_SHARED_LIMIT = 48 * 1024
"""Dynamic shared memory, in bytes, that a kernel gets without asking (CUDA programming guide)."""


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel loaded on one device. ``handle`` means something to that device only."""

    device: Device
    symbol: str
    handle: int
    shared_bytes: int


class Device(ABC):
    """One device. Pointers and stream handles are ints.

    ``image_kind`` says what it loads: "cubin", or "ptx".

    Attributes: ``kind``, ``index``, ``name``, ``compute`` (capability, such as (9, 0)),
    ``sms``, ``max_shared`` (the most dynamic shared memory of a block, in bytes),
    ``workspace``, the scratch memory of kernels on this device, and ``prepared``, launches that its
    users have ready, by keys of theirs: kept as long as the device, and theirs to bound.
    """

    image_kind: ClassVar[str] = "cubin"

    def __init__(
        self,
        kind: str,
        index: int,
        *,
        name: str,
        compute: tuple[int, int],
        sms: int,
        max_shared: int,
    ) -> None:
        self.kind, self.index, self.name = kind, index, name
        self.compute, self.sms, self.max_shared = compute, sms, max_shared
        self.workspace = Workspace(self)
        self.prepared: dict[Any, Launch] = {}
        self._functions: dict[str, Function] = {}
        self._building: dict[str, threading.Lock] = {}
        self._in_use: deque[tuple[Any, Any]] = deque()
        _watch_forks(self)

    def forked(self) -> None:
        """In a forked child, where no other thread goes on: gives up the locks of those."""
        self._building = {}
        self.workspace.forked()

    def __repr__(self) -> str:
        return f"<Device {self} {self.name!r} {self.arch} sms={self.sms}>"

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}"

    @property
    def arch(self) -> str:
        """The best compile target for this device, such as ``"sm_90a"``."""
        major, minor = self.compute
        name = f"sm_{major}{minor}"
        known = ARCHITECTURES.get(name)
        return known.target if known else name

    @property
    def gpu(self) -> str:
        """The name of the GPU whose measured profile fits (:mod:`ptxgen.tiles.profiles`)."""
        return self.name

    def load(self, image: bytes, symbol: str, shared_bytes: int = 0) -> Function:
        """Loads ``symbol`` from a cubin and allows it ``shared_bytes`` of dynamic shared memory.

        Raises DeviceError when the device has less shared memory, or refuses the image.
        """
        if shared_bytes > self.max_shared:
            raise DeviceError(
                f"{symbol} needs {shared_bytes} bytes of shared memory, but {self} ({self.name}) "
                f"allows {self.max_shared}; choose a spec with a smaller tile or fewer stages"
            )
        handle = self._load(image, symbol)
        if shared_bytes > DEFAULT_SHARED_LIMIT:
            self._allow_shared(handle, symbol, shared_bytes)
        return Function(self, symbol, handle, shared_bytes)

    def kernel(self, symbol: str, image: Callable[[str], bytes], shared_bytes: int = 0) -> Function:
        """The kernel ``symbol``, compiled and loaded when it is first asked for.

        ``image`` is called with :attr:`arch` and returns a cubin; once per symbol, also
        when several threads ask at once (different symbols compile in parallel). A symbol
        names its content: asking again with another image returns the first. Raises what
        ``image`` and :meth:`load` raise, and remembers nothing then.
        """
        function = self._functions.get(symbol)
        if function is None:
            with self._building.setdefault(symbol, threading.Lock()):
                function = self._functions.get(symbol)
                if function is None:
                    function = self.load(image(self.arch), symbol, shared_bytes)
                    self._functions[symbol] = function
        return function

    def loaded(self) -> tuple[str, ...]:
        """The kernels that are loaded, in the order in which they were first asked for."""
        return tuple(self._functions)

    def prepare(
        self,
        function: Function,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        params: Parameters,
        pointers: int,
        what: str,
        programmatic: bool = False,
    ) -> Launch:
        """A launch of ``function`` that only needs a stream and ``pointers`` pointers to be fired.

        ``params`` says which of them each firing writes where. ``what``
        describes the problem in error messages. ``programmatic`` permits the launch to start
        before the one ahead of it in its stream has ended; its kernel must wait for that end by
        itself (``griddepcontrol.wait``). A device without overlap has nothing to do for it.
        """
        return GenericLaunch(function, grid, block, params, pointers, what)

    def retain(self, stream: int, owners: object) -> None:
        """Keeps ``owners`` alive until the work enqueued on ``stream`` so far has finished."""
        in_use = self._in_use
        in_use.append((self.mark(stream), owners))
        for _ in range(len(in_use)):
            try:
                item = in_use.popleft()
            except IndexError:  # another thread emptied it
                return
            if not self.done(item[0]):
                in_use.append(item)

    # -- primitives ---------------------------------------------------------------
    @abstractmethod
    def _load(self, image: bytes, symbol: str) -> int:
        """Loads a module and returns a handle of its kernel ``symbol``."""

    @abstractmethod
    def _allow_shared(self, handle: int, symbol: str, nbytes: int) -> None:
        """Raises the dynamic shared memory limit of a kernel to ``nbytes``."""

    @abstractmethod
    def launch(
        self,
        function: Function,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        stream: int,
        params: bytes,
        what: str,
    ) -> None:
        """Enqueues one launch with the packed parameter list ``params``."""

    @abstractmethod
    def tensor_map(self, box: TensorBox, pointer: int) -> bytes:
        """The tensor map of ``box`` at ``pointer``, as kernels of this device take it."""

    @abstractmethod
    def alloc(self, nbytes: int) -> int:
        """Allocates device memory, aligned to at least 256 bytes, also while a stream captures."""

    @abstractmethod
    def free(self, ptr: int) -> None:
        """Frees what :meth:`alloc` returned, once no enqueued work can use it any more."""

    @abstractmethod
    def copy_in(self, dst: int, src: int, nbytes: int, stream: int = 0) -> None:
        """Enqueues a copy from host address ``src`` to device address ``dst``."""

    @abstractmethod
    def copy_out(self, dst: int, src: int, nbytes: int, stream: int = 0) -> None:
        """Enqueues a copy from device address ``src`` to host address ``dst``."""

    @abstractmethod
    def memset(self, ptr: int, value: int, nbytes: int, stream: int = 0) -> None:
        """Enqueues setting ``nbytes`` bytes to ``value`` (0 to 255)."""

    @abstractmethod
    def synchronize(self, stream: int | None = None) -> None:
        """Waits for ``stream``, or for the whole device."""

    # Stream order. These defaults fit a device that finishes each call before returning.
    def lane(self, stream: int) -> Hashable:
        """Names the queue behind ``stream``: works of one lane never overlap in time.

        Two captures on one stream are two lanes, because their graphs may be replayed
        anywhere; so are two streams that had the same handle one after the other.
        """
        return 0

    def order(self, stream: int, after: int) -> None:  # noqa: B027 - nothing to order
        """Makes later work on ``stream`` wait for the work enqueued on ``after`` so far."""

    def mark(self, stream: int) -> Any:
        """A mark behind the work enqueued on ``stream`` so far, for :meth:`done`."""
        return None

    def done(self, mark: Any) -> bool:
        """Whether the work before ``mark`` has finished (never waits)."""
        return True


# -- registry -----------------------------------------------------------------------


class _Kind:
    """One kind of devices, opened when first asked for."""

    def __init__(self, factory: Callable[[], Sequence[Device]]) -> None:
        self.factory = factory
        self.opened: Sequence[Device] | None = None

    def devices(self) -> Sequence[Device]:
        if self.opened is None:
            with _lock:
                if self.opened is None:
                    self.opened = tuple(self.factory())
        return self.opened


_lock = threading.RLock()
_made: weakref.WeakSet[Device] = weakref.WeakSet()
_watching = False
_kinds: dict[str, _Kind] = {}
_process_default: Device | None = None
_no_gpu = False
_context_default: ContextVar[Device | None] = ContextVar("ptxgen_device", default=None)


def _watch_forks(device: Device) -> None:
    """Sees to it that a forked child is not left waiting for locks that nobody there holds."""
    global _watching
    _made.add(device)
    if not _watching and hasattr(os, "register_at_fork"):
        _watching = True
        os.register_at_fork(after_in_child=_forked)


def _forked() -> None:
    global _lock
    _lock = threading.RLock()
    for device in list(_made):
        device.forked()


def register(kind: str, factory: Callable[[], Sequence[Device]]) -> None:
    """Adds a kind of devices.

    ``factory`` is called once, at first use, and returns the devices in index order; it
    raises DeviceError when this machine cannot have any. Registering again replaces it.
    """
    global _no_gpu
    _kinds[kind] = _Kind(factory)
    _no_gpu = False


def _cuda_devices() -> Sequence[Device]:
    from ptxgen.runtime import cuda

    return cuda.open_devices()


def _cpu_devices() -> Sequence[Device]:
    from ptxgen.runtime import cpu

    return cpu.open_devices()


register("cuda", _cuda_devices)
register("cpu", _cpu_devices)


def devices() -> tuple[Device, ...]:
    """Every usable device of every kind; empty on a machine that has none."""
    found: list[Device] = []
    for kind in _kinds.values():
        try:
            found.extend(kind.devices())
        except DeviceError:
            continue
    return tuple(found)


def get_device(spec: str | Device) -> Device:
    """The device that ``spec`` names: ``"cuda"``, ``"cuda:1"``, ``"cpu"`` or a Device.

    Raises OptionError for an unknown name, DeviceError when there is no such device here.
    """
    if isinstance(spec, Device):
        return spec
    kind, colon, number = spec.partition(":") if isinstance(spec, str) else (None, "", "")
    if kind not in _kinds or (colon and not (number.isascii() and number.isdigit())):
        raise OptionError(
            f"unknown device {spec!r}; takes a Device or one of "
            + ", ".join(f'"{k}", "{k}:<index>"' for k in _kinds)
        )
    found = _kinds[kind].devices()
    index = int(number or 0)
    if index >= len(found):
        missing = NoGpuError if kind == "cuda" and not found else DeviceError
        raise missing(f"there is no device {kind}:{index}; {len(found)} of kind {kind!r} exist")
    return found[index]


def default_device() -> Device:
    """Where arrays in host memory go.

    The innermost :class:`use_device` of this context, else what :func:`set_default_device`
    set for the process, else ``"cuda:0"``, or ``"cpu"`` where there is no GPU. Raises
    DeviceError when there is a GPU that cannot be used.
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
    """Sets the default device of the process (all threads); None restores the rule."""
    global _process_default
    _process_default = None if spec is None else get_device(spec)


class use_device:  # noqa: N801 - reads as a statement: with ptxgen.use_device("cuda:1")
    """Context manager: the default device of this thread (or task) inside the block.

    Like every context variable it does not reach threads started inside the block.
    Arrays that already live on a GPU are computed where they live, whatever the default.
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
