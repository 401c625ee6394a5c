"""Reading arrays of any framework, and whole calls on a fake device."""

import ctypes
import gc
import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from ml_dtypes import bfloat16
from runtime_fakes import FakeDevice, fake_torch

from ptxgen.errors import DeviceError, DtypeError, OptionError, ShapeError
from ptxgen.numerics.dtype import BYTES
from ptxgen.runtime import arrays, dlpack
from ptxgen.runtime import registry as device
from ptxgen.runtime.arrays import ArrayView, DeviceArray, framework_of, view
from ptxgen.runtime.call import Call, Results
from ptxgen.runtime.registry import use_device
from ptxgen.runtime.stream import resolve
from ptxgen.runtime.strided import contiguous_strides


@pytest.fixture
def gpu(monkeypatch):
    """A fake device that answers to "cuda" and is the default."""
    fake = FakeDevice("cuda"), FakeDevice("cuda", 1)
    monkeypatch.setattr(device, "_kinds", dict(device._kinds))
    monkeypatch.setattr(device, "_process_default", None)
    device.register("cuda", lambda: fake)
    monkeypatch.setattr(arrays, "_cuda_index", lambda ptr: 0)
    return fake[0]


@pytest.fixture
def torch(monkeypatch):
    module = fake_torch()
    monkeypatch.setitem(sys.modules, "torch", module)
    arrays._framework_of_type.cache_clear()
    yield module
    arrays._framework_of_type.cache_clear()


class Cai:
    """An object with nothing but ``__cuda_array_interface__``."""

    def __init__(self, array, **changes):
        self.array = array
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "strides": None,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
            **changes,
        }


class Capsule:
    """A DLPack producer on top of a NumPy array, with its device renamed."""

    def __init__(self, array, where=(dlpack.CPU, 0), legacy=False, readonly=False, code=None):
        self.array, self.where, self.legacy, self.readonly = array, where, legacy, readonly
        self.code, self.asked = code, []

    def __dlpack_device__(self):
        return self.where

    def __dlpack__(self, stream=None, **options):
        if self.legacy and options:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.asked.append(stream)
        capsule = dlpack.export(
            self,
            self.array.ctypes.data,
            self.array.shape,
            self.array.dtype.name,
            self.where,
            versioned=not self.legacy,
            readonly=self.readonly,
        )
        if self.code is not None:
            name, kind = (
                (dlpack._PLAIN, dlpack._Managed)
                if self.legacy
                else (dlpack._VERSIONED, dlpack._Versioned)
            )
            tensor = kind.from_address(dlpack._pointer(capsule, name)).tensor
            tensor.code, tensor.bits = self.code
        return capsule


def x(*shape, dtype=np.float32):
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


# -- NumPy ----------------------------------------------------------------------------


def test_numpy_view():
    a = x(6, 4)[1::2, :3]
    found = view(a, "x")
    assert (found.shape, found.strides, found.dtype) == ((3, 3), (8, 1), "float32")
    assert (found.kind, found.where, found.framework) == ("host", "host memory", "numpy")
    assert (found.ptr, found.readonly, found.owner is a) == (a.ctypes.data, False, True)
    assert (found.size, found.nbytes, found.itemsize) == (9, 36, 4)


@pytest.mark.parametrize("dtype", [n for n in BYTES if not n.startswith(("b", "float8"))])
def test_numpy_dtype_names_and_sizes(dtype):
    a = np.zeros(3, dtype)
    assert view(a, "x").dtype == dtype
    assert BYTES[dtype] == a.itemsize


