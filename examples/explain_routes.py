"""Explains which kernel serves a problem, and why; needs no GPU.

python examples/explain_routes.py [M N K]
"""

from __future__ import annotations

import sys

import ptxgen


def main(argv: list[str]) -> int:
    """Explains one problem in full, then how the choice moves with M."""
    m, n, k = (int(a) for a in argv) if len(argv) == 3 else (16, 4096, 4096)
    print(ptxgen.explain("linear", m, n, k, layout="kn", arch="sm_90", sms=132))
    print()
    print(f"linear (kn), N = {n}, K = {k}: the kernel by M, on an H200")
    last = ""
    for rows in (*range(1, 513), *range(640, 8193, 128)):
        found = ptxgen.explain("linear", rows, n, k)
        name = " + ".join(found.winner.kernels)
        if name != last:
            print(f"  from M = {rows:5}: {name} ({found.winner.reason})")
            last = name
    print("Whichever runs, a row's bits are the same: the contract fixes them, not the kernel.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
