"""From a problem to a prepared launch: choosing, compiling, loading."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from ptxgen.dispatch import Choice, choose
from ptxgen.errors import DeviceError, OptionError
from ptxgen.numerics.contract import ITEMSIZE, OPERATIONS
from ptxgen.ops.problem import Problem, routed_as
from ptxgen.runtime import GEMM_PARAMS, Device, Launch, ScratchLaunch, TensorBox
from ptxgen.spec import ARCHITECTURES, MapBox, standing_for

ENTRIES_MAX = 4096
"""Most entries of a memo. It then starts afresh: cheaper than keeping order on every hit."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def remember(memo: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Enters a value into a bounded memo (dict operations are atomic; losing one is no harm)."""
    if len(memo) >= ENTRIES_MAX:
        memo.clear()
    memo[key] = value


def launch(
    problem: Problem,
    device: Device,
    ldc: int,
    flags: int,
    *,
    dtype: str,
    tier: str,
    kernel: str | None,
) -> Launch:
    """A launch for ``problem``, from the memo or prepared; ``kernel`` forces one.

    Raises OptionError when ``kernel`` does not serve the problem, and CompileError or
    DeviceError when the kernel cannot be built or loaded.
    """
    key = (problem, ldc, flags, dtype, tier, kernel)
    found = device.prepared.get(key)
    if found is None:
        found = prepare(problem, device, ldc, flags, dtype, tier, kernel)
        remember(device.prepared, key, found)
    return found


def prepare(
    problem: Problem,
    device: Device,
    ldc: int,
    flags: int,
    dtype: str,
    tier: str,
    kernel: str | None,
) -> Launch:
    """As :func:`launch`, past the memo: what is prepared lives as long as its user wants it."""
    from ptxgen.tiles import SPECS

    arch = architecture(device)
    if kernel is None:
        choice = _chosen(problem, arch, device, dtype, tier)
    else:
        choice = forced(problem, arch, device.sms, dtype, tier, kernel)
    m, n, k = problem.dims
    params = GEMM_PARAMS.pack(*[0] * 5, *problem.lds, ldc, m, n, k, choice.chunk, flags)
    pointers = 4 if len(choice.kernels) == 1 else 5  # A, B, bias, C and the workspace
    image = _ptx if device.image_kind == "ptx" else _cubin
    steps: list[Launch] = []
    for name, grid in zip(choice.kernels, choice.grids, strict=True):
        spec = SPECS[name]
        function = device.kernel(name, partial(image, name), spec.shared_bytes)
        block = (spec.threads, 1, 1)
        maps = tuple(_tensor_box(box, problem, ITEMSIZE[dtype]) for box in spec.tensor_maps)
        # What follows another kernel is a reduce kernel, which waits for it by itself from 9.0 on.
        ahead = bool(steps) and device.compute >= (9, 0)
        steps.append(
            device.prepare(
                function, (grid, 1, 1), block, params, pointers, str(problem), maps, ahead
            )
        )
    return steps[0] if len(steps) == 1 else ScratchLaunch(device, tuple(steps), choice.workspace)


def _tensor_box(box: MapBox, problem: Problem, itemsize: int) -> TensorBox:
    """A tensor map of one of the operands of ``problem``."""
    which = "ab".index(box.operand)
    m, n, k = problem.dims
    rows, columns = ((m, k), (k, n))[which]
    if problem.storage[which] == "T":
        rows, columns = columns, rows
    return TensorBox(
        pointer=which,
        itemsize=itemsize,
        size=(max(columns, 1), max(rows, 1)),
        pitch=problem.lds[which] * itemsize,
        box=(box.inner, box.outer),
        swizzle=box.swizzle,
    )


def storage_of(kernel: str | None) -> str | None:
    """The operand storage that the kernel of this name reads; None if it is not a GEMM's name."""
    if kernel is None:
        return None
    from ptxgen.tiles import SPECS

    return getattr(SPECS.get(kernel), "layout", None)