@pytest.mark.parametrize(
    ("a", "message"),
    [
        (
            np.zeros(2, np.longdouble),
            "x: dtype (longdouble|float128) is not supported; takes float16",
        ),
        (np.zeros(2, np.clongdouble), "x: dtype (clongdouble|complex256) is not supported"),
        (np.zeros(2, ">f4"), "x: dtype >f4 is not in native byte order"),
        (np.ma.zeros(2), "x is a NumPy MaskedArray; takes a plain array"),
        (np.dtype("f4"), "x is a numpy.dtypes.Float32DType; takes an array"),
        ([1.0, 2.0], "x is a builtins.list; takes an array"),
        (3.0, "x is a builtins.float; takes an array"),
        (None, "x is a builtins.NoneType; takes an array"),
    ],
)
def test_what_is_no_array_or_dtype_is_refused_by_name(a, message):
    with pytest.raises(DtypeError, match=message):
        view(a, "x")


def test_numpy_readonly_and_subclasses():
    a = x(2, 2)
    a.flags.writeable = False
    assert view(a, "x").readonly

    class Mine(np.ndarray):
        pass

    assert framework_of(x(2).view(Mine)) == "numpy"


def test_strides_that_are_no_whole_elements_are_refused():
    records = np.zeros(4, np.dtype([("a", "f4"), ("b", "i2")]))
    with pytest.raises(ShapeError, match=r"x has byte strides \[6\].*4-byte.*contiguous copy of x"):
        view(records["a"], "x")


# -- __cuda_array_interface__ -----------------------------------------------------------


def test_cai_view(gpu):
    a = x(3, 5)
    found = view(Cai(a, data=(a.ctypes.data, True), stream=9), "x")
    assert (found.shape, found.strides, found.kind, found.index) == ((3, 5), (5, 1), "cuda", 0)
    assert (found.readonly, found.after, found.framework) == (True, 9, "cai")
    assert view(Cai(a, strides=(4, 12)), "x").strides == (1, 3)
    assert view(Cai(a, version=2), "x").after is None
    assert view(Cai(a, strides=(-20, 4)), "x").strides == (-5, 1)


def test_cai_asks_the_driver_for_the_device_unless_empty(monkeypatch):
    monkeypatch.setattr(arrays, "_cuda_index", lambda ptr: 3)
    assert view(Cai(x(2)), "x").index == 3
    assert view(Cai(x(0), data=(0, False)), "x").index == 0
    assert view(Cai(x(0), data=(None, False)), "x").ptr == 0


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"mask": object()}, DtypeError, "x is masked"),
        ({"stream": 0}, DeviceError, "x: stream 0 .* not allowed"),
        ({"typestr": "<c32"}, DtypeError, "x: dtype '<c32'"),
        ({"typestr": ">f4"}, DtypeError, "x: dtype '>f4'.*little-endian"),
        ({"strides": (20, 2)}, ShapeError, r"x has byte strides \[20, 2\]"),
    ],
)
def test_cai_refusals(gpu, changes, error, message):
    with pytest.raises(error, match=message):
        view(Cai(x(3, 5), **changes), "x")


# -- DLPack -----------------------------------------------------------------------------


class DlpackOnly:
    """NumPy's own capsules, without NumPy's type."""

    def __init__(self, a):
        self.__dlpack__, self.__dlpack_device__ = a.__dlpack__, a.__dlpack_device__

    def __dlpack__(self, **options):  # replaced on the instance; marks the type
        raise NotImplementedError


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64", "int32"])
def test_numpys_capsules_are_read_like_numpy_itself(dtype):
    a = x(6, 4, dtype=dtype)[1::2, ::2]
    mine, theirs = view(DlpackOnly(a), "x"), view(a, "x")
    assert (mine.ptr, mine.shape, mine.strides, mine.dtype, mine.kind) == (
        theirs.ptr,
        theirs.shape,
        theirs.strides,
        theirs.dtype,
        theirs.kind,
    )
    assert mine.framework == "dlpack"


VERSIONED = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
"""Whether NumPy exports and reads DLPack 1.0 capsules, which have a read-only flag."""


@pytest.mark.skipif(not VERSIONED, reason="this NumPy exports no read-only capsule")
def test_numpys_readonly_capsules():
    a = x(2, 2)
    a.flags.writeable = False
    assert view(DlpackOnly(a), "x").readonly


