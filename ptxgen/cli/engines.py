"""Commands ``engines``: prints the inference engines that extensions fit, and what they replace;
and ``engines warm``: compiles the kernels of a model before an engine starts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptxgen.arguments import dtype
from ptxgen.ui import emit, emit_json, missing, note, pairs, plural, table

if TYPE_CHECKING:
    from ptxgen.spec import KernelSpec


def add_commands(commands: Any) -> None:
    """Adds ``ptxgen engines`` to the subcommands ``commands``."""
    command = commands.add_parser(
        "engines",
        help="inference engines that are installed, and what an extension would replace",
        description="Compares the installed engine's sources with the functions that the extension "
        "replaces, calls or implements. The engine is not imported.",
    )
    command.add_argument("--json", action="store_true", help="for programs")
    command.set_defaults(run=_engines)
    actions = command.add_subparsers(metavar="ACTION")
    action = actions.add_parser(
        "warm",
        help="compile the kernels that a model needs, before an engine starts",
        description="Compiles into the cache the kernels that vLLM's extension needs for a model, "
        "for the numbers of tokens that vLLM captures in CUDA graphs and for larger prefills. It "
        "needs PyTorch, but neither vLLM, nor weights, nor a GPU.",
    )
    action.add_argument(
        "model", metavar="MODEL", type=Path, help="a folder with config.json, or such a file"
    )
    action.add_argument(
        "--dtype", type=dtype, help="bfloat16, float16 or float32 (default: the model's)"
    )
    for name, default, what in (
        ("max-num-batched-tokens", 8192, "tokens of the largest batch (default: %(default)s)"),
        ("max-num-seqs", 256, "requests of the largest batch (default: %(default)s)"),
        ("max-model-len", None, "length of the longest request (default: the model's)"),
        ("block-size", 16, "tokens of a block of the cache (default: %(default)s)"),
    ):
        action.add_argument(f"--{name}", type=count, default=default, metavar="N", help=what)
    action.add_argument(
        "--arch", help="sm_80, sm_90a ...: a GPU of this kind (default: this machine's, or an H200)"
    )
    action.add_argument("--sms", type=count, metavar="N", help="number of SMs of that GPU")
    action.add_argument(
        "-n", "--dry-run", action="store_true", help="find the kernels, compile none"
    )
    action.add_argument("-j", "--jobs", type=count, metavar="N", help="compilations at a time")
    action.add_argument("--json", action="store_true", help="for programs")
    action.set_defaults(run=_warm)


def count(text: str) -> int:
    """Parses a number of at least 1. Raises ValueError."""
    found = int(text)
    if found < 1:
        raise ValueError(text)
    return found


def facts() -> dict[str, Any]:
    """Returns the entries of ``ptxgen engines`` for vLLM. Each hook has "found": the signature in
    the installed sources, or None; and "fits": whether it is the expected one.
    """
    from ptxgen.engines import vllm
    from ptxgen.engines.hooks import read_signature
    from ptxgen.engines.vllm.hooks import HOOKS, MODELS, QUANTIZED

    version = vllm.installed_version()
    rows = []
    for hook in (*HOOKS, *MODELS, *QUANTIZED):
        found = read_signature(hook) if version else None
        rows.append(
            {
                "part": hook.part,
                "function": hook.target,
                "replaced": bool(hook.replacement),
                "expects": hook.signature,
                "found": found,
                "fits": found == hook.signature,
            }
        )
    takes = f"{'.'.join(map(str, vllm.OLDEST))} to {'.'.join(map(str, vllm.NEWEST))}"
    return {
        "engine": "vLLM",
        "version": version or "not installed",
        "takes": takes,
        "fits": vllm.fits(version) and all(row["fits"] for row in rows),
        "mode": vllm.mode(),
        "hooks": rows,
    }


def _engines(arguments: argparse.Namespace) -> int:
    """Prints the facts. Returns 1 if an engine is installed that the extension does not fit."""
    found = facts()
    there = found["version"] != "not installed"
    status = int(there and not found["fits"])
    if arguments.json:
        emit_json(found)
        return status
    mode = f"{found['mode']} (PTXGEN_VLLM)"
    emit(pairs([("vLLM", found["version"]), ("takes", found["takes"]), ("mode", mode)], indent=""))
    words = {True: "fits", False: "differs"} if there else {False: "-"}
    rows = [
        (h["part"], h["function"], "replaced" if h["replaced"] else "used", words[h["fits"]])
        for h in found["hooks"]
    ]
    emit("\n" + table(rows, ("part", "function", "", "signature")))
    for hook in found["hooks"]:
        if there and not hook["fits"]:
            emit(f"\n{hook['function']}: expects {hook['expects']}, found {hook['found']}")
    return status


# -- engines warm -----------------------------------------------------------------------------
def _warm(arguments: argparse.Namespace) -> None:
    """Finds the kernels of a model, compiles them into the cache, and prints a table."""
    try:
        from ptxgen.engines.kernels import device_for
        from ptxgen.engines.vllm import warm
    except ModuleNotFoundError as error:
        raise missing("ptxgen engines warm", error) from error
    limits = warm.Limits(**{name: getattr(arguments, name) for name in warm.Limits._fields})
    device = device_for(arguments.arch, arguments.sms)
    start = time.monotonic()
    model = warm.Model.read(arguments.model)
    found, left = warm.find_kernels(model, device, limits, arguments.dtype)
    seconds = time.monotonic() - start
    distinct = {name: spec for specs in found.values() for name, spec in specs.items()}
    note(
        f"{model.kind or 'a model'} on {device.gpu} ({device.arch}, {device.sms} SMs): "
        f"{plural(len(distinct), 'kernel')}, chosen in {seconds:.1f} s"
    )
    timed = None if arguments.dry_run else _compiled(distinct, device.arch, arguments.jobs)
    rows = [_row(operation, specs, timed) for operation, specs in found.items()]
    if arguments.json:
        emit_json(
            {
                "gpu": device.gpu,
                "arch": device.arch,
                "operations": [
                    {"operation": name, "kernels": list(specs), "seconds": row[-1]}
                    for (name, specs), row in zip(found.items(), rows, strict=True)
                ],
                "left": [{"part": part, "why": why} for part, why in left],
            }
        )
        return
    emit(table(rows, ("operation", "kernels", "compiled", "seconds")))
    emit("\n" + table(left, ("not warmed", "because")))


def _compiled(
    specs: Mapping[str, KernelSpec], arch: str, workers: int | None
) -> dict[str, float | None]:
    """Compiles kernels. Returns the seconds of each by name, None for those in the cache."""
    from ptxgen.build.compile import Job, toolchain_version
    from ptxgen.build.render import source
    from ptxgen.cli.kernels import compiled

    jobs = [Job(source(spec), name, arch) for name, spec in specs.items()]
    _, seconds = compiled(jobs, workers)
    version = toolchain_version()
    return {job.name: seconds.get(job.key(version).digest) for job in jobs}


def _row(
    operation: str, specs: Mapping[str, KernelSpec], timed: Mapping[str, float | None] | None
) -> tuple[Any, ...]:
    """Returns an operation's row: its kernels, those that were compiled, and their seconds."""
    if timed is None:
        return operation, len(specs), None, None
    own = [s for name in specs if (s := timed[name]) is not None]
    return operation, len(specs), len(own), round(sum(own), 1)
