"""Wrapper that adds the library's common arguments to oracles: ``out``, ``kernel``, ``stream``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics.option import assumed_layout

Array = NDArray[Any]


def as_called(oracle: Callable[..., Array], *, accumulates: bool = False) -> Callable[..., Array]:
    """Wraps ``oracle`` with the further arguments of the library's operation of the same name.

    ``out``: a NumPy array to write to, which is returned; it sets the dtype of the result unless
    ``out_dtype`` does. ``accumulate`` (only with ``accumulates``): whether to add to ``out``.
    ``kernel`` and ``stream`` are ignored. A call that omits a required layout warns.
    """
    named = inspect.signature(oracle)
    layout = named.parameters.get("layout")
    stated = layout is not None and layout.default is layout.empty

    @functools.wraps(oracle)
    def call(
        *operands: Any, out: Any = None, kernel: Any = None, stream: Any = None, **options: Any
    ) -> Array:
        if stated and "layout" not in options:
            options["layout"] = assumed_layout(oracle.__name__)
        accumulate = options.pop("accumulate", False) if accumulates else False
        if out is None:
            if accumulate:
                raise OptionError("accumulate=True adds to out, but out is None; pass out=")
            return oracle(*operands, **options)
        if not isinstance(out, np.ndarray):
            raise DtypeError(f"out is a {type(out).__qualname__}; takes a NumPy array to write to")
        if not out.flags.writeable:
            raise ShapeError("out is read-only; pass an array that can be written")
        if options.get("out_dtype") is None:
            options["out_dtype"] = out.dtype
        if accumulate:
            if options.get("out_old") is not None:
                raise OptionError("accumulate=True adds to out, out_old is added, too; pass one")
            options["out_old"] = out
        result = oracle(*operands, **options)
        if (out.shape, out.dtype) != (result.shape, result.dtype):
            raise ShapeError(
                f"out is {out.dtype} of shape {list(out.shape)}; expected {result.dtype} of shape "
                f"{list(result.shape)}"
            )
        out[...] = result
        return out

    kinds = dict.fromkeys(("out", "kernel", "stream")) | (
        {"accumulate": False} if accumulates else {}
    )
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value)
        for name, value in kinds.items()
    ]
    ordered = sorted((*named.parameters.values(), *more), key=lambda p: p.kind)
    call.__signature__ = named.replace(parameters=ordered)  # type: ignore[attr-defined]
    return call
