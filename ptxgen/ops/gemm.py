"""Lowers products: from operands' buffers to problems ``C[M, N] = A . B``, storage and alignment.

The dimensions of an argument, and their order, follow from the operation's
:class:`~ptxgen.numerics.contract.Product`; no code here depends on a particular operation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics.activation import CODES
from ptxgen.numerics.contract import AUTO_TIER, CONTRACTS, OPERATIONS, TIERS, Operation, Product
from ptxgen.numerics.dtype import DTYPES, ITEMSIZE, Mixed, joint
from ptxgen.numerics.gemm import MATMUL
from ptxgen.numerics.signature import BATCH, DIM_MAX, Signature
from ptxgen.ops.views import alignment, check_vector, leading
from ptxgen.program.buffer import Buffer
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.launch import routes_by_name
from ptxgen.spec import (
    ACCUMULATE,
    ACTIVATION_SHIFT,
    ALONE,
    BATCH_MAX,
    BIAS_F32,
    CONTINUE,
    OUT_F32,
    Problem,
    of_result,
)
from ptxgen.tiles import TABLES
from ptxgen.tiles.gemm import WIDTH_OF

WIDE = frozenset({"linear_wgrad"})
"""Operations whose result has the accumulator's dtype by default."""

Served = Callable[[str, str], bool]
"""Function of storage ("NN" .. "TT") and plan's name: whether kernels serve such products."""

_TRANSPOSED = {"N": "T", "T": "N"}

_BatchAxis = tuple[int, tuple[int, ...]]
"""A batch dimension: its size, and the strides of A, B and C along it, in elements."""


@dataclass(frozen=True)
class Gemm:
    """A product as read from a call's operands.

    ``operation``, ``product``: the operation and, for its layout, the roles of its operands.
    ``storage``: storage of A and B ("NN" .. "TT"), after transposed views have been recognised.
    ``plan``: the plan's name. ``dtype``, ``tier``: short dtype of A, and the units that compute.
    ``dims``: m, n, k of the product. ``lds``: elements from row to row of A and B.
    ``batch``: sizes of the batch dimensions; ``steps``: strides of A and B along these, in
    elements. ``aligns``: alignment of A and B, bytes. ``sizes``: the operation's sizes by name.
    ``flags``: bits for the kernel (activation, accumulation, wide dtypes). ``operands``: A and B.
    """

    operation: Operation
    product: Product
    plan: str
    storage: str
    dtype: str
    tier: str
    dims: tuple[int, int, int]
    lds: tuple[int, int]
    batch: tuple[int, ...]
    steps: tuple[tuple[int, ...], tuple[int, ...]]
    aligns: tuple[int, int]
    sizes: Mapping[str, int]
    flags: int
    operands: tuple[Buffer, Buffer]
    bias: Buffer | None

    @property
    def operand_dtypes(self) -> Hashable:
        """Short dtype of the operands, or :class:`Mixed` if B's is not A's."""
        narrow = DTYPES[self.operands[1].dtype]
        return self.dtype if narrow == self.dtype else Mixed(self.dtype, narrow)

    def launched(self, target: Buffer) -> Iterator[tuple[Problem, dict[str, Buffer]]]:
        """Yields each launch's problem and operands: "a", "b", and "c", its part of ``target``."""
        matrix, steps = matrices("out", target, self.batch)
        m, n, k = self.dims
        lda, ldc = self.lds[0], check_out(target, matrix)
        flat, rows = _merged_axes(self.batch, (*self.steps, steps)), []
        if self.storage[0] == "N" and flat:
            # Neighbouring matrices of A with one B and contiguous rows are one taller matrix.
            count, (of_a, of_b, of_c) = flat[-1]
            evenly = m == 1 or (of_a, of_c) == (m * lda, m * ldc)
            if of_b == 0 < of_a and evenly and m * count <= DIM_MAX:
                lda, ldc = (of_a, of_c) if m == 1 else (lda, ldc)
                m *= count
                rows = [flat.pop()]
        operands, several = (*self.operands, target), [*_launches(flat)]
        for at, inner, outer in several:
            given = dict(zip("abc", operands, strict=True))
            if len(several) > 1:
                axes = outer, inner, *rows
                given = {n: _part(x, i, at[i], axes) for i, (n, x) in enumerate(given.items())}
            yield self._problem((m, n, k), lda, ldc, inner, outer, given["c"]), given

    def _problem(
        self,
        dims: tuple[int, int, int],
        lda: int,
        ldc: int,
        inner: _BatchAxis,
        outer: _BatchAxis,
        target: Buffer,
    ) -> Problem:
        m, n, k = dims
        scalars: dict[str, int | float] = dict(ALONE)
        scalars.update(LDA=lda, LDB=self.lds[1], LDC=ldc, FLAGS=self.flags)
        scalars["K"] = k  # kernels for K >= 1 serve K = 0 through this scalar
        scalars.update(BATCH=inner[0] * outer[0], INNER=inner[0])
        for along, (_, steps) in (("BATCH", inner), ("OUTER", outer)):
            scalars.update({f"{along}_{x}": step for x, step in zip("ABC", steps, strict=True)})
        table = table_of(self.storage, self.plan, self.dtype, self.tier)
        assert table is not None, "read has checked"
        sizes, batch = self.sizes, (inner[0], outer[0])
        return Problem(
            table,
            self.operand_dtypes,
            (
                *(("M", m), ("N", n), ("K", max(k, 1))),
                *(("ALIGN_A", self.aligns[0]), ("ALIGN_B", self.aligns[1])),
                *of_result(TABLES[table].space, alignment("out", target, ldc), target.itemsize),
            ),
            tuple(scalars.items()),
            f"{self.operation.name} M={sizes['M']} N={sizes['N']} K={sizes['K']}"
            + (f" in a batch of {prod(batch)}" if prod(batch) > 1 else ""),
            batch,
        )


