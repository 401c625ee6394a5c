"""Timing on a GPU, with torch: cold L2, events, interleaved peers, correct bits first.

The rules: nothing is timed before its result has been checked; the L2 is flushed before every
launch; ptxgen's calls and the peers' alternate, so that clock drift affects all alike; the median
counts; data are random. An empty kernel takes about 4 µs in this timing.
"""

from __future__ import annotations

import functools
import gc
import math
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ptxgen import __version__
from ptxgen.bench.cases import Case
from ptxgen.bench.results import LIMITS, Environment, Limits, Sample
from ptxgen.cost.gpu import Rates
from ptxgen.errors import DeviceError, PtxgenError
from ptxgen.numerics.contract import DTYPES, ITEMSIZE, OPERATIONS, TENSOR_CORES

if TYPE_CHECKING:
    from ptxgen.spec import KernelSpec, Route

T = TypeVar("T")
FLUSH_L2 = 4
"""Bytes written to flush the L2, in multiples of its size."""
FLUSH_BYTES = 1 << 28
"""Minimum bytes that a flush writes, so that the GPU is busy while the host enqueues the launch."""
CHECKED = 64
"""Number of outputs whose bits are compared with the oracle."""
FLUSH_US = 80
"""Time of a flush on an H200 in µs; determines the numbers of repetitions and of flushes."""

Work = Callable[[], object]


class WrongBitsError(PtxgenError, AssertionError):
    """Raised for a wrong result, whose time would mean nothing."""


def require_torch() -> Any:
    """Imports torch, checks that it has a GPU, and switches TF32 off; returns the module.

    Raises DeviceError without a GPU, and PtxgenError without torch.
    """
    try:
        import torch
    except ModuleNotFoundError as error:
        raise PtxgenError(
            "timing needs PyTorch, for its tensors and as the peer; install the build for this "
            "machine's CUDA"
        ) from error
    if not torch.cuda.is_available():
        raise DeviceError("timing needs an NVIDIA GPU that PyTorch can use; there is none")
    # A TF32 product keeps 10 bits of its factors: another, much cheaper operation.
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    if torch.backends.cuda.matmul.allow_tf32:
        raise PtxgenError("TF32 is on in torch.mm and cannot be switched off; ratios would lie")
    return torch


# -- data ------------------------------------------------------------------------
def torch_dtype(torch: Any, dtype: str) -> Any:
    """Returns torch's dtype of a short name, such as "bf16" (a value of ``contract.DTYPES``)."""
    return getattr(torch, next(long for long, short in DTYPES.items() if short == dtype))


def normal(torch: Any, dtype: str, seed: int, device: str = "cuda") -> Callable[..., Any]:
    """Returns a function that draws a standard normal tensor of the shape in its arguments."""
    random = torch.Generator(device=device).manual_seed(seed)
    options = {"device": device, "generator": random, "dtype": torch_dtype(torch, dtype)}
    return lambda *shape: torch.randn(shape, **options)


class Operands:
    """Random operands of a product; all memory layouts hold the same elements.

    ``stored(layout)`` returns A and B as stored in memory; ``views(layout)`` returns views of that
    memory as A [M, K] and B [K, N].
    """

    def __init__(
        self, torch: Any, product: tuple[int, int, int], seed: int, dtype: str = "f32"
    ) -> None:
        m, n, k = product
        self._torch, self.dtype = torch, dtype
        made = normal(torch, dtype, seed)
        self._kept = {("a", "N"): made(m, k), ("b", "N"): made(k, n)}

    def empty(self, value: float | None = None, dtype: str = "") -> Any:
        """Returns memory for the product [M, N], in the operands' dtype or ``dtype``.

        It is filled with ``value``, if given.
        """
        a, b = self.stored("NN")
        kind = torch_dtype(self._torch, dtype or self.dtype)
        out = a.new_empty((a.shape[0], b.shape[1]), dtype=kind)
        return out if value is None else out.fill_(value)

    def stored(self, layout: str) -> tuple[Any, Any]:
        """Returns A and B as row-major tensors: [M, K] and [K, N] for "N", transposed for "T"."""
        return self._stored("a", layout[0]), self._stored("b", layout[1])

    def views(self, layout: str) -> tuple[Any, Any]:
        """Returns :meth:`stored` tensors as views A [M, K] and B [K, N]."""
        a, b = self.stored(layout)
        return (a if layout[0] == "N" else a.t()), (b if layout[1] == "N" else b.t())

    def _stored(self, name: str, how: str) -> Any:
        if (name, how) not in self._kept:
            self._kept[name, how] = self._kept[name, "N"].t().contiguous()
        return self._kept[name, how]


