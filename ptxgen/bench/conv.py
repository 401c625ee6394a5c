"""``ptxgen bench conv``: convolutions and their gradients against cuDNN.

cuDNN is called through PyTorch, channels last, with ``benchmark=True`` and without TF32. ptxgen's
calls take ``layout="channels_last"``, so both read the same memory.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import ptxgen
from ptxgen import arguments
from ptxgen.bench import bands, conv_cases, measure, results
from ptxgen.bench.conv_cases import DGRAD, GROUPED, KINDS, NAMED, WGRAD, Case
from ptxgen.bench.measure import Work, WrongBitsError, require_close
from ptxgen.bench.results import Environment, Sample
from ptxgen.bench.runner import Area, Timed, add_list, only_drawn
from ptxgen.numerics.contract import AUTO_TIER, ITEMSIZE
from ptxgen.spec import KernelSpec
from ptxgen.ui import emit, plural

WINDOWS = 64
"""Number of output positions of a forward convolution whose bits are compared with ``linear``."""


@dataclass(frozen=True)
class Row:
    """Times of one convolution in µs, ptxgen's with quartiles; ``steps``: number of ptxgen's
    launches; ``kernel``: its kernels.
    """

    group: str  # "named" or "random"
    kind: str
    shape: str
    dtype: str
    batch: int
    size: int
    channels: int
    outputs: int
    taps: int
    stride: int
    steps: int
    kernel: str
    ours_us: float
    ours_q1_us: float
    ours_q3_us: float
    ours_count: int
    cudnn_us: float

    ratio = results.quotient("cudnn_us", "ours_us")  # above 1, ours is faster


# -- what is timed ----------------------------------------------------------------------------
class Operands:
    """Random operands of a convolution case, and the calls on them."""

    def __init__(self, torch: Any, case: Case, dtype: str, seed: int, device: str) -> None:
        self._torch, self.case = torch, case
        made = measure.normal(torch, dtype, seed, device)
        sides, taps, along = ((n,) * case.rank for n in (case.size, case.taps, case.along))
        self.x = made(case.batch, *sides, case.channels)
        self.w = made(case.outputs, *taps, case.channels // case.groups)
        self.dy: Any = None
        if case.kind in (DGRAD, WGRAD):
            self.dy = made(case.batch, *along, case.outputs)

    def arguments(self) -> tuple[str, dict[str, Any]]:
        """Returns the name and the keyword arguments of ptxgen's operation."""
        case = self.case
        geometry = {"stride": case.stride, "padding": case.padding, "groups": case.groups}
        how = {**geometry, "layout": "channels_last"}
        if case.kind == DGRAD:
            return "conv_dgrad", {"dy": self.dy, "w": self.w, "image": case.size, **how}
        if case.kind == WGRAD:
            how["out_dtype"] = str(self.x.dtype).removeprefix("torch.")
            return "conv_wgrad", {"x": self.x, "dy": self.dy, "taps": case.taps, **how}
        return "conv", {"x": self.x, "w": self.w, **how}

    def ours(self) -> Work:
        """Returns ptxgen's call of the operation."""
        name, given = self.arguments()
        return partial(getattr(ptxgen, name), **given)

    def peer(self) -> Work:
        """Returns cuDNN's call, which reads the same memory as ptxgen's."""
        x, w, dy = (None if v is None else v.movedim(-1, 1) for v in (self.x, self.w, self.dy))
        case, rank = self.case, self.case.rank
        if case.kind not in (DGRAD, WGRAD):
            call = (self._torch.conv1d, self._torch.conv2d)[rank - 1]
            return partial(call, x, w, None, case.stride, case.padding, 1, case.groups)
        stock = self._torch.ops.aten.convolution_backward
        mask = [case.kind == DGRAD, case.kind == WGRAD, False]
        along = [[n] * rank for n in (case.stride, case.padding, 1)]
        geometry = *along, False, [0] * rank, case.groups
        at = mask.index(True)
        return lambda: stock(dy, x, w, None, *geometry, mask)[at]

    def check(self, ours: Any) -> None:
        """Compares ptxgen's result with cuDNN's, and sampled forward outputs bit for bit with
        ``linear``.

        Raises WrongBitsError.
        """
        theirs: Any = self.peer()()
        require_close("beside cuDNN", ours, theirs.movedim(1, -1))
        if self.case.kind in (DGRAD, WGRAD, *GROUPED):
            return
        rows, places = self._windows(ours)
        w = self.w.reshape(self.case.outputs, -1)
        if not self._torch.equal(ptxgen.linear(rows, w, layout="nk"), places):
            raise WrongBitsError("windows have other bits than linear gives them")

    def _windows(self, y: Any) -> tuple[Any, Any]:
        """Returns, for :data:`WINDOWS` random output positions, the input windows as rows (im2col),
        and the outputs in ``y``.
        """
        torch, case = self._torch, self.case
        random = torch.Generator(device=y.device).manual_seed(0)
        flat = y.reshape(-1, case.outputs)
        at = torch.randint(len(flat), (WINDOWS,), generator=random, device=y.device)
        wide = torch.nn.functional.pad(self.x, (0, 0, *(case.padding,) * 4))
        down, along = y.shape[1:3]
        n, p, q = at // (down * along), at // along % down, at % along
        taps = torch.arange(case.taps, device=y.device)
        i = (p * case.stride)[:, None, None] + taps[:, None]
        j = (q * case.stride)[:, None, None] + taps
        return wide[n[:, None, None], i, j].reshape(WINDOWS, -1), flat[at]


