"""Git access for goldens: other revisions, and fast diffs of long texts."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from ptxgen.errors import OptionError, PtxgenError
from ptxgen.golden.store import Goldens, digest, parse


class Revision:
    """Goldens and PTX of a git revision of the checkout that contains ``folder`` (``golden/``).

    A context manager, which removes the extracted files at its end. Raises OptionError when git
    does not know the revision, or is not installed.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder
        self._temporary = tempfile.TemporaryDirectory(prefix="ptxgen-revision-")

    def __enter__(self) -> Revision:
        return self

    def __exit__(self, *_: object) -> None:
        self._temporary.cleanup()

    @cached_property
    def goldens(self) -> Goldens:
        """Goldens that are committed in the revision."""
        files = {}
        with self._archive(self._folder.name) as tar:
            for member in tar:
                content = tar.extractfile(member)
                if content is not None:
                    files[member.name.removeprefix(f"{self._folder.name}/")] = content.read()
        return parse(files, self.name)

    def text(self, kernel: str, arch: str) -> str:
        """Returns the PTX of a kernel: the golden text, or the output of the revision's own code.

        Raises PtxgenError if that code does not make the kernel.
        """
        stored = self.goldens.texts.get(kernel)
        record = self.goldens.records.get((arch, kernel))
        if stored is not None and record is not None and digest(stored) == record.ptx:
            return stored
        path = Path(self._temporary.name) / f"{kernel}.ptx"
        target = arch.replace("sm_", "compute_")
        done = subprocess.run(
            [sys.executable, "-m", "ptxgen", "render", kernel, "--ptx", target, "-o", str(path)],
            cwd=self._code,
            env={**os.environ, "PYTHONPATH": str(self._code), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
            raise PtxgenError(f"the code of {self.name} does not make {kernel}: {reason}")
        return path.read_text(encoding="utf-8")

    @cached_property
    def _code(self) -> Path:
        """Folder with an extracted copy of the revision's package."""
        folder = Path(self._temporary.name) / "code"
        with self._archive("ptxgen") as tar:
            # Python 3.11.0 to 3.11.3 have no argument for it.
            tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            tar.extractall(folder)
        return folder

    def _archive(self, path: str) -> tarfile.TarFile:
        done = git("archive", "--format=tar", self.name, "--", path, cwd=self._folder.parent)
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            reason = lines[-1] if lines else f"git archive ended with {done.returncode}"
            raise OptionError(
                f"no {path}/ in revision {self.name!r} ({reason}); takes a commit, tag or branch "
                f"of the repository that {self._folder} is in"
            )
        return tarfile.open(fileobj=io.BytesIO(done.stdout))


def git(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """Runs git in the folder ``cwd``. Raises OptionError if it is not installed."""
    try:
        return subprocess.run(["git", *arguments], cwd=cwd, capture_output=True)
    except FileNotFoundError:
        raise OptionError("git is not installed, and goldens are compared with its help") from None


def diff(
    old: str, new: str, names: Sequence[str] = ("old", "new"), *, context: int = 3
) -> list[str]:
    """Returns the lines of a unified diff of two texts; empty if they are equal.

    Uses git, because Python's difflib takes minutes for thousands of similar lines.
    """
    with tempfile.TemporaryDirectory(prefix="ptxgen-diff-") as folder:
        for name, text in (("a", old), ("b", new)):
            (Path(folder) / name).write_text(text, encoding="utf-8")
        options = ("--no-index", "--no-ext-diff", "--no-color", "--minimal", f"-U{context}")
        done = git("diff", *options, "--", "a", "b", cwd=Path(folder))
    if done.returncode > 1:
        raise PtxgenError(f"git diff: {done.stderr.decode(errors='replace').strip()}")
    lines = done.stdout.decode().splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith("@@")), len(lines))
    head = [f"--- {names[0]}", f"+++ {names[1]}"] if lines else []
    return head + lines[start:]
