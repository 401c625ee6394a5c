"""``ptxgen bench predict``: accuracy of predicted times of kernel families with ordered tables.

Routes of such tables are taken in table order, and their kernels have no constants of their own:
:meth:`ptxgen.cost.tuning.Tuning.bounds` multiplies constants of the family by known quantities.
Recorded results are lowered to programs again, which needs no GPU; a program's predicted time is
the sum over its steps. The fit minimises the squares of ``log(predicted / measured)``; families
with few results stay near the constants of an unmeasured family (:data:`HOLD`). The reported
accuracy is that on results held out of the fit.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np

from ptxgen import arguments
from ptxgen.bench.attention_cases import TRAINING
from ptxgen.bench.bands import quantile
from ptxgen.bench.ops import TEMPERATURE, biased
from ptxgen.bench.results import columns, reading
from ptxgen.cost.fit import FOLDS
from ptxgen.cost.tuning import (
    BOUNDS,
    FOLDER,
    UNMEASURED,
    Constants,
    Tuning,
    read,
    roofline_terms,
    write,
)
from ptxgen.dispatch.predict import demand
from ptxgen.errors import PtxgenError
from ptxgen.graph import Builder
from ptxgen.program.launch import chosen
from ptxgen.program.step import Program, Step
from ptxgen.runtime import get_device
from ptxgen.ui import emit

HOLD = 0.05
"""Weight, in the fit, of the squared deviation ``log(constant / UNMEASURED) ** 2`` of a constant
from its default; the squared log error of a result has weight 1.
"""
LEAST = 1e-3
"""Lower bound of a fitted constant."""
REACHED = 0.9
"""Share of a GPU's peak bandwidth that a copy reaches.

