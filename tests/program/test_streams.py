"""Streams of captured programs: any order that memory allows has the same bits."""

from __future__ import annotations

from functools import partial
from random import Random

import calls
import numpy as np
import pytest
import random_programs
from bits import difference
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import poisoned, regions
from test_capture import drawn_calls, several, with_arrays

import ptxgen
from ptxgen import functions as f
from ptxgen import graph
from ptxgen.errors import OptionError
from ptxgen.program.arena import SLACK_MAX, Piece, check, least, place, place_separated
from ptxgen.program.depends import Touch, before
from ptxgen.program.execute import fire, plan
from ptxgen.program.recorded import recorded
from ptxgen.program.replay import Owned
from ptxgen.program.step import Program
from ptxgen.program.streams import Schedule, schedule
from ptxgen.runtime import get_device
from ptxgen.runtime.cpu import CpuDevice

RNG = np.random.default_rng(7)
STREAMS = 4


def drawn(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


# -- what waits for what ------------------------------------------------------------------------
def read(low: int, high: int, slot: int = 0) -> Touch:
    return Touch(slot, low, high, written=False)


def wrote(low: int, high: int, slot: int = 0) -> Touch:
    return Touch(slot, low, high, written=True)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([[wrote(0, 4)], [read(0, 4)]], [set(), {0}]),
        ([[wrote(0, 4)], [read(3, 9)], [read(4, 9)]], [set(), {0}, set()]),
        ([[read(0, 4)], [read(0, 4)], [wrote(2, 3)], [read(0, 4)]], [set(), set(), {0, 1}, {2}]),
        ([[wrote(0, 8)], [wrote(0, 4)], [read(0, 8)]], [set(), {0}, {0, 1}]),
        ([[wrote(0, 4)], [read(0, 4), wrote(0, 4)], [wrote(0, 4)]], [set(), {0}, {1}]),
        ([[wrote(0, 4)], [read(2, 2), wrote(2, 2)]], [set(), set()]),
        ([[wrote(0, 4)], [read(0, 4, slot=1)], [read(0, 4, slot=2)]], [set(), set(), {0}]),
    ],
    ids=("written", "next to it", "read since", "over a part", "in place", "nothing", "aliases"),
)
def test_steps_wait_for_who_wrote_and_who_read(steps, expected) -> None:
    """Slots 0 and 2 are at one address."""
    assert before(steps, [1000, 2000, 1000]) == expected


ranges = st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 5), st.booleans())


@given(st.lists(st.lists(ranges, max_size=3), max_size=9))
def test_every_conflict_is_ordered(drawn) -> None:
    """Two steps that touch a byte, which one of them writes, are behind each other."""
    steps = [[Touch(s, low, low + n, w) for s, low, n, w in own] for own in drawn]
    where = [0, 100, 5]
    reached = closure(before(steps, where))
    for j, later in enumerate(steps):
        for i, earlier in enumerate(steps[:j]):
            conflict = any(
                (a.written or b.written)
                and max(where[a.slot] + a.low, where[b.slot] + b.low)
                < min(where[a.slot] + a.high, where[b.slot] + b.high)
                for a in earlier
                for b in later
            )
            assert not conflict or i in reached[j]


def closure(edges) -> list[set[int]]:
    """Returns, for each step, all steps that come before it."""
    found: list[set[int]] = []
    for own in edges:
        found.append(set(own).union(*(found[i] for i in own)))
    return found


# -- streams ------------------------------------------------------------------------------------
def order_of(made: Schedule) -> list[list[int]]:
    """Returns the earlier steps that each step waits for, by stream order and events."""
    found = []
    for number, (stream, waits) in enumerate(made.steps):
        same = [i for i in range(number) if made.steps[i].stream == stream]
        found.append([*same[-1:], *waits])
    return found


def streams_of(edges, most: int = STREAMS) -> list[int]:
    return [each.stream for each in schedule(edges, most).steps]


edges = st.integers(0, 30).flatmap(
    lambda n: st.tuples(*(st.sets(st.integers(0, i - 1), max_size=4) if i else st.just(set())
                          for i in range(n)))
)  # fmt: skip


