"""Instructions across lanes and warps: shuffles, votes, branches, loops, barriers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from conformance.case import Case, Kernel, view
from conformance.values import Array, Random


def _columns(key: str, n: int, *limits: int) -> Callable[[], Sequence[Array]]:
    """Columns of random 32-bit numbers, each below its limit (0: no limit)."""

    def columns() -> list[Array]:
        random = Random(key)
        return [
            view(random.below(limit, n) if limit else random.words(n), "u32") for limit in limits
        ]

    return columns


def _halves(kernel: Kernel) -> tuple[str, str]:
    """A predicate that holds in the lower half of each warp, and a mask of one's own half."""
    low, mask, lane = kernel.reg("pred"), kernel.reg("b32"), kernel.reg("b32")
    kernel(f"and.b32 {lane}, %thread, 31;")
    kernel(f"setp.lt.u32 {low}, {lane}, 16;")
    kernel(f"selp.b32 {mask}, 0xffff, 0xffff0000, {low};")
    return low, mask


# -- warps ------------------------------------------------------------------------


def warps() -> Iterator[Case]:
    """shfl, vote, match, redux, activemask, elect."""
    family = "warp"
    threads = 128
    for mode in ("up", "down", "bfly", "idx"):
        # Any b and c, a different one in each lane: segments and clamps of all kinds.
        kernel = Kernel(f"shfl.sync.{mode}.any", threads, 2)
        a, b, c = (kernel.load("b32") for _ in range(3))
        found, inside = kernel.reg("b32"), kernel.reg("pred")
        kernel(f"shfl.sync.{mode}.b32 {found}|{inside}, {a}, {b}, {c}, 0xffffffff;")
        kernel.store("b32", found)
        kernel.store("pred", inside)
        yield kernel.case(family, _columns(kernel.name, 2 * threads, 0, 32, 0x2000))

        kernel = Kernel(f"shfl.sync.{mode}.wide", threads)
        a, b, c = (kernel.load("b32") for _ in range(3))
        found, inside = kernel.reg("b32"), kernel.reg("pred")
        kernel(f"shfl.sync.{mode}.b32 {found}|{inside}, {a}, {b}, {c}, -1;")
        kernel.store("b32", found)
        kernel.store("pred", inside)
        yield kernel.case(family, _columns(kernel.name, threads, 0, 0, 0))

        kernel = Kernel(f"shfl.sync.{mode}.imm", 64)
        a, mask = kernel.load("b32"), kernel.reg("b32")
        kernel(f"mov.b32 {mask}, -1;")
        clamps = (0, 0x1800, 0x1C00) if mode == "up" else (0x1F, 0x181F, 0x1C1F)
        for b, c in [(b, c) for c in clamps for b in (0, 1, 3, 8, 16, 31)]:
            found = kernel.reg("b32")
            kernel(f"shfl.sync.{mode}.b32 {found}, {a}, {b}, {c:#x}, {mask};")
            kernel.store("b32", found)
        yield kernel.case(family, _columns(kernel.name, 64, 0))

        # Each half of the warp with a mask of its own, together and apart.
        kernel = Kernel(f"shfl.sync.{mode}.halves", threads)
        a, b = kernel.load("b32"), kernel.load("b32")
        low, mask = _halves(kernel)
        clamp = 0x1000 if mode == "up" else 0x100F
        kernel(f"and.b32 {b}, {b}, 15;")
        found, inside = kernel.reg("b32"), kernel.reg("pred")
        width = clamp | 0xF if mode != "up" else clamp
        kernel(f"shfl.sync.{mode}.b32 {found}|{inside}, {a}, {b}, {width:#x}, {mask};")
        kernel.store("b32", found)
        kernel.store("pred", inside)
        kernel(f"mov.b32 {found}, 7;")
        kernel(f"@!{low} bra upper;")
        kernel(f"shfl.sync.{mode}.b32 {found}|{inside}, {a}, {b}, {width:#x}, 0xffff;")
        kernel("bra joined;")
        kernel("upper:")
        kernel(f"not.b32 {a}, {a};")
        kernel(f"shfl.sync.{mode}.b32 {found}|{inside}, {a}, {b}, {width:#x}, 0xffff0000;")
        kernel("joined:")
        kernel.store("b32", found)
        kernel.store("pred", inside)
        yield kernel.case(family, _columns(kernel.name, threads, 0, 0))

    kernel = Kernel("shfl.sync.f32.sum", threads)
    value, other = kernel.load("f32"), kernel.reg("f32")
    for offset in (16, 8, 4, 2, 1):
        kernel(f"shfl.sync.bfly.b32 {other}, {value}, {offset}, 31, -1;")
        kernel(f"add.rn.f32 {value}, {value}, {other};")
    kernel.store("f32", value)

    def finite() -> list[Array]:
        random = Random("shuffled sums")
        words = random.words(threads)
        scale = np.uint64(120) + random.below(16, threads)
        return [view((words & np.uint64(0x807FFFFF)) | scale << np.uint64(23), "u32")]

    yield kernel.case(family, finite)

    for limit, what in ((2, "mixed"), (9, "mostly")):
        kernel = Kernel(f"vote.sync.{what}", threads, 2)
        value, negated = kernel.load("b32"), kernel.load("b32")
        p, q = kernel.regs("pred", 2)
        kernel(f"setp.ne.u32 {p}, {value}, 0;")
        kernel(f"setp.ne.u32 {q}, {negated}, 0;")
        low, mask = _halves(kernel)
        for which in ("-1", mask):
            for mode in ("all", "any", "uni"):
                for source in (p, f"!{q}"):
                    found = kernel.reg("pred")
                    kernel(f"vote.sync.{mode}.pred {found}, {source}, {which};")
                    kernel.store("pred", found)
            for source in (p, f"!{q}"):
                ballot = kernel.reg("b32")
                kernel(f"vote.sync.ballot.b32 {ballot}, {source}, {which};")
                kernel.store("b32", ballot)
        ballot = kernel.reg("b32")
        kernel(f"mov.b32 {ballot}, 0;")
        kernel(f"@!{low} bra done;")
        kernel(f"vote.sync.ballot.b32 {ballot}, {q}, 0xffff;")
        kernel("done:")
        kernel.store("b32", ballot)

        def flags(limit: int = limit, name: str = kernel.name) -> list[Array]:
            found = _columns(name, 2 * threads, limit, limit)()
            found[0][:32], found[1][:32] = 0, 1  # some warps agree
            found[0][32:64], found[1][32:64] = 1, 0
            return list(found)

        yield kernel.case(family, flags)

    for t in ("b32", "b64"):
        for values in (1, 2, 7):
            kernel = Kernel(f"match.sync.{t}.{values}", threads)
            word = kernel.load("b32")
            value = word
            if t == "b64":
                value = kernel.reg("b64")
                kernel(f"mov.b64 {value}, {{{word}, {word}}};")
            _, mask = _halves(kernel)
            for which in ("-1", mask):
                found, every = kernel.reg("b32"), kernel.reg("pred")
                kernel(f"match.any.sync.{t} {found}, {value}, {which};")
                kernel.store("b32", found)
                kernel(f"match.all.sync.{t} {found}|{every}, {value}, {which};")
                kernel.store("b32", found)
                kernel.store("pred", every)
            yield kernel.case(family, _columns(kernel.name, threads, values))

    for op, t in (("add", "u32"), ("add", "s32"), ("min", "u32"), ("min", "s32"), ("max", "u32"),
                  ("max", "s32"), ("and", "b32"), ("or", "b32"), ("xor", "b32")):  # fmt: skip
        kernel = Kernel(f"redux.sync.{op}.{t}", threads)
        value, found = kernel.load("b32"), kernel.reg("b32")
        low, mask = _halves(kernel)
        for which in ("0xffffffff", mask):
            kernel(f"redux.sync.{op}.{t} {found}, {value}, {which};")
            kernel.store("b32", found)
        kernel(f"@{low} bra done;")
        kernel(f"redux.sync.{op}.{t} {found}, {value}, 0xffff0000;")
        kernel("done:")
        kernel.store("b32", found)
        yield kernel.case(family, _columns(kernel.name, threads, 0))

    kernel = Kernel("activemask", 64)
    value, active = kernel.load("b32"), kernel.reg("b32")
    some = kernel.reg("pred")
    kernel(f"activemask.b32 {active};")
    kernel.store("b32", active)
    kernel(f"setp.ne.u32 {some}, {value}, 0;")
    kernel(f"mov.b32 {active}, 0;")
    kernel(f"@!{some} bra done;")
    kernel(f"activemask.b32 {active};")
    kernel("done:")
    kernel("bar.warp.sync -1;")
    kernel.store("b32", active)
    yield kernel.case(family, _columns(kernel.name, 64, 2))

    kernel = Kernel("elect.sync", 64, target="sm_90a")
    leader, elected = kernel.reg("b32"), kernel.reg("pred")
    _, mask = _halves(kernel)
    for which in ("0xffffffff", mask):
        kernel(f"elect.sync {leader}|{elected}, {which};")
        kernel.store("b32", leader)
        kernel.store("pred", elected)
    kernel(f"elect.sync _|{elected}, -1;")
    kernel.store("pred", elected)
    yield kernel.case(family, list)


