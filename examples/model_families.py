"""Shows for models of many kinds, unchanged, whether a row's result depends on its batch.

Images, sound, recurrences, mixtures of experts, of `transformers`, and a U-Net and an autoencoder
of the kind that diffusion models have, of plain ``torch.nn``. Each, small and of random weights,
runs in ``ptxgen.torch.batch_invariant()``: rows of a batch of 16, alone and in pieces of 3 and 7;
and a training step twice. Counts the bits that differ, what the block did not know, and how often
the host waited for the GPU.

    python examples/model_families.py [--models resnet,mamba] [--dtype float32] [--stock]

Needs PyTorch and an NVIDIA GPU, and transformers for all but two of the models.
"""

from __future__ import annotations

import argparse
import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError:
    torch = None

BATCH, PIECES, TRAINED = 16, (1, 3, 7), 3
TOKENS, VOCABULARY, IMAGE, LATENT, FRAMES, MELS = 12, 64, 32, 8, 32, 16


# -- of plain torch.nn --------------------------------------------------------------------------
def residual(channels: int, out: int, steps: int = 0) -> Any:
    """Returns a residual block of two convolutions; ``steps``: width of its time embedding."""

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.GroupNorm(4, channels), nn.SiLU())
            self.widen = nn.Conv2d(channels, out, 3, padding=1)
            self.time = nn.Linear(steps, out) if steps else None
            self.second = nn.Sequential(nn.GroupNorm(4, out), nn.SiLU())
            self.last = nn.Conv2d(out, out, 3, padding=1)
            self.around = nn.Conv2d(channels, out, 1) if channels != out else nn.Identity()

        def forward(self, x: Any, time: Any = None) -> Any:
            y = self.widen(self.first(x))
            if self.time is not None:
                y = y + self.time(functional.silu(time))[:, :, None, None]
            return self.around(x) + self.last(self.second(y))

    return Residual()


def seeing(channels: int, heads: int) -> Any:
    """Returns self-attention over all pixels of an image."""

    class Seeing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.GroupNorm(4, channels)
            self.qkv, self.out = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)

        def forward(self, x: Any) -> Any:
            rows = self.norm(x).flatten(2).mT
            parts = self.qkv(rows).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
            seen = functional.scaled_dot_product_attention(*parts)
            return x + self.out(seen.transpose(1, 2).flatten(2)).mT.unflatten(2, x.shape[2:])

    return Seeing()


def unet() -> Any:
    """Diffusion U-Net: predicts an image's noise at a time step."""

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.time = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 64))
            self.begin = nn.Conv2d(4, 32, 3, padding=1)
            self.high, self.low = residual(32, 32, 64), residual(32, 64, 64)
            self.down = nn.Conv2d(32, 32, 3, stride=2, padding=1)
            self.see, self.middle = seeing(64, 4), residual(64, 64, 64)
            self.up = nn.Conv2d(64, 32, 3, padding=1)
            self.join = residual(64, 32, 64)
            self.end = nn.Sequential(nn.GroupNorm(4, 32), nn.SiLU(), nn.Conv2d(32, 4, 3, padding=1))

        def forward(self, image: Any, time: Any) -> Any:
            turns = time[:, None] * torch.logspace(0, -4, 16, device=time.device, dtype=time.dtype)
            at = self.time(torch.cat([turns.sin(), turns.cos()], -1).to(image.dtype))
            kept = self.high(self.begin(image), at)
            y = self.middle(self.see(self.low(self.down(kept), at)), at)
            y = self.up(functional.interpolate(y, scale_factor=2, mode="nearest"))
            return self.end(self.join(torch.cat([y, kept], 1), at))

    return UNet()


def autoencoder() -> Any:
    """Image autoencoder. The latent noise is an argument, since PyTorch would draw it by the place
    in the batch.
    """

    class Autoencoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Sequential(
                nn.Conv2d(4, 32, 3, padding=1),
                *(residual(32, 32), nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(32, 32, 3, stride=2)),
                *(seeing(32, 1), nn.GroupNorm(4, 32), nn.SiLU(), nn.Conv2d(32, 8, 3, padding=1)),
            )
            self.decoder = nn.Sequential(
                *(nn.Conv2d(4, 32, 3, padding=1), seeing(32, 1), residual(32, 32)),
                nn.Upsample(scale_factor=2, mode="bilinear"),
                *(nn.ConvTranspose2d(32, 32, 2, stride=2), nn.AvgPool2d(2)),
                *(nn.GroupNorm(4, 32), nn.SiLU(), nn.Conv2d(32, 4, 3, padding=1)),
            )

        def forward(self, image: Any, noise: Any) -> Any:
            mean, spread = self.encoder(image).chunk(2, 1)
            return self.decoder(mean + (0.5 * spread.clamp(-30, 20)).exp() * noise)

    return Autoencoder()


