"""``ptxgen bench flce``: fused linear cross-entropy against PyTorch, Liger-Kernel and Apple's CCE.

Measures time and memory of the loss with both gradients, or with ``--forward`` of the loss alone.
Memory is the peak of PyTorch's allocator above operands and results.

``--random`` draws problems: rows log-uniform in 512 .. 16384, half of them powers of two; features
a multiple of 64, log-uniform in 1024 .. 8192; classes any integer, log-uniform in 16384 .. 262144.
Problems above :data:`MOST` are drawn again. Each is timed with the default chunk (rows whose logits
are in memory at a time) and with a quarter of the rows, against PyTorch alone.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any

import ptxgen
from ptxgen import arguments
from ptxgen.bench import draw, measure, results
from ptxgen.bench.measure import WrongBitsError
from ptxgen.bench.runner import Area, add_list
from ptxgen.errors import OptionError
from ptxgen.ui import emit, note, table

Sizes = tuple[int, int, int]
"""Sizes of a problem: rows, features, classes."""
SHAPES = (
    (8192, 4096, 128256),
    (4096, 4096, 32000),
    (16384, 2048, 151936),
    (4096, 3584, 256000),
    (128, 512, 1000),
)
"""Named problems: rows, features, classes."""
SOFTCAPPED = {256000: 30.0}
"""Softcap of the logits for models that have one, by number of classes."""
CHECKED = 48
"""Number of rows whose losses are compared with losses computed from logits in memory."""
IGNORED = -100
MOST = 8192 * 128256, 8192 * 4096 * 128256
"""Maximum logits (rows x classes), and maximum multiplications of one product, of a random problem.
"""
COMPILED, QUARTER = "torch.compile", "ptxgen, a quarter at a time"


@dataclass(frozen=True)
class Line:
    """Time and memory of one method on one shape.

    ``ms``: median time. ``extra``: peak bytes beyond operands and results. ``failed``: the error.
    """

    rows: int
    features: int
    classes: int
    dtype: str
    method: str
    ms: float
    extra: int
    failed: str = ""

    @property
    def shape(self) -> Sizes:
        """Sizes of the problem: rows, features, classes."""
        return self.rows, self.features, self.classes


@dataclass(frozen=True)
class Head:
    """Operands of the last linear layer and loss: ``x`` [rows, features], ``w`` [classes,
    features], class indices ``target`` [rows], and ``softcap`` of the logits or None.
    """

    torch: Any
    x: Any
    w: Any
    target: Any
    softcap: float | None

    @classmethod
    def draw(cls, torch: Any, shape: Sizes, dtype: str, seed: int = 0) -> Head:
        """Returns random operands for sizes ``shape``, generated from ``seed``; one target in
        sixteen is ``IGNORED``.
        """
        m, k, n = shape
        made = measure.normal(torch, dtype, seed)
        x, w = made(m, k), made(n, k).mul_(k**-0.5)
        how = {"device": "cuda", "generator": torch.Generator(device="cuda").manual_seed(seed)}
        target = torch.randint(n, (m,), **how)
        target[torch.rand(m, **how) < 1 / 16] = IGNORED
        return cls(torch, x, w, target, SOFTCAPPED.get(n))

    @property
    def how(self) -> dict[str, Any]:
        """Keyword arguments of ptxgen's calls: softcap and ignored target."""
        return {"softcap": self.softcap, "ignore_index": IGNORED}

    @property
    def grad(self) -> Callable[..., Any]:
        """The call of ptxgen that returns the loss and both gradients."""
        return partial(ptxgen.linear_cross_entropy_grad, self.x, self.w, self.target, **self.how)

    def stock(self, x: Any, w: Any) -> Any:
        """Computes the loss with PyTorch: logits in the inputs' dtype, the rest in f32."""
        z = (x @ w.t()).float()
        if self.softcap is not None:
            z = self.softcap * self.torch.tanh(z / self.softcap)
        return self.torch.nn.functional.cross_entropy(z, self.target, ignore_index=IGNORED)

    def with_gradients(self, loss: Callable[[Any, Any], Any]) -> Any:
        """Returns the value of ``loss`` and its gradients with respect to x and w, by autograd."""
        x, w = self.x.detach().requires_grad_(), self.w.detach().requires_grad_()
        found = loss(x, w)
        return found.detach(), *self.torch.autograd.grad(found, (x, w))


Method = Callable[[], Any]


def drawn(count: int, seed: int) -> list[Sizes]:
    """Returns the first ``count`` random problems that ``seed`` generates.

    Raises OptionError for arguments that :func:`ptxgen.bench.draw.check` refuses.
    """
    return draw.first(count, seed, _drawn(Random(seed)))


