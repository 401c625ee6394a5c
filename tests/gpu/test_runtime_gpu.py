"""The runtime on a real GPU, through small kernels that have the GEMM parameter list."""

import functools
import gc
import os
import struct
import threading

import numpy as np
import pytest

from ptxgen.errors import DeviceError, DtypeError, ShapeError
from ptxgen.runtime import cuda
from ptxgen.runtime.arrays import DeviceArray, view
from ptxgen.runtime.call import Call, Results
from ptxgen.runtime.launch import MAP_BYTES, Parameters, ScratchLaunch, TensorBox
from ptxgen.runtime.registry import devices, get_device, use_device
from ptxgen.runtime.stream import torch_current
from ptxgen.runtime.strided import contiguous_strides
from ptxgen.runtime.workspace import SMALLEST

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

GPUS = [d for d in devices() if d.kind == "cuda"]
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not GPUS, reason="needs an NVIDIA GPU and its driver"),
]

SOURCE = r"""
#define PARAMETERS const float* A, const float* B, const float* bias, float* C, float* ws, \
    long long lda, long long ldb, long long ldc, unsigned M, unsigned N, unsigned K, \
    unsigned chunk, unsigned flags
#define EACH unsigned i = blockIdx.x * blockDim.x + threadIdx.x; if (i < M)

extern "C" __global__ void twice(PARAMETERS) { EACH C[i] = 2.0f * A[i] + (bias ? bias[0] : 0.0f); }
// reduce may start while split is at work, and split takes its time
#if __CUDA_ARCH__ >= 900
#define PERMIT asm volatile("griddepcontrol.launch_dependents;")
#define WAIT asm volatile("griddepcontrol.wait;" ::: "memory")
#else
#define PERMIT
#define WAIT
#endif
extern "C" __global__ void split(PARAMETERS) {
    PERMIT;
    long long start = clock64();
    while (clock64() - start < 10000ll) {}
    EACH ws[i] = 2.0f * A[i];
}
extern "C" __global__ void reduce(PARAMETERS) { WAIT; EACH C[i] = ws[i] + 1.0f; }
extern "C" __global__ void late(PARAMETERS) {
    long long start = clock64();
    while (clock64() - start < 200000000ll) {}
    EACH C[i] = 2.0f * A[i];
}
struct alignas(64) Map { unsigned long long words[16]; };
extern "C" __global__ void maps(PARAMETERS, const __grid_constant__ Map a,
                                const __grid_constant__ Map b) {
    unsigned i = threadIdx.x;
    if (i < 32) ((unsigned long long*)C)[i] = i < 16 ? a.words[i] : b.words[i - 16];
}
extern "C" __global__ void shared(PARAMETERS) {
    extern __shared__ float s[];
    unsigned last = chunk / 4 - 1;
    if (threadIdx.x == 0) { s[last] = A[0]; C[0] = s[last]; }
}
"""


@functools.cache
def cubin(arch):
    from cuda.bindings import nvrtc

    def call(function, *args):
        status, *results = function(*args)
        assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, status
        return results[0] if results else None

    program = call(nvrtc.nvrtcCreateProgram, SOURCE.encode(), b"k.cu", 0, [], [])
    call(nvrtc.nvrtcCompileProgram, program, 1, [f"--gpu-architecture={arch}".encode()])
    image = bytearray(call(nvrtc.nvrtcGetCUBINSize, program))
    call(nvrtc.nvrtcGetCUBIN, program, image)
    return bytes(image)


LAYOUT = struct.Struct("<5Q3q5I")
"""a, b, bias, c, workspace; lda, ldb, ldc; m, n, k, chunk, flags: what the kernels above take."""


