"""Attention: kernels and the oracle, bit for bit, and what no bit may depend on."""

from __future__ import annotations

from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest
from attention_cases import (
    BF16,
    DTYPES,
    FEATURES,
    HEADS,
    SHAPES,
    cluster,
    draw,
    few_keys,
    in_pages,
    ints,
    mask_of,
    named,
    numbers,
    rounds,
)
from bits import NUMPY, same_bits

import ptxgen
from ptxgen import reference
from ptxgen.dispatch import choose
from ptxgen.errors import DtypeError, IndexRangeError, OptionError, ShapeError
from ptxgen.numerics.attention import ATTENTION, SPLIT, block, span
from ptxgen.numerics.dtype import NAMES
from ptxgen.ops.attention import Sizes
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec.attention import PAGES, SPACE, AttentionSpec, Form, HopperSpec, PagedSpec, tiles
from ptxgen.spec.attention import paged as page_of
from ptxgen.spec.attention_decode import ClusterSpec, DecodeSpec, FewSpec
from ptxgen.tiles import SPECS, TABLES


@pytest.fixture(autouse=True)
def _cpu():
    with ptxgen.use_device("cpu"):
        yield


def same(found, expected):
    for x, y in zip(found, expected, strict=True):
        same_bits(x, y)


def check(*arrays, kernel=None, **how):
    found = ptxgen.attention(*arrays, return_lse=True, kernel=kernel, **how)
    same(found, reference.attention(*arrays, return_lse=True, **how))
    return found


MOSTLY = [pytest.param(d, marks=pytest.mark.long if d == np.float16 else ()) for d in DTYPES]


# -- kernels and the oracle ---------------------------------------------------------------------
CASES = [(BF16, *h) for h in HEADS] + [(np.float16, 96, 96), (np.float32, 64, 64)]


def few_rows(sms):
    """Uses a device of ``sms`` SMs: few rows of many keys take one CTA on a single SM, and a
    cluster on many.
    """
    device = CpuDevice()
    device.sms = sms
    return ptxgen.use_device(device)


def of_few(cases, clusters, usual):
    """Returns cases on 132 SMs (clusters) and on one SM; those that are not in ``clusters`` and in
    ``usual`` are long.
    """
    return [
        pytest.param(
            *c,
            sms,
            id=f"{'-'.join(map(str, c))}-{where}",
            marks=() if c in often else pytest.mark.long,
        )
        for where, sms, often in (("cluster", 132, clusters), ("CTA", 1, usual))
        for c in cases
    ]


OF_HEADS = [(NAMES[np.dtype(d).name], *h) for d, *h in CASES]


@pytest.mark.parametrize(
    ("dtype", "head", "head_v", "sms"), of_few(OF_HEADS, OF_HEADS, OF_HEADS[:1])
)
def test_head_dimensions(dtype, head, head_v, sms):
    shapes = (1, 2, 3, head), (1, 1, 150, head), (1, 1, 150, head_v)
    clustered = sms > 1 and dtype != "f32"
    kernel = cluster(dtype, head, head_v) if clustered else None
    with few_rows(sms):
        check(*draw(head, *shapes, dtype=NUMPY[dtype]), kernel=kernel, causal=True)


@pytest.mark.long
def test_wide_heads_of_f32():
    shapes = (1, 2, 3, 256), (1, 1, 150, 256), (1, 1, 150, 256)
    check(*draw(256, *shapes, dtype=np.float32), causal=True)


USUAL = [("causal",), ("mask",), ("all",)]
CLUSTERS = [*USUAL, *((w,) for w in ("bias", "sinks", "causal window", "padding with holes"))]
"""Features with clusters; kernels for few keys run all (:func:`test_features_of_few_keys`)."""


@pytest.mark.parametrize(("what", "sms"), of_few([(w,) for w in FEATURES], CLUSTERS, USUAL))
def test_features(what, sms):
    how = FEATURES[what]
    kernel = cluster("bf16", SHAPES[0][-1], SHAPES[2][-1], **how) if sms > 1 else None
    with few_rows(sms):
        check(*draw(1, *SHAPES), kernel=kernel, **how)


@pytest.mark.parametrize("what", FEATURES)
def test_features_of_few_keys(what):
    kernel = few_keys("bf16", SHAPES[0][-1], SHAPES[2][-1], 16, **FEATURES[what])
    check(*draw(1, *SHAPES), kernel=kernel, **FEATURES[what])


@pytest.mark.parametrize(("dtype", "head", "head_v"), [c for c in OF_HEADS if c[0] != "f32"])
def test_head_dimensions_of_few_keys(dtype, head, head_v):
    shapes = (2, 6, 3, head), (2, 2, 90, head), (2, 2, 90, head_v)
    kernel = few_keys(dtype, head, head_v, 8)
    check(*draw(head, *shapes, dtype=NUMPY[dtype]), kernel=kernel, causal=True)


def test_few_keys_of_pages():
    """Kernels for few keys read pages; rows see different keys, and NaN or infinite values that a
    row does not see leave its result alone.
    """
    for page, warps, keys in ((48, 16, 180), (16, 8, 100)):
        q, k, v = draw(8, (3, 6, 2, 144), (3, 2, keys, 144), (3, 2, keys, 144))
        v[0, :, keys - 21], v[1, 0, 98, 60] = np.nan, np.inf
        k, v, table = in_pages(k, v, page)
        how = {"lengths": ints(keys - 20, 99, 0), "query_lengths": ints(2, 2, 1)}
        how |= {"block_table": table, "window": keys - 30, "causal": True}
        check(q, k, v, kernel=few_keys("bf16", 144, 144, warps), **how)


