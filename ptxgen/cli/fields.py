"""The fields of a kernel's spec, as ``ptxgen show`` lists them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, NamedTuple

from ptxgen.spec import KernelSpec


class Field(NamedTuple):
    """A field of a kernel's spec: its name, value and meaning."""

    name: str
    value: str
    meaning: str


def table_of(spec: KernelSpec) -> Iterator[Field]:
    """Yields the fields of a spec, in the order of its declaration."""
    for field in fields(spec):
        yield Field(field.name, _text(getattr(spec, field.name)), spec.meanings[field.name])


def _text(value: Any) -> str:
    return "-" if value == "" else str(value)
