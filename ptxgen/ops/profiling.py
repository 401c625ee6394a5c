"""``profile``: counts the work and the memory accesses of a route's kernels on the CPU device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from ptxgen.errors import OptionError, ShapeError
from ptxgen.interp.run.profile import KernelProfile, Profiler
from ptxgen.numerics.activation import CODES
from ptxgen.numerics.contract import ACTIVATIONS, ITEMSIZE, OPERATIONS
from ptxgen.numerics.option import Choice, Flag, Integer, KernelName
from ptxgen.program.launch import prepare
from ptxgen.spec import (
    ACTIVATION_SHIFT,
    ALONE,
    DIM_MAX,
    OUT_F32,
    GemmSpec,
    Key,
    Problem,
    Route,
    of_result,
)

_LINE_INFO = "--generate-line-info"


@dataclass(frozen=True, slots=True)
class Profile:
    """Counts of one call of a route, as :func:`profile` returns them.

    ``kernel``: the route's name. ``m``, ``n``, ``k``, ``layout``: sizes and storage of the product
    ``C[m, n] = A[m, k] . B[k, n]``. ``op``: the operation whose plan splits the reduction.
    ``minimum_bytes``: bytes of the operands and the result.
    """

    kernel: str
    op: str
    layout: str
    m: int
    n: int
    k: int
    minimum_bytes: int
    kernels: tuple[KernelProfile, ...]
    """Profiles of the kernels, in the order of their launches."""

    @property
    def flop(self) -> int:
        """Floating-point operations of all kernels; an fma is two."""
        return sum(kernel.flop for kernel in self.kernels)

    @property
    def requested_bytes(self) -> int:
        """Bytes of global memory that the lanes load and store."""
        return sum(k.global_memory.loaded + k.global_memory.stored for k in self.kernels)

    @property
    def moved_bytes(self) -> int:
        """Bytes of the sectors moved between L2 and the SMs, both ways."""
        return sum(kernel.global_memory.moved for kernel in self.kernels)

    @property
    def intensity(self) -> float:
        """Floating-point operations per byte moved (``flop / moved_bytes``)."""
        return self.flop / self.moved_bytes

    @property
    def best_intensity(self) -> float:
        """Floating-point operations per byte, if operands and result were each moved once."""
        return self.flop / self.minimum_bytes

    def json(self) -> dict[str, Any]:
        """Returns the profile as integers, strings, lists and dicts; keys are stable."""
        facts = "kernel", "op", "layout", "m", "n", "k", "flop"
        sums = "minimum_bytes", "requested_bytes", "moved_bytes"
        found = {name: getattr(self, name) for name in (*facts, *sums)}
        return {**found, "kernels": [kernel.json() for kernel in self.kernels]}

    def table(self, sites: int = 10) -> str:
        """Returns the profile as text. ``sites``: how many accesses with more than the ideal number
        of sectors are listed for each kernel.
        """
        return "\n".join(self._lines(sites))

    def _lines(self, sites: int) -> Iterator[str]:
        m, n, k = self.m, self.n, self.k
        yield f"C[{m}, {n}] = A[{m}, {k}] . B[{k}, {n}], stored {self.layout}, as {self.op} cuts it"
        yield (
            f"{self.flop} floating-point operations; {self.moved_bytes} bytes moved, at least "
            f"{self.minimum_bytes}: {self.intensity:.2f} operations per byte of "
            f"{self.best_intensity:.2f}"
        )
        for kernel in self.kernels:
            yield ""
            yield kernel.table(sites)


def profile(
    kernel: str,
    m: int,
    n: int,
    k: int,
    *,
    op: str | None = None,
    bias: bool = False,
    activation: str | None = None,
    lines: bool = False,
) -> Profile:
    """Runs the route named ``kernel`` on the CPU device, and counts its work and accesses.

    ``m``, ``n``, ``k``: sizes of the product ``C[m, n] = A[m, k] . B[k, n]``; operands are
    contiguous, stored as the kernel's layout says. ``op``: the operation whose plan splits the
    reduction; default: the first whose routes include the kernel. ``bias``, ``activation``: the
    epilogue. ``lines``: whether to compile with line information, so that each access names its
    line of CUDA source.

    Counts do not depend on the operands' values, nor on the machine.
    :mod:`ptxgen.interp.run.profile` says what is counted, and by which models.

    Raises OptionError for a kernel that names no route or does not serve the problem, and
    ShapeError for sizes that are not at least 1.

    >>> import ptxgen
    >>> found = ptxgen.profile("simt_nn_f32_128x128x8_17f490", 128, 128, 32)
    >>> found.kernels[0].classes["fma"].lanes == 128 * 128 * 32
    True
    """
    from ptxgen.build.compile import compile_ptx
    from ptxgen.build.render import render
    from ptxgen.build.targets import portable_target
    from ptxgen.runtime.cpu import CpuDevice
    from ptxgen.tiles import TABLES

    size = Integer(1, DIM_MAX, ShapeError)
    m, n, k = (size.read(name, value) for name, value in (("m", m), ("n", n), ("k", k)))
    activation = Choice(None, *ACTIVATIONS).read("activation", activation)
    bias, lines = Flag().read("bias", bias), Flag().read("lines", lines)
    KernelName().read("kernel", kernel)
    route, op, table, dtype = _route(kernel, op)
    space = TABLES[table].space
    storage = table[0]
    itemsize = ITEMSIZE[dtype]
    item = (route.main.result if isinstance(route.main, GemmSpec) else 0) or itemsize
    wide = OUT_F32 if item > itemsize else 0
    observer = Profiler()
    device = CpuDevice(observer=observer)
    sources = {spec.name: render(spec) for spec in route.kernels} if lines else {}
    for spec in route.kernels if lines else ():
        made = compile_ptx(
            sources[spec.name], name=spec.name, arch=portable_target(spec), options=(_LINE_INFO,)
        )
        # A device keeps the first image of a symbol, so this is the one that will run.
        device.kernel(spec.name, lambda _, image=made.image: image, spec.shared_bytes)  # type: ignore[misc]
    shapes = ((m, k) if storage[0] == "N" else (k, m), (k, n) if storage[1] == "N" else (n, k))
    lda, ldb = shapes[0][1], shapes[1][1]
    problem = Problem(
        table,
        dtype,
        (
            *(("M", m), ("N", n), ("K", k)),
            *(("ALIGN_A", _align(lda * itemsize)), ("ALIGN_B", _align(ldb * itemsize))),
            *of_result(space, _align(n * item), item),
        ),
        (
            *ALONE,
            *(("LDA", lda), ("LDB", ldb), ("LDC", n)),
            ("FLAGS", CODES[activation or "none"] << ACTIVATION_SHIFT | wide),
        ),
        f"{op} M={m} N={n} K={k}",
    )
    launch = prepare(problem, ("a", "b", "bias", "c"), device, kernel)
    pointers = [_filled(device, prod(shape) * itemsize) for shape in (*shapes, (n,))]
    result = device.alloc(m * n * item)
    a, b, addend = pointers
    launch.fire(0, a, b, addend if bias else 0, result)
    elements = sum(map(prod, shapes)) + (n if bias else 0)
    least = elements * itemsize + m * n * item
    return Profile(kernel, op, storage, m, n, k, least, observer.kernels(sources))


def _filled(device: Any, nbytes: int) -> int:
    pointer: int = device.alloc(nbytes)
    device.memset(pointer, 0, nbytes)
    return pointer


def _align(nbytes: int) -> int:
    """Returns the alignment, up to 16 bytes, of rows of ``nbytes`` bytes."""
    low = nbytes | 16
    return low & -low


def _route(kernel: str, op: str | None) -> tuple[Route, str, Key, str]:
    """Returns the route named ``kernel``, its operation (``op``, or the first), table key and
    dtype.
    """
    import difflib

    from ptxgen.tiles import SPECS, TABLES

    twins = [
        (table.route(index, dtype), key, dtype)
        for key, table in TABLES.items()
        for dtype in table.dtypes
        for index in range(len(table.routes))
    ]
    found = [
        (route, operation.name, key, dtype)
        for route, key, dtype in twins
        if route.name == kernel
        for operation in OPERATIONS.values()
        if key[1:2] in [(plan,) for plan in operation.plan_names]
        and any(product.layout == key[0] for product in operation.products.values())
    ]
    if not found:
        routes = dict.fromkeys(route.name for route, *_ in twins)
        if kernel in SPECS:
            used = [r.name for r, *_ in twins if any(spec.name == kernel for spec in r.kernels)]
            raise OptionError(
                f"{kernel} only serves with other kernels; takes the name of a route, such as "
                f"{' or '.join(used[:2])}"
            )
        if kernel in routes:
            raise OptionError(f"{kernel} is no route of dense products, which alone are profiled")
        near = difflib.get_close_matches(str(kernel), routes, 3) or [*routes][:3]
        raise OptionError(f"there is no kernel {kernel!r}; takes for example {', '.join(near)}")
    if op is None:
        return found[0]
    for one in found:
        if one[1] == op:
            return one
    names = dict.fromkeys(name for _, name, *_ in found)
    raise OptionError(f"op is {op!r}, which does not route to {kernel}; takes {', '.join(names)}")
