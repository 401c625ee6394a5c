"""``ptxgen bench delta``: linear attention with a matrix-valued state (gated delta rule, SSD).

The peers are PyTorch and flash-linear-attention. PyTorch computes prompts in chunks: products
masked by a lower triangle of decays (for the delta rule after a triangular solve), plus a product
with the state before the chunk.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import ptxgen
from ptxgen.bench.opcase import OpArea, OpCase, Work, matching
from ptxgen.bench.runner import add_list

CHUNK = 64
"""Tokens in a chunk, as in ``transformers``."""


def _split(x: Any, heads: int) -> Any:
    """Returns ``x``, ``[B, L, G, D]``, in f32 chunks ``[B, heads, chunks, CHUNK, D]``.

    Each of the G heads is repeated ``heads / G`` times.
    """
    batch, tokens, own, width = x.shape
    x = x.float().transpose(1, 2).repeat_interleave(heads // own, 1)
    return x.reshape(batch, heads, tokens // CHUNK, CHUNK, width)


def _decays(torch: Any, g: Any) -> tuple[Any, Any]:
    """Returns (since, between) of the log decays ``g``, [B, L, heads], in chunks.

    ``since``: sums of the log decays from the begin of the chunk, [B, heads, chunks, CHUNK].
    ``between``: decay from token j to token i of a chunk, ``exp(since[i] - since[j])`` for j <= i,
    else 0.
    """
    since = g.transpose(1, 2).reshape(g.shape[0], g.shape[2], -1, CHUNK).cumsum(-1)
    between = since[..., :, None] - since[..., None, :]
    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=g.device).tril()
    return since, between.masked_fill(~lower, -torch.inf).exp()


def _scan_chunks(
    torch: Any, q: Any, k: Any, d: Any, since: Any, between: Any, w: Any = None
) -> Any:
    """Returns the outputs of all chunks of a linear-attention recurrence. A state, [N, D] for each
    head, is carried from chunk to chunk.

    ``q``, ``k``, ``d``: queries, keys and values, [B, heads, chunks, CHUNK, N or D], as
    :func:`_split` returns them; ``since``, ``between``: decays from :func:`_decays`. With ``w``
    (delta rule), the values of each chunk are ``d - w @ state``.
    """
    state = q.new_zeros(*q.shape[:2], q.shape[-1], d.shape[-1])
    scores = q @ k.mT * between
    early, late = q * since.exp()[..., None], k * (since[..., -1:] - since).exp()[..., None]
    found = []
    for i in range(q.shape[2]):
        own = d[:, :, i] if w is None else d[:, :, i] - w[:, :, i] @ state
        found.append(early[:, :, i] @ state + scores[:, :, i] @ own)
        state = state * since[:, :, i, -1, None, None].exp() + late[:, :, i].mT @ own
    return torch.stack(found, 2)


def _merge_chunks(o: Any, like: Any) -> Any:
    return o.flatten(2, 3).transpose(1, 2).to(like.dtype)


def chunked_rule(torch: Any, q: Any, k: Any, v: Any, g: Any, beta: Any) -> Any:
    """Computes ``gated_delta_rule`` of a prompt with PyTorch, in chunks of :data:`CHUNK` tokens,
    with a unit triangular solve in each.

    Arguments as those of :func:`ptxgen.gated_delta_rule`.
    """
    heads = v.shape[2]
    qs, ks, vs = (_split(x, heads) for x in (q, k, v))
    by = _split(beta[..., None], heads)
    since, between = _decays(torch, g)
    system = (ks * by) @ ks.mT * between
    given = torch.cat([vs * by, ks * by * since.exp()[..., None]], -1)
    solved = torch.linalg.solve_triangular(system.tril(-1), given, upper=False, unitriangular=True)
    d, w = solved.split([v.shape[-1], k.shape[-1]], -1)
    qs = qs * q.shape[-1] ** -0.5
    return _merge_chunks(_scan_chunks(torch, qs, ks, d, since, between, w), v)


def chunked_ssd(torch: Any, x: Any, dt: Any, a: Any, b: Any, c: Any) -> Any:
    """Computes ``ssd`` of a prompt with PyTorch, in chunks of :data:`CHUNK` tokens.

    Arguments as those of :func:`ptxgen.ssd`.
    """
    heads = x.shape[2]
    xs, bs, cs = (_split(each, heads) for each in (x, b, c))
    since, between = _decays(torch, dt * a)
    return _merge_chunks(
        _scan_chunks(torch, cs, bs, xs * _split(dt[..., None], heads), since, between), x
    )


def rule_inputs(torch: Any, batch: int, tokens: int, sizes: tuple[int, ...], dtype: Any) -> Any:
    """Returns random inputs q, k, v, g, beta of ``gated_delta_rule``; q and k are normalised.

    ``sizes``: query heads, value heads, key head dimension, value head dimension.
    """
    groups, heads, rows, cols = sizes
    how = {"device": "cuda", "dtype": dtype}
    q, k = (torch.randn(batch, tokens, groups, rows, **how) for _ in range(2))
    q, k = (torch.nn.functional.normalize(x.float(), dim=-1).to(dtype) for x in (q, k))
    v = torch.randn(batch, tokens, heads, cols, **how)
    g = -0.1 * torch.rand(batch, tokens, heads, device="cuda")
    return q, k, v, g, torch.rand(batch, tokens, heads, **how)


def ssd_inputs(torch: Any, batch: int, tokens: int, sizes: tuple[int, ...], dtype: Any) -> Any:
    """Returns random inputs x, dt, a, b, c of ``ssd``; ``sizes`` as in :data:`MAMBA`."""
    groups, heads, rows, cols = sizes
    how = {"device": "cuda", "dtype": dtype}
    x = torch.randn(batch, tokens, heads, cols, **how)
    dt = 0.1 * torch.rand(batch, tokens, heads, device="cuda")
    a = -torch.rand(heads, device="cuda")
    b, c = (torch.randn(batch, tokens, groups, rows, **how) for _ in range(2))
    return x, dt, a, b, c


def rule_step(q: Any, k: Any, v: Any, g: Any, beta: Any, state: Any) -> Any:
    """Computes one token of ``gated_delta_rule`` with PyTorch; returns its output and the new
    state.

    Arguments as those of :func:`ptxgen.gated_delta_rule`, for sequences of length 1.
    """
    each = v.shape[2] // q.shape[2]
    q, k = (x[:, 0].float().repeat_interleave(each, 1)[..., None] for x in (q, k))
    old = g[:, 0].exp()[..., None, None] * state
    d = beta[:, 0, :, None].float() * (v[:, 0].float() - (k * old).sum(-2))
    new = old + k * d[..., None, :]
    return (q * new).sum(-2)[:, None].mul(q.shape[-2] ** -0.5).to(v.dtype), new


def ssd_step(x: Any, dt: Any, a: Any, b: Any, c: Any, state: Any) -> Any:
    """Computes one token of ``ssd`` with PyTorch; returns its output and the new state.

    Arguments as those of :func:`ptxgen.ssd`, for sequences of length 1.
    """
    each = x.shape[2] // b.shape[2]
    b, c = (y[:, 0].float().repeat_interleave(each, 1)[..., None, :] for y in (b, c))
    term = (dt[:, 0, :, None] * x[:, 0].float())[..., None] * b
    new = (dt[:, 0] * a).exp()[..., None, None] * state + term
    return (new * c).sum(-1)[:, None].to(x.dtype), new


def fla_rule(fla: Any, q: Any, k: Any, v: Any, g: Any, beta: Any, state: Any = None) -> Any:
    """Calls flash-linear-attention's gated delta rule; returns the outputs of a prompt, or with
    ``state`` the output of one token and the new state.
    """
    if state is None:
        return fla.chunk_gated_delta_rule(q, k, v, g, beta)[0]
    how = {"initial_state": state, "output_final_state": True}
    return fla.fused_recurrent_gated_delta_rule(q, k, v, g=g, beta=beta, **how)


def fla_ssd(fla: Any, x: Any, dt: Any, a: Any, b: Any, c: Any, state: Any = None) -> Any:
    """Computes ``ssd`` with flash-linear-attention, as gated linear attention with one decay a
    head; returns the outputs of a prompt, or with ``state`` the output of one token and the new
    state.

    The kernel takes values ``dt * x`` and log decays ``dt * a``, which this call computes; queries
    and keys are expanded to all heads.
    """
    b, c = (y.expand(-1, -1, x.shape[2], -1) for y in (b, c))
    given = c, b, (dt[..., None] * x).to(x.dtype), dt * a
    if state is None:
        return fla.chunk_simple_gla(*given, scale=1.0)[0]
    how = {"initial_state": state, "output_final_state": True, "state_v_first": True}
    return fla.fused_recurrent_simple_gla(*given, scale=1.0, **how)


class Kind(NamedTuple):
    """Functions and sizes of an operation that is timed.

    ``inputs`` draws its arguments; ``chunked`` and ``step`` are PyTorch's prompt and decoding step;
    ``peer`` is flash-linear-attention's call; ``sizes``: :data:`QWEN` or :data:`MAMBA`.
    """

    inputs: Callable[..., tuple[Any, ...]]
    chunked: Callable[..., Any]
    step: Callable[..., Any]
    peer: Callable[..., Any]
    sizes: tuple[int, int, int, int]


QWEN = (16, 32, 128, 128)
"""Sizes of Qwen3-Next: query heads, value heads, key and value head dimensions."""
MAMBA = (1, 80, 128, 64)
"""Sizes of Mamba-2 2.7b: groups of B and C, heads, state size, head dimension."""
KINDS = {
    "gated_delta_rule": Kind(rule_inputs, chunked_rule, rule_step, fla_rule, QWEN),
    "ssd": Kind(ssd_inputs, chunked_ssd, ssd_step, fla_ssd, MAMBA),
}
SHAPES = (1, 512), (1, 4096), (4, 2048), (1, 1), (16, 1), (64, 1)
"""Pairs (sequences, tokens of each); a call on one token continues from a state."""


@cache
def peers() -> Any:
    """Returns flash-linear-attention's functions as attributes; None if it is not installed."""
    try:
        from fla.ops import gated_delta_rule, simple_gla
    except ImportError:
        return None
    return SimpleNamespace(**vars(gated_delta_rule) | vars(simple_gla))


