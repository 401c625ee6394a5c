"""An element of a product is a function of its row, its column and K: random products beside slices
of their rows and columns, fused ones beside their parts, batches and groups beside loops, each by
whatever kernels serve. On the CPU device plans cut every 64 or 128, in the oracle as they are.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from bits import KINDS, NUMPY, operand, same_bits
from interp_cases import representatives, twin
from interp_launch import KERNELS, Case, admits, run
from plans import chunks_of

import ptxgen
from ptxgen import reference
from ptxgen.numerics.contract import ACTIVATIONS, AUTO_TIER, CONTRACTS, ITEMSIZE, PLANS
from ptxgen.runtime.cpu import SMS, CpuDevice
from ptxgen.tiles import SPECS, TABLES
from ptxgen.tiles.gemm import WIDTH_OF

SEED = 49
BLOCK, LONG_BLOCK, BLOCKS = 15, 8, 35
"""Problems of the first two blocks and of each long one; number of blocks."""
OPERANDS = [("f32", "simt"), ("bf16", "tc"), ("f16", "tc"), ("f64", "simt"), ("bf16", "simt")]
FILLERS = [TABLES["NN", "chunks", WIDTH_OF[d], t].routes[-1].name for d, t in OPERANDS]
"""Fallback kernels, which serve every problem."""
SHOWN = [*dict.fromkeys((*FILLERS, *representatives(KERNELS, "family", "split")))]
NAMES = [name for name in KERNELS if name not in SHOWN and not twin(name)]
GROUPED = {
    route.name: (key, route)
    for key, table in TABLES.items()
    if key[0] == "grouped" and key[2] == "rows"
    for dtype in table.dtypes
    for route in (each.of(dtype) for each in table.routes)
}


def kernels(block: int) -> dict[tuple[str, str], list[str]]:
    """Returns a block's kernels by dtype and tier: each kernel is in one block, fallbacks are in
    all.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for name in (*FILLERS, *NAMES[block - 2 :: BLOCKS - 2]) if block > 1 else SHOWN:
        spec = SPECS[name]
        for dtype in ("bf16", "f16") if spec.dtype == "bf16" and block > 1 else (spec.dtype,):
            found.setdefault((dtype, spec.tier), []).append(spec.of(dtype).name)
    return found


@functools.cache
def grouped(dtype: str, every: bool) -> list[str]:
    """Returns grouped kernels: all, or the one of least work for each way of adding chunks."""
    names = [name for name in GROUPED if SPECS[name].dtype == dtype]
    return names if every else representatives(names, "family", "split", twins=dtype == "f16")


def align(*lengths: int) -> int:
    """Returns the bytes that rows of ``lengths`` bytes are aligned to, 16 at most."""
    low = functools.reduce(operator.or_, lengths, 16)
    return low & -low


