"""Data that CTAs hand to each other through global memory: who waits, and what is ordered.

The first CTA loads what the second stores. ``%rd0`` is the data, ``%rd1`` the flag, ``%rd2`` the
result; ``%r1`` is the CTA's number, ``%p0`` true in all threads but the first.
"""

from __future__ import annotations

import random
import re
from functools import partial

import numpy as np
import pytest
from interp_snippet import module, run

from ptxgen.errors import DeadlockFault, RaceFault
from ptxgen.interp import GlobalMemory
from ptxgen.interp.memory.causality import GlobalHistory
from ptxgen.interp.memory.race import Conflict, SharedHistory
from ptxgen.interp.run import program
from ptxgen.interp.text.ptx import Instruction

SETTINGS = pytest.mark.parametrize("settings", [{}, {"seed": 1}, {"seed": 2, "early": True}])
THREADS = 64
BYTES = 16 * THREADS

START = """
    mov.u32 %r1, %ctaid.x;
    mad.wide.u32 %rd3, %r0, 16, %rd0;
    mad.wide.u32 %rd4, %r0, 16, %rd2;
    setp.ne.u32 %p0, %r0, 0;
    setp.eq.u32 %p1, %r1, 0;
    mov.u32 %r8, tile;
    mov.u32 %r9, bar;
    mad.lo.u32 %r10, %r0, 16, %r8;
"""
WAIT = """
    @%p0 bra waited{0};
again{0}:
    ld.acquire.gpu.global.u32 %r3, [%rd1];
    setp.ne.u32 %p2, %r3, {1};
    @%p2 bra again{0};
waited{0}:
    bar.warp.sync -1;
    bar.sync 0;
"""
SIGNAL = """
    bar.sync 0;
    @%p0 bra told{0};
    st.release.gpu.global.u32 [%rd1], {1};
told{0}:
    bar.warp.sync -1;
"""
LOAD = "    ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd3];\n"
KEEP = "    st.global.v4.u32 [%rd4], {%r4, %r5, %r6, %r7};\n"
STORE = "    st.global.v4.u32 [%rd3], {%r0, %r1, %r0, %r1};\n"

HANDED = f"""{START}
    @%p1 bra reader;
{STORE}{SIGNAL.format("a", 1)}
    ret;
reader:{WAIT.format("b", 1)}
    st.relaxed.gpu.global.u32 [%rd1], 0;
{LOAD}{KEEP}"""

HEAD = f".shared .align 16 .b8 tile[{BYTES}];\n.shared .align 8 .b64 bar;\n"
BULK = f"""{START}
    @%p1 bra reader;
    st.shared.v4.u32 [%r10], {{%r0, %r1, %r0, %r1}};
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%p0 bra told;
    cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r8], {BYTES};
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    st.release.gpu.global.u32 [%rd1], 1;
    cp.async.bulk.wait_group.read 0;
told:
    ret;
reader:{WAIT.format("b", 1)}
{LOAD}{KEEP}"""

FETCH = f"""
    @%p0 bra init;
    mbarrier.init.shared::cta.b64 [%r9], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9], {BYTES};
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r8], [%rd0], {BYTES}, [%r9];
init:
    bar.warp.sync -1;
    bar.sync 0;
landed:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r9], 0;
    @!%p3 bra landed;
    ld.shared.v4.u32 {{%r4, %r5, %r6, %r7}}, [%r10];
"""
"""A bulk load of the data, by the first thread."""


def changed(text: str, *pairs: tuple[str, str]) -> str:
    """The text with the first of each pair, which it has once, replaced by the second."""
    for old, new in pairs:
        assert text.count(old) == 1, f"{text.count(old)} times: {old}"
        text = text.replace(old, new)
    return text


def handed(text: str, *, flag: int = 0, grid: int = 2, **settings: object) -> np.ndarray:
    """The result, a row for each thread, of a launch with these contents of the flag."""
    inputs = [np.zeros(4 * THREADS, np.uint32), np.full(1, flag, np.uint32)]
    out = np.zeros(4 * THREADS, np.uint32)
    result = run(text, inputs, out, grid=grid, block=THREADS, head=HEAD, **settings)
    return result.reshape(THREADS, 4)


def check(text: str, writer: int = 1, **settings: object) -> None:
    wanted = np.stack([np.arange(THREADS), np.full(THREADS, writer)] * 2, axis=1)
    np.testing.assert_array_equal(handed(text, **settings), wanted)


