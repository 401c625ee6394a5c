"""Launches on the CPU device as the library prepares them, on memory that notices everything."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np
from bits import KINDS, NUMPY, operand
from numpy.lib.stride_tricks import as_strided

from ptxgen import reference
from ptxgen.numerics.contract import ACTIVATIONS, OPERATIONS
from ptxgen.ops.gemm import table_of
from ptxgen.program.launch import launch
from ptxgen.spec import (
    ACCUMULATE,
    ACTIVATION_SHIFT,
    ALONE,
    BIAS_F32,
    CONTINUE,
    OUT_F32,
    GemmSpec,
    Problem,
    of_result,
)
from ptxgen.tiles import TABLES

POISON = {8: 0x7FF8A5A5A5A5A5A5, 4: 0x7FC5A5A5, 2: 0x7FE5, 1: 0xA5}
"""A NaN, in what lies beside a result; by bytes of an element."""
BAND = 64
"""Elements before and behind a result."""
SEED = 20260

ROUTES = {
    twin.name: twin
    for table in TABLES.values()
    for dtype in table.dtypes
    for twin in (table.route(index, dtype) for index in range(len(table.routes)))
}
"""Every route, of every dtype, by name."""
ROUTED = {name: route for name, route in ROUTES.items() if not route.kernels[0].prepares}
"""Routes that begin with their main kernel; together they have all main kernels. Routes that copy
first are in test_realign.py.
"""

# A kernel serves every product that is stored as it reads, whatever its table's plan.
KERNELS = {
    name: (route.kernels[0].layout, route)
    for name, route in ROUTED.items()
    if isinstance(route.kernels[0], GemmSpec)
    and {"b", "c"} <= route.kernels[0].abi.offsets.keys()
    and not route.kernels[0].continues
}
"""The routes of products of two dense operands, with their layout."""
CONTINUED = {name: route for name, route in ROUTED.items() if route.kernels[0].continues}
"""Routes whose chains may continue from what the result holds; they serve no other plan."""


class Matrix:
    """A [rows, columns] matrix in an allocation of its own, in rows of ``pitch`` elements.

    It starts ``offset`` elements into the allocation and ends with it, or has ``band`` poisoned
    elements on both sides, and between its rows. What belongs to nobody has never been written,
    and nor has the matrix without ``values``, so reading it is a fault.
    """

    def __init__(self, memory, name, shape, values=None, *, dtype="f32", pitch=0, offset=0, band=0):
        rows, columns = shape
        kind = NUMPY.get(dtype) or np.dtype(dtype)
        self.itemsize = item = kind.itemsize
        self.memory, self.pitch = memory, max(pitch, columns, 1)
        size = (rows - 1) * self.pitch + columns if rows * columns else 0
        total = 2 * band + offset + size
        self.allocation = memory.alloc(item * total, name)
        self.ptr = self.allocation.base + item * (band + offset)
        self._bits = self.allocation.data.view(f"u{item}")[:total]
        written = self.allocation.written.view(f"u{item}")[:total]
        everywhere = int.from_bytes(b"\1" * item, "little")
        inside = functools.partial(
            as_strided, shape=shape, strides=(item * self.pitch, item), writeable=True
        )
        self.values = inside(self._bits[band + offset :].view(kind)) if size else None
        self._others = np.ones(total, np.bool_)
        if size:
            mine = as_strided(self._others[band + offset :], shape, (self.pitch, 1), writeable=True)
            mine[...] = False
        if band:
            self._bits[self._others] = POISON[item]
            written[self._others] = everywhere
        if values is not None and size:
            self.values[...] = values
            inside(written[band + offset :])[...] = everywhere
        self.allocation.mark(0, 0)  # in case that this is everything

    @property
    def align(self):
        """The alignment, as kernels require it."""
        low = self.ptr | self.itemsize * self.pitch | 16
        return low & -low

    def intact(self):
        """Whether the poison is still there."""
        return bool((self._bits[self._others] == POISON[self.itemsize]).all())

    def forget(self):
        """Marks all elements as never written."""
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
    chain: bool = False
    align: tuple[int, int] = (16, 16)
    """Bytes that the operands are aligned to, and not to more."""
    odd: str = "both"
    """Cause of an operand's misalignment: its start ("offset"), its rows ("pitch"), or both."""
    extra: int = 0
    """Elements between the rows of the result."""
    offset: int = 0
    """Elements from a 16-byte boundary to the result."""
    exact: bool = False
    """The result ends with its allocation, rather than in a guard band."""
    bias_f32: bool = False
    out_f32: bool = False
    """Whether bias and result are f32 where the operands are not."""
    dtype: str = "f32"
    tier: str = "simt"

    def __str__(self):
        mixed = f"bias f32={self.bias_f32} out f32={self.out_f32} " * (self.dtype != "f32")
        return (
            f"{self.op} {self.m}x{self.n}x{self.k} {self.dtype} {self.tier} {self.kind} "
            f"{self.activation} bias={self.bias} accumulate={self.accumulate} chain={self.chain} "
            f"{mixed}align={self.align} ({self.odd}) extra={self.extra} offset={self.offset}"
        )

    def of(self, spec):
        """Returns the problem in a kernel's dtype and tier, without activation if the contract has
        none.
        """
        activation = self.activation if spec.contract.activations else "none"
        return replace(self, dtype=spec.dtype, tier=spec.tier, activation=activation)

    @property
    def beside(self):
        """The dtype that bias and result may have, if not the operands'."""
        return "f64" if self.dtype == "f64" else "f32"

    @property
    def bias_dtype(self):
        return self.beside if self.bias_f32 else self.dtype

    @property
    def out_dtype(self):
        return self.beside if self.out_f32 else self.dtype

    @property
    def plan(self):
        """The name of its plan."""
        return OPERATIONS[self.op].asked({"chain": self.chain})

    @property
    def align_out(self):
        """Bytes that the result is aligned to."""
        low = NUMPY[self.out_dtype].itemsize * (self.offset | self.n + self.extra) | 16
        return low & -low

    @property
    def flags(self):
        return (
            (0 if not self.accumulate else CONTINUE if self.chain else ACCUMULATE)
            | (BIAS_F32 if self.bias and self.bias_dtype == "f32" else 0)
            | (OUT_F32 if self.out_dtype == "f32" else 0)
            | ACTIVATIONS.index(self.activation) << ACTIVATION_SHIFT
        )


