"""Table of instruction forms: the operands of each, with kinds and types, and the least target.

:data:`TABLE` has a line for each form: a pattern for the name, the operands, and the least target
(sm_80 if missing). An instruction that matches no line is outside the subset. The unit that
executes a matching instruction may still refuse a combination of modifiers without a meaning.

In a pattern, ``<int>`` stands for any word in ``CLASSES["int"]``; ``<t:int>`` also binds that word
to ``t`` for the operands. The rest is a regular expression with literal dots. Operands:

| syntax | operand |
| --- | --- |
| ``t``, ``u32`` | a value of that type: a register, or a constant if the type has constants |
| ``$t``, ``!t`` | a register only; a register declared with exactly that type |
| ``@t``, ``+t`` | also a special register; also the address of a variable |
| ``~t`` | a register, which may be wider |
| ``=t`` | a register that is written; ``=_t``: or the sink ``_`` |
| ``=t\\|pred``, ``=t&pred`` | two destinations, the second optional, or required |
| ``{4:t}`` | four registers in braces; ``v*t``: two or four by modifier v (v2, v4), or one |
| ``[shared]`` | an address in a state space; ``[generic:n]``: with n coordinates |
| ``[s/shared]`` | an address in the space of modifier s, or generic; a variable in shared |
| ``+t[s]`` | also the address of a variable in state space s |
| ``#4/8/16``, ``#0..255``, ``#32*`` | a constant of these; ``u32#0..255``: or a register |
| ``label`` | the target of a branch |
| ``x^y`` | x or y |
| ``?`` | operands after it are optional |

A ``.bN`` register holds any type of its size, an integer register any integer of its size.
Registers marked ``~`` may be wider, if they hold no floats (PTX ISA 9.0, 9.4.1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from ptxgen.interp.text.ptx import (
    SIZES,
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)

_CMP = "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan"
CLASSES: dict[str, str] = {
    "int": "u16 u32 u64 s16 s32 s64",
    "anyint": "u8 u16 u32 u64 s8 s16 s32 s64",
    "short": "u16 u32 s16 s32",
    "signed": "s16 s32 s64",
    "w32": "u32 s32",
    "word": "u32 u64 s32 s64",
    "b": "b16 b32 b64",
    "bw": "b32 b64",
    "bint": "b16 b32 b64 u16 u32 u64 s16 s32 s64",
    "f": "f32 f64",
    "half": "f16 f16x2",
    "brain": "bf16 bf16x2",
    "mode": "rn rz rm rp",
    "imode": "rni rzi rmi rpi",
    "cmp": _CMP,
    "bool": "and or xor",
    "number": "finite infinite number notanumber normal subnormal",
    "mem": "b8 u8 s8 b16 u16 s16 b32 u32 s32 f32 b64 u64 s64 f64",
    "cvt": "u8 u16 u32 u64 s8 s16 s32 s64 f16 f32 f64",
    "vec": "v2 v4",
    "scope": "cta gpu sys cluster",
    "space": "global shared shared::cta local const",
    "seen": "global shared shared::cta",
    "own": "shared shared::cta",
    "dim": "1d 2d 3d 4d 5d",
    "tx": "mbarrier::complete_tx::bytes",
    "of": "cta cluster",
    "order": "relaxed acquire release acq_rel",
    "fetch": "L2::64B L2::128B L2::256B",
    "full": "b32 u32 s32 f32 b64 u64 s64 f64",
    "eights": " ".join(str(n) for n in range(8, 257, 8)),
    "sixteens": " ".join(map(str, (8, 24, *range(16, 257, 16)))),
    "at": "global shared shared::cta shared::cluster",
    "adds": "u32 s32 u64 f32 f64",
    "lcache": "ca cg cs lu cv",
    "scache": "wb cg cs wt",
    "evict": "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate",
}

TABLE = """
(add|sub).<t:int>                              | =t, t, t
(add|sub).sat.<t:s32>                          | =t, t, t
(add|sub|mul)(.<mode>)?(.sat)?.<t:f>           | =t, t, t
(add|sub|mul)(.<mode>)?(.sat)?.<t:half>        | =t, t, t
(add|sub|mul)(.<mode>)?.<t:brain>              | =t, t, t | sm_90
(mul|mul24).(lo|hi).<t:int>                    | =t, t, t
mul.wide.<t:short>                             | =2t, t, t
(mad|mad24).(lo|hi).<t:int>                    | =t, t, t, t
mad.wide.<t:short>                             | =2t, t, t, 2t
(fma|mad)(.<mode>)?(.sat)?.<t:f>               | =t, t, t, t
fma(.<mode>)?(.sat)?.<t:half>                  | =t, t, t, t
fma(.<mode>)?.<t:brain>                        | =t, t, t, t
(div|rem).<t:int>                              | =t, t, t
div.<mode>.<t:f>                               | =t, t, t
(rcp|sqrt).<mode>.<t:f>                        | =t, t
ex2.approx.ftz.f32                             | =f32, f32
sad.<t:int>                                    | =t, t, t, t
(abs|neg).<t:signed>                           | =t, t
(abs|neg).<t:f>                                | =t, t
(abs|neg).<t:half>                             | =t, t
(abs|neg).<t:brain>                            | =t, t
(min|max).<t:int>                              | =t, t, t
(min|max)(.NaN)?.<t:f>                         | =t, t, t
(min|max)(.NaN)?.<t:half>                      | =t, t, t
(min|max)(.NaN)?.<t:brain>                     | =t, t, t
(and|or|xor).<t:b>                             | =t, t, t
(and|or|xor).<t:pred>                          | =t, t, t
not.<t:b>                                      | =t, t
not.<t:pred>                                   | =t, t
cnot.<t:b>                                     | =t, t
shl.<t:b>                                      | =t, t, u32
shr.<t:bint>                                   | =t, t, u32
shf.(l|r).(wrap|clamp).b32                     | =b32, b32, b32, u32
bfe.<t:word>                                   | =t, t, u32#0..255, u32#0..255
bfi.<t:bw>                                     | =t, t, t, u32#0..255, u32#0..255
bfind(.shiftamt)?.<t:word>                     | =u32, t
(clz|popc).<t:bw>                              | =u32, t
brev.<t:bw>                                    | =t, t
prmt.b32(.(f4e|b4e|rc8|ecl|ecr|rc16))?         | =b32, b32, b32, b32
lop3.b32                                       | =b32, b32, b32, b32, #0..255
lop3.(or|and).b32                              | =b32&pred, b32, b32, b32, #0..255, pred
dp4a.<a:w32>.<b:w32>                           | =u32, a, b, u32
dp2a.(lo|hi).<a:w32>.<b:w32>                   | =u32, a, b, u32
setp.<cmp>.<t:bint>                            | =pred|pred, t, t
setp.<cmp>.<bool>.<t:bint>                     | =pred|pred, t, t, pred
setp.<cmp>.<t:f>                               | =pred|pred, t, t
setp.<cmp>.<bool>.<t:f>                        | =pred|pred, t, t, pred
setp.<cmp>.<t:f16>                             | =pred, t, t
setp.<cmp>.<bool>.<t:f16>                      | =pred, t, t, $pred
setp.<cmp>.<t:bf16>                            | =pred, t, t | sm_90
setp.<cmp>.<bool>.<t:bf16>                     | =pred, t, t, $pred | sm_90
set.<cmp>.<d:w32>.<t:bint>                     | =d, t, t
set.<cmp>.<bool>.<d:w32>.<t:bint>              | =d, t, t, pred
set.<cmp>.<d:f32>.<t:bint>                     | =d, t, t
set.<cmp>.<bool>.<d:f32>.<t:bint>              | =d, t, t, pred
set.<cmp>.<d:w32>.<t:f>                        | =d, t, t
set.<cmp>.<bool>.<d:w32>.<t:f>                 | =d, t, t, pred
set.<cmp>.<d:f32>.<t:f>                        | =d, t, t
set.<cmp>.<bool>.<d:f32>.<t:f>                 | =d, t, t, pred
selp.<t:bint>                                  | =t, t, t, pred
selp.<t:f>                                     | =t, t, t, pred
slct.<t:bint>.<s:s32>                          | =t, t, t, s
slct.<t:bint>.<s:f32>                          | =t, t, t, s
slct.<t:f>.<s:s32>                             | =t, t, t, s
slct.<t:f>.<s:f32>                             | =t, t, t, s
testp.<number>.<t:f>                           | =pred, t
copysign.<t:f>                                 | =t, t, t
mov.<t:b>                                      | =t, @+t
mov.<t:int>                                    | =t, @+t
mov.<t:f>                                      | =t, t
mov.<t:pred>                                   | =t, @t
mov.<t:b32>                                    | =t, {2:b16}
mov.<t:b32>                                    | =t, {4:b8}
mov.<t:b64>                                    | =t, {2:b32}
mov.<t:b64>                                    | =t, {4:b16}
mov.<t:b32>                                    | ={2:_b16}, $t
mov.<t:b32>                                    | ={4:_b8}, $t
mov.<t:b64>                                    | ={2:_b32}, $t
mov.<t:b64>                                    | ={4:_b16}, $t
cvt(.<imode>)?(.<mode>)?(.sat)?.<d:cvt>.<s:cvt> | =~d, @~s
cvt(.<imode>)?(.<mode>)?.bf16.<s:f32>          | =bf16, s
cvt(.<imode>)?(.<mode>)?.bf16.<s:cvt>          | =bf16, s | sm_90
cvt(.<imode>)?.<d:f32>.bf16                    | =d, bf16
cvt(.<imode>)?(.<mode>)?(.sat)?.<d:cvt>.bf16   | =d, bf16 | sm_90
cvt(.<imode>)?.bf16.bf16                       | =bf16, bf16 | sm_90
cvt.(rn|rz).(f16x2|bf16x2).<s:f32>             | =!b32, s, s
cvt.rn.f16x2.e4m3x2                            | =!b32, b16 | sm_90
cvta.<s:(global|shared|shared::cta|shared::cluster|local|const|param)>.<t:u64> | =t, +t[s]
cvta.to.(global|shared|shared::cta|shared::cluster|local|const|param).<t:u64> | =t, $t
mapa(.shared::cluster)?.<t:u32>                | =t, t, u32 | sm_90
mapa(.shared::cluster)?.<t:u64>                | =t, t, u32 | sm_90
getctarank.shared::cluster.<t:u32>             | =u32, t | sm_90
getctarank(.shared::cluster)?.<t:u64>          | =u32, t | sm_90
isspacep.(global|shared|shared::cta|local)     | =pred, $u64
isspacep.(shared::cluster)                     | =pred, $u64 | sm_90
activemask.b32                                 | =u32

