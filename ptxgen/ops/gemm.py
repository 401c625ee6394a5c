"""How products are read: from arguments to ``C[M, N] = A . B``, its storage and alignment.

Which dimensions an argument has, and in which order, follows from the operation's
:class:`~ptxgen.numerics.contract.Product`; nothing about a particular operation is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from math import prod
from typing import Any

from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics.activation import CODES
from ptxgen.numerics.contract import (
    AUTO_TIER,
    CONTRACTS,
    OPERATIONS,
    TIERS,
    Operation,
    Product,
)
from ptxgen.numerics.dtype import DTYPES, ITEMSIZE, name_of
from ptxgen.numerics.gemm import DGRAD, LINEAR, MATMUL, WGRAD
from ptxgen.numerics.signature import BATCH, DIM_MAX, Signature
from ptxgen.ops.launch import routes_by_name
from ptxgen.ops.op import Op, Options, Question, Result
from ptxgen.ops.views import alignment, contiguous_copy, leading
from ptxgen.runtime.arrays import ArrayView
from ptxgen.spec import (
    ACCUMULATE,
    ACTIVATION_SHIFT,
    ALIGNMENT,
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

RESULT_F32 = frozenset({"linear_wgrad"})
"""Operations whose result is as wide as their sums, unless something else is asked for."""

Served = Callable[[str, str], bool]
"""Whether products stored so ("NN" .. "TT") are served under a plan (its name)."""

_TRANSPOSED = {"N": "T", "T": "N"}
_PARAMETERS = ("a", "b")


@dataclass(frozen=True, slots=True)
class Reading:
    """A product that a call asks for (:class:`ptxgen.ops.op.Reading`).

    ``storage``: how A and B lie in memory ("NN" .. "TT"), after transposed views have been
    recognised. ``plan``: its name. ``dims``: m, n, k of the product; ``lds``: elements from row to
    row of A and B; ``batch``: the dimensions of a batch, and ``steps`` from matrix to matrix of A
    and B along each; ``aligns``: of both, bytes; ``sizes``: the operation's own.
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
    results: tuple[Result, ...]

    def problem(self, targets: tuple[ArrayView, ...]) -> Problem | None:
        """See :meth:`ptxgen.ops.op.Reading.problem`."""
        (target,) = targets
        matrix, steps = _matrices("out", target, self.batch)
        m, n, k = self.dims
        if target.size == 0:
            _check_out(target, matrix)
            return None
        lda, ldc = self.lds[0], _check_out(target, matrix)
        flat = _flat(self.batch, (*self.steps, steps))
        if self.storage[0] == "N" and flat:
            # One B for neighbouring matrices, whose rows follow each other: those of one matrix.
            count, (of_a, of_b, of_c) = flat[-1]
            evenly = m == 1 or (of_a, of_c) == (m * lda, m * ldc)
            if of_b == 0 < of_a and evenly and m * count <= DIM_MAX:
                lda, ldc = (of_a, of_c) if m == 1 else (lda, ldc)
                m *= count
                flat.pop()
        told: dict[str, int | float] = dict(ALONE)
        told.update(LDA=lda, LDB=self.lds[1], LDC=ldc, FLAGS=self.flags)
        told["K"] = k  # the kernels of k = 1 serve an empty reduction, if told so
        inner, outer = _inner_outer(f"the batch {list(self.batch)} of {self.operation.name}", flat)
        told.update(BATCH=inner[0] * outer[0], INNER=inner[0])
        for along, (_, apart) in (("BATCH", inner), ("OUTER", outer)):
            told.update({f"{along}_{x}": step for x, step in zip("ABC", apart, strict=True)})
        return _problem(
            self.operation,
            self.product,
            self.plan,
            self.storage,
            self.dtype,
            self.tier,
            {"M": m, "N": n, "K": max(k, 1)},
            (*self.aligns, alignment("out", target, ldc)),
            target.itemsize,
            tuple(told.items()),
            self.sizes,
            (inner[0], outer[0]),
        )


