"""Preparation of launches: chooses the kernels of a problem, compiles and loads them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from operator import attrgetter
from typing import Any, TypeVar

from ptxgen.cost.tuning import tuning_for
from ptxgen.dispatch import Choice, candidates, choose
from ptxgen.dispatch.predict import bounds, epilogue
from ptxgen.errors import DeviceError, OptionError, SpecError
from ptxgen.expr import Expr
from ptxgen.numerics.dtype import Mixed
from ptxgen.numerics.weight_format import Quantized
from ptxgen.runtime import Device, Launch, Parameters, ScratchLaunch, TensorBox
from ptxgen.spec import ARCHITECTURES, KernelSpec, Key, Param, Problem, Route, Step, standing_for
from ptxgen.tiles import SPECS, TABLES

ENTRIES_MAX = 4096
"""Most entries of a cache of launches or calls. A full one is cleared: cheaper than LRU on each
hit."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def remember(memo: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Adds a value to a cache; clears it first if it has :data:`ENTRIES_MAX` entries. Safe without
    a lock: dict operations are atomic, and a lost entry is no harm.
    """
    if len(memo) >= ENTRIES_MAX and key not in memo:
        memo.clear()
    memo[key] = value


def launch(
    problem: Problem, pointers: Sequence[str], device: Device, kernel: str | None = None
) -> Launch:
    """Returns a launch for ``problem``, from the device's cache or newly prepared.

    ``pointers``: names of the kernels' pointer parameters, in the order in which the launch takes
    their addresses. ``kernel`` forces a route by its name.

    Raises OptionError if ``kernel`` cannot compute the problem, and CompileError or DeviceError if
    the kernel cannot be built or loaded.
    """
    key = problem, tuple(pointers), kernel
    found = device.prepared.get(key)
    if found is None:
        found = prepare(problem, pointers, device, kernel)
        remember(device.prepared, key, found)
    return found


def prepare(
    problem: Problem, pointers: Sequence[str], device: Device, kernel: str | None = None
) -> Launch:
    """Prepares a launch as :func:`launch` does, without the cache; the caller keeps it alive."""
    if kernel is None:
        choice = choose(problem.table, **question(problem, device))
        return ready(problem, pointers, device, choice)
    found = forced(problem, architecture(device), device.sms, kernel)
    return _built(problem, pointers, device, *found)


def covered(problem: Problem, device: Device) -> None:
    """Raises UncoveredError if no route can compute ``problem`` on ``device``."""
    choose(problem.table, **question(problem, device))


def named(problem: Problem, device: Device, kernel: str | None = None) -> tuple[str, ...]:
    """Returns the names of the kernels that compute a problem on a device. ``kernel`` forces a
    route by its name.

    Raises UncoveredError, and OptionError if ``kernel`` cannot compute the problem.
    """
    if kernel is not None:
        return forced(problem, architecture(device), device.sms, kernel)[1].kernels
    return choose(problem.table, **question(problem, device)).kernels


def kernels_of(
    problem: Problem, device: Device, kernel: str | None = None
) -> tuple[KernelSpec, ...]:
    """Returns the kernels that compute a problem on a device, as :func:`named` does their names."""
    if kernel is not None:
        return forced(problem, architecture(device), device.sms, kernel)[0].kernels
    choice = choose(problem.table, **question(problem, device))
    return TABLES[problem.table].route(choice.route, problem.dtype).kernels


def predicted(problem: Problem, nbytes: int, device: Device, kernel: str | None = None) -> float:
    """Returns the predicted time of a problem's kernels on a device, µs.

    ``nbytes``: bytes of the problem's arrays. ``kernel`` forces a route by its name. Nothing is
    rendered or compiled. Raises as :func:`named`.
    """
    us, route, choice = chosen(problem, device, kernel)
    tuning, _ = tuning_for(architecture(device), (device.gpu, device.sms), device.rates)
    if us:
        return us + epilogue(problem, choice, nbytes, tuning, device.sms)
    return sum(bounds(problem, route, choice, nbytes, tuning, device.sms).values())


def chosen(
    problem: Problem, device: Device, kernel: str | None = None
) -> tuple[float, Route, Choice]:
    """Returns the predicted time (µs), the route as listed in its table, and the grids for a
    problem.

    The time is 0 in tables whose routes are taken in order instead of by predicted time. Raises as
    :func:`named`.
    """
    asked = question(problem, device)
    if kernel is None:
        found = candidates(problem.table, **asked, named=False)
        us, choice = min(found, key=attrgetter("time"))
        return us, TABLES[problem.table].routes[choice.route], choice
    route, choice = forced(problem, architecture(device), device.sms, kernel)
    times = (us for us, c in candidates(problem.table, **asked) if c.kernels == choice.kernels)
    return next(times, 0.0), route, choice


def question(problem: Problem, device: Device) -> dict[str, Any]:
    """Describes a problem and a device as keyword arguments of the functions of
    :mod:`ptxgen.dispatch` that choose kernels: variables, architecture, SMs, dtype, GPU, rates,
    batch size.
    """
    return {
        "values": dict(problem.values),
        "arch": architecture(device),
        "sms": device.sms,
        "dtype": problem.dtype,
        "gpu": device.gpu,
        "rates": device.rates,
        "count": problem.count,
        "what": str(problem),
    }


def ready(problem: Problem, pointers: Sequence[str], device: Device, choice: Choice) -> Launch:
    """Compiles and loads the kernels of ``choice``, a route with its grids and scratch sizes, and
    returns a launch of them. ``pointers``: as in :func:`launch`.
    """
    route = TABLES[problem.table].route(choice.route, problem.dtype)
    return _built(problem, pointers, device, route, choice)


def _built(
    problem: Problem, pointers: Sequence[str], device: Device, route: Route, choice: Choice
) -> Launch:
    environment = TABLES[problem.table].space.environment(problem.given(device.sms))
    values = problem.parameters(environment)
    names = (*pointers, *route.scratch)
    image = _ptx if device.image_kind == "ptx" else _cubin
    steps: list[Launch] = []
    for step, grid in zip(route.steps, choice.grids, strict=True):
        spec = step.kernel
        function = device.kernel(spec.name, partial(image, spec), spec.shared_bytes)
        # Uses programmatic dependent launch for later steps whose kernels wait by themselves
        # (griddepcontrol.wait); the first step waits for earlier work through stream order.
        programmatic = bool(steps) and spec.waits and device.compute >= (9, 0)
        if programmatic and spec.early_loads is not None and step.cost is not None:
            loads = step.cost.loads.evaluate(environment) * problem.count
            programmatic = loads <= spec.early_loads
        steps.append(
            device.prepare(
                function,
                spec.launched(grid, problem.batch, environment),
                (spec.threads, 1, 1),
                parameters(step, names, values),
                len(names),
                str(problem),
                programmatic,
            )
        )
    if len(steps) == 1 and not choice.scratch:
        return steps[0]
    return ScratchLaunch(device, tuple(steps), choice.scratch)


def architecture(device: Device) -> str:
    """Returns the name of the architecture whose kernels run on ``device``, such as "sm_90"
    (:func:`ptxgen.spec.standing_for`).

    Raises DeviceError when there is none.
    """
    found = standing_for(device.compute, device.max_shared)
    if found is None:
        major, minor = device.compute
        known = ", ".join(f"{a.compute // 10}.{a.compute % 10}" for a in ARCHITECTURES.values())
        raise DeviceError(
            f"{device} ({device.name}) has compute capability {major}.{minor} and "
            f"{device.max_shared} bytes of shared memory; there are kernels for {known} and later "
            'ones of the same generation. ptxgen.use_device("cpu") computes without a GPU'
        )
    return found.name


def parameters(step: Step, names: tuple[str, ...], values: Mapping[str, int | float]) -> Parameters:
    """Returns a kernel's parameter list. ``step``: the kernel in its route; ``names``: names of the
    pointers with which the launch is fired, in order; ``values``: scalars by name.

    Raises OptionError for a required pointer that ``names`` lacks.
    """
    abi = step.kernel.abi
    values = step.parameters(values)

    def which(param: Param) -> int | None:
        name = step.bound(param.name)
        if name in names:
            return names.index(name)
        if param.optional:
            return None
        raise OptionError(
            f"{step.kernel.name}: nothing is bound to its parameter {param.name} (as {name}); "
            f"there are {', '.join(names)}"
        )

    given = {p.name: values[step.bound(p.name)] for p in abi.scalars}
    environment = {n.upper(): value for n, value in values.items() if isinstance(value, int)}
    maps = []
    for param in abi.maps:
        box = param.box
        assert box is not None, "a map has a box"
        size = tuple(max(int(each.evaluate(environment)), 1) for each in box.size)
        at, rest = partial(_evaluated, environment), len(size) - len(box.box)
        low, high = (tuple(map(at, corner)) for corner in box.corners or ((), ()))
        maps.append(
            TensorBox(
                pointer=names.index(step.bound(box.operand)),
                at=abi.offsets[param.name],
                itemsize=box.itemsize,
                size=size,
                pitches=tuple(each.evaluate(environment) * box.itemsize for each in box.pitches),
                box=(*map(at, box.box), *[1] * (0 if box.corners else rest)),
                swizzle=box.swizzle,
                steps=tuple(map(at, box.steps)),
                corners=(low, high) if box.corners else None,
            )
        )
    plain = tuple(abi.offsets[p.name] for p in abi.params if p.kind != "map")
    return Parameters(abi.pack(given), tuple(map(which, abi.pointers)), plain, tuple(maps))


def _evaluated(environment: Mapping[str, int], value: int | Expr) -> int:
    return value if isinstance(value, int) else int(value.evaluate(environment))


def forced(problem: Problem, arch: str, sms: int, kernel: str) -> tuple[Route, Choice]:
    """Returns the route that is named ``kernel``, and its grids and scratch sizes for a problem.

    A kernel's bits depend on its parameters alone, not on its table. So all tables for problems
    with the same variables are searched. Raises OptionError unless the kernel is correct for the
    problem.
    """
    import difflib

    from ptxgen.dispatch.emit import conjuncts

    table = TABLES[problem.table]
    routes: dict[str, tuple[Route, Key, Hashable]] = {**routes_by_name()}
    if table.opened and problem.dtype not in table.dtypes:  # routes_by_name has no such kernels
        routes |= {r.name: (r, problem.table, problem.dtype) for r in _specialised(problem)}
    if kernel in SPECS and kernel not in routes:
        names = [r.name for r, *_ in routes.values() if any(s.name == kernel for s in r.kernels)]
        raise OptionError(
            f"kernel is {kernel!r}, which only serves with others; takes the name of a route: "
            f"{' or '.join(names)}"
        )
    if kernel not in routes:
        near = difflib.get_close_matches(str(kernel), routes, 3) or sorted(routes)[:3]
        raise OptionError(f"kernel is {kernel!r}, which is unknown; takes for example {near}")
    route, key, takes = routes[kernel]
    space = TABLES[problem.table].space
    what = f"kernel {kernel} does not serve {problem} on {arch}"
    if takes != problem.dtype:
        has_name = isinstance(problem.dtype, str | Quantized | Mixed)
        got = problem.dtype if has_name else "another formula"
        raise OptionError(f"{what}: it takes {takes}, got {got}")
    if problem.count > 1 and not route.batched:
        raise OptionError(f"{what}: it takes no batches")
    if key != problem.table and (reason := _mismatch(route.main, key, problem)):
        raise OptionError(f"{what}: {reason}")
    for spec in route.kernels:
        if not spec.runs_on(arch):
            raise OptionError(f"{what}: {spec.name} does not run there")
    env = space.environment(problem.given(sms))
    unmet = [term for term in conjuncts(route.requires) if not term.evaluate(env)]
    if unmet:
        failures = "; ".join(
            f"{term} (got {', '.join(f'{v} = {env[v]}' for v in sorted(term.variables()))})"
            for term in unmet
        )
        raise OptionError(f"{what}: it requires {failures}")
    choice = Choice(
        route=-1,
        kernels=route.names,
        grids=tuple(step.grid.evaluate(env) for step in route.steps),
        scratch=tuple(size.evaluate(env) for size in route.scratch.values()),
    )
    return route, choice


def routes_by_name() -> dict[str, tuple[Route, Key, str]]:
    """Returns every route of every table and dtype by its name, with its table and dtype."""
    return _by_name(tuple(TABLES))


def serving(problem: Problem, sms: int) -> list[Route]:
    """Returns the routes of a problem's table that are correct for it on a device with ``sms`` SMs,
    specialised to its dtype.
    """
    table = TABLES[problem.table]
    environment = table.space.environment(problem.given(sms))
    found = (route for route in table.routes if route.requires.evaluate(environment))
    return [route.of(problem.dtype) for route in found if route.takes(problem.dtype)]


def _specialised(problem: Problem) -> Iterator[Route]:
    """Yields the routes of a problem's table, specialised to its dtype, that can be rendered."""
    table = TABLES[problem.table]
    for index, route in enumerate(table.routes):
        if route.takes(problem.dtype):
            with suppress(SpecError):
                yield table.route(index, problem.dtype)


