"""What all kernel families share: problem variables, limits, the base of specs, and routes.

Problem variables, all integers, of the product ``C[M, N] = A[M, K] @ B[K, N]``:

=================  =====================================================================
``M, N, K``        rows, columns, reduction length; 1 .. 2^31 - 1
``CHUNK, CHUNKS``  chunk length of the contract's plan (1 .. K), and ceil(K / CHUNK)
``ALIGN_A/B``      largest of 2, 4, 8, 16 bytes that divides the operand's address and the
                   byte distance of its rows
``SMS``            streaming multiprocessors of the device
=================  =====================================================================
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from ptxgen.errors import SpecError
from ptxgen.expr import Expr, all_of, ceil_div, const, minimum, var
from ptxgen.numerics.contract import CONTRACTS, ITEMSIZE, Contract, M, N

CHUNK, CHUNKS = var("CHUNK"), var("CHUNKS")
ALIGN_A, ALIGN_B = var("ALIGN_A"), var("ALIGN_B")
SMS = var("SMS")

PARTIAL_SUMS = CHUNKS * M * N
"""Elements of the workspace that a split through memory needs, f32."""

DIM_MAX = (1 << 31) - 1
"""Largest M, N or K."""
GRID_MAX = (1 << 31) - 1
"""Largest grid.x (CUDA programming guide, compute capabilities)."""
WORKSPACE_MAX = 1 << 28
"""Cap on the scratch of one launch, bytes."""
INDEX_MAX = (1 << 32) - 1
"""Largest value of the kernels' 32-bit index arithmetic (unsigned)."""

ACCUMULATE, BIAS_F32, OUT_F32, ACTIVATION_SHIFT = 1, 2, 4, 8
"""The kernels' flags: add to what is there; bias and result are f32 where operands have 16 bits
(kernels of f32 ignore these two); from bit 8 on the activation's code."""

LAYOUTS = ("NN", "NT", "TN", "TT")
WARP = 32


@dataclass(frozen=True)
class Architecture:
    """Per-architecture limits (CUDA programming guide, technical specifications)."""

    name: str
    compute: int  # compute capability, major * 10 + minor
    shared_per_cta: int  # bytes a CTA may have with the opt-in limit
    shared_per_sm: int
    registers_per_sm: int = 65536
    registers_per_thread: int = 255
    threads_per_cta: int = 1024


ARCHITECTURES = {
    a.name: a
    for a in (
        Architecture("sm_80", 80, 163 << 10, 164 << 10),
        Architecture("sm_86", 86, 99 << 10, 100 << 10),
        Architecture("sm_89", 89, 99 << 10, 100 << 10),
        Architecture("sm_90", 90, 227 << 10, 228 << 10),
        Architecture("sm_120", 120, 99 << 10, 100 << 10),
    )
}


def check(holds: bool, name: str, what: str, left: object, right: object) -> None:
    """Raises SpecError with both sides of a failed invariant."""
    if not holds:
        raise SpecError(f"{name}: {what}: {left} vs {right}")


@dataclass(frozen=True)
class MapBox:
    """The box that one tensor-map parameter of a kernel copies of an operand as it is stored.

    ``inner`` elements along the contiguous dimension, ``outer`` rows; ``swizzle``: width in
    bytes of the pattern in shared memory (0, 32, 64 or 128). What is outside the operand is
    read as zeros.
    """

    operand: str
    """"a" or "b"."""
    inner: int
    outer: int
    swizzle: int = 128


@dataclass(frozen=True)
class Expect:
    """That a kernel's PTX has the instruction ``opcode``, on architectures from ``since`` on.

    No other opcode that matches one of the patterns ``instead_of`` (as file names do) may stand
    there in its place.
    """

    opcode: str
    instead_of: tuple[str, ...] = ()
    since: str = "sm_80"


