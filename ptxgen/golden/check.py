"""What must hold of goldens: they are all there, fresh, and free of what contracts forbid."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ptxgen.build.compile import TOOLCHAIN
from ptxgen.golden.diff import usage_change
from ptxgen.golden.fresh import expected
from ptxgen.golden.ptx import entries, forbidden, local_depot
from ptxgen.golden.store import ACCEPTED, Goldens, Key
from ptxgen.spec import KernelSpec


@dataclass(frozen=True, order=True)
class Problem:
    """One thing wrong with the goldens.

    ``kind``: "missing", "orphan", "stale", "spill" (local memory without an accepted
    reason), "unneeded" (an accepted reason without local memory) or "forbidden".
    """

    kernel: str
    arch: str
    kind: str
    detail: str = ""

    def __str__(self) -> str:
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.kind:<9} {self.arch:<11} {self.kernel}{detail}"


def check(stored: Goldens, fresh: Goldens, specs: Collection[KernelSpec]) -> list[Problem]:
    """All problems of the ``stored`` goldens, sorted; none if they are as they must be.

    ``specs`` is every kernel there is; ``fresh`` may have been built from some of them only,
    and only those can be found stale.
    """
    problems = []
    wanted, present = expected(specs), stored.ptx.keys() | stored.usage.keys()
    for arch, kernel in wanted - present:
        problems.append(Problem(kernel, arch, "missing", "the spec has no golden"))
    for arch, kernel in present - wanted:
        problems.append(Problem(kernel, arch, "orphan", "no spec makes this golden"))
    for (arch, kernel), text in fresh.ptx.items():
        if stored.ptx.get((arch, kernel), text) != text:
            problems.append(Problem(kernel, arch, "stale", "its PTX has changed"))
    for (arch, kernel), use in fresh.usage.items():
        old = stored.usage.get((arch, kernel), use)
        if old != use:
            problems.append(Problem(kernel, arch, "stale", usage_change(old, use)))
    if stored.nvrtc != TOOLCHAIN.nvrtc and present:
        detail = f"made with NVRTC {stored.nvrtc or '?'}, pinned is {TOOLCHAIN.nvrtc}"
        problems.append(Problem("all kernels", "*", "stale", detail))
    return sorted([*problems, *rules(stored)])


def rules(goldens: Goldens) -> Iterable[Problem]:
    """What no fresh build is needed for: forbidden instructions and local memory."""
    for (target, kernel), text in sorted(goldens.ptx.items()):
        for sentence in forbidden(text):
            yield Problem(kernel, target, "forbidden", sentence)
        if entries(text) != [kernel]:
            exports = ", ".join(entries(text)) or "nothing"
            yield Problem(kernel, target, "forbidden", f"exports {exports}, not its own name")
    used = local_memory(goldens)
    for (arch, kernel), what in sorted(used.items()):
        if not goldens.accepted.get((arch, kernel), "").strip():
            detail = f"{what}; {ACCEPTED} has no reason for it"
            yield Problem(kernel, arch, "spill", detail)
    for arch, kernel in sorted(goldens.accepted.keys() - used.keys()):
        detail = f"{ACCEPTED} accepts local memory that the kernel does not use"
        yield Problem(kernel, arch, "unneeded", detail)


def local_memory(goldens: Goldens) -> dict[Key, str]:
    """Every kernel that uses local memory (spills, a stack, a depot), and how much."""
    used = {}
    for key, text in goldens.ptx.items():
        if depot := local_depot(text):
            used[key] = f"{depot} bytes of local arrays"
    for key, use in goldens.usage.items():
        if use.spill_stores or use.spill_loads or use.stack:
            used[key] = (
                f"{use.spill_stores} bytes of spill stores, {use.spill_loads} of spill loads, "
                f"{use.stack} of stack"
            )
    return used
