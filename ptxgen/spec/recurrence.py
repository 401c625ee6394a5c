"""Linear recurrences along a sequence: contracts ``selective_scan/1``, ``linear_recurrence/1``.

=================  ==============================================================
``BATCH, TOKENS``  sequences, and tokens of each; 1 .. 2^31 - 1
``CHANNELS``       channels of a token; 1 .. 2^31 - 1
``STATES``         states of a channel; 1 .. 256
``SMS``            streaming multiprocessors of the device
=================  ==============================================================

Further scalar parameters: the strides of the input arrays, in elements, along sequences, tokens and
channels (``X_BATCH``, ``X_TOKEN``, ``X_CHANNEL`` and so on), and ``FLAGS``.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from ptxgen.cost.kernel import Roofline
from ptxgen.expr import Expr, ceil_div, var
from ptxgen.numerics import recurrence
from ptxgen.numerics.contract import Contract
from ptxgen.spec import formula as cuda
from ptxgen.spec.abi import Abi, Param, ptr
from ptxgen.spec.base import ARCHITECTURES, GRID_MAX, INDEX_MAX, WARP, Expect, KernelSpec, check
from ptxgen.spec.space import SIZE, SMS_MAX, Between, Space

BATCH, TOKENS, CHANNELS = var("BATCH"), var("TOKENS"), var("CHANNELS")
STATES, SMS = var("STATES"), var("SMS")
_SIZES = (("BATCH", SIZE), ("TOKENS", SIZE), ("CHANNELS", SIZE))
_SMS = ("SMS", Between(1, SMS_MAX))
_CTAS = BATCH * ceil_div(CHANNELS, 4) <= GRID_MAX
"""Predicate that the grid is within CUDA's limit, even with 4 channels a CTA."""
SPACE = Space(
    "selective_scan",
    (*_SIZES, ("STATES", Between(1, recurrence.STATES_MAX)), _SMS),
    within=_CTAS,
)
LINEAR_SPACE = Space("linear_recurrence", (*_SIZES, _SMS), within=_CTAS)
SOFTPLUS, TURNED, OUT_F32 = 1, 2, 4
"""Bits of ``flags``: the steps are softplus of the argument ``delta``; tokens of x are contiguous,
not channels; the result is f32."""
PARTS = ("forward", "backward")
WORK = {"forward": 18, "backward": 50}
"""Approximate instructions of a selective scan for each token and state; a decay takes 12 of
them."""


def stride_params(
    *arrays: str, along: tuple[str, ...] = ("batch", "token", "channel")
) -> tuple[Param, ...]:
    """Returns the stride parameters, in elements, of each array along the dimensions ``along``."""
    return tuple(Param(f"{a}_{each}", "i64") for a in arrays for each in along)


@dataclass(frozen=True)
class RecurrenceSpec(KernelSpec):
    """Base of the kernels of recurrences: a CTA loops over the tokens of some channels. ``part``:
    "forward", or "backward" (gradients, from the last token to the first).
    """

    part: str = "forward"
    dtype: str = "bf16"
    min_arch: str = "sm_80"

    legible: ClassVar[bool] = False
    meanings: ClassVar[Mapping[str, str]] = {
        **KernelSpec.meanings,
        "part": "forward, or backward (gradients, from the last token to the first)",
    }

    def __post_init__(self) -> None:
        name = type(self).__name__
        check(self.part in PARTS, name, "part", self.part, PARTS)
        check(self.min_arch in ARCHITECTURES, name, "min_arch", self.min_arch, [*ARCHITECTURES])

    @property
    def channels(self) -> int:
        """Channels that a CTA computes."""
        raise NotImplementedError

    @property
    def grid(self) -> Expr:
        return BATCH * ceil_div(CHANNELS, self.channels)

    @property
    def requires(self) -> Expr:
        return self.grid <= GRID_MAX

    @property
    def index_bounds(self) -> tuple[tuple[str, Expr, int], ...]:
        return (
            ("begin + TILE", TOKENS + self.prefetched_tokens, INDEX_MAX),
            ("first + CHANNELS", CHANNELS + 2 * self.channels, INDEX_MAX),
        )

    @property
    def prefetched_tokens(self) -> int:
        """Tokens past the last that the kernel's indices may reach, since it loads ahead."""
        raise NotImplementedError

    def describe(self) -> tuple[str, ...]:
        return (
            f"contract {self.contract}: {self.contract.step}",
            f"{self.part}: a CTA walks along the tokens of {self.channels} channels",
        )


