"""Pointwise functions: kernels against the oracle, calls, dtypes, errors."""

from __future__ import annotations

import builtins
import inspect
import itertools
import keyword

import numpy as np
import pytest
from bits import same_bits
from pointwise_cases import BYTES, KINDS, LAYOUTS, computed, drawn, scaled, strided

import ptxgen
from ptxgen import functions as f
from ptxgen.errors import DtypeError, FormulaError, OptionError, PtxgenError, ShapeError
from ptxgen.numerics.dtype import FULL
from ptxgen.ops.pointwise import LoopNest, collapse
from ptxgen.ops.pointwise_table import ROWS
from ptxgen.program.buffer import imagined
from ptxgen.program.launch import serving
from ptxgen.runtime.arrays import DeviceArray
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.runtime.registry import default_device
from ptxgen.spec.pointwise import INDEXINGS, Form, magic

SEED = 20261


@pytest.fixture(autouse=True)
def _on_cpu():
    with ptxgen.use_device("cpu"):
        yield


@pytest.fixture(scope="module")
def device():
    return CpuDevice()


@ptxgen.pointwise
def mixed(x, y, s):
    return f.where(x > y, x * s, f.fma(x, y, s))


def equal(found, wanted, what="") -> None:
    """Bit for bit, any NaN like any other."""
    found = found if isinstance(found, tuple) else (found,)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), what
        if a.dtype.kind in "iub":
            np.testing.assert_array_equal(a, b, str(what))
        else:
            same_bits(a, b, seed=SEED, what=str(what))


# -- kernels ------------------------------------------------------------------------------------
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["bf16", "f32"])
def test_every_kernel_gives_the_bits_of_the_oracle(device, layout, kind) -> None:
    """The one that serves such arrays, and every other that can; and writes nowhere else."""
    lies, way = LAYOUTS[layout]
    if kind == "f32" and way in ("flat", "any"):
        pytest.skip("alike in both")
    rng = np.random.default_rng(SEED)
    bases = [drawn(kind, lie.size + 5, rng) for lie in lies]
    x, y = (strided(lie, base) for lie, base in zip(lies[:2], bases[:2], strict=True))
    wanted = bases[2].copy()
    strided(lies[2], wanted)[...] = mixed.reference(x, y, 0.3)
    places = (lies[0], lies[1], None, lies[2])
    out = np.empty_like(bases[2])
    problem = computed(device, mixed, places, (*bases[:2], 0.3, bases[2]), (out,))
    same_bits(out, wanted, seed=SEED, what=layout)
    names = {route.main.indexing: route.name for route in serving(problem, device.sms)}
    taken = [w for w in INDEXINGS if w in names]
    assert taken[0] == way
    for other in taken[1:]:
        out[...] = 0
        computed(device, mixed, places, (*bases[:2], 0.3, bases[2]), (out,), names[other])
        same_bits(out, wanted, seed=SEED, what=f"{layout} {other}")