@pytest.mark.parametrize("legacy", [False, True])
def test_dlpack_view_keeps_the_producer_alive_and_calls_the_deleter_once(legacy):
    held = len(dlpack._alive)
    found = view(Capsule(x(2, 3), legacy=legacy), "x")
    gc.collect()
    assert len(dlpack._alive) == held + 1
    assert ctypes.c_float.from_address(found.ptr + 20).value == 5.0
    assert (found.shape, found.strides, found.readonly) == ((2, 3), (3, 1), False)
    del found
    gc.collect()
    assert len(dlpack._alive) == held


@pytest.mark.parametrize("legacy", [False, True] if VERSIONED else [True])
def test_exported_capsules_satisfy_numpy_and_are_released_by_it(legacy):
    held = len(dlpack._alive)
    a = x(2, 3)
    b = np.from_dlpack(Capsule(a, legacy=legacy))
    assert b.ctypes.data == a.ctypes.data
    np.testing.assert_array_equal(a, b)
    assert len(dlpack._alive) == held + 1
    del b
    gc.collect()
    assert len(dlpack._alive) == held


def test_dlpack_flags_streams_and_old_producers():
    assert view(Capsule(x(2), readonly=True), "x").readonly
    producer = Capsule(x(2), where=(dlpack.CUDA, 1))
    found = view(producer, "x", stream=0)
    assert (found.kind, found.index) == ("cuda", 1)
    view(producer, "x", stream=77)
    assert producer.asked == [1, 77]  # 1 is DLPack's name for the legacy default stream
    host = Capsule(x(2))
    view(host, "x", stream=77)
    assert host.asked == [None]


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize(
    ("code", "dtype"), [((4, 16), "bfloat16"), ((10, 8), "float8_e4m3fn"), ((12, 8), "float8_e5m2")]
)
def test_dlpack_names_dtypes_that_numpy_lacks(code, dtype, legacy):
    assert view(Capsule(x(2, dtype=np.int16), code=code, legacy=legacy), "x").dtype == dtype


@pytest.mark.parametrize(
    ("producer", "error", "message"),
    [
        (Capsule(x(2), code=(5, 32)), DtypeError, "x: dtype complex of 32 bits"),
        (Capsule(x(2), where=(10, 0)), DeviceError, "x lies on DLPack device type 10"),
    ],
)
def test_dlpack_refusals(producer, error, message):
    with pytest.raises(error, match=message):
        view(producer, "x")


def test_a_capsule_that_was_used_is_refused():
    capsule = x(2).__dlpack__()
    np.from_dlpack(Reused(capsule))
    with pytest.raises(DtypeError, match=r"x: __dlpack__ returned .* no unused DLPack capsule"):
        dlpack.read(capsule, "x")


class Reused:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **options):
        return self.capsule


# -- our own arrays -----------------------------------------------------------------------


def test_device_array_round_trip_and_freeing(gpu):
    ours = DeviceArray(gpu, (2, 3), "float32", stream=5)
    found = view(ours, "x")
    assert (found.ptr, found.shape, found.strides) == (ours.ptr, (2, 3), (3, 1))
    assert (found.framework, found.where, found.after) == ("ptxgen", "cuda:0", 5)
    del found
    assert ours.__cuda_array_interface__["stream"] == 5
    assert ours.__cuda_array_interface__["typestr"] == "<f4"
    assert DeviceArray(gpu, (2,), "float32").__cuda_array_interface__["stream"] == 1
    capsule = ours.__dlpack__(stream=8, max_version=(1, 0))
    assert gpu.events("order") == [("order", 8, 5)]
    ptr = ours.ptr
    del ours
    gc.collect()
    assert ptr in gpu.memory  # the capsule holds it
    del capsule
    gc.collect()
    assert ptr not in gpu.memory
    assert not gpu.memory


