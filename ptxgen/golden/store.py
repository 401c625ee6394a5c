"""Files of goldens: a record for every kernel and architecture, and PTX texts for reviewers.

::

    golden/records/compiler.json        the compiler's version and options
    golden/records/<family>_<dtype>.jsonl   a line per kernel and architecture, sorted
    golden/ptx/<kernel>.ptx             PTX, of the kernels that a reviewer reads
    golden/accepted_spills.json         why a kernel may use local memory; written by hand
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ptxgen.errors import OptionError, PtxgenError
from ptxgen.golden.ptx import local_depot, summary

RECORDS = "records"
COMPILER = f"{RECORDS}/compiler.json"
TEXTS = "ptx"
ACCEPTED = "accepted_spills.json"
_LEGACY = "resources.json"  # in old revisions, which kept all PTX as text


@dataclass(frozen=True)
class Usage:
    """Resources of a kernel on one architecture: registers per thread, bytes otherwise.

    ``shared`` is static and dynamic shared memory together, per CTA.
    """

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int


@dataclass(frozen=True)
class Record:
    """The committed record of one kernel on one architecture.

    ``inputs``: digest of all that decides the other fields (source, options, architecture,
    compiler, dynamic shared memory); empty if unknown. ``ptx``: digest of the PTX, which has
    ``size`` bytes; ``mix``: its instruction counts by opcode; ``usage``: registers, spills and
    shared memory; ``local``: bytes of arrays in local memory. ``group``: name of the file that has
    the record.
    """

    group: str
    inputs: str
    ptx: str
    size: int
    usage: Usage
    local: int = 0
    mix: Mapping[str, int] = field(default_factory=dict)


Key = tuple[str, str]
"""Pair of architecture and kernel name."""


@dataclass(frozen=True)
class Goldens:
    """A set of goldens: records of generated code by (architecture, kernel).

    ``texts``: PTX by kernel, for the first of its architectures; ``nvrtc``: the compiler version of
    all records; ``accepted``: the reason why a kernel may use local memory.
    """

    nvrtc: str = ""
    records: Mapping[Key, Record] = field(default_factory=dict, repr=False)
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    accepted: Mapping[Key, str] = field(default_factory=dict)

    @property
    def usage(self) -> dict[Key, Usage]:
        """Resources of each kernel, by key."""
        return {key: record.usage for key, record in self.records.items()}

    def kernels(self) -> set[str]:
        """Returns the names of the kernels that have a record or a text."""
        return {kernel for _, kernel in self.records} | self.texts.keys()

    def only(self, kernels: set[str]) -> Goldens:
        """Returns the records and texts of some kernels."""
        return replace(
            self,
            records={key: r for key, r in self.records.items() if key[1] in kernels},
            texts={kernel: text for kernel, text in self.texts.items() if kernel in kernels},
        )


def digest(text: str) -> str:
    """Returns the first half of the SHA-256 digest of a text, as 32 hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def checkout_folder() -> Path:
    """Returns ``golden/`` of the checkout that has this package; OptionError if none has."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / "pyproject.toml").is_file():
        raise OptionError(
            "this wants a checkout: goldens, and the revisions to compare them with, are not "
            "installed with ptxgen; pip install -e a checkout, or name a folder with --golden DIR"
        )
    return checkout / "golden"


def recorded() -> Goldens:
    """Loads the goldens of this package, from the checkout or from the wheel."""
    try:
        return load(checkout_folder())
    except OptionError:
        return load(Path(__file__).parent)


def load(folder: Path) -> Goldens:
    """Loads the goldens in ``folder`` (none if it does not exist)."""
    paths = [*folder.glob("*.json"), *folder.glob(f"{RECORDS}/*"), *folder.glob(f"{TEXTS}/*.ptx")]
    files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in paths if p.is_file()}
    return parse(files, str(folder))


def save(folder: Path, goldens: Goldens) -> list[str]:
    """Writes the records and texts of ``goldens`` to ``folder``, and removes files of others that
    are there; returns the files that changed.

    The accepted spills are edited by hand, so they are never written.
    """
    wanted = _format(goldens)
    present = {
        path.relative_to(folder).as_posix(): path
        for path in (*folder.glob(f"{RECORDS}/*.json*"), *folder.glob(f"{TEXTS}/*.ptx"))
    }
    changed = []
    for name in sorted(wanted.keys() | present.keys()):
        if name not in wanted:
            present[name].unlink()
        elif name in present and present[name].read_bytes() == wanted[name]:
            continue
        else:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(wanted[name])
        changed.append(name)
    return changed


def parse(files: Mapping[str, bytes], where: str) -> Goldens:
    """Parses goldens from the contents of ``files``, by path in the folder; ``where``: name of the
    folder for errors. Raises PtxgenError for a malformed file.
    """
    if _LEGACY in files:
        return _parse_legacy(files)
    name = COMPILER
    try:
        nvrtc = str(json.loads(files.get(COMPILER, b'{"nvrtc": ""}'))["nvrtc"])
        records: dict[Key, Record] = {}
        for name in sorted(files):
            if name.startswith(f"{RECORDS}/") and name.endswith(".jsonl"):
                group = Path(name).stem
                records |= dict(_record(row, group) for row in files[name].decode().splitlines())
        name = ACCEPTED
        accepted = {
            (arch, kernel): str(reason)
            for kernel, by_arch in json.loads(files.get(ACCEPTED, b"{}")).items()
            for arch, reason in by_arch.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        remedy = (
            'it is {"<kernel>": {"<arch>": "<reason>"}}'
            if name == ACCEPTED
            else "take the file of another commit, or remove it: `ptxgen golden update` writes it"
        )
        raise PtxgenError(
            f"{name} of {where} cannot be read ({type(error).__name__}: {error}); " + remedy
        ) from error
    texts = {
        Path(name).stem: content.decode()
        for name, content in files.items()
        if name.startswith(f"{TEXTS}/") and name.endswith(".ptx")
    }
    return Goldens(nvrtc, records, texts, accepted)


def _format(goldens: Goldens) -> dict[str, bytes]:
    from ptxgen.build.compile import BASE_OPTIONS, CUBIN_OPTIONS

    compiler = {"nvrtc": goldens.nvrtc, "options": [*BASE_OPTIONS, *CUBIN_OPTIONS]}
    files = {COMPILER: (json.dumps(compiler, indent=2) + "\n").encode()}
    groups: dict[str, list[str]] = {}
    for key in sorted(goldens.records, key=lambda key: (key[1], _number(key[0]))):
        record = goldens.records[key]
        groups.setdefault(record.group, []).append(_row(key, record))
    for group, rows in groups.items():
        files[f"{RECORDS}/{group}.jsonl"] = "".join(f"{row}\n" for row in rows).encode()
    for kernel, text in goldens.texts.items():
        files[f"{TEXTS}/{kernel}.ptx"] = text.encode()
    return files


def _number(arch: str) -> tuple[int, str]:
    """Returns a sort key that puts sm_80 before sm_120."""
    digits = re.search(r"\d+", arch)
    return (int(digits[0]) if digits else 0, arch)


def _row(key: Key, record: Record) -> str:
    """Returns a record as a line of JSON, without resources that are zero, and with a seal: a
    digest of the line that shows later edits.
    """
    arch, kernel = key
    optional = {**asdict(record.usage), "local": record.local}
    row: dict[str, Any] = {"kernel": kernel, "arch": arch, "inputs": record.inputs}
    row |= {"ptx": record.ptx, "size": record.size}
    row |= {name: value for name, value in optional.items() if value}
    row["mix"] = dict(record.mix)
    return json.dumps(row | {"seal": _seal(row)})


def _seal(row: Mapping[str, Any]) -> str:
    return digest(json.dumps(row))[:8]


def _record(line: str, group: str) -> tuple[Key, Record]:
    """Parses a kernel's line of JSON in the record file ``group``; returns its key and record.

    If the line was edited (its seal, a digest of the line, is wrong), the record has no ``inputs``,
    which makes it stale.
    """
    row = json.loads(line)
    seal = row.pop("seal", "")
    inputs = row["inputs"] if seal == _seal(row) else ""
    usage = Usage(*(row.get(name, 0) for name in Usage.__dataclass_fields__))
    record = Record(group, inputs, row["ptx"], row["size"], usage, row.get("local", 0), row["mix"])
    return (row["arch"], row["kernel"]), record


def _parse_legacy(files: Mapping[str, bytes]) -> Goldens:
    """Parses goldens of old revisions, which kept all PTX as text and no digests."""
    texts = {}
    records = {}
    made = {name.rpartition("/")[2]: content.decode() for name, content in files.items()}
    resources = json.loads(files[_LEGACY])
    for kernel, by_arch in resources["kernels"].items():
        text = made.get(f"{kernel}.ptx", "")
        for index, (arch, use) in enumerate(by_arch.items()):
            record = Record("", "", "", 0, Usage(**use))
            if index == 0 and text:  # the target is the first architecture's
                mix, size = summary(text), len(text.encode())
                record = Record("", "", digest(text), size, record.usage, local_depot(text), mix)
                texts[kernel] = text
            records[arch, kernel] = record
    return Goldens(str(resources["nvrtc"]), records, texts)
