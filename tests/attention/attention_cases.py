"""Calls of attention, for the CPU device, for GPUs and for the sanitizer."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np
from bits import NUMPY, same_bits

import ptxgen
from ptxgen import reference
from ptxgen.numerics.attention import SPLIT
from ptxgen.spec import Step
from ptxgen.spec.attention import SPACE, Form, HopperSpec, PagedSpec
from ptxgen.spec.attention_decode import CLUSTER_WIDTH_MAX, ClusterSpec, FewSpec
from ptxgen.spec.attention_grad import HopperGradSpec
from ptxgen.spec.attention_mask import MaskSpec
from ptxgen.tiles import SPECS, TABLES

BF16 = ml_dtypes.bfloat16
DTYPES = (BF16, np.float16, np.float32)
HEADS = [(64, 64), (80, 80), (128, 128), (192, 128), (256, 256), (36, 20)]
"""Head dimensions of keys and of values."""
SHAPES = (2, 4, 5, 64), (2, 2, 200, 64), (2, 2, 200, 64)
"""Shapes [batch, heads, rows, head dimension] of q, k and v for :data:`FEATURES`."""


def draw(seed, *shapes, dtype=BF16):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


def ints(*values):
    return np.array(values, np.int32)


def mask_of(*shape, seed=5):
    return np.random.default_rng(seed).random(shape) < 0.5


def in_pages(k, v, page, seed=7, unwritten=np.nan):
    """Puts keys and values [B, HK, L, D] into random pages, as halves of one cache that is
    ``unwritten`` elsewhere. Returns both and the page table, whose last column is unused.
    """
    seqs, heads, keys, _ = k.shape
    each = -(-keys // page) + 1
    found = np.random.default_rng(seed).permutation(seqs * each + 3)[: seqs * each]
    table = found.astype(np.int32).reshape(seqs, each)
    size = found.size + 3, 2, page, heads, max(k.shape[-1], v.shape[-1])
    cache = np.full(size, unwritten, k.dtype)
    halves = [cache[:, i, ..., : x.shape[-1]] for i, x in enumerate((k, v))]
    for half, x in zip(halves, (k, v), strict=True):
        for i, j in np.ndindex(seqs, each):
            part = x[i, :, j * page : (j + 1) * page].swapaxes(0, 1)
            half[table[i, j], : len(part)] = part
    return *halves, table


def numbers(*shape, dtype=np.float32, seed=6):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


FEATURES = {
    "full": {},
    "causal": {"causal": True},
    "window": {"window": 20},
    "causal window": {"causal": True, "window": 33},
    "scale": {"scale": 0.7},
    "negative scale": {"scale": -0.3},
    "no scale": {"scale": 0.0},
    "mask": {"mask": mask_of(2, 1, 5, 200)},
    "mask of heads": {"mask": mask_of(4, 1, 200), "causal": True},
    "bias": {"bias": numbers(4, 5, 200, dtype=BF16)},
    "wide bias": {"bias": numbers(2, 1, 5, 200)},
    "softcap": {"softcap": 2.0, "causal": True},
    "slopes": {"slopes": numbers(4), "causal": True},
    "sinks": {"sinks": numbers(4), "lengths": ints(130, 0)},
    "lengths": {"lengths": ints(130, 7), "starts": ints(3, 100), "causal": True},
    "padding with holes": {
        **{"lengths": ints(130, 7), "starts": ints(3, 100), "mask": mask_of(2, 1, 1, 200)},
        **{"bias": numbers(5, 200)},
    },
    "queries": {"lengths": ints(130, 7), "query_lengths": ints(5, 2), "window": 20},
    "all": {
        **{"softcap": 3.0, "slopes": numbers(4), "sinks": numbers(4), "causal": True},
        **{"mask": mask_of(2, 4, 5, 200), "bias": numbers(5, 200), "lengths": ints(150, 200)},
    },
}


# -- kernels by name ----------------------------------------------------------------------------
PLAIN = {"window": 20, "lengths": ints(30, 3), "starts": ints(5, 7)}
WAYS = ({"causal": True}, PLAIN | {"mask": mask_of(2, 1, 1, 40)})
MASKED = {"causal": True, "mask": mask_of(5, 40)}, WAYS[1]
PLAINLY = WAYS[0], PLAIN
OF_PAGES = (16, {"lengths": ints(40, 13)}), (256, {"lengths": ints(30, 3), "window": 20})


def _arrays(spec, keys, *more):
    shapes = (2, 2, 5, spec.head_dim), (2, 1, keys, spec.head_dim), (2, 1, keys, spec.head_dim_v)
    return draw(2, *shapes, *more, dtype=NUMPY[spec.dtype])


def named(kind, dtype, head, head_v, rounded, part, wanted):
    """Returns the name of a kernel of type ``kind`` that takes all keys, or a split, of the first
    wanted route.
    """
    found = (r for r in TABLES["attention", "half"].routes if type(r.main) is kind)
    route = next(r for r in found if r.main.part == part and wanted(r))
    return route.of(Form(dtype, -(-head // 16) * 16, -(-head_v // 16) * 16, rounded)).name


def rounds(how):
    """Returns whether logits are rounded on their own, rather than scores times a
    positive scale.
    """
    return bool(how.keys() & {"softcap", "bias", "slopes"}) or how.get("scale", 1) <= 0


def cluster(dtype, head, head_v, **how):
    """Returns the name of the cluster kernel, which is not chosen for as few keys as here."""
    fits = lambda route: CLUSTER_WIDTH_MAX[route.main.cluster] >= head  # noqa: E731
    return named(ClusterSpec, dtype, head, head_v, rounds(how), "whole", fits)


def few_keys(dtype, head, head_v, warps, **how):
    """Returns the name of the kernel for few keys with ``warps`` warps."""
    wanted = lambda route: route.main.warps == warps  # noqa: E731
    return named(FewSpec, dtype, head, head_v, rounds(how), "whole", wanted)


def serves(route, rows, pairs, keys, head, head_v, paged=0, maps=0):
    """Returns whether a route's kernels serve a problem of these sizes on an H200."""
    sizes = {"ROWS": rows, "RAGGED": 1, "PAIRS": pairs, "KEYS": keys, "PAGED": paged, "SMS": 132}
    heads = {"DEPTH": head, "WIDTH": head_v, "MAPS": maps}
    return route.requires.evaluate(SPACE.environment(sizes | heads))