def refused(text: str, later: str, earlier: str, said: str = "not ordered with", **of: object):
    """Checks that a launch ends with a race that names both instructions, one of them a write."""
    with pytest.raises(RaceFault) as caught:
        handed(text, **of)
    fault = caught.value
    assert re.match(later, fault.text), fault
    other = re.search(rf"line (\d+) \(({earlier}.*?)\)", str(fault))
    assert other and int(other[1]) != fault.line, fault
    assert re.search(r"\bst\.|\bcp\.", f"{fault.text} {other[2]}"), fault
    assert said in str(fault) and fault.address is not None and fault.cta is not None


# -- stores and loads of threads --------------------------------------------------------

RELAXED = (("st.release.gpu", "st.relaxed.gpu"),)
UNACQUIRED = (("ld.acquire.gpu", "ld.relaxed.gpu"),)
BEHIND = ("    @%p0 bra tolda;", "    fence.acq_rel.gpu;\n    @%p0 bra tolda;")
BEFORE = ("waitedb:", "    fence.acq_rel.gpu;\nwaitedb:")


@SETTINGS
@pytest.mark.parametrize(
    "changes",
    [
        (),
        (("st.release.gpu", "st.release.sys"),),
        (*RELAXED, BEHIND),
        (*RELAXED, (BEHIND[0], BEHIND[1].replace("fence.acq_rel.gpu", "membar.gl"))),
        (*UNACQUIRED, BEFORE),
        (*RELAXED, BEHIND, *UNACQUIRED, BEFORE),
        (("st.release.gpu.global.u32 [%rd1], 1", "red.release.gpu.global.add.u32 [%rd1], 1"),),
        (
            (
                "ld.acquire.gpu.global.u32 %r3, [%rd1]",
                "atom.acquire.gpu.global.or.b32 %r3, [%rd1], 0",
            ),
        ),
    ],
)
def test_handed_over(changes, settings) -> None:
    check(changed(HANDED, *changes), **settings)


DATA = r"st\.global\.v4"
EITHER = r"(ld|st)\.global\.v4"
FLAG = r"(ld|st)\.(acquire|release|global)[.\w]* .*%rd1\]"


@SETTINGS
@pytest.mark.parametrize(
    ("changes", "places"),
    [
        (RELAXED, EITHER),
        (UNACQUIRED, EITHER),
        ((*RELAXED, (BEHIND[0], BEHIND[1].replace(".gpu", ".cta"))), EITHER),
        ((*UNACQUIRED, (BEFORE[0], BEFORE[1].replace(".gpu", ".cta"))), EITHER),
        # A barrier is missing before the release, or after the acquire:
        ((("    bar.sync 0;\n    @%p0 bra tolda;", "    @%p0 bra tolda;"),), EITHER),
        ((("    bar.sync 0;\n\n    st.relaxed", "    st.relaxed"),), EITHER),
        # The flag is accessed as if no other CTA did:
        ((("st.release.gpu", "st.release.cta"),), FLAG),
        ((("ld.acquire.gpu", "ld.acquire.cta"),), FLAG),
        ((("st.release.gpu", "st"),), FLAG),
        ((("ld.acquire.gpu", "ld"),), FLAG),
        # The flag is set as two bytes and read as four:
        ((("st.release.gpu.global.u32", "st.release.gpu.global.u16"),), FLAG),
    ],
)
def test_unordered(changes, places, settings) -> None:
    refused(changed(HANDED, *changes), places, places, **settings)


@SETTINGS
def test_flags_that_differ_in_bits_alone(settings) -> None:
    """A store of -0.0 over +0.0 changes the flag."""
    text = HANDED.replace(SIGNAL.format("a", 1), SIGNAL.format("a", "0f80000000"))
    text = text.replace(WAIT.format("b", 1), WAIT.format("b", "0x80000000"))
    check(changed(text, ("release.gpu.global.u32", "release.gpu.global.f32")), **settings)


@SETTINGS
def test_a_flag_that_is_still_set(settings) -> None:
    """The launch before has left it so, and no load tells the two values from each other."""
    refused(HANDED, EITHER, EITHER, flag=1, **settings)


def test_non_coherent_loads() -> None:
    text = changed(HANDED, ("ld.global.v4", "ld.global.nc.v4"))
    refused(text, r"ld\.global\.nc", DATA, "takes memory that is only read")


# -- data that is written again ---------------------------------------------------------

AGAIN = f"""{START}
    @%p1 bra reader;
{STORE}{SIGNAL.format("a", 1)}{WAIT.format("b", 0)}
    add.u32 %r1, %r1, 4;
{STORE}{SIGNAL.format("c", 2)}
    ret;
reader:{WAIT.format("d", 1)}{LOAD}{SIGNAL.format("e", 0)}{WAIT.format("f", 2)}{LOAD}{KEEP}"""


