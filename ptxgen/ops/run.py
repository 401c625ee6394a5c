"""The one way from a library call to the GPU, hot and careful.

:func:`run` is the hot path: for plain torch tensors it looks the prepared launch up and
fires it. Everything that it does not know goes through :func:`_careful`, which checks every
argument before anything is enqueued, and enters what it prepared into the memo.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ptxgen.errors import DtypeError, GradError, OptionError, ShapeError
from ptxgen.numerics.activation import CODES
from ptxgen.numerics.contract import ACTIVATIONS, AUTO_TIER, DTYPES, OPERATIONS, TIERS
from ptxgen.numerics.dtype import name_of
from ptxgen.ops.launch import launch, remember, storage_of
from ptxgen.ops.problem import alignment, contiguous_copy, read
from ptxgen.runtime import (
    ArrayView,
    Call,
    extent,
    framework_of,
    resolve,
    torch_current,
    torch_key,
    view,
)
from ptxgen.runtime.dlpack import contiguous_strides
from ptxgen.spec import ACCUMULATE, ACTIVATION_SHIFT, BIAS_F32, OUT_F32

Options = tuple[str, str, str | None, bool, str | None, Any]
"""layout, tier, activation, accumulate, kernel, dtype of the result."""

RESULT_F32 = frozenset({"linear_wgrad"})
"""Operations whose result is float32 unless something else is asked for."""


class _Entry:
    """A prepared launch, and what a call must check before it fires it."""

    __slots__ = (
        "a_bytes",
        "b_bytes",
        "bias_bytes",
        "empty",
        "fire",
        "grad_enabled",
        "index",
        "out_bytes",
        "swap",
    )

    fire: Callable[[int, int, int, int, int], None]
    empty: Callable[[], Any]
    grad_enabled: Callable[[], bool]
    index: int
    swap: bool
    a_bytes: int
    b_bytes: int
    bias_bytes: int
    out_bytes: int


_tensors: set[type] = set()
"""torch.Tensor and torch.nn.Parameter, once they have been seen; subclasses may do anything."""
_optional: set[type] = {type(None)}
_entries: dict[tuple[Any, ...], _Entry] = {}


def run(op: str, a: Any, b: Any, bias: Any, out: Any, stream: Any, options: Options) -> Any:
    """Computes ``op`` of its arguments ``a`` and ``b``, in the operation's order."""
    key = entry = None
    if type(a) in _tensors and type(b) in _tensors:  # noqa: SIM102 - one line less to read
        if type(bias) in _optional and type(out) in _optional:
            try:
                pa, pb, pbias, pout = a.data_ptr(), b.data_ptr(), 0, 0
                bias_key = out_key = None
                grad = a.requires_grad or b.requires_grad
                if bias is not None:
                    pbias, bias_key = bias.data_ptr(), torch_key(bias)
                    grad = grad or bias.requires_grad
                if out is not None:
                    pout, out_key = out.data_ptr(), torch_key(out)
                    grad = grad or out.requires_grad
                low = (pa | pb | pbias | pout) & 15
                low = low and (pa & 15, pb & 15, pbias & 15, pout & 15)
                key = (op, torch_key(a), torch_key(b), bias_key, out_key, options, low)
                entry = _entries.get(key)
            except (RuntimeError, TypeError):  # no memory to point at; unhashable options
                key = None
    if entry is not None and not (grad and entry.grad_enabled()):
        if out is not None:
            end = pout + entry.out_bytes
            if (
                (end <= pa or pa + entry.a_bytes <= pout)
                and (end <= pb or pb + entry.b_bytes <= pout)
                and (end <= pbias or pbias + entry.bias_bytes <= pout)
            ):
                index = entry.index
                handle = torch_current(index) if stream is None else resolve(stream, (a, b))
                if entry.swap:
                    pa, pb = pb, pa
                entry.fire(handle, pa, pb, pbias, pout)
                return out
        elif stream is None:
            out = entry.empty()
            if entry.swap:
                pa, pb = pb, pa
            entry.fire(torch_current(entry.index), pa, pb, pbias, out.data_ptr())
            return out
    return _careful(op, a, b, bias, out, stream, options, key)


