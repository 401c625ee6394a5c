"""Faults planted into tensor-core kernels: the CPU device finds every one, and where it is.

As in test_interp_faults.py, but for what only these kernels have: fragments of matrices, rings that
warps of their own fill, and Hopper's copy engine, mbarriers, clusters and asynchronous products.
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
from interp_launch import Case, run
from test_interp_kernels import FewCtas

from ptxgen.errors import (
    BarrierFault,
    DeadlockFault,
    MemoryFault,
    RaceFault,
    StepLimitFault,
    UninitializedFault,
)
from ptxgen.runtime.cpu import CpuDevice

mma = functools.partial(smallest, family="mma", dtype="bf16")
wgmma = functools.partial(smallest, family="wgmma", dtype="bf16")

RINGS = {
    "vectors": mma(layout="NN", copy="vector", producer_warps=0, split="none"),
    "few rows": mma(layout="NT", copy="vector", swap_operands=True, warps_n=2),
    "words": mma(layout="TN", copy="words", swap_operands=True, copy_b="words"),
    "elements": mma(layout="NN", copy="plain", persistent=True),
    "workspace": mma(layout="TN", copy="vector", split="workspace", producer_warps=4),
}
"""An mma kernel of every way to copy, split and synchronise."""
ENGINES = {
    "one": wgmma(layout="NN", consumers=1, split="serial", bk=64),
    "one chain": wgmma(layout="NN", split="none"),
    "two": wgmma(layout="NT", consumers=2, split="serial", registers=0),
    "pair": wgmma(layout="NN", cluster_m=2),
    "workspace": wgmma(split="workspace"),
}
"""A wgmma kernel for every number of consumers and every way to share operands in a cluster."""


def some_of(picks):
    """Runs a test on those of ``picks`` that differ in what its faults are planted into; but for
    the one named first, in long runs.
    """

    def of(*names):
        assert set(names) <= picks.keys()
        rest = [pytest.param(n, marks=pytest.mark.long) for n in names[1:]]
        return pytest.mark.parametrize("pick", [names[0], *rest])

    return of


rings, engines = some_of(RINGS), some_of(ENGINES)


SHARED = BITS, RaceFault, UninitializedFault, MemoryFault
"""Possible outcomes of a wrong place in shared memory."""


class RingKernel(Kernel):
    """A kernel of RINGS and its main loop."""

    def __init__(self, pick):
        super().__init__(RINGS[pick])
        self.back, self.loop_start = self.loop("ldmatrix", "mma.sync", "bar.sync")

    def products(self, case):
        """The matrix products of the main loop that ``case`` runs."""
        return [
            place
            for place in self.run_by(r"mma\.sync", case)
            if self.loop_start < place.line < self.back.line
        ]


@functools.cache
def ring(pick):
    return RingKernel(pick)


@functools.cache
def engine(pick):
    return Kernel(ENGINES[pick])


def whole(spec):
    """A problem of whole tiles for each CTA of a cluster, and stages that are used again."""
    extent = spec.bm * spec.cluster_m, spec.bn * spec.cluster_n
    return Case(*extent, (spec.stages + 2) * spec.bk, bias=False)


def walk(spec):
    """Returns a problem of two clusters' whole tiles, for one cluster to walk over."""
    return replace(whole(spec), n=2 * spec.bn * spec.cluster_n)


def short(spec):
    """A problem of whole tiles that fills two stages."""
    case = inner(spec) if spec.family == "mma" else whole(spec)
    return replace(case, k=2 * spec.bk)


def cut(spec):
    """A tile with edges on all sides, behind which the result ends."""
    return replace(edge(spec), m=spec.bm - 1, n=spec.bn - 1, exact=True, extra=0)


def registers(text):
    """The groups of registers of an instruction."""
    return [re.findall(r"%[rf]d?\d+", group) for group in re.findall(r"\{(.*?)\}", text)]


def swapped(text, first, second):
    """The instruction with two registers exchanged, wherever they are in it."""
    new = {first: second, second: first}
    return re.sub(r"%[rf]d?\d+", lambda match: new.get(match[0], match[0]), text)


def changed(place, change):
    """The instruction with another value of its last register: ``change`` applied to it."""
    register = re.findall(r"%r\d+", place.text)[-1]
    text = place.text.replace(f"{register};", "%other;")
    return f"{{ .reg .b32 %other; {change.format(register)}; {text} }}"


# == mma ================================================================================

# -- barriers and asynchronous copies ---------------------------------------------------


