"""The kernel cache: keys, damage, concurrency, and disks that refuse."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from ptxgen.build import cache as cache_module
from ptxgen.build.cache import Cache, Entry, Key, default_cache, default_root
from ptxgen.build.compile import Job, compile_job, toolchain_version
from ptxgen.errors import CacheWarning

WORKER = Path(__file__).with_name("cache_worker.py")
PROJECT = Path(__file__).parents[2]
KEY = Key("a kernel", ("--an-option",), "sm_90a", "13.0.88", "cubin")
OTHER = dataclasses.replace(KEY, arch="sm_80")
ENTRY = Entry(bytes(range(256)) * 8 + b"\n\0\n", {"log": "ligne à ligne\n", "resources": {"k": 1}})
NOBODY = 65534

if sys.platform != "win32":
    import fcntl

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX owners, modes and locks")


class Builder:
    """A build function that counts its calls."""

    def __init__(self, entry: Entry = ENTRY) -> None:
        self.entry, self.calls = entry, 0

    def __call__(self) -> Entry:
        """Counts the call and returns the entry."""
        self.calls += 1
        return self.entry


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A cache directory that does not exist yet."""
    return tmp_path / "a" / "cache"


def fill(root: Path, key: Key = KEY, entry: Entry = ENTRY) -> Path:
    """Stores an entry and returns its file."""
    assert Cache(root).get_or_build(key, lambda: entry) == (entry, False)
    path = root / f"{key.digest}.kernel"
    assert path.is_file()
    return path