@functools.lru_cache(maxsize=64)
def factors(m, n, k, kind, dtype="f32"):
    """The factors [m, k] and [k, n]; a bias and an old result, each by its dtype."""
    rng = np.random.default_rng([SEED, m, n, k, KINDS.index(kind)])
    x, w = operand(rng, (m, k), kind, dtype), operand(rng, (k, n), kind, dtype)
    beside = dict.fromkeys((dtype, "f64" if dtype == "f64" else "f32"))
    biases = {one: operand(rng, (n,), kind, one) for one in beside}
    return x, w, biases, {one: operand(rng, (m, n), kind, one) for one in beside}


@functools.lru_cache(maxsize=256)
def expected(m, n, k, op, kind, activation, bias, old, out, dtype, tier, chain):
    """The result of the contract; ``bias``, ``old``, ``out``: dtypes, None without."""
    x, w, biases, olds = factors(m, n, k, kind, dtype)
    how = {"tier": tier, "out_dtype": NUMPY[out].name, "out_old": olds[old] if old else None}
    how["layout"] = "kn"
    if op == "linear_wgrad":
        return reference.linear_wgrad(x.T, w, chain=chain, **how)
    return reference.linear(x, w, biases[bias] if bias else None, activation=activation, **how)


def oracle(case):
    """The bits that every kernel returns."""
    return expected(
        case.m,
        case.n,
        case.k,
        case.op,
        case.kind,
        case.activation,
        case.bias_dtype if case.bias and case.op != "linear_wgrad" else None,
        case.out_dtype if case.accumulate else None,
        case.out_dtype,
        case.dtype,
        case.tier,
        case.chain,
    )