@rings("few rows", "vectors", "words", "elements", "workspace")
def test_ring_removed_barrier(pick):
    found = ring(pick)
    barriers = found.all(r"bar\.sync")
    assert len(barriers) == 4 + found.spec.persistent + 2 * (found.spec.producer_warps > 0)
    for place in barriers:
        device = FewCtas() if found.spec.persistent else None
        kinds = (RaceFault,)
        if found.spec.producer_warps:  # the others' next one takes its place
            kinds = SHARED
        cases = [edge(found.spec)]
        if not found.spec.persistent:
            cases = [*turns(found.spec), *cases]
        for case in cases:
            outcome = attempt(found.without(place), found.name, case, device=device)
            if outcome is not None:
                break
        expect(outcome, kinds, found.name, f"without line {place.line}")


@rings("vectors", "few rows")
def test_ring_barrier_of_a_part(pick):
    found = ring(pick)
    places = found.run_by(r"bar\.sync|ldmatrix|mma\.sync", inner(found.spec))
    for pattern in ("bar.sync", "ldmatrix", "mma.sync"):
        place = next(p for p in places if p.text.startswith(pattern))
        last = pattern == "bar.sync" and found.spec.producer_warps
        thread = found.spec.threads - 3 if last else 5
        text = skipping(f"setp.eq.u32 %away, %where, {thread};", place.text)
        outcome = attempt(found.with_line(place, text), found.name, inner(found.spec))
        what = f"thread {thread} skips line {place.line}"
        fault = expect(outcome, (BarrierFault,), found.name, what)
        assert fault.line >= place.line


@rings("vectors", "few rows", "words", "workspace")
def test_ring_removed_wait(pick):
    found = ring(pick)
    waits = found.run_by(r"cp\.async\.wait_group", inner(found.spec))
    if not found.spec.producer_warps:
        # The last one comes when nothing is under way any more.
        assert waits.pop().text == "cp.async.wait_group 0;"
    assert len(waits) == 1 + (not found.spec.producer_warps)
    for place in waits:
        more = f"cp.async.wait_group {found.spec.stages - 1};"
        assert place.text == f"cp.async.wait_group {found.spec.stages - 2};"
        # Also where a copy happens to land at once, nobody may rely on it.
        for text, early in (("", True), (more, False)):
            harmed = found.with_line(place, text)
            outcome = attempt(harmed, found.name, inner(found.spec), early=early)
            what = f"line {place.line} is now {text!r}"
            fault = expect(outcome, (RaceFault,), found.name, what)
            assert "nothing has waited for it" in str(fault), what
            assert fault.text.startswith("ldmatrix")
    commits = found.run_by(r"cp\.async\.commit_group", inner(found.spec))
    assert len(commits) == len(waits)
    for place in commits:
        outcome = attempt(found.without(place), found.name, inner(found.spec))
        fault = expect(outcome, (RaceFault,), found.name, f"without line {place.line}")
        assert "nothing has waited for it" in str(fault)


# -- places and values ------------------------------------------------------------------


@rings("few rows", "vectors", "words", "elements")
def test_ring_shifted_address(pick):
    found, spec = ring(pick), ring(pick).spec
    case = short(spec)
    for place in some(found.run_by("ldmatrix", case), 2):
        for step in (16, spec.side("b").pitch):  # a vector, a row
            to = shifted(place.text, step)
            outcome = attempt(found.with_line(place, to), found.name, case)
            expect(outcome, SHARED, found.name, f"line {place.line} is now {to}")
    copies = found.run_by(r"cp\.async\.c[ag]|ld\.global\.nc", case)
    for place in copies[:1]:
        if place.text.startswith("cp.async"):
            to = moved(place.text, width(place.text))
            outcome = attempt(found.with_line(place, to), found.name, case)
            expect(outcome, SHARED, found.name, f"line {place.line} is now {to}")
            source = re.findall(r"\[%rd\d+\]", place.text)[0]
            to = place.text.replace(source, f"{source[:-1]}+{width(place.text)}]")
        else:
            to = shifted(place.text, 2)
        outcome = attempt(found.with_line(place, to), found.name, case)
        kinds = BITS, MemoryFault, UninitializedFault
        expect(outcome, kinds, found.name, f"line {place.line} is now {to}")
    for place in found.run_by(r"st\.shared", case)[-1:]:
        to = moved(place.text, width(place.text))
        outcome = attempt(found.with_line(place, to), found.name, case)
        expect(outcome, SHARED, found.name, f"line {place.line} is now {to}")


