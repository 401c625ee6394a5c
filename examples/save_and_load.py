"""Ahead of time: a layer is captured, drawn and saved; another process loads and runs it.

python examples/save_and_load.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import ptxgen
from ptxgen import functions as f
from ptxgen import graph

ROWS, WIDTH = 16, 64
LOADS = """
import sys, numpy, ptxgen
folder = sys.argv[1]
layer = ptxgen.load(f"{folder}/layer.ptxgen")
numpy.save(f"{folder}/y.npy", layer(numpy.load(f"{folder}/x.npy")))
there = {"cuda.bindings.nvrtc", "jinja2"} & {*sys.modules}
print("  compilers and templates that it imported:", ", ".join(there) or "none")
"""


def main() -> int:
    """Saves a layer, and runs it in another process; returns the exit status."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, WIDTH), dtype=np.float32)
    w = rng.standard_normal((WIDTH, WIDTH), dtype=np.float32)
    gain = rng.standard_normal(WIDTH, dtype=np.float32)

    def layer(x):
        y = ptxgen.linear(ptxgen.rms_norm(x, gain), w, activation="silu", layout="kn")
        return ptxgen.softmax(f.mul(f.add(x, y), 0.5))

    captured = ptxgen.capture(layer, x, passes=graph.fewer)
    print(captured.program)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        captured.program.draw(folder / "layer.svg")
        captured.save(folder / "layer.ptxgen")
        print()
        for file in ("layer.svg", "layer.ptxgen"):
            print(f"{file}: {(folder / file).stat().st_size:,} bytes")
        np.save(folder / "x.npy", x)
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", LOADS, str(folder)], check=True)
        print(f"  it took {time.perf_counter() - begin:.1f} s, Python's start included")
        found = np.load(folder / "y.npy")
    same = (found.view(np.uint32) == layer(x).view(np.uint32)).all()
    print("loaded elsewhere: same bits" if same else "loaded elsewhere: other bits")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
