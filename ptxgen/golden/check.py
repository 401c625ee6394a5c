"""Checks of goldens: completeness, freshness, and the rules of contracts and specs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ptxgen.build.compile import TOOLCHAIN
from ptxgen.golden.diff import difference
from ptxgen.golden.fresh import expected, read_by_people, textless
from ptxgen.golden.ptx import entries, forbidden
from ptxgen.golden.store import ACCEPTED, Goldens, Key, Record
from ptxgen.spec import ARCHITECTURES, KernelSpec


@dataclass(frozen=True, order=True)
class Finding:
    """One fault of the goldens.

    ``kind``: "missing", "orphan", "stale", "spill" (local memory without an accepted reason),
    "unneeded" (an accepted reason without local memory), "forbidden" (an instruction, or a name)
    or "lacks" (an instruction that its spec expects).
    """

    kernel: str
    arch: str
    kind: str
    detail: str = ""

    def __str__(self) -> str:
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.kind:<9} {self.arch:<7} {self.kernel}{detail}"


def check(stored: Goldens, fresh: Goldens, specs: Collection[KernelSpec]) -> list[Finding]:
    """Returns all faults of the ``stored`` goldens, sorted; empty if there are none.

    ``specs``: all kernels; ``fresh``: goldens built now, of kernels whose inputs have changed and
    perhaps of others. Only kernels in ``fresh`` can be found stale.
    """
    return sorted(
        {
            *_present(stored, specs),
            *_stale(stored, fresh, specs),
            *rules(stored, specs),
            *rules(fresh, specs),
            *_local(stored),
        }
    )


def _present(stored: Goldens, specs: Collection[KernelSpec]) -> Iterator[Finding]:
    """Yields faults for records and texts that are missing, or that no spec needs (orphans), and
    for records of another NVRTC version than the pinned one.
    """
    wanted = expected(specs)
    for arch, kernel in wanted - stored.records.keys():
        yield Finding(kernel, arch, "missing", "the spec has no record")
    for arch, kernel in stored.records.keys() - wanted:
        yield Finding(kernel, arch, "orphan", "no spec makes this record")
    shown = read_by_people(specs)
    for kernel in shown - stored.texts.keys():
        yield Finding(kernel, "text", "missing", "reviewers read this kernel's PTX")
    for kernel in stored.texts.keys() - shown:
        yield Finding(kernel, "text", "orphan", "another kernel's text is kept for this kind")
    if stored.nvrtc != TOOLCHAIN.nvrtc and stored.records:
        detail = f"made with NVRTC {stored.nvrtc or '?'}, pinned is {TOOLCHAIN.nvrtc}"
        yield Finding("all kernels", "*", "stale", detail)


def _stale(stored: Goldens, fresh: Goldens, specs: Collection[KernelSpec]) -> Iterator[Finding]:
    for kernel in textless(stored, specs) & stored.texts.keys():
        yield Finding(kernel, "text", "stale", "the text is not the one of its record")
    for (arch, kernel), new in fresh.records.items():
        old = stored.records.get((arch, kernel))
        if old is None:
            continue
        if what := difference(old, new):
            yield Finding(kernel, arch, "stale", what)
        elif old.inputs != new.inputs:
            detail = "the source has changed" if old.inputs else "its line was edited"
            yield Finding(kernel, arch, "stale", f"{detail}, the PTX has not")


def rules(goldens: Goldens, specs: Iterable[KernelSpec]) -> Iterator[Finding]:
    """Yields faults of generated code: forbidden instructions, missing ones that the spec expects,
    and PTX texts that export another kernel than their own.
    """
    known = {spec.name: spec for spec in specs}
    for (arch, kernel), record in goldens.records.items():
        expected = {e.opcode for e in known[kernel].expects} if kernel in known else ()
        for sentence in forbidden(record.mix, expected):
            yield Finding(kernel, arch, "forbidden", sentence)
        if kernel in known:
            yield from _expected(known[kernel], arch, record)
    for kernel, text in goldens.texts.items():
        if entries(text) != [kernel]:
            exports = ", ".join(entries(text)) or "nothing"
            yield Finding(kernel, "text", "forbidden", f"exports {exports}, not its own name")


def _expected(spec: KernelSpec, arch: str, record: Record) -> Iterator[Finding]:
    compute = ARCHITECTURES[arch.rstrip("af")].compute
    for expect in spec.expects:
        if compute < ARCHITECTURES[expect.since].compute:
            continue
        if not record.mix.get(expect.opcode):
            yield Finding(spec.name, arch, "lacks", expect.opcode)
        for opcode, count in record.mix.items():
            if opcode != expect.opcode and any(fnmatchcase(opcode, p) for p in expect.instead_of):
                detail = f"{count} x {opcode}: the spec expects {expect.opcode} in its place"
                yield Finding(spec.name, arch, "forbidden", detail)


def _local(goldens: Goldens) -> Iterator[Finding]:
    """Yields faults: local memory without an accepted reason, reasons without local memory."""
    used = local_memory(goldens)
    for (arch, kernel), what in used.items():
        if not goldens.accepted.get((arch, kernel), "").strip():
            yield Finding(kernel, arch, "spill", f"{what}; {ACCEPTED} has no reason for it")
    for arch, kernel in goldens.accepted.keys() - used.keys():
        detail = f"{ACCEPTED} accepts local memory that the kernel does not use"
        yield Finding(kernel, arch, "unneeded", detail)


def local_memory(goldens: Goldens) -> dict[Key, str]:
    """Describes the local memory (spills, stack, arrays) of each kernel that uses any, by
    architecture and kernel.
    """
    used = {}
    for key, record in goldens.records.items():
        use = record.usage
        if use.spill_stores or use.spill_loads or use.stack or record.local:
            used[key] = (
                f"{use.spill_stores} bytes of spill stores, {use.spill_loads} of spill loads, "
                f"{use.stack} of stack, {record.local} of arrays"
            )
    return used
