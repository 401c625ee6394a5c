"""Kernels that are too large, too slow or wait for others: typed errors, and no endless wait."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from interp_snippet import module, run
from numpy.lib.stride_tricks import as_strided

import ptxgen
from ptxgen import tiles
from ptxgen.errors import DeviceError, MemoryFault, OptionError, PtxError, StepLimitFault
from ptxgen.interp import GlobalMemory
from ptxgen.interp.memory import allocations
from ptxgen.interp.run import machine, program
from ptxgen.runtime.cpu import CpuDevice

# -- sizes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (".shared .b8 much[307200];\n", "307200 bytes of .shared memory; takes at most 232448"),
        (".local .b8 much[4294967296];\n", "4294967296 bytes of .local memory"),
        (".const .b8 much[65537];\n", "65537 bytes of .const memory"),
    ],
)
def test_variables_beyond_the_architecture(head: str, said: str) -> None:
    with pytest.raises(PtxError, match=said):
        CpuDevice().load(module("", head=head).encode(), "main")


def test_global_memory_has_a_limit_that_freeing_gives_back() -> None:
    memory = GlobalMemory(limit=1 << 20)
    first = memory.alloc(1 << 19)
    with pytest.raises(DeviceError, match=r"700000 bytes do not fit.*1048576.*524288"):
        memory.alloc(700_000)
    memory.free(first.base)
    assert memory.alloc(700_000).nbytes == 700_000


def test_a_product_beyond_the_limit_is_refused_by_size() -> None:
    name = next(n for n, s in tiles.SPECS.items() if s.family == "simt" and s.persistent)
    with pytest.raises(DeviceError, match="40000000000 bytes do not fit"):
        ptxgen.profile(name, 100_000, 100_000, 100_000)


def test_a_huge_view_is_refused_before_it_is_copied() -> None:
    """10**9 elements behind a few bytes: a packed copy would take 4 GB."""
    x = as_strided(np.ones(1, np.float32), (1_000_000, 1000), (0, 0))
    with ptxgen.use_device("cpu"), pytest.raises(DeviceError, match="4000000000 bytes"):
        ptxgen.linear(x, np.ones((1000, 4), np.float32), layout="kn")


def test_what_has_been_freed_is_not_remembered_for_ever() -> None:
    memory = GlobalMemory()
    bases = []
    for _ in range(1000):
        bases.append(memory.alloc(16).base)
        memory.free(bases[-1])
    assert len(memory._freed) == allocations._REMEMBERED < 1000
    assert "has been freed" in memory.describe(bases[-1], 4)
    assert "belongs to no allocation" in memory.describe(bases[0], 4)
    device = CpuDevice()
    with pytest.raises(MemoryFault, match="freed"):
        pointer = device.alloc(16)
        device.free(pointer)
        device.memset(pointer, 0, 4)


@pytest.mark.parametrize(
    "wrong", [{"seed": "x"}, {"seed": -1}, {"visits": 0}, {"wave_lanes": 1.5}, {"visits": None}]
)
def test_settings_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=next(iter(wrong))):
        CpuDevice(**wrong)
    assert CpuDevice(seed=np.int64(3)).settings.seed == 3


# -- those who wait -------------------------------------------------------------------

SEEDS = pytest.mark.parametrize("seed", [None, 1, 2])

FLAG = """    mov.u32 %r1, %ctaid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra other;
wait:
    ld.relaxed.gpu.global.u32 %r2, [%rd0];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra wait;
    st.global.u32 [%rd0+4], %r2;
    ret;