def kernel_of(kind, dtype, head, head_v, rounded=False, warps=None, part="whole"):
    """Returns the name of a kernel of type ``kind`` that takes all keys, or a split: with ``warps``
    warps, or as chosen for many rows and few keys.
    """
    sizes = {"ROWS": 1 << 16, "RAGGED": 1, "PAIRS": 1, "KEYS": 64, "PAGED": 0, "MAPS": 0}
    env = SPACE.environment({**sizes, "DEPTH": head, "WIDTH": head_v, "SMS": 132})
    chosen = lambda route: route.prefer.evaluate(env)  # noqa: E731
    of_warps = lambda route: route.main.warps == warps  # noqa: E731
    wanted = chosen if warps is None else of_warps
    return named(kind, dtype, head, head_v, rounded, part, wanted)


LONG = pytest.mark.long
SHORT = ("causal window", "mask", "padding with holes", "sinks", "all")
OFTEN = [pytest.param(w, marks=() if w in SHORT else LONG) for w in FEATURES]


KINDS = [
    *((AttentionSpec, None), (HopperSpec, 8)),
    *(pytest.param(HopperSpec, warps, marks=LONG) for warps in (4, 12)),
]


@pytest.mark.parametrize(("kind", "warps"), KINDS)
@pytest.mark.parametrize("what", OFTEN)
def test_features_of_many_rows(what, kind, warps):
    rounded = rounds(FEATURES[what])
    kernel = kernel_of(kind, "bf16", 64, 64, rounded, warps)
    check(*draw(1, *SHAPES), kernel=kernel, **FEATURES[what])


WIDTHS = [(128, 128), (192, 128), (256, 256), (136, 176)]
WIDTHS += [pytest.param(*w, marks=LONG) for w in ((80, 80), (40, 24))]


@pytest.mark.parametrize("warps", [None, pytest.param(8, marks=pytest.mark.long)])
@pytest.mark.parametrize(("head", "head_v"), WIDTHS)
def test_head_dimensions_on_hopper(head, head_v, warps):
    shapes = (1, 2, 70, head), (1, 1, 300, head), (1, 1, 300, head_v)
    kernel = kernel_of(HopperSpec, "bf16", head, head_v, warps=warps)
    check(*draw(head, *shapes), causal=True, kernel=kernel)


@pytest.mark.parametrize(
    ("head", "warps"),
    [(192, 8), (128, 4), *(pytest.param(*c, marks=pytest.mark.long) for c in ((192, 4), (128, 8)))],
)
def test_sums_of_several_splits_on_hopper(head, warps):
    shapes = (1, 1, 70, head), (1, 1, 1100, head), (1, 1, 1100, head)
    kernel = kernel_of(HopperSpec, "bf16", head, head, warps=warps)
    check(*draw(17, *shapes), causal=True, kernel=kernel)


def test_results_that_do_not_begin_at_16_bytes_on_hopper():
    q, k, v = draw(18, (1, 2, 70, 64), (1, 1, 90, 64), (1, 1, 90, 64))
    out = np.zeros((1, 2, 70, 67), BF16)[..., 3:]
    found = ptxgen.attention(q, k, v, kernel=kernel_of(HopperSpec, "bf16", 64, 64), out=out)
    same([found], [reference.attention(q, k, v)])


def check_pages(q, k, v, page, **how):
    """Checks attention on keys and values in pages, by Hopper's paged kernel, against the
    oracle.
    """
    rounded = rounds(how)
    name = "f16" if q.dtype == np.float16 else "bf16"
    kernel = kernel_of(PagedSpec, name, k.shape[-1], v.shape[-1], rounded)
    k, v, table = in_pages(k, v, page)
    return check(q, k, v, block_table=table, kernel=kernel, **how)


PAIRS = [(page, *h) for page in PAGES for h in ((64, 64), (40, 24), (192, 128))]
OFTEN_PAGES = {(16, 192, 128), (64, 40, 24), (256, 64, 64)}
OF_PAIRS = [pytest.param(*p, marks=() if p in OFTEN_PAGES else pytest.mark.long) for p in PAIRS]


@pytest.mark.parametrize(("page", "head", "head_v"), OF_PAIRS)
def test_pages_on_hopper(head, head_v, page):
    """Blocks that are several pages, one, and parts of one; pages that nobody has written."""
    q, k, v = draw(page, (3, 4, 20, head), (3, 2, 300, head), (3, 2, 300, head_v))
    check_pages(q, k, v, page, lengths=ints(300, 0, 131), causal=True)


OF_PAGES = {
    "window": {"window": 40, "causal": True},
    "mask": {"mask": mask_of(2, 4, 70, 320)},
    "all": {
        **{"softcap": 3.0, "slopes": numbers(4), "sinks": numbers(4), "window": 90},
        **{"bias": numbers(70, 320), "query_lengths": ints(70, 33)},
    },
}


@pytest.mark.parametrize("dtype", [BF16, pytest.param(np.float16, marks=pytest.mark.long)])
@pytest.mark.parametrize("what", OF_PAGES)
def test_features_of_pages_on_hopper(what, dtype):
    q, k, v = draw(21, (2, 4, 70, 64), (2, 2, 280, 64), (2, 2, 280, 64), dtype=dtype)
    v[0, 0, 200, 3] = np.nan
    check_pages(q, k, v, 32, lengths=ints(275, 100), **OF_PAGES[what])


