"""What all kernels share, whatever they compute: architectures, limits and the base of specs."""

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
THREADS_MAX = 1024
"""Largest sizes of a grid and of a block, and most threads of a block (the same table)."""
WORKSPACE_MAX = 1 << 28
"""Cap on partial sums, bytes."""
SCRATCH_MAX = 1 << 30
"""Cap on any scratch memory of a route, bytes: that of copies."""
INDEX_MAX = (1 << 32) - 1
"""Largest value of the kernels' 32-bit index arithmetic (unsigned)."""
WARP = 32
WARPGROUP = 4 * WARP
"""Threads that multiply together by wgmma (PTX ISA)."""


@dataclass(frozen=True)
class Architecture:
    """Per-architecture limits.

    CUDA programming guide, technical specifications per compute capability; what is newer than
    sm_90 also from NVIDIA's CCCL, ``cuda/__device/arch_traits.h``.
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
        """What kernels are compiled for: "sm_90a" has what only sm_90 has, others are named so."""
        return f"{self.name}a" if self.compute == 90 else self.name

    def shared_for(self, ctas: int) -> int:
        """Shared memory, bytes, that each of ``ctas`` on an SM may have; 1 KiB is the system's."""
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
"""What kernels written in PTX are emitted for, oldest first, and the PTX ISA that each needs."""


def standing_for(compute: tuple[int, int], shared: int) -> Architecture | None:
    """The architecture whose kernels a device runs: its own, or an older one of its generation.

    ``compute``: the device's compute capability; ``shared``: the most shared memory of a CTA
    there, in bytes. None if no kernel here is known to run on it: other generations may lack
    instructions, and their tensor cores may return other bits.
    """
    major, minor = compute
    fitting = (
        a
        for a in ARCHITECTURES.values()
        if a.compute // 10 == major and a.compute % 10 <= minor and a.shared_per_cta <= shared
    )
    return max(fitting, key=lambda a: a.compute, default=None)


def architecture_named(name: str) -> Architecture:
    """The architecture of a name such as "sm_90" or "sm_90a". OptionError names those known."""
    for found in ARCHITECTURES.values():
        if name_text("arch", name) in (found.name, found.target):
            return found
    known = ", ".join(ARCHITECTURES)
    close = proposal(name, ARCHITECTURES)
    raise OptionError(f"unknown architecture {name!r}{close}; takes {known} (sm_90a is sm_90)")


def check(holds: bool, name: str, what: str, left: object, right: object) -> None:
    """Raises SpecError with both sides of a failed invariant."""
    if not holds:
        raise SpecError(f"{name}: {what}: {left} vs {right}")


@dataclass(frozen=True)
class Expect:
    """That a kernel's PTX has the instruction ``opcode``, on architectures from ``since`` on.

    No other opcode that matches one of the patterns ``instead_of`` (as file names do) may stand
    there in its place.
    """

    opcode: str
    instead_of: tuple[str, ...] = ()
    since: str = "sm_80"


def _named(field: object) -> str:
    """A field that JSON has no form for, as digests read it."""
    return field.implemented if isinstance(field, Contract) else str(field)


