"""The exceptions of ptxgen.

Each message says what was given, what is accepted, and what to do about it. All
derive from :class:`PtxgenError`, and from the built-in exception that a caller
who does not know ptxgen would catch.
"""

from __future__ import annotations


class PtxgenError(Exception):
    """Base of everything that ptxgen raises on purpose."""


class SpecError(PtxgenError, ValueError):
    """A tile spec, route or contract that cannot exist (an invariant failed at construction)."""


class CompileError(PtxgenError, RuntimeError):
    """NVRTC refused a source.

    Attributes: ``log`` (the full compiler log), ``source_path`` (where the source
    is kept for inspection, or None if it could not be written).
    """

    def __init__(self, message: str, *, log: str = "", source_path: str | None = None) -> None:
        super().__init__(message)
        self.log = log
        self.source_path = source_path


class ShapeError(PtxgenError, ValueError):
    """A shape, stride, alignment or aliasing that the operation does not take."""


class DtypeError(PtxgenError, TypeError):
    """A dtype, or a mix of dtypes, that the operation does not take."""


class OptionError(PtxgenError, ValueError):
    """An unknown value of an option: tier, layout, activation, device, spec name."""


class DeviceError(PtxgenError, RuntimeError):
    """No usable device, operands on different devices, or an error that the driver reported."""


class GradError(PtxgenError, RuntimeError):
    """An argument requires grad where autograd would record nothing."""


class UncoveredError(PtxgenError, LookupError):
    """No kernel serves a problem (cannot happen for proved route tables)."""

    def __init__(self, op: str, m: int, n: int, k: int, detail: str) -> None:
        super().__init__(f"no kernel of {op} serves M={m}, N={n}, K={k}: {detail}")
        self.op, self.m, self.n, self.k = op, m, n, k


class CacheWarning(UserWarning):
    """The kernel cache is degraded (unwritable, a damaged entry); results are unaffected."""
