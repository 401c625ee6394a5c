"""Commands ``demo``, ``bench`` and ``tune``, which run operations."""

from __future__ import annotations

import argparse
import hashlib
import importlib
import sys
import time
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ptxgen.arguments import dtype
from ptxgen.errors import OptionError, PtxgenError
from ptxgen.ui import Progress, emit, missing

# name: (module with main(argv) -> status, help)
_BENCHES = {
    "gemm": ("ptxgen.bench.gemm", "linear, linear_dgrad and linear_wgrad beside their peers"),
    "bmm": ("ptxgen.bench.bmm", "batches of products beside torch.bmm"),
    "int4": ("ptxgen.bench.int4", "products of 4-bit integers beside torch._int_mm"),
    "quantized": ("ptxgen.bench.quantized", "quantized weights beside dense products"),
    "ops": ("ptxgen.bench.ops", "pointwise operations, rows and columns beside PyTorch"),
    "recurrence": ("ptxgen.bench.recurrence", "recurrences beside loops over tokens in PyTorch"),
    "sort": ("ptxgen.bench.sort", "sorts, searches and counts beside PyTorch's"),
    "fft": ("ptxgen.bench.fft", "Fourier transforms beside cuFFT, with errors to f64"),
    "spectra": ("ptxgen.bench.spectra", "log-mel features and densities beside PyTorch"),
    "splats": ("ptxgen.bench.splats", "Gaussian splats, and gradients, beside gsplat or PyTorch"),
    "flce": ("ptxgen.bench.flce", "fused linear cross-entropy beside its peers"),
    "attention": (
        "ptxgen.bench.attention",
        "attention beside cuDNN, FlashAttention-2 and flex_attention",
    ),
    "delta": ("ptxgen.bench.delta", "recurrences of a matrix beside their formulas by chunks"),
    "conv": ("ptxgen.bench.conv", "convolutions and their gradients beside cuDNN"),
    "kernels": ("ptxgen.bench.kernels", "every kernel that a problem admits, forced"),
    "model": ("ptxgen.bench.model", "a small Llama: stock PyTorch and batch_invariant()"),
    "graph": ("ptxgen.bench.graph", "whole models compiled, stock and with our backend"),
    "vision": ("ptxgen.bench.vision", "models of timm: stock PyTorch and batch_invariant()"),
    "serving": ("ptxgen.bench.serving", "vLLM with the extension, without, and its own mode"),
    "predict": ("ptxgen.bench.predict", "predicted times beside measured ones (needs no GPU)"),
    "routes": ("ptxgen.bench.routes", "which kernel serves which sizes (needs no GPU)"),
    "host": ("ptxgen.bench.host", "what a call costs the host, beside torch's own"),
    "report": ("ptxgen.bench.report", "docs/performance.md from recorded runs (needs no GPU)"),
}
_RENAMED = {"nf4": "quantized"}
"""Present name of each benchmark that was renamed. Former names are still accepted, with a
DeprecationWarning.
"""
_TUNE = "ptxgen.bench.tune"


def add_commands(commands: Any, *, deferred: bool = True) -> None:
    """Adds ``demo``, ``bench`` and ``tune`` to the subcommands ``commands`` of ``ptxgen``;
    ``deferred``: as in :func:`ptxgen.cli.parser`.
    """
    command = commands.add_parser(
        "demo",
        help="a linear layer, forward and backward, compared bit for bit with NumPy",
        description="Runs a linear layer forward and backward, compares every bit with the NumPy "
        "oracle, then every row alone with the same row in the batch. On the GPU if there is one; "
        "else, or with --device cpu, the same kernels' PTX runs in the interpreter.",
    )
    command.add_argument(
        "--batch", type=int, default=64, metavar="M", help="rows of x (%(default)s)"
    )
    command.add_argument("--inputs", type=int, default=257, metavar="K", help="(%(default)s)")
    command.add_argument("--outputs", type=int, default=129, metavar="N", help="(%(default)s)")
    command.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    command.add_argument(
        "--dtype",
        type=dtype,
        choices=("f32", "f16", "bf16"),
        help="of x, w, bias and dy (f32, then f16; bf16 needs the package ml_dtypes)",
    )
    command.add_argument("--device", metavar="DEVICE", help="cuda, cuda:1, cpu (the best there is)")
    command.set_defaults(run=_demo)

    group = commands.add_parser(
        "bench",
        help="time operations beside their peers (needs a GPU)",
        description="`ptxgen bench gemm --help` lists the options of a benchmark.",
    )
    add = _deferred if deferred else _whole
    benches = group.add_subparsers(metavar="BENCH", dest="bench", required=True)
    for name, (module, text) in _BENCHES.items():
        add(benches, name, module, text)
    add(commands, "tune", _TUNE, "measure which kernel is the fastest where, for this GPU's tuning")


def _deferred(commands: Any, name: str, module: str, text: str) -> None:
    """Adds the benchmark command ``name`` with help ``text``; ``module`` is imported when the
    command runs, and then parses the options.
    """
    former = [each for each, present in _RENAMED.items() if present == name]
    # No argument begins with this prefix, so the module gets all of them, --help too.
    command = commands.add_parser(
        name, aliases=former, help=text, add_help=False, prefix_chars="\0"
    )
    command.add_argument("options", nargs="*")
    command.set_defaults(run=_bench, module=module)