def _continue(of: Callable[..., Any], *given: Any) -> Any:
    return of(*given[:-1], state=given[-1], return_state=True)


def _case(name: str, batch: int, tokens: int) -> OpCase:
    kind, step = KINDS[name], tokens == 1
    groups, heads, rows, cols = kind.sizes

    def make(torch: Any) -> Work:
        given = kind.inputs(torch, batch, tokens, kind.sizes, torch.bfloat16)
        ours: Callable[..., Any] = getattr(ptxgen, name)
        stock: Callable[..., Any] = partial(kind.chunked, torch)
        if step:
            across = (rows, cols) if name == "gated_delta_rule" else (cols, rows)
            given += (torch.randn(batch, heads, *across, device="cuda"),)
            ours, stock = partial(_continue, ours), kind.step
        fla = peers()
        peer = None if fla is None else partial(kind.peer, fla)
        return Work(given, ours, stock, compiled=False, peer=peer)

    nbytes = 4 * batch * tokens * (groups * rows + heads * cols)
    nbytes += 8 * batch * heads * rows * cols * step
    return OpCase(name, f"{batch}x{tokens}", nbytes, make)


class Delta(OpArea):
    """Benchmark ``ptxgen bench delta``: gated delta rule and SSD (Mamba-2), on prompts and single
    tokens, against PyTorch and flash-linear-attention.
    """

    name = "delta"
    about = (
        "Times gated_delta_rule and ssd, bf16, of Qwen3-Next's and Mamba-2's sizes, "
        "beside plain PyTorch (prompts: their formulas by chunks) and the Triton kernels of "
        "flash-linear-attention, where fla is installed; medians in µs. "
        "Sizes are sequences x tokens; limit = bytes / 4.3 TB/s."
    )
    columns = tuple(("fla" if name == "compile" else name, of) for name, of in OpArea.columns)

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        add_list(parser, "--only", "names or patterns (all)", default=["*"])

    def cases(self) -> list[OpCase]:
        every = {_case(name, *shape): name for name in KINDS for shape in SHAPES}
        return matching(every, self.options.only)


main, _parser = Delta.main, Delta.parser
