"""Asynchronous instructions of the CPU device: mbarriers, bulk copies, clusters, wgmma."""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ptxgen.errors import (
    BarrierFault,
    DeadlockFault,
    KernelFault,
    MemoryFault,
    PtxError,
    RaceFault,
    SpecError,
    UninitializedFault,
)
from ptxgen.interp.units.tma import TensorMap
from ptxgen.oracle.dot16 import dot16
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.runtime.launch import Parameters

Array = np.ndarray[Any, Any]
ORDERS: list[dict[str, Any]] = [
    {},
    {"early": True},
    *({"seed": s, "early": bool(s % 2)} for s in range(4)),
]
"""Settings under which every kernel must give the same."""


def module(
    body: str, pointers: int, *, shared: str = "", cluster: int = 0, params: str = ""
) -> bytes:
    """A kernel ``test`` whose parameters are pointers, in %a0, %a1 and so on."""
    given = [f".param .u64 p{i}" for i in range(pointers)]
    listed = ", ".join([*given, params] if params else given)
    loads = "\n".join(f"ld.param.u64 %a{i}, [p{i}];" for i in range(pointers))
    head = f".explicitcluster .reqnctapercluster {cluster}, 1, 1" if cluster else ""
    return (
        f".version 8.6\n.target sm_90a\n.address_size 64\n"
        f".visible .entry test({listed}) {head}\n{{\n"
        ".reg .b64 %a<10>; .reg .b64 %d<100>; .reg .b32 %r<100>; .reg .pred %p<50>;\n"
        ".reg .f32 %f<300>; .reg .b16 %h<20>; .reg .b32 %th; .reg .b32 %ln; .reg .b32 %wp;\n"
        f"{shared}\n{loads}\n"
        "mov.u32 %th, %tid.x;\nand.b32 %ln, %th, 31;\nshr.u32 %wp, %th, 5;\n"
        f"{body}\nret;\n}}\n"
    ).encode()


