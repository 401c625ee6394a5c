"""``ptxgen.autotune``: what is timed when, what is remembered, and that no bit depends on it.

The CPU device stands in for a GPU: it is told to have a clock, and which kernel is the fastest.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import ptxgen
from ptxgen import reference
from ptxgen.build.cache import default_cache
from ptxgen.cli import main
from ptxgen.dispatch import candidates
from ptxgen.errors import CacheWarning, OptionError
from ptxgen.ops.explaining import problem_of
from ptxgen.runtime import get_device
from ptxgen.runtime.cpu import CpuDevice

M, K, N = 5, 64, 32


class Clock:
    """A device's clock: the last of the candidates is the fastest."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.capturing = False

    def timed(
        self, work: Sequence[Callable[[], None]], stream: int, rounds: int
    ) -> list[list[float]]:
        self.asked.append(len(work))
        for run in work:
            run()
        return [[10.0 - number] * rounds for number in range(len(work))]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Clock]:
    made = Clock()
    monkeypatch.setenv("PTXGEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(CpuDevice, "can_time", True)
    monkeypatch.setattr(CpuDevice, "timed", lambda self, *given: made.timed(*given))
    monkeypatch.setattr(CpuDevice, "capturing", lambda self, stream: made.capturing)
    forget()
    with ptxgen.use_device("cpu"):
        yield made
    forget()


def forget() -> None:
    """Clears prepared calls, so that the device is as in a new process."""
    get_device("cpu").prepared.clear()
    get_device("cpu").calls.clear()


def operands(m: int = M) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return (
        rng.standard_normal((m, K), dtype=np.float32),
        rng.standard_normal((K, N), dtype=np.float32),
    )


def fired(m: int = M) -> str:
    """The kernel of the launch that serves the product now."""
    (kernel,) = {
        launch.prepared[0].function.symbol
        for (problem, _, kind), launch in get_device("cpu").prepared.items()
        if kind == "autotune" and dict(problem.values)["M"] == m
    }
    return kernel


def test_the_fastest_of_a_few_serves_and_is_remembered(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    x, w = operands()
    expected = reference.linear(x, w, layout="kn")
    problem = problem_of("linear", (M, N, K), "float32", 16, {})
    device = get_device("cpu")
    asked = {"arch": "sm_90", "sms": device.sms, "gpu": device.gpu}
    found = sorted(candidates(problem.table, dict(problem.values), **asked), key=lambda c: c.time)
    with ptxgen.autotune(most=3):
        assert (ptxgen.linear(x, w, layout="kn") == expected).all()
        assert clock.asked == [3] and fired() == found[2].choice.kernels[0]
        said = capsys.readouterr().err
        assert f"linear M={M} N={N} K={K} f32: {fired()} 8.0 µs, of 3" in said and "10.0 µs" in said
        assert (ptxgen.linear(x, w, layout="kn") == expected).all()
        forget()
        assert (ptxgen.linear(x, w, layout="kn") == expected).all()
        assert clock.asked == [3], "it is on disk"
        assert fired() == found[2].choice.kernels[0] and not capsys.readouterr().err
    assert default_cache().info().tuned == 1
    assert main(["cache", "info"]) == 0 and "1 problem" in capsys.readouterr().out
    forget()
    with ptxgen.autotune(most=2, show=False):
        ptxgen.linear(x, w, layout="kn")
    assert clock.asked == [3, 2] and not capsys.readouterr().err, "of two it was not known"


def test_batches_are_problems_of_their_own(clock: Clock) -> None:
    """Every kernel that takes batches is timed, and none that leaves something in scratch memory:
    rows of these operands are off 16 bytes.
    """
    rng = np.random.default_rng(1)
    a = rng.standard_normal((3, 9, 33), dtype=np.float32)
    b = rng.standard_normal((3, 33, 17), dtype=np.float32)
    with ptxgen.autotune(most=1000, show=False):
        assert (ptxgen.matmul(a, b) == reference.matmul(a, b)).all()
        ptxgen.matmul(a[0], b[0])
        ptxgen.matmul(a[:2], b[:2])
        batched, alone, fewer = clock.asked
        assert 1 < batched == fewer < alone
        forget()
        assert (ptxgen.matmul(a, b) == reference.matmul(a, b)).all()
    assert len(clock.asked) == default_cache().info().tuned == 3


def test_it_is_off_unless_turned_on(clock: Clock) -> None:
    x, w = operands()
    ptxgen.linear(x, w, layout="kn")
    with ptxgen.autotune(), ptxgen.autotune(False):
        ptxgen.linear(x, w, layout="kn")
    with ptxgen.autotune(), ptxgen.autotune(most=1):
        ptxgen.linear(x, w, layout="kn")
    ptxgen.linear(x, w, layout="kn")
    name = ptxgen.explain("linear", M, N, K).winner.kernels[0]
    with ptxgen.autotune():
        ptxgen.linear(x, w, kernel=name, layout="kn")
    assert clock.asked == [] and default_cache().info().tuned == 0


def test_nothing_is_timed_while_a_stream_captures(clock: Clock) -> None:
    x, w = operands()
    with ptxgen.autotune(show=False):
        clock.capturing = True
        ptxgen.linear(x, w, layout="kn")
        assert clock.asked == []
        clock.capturing = False
        ptxgen.linear(x, w, layout="kn")
        assert len(clock.asked) == 1, "what was captured is still to be timed"


def test_results_are_added_to_once(clock: Clock) -> None:
    x, _ = operands()
    dy = np.ones((M, N), np.float32)
    dw = np.full((K, N), 0.5, np.float32)
    expected = reference.linear_wgrad(x, dy, out=dw.copy(), accumulate=True, layout="kn")
    with ptxgen.autotune(show=False):
        ptxgen.linear_wgrad(x, dy, out=dw, accumulate=True, layout="kn")
    assert len(clock.asked) == 1 and (dw == expected).all()


@pytest.mark.parametrize("damage", ["cut", "foreign", "impossible"])
def test_a_bad_entry_is_a_miss_with_a_warning(clock: Clock, damage: str) -> None:
    x, w = operands()
    with ptxgen.autotune(show=False):
        ptxgen.linear(x, w, layout="kn")
        (entry,) = default_cache().root.glob("*.tuned")
        whole = entry.read_bytes()
        if damage == "cut":
            entry.write_bytes(whole[:-9])
        elif damage == "impossible":
            from ptxgen.build.cache import Entry, _write

            _write(entry, entry.stem, Entry(b"", {"times": {"no_kernel": 1.0}}), locked=False)
        else:  # another problem's, under this name
            ptxgen.linear(*operands(9), layout="kn")
            (other,) = {*default_cache().root.glob("*.tuned")} - {entry}
            entry.write_bytes(other.read_bytes())
        default_cache()._memory.clear()
        forget()
        before = len(clock.asked)
        with pytest.warns(CacheWarning, match=f"{entry.name}.*it is made again"):
            ptxgen.linear(x, w, layout="kn")
        assert len(clock.asked) == before + 1
        default_cache()._memory.clear()
        forget()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ptxgen.linear(x, w, layout="kn")
        assert len(clock.asked) == before + 1, "it was made again"


@pytest.mark.parametrize("most", [0, -1, 2.0, "3", True])
def test_impossible_numbers_are_refused(most: object) -> None:
    with pytest.raises(OptionError, match=r"most is .*; takes a whole number from 1 on"):
        ptxgen.autotune(most=most)  # type: ignore[arg-type]


@pytest.mark.gpu
def test_on_a_gpu_no_bit_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip("torch", reason="its tensors are multiplied")
    monkeypatch.setenv("PTXGEN_CACHE_DIR", str(tmp_path / "cache"))
    device = get_device("cuda")
    for dtype in (torch.float32, torch.bfloat16):
        for m, k, n in ((3, 520, 264), (200, 4096, 1000), (33, 77, 1)):
            x = torch.randn(m, k, device="cuda").to(dtype)
            w = torch.randn(k, n, device="cuda").to(dtype)
            expected = ptxgen.linear(x, w, layout="kn")
            device.prepared.clear()
            with ptxgen.autotune():
                for _ in range(3):
                    out = torch.full_like(expected, float("nan"))
                    assert torch.equal(ptxgen.linear(x, w, out=out, layout="kn"), expected)
            said = capsys.readouterr().err
            assert said.count("ptxgen.autotune: linear") <= 1
            device.prepared.clear()
    stream = torch.cuda.Stream()
    x, w = torch.randn(7, 96, device="cuda"), torch.randn(96, 40, device="cuda")
    expected = ptxgen.linear(x, w, layout="kn")
    out, graph = torch.zeros_like(expected), torch.cuda.CUDAGraph()
    device.prepared.clear()
    with ptxgen.autotune(), torch.cuda.stream(stream), torch.cuda.graph(graph, stream=stream):
        ptxgen.linear(x, w, out=out, layout="kn")
    assert not capsys.readouterr().err, "nothing is timed under capture"
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, expected)