def test_device_array_says_what_its_interfaces_cannot(gpu):
    ours = DeviceArray(gpu, (2,), "bfloat16")
    assert not hasattr(ours, "__cuda_array_interface__")
    assert dlpack.read(ours.__dlpack__(stream=-1), "x").dtype == "bfloat16"
    assert not gpu.events("order")
    with pytest.raises(BufferError, match="without copying"):
        ours.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="own device"):
        ours.__dlpack__(dl_device=(1, 0))


# -- geometry -------------------------------------------------------------------------------


def at(ptr, shape, strides, dtype="float32", kind="cuda", index=0):
    return ArrayView(ptr, shape, strides, dtype, kind, index, False, "cai", None)


def touched(v):
    """The bytes of a view, one by one."""
    offsets = np.zeros((), dtype=np.int64)
    for size, stride in zip(v.shape, v.strides, strict=True):
        offsets = np.add.outer(offsets, np.arange(size) * stride)
    flat = v.ptr + offsets.ravel() * v.itemsize
    return [int(b) + i for b in flat for i in range(v.itemsize)]


def test_extents_are_exact_and_no_overlap_is_missed():
    seed = 20240607
    rng = random.Random(seed)
    shared = 0
    for trial in range(4000):
        pitch = rng.randint(1, 9)
        views = []
        for _ in range(2):
            shape = tuple(rng.randint(0 if rng.random() < 0.1 else 1, 5) for _ in range(2))
            row = pitch if rng.random() < 0.6 else rng.randint(-9, 9)
            inner = 1 if rng.random() < 0.7 else rng.randint(-3, 3)
            strides = (row, inner) if rng.random() < 0.8 else (inner, row)
            dtype = rng.choice(["float32", "float16"])
            views.append(at(1000 + 2 * rng.randint(0, 60), shape, strides, dtype))
        a, b = views
        message = f"seed {seed}, trial {trial}: {a}, {b}"
        bytes_a, bytes_b = touched(a), touched(b)
        if bytes_a:
            assert a.extent() == (min(bytes_a), max(bytes_a) + 1), message
        else:
            assert a.extent()[0] == a.extent()[1], message
        really = bool(set(bytes_a) & set(bytes_b))
        assert a.overlaps(b) or not really, message
        assert a.overlaps(b) == b.overlaps(a), message
        assert a.overlaps_itself() or len(set(bytes_a)) == len(bytes_a), message
        shared += really
    assert 500 < shared < 3500  # both outcomes were there to be found


def test_overlap_is_exact_for_column_ranges_of_one_buffer():
    for low in range(4):
        for high in range(low + 1, 6):
            for other_low in range(4):
                for other_high in range(other_low + 1, 6):
                    a = at(64 + 4 * low, (3, high - low), (6, 1))
                    b = at(64 + 24 + 4 * other_low, (2, other_high - other_low), (6, 1))
                    expected = low < other_high and other_low < high
                    assert a.overlaps(b) == b.overlaps(a) == expected, (a, b)


def test_overlap_corner_cases():
    left, right = at(0x1000, (8, 4), (8, 1)), at(0x1010, (8, 4), (8, 1))
    assert not left.overlaps(right)
    assert not right.overlaps(left)
    assert left.overlaps(at(0x100C, (8, 4), (8, 1)))
    assert not left.overlaps(at(0x1030, (1, 4), (1, 1)))  # one row, in the other columns
    assert not at(0x1000, (8, 4), (8, 1), index=1).overlaps(left)
    assert not at(0x1000, (4, 8), (1, 8)).overlaps(right)  # transposed


def test_self_overlap():
    assert at(0, (4, 4), (0, 1)).overlaps_itself()
    assert at(0, (4, 4), (3, 1)).overlaps_itself()
    assert not at(0, (4, 4), (1, 4)).overlaps_itself()
    assert not at(0, (1, 4), (0, 1)).overlaps_itself()
    assert not at(0, (0, 4), (0, 0)).overlaps_itself()