def test_one_page_and_pages_that_are_not_apart_on_hopper():
    q, k, v = draw(22, (1, 2, 20, 64), (5, 16, 1, 64), (5, 16, 1, 64))
    kernel = kernel_of(PagedSpec, "bf16", 64, 64)
    alike = (np.broadcast_to(x[:1], x.shape) for x in (k, v))
    for caches, table in (((k[2:3], v[2:3]), ints(0, 0)), (alike, ints(4, 1))):
        how = {"block_table": table[None], "lengths": ints(30)}
        check(q, *caches, causal=True, kernel=kernel, **how)


@pytest.mark.parametrize(("page", "starts"), [(8, None), (48, None), (512, None), (64, ints(5))])
def test_pages_that_the_copy_engine_does_not_take(page, starts):
    q, k, v = draw(23, (1, 1, 70, 64), (1, 1, 100, 64), (1, 1, 100, 64))
    k, v, table = in_pages(k, v, page)
    how = {"block_table": table, "lengths": ints(90), "starts": starts, "causal": True}
    check(q, k, v, **how)
    with pytest.raises(OptionError, match="PAGED"):
        ptxgen.attention(q, k, v, kernel=kernel_of(PagedSpec, "bf16", 64, 64), **how)


def test_hopper_takes_many_rows_of_pages():
    sizes = {"RAGGED": 1, "PAIRS": 32, "KEYS": 4096, "DEPTH": 128, "WIDTH": 128}
    tried = (4096, 64, PagedSpec), (17, 64, PagedSpec), (4096, 48, AttentionSpec)
    for rows, page, kind in tried:
        values = sizes | {"ROWS": rows, "PAGED": page_of(page, True), "MAPS": 0}
        choice = choose(("attention", "half"), values, arch="sm_90", sms=132)
        assert type(SPECS[choice.kernels[0]]) is kind
    assert page_of(64, False) == page_of(8, True) == 1


@pytest.mark.parametrize(
    ("rows", "pairs", "keys", "kernel"),
    [
        *[(1200, 8, 6000, ("whole", 128)), (2048, 4, 2048, ("split", 128))],
        *[(256, 4, 4096, ("split", 64)), (17, 2, 1025, ("split", 64))],
        *[(4096, 4, 4097, ("whole", 128)), (4096, 4, 4096, ("whole", 64))],
        *[(2048, 4, 1024, ("whole", 64)), (1 << 16, 4, 4096, ("whole", 128))],
    ],
)
def test_few_tiles_of_many_keys_are_split_on_hopper_where_rounds_are_fewer(
    rows, pairs, keys, kernel
):
    given = {"ROWS": rows, "RAGGED": 1, "PAIRS": pairs, "KEYS": keys, "DEPTH": 128, "WIDTH": 128}
    for page, kind in ((0, HopperSpec), (64, PagedSpec)):
        values = given | {"PAGED": page, "MAPS": 0}
        chosen = choose(("attention", "half"), values, arch="sm_90", sms=132).kernels[0]
        spec = SPECS[chosen]
        assert (type(spec), spec.part, spec.rows) == (kind, *kernel)


EARLY = {"seed": 2, "early": True}


@pytest.mark.parametrize(
    ("warps", "part", "settings", "sms"),
    [
        (4, "split", {}, 2),
        *(
            pytest.param(*c, marks=pytest.mark.long)
            for c in ((8, "whole", {}, 2), (12, "whole", EARLY, 3), (8, "split", EARLY, 3))
        ),
    ],
)
def test_ctas_that_walk_over_tiles_on_hopper(warps, part, settings, sms):
    device = CpuDevice(**settings)
    device.sms = sms
    kernel = kernel_of(HopperSpec, "bf16", 64, 64, warps=warps, part=part)
    q, k, v = draw(19, (1, 2, 300, 64), (1, 1, 1100, 64), (1, 1, 1100, 64))
    v[0, 0, 1099, 3] = np.nan
    packed = draw(20, (600, 2, 64), (600, 2, 64), (600, 2, 64))
    with ptxgen.use_device(device):
        check(q, k, v, causal=True, kernel=kernel)
        check(*packed, cu_seqlens=ints(0, 5, 5, 60, 390, 590), causal=True, kernel=kernel)


def test_sums_that_are_no_longer_normal_of_ctas_that_walk_over_tiles_on_hopper():
    # They are divided, where others are multiplied by a reciprocal.
    device = CpuDevice()
    device.sms = 1
    q, k, v = draw(25, (1, 1, 260, 64), (1, 1, 260, 64), (1, 1, 260, 64))
    v[..., 8:16] *= 2.0**-118
    with ptxgen.use_device(device):
        for head_v in (64, 60):  # results are stored 16 bytes at a time, or not
            kernel = kernel_of(HopperSpec, "bf16", 64, 64, warps=4)
            check(q, k, v[..., :head_v].copy(), kernel=kernel)


@pytest.mark.long
def test_ctas_that_walk_over_tiles_of_pages_on_hopper():
    device = CpuDevice(**EARLY)
    device.sms = 3
    q, k, v = draw(24, (400, 2, 64), (4, 1, 1200, 64), (4, 1, 1200, 64))
    v[2, 0, 1150, 3] = np.nan
    counts = {"cu_seqlens": ints(0, 5, 5, 160, 380), "lengths": ints(300, 7, 1190, 250)}
    with ptxgen.use_device(device):
        check_pages(q, k, v, 64, causal=True, **counts)