@cache
def _routed(storage: str, plan: str) -> bool:
    """Whether there is a route table for products of this storage and plan."""
    return any(key[:2] == (storage, plan) for key in TABLES)


def lowered(
    b: ProgramBuilder,
    signature: Signature,
    operands: Mapping[str, Buffer | None],
    out: Buffer | None,
    *,
    layout: str,
    tier: str = "auto",
    out_dtype: str | None = None,
    activation: str | None = None,
    accumulate: bool = False,
    chain: bool = False,
    kernel: str | None = None,
) -> Buffer:
    """Records the launches of a product operation and returns its result. ``operands``: the
    arguments by name.
    """
    given = {n: x for n, x in operands.items() if x is not None}
    given = _converted(b, signature, given, layout, tier, chain)
    wanted = result_dtype(signature.name, given, out_dtype, out)
    (shape,) = signature.infer({n: x.shape for n, x in given.items()}, layout).results
    target = b.result(shape, wanted, out)
    if b.abstract:
        return target
    found = read(
        signature,
        given,
        layout=layout,
        tier=tier,
        wanted=wanted,
        activation=activation,
        accumulate=accumulate,
        chain=chain,
        kernel=kernel,
    )
    if target.size == 0:
        check_out(target, matrices("out", target, found.batch)[0])
        return target
    also = ("c",) if accumulate else ()
    for problem, each in found.launched(target):
        bias = {"bias": found.bias} if "bias" in signature.arguments else {}
        bind = {"a": each["a"], "b": each["b"], **bias, "c": each["c"]}
        b.launch(lambda: problem, bind, kernel, also)  # noqa: B023 - called at once
    return target


def _converted(
    b: ProgramBuilder,
    signature: Signature,
    given: dict[str, Buffer],
    layout: str,
    tier: str,
    chain: bool,
) -> dict[str, Buffer]:
    """Converts the 16-bit operands of a product with a float32 operand to float32, exactly. A
    16-bit B, and a bias of its dtype, stay: kernels convert the elements that they load.
    """
    operation = OPERATIONS[signature.name]
    first, second = (given[name].dtype for name in operation.arguments)
    if first == second or tier == "tc" or (own := joint(first, second)) is None:
        return given
    loaded = first == own and operation.products[layout].operands == (0, 1) and not chain
    kept = {second} if loaded else set()
    return {
        n: b.cast(x, own) if x.dtype not in kept and joint(x.dtype, own) == own else x
        for n, x in given.items()
    }