@cache
def _routed(storage: str, plan: str) -> bool:
    """Whether products stored so are served under a plan."""
    return any(key[:2] == (storage, plan) for key in TABLES)


def read(
    signature: Signature,
    views: Mapping[str, ArrayView],
    options: Options,
    targets: tuple[str | None, ...],
    served: Served = _routed,
) -> Reading:
    """The product that an operation makes of ``views``.

    Vectors can be read as either storage: as the kernel asked for does, else as the layout says.

    Raises DtypeError, OptionError, and ShapeError for shapes that do not fit one another, sizes
    beyond 2^31 - 1, strides that no storage fits, and pointers off a multiple of the element size.
    """
    operation = OPERATIONS[signature.name]
    product = operation.products[options["layout"]]
    if options.get("accumulate") and targets[0] is None:
        raise OptionError("accumulate=True adds to out, but out is None; pass out=")
    names = [operation.arguments[i] for i in product.operands]
    dtype, tier = _kind(operation, views, options["tier"])
    wanted = _result_dtype(operation, views, options["out_dtype"], targets[0])
    activation, contract = options.get("activation"), CONTRACTS[tier][dtype]
    plan = operation.plan(contract, operation.asked(options))
    if activation not in (None, "none") and not contract.activations:
        raise OptionError(f"activation is {activation!r}; {signature.name} of {dtype} takes None")
    inferred = signature.infer({n: v.shape for n, v in views.items()}, options["layout"])
    sizes = inferred.sizes
    dims = tuple(sizes[d] for d in product.dims)
    bias = views.get("bias")
    if bias is not None:
        _check_bias(bias)
    kernel = options.get("kernel")
    forced = routes_by_name().get(kernel) if kernel else None
    prefer = getattr(forced[0].main, "layout", None) if forced else None
    a, b = (views[name] for name in names)
    form, shape = signature.forms[options["layout"]]["out"], inferred.results[0]
    batch = shape[:-2] if form.startswith(BATCH) else ()
    (matrix_a, steps_a), (matrix_b, steps_b) = (
        _matrices(name, views[name], batch) for name in names
    )
    (storage_a, lda), (storage_b, ldb) = _storage(
        operation, plan.name, product, names, views, (matrix_a, matrix_b), prefer, served
    )
    own = a.dtype
    flags = CODES[activation or "none"] << ACTIVATION_SHIFT
    if options.get("accumulate"):
        flags |= CONTINUE if plan.continued else ACCUMULATE
    flags |= OUT_F32 if wanted != own else 0
    flags |= BIAS_F32 if bias is not None and bias.dtype != own else 0
    return Reading(
        operation,
        product,
        plan.name,
        storage_a + storage_b,
        dtype,
        tier,
        (dims[0], dims[1], dims[2]),
        (lda, ldb),
        batch,
        (steps_a, steps_b),
        (alignment(names[0], a, lda, *steps_a), alignment(names[1], b, ldb, *steps_b)),
        sizes,
        flags,
        (Result(shape, wanted, bool(options.get("accumulate"))),),
    )


def pose(signature: Signature, question: Question) -> Problem:
    """The product of a problem given by sizes."""
    operation = OPERATIONS[signature.name]
    product = operation.products[question.options["layout"]]
    tier = question.options["tier"]
    tier = AUTO_TIER[question.dtype] if tier == "auto" else tier
    values = {v: question.sizes[d] for v, d in zip("MNK", product.dims, strict=True)}
    aligns = (question.aligns * 2)[:2]
    align_a, align_b = (aligns[i] for i in product.operands)
    return _problem(
        operation,
        product,
        operation.asked(question.options),
        product.layout,
        question.dtype,
        tier,
        values,
        (align_a, align_b, ALIGNMENT.high),
        ITEMSIZE[_asked_dtype(operation, question)],
        (),
        question.sizes,
    )