ld(.weak)?.param(::entry)?(.<v:vec>)?.<t:mem>  | =v*~t, [param]
ld(.weak)?(.<s:space>)?(.<lcache>)?(.<v:vec>)?.<t:mem> | =v*~t, [s]
ld(.weak)?(.<s:global>)?(.<evict>)?(.<fetch>)?(.<v:vec>)?.<t:mem> | =v*~t, [s]
ld.volatile(.<s:seen>)?(.<v:vec>)?.<t:mem>     | =v*~t, [s]
ld.(relaxed|acquire).<scope>(.<s:seen>)?(.<v:vec>)?.<t:mem> | =v*~t, [s]
ld.(relaxed|acquire).<scope>(.<s:global>)?(.<evict>)?(.<fetch>)?(.<v:vec>)?.<t:mem> | =v*~t, [s]
ld.global(.(ca|cg|cs))?.nc(.<fetch>)?(.<v:vec>)?.<t:mem> | =v*~t, [global]
ld.global.nc(.<evict>)?(.<fetch>)?(.<v:vec>)?.<t:mem> | =v*~t, [global]
ldu(.global)?(.<v:vec>)?.<t:mem>               | =v*~t, [global]
st(.weak)?(.<s:(global|shared|shared::cta|local)>)?(.<scache>)?(.<v:vec>)?.<t:mem> | [s], v*~t
st(.weak)?(.<s:global>)?(.<evict>)?(.<v:vec>)?.<t:mem> | [s], v*~t
st.volatile(.<s:seen>)?(.<v:vec>)?.<t:mem>    | [s], v*~t
st.(relaxed|release).<scope>(.<s:seen>)?(.<v:vec>)?.<t:mem> | [s], v*~t
st.(relaxed|release).<scope>(.<s:global>)?(.<evict>)?(.<v:vec>)?.<t:mem> | [s], v*~t
ld(.weak|.(relaxed|acquire).<scope>)?.shared::cluster(.<v:vec>)?.<t:mem> | =v*~t, [shared] | sm_90
st(.weak|.(relaxed|release).<scope>)?.shared::cluster(.<v:vec>)?.<t:mem> | [shared], v*~t | sm_90
st.async(.weak)?.shared::cluster.<tx>(.<v:vec>)?.<t:full> | [shared], v*t, [shared] | sm_90
atom(.<order>)?(.<scope>)?(.<s:at>)?.add.<t:adds> | =_t, [s], t
atom(.<order>)?(.<scope>)?(.<s:at>)?.(min|max).<t:word> | =_t, [s], t
atom(.<order>)?(.<scope>)?(.<s:at>)?.(and|or|xor|exch).<t:bw> | =_t, [s], t
atom(.<order>)?(.<scope>)?(.<s:at>)?.(inc|dec).<t:u32> | =_t, [s], t
atom(.<order>)?(.<scope>)?(.<s:at>)?.cas.<t:bw>  | =_t, [s], t, t
red(.(relaxed|release))?(.<scope>)?(.<s:at>)?.add.<t:adds> | [s], t
red(.(relaxed|release))?(.<scope>)?(.<s:at>)?.(min|max).<t:word> | [s], t
red(.(relaxed|release))?(.<scope>)?(.<s:at>)?.(and|or|xor).<t:bw> | [s], t
red(.(relaxed|release))?(.<scope>)?(.<s:at>)?.(inc|dec).<t:u32> | [s], t
prefetch(.global)?.(L1|L2)                     | [s/global]
prefetch(.<s:(const|param)>)?.tensormap        | [s] | sm_90