def ours(case: Case, operands: Operands, out: Any, kernel: str | None = None) -> Work:
    """Returns ptxgen's call of ``case`` that writes ``out``, by the route named ``kernel`` if
    given.
    """
    import ptxgen

    first, second = operands.stored(case.layout)
    if OPERATIONS[case.op].products[case.stored].operands == (1, 0):
        first, second = second, first
    options: dict[str, Any] = {"out": out, "tier": case.tier, **case.plan_options}
    if kernel is not None:
        options["kernel"] = kernel
    if case.op == "matmul":
        options |= {"transpose_a": case.stored[0] == "t", "transpose_b": case.stored[1] == "t"}
    else:
        options["layout"] = case.stored
    return functools.partial(getattr(ptxgen, case.op), first, second, **options)


def alignment(tensor: Any) -> int:
    """Returns the byte alignment (2, 4, 8 or 16) of a tensor's address and row stride."""
    step = int(tensor.stride(0) * tensor.element_size()) if tensor.shape[0] > 1 else 0
    return next(a for a in (16, 8, 4, 2) if not (tensor.data_ptr() | step) % a)


def target() -> tuple[str, int, str]:
    """Returns the current GPU's architecture (such as "sm_90"), number of SMs, and name."""
    from ptxgen.program.launch import architecture
    from ptxgen.runtime import get_device

    device = get_device("cuda")
    return architecture(device), device.sms, device.gpu


def rates() -> Rates | None:
    """Returns the current GPU's peak rates, from the driver; predicted times scale with them."""
    from ptxgen.runtime import get_device

    return get_device("cuda").rates


def chosen(case: Case, align: tuple[int, int]) -> Route:
    """Returns the route that the dispatcher chooses for ``case`` on the current GPU."""
    from ptxgen.dispatch import choose
    from ptxgen.program.launch import question
    from ptxgen.runtime import get_device
    from ptxgen.tiles import TABLES

    problem = case.problem(align)
    choice = choose(problem.table, **question(problem, get_device("cuda")))
    return TABLES[problem.table].route(choice.route, problem.dtype)


