"""Asynchronous copies, mbarriers and clusters: short sequences whose results are determined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from conformance.case import Case, Kernel, view
from conformance.values import Array, Random


def _columns(key: str, *sizes: tuple[int, int]) -> Callable[[], Sequence[Array]]:
    """Columns of random 32-bit numbers: (count, limit) each, 0 being no limit."""

    def columns() -> list[Array]:
        random = Random(key)
        return [view(random.below(m, n) if m else random.words(n), "u32") for n, m in sizes]

    return columns


# -- cp.async -------------------------------------------------------------------------


def copies() -> Iterator[Case]:
    """cp.async of every size, with zero fill, in groups, and arriving at an mbarrier."""
    n = 64
    for cache, size in (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)):
        op = f"cp.async.{cache}.shared.global"
        for form in ("whole", "size", "size.imm", "ignore", "hint"):
            kernel = Kernel(f"{op}.{size}.{form}", n, version="8.3" if form == "ignore" else "8.0")
            take = kernel.load("u32") if form in ("size", "ignore") else ""
            at = kernel.space(n * size)
            mine = _tile(kernel, n * size, size)
            source = f"[{kernel.pointer('in', size)}+{at}]"
            if form == "whole":
                kernel(f"{op} [{mine}], {source}, {size};")
            elif form == "hint":
                kernel(f"{op}.L2::128B [{mine}], {source}, {size};")
            elif form == "size":
                kernel(f"{op} [{mine}], {source}, {size}, {take};")
            elif form == "size.imm":
                kernel(f"{op} [{mine}], {source}, {size}, {size // 2};")
            else:
                ignore = kernel.reg("pred")
                kernel(f"setp.eq.u32 {ignore}, {take}, 0;")
                kernel(f"{op} [{mine}], {source}, {size}, {ignore};")
            kernel("cp.async.commit_group;")
            kernel("cp.async.wait_group 0;" if form != "hint" else "cp.async.wait_all;")
            kernel("bar.sync 0;")
            _show(kernel, n * size // 4)
            first = {"size": [(n, size + 1)], "ignore": [(n, 3)]}.get(form, [])
            yield kernel.case("copies", _columns(kernel.name, *first, (n * size // 4, 0)))

    # Four groups; what has been waited for is read, in the order of the groups.
    kernel = Kernel("cp.async.groups", n)
    places = [kernel.space(16 * n) for _ in range(4)]
    mine = _tile(kernel, 64 * n, 16)
    pointer = kernel.pointer("in", 16)
    for i, at in enumerate(places):
        kernel(f"cp.async.cg.shared.global [{mine}+{16 * n * i}], [{pointer}+{at}], 16;")
        kernel("cp.async.commit_group;")
    for pending in (3, 1, 0):
        kernel(f"cp.async.wait_group {pending};")
        words = kernel.regs("b32", 4)
        group = 3 - pending
        kernel(f"ld.shared.v4.b32 {{{', '.join(words)}}}, [{mine}+{16 * n * group}];")
        for word in words:
            kernel.store("b32", word)
    yield kernel.case("copies", _columns("groups", *[(4 * n, 0)] * 4))

    # Two buffers, filled one round ahead, as kernels do.
    rounds = 6
    kernel = Kernel("cp.async.pipeline", n)
    at = kernel.space(16 * n * rounds)
    mine = _tile(kernel, 32 * n, 16)
    other, i, total, value = kernel.regs("u32", 4)
    p, where, from_ = kernel.reg("pred"), kernel.reg("u32"), kernel.reg("b64")
    for line in (
        f"xor.b32 {other}, %thread, 39;", f"mov.u32 {where}, tile;",
        f"mad.lo.u32 {other}, {other}, 16, {where};",
        f"add.s64 {from_}, {kernel.pointer('in', 16)}, {at};",
        f"cp.async.cg.shared.global [{mine}], [{from_}], 16;", "cp.async.commit_group;",
        f"mov.u32 {i}, 0;", f"mov.u32 {total}, 0;",
        "again:",
        f"add.u32 {i}, {i}, 1;", f"setp.ge.u32 {p}, {i}, {rounds};", f"@{p} bra last;",
        f"and.b32 {where}, {i}, 1;", f"mad.lo.u32 {where}, {where}, {16 * n}, {mine};",
        f"add.s64 {from_}, {from_}, {16 * n};",
        f"cp.async.cg.shared.global [{where}], [{from_}], 16;",
        "last:",
        "cp.async.commit_group;", "cp.async.wait_group 1;", "bar.sync 0;",
        f"not.b32 {where}, {i};", f"and.b32 {where}, {where}, 1;",
        f"mad.lo.u32 {where}, {where}, {16 * n}, {other};",
        f"ld.shared.u32 {value}, [{where}+8];", f"mad.lo.u32 {total}, {total}, 3, {value};",
        "bar.sync 0;",
        f"setp.lt.u32 {p}, {i}, {rounds};", f"@{p} bra again;",
    ):  # fmt: skip
        kernel(line)
    kernel.store("u32", total)
    yield kernel.case("copies", _columns("pipeline", (4 * n * rounds, 0)))

    for noinc in ("", ".noinc"):
        kernel = Kernel(f"cp.async.mbarrier{noinc}", n)
        kernel.declare(".shared .align 8 .b64 bar;")
        at = kernel.space(16 * n)
        mine = _tile(kernel, 16 * n, 16)
        _init(kernel, n)
        kernel(f"cp.async.ca.shared.global [{mine}], [{kernel.pointer('in', 16)}+{at}], 16;")
        kernel(f"cp.async.mbarrier.arrive{noinc}.shared.b64 [bar];")
        if not noinc:
            state = kernel.reg("b64")
            kernel(f"mbarrier.arrive.shared.b64 {state}, [bar];")
        _wait(kernel, "bar", "0", "test_wait")
        _show(kernel, 4 * n)
        yield kernel.case("copies", _columns(kernel.name, (4 * n, 0)))


def _tile(kernel: Kernel, nbytes: int, size: int) -> str:
    """Shared memory, and the address of this thread's ``size`` bytes in it."""
    kernel.declare(f".shared .align 128 .b8 tile[{nbytes}];")
    mine = kernel.reg("u32")
    kernel(f"mov.u32 {mine}, tile;")
    kernel(f"mad.lo.u32 {mine}, %thread, {size}, {mine};")
    return mine