# -- the run ----------------------------------------------------------------------------------
class Conv(Area):
    """Benchmark ``ptxgen bench conv``: convolutions of :mod:`ptxgen.bench.conv_cases`, timed
    against cuDNN.
    """

    name = "conv"
    about = (
        "Times convolutions beside cuDNN (PyTorch's, channels last, benchmark=True, TF32 off), in "
        "one run, with a cold L2, after comparing results. ratio = cuDNN's time / our time."
    )
    row = Row
    columns = (
        *(("kind", "kind"), ("shape", "shape"), ("ours µs", "ours_us:.1f")),
        *(("cuDNN µs", "cudnn_us:.1f"), ("ratio", "ratio:.2f")),
        *(("launches", "steps"), ("kernels", "kernel")),
    )
    effort = 60.0, 5, 31
    kinds = KINDS
    budget = 300.0
    drawn = (
        "instead of --shapes, so many problems of each kind that --seed draws "
        "(ptxgen/bench/conv_cases.py)"
    )

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        arguments.add_dtype(parser, ("bf16", "f16", "f32"))
        form = "BATCHxIMAGExCHANNELSxOUTPUTSrTAPSsSTRIDE"
        add_list(parser, "--shapes", f"{form}: {NAMED[0]}, {NAMED[-1]} (some of models)")

    def cases(self) -> Sequence[Case]:
        options = self.options
        self.tier = AUTO_TIER[options.dtype]
        if only_drawn(options):
            return conv_cases.drawn(options.random, options.seed, options.kinds)
        return conv_cases.select(options.shapes or NAMED, options.kinds)

    def prepare(self, selected: Sequence[Case]) -> None:
        self.torch.backends.cudnn.benchmark = True
        self.torch.backends.cudnn.allow_tf32 = False
        super().prepare(selected)

    def kernels(self, case: Case) -> list[KernelSpec]:
        return measure.kernels(*self._operands(case).arguments())

    def _operands(self, case: Case) -> Operands:
        return Operands(self.torch, case, self.options.dtype, self.seed, self.device)

    def check(self, case: Case) -> Timed:
        operands = self._operands(case)
        operands.check(operands.ours()())
        expected = case.expected_us(ITEMSIZE[self.options.dtype])
        calls = {"ours": operands.ours(), "cuDNN": operands.peer()}
        return Timed(calls, expected, slow_host=True)

    def found(self, case: Case, times: Mapping[str, Sample]) -> Iterator[Row]:
        kernels = self.kernels(case)
        yield Row(
            group="named" if self.options.random is None else "random",
            shape=case.shape,
            dtype=self.options.dtype,
            steps=len(kernels),
            kernel=" + ".join(dict.fromkeys(k.label for k in kernels)),
            **times["ours"].as_ours(),
            cudnn_us=times["cuDNN"].median,
            **asdict(case),
        )

    def show(self, rows: Sequence[Row], runs: Sequence[Environment]) -> None:
        seeds = ", ".join(str(each.seed) for each in runs)
        for group in dict.fromkeys(r.group for r in rows):
            those = [r for r in rows if r.group == group]
            emit(f"\n{plural(len(those), f'{group} problem')}, seed {seeds}")
            super().show(those, runs)
            emit("\ncuDNN's time / ours")
            ordered = sorted(those, key=lambda r: KINDS.index(r.kind))
            emit(bands.table_of(bands.by(ordered, lambda r: (r.kind,)), ("kind",)))


main, _parser = Conv.main, Conv.parser
