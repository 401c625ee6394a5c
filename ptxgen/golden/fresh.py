"""Builds goldens from the current specs, templates and compiler."""

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

VARIED = frozenset({"layout", "copy_a", "copy_b", "vectorized", "is_last", "whole_rows"})
"""Spec fields that make no variant (:func:`read_by_people`): kernels that differ in them alone
render from the same template lines, so a reviewer who has read one has read all."""


def expected(specs: Iterable[KernelSpec]) -> set[Key]:
    """Returns the keys (architecture, kernel) of the records that ``specs`` must have."""
    return {(arch, spec.name) for spec in specs for arch in arches(spec)}


def read_by_people(specs: Iterable[KernelSpec]) -> set[str]:
    """Returns the names of the kernels whose PTX is kept as text, for reviewers: the smallest
    kernel of each variant.

    A variant is a family and a contract, with the values of all fields of a spec that are strings
    or flags (split, order, dtype, …), except :data:`VARIED`. Kernels are compared by the outputs of
    a tile, then shared memory, threads and name.

    Some kernels need no text. Those written in PTX are reviewed as sources. Kernels of f16 and u4
    differ in a few lines from those of bf16 and s4. Kernels that continue chains differ where their
    sums begin, in many similar lines. Pinned kernels (:data:`ptxgen.tiles.PINNED`) have few lines
    of their own.
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
    for spec in sorted(compiled, key=_size):
        words = (
            (entry.name, value)
            for entry in fields(spec)
            if entry.name not in VARIED
            and isinstance(value := getattr(spec, entry.name), str | bool)
        )
        chosen.setdefault((type(spec), spec.contract, *words), spec.name)
    return set(chosen.values())


def _size(spec: KernelSpec) -> tuple[int, int, int, str]:
    tile = getattr(spec, "bm", 1) * getattr(spec, "bn", 1)
    return tile, spec.shared_bytes, spec.threads, spec.name


def jobs(spec: KernelSpec) -> list[Job]:
    """Returns the compilation jobs for the goldens of ``spec``, one for each architecture."""
    source = render(spec)
    return [Job(source, spec.name, arch) for arch in arches(spec)]


def inputs(spec: KernelSpec) -> dict[str, str]:
    """Returns, by architecture, a digest of all inputs from which the record of ``spec`` is made:
    source, options, architecture, compiler, and dynamic shared memory.
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
    """Returns the kernels whose PTX text must be kept, but is missing or unlike its record."""
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
    """Returns ``count`` random specs, from as many record files as possible; the same ones for the
    same ``seed``.
    """
    files: dict[str, list[KernelSpec]] = {}
    for spec in sorted(specs, key=lambda spec: spec.name):
        files.setdefault(group(spec), []).append(spec)
    draw = random.Random(seed)
    drawn = [
        (position, draw.random(), spec.name, spec)
        for members in files.values()
        for position, spec in enumerate(draw.sample(members, len(members)))
    ]
    return [spec for *_, spec in sorted(drawn, key=lambda each: each[:3])[:count]]


def build(
    specs: Iterable[KernelSpec],
    *,
    progress: Callable[[int, int, Job], None] | None = None,
    workers: int | None = None,
    cache: Cache | EllipsisType | None = ...,
) -> Goldens:
    """Renders and compiles ``specs``, and returns goldens with the text of every kernel.
    ``progress``, ``workers``: as in :func:`ptxgen.build.compile.compile_many`. Raises CompileError,
    also for another NVRTC version than the pinned one.
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
    """Merges goldens ``fresh``, built now, into ``stored``. Drops records of kernels that are not
    in ``specs`` (by name), and texts of kernels that are not in ``shown``.
    """
    present = {key: r for key, r in stored.records.items() if key[1] not in fresh.kernels()}
    records = {key: r for key, r in (present | dict(fresh.records)).items() if key[1] in specs}
    texts = {k: t for k, t in {**stored.texts, **fresh.texts}.items() if k in shown}
    return Goldens(fresh.nvrtc, records, texts, stored.accepted)


def usage_of(spec: KernelSpec, made: Compiled) -> Usage:
    """Returns ptxas's resources of the cubin ``made``, plus the spec's dynamic shared memory."""
    if made.resources is None:
        raise CompileError(
            f"{made.name} for {made.arch}: the compiler's log does not say what it uses",
            log=made.log,
        )
    r = made.resources
    return Usage(r.registers, r.spill_stores, r.spill_loads, r.stack, r.shared + spec.shared_bytes)
