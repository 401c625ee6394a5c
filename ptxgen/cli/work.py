"""demo and bench: the library at work."""

from __future__ import annotations

import argparse
import hashlib
import importlib
import time
from typing import Any

from ptxgen.cli.ui import Progress, emit, plural
from ptxgen.errors import DeviceError, OptionError, PtxgenError

# name: (module with main(argv) -> status, help)
_BENCHES = {
    "gemm": ("ptxgen.bench.gemm", "linear, linear_dgrad and linear_wgrad beside their peers"),
    "kernels": ("ptxgen.bench.kernels", "every kernel that a problem admits, forced"),
    "routes": ("ptxgen.bench.routes", "which kernel serves which sizes (needs no GPU)"),
}


def add_commands(commands: Any) -> None:
    """Adds this module's commands to the parser."""
    command = commands.add_parser(
        "demo",
        help="a linear layer, forward and backward, compared bit for bit with NumPy",
        description="Runs a linear layer forward and backward on the GPU and compares every "
        "bit with the NumPy oracle, then a row alone with the same row in a batch. Without a "
        "GPU it renders and compiles what the layer would run, and computes the oracle.",
    )
    command.add_argument(
        "--batch", type=int, default=64, metavar="M", help="rows of x (%(default)s)"
    )
    command.add_argument("--inputs", type=int, default=257, metavar="K", help="(%(default)s)")
    command.add_argument("--outputs", type=int, default=129, metavar="N", help="(%(default)s)")
    command.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    command.set_defaults(run=_demo)

    group = commands.add_parser(
        "bench",
        help="time operations beside their peers (needs a GPU)",
        description="`ptxgen bench gemm --help` lists the options of a benchmark.",
    )
    benches = group.add_subparsers(metavar="BENCH", required=True)
    for name, (module, text) in _BENCHES.items():
        # A prefix that no argument has: all of them, --help too, are the benchmark's own.
        bench = benches.add_parser(name, help=text, add_help=False, prefix_chars="\0")
        bench.add_argument("options", nargs="*")
        bench.set_defaults(run=_bench, module=module)


def _bench(arguments: argparse.Namespace) -> int:
    try:
        main = importlib.import_module(arguments.module).main
    except ModuleNotFoundError as error:
        raise PtxgenError(
            f"the benchmark needs the package {error.name}; pip install 'ptxgen[bench]'"
        ) from error
    return int(main(arguments.options) or 0)


def _demo(arguments: argparse.Namespace) -> int:
    from ptxgen.runtime import default_device

    for option in ("batch", "inputs", "outputs"):
        if getattr(arguments, option) < 1:
            raise OptionError(f"--{option} is at least 1, not {getattr(arguments, option)}")
    try:
        device = default_device()
    except DeviceError as error:
        return _demo_without_gpu(arguments, str(error))
    emit(f"device: {device}, {device.name}, {device.arch}, {device.sms} SMs")
    return _demo_on_device(arguments)


def _layer(arguments: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """A linear layer's operands, and what the oracle says of it."""
    import numpy as np

    from ptxgen import reference

    m, k, n = arguments.batch, arguments.inputs, arguments.outputs
    random = np.random.default_rng(arguments.seed)
    operands = {
        name: random.standard_normal(shape, dtype=np.float32)
        for name, shape in (("x", (m, k)), ("w", (k, n)), ("bias", (n,)), ("dy", (m, n)))
    }
    operands["w"] /= np.float32(k**0.5)  # as a layer is initialised
    x, w, bias, dy = operands.values()
    oracle = {
        "y = gelu(x w + bias)": reference.linear(x, w, bias, activation="gelu"),
        "dx = dy w'": reference.linear_dgrad(dy, w),
        "dw = x' dy": reference.linear_wgrad(x, dy),
    }
    return operands, oracle


def _demo_on_device(arguments: argparse.Namespace) -> int:
    import numpy as np

    ptxgen = importlib.import_module("ptxgen")
    m, k, n = arguments.batch, arguments.inputs, arguments.outputs
    operands, oracle = _layer(arguments)
    x, w, bias, dy = operands.values()
    emit(f"a linear layer of {k} inputs and {n} outputs, forward and backward, batch {m}")
    y = ptxgen.linear(x, w, bias, activation="gelu")
    results = (y, ptxgen.linear_dgrad(dy, w), ptxgen.linear_wgrad(x, dy))
    failed = False
    for (name, expected), result in zip(oracle.items(), results, strict=True):
        failed |= _compare(f"{name}, against NumPy", result, expected)
    alone = np.concatenate(
        [ptxgen.linear(x[i : i + 1], w, bias, activation="gelu") for i in range(m)]
    )
    failed |= _compare("each row of y, computed alone", alone, y)
    return 1 if failed else 0


def _compare(what: str, got: Any, expected: Any) -> bool:
    """Prints whether two f32 arrays have the same bits; True if not."""
    import numpy as np

    got, expected = np.ascontiguousarray(got), np.ascontiguousarray(expected)
    differ = np.argwhere(got.view(np.uint32) != expected.view(np.uint32))
    if not len(differ):
        emit(f"  {what}: all {got.size} results have the same bits, {_fingerprint(got)}")
        return False
    at = tuple(int(i) for i in differ[0])
    bits = [f"{int(a.view(np.uint32)[at]):#010x}" for a in (got, expected)]
    emit(
        f"  {what}: {len(differ)} of {got.size} results differ, first at {at}: "
        f"{got[at]} ({bits[0]}), expected {expected[at]} ({bits[1]})"
    )
    return True


def _fingerprint(array: Any) -> str:
    return "sha256 " + hashlib.sha256(array.tobytes()).hexdigest()[:16]


def _demo_without_gpu(arguments: argparse.Namespace, reason: str) -> int:
    from ptxgen.cli.kernels import DEFAULT_ARCH
    from ptxgen.compile import Job, compile_many
    from ptxgen.dispatch.explain import explain
    from ptxgen.render import render
    from ptxgen.tiles import SPECS

    emit(f"No GPU can be used here: {reason.partition(';')[0]}.")
    emit("Computing needs one for now.")
    emit("What can be shown without one:")
    m, k, n = arguments.batch, arguments.inputs, arguments.outputs
    names: dict[str, None] = {}
    for op in ("linear", "linear_dgrad", "linear_wgrad"):
        kernels = explain(op, m, n, k, align=4).choice.kernels  # by default, on an H200
        emit(f"  on an H200, {op} would run {', then '.join(kernels)}")
        names.update(dict.fromkeys(kernels))
    jobs = [Job(render(SPECS[name]), name, DEFAULT_ARCH) for name in names]
    start = time.monotonic()
    with Progress("compiling") as progress:
        made = compile_many(jobs, progress=progress)
    seconds = time.monotonic() - start
    emit(f"  rendered and compiled {plural(len(made), 'kernel')} in {seconds:.1f} s")
    start = time.monotonic()
    _, oracle = _layer(arguments)
    seconds = time.monotonic() - start
    emit(f"  the NumPy oracle's results, whose bits a GPU returns ({seconds:.1f} s):")
    for name, expected in oracle.items():
        emit(f"    {name}, {list(expected.shape)}: {_fingerprint(expected)}")
    emit("On a machine with an NVIDIA GPU, this command compares the bits.")
    return 0
