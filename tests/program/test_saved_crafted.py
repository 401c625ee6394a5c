"""Crafted saved files, whose digests are right: each is refused by name, or says what it said.

Whoever writes a file also writes its digests. So what a file says is checked by itself: types,
ranges, names, and parts against each other. Nothing in it is ever executed on the host.
"""

from __future__ import annotations

import copy
import ctypes
import hashlib
import json
import os
import random
import struct
import zipfile
from collections import Counter
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from bits import difference
from runtime_fakes import FakeDevice, function
from test_saved import by_tensor_maps, drawn, half, layer, several

import ptxgen
from ptxgen import functions as f
from ptxgen.build.compile import compile_cubin
from ptxgen.errors import DeviceError, PtxgenError, SavedError
from ptxgen.program import saved, saved_schema
from ptxgen.program.saved_schema import Wrong
from ptxgen.runtime import Parameters, TensorBox, cuda
from ptxgen.runtime.cpu import CpuDevice

EXECUTED: list[str] = []
"""List that code in a file would append to."""
_CALL = f"__import__('sys').modules[{__name__!r}].EXECUTED.append('it')"
CODE = (
    _CALL,
    f"0); {_CALL}; (0",
    f"0, {_CALL}",
    f"0] + [{_CALL}",
    f"0\n            {_CALL}\n            #",
    f"{{{_CALL}}}",
    f"<!--#exec cmd='x'--><script>{_CALL}</script>",
)
HOSTILE = (
    *(None, True, False, -1, 1 << 31, 1 << 32, 1 << 47, 1 << 63, 1 << 64, -(1 << 63), 10**400),
    *(0.0, 1.5, -0.0, 1e300, float("nan"), float("inf"), "", "0", "0x10", "nan", "\0", "\ud800"),
    *("\x1b[2J", "a" * 20_000, "../../etc/passwd", [], {}, [[]], [None], {"": 0}, *CODE),
)
PEOPLE = ("made", "name", "what", "listing")
"""Keys of what only people read: whatever is taken there, the bits are the same."""
SLOW = ("grid", "block", "packed", "shape", "strides", "size", "box", "steps", "itemsize")
"""Keys by which another program may take long; it is loaded, and not called."""


def written(x, y):
    f.mul(x, 2.0, out=y)
    return ptxgen.softmax(y), y


MADE = {
    "layer": (layer, drawn(8, 64)),
    "maps": (by_tensor_maps, half(64, 64), half(64, 64)),
    "written": (written, drawn(4, 8), drawn(4, 8)),
}


class File:
    """A saved file as its parts, and what its program returns."""

    def __init__(self, path: Path, made, *arrays) -> None:
        captured = ptxgen.capture(made, *arrays)
        captured.save(path)
        self.arrays = arrays
        self.expected = self.called(captured)
        with zipfile.ZipFile(path) as archive:
            self.parts = {n: archive.read(n) for n in archive.namelist()}
        self.text = json.loads(self.parts.pop(saved.PROGRAM))

    def called(self, program):
        return several(program(*map(np.copy, self.arrays)))


@pytest.fixture(scope="module")
def device() -> CpuDevice:
    return CpuDevice()


@pytest.fixture(autouse=True)
def on_cpu(device):
    with ptxgen.use_device(device):
        yield


@pytest.fixture(scope="module")
def files(device, tmp_path_factory) -> list[File]:
    path = tmp_path_factory.mktemp("saved") / "it"
    with ptxgen.use_device(device):
        return [File(path, *made) for made in MADE.values()]


def pack(path: Path, program: bytes, parts, comment: bytes | None = None) -> None:
    """Writes a file with right digests."""
    digest = hashlib.sha256(program).hexdigest()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts:
            method = zipfile.ZIP_STORED if name.startswith("arrays/") else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name), data, method)
        archive.writestr(saved.PROGRAM, program)
        archive.comment = comment or f"ptxgen program {saved.FORMAT} {digest}".encode()