def _whole(commands: Any, name: str, module: str, text: str) -> None:
    """Adds the benchmark command ``name`` with help ``text`` and the options of ``module``, which
    is imported now.
    """
    own = importlib.import_module(module)._parser()
    commands.add_parser(name, help=text, add_help=False, parents=[own])


def _bench(arguments: argparse.Namespace) -> int:
    try:
        main = importlib.import_module(arguments.module).main
    except ModuleNotFoundError as error:
        raise missing("the benchmark", error) from error
    status = int(main(arguments.options) or 0)
    former = getattr(arguments, "bench", "")
    if present := _RENAMED.get(former):
        message = f"bench {former} is called bench {present}, and the next version refuses the name"
        # Python shows a DeprecationWarning if code of __main__ caused it: here a command did.
        place = f"ptxgen bench {former}", 1, "__main__"
        warnings.warn_explicit(message, DeprecationWarning, *place)
    return status


def _demo(arguments: argparse.Namespace) -> int:
    from ptxgen.numerics.dtype import FULL
    from ptxgen.runtime import default_device, get_device, use_device

    for option in ("batch", "inputs", "outputs"):
        if getattr(arguments, option) < 1:
            raise OptionError(f"--{option} is at least 1, not {getattr(arguments, option)}")
    device = (
        default_device() if arguments.device is None else get_device(arguments.device, "--device")
    )
    emit(f"device: {device}, {device.name}, {device.arch}, {device.sms} SMs")
    if device.kind == "cpu":
        emit("  (runs the PTX that a GPU would run, instruction by instruction, and checks it:")
        emit("  every address, every read of unwritten memory, every order of shared accesses)")
    dtypes = [FULL[d] for d in ([arguments.dtype] if arguments.dtype else ("f32", "f16"))]
    with use_device(device):
        return max(_demo_on_device(arguments, device, dtype) for dtype in dtypes)


def _numpy_dtype(name: str) -> Any:
    import numpy as np

    if name != "bfloat16":
        return np.dtype(name)
    try:
        return np.dtype(importlib.import_module("ml_dtypes").bfloat16)
    except ModuleNotFoundError as error:
        raise PtxgenError(
            "NumPy has no bfloat16 of its own; pip install ml_dtypes, or take --dtype f16"
        ) from error


def _demo_on_device(arguments: argparse.Namespace, device: Any, dtype: str) -> int:
    """Runs a linear layer forward and backward; returns 1 if a bit differs from the oracle's."""
    import numpy as np

    ptxgen = importlib.import_module("ptxgen")
    m, k, n = arguments.batch, arguments.inputs, arguments.outputs
    emit(
        f"a linear layer of {k} inputs and {n} outputs in {dtype}, forward and backward, batch {m}"
    )
    random = np.random.default_rng(arguments.seed)
    operands = {
        name: random.standard_normal(shape, dtype=np.float32)
        for name, shape in (("x", (m, k)), ("w", (k, n)), ("bias", (n,)), ("dy", (m, n)))
    }
    operands["w"] /= np.float32(k**0.5)  # as a layer is initialised
    x, w, bias, dy = (values.astype(_numpy_dtype(dtype)) for values in operands.values())
    steps: dict[str, Callable[[Any], Any]] = {
        "y = gelu(x w + bias)": lambda room: room.linear(
            x, w, bias, activation="gelu", layout="kn"
        ),
        "dx = dy w'": lambda room: room.linear_dgrad(dy, w, layout="kn"),
        "dw = x' dy": lambda room: room.linear_wgrad(x, dy, layout="kn"),
    }
    failed, results = False, []
    for name, step in steps.items():
        before = device.loaded()
        start = time.monotonic()
        results.append(step(ptxgen))
        seconds = time.monotonic() - start
        ran = [kernel for kernel in device.loaded() if kernel not in before]
        emit(f"  {name}: ran {', '.join(ran) or 'a kernel from above'} ({seconds:.1f} s)")
        failed |= _compare("  against NumPy", results[-1], step(ptxgen.reference))
        sys.stdout.flush()
    alone = []
    with Progress("  each row of y, computed alone") as progress:
        for i in range(m):
            alone.append(ptxgen.linear(x[i : i + 1], w, bias, activation="gelu", layout="kn"))
            progress(i + 1, m, SimpleNamespace(name=f"row {i}"))
    failed |= _compare("each row of y, computed alone", np.concatenate(alone), results[0])
    return 1 if failed else 0


def _compare(what: str, got: Any, expected: Any) -> bool:
    """Compares the bits of two arrays, and prints the outcome; returns True if they differ."""
    import numpy as np

    got, expected = np.ascontiguousarray(got), np.ascontiguousarray(expected)
    bits = np.dtype(f"u{got.dtype.itemsize}")
    differ = np.argwhere(got.view(bits) != expected.view(bits))
    if not len(differ):
        emit(f"  {what}: all {got.size} results have the same bits, {_fingerprint(got)}")
        return False
    at = tuple(int(i) for i in differ[0])
    shown = [f"{a[at]} ({int(a.view(bits)[at]):#x})" for a in (got, expected)]
    emit(
        f"  {what}: {len(differ)} of {got.size} results differ, first at {at}: "
        f"{shown[0]}, expected {shown[1]}"
    )
    return True


def _fingerprint(array: Any) -> str:
    return "sha256 " + hashlib.sha256(array.tobytes()).hexdigest()[:16]
