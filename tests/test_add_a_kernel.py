"""Adding a kernel is one spec in tiles/: everything else follows from the registry.

Tried on a copy of the checkout, as somebody who adds a kernel would: one edit, then the
commands of docs/how-to/add-a-kernel.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
ROOMS = ("ptxgen", "golden", "docs")

# What the person writes: a spec, and a route that prefers it for some problem.
EDIT = """

import dataclasses

from ptxgen.spec import M as _ROWS

_OLD = next(r.kernels[0] for r in ROUTES["NN", "chunks", "f32", "simt"] if len(r.kernels) == 1)
_NEW = dataclasses.replace(_OLD, raster=_OLD.raster + 3)
_ROUTE = Route((_NEW,), _ROWS.eq(54321), "a test wants it")
_KEY = ("NN", "chunks", "f32", "simt")
ROUTES = {**ROUTES, _KEY: (_ROUTE, *ROUTES[_KEY])}
"""


class Copy:
    """A copy of the checkout, and the commands run in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for room in ROOMS:
            if (PROJECT / room).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(PROJECT / room, root / room, ignore=ignored)
        shutil.copy(PROJECT / "pyproject.toml", root)

    def python(self, *argv: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.root),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PTXGEN_CACHE_DIR": str(self.root / "cache"),
        }
        return subprocess.run(
            [sys.executable, *argv],
            cwd=self.root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )

    def ptxgen(self, *argv: str, status: int = 0) -> str:
        done = self.python("-m", "ptxgen", *argv)
        assert done.returncode == status, f"ptxgen {' '.join(argv)}: {done.stdout}{done.stderr}"
        return done.stdout

    def files(self) -> dict[str, str]:
        """The digest of every file."""
        return {
            path.relative_to(self.root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for room in ROOMS
            for path in (self.root / room).rglob("*")
            if path.is_file()
        }


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("checkout"))


@pytest.mark.long
def test_one_edit_adds_a_kernel(copy: Copy) -> None:
    def names() -> set[str]:
        return {row["name"] for row in json.loads(copy.ptxgen("list", "--json"))}

    copy.ptxgen("generate")  # that it was current is not tested here
    before, registry = copy.files(), names()
    with (copy.root / "ptxgen/tiles/simt.py").open("a") as table:
        table.write(EDIT)

    (new,) = names() - registry
    shown = json.loads(copy.ptxgen("show", new, "--json"))
    assert [(r["table"], r["route"]) for r in shown["routes"]] == [
        (["NN", "chunks", "f32", "simt"], 0)
    ]
    assert shown["resources"] == {}
    assert new in copy.ptxgen("render", new)

    # Nobody can forget the rest: the gates fail until it is made.
    problems = copy.ptxgen("golden", "check", new, status=1).splitlines()[1:]
    assert {tuple(line.split()[:2]) for line in problems} >= {("missing", "sm_90a")}
    assert all(new in line for line in problems)
    assert "chunks_simt" in copy.ptxgen("generate", "--check", status=1)

    copy.ptxgen("golden", "update", new)
    copy.ptxgen("golden", "check", new)
    copy.ptxgen("generate")
    copy.ptxgen("generate", "--check")
    shown = json.loads(copy.ptxgen("show", new, "--json"))
    assert shown["resources"].keys() >= {"sm_90a"}
    explained = json.loads(copy.ptxgen("explain", "linear", "54321x64x64", "--json"))
    (candidate,) = (c for c in explained["candidates"] if c["kernels"] == [new])
    assert candidate["correct"] and candidate["terms"]["launch"] > 0
    chosen = copy.python(
        "-c",
        "from ptxgen.dispatch import candidates; print(*(c.choice.kernels[0] for c in "
        "candidates(('NN', 'chunks', 'f32', 'simt'), dict(M=54321, N=64, K=64, ALIGN_A=16, "
        "ALIGN_B=16), arch='sm_90', sms=132)))",
    )
    assert new in chosen.stdout.split(), chosen.stderr

    # One file written by hand; the others are what the two commands wrote.
    after = copy.files()
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed == {
        "ptxgen/tiles/simt.py",
        "ptxgen/dispatch/generated/chunks_simt.py",
        "golden/records/simt_f32.jsonl",
    }
