"""Masks of booleans by Hopper's kernels that leave blocks out: maps of masks, and the oracle's
bits."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from attention_cases import BF16, draw, ints, mask_of, numbers
from bits import same_bits
from interp_launch import Matrix

import ptxgen
from ptxgen import reference
from ptxgen.build.compile import compile_cubin, compile_ptx
from ptxgen.build.render import render
from ptxgen.build.targets import portable_target
from ptxgen.dispatch import choose
from ptxgen.errors import OptionError
from ptxgen.program.launch import parameters
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec import Step
from ptxgen.spec.attention import LISTED, Form, MaskedSpec
from ptxgen.spec.attention_mask import CHUNK, CHUNKS_MAX, GROUPED, QUERIES, MaskSpec
from ptxgen.tiles import SPECS, TABLES
from ptxgen.tiles.attention_grad import KERNELS

LONG = pytest.mark.long
KINDS = ("causal", "left", "right", "packed", "chunks", "prefix", "sparse", "late", "none", "all")
SHORT = ("left", "packed", "sparse", "late")
"""Kinds of masks that have words of all sorts: zero, full, and mixed; the others are long tests."""
OF_KINDS = [pytest.param(kind, marks=() if kind in SHORT else LONG) for kind in KINDS]


def mask(kind, seqs, heads, queries, keys, seed=3):
    """Returns a mask of a kind that broadcasts to [seqs, heads, queries, keys]."""
    rng = np.random.default_rng(seed)
    at, key = np.arange(queries)[:, None] + (keys - queries), np.arange(keys)[None]
    causal = at >= key
    if kind == "causal":
        return causal
    if kind in ("left", "right"):
        ends = rng.integers(1, keys, (seqs, 1, 1, 1))
        return key >= ends if kind == "left" else key < ends
    if kind == "packed":
        of = np.sort(rng.integers(0, 4, (seqs, 1, keys)), -1)
        return causal & (of[..., keys - queries :, None] == of[..., None, :])
    if kind == "chunks":
        return causal & (at // 70 == key // 70)
    if kind == "prefix":
        return (causal | (key < 40))[None, None]
    if kind == "sparse":
        found = rng.random((seqs, heads, queries, keys)) < 0.1
        found[..., queries // 3, :] = found[0, ..., : queries // 2, : keys // 2] = False
        found[..., 130:] = found[..., 20:30, 5:] = False
        return found
    if kind == "late":
        return (np.arange(queries)[:, None] >= 20) | (rng.random((queries, keys)) < 0.5)
    return np.broadcast_to(np.array(kind == "all"), (queries, keys))


# -- maps ---------------------------------------------------------------------------------------
def expected(seen):
    """Returns the maps of a boolean [maps, rows, keys]: bits of each row, and whether some and all
    rows of a block see keys.
    """
    maps, rows, keys = seen.shape
    chunks, tiles = -(-keys // CHUNK), -(-rows // QUERIES)
    wide = np.zeros((maps, tiles * QUERIES, chunks * CHUNK), bool)
    wide[:, :rows, :keys] = seen
    bits = np.packbits(wide, -1, "little").view("u4")
    there = np.arange(tiles * QUERIES) < rows
    groups = wide.reshape(maps, tiles, QUERIES, chunks, CHUNK // GROUPED, GROUPED)
    of_all = groups.all(-1) | ~there.reshape(1, tiles, QUERIES, 1, 1)
    found = np.stack([groups.any(-1).any(2), of_all.all(2)], -2)
    return bits[:, there], np.packbits(found, -1, "little").view("u4")[..., 0]


SHAPES = [
    *[((1, 1, 40, 300), (1, 1, 40, 304), 0), ((2, 3, 33, 64), (2, 3, 33, 64), 0)],
    *[((2, 1, 1, 1100), (2, 1, 1, 1104), 3), ((1, 1, 70, 1024), (1, 1, 70, 1040), 0)],
]
"""Shapes of a mask and of the memory that it lies in, and its offset in elements."""


@pytest.mark.parametrize(("shape", "room", "offset"), SHAPES)
@pytest.mark.parametrize("starts", [None, (5, 40)])
def test_maps(shape, room, offset, starts):
    """Maps have the expected bits of rows and words of blocks, for contiguous and strided keys."""
    spec, device = MaskSpec(), CpuDevice()
    image = compile_ptx(render(spec), name=spec.name, arch=portable_target(spec)).image
    function = device.kernel(spec.name, lambda _: image, spec.shared_bytes)
    seqs, heads, rows, keys = shape
    given = mask_of(*shape) * np.random.default_rng(1).integers(0, 256, shape, "u1")
    given[..., 64:96] = 0
    given[..., 32:64] = 7
    for turned in (False, True):
        flat = Matrix(device.memory, "mask", (1, int(np.prod(room)) + offset), dtype="u1")
        lies = flat.values[0, offset:].reshape(room[:2] + (room[2:][::-1] if turned else room[2:]))
        lies = lies.swapaxes(2, 3) if turned else lies
        flat.allocation.written[:] = 1
        lies[..., :rows, :keys] = given
        batches = 2 if starts else seqs
        maps, chunks = batches * heads * -(-rows // QUERIES), -(-keys // CHUNK)
        bits = Matrix(device.memory, "bits", (maps * QUERIES, chunks * 32), dtype="u4")
        blocks = Matrix(device.memory, "blocks", (maps, chunks * 2), dtype="u4")
        fired = {"mask": flat.ptr + offset, "mask_bits": bits.ptr, "mask_blocks": blocks.ptr}
        first = np.zeros(batches, int)
        if starts:
            begins = Matrix(device.memory, "starts", (1, 2), ints(*starts)[None], dtype="i4")
            fired["starts"], first = begins.ptr, starts
        along = ("mask_batch", "mask_head", "mask_row", "mask_key")
        steps = [s if n > 1 else 0 for s, n in zip(lies.strides, shape, strict=True)]
        values = dict(zip(along, steps, strict=True)) | {"heads": heads, "group": 1}
        values |= {"queries": rows, "total_k": keys}
        prepared = device.prepare(
            function, (maps * chunks, 1, 1), (spec.threads, 1, 1),
            parameters(Step(spec), tuple(fired), values), len(fired), "maps", False,
        )  # fmt: skip
        prepared.fire(0, *fired.values())
        moved = np.zeros((batches, heads, rows, keys), bool)
        for i, begin in enumerate(first):
            moved[i, ..., : keys - begin] = given[i % seqs, ..., begin:] != 0
        words, found = expected(moved.reshape(-1, rows, keys))
        got = bits.values.reshape(batches * heads, -1, chunks * 32)
        assert (got[:, :rows] == words).all()
        assert (blocks.values.reshape(batches * heads, -1, chunks, 2) == found).all()


# -- attention ----------------------------------------------------------------------------------
@functools.cache
def device():
    """Hopper, of few SMs, so that CTAs have several tiles."""
    made = CpuDevice()
    made.compute, made.sms = (9, 0), 2
    return made


def route_of(warps, head, dtype="bf16", part="whole"):
    routes = (r for r in TABLES["attention", "half"].routes if isinstance(r.main, MaskedSpec))
    route = next(r for r in routes if (r.main.warps, r.main.part) == (warps, part))
    return route.of(Form(dtype, head, head))


def kernel_of(*which, **how):
    return route_of(*which, **how).name


def check(q, k, v, kernel, **how):
    found = ptxgen.attention(q, k, v, return_lse=True, kernel=kernel, **how)
    for x, y in zip(found, reference.attention(q, k, v, return_lse=True, **how), strict=True):
        same_bits(x, y, what=f"{kernel} {[*how]}")


@pytest.mark.parametrize(
    ("warps", "head", "heads"),
    [
        (8, 64, (3, 1)),
        *(pytest.param(*c, marks=LONG) for c in ((12, 64, (4, 1)), (8, 128, (3, 3)))),
        pytest.param(4, 128, (2, 2), marks=LONG),
    ],
)
@pytest.mark.parametrize("kind", OF_KINDS)
def test_forward(kind, warps, head, heads):
    """NaN and infinite keys and values change only rows that see them."""
    (own, shared), (queries, keys) = heads, (70, 230)
    q, k, v = draw(1, (2, own, queries, head), (2, shared, keys, head), (2, shared, keys, head))
    seen, sinks = mask(kind, 2, own, queries, keys), numbers(own)
    v[0, 0, 200], v[1, 0, 30, 3], k[0, 0, 220, 1] = np.nan, np.inf, np.nan
    with ptxgen.use_device(device()):
        check(q, k, v, kernel_of(warps, head), mask=seen, sinks=sinks)


@pytest.mark.parametrize("warps", [8, pytest.param(4, marks=LONG)])
def test_with_what_narrows(warps):
    """Causal, windows, lengths, sequences that begin at other keys than the mask, and float16."""
    q, k, v = draw(2, (2, 2, 90, 64), (2, 1, 300, 64), (2, 1, 300, 64), dtype=np.float16)
    holes = mask("sparse", 2, 1, 1, 300)[:, :, :1] | (np.arange(300) < 128)
    kernel = kernel_of(warps, 64, "f16")
    for how in (
        {"causal": True, "mask": mask("chunks", 2, 2, 90, 300)},
        {"window": 100, "mask": mask("left", 2, 2, 90, 300)},
        {"mask": holes, "lengths": ints(290, 100), "starts": ints(3, 100), "causal": True},
        {"mask": mask("sparse", 2, 2, 90, 300), "query_lengths": ints(70, 0)},
        {"mask": np.asfortranarray(mask("packed", 2, 2, 90, 300)), "starts": ints(0, 7)},
    ):
        with ptxgen.use_device(device()):
            check(q, k, v, kernel, **how)


@pytest.mark.parametrize(
    ("warps", "part", "head"),
    [
        *((8, "whole", 64), (4, "whole", 128), (4, "split", 64)),
        *(pytest.param(*c, marks=LONG) for c in ((8, "split", 64), (8, "whole", 192))),
    ],
)
def test_splits_that_a_mask_leaves_out(warps, part, head):
    """Splits seen by no row, by some rows and by other rows alone have the oracle's bits."""
    keys = 3300
    q, k, v = draw(3, (1, 1, 70, head), (1, 1, keys, head), (1, 1, keys, head))
    seen = np.zeros((70, keys), bool)
    seen[:40, :100] = seen[10:, 2300:2400] = seen[5, 1023:1025] = True
    seen[60:, 3250:] = True
    v[0, 0, 50] = np.nan
    with ptxgen.use_device(device()):
        check(q, k, v, kernel_of(warps, head, part=part), mask=seen)


