"""The PTX parser: all that NVRTC emits, what hand-written PTX has, and every refusal's place."""

from __future__ import annotations

import itertools
import math
import random
import re
import struct
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from loops import for_each

from ptxgen.build.compile import compile_ptx
from ptxgen.errors import PtxError
from ptxgen.golden import checkout_folder, instructions
from ptxgen.interp.text.ptx import (
    Address,
    Entry,
    Immediate,
    Instruction,
    Label,
    Module,
    Negated,
    Operand,
    Pair,
    Parameter,
    Register,
    Sink,
    Special,
    Symbol,
    Variable,
    Vector,
    parse,
)

GOLDENS = sorted(checkout_folder().rglob("*.ptx"))
HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"

# One of everything; inline assembly as NVRTC passes it on.
EVERYTHING = (
    HEAD
    + r"""
	// .globl	k
.const .align 4 .b8 table[8] = {0, 0, 128, 63, 0, 0, 32, 64};
.global .align 8 .u64 pointers[3] = {generic(table), table+4, 0};
.global .align 4 .u32 counter, limit = 0x10;
.global .f32 scale[2] = {0f3F800000, -2.5};
.global .v4 .f32 quad = {1.0, 2.0, 3.0, 4.0};
.visible .global .align 2 .s16 grid[2][3] = {-1, 2};
.extern .shared .align 16 .b8 dyn[];

.visible .entry k(
	.param .align 64 .b8 k_param_0[128],
	.param .u8 k_param_1,
	.param .u64 .ptr .global .align 16 k_param_2, /* a
	comment; of two lines */
	.param .u16 k_param_3,
	.param .f32 k_param_4
)
.maxntid 128
.minnctapersm 2
.explicitcluster
.reqnctapercluster 2, 1, 1
.pragma "nounroll";
{
	.local .align 16 .b8 	__local_depot0[256];
	.reg .b64 	%SP, %SPL;
	.reg .pred 	%p<4>;
	.reg .f32 	%f<9>;
	.reg .b32 	%r<9>;
	.reg .b64 	%rd<5>;
	.loc	1 12 0
	.shared .align 8 .b8 bars[16];

	mov.u64 	%SPL, __local_depot0;
	ld.param.u64 	%rd1, [k_param_2];
	mov.b64 	%rd2, k_param_0+64;
$L__BB0_1:
	.pragma "nounroll; // at all";
	.loc	1 9 34, function_name $L__info_string0+4, inlined_at 1 16 3
	add.s32 	%r1, %r2, -1;  // a comment; with a semicolon
	and.b32  	%r1, %r1, 0xFFU;
	mov.u32 	%r2, %ctaid.x;
	ld.global.nc.v4.f32 	{%f1, %f2, _, %f3}, [%rd1+-16];
	st.shared.f32 	[bars + 8], 0f7FC00001;
	fma.rn.f32 %f1, %f2, 0fBF800000, 0f80000000;
	shfl.sync.bfly.b32 %r3|%p1, %r1, 0b11, 037, -1;
	setp.lt.and.s32 %p1|_, %r1, 18446744073709551615U, !%p2;
	@!%p1 bra.uni $L__BB0_1;
	// begin inline asm
	{
	.reg .pred P1;
LAB_WAIT:
	mbarrier.try_wait.parity.shared::cta.b64 P1, [%r3+8], %r1;
	@P1 bra DONE; bra LAB_WAIT;
DONE:
	}
	{ .reg .pred P1; .reg .b32 %r1; LAB_WAIT: mov.b32 %r1, 7; @P1 bra LAB_WAIT; bra $L__BB0_1;
	{ .reg .f32 P1; mov.f32 P1, 1.0; }
	}
	cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
		[%r1], [%rd1, {%r2, 3}], [%r3];
	wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16
		{%f1, %f2, %f3, %f4}, %rd1, %rd2, %p1, 1, 1, 0, 0;
	bar.sync 0;
	ret;
}
	.file	1 "/a//b/kernel.cu"
	.section	.debug_str
	{
$L__info_string0:
.b8 95,90
.b8 0
	}
"""
)


def in_kernel(body: str, head: str = "") -> str:
    """``body``, which begins in line 7, in a kernel with some registers."""
    return (
        HEAD
        + head
        + ".entry k(.param .u64 p0, .param .u32 p1) {\n"
        + ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<9>;\n\n"
        + body
        + "\n}\n"
    )


def kernel(module: Module) -> Entry:
    (entry,) = module.entries.values()
    return entry


