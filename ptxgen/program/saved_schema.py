"""The schema of ``program.json``, the description in a saved program.

Each record declares its keys and the parser of each value once: :meth:`Record.plain` writes them,
:meth:`Record.parse` reads them. :func:`contents` parses a whole description, and then checks its
parts against each other: each index against the length of its list, each offset against the size of
its memory. Nothing is loaded or allocated meanwhile. Every fault raises :class:`Wrong`, with its
place, such as ``launches[3].params.order[1]``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from ptxgen.errors import SpecError
from ptxgen.numerics.dtype import BYTES
from ptxgen.program.buffer import ALIGN, INPUT, RESULT, TEMPORARY, Buffer, Memory
from ptxgen.program.depends import Touch
from ptxgen.program.execute import Place
from ptxgen.program.line import Line, Shown
from ptxgen.program.recorded import is_dense_aligned, layout_fault
from ptxgen.runtime.launch import Dim3, Parameters, TensorBox
from ptxgen.runtime.strided import Ints, extent
from ptxgen.spec.abi import BOX_RANK_MAX, PARAMETERS_MAX
from ptxgen.spec.base import BLOCK_LIMIT, GRID_LIMIT, THREADS_MAX

BYTES_MAX = 1 << 47
"""Largest size, stride or offset that a saved program may contain, bytes or elements: half of a
48-bit address space."""
RANK_MAX = 32
"""Most dimensions of an array in a saved program (those that NumPy 1.26 allows)."""
TEXT_MAX = 10_000
"""Longest text that a saved program may contain, characters."""

Parse = Callable[[Any, str], Any]
"""A parser: takes JSON data and its place in the file; returns the value, or raises
:class:`Wrong`."""


class Wrong(Exception):  # noqa: N818 - raised and caught where a file is read or written
    """A fault of ``program.json``; the text says its place, the value, and the accepted values."""


def wrong(at: str, got: str, takes: str) -> Wrong:
    """Returns the exception for value ``got`` at place ``at``; ``takes``: the accepted values."""
    return Wrong(f"{at} is {got}; takes {takes}")


def _shown(value: Any) -> str:
    """Formats a value for an error: shortened; only the kind of lists and objects."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    text = ascii(value)
    return text if len(text) < 80 else f"{text[:77]}..."


# -- values -----------------------------------------------------------------------------------
def whole(least: int, most: int) -> Parse:
    """Returns a parser of integers from ``least`` to ``most``."""

    def parse(value: Any, at: str) -> int:
        if type(value) is not int or not least <= value <= most:
            raise wrong(at, _shown(value), f"an integer from {least} to {most}")
        return value

    return parse


def one_of(*words: Any) -> Parse:
    """Returns a parser of strings that accepts these ``words`` alone."""

    def parse(value: Any, at: str) -> Any:
        if type(value) is not str or value not in words:
            raise wrong(at, _shown(value), " or ".join(map(repr, words)))
        return value

    return parse


def matching(pattern: str, takes: str) -> Parse:
    """Returns a parser of strings that match ``pattern``, a regular expression; ``takes`` describes
    them in errors.
    """
    form = re.compile(pattern)

    def parse(value: Any, at: str) -> str:
        if type(value) is not str or len(value) > TEXT_MAX or not form.fullmatch(value):
            raise wrong(at, _shown(value), takes)
        return value

    return parse


def text(value: Any, at: str) -> str:
    """Parses a printable string: one line, without control characters."""
    if type(value) is not str or len(value) > TEXT_MAX or not value.isprintable():
        raise wrong(at, _shown(value), f"a printable text of at most {TEXT_MAX} characters")
    return value


def flag(value: Any, at: str) -> bool:
    """Parses a JSON boolean: true or false."""
    if type(value) is not bool:
        raise wrong(at, _shown(value), "true or false")
    return value


def microseconds(value: Any, at: str) -> float:
    """Parses a time in µs."""
    if type(value) not in (int, float) or not 0 <= value <= BYTES_MAX:
        raise wrong(at, _shown(value), "a time in µs")
    return float(value)