def assert_hit(root: Path, key: Key = KEY, entry: Entry = ENTRY) -> None:
    """A new process would find the entry, silently."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Cache(root).get(key) == entry


def assert_rebuilt(root: Path, reason: str, key: Key = KEY) -> None:
    """The bad entry of ``key`` is one warning, one build, the right bytes, and then a hit."""
    builder = Builder()
    with pytest.warns(CacheWarning, match=reason) as caught:
        assert Cache(root).get_or_build(key, builder) == (ENTRY, False)
    assert len(caught) == 1, [str(w.message) for w in caught]
    assert builder.calls == 1
    assert_hit(root, key)


# -- keys ------------------------------------------------------------------------
def perturbed(value: object) -> list[object]:
    """Values of the same type that differ as little as possible."""
    match value:
        case str():
            return [value + " ", value[:-1], "x" + value]
        case tuple():
            return [(), (*value, ""), (*value, *value), tuple(o + " " for o in value)]
        case int():
            return [value + 1]
    raise TypeError(f"teach this test to perturb {value!r}")


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(Key)])
def test_every_field_is_in_the_key(name: str) -> None:
    values = perturbed(getattr(KEY, name))
    keys = {dataclasses.replace(KEY, **{name: v}).digest for v in values}  # type: ignore[arg-type]
    assert len(keys | {KEY.digest}) == len(values) + 1


def test_key_has_the_fields_of_the_design() -> None:
    names = {f.name for f in dataclasses.fields(Key)}
    assert names == {"source", "options", "arch", "nvrtc", "kind", "format"}


def test_fields_of_a_key_cannot_run_into_each_other() -> None:
    """Moving text across a border of fields or options gives another key."""
    tail = ("sm_80", "13.0", "ptx")
    keys = [
        Key("ab", ("cd",), *tail),
        Key("abc", ("d",), *tail),
        Key("a", ("bcd",), *tail),
        Key("ab", ("c", "d"), *tail),
        Key("ab", ("cd", ""), *tail),
        Key("ab", ("c,d",), *tail),
        Key("ab", ('c","d',), *tail),
        Key("ab", ("cd",), "sm_801", "3.0", "ptx"),
        Key("ab", ("cd",), "ptx", "13.0", "sm_80"),
        Key('ab","x":"', ("cd",), *tail),
        Key("ab\0", ("cd",), *tail),
        Key("ab\\u0000", ("cd",), *tail),
        Key("äb", ("cd",), *tail),
        Key("a\u0308b", ("cd",), *tail),
    ]
    assert len({k.digest for k in keys}) == len(keys)


def test_key_is_the_same_in_every_process() -> None:
    """Frozen: a digest that moves without a new FORMAT would orphan every cache."""
    code = f"from ptxgen.build.cache import Key; print(Key({KEY.source!r}, {KEY.options!r}, "
    code += f"{KEY.arch!r}, {KEY.nvrtc!r}, {KEY.kind!r}).digest)"
    out = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True)
    assert out.stdout.decode().strip() == KEY.digest


# -- hits and misses -------------------------------------------------------------
def test_builds_once_then_hits_in_memory_and_on_disk(root: Path) -> None:
    cache, builder = Cache(root), Builder()
    assert cache.get(KEY) is None
    assert not root.exists(), "asking must not write"
    assert cache.get_or_build(KEY, builder) == (ENTRY, False)
    assert cache.get_or_build(KEY, builder) == (ENTRY, True)
    assert Cache(root).get_or_build(KEY, builder) == (ENTRY, True)
    assert builder.calls == 1
    assert Cache(root).get(OTHER) is None


def test_memory_needs_no_disk(root: Path) -> None:
    cache = Cache(root)
    cache.get_or_build(KEY, Builder())
    shutil.rmtree(root)
    assert cache.get(KEY) == ENTRY


def test_directory_holds_only_the_entry_and_is_private(root: Path) -> None:
    path = fill(root)
    assert list(root.iterdir()) == [path], "no lock and no temporary file stays behind"
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("image", [b"", b"\n", b"\n\n\n", b"\0" * 5, b"x" * 1_000_000])
def test_any_image_comes_back(root: Path, image: bytes) -> None:
    entry = Entry(image, {})
    fill(root, entry=entry)
    assert_hit(root, entry=entry)


def test_failed_build_stores_nothing(root: Path) -> None:
    def fails() -> Entry:
        raise ZeroDivisionError

    cache = Cache(root)
    with pytest.raises(ZeroDivisionError):
        cache.get_or_build(KEY, fails)
    assert list(root.iterdir()) == []
    assert cache.get_or_build(KEY, Builder()) == (ENTRY, False)


@pytest.mark.parametrize(
    ("chosen", "xdg", "expected"),
    [
        ("/chosen", "/xdg", "/chosen"),
        ("~/chosen", None, "/home/me/chosen"),
        ("", "/xdg", "/xdg/ptxgen"),
        (None, "/xdg", "/xdg/ptxgen"),
        (None, None, "/home/me/.cache/ptxgen"),
        (None, "", "/home/me/.cache/ptxgen"),
        (None, "relative", "/home/me/.cache/ptxgen"),  # to be ignored by the XDG specification
    ],
)
def test_default_root(
    monkeypatch: pytest.MonkeyPatch, chosen: str | None, xdg: str | None, expected: str
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    for name, value in (("PTXGEN_CACHE_DIR", chosen), ("XDG_CACHE_HOME", xdg)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert default_root() == Path(expected)
    assert default_cache().root == Path(expected)
    assert default_cache() is default_cache()


def test_default_root_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PTXGEN_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    assert default_root().is_absolute()


# -- damage ----------------------------------------------------------------------
DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda data: b"", "truncated"),
    "magic only": (lambda data: data[:19], "truncated"),
    "half": (lambda data: data[: len(data) // 2], "do not match its digest"),
    "one byte short": (lambda data: data[:-1], "do not match its digest"),
    "one byte long": (lambda data: data + b"\0", "do not match its digest"),
    "zeros": (lambda data: bytes(len(data)), "truncated"),
    "foreign": (lambda data: b"\x7fELF\n\n" + data, "not an entry"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_entry_is_rebuilt(root: Path, damage: str) -> None:
    path = fill(root)
    change, reason = DAMAGE[damage]
    path.write_bytes(change(path.read_bytes()))
    assert_rebuilt(root, reason)


def test_any_flipped_bit_is_found(root: Path) -> None:
    """Every byte of the header, and samples of the image, flipped one at a time."""
    path = fill(root)
    data = path.read_bytes()
    header = len(data) - len(ENTRY.image)
    positions = [*range(header + 4), *range(header, len(data), 97), len(data) - 1]
    for position in positions:
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 8
        path.write_bytes(flipped)
        with pytest.warns(CacheWarning):
            assert Cache(root).get(KEY) is None, f"byte {position} of {len(data)}"
        assert not path.exists(), "a bad entry is removed"


def test_swapped_entries_are_rebuilt(root: Path) -> None:
    """A whole, valid entry under another key's name is not that key's kernel."""
    fill(root)
    wrong = Entry(b"another kernel", {})
    shutil.copy(fill(root, OTHER, wrong), root / f"{KEY.digest}.kernel")
    assert_rebuilt(root, "another key")
    assert_hit(root, OTHER, wrong)


def test_malformed_but_sealed_entry_is_rebuilt(root: Path) -> None:
    path = fill(root)
    for body in (b"", b"no lines", KEY.digest.encode() + b"\n{not json\nimage"):
        seal = hashlib.sha256(body).hexdigest().encode()
        path.write_bytes(b"\n".join((b"ptxgen kernel cache", seal, body)))
        assert_rebuilt(root, "malformed")


@pytest.mark.parametrize("meta", [b"[]", b"null", b"3", b'"text"', b"[" * 100_000])
def test_metadata_of_another_form_is_rebuilt(root: Path, meta: bytes) -> None:
    path = fill(root)
    seal_entry(path, KEY, meta, ENTRY.image)
    assert_rebuilt(root, "malformed")


def seal_entry(path: Path, key: Key, meta: bytes, image: bytes) -> None:
    """Writes an entry whose digest is right."""
    body = b"\n".join((key.digest.encode(), meta, image))
    seal = hashlib.sha256(body).hexdigest().encode()
    path.write_bytes(b"\n".join((b"ptxgen kernel cache", seal, body)))


@pytest.mark.parametrize("arch", ["sm_80", "compute_80"])
@pytest.mark.parametrize(
    ("meta", "image", "reason"),
    [
        (b"[]", None, "malformed"),
        (b"{}", None, "no log or no resources"),
        (b'{"log": "", "resources": []}', None, "no log or no resources"),
        (b'{"log": "", "resources": {"k": {"registers": 3}}}', None, "no resources of k"),
        (b'{"log": "", "resources": {}}', b"", "no kernel k"),
        (b'{"log": "", "resources": {}}', b"garbage\0.text.k\0", "no kernel k"),
    ],
)
def test_an_entry_that_no_compiler_leaves_is_rebuilt(
    root: Path, arch: str, meta: bytes, image: bytes | None, reason: str
) -> None:
    """An entry with a right digest that no compiler leaves (of another version, or made by hand) is
    rebuilt.
    """
    job = Job('extern "C" __global__ void k() {}', "k", arch)
    fresh = compile_job(job, cache=Cache(root))
    (path,) = root.glob("*.kernel")
    key = job.key(toolchain_version())
    seal_entry(path, key, meta, fresh.image if image is None else image)
    with pytest.warns(CacheWarning, match=reason) as caught:
        again = compile_job(job, cache=Cache(root))
    assert len(caught) == 1 and not again.cached and again == fresh
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compile_job(job, cache=Cache(root)).cached


def test_a_path_that_is_too_long_degrades(tmp_path: Path) -> None:
    deep = tmp_path / ("a/" * 1800) / "cache"
    with pytest.warns(CacheWarning, match="File name too long.*in memory only") as caught:
        cache = Cache(deep)
        assert cache.get_or_build(KEY, Builder()) == (ENTRY, False)
        assert cache.get_or_build(KEY, Builder()) == (ENTRY, True)
    assert len(caught) == 1 and not list(tmp_path.iterdir())


def test_not_a_regular_file_is_rebuilt(root: Path, tmp_path: Path) -> None:
    path = fill(root)
    copy = tmp_path / "copy"
    path.rename(copy)
    path.symlink_to(copy)
    assert_rebuilt(root, "symbolic link")
    path.unlink()
    os.mkfifo(path)
    assert_rebuilt(root, "not a regular file")


def test_directory_in_the_place_of_an_entry(root: Path) -> None:
    path = fill(root)
    path.unlink()
    (path / "x").mkdir(parents=True)
    with pytest.warns(CacheWarning):
        assert Cache(root).get_or_build(KEY, Builder()) == (ENTRY, False)


def test_bad_entry_warns_once(root: Path) -> None:
    """A bad entry warns once, even where it cannot be removed."""
    path = fill(root)
    path.unlink()
    path.mkdir()
    cache = Cache(root)
    with pytest.warns(CacheWarning) as caught:
        for _ in range(3):
            assert cache.get(KEY) is None
    assert len(caught) == 1


def test_passing_trouble_does_not_cost_the_entry(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fill(root)

    def too_many(*_: object) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as patch, pytest.warns(CacheWarning, match="too many"):
        patch.setattr(os, "open", too_many)
        assert Cache(root).get(KEY) is None
    assert path.exists()
    assert_hit(root)


# -- trust -----------------------------------------------------------------------
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_entry_that_others_can_write_is_rebuilt(root: Path, mode: int) -> None:
    fill(root).chmod(mode)
    assert_rebuilt(root, f"its mode {mode:04o} lets other users write")


def test_readable_by_others_is_fine(root: Path) -> None:
    fill(root).chmod(0o644)
    root.chmod(0o755)
    assert_hit(root)


def test_entry_of_another_owner_is_rebuilt(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fill(root)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
        assert_rebuilt(root, f"belongs to user {NOBODY}")
        return
    with monkeypatch.context() as patch:  # a file cannot be given away: change who is asking
        real = os.fstat

        def fstat(descriptor: int) -> os.stat_result:
            values = list(real(descriptor))
            values[4] += 1
            return os.stat_result(values)

        patch.setattr(os, "fstat", fstat)
        with pytest.warns(CacheWarning, match=f"belongs to user {os.geteuid() + 1}"):
            assert Cache(root).get(KEY) is None
    assert not path.exists()


def test_directory_of_another_owner_is_not_used(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fill(root, entry=Entry(b"planted", {}))
    before = path.read_bytes()
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    check_not_used(root, "belongs to user")
    assert path.read_bytes() == before and list(root.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_directory_that_others_can_write_is_not_used(root: Path, mode: int) -> None:
    path = fill(root, entry=Entry(b"planted", {}))
    root.chmod(mode)
    check_not_used(root, "lets other users write")
    assert list(root.iterdir()) == [path]
    root.chmod(0o700)


def test_file_in_the_place_of_the_directory(root: Path) -> None:
    root.parent.mkdir(parents=True)
    root.write_text("mine")
    check_not_used(root, "not a directory")
    assert root.read_text() == "mine"


def check_not_used(root: Path, reason: str) -> None:
    """Two kernels are built, kept in memory, with one warning for both."""
    cache, builder = Cache(root), Builder()
    with pytest.warns(CacheWarning, match=reason) as caught:
        for key in (KEY, OTHER):
            assert cache.get_or_build(key, builder) == (ENTRY, False)
            assert cache.get_or_build(key, builder) == (ENTRY, True)
    assert builder.calls == 2
    assert len(caught) == 1, [str(w.message) for w in caught]
    assert reason in cache.info().distrust


# -- disks that refuse -----------------------------------------------------------
def check_degrades(cache: Cache, reason: str) -> None:
    """Two kernels are built and kept in memory, with one warning, if the trusted directory is
    read-only.
    """
    builder = Builder()
    with pytest.warns(CacheWarning, match=reason) as caught:
        for key in (KEY, OTHER):
            assert cache.get_or_build(key, builder) == (ENTRY, False)
            assert cache.get_or_build(key, builder) == (ENTRY, True)
    assert builder.calls == 2
    assert len(caught) == 1, [str(w.message) for w in caught]
    assert cache.info().entries == 0
    assert cache.info().temporaries == 0


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A directory of an ordinary user, who the process then is: root ignores modes."""
    directory = Path(tempfile.mkdtemp())
    try:
        if os.geteuid() != 0:
            yield directory
            return
        os.chown(directory, NOBODY, NOBODY)
        os.seteuid(NOBODY)
        try:
            yield directory
        finally:
            os.seteuid(0)
    finally:
        directory.chmod(0o700)
        shutil.rmtree(directory)


