"""Random problems: the draw, regret, and what is said of many problems. Nothing is timed."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from ops_fakes import FakeGpu
from test_bench import ENVIRONMENT, fake_area, row

from ptxgen.bench import bands, draw, gemm, measure, regret, results
from ptxgen.bench.bands import ALL, NAMES, RATIO, REGRET, band_of
from ptxgen.bench.cases import LAYOUTS, RANDOM, TOKENS, Case, Shape
from ptxgen.bench.results import LIMITS, Best, Row, Sample
from ptxgen.errors import OptionError
from ptxgen.tiles import SPECS


# -- the draw ---------------------------------------------------------------------
def test_a_seed_draws_the_same_everywhere() -> None:
    """Published results name a seed: whoever changes what it draws, changes what they mean."""
    first = [Shape(3620, 1280, 2560), Shape(2048, 15360, 3840), Shape(15, 16464, 112)]
    assert draw.shapes(4, 0, "bf16") == [*first, Shape(2598, 25600, 6400)]
    assert draw.shapes(4, 0, "f32") == [*first, Shape(128, 16896, 4224)]  # the fourth is too long
    assert draw.shapes(3, 1, "f64") == [
        Shape(4, 12, 122),
        Shape(557, 576, 2048),
        Shape(8, 1088, 1472),
    ]
    assert draw.shapes(200, 5, "f16")[:50] == draw.shapes(50, 5, "bf16")


def test_the_draw_is_what_is_documented() -> None:
    drawn = draw._drawn(random.Random(3))
    every = [next(drawn) for _ in range(20000)]
    assert {min(s.m for s in every), max(s.m for s in every)} == {1, 16384}
    powers = [1 << i for i in range(15)]
    chance = sum(math.log((m + 0.5) / max(m - 0.5, 1)) for m in powers) / math.log(16384)
    coarse = [s for s in every if s.k % 64 == s.n % 64 == 0]
    even = [s for s in every if s.k % 8 == s.n % 8 == 0]
    odd = [s for s in every if s.k % 8 or s.n % 8]
    for what, count, share in (
        ("M is a power of two", sum(s.m in powers for s in every), 0.5 + 0.5 * chance),
        ("of models", len(coarse), 0.5 + 0.25 / 64),
        ("multiples of 8", len(even) - len(coarse), 0.25 * 63 / 64),
        ("any, or thin", len(odd), 0.25 * 63 / 64),
        ("thin and long", sum(max(s.k, s.n) > 16384 for s in odd), 0.1 * 3 / 7 * 63 / 64),
        ("thin the other way", sum(s.k > 16384 for s in odd), 0.05 * 3 / 7 * 63 / 64),
    ):
        # Four standard deviations; the shares are right to 0.003, where small sizes are rounded.
        deviation = math.sqrt(share * (1 - share) / len(every))
        assert abs(count / len(every) - share) < 4 * deviation + 0.003, what
    for dtype, itemsize in (("bf16", 2), ("f32", 4), ("f64", 8)):
        for s in draw.shapes(3000, 3, dtype):
            assert s.m * s.k * s.n <= draw.MOST_PRODUCTS[itemsize]
            assert itemsize * max(s.m * s.k, s.k * s.n, s.m * s.n) <= draw.MOST_BYTES


def test_tokens_are_no_multiple_of_64_and_weights_are_of_models() -> None:
    drawn = draw._tokens(random.Random(3))
    every = [next(drawn) for _ in range(4000)]
    assert {(s.k, s.n) for s in every} == {*draw.LAYERS}
    assert all(s.m <= draw.ROWS and s.m % 64 and band_of(s.m) == NAMES[-1] for s in every)
    middle = sum(s.m < math.sqrt(draw.FEWEST_TOKENS * draw.ROWS) for s in every) / len(every)
    assert abs(middle - 0.5) < 4 * math.sqrt(0.25 / len(every)), "M is not log-uniform"
    first = draw.shapes(4, 0, "bf16", TOKENS)
    assert first == draw.shapes(9, 0, "f16", TOKENS)[:4]
    assert first != draw.shapes(4, 1, "bf16", TOKENS)


def test_kinds_take_turns() -> None:
    found = draw.select(2, 0, ["NN"], dtype="bf16", kinds=draw.KINDS)
    assert [c.group for c in found] == [RANDOM, TOKENS, RANDOM, TOKENS]
    assert [c.shape for c in found[::2]] == draw.shapes(2, 0, "bf16")
    assert [c.shape for c in found[1::2]] == draw.shapes(2, 0, "bf16", TOKENS)


def test_problems_become_cases() -> None:
    found = draw.select(2, 0, ["NT", "TN"], dtype="f16")
    assert {c.group for c in found} == {RANDOM} and {c.tier for c in found} == {"tc"}
    assert [(c.op, c.stored, c.shape) for c in found] == [
        (op, stored, shape)
        for shape in draw.shapes(2, 0, "f16")
        for op, stored in (("linear", "nk"), ("matmul", "tn"))
    ]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--random", "3", "--shapes", "odd"], "no --shapes"),
        (["--random", "3", "--op", "wgrad"], "no --op wgrad"),
        (["--random", "0"], "0 random problems: expected 1 or more"),
        (["--random", "3", "--seed", "-1"], "seed -1: expected 0 to"),
        (["--random", "3", "--seed", str(1 << 63)], "expected 0 to"),
        (["--random", "3", "--layouts", "TT"], "TT"),
        (["--kinds", "tokens"], "no --random"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: list[str], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        gemm.main(options)


# -- many problems ------------------------------------------------------------------
def drawn_row(m: int, ratio: float, layout: str = "NN", loss: float | None = None) -> Row:
    op, stored = {"NN": ("linear", "kn"), "NT": ("linear", "nk"), "TN": ("matmul", "tn")}[layout]
    found = row(Case(RANDOM, op, stored, Shape(m, 64, 96)), ratio, us=10.0)
    return dataclasses.replace(
        found, kernel=f"kernel_{m}", best="faster", best_us=loss and 10 / loss, regret=loss
    )


def test_bands_and_quantiles() -> None:
    edges = {1: "1-48", 48: "1-48", 49: "49-512", 512: "49-512", 513: "above 512"}
    assert {m: bands.band_of(m) for m in edges} == edges
    assert list(bands.NAMES) == list(dict.fromkeys(edges.values()))
    values = [5.0, 1.0, 3.0, 2.0, 4.0]
    assert [bands.quantile(values, q) for q in (0, 0.1, 0.5, 0.9, 1)] == [1, 1.4, 3, 4.6, 5]
    assert bands.quantile([7.0], 0.9) == 7


def test_spreads_of_ratios_and_regrets() -> None:
    rows = [drawn_row(1, 0.5, loss=1.0), drawn_row(48, 2.0, loss=1.5)]
    rows += [drawn_row(1000, 4.0, "NT", loss=1.1)]
    found = bands.spreads(rows, RATIO)
    expected = [("NN", "1-48"), ("NN", ALL), ("NT", "above 512"), ("NT", ALL)]
    assert list(found) == [*expected, (ALL, "1-48"), (ALL, "above 512"), (ALL, ALL)]
    few = found["NN", "1-48"]
    assert (few.cases, few.worst, few.worst_at) == (2, 0.5, "1x64x96 NN")
    assert math.isclose(few.geomean, 1.0) and math.isclose(few.tail, 0.65)
    whole = found[ALL, ALL]
    assert math.isclose(whole.geomean, 4 ** (1 / 3)) and math.isclose(whole.tail, 0.8)
    tokens = dataclasses.replace(drawn_row(1001, 0.25), group=TOKENS)
    apart = bands.spreads([*rows, tokens], RATIO)
    assert apart["NN", TOKENS].worst == apart[ALL, ALL].worst == 0.25
    assert apart[ALL, "above 512"] == found[ALL, "above 512"], "tokens have a band of their own"
    worst = bands.spreads(rows, REGRET)[ALL, ALL]
    assert (worst.worst, worst.worst_at) == (1.5, "48x64x96 NN")
    assert math.isclose(worst.tail, 1.42) and math.isclose(worst.geomean, 1.65 ** (1 / 3))


def test_the_worst_are_named_from_the_worst() -> None:
    rows = [drawn_row(m, 1 + m / 100, loss=1 + m / 1000) for m in range(1, 31)]
    for measured, order in ((RATIO, range(1, 11)), (REGRET, range(30, 20, -1))):
        lines = bands.worst_table(rows, measured).splitlines()[1:]
        assert [line.split()[0] for line in lines] == [f"{m}x64x96" for m in order]
        assert all(f" kernel_{m} " in line for m, line in zip(order, lines, strict=True))


# -- regret -----------------------------------------------------------------------
def test_the_best_of_many_noisy_times_does_not_flatter() -> None:
    """30 kernels that take the same time, with 5 % of noise: nothing is lost by choosing any."""
    noise = random.Random(1)
    naive, found = [], []
    for _ in range(300):
        times = {f"k{i}": 10 * math.exp(noise.gauss(0, 0.05)) for i in range(30)}
        naive.append(times["k0"] / min(times.values()))
        best = regret.best_of(
            "k0", times, lambda n: [10 * math.exp(noise.gauss(0, 0.05)) for _ in n]
        )
        found.append(best.regret)
    assert results.geomean(naive) > 1.1
    # Of 300 quotients of deviation 0.07: 0.004.
    assert abs(math.log(results.geomean(found))) < 0.016


def test_the_best_is_found_beside_the_chosen() -> None:
    true = {"slow": 20.0, "best": 10.0, "near": 10.5, "far": 13.0}
    asked: list[list[str]] = []

    def timed(names: Sequence[str]) -> list[float]:
        asked.append(list(names))
        return [true[name] for name in names]

    first = {"slow": 20.0, "best": 10.6, "near": 10.0, "far": 13.0}  # near looked faster once
    assert regret.best_of("slow", first, timed) == Best("best", 10.0, 2.0)
    assert asked == [["slow", "best", "near"], ["best", "slow"]]
    outlier = {**first, "best": 35.0}  # of one timing; it is the chosen one, so it is seen again
    assert regret.best_of("best", outlier, timed) == Best("best", 10.0, 1.0)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_kernels_that_serve_are_of_the_dtype(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "target", lambda: ("sm_90", 132, "NVIDIA H200"))
    monkeypatch.setattr("ptxgen.runtime.get_device", lambda name: FakeGpu())
    for case in draw.select(4, 2, dtype=dtype):
        align = measure.natural_alignment(case)
        found = regret.serving(case, align)
        assert measure.chosen(case, align).names in found.values()
        assert all(name.split("+")[-1] in kernels for name, kernels in found.items())
        firsts = {SPECS[name].dtype for name in found if name in SPECS}
        assert firsts == {dtype}


def test_a_wrong_kernel_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = SimpleNamespace(names=["a", "b"])
    monkeypatch.setattr(measure, "chosen", lambda case, align: chosen)
    monkeypatch.setattr(measure, "alignment", lambda tensor: 16)
    area = fake_area(
        gemm.Gemm, *["--random", "1", "--kinds", "random", "--layouts", "NN", "--regret"]
    )
    (case,) = area.cases()
    area.limits, area.checked, area.out = LIMITS["NVIDIA H200", "simt"], 64, None
    area.served = {"torch": (SimpleNamespace(name="torch", version="1"), None)}
    area.shared = lambda case: SimpleNamespace(operands=SimpleNamespace(stored=lambda _: "ab"))
    area.regret_of = lambda *_: (Best("k", 1.0, 2.0), {"bad": "3 outputs have other bits"})
    sample = Sample(2.0, 1.0, 3.0, 5)
    (found,) = area.found(case, {"ours": sample, "torch": sample})
    assert (found.kernel, found.best, found.best_us, found.regret) == ("a + b", "k", 1.0, 2.0)
    assert area.wrong == [f"{case} bad: 3 outputs have other bits"]
    area.options.regret = False
    (found,) = area.found(case, {"ours": sample, "torch": sample})
    assert found.regret is None and len(area.wrong) == 1, "nobody asked"


# -- files, text and plots ------------------------------------------------------------
def random_rows() -> list[Row]:
    noise = random.Random(4)
    return [
        dataclasses.replace(
            row(case, math.exp(noise.gauss(0, 0.3))), best="faster", best_us=1.5, regret=1 + loss
        )
        for case, loss in ((c, 0.1 * noise.random()) for c in draw.select(20, ENVIRONMENT.seed))
    ]


def test_rows_come_back_and_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.json"
    rows = random_rows()
    results.write_records(path, results.records(rows, ENVIRONMENT))
    assert results.read_json(path) == (rows, ENVIRONMENT)
    assert gemm.main(["--rows", str(path), "--brief"]) == 0
    brief = capsys.readouterr().out
    assert "torch time / ours, seed 7, 60 problems" in brief
    assert "chosen kernel's time / the best one's, 60 problems" in brief
    assert "geomean" in brief and "asked" not in brief  # nothing is asked of random problems
    assert gemm.main(["--rows", str(path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(brief.splitlines()) + len(rows) + 2


def test_rows_from_before_there_was_regret_are_read(tmp_path: Path) -> None:
    rows = [drawn_row(m, 1.0) for m in (1, 100)]
    rows = [dataclasses.replace(r, best=None) for r in rows]
    old = results.records(rows, ENVIRONMENT)
    for record in old:
        del record["best"], record["best_us"], record["regret"]
    results.write_records(tmp_path / "old.json", old)
    assert results.read_json(tmp_path / "old.json") == (rows, ENVIRONMENT)
    assert bands.with_regret(rows) == []


@pytest.mark.gpu
def test_random_problems_are_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="timing needs torch")
    monkeypatch.setattr(draw, "_drawn", lambda random: iter([Shape(5, 64, 48), Shape(70, 33, 9)]))
    path = tmp_path / "rows.json"
    options = ["--random", "2", "--kinds", "random", "--regret", "--quick", "--save"]
    assert gemm.main([*options, str(path)]) == 0
    rows, _ = results.read_json(path)
    assert [r.layout for r in rows] == [*LAYOUTS, *LAYOUTS]
    assert all(r.best and r.best_us and r.regret for r in rows)