def launch(
    text: bytes,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    *,
    block: int,
    grid: int = 1,
    dynamic: int = 0,
    params: bytes = b"",
    device: CpuDevice | None = None,
    **settings: Any,
) -> list[Array]:
    """The contents of ``outputs`` after a launch with pointers to all arrays."""
    device = device or CpuDevice(**settings)
    function = device.load(text, "test", dynamic)
    arrays = [np.ascontiguousarray(x) for x in (*inputs, *outputs)]
    pointers = [device.alloc(x.nbytes) for x in arrays]
    for pointer, array in zip(pointers, arrays, strict=True):
        device.copy_in(pointer, array.ctypes.data, array.nbytes)
    packed = struct.pack(f"<{len(pointers)}Q", *pointers)
    if params:
        packed = packed.ljust(-(-len(packed) // 64) * 64, b"\0") + params
    prepared = device.prepare(
        function,
        (grid, 1, 1),
        (block, 1, 1),
        Parameters(packed, tuple(range(len(pointers)))),
        len(pointers),
        "a test",
    )
    prepared.fire(0, *pointers)
    results = [np.empty_like(x) for x in arrays[len(inputs) :]]
    for pointer, result in zip(pointers[len(inputs) :], results, strict=True):
        device.copy_out(result.ctypes.data, pointer, result.nbytes)
    return results


def words(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 1 << 32, count, dtype=np.uint32)


def zeros(count: int) -> Array:
    return np.zeros(count, np.uint32)


def wait(bar: str, parity: str, label: str, done: str = "%p49") -> str:
    return (
        f"{label}:\nmbarrier.try_wait.parity.shared::cta.b64 {done}, [{bar}], {parity};\n"
        f"@!{done} bra {label};\n"
    )


FIRST = "setp.eq.u32 %p0, %th, 0;\n"
STORE = "mad.wide.u32 %d90, %gid, 4, %a1;\nst.global.u32 [%d90], %r90;\n"
INIT = FIRST + "@%p0 mbarrier.init.shared::cta.b64 [bar], {count};\nbar.sync 0;\n"
BAR = ".shared .align 8 .b64 bar;\n"


def own(address: str, base: str, register: str = "%a0") -> str:
    """The address of a thread's word (of the grid) behind a pointer."""
    return (
        f"mov.u32 %r98, %ctaid.x;\nmov.u32 %r99, %ntid.x;\nmad.lo.u32 %r98, %r98, %r99, %th;\n"
        f"mad.wide.u32 {address}, %r98, 4, {base};\n"
    )


# -- mbarriers ------------------------------------------------------------------------


def exchange(count: int = 128, arrive: str = "mbarrier.arrive.shared::cta.b64 _, [bar];") -> bytes:
    """All threads write, arrive and wait, and read what another has written; three times."""
    return module(
        INIT.format(count=count)
        + own("%d0", "%a0")
        + own("%d1", "%a1")
        + "ld.global.u32 %r0, [%d0];\nmov.u32 %r1, tile;\nmad.lo.u32 %r2, %th, 4, %r1;\n"
        "xor.b32 %r3, %th, 77;\nmad.lo.u32 %r3, %r3, 4, %r1;\nmov.u32 %r4, 0;\nmov.u32 %r5, 0;\n"
        "again:\nst.shared.u32 [%r2], %r0;\n"
        + arrive
        + wait("bar", "%r4", "w0")
        + "xor.b32 %r4, %r4, 1;\nld.shared.u32 %r6, [%r3];\nmad.lo.u32 %r0, %r0, 3, %r6;\n"
        + arrive
        + wait("bar", "%r4", "w1")
        + "xor.b32 %r4, %r4, 1;\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p1, %r5, 3;\n"
        "@%p1 bra again;\nst.global.u32 [%d1], %r0;\n",
        2,
        shared=BAR + ".shared .align 4 .b8 tile[512];",
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("count", "arrive"),
    [
        (128, "mbarrier.arrive.shared::cta.b64 _, [bar];"),
        (384, "mbarrier.arrive.release.cta.shared::cta.b64 %d9, [bar], 3;"),
    ],
)
def test_an_mbarrier_orders_and_counts(order: dict[str, Any], count: int, arrive: str) -> None:
    x = words(256)
    (got,) = launch(exchange(count, arrive), [x], [zeros(256)], block=128, grid=2, **order)
    want = x.reshape(2, 128)
    for _ in range(3):
        want = want * np.uint32(3) + want[:, np.arange(128) ^ 77]
    np.testing.assert_array_equal(got, want.reshape(-1))


def test_a_missing_arrival_is_a_deadlock() -> None:
    with pytest.raises(DeadlockFault, match="try_wait"):
        launch(exchange(129), [words(128)], [zeros(128)], block=128)


def test_too_many_arrivals_are_a_fault() -> None:
    arrive = "mbarrier.arrive.shared::cta.b64 _, [bar], 3;"
    with pytest.raises(BarrierFault, match="waits for 2 more"):
        launch(exchange(128, arrive), [words(128)], [zeros(128)], block=128)


def test_a_read_before_the_wait_is_a_race() -> None:
    text = exchange().replace(wait("bar", "%r4", "w0").encode(), b"")
    for order in ORDERS:
        with pytest.raises(KernelFault) as caught:
            launch(text, [words(128)], [zeros(128)], block=128, **order)
        assert isinstance(caught.value, RaceFault | UninitializedFault | BarrierFault)


@pytest.mark.parametrize("size", [1, 3])
def test_states_and_parities_of_an_mbarrier(size: int) -> None:
    """Arrivals complete phases: one thread arrives five times, and tests state and parities after
    each.
    """
    steps = []
    for i in range(5):
        steps.append(
            f"mbarrier.arrive.shared::cta.b64 %d{i}, [bar];\n"
            f"mbarrier.test_wait.shared::cta.b64 %p1, [bar], %d{i};\n"
            "mbarrier.test_wait.parity.shared::cta.b64 %p2, [bar], 0;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 1, 100;\n"
            f"mbarrier.pending_count.b64 %r0, %d{i};\n"
            "selp.u32 %r1, 1, 0, %p1;\nselp.u32 %r2, 2, 0, %p2;\nselp.u32 %r3, 4, 0, %p3;\n"
            "or.b32 %r1, %r1, %r2;\nor.b32 %r1, %r1, %r3;\nmad.lo.u32 %r1, %r0, 8, %r1;\n"
            f"st.global.u32 [%a0+{4 * i}], %r1;\n"
        )
    text = module(INIT.format(count=size) + "".join(steps), 1, shared=BAR)
    (got,) = launch(text, [], [zeros(5)], block=1)
    want = []
    for i in range(5):
        phase = (i + 1) // size
        over = phase > i // size
        want.append(over | 2 * (phase & 1 != 0) | 4 * (phase & 1 != 1) | 8 * (size - i % size))
    assert got.tolist() == want


def test_lanes_that_arrive_together_find_different_states() -> None:
    body = (
        INIT.format(count=40)
        + "mbarrier.arrive.shared::cta.b64 %d0, [bar];\nmbarrier.pending_count.b64 %r0, %d0;\n"
        + own("%d1", "%a0")
        + "st.global.u32 [%d1], %r0;\n"
    )
    (got,) = launch(module(body, 1, shared=BAR), [], [zeros(32)], block=32)
    assert sorted(got.tolist()) == list(range(9, 41))


def test_bytes_may_come_before_they_are_expected() -> None:
    done = "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar],"
    lines = [
        f"{done} 64;",
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 96;",
        "mbarrier.arrive.shared::cta.b64 _, [bar];",
        f"{done} 32;",
        "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [bar], 16;",
        f"{done} 16;",
    ]
    body = INIT.format(count=1)
    for i, line in enumerate(lines):
        body += (
            f"{line}\nmbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0;\n"
            f"selp.u32 %r1, 1, 0, %p1;\nst.global.u32 [%a0+{4 * i}], %r1;\n"
        )
    (got,) = launch(module(body, 1, shared=BAR), [], [zeros(6)], block=1)
    assert got.tolist() == [0, 0, 0, 1, 1, 0]


def test_arrivals_that_drop_out() -> None:
    """A barrier for three; one drops out, so that later phases take two arrivals."""
    lines = ["arrive", "arrive", "arrive_drop", "arrive", "arrive", "arrive"]
    body = INIT.format(count=3)
    for i, line in enumerate(lines):
        body += (
            f"mbarrier.{line}.shared::cta.b64 %d0, [bar];\n"
            "mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0;\n"
            f"selp.u32 %r1, 1, 0, %p1;\nst.global.u32 [%a0+{4 * i}], %r1;\n"
        )
    (got,) = launch(module(body, 1, shared=BAR), [], [zeros(6)], block=1)
    assert got.tolist() == [0, 0, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("line", "kind", "said"),
    [
        ("mbarrier.arrive.shared::cta.b64 _, [bar+8];", UninitializedFault, "no mbarrier"),
        ("mbarrier.arrive.shared::cta.b64 _, [bar+4];", MemoryFault, "misaligned"),
        ("mbarrier.init.shared::cta.b64 [bar+8], 0;", MemoryFault, "count 0"),
        ("mbarrier.arrive.noComplete.shared::cta.b64 %d0, [bar], 1;", BarrierFault, "noComplete"),
        (
            "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 1048576;",
            BarrierFault,
            "1048576 bytes",
        ),
        (
            "mbarrier.inval.shared::cta.b64 [bar];\nmbarrier.arrive.shared::cta.b64 _, [bar];",
            UninitializedFault,
            "no mbarrier",
        ),
    ],
)
def test_wrong_uses_of_an_mbarrier(line: str, kind: type[KernelFault], said: str) -> None:
    text = module(INIT.format(count=1) + line, 1, shared=BAR.replace("bar;", "bar[2];"))
    with pytest.raises(kind, match=said):
        launch(text, [], [zeros(1)], block=1)


def test_an_mbarrier_used_before_others_know_of_it() -> None:
    text = exchange().replace(b"bar.sync 0;\n", b"")
    with pytest.raises(KernelFault, match="mbarrier"):
        launch(text, [words(128)], [zeros(128)], block=128)


# -- copies that arrive at an mbarrier ------------------------------------------------


def copying(noinc: bool, extra: str = "") -> bytes:
    """All threads copy 16 bytes and read another's words behind an mbarrier."""
    own_arrival = "" if noinc else "mbarrier.arrive.shared::cta.b64 _, [bar];\n"
    return module(
        INIT.format(count=64)
        + "mov.u32 %r1, tile;\nmad.lo.u32 %r2, %th, 16, %r1;\nmad.wide.u32 %d0, %th, 16, %a0;\n"
        "xor.b32 %r3, %th, 21;\nmad.lo.u32 %r3, %r3, 16, %r1;\nmad.wide.u32 %d1, %th, 4, %a1;\n"
        "cp.async.ca.shared.global [%r2], [%d0], 16;\n"
        f"cp.async.mbarrier.arrive{'.noinc' if noinc else ''}.shared::cta.b64 [bar];\n"
        + own_arrival
        + extra
        + wait("bar", "0", "w0")
        + "ld.shared.u32 %r4, [%r3+8];\nst.global.u32 [%d1], %r4;\n",
        2,
        shared=BAR + ".shared .align 16 .b8 tile[1024];",
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("extra", ["", "cp.async.wait_all;\n", "cp.async.commit_group;\n"])
@pytest.mark.parametrize("noinc", [False, True])
def test_copies_arrive_at_an_mbarrier(noinc: bool, extra: str, order: dict[str, Any]) -> None:
    x = words(256)
    (got,) = launch(copying(noinc, extra), [x], [zeros(64)], block=64, **order)
    np.testing.assert_array_equal(got, x.reshape(64, 4)[np.arange(64) ^ 21, 2])


@pytest.mark.parametrize("order", ORDERS)
def test_what_follows_the_arrival_of_a_copy_is_not_ordered_by_it(order: dict[str, Any]) -> None:
    text = copying(True).replace(
        b"mbarrier.arrive.noinc.shared::cta.b64 [bar];\n",
        b"mbarrier.arrive.noinc.shared::cta.b64 [bar];\nst.shared.u32 [%r2+1024], %th;\n",
    ).replace(b"[%r3+8]", b"[%r3+1024]").replace(b"tile[1024]", b"tile[2048]")  # fmt: skip
    with pytest.raises((RaceFault, UninitializedFault)):
        launch(text, [words(256)], [zeros(64)], block=64, **order)


# -- bulk copies ------------------------------------------------------------------------

LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
FENCE = "fence.proxy.async.shared::cta;\n"


def bulk_load(expected: int = 1024, waiting: bool = True) -> bytes:
    """Thread 0 fetches 768 and 256 bytes; all threads show them, reversed."""
    return module(
        INIT.format(count=1)
        + "@!%p0 bra issued;\nmov.u32 %r1, %ctaid.x;\nmad.wide.u32 %d0, %r1, 1024, %a0;\n"
        f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {expected};\n"
        f"{LOAD} [tile], [%d0], 768, [bar];\n{LOAD} [tile+768], [%d0+768], 256, [bar];\nissued:\n"
        + (wait("bar", "0", "w0") if waiting else "")
        + own("%d1", "%a1")
        + "mov.u32 %r2, tile;\nsub.u32 %r3, 255, %th;\nmad.lo.u32 %r2, %r3, 4, %r2;\n"
        "ld.shared.u32 %r4, [%r2];\nst.global.u32 [%d1], %r4;\n",
        2,
        shared=BAR + ".shared .align 128 .b8 tile[1024];",
    )


@pytest.mark.parametrize("order", ORDERS)
def test_bulk_loads(order: dict[str, Any]) -> None:
    x = words(768)
    (got,) = launch(bulk_load(), [x], [zeros(768)], block=256, grid=3, **order)
    np.testing.assert_array_equal(got, x.reshape(3, 256)[:, ::-1].reshape(-1))


@pytest.mark.parametrize("expected", [1040, 1008])
def test_bytes_that_do_not_add_up_are_a_deadlock(expected: int) -> None:
    with pytest.raises(DeadlockFault):
        launch(bulk_load(expected), [words(256)], [zeros(256)], block=256)


@pytest.mark.parametrize("order", ORDERS)
def test_too_few_bytes_let_threads_go_too_early(order: dict[str, Any]) -> None:
    with pytest.raises((RaceFault, DeadlockFault)):
        launch(bulk_load(768), [words(256)], [zeros(256)], block=256, **order)


@pytest.mark.parametrize("order", ORDERS)
def test_a_bulk_load_that_nobody_waits_for(order: dict[str, Any]) -> None:
    with pytest.raises((RaceFault, UninitializedFault), match="shared memory"):
        launch(bulk_load(waiting=False), [words(256)], [zeros(256)], block=256, **order)


@pytest.mark.parametrize(
    ("old", "new", "kind", "said"),
    [
        (b"[%d0], 768", b"[%d0+4], 768", MemoryFault, "misaligned"),
        (b"[tile], [%d0]", b"[tile+8], [%d0]", MemoryFault, "misaligned"),
        (b"], 768, ", b"], 760, ", PtxError, "multiple of 16"),
        (b"[%d0+768], 256", b"[%d0+784], 256", MemoryFault, "out of bounds"),
        (b"[tile+768], ", b"[tile+784], ", MemoryFault, "out of bounds"),
        (b"256, [bar]", b"256, [tile]", UninitializedFault, "no mbarrier"),
        (b"bar.sync 0;", b"", KernelFault, "mbarrier"),
    ],
)
def test_wrong_bulk_loads(old: bytes, new: bytes, kind: type[KernelFault], said: str) -> None:
    text = bulk_load()
    assert old in text
    with pytest.raises(kind, match=said):
        launch(text.replace(old, new), [words(256)], [zeros(256)], block=256)


def bulk_store(fence: str = FENCE, reads: str = ".read", barrier: str = "bar.sync 0;\n") -> bytes:
    """Threads fill a tile, thread 0 stores it; they fill it again, and it is stored again."""
    step = (
        "st.shared.u32 [%r2], %r3;\n" + fence + "bar.sync 0;\n"
        "@!%p0 bra s{i};\n"
        "cp.async.bulk.global.shared::cta.bulk_group [%a1+{at}], [tile], 512;\n"
        "cp.async.bulk.commit_group;\n{wait}s{i}:\n"
    )
    waiting = f"cp.async.bulk.wait_group{reads} 0;\n" if reads != "none" else ""
    return module(
        FIRST
        + own("%d0", "%a0")
        + "ld.global.u32 %r3, [%d0];\nmov.u32 %r2, tile;\nmad.lo.u32 %r2, %th, 4, %r2;\n"
        + step.format(i=0, at=0, wait=waiting)
        + barrier
        + "not.b32 %r3, %r3;\n"
        + step.format(i=1, at=512, wait="cp.async.bulk.wait_group 0;\n"),
        2,
        shared=".shared .align 16 .b8 tile[512];",
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("reads", [".read", ""])
def test_bulk_stores(reads: str, order: dict[str, Any]) -> None:
    x = words(128)
    (got,) = launch(bulk_store(reads=reads), [x], [zeros(256)], block=128, **order)
    np.testing.assert_array_equal(got, np.concatenate([x, ~x]))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"fence": ""}, "fence.proxy.async"),
        ({"reads": "none"}, "race"),
        ({"barrier": ""}, "race"),
    ],
)
def test_wrong_bulk_stores(change: dict[str, str], said: str, order: dict[str, Any]) -> None:
    with pytest.raises(RaceFault, match=said):
        launch(bulk_store(**change), [words(128)], [zeros(256)], block=128, **order)


