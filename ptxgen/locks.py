"""Locks that are free in a forked child process.

``fork`` copies the locks of a process as they are, but only the thread that called it. A lock that
another thread held stays locked in the child for ever. So every lock of the package is a
:class:`Lock`: one hook, set when the first is created, renews them all in the child.

Guarded data must be usable wherever a fork interrupted the lock's holder. So each critical section
of the package overwrites what it needs, or changes a container in one step.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref

_locks: weakref.WeakSet[Lock] = weakref.WeakSet()
_hooked = False


class Lock:
    """A reentrant mutex, as a context manager.

    In a forked child it is free, unless the thread that forked held it: that thread continues in
    the child, and releases it as usual.
    """

    __slots__ = ("__weakref__", "_depth", "_lock", "_owner")

    def __init__(self) -> None:
        self._renew()
        _register(self)

    def __enter__(self) -> None:
        self._lock.acquire()
        self._owner = threading.get_ident()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = 0
        self._lock.release()

    def _renew(self) -> None:
        self._lock = threading.RLock()
        self._owner = self._depth = 0

    def forked(self) -> None:
        """Frees the lock in a forked child, unless its only thread holds it."""
        if self._owner != threading.get_ident():
            self._renew()


def _register(lock: Lock) -> None:
    global _hooked
    _locks.add(lock)
    if not _hooked and hasattr(os, "register_at_fork"):
        _hooked = True
        os.register_at_fork(after_in_child=_renew_in_child)


def _renew_in_child() -> None:
    for lock in list(_locks):
        lock.forked()
    if sys.version_info < (3, 12):
        for each in cached_properties():
            vars(each)["lock"] = threading.RLock()


def cached_properties() -> list[functools.cached_property[object]]:
    """Returns the cached properties of all classes of the package, for which a forked child makes
    new locks: in Python 3.11 each has a lock that all instances share. Python 3.12 removed it.
    """
    modules = [m for name, m in list(sys.modules.items()) if name.split(".")[0] == __package__]
    classes = {x for m in modules for x in list(vars(m).values()) if isinstance(x, type)}
    own = (x for kind in classes for x in list(vars(kind).values()))
    return [x for x in own if isinstance(x, functools.cached_property)]
