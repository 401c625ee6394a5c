"""Writes docs/reference/graph-steps.md: the kinds of steps of an op graph, and what serves each.

The list is that of tests/test_graph_steps.py, whose tests run each entry and compare the page.
``python tools/graph_steps.py`` writes the page.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
SOURCE = TESTS / "test_graph_steps.py"
PAGE = TESTS.with_name("docs") / "reference" / "graph-steps.md"
HEAD = """# Steps of op graphs

This page lists the kinds of steps that graph backends of neural networks lower an op graph to, and
what serves each here. A graph comes from [a captured function or a
Builder](../explanation/graphs.md), or from PyTorch by [torch.compile](../how-to/compile.md).

- An operation is one step or several; `explain` and `captured.program` list them.
- A gradient is a program of such steps, in `ptxgen.torch` and in compiled graphs.
- A [pass](../explanation/graphs.md) finds the step: users write the operations that it joins.

Each line is an entry of `tests/test_graph_steps.py`, which runs it on the CPU device at small odd
sizes and at the limits named here. Results have the bits of the oracle, and are as near to a
float64 formula as the number of roundings implies. `python tools/graph_steps.py` writes this page.

f32 products never use TF32, which other backends take by default
([why](guarantees.md#limits)).

| kind | served by | limits that are run |
| --- | --- | --- |
"""


def kinds() -> Any:
    """Returns the list of kinds, by name."""
    sys.path[:0] = [str(TESTS.parent), str(TESTS), *map(str, filter(Path.is_dir, TESTS.iterdir()))]
    spec = importlib.util.spec_from_file_location("test_graph_steps", SOURCE)
    assert spec is not None and spec.loader is not None, SOURCE
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(spec.name, module)
    spec.loader.exec_module(module)
    return module.KINDS


def page(kinds: Mapping[str, Any]) -> str:
    """Returns the page for a list of kinds."""
    lines = (f"| {k.name} | {', '.join(k.served)} | {k.limits} |\n" for k in kinds.values())
    return HEAD + "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(kinds()), encoding="utf-8")
