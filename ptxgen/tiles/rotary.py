"""Route table of rotary embeddings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxgen.expr import TRUE
from ptxgen.spec import Key, Route, RouteTable
from ptxgen.spec.rotary import SPACE, Form, RotarySpec

KEY: Key = ("rotary",)
SHOWN = Form("bf16", 128, True)
"""Representative variant, whose kernels reviewers read and goldens hold."""


def _rotary() -> RouteTable:
    routes = (
        Route((RotarySpec().of(SHOWN),), TRUE, "the only kernel: neighbouring lanes share a head"),
    )
    return RouteTable(SPACE, routes, (SHOWN,), opened=(Form,), pinned=_pinned)


def _pinned() -> Iterator[RotarySpec]:
    """Yields a kernel without a norm for the goldens."""
    yield RotarySpec().of(Form("f16", 96, False))


TABLES: dict[Key, Callable[[], RouteTable]] = {KEY: _rotary}
"""Constructors of the route tables, by key."""