cp.async.(ca|cg).shared(::cta)?.global(.<fetch>)? | [shared], [global], #4/8/16, ?, u32#0..16^$pred
cp.async.(ca|cg).shared(::cta)?.global.L2::cache_hint(.<fetch>)? \
    | [shared], [global], #4/8/16, u64
cp.async.(ca|cg).shared(::cta)?.global.L2::cache_hint(.<fetch>)? \
    | [shared], [global], #4/8/16, u32#0..16^$pred, u64
cp.async.commit_group                          |
cp.async.wait_all                              |
cp.async.wait_group                            | #0..
cp.async.mbarrier.arrive(.noinc)?(.<s:own>)?.b64 | [s/shared]
cp.async.bulk.commit_group                     | | sm_90
cp.async.bulk.wait_group(.read)?               | #0.. | sm_90
cp.async.bulk.shared::(cluster|cta).global.<tx> | [shared], [global], u32#16*, [shared] | sm_90
cp.async.bulk.shared::(cluster|cta).global.<tx>.L2::cache_hint \
    | [shared], [global], u32#16*, [shared], u64 | sm_90
cp.async.bulk.shared::cluster.global.<tx>.multicast::cluster \
    | [shared], [global], u32#16*, [shared], u16 | sm_90
cp.async.bulk.shared::cluster.global.<tx>.multicast::cluster.L2::cache_hint \
    | [shared], [global], u32#16*, [shared], u16, u64 | sm_90
