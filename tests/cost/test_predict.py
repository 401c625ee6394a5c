"""Predicted times of routes that are taken in order: what they follow, and how good they are."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import ptxgen
from ptxgen import graph
from ptxgen.bench import predict
from ptxgen.build import compile as building
from ptxgen.build import render
from ptxgen.cost.gpu import TYPICAL
from ptxgen.cost.tuning import BOUNDS, FOLDER, UNMEASURED, read, write
from ptxgen.errors import PtxgenError
from ptxgen.ops.rotary import rotate_heads
from ptxgen.runtime import get_device
from ptxgen.tiles import TABLES

RESULTS = Path(__file__).parents[2] / "bench" / "results"
ROWS = sorted((*RESULTS.glob("ops-h200-*.json"), *RESULTS.glob("attention-random-h100-*.json")))
TUNING = read(FOLDER / "h200_132.json")
BAND, TAILS, FEW = 1.15, 1.6, 6
"""Bounds of predicted over measured time: BAND for the geometric mean, TAILS for the tails, which
are tested if there are at least FEW results.
"""


def built(make, *sizes):
    b = graph.Builder(make.__name__, device="cpu")
    made = make(b, *sizes)
    b.output(*(made if isinstance(made, tuple) else (made,)))
    return b.program()


def us(make, *sizes):
    device = get_device("cpu")
    return [step.predicted(device) for step in built(make, *sizes).steps]


# -- a program of each family ----------------------------------------------------------------
def matrix(b, m, n, dtype="bfloat16", name="x"):
    return b.input(name, (m, n), dtype)


def rows(b, m, n):
    return b.softmax(matrix(b, m, n))


def rows_down(b, m, n):
    x, w = matrix(b, m, n), b.input("w", (n,), "bfloat16")
    return b.rms_norm_backward(x, x, w)


def columns(b, m, n):
    return b.sum(matrix(b, m, n), axis=0)


def pointwise(b, m, n):
    return b.gelu(matrix(b, m, n))


def moved(b, m, n):
    return b.contiguous(b.permute(matrix(b, m, n), (1, 0)))


def gathered(b, m, n):
    return b.embedding(matrix(b, 50000, n), b.input("i", (m,), "int64"))


def scattered(b, m, n):
    return b.embedding_backward(matrix(b, m, n), b.input("i", (m,), "int64"), 5000)


def scanned(b, m, n):
    return b.cumsum(matrix(b, m, n))


def log_scanned(b, m, n):
    return b.logcumsumexp(matrix(b, m, n))


def selected(b, m, n):
    return b.topk(matrix(b, m, n), 4)


def sampled(b, m, n):
    return b.sample(matrix(b, m, n), temperature=1.0)


def summed(b, m, n):
    return b.logsumexp(matrix(b, m, n))


def fused_loss(b, m, n):
    x, w, t = matrix(b, m, n), matrix(b, 512, n, name="w"), b.input("t", (m,), "int64")
    return b.linear_cross_entropy_grad(x, w, t)[:2]


def experts(b, m, n):
    x, w = matrix(b, m, n), b.input("w", (8, n, 256), "bfloat16")
    weights, of = b.moe_router(matrix(b, m, 8, name="logits"), 2)
    rows, places, ends = b.moe_dispatch(x, of, 8)
    return b.moe_combine(b.grouped_linear(rows, w, ends, layout="kn"), places, weights)


def attended(b, m, n):
    q = b.input("q", (1, 8, m, 64), "bfloat16")
    o, lse = b.attention(q, q, q, causal=True, return_lse=True)
    return (o, *b.attention_grad(q, q, q, q, o, lse, causal=True))


def solved(b, m, n):
    a, y = (b.input(name, (m, 64, size), "float32") for name, size in (("a", 64), ("y", n)))
    return b.solve_triangular(a, y)


def ordered(b, m, n):
    return b.sort(b.input("x", (m, n), "float32"))


def transformed(b, m, n):
    short, long = (b.input(name, (m, 2 * k), "float32") for name, k in (("x", n), ("y", 9973)))
    return b.fft_block(short), b.fft_block(long)


def splatted(b, m, n):
    given = ((m, 3), (m, 3), (m, 4), (m,), (m, 3), (4, 4), (3, 3))
    arrays = (b.input(f"x{i}", shape, "float32") for i, shape in enumerate(given))
    return b.splat_render(*arrays, width=64, height=64)


def decoded(b, m, n):
    q, k = (b.input(name, (4, 8, s, 64), "bfloat16") for name, s in (("q", 1), ("k", m)))
    return b.attention(q, k, k)


def recurred(b, m, n):
    x, dy = (b.input(name, (1, m, n), d) for name, d in (("x", "bfloat16"), ("dy", "float32")))
    a, shared = b.input("a", (n, 16), "float32"), b.input("b", (1, m, 16), "bfloat16")
    given = x, x, a, shared, shared
    found = b.selective_scan_backward(dy, b.selective_scan_kept(*given), *given)
    h = b.linear_recurrence(x, x, out_dtype="float32")
    return (*found, *b.linear_recurrence_backward(dy, x, h))


def convolved(b, m, n):
    x, w = b.input("x", (1, m, 8, n), "bfloat16"), b.input("w", (64, 3, 3, n), "bfloat16")
    taps = b.input("taps", (n, 3, 3, 1), "bfloat16")
    how = {"padding": 1, "layout": "channels_last"}
    return b.conv(x, w, **how), b.conv(x, taps, groups=n, **how)


def walked(b, m, n):
    q, g = b.input("q", (1, m, n // 64, 64), "bfloat16"), b.input("g", (1, m, n // 64), "float32")
    up = b.delta_ascend(q, q, q, g, g)
    return (*b.recurrence(q, q, q, g, g), *b.delta_descend(q, q, q, q, g, g), up)


def rotated(b, m, n):
    q, k = (b.input(name, (m, n // 64, 64), "bfloat16") for name in "qk")
    at, table = b.input("at", (m,), "int64"), b.input("table", (50000, 64), "bfloat16")
    return b.call(rotate_heads, q, k, at, table)


def products(b, m, n):
    return b.linear(matrix(b, m, n), b.input("w", (n, 256), "bfloat16"), layout="kn")


FAMILIES = (
    *(rows, rows_down, columns, pointwise, moved, gathered, scattered, scanned, log_scanned),
    *(selected, sampled, summed, fused_loss, experts, attended, decoded, recurred, solved),
    *(convolved, walked, products, ordered, transformed, splatted, rotated),
)


def each(values=FAMILIES):
    return pytest.mark.parametrize("make", values, ids=lambda make: make.__name__)


@each()
def test_every_step_has_a_prediction(make, monkeypatch) -> None:
    """Every step has a predicted time, and nothing is rendered or compiled for it."""

    def refuse(*_, **__):
        raise AssertionError("rendered or compiled")

    for module, name in (
        (render, "render"),
        (building, "compile_cubin"),
        (building, "compile_ptx"),
    ):
        monkeypatch.setattr(module, name, refuse)
    program = built(make, 512, 1024)
    device = get_device("cpu")
    found = [step.predicted(device) for step in program.steps]
    assert found and all(0 < x < 1e4 for x in found)
    assert [line.us for line in program.listing(device).steps] == found


def test_programs_here_are_of_all_tables() -> None:
    """All whose routes are taken in order."""
    seen = {step.problem.table[0] for make in FAMILIES for step in built(make, 512, 1024).steps}
    ordered = {key[0] for key, t in TABLES.items() if any(r.costs is None for r in t.routes)}
    assert ordered == seen & ordered


@each()
def test_times_grow_with_sizes(make) -> None:
    found = [sum(us(make, 256 << i, 1024)) for i in range(7)]
    assert found == sorted(found) and found[0] < found[-1]


def test_time_is_the_larger_of_both_and_the_launches() -> None:
    tuning = dataclasses.replace(TUNING, families={"f": (3.0, 2.0, 4.0)})
    nbytes, sms = int(1e3 * tuning.rates.memory), tuning.sms
    peak = sms * tuning.rates.products[0] * 1e3 * tuning.rates.clock  # of FMAs, a µs
    few, many = int(100 * peak), int(900 * peak)
    given = "f", 2, 10 * sms, nbytes, "fma"
    assert tuning.bounds(*given, few, sms=sms) == pytest.approx({"launches": 6.0, "bytes": 2e3})
    found = tuning.bounds(*given, many, sms=sms)
    assert found == pytest.approx({"launches": 6.0, "operations": 3600.0})
    # One CTA has one SM, and one CTA more than SMs makes one SM do twice as much.
    alone = tuning.bounds("f", 1, 1, 0, "fma", many, sms=sms)["operations"]
    assert alone == pytest.approx(sms * 3600.0)
    busy = tuning.bounds("f", 1, sms + 1, 0, "fma", many, sms=sms)["operations"]
    assert busy == pytest.approx(2 * sms / (sms + 1) * 3600.0)
    unknown = tuning.bounds("of nobody", 1, sms, 0, "fma", 0, sms=sms)
    assert unknown["launches"] == UNMEASURED[0]


def test_a_gpu_with_less_bandwidth_takes_longer() -> None:
    class Other(type(get_device("cpu"))):
        name = gpu = "another"

    slow = dataclasses.replace(TYPICAL["sm_90"], memory=TYPICAL["sm_90"].memory / 4)
    other = Other()
    other.rates = slow
    (step,) = built(pointwise, 8192, 8192).steps
    assert step.predicted(other) > 2 * step.predicted(get_device("cpu"))


def test_bytes_of_a_gather_are_those_of_what_is_read() -> None:
    (step,) = built(gathered, 64, 1024).steps
    assert step.nbytes > 50000 * 1024
    assert step.predicted(get_device("cpu")) < 2 * us(pointwise, 64, 1024)[0]


def test_causal_attention_and_a_window_do_less() -> None:
    def of(**how):
        b = graph.Builder(device="cpu")
        q = b.input("q", (1, 8, 8192, 64), "bfloat16")
        b.output(b.attention(q, q, q, **how))
        return b.program().steps[0].predicted(get_device("cpu"))

    whole, causal, window = of(), of(causal=True), of(causal=True, window=256)
    assert 1.8 < whole / causal < 2.0 and window < causal / 4


@each((gathered, pointwise, decoded, summed))
def test_explain_says_the_same(make) -> None:
    """``explain`` shows the predicted time of a step, and the terms that it is made of."""
    (step,) = built(make, 512, 1024).steps
    found = ptxgen.dispatch.explain.explain_problem(
        step.problem, step.nbytes, "sm_90", 132, gpu="NVIDIA H200"
    )
    assert found.winner.time == pytest.approx(step.predicted(get_device("cpu")))
    assert found.winner.terms.keys() <= BOUNDS.keys()
    assert f"predicted {found.winner.time:.1f} µs: " in found.brief()


def test_a_kernel_that_is_asked_for_has_a_prediction() -> None:
    """A kernel that is asked for by name has its own predicted time, in a table of ordered routes
    and in one with constants.
    """
    for make, asked in ((summed, ("logsumexp", 64, 1024)), (products, ("linear", 64, 256, 1024))):
        (step,) = built(make, 64, 1024).steps
        found = ptxgen.explain(*asked, dtype="bfloat16")
        other = dataclasses.replace(step, kernel=found.also_correct[0].name)
        assert 0 < other.predicted(get_device("cpu")) != step.predicted(get_device("cpu"))


# -- beside what was measured ----------------------------------------------------------------
@pytest.fixture(scope="module")
def measured():
    return predict.points(ROWS, TUNING)


def test_results_that_had_no_part_in_the_fit_are_predicted(measured) -> None:
    found = {q.family: q for q in predict.qualities(predict.held_out(measured))}
    many = [q for q in found.values() if q.results >= FEW]
    assert {"row_reductions", "pointwise", "attention_wgmma", "attention_decode", "all"} <= {
        q.family for q in many
    }
    for q in many:
        assert 1 / BAND < q.mean < BAND, q
        assert 1 / TAILS < q.p10 and q.p90 < TAILS, q


def test_constants_are_those_of_the_fit(measured) -> None:
    fitted = predict.fit(measured)
    assert fitted.keys() == TUNING.families.keys()
    for family, constants in fitted.items():
        assert TUNING.families[family] == pytest.approx(constants, rel=0.02), family


def test_the_command_says_how_good_it_is_and_writes_constants(tmp_path, capsys) -> None:
    path = tmp_path / "h200_132.json"
    write(dataclasses.replace(TUNING, families={"of nobody": UNMEASURED}), path)
    assert predict.main([*map(str, ROWS[:1]), "--tuning", str(path), "--write"]) == 0
    assert "attention_wgmma" in capsys.readouterr().out
    families = read(path).families
    assert "of nobody" in families and families["attention_wgmma"] != UNMEASURED
    assert read(path).kernels == TUNING.kernels
    wrong = tmp_path / "other.json"
    wrong.write_text("[{}]")
    with pytest.raises(PtxgenError, match="holds no rows"):
        predict.main([str(wrong)])