def test_read_only_directory_degrades(unprivileged: Path) -> None:
    unprivileged.chmod(0o500)
    check_degrades(Cache(unprivileged), "Permission denied")


def test_read_only_parent_degrades(unprivileged: Path) -> None:
    unprivileged.chmod(0o500)
    check_degrades(Cache(unprivileged / "cache"), "Permission denied")


def test_read_only_directory_still_serves_hits(unprivileged: Path) -> None:
    fill(unprivileged)
    unprivileged.chmod(0o500)
    assert_hit(unprivileged)


def test_unreadable_directory_degrades(unprivileged: Path) -> None:
    unprivileged.chmod(0o300)
    check_not_used(unprivileged, "hides it from its owner")


def test_full_disk_degrades(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk, which takes neither lock nor temporary file, degrades to an uncached build."""
    root.mkdir(parents=True, mode=0o700)

    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def missing(*_: object) -> Entry:
        raise FileNotFoundError

    monkeypatch.setattr(tempfile, "mkstemp", full)
    monkeypatch.setattr(os, "open", full)
    monkeypatch.setattr(cache_module, "_read", missing)  # reading is no different on a full disk
    check_degrades(Cache(root), "No space left")


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="/dev/full is no device")
def test_disk_that_fills_while_writing_degrades(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write itself fails with a real ENOSPC; the temporary file goes."""
    real = os.open

    def full(path: str, flags: int, mode: int = 0o777) -> int:
        if str(path).endswith(".tmp"):
            os.close(real(path, flags, mode))
            return real("/dev/full", os.O_WRONLY)
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", full)
    check_degrades(Cache(root), "No space left")
    monkeypatch.undo()
    assert not list(root.iterdir())


def test_disk_that_recovers_is_used_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(root)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, pytest.warns(CacheWarning):
        patch.setattr(os, "replace", full)
        cache.get_or_build(KEY, Builder())
    cache.get_or_build(OTHER, Builder())
    assert_hit(root, OTHER)


# -- processes and threads -------------------------------------------------------
def environment() -> dict[str, str]:
    """The environment of a process that imports this checkout."""
    return {**os.environ, "PYTHONPATH": str(PROJECT)}


def start(root: Path, log: Path, mode: str) -> subprocess.Popen[str]:
    """A worker (see cache_worker.py)."""
    return subprocess.Popen(
        [sys.executable, str(WORKER), str(root), str(log), mode],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_sixteen_processes_build_once(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    workers = [start(root, log, "build") for _ in range(16)]
    for worker in workers:
        assert worker.stdout is not None and worker.stdin is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    outputs = [worker.communicate(timeout=300) for worker in workers]
    assert [err for _, err in outputs if err] == []
    assert len({out for out, _ in outputs}) == 1, "not the same bytes"
    assert log.read_text() == "built\n"
    assert [p.suffix for p in root.iterdir()] == [".kernel"]


def test_writer_killed_before_the_rename(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    killed = start(root, log, "kill")
    killed.communicate("go\n", timeout=300)
    assert killed.returncode == -9
    assert sorted(p.suffix for p in root.iterdir()) == [".lock", ".tmp"], "it died half way"
    assert (Cache(root).info().entries, Cache(root).info().temporaries) == (0, 1)

    builder = Builder()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Cache(root).get_or_build(KEY, builder) == (ENTRY, False)
    assert builder.calls == 1
    assert [p.suffix for p in root.iterdir()] == [".kernel"], "its leftovers are swept"
    assert_hit(root)


def test_threads_build_once(root: Path) -> None:
    cache, builder = Cache(root), Builder()
    barrier = threading.Barrier(8)

    def slow() -> Entry:
        time.sleep(0.05)
        return builder()

    def work() -> None:
        barrier.wait()
        assert cache.get_or_build(KEY, slow)[0] == ENTRY

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert builder.calls == 1


def test_no_locks_still_builds(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Cache(root).get_or_build(KEY, Builder()) == (ENTRY, False)
    assert_hit(root)


def test_stuck_lock_holder_is_not_waited_for_forever(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root.mkdir(parents=True, mode=0o700)
    monkeypatch.setattr(cache_module, "_LOCK_PATIENCE_S", 0.0)
    with open(root / f"{KEY.digest}.lock", "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert Cache(root).get_or_build(KEY, Builder()) == (ENTRY, False)
    assert_hit(root)


def test_lock_on_a_file_that_is_gone_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one waits, the holder removes the file and a third locks a new one."""
    path, real = tmp_path / "x.lock", cache_module._wait_for_lock
    third: list[IO[bytes]] = []

    def wait(descriptor: int, deadline: float) -> None:
        if not third:
            path.unlink()
            third.append(open(path, "wb"))  # noqa: SIM115
            fcntl.flock(third[0], fcntl.LOCK_EX)
        real(descriptor, deadline)

    monkeypatch.setattr(cache_module, "_wait_for_lock", wait)
    try:
        with pytest.raises(BlockingIOError), cache_module._lock_file(path, patience_s=0.0):
            pytest.fail("two holders of one lock")
    finally:
        third[0].close()


# -- housekeeping ----------------------------------------------------------------
def test_info_verify_clear(root: Path) -> None:
    cache = Cache(root)
    assert (cache.info().entries, cache.verify(), cache.clear()) == (0, {}, 0)
    good, bad = fill(root), fill(root, OTHER)
    (root / f"{KEY.digest}.x.tmp").write_bytes(b"leftover")
    (root / f"{KEY.digest}.lock").touch()
    foreign = root / "notes.kernel"
    foreign.write_text("not the cache's")
    info = cache.info()
    assert (info.root, info.entries, info.temporaries, info.distrust) == (root, 2, 1, "")
    assert info.bytes == good.stat().st_size + bad.stat().st_size

    assert cache.verify() == {}
    bad.write_bytes(good.read_bytes())
    assert list(cache.verify()) == [bad] and "another key" in cache.verify()[bad]
    assert list(cache.verify(remove=True)) == [bad]
    assert cache.verify() == {}
    assert good.exists() and not bad.exists()

    assert cache.get(KEY) == ENTRY
    assert cache.clear() == 1
    assert list(root.iterdir()) == [foreign]
    assert cache.get(KEY) is None, "memory is cleared too"


def test_clear_leaves_a_lock_that_is_held(root: Path) -> None:
    root.mkdir(parents=True, mode=0o700)
    lock = root / f"{KEY.digest}.lock"
    with open(lock, "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        Cache(root).clear()
        assert lock.exists()
