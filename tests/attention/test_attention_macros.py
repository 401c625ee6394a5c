"""Files of macros that attention's templates import by what a spec says: one interface for each
kind.
"""

from __future__ import annotations

import inspect
import re

import pytest

from ptxgen.build.render import environment
from ptxgen.spec.attention import HopperSpec, MaskedSpec, PagedSpec
from ptxgen.spec.attention_grad import HopperGradSpec, MaskedGradSpec
from ptxgen.spec.attention_mask import MaskSpec

FORWARD = ("attention/hopper.cu.j2",)
GRADIENTS = "attention/hopper_dq.cu.j2", "attention/hopper_dkdv.cu.j2"
SPECS = (HopperSpec, PagedSpec, MaskedSpec, HopperGradSpec, MaskedGradSpec)
KINDS = [(kind, "mask", GRADIENTS if "Grad" in kind.__name__ else FORWARD) for kind in SPECS]
KINDS += [(kind, "bring", FORWARD) for kind in (HopperSpec, PagedSpec, MaskedSpec)]


@pytest.mark.parametrize(("kind", "name", "templates"), KINDS)
def test_macros_are_those_that_templates_call(kind, name, templates):
    made = environment()
    sources = [made.loader.get_source(made, template)[0] for template in templates]
    called = {call for source in sources for call in re.findall(rf"\b{name}\.(\w+)\(", source)}
    module = made.get_template(getattr(kind, f"{name}_macros")).module
    found = {macro for macro in dir(module) if not macro.startswith("_")}
    assert called
    assert called == found - {"bring"}, "a file may have one for itself"


@pytest.mark.parametrize("kind", (*SPECS, MaskSpec))
def test_kernels_have_few_flags(kind):
    flags = {
        name
        for one in kind.__mro__
        for name, said in inspect.get_annotations(one).items()
        if "ClassVar[bool]" in str(said)
    }
    assert len(flags) <= 3, flags