def code(entry: Entry) -> list[Instruction]:
    return [each for each in entry.body if isinstance(each, Instruction)]


def one(statement: str, head: str = "") -> Instruction:
    (found,) = code(kernel(parse(in_kernel(statement, head))))
    return found


def operands(text: str) -> tuple[Operand, ...]:
    return one(f"op {text};").operands


def regs(*names: str) -> tuple[Register, ...]:
    return tuple(Register(name) for name in names)


def _end(lines: list[str], line: int) -> int:
    """The last line of the statement that starts in ``line``: inline assembly may break it."""
    last = line
    while last < len(lines) and not any(mark in lines[last - 1] for mark in ";:"):
        last += 1
    return last


# --- Goldens ------------------------------------------------------------------------------
@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: path.stem[:60])
def test_a_golden(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    entry = kernel(parse(text, path.name))
    assert Counter(each.name for each in code(entry)) == instructions(text)

    lines = [" ".join(line.split()) for line in text.split("\n")]
    for each in entry.body:
        shown = each.text if isinstance(each, Instruction) else f"{each.name}:"
        assert shown in " ".join(lines[each.line - 1 : _end(lines, each.line)])

    # The texts alone, behind the same declarations, give the same tree. (The registers of inner
    # scopes, name#1 and so on, go by their names there.)
    declared = {name.partition("#")[0]: type for name, type in entry.registers.items()}
    shared = "".join(line for line in lines if line.startswith(".shared"))
    head = (
        text[: text.index("{") + 1]
        + "".join(f".reg .{type} {name};" for name, type in declared.items())
        + shared
    )
    body = [each.text if isinstance(each, Instruction) else f"{each.name}:" for each in entry.body]
    again = kernel(parse("\n".join([head, *body, "}"])))
    assert [repr(replace(each, line=0)) for each in again.body] == [
        re.sub(r"#\d+", "", repr(replace(each, line=0))) for each in entry.body
    ]


def test_there_are_goldens() -> None:
    assert len(GOLDENS) > 20


def test_a_golden_cut_off_anywhere_is_refused() -> None:
    random_points = random.Random(1)
    for path in random_points.sample(GOLDENS, 6):
        text = path.read_text(encoding="utf-8")
        end = text.rindex("}")
        for cut in [random_points.randrange(end) for _ in range(25)] + [end]:
            with pytest.raises(PtxError) as caught:
                parse(text[:cut], "cut.ptx")
            assert 1 <= caught.value.line <= text.count("\n", 0, cut) + 1
            assert caught.value.file == "cut.ptx"


# --- What NVRTC emits with line information, and for Hopper ------------------------------
SOURCE = r"""
__constant__ float table[2] = {1.0f, 2.0f};
__device__ const float* where = table;
__device__ __forceinline__ float twice(float x) {
    return x * table[threadIdx.x & 1];
}
extern "C" __global__ __launch_bounds__(64) __cluster_dims__(2, 1, 1)
void lines(float* out, const float* in, float4 four, char last) {
    __shared__ unsigned long long bar[2];
    unsigned b = (unsigned)__cvta_generic_to_shared(bar);
    for (int i = 0; i < 2; i++)
        asm volatile("{\n.reg .pred P1;\nWAIT:\n"
            "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
            "@P1 bra DONE;\nbra WAIT;\nDONE:\n}" :: "r"(b), "r"(i));
    out[threadIdx.x] = twice(in[threadIdx.x]) + four.z + last + *where;
}
"""


@pytest.mark.parametrize("arch", ["compute_80", "compute_90a", "compute_100a"])
@pytest.mark.parametrize("options", [(), ("--generate-line-info",)], ids=["plain", "lines"])
def test_what_nvrtc_emits(arch: str, options: tuple[str, ...]) -> None:
    source = SOURCE if arch != "compute_80" else SOURCE.replace("__cluster_dims__(2, 1, 1)", "")
    if arch == "compute_80":
        source = source.replace("try_wait.parity", "test_wait.parity")
    text = compile_ptx(source, name="lines", arch=arch, options=options, cache=None).text
    module = parse(text)
    entry = module.entries["lines"]
    assert module.target == arch.replace("compute", "sm")
    assert entry.directives["maxntid"] == (64, 1, 1)
    assert ("reqnctapercluster" in entry.directives) == (arch != "compute_80")
    assert [(p.align, p.offset, p.nbytes) for p in entry.parameters] == [
        (8, 0, 8),
        (8, 8, 8),
        (16, 16, 16),
        (1, 32, 1),
    ]
    bare = re.sub(r"\.loc[^\n]*", "", text[: text.rindex("ret;") + 4])
    assert Counter(each.name for each in code(entry)) == instructions(bare)
    (product,) = [each for each in code(entry) if each.name in ("mul.rn.f32", "mul.f32")]
    if options:
        assert list(module.files) == [1]
        assert product.source == (module.files[1], 1 + SOURCE[1:].split("\n").index(
            "    return x * table[threadIdx.x & 1];") + 1)  # fmt: skip
    else:
        assert product.source is None
        assert module.files == {}


# --- The tree -----------------------------------------------------------------------------
def test_the_module() -> None:
    module = parse(EVERYTHING, "everything.ptx")
    assert (module.version, module.target, module.address_size) == ((9, 0), "sm_90a", 64)
    assert (module.file, module.text) == ("everything.ptx", EVERYTHING)
    assert module.files == {1: "/a//b/kernel.cu"}
    line = EVERYTHING.split("\n").index(".visible .entry k(") + 1
    assert kernel(module).line == line
    assert kernel(module).directives == {
        "maxntid": (128, 1, 1),
        "minnctapersm": (2,),
        "explicitcluster": (),
        "reqnctapercluster": (2, 1, 1),
    }


def test_variables() -> None:
    module = parse(EVERYTHING)
    floats = struct.pack("<2f", 1.0, -2.5), struct.pack("<4f", 1, 2, 3, 4)
    addresses = ((0, Symbol("table"), True), (8, Symbol("table", 4), False))
    expected = [
        Variable("table", "const", "b8", 4, 8, init=bytes([0, 0, 128, 63, 0, 0, 32, 64])),
        Variable("pointers", "global", "u64", 8, 3, init=bytes(24), addresses=addresses),
        Variable("counter", "global", "u32", 4),
        Variable("limit", "global", "u32", 4, init=b"\x10\0\0\0"),
        Variable("scale", "global", "f32", 4, 2, init=floats[0]),
        Variable("quad", "global", "f32", 16, 1, vector=4, init=floats[1]),
        Variable("grid", "global", "s16", 2, 6, init=b"\xff\xff\2\0" + bytes(8)),
        Variable("dyn", "shared", "b8", 16, 0, extern=True),
    ]
    assert [replace(each, line=0) for each in module.variables] == expected
    assert [each.nbytes for each in module.variables] == [8, 24, 4, 4, 8, 16, 12, 0]
    assert [each.line for each in module.variables] == [6, 7, 8, 8, 9, 10, 11, 12]
    assert [replace(each, line=0) for each in kernel(module).variables] == [
        Variable("__local_depot0", "local", "b8", 16, 256),
        Variable("bars", "shared", "b8", 8, 16),
    ]


def test_an_unsized_array_is_as_long_as_its_initialiser() -> None:
    text = in_kernel("ret;", ".const .u32 a[] = {1, 2, 3};\n.global .b8 b[][2] = {1, 2, 3};\n")
    assert [(each.count, each.init) for each in parse(text).variables] == [
        (3, struct.pack("<3I", 1, 2, 3)),
        (4, b"\1\2\3\0"),
    ]


def test_parameters_lie_where_the_abi_puts_them() -> None:
    assert kernel(parse(EVERYTHING)).parameters == (
        Parameter("k_param_0", "b8", 64, 0, 128),
        Parameter("k_param_1", "u8", 1, 128, 1),
        Parameter("k_param_2", "u64", 8, 136, 8),
        Parameter("k_param_3", "u16", 2, 144, 2),
        Parameter("k_param_4", "f32", 4, 148, 4),
    )
    for empty in (".entry k() {ret;}", ".entry k{ret;}", ".entry k ( ) .maxnreg 64 {ret;}"):
        assert kernel(parse(HEAD + empty)).parameters == ()


def test_registers() -> None:
    registers = kernel(parse(EVERYTHING)).registers
    assert [name for name, type in registers.items() if type == "pred" and "#" not in name] == [
        "%p0",
        "%p1",
        "%p2",
        "%p3",
    ]
    assert (registers["%SP"], registers["%SPL"], registers["%f8"]) == ("b64", "b64", "f32")
    assert "%f9" not in registers


def test_inner_scopes_have_names_of_their_own() -> None:
    entry = kernel(parse(EVERYTHING))
    assert {name: t for name, t in entry.registers.items() if "#" in name} == {
        "P1#1": "pred",
        "P1#2": "pred",
        "%r1#2": "b32",
        "P1#3": "f32",
    }
    labels = [each.name for each in entry.body if isinstance(each, Label)]
    assert labels == ["$L__BB0_1", "LAB_WAIT#1", "DONE#1", "LAB_WAIT#2"]
    wait, done, back, move, loop, out, inner = code(entry)[12:19]
    assert wait.operands == (Register("P1#1"), Address(Register("%r3"), 8), Register("%r1"))
    assert (done.guard, done.operands) == (Register("P1#1"), (Symbol("DONE#1"),))
    assert back.operands == (Symbol("LAB_WAIT#1"),)
    assert move.operands == (Register("%r1#2"), Immediate(7))
    assert (loop.guard, loop.operands) == (Register("P1#2"), (Symbol("LAB_WAIT#2"),))
    assert out.operands == (Symbol("$L__BB0_1"),)
    assert inner.operands[0] == Register("P1#3")
    assert code(entry)[19].operands[0] == Address(Register("%r1"))


def test_a_name_changes_its_meaning_where_it_is_declared() -> None:
    body = "{ mov.b32 %r1, 1; .reg .b32 %r1; mov.b32 %r1, 2; }\nmov.b32 %r1, 3;"
    found = [each.operands[0] for each in code(kernel(parse(in_kernel(body))))]
    assert found == [*regs("%r1", "%r1#1", "%r1")]


def test_variables_of_inner_scopes() -> None:
    body = "{ .shared .b32 s; st.shared.b32 [s], 0; } { .shared .b64 s; st.shared.b64 [s], 0; }"
    entry = kernel(parse(in_kernel(body)))
    assert [(each.name, each.type) for each in entry.variables] == [("s#1", "b32"), ("s#2", "b64")]
    assert [each.operands[0] for each in code(entry)] == [
        Address(Symbol("s#1")),
        Address(Symbol("s#2")),
    ]


def test_instructions() -> None:
    found = {each.text: each for each in code(kernel(parse(EVERYTHING)))}
    lines = [" ".join(line.split()) for line in EVERYTHING.split("\n")]
    for text, each in found.items():
        first = next(i for i, line in enumerate(lines, 1) if text[:12] in line and i >= each.line)
        assert each.line == first

    branch = found["@!%p1 bra.uni $L__BB0_1;"]
    assert (branch.opcode, branch.modifiers, branch.name) == ("bra", ("uni",), "bra.uni")
    assert (branch.guard, branch.negated) == (Register("%p1"), True)
    assert branch.operands == (Symbol("$L__BB0_1"),)
    copy = next(each for each in found.values() if each.opcode == "cp")
    assert copy.modifiers == (
        *("async", "bulk", "tensor", "2d", "shared::cluster", "global"),
        "mbarrier::complete_tx::bytes",
    )
    assert copy.operands == (
        Address(Register("%r1")),
        Address(Register("%rd1"), 0, (Register("%r2"), Immediate(3))),
        Address(Register("%r3")),
    )
    wgmma = next(each for each in found.values() if each.opcode == "wgmma")
    assert wgmma.operands[0] == Vector(regs("%f1", "%f2", "%f3", "%f4"))
    assert wgmma.operands[3:5] == (Register("%p1"), Immediate(1))
    assert wgmma.text.endswith("bf16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, %p1, 1, 1, 0, 0;")
    assert (found["ret;"].operands, found["bar.sync 0;"].operands) == ((), (Immediate(0),))


def test_lines_of_the_source() -> None:
    sources = [each.source for each in code(kernel(parse(EVERYTHING)))]
    assert sources == [("/a//b/kernel.cu", 12)] * 3 + [("/a//b/kernel.cu", 9)] * (len(sources) - 3)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("%r1", Register("%r1")),
        ("%tid.x", Special("%tid.x")),
        ("%laneid", Special("%laneid")),
        ("%cluster_ctarank", Special("%cluster_ctarank")),
        ("WARP_SZ", Immediate(32)),
        ("_", Sink()),
        ("g", Symbol("g")),
        ("g+4", Symbol("g", 4)),
        ("g - 0x10", Symbol("g", -16)),
        ("p1", Symbol("p1")),
        ("!%p1", Negated(Register("%p1"))),
        ("%r1|%p1", Pair(Register("%r1"), Register("%p1"))),
        ("_ | %p1", Pair(Sink(), Register("%p1"))),
        ("{%r1}", Vector(regs("%r1"))),
        ("{ %r1 , 0, %tid.y,_ }", Vector((*regs("%r1"), Immediate(0), Special("%tid.y"), Sink()))),
        ("[%rd1]", Address(Register("%rd1"))),
        ("[ %rd1 + 16 ]", Address(Register("%rd1"), 16)),
        ("[%rd1+-4]", Address(Register("%rd1"), -4)),
        ("[%rd1-4]", Address(Register("%rd1"), -4)),
        ("[g]", Address(Symbol("g"))),
        ("[g+0x10]", Address(Symbol("g"), 16)),
        ("[p0+4]", Address(Symbol("p0"), 4)),
        ("[1024]", Address(Immediate(1024))),
        ("[%rd1, {%r1}]", Address(Register("%rd1"), 0, regs("%r1"))),
        ("[ %rd1,{ %r1 , 5 } ]", Address(Register("%rd1"), 0, (Register("%r1"), Immediate(5)))),
        ("0", Immediate(0)),
        ("-12", Immediate(-12)),
        ("0xfF", Immediate(255)),
        ("0b101U", Immediate(5)),
        ("017", Immediate(15)),
        ("18446744073709551615", Immediate(2**64 - 1)),
        ("-9223372036854775808", Immediate(-(2**63))),
        ("0f3F800000", Immediate(1.0, 0x3F800000, "f32")),
        ("0Ff1234567", None),
        ("0dBFF0000000000000", Immediate(-1.0, 0xBFF0000000000000, "f64")),
        ("0D0000000000000001", Immediate(5e-324, 1, "f64")),
        ("1.5", Immediate(1.5, 0x3FF8000000000000, "f64")),
        ("-2.5e-1", Immediate(-0.25, 0xBFD0000000000000, "f64")),
        ("1e3", Immediate(1000.0, 0x408F400000000000, "f64")),
        (".5", Immediate(0.5, 0x3FE0000000000000, "f64")),
    ],
)  # fmt: skip
def test_operands(text: str, expected: Operand | None) -> None:
    (found,) = one(f"op {text};", ".global .b32 g[9];\n").operands
    if expected is None:
        expected = Immediate(struct.unpack("<f", b"\x67\x45\x23\xf1")[0], 0xF1234567, "f32")
    assert found == expected
    if isinstance(expected, Immediate) and isinstance(found, Immediate):
        assert found.value == expected.value and type(found.value) is type(expected.value)


