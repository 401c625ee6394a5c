"""Faults planted into kernels: the CPU device finds every one, and says what and where it is.

A fault is planted into the PTX, or into the CUDA source before compiling, of kernels that copy,
split and synchronise in different ways. Where an instruction is planted at, the unharmed kernel
runs it, so it matters.
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace

import pytest
from interp_faults import (
    BITS,
    Kernel,
    attempt,
    edge,
    executed,
    expect,
    golden,
    in_source,
    inner,
    moved,
    shifted,
    skipping,
    smallest,
    some,
    turns,
    width,
)
from interp_launch import KERNELS, Case, run
from test_interp_kernels import FewCtas

from ptxgen.errors import (
    BarrierFault,
    DeviceError,
    KernelFault,
    MemoryFault,
    PtxError,
    RaceFault,
    StepLimitFault,
    UninitializedFault,
)
from ptxgen.interp import Settings
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.tiles import SPECS

# -- kernels ----------------------------------------------------------------------------

simt = functools.partial(smallest, family="simt", dtype="f32")
"""Faults are planted into the instructions that the f32 kernels are made of."""

PICKED = {
    "staged": simt(copy_a="staged", copy_b="vector", split="none"),
    "kvector": simt(copy="kvector", split="none", warps_n=4),
    "half-warp slices": simt(copy="kvector", lanes=16, split="slices", lanes_m=4),
    "slices": simt(copy="kvector", lanes=32, split="slices", bm=8),
    "slices of TN": simt(layout="TN", split="slices"),
    "big": simt(copy="transpose", bm=128, bn=128, tn=8, split="none"),
    "persistent": simt(persistent=True),
    "workspace": simt(layout="TN", bm=64, split="workspace"),
}
"""A kernel of every way to copy, split and synchronise."""


def picks(shown):
    """Plants a fault into one kernel; into every other, in long runs.

    Tests show different ones, so that all ways to copy, split and synchronise come up.
    """
    assert shown in PICKED
    return pytest.mark.parametrize(
        "pick", [p if p == shown else pytest.param(p, marks=pytest.mark.long) for p in PICKED]
    )


slices = pytest.mark.parametrize("pick", [p for p in PICKED if "slices" in p])


def rounds(spec):
    """A problem whose tile is gone through several times, if there are such."""
    if spec.persistent:
        return edge(spec)
    return Case(spec.bm, spec.bn, spec.slices * 1024 + 1, bias=False)


def loops(spec):
    """Whether something comes behind the stores of a tile: more chunks than slices, say."""
    return spec.persistent or spec.split == "slices"


class SimtKernel(Kernel):
    """A kernel of PICKED and its main loop, the innermost loop with products."""

    def __init__(self, pick):
        super().__init__(PICKED[pick])
        self.back, self.loop_start = self.loop("fma.rn.f32", "cp.async.commit")


@functools.cache
def kernel(pick):
    return SimtKernel(pick)


# -- barriers ---------------------------------------------------------------------------


@picks("persistent")
def test_removed_barrier(pick):
    found = kernel(pick)
    barriers = found.all(r"bar\.sync")
    assert len(barriers) >= 3
    for place in barriers:
        if place is barriers[-1] and not loops(found.spec):
            continue  # nothing comes behind it, so it orders nothing
        cases = [edge(found.spec), *turns(found.spec)]
        if loops(found.spec):
            cases.append(rounds(found.spec))
        for case in cases:
            device = FewCtas() if found.spec.persistent else None
            outcome = attempt(found.without(place), found.name, case, device=device)
            if outcome is not None:
                break
        expect(outcome, (RaceFault,), found.name, f"without line {place.line}")


@slices
def test_removed_warp_barrier(pick):
    found = kernel(pick)
    barriers = found.all(r"bar\.warp\.sync")
    assert len(barriers) == 2
    for place in barriers:
        outcome = attempt(found.without(place), found.name, edge(found.spec))
        expect(outcome, (RaceFault,), found.name, f"without line {place.line}")


@picks("workspace")
def test_wrong_barrier_count(pick):
    found = kernel(pick)
    threads = found.spec.threads
    place = found.run_by(r"bar\.sync", inner(found.spec))[1]
    for text, message in (
        (f"bar.sync 0, {threads + 32};", f"{threads} of the CTA"),
        (f"bar.sync 0, {threads - 32};", f"waits for {threads - 32}"),
    ):
        outcome = attempt(found.with_line(place, text), found.name, inner(found.spec))
        fault = expect(outcome, (BarrierFault,), found.name, text)
        assert fault.line == place.line and message in str(fault)
    # What no launch can make right is refused when it is loaded.
    for text, message in (("bar.sync 0, 48;", "multiple of 32"), ("bar.sync 16;", "0 to 15")):
        with pytest.raises(PtxError, match=message) as caught:
            attempt(found.with_line(place, text), found.name, inner(found.spec))
        assert caught.value.line == place.line


@picks("kvector")
def test_divergent_barrier(pick):
    found = kernel(pick)
    barriers = found.run_by(r"bar\.(warp\.)?sync", inner(found.spec))
    for place in (barriers[0], barriers[1], barriers[-2]):
        # With one chunk, only the first slice has something to do.
        thread = 5 if "warp" in place.text else 37
        text = skipping(f"setp.eq.u32 %away, %where, {thread};", place.text)
        outcome = attempt(found.with_line(place, text), found.name, inner(found.spec))
        # Who does not wait for his warp may read before he is found missing.
        kinds = (BarrierFault, RaceFault) if "warp" in place.text else (BarrierFault,)
        what = f"thread {thread} skips line {place.line}"
        fault = expect(outcome, kinds, found.name, what)
        assert fault.line >= place.line
        if "warp" not in place.text:
            assert "thread 37 (warp 1, lane 5)" in str(fault)


@picks("slices of TN")
def test_a_warp_skips_a_barrier(pick):
    found = kernel(pick)
    barriers = found.run_by(r"bar\.sync", inner(found.spec))
    for place in (barriers[0], barriers[-2]):
        condition = "shr.u32 %where, %where, 5; setp.eq.u32 %away, %where, 1;"
        text = found.with_line(place, skipping(condition, place.text))
        outcome = attempt(text, found.name, inner(found.spec))
        expect(outcome, (RaceFault,), found.name, f"warp 1 skips line {place.line}")


# -- asynchronous copies ------------------------------------------------------------------


@picks("workspace")
def test_removed_wait(pick):
    found = kernel(pick)
    waits = found.all(r"cp\.async\.wait_group")
    # The last one comes when nothing is under way any more.
    assert len(waits) == 3 and waits[2].text == "cp.async.wait_group 0;"
    for place in waits[:2]:
        count = int(re.search(r"\d+", place.text)[0])
        # Also where a copy happens to land at once, nobody may rely on it.
        for text, early in (("", False), ("", True), (f"cp.async.wait_group {count + 1};", False)):
            harmed = found.with_line(place, text)
            outcome = attempt(harmed, found.name, inner(found.spec), early=early)
            what = f"line {place.line} is now {text!r}"
            fault = expect(outcome, (RaceFault,), found.name, what)
            assert "nothing has waited for it" in str(fault), what
            assert fault.text.startswith("ld.shared")


@picks("slices of TN")
def test_removed_commit(pick):
    found = kernel(pick)
    commits = found.all(r"cp\.async\.commit_group")
    assert len(commits) == found.spec.stages
    for place in commits:
        outcome = attempt(found.without(place), found.name, inner(found.spec))
        fault = expect(outcome, (RaceFault,), found.name, f"without line {place.line}")
        assert "nothing has waited for it" in str(fault)


# -- indices ------------------------------------------------------------------------------


@picks("persistent")
def test_shifted_shared_index(pick):
    found = kernel(pick)
    case = inner(found.spec)
    for pattern in (r"ld\.shared\.v", r"st\.shared"):
        for place in some(found.run_by(pattern, case)):
            to = shifted(place.text, width(place.text))
            if pattern.startswith("st"):
                to = moved(place.text, width(place.text))
            outcome = attempt(found.with_line(place, to), found.name, case)
            kinds = BITS, UninitializedFault, RaceFault, MemoryFault
            expect(outcome, kinds, found.name, f"line {place.line} is now {to}")


@picks("kvector")
def test_shifted_copy(pick):
    found = kernel(pick)
    case = inner(found.spec)
    # Those with a third number may copy nothing.
    copies = found.run_by(r"cp\.async\.c[ag].*\], \d+;|ld\.global\.nc", case)
    for place in some(copies):
        to = shifted(place.text, width(place.text))
        outcome = attempt(found.with_line(place, to), found.name, case)
        kinds = BITS, MemoryFault, UninitializedFault
        expect(outcome, kinds, found.name, f"line {place.line} is now {to}")
    for place in some([p for p in copies if p.text.startswith("cp.async")], 2):
        to = moved(place.text, width(place.text))
        outcome = attempt(found.with_line(place, to), found.name, case)
        kinds = BITS, RaceFault, UninitializedFault, MemoryFault
        expect(outcome, kinds, found.name, f"line {place.line} is now {to}")


@picks("workspace")
def test_store_past_the_end(pick):
    found = kernel(pick)
    case = inner(found.spec)
    for activation in ("none", "relu"):  # stores vectors, stores floats
        case = replace(case, activation=activation, exact=True)
        for place in found.run_by(r"st\.global", case)[-1:]:
            to = shifted(place.text, 4 * found.spec.bn)
            if pick == "workspace":  # the scratch may be larger than is needed
                to = shifted(place.text, 1 << 20)
            outcome = attempt(found.with_line(place, to), found.name, case)
            fault = expect(outcome, (MemoryFault,), found.name, to)
            assert fault.line == place.line and fault.text.startswith("st.global")
            assert "out of bounds" in str(fault)


@picks("workspace")
def test_misaligned_vector(pick):
    found = kernel(pick)
    case = inner(found.spec)
    seen = set()
    for pattern in (r"ld\.shared\.v", r"st\.shared\.v", r"cp\.async\.cg", r"[ls][dt]\.global.*\.v"):
        for place in some(found.run_by(pattern, case), 2):
            to = moved(place.text, 4)
            outcome = attempt(found.with_line(place, to), found.name, case)
            fault = expect(outcome, (MemoryFault,), found.name, to)
            assert fault.line == place.line
            if "misaligned" in str(fault):
                assert fault.address % width(place.text)
                seen.add(pattern)
            else:  # what was last is out of bounds now
                assert "out of bounds" in str(fault)
    assert seen


# -- checks of bounds -----------------------------------------------------------------------

CHECKS = {
    "outputs": (r"if \(i >= m \|\| .*\) continue;", ""),
    "rows of A": (r"min\(o, m - 1\)|\(o < m \? o : o & a_inside\)", "o"),
    "rows of B": (r"min\(o, n - 1\)|\(o < n \? o : o & b_inside\)", "o"),
    "k": ("< left ? 4 : 0", "< left ? 4 : 4"),
    "k of a held vector": (r"\w_k \+ q < left \? (\w+\[i\]\[q\]) : 0\.0f", r"\1"),
    "k of a vector": (r"min\(left - min\(\w_k, left\), 4u\) \* 4", "16"),
    "bytes of a vector of A": ("min(m - min(o, m), 4u) * 4", "16"),
    "bytes of a vector of B": ("min(n - min(o, n), 4u) * 4", "16"),
    "k of bytes": (r"\w_k \+ kk < left \? (min\(\w - min\(o, \w\), \du\) \* 4) : 0", r"\1"),
    "steps": ("if (step < steps) {", "if (true) {"),
    "inner tiles": ("if (inner && left >= BK) {", "if (true) {"),
}
"""Checks in the source of kernels, and what is left without them. Plain text, or a pattern.

