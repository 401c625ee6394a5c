"""Quantized models of `transformers`, as it loads them, in the block; on the CPU device."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import checkpoint_cases
import pytest

import ptxgen
from ptxgen import quantized
from ptxgen.errors import UnservedError

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")
patches = pytest.importorskip("ptxgen.torch.patches")

FLOATS = [torch.float32, torch.bfloat16, torch.float16]


@pytest.fixture(autouse=True)
def on_the_cpu_device():
    with ptxgen.use_device("cpu"):
        yield


def package(name):
    return pytest.importorskip(name, reason=f"needs the package {name}")


def same_as_dense(made, weights, dtype=torch.float32):
    """Logits of a model in the strict block are those of the model with dense ``weights``, by the
    name of the layer, and rows do not depend on the batch.
    """
    dense = checkpoint_cases.model(torch, type(made).__name__.removesuffix("ForCausalLM"), 9, dtype)
    for name, parameter in dense.named_parameters():
        value = weights.get(name)
        parameter.copy_(made.get_parameter(name) if value is None else value)
    tokens = torch.randint(0, 32, (3, 7))
    with pt.batch_invariant(strict=True) as block, torch.no_grad():
        whole = made(tokens).logits
        assert torch.equal(whole, dense(tokens).logits)
        assert torch.equal(made(tokens[:1]).logits, whole[:1])
    return block.report()


# -- bitsandbytes ---------------------------------------------------------------------------
def linear_4bit(dtype=torch.float32, nested=False, kind="nf4", size=64, bias=True):
    """A layer of bitsandbytes, quantized on its way to the CPU, and its weight in dtype ``dtype``
    as bitsandbytes dequantizes it.
    """
    bnb = package("bitsandbytes")
    torch.manual_seed(0)
    made = bnb.nn.Linear4bit(256, 64, bias, dtype, nested, kind).to(dtype)
    given = {"compress_statistics": nested, "quant_type": kind, "blocksize": size}
    made.weight = bnb.nn.Params4bit(made.weight.data, requires_grad=False, **given, module=made)
    made = made.to("cpu").requires_grad_(False).eval()
    state = made.weight.quant_state
    assert state.nested is nested and state.blocksize == size
    return made, bnb.functional.dequantize_4bit(made.weight, state).to(dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("nested", [False, True], ids=["plain", "nested"])
def test_layers_of_bitsandbytes_have_the_bits_of_the_dense_product(dtype, nested):
    """Products, gradients, rows alone; the weight stays as it is stored."""
    layer, _ = linear_4bit(dtype, nested)
    q = quantized.from_bitsandbytes(layer.weight)
    w = quantized.dequantize(q, dtype)
    x, dy = torch.randn(2, 3, 256).to(dtype), torch.randn(2, 3, 64).to(dtype)
    leaf, expected = x.clone().requires_grad_(), ptxgen.linear(x, w, layer.bias, layout="nk")
    before = layer.weight.data.clone(), layer.weight.quant_state.absmax.clone()
    with pt.batch_invariant(strict=True) as block:
        assert torch.equal(layer(x), expected)
        assert torch.equal(layer(x[:, 1]), expected[:, 1])
        assert torch.equal(layer(x.float()), expected.float())
        layer(leaf).backward(dy)
    assert block.served["gemm_4bit"] == 4 and not block.unknown
    assert torch.equal(leaf.grad, ptxgen.linear_dgrad(dy, w, layout="nk"))
    assert torch.equal(layer.weight.data, before[0])
    assert torch.equal(layer.weight.quant_state.absmax, before[1])


@pytest.mark.parametrize(("kind", "size"), [("nf4", 128), ("nf4", 32), ("fp4", 64)])
def test_other_codes_and_blocks_of_bitsandbytes_are_dequantized_by_it(kind, size):
    layer, w = linear_4bit(kind=kind, size=size, bias=False)
    x = torch.randn(3, 256)
    with pt.batch_invariant(strict=True), torch.no_grad():
        assert torch.equal(layer(x), ptxgen.linear(x, w, layout="nk"))


def test_products_of_bitsandbytes_are_its_own_outside_of_the_block():
    layer, _ = linear_4bit()
    op, x = torch.ops.bitsandbytes.gemm_4bit.default, torch.randn(3, 256)
    packs = package("bitsandbytes").nn.modules._convert_weight_packed_for_cpu
    own = torch.library.get_kernel(op, "CPU")
    with pt.batch_invariant() as block:
        with pt.batch_invariant():
            layer(x)
        layer(x)
    assert block.served["gemm_4bit"] == 1
    assert package("bitsandbytes").nn.modules._convert_weight_packed_for_cpu is packs
    assert str(torch.library.get_kernel(op, "CPU")) == str(own)


def test_weights_packed_for_cpus_are_refused():
    bnb = package("bitsandbytes")
    layer, _ = linear_4bit()
    if not bnb.functional.has_avx512bf16():
        pytest.skip("bitsandbytes packs weights on CPUs with AVX512-BF16 only")
    x = torch.randn(3, 256)
    with torch.no_grad():
        layer(x)
        with pt.batch_invariant() as block:
            layer(x)
        assert block.unknown == {"bitsandbytes.gemv_4bit.default": 1}
        with (
            pt.batch_invariant(strict=True),
            pytest.raises(UnservedError, match="bitsandbytes packed the weight for CPUs"),
        ):
            layer(x)


def test_activations_that_bitsandbytes_quantizes_are_refused():
    bnb, x = package("bitsandbytes"), torch.randn(3, 256)
    with pt.batch_invariant() as block:
        bnb.functional.int8_vectorwise_quant(x)
    assert block.unknown["bitsandbytes.int8_vectorwise_quant.default"] == 1
    with (
        pt.batch_invariant(strict=True),
        pytest.raises(UnservedError, match=r"int8_vectorwise_quant.*nor others of quantized"),
    ):
        bnb.functional.int8_vectorwise_quant(x)


def test_a_model_of_bitsandbytes_is_served(tmp_path):
    """Both the model that is loaded and the converted one have the bits of the dense model."""
    package("bitsandbytes"), package("accelerate")
    transformers = package("transformers")
    checkpoint_cases.model(torch).save_pretrained(tmp_path)
    how = transformers.BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True
    )
    made = checkpoint_cases.loaded(tmp_path, quantization_config=how, dtype=torch.float32)
    layers = {
        f"{name}.weight": quantized.dequantize(quantized.from_bitsandbytes(module.weight))
        for name, module in made.named_modules()
        if type(module).__name__ == "Linear4bit"
    }
    assert len(layers) == 7
    assert same_as_dense(made, layers).served["gemm_4bit"] == 14
    assert len(pt.convert(made, format="nf4", skip=["lm_head"]).converted) == 7
    same_as_dense(made, layers)


# -- compressed-tensors -----------------------------------------------------------------------
INT4 = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}
INT8 = {"num_bits": 8, "type": "int", "strategy": "channel"}
FP8 = {"num_bits": 8, "type": "float", "strategy": "channel"}
NVFP4 = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
TOKENS = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True}


@pytest.mark.parametrize(
    ("scheme", "dtype"),
    [
        (INT4, torch.float32),
        (INT4, torch.bfloat16),
        (INT8, torch.float32),
        (FP8, torch.bfloat16),
        (NVFP4, torch.bfloat16),
    ],
    ids=["int4", "int4-bf16", "int8", "fp8", "nvfp4"],
)
def test_a_model_of_compressed_tensors_is_served(tmp_path, scheme, dtype):
    """A model that `transformers` loads has the bits of the dense one, whose weights are those that
    ``convert`` loads of the same folder; so has the converted one.
    """
    package("compressed_tensors"), package("accelerate"), package("transformers")
    checkpoint_cases.compressed(torch, tmp_path, scheme, dtype=dtype)
    made = checkpoint_cases.model(torch, seed=3, dtype=dtype)
    done = pt.convert(made, weights=tmp_path)
    assert len(done.converted) == 7 and not done.missing and not done.unused
    weights = {
        f"{name}.weight": quantized.dequantize(made.get_submodule(name).q, dtype)
        for name in done.converted
    }
    same_as_dense(made, weights, dtype)
    theirs = checkpoint_cases.loaded(tmp_path, dtype=dtype)
    done = pt.convert(theirs, format="nf4", skip=["lm_head"])
    assert not done.converted and "has a forward of its own" in done.skipped.values()
    same_as_dense(theirs, weights, dtype)
    for name, weight in weights.items():
        assert torch.equal(theirs.get_parameter(name), weight)


def test_activations_of_compressed_tensors_are_refused(tmp_path):
    package("compressed_tensors"), package("accelerate")
    transformers = package("transformers")
    checkpoint_cases.compressed(torch, tmp_path, FP8, TOKENS)
    made, tokens = checkpoint_cases.loaded(tmp_path), torch.randint(0, 32, (2, 5))
    with torch.no_grad():
        outside = made(tokens).logits
        with pt.batch_invariant() as block:
            made(tokens)
        assert block.unknown == {"compressed_tensors.input_activations": 7}
        with (
            pt.batch_invariant(strict=True),
            pytest.raises(UnservedError, match=r"input_activations .*products of FP8 by FP8 are n"),
        ):
            made(tokens)
        assert torch.equal(made(tokens).logits, outside)
    how = transformers.CompressedTensorsConfig(dequantize=True)
    made, before = checkpoint_cases.loaded(tmp_path, quantization_config=how), made
    name = "model.layers.0.mlp.up_proj.weight"
    same_as_dense(made, {name: before.get_parameter(name)})


# -- AWQ and GPTQ -------------------------------------------------------------------------------
@pytest.mark.parametrize(("method", "backend"), [("gptq", "torch"), ("awq", "torch_awq")])
def test_layers_of_gptqmodel_in_pytorch_are_served(tmp_path, method, backend):
    package("gptqmodel"), package("optimum"), package("transformers")
    checkpoint_cases.grouped(torch, tmp_path, method, backend)
    made = checkpoint_cases.model(torch, seed=3, dtype=torch.float16)
    done = pt.convert(made, weights=tmp_path)
    assert len(done.converted) == 7 and not done.missing and not done.unused
    weights = {
        f"{name}.weight": quantized.dequantize(made.get_submodule(name).q, torch.float16)
        for name in done.converted
    }
    theirs = checkpoint_cases.loaded(tmp_path, dtype=torch.float16, device_map="cpu")
    same_as_dense(theirs, weights, torch.float16)


# -- FP8 and MXFP4 ------------------------------------------------------------------------------
@pytest.mark.parametrize("asked", [True, False])
def test_gpt_oss_is_served_as_it_is_dequantized(tmp_path, asked):
    """Without Triton's kernels `transformers` dequantizes MXFP4 when it loads the model."""
    how = {"quantization_config": package("transformers").Mxfp4Config(dequantize=True)}
    if not asked:
        package("accelerate")
        how = {}
    checkpoint_cases.mxfp4(torch, tmp_path)
    weights = {}
    for name, parts in checkpoint_cases.experts(tmp_path).items():
        experts, n, blocks, _ = parts[0].shape
        shape = experts * n, blocks * 32
        q = quantized.QuantizedWeight(
            "mxfp4", *(p.reshape(shape[0], -1) for p in parts), shape=shape
        )
        weights[name] = quantized.dequantize(q).reshape(experts, n, -1).mT
    assert len(weights) == 2
    made = checkpoint_cases.loaded(tmp_path, dtype=torch.float32, **how)
    assert same_as_dense(made, weights).served["_grouped_mm"] == 6


