"""Row operations on random problems: the draw, regret, what is learnt. Nothing is timed."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_bench import ENVIRONMENT

from ptxgen.bench import measure, ops, results, row_reductions, tune
from ptxgen.bench.bands import RATIO, REGRET
from ptxgen.bench.row_reductions import (
    APART,
    COLUMNS,
    DENSE,
    ELEMENTS,
    OFF,
    OPERATIONS,
    Case,
    Timing,
)
from ptxgen.bench.timed_routes import route_terms, row_points
from ptxgen.cost import fit
from ptxgen.cost.tuning import FOLDER, TERMS, read, write
from ptxgen.errors import OptionError
from ptxgen.runtime import get_device
from ptxgen.spec.row_reductions import facts
from ptxgen.tiles import TABLES

TUNING = read(FOLDER / "h200_132.json")


def timing(case: Case, ours: float, eager: float, compiled: float | None, **more: Any) -> Timing:
    """A row of made-up times."""
    sizes = case.name, case.rows, case.cols, case.layout, case.nbytes
    return Timing(*sizes, ours, eager, compiled, "some kernel", **more)


# -- the draw ---------------------------------------------------------------------------------
def test_a_seed_draws_the_same_everywhere() -> None:
    """Published results name a seed: whoever changes what it draws, changes what they mean."""
    assert row_reductions.cases(3, 0) == [
        Case("embedding", 13, 7168, DENSE),
        Case("cross_entropy", 109, 7168, DENSE),
        Case("topk 50", 3215, 3072, DENSE),
    ]
    assert row_reductions.cases(40, 5)[:7] == row_reductions.cases(7, 5)
    with pytest.raises(OptionError, match="0 random problems"):
        row_reductions.cases(0, 0)


def test_the_draw_is_what_is_documented() -> None:
    drawn = row_reductions._drawn(random.Random(3))
    every = [c for c in (next(drawn) for _ in range(20000)) if not c.name.startswith("topk")]
    listed = [c for c in every if c.cols in COLUMNS]
    lies = Counter(c.layout for c in every)
    halves = [c for c in every if math.log(c.rows) < math.log(ELEMENTS // c.cols) / 2]
    for what, count, share in (
        ("columns are listed", len(listed), 13 / 14),
        ("rows lie apart", lies[APART], 1 / 8),
        ("rows lie off 16 bytes", lies[OFF], 1 / 8),
        ("rows are log-uniform", len(halves), 1 / 2),
        ("any operation", sum(c.name == "argmax" for c in every), 1 / (len(OPERATIONS) - 2)),
    ):
        # Four standard deviations; few rows, which are whole numbers, are some more or fewer.
        deviation = math.sqrt(share * (1 - share) / len(every))
        assert abs(count / len(every) - share) < 4 * deviation + 0.03 * (share == 1 / 2), what
    assert all(1 <= c.rows <= ELEMENTS // c.cols and 64 <= c.cols <= 200000 for c in every)
    assert all(c.cols >= 1024 for c in row_reductions.cases(500, 1) if c.name == "topk 1024")


# -- what is timed ----------------------------------------------------------------------------
@pytest.mark.parametrize(("lies", "step", "begin"), [(DENSE, 64, 0), (APART, 72, 0), (OFF, 64, 1)])
def test_rows_lie_as_they_were_drawn(lies: str, step: int, begin: int) -> None:
    torch = pytest.importorskip("torch")
    x, *more = row_reductions.Operands(torch, Case("layer_norm", 3, 64, lies), 0, "cpu").arrays
    assert (x.shape, [each.shape for each in more]) == ((3, 64), [(64,), (64,)])
    assert (x.stride(), x.storage_offset()) == ((step, 1), begin)


def test_every_operation_agrees_with_its_peer_and_its_routes_with_each_other() -> None:
    """The chosen route is the first, and any other that is forced returns its bits."""
    torch = pytest.importorskip("torch")
    device = get_device("cpu")
    for name, operation in OPERATIONS.items():
        operands = row_reductions.Operands(
            torch, Case(name, 2, max(operation.least, 40), OFF), 0, "cpu"
        )
        ours = operands.ours()()
        work = operands.work()
        assert work.agree and work.agree(ours, work.stock(*operands.arrays))
        kernels = operands.kernels(device)
        cheap = min(kernels, key=lambda n: sum(k.threads for k in kernels[n]))
        assert row_reductions.same(torch, operands.ours(cheap)(), ours), cheap


def test_nonsense_and_other_bits_are_seen() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([[1.0, 3.0, 2.0]])
    case = Case("argmax", 1, 3, DENSE)
    row_reductions.agree(case, x, torch.tensor([1]), torch.tensor([1]))
    with pytest.raises(measure.WrongBitsError, match=r"off by 0\.333"):
        row_reductions.agree(case, x, torch.tensor([2]), torch.tensor([1]))
    zero = torch.zeros(2)
    assert row_reductions.same(torch, (zero, x), (zero.clone(), x)) and not row_reductions.same(
        torch, zero, -zero
    )


def test_a_regret_is_of_right_kernels_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of other bits is named, whatever its time."""
    torch = pytest.importorskip("torch")
    times = {"chosen": 20.0, "better": 16.0, "wrong": 1.0}
    monkeypatch.setattr(row_reductions, "timings", lambda timer, work: {n: times[n] for n in work})
    bench = row_reductions.Rows(ops._parser().parse_args([]), torch)
    bench.timer = lambda work, counts: [SimpleNamespace(median=run.us) for run in work]

    def forced(name: str) -> Any:
        def run() -> Any:
            return torch.tensor([1.0 if name == "wrong" else 2.0])

        run.us = times[name]  # type: ignore[attr-defined]
        return run

    operands: Any = SimpleNamespace(case=Case("softmax", 2, 3, DENSE), ours=forced)
    found, best = bench.route_times(operands, [*times], torch.tensor([2.0]))
    assert found == {"chosen": 20.0, "better": 16.0}
    assert best == results.Best("better", 16.0, 1.25)
    assert bench.wrong == ["softmax 2x3, dense: wrong returns other bits"]


