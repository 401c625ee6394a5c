"""Planting faults into kernels: what the tests of it share."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace

from bits import difference
from interp_launch import KERNELS, Case, oracle, run

from ptxgen.build.compile import compile_ptx
from ptxgen.build.render import render
from ptxgen.build.targets import portable_target
from ptxgen.errors import KernelFault, MemoryFault, RaceFault
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.tiles import SPECS

BITS = "other bits"
"""Outcome of a planted fault that breaks no rule of the machine but changes the result."""


# -- kernels ----------------------------------------------------------------------------


def smallest(**wanted):
    """The kernel with the smallest tile of those whose spec has these values."""
    found = []
    for name, (_, route) in KERNELS.items():
        spec = route.kernels[0]
        copies = {getattr(spec, "copy_a", ""), getattr(spec, "copy_b", "")}
        rest = {k: v for k, v in wanted.items() if k != "copy"}
        if all(getattr(spec, k, None) == v for k, v in rest.items()) and (
            wanted.get("copy", "") in {"", *copies}
        ):
            found.append((spec.bm * spec.bn, name))
    return min(found)[1]


def inner(spec):
    """A problem of whole tiles."""
    return Case(spec.bm, spec.bn, (spec.stages + 2) * spec.bk, bias=False)


def turns(spec):
    """Problems whose last stage is each of the ring's: one of them is where results go next."""
    return [replace(inner(spec), k=(spec.stages + i) * spec.bk) for i in range(spec.stages)]


def edge(spec):
    """A problem with edges on all sides."""
    rest = spec.bk // 2 + 1
    return Case(spec.bm + 1, spec.bn + 1, (spec.stages + 1) * spec.bk + rest, extra=1)


@functools.cache
def golden(name):
    """The PTX of a kernel, which its golden pins."""
    made = compile_ptx(render(SPECS[name]), name=name, arch=portable_target(SPECS[name]))
    return made.text


@dataclass(frozen=True)
class Place:
    """A line of a kernel."""

    line: int  # from 1
    text: str


class Kernel:
    """A kernel: its text, and what of it runs."""

    def __init__(self, name):
        self.name = name
        self.spec = SPECS[name]
        self.lines = golden(name).split("\n")

    def loop(self, *patterns):
        """The innermost loop with lines of all ``patterns``: the branch back, and to which line."""
        text = "\n".join(self.lines)
        label = {m[1]: text.count("\n", 0, m.start()) + 1
                 for m in re.finditer(r"^(\$L\w+):", text, re.M)}  # fmt: skip
        backward = [
            (place, label[match[1]])
            for place in self.all(r"@%p\d+ bra\s")
            if (match := re.search(r"bra\s+(\$L\w+);", place.text)) and label[match[1]] < place.line
        ]
        found = [
            (place.line - start, place, start)
            for place, start in backward
            if all(any(p in line for line in self.lines[start : place.line]) for p in patterns)
        ]
        _, back, start = min(found, key=lambda one: one[0])
        return back, start

    def all(self, pattern):
        """The lines that begin with ``pattern``."""
        return [
            Place(i, line.strip())
            for i, line in enumerate(self.lines, 1)
            if re.match(pattern, line.strip())
        ]

    def run_by(self, pattern, case):
        """Returns the places that match ``pattern`` on lines that ``case`` executes."""
        seen = executed(self.name, case)
        return [place for place in self.all(pattern) if place.line in seen]

    def with_line(self, place, text):
        """The PTX with another text in a line; the line numbers stay."""
        changed = list(self.lines)
        changed[place.line - 1] = text
        return "\n".join(changed)

    def without(self, *places):
        changed = list(self.lines)
        for place in places:
            changed[place.line - 1] = ""
        return "\n".join(changed)

    def zeros(self, registers, before):
        """Maps each of ``registers`` to the lines before line ``before`` that set it to zero."""
        found = {}  # compilers do it even twice
        for place in self.all(r"mov\.f32\s+%f\d+, (0f00000000|%f\d+);"):
            register = re.search(r"%f\d+", place.text)[0]
            if place.line < before and register in registers:
                found.setdefault(register, []).append(place)
        return found