Not those of columns: from outside the matrix nothing is read, wherever it would lie. Nor those of
single elements beside the rows: what is read instead lies inside, and its sums are not stored.
"""


@picks("slices of TN")
def test_missing_bounds_check(pick):
    found = kernel(pick)
    case = replace(edge(found.spec), exact=True, extra=0)
    executed(found.name, case)  # nothing is wrong without a fault
    planted = 0
    for what, (check, rest) in CHECKS.items():
        text = in_source(found.spec, check, rest)
        if text is None:
            continue
        planted += 1
        outcome = attempt(text, found.name, case)
        if outcome is None:  # clamps also keep what is never stored inside the array
            outcome = attempt(text, found.name, replace(case, m=1, n=1))
        kinds = BITS, MemoryFault, UninitializedFault, RaceFault
        assert outcome is not None, f"{what}: not found"
        assert outcome == BITS or type(outcome) in kinds, f"{what}: {outcome!r}"
        if outcome != BITS:
            assert outcome.lane is not None and outcome.address is not None
            assert outcome.text.split() == text.split("\n")[outcome.line - 1].split()
    assert planted >= 4


# -- values ---------------------------------------------------------------------------------


@picks("slices of TN")
def test_swapped_fragment(pick):
    found = kernel(pick)
    case = inner(found.spec)
    loads = [
        place
        for place in found.run_by(r"ld\.shared\.v", case)
        if found.loop_start - 60 < place.line < found.back.line
    ]
    assert len(loads) >= 3
    for place in some(loads):
        first, second = re.findall(r"%f\d+", place.text)[:2]
        to = re.sub(rf"{first}\b(.*?){second}\b", rf"{second}\1{first}", place.text)
        assert to != place.text
        outcome = attempt(found.with_line(place, to), found.name, case)
        assert outcome == BITS, f"line {place.line} is now {to}: {outcome!r}"
    products = [
        place
        for place in found.run_by(r"fma\.rn\.f32", case)
        if found.loop_start < place.line < found.back.line
    ]
    for place in some(products):
        at = products.index(place)
        d, a, b, c = re.findall(r"%f\d+", place.text)
        others = [re.findall(r"%f\d+", p.text)[1] for p in products[max(at - 80, 0) : at]]
        others += [re.findall(r"%f\d+", p.text)[1] for p in products[at + 1 : at + 80]]
        other = next(o for o in others if o not in (a, b))
        to = f"fma.rn.f32 {d}, {other}, {b}, {c};"
        outcome = attempt(found.with_line(place, to), found.name, case)
        assert outcome == BITS, f"line {place.line} ({place.text}) is now {to}: {outcome!r}"


@picks("persistent")
def test_other_rounding(pick):
    found = kernel(pick)
    case = inner(found.spec)
    products = [p for p in found.run_by(r"fma\.rn\.f32", case)]
    for place in some(products):
        to = place.text.replace("fma.rn", "fma.rz")
        outcome = attempt(found.with_line(place, to), found.name, case)
        assert outcome == BITS, f"line {place.line} is now {to}: {outcome!r}"


@picks("workspace")
def test_removed_store(pick):
    found = kernel(pick)
    case = replace(inner(found.spec), exact=True)
    for pattern in (r"st\.shared", r"cp\.async\.c[ag].*\], \d+;"):
        for place in some(found.run_by(pattern, case)):
            outcome = attempt(found.without(place), found.name, case)
            kinds = BITS, UninitializedFault
            expect(outcome, kinds, found.name, f"without line {place.line}: {place.text}")
    first = next(
        p
        for p in found.run_by(r"st\.shared|cp\.async\.c[ag].*\], \d+;", case)
        if p.line < found.back.line
    )
    outcome = attempt(found.without(first), found.name, case)
    fault = expect(outcome, (UninitializedFault,), found.name, f"without line {first.line}")
    assert "which nothing has written" in str(fault) and fault.text.startswith("ld.shared")
    for place in found.run_by(r"st\.global", case)[-1:]:
        outcome = attempt(found.without(place), found.name, case)
        if pick == "workspace":
            assert isinstance(outcome, UninitializedFault)
            assert outcome.kernel == KERNELS[found.name][1].kernels[1].name
        else:
            assert outcome == BITS


@picks("slices of TN")
def test_register_without_a_value(pick):
    found = kernel(pick)
    case = inner(found.spec)
    products = [
        place.text
        for place in found.run_by(r"fma\.rn\.f32", case)
        if found.loop_start < place.line < found.back.line
    ]
    added_to = {re.findall(r"%f\d+", text)[3] for text in products}
    sums = found.zeros(added_to, found.loop_start)
    assert len(sums) == found.spec.tm * found.spec.tn
    for register, places in some(sorted(sums.items())):
        outcome = attempt(found.without(*places), found.name, case)
        fault = expect(outcome, (UninitializedFault,), found.name, f"without {register}")
        assert f"register {register}," in str(fault) and fault.text.startswith("st.")


# -- the launch -----------------------------------------------------------------------------


@picks("slices of TN")
@pytest.mark.parametrize("operand", ["A", "B", "bias", "out"])
def test_use_after_free(pick, operand):
    found = kernel(pick)
    case = replace(inner(found.spec), bias=True)
    with pytest.raises(MemoryFault, match="has been freed") as caught:
        run(device_of(pick), found.name, case, freed=operand)
    fault = caught.value
    assert fault.line and fault.lane is not None and fault.address is not None
    assert "launching" in fault.__notes__[0]


@functools.cache
def device_of(pick):
    return CpuDevice()


@picks("workspace")
@pytest.mark.parametrize("operand", ["A", "B", "bias"])
def test_operand_without_values(pick, operand):
    found = kernel(pick)
    case = replace(inner(found.spec), bias=True)
    with pytest.raises(UninitializedFault, match=f"nothing has written .*of {operand} ") as caught:
        run(device_of(pick), found.name, case, unwritten=operand)
    assert caught.value.line and caught.value.address is not None


@picks("persistent")
def test_operand_too_short(pick):
    found = kernel(pick)
    for operand in ("A", "B", "bias"):
        case = replace(inner(found.spec), bias=True)
        with pytest.raises(MemoryFault, match=rf"out of bounds.* of {operand} of") as caught:
            run(device_of(pick), found.name, case, short=operand)
        assert caught.value.line and caught.value.address is not None


@picks("kvector")
def test_endless_loop(pick):
    found = kernel(pick)
    label = re.search(r"\$L\w+", found.back.text)[0]
    text = found.with_line(found.back, f"bra.uni {label};")
    outcome = attempt(text, found.name, inner(found.spec), visits=20)
    # Who puts operands down himself goes on doing so, into what others still read.
    kinds = (StepLimitFault, RaceFault) if found.spec.staged else (StepLimitFault,)
    fault = expect(outcome, kinds, found.name, "endless")
    if not found.spec.staged:
        assert "visits=" in str(fault) and "20 times" in str(fault)
    assert found.loop_start <= fault.line <= found.back.line


def test_faults_of_the_following_kernel():
    name = PICKED["workspace"]
    _, route = KERNELS[name]
    second = route.kernels[1].name
    text = golden(second)
    end = re.search(r"(\$L\w+):\s+ret;", text)[1]
    case = replace(rounds(SPECS[name]), n=SPECS[name].bn + 1, exact=True)
    attempts = {
        "index": (r"(ld\.global\.f32\s+%f\d+), \[(%rd\d+)\]", r"\1, [\2+4]"),
        "return": (rf"@%p\d+ bra\s+{re.escape(end)};", ""),
        "sum": (r"add\.rn\.f32", "sub.rn.f32"),
    }
    for what, (pattern, rest) in attempts.items():
        harmed, count = re.subn(pattern, rest, text)
        assert count, what
        outcome = attempt(harmed, name, case, planted=second)
        assert outcome is not None, what
        if what == "return":
            assert isinstance(outcome, (MemoryFault, UninitializedFault))
            assert outcome.kernel == second
        if what == "sum":
            assert outcome == BITS


# -- bad PTX ----------------------------------------------------------------------------------


def loaded(text, name):
    """Loads a text as the library does."""
    return CpuDevice().load(text.encode(), name, SPECS[name].shared_bytes)


def test_truncated_text():
    found = kernel("half-warp slices")
    text = "\n".join(found.lines).rstrip()
    for cut in [len(text) * i // 24 for i in range(24)] + [len(text) - 1]:
        with pytest.raises((PtxError, DeviceError)) as caught:
            loaded(text[:cut], found.name)
        error = caught.value
        assert found.name in str(error)
        if isinstance(error, PtxError):
            assert error.line <= text.count("\n", 0, cut) + 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("fma.rn.f32", "frobnicate.rn.f32"),
        ("fma.rn.f32", "fma.rn.f31"),
        ("fma.rn.f32", "fma.rn.approx.f32"),
        ("fma.rn.f32", "fma.f32"),
        ("ld.shared.v", "ld.shared.quick.v"),
        ("ld.shared.v", "ld.shred.v"),
        ("bar.sync", "bar.think"),
        ("cp.async.wait_group", "cp.async.wait_grope"),
        ("%tid.x", "%clock64"),
        ("%tid.x", "%tid.w"),
        ("add.s32", "add.s32 %f1,"),
    ],
)
def test_outside_the_subset(old, new):
    found = kernel("half-warp slices")
    place = next(p for p in found.all(".*") if old in p.text)
    with pytest.raises(PtxError) as caught:
        loaded(found.with_line(place, place.text.replace(old, new)), found.name)
    error = caught.value
    assert error.line == place.line, str(error)
    assert f"{found.name}.ptx:{place.line}: " in str(error)
    assert new.split()[0].lstrip("%") in error.text


@pytest.mark.parametrize("target", ["sm_100a", "sm_100", "sm_120", "sm_80a", "sm_100f"])
def test_other_architecture(target):
    found = kernel("half-warp slices")
    text = golden(found.name).replace(".target sm_80", f".target {target}")
    with pytest.raises(DeviceError, match=f"is for {target}; this device is a model of sm_90"):
        loaded(text, found.name)


def test_own_architecture():
    found = kernel("half-warp slices")
    for target in ("sm_90a", "sm_90"):
        text = golden(found.name).replace(".target sm_80", f".target {target}")
        assert attempt(text, found.name, edge(found.spec)) is None
    with pytest.raises(PtxError, match=r"takes \.target sm_80 or later, the module is for sm_70"):
        text = golden(found.name).replace(".target sm_80", ".target sm_70")
        attempt(text, found.name, edge(found.spec))


def parameters(text, change):
    """The PTX with another parameter list."""
    start, stop = text.index("(\n", text.index(".entry")), text.index("\n)")
    given = [line.strip(",") for line in text[start + 2 : stop].split("\n")]
    return text[: start + 2] + ",\n".join(change(given)) + text[stop:]


def test_wrong_parameters():
    found = kernel("half-warp slices")
    text = golden(found.name)
    more = f"takes {found.spec.abi.size + 4} bytes of parameters"
    changes = {
        "one more": (lambda given: [*given, "\t.param .u32 more"], more),
        "a wider one": (
            lambda given: [*given[:-1], given[-1].replace(".u32", ".u64")],
            more,
        ),
        "one of no use less": (lambda given: given[:-1], None),
        "none": (lambda given: [], None),
    }
    for what, (change, message) in changes.items():
        with pytest.raises((DeviceError, PtxError), match=message) as caught:
            device = CpuDevice()
            harmed = parameters(text, change)
            device.kernel(found.name, lambda arch, t=harmed: t.encode(), found.spec.shared_bytes)
            run(device, found.name, inner(found.spec))
        assert found.name in str(caught.value), what
        assert not isinstance(caught.value, KernelFault)


def test_other_images():
    found = kernel("half-warp slices")
    with pytest.raises(DeviceError, match="takes PTX text"):
        CpuDevice().load(b"\x7fELF\xff\xfe" + bytes(64), found.name)
    with pytest.raises(DeviceError, match="has no kernel other"):
        CpuDevice().load(golden(found.name).encode(), "other")
    with pytest.raises(PtxError):
        CpuDevice().load(b"", found.name)
    with pytest.raises(DeviceError, match="needs 300000 bytes of shared memory"):
        CpuDevice().load(golden(found.name).encode(), found.name, 300000)
    text = golden(found.name).replace(f".maxntid {found.spec.threads}", ".maxntid 32")
    device = CpuDevice()
    device.kernel(found.name, lambda arch: text.encode(), found.spec.shared_bytes)
    with pytest.raises(DeviceError, match="takes at most 32 threads"):
        run(device, found.name, inner(found.spec))


SPIN = """
.version 9.0
.target sm_80
.address_size 64
.visible .entry spin() {
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, 0;
LOOP:
    add.u32 %r2, %r2, 1;
    setp.ne.u32 %p1, %r1, 77;
    @%p1 bra LOOP;
    ret;
}
"""


@pytest.mark.parametrize("settings", [{}, {"seed": 3}, {"wave_lanes": 1}])
def test_endless_by_itself(settings):
    device = CpuDevice(visits=500, **settings)
    function = device.load(SPIN.encode(), "spin")
    with pytest.raises(StepLimitFault, match="visits=") as caught:
        device.launch(function, (2, 1, 1), (96, 1, 1), 0, b"", "spin")
    assert caught.value.text == "add.u32 %r2, %r2, 1;"
    assert SPIN.split("\n")[caught.value.line - 1].strip() == caught.value.text


def test_the_limit_is_generous():
    assert Settings().visits >= 1 << 20
