"""Base of the kernel specs; limits of CUDA and of GPU architectures."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self, cast

from ptxgen.cost.kernel import KernelCost, Roofline
from ptxgen.errors import OptionError, SpecError, proposal
from ptxgen.expr import Expr
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.option import name_text
from ptxgen.numerics.weight_format import Quantized
from ptxgen.spec.abi import Abi

GRID_MAX = (1 << 31) - 1
"""Largest grid.x (CUDA programming guide, compute capabilities)."""
GRID_LIMIT = GRID_MAX, 65535, 65535
BLOCK_LIMIT = 1024, 1024, 64
"""Largest sizes of a CTA; ``GRID_LIMIT``: of a grid (the same CUDA table)."""
THREADS_MAX = 1024
"""Most threads of a CTA (the same CUDA table)."""
CPU_DEVICE_SMS = 132
"""SMs of the CPU device, those of an H200."""
WORKSPACE_MAX = 1 << 28
"""Most bytes of partial sums in a route's split-K workspace."""
SCRATCH_MAX = 1 << 30
"""Most bytes of any scratch array of a route, such as a copy of an operand."""
INDEX_MAX = (1 << 32) - 1
"""Largest value of the kernels' 32-bit index arithmetic (unsigned)."""
WARP = 32
WARPGROUP = 4 * WARP
"""Threads of a warpgroup, which issue wgmma together (PTX ISA)."""