# -- control --------------------------------------------------------------------------


def control() -> Iterator[Case]:
    """Branches, loops and barriers."""
    family = "control"
    yield from _branches(family)
    yield from _barriers(family)
    yield from _between_ctas(family)
    yield from _beyond()


def _branches(family: str) -> Iterator[Case]:
    n = 128
    kernel = Kernel("loop.collatz", n)
    x, steps, one = kernel.load("u32"), *kernel.regs("b32", 2)
    p, odd = kernel.regs("pred", 2)
    for line in (
        f"and.b32 {x}, {x}, 255;", f"add.u32 {x}, {x}, 1;", f"mov.u32 {steps}, 0;",
        "again:",
        f"setp.eq.u32 {p}, {x}, 1;", f"@{p} bra done;",
        f"add.u32 {steps}, {steps}, 1;", f"and.b32 {one}, {x}, 1;", f"setp.ne.u32 {odd}, {one}, 0;",
        f"@{odd} bra triple;", f"shr.u32 {x}, {x}, 1;", "bra again;",
        "triple:",
        f"mad.lo.u32 {x}, {x}, 3, 1;", "bra again;",
        "done:",
    ):  # fmt: skip
        kernel(line)
    kernel.store("u32", steps)
    yield kernel.case(family, _columns(kernel.name, n, 0))

    kernel = Kernel("loop.gcd", n, 2)
    a, b = kernel.load("u32"), kernel.load("u32")
    rest, p = kernel.reg("u32"), kernel.reg("pred")
    for line in (
        "again:",
        f"setp.eq.u32 {p}, {b}, 0;", f"@{p} bra done;",
        f"rem.u32 {rest}, {a}, {b};", f"mov.u32 {a}, {b};", f"mov.u32 {b}, {rest};",
        "bra.uni again;",
        "done:",
    ):  # fmt: skip
        kernel(line)
    kernel.store("u32", a)
    yield kernel.case(family, _columns(kernel.name, 2 * n, 1000, 720))

    # Loops in loops, with continue and two exits; trip counts differ by lane.
    kernel = Kernel("loop.nested", n)
    outer, inner, stop = (kernel.load("u32") for _ in range(3))
    i, j, total, low = kernel.regs("u32", 4)
    p, q, r = kernel.regs("pred", 3)
    for line in (
        f"and.b32 {outer}, {outer}, 7;", f"and.b32 {inner}, {inner}, 7;",
        f"and.b32 {stop}, {stop}, 63;", f"mov.u32 {i}, 0;", f"mov.u32 {total}, 0;",
        "outer_loop:",
        f"setp.ge.u32 {p}, {i}, {outer};", f"@{p} bra finished;", f"mov.u32 {j}, 0;",
        "inner_loop:",
        f"setp.ge.u32 {q}, {j}, {inner};", f"@{q} bra inner_done;",
        f"xor.b32 {low}, {i}, {j};", f"and.b32 {low}, {low}, 3;", f"add.u32 {j}, {j}, 1;",
        f"setp.eq.u32 {r}, {low}, 2;", f"@{r} bra inner_loop;",  # continue
        f"mad.lo.u32 {total}, {total}, 5, {j};", f"and.b32 {low}, {total}, 63;",
        f"setp.eq.u32 {r}, {low}, {stop};", f"@{r} bra finished;",  # out of both
        "bra inner_loop;",
        "inner_done:",
        f"add.u32 {i}, {i}, 1;", f"add.u32 {total}, {total}, 1;", "bra outer_loop;",
        "finished:",
    ):  # fmt: skip
        kernel(line)
    kernel.store("u32", total)
    kernel.store("u32", i)
    yield kernel.case(family, _columns(kernel.name, n, 0, 0, 0))

    # A decision tree of four levels; each of the 16 leaves does something else.
    kernel = Kernel("branch.tree", n, 2)
    x, y, bit = kernel.load("u32"), kernel.load("u32"), kernel.reg("u32")
    tests = kernel.regs("pred", 4)
    for level, p in enumerate(tests):
        kernel(f"and.b32 {bit}, {x}, {1 << level};")
        kernel(f"setp.ne.u32 {p}, {bit}, 0;")

    def tree(level: int, leaf: int) -> None:
        if level == 4:
            kernel(f"mad.lo.u32 {y}, {y}, {2 * leaf + 3}, {x};")
            return
        label = f"L{level}_{leaf}"
        kernel(f"@{tests[level]} bra {label}_taken;")
        tree(level + 1, leaf)
        kernel(f"bra {label}_end;")
        kernel(f"{label}_taken:")
        kernel(f"add.u32 {y}, {y}, {level + 1};")
        tree(level + 1, leaf | 1 << level)
        kernel(f"{label}_end:")
        kernel(f"xor.b32 {y}, {y}, {level};")

    tree(0, 0)
    kernel.store("u32", y)
    yield kernel.case(family, _columns(kernel.name, 2 * n, 0, 0))

    kernel = Kernel("branch.idx", n)
    x, y = kernel.load("u32"), kernel.load("u32")
    kernel(f"and.b32 {x}, {x}, 3;")
    kernel("where: .branchtargets zero, one, two, one;")
    kernel(f"brx.idx {x}, where;")
    for at, label in enumerate(("zero", "one", "two")):
        kernel(f"{label}:")
        kernel(f"mad.lo.u32 {y}, {y}, {at + 3}, {x};")
        kernel("bra.uni joined;" if label != "two" else "joined:")
    kernel.store("u32", y)
    yield kernel.case("beyond", _columns(kernel.name, n, 0, 0))

    # A jump into the middle of a loop: no structured language writes it, a compiler may.
    kernel = Kernel("loop.two_entries", n)
    x, count, p = kernel.load("u32"), kernel.load("u32"), kernel.reg("pred")
    for line in (
        f"and.b32 {count}, {count}, 15;", f"setp.gt.u32 {p}, {count}, 7;", f"@{p} bra middle;",
        "top:",
        f"mad.lo.u32 {x}, {x}, 3, 1;",
        "middle:",
        f"xor.b32 {x}, {x}, {count};", f"setp.eq.u32 {p}, {count}, 0;", f"@{p} bra out_of_it;",
        f"sub.u32 {count}, {count}, 1;", "bra top;",
        "out_of_it:",
    ):  # fmt: skip
        kernel(line)
    kernel.store("u32", x)
    yield kernel.case(family, _columns(kernel.name, n, 0, 0))

    for word in ("ret", "exit"):
        kernel = Kernel(f"branch.{word}", n)
        x, y, p = kernel.load("u32"), kernel.load("u32"), kernel.reg("pred")
        kernel.store("u32", y)
        kernel(f"and.b32 {x}, {x}, 3;")
        kernel(f"setp.eq.u32 {p}, {x}, 0;")
        kernel(f"@{p} {word};")
        kernel(f"add.u32 {y}, {y}, {x};")
        kernel.store("u32", y)
        yield kernel.case(family, _columns(kernel.name, n, 0, 0))

    kernel = Kernel("loop.uniform", n)
    x, i, p = kernel.load("u32"), kernel.reg("u32"), kernel.reg("pred")
    for line in (
        f"mov.u32 {i}, 0;",
        "$L__again:",
        f"mad.lo.u32 {x}, {x}, 1664525, 1013904223;", f"add.s32 {i}, {i}, 1;",
        f"setp.lt.s32 {p}, {i}, %n;", f"@{p} bra $L__again;",
    ):  # fmt: skip
        kernel(line)
    kernel.store("u32", x)
    yield kernel.case(family, _columns(kernel.name, n, 0))

    # Lanes meet again where the code says so.
    kernel = Kernel("branch.meet", n)
    x, y, p = kernel.load("u32"), kernel.reg("u32"), kernel.reg("pred")
    i, lane = kernel.regs("u32", 2)
    for line in (
        f"and.b32 {lane}, %thread, 31;", f"mov.u32 {i}, 0;",
        "again:",
        f"add.u32 {i}, {i}, 1;", f"mad.lo.u32 {x}, {x}, 5, {i};",
        f"setp.lt.u32 {p}, {i}, {lane};", f"@{p} bra again;",
        "bar.warp.sync 0xffffffff;",
        f"shfl.sync.down.b32 {y}, {x}, 1, 31, -1;", f"add.u32 {y}, {y}, {i};",
    ):  # fmt: skip
        kernel(line)
    kernel.store("u32", y)
    yield kernel.case(family, _columns(kernel.name, n, 0))