@pytest.mark.parametrize("order", ORDERS)
def test_the_issuing_thread_may_fence_too(order: dict[str, Any]) -> None:
    both = FENCE.encode() + b"bar.sync 0;\n"
    text = bulk_store()
    x = words(128)
    right = text.replace(both, b"bar.sync 0;\n@%p0 " + FENCE.encode())
    (got,) = launch(right, [x], [zeros(256)], block=128, **order)
    np.testing.assert_array_equal(got, np.concatenate([x, ~x]))
    for wrong in (b"@%p0 " + both, b"@!%p0 " + both, b"bar.sync 0;\n@!%p0 " + FENCE.encode()):
        with pytest.raises(RaceFault, match=r"fence\.proxy"):
            launch(text.replace(both, wrong), [x], [zeros(256)], block=128, **order)


@pytest.mark.parametrize("order", ORDERS)
def test_a_bulk_store_has_happened_after_the_wait(order: dict[str, Any]) -> None:
    text = bulk_store().replace(
        b"ret;", b"@!%p0 ret;\nld.global.u32 %r9, [%a1+512];\nst.global.u32 [%a1+1024], %r9;\nret;"
    )
    x = words(128)
    (got,) = launch(text, [x], [zeros(257)], block=128, **order)
    assert got[256] == ~x[0]


def test_an_exit_before_a_bulk_store_has_read() -> None:
    text = bulk_store().replace(b"cp.async.bulk.wait_group 0;\n", b"")
    with pytest.raises(RaceFault, match="exits"):
        launch(text, [words(128)], [zeros(256)], block=128)


def test_groups_of_bulk_stores() -> None:
    """A bulk store's source may be rewritten once its own group was waited for, though a newer one
    is under way.
    """
    body = (
        "mov.u32 %r2, tile;\nmad.lo.u32 %r2, %th, 4, %r2;\nst.shared.u32 [%r2], 7;\n"
        "st.shared.u32 [%r2+128], 8;\n" + FENCE + "bar.warp.sync 0xffffffff;\n" + FIRST +
        "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%a0], [tile], 128;\n"
        "cp.async.bulk.commit_group;\n"
        "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%a0+128], [tile+128], 128;\n"
        "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 1;\n"
        "bar.warp.sync 0xffffffff;\nst.shared.u32 [%r2], 9;\ncp.async.bulk.wait_group 0;\n"
    )  # fmt: skip
    shared = ".shared .align 16 .b8 tile[256];"
    for order in ORDERS:
        (got,) = launch(module(body, 1, shared=shared), [], [zeros(64)], block=32, **order)
        assert got.tolist() == [7] * 32 + [8] * 32
        wrong = module(body.replace("[%r2], 9", "[%r2+128], 9"), 1, shared=shared)
        with pytest.raises(RaceFault):
            launch(wrong, [], [zeros(64)], block=32, **order)


# -- clusters -------------------------------------------------------------------------

SYNC = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"


def clustered(before: str, after: str, *, size: int = 2, **options: Any) -> bytes:
    """Threads put their word into their tile, sync, and do ``after``; results from %r90."""
    return module(
        before
        + own("%d0", "%a0")
        + own("%d1", "%a1")
        + "ld.global.u32 %r0, [%d0];\nmov.u32 %r1, tile;\nmad.lo.u32 %r2, %th, 4, %r1;\n"
        "mov.u32 %r5, %cluster_ctarank;\nadd.u32 %r6, %r5, 1;\n"
        f"and.b32 %r6, %r6, {size - 1};\nmapa.shared::cluster.u32 %r7, %r2, %r6;\n"
        + after
        + "st.global.u32 [%d1], %r90;\n",
        2,
        cluster=size,
        shared=BAR + ".shared .align 128 .b8 tile[512];",
        **options,
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [2, 4])
def test_distributed_shared_memory(size: int, order: dict[str, Any]) -> None:
    x = words(64 * 8)
    far = x.reshape(-1, size, 64)[:, (np.arange(size) + 1) % size].reshape(-1)
    loads = "st.shared.u32 [%r2], %r0;\n" + SYNC + "ld.shared::cluster.u32 %r90, [%r7];\n" + SYNC
    (got,) = launch(clustered("", loads, size=size), [x], [zeros(512)], block=64, grid=8, **order)
    np.testing.assert_array_equal(got, far)
    near = x.reshape(-1, size, 64)[:, (np.arange(size) - 1) % size].reshape(-1)
    stores = (
        "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n"
        "st.shared::cluster.u32 [%r7], %r0;\n" + SYNC + "ld.shared.u32 %r90, [%r2];\n"
    )
    (got,) = launch(clustered("", stores, size=size), [x], [zeros(512)], block=64, grid=8, **order)
    np.testing.assert_array_equal(got, near)


