"""Captured functions: the bits of the operations that they call, whatever is in their arguments."""

from __future__ import annotations

import calls
import numpy as np
import pytest
from bits import difference

import ptxgen
from ptxgen import functions as f
from ptxgen import graph
from ptxgen.errors import DtypeError, GradError, PtxgenError, ShapeError, TraceError
from ptxgen.program.arena import check, place
from ptxgen.program.buffer import imagined
from ptxgen.program.execute import Place, plan
from ptxgen.program.place import elements
from ptxgen.program.trace import Traced, Tracing
from ptxgen.runtime import get_device

RNG = np.random.default_rng(5)
LENGTHS = np.full(8, 3, "i4")
W, BIAS = (RNG.standard_normal(s).astype("f4") for s in ((64, 32), (32,)))


def drawn(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


def block(x):
    y = ptxgen.linear(x, W, BIAS, activation="gelu", layout="kn")
    z = ptxgen.softmax(f.fma(y, 2.0, x[:, :32]))
    return z, ptxgen.sum(z.reshape(2, -1), axis=0), z.T


def several(found):
    return found if isinstance(found, tuple) else (found,)


def test_a_block_of_operations_is_replayed() -> None:
    captured = ptxgen.capture(block, drawn(8, 64))
    for _ in range(3):
        x = drawn(8, 64)
        y = ptxgen.linear(x, W, BIAS, activation="gelu", layout="kn")
        z = ptxgen.softmax(f.fma(y, 2.0, x[:, :32]))
        expected = z, ptxgen.sum(z.reshape(2, -1), axis=0), z.T
        for got, wanted in zip(captured(x[::-1][::-1]), expected, strict=True):
            assert not difference(got, wanted)
        W[0] += 1  # what is outside is read at each call
    assert "4 steps" not in repr(captured) and len(captured.program.steps) == 5


def test_inputs_are_fed_again_at_each_replay() -> None:
    """A replay reads what its arguments hold then: the whole graph, one of some outputs, and that
    of fewer rows.
    """
    cpu = get_device("cpu")
    with ptxgen.use_device("cpu"):
        captured = ptxgen.capture(lambda x: (f.exp(x), f.neg(x)), drawn(8, 4), extent=0)
        small = captured.at(3)
        for _ in range(2):
            x = drawn(8, 4)
            cpu.copy_in(captured.arguments[0].ptr, x.ctypes.data, x.nbytes)
            for each, rows in ((captured, 8), (small, 3), (captured, 8)):
                each.replay()
                for own, wanted in zip(each._of.results, (f.exp, f.neg), strict=True):
                    number = each._of.results.index(own)
                    bits = elements(own, cpu, each._found[number].ptr, 0)
                    assert not difference(bits.view("f4"), wanted(x[:rows]))
            y = drawn(8, 4)
            assert not difference(captured(y, outputs=[1])[0], -y)
            assert not difference(captured(y[:3])[1], -y[:3])


def wide(x, y):
    """Two temporaries of more than 2 GiB each, both alive, and a row of sums."""
    first = f.add(x, y)
    second = f.mul(first, y)
    return ptxgen.sum(f.add(first, second), axis=-1)


def test_an_arena_above_4_gib_is_planned_with_offsets_of_64_bits() -> None:
    cpu = get_device("cpu")
    x, y = imagined((1 << 14, 1), "float32"), imagined((1, (1 << 15) + 8), "float32")
    builder = Tracing("wide", None, cpu)
    found = wide(*(Traced(builder, builder.builder.input(n, b)) for n, b in (("x", x), ("y", y))))
    planned = plan(builder.builder.finish(found.buffer), cpu)
    offsets = [
        (s.offset, launched.touched)
        for launched in planned.steps
        for s in launched.sources
        if isinstance(s, Place)
    ]
    assert planned.nbytes > 6 << 30
    assert max(offset for offset, _ in offsets) == 2 * (1 << 14) * ((1 << 15) + 8) * 4 > 1 << 32
    sizes = [m.nbytes for m in planned.program.temporaries]
    for fired in planned.steps:
        for touch in fired.touched:
            if touch.slot == 3:
                assert touch.high - touch.low in sizes and touch.high <= planned.nbytes


def test_its_temporaries_share_one_allocation() -> None:
    captured = ptxgen.capture(block, drawn(8, 64))
    temporaries = captured.program.temporaries
    assert captured.nbytes <= sum(-(-m.nbytes // 256) * 256 for m in temporaries)
    assert all(m.role == "temporary" for m in temporaries)


def arrays_of(given):
    """The arrays of a call that can be traced, by name (of sequences with a number)."""
    found = {}
    for name, value in given.items():
        if isinstance(value, list | tuple) and value and isinstance(value[0], np.ndarray):
            found |= {(name, i): x for i, x in enumerate(value)}
        elif isinstance(value, np.ndarray):
            found[name, None] = value
    return found


def with_arrays(given, places, arrays):
    """The arguments with other arrays in these places."""
    made = {n: list(v) if isinstance(v, list | tuple) else v for n, v in given.items()}
    for (name, i), x in zip(places, arrays, strict=True):
        if i is None:
            made[name] = x
        else:
            made[name][i] = x
    return {
        n: tuple(v) if isinstance(given[n], tuple) and isinstance(v, list) else v
        for n, v in made.items()
    }


def drawn_calls(name, first=0):
    """Yields random calls of an operation that have array elements: the seed, from ``first`` on,
    the arguments, and the arrays among these.
    """
    for seed in range(first, first + 40):
        given = calls.valid(name, seed).given
        given = {n: v for n, v in given.items() if n not in ("out", "stream", "kernel", "check")}
        arrays = arrays_of(given)
        if any(x.size for x in arrays.values()):
            yield seed, given, arrays


@pytest.mark.parametrize("name", sorted(calls.operations().keys() - calls.UNTRACED))
def test_every_operation_has_its_bits_when_it_is_captured(
    name: str, request: pytest.FixtureRequest
) -> None:
    """A captured call has the bits of the call itself, also the second time, when it reuses the
    graph's memory. Calls are drawn as in test_calls.py, so that their kernels are compiled.
    """
    function, ran = calls.operations()[name].function, 0
    most = 2 if request.config.getoption("--long") else 1
    for seed, given, arrays in drawn_calls(name, 1000):
        places = list(arrays)
        wanted = several(function(**given))
        captured = ptxgen.capture(
            lambda *xs, given=given, places=places: function(**with_arrays(given, places, xs)),
            *arrays.values(),
        )
        for _ in range(2):
            for got, one in zip(several(captured(*arrays.values())), wanted, strict=True):
                assert (got is None) == (one is None)
                assert got is None or not difference(got, one), f"{name} {seed}"
        ran += 1
        if ran == most:
            return
    assert ran


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: x if x[0, 0] else -x, "asked for its values while it is traced, at"),
        (lambda x: np.exp(x), "while it is traced, at"),
        (lambda x: x.cumsum(), "asked for 'cumsum'"),
        (lambda x: 3, "returns a int as result 0"),
        (lambda x: None, "returns nothing"),
        (
            lambda x: ptxgen.linear(x, np.ones((64, 3), "f4"), layout="kn"),
            "something else each time",
        ),
        (lambda x: f.add(x, float(RNG.standard_normal())), "something else each time"),
        (lambda x: ptxgen.softmax(x, lengths=LENGTHS, check=True), "check=True, at .*_capture.py:"),
        (3, "takes a function; got a int"),
    ],
)
def test_what_cannot_be_captured_is_told(function, says: str) -> None:
    with pytest.raises(TraceError, match=says):
        ptxgen.capture(function, drawn(8, 64))


