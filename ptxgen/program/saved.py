"""Planned programs as files: what is launched, with which kernels, and where everything lies.

A file is a zip archive that any tool opens. Nothing in it is pickled:

``program.json``
    What there is: arrays, launches, the table of steps for people, what the file is for
    (architecture, image, contracts), and the digest of each other part
    (:mod:`ptxgen.program.saved_schema`).
``kernels/NAME``
    The image of a kernel, as the device loads it: a cubin, or PTX for the CPU device.
``arrays/NAME``
    What is in an array from outside, row by row.

The archive's comment has the format and the digest of ``program.json``. The description and all
images are checked before anything is put together, an array is checked as it is read, and kernels
are loaded last. The digests find damage; they prove nobody's authorship, and a cubin is code: only
files of those whom one trusts should be loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ptxgen.build.compile import TOOLCHAIN
from ptxgen.errors import DeviceError, PtxError, SavedError
from ptxgen.numerics.versions import versions
from ptxgen.program import saved_schema as schema
from ptxgen.program.buffer import Buffer
from ptxgen.program.execute import Fired
from ptxgen.program.listing import Listing
from ptxgen.program.recorded import Recorded
from ptxgen.program.saved_schema import Contents, Wrong, wrong
from ptxgen.runtime import Device
from ptxgen.runtime.launch import Function, Prepared, TensorBox

FORMAT = 3
"""Version of the files; any change of what is in them is a new number."""
PROGRAM = schema.TOP
PROGRAM_MAX = 1 << 26
"""Largest description, bytes."""
UNPACKED_MAX = 1 << 28
"""Most bytes of the description and of all images, unpacked."""
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
    target = _target(path)
    kernels: dict[Function, int] = {}
    launches: dict[Prepared, int] = {}
    steps = []
    for launched, sources, touched in of.steps:
        own = [each for launch in launched for each in launch.prepared]
        for each in own:
            kernels.setdefault(each.function, len(kernels))
        numbers = [launches.setdefault(each, len(launches)) for each in own]
        steps.append((numbers, sources, touched))
    made = target.with_name(f".ptxgen.{os.getpid()}.{secrets.token_hex(8)}")
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
            text = schema.CONTENTS.plain(
                {"arch": device.arch, "image": device.image_kind},
                of.contracts,
                {"gpu": device.gpu, "sms": device.sms, "nvrtc": TOOLCHAIN.nvrtc},
                of.name,
                *([_buffer(b) for b in each] for each in (of.arguments, of.outside, of.results)),
                of.outputs,
                of.nbytes,
                [schema.KERNEL.plain(f.symbol, f.shared_bytes) for f in kernels],
                [_prepared(each, kernels[each.function]) for each in launches],
                steps,
                listing.steps,
                parts,
            )
            schema.contents(text, device.max_shared)
            program = json.dumps(text, separators=(",", ":")).encode()
            archive.comment = f"{_MAGIC} {FORMAT} {_added(archive, PROGRAM, program)}".encode()
        os.replace(made, target)
    except Wrong as error:
        raise SavedError(f"{path} would not be taken by load: {error}") from None
    except (OSError, ValueError) as error:  # a NUL in a path is a ValueError
        raise SavedError(f"{path!r} cannot be written: {error}") from error
    finally:
        with suppress(OSError, ValueError):  # the file may never have been made
            made.unlink(missing_ok=True)


def _path(path: Any) -> Path:
    """A path as users give it."""
    try:
        return Path(os.fspath(path))
    except TypeError:
        kind = type(path).__qualname__
        raise SavedError(f"path is of type {kind}; takes a str or os.PathLike[str]") from None


def _target(path: Any) -> Path:
    """The path of a file that can be written, or replaced."""
    target = _path(path)
    if not target.name:
        raise SavedError(f"path is {path!r}, which names no file; takes that of a file")
    try:
        mode = target.stat().st_mode
    except (OSError, ValueError):  # there is none; else writing says why not
        return target
    if not stat.S_ISREG(mode):
        raise SavedError(f"path is {path!r}, which is no regular file, and is not replaced")
    return target


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
    of = b.memory
    lies = b.shape, b.strides, b.dtype
    return schema.LAID.plain(of.name, *lies, of.low, of.written, of.constant)


def _prepared(of: Prepared, kernel: int) -> dict[str, Any]:
    packed = of.params.packed.hex()
    maps = [_box(each) for each in of.params.maps]
    params = schema.PARAMETERS.plain(packed, of.params.order, of.params.offsets, maps)
    sizes = of.grid, of.block
    return schema.LAUNCH.plain(kernel, *sizes, of.pointers, of.what, of.programmatic, params)


def _box(of: TensorBox) -> dict[str, Any]:
    return schema.BOX.plain(*(getattr(of, each.name) for each in fields(of)))


# -- reading ----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Saved:
    """An open file, whose description and images are right. ``there``: the names of arrays from
    outside that it has.
    """

    path: str | os.PathLike[str]
    contents: Contents
    there: frozenset[str]
    _archive: zipfile.ZipFile
    _images: dict[str, bytes]

    def arrays(self, but: Collection[str] = ()) -> Iterator[Any]:
        """The bits of the arrays from outside but some, as NumPy's arrays, one read after the
        other. Raises SavedError where one is not what was saved.
        """
        import numpy

        for b in (b for b in self.contents.outside if b.memory.name not in but):
            with _damaged(self.path):
                data = self._archive.read(_part(b))
            _check_digest(self.path, self.contents, _part(b), data)
            yield numpy.frombuffer(data, f"u{b.itemsize}").reshape(b.shape)

    def listing(self) -> Listing:
        """The table of steps."""
        return Listing(self.contents.name, self.contents.listing)

    def recorded(self, device: Device) -> Recorded:
        """The program, whose kernels are loaded on a device. Raises SavedError where that does not
        take one.
        """
        of = self.contents
        functions = []
        for i, kernel in enumerate(of.kernels):
            try:
                image = self._images[f"kernels/{i}"]
                functions.append(device.imaged(kernel.name, image, kernel.shared))
            except (DeviceError, PtxError) as error:
                raise SavedError(f"{self.path}: kernels[{i}] is not loaded: {error}") from error
        launches = [
            device.prepare(
                functions[each.kernel],
                each.grid,
                each.block,
                each.params,
                each.pointers,
                each.what,
                each.programmatic,
            )
            for each in of.launches
        ]
        steps = tuple(
            Fired(tuple(launches[i] for i in step.launches), step.sources, step.touched)
            for step in of.steps
        )
        arrays = of.arguments, of.outside, of.results
        return Recorded(of.name, *arrays, of.outputs, steps, of.nbytes, of.contracts)


@contextmanager
def opened(path: str | os.PathLike[str], device: Device) -> Iterator[Saved]:
    """Opens a file for a device, and checks all but its arrays. Raises SavedError, which says what
    is wrong.
    """
    with ExitStack() as stack:
        with _damaged(path):
            file = stack.enter_context(open(_path(path), "rb", opener=_unblocked))
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SavedError(f"{path} is no saved program: it is no regular file")
            archive = stack.enter_context(zipfile.ZipFile(file))
            sizes = _sizes(path, archive, os.fstat(file.fileno()).st_size)
            texts = {n: archive.read(n) for n in sizes if not n.startswith("arrays/")}
        program = _signed(path, archive.comment.decode("latin-1"), texts.pop(PROGRAM, b""))
        try:
            contents = schema.contents(_decoded(program), device.max_shared)
        except Wrong as error:
            raise SavedError(f"{path} is malformed: {error}") from None
        _check_target(path, contents, device)
        _check_parts(path, contents, sizes, texts)
        there = frozenset(b.memory.name for b in contents.outside if _part(b) in contents.parts)
        yield Saved(path, contents, there, archive, texts)


def _unblocked(path: str, flags: int) -> int:
    """Opens without waiting for the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