@pytest.mark.parametrize("order", ORDERS)
def test_generic_addresses_and_ranks(order: dict[str, Any]) -> None:
    text = clustered(
        "",
        "st.shared.u32 [%r2], %r0;\n" + SYNC + "cvt.u64.u32 %d2, %r2;\ncvta.shared.u64 %d2, %d2;\n"
        "mapa.u64 %d3, %d2, %r6;\nld.u32 %r90, [%d3];\ngetctarank.u64 %r10, %d3;\n"
        "getctarank.shared::cluster.u32 %r11, %r7;\ngetctarank.u64 %r12, %d2;\n"
        "isspacep.shared::cta %p1, %d2;\nisspacep.shared::cluster %p2, %d3;\n"
        "isspacep.shared::cta %p3, %d3;\nisspacep.global %p4, %a0;\n"
        "add.u32 %r90, %r90, %r10;\nadd.u32 %r90, %r90, %r11;\nmad.lo.u32 %r90, %r12, 16, %r90;\n"
        "@%p1 add.u32 %r90, %r90, 256;\n@%p2 add.u32 %r90, %r90, 512;\n"
        "@%p3 add.u32 %r90, %r90, 1024;\n@%p4 add.u32 %r90, %r90, 2048;\n" + SYNC,
    )
    x = words(128)
    (got,) = launch(text, [x], [zeros(128)], block=64, grid=2, **order)
    rank = np.repeat(np.arange(2, dtype=np.uint32), 64)
    other = np.uint32(1) - rank
    want = np.roll(x, 64) + np.uint32(2) * other + np.uint32(16) * rank + np.uint32(2816)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("after", "kind"),
    [
        # No barrier at all, and one that does not release.
        ("st.shared.u32 [%r2], %r0;\nld.shared::cluster.u32 %r90, [%r7];\n" + SYNC, KernelFault),
        (
            "st.shared.u32 [%r2], %r0;\nbarrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n"
            "ld.shared::cluster.u32 %r90, [%r7];\n" + SYNC,
            RaceFault,
        ),
        # Written between arrival and wait.
        (
            "barrier.cluster.arrive;\nst.shared.u32 [%r2], %r0;\nbarrier.cluster.wait;\n"
            "ld.shared::cluster.u32 %r90, [%r7];\n" + SYNC,
            KernelFault,
        ),
        ("barrier.cluster.wait;\n", BarrierFault),
        ("barrier.cluster.arrive;\nbarrier.cluster.arrive;\n", BarrierFault),
    ],
)
def test_wrong_uses_of_clusters(after: str, kind: type[KernelFault], order: dict[str, Any]) -> None:
    with pytest.raises(kind):
        launch(clustered("", after), [words(128)], [zeros(128)], block=64, grid=2, **order)


@pytest.mark.parametrize("order", ORDERS)
def test_remote_arrivals(order: dict[str, Any]) -> None:
    text = clustered(
        INIT.format(count=64) + "fence.mbarrier_init.release.cluster;\n" + SYNC,
        "mov.u32 %r8, bar;\nmapa.shared::cluster.u32 %r9, %r8, %r6;\n"
        "st.shared::cluster.u32 [%r7], %r0;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9];\n"
        + wait("bar", "0", "w0").replace("parity", "parity.acquire.cluster")
        + "ld.shared.u32 %r90, [%r2];\n"
        + SYNC,
    )
    x = words(256)
    (got,) = launch(text, [x], [zeros(256)], block=64, grid=4, **order)
    np.testing.assert_array_equal(got, x.reshape(2, 2, 64)[:, ::-1].reshape(-1))


@pytest.mark.parametrize("order", ORDERS)
def test_bulk_copies_between_ctas(order: dict[str, Any]) -> None:
    text = clustered(
        INIT.format(count=1) + "fence.mbarrier_init.release.cluster;\n",
        "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;\n"
        "st.shared.u32 [%r2], %r0;\n" + FENCE + SYNC + "mov.u32 %r8, bar;\n"
        "mapa.shared::cluster.u32 %r9, %r8, %r6;\nmapa.shared::cluster.u32 %r10, %r1, %r6;\n"
        "@%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
        "[%r10+256], [%r1], 256, [%r9];\n"
        + wait("bar", "0", "w0")
        + "ld.shared.u32 %r90, [%r2+256];\n"
        + SYNC,
    )
    x = words(256)
    (got,) = launch(text, [x], [zeros(256)], block=64, grid=4, **order)
    np.testing.assert_array_equal(got, x.reshape(2, 2, 64)[:, ::-1].reshape(-1))
    wrong = text.replace(FENCE.encode(), b"")
    with pytest.raises(RaceFault, match=r"fence.proxy"):
        launch(wrong, [x], [zeros(256)], block=64, grid=4, **order)
    own = text.replace(b"%r8, %r6;", b"%r8, %r5;").replace(b"%r1, %r6;", b"%r1, %r5;")
    with pytest.raises(MemoryFault, match=r"the CTA that it comes from"):
        launch(own, [x], [zeros(256)], block=64, grid=4, **order)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("pair", [False, True])
def test_stores_that_count_on_an_mbarrier(pair: bool, order: dict[str, Any]) -> None:
    nbytes = 8 if pair else 4
    what = "v2.u32 [%r7], {%r0, %r0}" if pair else "u32 [%r7], %r0"
    text = clustered(
        INIT.format(count=1) + "fence.mbarrier_init.release.cluster;\n",
        f"mad.lo.u32 %r2, %th, {nbytes}, %r1;\nmapa.shared::cluster.u32 %r7, %r2, %r6;\n"
        f"@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {64 * nbytes};\n" + SYNC +
        "mov.u32 %r8, bar;\nmapa.shared::cluster.u32 %r9, %r8, %r6;\n"
        f"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.{what}, [%r9];\n"
        + wait("bar", "0", "w0") + f"ld.shared.u32 %r90, [%r2+{nbytes - 4}];\n" + SYNC,
    )  # fmt: skip
    x = words(256)
    (got,) = launch(text, [x], [zeros(256)], block=64, grid=4, **order)
    np.testing.assert_array_equal(got, x.reshape(2, 2, 64)[:, ::-1].reshape(-1))
    with pytest.raises((RaceFault, UninitializedFault)):
        early = text.replace(wait("bar", "0", "w0").encode(), b"")
        launch(early, [x], [zeros(256)], block=64, grid=4, **order)


@pytest.mark.parametrize("order", ORDERS)
def test_a_fence_makes_a_relaxed_arrival_release(order: dict[str, Any]) -> None:
    fence, store = "fence.acq_rel.cluster;\n", "st.shared.u32 [%r2], %r0;\n"
    relaxed = "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n"
    load = "ld.shared::cluster.u32 %r90, [%r7];\n" + SYNC
    x = words(128)
    text = clustered("", store + fence + relaxed + load)
    (got,) = launch(text, [x], [zeros(128)], block=64, grid=2, **order)
    np.testing.assert_array_equal(got, np.roll(x, 64))
    with pytest.raises(RaceFault):
        text = clustered("", fence + store + relaxed + load)
        launch(text, [x], [zeros(128)], block=64, grid=2, **order)


@pytest.mark.parametrize("order", ORDERS[:2])
def test_the_shared_memory_of_a_cta_that_has_gone(order: dict[str, Any]) -> None:
    body = "setp.ne.u32 %p1, %r5, 0;\n@%p1 ret;\nst.shared::cluster.u32 [%r7], %r0;\n"
    later = "mov.u32 %r20, 0;\nspin:\nadd.u32 %r20, %r20, 1;\nsetp.lt.u32 %p2, %r20, 3;\n"
    text = clustered("", body.replace("st.sh", later + "@%p2 bra spin;\nst.sh"))
    with pytest.raises(MemoryFault, match="all of whose threads have exited"):
        launch(text, [words(128)], [zeros(128)], block=64, grid=2, **order)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("mask", [0b1111, 0b0101])
def test_multicast(mask: int, order: dict[str, Any]) -> None:
    chosen = [r for r in range(4) if mask >> r & 1]
    text = clustered(
        INIT.format(count=1) + "fence.mbarrier_init.release.cluster;\n",
        "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;\n" + SYNC +
        f"mov.b16 %h0, {mask};\nmov.u32 %r90, 0;\nor.b32 %r9, %r5, %th;\n"
        "setp.eq.u32 %p1, %r9, 0;\nmov.u32 %r8, 1;\nshl.b32 %r8, %r8, %r5;\n"
        f"and.b32 %r8, %r8, {mask};\nsetp.eq.u32 %p2, %r8, 0;\n"
        f"@%p1 {LOAD}.multicast::cluster [tile], [%d0], 256, [bar], %h0;\n@%p2 bra skip;\n"
        + wait("bar", "0", "w0")
        + "ld.shared.u32 %r90, [%r2];\nskip:\n"
        + SYNC,
        size=4,
    )  # fmt: skip
    x = words(512)
    (got,) = launch(text, [x], [zeros(512)], block=64, grid=8, **order)
    want = np.zeros((2, 4, 64), np.uint32)
    want[:, chosen] = x.reshape(2, 4, 64)[:, :1]
    np.testing.assert_array_equal(got, want.reshape(-1))


# -- tensor copies ----------------------------------------------------------------------

BOXES: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int, int]] = [
    # dims, box, coordinates (innermost first), bytes of an element, swizzle
    ((100,), (64,), (40,), 4, 0),
    ((100,), (64,), (-24,), 4, 0),
    ((72, 20), (64, 16), (8, 3), 2, 128),
    ((70, 20), (64, 16), (32, 8), 2, 128),
    ((40, 9), (16, 8), (-3, -2), 2, 32),
    ((64, 64), (32, 8), (16, 60), 2, 64),
    ((24, 5, 4), (16, 4, 3), (4, 2, -1), 4, 64),
    ((20, 3, 4, 3), (16, 2, 3, 2), (0, 1, 2, 1), 1, 0),
    ((18, 3, 4, 2, 3), (16, 2, 3, 2, 2), (2, -1, 2, 1, 1), 2, 32),
    ((6, 6), (2, 4), (1, 3), 8, 0),
]


