"""Measured tunings: which kernel is the fastest choice where, on one GPU.

A tuning is a JSON file that ``ptxgen tune`` writes, named after the GPU and its number of SMs.
For each route table that was measured it has *rules*: boxes of M, N and K and the kernel that
was fastest in them. They come before the table's own routes, those of them that the rules leave
something to. GPUs without a tuning, and tables that a tuning does not have, are served by the
tables in :mod:`ptxgen.tiles`.

A rule only picks among the kernels of the table, all of which return the same bits, so a
tuning costs or saves time and cannot change a result. A tuning that names a kernel which the
table no longer has is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ptxgen.errors import SpecError
from ptxgen.expr import Expr, all_of
from ptxgen.numerics.contract import K, M, N
from ptxgen.spec import ALIGN_A, ALIGN_B, ARCHITECTURES, LAYOUTS, Key, Route
from ptxgen.tiles import ROUTES

FOLDER = Path(__file__).parent

Bounds = tuple[int | None, int | None]
"""The least and the largest value, both inside; None where there is no bound."""
ANY: Bounds = (None, None)
ALIGNMENTS = (1, 2, 4, 8, 16)
"""Least alignments that a rule may ask for, in bytes."""


@dataclass(frozen=True)
class Rule:
    """A route of a table, by name, and the box where it is the fastest.

    ``align``: only for A and B of at least these alignments, in bytes; 1 admits any. Raises
    SpecError for a box that has no problem.
    """

    kernel: str
    reason: str
    m: Bounds = ANY
    n: Bounds = ANY
    k: Bounds = ANY
    align: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        for size, (low, high) in (("m", self.m), ("n", self.n), ("k", self.k)):
            known = [bound for bound in (low, high) if bound is not None]
            if not all(type(bound) is int and bound >= 1 for bound in known):
                raise SpecError(
                    f"rule of {self.kernel}: {size} is [{low}, {high}]; takes whole numbers from "
                    "1 on, or null where there is no bound"
                )
            if known != sorted(known):
                raise SpecError(
                    f"rule of {self.kernel}: {size} is [{low}, {high}]; the least comes first"
                )
        if not all(type(least) is int and least in ALIGNMENTS for least in self.align):
            raise SpecError(
                f"rule of {self.kernel}: align is {list(self.align)}; takes two of "
                f"{', '.join(map(str, ALIGNMENTS))}"
            )

    @property
    def prefer(self) -> Expr:
        """The box as a predicate."""
        terms = []
        for size, (low, high) in ((M, self.m), (N, self.n), (K, self.k)):
            terms += [size >= low] if low is not None else []
            terms += [size <= high] if high is not None else []
        for align, least in zip((ALIGN_A, ALIGN_B), self.align, strict=True):
            terms += [align >= least] if least > 1 else []
        return all_of(terms)


@dataclass(frozen=True)
class Rules:
    """What a tuning says of one table: ordered rules, ``then`` routes of the table itself."""

    rules: tuple[Rule, ...]
    then: tuple[str, ...]
    """Names of the table's routes that still serve something, in the table's order."""

    def routes(self, table: Sequence[Route], what: str) -> tuple[Route, ...]:
        """The table in this tuning's order. Raises SpecError for a kernel it does not have."""
        known = {route.name: route for route in reversed(table)}
        for name in (*(rule.kernel for rule in self.rules), *self.then):
            if name not in known:
                raise SpecError(
                    f"{what} names the kernel {name}, which no route of the table is named after "
                    "(any more): measure again with `ptxgen tune`, or edit the tuning"
                )
        ruled = (Route(known[r.kernel].steps, r.prefer, r.reason) for r in self.rules)
        return (*ruled, *(route for route in table if route.name in self.then))


