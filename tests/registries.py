"""The registries of tables, kernels, formats and operations, which tests may add to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ptxgen import dispatch, tiles
from ptxgen.numerics.formats import FORMATS
from ptxgen.ops import OPERATIONS


@contextlib.contextmanager
def registries_kept() -> Iterator[None]:
    """Restores all registries on exit, so that what is registered inside is forgotten."""
    registries = (tiles.TABLES, tiles.ROUTES, tiles.SPECS, dispatch._installed, FORMATS)
    before, named = [dict(registry) for registry in registries], set(OPERATIONS)
    try:
        yield
    finally:
        for registry, content in zip(registries, before, strict=True):
            registry.clear()
            registry.update(content)
        for name in set(OPERATIONS) - named:
            del OPERATIONS[name]