@rings("vectors", "words", "elements")
def test_ring_misaligned(pick):
    found = ring(pick)
    case = short(found.spec)
    seen = 0
    for pattern, nbytes in (
        ("ldmatrix", 8),
        (r"cp\.async\.cg", 8),
        (r"cp\.async\.ca", 2),
        (r"[ls][dt]\.shared\.v4", 4),
        (r"st\.global.*\.v", 2),
    ):
        for place in found.run_by(pattern, case)[:1]:
            to = moved(place.text, nbytes)
            outcome = attempt(found.with_line(place, to), found.name, case)
            fault = expect(outcome, (MemoryFault,), found.name, to)
            assert fault.line == place.line and "misaligned" in str(fault)
            seen += 1
    assert seen >= 3


@rings("few rows", "vectors", "words")
def test_ring_swapped_fragment(pick):
    found = ring(pick)
    case = short(found.spec)
    for place in some(found.run_by("ldmatrix", case), 2):
        to = swapped(place.text, *registers(place.text)[0][:2])
        outcome = attempt(found.with_line(place, to), found.name, case)
        assert outcome == BITS, f"line {place.line} is now {to}: {outcome!r}"
    for place in found.products(case)[:1]:
        _, rows, columns, _ = registers(place.text)
        assert (len(rows), len(columns)) == (4, 2)
        sums = registers(place.text)[0]
        given = place.text.rindex("{")
        for to in (
            swapped(place.text, *rows[1:3]),
            swapped(place.text, *columns),
            # What is added to, but not the result.
            place.text[:given] + swapped(place.text[given:], *sums[1:3]),
        ):
            outcome = attempt(found.with_line(place, to), found.name, case)
            assert outcome == BITS, f"line {place.line} is now {to}: {outcome!r}"


@rings("vectors", "few rows")
def test_ring_register_without_a_value(pick):
    found, spec = ring(pick), ring(pick).spec
    case = short(spec)
    added_to = {name for place in found.products(case) for name in registers(place.text)[3]}
    sums = found.zeros(added_to, found.loop_start)
    assert len(sums) == 4 * spec.wide_side.fragments * spec.slim_side.fragments
    for register, places in sorted(sums.items())[-1:]:
        outcome = attempt(found.without(*places), found.name, case)
        fault = expect(outcome, (UninitializedFault,), found.name, f"without {register}")
        assert f"register {register}," in str(fault) and register in fault.text


@rings("few rows", "elements")
def test_ring_removed_instruction(pick):
    found = ring(pick)
    case = replace(short(found.spec), exact=True)
    copy, *_ = found.run_by(r"st\.shared\.v4|cp\.async\.c[ag]", case)
    outcome = attempt(found.without(copy), found.name, case)
    fault = expect(outcome, (UninitializedFault,), found.name, "without the first copy")
    assert "which nothing has written" in str(fault) and fault.text.startswith("ldmatrix")
    product = found.products(case)[-1]
    outcome = attempt(found.without(product), found.name, case)
    assert outcome == BITS, f"without line {product.line}: {outcome!r}"


@rings("vectors", "few rows")
def test_ring_endless_loop(pick):
    found = ring(pick)
    label = re.search(r"\$L\w+", found.back.text)[0]
    text = found.with_line(found.back, f"bra.uni {label};")
    outcome = attempt(text, found.name, inner(found.spec), visits=20)
    # Who copies meanwhile goes on doing so, or is through, and so are the barriers.
    kinds = (RaceFault,) if found.spec.producer_warps or found.spec.plain else ()
    fault = expect(outcome, (StepLimitFault, *kinds), found.name, "endless")
    if not kinds:
        assert found.loop_start <= fault.line <= found.back.line and "20 times" in str(fault)


# -- checks of bounds -------------------------------------------------------------------

CHECKS = {
    "outputs": ("if (j >= n) continue;", ""),
    "ends of rows": ("const unsigned wide = min(BN, n - n0);", "const unsigned wide = BN;"),
    "rows of outputs": ("min(m - m0, BM)", "BM"),
    "k of a vector": (r"inside\(left, (\w)_vector \* 8\)", "8u"),
    "rows of a vector": (r"row < [ab]_inside \?", "true ?"),
    "k": (r"row < left \? (\w)_inside : 0", r"\1_inside"),
    "columns of a vector": (r"(\w)_inside = inside\(.*?\);", r"\1_inside = 8;"),
    "a held element": ("q < valid ? from[q] : 0", "from[q]"),
    "steps": ("if (step < steps) {", "if (true) {"),
    "inner tiles": ("if (left >= BK && whole) {", "if (true) {"),
    "permutation": (r"\* A_PITCH \+ \(vector \^", r"* A_PITCH + (vector ^ 1 ^"),
    "the next stage": ("const bool wrap = ++slot == STAGES;", "const bool wrap = false;"),
    "a pair of outputs": ("__fadd_rn(acc[i][j][2 * h], 0.0f)", "acc[i][j][2 * h + 1]"),
}
"""Planted faults of mma kernels by name: text or pattern in the source, and its replacement."""


