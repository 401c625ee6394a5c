"""Operands of the wrong number, kind, type, width or target are refused, with their line."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from interp_snippet import module, run
from ptx_draws import Draw, draws, execute, load

from ptxgen.errors import PtxError, TrapFault
from ptxgen.interp.text.forms import TABLE, check, forms
from ptxgen.interp.text.ptx import Immediate, Instruction, Pair, Register
from ptxgen.interp.values.scalar import lookup
from ptxgen.runtime.cpu import CpuDevice

RECORD = Path(__file__).parents[1] / "conformance" / "ptxas.txt"

WRONG = {
    # numbers and kinds of operands
    "ld.global.u32 %r2;": "2 operands, got 1",
    "bar.warp.sync;": "1 operands, got 0",
    "mov.pred %p1, {1, 2};": "operand 2",
    "ret 5;": "0 operands, got 1",
    "exit 1;": "0 operands, got 1",
    "mbarrier.init.shared.b64 [%r1];": "2 operands",
    "cp.async.wait_group;": "1 operands",
    "st.global.v2.f32 [%rd1], %f1;": "2 registers in braces",
    "add.u32 5, %r1, %r2;": "operand 1",
    "add.u32 %r1, [%rd1], %r2;": "operand 2",
    "shfl.sync.bfly.b32 %r1, %r2, 1, 31;": "5 operands, got 4",
    "lop3.b32 %r1, %r2, %r3, %r4, 256;": "0 to 255",
    "bfe.u32 %r1, %r2, 300, 1;": "0 to 255",
    "bar.sync 16;": "0 to 15",
    "bar.sync 0, 48;": "multiple of 32",
    # types and widths
    "add.u32 %r2, %f1, %r1;": "takes a .u32, got %f1, which is .f32",
    "shl.b32 %rd1, %rd2, 1;": "takes a .b32",
    "fma.rn.f16 %f1, %f2, %f3, %f4;": "takes a .f16",
    "add.rn.f32 %f1, %f2, 1;": "of type .f32",
    "and.pred %p1, %r1, %p2;": "takes a .pred",
    "selp.b32 %r1, %r2, %r3, %r4;": "takes a .pred",
    "ld.global.u64 %r1, [%rd1];": "or wider",
    "ld.global.u32 %r1, [%r2];": "64 bits",
    "st.global.f32 [%rd1], %d1;": "takes a .f32",
    "cvt.rn.f32.s32 %d1, %r1;": "takes a .f32",
    "ld.shared.v2.u32 {%r1, %rd1}, [%r2];": "one width",
    "add.u32 %r1, %tid.x, 1;": "operand 2",
    "ld.shared.u32 %r1, [a0];": "which is|is in .param",
    "elect.sync %f1|%p1, %r1;": "takes a .u32, got %f1",
    "cp.async.ca.shared.global [%r1], [%rd1], 16, -1;": "0 to 16",
    "cp.async.ca.shared.global.L2::cache_hint [%r1], [%rd1], 16, %d1;": "takes a .u64",
    "mbarrier.arrive.shared.b64 %d1, [%r1];": "takes a .u64",
    "mbarrier.test_wait.shared.b64 %p1, [%r1], %d1;": "takes a .u64",
    "mbarrier.pending_count.b64 %r1, %d1;": "takes a .u64",
    # outside the subset
    "addc.u32 %r1, %r2, %r3;": "outside the subset",
    "add.cc.u32 %r1, %r2, %r3;": "outside the subset: it has carry chains",
    "tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%r1, %r2}];": "outside the subset: textures",
    "brx.idx %r1, there;": "outside the subset",
    "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1}, [%rd1], 16;": "outside the subset",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_operands_are_refused_with_their_line(text: str) -> None:
    source = module(f"    {text}", parameters=1)
    with pytest.raises(PtxError, match=WRONG[text].replace("[", r"\[")) as caught:
        CpuDevice().load(source.encode(), "main")
    assert caught.value.line == 1 + source[: source.index(text)].count("\n")
    assert caught.value.text == text


@pytest.mark.parametrize(
    ("text", "target", "least"),
    [
        ("wgmma.fence.sync.aligned;", "sm_80", "sm_90a"),
        ("wgmma.fence.sync.aligned;", "sm_90", "sm_90a"),
        ("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%d0, %d1, %d2, %d3}, {%d4, %d5}, "
         "{%d6}, {%d0, %d1, %d2, %d3};", "sm_80", "sm_90"),
        ("barrier.cluster.arrive;", "sm_80", "sm_90"),
        ("fence.proxy.async;", "sm_80", "sm_90"),
        ("ld.relaxed.cluster.global.u32 %r1, [%rd0];", "sm_80", "sm_90"),
        ("add.rn.bf16 %h1, %h2, %h3;", "sm_80", "sm_90"),
    ],
)  # fmt: skip
def test_an_instruction_of_a_later_target(text: str, target: str, least: str) -> None:
    with pytest.raises(PtxError, match=rf"takes \.target {least} or later.*{target}"):
        CpuDevice().load(module(f"    {text}", target=target).encode(), "main")
    assert CpuDevice().load(module(f"    {text}", target=least).encode(), "main").symbol == "main"


def test_trap_is_a_fault_of_its_own() -> None:
    with pytest.raises(TrapFault, match="stopped itself") as caught:
        run("    setp.eq.u32 %p1, %r0, 7;\n@%p1 trap;")
    assert (caught.value.warp, caught.value.lane) == (0, 7)


def test_a_guard_that_never_holds_reads_nothing() -> None:
    """Registers that nobody has written, behind guards that hold for no lane."""
    text = """    setp.gt.u32 %p1, %r0, 1000;
    @%p1 add.rn.f32 %f1, %f2, %f3;
    @%p1 mov.b64 %rd9, {%r8, %r9};
    @%p1 st.global.v2.f32 [%rd12], {%f4, %f5};
    @%p1 ld.global.f32 %f7, [%rd13];
    @%p1 setp.eq.u32 %p2|%p3, %r12, %r13;
    @%p1 atom.global.add.u32 %r14, [%rd14], %r15;
    st.global.u32 [%rd0], 5;"""
    assert run(text)[0] == 5


def scalar_forms() -> list[tuple[str, Any]]:
    """Names of scalar instructions that draws make, with the form of each."""
    found = {}
    for draw in draws(seed=12, count=4000):
        name = draw.text.split("} ")[-1].split()[0] if draw.text[0] != "@" else draw.text.split()[1]
        found[name.rstrip(";")] = draw
    return sorted(found.items())


def test_the_table_and_the_functions_agree_on_types() -> None:
    """Registers of exactly the types that a scalar function takes and gives are right."""
    checked = 0
    for name, _ in scalar_forms():
        opcode, *modifiers = name.split(".")
        plain = Instruction(opcode, tuple(modifiers), (), text=name)
        for count in range(2, 7):
            operands: list[Any] = [Register(f"%{i}") for i in range(count)]
            if opcode == "lop3" and count > 4:
                operands[4] = Immediate(1)
            for pair in (False, True):
                if pair:
                    operands[0] = Pair(Register("%0"), Register("%q"))
                instruction = replace(plain, operands=tuple(operands))
                try:
                    scalar = lookup(instruction)
                except PtxError:
                    continue
                if scalar is None or (pair and modifiers[-1] in ("f16", "bf16")):
                    continue  # setp of halves gives one result (PTX ISA 9.0, 9.7.7.2)
                holds = {"bf16": "b16", "bf16x2": "b32", "f16x2": "b32"}
                types = {f"%{i + 1}": holds.get(t, t) for i, t in enumerate(scalar.src)}
                types |= {"%0": holds.get(scalar.dst[0], scalar.dst[0]), "%q": "pred"}
                assert check(instruction, "sm_90a", types, {}), name
                checked += 1
    assert checked > 150


def test_every_line_of_the_table_is_drawn() -> None:
    lines = [line for line in TABLE.splitlines() if line.strip()]
    assert len({id(f) for each in forms().values() for f in each}) == len(lines) > 150


def test_draws_end_in_typed_errors() -> None:
    """Every draw is refused, runs, or ends in a documented fault; anything else is raised here."""
    device, taken, refused = CpuDevice(), 0, 0
    for draw in draws(seed=20, count=400):
        if load(draw, device) is None:
            taken += 1
            execute(draw, device)
        else:
            refused += 1
    assert taken > 80 and refused > 80


def test_what_ptxas_refuses_is_refused() -> None:
    """Verdicts of ``tools/fuzz_ptx.py --record``; what ptxas takes may be outside the subset."""
    rows = [line.split("\t") for line in RECORD.read_text().splitlines()]
    assert {verdict for _, verdict, _ in rows} == {"taken", "refused"} and len(rows) > 1000
    device = CpuDevice()
    both = 0
    for target, verdict, text in rows:
        why = load(Draw(text, target), device)
        if verdict == "refused":
            assert why is not None, f"taken, though ptxas refuses it: {target} {text}"
            assert re.match("PtxError|DeviceError", why), why
        both += verdict == "taken" and why is None
    assert both > 300
