"""The CPU device's memory, beside what kernels do with it."""

from __future__ import annotations

import threading

from ptxgen.interp import GlobalMemory


def test_memory_may_be_freed_in_the_middle_of_an_allocation() -> None:
    """The garbage collector runs when it likes, also where the lock is held."""
    memory = GlobalMemory()
    first, second = memory.alloc(16), memory.alloc(16)

    def collected() -> None:
        with memory._lock:
            memory.free(first.base)

    thread = threading.Thread(target=collected, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert memory.find(first.base) is None and memory.find(second.base) is second