def _show(kernel: Kernel, words: int, start: int = 0) -> None:
    """Stores ``words`` words of the tile, each thread every block-th one."""
    address, value = kernel.regs("u32", 2)
    kernel(f"mov.u32 {address}, tile;")
    kernel(f"mad.lo.u32 {address}, %thread, 4, {address};")
    for at in range(0, words, kernel.block):
        kernel(f"ld.shared.u32 {value}, [{address}+{start + 4 * at}];")
        kernel.store("u32", value)


def _init(kernel: Kernel, count: int, name: str = "bar") -> None:
    """Thread 0 makes an mbarrier; all threads see it afterwards."""
    first = kernel.reg("pred")
    kernel(f"setp.eq.u32 {first}, %thread, 0;")
    kernel(f"@{first} mbarrier.init.shared.b64 [{name}], {count};")
    kernel("bar.sync 0;")


def _wait(kernel: Kernel, name: str, parity: str, how: str = "try_wait") -> None:
    """Waits for the phase of ``parity`` to be over."""
    done, label = kernel.reg("pred"), f"wait_{len(kernel.lines)}"
    kernel(f"{label}:")
    if how == "test_wait" and kernel.target == "sm_80":  # parity forms want PTX 7.1 and sm_80
        kernel(f"mbarrier.test_wait.parity.shared.b64 {done}, [{name}], {parity};")
    else:
        kernel(f"mbarrier.{how}.parity.shared::cta.b64 {done}, [{name}], {parity};")
    kernel(f"@!{done} bra {label};")


# -- mbarriers ------------------------------------------------------------------------


