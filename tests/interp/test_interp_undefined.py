"""Undefined values: what carries them on, what uses them, and what is never undefined."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from interp_snippet import module, run

from ptxgen.errors import UninitializedFault
from ptxgen.golden import checkout_folder
from ptxgen.interp.text import flow
from ptxgen.interp.text.ptx import parse

WORDS = np.zeros(32, np.uint32)
ORDERS = [{}, {"early": True}, {"seed": 1}, {"seed": 2}]
EVEN = """
    and.b32 %r1, %r0, 1;
    setp.eq.u32 %p1, %r1, 0;
    not.pred %p2, %p1;
    mad.wide.u32 %rd9, %r0, 4, %rd0;
    @%p1 add.u32 %r2, %r0, 100;
    @%p1 setp.lt.u32 %p3, %r0, 16;
    @%p1 mov.b64 %rd2, %rd9;
"""
"""%r2 (100 + lane), %p3 and %rd2 are defined in even lanes, in which %p1 is; %rd9: lane's word."""
LANE = np.arange(32, dtype=np.uint32)
FULL = "0xffffffff"


def fault(body: str, line: str, lane: int = 1, source: str = "%r2", **how: Any) -> str:
    """The message of the fault at ``line`` of ``body``, which all lanes but ``lane`` may pass."""
    with pytest.raises(UninitializedFault, match="which nothing has written") as caught:
        run(EVEN + body, out=WORDS, **how)
    assert caught.value.text == line.strip(), caught.value
    assert caught.value.lane == lane, caught.value
    assert f"register {source}, which nothing has written" in str(caught.value)
    return str(caught.value)


# -- what carries them on -----------------------------------------------------------------
CARRIED = {
    "add.u32 %r3, %r2, 1;": LANE + 101,
    "mov.u32 %r3, %r2;": LANE + 100,
    "sub.u32 %r3, %r2, %r2;": LANE * 0,
    "mul.lo.u32 %r3, 0, %r2;": LANE * 0,
    "mad.lo.u32 %r3, %r0, 2, %r2;": LANE * 3 + 100,
    "shl.b32 %r3, %r0, %r2;": LANE * 0,
    "xor.b32 %r3, %r2, %r2;": LANE * 0,
    "and.b32 %r3, %r2, 127;": (LANE + 100) & 127,
    "or.b32 %r3, 0, %r2;": LANE + 100,
    "lop3.b32 %r3, %r2, 0, 0, 0xF0;": LANE + 100,
    "popc.b32 %r4, %r2; mov.u32 %r3, 1;": None,
    "cvt.u64.u32 %rd5, %r2; cvt.u32.u64 %r3, %rd5;": LANE + 100,
    "mov.b64 %rd5, {%r0, %r2}; mov.b64 {_, %r3}, %rd5;": LANE + 100,
    "mov.b64 %rd5, {%r0, %r2}; mov.b64 {%r3, _}, %rd5;": LANE,  # a register is or is not
    "cvta.global.u64 %rd5, %rd2; sub.u64 %rd5, %rd5, %rd0; cvt.u32.u64 %r3, %rd5;": LANE * 4,
    "isspacep.global %p5, %rd2; selp.u32 %r3, 1, 0, %p5;": LANE * 0 + 1,
    "set.lt.u32.u32 %r3, %r2, 50;": LANE * 0,
    "setp.gt.u32 %p5, %r2, 115; selp.u32 %r3, 1, 0, %p5;": (LANE > 15).astype(np.uint32),
    "setp.lt.and.u32 %p5, %r0, 0, %p3; selp.u32 %r3, 1, 0, %p5;": LANE * 0,
    "not.pred %p5, %p3; selp.u32 %r3, 1, 0, %p5;": (LANE > 15).astype(np.uint32),
    "slct.u32.s32 %r3, 7, %r2, 1;": LANE * 0 + 7,
    "cvt.rn.f32.u32 %f1, %r2; fma.rn.f32 %f2, %f1, 0f40000000, %f1; cvt.rzi.u32.f32 %r3, %f2;": (
        3 * (LANE + 100)
    ),
}
"""Pure instructions, from %r2, %p3 or %rd2 to %r3, and what that is in even lanes."""