cp.async.bulk.shared::cluster.shared::cta.<tx> | [shared], [shared], u32#16*, [shared] | sm_90
cp.async.bulk.global.shared::cta.bulk_group    | [global], [shared], u32#16* | sm_90
cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint \
    | [global], [shared], u32#16*, u64 | sm_90
cp.async.bulk.prefetch.L2.global               | [global], u32#16* | sm_90
cp.async.bulk.tensor.<n:dim>.shared::(cluster|cta).global(.tile)?.<tx> \
    | [shared], [generic:n], [shared] | sm_90
cp.async.bulk.tensor.<n:dim>.shared::(cluster|cta).global(.tile)?.<tx>.L2::cache_hint \
    | [shared], [generic:n], [shared], u64 | sm_90
cp.async.bulk.tensor.<n:dim>.shared::cluster.global(.tile)?.<tx>.multicast::cluster \
    | [shared], [generic:n], [shared], u16 | sm_90
cp.async.bulk.tensor.<n:dim>.shared::cluster.global(.tile)?.<tx>.multicast::cluster.L2::cache_hint \
    | [shared], [generic:n], [shared], u16, u64 | sm_90
cp.async.bulk.tensor.3d.shared::(cluster|cta).global.im2col.<tx> \
    | [shared], [generic:3], [shared], {1:u16} | sm_90
cp.async.bulk.tensor.4d.shared::(cluster|cta).global.im2col.<tx> \
    | [shared], [generic:4], [shared], {2:u16} | sm_90
cp.async.bulk.tensor.4d.shared::cluster.global.im2col.<tx>.multicast::cluster \
    | [shared], [generic:4], [shared], {2:u16}, u16 | sm_90
cp.async.bulk.tensor.5d.shared::(cluster|cta).global.im2col.<tx> \
    | [shared], [generic:5], [shared], {3:u16} | sm_90
cp.async.bulk.tensor.<n:dim>.global.shared::cta(.tile)?.bulk_group | [generic:n], [shared] | sm_90
cp.async.bulk.tensor.<n:dim>.global.shared::cta(.tile)?.bulk_group.L2::cache_hint \
    | [generic:n], [shared], u64 | sm_90
cp.async.bulk.prefetch.tensor.<n:dim>.L2.global(.tile)? | [generic:n] | sm_90

bar(.cta)?.sync                                | u32#0..15, ?, u32#32*
bar(.cta)?.arrive                              | u32#0..15, u32#32*
barrier(.cta)?.sync(.aligned)?                 | u32#0..15, ?, u32#32*
barrier(.cta)?.arrive(.aligned)?               | u32#0..15, u32#32*
bar.warp.sync                                  | u32
barrier.cluster.arrive(.(release|relaxed))?(.aligned)? | | sm_90
barrier.cluster.wait(.acquire)?(.aligned)?     | | sm_90
shfl.sync.(up|down|bfly|idx).b32               | =b32|pred, b32, u32, u32, u32
vote.sync.(all|any|uni).pred                   | =pred, pred, u32
vote.sync.ballot.b32                           | =u32, pred, u32
match.any.sync.<t:bw>                          | =u32, t, u32
match.all.sync.<t:bw>                          | =u32|pred, t, u32
redux.sync.(add|min|max).<t:w32>               | =t, t, u32
redux.sync.(and|or|xor).b32                    | =u32, u32, u32
elect.sync                                     | =_u32&pred, u32 | sm_90
ldmatrix.sync.aligned.m8n8.x<n:(1|2|4)>(.trans)?(.<s:own>)?.b16 | ={n:!b32}, [s/shared]
stmatrix.sync.aligned.m8n8.x<n:(1|2|4)>(.trans)?(.<s:own>)?.b16 | [s/shared], {n:!b32} | sm_90
mma.sync.aligned.m16n8k16.row.col.f32.(bf16.bf16|f16.f16).f32 \
    | ={4:f32}, {4:!b32}, {2:!b32}, {4:f32}
