"""A content-addressed store of compiled kernels on disk.

A damaged file must never reach a kernel launch, so an entry is used only if its owner and
mode, its digest and the key written inside it all check out. Any other entry is a miss with
a :class:`~ptxgen.errors.CacheWarning`: the kernel is built again.

An entry is one file, ``<sha256 of the key>.kernel``::

    ptxgen kernel cache\\n
    <sha256 of all that follows, hex>\\n
    <sha256 of the key, hex>\\n
    <metadata: one line of JSON>\\n
    <image>

It is written under a temporary name and renamed, so a visible entry is complete. While a
kernel is being built its key is locked (``flock``, which the operating system releases when
the owner dies), so concurrent processes build it once.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import os
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ptxgen.errors import CacheWarning
from ptxgen.locks import Lock

if sys.platform != "win32":
    import fcntl

FORMAT = 1
"""Version of the format of keys and entries, increased when either changes."""

_MAGIC = b"ptxgen kernel cache"
_ENTRY, _TUNED, _LOCK, _TEMPORARY = ".kernel", ".tuned", ".lock", ".tmp"
_LOCK_PATIENCE_S = 600.0  # a holder that takes longer is stuck: build without the lock
_LOCK_POLL_S = 0.01


@dataclass(frozen=True)
class Key:
    """Cache key of a compiled image, a rendered source, or measured times: all that the entry
    depends on, and no more. ``kind`` says which: "ptx", "cubin", "source" or "autotune".
    """

    source: str
    options: tuple[str, ...]
    arch: str
    nvrtc: str
    kind: str
    format: int = FORMAT

    def encode(self) -> bytes:
        """Returns the key as canonical JSON: its quoting keeps fields and options apart, so that
        different keys have different texts.
        """
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":")).encode("ascii")

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of :meth:`encode`, in hex: the entry's file name without suffix."""
        return hashlib.sha256(self.encode()).hexdigest()

    @property
    def file(self) -> str:
        """Name of the file that has the entry of this key."""
        return self.digest + (_TUNED if self.kind == "autotune" else _ENTRY)


@dataclass(frozen=True)
class Entry:
    """Content of a cache entry: ``image``, a compiled image or a rendered source, and ``meta``,
    JSON values: the compiler's log and resources, or measured times.
    """

    image: bytes = field(repr=False)
    meta: Mapping[str, Any]


Check = Callable[[Entry], str | None]
"""A function that returns why an entry cannot be used, or None."""


@dataclass(frozen=True)
class CacheInfo:
    """Location of a kernel cache, numbers of its files, and their bytes. ``temporaries``: files
    that are being written, or that killed writers left; ``distrust``: why the directory is not
    used, or empty.
    """

    root: Path
    entries: int
    tuned: int
    """Number of problems timed by ``ptxgen.autotune``, which are not among the ``entries``."""
    bytes: int
    temporaries: int
    distrust: str = ""


class _BadEntryError(Exception):
    """A cache entry that must not be used; the message says why."""


