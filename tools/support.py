"""Writes docs/reference/support.md: calls every public operation with every dtype.

``python tools/support.py`` prints the page. ``--write`` writes it, and adds to
docs/reference/operations.md a line for each operation that the page does not name, and to
docs/reference/quantized.md the table of formats. ``tests/test_support.py`` compares all three with
the code.

Operations come from the tables and arguments from their signatures, so a new operation needs no
change here. A call ends when a kernel has been chosen; nothing is compiled or launched. Without
PyTorch the cells about PyTorch keep their text, and those of a new operation follow from its
description; tests with PyTorch check them.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import ptxgen
from ptxgen import functions, int4, layout, quantized
from ptxgen.errors import DtypeError, FormulaError, GradError
from ptxgen.numerics.dtype import STORABLE
from ptxgen.numerics.formats import FORMATS
from ptxgen.numerics.signature import elements
from ptxgen.numerics.weight_format import WeightFormat
from ptxgen.ops import OPERATIONS
from ptxgen.ops.explaining_code import Unmade
from ptxgen.ops.pointwise import Pointwise
from ptxgen.ops.pointwise_table import ROWS
from ptxgen.ops.reductions import RowFunction

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "support.md"
OPERATIONS_PAGE = PAGE.with_name("operations.md")
DTYPES = {short: np.dtype(getattr(ml_dtypes, name, name)) for name, short in STORABLE.items()}
YES, NO = "✓", "–"
FORMAT = "int8_block"
"""Weight format with which quantized operations are called."""

TITLES = {
    "products": "Products",
    "grouped": "Products",
    "conv": "Convolutions",
    "im2col": "Convolutions",
    "moe": "Mixtures of experts",
    "triangular": "Triangular systems",
    "fft": "Fourier transforms",
    "fft_functions": "Fourier transforms",
    "stft": "Fourier transforms",
    "spectrogram": "Spectra",
    "quantized": "Quantized products",
    "int4": "Quantized products",
    "reductions": "Reductions, norms, losses",
    "logsumexp": "Reductions, norms, losses",
    "losses": "Reductions, norms, losses",
    "norms": "Reductions, norms, losses",
    "channels": "Reductions, norms, losses",
    "pool": "Pooling and resizing",
    "resize": "Pooling and resizing",
    "column_reductions": "Reductions, norms, losses",
    "indexing": "Rows by index",
    "attention": "Attention",
    "attention_grad": "Attention",
    "recurrence": "Recurrences",
    "delta": "Recurrences",
    "scan": "Scans, selections, dropout",
    "select": "Scans, selections, dropout",
    "sort": "Sorts, counts, unique values",
    "dropout": "Scans, selections, dropout",
    "neighbours": "Scans, selections, dropout",
}
"""Titles of groups of operations, by the module that lowers the operation."""
QUANTIZED = {
    "int4_gemm": ("int4.gemm", int4.gemm),
    "quantized_linear": ("quantized.linear", quantized.linear),
    "quantized_linear_dgrad": ("quantized.linear_dgrad", quantized.linear_dgrad),
}
"""Public name and function of each operation that is not an attribute of ``ptxgen``."""
OF_THEIR_OWN = {
    **dict.fromkeys(("indices", "ids", "target", "experts", "places"), "i64"),
    **dict.fromkeys(("seeds", "positions"), "i64"),
    **dict.fromkeys(("mean", "rstd", "lse", "A"), "f32"),
    "condition": "bool",
    **dict.fromkeys(("boxes", "tiles", "splats"), "i32"),
    **dict.fromkeys(("ends", "order"), "i64"),
}
"""Dtypes of arguments that do not have the dtype under test."""
UNDER_TEST = ("splat_prepare", "splat_render")
"""Operations whose ``positions`` are points, which have the dtype under test."""
NUMBERS = {
    "k": 2,
    "minlength": 4,
    "count": 4,
    "shifts": 1,
    "size": (2, 2),
    "window": (2, 2),
    "rows": 4,
    "groups": 2,
    "dtype": "f32",
    "axis": 0,
    "start": 1,
    "length": 2,
    "heads": 2,
    "kv_heads": 1,
    "image": 7,
    "taps": 1,
    "shape": (4, 4, 4),
    "widths": [(1, 1), (0, 1)],
    "layout": "kn",
    "segments": 2,
    "n_fft": 4,
    "width": 4,
    "height": 4,
}
"""Values of arguments that are not arrays."""
_SPLATS = {
    **dict.fromkeys(("positions", "scales", "colours"), (4, 3)),
    **{"rotations": (4, 4), "opacities": (4,), "view": (4, 4), "intrinsics": (3, 3)},
}
SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "im2col": {"x": (1, 4, 4)},  # four taps, one window
    "col2im": {"x": (4, 1)},
    "log_mel": {"filters": (2, 2)},
    "log_mel_spectrogram": {"waveform": (400,)},
    "splat_prepare": _SPLATS,
    "splat_render": _SPLATS,
    "splat_sort": {"depths": (4,), "boxes": (4, 4)},
    "splat_rasterize": {
        **dict.fromkeys(("tiles", "splats", "places"), (8,)),
        **{"points": (4, 9), "ends": (4,), "order": (4,)},
    },
}
"""Shapes of arguments that do not follow from an operation's forms, by operation."""
STATED = ("layout", "width", "height")
"""Options that every call must state."""
NAMED = ("k", "rows", "shifts", "count", "image", "taps", "segments", "n_fft", "width", "height")
"""Integer options that functions of ``ptxgen.torch`` take by name."""