def read(
    signature: Signature,
    given: Mapping[str, Buffer],
    *,
    layout: str,
    tier: str,
    wanted: str,
    activation: str | None = None,
    accumulate: bool = False,
    chain: bool = False,
    kernel: str | None = None,
    served: Served = _routed,
) -> Gemm:
    """Reads a matrix product from the operands ``given`` (by name) of the operation ``signature``:
    sizes, storages, strides, alignments and flags. ``wanted``: the result's dtype; ``accumulate``,
    ``chain``: as of :func:`ptxgen.linear_wgrad`; ``served``: which storages have kernels.

    A vector fits both storages of a matrix: that of the forced ``kernel`` is taken, else that of
    ``layout``.

    Raises DtypeError, OptionError, and ShapeError for shapes that do not fit one another, sizes
    beyond 2^31 - 1, strides that no storage fits, and pointers off a multiple of the element size.
    """
    operation = OPERATIONS[signature.name]
    product = operation.products[layout]
    names = [operation.arguments[i] for i in product.operands]
    dtype, tier = _kind(operation, given, tier)
    contract = CONTRACTS[tier][dtype]
    plan = operation.plan(contract, operation.asked({"chain": chain}))
    if activation not in (None, "none") and not contract.activations:
        raise OptionError(f"activation is {activation!r}; {signature.name} of {dtype} takes None")
    inferred = signature.infer({n: v.shape for n, v in given.items()}, layout)
    sizes = inferred.sizes
    m, n, k = (sizes[d] for d in product.dims)
    bias = given.get("bias")
    if bias is not None:
        check_vector("bias", bias)
    forced = routes_by_name().get(kernel) if kernel else None
    prefer = getattr(forced[0].main, "layout", None) if forced else None
    a, other = (given[name] for name in names)
    form, shape = signature.forms[layout]["out"], inferred.results[0]
    batch = shape[:-2] if form.startswith(BATCH) else ()
    (matrix_a, steps_a), (matrix_b, steps_b) = (
        matrices(name, given[name], batch) for name in names
    )
    (storage_a, lda), (storage_b, ldb) = _storage(
        operation, plan.name, product, names, given, (matrix_a, matrix_b), prefer, served
    )
    if served is _routed and table_of(storage_a + storage_b, plan.name, dtype, tier) is None:
        takes = ["auto", *(t for t, dtypes in TIERS.items() if dtype in dtypes)]
        raise OptionError(
            f"tier is {tier!r}; {operation.name} of {dtype} takes {', '.join(map(repr, takes))}"
        )
    own = other.dtype
    flags = CODES[activation or "none"] << ACTIVATION_SHIFT
    if accumulate:
        flags |= CONTINUE if plan.continued else ACCUMULATE
    flags |= OUT_F32 if wanted != own else 0
    flags |= BIAS_F32 if bias is not None and bias.dtype != own else 0
    return Gemm(
        operation,
        product,
        plan.name,
        storage_a + storage_b,
        dtype,
        tier,
        (m, n, k),
        (lda, ldb),
        batch,
        (steps_a, steps_b),
        (alignment(names[0], a, lda, *steps_a), alignment(names[1], other, ldb, *steps_b)),
        sizes,
        flags,
        (a, other),
        bias,
    )


def batch_of(problem: Problem, a: Buffer, b: Buffer, c: Buffer) -> tuple[Buffer, Buffer, Buffer]:
    """Returns A, B and C of a batched product as views [outer, inner, M, K], [outer, inner, K, N]
    and [outer, inner, M, N], with the strides of ``problem``. ``a``, ``b``, ``c``: buffers that
    begin with the first matrices.
    """
    of: Mapping[str, Any] = {**dict(problem.values), **dict(problem.scalars)}
    (inner, outer), (m, n, k) = problem.batch, (of[d] for d in "MNK")
    matrices = zip("ABC", f"{problem.table[0]}N", (a, b, c), ((m, k), (k, n), (m, n)), strict=True)

    def laid(name: str, letter: str, x: Buffer, shape: tuple[int, int]) -> Buffer:
        along = of[f"OUTER_{name}"], of[f"BATCH_{name}"]
        rows = (of[f"LD{name}"], 1) if letter == "N" else (1, of[f"LD{name}"])
        return x.laid((outer, inner, *shape), (*along, *rows))

    first, second, target = (laid(*each) for each in matrices)
    return first, second, target


def sharing(problem: Problem, a: Buffer, b: Buffer, c: Buffer) -> Problem | None:
    """Returns the problem of one product with larger M that replaces the batched products of
    ``problem``, where several A share one B (stride 0 along a batch dimension): their rows are
    stacked. ``a``, ``b``, ``c``: its operands as views (:func:`batch_of`). Returns None if that
    takes more than one launch, another plan or other flags, or if M does not grow.
    """
    try:
        found = read(MATMUL, {"a": a, "b": b}, layout="nn", tier=problem.table[3], wanted=c.dtype)
    except ShapeError:  # no kernel reads B as it is stored
        return None
    (shared, _), *more = found.launched(c)
    if more or (found.plan, found.flags) != (problem.table[1], dict(problem.scalars)["FLAGS"]):
        return None
    return shared if dict(shared.values)["M"] > dict(problem.values)["M"] else None


@cache
def table_of(storage: str, plan: str, dtype: str, tier: str) -> tuple[str, ...] | None:
    """Returns the key of the route table of such products; None if there is none."""
    key = storage, plan, WIDTH_OF[dtype], tier
    return key if key in TABLES else None


