"""Saved programs: files with the launches, kernels, offsets and arrays of a planned program.

A file is a zip archive that any tool opens. Nothing in it is pickled:

``program.json``
    The description: arrays, launches, the listing of steps, the target (architecture, kind of
    image, contracts), and the digest of each other part (:mod:`ptxgen.program.saved_schema`).
``kernels/NAME``
    The image of a kernel, as the device loads it: a cubin, or PTX for the CPU device.
``arrays/NAME``
    The elements of a closed-over array, row by row.

The archive's comment has the format and the digest of ``program.json``. The description and all
images are checked before anything is allocated, an array is checked as it is read, and kernels are
loaded last. The digests find damage; they do not prove authorship, and a cubin is code: load only
files from sources that you trust.
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

FORMAT = 4
"""Version of the file format; any change of its contents takes a new number."""
PROGRAM = schema.TOP
PROGRAM_MAX = 1 << 26
"""Largest size of ``program.json`` that a saved program may have, bytes."""
UNPACKED_MAX = 1 << 28
"""Most bytes to which ``program.json`` and all kernel images of a saved program may unpack."""
_MAGIC = "ptxgen program"
_WHEN = (1980, 1, 1, 0, 0, 0)
"""Time stamp of all archive members, fixed so that equal programs give equal files."""


# -- writing ----------------------------------------------------------------------------------
def write(
    path: str | os.PathLike[str],
    of: Recorded,
    listing: Listing,
    device: Device,
    arrays: Iterable[Any],
) -> None:
    """Writes a program to a file, which replaces an older one atomically.

    ``listing``: stored, so that the loaded program can be printed; ``device``: the one that the
    program was planned for. ``arrays``: the bits of each closed-over array, or None to leave it
    out; it is consumed one array at a time. Raises SavedError if the file cannot be written.
    """
    target = _target(path)
    kernels: dict[Function, int] = {}
    launches: dict[Prepared, int] = {}
    steps = []
    for launched, sources, touched, needs in of.steps:
        own = [each for launch in launched for each in launch.prepared]
        for each in own:
            kernels.setdefault(each.function, len(kernels))
        numbers = [launches.setdefault(each, len(launches)) for each in own]
        steps.append((numbers, sources, touched, needs))
    made = target.with_name(f".ptxgen.{os.getpid()}.{secrets.token_hex(8)}")
    try:
        with zipfile.ZipFile(made, "x") as archive:
            parts = {
                f"kernels/{i}": _write_part(archive, f"kernels/{i}", function.image)
                for function, i in kernels.items()
            }
            for b, bits in zip(of.outside, arrays, strict=True):
                if bits is not None:
                    name = _part(b)
                    parts[name] = _write_part(archive, name, bits.reshape(-1).view("u1").data)
            text = schema.CONTENTS.plain(
                {"arch": device.arch, "image": device.image_kind},
                of.contracts,
                {"gpu": device.gpu, "sms": device.sms, "nvrtc": TOOLCHAIN.nvrtc},
                of.name,
                *([_buffer(b) for b in each] for each in (of.arguments, of.outside, of.results)),
                of.outputs,
                of.names,
                of.nbytes,
                [schema.KERNEL.plain(f.symbol, f.shared_bytes) for f in kernels],
                [_prepared(each, kernels[each.function]) for each in launches],
                steps,
                listing.steps,
                parts,
            )
            schema.contents(text, device.max_shared)
            program = json.dumps(text, separators=(",", ":")).encode()
            archive.comment = f"{_MAGIC} {FORMAT} {_write_part(archive, PROGRAM, program)}".encode()
        os.replace(made, target)
    except Wrong as error:
        raise SavedError(f"{path} would not be taken by load: {error}") from None
    except (OSError, ValueError) as error:  # a NUL in a path is a ValueError
        raise SavedError(f"{path!r} cannot be written: {error}") from error
    finally:
        with suppress(OSError, ValueError):  # the file may never have been made
            made.unlink(missing_ok=True)


def _path(path: Any) -> Path:
    """Converts a user's path. Raises SavedError for a value of another type."""
    try:
        return Path(os.fspath(path))
    except TypeError:
        kind = type(path).__qualname__
        raise SavedError(f"path is of type {kind}; takes a str or os.PathLike[str]") from None