# -- of transformers ----------------------------------------------------------------------------
_TEXT = {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_LAYER = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1}
_HEADS = {"num_attention_heads": 2}
_SEEN = _LAYER | _HEADS | {"image_size": IMAGE, "patch_size": 8}
_LANGUAGE = _TEXT | _LAYER | _HEADS | {"num_key_value_heads": 1, "head_dim": 32, "use_cache": False}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2}
_LOCAL = {"num_local_experts": 4, "num_experts_per_tok": 2}
_WIDTHS = {"moe_intermediate_size": 32, "shared_expert_intermediate_size": 32}


@dataclass(frozen=True)
class Family:
    """A model: its factory, its inputs by name, and the outputs that have one row a sample."""

    make: Callable[[], Any]
    given: Mapping[str, str]
    results: tuple[str, ...] = ("logits",)


def _of(kind: str, head: str, given: Mapping[str, str], *results: str, **sizes: Any) -> Family:
    def make() -> Any:
        import transformers

        transformers.logging.set_verbosity_error()
        config = getattr(transformers, f"{kind}Config")(**sizes)
        return getattr(transformers, kind + head)(config)

    return Family(make, given, results or ("logits",))


def _sees(kind: str, **sizes: Any) -> Family:
    return _of(kind, "ForImageClassification", {"pixel_values": "image"}, **sizes, num_labels=8)


def _speaks(kind: str, **sizes: Any) -> Family:
    return _of(kind, "ForCausalLM", {"input_ids": "tokens"}, **_LANGUAGE | sizes)


MODELS: dict[str, Family] = {
    "unet": Family(unet, {"image": "latents", "time": "time"}, ()),
    "autoencoder": Family(autoencoder, {"image": "latents", "noise": "noise"}, ()),
    "resnet": _sees("ResNet", embedding_size=16, hidden_sizes=[16, 64], depths=[1, 1]),
    "convnext": _sees("ConvNext", hidden_sizes=[16, 32], depths=[1, 1], num_stages=2),
    "vit": _sees("ViT", **_SEEN),
    "clip": _of(
        "CLIP",
        "Model",
        {"input_ids": "tokens", "pixel_values": "image"},
        *("text_embeds", "image_embeds"),
        text_config=_TEXT | _LAYER | _HEADS | {"max_position_embeddings": TOKENS},
        vision_config=_SEEN,
        projection_dim=32,
    ),
    "whisper": _of(
        "Whisper",
        "ForConditionalGeneration",
        {"input_features": "sound", "decoder_input_ids": "tokens"},
        **_TEXT | {"decoder_start_token_id": 1, "d_model": 64, "num_mel_bins": MELS},
        **{f"{part}_layers": 1 for part in ("encoder", "decoder")},
        **{f"{part}_attention_heads": 2 for part in ("encoder", "decoder")},
        **{f"{part}_ffn_dim": 64 for part in ("encoder", "decoder")},
        max_source_positions=FRAMES // 2,
        max_target_positions=TOKENS,
    ),
    "mamba": _speaks("Mamba", state_size=8),
    "mamba2": _speaks("Mamba2", state_size=16, num_heads=4, n_groups=1, chunk_size=8),
    "jamba": _speaks(
        "Jamba",
        **_EXPERTS,
        num_hidden_layers=2,
        **{"attn_layer_period": 2, "attn_layer_offset": 1},
        **{"expert_layer_period": 2, "expert_layer_offset": 1},
        **{"mamba_d_state": 8, "mamba_dt_rank": 4, "use_mamba_kernels": False},
    ),
    "recurrent_gemma": _speaks(
        "RecurrentGemma",
        num_hidden_layers=2,
        block_types=["recurrent", "attention"],
        attention_window_size=8,
    ),
    "qwen3_next": _speaks(
        "Qwen3Next",
        **_EXPERTS | _WIDTHS,
        num_hidden_layers=2,
        layer_types=["linear_attention", "full_attention"],
        **{"linear_key_head_dim": 16, "linear_value_head_dim": 16},
        **{"linear_num_key_heads": 2, "linear_num_value_heads": 4},
    ),
    "mixtral": _speaks("Mixtral", **_LOCAL),
    "qwen3_moe": _speaks("Qwen3Moe", **_EXPERTS | _WIDTHS),
    "deepseek_v3": _speaks(
        "DeepseekV3",
        num_hidden_layers=2,
        first_k_dense_replace=1,
        **{"n_routed_experts": 8, "n_group": 2, "topk_group": 1, "num_experts_per_tok": 2},
        **{"moe_intermediate_size": 32, "kv_lora_rank": 16, "q_lora_rank": 32, "head_dim": 16},
        **{"qk_rope_head_dim": 16, "qk_nope_head_dim": 32, "v_head_dim": 32},
        num_key_value_heads=2,
    ),
    "gpt_oss": _speaks("GptOss", **_LOCAL, sliding_window=8),
}
"""Families that the command tries, by name."""