@dataclass(frozen=True)
class Tuning:
    """The measured rules of one GPU: its name, as the driver gives it, and its SMs."""

    gpu: str
    sms: int
    arch: str
    measured: str
    """When and with what, for people."""
    tables: Mapping[Key, Rules] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.arch not in ARCHITECTURES:
            raise SpecError(f"tuning {self.name}: arch {self.arch!r}: known: {[*ARCHITECTURES]}")

    @property
    def name(self) -> str:
        """The file's name, such as "h200_132"."""
        return tuning_name(self.gpu, self.sms)

    def routes(self, key: Key, tables: Mapping[Key, Sequence[Route]] = ROUTES) -> tuple[Route, ...]:
        """The routes of a table of this tuning."""
        what = f"tiles/tunings/{self.name}.json, {' '.join(key)},"
        if key not in tables:
            raise SpecError(f"{what} is about a table that there is not (any more)")
        return self.tables[key].routes(tables[key], what)


def tuning_name(gpu: str, sms: int) -> str:
    """``"h200_132"`` for ``("NVIDIA H200", 132)``."""
    words = re.findall(r"[a-z0-9]+", gpu.lower())
    return "_".join([word for word in words if word != "nvidia"] + [str(sms)])


@cache
def tunings(folder: Path = FOLDER) -> tuple[Tuning, ...]:
    """All tunings of ``folder``, by name. Raises SpecError for a file that is none."""
    return tuple(read(path) for path in sorted(folder.glob("*.json")))


# -- files ------------------------------------------------------------------------
def read(path: Path) -> Tuning:
    """The tuning in a file. Raises SpecError for one that is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        tuning = Tuning(
            gpu=_text(found["gpu"]),
            sms=int(found["sms"]),
            arch=_text(found["arch"]),
            measured=_text(found["measured"]),
            tables={
                _key(name): Rules(
                    tuple(_rule(each) for each in table["rules"]), tuple(map(_text, table["then"]))
                )
                for name, table in found["tables"].items()
            },
        )
    except SpecError as error:
        raise SpecError(f"{path} holds no tuning of `ptxgen tune`: {error}") from error
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise SpecError(f"{path} holds no tuning of `ptxgen tune`: {error!r}") from error
    if path.stem != tuning.name:
        raise SpecError(f"{path} holds the tuning {tuning.name}; a tuning's name is its file's")
    return tuning


def write(tuning: Tuning, path: Path) -> None:
    """Writes a tuning, one rule a line, so that a change is read as a line."""
    tables = []
    for key, table in sorted(tuning.tables.items()):
        rules = ",\n".join(f"        {json.dumps(_record(rule))}" for rule in table.rules)
        then = ",\n".join(f"        {json.dumps(name)}" for name in table.then)
        tables.append(
            f"    {json.dumps(' '.join(key))}: {{\n"
            f'      "rules": [\n{rules}\n      ],\n      "then": [\n{then}\n      ]\n    }}'
        )
    head = "".join(
        f"  {json.dumps(name)}: {json.dumps(getattr(tuning, name))},\n"
        for name in ("gpu", "sms", "arch", "measured")
    )
    body = ",\n".join(tables)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{\n{head}  "tables": {{\n{body}\n  }}\n}}\n', encoding="utf-8")


def _record(rule: Rule) -> dict[str, Any]:
    """A rule for JSON; what is unbounded is left out."""
    found: dict[str, Any] = {"kernel": rule.kernel}
    found |= {size: getattr(rule, size) for size in "mnk" if getattr(rule, size) != ANY}
    if rule.align != (1, 1):
        found["align"] = rule.align
    return {**found, "reason": rule.reason}


def _rule(found: Mapping[str, Any]) -> Rule:
    unknown = found.keys() - {"kernel", "reason", "m", "n", "k", "align"}
    if unknown:
        raise ValueError(f"a rule has {sorted(unknown)}")
    bounds = {size: _bounds(found[size]) for size in "mnk" if size in found}
    a, b = found.get("align", (1, 1))
    return Rule(_text(found["kernel"]), _text(found["reason"]), align=(a, b), **bounds)


def _bounds(found: Sequence[int | None]) -> Bounds:
    low, high = found
    return low, high


def _key(name: str) -> Key:
    layout, plan, width, tier = name.split()
    if layout not in LAYOUTS:
        raise ValueError(f"{name!r} names no table")
    return layout, plan, width, tier


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value