class Cache:
    """Compiled kernels by key, in a directory, and in memory once they are read.

    ``root`` defaults to :func:`default_root`; it is not accessed before the first use. If the
    directory cannot be written (read-only, full), or other users could write to it, the cache warns
    once and keeps kernels in memory only. Results do not change.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = default_root() if root is None else Path(root)
        self._memory: dict[str, Entry] = {}
        self._warned: set[str] = set()
        self._warning = Lock()

    def get(self, key: Key, check: Check | None = None) -> Entry | None:
        """Returns the entry of ``key``, or None. A bad file is removed, with a warning.

        ``check``: returns why the caller cannot use an entry from the disk, or None; called after
        the cache's own checks.
        """
        entry = self._memory.get(key.digest)
        if entry is not None:
            return entry
        if not self._usable():
            return None
        path = self._path(key)
        try:
            entry = _read(path, key.digest)
            if check is not None and (fault := check(entry)):
                raise _BadEntryError(fault)
        except FileNotFoundError:
            return None
        except (_BadEntryError, OSError) as reason:
            if isinstance(reason, _BadEntryError):  # other failures may pass: leave it
                with contextlib.suppress(OSError):
                    path.unlink()
            self._warn(str(path), f"ignored the cache entry {path}: {reason}; it is made again")
            return None
        self._memory[key.digest] = entry
        return entry

    def get_or_build(
        self, key: Key, build: Callable[[], Entry], check: Check | None = None
    ) -> tuple[Entry, bool]:
        """Returns the entry of ``key`` and True; or stores ``build()``, and returns it and False.

        Of concurrent callers, in this process or in others, one builds and the others wait
        for it. An exception of ``build`` is passed on and nothing is stored. ``check`` as for
        :meth:`get`.
        """
        entry = self.get(key, check)
        if entry is not None:
            return entry, True
        with self._locked(key) as locked:
            entry = self.get(key, check)  # another may have built it while this one waited
            if entry is not None:
                return entry, True
            entry = build()
            self._memory[key.digest] = entry
            self._store(key, entry, locked=locked)
        return entry, False

    # -- housekeeping ---------------------------------------------------------
    def info(self) -> CacheInfo:
        """Returns the location of the cache and the number and size of its entries."""
        sizes: list[int] = []
        for path in self._files(_ENTRY, _TUNED):
            with contextlib.suppress(OSError):
                sizes.append(path.lstat().st_size)
        tuned = len(self._files(_TUNED))
        return CacheInfo(
            root=self.root,
            entries=len(sizes) - tuned,
            tuned=tuned,
            bytes=sum(sizes),
            temporaries=len(self._files(_TEMPORARY)),
            distrust=self._distrust() or "",
        )

    def verify(self, *, remove: bool = False) -> dict[Path, str]:
        """Reads every entry; returns the bad ones, which are never used, by path with a reason."""
        bad: dict[Path, str] = {}
        for path in self._files(_ENTRY, _TUNED):
            try:
                _read(path, path.stem)
            except FileNotFoundError:
                continue  # removed by another process since it was listed
            except (_BadEntryError, OSError) as reason:
                bad[path] = str(reason)
                if remove:
                    with contextlib.suppress(OSError):
                        path.unlink()
        return bad

    def clear(self) -> int:
        """Removes every entry, from memory too; returns the number of removed files.

        Also removes leftovers of killed writers, but no files of other programs.
        """
        self._memory.clear()
        removed = 0
        for path in self._files(_ENTRY, _TUNED):
            with contextlib.suppress(OSError):
                path.unlink()
                removed += 1
        for path in self._files(_TEMPORARY):
            # A living writer's rename then fails, which costs it a warning, not its kernel.
            with contextlib.suppress(OSError):
                path.unlink()
        for path in self._files(_LOCK):
            with contextlib.suppress(OSError), _lock_file(path, patience_s=0.0):
                pass  # releasing a lock removes its file
        return removed

    # -- the directory --------------------------------------------------------
    def _path(self, key: Key) -> Path:
        return self.root / key.file

    def _make(self) -> None:
        """Creates the cache's directory if it is missing. Raises OSError."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except RecursionError:  # pathlib's, for paths of a thousand folders
            text = os.strerror(errno.ENAMETOOLONG)
            raise OSError(errno.ENAMETOOLONG, text, str(self.root)) from None

    def _files(self, *suffix: str) -> list[Path]:
        """Returns the cache's files with these suffixes, sorted, but no files of other programs."""
        try:
            names = os.listdir(self.root)
        except OSError:
            return []
        return sorted(self.root / n for n in names if n.endswith(suffix) and _is_ours(n))

    def _distrust(self) -> str | None:
        """Returns why the cache's directory must not be used; None if it may be, or is missing."""
        try:
            status = os.stat(self.root)
        except FileNotFoundError:
            return None
        except OSError as error:
            return str(error)
        if not stat.S_ISDIR(status.st_mode):
            return "it is not a directory"
        if reason := _untrusted(status):
            return reason
        if status.st_mode & 0o500 != 0o500:
            return f"its mode {stat.S_IMODE(status.st_mode):04o} hides it from its owner"
        return None

    def _usable(self) -> bool:
        reason = self._distrust()
        if reason is not None:
            self._warn(
                "directory",
                f"the kernel cache {self.root} is not used ({reason}); compiled kernels are kept "
                "in memory only. Fix its owner and mode (chmod go-w), or set PTXGEN_CACHE_DIR",
            )
        return reason is None

    def _degraded(self, error: OSError) -> None:
        self._warn(
            "directory",
            f"the kernel cache {self.root} cannot be written ({error}); compiled kernels are "
            "kept in memory only. Free or allow the space, or set PTXGEN_CACHE_DIR",
        )

    def _warn(self, subject: str, message: str) -> None:
        """Issues a CacheWarning, once for each subject."""
        with self._warning:
            known = subject in self._warned
            self._warned.add(subject)
        if not known:
            warnings.warn(message, CacheWarning, stacklevel=2)

    def _store(self, key: Key, entry: Entry, *, locked: bool) -> None:
        """Writes an entry to disk, or warns. ``locked``: whether the caller holds its lock."""
        if not self._usable():
            return
        try:
            self._make()
            _write(self._path(key), key.digest, entry, locked=locked)
        except OSError as error:
            self._degraded(error)

    @contextlib.contextmanager
    def _locked(self, key: Key) -> Iterator[bool]:
        """Context manager that holds the lock of ``key``; yields False if it cannot be acquired."""
        if not self._usable():
            yield False
            return
        with contextlib.ExitStack() as stack:
            try:
                self._make()
                lock = _lock_file(self.root / (key.digest + _LOCK), patience_s=_LOCK_PATIENCE_S)
                stack.enter_context(lock)
                locked = True
            except OSError:
                locked = False  # if the directory is at fault, storing will say so
            yield locked


class Anew(Cache):
    """A cache that stores every entry and returns none, so that all kernels are compiled afresh."""

    def get(self, key: Key, check: Check | None = None) -> Entry | None:
        """Returns None, and keeps no entry in memory."""
        self._memory.clear()
        return None