@dataclass(frozen=True)
class KernelSpec(ABC):
    """What every generated kernel has, whatever its family."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Content-derived name, also the kernel's symbol."""

    family: ClassVar[str]
    template: ClassVar[str]  # file name

    @property
    @abstractmethod
    def dtype(self) -> str:
        """The operands' dtype, as in contract.DTYPES: "f32", "bf16" or "f16"."""

    @property
    @abstractmethod
    def contract(self) -> Contract:
        """The contract whose bits it returns."""

    @property
    def tier(self) -> str:
        """The tier of that contract."""
        return next(tier for tier, contract in CONTRACTS.items() if contract == self.contract)

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
    def workspace(self) -> Expr:
        """Scratch, bytes (partial sums for a following reduce kernel)."""
        return const(0)

    @property
    @abstractmethod
    def requires(self) -> Expr:
        """Where the kernel is correct."""

    @property
    def tensor_maps(self) -> tuple[MapBox, ...]:
        """The tensor maps that follow the other parameters, in order."""
        return ()

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        """The 32-bit quantities that the kernel computes: (as in its source, largest value, limit).

        Proved to hold wherever ``requires`` does; offsets into operands are 64-bit.
        """
        return ()

    @property
    def expects(self) -> tuple[Expect, ...]:
        """What its PTX must have, however it is written; goldens are held to it."""
        return ()

    def runs_on(self, arch: str) -> bool:
        """Whether the kernel fits the architecture ``arch`` (a key of ARCHITECTURES)."""
        return (
            ARCHITECTURES[arch].compute >= ARCHITECTURES[self.min_arch].compute
            and self.shared_bytes <= ARCHITECTURES[arch].shared_per_cta
        )

    @abstractmethod
    def describe(self) -> tuple[str, ...]:
        """The header lines of the generated source."""

    def canonical(self) -> str:
        """Canonical serialisation: sorted JSON of the class and all fields."""
        fields: dict[str, Any] = asdict(self)
        fields["kind"] = type(self).__name__
        return json.dumps(fields, sort_keys=True, separators=(",", ":"), default=str)


class GemmSpec(KernelSpec):
    """A kernel that computes output tiles of BM x BN, whole or chunk by chunk of the reduction."""

    bm: int
    bn: int
    split: str  # how chunks are told apart; "workspace": their sums go there
    persistent: bool  # whether CTAs walk over the tiles

    @property
    def tiles(self) -> Expr:
        """Output tiles."""
        return ceil_div(M, self.bm) * ceil_div(N, self.bn)

    @property
    def work(self) -> Expr:
        """Pieces of work that CTAs share."""
        return self.tiles * CHUNKS if self.split == "workspace" else self.tiles

    @property
    def grid(self) -> Expr:
        return minimum(self.tiles, GRID_MAX) if self.persistent else self.work

    @property
    def workspace(self) -> Expr:
        return PARTIAL_SUMS * ITEMSIZE["f32"] if self.split == "workspace" else const(0)


@dataclass(frozen=True)
class Route:
    """One entry of a route table: the kernels to launch, in order, and when.

    ``kernels`` is a GEMM kernel, followed by a reduce kernel if the first writes partial sums.
    ``prefer`` says where this route is the fastest choice, as measured; ``reason`` says so
    for people. The first route of a table whose ``requires`` and ``prefer`` hold is taken.
    """

    kernels: tuple[KernelSpec, ...]
    prefer: Expr
    reason: str

    def __post_init__(self) -> None:
        check(len(self.kernels) in (1, 2), "Route", "launches", len(self.kernels), "1 or 2")
        check(self.prefer.boolean, self.name, "prefer is a predicate", self.prefer, "boolean")

    @property
    def name(self) -> str:
        """The first kernel's name."""
        return self.kernels[0].name

    @property
    def requires(self) -> Expr:
        """Where all kernels of the route are correct."""
        return all_of(kernel.requires for kernel in self.kernels)

    @property
    def workspace(self) -> Expr:
        """Scratch that the route needs, bytes."""
        return self.kernels[0].workspace
