"""``gated_delta_rule`` and ``ssd``: bits, cuts, states, formulas, and what is refused."""

from __future__ import annotations

import delta_cases as cases
import ml_dtypes
import numpy as np
import pytest
from bits import same_bits
from delta_cases import RULE, SSD

import ptxgen
from ptxgen import reference
from ptxgen.errors import DtypeError, ShapeError
from ptxgen.runtime.cpu import CpuDevice

NAMES = (RULE, SSD)
SIZES = (2, 4, 24, 40)


@pytest.fixture(autouse=True)
def device():
    with ptxgen.use_device(CpuDevice()) as found:
        yield found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_bits(name, dtype, device):
    """Results have the oracle's bits for numbers of all kinds and for token counts that fill stages
    or not; without tokens the last state is the first.
    """
    how = {RULE: {"l2_norm": True, "scale": -0.7}, SSD: {"softplus": True}}[name]
    for tokens, kind in ((8, "wide"), (17, "special"), (1, "subnormal"), (0, "normal")):
        cases.check(name, None, SIZES, how, device, tokens=tokens, dtype=dtype, kind=kind)
        how = {}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows", [32, 64, 256])
def test_bits_of_every_route(name, rows, device):
    """Every route has the oracle's bits, also if a column of the state has few lanes or half a
    warp.
    """
    for kernel in cases.routes(name, rows):
        cases.check(name, kernel, (1, 1, rows, 72), {}, device, tokens=9, batch=1)


@pytest.mark.parametrize("name", NAMES)
def test_a_token_does_not_depend_on_how_the_sequence_is_cut(name):
    """A prompt, its parts and single steps; alone or in a batch; by any route."""
    sizes = 1, 2, 32, 16
    given, first = cases.draw(name, 7, 3, 21, sizes), cases.state(name, 8, 3, sizes)
    call = getattr(ptxgen, name)
    whole, last = call(**given, state=first, return_state=True)
    (only,) = cases.routes(name, 32)
    for kernel, lengths in ((None, [1] * 21), (only, [13, 8]), (None, [1, 9, 11])):
        found, now, at = [], first, 0
        for n in lengths:
            part = cases.cut(given, at, at + n)
            y, now = call(**part, state=now, return_state=True, kernel=kernel)
            found.append(y)
            at += n
        same_bits(np.concatenate(found, 1), whole, what=f"{kernel} {lengths}")
        same_bits(now, last, what=f"{kernel} {lengths}")
    alone = {n: x[1:2] if x.ndim > 2 else x for n, x in given.items()}
    same_bits(call(**alone, state=first[1:2]), whole[1:2])