@pytest.mark.parametrize("line", CARRIED)
def test_what_is_made_of_an_undefined_value_is_undefined(line: str) -> None:
    """Computing with an undefined value is no error, nor is storing lanes where the result is
    defined.
    """
    wanted = CARRIED[line]
    if wanted is None:  # %r4 is never used
        assert run(EVEN + f"{line} st.global.u32 [%rd9], %r3;", out=WORDS).tolist() == [1] * 32
        return
    store = "st.global.u32 [%rd9], %r3;"
    got = run(EVEN + f"{line} @%p1 {store}", out=WORDS)
    np.testing.assert_array_equal(got, np.where(LANE % 2, 0, wanted))
    source = next(r for r in ("%rd2", "%r2", "%p3") if r in line)
    said = fault(f"{line} {store}", store, source=source)
    assert "use of register %r3, made of register" in said


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("selp.u32 %r3, %r2, 7, %p1;", np.where(LANE % 2, 7, LANE + 100)),
        ("selp.u32 %r3, 7, %r2, %p2;", np.where(LANE % 2, 7, LANE + 100)),
        ("selp.u32 %r3, %r2, 7, %p2;", None),
        ("selp.u32 %r3, 7, %r2, %p1;", None),
        ("selp.u32 %r3, 7, 7, %p3;", None),
        ("and.pred %p5, %p1, %p3; selp.u32 %r3, 1, 0, %p5;", (LANE % 2 == 0) & (LANE < 16)),
        ("and.pred %p5, %p3, %p1; selp.u32 %r3, 1, 0, %p5;", (LANE % 2 == 0) & (LANE < 16)),
        ("or.pred %p5, %p2, %p3; selp.u32 %r3, 1, 0, %p5;", (LANE % 2 == 1) | (LANE < 16)),
        ("or.pred %p5, %p3, %p2; selp.u32 %r3, 1, 0, %p5;", (LANE % 2 == 1) | (LANE < 16)),
        ("and.pred %p5, %p2, %p3; selp.u32 %r3, 1, 0, %p5;", None),
        ("or.pred %p5, %p1, %p3; selp.u32 %r3, 1, 0, %p5;", None),
        ("and.pred %p5, %p3, %p3; selp.u32 %r3, 1, 0, %p5;", None),
        ("and.b32 %r3, %r2, 0;", LANE * 0),
        ("xor.b32 %r4, %r1, 1; and.b32 %r3, %r2, %r4;", np.where(LANE % 2, 0, LANE & 1)),
        ("and.b32 %r3, %r2, %r1;", None),
        ("or.b32 %r3, %r2, -1;", LANE * 0 + 0xFFFFFFFF),
        ("neg.s32 %r4, %r1; or.b32 %r3, %r2, %r4;", np.where(LANE % 2, 0xFFFFFFFF, LANE + 100)),
        ("or.b32 %r3, %r2, 0x7fffffff;", None),
    ],
)
def test_operands_that_do_not_decide(line: str, wanted: Any) -> None:
    """selp takes what it chooses; 0 decides ``and``, all ones ``or``, if these are defined."""
    store = "st.global.u32 [%rd9], %r3;"
    if wanted is None:
        fault(f"{line} {store}", store, source="%p3" if "%p3" in line else "%r2")
    else:
        got = run(EVEN + f"{line} {store}", out=WORDS)
        np.testing.assert_array_equal(got, np.asarray(wanted).astype(np.uint32))