mma.sync.aligned.m16n8k32.row.col.s32.(s8|u8).(s8|u8).s32 | ={4:s32}, {4:!b32}, {2:!b32}, {4:s32}
mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 | ={2:f64}, {1:f64}, {1:f64}, {2:f64}
mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 | ={4:f64}, {2:f64}, {1:f64}, {4:f64} | sm_90
mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 | ={4:f64}, {4:f64}, {2:f64}, {4:f64} | sm_90
mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 | ={4:f64}, {8:f64}, {4:f64}, {4:f64} | sm_90
wgmma.mma_async.sync.aligned.m64n<n:eights>k16.f32.(bf16.bf16|f16.f16) \
    | ={n/2:f32}, $u64^{4:!b32}, $u64, pred, #-1/1, #-1/1, #0/1, ?, #0/1 | sm_90a
wgmma.mma_async.sync.aligned.m64n<n:sixteens>k32.s32.(s8.s8|u8.u8) \
    | ={n/2:s32}, $u64^{4:!b32}, $u64, pred | sm_90a
wgmma.(fence|commit_group).sync.aligned        | | sm_90a
wgmma.wait_group.sync.aligned                  | #0..7 | sm_90a
setmaxnreg.(inc|dec).sync.aligned.u32          | #8* | sm_90a

mbarrier.init(.<s:own>)?.b64                   | [s/shared], u32
mbarrier.inval(.<s:own>)?.b64                  | [s/shared]
mbarrier.(arrive|arrive_drop)(.(release|relaxed).<of>)?(.<s:own>)?.b64 \
    | =_u64, [s/shared]
mbarrier.(arrive|arrive_drop)(.(release|relaxed).<of>)?(.<s:own>)?.b64 \
    | =_u64, [s/shared], u32#1..1048575 | sm_90
mbarrier.(arrive|arrive_drop)(.release.<of>)?.shared::cluster.b64 \
    | _, [shared], ?, u32#1..1048575 | sm_90
mbarrier.(arrive|arrive_drop).noComplete(.release.cta)?(.<s:own>)?.b64 \
    | =u64, [s/shared], u32#1..1048575
mbarrier.(arrive|arrive_drop).expect_tx(.(release|relaxed).<of>)?(.<s:own>)?.b64 \
    | =_u64, [s/shared], u32 | sm_90
mbarrier.(arrive|arrive_drop).expect_tx(.release.<of>)?.shared::cluster.b64 \
    | _, [shared], u32 | sm_90
mbarrier.(expect_tx|complete_tx)(.relaxed.<of>)?(.<s:(shared|shared::cta|shared::cluster)>)?.b64 \
    | [s/shared], u32 | sm_90
mbarrier.test_wait(.acquire.<of>)?(.<s:own>)?.b64 | =pred, [s/shared], $u64
mbarrier.test_wait.parity(.acquire.<of>)?(.<s:own>)?.b64 | =pred, [s/shared], u32#0/1
mbarrier.try_wait(.acquire.<of>)?(.<s:own>)?.b64 | =pred, [s/shared], $u64, ?, u32 | sm_90
mbarrier.try_wait.parity(.acquire.<of>)?(.<s:own>)?.b64 | =pred, [s/shared], u32#0/1, ?, u32 | sm_90
mbarrier.pending_count.b64                     | =u32, u64

fence(.(sc|acq_rel))?.(cta|gpu|sys)            |
fence(.(sc|acq_rel))?.cluster                  | | sm_90
fence.mbarrier_init.release.cluster            | | sm_90
fence.proxy.alias                              |
fence.proxy.async(.(global|shared::cta|shared::cluster))? | | sm_90
membar.(cta|gl|sys)                            |
griddepcontrol.(wait|launch_dependents)        | | sm_90
nanosleep.u32                                  | u32

