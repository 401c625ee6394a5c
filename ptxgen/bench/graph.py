"""``ptxgen bench graph``: whole models, compiled by stock ``torch.compile`` and by ptxgen's
backend.

The model is a Llama in plain PyTorch with random weights, so it runs wherever torch does. Before
timing, bits of the ``batch_invariant()`` block, of the compiled model and of its CUDA graph replay
are compared.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from ptxgen import arguments
from ptxgen.bench import as_shipped, measure, model, results
from ptxgen.bench.runner import Area, add_list
from ptxgen.errors import PtxgenError
from ptxgen.program.streams import STREAMS, checked
from ptxgen.ui import emit, note

SHAPE = model.LLAMA_8B
FORWARDS = (1, 4096), (4, 512)
"""Batches of the forward pass, each (sequences, tokens a sequence)."""
DECODED, KEYS = (1, 8, 32, 256), 2048
"""Batch sizes of decoding, in sequences; and keys of each sequence, the new token's included."""
DEEP = 32
"""Number of layers of the model that is saved and loaded."""
SMALL = 256, 512, 1024
"""Hidden sizes of the small models."""
SMALL_KEYS = 512
SETS = {"first": (4, 512), "second": (4, 384), "third": (3, 448), "second again": (4, 384)}
"""Inputs (sequences, tokens a sequence) that one compiled model is called on, in this order."""
COUNT = 15


@dataclass(frozen=True)
class Row:
    """Times and memory of one problem (``what``) of one of :data:`PARTS`; medians in ms on the host
    clock.

    ``block_ms``: in ``batch_invariant()``; ``ours_ms``: with ptxgen's backend (as CUDA graph
    replays, except in part ``sizes``, a single call, and in training and forward of
    ``transformers``); ``stock_ms``: stock ``torch.compile``; ``eager_ms``: stock PyTorch.
    ``block_graph_ms``, ``eager_graph_ms``: replays of a CUDA graph that the caller captures.
    ``ours_mb``, ``stock_mb``: peak MB above those allocated before. ``same``: whether all results
    and gradients have the bits of ``batch_invariant()``; ``different``: how many of ``compared`` do
    not. ``arena``: bytes of ptxgen's largest arena (the allocation of all temporaries); ``least``:
    its lower bound, the maximum of bytes live at once. ``cold_ms``, ``warm_ms``: time to the first
    result in a new process, with an empty and with a filled kernel cache.
    """

    part: str
    what: str
    block_ms: float | None = None
    ours_ms: float | None = None
    stock_ms: float | None = None
    same: bool | None = None
    arena: int | None = None
    least: int | None = None
    cold_ms: float | None = None
    warm_ms: float | None = None
    eager_ms: float | None = None
    block_graph_ms: float | None = None
    eager_graph_ms: float | None = None
    ours_mb: float | None = None
    stock_mb: float | None = None
    different: int | None = None
    compared: int | None = None

    to_stock = results.quotient("ours_ms", "stock_ms")
    to_block = results.quotient("ours_ms", "block_ms")
    graphs = results.quotient("block_graph_ms", "eager_graph_ms")
    memory = results.quotient("ours_mb", "stock_mb")
    bound = results.quotient("arena", "least")
    arena_mb = results.quotient("arena", 1e6)


COLUMNS = (
    *(("part", "part"), ("problem", "what"), ("ours ms", "ours_ms:.3f")),
    *(("stock ms", "stock_ms:.3f"), ("/ stock", "to_stock:.3f"), ("block ms", "block_ms:.3f")),
    *(("/ block", "to_block:.3f"), ("eager ms", "eager_ms:.3f"), ("graphs", "graphs:.3f")),
    *(("MB", "ours_mb:.0f"), ("MB / stock", "memory:.3f"), ("same bits", "same")),
    *(("arena MB", "arena_mb:.2f"), ("/ bound", "bound:.3f"), ("cold ms", "cold_ms:.3f")),
    ("warm ms", "warm_ms:.3f"),
)


PARTS = ("forward", "training", "decode", "small", "sizes", "host", "transformers")