def test_a_shuffle_carries_the_value_of_the_lane_it_reads() -> None:
    store = "st.global.u32 [%rd9], %r3;"
    got = run(EVEN + f"shfl.sync.idx.b32 %r3, %r2, 6, 31, {FULL}; {store}", out=WORDS)
    assert (got == 106).all()
    swap = f"shfl.sync.bfly.b32 %r3|%p5, %r2, 1, 31, {FULL};"
    got = run(EVEN + f"{swap} @%p2 {store}", out=WORDS)
    np.testing.assert_array_equal(got, np.where(LANE % 2, LANE + 99, 0))
    said = fault(f"{swap} {store}", store, lane=0)
    assert "use of register %r3, made of register %r2" in said
    predicate = f"{swap} selp.u32 %r3, 1, 0, %p5; {store}"
    assert (run(EVEN + predicate, out=WORDS) == 1).all()
    into_itself = f"shfl.sync.idx.b32 %r2, %r2, 0, 31, {FULL}; st.global.u32 [%rd9], %r2;"
    assert (run(EVEN + into_itself, out=WORDS) == 100).all()
    both = f"shfl.sync.idx.b32 %r3, %r0, 2, 31, {FULL}; {store}"
    assert (run(EVEN + both, out=WORDS) == 2).all()


# -- what uses them -----------------------------------------------------------------------
TILE = ".shared .align 16 .b8 tile[1024];\n"
PLACE = "shl.b32 %r5, %r0, 4; mov.u32 %r6, tile; add.u32 %r5, %r6, %r5;"
USES = [
    ("st.global.u32 [%rd9], %r2;", "%r2"),
    ("st.global.u32 [%rd2], %r0;", "%rd2"),
    ("st.shared.v2.u32 [%r5], {%r0, %r2};", "%r2"),
    ("st.shared.u32 [%r2], %r0;", "%r2"),
    ("@%p3 st.global.u32 [%rd9], %r0;", "%p3"),
    ("@!%p3 st.global.u32 [%rd9], %r0;", "%p3"),
    ("ld.global.u32 %r3, [%rd2];", "%rd2"),
    ("@%p3 ld.global.u32 %r3, [%rd9];", "%p3"),
    ("prefetch.global.L2 [%rd2];", "%rd2"),
    ("atom.global.add.u32 %r3, [%rd9], %r2;", "%r2"),
    ("red.global.add.u32 [%rd2], 1;", "%rd2"),
    ("@%p3 bra DONE;", "%p3"),
    ("@%p3 ret;", "%p3"),
    ("@%p3 trap;", "%p3"),
    ("bar.sync %r2;", "%r2"),
    ("@%p3 bar.arrive 1, 64;", "%p3"),
    ("cp.async.ca.shared.global [%r5], [%rd2], 4;", "%rd2"),
    ("cp.async.ca.shared.global [%r2], [%rd9], 4;", "%r2"),
    ("cp.async.ca.shared.global [%r5], [%rd9], 4, %r2;", "%r2"),
    ("cp.async.ca.shared.global [%r5], [%rd9], 4, %p3;", "%p3"),
    (f"shfl.sync.idx.b32 %r3, %r0, %r2, 31, {FULL};", "%r2"),
    (f"shfl.sync.idx.b32 %r3, %r0, 0, %r2, {FULL};", "%r2"),
    ("shfl.sync.idx.b32 %r3, %r0, 0, 31, %r2;", "%r2"),
    (f"vote.sync.ballot.b32 %r3, %p3, {FULL};", "%p3"),
    (f"redux.sync.add.u32 %r3, %r2, {FULL};", "%r2"),
    (f"match.any.sync.b32 %r3, %r2, {FULL};", "%r2"),
    ("elect.sync _|%p5, %r2;", "%r2"),
    ("bar.warp.sync %r2;", "%r2"),
    ("mbarrier.init.shared.b64 [tile], %r2;", "%r2"),
    ("mbarrier.init.shared.b64 [%r2], 1;", "%r2"),
    ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r2];", "%r2"),
    ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r2};", "%r2"),
    (
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f0, %f1, %f2, %f3}, "
        "{%r0, %r0, %r0, %r2}, {%r0, %r0}, {%f4, %f4, %f4, %f4};",
        "%r2",
    ),
]