def pitched(dims: tuple[int, ...], size: int) -> tuple[Array, tuple[int, ...]]:
    """Random bytes that hold a tensor, and the strides of it; rows are padded to 16 bytes."""
    strides, step = [], dims[0] * size
    for n in dims[1:]:
        step = -(-step // 16) * 16
        strides.append(step)
        step *= n
    return np.random.default_rng(1).integers(0, 256, -(-step // 16) * 16, np.uint8), tuple(strides)


def boxed(
    memory: Array, found: TensorMap, start: tuple[int, ...]
) -> tuple[Array, dict[int, tuple[int, int]]]:
    """A box as it lies in shared memory, element after element; and where each came from."""
    size = found.itemsize
    strides = (size, *found.strides)
    out = np.zeros(found.nbytes, np.uint8)
    places: dict[int, tuple[int, int]] = {}
    for at, index in enumerate(np.ndindex(*found.box[::-1])):
        where = [s + i for s, i in zip(start, index[::-1], strict=True)]
        dense = at * size
        width = found.swizzle // 16
        target = dense ^ ((dense // 128 % width) * 16) if width else dense
        if all(0 <= w < n for w, n in zip(where, found.dims, strict=True)):
            source = sum(w * s for w, s in zip(where, strides, strict=True))
            out[target : target + size] = memory[source : source + size]
            places[target] = (source, size)
    return out, places


def tensor_kernel(rank: int, start: tuple[int, ...], nbytes: int, *, load: bool) -> bytes:
    """Copies a box between the tensor map at %a0 (or a parameter) and a tile, that with %a1."""
    at = "{" + ", ".join(f"%r{10 + i}" for i in range(rank)) + "}"
    coordinates = "".join(f"mov.u32 %r{10 + i}, {c};\n" for i, c in enumerate(start))
    each = (
        "mov.u32 %r1, tile;\nmov.u32 %r2, %th;\nagain:\nmad.lo.u32 %r3, %r2, 16, %r1;\n"
        "mad.wide.u32 %d1, %r2, 16, %a1;\n{line}\nadd.u32 %r2, %r2, 32;\n"
        f"setp.lt.u32 %p1, %r2, {nbytes // 16};\n"
    )
    some = f"setp.ge.u32 %p1, %th, {nbytes // 16};\n@%p1 bra over;\n"
    shared = BAR + f".shared .align 1024 .b8 tile[{nbytes}];"
    if load:
        body = (
            coordinates + INIT.format(count=1) + "prefetch.tensormap [%a0];\n"
            f"@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {nbytes};\n"
            f"@%p0 cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile"
            f".mbarrier::complete_tx::bytes [tile], [%a0, {at}], [bar];\n"
            + wait("bar", "0", "w0") + some
            + each.format(line="ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];\n"
                          "st.global.v4.u32 [%d1], {%r4, %r5, %r6, %r7};")
            + "@%p1 bra again;\nover:\n"
        )  # fmt: skip
        return module(body, 2, shared=shared)
    body = (
        coordinates + some
        + each.format(line="ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d1];\n"
                      "st.shared.v4.u32 [%r3], {%r4, %r5, %r6, %r7};")
        + "@%p1 bra again;\nover:\n" + FENCE + "bar.sync 0;\n" + FIRST
        + "mov.b64 %d2, map;\ncvta.param.u64 %d2, %d2;\n"
        f"@%p0 cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group "
        f"[%d2, {at}], [tile];\n"
        "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"
    )  # fmt: skip
    return module(body, 2, shared=shared, params=".param .align 64 .b8 map[128]")


def place(device: CpuDevice, array: Array) -> int:
    pointer = device.alloc(array.nbytes)
    device.copy_in(pointer, array.ctypes.data, array.nbytes)
    return pointer


@pytest.mark.parametrize("order", ORDERS[:3])
@pytest.mark.parametrize("box", BOXES, ids=str)
def test_tensor_copies(box: Any, order: dict[str, Any]) -> None:
    dims, shape, start, size, width = box
    memory, strides = pitched(dims, size)
    device = CpuDevice(**order)
    pointer = place(device, memory)
    found = TensorMap(pointer, size, dims, strides, shape, (), width)
    want, places = boxed(memory, found, start)
    encoded = np.frombuffer(found.encode(), np.uint8)
    text = tensor_kernel(len(dims), start, found.nbytes, load=True)
    (got,) = launch(text, [encoded], [np.zeros(found.nbytes, np.uint8)], block=32, device=device)
    np.testing.assert_array_equal(got, want)

    tile = np.random.default_rng(2).integers(0, 256, found.nbytes, np.uint8)
    text = tensor_kernel(len(dims), start, found.nbytes, load=False)
    if dims[0] * size % 16:  # what hardware does to the elements behind a row's last is not said
        with pytest.raises(MemoryFault, match="hardware writes their last 16 bytes whole"):
            launch(text, [zeros(4)], [tile], block=32, device=device, params=found.encode())
        return
    launch(text, [zeros(4)], [tile], block=32, device=device, params=found.encode())
    after = np.empty_like(memory)
    device.copy_out(after.ctypes.data, pointer, after.nbytes)
    want = memory.copy()
    for target, (source, count) in places.items():
        want[source : source + count] = tile[target : target + count]
    np.testing.assert_array_equal(after, want)


COLUMNS: list[tuple[Any, ...]] = [
    # dims, channels and pixels, first place, offsets, lower, upper, steps, swizzle
    ((72, 9, 3), (64, 16), (8, -1, 1), (2,), (-1,), (-1,), (1,), 128),
    ((16, 7, 5, 3), (16, 40), (0, 0, 1, 1), (0, 2), (-1, -1), (0, -1), (1, 1), 32),
    ((48, 7, 6, 2), (32, 24), (24, 1, -2, 0), (3, 1), (-1, -2), (-1, 1), (2, 1), 64),
    ((24, 5, 4, 3, 2), (8, 24), (16, 2, 0, 1, 1), (0, 1, 0), (0, 0, -1), (-1, -1, 0), (1, 2, 1), 0),
]


def column(memory: Array, found: TensorMap, start: Any, offsets: Any) -> Array:
    """A column as it lies in shared memory, pixel after pixel: by hand."""
    size, rank = found.itemsize, len(found.dims)
    out = np.zeros(found.nbytes, np.uint8)
    at = list(start[1:])
    for pixel in range(found.box[1]):
        for c in range(found.box[0]):
            where = [start[0] + c, *(p + o for p, o in zip(at, (*offsets, 0), strict=True))]
            dense, width = (pixel * found.box[0] + c) * size, found.swizzle // 16
            target = dense ^ ((dense // 128 % width) * 16) if width else dense
            if all(0 <= w < n for w, n in zip(where, found.dims, strict=True)):
                source = sum(w * s for w, s in zip(where, (size, *found.strides), strict=True))
                out[target : target + size] = memory[source : source + size]
        for i in range(rank - 2):  # the next pixel of the bounding box, or of the next image's
            at[i] += found.element_strides[i + 1]
            if at[i] < found.dims[i + 1] + found.upper[i]:
                break
            at[i] = found.lower[i]
        else:
            at[-1] += 1
    return out


def column_kernel(rank: int, start: Any, offsets: Any, nbytes: int) -> bytes:
    """Returns the PTX of :func:`tensor_kernel` with the copy in im2col mode."""
    text = tensor_kernel(rank, start, nbytes, load=True).decode()
    some = ", ".join(f"%h{i}" for i in range(rank - 2))
    given = "".join(f"mov.u16 %h{i}, {offset};\n" for i, offset in enumerate(offsets))
    text = text.replace("global.tile.mbarrier", "global.im2col.mbarrier")
    text = text.replace("}], [bar];", "}], [bar], {" + some + "};")
    return text.replace("prefetch.tensormap", given + "prefetch.tensormap").encode()


@pytest.mark.parametrize("order", ORDERS[:3])
@pytest.mark.parametrize("case", COLUMNS, ids=str)
def test_columns_of_pixels(case: Any, order: dict[str, Any]) -> None:
    dims, shape, start, offsets, lower, upper, steps, width = case
    memory, strides = pitched(dims, 2)
    device = CpuDevice(**order)
    pointer = place(device, memory)
    found = TensorMap(
        pointer, 2, dims, strides, shape, (1, *steps, 1), width, lower=lower, upper=upper
    )
    assert TensorMap.decode(found.encode()) == found
    encoded = np.frombuffer(found.encode(), np.uint8)
    text = column_kernel(len(dims), start, offsets, found.nbytes)
    (got,) = launch(text, [encoded], [np.zeros(found.nbytes, np.uint8)], block=32, device=device)
    np.testing.assert_array_equal(got, column(memory, found, start, offsets))


@pytest.mark.parametrize(
    ("start", "offsets", "said"),
    [
        ((0, -2, 0, 0), (0, 0), "takes pixels of the bounding box"),
        ((0, 0, 0, 0), (0, 0), "every .2, 1."),
        ((0, -1, 4, 0), (0, 0), "takes pixels of the bounding box"),
        ((0, -1, 0, 2), (0, 0), "in image 2 of 2"),
        ((0, -1, 0, 0), (256, 0), "takes 0 to 255"),
    ],
)
def test_columns_that_begin_nowhere(start: Any, offsets: Any, said: str) -> None:
    memory, strides = pitched((16, 6, 5, 2), 2)
    device = CpuDevice()
    where = place(device, memory)
    lies = {"lower": (-1, 0), "upper": (0, -1)}
    found = TensorMap(where, 2, (16, 6, 5, 2), strides, (16, 8), (1, 2, 1, 1), 32, **lies)
    encoded = np.frombuffer(found.encode(), np.uint8)
    text = column_kernel(4, start, offsets, found.nbytes)
    with pytest.raises(MemoryFault, match=said):
        launch(text, [encoded], [zeros(64)], block=32, device=device)
    tile = tensor_kernel(4, start, found.nbytes, load=True)
    with pytest.raises(MemoryFault, match="is of im2col mode, the copy of tile mode"):
        launch(tile, [encoded], [zeros(64)], block=32, device=device)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dims": (16, 6), "strides": (32,), "element_strides": ()}, "2 dimensions in im2col mode"),
        ({"lower": (-129, 0)}, "-128 to 127"),
        ({"upper": (0, -5)}, "1 or more"),
        ({"upper": (0,)}, "2 each"),
        ({"box": (16, 1025)}, "1 to"),
        ({"element_strides": (1, 9, 1, 1)}, "1 to 8"),
        ({"element_strides": (1, 1, 1, 2)}, "1 of both"),
    ],
)
def test_maps_of_columns_that_cannot_be(change: Any, said: str) -> None:
    given = {
        **{"address": 0, "itemsize": 2, "dims": (16, 6, 5, 2), "strides": (32, 192, 960)},
        **{"box": (16, 8), "lower": (-1, 0), "upper": (0, -1)},
    }
    TensorMap(**given)
    with pytest.raises(SpecError, match=said):
        TensorMap(**given | change)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: bytes(128), "no tensor map"),
        (lambda d: TensorMap(1 << 50, 2, (64, 64), (128,), (64, 8)).encode(), "not there"),
        (lambda d: TensorMap(d, 2, (64, 640), (128,), (64, 8)).encode(), "not there"),
        (lambda d: TensorMap(d, 2, (64,), (), (64,)).encode(), "1 dimensions, not 2"),
        (lambda d: TensorMap(d, 2, (64, 64), (128,), (64, 16)).encode(), "out of bounds"),
    ],
)
def test_wrong_tensor_maps(change: Any, said: str) -> None:
    device = CpuDevice()
    pointer = place(device, np.zeros(8192, np.uint8))
    text = tensor_kernel(2, (0, 60), 1024, load=True)
    encoded = np.frombuffer(change(pointer), np.uint8)
    with pytest.raises(MemoryFault, match=said):
        launch(text, [encoded], [zeros(256)], block=32, device=device)


def test_a_box_takes_an_aligned_place() -> None:
    device = CpuDevice()
    pointer = place(device, np.zeros(8192, np.uint8))
    found = TensorMap(pointer, 2, (64, 64), (128,), (64, 8)).encode()
    text = tensor_kernel(2, (0, 0), 1024, load=True).replace(b"[tile], [%a0,", b"[tile+64], [%a0,")
    with pytest.raises(MemoryFault, match="misaligned"):
        launch(text, [np.frombuffer(found, np.uint8)], [zeros(256)], block=32, device=device)


# -- wgmma ----------------------------------------------------------------------------

DESCRIPTOR = 1 << 16 | 64 << 32 | 1 << 62
"""Rows of 128 swizzled bytes, eight of them in 1024; the address is missing."""


def as_bf16(values: Array) -> Array:
    """The upper halves of f32 numbers."""
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def product(a: Array, b: Array) -> Array:
    """A [m, k] times B [n, k], both bf16, as a chain of dot16."""
    total = np.zeros((len(a), len(b)), np.float32)
    for k in range(0, a.shape[1], 16):
        total = dot16(a[:, None, k : k + 16], b[None, :, k : k + 16], total, dtype="bf16")
    return total


@functools.cache
def problem(m: int, n: int, k: int) -> tuple[Array, Array, Array]:
    """A, B and their product."""
    random = np.random.default_rng(5)
    a, b = as_bf16(random.standard_normal((m, k))), as_bf16(random.standard_normal((n, k)))
    return a, b, product(a, b)


def gemm(
    tiles: int,
    columns: int,
    *,
    stages: int = 3,
    cluster: int = 1,
    drop: Sequence[str] = (),
    expected: int = 16384,
    ahead: int = 1,
    arrivals: int = 4,
) -> bytes:
    """C [m, n] = A [m, k] B [n, k] by tiles of 64 x 64, k = 64 * ``tiles``, n = 64 * ``columns``.

    Warps 0 to 3 multiply, warp 4 fetches by tensor maps (%a0, %a1) into a ring of ``stages``.
    In a cluster, whose CTAs share the columns, each fetches its part of B for all. What ``drop``
    names is left out.
    """
    registers = "{" + ", ".join(f"%f{i}" for i in range(32)) + "}"

    def unless(what: str, text: str) -> str:
        return "" if what in drop else text

    ring = (  # the stage %r20 and the parity %r21 move on
        f"add.u32 %r20, %r20, 1;\nsetp.eq.u32 %p20, %r20, {stages};\n"
        "@%p20 mov.u32 %r20, 0;\n@%p20 xor.b32 %r21, %r21, 1;\n"
    )
    bars = "mov.u32 %r22, bars;\nmad.lo.u32 %r22, %r20, 8, %r22;\n"
    part = 64 // cluster
    to_all = ".multicast::cluster" if cluster > 1 else ""
    mask = ", %h0" if cluster > 1 else ""
    load = "@%p2 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    sync = SYNC if cluster > 1 else "bar.sync 0;\n"
    arrive = unless("arrive", (
        "@%p3 mbarrier.arrive.shared::cta.b64 _, [%r24];\n" if cluster == 1 else
        "".join(
            f"mov.u32 %r30, {rank};\nmapa.shared::cluster.u32 %r31, %r24, %r30;\n"
            "@%p3 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r31];\n"
            for rank in range(cluster)
        )
    ))  # fmt: skip
    steps = "".join(
        f"add.u64 %d12, %d10, {2 * i};\nadd.u64 %d13, %d11, {2 * i};\n"
        f"wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {registers}, %d12, %d13, "
        f"{'%p4' if i == 0 else '%p5'}, 1, 1, 0, 0;\n"
        for i in range(4)
    )
    body = (
        FIRST + "".join(
            f"@%p0 mbarrier.init.shared::cta.b64 [bars+{8 * s}], 1;\n"
            f"@%p0 mbarrier.init.shared::cta.b64 [bars+{8 * (stages + s)}], {arrivals * cluster};\n"
            for s in range(stages)
        )
        + "fence.mbarrier_init.release.cluster;\n" + sync
        + "mov.u32 %r1, %ctaid.x;\nmov.u32 %r20, 0;\nmov.u32 %r21, 0;\nmov.u32 %r25, 0;\n"
        # Rows of neighbouring CTAs follow each other; %r2 the first row, %r3 the first column.
        f"rem.u32 %r2, %r1, {cluster};\ndiv.u32 %r4, %r1, {cluster};\n"
        f"rem.u32 %r3, %r4, {columns};\ndiv.u32 %r4, %r4, {columns};\n"
        f"mad.lo.u32 %r2, %r4, {cluster}, %r2;\nmul.lo.u32 %r2, %r2, 64;\n"
        "mul.lo.u32 %r3, %r3, 64;\nsetp.lt.u32 %p1, %wp, 4;\n@%p1 bra consume;\n"
        # The producer.
        "setmaxnreg.dec.sync.aligned.u32 24;\n"
        "elect.sync %r40|%p2, 0xffffffff;\n"
        f"mov.b16 %h0, {(1 << cluster) - 1};\nmov.u32 %r5, %cluster_ctarank;\n"
        f"mad.lo.u32 %r6, %r5, {part}, %r3;\n"
        "produce:\n" + bars + f"add.u32 %r23, %r22, {8 * stages};\nxor.b32 %r26, %r21, 1;\n"
        + unless("empty", wait("%r23", "%r26", "free"))
        + f"@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r22], {expected};\n"
        "mov.u32 %r27, ring;\nmad.lo.u32 %r27, %r20, 16384, %r27;\nshl.b32 %r28, %r25, 6;\n"
        f"{load} [%r27], [%a0, {{%r28, %r2}}], [%r22];\n"
        f"add.u32 %r27, %r27, 8192;\nmad.lo.u32 %r27, %r5, {part * 128}, %r27;\n"
        f"{load}{to_all} [%r27], [%a1, {{%r28, %r6}}], [%r22]{mask};\n"
        + ring + f"add.u32 %r25, %r25, 1;\nsetp.lt.u32 %p6, %r25, {tiles};\n@%p6 bra produce;\n"
        "bra.uni over;\n"
        # The consumers.
        "consume:\nsetmaxnreg.inc.sync.aligned.u32 240;\n"
        + ("setp.eq.u32 %p3, %ln, 0;\n" if arrivals == 4 else "setp.lt.u32 %p3, %ln, 32;\n"
           if arrivals == 128 else "setp.eq.u32 %p3, %th, 64;\n")
        + "setp.ne.u32 %p5, %th, 4096;\nmov.u32 %r24, 0;\n"
        "multiply:\n" + bars + unless("full", wait("%r22", "%r21", "filled"))
        + "mov.u32 %r27, ring;\nmad.lo.u32 %r27, %r20, 16384, %r27;\nshr.u32 %r27, %r27, 4;\n"
        f"cvt.u64.u32 %d10, %r27;\nor.b64 %d10, %d10, {DESCRIPTOR:#x};\nadd.u64 %d11, %d10, 512;\n"
        "setp.ne.u32 %p4, %r25, 0;\n"
        + unless("fence", "wgmma.fence.sync.aligned;\n") + steps
        + unless("commit", "wgmma.commit_group.sync.aligned;\n")
        + unless("wait", f"wgmma.wait_group.sync.aligned {ahead};\n")
        # What the last round read is free now.
        + ("setp.eq.u32 %p7, %r25, 0;\n@%p7 bra none;\n" if ahead else
           f"add.u32 %r24, %r22, {8 * stages};\n")
        + arrive + ("none:\n" if ahead else "")
        + f"add.u32 %r24, %r22, {8 * stages};\n" + ring
        + f"add.u32 %r25, %r25, 1;\nsetp.lt.u32 %p6, %r25, {tiles};\n@%p6 bra multiply;\n"
        + unless("wait", unless("last", "wgmma.wait_group.sync.aligned 0;\n"))
        # Row 16 * warp + lane / 4, column 2 * (lane % 4), of the tile.
        + "shr.u32 %r50, %ln, 2;\nmad.lo.u32 %r50, %wp, 16, %r50;\nadd.u32 %r50, %r50, %r2;\n"
        "and.b32 %r51, %ln, 3;\nmad.lo.u32 %r51, %r51, 2, %r3;\n"
        f"mad.lo.u32 %r50, %r50, {64 * columns}, %r51;\nmad.wide.u32 %d20, %r50, 4, %a2;\n"
        + "".join(
            f"st.global.f32 [%d20+{4 * (i // 4 * 8 + i % 2 + 64 * columns * 8 * (i % 4 // 2))}], "
            f"%f{i};\n"
            for i in range(32)
        )
        + "over:\n" + (SYNC if cluster > 1 else "")
    )  # fmt: skip
    return module(
        body,
        3,
        cluster=cluster if cluster > 1 else 0,
        shared=f".shared .align 8 .b64 bars[{2 * stages}];\n"
        f".shared .align 1024 .b8 ring[{16384 * stages}];",
    )


def run_gemm(
    text: bytes, rows: int, columns: int, tiles: int, cluster: int = 1, **settings: Any
) -> tuple[Array, Array]:
    """The result of a kernel of :func:`gemm`, and the right one."""
    a, b, want = problem(64 * rows, 64 * columns, 64 * tiles)
    device = CpuDevice(**settings)
    maps = []
    for matrix, box in ((a, 64), (b, 64 // cluster)):
        shape = (matrix.shape[1], matrix.shape[0])
        pitch = (2 * matrix.shape[1],)
        maps.append(TensorMap(place(device, matrix), 2, shape, pitch, (64, box), (), 128))
    (got,) = launch(
        text,
        [np.frombuffer(m.encode(), np.uint8) for m in maps],
        [np.full((64 * rows, 64 * columns), np.nan, np.float32)],
        block=160,
        grid=rows * columns,
        device=device,
    )
    return got.view(np.uint32), want.view(np.uint32)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"ahead": 0},
        {"stages": 2},
        {"stages": 2, "ahead": 0, "arrivals": 128},
        {"arrivals": 1},
    ],
    ids=str,
)
def test_a_warp_specialised_product(change: dict[str, Any], order: dict[str, Any]) -> None:
    got, want = run_gemm(gemm(5, 2, **change), 2, 2, 5, **order)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("cluster", [2, 4])
def test_a_product_of_clusters(cluster: int, order: dict[str, Any]) -> None:
    got, want = run_gemm(gemm(4, 1, cluster=cluster), 4, 1, 4, cluster, **order)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        ({"drop": ["full"]}, (RaceFault, UninitializedFault), "read by wgmma"),
        ({"drop": ["empty"]}, (RaceFault, BarrierFault), ""),
        ({"drop": ["arrive"]}, (DeadlockFault,), "try_wait"),
        ({"drop": ["fence"]}, (RaceFault,), "wgmma.fence"),
        ({"drop": ["commit"]}, (RaceFault,), "(wait_group|race)"),
        ({"drop": ["wait"]}, (RaceFault,), "(wait_group|race)"),
        ({"drop": ["last"]}, (RaceFault,), "%f0 .*wgmma.wait_group"),
        ({"expected": 16400}, (DeadlockFault,), "try_wait"),
        ({"expected": 16368}, (DeadlockFault,), "try_wait"),
        ({"expected": 8192}, (RaceFault, DeadlockFault), ""),
        ({"arrivals": 2}, (BarrierFault, RaceFault, DeadlockFault), ""),
    ],
    ids=str,
)
def test_planted_faults_of_a_product(
    change: dict[str, Any],
    kind: tuple[type[KernelFault], ...],
    said: str,
    order: dict[str, Any],
) -> None:
    with pytest.raises(kind) as caught:
        run_gemm(gemm(6, 1, **change), 1, 1, 6, **order)
    caught.match(said) if said else None


