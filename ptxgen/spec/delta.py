"""Recurrences of matrix states (linear attention), contract ``delta/1``: loops over tokens.

============  =====================================================================================
``PAIRS``     sequences times heads
``COLS``      columns of a state, 1 .. 256
``TOKENS``    tokens of a sequence
``SMS``       streaming multiprocessors of the device
============  =====================================================================================

States are contiguous and aligned to 16 bytes. Further scalar parameters are the strides of the
other arrays, in elements, and :data:`SIZES`.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, cast

from ptxgen.cost.kernel import Roofline
from ptxgen.expr import Expr, ceil_div, var
from ptxgen.numerics import delta as numerics
from ptxgen.numerics.contract import Contract
from ptxgen.numerics.signature import DIM_MAX
from ptxgen.spec import formula as cuda
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import ARCHITECTURES, GRID_MAX, INDEX_MAX, WARP, Expect, KernelSpec
from ptxgen.spec.space import SIZE, SMS_MAX, Between, Space

PAIRS, COLS, TOKENS, SMS = var("PAIRS"), var("COLS"), var("TOKENS"), var("SMS")
NARROWEST = 16
"""Fewest columns of a state that a CTA computes."""
SPACE = Space(
    "delta",
    (
        ("PAIRS", SIZE),
        ("COLS", Between(1, numerics.COLUMNS_MAX)),
        ("TOKENS", Between(0, DIM_MAX)),
        ("SMS", Between(1, SMS_MAX)),
    ),
    within=PAIRS * ceil_div(COLS, NARROWEST) <= GRID_MAX,
)
DTYPES = ("bf16", "f16", "f32")
G_F32, BETA_F32 = 1, 2
"""Bits of ``flags``: ``g`` is f32, ``beta`` is f32, where values have 16 bits."""
SIZES = ("tokens", "heads", "group", "rows", "cols", "flags")
"""Names of the kernels' 32-bit scalar parameters; ``group``: heads that share a query and a key."""
STAGE = 8
"""Most tokens of a stage in shared memory."""
LISTED = 128
"""Rows of a state in the representative kernels (goldens, proofs, ``ptxgen list``)."""


@dataclass(frozen=True)
class Form:
    """Variant of a delta kernel. ``dtype``: dtype of queries, keys and values; ``delta_rule``:
    whether the recurrence has the delta rule, else it is the same without it (SSD); ``row_groups``:
    number of groups of :data:`ptxgen.numerics.delta.GROUP` rows of a state, one a lane.
    """

    dtype: str
    delta_rule: bool
    row_groups: int

    def __str__(self) -> str:
        rule = "rule" if self.delta_rule else "ssd"
        return f"{rule}_{self.dtype}_{self.row_groups * numerics.GROUP}"


def strides(names: Iterable[str]) -> tuple[Param, ...]:
    """Returns the stride parameters of each array along sequences, tokens and heads, in
    elements.
    """
    along = ("batch", "row", "head")
    return tuple(Param(f"{name}_{each}", "i64") for name in names for each in along)


