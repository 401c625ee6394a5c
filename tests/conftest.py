"""GPU tests are skipped, visibly, on machines that cannot run them."""

from __future__ import annotations

import functools
import gc
import os

import pytest
from hypothesis import settings

# Threads of BLAS and of PyTorch would wait for each other beside as many processes, and nothing
# here is large. NumPy and PyTorch, which read this when they are loaded, are not yet.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

# The same examples in every run: a failure is one that anybody can repeat.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


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
    if not config.getoption("--long"):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="long: --long runs it"))
    gpu = [item for item in items if item.get_closest_marker("gpu")]
    if gpu and (reason := why_no_gpu()):
        for item in gpu:
            # First, so that this reason is the one that is told.
            item.add_marker(pytest.mark.skip(reason=f"gpu: {reason}"), append=False)


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    def skipped(mark: str) -> int:
        reports = terminalreporter.stats.get("skipped", ())
        return sum(mark in getattr(report, "keywords", ()) for report in reports)

    if gpu := skipped("gpu"):
        terminalreporter.write_line(
            f"{gpu} GPU tests were skipped: {why_no_gpu() or 'see -rs'} "
            "(make test-gpu runs them where there is a GPU)",
            yellow=True,
        )
    if long := skipped("long"):
        terminalreporter.write_line(
            f"{long} long tests were skipped (make test-all runs them)", yellow=True
        )