@dataclass(frozen=True)
class SelectiveSpec(RecurrenceSpec):
    """A selective scan: ``lanes`` lanes share a channel and keep ``states_per_lane`` of its states
    each.

    Inputs go through shared memory in tiles of ``tile_tokens`` tokens; the next tile is loaded
    meanwhile. The backward kernel recomputes the states of a tile from the state that the forward
    kernel saved at its first token, and keeps them in shared memory.
    """

    lanes: int = 4
    states_per_lane: int = 4
    warps: int = 4
    tile_tokens: int = 16
    contract: Contract = recurrence.SELECTIVE_SCAN

    family: ClassVar[str] = "recurrence_selective"
    SOFTPLUS: ClassVar[int] = SOFTPLUS
    TURNED: ClassVar[int] = TURNED
    OUT_F32: ClassVar[int] = OUT_F32
    meanings: ClassVar[Mapping[str, str]] = {
        **RecurrenceSpec.meanings,
        "lanes": "lanes that share a channel",
        "states_per_lane": "states of a channel that a lane keeps",
        "warps": "warps of a CTA",
        "tile_tokens": "tokens in shared memory at a time",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        name, least = type(self).__name__, recurrence.LEAF
        check(WARP % self.lanes == 0, name, "lanes of a warp", WARP, self.lanes)
        check(
            self.states_per_lane in (least, 2 * least),
            name,
            "states_per_lane",
            self.states_per_lane,
            (least, 2 * least),
        )
        check(self.least > 0, name, "states served", self.least, ">= 1")

    @property
    def label(self) -> str:
        return f"{self.part}_{self.dtype}_{self.lanes}x{self.states_per_lane}x{self.tile_tokens}"

    @property
    def template(self) -> str:  # type: ignore[override]
        """Template file, by ``part``."""
        return f"recurrence/selective_{self.part}.cu.j2"

    @property
    def threads(self) -> int:
        return self.warps * WARP

    @property
    def channels(self) -> int:
        return self.threads // self.lanes

    @property
    def width(self) -> int:
        """Most states of a channel that the kernel supports."""
        return self.lanes * self.states_per_lane

    @property
    def sharing(self) -> int:
        """Channels that a warp computes."""
        return WARP // self.lanes

    @property
    def slot(self) -> int:
        """f32 values that a thread of the backward kernel keeps in shared memory for each token:
        its states, or its sums over channels, whichever are more.
        """
        return max(self.states_per_lane, 2 * self.states_per_lane // self.sharing)

    @property
    def prefetched_tokens(self) -> int:
        return 2 * self.tile_tokens

    @property
    def shared_bytes(self) -> int:
        if self.part == "forward":
            return 0
        per_token = self.threads * self.slot + 2 * self.width + 5 * (self.channels + 1)
        return self.tile_tokens * per_token * 4

    @property
    def least(self) -> int:
        """Smallest number of states for which the contract prescribes the kernel's ``tile_tokens``
        and, backward, its number of channels; 0: there is none.
        """
        served = (
            n
            for n in range(1, self.width + 1)
            if self.tile_tokens == recurrence.tile(n)
            and (self.part == "forward" or self.channels == recurrence.block(n))
        )
        return next(served, 0)

    @property
    def requires(self) -> Expr:
        return super().requires & (STATES >= self.least) & (STATES <= self.width)

    def roofline(self, dtype: Hashable) -> Roofline:
        return Roofline(BATCH * TOKENS * CHANNELS * STATES * WORK[self.part])

    @property
    def context(self) -> Mapping[str, Any]:
        found = {
            "T": cuda.STORAGE[self.dtype],
            "formula": recurrence.formula(),
            "functions": cuda.functions,
            "leaf": recurrence.LEAF,
        }
        return MappingProxyType(found)

    @property
    def expects(self) -> tuple[Expect, ...]:
        return (*super().expects, Expect("shfl")) if self.lanes > 1 else super().expects

    @property
    def abi(self) -> Abi:
        element = f"const {cuda.STORAGE[self.dtype]}*"
        given = [ptr("x", element), ptr("delta", element), ptr("a", "const float*")]
        given += [ptr("b", element), ptr("c", element)]
        some = [ptr(n, "const float*", optional=True) for n in ("d", "delta_bias")]
        strides = (*stride_params("x", "delta"), *stride_params("b", "c", along=("batch", "token")))
        sizes = tuple(Param(n, "u32") for n in ("tokens", "channels", "states", "flags"))
        if self.part == "backward":
            sums = [ptr(n, "float*") for n in ("dd", "da", "db", "dc")]
            pointers = (
                *given,
                *some,
                ptr("dy", "const float*"),
                ptr("kept", "const float*"),
                ptr("dlast", "const float*", optional=True),
                ptr("dx", f"{cuda.STORAGE[self.dtype]}*"),
                *sums,
                ptr("dstate", "float*", optional=True),
            )
            return Abi((*pointers, *strides, *sizes, Param("batch", "u32")))
        pointers = (
            *given,
            *some,
            ptr("z", element, optional=True),
            ptr("state", "const float*", optional=True),
            ptr("y", "void*", optional=True),
            ptr("last", "float*", optional=True),
            ptr("kept", "float*", optional=True),
        )
        return Abi((*pointers, *strides, *stride_params("z", "y"), *sizes))


@dataclass(frozen=True)
class LinearSpec(RecurrenceSpec):
    """A kernel of a linear recurrence, with ``threads`` threads in a CTA: a thread computes a
    channel, and loads ``prefetch`` tokens ahead.
    """

    threads: int = WARP
    prefetch: int = 16
    contract: Contract = recurrence.LINEAR_RECURRENCE

    family: ClassVar[str] = "recurrence_linear"
    template: ClassVar[str] = "recurrence/linear.cu.j2"
    OUT_F32: ClassVar[int] = OUT_F32
    shared_bytes: ClassVar[int] = 0
    meanings: ClassVar[Mapping[str, str]] = {
        **RecurrenceSpec.meanings,
        "prefetch": "tokens that a thread loads ahead",
        "threads": "threads of a CTA",
    }

    @property
    def label(self) -> str:
        return f"{self.part}_{self.dtype}_{self.threads}x{self.prefetch}"

    @property
    def channels(self) -> int:
        return self.threads

    @property
    def prefetched_tokens(self) -> int:
        return 2 * self.prefetch

    @property
    def expects(self) -> tuple[Expect, ...]:
        if self.part == "forward":
            return (*super().expects, Expect("fma.rn.f32", ("fma.*",)))
        return (*super().expects, Expect("mul.rn.f32", ("mul.f32", "mul.ftz*", "fma.*")))

    @property
    def context(self) -> Mapping[str, Any]:
        found = {"T": cuda.STORAGE[self.dtype], "formula": None, "functions": lambda _: ()}
        return MappingProxyType(found)

    @property
    def abi(self) -> Abi:
        kind = cuda.STORAGE[self.dtype]
        a, sizes = ptr("a", f"const {kind}*"), (Param("tokens", "u32"), Param("channels", "u32"))
        if self.part == "backward":
            pointers = (
                a,
                *(ptr(n, "const float*") for n in ("dy", "h")),
                *(ptr(n, "const float*", optional=True) for n in ("state", "dlast")),
                *(ptr(n, f"{kind}*") for n in ("da", "db")),
                ptr("dstate", "float*", optional=True),
            )
            return Abi((*pointers, *stride_params("a"), *sizes))
        pointers = (
            a,
            ptr("b", f"const {kind}*"),
            ptr("state", "const float*", optional=True),
            ptr("y", "void*"),
            ptr("last", "float*", optional=True),
        )
        return Abi((*pointers, *stride_params("a", "b", "y"), *sizes, Param("flags", "u32")))