class Operation(NamedTuple):
    """A public operation: group, public name, function, and name in ``OPERATIONS`` ("" if it has
    none there).
    """

    group: str
    name: str
    call: Callable[..., Any]
    row: str = ""

    def shape(self, parameter: str) -> tuple[int, ...]:
        """Returns an argument's shape: 4 elements an axis, recurrences 8, quantized products 64."""
        if parameter in ("cos", "sin") or self.name == "layout.view_as_complex":
            return 4, 2
        if parameter in SHAPES.get(self.row, ()):
            return SHAPES[self.row][parameter]
        if self.row.startswith("attention"):
            return (1, 2, 4) if parameter == "lse" else (1, 2, 4, 8)
        found = OPERATIONS[self.row].forms if self.row else None
        if found is None:
            return 4, 4
        forms = next(iter(found.forms.values()))
        size = {"Quantized products": 64, "Recurrences": 8}.get(self.group, 4)
        many = {"S": size * size}  # the slots of all tokens
        dims = map(elements, forms[parameter].split())
        return tuple(many.get(s, size) // unit * n + more for s, unit, more, n in dims)

    def arguments(self, dtype: str, optional: tuple[str, ...] = ()) -> dict[str, Any]:
        """Returns the arguments of a call: the required ones and those in ``optional``."""
        if isinstance(self.call, Pointwise):
            names = list(self.call.arguments)
        else:
            parameters = inspect.signature(self.call).parameters.values()
            names = [p.name for p in parameters if p.default is p.empty or p.name in optional]
        return {name: self._argument(name, dtype) for name in names}

    def _argument(self, name: str, dtype: str) -> Any:
        if name == "size" and self.row == "unique":
            return 4
        if name in NUMBERS and self.group not in ("Attention", "Recurrences"):  # k is an array
            return NUMBERS[name]
        if name == "q" and self.group == "Quantized products":
            return quantized.quantize(np.ones((64, 64), np.float32), FORMAT)
        if name == "arrays":
            return [np.ones((4, 4), DTYPES[dtype]) for _ in range(2)]
        shape = self.shape(name)
        if name == "offsets":  # ends of groups ascend
            return np.arange(1, shape[0] + 1, dtype=np.int32)
        values = 1 + np.arange(math.prod(shape)).reshape(shape) % 3  # indices, too, of all axes
        points = name == "positions" and self.row in UNDER_TEST
        return values.astype(DTYPES[dtype if points else OF_THEIR_OWN.get(name, dtype)])


def operations() -> Iterator[Operation]:
    """Yields every public operation, group by group."""
    rows = []
    for name, op in OPERATIONS.items():
        if op.public or name in QUANTIZED:
            home = op.lower.__module__.rpartition(".")[2]
            public, call = QUANTIZED[name] if name in QUANTIZED else (name, getattr(ptxgen, name))
            title = TITLES.get(home, home.replace("_", " ").capitalize())
            rows.append(Operation(title, public, call, name))
    groups = [*dict.fromkeys(TITLES.values()), *(row.group for row in rows)]
    yield from sorted(rows, key=lambda row: (groups.index(row.group), row.name))
    for name in (*(row.name for row in ROWS), "cast"):
        yield Operation("Pointwise functions", f"functions.{name}", getattr(functions, name))
    for name in layout.__all__:
        yield Operation("Views and copies", f"layout.{name}", getattr(layout, name))


def served(operation: Operation, dtype: str) -> str:
    """Returns whether an operation takes arrays of ``dtype``. Raises errors other than refusals of
    the dtype.
    """
    try:
        operation.call(**operation.arguments(dtype))
    except (DtypeError, FormulaError):
        return NO
    return YES


def tensors(operation: Operation, dtype: str) -> tuple[Callable[..., Any], list[Any], Any]:
    """Returns the PyTorch function of an operation, its positional and its keyword arguments."""
    import torch

    import ptxgen.torch

    def tensor(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return torch.from_numpy(value)
        if isinstance(value, quantized.QuantizedWeight):
            weight = quantized.quantize(torch.ones(64, 64), FORMAT)
            assert weight.operands  # made once, under a lock, which no compiler traces
            return weight
        many = isinstance(value, list) and isinstance(value[0], np.ndarray)
        return list(map(tensor, value)) if many else value

    call = getattr(ptxgen.torch, operation.row, operation.call) if operation.row else operation.call
    optional = ("weight", "bias") if dtype.startswith("f") else ()
    if isinstance(OPERATIONS.get(operation.row), RowFunction):
        optional = ("axis", *optional)  # of graphs, too
    by_place = inspect.signature(call).parameters
    given = {
        n: tensor(v)
        for n, v in operation.arguments(dtype, optional).items()
        if n in STATED or n not in by_place or by_place[n].kind is not by_place[n].KEYWORD_ONLY
    }
    options = {n: v for n, v in given.items() if n in STATED or (n in NAMED and type(v) is int)}
    return call, [v for n, v in given.items() if n not in options], options


def gradients(operation: Operation, dtype: str) -> str:
    """Returns which arguments have gradients in PyTorch: all, the first one, or none."""
    from torch.utils._pytree import tree_leaves

    count = len([t for t in tree_leaves(tensors(operation, dtype)[1]) if _real(t)])
    if count and _differentiable(operation, dtype, count):
        return YES
    if count > 1 and _differentiable(operation, dtype, 1):
        return f"of `{next(iter(operation.arguments(dtype)))}`"
    return NO


def _real(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _differentiable(operation: Operation, dtype: str, count: int) -> bool:
    """Returns whether the first ``count`` float or complex arguments have gradients.

    The backward pass uses fake tensors, because the forward pass has computed nothing.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._pytree import tree_leaves, tree_map

    def attempt(mode: Any) -> bool:
        call, given, options = tensors(operation, dtype)
        given = tree_map(lambda t: mode.from_tensor(t) if _real(t) and mode else t, given)
        asked = [t for t in tree_leaves(given) if _real(t)][:count]
        for t in asked:
            t.requires_grad_()
        results = [r for r in tree_leaves(call(*given, **options)) if r.requires_grad]
        if not results or not mode:
            return bool(results)
        ones = [torch.ones_like(r) for r in results]
        found = torch.autograd.grad(results, asked, ones, allow_unused=True)
        return all(g is not None for g in found)

    try:
        if not attempt(None):
            return False
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            return attempt(mode)
    except GradError:
        return False


def compiled(operation: Operation, dtype: str) -> str:
    """Returns whether ``torch.compile(fullgraph=True)`` takes an operation."""
    import torch

    call, given, options = tensors(operation, dtype)
    torch.compiler.reset()
    try:
        torch.compile(call, fullgraph=True, backend="eager")(*given, **options)
    except torch._dynamo.exc.TorchDynamoException:
        return NO
    return YES


HEAD = f"""# Support table

This page shows which dtypes each public operation takes, whether it has a gradient, and whether
`torch.compile(fullgraph=True)` takes it. Options are in [operations](operations.md), bits in
[contracts](contracts.md).

| column | {YES} | {NO} |
| --- | --- | --- |
| a dtype | operands of this dtype are taken | `DtypeError` (pointwise functions: `FormulaError`) |
| gradient | gradients of all float operands, weights and biases included | no gradient |
| torch.compile | compiles in one graph, with fake-tensor implementations | graph break |

- Dtypes are those of the operands. Indices are i64, statistics f32, conditions bool, and packed
  4-bit integers u8. A dtype is refused before anything is compiled.
- The gradient is that of the function of the same name in `ptxgen.torch`, where there is one. "of
  `x`" is a gradient of that argument alone. Integer and bool results have none. For others a
  `GradError` reports a missing gradient, at the call or when it is requested.
- The table holds for GPUs and for the [CPU device](../explanation/interpreter.md): the same routes
  serve a call on both, and the CPU device interprets the PTX of the same kernels.

`python tools/support.py --write` generates this page. It calls each operation with each dtype, up
to the choice of a kernel. `tests/test_support.py` compares the page with the code. It also compares
each operation on the CPU device with its oracle, except casts and copies: in one dtype, or in all
with `make test-all`. `make test-gpu` runs operations on a GPU.
"""
COLUMNS = ("operation", *DTYPES, "gradient", "torch.compile")


def kept(page: str) -> dict[str, list[str]]:
    """Returns the cells about PyTorch in ``page``, by operation."""
    lines = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    return {line[0].strip("`"): line[-2:] for line in lines}


def described(operation: Operation) -> list[str]:
    """Returns the cells about PyTorch that follow from an operation's description."""
    op = OPERATIONS.get(operation.row)
    return [YES if op is None or op.vjp is not None else NO, YES]


MARK = "<!-- Other operations: tools/support.py writes what follows. -->\n"


def others(text: str) -> str:
    """Returns reference/operations.md with a line for each operation not named above the mark."""
    head, mark, _ = text.partition(MARK)
    if not mark:
        raise ValueError(f"docs/reference/operations.md has no line {MARK.strip()!r}")
    named = set(re.findall(r"`(\w+)", head))
    found = {name: (_called(op), op.doc) for name, op in OPERATIONS.items() if op.public}
    for row in ROWS:
        call = getattr(functions, row.name)
        found[row.name] = f"({', '.join(call.arguments)})` of `ptxgen.functions", call.__doc__
    rows = [
        f"| `{name}{called}` | {doc.splitlines()[0].replace('``', '`')} |"
        for name, (called, doc) in found.items()
        if name not in named
    ]
    table = ["\n## Others\n", "| name | computes |", "| --- | --- |", *rows] if rows else []
    return head + mark + "".join(f"{line}\n" for line in table)


FORMATS_MARK = "<!-- Formats: tools/support.py writes the table that follows. -->\n"
FORMATS_PAGE = PAGE.with_name("quantized.md")


def format_line(row: WeightFormat) -> str:
    """Returns a format's line of docs/reference/quantized.md."""
    kind = row.encoding or "codebook"
    beside = f"{row.scales} scales" + (f", {row.offsets} offsets" if row.offsets else "")
    beside += f"; {row.outer} for {row.outer_block}" if row.outer else ""
    block = f"{row.block}, any" if row.variants else row.block
    rule = row.quantize or NO
    whole = f"{row.bits_of_all:.4g}"
    of = f"{row.bits}, {kind} | {block} | {beside} | {whole}"
    error = NO if row.quantize is None else f"{100 * error_of(row):.2g} %"
    return f"| `{row.name}` | {of} | `{row.decoding}` | {rule} | {error} | {row.source} |"


def error_of(row: WeightFormat) -> float:
    """Returns the root mean square error of a weight of normal numbers in a format, over the
    numbers' root mean square.
    """
    w = np.random.default_rng(0).standard_normal((32, 1024), np.float32)
    error = quantized.dequantize(quantized.quantize(w, row)) - w
    return float(np.sqrt((error.astype(float) ** 2).mean() / (w.astype(float) ** 2).mean()))


def formats(text: str) -> str:
    """Returns docs/reference/quantized.md with a line for each format of the package."""
    head, mark, tail = text.partition(FORMATS_MARK)
    if not mark:
        raise ValueError(f"docs/reference/quantized.md has no line {FORMATS_MARK.strip()!r}")
    rest = tail.splitlines(keepends=True)[1:]
    while rest[0].startswith("|"):
        rest.pop(0)
    titles = "format | bits of a code | block | scales, offsets | bits of a number | number"
    table = [
        f"| {titles} | quantize | error | source |",
        "|" + " --- |" * 9,
        *map(format_line, FORMATS.values()),
    ]
    return head + mark + "\n" + "".join(f"{line}\n" for line in table) + "".join(rest)


def _called(op: Any) -> str:
    """Returns the positional parameters of an operation as text: ``(x, bias=None)``."""
    plain = [p.name if p.needed else f"{p.name}=None" for p in op.parameters if not p.keyword]
    return f"({', '.join(plain)})"


def page(old: str | None = None) -> str:
    """Returns the page. Cells about PyTorch are taken from ``old`` if it is given."""
    text, group = [HEAD], ""
    known = None if old is None else kept(old)
    with ptxgen.use_device(Unmade()):
        for operation in operations():
            if operation.group != group:
                group = operation.group
                text.append(f"\n## {group}\n\n| {' | '.join(COLUMNS)} |\n")
                text.append(f"|{' --- |' * len(COLUMNS)}\n")
            cells = [served(operation, dtype) for dtype in DTYPES]
            first = list(DTYPES)[cells.index(YES)]
            if known is None:
                cells += [gradients(operation, first), compiled(operation, first)]
            else:
                cells += known.get(operation.name) or described(operation)
            text.append(f"| `{operation.name}` | {' | '.join(cells)} |\n")
    return "".join(text)


def main() -> None:
    """Prints the page, or writes it (``--write``)."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name} of docs/reference")
    has_torch = importlib.util.find_spec("torch") is not None
    text = page(None if has_torch else PAGE.read_text(encoding="utf-8"))
    if parser.parse_args().write:
        PAGE.write_text(text, encoding="utf-8")
        for path, filled in (OPERATIONS_PAGE, others), (FORMATS_PAGE, formats):
            path.write_text(filled(path.read_text("utf-8")), encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
