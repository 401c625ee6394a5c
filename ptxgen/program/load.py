"""``load``: saved programs, as they were captured."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from ptxgen.errors import SavedError
from ptxgen.program import saved
from ptxgen.program.place import placed, put
from ptxgen.program.replay import Owned
from ptxgen.program.streams import STREAMS, checked
from ptxgen.runtime import Device, default_device, get_device, resolve


def load(
    path: str | PathLike[str],
    *,
    arrays: Sequence[Any] | None = None,
    device: str | Device | None = None,
    stream: Any = None,
    streams: int = STREAMS,
) -> Owned:
    """A callable that does what the one did that was saved to ``path``
    (:meth:`~ptxgen.program.replay.Replayed.save`), with the same bits. Nothing is traced, chosen,
    rendered or compiled.

    ``arrays``: those that are read besides the arguments, in the order of ``captured.outside``, in
    the place of those in the file. ``device``: where it runs; by default the one that NumPy's
    arrays go to. ``streams``: see :func:`ptxgen.capture`.

    Shapes
        Those that were captured, at each call.
    Dtypes
        Those that were captured. Calls return new arrays in the framework of their first argument.
    Storage
        What is read from outside is copied to the device once; of ``arrays`` those that are on it
        are read where they are, and must lie as they did. ``stream``: where memory is made.
    Order
        That of each operation's contract.
    Errors
        SavedError, which names what is wrong, for a file that was cut or altered, that is for
        another architecture, or of another format or version of a contract; ShapeError, DtypeError
        and DeviceError, with the name, for arrays that do not fit; OptionError for
        another number of ``streams`` than 1 to 128.
    Source
        ``ptxgen/program/load.py``.
    """
    checked(streams)
    where = default_device() if device is None else get_device(device)
    found = saved.read(path, where)
    of, handle = found.of, resolve(stream, arrays or ())
    if arrays is None and not found.whole:
        names = ", ".join(b.memory.name for b in of.outside)
        raise SavedError(f"{path} was saved without its arrays; pass arrays= for {names}")
    if arrays is None:
        pairs = zip(of.outside, found.arrays(), strict=True)
        outside = [put(b, bits, where, handle) for b, bits in pairs]
    else:
        if len(arrays) != len(of.outside):
            raise SavedError(f"{path} reads {len(of.outside)} arrays; got arrays= of {len(arrays)}")
        outside = [placed(b, x, where, handle) for b, x in zip(of.outside, arrays, strict=True)]
    return Owned(of, found.listing, where, outside, handle, streams)