@SETTINGS
def test_written_again(settings) -> None:
    check(AGAIN, writer=5, **settings)


@SETTINGS
@pytest.mark.parametrize(
    "change",
    [
        ("st.release.gpu.global.u32 [%rd1], 0", "st.relaxed.gpu.global.u32 [%rd1], 0"),
        ("againb:\n    ld.acquire", "againb:\n    ld.relaxed"),
        ("    bar.sync 0;\n    @%p0 bra tolde;", "    @%p0 bra tolde;"),
    ],
)
def test_written_before_it_is_read(change, settings) -> None:
    """The reader's release, the writer's acquire or the reader's barrier is missing."""
    refused(changed(AGAIN, change), DATA, r"ld\.global\.v4", **settings)


# -- bulk copies ------------------------------------------------------------------------

FETCHED = changed(BULK, (LOAD, FETCH))
STORES = changed(HANDED, (LOAD, FETCH))
PROXY = "    fence.proxy.async.global;\n"
COPY = r"cp\.async\.bulk"
WAITS = "    cp.async.bulk.wait_group 0;\n"


@SETTINGS
@pytest.mark.parametrize(
    "text",
    [
        BULK,
        FETCHED,  # completion is a proxy fence
        changed(STORES, (SIGNAL.format("a", 1), PROXY + SIGNAL.format("a", 1))),
        changed(STORES, (FETCH, PROXY + FETCH)),
        changed(STORES, (FETCH, PROXY.replace(".global", "") + FETCH)),
    ],
)
def test_bulk_copies(text, settings) -> None:
    check(text, **settings)


@SETTINGS
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (changed(BULK, (WAITS, "")), "wait_group without .read"),
        (changed(BULK, (WAITS, WAITS.replace(" 0", ".read 0"))), "wait_group without .read"),
        (changed(BULK, (WAITS, WAITS.replace(" 0", " 1"))), "wait_group without .read"),
        (changed(FETCHED, (WAITS, WAITS.replace(" 0", ".read 0"))), "wait_group without .read"),
        (changed(BULK, ("st.release", "st.relaxed")), "not ordered with the write"),
        (changed(BULK, ("    fence.proxy.async.shared::cta;\n", "")), "proxy.async is missing"),
        (STORES, "fence.proxy.async is missing in between"),
        (changed(STORES, (FETCH, PROXY.replace("global", "shared::cta") + FETCH)), "is missing"),
    ],
)
def test_bulk_copies_too_early(text, said, settings) -> None:
    later = "(ld|cp)" if "[%rd3], {" not in text else COPY
    refused(text, later, "(st|cp)", said, **settings)


@SETTINGS
@pytest.mark.parametrize("waited", [True, False])
def test_written_while_a_bulk_copy_reads(waited, settings) -> None:
    """The reader signals before its copy has landed, and then the writer writes again."""
    signal = SIGNAL.format("e", 0)
    landed = FETCH.index("landed:")
    late, early = PROXY + FETCH + signal, PROXY + FETCH[:landed] + signal + FETCH[landed:]
    text = changed(AGAIN, (LOAD + signal, late if waited else early))
    if waited:
        check(text, writer=5, **settings)
    else:
        refused(text, DATA, COPY, **settings)


# -- several CTAs -----------------------------------------------------------------------

COUNTED = f"""{START}
    mov.u32 %r11, %nctaid.x;
    sub.u32 %r11, %r11, 1;
    @%p1 bra reader;
    rem.u32 %r12, %r0, %r11;
    add.u32 %r12, %r12, 1;
    setp.eq.u32 %p4, %r12, %r1;
    @%p4 st.global.v4.u32 [%rd3], {{%r0, %r1, %r0, %r1}};
{SIGNAL.format("a", 1).replace("st.release.gpu.global", "red.release.gpu.global.add")}
    ret;
reader:{WAIT.format("b", "%r11")}
{LOAD}{KEEP}"""
"""Each CTA but the first stores its rows and counts up; the first waits for all."""


@SETTINGS
def test_a_counter_of_arrivals(settings) -> None:
    got = handed(COUNTED, grid=4, **settings)
    np.testing.assert_array_equal(got[:, 1], np.arange(THREADS) % 3 + 1)
    places = r"(@%p4 st|ld)\.global\.v4"
    refused(changed(COUNTED, ("red.release", "red.relaxed")), places, places, grid=4, **settings)