# -- gradients ----------------------------------------------------------------------------------
def gradients(do, q, k, v, warps, **how):
    """Computes gradients by kernels of ``warps`` warps that read maps, where there are such."""
    dtype = {"bfloat16": "bf16", "float16": "f16"}[q.dtype.name]
    form = Form(dtype, q.shape[-1], v.shape[-1])
    given = do, q, k, v, *reference.attention(q, k, v, return_lse=True, **how)
    expected = dict(zip(("dq", "dk", "dv"), reference.attention_grad(*given, **how), strict=True))
    for part, names in zip(KERNELS, (("dq",), ("dk", "dv")), strict=True):
        routes = (r for r in TABLES["attention_grad", part, "half"].routes if r.main.mapped)
        wide = part == "dkdv" and sum(x.shape[-1] for x in (q, v)) > sum(LISTED)
        fits = (r.of(form) for r in routes if (len(r.main.each) > 1) == wide)
        kernel = next((r for r in fits if r.main.warps == warps), None)
        if kernel is None:
            continue
        found = ptxgen.attention_grad(*given, **how, kernel=kernel.name)
        for name, x in zip(("dq", "dk", "dv"), found, strict=True):
            if name in names:
                same_bits(x, expected[name], what=f"{kernel.name} {name} {[*how]}")


