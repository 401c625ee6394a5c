"""NF4 weights as arrays of NumPy and PyTorch: quantised, dequantised, and as bitsandbytes has them.

All arithmetic is exact or that of :mod:`ptxgen.numerics.nf4`: both frameworks have the same bits.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from ptxgen.errors import DtypeError, OptionError, PtxgenError, ShapeError
from ptxgen.numerics.dtype import name_of
from ptxgen.numerics.nf4 import BLOCK, CODE
from ptxgen.numerics.option import Choice, Integer
from ptxgen.numerics.signature import DIM_MAX
from ptxgen.runtime.arrays import ArrayView, framework_of, view

DTYPES = ("float32", "bfloat16", "float16")
"""What weights are made from, and into."""
_LAYOUT = Choice("nk", "kn")


@dataclass(frozen=True, eq=False)
class Weight:
    """A weight of ``n`` rows of ``k`` numbers ``scale · code``, as :mod:`ptxgen.numerics.nf4` says.

    Shapes
        ``data`` ``[N · K/2]``; ``scales`` ``[N · K/64]``, contiguous; block b of row n has the
        number ``n · (K/64) + b``. K is a multiple of 64.
    Dtypes
        ``data`` uint8, ``scales`` float32; arrays of NumPy or PyTorch.
    Errors
        ShapeError and DtypeError.
    """

    data: Any
    scales: Any
    n: int
    k: int

    def __post_init__(self) -> None:
        for name in ("n", "k"):
            size = Integer(0, DIM_MAX, ShapeError).read(name, getattr(self, name))
            object.__setattr__(self, name, size)
        whole_blocks("k", self.k)
        numbers = self.n * self.k
        for name, dtype, size in ("data", "uint8", numbers // 2), ("scales", "float32", numbers):
            size = size // BLOCK if name == "scales" else size
            seen = _seen(name, getattr(self, name), (dtype,))
            if seen.shape != (size,):
                raise ShapeError(
                    f"{name} has shape {list(seen.shape)}; takes [{size}] for N = {self.n} and "
                    f"K = {self.k}"
                )
            if size > 1 and seen.strides != (1,):
                raise ShapeError(f"{name} has stride {seen.strides[0]}; takes stride 1")

    def __repr__(self) -> str:
        return f"<nf4.Weight [{self.n}, {self.k}] of {framework_of(self.data)}>"

    @cached_property
    def operands(self) -> tuple[Any, Any]:
        """Data and scales row by row, ``[N, K/2]`` and ``[N, K/64]``: as operations take them."""
        rows = self.data.reshape(self.n, self.k // 2)
        return rows, self.scales.reshape(self.n, self.k // BLOCK)


def whole_blocks(name: str, k: int, shape: Sequence[int] | None = None) -> None:
    """Raises ShapeError, naming an argument of ``shape``, unless K = ``k`` is a multiple of 64."""
    if k < BLOCK or k % BLOCK:
        said = f"is {k}" if shape is None else f"has shape {list(shape)}, so K = {k}"
        raise ShapeError(f"{name} {said}; takes a multiple of {BLOCK}: so many share a scale")


def checked(q: Any) -> Weight:
    """``q``, a weight. Raises DtypeError for anything else."""
    if not isinstance(q, Weight):
        raise DtypeError(
            f"q is a {type(q).__name__}; takes a ptxgen.nf4.Weight, as quantize and "
            "from_bitsandbytes of ptxgen.nf4 make it"
        )
    return q


def quantize(w: Any, layout: str = "nk") -> Weight:
    """``scale = max(|block|)``, and of each number the nearest ``scale · code``, of two the lower.

    Shapes
        ``w`` ``[N, K]`` (``layout="nk"``) or ``[K, N]`` (``"kn"``), K a multiple of 64.
    Dtypes
        ``w``: float32, bfloat16 or float16, a NumPy array or a PyTorch tensor on any device.
    Order
        No sums. Distances to ``scale · code`` are compared exactly. A block of zeros has the scale
        0, and the code 0 everywhere. NaN and Inf make their block's scale NaN or Inf.
    Errors
        ShapeError, DtypeError and OptionError.
    Source
        ``ptxgen/ops/nf4_weight.py``.

    >>> import numpy, ptxgen
    >>> q = ptxgen.nf4.quantize(numpy.linspace(-2, 2, 64, dtype="f4")[None])
    >>> q, q.scales, q.data[-2:]
    (<nf4.Weight [1, 64] of numpy>, array([2.], dtype=float32), array([255, 255], dtype=uint8))
    """
    _LAYOUT.read("layout", layout)
    seen = _seen("w", w, DTYPES)
    if len(seen.shape) != 2:
        raise ShapeError(f"w has shape {list(seen.shape)}; takes [{', '.join(layout.upper())}]")
    xp = sys.modules[seen.framework]
    rows = (w.detach() if seen.framework == "torch" else w) if layout == "nk" else w.T
    n, k = rows.shape
    whole_blocks("w", k, seen.shape)
    wide = _as(rows, "float32").reshape(-1, BLOCK)
    scales = xp.abs(wide).max(1) if seen.framework == "numpy" else xp.amax(xp.abs(wide), 1)
    # Exact in f64: the sum of neighbours has 27 bits at most, a scale has 24.
    twice, scale = 2 * _as(wide, "float64"), _as(scales, "float64")[:, None]
    index = _as(scale == 0, "uint8") * CODE.index(0.0) + xp.zeros_like(wide, dtype=xp.uint8)
    for low, high in pairwise(CODE):
        index += _as(twice > scale * (low + high), "uint8")
    return Weight((index[:, ::2] | index[:, 1::2] << 4).reshape(-1), scales, int(n), int(k))


def dequantize(q: Weight, dtype: Any = "float32", layout: str = "nk") -> Any:
    """``scale · code``: the weight that ``q`` stands for.

    Shapes
        The result ``[N, K]``, or with ``layout="kn"`` a view of it as ``[K, N]``.
    Dtypes
        ``dtype``: "float32", "bfloat16" (NumPy needs the package ml_dtypes for it) or "float16".
        The result is of the framework of ``q``, and on its device.
    Order
        No sums: the product is rounded to f32, then once to ``dtype``.
    Errors
        DtypeError and OptionError.
    Source
        ``ptxgen/ops/nf4_weight.py``.
    """
    _LAYOUT.read("layout", layout)
    wanted, framework = name_of(dtype, "dtype", DTYPES), framework_of(checked(q).data)
    pairs = [(CODE[byte & 15], CODE[byte >> 4]) for byte in range(256)]
    if framework == "torch":
        codes = sys.modules["torch"].tensor(pairs, device=q.data.device)[q.data.long()]
        wide = codes.reshape(-1, BLOCK) * q.scales[:, None]
    else:
        import numpy

        with numpy.errstate(all="ignore"):
            codes = numpy.array(pairs, numpy.float32)[q.data]
            wide = codes.reshape(-1, BLOCK) * q.scales[:, None]
    rows = _as(wide.reshape(q.n, q.k), wanted)
    return rows if layout == "nk" else rows.T


def from_bitsandbytes(param: Any) -> Weight:
    """The :class:`Weight` of a ``bitsandbytes.nn.Params4bit`` that has been quantised.

    Shapes
        ``param`` of a weight ``[N, K]``, K a multiple of 64.
    Dtypes
        Blocks of 64 and ``quant_type`` "nf4". Scales that it has quantised once more become f32.
    Order
        No sums: its numbers are exactly those that bitsandbytes dequantises to.
    Errors
        OptionError, and ShapeError for a K that is no multiple of 64.
    Source
        ``ptxgen/ops/nf4_weight.py``.
    """
    if getattr(param, "quant_state", None) is None:
        raise OptionError("param has no quant_state; takes a Params4bit that has been quantised")
    try:
        return _converted(param)
    except PtxgenError:
        raise
    except Exception as error:  # of an object that only looks like one
        raise OptionError(
            f"param has a quant_state that cannot be read: {type(error).__name__}: {error}; takes "
            "a Params4bit that has been quantised"
        ) from error


def _converted(param: Any) -> Weight:
    """The weight of a parameter whose ``quant_state`` is one of bitsandbytes."""
    state = param.quant_state
    plain = not getattr(state, "packing_format_for_cpu", False)
    for what, value, taken in (
        ("quant_type", state.quant_type, "nf4"),
        ("blocksize", state.blocksize, BLOCK),
        ("code", tuple(state.code.tolist()), CODE),
        ("packing", "plain" if plain else "for CPUs", "plain"),
    ):
        if value != taken:
            raise OptionError(f"param has {what} {value!r}; takes {taken!r}")
    n, k = state.shape
    whole_blocks("param", k, state.shape)
    torch, scales = sys.modules["torch"], state.absmax
    if state.state2 is not None:
        outer = state.state2
        steps = outer.absmax.repeat_interleave(outer.blocksize)[: len(scales)]
        scales = outer.code[scales.long()] * steps + state.offset
    stored = param.data.detach().as_subclass(torch.Tensor).contiguous().view(torch.uint8)
    return Weight(_swapped(stored.reshape(-1)), scales.float(), int(n), int(k))


def to_bitsandbytes(q: Weight, dtype: Any = "float32") -> Any:
    """``q`` as a ``bitsandbytes.nn.Params4bit`` with the same numbers.

    Shapes
        That of ``q``, ``[N, K]``.
    Dtypes
        ``q`` of PyTorch tensors; ``dtype``: what bitsandbytes is to dequantise it to.
    Order
        Nothing is computed.
    Errors
        DtypeError for a weight of NumPy; ImportError without the package bitsandbytes.
    Source
        ``ptxgen/ops/nf4_weight.py``.
    """
    if framework_of(checked(q).data) != "torch":
        raise DtypeError(f"q is of {framework_of(q.data)} arrays; takes PyTorch tensors")
    torch, numbers = sys.modules["torch"], name_of(dtype)
    functional = importlib.import_module("bitsandbytes.functional")
    state = functional.QuantState(
        absmax=q.scales,
        shape=torch.Size((q.n, q.k)),
        code=torch.tensor(CODE, device=q.data.device),
        blocksize=BLOCK,
        quant_type="nf4",
        dtype=getattr(torch, numbers),
    )
    return importlib.import_module("bitsandbytes.nn").Params4bit(
        _swapped(q.data).reshape(-1, 1),
        requires_grad=False,
        quant_state=state,
        blocksize=BLOCK,
        compress_statistics=False,
        quant_type="nf4",
        bnb_quantized=True,
    )


def _swapped(data: Any) -> Any:
    """Bytes with their nibbles the other way round."""
    return data << 4 | data >> 4


def _seen(name: str, array: Any, dtypes: tuple[str, ...]) -> ArrayView:
    """A view of an array of NumPy or PyTorch. Raises DtypeError for another, or another dtype."""
    if (framework := framework_of(array)) not in ("numpy", "torch"):
        kind = type(array).__name__
        raise DtypeError(f"{name} is a {kind} ({framework}); takes an array of NumPy or PyTorch")
    seen = view(array, name)
    if seen.dtype not in dtypes:
        raise DtypeError(f"{name} has dtype {seen.dtype}; takes {' or '.join(dtypes)}")
    return seen


def _as(array: Any, dtype: str) -> Any:
    """``array`` in a dtype, each number rounded once to nearest."""
    if framework_of(array) == "torch":
        return array.to(getattr(sys.modules["torch"], dtype))
    import numpy

    try:
        with numpy.errstate(over="ignore"):
            return array.astype(dtype)
    except TypeError as error:
        raise DtypeError(f"NumPy knows no dtype {dtype}; import ml_dtypes") from error