@pytest.mark.parametrize(("line", "source"), USES, ids=[line for line, _ in USES])
def test_a_use_ends_the_kernel(line: str, source: str) -> None:
    """Whatever reaches memory, other lanes or the flow of control; values made of such, too."""
    before = PLACE + "mov.f32 %f4, 0f00000000;"
    end = "st.global.u32 [%rd9], 1; ret;\nDONE: st.global.u32 [%rd9], 2;"
    said = fault(f"{before}\n{line}\n{end}", line, source=source, head=TILE)
    assert f"use of register {source}, which" in said
    copies = {"%r2": "mov.u32 %r7, %r2;", "%rd2": "mov.u64 %rd7, %rd2;"}
    copy = copies.get(source, "mov.pred %p7, %p3;")
    made = copy.split()[1].rstrip(",")
    said = fault(
        f"{before} {copy}\n{line.replace(source, made)}\n{end}",
        line.replace(source, made),
        source=source,
        head=TILE,
    )
    assert f"use of register {made}, made of" in said


def test_what_a_false_guard_keeps_from_being_used() -> None:
    got = run(
        EVEN + "add.u32 %r3, %r2, 1; add.u64 %rd5, %rd2, 0;\n"
        "@%p2 bra SKIP;\n st.global.u32 [%rd5], %r3;\nSKIP:\n"
        "@%p1 ld.global.u32 %r6, [%rd5]; @%p1 add.u32 %r6, %r6, 1; @%p1 st.global.u32 [%rd2], %r6;",
        out=WORDS,
    )
    np.testing.assert_array_equal(got, np.where(LANE % 2, 0, LANE + 102))


# -- guards, and what lanes do apart ------------------------------------------------------
STORE = "st.global.u32 [%rd9], %r2;"


def test_assignments_under_guards_meet() -> None:
    got = run(EVEN + f"@%p2 mov.u32 %r2, 7; {STORE}", out=WORDS)
    np.testing.assert_array_equal(got, np.where(LANE % 2, 7, LANE + 100))
    third = "setp.gt.u32 %p5, %r0, 2; @%p5 mov.u32 %r2, 7;"
    assert fault(f"{third} {STORE}", STORE)
    loaded = "setp.gt.u32 %p5, %r0, 0; @%p5 ld.global.u32 %r2, [%rd9];"
    assert run(EVEN + f"{loaded} {STORE}", out=WORDS).tolist() == [100] + [0] * 31
    # What was defined does not remain so.
    for line in ("mov.u32 %r2, %r4;", "@%p1 mov.u32 %r2, %r4;"):
        body = f"setp.gt.u32 %p5, %r0, 5; @%p5 mov.u32 %r4, 1; mov.u32 %r2, 3; {line} {STORE}"
        fault(body, STORE, lane=0, source="%r4")


def test_an_undefined_guard_makes_the_result_undefined() -> None:
    line = "mov.u32 %r3, 5; @%p3 mov.u32 %r3, 6;"
    store = "st.global.u32 [%rd9], %r3;"
    got = run(EVEN + f"{line} @%p1 {store}", out=WORDS)
    np.testing.assert_array_equal(got, np.where(LANE % 2, 0, np.where(LANE < 16, 6, 5)))
    fault(f"{line} {store}", store, source="%p3")
    fault(f"{line.replace('@', '@!')} {store}", store, source="%p3")


@pytest.mark.parametrize("how", ORDERS, ids=str)
def test_masks_follow_lanes_that_part(how: dict[str, Any]) -> None:
    """A loop that lanes leave at different times: what they sum is undefined in the first pass."""
    loop = """
    mov.u32 %r3, 0;
AGAIN:
    add.u32 %r5, %r4, %r0;
    add.u32 %r3, %r3, 1;
    mov.u32 %r4, %r3;
    setp.lt.u32 %p5, %r3, %r0;
    @%p5 bra AGAIN;
"""
    store = "st.global.u32 [%rd9], %r5;"
    guarded = f"{loop} setp.gt.u32 %p6, %r0, 1; @%p6 {store}"
    got = run(EVEN + guarded, out=WORDS, **how)
    np.testing.assert_array_equal(got, np.where(LANE > 1, 2 * LANE - 1, 0))
    fault(f"{loop} {store}", store, lane=0, source="%r4", **how)
    branch = "@%p1 bra SKIP;\n mov.u32 %r2, 9;\nSKIP: "
    got = run(EVEN + branch + STORE, out=WORDS, **how)
    np.testing.assert_array_equal(got, np.where(LANE % 2, 9, LANE + 100))
    taken = "@%p2 bra SKIP;\n mov.u32 %r2, 9;\nSKIP: "
    fault(taken + STORE, STORE, **how)