def _careful(
    op: str,
    a: Any,
    b: Any,
    bias: Any,
    out: Any,
    stream: Any,
    options: Options,
    key: tuple[Any, ...] | None,
) -> Any:
    layout, _, activation, accumulate, kernel, out_dtype = options
    operation = OPERATIONS[op]
    first, second = operation.arguments
    _check_options(options, out)
    given = {first: a, second: b, "bias": bias}
    for name in (first, second):
        if given[name] is None:
            raise DtypeError(f"{name} is None; takes an array")
    _refuse_gradients({**given, "out": out})
    call = Call(given, stream)
    dtype, tier = _check_dtypes(call.views, options[1])
    problem = read(operation, layout, *_as_computed(call), storage_of(kernel))
    wanted = _result_dtype(op, call, out, out_dtype)
    target = call.output(problem.shape, wanted, out, read=accumulate)
    ldc = _check_out(target)
    m, n, _ = problem.dims
    if m == 0 or n == 0:
        return call.finish()
    flags = CODES[activation or "none"] << ACTIVATION_SHIFT
    flags |= ACCUMULATE if accumulate else 0
    operands = call.views[first].dtype
    flags |= OUT_F32 if wanted != operands else 0
    flags |= BIAS_F32 if bias is not None and call.views["bias"].dtype != operands else 0
    prepared = launch(problem, call.device, ldc, flags, dtype=dtype, tier=tier, kernel=kernel)
    call.stage()
    views = call.views
    pa, pb = views[first].ptr, views[second].ptr
    if problem.swapped:
        pa, pb = pb, pa
    pbias = views["bias"].ptr if bias is not None else 0
    prepared.fire(call.stream, pa, pb, pbias, target.ptr)
    result = call.finish()
    _learn(key, views, target, prepared.fire, problem.swapped)
    return result


def _check_options(options: Options, out: Any) -> None:
    _, tier, activation, accumulate, kernel, _ = options
    _check_choice("tier", tier, ("auto", *TIERS))
    _check_choice("activation", activation, (None, *ACTIVATIONS))
    if kernel is not None and not isinstance(kernel, str):
        raise OptionError(f"kernel is {kernel!r}; takes None or the name of a kernel")
    if accumulate and out is None:
        raise OptionError("accumulate=True adds to out, but out is None; pass out=")


def check_layout(layout: Any) -> None:
    """Raises OptionError unless ``layout`` is a way to store a weight."""
    _check_choice("layout", layout, ("kn", "nk"))


def _check_choice(name: str, value: Any, choices: tuple[str | None, ...]) -> None:
    if not (value is None or isinstance(value, str)) or value not in choices:
        raise OptionError(f"{name} is {value!r}; takes {', '.join(map(repr, choices))}")


def _refuse_gradients(given: dict[str, Any]) -> None:
    """Nothing would be recorded, so a gradient asked for would silently be missing."""
    for name, obj in given.items():
        if framework_of(obj) == "torch" and obj.requires_grad:
            if not sys.modules["torch"].is_grad_enabled():
                return
            raise GradError(
                f"{name} requires grad, but ptxgen's operations record nothing for autograd; call "
                f"them under torch.no_grad(), pass {name}.detach(), or wrap them in a "
                "torch.autograd.Function (linear_dgrad and linear_wgrad are its backward)"
            )


def _check_dtypes(views: dict[str, ArrayView], tier: str) -> tuple[str, str]:
    """The operands' dtype, as specs call it, and the tier."""
    (first, a), (second, b) = list(views.items())[:2]
    if tier == "auto":
        if a.dtype not in DTYPES:
            raise DtypeError(
                f"{first} has dtype {a.dtype}; takes {' or '.join(DTYPES)}; convert it first"
            )
        tier = AUTO_TIER[DTYPES[a.dtype]]
    served = {name: short for name, short in DTYPES.items() if short in TIERS[tier]}
    if not served:
        others = ", ".join(repr(t) for t, dtypes in TIERS.items() if dtypes)
        raise OptionError(f"tier is {tier!r}, which has no kernels yet; takes 'auto', {others}")
    if a.dtype not in served:
        raise DtypeError(
            f"{first} has dtype {a.dtype}; takes {' or '.join(served)} (tier {tier!r}); "
            f"convert it first"
        )
    if b.dtype != a.dtype:
        raise DtypeError(f"{second} has dtype {b.dtype}; takes {a.dtype}, that of {first}")
    bias = views.get("bias")
    if bias is not None and bias.dtype not in (accepted := _mixed(a.dtype)):
        raise DtypeError(f"bias has dtype {bias.dtype}; takes {' or '.join(accepted)}")
    return served[a.dtype], tier