def _kind(operation: Operation, given: Mapping[str, Buffer], tier: str) -> tuple[str, str]:
    """Returns A's short dtype and the tier; raises DtypeError."""
    first, second = operation.arguments
    a, b = given[first], given[second]
    if tier == "auto":
        if a.dtype not in DTYPES:
            raise DtypeError(
                f"{first} has dtype {a.dtype}; takes {' or '.join(DTYPES)}; convert it first"
            )
        tier = AUTO_TIER[DTYPES[a.dtype]]
    served = {name: short for name, short in DTYPES.items() if short in TIERS[tier]}
    if a.dtype not in served:
        raise DtypeError(
            f"{first} has dtype {a.dtype}; takes {' or '.join(served)} (tier {tier!r}); "
            f"convert it first"
        )
    loaded = tier == "simt" and joint(a.dtype, b.dtype) == a.dtype  # kernels convert B
    if b.dtype != a.dtype and not loaded:
        beside = [n for n in DTYPES if n != a.dtype and tier == "simt" and joint(a.dtype, n)]
        takes = " or ".join((f"{a.dtype}, that of {first}", *beside))
        raise DtypeError(f"{second} has dtype {b.dtype}; takes {takes}")
    bias = given.get("bias")
    if bias is not None and bias.dtype not in (accepted := _mixed(b.dtype)):
        raise DtypeError(f"bias has dtype {bias.dtype}; takes {' or '.join(accepted)}")
    return served[a.dtype], tier


def _mixed(dtype: str) -> tuple[str, ...]:
    """Returns the dtypes that bias and result may have with operands of ``dtype``."""
    return (dtype, "float32") if ITEMSIZE[DTYPES[dtype]] == 2 else (dtype,)


def result_dtype(name: str, given: Mapping[str, Any], asked: str | None, out: Buffer | None) -> str:
    """Returns the result's dtype: ``asked``, else that of ``out``, else the operation's default."""
    first = OPERATIONS[name].arguments[0]
    dtype = given[first].dtype
    if dtype not in DTYPES:
        takes = " or ".join(DTYPES)
        raise DtypeError(f"{first} has dtype {dtype}; takes {takes}; convert it first")
    accepted = _mixed(dtype)
    if asked is not None:
        if asked not in accepted:
            raise DtypeError(f"out_dtype is {asked!r}; takes {' or '.join(map(repr, accepted))}")
        return asked
    if out is not None:
        if out.dtype not in accepted:
            raise DtypeError(f"out has dtype {out.dtype}; takes {' or '.join(accepted)}")
        return out.dtype
    return accepted[-1] if name in WIDE else dtype


def matrices(name: str, view: Buffer, batch: tuple[int, ...]) -> tuple[Buffer, tuple[int, ...]]:
    """Returns the first matrix of an operand, and the operand's strides along the dimensions of
    ``batch``, in elements: 0 along those that it is broadcast to.
    """
    if not batch:
        return view.matrix(name), ()
    cut = len(view.shape) - 2
    matrix = replace(view, shape=view.shape[cut:], strides=view.strides[cut:]).matrix(name)
    if view.size == 0:  # frameworks disagree about the strides
        return matrix, (0,) * len(batch)
    own = (
        0 if size == 1 else step for size, step in zip(view.shape[:cut], view.strides, strict=False)
    )
    return matrix, (*(0,) * (len(batch) - cut), *own)


def _merged_axes(batch: tuple[int, ...], steps: tuple[tuple[int, ...], ...]) -> list[_BatchAxis]:
    """Merges batch dimensions that are evenly spaced in A, B and C. Returns the remaining ones by
    descending stride of C.
    """
    found: list[_BatchAxis] = []
    each = sorted(zip(batch, *steps, strict=True), key=lambda of: -abs(of[-1]))
    for size, *along in each:
        if size == 1:
            continue
        if found and found[-1][1] == tuple(size * step for step in along):
            size *= found.pop()[0]
        found.append((size, tuple(along)))
    return found