ROUTES = [pytest.param("half", i, marks=LONG if i % 2 else ()) for i in range(31)]
ROUTES += [pytest.param("f32", i, marks=LONG if i else ()) for i in range(2)]
"""Table and index of every route; test_interp_kernels.py runs kernels of each kind as well."""


@pytest.mark.parametrize(("table", "number"), ROUTES)
def test_every_route(table, number):
    routes = TABLES["attention", table].routes
    assert len(routes) == {"half": 31, "f32": 2}[table]
    dtype, form = (np.float32, "f32") if table == "f32" else (BF16, "bf16")
    main = routes[number].main
    keys = 1000 if isinstance(main, ClusterSpec) and main.part == "whole" else 1100
    keys = main.capacity - 7 if isinstance(main, FewSpec) else keys
    arrays = draw(2, (1, 3, 13, 64), (1, 1, keys, 64), (1, 1, keys, 64), dtype=dtype)
    how = {"causal": True, "sinks": numbers(3)}
    if isinstance(main, PagedSpec):
        *arrays[1:], how["block_table"] = in_pages(*arrays[1:], 128)
        how["lengths"] = ints(1100)
    if main.mapped:
        how["mask"] = mask_of(13, 1100)
    check(*arrays, kernel=routes[number].of(Form(form, 64, 64)).name, **how)


@pytest.mark.parametrize(
    ("rows", "pairs", "keys", "head", "cluster"),
    [
        *[
            (4, 7, 4096, 128, 4),
            (4, 8, 4096, 128, None),
            (4, 30, 1024, 64, 4),
            (4, 31, 1024, 64, None),
            (4, 8, 256, 64, None),
        ],
        *[
            (4, 15, 257, 192, 8),
            (4, 16, 1024, 192, None),
            (16, 3, 4096, 256, 8),
            (17, 2, 512, 64, None),
        ],
    ],
)
def test_fewest_rows_are_those_of_clusters(rows, pairs, keys, head, cluster):
    given = {"ROWS": rows, "RAGGED": 1, "PAIRS": pairs, "KEYS": keys, "PAGED": 0, "MAPS": 0}
    values = given | {"DEPTH": head, "WIDTH": head}
    spec = SPECS[choose(("attention", "half"), values, arch="sm_90", sms=132).kernels[0]]
    assert (spec.cluster if isinstance(spec, ClusterSpec) else None) == cluster
    older = SPECS[choose(("attention", "half"), values, arch="sm_89", sms=132).kernels[0]]
    assert not isinstance(older, ClusterSpec)


@pytest.mark.parametrize(
    ("rows", "pairs", "keys", "head", "kind", "warps", "part"),
    [
        *[(8, 66, 2048, 128, DecodeSpec, 16, "split"), (8, 67, 2048, 128, DecodeSpec, 8, "split")],
        *[(8, 12, 9000, 64, DecodeSpec, 16, "split"), (8, 12, 9000, 192, DecodeSpec, 8, "split")],
        *[(8, 132, 129, 96, FewSpec, 16, "whole"), (8, 132, 128, 96, FewSpec, 8, "whole")],
        *[(8, 133, 129, 96, DecodeSpec, 4, "whole"), (8, 999, 128, 96, FewSpec, 8, "whole")],
        *[(8, 132, 257, 96, DecodeSpec, 16, "whole"), (8, 132, 129, 256, DecodeSpec, 8, "whole")],
        *[(17, 2, 20, 128, FewSpec, 8, "whole"), (65, 2, 20, 256, FewSpec, 8, "whole")],
        *[(64, 99, 128, 64, HopperSpec, 4, "whole"), (1056, 2, 128, 64, FewSpec, 8, "whole")],
        *[(2112, 2, 129, 256, HopperSpec, 8, "whole"), (2113, 2, 128, 64, HopperSpec, 4, "whole")],
        *[(1057, 2, 129, 64, HopperSpec, 4, "whole"), (1056, 2, 513, 64, HopperSpec, 4, "whole")],
    ],
)
def test_tiles_that_have_an_sm_each_are_of_more_warps(rows, pairs, keys, head, kind, warps, part):
    given = {"ROWS": rows, "RAGGED": 1, "PAIRS": pairs, "KEYS": keys, "PAGED": 0, "MAPS": 0}
    values = given | {"DEPTH": head, "WIDTH": head}
    spec = SPECS[choose(("attention", "half"), values, arch="sm_90", sms=132).kernels[0]]
    assert (type(spec), spec.warps, spec.part) == (kind, warps, part)


def test_what_a_cluster_shares_is_of_one_tile():
    """Clusters keep the pages and splits of several sequences apart: one has no keys, rows see
    different keys, and NaN or infinite values that a row does not see leave it alone.
    """
    for keys, pages in (((1500, 0, 1025), 16), ((700, 300, 129), 64)):
        q, k, v = draw(25, (3, 6, 2, 64), (3, 2, max(keys), 64), (3, 2, max(keys), 64))
        v[0, :, 690, 3], v[2, 0, 120, 60] = np.nan, np.inf
        k, v, table = in_pages(k, v, pages)
        how = {"block_table": table, "lengths": ints(*keys), "window": 400, "causal": True}
        with few_rows(132):
            check(q, k, v, **how)


