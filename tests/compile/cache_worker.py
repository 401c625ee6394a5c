"""A process that builds one fake kernel through the cache; run by test_cache.py.

    python cache_worker.py ROOT LOG MODE

It says "ready", waits for a line on stdin, then calls ``get_or_build``. Every build adds a
line to LOG. MODE "kill" dies by SIGKILL between writing the entry and renaming it. At the end
it prints the image's sha256.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time
from pathlib import Path

from ptxgen.build import cache

KEY = cache.Key("a kernel", ("--an-option",), "sm_90a", "13.0.88", "cubin")


def build(log: Path) -> cache.Entry:
    """A build that leaves a trace and takes long enough for others to arrive."""
    with open(log, "ab", buffering=0) as file:
        file.write(b"built\n")
    time.sleep(0.3)
    # Different bytes from every process: identical results can only come from one build.
    return cache.Entry(b"image by %d" % os.getpid() * 1000, {"log": "", "resources": {}})


def die(*_: object) -> None:
    """Stands in for os.replace."""
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """See the module's docstring."""
    root, log, mode = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    if mode == "kill":
        os.replace = die  # type: ignore[assignment]
    print("ready", flush=True)
    sys.stdin.readline()
    entry, _ = cache.Cache(root).get_or_build(KEY, lambda: build(log))
    print(hashlib.sha256(entry.image).hexdigest())


if __name__ == "__main__":
    main()