bra(.uni)?                                     | label
ret(.uni)?                                     |
exit                                           |
trap                                           |
"""


# -- the table, read ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slot:
    """One alternative for an operand of a form: a register of ``type``, or what else is legal.

    ``written``: it is a destination. ``special``, ``symbol``, ``sink``: a special register, the
    address of a variable, ``_`` is legal too. ``choices``: the legal constants. ``space``: without
    a type, the state space of an address in brackets, which has ``coordinates`` coordinates; with
    one, that of the variable. ``label``: it is a label. ``exact``: a register must have exactly the
    type; ``wider``: it may be wider.
    """

    type: str = ""
    """PTX type, or the name bound to it; "" for addresses, constants, labels and ``_``."""
    written: bool = False
    constant: bool = False
    """Whether a constant is legal instead of a register."""
    special: bool = False
    symbol: bool = False
    exact: bool = False
    wider: bool = False
    sink: bool = False
    second: str = ""
    """Whether the operand is a pair of destinations, ``d|p`` with a predicate p: "" no, "|"
    optionally, "&" always.
    """
    count: str = ""
    """Number of registers in braces; "v": given by the modifier v2 or v4; "": no braces."""
    space: str = ""
    coordinates: str = ""
    choices: str = ""
    label: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """One line of :data:`TABLE`, parsed: ``pattern`` matches an instruction's name; ``operands[i]``
    lists the alternatives for operand i; the first ``required`` operands must be there; ``target``
    is the least target, such as "sm_80".
    """

    name: str
    pattern: re.Pattern[str]
    operands: tuple[tuple[Slot, ...], ...]
    required: int
    target: str


def _slot(text: str) -> Slot:
    if text == "label":
        return Slot(label=True)
    if text == "_":
        return Slot(sink=True)
    if text[0] == "#":
        return Slot(choices=text[1:])
    if text[0] == "[":
        space, _, coordinates = text[1:-1].partition(":")
        return Slot(space=space, coordinates=coordinates)
    text, _, choices = text.partition("#")
    text, _, space = text.partition("[")
    written = text[0] == "="
    text = text.removeprefix("=")
    count = ""
    if text[0] == "{":
        count, _, text = text[1:-1].partition(":")
    elif "*" in text:
        count, _, text = text.partition("*")
    second = next((c for c in "|&" if c in text), "")
    text = text.partition(second)[0] if second else text
    bare = text.lstrip("~@+$!_")
    marks = text[: len(text) - len(bare)]
    return Slot(
        type=bare,
        written=written,
        constant=not written and not {"$", "!"} & {*marks} and (not count or count == "v"),
        special="@" in marks,
        symbol="+" in marks,
        exact="!" in marks,
        wider="~" in marks,
        sink="_" in marks,
        second=second,
        count=count,
        choices=choices,
        space=space.rstrip("]"),
    )


def _regex(pattern: str) -> str:
    """Converts a name pattern of the table to a regular expression."""

    def group(match: re.Match[str]) -> str:
        name, colon, what = match[1].partition(":")
        what = what if colon else name
        one_of = what if what[0] == "(" else f"({CLASSES.get(what, what).replace(' ', '|')})"
        return f"(?P<{name}>{one_of[1:-1]})" if colon else one_of

    return re.sub(r"<([^<>]*)>", group, pattern.replace(".", r"\."))


@cache
def forms() -> dict[str, list[Form]]:
    """Returns the forms of the table by opcode."""
    found: dict[str, list[Form]] = {}
    for line in TABLE.splitlines():
        if not line.strip():
            continue
        name, operands, target = (*(p.strip() for p in line.split(" |")), "sm_80")[:3]
        parts = [p.strip() for p in operands.split(",") if p.strip()]
        required = parts.index("?") if "?" in parts else len(parts)
        slots = tuple(tuple(_slot(s) for s in p.split("^")) for p in parts if p != "?")
        form = Form(name, re.compile(_regex(name)), slots, required, target)
        head = name.partition(".")[0].replace("(", "|").replace(")", "|").replace("?", "")
        for opcode in filter(None, head.split("|")):
            found.setdefault(opcode, []).append(form)
    return found


@lru_cache(maxsize=4096)
def matching_forms(name: str) -> list[tuple[Form, dict[str, str | None]]]:
    """Returns the forms whose patterns match an instruction's name, each with the match's named
    groups: of ``<t:int>``, the word that the name has there, as ``{"t": "u32"}``.
    """
    return [
        (form, match.groupdict())
        for form in forms().get(name.partition(".")[0], ())
        if (match := form.pattern.fullmatch(name))
    ]


# -- instructions, held against it ----------------------------------------------------------

_CLUSTER = frozenset(("cluster", "shared::cluster"))
_INTEGERS = frozenset(["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"])
_UNTYPED = frozenset(["b8", "b16", "b32", "b64"])


def fits(register: str, type: str, *, wider: bool = False) -> bool:
    """Whether a register declared with type ``register`` may be an operand of type ``type`` (PTX
    ISA 9.0, 9.4.1). ``wider``: it may also be wider than an operand that is no float.
    """
    if "pred" in (register, type):
        return register == type
    if type in ("bf16", "bf16x2"):
        return register == ("b16" if type == "bf16" else "b32")
    if register == "f16x2" or type == "f16x2":
        return register in ("f16x2", "b32") and type in ("f16x2", "b32")
    plain = register in _UNTYPED or type in _UNTYPED
    both = register in _INTEGERS and type in _INTEGERS
    if not (plain or both or register == type):
        return False
    if register not in SIZES or register == "b128":
        return False
    if wider and type[0] != "f":
        return SIZES[register] >= SIZES[type]
    return SIZES[register] == SIZES[type]


_accepted: set[object] = set()
"""Cache of :func:`check`: opcode, modifiers, target and operand kinds of accepted instructions."""
_ACCEPTED_LIMIT = 1 << 14
_ITSELF = (Immediate, Special, Sink)
"""Operand classes whose objects are their own cache key in :func:`_kind`."""


class FormError(Exception):
    """Raised when an instruction's operands do not fit its form; the message says why."""