def drawn(seed, seqs, heads, queries, keys, head, dtype=BF16):
    own, shared = heads
    of_rows, of_keys = (seqs, own, queries, head), (seqs, shared, keys, head)
    return draw(seed, of_rows, of_rows, of_keys, of_keys, dtype=dtype)


MORE = (12, 64, (4, 1)), (8, 128, (6, 1)), (4, 128, (2, 2)), (4, 192, (2, 1))
"""Warps, head sizes and heads in `make check`, which kinds of masks take by turns."""


@pytest.mark.parametrize(
    ("kind", "warps", "head", "heads"),
    [
        *(pytest.param(k, 8, 64, (3, 1), marks=() if k in SHORT[:2] else LONG) for k in KINDS),
        *(pytest.param(kind, *MORE[i % len(MORE)], marks=LONG) for i, kind in enumerate(KINDS)),
    ],
)
def test_gradients(kind, warps, head, heads):
    """NaN in queries, gradients, keys and values reaches only gradients of pairs that see each
    other.
    """
    queries, keys = 70, 230
    do, q, k, v = drawn(5, 2, heads, queries, keys, head)
    v[0, 0, 200], k[0, 0, 220, 1], q[1, 0, 40, 2], do[1, 0, 7, 3] = np.nan, np.inf, np.nan, np.inf
    with ptxgen.use_device(device()):
        gradients(do, q, k, v, warps, mask=mask(kind, 2, heads[0], queries, keys))