def _drawn(random: Random) -> Iterator[Sizes]:
    while True:
        m = draw.rows(random, 512, 16384)
        k, n = draw.integer(random, 1024, 8192, 64), draw.integer(random, 16384, 262144)
        if m * n <= MOST[0] and m * k * n <= MOST[1]:
            yield m, k, n


def methods(head: Head, options: Namespace) -> Iterator[tuple[str, Method]]:
    """Yields (name, call) of each method to time: loss and gradients, or with ``--forward`` the
    loss alone. Random problems are timed with ptxgen and PyTorch only.

    A method whose package is not installed is skipped with a note.
    """
    torch, x, w, ours = head.torch, head.x, head.w, head.grad
    forward, chunks, drawn = options.forward, options.chunks, options.random is not None
    if drawn:
        yield "ptxgen", ours
        yield QUARTER, partial(ours, chunk=-(-x.shape[0] // 4))
    elif forward:
        yield "ptxgen", partial(ptxgen.linear_cross_entropy, x, w, head.target, **head.how)
        yield "product alone", partial(ptxgen.linear, x, w, layout="nk")
    else:
        yield "ptxgen", ours
        for chunk in chunks:
            yield f"ptxgen, chunks of {chunk}", partial(ours, chunk=chunk)
        if x.element_size() == 2:
            wide = partial(ours, dw=torch.empty_like(w).float())
            yield "ptxgen, dW in f32", wide
            for chunk in chunks:
                yield f"ptxgen, dW in f32, chunks of {chunk}", partial(wide, chunk=chunk)
        yield "three products", partial(_products, head)

    def run(loss: Callable[[Any, Any], Any]) -> Method:
        if not forward:
            return partial(head.with_gradients, loss)
        return partial(torch.no_grad()(loss), x, w)

    yield "eager", run(head.stock)
    torch._dynamo.reset()
    yield COMPILED, run(torch.compile(head.stock, dynamic=False))
    for name, made in (("Liger-Kernel", _liger), ("Apple's CCE", _cce)) if not drawn else ():
        try:
            loss = made(head)
        except ImportError as error:
            note(f"{name} is left out: {error}")
            continue
        yield name, run(loss)


def _products(head: Head) -> Any:
    """Computes the three matrix products of a step alone, with all logits in memory."""
    z = ptxgen.linear(head.x, head.w, layout="nk")
    dtype = str(head.x.dtype).removeprefix("torch.")
    dx = ptxgen.linear_dgrad(z, head.w, layout="nk")
    return dx, ptxgen.linear_wgrad(head.x, z, layout="nk", out_dtype=dtype)


def _liger(head: Head) -> Callable[[Any, Any], Any]:
    from liger_kernel.ops.fused_linear_cross_entropy import (  # type: ignore[import-not-found]
        LigerFusedLinearCrossEntropyFunction as Function,
    )

    def loss(x: Any, w: Any) -> Any:
        how = (None, None, IGNORED, 0.0, 0.0, "mean", head.softcap)
        found = Function.apply(x, w, head.target, *how)
        return found[0] if isinstance(found, tuple) else found

    return loss


def _cce(head: Head) -> Callable[[Any, Any], Any]:
    from cut_cross_entropy import linear_cross_entropy  # type: ignore[import-not-found]

    return lambda x, w: linear_cross_entropy(
        x, w, head.target, ignore_index=IGNORED, softcap=head.softcap
    )


# -- the run --------------------------------------------------------------------------------
def check(head: Head) -> None:
    """Compares losses of some rows bit for bit with losses of a batch of those rows alone.

    The small batch goes through the gradient call, which keeps logits in memory; the loss alone may
    be computed in the product's epilogue. Raises WrongBitsError.
    """
    torch, each = head.torch, {**head.how, "reduction": "none"}
    rows = torch.randperm(head.x.shape[0], device="cuda")[:CHECKED]
    whole = ptxgen.linear_cross_entropy(head.x, head.w, head.target, **each)[rows]
    few = replace(head, x=head.x[rows], target=head.target[rows])
    alone, *_ = few.grad(dw=False, **each)
    if not torch.equal(whole, alone):
        raise WrongBitsError("losses of rows differ from those of the rows alone")


class Flce(Area):
    """Benchmark ``ptxgen bench flce``: fused linear layer and cross-entropy, against PyTorch and
    other libraries; a row for each shape and method.
    """

    name = "flce"
    about = (
        "Times fused linear cross-entropy, loss and gradients, beside PyTorch (eager, "
        "torch.compile), Liger-Kernel and cut-cross-entropy where these are installed; and what "
        "memory each takes beyond operands and results."
    )
    row = Line
    tier = "tc"
    drawn = "instead of named shapes, or behind those of --shapes, as many that --seed draws"

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--shapes", type=_shapes, metavar="LIST", help="MxKxN,... (of models)")
        arguments.add_dtype(parser, ("bf16", "f16", "f32", "f64"))
        parser.add_argument("--forward", action="store_true", help="the loss alone")
        parser.add_argument(
            "--chunks",
            type=lambda text: [int(n) for n in text.split(",")],
            default=(),
            metavar="LIST",
            help="rows of a chunk, to be timed besides the default",
        )
        add_list(parser, "--only", "methods whose names begin so", default=())

    def cases(self) -> list[Sizes]:
        options = self.options
        if options.random is None:
            return list(options.shapes or SHAPES)
        if options.forward or options.chunks or options.only:
            raise OptionError("--random has methods of its own: no --forward, --chunks or --only")
        return [*(options.shapes or ()), *drawn(options.random, options.seed)]

    def rows(self, case: Sizes) -> Iterator[Line]:
        """Yields a row for each method; if a method fails, such as for lack of memory, with its
        error.
        """
        options = self.options
        head = Head.draw(self.torch, case, options.dtype, self.seed)
        check(head)
        kept = 0 if options.forward else (head.x.numel() + head.w.numel()) * head.x.element_size()
        for name, method in methods(head, options):
            if options.only and not any(name.startswith(each) for each in options.only):
                continue
            own = kept - head.w.numel() * head.w.element_size() if "in f32" in name else kept
            found: tuple[Any, ...]
            try:
                found = self.measured(method, own)
            except Exception as error:
                found = 0.0, 0, f"{type(error).__name__}: {error}"[:200]
            self.torch.cuda.empty_cache()
            yield Line(*case, options.dtype, name, *found)

    def measured(self, method: Method, kept: int) -> tuple[float, int]:
        """Returns the median time in ms, and the peak bytes above those allocated before.

        ``kept``: bytes of the results, which are subtracted.
        """
        cuda, timer = self.torch.cuda, self.timer
        method()
        cuda.synchronize()
        cuda.reset_peak_memory_stats()
        before = cuda.memory_allocated()
        method()
        cuda.synchronize()
        extra = cuda.max_memory_allocated() - before - kept
        (taken,) = timer([method], [3 if self.options.quick else 7], warmup=0)
        return taken.median / 1e3, max(extra, 0)

    def show(self, rows: Sequence[Line], runs: Sequence[results.Environment]) -> None:
        emit(line_table(rows))
        if any(line.method == QUARTER for line in rows):
            emit(ratio_table(rows))


def line_table(lines: Sequence[Line]) -> str:
    """Returns a table of all methods; the last column is the method's time / ptxgen's time."""
    body = []
    ours = {line.shape: line.ms for line in lines if line.method == "ptxgen"}
    for line in lines:
        shape = " x ".join(map(str, line.shape))
        if line.failed:
            body.append([shape, line.method, line.failed[:60], "", ""])
            continue
        ratio = f"{line.ms / ours[line.shape]:.2f}" if line.shape in ours else ""
        body.append([shape, line.method, f"{line.ms:.3f}", f"{line.extra / 1e6:.0f}", ratio])
    return table(body, ["rows x features x classes", "method", "ms", "extra MB", "/ ours"])


def ratio_table(lines: Sequence[Line]) -> str:
    """Returns a table of ptxgen's time and memory relative to ``torch.compile``, for each shape."""
    of = {(line.shape, line.method): line for line in lines if not line.failed}
    names = [name for name in ("ptxgen", QUARTER) if any(method == name for _, method in of)]
    body, times = [], {name: list[float]() for name in names}
    for shape in dict.fromkeys(line.shape for line in lines):
        peer = of.get((shape, COMPILED))
        row = [" x ".join(map(str, shape))]
        for name in names:
            ours = of.get((shape, name))
            if peer is None or ours is None:
                row += ["", ""]
                continue
            times[name].append(ours.ms / peer.ms)
            row += [f"{times[name][-1]:.3f}", f"{ours.extra / max(peer.extra, 1):.2f}"]
        body.append(row)
    means = (f"{results.geomean(t):.3f}" if t else "" for t in times.values())
    body.append(["geometric mean", *(cell for mean in means for cell in (mean, ""))])
    heads = [head for name in names for head in (name, "its memory")]
    return table(body, ["ours / torch.compile's", *heads])


def _shapes(text: str) -> list[Sizes]:
    return [(m, k, n) for m, k, n in map(arguments.sizes, text.split(","))]


main, _parser = Flce.main, Flce.parser
