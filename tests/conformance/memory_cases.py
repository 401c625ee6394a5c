"""Loads, stores and state spaces, atomics, special registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from conformance.case import CLASS, Case, Kernel, view
from conformance.values import WIDTH, Array, Random, operands


def _random(key: str, *sizes: tuple[str, int]) -> Callable[[], Sequence[Array]]:
    """Columns of random bits: (type, count) each."""

    def columns() -> list[Array]:
        random = Random(key)
        return [view(random.words(n), kind) for kind, n in sizes]

    return columns


# -- loads and stores -------------------------------------------------------------------


def loads() -> Iterator[Case]:
    """ld and st of every width and vector, through every state space and address form."""
    family = "memory"
    lanes = 64
    narrow = ("u8", "s8", "b8", "u16", "s16", "b16")
    for t in (*narrow, "u32", "s32", "b32", "f32", "u64", "s64", "b64", "f64"):
        nbytes = WIDTH[t] // 8
        # A narrow load extends to the register: by zeros, or by the sign.
        for result in ("u16", "u32", "u64") if t in narrow else (t,):
            for space in ("global", "shared"):
                kernel = Kernel(f"ld.{space}.{t}.{result}", lanes)
                at = kernel.space(lanes * nbytes)
                register = kernel.reg(result)
                pointer = kernel.pointer("in", nbytes)
                if space == "global":
                    kernel(f"ld.global.{t} {register}, [{pointer}+{at}];")
                else:
                    _through_shared(kernel, t, pointer, register)
                kernel.store(result, register)
                yield kernel.case(family, _random(kernel.name, (t, lanes)))
        # A narrow store takes the low bits.
        for source in ("b16", "b32", "b64") if t in narrow else (t,):
            kernel = Kernel(f"st.global.{t}.{source}", lanes)
            register = kernel.load(source)
            where = kernel.room(t, lanes)
            kernel(f"st.global.{t} [{kernel.pointer('out', nbytes)}+{where}], {register};")
            yield kernel.case(family, _random(kernel.name, (source, lanes)))

    for t, count in (
        *((t, n) for t in ("b8", "u8", "s8", "b16", "u16", "s16") for n in (2, 4)),
        *((t, n) for t in ("b32", "u32", "s32", "f32") for n in (2, 4)),
        *((t, 2) for t in ("b64", "u64", "s64", "f64")),
    ):
        for space in ("global", "shared"):
            yield _vector(family, space, t, count)

    for qualifier in (
        "ld.global.nc.b32", "ld.global.ca.u32", "ld.global.cg.f32", "ld.global.cs.b32",
        "ld.global.cv.u32", "ld.global.lu.b32", "ld.volatile.global.u32", "ld.weak.global.b32",
        "ld.relaxed.gpu.global.u32", "ld.acquire.sys.global.b32", "ld.global.L1::no_allocate.b32",
        "ld.global.L1::evict_last.f32", "ld.global.L2::128B.b32", "ld.b32", "ld.relaxed.cta.b32",
        "ld.global.nc.L1::no_allocate.L2::256B.b32", "ld.acquire.gpu.b32", "ld.volatile.f32",
    ):  # fmt: skip
        kernel = Kernel(qualifier, lanes)
        at, register = kernel.space(4 * lanes), kernel.reg(qualifier.rpartition(".")[2])
        pointer = kernel.pointer("in", 4)
        if "global" not in qualifier:  # a generic address
            generic = kernel.reg("b64")
            kernel(f"cvta.global.u64 {generic}, {pointer};")
            pointer = generic
        kernel(f"{qualifier} {register}, [{pointer}+{at}];")
        kernel.store(qualifier.rpartition(".")[2], register)
        yield kernel.case(family, _random(kernel.name, ("b32", lanes)))
    for qualifier in (
        "st.global.wb.u32", "st.global.cg.b32", "st.global.cs.f32", "st.global.wt.b32",
        "st.volatile.global.u32", "st.weak.global.b32", "st.relaxed.gpu.global.u32",
        "st.release.sys.global.b32", "st.global.L1::no_allocate.b32", "st.b32",
        "st.release.gpu.b32",
    ):  # fmt: skip
        kind = qualifier.rpartition(".")[2]
        kernel = Kernel(qualifier, lanes)
        register = kernel.load(kind)
        where, pointer = kernel.room(kind, lanes), kernel.pointer("out", 4)
        if "global" not in qualifier:
            generic = kernel.reg("b64")
            kernel(f"cvta.global.u64 {generic}, {pointer};")
            pointer = generic
        kernel(f"{qualifier} [{pointer}+{where}], {register};")
        yield kernel.case(family, _random(kernel.name, (kind, lanes)))

    yield from _spaces(family)
    yield from _special(family)


def _through_shared(kernel: Kernel, t: str, pointer: str, register: str) -> None:
    """Loads in reverse order what the threads put into shared memory."""
    nbytes = WIDTH[t] // 8
    kernel.declare(f".shared .align 8 .b8 tile[{nbytes * kernel.block}];")
    word, mine, other = kernel.reg(CLASS[t]), kernel.reg("b32"), kernel.reg("b32")
    raw = "u8" if nbytes == 1 else CLASS[t]
    kernel(f"ld.global.{raw} {word}, [{pointer}];")
    kernel(f"mov.u32 {mine}, tile;")
    kernel(f"mad.lo.u32 {other}, %thread, {-nbytes}, {mine};")
    kernel(f"mad.lo.u32 {mine}, %thread, {nbytes}, {mine};")
    kernel(f"st.shared.{raw} [{mine}], {word};")
    kernel("bar.sync 0;")
    kernel(f"ld.shared.{t} {register}, [{other}+{nbytes * (kernel.block - 1)}];")


def _vector(family: str, space: str, t: str, count: int) -> Case:
    lanes, size = 64, WIDTH[t] // 8
    kernel = Kernel(f"ld.st.{space}.v{count}.{t}", lanes)
    nbytes = size * count
    held = "b32" if size == 1 else t  # bytes, one to a register: also the extension is kept
    at = kernel.space(lanes * nbytes)
    where = kernel.room(t, lanes * count)
    values = kernel.regs(held, count)
    listed = "{" + ", ".join(values) + "}"
    kernel(f"ld.global.v{count}.{t} {listed}, [{kernel.pointer('in', nbytes)}+{at}];")
    if space == "shared":
        kernel.declare(f".shared .align 16 .b8 tile[{nbytes * lanes}];")
        mine, other = kernel.reg("b32"), kernel.reg("b32")
        kernel(f"mov.u32 {mine}, tile;")
        kernel(f"xor.b32 {other}, %thread, 37;")
        kernel(f"mad.lo.u32 {other}, {other}, {nbytes}, {mine};")
        kernel(f"mad.lo.u32 {mine}, %thread, {nbytes}, {mine};")
        kernel(f"st.shared.v{count}.{t} [{mine}], {listed};")
        kernel("bar.sync 0;")
        kernel(f"ld.shared.v{count}.{t} {listed}, [{other}];")
    for register in values[:1] if size == 1 else ():
        kernel.store("b32", register)
    turned = "{" + ", ".join(reversed(values)) + "}"
    kernel(f"st.global.v{count}.{t} [{kernel.pointer('out', nbytes)}+{where}], {turned};")
    return kernel.case(family, _random(kernel.name, (t, lanes * count)))


def _spaces(family: str) -> Iterator[Case]:
    """Constants, initialised globals, local and dynamic shared memory, generic addresses."""
    lanes = 64
    words = [int(w) for w in Random("constants").words(16) >> np.uint64(32)]
    head = (
        f".const .align 4 .b32 table[16] = {{{', '.join(f'{w:#x}' for w in words)}}};\n"
        f".const .align 1 .b8 bytes[16] = {{{', '.join(str(w & 255) for w in words)}}};\n"
        ".const .align 8 .f64 halves[2] = {0.5, 0d4000000000000000};\n"
        ".const .align 4 .f32 single = 0f3F800001;\n"
        f".global .align 8 .u64 wide[4] = {{1, {words[0]}, {words[1]:#x}, 0xffffffffffffffff}};\n"
        ".global .align 4 .b32 zeros[8];\n"
        ".global .align 4 .b32 some[8] = {7, 8, 9};\n"
    )
    kernel = Kernel("ld.const", lanes, head=head)
    index, address, base = kernel.reg("b32"), kernel.reg("b64"), kernel.reg("b64")
    kernel(f"and.b32 {index}, %thread, 15;")
    for name, t in (("table", "b32"), ("bytes", "s8"), ("halves", "f64")):
        size = WIDTH[t] // 8
        if name == "halves":
            kernel(f"and.b32 {index}, %thread, 1;")
        register = kernel.reg("b32" if size == 1 else t)
        kernel(f"mov.u64 {base}, {name};")
        kernel(f"mad.wide.u32 {address}, {index}, {size}, {base};")
        kernel(f"ld.const.{t} {register}, [{address}];")
        kernel.store("b32" if size == 1 else t, register)
    for text in ("table+20", "table+60"):
        register = kernel.reg("b32")
        kernel(f"ld.const.b32 {register}, [{text}];")
        kernel.store("b32", register)
    register, pair = kernel.reg("f32"), kernel.regs("b32", 4)
    kernel(f"ld.const.f32 {register}, [single];")
    kernel.store("f32", register)
    kernel(f"ld.const.b32 {pair[0]}, [table+4];")
    kernel.store("b32", pair[0])
    kernel(f"mov.u64 {base}, table;")
    kernel(f"cvta.const.u64 {base}, {base};")
    kernel(f"ld.b32 {pair[1]}, [{base}+8];")
    kernel.store("b32", pair[1])
    kernel(f"and.b32 {index}, %thread, 3;")
    register = kernel.reg("b64")
    kernel(f"mov.u64 {base}, wide;")
    kernel(f"mad.wide.u32 {address}, {index}, 8, {base};")
    kernel(f"ld.global.u64 {register}, [{address}];")
    kernel.store("b64", register)
    for text in ("zeros+28", "some+8", "some+12"):
        register = kernel.reg("b32")
        kernel(f"ld.global.b32 {register}, [{text}];")
        kernel.store("b32", register)
    yield kernel.case(family, list)

    kernel = Kernel("local", lanes)
    kernel.declare(".local .align 16 .b8 frame[64];")
    value, slot, address, base = *kernel.regs("b32", 2), *kernel.regs("b64", 2)
    kernel(f"mov.u64 {base}, frame;")
    for i in range(16):
        kernel(f"mul.lo.u32 {value}, %thread, {2 * i + 1};")
        kernel(f"st.local.b32 [{base}+{4 * i}], {value};")
    which = kernel.load("b32")
    kernel(f"and.b32 {slot}, {which}, 15;")
    kernel(f"mad.wide.u32 {address}, {slot}, 4, {base};")
    kernel(f"ld.local.b32 {value}, [{address}];")
    kernel.store("b32", value)
    kernel(f"st.local.u8 [{address}], 171;")
    kernel(f"ld.local.b32 {value}, [{address}];")
    kernel.store("b32", value)
    kernel(f"cvta.local.u64 {address}, {address};")
    kernel(f"ld.s8 {value}, [{address}];")
    kernel.store("b32", value)
    kernel(f"cvta.to.local.u64 {address}, {address};")
    kernel(f"ld.local.u16 {value}, [{address}];")
    kernel.store("b32", value)
    four = kernel.regs("b32", 4)
    kernel(f"ld.local.v4.b32 {{{', '.join(four)}}}, [frame+16];")
    for register in four:
        kernel.store("b32", register)
    yield kernel.case(family, _random("local", ("b32", lanes)))

    # Dynamic shared memory, beyond what a kernel gets without asking too.
    for nbytes in (4096, 81920):
        kernel = Kernel(
            f"shared.dynamic.{nbytes}",
            128,
            2,
            head=".extern .shared .align 16 .b8 dynamic[];",
            shared_bytes=nbytes,
        )
        value, base, mine, other = kernel.load("b32"), *kernel.regs("b32", 3)
        far = nbytes - 512
        kernel(f"mov.u32 {base}, dynamic;")
        kernel(f"mad.lo.u32 {mine}, %thread, 4, {base};")
        kernel(f"st.shared.b32 [{mine}+{far}], {value};")
        kernel("bar.sync 0;")
        kernel(f"xor.b32 {other}, %thread, 85;")
        kernel(f"mad.lo.u32 {other}, {other}, 4, {base};")
        kernel(f"ld.shared.b32 {value}, [{other}+{far}];")
        kernel.store("b32", value)
        yield kernel.case(family, _random(kernel.name, ("b32", 256)))

    kernel = Kernel("generic", lanes, head=".global .align 8 .b32 fixed[4] = {1, 2, 3, 4};")
    kernel.declare(".shared .align 8 .b32 tile[64];")
    value = kernel.load("b32")
    shared, generic, back = kernel.regs("b64", 3)
    kernel(f"mov.u64 {shared}, tile;")
    kernel(f"mad.wide.u32 {shared}, %thread, 4, {shared};")
    kernel(f"cvta.shared.u64 {generic}, {shared};")
    kernel(f"st.u32 [{generic}], {value};")
    kernel("bar.sync 0;")
    kernel(f"cvta.to.shared.u64 {back}, {generic};")
    kernel(f"xor.b64 {back}, {back}, {shared};")  # the round trip returns the address
    kernel.store("b64", back)
    first, second = kernel.regs("b32", 2)
    kernel(f"ld.shared.u32 {first}, [tile+12];")
    kernel.store("b32", first)
    kernel(f"ld.u32 {second}, [{generic}];")
    kernel.store("b32", second)
    kernel("bar.sync 0;")
    globals_ = kernel.reg("b64")
    kernel(f"mov.u64 {globals_}, fixed;")
    kernel(f"cvta.global.u64 {globals_}, {globals_};")
    two = kernel.regs("b64", 2)
    kernel(f"cvta.global.u64 {two[0]}, fixed;")
    kernel(f"sub.u64 {two[1]}, {two[0]}, {globals_};")
    kernel.store("b64", two[1])
    kernel(f"mov.u64 {two[1]}, fixed+8;")
    kernel(f"ld.global.b32 {first}, [{two[1]}];")
    kernel.store("b32", first)
    kernel(f"ld.global.b32 {first}, [{two[1]}+-4];")
    kernel.store("b32", first)
    narrow = kernel.reg("b32")
    kernel(f"{{ .reg .b64 %wide; cvta.shared.u64 %wide, tile; cvta.to.shared.u64 %wide, %wide; "
           f"cvt.u32.u64 {narrow}, %wide; }}")  # fmt: skip
    kernel(f"ld.shared.b32 {narrow}, [{narrow}+16];")
    kernel.store("b32", narrow)
    yield kernel.case(family, _random("generic", ("b32", lanes)))

    kernel = Kernel("isspacep", 32, head=".global .align 8 .b32 fixed[4];")
    kernel.declare(".shared .align 8 .b32 tile[2];")
    kernel.declare(".local .align 8 .b32 frame[2];")
    address, found = kernel.reg("b64"), kernel.reg("pred")
    for space, name in (("shared", "tile"), ("local", "frame"), ("global", "fixed")):
        kernel(f"mov.u64 {address}, {name};")
        kernel(f"cvta.{space}.u64 {address}, {address};")
        for asked in ("shared", "local", "global", "const"):
            kernel(f"isspacep.{asked} {found}, {address};")
            kernel.store("pred", found)
    yield kernel.case("beyond", list)

    # Fences and prefetches change no value.
    kernel = Kernel("fences", 64, target="sm_90a")
    kernel.declare(".shared .align 4 .b32 tile[64];")
    value, mine, other = kernel.load("b32"), *kernel.regs("b32", 2)
    kernel(f"mov.u32 {mine}, tile;")
    kernel(f"xor.b32 {other}, %thread, 63;")
    kernel(f"mad.lo.u32 {other}, {other}, 4, {mine};")
    kernel(f"mad.lo.u32 {mine}, %thread, 4, {mine};")
    kernel(f"prefetch.global.L2 [{kernel.pointer('in', 4)}];")
    kernel(f"prefetch.global.L1 [{kernel.pointer('in', 4)}];")
    kernel(f"st.shared.b32 [{mine}], {value};")
    for fence in ("membar.cta", "membar.gl", "membar.sys", "fence.acq_rel.cta", "fence.sc.gpu",
                  "fence.acq_rel.gpu", "fence.acq_rel.cluster", "fence.proxy.async",
                  "fence.proxy.async.shared::cta", "fence.proxy.async.global",
                  "fence.proxy.alias", "fence.mbarrier_init.release.cluster"):  # fmt: skip
        kernel(f"{fence};")
    kernel("bar.sync 0;")
    kernel(f"ld.shared.b32 {value}, [{other}];")
    kernel.store("b32", value)
    yield kernel.case(family, _random("fences", ("b32", 64)))


def _special(family: str) -> Iterator[Case]:
    """Yields a case that stores every special register of a thread (tid, ctaid, laneid, ...)."""
    names = ("tid.x", "tid.y", "tid.z", "ntid.x", "ntid.y", "ntid.z", "ctaid.x", "ctaid.y")
    names += ("ctaid.z", "nctaid.x", "nctaid.y", "nctaid.z", "laneid", "lanemask_eq")
    names += ("lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt")
    kernel = Kernel("special", 96, 3)
    for name in names:
        register = kernel.reg("b32")
        kernel(f"mov.u32 {register}, %{name};")
        kernel.store("b32", register)
    kernel.store("b32", "%n")
    narrow = kernel.reg("b16")
    kernel(f"cvt.u16.u32 {narrow}, %tid.x;")
    kernel.store("b16", narrow)
    total = kernel.reg("b32")
    kernel(f"mov.u32 {total}, %ntid.x;")
    kernel(f"add.u32 {total}, {total}, %id;")
    kernel.store("b32", total)
    yield kernel.case(family, list)


# -- atomics ------------------------------------------------------------------------


def atomics() -> Iterator[Case]:
    """atom and red: each thread at an address of its own, and all threads at a few addresses."""
    family = "atomic"
    operations = [
        *(("add", t) for t in ("u32", "s32", "u64", "f32", "f64")),
        *((op, t) for op in ("min", "max") for t in ("u32", "s32", "u64", "s64")),
        *((op, t) for op in ("and", "or", "xor", "exch") for t in ("b32", "b64")),
        ("inc", "u32"),
        ("dec", "u32"),
        ("cas", "b32"),
        ("cas", "b64"),
        ("cas", "b16"),
    ]
    for space in ("global", "shared", "generic"):
        for op, t in operations:
            if space == "generic" and t in ("s64", "u64", "b64", "f64"):
                continue
            yield _own_address("beyond" if t == "b16" else family, "atom", op, t, space)
    for op, t in operations:
        if op not in ("cas", "exch"):
            yield _own_address(family, "red", op, t, "global")
            if t in ("u32", "s32", "b32"):
                yield _own_address(family, "red", op, t, "shared")
    for qualifier in (".relaxed.cta", ".acquire.gpu", ".release.sys", ".acq_rel.gpu"):
        yield _own_address(family, "atom", "add", "u32", "global", qualifier)
        yield _own_address(family, "atom", "exch", "b32", "shared", qualifier)
    yield _own_address(family, "red", "add", "f32", "global", ".relaxed.gpu")

    # Many threads, few addresses; only results that no order can change.
    for op, t in (("add", "u32"), ("add", "u64"), ("min", "s32"), ("max", "u32"), ("and", "b32"),
                  ("or", "b32"), ("xor", "b32"), ("xor", "b64"), ("max", "s64"),
                  ("min", "u64")):  # fmt: skip
        for space in ("global", "shared"):
            yield _few_addresses(family, op, t, space)
    yield from _counters(family)
    for op, t, target in (
        ("add.noftz", "f16", "sm_80"),
        ("add.noftz", "f16x2", "sm_80"),
        ("add.noftz", "bf16", "sm_90a"),
        ("add.noftz", "bf16x2", "sm_90a"),
    ):
        yield _own_address("beyond", "atom", op, t, "global", target=target)


def _own_address(
    family: str,
    what: str,
    op: str,
    t: str,
    space: str,
    qualifier: str = "",
    target: str = "sm_80",
) -> Case:
    lanes = 192 if t in ("f32", "f64", "f16", "bf16", "f16x2", "bf16x2") else 96
    state = "" if space == "generic" else f".{space}"
    name = f"{what}{qualifier}{state}.{op}.{t}"
    kernel = Kernel(name, lanes, target=target)
    size = WIDTH[t] // 8
    start, value = kernel.load(t), kernel.load(t)
    other = kernel.load(t) if op == "cas" else ""
    if space == "shared":
        kernel.declare(f".shared .align 8 .b8 cells[{size * lanes}];")
        address = kernel.reg("b32")
        kernel(f"mov.u32 {address}, cells;")
        kernel(f"mad.lo.u32 {address}, %thread, {size}, {address};")
        where = f"[{address}]"
        access = "shared"
    else:
        place = kernel.room(t, lanes)
        pointer = kernel.pointer("out", size)
        access = "global"
        if space == "generic":
            generic = kernel.reg("b64")
            kernel(f"cvta.global.u64 {generic}, {pointer};")
            pointer = generic
            access = ""
        where = f"[{pointer}+{place}]"
    state_access = f".{access}" if access else ""
    kernel(f"st{state_access}.{CLASS[t]} {where}, {start};")
    more = f", {other}" if other else ""
    if what == "atom":
        old = kernel.reg(t)
        kernel(f"{name} {old}, {where}, {value}{more};")
        kernel.store(t, old)
    else:
        kernel(f"{name} {where}, {value};")
    after = kernel.reg(t)
    kernel(f"ld{state_access}.{CLASS[t]} {after}, {where};")
    kernel.store(t, after)

    def columns() -> Sequence[Array]:
        found = operands((t,) * (3 if op == "cas" else 2), lanes, name)
        if op == "cas":  # half of the comparisons hold
            found[1] = np.where(np.arange(lanes) % 2 == 0, found[0], found[1])
        return found

    return kernel.case(family, columns)


def _few_addresses(family: str, op: str, t: str, space: str) -> Case:
    block, cells, size = 128, 8, WIDTH[t] // 8
    grid = 1 if space == "shared" else 4
    name = f"red.{space}.{op}.{t}.few"
    kernel = Kernel(name, block, grid)
    value, short = kernel.load(t), kernel.reg("b32")
    kernel(f"cvt.u32.u{8 * size} {short}, {value};")
    kernel(f"and.b32 {short}, {short}, {cells - 1};")
    if space == "global":  # onto what the result memory holds already
        address, place = kernel.reg("b64"), kernel.room(t, cells)
        kernel(f"mad.wide.u32 {address}, {short}, {size}, %out;")
        kernel(f"red.global.{op}.{t} [{address}+{place}], {value};")
        return kernel.case(family, lambda: operands((t,), block * grid, name))
    kernel.declare(f".shared .align 8 .b8 cells[{size * cells}];")
    base, mine, inside = kernel.reg("b32"), kernel.reg("b32"), kernel.reg("pred")
    kernel(f"mov.u32 {base}, cells;")
    kernel(f"mad.lo.u32 {mine}, %thread, {size}, {base};")
    kernel(f"setp.lt.u32 {inside}, %thread, {cells};")
    kernel(f"@{inside} st.shared.{CLASS[t]} [{mine}], {value};")
    kernel("bar.sync 0;")
    kernel(f"mad.lo.u32 {short}, {short}, {size}, {base};")
    kernel(f"red.shared.{op}.{t} [{short}], {value};")
    kernel("bar.sync 0;")
    place, result = kernel.room(t, cells), kernel.reg(t)
    pointer = kernel.pointer("out", size)
    kernel(f"@{inside} ld.shared.{CLASS[t]} {result}, [{mine}];")
    kernel(f"@{inside} st.global.{CLASS[t]} [{pointer}+{place}], {result};")
    return kernel.case(family, lambda: operands((t,), block * grid, name))


def _counters(family: str) -> Iterator[Case]:
    """Tickets: the sum and the xor of what atom returned are the same in any order."""
    kernel = Kernel("atom.shared.tickets", 128)
    kernel.declare(".shared .align 4 .b32 cells[4];")
    first, ticket = kernel.reg("pred"), kernel.reg("b32")
    kernel(f"setp.eq.u32 {first}, %thread, 0;")
    for at in (0, 4, 8, 12):
        kernel(f"@{first} st.shared.b32 [cells+{at}], 0;")
    kernel("bar.sync 0;")
    kernel(f"atom.shared.add.u32 {ticket}, [cells], 3;")
    kernel(f"red.shared.add.u32 [cells+4], {ticket};")
    kernel(f"red.shared.xor.b32 [cells+8], {ticket};")
    kernel("red.shared.inc.u32 [cells+12], 100;")
    kernel("bar.sync 0;")
    for at in (0, 4, 8, 12):
        value = kernel.reg("b32")
        kernel(f"ld.shared.b32 {value}, [cells+{at}];")
        kernel.store("b32", value)
    yield kernel.case(family, list)


def cases() -> Iterator[Case]:
    """Yields all cases of memory instructions."""
    yield from loads()
    yield from atomics()
