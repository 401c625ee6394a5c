"""Numeric contracts: which bits an operation returns.

A contract is a pure function of the operands' bits and of the problem. Every kernel
states the contract that it implements, and all kernels of one contract return
identical bits; tile, kernel, grid, device, stream and alignment never matter.

The ``fma`` contract, version 3
-------------------------------
For one output element with the operand vectors ``a`` and ``b`` of length K:

1. The reduction index is cut into chunks of ``plan.chunk`` (ascending; the last may be
   short). Each chunk is one chain from +0.0 in f32:
   ``acc = fma_rn(a[k], b[k], acc)`` for each k, ascending; then ``acc = acc + 0.0``.
2. ``total = chunk_0``, then ``total = total + chunk_i`` in f32, ascending.
3. Epilogue, each step one f32 rounding, each only if asked for, in this order:
   ``+ bias[n]``; activation; ``+ out_old``; then round to nearest even to the output dtype.

Inf and subnormals are inside the contract (no flush to zero); any NaN equals any NaN.
An empty reduction (K = 0) gives a total of +0.0. Operands of 16 bits are brought to f32 exactly.

The ``fma64`` contract, version 2
---------------------------------
The same for operands of f64, with f64 wherever ``fma`` says f32; it has no activations yet. On
sm_90, where this was measured, a step of ``mma.sync`` in f64 is such an fma, k's ascending, so that
tensor cores return these bits, too.

The ``tc16`` contract, version 3
--------------------------------
The same for operands of 16 bits on tensor cores, with another chain: a chunk is taken in groups
of 16 (the last filled up with zeros), ``acc = dot16(a[k:k+16], b[k:k+16], acc)`` for each group,
ascending, from +0.0; then ``acc = acc + 0.0``. ``dot16`` is the hardware's own arithmetic
(:data:`TENSOR_CORES`); the order of the 16 products in it does not matter.

A *plan* is the rule that picks the chunk length. It reads K, the length of the reduction, and
nothing else. So an element of ``C[M, N] = A[M, K] @ B[K, N]`` is a function of its row of A, its
column of B and K: rows and columns may be cut, joined and turned without a change of bits. Each
contract has one plan for all its products, :data:`FMA_CHUNKS`, :data:`FMA64_CHUNKS` and
:data:`TC16_CHUNKS`.

:data:`CHAIN`, in all three, cuts nothing, and its chain may begin with what the result holds
instead of +0.0, rather than add it at the end. It may so be continued: the chain over k's up to
any a (``tc16``: any multiple of 16), and then one from there over the rest, is the chain over all.
The ``+ 0.0`` between the two changes no bit. Chains from -0.0 and from +0.0 differ in nothing but
the sign of a zero, and not any more once a product that is not zero has been added; what is left
of that sign, the last ``+ 0.0`` takes away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ptxgen.errors import SpecError
from ptxgen.expr import Expr, ceil_div, const, select, var
from ptxgen.numerics.dtype import DTYPES as DTYPES  # re-exported: most users want both
from ptxgen.numerics.dtype import ITEMSIZE as ITEMSIZE

ACTIVATIONS = ("none", "relu", "gelu", "gelu_tanh", "silu")
"""Epilogue activations; the index is the code that kernels receive."""


M, N, K = var("M"), var("N"), var("K")


@dataclass(frozen=True)
class Contract:
    """The arithmetic of one reduction step, and its version.

    A change of bits is a new version, a line in CHANGELOG.md and new goldens.
    """

    name: str
    version: int
    step: str
    tier: str
    """Tier whose kernels implement it."""
    accumulator: str = "f32"
    """The dtype of chains and partial sums."""
    activations: bool = True
    """Whether an epilogue may have an activation."""

    def __str__(self) -> str:
        return f"{self.name}/{self.version}"


FMA = Contract("fma", 3, "acc = fma_rn(a[k], b[k], acc), k ascending", "simt")
FMA64 = Contract(
    "fma64",
    2,
    "acc = fma_rn(a[k], b[k], acc) in f64, k ascending",
    "simt",
    accumulator="f64",
    activations=False,
)
TC16 = Contract("tc16", 3, "acc = dot16(a[k:k+16], b[k:k+16], acc), k ascending", "tc")
COPY = Contract("copy", 1, "every bit as it is", "any")
"""The contract of kernels that only move numbers: they serve beside those of any other."""
CONTRACTS = {
    "simt": {"f32": FMA, "f64": FMA64, "bf16": FMA, "f16": FMA},
    "tc": {"bf16": TC16, "f16": TC16},
}
"""The contract of products by tier and dtype of the operands."""
TIERS: dict[str, tuple[str, ...]] = {tier: tuple(of) for tier, of in CONTRACTS.items()}
"""The dtypes that each tier has kernels for."""
AUTO_TIER = {dtype: "simt" for dtype in TIERS["simt"]} | {dtype: "tc" for dtype in TIERS["tc"]}
"""The tier that ``tier="auto"`` stands for, by dtype."""


@dataclass(frozen=True)
class TensorCore:
    """Arithmetic by which tensor cores add 16 products of bf16 or f16 to an f32 accumulator.

    In steps of ``terms`` products, ascending: the products and the accumulator are aligned to
    the largest exponent among them and ``floor``, each cut towards zero to ``bits`` fractional
    bits, summed exactly, and the sum is cut towards zero to f32.
    """

    terms: int
    bits: int
    floor: int
    """The exponent that zeros count as."""
    source: str
    measured: bool
    """Whether the bits were compared with this hardware here."""


_MMA_SIM = "MMA-Sim, arXiv 2511.10909"
TENSOR_CORES = {
    "sm_80": TensorCore(8, 24, -126, _MMA_SIM, measured=False),
    "sm_86": TensorCore(8, 24, -126, _MMA_SIM, measured=False),
    "sm_87": TensorCore(8, 24, -126, f"as sm_80: {_MMA_SIM}", measured=False),
    "sm_89": TensorCore(8, 24, -126, _MMA_SIM, measured=False),
    "sm_90": TensorCore(16, 25, -133, f"H200; {_MMA_SIM}", measured=True),
    "sm_100": TensorCore(16, 25, -126, _MMA_SIM, measured=False),
    "sm_103": TensorCore(16, 25, -126, f"as sm_100: {_MMA_SIM}", measured=False),
    "sm_110": TensorCore(16, 25, -126, f"as sm_100: {_MMA_SIM}", measured=False),
    "sm_120": TensorCore(16, 25, -126, _MMA_SIM, measured=False),
    "sm_121": TensorCore(16, 25, -126, f"as sm_120: {_MMA_SIM}", measured=False),
}
"""The arithmetic of one ``dot16`` by architecture."""


@dataclass(frozen=True)
class Plan:
    """Rule by which a reduction is cut into chunks.

    ``chunk`` is the chunk length as an expression over ``K`` alone, which is checked here; a value
    of at least K means one chain. ``continued``: its (only) chain begins with the old contents
    of the result.
    """

    name: str
    chunk: Expr
    continued: bool = False

    def __post_init__(self) -> None:
        extra = self.chunk.variables() - {"K"}
        if extra:
            raise SpecError(f"plan {self.name!r} reads {sorted(extra)}, but may read K alone")

    def chunk_length(self, k: int) -> int:
        """The chunk length of a reduction of ``k``, between 1 and max(k, 1)."""
        chunk: int = self.chunk.evaluate({"K": max(k, 1)})
        return max(1, min(k, chunk))

    def chunks(self, k: int) -> int:
        """The number of chunks (0 for an empty reduction)."""
        return -(-k // self.chunk_length(k))

    def environment(self, values: Mapping[str, int]) -> dict[str, int]:
        """``values`` of problem variables, among them K, with their CHUNK and CHUNKS."""
        k = values["K"]
        return {**values, "CHUNK": self.chunk_length(k), "CHUNKS": self.chunks(k)}


DEFAULT_PLAN = "chunks"
"""The name of the plan of products that ask for no other."""


def _equal(count: Expr, unit: int) -> Expr:
    """The length of ``count`` equal chunks, rounded up to a multiple of ``unit``, so that chunks
    start on aligned vectors.
    """
    return ceil_div(ceil_div(K, count), unit) * unit


FMA_CHUNKS = Plan(DEFAULT_PLAN, select(K <= 2048, K, _equal(ceil_div(K, 1024), 16)))
"""One chunk up to K = 2048; beyond, equal chunks of at most 1024, rounded up to 16."""

FMA64_CHUNKS = Plan(DEFAULT_PLAN, select(K < 2048, K, _equal(const(4), 16)))
"""One chunk below K = 2048; from there on four, one for each CTA of a cluster."""

TC16_CHUNKS = Plan(DEFAULT_PLAN, select(K <= 4096, K, _equal(ceil_div(K, 3072), 128)))
"""One chunk up to K = 4096; beyond, equal chunks of at most 3072, rounded up to 128."""

CHAIN = Plan("chain", K, continued=True)
"""One chain for every K; it may continue the chain of an earlier call."""

PLANS = {
    FMA.name: {plan.name: plan for plan in (FMA_CHUNKS, CHAIN)},
    FMA64.name: {plan.name: plan for plan in (FMA64_CHUNKS, CHAIN)},
    TC16.name: {plan.name: plan for plan in (TC16_CHUNKS, CHAIN)},
}
"""The plans of each contract by name."""


@dataclass(frozen=True)
class Product:
    """An operation's form as the product ``C[M, N] = A . B``.

    ``layout``: storage of A and B, row-major: "N" is [M, K] (A) or [K, N] (B), "T" the
    transpose. ``dims``: which of the operation's own dimensions are the product's M, N, K.
    ``operands``: which of the operation's two arguments, in order, are A and B.
    """

    layout: str
    dims: tuple[str, str, str]
    operands: tuple[int, int] = (0, 1)


@dataclass(frozen=True)
class Operation:
    """An operation of the GEMM triad, and its product per weight layout.

    ``asked_plans``: plans that a call asks for instead of :data:`DEFAULT_PLAN`, by an option of the
    same name.
    """

    name: str
    arguments: tuple[str, str]
    products: Mapping[str, Product]
    asked_plans: tuple[str, ...] = ()

    @property
    def plan_names(self) -> tuple[str, ...]:
        """Names of all plans that it may have."""
        return (DEFAULT_PLAN, *self.asked_plans)

    def plan(self, contract: Contract, name: str | None = None) -> Plan:
        """The plan under a contract; ``name``: that of a plan other than the default."""
        return PLANS[contract.name][name or DEFAULT_PLAN]

    def asked(self, options: Mapping[str, Any]) -> str:
        """The name of the plan of a call with these options."""
        return next((name for name in self.asked_plans if options.get(name)), DEFAULT_PLAN)


OPERATIONS = {
    o.name: o
    for o in (
        Operation(
            "linear",
            ("x", "w"),
            {"kn": Product("NN", ("M", "N", "K")), "nk": Product("NT", ("M", "N", "K"))},
        ),
        Operation(
            "linear_dgrad",
            ("dy", "w"),
            {"kn": Product("NT", ("M", "K", "N")), "nk": Product("NN", ("M", "K", "N"))},
        ),
        Operation(
            "linear_wgrad",
            ("x", "dy"),
            {
                "kn": Product("TN", ("K", "N", "M")),
                "nk": Product("TN", ("N", "K", "M"), operands=(1, 0)),
            },
            asked_plans=("chain",),
        ),
        Operation(
            "matmul",
            ("a", "b"),
            {name: Product(name.upper(), ("M", "N", "K")) for name in ("nn", "nt", "tn", "tt")},
        ),
    )
}
"""The operations by name; ``products`` is keyed by the layout argument ("kn", "nk"; for
``matmul`` by the storage of a and b, "nn" .. "tt")."""