def barriers() -> Iterator[Case]:
    """Yields cases of mbarrier arrive, expect_tx, complete_tx and waits, with one mbarrier a
    thread.
    """
    n = 64

    def start(name: str, target: str = "sm_80", inputs: int = 1) -> tuple[Kernel, str, list[str]]:
        kernel = Kernel(name, n, target=target)
        kernel.declare(f".shared .align 8 .b64 bars[{n}];")
        loaded = [kernel.load("u32") for _ in range(inputs)]
        bar = kernel.reg("u32")
        kernel(f"mov.u32 {bar}, bars;")
        kernel(f"mad.lo.u32 {bar}, %thread, 8, {bar};")
        return kernel, bar, loaded

    def test(kernel: Kernel, bar: str, state: str = "") -> None:
        """Stores whether the phase of a state is over, and those of both parities."""
        found = kernel.reg("pred")
        if state:
            kernel(f"mbarrier.test_wait.shared.b64 {found}, [{bar}], {state};")
            kernel.store("pred", found)
        for parity in (0, 1):
            kernel(f"mbarrier.test_wait.parity.shared.b64 {found}, [{bar}], {parity};")
            kernel.store("pred", found)

    kernel, bar, (count,) = start("mbarrier.arrive")
    kernel(f"add.u32 {count}, {count}, 1;")
    kernel(f"mbarrier.init.shared.b64 [{bar}], {count};")
    test(kernel, bar)
    for _ in range(6):
        state = kernel.reg("b64")
        kernel(f"mbarrier.arrive.shared.b64 {state}, [{bar}];")
        test(kernel, bar, state)
    kernel(f"mbarrier.inval.shared.b64 [{bar}];")
    kernel(f"mbarrier.init.shared.b64 [{bar}], 2;")
    test(kernel, bar)
    yield kernel.case("mbarrier", _columns(kernel.name, (n, 4)))

    kernel, bar, (count, some) = start("mbarrier.counted", "sm_90a", 2)
    kernel(f"add.u32 {count}, {count}, 3;")  # 3 .. 6
    kernel(f"add.u32 {some}, {some}, 1;")  # 1 .. 3
    kernel(f"mbarrier.init.shared.b64 [{bar}], {count};")
    state, pending = kernel.reg("b64"), kernel.reg("u32")
    for op in ("arrive", "arrive.noComplete", "arrive", "arrive_drop"):
        with_count = some if op == "arrive" else "1"
        if op == "arrive.noComplete":  # only where it does not complete the phase
            less = kernel.reg("pred")
            kernel(f"setp.lt.u32 {less}, {some}, 2;")
            kernel(f"@{less} mbarrier.{op}.shared.b64 {state}, [{bar}], 1;")
            test(kernel, bar)
            continue
        guard = ""
        if op == "arrive":  # no more than are pending
            fits, twice = kernel.reg("pred"), kernel.reg("u32")
            kernel(f"mad.lo.u32 {twice}, {some}, 2, 1;")
            kernel(f"setp.le.u32 {fits}, {twice}, {count};")
            guard = f"@{fits} "
        kernel(f"{guard}mbarrier.{op}.shared.b64 {state}, [{bar}], {with_count};")
        test(kernel, bar)
    last = kernel.reg("b64")
    kernel(f"mbarrier.arrive.shared.b64 {last}, [{bar}];")
    kernel(f"mbarrier.pending_count.b64 {pending}, {last};")
    kernel.store("u32", pending)
    test(kernel, bar, last)
    yield kernel.case("mbarrier", _columns(kernel.name, (n, 4), (n, 3)))

    kernel, bar, (count,) = start("mbarrier.pending")
    kernel(f"add.u32 {count}, {count}, 2;")
    kernel(f"mbarrier.init.shared.b64 [{bar}], {count};")
    for _ in range(5):
        state, pending = kernel.reg("b64"), kernel.reg("u32")
        kernel(f"mbarrier.arrive.shared.b64 {state}, [{bar}];")
        kernel(f"mbarrier.pending_count.b64 {pending}, {state};")
        kernel.store("u32", pending)
    yield kernel.case("mbarrier", _columns(kernel.name, (n, 4)))

    kernel, bar, (nbytes,) = start("mbarrier.transactions", "sm_90a")
    kernel(f"add.u32 {nbytes}, {nbytes}, 16;")
    kernel(f"mbarrier.init.shared::cta.b64 [{bar}], 1;")
    state, found, half, rest = kernel.reg("b64"), kernel.reg("pred"), *kernel.regs("u32", 2)
    kernel(f"shr.u32 {half}, {nbytes}, 1;")
    kernel(f"sub.u32 {rest}, {nbytes}, {half};")
    done = "mbarrier.complete_tx.relaxed.cta.shared::cta.b64"
    for line in (
        f"mbarrier.arrive.expect_tx.shared::cta.b64 {state}, [{bar}], {nbytes};", "?",
        f"{done} [{bar}], {half};", "?",
        f"{done} [{bar}], {rest};", "?",
        # Bytes may arrive before they are announced; the phase still waits for the arrival.
        f"{done} [{bar}], 64;", "?",
        f"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [{bar}], 96;", "?",
        f"mbarrier.arrive.shared::cta.b64 {state}, [{bar}];", "?",
        f"{done} [{bar}], 32;", "?",
        f"mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [{bar}], 0;", "?",
    ):  # fmt: skip
        if line != "?":
            kernel(line)
            continue
        for parity in (0, 1):
            kernel(f"mbarrier.try_wait.parity.shared::cta.b64 {found}, [{bar}], {parity}, 32;")
            kernel.store("pred", found)
    kernel(f"mbarrier.arrive.shared::cta.b64 {state}, [{bar}];")
    kernel(f"mbarrier.try_wait.acquire.cta.shared::cta.b64 {found}, [{bar}], {state};")
    kernel.store("pred", found)
    yield kernel.case("mbarrier", _columns(kernel.name, (n, 1000)))

    # All threads arrive and wait, five phases, with data that changes hands in each.
    for how, target in (("test_wait", "sm_80"), ("try_wait", "sm_90a")):
        kernel = Kernel(f"mbarrier.phases.{how}", 128, 2, target=target)
        kernel.declare(".shared .align 8 .b64 bar;")
        x = kernel.load("u32")
        mine = _tile(kernel, 512, 4)
        other, value, parity, i = kernel.regs("u32", 4)
        state, p = kernel.reg("b64"), kernel.reg("pred")
        _init(kernel, 128)
        kernel(f"xor.b32 {other}, %thread, 77;")
        kernel(f"mov.u32 {value}, tile;")
        kernel(f"mad.lo.u32 {other}, {other}, 4, {value};")
        kernel(f"mov.u32 {parity}, 0;")
        kernel(f"mov.u32 {i}, 0;")
        kernel("again:")
        kernel(f"st.shared.u32 [{mine}], {x};")
        kernel(f"mbarrier.arrive.shared.b64 {state}, [bar];")
        _wait(kernel, "bar", parity, how)
        kernel(f"xor.b32 {parity}, {parity}, 1;")
        kernel(f"ld.shared.u32 {value}, [{other}];")
        kernel(f"mad.lo.u32 {x}, {x}, 3, {value};")
        kernel(f"mbarrier.arrive.shared.b64 {state}, [bar];")
        _wait(kernel, "bar", parity, how)
        kernel(f"xor.b32 {parity}, {parity}, 1;")
        kernel(f"add.u32 {i}, {i}, 1;")
        kernel(f"setp.lt.u32 {p}, {i}, 5;")
        kernel(f"@{p} bra again;")
        kernel.store("u32", x)
        yield kernel.case("mbarrier", _columns(kernel.name, (256, 0)))

    # One warp fills, three read: a full and an empty barrier for each of two buffers.
    kernel = Kernel("mbarrier.producer", 128, target="sm_90a")
    kernel.declare(".shared .align 8 .b64 full[2];")
    kernel.declare(".shared .align 8 .b64 empty[2];")
    x = kernel.load("u32")
    lane, mine, at, i, parity, total, value, bar = kernel.regs("u32", 8)
    p, producer, state = kernel.reg("pred"), kernel.reg("pred"), kernel.reg("b64")
    kernel.declare(".shared .align 128 .b8 tile[256];")
    first = kernel.reg("pred")
    kernel(f"setp.eq.u32 {first}, %thread, 0;")
    for at_bar in (0, 8):
        kernel(f"@{first} mbarrier.init.shared::cta.b64 [full+{at_bar}], 32;")
        kernel(f"@{first} mbarrier.init.shared::cta.b64 [empty+{at_bar}], 96;")
    kernel("bar.sync 0;")
    for line in (
        f"and.b32 {lane}, %thread, 31;", f"setp.lt.u32 {producer}, %thread, 32;",
        f"mov.u32 {mine}, tile;", f"mov.u32 {i}, 0;", f"mov.u32 {total}, 0;",
        "again:",
        f"and.b32 {at}, {i}, 1;", f"shr.u32 {parity}, {i}, 1;", f"and.b32 {parity}, {parity}, 1;",
        f"@!{producer} bra consume;",
        f"xor.b32 {parity}, {parity}, 1;", f"mov.u32 {bar}, empty;",
        f"mad.lo.u32 {bar}, {at}, 8, {bar};",
    ):  # fmt: skip
        kernel(line)
    _wait(kernel, bar, parity)  # passes at once the first time
    for line in (
        f"mad.lo.u32 {value}, {at}, 128, {mine};", f"mad.lo.u32 {value}, {lane}, 4, {value};",
        f"mad.lo.u32 {x}, {x}, 5, {i};", f"st.shared.u32 [{value}], {x};",
        f"mov.u32 {bar}, full;", f"mad.lo.u32 {bar}, {at}, 8, {bar};",
        f"mbarrier.arrive.shared::cta.b64 {state}, [{bar}];", "bra next;",
        "consume:",
        f"mov.u32 {bar}, full;", f"mad.lo.u32 {bar}, {at}, 8, {bar};",
    ):  # fmt: skip
        kernel(line)
    _wait(kernel, bar, parity)
    for line in (
        f"mad.lo.u32 {value}, {at}, 128, {mine};", f"xor.b32 {bar}, {lane}, 19;",
        f"mad.lo.u32 {value}, {bar}, 4, {value};", f"ld.shared.u32 {value}, [{value}];",
        f"mad.lo.u32 {total}, {total}, 3, {value};",
        f"mov.u32 {bar}, empty;", f"mad.lo.u32 {bar}, {at}, 8, {bar};",
        f"mbarrier.arrive.release.cta.shared::cta.b64 {state}, [{bar}];",
        "next:",
        f"add.u32 {i}, {i}, 1;", f"setp.lt.u32 {p}, {i}, 7;", f"@{p} bra again;",
    ):  # fmt: skip
        kernel(line)
    kernel.store("u32", total)
    yield kernel.case("mbarrier", _columns(kernel.name, (128, 0)))


