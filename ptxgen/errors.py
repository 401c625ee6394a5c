"""The exceptions of ptxgen.

Each message says what was given, what is accepted, and what to do about it. All
derive from :class:`PtxgenError`, and from the built-in exception that a caller
who does not know ptxgen would catch.
"""

from __future__ import annotations

from collections.abc import Iterable


def proposal(given: object, known: Iterable[object], cutoff: float = 0.6) -> str:
    """Returns ``"; did you mean ...?"`` with the names in ``known`` close to ``given``, or ``""``.

    Case is ignored. ``cutoff``: least similarity, from 0 to 1, of a close name.
    """
    from difflib import get_close_matches

    names = {str(name).lower(): str(name) for name in known}
    close = get_close_matches(str(given).lower(), names, n=3, cutoff=cutoff)
    return f"; did you mean {' or '.join(names[name] for name in close)}?" if close else ""


def described(value: object) -> str:
    """Returns ``repr(value)``, cut to 80 characters, for a message. Integers of more than 256 bits,
    and objects whose ``repr`` raises, are described instead.
    """
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:  # whatever it raises, the message is about the argument
        return f"a {type(value).__qualname__} without a text"
    return text if len(text) < 80 else f"{text[:77]}..."


class PtxgenError(Exception):
    """Base class of all exceptions of ptxgen."""

    step = ""
    """Name of the inner operation that raised the error in a composed one; or empty."""

    def name_call(self, called: str) -> None:
        """Completes the message of an error that an inner operation raised: adds the name of the
        called operation and the :attr:`step`, which is then cleared. Without a step, nothing
        changes.
        """
        if self.step:
            step = f"in its step {self.step}, whose arguments are meant"
            message = f"{called}: {self.args[0]} ({step})"
            self.args, self.step = (message, *self.args[1:]), ""


class SpecError(PtxgenError, ValueError):
    """A kernel spec, route or contract that breaks an invariant; raised when it is built."""


class CompileError(PtxgenError, RuntimeError):
    """A source that NVRTC refuses, or an NVRTC that cannot be loaded.

    Attributes: ``log`` (the full compiler log), ``source_path`` (copy of the source, or None).
    """

    def __init__(self, message: str, *, log: str = "", source_path: str | None = None) -> None:
        super().__init__(message)
        self.log = log
        self.source_path = source_path


class ShapeError(PtxgenError, ValueError):
    """A shape, stride, alignment or aliasing that the operation does not accept."""


class DtypeError(PtxgenError, TypeError):
    """A dtype, or a mix of dtypes, that the operation does not accept."""


class OptionError(PtxgenError, ValueError):
    """An unknown value of an option: tier, layout, activation, device, spec name."""


class FormulaError(PtxgenError, TypeError):
    """A function that is no pointwise formula: it branches on a value, mixes types, or the like."""


class TraceError(PtxgenError, TypeError):
    """A function that cannot be captured, since it reads an array's values or the like."""


class SavedError(PtxgenError, ValueError):
    """A program file that cannot be written or loaded: truncated, altered, for another device."""


class CheckpointError(PtxgenError, ValueError):
    """A file of weights that cannot be read, or does not fit the model that it is loaded into."""


class UnservedError(PtxgenError, RuntimeError):
    """A PyTorch operator that ptxgen does not compute: in a strict ``batch_invariant`` block, if
    its rows may depend on the batch; in ``ptxgen.torch.export``, always.
    """


class EngineError(PtxgenError, RuntimeError):
    """An inference engine, or a model of it, that an extension of :mod:`ptxgen.engines` does not
    fit: another version, a function with another signature, a layer that nothing serves.
    """


class DeviceError(PtxgenError, RuntimeError):
    """No usable device, operands on different devices, or an error that the driver reported."""


class PtxError(PtxgenError, ValueError):
    """PTX that is malformed, truncated, or outside the subset that ptxgen.interp knows.

    Attributes: ``file``, ``line`` (1-based) and ``text`` (the statement).
    """

    def __init__(self, message: str, *, file: str = "<ptx>", line: int = 0, text: str = "") -> None:
        place = f"{file}:{line}: " if line else f"{file}: "
        super().__init__(place + message + (f"\n    {text}" if text else ""))
        self.file, self.line, self.text = file, line, text


class KernelFault(DeviceError):  # noqa: N818 - what a debugger calls it
    """An illegal action of a kernel, found by the CPU device (the PTX interpreter).

    Attributes, None where they do not apply: ``kernel``, ``line`` and ``text`` (of the PTX),
    ``source`` (file and line of the CUDA C++, if the PTX has line information), ``cta``
    (x, y, z), ``warp``, ``lane`` and ``address``.
    """

    def __init__(
        self,
        message: str,
        *,
        kernel: str | None = None,
        line: int | None = None,
        text: str | None = None,
        source: tuple[str, int] | None = None,
        cta: tuple[int, int, int] | None = None,
        warp: int | None = None,
        lane: int | None = None,
        address: int | None = None,
    ) -> None:
        where = [f"kernel {kernel}"] if kernel else []
        if line:
            where.append(f"PTX line {line}")
        if source:
            where.append(f"{source[0]}:{source[1]}")
        if cta is not None:
            where.append(f"CTA {cta[0]},{cta[1]},{cta[2]}")
        if warp is not None:
            where.append(f"warp {warp}")
        if lane is not None:
            where.append(f"lane {lane}")
        if address is not None:
            where.append(f"address {address:#x}")
        super().__init__(
            message
            + (f"\n    at {', '.join(where)}" if where else "")
            + (f"\n    {text}" if text else "")
        )
        self.kernel, self.line, self.text, self.source = kernel, line, text, source
        self.cta, self.warp, self.lane, self.address = cta, warp, lane, address


class MemoryFault(KernelFault):
    """An access out of bounds, misaligned, to freed memory, or of the wrong state space."""


class UninitializedFault(KernelFault):
    """A read of memory that nothing has written, or a use of a register without a value."""


class RaceFault(KernelFault):
    """Two accesses to the same shared memory, one a write, with no synchronisation between."""


class BarrierFault(KernelFault):
    """Misuse of a barrier, an mbarrier or an instruction of a whole warp or warpgroup: divergence,
    a wrong mask of members, number of threads or of arrivals.
    """


class DeadlockFault(KernelFault):
    """A deadlock: all threads that have not exited are waiting."""


class StepLimitFault(KernelFault):
    """A loop that exceeded the CPU device's limit of iterations."""


class TrapFault(KernelFault):
    """A kernel that stopped itself with ``trap``."""


class NoGpuError(DeviceError):
    """The machine has no NVIDIA GPU, or no driver for one."""


class GradError(PtxgenError, RuntimeError):
    """An argument that requires grad, in a call that records no gradient for it."""


class UncoveredError(PtxgenError, LookupError):
    """A problem that no kernel serves (impossible for route tables with proved coverage)."""

    def __init__(self, problem: str, detail: str) -> None:
        super().__init__(f"no kernel serves {problem}: {detail}")
        self.problem = problem


class IndexRangeError(PtxgenError, IndexError):
    """An index outside the range of the dimension that it indexes."""


class CacheWarning(UserWarning):
    """A degraded kernel cache (unwritable, a damaged entry); results are unaffected."""
