"""Forked children: they compute, whatever other threads of the parent were doing."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from bits import difference

import ptxgen
from ptxgen import locks

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
    # Python 3.12 warns of every fork of a process with threads, which is what is tested.
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
PATIENCE_S = 30
"""A child that takes longer hangs, and is ended by an alarm."""


def forked(work) -> int:
    """The exit code of a child that does ``work``: 0 where that is true; negative for a signal."""
    child = os.fork()
    if not child:
        try:
            signal.alarm(PATIENCE_S)
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextlib.contextmanager
def beside(work):
    """Does ``work`` again and again in another thread."""
    done = threading.Event()

    def again() -> None:
        while not done.is_set():
            work()

    context = contextvars.copy_context()  # the device that this thread uses
    thread = threading.Thread(target=context.run, args=(again,))
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def until(holds) -> None:
    """Waits for what another thread does."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, "no thread came there"
        time.sleep(0)


def children_beside_a_call(count: int) -> None:
    x, w = np.random.default_rng(0).standard_normal((2, 32, 32)).astype("f4")
    with ptxgen.use_device("cpu"):
        captured = ptxgen.capture(lambda x: ptxgen.softmax(ptxgen.linear(x, w, layout="kn")), x)
        expected = captured(x)

        def right() -> bool:
            return not difference(captured(x), expected)

        with beside(lambda: captured(x)):
            for number in range(count):
                until(lambda: captured._turn.lock._owner)
                assert forked(right) == 0, f"child {number}"


def test_a_child_replays_what_another_thread_was_inside_of() -> None:
    children_beside_a_call(6)


@pytest.mark.long
def test_many_children_replay_what_another_thread_was_inside_of() -> None:
    children_beside_a_call(100)


def test_a_child_computes_though_a_thread_held_the_locks() -> None:
    x, w = np.ones((3, 8), np.float32), np.ones((8, 4), np.float32)
    with ptxgen.use_device("cpu") as device:
        expected = ptxgen.linear(x, w, layout="kn")
        inside, done = threading.Event(), threading.Event()

        def hold() -> None:
            with contextlib.ExitStack() as held:
                for lock in list(locks._locks):
                    held.enter_context(lock)
                inside.set()
                done.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        inside.wait()
        try:
            assert device._lock._owner == thread.ident
            assert forked(lambda: not difference(ptxgen.linear(x, w, layout="kn"), expected)) == 0
        finally:
            done.set()
            thread.join()


def test_the_thread_that_forks_keeps_its_locks() -> None:
    own, other = locks.Lock(), locks.Lock()

    def free(lock) -> bool:
        taken = []

        def take() -> None:
            with lock:
                taken.append(True)

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        thread.join(0.2)
        return bool(taken)

    def child() -> bool:
        inside = not free(own) and free(other)
        own.__exit__()
        return inside and free(own)

    with own, own:
        own.__exit__()
        assert not free(own) and forked(child) == 0
        own.__enter__()
    assert free(own)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="cached properties have no locks")
def test_cached_properties_are_renewed() -> None:
    from ptxgen.spec.route import Route

    names = [n for n, x in vars(Route).items() if isinstance(x, functools.cached_property)]
    assert names and {vars(Route)[n] for n in names} <= set(locks.cached_properties())
    cached = vars(Route)[names[0]]
    thread = threading.Thread(target=cached.lock.acquire)
    thread.start()
    thread.join()
    try:
        assert forked(lambda: cached.lock.acquire(blocking=False)) == 0
    finally:
        cached.lock = threading.RLock()


def test_all_locks_of_the_package_are_renewed() -> None:
    root = Path(ptxgen.__file__).parent
    others = re.compile(r"\b(R?Lock|Condition|Semaphore|BoundedSemaphore|Barrier)\(")
    for path in root.rglob("*.py"):
        text = path.read_text()
        if path.name != "locks.py" and others.search(text):
            assert set(others.findall(text)) == {"Lock"}, path
            assert "from ptxgen.locks import Lock" in text, path
            assert not re.search(r"\bthreading\b(?!\.(get_ident|local))", text), path