def test_a_store_drops_what_others_have_released() -> None:
    """The last CTA stores the number that the others have counted up to, plus one."""
    add = "    red.release.gpu.global.add.u32 [%rd1], 1;\n"
    text = changed(
        COUNTED,
        (add, f"    setp.eq.u32 %p5, %r1, 3;\n    @%p5 bra last;\n{add}    bra toldb;\n"
              "last:\n    ld.relaxed.gpu.global.u32 %r3, [%rd1];\n"
              "    setp.ne.u32 %p2, %r3, 2;\n    @%p2 bra last;\n"
              "    st.release.gpu.global.u32 [%rd1], 3;\ntoldb:\n"),
    )  # fmt: skip
    places = r"(@%p4 st|ld)\.global\.v4"
    refused(text, places, places, grid=4)
    got = handed(changed(text, ("ld.relaxed", "ld.acquire")), grid=4)
    np.testing.assert_array_equal(got[:, 1], np.arange(THREADS) % 3 + 1)


RELAYED = f"""{START}
    mov.u32 %r11, %nctaid.x;
    sub.u32 %r11, %r11, %r1;
    sub.u32 %r12, %r11, 1;
    setp.ne.u32 %p4, %r12, 0;
    @%p4 bra waits;
{STORE}
    bra tells;
waits:{WAIT.format("a", "%r12")}
    @%p1 bra reader;
tells:{SIGNAL.format("b", "%r11")}
    ret;
reader:
{LOAD}{KEEP}"""
"""The last CTA stores, each waits for the one behind it, and the first loads."""


@SETTINGS
def test_a_chain_of_ctas(settings) -> None:
    check(RELAYED, writer=4, grid=5, **settings)
    refused(changed(RELAYED, ("ld.acquire", "ld.relaxed")), EITHER, EITHER, grid=5, **settings)


CLUSTERS = f"""{START}
    shr.u32 %r11, %r1, 1;
    setp.eq.u32 %p1, %r11, 0;
    and.b32 %r12, %r1, 1;
    setp.ne.u32 %p4, %r12, 0;
    or.pred %p0, %p0, %p4;
    @%p1 bra reader;
    @!%p4 bra tells;
{STORE}
tells:
    barrier.cluster.arrive;
    barrier.cluster.wait;{SIGNAL.format("a", 1)}
    ret;
reader:{WAIT.format("b", 1)}
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @!%p4 bra done;
{LOAD}{KEEP}
done:
"""
"""The last CTA stores, the third tells the first, and the second loads: two clusters of two."""


@SETTINGS
def test_clusters(settings) -> None:
    pairs = {"grid": 4, "directives": ".explicitcluster .reqnctapercluster 2, 1, 1", **settings}
    check(CLUSTERS, writer=3, **pairs)
    for barrier in ("barrier.cluster.arrive;", "barrier.cluster.arrive.aligned;"):
        relaxed = barrier.replace("arrive", "arrive.relaxed")
        refused(changed(CLUSTERS, (barrier, relaxed)), EITHER, EITHER, **pairs)


@pytest.mark.parametrize(("size", "a_sm", "most"), [(2, 1, 66), (7, 1, 15), (8, 1, 15), (8, 2, 30)])
def test_clusters_that_a_gpu_certainly_runs_at_a_time(size: int, a_sm: int, most: int) -> None:
    """Clusters of more than two CTAs do not cross the boundary of a GPC."""
    cluster = f".minnctapersm {a_sm}\n.explicitcluster .reqnctapercluster {size}, 1, 1"
    text = module("", directives=cluster)
    assert program.decode(text, "main", GlobalMemory(), 90).resident_clusters == most


# -- waiting ----------------------------------------------------------------------------


@SETTINGS
def test_a_flag_that_nobody_sets(settings) -> None:
    text = changed(HANDED, ("    st.release.gpu.global.u32 [%rd1], 1;\n", ""))
    with pytest.raises(
        DeadlockFault, match=r"1 threads at line \d+ \(ld\.acquire.*64 threads have"
    ):
        handed(text, **settings)


@SETTINGS
def test_more_ctas_than_a_gpu_runs_at_a_time(settings, monkeypatch) -> None:
    """A CTA may wait for those before it, but not for one that needs its place."""
    monkeypatch.setattr(program, "CPU_DEVICE_SMS", 2)
    text = changed(HANDED, ("setp.eq.u32 %p1, %r1, 0", "setp.ne.u32 %p1, %r1, 0"), (LOAD, ""))
    text = changed(text, ("    st.relaxed.gpu.global.u32 [%rd1], 0;\n", ""), (KEEP, ""))
    assert not handed(text, grid=7, **settings).any()
    with pytest.raises(DeadlockFault, match="3 CTAs have not started"):
        handed(changed(RELAYED, ("%p1, %r1, 0", "%p1, %r1, 9")), grid=5, **settings)


