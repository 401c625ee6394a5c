"""Complex numbers: kernels and oracle bit for bit, NumPy's values, special values and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from bits import same_bits
from pointwise_cases import LAYOUTS

import ptxgen
from ptxgen import functions as f
from ptxgen import graph, layout, reference
from ptxgen.errors import DtypeError, FormulaError, ShapeError
from ptxgen.numerics.complex import atan2, hypot
from ptxgen.numerics.dtype import PARTS
from ptxgen.oracle.formula import call

SEED = 4
KINDS = ("c8", "c16")
NUMPY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "conj": np.conj,
    "real": np.real,
    "imag": np.imag,
    "abs": np.abs,
    "angle": np.angle,
    "eq": np.equal,
    "ne": np.not_equal,
}
SPECIAL = (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan)
LONG = np.longdouble


@pytest.fixture(autouse=True)
def _on_cpu():
    with ptxgen.use_device("cpu"):
        yield


def drawn(rng, shape, kind):
    """Complex numbers with parts of many sizes."""
    parts = rng.standard_normal((*shape, 2)) * 2.0 ** rng.integers(-9, 9, (*shape, 2))
    return parts.astype(np.dtype(kind).type(0).real.dtype).view(kind)[..., 0]


def parts(x):
    """The parts of complex numbers as one array; real numbers as they are."""
    return np.stack([x.real, x.imag], -1) if x.dtype.kind == "c" else x


def same(got, wanted, what=""):
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), what
    if got.dtype == bool:
        np.testing.assert_array_equal(got, wanted)
    else:
        same_bits(parts(got), parts(wanted), seed=SEED, what=what)


def every_pair(kind):
    """All pairs of numbers with special parts, as two arrays."""
    one = np.array([[a, b] for a in SPECIAL for b in SPECIAL], np.dtype(kind).type(0).real.dtype)
    one = one.view(kind)[:, 0]
    return np.repeat(one, one.size), np.tile(one, one.size)


# -- arithmetic ---------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NUMPY)
def test_bits_are_the_oracles_and_values_numpys(name, kind) -> None:
    """Random numbers within some ulp of NumPy in more bits; special ones where both are finite or
    infinite alike.
    """
    rng, op = np.random.default_rng(SEED), getattr(f, name)
    count = len(op.arguments)
    given = [drawn(rng, (3, 43), kind) for _ in range(count)]
    found = op(*given)
    same(found, op.reference(*given), name)
    truth = NUMPY[name](*(x.astype(np.clongdouble) for x in given))
    if found.dtype == bool:
        np.testing.assert_array_equal(found, truth)
    else:
        size = np.abs(given[0] * given[1]) if name == "mul" else np.abs(truth)
        off = np.abs(found - truth) / np.maximum(size, np.finfo(found.dtype).tiny)
        assert off.max() < 5 * np.finfo(found.dtype).eps
    odd = every_pair(kind)[:count]
    same(op(*odd), op.reference(*odd), name)


@pytest.mark.parametrize("kind", KINDS)
def test_special_values_are_those_of_numpy(kind) -> None:
    """Sums agree in every bit; quotients by zero, magnitudes and angles in value."""
    x, y = every_pair(kind)
    with np.errstate(all="ignore"):
        for name in ("add", "sub", "neg", "conj", "eq", "ne", "real", "imag"):
            op = getattr(f, name)
            same(op(*(x, y)[: len(op.arguments)]), NUMPY[name](*(x, y)[: len(op.arguments)]), name)
        by_zero = y == 0
        quotient = f.div(x, y)
        for part in ("real", "imag"):
            np.testing.assert_array_equal(
                getattr(quotient, part)[by_zero], getattr(x / y, part)[by_zero]
            )
        np.testing.assert_array_equal(f.abs(x), np.abs(x))
        found, wanted = f.angle(x), np.angle(x)
        there = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found)[there], np.signbit(wanted)[there])
        np.testing.assert_allclose(found, wanted, rtol=3 * np.finfo(found.dtype).eps)


def test_products_are_symmetric_and_norms_real() -> None:
    """No product is fused with a sum: z w = w z, and z conj(z) has no imaginary part."""
    rng = np.random.default_rng(SEED)
    z, w = drawn(rng, (500,), "c8"), drawn(rng, (500,), "c8")
    same(f.mul(z, w), f.mul(w, z))
    assert not f.mul(z, f.conj(z)).imag.any()
    a, b, c, d = z.real, z.imag, w.real, w.imag
    np.testing.assert_array_equal(f.mul(z, w).real, a * c - b * d)
    np.testing.assert_array_equal(f.mul(z, w).imag, a * d + b * c)


@pytest.mark.parametrize("kind", KINDS)
def test_quotients_and_magnitudes_do_not_overflow(kind) -> None:
    """Results near both ends of the range are right, though squares of the parts are not."""
    ends = np.finfo(kind)
    for size in (ends.max / 8, ends.tiny * 8, ends.smallest_subnormal * 1024):
        z = np.array([3 + 4j, -4 + 3j, 3 - 4j], "c16") * float(size)
        w = np.array([1 + 1j, 2 - 1j, 1j], "c16") * float(size)
        z, w = z.astype(kind) / 4, w.astype(kind)
        # Magnitudes are rounded to the spacing of subnormal numbers, quotients are near 1.
        for found, wanted, least in (
            (f.abs(z), np.abs(z.astype(np.clongdouble)), float(ends.smallest_subnormal)),
            (f.div(z, w), z.astype(np.clongdouble) / w.astype(np.clongdouble), 0.0),
        ):
            off = np.abs(found - wanted)
            assert (off <= 5 * ends.eps * np.abs(wanted) + least).all(), size
        same(f.abs(z), f.abs.reference(z))
        same(f.div(z, w), f.div.reference(z, w))
    one = np.array([1, 1j, -1], kind)
    np.testing.assert_array_equal(f.div(one * ends.max, one), np.full(3, ends.max, kind))


def test_real_operands_have_no_imaginary_part() -> None:
    """An infinite part times a real number gives no NaN, and a sum keeps -0; dtypes as NumPy."""
    z = np.array([complex(np.inf, -2), complex(1, -0.0)], "c8")
    np.testing.assert_array_equal(f.mul(z, 2.0), [complex(np.inf, -4), complex(2, -0.0)])
    assert np.signbit(f.add(z, 1.0).imag).all() and np.signbit(f.sub(z, 1.0).imag).all()
    np.testing.assert_array_equal(f.div(z, 2.0).real, [np.inf, 0.5])
    kinds = "f2", "f4", "f8", "c8", "c16"
    for op in (f.add, f.sub, f.mul, f.div):
        for one in kinds:
            for other in kinds:
                if "c" in one + other:
                    x, y = np.ones(3, one), np.ones(3, other)
                    assert op.reference(x, y).dtype == np.result_type(one, other)
        for x, y in ((z, np.ones(2, "f4")), (np.ones(2, "f8"), z), (1.5, z)):
            same(op(x, y), op.reference(x, y))


@pytest.mark.skipif(np.finfo(LONG).nmant < 63, reason="long double has no more bits than float64")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_errors_of_hypot_and_atan2(dtype) -> None:
    """The docs' largest errors, in ulp, of 200,000 points of all sizes and directions."""
    rng = np.random.default_rng(SEED)
    far = 30 if dtype == "f4" else 300
    x, y = (
        (rng.standard_normal(200_000) * 2.0 ** rng.integers(-far, far, 200_000)).astype(dtype)
        for _ in range(2)
    )
    near = rng.standard_normal(100_000)
    x[:100_000], y[:100_000] = near, rng.standard_normal(100_000)
    for function, truth, most in (
        (hypot, np.hypot, {"f4": 1.0, "f8": 1.0}),
        (atan2, np.arctan2, {"f4": 1.5, "f8": 2.6}),
    ):
        found, exact = call(function, x, y), truth(x.astype(LONG), y.astype(LONG))
        off = np.abs(found - exact) / np.spacing(np.abs(exact).astype(dtype))
        assert 0.5 * most[dtype] < off.max() <= most[dtype], (function.name, off.max())


