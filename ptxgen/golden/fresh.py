"""Goldens built anew from the current specs, templates and compiler."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from types import EllipsisType

from ptxgen.build.cache import Cache
from ptxgen.build.compile import (
    TOOLCHAIN,
    Compiled,
    Job,
    compile_pairs,
    require_pinned_toolchain,
)
from ptxgen.build.render import render
from ptxgen.build.targets import arches
from ptxgen.errors import CompileError
from ptxgen.golden.ptx import local_depot, summary
from ptxgen.golden.store import Goldens, Key, Record, Usage, digest
from ptxgen.spec import KernelSpec
from ptxgen.tiles import PINNED

VARIED = frozenset({"layout", "copy_a", "copy_b", "vectorized", "is_last"})
"""Fields of specs whose values all come from the same lines of a template, so that a reviewer who
has read the kernel of one value has read all."""


def expected(specs: Iterable[KernelSpec]) -> set[Key]:
    """Returns the keys of the records that ``specs`` must have."""
    return {(arch, spec.name) for spec in specs for arch in arches(spec)}


def read_by_people(specs: Iterable[KernelSpec]) -> set[str]:
    """Returns the kernels whose PTX is kept as text, for reviewers: the smallest of each variant.

    A variant is a family and a contract, with the values of all fields of a spec that are strings
    or flags (split, order, dtype, …), except :data:`VARIED`. Kernels are compared by shared
    memory, then threads, then name.

    Some kernels need no text. Those written in PTX are reviewed as sources. Those of f16 differ
    from those of bf16 in a few lines, and those of u4 from those of s4. Kernels that continue
    chains differ where their sums begin, in many similar lines. Pinned kernels
    (:data:`ptxgen.tiles.PINNED`) have few lines of their own, so a digest is enough.
    """
    given = {spec.name: spec for spec in specs}
    chosen: dict[tuple[object, ...], str] = {}
    compiled = (
        spec
        for spec in given.values()
        if spec.legible
        and not spec.continues
        and spec.name not in PINNED
        and not (spec.ptx_since or spec.dtype == "u4")
        and not (spec.dtype == "f16" and spec.of("bf16").name in given)
    )
    for spec in sorted(compiled, key=lambda spec: (spec.shared_bytes, spec.threads, spec.name)):
        words = (
            (entry.name, value)
            for entry in fields(spec)
            if entry.name not in VARIED
            and isinstance(value := getattr(spec, entry.name), str | bool)
        )
        chosen.setdefault((type(spec), spec.contract, *words), spec.name)
    return set(chosen.values())


def jobs(spec: KernelSpec) -> list[Job]:
    """Returns the compilations for the goldens of ``spec``, one for each architecture."""
    source = render(spec)
    return [Job(source, spec.name, arch) for arch in arches(spec)]


def inputs(spec: KernelSpec) -> dict[str, str]:
    """Returns a digest of all inputs of a record of ``spec``, by architecture.

    Inputs are the source, options, architecture, compiler, and dynamic shared memory.
    """
    keys = {job.arch: replace(job.key(TOOLCHAIN.nvrtc), format=0) for job in jobs(spec)}
    return {arch: digest(f"{key.digest} {spec.shared_bytes}") for arch, key in keys.items()}


def changed(stored: Goldens, specs: Iterable[KernelSpec]) -> list[KernelSpec]:
    """Returns the specs whose records are missing, or were made from other inputs."""
    known: dict[str, dict[str, str]] = {}
    for (arch, kernel), record in stored.records.items():
        known.setdefault(kernel, {})[arch] = record.inputs
    return [spec for spec in specs if known.get(spec.name) != inputs(spec)]


def textless(stored: Goldens, specs: Iterable[KernelSpec]) -> set[str]:
    """Returns the kernels whose text should be kept, but is missing or not the recorded one."""
    return {
        spec.name
        for spec in specs
        if (record := stored.records.get((arches(spec)[0], spec.name))) is not None
        and digest(stored.texts.get(spec.name, "")) != record.ptx
    } & read_by_people(specs)


def group(spec: KernelSpec) -> str:
    """Returns the name of the file, without suffix, that has the records of ``spec``."""
    return f"{spec.family}_{spec.dtype}"


def sample(specs: Iterable[KernelSpec], count: int, seed: str) -> list[KernelSpec]:
    """Returns ``count`` random specs, spread over as many record files as possible, by ``seed``."""
    files: dict[str, list[KernelSpec]] = {}
    for spec in sorted(specs, key=lambda spec: spec.name):
        files.setdefault(group(spec), []).append(spec)
    draw = random.Random(seed)
    drawn = [
        (turn, draw.random(), spec.name, spec)
        for those in files.values()
        for turn, spec in enumerate(draw.sample(those, len(those)))
    ]
    return [spec for *_, spec in sorted(drawn, key=lambda each: each[:3])[:count]]


def build(
    specs: Iterable[KernelSpec],
    *,
    progress: Callable[[int, int, Job], None] | None = None,
    workers: int | None = None,
    cache: Cache | EllipsisType | None = ...,
) -> Goldens:
    """Renders and compiles ``specs``, and returns goldens with the text of every kernel. Raises
    CompileError, also for another NVRTC version than the pinned one.
    """
    require_pinned_toolchain()
    kernels = {spec.name: spec for spec in specs}
    todo = [job for spec in kernels.values() for job in jobs(spec)]
    records: dict[Key, Record] = {}
    texts: dict[str, str] = {}
    made_from = {spec.name: inputs(spec) for spec in kernels.values()}
    pairs = compile_pairs(todo, progress=progress, workers=workers, cache=cache)
    for job, (ptx, cubin) in zip(todo, pairs, strict=True):
        spec, text = kernels[job.name], ptx.text
        texts.setdefault(job.name, text)
        records[job.arch, job.name] = Record(
            group(spec),
            made_from[job.name][job.arch],
            digest(text),
            len(ptx.image),
            usage_of(spec, cubin),
            local_depot(text),
            summary(text),
        )
    return Goldens(TOOLCHAIN.nvrtc, records, texts)


def updated(
    stored: Goldens, fresh: Goldens, specs: Mapping[str, KernelSpec], shown: set[str]
) -> Goldens:
    """Returns ``stored`` updated by ``fresh``, for kernels in ``specs``; ``shown`` keep texts."""
    present = {key: r for key, r in stored.records.items() if key[1] not in fresh.kernels()}
    records = {key: r for key, r in (present | dict(fresh.records)).items() if key[1] in specs}
    texts = {k: t for k, t in {**stored.texts, **fresh.texts}.items() if k in shown}
    return Goldens(fresh.nvrtc, records, texts, stored.accepted)


def usage_of(spec: KernelSpec, made: Compiled) -> Usage:
    """Returns a cubin's resources from ptxas, with the spec's dynamic shared memory added."""
    if made.resources is None:
        raise CompileError(
            f"{made.name} for {made.arch}: the compiler's log does not say what it uses",
            log=made.log,
        )
    r = made.resources
    return Usage(r.registers, r.spill_stores, r.spill_loads, r.stack, r.shared + spec.shared_bytes)
