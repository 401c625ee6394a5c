"""list, show, render, build: the kernels."""

from __future__ import annotations

import argparse
import difflib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptxgen.cli.ui import Progress, emit, emit_json, note, pairs, plural, size, table
from ptxgen.errors import OptionError

if TYPE_CHECKING:
    from ptxgen.build.cache import Entry, Key
    from ptxgen.golden import Goldens, Usage
    from ptxgen.spec import KernelSpec

DEFAULT_ARCH = "sm_90a"


class UnknownSpecError(OptionError):
    """A kernel name that the registry does not have."""


def add_commands(commands: Any) -> None:
    """Adds this module's commands to the parser."""
    command = commands.add_parser("list", help="the kernels, with tile, threads and resources")
    command.add_argument("--family", help="only kernels of this family, such as simt")
    command.add_argument("--layout", type=str.upper, help="only NN, NT, TN or TT")
    command.add_argument(
        "--arch", default=DEFAULT_ARCH, help="whose registers and spills (default: %(default)s)"
    )
    command.add_argument("--json", action="store_true", help="for programs: all architectures")
    command.set_defaults(run=_list)

    command = commands.add_parser("show", help="everything about one kernel")
    command.add_argument("spec", metavar="SPEC", help="a kernel's name (see ptxgen list)")
    command.add_argument("--json", action="store_true", help="for programs")
    command.set_defaults(run=_show)

    command = commands.add_parser("render", help="the CUDA C++ (or PTX) of one kernel")
    command.add_argument("spec", metavar="SPEC", help="a kernel's name (see ptxgen list)")
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
        help="sm_80, sm_90a, sm_120 ...; may be repeated (default: the GPU's, or sm_90a)",
    )
    command.add_argument("-j", "--jobs", type=int, metavar="N", help="compilations at a time")
    command.set_defaults(run=_build)


def find(name: str) -> KernelSpec:
    """The kernel ``name``; UnknownSpecError proposes similar names."""
    from ptxgen.tiles import SPECS

    if name in SPECS:
        return SPECS[name]
    close = difflib.get_close_matches(name, SPECS, n=3, cutoff=0.5)
    close = close or [known for known in SPECS if name in known][:3]
    hint = f"did you mean {' or '.join(close)}?" if close else "see ptxgen list"
    raise UnknownSpecError(f"there is no kernel {name!r}; {hint}")


def selected(names: list[str]) -> list[KernelSpec]:
    """The kernels ``names``, or all if there are none."""
    from ptxgen.tiles import SPECS

    return [find(name) for name in names] or list(SPECS.values())


def layout_of(spec: KernelSpec) -> str | None:
    """The operand layout, for kernels that have one."""
    return getattr(spec, "layout", None)


def tile_of(spec: KernelSpec) -> str | None:
    """``BMxBNxBK``, for kernels that have a tile."""
    sides = [getattr(spec, side, None) for side in ("bm", "bn", "bk")]
    return None if None in sides else "x".join(map(str, sides))


def resources(spec: KernelSpec, goldens: Goldens) -> dict[str, Usage]:
    """What the kernel takes per architecture, as far as goldens say."""
    return {arch: use for (arch, name), use in goldens.usage.items() if name == spec.name}


def _goldens() -> Goldens:
    """The records of the checkout, or those that were installed."""
    from ptxgen.golden import recorded

    return recorded()