# -- comparing ----------------------------------------------------------------------------------
@dataclass
class Result:
    """Counts of what differs, and operators that the block did not know."""

    rows: int = 0
    """Rows of results that differ between the whole batch and a piece of it."""
    gradients: int = 0
    """Gradients (and losses) that differ between two runs of one training step."""
    waits: int = 0
    """Host waits for the GPU in a forward pass of the whole batch."""
    unknown: dict[str, int] = field(default_factory=dict)
    """Calls of operators that the block did not know, by name."""

    @property
    def invariant(self) -> bool:
        """Whether no row, no gradient and no operator breaks the promise."""
        return not (self.rows or self.gradients or self.unknown)


def given(family: Family, device: str, dtype: Any) -> dict[str, Any]:
    """Draws the arguments of a model for one batch."""
    random = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> Any:
        return torch.randn(BATCH, *shape, generator=random).to(device, dtype)

    kinds = {
        "tokens": lambda: torch.randint(3, VOCABULARY, (BATCH, TOKENS), generator=random),
        "image": lambda: draw(3, IMAGE, IMAGE),
        "sound": lambda: draw(MELS, FRAMES),
        "latents": lambda: draw(4, LATENT, LATENT),
        "noise": lambda: draw(4, LATENT // 2, LATENT // 2),
        "time": lambda: torch.arange(BATCH, dtype=torch.float32) * 50,
    }
    return {name: kinds[kind]().to(device) for name, kind in family.given.items()}


def called(family: Family, model: Any, batch: Mapping[str, Any], part: slice) -> list[Any]:
    """Returns a model's results for a part of a batch."""
    found = model(**{name: x[part] for name, x in batch.items()})
    return [getattr(found, name) for name in family.results] or [found]


def ends(size: int) -> Iterator[slice]:
    """Yields the first ``size`` rows of a batch, and the last."""
    yield from (slice(0, size), slice(BATCH - size, BATCH))


@contextlib.contextmanager
def counted_waits(result: Result, device: str) -> Iterator[None]:
    """Counts host waits for the GPU that PyTorch reports."""
    if device != "cuda":
        yield
        return
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            yield
    finally:
        torch.cuda.set_sync_debug_mode("default")
    result.waits = sum("synchronizing" in str(w.message) for w in seen)


def trained(family: Family, model: Any, batch: Mapping[str, Any]) -> list[Any]:
    """Returns the loss and all gradients of one training step."""
    model.zero_grad()
    found = called(family, model, batch, slice(0, TRAINED))
    loss = sum(y.float().square().mean() for y in found)
    loss.backward()
    gradients = (p.grad for p in model.parameters())
    return [loss.detach(), *(g.clone() for g in gradients if g is not None)]


def check(name: str, device: str = "cuda", dtype: Any = None, *, stock: bool = False) -> Result:
    """Runs a model in the block (or without it, if ``stock``), and compares whole and pieces."""
    import ptxgen.torch

    family, dtype = MODELS[name], torch.bfloat16 if dtype is None else dtype
    torch.manual_seed(0)
    model = family.make().to(device, dtype).eval()
    batch, result = given(family, device, dtype), Result()
    made: Any = contextlib.nullcontext() if stock else ptxgen.torch.batch_invariant()
    with made as block:
        with torch.no_grad():
            whole = called(family, model, batch, slice(0, BATCH))
            for part in (part for size in PIECES for part in ends(size)):
                for one, all_of in zip(called(family, model, batch, part), whole, strict=True):
                    result.rows += int((one != all_of[part]).flatten(1).any(1).sum())
            with counted_waits(result, device):
                called(family, model, batch, slice(0, BATCH))
        model.train()
        pairs = zip(*(trained(family, model, batch) for _ in range(2)), strict=True)
        result.gradients = sum(not torch.equal(*pair) for pair in pairs)
    if not stock:
        result.unknown = dict(block.unknown)
    return result


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", default=",".join(MODELS), help="(%(default)s)")
    parser.add_argument("--dtype", default="bfloat16", help="(%(default)s)")
    parser.add_argument("--stock", action="store_true", help="PyTorch's own kernels, too")
    options = parser.parse_args()
    if torch is None or not torch.cuda.is_available():
        print("This example needs PyTorch and an NVIDIA GPU, and transformers for most models.")
        return
    titles = ("rows", "gradients", "waits", "unknown")
    print(f"{'model':16}{'':8}" + "".join(f"{t:>10}" for t in titles))
    good = True
    for name in options.models.split(","):
        for stock in (True, False) if options.stock else (False,):
            r = check(name, dtype=getattr(torch, options.dtype), stock=stock)
            counts = (r.rows, r.gradients, r.waits, len(r.unknown))
            line = "".join(f"{count:10}" for count in counts)
            print(f"{name:16}{'stock' if stock else 'ptxgen':8}{line}", flush=True)
            for each, count in r.unknown.items():
                print(f"    unknown: {each} {count}")
            good = good and (stock or r.invariant)
    print("no result depends on the batch" if good else "SOME RESULTS DEPEND ON THE BATCH")


if __name__ == "__main__":
    main()
