"""Operators that :class:`ptxgen.torch.batch_invariant` leaves to PyTorch, and the reasons.

A rule on schema and tags covers views, pointwise functions and factories; :data:`REASONS` lists the
others. Operators in neither are unknown, unless :mod:`ptxgen.torch.aten` has a handler.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import torch

from ptxgen.numerics.dtype import DTYPES

Serve = Callable[..., Any]
UNKNOWN: Final = "unknown"
ROW_WISE: Final = "PyTorch's own kernel computes each row by itself"
TRY_NEXT: Final = "made of operators that are served"


class NotServed(Exception):  # noqa: N818 - no error
    """Raised by a handler to decline a call. ``args[0]`` says why: UNKNOWN, it does not support the
    arguments; ROW_WISE, PyTorch's kernel computes each row by itself; TRY_NEXT, the next handler
    may support the call, or PyTorch composes it of operators that have handlers.
    """


def require_floats(*arrays: Any) -> None:
    """Raises NotServed for buffers of a dtype outside :data:`ptxgen.numerics.dtype.DTYPES`."""
    if any(x is not None and x.dtype not in DTYPES for x in arrays):
        raise NotServed(UNKNOWN)


MOVES = "values are moved, none is computed"
EXACT = "exact: no rounding depends on an order"
POINTWISE = "an element of the result depends on one place of the arguments"
WHOLE = "a value of the whole batch, added in one order"
PIECES = "made of operators that are seen one by one"
VIEW = "a view"
FACTORY = "made of no tensor"
HOST = "says something about a tensor, computes nothing"

REASONS: Final[dict[str, str]] = {
    MOVES: """
        _chunk_cat _foreach_copy_ _local_scalar_dense _pin_memory _resize_output_ _stack _to_copy
        _unsafe_index
        arange cat channel_shuffle clone complex constant_pad_nd copy_ embedding eye fill_ flip
        gather index index_copy index_copy_ index_fill_ index_select linspace logspace
        masked_fill_ masked_scatter_ masked_select max_unpool2d max_unpool3d narrow_copy
        native_channel_shuffle nonzero nonzero_static pixel_shuffle pixel_unshuffle range
        reflection_pad1d reflection_pad2d reflection_pad3d repeat_interleave replication_pad1d
        replication_pad2d replication_pad3d resize_ roll set_ split_with_sizes_copy take tril tril_
        triu triu_ upsample_nearest1d upsample_nearest2d upsample_nearest3d where
        _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d zero_ scatter
        scatter_
    """,
    EXACT: """
        _cummax_helper _cummin_helper _unique _unique2 all any argmax argmin bucketize
        count_nonzero cummax cummin equal histc isin max min searchsorted unique_consecutive
        unique_dim unique_dim_consecutive
    """,
    POINTWISE: """
        _add_relu _add_relu_ _amp_foreach_non_finite_check_and_unscale_ _amp_update_scale_
        _fused_adagrad_ _fused_adam_ _fused_adamw_ _fused_sgd_
        _prelu_kernel _prelu_kernel_backward addr binary_cross_entropy_backward copysign_ elu
        elu_backward eq_ floor_divide floor_divide_ gcd_ ge_ gelu gelu_ gelu_backward glu
        glu_backward glu_backward_jvp glu_jvp gt_ hardshrink hardshrink_backward hardsigmoid
        hardsigmoid_backward hardswish hardswish_ hardswish_backward hardtanh hardtanh_backward
        heaviside_ huber_loss_backward lcm_ le_ leaky_relu leaky_relu_backward linalg_cross
        log_sigmoid_backward log_sigmoid_forward lt_ mish mish_ mish_backward mse_loss_backward ne_
        nll_loss_backward nll_loss2d_backward polar rsub smooth_l1_loss_backward softplus
        softplus_backward softshrink softshrink_backward threshold threshold_ threshold_backward
    """,
    PIECES: "mse_loss smooth_l1_loss huber_loss binary_cross_entropy",
    ROW_WISE: """
        _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d_backward
        _upsample_nearest_exact2d_backward _upsample_nearest_exact3d_backward grid_sampler_2d
        grid_sampler_3d upsample_bicubic2d
    """,
    WHOLE: "nll_loss_forward",
    HOST: "_assert_async _functional_assert_async _fused_sdp_choice is_set_to record_stream",
}
"""Names of operators by the reason why their rows cannot depend on the batch. A name covers all
overloads and the in-place form: ``elu`` covers ``elu_``.
"""

ELEMENTWISE: Final = {"bitsandbytes::dequantize_4bit", "bitsandbytes::dequantize_blockwise"}
"""Operators of other libraries whose rows cannot depend on the batch."""

W8A8: Final = "products of FP8 by FP8 are not there, nor others of quantized activations"
PACKED: Final = (
    "bitsandbytes packed the weight for CPUs in a call outside of the block, and rounded its "
    "scales to bfloat16; make a layer's first call inside"
)
REFUSED: Final = {
    **dict.fromkeys(
        ("_scaled_mm", "_scaled_mm_v2", "_scaled_grouped_mm", "_scaled_grouped_mm_v2"), W8A8
    ),
    **dict.fromkeys(("int8_vectorwise_quant", "int8_scaled_mm", "int8_mixed_scaled_mm"), W8A8),
    "gemv_4bit": PACKED,
}
"""Reasons why operators are not served, by name, where there is more to say."""

FOREACH_SUMS: Final = {"_foreach_norm", "_foreach_powsum"}
"""Operators on lists of tensors that sum elements; other ``_foreach_`` operators are pointwise."""

ORDER_DEPENDENT: Final = {
    "scatter.reduce",
    "scatter.value_reduce",
    "scatter_.reduce",
    "scatter_.value_reduce",
    *("max.", "max.unary", "min.", "min.unary"),
}
"""Overloads (with their ``out=`` forms) whose rows may depend on the batch although :data:`REASONS`
has their name: they add elements, or return +0 or -0 by the order of comparisons.
"""


@cache
def _listed() -> dict[str, str]:
    return {name: reason for reason, names in REASONS.items() for name in names.split()}


def overload(name: str) -> Any:
    """Returns the overload named, for instance, ``aten::sum.dim_IntList``; None if Python cannot
    call it.
    """
    space, _, rest = name.partition("::")
    packet, _, which = rest.partition(".")
    found = getattr(getattr(torch.ops, space), packet, None)
    return None if found is None else getattr(found, which or "default", None)


def draws(op: Any) -> bool:
    """Whether the target of a call is tagged as an operator that draws random numbers."""
    return torch.Tag.nondeterministic_seeded in getattr(op, "tags", ())


@cache
def reason(op: Any) -> str | None:
    """Returns the reason why rows of ``op`` cannot depend on the batch; None if they may."""
    schema, packet = op._schema, op.overloadpacket.__name__
    if draws(op) and packet != "_fused_sdp_choice":
        return None  # random numbers are drawn by their place
    if f"{packet}.{schema.overload_name.removesuffix('_out')}" in ORDER_DEPENDENT:
        return None
    if torch.Tag.pointwise in op.tags:
        return POINTWISE
    if packet.startswith("_foreach_") and packet not in FOREACH_SUMS:
        return POINTWISE
    if any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns):
        return VIEW
    if not any("Tensor" in str(a.type) for a in schema.arguments if a.name != "out"):
        return FACTORY
    listed = _listed()
    return listed.get(packet) or listed.get(packet.removesuffix("_"))