@pytest.mark.parametrize("order", ORDERS)
def test_a_cluster_that_frees_only_its_own_stages(order: dict[str, Any]) -> None:
    """A cluster races or hangs if CTAs free their own producer's stages twice and the other's
    never.
    """
    text = gemm(6, 1, cluster=2)
    wrong = text.replace(b"mapa.shared::cluster.u32 %r31, %r24, %r30;", b"mov.u32 %r31, %r24;")
    with pytest.raises((RaceFault, BarrierFault, DeadlockFault)):
        run_gemm(wrong, 2, 1, 6, 2, **order)


# -- what is refused --------------------------------------------------------------------

NARROW = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3},"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("createpolicy.fractional.L2::evict_first.b64 %d0, 1.0;", "cache policies"),
        ("mbarrier.arrive.relaxed.cta.shared::cta.b64 %d0, [bar];", "outside the subset"),
        ("mbarrier.arrive.shared::cluster.b64 %d0, [bar];", "takes _"),
        ("setmaxnreg.inc.sync.aligned.u32 100;", "multiple of 8"),
        ("setmaxnreg.inc.sync.aligned.u32 264;", "multiple of 8"),
        (f"@%p0 {NARROW} %d0, %d0, %p1, 1, 1, 0, 0;", "guard"),
        ("wgmma.wait_group.sync.aligned %r0;", "constant"),
        (NARROW.replace("%f1", "%f0") + " %d0, %d0, %p1, 1, 1, 0, 0;", "different registers"),
        ("barrier.cluster.arrive.acquire;", "outside the subset"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%a0], [bar], 16;", "outside"),
        (
            "cp.async.bulk.shared::cta.shared::cluster.bulk_group [bar], [bar], 16;",
            "outside the subset",
        ),
        (f"{LOAD} [bar], [%a0], 16;", "takes 4 operands"),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
            "[bar], [%a0, {%r0}], [bar];",
            "takes 2 coordinates",
        ),
        (
            "cp.async.bulk.tensor.4d.shared::cluster.global.im2col::w.mbarrier::complete_tx::bytes "
            "[bar], [%a0, {%r0, %r0, %r0, %r0}], [bar], {%h0, %h0};",
            "outside the subset",
        ),
    ],
)
def test_what_is_outside_the_subset(line: str, said: str) -> None:
    with pytest.raises(PtxError, match=said):
        launch(module(line, 1, shared=BAR), [], [zeros(1)], block=128)