def check_forward(spec, keys, how, device, page=None):
    """Compares a kernel's results with the oracle's bits."""
    q, k, v = _arrays(spec, keys)
    if page:
        k, v, table = in_pages(k, v, page)
        how = how | {"block_table": table}
    compare(spec, (q, k, v), how, device)


def asked(spec):
    """Returns the route name by which calls ask for a kernel."""
    return f"{Step(MaskSpec()).label}+{spec.name}" if spec.mapped else spec.name


def compare(spec, arrays, how, device):
    """Raises AssertionError where a kernel has other bits than the oracle."""
    with ptxgen.use_device(device):
        got = ptxgen.attention(*arrays, return_lse=True, kernel=asked(spec), **how)
    for x, y in zip(got, reference.attention(*arrays, return_lse=True, **how), strict=True):
        same_bits(x, y, spec=spec.name, what=str(sorted(how)))


def check_gradients(spec, how, device):
    """Compares a kernel's gradients with the oracle's bits."""
    q, k, v, do = _arrays(spec, 40, (2, 2, 5, spec.head_dim_v))
    given = do, q, k, v, *reference.attention(q, k, v, return_lse=True, **how)
    with ptxgen.use_device(device):
        got = ptxgen.attention_grad(*given, kernel=asked(spec), **how)
    for x, y in zip(got, reference.attention_grad(*given, **how), strict=True):
        same_bits(x, y, spec=spec.name, what=str(sorted(how)))


def one_query(spec, device):
    """Checks slopes (ALiBi) for one query of grouped heads, whose tile has more rows than heads."""
    keys, values = (2, 2, 40, spec.head_dim), (2, 2, 40, spec.head_dim_v)
    q, k, v = draw(3, (2, 6, 1, spec.head_dim), keys, values, dtype=NUMPY[spec.dtype])
    how = {"slopes": numbers(6), "lengths": ints(40, 13)}
    if isinstance(spec, PagedSpec):
        k, v, how["block_table"] = in_pages(k, v, 16)
    compare(spec, (q, k, v), how, device)


def behind_the_last(spec, device):
    """Checks packed queries against pages, with tokens behind the last sequence."""
    q, k, v = draw(4, (5, 4, spec.head_dim), (2, 2, 40, spec.head_dim), (2, 2, 40, spec.head_dim_v),
                   dtype=NUMPY[spec.dtype])  # fmt: skip
    k, v, table = in_pages(k, v, 16)
    how = {"block_table": table, "lengths": ints(40, 13), "cu_seqlens": ints(0, 2, 3)}
    if spec.rounds_scores:
        how["slopes"] = numbers(4)
    compare(spec, (q, k, v), how, device)


def forward(name):
    """Returns the checks of a listed kernel."""
    return cases(SPECS[name])


def cases(spec):
    """Returns the checks of a kernel; kernels of a split of the keys get more keys than
    one split.
    """
    pages = not isinstance(spec, HopperSpec) or isinstance(spec, PagedSpec)
    if spec.rounds_scores:
        return [partial(one_query, spec), *([partial(behind_the_last, spec)] if pages else ())]
    if spec.part == "split":
        run = partial(check_forward, spec, SPLIT + 40)
        if spec.mapped:
            return [partial(run, {"causal": True, "mask": mask_of(5, SPLIT + 40)})]
        if not isinstance(spec, PagedSpec):
            return [partial(run, {"causal": True})]
        how = {"causal": True, "lengths": np.array([SPLIT + 40, SPLIT - 30], np.int32)}
        return [partial(run, how, page=page) for page in (16, 256)]  # the least and the most
    if isinstance(spec, PagedSpec):
        return [partial(check_forward, spec, 40, how, page=page) for page, how in OF_PAGES]
    found = [partial(check_forward, spec, 40, how) for how in (MASKED if spec.mapped else WAYS)]
    if isinstance(spec, (FewSpec, ClusterSpec)):  # they look pages up before they know their rows
        found.append(partial(behind_the_last, spec))
    return found


def gradients(name):
    """Returns the checks of a gradient kernel; Hopper's take no boolean masks, or maps of them."""
    spec = SPECS[name]
    ways = WAYS if not isinstance(spec, HopperGradSpec) else MASKED if spec.mapped else PLAINLY
    return [partial(check_gradients, SPECS[name], how) for how in ways]