def exact(name, given, first, states=False):
    """Computes the recurrence by its formula in f64; returns the last state too if ``states``."""
    given = {n: x.astype(np.float64) for n, x in given.items()}
    if name == RULE:
        q, k, v, g, beta = (given[n] for n in ("q", "k", "v", "g", "beta"))
        scale, skip, now = q.shape[-1] ** -0.5, 0, first.astype(np.float64)
    else:
        q, k, v = (given[n] for n in "cbx")
        beta = np.log1p(np.exp(given["dt"] + given["dt_bias"]))
        g, scale, skip = beta * given["a"], 1, given["d"][:, None]
        now = first.astype(np.float64).swapaxes(-1, -2)
    q, k = (np.repeat(x, v.shape[2] // x.shape[2], 2) for x in (q, k))
    found = np.empty_like(v)
    for t in range(v.shape[1]):
        now = now * np.exp(g[:, t])[..., None, None]
        answer = np.einsum("bhn,bhnp->bhp", k[:, t], now) if name == RULE else 0
        now = now + k[:, t, :, :, None] * (beta[:, t, :, None] * (v[:, t] - answer))[:, :, None]
        found[:, t] = scale * np.einsum("bhn,bhnp->bhp", q[:, t], now) + skip * v[:, t]
    last = now if name == RULE else now.swapaxes(-1, -2)
    return (found, last) if states else found


@pytest.mark.parametrize("name", NAMES)
def test_beside_exact_numbers(name):
    """Results are within 2^-14 of the largest one of exact numbers: each of 40 tokens rounds a
    state's numbers some ten times, to 2^-24 of what is added, and sums of rows as often.
    """
    given, first = cases.draw(name, 5, 2, 40, SIZES, "f32"), cases.state(name, 6, 2, SIZES)
    how = {SSD: {"softplus": True}, RULE: {}}[name]
    if name == RULE:
        given["k"] /= np.linalg.norm(given["k"], axis=-1, keepdims=True)
    got, true = (
        getattr(reference, name)(**given, state=first, **how),
        exact(name, given, first),
    )
    assert abs(got - true).max() < 2.0**-14 * abs(true).max()


@pytest.mark.parametrize("name", NAMES)
def test_arrays_may_lie_anywhere(name):
    """Views of one array, as of a convolution's result; what is written to, states in a view."""
    given = cases.draw(name, 9, 2, 5, SIZES, wide=False)
    first = cases.state(name, 9, 2, SIZES)
    call = getattr(ptxgen, name)
    whole, last = call(**given, state=first, return_state=True)
    apart = {n: np.concatenate([x, x], -1)[..., : x.shape[-1]] for n, x in given.items()}
    beside = np.concatenate([first[..., :1], first], -1)[..., 1:]
    held = np.zeros((2, 6, *whole.shape[2:]), whole.dtype)
    out = held[:, 1:], np.zeros((2, *last.shape), np.float32)[1]
    got = call(**apart, state=beside, return_state=True, out=out)
    assert got[0] is out[0] and not held[:, 0].any()
    same_bits(got[0], whole)
    same_bits(got[1], last)


@pytest.mark.parametrize("name", NAMES)
def test_the_last_state_may_take_the_place_of_the_first(name):
    given, first = cases.draw(name, 4, 2, 3, SIZES), cases.state(name, 4, 2, SIZES)
    call = getattr(ptxgen, name)
    y, last = call(**given, state=first, return_state=True)
    out = np.zeros_like(y), first
    got = call(**given, state=first, return_state=True, out=out)
    assert got[1] is first
    same_bits(got[0], y)
    same_bits(first, last)


def test_leading_dimensions_are_a_batch():
    given = cases.draw(RULE, 2, 6, 3, SIZES)
    more = {n: x.reshape(2, 3, *x.shape[1:]) for n, x in given.items()}
    whole, last = ptxgen.gated_delta_rule(**given, return_state=True)
    y, state = ptxgen.gated_delta_rule(**more, return_state=True)
    same_bits(y.reshape(whole.shape), whole)
    same_bits(state.reshape(last.shape), last)
    one = {n: x[0] for n, x in given.items()}
    same_bits(ptxgen.gated_delta_rule(**one), whole[0])


@pytest.mark.parametrize(
    ("name", "change", "error", "words"),
    [
        (RULE, {"state": np.zeros((2, 4, 40, 24), "f4")}, ShapeError, "state has"),
        (SSD, {"state": np.zeros((2, 4, 24, 40), "f4")}, ShapeError, "state has"),
        (RULE, {"state": np.zeros((2, 4, 24, 40), "f2")}, DtypeError, "state has"),
        (RULE, {"v": np.zeros((2, 5, 3, 40), ml_dtypes.bfloat16)}, ShapeError, "H"),
        (RULE, {"k": np.zeros((2, 5, 2, 24), "f4")}, DtypeError, "k has dtype float32"),
        (RULE, {"beta": np.zeros((2, 4, 4), "f4")}, ShapeError, "beta has shape"),
        (SSD, {"a": np.zeros(3, "f4")}, ShapeError, "a has shape"),
        (SSD, {"dt": np.zeros((2, 5, 4), "f2")}, DtypeError, "dt has dtype float16"),
        (
            SSD,
            {n: np.zeros((2, 5, 2, 20), ml_dtypes.bfloat16) for n in "bc"},
            ShapeError,
            "20 rows",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_name(name, change, error, words):
    given = cases.draw(name, 1, 2, 5, SIZES) | change
    with pytest.raises(error, match=words):
        getattr(ptxgen, name)(**given)


# -- gradients ----------------------------------------------------------------------------------
def gradients(name, given, first, how, dy, dstate):
    """Returns the gradients of result and last state by all arguments, on the current device."""
    pt = pytest.importorskip("ptxgen.torch")
    torch = pytest.importorskip("torch")
    tensors = [torch.from_numpy(x).requires_grad_() for x in (*given.values(), first)]
    named = dict(zip((*given, "state"), tensors, strict=True))
    y, last = getattr(pt, name)(**named, **how, return_state=True)
    seeds = [torch.from_numpy(dy), torch.from_numpy(dstate)]
    found = torch.autograd.grad([y, last], tensors, seeds)
    return {n: x.numpy() for n, x in zip(named, found, strict=True)}


@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_16_bits_are_those_of_the_same_numbers(name):
    """Gradients in f32 have the same bits whether other arguments are f16 or equal ones in f32."""
    rng, sizes = np.random.default_rng(12), (2, 4, 24, 16)
    given, first = cases.draw(name, 5, 1, 9, sizes, "f16"), cases.state(name, 6, 1, sizes)
    dy = rng.standard_normal(given["v" if name == RULE else "x"].shape, np.float32).astype("f2")
    wide = {n: x.astype("f4") for n, x in given.items()}
    found = gradients(name, given, first, {}, dy, first)
    expected = gradients(name, wide, first, {}, dy.astype("f4"), first)
    exact = [n for n, x in found.items() if x.dtype == np.float32]
    assert {"state"} < {*exact}
    for n in exact:
        same_bits(found[n], expected[n], what=n)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_beside_differences(name):
    """Gradients agree with central differences along a random direction for each argument: two
    values in f64 that are 2^-14 apart have a difference that is exact to some 2^-26, and gradients
    round a few hundred times to 2^-24.
    """
    rng, sizes = np.random.default_rng(11), (2, 4, 24, 72)
    given, first = cases.draw(name, 5, 1, 9, sizes, "f32"), cases.state(name, 6, 1, sizes)
    how = {SSD: {"softplus": True}, RULE: {}}[name]
    if name == RULE:
        given["k"] /= np.linalg.norm(given["k"], axis=-1, keepdims=True)
    dy = rng.standard_normal(given["v" if name == RULE else "x"].shape, np.float32)
    dstate = rng.standard_normal(first.shape, np.float32)
    found = gradients(name, given, first, how, dy, dstate)

    def value(changed):
        whole = {**given, "state": first} | changed
        y, last = exact(name, whole, whole.pop("state"), states=True)
        return (y * dy).sum() + (last * dstate).sum()

    for of, gradient in found.items():
        x = (first if of == "state" else given[of]).astype(np.float64)
        step = rng.standard_normal(x.shape) * 2.0**-15
        apart = value({of: x + step}) - value({of: x - step})
        expected, size = 2 * (gradient * step).sum(), 2 * abs(gradient * step).sum()
        assert abs(apart - expected) < 2.0**-14 * size, of
        assert size > 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("dtype", "rows"), [("f32", 24), ("bf16", 64), ("f16", 256)])
def test_bits_of_gradients(name, dtype, rows, device):
    """Both gradient walks have the oracle's bits, for numbers of all kinds and without tokens."""
    for tokens, kind in ((9, "normal"), (3, "special"), (0, "normal")):
        cases.check_gradients(name, (1, 2, rows, 72), device, tokens, dtype, kind)


def test_gradients_do_not_depend_on_the_batch():
    sizes = 1, 2, 32, 16
    given, first = cases.draw(SSD, 3, 3, 5, sizes, "f32"), cases.state(SSD, 3, 3, sizes)
    dy, how = np.ones((3, 5, 2, 16), np.float32), {"softplus": True}
    whole = gradients(SSD, given, first, how, dy, first)
    alone = {n: x[1:2] if x.ndim > 2 else x for n, x in given.items()}
    found = gradients(SSD, alone, first[1:2], how, dy[1:2], first[1:2])
    for of in ("x", "dt", "b", "c", "state"):
        same_bits(found[of], whole[of][1:2], what=of)