def packed(value: Any, at: str) -> bytes:
    """Parses a kernel's packed parameter list, written as hexadecimal digits; returns its bytes."""
    parse = matching(r"(?:[0-9a-f]{2})*", f"hexadecimal digits of at most {PARAMETERS_MAX} bytes")
    found = bytes.fromhex(parse(value, at))
    if len(found) > PARAMETERS_MAX:
        raise wrong(at, f"a list of {len(found)} bytes", f"at most {PARAMETERS_MAX}")
    return found


def optional(parse: Parse) -> Parse:
    """Returns a parser of null, or of a value that ``parse`` takes."""
    return lambda value, at: None if value is None else parse(value, at)


def several(parse: Parse, least: int = 0, most: int | None = None) -> Parse:
    """Returns a parser of lists of ``least`` to ``most`` values that ``parse`` takes."""
    count = f"{least} or more" if most is None else f"{least} to {most}" if most > least else least

    def parse_all(value: Any, at: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise wrong(at, _shown(value), "a list")
        if len(value) < least or (most is not None and len(value) > most):
            raise wrong(at, _shown(value), f"{count} of them")
        return tuple(parse(each, f"{at}[{i}]") for i, each in enumerate(value))

    return parse_all


def row(make: Callable[..., Any], *parses: Parse) -> Parse:
    """Returns a parser of lists of fixed length, with one of ``parses`` for each position. The
    parser returns ``make(*values)``.
    """

    def parse(value: Any, at: str) -> Any:
        if not isinstance(value, list | tuple) or len(value) != len(parses):
            raise wrong(at, _shown(value), f"a list of {len(parses)}")
        pairs = enumerate(zip(parses, value, strict=True))
        return make(*(each(one, f"{at}[{i}]") for i, (each, one) in pairs))

    return parse


def named(parse_name: Callable[[str], bool], takes: str, parse: Parse) -> Parse:
    """Returns a parser of JSON objects with any number of keys. ``parse_name``: whether a key is
    valid; ``takes`` describes valid keys in errors; ``parse``: parser of each value.
    """

    def parse_all(value: Any, at: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise wrong(at, _shown(value), "an object")
        for name in value:
            if not parse_name(name):
                raise wrong(f"a key of {at}", _shown(name), takes)
        return {name: parse(each, f"{at}.{name}") for name, each in value.items()}

    return parse_all


class Record:
    """A JSON object with fixed keys. ``fields``: the parser of each key's value; ``make``: a
    function of the parsed values, in the order of the keys, that makes the result.
    """

    def __init__(self, make: Callable[..., Any], fields: Mapping[str, Parse]) -> None:
        self._make, self._fields = make, fields

    def plain(self, *values: Any) -> dict[str, Any]:
        """Returns the record's JSON object with these values, in the order of the keys."""
        return dict(zip(self._fields, values, strict=True))

    def parse(self, value: Any, at: str) -> Any:
        """Parses ``value``, a JSON object with exactly these keys, and returns what ``make`` makes
        of its values. ``at``: its place in errors.
        """
        if not isinstance(value, dict):
            raise wrong(at, _shown(value), "an object")
        takes = f"the keys {', '.join(self._fields)}"
        for name in self._fields.keys() - value.keys():
            raise wrong(at, f"without {name}", takes)
        for name in value.keys() - self._fields.keys():
            raise wrong(at, f"with {_shown(name)}", takes)
        prefix = f"{at}." if at != TOP else ""
        pairs = self._fields.items()
        return self._make(*(parse(value[name], f"{prefix}{name}") for name, parse in pairs))


# -- records ----------------------------------------------------------------------------------
TOP = "program.json"


class Target(NamedTuple):
    """The architecture of the kernels, and the kind of their images: "cubin" or "ptx"."""

    arch: str
    image: str


class Origin(NamedTuple):
    """The GPU that launches were chosen for, its number of SMs, and the version of NVRTC."""

    gpu: str
    sms: int
    nvrtc: str


class ArrayRecord(NamedTuple):
    """Layout of an array of the caller, or of a result (:class:`ptxgen.program.buffer.Memory`)."""

    name: str
    shape: Ints
    strides: Ints
    dtype: str
    low: int
    written: bool
    constant: bool

    def buffer(self, role: str) -> Buffer:
        """Returns a buffer that spans a new memory with this layout; ``role``: INPUT or RESULT."""
        memory = Memory(self.name, role, 0, self.low, self.written, None, self.constant)
        memory.natural = Buffer(memory, self.shape, self.strides, self.dtype)
        memory.nbytes = memory.natural.nbytes
        return memory.natural


class Kernel(NamedTuple):
    """The symbol of a kernel in its image, and its dynamic shared memory, bytes."""

    name: str
    shared: int


class Launched(NamedTuple):
    """A kernel launch of a saved program: the fields of :class:`ptxgen.runtime.launch.Prepared`,
    with the function as ``kernel``, an index into ``Contents.kernels``.
    """

    kernel: int
    grid: Dim3
    block: Dim3
    pointers: int
    what: str
    programmatic: bool
    params: Parameters


class Step(NamedTuple):
    """A step of a saved program: indices of its launches in ``Contents.launches``, sources of their
    pointers, touched byte ranges, and the earlier steps that it needs.
    """

    launches: Ints
    sources: tuple[Place | int, ...]
    touched: tuple[Touch, ...]
    needs: Ints


@dataclass(frozen=True)
class Contents:
    """Parsed ``program.json``: the fields of :class:`ptxgen.program.recorded.Recorded`, with
    indices into ``kernels`` and ``launches``.

    ``target``: the architecture and kind of image. ``made``: the GPU that launches were chosen for,
    and the version of NVRTC. ``listing``: a line for each step. ``parts``: the SHA-256 of each
    other part of the file, by name.
    """

    target: Target
    contracts: tuple[str, ...]
    made: Origin
    name: str
    arguments: tuple[Buffer, ...]
    outside: tuple[Buffer, ...]
    results: tuple[Buffer, ...]
    outputs: tuple[int | None, ...]
    names: tuple[str, ...]
    nbytes: int
    kernels: tuple[Kernel, ...]
    launches: tuple[Launched, ...]
    steps: tuple[Step, ...]
    listing: tuple[Line, ...]
    parts: Mapping[str, str]


def _buffer(role: str) -> Parse:
    return lambda value, at: _checked_buffer(ARRAY.parse(value, at), role, at)


def _checked_buffer(found: ArrayRecord, role: str, at: str) -> Buffer:
    if len(found.strides) != len(found.shape):
        takes = f"one for each of {len(found.shape)} dimensions"
        raise wrong(f"{at}.strides", f"a list of {len(found.strides)}", takes)
    b = found.buffer(role)
    low, high = _offset_range(b)
    if max(high, -low, b.nbytes, prod(max(n, 1) for n in b.shape)) > BYTES_MAX:
        raise wrong(at, f"an array of shape {_shown(b.shape)}", f"at most {BYTES_MAX} bytes")
    if role == RESULT and (found.written or found.constant or found.low or not is_dense_aligned(b)):
        raise wrong(at, "an array that is the caller's, or not row by row", "a result")
    return b


SIZE = whole(0, BYTES_MAX)
OFFSET = whole(-BYTES_MAX, BYTES_MAX)
COUNT = whole(0, (1 << 31) - 1)
SHAPE = several(SIZE, most=RANK_MAX)
DTYPE = one_of(*BYTES)
SYMBOL = matching(r"[A-Za-z][A-Za-z0-9_$]*|[_$%][A-Za-z0-9_$]+", "a name of PTX")
DIGEST = matching(r"[0-9a-f]{64}", "a SHA-256 of 64 hexadecimal digits")
CONTRACT = matching(r"[A-Za-z0-9_.-]+/[0-9]{1,9}", "a contract as name/version")
PART = re.compile(r"kernels/(0|[1-9][0-9]{0,8})|arrays/.+")

ARRAY = Record(
    ArrayRecord,
    {
        "name": text,
        "shape": SHAPE,
        "strides": several(OFFSET, most=RANK_MAX),
        "dtype": DTYPE,
        "low": whole(0, ALIGN - 1),
        "written": flag,
        "constant": flag,
    },
)
KERNEL = Record(Kernel, {"name": SYMBOL, "shared": COUNT})
_AXES = several(SIZE, 1, BOX_RANK_MAX)
_CORNER = several(OFFSET, 1, BOX_RANK_MAX)
BOX = Record(
    TensorBox,
    {
        "pointer": COUNT,
        "at": COUNT,
        "itemsize": COUNT,
        "size": _AXES,
        "pitches": several(SIZE, 0, BOX_RANK_MAX),
        "box": _AXES,
        "swizzle": COUNT,
        "steps": several(SIZE, 0, BOX_RANK_MAX),
        "corners": optional(row(lambda *ends: ends, _CORNER, _CORNER)),
    },
)
PARAMETERS = Record(
    Parameters,
    {
        "packed": packed,
        "order": several(optional(COUNT), most=PARAMETERS_MAX // 8),
        "offsets": several(COUNT, most=PARAMETERS_MAX),
        "maps": several(BOX.parse, most=PARAMETERS_MAX // 128),
    },
)


def _sizes(limits: Dim3) -> Parse:
    return row(lambda *sizes: sizes, *(whole(1, most) for most in limits))


LAUNCH = Record(
    Launched,
    {
        "kernel": COUNT,
        "grid": _sizes(GRID_LIMIT),
        "block": _sizes(BLOCK_LIMIT),
        "pointers": COUNT,
        "what": text,
        "programmatic": flag,
        "params": PARAMETERS.parse,
    },
)


def _source(value: Any, at: str) -> Place | int:
    """Parses the source of a pointer: a slot and an offset, or a constant of 8 bytes."""
    if isinstance(value, list | tuple):
        found: Place = row(Place, COUNT, OFFSET)(value, at)
        return found
    number: int = whole(0, (1 << 64) - 1)(value, at)
    return number


STEP = row(
    Step,
    several(COUNT, 1),
    several(_source),
    several(row(Touch, COUNT, OFFSET, OFFSET, flag)),
    several(COUNT),
)
SHOWN = row(Shown, text, one_of(INPUT, RESULT, TEMPORARY), DTYPE, SHAPE)
LINE = row(Line, text, several(text), several(SHOWN), several(SHOWN), SIZE, microseconds)
CONTENTS = Record(
    Contents,
    {
        "for": Record(Target, {"arch": text, "image": text}).parse,
        "contracts": several(CONTRACT),
        "made": Record(Origin, {"gpu": text, "sms": COUNT, "nvrtc": text}).parse,
        "name": text,
        "arguments": several(_buffer(INPUT), 1),
        "outside": several(_buffer(INPUT)),
        "results": several(_buffer(RESULT)),
        "outputs": several(optional(COUNT)),
        "names": several(text),
        "nbytes": SIZE,
        "kernels": several(KERNEL.parse),
        "launches": several(LAUNCH.parse),
        "steps": several(STEP),
        "listing": several(LINE),
        "parts": named(
            lambda name: bool(PART.fullmatch(name)), "kernels/NUMBER or arrays/NAME", DIGEST
        ),
    },
)


# -- a whole description ----------------------------------------------------------------------
def contents(value: Any, max_shared: int) -> Contents:
    """Parses ``program.json`` and checks its parts against each other. Raises :class:`Wrong`.

    ``max_shared``: bytes of shared memory that the device allows a CTA.
    """
    found: Contents = CONTENTS.parse(value, TOP)
    _check_arrays(found)
    _check_launches(found, max_shared)
    _check_steps(found)
    _check_parts(found)
    return found


def _index(value: int, count: int, at: str, of: str) -> None:
    if value >= count:
        raise wrong(at, str(value), f"the number of one of {count} {of}")


def _offset_range(b: Buffer) -> tuple[int, int]:
    """Returns the byte range [low, high) of valid offsets into an array. An empty array counts as
    one element along each empty axis, since views of it begin there.
    """
    return extent(tuple(max(n, 1) for n in b.shape), b.strides, b.itemsize)


def _check_arrays(of: Contents) -> None:
    for i, b in enumerate(of.arguments):
        if not is_dense_aligned(b):
            raise Wrong(f"arguments[{i}] {layout_fault(b)}")
    _check_names((b.memory.name for b in of.arguments), "arguments[{}].name")
    _check_names((b.memory.name for b in of.outside), "outside[{}].name")
    _check_names(of.names, "names[{}]")
    if of.names and len(of.names) != len(of.outputs):
        takes = f"one for each of {len(of.outputs)} outputs, or none"
        raise wrong("names", f"a list of {len(of.names)}", takes)
    slots = (*of.arguments, *of.outside)
    first = len(slots)
    for i, slot in enumerate(of.outputs):
        own = slot is not None and slot < first and slots[slot].memory.written
        if not (slot is None or own or first <= slot < first + len(of.results)):
            takes = "null, or the slot of a result or of an array that is written"
            raise wrong(f"outputs[{i}]", str(slot), takes)


def _check_names(names: Iterable[str], place: str) -> None:
    """Raises :class:`Wrong` for a name that occurs twice; ``place``: format of its place."""
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name in seen:
            raise wrong(place.format(i), f"{_shown(name)} again", "another name for each")
        seen.add(name)


def _check_launches(of: Contents, max_shared: int) -> None:
    for i, kernel in enumerate(of.kernels):
        if kernel.shared > max_shared:
            raise wrong(f"kernels[{i}].shared", str(kernel.shared), f"at most {max_shared} bytes")
    for i, launch in enumerate(of.launches):
        at = f"launches[{i}]"
        _index(launch.kernel, len(of.kernels), f"{at}.kernel", "kernels")
        if prod(launch.block) > THREADS_MAX:
            raise wrong(f"{at}.block", str(list(launch.block)), f"at most {THREADS_MAX} threads")
        for place, got, takes in launch.params.faults(launch.pointers):
            raise wrong(f"{at}.params.{place}", got, takes)
        for j, box in enumerate(launch.params.maps):
            _check_box(box, f"{at}.params.maps[{j}]")


def _check_box(box: TensorBox, at: str) -> None:
    from ptxgen.interp.units.tma import TensorMap  # which knows all limits of tensor maps

    corners = box.corners or ()
    layout = box.itemsize, box.size, box.pitches, box.box, box.steps, box.swizzle
    try:
        TensorMap(0, *layout, *corners)
    except SpecError as error:
        raise wrong(at, "no tensor map", f"one of CUDA's ({error})") from None


def _check_steps(of: Contents) -> None:
    slots = (*of.arguments, *of.outside, *of.results)
    ranges = [(*_offset_range(b), b.memory.role == RESULT or b.memory.written) for b in slots]
    ranges += [(0, of.nbytes, True)] if of.nbytes else []
    if len(of.listing) != len(of.steps):
        raise wrong("listing", _shown(of.listing), f"a line for each of {len(of.steps)} steps")
    written = set()
    for i, step in enumerate(of.steps):
        at = f"steps[{i}]"
        for j, number in enumerate(step.launches):
            _index(number, len(of.launches), f"{at}[0][{j}]", "launches")
            if (count := of.launches[number].pointers) != len(step.sources):
                raise wrong(f"{at}[1]", _shown(step.sources), f"the {count} pointers of its launch")
        for j, source in enumerate(step.sources):
            if isinstance(source, Place):
                _index(source.slot, len(ranges), f"{at}[1][{j}][0]", "slots")
                low, high, _ = ranges[source.slot]
                whole(low, high)(source.offset, f"{at}[1][{j}][1]")
        for j, touch in enumerate(step.touched):
            place = f"{at}[2][{j}]"
            _index(touch.slot, len(ranges), f"{place}[0]", "slots")
            low, high, writable = ranges[touch.slot]
            whole(low, high)(touch.low, f"{place}[1]")
            whole(touch.low, high)(touch.high, f"{place}[2]")
            if touch.written and not writable:
                raise wrong(f"{place}[3]", "true", "false, as what it touches is only read")
            written |= {touch.slot} if touch.written else set()
        for j, number in enumerate(step.needs):
            _index(number, i, f"{at}[3][{j}]", "earlier steps")
    first = len(of.arguments) + len(of.outside)
    for i, b in enumerate(of.results):
        if b.size and first + i not in written:
            raise wrong(f"results[{i}]", "an array that no step writes", "one that is written")


def _check_parts(of: Contents) -> None:
    kernels = {f"kernels/{i}" for i in range(len(of.kernels))}
    arrays = {f"arrays/{b.memory.name}" for b in of.outside}
    for name in kernels - of.parts.keys():
        raise wrong("parts", f"without {name}", "the image of each kernel")
    for name in of.parts.keys() - kernels - arrays:
        raise wrong("parts", f"with {_shown(name)}", "kernels, and arrays from outside")
