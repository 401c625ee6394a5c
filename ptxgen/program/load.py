"""``load``: reads saved programs back as callables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from ptxgen.errors import DeviceError, SavedError
from ptxgen.program import saved
from ptxgen.program.place import placed, put
from ptxgen.program.replay import Owned
from ptxgen.program.streams import STREAMS, checked
from ptxgen.runtime import Device, default_device, get_device, resolve


def load(
    path: str | PathLike[str],
    *,
    arrays: Sequence[Any] | Mapping[str, Any] | None = None,
    device: str | Device | None = None,
    stream: Any = None,
    streams: int = STREAMS,
) -> Owned:
    """Returns the callable that was saved to ``path``
    (:meth:`~ptxgen.program.replay.Replayed.save`); it has the same bits. Nothing is traced, chosen,
    rendered or compiled. A cubin in the file is code, and digests do not say who wrote it: load
    only files that you trust.

    ``arrays``: closed-over arrays, which the program reads besides its arguments, instead of those
    in the file: a sequence in the order of ``captured.outside``, or some of them by name, such as a
    module's ``state_dict()`` for a file of :func:`ptxgen.torch.export` (other names are ignored).
    ``device``: the device that runs the program; by default the one that computes NumPy's arrays.
    ``streams``: see :func:`ptxgen.capture`.

    Shapes
        Each call takes the captured shapes.
    Dtypes
        Each call takes the captured dtypes, and returns new arrays in the framework of its first
        argument.
    Storage
        Closed-over arrays are copied to the device once. Members of ``arrays`` that are already
        there are read in place, and must have the captured strides and alignment. An argument that
        is written is written in the caller's own memory, at each call; so are members of ``arrays``
        on the device. Other closed-over arrays that are written are copies that the callable owns.
        ``stream``: the stream on which memory is allocated.
    Order
        Each operation has the order of its contract.
    Errors
        SavedError, which names the fault and its place, for a file that was cut or altered, that
        describes no valid program, that is for another architecture, has another format or version
        of a contract, or that the device refuses; ShapeError, DtypeError and DeviceError, with the
        name, for arrays that do not fit; OptionError for ``streams`` beyond 1 to 128.
    Source
        ``ptxgen/program/load.py``.
    """
    checked(streams)
    where = default_device() if device is None else get_device(device, "device")
    with saved.opened(path, where) as found:
        buffers = found.contents.outside
        names = [b.memory.name for b in buffers]
        if arrays is not None and not isinstance(arrays, Mapping):
            if len(arrays) != len(names):
                raise SavedError(f"{path} reads {len(names)} arrays; got arrays= of {len(arrays)}")
            arrays = dict(zip(names, arrays, strict=True))
        given = {name: arrays[name] for name in names if name in arrays} if arrays else {}
        handle = resolve(stream, given.values())
        if missing := [name for name in names if name not in given and name not in found.there]:
            wanted = ", ".join(missing)
            raise SavedError(f"{path} was saved without its arrays; pass arrays= for {wanted}")
        laid = [
            placed(b, given[name], where, handle) if name in given else None
            for name, b in zip(names, buffers, strict=True)
        ]
        bits = found.arrays(given)
        try:
            outside = [
                put(b, next(bits), where, handle) if one is None else one
                for one, b in zip(laid, buffers, strict=True)
            ]
            of = found.recorded(where)
            return Owned(of, found.listing(), where, outside, handle, streams)
        except DeviceError as error:  # no room for its arrays, or a launch that is refused
            raise SavedError(f"{path} cannot be loaded on {where}: {error}") from error