def check(
    instruction: Instruction, target: str, registers: Mapping[str, str], spaces: Mapping[str, str]
) -> bool:
    """Whether the table has the instruction's name; raises FormError if its operands fit no form.

    ``target`` is the module's, ``registers`` maps each register to its type, ``spaces`` each
    variable to its state space (``param`` for a parameter).
    """
    kinds = tuple([_kind(operand, registers) for operand in instruction.operands])
    key = (instruction.opcode, instruction.modifiers, target, kinds)
    if key in _accepted:
        return True
    said: list[str] = []
    for form, groups in matching_forms(instruction.name):
        wrong = _Check(instruction, groups, registers, spaces).mismatch(form)
        least = form.target
        if least == "sm_80" and _CLUSTER & {*instruction.modifiers}:
            least = "sm_90"
        if wrong is None and not _has(target, least):
            wrong = f"takes .target {least} or later, the module is for {target}"
        if wrong is None:
            if None not in kinds:
                if len(_accepted) >= _ACCEPTED_LIMIT:
                    _accepted.clear()
                _accepted.add(key)
            return True
        said.append(wrong)
    if said:
        raise FormError(f"{instruction.name} {said[0]}")
    return False


def _kind(operand: Operand, registers: Mapping[str, str]) -> object:
    """Returns a cache key for an operand; None if its check depends on a variable's state space."""
    if isinstance(operand, Register):
        return registers[operand.name]
    if isinstance(operand, Address):
        if operand.coordinates or not isinstance(operand.base, Register):
            return None
        return Address, registers[operand.base.name]
    if isinstance(operand, Vector):
        kinds = tuple([_kind(item, registers) for item in operand.items])
        return None if None in kinds else kinds
    if isinstance(operand, Negated):
        return Negated
    return operand if isinstance(operand, _ITSELF) else None


def _has(target: str, least: str) -> bool:
    number, wanted = (int(t.removeprefix("sm_").rstrip("af")) for t in (target, least))
    if least.endswith("a"):
        return number == wanted and target.endswith("a")
    return number >= wanted


