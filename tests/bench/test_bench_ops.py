"""``ptxgen bench ops``: what is timed and how it is summed up; nothing is timed here."""

from __future__ import annotations

import pytest

from ptxgen.bench import opcase, ops, results
from ptxgen.errors import OptionError


def test_cases_are_selected_by_name_and_sizes():
    everything = ops.cases()
    assert len({(c.name, c.sizes) for c in everything}) == len(everything)
    assert {c.name for c in ops.select(["softmax*"])} == {"softmax"}
    (one,) = ops.select(["rms_norm 8192x4096"])
    assert one.nbytes == 2 * 2 * 8192 * 4096 and 31 < one.limit_us < 32
    assert len(ops.select(["*"], quick=True)) == -(-len(everything) // 3)
    with pytest.raises(OptionError, match="--only nothing matches nothing; there are rms_norm"):
        ops.select(["nothing"])


def test_the_summary_says_what_targets_are_about():
    small = opcase.Timing("sum", "1x2", 1000, 1.0, 8.0, 6.0, None)
    large = opcase.Timing("softmax", "3x4", 1 << 30, 10.0, 12.5, 50.0, 25.0)
    lines = ops.summary([small, large])
    assert lines == [
        "torch.compile's time / ours: 2.00 in the mean of 1",
        "ours / the faster of PyTorch's: at most 1.33 (sum 1x2)",
        "of 4.3 TB/s, above 64 MiB: at least 0.80 (softmax 3x4)",
    ]
    assert "0.80" in results.columns([small, large], ops.Ops.columns).splitlines()[2]


def test_draws_agree_if_they_are_among_what_is_kept(monkeypatch):
    """Draws agree if top-k and top-p keep their tokens, whatever the generator; others do not."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(ops, "_random", lambda torch, *shape: torch.randn(shape))
    for case in (ops._sampling_case(3, 500, 5, 0.9), ops._sampling_case(3, 500, 0, 0.9)):
        inputs, _, stock, *_, agree = case.make(torch)
        opcase.compare(stock(*inputs), None, agree)
        with pytest.raises(opcase.WrongBitsError, match="not what was to be computed"):
            opcase.compare(inputs[0].argmin(-1), None, agree)


def test_both_sides_go_back_to_all_that_is_given():
    torch = pytest.importorskip("torch")
    dy, a, b = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0]), torch.tensor([7.0, 11.0])
    work = opcase.with_gradients(torch, dy, (a, b), lambda a, b: a * b, lambda a, b: b + a)
    assert [x.tolist() for x in work.ours(*work.inputs)] == [[7.0, 22.0], [3.0, 10.0]]
    assert [x.tolist() for x in work.stock(*work.inputs)] == [[1.0, 2.0]] * 2
    assert not work.compiled