# -- changes of what a file says -----------------------------------------------------------------
def somewhere(rng: random.Random, text):
    """A container in a description, one of its keys or indices, and the keys on the way there."""
    way = []
    while True:
        key = rng.choice(list(text) if isinstance(text, dict) else range(len(text)))
        way.append(key)
        value = text[key]
        if not isinstance(value, dict | list) or not value or rng.random() < 0.1:
            return text, key, way
        text = value


def change(rng: random.Random, text) -> list[str | int]:
    """Changes one thing of a description; the keys on the way there."""
    holder, key, way = somewhere(rng, text)
    value = holder[key]
    kind = rng.randrange(8)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(value))
    elif kind == 1:
        holder[rng.choice((*CODE, "extra", ""))] = value
    elif kind == 2 and type(value) is int:
        holder[key] = value + rng.choice((-64, -8, -4, -1, 1, 4, 8, 64, 4096, 1 << 20, 1 << 40))
    elif kind == 3 and type(value) is int:
        holder[key] = rng.choice((str(value), float(value), [value], value == 1, -value))
    elif kind == 3 and isinstance(value, list):
        holder[key] = dict(enumerate(value))
    elif kind == 3 and isinstance(value, dict):
        holder[key] = list(value.values())
    else:
        holder[key] = rng.choice(HOSTILE)
    return way


def outcome(path: Path, file: File, way) -> str:
    """Outcome of loading a file: refused, same bits, or another program."""
    try:
        loaded = ptxgen.load(path)
    except SavedError as error:
        assert str(error).isprintable() and len(str(error)) < 2000
        return "refused"
    str(loaded.program)
    loaded.program.draw(path.with_suffix(".svg"))
    if any(key in SLOW for key in way) and way[0] not in PEOPLE:
        return "another program"
    try:
        found = file.called(loaded)
    except PtxgenError:
        found = None
    same = (
        found is not None
        and len(found) == len(file.expected)
        and all(
            (a is None) == (b is None) and (a is None or not difference(a, b))
            for a, b in zip(found, file.expected, strict=True)
        )
    )
    assert same or not any(key in PEOPLE for key in way)
    return "same bits" if same else "another program"


def crafted(files, path: Path, seeds: range) -> Counter[str]:
    """Loads files with one change each."""
    found: Counter[str] = Counter()
    for seed in seeds:
        rng = random.Random(seed)
        file = rng.choice(files)
        text = copy.deepcopy(file.text)
        way = change(rng, text)
        program = json.dumps(text).encode()
        pack(path, program, file.parts.items())
        try:
            found[outcome(path, file, way)] += 1
            fire_as_cuda(text)
        except Exception as error:
            error.add_note(f"seed {seed}: {'.'.join(map(str, way))}")
            raise
        assert not EXECUTED, f"seed {seed}: {way}"
    return found


def test_crafted_files_are_refused_or_what_they_were(files, tmp_path, cuda_fakes):
    found = crafted(files, tmp_path / "it", range(120))
    assert found["refused"] > 70 and found["same bits"], found


@pytest.mark.long
def test_many_crafted_files_are_refused_or_what_they_were(files, tmp_path, cuda_fakes):
    found = crafted(files, tmp_path / "it", range(1000, 3000))
    print(dict(found))
    assert found["refused"] > 1200, found


# -- the generated code of CUDA launches ---------------------------------------------------------
@pytest.fixture
def cuda_fakes(monkeypatch):
    """Stands for the driver's calls that a launch makes."""

    def replace(where, pointer):
        ctypes.memset(where, pointer & 0xFF, 128)
        return 0

    monkeypatch.setattr(cuda, "several_gpus", lambda: False)
    monkeypatch.setattr(cuda, "libcuda", lambda: SimpleNamespace(cuLaunchKernelEx=lambda *_: 0))
    monkeypatch.setattr(cuda, "_replace_address", lambda: replace)