def _launches(
    flat: Sequence[_BatchAxis], at: tuple[int, ...] = (0, 0, 0)
) -> Iterator[tuple[tuple[int, ...], _BatchAxis, _BatchAxis]]:
    """Splits a batch into launches, since kernels iterate over two batch dimensions, of limited
    size. Yields for each launch the offsets of A, B and C in elements, the inner and the outer
    dimension.

    ``flat``: the batch dimensions; if there are more than two, there is a launch for each index
    along the shortest. ``at``: offsets at which the batch begins.
    """
    if len(flat) == 1 and flat[0][0] > BATCH_MAX:
        ((size, along),) = flat
        low = next(n for n in range(BATCH_MAX, 0, -1) if size % n == 0)
        if low > 1:
            flat = [(size // low, tuple(low * step for step in along)), (low, along)]
    sizes = [size for size, _ in flat]
    if len(flat) <= 2 and max(sizes, default=1) <= BATCH_MAX:
        alone: _BatchAxis = 1, (0, 0, 0)
        outer, inner = [alone, alone, *flat][-2:]
        yield at, inner, outer
        return
    most = 1 if len(flat) > 2 else BATCH_MAX
    i = sizes.index(min(sizes) if most == 1 else max(sizes))
    size, along = flat[i]
    for start in range(0, size, most):
        piece = [(min(most, size - start), along)] if most > 1 else []
        begin = tuple(x + start * step for x, step in zip(at, along, strict=True))
        yield from _launches([*flat[:i], *piece, *flat[i + 1 :]], begin)


def _part(view: Buffer, which: int, at: int, axes: Sequence[_BatchAxis]) -> Buffer:
    """Returns the view of A, B or C (``which``: 0, 1, 2) that one launch reads or writes: batch
    dimensions ``axes``, from ``at`` elements after the start of ``view``.
    """
    return replace(
        view,
        shape=(*(size for size, _ in axes), *view.shape[-2:]),
        strides=(*(along[which] for _, along in axes), *view.strides[-2:]),
        offset=view.offset + at * view.itemsize,
    )


def check_out(target: Buffer, matrix: Buffer) -> int:
    """Returns the row pitch, in elements, of a result whose first matrix is ``matrix``; raises
    ShapeError unless its rows have stride 1.
    """
    alignment("out", target)
    (_, columns), (pitch, along) = matrix.shape, matrix.strides
    if along != 1 and columns > 1 and target.size:
        raise ShapeError(
            f"out has strides {list(target.strides)}; takes stride 1 along the last dimension: "
            f"pass a contiguous array, or leave out= away"
        )
    return leading(matrix.shape[0], columns, pitch, matrix.itemsize)


def _storage(
    operation: Operation,
    plan: str,
    product: Product,
    names: list[str],
    given: Mapping[str, Buffer],
    found_as: tuple[Buffer, Buffer],
    prefer: str | None,
    served: Served,
) -> tuple[tuple[str, int], tuple[str, int]]:
    """Returns (storage letter, leading dimension) of A and of B, as declared or transposed; raises
    ShapeError if no storage fits the strides.

    ``product``: the declared storages; ``names``, ``given``: the operands, for the message;
    ``found_as``: the first matrix of A and of B; ``prefer``: the storages ("NN" .. "TT") to return
    if they fit; ``served``: which storages have kernels.
    """
    found = [
        storages_of(matrix, letter) for matrix, letter in zip(found_as, product.layout, strict=True)
    ]
    pairs = [(a, b) for a in found[0] for b in found[1] if served(a[0] + b[0], plan)]
    for a, b in pairs:
        if a[0] + b[0] == prefer:
            return a, b
    if pairs:
        return pairs[0]
    transposable = all(served(a + b, plan) for a in "NT" for b in "NT")
    for name, letter, storages in zip(names, product.layout, found, strict=True):
        if letter not in (s for s, _ in storages):
            view = given[name]
            raise ShapeError(
                f"{name} has shape {list(view.shape)} and strides {list(view.strides)}, which no "
                f"kernel of {operation.name} fits: takes stride 1 along the last dimension"
                f"{' (or a transposed view of such)' if transposable else ''}; "
                f"pass a contiguous copy of {name}"
            )
    raise AssertionError("the declared storage of every operation is served")


def storages_of(view: Buffer, declared: str) -> list[tuple[str, int]]:
    """Returns the storages (letter, pitch) in which a matrix has rows of stride 1, the declared one
    first.

    A contiguous column is listed first as a row of the transpose: its pitch is then not used, and
    kernels load it in vectors.
    """
    (rows, columns), (down, along) = view.shape, view.strides
    if rows * columns == 0:  # nothing will be read, and frameworks disagree about the strides
        return [
            (declared, leading(1, columns, 0, view.itemsize)),
            (_TRANSPOSED[declared], leading(1, rows, 0, view.itemsize)),
        ]
    found = []
    if along == 1 or columns <= 1:
        found.append((declared, leading(rows, columns, down, view.itemsize)))
    if down == 1 or rows <= 1:
        turned = _TRANSPOSED[declared], leading(columns, rows, along, view.itemsize)
        found.insert(0 if columns == 1 and rows > 1 and down == 1 else len(found), turned)
    return found