@given(edges, st.integers(1, 6))
def test_schedules_keep_every_edge(edges, most: int) -> None:
    made = schedule(edges, most)
    ordered = closure(order_of(made))
    assert all(own <= ordered[i] for i, own in enumerate(edges))
    assert made.streams <= most
    behind = closure([*order_of(made), [*made.ends, *firsts(made)]])[-1]
    assert behind == set(range(len(edges))), "the first stream waits for all in the end"
    for number, (stream, waits) in enumerate(made.steps):
        assert all(made.steps[i].stream != stream for i in waits)
        without = [own for i, own in enumerate(order_of(made)) if i < number]
        for each in waits:  # no event is waited for in vain
            rest = [i for i in order_of(made)[number] if i != each]
            assert each not in closure([*without, rest])[-1]


def firsts(made: Schedule) -> list[int]:
    return [i for i, each in enumerate(made.steps) if each.stream == 0][-1:]


def test_one_stream_needs_no_event() -> None:
    made = schedule([set(), set(), {0}, {1}], 1)
    assert all(each == (0, ()) for each in made.steps) and made.ends == ()


def test_products_of_one_input_run_beside_each_other() -> None:
    """A norm; Q, K, V; what is done to Q and K; attention; what comes behind it."""
    layer = [set(), {0}, {0}, {0}, {1}, {2}, {3, 4, 5}, {6}]
    assert streams_of(layer) == [0, 0, 1, 2, 0, 1, 0, 0]
    made = schedule(layer, STREAMS)
    assert [each.waits for each in made.steps] == [(), (), (0,), (0,), (), (), (5, 3), ()]
    assert made.streams == 3 and made.ends == ()
    assert streams_of(layer, 2) == [0, 0, 1, 0, 1, 0, 0, 0]


def test_chains_stay_on_a_stream() -> None:
    assert streams_of([set(), {0}, {1}, {2}]) == [0, 0, 0, 0]
    two = [set(), set(), {0}, {1}, {2}, {3}]
    assert streams_of(two) == [0, 1, 0, 1, 0, 1] and schedule(two, STREAMS).ends == (5,)


def test_a_chain_that_is_left_alone_returns_to_the_first_stream() -> None:
    """A mask is made first and read much later. What is beside it at first is soon alone."""
    alone = [set(), set(), *({i} for i in range(1, 30))]
    found = streams_of(alone)
    assert found[1:3] == [1, 1] and set(found[10:]) == {0}


def test_another_number_of_streams_is_refused() -> None:
    for streams in (0, -1, 129, True, 2.0, "4"):
        with pytest.raises(OptionError, match="takes an integer from 1 to 128"):
            ptxgen.capture(f.neg, drawn(3), streams=streams)
        with pytest.raises(OptionError, match="streams is"):
            ptxgen.load("nowhere", streams=streams)


# -- memory -------------------------------------------------------------------------------------
pieces = st.lists(st.tuples(st.integers(1, 4000), st.integers(0, 20), st.integers(0, 5)))


@given(pieces, st.integers(0, 4))
def test_pieces_lie_apart_where_there_is_room(drawn, steps: int) -> None:
    given = [Piece(nbytes, first, first + long) for nbytes, first, long in drawn]
    offsets, nbytes = place_separated(given, steps)
    check(given, offsets)
    assert place_separated(given, 0) == place(given)
    assert least(given) <= nbytes <= max(SLACK_MAX * least(given), place(given)[1])


def test_scratch_memory_of_neighbours_lies_apart() -> None:
    large, scratch = Piece(1 << 20, 0, 9), [Piece(1 << 12, i, i) for i in range(2, 5)]
    offsets, nbytes = place_separated([large, *scratch], STREAMS - 1)
    assert len(set(offsets)) == 4 and nbytes <= SLACK_MAX * least([large, *scratch])
    offsets, _ = place_separated([large, *scratch], 0)
    assert len(set(offsets)) == 2