@rings("words", "vectors")
def test_ring_source(pick):
    found = ring(pick)
    case = cut(found.spec)
    executed(found.name, case)
    planted = 0
    for what, (old, new) in CHECKS.items():
        text = in_source(found.spec, old, new)
        if text is None:
            continue
        planted += 1
        # Where rows start anywhere, only what an activation follows is stored one by one.
        each = case
        if found.spec.ragged and what.endswith("outputs"):
            each = replace(case, activation="relu")
        outcome = attempt(text, found.name, each)
        if outcome is None:  # what is never stored is no matter
            outcome = attempt(text, found.name, replace(each, m=1, n=1))
        expect(outcome, SHARED, found.name, what, text=text)
    assert planted >= 6


# == both ===============================================================================


@pytest.mark.parametrize(
    "name",
    [
        *(RINGS[pick] for pick in ("vectors", "few rows", "workspace")),
        *(ENGINES[pick] for pick in ("one", "workspace")),
    ],
)
def test_store_past_the_end(name):
    found = Kernel(name)
    spec = found.spec
    # Stores 16-bit vectors, vectors of f32.
    for case in (
        Case(spec.bm, spec.bn, spec.bk, bias=False, exact=True),
        Case(spec.bm, spec.bn, spec.bk, bias=False, exact=True, out_f32=True),
    ):
        for place in found.run_by(r"st\.global", case)[-1:]:
            to = shifted(place.text, 4 * spec.bm * spec.bn)
            if spec.split == "workspace":  # the scratch may be larger than is needed
                to = shifted(place.text, 1 << 20)
            outcome = attempt(found.with_line(place, to), name, case)
            fault = expect(outcome, (MemoryFault,), name, to)
            assert fault.line == place.line and "out of bounds" in str(fault)


@pytest.mark.parametrize(
    "name", [RINGS["vectors"], RINGS["words"], ENGINES["one"], ENGINES["pair"]]
)
def test_wrong_operand(name):
    spec = Kernel(name).spec
    case = Case(spec.bm, spec.bn, spec.bk, bias=False)
    device = CpuDevice()
    for operand in ("A", "B"):
        for fault, message, how in (
            (MemoryFault, "has been freed", "freed"),
            (UninitializedFault, f"nothing has written .*of {operand} ", "unwritten"),
            (MemoryFault, rf"of {operand} of", "short"),
        ):
            with pytest.raises(fault, match=message) as caught:
                run(device, name, case, **{how: operand})
            found = caught.value
            assert found.line and found.lane is not None and found.address is not None


# == wgmma ==============================================================================

# -- asynchronous products --------------------------------------------------------------


@engines("pair")
def test_engine_removed_wait(pick):
    found = engine(pick)
    case = whole(found.spec)
    inside, last = found.run_by(r"wgmma\.wait_group", case)
    assert (inside.text[-2:], last.text[-2:]) == ("1;", "0;")
    (commit,) = found.run_by(r"wgmma\.commit_group", case)
    for place, text, early in (
        (inside, "", True),
        (inside, inside.text.replace("1;", "2;"), False),
        (commit, "", False),
    ):
        outcome = attempt(found.with_line(place, text), found.name, case, early=early)
        what = f"line {place.line} is now {text!r}"
        fault = expect(outcome, (RaceFault,), found.name, what)
        # A stage is filled again that is still read.
        assert fault.text.startswith("cp.async.bulk.tensor") and "(wgmma.mma_async" in str(fault)
    for text, early in (("", True), (last.text.replace("0;", "1;"), False)):
        outcome = attempt(found.with_line(last, text), found.name, case, early=early)
        what = f"line {last.line} is now {text!r}"
        fault = expect(outcome, (RaceFault,), found.name, what, address=False)
        assert "no wgmma.wait_group has waited for it" in str(fault)
        assert re.search(r"access to (%f\d+) ", str(fault))[1] in fault.text