# -- bulk copies ------------------------------------------------------------------------


def bulk() -> Iterator[Case]:
    """cp.async.bulk in both directions, one and many, and a pipeline of two stages."""
    n = 64
    load = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    for sizes in ((16,), (1024,), (8192,), (16, 48, 256, 1040)):
        kernel = Kernel(f"cp.async.bulk.load.{sum(sizes)}", n, target="sm_90a")
        kernel.declare(".shared .align 8 .b64 bar;")
        total = sum(sizes)
        at = kernel.space(total)
        _tile(kernel, total, 4)
        base, source, first = kernel.reg("u32"), kernel.reg("b64"), kernel.reg("pred")
        _init(kernel, 1)
        kernel("fence.proxy.async.shared::cta;")
        kernel(f"setp.ne.u32 {first}, %thread, 0;")
        kernel(f"@{first} bra issued;")
        kernel(f"mov.u32 {base}, tile;")
        kernel(f"add.s64 {source}, %in, {at};")
        kernel(f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {total};")
        done = 0
        for size in sizes:
            kernel(f"{load} [{base}+{done}], [{source}+{done}], {size}, [bar];")
            done += size
        kernel("issued:")
        _wait(kernel, "bar", "0")
        words = total // 4
        address, value, inside = *kernel.regs("u32", 2), kernel.reg("pred")
        kernel(f"mov.u32 {address}, tile;")
        kernel(f"mad.lo.u32 {address}, %thread, 4, {address};")
        for word in range(0, words, n):
            kernel(f"setp.lt.u32 {inside}, %thread, {words - word};")
            kernel(f"mov.u32 {value}, 0;")
            kernel(f"@{inside} ld.shared.u32 {value}, [{address}+{4 * word}];")
            kernel.store("u32", value)
        yield kernel.case("bulk", _columns(kernel.name, (words, 0)))

    for size, read in ((16, ""), (512, ""), (4096, ".read")):
        kernel = Kernel(f"cp.async.bulk.store.{size}", n, target="sm_90a")
        mine = _tile(kernel, 4096, 4)
        value, first, target = kernel.reg("u32"), kernel.reg("pred"), kernel.reg("b64")
        for word in range(0, 1024, n):
            value = kernel.load("u32")
            kernel(f"st.shared.u32 [{mine}+{4 * word}], {value};")
        kernel("fence.proxy.async.shared::cta;")
        kernel("bar.sync 0;")
        place = kernel.room("u32", size // 4)
        base = kernel.reg("u32")
        kernel(f"setp.ne.u32 {first}, %thread, 0;")
        kernel(f"@{first} bra done;")
        kernel(f"mov.u32 {base}, tile;")
        kernel(f"add.s64 {target}, %out, {place};")
        kernel(f"cp.async.bulk.global.shared::cta.bulk_group [{target}], [{base}], {size};")
        kernel("cp.async.bulk.commit_group;")
        kernel(f"cp.async.bulk.wait_group{read} 0;")
        kernel("done:")
        yield kernel.case("bulk", _columns(kernel.name, *[(n, 0)] * (1024 // n)))

    # Bulk loads run two rounds ahead of the threads that read.
    rounds = 6
    kernel = Kernel("cp.async.bulk.pipeline", n, target="sm_90a")
    kernel.declare(".shared .align 8 .b64 full[2];")
    kernel.declare(".shared .align 8 .b64 empty[2];")
    at = kernel.space(4 * n * rounds)
    kernel.declare(f".shared .align 128 .b8 tile[{8 * n}];")
    first, p, source, state = kernel.reg("pred"), kernel.reg("pred"), *kernel.regs("b64", 2)
    stage, i, parity, bar, base, total, value, mine = kernel.regs("u32", 8)
    kernel(f"setp.eq.u32 {first}, %thread, 0;")
    for cell in (0, 8):
        kernel(f"@{first} mbarrier.init.shared::cta.b64 [full+{cell}], 1;")
        kernel(f"@{first} mbarrier.init.shared::cta.b64 [empty+{cell}], {n};")
    kernel("fence.mbarrier_init.release.cluster;")
    kernel("fence.proxy.async.shared::cta;")
    kernel("bar.sync 0;")
    kernel(f"add.s64 {source}, %in, {at};")
    kernel(f"mov.u32 {base}, tile;")
    kernel(f"mad.lo.u32 {mine}, %thread, 4, {base};")
    kernel(f"@!{first} bra started;")
    for cell in (0, 1):
        kernel(f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [full+{8 * cell}], {4 * n};")
        kernel(f"{load} [tile+{4 * n * cell}], [{source}+{4 * n * cell}], {4 * n}, "
               f"[full+{8 * cell}];")  # fmt: skip
    for line in (
        "started:",
        f"mov.u32 {i}, 0;", f"mov.u32 {total}, 0;",
        "again:",
        f"and.b32 {stage}, {i}, 1;", f"shr.u32 {parity}, {i}, 1;",
        f"and.b32 {parity}, {parity}, 1;", f"mov.u32 {bar}, full;",
        f"mad.lo.u32 {bar}, {stage}, 8, {bar};",
    ):  # fmt: skip
        kernel(line)
    _wait(kernel, bar, parity)
    for line in (
        f"mad.lo.u32 {value}, {stage}, {4 * n}, {mine};", f"ld.shared.u32 {value}, [{value}];",
        f"mad.lo.u32 {total}, {total}, 3, {value};", f"mov.u32 {bar}, empty;",
        f"mad.lo.u32 {bar}, {stage}, 8, {bar};",
        f"mbarrier.arrive.shared::cta.b64 {state}, [{bar}];",
        f"add.u32 {value}, {i}, 2;", f"setp.lt.and.u32 {p}, {value}, {rounds}, {first};",
        f"@!{p} bra next;",
    ):  # fmt: skip
        kernel(line)
    _wait(kernel, bar, parity)
    for line in (
        f"mov.u32 {bar}, full;", f"mad.lo.u32 {bar}, {stage}, 8, {bar};",
        f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [{bar}], {4 * n};",
        f"mad.wide.u32 {state}, {value}, {4 * n}, {source};",
        f"mad.lo.u32 {value}, {stage}, {4 * n}, {base};",
        f"{load} [{value}], [{state}], {4 * n}, [{bar}];",
        "next:",
        f"add.u32 {i}, {i}, 1;", f"setp.lt.u32 {p}, {i}, {rounds};", f"@{p} bra again;",
    ):  # fmt: skip
        kernel(line)
    kernel.store("u32", total)
    yield kernel.case("bulk", _columns(kernel.name, (n * rounds, 0)))

    for op, t in (("add", "u32"), ("max", "s32"), ("xor", "b32")):
        kernel = Kernel(f"cp.reduce.async.bulk.{op}.{t}", n, target="sm_90a")
        mine = _tile(kernel, 4 * n, 4)
        value = kernel.load("u32")
        kernel(f"st.shared.u32 [{mine}], {value};")
        kernel("fence.proxy.async.shared::cta;")
        kernel("bar.sync 0;")
        place, first, target = kernel.room("u32", n), kernel.reg("pred"), kernel.reg("b64")
        base = kernel.reg("u32")
        kernel(f"setp.ne.u32 {first}, %thread, 0;")
        kernel(f"@{first} bra done;")
        kernel(f"mov.u32 {base}, tile;")
        kernel(f"add.s64 {target}, %out, {place};")
        kernel(
            f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.{t} "
            f"[{target}], [{base}], {4 * n};"
        )
        kernel("cp.async.bulk.commit_group;")
        kernel("cp.async.bulk.wait_group 0;")
        kernel("done:")
        yield kernel.case("beyond", _columns(kernel.name, (n, 0)))


# -- clusters -------------------------------------------------------------------------


def clusters() -> Iterator[Case]:
    """Clusters of 2 and 4: numbers, distributed shared memory, barriers, copies across."""
    n, grid = 64, 8
    sync = ("barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;")

    def start(name: str, size: int) -> Kernel:
        return Kernel(
            f"cluster{size}.{name}",
            n,
            grid,
            target="sm_90a",
            version="8.1",
            directives=f".reqnctapercluster {size}, 1, 1",
        )

    def remote(kernel: Kernel, size: int, address: str, step: int = 1) -> str:
        """The address in the shared memory of the CTA ``step`` ranks further."""
        rank, found = kernel.regs("u32", 2)
        kernel(f"mov.u32 {rank}, %cluster_ctarank;")
        kernel(f"add.u32 {rank}, {rank}, {step};")
        kernel(f"and.b32 {rank}, {rank}, {size - 1};")
        kernel(f"mapa.shared::cluster.u32 {found}, {address}, {rank};")
        return found

    for size in (2, 4):
        kernel = start("numbers", size)
        for name in ("cluster_ctarank", "cluster_nctarank", "cluster_ctaid.x", "cluster_ctaid.y",
                     "cluster_nctaid.x", "clusterid.x", "nclusterid.x"):  # fmt: skip
            register = kernel.reg("u32")
            kernel(f"mov.u32 {register}, %{name};")
            kernel.store("u32", register)
        explicit = kernel.reg("pred")
        kernel(f"mov.pred {explicit}, %is_explicit_cluster;")
        kernel.store("pred", explicit)
        yield kernel.case("cluster", list)

        for relation in ("", "relaxed"):
            kernel = start("load" + relation, size)
            x = kernel.load("u32")
            mine = _tile(kernel, 4 * n, 4)
            kernel(f"st.shared.u32 [{mine}], {x};")
            if relation:
                kernel("fence.acq_rel.cluster;")
                kernel("barrier.cluster.arrive.relaxed.aligned;")
                kernel("barrier.cluster.wait.acquire.aligned;")
            else:
                kernel("barrier.cluster.arrive.release.aligned;")
                kernel("barrier.cluster.wait.acquire.aligned;")
            for step in range(1, size):
                there = remote(kernel, size, mine, step)
                value = kernel.reg("u32")
                kernel(f"ld.shared::cluster.u32 {value}, [{there}];")
                kernel.store("u32", value)
            for line in sync:
                kernel(line)
            yield kernel.case("cluster", _columns(kernel.name, (n * grid, 0)))

        kernel = start("generic", size)
        x = kernel.load("u32")
        mine = _tile(kernel, 4 * n, 4)
        kernel(f"st.shared.u32 [{mine}], {x};")
        for line in sync:
            kernel(line)
        wide, far, rank, value = *kernel.regs("b64", 2), *kernel.regs("u32", 2)
        kernel(f"mov.u32 {rank}, %cluster_ctarank;")
        kernel(f"xor.b32 {rank}, {rank}, 1;")
        kernel(f"cvt.u64.u32 {wide}, {mine};")
        kernel(f"cvta.shared.u64 {wide}, {wide};")
        kernel(f"mapa.u64 {far}, {wide}, {rank};")
        kernel(f"ld.u32 {value}, [{far}];")
        kernel.store("u32", value)
        for line in sync:
            kernel(line)
        yield kernel.case("cluster", _columns(kernel.name, (n * grid, 0)))

        kernel = start("spaces", size)
        mine = _tile(kernel, 4 * n, 4)
        wide, far, rank, found = *kernel.regs("b64", 2), kernel.reg("u32"), kernel.reg("pred")
        kernel(f"mov.u32 {rank}, %cluster_ctarank;")
        kernel(f"xor.b32 {rank}, {rank}, 1;")
        kernel(f"cvt.u64.u32 {wide}, {mine};")
        kernel(f"cvta.shared.u64 {wide}, {wide};")
        kernel(f"mapa.u64 {far}, {wide}, {rank};")
        kernel(f"getctarank.u64 {rank}, {far};")
        kernel.store("u32", rank)
        there = remote(kernel, size, mine)
        kernel(f"getctarank.shared::cluster.u32 {rank}, {there};")
        kernel.store("u32", rank)
        for space in ("shared::cta", "shared::cluster"):
            for register in (wide, far):
                kernel(f"isspacep.{space} {found}, {register};")
                kernel.store("pred", found)
        yield kernel.case("cluster", list)

        kernel = start("store", size)
        x = kernel.load("u32")
        mine = _tile(kernel, 4 * n, 4)
        there = remote(kernel, size, mine)
        kernel("barrier.cluster.arrive.relaxed.aligned;")  # the other has started
        kernel("barrier.cluster.wait.aligned;")
        kernel(f"st.shared::cluster.u32 [{there}], {x};")
        for line in sync:
            kernel(line)
        value = kernel.reg("u32")
        kernel(f"ld.shared.u32 {value}, [{mine}];")
        kernel.store("u32", value)
        yield kernel.case("cluster", _columns(kernel.name, (n * grid, 0)))

        kernel = start("atomics", size)
        x = kernel.load("u32")
        mine = _tile(kernel, 4 * n, 4)
        kernel(f"st.shared.u32 [{mine}], 1000;")
        for line in sync:
            kernel(line)
        rank, there = kernel.regs("u32", 2)
        kernel(f"mov.u32 {rank}, 0;")
        kernel(f"mapa.shared::cluster.u32 {there}, {mine}, {rank};")
        kernel(f"red.relaxed.cluster.shared::cluster.add.u32 [{there}], {x};")
        for line in sync:
            kernel(line)
        value = kernel.reg("u32")
        kernel(f"ld.shared.u32 {value}, [{mine}];")
        kernel.store("u32", value)
        yield kernel.case("cluster", _columns(kernel.name, (n * grid, 0)))

        # Every CTA's threads arrive at the next CTA's mbarrier, after writing to its memory.
        kernel = start("mbarrier", size)
        kernel.declare(".shared .align 8 .b64 bar;")
        x = kernel.load("u32")
        mine = _tile(kernel, 4 * n, 4)
        _init(kernel, n)
        kernel("fence.mbarrier_init.release.cluster;")
        for line in sync:
            kernel(line)
        there, bar = remote(kernel, size, mine), kernel.reg("u32")
        kernel(f"mov.u32 {bar}, bar;")
        far = remote(kernel, size, bar)
        kernel(f"st.shared::cluster.u32 [{there}], {x};")
        kernel(f"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [{far}];")
        done, value = kernel.reg("pred"), kernel.reg("u32")
        kernel("wait:")
        kernel(f"mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 {done}, [bar], 0;")
        kernel(f"@!{done} bra wait;")
        kernel(f"ld.shared.u32 {value}, [{mine}];")
        kernel.store("u32", value)
        for line in sync:
            kernel(line)
        yield kernel.case("cluster", _columns(kernel.name, (n * grid, 0)))

        # Asynchronous stores and copies to the next CTA, which waits for the bytes.
        for what in ("st.async", "bulk"):
            kernel = start(what, size)
            kernel.declare(".shared .align 8 .b64 bar;")
            x = kernel.load("u32")
            mine = _tile(kernel, 8 * n, 4)
            _init(kernel, 1)
            kernel("fence.mbarrier_init.release.cluster;")
            first, bar, base = kernel.reg("pred"), *kernel.regs("u32", 2)
            kernel(f"setp.eq.u32 {first}, %thread, 0;")
            kernel(f"@{first} mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {4 * n};")
            kernel(f"st.shared.u32 [{mine}], {x};")
            kernel("fence.proxy.async.shared::cta;")
            for line in sync:
                kernel(line)
            kernel(f"mov.u32 {bar}, bar;")
            far = remote(kernel, size, bar)
            if what == "st.async":
                there = remote(kernel, size, mine)
                kernel(
                    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 "
                    f"[{there}+{4 * n}], {x}, [{far}];"
                )
            else:
                kernel(f"mov.u32 {base}, tile;")
                there = remote(kernel, size, base)
                kernel(f"add.u32 {there}, {there}, {4 * n};")
                kernel(
                    f"@{first} cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx"
                    f"::bytes [{there}], [{base}], {4 * n}, [{far}];"
                )
            done, value = kernel.reg("pred"), kernel.reg("u32")
            kernel("wait:")
            kernel(f"mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 {done}, [bar], 0;")
            kernel(f"@!{done} bra wait;")
            kernel(f"ld.shared.u32 {value}, [{mine}+{4 * n}];")
            kernel.store("u32", value)
            for line in sync:
                kernel(line)
            yield kernel.case("cluster", _columns(kernel.name, (n * grid, 0)))

        # Rank 0 sends one piece of global memory to every CTA of its cluster.
        kernel = start("multicast", size)
        kernel.declare(".shared .align 8 .b64 bar;")
        at = kernel.space(4 * n * grid)
        _tile(kernel, 4 * n, 4)
        _init(kernel, 1)
        kernel("fence.mbarrier_init.release.cluster;")
        first, rank, mask = kernel.reg("pred"), kernel.reg("u32"), kernel.reg("b16")
        kernel(f"setp.eq.u32 {first}, %thread, 0;")
        kernel(f"@{first} mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {4 * n};")
        for line in sync:
            kernel(line)
        source, base = kernel.reg("b64"), kernel.reg("u32")
        kernel(f"mov.u32 {rank}, %cluster_ctarank;")
        kernel(f"or.b32 {rank}, {rank}, %thread;")
        kernel(f"setp.eq.u32 {first}, {rank}, 0;")
        kernel(f"mov.b16 {mask}, {(1 << size) - 1};")
        kernel(f"mov.u32 {base}, tile;")
        kernel(f"mad.wide.u32 {source}, %id, 4, %in;")
        kernel(
            f"@{first} cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
            f".multicast::cluster [{base}], [{source}+{at}], {4 * n}, [bar], {mask};"
        )
        _wait(kernel, "bar", "0")
        _show(kernel, n)
        for line in sync:
            kernel(line)
        yield kernel.case("cluster", _columns(kernel.name, (n * grid, 0)))

    # Ranks go round the cluster several times: arrive now, wait later.
    kernel = start("rounds", 4)
    x = kernel.load("u32")
    mine = _tile(kernel, 8 * n, 4)
    value, i, stage, p = *kernel.regs("u32", 3), kernel.reg("pred")
    kernel("barrier.cluster.arrive.relaxed;")
    kernel(f"mov.u32 {i}, 0;")
    there = remote(kernel, 4, mine)
    kernel("barrier.cluster.wait;")
    kernel("again:")
    kernel(f"and.b32 {stage}, {i}, 1;")
    kernel(f"mad.lo.u32 {stage}, {stage}, {4 * n}, {there};")
    kernel(f"st.shared::cluster.u32 [{stage}], {x};")
    kernel("barrier.cluster.arrive;")
    kernel(f"mul.lo.u32 {value}, {x}, 3;")
    kernel("barrier.cluster.wait;")
    kernel(f"and.b32 {stage}, {i}, 1;")
    kernel(f"mad.lo.u32 {stage}, {stage}, {4 * n}, {mine};")
    kernel(f"ld.shared.u32 {x}, [{stage}];")
    kernel(f"add.u32 {x}, {x}, {value};")
    kernel(f"add.u32 {i}, {i}, 1;")
    kernel(f"setp.lt.u32 {p}, {i}, 5;")
    kernel(f"@{p} bra again;")
    for line in sync:
        kernel(line)
    kernel.store("u32", x)
    yield kernel.case("cluster", _columns(kernel.name, (n * grid, 0)))


def cases() -> Iterator[Case]:
    """Yields all cases of asynchronous instructions."""
    yield from copies()
    yield from barriers()
    yield from bulk()
    yield from clusters()
