"""Planned programs as files: what is launched, with which kernels, and where everything lies.

A file is a zip archive that any tool opens. Nothing in it is pickled:

``program.json``
    What there is: arrays, launches, the table of steps for people, what the file is for
    (architecture, image, contracts), and the digest of each other part.
``kernels/NAME``
    The image of a kernel, as the device loads it: a cubin, or PTX for the CPU device.
``arrays/NAME``
    What is in an array from outside, row by row.

The archive's comment has the format and the digest of ``program.json``. All is checked when it is
read, before anything is loaded. The digests find damage; they prove nobody's authorship, and a
cubin is code: only files of those whom one trusts should be loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import threading
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ptxgen.build.compile import TOOLCHAIN
from ptxgen.errors import SavedError
from ptxgen.numerics.versions import versions
from ptxgen.program.buffer import INPUT, RESULT, Buffer, Memory
from ptxgen.program.depends import Touch
from ptxgen.program.execute import Fired, Place, Source
from ptxgen.program.line import Line, Shown
from ptxgen.program.listing import Listing
from ptxgen.program.recorded import Recorded
from ptxgen.runtime import Device, Launch, Parameters, TensorBox
from ptxgen.runtime.launch import Function, Prepared

FORMAT = 3
"""Version of the files; any change of what is in them is a new number."""
PROGRAM = "program.json"
_MAGIC = "ptxgen program"
_WHEN = (1980, 1, 1, 0, 0, 0)
"""The time of all parts, so that the same program is the same file."""


# -- writing ----------------------------------------------------------------------------------
def write(
    path: str | os.PathLike[str],
    of: Recorded,
    listing: Listing,
    device: Device,
    arrays: Iterable[Any],
) -> None:
    """Writes a program, and what is in its arrays from outside (None for one that is not to be in
    the file), of which one at a time is asked for. An older file is replaced as a whole. Raises
    SavedError where there can be no file.
    """
    kernels: dict[Function, int] = {}
    launches: dict[Prepared, int] = {}
    steps = []
    for launched, sources, touched in of.steps:
        own = [each for launch in launched for each in launch.prepared]
        for each in own:
            kernels.setdefault(each.function, len(kernels))
        numbers = [launches.setdefault(each, len(launches)) for each in own]
        steps.append([numbers, [list(s) if isinstance(s, tuple) else s for s in sources], touched])
    text = {
        "for": {"arch": device.arch, "image": device.image_kind},
        "contracts": of.contracts,
        "made": {"gpu": device.gpu, "sms": device.sms, "nvrtc": TOOLCHAIN.nvrtc},
        "name": of.name,
        "arguments": [_buffer(b) for b in of.arguments],
        "outside": [_buffer(b) for b in of.outside],
        "results": [_buffer(b) for b in of.results],
        "outputs": of.outputs,
        "nbytes": of.nbytes,
        "kernels": [{"name": f.symbol, "shared": f.shared_bytes} for f in kernels],
        "launches": [_prepared(each, kernels[each.function]) for each in launches],
        "steps": steps,
        "listing": listing.steps,
    }
    target = Path(path)
    made = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with zipfile.ZipFile(made, "x") as archive:
            parts = {
                f"kernels/{i}": _added(archive, f"kernels/{i}", function.image)
                for function, i in kernels.items()
            }
            for b, bits in zip(of.outside, arrays, strict=True):
                if bits is not None:
                    name = _part(b)
                    parts[name] = _added(archive, name, bits.reshape(-1).view("u1").data)
            program = json.dumps({**text, "parts": parts}, separators=(",", ":")).encode()
            archive.comment = f"{_MAGIC} {FORMAT} {_added(archive, PROGRAM, program)}".encode()
        os.replace(made, target)
    except OSError as error:
        raise SavedError(f"{path} cannot be written: {error}") from error
    finally:
        made.unlink(missing_ok=True)


def _added(archive: zipfile.ZipFile, name: str, data: bytes | memoryview) -> str:
    """Writes a part; its digest."""
    info = zipfile.ZipInfo(name, _WHEN)
    plain = name.startswith("arrays/")
    info.compress_type = zipfile.ZIP_STORED if plain else zipfile.ZIP_DEFLATED
    archive.writestr(info, data)
    return hashlib.sha256(data).hexdigest()


def _part(b: Buffer) -> str:
    """The name of the part that has what is in an array."""
    return f"arrays/{b.memory.name}"


def _buffer(b: Buffer) -> dict[str, Any]:
    lies = {"shape": b.shape, "strides": b.strides, "dtype": b.dtype}
    of = b.memory
    facts = {"low": of.low, "written": of.written, "constant": of.constant}
    return {"name": of.name, **lies, **facts}


def _prepared(of: Prepared, kernel: int) -> dict[str, Any]:
    params = {**asdict(of.params), "packed": of.params.packed.hex()}
    facts = {"grid": of.grid, "block": of.block, "pointers": of.pointers, "what": of.what}
    return {"kernel": kernel, **facts, "programmatic": of.programmatic, "params": params}


# -- reading ----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Saved:
    """What was in a file. ``there``: the names of arrays from outside that it has."""

    path: str | os.PathLike[str]
    of: Recorded
    listing: Listing
    there: frozenset[str]

    def arrays(self, but: Collection[str] = ()) -> Iterator[Any]:
        """The bits of the arrays from outside but some, as NumPy's arrays, one read after the
        other.
        """
        import numpy

        with _archive(self.path) as archive:
            for b in (b for b in self.of.outside if b.memory.name not in but):
                data = archive.read(_part(b))
                yield numpy.frombuffer(data, f"u{b.itemsize}").reshape(b.shape)


def read(path: str | os.PathLike[str], device: Device) -> Saved:
    """Reads a program, and loads its kernels on a device. Raises SavedError, which says what is
    wrong, before that.
    """
    with _archive(path) as archive:
        comment = archive.comment.decode("latin-1")
        names = archive.namelist()
        images = {n: archive.read(n) for n in names if not n.startswith("arrays/")}
        digests = {
            n: hashlib.sha256(images[n]).hexdigest() if n in images else _digest(archive, n)
            for n in names
        }
    try:
        text = _checked(path, comment, images.get(PROGRAM, b""), digests, device)
        return _read(path, text, images, device)
    except (LookupError, TypeError, AttributeError) as error:
        raise SavedError(f"{path} is malformed: {type(error).__name__}: {error}") from error


@contextmanager
def _archive(path: str | os.PathLike[str]) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except _DAMAGED as error:
        raise SavedError(f"{path} is no saved program, or was cut or altered: {error}") from error


def _digest(archive: zipfile.ZipFile, name: str) -> str:
    with archive.open(name) as part:
        found = hashlib.sha256()
        while data := part.read(1 << 20):
            found.update(data)
    return found.hexdigest()


_DAMAGED = (
    *(OSError, zipfile.BadZipFile, zlib.error, struct.error, EOFError),
    *(RuntimeError, LookupError, ValueError, OverflowError),
)
"""What reading a damaged archive raises."""


def _checked(
    path: Any, comment: str, program: bytes, digests: dict[str, str], device: Device
) -> dict[str, Any]:
    """The program; all parts are what was written, for this device and of these contracts."""
    magic, _, rest = comment.rpartition(" ")
    found, _, number = magic.rpartition(" ")
    if found != _MAGIC:
        raise SavedError(f"{path} is no saved program: it is not marked as one")
    if number != str(FORMAT):
        raise SavedError(f"{path} has format {number}; takes format {FORMAT}: save it anew")
    if digests.pop(PROGRAM, "") != rest:
        raise SavedError(f"{path} was altered: {PROGRAM} is not what was saved")
    text: dict[str, Any] = json.loads(program)
    wanted = {"arch": device.arch, "image": device.image_kind}
    if text["for"] != wanted:
        was, takes = (f"{of['image']} for {of['arch']}" for of in (text["for"], wanted))
        raise SavedError(f"{path} has {was}; {device} ({device.name}) takes {takes}")
    here = versions()
    for contract in text["contracts"]:
        own, _, version = contract.partition("/")
        if here.get(own) != int(version):
            known = f"{own}/{here[own]}" if own in here else "none of that name"
            raise SavedError(f"{path} has the bits of contract {contract}; here is {known}")
    for name in sorted({*text["parts"], *digests}):
        if text["parts"].get(name) != digests.get(name):
            raise SavedError(f"{path} was altered: {name} is not what was saved")
    return text


def _read(path: Any, text: dict[str, Any], images: dict[str, bytes], device: Device) -> Saved:
    functions = [
        device.imaged(each["name"], images[f"kernels/{i}"], each["shared"])
        for i, each in enumerate(text["kernels"])
    ]
    launches = [_launch(each, functions, device) for each in text["launches"]]
    steps = tuple(
        Fired(
            tuple(launches[i] for i in numbers),
            tuple(map(_source, sources)),
            tuple(Touch(*each) for each in touched),
        )
        for numbers, sources, touched in text["steps"]
    )
    arguments, outside, results = (
        tuple(_laid(each, role) for each in text[key])
        for key, role in (("arguments", INPUT), ("outside", INPUT), ("results", RESULT))
    )
    of = Recorded(
        text["name"],
        arguments,
        outside,
        results,
        tuple(text["outputs"]),
        steps,
        text["nbytes"],
        tuple(text["contracts"]),
    )
    listing = Listing(of.name, tuple(map(_line, text["listing"])))
    there = frozenset(b.memory.name for b in outside if _part(b) in text["parts"])
    return Saved(path, of, listing, there)


def _launch(each: dict[str, Any], functions: Sequence[Function], device: Device) -> Launch:
    params = each["params"]
    return device.prepare(
        functions[each["kernel"]],
        tuple(each["grid"]),
        tuple(each["block"]),
        Parameters(
            bytes.fromhex(params["packed"]),
            tuple(params["order"]),
            tuple(params["offsets"]),
            tuple(map(_box, params["maps"])),
        ),
        each["pointers"],
        each["what"],
        each["programmatic"],
    )


def _box(each: dict[str, Any]) -> TensorBox:
    named: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in each.items()}
    return TensorBox(**named)


def _source(source: Any) -> Source:
    return Place(*source) if isinstance(source, list) else int(source)


def _laid(each: dict[str, Any], role: str) -> Buffer:
    facts = {name: each[name] for name in ("low", "written", "constant")}
    memory = Memory(each["name"], role, **facts)
    shape, strides = tuple(each["shape"]), tuple(each["strides"])
    memory.natural = Buffer(memory, shape, strides, each["dtype"])
    memory.nbytes = memory.natural.nbytes
    return memory.natural


def _line(line: Any) -> Line:
    what, kernels, reads, writes, nbytes, us = line
    return Line(what, tuple(kernels), _shown(reads), _shown(writes), nbytes, us)


def _shown(arrays: Any) -> tuple[Shown, ...]:
    return tuple(Shown(name, role, dtype, tuple(shape)) for name, role, dtype, shape in arrays)