def test_constants_compare_by_their_bits() -> None:
    nan, zero, minus, quiet = operands("0f7FC00001, 0f00000000, 0f80000000, 0f7FC00000")
    assert isinstance(nan, Immediate) and math.isnan(nan.value)
    assert nan == operands("0f7FC00001")[0] and nan != quiet
    assert zero != minus and zero != Immediate(0) and len({nan, zero, minus, quiet}) == 4


def test_operands_are_read_once() -> None:
    first, second = operands("%r1, %r1")
    assert first is second


def test_a_kernel_is_found_by_its_name() -> None:
    text = HEAD + "".join(
        f".visible .entry {name}(.param .u32 p) {{ .reg .b32 %r<2>; .shared .b8 s[4];\n"
        f"L: ld.param.u32 %r1, [p]; bra L; }}\n"
        for name in "ab"
    )
    module = parse(text)
    assert list(module.entries) == ["a", "b"]
    assert module.entries["b"].line == 6
    assert [len(entry.body) for entry in module.entries.values()] == [3, 3]


def test_line_ends_of_other_systems_and_a_nul_at_the_end() -> None:
    plain = kernel(parse(EVERYTHING))
    assert kernel(parse(EVERYTHING.replace("\n", "\r\n") + "\0")) == plain


# --- Refusals -----------------------------------------------------------------------------
IN_A_BODY = [
    # What is missing
    ("ret", "semicolon"),
    ("mov.b32 %r1, %r2\nret;", "is a semicolon missing?"),
    ("ret\nmov.b32 %r1, %r2;", "is a semicolon missing?"),
    ("mov.b32 %r1, ;", "operand is missing"),
    ("mov.b32 , %r1;", "operand is missing"),
    ("mov.b32 {%r1, %r2},;", "operand is missing"),
    ("mov.b32 {}, %r1;", "operand is missing"),
    ("{ mov.b32 %r1, %r2;", "a brace is missing"),
    ("ret; /* never closed", "comment is not closed"),
    # Names
    ("mov.b32 %r9, 0;", "%r9 is neither a declared register"),
    ("mov.b32 %r1, x;", "x is not declared"),
    ("ld.global.b32 %r1, [x];", "x is not declared"),
    ("mov.b32 {%r1, y}, %rd1;", "y is not declared"),
    ("@%p9 ret;", "%p9 is neither"),
    ("bra NOWHERE;", "label NOWHERE is not defined"),
    ("@%p1 bra.uni NOWHERE;", "label NOWHERE is not defined"),
    ("{ bra NOWHERE; }", "label NOWHERE is not defined"),
    ("bra INNER; { INNER: ret; }", "label INNER is not defined"),
    ("bra %r1, %r2;", "bra takes one label"),
    ("mov.u32 %r1, %tid;", "write %tid.x"),
    ("mov.u32 %r1, %tidy.x;", "no special register %tidy.x"),
    ("mov.u32 %r1, %tid.q;", "no special register %tid.q"),
    (".reg .b32 %tid;", "special register"),
    (".reg .b32 %r1;", "%r1 is declared twice"),
    (".reg .b32 %r<2>;", "%r0 is declared twice"),
    (".reg .f32 a, a;", "a is declared twice"),
    (".shared .b32 %r1;", "%r1 is declared twice"),
    ("A: ret;\nA: ret;", "A is declared twice"),
    ("%r1: ret;", "%r1 is declared twice"),
    ("p0: ret;", "p0 is declared twice"),
    # Types that cost nothing to check
    ("@%r1 ret;", "guard %r1 is .b32, not .pred"),
    ("@p0 ret;", "guard p0 is no register"),
    ("op !%r1;", "no predicate"),
    ("op !5;", "no predicate"),
    ("op [%f1];", "%f1 is .f32, which holds no address"),
    ("op [%tid.x];", "cannot read the address"),
    ("op [%laneid];", "%laneid holds no address"),
    ("op %r1|5;", "no pair"),
    ("op %r1|%r2|%r3;", "no pair"),
    ("op {[%rd1], %r1};", "cannot"),
    ("op {!%p1};", "element of a vector"),
    ("op %r1+4;", "no variable"),
    # Constants
    ("op 0x;", "no constant"),
    ("op 089;", "no constant"),
    ("op 0f3F80000;", "no constant"),
    ("op 0f3F8000000;", "no constant"),
    ("op 0d3F800000;", "no constant"),
    ("op 0b12;", "no constant"),
    ("op 12a;", "no constant"),
    ("op 1+2;", "no constant"),
    ("op --1;", "no constant"),
    ("op 18446744073709551616;", "64 bits"),
    ("op -9223372036854775809;", "64 bits"),
    (f"op {'9' * 5000};", "64 bits"),
    ("op 1e999;", "does not fit into an f64"),
    ("op [%rd1+4294967296];", "32 bits"),
    ("op 'a';", "character constants are outside the subset"),
    # Syntax
    ("op [%rd1;", "cannot read"),
    ("op %rd1];", "cannot read"),
    ("op {%r1, %r2;", "cannot read"),
    ("op {{%r1}};", "cannot read"),
    ("op [%rd1, %r1];", "cannot read"),
    ("op [%rd1+%r1];", "cannot read"),
    ("op %r1 %r2;", "cannot read"),
    ("op #;", "cannot read"),
    ("add..s32 %r1;", "cannot read the opcode"),
    ("add. %r1;", "cannot read the opcode"),
    ("Add %r1;", "cannot read this statement"),
    ("@ ret;", "cannot read"),
    ("%r1 = %r2;", "cannot read this statement"),
    (";", "cannot read this statement"),
    (".loc 7 1 1\nret;", "file 7"),
    (".reg .b32 %q<x>;", "cannot read the register"),
    (".reg .b33 %q;", "unknown register type .b33"),
    (".reg .v4 .f32 %q;", "vector registers"),
    (".reg .b32 %q<99999999>;", "too many"),
    # Directives, and what is outside the subset
    (".wrong 3;", "unknown or misplaced directive .wrong"),
    (".entry j() { ret; }", "misplaced directive .entry"),
    (".version 9.0", "misplaced directive .version"),
    (".global .b32 x;", "outside of kernels"),
    (".param .b64 param0;", "calls are outside the subset"),
    ("call.uni (p0), f, (p1);", "call is outside the subset"),
    ("brx.idx %r1, table;", "brx is outside the subset"),
    (".shared .b8 x[];", "x[] has no size"),
    (".shared .b32 x = 1;", "cannot have an initialiser"),
    (".shared .align 3 .b8 x[4];", "not a power of two"),
    (".shared .wrong x;", "unknown type .wrong"),
]