@engines("one")
def test_engine_accumulators(pick):
    found = engine(pick)
    case = short(found.spec)
    products = found.run_by(r"wgmma\.mma_async", case)
    (fence,) = found.run_by(r"wgmma\.fence", case)
    (commit,) = found.run_by(r"wgmma\.commit_group", case)
    sums = registers(found.lines[products[0].line])[0]
    assert len(sums) == found.spec.bn // 2
    touch = f"mov.f32 {sums[3]}, {sums[3]};"
    for place, text, line, message in (
        (fence, "", products[0].line, "no wgmma.fence comes before the first wgmma"),
        (fence, fence.text + touch, products[0].line, f"{sums[3]} has been accessed before"),
        (commit, commit.text + touch, commit.line, f"access to {sums[3]} while the wgmma of"),
    ):
        harmed = found.with_line(place, text)
        outcome = attempt(harmed, found.name, case)
        what = f"line {place.line} is now {text!r}"
        fault = expect(outcome, (RaceFault,), found.name, what, text=harmed, address=False)
        assert fault.line == line and message in str(fault)
    # Products in the same registers follow one another, if they are the same ones in all.
    second = products[1].line
    lines = list(found.lines)
    lines[second] = swapped(lines[second], *sums[1:3])
    outcome = attempt("\n".join(lines), found.name, case)
    fault = expect(outcome, (RaceFault,), found.name, "swapped accumulators", address=False)
    assert fault.line == products[1].line and "that uses it is under way" in str(fault)


@engines("two")
def test_engine_part_of_a_warpgroup(pick):
    found = engine(pick)
    case = short(found.spec)
    for pattern in (r"wgmma\.fence", r"wgmma\.commit_group", r"wgmma\.wait_group"):
        place = found.run_by(pattern, case)[0]
        for condition in (
            "setp.eq.u32 %away, %where, 37;",
            "shr.u32 %where, %where, 5; setp.eq.u32 %away, %where, 2;",
        ):
            text = found.with_line(place, skipping(condition, place.text))
            outcome = attempt(text, found.name, case)
            # A warp that goes on alone comes to the next one first.
            fault = expect(outcome, (BarrierFault,), found.name, f"{condition} {place.text}")
            assert "wgmma" in str(fault)