@cache
def _by_name(tables: tuple[Key, ...]) -> dict[str, tuple[Route, Key, str]]:
    return {
        twin.name: (twin, key, dtype)
        for key in tables
        for dtype in TABLES[key].dtypes
        for twin in (route.of(dtype) for route in TABLES[key].named.values())
    }


def _mismatch(spec: KernelSpec, table: tuple[str, ...], problem: Problem) -> str:
    """Returns why kernel ``spec``, of a route in another table (``table``), cannot compute
    ``problem``; empty text if it can.
    """
    wanted = next(iter(TABLES[problem.table].routes)).main
    if spec.contract == wanted.contract and spec.continues != wanted.continues:
        begins, asks = (
            "what the result holds" if each.continues else "zero" for each in (spec, wanted)
        )
        return f"its sums begin with {begins}, those asked for with {asks}"
    if TABLES[table].space.arguments != TABLES[problem.table].space.arguments:
        return f"it serves {TABLES[table].space.name}"
    if spec.tier != wanted.tier:
        return (
            f"it is of tier {spec.tier!r}, which tier= (accumulate= of quantized weights) asks "
            f"for; got {wanted.tier!r}"
        )
    if spec.contract != wanted.contract:
        return f"its contract is {spec.contract}, that of the problem {wanted.contract}"
    own, asked = getattr(spec, "layout", ""), getattr(wanted, "layout", "")
    if own == asked:
        return ""
    return f"it takes operands stored {own}, got {asked}" if own else f"it serves {' '.join(table)}"


def _cubin(spec: KernelSpec, arch: str) -> bytes:
    from ptxgen.build.compile import compile_cubin
    from ptxgen.build.render import source

    return compile_cubin(source(spec), name=spec.name, arch=arch).image


def _ptx(spec: KernelSpec, arch: str) -> bytes:
    """Compiles a kernel to portable PTX, as in the goldens: one text for every device that loads
    PTX, whatever its ``arch``.
    """
    from ptxgen.build.compile import compile_ptx
    from ptxgen.build.render import source
    from ptxgen.build.targets import portable_target

    return compile_ptx(source(spec), name=spec.name, arch=portable_target(spec)).image