Results of another GPU with as many SMs (an H100) are fitted with that GPU's own bandwidth: its
measured copy divided by this share.
"""


@dataclass(frozen=True)
class Part:
    """One step of a program, as the fit reads it.

    ``quantities``, which the three constants of its ``family`` multiply: launches, and the µs of
    its bytes and of its operations at the GPU's peak rates. ``us``: the predicted time if the
    step's kernels have constants of their own, which are not fitted; else 0.
    """

    family: str
    quantities: tuple[float, float, float]
    us: float = 0.0

    def time(self, families: Mapping[str, Constants]) -> float:
        """Returns the predicted time of the step in µs; ``families``: constants by family."""
        if self.us:
            return self.us
        return sum(roofline_terms(families.get(self.family, UNMEASURED), self.quantities).values())


@dataclass(frozen=True)
class Point:
    """A data point of the fit: the steps of a recorded result's program, and its measured µs.

    Results of one ``problem``, such as a forward pass and its gradient, are held out together.
    """

    problem: str
    parts: tuple[Part, ...]
    us: float

    def time(self, families: Mapping[str, Constants]) -> float:
        """Returns the predicted time of all steps in µs; ``families``: constants by family."""
        return sum(part.time(families) for part in self.parts)

    @property
    def family(self) -> str:
        """The kernel family of the step that takes longest by the default constants."""
        return max(self.parts, key=lambda part: part.time({})).family


# -- programs of results --------------------------------------------------------------------
def _sizes(record: Mapping[str, Any]) -> list[int]:
    return [int(n) for n in record["sizes"].split(" of ")[-1].split("x")]


def _trained(b: Builder, norm: str, x: Any, w: Any) -> None:
    vectors = (w, w) if norm == "layer_norm" else (w,)
    b.output(getattr(b, norm)(x, *vectors))
    b.output(*getattr(b, f"{norm}_backward")(x, x, w))


def _embedding(b: Builder, record: Mapping[str, Any], backward: bool) -> None:
    count = int(record["sizes"].split()[0])
    rows, width = _sizes(record)
    indices = b.input("indices", (count,), "int64")
    if backward:
        dy = b.input("dy", (count, width), "bfloat16")
        b.output(b.embedding_backward(dy, indices, rows))
    else:
        b.output(b.embedding(b.input("w", (rows, width), "bfloat16"), indices))


def _operation(b: Builder, record: Mapping[str, Any]) -> None:
    """Records, with builder ``b``, the program that ran for a recorded result of ``ptxgen bench
    ops``.
    """
    name, *options = record["name"].split()
    shape = _sizes(record)
    if name.startswith("embedding"):
        return _embedding(b, record, name.endswith("backward"))
    x = b.input("x", shape, "bfloat16")
    if "backward" in options:
        return _trained(b, name, x, b.input("w", shape[-1:], "bfloat16"))
    if name == "cross_entropy":
        made = b.cross_entropy(x, b.input("target", shape[:1], "int64"))
    elif name == "topk":
        made, *_ = b.topk(x, int(options[0]))
    elif name == "draw":
        given = {n: json.loads(v) for n, v in zip(options[::2], options[1::2], strict=True)}
        made = b.sample(x, temperature=TEMPERATURE, seed=1, **given)
    elif name == "sum":
        made = b.sum(x, **({"axis": int(options[-1])} if "axis" in options else {}))
    elif name == "argmax":
        made = b.argmax(x, axis=-1)
    elif name in ("swiglu", "add"):
        made = getattr(b, name)(x, b.input("y", shape, "bfloat16"))
    elif name == "bias":
        made = biased(x, b.input("bias", shape[-1:], "bfloat16"))
    elif name == "contiguous,":
        axes = (1, 0) if options == ["transposed"] else (0, 2, 1, 3)
        made = b.contiguous(b.permute(x, axes))
    elif name == "rope":
        angles = (shape[1], 1, shape[3] // 2)
        made = b.rope(x, *(b.input(n, angles, "bfloat16") for n in ("cos", "sin")))
    else:
        vectors = {"rms_norm": 1, "layer_norm": 2}.get(name, 0)
        made = getattr(b, name)(
            x, *(b.input(f"v{i}", shape[-1:], "bfloat16") for i in range(vectors))
        )
    b.output(made)


def _attention(b: Builder, record: Mapping[str, Any]) -> None:
    """Builds, with ``b``, the program of a recorded result of ``ptxgen bench attention``."""
    r, dtype = record, {"bf16": "bfloat16", "f16": "float16"}[record["dtype"]]
    seqs, page = r["sequences"], r["page"]
    q = b.input("q", (seqs, r["heads"], r["queries"], r["depth"]), dtype)
    shape, how = (seqs, r["kv_heads"], r["keys"], r["depth"]), {"causal": r["causal"]}
    if page:
        pages = -(-r["keys"] // page)
        shape = (seqs * pages, page, r["kv_heads"], r["depth"])
        how = {
            "block_table": b.input("block_table", (seqs, pages), "int32"),
            "lengths": b.input("lengths", (seqs,), "int32"),
        }
    k, v = b.input("k", shape, dtype), b.input("v", shape, dtype)
    if r["kind"] != TRAINING:
        return b.output(b.attention(q, k, v, **how))
    o, lse = b.attention(q, k, v, return_lse=True, **how)
    b.output(o, *b.attention_grad(q, q, k, v, o, lse, **how))


def program_of(record: Mapping[str, Any]) -> Program:
    """Returns the program of a recorded result of ``ptxgen bench ops`` or
    ``ptxgen bench attention``.
    """
    b = Builder(record.get("kind") or record["name"], device="cpu")
    make: Callable[..., None] = _attention if "kind" in record else _operation
    make(b, record)
    return b.program()


def point(record: Mapping[str, Any], tuning: Tuning) -> Point:
    """Returns the data point of a recorded result: the steps of its program, and its measured time.

    ``tuning``: GPU and constants by which quantities, and known times of steps, are computed.
    """
    program = program_of(record)
    parts = tuple(_part(step, tuning) for step in program.steps)
    names = ("sequences", "heads", "kv_heads", "keys", "depth")
    problem = " ".join(str(record[n]) for n in (names if "kind" in record else ("name", "sizes")))
    return Point(problem, parts, record["ours_us"])


def _part(step: Step, tuning: Tuning) -> Part:
    us, route, choice = chosen(step.problem, get_device("cpu"), step.kernel)
    d = demand(step.problem, route, choice, step.nbytes, tuning.sms)
    found = tuning.quantities(d.launches, d.ctas, d.nbytes, d.unit, d.operations, sms=tuning.sms)
    return Part(d.family, found, us)


def _with_memory(tuning: Tuning, record: Mapping[str, Any]) -> Tuning:
    """Returns ``tuning`` with the memory bandwidth (bytes/µs) of the GPU of ``record``."""
    if record["gpu"] == tuning.gpu:
        return tuning
    memory = record["bandwidth_limit"] / 1e6 / REACHED
    return replace(tuning, rates=replace(tuning.rates, memory=memory))


def points(files: Iterable[Path], tuning: Tuning) -> list[Point]:
    """Reads recorded results as data points, those of GPUs with as many SMs as the tuning's.

    Raises PtxgenError for files that have no results of ``ptxgen bench ops`` or ``attention``.
    """
    found = []
    for path in files:
        with reading(path, "ops|attention"):
            records = json.loads(path.read_text(encoding="utf-8"))
            own = [r for r in records if r["sms"] == tuning.sms]
            found += [point(r, _with_memory(tuning, r)) for r in own if r["ours_us"]]
    return found


# -- the fit --------------------------------------------------------------------------------
def fit(of: Sequence[Point]) -> dict[str, Constants]:
    """Fits the three constants (:data:`ptxgen.cost.tuning.BOUNDS`) of each family to the measured
    times of points ``of``; returns them by family.
    """
    from scipy.optimize import least_squares

    names = sorted({p.family for each in of for p in each.parts if not p.us})
    at = {name: i for i, name in enumerate(names)}
    measured = np.log([each.us for each in of])
    rows, columns, quantities, known = [], [], [], np.zeros(len(of))
    for row, each in enumerate(of):
        for part in each.parts:
            known[row] += part.us
            if not part.us:
                rows.append(row)
                columns.append(at[part.family])
                quantities.append(part.quantities)
    launches, nbytes, operations = np.array(quantities).T
    prior = np.log(np.tile(UNMEASURED, (len(names), 1)))

    def off(logarithms: Any) -> Any:
        c = np.exp(logarithms.reshape(-1, len(BOUNDS)))[columns]
        us = c[:, 0] * launches + np.maximum(c[:, 1] * nbytes, c[:, 2] * operations)
        predicted = known + np.bincount(rows, us, len(of))
        held = math.sqrt(HOLD) * (logarithms - prior.ravel())
        return np.concatenate([np.log(predicted) - measured, held])

    low = np.full(prior.size, math.log(LEAST))
    found = least_squares(off, prior.ravel(), bounds=(low, np.inf), loss="soft_l1", f_scale=0.3)
    each = np.exp(found.x.reshape(-1, len(BOUNDS))).tolist()
    return {name: tuple(c) for name, c in zip(names, each, strict=True)}


def held_out(of: Sequence[Point]) -> list[tuple[Point, float]]:
    """Cross-validates the fit: returns each point with its ratio predicted / measured time,
    predicted by constants that were fitted without the point's problem.
    """
    problems = {name: i for i, name in enumerate(dict.fromkeys(p.problem for p in of))}
    found = []
    for fold in range(FOLDS):
        out = [problems[p.problem] % FOLDS == fold for p in of]
        families = fit([p for p, left in zip(of, out, strict=True) if not left])
        found += [(p, p.time(families) / p.us) for p, left in zip(of, out, strict=True) if left]
    return found


@dataclass(frozen=True)
class Quality:
    """Statistics of predicted / measured time: number of results, geometric mean, P10 and P90."""

    family: str
    results: int
    mean: float
    p10: float
    p90: float


def qualities(found: Iterable[tuple[Point, float]]) -> list[Quality]:
    """Returns statistics of predicted / measured time for each family of kernels, and for all
    points.

    ``found``: pairs of a point and its ratio; a point belongs to the family of its longest step.
    """
    ratios: dict[str, list[float]] = {}
    for each, ratio in found:
        ratios.setdefault(each.family, []).append(ratio)
    ratios = dict(sorted(ratios.items()))
    ratios["all"] = [ratio for each in ratios.values() for ratio in each]
    return [
        Quality(name, len(r), geometric_mean(r), *(quantile(sorted(r), q) for q in (0.1, 0.9)))
        for name, r in ratios.items()
    ]


# -- the command ----------------------------------------------------------------------------
def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``ptxgen bench predict`` with the arguments ``argv``; returns its exit status."""
    return arguments.run(_parser(), _work, argv)


def _work(options: argparse.Namespace) -> int:
    tuning = read(options.tuning)
    of = points(options.rows, tuning)
    if not of:
        raise PtxgenError(f"no result is of a GPU with {tuning.sms} SMs, as {tuning.gpu} has")
    shown = ("family", "family"), ("results", "results"), ("predicted / measured", "mean:.2f")
    emit(columns(qualities(held_out(of)), [*shown, ("P10", "p10:.2f"), ("P90", "p90:.2f")]))
    if options.write:
        families = {**tuning.families, **fit(of)}
        write(replace(tuning, families=families), options.tuning)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = arguments.Parser(
        prog="ptxgen bench predict",
        description="Predicted over measured times of results that had no part in the fit, by "
        "family of kernels whose routes are taken in order. Needs no GPU.",
    )
    parser.add_argument(
        "rows", nargs="+", type=Path, metavar="FILE", help="of `ptxgen bench ops` or `attention`"
    )
    parser.add_argument(
        "--tuning",
        type=Path,
        metavar="FILE",
        default=FOLDER / "h200_132.json",
        help="of the GPU that was measured (an H200's)",
    )
    parser.add_argument(
        "--write", action="store_true", help="write the constants, fitted to all, to the tuning"
    )
    return parser
