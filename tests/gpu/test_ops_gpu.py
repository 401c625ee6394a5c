"""The library's operations on a real GPU: frameworks, streams, graphs, refusals."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from batch_cases import BATCHED, WAYS, cases, forced, sizes
from bits import operand, same_bits
from gpu_arrays import Guarded, chunk_of, naive, same_on_gpu, to_host

import ptxgen
from ptxgen import reference
from ptxgen.errors import DeviceError, DtypeError, GradError, ShapeError
from ptxgen.program.launch import architecture
from ptxgen.runtime import DeviceArray, get_device

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

try:
    import torch
except ImportError:
    torch = None

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch is None, reason="needs PyTorch"),
]

M, N, K = 37, 41, 70


def host(*shape, seed=1):
    return operand(np.random.default_rng([seed, *shape]), shape)


X, W, DY, BIAS = host(M, K), host(K, N), host(M, N), host(N)


def cuda(values):
    return torch.from_numpy(np.ascontiguousarray(values)).cuda()


# -- frameworks -------------------------------------------------------------------------


def test_torch_in_and_out():
    y = ptxgen.linear(cuda(X), cuda(W), cuda(BIAS), activation="gelu_tanh", layout="kn")
    assert type(y) is torch.Tensor and y.is_cuda and not y.requires_grad
    same_bits(y.cpu(), reference.linear(X, W, BIAS, activation="gelu_tanh", layout="kn"))
    dx = ptxgen.linear_dgrad(cuda(DY), cuda(W.T), layout="nk")
    same_bits(dx.cpu(), reference.linear_dgrad(DY, W, layout="kn"))
    dw = ptxgen.linear_wgrad(cuda(X), cuda(DY), layout="kn")
    same_bits(dw.cpu(), reference.linear_wgrad(X, DY, layout="kn"))
    old = dw.clone()
    assert ptxgen.linear_wgrad(cuda(X), cuda(DY), out=dw, accumulate=True, layout="kn") is dw
    same_bits(dw.cpu(), reference.linear_wgrad(X, DY, out_old=old.cpu().numpy(), layout="kn"))


def test_torch_leading_dimensions_views_and_parameters():
    x = cuda(host(2, 3, 5, K))
    layer = torch.nn.Linear(K, N, device="cuda")
    weight, bias = (p.detach().cpu().numpy() for p in (layer.weight, layer.bias))
    expected = reference.linear(x.cpu().numpy(), weight, bias, layout="nk")
    with torch.no_grad():
        for _ in range(3):
            y = ptxgen.linear(x, layer.weight, layer.bias, layout="nk")
            same_bits(y.cpu(), expected)
            same_bits(ptxgen.linear(x, layer.weight.T, layer.bias, layout="kn").cpu(), expected)
    wide = torch.full((2, 3, 5, N + 6), float("nan"), device="cuda")
    ptxgen.linear(x, layer.weight.detach(), layer.bias.detach(), layout="nk", out=wide[..., 2:-4])
    same_bits(wide[..., 2:-4].cpu(), expected)
    assert wide[..., :2].isnan().all() and wide[..., -4:].isnan().all()


def test_numpy_in_and_out():
    same_bits(ptxgen.linear(X, W, BIAS, activation="silu", layout="kn"),
              reference.linear(X, W, BIAS, activation="silu", layout="kn"))  # fmt: skip
    same_bits(
        ptxgen.linear_dgrad(DY[::-1], W, layout="kn"),
        reference.linear_dgrad(DY[::-1].copy(), W, layout="kn"),
    )
    out = np.full((2 * N, K), np.nan, np.float32)
    assert ptxgen.linear_wgrad(X, DY, layout="nk", out=out[::2]).base is out
    same_bits(out[::2].copy(), reference.linear_wgrad(X, DY, layout="nk"))
    assert np.isnan(out[1::2]).all()
    total = host(K, N, seed=5)
    expected = reference.linear_wgrad(X, DY, out_old=total.copy(), layout="kn")
    ptxgen.linear_wgrad(X, DY, out=total, accumulate=True, layout="kn")
    same_bits(total, expected)


def test_cupy_in_and_out():
    cupy = pytest.importorskip("cupy")
    y = ptxgen.linear(cupy.asarray(X), cupy.asarray(W.T.copy()).T, cupy.asarray(BIAS), layout="kn")
    assert type(y) is cupy.ndarray
    same_bits(y.get(), reference.linear(X, W, BIAS, layout="kn"))


def test_jax_in_and_out():
    jax = pytest.importorskip("jax")
    if jax.default_backend() not in ("gpu", "cuda"):
        pytest.skip("this JAX has no GPU backend")
    y = ptxgen.linear(*map(jax.numpy.asarray, (X, W, BIAS)), layout="kn")
    assert isinstance(y, jax.Array)
    same_bits(y, reference.linear(X, W, BIAS, layout="kn"))


def test_dlpack_and_cuda_array_interface():
    class Dlpack:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

        def __dlpack__(self, **options):
            return self.tensor.__dlpack__(**options)

    class Cai:
        def __init__(self, tensor):
            self.tensor = tensor
            self.__cuda_array_interface__ = tensor.__cuda_array_interface__

    expected = reference.linear(X, W, BIAS, layout="kn")
    for kind in (Dlpack, Cai):
        y = ptxgen.linear(kind(cuda(X)), kind(cuda(W)), kind(cuda(BIAS)), layout="kn")
        assert type(y) is DeviceArray
        same_bits(torch.from_dlpack(y).cpu(), expected, what=kind.__name__)
        out = torch.empty(M, N, device="cuda")
        ptxgen.linear(kind(cuda(X)), kind(cuda(W)), kind(cuda(BIAS)), out=kind(out), layout="kn")
        torch.cuda.synchronize()
        same_bits(out.cpu(), expected, what=kind.__name__)


def test_the_framework_of_the_first_operand_decides():
    y = ptxgen.linear(
        cuda(X), torch.nn.Parameter(cuda(W), requires_grad=False), cuda(BIAS), layout="kn"
    )
    assert type(y) is torch.Tensor
    with pytest.raises(DeviceError, match="x is in host memory, w in cuda:0; move x to cuda:0"):
        ptxgen.linear(X, cuda(W), layout="kn")


# -- sizes ------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n", "k"), [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0), (1, 1, 1)])
@pytest.mark.parametrize("layout", ["kn", "nk"])
def test_zero_sizes_and_one(layout, m, n, k):
    x, dy = host(m, k), host(m, n)
    w, bias = host(*((k, n) if layout == "kn" else (n, k))), host(n)
    for _ in range(3):
        got = ptxgen.linear(cuda(x), cuda(w), cuda(bias), layout=layout, activation="gelu")
        same_bits(got.cpu(), reference.linear(x, w, bias, layout=layout, activation="gelu"))
        got = ptxgen.linear_dgrad(cuda(dy), cuda(w), layout=layout)
        same_bits(got.cpu(), reference.linear_dgrad(dy, w, layout=layout))
        shape = (k, n) if layout == "kn" else (n, k)
        expected = np.zeros(shape, np.float32) if m == 0 else x.T @ dy
        expected = expected if layout == "kn" or m == 0 else expected.T
        same_bits(ptxgen.linear_wgrad(cuda(x), cuda(dy), layout=layout).cpu(), expected)
        old = np.full(shape, -0.0, np.float32)
        out = cuda(old)
        ptxgen.linear_wgrad(cuda(x), cuda(dy), layout=layout, out=out, accumulate=True)
        same_bits(out.cpu(), expected + old)


@pytest.mark.parametrize("offset", [0, 1, 2, 3])
def test_misaligned_pointers_and_strided_rows(offset):
    for pitch in (K, K + 1, K + 2, 72):
        x = Guarded(torch, M, K, pitch=pitch, offset=offset, values=X)
        w = Guarded(torch, K, N, pitch=N + 3, offset=3 - offset, values=W)
        out = Guarded(torch, M, N, pitch=N + offset, offset=offset)
        for _ in range(3):
            ptxgen.linear(x.view, w.view, cuda(BIAS), out=out.view, layout="kn")
            same_bits(
                out.view.cpu(),
                reference.linear(X, W, BIAS, layout="kn"),
                what=f"{offset=} {pitch=}",
            )
            assert out.intact() and x.intact() and w.intact()


# -- batches ----------------------------------------------------------------------------


def strided(array):
    """``array`` on the GPU, with its strides and as far from a multiple of 16 bytes."""
    item = array.itemsize
    steps = [step // item for step in array.strides]
    reach = sum(step * (size - 1) for step, size in zip(steps, array.shape, strict=True)) + 1
    off = array.ctypes.data % 16 // item
    bits = np.zeros(off + reach, f"i{item}")
    bits[off:] = np.lib.stride_tricks.as_strided(array, (reach,), (item,)).view(bits.dtype)
    kind = {"float32": torch.float32, "float64": torch.float64, "float16": torch.float16}
    flat = torch.from_numpy(bits).cuda().view(kind.get(array.dtype.name, torch.bfloat16))
    return flat.as_strided(array.shape, steps, off)


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16"])
def test_where_a_batch_lies(dtype):
    for name, (a, b, out, *_) in cases(dtype).items():
        target = strided(out)
        for _ in range(2):
            target.zero_()
            ptxgen.matmul(strided(a), strided(b), out=target)
            same_bits(to_host(torch, target), reference.matmul(a, b), what=name)


@pytest.mark.parametrize("name", sorted({*WAYS, *(n for n in BATCHED if n.startswith("wgmma"))}))
def test_every_way_to_work_takes_batches(name):
    for of_a, of_b in (((2, 3), (3,)), ((2, 1), (3,)), ((150,), (150,))):
        a, b, options, expected = forced(name, of_a, of_b, *sizes(name))
        got = ptxgen.matmul(strided(a), strided(b), **options, kernel=name)
        same_bits(to_host(torch, got), expected, spec=name, what=f"{of_a} {of_b}")


# -- streams, threads -------------------------------------------------------------------


def test_a_graph_may_allocate_results_and_meet_kernels_for_the_first_time():
    x, w = torch.randn(51, 333, device="cuda"), torch.randn(333, 77, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = ptxgen.linear(x, w, activation="silu", layout="kn")
        dx = ptxgen.linear_dgrad(y, w, layout="kn")
    for _ in range(3):
        x.normal_()
        graph.replay()
        expected = reference.linear(
            x.cpu().numpy(), w.cpu().numpy(), activation="silu", layout="kn"
        )
        same_bits(y.cpu(), expected)
        same_bits(dx.cpu(), reference.linear_dgrad(expected, w.cpu().numpy(), layout="kn"))


def test_work_is_ordered_on_the_current_stream_and_on_one_passed():
    side = torch.cuda.Stream()
    source, w = cuda(X), cuda(W)
    expected = reference.linear(X, W, layout="kn")
    for passed in (False, True, False, True):
        x, y = torch.zeros_like(source), torch.empty(M, N, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(50_000_000)
            x.copy_(source)
            if not passed:
                ptxgen.linear(x, w, out=y, layout="kn")
        if passed:
            ptxgen.linear(x, w, out=y, stream=side, layout="kn")
        side.synchronize()
        same_bits(y.cpu(), expected)


def test_threads():
    failures = []
    cases = [(host(m, K, seed=m), m) for m in (1, 5, 33, 130)]
    expected = {m: reference.linear(x, W, layout="kn") for x, m in cases}

    def work():
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                w = cuda(W)
                for x, m in cases * 20:
                    same_bits(
                        ptxgen.linear(cuda(x), w, layout="kn").cpu(), expected[m], what=f"M={m}"
                    )
        except BaseException as error:  # anything, to be told outside
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_several_gpus():
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    for index in (1, 0, 1):
        x, w = (torch.from_numpy(v).to(f"cuda:{index}") for v in (X, W))
        for _ in range(3):
            y = ptxgen.linear(x, w, layout="kn")
            assert y.device.index == index
            same_bits(y.cpu(), reference.linear(X, W, layout="kn"))
    with ptxgen.use_device("cuda:1"):
        same_bits(ptxgen.linear(X, W, layout="kn"), reference.linear(X, W, layout="kn"))
    with pytest.raises(DeviceError, match="x is in cuda:0, w in cuda:1"):
        ptxgen.linear(
            torch.from_numpy(X).to("cuda:0"), torch.from_numpy(W).to("cuda:1"), layout="kn"
        )


# -- refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize("warm", [False, True])
def test_refusals_leave_everything_as_it_was(warm):
    x, w, bias = cuda(X), cuda(W), cuda(BIAS)
    out = Guarded(torch, M, N)
    if warm:
        for _ in range(3):
            ptxgen.linear(x, w, bias, out=torch.empty(M, N, device="cuda"), layout="kn")
    cases = (
        (DtypeError, "w has dtype float64; takes float32, that of x", (x, w.double(), bias), {}),
        (
            DtypeError,
            "w has dtype bfloat16; takes float16, that of x",
            (x.half(), w.bfloat16(), bias),
            {},
        ),
        (DtypeError, "out has dtype float64", (x, w), {"out": torch.empty(M, N).double().cuda()}),
        (ShapeError, "w has shape .* K = 70, that of x", (x, w[1:], bias), {}),
        (ShapeError, r"bias has shape \[40\]", (x, w, bias[1:]), {}),
        (
            ShapeError,
            "x has .*pass a contiguous copy of x",
            (torch.cat([x, x], 1)[:, ::2], w, bias),
            {},
        ),
        (ShapeError, "out shares memory with x", (x, w[:, :1]), {"out": x[:, :1]}),
        (DeviceError, "bias in host memory", (x, w, bias.cpu()), {}),
        (DeviceError, "x is a CPU torch tensor", (x.cpu(), w.cpu(), bias.cpu()), {}),
        (GradError, "w requires grad", (x, w.clone().requires_grad_(), bias), {}),
        (ShapeError, r"x is a lazily negated|x has", (torch.complex(x, x).conj().imag, w), {}),
        (ShapeError, "to_dense", (x.to_sparse(), w), {}),
        (DeviceError, "meta", (x.to("meta"), w), {}),
    )
    for error, message, arguments, options in cases:
        with pytest.raises(error, match=message):
            ptxgen.linear(*arguments, **{"out": out.view, "layout": "kn", **options})
    torch.cuda.synchronize()
    assert out.intact() and (out.rows == out.bits[0]).all()
    assert torch.equal(x, cuda(X)) and torch.equal(w, cuda(W))


def test_vmap_is_refused():
    with pytest.raises(DeviceError, match="x is a torch tensor without memory"):
        torch.vmap(lambda row: ptxgen.linear(row[None], cuda(W), layout="kn"))(cuda(X))


def test_gradients_with_an_autograd_function():
    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return ptxgen.linear(x, w, layout="kn")

        @staticmethod
        def backward(ctx, dy):
            x, w = ctx.saved_tensors
            return ptxgen.linear_dgrad(dy, w, layout="kn"), ptxgen.linear_wgrad(x, dy, layout="kn")

    x, w = cuda(X).requires_grad_(), cuda(W).requires_grad_()
    y = Linear.apply(x, w)
    y.backward(cuda(DY))
    same_bits(y.detach().cpu(), reference.linear(X, W, layout="kn"))
    same_bits(x.grad.cpu(), reference.linear_dgrad(DY, W, layout="kn"))
    same_bits(w.grad.cpu(), reference.linear_wgrad(X, DY, layout="kn"))


# -- calls like earlier ones -----------------------------------------------------------------


def test_repeated_calls_return_the_bits_of_the_first():
    """The first call is checked and remembered; the next ones take the short way."""
    x, w, b = (torch.randn(s, device="cuda") for s in ((16, 64), (64, 64), (64,)))
    out = torch.empty(16, 64, device="cuda")
    calls = {
        "linear(out=)": lambda: ptxgen.linear(x, w, out=out, layout="kn"),
        "linear": lambda: ptxgen.linear(x, w, layout="kn"),
        "linear(bias, gelu, out=)": lambda: ptxgen.linear(
            x, w, b, activation="gelu", out=out, layout="kn"
        ),
        "linear_wgrad": lambda: ptxgen.linear_wgrad(x, x, layout="kn"),
        "matmul(out=)": lambda: ptxgen.matmul(x, w, out=out),
    }
    for name, call in calls.items():
        first = call().clone()
        for _ in range(3):
            out.fill_(float("nan"))
            assert same_on_gpu(torch, call(), first), name
    ptxgen.linear(x, w, out=out, layout="kn")
    assert same_on_gpu(torch, out, naive(torch, x, w, chunk_of(64)))


# -- rows of stride 0 --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("m", [1, 2, 17, 64, 128, 333, 2048])
def test_expanded_rows(m, dtype):
    """Operands expanded from one row (pitch 0, in tensor maps too) have the oracle's bits."""
    k, n, kind = 256, 128, getattr(torch, dtype)
    row, w = torch.randn(1, k, device="cuda").to(kind), torch.randn(k, n, device="cuda").to(kind)
    how = {"arch": architecture(get_device("cuda")), "layout": "kn"}

    def oracle(op, *operands):
        return getattr(reference, op)(*(to_host(torch, each) for each in operands), **how)

    x, v = row.expand(m, k), w[:1].expand(k, n)
    assert m == 1 or x.stride() == (0, 1)
    one = oracle("linear", row, w)
    same_bits(
        to_host(torch, ptxgen.linear(x, w, layout="kn")),
        one.repeat(m, 0),
        what=f"x expanded to {m}",
    )
    if m <= 333:  # for the oracle's sake
        y = torch.randn(m, k, device="cuda").to(kind)
        same_bits(
            to_host(torch, ptxgen.linear(y, v, layout="kn")),
            oracle("linear", y, v),
            what="w expanded",
        )
    dy = torch.randn(m, n, device="cuda").to(kind)
    dw = oracle("linear_wgrad", x, dy)
    same_bits(to_host(torch, ptxgen.linear_wgrad(x, dy, layout="kn")), dw, what="x expanded, wgrad")
