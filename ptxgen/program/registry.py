"""The operations by name. Higher rooms add them; programs are built of those that are there."""

from __future__ import annotations

from typing import Any

from ptxgen.lazy import LazyDict

OPERATIONS: LazyDict[str, Any] = LazyDict()
"""Every operation (:class:`ptxgen.program.operation.Op`)."""
