"""Numeric contracts: which bits an operation returns.

A contract is a pure function of the operands' bits and of the problem. Every kernel
states the contract that it implements, and all kernels of one contract return
identical bits; tile, kernel, grid, device, stream and alignment never matter.

The ``fma`` contract, version 3
-------------------------------
For one output element with the operand vectors ``a`` and ``b`` of length K:

1. The reduction index is split into chunks of ``plan.chunk`` (ascending; the last may be
   short). Each chunk is one chain from +0.0 in f32:
   ``acc = fma_rn(a[k], b[k], acc)`` for each k, ascending; then ``acc = acc + 0.0``.
2. ``total = chunk_0``, then ``total = total + chunk_i`` in f32, ascending.
3. Optional epilogue steps, each one f32 rounding, in this order: ``+ bias[n]``; activation;
   ``+ out_old``. Then one rounding to nearest even to the output dtype.

Inf and subnormals are inside the contract (no flush to zero); any NaN equals any NaN.
An empty reduction (K = 0) gives a total of +0.0. 16-bit operands are converted to f32, exactly.

The ``fma64`` contract, version 2
---------------------------------
Contract ``fma`` with f64 in place of f32, operands too, and without activations. On sm_90, where
this was measured, a step of ``mma.sync`` in f64 is a chain of such fma, k ascending, so tensor
cores return these bits, too.

The ``tc16`` contract, version 3
--------------------------------
Contract ``fma`` for 16-bit operands on tensor cores, with another chain: a chunk is processed in
groups of 16 (the last padded with zeros), ``acc = dot16(a[k:k+16], b[k:k+16], acc)`` for each
group, ascending, from +0.0; then ``acc = acc + 0.0``. ``dot16`` is the hardware's own arithmetic
(:data:`TENSOR_CORES`); the order of the 16 products in it does not matter.

A *plan* is the rule that gives the chunk length. It reads K, the length of the reduction, and
nothing else. So an element of ``C[M, N] = A[M, K] @ B[K, N]`` is a function of its row of A, its
column of B and K: splitting, concatenating or transposing products changes no bit. Each contract
has one plan for all its products: :data:`FMA_CHUNKS`, :data:`FMA64_CHUNKS`, :data:`TC16_CHUNKS`.

All three also have the plan :data:`CHAIN`: one chunk, whose chain may start from the old contents
of the result instead of adding them at the end. Such a chain can be continued: one over k < a
(``tc16``: a multiple of 16), then one from its result over k >= a, give the bits of one over all k.
The ``+ 0.0`` between them changes no bit: chains from -0.0 and +0.0 differ only in the sign of a
zero, and only until a nonzero product is added; the last ``+ 0.0`` removes that sign.
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
    """A numeric contract: the arithmetic of one reduction step, and its version.

    A change of bits needs a new version, a line in CHANGELOG.md and new goldens.
    """

    name: str
    version: int
    step: str
    tier: str
    """Tier of the kernels that implement the contract: "simt", "tc", "f64" or "any"."""
    accumulator: str = "f32"
    """Dtype of the contract's chains and partial sums, short."""
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
"""Contract of kernels that only copy elements, which routes of any contract may include."""
CONTRACTS = {
    "simt": {"f32": FMA, "f64": FMA64, "bf16": FMA, "f16": FMA},
    "tc": {"bf16": TC16, "f16": TC16},
}
"""Contracts of matrix products: tier to operand dtype (short) to contract."""
TIERS: dict[str, tuple[str, ...]] = {tier: tuple(of) for tier, of in CONTRACTS.items()}
"""Operand dtypes (short) of matrix products that each tier supports."""
AUTO_TIER = {dtype: "simt" for dtype in TIERS["simt"]} | {dtype: "tc" for dtype in TIERS["tc"]}
"""Tier that ``tier="auto"`` selects for a matrix product, by operand dtype (short)."""


@dataclass(frozen=True)
class TensorCore:
    """Arithmetic by which tensor cores add 16 products of bf16 or f16 to an f32 accumulator.

    The 16 products are added in steps of ``terms``, ascending. In a step the products and the
    accumulator are aligned to the largest exponent among them and ``floor``, each truncated to
    ``bits`` fractional bits and summed exactly; the sum is truncated to f32.
    """

    terms: int
    bits: int
    floor: int
    """Exponent of zero terms, and the least exponent that terms are aligned to."""
    source: str
    measured: bool
    """Whether the model was compared with this hardware, and not only taken from ``source``."""


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
"""Models of the tensor cores' 16-term dot product, by architecture."""