# -- arrays -------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_moves_keep_every_bit(kind) -> None:
    """Copies, concatenation, padding, rolls, gathers and selections, also of NaNs and -0."""
    z, w = (x[: 5 * 7].reshape(5, 7) for x in every_pair(kind))
    z, at = z[:, ::-1], np.array([3, 0, 4, 4])
    there = np.arange(35).reshape(5, 7) % 3 == 0
    for got, wanted in (
        (layout.contiguous(z.T), z.T),
        (layout.concat([z, w], 1), np.concatenate([z, w], 1)),
        (layout.pad(z, [(1, 0), (2, 1)], 3), np.pad(z, [(1, 0), (2, 1)], constant_values=3)),
        (ptxgen.roll(z, 2, 1), np.roll(z, 2, 1)),
        (reference.roll(z, 2, 1), np.roll(z, 2, 1)),
        (ptxgen.gather(np.ascontiguousarray(z), at, 1), z[:, at]),
        (reference.gather(z, at, 0), z[at]),
        (ptxgen.embedding(np.ascontiguousarray(z), at), z[at]),
        (f.where(there, z, w), np.where(there, z, w)),
        (f.complex(z.real, w.imag), _joined(z.real, w.imag)),
        (f.cast(z.real, z.dtype), _joined(z.real, 0)),
    ):
        np.testing.assert_array_equal(
            np.ascontiguousarray(got).view("u1"), np.ascontiguousarray(wanted).view("u1")
        )