def small(shape: model.Shape, hidden: int) -> model.Shape:
    """Returns ``shape`` with hidden size ``hidden``, heads of 64 and an inner size of
    ``3 * hidden``.
    """
    heads = max(hidden // 64, 1)
    kv = max(heads // 4, 1)
    return replace(shape, hidden=hidden, heads=heads, kv_heads=kv, inner=3 * hidden)


def _all(found: Any) -> Sequence[Any]:
    return found if isinstance(found, tuple | list) else (found,)


# -- a new process --------------------------------------------------------------------------------
_FIRST = "import sys; from ptxgen.bench import graph; graph.first(sys.argv[1])"


def _time_first_result(backend: str, home: Path) -> float:
    """Returns the ms to the first result in a new process, whose kernel caches are in ``home``."""
    places = ("PTXGEN_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
    kept = {name: str(home / name.lower()) for name in places}
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        [sys.executable, "-c", _FIRST, backend],
        env={**os.environ, **kept, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise PtxgenError(f"the first result with {backend}: {done.stderr.strip()[-500:]}")
    return float(json.loads(done.stdout.splitlines()[-1]))


def first(backend: str) -> None:
    """Prints the ms to the first result of a small model, compilation included."""
    torch = measure.require_torch()
    llama = model.Llama(torch, small(SHAPE, SMALL[-1]))
    tokens = llama.drawn(4, 512)
    if backend == "ptxgen":
        import ptxgen.torch

        made = torch.compile(llama.__call__, backend=ptxgen.torch.Backend())
    else:
        made = torch.compile(llama.__call__, backend=backend)
    with torch.no_grad():
        print(json.dumps(measure.host_ms(torch, lambda: made(tokens))))


# -- the command ---------------------------------------------------------------------------------
def row_table(found: Sequence[Row]) -> str:
    """Returns a table with a line for each row; columns that are None in all rows are omitted."""

    def there(name: str) -> bool:
        return any(attrgetter(name)(row) is not None for row in found)

    return results.columns(found, [c for c in COLUMNS if there(c[1].partition(":")[0])])


class Graph(Area):
    """Benchmark ``ptxgen bench graph``: models compiled by ptxgen, against ``batch_invariant()``
    and stock ``torch.compile``.

    Each of :data:`PARTS` ("forward", "training", "decode", …) names a method that yields rows.
    """

    name = "graph"
    about = (
        "Times whole models: torch.compile stock (tokens: mode='reduce-overhead') and "
        "with backend='ptxgen', replayed as CUDA graphs, after comparing bits with those of "
        "batch_invariant()."
    )
    row = Row
    tier = "tc"
    streams = STREAMS
    """Maximum number of streams that a program is replayed on."""

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        add_list(parser, "--only", known=PARTS, default=[*PARTS])
        names = [*as_shipped.MODELS]
        shown = f"models of transformers ({','.join(names)})"
        add_list(parser, "--models", shown, names, default=names)
        arguments.add_dtype(parser, ("bf16", "f16", "f32"))
        parser.add_argument(
            "--streams",
            type=int,
            default=STREAMS,
            metavar="N",
            help="most streams that a program is replayed on (%(default)s)",
        )

    def cases(self) -> list[str]:
        self.streams = checked(self.options.streams)
        parts: list[str] = self.options.only
        return parts

    @cached_property
    def shape(self) -> model.Shape:
        """Sizes of the large model, with the requested dtype."""
        return replace(SHAPE, dtype=self.options.dtype)

    @cached_property
    def count(self) -> int:
        """The number of timings of each call."""
        return 5 if self.options.quick else COUNT

    def rows(self, case: str) -> Iterator[Row]:
        for row in getattr(self, case)():
            note(f"{row.part}: {row.what}")
            yield row

    def show(self, rows: Sequence[Row], runs: Sequence[results.Environment]) -> None:
        emit(row_table(rows))

    def status(self, rows: Sequence[Row]) -> int:
        """Returns 1 if some row's bits differ from those in ``batch_invariant()``, else 0."""
        return int(any(r.same is False for r in rows))

    # -- parts ---------------------------------------------------------------------------
    def _row(
        self,
        part: str,
        what: str,
        function: Callable[[], Any],
        run: Callable[[Callable[[], Any]], Any] | None = None,
        still: Sequence[Any] = (),
        **stock: Any,
    ) -> Row:
        """Runs ``function`` in ``batch_invariant()`` and compiled by ptxgen, compares their bits,
        then times both and stock PyTorch; returns the row.

        ``part`` is one of :data:`PARTS`; ``what`` describes the problem. ``run`` calls the function
        (default: once, without gradients). ``still``: tensors whose addresses never change.
        ``stock``: options of stock ``torch.compile``.
        """
        import ptxgen.torch as ours

        torch = self.torch
        torch._dynamo.reset()
        run = run or torch.no_grad()(lambda call: call())
        for tensor in still:
            torch._dynamo.mark_static_address(tensor)
        backend = ours.Backend(capture=True, streams=self.streams)
        with ours.batch_invariant():
            expected, same = [x.clone() for x in _all(run(function))], True
        ways = {
            "ours": torch.compile(function, backend=backend, dynamic=False),
            "stock": torch.compile(function, dynamic=False, **stock),
        }
        for _ in range(4):  # runs, records a CUDA graph, replays it
            pairs = zip(expected, _all(run(ways["ours"])), strict=True)
            same = all([bool(torch.equal(a, b)) for a, b in pairs]) and same
        del expected

        def turns(ways: Mapping[str, Any]) -> list[float]:
            calls = {n: partial(measure.host_ms, torch, partial(run, w)) for n, w in ways.items()}
            taken = measure.alternate(calls, self.count, warm=3)
            return [statistics.median(times) for times in taken.values()]

        ours_ms, stock_ms = turns(ways)
        with ours.batch_invariant():
            (block_ms,) = turns({"block": function})
        arena, least = max(backend.report().arenas, default=(0, 0))
        return Row(part, what, block_ms, ours_ms, stock_ms, same, arena=arena, least=least)

    def forward(self) -> Iterator[Row]:
        """Times the forward pass of each of :data:`FORWARDS`."""
        llama = model.Llama(self.torch, self.shape, self.device)
        for sequences, length in FORWARDS:
            tokens = llama.drawn(sequences, length)

            def work(tokens: Any = tokens) -> Any:
                return llama(tokens)

            what = f"{sequences} x {length}"
            yield self._row("forward", what, work, still=llama.weights())

    def training(self) -> Iterator[Row]:
        """Times a training step: loss and gradients."""
        torch, s = self.torch, self.shape
        llama = model.Llama(torch, s, self.device)
        tokens, targets = llama.drawn(s.batch, s.length), llama.drawn(s.batch * s.length)
        weights = [w.requires_grad_() for w in llama.weights()]

        def loss() -> Any:
            return llama.loss(tokens, targets)

        def step(loss: Callable[[], Any]) -> Any:
            found = loss()
            return [found.detach(), *torch.autograd.grad(found, weights)]

        yield self._row("training", f"{s.batch} x {s.length}", loss, step)

    def decode(self) -> Iterator[Row]:
        """Times decoding a token of each sequence, for the batch sizes of :data:`DECODED`."""
        llama = model.Static(self.torch, self.shape, self.device)
        for sequences in DECODED:
            yield self._token("decode", llama, sequences, KEYS)

    def small(self) -> Iterator[Row]:
        """Times decoding a token of one sequence with small models."""
        for hidden in SMALL:
            llama = model.Static(self.torch, small(self.shape, hidden), self.device)
            yield self._token("small", llama, 1, SMALL_KEYS)

    def _token(self, part: str, llama: model.Static, sequences: int, keys: int) -> Row:
        token, cache = llama.drawn(sequences, 1), llama.reserve(sequences, keys)
        caches = [x for pair in cache for x in pair]

        def work() -> Any:
            return llama(token, cache), *(x[:, :, -1:].clone() for x in caches[:2])

        still = [*llama.weights(), token, llama.position, *caches]
        what = f"{sequences} x {keys}, hidden {llama.shape.hidden}"
        return self._row(part, what, work, still=still, mode="reduce-overhead")

    def host(self) -> Iterator[Row]:
        """Times the first result in a new process, by ptxgen and by inductor, with an empty and
        with a filled kernel cache; then times loading a saved model.
        """
        with tempfile.TemporaryDirectory() as home:
            for backend in ("ptxgen", "inductor"):
                taken = [_time_first_result(backend, Path(home)) for _ in range(2)]
                what = f"first result, hidden {SMALL[-1]}, {backend}"
                yield Row("host", what, cold_ms=taken[0], warm_ms=taken[1])
        yield self.loaded()

    def loaded(self, hidden: int = SMALL[0], layers: int = DEEP) -> Row:
        """Times loading a deep model that was saved with its kernels, but without weights.

        The loaded model's bits are compared with those of the model that was saved.
        """
        import ptxgen
        import ptxgen.torch as ours

        torch, shape = self.torch, replace(small(self.shape, hidden), layers=layers)
        llama = model.Llama(torch, shape, self.device)
        module, tokens = llama.module(), llama.drawn(1, 8)
        with tempfile.TemporaryDirectory() as home, torch.no_grad():
            path = Path(home) / "model.ptxgen"
            saved = ours.export(module, (tokens,))
            saved.save(path, arrays=False)
            expected, weights, taken = saved(tokens), module.state_dict(), []
            for _ in range(3):
                start = time.perf_counter()
                found = ptxgen.load(path, device=self.device, arrays=weights)
                taken.append(1e3 * (time.perf_counter() - start))
            same = bool(torch.equal(found(tokens), expected))
        return Row("host", f"loaded, {layers} layers", ours_ms=statistics.median(taken), same=same)

    def sizes(self) -> Iterator[Row]:
        """Times one compiled model on inputs whose number of tokens changes from call to call,
        lowering and compilation included.

        The number is marked dynamic for both compilers.
        """
        import ptxgen.torch as ours

        torch, shape = self.torch, small(self.shape, SMALL[-1])
        llama = model.Llama(torch, shape, self.device)
        given = [llama.drawn(*size) for size in SETS.values()]
        with ours.batch_invariant(), torch.no_grad():
            expected = [llama(tokens) for tokens in given]
        taken: dict[str, list[float]] = {}
        same = []
        for name, how in (("ours", {"backend": ours.Backend()}), ("stock", {})):
            torch._dynamo.reset()
            compiled, taken[name] = torch.compile(llama.__call__, **how), []
            for tokens, whole in zip(given, expected, strict=True):
                torch._dynamo.mark_dynamic(tokens, (0, 1))
                with torch.no_grad():
                    taken[name].append(measure.host_ms(torch, partial(compiled, tokens)))
                    if name == "ours":
                        same.append(bool(torch.equal(compiled(tokens), whole)))
        for i, (which, (sequences, length)) in enumerate(SETS.items()):
            what = f"{which} set, {sequences} x {length}, hidden {shape.hidden}"
            ours_ms, stock_ms = (taken[name][i] for name in ("ours", "stock"))
            yield Row("sizes", what, ours_ms=ours_ms, stock_ms=stock_ms, same=same[i])

    def transformers(self) -> Iterator[Row]:
        """Times unmodified models of ``transformers`` (:mod:`ptxgen.bench.as_shipped`)."""
        try:
            import transformers  # noqa: F401
        except ImportError:
            emit("transformers: transformers is not installed")
            return
        for name in self.options.models:
            emit(f"{name} ...")
            shipped = as_shipped.Shipped(self.torch, name, self.shape.dtype, self.device)
            for what, make, token in shipped.works():
                found = shipped.measured(make(), self.count, token)
                said: dict[str, Any] = {f"{way}_ms": ms for way, ms in found.ms.items()}
                said |= {f"{way}_mb": found.mb[way] for way in ("ours", "stock")}
                said |= {"same": not found.different, "different": len(found.different)}
                yield Row("transformers", f"{name}, {what}", compared=found.compared, **said)


main, _parser = Graph.main, Graph.parser