def _list(arguments: argparse.Namespace) -> None:
    from dataclasses import asdict

    from ptxgen.tiles import SPECS

    goldens = _goldens()
    chosen = [
        spec
        for spec in SPECS.values()
        if arguments.family in (None, _family(spec)) and arguments.layout in (None, layout_of(spec))
    ]
    if not chosen:
        families = sorted({_family(spec) for spec in SPECS.values()})
        layouts = sorted({layout_of(spec) or "" for spec in SPECS.values()} - {""})
        raise OptionError(
            f"no kernel has family {arguments.family or 'any'} and layout "
            f"{arguments.layout or 'any'}; families are {', '.join(families)}, layouts "
            f"{', '.join(layouts)}"
        )
    if arguments.json:
        emit_json(
            [
                {
                    "name": spec.name,
                    "family": _family(spec),
                    "layout": layout_of(spec),
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
        use = resources(spec, goldens).get(arguments.arch)
        rows.append(
            (
                spec.name,
                _family(spec),
                layout_of(spec),
                tile_of(spec),
                spec.threads,
                spec.shared_bytes,
                use.registers if use else None,
                use.spill_stores + use.spill_loads if use else None,
            )
        )
    emit(table(rows, ("kernel", "family", "layout", "tile", "threads", "shared", "regs", "spills")))
    if not any((arguments.arch, spec.name) in goldens.usage for spec in chosen):
        known = ", ".join(dict.fromkeys(arch for arch, _ in goldens.usage)) or "none yet"
        note(f"no resources are recorded for {arguments.arch} (recorded: {known})")


def _family(spec: KernelSpec) -> str:
    return str(getattr(spec, "family", type(spec).__name__))


def uses(spec: KernelSpec) -> list[dict[str, Any]]:
    """The routes that launch ``spec``: table, index in it, operations, prefer and reason."""
    from ptxgen.numerics.contract import OPERATIONS
    from ptxgen.tiles import ROUTES

    found = []
    for (layout, plan, dtype, tier), routes in ROUTES.items():
        operations = [
            f"{operation.name} ({argument})"
            for operation in OPERATIONS.values()
            for argument, product in operation.products.items()
            if operation.plan_name == plan and product.layout == layout
        ]
        for index, route in enumerate(routes):
            if spec.name in (kernel.name for kernel in route.kernels):
                found.append(
                    {
                        "layout": layout,
                        "plan": plan,
                        "dtype": dtype,
                        "tier": tier,
                        "route": index,
                        "kernels": [kernel.name for kernel in route.kernels],
                        "operations": operations,
                        "prefer": str(route.prefer),
                        "reason": route.reason,
                    }
                )
    return found


def _show(arguments: argparse.Namespace) -> None:
    from dataclasses import asdict

    from ptxgen.spec import ARCHITECTURES

    spec = find(arguments.spec)
    fields = json.loads(spec.canonical())
    derived = {
        "template": spec.template,
        "threads": spec.threads,
        "shared_bytes": spec.shared_bytes,
        "grid": str(spec.grid),
        "workspace": str(spec.workspace),
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
    for line in spec.describe():
        emit(f"  {line}")
    emit("\nfields")
    emit(pairs((name, _plain(value)) for name, value in fields.items()))
    emit("\nderived")
    emit(pairs((name.replace("_", " "), _plain(value)) for name, value in derived.items()))
    emit("\nroutes")
    for route in using:
        emit(
            f"  route {route['route']} of {route['layout']} {route['plan']}"
            f" {route['dtype']} {route['tier']}"
            f" ({', '.join(route['operations']) or 'no operation'})"
        )
        items: list[tuple[str, object]] = [("prefer", route["prefer"]), ("reason", route["reason"])]
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
    if arguments.ptx:
        from ptxgen.build.compile import compile_ptx

        text = compile_ptx(text, name=spec.name, arch=arguments.ptx).text
    if arguments.output is None:
        emit(text.rstrip("\n"))
        return
    try:
        arguments.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OptionError(f"--output {arguments.output}: {error.strerror}") from error
    note(f"wrote {arguments.output}")


def _build(arguments: argparse.Namespace) -> None:
    """Compiles kernels to cubins in the cache, so that first calls find them there.

    Without SPEC all kernels are built; those that do not fit an architecture are left out.
    """
    from ptxgen.build.cache import Cache
    from ptxgen.build.compile import Job, compile_many, toolchain_version
    from ptxgen.build.render import render
    from ptxgen.spec import ARCHITECTURES

    class Stopwatch(Cache):
        """The cache, which also takes the time of what it must build."""

        def __init__(self) -> None:
            super().__init__()
            self.seconds: dict[str, float] = {}

        def get_or_build(self, key: Key, build: Callable[[], Entry]) -> tuple[Entry, bool]:
            def timed() -> Entry:
                start = time.monotonic()
                entry = build()
                self.seconds[key.digest] = time.monotonic() - start
                return entry

            return super().get_or_build(key, timed)

    jobs: list[Job] = []
    shared: dict[str, int] = {}
    for spec in selected(arguments.spec):
        source = render(spec)
        shared[spec.name] = spec.shared_bytes
        for arch in arguments.arch or [_local_arch()]:
            base = arch.rstrip("af")
            if base not in ARCHITECTURES or spec.runs_on(base):
                jobs.append(Job(source, spec.name, arch))
            else:
                note(f"{spec.name} does not run on {arch}: left out")
    cache = Stopwatch()
    start = time.monotonic()
    with Progress("compiling") as progress:
        made = compile_many(jobs, workers=arguments.jobs, progress=progress, cache=cache)
    total = time.monotonic() - start
    version = toolchain_version()
    rows = []
    for job, kernel in zip(jobs, made, strict=True):
        use, seconds = kernel.resources, cache.seconds.get(job.key(version).digest)
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


def _local_arch() -> str:
    """The target of the default GPU, or Hopper's where there is none."""
    from ptxgen.errors import DeviceError
    from ptxgen.runtime import default_device

    try:
        return default_device().arch
    except DeviceError:
        return DEFAULT_ARCH