def _joined(re, im):
    found = np.empty(re.shape, {4: "c8", 8: "c16"}[re.itemsize])
    found.real, found.imag = re, im
    return found


@pytest.mark.parametrize("name", ["flat, a tail", "a bias", "one turned", "pitched", "odd rows"])
def test_arrays_of_any_layout(name) -> None:
    rng = np.random.default_rng(SEED)
    (*lies, to), _ = LAYOUTS[name]
    for kind in KINDS:
        x, y = (strided_of(lie, drawn(rng, (lie.size,), kind)) for lie in lies)
        out = strided_of(to, np.zeros(to.size, kind))
        f.mul(x, y, out=out)
        same(out, f.mul.reference(x, y), f"{name} {kind}")


def strided_of(lie, base):
    """Returns a view of ``base`` with this layout."""
    steps = tuple(s * base.itemsize for s in lie.strides)
    return np.lib.stride_tricks.as_strided(base[lie.offset :], lie.shape, steps)


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_those_of_the_parts(kind) -> None:
    z = drawn(np.random.default_rng(SEED), (5, 7, 3), kind)
    for name in ("sum", "mean"):
        op, oracle = getattr(ptxgen, name), getattr(reference, name)
        for axis, keep in ((None, False), (1, True), ((0, 2), False), (-1, False)):
            found = op(z, axis, keepdims=keep)
            same(found, oracle(z, axis, keepdims=keep), name)
            same(found.real.copy(), op(z.real, axis, keepdims=keep), name)
        out = np.empty((5, 3), kind)
        assert op(z, 1, out=out) is out
        same(out, op(z, 1))


def test_views_and_captures() -> None:
    """A complex array is pairs of reals, also inside a program, and fused steps keep the bits."""
    rng = np.random.default_rng(SEED)
    z, w = drawn(rng, (5, 7), "c8"), drawn(rng, (5, 7), "c8")
    pairs = layout.view_as_real(z[::-1, 1::2])
    assert pairs.shape == (5, 3, 2) and np.shares_memory(pairs, z)
    same(layout.view_as_complex(pairs), z[::-1, 1::2])

    def function(z, w):
        y = z * w + z.conj()
        pairs = layout.view_as_real(y)
        again = layout.view_as_complex(pairs[::-1])
        return y.real, pairs, again, abs(again), layout.view_as_complex(f.copy(pairs[:, :6]))

    plain = ptxgen.capture(function, z, w, passes=lambda p: p)(z, w)
    for one, other in zip(ptxgen.capture(function, z, w)(z, w), plain, strict=True):
        same(one, other)
    y = f.add.reference(f.mul.reference(z, w), z.conj())
    for got, wanted in zip(
        plain,
        (y.real, layout.view_as_real(y), y[::-1], f.abs.reference(y[::-1]), y[:, :6]),
        strict=True,
    ):
        same(got, np.ascontiguousarray(wanted))