def small(before: str = "", after: str = "", keep: str = "%p1", zero: bool = True) -> bytes:
    """A wgmma of 64 x 8 on zeros, and a store of the first sum."""
    return module(
        FIRST + "setp.ne.u32 %p1, %th, 5000;\nsetp.eq.u32 %p2, %th, 5000;\nmov.u32 %r1, tile;\n"
        "mad.lo.u32 %r1, %th, 16, %r1;\nst.shared.v4.u32 [%r1], {0, 0, 0, 0};\n"
        "st.shared.v4.u32 [%r1+2048], {0, 0, 0, 0};\nmov.u32 %r0, tile;\nshr.u32 %r0, %r0, 4;\n"
        f"cvt.u64.u32 %d0, %r0;\nor.b64 %d0, %d0, {8 << 16 | 16 << 32:#x};\n"
        + "".join(f"mov.f32 %f{i}, 0f3F800000;\n" for i in range(4 * zero))
        + FENCE + "bar.sync 0;\n" + before
        + "wgmma.fence.sync.aligned;\n"
        + f"{NARROW} %d0, %d0, {keep}, 1, 1, 0, 0;\n" + after
        + "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
        "mad.wide.u32 %d1, %th, 4, %a0;\nst.global.f32 [%d1], %f0;\n",
        1,
        shared=".shared .align 128 .b8 tile[4096];",
    )  # fmt: skip