def layers():
    """Layers of `transformers` that run kernels of their own, and their inputs, by name."""
    package("transformers")
    from transformers import GptOssConfig
    from transformers.integrations import finegrained_fp8, mxfp4

    x, each = torch.randn(3, 64), torch.zeros(3, 2, dtype=torch.int64)
    config = GptOssConfig(**checkpoint_cases.SIZES, **checkpoint_cases.EXPERTS)
    of = 64, 64, (32, 32)
    experts = mxfp4.Mxfp4GptOssExperts(config)
    return {
        "FP8Linear": (finegrained_fp8.FP8Linear(*of), (x,)),
        "FP8GroupedLinear": (finegrained_fp8.FP8GroupedLinear(64, 64, 2, (32, 32)), (x[:, None],)),
        "Mxfp4GptOssExperts": (experts, (x, each, each.float())),
        "Mxfp4GptOssMLP": (mxfp4.Mxfp4GptOssMLP(torch.nn.Linear(64, 4), experts), (x[None],)),
    }


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("FP8Linear", "products of FP8 by FP8 are not there"),
        ("FP8GroupedLinear", "products of FP8 by FP8 are not there"),
        ("Mxfp4GptOssExperts", "Triton kernels are not seen by the block"),
        ("Mxfp4GptOssMLP", "Triton kernels are not seen by the block"),
    ],
)
def test_layers_with_kernels_of_their_own_are_refused_by_name(name, why):
    layer, given = layers()[name]
    own = type(layer).forward
    message = rf"transformers.{name} may compute rows .* is not served \(.*{why}"
    with pt.batch_invariant(strict=True), pytest.raises(UnservedError, match=message):
        layer(*given)
    assert type(layer).forward is own
    allowed = pt.batch_invariant(strict=True, allow={f"transformers.{name}"})
    with allowed, pytest.raises(Exception) as error:  # there is no Triton here
        layer(*given)
    assert not isinstance(error.value, UnservedError)
    assert allowed.unknown[f"transformers.{name}"] == 1