@pytest.mark.parametrize(
    ("shape", "strides", "rows"),
    [
        ((5, 7), (9, 1), ((5, 7), (9, 1))),
        ((7,), (1,), ((1, 7), (7, 1))),
        ((2, 3, 7), (21, 7, 1), ((6, 7), (7, 1))),
        ((2, 3, 7), (30, 10, 1), ((6, 7), (10, 1))),
        ((2, 1, 7), (30, 99, 1), ((2, 7), (30, 1))),
        ((1, 3, 7), (99, 10, 1), ((3, 7), (10, 1))),
        ((1, 1, 7), (5, 6, 1), ((1, 7), (7, 1))),
        ((0, 3, 7), (2, 11, 1), ((0, 7), (11, 1))),
        ((5, 1), (3, 8), ((5, 1), (3, 1))),
        ((7, 5), (1, 7), ((7, 5), (1, 7))),
    ],
)
def test_matrix_flattens_leading_dimensions(shape, strides, rows):
    found = at(64, shape, strides).matrix("x")
    assert (found.shape, found.strides, found.ptr) == (*rows, 64)


def test_matrix_refuses_what_no_single_stride_walks():
    with pytest.raises(
        ShapeError, match=r"x has shape \[2, 3, 7\] and strides \[40, 10, 1\].*copy"
    ):
        at(0, (2, 3, 7), (40, 10, 1)).matrix("x")
    with pytest.raises(ShapeError, match="x has no dimensions"):
        at(0, (), ()).matrix("x")


# -- torch ----------------------------------------------------------------------------------


def test_torch_view(torch, gpu):
    a = x(4, 6)[:, :3]
    tensor = torch.Parameter(a, "cuda:1")
    found = view(tensor, "x")
    assert (found.ptr, found.shape, found.strides) == (a.ctypes.data, (4, 3), (6, 1))
    assert (found.where, found.dtype, found.framework) == ("cuda:1", "float32", "torch")
    assert view(torch.Tensor(x(2), dtype="bfloat16"), "x").dtype == "bfloat16"


def test_torch_refusals(torch, gpu):
    def tensor(**changes):
        made = torch.Tensor(x(2, 2))
        vars(made).update(changes)
        return made

    cases = [
        (tensor(layout="sparse_coo"), ShapeError, r"x .* layout sparse_coo; pass x.to_dense\(\)"),
        (tensor(device=SimpleNamespace(type="meta")), DeviceError, "x is a torch tensor on"),
        (tensor(dtype="torch.complex32"), DtypeError, "x: dtype complex32 is not supported"),
        (tensor(dtype="torch.complex64", conjugated=True), ShapeError, "x is a lazily conjugated"),
        (tensor(negated=True), ShapeError, "x is a lazily negated"),
    ]
    for made, error, message in cases:
        with pytest.raises(error, match=message):
            view(made, "x")
    with pytest.raises(DtypeError, match="x is a torch"):
        view(type("Size", (tuple,), {"__module__": "torch"})((1, 2)), "x")


# -- streams ----------------------------------------------------------------------------------


class CudaStream:
    def __init__(self, handle, version=0):
        self.answer = version, handle

    def __cuda_stream__(self):
        return self.answer


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (None, 0),
        (0, 0),
        (1, 0),
        (2, 2),
        (0x7F00_0000_0000, 0x7F00_0000_0000),
        (CudaStream(12), 12),
        (SimpleNamespace(__cuda_stream__=(0, 13)), 13),
        (SimpleNamespace(cuda_stream=14, device_index=0), 14),
        (SimpleNamespace(ptr=15, device_id=-1), 15),
    ],
)
def test_explicit_streams(stream, handle):
    assert resolve(stream, [x(2)]) == handle


@pytest.mark.parametrize("stream", [-1, True, "0", 1.0, CudaStream(5, version=1)])
def test_what_is_no_stream_is_refused(stream):
    with pytest.raises(OptionError, match="stream"):
        resolve(stream, [])