@dataclass(frozen=True)
class DeltaSpec(KernelSpec):
    """A kernel that loops over the tokens of a head and keeps its state in registers.

    A CTA computes some columns of the state, which has ``row_groups`` groups of
    :data:`ptxgen.numerics.delta.GROUP` rows. A thread keeps one group of ``columns_per_thread``
    columns. There are as many threads as rows, so that each thread copies one element of a token's
    query and key to shared memory. ``delta_rule``: whether the recurrence has the delta rule.
    """

    columns_per_thread: int
    delta_rule: bool = True
    row_groups: int = numerics.groups(LISTED)
    dtype: str = "bf16"
    min_arch: str = "sm_80"
    contract: Contract = numerics.DELTA

    family: ClassVar[str] = "delta"
    template: ClassVar[str] = "delta/forward.cu.j2"
    legible: ClassVar[bool] = False
    backwards: ClassVar[bool] = False
    """Whether the kernel loops from the last token to the first."""
    G_F32: ClassVar[int] = G_F32
    BETA_F32: ClassVar[int] = BETA_F32
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "columns_per_thread": "columns of the state that a thread computes",
        "delta_rule": "whether the delta rule subtracts the state's answer from each value",
        "row_groups": "groups of 16 rows of the state; one lane has one group",
    }

    def __post_init__(self) -> None:
        self.check_choices(dtype=DTYPES, min_arch=[*ARCHITECTURES], columns_per_thread=(1, 2, 4))
        self.check_choices(row_groups=(2, 4, 8, 16))

    def of(self, dtype: Hashable) -> DeltaSpec:
        form = Form(dtype, True, self.row_groups) if isinstance(dtype, str) else cast(Form, dtype)
        return replace(self, **asdict(form))

    @property
    def form(self) -> Form:
        """Variant that the kernel is compiled for (:class:`Form`), made of its own fields."""
        return Form(self.dtype, self.delta_rule, self.row_groups)

    @property
    def label(self) -> str:
        return f"{self.form}_{self.width}"

    @property
    def threads(self) -> int:
        return self.row_groups * numerics.GROUP

    @property
    def across(self) -> int:
        """Columns of the state that a warp computes."""
        return WARP // self.row_groups * self.columns_per_thread

    @property
    def width(self) -> int:
        """Columns of the state that a CTA computes."""
        return self.threads // WARP * self.across

    @property
    def stage(self) -> int:
        """Tokens of a stage in shared memory."""
        return STAGE if self.row_groups <= STAGE else STAGE // 2

    @property
    def shared_bytes(self) -> int:
        return 0

    @property
    def context(self) -> Mapping[str, Any]:
        found = {
            "storage": cuda.STORAGE,
            "numerics": sys.modules[numerics.__name__],
            "formula": numerics.DECAY,
            "functions": cuda.functions,
        }
        return MappingProxyType(found)

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the input arrays with a number for each token and row of the state, whose rows
        are the key dimension: queries "q" and keys "k".
        """
        return ("q", "k")

    @property
    def values(self) -> Mapping[str, str]:
        """Dtypes of the input arrays with a value for each token and column of the state, by
        name.
        """
        return MappingProxyType({"v": self.dtype})

    @property
    def also(self) -> tuple[str, ...]:
        """Names of the optional input arrays, in f32."""
        return ("state_in",) if self.delta_rule else ("skip", "state_in")

    @property
    def written(self) -> tuple[str, ...]:
        """Names of the optional output arrays: the last state, and the values that the delta rule
        writes to states.
        """
        return ("state_out", "w") if self.delta_rule else ("state_out",)

    @property
    def brought(self) -> tuple[Param, ...]:
        """Pointer parameters of the input arrays that have a value for each token: queries, keys,
        values and the like, then ``g`` and ``beta``.
        """
        found = (*((n, self.dtype) for n in self.keys), *self.values.items())
        pointers = (ptr(n, f"const {cuda.STORAGE[dtype]}*") for n, dtype in found)
        return (*pointers, *(ptr(n, "const void*") for n in ("g", "beta")))

    @property
    def abi(self) -> Abi:
        element = cuda.STORAGE[self.dtype]
        return Abi(
            (
                *self.brought,
                *(ptr(n, "const float*", optional=True) for n in self.also),
                ptr("out", f"{element}*"),
                *(ptr(n, "float*", optional=True) for n in self.written),
                *strides((*(p.name for p in self.brought), "out")),
                *(Param(n, "u32") for n in SIZES),
                Param("scale", "f32"),
            )
        )

    @property
    def grid(self) -> Expr:
        return PAIRS * ceil_div(COLS, self.width)

    @property
    def requires(self) -> Expr:
        return self.grid <= GRID_MAX

    def roofline(self, dtype: Hashable) -> Roofline:
        each = self.row_groups * numerics.GROUP * (4 if self.delta_rule else 3)
        return Roofline(TOKENS * PAIRS * COLS * each)

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        found = (
            ("first + STAGE, and what is in it", TOKENS + 2 * self.stage),
            ("columns of the last CTA", COLS + self.width),
        )
        return tuple((text, value, INDEX_MAX) for text, value in found)

    @property
    def expects(self) -> tuple[Expect, ...]:
        return (Expect("fma.rn.f32", ("fma.*", "*mma.*")), *super().expects)

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"{self.form}: {self.width} columns of a head, {self.columns_per_thread} of a thread; "
            f"stages of {self.stage} tokens; CTAs {self.grid}",
        )


PARTS = ("descend", "ascend")
SUMS_BYTES = 1 << 14
"""Most shared memory, in bytes, for partial sums over columns of one array. It limits the tokens of
a stage."""


@dataclass(frozen=True)
class DeltaGradSpec(DeltaSpec):
    """A gradient kernel. ``part``: "descend" (loops from the last token to the first with the
    state's gradient) or "ascend" (from the first to the last with the state). A CTA has some
    columns of the state; of a sum over columns it computes only that part.
    """

    columns_per_thread: int = numerics.QUAD
    part: str = "descend"
    contract: Contract = numerics.DELTA_GRAD

    family: ClassVar[str] = "delta_grad"
    template: ClassVar[str] = "delta/gradient.cu.j2"
    meanings: ClassVar[Mapping[str, str]] = {
        **DeltaSpec.meanings,
        "part": "pass over tokens: descend (last to first) or ascend (first to last)",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_choices(part=PARTS, columns_per_thread=(numerics.QUAD,))

    @property
    def label(self) -> str:
        return f"{self.part}_{self.form}"

    @property
    def stage(self) -> int:
        each = self.threads // WARP * self.threads * 4
        return min(STAGE, SUMS_BYTES // each)

    @property
    def backwards(self) -> bool:  # type: ignore[override]
        return self.part == "descend"

    @property
    def keys(self) -> tuple[str, ...]:
        return ("q", "k") if self.backwards else ("k",)

    @property
    def values(self) -> Mapping[str, str]:
        found = {"dout": self.dtype, "w": "f32" if self.delta_rule else self.dtype}
        return MappingProxyType(
            found | ({"dd": "f32"} if self.delta_rule and not self.backwards else {})
        )

    @property
    def halved(self) -> tuple[tuple[int, int], ...]:
        """Steps of the butterfly sum across lanes, which halves the sums that a lane keeps: pairs
        of shuffle distance, and number of sums after the step.
        """
        lanes = (self.row_groups << i for i in range(5) if self.row_groups << i < WARP)
        return tuple((o, numerics.GROUP >> (i + 1)) for i, o in enumerate(lanes))

    @property
    def sums(self) -> tuple[str, ...]:
        """Names of the output arrays that are sums over columns of the state. A CTA adds up its own
        columns and writes one partial sum.
        """
        if self.backwards:
            return ("dk",)
        return ("dq", "dk") if self.delta_rule else ("dq",)

    @property
    def written(self) -> tuple[str, ...]:
        return ("dd", *self.sums, "state_out") if self.backwards else self.sums

    @property
    def abi(self) -> Abi:
        return Abi(
            (
                *self.brought,
                ptr("state_in", "const float*", optional=True),
                *(ptr(n, "float*", optional=n == "state_out") for n in self.written),
                *strides(p.name for p in self.brought),
                *(Param(n, "u32") for n in SIZES),
                Param("scale", "f32"),
            )
        )

    def roofline(self, dtype: Hashable) -> Roofline:
        each = self.row_groups * numerics.GROUP * (4 if self.backwards else 3)
        each += self.row_groups * numerics.GROUP if self.delta_rule else 0
        return Roofline(TOKENS * PAIRS * COLS * each)
