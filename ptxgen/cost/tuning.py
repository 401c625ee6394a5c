"""Tunings: a few constants for each kernel, from which its time on a GPU is predicted.

The predicted time of a route is a sum over its kernels and over :data:`TERMS`. A term is a quantity
that follows from the kernel's :class:`~ptxgen.cost.kernel.KernelCost` and the GPU's rates, times a
constant of the kernel. ``ptxgen tune`` fits the constants to times measured on random problems, and
writes them to a JSON file named after the GPU and its number of SMs. Another GPU uses the same
constants with its own rates: they say how well a kernel uses a GPU, not how fast the GPU is. As one
GPU cannot separate terms that grow alike, no kernel is predicted there to be faster than memory and
multipliers allow.

Where routes are taken in order, kernels have no cost, and a time is a roofline: launches, plus the
larger of bytes and operations (:meth:`Tuning.bounds`), with three constants for each family of
kernels (:data:`BOUNDS`), which ``ptxgen bench predict`` fits.

A time chooses among kernels that return the same bits, and says whether to fuse steps.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from ptxgen.cost.gpu import TYPICAL, Rates
from ptxgen.cost.kernel import UNITS
from ptxgen.errors import SpecError

FOLDER = Path(__file__).parent / "tunings"

TERMS = {
    "launch": "one launch",
    "steps": "steps of the reduction, one after the other: 100 cycles each",
    "waves": "waves of CTAs: 1000 cycles each",
    "products": "multiplications of the busiest SM, at its peak rate",
    "memory": "operands, once, from memory",
    "L2": "loads of all CTAs, at 64 bytes a cycle and SM",
    "missed": "loads that L2 cannot hold, from memory",
    "stores": "results, to memory",
}
"""Descriptions of the terms of a predicted time. A launch counts 1 µs; the quantities of the others
follow from the GPU's rates."""
BOUNDS = {
    "launches": "launches of kernels",
    "bytes": "bytes read and written, at the GPU's bandwidth",
    "operations": "operations of the busiest SM, at its unit's peak",
}
"""Descriptions of the terms of a roofline time, for kernels without a cost. Each has a constant of
the kernel's family; only the larger of bytes and operations counts."""
LIMIT = "shortfall of the sum from the least time of memory and multipliers; 0.1 % of the sum"
"""Description of the term "limit", which raises a sum of :data:`TERMS` to the roofline limit."""
UNMEASURED = (4.0, 1.2, 2.0)
"""Constants of :data:`BOUNDS` for a family that was never measured."""
EMPTY = 4.0
"""Measured time of an empty kernel, µs. A fused step must be faster than the steps that it
replaces, where each of these but one counts without this time."""
UNKNOWN = (4.0, 2.0, 1.0, 1.2, 1.0, 1.0, 1.0, 1.0)
"""Constants of :data:`TERMS` for a kernel that was never measured."""
TIE = 1e-3
"""Fraction of the sum of terms that is added to a time, so that two kernels at the same roofline
limit still differ."""
FALLBACK = "h200_132"
"""Name of the tuning that has constants of every measured kernel."""
_MEMORY = re.compile(r"\d+gb|hbm\w*")
"""Pattern of words such as 80gb or hbm3 in a driver's name."""
_L2_BYTES = 64
_L2_USED = 0.8
"""Fraction of L2 that is available to operands."""

Constants = tuple[float, ...]