@pytest.mark.parametrize("body, message", IN_A_BODY, ids=lambda each: each[:40])
def test_refused_in_a_body(body: str, message: str) -> None:
    for before in ("", "// comment\n\n/* and\nanother */ mov.b32 %r1, %r2;\n"):
        with pytest.raises(PtxError) as caught:
            parse(in_kernel(before + body), "bad.ptx")
        error = caught.value
        assert message in str(error)
        assert error.file == "bad.ptx" and str(error).startswith(f"bad.ptx:{error.line}: ")
        # The line is that of the statement, except where the end of the text is to blame,
        # or the later one of two.
        first = 7 + before.count("\n")
        last = first + body.count("\n") + 1
        if "brace is missing" in message or body.startswith("A: "):
            assert first < error.line <= last
        else:
            assert error.line == first
            statement = body.split("; /*")[-1] if "never" in body else body.lstrip("{ ")
            assert error.text[:3] in statement or "/*" in error.text
            assert len(error.text) <= 160


@pytest.mark.parametrize(
    "text, message, line",
    [
        ("", "begins with .version", 1),
        ("\n\n  // nothing\n", "begins with .version", 4),
        ("hello", "begins with .version", 1),
        (".target sm_80\n", "begins with .version", 1),
        (".version 9\n", ".version is malformed", 1),
        (".version 9.0\n", "followed by .target", 2),
        (".version 9.0\n.address_size 64\n", "followed by .target", 2),
        (".version 9.0\n.target compute_80\n", ".target is malformed", 2),
        (HEAD, "no kernel", 3),
        (HEAD + ".global .b32 x;\n", "no kernel", 4),
        (".version 9.0\n.target sm_80\n.address_size 32\n", "only 64-bit addresses", 3),
        (HEAD + ".version 9.0\n", ".version stands twice", 4),
        (HEAD + ".reg .b32 %r1;\n", "inside a kernel", 4),
        (HEAD + ".visible .func f() { ret; }\n", "no kernel", 4),
        (HEAD + ".func f() { { ret; }\n", "ends inside a function (.func)", 4),
        (HEAD + ".wrong\n", "unknown or misplaced directive .wrong", 4),
        (HEAD + "ret;\n", "cannot read this statement", 4),
        (HEAD + ".entry", ".entry is malformed", 4),
        (HEAD + ".entry k(.param .u32 a", ".entry is malformed", 4),
        (HEAD + ".entry k(.param .u32 a)\n", ".entry is malformed", 4),
        (HEAD + ".entry k(\n.param .u32 a,\n.u32 b) { ret; }", "the parameter", 6),
        (HEAD + ".entry k(\n.param .pred a) { ret; }", "unknown type .pred", 5),
        (HEAD + ".entry k(.param .u32 a, .param .u32 a) { ret; }", "declared twice", 4),
        (HEAD + ".entry k()\n.maxntid\n{ ret; }", ".maxntid takes 3 numbers", 5),
        (HEAD + ".entry k()\n.maxntid 1,2,3,4\n{ ret; }", ".maxntid takes 3 numbers", 5),
        (HEAD + ".entry k()\n.maxntid 1\n.maxntid 2\n{ ret; }", ".maxntid stands twice", 6),
        (HEAD + ".entry k()\n.noreturn 1\n{ ret; }", ".noreturn takes no numbers", 5),
        (HEAD + ".entry k()\n.wrong 1\n{ ret; }", "unknown directive .wrong", 5),
        (HEAD + ".entry k() { ret; }\n.entry k() { ret; }\n", "k is declared twice", 5),
        (HEAD + ".global .b32 x;\n.global .b32 x;\n", "x is declared twice", 5),
        (HEAD + ".global .b8 x[2] = {1, 2, 3};\n", "too long", 4),
        (HEAD + ".global .b8 x[2] = {1, 256};\n", "256 does not fit into .b8", 4),
        (HEAD + ".global .b8 x[2] = {{1}, {2}};\n", "nested", 4),
        (HEAD + ".global .b8 x[2] = 1, 2;\n", "cannot read the variable", 4),
        (HEAD + ".global .b8 x[2] = {1,};\n", "an operand is missing", 4),
        (HEAD + ".global .b32 x = 1.5;\n", "cannot initialise .b32", 4),
        (HEAD + ".global .f32 x = 1e99;\n", "does not fit into .f32", 4),
        (HEAD + ".global .u32 x;\n.global .u32 y = x;\n", "takes 8 bytes", 5),
        (HEAD + ".global .u64 y = nothing;\n", "nothing is not declared", 4),
        (HEAD + ".global .b32 x\n", "malformed, or the text ends", 4),
        (HEAD + ".global .texref x;\n", "unknown type .texref", 4),
        (HEAD + ".extern .global .b32 x = 1;\n", "cannot have an initialiser", 4),
        (HEAD + ".entry k()\n" + "{" * 200, "nested more than 100 deep", 5),
        (HEAD + ".section .debug_str {\n .b8 0\n", ".section is malformed", 4),
        (HEAD + '.file 1 "a\n', ".file is malformed", 4),
    ],
)
def test_refused_outside_of_bodies(text: str, message: str, line: int) -> None:
    with pytest.raises(PtxError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert caught.value.line == line


def test_functions_that_were_inlined_are_passed_over() -> None:
    """NVRTC leaves some of their definitions behind the kernels."""
    function = ".func (.param .b32 r) f(.param .b32 x)\n{ .reg .b32 %a<2>; { ret; } }\n\n"
    for text in (EVERYTHING + function, EVERYTHING.replace(HEAD, HEAD + function)):
        assert len(code(kernel(parse(text)))) == 23


def test_cut_off_anywhere() -> None:
    end = EVERYTHING.index("\tret;\n}") + len("\tret;\n")
    for cut in range(end):
        with pytest.raises(PtxError):
            parse(EVERYTHING[:cut])
    for cut in range(end, len(EVERYTHING)):
        try:
            assert len(code(kernel(parse(EVERYTHING[:cut])))) == 23
        except PtxError:
            continue


def test_damage_gives_a_typed_error_or_a_module() -> None:
    chance = random.Random(2)
    letters = "{}[]();,.:@!|_%$-+/*\"'#\\\n\t\0é09afxUr"
    refused = 0
    for _ in range(1500):
        text = EVERYTHING
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(text))
            length = chance.choice((0, 1, 1, 5))
            text = text[:at] + chance.choice(("", chance.choice(letters))) + text[at + length :]
        try:
            parse(text)
        except PtxError as error:
            refused += 1
            assert 1 <= error.line <= text.count("\n") + 1
    assert 700 < refused < 1500