class Draw:
    """A random product ``activation(x · w + bias)`` on ``device``, and its kernels."""

    def __init__(
        self, seed: int, names: dict[tuple[str, str], list[str]], device: CpuDevice | None = None
    ):
        self.seed, self.device = seed, device
        self.rng = rng = np.random.default_rng([SEED, seed])
        known = [operands for operands in OPERANDS if operands in names]
        dtype, tier = known[seed % len(known)]
        self.names = names[dtype, tier]
        m, n = (int(rng.integers(1, 49)) for _ in "mn")
        longest = 600 if dtype != "f64" else 200  # whose fma takes the interpreter longest
        k = int(rng.integers(1, longest + 1 if rng.random() < 0.5 else 141))
        if rng.random() < 0.6:  # rows of whole vectors
            m, n, k = (-(-size // 8) * 8 for size in (m, n, k))
        aligns = [a for a in (2, 4, 8, 16, 16, 16, 16) if a >= ITEMSIZE[dtype]]
        self.case = Case(
            m,
            max(n, 2),
            k,
            activation=str(rng.choice(ACTIVATIONS)) if dtype != "f64" else "none",
            bias=bool(rng.random() < 0.5),
            out_f32=bool(rng.random() < 0.5),
            align=(int(rng.choice(aligns)), int(rng.choice(aligns))),
            dtype=dtype,
            tier=tier,
        )
        draw = functools.partial(operand, rng, kind=str(rng.choice(KINDS[:2])), dtype=dtype)
        self.x, self.w, self.bias = draw((m, k)), draw((k, self.case.n)), draw((self.case.n,))

    @property
    def out_dtype(self) -> str:
        return NUMPY[self.case.out_dtype].name

    def cut(self, size: int) -> slice:
        """A slice that is not empty."""
        begin, end = sorted(int(v) for v in self.rng.choice(size + 1, 2, replace=False))
        return slice(begin, end)

    def kernel(self, case: Case, names: Iterable[str]) -> str:
        """A kernel that serves ``case``."""
        found = [name for name in names if admits(KERNELS[name][1], case, SMS)]
        assert found, f"seed {self.seed}: nobody serves {case}"
        return str(self.rng.choice(found))

    def check(self, got: Any, expected: Any, name: str, what: str) -> None:
        same_bits(got, expected, seed=self.seed, spec=name, what=f"{self.case}: {what}")

    def of(self, rows: slice, columns: slice) -> tuple[Any, str]:
        """The product of some rows and columns, and the kernel that made it."""
        x, w, bias = self.x[rows], self.w[:, columns], self.bias[columns]
        case = replace(self.case, m=x.shape[0], n=w.shape[1])
        name = self.kernel(case, self.names)
        got, intact = run(self.device, name, case, given=(x, w, {case.dtype: bias}, {}))
        assert intact, f"seed {self.seed}, {name}, {case}: wrote beside the result"
        return got, name


def check_products(draw: Draw) -> Any:
    """Returns the whole product."""
    every, case = slice(None), draw.case
    whole, name = draw.of(every, every)
    how = {"tier": case.tier, "out_dtype": draw.out_dtype, "activation": case.activation}
    bias = draw.bias if case.bias else None
    draw.check(whole, reference.linear(draw.x, draw.w, bias, layout="kn", **how), name, "whole")
    rows, columns = draw.cut(case.m), draw.cut(case.n)
    got, name = draw.of(rows, columns)
    draw.check(got, whole[rows, columns], name, f"rows {rows}, columns {columns}")
    middle = int(draw.rng.integers(1, case.n))
    for part in (slice(0, middle), slice(middle, case.n)):  # weights side by side
        got, name = draw.of(every, part)
        draw.check(got, whole[:, part], name, f"columns {part} of a fused product")
    return whole


def check_turned(draw: Draw, x: Any, w: Any) -> None:
    """The transposed product, and the gradient of a weight, which is one of x's columns too."""
    how = {"tier": draw.case.tier, "out_dtype": draw.out_dtype}
    plain = reference.matmul(x, w, **how)
    draw.check(reference.matmul(w.T, x.T, **how).T, plain, "oracle", "transposed")
    rows, columns = draw.cut(x.shape[0]), draw.cut(w.shape[1])
    got = reference.linear_wgrad(x.T[:, rows], w[:, columns], layout="kn", **how)
    draw.check(got, plain[rows, columns], "oracle", "a gradient's rows and columns")


def check_batch(draw: Draw) -> None:
    """A batch's products are those of a loop."""
    count, at = int(draw.rng.integers(2, 4)), ITEMSIZE[draw.case.dtype]
    aligns = align(draw.case.k * at), align(draw.case.n * at)
    names = [n for n in draw.names if SPECS[n].batched and SPECS[n].layout == "NN"]
    name = draw.kernel(replace(draw.case, align=aligns), names)
    x = np.stack([np.roll(draw.x, i, 0) for i in range(count)])
    w = np.stack([np.roll(draw.w, i, 1) for i in range(count)])
    got = ptxgen.matmul(x, w, tier=draw.case.tier, kernel=name)
    for i in range(count):
        one = reference.matmul(x[i], w[i], tier=draw.case.tier)
        draw.check(got[i], one, name, f"matrix {i} of a batch")


def check_groups(draw: Draw, whole: Any, every: bool) -> None:
    """Rows of a group have the bits of a product of their own, whichever weight is theirs."""
    case, at = draw.case, ITEMSIZE[draw.case.dtype]
    if AUTO_TIER[case.dtype] != case.tier:  # groups have no other
        return
    middle = int(draw.rng.integers(0, case.m + 1))
    ends = np.array([middle, middle, case.m], np.int32)
    w = np.stack([draw.w, np.roll(draw.w, 1, 1), draw.w])  # the second has no rows
    bias = np.stack([draw.bias] * 3) if case.bias else None
    how = {"activation": case.activation, "out_dtype": draw.out_dtype}
    values = {"M": case.m, "N": case.n, "K": case.k, "GROUPS": 3, "SMS": SMS}
    names = grouped(case.dtype, every)
    for name in names[draw.seed // 3 % 8 :: 8] if every else names:  # by turns
        key, route = GROUPED[name]
        turned = key[1][1] == "T"
        if turned and 1 in w.shape[1:]:  # which lie both ways, and are taken for the other
            continue
        values["ALIGN_A"] = align(case.k * at)
        values["ALIGN_B"] = align((case.k if turned else case.n) * at)
        if not route.requires.evaluate(TABLES[key].space.environment(values)):
            continue
        weights = np.ascontiguousarray(w.swapaxes(1, 2)) if turned else w
        how["layout"] = "nk" if turned else "kn"
        got = ptxgen.grouped_linear(draw.x, weights, ends, bias, kernel=name, **how)
        draw.check(got, whole, name, f"groups that end at {ends}")


BLOCKS_RUN = [
    pytest.param(block, 64 << block % 2, marks=pytest.mark.long if block else ())
    for block in range(BLOCKS)
]


@pytest.mark.parametrize(("block", "chunk"), BLOCKS_RUN)
def test_an_element_knows_its_row_its_column_and_k(block: int, chunk: int) -> None:
    device, names = CpuDevice(), kernels(block)
    with chunks_of(chunk, device), ptxgen.use_device(device):
        for seed in range(block * BLOCK, block * BLOCK + (BLOCK if block < 2 else LONG_BLOCK)):
            draw = Draw(seed, names, device)
            whole = check_products(draw)
            check_turned(draw, draw.x, draw.w)
            if seed % 3 == 0:
                check_batch(draw)
            elif seed % 3 == 1:
                check_groups(draw, whole, every=block > 1)


LENGTHS = {"simt": (2049, 5000), "tc": (4097, 9000)}


@pytest.mark.parametrize("seed", range(len(OPERANDS) * 2))
def test_slices_of_the_contract(seed: int) -> None:
    """Oracles, of lengths that the plans cut."""
    draw = Draw(seed, {operands: [] for operands in OPERANDS})
    rng, dtype, tier = draw.rng, draw.case.dtype, draw.case.tier
    k = LENGTHS[tier][0] if seed < len(OPERANDS) else int(rng.integers(*LENGTHS[tier]))
    assert PLANS[CONTRACTS[tier][dtype].name]["chunks"].chunks(k) > 1
    x, w = (operand(rng, shape, "normal", dtype) for shape in ((5, k), (k, 6)))
    how = {"tier": tier, "layout": "kn"}
    whole = reference.linear(x, w, **how)
    rows, columns = draw.cut(5), draw.cut(6)
    draw.check(reference.linear(x[rows], w[:, columns], **how), whole[rows, columns], "oracle", "")
    check_turned(draw, x, w)
    batch = reference.matmul(np.stack([x, x]), w, tier=tier)
    draw.check(batch, np.stack([whole, whole]), "oracle", "a batch")
    if dtype != "f64" and AUTO_TIER[dtype] == tier:
        ends = np.array([2, 5], np.int32)
        groups = reference.grouped_linear(x, np.stack([w, w]), ends, layout="kn")
        draw.check(groups, whole, "oracle", "groups")


def test_the_kernels_of_all_blocks_are_all() -> None:
    seen = set(itertools.chain(*(itertools.chain(*kernels(b).values()) for b in range(BLOCKS))))
    assert seen >= {name for name in KERNELS if not twin(name)}
