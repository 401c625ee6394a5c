"""Random calls of every public operation, on the CPU device if there is no GPU.

    python tools/fuzz_calls.py --valid 2000 --bad 5000 --seed 1

A valid call must return its oracle's bits, which must be within the stated bound of a float64
formula. A bad call must raise an error of ptxgen that names the argument. Prints each failure with
the arguments that reproduce it; exit status 1 if there was any.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import signal
import sys
import time

import shared_tests  # noqa: F401

SECONDS = 120
"""Seconds after which a call is considered to hang."""


def run(work: tuple[str, str, int]) -> tuple[str, str, int, str, str]:
    """Runs one random call (kind, operation, seed); returns these, its text, and its fault.

    The fault is an empty text if there is none.
    """
    import calls

    kind, name, seed = work
    call = getattr(calls, kind)(name, seed)

    def late(*_: object) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        wrong = calls.judge(call)
        if kind == "bad" and not wrong:
            wrong = calls.traced(call)
    except Exception as error:
        wrong = f"while it was judged: {type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    return kind, name, seed, str(call), wrong


def main() -> int:
    """Runs the random calls; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--valid", type=int, default=2000, help="how many valid calls")
    parser.add_argument("--bad", type=int, default=5000, help="how many bad ones")
    parser.add_argument("--seed", type=int, default=1, help="where the draw begins")
    parser.add_argument("--match", default="", help="only operations whose name has this")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--one", nargs=3, metavar=("KIND", "NAME", "SEED"), help="one call alone")
    parser.add_argument("--show", type=int, default=40, help="how many failures are printed")
    given = parser.parse_args()
    import calls

    if given.one:
        kind, name, seed = given.one
        *_, text, found = run((kind, name, int(seed)))
        print(f"{text}\n    {found or 'right'}")
        return 1 if found else 0
    names = [n for n in calls.operations() if given.match in n]
    work = [
        (kind, names[i % len(names)], given.seed * 1_000_003 + i)
        for kind, count in (("valid", given.valid), ("bad", given.bad))
        for i in range(count)
    ]
    begun, wrong = time.monotonic(), []
    counts: collections.Counter[str] = collections.Counter()
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        for kind, name, seed, text, found in pool.imap_unordered(run, work, chunksize=20):
            counts[kind] += 1
            if found:
                wrong.append((kind, name, seed, text, found))
    for kind, name, seed, text, found in sorted(wrong)[: given.show]:
        print(f"{kind} {name} {seed}: {text}\n    {found}")
    kinds = collections.Counter(kind for kind, *_ in wrong)
    print(
        f"seed {given.seed}: {counts['valid']} valid calls, {kinds['valid']} wrong; "
        f"{counts['bad']} bad ones, {kinds['bad']} wrong; {time.monotonic() - begun:.0f} s"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