def fire_as_cuda(text) -> None:
    """Prepares and fires the launches of a description, past the schema, as if for a GPU: they
    raise nothing but DeviceError.
    """
    device = FakeDevice()
    launches = text.get("launches") if isinstance(text, dict) else None
    for each in launches if isinstance(launches, list) else ():
        try:
            params = each["params"]
            maps = [TensorBox(*(box[x.name] for x in fields(TensorBox))) for box in params["maps"]]
            lists = tuple(params["order"]), tuple(params["offsets"]), tuple(maps)
            packed, pointers = bytes.fromhex(params["packed"]), each["pointers"]
        except (TypeError, KeyError, ValueError):
            continue  # no parameters at all
        if isinstance(pointers, int) and pointers > 1000:
            continue  # nobody fires with so many
        try:
            of = Parameters(packed, *lists)
            made = cuda.CudaLaunch(device, function(device), (1, 1, 1), (1, 1, 1), of, pointers, "")
        except DeviceError:
            continue
        made.fire(0, *range(16, 16 * (pointers + 1), 16))
    assert not EXECUTED


def test_what_a_launch_cannot_take_is_refused_before_code_is_generated(cuda_fakes) -> None:
    """Parameters that a launch cannot take are refused before code is generated, in each place,
    also past the schema.
    """
    device, packed = FakeDevice(), bytes(512)

    def prepared(order=(0,), offsets=(0,), maps=(), pointers=1):
        of = Parameters(packed, order, offsets, maps)
        cuda.CudaLaunch(device, function(device), (1, 1, 1), (1, 1, 1), of, pointers, "it")

    def box(**how):
        facts = {"pointer": 0, "at": 64, "itemsize": 2, "size": (64,), "pitches": (), "box": (8,)}
        return (TensorBox(**{**facts, "swizzle": 0, **how}),)

    prepared()
    prepared(maps=box())
    for wrong in (*CODE, True, 1.0, -1, 1, 1 << 64):
        with pytest.raises(DeviceError, match=r"launching it: order\[0\] is"):
            prepared(order=(wrong,))
        with pytest.raises(DeviceError, match=r"launching it: maps\[0\]\.pointer is"):
            prepared(maps=box(pointer=wrong))
    for wrong in (*CODE, True, 4.0, -4, 2, 512, 1 << 64):
        with pytest.raises(DeviceError, match=r"launching it: offsets\[0\] is"):
            prepared(offsets=(wrong,))
        with pytest.raises(DeviceError, match=r"launching it: maps\[0\]\.at is"):
            prepared(maps=box(at=wrong))
    for wrong in (*CODE, True, 1.0, -1):
        with pytest.raises(DeviceError, match="launching it: pointers is"):
            prepared(pointers=wrong)
    for order in (CODE[:1], (None, CODE[0])):
        with pytest.raises(ValueError, match="format code 'd'"):
            cuda._firing(1, order, (0, 0), False)
    with pytest.raises(DeviceError, match="order is of 65 pointers; takes at most 64"):
        prepared(order=(0,) * 65)
    assert not EXECUTED


# -- what is around the description --------------------------------------------------------------
def refused(path: Path, says: str) -> None:
    with pytest.raises(SavedError, match=says):
        ptxgen.load(path)
    assert not EXECUTED


def test_json_of_every_bad_kind(files, tmp_path: Path) -> None:
    file, path = files[0], tmp_path / "it"
    right = json.dumps(file.text)

    def says(program: str | bytes, what: str) -> None:
        pack(path, program if isinstance(program, bytes) else program.encode(), file.parts.items())
        refused(path, what)

    says("[" * 100_000 + "]" * 100_000, "no JSON")
    says('{"a":' * 50_000 + "0" + "}" * 50_000, "no JSON")
    says(right.replace('"nbytes": 2048', '"nbytes": ' + "9" * 5000), "no JSON")
    says(right.replace('"nbytes": 2048', '"nbytes": 2e999'), "nbytes is inf; takes an integer")
    says(right.replace('"nbytes": 2048', '"nbytes": NaN'), "with NaN; takes finite numbers")
    says(right.replace('"nbytes": 2048', '"nbytes": 0, "nbytes": 2048'), "with a key twice")
    says(right[:-1], "no JSON")
    says(b"\xef\xbb\xbf" + right.encode(), "no JSON")
    says(right.encode("utf-16"), "no JSON")
    says(b"\xff" + right.encode(), "no JSON")
    says("", "no JSON")
    for other in ("null", "[]", "0", '"it"'):
        says(other, "malformed: program.json is")


