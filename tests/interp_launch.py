"""Launches on the CPU device as the library prepares them, on memory that notices everything."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from bits import KINDS, operand
from numpy.lib.stride_tricks import as_strided

from ptxgen import reference
from ptxgen.contract import ACTIVATIONS, OPERATIONS
from ptxgen.ops.launch import launch
from ptxgen.ops.problem import Problem
from ptxgen.ops.run import ACCUMULATE
from ptxgen.tiles import ROUTES

POISON = 0x7FC5A5A5
"""A NaN, in what lies beside a result."""
BAND = 64
"""Elements before and behind a result."""
SEED = 20260

# A kernel serves every product that is stored as it reads, whatever its table's plan.
KERNELS = {r.name: (layout, r) for (layout, _), table in ROUTES.items() for r in table}
"""The routes by the name of their first kernel, with the layout of their operands."""


class Matrix:
    """A [rows, columns] f32 matrix in an allocation of its own, in rows of ``pitch`` elements.

    It starts ``offset`` elements into the allocation and ends with it, or has ``band`` poisoned
    elements on both sides, and between its rows. What belongs to nobody has never been written,
    and nor has the matrix without ``values``, so reading it is a fault.
    """

    def __init__(self, memory, name, shape, values=None, *, pitch=0, offset=0, band=0):
        rows, columns = shape
        self.memory, self.pitch = memory, max(pitch, columns, 1)
        size = (rows - 1) * self.pitch + columns if rows * columns else 0
        total = 2 * band + offset + size
        self.allocation = memory.alloc(4 * total, name)
        self.ptr = self.allocation.base + 4 * (band + offset)
        self._bits = self.allocation.data.view(np.uint32)[:total]
        written = self.allocation.written.view(np.uint32)[:total]
        inside = functools.partial(
            as_strided, shape=shape, strides=(4 * self.pitch, 4), writeable=True
        )
        self.values = inside(self._bits[band + offset :].view(np.float32)) if size else None
        self._others = np.ones(total, np.bool_)
        if size:
            mine = as_strided(self._others[band + offset :], shape, (self.pitch, 1), writeable=True)
            mine[...] = False
        if band:
            self._bits[self._others] = POISON
            written[self._others] = 0x01010101
        if values is not None and size:
            self.values[...] = values
            inside(written[band + offset :])[...] = 0x01010101
        self.allocation.mark(0, 0)  # in case that this is everything

    @property
    def align(self):
        """The alignment, as kernels require it."""
        low = self.ptr | 4 * self.pitch | 16
        return low & -low

    def intact(self):
        """Whether the poison is still there."""
        return bool((self._bits[self._others] == POISON).all())

    def forget(self):
        """Nothing has been written here."""
        self.allocation.written = np.zeros(self.allocation.data.shape, np.uint8)

    def free(self):
        self.memory.free(self.allocation.base)


@dataclass(frozen=True)
class Case:
    """A problem, and how its arrays lie. Dimensions are those of the product."""

    m: int
    n: int
    k: int
    op: str = "linear"
    kind: str = "normal"
    activation: str = "none"
    bias: bool = True
    accumulate: bool = False
    aligned: tuple[bool, bool] = (True, True)
    odd: str = "both"
    """What keeps an operand off 16 bytes: its start ("offset"), its rows ("pitch"), or both."""
    extra: int = 0
    """Elements between the rows of the result."""
    offset: int = 0
    """Elements from a 16-byte boundary to the result."""
    exact: bool = False
    """The result ends with its allocation, rather than in a guard band."""

    def __str__(self):
        return (
            f"{self.op} {self.m}x{self.n}x{self.k} {self.kind} {self.activation} "
            f"bias={self.bias} accumulate={self.accumulate} aligned={self.aligned} ({self.odd}) "
            f"extra={self.extra} offset={self.offset}"
        )

    @property
    def flags(self):
        return (ACCUMULATE if self.accumulate else 0) | ACTIVATIONS.index(self.activation) << 8


@functools.lru_cache(maxsize=64)
def factors(m, n, k, kind):
    """The factors [m, k] and [k, n], a bias and an old result."""
    rng = np.random.default_rng([SEED, m, n, k, KINDS.index(kind)])
    shapes = (m, k), (k, n), (n,), (m, n)
    return tuple(operand(rng, shape, kind) for shape in shapes)


@functools.lru_cache(maxsize=256)
def expected(m, n, k, op, kind, activation, bias, accumulate):
    """The result of the contract."""
    x, w, vector, old = factors(m, n, k, kind)
    old = old if accumulate else None
    if op == "linear_wgrad":
        return reference.linear_wgrad(x.T, w, out_old=old)
    return reference.linear(x, w, vector if bias else None, activation=activation, out_old=old)


def oracle(case):
    return expected(
        case.m, case.n, case.k, case.op, case.kind, case.activation, case.bias, case.accumulate
    )


def admits(route, case, sms):
    """Whether every kernel of ``route`` is correct for ``case``."""
    align_a, align_b = (16 if a or case.k == 0 else 4 for a in case.aligned)
    values = {"M": case.m, "N": case.n, "K": max(case.k, 1), "SMS": sms}
    plan = OPERATIONS[case.op].plan
    env = plan.environment({**values, "ALIGN_A": align_a, "ALIGN_B": align_b})
    return route.requires.evaluate(env)


def place(memory, name, values, turned, aligned, odd):
    """The factor ``values`` in device memory, transposed if ``turned``."""
    values = values.T if turned else values
    columns = values.shape[1]
    pitch, offset = -(-columns // 4) * 4 + 4 * (columns % 2), 0
    if not aligned:
        pitch = columns | 1 if odd != "offset" else pitch
        offset = 1 if odd != "pitch" else 0
    return Matrix(memory, name, values.shape, values, pitch=pitch, offset=offset)


def run(device, kernel, case, *, freed="", unwritten="", short=""):
    """The result of a forced kernel, and whether everything beside it is as it was.

    The array called ``freed`` (A, B, bias or out) is freed before the launch; that called
    ``unwritten`` has no values; that called ``short`` lacks its last element.
    """
    storage, _ = KERNELS[kernel]
    m, n, k = case.m, case.n, case.k
    x, w, vector, old = factors(m, n, k, case.kind)
    memory = device.memory
    a = place(memory, "A", x, storage[0] == "T", case.aligned[0], case.odd)
    b = place(memory, "B", w, storage[1] == "T", case.aligned[1], case.odd)
    bias = Matrix(memory, "bias", (1, n), vector[None] if case.bias else None)
    before, band = old if case.accumulate else None, 0 if case.exact else BAND
    pitch, offset = n + case.extra, case.offset
    out = Matrix(memory, "out", (m, n), before, pitch=pitch, offset=offset, band=band)
    arrays = {"A": a, "B": b, "bias": bias, "out": out}
    if unwritten:
        arrays[unwritten].forget()
    if short:
        arrays[short].allocation.nbytes -= 4
    aligns = tuple(16 if k == 0 else matrix.align for matrix in (a, b))
    problem = Problem(
        op=case.op,
        storage=storage,
        dims=(m, n, k),
        lds=(a.pitch, b.pitch),
        aligns=aligns,
        own=(m, n, k),
        shape=(m, n),
        swapped=False,
    )
    try:
        prepared = launch(
            problem, device, out.pitch, case.flags, dtype="f32", tier="simt", kernel=kernel
        )
        if freed:
            arrays[freed].free()
        prepared.fire(0, a.ptr, b.ptr, bias.ptr if case.bias else 0, out.ptr)
        return out.values.copy(), out.intact()
    finally:
        for matrix in arrays.values():
            matrix.free()
        device.workspace.release()  # so that nobody reads what the last launch left there
