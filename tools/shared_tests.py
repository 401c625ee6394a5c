"""Puts the folders of tests/ on ``sys.path``, so that tools can import the tests' cases."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"

sys.path += [str(path) for path in (TESTS, *sorted(TESTS.iterdir())) if path.is_dir()]
