"""A model over several processes (gloo, the CPU device): its sequences are spread over them."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import torch
from torch import distributed, nn
from torch.nn import functional

import ptxgen
import ptxgen.torch as pt

SEQUENCES, TOKENS, WIDTH, WORDS = 4, 9, 16, 20
distributed._DEFAULT_FIRST_BUCKET_BYTES = 500  # so that a small model has several buckets
WAYS = ("plain", "ddp", "compiled in ddp", "fsdp")


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.packed = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        heads = self.packed(self.norm(x)).view(*x.shape[:2], 3, 2, WIDTH // 2)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(functional.gelu(y.transpose(1, 2).reshape(x.shape)))


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Linear(WIDTH, WORDS)

    def forward(self, x, ids):
        z = self.words(x)
        losses = functional.cross_entropy(z.flatten(0, 1), ids.flatten(), reduction="none")
        return z, losses.view(ids.shape).sum(1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([Layer(), Layer(), Head()])

    def forward(self, x, ids):
        *layers, head = self.parts
        for layer in layers:
            x = layer(x)
        return head(x, ids)


def wrapped(model, how, compiled):
    """``model`` over the processes, and what runs it. PyTorch breaks graphs at the hooks of sharded
    modules: these are compiled before they are sharded.
    """
    backend = pt.Backend(strict=True)
    if how == "compiled in ddp" and compiled:
        model = torch.compile(model, backend=backend)
    if "ddp" in how:  # which cuts graphs where a bucket ends
        model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.001)
    if how == "fsdp":
        from torch.distributed.fsdp import fully_shard

        mesh = distributed.device_mesh.init_device_mesh("cpu", (distributed.get_world_size(),))
        for i, part in enumerate(model.parts):
            if compiled:
                model.parts[i] = part = torch.compile(part, backend=backend, fullgraph=True)
            fully_shard(part, mesh=mesh)
        fully_shard(model, mesh=mesh)
    elif compiled and how != "compiled in ddp":
        model = torch.compile(model, backend=backend)
    return model, backend


def run(how, compiled):
    """Logits, losses and dX of this process's sequences, and the gradients of weights."""
    rank, count = distributed.get_rank(), distributed.get_world_size()
    torch.manual_seed(0)
    model = Model()
    x, ids = torch.randn(SEQUENCES, TOKENS, WIDTH), torch.randint(0, WORDS, (SEQUENCES, TOKENS))
    own = slice(rank * SEQUENCES // count, (rank + 1) * SEQUENCES // count)
    x = x[own].clone().requires_grad_()
    called, backend = wrapped(model, how, compiled)
    block = pt.batch_invariant()
    with contextlib.nullcontext() if compiled else block:
        z, losses = called(x, ids[own])
        losses.sum().backward()
    assert backend.report().programs if compiled else block.served and not block.unknown
    sharded = [p.grad for p in called.parameters()]
    whole = [g.full_tensor() if how == "fsdp" else g for g in sharded]
    return z.detach(), losses.detach(), x.grad, whole


def main(rank, count, folder):
    """Runs all cases in one of ``count`` processes, and saves the results to a file."""
    meeting = f"file://{folder}/meeting.{count}"
    distributed.init_process_group(
        "gloo", init_method=meeting, rank=int(rank), world_size=int(count)
    )
    with ptxgen.use_device("cpu"):
        cases = [(how, made) for how in WAYS for made in (False, True)]
        found = {case: run(*case) for case in cases}
    torch.save(found, Path(folder) / f"{count}.{rank}")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