@contextmanager
def _damaged(path: Any) -> Iterator[None]:
    """Around what reads an archive."""
    try:
        yield
    except SavedError:
        raise
    except _DAMAGED as error:
        raise SavedError(f"{path} is no saved program, or was cut or altered: {error}") from error


_DAMAGED = (
    *(OSError, zipfile.BadZipFile, zlib.error, struct.error, EOFError),
    *(RuntimeError, LookupError, ValueError, OverflowError, MemoryError),
)
"""What reading a damaged archive raises."""


def _sizes(path: Any, archive: zipfile.ZipFile, room: int) -> dict[str, int]:
    """Unpacked bytes of each part, which are as few as those of saved programs; ``room``: bytes of
    the file.
    """
    parts = archive.infolist()
    sizes = {part.filename: part.file_size for part in parts}
    plain = [part.filename.startswith("arrays/") for part in parts]
    unpacked = sum(part.file_size for part, as_is in zip(parts, plain, strict=True) if not as_is)
    for holds, says in [
        (len(sizes) == len(parts), "has two parts of one name"),
        (sum(part.compress_size for part in parts) <= room, "has parts that overlap"),
        (sizes.get(PROGRAM, 0) <= PROGRAM_MAX, f"has more than {PROGRAM_MAX} bytes of {PROGRAM}"),
        (unpacked <= UNPACKED_MAX, f"unpacks to {unpacked} bytes of kernels, over {UNPACKED_MAX}"),
        (
            all(
                part.compress_type == zipfile.ZIP_STORED and part.compress_size == part.file_size
                if as_is
                else part.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
                for part, as_is in zip(parts, plain, strict=True)
            ),
            "is packed in another way",
        ),
    ]:
        if not holds:
            raise SavedError(f"{path} was altered: it {says}")
    return sizes