# -- programs -----------------------------------------------------------------------------------
class Deferred(CpuDevice):
    """CPU device that runs the work of a replayed graph later, at random, in an order that streams
    and events allow. ``taken``: the streams that kernels were enqueued on.
    """

    def __init__(self) -> None:
        super().__init__()
        self.random, self.taken = Random(0), set()
        self._queues: dict[int, list] | None = None

    def recorded(self, work, streams=1):
        handles = range(1, streams + 1)

        def replay(_) -> None:
            self.taken, self._queues = set(), {handle: [] for handle in handles}
            begun, ended = [], []
            self._queues[1].append(partial(begun.append, True))
            work(*handles)
            self._queues[1].append(partial(ended.append, True))
            queues, self._queues = self._queues, None
            while not ended:
                ready = [q for q in queues.values() if q and q[0] is not None and runs(q[0])]
                assert ready, "streams wait for each other"
                done = self.random.choice(ready).pop(0)
                if callable(done):
                    assert begun or done.func == begun.append, "begins before what is there"
                    done()
            assert not any(queues.values()), "ends before all has ended"

        def runs(entry) -> bool:
            return callable(entry) or entry.happened

        return replay

    def launch(self, function, grid, block, stream, params, what):
        now = partial(super().launch, function, grid, block, stream, params, what)
        if self._queues is None:
            now()
        else:
            self.taken.add(stream)
            self._queues[stream].append(now)

    def event(self, stream):
        found = Event()
        self._queues[stream].append(partial(found.happens))
        return found

    def wait(self, stream, event):
        self._queues[stream].append(event)


class Event:
    happened = False

    def happens(self) -> None:
        self.happened = True


def poison(captured: Owned, arrays) -> None:
    """All memory is overwritten; then the arguments are there."""
    poisoned(captured)
    for own, x in zip(captured._own, arrays, strict=True):
        captured._device.copy_in(own.ptr, x.ctypes.data, x.nbytes)


def image(captured: Owned, part: slice = slice(None)) -> list[np.ndarray]:
    """Returns the contents of a captured program's memory regions, as bytes."""
    found = []
    for address, nbytes in regions(captured)[part]:
        found.append(np.empty(nbytes, np.uint8))
        captured._device.copy_out(found[-1].ctypes.data, address, nbytes)
    return found


def results(captured: Owned) -> list[bytes]:
    count = len(captured._own)
    return [x.tobytes() for x in image(captured, slice(count, count + len(captured._found)))]


def owned(program: Program, device, streams: int) -> Owned:
    return Owned(recorded(plan(program, device, streams)), program, device, (), 0, streams)


@st.composite
def programs(draw) -> tuple[Program, list[np.ndarray]]:
    """A random program, with passes done or without, and arrays that it reads."""
    found = random_programs.draw(draw(st.integers(0, 19)))
    program = graph.trace(found, *found.arrays())
    return graph.fewer(program) if draw(st.booleans()) else program, found.arrays()


@settings(max_examples=40, report_multiple_bugs=False)
@given(programs(), st.integers(0, 99))
def test_random_programs_have_their_bits_in_every_order(drawn, seed: int) -> None:
    """Steps one after the other, in random orders that their memory allows; all else is poison."""
    program, arrays = drawn
    captured, random = owned(program, get_device("cpu"), STREAMS), Random(seed)
    poison(captured, arrays)
    captured._last.all(0)
    expected, of = results(captured), captured._of
    awaited = before([step.touched for step in of.steps], captured._where)
    for _ in range(3):
        poison(captured, arrays)
        for i in shuffled(awaited, random):
            fire(of.steps[i], captured._where, 0)
        assert results(captured) == expected


def shuffled(awaited, random: Random) -> list[int]:
    """A random order in which each is behind those that it waits for."""
    found: list[int] = []
    while len(found) < len(awaited):
        done = set(found)
        found.append(
            random.choice([i for i, o in enumerate(awaited) if i not in done and o <= done])
        )
    return found


DEFERRED = Deferred()


@settings(max_examples=40, report_multiple_bugs=False)
@given(programs(), st.integers(0, 99), st.integers(1, 5))
def test_random_programs_have_their_bits_on_streams(drawn, seed: int, most: int) -> None:
    """Random programs have the same bits on several streams, in any order that events allow."""
    program, arrays = drawn
    DEFERRED.random = Random(seed)
    plain = owned(program, get_device("cpu"), 1)
    captured = owned(program, DEFERRED, most)
    assert plain.streams == 1 and captured.streams <= most
    for _ in range(2):
        for each in (plain, captured):
            poison(each, arrays)
            each._last.all(0)
        assert DEFERRED.taken == set(range(1, captured.streams + 1))
        assert results(captured) == results(plain)