class _Check:
    """Checks the operands of ``instruction`` against one form whose pattern matches its name.

    ``groups``: the words that the match bound, as ``{"t": "u32"}``; ``registers``: type of each
    register; ``spaces``: state space of each variable.
    """

    def __init__(
        self,
        instruction: Instruction,
        groups: Mapping[str, str | None],
        registers: Mapping[str, str],
        spaces: Mapping[str, str],
    ) -> None:
        self.instruction, self.groups = instruction, groups
        self.registers, self.spaces = registers, spaces

    def mismatch(self, form: Form) -> str | None:
        """Returns why the operands do not fit ``form``, or None if they do."""
        given = self.instruction.operands
        most = len(form.operands)
        if not form.required <= len(given) <= most:
            wanted = str(most) if most == form.required else f"{form.required} to {most}"
            return f"takes {wanted} operands, got {len(given)}"
        for number, (operand, slots) in enumerate(zip(given, form.operands, strict=False), 1):
            said = [self.operand_mismatch(operand, slot) for slot in slots]
            if all(said):
                return f"operand {number}: {' or '.join(filter(None, said))}"
        return None

    def type_of(self, text: str) -> str:
        """Returns the PTX type that ``text``, from an operand of the table, means for this
        instruction: ``t`` the type bound by ``<t:...>`` in the pattern, ``2t`` the same of twice
        the width, others themselves.
        """
        if text in self.groups:
            return self.groups[text] or ""
        if text[0] == "2" and text[1:] in self.groups:
            narrow = self.groups[text[1:]] or ""
            return f"{narrow[0]}{2 * int(narrow[1:])}"
        return text

    def operand_mismatch(self, operand: Operand, slot: Slot) -> str | None:
        """Returns why one operand does not fit ``slot``, or None if it does."""
        if slot.label:
            return None if isinstance(operand, Symbol) else "takes a label"
        if slot.choices and (not slot.type or isinstance(operand, Immediate)):
            return self.constant(operand, slot.choices)
        if slot.space and not slot.type:
            return self.address(operand, slot)
        if not slot.type:
            return None if isinstance(operand, Sink) else "takes _"
        type = self.type_of(slot.type)
        if slot.count:
            return self.vector_mismatch(operand, slot, type)
        if slot.second and isinstance(operand, Pair):
            second = self.value_mismatch(operand.second, slot, "pred")
            return self.value_mismatch(operand.first, slot, type) or second
        if slot.second == "&":
            return "takes two results, a|b"
        return self.value_mismatch(operand, slot, type)

    def vector_mismatch(self, operand: Operand, slot: Slot, type: str) -> str | None:
        if slot.count == "v":
            given = self.groups.get("v")
            if given is None:
                return self.value_mismatch(operand, slot, type)
            count = int(given[1:])
            if SIZES[type] * count > 16:
                return "takes up to 16 bytes"
        else:
            name, _, part = slot.count.partition("/")
            count = int(self.groups.get(name) or name) // int(part or 1)
        if not isinstance(operand, Vector) or len(operand.items) != count:
            return f"takes {count} registers in braces"
        sizes = {self.registers[x.name] for x in operand.items if isinstance(x, Register)}
        if not sizes and slot.written:
            return "takes a register in braces"
        if self.instruction.opcode == "mov" and len(sizes) > 1:
            return "takes registers of one type in braces"
        if len({SIZES.get(each) for each in sizes}) > 1:
            return "takes registers of one width in braces"
        for item in operand.items:
            if isinstance(item, Sink) and slot.written and (slot.sink or slot.count == "v"):
                continue
            if said := self.value_mismatch(item, slot, type):
                return said
        return None

    def value_mismatch(self, operand: Operand, slot: Slot, type: str) -> str | None:
        """Returns why a register, constant or symbol does not fit ``slot``, or None if it does."""
        if isinstance(operand, Sink) and slot.sink:
            return None
        if isinstance(operand, Negated) and type == "pred" and not slot.written:
            return None
        if isinstance(operand, Register):
            kind = self.registers[operand.name]
            if slot.exact and kind != type:
                return f"takes a register declared as .{type}, got {operand.name}, a .{kind}"
            if fits(kind, type, wider=slot.wider):
                return None
            least = " or wider" if slot.wider else ""
            return f"takes a .{type}{least}, got {operand.name}, which is .{kind}"
        if isinstance(operand, Immediate) and slot.constant and _constant(operand, type):
            return None
        if slot.special and isinstance(operand, Special):
            fine = type == "pred" or (type[0] in "bus" and SIZES[type] >= 4)
            return None if fine else f"takes a register of type .{type}"
        if slot.symbol and isinstance(operand, Symbol):
            there = self.spaces.get(operand.name)
            if slot.space and self.space(slot.space) != there:
                return f"takes an address in .{self.space(slot.space)} memory"
            size = 8 if there in ("global", "const") else 4
            wide = type[0] in "bus" and SIZES[type] >= size
            return None if wide else f"takes a .{type}, which holds no address"
        what = "a register" if not slot.constant else "a register or constant"
        return f"takes {what} of type .{type}"

    def constant(self, operand: Operand, choices: str) -> str | None:
        value = operand.value if isinstance(operand, Immediate) else None
        if isinstance(value, int):
            low, dots, high = choices.partition("..")
            if choices.endswith("*"):
                if 0 < value < 1 << 20 and value % int(choices[:-1]) == 0:
                    return None
            elif dots:
                if int(low) <= value and (not high or value <= int(high)):
                    return None
            elif str(value) in choices.split("/"):
                return None
        if choices.endswith("*"):
            return f"takes a constant that is a multiple of {choices[:-1]}"
        return f"takes a constant: {choices.replace('/', ', ').replace('..', ' to ')}"

    def address(self, operand: Operand, slot: Slot) -> str | None:
        if not isinstance(operand, Address):
            return "takes an address in brackets"
        rank = int((self.groups.get(slot.coordinates) or slot.coordinates or "0")[0])
        if rank and operand.offset:
            return "takes no offset with coordinates"
        if len(operand.coordinates) != rank:
            return f"takes {rank} coordinates, got {len(operand.coordinates)}"
        for coordinate in operand.coordinates:
            if said := self.value_mismatch(coordinate, Slot("s32", constant=True), "s32"):
                return said
        name, _, variables = slot.space.partition("/")
        space = self.space(name)
        if isinstance(operand.base, Register):
            kind = self.registers[operand.base.name]
            if SIZES[kind] == 4 and space in ("global", "generic", "const"):
                return f"takes an address of 64 bits, got {operand.base.name}, a .{kind}"
        if isinstance(operand.base, Symbol):
            there = self.spaces.get(operand.base.name)
            if there is None:
                return f"{operand.base.name} is no variable"
            wanted = variables or space
            if wanted == "generic":
                wanted = "global"  # whose addresses are generic ones
            if wanted != there:
                return f"takes an address in .{wanted} memory, {operand.base.name} is in .{there}"
        return None

    def space(self, name: str) -> str:
        """Returns the state space that ``name``, from an operand of the table, means for this
        instruction: ``s`` the one among its modifiers (generic if there is none), others
        themselves.
        """
        found = self.groups.get(name) if name == "s" else name
        return (found or "generic").partition("::")[0]


def _constant(constant: Immediate, type: str) -> bool:
    """Whether a constant of this kind may be an operand of ``type``; ignores its value."""
    if type in _INTEGERS or type in _UNTYPED or type == "pred":
        kinds = {"b32": ("int", "f32"), "b64": ("int", "f64")}.get(type, ("int",))
        return constant.type in kinds
    return type in ("f32", "f64") and constant.type != "int"
