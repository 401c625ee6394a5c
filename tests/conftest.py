"""GPU tests, and long ones, are left out where they cannot or need not run: how many is said."""

from __future__ import annotations

import functools
import gc
import os
from typing import Any

import pytest
from hypothesis import settings

# Threads of BLAS and of PyTorch would wait for each other beside as many processes, and nothing
# here is large. NumPy and PyTorch, which read this when they are loaded, are not yet.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

# The same examples in every run: a failure is one that anybody can repeat.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

LEFT_OUT = pytest.StashKey[dict[str, int]]()
"""Of each mark how many tests do not run here."""


@functools.cache
def why_no_gpu() -> str:
    """Why tests marked ``gpu`` cannot run here; empty if they can."""
    from ptxgen.errors import DeviceError
    from ptxgen.runtime import get_device

    try:
        get_device("cuda")
    except DeviceError as error:
        return str(error).partition(";")[0]
    return ""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-gpu", action="store_true", help="fail, rather than skip, without a GPU"
    )
    parser.addoption("--long", action="store_true", help="run the tests marked long, too")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes long; run with --long")
    config.addinivalue_line("markers", "xdist_group: what one process runs (of pytest-xdist)")
    if config.getoption("--require-gpu") and (reason := why_no_gpu()):
        raise pytest.UsageError(f"--require-gpu: {reason}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # In a file, the tests of one kernel come one after the other, in one process (with --dist
    # loadgroup): it is decoded once, and let go. So do the cases of any other test, which share
    # what is made once; and xdist takes long with thousands of groups. A group that a test names
    # stays: of two names xdist makes one.
    files = {path: number for number, path in enumerate(dict.fromkeys(i.path for i in items))}

    def kernel(item: pytest.Item) -> str:
        callspec = getattr(item, "callspec", None)
        return str(callspec.params.get("name", "")) if callspec else ""

    items.sort(key=lambda item: (files[item.path], kernel(item)))
    for item in items:
        of = kernel(item) or getattr(item, "originalname", item.name)
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(f"{item.path.name} {of}"))
    # Thousands of tests that are skipped one by one take longer than many that run.
    marks = [] if config.getoption("--long") else ["long"]
    if any(item.get_closest_marker("gpu") for item in items) and why_no_gpu():
        marks.insert(0, "gpu")  # first, so that this reason is the one that is told
    left: dict[str, list[pytest.Item]] = {mark: [] for mark in marks}
    kept = []
    for item in items:
        mark = next((mark for mark in marks if item.get_closest_marker(mark)), None)
        (kept if mark is None else left[mark]).append(item)
    config.hook.pytest_deselected(items=[item for those in left.values() for item in those])
    items[:] = kept
    config.stash[LEFT_OUT] = {mark: len(those) for mark, those in left.items()}
    if hasattr(config, "workeroutput"):  # of pytest-xdist
        config.workeroutput["left out"] = config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Each of pytest-xdist's processes has collected the same; one that crashed says nothing."""
    if hasattr(node, "workeroutput"):
        node.config.stash[LEFT_OUT] = node.workeroutput.get("left out", {})


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is there now, thousands of tests, stays to the end: no need to go through it again.

    Decoded kernels are a great many small objects, which would make the collector look often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """So does what a file leaves behind."""
    if nextitem is not None and nextitem.path != item.path:
        gc.freeze()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    told = {
        "gpu": f"{why_no_gpu()} (make test-gpu runs them where there is a GPU)",
        "long": "make test-all runs them",
    }
    for mark, count in config.stash.get(LEFT_OUT, {}).items():
        if count:
            name = mark.upper() if mark == "gpu" else mark
            terminalreporter.write_line(
                f"{count} {name} tests were left out: {told[mark]}", yellow=True
            )