# -- what is learnt ---------------------------------------------------------------------------
def test_a_table_without_times_has_the_prior() -> None:
    assert fit.fit_with_prior([], ["one", "other"]) == dict.fromkeys(["one", "other"], fit.PRIOR)


def test_what_was_measured_can_be_learnt_from(tmp_path: Path) -> None:
    """Times that follow the model are found again, by the names that the tuning has."""
    key, dtype = ("row_reductions",), "sum x=bf16 > bf16"
    table = TABLES[key]
    routes = [r for r in table.routes if len(r.kernels) == 1 and r.main.part == "held"][:3]
    planted = {r.main.name: (5.0 + i, *[0.9 - 0.3 * i] * 7) for i, r in enumerate(routes)}
    on = {"gpu": TUNING.gpu, "sms": TUNING.sms, "rates": asdict(TUNING.rates)}
    records = []
    for number in range(1, 60):
        case = Case("sum of rows", 7**number % 5000 + 1, 8 * (number % 16 + 1), DENSE)
        values = {"ROWS": case.rows, "COLS": case.cols, "VECTOR": 1, **facts(dtype)}
        env = table.space.environment({**values, "SMS": TUNING.sms})
        us = {}
        for route in routes:
            ((name, terms),) = route_terms(route, env, TUNING).items()
            us[route.of(dtype).name] = sum(map(float.__mul__, planted[name], terms))
        known = {"table": key, "dtype": dtype, "values": values, "routes": us}
        records.append(asdict(timing(case, 1.0, 1.0, None, **known)) | on)
    several = {**records[0], "steps": 2}
    measured = row_points([several, *records])
    assert len(measured) == 3 * len(records), "of several steps it is not known which took how long"
    constants = fit.fit_with_prior(measured)
    assert constants.keys() == {r.main.name for r in routes}
    assert all(len(c) == len(TERMS) for c in constants.values())
    for point in measured:
        predicted = sum(float(np.dot(constants[k], t)) for k, t in point.terms.items())
        assert predicted == pytest.approx(point.us, rel=0.02)
    assert fit.Regret.of(fit.held_out(measured, fit.fit_with_prior)).mean < 1.002
    shared = fit.fit_with_prior(measured, ["another"])["another"]
    assert 5.0 < shared[0] < 7.0 and fit.fit_with_prior(measured, constants) == constants

    saved, output = tmp_path / "rows.json", tmp_path / f"{TUNING.name}.json"
    saved.write_text(json.dumps(records), encoding="utf-8")
    write(TUNING, output)
    assert tune.main(["--rows", str(saved), "--output", str(output)]) == 0
    learnt = read(output).kernels
    kernels = {kernel.name for route in table.routes for kernel in route.kernels}
    for name in learnt:
        wanted = constants.get(name, shared) if name in kernels else TUNING.kernels[name]
        assert learnt[name] == pytest.approx(wanted, rel=1e-3), name
    assert kernels <= learnt.keys() == TUNING.kernels.keys()


# -- what is said -----------------------------------------------------------------------------
FOUND = [
    timing(Case("softmax", 2, 128, DENSE), 8.0, 10.0, 9.0, regret=1.0),
    timing(Case("softmax", 3, 256, OFF), 8.0, 4.0, None, regret=1.21),
    timing(Case("argmax", 5, 512, DENSE), 2.0, 8.0, 6.0, regret=1.0),
]


def test_tables_are_by_operation() -> None:
    lines = [
        " ".join(line.split()) for line in row_reductions.spread_table(FOUND, RATIO).splitlines()
    ]
    assert lines == [
        "operation problems geomean P10 least at",
        "softmax 2 0.750 0.562 0.500 3x256, off 16 bytes",
        "argmax 1 3.000 3.000 3.000 5x512",
        "all 3 1.191 0.625 0.500 softmax 3x256, off 16 bytes",
    ]
    lines = [
        " ".join(line.split()) for line in row_reductions.spread_table(FOUND, REGRET).splitlines()
    ]
    assert lines[1] == "softmax 2 1.100 1.189 1.210 3x256, off 16 bytes"
    assert row_reductions.worst_table(FOUND).splitlines()[1].split()[-6:] == [
        "bytes", "8.0", "4.0", "0.500", "some", "kernel",
    ]  # fmt: skip


def test_an_earlier_run_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.json"
    results.write_records(path, results.records(FOUND, ENVIRONMENT))
    assert ops.main(["--rows", str(path)]) == 0
    said = capsys.readouterr().out
    assert all(row_reductions.spread_table(FOUND, of) in said for of in (RATIO, REGRET))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--random", "--only", "softmax"], "no --only"),
        (["--regret"], "--regret is of random problems"),
        (["--random", "--problems", "0"], "0 random problems: expected 1 or more"),
        (["--random", "--seed", "-1"], "seed -1"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: list[str], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        ops.main(options)