def admits(route, case, sms):
    """Whether every kernel of ``route`` is correct for ``case``."""
    align_a, align_b = case.align if case.k else (16, 16)
    values = {"M": case.m, "N": case.n, "K": max(case.k, 1), "SMS": sms}
    first = route.main
    table = table_of(first.layout, case.plan, first.dtype, first.tier)
    if table is None:  # nobody asks for such a product
        return False
    values |= {"ALIGN_A": align_a, "ALIGN_B": align_b}
    asked = case.of(first)
    item = NUMPY[asked.out_dtype].itemsize
    values |= of_result(TABLES[table].space, asked.align_out, item)
    return route.requires.evaluate(TABLES[table].space.environment(values))


def place(memory, name, values, dtype, turned, align, odd):
    """The factor ``values`` in device memory, transposed if ``turned``."""
    values = values.T if turned else values
    columns = values.shape[1]
    unit, whole = (size // NUMPY[dtype].itemsize for size in (align, 16))
    pitch, offset = max(-(-columns // whole) + columns % 2, 1) * whole, 0
    if unit < whole:
        units = -(-columns // unit)
        pitch = (units | 1) * unit if odd != "offset" else pitch
        offset = unit if odd != "pitch" else 0
    return Matrix(memory, name, values.shape, values, dtype=dtype, pitch=pitch, offset=offset)


def run(device, kernel, case, *, given=None, freed="", unwritten="", short=""):
    """The result of a forced kernel, and whether everything beside it is as it was. ``given``: the
    operands, as :func:`factors` returns them, where they are not these.

    The array called ``freed`` (A, B, bias or out) is freed before the launch; that called
    ``unwritten`` has no values; that called ``short`` lacks its last element.
    """
    spec = ROUTES[kernel].main
    storage, case = spec.layout, case.of(spec)
    m, n, k, dtype = case.m, case.n, case.k, case.dtype
    x, w, biases, olds = given or factors(m, n, k, case.kind, dtype)
    memory = device.memory
    a = place(memory, "A", x, dtype, storage[0] == "T", case.align[0], case.odd)
    b = place(memory, "B", w, dtype, storage[1] == "T", case.align[1], case.odd)
    vector = biases[case.bias_dtype][None] if case.bias else None
    bias = Matrix(memory, "bias", (1, n), vector, dtype=case.bias_dtype)
    before, band = olds[case.out_dtype] if case.accumulate else None, 0 if case.exact else BAND
    out = Matrix(
        memory,
        "out",
        (m, n),
        before,
        dtype=case.out_dtype,
        pitch=n + case.extra,
        offset=case.offset,
        band=band,
    )
    arrays = {"A": a, "B": b, "bias": bias, "out": out}
    if unwritten:
        arrays[unwritten].forget()
    if short:
        arrays[short].allocation.nbytes -= arrays[short].itemsize
    aligns = tuple(16 if k == 0 else matrix.align for matrix in (a, b))
    values = {"M": m, "N": n, "K": max(k, 1), "ALIGN_A": aligns[0], "ALIGN_B": aligns[1]}
    table = table_of(storage, case.plan, dtype, case.tier)
    values |= of_result(TABLES[table].space, out.align, out.itemsize)
    scalars = {
        **dict(ALONE),
        "LDA": a.pitch,
        "LDB": b.pitch,
        "LDC": out.pitch,
        "FLAGS": case.flags,
        "K": k,
    }
    problem = Problem(
        table=table,
        dtype=dtype,
        values=tuple(values.items()),
        scalars=tuple(scalars.items()),
        what=str(case),
    )
    try:
        prepared = launch(problem, ("a", "b", "bias", "c"), device, kernel)
        if freed:
            arrays[freed].free()
        prepared.fire(0, a.ptr, b.ptr, bias.ptr if case.bias else 0, out.ptr)
        return out.values.copy(), out.intact()
    finally:
        for matrix in arrays.values():
            matrix.free()
        device.workspace.release()  # so that nobody reads what the last launch left there
