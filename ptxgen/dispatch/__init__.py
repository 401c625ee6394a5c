"""From a problem to the kernels that serve it.

:func:`choose` calls the generated code of ``generated/``, which ``emit`` writes from the
route tables of ``tiles``; ``explain`` says why a kernel was chosen; ``prove`` proves that
the generated code is safe and complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module

from ptxgen.dispatch.choice import Choice, Dispatch
from ptxgen.errors import OptionError, UncoveredError
from ptxgen.spec import ARCHITECTURES, Key
from ptxgen.tiles import TABLES

__all__ = ["Choice", "accepted", "choose"]

_installed: dict[Key, dict[str, Dispatch]] = {}
"""Dispatch functions by architecture of tables that were registered while the program ran."""


def choose(
    table: Key,
    values: Mapping[str, int],
    *,
    arch: str,
    sms: int,
    dtype: str | None = None,
    gpu: str | None = None,
    what: str = "",
) -> Choice:
    """The kernels that serve a problem.

    ``table``: the key of a route table; ``values``: the variables of its space, each in its domain,
    but for SMS, which is ``sms``. ``dtype``: one of those that the table serves (default: its
    first). ``gpu``: the GPU's name; if there is a tuning of a GPU of this name and ``sms``, it
    decides. ``what``: the problem's name in errors.

    Raises OptionError for an unknown table, architecture or dtype, and UncoveredError when no
    kernel serves the problem.
    """
    function = _dispatch(table, arch, None if gpu is None else (gpu, sms))
    found = TABLES[table]
    dtype = found.dtypes[0] if dtype is None else dtype
    if dtype not in found.dtypes:
        raise accepted(f"dtype of {' '.join(table)}", dtype, found.dtypes)
    given = {**values, "SMS": sms}
    named = what or " ".join((*table, *(f"{n}={v}" for n, v in values.items())))
    for name, domain in found.space.variables:
        if given[name] not in domain:
            raise UncoveredError(named, f"{name} is {given[name]}; takes {domain}")
    choice = function(*(given[name] for name in found.space.arguments))
    if choice is None:
        raise UncoveredError(named, f"no route of {arch} with {sms} SMs admits it")
    if dtype == found.dtypes[0]:
        return choice
    twin = found.named[choice.name].of(dtype)  # the code names the first's
    return choice._replace(kernels=tuple(k.name for k in twin.kernels), called=twin.called)


def accepted(what: str, value: object, options: Iterable[str]) -> OptionError:
    """The error of an unknown value of an option."""
    known = ", ".join(sorted(repr(o) for o in options))
    return OptionError(f"unknown {what} {value!r}; accepted: {known}")


def install(table: Key) -> None:
    """Makes :func:`choose` know a table of ``tiles.TABLES`` that no generated module has."""
    from ptxgen.dispatch.emit import functions, tables

    (made,) = tables({table: TABLES[table]})
    _installed[table] = functions(made)


def _dispatch(table: Key, arch: str, device: tuple[str, int] | None) -> Dispatch:
    from ptxgen.dispatch.generated import MEASURED
    from ptxgen.dispatch.generated import TABLES as GENERATED

    if arch not in ARCHITECTURES:
        raise accepted("architecture", arch, ARCHITECTURES)
    if table in _installed:
        return _installed[table][arch]
    if table not in GENERATED:
        raise accepted("table", " ".join(table), (" ".join(key) for key in TABLES))
    measured = MEASURED.get(device, {}).get(table) if device else None
    found = functions_of(measured).get(arch) if measured else None
    return found or functions_of(GENERATED[table])[arch]


@cache
def functions_of(module: str) -> dict[str, Dispatch]:
    """The functions of a generated module, by architecture."""
    found: dict[str, Dispatch] = import_module(f"ptxgen.dispatch.generated.{module}").BY_ARCH
    return found