@pytest.mark.parametrize(
    ("sequences", "keys", "splits"),
    [
        *[(1, 4096, True), (4, 4096, True), (16, 4096, False), (64, 4096, False)],
        *[(40, 8192, True), (256, 2048, False), (1, 1024, False), (33, 1025, False)],
    ],
)
def test_keys_of_few_rows_are_split_where_that_fills_more_sms(sequences, keys, splits):
    given = {"ROWS": 4, "RAGGED": 1, "PAIRS": 8 * sequences, "KEYS": keys, "PAGED": 0, "MAPS": 0}
    env = SPACE.environment({**given, "DEPTH": 128, "WIDTH": 128, "SMS": 132})
    routes = (r for r in TABLES["attention", "half"].routes if type(r.main) is DecodeSpec)
    split, whole = (r for r in routes if r.main.warps == 4)
    assert (split.main.part, whole.main.part) == ("split", "whole")
    assert split.prefer.evaluate(env) == splits
    assert whole.prefer.evaluate(env)


@pytest.mark.parametrize(
    ("sequences", "part"), [(8, "split"), (32, "whole"), (40, "split"), (64, "whole")]
)
def test_a_ragged_batch_counts_one_tile_for_each_sequence_that_is_decoded(sequences, part):
    """Not the most that its rows could have: 32 and 64 sequences fill the SMs evenly."""
    given = {"ROWS": 4 * sequences, "RAGGED": sequences, "PAIRS": 8, "KEYS": 4096}
    given |= {"DEPTH": 128, "WIDTH": 128, "PAGED": 16, "MAPS": 0}
    chosen = choose(("attention", "half"), given, arch="sm_90", sms=132).kernels
    assert SPECS[chosen[0]].part == part
    assert len(chosen) == (2 if part == "split" else 1)