@pytest.mark.parametrize("warps", [8, pytest.param(4, marks=LONG)])
def test_gradients_with_what_narrows(warps):
    """Causal, windows, lengths, sequences that begin at other keys than the mask, and float16."""
    given = drawn(6, 2, (2, 1), 90, 300, 64, np.float16)
    holes = mask("sparse", 2, 1, 1, 300)[:, :, :1] | (np.arange(300) < 128)
    for how in (
        {"causal": True, "mask": mask("chunks", 2, 2, 90, 300)},
        {"window": 100, "mask": mask("left", 2, 2, 90, 300)},
        {"mask": holes, "lengths": ints(290, 100), "starts": ints(3, 100), "causal": True},
        {"mask": mask("sparse", 2, 2, 90, 300), "query_lengths": ints(70, 0)},
    ):
        with ptxgen.use_device(device()):
            gradients(*given, warps, **how)


@pytest.mark.parametrize("warps", [4, pytest.param(8, marks=LONG)])
def test_gradients_of_more_than_a_chunk(warps):
    """A block of keys on both sides of where a word of a map ends, seen behind that alone."""
    seen = mask("sparse", 1, 1, 70, 1150)[0, 0] | (np.arange(1150) > 1030)
    seen[:, 200:1030] = False
    with ptxgen.use_device(device()):
        gradients(*drawn(7, 1, (1, 1), 70, 1150, 128), warps, mask=seen)


def test_which_kernel():
    """Masks are mapped on Hopper, up to as many keys as there is room for words of."""
    sizes = {"ROWS": 4096, "RAGGED": 1, "PAIRS": 32, "KEYS": 4096, "DEPTH": 128, "WIDTH": 128}
    for maps, keys, mapped in ((0, 4096, False), (128, 4096, True), (1, CHUNK * CHUNKS_MAX, True),
                               (1, CHUNK * CHUNKS_MAX + 1, False)):  # fmt: skip
        values = sizes | {"KEYS": keys, "PAGED": 0, "MAPS": maps}
        chosen = choose(("attention", "half"), values, arch="sm_90", sms=132).kernels
        assert any(isinstance(SPECS[name], MaskedSpec) for name in chosen) == mapped
    q, k, v = draw(4, (1, 1, 70, 64), (1, 1, 90, 64), (1, 1, 90, 64))
    with ptxgen.use_device(device()), pytest.raises(OptionError, match="MAPS"):
        ptxgen.attention(q, k, v, kernel=kernel_of(8, 64))


def routes():
    """Every route that reads a map, of heads that its main kernel has registers for."""
    for key in (("attention", "half"), *(("attention_grad", x, "half") for x in KERNELS)):
        for main in (r.main for r in TABLES[key].routes if r.main.mapped):
            often = main.warps == 8 and main.part != "split"
            marks = () if often else LONG
            if main.head_dim <= LISTED[0]:
                yield pytest.param(main.of(Form("bf16", 64, 64)), marks=LONG, id=f"{main.label} 64")
            if main.consumers < 3:
                yield pytest.param(main, marks=marks, id=main.label)


@pytest.mark.parametrize("spec", list(routes()))
def test_products_overlap(spec):
    """The compiler makes no product wait for another, and spills nothing but in wide heads."""
    made = compile_cubin(render(spec), name=spec.name, arch="sm_90a")
    assert "C751" not in made.log and "C752" not in made.log, made.log
    assert made.resources.spill_stores <= (48 if spec.head_dim > LISTED[0] else 0), spec.name