def test_streams_of_torch(torch):
    tensor = torch.Tensor(x(2), "cuda:1")
    assert resolve(None, [tensor]) == 78
    assert resolve(None, [torch.Tensor(x(2), "cpu")]) == 0
    assert resolve(5, [tensor]) == 5
    torch._C = SimpleNamespace()  # a torch without the private function
    assert resolve(None, [tensor]) == 78
    with pytest.raises(DeviceError, match="stream= belongs to cuda:0, the operands are on cuda:1"):
        resolve(SimpleNamespace(cuda_stream=3, device_index=0), [tensor])


# -- whole calls ------------------------------------------------------------------------------


def run(call, out=None, read=False):
    """Doubles the first operand (or adds it to ``out``), as a kernel on the fake device would."""
    (source, *_), shape = call.views.values(), call.lead.shape
    written = None if out is None else call.target(out, "out")
    call.stage()
    if call.host:
        source = call.upload(source)
    if written is None:
        target = Results(call, shape, source.dtype)
    elif call.host:
        target = call.upload(written) if read else call.fresh(written)
    else:
        target = written
    kind = ctypes.c_float * max(source.size, 1)
    taken = np.frombuffer(kind.from_address(source.ptr), np.float32)[: source.size]
    put = np.frombuffer(kind.from_address(target.ptr), np.float32)[: source.size]
    put[:] = taken + (put if read else taken)
    if written is None:
        out = target.give(shape, contiguous_strides(shape), 0)
    elif call.host:
        call.download(target, written)
    call.hold()
    return out


def test_numpy_call_copies_in_and_out_and_waits(gpu):
    a = x(3, 4)
    call = Call({"x": a})
    result = run(call)
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, 2 * a)
    assert [e[0] for e in gpu.events("copy_in", "copy_out", "synchronize")] == [
        "copy_in",
        "copy_out",
        "synchronize",
    ]
    del call
    gc.collect()
    assert not gpu.memory


def test_numpy_call_takes_any_layout_and_fills_strided_out(gpu):
    a = x(4, 6)[::-1, ::2]
    buffer = np.full((4, 6), -1, np.float32)
    out = buffer[:, 1:4]
    assert run(Call({"x": a}), out) is out
    np.testing.assert_array_equal(out, 2 * a)
    assert (buffer[:, [0, 4, 5]] == -1).all()
    np.testing.assert_array_equal(run(Call({"x": a}), out, read=True), 3 * a)


def test_numpy_call_with_no_elements(gpu):
    result = run(Call({"x": x(0, 4)}))
    assert result.shape == (0, 4)
    assert result.dtype == np.float32


def test_host_arrays_go_to_the_default_device(gpu):
    other = FakeDevice("other")
    with use_device(other):
        call = Call({"x": x(2)})
        run(call)
    assert call.device is other
    assert other.events("copy_in")
    assert not gpu.log


def test_torch_call_works_on_torchs_stream_without_copies_or_waiting(torch, gpu):
    tensor = torch.Tensor(x(3, 4))
    call = Call({"x": tensor})
    assert (call.stream, call.device, call.host) == (77, gpu, False)
    result = run(call)
    assert type(result) is torch.Tensor
    np.testing.assert_array_equal(result.array, 2 * tensor.array)
    assert gpu.log == []


def test_numpy_keeps_its_dtype_object_and_says_what_it_cannot_make(gpu, monkeypatch):
    source = view(Capsule(x(2, dtype=np.int16), code=(4, 16)), "x")
    empty = np.empty

    def without_ml_dtypes(shape, dtype):
        if dtype == "bfloat16":
            raise TypeError("data type 'bfloat16' not understood")
        return empty(shape, dtype)

    monkeypatch.setattr(np, "empty", without_ml_dtypes)
    with pytest.raises(DtypeError, match=r"NumPy knows no dtype bfloat16; .* pass out="):
        arrays.host_empty(source, (2,), "bfloat16")
    assert arrays.host_empty(source, (2,), "float32").dtype == np.float32