other:
    bar.sync 0;
    st.relaxed.gpu.global.u32 [%rd0], 7;"""


@SEEDS
def test_ctas_that_wait_for_a_flag(seed: int | None) -> None:
    """The first CTA waits for the second, which comes later in the text."""
    assert run(FLAG, out=np.zeros(2, np.uint32), grid=2, seed=seed).tolist() == [7, 7]


LOCK = """    mov.u32 %r4, 0;
again:
    atom.global.cas.b32 %r1, [%rd0], 0, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
    ld.volatile.global.u32 %r2, [%rd0+4];
    add.u32 %r2, %r2, 1;
    st.volatile.global.u32 [%rd0+4], %r2;
    fence.acq_rel.gpu;
    atom.global.exch.b32 %r3, [%rd0], 0;
    bar.warp.sync -1;"""


@SEEDS
def test_a_spin_lock_in_every_lane(seed: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lane that has the lock is further on than those of its warp that spin."""
    monkeypatch.setattr(machine, "YIELD_AFTER", 64)
    assert run(LOCK, out=np.zeros(2, np.uint32), grid=2, seed=seed).tolist() == [0, 64]


def test_an_endless_loop_is_still_one() -> None:
    text = "again:\n    ld.volatile.global.u32 %r2, [%rd0];\n    bra again;"
    with pytest.raises(StepLimitFault, match=r"visits=; seed is 5.*CTAs 0 to 0.*wave_lanes="):
        run(text, seed=5, visits=2000)


def test_a_long_launch_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    text = "    st.global.u32 [%rd0], 1;"
    with caplog.at_level(logging.WARNING, "ptxgen"):
        run(text, grid=8, wave_lanes=32)
        assert not caplog.records
        monkeypatch.setattr(machine, "WARN_SECONDS", 0.0)
        run(text, grid=8, wave_lanes=32)
    (record,) = caplog.records
    assert "main will take about" in record.getMessage() and "interprets" in record.getMessage()


# -- a profile of Hopper's units ----------------------------------------------------------


def test_profile_counts_wgmma_once_and_the_copy_engine() -> None:
    from ptxgen.tiles import SPECS

    name = min(
        n for n, s in SPECS.items()
        if s.family == "wgmma" and "_nt_bf16_128x128" in n and s.split != "workspace"
    )  # fmt: skip
    found = ptxgen.profile(name, 128, 256, 128)
    (kernel,) = found.kernels
    # And the end of a chain, which the way out adds to 0.0: once in its rehearsal.
    assert kernel.flop == 2 * 128 * 256 * 128 + 2 * 128 * 256
    traffic = kernel.global_memory
    assert traffic.touched_loads == 2 * (128 * 128 + 256 * 128)
    assert traffic.loaded == 2 * (128 * 128 + 128 * 128) * 2  # A once for each tile of 128 columns
    assert traffic.sectors * 32 == traffic.loaded + traffic.stored >= found.minimum_bytes
    assert kernel.copies.bytes == traffic.loaded


# -- decoded kernels ------------------------------------------------------------------
def test_devices_share_a_kernel_that_is_decoded_once(monkeypatch) -> None:
    """A variable that the kernel does not read makes no difference."""
    made: list[str] = []
    decoded = program.Program
    monkeypatch.setattr(program, "Program", lambda *of: made.append(of[1]) or decoded(*of))
    monkeypatch.setattr(program, "_cache", {})
    head = ".global .align 4 .u32 unread = 3;\n"
    body = "    st.global.u32 [%rd0], 5;\n"
    for _ in range(3):
        assert run(body, head=head)[0] == 5
    assert made == ["main"]
    monkeypatch.setattr(program, "CACHE_LIMIT", 0)  # the latest stays, whatever its size
    for text in (body, body, body.replace("5", "6"), body):
        run(text, head=head)
    assert len(made) == 3


def test_a_table_in_global_memory_is_of_one_device() -> None:
    head = ".global .align 4 .u32 table[2] = {7, 9};\n"
    body = "    ld.global.u32 %r1, [table+4];\n    st.global.u32 [%rd0], %r1;\n"
    for size in (1, 5000, 1):  # what is allocated before moves the table
        assert run(body, out=np.zeros(size, np.uint32), head=head)[0] == 9
