"""``interp.race`` against plain vector clocks over all accesses, and rule by rule."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxgen.interp.memory import race
from ptxgen.interp.memory.race import Conflict, SharedHistory

Ints = NDArray[np.int64]


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


def warp(index: int) -> Ints:
    return np.arange(32, dtype=np.int64) + 32 * index


def refused(
    what: Callable[..., Any], *arguments: Any, **keywords: Any
) -> tuple[str, int, int, int | None, int | None, bool]:
    """The conflict that a call raises."""
    with pytest.raises(Conflict) as caught:
        what(*arguments, **keywords)
    found = caught.value
    return (
        found.kind,
        found.index,
        found.at,
        found.other_lane,
        found.other_site,
        found.other_is_write,
    )


@pytest.fixture
def history() -> SharedHistory:
    """Two CTAs of two warps, 64 initialised bytes each."""
    made = SharedHistory(2, 64, 64, 4)
    made.fill(0, 128)
    return made


# -- rule by rule ---------------------------------------------------------------------


def test_uninitialised() -> None:
    history = SharedHistory(2, 32, 32, 4)
    assert refused(history.read, ints(4), ints(0), 4, 1) == (
        "uninitialised", 0, 4, None, None, False,
    )  # fmt: skip
    history.write(ints(4, 36), ints(0, 32), 4, 1)
    history.read(ints(4, 36), ints(0, 32), 4, 2)
    assert refused(history.read, ints(32, 0), ints(32, 0), 8, 3)[:3] == ("uninitialised", 0, 32)
    history.fill(32, 4)
    history.read(ints(32), ints(32), 8, 4)


def test_initialised_data_is_anyones(history: SharedHistory) -> None:
    history.read(ints(0, 0, 16), ints(0, 33, 5), 16, 1)
    history.write(ints(64), ints(70), 16, 1)


def test_write_then_read(history: SharedHistory) -> None:
    history.write(ints(8), ints(3), 4, 7)
    history.read(ints(8), ints(3), 4, 8)
    assert refused(history.read, ints(16, 8), ints(1, 4), 4, 9) == ("race", 1, 8, 3, 7, True)
    assert refused(history.read, ints(0), ints(35), 16, 9) == ("race", 0, 8, 3, 7, True)


def test_write_then_write(history: SharedHistory) -> None:
    history.write(ints(8), ints(3), 8, 7)
    history.write(ints(8), ints(3), 8, 8)
    assert refused(history.write, ints(12), ints(4), 4, 9) == ("race", 0, 12, 3, 8, True)


@pytest.mark.parametrize("reads", [4, 8, 16])
@pytest.mark.parametrize("writes", [4, 8, 16])
def test_read_then_write(history: SharedHistory, reads: int, writes: int) -> None:
    history.read(ints(16), ints(3), reads, 7)
    history.write(ints(16), ints(3), writes, 8)
    history.barrier(ints(0, 1))
    history.read(ints(16), ints(40), reads, 7)
    assert refused(history.write, ints(16), ints(41), writes, 9) == (
        "race", 0, 16, 40, 7, False,
    )  # fmt: skip
    history.write(ints(32), ints(41), writes, 9)


def test_one_reader_of_several_may_not_write(history: SharedHistory) -> None:
    history.read(ints(0, 0), ints(3, 5), 4, 7)
    assert refused(history.write, ints(0), ints(3), 4, 8) == ("race", 0, 0, 5, 7, False)
    assert refused(history.write, ints(0), ints(5), 4, 8) == ("race", 0, 0, 3, 7, False)


def test_lanes_of_one_write(history: SharedHistory) -> None:
    found = refused(history.write, ints(0, 8, 8), ints(0, 1, 33), 4, 5)
    assert found == ("race", 1, 8, 33, 5, True)


def test_one_lane_may_write_twice(history: SharedHistory) -> None:
    history.write(ints(8, 8), ints(1, 1), 4, 5)


def test_issue_is_a_write(history: SharedHistory) -> None:
    history.read(ints(0), ints(1), 4, 3)
    assert refused(history.issue, ints(0), ints(2), 16, 4) == ("race", 0, 0, 1, 3, False)
    assert refused(history.issue, ints(16, 16), ints(2, 3), 16, 4)[0] == "race"


def test_pending(history: SharedHistory) -> None:
    copy = history.issue(ints(16), ints(2), 16, 4)
    for again in range(2):
        for lane in (2, 3):
            for call in (history.read, history.write, history.issue):
                assert refused(call, ints(20), ints(lane), 4, 5) == (
                    "pending", 0, 20, 2, 4, True,
                )  # fmt: skip
        if not again:
            history.barrier(ints(0, 1))  # does not wait for copies
    history.complete(copy)
    history.read(ints(16), ints(2), 4, 5)
    assert refused(history.read, ints(28), ints(3), 4, 5) == ("race", 0, 28, 2, 4, True)
    history.barrier(ints(0))
    history.read(ints(28), ints(3), 4, 5)


def test_split_copies(history: SharedHistory) -> None:
    copy = history.issue(ints(0, 4), ints(2, 40), 4, 4)
    first, second = history.split(copy, np.array([True, False]))
    history.complete(first)
    history.read(ints(0), ints(2), 4, 5)
    assert refused(history.read, ints(4), ints(40), 4, 5)[0] == "pending"
    history.complete(second)
    history.read(ints(4), ints(40), 4, 5)


def test_barrier_is_of_its_cta(history: SharedHistory) -> None:
    history.write(ints(0, 64), ints(0, 64), 4, 1)
    history.barrier(ints(1))
    history.read(ints(64), ints(100), 4, 2)
    assert refused(history.read, ints(0), ints(1), 4, 2)[0] == "race"
    history.barrier(ints(0))
    history.read(ints(0), ints(1), 4, 2)


def test_sync_of_a_warp(history: SharedHistory) -> None:
    history.write(ints(0, 4), ints(0, 40), 4, 1)
    history.sync(np.stack([warp(0)]))
    history.read(ints(0), ints(31), 4, 2)
    assert refused(history.read, ints(0), ints(32), 4, 2)[:4] == ("race", 0, 0, 0)
    assert refused(history.read, ints(4), ints(41), 4, 2)[:4] == ("race", 0, 4, 40)
    assert refused(history.write, ints(0), ints(30), 4, 3)[:4] == ("race", 0, 0, 31)


def test_sync_of_a_few(history: SharedHistory) -> None:
    history.write(ints(0), ints(0), 4, 1)
    history.sync(np.array([[0, 33], [1, 2]]))
    history.read(ints(0), ints(33), 4, 2)
    assert refused(history.read, ints(0), ints(1), 4, 2)[3] == 0
    history.sync(np.array([[33, 1]]))  # passes it on
    history.read(ints(0), ints(1), 4, 2)
    history.write(ints(4), ints(0), 4, 2)
    assert refused(history.read, ints(4), ints(33), 4, 2)[3] == 0  # came after the sync


def test_sync_of_everyone_is_a_barrier(history: SharedHistory) -> None:
    history.write(ints(0), ints(0), 4, 1)
    history.sync(np.arange(64)[None])
    history.write(ints(0), ints(63), 4, 1)


def test_objects(history: SharedHistory) -> None:
    one, other = history.new_object(0), history.new_object(0)
    history.write(ints(0), ints(0), 4, 1)
    history.release(ints(0), [one])
    history.write(ints(4), ints(0), 4, 1)
    history.acquire(ints(40, 41), [one, other])
    history.read(ints(0), ints(40), 4, 2)
    assert refused(history.read, ints(4), ints(40), 4, 2)[3] == 0  # after the release
    assert refused(history.read, ints(0), ints(41), 4, 2)[3] == 0  # not that object
    history.merge(one, other)
    history.acquire(ints(41), [other])
    history.read(ints(0), ints(41), 4, 2)
    # Both have read; only one tells.
    history.release(ints(40), [one])
    history.acquire(ints(0), [one])
    assert refused(history.write, ints(0), ints(0), 4, 3) == ("race", 0, 0, 41, 2, False)
    history.release(ints(41), [one])
    history.acquire(ints(0), [one])
    history.write(ints(0), ints(0), 4, 3)


def test_engine(history: SharedHistory) -> None:
    first, second = history.new_object(0), history.new_object(0)
    history.read(ints(0), ints(5), 4, 1)
    history.sync(np.array([[5, 0]]))
    one = history.issue(ints(0, 16), ints(0, 0), 16, 2, engine=True)
    two = history.issue(ints(32), ints(0), 16, 3, engine=True)
    history.complete(one, first)
    history.complete(two, ints(second))
    # The issuing thread is no better than others, nor is a barrier.
    assert refused(history.read, ints(0), ints(0), 4, 4) == ("race", 0, 0, None, 2, True)
    history.barrier(ints(0, 1))
    assert refused(history.read, ints(0), ints(0), 4, 4) == ("race", 0, 0, None, 2, True)
    history.acquire(ints(40), [second])
    history.read(ints(32), ints(40), 16, 4)
    assert refused(history.read, ints(16), ints(40), 4, 4) == ("race", 0, 16, None, 2, True)
    history.acquire(ints(40), [first])
    history.read(ints(0), ints(40), 16, 4)
    history.write(ints(16), ints(40), 16, 5)
    assert refused(history.read, ints(0), ints(41), 16, 4)[3] is None
    history.barrier(ints(0))  # what one knows, all know
    history.read(ints(0, 16), ints(41, 63), 16, 4)


def test_engine_passes_on_what_its_issuer_knew(history: SharedHistory) -> None:
    full = history.new_object(0)
    history.read(ints(0, 16), ints(5, 6), 4, 1)
    history.sync(np.array([[5, 0]]))
    copy = history.issue(ints(0), ints(0), 16, 2, engine=True)
    history.read(ints(20), ints(0), 4, 3)  # after the issue: the object does not know
    history.complete(copy, full)
    history.acquire(ints(40), [full])
    history.write(ints(0), ints(40), 4, 4)  # read by 5, which 0 knew of
    assert refused(history.write, ints(16), ints(40), 4, 4)[3] == 6
    assert refused(history.write, ints(20), ints(40), 4, 4)[3] == 0


def test_engine_copies_complete_on_objects(history: SharedHistory) -> None:
    with pytest.raises(ValueError, match="objects"):
        history.complete(history.issue(ints(0), ints(0), 4, 1), history.new_object(0))
    with pytest.raises(ValueError, match="objects"):
        history.complete(history.issue(ints(16), ints(0), 4, 1, engine=True))


def test_older_reads_by_other_lanes_of_the_warp(history: SharedHistory) -> None:
    """Lane 1 reads, the clock of its warp advances, lane 2 reads: both count."""
    done = history.new_object(0)
    history.read(ints(0), ints(1), 4, 1)
    history.release(ints(3), [done])
    history.read(ints(0), ints(2), 4, 2)
    history.release(ints(2), [done])
    history.acquire(ints(40), [done])
    assert refused(history.write, ints(0), ints(40), 4, 3)[3] == 1
    history.release(ints(1), [done])
    history.acquire(ints(40), [done])
    history.write(ints(0), ints(40), 4, 3)


def test_only_the_latest_of_older_reads_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "_OLDER", -1)
    monkeypatch.setattr(race, "_LOG", 0)
    history = SharedHistory(1, 64, 64, 4)
    history.fill(0, 64)
    told, untold = history.new_object(0), history.new_object(0)
    for site, (lane, target) in enumerate(
        [(1, told), (2, told), (1, untold), (2, told), (3, told), (3, told)], 1
    ):
        history.read(ints(0), ints(lane), 4, site)
        history.release(ints(lane), [target])
    history.acquire(ints(40), [told])
    assert refused(history.write, ints(0), ints(40), 4, 9)[3] == 1  # the second time
    history.acquire(ints(40), [untold])
    history.write(ints(0), ints(40), 4, 9)


@pytest.mark.parametrize("granule", [1, 2, 4, 8, 16])
def test_granules(granule: int) -> None:
    history = SharedHistory(1, 32, 64, granule)
    for width in (1, 2, 4, 8, 16):
        if width >= granule:
            history.write(ints(0, 16), ints(1, 2), width, 1)
            history.read(ints(16), ints(2), width, 2)
            assert refused(history.read, ints(0), ints(2), width, 1)[:3] == ("race", 0, 0)
            history.barrier(ints(0))


@pytest.mark.parametrize("bad", [(1, 48, 64, 4), (1, 0, 64, 4), (1, 32, 40, 4), (1, 32, 64, 3)])
def test_bad_sizes(bad: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="expected"):
        SharedHistory(*bad)


# -- against brute force --------------------------------------------------------------


@dataclass
class Event:
    """An access to one granule by one thread, or by one copy (a thread of its own)."""

    who: int
    clock: int
    write: bool
    pending: bool = False
    lane: int | None = None


@dataclass
class Brute:
    """Vector clocks of the few threads that act, and every access ever made."""

    lanes: list[int]
    granule: int
    clocks: dict[int, dict[int, int]] = field(default_factory=dict)
    events: dict[int, list[Event]] = field(default_factory=dict)
    objects: list[dict[int, int]] = field(default_factory=list)
    copies: Iterator[int] = field(default_factory=lambda: itertools.count(1_000_000))

    def __post_init__(self) -> None:
        self.clocks = {lane: {lane: 1} for lane in self.lanes}

    def ordered(self, event: Event, lane: int) -> bool:
        return self.clocks[lane].get(event.who, 0) >= event.clock

    def find(
        self, at: list[int], lanes: list[int], width: int, write: bool
    ) -> tuple[str, int, int, set[int | None], bool] | None:
        """Kind, index, byte, the possible others, whether they write."""
        for i, (start, lane) in enumerate(zip(at, lanes, strict=True)):
            pieces = range(start, start + width, self.granule)
            for byte in pieces:
                events = self.events.get(byte, [])
                pending = {e.lane for e in events if e.pending}
                if pending:
                    return "pending", i, byte, pending, True
                writes = [e for e in events if e.write]
                if not writes and not write:
                    return "uninitialised", i, byte, {None}, False
                if any(not self.ordered(e, lane) for e in writes):
                    return "race", i, byte, {writes[-1].lane}, True
            for byte in pieces if write else ():
                reads = [e for e in self.events.get(byte, []) if not e.write]
                racing = {e.lane for e in reads if not self.ordered(e, lane)}
                if racing:
                    return "race", i, byte, racing, False
        if write:
            last = {
                byte: lane
                for start, lane in zip(at, lanes, strict=True)
                for byte in range(start, start + width, self.granule)
            }
            for i, (start, lane) in enumerate(zip(at, lanes, strict=True)):
                for byte in range(start, start + width, self.granule):
                    if last[byte] != lane:
                        return "race", i, byte, {last[byte]}, True
        return None

    def record(
        self, at: list[int], lanes: list[int], width: int, write: bool, pending: bool = False
    ) -> list[Event]:
        made = []
        for start, lane in zip(at, lanes, strict=True):
            for byte in range(start, start + width, self.granule):
                event = Event(lane, self.clocks[lane][lane], write, pending, lane)
                self.events.setdefault(byte, []).append(event)
                made.append(event)
        return made

    def release(self, lane: int, target: dict[int, int]) -> None:
        for who, clock in self.clocks[lane].items():
            target[who] = max(target.get(who, 0), clock)

    def sync(self, lanes: list[int]) -> None:
        joined: dict[int, int] = {}
        for lane in lanes:
            self.release(lane, joined)
        for lane in lanes:
            self.clocks[lane] = dict(joined)
            self.clocks[lane][lane] += 1


CTAS, THREADS = 2, 64
ACTORS = [0, 1, 2, 33, 40]


def run_trace(seed: int, steps: int = 70) -> dict[str, int]:
    """Runs a random trace on SharedHistory and Brute; returns how often each conflict was found."""
    rng = random.Random(seed)
    granule = rng.choice([1, 4, 4, 4, 8])
    nbytes = rng.choice([16, 32])
    actors = [64 * cta + lane for cta in range(CTAS) for lane in ACTORS]
    brute = Brute(actors, granule)
    history = SharedHistory(CTAS, THREADS, nbytes, granule)
    pending: list[tuple[race.Copy, list[list[Event]], list[int], list[dict[int, int]] | None]] = []
    objects: list[list[int]] = [[], []]
    found: dict[str, int] = {}
    weights = {
        "read": 30, "write": 14, "issue": 6, "complete": 8, "barrier": rng.choice([0, 3]),
        "warp": rng.choice([0, 4]), "some": rng.choice([0, 8]), "object": rng.choice([0, 12]),
    }  # fmt: skip
    if rng.random() < 0.7:
        history.fill(0, CTAS * nbytes)
        for byte in range(0, CTAS * nbytes, granule):
            brute.events[byte] = [Event(-1, 0, True)]
    for site in range(1, steps):
        what = rng.choices(list(weights), list(weights.values()))[0]
        if what in ("read", "write", "issue"):
            width = rng.choice([w for w in (1, 2, 4, 8, 16) if w >= granule])
            lanes = rng.sample(actors, rng.choice([1, 1, 1, 2, 3]))
            at = [
                lane // THREADS * nbytes + rng.randrange(nbytes // width) * width for lane in lanes
            ]
            engine = what == "issue" and rng.random() < 0.5 and bool(weights["object"])
            if engine and rng.random() < 0.5:
                cta = lanes[0] // THREADS
                lanes = [lanes[0]] * 2
                at = [cta * nbytes + x * width for x in rng.sample(range(nbytes // width), 2)] if (
                    nbytes > width
                ) else at[:1]  # fmt: skip
                lanes = lanes[: len(at)]
            expected = brute.find(at, lanes, width, what != "read")
            if expected and rng.random() < 0.5:
                continue
            arguments = (np.array(at), np.array(lanes), width, site)
            try:
                if what == "read":
                    history.read(*arguments)
                elif what == "write":
                    history.write(*arguments)
                else:
                    copy = history.issue(*arguments, engine=engine)
            except Conflict as conflict:
                key = (conflict.kind, conflict.index, conflict.at)
                assert expected is not None, f"seed {seed}, step {site}: {key} is none"
                assert key == expected[:3], f"seed {seed}, step {site}"
                assert conflict.other_lane in expected[3], f"seed {seed}, step {site}"
                assert conflict.other_is_write == expected[4], f"seed {seed}, step {site}"
                name = conflict.kind + (" with a read" * (
                    conflict.kind == "race" and not conflict.other_is_write
                ))  # fmt: skip
                found[name] = found.get(name, 0) + 1
                if conflict.other_site == site:
                    break  # two lanes of one write; that leaves its traces
                continue
            assert expected is None, f"seed {seed}, step {site}: missed {expected}"
            found["clean"] = found.get("clean", 0) + 1
            made = brute.record(at, lanes, width, what != "read", what == "issue")
            if what == "issue":
                knew = None
                if engine:
                    knew = [dict(brute.clocks[lane]) for lane in lanes]
                    for lane in set(lanes):
                        brute.clocks[lane][lane] += 1
                many = width // granule
                pieces = [made[i * many : i * many + many] for i in range(len(at))]
                pending.append((copy, pieces, lanes, knew))
        elif what == "complete" and pending:
            copy, pieces, lanes, knew = pending.pop(rng.randrange(len(pending)))
            if len(lanes) > 1 and rng.random() < 0.5:
                mask = np.arange(len(lanes)) == rng.randrange(len(lanes))
                copy, rest = history.split(copy, mask)
                take = [int(i) for i in np.flatnonzero(mask)]
                leave = [int(i) for i in np.flatnonzero(~mask)]
                pending.append((
                    rest, [pieces[i] for i in leave], [lanes[i] for i in leave],
                    knew and [knew[i] for i in leave],
                ))  # fmt: skip
                pieces, lanes = [pieces[i] for i in take], [lanes[i] for i in take]
                knew = knew and [knew[i] for i in take]
            if knew is None:
                history.complete(copy)
                for lane, events in zip(lanes, pieces, strict=True):
                    for event in events:
                        event.pending, event.clock = False, brute.clocks[lane][lane]
            else:
                for lane in lanes:
                    if not objects[lane // THREADS]:
                        objects[lane // THREADS].append(history.new_object(lane // THREADS))
                        brute.objects.append({})
                chosen = [rng.choice(objects[lane // THREADS]) for lane in lanes]
                history.complete(copy, chosen)
                for i, events in enumerate(pieces):
                    me = next(brute.copies)
                    target = brute.objects[chosen[i]]
                    for who, clock in knew[i].items():
                        target[who] = max(target.get(who, 0), clock)
                    target[me] = 1
                    for event in events:
                        event.pending, event.who, event.clock, event.lane = False, me, 1, None
        elif what == "barrier":
            ctas = rng.choice([[0], [1], [0, 1], [0, 1]])
            history.barrier(np.array(ctas))
            for cta in ctas:
                brute.sync([lane for lane in actors if lane // THREADS == cta])
        elif what == "warp":
            warps = sorted(rng.sample(range(2 * CTAS), rng.choice([1, 2, 4])))
            history.sync(np.stack([warp(w) for w in warps]))
            for w in warps:
                brute.sync([lane for lane in actors if lane // 32 == w])
        elif what == "some":
            cta = rng.randrange(CTAS)
            own = [lane for lane in actors if lane // THREADS == cta]
            rng.shuffle(own)
            size = rng.choice([2, 2, 3, 5])
            rows = [own[i : i + size] for i in range(0, len(own) - size + 1, size)]
            history.sync(np.array(rows))
            for row in rows:
                brute.sync(row)
        elif what == "object":
            cta = rng.randrange(CTAS)
            if len(objects[cta]) < 3 and rng.random() < 0.3:
                objects[cta].append(history.new_object(cta))
                brute.objects.append({})
            if objects[cta]:
                own = rng.sample([x for x in actors if x // THREADS == cta], rng.choice([1, 2, 4]))
                chosen = [rng.choice(objects[cta]) for _ in own]
                action = rng.choice(["release", "acquire", "acquire", "merge"])
                if action == "release":
                    history.release(np.array(own), chosen)
                    for lane, handle in zip(own, chosen, strict=True):
                        brute.release(lane, brute.objects[handle])
                        brute.clocks[lane][lane] += 1
                elif action == "acquire":
                    history.acquire(np.array(own), chosen)
                    for lane, handle in zip(own, chosen, strict=True):
                        mine = brute.clocks[lane]
                        for who, clock in brute.objects[handle].items():
                            mine[who] = max(mine.get(who, 0), clock)
                else:
                    source, target_handle = rng.choice(objects[cta]), rng.choice(objects[cta])
                    history.merge(source, target_handle)
                    for who, clock in list(brute.objects[source].items()):
                        known = brute.objects[target_handle]
                        known[who] = max(known.get(who, 0), clock)
    return found


@pytest.mark.parametrize(
    "block", [0, 1, *(pytest.param(block, marks=pytest.mark.long) for block in range(2, 7))]
)
def test_random_traces(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if block % 2:
        monkeypatch.setattr(race, "_LOG", 3)  # logs are worked in all the time
        monkeypatch.setattr(race, "_OLDER", -1)
    total: dict[str, int] = {}
    for seed in range(block * 300, block * 300 + 300):
        for kind, count in run_trace(seed).items():
            total[kind] = total.get(kind, 0) + count
    # Every kind came up, often.
    for kind in ("clean", "race", "race with a read", "pending", "uninitialised"):
        assert total[kind] > 100, total
