"""The registry of operations by name, which packages such as ``ptxgen.ops`` fill."""

from __future__ import annotations

from typing import Any

from ptxgen.lazy import LazyDict

OPERATIONS: LazyDict[str, Any] = LazyDict()
"""Every operation (:class:`ptxgen.program.operation.Op`) by name."""
