"""The exceptions of ptxgen.

Each message says what was given, what is accepted, and what to do about it. All
derive from :class:`PtxgenError`, and from the built-in exception that a caller
who does not know ptxgen would catch.
"""

from __future__ import annotations

from collections.abc import Iterable


def proposal(given: object, known: Iterable[object], cutoff: float = 0.6) -> str:
    """``"; did you mean ...?"`` with the names in ``known`` that are close to ``given``, or ``""``.

    Case does not count. ``cutoff``: likeness, from 0 to 1, that counts as close.
    """
    from difflib import get_close_matches

    names = {str(name).lower(): str(name) for name in known}
    close = get_close_matches(str(given).lower(), names, n=3, cutoff=cutoff)
    return f"; did you mean {' or '.join(names[name] for name in close)}?" if close else ""


def described(value: object) -> str:
    """A value for a message: its text, shortened, or its kind where it has none."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:  # whatever it raises, the message is about the argument
        return f"a {type(value).__qualname__} without a text"
    return text if len(text) < 80 else f"{text[:77]}..."


class PtxgenError(Exception):
    """Base of everything that ptxgen raises on purpose."""

    step = ""
    """The operation that raised it, of those that the one which was called is made of."""

    def name_call(self, called: str) -> None:
        """Names the operation that was called, and its step, if it was one that raised this."""
        if self.step:
            step = f"in its step {self.step}, whose arguments are meant"
            message = f"{called}: {self.args[0]} ({step})"
            self.args, self.step = (message, *self.args[1:]), ""


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


class FormulaError(PtxgenError, TypeError):
    """A Python function that is no formula: a branch on a value, an unknown call, mixed types."""


class TraceError(PtxgenError, TypeError):
    """A function that cannot become a program: it reads a value, or does something else to one."""


class SavedError(PtxgenError, ValueError):
    """A saved program that cannot be loaded or written: cut, altered, or for something else."""


class UnservedError(PtxgenError, RuntimeError):
    """An operator whose rows may depend on the batch, in a strict ``batch_invariant`` block; or one
    that no program has, in a model that is to be a program (``ptxgen.torch.export``).
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
    """A kernel on the CPU device did what no kernel may do; the kinds are its subclasses.

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
    """Two accesses to shared memory, one a write, that nothing orders."""


class BarrierFault(KernelFault):
    """Misuse of a barrier, an mbarrier or an instruction of a whole warp or warpgroup: divergence,
    a wrong mask of members, number of threads or of arrivals.
    """


class DeadlockFault(KernelFault):
    """Every thread that has not exited waits."""


class StepLimitFault(KernelFault):
    """A loop that ran longer than the device allows."""


class TrapFault(KernelFault):
    """A kernel stopped itself with ``trap``."""


class NoGpuError(DeviceError):
    """This machine has no NVIDIA GPU, or no driver for one."""


class GradError(PtxgenError, RuntimeError):
    """An argument requires grad where autograd would record nothing."""


class UncoveredError(PtxgenError, LookupError):
    """No kernel serves a problem (cannot happen for proved route tables)."""

    def __init__(self, problem: str, detail: str) -> None:
        super().__init__(f"no kernel serves {problem}: {detail}")
        self.problem = problem


class IndexRangeError(PtxgenError, IndexError):
    """An index that is none of what it chooses from."""


class CacheWarning(UserWarning):
    """The kernel cache is degraded (unwritable, a damaged entry); results are unaffected."""