def in_source(spec, old, new):
    """The kernel's PTX with a change in the CUDA source; None where nothing becomes of it.

    ``old`` is plain text, or a pattern if it has a backslash.
    """
    pattern = old if "\\" in old else re.escape(old)
    source, count = re.subn(pattern, new, render(spec))
    if not count:
        return None
    compiled = compile_ptx(source, name=spec.name, arch=portable_target(spec), cache=None)
    text = compiled.image.rstrip(b"\0").decode()
    return None if text == golden(spec.name) else text


# -- running ----------------------------------------------------------------------------


class Lines:
    """Observes which lines of a kernel's PTX are run."""

    def __init__(self, name):
        self.name, self.seen = name, set()

    def segment(self, wave, block, mask):
        if wave.program.name == self.name:
            self.seen.update(i.line for i in block.instructions)

    def memory(self, *_):
        pass


@functools.cache
def executed(name, case):
    """The lines that ``case`` runs of a kernel, which is right."""
    lines = Lines(name)
    device = CpuDevice(observer=lines)
    device.kernel(name, lambda arch: golden(name).encode(), SPECS[name].shared_bytes)
    got, intact = run(device, name, case)
    assert not difference(got, oracle(case.of(SPECS[name]))) and intact
    return lines.seen


def some(places, count=3):
    """A few of them, from the first to the last."""
    if len(places) <= count:
        return places
    return [places[i * (len(places) - 1) // (count - 1)] for i in range(count)]


def attempt(text, name, case, *, planted=None, device=None, **settings):
    """Runs ``case`` with the changed kernel; returns the fault, BITS for a wrong result, or None.

    ``planted``: the kernel that ``text`` belongs to, if it is not the first of the route.
    """
    assert not (case.exact and case.extra), "what is between rows cannot be poisoned then"
    device = device or CpuDevice(**settings)
    symbol = planted or name
    try:
        device.kernel(symbol, lambda arch: text.encode(), SPECS[symbol].shared_bytes)
        got, intact = run(device, name, case)
    except KernelFault as fault:
        return fault
    return BITS if difference(got, oracle(case.of(SPECS[name]))) or not intact else None


def expect(outcome, kinds, name, what, *, text=None, address=True):
    """Checks that ``outcome`` is one of ``kinds``, and that a fault names its place.

    ``text``: the PTX, if it is not the committed one but for a line. Not ``address``: it need not
    name one, as it may be about a register or a box.
    """
    if outcome == BITS:
        assert BITS in kinds, f"{what}: only the bits differ"
        return None
    assert outcome is not None, f"{what}: not found"
    types = tuple(kind for kind in kinds if kind != BITS)
    assert type(outcome) in types, f"{what}: {outcome!r}"
    assert outcome.kernel == name
    lines = (text or golden(name)).split("\n")
    assert outcome.line and outcome.text
    assert f"line {outcome.line}" in str(outcome)
    assert outcome.text.split()[0] in lines[outcome.line - 1] or "bar" in outcome.text
    assert outcome.cta is not None and outcome.warp is not None and outcome.lane is not None
    if isinstance(outcome, (MemoryFault, RaceFault)) and (address or outcome.address is not None):
        assert outcome.address is not None
        assert f"{outcome.address:#x}" in str(outcome)
    return outcome


# -- changing instructions --------------------------------------------------------------


def skipping(condition, text):
    """``text`` only where ``condition`` does not hold of the thread's number."""
    return (
        f"{{ .reg .pred %away; .reg .b32 %where; mov.u32 %where, %tid.x; {condition} "
        f"@%away bra $L__away; {text} $L__away: }}"
    )


def shifted(text, nbytes):
    """The access with ``nbytes`` added to its last address."""

    def add(match):
        base, offset = match[1], int(match[2] or 0) + nbytes
        return f"[{base}+{offset}]"

    start = text.rindex("[")
    return text[:start] + re.sub(r"\[(%\w+)(?:\+?(-?\d+))?\]", add, text[start:], count=1)


def moved(text, nbytes):
    """The access with ``nbytes`` added to its first address."""
    address = re.search(r"\[.*?\]", text)[0]
    return text.replace(address, shifted(address, nbytes))


def width(text):
    """The bytes that a lane moves."""
    if text.startswith("cp.async"):
        return int(re.search(r"\], (\d+)", text)[1])
    vector = re.search(r"\.v(\d)\.", text)
    return 4 * int(vector[1] if vector else 1)