def _signed(path: Any, comment: str, program: bytes) -> bytes:
    """The description, if it is the one that the comment is about."""
    magic, _, digest = comment.rpartition(" ")
    found, _, number = magic.rpartition(" ")
    if found != _MAGIC:
        raise SavedError(f"{path} is no saved program: it is not marked as one")
    if number != str(FORMAT):
        raise SavedError(f"{path} has format {number}; takes format {FORMAT}: save it anew")
    if hashlib.sha256(program).hexdigest() != digest:
        raise SavedError(f"{path} was altered: {PROGRAM} is not what was saved")
    return program


def _decoded(program: bytes) -> Any:
    """JSON, in which no key occurs twice, and all numbers are finite."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise wrong(PROGRAM, "with a key twice", "each key once")
        return found

    def refuse(word: str) -> Any:
        raise wrong(PROGRAM, f"with {word}", "finite numbers")

    try:
        return json.loads(program.decode(), object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError, MemoryError) as error:
        raise wrong(PROGRAM, f"no JSON ({type(error).__name__}: {error})", "JSON") from None


def _check_target(path: Any, of: Contents, device: Device) -> None:
    """Refuses programs for another device, and of other contracts."""
    if of.target != (device.arch, device.image_kind):
        was = f"{of.target.image} for {of.target.arch}"
        takes = f"{device.image_kind} for {device.arch}"
        raise SavedError(f"{path} has {was}; {device} ({device.name}) takes {takes}")
    here = versions()
    for contract in of.contracts:
        own, _, version = contract.partition("/")
        if here.get(own) != int(version):
            known = f"{own}/{here[own]}" if own in here else "none of that name"
            raise SavedError(f"{path} has the bits of contract {contract}; here is {known}")


def _check_parts(path: Any, of: Contents, sizes: dict[str, int], images: dict[str, bytes]) -> None:
    """Refuses parts that are not those which the description names."""
    for name in sorted({*of.parts, *sizes} - {PROGRAM}):
        if name not in of.parts or name not in sizes:
            raise SavedError(f"{path} was altered: {name} is not what was saved")
    for name, image in images.items():
        _check_digest(path, of, name, image)
        if of.target.image == "cubin" and not is_whole_elf(image):
            raise SavedError(f"{path} is malformed: {name} is no cubin, or was cut")
    for b in of.outside:
        if _part(b) in sizes and sizes[_part(b)] != b.nbytes:
            raise SavedError(
                f"{path} is malformed: {_part(b)} has {sizes[_part(b)]} bytes; takes {b.nbytes}"
            )


def _check_digest(path: Any, of: Contents, name: str, data: bytes) -> None:
    if hashlib.sha256(data).hexdigest() != of.parts[name]:
        raise SavedError(f"{path} was altered: {name} is not what was saved")


_ELF = struct.Struct("<4sB59x")
_TABLES = struct.Struct("<32x2Q6x4H2x")
_SECTION = struct.Struct("<4xI16x2Q24x")
_NOBITS = 8


def is_whole_elf(image: bytes) -> bool:
    """Whether an image is ELF of 64 bits whose sections all lie within it. The driver is given its
    address alone, and reads as far as the image says.
    """
    if len(image) < _ELF.size or _ELF.unpack_from(image) != (b"\x7fELF", 2):
        return False
    segments, sections, segment, segment_count, section, count = _TABLES.unpack_from(image)
    ends = [segments + segment * segment_count, sections + section * count]
    if section != _SECTION.size or max(ends) > len(image):
        return False
    for at in range(sections, ends[1], section):
        kind, begin, size = _SECTION.unpack_from(image, at)
        ends.append(begin + size if kind != _NOBITS else 0)
    return bool(max(ends) <= len(image))
