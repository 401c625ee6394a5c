"""Spec to source text: one strict Jinja environment, which hands the template the spec."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2

    from ptxgen.spec import KernelSpec


@cache
def environment() -> jinja2.Environment:
    """The one environment: undefined names are errors, blocks leave no blank lines."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader("ptxgen", "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def render(spec: KernelSpec) -> str:
    """The CUDA C++ source of ``spec``."""
    from ptxgen import activation
    from ptxgen.spec import base

    template = environment().get_template(spec.template)
    return template.render(spec=spec, activation=activation, base=base)
