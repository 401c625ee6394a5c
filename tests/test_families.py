"""Kernel families have one name in all rooms (the table of docs/explanation/architecture.md)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ptxgen

PACKAGE = Path(ptxgen.__file__).parent
DOCUMENT = PACKAGE.parent / "docs" / "explanation" / "architecture.md"
MAIN_LOOPS = ("simt", "mma", "wgmma", "f64")
"""Files and folders of the family gemm, named after their main loops."""
OWN = {
    "numerics": "activation complex constants contract dtype ex2 flce formats formula functions "
    "gradient option reduction_order signature softcap versions weight_format "
    "weight_packing",
    "oracle": "activation call dot16 ex2 f32 flce float8 formula half ops reduction_order",
    "spec": "abi base chain epilogue formula prepare problem reduction_stages route space",
    "tiles": "regimes tc typed",
    "templates": "include",
}
"""Files of a room that several families share."""


def families() -> dict[str, str]:
    section = DOCUMENT.read_text(encoding="utf-8").split("### Families", 1)[1]
    table = section.split("\n\n| family", 1)[1].split("\n\n", 1)[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", table, re.MULTILINE))


def names(room: str) -> set[str]:
    paths = (PACKAGE / room).iterdir()
    return {p.stem for p in paths if p.suffix == ".py" or p.is_dir()} - {"__init__", "__pycache__"}


def family_of(name: str, known: dict[str, str]) -> str | None:
    if name in MAIN_LOOPS:
        return "gemm"
    return next((f for f in known if name == f or name.startswith(f"{f}_")), None)


@pytest.mark.parametrize("room", OWN)
def test_files_are_named_after_families(room: str) -> None:
    known, own = families(), set(OWN[room].split())
    assert len(known) >= 20
    strangers = {n for n in names(room) - own if family_of(n, known) is None}
    assert not strangers, f"{room} has files of no family in docs/explanation/architecture.md"
    assert own <= names(room), "a shared file is gone"
    assert not own & known.keys()


def test_each_family_has_kernels_and_tiles() -> None:
    known = families()
    for room in ("spec", "tiles", "templates"):
        found = {family_of(name, known) for name in names(room)}
        missing = known.keys() - found
        allowed = {"tiles": {"depthwise"}, "templates": {"depthwise", "grouped"}}
        assert missing == allowed.get(room, set()), f"{room} lacks families"