def _asked_dtype(operation: Operation, question: Question) -> str:
    """The dtype of the result of a problem given by sizes."""
    asked = question.options.get("out_dtype")
    if asked is not None:
        return DTYPES[name_of(asked, "out_dtype")]
    wide = operation.name in RESULT_F32 and ITEMSIZE[question.dtype] == 2
    return "f32" if wide else question.dtype


def _problem(
    operation: Operation,
    product: Product,
    plan: str,
    storage: str,
    dtype: str,
    tier: str,
    values: Mapping[str, int],
    aligns: tuple[int, int, int],
    item: int,
    told: tuple[tuple[str, int | float], ...],
    sizes: Mapping[str, int],
    batch: tuple[int, int] = (1, 1),
) -> Problem:
    table = table_of(storage, plan, dtype, tier)
    if table is None:
        served = ["auto", *(t for t, dtypes in TIERS.items() if dtype in dtypes)]
        raise OptionError(
            f"tier is {tier!r}; {operation.name} of {dtype} takes {', '.join(map(repr, served))}"
        )
    where = dict(zip(operation.arguments, ("a", "b"), strict=True))
    if product.operands == (1, 0):
        where = dict(zip(operation.arguments, ("b", "a"), strict=True))
    pointers = tuple(where.values())
    if "bias" in OPS[operation.name].signature.arguments:
        pointers += ("bias",)
    return Problem(
        table,
        dtype,
        (
            *values.items(),
            *(("ALIGN_A", aligns[0]), ("ALIGN_B", aligns[1])),
            *of_result(TABLES[table].space, aligns[2], item),
        ),
        told,
        (*pointers, "c"),
        f"{operation.name} M={sizes['M']} N={sizes['N']} K={sizes['K']}"
        + (f" in a batch of {prod(batch)}" if prod(batch) > 1 else ""),
        batch,
    )


@cache
def table_of(storage: str, plan: str, dtype: str, tier: str) -> tuple[str, ...] | None:
    """The key of the route table of these products; None if nothing serves them."""
    key = storage, plan, WIDTH_OF[dtype], tier
    return key if key in TABLES else None


def _kind(operation: Operation, views: Mapping[str, ArrayView], tier: str) -> tuple[str, str]:
    """The operands' dtype, as specs call it, and the tier."""
    first, second = operation.arguments
    a, b = views[first], views[second]
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
    if b.dtype != a.dtype:
        raise DtypeError(f"{second} has dtype {b.dtype}; takes {a.dtype}, that of {first}")
    bias = views.get("bias")
    if bias is not None and bias.dtype not in (accepted := _mixed(a.dtype)):
        raise DtypeError(f"bias has dtype {bias.dtype}; takes {' or '.join(accepted)}")
    return served[a.dtype], tier


def _mixed(dtype: str) -> tuple[str, ...]:
    """The dtypes that bias and result may have beside operands of ``dtype``."""
    return (dtype, "float32") if ITEMSIZE[DTYPES[dtype]] == 2 else (dtype,)


def _result_dtype(
    operation: Operation, views: Mapping[str, ArrayView], asked: Any, out: str | None
) -> str:
    """The dtype of the result: as asked for, that of ``out``, or the operation's own."""
    dtype = views[operation.arguments[0]].dtype
    accepted = _mixed(dtype)
    if asked is not None:
        named = name_of(asked, "out_dtype")
        if named not in accepted:
            raise DtypeError(f"out_dtype is {named!r}; takes {' or '.join(map(repr, accepted))}")
        return named
    if out is not None:
        if out not in accepted:
            raise DtypeError(f"out has dtype {out}; takes {' or '.join(accepted)}")
        return out
    return accepted[-1] if operation.name in RESULT_F32 else dtype