def test_archives_of_every_bad_kind(files, tmp_path: Path, monkeypatch) -> None:
    file, path = files[0], tmp_path / "it"
    program = json.dumps(file.text).encode()
    parts = list(file.parts.items())

    def says(parts, what: str, **how) -> None:
        pack(path, program, parts, **how)
        refused(path, what)

    with pytest.warns(UserWarning, match="Duplicate name"):
        says([*parts, parts[0]], "two parts of one name")
    for odd in (
        "../../it",
        "kernels/00",
        "kernels/99",
        "arrays/",
        "arrays/other",
        "x",
        "/it",
        CODE[0],
    ):
        says([*parts, (odd, b"it")], "is not what was saved|takes")
    says(parts[1:], "kernels/0 is not what was saved")
    says(parts, "not marked", comment=b"\xff" * 100)
    says(parts, "format 9999999999; takes", comment=b"ptxgen program 9999999999 0")
    says(parts, "format ; takes", comment=b"ptxgen program  0")
    monkeypatch.setattr(saved, "UNPACKED_MAX", 100_000)
    says([*parts, ("kernels/6", bytes(1 << 20))], "unpacks to")
    monkeypatch.setattr(saved, "PROGRAM_MAX", 1000)
    says(parts, "more than 1000 bytes of program.json")
    monkeypatch.undo()
    pack(path, program, parts)
    whole = path.read_bytes()
    at = whole.index(b"PK\x01\x02", len(whole) - 2000)  # the last entry of the directory
    for offset, form, value in [
        *((8, "<H", 1), (10, "<H", 12), (10, "<H", 99), (20, "<I", 1 << 30), (24, "<I", 1 << 30)),
        *((42, "<I", 1 << 30), (42, "<I", 5), (28, "<H", 0xFFFF), (16, "<I", 7)),
    ]:
        packed = struct.pack(form, value)
        path.write_bytes(whole[: at + offset] + packed + whole[at + offset + len(packed) :])
        refused(path, "altered")


def test_parts_have_the_sizes_that_are_said(files, tmp_path: Path) -> None:
    file, path = files[0], tmp_path / "it"
    for data in (b"", bytes(127), bytes(129), bytes(1 << 20)):
        text = copy.deepcopy(file.text)
        text["parts"]["arrays/outside1"] = hashlib.sha256(data).hexdigest()
        pack(path, json.dumps(text).encode(), {**file.parts, "arrays/outside1": data}.items())
        refused(path, f"malformed: arrays/outside1 has {len(data)} bytes; takes 128")


def test_images_that_no_device_loads_are_refused(files, tmp_path: Path) -> None:
    file, path, rng = files[0], tmp_path / "it", random.Random(5)
    image = file.parts["kernels/2"]
    lines = image.split(b"\n")

    def shuffled() -> bytes:
        at = rng.randrange(len(lines))
        other = rng.choice((b"", CODE[0].encode(), b"}", b"{", rng.choice(lines), lines[at] + b";"))
        return b"\n".join([*lines[:at], other, *lines[at + 1 :]])

    images = [b"", b"\0", b"\xff", b"\x7fELF", image[:100], *(shuffled() for _ in range(40))]
    taken = 0
    for number, data in enumerate(images):
        text = copy.deepcopy(file.text)
        text["parts"]["kernels/2"] = hashlib.sha256(data).hexdigest()
        pack(path, json.dumps(text).encode(), {**file.parts, "kernels/2": data}.items())
        try:
            ptxgen.load(path)
        except SavedError:
            continue
        except Exception as error:
            error.add_note(f"image {number}: {data!r}")
            raise
        taken += 1
    assert taken < len(images) // 2 and not EXECUTED


