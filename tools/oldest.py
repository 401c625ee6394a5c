"""Lists requirements at the lower bounds of pyproject.toml, for ``make test-oldest``.

    python tools/oldest.py test bench    # dependencies, and those of two extras

Exact pins of an extra are omitted, as they have no range; so is PyTorch, as the build that fits
depends on the machine. A bound that names no version of the package fails in pip.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def requirements(extras: list[str]) -> list[str]:
    """Returns ``name==lower bound`` for each dependency, and for each one of ``extras`` with a
    range.
    """
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    listed = list(project["dependencies"])
    for extra in extras:
        listed += project["optional-dependencies"][extra]
    bounds: dict[str, str] = {}
    for each in listed:
        name, sign, version = re.match(r"([\w-]+)(>=|==)([\w.]+)", each).groups()
        if sign == ">=" and name != "torch":
            bounds.setdefault(name, version)
    return [f"{name}=={version}" for name, version in bounds.items()]


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1:])))
