"""Loads a quantized checkpoint into a model of transformers, and generates with it.

Without arguments it writes a small Llama of random weights as a GGUF file (4 bits for the
feed-forward layers, 8 for attention), loads that file into an empty model, and lets it write tokens
in batches of several sizes. The weights stay as they are stored, and a sequence's tokens and logits
must not depend on the batch. Needs PyTorch, transformers and gguf; without a GPU the kernels run on
the CPU device.

python examples/quantized_checkpoint.py                     # a file that it makes
python examples/quantized_checkpoint.py CONFIG WEIGHTS      # a folder, a file or a folder
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

NEEDED = ("torch", "transformers", "gguf")
BATCHES = (1, 2, 5)
TOKENS = {"cuda": 16, "cpu": 2}


def main(arguments: list[str]) -> int:
    """Prints what was loaded and whether tokens depend on the batch; returns 1 if they do."""
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        print(f"This example needs PyTorch; transformers; gguf: {', '.join(missing)} is missing.")
        return 0
    import torch
    import transformers

    import ptxgen
    import ptxgen.torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    with ExitStack() as stack:
        if device == "cpu":
            stack.enter_context(ptxgen.use_device("cpu"))
        if arguments:
            config, weights = transformers.AutoConfig.from_pretrained(arguments[0]), arguments[1]
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            config = transformers.LlamaConfig(
                hidden_size=256,
                intermediate_size=512,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=2,
                vocab_size=512,
            )
            weights = write(torch, transformers, config, folder / "model.gguf")
        with torch.device(device):
            model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        before = nbytes(model)
        done = ptxgen.torch.convert(model, weights=weights)
        print(done)
        print(f"{before / 2**20:.1f} MiB in bfloat16, {nbytes(model) / 2**20:.1f} MiB as stored")
        return compare(torch, ptxgen, model.eval(), config.vocab_size, device)


def write(torch: Any, transformers: Any, config: Any, path: Path) -> Path:
    """Writes a model of random weights as a GGUF file, as llama.cpp's converter would."""
    import gguf

    torch.manual_seed(0)
    known = transformers.LlamaForCausalLM(config)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for name, parameter in known.named_parameters():
        w, layer = parameter.detach(), name.split(".")[-2]
        if layer in heads:  # llama.cpp rotates neighbours, transformers halves
            w = w.reshape(heads[layer], 2, -1, w.shape[1]).swapaxes(1, 2).reshape(w.shape)
        there = names.get_name(name, try_suffixes=(".weight",))
        kind = "Q4_0" if "mlp" in name else "Q8_0" if "_proj" in name else "F32"
        of = gguf.GGMLQuantizationType[kind]
        data = w.contiguous().numpy()
        writer.add_tensor(
            there, data if kind == "F32" else gguf.quants.quantize(data, of), raw_dtype=of
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def nbytes(model: Any) -> int:
    """Bytes of a model's parameters and buffers."""
    return sum(t.nbytes for t in (*model.parameters(), *model.buffers()))


def compare(torch: Any, ptxgen: Any, model: Any, words: int, device: str) -> int:
    """Generates in batches of several sizes; returns 1 if the first sequence depends on them."""
    torch.manual_seed(1)
    prompts = torch.randint(words, (max(BATCHES), 8), device=device)
    alone, differs = None, False
    with ptxgen.torch.batch_invariant(), torch.no_grad():
        for batch in BATCHES:
            found = model.generate(
                prompts[:batch],
                attention_mask=torch.ones_like(prompts[:batch]),
                max_new_tokens=TOKENS[device],
                do_sample=False,
                pad_token_id=0,
                output_logits=True,
                return_dict_in_generate=True,
            )
            first = found.sequences[0], torch.stack([each[0] for each in found.logits])
            alone = alone or first
            same = all(torch.equal(a, b) for a, b in zip(alone, first, strict=True))
            print(f"  batch {batch}: tokens {first[0][8:].tolist()}")
            differs |= not same
    depends = "DEPEND" if differs else "do not depend"
    print(f"the tokens and logits of a sequence {depends} on the batch")
    return int(differs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