def test_a_poll_that_gives_up() -> None:
    """A load that polls is executed again where nothing else can run, and then nobody waits."""
    text = changed(
        HANDED,
        ("    st.release.gpu.global.u32 [%rd1], 1;\n", ""),
        ("reader:", "reader:\n    mov.u32 %r13, 0;"),
        ("againb:\n", "againb:\n    add.u32 %r13, %r13, 1;\n"
                       "    setp.gt.u32 %p6, %r13, 50;\n    @%p6 bra waitedb;\n"),
        (LOAD, "    mov.u32 %r4, %r13;\n"),
        (KEEP, "    st.global.u32 [%rd4], %r4;\n"),
    )  # fmt: skip
    assert handed(text)[0, 0] == 51


# -- against plain vector clocks --------------------------------------------------------


class Model:
    """Vector clocks of every thread, and a list of all accesses."""

    def __init__(self, ctas: int, threads: int) -> None:
        self.threads = threads
        self.clock = np.eye(ctas * threads, dtype=np.int64)
        self.flags: dict[int, np.ndarray] = {}
        self.log: list[tuple[int, int, set[int], bool]] = []

    def join(self, lanes: list[int]) -> None:
        self.clock[lanes] = self.clock[lanes].max(axis=0)
        self.clock[lanes, lanes] += 1

    def access(self, lanes: list[int], touched: set[int], writes: bool) -> bool:
        """Records accesses if they are ordered behind all that conflict with them; returns that."""
        for other, time, others, wrote in self.log:
            known = self.clock[lanes, other].min()
            if (writes or wrote) and touched & others and known < time:
                return False
        self.log += [(x, int(self.clock[x, x]), touched, writes) for x in lanes]
        return True

    def release(self, lane: int, flag: int, *, atomic: bool) -> None:
        known = self.clock[lane].copy()
        if atomic and flag in self.flags:
            known = np.maximum(known, self.flags[flag])
        self.flags[flag] = known
        self.clock[lane, lane] += 1

    def acquire(self, lane: int, flag: int) -> None:
        if flag in self.flags:
            own = self.clock[lane, lane]
            self.clock[lane] = np.maximum(self.clock[lane], self.flags[flag])
            self.clock[lane, lane] = own


def instruction(text: str) -> Instruction:
    opcode, *modifiers = text.split(".")
    return Instruction(opcode, tuple(modifiers), ())


@pytest.mark.parametrize("seed", range(12))
def test_against_vector_clocks(seed: int) -> None:
    """Random accesses of all widths in two CTAs of two warps. A refused one leaves no trace."""
    draw = random.Random(seed)
    ctas, threads = 2, 64
    memory = GlobalMemory()
    data, flags = memory.alloc(64), memory.alloc(64)
    for _ in range(6):
        history, model = SharedHistory(ctas, threads, 16, 4), Model(ctas, threads)
        checked = GlobalHistory(history, threads)
        few = draw.sample(range(ctas * threads), 6)
        for site in range(1, 80):
            lane, what = draw.choice(few), draw.random()
            lanes, new = np.array([lane]), np.array([False])
            if what < 0.5:
                width, writes = draw.choice((1, 2, 4, 8, 16)), draw.random() < 0.4
                if not writes:
                    lanes = np.array(draw.sample(few, draw.choice((1, 1, 3))))
                at = draw.randrange(0, 48, width)
                access = instruction("st.global.u8" if writes else "ld.global.u8")
                call = partial(checked.write, same=new) if writes else checked.read
                fine = model.access(lanes.tolist(), set(range(at, at + width)), writes)
                found = None
                try:
                    call(data, np.full(len(lanes), at), lanes, width, site, access)
                except Conflict as conflict:
                    found = conflict.kind
                assert found == (None if fine else "race")
            elif what < 0.6:
                cta = lane // threads
                history.barrier(np.array([cta]))
                model.join([*range(cta * threads, (cta + 1) * threads)])
            elif what < 0.65:
                warp = lane // 32 * 32 + np.arange(32)
                history.sync(warp[None])
                model.join(warp.tolist())
            else:
                flag, atomic = 4 * draw.randrange(2), draw.random() < 0.3
                opcode = draw.choice((("red" if atomic else "st") + ".release", "ld.acquire"))
                access, at = instruction(f"{opcode}.gpu.global.u32"), np.array([flag])
                if opcode == "ld.acquire":
                    checked.read(flags, at, lanes, 4, site, access)
                    model.acquire(lane, flag)
                else:
                    checked.write(flags, at, lanes, 4, site, access, same=new)
                    model.release(lane, flag, atomic=atomic)
