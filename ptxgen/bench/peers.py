"""Other libraries' matrix products, timed against ptxgen's; one that is missing or fails is
skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from ptxgen.bench.cases import Case
from ptxgen.bench.measure import Operands, Work
from ptxgen.errors import OptionError
from ptxgen.numerics.contract import DTYPES


class Peer(NamedTuple):
    """Another library's matrix product.

    ``work(case, operands, out)`` returns the call that writes a case's product to ``out``; None if
    the library has none.
    """

    name: str
    version: str
    work: Callable[[Case, Operands, Any], Work | None]


def _torch() -> Peer:
    """Returns the peer ``torch.mm``: cuBLAS (f32 with TF32 off), not batch-invariant.

    Transposed operands are passed as views, which cuBLAS reads without a copy.
    """
    import torch

    def work(case: Case, operands: Operands, out: Any) -> Work:
        return partial(torch.mm, *operands.views(case.layout), out=out)

    return Peer("torch", str(torch.__version__), work)


def _triton() -> Peer:
    """Returns the peer in Triton, batch-invariant: one tile size and summation order for every
    shape.
    """
    import triton

    from ptxgen.bench import triton_peer

    def work(case: Case, operands: Operands, out: Any) -> Work:
        return partial(triton_peer.matmul, *operands.views(case.layout), out)

    return Peer("triton", str(triton.__version__), work)


def _sgemm_bi() -> Peer:
    """Returns the peer sgemm-bi, batch-invariant: NN, NT and weight gradients of weights [K, N].

    Cases of tier "tc" use its tensor-core tier. Its weight gradients (TN) are added to an f32 array
    whatever the operands' dtype; rounding them to the result's dtype is not timed.
    """
    import sgemm_bi
    import torch
    from sgemm_bi._sgemm_bi import Engine

    engine: Any = Engine(torch.cuda.current_device())

    def work(case: Case, operands: Operands, out: Any) -> Work | None:
        if case.dtype == "f64":
            return None
        a, b = operands.stored(case.layout)
        m, n, k = case.product
        long = next(name for name, short in DTYPES.items() if short == case.dtype)
        tail = (long, torch.cuda.current_stream().cuda_stream, case.tier == "tc")
        pa, pb, pc = a.data_ptr(), b.data_ptr(), out.data_ptr()
        if case.layout == "NN":
            return partial(engine.forward, (pc, pa, pb, None), (m, k, n), *tail)
        if case.layout == "NT":
            return partial(engine.backward_dx, (pc, pa, pb), (m, n, k), *tail)
        master = out if case.dtype == "f32" else torch.empty_like(out, dtype=torch.float)
        pc = master.zero_().data_ptr()
        run = partial(engine.backward_dw, (pc, pb, pa), (k, m, n), *tail)
        if master is out:
            return run
        run()  # once for the comparison; timed calls add to the sum
        out.copy_(master)
        return lambda: (run(), master)[0]  # keeps the memory of master alive

    return Peer("sgemm_bi", str(getattr(sgemm_bi, "__version__", "unknown")), work)


PEERS: dict[str, Callable[[], Peer]] = {"torch": _torch, "triton": _triton, "sgemm_bi": _sgemm_bi}


def discover(names: Iterable[str]) -> tuple[list[Peer], list[str]]:
    """Returns the peers of ``names`` that are available here, and messages why others are not.

    Raises OptionError for an unknown name.
    """
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
