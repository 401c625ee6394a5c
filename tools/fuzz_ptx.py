"""Compares the CPU device with ptxas, on random instructions of every form that it knows.

    python tools/fuzz_ptx.py --draws 200000 --seed 1      # ptxas of nvidia-cuda-nvcc
    python tools/fuzz_ptx.py --draws 20000 --ptxas /usr/local/cuda/bin/ptxas
    python tools/fuzz_ptx.py --record 1500                    # writes tests/conformance/ptxas.txt

The CPU device must run each instruction, end in a documented fault, or refuse it with a typed
error; and it must refuse what ptxas refuses. Instructions that only ptxas accepts are outside the
supported subset: they are counted, and listed with ``--outside``. Exit status 1 if an instruction
raised anything else, or was accepted wrongly.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import shared_tests  # noqa: E402, F401
from ptx_draws import HEAD, LINES, TARGETS, Draw, Drawer, execute, kernel, load  # noqa: E402

from ptxgen.runtime.cpu import CpuDevice  # noqa: E402

BATCH = 300
RECORD = ROOT / "tests" / "conformance" / "ptxas.txt"
_LINE = re.compile(r"line (\d+); (?:error|fatal)\s*: (.*)")


def find_ptxas() -> Path:
    """Returns the path of ptxas from the packages of the extra ``long``."""
    spec = find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        for found in sorted(Path(folder).glob("*/bin/ptxas")):
            return found
    sys.exit("no ptxas: pip install '.[long]', or pass --ptxas")


class Judge:
    """Runs ptxas on many instructions at a time."""

    def __init__(self, ptxas: Path) -> None:
        self.ptxas = ptxas

    def refused(self, draws: Sequence[Draw], target: str) -> dict[int, str]:
        """Returns the reason of ptxas for each instruction that it refuses, by index.

        A syntax error hides all errors after it, and a semantic error those of later compiler
        phases; so refused instructions are removed and ptxas runs again, until it reports no error.
        """
        found: dict[int, str] = {}
        while True:
            rest = [i for i in range(len(draws)) if i not in found]
            said = self._once([draws[i].text for i in rest], target)
            if not said:
                return found
            if len(rest) == 1:
                return found | {rest[0]: next(iter(said.values()))}
            sure = {
                rest[k]: why
                for k, why in said.items()
                if k in range(len(rest))
                # An error of syntax may be laid to a neighbour: the one named is asked alone.
                and ("Parsing error" not in why or self._once([draws[rest[k]].text], target))
            }
            if not sure:  # nobody is named rightly: halve
                for part in (rest[: len(rest) // 2], rest[len(rest) // 2 :]):
                    inner = self.refused([draws[i] for i in part], target)
                    found |= {part[k]: why for k, why in inner.items()}
                return found
            found |= sure

    def _once(self, texts: Sequence[str], target: str) -> dict[int, str]:
        head = HEAD.format(target=target)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "draws.ptx"
            path.write_text(head + "".join(kernel(i, text) for i, text in enumerate(texts)))
            done = subprocess.run(
                [self.ptxas, f"-arch={target}", "-O0", str(path), "-o", str(path) + ".cubin"],
                capture_output=True, text=True, check=False, timeout=600,
            )  # fmt: skip
        if not done.returncode:
            return {}
        first = head.count("\n") + 1
        said: dict[int, str] = {}
        found = _LINE.findall(done.stderr)
        # Behind an error of syntax the rest is misread, too.
        found = [f for f in found if "Parsing error" in f[1]] or found
        # Modifiers of a refused instruction turn up in messages about a mov that nobody wrote.
        own = [f for f in found if "for instruction 'mov'" not in f[1]]
        for line, why in own or found:
            said.setdefault((int(line) - first) // LINES, why)
        return said or {-1: done.stderr.strip()[:200] or f"status {done.returncode}"}


def main() -> int:
    """Draws instructions, compares both verdicts, and prints findings; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ptxas", type=Path)
    parser.add_argument("--outside", action="store_true", help="list what only ptxas takes")
    parser.add_argument("--record", type=int, metavar="N", help="write N verdicts for the tests")
    options = parser.parse_args()
    judge = Judge(options.ptxas or find_ptxas())
    drawer = Drawer(options.seed)
    counts: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    recorded: list[str] = []
    left = options.record or options.draws
    while left > 0:
        drawn = [drawer.draw() for _ in range(min(left, BATCH * len(TARGETS)))]
        left -= len(drawn)
        device = CpuDevice()
        taken: list[Draw] = []
        refused: list[Draw] = []
        for draw in drawn:
            try:
                why = load(draw, device)
                if why is None:
                    taken.append(draw)
                    fault = execute(draw, device)
                    counts["runs" if fault is None else f"ends in {fault.partition(':')[0]}"] += 1
                else:
                    refused.append(draw)
                    counts[f"refused: {why.partition(':')[0]}"] += 1
            except Exception as error:
                counts["RAISES"] += 1
                print(f"RAISES {draw.target} {draw.text}: {type(error).__name__}: {error}")
        both = drawn if options.record or options.outside else taken
        for target in TARGETS:
            here = [d for d in both if d.target == target]
            wrong = judge.refused(here, target)
            for i, draw in enumerate(here):
                recorded.append(f"{target}\t{'refused' if i in wrong else 'taken'}\t{draw.text}")
                if i in wrong and draw in taken:
                    counts["TAKEN WRONGLY"] += 1
                    print(f"TAKEN {target} {draw.text}: {wrong[i]}", flush=True)
                elif i not in wrong and draw in refused:
                    counts["outside the subset"] += 1
                    opcode = draw.text.split()[0].partition(".")[0].rstrip(";")
                    shown[opcode] += 1
                    if options.outside and shown[opcode] <= 3:
                        print(f"OUTSIDE {target} {draw.text}: {load(draw, device)}", flush=True)
    if options.record:
        RECORD.write_text("".join(f"{line}\n" for line in sorted(set(recorded))))
    for what, count in sorted(counts.items()):
        print(f"{count:8d} {what}")
    return min(counts["RAISES"] + counts["TAKEN WRONGLY"], 1)


if __name__ == "__main__":
    sys.exit(main())