def test_arrays_of_a_trace_that_has_ended_are_refused() -> None:
    kept = []
    ptxgen.capture(lambda x: (kept.append(x), f.neg(x))[1], drawn(3))
    with pytest.raises(TraceError, match="of another trace"):
        ptxgen.capture(lambda x: f.add(x, kept[0]), drawn(3))


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ((drawn(4, 64),), ShapeError, r"x has shape \[4, 64\]; takes \[8, 64\]"),
        ((np.zeros((8, 64)),), DtypeError, "x has dtype float64; takes float32"),
        ((drawn(8, 64), drawn(8, 64)), TraceError, "1 arguments; got 2"),
        ((None,), PtxgenError, "x is a "),
    ],
)
def test_other_arrays_are_refused_by_name(given, error, says: str) -> None:
    captured = ptxgen.capture(block, drawn(8, 64))
    with pytest.raises(error, match=says):
        captured(*given)


def test_errors_are_those_of_the_operations() -> None:
    with pytest.raises(ShapeError, match="w has shape"):
        ptxgen.capture(lambda x: ptxgen.linear(x, BIAS, layout="kn"), drawn(8, 64))


@pytest.mark.parametrize("view", ["column", "rows", "turned"])
@pytest.mark.parametrize("name", ["cumsum", "softmax", "topk"])
def test_views_that_no_kernel_reads_are_captured_as_they_are_called(name: str, view: str) -> None:
    """Expanded along rows, along leading dimensions, and transposed; of arrays in host memory."""
    options = {"k": 2} if name == "topk" else {}

    def function(x):
        x = f.mul(x, 2.0)
        seen = x.T if view == "turned" else ptxgen.layout.expand(x, (3, 4, 8))
        return getattr(ptxgen, name)(seen, **options)

    x = drawn(*{"column": (4, 1), "rows": (3, 1, 8), "turned": (4, 8)}[view])
    captured = ptxgen.capture(function, x)
    for got, wanted in zip(several(captured(x)), several(function(x)), strict=True):
        assert not difference(got, wanted)


def test_a_trace_is_of_a_function_and_arrays() -> None:
    for trace, name in ((ptxgen.capture, "capture"), (graph.trace, "trace")):
        with pytest.raises(TraceError, match=f"{name} takes at least one array as an example"):
            trace(f.neg)
        with pytest.raises(TraceError, match=f"{name} takes a function; got a str"):
            trace("neg", drawn(3))


def test_what_needs_gradients_is_refused() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(GradError, match="x requires grad"):
        ptxgen.capture(f.neg, torch.ones(3, requires_grad=True))


def test_places_of_what_lives_at_once_do_not_overlap() -> None:
    """Pieces with random live ranges never overlap while alive, and the arena is hardly larger than
    the most that is alive at once.
    """
    from ptxgen.program.arena import Piece, least

    ratios, rng = [], np.random.default_rng(7)
    for _ in range(200):
        pieces = []
        for _ in range(int(rng.integers(1, 40))):
            first = int(rng.integers(0, 30))
            size, last = int(rng.integers(1, 50000)), first + int(rng.integers(0, 8))
            pieces.append(Piece(size, first, last))
        offsets, nbytes = place(pieces)
        check(pieces, offsets)
        ratios.append(nbytes / least(pieces))
    mean, worst = float(np.exp(np.mean(np.log(ratios)))), max(ratios)
    assert 1 <= mean <= 1.01 and worst <= 1.15, (mean, worst)