def default_root() -> Path:
    """Returns ``$PTXGEN_CACHE_DIR``, or ``ptxgen`` in ``$XDG_CACHE_HOME`` or in ``~/.cache``.

    A leading ``~`` is expanded to the home directory, even if no shell has done so.
    """
    if chosen := os.environ.get("PTXGEN_CACHE_DIR"):
        return Path(os.path.expanduser(chosen))
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # unset, or to be ignored by the XDG specification
        base = Path(os.path.expanduser("~/.cache"))
    if not base.is_absolute():  # no home directory; the owner check makes this one safe
        return Path(tempfile.gettempdir()) / f"ptxgen-{_user()}"
    return base / "ptxgen"


def default_cache() -> Cache:
    """Returns the kernel cache in :func:`default_root`; one object per directory and process."""
    return _cache_at(default_root())


@functools.cache
def _cache_at(root: Path) -> Cache:
    return Cache(root)


# -- files ---------------------------------------------------------------------
def _is_ours(name: str) -> bool:
    """Whether a file name starts with a digest, as the names of all cache files do."""
    return len(name) > 64 and all(c in "0123456789abcdef" for c in name[:64]) and name[64] == "."


def _user() -> int:
    return os.geteuid() if sys.platform != "win32" else 0


def _untrusted(status: os.stat_result) -> str | None:
    """Returns why another user may have written the file with this ``status``, or None."""
    if sys.platform == "win32":
        return None  # Windows has no owner in the mode bits
    if status.st_uid != _user():
        return f"it belongs to user {status.st_uid}, not to {_user()}"
    if status.st_mode & 0o022:
        return f"its mode {stat.S_IMODE(status.st_mode):04o} lets other users write to it"
    return None


def _pack(digest: str, entry: Entry) -> bytes:
    meta = json.dumps(entry.meta, sort_keys=True, separators=(",", ":")).encode("ascii")
    body = b"\n".join((digest.encode("ascii"), meta, entry.image))
    return b"\n".join((_MAGIC, hashlib.sha256(body).hexdigest().encode("ascii"), body))


def _unpack(data: bytes, digest: str) -> Entry:
    parts = data.split(b"\n", 2)
    if len(parts) != 3 or parts[0] != _MAGIC:
        raise _BadEntryError(f"not an entry of this cache, or truncated ({len(data)} bytes)")
    _, checksum, body = parts
    if hashlib.sha256(body).hexdigest().encode("ascii") != checksum:
        raise _BadEntryError("its contents do not match its digest")
    try:
        owner, meta, image = body.split(b"\n", 2)
        entry = Entry(image, json.loads(meta))
    except (ValueError, RecursionError) as error:
        raise _BadEntryError(f"malformed ({error})") from None
    if not isinstance(entry.meta, dict):
        raise _BadEntryError(f"malformed (metadata is a JSON {type(entry.meta).__name__})")
    if owner != digest.encode("ascii"):
        raise _BadEntryError(f"it is that of another key, {owner!r}")
    return entry


def _read(path: Path, digest: str) -> Entry:
    """Reads the entry of the key with this digest. Raises OSError or _BadEntryError."""
    # Without O_NONBLOCK, opening a FIFO put in the entry's place would hang.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _BadEntryError("it is a symbolic link") from None
        raise
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)  # of the open file: its path may be replaced
        if not stat.S_ISREG(status.st_mode):
            raise _BadEntryError("it is not a regular file")
        if reason := _untrusted(status):
            raise _BadEntryError(reason)
        return _unpack(file.read(), digest)


def _write(path: Path, digest: str, entry: Entry, *, locked: bool) -> None:
    """Writes a cache entry atomically. Raises OSError.

    ``locked``: whether the caller holds the key's lock; it then always uses the same temporary
    name, which replaces the leftover of a killed writer.
    """
    if locked:
        temporary = str(path.with_suffix(_TEMPORARY))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = os.open(temporary, flags, 0o600)
    else:
        descriptor, temporary = tempfile.mkstemp(_TEMPORARY, digest + ".", path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(_pack(digest, entry))
        # No fsync: what a power cut leaves behind fails its digest and is built again.
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


@contextlib.contextmanager
def _lock_file(path: Path, *, patience_s: float) -> Iterator[None]:
    """Context manager that holds a lock on a file, and then removes the file.

    Raises OSError if the lock is not free within ``patience_s`` seconds. Threads of one process
    exclude each other, too: a lock belongs to the open file.
    """
    if sys.platform == "win32":
        raise OSError(errno.ENOTSUP, "no file locks")
    deadline = time.monotonic() + patience_s
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        try:
            _wait_for_lock(descriptor, deadline)
            if not _is_same_file(descriptor, path):
                continue  # the last holder removed it while this one waited
            try:
                yield
            finally:
                with contextlib.suppress(OSError):
                    path.unlink()
                # Explicitly: a forked child may keep a copy of the descriptor open.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            return
        finally:
            os.close(descriptor)


def _wait_for_lock(descriptor: int, deadline: float) -> None:
    while sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_LOCK_POLL_S)


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