@for_each("piece", [*' \n({[,a@0-".:', "/*", "a ", "0 ", "{ "])
@for_each(
    "before",
    ["", "op ", "op %r1 ", "op [", "op [%rd1", "op [%rd1+", "op {%r1", "@", "@%p1", "a", ".reg",
     ".reg .b32 ", ".reg .b32 a", ".shared", ".shared .b8 x[", ".loc", ".loc 1 1 1", ".pragma ",
     "bra ", "op %r1|"],
)  # fmt: skip
def test_long_nonsense_is_refused_at_once(before: str, piece: str) -> None:
    # What is quadratic in the length takes a minute.
    for after in ("", "x;", "#"):
        with pytest.raises(PtxError):
            parse(in_kernel(before + piece * 50_000 + after + "#"))


@for_each("piece", [*" \n({[,a.0", "/*", "a ", ".x "])
@for_each(
    "before",
    ["", ".global", ".global .u64 x", ".global .u64 x[", ".global .u64 x = ", ".global .u64 x = {0",
     ".global .u64 x = generic(", ".entry", ".entry k", ".entry k(", ".entry k(.param .u32 a",
     ".entry k(.param", ".entry k() .maxntid", ".entry k() .maxntid 1", ".section .a", ".file 1",
     ".address_size", ".visible"],
)  # fmt: skip
def test_long_nonsense_outside_of_kernels(before: str, piece: str) -> None:
    for after in ("", ";", "#)"):
        with pytest.raises(PtxError):
            parse(HEAD + before + piece * 50_000 + after)


def test_cut_lines_keep_their_numbers() -> None:
    lines = EVERYTHING.split("\n")
    at = lines.index("\tbar.sync 0;")
    for blank, wrong in itertools.product(("", "// ;", "/* \n */"), ("bar.sync %q;", "}}", "x")):
        text = "\n".join([*lines[:at], blank, wrong, *lines[at:]])
        with pytest.raises(PtxError) as caught:
            parse(text)
        assert caught.value.line == at + 2 + blank.count("\n")