@dataclass(frozen=True)
class Architecture:
    """A GPU architecture and its limits.

    ``compute``: compute capability, major * 10 + minor; ``isa``: first PTX ISA that has the target;
    ``shared_per_cta`` (with the opt-in limit), ``shared_per_sm``: shared memory, in bytes; the
    other limits count registers and threads.

    Sources: CUDA programming guide, technical specifications per compute capability; for
    architectures newer than sm_90 also NVIDIA's CCCL, ``cuda/__device/arch_traits.h``.
    """

    name: str
    compute: int  # compute capability, major * 10 + minor
    isa: str  # the first PTX ISA that has it (PTX ISA 9.0, release notes)
    shared_per_cta: int  # bytes a CTA may have with the opt-in limit
    shared_per_sm: int
    registers_per_sm: int = 65536
    registers_per_thread: int = 255
    threads_per_cta: int = 1024

    @property
    def target(self) -> str:
        """Compiler target of the architecture: its name, but "sm_90a" for sm_90, whose wgmma needs
        the suffix.
        """
        return f"{self.name}a" if self.compute == 90 else self.name

    def shared_for(self, ctas: int) -> int:
        """Returns the bytes of shared memory that each of ``ctas`` CTAs on an SM may have; CUDA
        reserves 1 KiB for each.
        """
        return min(self.shared_per_cta, self.shared_per_sm // ctas - 1024)


ARCHITECTURES = {
    a.name: a
    for a in (
        Architecture("sm_80", 80, "7.0", 163 << 10, 164 << 10),
        Architecture("sm_86", 86, "7.1", 99 << 10, 100 << 10),
        Architecture("sm_87", 87, "7.4", 163 << 10, 164 << 10),
        Architecture("sm_89", 89, "7.8", 99 << 10, 100 << 10),
        Architecture("sm_90", 90, "8.0", 227 << 10, 228 << 10),
        Architecture("sm_100", 100, "8.6", 227 << 10, 228 << 10),
        Architecture("sm_103", 103, "8.8", 227 << 10, 228 << 10),
        Architecture("sm_110", 110, "9.0", 227 << 10, 228 << 10),
        Architecture("sm_120", 120, "8.7", 99 << 10, 100 << 10),
        Architecture("sm_121", 121, "8.8", 99 << 10, 100 << 10),
    )
}


PTX_TARGETS = {"sm_70": "6.0", "sm_75": "6.3"} | {
    target: a.isa for a in ARCHITECTURES.values() for target in (a.name, a.target)
}
"""PTX ISA that each compiler target of kernels in PTX needs, oldest target first."""


def standing_for(compute: tuple[int, int], shared: int) -> Architecture | None:
    """Returns the architecture whose kernels a device runs: its own, or an older one with the same
    major compute capability.

    ``compute``: the device's compute capability; ``shared``: the most shared memory of a CTA there,
    in bytes. None if no kernel is known to run on it: other generations may lack instructions, and
    their tensor cores may return other bits.
    """
    major, minor = compute
    fitting = (
        a
        for a in ARCHITECTURES.values()
        if a.compute // 10 == major and a.compute % 10 <= minor and a.shared_per_cta <= shared
    )
    return max(fitting, key=lambda a: a.compute, default=None)


def architecture_named(name: str) -> Architecture:
    """Returns the architecture called ``name`` ("sm_90", "sm_90a"); raises OptionError, with all
    known names, for any other.
    """
    for found in ARCHITECTURES.values():
        if name_text("arch", name) in (found.name, found.target):
            return found
    known = ", ".join(ARCHITECTURES)
    close = proposal(name, ARCHITECTURES)
    raise OptionError(f"unknown architecture {name!r}{close}; takes {known} (sm_90a is sm_90)")


def check(holds: bool, name: str, what: str, left: object, right: object) -> None:
    """Raises SpecError with the message "name: what: left vs right" unless ``holds``."""
    if not holds:
        raise SpecError(f"{name}: {what}: {left} vs {right}")


@dataclass(frozen=True)
class Expect:
    """An assertion on a kernel's PTX: it contains the instruction ``opcode``, on architectures from
    ``since`` on.

    No other opcode that matches one of the patterns ``instead_of`` (shell wildcards) may occur.
    """

    opcode: str
    instead_of: tuple[str, ...] = ()
    since: str = "sm_80"


@dataclass(frozen=True)
class KernelSpec(ABC):
    """Base of the kernel specs: frozen dataclasses whose fields fix the source of one kernel."""

    family: ClassVar[str]
    template: ClassVar[str]  # file name
    folder: ClassVar[Path | None] = None
    """Folder of the template if it is not in the package, else None."""
    ptx_since: ClassVar[str] = ""
    """Oldest compiler target, a key of PTX_TARGETS, for which the kernel can be compiled, if its
    template is PTX (``*.ptx.j2``)."""
    legible: ClassVar[bool] = True
    """Whether goldens keep the kernel's PTX as text, for reviewers; not if it has ten thousand
    lines."""
    max_arch: ClassVar[str] = ""
    """Newest architecture that runs the kernel, unless all later ones do; those after sm_90 have no
    wgmma."""
    prepares: ClassVar[bool] = False
    """Whether the kernel only prepares operands for later kernels of a route, which is then named
    for one of those."""
    meanings: ClassVar[Mapping[str, str]] = {
        "contract": "numeric contract, which fixes the bits of the result",
        "dtype": "dtype of the operands",
        "min_arch": "oldest architecture that runs the kernel",
    }
    """Descriptions of the fields, for the ``ptxgen`` command."""

    def check_counts(self, *fields: str) -> None:
        """Raises SpecError if one of the named ``fields`` is less than 1."""
        for what in fields:
            check(getattr(self, what) >= 1, type(self).__name__, what, getattr(self, what), ">= 1")

    def check_choices(self, **legal: Collection[object]) -> None:
        """Raises SpecError if the value of a field is not among its ``legal`` values."""
        for what, values in legal.items():
            found = getattr(self, what)
            check(found in values, type(self).__name__, what, found, values)

    def check_divides(self, what: str, unit: int, extent: int) -> None:
        """Raises SpecError, with the text ``what``, if ``unit`` does not divide ``extent``."""
        check(extent % unit == 0, self.name, what, unit, extent)

    def check_threads(self) -> None:
        """Raises SpecError if a CTA has more threads than ``min_arch`` allows."""
        most = ARCHITECTURES[self.min_arch].threads_per_cta
        check(self.threads <= most, self.name, "threads", self.threads, most)

    def check_resources(self, registers: int, what: str, ctas: int) -> None:
        """Raises SpecError if the kernel exceeds a limit of ``min_arch``: threads, shared memory,
        or registers of a thread with ``ctas`` CTAs on an SM. ``registers``: registers that a thread
        needs; ``what``: their use, for the message.
        """
        self.check_threads()
        arch, used = ARCHITECTURES[self.min_arch], self.shared_bytes
        what_of = f"shared memory on {arch.name}, bytes"
        check(used <= arch.shared_per_cta, self.name, what_of, used, arch.shared_per_cta)
        free = min(arch.registers_per_thread, arch.registers_per_sm // (self.threads * ctas))
        check(registers <= free, self.name, f"registers per thread ({what})", registers, free)

    @property
    @abstractmethod
    def label(self) -> str:
        """Readable part of the name: dtype, layout, tile. Several kernels may share it."""

    @cached_property
    def name(self) -> str:
        """Name and symbol of the kernel: family, label, and a digest of all fields."""
        digest = hashlib.sha256(self.canonical().encode()).hexdigest()
        return f"{self.family}_{self.label}_{digest[:6]}"

    @property
    @abstractmethod
    def dtype(self) -> str:
        """Short name of the operands' dtype: "f32", "bf16" ..."""

    @property
    @abstractmethod
    def contract(self) -> Contract:
        """Contract that fixes the bits of the kernel's results."""

    @property
    def tier(self) -> str:
        """Tier of the contract, "simt" or "tc" (tensor cores)."""
        return self.contract.tier

    @property
    @abstractmethod
    def min_arch(self) -> str:
        """Oldest architecture that runs the kernel, a key of ARCHITECTURES."""

    @property
    @abstractmethod
    def threads(self) -> int:
        """Threads per CTA."""

    @property
    @abstractmethod
    def shared_bytes(self) -> int:
        """Dynamic shared memory per CTA, bytes."""

    @property
    @abstractmethod
    def grid(self) -> Expr:
        """Number of CTAs (grid.x)."""

    @property
    def cost(self) -> KernelCost | None:
        """Formulas of the kernel's work, from which its time is predicted; None in tables whose
        routes are tried in order.
        """
        return None

    def roofline(self, dtype: Hashable) -> Roofline:
        """Returns the operations and bytes from which a lower bound of a problem's time follows,
        for kernels without :attr:`cost`. ``dtype``: dtype of the problem. By default only the bytes
        of the arrays count.
        """
        return Roofline()

    @property
    def scratch(self) -> Mapping[str, Expr]:
        """Bytes of each scratch array that the kernel reads or writes, by the name of its pointer
        parameter.
        """
        return MappingProxyType({})

    @property
    @abstractmethod
    def abi(self) -> Abi:
        """Parameter list of the kernel."""

    @property
    @abstractmethod
    def requires(self) -> Expr:
        """Predicate on the problem's variables under which the kernel is correct."""

    @property
    def context(self) -> Mapping[str, Any]:
        """Variables that the template reads besides ``spec``, by name."""
        return MappingProxyType({})

    @property
    def waits(self) -> bool:
        """Whether the kernel begins with ``griddepcontrol.wait`` (compute capability 9.0 on), so
        that it may be launched before the kernel ahead of it in the stream ends.
        """
        return False

    early_loads: ClassVar[int | None] = None
    """Most bytes that the kernel's CTAs may load, all together, if it is launched with programmatic
    dependent launch; with more it is launched without. None: no limit. CTAs that start early are
    spread unevenly over the SMs."""

    @property
    def batched(self) -> bool:
        """Whether one launch computes a batch of problems (:attr:`Problem.batch`)."""
        return False

    @property
    def continues(self) -> bool:
        """Whether the kernel can start its accumulators from the result's old values; others add
        these at the end. All kernels of a table can, or none.
        """
        return False

    def launched(
        self, ctas: int, batch: tuple[int, int], environment: Mapping[str, int]
    ) -> tuple[int, int, int]:
        """Returns the launch grid of a batch whose problems have ``ctas`` CTAs (:attr:`grid`) each.

        ``environment``: the variables of one problem, and SMS, the SMs of the device.
        """
        return (ctas, *batch)

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        """Bounds of the kernel's 32-bit index arithmetic: (expression in its source, largest value,
        limit).

        The prover shows that they hold wherever ``requires`` does; offsets into operands are
        64-bit.
        """
        return ()

    @property
    def expects(self) -> tuple[Expect, ...]:
        """Instructions that the PTX must contain; goldens are checked for them."""
        return (Expect("griddepcontrol.wait", since="sm_90"),) if self.waits else ()

    def runs_on(self, arch: str) -> bool:
        """Returns whether the kernel runs on the architecture ``arch`` (a key of ARCHITECTURES)."""
        found = ARCHITECTURES[arch]
        newest = ARCHITECTURES[self.max_arch or arch]
        within = ARCHITECTURES[self.min_arch].compute <= found.compute <= newest.compute
        return within and self.shared_bytes <= found.shared_per_cta

    def takes(self, dtype: Hashable) -> bool:
        """Returns whether :meth:`of` has a kernel for ``dtype``, a dtype of the route table."""
        return True

    def seen(self, dtype: Hashable) -> Hashable:
        """Returns the part of a table's ``dtype`` on which the kernel depends, the argument of
        :meth:`of`. That is ``dtype`` itself. For a quantized weight it is the dtype of x, since the
        kernel reads a dense copy of the weight.
        """
        return dtype.dtype if isinstance(dtype, Quantized) else dtype

    def of(self, dtype: Hashable) -> Self:
        """Returns this kernel for another dtype, or for whatever else identifies the computation
        (:attr:`ptxgen.spec.problem.Problem.dtype`). Predicates, grid and scratch stay the same.
        """
        return self if dtype == self.dtype else replace(cast(Any, self), dtype=dtype)

    @abstractmethod
    def describe(self) -> tuple[str, ...]:
        """Returns the comment lines at the top of the generated source."""

    def described(self, *details: str) -> tuple[str, ...]:
        """Returns header lines for the source: the step of the contract, ``details``, the predicate
        and the grid.
        """
        step = f"contract {self.contract}: {self.contract.step}"
        return (step, *details, f"requires {self.requires}", f"grid {self.grid}")

    @property
    def sizes(self) -> str:
        """Header text with the threads and the shared memory of a CTA."""
        return f"{self.threads} threads, {self.shared_bytes} bytes of shared memory"

    def canonical(self) -> str:
        """Returns the spec as sorted JSON, for digests: the class, and all fields that are not
        None.
        """
        given = ((each.name, getattr(self, each.name)) for each in fields(self))
        found: dict[str, Any] = {name: value for name, value in given if value is not None}
        found["kind"] = type(self).__name__
        return json.dumps(found, sort_keys=True, separators=(",", ":"), default=str)
