"""wgmma: the layouts of its descriptors, and its arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from conformance.case import Case, Kernel, view
from conformance.matrix_cases import KINDS, fragments, matrices
from conformance.values import Array, Random, bits_of

A_BYTES, B_BYTES = 8192, 32768
THREADS = 128


class Layout:
    """Layout of a wgmma operand in shared memory: swizzle in bytes (0: none), K-major or MN-major.

    ``leading`` and ``stride`` are the byte offsets of the descriptor, ``step`` what leads from
    one 16-deep step to the next (PTX ISA, asynchronous warpgroup level matrix shared memory
    layout; canonical layouts).
    """

    def __init__(self, extent: int, swizzle: int, transposed: bool) -> None:
        self.swizzle, self.transposed = swizzle, transposed
        if transposed:  # atoms of (swizzle / 2) along M or N, by 8 along K
            atom = 8 * max(swizzle, 16)
            if swizzle:
                self.leading, self.stride = 2 * atom, atom
            else:
                self.leading, self.stride = extent // 8 * atom, atom
            self.step = extent * 32
        elif swizzle:  # rows of `swizzle` bytes along K
            self.leading, self.stride = 16, 8 * swizzle
            self.step = 32 if swizzle > 32 else extent * 32
        else:  # cores of 8 rows of 16 bytes
            self.leading, self.stride = 128, 256
            self.step = extent * 32

    @property
    def descriptor(self) -> int:
        """The descriptor of an operand at address 0."""
        mode = {0: 0, 128: 1, 64: 2, 32: 3}[self.swizzle]
        return self.leading >> 4 << 16 | self.stride >> 4 << 32 | mode << 62


def _descriptor(kernel: Kernel, address: str, offset: int, layout: Layout) -> str:
    """A register with the descriptor of what lies ``offset`` bytes behind ``address``."""
    narrow, found = kernel.reg("u32"), kernel.reg("b64")
    kernel(f"add.u32 {narrow}, {address}, {offset};")
    kernel(f"and.b32 {narrow}, {narrow}, 0x3ffff;")
    kernel(f"shr.u32 {narrow}, {narrow}, 4;")
    kernel(f"cvt.u64.u32 {found}, {narrow};")
    kernel(f"or.b64 {found}, {found}, {layout.descriptor:#x};")
    return found


def _case(
    name: str,
    t: str,
    n: int,
    a: Layout,
    b: Layout,
    tile: Callable[[], Array],
    *,
    steps: int = 1,
    sums: Callable[[], Sequence[Array]] | None = None,
    registers: Callable[[], Sequence[Array]] | None = None,
    negate: tuple[int, int] = (1, 1),
    narrow: bool = False,
    family: str = "wgmma",
) -> Case:
    """Returns a case of one product, or of a chain of ``steps``: D[64, n] += A[64, 16] · B[16, n].

    ``tile`` makes the shared memory (u16), ``sums`` the accumulators (else they start from
    zero by scale-d), ``registers`` A, if it comes from registers. ``narrow``: f16 sums.
    Of bytes (``t`` is s8 or u8), 32 are a step.
    """
    eight = t in ("s8", "u8")
    kernel = Kernel(name, THREADS, target="sm_90a")
    total = A_BYTES + B_BYTES
    at = kernel.space(total)
    kernel.declare(f".shared .align 1024 .b8 tile[{total}];")
    base, mine, four = kernel.reg("u32"), kernel.reg("u32"), kernel.regs("b32", 4)
    listed = ", ".join(four)
    kernel(f"mov.u32 {base}, tile;")
    kernel(f"mad.lo.u32 {mine}, %thread, 16, {base};")
    for offset in range(0, total, 16 * THREADS):
        where = f"{kernel.pointer('in', 16)}+{at + offset}"
        kernel(f"ld.global.v4.b32 {{{listed}}}, [{where}];")
        kernel(f"st.shared.v4.b32 [{mine}+{offset}], {{{listed}}};")
    kind, count = ("b32", n // 4) if narrow else ("b32" if eight else "f32", n // 2)
    found = [kernel.load(kind) if sums else kernel.reg(kind) for _ in range(count)]
    if not sums:  # scale-d says that these do not count
        for register in found:
            kernel(f"mov.{kind} {register}, {'0f7FC00000' if kind == 'f32' else '0x7e007e00'};")
    left = [kernel.load("b32") for _ in range(4)] if registers else []
    kernel("fence.proxy.async.shared::cta;")
    kernel("bar.sync 0;")
    keep, always = kernel.regs("pred", 2)
    kernel(f"setp.ne.u32 {keep}, %n, {0 if sums else THREADS};")
    kernel(f"setp.eq.u32 {always}, %n, {THREADS};")
    pairs = []
    for step in range(steps):
        first = f"{{{', '.join(left)}}}" if left else _descriptor(kernel, base, step * a.step, a)
        pairs.append((first, _descriptor(kernel, base, A_BYTES + step * b.step, b)))
    kernel("wgmma.fence.sync.aligned;")
    results = "{" + ", ".join(found) + "}"
    shape = f"m64n{n}k16.{'f16' if narrow else 'f32'}.{t}.{t}"
    if eight:
        shape = f"m64n{n}k32.s32.{t}.{t}"
    for step, (first, second) in enumerate(pairs):
        turned = f"{int(b.transposed)}" if left else f"{int(a.transposed)}, {int(b.transposed)}"
        modes = "" if eight else f", {negate[0]}, {negate[1]}, {turned}"
        kernel(
            f"wgmma.mma_async.sync.aligned.{shape} {results}, {first}, {second}, "
            f"{always if step else keep}{modes};"
        )
    kernel("wgmma.commit_group.sync.aligned;")
    kernel("wgmma.wait_group.sync.aligned 0;")
    place = kernel.room("f16x2" if narrow else kind, THREADS * count)
    pointer = kernel.pointer("out", 4)
    for i, register in enumerate(found):
        kernel(f"st.global.{kind} [{pointer}+{place + 4 * THREADS * i}], {register};")

    def columns() -> list[Array]:
        return [tile(), *(sums() if sums else ()), *(registers() if registers else ())]

    return kernel.case(family, columns)


def _integers(key: str, t: str) -> Callable[[], Array]:
    """Shared memory full of small integers: their sums are exact and tell where they came from."""

    def tile() -> Array:
        table = [bits_of(float(v), t) for v in range(-2, 3)]
        return view(Random(key).pick(table, (A_BYTES + B_BYTES) // 2), "u16")

    return tile


def _mixed(key: str, t: str) -> Callable[[], Array]:
    """Shared memory full of numbers of which a sum keeps some bits only."""

    def tile() -> Array:
        rows, columns, _ = matrices("wide", t, Random(key), 40)
        drawn = np.concatenate([rows.reshape(-1), columns.reshape(-1), rows.reshape(-1)])
        return view(drawn[: (A_BYTES + B_BYTES) // 2], "u16")

    return tile


def _fits(n: int, swizzle: int, transposed: bool) -> bool:
    """Whether whole atoms of the layout cover ``n``."""
    return not transposed or n % max(swizzle // 2, 8) == 0


def layouts() -> Iterator[Case]:
    """All swizzles and both majors of A and B, all kinds of n."""
    for t in ("bf16", "f16"):
        for swizzle in (0, 32, 64, 128):
            for ta in (False, True):
                for tb in (False, True):
                    n = 64 if t == "bf16" else 128 if swizzle == 128 and tb else 32
                    if not _fits(n, swizzle, tb):
                        n = 64
                    name = f"wgmma.{t}.n{n}.swizzle{swizzle}.{'mk'[not ta]}{'nk'[not tb]}"
                    layout = Layout(64, swizzle, ta), Layout(n, swizzle, tb)
                    yield _case(name, t, n, *layout, _integers(name, t))
    for n in (8, 16, 24, 40, 96, 192, 256):
        for swizzle, tb in ((128, False), (64, True), (32, True), (0, False), (128, True)):
            if not _fits(n, swizzle, tb) or (n > 96 and swizzle != 128):
                continue
            name = f"wgmma.bf16.n{n}.swizzle{swizzle}.k{'nk'[not tb]}"
            layout = Layout(64, 128, False), Layout(n, swizzle, tb)
            yield _case(name, "bf16", n, *layout, _integers(name, "bf16"))
    # Swizzles of A and B need not be the same.
    layout = Layout(64, 32, True), Layout(64, 128, False)
    yield _case("wgmma.f16.mixed", "f16", 64, *layout, _integers("mixed", "f16"))


def arithmetic() -> Iterator[Case]:
    """Steps and chains; scale-d, signs, A from registers, f16 sums."""
    for t in ("bf16", "f16"):
        for swizzle, steps in ((128, 4), (64, 2)):
            name = f"wgmma.{t}.chain.swizzle{swizzle}"
            layout = Layout(64, swizzle, False), Layout(32, swizzle, False)
            yield _case(name, t, 32, *layout, _mixed(name, t), steps=steps)
        name = f"wgmma.{t}.chain.transposed"
        layout = Layout(64, 128, True), Layout(64, 128, True)
        yield _case(name, t, 64, *layout, _integers(name, t), steps=3)

        for kind in KINDS:
            # Four blocks of 16 rows of A; two of them meet the 8 columns of B made for them.
            name = f"wgmma.{t}.{kind}"

            def drawn(t: str = t, kind: str = kind) -> tuple[Array, Array, Array]:
                a, b, c = matrices(kind, t, Random(f"wgmma {t} {kind}"), 4)
                more = matrices(kind, t, Random(f"wgmma sums {t} {kind}"), 4)[2]
                return a, b[:2], np.concatenate([c, more])

            def tile(drawn: Callable[[], tuple[Array, Array, Array]] = drawn) -> Array:
                a, b, _ = drawn()
                found = np.zeros((A_BYTES + B_BYTES) // 2, np.uint64)
                _place(found, a.reshape(64, 16))
                _place(found[A_BYTES // 2 :], b.transpose(0, 2, 1).reshape(16, 16))
                return view(found, "u16")

            def sums(drawn: Callable[[], tuple[Array, Array, Array]] = drawn) -> list[Array]:
                return [view(c, "b32") for c in drawn()[2].reshape(8, THREADS)]

            layout = Layout(64, 0, False), Layout(16, 0, False)
            yield _case(name, t, 16, *layout, tile, sums=sums)

        def left(t: str = t) -> list[Array]:
            return fragments(*matrices("wide", t, Random(f"wgmma left {t}"), 4))[:4]

        for tb in (False, True):
            name = f"wgmma.{t}.registers.{'nk'[not tb]}"
            layout = Layout(64, 0, False), Layout(64, 128, tb)
            yield _case(name, t, 64, *layout, _mixed(name, t), registers=left)

        def start(t: str = t) -> list[Array]:
            random = Random(f"wgmma start {t}")
            table = [bits_of(v / 4, "f32") for v in range(-40, 40)]
            return [view(random.pick(table, THREADS), "b32") for _ in range(8)]

        for negate in ((-1, 1), (1, -1), (-1, -1)):
            name = f"wgmma.{t}.negate{negate[0]:+}{negate[1]:+}"
            layout = Layout(64, 128, False), Layout(16, 128, False)
            yield _case(name, t, 16, *layout, _mixed(name, t), sums=start, negate=negate)
    layout = Layout(64, 128, False), Layout(32, 128, False)
    yield _case(
        "wgmma.f16.f16", "f16", 32, *layout, _mixed("narrow", "f16"), narrow=True, family="beyond"
    )


def eights() -> Iterator[Case]:
    """Integers of 8 bits: types, layouts, chains, sums that wrap, A from registers."""

    def tile(key: str, small: bool = False) -> Callable[[], Array]:
        def made() -> Array:
            count = A_BYTES + B_BYTES
            drawn = Random(key).pick([254, 255, 0, 1, 2] if small else [*range(256)], count)
            return view(drawn[::2] | drawn[1::2] << np.uint64(8), "u16")

        return made

    def words(key: str, count: int) -> Callable[[], list[Array]]:
        def made() -> list[Array]:
            random = Random(key)
            return [view(random.below(1 << 32, THREADS), "b32") for _ in range(count)]

        return made

    swizzled = Layout(64, 128, False), Layout(8, 128, False)
    for t in ("s8", "u8"):
        name = f"wgmma.{t}"
        yield _case(name, t, 8, *swizzled, tile(name))
    for n, swizzle in ((24, 0), (16, 32), (48, 64), (32, 128)):
        name = f"wgmma.s8.n{n}.swizzle{swizzle}"
        layout = Layout(64, swizzle, False), Layout(n, swizzle, False)
        yield _case(name, "s8", n, *layout, tile(name, small=True))
    name = "wgmma.u8.chain"
    yield _case(name, "u8", 8, *swizzled, tile(name), steps=4)
    name = "wgmma.s8.wraps"
    yield _case(name, "s8", 8, *swizzled, tile(name), sums=words(name, 4))
    name = "wgmma.s8.registers"
    yield _case(name, "s8", 8, *swizzled, tile(name), registers=words(name, 4))


def _place(memory: Array, rows: Array) -> None:
    """Puts rows of 16 into the K-major layout without swizzle."""
    row, k = np.indices(rows.shape)
    memory[row // 8 * 128 + k // 8 * 64 + row % 8 * 8 + k % 8] = rows


def cases() -> Iterator[Case]:
    """Yields all cases of wgmma."""
    yield from layouts()
    yield from arithmetic()
    yield from eights()