@dataclass(frozen=True)
class Tuning:
    """Constants fitted on one GPU that predict times of kernels, and the GPU's rates.

    ``gpu``: the driver's name of the GPU; ``sms``: number of its SMs; ``arch``: such as "sm_90";
    ``kernels``: constants of :data:`TERMS` by the name of a kernel in a route table. The kernel's
    twin for the other 16-bit dtype has the same constants.
    """

    gpu: str
    sms: int
    arch: str
    measured: str
    """Date and setup of the measurement, for people."""
    rates: Rates
    kernels: Mapping[str, Constants] = field(default_factory=dict, repr=False)
    families: Mapping[str, Constants] = field(default_factory=dict, repr=False)
    """Constants of :data:`BOUNDS`, by family of kernels."""
    scaled: bool = False
    """Whether the constants were measured on another GPU than the one that ``rates`` describes."""

    def __post_init__(self) -> None:
        if self.arch not in TYPICAL:
            raise SpecError(f"tuning {self.name}: arch {self.arch!r}: known: {[*TYPICAL]}")
        for known, names in ((self.kernels, TERMS), (self.families, BOUNDS)):
            for kernel, constants in known.items():
                if len(constants) != len(names) or not all(0 <= c < math.inf for c in constants):
                    raise SpecError(
                        f"tuning {self.name}: the constants of {kernel} are {list(constants)}; "
                        f"takes {len(names)} numbers from 0 on ({', '.join(names)})"
                    )

    @property
    def name(self) -> str:
        """Name of the file, such as "h200_132"."""
        return tuning_name(self.gpu, self.sms)

    @property
    def short(self) -> str:
        """Short name of the GPU, such as "h200"."""
        return short_name(self.gpu)

    def time(self, kernel: str, *arguments: Any, count: int = 1) -> float:
        """Returns the predicted time of ``kernel`` in µs, the sum of its :meth:`parts`."""
        return sum(self.parts(kernel, *arguments, count=count))

    def parts(self, kernel: str, *arguments: Any, count: int = 1) -> tuple[float, ...]:
        """Returns the terms of the predicted time of ``kernel`` in µs: those of :data:`TERMS`, each
        a constant times a quantity, and the limit (:data:`LIMIT`).

        ``arguments``: those of :meth:`terms`, which
        :meth:`ptxgen.cost.kernel.KernelCost.arguments` returns; ``count``: problems of a batch in
        one launch, by which the work of all CTAs is multiplied.
        """
        quantities = self.terms(*arguments, count=count)
        found = tuple(map(float.__mul__, self.kernels.get(kernel, UNKNOWN), quantities))
        total = sum(found)
        return (*found, max(self.lower_bound(quantities) - total, 0.0) + TIE * total)

    def bounds(
        self,
        family: str,
        launches: int,
        ctas: int,
        nbytes: int,
        unit: str,
        operations: int,
        *,
        sms: int,
    ) -> dict[str, float]:
        """Returns the roofline time of a route as terms of :data:`BOUNDS`, µs by name: launches,
        and the larger of bytes and operations.

        ``family``: of the route's kernels; ``launches``: their number; ``ctas``: of the largest
        grid; ``nbytes``, ``operations`` (on ``unit``): of all CTAs; ``sms``: number of SMs. The
        busiest SM has ``ceil(ctas / sms)`` of the CTAs. It computes at the peak of ``unit``, and
        loads no faster than L2's bandwidth for one SM.
        """
        quantities = self.quantities(launches, ctas, nbytes, unit, operations, sms=sms)
        return roofline_terms(self.families.get(family, UNMEASURED), quantities)

    def quantities(
        self, launches: int, ctas: int, nbytes: int, unit: str, operations: int, *, sms: int
    ) -> tuple[float, float, float]:
        """Returns the quantities, in µs, that the constants of :data:`BOUNDS` multiply; arguments
        as in :meth:`bounds`.
        """
        rates, cycles = self.rates, 1e3 * self.rates.clock
        share = -(-ctas // sms) / ctas
        return (
            float(launches),
            max(nbytes / rates.memory, share * nbytes / (_L2_BYTES * cycles)),
            share * operations / (rates.products[UNITS.index(unit)] * cycles),
        )

    def lower_bound(self, quantities: tuple[float, ...]) -> float:
        """Returns a lower bound of a kernel's time in µs, from ``quantities``, the result of
        :meth:`terms`.

        For constants from another GPU (:attr:`scaled`) it is the time of memory traffic or of
        multiplications at this GPU's peak rates, the larger one; else 0, as times predicted by the
        GPU's own constants need no bound.
        """
        if not self.scaled:
            return 0.0
        _, _, _, products, memory, _, _, stores = quantities
        return max(memory + stores, products)

    def terms(
        self,
        unit: str,
        slots: int,
        sms: int,
        ctas: int,
        steps: int,
        products: int,
        loads: int,
        operands: int,
        stores: int,
        *more: Any,
        count: int = 1,
    ) -> tuple[float, ...]:
        """Returns the quantities, in µs by the GPU's rates, that the constants of :data:`TERMS`
        multiply.

        ``unit`` to ``more``: as :meth:`ptxgen.cost.kernel.KernelCost.arguments` returns them;
        ``more``: unit, steps and products of the second phase, then of the third, and so on.
        ``count``: as in :meth:`parts`.
        """
        rates = self.rates
        cycles = 1e3 * rates.clock  # a µs
        # In a batch, L2 holds the operands of the problems whose CTAs run at a time.
        together = 1.0 if count == 1 else min(max(slots * sms / ctas, 1.0), count)
        fits = min(_L2_USED * rates.l2 / max(operands * together, 1), 1.0)
        ctas, loads = ctas * count, loads * count
        operands, stores = operands * count, stores * count
        phases = zip((unit, *more[::3]), (products, *more[2::3]), strict=True)
        return (
            1.0,
            100.0 * sum(more[1::3], steps) / cycles,
            1000.0 * -(-ctas // (slots * sms)) / cycles,
            sum(-(-ctas // sms) * n / (rates.products[UNITS.index(u)] * cycles) for u, n in phases),
            operands / rates.memory,
            loads / (_L2_BYTES * sms * cycles),
            loads * (1.0 - fits) / rates.memory,
            stores / rates.memory,
        )


def roofline_terms(constants: Constants, quantities: tuple[float, ...]) -> dict[str, float]:
    """Returns the terms of a roofline time in µs by name, each a constant times a quantity of
    :data:`BOUNDS`: launches, and the larger of bytes and operations.
    """
    us = dict(zip(BOUNDS, map(float.__mul__, constants, quantities), strict=True))
    del us[min("bytes", "operations", key=us.__getitem__)]
    return us


def tuning_name(gpu: str, sms: int) -> str:
    """Returns the name of a tuning: ``"h100_132"`` for ``("NVIDIA H100 80GB HBM3", 132)``."""
    return f"{short_name(gpu)}_{sms}"


def short_name(gpu: str) -> str:
    """Returns a GPU's name without maker and memory: "h100" for "NVIDIA H100 80GB HBM3"."""
    words = re.findall(r"[a-z0-9]+", gpu.lower())
    return "_".join(w for w in words if w != "nvidia" and not _MEMORY.fullmatch(w))


def driver_name(gpu: str) -> str:
    """Returns the driver's full name of a GPU: ``"NVIDIA H200"`` for ``"h200"``.

    The full name is that of a tuning; a GPU without a tuning is returned unchanged.
    """
    known = [t.gpu for t in tunings() if t.short == short_name(gpu)]
    return gpu if gpu in known or not known else known[0]


@cache
def tunings(folder: Path = FOLDER) -> tuple[Tuning, ...]:
    """Returns all tunings of ``folder``, by file name. Raises SpecError for a file that is no
    tuning.
    """
    return tuple(read(path) for path in sorted(folder.glob("*.json")))


@cache
def tuning_for(
    arch: str, gpu: tuple[str, int] | None = None, rates: Rates | None = None
) -> tuple[Tuning, bool]:
    """Returns the tuning for a GPU, and whether it was measured on such a GPU.

    ``gpu``: the driver's name and the number of SMs. A tuning takes the constants of kernels that
    it lacks from :data:`FALLBACK`. GPUs without a tuning take all of them from there; their rates
    are ``rates``, the driver's, or if None those of a typical GPU of architecture ``arch``.
    """
    known = {t.name: t for t in tunings()}
    base = known[FALLBACK]
    for tuning in known.values():
        if (tuning.gpu, tuning.sms) == gpu and tuning.arch == arch:
            return completed(tuning, base), True
    return replace(base, rates=rates or TYPICAL[arch], scaled=True), False


def completed(tuning: Tuning, base: Tuning) -> Tuning:
    """Returns ``tuning`` with constants of ``base`` for the kernels and families that it lacks."""
    return replace(
        tuning,
        kernels={**base.kernels, **tuning.kernels},
        families={**base.families, **tuning.families},
    )


# -- files ------------------------------------------------------------------------
def read(path: Path) -> Tuning:
    """Returns the tuning in a file. Raises SpecError for a file that is no tuning."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        rates = found["rates"]
        tuning = Tuning(
            gpu=_text(found["gpu"]),
            sms=int(found["sms"]),
            arch=_text(found["arch"]),
            measured=_text(found["measured"]),
            rates=Rates(
                float(rates["clock"]),
                float(rates["memory"]),
                float(rates["l2"]),
                tuple(float(rates["products"][unit]) for unit in UNITS),
            ),
            kernels={
                str(name): tuple(float(c) for c in constants)
                for name, constants in found["kernels"].items()
            },
            families={
                str(name): tuple(float(c) for c in constants)
                for name, constants in found["families"].items()
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
    """Writes a tuning, one kernel a line, so that diffs show which kernels changed."""
    rates = tuning.rates
    head = {name: getattr(tuning, name) for name in ("gpu", "sms", "arch", "measured")}
    head["rates"] = {
        "clock": rates.clock,
        "memory": rates.memory,
        "l2": rates.l2,
        "products": dict(zip(UNITS, rates.products, strict=True)),
    }
    lines = [f"  {json.dumps(name)}: {json.dumps(value)}," for name, value in head.items()]
    families, kernels = (
        ",\n".join(
            f"    {json.dumps(name)}: {json.dumps([_short(c) for c in constants])}"
            for name, constants in sorted(known.items())
        )
        for known in (tuning.families, tuning.kernels)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    body = ['  "families": {', families, "  },", '  "kernels": {', kernels, "  }"]
    text = "\n".join(["{", *lines, *body, "}"])
    path.write_text(text + "\n", encoding="utf-8")


def _short(constant: float) -> float:
    """Returns a constant rounded to four digits, finer than a measurement repeats."""
    return float(f"{constant:.4g}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value
