"""Plans that cut short reductions, so that kernels of several chunks run on small problems."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from interp_launch import expected

from ptxgen.expr import const
from ptxgen.numerics.contract import DEFAULT_PLAN, PLANS, Plan
from ptxgen.ops import implicit_gemm
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec import conv, gemm, grouped
from ptxgen.tiles import TABLES, quantized, vocab_segments
from ptxgen.tiles import gemm as products
from ptxgen.tiles import grouped as groups


@contextmanager
def chunks_of(length: int, device: CpuDevice) -> Iterator[None]:
    """Lets the plan of every contract of products cut reductions into chunks of ``length``: in the
    spaces that launches are prepared from, and in the oracle.

    The dispatcher's generated code keeps the real plans, so kernels have to be forced.
    """
    cut = Plan(DEFAULT_PLAN, const(length))
    spaces = {key: gemm.space(cut) for key in products.TABLES if key[1] == cut.name}
    spaces |= {key: gemm.space(cut) for key in vocab_segments.TABLES if key[0] == "segments"}
    spaces |= {
        key: conv.space(cut)
        for key in (implicit_gemm.KEY, implicit_gemm.TURNED, implicit_gemm.SUMMED)
    }
    spaces |= {key: grouped.space(cut) for key in groups.TABLES if groups.PLAN[key[2]] == cut.name}

    derived = gemm.space(cut).derived
    of_products = (key for key in quantized.TABLES if key[0] == "quantized")
    spaces |= {key: replace(TABLES[key].space, derived=derived) for key in of_products}

    def forget() -> None:
        expected.cache_clear()
        device.prepared.clear()

    with pytest.MonkeyPatch.context() as patch:
        for known in PLANS.values():
            patch.setitem(known, cut.name, cut)
        patch.setattr(implicit_gemm, "TC16_CHUNKS", cut)
        for key, space in spaces.items():
            patch.setitem(TABLES, key, replace(TABLES[key], space=space))
        forget()
        yield
    forget()