def _target(path: Any) -> Path:
    """Returns the path of a file to write. Raises SavedError if it is no regular file."""
    target = _path(path)
    if not target.name:
        raise SavedError(f"path is {path!r}, which names no file; takes that of a file")
    try:
        mode = target.stat().st_mode
    except (OSError, ValueError):  # no such file; other errors show when writing
        return target
    if not stat.S_ISREG(mode):
        raise SavedError(f"path is {path!r}, which is no regular file, and is not replaced")
    return target


def _write_part(archive: zipfile.ZipFile, name: str, data: bytes | memoryview) -> str:
    """Writes a member of the archive, and returns its SHA-256."""
    info = zipfile.ZipInfo(name, _WHEN)
    plain = name.startswith("arrays/")
    info.compress_type = zipfile.ZIP_STORED if plain else zipfile.ZIP_DEFLATED
    archive.writestr(info, data)
    return hashlib.sha256(data).hexdigest()


def _part(b: Buffer) -> str:
    """Returns the name of the archive member that has an array's elements."""
    return f"arrays/{b.memory.name}"


def _buffer(b: Buffer) -> dict[str, Any]:
    of = b.memory
    layout = b.shape, b.strides, b.dtype
    return schema.ARRAY.plain(of.name, *layout, of.low, of.written, of.constant)


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
    """An open saved program. ``contents``: its parsed description, which has been checked, as have
    the kernel images; ``there``: names of the closed-over arrays whose elements are in the file.
    """

    path: str | os.PathLike[str]
    contents: Contents
    there: frozenset[str]
    _archive: zipfile.ZipFile
    _images: dict[str, bytes]

    def arrays(self, but: Collection[str] = ()) -> Iterator[Any]:
        """Yields the bits of the closed-over arrays, except those named in ``but``, as NumPy
        arrays, read one at a time. Raises SavedError for an array whose digest differs.
        """
        import numpy

        for b in (b for b in self.contents.outside if b.memory.name not in but):
            with _damaged(self.path):
                data = self._archive.read(_part(b))
            _check_digest(self.path, self.contents, _part(b), data)
            yield numpy.frombuffer(data, f"u{b.itemsize}").reshape(b.shape)

    def listing(self) -> Listing:
        """Returns the listing of steps."""
        return Listing(self.contents.name, self.contents.listing)

    def recorded(self, device: Device) -> Recorded:
        """Loads the kernels on a device, and returns the program. Raises SavedError if the device
        refuses one.
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
            Fired(tuple(launches[i] for i in step.launches), *step[1:]) for step in of.steps
        )
        arrays = of.arguments, of.outside, of.results
        return Recorded(of.name, *arrays, of.outputs, steps, of.nbytes, of.contracts, of.names)


@contextmanager
def opened(path: str | os.PathLike[str], device: Device) -> Iterator[Saved]:
    """Opens a saved program for a device, and checks everything but its arrays. Raises SavedError
    with the fault.
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
    """Opens a file with O_NONBLOCK, so that a named pipe does not block."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


@contextmanager
def _damaged(path: Any) -> Iterator[None]:
    """Turns errors of reading an archive into SavedError."""
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
"""Exceptions that reading a damaged archive raises."""


def _sizes(path: Any, archive: zipfile.ZipFile, file_bytes: int) -> dict[str, int]:
    """Returns the unpacked bytes of each member of the archive, by name. Raises SavedError for
    members that are too large, overlap, or use another compression; ``file_bytes``: size of the
    file.
    """
    parts = archive.infolist()
    sizes = {part.filename: part.file_size for part in parts}
    plain = [part.filename.startswith("arrays/") for part in parts]
    unpacked = sum(part.file_size for part, as_is in zip(parts, plain, strict=True) if not as_is)
    for holds, says in [
        (len(sizes) == len(parts), "has two parts of one name"),
        (sum(part.compress_size for part in parts) <= file_bytes, "has parts that overlap"),
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
    """Returns ``program``, the bytes of ``program.json``, if the archive's ``comment`` has this
    format's number and their SHA-256. Raises SavedError if not.
    """
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
    """Parses JSON; refuses duplicate keys, infinities and NaN."""

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
    """Raises SavedError for a program of another architecture, image kind, or contract version."""
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
    """Raises SavedError for parts that are missing, altered, of another size, or not named in the
    description ``of``, and for cubins that are cut. ``sizes``, ``images``: bytes of all parts, and
    contents of the kernels, by name.
    """
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
    """Whether an image is 64-bit ELF whose headers and sections end within it. The driver takes its
    address without a length, and reads as far as the ELF headers say.
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