def architecture(device: Device) -> str:
    """The architecture whose routes fit ``device`` (:func:`ptxgen.spec.standing_for`).

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


def _chosen(problem: Problem, arch: str, device: Device, dtype: str, tier: str) -> Choice:
    route = routed_as(problem.storage, OPERATIONS[problem.op].plan_name)
    assert route is not None, "problem.read admits only what is routed"
    op, layout = route
    m, n, k = problem.dims
    own = dict(zip(OPERATIONS[op].products[layout].dims, (m, n, max(k, 1)), strict=True))
    align_a, align_b = problem.aligns
    return choose(
        op,
        layout,
        own["M"],
        own["N"],
        own["K"],
        arch=arch,
        sms=device.sms,
        align_a=align_a,
        align_b=align_b,
        dtype=dtype,
        tier=tier,
        gpu=device.gpu,
    )


def forced(problem: Problem, arch: str, sms: int, dtype: str, tier: str, kernel: str) -> Choice:
    """The launch numbers of the route whose first kernel is ``kernel``.

    A kernel returns the bits of whatever plan its parameters state, so the routes of all
    plans are looked through. Raises OptionError unless the kernel is correct for the problem.
    """
    import difflib

    from ptxgen.dispatch.emit import conjuncts
    from ptxgen.tiles import ROUTES, SPECS

    routes = {r.name: (r, key) for key, table in ROUTES.items() for r in table}
    if kernel not in SPECS:
        near = difflib.get_close_matches(str(kernel), routes, 3) or sorted(routes)[:3]
        raise OptionError(f"kernel is {kernel!r}, which is unknown; takes for example {near}")
    if kernel not in routes:
        firsts = [r.name for r, _ in routes.values() if any(s.name == kernel for s in r.kernels)]
        raise OptionError(
            f"kernel is {kernel!r}, which only follows another; takes the first of a route: "
            f"{' or '.join(firsts)}"
        )
    route, (layout, _, takes, _) = routes[kernel]
    what = f"kernel {kernel} does not serve {problem} on {arch}"
    if takes != dtype:
        raise OptionError(f"{what}: it takes {takes}, got {dtype}")
    if (own := route.kernels[0].tier) != tier:
        raise OptionError(f"{what}: it is of tier {own!r}; pass tier={own!r} (got {tier!r})")
    if layout != problem.storage:
        raise OptionError(f"{what}: it takes operands stored {layout}, got {problem.storage}")
    for spec in route.kernels:
        if not spec.runs_on(arch):
            raise OptionError(f"{what}: {spec.name} does not run there")
    m, n, k = problem.dims
    align_a, align_b = problem.aligns
    env = (
        OPERATIONS[problem.op]
        .plan(tier)
        .environment(
            {"M": m, "N": n, "K": max(k, 1), "ALIGN_A": align_a, "ALIGN_B": align_b, "SMS": sms}
        )
    )
    unmet = [term for term in conjuncts(route.requires) if not term.evaluate(env)]
    if unmet:
        failures = "; ".join(
            f"{term} (got {', '.join(f'{v} = {env[v]}' for v in sorted(term.variables()))})"
            for term in unmet
        )
        raise OptionError(f"{what}: it requires {failures}")
    return Choice(
        route=-1,
        kernels=tuple(spec.name for spec in route.kernels),
        grids=tuple(spec.grid.evaluate(env) for spec in route.kernels),
        workspace=route.workspace.evaluate(env),
        chunk=env["CHUNK"],
    )


def _cubin(kernel: str, arch: str) -> bytes:
    from ptxgen.build.compile import compile_cubin
    from ptxgen.build.render import source
    from ptxgen.tiles import SPECS

    return compile_cubin(source(SPECS[kernel]), name=kernel, arch=arch).image


def _ptx(kernel: str, arch: str) -> bytes:
    """The portable PTX, as the goldens hold it: the same on every device that loads PTX."""
    from ptxgen.build.compile import compile_ptx
    from ptxgen.build.render import source
    from ptxgen.golden.fresh import targets
    from ptxgen.tiles import SPECS

    spec = SPECS[kernel]
    return compile_ptx(source(spec), name=kernel, arch=targets(spec)[-1]).image