def _barriers(family: str) -> Iterator[Case]:
    n = 128
    for barrier in ("bar.sync 0", "barrier.sync 1", "barrier.sync.aligned 2", "bar.cta.sync 15",
                    "barrier.cta.sync 3, 128", "bar.sync {b}", "bar.sync {b}, {c}"):  # fmt: skip
        name = barrier.format(b="named", c="counted").replace(", ", ".").replace(" ", ".")
        kernel = Kernel(name, n, 2)
        x = kernel.load("u32")
        mine, base, half, other, q = *kernel.regs("u32", 4), kernel.reg("pred")
        b, c = kernel.regs("u32", 2)
        if "{b}" in barrier:
            kernel(f"mov.u32 {b}, 4;")
        if "{c}" in barrier:
            kernel(f"mov.u32 {c}, {n};")
        text = barrier.format(b=b, c=c) + ";"
        kernel.declare(f".shared .align 4 .b32 tile[{n}];")
        kernel(f"mov.u32 {base}, tile;")
        kernel(f"mad.lo.u32 {mine}, %thread, 4, {base};")
        kernel(f"st.shared.u32 [{mine}], {x};")
        kernel(f"mov.u32 {half}, {n // 2};")
        kernel("again:")
        kernel(text)
        kernel(f"setp.ge.u32 {q}, %thread, {half};")
        kernel(f"@{q} bra skip;")
        kernel(f"mad.lo.u32 {other}, {half}, 4, {mine};")
        kernel(f"ld.shared.u32 {other}, [{other}];")
        kernel(f"ld.shared.u32 {x}, [{mine}];")
        kernel(f"mad.lo.u32 {x}, {x}, 3, {other};")
        kernel(f"st.shared.u32 [{mine}], {x};")
        kernel("skip:")
        kernel(f"shr.u32 {half}, {half}, 1;")
        kernel(f"setp.ne.u32 {q}, {half}, 0;")
        kernel(f"@{q} bra again;")
        kernel(text)
        kernel(f"ld.shared.u32 {x}, [tile];")
        kernel.store("u32", x)
        yield kernel.case(family, _columns(kernel.name, 2 * n, 0))

    # Pairs of warps, each pair at a barrier of its own, with its own number of rounds.
    kernel = Kernel("barrier.pairs", n)
    x, pair, mine, other = kernel.load("u32"), *kernel.regs("u32", 3)
    rounds, p, name = kernel.reg("u32"), kernel.reg("pred"), kernel.reg("u32")
    kernel.declare(f".shared .align 4 .b32 tile[{n}];")
    for line in (
        f"shr.u32 {pair}, %thread, 6;", f"add.u32 {name}, {pair}, 1;",
        f"mad.lo.u32 {rounds}, {pair}, 3, 2;", f"mov.u32 {mine}, tile;",
        f"xor.b32 {other}, %thread, 45;", f"mad.lo.u32 {other}, {other}, 4, {mine};",
        f"mad.lo.u32 {mine}, %thread, 4, {mine};",
        "again:",
        f"st.shared.u32 [{mine}], {x};", f"bar.sync {name}, 64;",
        f"ld.shared.u32 {pair}, [{other}];", f"mad.lo.u32 {x}, {pair}, 7, {x};",
        f"bar.sync {name}, 64;", f"sub.u32 {rounds}, {rounds}, 1;",
        f"setp.ne.u32 {p}, {rounds}, 0;", f"@{p} bra again;",
    ):  # fmt: skip
        kernel(line)
    kernel.store("u32", x)
    yield kernel.case(family, _columns(kernel.name, n, 0))

    # Two warps produce and arrive, two others wait and consume; four rounds, two buffers.
    for arrive, sync in (("bar.arrive", "bar.sync"), ("barrier.arrive", "barrier.sync")):
        kernel = Kernel(f"{arrive}.producer", n)
        x, total, mine, at = kernel.load("u32"), *kernel.regs("u32", 3)
        i, p, maker, value = kernel.reg("u32"), *kernel.regs("pred", 2), kernel.reg("u32")
        full, free = kernel.regs("u32", 2)
        kernel.declare(f".shared .align 4 .b32 tile[{n}];")
        for line in (
            f"mov.u32 {total}, 0;", f"mov.u32 {i}, 0;", f"and.b32 {mine}, %thread, 63;",
            f"setp.lt.u32 {maker}, %thread, 64;",
            "again:",
            f"and.b32 {at}, {i}, 1;", f"add.u32 {full}, {at}, 1;", f"add.u32 {free}, {at}, 3;",
            f"mad.lo.u32 {at}, {at}, 64, {mine};", f"mov.u32 {value}, tile;",
            f"@!{maker} bra consume;",
            f"mad.lo.u32 {at}, {at}, 4, {value};",
            f"setp.lt.u32 {p}, {i}, 2;", f"@{p} bra fresh;", f"{sync} {free}, {n};",
            "fresh:",
            f"mad.lo.u32 {x}, {x}, 3, {i};", f"st.shared.u32 [{at}], {x};",
            f"{arrive} {full}, {n};", "bra next;",
            "consume:",
            f"xor.b32 {at}, {at}, 21;", f"mad.lo.u32 {at}, {at}, 4, {value};",
            f"{sync} {full}, {n};", f"ld.shared.u32 {value}, [{at}];",
            f"mad.lo.u32 {total}, {total}, 5, {value};",
            f"setp.ge.u32 {p}, {i}, 4;", f"@{p} bra next;", f"{arrive} {free}, {n};",
            "next:",
            f"add.u32 {i}, {i}, 1;", f"setp.lt.u32 {p}, {i}, 6;", f"@{p} bra again;",
        ):  # fmt: skip
            kernel(line)
        kernel.store("u32", total)
        yield kernel.case(family, _columns(kernel.name, n, 0))

    kernel = Kernel("barrier.warp", n)
    x, mine, other = kernel.load("u32"), *kernel.regs("u32", 2)
    low, mask = _halves(kernel)
    kernel.declare(f".shared .align 4 .b32 tile[{n}];")
    for line in (
        f"mov.u32 {mine}, tile;", f"xor.b32 {other}, %thread, 5;",
        f"mad.lo.u32 {other}, {other}, 4, {mine};", f"mad.lo.u32 {mine}, %thread, 4, {mine};",
        f"st.shared.u32 [{mine}], {x};", f"bar.warp.sync {mask};",
        f"ld.shared.u32 {x}, [{other}];", f"bar.warp.sync {mask};",
        f"@{low} bra lower;",
        f"mul.lo.u32 {x}, {x}, 3;", f"st.shared.u32 [{mine}], {x};", "bar.warp.sync 0xffff0000;",
        f"ld.shared.u32 {x}, [{other}];", "bra joined;",
        "lower:",
        f"mul.lo.u32 {x}, {x}, 5;", f"st.shared.u32 [{mine}], {x};", "bar.warp.sync 0xffff;",
        f"ld.shared.u32 {x}, [{other}];",
        "joined:",
    ):  # fmt: skip
        kernel(line)
    kernel.store("u32", x)
    yield kernel.case(family, _columns(kernel.name, n, 0))

    # Warps that compare and swap until they succeed: the sum is the same in any order.
    kernel = Kernel("loop.cas", n)
    x, old, seen, new = kernel.load("u32"), *kernel.regs("u32", 3)
    p = kernel.reg("pred")
    kernel.declare(".shared .align 4 .b32 cell;")
    for line in (
        f"setp.eq.u32 {p}, %thread, 0;", f"@{p} st.shared.u32 [cell], 100;", "bar.sync 0;",
        f"mov.u32 {old}, 100;",
        "again:",
        f"add.u32 {new}, {old}, {x};", f"atom.shared.cas.b32 {seen}, [cell], {old}, {new};",
        f"setp.ne.u32 {p}, {seen}, {old};", f"mov.u32 {old}, {seen};", f"@{p} bra again;",
        "bar.sync 0;", f"ld.shared.u32 {x}, [cell];",
    ):  # fmt: skip
        kernel(line)
    kernel.store("u32", x)
    yield kernel.case(family, _columns(kernel.name, n, 1000))


