"""The dispatcher: chooses the kernels that serve a problem.

:func:`choose` calls the generated code of ``generated/``, which ``emit`` writes from the
route tables of ``tiles``; ``explain`` says why a kernel was chosen; ``prove`` proves that
the generated code is safe and complete.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import cache, partial
from importlib import import_module

from ptxgen.cost.gpu import Rates
from ptxgen.cost.tuning import tuning_for
from ptxgen.dispatch.choice import Candidate, Choice, Dispatch, best, by_architecture
from ptxgen.errors import OptionError, UncoveredError, proposal
from ptxgen.spec import ARCHITECTURES, Key, RouteTable
from ptxgen.tiles import TABLES

__all__ = ["Candidate", "Choice", "accepted", "candidates", "choose"]

LISTED = 16
"""Maximum number of options that an error message lists if it also proposes the closest one."""

_installed: dict[Key, dict[str, Dispatch]] = {}
"""Dispatch functions, by table and architecture, of tables that were registered at run time."""


def choose(
    table: Key,
    values: Mapping[str, int],
    *,
    arch: str,
    sms: int,
    dtype: Hashable = None,
    gpu: str | None = None,
    rates: Rates | None = None,
    count: int = 1,
    what: str = "",
) -> Choice:
    """Returns the kernels that run a problem: the route with the shortest predicted time, or in an
    ordered table the first whose conditions hold.

    ``table``: the key of a route table; ``values``: the variables of its space, each in its domain,
    except SMS, which is ``sms``. ``dtype``: one that the table serves (default: its first).
    ``gpu``: the GPU's name. A tuning for this name and ``sms`` predicts the times; if there is
    none, the default tuning does, scaled by ``rates`` (default: those of a typical GPU of
    ``arch``). ``count``: problems in one launch; above 1, kernels that take no batches are left
    out. ``what``: the problem's name in errors.

    Raises OptionError for an unknown table, architecture or dtype, and UncoveredError when no
    kernel serves the problem.
    """
    found = candidates(
        table, values, arch=arch, sms=sms, dtype=dtype, gpu=gpu, rates=rates, count=count, what=what
    )
    choice = best(found)
    assert choice is not None, "candidates() raises where there is none"
    return choice


def candidates(
    table: Key,
    values: Mapping[str, int],
    *,
    arch: str,
    sms: int,
    dtype: Hashable = None,
    gpu: str | None = None,
    rates: Rates | None = None,
    count: int = 1,
    what: str = "",
    named: bool = True,
) -> list[Candidate]:
    """Returns all routes (kernel sequences) that are correct for a problem, with predicted times,
    in the order of their table.

    In an ordered table, returns only the one of :func:`choose`. ``named``: whether to name the
    kernels for ``dtype``, not those for the table's first dtype. Other arguments and errors as in
    :func:`choose`.
    """
    function = _dispatch(table, arch)
    kind = TABLES[table]
    dtype = kind.dtypes[0] if dtype is None else dtype
    if not kind.takes(dtype):
        raise accepted(f"dtype of {' '.join(table)}", dtype, map(str, kind.dtypes))
    given = {**values, "SMS": sms}

    def uncovered(why: str) -> UncoveredError:
        problem = what or " ".join((*table, *(f"{n}={v}" for n, v in values.items())))
        return UncoveredError(problem, why)

    for name, domain in kind.space.variables:
        if given[name] not in domain:
            raise uncovered(f"{name} is {given[name]}; takes {domain}")
    tuning, _ = tuning_for(arch, None if gpu is None else (gpu, sms), rates)
    arguments = (given[name] for name in kind.space.arguments)
    correct = function(*arguments, time=partial(tuning.time, count=count))
    pairs = ((each, kind.routes[each.choice.route]) for each in correct)
    found = [c for c, route in pairs if (count == 1 or route.batched) and route.takes(dtype)]
    if not found:
        raise uncovered(f"no route of {arch} with {sms} SMs admits it")
    if not named or dtype == kind.dtypes[0]:
        return found  # generated code names the kernels for the table's first dtype
    return [
        Candidate(us, choice._replace(kernels=kind.route(choice.route, dtype).names))
        for us, choice in found
    ]


def accepted(what: str, value: object, options: Iterable[str]) -> OptionError:
    """Returns the error for an unknown value of an option, with the closest known value."""
    known = sorted(options)
    close = proposal(value, known)
    if close and len(known) > LISTED:
        return OptionError(f"unknown {what} {value!r}{close}")
    return OptionError(f"unknown {what} {value!r}{close}; accepted: {', '.join(map(repr, known))}")


def made(tables: Mapping[Key, RouteTable]) -> dict[Key, dict[str, Dispatch]]:
    """Generates and compiles dispatch functions for tables that were registered at run time.

    Returns them by table and architecture.
    """
    from ptxgen.dispatch import emit

    return {each.key: emit.functions(each) for each in emit.tables(tables)}


def install(functions: Mapping[Key, dict[str, Dispatch]]) -> None:
    """Adds the dispatch functions that :func:`made` returned, for :func:`choose` to call."""
    _installed.update(functions)


def _dispatch(table: Key, arch: str) -> Dispatch:
    from ptxgen.dispatch.generated import TABLES as GENERATED

    if arch not in ARCHITECTURES:
        raise accepted("architecture", arch, ARCHITECTURES)
    if table in _installed:
        return _installed[table][arch]
    if table not in GENERATED:
        raise accepted("table", " ".join(table), (" ".join(key) for key in TABLES))
    return functions_of(table)[arch]


@cache
def functions_of(table: Key) -> dict[str, Dispatch]:
    """Returns the generated dispatch functions of a table, by architecture."""
    from ptxgen.dispatch.generated import TABLES as GENERATED

    module = import_module(f"ptxgen.dispatch.generated.{GENERATED[table]}")
    return by_architecture(module.candidates, table)