@dataclass(frozen=True)
class KernelSpec(ABC):
    """What every generated kernel has, whatever its family."""

    family: ClassVar[str]
    template: ClassVar[str]  # file name
    folder: ClassVar[Path | None] = None
    """Where the template is, if not in the package."""
    ptx_since: ClassVar[str] = ""
    """Of a template that is PTX (``*.ptx.j2``): the oldest of PTX_TARGETS that takes it."""
    legible: ClassVar[bool] = True
    """Whether its PTX is kept as text for reviewers; what has ten thousand lines nobody reads."""
    prepares: ClassVar[bool] = False
    """Whether it only brings operands into a form that the kernels behind it take. Then these,
    not it, are what a route is known by."""
    meanings: ClassVar[Mapping[str, str]] = {
        "contract": "which bits it returns",
        "dtype": "of the operands",
        "min_arch": "the oldest architecture that runs it",
    }
    """What each field says, for people."""

    def check_counts(self, *fields: str) -> None:
        """Raises SpecError for one of ``fields`` that is less than 1."""
        for what in fields:
            check(getattr(self, what) >= 1, type(self).__name__, what, getattr(self, what), ">= 1")

    def check_choices(self, **legal: Collection[object]) -> None:
        """Raises SpecError for a field that is none of what is ``legal``."""
        for what, those in legal.items():
            found = getattr(self, what)
            check(found in those, type(self).__name__, what, found, those)

    def check_divides(self, what: str, unit: int, extent: int) -> None:
        """Raises SpecError for a ``unit`` that does not divide ``extent``."""
        check(extent % unit == 0, self.name, what, unit, extent)

    def check_threads(self) -> None:
        """Raises SpecError for more threads than a CTA may have."""
        most = ARCHITECTURES[self.min_arch].threads_per_cta
        check(self.threads <= most, self.name, "threads", self.threads, most)

    def check_room(self, registers: int, what: str, ctas: int) -> None:
        """Raises SpecError if ``min_arch`` has no room for it: threads, shared memory, and so many
        ``registers`` of each thread (``what``: for what), where ``ctas`` CTAs share an SM.
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
        """What people know it by: dtype, layout, tile. Kernels may share it."""

    @cached_property
    def name(self) -> str:
        """Its name, also the kernel's symbol: family, label, and a digest of all fields."""
        digest = hashlib.sha256(self.canonical().encode()).hexdigest()
        return f"{self.family}_{self.label}_{digest[:6]}"

    @property
    @abstractmethod
    def dtype(self) -> str:
        """The operands' dtype, by its short name: "f32", "bf16" ..."""

    @property
    @abstractmethod
    def contract(self) -> Contract:
        """The contract whose bits it returns."""

    @property
    def tier(self) -> str:
        """The tier of that contract."""
        return self.contract.tier

    @property
    @abstractmethod
    def min_arch(self) -> str:
        """The oldest architecture that runs it, a key of ARCHITECTURES."""

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
        """CTAs (grid.x)."""

    @property
    def cost(self) -> KernelCost | None:
        """What it has to do; None where routes are taken in order."""
        return None

    def roofline(self, dtype: Hashable) -> Roofline:
        """What routes that are known by it do for problems of a dtype, where they are taken in
        order. By default they read and write their arrays, and compute next to nothing.
        """
        return Roofline()

    @property
    def scratch(self) -> Mapping[str, Expr]:
        """Bytes of scratch memory that it writes or reads, by the parameter for its address."""
        return MappingProxyType({})

    @property
    @abstractmethod
    def abi(self) -> Abi:
        """Its parameters."""

    @property
    @abstractmethod
    def requires(self) -> Expr:
        """Where the kernel is correct."""

    @property
    def context(self) -> Mapping[str, Any]:
        """What its template is given by name, besides ``spec``."""
        return MappingProxyType({})

    @property
    def waits(self) -> bool:
        """Whether it waits at its start, from compute capability 9.0 on, for the kernel before it
        in its stream (``griddepcontrol.wait``), and so may be launched ahead of that one's end.
        """
        return False

    early_loads: ClassVar[int | None] = None
    """Bytes that its CTAs together load, up to which it is launched ahead of the end of the kernel
    before it; None: always. CTAs that come while others leave have their SMs in no order."""

    @property
    def batched(self) -> bool:
        """Whether one launch of it computes a batch of problems (:attr:`Problem.batch`)."""
        return False

    @property
    def continues(self) -> bool:
        """Whether it may be told to begin with what the result holds, and not to add that at the
        end. All kernels of a table do, or none.
        """
        return False

    def launched(
        self, ctas: int, batch: tuple[int, int], environment: Mapping[str, int]
    ) -> tuple[int, int, int]:
        """The grid of a batch, of which each problem has ``ctas`` CTAs (:attr:`grid`).

        ``environment``: the variables of one of its problems, and SMS, those of the device.
        """
        return (ctas, *batch)

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        """The 32-bit quantities that the kernel computes: (as in its source, largest value, limit).

        Proved to hold wherever ``requires`` does; offsets into operands are 64-bit.
        """
        return ()

    @property
    def expects(self) -> tuple[Expect, ...]:
        """What its PTX must have, however it is written; goldens are held to it."""
        return (Expect("griddepcontrol.wait", since="sm_90"),) if self.waits else ()

    def runs_on(self, arch: str) -> bool:
        """Whether the kernel fits the architecture ``arch`` (a key of ARCHITECTURES)."""
        return (
            ARCHITECTURES[arch].compute >= ARCHITECTURES[self.min_arch].compute
            and self.shared_bytes <= ARCHITECTURES[arch].shared_per_cta
        )

    def takes(self, dtype: Hashable) -> bool:
        """Whether there is such a kernel for a dtype that its table takes (:meth:`of`)."""
        return True

    def seen(self, dtype: Hashable) -> Hashable:
        """A dtype of the table as the kernel sees it: of products with a quantized weight, kernels
        that read a dense one see the dtype of x alone.
        """
        return dtype.dtype if isinstance(dtype, Quantized) else dtype

    def of(self, dtype: Hashable) -> Self:
        """The same kernel for operands of another dtype, or whatever else says what is computed of
        what (:attr:`ptxgen.spec.problem.Problem.dtype`): of the same predicates, grid and scratch.
        """
        return self if dtype == self.dtype else replace(cast(Any, self), dtype=dtype)

    @abstractmethod
    def describe(self) -> tuple[str, ...]:
        """The header lines of the generated source."""

    def described(self, *told: str) -> tuple[str, ...]:
        """Lines that say ``told`` between the contract's step and where the kernel is correct."""
        step = f"contract {self.contract.implemented}: {self.contract.step}"
        return (step, *told, f"requires {self.requires}", f"grid {self.grid}")

    @property
    def sizes(self) -> str:
        """Words for the threads and the shared memory of a CTA."""
        return f"{self.threads} threads, {self.shared_bytes} bytes of shared memory"

    def canonical(self) -> str:
        """Canonical serialisation: sorted JSON of the class and all fields but those of None."""
        given = ((each.name, getattr(self, each.name)) for each in fields(self))
        found: dict[str, Any] = {name: value for name, value in given if value is not None}
        found["kind"] = type(self).__name__
        return json.dumps(found, sort_keys=True, separators=(",", ":"), default=_named)
