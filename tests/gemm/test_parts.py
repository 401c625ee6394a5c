"""The parts of a GEMM kernel: what fits together, and one interface for each kind."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from functools import cached_property

import jinja2
import pytest

from ptxgen.build.render import environment, render
from ptxgen.errors import SpecError
from ptxgen.spec.conv import ConvGatherSpec
from ptxgen.spec.f64 import F64Spec, FmaUnits, TensorCores
from ptxgen.spec.gemm.loads import Decode, Gather, GatherSums, Tma, TmaIm2col, TmaPanels
from ptxgen.spec.gemm.parts import Parts
from ptxgen.spec.gemm.rasters import Bands, Chunk, Walk, WalkGroups
from ptxgen.spec.gemm.schedules import Batch, Chunks, Groups, Phases, Tiles
from ptxgen.spec.gemm.splits import ClusterSums, OneChain, Serial, Slices, Turns, Unsplit, Workspace
from ptxgen.spec.gemm.staged import StagedSpec
from ptxgen.spec.gemm.stores import PartialSums, Rows, Segments, Transposed, TransposedSums
from ptxgen.spec.mma import MmaSpec
from ptxgen.spec.simt import SimtSpec
from ptxgen.spec.wgmma import WgmmaSpec
from ptxgen.tiles import SPECS

KINDS = {
    "schedule": (Tiles, Batch, Chunks, Groups, Phases),
    "load": (Tma, TmaIm2col, TmaPanels, Gather, GatherSums, Decode),
    "split": (Unsplit, Serial),
    "store": (Rows, Transposed, PartialSums, TransposedSums, Segments),
}
SPEC = WgmmaSpec("NN", 128, 128, 64, 2, 4)


@dataclass(frozen=True)
class Mixed(WgmmaSpec):
    """A kernel of parts that a test chooses."""

    mixed: Parts | None = None

    @cached_property
    def parts(self) -> Parts:
        return self.mixed or super().parts


def made(spec: WgmmaSpec = SPEC, **parts: object) -> Mixed:
    """``spec`` with other ``parts``."""
    given = {field.name: getattr(spec, field.name) for field in fields(spec)}
    return Mixed(**given, mixed=replace(spec.parts, **parts))


def interface(macros: str) -> set[str]:
    """The macros of a part that the template of the kernel calls."""
    module = environment().get_template(macros).module
    return {name for name in dir(module) if not name.startswith("_")}


@pytest.mark.parametrize("kind", KINDS)
def test_all_parts_of_a_kind_define_what_the_kernel_calls(kind):
    source, _, _ = environment().loader.get_source(environment(), SPEC.template)
    called = set(re.findall(rf"\b{kind}\.(\w+)\(", source))
    called |= {"matrices"} if kind == "schedule" else set()  # which loads call
    assert called
    for part in KINDS[kind]:
        missing = called - interface(part.macros)
        assert not missing, f"{part.__name__}: {sorted(missing)}"


def test_every_part_is_in_a_kernel_that_is_listed():
    used = {
        type(part)
        for spec in SPECS.values()
        if isinstance(spec, WgmmaSpec) and spec.template == SPEC.template
        for part in spec.parts.each
    }
    assert used == {part for kind in KINDS.values() for part in kind}


def test_the_header_of_a_source_names_the_parts():
    line = "parts Batch() x Tma() x Unsplit() x Rows(place='batch', accumulates=True)"
    assert f"//   {line}" in render(SPEC)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"store": PartialSums()}, "split: none vs store PartialSums(place='matrix')"),
        ({"store": Rows("windows", True)}, "that are added to: windows vs batch"),
        ({"store": Rows("rows")}, "place: rows vs ('matrix',"),
        ({"load": TmaIm2col()}, "layout: NN vs NT or NN|split: none vs serial"),
        ({"load": TmaPanels(64)}, "layout: NN vs TN"),
        ({"load": Gather("boxes")}, "layout: NN vs NT"),
        ({"load": Gather("taps", "numbers")}, "pixels of filters: numbers vs taps"),
        ({"load": GatherSums()}, "layout: NN vs TN"),
        ({"schedule": Phases()}, "split of phases: none vs serial"),
    ],
    ids=lambda value: str(next(iter(value.values()))) if isinstance(value, dict) else "",
)
def test_parts_that_do_not_fit_are_refused_with_both_sides(parts, said):
    with pytest.raises(SpecError) as caught:
        made(**parts)
    assert any(text in str(caught.value) for text in said.split("|")), caught.value


def test_parts_refuse_clusters_and_tiles_that_they_cannot_have():
    pair = replace(SPEC, cluster_m=2)
    for load in (Gather("taps"), Decode()):
        with pytest.raises(SpecError, match="CTAs of a cluster: 2 vs 1"):
            made(pair, load=load)
    narrow = replace(SPEC, bn=96)
    with pytest.raises(SpecError, match="panels of 64 columns: 128 vs 96"):
        made(narrow, schedule=Groups("sums"))
    with pytest.raises(SpecError, match="grouped_by: sums vs serial"):
        made(replace(SPEC, bn=64, split="serial"), schedule=Groups("sums"))


def test_a_split_through_memory_needs_a_store_of_partial_sums():
    chunks = replace(SPEC, split="workspace")
    with pytest.raises(SpecError, match=r"split: workspace vs store Rows\(place='batch'"):
        made(chunks, store=Rows("batch"))


def test_sums_are_held_by_a_serial_split_alone():
    with pytest.raises(SpecError, match="split of held sums: none vs serial"):
        replace(SPEC, spilled_sums=4)
    with pytest.raises(SpecError, match="held is a multiple of 4 up to: 6 vs 64"):
        replace(SPEC, split="serial", spilled_sums=6)


def test_other_parts_make_another_kernel():
    """A source follows from its parts: tiles of one product look for no matrix of a batch."""
    alone = made(schedule=Tiles(), store=Rows("matrix"))
    assert "auto along" in render(SPEC)
    assert "auto along" not in render(alone)


def test_undefined_names_in_parts_are_errors():
    part = "{% macro produce(spec) %}{{ spec.nothing }}{% endmacro %}"
    folder = jinja2.DictLoader({"part": part})
    strict = environment().overlay(loader=folder)
    with pytest.raises(jinja2.UndefinedError):
        strict.get_template("part").module.produce(SPEC)


def test_filters_of_gathered_windows_follow_the_layout():
    gathered = [s for s in SPECS.values() if isinstance(s, ConvGatherSpec)]
    found = {s.load.filters for s in gathered if not s.summed}
    assert found == {"boxes", "taps", "threads"}


# -- kernels whose threads copy tiles --------------------------------------------------------
RASTERS = (Bands, Chunk, Walk, WalkGroups)
MEETINGS = (OneChain, Turns, Slices, ClusterSums, Workspace)
STAGED = {name: spec for name, spec in SPECS.items() if isinstance(spec, StagedSpec)}


def called(template: str, part: str) -> set[str]:
    """The macros of a part that a template calls."""
    source, _, _ = environment().loader.get_source(environment(), template)
    found = set(re.findall(rf"\b{part}\.(\w+)\(", source))
    assert found
    return found


def test_rasters_define_what_kernels_call():
    for family in (MmaSpec, SimtSpec, F64Spec):
        wanted = called(family.template, "schedule")
        for raster in RASTERS:
            assert wanted <= interface(raster.macros), (family, raster)


def test_units_define_what_the_kernel_calls():
    for unit in (TensorCores, FmaUnits):
        assert called(F64Spec.template, "unit") <= interface(unit.macros), unit


@pytest.mark.parametrize("family", [SimtSpec, F64Spec])
def test_splits_of_a_family_define_what_its_kernel_calls(family):
    kernels = [spec for spec in STAGED.values() if isinstance(spec, family)]
    files = {spec.meeting.macros(family.family) for spec in kernels}
    assert len(files) >= 2
    for macros in files:
        assert called(family.template, "split") <= interface(macros), macros


def test_every_raster_and_split_is_in_a_kernel_that_is_listed():
    assert {type(spec.schedule) for spec in STAGED.values()} == {*RASTERS}
    assert {type(spec.meeting) for spec in STAGED.values()} == {*MEETINGS}


def test_ctas_that_walk_have_no_chunks():
    some = next(spec for spec in STAGED.values() if type(spec) is MmaSpec)
    with pytest.raises(SpecError, match="persistent, split: True vs workspace"):
        replace(some, split="workspace", persistent=True)


@pytest.mark.parametrize("kind", [MmaSpec, SimtSpec, F64Spec, WgmmaSpec])
def test_no_class_has_more_than_three_booleans_that_say_what_it_is(kind):
    for each in {*kind.__mro__, *(type(spec) for spec in SPECS.values() if isinstance(spec, kind))}:
        flags = [name for name in dir(each) if not name.startswith("_")]
        fields_of = getattr(each, "__dataclass_fields__", {})
        own = [n for n in flags if n not in fields_of and isinstance(getattr(each, n), bool)]
        assert len(own) <= 3, (each, own)