def test_lanes_beyond_the_block_and_exited_ones_do_not_count() -> None:
    assert run(EVEN + f"@%p2 ret; {STORE}", out=WORDS, block=20).tolist() == [
        100 + i if i < 20 and i % 2 == 0 else 0 for i in range(32)
    ]
    fault(f"@%p2 mov.u32 %r2, 3; setp.eq.u32 %p5, %r0, 7; @%p5 mov.u32 %r2, %r4; {STORE}", STORE,
          lane=7, source="%r4", block=20)  # fmt: skip


# -- against a model ----------------------------------------------------------------------
State = dict[str, list[tuple[int, bool]]]


def _model(state: State, at: int, opcode: str, operands: list[str]) -> tuple[int, bool]:
    """Value and definedness of the first operand in a lane, as the documents say."""

    def get(operand: str) -> tuple[int, bool]:
        return state[operand][at] if operand[0] == "%" else (int(operand) & 0xFFFFFFFF, True)

    given = [get(o) for o in operands[1:]]
    values, known = [v for v, _ in given], all(k for _, k in given)
    if opcode.startswith("selp"):
        chosen = given[0] if values[2] else given[1]
        return chosen[0], chosen[1] and given[2][1]
    if opcode.startswith(("and", "or")):
        ones = 1 if opcode.endswith("pred") else 0xFFFFFFFF
        decisive = ones if opcode.startswith("or") else 0
        result = values[0] | values[1] if decisive else values[0] & values[1]
        return (decisive, True) if (decisive, True) in given else (result, known)
    if opcode.startswith("setp"):
        return int(values[0] < values[1]), known
    if opcode.startswith("add"):
        return (values[0] + values[1]) & 0xFFFFFFFF, known
    return values[0], known


def _draw(rng: random.Random) -> tuple[str, State]:
    """A kernel's text, and its registers at its end."""
    words, flags = [f"%r{i}" for i in range(10, 15)], [f"%p{i}" for i in range(6, 10)]
    state: State = {name: [(0, False)] * 32 for name in words + flags}
    state["%p5"] = [(0, True)] * 32
    text: list[str] = []

    def lanes(mask: int) -> None:
        """%p5: whether a lane's bit is set in ``mask``."""
        text.append(f"mov.u32 %r5, {mask}; shr.u32 %r5, %r5, %r0; and.b32 %r5, %r5, 1;")
        text.append("setp.eq.u32 %p5, %r5, 1;")
        state["%p5"] = [(mask >> at & 1, True) for at in range(32)]

    def step(opcode: str, operands: list[str], guard: str, here: int) -> None:
        text.append(f"{guard} {opcode} {', '.join(operands)};")
        after = list(state[operands[0]])
        for at in range(32):
            held, known = (1, True) if not guard else state[guard.lstrip("@!")][at]
            if not here >> at & 1 or (known and bool(held) == guard.startswith("@!")):
                continue
            value, defined = _model(state, at, opcode, operands)
            after[at] = value, defined and known
        state[operands[0]] = after

    everyone = here = (1 << 32) - 1
    label = 0
    for name in words:
        lanes(rng.getrandbits(32))
        step("mov.u32", [name, rng.choice(["0", "1", "-1", "6"])], "@%p5", here)
    for name in flags:
        lanes(rng.getrandbits(32))
        step("setp.lt.u32", [name, rng.choice(words), "3"], "@%p5", here)
    for _ in range(25):
        guard = rng.choice(["", "", "@", "@!"])
        guard = guard and guard + rng.choice([*flags, "%p5"])
        word, flag = rng.choice(words), rng.choice(flags)
        a, b = (rng.choice([*words, *words, "0", "-1", "9"]) for _ in range(2))
        p, q = (rng.choice(flags) for _ in range(2))
        kind = rng.randrange(9)
        if kind == 8 and here == everyone:
            source = rng.randrange(32)
            a = rng.choice(words)
            text.append(f"shfl.sync.idx.b32 {word}, {a}, {source}, 31, -1;")
            state[word] = [state[a][source]] * 32
        elif kind == 7 and here == everyone:
            label += 1
            lanes(skipping := rng.getrandbits(32))
            text.append(f"@%p5 bra L{label};")
            here = everyone & ~skipping
        elif kind >= 7:
            text.append(f"L{label}:" if here != everyone else "")
            here = everyone
        else:
            opcode, operands = [
                ("add.u32", [word, a, b]),
                ("mov.u32", [word, a]),
                ("selp.u32", [word, a, b, p]),
                ("and.b32", [word, a, b]),
                ("or.b32", [word, a, b]),
                ("setp.lt.u32", [flag, rng.choice(words), b]),
                (rng.choice(["and.pred", "or.pred"]), [flag, p, q]),
            ][kind]
            step(opcode, operands, guard, here)
    if here != everyone:
        text.append(f"L{label}:")
    return "\n".join(text), state