def test_a_file_that_is_replaced_while_it_is_read_is_what_it_was(files, tmp_path: Path) -> None:
    """An opened file keeps its contents while it is replaced, by another file or in place."""
    file, path = files[0], tmp_path / "it"
    program = json.dumps(file.text).encode()
    pack(path, program, file.parts.items())
    with saved.opened(path, CpuDevice()) as found:
        pack(tmp_path / "other", program, [(n, bytes(len(d))) for n, d in file.parts.items()])
        os.replace(tmp_path / "other", path)
        for b, bits in zip(found.contents.outside, found.arrays(), strict=True):
            assert bits.tobytes() == file.parts[f"arrays/{b.memory.name}"]
    pack(path, program, file.parts.items())
    with saved.opened(path, CpuDevice()) as found:
        whole = path.read_bytes()
        at = whole.index(file.parts["arrays/outside0"])
        with path.open("r+b") as altered:
            altered.seek(at)
            altered.write(bytes(64))
        with pytest.raises(SavedError, match="altered"):
            list(found.arrays())


def test_nothing_is_loaded_before_all_has_been_checked(files, tmp_path: Path, monkeypatch) -> None:
    file, path = files[0], tmp_path / "it"
    monkeypatch.setattr(CpuDevice, "imaged", None)
    for key, value in [("outputs", [99]), ("results", []), ("steps", [])]:
        pack(path, json.dumps({**file.text, key: value}).encode(), file.parts.items())
        refused(path, "malformed")
    parts = {**file.parts, "arrays/outside2": bytes(128)}
    pack(path, json.dumps(file.text).encode(), parts.items())
    refused(path, "arrays/outside2 is not what was saved")