def fresh(layout: str, product: tuple[int, int, int], bits: int) -> tuple[int, int]:
    """Returns the byte alignments of A and B when freshly allocated and contiguous.

    ``layout``: "NN" .. "TT"; ``product``: M, N, K; ``bits``: bits of an element.
    """
    m, n, k = product
    a = (m, k) if layout[0] == "N" else (k, m)
    b = (k, n) if layout[1] == "N" else (n, k)
    align_a, align_b = (
        16 if rows == 1 else math.gcd(16, bits * columns // 8) for rows, columns in (a, b)
    )
    return align_a, align_b


def natural_alignment(case: Case) -> tuple[int, int]:
    """Returns the byte alignments of a case's operands when freshly allocated."""
    return fresh(case.layout, case.product, 8 * case.itemsize)


def build(specs: Sequence[KernelSpec]) -> float:
    """Compiles kernels into the cache, in parallel; returns the seconds that it took."""
    from ptxgen.build.compile import Job, compile_many
    from ptxgen.build.render import render
    from ptxgen.runtime import get_device
    from ptxgen.ui import Progress

    arch = get_device("cuda").arch
    start = time.monotonic()
    with Progress("compiling") as progress:
        compile_many([Job(render(s), s.name, arch) for s in specs], progress=progress)
    return time.monotonic() - start


def kernels(name: str, given: Mapping[str, Any]) -> list[KernelSpec]:
    """Returns the kernels that library call ``name`` would launch for the arguments ``given``.

    Nothing is launched.
    """
    from ptxgen.dispatch import choose
    from ptxgen.ops import OPERATIONS as LIBRARY
    from ptxgen.program.launch import question
    from ptxgen.program.operation import lowering
    from ptxgen.runtime import default_device
    from ptxgen.tiles import TABLES

    device = default_device()
    found: list[KernelSpec] = []
    for step in lowering(LIBRARY[name], given)[1].program.steps:
        choice = choose(step.problem.table, **question(step.problem, device))
        found += TABLES[step.problem.table].route(choice.route, step.problem.dtype).kernels
    return found


# -- correctness -----------------------------------------------------------------
class Oracle:
    """Expected bits of sampled outputs of a product, computed on the host.

    ``arch`` selects the model of the tensor cores in tier "tc"; for an architecture without a
    model, nothing is compared.
    """

    def __init__(
        self,
        operands: Operands,
        chunk: int,
        seed: int,
        dtype: str = "f32",
        tier: str = "simt",
        arch: str = "sm_90",
    ) -> None:
        import numpy as np

        a, b = operands.stored("NN")
        (m, k), n = a.shape, b.shape[1]
        random = np.random.default_rng(seed)
        height = min(m, max(8, CHECKED // n))
        self.rows = _sample(random, m, height)
        self.columns = _sample(random, n, min(n, max(1, CHECKED // height)))
        self.k, self.seed, self.dtype = int(k), seed, dtype
        rows, columns = self._host(a[self.rows]), self._host(b[:, self.columns])
        self.bits = _expected(rows, columns, chunk, dtype, tier, arch)

    def _host(self, array: Any) -> Any:
        """Returns the bits of a torch tensor as a NumPy array of unsigned integers."""
        array = array.contiguous()
        if self.dtype == "bf16":  # NumPy has no bf16
            import torch

            array = array.view(torch.int16)
        return array.cpu().numpy().view(f"u{ITEMSIZE[self.dtype]}")

    def check(self, what: str, out: Any) -> int:
        """Compares the sampled outputs of ``out`` bit for bit; returns their number.

        Raises WrongBitsError with the first mismatch; ``what`` names the result in its message.
        """
        import numpy as np

        if self.bits is None:
            return 0
        got = self._host(out[self.rows][:, self.columns])
        differ = np.argwhere(got != self.bits)
        if len(differ):
            i, j = (int(x) for x in differ[0])
            digits = 2 + 2 * ITEMSIZE[self.dtype]
            raise WrongBitsError(
                f"{what}: {len(differ)} of {got.size} sampled outputs differ from the oracle "
                f"(seed {self.seed}), first [{self.rows[i]}, {self.columns[j]}]: "
                f"{got[i, j]:#0{digits}x}, expected {self.bits[i, j]:#0{digits}x}"
            )
        return int(got.size)


def _expected(a: Any, b: Any, chunk: int, dtype: str, tier: str, arch: str) -> Any:
    """Returns the expected bits of ``a @ b`` by the oracle of the tier's contract; None for tensor
    cores of an ``arch`` without a model.

    ``a`` and ``b``: the operands' bits; ``chunk``: k's that one accumulator adds before chunks are
    added. The result has the operands' dtype.
    """
    import numpy as np

    from ptxgen.oracle.gemm import chain, chain16, chain64
    from ptxgen.oracle.half import downcast, upcast

    if dtype == "f64":
        return chain64(a.view(np.float64), b.view(np.float64), chunk).view(np.uint64)
    if dtype == "f32":
        return chain(a.view(np.float32), b.view(np.float32), chunk).view(np.uint32)
    if tier == "simt":
        return downcast(chain(upcast(a, dtype), upcast(b, dtype), chunk), dtype)
    core = TENSOR_CORES.get(arch)
    return None if core is None else downcast(chain16(a, b, chunk, dtype, core), dtype)


def _sample(random: Any, size: int, count: int) -> list[int]:
    """Returns ``count`` random indices below ``size``, the first and the last among them."""
    inner = random.choice(size, count, replace=False)
    return sorted({0, size - 1, *map(int, inner[: max(0, count - 2)])})


def compare(torch: Any, what: str, out: Any, expected: Any, k: int) -> None:
    """Compares every output with ``expected``, computed in another summation order.

    Raises WrongBitsError if an output is far off.

    Products of standard normal variables have variance 1, so a running sum grows like sqrt(k), each
    step rounds it by up to u sqrt(k) (u = 2**-24; in f64 2**-53), about 0.4 of that on average, and
    k such errors add up, as a random walk, to 0.3 u k. A wrong output is off by about sqrt(k). 32 u
    k is far from both: 80 standard deviations of the difference of two such results, and below
    sqrt(k) up to k = 2**38. Tensor cores truncate k / 16 sums, by 2 u of about sqrt(k): less than
    that up to k = 2**17.

    Results of 16 bits are rounded again, and cuBLAS adds partial sums in that precision: eight half
    steps of the largest output (5 sqrt(k)) are 0.16 sqrt(k) in bf16 at most.
    """
    difference = torch.sub(out, expected).abs_().max().item()
    unit = 2.0**-53 if out.element_size() == 8 else 2.0**-24
    bound = 32 * unit * max(k, 16)
    if out.element_size() == 2:
        bound += 4 * torch.finfo(out.dtype).eps * expected.abs().max().item()
    if not difference <= bound:  # fails for NaN, with which unwritten outputs are filled
        raise WrongBitsError(
            f"{what}: an output is off by {difference:.3g}; two summation orders differ by "
            f"{bound:.3g} at most"
        )


def run_and_compare(
    torch: Any,
    names: Iterable[str],
    forced: Callable[[str], Work],
    out: Any,
    check: Callable[[Any], object] = lambda out: None,
) -> tuple[dict[str, Work], dict[str, str]]:
    """Runs each kernel; returns the calls of the right ones, and the errors of the others, by name.

    ``forced`` returns the call that runs a kernel and writes ``out``. A kernel is right if
    ``check`` raises no PtxgenError for its result, and its bits are those of the first right
    kernel.
    """
    expected = None
    work: dict[str, Work] = {}
    wrong: dict[str, str] = {}
    for name in names:
        out.view(torch.uint8).fill_(0xFF)  # floats: NaN
        run = forced(name)
        try:
            run()
            torch.cuda.synchronize()
            check(out)
        except PtxgenError as error:
            wrong[name] = str(error)
            continue
        expected = out.clone() if expected is None else expected
        if torch.equal(out, expected):
            work[name] = run
        else:
            wrong[name] = f"{int((out != expected).sum())} outputs have other bits"
    return work, wrong


def require_close(what: str, ours: Any, theirs: Any) -> None:
    """Raises WrongBitsError if results differ by more than 1/16 of the largest magnitude.

    The bound allows for a few roundings to 16 bits; ``what`` names the results in the message.
    """
    pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
    for a, b in pairs:
        scale = b.float().abs().max().item() or 1.0
        off = (a.float() - b.float()).abs().max().item() / scale
        if not off <= 2**-4:
            raise WrongBitsError(f"{what}: off by {off:.3g} of the largest")


# -- time ------------------------------------------------------------------------
class Timer:
    """Timer of GPU calls on the current stream, each with a cold L2."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        l2 = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0)
        count = max(FLUSH_L2 * l2, FLUSH_BYTES) // 4
        self._flush = torch.empty(count, dtype=torch.float32, device="cuda")
        self._events: list[Any] = []

    def __call__(
        self, work: Sequence[Work], counts: Sequence[int], warmup: int = 2, flushes: int = 1
    ) -> list[Sample]:
        """Times each call ``work[i]`` ``counts[i]`` times, with calls interleaved (A B A B ...);
        returns the statistics of each.

        ``warmup``: untimed rounds before; ``flushes``: L2 flushes before each timed call.
        """
        for _ in range(warmup):
            for run in work:
                run()
        rounds = max(counts)
        events = iter(self._pairs(sum(counts)))
        taken: list[list[Any]] = [[] for _ in work]
        collecting = gc.isenabled()
        gc.disable()  # a collection between two enqueueings would starve the GPU
        try:
            for turn in range(rounds):
                for run, count, pairs in zip(work, counts, taken, strict=True):
                    if len(pairs) * rounds >= count * (turn + 1):
                        continue  # fewer turns than the others, evenly spread
                    start, end = pair = next(events)
                    for _ in range(flushes):
                        self._flush.fill_(float(turn))
                    start.record()
                    run()
                    end.record()
                    pairs.append(pair)
            self._torch.cuda.synchronize()
        finally:
            if collecting:
                gc.enable()
        return [Sample.of([1e3 * s.elapsed_time(e) for s, e in pairs]) for pairs in taken]

    def flushes(self, work: Sequence[Work]) -> int:
        """Returns how many L2 flushes before each call keep the GPU from waiting for the host.

        The flushes have to take longer than the host takes to issue the slowest call.
        """
        longest = 0.0
        for run in work:
            taken = []
            for _ in range(3):
                self._torch.cuda.synchronize()
                start = time.perf_counter()
                run()
                taken.append(1e6 * (time.perf_counter() - start))
            longest = max(longest, min(taken))
        return 1 + int(1.5 * longest / FLUSH_US)

    def _pairs(self, count: int) -> list[tuple[Any, Any]]:
        new = self._torch.cuda.Event
        while len(self._events) < count:
            self._events.append((new(enable_timing=True), new(enable_timing=True)))
        return self._events[:count]


def host_ms(torch: Any, work: Work) -> float:
    """Returns the host-clock time of a call in ms, from an idle GPU to an idle GPU."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start)


def alternate(ways: Mapping[str, Callable[[], T]], count: int, warm: int = 1) -> dict[str, list[T]]:
    """Runs all calls in turn, in ``warm`` rounds that do not count, then in ``count`` rounds;
    returns the results of these by name.
    """
    found: dict[str, list[T]] = {name: [] for name in ways}
    for turn in range(count + warm):
        for name, way in ways.items():
            said = way()
            if turn >= warm:
                found[name].append(said)
    return found


def repetitions(expected_us: float, budget_ms: float, least: int, most: int) -> int:
    """Returns how often to time a call of about ``expected_us`` µs within ``budget_ms``.

    The number is odd, and within ``least`` .. ``most``.
    """
    count = int(1e3 * budget_ms / (expected_us + FLUSH_US))
    return max(least, min(most, count)) | 1


# -- limits and surroundings -------------------------------------------------------
_FMA = r"""
// Eight warps a CTA, 32 independent chains a thread: as many FMAs as an SM can issue.
extern "C" __global__ void __launch_bounds__(256) fma_peak(REAL* out, unsigned rounds) {
    REAL acc[32], x = threadIdx.x * REAL(1e-3), y = x + REAL(1);
    for (int i = 0; i < 32; ++i) acc[i] = i * x;
    for (unsigned r = 0; r < rounds; ++r) {
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int i = 0; i < 32; ++i) acc[i] = FMA(acc[i], x, y);
    }
    REAL sum = 0;
    for (int i = 0; i < 32; ++i) sum += acc[i];
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}
"""
_REAL = {"simt": ("float", "__fmaf_rn"), "f64": ("double", "__fma_rn")}


@functools.cache
def limits(torch: Any, tier: str = "simt") -> Limits:
    """Returns this GPU's peak rates from :data:`LIMITS`, or else measures them (under a second)."""
    known = LIMITS.get((torch.cuda.get_device_name(0), tier))
    return known or measure_limits(torch, tier)


def measure_limits(torch: Any, tier: str = "simt") -> Limits:
    """Measures bandwidth by a large copy, and FLOP/s by independent FMAs on every SM.

    Tier "tc" measures FLOP/s by a large bf16 product of cuBLAS.
    """
    import struct

    from ptxgen.build.compile import compile_cubin
    from ptxgen.runtime import get_device, torch_current

    free, _ = torch.cuda.mem_get_info()
    count = min(1 << 31, free // 4) // 4
    source = torch.empty(count, device="cuda").normal_()
    copy = _best_us(torch, functools.partial(torch.empty_like(source).copy_, source))
    del source
    if tier == "tc":
        a, b = Operands(torch, (8192, 8192, 8192), 0, "bf16").stored("NN")
        product = _best_us(torch, functools.partial(torch.mm, a, b))
        reached = "measured at the start of the run (flops: by cuBLAS)"
        return Limits(8e6 * count / copy, 2e6 * 8192**3 / product, reached)

    device = get_device("cuda")
    grid, rounds = 4 * device.sms, 4000
    real, fma = _REAL[tier]
    out = torch.empty(256 * grid, device="cuda", dtype=torch.float64)
    source = f"#define REAL {real}\n#define FMA {fma}\n{_FMA}"
    cubin = compile_cubin(source, name="fma_peak", arch=device.arch).image
    function = device.load(cubin, "fma_peak")
    params = struct.pack("<QI", out.data_ptr(), rounds)
    peak = _best_us(
        torch,
        lambda: device.launch(
            function, (grid, 1, 1), (256, 1, 1), torch_current(0), params, "FFMA peak"
        ),
    )
    flops = 2 * 32 * 8 * rounds * 256 * grid
    return Limits(8e6 * count / copy, 1e6 * flops / peak, "measured at the start of the run")


def _best_us(torch: Any, run: Work, count: int = 5) -> float:
    run()
    times = []
    for _ in range(count):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(1e3 * float(start.elapsed_time(end)))
    return min(times)


def warm_up(torch: Any, seconds: float = 0.3) -> None:
    """Runs products until the GPU's clocks are up; some are still running on return."""
    a = torch.randn((4096, 4096), device="cuda")
    out = torch.empty_like(a)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(10):
            torch.mm(a, a, out=out)
        torch.cuda.synchronize()
    for _ in range(100):
        torch.mm(a, a, out=out)


def environment(torch: Any, bounds: Limits, seed: int) -> Environment:
    """Returns the environment of this run; call it while the GPU is busy and its clocks are up."""
    properties = torch.cuda.get_device_properties(0)
    smi = _smi()
    return Environment(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=commit(),
        ptxgen=__version__,
        gpu=torch.cuda.get_device_name(0),
        driver=smi.get("driver_version") or "unknown",
        sms=int(properties.multi_processor_count),
        clock_sm_mhz=_mhz(smi.get("clocks.sm", "")),
        clock_memory_mhz=_mhz(smi.get("clocks.mem", "")),
        cuda=str(torch.version.cuda),
        torch=str(torch.__version__),
        bandwidth_limit=bounds.bandwidth,
        flops_limit=bounds.flops,
        limits_source=bounds.source,
        seed=seed,
    )


def _smi() -> dict[str, str]:
    """Returns driver version and clocks of the first GPU from nvidia-smi; empty without it."""
    fields = ("driver_version", "clocks.sm", "clocks.mem")
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    query = [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    first, *_ = done.stdout.splitlines() or [""]
    return dict(zip(fields, map(str.strip, first.split(",")), strict=False))


def _mhz(clock: str) -> int | None:
    """Parses a clock in MHz; None if ``clock`` is not a number."""
    return int(clock) if clock.isdigit() else None


def commit() -> str:
    """Returns environment variable PTXGEN_COMMIT, or the checkout's commit, or "unknown"."""
    given = os.environ.get("PTXGEN_COMMIT")
    if given:
        return given
    root = Path(__file__).parents[2]
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        return "unknown"
    done = subprocess.run(
        [git, "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"