def _mixed(dtype: str) -> tuple[str, ...]:
    """The dtypes that bias and result may have beside operands of ``dtype``."""
    return tuple(dict.fromkeys((dtype, "float32")))


def _result_dtype(op: str, call: Call, out: Any, asked: Any) -> str:
    """The dtype of the result: as asked for, that of ``out``, or the operation's own."""
    dtype = call.views[OPERATIONS[op].arguments[0]].dtype
    accepted = _mixed(dtype)
    if asked is not None:
        named = name_of(asked, "out_dtype")
        if named not in accepted:
            raise DtypeError(f"out_dtype is {named!r}; takes {' or '.join(map(repr, accepted))}")
        return named
    if out is not None:
        found = view(out, "out", call.stream).dtype
        if found not in accepted:
            raise DtypeError(f"out has dtype {found}; takes {' or '.join(accepted)}")
        return found
    return "float32" if op in RESULT_F32 else dtype


def _as_computed(call: Call) -> tuple[dict[str, ArrayView], ArrayView | None]:
    """The operands as the kernel will see them: host arrays will be packed and aligned."""
    views = dict(call.views)
    if call.host:
        views = {
            name: replace(view, ptr=0, strides=contiguous_strides(view.shape))
            for name, view in views.items()
        }
    return views, views.pop("bias", None)


def _check_out(target: ArrayView) -> int:
    """The elements from row to row of the result."""
    alignment("out", target, 0)
    matrix = target.matrix("out")
    (_, columns), (pitch, along) = matrix.shape, matrix.strides
    if along != 1 and columns > 1 and target.size:
        raise ShapeError(
            f"out has strides {list(target.strides)}; takes stride 1 along the last dimension: "
            f"pass an array like {contiguous_copy('out', target)}, or leave out= away"
        )
    return pitch


def _learn(
    key: tuple[Any, ...] | None,
    views: dict[str, ArrayView],
    target: ArrayView,
    fire: Callable[[int, int, int, int, int], None],
    swap: bool,
) -> None:
    """Makes the next call like this one a hot one, if it was one of plain torch tensors."""
    everything = [*views.values(), target]
    if any(v.framework != "torch" or v.kind != "cuda" for v in everything):
        return
    for seen in everything:
        kind = type(seen.owner)
        if (kind.__module__, kind.__name__) not in (
            ("torch", "Tensor"),
            ("torch.nn.parameter", "Parameter"),
        ):
            return
        _tensors.add(kind)
        _optional.add(kind)
    if key is None or any(1 not in seen.strides for seen in everything):
        return
    torch = sys.modules["torch"]
    entry = _Entry()
    entry.fire, entry.swap, entry.index = fire, swap, target.index
    entry.a_bytes, entry.b_bytes, *bias_bytes = (_nbytes(v) for v in views.values())
    entry.bias_bytes = bias_bytes[0] if bias_bytes else 0
    entry.out_bytes = _nbytes(target)
    entry.grad_enabled = torch.is_grad_enabled
    entry.empty = _allocator(torch, target)
    remember(_entries, key, entry)


def _allocator(torch: Any, target: ArrayView) -> Callable[[], Any]:
    """Makes results like ``target``, which is contiguous where this is asked.

    In the way of torch's own compiled code, if this torch has it (private; a third of the cost
    of ``torch.empty``). That allocates on the current GPU, so it is asked which one that is.
    """
    shape, dtype, index = target.shape, getattr(torch, target.dtype), target.index
    slow = partial(torch.empty, shape, dtype=dtype, device=torch.device("cuda", index))
    guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
    fast = getattr(guards, "_empty_strided_cuda", None)
    current = getattr(torch._C, "_cuda_getDevice", None)
    if fast is None or current is None:
        return slow
    strides = contiguous_strides(shape)
    if torch.cuda.device_count() == 1:
        return partial(fast, shape, strides, dtype)
    return lambda: fast(shape, strides, dtype) if current() == index else slow()


def _nbytes(view: ArrayView) -> int:
    """Bytes between the first and the end of the last element."""
    return extent(view.shape, view.strides, view.itemsize)[1]
