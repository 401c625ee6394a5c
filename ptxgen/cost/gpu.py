"""Peak rates of GPUs, from the driver or from data sheets of the architecture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ptxgen.cost.kernel import UNITS
from ptxgen.errors import SpecError


@dataclass(frozen=True)
class Rates:
    """Peak rates of a GPU: clock in GHz, memory bandwidth in bytes a µs, L2 in bytes.

    ``products``: multiplications of an SM in a cycle, for each of :data:`ptxgen.cost.kernel.UNITS`.
    """

    clock: float
    memory: float
    l2: float
    products: tuple[float, ...]

    def __post_init__(self) -> None:
        known = dict(zip(UNITS, self.products, strict=False))
        named = {"clock": self.clock, "memory": self.memory, "l2": self.l2, **known}
        if len(self.products) != len(UNITS) or not all(0 < r < math.inf for r in named.values()):
            raise SpecError(
                f"rates {named}: takes positive numbers, products of {', '.join(UNITS)}"
            )


def _rates(clock: float, memory: float, l2: float, *products: float) -> Rates:
    return Rates(clock, memory * 1e3, l2 * 1e6, products)


TYPICAL: Mapping[str, Rates] = MappingProxyType(
    {
        "sm_80": _rates(1.41, 2039, 40, 64, 1024, 1024, 32, 64, 2048, 2048),
        "sm_86": _rates(1.80, 768, 6, 128, 256, 256, 2, 2, 1024, 1024),
        "sm_87": _rates(1.30, 205, 4, 128, 256, 256, 2, 2, 1024, 1024),
        "sm_89": _rates(2.52, 1008, 72, 128, 256, 256, 2, 2, 1024, 1024),
        "sm_90": _rates(1.98, 4800, 50, 128, 1280, 2048, 64, 128, 2560, 4096),
        "sm_100": _rates(1.85, 8000, 126, 128, 1024, 1024, 64, 64, 2048, 2048),
        "sm_103": _rates(1.92, 8000, 126, 128, 1024, 1024, 2, 2, 256, 256),
        "sm_110": _rates(1.57, 273, 32, 128, 1024, 1024, 2, 2, 2048, 2048),
        "sm_120": _rates(2.41, 1792, 96, 128, 256, 256, 2, 2, 1024, 1024),
        "sm_121": _rates(2.42, 273, 24, 128, 256, 256, 2, 2, 1024, 1024),
    }
)
"""Rates of one GPU of each architecture, used where nothing else is known: A100 80 GB, RTX A6000,
Jetson AGX Orin, RTX 4090, H200, B200, B300, Jetson Thor, RTX 5090, GB10. NVIDIA's data sheets and
architecture papers; boost clocks (GHz), GB/s, MB; mma.sync on Hopper: five eighths of wgmma, as
measured on an H200."""
