"""Commands ``list``, ``show``, ``render`` and ``build``, for kernels."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptxgen import arguments as reading
from ptxgen.errors import OptionError, PtxgenError, proposal
from ptxgen.ui import Progress, emit, emit_json, note, pairs, plural, size, table

if TYPE_CHECKING:
    from ptxgen.build.cache import Check, Entry, Key
    from ptxgen.build.compile import Compiled, Job
    from ptxgen.golden import Goldens, Usage
    from ptxgen.spec import KernelSpec

DEFAULT_ARCH = "sm_90"


_PROBLEMS_MAX = 1_000_000
"""Maximum number of problems of ``build --for``; they take about ten seconds."""
_SORTS = ("name", "threads", "shared", "regs", "spills")


class UnknownSpecError(OptionError):
    """A kernel name that no kernel has."""


def add_commands(commands: Any) -> None:
    """Adds ``list``, ``show``, ``render`` and ``build`` to the subcommands ``commands`` of
    ``ptxgen``.
    """
    command = commands.add_parser("list", help="the kernels, with tile, threads and resources")
    for what, text in (
        ("dtype", "only kernels of operands of this dtype, such as bf16"),
        ("tier", "only simt, tc or f64"),
        ("family", "only kernels of this family, such as wgmma"),
        ("layout", "only NN, NT, TN or TT"),
        ("match", "only kernels in whose name this regular expression is found"),
    ):
        command.add_argument(f"--{what}", type=reading.dtype if what == "dtype" else str, help=text)
    command.add_argument("--spills", action="store_true", help="only kernels that spill registers")
    command.add_argument(
        "--sort", choices=_SORTS, help="largest first; name: alphabetically (default: the tables')"
    )
    command.add_argument(
        "--arch",
        default=DEFAULT_ARCH,
        help="whose registers and spills; only kernels that run on it (default: %(default)s)",
    )
    command.add_argument("--json", action="store_true", help="for programs: all architectures")
    command.set_defaults(run=_list)

    command = commands.add_parser("show", help="everything about one kernel")
    command.add_argument("spec", metavar="SPEC", help="a kernel's name (see ptxgen list)")
    command.add_argument("--json", action="store_true", help="for programs")
    command.set_defaults(run=_show)

    command = commands.add_parser("render", help="the CUDA C++ (or PTX) of one kernel")
    command.add_argument(
        "spec",
        metavar="SPEC",
        help="a kernel's name (see ptxgen list), or a short one: FORMAT_gemm",
    )
    command.add_argument(
        "--target",
        metavar="ARCH",
        help="of a kernel written in PTX: the architecture, sm_70 or later (default: the oldest)",
    )
    command.add_argument(
        "--ptx",
        nargs="?",
        const="compute_80",
        metavar="TARGET",
        help="compile, and give the PTX for TARGET (default: %(const)s)",
    )
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to FILE")
    command.set_defaults(run=_render)

    command = commands.add_parser(
        "build", help="compile kernels into the cache", description=_build.__doc__
    )
    command.add_argument("spec", metavar="SPEC", nargs="*", help="kernels (default: all)")
    command.add_argument(
        "--arch",
        action="append",
        metavar="ARCH",
        help="sm_80, sm_90, sm_120 ...; may be repeated (default: the GPU's, or sm_90)",
    )
    command.add_argument("-j", "--jobs", type=int, metavar="N", help="compilations at a time")
    command.add_argument(
        "--for",
        dest="problems",
        nargs="+",
        metavar=("OP", "SIZES"),
        help="just the kernels that serve an operation of these sizes, such as MxKxN, each a "
        "number or a range: 1..32x4096x4096; for contiguous operands on the GPU that there is, or "
        "an H200",
    )
    command.add_argument(
        "--dtype", type=reading.dtype, help="with --for (default: f32; of int4_gemm: s4)"
    )
    command.add_argument("--tier", default="auto", help="with --for (default: %(default)s)")
    command.add_argument("--layout", help="with --for: kn or nk (matmul: nn, nt, tn, tt)")
    command.set_defaults(run=_build)


def find(name: str) -> KernelSpec:
    """Returns the spec of the kernel with this name or short name.

    Raises UnknownSpecError, which proposes similar names.
    """
    from ptxgen.tiles import PINNED, SPECS
    from ptxgen.tiles.quantized_ptx import NAMED

    for known in (SPECS, PINNED, NAMED):
        if name in known:
            return known[name]
    inside = [known for known in SPECS if name in known][:3]
    hint = proposal(name, SPECS) or proposal(name, inside, cutoff=0.0) or "; see ptxgen list"
    raise UnknownSpecError(f"there is no kernel {name!r}{hint}")


def selected(names: list[str]) -> list[KernelSpec]:
    """Returns the kernels with these names; all kernels if ``names`` is empty."""
    from ptxgen.tiles import SPECS

    return [find(name) for name in names] or list(SPECS.values())


def layout_of(spec: KernelSpec) -> str | None:
    """Returns the operand layout, such as "NN", of kernels that have one; else None."""
    return getattr(spec, "layout", None)


def tile_of(spec: KernelSpec) -> str | None:
    """Returns the tile as ``BMxBNxBK``; None for kernels without one."""
    sides = [getattr(spec, side, None) for side in ("bm", "bn", "bk")]
    return None if None in sides else "x".join(map(str, sides))


def resources(spec: KernelSpec, goldens: Goldens) -> dict[str, Usage]:
    """Returns the recorded registers, spills and shared memory of a kernel, by architecture."""
    return {arch: use for (arch, name), use in goldens.usage.items() if name == spec.name}


def _goldens() -> Goldens:
    """Returns the committed records of kernels: those of the checkout, else the installed ones."""
    from ptxgen.golden import recorded

    return recorded()


def _list(arguments: argparse.Namespace) -> None:
    from dataclasses import asdict

    from ptxgen.spec import architecture_named
    from ptxgen.tiles import SPECS

    arch = architecture_named(arguments.arch)
    goldens = _goldens()
    usage = {name: use for (target, name), use in goldens.usage.items() if target == arch.target}
    chosen = [
        spec
        for spec in _filtered(arguments)
        if spec.runs_on(arch.name) and (not arguments.spills or _spills(usage.get(spec.name)))
    ]
    if arguments.sort == "name":
        chosen.sort(key=lambda spec: spec.name)
    elif arguments.sort:
        key = {
            "threads": lambda spec: spec.threads,
            "shared": lambda spec: spec.shared_bytes,
            "regs": lambda spec: usage[spec.name].registers if spec.name in usage else 0,
            "spills": lambda spec: _spills(usage.get(spec.name)) or 0,
        }[arguments.sort]
        chosen.sort(key=key, reverse=True)
    if arguments.json:
        emit_json(
            [
                {
                    "name": spec.name,
                    "family": spec.family,
                    "layout": layout_of(spec),
                    "dtype": spec.dtype,
                    "tier": spec.tier,
                    "tile": tile_of(spec),
                    "threads": spec.threads,
                    "shared_bytes": spec.shared_bytes,
                    "resources": {a: asdict(u) for a, u in resources(spec, goldens).items()},
                }
                for spec in chosen
            ]
        )
        return
    rows = []
    for spec in chosen:
        use = usage.get(spec.name)
        rows.append(
            (
                spec.name,
                spec.dtype,
                layout_of(spec),
                spec.tier,
                spec.threads,
                spec.shared_bytes,
                use.registers if use else None,
                _spills(use),
            )
        )
    if rows:
        header = ("kernel", "dtype", "layout", "tier", "threads", "shared", "regs", "spills")
        emit(table(rows, header))
    note(f"{len(rows)} of {plural(len(SPECS), 'kernel')}")
    if chosen and not any(spec.name in usage for spec in chosen):
        known = ", ".join(dict.fromkeys(arch for arch, _ in goldens.usage)) or "none yet"
        note(f"no resources are recorded for {arch.name} (recorded: {known})")


def _filtered(arguments: argparse.Namespace) -> list[KernelSpec]:
    """Returns the kernels that pass --dtype, --tier, --family, --layout and --match."""
    from ptxgen.tiles import SPECS

    found = list(SPECS.values())
    filters: dict[str, Callable[[KernelSpec], str | None]] = {
        "dtype": lambda spec: spec.dtype if re.fullmatch(r"[a-z]+\d+", spec.dtype) else None,
        "tier": lambda spec: spec.tier,
        "family": lambda spec: spec.family,
        "layout": lambda spec: layout_of(spec),
    }
    for what, value_of in filters.items():
        wanted = getattr(arguments, what)
        if wanted is None:
            continue
        wanted = wanted.upper() if what == "layout" else wanted
        known = dict.fromkeys(value for spec in SPECS.values() if (value := value_of(spec)))
        if wanted not in known:
            close = proposal(wanted, known) or f"; takes {', '.join(known)}"
            raise OptionError(f"--{what} {wanted}: no kernel has it{close}")
        found = [spec for spec in found if value_of(spec) == wanted]
    if arguments.match is not None:
        try:
            pattern = re.compile(arguments.match)
        except re.error as error:
            raise OptionError(f"--match {arguments.match!r}: {error}") from error
        found = [spec for spec in found if pattern.search(spec.name)]
    return found


def _spills(use: Usage | None) -> int | None:
    """Returns the bytes of spill stores and loads; None if they are not recorded."""
    return None if use is None else use.spill_stores + use.spill_loads


def uses(spec: KernelSpec) -> list[dict[str, Any]]:
    """Returns the routes that launch ``spec`` as records: table, dtype, index, kernels and reason
    of each.
    """
    from ptxgen.tiles import TABLES

    found = []
    for key, routed in TABLES.items():
        for dtype in routed.dtypes:
            for index in range(len(routed.routes)):
                route = routed.route(index, dtype)
                if spec.name in (kernel.name for kernel in route.kernels):
                    found.append(
                        {
                            "table": list(key),
                            "dtype": str(dtype),
                            "route": index,
                            "kernels": [kernel.name for kernel in route.kernels],
                            "reason": route.reason,
                        }
                    )
    return found


def _show(arguments: argparse.Namespace) -> None:
    from dataclasses import asdict

    from ptxgen.cli.fields import table_of
    from ptxgen.spec import ARCHITECTURES

    spec = find(arguments.spec)
    fields = json.loads(spec.canonical())
    derived = {
        "template": spec.template,
        "threads": spec.threads,
        "shared_bytes": spec.shared_bytes,
        "grid": str(spec.grid),
        "scratch": {name: str(size) for name, size in spec.scratch.items()},
        "requires": str(spec.requires),
        "runs_on": [arch for arch in ARCHITECTURES if spec.runs_on(arch)],
    }
    using = uses(spec)
    use = resources(spec, _goldens())
    if arguments.json:
        emit_json(
            {
                "name": spec.name,
                "fields": fields,
                "derived": derived,
                "routes": using,
                "resources": {arch: asdict(u) for arch, u in use.items()},
            }
        )
        return
    emit(spec.name)
    emit(f"  contract {spec.contract}: {spec.contract.step}")
    emit("\nfields")
    emit(table(table_of(spec), ("field", "value", "meaning"), indent="  "))
    emit("\nderived")
    emit(pairs((name.replace("_", " "), _plain(value)) for name, value in derived.items()))
    emit("\nroutes")
    for route in using:
        emit(f"  route {route['route']} of {' '.join(route['table'])}, {route['dtype']}")
        items: list[tuple[str, object]] = [("for", route["reason"])]
        if len(route["kernels"]) > 1:
            items.insert(0, ("launches", ", then ".join(route["kernels"])))
        emit(pairs(items, indent="    "))
    emit("\nresources")
    emit(
        pairs(
            (arch, ", ".join(f"{n.replace('_', ' ')} {v}" for n, v in asdict(u).items()))
            for arch, u in use.items()
        )
        or "  none recorded; ptxgen golden update records them"
    )


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(v)}" for name, v in value.items())
    if isinstance(value, list):
        return " ".join(map(_plain, value)) or "none"
    return str(value)


def _render(arguments: argparse.Namespace) -> None:
    from ptxgen.build.render import render

    spec = find(arguments.spec)
    text = render(spec)
    if arguments.target:
        from ptxgen.build.ptx import is_ptx, retargeted

        if not is_ptx(text):
            raise OptionError(
                f"--target: {spec.name} is written in CUDA C++; pass --ptx, which compiles it"
            )
        text = retargeted(text, arguments.target)
    elif arguments.ptx:
        from ptxgen.build.compile import compile_ptx

        text = compile_ptx(text, name=spec.name, arch=arguments.ptx).text
    if arguments.output is None:
        emit(text.rstrip("\n"))
        return
    try:
        arguments.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PtxgenError(f"--output {arguments.output}: {error.strerror}") from error
    note(f"wrote {arguments.output}")


def _build(arguments: argparse.Namespace) -> None:
    """Compiles kernels to cubins in the cache, so that first calls find them there.

    Without SPEC and --for all kernels are built. Those that do not fit an architecture are left
    out.
    """
    from ptxgen.build.compile import Job, toolchain_version
    from ptxgen.build.render import render

    archs = _targets(arguments.arch)
    jobs: list[Job] = []
    shared: dict[str, int] = {}
    specs = selected(_serving(arguments) if arguments.problems else arguments.spec)
    for spec in specs:
        source = render(spec)
        shared[spec.name] = spec.shared_bytes
        for arch, target in archs.items():
            if spec.runs_on(arch):
                jobs.append(Job(source, spec.name, target))
            else:
                note(f"{spec.name} does not run on {arch}: left out")
    start = time.monotonic()
    made, timed = compiled(jobs, arguments.jobs)
    total = time.monotonic() - start
    version = toolchain_version()
    rows = []
    for job, kernel in zip(jobs, made, strict=True):
        use, seconds = kernel.resources, timed.get(job.key(version).digest)
        rows.append(
            (
                kernel.name,
                kernel.arch,
                use.registers if use else None,
                use.spill_stores + use.spill_loads if use else None,
                shared[kernel.name] + (use.shared if use else 0),
                len(kernel.image),
                "cached" if seconds is None else f"{seconds:.1f}",
            )
        )
    emit(table(rows, ("kernel", "arch", "regs", "spills", "shared", "bytes", "seconds")))
    built = sum(not kernel.cached for kernel in made)
    emit(
        f"{plural(len(made), 'kernel')}, {built} compiled in {total:.1f} s, "
        f"{len(made) - built} from the cache; {size(sum(len(k.image) for k in made))}"
    )


def compiled(jobs: Sequence[Job], workers: int | None) -> tuple[list[Compiled], dict[str, float]]:
    """Compiles jobs into the user's cache, with a line of progress. Returns the kernels in order,
    and the seconds of each compilation by the digest of its key; those found in the cache have
    none. ``workers``: as in :func:`ptxgen.build.compile.compile_many`.
    """
    from ptxgen.build.cache import Cache
    from ptxgen.build.compile import compile_many

    found: dict[str, float] = {}

    class Stopwatch(Cache):
        """A cache that also records the seconds of each build."""

        def get_or_build(
            self, key: Key, build: Callable[[], Entry], check: Check | None = None
        ) -> tuple[Entry, bool]:
            def timed() -> Entry:
                start = time.monotonic()
                entry = build()
                found[key.digest] = time.monotonic() - start
                return entry

            return super().get_or_build(key, timed, check)

    with Progress("compiling") as progress:
        made = compile_many(jobs, workers=workers, progress=progress, cache=Stopwatch())
    return made, found


def _serving(arguments: argparse.Namespace) -> list[str]:
    """Returns the names of the kernels that serve the problems of ``--for``; prints a note with the
    numbers of problems and kernels.
    """
    from ptxgen.dispatch import choose
    from ptxgen.ops.explaining import operands, operation, program_of, size_names
    from ptxgen.program.launch import architecture, question
    from ptxgen.runtime import default_device

    if arguments.spec or arguments.arch:
        raise OptionError("--for says itself which kernels; it takes no SPEC and no --arch")
    op, *words = arguments.problems
    row = operation(op)
    names = size_names(row)
    text = reading.numbers(words, names)
    given = dict(
        zip(reading.written(names), reading.ranges(text, reading.written(names)), strict=True)
    )
    ranges = [given[name] for name in names]
    problems = math.prod(each.stop - each.start for each in ranges)
    if problems > _PROBLEMS_MAX:
        raise OptionError(f"--for: {problems} problems; takes up to {_PROBLEMS_MAX}")
    dtype, _ = operands(row, arguments.dtype, "--dtype")
    options = {
        name: getattr(arguments, name)
        for name in ("layout", "tier")
        if getattr(arguments, name) not in (None, "auto")
    }
    layout = row.check(options).get("layout", "")
    device = default_device()
    arch = architecture(device)
    found: dict[str, None] = {}
    for each in itertools.product(*ranges):
        for step in program_of(op, each, dtype, None, options, arch, device.sms).steps:
            choice = choose(step.problem.table, **question(step.problem, device))
            found.update(dict.fromkeys(choice.kernels))
    note(
        f"{op} {text} {layout} {dtype} on {device.gpu} ({arch}, {device.sms} "
        f"SMs): {plural(problems, 'problem')}, served by {plural(len(found), 'kernel')}"
    )
    return list(found)


def _targets(names: list[str] | None) -> dict[str, str]:
    """Returns the compilation target of each architecture in ``names``, by its name.

    Without names, the default device's; the default architecture's if there is no usable device.
    """
    from ptxgen.errors import DeviceError
    from ptxgen.program.launch import architecture
    from ptxgen.runtime import default_device
    from ptxgen.spec import architecture_named

    if names:
        return {a.name: a.target for a in map(architecture_named, names)}
    try:
        device = default_device()
    except DeviceError:  # a GPU that cannot be used: kernels are built all the same
        found = architecture_named(DEFAULT_ARCH)
        return {found.name: found.target}
    return {architecture(device): device.arch}
