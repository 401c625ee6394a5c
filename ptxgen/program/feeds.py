"""Arguments and outputs of a replayed program by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ptxgen.errors import OptionError, TraceError, described, proposal
from ptxgen.program.recorded import Recorded


def names(of: Recorded) -> tuple[str, ...]:
    """Returns the name of each argument."""
    return tuple(b.memory.name for b in of.arguments)


def matched(of: Recorded, given: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Returns all arguments by name, in their order: ``given`` by position, the others by name.

    Raises TraceError for an argument too many, one that is missing, an unknown name, and a name
    that is given twice.
    """
    known = names(of)
    if len(given) > len(known) or (not named and len(given) < len(known)):
        raise TraceError(
            f"{of.name} was captured with {len(known)} arguments; got {len(given)}"
            + (f" and {', '.join(named)}" if named else "")
        )
    for name in named:
        if name not in known:
            listed = ", ".join(known)
            raise TraceError(
                f"{of.name} has no input {name!r}{proposal(name, known)}; has {listed}"
            )
        if name in known[: len(given)]:
            raise TraceError(f"{of.name} is given {name} twice, by position and by name")
    found = dict(zip(known, given, strict=False)) | dict(named)
    for name in known:
        if name not in found:
            raise TraceError(f"{of.name} is not given its input {name}")
    return {name: found[name] for name in known}


def selected(of: Recorded, outputs: Sequence[str | int] | None) -> tuple[int, ...]:
    """Returns the indices of the outputs that a caller asks for by name or index; of all outputs
    for None. Raises OptionError for an unknown one, one that is asked for twice, and none at all.
    """
    count = len(of.outputs)
    if outputs is None:
        return tuple(range(count))
    if isinstance(outputs, str) or not isinstance(outputs, Sequence) or not len(outputs):
        takes = "a sequence of names" if of.names else "a sequence of indices"
        raise OptionError(f"outputs is {described(outputs)}; takes {takes}")
    found = []
    for each in outputs:
        if isinstance(each, str) and each in of.names:
            found.append(of.names.index(each))
        elif type(each) is int and 0 <= each < count:
            found.append(each)
        else:
            listed = ", ".join(of.names) or f"0 to {count - 1}"
            near = proposal(each, of.names) if isinstance(each, str) else ""
            raise OptionError(f"{of.name} has no output {described(each)}{near}; has {listed}")
        if found[-1] in found[:-1]:
            raise OptionError(f"{of.name} is asked for output {each!r} twice")
    return tuple(found)


def output_name(of: Recorded, index: int) -> str:
    """Returns the name of an array passed for an output, for errors."""
    if of.names:
        return f"out[{of.names[index]!r}]"
    return "out" if len(of.outputs) == 1 else f"out[{index}]"


def targets(of: Recorded, chosen: Sequence[int], asked: bool, out: Any) -> list[Any]:
    """Returns the array that the caller passes as ``out`` for each chosen output, or None.

    ``asked``: whether the caller chose the outputs. Raises TraceError for an ``out`` of another
    form than the results, and for an output that is no result of its own.
    """
    if out is None:
        return [None] * len(chosen)
    if of.names:
        if not isinstance(out, Mapping):
            kind = type(out).__qualname__
            raise TraceError(f"out is a {kind}; takes a mapping, as {of.name} names its outputs")
        own = [of.names[i] for i in chosen]
        for name in out:
            if name not in own:
                raise TraceError(
                    f"out has {described(name)}{proposal(name, own)}; takes {', '.join(own)}"
                )
        found = [out.get(name) for name in own]
    elif isinstance(out, tuple | list):
        if len(out) != len(chosen):
            raise TraceError(f"out has {len(out)} arrays; takes one for each of {len(chosen)}")
        found = [*out]
    elif len(of.outputs) > 1 or asked:
        kind = type(out).__qualname__
        raise TraceError(f"out is a {kind}; takes a tuple of {len(chosen)}")
    else:
        found = [out]
    for i, each in zip(chosen, found, strict=True):
        if each is not None and not of.is_result(of.outputs[i]):
            what = "None" if of.outputs[i] is None else "an array that is written in place"
            raise TraceError(f"{output_name(of, i)} is given, and the output is {what}")
    return found


def formed(of: Recorded, chosen: Sequence[int], asked: bool, values: Sequence[Any]) -> Any:
    """Returns the chosen outputs as the caller receives them: a dict if the outputs have names,
    else one array or a tuple. ``asked``: whether the caller chose the outputs.
    """
    if of.names:
        return {of.names[i]: x for i, x in zip(chosen, values, strict=True)}
    return values[0] if len(of.outputs) == 1 and not asked else tuple(values)
