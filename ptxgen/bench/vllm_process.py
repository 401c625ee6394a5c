"""vLLM in a process of its own, as the benchmarks start it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ptxgen.errors import PtxgenError

_OWN = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_LOGGING_LEVEL": "WARNING"}
"""Environment variables of all processes, which the caller's environment may replace."""
_CALL = "import sys; from ptxgen.bench import {0}; {0}.serve(sys.argv[1])"


def run(
    module: str,
    asked: Mapping[str, Any],
    modes: Mapping[str, str],
    about: str,
    **usual: str,
) -> Any:
    """Calls ``serve`` of a module of this package in a new process, with ``asked`` as JSON; returns
    the value of the JSON that it prints last.

    ``modes``: environment variables. ``usual``: those that the caller's environment may replace.
    Raises PtxgenError, whose text begins with ``about``, if the process fails.
    """
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        [sys.executable, "-c", _CALL.format(module), json.dumps(asked)],
        env={**_OWN, **usual, **os.environ, **modes, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise PtxgenError(f"{about}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])
