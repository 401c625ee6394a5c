"""Reports of what an extension replaced in an engine, what ran, and what the engine served itself.

A process has one report, :data:`REPORT`. It notes each layer of a loaded model and each part that
is left to the engine, always; it counts calls in mode ``audit`` alone. A call that is captured in a
CUDA graph counts once: replays do not reach the host.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ptxgen.errors import EngineError
from ptxgen.ui import table

if TYPE_CHECKING:
    from ptxgen.engines.kernels import Recipe

VARIABLE = "PTXGEN_REPORT"
"""Environment variable of the file that a report is written to at exit, in mode ``audit``."""
PID = "{pid}"
"""Part of a file's name that stands for the number of the process: an engine may have several."""
SEEDS_MOST = 65536
"""Maximum number of requests whose drawn seeds are kept."""
SIZES_MOST = 64
"""Maximum number of different sizes of an operation of one layer whose kernels are named."""


class Layer(NamedTuple):
    """A layer of a loaded model: its class, the operation that serves it, or why none does."""

    kind: str
    operation: str
    why: str = ""


class Call(NamedTuple):
    """A counted call: the layer's name, the operation, its dtype (with the format of a quantized
    weight), and the recipe by which its kernels are found.
    """

    layer: str
    operation: str
    dtype: str
    recipe: Recipe | None = None


class Report:
    """Record of an extension in this process: what it replaced, what ran, what it left.

    ``engine``, ``version``, ``mode``: those of :meth:`begin`, empty before; ``hooks``: dotted names
    of the replaced functions; ``layers``: :class:`Layer` by name; ``calls``: numbers of calls in
    mode ``audit``; ``left``: numbers of times that the engine served something itself, by layer and
    reason; ``seeds``: seeds drawn for requests that came without one, by request.
    """

    def __init__(self) -> None:
        self._writer = 0  # process that writes the report when it ends
        self.reset()

    def reset(self) -> None:
        """Empties the report."""
        self.engine, self.version, self.mode = "", "", ""
        self.hooks: list[str] = []
        self.layers: dict[str, Layer] = {}
        self.calls: Counter[Call] = Counter()
        self.left: Counter[tuple[str, str]] = Counter()
        self.seeds: dict[str, int] = {}
        self.notes: dict[str, str] = {}
        self._sizes: Counter[tuple[str, str]] = Counter()

    def begin(self, engine: str, version: str, mode: str) -> None:
        """Starts the report of an engine."""
        self.reset()
        self.engine, self.version, self.mode = engine, version, mode

    @property
    def counting(self) -> bool:
        """Whether calls are counted."""
        return self.mode == "audit"

    # -- entries ------------------------------------------------------------------------------
    def call(self, made: Call) -> None:
        """Counts a call. Beyond SIZES_MOST different recipes of a layer's operation, recipes are
        left out.
        """
        if made not in self.calls:
            self._sizes[made.layer, made.operation] += 1
            if self._sizes[made.layer, made.operation] > SIZES_MOST:
                made = made._replace(recipe=None)
        self.calls[made] += 1

    def leave(self, layer: str, why: str) -> None:
        """Notes a part that the engine serves itself. In mode ``strict`` raises EngineError."""
        self.refuse([f"{layer}: {why}"])
        self.left[layer, why] += 1

    def refuse(self, parts: list[str]) -> None:
        """Raises EngineError with the parts, if there are any and the mode is ``strict``."""
        if parts and self.mode == "strict":
            shown = "; ".join(parts[:8]) + (f"; and {len(parts) - 8} more" if parts[8:] else "")
            variable = f"PTXGEN_{self.engine.upper()}"
            raise EngineError(
                f"{variable}=strict, and ptxgen does not serve these parts: {shown}; "
                f"{variable}=on leaves them to {self.engine}"
            )

    def seed(self, request: str, value: int) -> None:
        """Keeps the seed that was drawn for a request; of very many requests the latest."""
        self.seeds[request] = value
        if len(self.seeds) > SEEDS_MOST:
            del self.seeds[next(iter(self.seeds))]

    # -- output -------------------------------------------------------------------------------
    def as_dict(self) -> dict[str, Any]:
        """Returns the report as data for JSON."""
        return {
            "engine": self.engine,
            "version": self.version,
            "mode": self.mode,
            "hooks": self.hooks,
            "notes": self.notes,
            "layers": [{"layer": n, **of._asdict()} for n, of in self.layers.items()],
            "calls": [dict(row) for row in self._rows()],
            "left": [{"layer": n, "why": why, "times": c} for (n, why), c in self.left.items()],
            "seeds": self.seeds,
        }

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the report to a file, as JSON."""
        Path(path).write_text(json.dumps(self.as_dict(), indent=1) + "\n", encoding="utf-8")

    def __str__(self) -> str:
        if not self.engine:
            return "No extension of an engine is active in this process."
        lines = [f"{self.engine} {self.version}, mode {self.mode}: {len(self.hooks)} hooks"]
        lines += [f"{name}: {text}" for name, text in self.notes.items()]
        served = Counter((of.kind, of.operation) for of in self.layers.values() if not of.why)
        if served:
            rows = [(kind, number, op) for (kind, op), number in served.items()]
            lines += ["", table(rows, ("layers", "number", "served by"))]
        if self.left:
            rows = [(name, times, why) for (name, why), times in self.left.items()]
            lines += ["", table(rows, ("left to the engine", "times", "because"))]
        if self.calls:
            lines += ["", table([tuple(r.values()) for r in self._rows()], tuple(_HEAD))]
        if self.seeds:
            lines += ["", f"{len(self.seeds)} requests had no seed; the report has what was drawn"]
        return "\n".join(lines)

    def _rows(self) -> list[dict[str, Any]]:
        """Returns the calls of each layer, operation and kernel families, with their number."""
        counted: Counter[tuple[str, ...]] = Counter()
        for made, number in self.calls.items():
            counted[*made[:3], *_contracts_and_families(made.recipe)] += number
        return [dict(zip(_HEAD, (*key, n), strict=True)) for key, n in counted.items()]

    def write_at_exit(self) -> None:
        """Makes this process write the report to a file and to stderr when it ends, in mode
        ``audit``. Called when a model is loaded: an engine's processes without one write nothing.
        """
        if self.counting and self._writer != os.getpid():
            self._writer = os.getpid()
            # Processes that multiprocessing forks end without atexit, but call finalizers.
            Finalize(None, self._at_exit, exitpriority=0)

    def _at_exit(self) -> None:
        if not self.engine:
            return
        path = os.environ.get(VARIABLE) or f"ptxgen_{self.engine.lower()}.{PID}.json"
        path = path.replace(PID, str(os.getpid()))
        print(self, file=sys.stderr)
        self.write(path)
        print(f"\nwritten to {path}", file=sys.stderr)


_HEAD = ("layer", "operation", "dtype", "contract", "family", "calls")


def _contracts_and_families(recipe: Recipe | None) -> tuple[str, str]:
    """Returns the contracts and the families of a call's kernels, such as "tc16/3" and "wgmma",
    in the order of their launches, joined by "+"; empty if they are not known.
    """
    if recipe is None:
        return "", ""
    from ptxgen.engines.kernels import launched

    specs = launched(recipe)
    contracts, families = (str(s.contract) for s in specs), (s.family for s in specs)
    return "+".join(dict.fromkeys(contracts)), "+".join(dict.fromkeys(families))


REPORT = Report()
"""Report of this process."""
