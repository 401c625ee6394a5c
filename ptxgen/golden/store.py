"""Reading and writing goldens: from a folder, and from a git revision."""

from __future__ import annotations

import io
import json
import re
import subprocess
import tarfile
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

from ptxgen.errors import OptionError, PtxgenError

T = TypeVar("T")

RESOURCES = "resources.json"
ACCEPTED = "accepted_spills.json"


@dataclass(frozen=True)
class Usage:
    """What a kernel takes on one architecture: registers per thread, bytes otherwise.

    ``shared`` is static and dynamic shared memory together, per CTA.
    """

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int


Key = tuple[str, str]
"""(PTX target or architecture, kernel)."""


@dataclass(frozen=True)
class Goldens:
    """A set of goldens.

    ``ptx`` by (target, kernel), ``usage`` by (architecture, kernel); ``nvrtc`` is the version
    that made them; ``accepted`` gives the reason why a kernel may use local memory, by
    (target or architecture, kernel).
    """

    nvrtc: str = ""
    ptx: Mapping[Key, str] = field(default_factory=dict, repr=False)
    usage: Mapping[Key, Usage] = field(default_factory=dict, repr=False)
    accepted: Mapping[Key, str] = field(default_factory=dict)

    def kernels(self) -> set[str]:
        """The kernels that have any golden."""
        return {kernel for _, kernel in (*self.ptx, *self.usage)}

    def replaced(self, new: Goldens, kernels: Collection[str]) -> Goldens:
        """These goldens with those of ``kernels`` taken from ``new``."""

        def mixed(old: Mapping[Key, T], fresh: Mapping[Key, T]) -> dict[Key, T]:
            kept = {key: value for key, value in old.items() if key[1] not in kernels}
            return kept | {key: value for key, value in fresh.items() if key[1] in kernels}

        return Goldens(
            new.nvrtc, mixed(self.ptx, new.ptx), mixed(self.usage, new.usage), self.accepted
        )


def checkout_folder() -> Path:
    """``golden/`` of the checkout that this package is in; OptionError if it is in none."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / "pyproject.toml").is_file():
        raise OptionError(
            "ptxgen is installed without its goldens, which are part of a checkout; "
            "pip install -e a checkout, or name a folder with --golden DIR"
        )
    return checkout / "golden"


def load(folder: Path) -> Goldens:
    """The goldens in ``folder`` (none if it does not exist)."""
    paths = [*folder.glob("*.json"), *folder.glob("*/*.ptx")]
    return _parse({p.relative_to(folder).as_posix(): p.read_bytes() for p in paths}, str(folder))


def load_revision(revision: str, folder: Path) -> Goldens:
    """The goldens that ``folder`` had in a git revision.

    Raises OptionError when git does not know the revision (or is not there).
    """
    try:
        archive = subprocess.run(
            ["git", "archive", "--format=tar", f"{revision}:./{folder.name}"],
            cwd=folder.parent,
            capture_output=True,
            check=True,
        ).stdout
    except FileNotFoundError:
        raise OptionError("git is not installed, so there are no revisions to compare") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines()
        reason = said[-1] if said else f"git archive ended with {error.returncode}"
        raise OptionError(
            f"no goldens in revision {revision!r} ({reason}); takes a commit, tag or branch "
            f"that has {folder.name}/"
        ) from None
    files = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            content = tar.extractfile(member)
            if content is not None:
                files[member.name] = content.read()
    return _parse(files, revision)


def save(folder: Path, goldens: Goldens) -> list[str]:
    """Makes ``folder`` hold exactly ``goldens``; returns the files that changed.

    Orphans are removed. The accepted spills are people's, so they are never written.
    """
    wanted = _format(goldens)
    present = {
        path.relative_to(folder).as_posix(): path
        for path in (folder / RESOURCES, *folder.glob("*/*.ptx"))
        if path.is_file()
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


def _format(goldens: Goldens) -> dict[str, bytes]:
    """The files of ``goldens``; one line per kernel and architecture in resources.json."""
    files = {f"{t}/{kernel}.ptx": text.encode() for (t, kernel), text in goldens.ptx.items()}
    blocks = []
    for kernel in sorted({kernel for _, kernel in goldens.usage}):
        rows = [
            f"      {json.dumps(arch)}: {json.dumps(asdict(use))}"
            for (arch, name), use in sorted(goldens.usage.items(), key=lambda i: _by_number(i[0]))
            if name == kernel
        ]
        blocks.append(f"    {json.dumps(kernel)}: {{\n" + ",\n".join(rows) + "\n    }")
    text = f'{{\n  "nvrtc": {json.dumps(goldens.nvrtc)},\n  "kernels": {{\n'
    files[RESOURCES] = (text + ",\n".join(blocks) + "\n  }\n}\n").encode()
    return files


def _by_number(key: Key) -> tuple[int, str]:
    """Sorts sm_80 before sm_120."""
    digits = re.search(r"\d+", key[0])
    return (int(digits[0]) if digits else 0, key[0])


def _parse(files: Mapping[str, bytes], where: str) -> Goldens:
    ptx = {}
    for name, content in files.items():
        target, slash, file = name.partition("/")
        if slash and file.endswith(".ptx"):
            ptx[target, file.removesuffix(".ptx")] = content.decode()
    try:
        resources = json.loads(files.get(RESOURCES, b'{"nvrtc": "", "kernels": {}}'))
        usage = {
            (arch, kernel): Usage(**use)
            for kernel, by_arch in resources["kernels"].items()
            for arch, use in by_arch.items()
        }
        accepted = {
            (arch, kernel): str(reason)
            for kernel, by_arch in json.loads(files.get(ACCEPTED, b"{}")).items()
            for arch, reason in by_arch.items()
        }
        nvrtc = str(resources["nvrtc"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise PtxgenError(
            f"{RESOURCES} or {ACCEPTED} of {where} cannot be read ({type(error).__name__}: "
            f"{error}); `ptxgen golden update` writes the first, the second is "
            '{"<kernel>": {"<arch>": "<reason>"}}'
        ) from error
    return Goldens(nvrtc, ptx, usage, accepted)
