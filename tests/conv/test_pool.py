"""Pooling: bits beside loops of NumPy, PyTorch's numbers, gradients, the block, graphs, errors."""

from __future__ import annotations

import itertools
from random import Random

import numpy as np
import pytest
from bits import same_bits
from ml_dtypes import bfloat16

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, ShapeError

DTYPES = (np.float32, bfloat16, np.float16, np.float64)


@pytest.fixture(autouse=True)
def _on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


def drawn(seed):
    """Images, a window, and how."""
    r, rng = Random(seed), np.random.default_rng(seed)
    rank = r.choice((1, 2, 2, 3))
    window = tuple(r.choice((1, 2, 3, 3, 4, 9 if rank < 3 else 2)) for _ in range(rank))
    stride = window if r.random() < 0.4 else tuple(r.choice((1, 2, 3)) for _ in window)
    padding = tuple(r.randint(0, k // 2) for k in window)
    size = tuple(r.randint(k, k + 8) for k in window)
    x = rng.standard_normal((r.choice((1, 3)), 2, *size)).astype(r.choice(DTYPES))
    kind = r.choice(("plain", "plain", "equal", "nan", "infinite"))
    if kind == "equal":
        x = np.round(x.astype("f4")).astype(x.dtype)
    if kind == "nan":
        x[rng.random(x.shape) < 0.1] = np.nan
    if kind == "infinite":
        x[0] = -np.inf
    return x, window, {"stride": stride, "padding": padding, "ceil": r.random() < 0.5}, r


def windows(x, window, stride, padding, ceil, dilation=None):
    """Yields each window's index and its elements' coordinates, also those outside the image."""
    dilation = dilation or (1,) * len(window)
    ranges = []
    for n, k, s, p, d in zip(x.shape[2:], window, stride, padding, dilation, strict=True):
        room, found = n + 2 * p - (k - 1) * d - 1, []
        for o in range((-(-room // s) if ceil else room // s) + 1):
            if o * s < n + p:
                found.append([o * s - p + j * d for j in range(k)])
        ranges.append(found)
    for at in itertools.product(*(range(len(r)) for r in ranges)):
        yield at, list(itertools.product(*(r[i] for r, i in zip(ranges, at, strict=True))))


def inside(place, x):
    return all(0 <= i < n for i, n in zip(place, x.shape[2:], strict=True))


def largest(x, places, least=False):
    """The first largest (least), or the last NaN, of each image, and where."""
    there = [p for p in places if inside(p, x)]
    best = np.full(x.shape[:2], np.inf if least else -np.inf, x.dtype)
    where = np.full(x.shape[:2], np.ravel_multi_index(there[0], x.shape[2:]))
    for place in there:
        value = x[(slice(None), slice(None), *place)]
        one, other = value.astype("f8"), best.astype("f8")
        taken = (one < other if least else one > other) | np.isnan(one)
        best = np.where(taken, value, best)
        where = np.where(taken, np.ravel_multi_index(place, x.shape[2:]), where)
    return best, where


def added(x, places):
    """The sum, in the contract's order."""
    wide = np.float64 if x.dtype == np.float64 else np.float32
    taps = [
        x[(slice(None), slice(None), *p)].astype(wide) if inside(p, x) else np.zeros((), wide)
        for p in places
    ]
    if len(taps) > 32:
        rows = np.stack([np.broadcast_to(t, x.shape[:2]) for t in taps], -1)
        return reference.sum(np.ascontiguousarray(rows), -1)
    total = np.broadcast_to(taps[0], x.shape[:2])
    for tap in taps[1:]:
        total = total + tap
    return total


def multiplied(x, places):
    """The product, in the contract's order."""
    wide = np.float64 if x.dtype == np.float64 else np.float32
    taps = [
        x[(slice(None), slice(None), *p)].astype(wide) if inside(p, x) else np.ones((), wide)
        for p in places
    ]
    if len(taps) > 32:
        rows = np.stack([np.broadcast_to(t, x.shape[:2]) for t in taps], -1)
        return reference.prod(np.ascontiguousarray(rows), -1)
    total = np.broadcast_to(taps[0], x.shape[:2])
    with np.errstate(all="ignore"):
        for tap in taps[1:]:
            total = total * tap
    return total


def collected(pairs, x, dtype):
    """Numbers of windows in their places."""
    pairs = list(pairs)
    shape = tuple(max(at[i] for at, _ in pairs) + 1 for i in range(x.ndim - 2))
    found = np.empty((*x.shape[:2], *shape), dtype)
    for at, value in pairs:
        found[(slice(None), slice(None), *at)] = value
    return found


@pytest.mark.parametrize("least", [False, True])
@pytest.mark.parametrize("seed", range(14))
def test_the_largest(seed, least):
    x, window, how, r = drawn(seed)
    x = -x if least else x
    name = "min_pool" if least else "max_pool"
    if r.random() < 0.3:
        how["dilation"] = tuple(
            2 if 2 * (k - 1) < n else 1 for k, n in zip(window, x.shape[2:], strict=True)
        )
    made = [(at, largest(x, places, least)) for at, places in windows(x, window, **how)]
    got, where = getattr(ptxgen, name)(x, window, **how)
    expected = collected(((at, v) for at, (v, _) in made), x, x.dtype)
    same_bits(got, expected, seed=seed, spec="", what=f"{name} {window} {how}")
    assert (where == collected(((at, w) for at, (_, w) in made), x, "i8")).all()
    oracle = getattr(reference, name)(x, window, **how)
    for one, other in zip((got, where), oracle, strict=True):
        same_bits(one, other, seed=seed, spec="", what=name)


@pytest.mark.parametrize("seed", range(14))
@pytest.mark.parametrize("padded", [True, False])
def test_means(seed, padded):
    x, window, how, r = drawn(seed)
    divisor = r.choice((0, 0, 5))
    wide = np.float64 if x.dtype == np.float64 else np.float32
    sizes = [n + p * padded for n, p in zip(x.shape[2:], how["padding"], strict=True)]

    def mean(places):
        counted = [
            p
            for p in places
            if all(q < n for q, n in zip(p, sizes, strict=True)) and (padded or min(p) >= 0)
        ]
        return added(x, places) / wide(divisor or len(counted))

    expected = collected(
        ((at, mean(places)) for at, places in windows(x, window, **how)), x, x.dtype
    )
    given = {**how, "count_padding": padded, "divisor": divisor}
    got = ptxgen.avg_pool(x, window, **given)
    same_bits(got, expected, seed=seed, spec="", what=f"avg_pool {window} {given}")
    same_bits(reference.avg_pool(x, window, **given), expected, seed=seed, spec="", what="oracle")


@pytest.mark.parametrize("seed", range(8))
def test_sums_and_products(seed):
    x, window, how, _ = drawn(seed)
    of = list(windows(x, window, **how))
    expected = collected(((at, added(x, places)) for at, places in of), x, x.dtype)
    for room in (ptxgen, reference):
        got = room.sum_pool(x, window, **how)
        same_bits(got, expected, seed=seed, spec="", what=f"sum_pool {window} {how}")
    expected = collected(((at, multiplied(x, places)) for at, places in of), x, x.dtype)
    for room in (ptxgen, reference):
        got = room.prod_pool(x, window, **how)
        same_bits(got, expected, seed=seed, spec="", what=f"prod_pool {window} {how}")


@pytest.mark.parametrize("size", [(3, 4), (1, 1), (7, 5), (9, 8)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_adaptive_ones(size, dtype):
    x = np.random.default_rng(0).standard_normal((2, 3, 7, 10)).astype(dtype)
    wide = np.float64 if dtype is np.float64 else np.float32
    spans = []
    for n, o in zip(x.shape[2:], size, strict=True):
        ends = [(i * n // o, -(-(i + 1) * n // o)) for i in range(o)]
        most = max(e - s for s, e in ends)
        spans.append([[j if j < e else n for j in range(s, s + most)] for s, e in ends])
    tops, means = [], []
    for at in itertools.product(*map(range, size)):
        places = list(itertools.product(*(s[i] for s, i in zip(spans, at, strict=True))))
        count = sum(inside(p, x) for p in places)
        tops.append((at, largest(x, places)))
        means.append((at, added(x, places) / wide(count)))
    best, where = ptxgen.adaptive_max_pool(x, size)
    assert (best == collected(((at, v) for at, (v, _) in tops), x, dtype)).all()
    assert (where == collected(((at, w) for at, (_, w) in tops), x, "i8")).all()
    got = ptxgen.adaptive_avg_pool(x, size)
    same_bits(got, collected(means, x, dtype), seed=0, spec="", what=f"adaptive {size}")
    same_bits(reference.adaptive_avg_pool(x, size), got, seed=0, spec="", what="oracle")


CALLS = {
    "max": lambda of, x: of.max_pool(x, (3, 2), stride=2, padding=1)[0],
    "max, dilated": lambda of, x: of.max_pool(x, (3, 3), stride=1, dilation=2)[0],
    "avg": lambda of, x: of.avg_pool(x, (3, 3), stride=2, padding=1, count_padding=False),
    "avg, all": lambda of, x: of.avg_pool(x, (9, 10)),
    "avg, many": lambda of, x: of.avg_pool(x, (7, 9), stride=1),
    "min": lambda of, x: of.min_pool(x, (3, 2), stride=2, padding=1)[0],
    "sum": lambda of, x: of.sum_pool(x, (3, 3), stride=2, padding=1),
    "prod": lambda of, x: of.prod_pool(x, (3, 3), stride=2, padding=1, dilation=(1, 2)),
    "prod, many": lambda of, x: of.prod_pool(x, (5, 7), stride=1),
    "adaptive max": lambda of, x: of.adaptive_max_pool(x, (4, 3))[0],
    "adaptive avg": lambda of, x: of.adaptive_avg_pool(x, (4, 3)),
}


@pytest.mark.parametrize("name", CALLS)
def test_images_do_not_depend_on_the_batch(name):
    x = np.random.default_rng(1).standard_normal((7, 3, 9, 10)).astype(bfloat16)
    whole = CALLS[name](ptxgen, x)
    for count in (1, 3, 7):
        assert (CALLS[name](ptxgen, x[7 - count :]) == whole[7 - count :]).all()
    turned = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    assert (CALLS[name](ptxgen, turned) == whole).all()


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda x: ptxgen.max_pool(x, (7, 3)), "larger than the padded image"),
        (lambda x: ptxgen.avg_pool(x, (7, 3)), "larger than the padded image"),
        (lambda x: ptxgen.max_pool(x, (3, 3), padding=2), "padding is .*; takes at most half"),
        (lambda x: ptxgen.avg_pool(x, (2, 2), stride=0), "stride is .*; takes numbers from 1"),
        (lambda x: ptxgen.max_pool(x, (2, 2), dilation=(1, 0)), "dilation is"),
        (lambda x: ptxgen.max_pool(x, (2, 2), stride=(1, 1, 1)), "stride is .*; takes one number"),
        (lambda x: ptxgen.max_pool(x, (0, 2)), "window is .*; takes numbers from 1"),
        (lambda x: ptxgen.max_pool(x, (1, 1, 1, 1)), "window is .*takes 1 to 3 sizes"),
        (lambda x: ptxgen.avg_pool(x[0, 0, 0], (2, 2)), "window is .*takes 1 to 3 sizes"),
        (lambda x: ptxgen.avg_pool(x, ()), "window is .*takes 1 to 3 sizes"),
        (lambda x: ptxgen.avg_pool(x, 2), "window is 2; takes integers"),
        (lambda x: ptxgen.adaptive_avg_pool(x, (0, 2)), "size is .*takes 1 to 3 sizes from 1"),
        (lambda x: ptxgen.adaptive_max_pool(x[..., :0], (2, 2)), "no empty images"),
    ],
)
def test_what_bad_input_gets(wrong, text):
    with pytest.raises(ShapeError, match=text):
        wrong(np.zeros((2, 3, 6, 5), np.float32))
    with pytest.raises(DtypeError, match="x has dtype int32"):
        ptxgen.max_pool(np.zeros((2, 6, 5), np.int32), (2, 2))
    with pytest.raises(DtypeError, match="x has dtype int32"):
        ptxgen.prod_pool(np.zeros((2, 6, 5), np.int32), (2, 2))


def test_batches_of_none():
    none = np.zeros((0, 3, 6, 5), np.float32)
    assert ptxgen.max_pool(none, (2, 2))[1].shape == (0, 3, 3, 2)
    assert ptxgen.adaptive_avg_pool(none, (4, 4)).shape == (0, 3, 4, 4)


# -- PyTorch ----------------------------------------------------------------------------------
def products(torch, x, window, stride, padding, dilation):
    """Products of windows, by views of the image padded with ones."""
    (p, q), (d, e) = padding, dilation
    x = torch.nn.functional.pad(x, (q, q, p, p), value=1.0)
    k, m = window
    x = x.unfold(2, (k - 1) * d + 1, stride[0]).unfold(3, (m - 1) * e + 1, stride[1])
    return x[..., ::d, ::e].prod(-1).prod(-1)


ELEMENTS = {
    **{"max": 6, "max, dilated": 9, "min": 6, "adaptive max": 20, "adaptive avg": 20},
    **{"avg": 9, "avg, all": 90, "avg, many": 63, "sum": 9, "prod": 9, "prod, many": 35},
}
"""Most elements of a window, and most windows that have one element."""


def check_rounding(torch, pairs, roundings):
    """Fails unless results are as near to those in f64 as that many roundings of their terms, one
    after the other, imply. ``pairs``: results, those in f64, and the sums of terms' magnitudes.
    """
    for found, expected, magnitude in pairs:
        off = (found.double() - expected).abs()
        assert (off <= roundings * 2.0**-24 * magnitude.abs()).all(), (off / magnitude).max()


@pytest.mark.parametrize("name", CALLS)
def test_gradients_are_gathered(name):
    """Gradients repeat, do not depend on the batch, and are as near to PyTorch's in f64 as their
    roundings imply: of a product or a sum of a window, of a sum over windows, and of a mean.
    """
    torch = pytest.importorskip("torch")
    import ptxgen.torch as ours

    f = torch.nn.functional
    plain = {
        "max": lambda x: f.max_pool2d(x, (3, 2), 2, 1),
        "max, dilated": lambda x: f.max_pool2d(x, 3, 1, 0, 2),
        "avg": lambda x: f.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        "avg, all": lambda x: f.avg_pool2d(x, (9, 10)),
        "avg, many": lambda x: f.avg_pool2d(x, (7, 9), 1),
        "min": lambda x: -f.max_pool2d(-x, (3, 2), 2, 1),
        "sum": lambda x: f.avg_pool2d(x, 3, 2, 1, divisor_override=1),
        "prod": lambda x: products(torch, x, (3, 3), (2, 2), (1, 1), (1, 2)),
        "prod, many": lambda x: products(torch, x, (5, 7), (1, 1), (0, 0), (1, 1)),
        "adaptive max": lambda x: f.adaptive_max_pool2d(x, (4, 3)),
        "adaptive avg": lambda x: f.adaptive_avg_pool2d(x, (4, 3)),
    }[name]
    torch.manual_seed(0)
    x = torch.randn(2, 3, 9, 10).requires_grad_()
    fine = x.detach().double().requires_grad_()
    y, z = CALLS[name](ours, x), plain(fine)
    dy = torch.randn(y.shape)
    (found,) = torch.autograd.grad(y, x, dy, retain_graph=True)
    (again,) = torch.autograd.grad(y, x, dy)
    (expected,) = torch.autograd.grad(z, fine, dy.double())
    assert torch.equal(found, again) and found.any()
    chosen = "max" in name or name == "min"  # one element of a window, the same in f64
    sizes = fine if chosen else fine.detach().abs().requires_grad_()
    (most,) = torch.autograd.grad(plain(sizes), sizes, dy.double().abs())
    check_rounding(torch, [(y, z, plain(sizes))], 0 if chosen else ELEMENTS[name] + 1)
    check_rounding(torch, [(found, expected, most)], (2 - chosen) * ELEMENTS[name] + 2)
    alone = x[1:].detach().requires_grad_()
    (found_alone,) = torch.autograd.grad(CALLS[name](ours, alone), alone, dy[1:])
    assert torch.equal(found_alone, found[1:])


def modules(torch, kind):
    def layer(name, *args, **how):
        return getattr(torch.nn, f"{name}{kind}d")(*args, **how)

    yield f"max_pool{kind}d_with_indices", layer("MaxPool", 3, 2, 1)
    yield f"avg_pool{kind}d", layer("AvgPool", 3, 2, 1, ceil_mode=True)
    yield f"_adaptive_avg_pool{kind}d", layer("AdaptiveAvgPool", 4)
    yield f"adaptive_max_pool{kind}d", layer("AdaptiveMaxPool", 4)


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_modules_in_the_block(kind):
    torch = pytest.importorskip("torch")
    from ptxgen.torch import batch_invariant

    x = torch.randn(3, 2, *[7] * kind, generator=torch.Generator().manual_seed(kind))
    for name, module in modules(torch, kind):
        given, fine = x.clone().requires_grad_(), x.double().requires_grad_()
        with batch_invariant(watch=True) as block:
            y = module(given)
            y.square().sum().backward()
            alone = module(x[1:2].requires_grad_())
        z = module(fine)
        (expected,) = torch.autograd.grad(z.square().sum(), fine)
        assert torch.equal(y[1:2], alone)
        chosen, elements = "max" in name, 3**kind  # one element of a window, the same in f64
        sizes = (fine if chosen else fine.abs()).detach().requires_grad_()
        size = module(sizes)
        (most,) = torch.autograd.grad(size, sizes, 2 * size.detach().abs())
        check_rounding(torch, [(y, z, size)], 0 if chosen else elements + 1)
        check_rounding(torch, [(given.grad, expected, most)], (2 - chosen) * elements + 3)
        assert not block.unknown, (name, block.report())
        known = name if kind > 1 else name.replace("1d", "2d")
        assert block.served[known] == 2 and block.served[f"{known}_backward"] == 1


def test_graphs_lower_them():
    torch = pytest.importorskip("torch")
    from ptxgen.torch import Backend

    f = torch.nn.functional

    def model(x):
        x = f.avg_pool2d(f.max_pool2d(x, 3, 2, 1), 2, 1)
        return f.adaptive_max_pool2d(x, 3) * f.adaptive_avg_pool2d(x, 3)

    backend = Backend()
    x = torch.randn(2, 3, 12, 11, generator=torch.Generator().manual_seed(1))
    given, fine = x.clone().requires_grad_(), x.double().requires_grad_()
    y, z = torch.compile(model, backend=backend)(given), model(fine)
    y.sum().backward()
    (expected,) = torch.autograd.grad(z.sum(), fine)
    # Roundings: 4 of a mean of 4 elements, 10 of one of 9, and the product's; a gradient has those
    # of the factors, and of sums over 9, 4 and 9 windows.
    largest = f.max_pool2d(fine, 3, 2, 1)
    means, size = (f.avg_pool2d(x, 2, 1) for x in (largest, largest.detach().abs()))
    factors = f.adaptive_max_pool2d(size, 3), f.adaptive_avg_pool2d(size, 3)
    check_rounding(torch, [(y, z, factors[0] * factors[1])], 4 + 4 + 10 + 1)
    pools = f.adaptive_max_pool2d(means, 3), f.adaptive_avg_pool2d(means, 3)
    (most,) = torch.autograd.grad(pools, fine, factors[::-1])
    check_rounding(torch, [(given.grad, expected, most)], 4 + 10 + 1 + 10 + 5 + 9 + 2)
    report = backend.report()
    assert not report.unknown and not any("pool" in name for name in report.torch), report
    torch._dynamo.reset()