def _between_ctas(family: str) -> Iterator[Case]:
    """The last CTA to arrive adds up what all of them left; a CTA waits for another's flag."""
    n, grid = 64, 4
    kernel = Kernel("ctas.last", n, grid, head=".global .align 4 .b32 arrived;")
    kernel.declare(".shared .align 4 .b32 last;")
    x, ticket, total, i = kernel.load("u32"), *kernel.regs("u32", 3)
    p, place = kernel.reg("pred"), kernel.room("u32", n)
    partial, pointer = kernel.room("u32", n * grid), kernel.pointer("out", 4)
    address = kernel.reg("b64")
    for line in (
        f"st.global.u32 [{pointer}+{partial}], {x};", "membar.gl;", "bar.sync 0;",
        f"setp.ne.u32 {p}, %thread, 0;", f"@{p} bra told;",
        f"atom.global.inc.u32 {ticket}, [arrived], {grid - 1};", f"st.shared.u32 [last], {ticket};",
        "told:",
        "bar.sync 0;", f"ld.shared.u32 {ticket}, [last];",
        f"setp.ne.u32 {p}, {ticket}, {grid - 1};", f"@{p} ret;", "membar.gl;",
        f"mov.u32 {total}, 0;", f"mov.u32 {i}, 0;",
        f"mad.wide.u32 {address}, %thread, 4, %out;",
        "again:",
        f"ld.global.cg.u32 {x}, [{address}+{partial}];", f"mad.lo.u32 {total}, {total}, 3, {x};",
        f"add.u64 {address}, {address}, {4 * n};",
        f"add.u32 {i}, {i}, 1;", f"setp.lt.u32 {p}, {i}, {grid};", f"@{p} bra again;",
        f"mad.wide.u32 {address}, %thread, 4, %out;",
        f"st.global.u32 [{address}+{place}], {total};",
    ):  # fmt: skip
        kernel(line)
    yield kernel.case(family, _columns(kernel.name, n * grid, 0))

    kernel = Kernel("ctas.flag", 32, 2, head=".global .align 4 .b32 flag;")
    x, seen, y = kernel.load("u32"), *kernel.regs("u32", 2)
    p, q, first = kernel.regs("pred", 3)
    place, pointer, generic = kernel.room("u32", 64), kernel.pointer("out", 4), kernel.reg("b64")
    for line in (
        f"setp.eq.u32 {first}, %id, %thread;", f"setp.eq.u32 {p}, %thread, 0;",
        f"mov.u64 {generic}, flag;",
        f"@{first} bra waiting;",
        f"st.global.u32 [{pointer}+{place}], {x};", "membar.gl;", "bar.sync 0;",
        f"@{p} st.release.gpu.global.u32 [{generic}], 1;", "ret;",
        "waiting:",
        f"@!{p} bra arrived;",
        "again:",
        f"ld.acquire.gpu.global.u32 {seen}, [{generic}];", f"setp.eq.u32 {q}, {seen}, 0;",
        f"@{q} bra again;", f"st.relaxed.gpu.global.u32 [{generic}], 0;",  # ready for a next run
        "arrived:",
        "bar.sync 0;", f"ld.relaxed.gpu.global.u32 {y}, [{pointer}+{place + 128}];",
        f"add.u32 {y}, {y}, {x};", f"st.global.u32 [{pointer}+{place}], {y};",
    ):  # fmt: skip
        kernel(line)
    yield kernel.case(family, _columns(kernel.name, 64, 0))


