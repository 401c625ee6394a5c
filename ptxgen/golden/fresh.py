"""Goldens as the specs, templates and compiler of now make them."""

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

VARIED = frozenset({"layout", "copy_a", "copy_b", "vector", "final"})
"""Fields of specs whose values are written by the same lines of a template, each in its turn: a
reviewer who has read one has read all."""


def expected(specs: Iterable[KernelSpec]) -> set[Key]:
    """The records that ``specs`` must have."""
    return {(arch, spec.name) for spec in specs for arch in arches(spec)}


def read_by_people(specs: Iterable[KernelSpec]) -> set[str]:
    """The kernels whose PTX is kept as text, for reviewers: of each way to work, the smallest.

    A way to work is a family with a contract and all that a spec says in words (split, order,
    dtype, …) rather than in numbers, but for :data:`VARIED`. Small is what has little shared
    memory, then few threads; of several, the first by name. What is written in PTX has been read,
    and so has a kernel of f16 where there is one of bf16, and of u4, as there is one of s4: a few
    lines differ, alike in a family. What continues chains differs from others where its sums begin,
    in many lines that are alike. What is pinned (:data:`ptxgen.tiles.PINNED`) shows a few lines
    that others do not have: its digest is enough.
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
    """The compilations behind the goldens of ``spec``."""
    source = render(spec)
    return [Job(source, spec.name, arch) for arch in arches(spec)]


def inputs(spec: KernelSpec) -> dict[str, str]:
    """Identifies, by architecture, all that a record of ``spec`` follows from.

    That is source, options, architecture, compiler, and the shared memory asked for at launch.
    """
    keys = {job.arch: replace(job.key(TOOLCHAIN.nvrtc), format=0) for job in jobs(spec)}
    return {arch: digest(f"{key.digest} {spec.shared_bytes}") for arch, key in keys.items()}


def changed(stored: Goldens, specs: Iterable[KernelSpec]) -> list[KernelSpec]:
    """Those of ``specs`` whose records, if any, were made from something else than now."""
    known: dict[str, dict[str, str]] = {}
    for (arch, kernel), record in stored.records.items():
        known.setdefault(kernel, {})[arch] = record.inputs
    return [spec for spec in specs if known.get(spec.name) != inputs(spec)]


def textless(stored: Goldens, specs: Iterable[KernelSpec]) -> set[str]:
    """The kernels whose text is not there, or not the recorded one, though people read it."""
    return {
        spec.name
        for spec in specs
        if (record := stored.records.get((arches(spec)[0], spec.name))) is not None
        and digest(stored.texts.get(spec.name, "")) != record.ptx
    } & read_by_people(specs)


def group(spec: KernelSpec) -> str:
    """The file that has the records of ``spec``."""
    return f"{spec.family}_{spec.dtype}"


def sample(specs: Iterable[KernelSpec], count: int, seed: str) -> list[KernelSpec]:
    """``count`` of ``specs`` at random, from as many files of records as can be: ``seed`` says
    which.
    """
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
    """Renders and compiles ``specs``; all have their text. Raises CompileError, also for another
    NVRTC version.
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
    """``stored`` with what is ``fresh``, for the kernels that there are; ``shown`` keep a text."""
    present = {key: r for key, r in stored.records.items() if key[1] not in fresh.kernels()}
    records = {key: r for key, r in (present | dict(fresh.records)).items() if key[1] in specs}
    texts = {k: t for k, t in {**stored.texts, **fresh.texts}.items() if k in shown}
    return Goldens(fresh.nvrtc, records, texts, stored.accepted)


def usage_of(spec: KernelSpec, made: Compiled) -> Usage:
    """What ptxas said about a cubin, with the spec's dynamic shared memory."""
    if made.resources is None:
        raise CompileError(
            f"{made.name} for {made.arch}: the compiler's log does not say what it uses",
            log=made.log,
        )
    r = made.resources
    return Usage(r.registers, r.spill_stores, r.spill_loads, r.stack, r.shared + spec.shared_bytes)