@pytest.mark.parametrize("divisor", [1, 2, 3, 5, 7, 641, 1 << 20, (1 << 20) + 7, (1 << 31) - 1])
def test_quotients_by_multiplying(divisor) -> None:
    multiplier, shift = magic(divisor)
    limit = (1 << 31) - 1
    near = [k * divisor + d for k in (0, 1, 2, 1000, limit // divisor) for d in (-1, 0, 1)]
    for n in (0, 1, limit, limit - 1, *near):
        if 0 <= n <= limit:
            assert ((n * multiplier >> 32) + n) >> shift == n // divisor


def test_dimensions_along_which_all_lie_evenly_are_one() -> None:
    assert collapse((2, 3, 4), [(12, 4, 1), (12, 4, 1)], 1) == ((24,), ((1,), (1,)))
    assert collapse((2, 3, 4), [(0, 4, 1), (12, 4, 1)], 1) == ((12, 2), ((1, 0), (1, 12)))
    assert collapse((2, 1, 4), [(1, 9, 2), (4, 9, 1)], 1) == ((4, 2), ((2, 1), (1, 4)))
    assert collapse((2, 3), [(1, 2), (1, 2)], 1) == ((6,), ((1,), (1,)))
    assert collapse((1, 1), [(0, 0), (5, 7)], 1) == ((1,), ((1,), (1,)))


def test_an_array_that_lies_along_an_odd_dimension_is_walked_along_it() -> None:
    """Two vectors of the result come first, then that dimension: a warp has 16 positions of it."""
    views = [imagined((3, 9, 96), "bfloat16") for _ in range(2)]
    sizes, steps = (96, 9, 3), ((9, 1, 864), (1, 96, 864))
    walk = LoopNest(views, sizes, steps, 1)
    assert walk.step(8, 8) == (2, 0)
    assert (walk.sizes, walk.steps) == ((16, 9, 6, 3), ((9, 1, 144, 864), (1, 96, 16, 864)))
    assert [letter for letter, _ in walk.accesses] == ["s", "v"]
    for same in ((24, 9, 3), (16, 9, 3)):  # no two vectors, or not more
        walk = LoopNest(views, same, steps, 1)
        assert walk.step(8, 8) == (2, 0) and walk.sizes == same
    apart = (9, 2, 864), (1, 96, 864)  # along no dimension
    walk = LoopNest(views, sizes, apart, 1)
    assert walk.step(8, 8) == (2, 0) and walk.sizes == sizes


# -- calls --------------------------------------------------------------------------------------
def test_broadcasting_numbers_results_and_places() -> None:
    """Several results, out= over an argument, arguments by name, numbers of every kind."""
    rng = np.random.default_rng(SEED)

    @ptxgen.pointwise
    def both(x, y, t=2.0):
        return x * t + y, x > y

    x = rng.standard_normal((3, 1, 7)).astype(np.float32)
    y = rng.standard_normal((5, 1)).astype(np.float32)
    equal(both(x, y), both.reference(x, y))
    equal(both(x, t=3, y=y), both.reference(x, y, 3))
    assert both(x, y)[0].shape == (3, 5, 7)
    assert both(x, y)[1].dtype == np.bool_
    z = np.broadcast_to(x, (3, 5, 7)).copy()
    wanted = both.reference(z, y, 0.1)
    outs = z, np.empty(z.shape, np.bool_)
    assert both(z, y, 0.1, out=outs)[0] is z
    equal(outs, wanted)
    turned = np.empty((7, 5, 3), np.float32).T
    f.copy(x[:, 0, None, :].repeat(5, 1), out=turned)
    np.testing.assert_array_equal(turned, x.repeat(5, 1))
    assert f.add(np.zeros((0, 4), np.float32), np.zeros(4, np.float32)).shape == (0, 4)


@pytest.mark.parametrize("kind", ["bf16", "f32"])
def test_a_product_by_one_in_place_writes_nothing(kind) -> None:
    """A signalling NaN that has been computed with is none."""
    device = default_device()
    odd = {"bf16": (np.uint16, 0x7F81), "f32": (np.uint32, 0x7F800001)}[kind]
    words = drawn(kind, 1003, np.random.default_rng(SEED)).view(odd[0])
    words[[0, 700, 1002]] = odd[1]
    for number in (1, 0.5):
        x, y = (DeviceArray(device, (1003,), FULL[kind]) for _ in range(2))
        by = DeviceArray(device, (), "float32")
        one = np.array(number, np.float32)
        device.copy_in(x.ptr, words.ctypes.data, words.nbytes)
        device.copy_in(by.ptr, one.ctypes.data, 4)
        scaled(x, by, out=y)
        scaled(x, by, out=x)
        found = [np.empty_like(words) for _ in range(2)]
        for array, to in zip((x, y), found, strict=True):
            device.copy_out(to.ctypes.data, array.ptr, to.nbytes)
        wanted = scaled.reference(words.view(KINDS[kind]), one, out_dtype=kind)
        with np.errstate(invalid="ignore"):  # of signalling NaN
            for each in found:
                same_bits(each.view(KINDS[kind]), wanted, seed=SEED, what=f"{kind} by {number}")
        assert (found[1][[0, 700, 1002]] != odd[1]).all(), "elsewhere a product is computed"
        assert (found[0][[0, 700, 1002]] == odd[1]).all() == (number == 1)


def test_only_products_by_one_number_may_end_at_once() -> None:
    def factor(function, dtypes=("f32", "f32"), sets=(0, 1, 0), steps="vu", rank=1, wanted=None):
        return Form(function.formula(dtypes, wanted), sets, steps, rank).factor

    turned = ptxgen.pointwise(lambda s, x: s * x)
    assert factor(scaled) == factor(scaled, ("bf16", "f32"), wanted=("bfloat16",)) == ("x0", "x1")
    assert factor(turned, sets=(0, 1, 1), steps="uv") == ("x1", "x0")
    for what, other in {
        "a number a row": factor(scaled, steps="vv"),
        "of two dimensions": factor(scaled, rank=2),
        "as many": factor(scaled, sets=(0, 0, 0), steps="v"),
        "a number that is told": factor(scaled, ("f32", None), (0, 0), "v"),
        "of another dtype": factor(scaled, ("bf16", "f32")),
        "results that lie otherwise": factor(scaled, sets=(0, 1, 2), steps="vus"),
        "a sum": factor(f.add),
        "rounded": factor(ptxgen.pointwise(lambda x, s: f.cast(x * s, "bf16"))),
        "not all of it": factor(ptxgen.pointwise(lambda x, s: x * s + 1)),
    }.items():
        assert other is None, what


def test_numbers_are_not_baked_in(device) -> None:
    with ptxgen.use_device(device):
        x = np.arange(5, dtype=np.float32)
        before = len(device.loaded())
        results = [f.mul(x, s) for s in (0.5, 3, 1e300, -0.0, True)]
        assert len(device.loaded()) == before + 1
    for result, s in zip(results, (0.5, 3, 1e300, -0.0, True), strict=True):
        equal(result, f.mul.reference(x, s))
    whole = np.arange(5, dtype=np.int32)
    equal(f.add(whole, -(2**31)), whole + np.int32(-(2**31)))


def arity(row) -> int:
    return len(inspect.signature(row.formula).parameters)


def numbers_for(row, places, kind):
    """Arguments of ``row``: numbers in ``places``, elsewhere arrays that end within a vector."""
    rng = np.random.default_rng(SEED)
    arguments = []
    for place in range(arity(row)):
        of = "bool" if row.name == "where" and place == 0 else kind
        array = drawn(of, 37, rng)
        arguments.append(array[:1].item() if place in places else array)
    return arguments


def same_with_numbers(row, places, kind) -> bool:
    """Compares with the oracle; False where that refuses, as the call then does, too."""
    function, arguments = getattr(f, row.name), numbers_for(row, places, kind)
    try:
        wanted = function.reference(*arguments)
    except PtxgenError as error:
        with pytest.raises(type(error)):
            function(*arguments)
        return False
    equal(function(*arguments), wanted, f"{row.name} of {kind}, numbers in {places}")
    return True


HOISTED = [
    *((name, "f64", (place,)) for name in ("maximum", "minimum") for place in (0, 1)),
    *(("clamp", "f64", places) for places in ((0,), (1,), (2,), (0, 1), (0, 2))),
    *(("where", "bool", places) for places in ((0,), (0, 1), (0, 2))),
    *(("pow", kind, (1,)) for kind in ("f32", "bf16", "f16")),
    *(("pow", kind, (0,)) for kind in ("bf16", "f16")),
    *(("swiglu", kind, (0,)) for kind in ("f32", "bf16", "f16")),
    ("reglu", "f64", (0,)),
]
"""Calls in whose kernels NVRTC computes addresses of registers that nothing may have written."""


def test_numbers_in_place_of_arrays() -> None:
    """The kernels that read registers without a value; and one of each operation and dtype."""
    rows = {row.name: row for row in ROWS}
    for name, kind, places in HOISTED:
        assert same_with_numbers(rows[name], places, kind)
    sample = [("fma", "f32"), ("sub", "f64"), ("div", "bf16"), ("lt", "i32"), ("add", "i64")]
    for at, (name, kind) in enumerate(sample):
        assert same_with_numbers(rows[name], (at % 2,), kind)


@pytest.mark.long
@pytest.mark.parametrize("row", [r for r in ROWS if arity(r) > 1], ids=lambda row: row.name)
def test_numbers_in_place_of_any_arguments(row) -> None:
    """Numbers may replace any arguments but not all, in every dtype that the operation takes."""
    count = arity(row)
    chosen = [
        places for some in range(1, count) for places in itertools.combinations(range(count), some)
    ]
    taken = [same_with_numbers(row, places, kind) for places in chosen for kind in KINDS]
    assert any(taken)


def test_any_kernel_can_be_asked_for() -> None:
    x, y = np.ones((6, 64), np.float32), np.arange(64, dtype=np.float32)
    names = f.add.kernels(x, y)
    assert [name.split("_")[1] for name in names] == ["rows", "any", "wide"]
    for name in names:
        equal(f.add(x, y, kernel=name), x + y)
    with pytest.raises(OptionError, match=names[0]):
        f.add(x, y, kernel=names[0].replace("rows", "flat"))


def test_dtypes_of_results() -> None:
    kinds = {name: np.ones(3, kind) for name, kind in KINDS.items()}

    def of(*names, function=f.add, **how):
        return function.reference(*(kinds[n] for n in names), **how).dtype

    for name, kind in KINDS.items():
        assert of(name, function=f.copy) == kind
    assert of("bf16", "f16") == KINDS["f32"]
    assert of("bf16", "f32") == KINDS["f32"]
    assert of("bf16", "bf16", out_dtype="float32") == KINDS["f32"]
    assert of("f32", "f32", out_dtype="f16") == KINDS["f16"]
    assert of("bf16", "bf16", function=f.gt) == KINDS["bool"]
    narrowed = ptxgen.pointwise(lambda x: f.cast(x * 2, "bf16"))
    assert of("f32", function=narrowed) == KINDS["bf16"]
    assert f.cast(kinds["f32"], "int32").dtype == KINDS["i32"]
    assert f.cast(kinds["i64"], "bf16").dtype == KINDS["bf16"]
    assert f.cast(kinds["bf16"], "float32").dtype == KINDS["f32"]


@pytest.mark.parametrize("kind", KINDS)
def test_casts_to_every_dtype(kind) -> None:
    """Halves between two integers and numbers beyond their limits among them."""
    x = drawn(kind, 3001, np.random.default_rng(SEED))
    if KINDS[kind].kind not in "iub":
        edges = (0.5, 1.5, -2.5, 2.75, -3.25, 2.0**15 + 0.5, -(2.0**31), 2.0**63, -(2.0**63))
        with np.errstate(over="ignore"):
            x[: len(edges)] = np.array(edges).astype(x.dtype)
    casts = ptxgen.pointwise(lambda x: tuple(f.cast(x, to) for to in KINDS))
    dtypes = tuple(FULL[to] for to in KINDS)
    found = casts(x, out_dtype=dtypes)
    assert [array.dtype for array in found] == [*KINDS.values()]
    equal(found, casts.reference(x, out_dtype=dtypes), kind)


NUMBERS = [kind for kind in KINDS if kind != "bool" and kind not in BYTES]
COMPARED = [("f32", "f32"), ("f16", "f64")]
"""Pairs of dtypes of `make test`: without a cast that can be moved, and with one."""


@pytest.mark.parametrize(
    ("source", "target"),
    [
        pytest.param(*pair, marks=[] if pair in COMPARED else [pytest.mark.long])
        for pair in itertools.product(NUMBERS, NUMBERS)
    ],
)
def test_a_choice_by_a_comparison_keeps_the_sign_of_zero(source, target) -> None:
    """Compilers like to make ``min`` of it, and ``max``, whose zeros have another sign."""
    x = np.array((-0.0, 0.0, 1e-7, -1e-7, 0.5, 1, -1, 2.5, np.inf, -np.inf, np.nan, -3))
    if source in ("i32", "i64"):
        x = np.nan_to_num(x, nan=0, posinf=2**20, neginf=-(2**20))
    x = np.tile(x.astype(KINDS[source]), 3)

    def chosen(x, number):
        made = f.cast(x, target)
        one, other = (int(number) if kind[0] == "i" else number for kind in (source, target))
        for compare in (f.lt, f.le, f.gt, f.ge, f.eq, f.ne):
            for condition in (compare(x, one), compare(made, other)):
                yield f.where(condition, made, other)
                yield f.where(condition, other, made)

    def of(number):
        return ptxgen.pointwise(lambda x: tuple(chosen(x, number)))

    for number in (0.0, -0.0, 1.0):
        equal(of(number)(x), of(number).reference(x), f"{source} to {target}, {number}")


def test_a_function_of_functions_is_one_formula() -> None:
    @ptxgen.pointwise
    def gated(x, y):
        return f.swiglu(x, y) + 1

    @ptxgen.pointwise
    def written_out(x, y):
        return x * f.sigmoid(x) * y + 1

    kinds = ("bf16", "bf16")
    assert gated.formula(kinds) == written_out.formula(kinds)


# -- what bad input gets --------------------------------------------------------------------------
def test_errors_name_what_is_wrong() -> None:
    x, y = np.ones((2, 3), np.float32), np.ones((4,), np.float32)

    @ptxgen.pointwise
    def branches(x):
        return x if x > 0 else -x

    @ptxgen.pointwise
    def unknown(x):
        return np.sinh(x)

    with pytest.raises(FormulaError, match=r"no truth value(.|\n)*return x if x > 0 else -x"):
        branches(x)
    with pytest.raises(FormulaError, match=r"at .*test_pointwise.py:\d+: return np.sinh\(x\)"):
        unknown(x)
    with pytest.raises(ShapeError, match=r"y has shape \[4\].*with \[2, 3\], that of x"):
        f.add(x, y)
    with pytest.raises(ShapeError, match=r"\[2, 3\].*\[4\]"):
        f.add.reference(x, y)
    with pytest.raises(DtypeError, match="complex64"):
        f.maximum(x, x.astype(np.complex64))
    with pytest.raises(DtypeError, match="x has dtype int8; takes float32"):
        f.neg(x.astype(np.int8))
    with pytest.raises(FormulaError, match="add takes operands of one type; got f32 and f64"):
        f.add(x, x.astype(np.float64))
    with pytest.raises(DtypeError, match=r"^y: 0.5 is no i32"):
        f.add(x.astype(np.int32), 0.5)
    for add in (f.add, f.add.reference):
        with pytest.raises(DtypeError, match=r"^y: .* is beyond i32"):
            add(x.astype(np.int32), 1 << 31)
    with pytest.raises(DtypeError, match=r"out is int32; result 0 is computed in f32.*: cast it"):
        f.add(x, x, out_dtype="int32")
    with pytest.raises(DtypeError, match="at least one array among x, y; got none"):
        f.add(1, 2)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        f.add(x)
    with pytest.raises(OptionError, match="add takes x, y; got 1 arguments, not y"):
        f.add.reference(x)
    with pytest.raises(OptionError, match="out has 1 entries; there are 2 results"):
        ptxgen.pointwise(lambda a: (a, -a))(x, out=x)
    with pytest.raises(ShapeError, match="out shares memory with x"):
        f.copy(x[:1], out=x[0:1, ::-1])
    with pytest.raises(OptionError, match="unknown; takes for example"):
        f.neg(x, kernel="pw_flat_f32_000000")
    with pytest.raises(FormulaError, match=r"knows no rows.*sum"):
        ptxgen.pointwise(lambda a: a / a.reduce("sum"))(x)
    with pytest.raises(FormulaError, match="no argument can be called out"):
        ptxgen.pointwise(lambda x, out: x + out)
    with pytest.raises(FormulaError, match=r"no \* or \*\*"):
        ptxgen.pointwise(lambda *x: x[0])


def test_more_operands_than_a_kernel_takes() -> None:
    """Sixteen arrays and twice as many operations are fine; the limit is named."""

    def total(count):
        names = ", ".join(f"x{i}" for i in range(count))
        return ptxgen.pointwise(eval(f"lambda {names}: {names.replace(', ', ' + ')}"))

    arrays = [np.full(3, i, np.float32) for i in range(60)]
    equal(total(16)(*arrays[:16]), np.full(3, sum(range(16)), np.float32))
    equal(total(47)(*arrays[:47]), np.full(3, sum(range(47)), np.float32))
    with pytest.raises(FormulaError, match="at most 48"):
        total(60)(*arrays)


def test_formulas_that_would_compile_for_minutes_are_refused() -> None:
    """Named functions count with all that they are made of."""

    def times(function, count):
        def chained(x):
            for _ in range(count):
                x = function(x)
            return x

        return ptxgen.pointwise(chained)

    assert (
        times(f.sin, 100).formula(("f32",), None).size
        == 100 * times(f.sin, 1).formula(("f32",), None).size - 99
    )
    for function, count in ((f.sin, 200), (lambda x: x + 1.5, 20_000)):
        with pytest.raises(FormulaError, match="a kernel has at most 20000: compute in several"):
            times(function, count)(np.ones(3, np.float32))


def test_a_number_that_is_wrong_is_named_in_later_calls_too():
    x = np.arange(3)
    with ptxgen.use_device("cpu"):
        for _ in range(3):
            assert f.ne(x, 1).tolist() == [True, False, True]
        with pytest.raises(DtypeError, match=r"^y: 1180591620717411303424 is beyond i64"):
            f.ne(x, 2**70)


# -- names of arguments -------------------------------------------------------------------
def spoken(op) -> list[str]:
    """The names in the generated code of its calls."""
    code = op.frame.function.__code__
    return [n for n in (*code.co_names, *code.co_varnames) if n.isidentifier()]


def test_names_of_arguments_meet_no_name_of_generated_code() -> None:
    """Builtins, words that are keywords in places, and the names of generated code itself."""

    def summed(names):
        source = f"lambda {', '.join(names)}: {' + '.join(names)}"
        return ptxgen.pointwise(eval(source, {"__builtins__": {}}))

    internal = set(spoken(ptxgen.pointwise(lambda a, b: a + b)))
    internal |= set(spoken(summed(sorted(internal - {"out", "out_dtype", "stream", "kernel"}))))
    names = {*dir(builtins), *keyword.softkwlist, *internal, "self", "args", "named", "b", "call"}
    names |= {"_missed", "_tensors", "_numbers", "_UNKNOWN", "_code", "_key", "__", "gradient_1"}
    names = {n for n in names if n.isidentifier() and not keyword.iskeyword(n)}
    names = sorted(names - {"out", "out_dtype", "stream", "kernel", "__debug__"})
    assert len(names) > 150
    x = np.random.default_rng(0).standard_normal((8, 3, 5)).astype("f4")
    size = len(x)
    for chunk in (names[i : i + size] for i in range(0, len(names), size)):
        chunk += [f"other{i}" for i in range(size - len(chunk))]
        function = summed(chunk)
        expected = function.reference(*x)
        for _ in range(2):  # the second is prepared
            same_bits(function(*x), expected)
            same_bits(function(**dict(zip(chunk, x, strict=True))), expected)
        same_bits(function(*x, out=np.empty_like(x[0])), expected)
        made = function.gradient((True,) * size)
        assert len(set(made.arguments)) == size + 1
        same_bits(made(*x, x[0])[size - 1], x[0])