def test_bfloat16_of_numpy(gpu):
    a = x(3, 8).astype(bfloat16)[:, ::2]
    found = view(a, "x")
    assert (found.dtype, found.itemsize, found.strides) == ("bfloat16", 2, (8, 2))
    call = Call({"x": a})
    source, target = call.upload(call.lead), Results(call, (3, 4), "bfloat16")
    ctypes.memmove(target.ptr, source.ptr, source.nbytes)
    result = target.give((3, 4), (4, 1), 0)
    assert result.dtype == a.dtype
    np.testing.assert_array_equal(result, a)
    part = target.give((3, 2), (4, 1), 2)
    assert part.base is not None
    np.testing.assert_array_equal(part, a[:, 2:])
    assert Call({"x": a}).target(np.zeros((3, 4), bfloat16), "out").dtype == "bfloat16"


def test_raw_cuda_arrays_get_our_own_and_wait_for_their_producer(gpu):
    a = x(3, 4)
    call = Call({"x": Cai(a, stream=9), "w": Cai(a)}, stream=4)
    result = run(call)
    assert type(result) is DeviceArray
    assert result.stream == 4
    assert gpu.events("order", "synchronize") == [("order", 4, 9)]


def test_dlpack_owners_are_held_until_the_work_is_done(gpu):
    held = len(dlpack._alive)
    run(Call({"x": Capsule(x(3, 4), where=(dlpack.CUDA, 0))}, stream=4))
    gc.collect()
    assert len(dlpack._alive) == held + 1
    gpu.unfinished.clear()
    gpu.retain(5, None)
    gc.collect()
    assert len(dlpack._alive) == held


def test_operands_on_two_devices_are_refused_by_name(torch, gpu):
    on_gpu, on_cpu = torch.Tensor(x(2)), torch.Tensor(x(2), "cpu")
    with pytest.raises(DeviceError, match="x is in cuda:0, w in host memory; move w to cuda:0"):
        Call({"x": on_gpu, "w": on_cpu})
    with pytest.raises(DeviceError, match="x is in host memory, w in cuda:0; move x to cuda:0"):
        Call({"x": x(2), "w": on_gpu})
    with pytest.raises(DeviceError, match="x is in cuda:0, w in cuda:1; all arguments"):
        Call({"x": on_gpu, "w": torch.Tensor(x(2), "cuda:1")})
    with pytest.raises(DeviceError, match=r"x is a CPU torch tensor .* pass x.cuda\(\)"):
        Call({"x": on_cpu})


def test_out_is_checked_before_anything_happens(torch, gpu, monkeypatch):
    monkeypatch.setitem(arrays._ROOTS, "fakejax", "jax")
    jax = type("ArrayImpl", (), {"__module__": "fakejax"})
    a = x(4, 8)
    readonly = x(4, 4)
    readonly.flags.writeable = False
    left = torch.Tensor(a[:, :4])
    cases = [
        (readonly, ShapeError, "out is read-only"),
        (np.lib.stride_tricks.as_strided(x(4), (4, 4), (0, 4)), ShapeError, "elements share"),
        (a[:, 2:6], ShapeError, "out shares memory with x"),
        (jax(), ShapeError, "out is a JAX array, which is immutable; leave out= away"),
        (torch.Tensor(x(4, 4)), DeviceError, "x is in host memory, out in cuda:0"),
        ("out", DtypeError, r"out is a builtins.str; takes an array"),
    ]
    for out, error, message in cases:
        with pytest.raises(error, match=message):
            Call({"x": a[:, :4]}).target(out, "out")
    assert gpu.log == []
    call = Call({"x": left})
    assert call.target(torch.Tensor(a[:, 4:]), "out").strides == (8, 1)  # two column ranges: fine
    with pytest.raises(ShapeError, match="second shares memory with out"):
        call.target(torch.Tensor(a[:, 5:7]), "second")
    assert call.target(left, "third", over=("x",)).coincides(call.lead)
    with pytest.raises(ShapeError, match="fourth shares memory with x"):
        Call({"x": left}).target(torch.Tensor(a[:, :3]), "fourth", over=("x",))
