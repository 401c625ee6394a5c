"""What the fields of a spec mean, and which part of a kernel's name tells each: for `show`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, NamedTuple

from ptxgen.spec import KernelSpec


class Field(NamedTuple):
    """A field of a spec. ``part``: the part of the kernel's name that tells it; empty if none."""

    part: str
    name: str
    value: str
    meaning: str


MEANINGS = {
    "ahead": "steps of 16 k by which fragments are fetched ahead",
    "batch": "chunks whose loads are in flight together",
    "bk": "k's per stage of the ring in shared memory",
    "bm": "rows of C that a CTA computes (a tile)",
    "bn": "columns of C that a CTA computes",
    "cluster_k": "CTAs of a cluster that share a tile's chunks",
    "cluster_m": "CTAs of a cluster along m, which share tiles of B",
    "cluster_n": "CTAs of a cluster along n, which share tiles of A",
    "consumers": "warpgroups that multiply; one warp more copies",
    "contract": "which bits it returns",
    "copiers": "warps that only copy (0: all copy)",
    "copy_a": "how A reaches shared memory",
    "copy_b": "how B reaches shared memory",
    "cta_threads": "threads of a CTA",
    "ctas_per_sm": "CTAs that share an SM, which bounds the registers",
    "dtype": "of the operands",
    "family": "which template makes it",
    "lanes": "lanes of a warp that a slice takes",
    "lanes_m": "lanes of a warp along m (of a slice's lanes; the others are along n)",
    "layout": "how A and B are stored, row-major: N is [M, K] or [K, N], T its transpose",
    "min_arch": "the oldest architecture that runs it",
    "order": "of a thread's walk over its outputs at each k, a serpentine of rows or columns",
    "outputs": "outputs of a thread",
    "persistent": "whether the grid is bounded and CTAs walk over the tiles",
    "raster": "tile rows that share columns in L2 (0: all)",
    "registers": "of a consumer's thread, after reallocation (0: as launched)",
    "slices": "warps (or parts of one) that have chunks of a tile each",
    "split": "where the chunks of a reduction meet: none has one, slices in shared memory, "
    "cluster in a cluster's, workspace in memory, for a reduce kernel",
    "stages": "stages of the ring in shared memory, which are filled ahead",
    "stream": "operands that are read once, of which L2 keeps nothing",
    "swap": "whether the instruction's 16 rows are columns of B, for products of few rows",
    "tm": "rows of C that a thread computes",
    "tn": "columns of C that a thread computes",
    "warps_m": "warps along m",
    "warps_n": "warps along n",
}
"""The fields of all families."""

_TILE = (("bm", "bn", "bk"), "{bm}x{bn}x{bk}")
_GEMM = (("family",), "{family}"), (("layout",), "{nn}"), (("dtype",), "{dtype}"), _TILE
_STAGES = (("stages",), "s{stages}")
_COPIES = (("copy_a", "copy_b"), "{copy_a[0]}{copy_b[0]}")
_WALK = (("persistent",), "persistent"), (("ctas_per_sm",), "c{ctas_per_sm}")
_PARTS: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = {
    "simt": (
        *_GEMM, _STAGES, _COPIES, *_WALK,
        (("tm", "tn"), "{tm}x{tn}"),
        (("warps_m", "warps_n", "lanes_m", "lanes"), "w{warps_m}x{warps_n}l{lanes_m}x{lanes_n}"),
        (("slices", "split"), "slices{slices}"),
        (("split",), "partial"),
        (("order",), "{order}"),
        (("raster",), "r{raster}"),
    ),
    "mma": (
        *_GEMM, _STAGES, _COPIES, *_WALK,
        (("warps_m", "warps_n"), "w{warps_m}x{warps_n}"),
        (("swap",), "swap"),
        (("split",), "partial"),
        (("raster",), "r{raster}"),
        (("ahead",), "a{ahead}"),
        (("copiers",), "x{copiers}"),
        (("stream",), "stream{stream}"),
    ),
    "wgmma": (
        *_GEMM, _STAGES,
        (("consumers",), "w{consumers}"),
        (("cluster_m", "cluster_n"), "c{cluster_m}x{cluster_n}"),
        (("cluster_m", "cluster_n", "cluster_k", "split"), "c{cluster_m}x{cluster_n}x{cluster_k}"),
        (("split",), "partial"),
        (("registers",), "r{registers}"),
        (("raster",), "b{raster}"),
    ),
    "reduce": (
        (("family",), "{family}"), (("dtype",), "{dtype}"),
        (("cta_threads", "outputs"), "{cta_threads}x{outputs}"),
        (("batch",), "b{batch}"),
        (("contract",), "{contract.name}"),
    ),
}  # fmt: skip
"""By family: which fields a part of a name tells, and how it is written."""


def parts(spec: KernelSpec) -> dict[str, tuple[str, ...]]:
    """The parts of a kernel's name, in order, and the fields that each tells."""
    words: dict[str, tuple[str, ...]] = dict.fromkeys(spec.name.split("_"), ())
    values = {name: getattr(spec, name) for name in _names(spec)}
    values |= {"nn": str(getattr(spec, "layout", "")).lower()}
    values |= {"lanes_n": getattr(spec, "lanes_n", None)}
    for told, form in _PARTS.get(spec.family, ()):
        word = form.format(**values)
        if word in words and not words[word]:
            words[word] = told
    return words


def table_of(spec: KernelSpec) -> Iterator[Field]:
    """The fields of a spec, those in the name first, in its order."""
    left = dict.fromkeys(_names(spec))
    for word, told in parts(spec).items():
        for name in told:
            if name in left:
                del left[name]
                yield Field(word, name, _value(spec, name), MEANINGS.get(name, ""))
    for name in left:
        yield Field("", name, _value(spec, name), MEANINGS.get(name, ""))


def _names(spec: KernelSpec) -> list[str]:
    return ["family", *(each.name for each in fields(spec))]


def _value(spec: KernelSpec, name: str) -> str:
    value: Any = getattr(spec, name)
    return str(value) if value != "" else "none"