def test_a_graph_of_another_framework() -> None:
    b = graph.Builder("spectrum", device="cpu")
    pairs = b.input("pairs", (3, 5, 2), "float32")
    z = b.view_as_complex(pairs)
    assert (z.shape, z.dtype) == ((3, 5), "complex64")
    turned = b.view_as_complex(b.permute(b.input("planes", (2, 3, 5), "f32"), (1, 2, 0)))
    b.output(b.view_as_real(b.mul(z, b.conj(turned))), b.abs(z))
    with pytest.raises(DtypeError, match="x has dtype float32; takes complex64 or complex128"):
        b.view_as_real(pairs)
    with pytest.raises(ShapeError, match=r"x has shape \[3, 5\]; takes \[..., 2\]"):
        b.view_as_complex(b.abs(z))
    rng = np.random.default_rng(SEED)
    x, planes = (rng.standard_normal(s).astype("f4") for s in ((3, 5, 2), (2, 3, 5)))
    product, size = ptxgen.capture(b.program())(x, planes)
    z, w = layout.view_as_complex(x), planes[0] + 1j * planes[1]
    same(product, layout.view_as_real(f.mul.reference(z, w.conj())))
    same(size, f.abs.reference(z))


def test_saved_programs(tmp_path) -> None:
    z = drawn(np.random.default_rng(SEED), (5, 7), "c16")
    ptxgen.capture(lambda z: (f.mul(z, z), layout.view_as_real(z)), z).save(tmp_path / "z.ptxgen")
    found = ptxgen.load(tmp_path / "z.ptxgen")(z)
    same(found[0], f.mul.reference(z, z))
    same(found[1], layout.view_as_real(z))


# -- formulas -------------------------------------------------------------------------------------
def test_pointwise_functions_compute_with_complex_values() -> None:
    @ptxgen.pointwise
    def turned(z, angle, scale=2.0):
        y = f.where(abs(z) > 1, z * f.polar(1.0, angle), (1 - 2j) / z)
        return y * scale - 1j, f.angle(y) * f.imag(y)

    rng = np.random.default_rng(SEED)
    z, angle = drawn(rng, (4, 9), "c8"), rng.standard_normal((4, 9)).astype("f4")
    found = turned(z, angle)
    for got, wanted in zip(found, turned.reference(z, angle), strict=True):
        same(got, wanted)
    rotated = np.where(np.abs(z) > 1, z * np.exp(1j * angle), (1 - 2j) / z)
    np.testing.assert_allclose(found[0], rotated * 2 - 1j, rtol=2e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_drops_the_imaginary_part(kind) -> None:
    z = np.ones((4, 4), kind)
    full = {"c8": "complex64", "c16": "complex128"}[kind]
    real = PARTS[full]
    for asked, error, says in (
        (lambda: f.lt(z, z), DtypeError, f"x has dtype {full}"),
        (lambda: f.maximum(z, z), DtypeError, f"x has dtype {full}"),
        (lambda: f.exp(z), DtypeError, f"x has dtype {full}"),
        (lambda: ptxgen.softmax(z), DtypeError, f"x has dtype {full}"),
        (lambda: ptxgen.prod(z), DtypeError, f"x has dtype {full}"),
        (lambda: ptxgen.var(z), DtypeError, f"x has dtype {full}"),
        (lambda: ptxgen.cumsum(z), DtypeError, f"x has dtype {full}"),
        (lambda: ptxgen.matmul(z, z), DtypeError, f"a has dtype {full}"),
        (lambda: f.cast(z, real), FormulaError, "would drop the imaginary part"),
        (lambda: f.add(z, z, out=np.empty((4, 4), real)), DtypeError, f"{real}; .* {full} can"),
        (lambda: f.abs(z, out_dtype=full), DtypeError, f"{full}; .* computed in"),
        (lambda: f.mul(z, np.ones(4, int)), FormulaError, "cast the integers"),
        (lambda: f.mul(z, 1j), DtypeError, "y is 1j, a Python complex number"),
        (lambda: f.imag(z.real), FormulaError, "imag takes a complex value"),
        (lambda: layout.view_as_real(z.real), DtypeError, f"x has dtype {real}"),
        (lambda: layout.view_as_complex(z), DtypeError, f"x has dtype {full}"),
        (lambda: layout.view_as_complex(z.real), ShapeError, r"takes \[..., 2\]"),
        (lambda: ptxgen.sum(z, out=np.empty((), real)), DtypeError, f"out has dtype {real}"),
    ):
        with pytest.raises(error, match=says):
            asked()
    lower = ptxgen.pointwise(lambda x, y: x < y)
    with pytest.raises(FormulaError, match="lt takes no complex values"):
        lower(z, z)