def attention(x, q, k, v, gate, up):
    """Products of one input, with scratch memory; and two that are multiplied."""
    x = ptxgen.rms_norm(x)
    mixed = f.mul(
        f.add(ptxgen.linear(x, q, layout="kn"), ptxgen.linear(x, k, layout="kn")),
        ptxgen.linear(x, v, layout="kn"),
    )
    return mixed, f.mul(
        ptxgen.linear(x, gate, activation="silu", layout="kn"), ptxgen.linear(x, up, layout="kn")
    )


def test_products_of_one_input_are_on_several_streams(tmp_path) -> None:
    arrays = [drawn(1, 4096), *(drawn(4096, 8) for _ in range(5))]
    device = Deferred()
    with ptxgen.use_device("cpu"):
        expected = attention(*arrays)
        several = ptxgen.capture(attention, *arrays, passes=graph.fewer, streams=STREAMS)
        several.save(tmp_path / "it")
    with ptxgen.use_device(device):
        plain = ptxgen.capture(attention, *arrays, streams=1)
        captured = ptxgen.capture(attention, *arrays)
        loaded = ptxgen.load(tmp_path / "it")
        fewer = ptxgen.capture(attention, *arrays, passes=graph.fewer)
        assert plain.streams == 1 and captured.streams >= 3 and loaded.streams == fewer.streams > 1
        assert ptxgen.load(tmp_path / "it", streams=1).streams == 1
        assert repr(captured).endswith(f" bytes, {captured.streams} streams>")
        assert repr(plain).endswith(f"{plain.nbytes} bytes>")
        for each, seed in ((plain, 0), (captured, 1), (captured, 2), (loaded, 3)):
            device.random = Random(seed)
            for got, wanted in zip(each(*arrays), expected, strict=True):
                assert not difference(got, wanted)
            assert len(device.taken) == each.streams


@pytest.mark.parametrize("name", sorted(calls.operations().keys() - calls.UNTRACED))
def test_steps_touch_what_they_say(name: str) -> None:
    """Each step, run alone, reads and writes the bytes that it declares. All else is poison of two
    kinds: written bytes are the same both times, others stay poison.
    """
    function = calls.operations()[name].function
    for _, call, arrays in drawn_calls(name, 1000):  # those of test_calls.py
        with ptxgen.use_device("cpu"):
            captured = ptxgen.capture(
                lambda *xs, call=call, places=list(arrays): several(
                    function(**with_arrays(call, places, xs))
                ),
                *arrays.values(),
            )
            captured(*arrays.values())
        if captured._of.steps:
            alone(captured, [np.ascontiguousarray(x) for x in arrays.values()])
            return
    raise AssertionError(f"no call of {name} has a step")


def test_scratch_memory_is_touched() -> None:
    arrays = [drawn(1, 4096), *(drawn(4096, 8) for _ in range(5))]
    with ptxgen.use_device("cpu"):
        captured = ptxgen.capture(attention, *arrays, streams=STREAMS)
        assert any(len(step.launches) > 1 for step in captured._of.steps)
        alone(captured, arrays)


def alone(captured, arrays) -> None:
    """Carries out a program, each step with its own bytes and poison."""
    poison(captured, arrays)
    device, where = captured._device, captured._where
    places, truth = regions(captured), image(captured)
    for step in captured._of.steps:
        own = [[ranges_in(step, where, at, of.size, w) for w in (False, True)]
               for (at, _), of in zip(places, truth, strict=True)]  # fmt: skip
        found = []
        for byte in (0x11, 0xEE):
            for (at, nbytes), of, (reads, _) in zip(places, truth, own, strict=True):
                bits = np.where(reads, of, np.uint8(byte))
                device.copy_in(at, bits.ctypes.data, nbytes)
            fire(step, where, 0)
            found.append(image(captured))
        for of, a, b, (reads, writes) in zip(truth, *found, own, strict=True):
            made = a == b
            assert (made | ((a == 0x11) & (b == 0xEE))).all(), "reads what it does not say"
            assert (writes | ~made | (reads & (a == of))).all(), "writes what it does not say"
            of[made] = a[made]
    assert b"".join(x.tobytes() for x in truth)


def ranges_in(step, where, at: int, nbytes: int, written: bool) -> np.ndarray:
    """Returns a mask of the bytes of a region that a step says to read, or to write."""
    found = np.zeros(nbytes, bool)
    for touch in step.touched:
        if touch.written == written:
            low, high = (where[touch.slot] + end - at for end in (touch.low, touch.high))
            found[max(low, 0) : max(high, 0)] = True
    return found