@pytest.mark.parametrize("group", [1, 3])
def test_the_grid_of_a_ragged_batch_has_all_tiles_that_its_offsets_may_ask_for(group):
    """All offsets of up to three sequences; with one row a token, some need the whole grid."""
    for tokens, seqs in np.ndindex(10, 4):
        if not tokens * seqs:
            continue
        sizes = Sizes(True, True, False, (), seqs, tokens, 64, group, 1, 64, 64)
        given = {"ROWS": tokens * group, **sizes.tiled(tokens), "KEYS": 64}
        grid = tiles(4).evaluate(SPACE.environment(given))
        offsets = combinations_with_replacement(range(tokens + 1), seqs)
        needed = [
            sum(-(-(to - of) * group // 4) for of, to in pairwise((0, *ends, tokens)))
            for ends in offsets
        ]
        assert max(needed) <= grid
        assert group > 1 or max(needed) == grid


@pytest.mark.parametrize(("sequences", "keys"), [(1, 4096), (1, 7168), (2, 3072)])
def test_few_sequences_of_a_ragged_batch_are_decoded_by_clusters(sequences, keys):
    """Their grid has no tiles without rows."""
    given = {"ROWS": 8 * sequences, "RAGGED": sequences, "PAIRS": 4, "KEYS": keys}
    given |= {"DEPTH": 128, "WIDTH": 128, "PAGED": 16, "MAPS": 0}
    chosen = choose(("attention", "half"), given, arch="sm_90", sms=132)
    assert isinstance(SPECS[chosen.kernels[0]], ClusterSpec)
    assert chosen.grids[0] == 4 * sequences * (keys // SPLIT) * 4


@pytest.mark.parametrize("kind", [DecodeSpec, pytest.param(ClusterSpec, marks=pytest.mark.long)])
def test_a_sequence_of_a_ragged_batch_has_more_tiles_than_one(kind):
    """Splits of tiles beyond one a sequence come behind those of all others. Two sequences have
    two, one has none, and a token belongs to no sequence.
    """
    q, k, v = draw(7, (21, 2, 16), (4, 1, 1030, 16), (4, 1, 1030, 16))
    *pages, table = in_pages(k, v, 64)
    counts = {"cu_seqlens": ints(0, 9, 9, 18, 20), "lengths": ints(40, 300, 1030, 1025)}
    kernel = named(kind, "bf16", 16, 16, False, "split", lambda route: True)
    check(q, *pages, block_table=table, kernel=kernel, **counts)


@pytest.mark.long
def test_more_splits_than_a_join_loads_at_once():
    keys = 17 * SPLIT + 1
    check(*draw(4, (1, 1, 1, 16), (1, 1, keys, 16), (1, 1, keys, 16)))


def test_tiles_of_few_rows_are_passed_back_in_turn():
    # Some warps are ahead of others, by a span.
    split = next(
        r
        for r in TABLES["attention", "half"].routes
        if r.main.warps == 16 and r.main.part == "split"
    )
    with ptxgen.use_device(CpuDevice(seed=3, early=True)):
        q, k, v = draw(3, (1, 1, 1, 64), (1, 1, 1024, 64), (1, 1, 1024, 64))
        check(q, k, v, kernel=split.of(Form("bf16", 64, 64)).name)


def test_tiles_and_splits_ahead_of_a_window_are_left_out():
    q, k, v = draw(3, (1, 1, 70, 64), (1, 1, 2100, 64), (1, 1, 2100, 64))
    check(q, k, v, causal=True, window=900)


@pytest.mark.parametrize("dtype", MOSTLY)
def test_what_is_not_seen_may_be_anything(dtype):
    q, k, v = draw(4, (1, 2, 20, 64), (1, 1, 150, 64), (1, 1, 150, 64), dtype=dtype)
    clean = check(q, k, v, causal=True)
    v[0, 0, 140, 3], v[0, 0, 135, 5] = np.nan, np.inf
    k[0, 0, 149], v[0, 0, 149], v[0, 0, 20, 9] = np.nan, np.nan, -np.inf
    found = check(q, k, v, causal=True)
    if dtype != np.float32:
        name = "bf16" if dtype == BF16 else "f16"
        for warps in (4, 8):
            kernel = kernel_of(HopperSpec, name, 64, 64, warps=warps)
            same(check(q, k, v, causal=True, kernel=kernel), found)
    few = check(q[:, :, -8:], k, v, causal=True)
    same(few, [x[:, :, -8:] for x in found])
    there = np.delete(np.arange(64), [9])
    same([found[0][:, :, :5, there]], [clean[0][:, :, :5, there]])  # these see keys up to 134
    assert np.isnan(found[0][:, :, -1]).all()
    seen = np.ones((20, 150), bool)
    seen[:, 135:], seen[3], seen[5, 20] = False, False, False
    found = check(q, k, v, mask=seen)
    same(check(q[:, :, :8], k, v, mask=seen[:8]), [x[:, :, :8] for x in found])
    assert np.isinf(found[0][0, :, 0, 9].astype("f4")).all()
    assert not np.asarray(found[0][0, :, 3]).astype("f4").any()
    assert np.isneginf(found[1][0, :, 3]).all()


@pytest.mark.parametrize("dtype", MOSTLY)
def test_special_scores(dtype):
    q, k, v = draw(5, (1, 1, 4, 64), (1, 1, 150, 64), (1, 1, 150, 64), dtype=dtype)
    big = 1e4 if dtype == np.float16 else 1e15
    check((q * dtype(100)).astype(dtype), (k * dtype(100)).astype(dtype), v)
    check((q * dtype(big)).astype(dtype), (k * dtype(big)).astype(dtype), v)
    q[0, 0, 1, 0], q[0, 0, 2, 0] = np.inf, np.nan
    found, lse = check(q, k, v)
    assert np.isnan(found[0, 0, 1:3]).all() and np.isnan(lse[0, 0, 1:3]).all()


# -- layouts ------------------------------------------------------------------------------------
def test_packed_projections_are_read_as_they_lie():
    (qkv,) = draw(6, (2, 50, 3, 4, 64))
    check(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], causal=True, layout="bshd")


def test_rows_that_do_not_begin_at_16_bytes_are_copied():
    q, k, v = draw(7, (1, 2, 3, 65), (1, 2, 40, 65), (1, 2, 40, 65))
    check(q[..., 1:], k[..., 1:], v[..., 1:])


def test_leading_dimensions_and_shared_keys():
    q, k, v = draw(8, (2, 3, 2, 4, 64), (3, 2, 40, 64), (3, 2, 40, 64))
    found = ptxgen.attention(q, k, v)
    each = [ptxgen.attention(q[i], k, v) for i in range(2)]
    same([found], [np.stack(each)])


def test_given_memory():
    q, k, v = draw(9, (1, 2, 3, 64), (1, 2, 40, 64), (1, 2, 40, 64))
    out, lse = np.empty_like(q), np.empty((1, 2, 3), np.float32)
    found = ptxgen.attention(q, k, v, return_lse=True, out=(out, lse))
    assert found[0] is out and found[1] is lse
    same(found, reference.attention(q, k, v, return_lse=True))


@pytest.mark.parametrize("shape", [(0, 2, 3, 64), (1, 2, 0, 64)])
def test_nothing_to_do(shape):
    q = np.empty(shape, BF16)
    k = np.empty((shape[0], 2, 5, 64), BF16)
    assert ptxgen.attention(q, k, k).shape == shape


@pytest.mark.parametrize("kind", DTYPES)
def test_sinks_of_any_float_are_their_values_in_f32(kind):
    """Sinks of any float dtype give the bits of the same sinks in f32, whatever q's dtype."""
    q, k, v = draw(26, (2, 4, 1, 64), (2, 2, 40, 64), (2, 2, 40, 64))
    sinks = numbers(4, dtype=kind)
    found = check(q, k, v, sinks=sinks)
    same(found, check(q, k, v, sinks=sinks.astype(np.float32)))


def test_no_keys():
    (q,) = draw(10, (1, 2, 3, 64))
    k = np.empty((1, 2, 0, 64), BF16)
    sinks = numbers(2)
    check(q, k, k, sinks=sinks)
    check(q.swapaxes(1, 2), k.swapaxes(1, 2), k.swapaxes(1, 2), sinks=sinks, layout="bshd")
    check(q[0].swapaxes(0, 1), k[0, :, :0].swapaxes(0, 1), k[0].swapaxes(0, 1), sinks=sinks,
          cu_seqlens=ints(0, 2, 3), cu_seqlens_k=ints(0, 0, 0))  # fmt: skip
    found, lse = check(q, k, k)
    assert not found.astype("f4").any() and np.isneginf(lse).all()


# -- what no bit depends on ---------------------------------------------------------------------
LENGTH = SPLIT + 128 + 40
"""Across the borders of blocks and of a split."""


PREFILL = pytest.mark.xdist_group("prefill")
"""Group that keeps these tests in one process, which computes the whole prompt once."""


@pytest.fixture(scope="module")
def whole():
    q, k, v = draw(11, (1, 1, LENGTH, 64), (1, 1, LENGTH, 64), (1, 1, LENGTH, 64))
    with ptxgen.use_device("cpu"):
        return q, k, v, ptxgen.attention(q, k, v, causal=True)


PLACES = (0, 1, 127, 128, SPLIT - 1, SPLIT, LENGTH - 1)


@PREFILL
@pytest.mark.parametrize("place", PLACES)
def test_decoding_is_prefill(whole, place):
    q, k, v, expected = whole
    keys = slice(0, place + 1)
    one = slice(place, place + 1)
    found = ptxgen.attention(q[:, :, one], k[:, :, keys], v[:, :, keys], causal=True)
    same([found], [expected[:, :, one]])


@PREFILL
def test_chunks_are_prefill(whole):
    q, k, v, expected = whole
    for begin, end in ((0, 100), (100, 230), (SPLIT - 9, SPLIT + 1), (SPLIT + 1, LENGTH)):
        found = ptxgen.attention(q[:, :, begin:end], k[:, :, :end], v[:, :, :end], causal=True)
        same([found], [expected[:, :, begin:end]])


@PREFILL
def test_a_padded_cache_is_a_growing_one(whole):
    q, k, v, expected = whole
    counts = [1, 300, SPLIT + 5]
    cache_k, cache_v = (np.full((3, 1, LENGTH + 50, 64), np.nan, BF16) for _ in range(2))
    starts = [0, 13, 50]
    for i, (n, start) in enumerate(zip(counts, starts, strict=True)):
        cache_k[i, :, start : start + n], cache_v[i, :, start : start + n] = (
            k[0, :, :n],
            v[0, :, :n],
        )
    queries = np.stack([q[0, :, n - 1 : n] for n in counts])
    how = {"lengths": ints(*counts), "starts": ints(*starts), "causal": True}
    found = ptxgen.attention(queries, cache_k, cache_v, **how)
    same(list(found), [expected[0, :, n - 1 : n] for n in counts])


@PREFILL
@pytest.mark.parametrize("page", [16, 48, 256])
def test_pages_are_a_cache(whole, page):
    q, k, v, expected = whole
    counts = [SPLIT + 5, 300]
    each = -(-LENGTH // page)
    rng = np.random.default_rng(page)
    table = rng.permutation(2 * each + 3)[: 2 * each].astype(np.int32).reshape(2, each)
    blocks = [np.full((2 * each + 3, page, 1, 64), np.nan, BF16) for _ in range(2)]
    for i, n in enumerate(counts):
        for cache, x in zip(blocks, (k, v), strict=True):
            for j in range(n):
                cache[table[i, j // page], j % page] = x[0, :, j]
    queries = np.stack([q[0, :, n - 2 : n].swapaxes(0, 1) for n in counts])
    how = {"block_table": table, "lengths": ints(*counts), "causal": True}
    found = ptxgen.attention(queries, *blocks, layout="bshd", **how)
    same(list(found), [expected[0, :, n - 2 : n].swapaxes(0, 1) for n in counts])
    packed = queries.reshape(4, 1, 64)
    found = ptxgen.attention(packed, *blocks, cu_seqlens=ints(0, 2, 4), **how)
    same([found], [np.concatenate([expected[0, :, n - 2 : n].swapaxes(0, 1) for n in counts])])


@PREFILL
@pytest.mark.parametrize("page", [16, 128])
def test_chunks_against_pages_are_prefill(whole, page):
    q, k, v, expected = whole
    k, v, table = in_pages(k, v, page)
    for begin, end in ((0, 100), (100, 230), (SPLIT - 50, SPLIT + 70)):
        how = {"block_table": table, "lengths": ints(end), "causal": True}
        found = ptxgen.attention(q[:, :, begin:end], k, v, **how)
        same([found], [expected[:, :, begin:end]])


@PREFILL
def test_sequences_one_behind_the_other_are_sequences(whole):
    q, k, v, expected = whole
    ends = [0, 130, 130, 131, 400]
    pairs = list(pairwise(ends))
    x = [np.concatenate([a[0, :, : n - m].swapaxes(0, 1) for m, n in pairs]) for a in (q, k, v)]
    found = ptxgen.attention(*x, cu_seqlens=ints(*ends), causal=True)
    for m, n in pairs:
        same([found[m:n]], [expected[0, :, : n - m].swapaxes(0, 1)])


@pytest.mark.parametrize("how", [{}, {"sinks": numbers(2)}], ids=["", "sinks"])
def test_tokens_behind_the_last_sequence_give_zeros(how):
    q, k, v = draw(12, (40, 2, 64), (40, 2, 64), (40, 2, 64))
    found, lse = check(q, k, v, cu_seqlens=ints(0, 7, 20), **how)
    assert not found[20:].astype("f4").any() and np.isneginf(lse[20:]).all()


# -- how right it is ----------------------------------------------------------------------------
def exact(q, k, v, causal):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        i = np.arange(s.shape[-2])[:, None] + s.shape[-1] - s.shape[-2]
        s = np.where(np.arange(s.shape[-1]) <= i, s, -np.inf)
    m = s.max(-1, keepdims=True)
    p = np.exp(s - m)
    total = p.sum(-1, keepdims=True)
    return p @ v / total, (m + np.log(total))[..., 0]


@pytest.mark.parametrize(("dtype", "ulp"), [(BF16, 2.0**-7), (np.float16, 2.0**-10)])
def test_accuracy(dtype, ulp):
    q, k, v = draw(13, (1, 2, 8, 64), (1, 2, 3000, 64), (1, 2, 3000, 64), dtype=dtype)
    found, lse = reference.attention(q, k, v, causal=True, return_lse=True)
    expected, sums = exact(q, k, v, True)
    # Weights are rounded to half an ulp each, at random, and so is the result.
    deviation = np.sqrt(((found.astype("f8") - expected) ** 2).mean())
    assert deviation < 0.33 * ulp * np.sqrt((expected**2).mean())
    assert np.abs(lse - sums).max() < 2e-6


def test_accuracy_of_f32():
    q, k, v = draw(14, (1, 2, 8, 64), (1, 2, 3000, 64), (1, 2, 3000, 64), dtype=np.float32)
    found, lse = reference.attention(q, k, v, return_lse=True)
    expected, sums = exact(q, k, v, False)
    assert np.abs(found - expected).max() < 1e-6 and np.abs(lse - sums).max() < 2e-6


# -- the contract's rules -----------------------------------------------------------------------
def test_which_keys_are_seen():
    assert span(0, 1, 5, True, None) == (0, 5)
    assert span(1, 3, 10, True, None) == (0, 9)
    assert span(2, 3, 10, True, 4) == (6, 10)
    assert span(0, 4, 10, False, 2) == (5, 8)
    assert span(0, 4, 2, True, None) == (0, 0)
    assert block(128, 128) == 128 and block(192, 128) == 64


def test_specs_that_cannot_be():
    with pytest.raises(ptxgen.errors.SpecError, match="head"):
        AttentionSpec(100, 64)
    with pytest.raises(ptxgen.errors.SpecError, match="stages"):
        AttentionSpec(256, 256, dtype="f32", shared_kib=99, contract=ATTENTION["simt"])


# -- refusals -----------------------------------------------------------------------------------
Q, K = np.zeros((2, 4, 3, 64), BF16), np.zeros((2, 2, 10, 64), BF16)
CACHE, TABLE = np.zeros((8, 16, 2, 64), BF16), np.zeros((2, 3), np.int32)
BAD = [
    (ShapeError, "q has shape", (Q[0, 0], K, K), {}),
    (ShapeError, "k has shape", (Q, K[..., :32], K), {}),
    (ShapeError, "v", (Q, K, K[:, :, :5]), {}),
    (ShapeError, "k has shape .* those of q", (Q, K[None, [0, 0]], K[None, [0, 0]]), {}),
    (ShapeError, "heads", (Q[:, :3], K, K), {}),
    (ShapeError, "head dimensions", (np.zeros((1, 1, 1, 300), BF16),) * 3, {}),
    (DtypeError, "k has dtype", (Q, K.astype("f4"), K), {}),
    (DtypeError, "q has dtype", (Q.astype("f8"), K.astype("f8"), K.astype("f8")), {}),
    (OptionError, "window", (Q, K, K), {"window": -1}),
    (OptionError, "softcap", (Q, K, K), {"softcap": 0.0}),
    (OptionError, "layout", (Q, K, K), {"layout": "hbsd"}),
    (DtypeError, "mask", (Q, K, K), {"mask": np.zeros((3, 10), "f4")}),
    (ShapeError, "mask", (Q, K, K), {"mask": np.zeros((3, 11), bool)}),
    (ShapeError, "bias", (Q, K, K), {"bias": np.zeros((1, 2, 4, 3, 10), "f4")}),
    (DtypeError, "lengths", (Q, K, K), {"lengths": np.zeros(2, np.int64)}),
    (ShapeError, "lengths", (Q, K, K), {"lengths": np.zeros(3, np.int32)}),
    (ShapeError, "sinks", (Q, K, K), {"sinks": np.zeros(2, "f4")}),
    (DtypeError, "sinks has dtype float64; takes bfloat16", (Q, K, K), {"sinks": np.zeros(4)}),
    (DtypeError, "slopes has dtype bfloat16", (Q, K, K), {"slopes": np.zeros(4, BF16)}),
    (IndexRangeError, "lengths", (Q, K, K), {"lengths": ints(3, 11)}),
    (IndexRangeError, "starts", (Q, K, K), {"starts": ints(-1, 1)}),
    (OptionError, "cu_seqlens_k", (Q, K, K), {"cu_seqlens_k": ints(0, 1)}),
    (OptionError, "lengths", (Q, CACHE, CACHE), {"block_table": TABLE}),
    (
        ShapeError,
        "block_table",
        (Q, CACHE, CACHE),
        {"block_table": TABLE[:1], "lengths": ints(1, 1)},
    ),
    (
        IndexRangeError,
        "block_table",
        (Q, CACHE, CACHE),
        {"block_table": TABLE + 8, "lengths": ints(1, 1)},
    ),
    (
        IndexRangeError,
        "cu_seqlens does not ascend",
        (Q[0, :, :2], K[0, :, :2], K[0, :, :2]),
        {"cu_seqlens": ints(0, 3, 1), "cu_seqlens_k": ints(0, 1, 2)},
    ),
]


@pytest.mark.parametrize(("error", "words", "arrays", "how"), BAD)
def test_refused(error, words, arrays, how):
    with pytest.raises(error, match=words):
        ptxgen.attention(*arrays, **how)


def test_the_cache_is_not_read_beyond_its_blocks():
    from steps import unchecked

    q, k, v = draw(15, (2, 1, 4, 64), (8, 16, 2, 64), (8, 16, 2, 64))
    wild = np.array([[3, 100, -5], [1, 2, 2**31 - 1]], np.int32)
    how = {"lengths": ints(40, 1 << 30), "layout": "bshd"}
    found = unchecked("attention")(q, k, v, block_table=wild, **how)
    near = np.array([[3, 7, 7], [1, 2, 7]], np.int32)
    same([found], [reference.attention(q, k, v, block_table=near, **how)])