def _beyond() -> Iterator[Case]:
    n = 96
    kernel = Kernel("bar.red", n)
    x, found, p, q = kernel.load("u32"), kernel.reg("u32"), *kernel.regs("pred", 2)
    kernel(f"setp.gt.u32 {p}, {x}, 1;")
    kernel(f"bar.red.popc.u32 {found}, 0, {p};")
    kernel.store("u32", found)
    for op in ("and", "or"):
        kernel(f"bar.red.{op}.pred {q}, 1, {n}, !{p};")
        kernel.store("pred", q)
    yield kernel.case("beyond", _columns(kernel.name, n, 5))

    head = (
        ".func (.reg .u32 result) twisted(.reg .u32 a, .reg .u32 b)\n"
        "{\n    mad.lo.u32 result, a, 5, b;\n    ret;\n}\n"
    )
    kernel = Kernel("call", n, head=head)
    x, y, found = kernel.load("u32"), kernel.load("u32"), kernel.reg("u32")
    kernel(f"call ({found}), twisted, ({x}, {y});")
    kernel.store("u32", found)
    yield kernel.case("beyond", _columns(kernel.name, n, 0, 0))


def cases() -> Iterator[Case]:
    """Yields all cases of instructions across lanes and warps."""
    yield from warps()
    yield from control()