@dataclass(frozen=True)
class Plan:
    """Rule that splits a reduction of length K into chunks.

    ``chunk`` is the chunk length, an expression over ``K`` alone (SpecError for others); a value of
    at least K means one chunk. ``continued``: whether the only chain may start from the old
    contents of the result.
    """

    name: str
    chunk: Expr
    continued: bool = False

    def __post_init__(self) -> None:
        extra = self.chunk.variables() - {"K"}
        if extra:
            raise SpecError(f"plan {self.name!r} reads {sorted(extra)}, but may read K alone")

    def chunk_length(self, k: int) -> int:
        """Returns the chunk length of a reduction of length ``k``, between 1 and max(k, 1)."""
        chunk: int = self.chunk.evaluate({"K": max(k, 1)})
        return max(1, min(k, chunk))

    def chunks(self, k: int) -> int:
        """Number of chunks of a reduction of length ``k``; 0 if it is empty."""
        return -(-k // self.chunk_length(k))

    def environment(self, values: Mapping[str, int]) -> dict[str, int]:
        """Returns the problem variables ``values``, K among them, together with CHUNK, the chunk
        length, and CHUNKS, the number of chunks.
        """
        k = values["K"]
        return {**values, "CHUNK": self.chunk_length(k), "CHUNKS": self.chunks(k)}


DEFAULT_PLAN = "chunks"
"""Name of the plan of matrix products, unless an option selects another."""


def _equal(count: Expr, unit: int) -> Expr:
    """Returns the length of chunks, an expression over K, that splits K into ``count`` equal
    chunks. It is rounded up to a multiple of ``unit``, so that chunks start on aligned vectors.
    """
    return ceil_div(ceil_div(K, count), unit) * unit


FMA_CHUNKS = Plan(DEFAULT_PLAN, select(K <= 2048, K, _equal(ceil_div(K, 1024), 16)))
"""Plan of ``fma``: one chunk up to K = 2048; beyond, equal chunks of at most 1024, a multiple of
16."""

FMA64_CHUNKS = Plan(DEFAULT_PLAN, select(K < 2048, K, _equal(const(4), 16)))
"""Plan of ``fma64``: one chunk below K = 2048; from there on four, one per CTA of a cluster."""

TC16_CHUNKS = Plan(DEFAULT_PLAN, select(K <= 4096, K, _equal(ceil_div(K, 3072), 128)))
"""Plan of ``tc16``: one chunk up to K = 4096; beyond, equal chunks of at most 3072, a multiple of
128."""

CHAIN = Plan("chain", K, continued=True)
"""Plan of one chunk for every K, whose chain may continue the chain of an earlier call."""

PLANS = {
    FMA.name: {plan.name: plan for plan in (FMA_CHUNKS, CHAIN)},
    FMA64.name: {plan.name: plan for plan in (FMA64_CHUNKS, CHAIN)},
    TC16.name: {plan.name: plan for plan in (TC16_CHUNKS, CHAIN)},
}
"""Plans of matrix products: contract name to plan name to plan."""


@dataclass(frozen=True)
class Product:
    """Mapping of an operation to the matrix product ``C[M, N] = A . B``.

    ``layout``: storage of A and B, row-major: "N" is [M, K] (A) or [K, N] (B), "T" the
    transpose. ``dims``: names of the operation's dimensions that are the product's M, N, K.
    ``operands``: indices of the operation's arguments that are A and B.
    """

    layout: str
    dims: tuple[str, str, str]
    operands: tuple[int, int] = (0, 1)


@dataclass(frozen=True)
class Operation:
    """A GEMM operation (linear, its gradients, matmul), and its product for each layout.

    ``arguments``: names of its two operands. ``products``: layout to :class:`Product`.
    ``asked_plans``: names of plans that a call selects by a true option of the same name, such as
    ``chain=True``, in place of :data:`DEFAULT_PLAN`.
    """

    name: str
    arguments: tuple[str, str]
    products: Mapping[str, Product]
    asked_plans: tuple[str, ...] = ()

    @property
    def plan_names(self) -> tuple[str, ...]:
        """Names of all plans of the operation, the default one first."""
        return (DEFAULT_PLAN, *self.asked_plans)

    def plan(self, contract: Contract, name: str | None = None) -> Plan:
        """Returns the operation's plan ``name`` under ``contract``; None means the default plan."""
        return PLANS[contract.name][name or DEFAULT_PLAN]

    def asked(self, options: Mapping[str, Any]) -> str:
        """Returns the name of the plan that a call's options select, by default DEFAULT_PLAN."""
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
"""GEMM operations by name; ``products`` is keyed by the layout argument ("kn", "nk"; for
``matmul`` by the storage of a and b, "nn" .. "tt")."""