def test_errors_say_where_and_what_is_taken(files, tmp_path: Path, device) -> None:
    """A place of each kind."""
    layers, maps, writes = (file.text for file in files)

    def says(text, change, expected: str) -> None:
        changed = copy.deepcopy(text)
        change(changed)
        with pytest.raises(Wrong) as found:
            saved_schema.contents(changed, device.max_shared)
        assert str(found.value).startswith(expected)

    def put(*way):
        *keys, last, value = way

        def done(text):
            for key in keys:
                text = text[key]
            text[last] = value

        return done

    params = "launches[3].params"
    for text, way, expected in [
        (
            layers,
            ("launches", 3, "params", "order", 1, 2),
            f"{params}.order[1] is 2; takes null or",
        ),
        (layers, ("launches", 3, "params", "order", [0] * 5), f"{params}.order is of 5 pointers"),
        (
            layers,
            ("launches", 3, "params", "offsets", 0, 32),
            f"{params}.offsets[0] is 32; takes a",
        ),
        (layers, ("launches", 3, "params", "packed", "0"), f"{params}.packed is '0'; takes hex"),
        (layers, ("launches", 3, "kernel", 6), "launches[3].kernel is 6; takes the number of one"),
        (
            layers,
            ("launches", 3, "block", [1024, 2, 1]),
            "launches[3].block is [1024, 2, 1]; takes",
        ),
        (
            layers,
            ("launches", 3, "grid", 1, 65536),
            "launches[3].grid[1] is 65536; takes an integer",
        ),
        (
            layers,
            ("launches", 3, "pointers", 3),
            "steps[3][1] is a list of 2; takes the 3 pointers",
        ),
        (layers, ("kernels", 0, "shared", 1 << 20), "kernels[0].shared is 1048576; takes at most"),
        (layers, ("kernels", 0, "name", "a b"), "kernels[0].name is 'a b'; takes a name of PTX"),
        (layers, ("outputs", 0, 0), "outputs[0] is 0; takes null, or the slot of a result"),
        (layers, ("nbytes", True), "nbytes is True; takes an integer"),
        (layers, ("nbytes", 100), "steps[0][2][3][2] is 1024; takes an integer from 0 to 100"),
        (layers, ("steps", 0, 1, 1, 0, 8), "steps[0][1][1][0] is 8; takes the number of one of 8"),
        (layers, ("steps", 0, 1, 1, 1, 8193), "steps[0][1][1][1] is 8193; takes an integer from 0"),
        (layers, ("steps", 0, 0, []), "steps[0][0] is a list of 0; takes 1 or more"),
        (layers, ("steps", 0, 2, 0, 3, True), "steps[0][2][0][3] is true; takes false"),
        (layers, ("steps", 0, 2, 0, 1, 4096), "steps[0][2][0][1] is 4096; takes an integer from"),
        (layers, ("steps", 3, 2, 1, 3, False), "results[0] is an array that no step writes"),
        (layers, ("outside", 0, "shape", [64, 32, 1]), "outside[0].strides is a list of 2; takes"),
        (layers, ("outside", 0, "shape", 0, 1 << 46), "outside[0] is an array of shape"),
        (layers, ("outside", 0, "dtype", "int4"), "outside[0].dtype is 'int4'; takes 'float16' or"),
        (layers, ("outside", 0, "name", "outside1"), "outside[1].name is 'outside1' again"),
        (layers, ("arguments", 0, "low", 4), "arguments[0] has strides [64, 1] and lies 4 bytes"),
        (layers, ("results", 0, "low", 4), "results[0] is an array that is the caller's, or"),
        (layers, ("listing", []), "listing is a list of 0; takes a line for each of 6 steps"),
        (layers, ("listing", 0, 5, float("nan")), "listing[0][5] is nan; takes a time in"),
        (
            layers,
            ("contracts", 0, "rows"),
            "contracts[0] is 'rows'; takes a contract as name/version",
        ),
        (layers, ("parts", "kernels/1", "0"), "parts.kernels/1 is '0'; takes a SHA-256"),
        (layers, ("parts", "../it", "0" * 64), "a key of parts is '../it'; takes kernels/NUMBER"),
        (layers, ("made", {}), "made is without "),
        (layers, ("made", "more", 0), "made is with 'more'; takes the keys gpu, sms, nvrtc"),
        (maps, ("launches", 0, "params", "maps", 0, "at", 320), "launches[0].params.maps[1].at is"),
        (
            maps,
            ("launches", 0, "params", "maps", 0, "pointer", 4),
            "launches[0].params.maps[0].poi",
        ),
        (
            maps,
            ("launches", 0, "params", "maps", 1, "box", 0, 512),
            "launches[0].params.maps[1] is",
        ),
        (writes, ("arguments", 1, "written", False), "outputs[1] is 1; takes null, or the slot of"),
    ]:
        says(text, put(*way), expected)
    for file in files:
        saved_schema.contents(file.text, device.max_shared)


def test_only_elf_of_the_said_length_is_a_cubin() -> None:
    cubin = compile_cubin('extern "C" __global__ void it() {}', name="it", arch="sm_90a").image
    assert saved.is_whole_elf(cubin)
    for wrong in (
        b"",
        cubin[:63],
        cubin[:-64],
        b"\x7fELF" + bytes(60),
        cubin[:4] + b"\1" + cubin[5:],
    ):
        assert not saved.is_whole_elf(wrong)


# -- paths ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "path", ["", "/", ".", "..", "a\0b", None, 3, b"it", "x" * 300, "\ud800/it"]
)
def test_paths_that_name_no_file_are_refused(path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    captured = ptxgen.capture(f.neg, drawn(4))
    with pytest.raises(SavedError):
        captured.save(path)
    with pytest.raises(SavedError):
        ptxgen.load(path)
    assert not list(tmp_path.iterdir())


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    captured = ptxgen.capture(f.neg, drawn(4))
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link, tmp_path):
        with pytest.raises(SavedError, match="is no regular file, and is not replaced"):
            captured.save(path)
        with pytest.raises(SavedError):
            ptxgen.load(path)
    assert pipe.is_fifo() and link.is_symlink()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "pipe"]
    captured.save(tmp_path / ("x" * 250))  # as long as a file system takes
    ptxgen.load(tmp_path / ("x" * 250))