def prepare(symbol, size, device=None, pointers=4, shared_bytes=0, threads=256, ahead=False):
    device = device or GPUS[0]
    function = device.kernel(symbol, cubin, shared_bytes)
    packed = LAYOUT.pack(0, 0, 0, 0, 0, 0, 0, 0, size, 0, 0, shared_bytes, 0)
    params = Parameters(packed, (*range(pointers), None)[:5])
    grid = (-(-size // 256), 1, 1)
    block, what = (threads, 1, 1), f"M={size}"
    return device.prepare(function, grid, block, params, pointers, what, programmatic=ahead)


def pair(size, device=None, nbytes=None):
    device = device or GPUS[0]
    ahead = device.compute >= (9, 0)
    steps = (
        prepare("split", size, device, pointers=5),
        prepare("reduce", size, device, pointers=5, ahead=ahead),
    )
    return ScratchLaunch(device, steps, (nbytes or 4 * size,))


def twice(stream=None, out=None, **operands):
    """2 x (+ bias[0]) as a library op would do it, the careful way."""
    call = Call(operands, stream)
    written = None if out is None else call.target(out, "out")
    call.stage()
    views = {n: call.upload(v) for n, v in call.views.items()} if call.host else call.views
    x, bias = views["x"], views["bias"].ptr if "bias" in views else 0
    if written is None:
        target = Results(call, x.shape, "float32")
    else:
        target = call.fresh(written) if call.host else written
    prepare("twice", x.size, call.device).fire(call.stream, x.ptr, 0, bias, target.ptr)
    if written is None:
        out = target.give(x.shape, contiguous_strides(x.shape), 0)
    elif call.host:
        call.download(target, written)
    call.hold()
    return out


def numbers(size=1000):
    return np.random.default_rng(7).standard_normal(size).astype(np.float32)


def same_bits(got, expected):
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    assert got.tobytes() == expected.tobytes()


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


class Cai:
    def __init__(self, tensor, **changes):
        self.tensor = tensor
        self.__cuda_array_interface__ = {**tensor.__cuda_array_interface__, **changes}


# -- devices ----------------------------------------------------------------------------


def test_device_matches_torch(torch):
    device, properties = GPUS[0], torch.cuda.get_device_properties(0)
    assert device is get_device("cuda") is get_device("cuda:0")
    assert device.compute == (properties.major, properties.minor)
    assert device.sms == properties.multi_processor_count
    assert device.name == properties.name
    assert device.max_shared == properties.shared_memory_per_block_optin
    assert len(GPUS) == torch.cuda.device_count()


def test_the_context_is_the_one_of_the_cuda_runtime(torch):
    torch.zeros(1, device="cuda:0")
    cu = cuda.driver()
    assert int(cu.cuCtxGetCurrent()[1]) == GPUS[0].context
    with GPUS[0].current():
        assert int(cu.cuCtxGetCurrent()[1]) == GPUS[0].context


def test_a_thread_without_context_is_served_and_keeps_the_first_gpus():
    x = numbers()
    device = GPUS[0]
    a, c = device.alloc(x.nbytes), device.alloc(x.nbytes)
    got = np.empty_like(x)
    launch = prepare("twice", x.size)
    box = TensorBox(0, 0, 2, (64, 9, 3), (128, 1280), (64, 8, 2), 128, (1, 2, 1))
    contexts, maps = [], [device.tensor_map(box, a)]

    def work():
        contexts.append(int(cuda.driver().cuCtxGetCurrent()[1]))
        maps.append(device.tensor_map(box, a))
        device.copy_in(a, x.ctypes.data, x.nbytes)
        launch.fire(0, a, 0, 0, c)
        device.copy_out(got.ctypes.data, c, x.nbytes)
        device.synchronize(0)
        contexts.append(int(cuda.driver().cuCtxGetCurrent()[1]))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert contexts == [0, device.context]
    assert maps[0] == maps[1]
    same_bits(got, 2 * x)
    device.free(a)
    device.free(c)


def test_memset_and_copies():
    device = GPUS[0]
    ptr = device.alloc(1000)
    assert ptr % 256 == 0
    got = np.zeros(1000, np.uint8)
    device.memset(ptr, 0x5A, 1000)
    device.memset(ptr + 10, 1, 10)
    device.copy_out(got.ctypes.data, ptr, 1000)
    device.synchronize()
    assert (got[:10] == 0x5A).all()
    assert (got[10:20] == 1).all()
    assert (got[20:] == 0x5A).all()
    device.free(ptr)


def test_shared_memory_beyond_48_kib(torch):
    device = GPUS[0]
    x, y = torch.full((1,), 3.0, device="cuda:0"), torch.zeros(1, device="cuda:0")
    launch = prepare("shared", 1, shared_bytes=device.max_shared)
    launch.fire(torch_current(0), x.data_ptr(), 0, 0, y.data_ptr())
    assert y.item() == 3.0
    with pytest.raises(DeviceError, match=rf"allows {device.max_shared}"):
        device.load(cubin(device.arch), "shared", device.max_shared + 1)


# -- errors -----------------------------------------------------------------------------


def test_refused_launches_name_kernel_and_problem(torch):
    x = torch.zeros(1000, device="cuda:0")
    pattern = r"launching twice for M=1000 on cuda:0 failed: CUDA_ERROR_INVALID_VALUE \(invalid arg"
    with pytest.raises(DeviceError, match=pattern):
        prepare("twice", 1000, threads=2048).fire(0, x.data_ptr(), 0, 0, x.data_ptr())
    same_bits(twice(x=x).cpu(), np.zeros(1000, np.float32))  # nothing is broken


def test_bad_images_and_symbols():
    with pytest.raises(DeviceError, match=r"loading k on cuda:0 \(sm_\w+\) failed: CUDA_ERROR_"):
        GPUS[0].load(b"garbage\0", "k")
    with pytest.raises(DeviceError, match=r"kernel nothing .* CUDA_ERROR_NOT_FOUND"):
        GPUS[0].load(cubin(GPUS[0].arch), "nothing")


def test_host_pointers_are_no_device_memory():
    with pytest.raises(DeviceError, match="finding the GPU of"):
        cuda.pointer_device(numbers().ctypes.data)


# -- frameworks -------------------------------------------------------------------------


def test_torch(torch):
    x = torch.from_numpy(numbers()).cuda()
    bias = torch.full((1,), 0.5, device="cuda:0")
    same_bits(twice(x=x).cpu(), 2 * numbers())
    same_bits(twice(x=x, bias=bias).cpu(), 2 * numbers() + np.float32(0.5))
    out = torch.full_like(x, float("nan"))
    assert twice(x=x, out=out) is out
    same_bits(out.cpu(), 2 * numbers())
    parameter = torch.nn.Parameter(x)
    result = twice(x=parameter)
    assert not result.requires_grad
    same_bits(result.cpu(), 2 * numbers())


def test_torch_views_and_refusals(torch):
    x = torch.zeros(8, 6, device="cuda:0")
    found = view(x[1::2, :3].T, "x")
    assert (found.ptr, found.shape, found.strides) == (x.data_ptr() + 24, (3, 4), (1, 12))
    floats = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")
    for dtype in (*floats, "bool", "complex64", "complex128"):
        assert view(x.to(getattr(torch, dtype)), "x").dtype == dtype
    for bad, error, message in (
        (x.to(torch.complex32), DtypeError, "x: dtype complex32"),
        (x.to(torch.complex64).conj(), ShapeError, "x is a lazily conjugated"),
        (x.to_sparse(), ShapeError, r"x .* pass x.to_dense\(\)"),
        (x.to("meta"), DeviceError, "x is a torch tensor on meta"),
        (x.to(torch.complex64).conj().imag, ShapeError, "x is a lazily negated"),
    ):
        with pytest.raises(error, match=message):
            view(bad, "x")
    with pytest.raises(DeviceError, match=r"x is in cuda:0, bias in host memory"):
        twice(x=x, bias=torch.zeros(1))
    with pytest.raises(DeviceError, match=r"x is a CPU torch tensor"):
        twice(x=torch.zeros(8))
    with pytest.raises(ShapeError, match="out shares memory with x"):
        twice(x=x, out=x)


def test_numpy():
    x = numbers().reshape(10, 100)
    same_bits(twice(x=x), 2 * x)
    same_bits(twice(x=x[::-1, ::3]), 2 * x[::-1, ::3])
    out = np.full((10, 200), np.nan, np.float32)
    twice(x=x, out=out[:, ::2])
    same_bits(np.ascontiguousarray(out[:, ::2]), 2 * x)
    assert np.isnan(out[:, 1::2]).all()


def test_cupy():
    cupy = pytest.importorskip("cupy")
    x = cupy.asarray(numbers())
    result = twice(x=x)
    assert type(result) is cupy.ndarray
    same_bits(result.get(), 2 * numbers())
    side = cupy.cuda.Stream(non_blocking=True)
    with side:
        y = twice(x=cupy.asarray(numbers()) + cupy.float32(1))
        same_bits(y.get(), 2 * (numbers() + np.float32(1)))
    z = twice(x=x, stream=side)
    side.synchronize()
    same_bits(z.get(), 2 * numbers())
    assert view(x.reshape(10, 100)[::2, 3:].T, "x").strides == (1, 200)


def test_jax():
    jax = pytest.importorskip("jax")
    if jax.default_backend() not in ("gpu", "cuda"):
        pytest.skip("this JAX has no GPU backend")
    x = jax.numpy.asarray(numbers())
    for _ in range(20):
        result = twice(x=x + 1)  # the operand dies at once; the result is used at once
        assert isinstance(result, jax.Array)
        same_bits(result + 1, 2 * (numbers() + np.float32(1)) + np.float32(1))
    with pytest.raises(ShapeError, match="out is a JAX array, which is immutable"):
        twice(x=x, out=x + 0)
    with pytest.raises(DeviceError, match="x is being traced by JAX"):
        jax.jit(lambda a: twice(x=a))(x)
    assert view(x.astype(jax.numpy.bfloat16), "x").dtype == "bfloat16"


def test_raw_cuda_array_interface(torch):
    x = torch.from_numpy(numbers()).cuda()
    result = twice(x=Cai(x))
    assert type(result) is DeviceArray
    same_bits(torch.as_tensor(result, device="cuda").cpu(), 2 * numbers())
    out = torch.empty_like(x)
    raw = Cai(out)
    assert twice(x=Cai(x), out=raw) is raw
    same_bits(out.cpu(), 2 * numbers())
    readonly = Cai(out, data=(out.data_ptr(), True))
    with pytest.raises(ShapeError, match="out is read-only"):
        twice(x=Cai(x), out=readonly)


def test_the_stream_of_a_cuda_array_interface_is_waited_for(torch):
    side = torch.cuda.Stream()
    x = torch.zeros(1000, device="cuda:0")
    source = torch.from_numpy(numbers()).cuda()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        x.copy_(source)
    result = twice(x=Cai(x, version=3, stream=side.cuda_stream))
    same_bits(torch.as_tensor(result, device="cuda").cpu(), 2 * numbers())


def test_dlpack_both_ways(torch):
    class Only:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

        def __dlpack__(self, **options):
            return self.tensor.__dlpack__(**options)

    x = torch.from_numpy(numbers()).cuda()
    result = twice(x=Only(x))
    assert type(result) is DeviceArray
    imported = torch.from_dlpack(result)
    assert imported.data_ptr() == result.ptr
    del result
    gc.collect()
    same_bits(imported.cpu(), 2 * numbers())
    out = torch.empty_like(x)
    twice(x=Only(x), out=Only(out))
    torch.cuda.synchronize()
    same_bits(out.cpu(), 2 * numbers())


# -- streams ----------------------------------------------------------------------------


def test_work_goes_to_torchs_current_stream(torch):
    side = torch.cuda.Stream()
    source = torch.from_numpy(numbers()).cuda()
    x = torch.zeros(1000, device="cuda:0")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        x.copy_(source)
        y = twice(x=x)  # any other stream would read zeros
        z = y + 0
    side.synchronize()
    same_bits(z.cpu(), 2 * numbers())


@pytest.mark.parametrize("kind", ["int", "object", "protocol"])
def test_explicit_streams(torch, kind):
    side = torch.cuda.Stream()
    source = torch.from_numpy(numbers()).cuda()
    x = torch.zeros(1000, device="cuda:0")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        x.copy_(source)

    class Protocol:
        def __cuda_stream__(self):
            return 0, side.cuda_stream

    stream = {"int": side.cuda_stream, "object": side, "protocol": Protocol()}[kind]
    y = twice(x=x, stream=stream)
    side.synchronize()
    same_bits(y.cpu(), 2 * numbers())


def test_nothing_waits_for_the_gpu(torch):
    x = torch.from_numpy(numbers()).cuda()
    y = torch.empty_like(x)
    late, both = prepare("late", 1000), pair(1000)
    both.fire(torch_current(0), x.data_ptr(), 0, 0, y.data_ptr())
    twice(x=x)  # a first launch may wait, because it loads
    torch.cuda.synchronize()
    done = torch.cuda.Event()
    late.fire(torch_current(0), x.data_ptr(), 0, 0, y.data_ptr())
    twice(x=x)
    both.fire(torch_current(0), x.data_ptr(), 0, 0, y.data_ptr())
    done.record()
    assert not done.query()  # the late kernel spins for 0.1 s
    torch.cuda.synchronize()
    same_bits(y.cpu(), 2 * numbers() + np.float32(1))


def test_a_thread_without_a_context_moves_tensor_maps(torch):
    import ptxgen

    kernel = "wgmma_nt_bf16_"
    x = torch.randn(3, 256, 64, device="cuda").bfloat16()
    w = torch.randn(256, 64, device="cuda").bfloat16()
    names = [c.name for c in explain_linear(ptxgen) if c.correct and c.name.startswith(kernel)]
    outs = torch.full((3, 256, 256), torch.nan, device="cuda", dtype=torch.bfloat16)
    call = functools.partial(ptxgen.linear, layout="nk", kernel=names[0])
    call(x[0], w, out=outs[0])
    failures = []

    def work():
        try:
            call(x[1], w, out=outs[1])  # the prepared launch, of other addresses
        except DeviceError as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failures
    assert torch.equal(outs[1], call(x[1], w))


def explain_linear(ptxgen):
    found = ptxgen.explain("linear", 256, 256, 64, dtype="bfloat16", layout="nk")
    return found.candidates


def test_threads_on_their_own_streams_and_on_one(torch):
    launch, both = prepare("twice", 1000), pair(1000)
    shared = torch.cuda.Stream()
    failures = []

    def work(n):
        torch.cuda.set_device(0)
        with torch.cuda.stream(shared if n % 2 else torch.cuda.Stream()):
            stream = torch_current(0)
            x = torch.full((1000,), float(n), device="cuda:0")
            outs = [torch.empty_like(x) for _ in range(400)]
            for i, out in enumerate(outs):
                (both if i % 2 else launch).fire(stream, x.data_ptr(), 0, 0, out.data_ptr())
            torch.cuda.current_stream().synchronize()
            for i, out in enumerate(outs):
                if not (out == 2 * n + i % 2).all():
                    failures.append((n, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_tensor_maps_move_with_the_pointers(torch):
    device = GPUS[0]
    boxes = (
        TensorBox(0, 128, 2, (64, 9), (128,), (64, 8), 128),
        TensorBox(1, 256, 2, (8, 4), (16,), (8, 8), 0),
    )
    packed = LAYOUT.pack(*[0] * 13).ljust(384, b"\0")
    plain = tuple(range(0, 64, 8)) + tuple(range(64, 84, 4))  # where what is no map lies
    params = Parameters(packed, (0, 1, 2, 3, None), plain, boxes)
    function = device.kernel("maps", cubin)
    launch = device.prepare(function, (1, 1, 1), (32, 1, 1), params, 4, "maps")
    failures, done = [], []

    def work(n):
        torch.cuda.set_device(0)
        memory = torch.zeros(1 << 20, dtype=torch.uint8, device="cuda:0")
        outs = [torch.empty(2 * MAP_BYTES, dtype=torch.uint8, device="cuda:0") for _ in range(100)]
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
            for i, out in enumerate(outs):
                a, b = (memory.data_ptr() + 16 * (i * step % 997 + n) for step in (7, 0))
                launch.fire(torch_current(0), a, b, 0, out.data_ptr())
                done.append(out)
            torch.cuda.current_stream().synchronize()
        for i, out in enumerate(outs):
            a, b = (memory.data_ptr() + 16 * (i * step % 997 + n) for step in (7, 0))
            expected = device.tensor_map(boxes[0], a) + device.tensor_map(boxes[1], b)
            if bytes(out.cpu().numpy()) != expected:
                failures.append((n, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert len(done) == 400
    with pytest.raises(DeviceError, match="tensor map"):
        launch.fire(0, 8, 16, 0, 0)  # off 16 bytes


# -- graphs -----------------------------------------------------------------------------


def test_capture_with_scratch_that_must_grow_and_a_kernel_not_yet_loaded(torch):
    device = GPUS[0]
    x = torch.from_numpy(numbers()).cuda()
    y, z = torch.empty_like(x), torch.empty_like(x)
    held = device.workspace.nbytes
    fresh = device._functions.pop("twice", None)
    del fresh
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        small, big = pair(1000), pair(1000, nbytes=3 * SMALLEST)
        stream = torch_current(0)
        small.fire(stream, x.data_ptr(), 0, 0, y.data_ptr())
        big.fire(stream, y.data_ptr(), 0, 0, z.data_ptr())
        w = twice(x=z)
    assert device.workspace.nbytes == held + 4 * SMALLEST
    eager = torch.empty_like(x)
    for shift in (0.0, 1.0, 2.0):
        x.copy_(torch.from_numpy(numbers() + np.float32(shift)))
        graph.replay()
        small.fire(torch_current(0), x.data_ptr(), 0, 0, eager.data_ptr())
        one = 2 * (numbers() + np.float32(shift)) + np.float32(1)
        same_bits(eager.cpu(), one)
        same_bits(y.cpu(), one)
        same_bits(z.cpu(), 2 * one + np.float32(1))
        same_bits(w.cpu(), 2 * (2 * one + np.float32(1)))


def test_graphs_and_eager_work_have_scratch_of_their_own(torch):
    device = GPUS[0]
    side = torch.cuda.Stream()
    lanes = [device.lane(side.cuda_stream)]
    x = torch.zeros(1000, device="cuda:0")
    for _ in range(2):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            assert torch_current(0) == side.cuda_stream
            lanes.append(device.lane(side.cuda_stream))
            x.add_(1)
    assert len(set(lanes)) == 3
    assert device.lane(side.cuda_stream) == lanes[0]
    assert device.lane(0) != lanes[0]


def test_a_programmatic_launch_overlaps_and_still_sees_everything(torch):
    if GPUS[0].compute < (9, 0):
        pytest.skip("needs compute capability 9.0")
    both, size = pair(1 << 20), 1 << 20
    x = torch.zeros(size, device="cuda:0")
    outs = [torch.empty_like(x) for _ in range(64)]
    graph = torch.cuda.CUDAGraph()

    def work():
        for out in outs:  # each reads what the one before has left
            both.fire(torch_current(0), x.data_ptr(), 0, 0, out.data_ptr())
            both.fire(torch_current(0), out.data_ptr(), 0, 0, out.data_ptr())
            x.add_(1)

    def check(start):
        for i, out in enumerate(outs):
            assert (out == 4 * (start + i) + 3).all()

    work()
    check(0)
    with torch.cuda.graph(graph):
        work()
    for replay in range(1, 4):
        graph.replay()
        check(64 * replay)


# -- several GPUs -------------------------------------------------------------------------


@pytest.mark.skipif(len(GPUS) < 2, reason="needs two GPUs")
def test_two_gpus(torch):
    x0, x1 = (torch.from_numpy(numbers()).to(f"cuda:{i}") for i in range(2))
    for current in range(2):
        with torch.cuda.device(current):
            for i, x in enumerate((x0, x1)):
                y = twice(x=x)
                assert y.device.index == i
                same_bits(y.cpu(), 2 * numbers())
                out = torch.empty_like(x)
                torch.cuda.synchronize(i)
                pair(1000, GPUS[i]).fire(torch_current(i), x.data_ptr(), 0, 0, out.data_ptr())
                torch.cuda.synchronize(i)
                same_bits(out.cpu(), 2 * numbers() + np.float32(1))
            assert torch.cuda.current_device() == current
            assert int(cuda.driver().cuCtxGetCurrent()[1]) == GPUS[current].context
    with pytest.raises(DeviceError, match="x is in cuda:0, bias in cuda:1"):
        twice(x=x0, bias=x1)
    with use_device("cuda:1"):
        same_bits(twice(x=numbers()), 2 * numbers())
        assert twice(x=x0).device.index == 0
    assert cuda.pointer_device(x1.data_ptr()) == 1


# -- host cost ---------------------------------------------------------------------------------


def test_firing_again_builds_nothing(torch):
    """A launch's block is packed once, and taken from its shelf and put back by each firing."""
    x = torch.from_numpy(numbers()).to("cuda:0")
    y = torch.empty_like(x)
    launch = prepare("twice", len(numbers()))
    (block,) = launch._idle
    stream = torch_current(0)
    for _ in range(50):
        launch.fire(stream, x.data_ptr(), 0, 0, y.data_ptr())
        assert len(launch._idle) == 1 and launch._idle[0] is block
    same_bits(y.cpu(), 2 * numbers())