def test_scale_d_says_whether_sums_count() -> None:
    (got,) = launch(small(), [], [np.ones(128, np.float32)], block=128)
    assert (got == 1).all()
    (got,) = launch(small(keep="%p2"), [], [np.ones(128, np.float32)], block=128)
    assert (got == 0).all()
    (got,) = launch(small(keep="%p2", zero=False), [], [np.ones(128, np.float32)], block=128)
    assert (got == 0).all()
    with pytest.raises(UninitializedFault, match="%f0"):
        launch(small(zero=False), [], [np.ones(128, np.float32)], block=128)


OUTER = "".join(f"setp.{of} %p3, %th, {n};\n@%p3 bar.sync 1, 64;\n" for of, n in (
    ("lt.u32", 32), ("ge.u32", 96),
))  # fmt: skip
"""The first and the last warp of a warpgroup meet."""


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("before", "after", "kind", "said"),
    [
        ("", "mov.f32 %f4, %f2;", RaceFault, "access to %f2"),
        ("", "mov.f32 %f2, %f4;", RaceFault, "access to %f2"),
        ("", "@%p0 st.shared.u32 [%r1], 1;", RaceFault, "race: write"),
        ("", NARROW.replace("%f3", "%f5") + " %d0, %d0, %p1, 1, 1, 0, 0;", RaceFault, "access"),
        ("@%p0 st.shared.u32 [%r1], 1;\n", "", RaceFault, "race: read by wgmma"),
        ("@%p0 st.shared.u32 [%r1], 1;\nbar.sync 0;\n", "", RaceFault, "fence.proxy.async"),
        (f"@%p0 st.shared.u32 [%r1], 1;\n{FENCE}{OUTER}", "", RaceFault, "race: read by wgmma"),
        ("setp.ge.u32 %p3, %th, 96;\n@%p3 exit;\n", "", BarrierFault, "no thread can go on"),
        ("setp.eq.u32 %p3, %th, 40;\n@%p3 exit;\n", "", BarrierFault, "whole warp"),
        ("@%p0 mov.u64 %d0, 0;\n", "", BarrierFault, "different values of a matrix descriptor"),
        ("and.b64 %d0, %d0, 0;\nadd.u64 %d0, %d0, 1;\n", "", MemoryFault, "out of bounds"),
    ],
)
def test_wrong_uses_of_wgmma(
    before: str, after: str, kind: type[KernelFault], said: str, order: dict[str, Any]
) -> None:
    text = small(before + "mov.f32 %f4, 0f00000000;\nmov.f32 %f5, 0f00000000;\n", after)
    with pytest.raises(kind, match=said):
        launch(text, [], [np.ones(128, np.float32)], block=128, **order)


def test_touching_an_accumulator_takes_another_fence() -> None:
    again = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
    again += "add.rn.f32 %f0, %f0, %f0;\n"
    third = f"{NARROW} %d0, %d0, %p1, 1, 1, 0, 0;\n"
    text = small(after=again + "wgmma.fence.sync.aligned;\n" + third)
    (got,) = launch(text, [], [np.ones(128, np.float32)], block=128)
    assert (got == 2).all()
    with pytest.raises(RaceFault, match="%f0 has been accessed"):
        launch(small(after=again + third), [], [np.ones(128, np.float32)], block=128)


def test_wgmma_takes_whole_warpgroups() -> None:
    with pytest.raises(BarrierFault, match="belongs to no warpgroup"):
        launch(small(), [], [np.ones(128, np.float32)], block=96)


def passing_on(before: str, after: str) -> bytes:
    """A warpgroup multiplies, and a fifth warp overwrites what was read.

    That warp is behind the multiplication in time, by a flag in global memory that orders
    nothing; ``before`` and ``after`` are what the warpgroup does around its wait.
    """
    return module(
        INIT.format(count=4) + "mov.u32 %r0, tile;\nmov.u32 %r1, tile;\nshr.u32 %r0, %r0, 4;\n"
        "mad.lo.u32 %r1, %th, 16, %r1;\nsetp.lt.u32 %p3, %th, 256;\n"
        "@%p3 st.shared.v4.u32 [%r1], {0, 0, 0, 0};\n" + FENCE + "bar.sync 0;\n"
        f"cvt.u64.u32 %d0, %r0;\nor.b64 %d0, %d0, {8 << 16 | 16 << 32:#x};\n"
        "setp.eq.u32 %p4, %th, 1000;\nsetp.eq.u32 %p5, %ln, 9;\n"
        "setp.lt.u32 %p1, %wp, 8;\nsetp.ge.u32 %p2, %wp, 4;\n@!%p1 bra last;\n@%p2 ret;\n"
        "wgmma.fence.sync.aligned;\n"
        f"{NARROW} %d0, %d0, %p4, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\n"
        + before + "wgmma.wait_group.sync.aligned 0;\n" + after +
        "@%p0 st.global.u32 [%a0], 1;\nret;\n"
        "last:\nld.volatile.global.u32 %r2, [%a0];\nsetp.eq.u32 %p6, %r2, 0;\n@%p6 bra last;\n"
        + wait("bar", "0", "w0")
        + "mov.u32 %r1, tile;\nmad.lo.u32 %r1, %ln, 16, %r1;\nst.shared.u32 [%r1], 1;\n",
        1,
        shared=BAR + ".shared .align 128 .b8 tile[4096];",
    )  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
def test_who_overwrites_operands_knows_of_the_wait(order: dict[str, Any]) -> None:
    """Overwriting a wgmma operand needs an arrival of at least one thread that has waited
    for it.
    """
    all_arrive = "@%p5 mbarrier.arrive.shared::cta.b64 _, [bar];\n"
    one_arrives = "@%p0 mbarrier.arrive.shared::cta.b64 _, [bar], {};\n"
    for before, after in (
        ("", all_arrive),
        ("", one_arrives.format(4)),
        (one_arrives.format(3), one_arrives.format(1)),
    ):
        launch(passing_on(before, after), [], [zeros(1)], block=288, **order)
    for before in (all_arrive, one_arrives.format(4)):
        with pytest.raises(RaceFault, match=r"race: write .* read by .*wgmma"):
            launch(passing_on(before, ""), [], [zeros(1)], block=288, **order)
