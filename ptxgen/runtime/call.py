"""One library call, the careful way: read, check, stage, make the result, hand it back.

An op uses :class:`Call` whenever it has no prepared launch for what it was given; see the
package's docstring for how the two fit together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ptxgen.errors import DeviceError, DtypeError, ShapeError
from ptxgen.runtime import arrays
from ptxgen.runtime.arrays import ArrayView
from ptxgen.runtime.device import Device
from ptxgen.runtime.registry import default_device
from ptxgen.runtime.stream import resolve


class Call:
    """The operands of one call on one device and stream.

    ``operands`` maps argument names to arrays (None for those not given), the first of which
    decides the framework of the result. ``views`` has a view for each array given: on
    ``device``, ready for work on ``stream`` (a handle). Arrays in host memory go to the
    default device, and :meth:`finish` then waits for the result; nothing else waits.
    ``backwards``: as of :func:`ptxgen.runtime.arrays.view`, of all arrays.

    Raises what :func:`ptxgen.runtime.arrays.view` and :func:`ptxgen.runtime.stream.resolve`
    raise, and DeviceError for operands on different devices or a CPU torch tensor for a GPU.
    """

    def __init__(
        self, operands: Mapping[str, Any], stream: Any = None, *, backwards: bool = False
    ) -> None:
        given = {name: obj for name, obj in operands.items() if obj is not None}
        self.stream = resolve(stream, given.values())
        self._backwards = backwards
        self._sources = {name: self.view(obj, name) for name, obj in given.items()}
        found = arrays.common_device(self._sources)
        self.host = found is None
        self.device: Device = found or default_device()
        self._lead = next(iter(self._sources.values()))
        self._finish: list[Callable[[], Any]] = []
        self._outputs: list[tuple[str, ArrayView]] = []
        self._staged: dict[str, ArrayView] | None = None
        if self.host:
            for name, source in self._sources.items():
                _refuse_cpu_torch(source, name, self.device)

    def view(self, obj: Any, name: str) -> ArrayView:
        """An array as the call takes it."""
        return arrays.view(obj, name, self.stream, backwards=self._backwards)

    @property
    def views(self) -> dict[str, ArrayView]:
        """The operands by name. Host arrays have no device pointer before :meth:`stage`."""
        return self._sources if self._staged is None else self._staged

    def output(
        self,
        shape: tuple[int, ...],
        dtype: str,
        out: Any = None,
        *,
        read: bool = False,
        over: tuple[str, ...] = (),
        name: str = "out",
    ) -> ArrayView:
        """The array to write: ``out`` after checking it, or a new one of the caller's kind.

        ``read``: the operation also reads ``out``. ``over``: the operands that ``out`` may be, as a
        whole. ``name``: what the caller calls it. An operation
        with several results asks for one after the other. Raises ShapeError for a wrong shape, a
        read-only, immutable, self-overlapping ``out`` or one that overlaps an operand;
        DtypeError for a wrong dtype; DeviceError for one on another device.
        """
        if out is None:
            target, finish = self._new(name, shape, dtype)
        else:
            target, finish = self._given(name, shape, dtype, out, over), lambda: out
        self._outputs.append((name, target))
        if self.host:
            host = target
            if read:
                target = arrays.upload(host, self.device, self.stream)
            else:
                ours = arrays.DeviceArray(self.device, shape, dtype, self.stream)
                target = arrays.view(ours, name)
            staged, deliver = target, finish

            def finish() -> Any:
                arrays.download(staged, host, self.device, self.stream)
                return deliver()

        self._finish.append(finish)
        return target

    def _new(
        self, name: str, shape: tuple[int, ...], dtype: str
    ) -> tuple[ArrayView, Callable[[], Any]]:
        if not self.host:
            return arrays.empty(self._lead, shape, dtype, self.device, self.stream)
        array = arrays.host_empty(self._lead, shape, dtype)
        return arrays.view(array, name), lambda: array

    def _given(
        self, name: str, shape: tuple[int, ...], dtype: str, out: Any, over: tuple[str, ...]
    ) -> ArrayView:
        if arrays.framework_of(out) == "jax":
            raise ShapeError(f"{name} is a JAX array, which is immutable; leave {name}= away")
        target = self.view(out, name)
        arrays.common_device({**self._sources, name: target})
        if target.shape != shape:
            raise ShapeError(f"{name} has shape {list(target.shape)}; takes {list(shape)}")
        if target.dtype != dtype:
            raise DtypeError(f"{name} has dtype {target.dtype}; takes {dtype}")
        if target.readonly:
            raise ShapeError(f"{name} is read-only; pass a writable array or leave {name}= away")
        if target.overlaps_itself():
            raise ShapeError(
                f"{name} has strides {list(target.strides)}, so that elements share memory; "
                "pass a contiguous array"
            )
        for other, source in (*self._sources.items(), *self._outputs):
            if target.overlaps(source) and not (other in over and target.coincides(source)):
                raise ShapeError(f"{name} shares memory with {other}; pass an array of its own")
        if target.after is not None:
            self.device.order(self.stream, target.after)
        return target

    def stage(self) -> None:
        """Brings host operands to the device and orders the stream behind producers.

        Call it after all checks of the op: only from here on anything is enqueued.
        """
        for source in self._sources.values():
            if source.after is not None:
                self.device.order(self.stream, source.after)
        if self.host:
            self._staged = {
                name: arrays.upload(source, self.device, self.stream)
                for name, source in self._sources.items()
            }

    def finish(self) -> Any:
        """The result, in the caller's kind, once the work is enqueued; several as a tuple."""
        assert self._finish, "Call.output comes before Call.finish"
        results = [finish() for finish in self._finish]
        result = results[0] if len(results) == 1 else tuple(results)
        # DLPack owners may reuse their memory as soon as we let go of the capsules.
        held = [v.owner for v in self._sources.values() if v.framework in ("jax", "dlpack")]
        if held and not self.host:
            self.device.retain(self.stream, held)
        return result


def _refuse_cpu_torch(source: ArrayView, name: str, target: Device) -> None:
    if source.framework == "torch" and target.kind == "cuda":
        raise DeviceError(
            f"{name} is a CPU torch tensor and {target} would compute; pass {name}.cuda(), or a "
            f"NumPy array ({name}.numpy()) to have it copied in and out"
        )
