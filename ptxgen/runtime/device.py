"""Interface of devices that run kernels.

:class:`Device` implements everything that is the same for all kinds (the architecture to compile
for, lazily loaded functions, shared-memory limits) on top of a few primitives. A CUDA device
implements the primitives through the driver (:mod:`ptxgen.runtime.cuda`). Other kinds are added by
:func:`ptxgen.runtime.registry.register`.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any, ClassVar

from ptxgen.cost.gpu import Rates
from ptxgen.errors import DeviceError
from ptxgen.locks import Lock
from ptxgen.runtime.launch import Dim3, Function, GenericLaunch, Launch, Parameters, TensorBox
from ptxgen.runtime.workspace import Workspace
from ptxgen.spec import ARCHITECTURES

DEFAULT_SHARED_LIMIT = 32 * 1024
"""Dynamic shared memory, in bytes, that a kernel may use without raising its limit.

The default limit of 48 KiB (CUDA programming guide) also includes static shared memory, whose size
the device does not know; this leaves 16 KiB for it.
"""


class Device(ABC):
    """One device. Pointers and stream handles are ints.

    ``image_kind``: the kind of image that it loads, "cubin" or "ptx"; ``can_time``: whether
    :meth:`timed` measures work.

    Attributes: ``kind``, ``index``, ``name``, ``compute`` (capability, such as (9, 0)),
    ``sms``, ``max_shared`` (the most dynamic shared memory of a block, in bytes),
    ``rates`` (clock, bandwidths and so on, as far as the driver reports them),
    ``workspace`` (the scratch memory of kernels on this device), and two caches, whose users choose
    the keys and bound the size: ``prepared`` (launches) and ``calls`` (prepared calls on arrays in
    host memory).
    """

    image_kind: ClassVar[str] = "cubin"
    can_time: ClassVar[bool] = False
    can_run: ClassVar[bool] = True
    """Whether launches run; else calls are planned only, and no code is cached for them."""

    def __init__(
        self,
        kind: str,
        index: int,
        *,
        name: str,
        compute: tuple[int, int],
        sms: int,
        max_shared: int,
        rates: Rates | None = None,
    ) -> None:
        self.kind, self.index, self.name = kind, index, name
        self.rates = rates
        self.compute, self.sms, self.max_shared = compute, sms, max_shared
        self.workspace = Workspace(self)
        self.prepared: dict[Any, Launch] = {}
        self.calls: dict[Any, Any] = {}
        self._functions: dict[str, Function] = {}
        self._building: dict[str, Lock] = {}
        self._in_use: deque[tuple[Any, Any]] = deque()

    def __repr__(self) -> str:
        return f"<Device {self} {self.name!r} {self.arch} sms={self.sms}>"

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}"

    @property
    def arch(self) -> str:
        """Best compile target for this device, such as ``"sm_90a"``."""
        major, minor = self.compute
        name = f"sm_{major}{minor}"
        known = ARCHITECTURES.get(name)
        return known.target if known else name

    @property
    def gpu(self) -> str:
        """Name of the GPU whose tuning, the constants of the cost model, predicts times on this
        device (:mod:`ptxgen.cost.tuning`).
        """
        return self.name

    @property
    def identity(self) -> str:
        """Name of the device and its driver, as a key of measured times."""
        return f"{self.name}, {self.sms} SMs"

    def capturing(self, stream: int) -> bool:
        """Whether ``stream`` is capturing: its work is recorded into a graph, not run."""
        return False

    def timed(
        self, work: Sequence[Callable[[], None]], stream: int, rounds: int
    ) -> list[list[float]]:
        """Times functions that enqueue on ``stream``; returns µs for each function and round.

        A round runs all in order, each with a cold L2; a warm-up round comes first. Waits for the
        device. Raises DeviceError where :attr:`can_time` is false.
        """
        raise DeviceError(f"{self} times nothing")

    def counted(self, work: Callable[[], None]) -> tuple[Any, ...]:
        """Runs ``work``, and returns counts for each kernel that it launches
        (:class:`ptxgen.interp.run.profile.KernelProfile`). Raises DeviceError on other devices
        than the CPU device.
        """
        raise DeviceError(f"{self} counts nothing")

    def load(self, image: bytes, symbol: str, shared_bytes: int = 0) -> Function:
        """Loads ``symbol`` from an image, with ``shared_bytes`` of dynamic shared memory allowed.

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
        return Function(self, symbol, handle, shared_bytes, image)

    def kernel(self, symbol: str, image: Callable[[str], bytes], shared_bytes: int = 0) -> Function:
        """Returns the kernel ``symbol``; compiles and loads it at the first call.

        ``image`` is called with :attr:`arch` and returns the image, once per symbol even if threads
        call concurrently (different symbols compile in parallel). A symbol identifies its image:
        later calls return the first kernel. Raises what ``image`` and :meth:`load` raise, and then
        keeps nothing.
        """
        function = self._functions.get(symbol)
        if function is None:
            with self._building.setdefault(symbol, Lock()):
                function = self._functions.get(symbol)
                if function is None:
                    function = self.load(image(self.arch), symbol, shared_bytes)
                    self._functions[symbol] = function
        return function

    def imaged(self, symbol: str, image: bytes, shared_bytes: int = 0) -> Function:
        """Returns the kernel ``symbol`` of ``image``: the one that :meth:`kernel` has loaded if it
        has the same image, else a new one, which :meth:`kernel` never returns. Raises as
        :meth:`load`.
        """
        found = self._functions.get(symbol)
        if found is not None and found.image == image:
            return found
        return self.load(image, symbol, shared_bytes)

    def loaded(self) -> tuple[str, ...]:
        """Returns the names of the kernels that :meth:`kernel` has loaded, oldest first."""
        return tuple(self._functions)

    def prepare(
        self,
        function: Function,
        grid: Dim3,
        block: Dim3,
        params: Parameters,
        pointers: int,
        what: str,
        programmatic: bool = False,
    ) -> Launch:
        """Prepares a launch of ``function``, to be fired with a stream and ``pointers`` pointers.

        ``params``: the parameter list, and the positions of the pointers in it. ``what`` describes
        the problem in error messages. ``programmatic`` permits the launch to start before the one
        ahead of it in its stream has ended; its kernel must call ``griddepcontrol.wait``. A device
        that runs launches one after the other ignores it.
        """
        return GenericLaunch(function, grid, block, params, pointers, what, programmatic)

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
        self, function: Function, grid: Dim3, block: Dim3, stream: int, params: bytes, what: str
    ) -> None:
        """Enqueues one launch with the packed parameter list ``params``."""

    @abstractmethod
    def tensor_map(self, box: TensorBox, pointer: int) -> bytes:
        """Encodes the tensor map of ``box`` at ``pointer``, for kernels of this device."""

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
    def copy(self, dst: int, src: int, nbytes: int, stream: int = 0) -> None:
        """Enqueues a copy from one device address to another."""

    @abstractmethod
    def memset(self, ptr: int, value: int, nbytes: int, stream: int = 0) -> None:
        """Enqueues setting ``nbytes`` bytes to ``value`` (0 to 255)."""

    @abstractmethod
    def synchronize(self, stream: int | None = None) -> None:
        """Waits for ``stream``, or for the whole device."""

    # Stream order. These defaults fit a device that finishes each call before returning.
    def lane(self, stream: int) -> Hashable:
        """Returns a key of the queue behind ``stream``: work with one key never overlaps in time.

        Two captures on one stream have two keys, because their graphs may be replayed anywhere; so
        have two streams that had one handle one after the other.
        """
        return 0

    def pinned(self, nbytes: int) -> tuple[int, Any]:
        """Allocates host memory from which copies to the device run beside the host and kernels.
        Returns its address, and the object that keeps it.
        """
        memory = (ctypes.c_char * nbytes)()
        return ctypes.addressof(memory), memory

    def stamp(self, stream: int) -> Any:
        """Records a point in time after the work enqueued on ``stream`` so far, for :meth:`since`.
        Here that of the host, as calls of such a device return when their work is done.
        """
        return perf_counter_ns()

    def since(self, base: Any, stamps: Sequence[Any]) -> list[float]:
        """Returns the time from stamp ``base`` to each of ``stamps``, µs; waits for the device."""
        return [(each - base) / 1e3 for each in stamps]

    def event(self, stream: int) -> Any:
        """Records an event after the work enqueued on ``stream`` so far, for :meth:`wait`."""
        return None

    def wait(self, stream: int, event: Any) -> None:  # noqa: B027 - nothing to wait for
        """Makes later work on ``stream`` wait for an event."""

    def order(self, stream: int, after: int) -> None:
        """Makes later work on ``stream`` wait for the work enqueued on ``after`` so far."""
        if after != stream:
            self.wait(stream, self.event(after))

    def mark(self, stream: int) -> Any:
        """Returns a mark after the work enqueued on ``stream`` so far, for :meth:`done`."""
        return None

    def done(self, mark: Any) -> bool:
        """Whether the work before ``mark`` has finished (never waits)."""
        return True

    @contextmanager
    def streams(self, count: int) -> Iterator[tuple[int, ...]]:
        """Context manager that yields the handles of ``count`` new streams, and destroys these at
        its end.
        """
        yield (0,) * count

    def recorded(self, work: Callable[..., None], streams: int = 1) -> Callable[[int], None]:
        """Records ``work``, called with ``streams`` streams; returns a function that replays it.

        At its end, ``work`` must make the first stream wait for the others. Its launches must be
        prepared, and their kernels loaded, beforehand. A device without graphs calls ``work`` at
        each replay, with one stream.
        """
        return work if streams == 1 else lambda stream: work(*[stream] * streams)
