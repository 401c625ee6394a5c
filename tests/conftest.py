"""Leaves out tests that cannot or need not run here (GPU, PyTorch, long), and says how many."""

from __future__ import annotations

import dis
import functools
import gc
import os
import re
import sys
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
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

# Cases lie beside the tests of their family, and others import them.
sys.path += [str(path) for path in sorted(Path(__file__).parent.iterdir()) if path.is_dir()]

LEFT_OUT = pytest.StashKey[dict[str, int]]()
"""Number of tests that do not run here, by mark."""
ASKS_FOR_TORCH = frozenset(("torch", "ptxgen.torch", "transformers"))
"""Modules whose import makes a test one that needs PyTorch."""
SKIPPED_FILES: set[str] = set()
"""Files that pytest did not import because PyTorch is missing."""


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


# -- PyTorch ----------------------------------------------------------------------------------
def needs_torch(item: pytest.Item) -> bool:
    """Whether a test, one of its fixtures, or the head of its file asks for PyTorch."""
    module = getattr(item, "module", None)
    if isinstance(getattr(module, "torch", None), ModuleType):
        return True
    if any("PyTorch" in str(mark.kwargs.get("reason", "")) for mark in item.iter_markers()):
        return True
    fixtures = getattr(item, "_fixtureinfo", None)
    definitions = fixtures.name2fixturedefs.values() if fixtures else ()
    functions = [getattr(item, "function", None), *(d[-1].func for d in definitions)]
    return any(_asks_for_torch(f) for f in functions if isinstance(f, FunctionType))


@functools.cache
def _asks_for_torch(function: FunctionType) -> bool:
    """Whether a function, or one of its file that it calls, imports or asks for PyTorch."""
    seen, waiting = set(), [function]
    while waiting:
        found = waiting.pop()
        if found in seen or found.__module__ != function.__module__:
            continue
        seen.add(found)
        for code in _codes(found.__code__):
            words = ASKS_FOR_TORCH.intersection(code.co_names)
            if words:  # names of attributes and variables, too: imports are what matters
                words &= {i.argval for i in dis.get_instructions(code) if i.opname == "IMPORT_NAME"}
            if {"importorskip", "find_spec"}.intersection(code.co_names):
                words |= ASKS_FOR_TORCH.intersection(c for c in code.co_consts if type(c) is str)
            if words:
                return True
            called = (found.__globals__.get(name) for name in code.co_names)
            waiting += [f for f in called if isinstance(f, FunctionType)]
    return False


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Notes a file whose head skips it. (GPU tests are counted as such.)"""
    if report.skipped and "/gpu/" not in report.nodeid and find_spec("torch") is None:
        SKIPPED_FILES.add(report.nodeid)


def _functions_in_skipped_files(root: Path) -> int:
    """Number of test functions that were not collected; each may have several cases."""
    texts = ((root / name).read_text(encoding="utf-8") for name in SKIPPED_FILES)
    return sum(len(re.findall(r"^def test_", text, re.MULTILINE)) for text in texts)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-gpu", action="store_true", help="fail, rather than skip, without a GPU"
    )
    parser.addoption(
        "--require-torch", action="store_true", help="fail, rather than skip, without PyTorch"
    )
    parser.addoption("--long", action="store_true", help="run the tests marked long, too")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes long; run with --long")
    config.addinivalue_line("markers", "torch: asks for PyTorch (found by conftest.py)")
    config.addinivalue_line("markers", "xdist_group: what one process runs (of pytest-xdist)")
    if config.getoption("--require-gpu") and (reason := why_no_gpu()):
        raise pytest.UsageError(f"--require-gpu: {reason}")
    if config.getoption("--require-torch") and find_spec("torch") is None:
        raise pytest.UsageError("--require-torch: PyTorch is not installed")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collects without the garbage collector: nearly all of what is made then stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


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
        if needs_torch(item):
            item.add_marker(pytest.mark.torch)
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
    config.stash[LEFT_OUT]["torch"] = _functions_in_skipped_files(config.rootpath)
    if hasattr(config, "workeroutput"):  # of pytest-xdist
        config.workeroutput["left out"] = config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Keeps what a pytest-xdist process left out: all collect the same, but one that crashed says
    nothing.
    """
    if hasattr(node, "workeroutput"):
        node.config.stash[LEFT_OUT] = node.workeroutput.get("left out", {})


def pytest_collection_finish(session: pytest.Session) -> None:
    """Freezes the garbage collector's objects: thousands of collected tests live until the end.

    Decoded kernels are a great many small objects, which would make the collector look often.
    """
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, Any, Any]:
    """Freezes objects that a file of tests leaves behind; long tests leave more garbage, which is
    collected first.
    """
    done = yield
    if nextitem is not None and nextitem.path != item.path:
        if item.config.getoption("--long"):
            gc.collect()
        gc.freeze()
    return done


def pytest_unconfigure() -> None:
    """Freezes all objects, since pytest then collects garbage several times."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fails a test that skips itself for want of PyTorch, and that ``-m torch`` would not run."""
    report = yield
    if report.skipped and "torch" in str(report.longrepr).lower() and not needs_torch(item):
        report.outcome, report.longrepr = "failed", "needs_torch (conftest.py) does not see it"
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    left = config.stash.get(LEFT_OUT, {})
    if find_spec("torch") is None:
        skipped = terminalreporter.getreports("skipped")
        left["torch"] = left.get("torch", 0) + sum(
            "torch" in getattr(report, "keywords", ()) for report in skipped
        )
    told = {
        "gpu": f"{why_no_gpu()} (make test-gpu runs them where there is a GPU)",
        "torch": "PyTorch is not installed (make test-torch runs them)",
        "long": "make test-all runs them",
    }
    for mark, count in left.items():
        if count:
            name = {"gpu": "GPU", "torch": "PyTorch"}.get(mark, mark)
            terminalreporter.write_line(
                f"{count} {name} tests were left out: {told[mark]}", yellow=True
            )