@pytest.mark.parametrize("module", [*patches.LAYERS])
def test_the_layers_that_are_listed_exist(module):
    """They are patched while a block is open, whatever the library's version calls them."""
    package(module.partition(".")[0])
    found = importlib.import_module(module)
    for name in patches.LAYERS[module].names:
        own = getattr(found, name).forward
        with pt.batch_invariant():
            assert getattr(found, name).forward.__wrapped__ is own


def test_layers_for_fp8_with_dense_weights_are_served():
    layer, (x,) = layers()["FP8Linear"]
    layer.weight = torch.nn.Parameter(torch.randn(64, 64))
    with pt.batch_invariant(strict=True), torch.no_grad():
        assert torch.equal(layer(x), ptxgen.linear(x, layer.weight, layout="nk"))


def test_products_of_fp8_are_refused_by_name():
    x = torch.zeros(16, 16).to(torch.float8_e4m3fn)
    one = torch.ones(())
    with (
        pt.batch_invariant(strict=True),
        pytest.raises(UnservedError, match=r"_scaled_mm.* \(products of FP8 by FP8 are not there"),
    ):
        torch._scaled_mm(x, x.T, one, one, out_dtype=torch.bfloat16)


def test_modules_imported_meanwhile_are_patched(tmp_path, monkeypatch):
    """Also those that are looked for first; a patch is undone, and no finder is left."""
    (tmp_path / "imported_meanwhile.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)

    def patch(module):
        yield patches._set(module, "value", 2)

    made = patches.Patches({"imported_meanwhile": patch, "never_imported": patch})
    made.open()
    assert importlib.util.find_spec("imported_meanwhile") and not importlib.util.find_spec("no_one")
    import imported_meanwhile

    assert imported_meanwhile.value == 2
    made.close()
    assert imported_meanwhile.value == 1 and sys.meta_path == finders
    late = patches.Patches({"imported_meanwhile": patch})
    monkeypatch.delitem(sys.modules, "imported_meanwhile")
    late.open()
    spec = importlib.util.find_spec("imported_meanwhile")
    late.close()
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.value == 1, "found while it was open, imported afterwards"