def _matrices(
    name: str, view: ArrayView, batch: tuple[int, ...]
) -> tuple[ArrayView, tuple[int, ...]]:
    """An operand as one matrix, and the steps from there to those of a batch: 0 along dimensions
    that it is broadcast to.
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


_Along = tuple[int, tuple[int, ...]]
"""A dimension of a batch: its size, and the steps of A, B and C along it."""


def _flat(batch: tuple[int, ...], steps: tuple[tuple[int, ...], ...]) -> list[_Along]:
    """As few dimensions as walk over a batch: neighbouring ones are one where all operands are
    evenly spaced.
    """
    found: list[_Along] = []
    for size, *along in zip(batch, *steps, strict=True):
        if size == 1:
            continue
        if found and found[-1][1] == tuple(size * step for step in along):
            size *= found.pop()[0]
        found.append((size, tuple(along)))
    return found


def _inner_outer(what: str, flat: list[_Along]) -> tuple[_Along, _Along]:
    """The inner and the outer dimension of a batch, as kernels take it; ``what`` it is."""
    alone: _Along = 1, (0, 0, 0)
    if len(flat) == 1 and flat[0][0] > BATCH_MAX:
        size, along = flat[0]
        low = next(n for n in range(BATCH_MAX, 0, -1) if size % n == 0)
        if low > 1:
            flat = [(size // low, tuple(low * step for step in along)), (low, along)]
    if len(flat) > 2:
        walked = "; ".join(f"{size} matrices, steps {list(along)}" for size, along in flat)
        raise ShapeError(
            f"{what} has {len(flat)} dimensions in memory ({walked} of a, b and out); takes up to "
            "two: pass contiguous operands that have all the leading dimensions"
        )
    if any(size > BATCH_MAX for size, _ in flat):
        raise ShapeError(
            f"{what} has {' x '.join(str(size) for size, _ in flat)} matrices; takes up to "
            f"{BATCH_MAX} along each of two dimensions: split it"
        )
    outer, inner = [alone, alone, *flat][-2:]
    return inner, outer


def _check_out(target: ArrayView, matrix: ArrayView) -> int:
    """The elements from row to row of the result, of which ``matrix`` is the first."""
    alignment("out", target)
    (_, columns), (pitch, along) = matrix.shape, matrix.strides
    if along != 1 and columns > 1 and target.size:
        raise ShapeError(
            f"out has strides {list(target.strides)}; takes stride 1 along the last dimension: "
            f"pass an array like {contiguous_copy('out', target)}, or leave out= away"
        )
    return leading(matrix.shape[0], columns, pitch, matrix.itemsize)


def _check_bias(bias: ArrayView) -> None:
    if bias.size > 1 and bias.strides != (1,):
        raise ShapeError(
            f"bias has stride {bias.strides[0]}; takes stride 1: "
            f"pass {contiguous_copy('bias', bias)}"
        )
    alignment("bias", bias, 0)


def _storage(
    operation: Operation,
    plan: str,
    product: Product,
    names: list[str],
    views: Mapping[str, ArrayView],
    matrices: tuple[ArrayView, ArrayView],
    prefer: str | None,
    served: Served,
) -> tuple[tuple[str, int], tuple[str, int]]:
    """(letter, leading dimension) of A and B: as declared, or as a transposed view."""
    found = [
        _storages(matrix, letter) for matrix, letter in zip(matrices, product.layout, strict=True)
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
            view = views[name]
            raise ShapeError(
                f"{name} has shape {list(view.shape)} and strides {list(view.strides)}, which no "
                f"kernel of {operation.name} fits: takes stride 1 along the last dimension"
                f"{' (or a transposed view of such)' if transposable else ''}; "
                f"pass {contiguous_copy(name, view)}"
            )
    raise AssertionError("the declared storage of every operation is served")


def _storages(view: ArrayView, declared: str) -> list[tuple[str, int]]:
    """The ways to read a matrix as rows of stride 1, the declared one first.

    A column that is dense in memory is one row of its transpose, and better read as such: its pitch
    is of no account then, and vectors lie along it.
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


OPS = {s.name: Op(s, partial(read, s), partial(pose, s)) for s in (LINEAR, DGRAD, WGRAD, MATMUL)}
"""The rows of the products."""