@engines("one", "workspace")
def test_engine_descriptors(pick):
    found, spec = engine(pick), engine(pick).spec
    case = short(spec)
    seen = executed(found.name, case)
    constants = {}
    for x in (spec.a, spec.b):
        signed = x.descriptor - (x.descriptor >> 63 << 64)
        places = [p for p in found.all(rf"(or|add)\.(b|s)64 .*, {signed};") if p.line in seen]
        assert places, x
        constants[x.name] = signed, places
    for x in (spec.a, spec.b):
        signed, places = constants[x.name]
        fields = {"stride": 1 << 32, "swizzle": 1 << 62}
        if not x.k_major and x is spec.b and x.panels > 1:
            fields["leading"] = 1 << 16
        for what, bit in fields.items():
            harmed = signed ^ bit
            lines = list(found.lines)
            for place in places:
                lines[place.line - 1] = place.text.replace(f" {signed};", f" {harmed};")
            outcome = attempt("\n".join(lines), found.name, case)
            expect(outcome, SHARED, found.name, f"{x.name}: {what}")
    # From one instruction's reduction steps to the next: 16 bytes too far.
    first, *_, last = found.run_by(r"wgmma\.mma_async", case)
    steps = [
        place
        for place in found.run_by(r"add\.s64 \s*%rd\d+, %rd\d+, \d+;", case)
        if first.line < place.line < last.line
    ]
    assert len(steps) >= 2 * (spec.bk // 16 - 1)
    for place in some(steps, 2):
        to = re.sub(r"(\d+);$", lambda match: f"{int(match[1]) + 1};", place.text)
        outcome = attempt(found.with_line(place, to), found.name, case)
        expect(outcome, SHARED, found.name, f"line {place.line} is now {to}")


# -- mbarriers --------------------------------------------------------------------------


@engines("one", "pair")
def test_engine_mbarrier_wait(pick):
    found = engine(pick)
    case = whole(found.spec)
    empty, full = found.run_by(r"mbarrier\.try_wait", case)
    over = "setp.eq.u32 p, 0, 0;"
    for place, early, text, kinds in (
        (empty, False, over, (RaceFault, BarrierFault)),
        (empty, False, changed(empty, "xor.b32 %other, {}, 1"), (DeadlockFault,)),
        (full, True, over, (UninitializedFault, RaceFault)),
        (full, False, changed(full, "xor.b32 %other, {}, 1"), (UninitializedFault, RaceFault)),
    ):
        outcome = attempt(found.with_line(place, text), found.name, case, early=early)
        what = f"line {place.line} is now {text!r}, early={early}"
        fault = expect(outcome, kinds, found.name, what)
        if place is full:
            assert fault.text.startswith("wgmma.mma_async")
        elif isinstance(fault, RaceFault):
            assert fault.text.startswith("cp.async.bulk.tensor")


@engines("one", "pair")
def test_engine_mbarrier_wait_without_a_loop(pick):
    """A wait may give up before the phase is over, and has to be repeated."""
    found = engine(pick)
    case = whole(found.spec)
    for wait in found.run_by(r"mbarrier\.try_wait", case):
        back = next(p for p in found.all(r"@%p\d+ bra\s") if p.line > wait.line)
        assert back.line - wait.line < 6
        seeds = (attempt(found.without(back), found.name, case, seed=seed) for seed in range(8))
        outcome = next(filter(None, seeds), None)
        kinds = UninitializedFault, RaceFault, BarrierFault
        expect(outcome, kinds, found.name, f"line {back.line} removed")


@engines("one", "pair")
def test_engine_mbarrier_arrival(pick):
    found, spec = engine(pick), engine(pick).spec
    case = walk(spec)
    arrivals = found.run_by(r"mbarrier\.arrive", case)
    tell = 1 + (spec.cluster_m > 1)  # those of the row and those of the column
    assert len(arrivals) == 1 + tell * 2
    for place in arrivals:
        rest = "}" if place.text.endswith("}") else ""  # the end of a scope
        text = found.with_line(place, rest)
        outcome = attempt(text, found.name, case, device=FewCtas())
        expect(outcome, (DeadlockFault,), found.name, f"without line {place.line}")
        if place is arrivals[1]:  # twice
            text = found.with_line(place, place.text.removesuffix("}") + place.text)
            outcome = attempt(text, found.name, case, device=FewCtas())
            kinds = RaceFault, BarrierFault, DeadlockFault
            expect(outcome, kinds, found.name, f"twice line {place.line}")


@engines("one")
def test_engine_mbarrier_bytes(pick):
    found, spec = engine(pick), engine(pick).spec
    case = whole(spec)
    (place,) = found.run_by(r"mbarrier\.arrive\.expect_tx", case)
    for more in (16, -16, -spec.a.bytes, -spec.b.bytes):
        text = found.with_line(place, changed(place, f"add.s32 %other, {{}}, {more}"))
        outcome = attempt(text, found.name, case)
        # What is there may be read as if all were, but only whole boxes can be all.
        kinds = (DeadlockFault,) if abs(more) == 16 else (RaceFault, DeadlockFault)
        fault = expect(outcome, kinds, found.name, f"{more} bytes more")
        assert isinstance(fault, DeadlockFault) or fault.text.startswith("wgmma.mma_async")


@engines("two")
def test_engine_mbarrier_count(pick):
    found = engine(pick)
    case = whole(found.spec)
    inits = found.run_by(r"mbarrier\.init", case)
    assert len(inits) == 2 * found.spec.stages
    for place in inits[:2]:  # full, empty
        if place is inits[1]:  # one more
            text = found.with_line(place, changed(place, "add.s32 %other, {}, 1"))
            outcome = attempt(text, found.name, case)
            expect(outcome, (DeadlockFault,), found.name, f"line {place.line}: one more")
        outcome = attempt(found.without(place), found.name, case)
        fault = expect(outcome, (UninitializedFault,), found.name, f"without line {place.line}")
        assert "no mbarrier has been initialised here" in str(fault)
        text = found.with_line(place, changed(place, "sub.s32 %other, {}, 1"))
        outcome = attempt(text, found.name, case)
        # None at all, or one of two consumers.
        kinds = (MemoryFault,) if place is inits[0] else (RaceFault, BarrierFault, DeadlockFault)
        expect(outcome, kinds, found.name, f"line {place.line}: one less", address=False)


# -- barriers ---------------------------------------------------------------------------


@engines("one", "pair", "workspace")
def test_engine_removed_barrier(pick):
    found, spec = engine(pick), engine(pick).spec
    case = whole(spec)
    barriers = found.run_by(r"bar\.sync|barrier\.cluster\.wait", case)
    assert len(barriers) == 1 + (spec.cluster_m * spec.cluster_n > 1)
    for place in barriers:
        removed = [place]
        if "cluster" in place.text:  # it has two halves
            removed.append(replace(place, line=place.line - 1))
            assert "barrier.cluster.arrive" in found.lines[place.line - 2]
        outcome = attempt(found.without(*removed), found.name, case)
        if outcome is None:  # then it matters who is fast, such as a CTA with nothing to store
            outcome = attempt(found.without(*removed), found.name, case, seed=1)
        kinds = RaceFault, UninitializedFault, MemoryFault, BarrierFault, DeadlockFault
        expect(outcome, kinds, found.name, f"without line {place.line}")


@engines("pair")
def test_engine_leaves_a_cluster(pick):
    found = engine(pick)
    *_, last = found.all(r"barrier\.cluster\.wait")
    outcome = attempt(found.without(last), found.name, whole(found.spec), seed=1)
    fault = expect(outcome, (MemoryFault,), found.name, f"without line {last.line}")
    assert "all of whose threads have exited" in str(fault)


@engines("workspace", "two")
def test_engine_removed_warp_barrier(pick):
    found, spec = engine(pick), engine(pick).spec
    case = replace(walk(spec), k=spec.bk)
    for place in some(found.run_by(r"bar\.warp\.sync", case)):
        outcome = attempt(found.without(place), found.name, case, device=FewCtas())
        expect(outcome, (RaceFault,), found.name, f"without line {place.line}")


# -- copies -----------------------------------------------------------------------------


@engines("pair")
def test_engine_wrong_multicast(pick):
    found = engine(pick)
    case = short(found.spec)
    copies = found.run_by(r"cp\.async\.bulk\.tensor.*multicast", case)
    for place in copies[:1]:
        mask = re.search(r"%rs\d+;", place.text)[0]
        alone = place.text.replace(f", {mask}", ";").replace(".multicast::cluster", "")
        for text, kind in (
            (place.text.replace(mask, "1;"), DeadlockFault),
            (place.text.replace(mask, "2;"), DeadlockFault),
            (place.text.replace(mask, "7;"), MemoryFault),
            (alone, DeadlockFault),
        ):
            outcome = attempt(found.with_line(place, text), found.name, case)
            fault = expect(outcome, (kind,), found.name, text, address=False)
            assert kind is DeadlockFault or "multicast to rank 2" in str(fault)


@engines("workspace")
def test_engine_wrong_copy(pick):
    found, spec = engine(pick), engine(pick).spec
    case = short(spec)
    copies = found.run_by(r"cp\.async\.bulk\.tensor", case)
    assert len(copies) == spec.a.boxes + spec.b.boxes
    for place in (copies[0], copies[-1]):  # of A, of B
        x, y = re.search(r"\{ (%r\d+), (%r\d+) \}", place.text).groups()
        for one, there in ((x, f"{{ {x},"), (y, f", {y} }}")):
            text = place.text.replace(there, there.replace(one, "%other"))
            text = f"{{ .reg .b32 %other; add.s32 %other, {one}, 1; {text} }}"
            outcome = attempt(found.with_line(place, text), found.name, case)
            assert outcome == BITS, f"line {place.line} is now {text}: {outcome!r}"
        outcome = attempt(found.with_line(place, moved(place.text, 16)), found.name, case)
        fault = expect(outcome, (MemoryFault,), found.name, "16 bytes off")
        assert fault.line == place.line and "misaligned" in str(fault)
        text = moved(place.text, spec.stages * (spec.a.bytes + spec.b.bytes))
        outcome = attempt(found.with_line(place, text), found.name, case)
        expect(outcome, SHARED, found.name, text, address=False)
        # The mbarrier of the next stage hears of it.
        text = re.sub(r"\], \[(%r\d+)\]", r"], [\1+8]", place.text)
        outcome = attempt(found.with_line(place, text), found.name, case)
        kinds = DeadlockFault, RaceFault, UninitializedFault
        expect(outcome, kinds, found.name, text)
        outcome = attempt(found.without(place), found.name, case)
        expect(outcome, (DeadlockFault,), found.name, f"without line {place.line}")


class OtherMaps(CpuDevice):
    """A device whose tensor maps of operand ``which`` are changed."""

    def __init__(self, which, change):
        super().__init__()
        self.which, self.change = which, change

    def tensor_map(self, box, pointer):
        if box.pointer == self.which:
            box, pointer = self.change(box, pointer)
        return super().tensor_map(box, pointer)


MAPS = {
    "one row less of the box": lambda b, p: (
        replace(b, box=(b.box[0], b.box[1] - 1, *b.box[2:])),
        p,
    ),
    "the next row": lambda b, p: (b, p + b.pitches[0]),
    "the next vector": lambda b, p: (b, p + 16),
    "rows apart": lambda b, p: (replace(b, pitches=(b.pitches[0] + 16, *b.pitches[1:])), p),
    "more rows": lambda b, p: (replace(b, size=(b.size[0], 2 * b.size[1], *b.size[2:])), p + 16),
    "other swizzle": lambda b, p: (replace(b, swizzle={128: 0, 64: 128, 32: 64}[b.swizzle]), p),
    "fewer columns": lambda b, p: (replace(b, size=(b.size[0] - 8, *b.size[1:])), p),
    "fewer rows": lambda b, p: (replace(b, size=(b.size[0], b.size[1] - 1, *b.size[2:])), p),
}
"""Wrong tensor maps."""


@pytest.mark.parametrize(("pick", "which"), [("one", 1), ("workspace", 0)])
def test_engine_wrong_map(pick, which):
    found = engine(pick)
    case = short(found.spec)
    executed(found.name, case)  # and so the maps are right
    for what, change in MAPS.items():
        device = OtherMaps(which, change)
        outcome = attempt("\n".join(found.lines), found.name, case, device=device)
        kinds = BITS, MemoryFault, UninitializedFault
        if "box" in what:  # and so fewer bytes
            kinds = (DeadlockFault,)
        expect(outcome, kinds, found.name, what)


# -- results ----------------------------------------------------------------------------


@engines("one")
def test_engine_exchange(pick):
    found, spec = engine(pick), engine(pick).spec
    case = short(spec)
    stores = found.run_by(r"stmatrix|st\.shared", case)
    loads = found.run_by(r"ld\.shared", case)
    assert stores and loads
    for place in (stores[0], loads[0]):
        for nbytes in (16, 4):
            text = moved(place.text, nbytes)
            outcome = attempt(found.with_line(place, text), found.name, case)
            fault = expect(outcome, SHARED if nbytes == 16 else (MemoryFault,), found.name, text)
            assert nbytes == 16 or "misaligned" in str(fault)


SOURCES = {
    "outputs": ("if (i >= m || j >= n) continue;", "", SHARED),
    "rows of a tile": ("row < rows_left && ", "", SHARED),
    "columns of a tile": (" && column < columns_left", "", (MemoryFault, BITS)),
    "cut vectors": ("n % 8 == 0 && steps % 8 == 0", "steps % 8 == 0", (MemoryFault, BITS)),
    "a fence for each tile": (
        r"\bwgmma_fence\(\);(?=\s+#)",
        "if (k0 != begin || (slot == 0 && phase == 0)) wgmma_fence();",
        (RaceFault,),
    ),
    "sums begin": (", s != 0 || k0 != begin)", ", s != 0 || k0 != begin || phase)", (BITS,)),
    "sums go on": (", s != 0 || k0 != begin)", ", s != 0)", (BITS,)),
    "what is released": ("release(last);", "release(slot);", (RaceFault, DeadlockFault)),
    "who releases": (
        "if (thread == 0) barrier_arrive(bar);",
        "if (thread <= 1) barrier_arrive(bar);",
        (RaceFault, BarrierFault, DeadlockFault),
    ),
    "the ring": (r"(last = slot;\s+if \(\+\+slot == STAGES)", r"\1 - 1", (*SHARED, DeadlockFault)),
    "its phase": (
        r"(last = slot;\s+if \(\+\+slot == STAGES\) \{\s+slot = 0;\s+phase \^=) 1",
        r"\1 0",
        SHARED,
    ),
    "a part of a tile": ("+ panel * ", "+ (panel ^ 1) * ", SHARED),
    "what is stored": (r"__fadd_rn\((acc\[f\]\[.*?\]|d\[q\]), 0.0f\)", r"\1 * 2", (BITS,)),
}
"""Planted faults of wgmma kernels by name: text or pattern, replacement, possible outcomes."""


@pytest.mark.long
@engines("one chain")
def test_engine_source(pick):
    found, spec = engine(pick), engine(pick).spec
    edges = cut(spec)
    last = walk(spec)
    vectors = replace(whole(spec), m=spec.bm - 1, n=spec.bn - 8, exact=True)  # end behind them
    padded = replace(vectors, n=spec.bn - 3, extra=3, exact=False)
    cases = edges, replace(edges, exact=False, extra=1), vectors, padded, last
    for case in cases:
        executed(found.name, case)
    planted = 0
    for what, (old, new, kinds) in SOURCES.items():
        text = in_source(spec, old, new)
        if text is None:
            continue
        planted += 1
        for case in cases:
            outcome = attempt(text, found.name, case, device=FewCtas())
            if outcome is not None:
                break
        expect(outcome, kinds, found.name, what, text=text, address=False)
    assert planted >= 6
