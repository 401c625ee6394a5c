"""Who is timed beside us. A peer that is missing, or fails, is said to be, and left out."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from ptxgen.bench.cases import Case
from ptxgen.bench.measure import Operands, Work
from ptxgen.errors import OptionError
from ptxgen.numerics.contract import DTYPES


class Peer(ABC):
    """Another implementation of products."""

    name: str
    version: str

    @abstractmethod
    def work(self, case: Case, operands: Operands, out: Any) -> Work | None:
        """A call that writes the product of ``case`` to ``out``; None if it has none."""


class Torch(Peer):
    """torch.mm, which is cuBLAS (f32 with TF32 off), not batch-invariant."""

    name = "torch"

    def __init__(self) -> None:
        import torch

        self._mm = torch.mm
        self.version = str(torch.__version__)

    def work(self, case: Case, operands: Operands, out: Any) -> Work | None:
        """The stored operands, seen as [M, K] and [K, N]: cuBLAS is told of the transposition."""
        return functools.partial(self._mm, *operands.views(case.layout), out=out)


class Triton(Peer):
    """A batch-invariant product in Triton: one tile size, one order, for every shape."""

    name = "triton"

    def __init__(self) -> None:
        import triton

        from ptxgen.bench import triton_peer

        self._matmul = triton_peer.matmul
        self.version = str(triton.__version__)

    def work(self, case: Case, operands: Operands, out: Any) -> Work | None:
        """Any strides are taken."""
        return functools.partial(self._matmul, *operands.views(case.layout), out)


class SgemmBi(Peer):
    """sgemm-bi, deterministic and batch-invariant: NN, NT and weight gradients, weights [K, N].

    In 16 bits its tensor-core tier, where that is asked of us, too. Its weight gradients are f32
    whatever the operands; one rounding more is not timed.
    """

    name = "sgemm_bi"

    def __init__(self) -> None:
        import sgemm_bi
        import torch
        from sgemm_bi._sgemm_bi import Engine

        self._torch = torch
        self._engine: Any = Engine(torch.cuda.current_device())
        self.version = str(getattr(sgemm_bi, "__version__", "unknown"))

    def work(self, case: Case, operands: Operands, out: Any) -> Work | None:
        """Forward for NN, input gradient for NT, weight gradient for TN (which adds to ``out``)."""
        if case.dtype == "f64":
            return None
        a, b = operands.stored(case.layout)
        m, n, k = case.product
        stream = self._torch.cuda.current_stream().cuda_stream
        long = next(name for name, short in DTYPES.items() if short == case.dtype)
        tail = (long, stream, case.tier == "tc")
        pa, pb, pc = a.data_ptr(), b.data_ptr(), out.data_ptr()
        if case.layout == "NN":
            return functools.partial(self._engine.forward, (pc, pa, pb, None), (m, k, n), *tail)
        if case.layout == "NT":
            return functools.partial(self._engine.backward_dx, (pc, pa, pb), (m, n, k), *tail)
        master = (
            out if case.dtype == "f32" else self._torch.empty_like(out, dtype=self._torch.float)
        )
        pc = master.zero_().data_ptr()
        run = functools.partial(self._engine.backward_dw, (pc, pb, pa), (k, m, n), *tail)
        if master is out:
            return run
        run()  # once for the comparison; what is timed adds to it
        out.copy_(master)
        return lambda: (run(), master)[0]  # which keeps the memory alive


PEERS: dict[str, type[Peer]] = {"torch": Torch, "triton": Triton, "sgemm_bi": SgemmBi}


def discover(names: Iterable[str]) -> tuple[list[Peer], list[str]]:
    """The peers that can be used here, and why the others cannot. Raises OptionError."""
    found: list[Peer] = []
    missing: list[str] = []
    for name in names:
        if name not in PEERS:
            raise OptionError(f"peer {name!r}: expected one of {', '.join(PEERS)}")
        try:
            found.append(PEERS[name]())
        except ModuleNotFoundError:
            missing.append(f"{name}: not installed")
        except Exception as error:  # a peer's own failure is not ours
            missing.append(f"{name}: {type(error).__name__}: {error}")
    return found, missing
