"""The corpus: every case of every family."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable

from conformance import (
    async_cases,
    matrix_cases,
    memory_cases,
    scalar_cases,
    warp_cases,
    wgmma_cases,
)
from conformance.case import Case

MODULES = (scalar_cases, memory_cases, warp_cases, matrix_cases, async_cases, wgmma_cases)


BEYOND = "beyond"
"""The family of legal PTX outside the interpreter's subset."""


def corpus() -> dict[str, Case]:
    """All cases that are recorded and compared, by name, in a fixed order."""
    return {name: case for name, case in everything().items() if case.family != BEYOND}


def beyond() -> dict[str, Case]:
    """Legal PTX that the interpreter refuses, by name."""
    return {name: case for name, case in everything().items() if case.family == BEYOND}


@functools.cache
def everything() -> dict[str, Case]:
    """All cases by name, in a fixed order."""
    found: dict[str, Case] = {}
    for module in MODULES:
        for case in module.cases():
            if case.name in found:
                raise ValueError(f"two cases are called {case.name}")
            found[case.name] = case
    return found


def families() -> dict[str, list[Case]]:
    """The cases of each family."""
    found: dict[str, list[Case]] = {}
    for case in corpus().values():
        found.setdefault(case.family, []).append(case)
    return found


def digest(cases: Iterable[Case]) -> str:
    """Names the corpus: kernels, operands and shapes of all cases."""
    text = "\n".join(f"{case.name} {case.digest}" for case in cases)
    return hashlib.sha256(text.encode()).hexdigest()