@pytest.mark.parametrize("seed", range(8))
def test_random_kernels_against_a_model(seed: int) -> None:
    """Defined lanes may be stored and are right; storing an undefined lane faults and names it."""
    rng = random.Random(seed)
    faults = 0
    for _ in range(6):
        text, state = _draw(rng)
        for name in [f"%r{i}" for i in range(10, 15)] + [f"%p{i}" for i in range(6, 10)]:
            known = sum(defined << at for at, (_, defined) in enumerate(state[name]))
            end = f"selp.u32 %r6, 1, 0, {name};" if name[1] == "p" else f"mov.u32 %r6, {name};"
            end += " mad.wide.u32 %rd9, %r0, 4, %rd0; mov.u32 %r5, {}; shr.u32 %r5, %r5, %r0;"
            end += " and.b32 %r5, %r5, 1; setp.eq.u32 %p5, %r5, 1; @%p5 st.global.u32 [%rd9], %r6;"
            how = rng.choice(ORDERS)
            got = run(f"{text}\n{end.format(known)}", out=WORDS, **how)
            wanted = [value if defined else 0 for value, defined in state[name]]
            assert got.tolist() == wanted, f"{name}\n{text}"
            if known != (1 << 32) - 1:
                lane = rng.choice([at for at in range(32) if not known >> at & 1])
                with pytest.raises(UninitializedFault) as caught:
                    run(f"{text}\n{end.format(known | 1 << lane)}", out=WORDS, **how)
                assert caught.value.lane == lane and caught.value.text.endswith("[%rd9], %r6;")
                faults += 1
    assert faults


# -- what costs nothing -------------------------------------------------------------------
def test_only_registers_that_may_be_undefined_are_followed() -> None:
    start = "mov.u32 %r0, %tid.x; ld.param.u64 %rd0, [a0];"
    text = module(start + EVEN + f"add.u32 %r3, %r2, 1; add.u32 %r4, %r0, 1; {STORE}", parameters=1)
    found = flow.analyse(parse(text, "snippet").entries["main"], "snippet")
    assert found.unwritten == ("%r2",) and found.doubtful == {"%r2", "%r3"}
    loaded = text.replace("st.global.u32 [%rd9], %r2", "@%p3 ld.global.u32 %r5, [%rd9]")
    found = flow.analyse(parse(loaded, "snippet").entries["main"], "snippet")
    assert found.doubtful == {"%r2", "%r3", "%p3"}, "a load gives what memory has, which is defined"


def test_the_f32_kernels_have_nothing_to_follow() -> None:
    """Flow analysis of the f32 kernels' goldens finds no register that may be undefined."""
    paths = sorted(checkout_folder().rglob("simt*.ptx"))
    assert paths
    for path in paths:
        for entry in parse(path.read_text(), path.name).entries.values():
            assert not flow.analyse(entry, path.name).doubtful, path.name
