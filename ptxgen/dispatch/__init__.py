"""From a problem to the kernels that serve it.

:func:`choose` calls the generated code of ``generated/``, which ``emit`` writes from the
route tables of ``tiles``; ``explain`` says why a kernel was chosen; ``prove`` proves that
the generated code is safe and complete.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from ptxgen.dispatch.choice import Choice, Dispatch
from ptxgen.errors import OptionError, UncoveredError
from ptxgen.numerics.contract import OPERATIONS
from ptxgen.spec import ARCHITECTURES, DIM_MAX

__all__ = ["Choice", "choose"]


def choose(
    op: str,
    layout: str,
    m: int,
    n: int,
    k: int,
    *,
    arch: str,
    sms: int,
    align_a: int,
    align_b: int,
    dtype: str = "f32",
    tier: str = "simt",
    gpu: str | None = None,
) -> Choice:
    """The kernels that serve a problem of the operation ``op``.

    ``m``, ``n``, ``k``: the operation's own dimensions, each 1 .. 2^31 - 1 (an empty
    reduction is served by the kernels of k = 1). ``align_a``, ``align_b``: 2, 4, 8 or 16, the
    alignment of the operands A and B of the *product* (``OPERATIONS[op].products[layout]``
    says which argument is which). ``gpu``: the GPU's name; if there is a profile of a GPU of
    this name and ``sms``, it decides.

    Raises OptionError for an unknown op, layout, arch, dtype or tier, and UncoveredError
    when no kernel serves the problem.
    """
    device = None if gpu is None else (gpu, sms)
    function, (i_m, i_n, i_k) = _dispatch(op, layout, arch, dtype, tier, device)
    dims = (m, n, k)
    choice = None
    if min(dims) >= 1 and max(dims) <= DIM_MAX:
        choice = function(dims[i_m], dims[i_n], dims[i_k], sms, align_a, align_b)
    if choice is None:
        raise UncoveredError(op, m, n, k, _why_uncovered(dims, arch, sms, align_a, align_b))
    return choice


def accepted(what: str, value: object, options: Iterable[str]) -> OptionError:
    """The error of an unknown value of an option."""
    known = ", ".join(sorted(repr(o) for o in options))
    return OptionError(f"unknown {what} {value!r}; accepted: {known}")


@cache
def _dispatch(
    op: str, layout: str, arch: str, dtype: str, tier: str, device: tuple[str, int] | None
) -> tuple[Dispatch, tuple[int, int, int]]:
    """The generated function, and where the product's m, n, k are among the operation's."""
    from ptxgen.dispatch.generated import MEASURED, TABLES

    if op not in OPERATIONS:
        raise accepted("operation", op, OPERATIONS)
    operation = OPERATIONS[op]
    if layout not in operation.products:
        raise accepted(f"layout of {op}", layout, operation.products)
    if arch not in ARCHITECTURES:
        raise accepted("architecture", arch, ARCHITECTURES)
    product = operation.products[layout]
    key = (product.layout, operation.plan_name, dtype, tier)
    if key not in TABLES:
        served = [f"{t[2]} {t[3]}" for t in TABLES if t[:2] == key[:2]]
        raise accepted(f"dtype and tier of {op} ({layout})", f"{dtype} {tier}", served)
    first, second, third = ("MNK".index(d) for d in product.dims)
    measured = MEASURED.get(device, {}).get(key, {}) if device else {}
    return measured.get(arch) or TABLES[key][arch], (first, second, third)


def _why_uncovered(
    dims: tuple[int, int, int], arch: str, sms: int, align_a: int, align_b: int
) -> str:
    if not all(1 <= d <= DIM_MAX for d in dims):
        return f"every dimension must be between 1 and {DIM_MAX}"
    return f"no route of {arch} with {sms} SMs admits alignments {align_a} and {align_b} bytes"
