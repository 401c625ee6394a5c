"""Devices, launches and scratch memory, with a fake device and a fake driver."""

import contextlib
import ctypes
import os
import struct
import subprocess
import sys
import threading
import time
import types
from types import MappingProxyType

import pytest
from runtime_fakes import FakeDevice, function

from ptxgen.errors import DeviceError, NoGpuError, OptionError
from ptxgen.runtime import cuda
from ptxgen.runtime import registry as device
from ptxgen.runtime.launch import Parameters, ScratchLaunch, TensorBox
from ptxgen.runtime.workspace import SMALLEST


@pytest.fixture
def fakes(monkeypatch):
    """Two devices of kind "fake"; the registry and the process default are restored."""
    monkeypatch.setattr(device, "_kinds", dict(device._kinds))
    monkeypatch.setattr(device, "_process_default", None)
    pair = FakeDevice(index=0), FakeDevice(index=1)
    device.register("fake", lambda: pair)
    return pair


def in_thread(work):
    results = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def bare_python(code):
    """Runs ``code`` in a fresh interpreter that sees no GPU."""
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    ).stdout


# -- registry -------------------------------------------------------------------------


def test_use_device_nests_and_restores(fakes):
    with device.use_device("fake:1") as inner:
        assert inner is fakes[1]
        assert device.default_device() is fakes[1]
        with device.use_device(fakes[0]):
            assert device.default_device() is fakes[0]
        assert device.default_device() is fakes[1]
    device.set_default_device("fake")
    assert device.default_device() is fakes[0]


def test_use_device_restores_after_an_exception_and_is_reentrant(fakes):
    device.set_default_device("fake")
    guard = device.use_device("fake:1")
    with pytest.raises(ZeroDivisionError), guard, guard:
        _ = 1 / 0
    assert device.default_device() is fakes[0]


def test_use_device_stays_in_its_thread_and_the_process_default_does_not(fakes):
    device.set_default_device("fake:0")
    with device.use_device("fake:1"):
        assert in_thread(device.default_device) is fakes[0]
        assert device.default_device() is fakes[1]


@pytest.mark.parametrize("spec", ["gpu", "fake:", "fake:-1", "fake:x", "fake:1:2", "", 3, None])
def test_unknown_devices_are_refused(fakes, spec):
    with pytest.raises(OptionError, match=r'takes a Device or one of "cuda", "cuda:<index>"'):
        device.use_device(spec)


def test_missing_index_says_how_many_there_are(fakes):
    with pytest.raises(DeviceError, match=r"no device fake:2; 2 of kind 'fake' exist"):
        device.get_device("fake:2")


def test_a_kind_is_opened_once_and_only_when_asked(fakes):
    opened = []
    device.register("other", lambda: opened.append(1) or [FakeDevice("other")])
    assert not opened
    assert device.get_device("other") is device.get_device("other:0")
    assert device.get_device("other") in device.devices()
    assert opened == [1]


def test_devices_leaves_out_kinds_that_this_machine_lacks(fakes):
    def factory():
        raise DeviceError("none here")

    device.register("cuda", factory)
    device.register("cpu", factory)
    assert device.devices() == fakes
    with pytest.raises(DeviceError, match="none here"):
        device.default_device()


def test_the_cpu_is_the_default_only_where_there_is_no_gpu(fakes):
    asked = []

    def none():
        asked.append(1)
        raise NoGpuError("no driver")

    def broken():
        raise DeviceError("the driver is broken")

    host = FakeDevice("cpu")
    device.register("cpu", lambda: [host])
    device.register("cuda", none)
    assert device.default_device() is host
    assert device.default_device() is host
    assert asked == [1]
    device.register("cuda", list)
    assert device.default_device() is host
    device.register("cuda", broken)
    with pytest.raises(DeviceError, match="broken"):
        device.default_device()
    gpu = FakeDevice("cuda")
    device.register("cuda", lambda: [gpu])
    assert device.default_device() is gpu


@pytest.mark.parametrize(
    ("compute", "arch"),
    [((8, 0), "sm_80"), ((8, 9), "sm_89"), ((9, 0), "sm_90a"), ((12, 0), "sm_120")],
)
def test_arch(compute, arch):
    assert FakeDevice(compute=compute).arch == arch


def test_without_a_gpu_importing_works_and_the_message_is_plain():
    out = bare_python(
        "import sys, ptxgen.runtime as r\n"
        "print(sorted({'numpy', 'cuda', 'cuda.bindings', 'jinja2', 'z3'} & set(sys.modules)))\n"
        "print(r.devices())\n"
        "try: r.get_device('cuda')\n"
        "except RuntimeError as error: print(type(error).__name__, error)\n"
    ).splitlines()
    assert out[0] == "[]"
    assert out[1] == "(<Device cpu:0 'PTX interpreter' sm_90a sms=132>,)"
    assert out[2].startswith("NoGpuError ")
    assert 'use_device("cpu") runs the same kernels without one' in out[2]


# -- loading --------------------------------------------------------------------------


def test_load_raises_the_shared_limit_where_static_memory_would_not_fit_beside():
    """48 KiB are for both: 49152 bytes and a word of the kernel's own are no launch."""
    fake = FakeDevice()
    assert fake.load(b"img", "small", 32768).shared_bytes == 32768
    assert not fake.events("allow_shared")
    fake.load(b"img", "big", 49152)
    assert fake.events("allow_shared") == [("allow_shared", 7, "big", 49152)]


def test_load_refuses_too_much_shared_memory_before_the_driver_does():
    fake = FakeDevice(max_shared=1000)
    with pytest.raises(DeviceError, match=r"k needs 1001 bytes of shared memory.*allows 1000"):
        fake.load(b"img", "k", 1001)
    assert fake.log == []


def test_kernel_compiles_once_per_symbol_for_the_devices_arch():
    fake, calls, gate = FakeDevice(), [], threading.Barrier(8)

    def image(arch):
        time.sleep(0.02)
        calls.append(arch)
        return b"cubin"

    def work(found):
        gate.wait()
        found.append(fake.kernel("k", image, 8))

    found: list = []
    threads = [threading.Thread(target=work, args=(found,)) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert calls == ["sm_90a"]
    assert len(found) == 8
    assert len({id(f) for f in found}) == 1
    assert fake.events("load") == [("load", b"cubin", "k")]


def test_kernel_that_failed_is_tried_again():
    fake = FakeDevice()
    with pytest.raises(ZeroDivisionError):
        fake.kernel("k", lambda arch: 1 // 0)
    assert fake.kernel("k", lambda arch: b"x").symbol == "k"


# -- launching ------------------------------------------------------------------------

LAYOUT = struct.Struct("<5Q3q5I")
"""Five pointers, three numbers of 64 bits and five of 32, as kernels of products take them."""


def block(*pointers):
    """The parameters with these pointers."""
    return LAYOUT.pack(*pointers, 6, 7, 8, 9, 10, 11, 12, 13)


def parameters(*order, maps=()):
    """The parameters, of whose pointers each is that fired one, or null."""
    return Parameters(block(*[0] * 5), order, maps=maps)


FOUR = parameters(0, 1, 2, 3, None)
"""Parameters of launches without scratch memory."""
FIVE = parameters(0, 1, 2, 3, 4)


def test_generic_launch_rewrites_the_leading_pointers_only():
    fake = FakeDevice()
    launch = fake.prepare(function(fake), (3, 1, 1), (128, 1, 1), FOUR, 4, "M=9")
    launch.fire(55, 101, 102, 103, 104)
    expected = block(101, 102, 103, 104, 0)
    assert fake.log == [("launch", "k", (3, 1, 1), (128, 1, 1), 55, expected, "M=9")]
    with pytest.raises(struct.error):
        launch.fire(55, 101)


@pytest.mark.parametrize("attributes", [(0, 0), (77, 1)])
def test_a_cuda_launch_is_written_for_its_pointers(attributes):
    """A CUDA launch is generated for its pointers, in order, with attributes if any; moved tensor
    maps are placed anew.
    """
    done = []

    def note(what):
        return lambda *args: done.append((what, *args))

    maps = [[1, 102, "where", "box"], [2, 9, "there", "box"]]
    blocks = [("memory", "config", "params", "extra", maps)]
    take, build = blocks.pop, lambda: ("new", "config", "params", "extra", [])
    statuses = iter([0, 0, 700])
    fire = cuda._firing(3, (2, None, 0), attributes, True)(
        take,
        blocks.append,
        build,
        note("pack"),
        lambda *args: done.append(("enqueue", *args)) or next(statuses),
        "function",
        note("failed"),
        note("place"),
    )
    fire(55, 101, 102, 103)
    own = attributes if attributes[1] else ()
    assert done == [
        ("pack", "memory", 32, 55, *own, 103, 0, 101),
        ("place", maps[1], 103),
        ("enqueue", "config", "function", "params", "extra"),
    ]
    blocks.clear()  # another thread has it
    fire(55, 101, 102, 103)
    assert done[3][:2] == ("pack", "new") and len(blocks) == 1
    fire(55, 101, 102, 103)
    assert done[-1] == ("failed", blocks[0], 700)
    with pytest.raises(TypeError):
        fire(55, 101)


@pytest.mark.parametrize(
    ("order", "written"),
    [
        ((0, 1, 2, 3, None), (101, 102, 103, 104, 0)),
        ((3, 0, None, 1, None), (104, 101, 0, 102, 0)),
        ((2, None, None, None, None), (103, 0, 0, 0, 0)),
        ((None, 1, 1, None, 0), (0, 102, 102, 0, 101)),
        ((None, None, None, None, None), (0, 0, 0, 0, 0)),
    ],
)
def test_kernels_take_the_fired_pointers_in_their_own_order(order, written):
    fake = FakeDevice()
    launch = fake.prepare(function(fake), (3, 1, 1), (128, 1, 1), parameters(*order), 4, "M=9")
    launch.fire(55, 101, 102, 103, 104)
    assert fake.log[0][5] == block(*written)


BOXES = (
    TensorBox(0, 128, 2, (64, 9), (128,), (64, 8), 128),
    TensorBox(1, 256, 2, (8, 4), (16,), (8, 8), 0),
)


def test_tensor_maps_follow_the_parameters_and_their_pointers():
    fake = FakeDevice()
    given = Parameters(block(*[0] * 5).ljust(384, b"\0"), (0, 1, 2, 3, None), maps=BOXES)
    launch = fake.prepare(function(fake), (3, 1, 1), (128, 1, 1), given, 4, "M=9")
    launch.fire(55, 101, 102, 103, 104)
    params = fake.log[0][5]
    assert params[:84] == block(101, 102, 103, 104, 0)
    assert params[84:128] == bytes(44)
    assert params[128:] == b"0@101".ljust(128, b"\0") + b"1@102".ljust(128, b"\0")


class FakeDriver:
    """cuLaunchKernelEx as a C callback that reads what the real one would read."""

    def __init__(self, context=99, current=99):
        self.context, self.now, self.launches, self.status = context, current, [], []
        self.busy = 0.0
        kinds = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
        self.cuLaunchKernelEx = kinds(self._launch)
        self.cuCtxGetCurrent = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._current)

    def _current(self, target):
        ctypes.c_uint64.from_address(target).value = self.now
        return 0

    def _launch(self, config, kernel, params, extra):
        before = self._read(config, extra)
        if self.busy:
            time.sleep(self.busy)  # the GIL is free: others may run now
        after = self._read(config, extra)
        self.launches.append((kernel, params, before, after))
        if self.now != self.context:
            return 201
        return self.status.pop(0) if self.status else 0

    @staticmethod
    def _read(config, extra):
        fields = struct.unpack("<7I4xQQI4x", ctypes.string_at(config, 56))
        tag, data, size_tag, size, end = struct.unpack("<5Q", ctypes.string_at(extra, 40))
        assert (tag, size_tag, end) == (1, 2, 0)
        assert data % 8 == 0
        length = ctypes.c_uint64.from_address(size).value
        return fields, ctypes.string_at(data, length)


class Context:
    """The part of CudaDevice that a launch touches."""

    context = 99

    def __init__(self, driver):
        self.driver, self.entered = driver, 0

    def __str__(self):
        return "cuda:0"

    @contextlib.contextmanager
    def current(self):
        before, self.driver.now = self.driver.now, self.context
        self.entered += 1
        yield
        self.driver.now = before


def cuda_launch(monkeypatch, driver, several=False, params=FOUR, pointers=4, ahead=False):
    monkeypatch.setattr(cuda, "libcuda", lambda: driver)
    monkeypatch.setattr(cuda, "several_gpus", lambda: several)
    where = Context(driver)
    kernel = function(where, "simt_nn", shared_bytes=4096)
    what = "M=9 N=10 K=11"
    grid, block = (3, 2, 1), (128, 4, 1)
    launch = cuda.CudaLaunch(where, kernel, grid, block, params, pointers, what, programmatic=ahead)
    return where, launch


def test_cuda_launch_block_is_what_the_driver_reads(monkeypatch):
    driver = FakeDriver()
    where, launch = cuda_launch(monkeypatch, driver)
    for first in (101, 2**63 + 5):
        launch.fire(0x7F0000000000, first, 102, 0, 104)
        expected = block(first, 102, 0, 104, 0)
        kernel, params, (fields, given), _ = driver.launches.pop()
        assert (kernel, params) == (7, None)
        assert fields == (3, 2, 1, 128, 4, 1, 4096, 0x7F0000000000, 0, 0)
        assert given == expected
    assert where.entered == 0


@pytest.mark.parametrize("pointers", [4, 5])
def test_a_programmatic_launch_carries_its_attribute(monkeypatch, pointers):
    driver = FakeDriver()
    params = FOUR if pointers == 4 else FIVE
    _, launch = cuda_launch(monkeypatch, driver, params=params, pointers=pointers, ahead=True)
    for first in (101, 2**63 + 5):
        given = (first, 102, 0, 104, 105)[:pointers]
        launch.fire(77, *given)
        _, _, (fields, packed), _ = driver.launches.pop()
        assert fields[:8] == (3, 2, 1, 128, 4, 1, 4096, 77)
        assert fields[9] == 1
        attribute = ctypes.string_at(fields[8], 72)
        assert struct.unpack("<I4xI60x", attribute) == (6, 1)
        assert attribute.count(0) == 70
        assert LAYOUT.unpack(packed)[:5] == (*given, 0)[:5]


def test_the_launch_attribute_has_the_layout_of_the_bindings():
    cu = pytest.importorskip("cuda.bindings.driver")
    attribute = cu.CUlaunchAttribute()
    attribute.id = cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value.programmaticStreamSerializationAllowed = 1
    assert ctypes.string_at(attribute.getPtr(), 72) == bytes(cuda._PROGRAMMATIC)


@pytest.mark.parametrize("length", [8, 12, 16, 84])
def test_cuda_launch_takes_any_parameter_length(monkeypatch, length):
    driver = FakeDriver()
    params = bytes(range(length))
    _, launch = cuda_launch(monkeypatch, driver, params=Parameters(params, ()), pointers=0)
    launch.fire(0)
    assert driver.launches[0][2][1] == params


def test_launch_config_has_the_layout_of_the_bindings():
    cu = pytest.importorskip("cuda.bindings.driver")
    config = cu.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = 3, 2, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = 128, 4, 5
    config.sharedMemBytes, config.hStream = 4096, cu.CUstream(77)
    raw = ctypes.string_at(config.getPtr(), 56)
    assert raw == cuda._CONFIG.pack(3, 2, 1, 128, 4, 5, 4096, 77)
    assert cuda._CONFIG.size == 56
    assert raw[cuda._STREAM_AT] == 77


def test_threads_never_share_a_block(monkeypatch):
    driver = FakeDriver()
    driver.busy = 0.001
    _, launch = cuda_launch(monkeypatch, driver)
    gate = threading.Barrier(6)

    def work(n):
        gate.wait()
        for _ in range(10):
            launch.fire(n, n, n, n, n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 7)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(driver.launches) == 60
    for _, _, before, after in driver.launches:
        stream = before[0][7]
        assert before == after
        assert LAYOUT.unpack(before[1])[:4] == (stream,) * 4
    assert 2 <= len(launch._idle) <= 6  # blocks were added while threads overlapped, then kept


def test_one_gpu_wrong_context_is_found_by_refusal_and_repaired(monkeypatch):
    driver = FakeDriver(current=0)
    where, launch = cuda_launch(monkeypatch, driver)
    launch.fire(1, 2, 3, 4, 5)
    assert where.entered == 1
    assert driver.now == 0
    assert len(driver.launches) == 2
    assert driver.launches[0][2] == driver.launches[1][2]


def test_several_gpus_wrong_context_is_never_launched_in(monkeypatch):
    driver = FakeDriver(current=98)
    where, launch = cuda_launch(monkeypatch, driver, several=True)
    launch.fire(1, 2, 3, 4, 5)
    assert (where.entered, driver.now, len(driver.launches)) == (1, 98, 1)
    driver.now = 99
    launch.fire(1, 2, 3, 4, 5)
    assert (where.entered, len(driver.launches)) == (1, 2)


def test_launch_errors_name_kernel_problem_and_device(monkeypatch):
    driver = FakeDriver()
    _, launch = cuda_launch(monkeypatch, driver)
    driver.status = [700]
    pattern = r"launching simt_nn for M=9 N=10 K=11 on cuda:0 failed: .*700.*earlier kernel"
    with pytest.raises(DeviceError, match=pattern if not has_driver() else "ILLEGAL_ADDRESS"):
        launch.fire(1, 2, 3, 4, 5)
    launch.fire(1, 2, 3, 4, 5)  # still usable


def test_lane_reads_id_and_capture_of_the_stream(monkeypatch):
    class Streams:
        capturing = MappingProxyType({5: 31})

        def __init__(self):
            one = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2)
            two = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 6)
            self.cuStreamGetId = one(self.id)
            self.cuStreamGetCaptureInfo_v2 = two(self.capture)

        def id(self, stream, target):
            if stream in self.capturing:
                return 900  # CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, as driver 580 says
            ctypes.c_uint64.from_address(target).value = 1000 + (stream or 0)
            return 0

        def capture(self, stream, status, target, graph, edges, count):
            assert (graph, edges, count) == (None, None, None)
            if stream in self.capturing:  # the driver leaves the id alone otherwise
                ctypes.c_int.from_address(status).value = 1
                ctypes.c_uint64.from_address(target).value = self.capturing[stream]
            return 0

    monkeypatch.setattr(cuda, "libcuda", Streams)
    where = object.__new__(cuda.CudaDevice)
    where._probes = []
    assert [where.lane(s) for s in (5, 6, 0, 5)] == [(5, 31), (1006, 0), (1000, 0), (5, 31)]
    assert len(where._probes) == 1


def has_driver():
    try:
        cuda.driver()
    except DeviceError:
        return False
    return True


# -- scratch --------------------------------------------------------------------------


def borrow(fake, stream, nbytes):
    shelf, scratch = fake.workspace.borrow(stream, nbytes)
    shelf.append(scratch)
    return scratch


def test_scratch_is_reused_within_a_lane_and_not_across():
    fake = FakeDevice()
    first = borrow(fake, 1, 100)
    assert first.nbytes == SMALLEST
    assert borrow(fake, 1, SMALLEST) is first
    assert borrow(fake, 2, 100).ptr != first.ptr
    fake.lanes[1] = "a capture on stream 1"
    assert borrow(fake, 1, 100).ptr != first.ptr
    fake.lanes[1] = 1
    assert borrow(fake, 1, 100) is first


def test_scratch_grows_geometrically_and_keeps_what_enqueued_work_may_use():
    fake = FakeDevice()
    first = borrow(fake, 1, SMALLEST)
    second = borrow(fake, 1, SMALLEST + 1)
    third = borrow(fake, 1, 9 * SMALLEST)
    assert [s.nbytes for s in (first, second, third)] == [SMALLEST, 2 * SMALLEST, 9 * SMALLEST]
    assert borrow(fake, 1, 1) is third
    assert set(fake.memory) == {first.ptr, second.ptr, third.ptr}
    assert not fake.events("free", "synchronize")
    assert fake.workspace.nbytes == 12 * SMALLEST


def test_scratch_in_use_is_not_lent_twice():
    fake = FakeDevice()
    idle = borrow(fake, 1, 8)
    shelf, one = fake.workspace.borrow(1, 8)
    assert one is idle
    _, two = fake.workspace.borrow(1, 8)
    assert one.ptr != two.ptr
    shelf += [one, two]
    assert borrow(fake, 1, 8) is two


def test_release_waits_and_frees_everything():
    fake = FakeDevice()
    borrow(fake, 1, 8)
    borrow(fake, 1, 2 * SMALLEST)
    fake.workspace.release()
    assert not fake.memory
    assert [e[0] for e in fake.log][-3:] == ["synchronize", "free", "free"]
    assert borrow(fake, 1, 8).ptr in fake.memory


def test_scratch_launch_passes_one_scratch_to_all_steps():
    fake = FakeDevice()
    steps = tuple(
        fake.prepare(function(fake, s), (1, 1, 1), (32, 1, 1), FIVE, 5, "M=9")
        for s in ("split", "reduce")
    )
    pair = ScratchLaunch(fake, steps, (3 * SMALLEST,))
    pair.fire(8, 101, 102, 103, 104)
    pair.fire(8, 101, 102, 103, 104)
    scratches = [LAYOUT.unpack(e[5])[4] for e in fake.events("launch")]
    assert [e[1] for e in fake.events("launch")] == ["split", "reduce"] * 2
    assert len(set(scratches)) == 1
    assert scratches[0] in fake.memory
    assert fake.events("alloc") == [("alloc", 3 * SMALLEST)]


def test_scratch_memories_of_a_launch_lie_apart():
    fake = FakeDevice()
    step = fake.prepare(function(fake), (1, 1, 1), (32, 1, 1), parameters(0, 2, 3, 1, 4), 5, "M=9")
    ScratchLaunch(fake, (step,), (1, 300, 0)).fire(8, 101, 102)
    given = LAYOUT.unpack(fake.events("launch")[0][5])[:5]
    first = given[1]
    assert given == (101, first, first + 256, 102, first + 768)
    assert first in fake.memory and first % 256 == 0


def test_two_threads_on_one_stream_interleave_without_sharing_scratch():
    fake = FakeDevice()
    inside = threading.Barrier(2, timeout=10)
    seen: list = []

    def split(params):
        inside.wait()  # both threads are between split and reduce at once
        seen.append(LAYOUT.unpack(params)[4])

    fake.kernels["split"] = split
    steps = (fake.prepare(function(fake, "split"), (1, 1, 1), (32, 1, 1), FIVE, 5, "M=9"),)
    pair = ScratchLaunch(fake, steps, (64,))
    borrow(fake, 8, 64)
    threads = [threading.Thread(target=pair.fire, args=(8, 1, 2, 3, 4)) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(seen)) == 2


def test_scratch_goes_back_when_a_step_fails():
    fake = FakeDevice()
    fake.kernels["k"] = lambda params: 1 // 0
    step = fake.prepare(function(fake), (1, 1, 1), (32, 1, 1), FIVE, 5, "M=9")
    pair = ScratchLaunch(fake, (step,), (64,))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            pair.fire(8, 1, 2, 3, 4)
    assert len(fake.events("alloc")) == 1


def test_retain_lets_go_only_of_finished_work():
    fake = FakeDevice()
    fake.retain(1, "a")
    fake.retain(2, "b")
    fake.unfinished = {2}
    fake.retain(3, "c")
    assert sorted(owner for _, owner in fake._in_use) == ["b", "c"]


@pytest.mark.parametrize(("index", "before"), [(0, 0), (0, 99), (0, 7), (1, 0), (1, 7)])
def test_a_thread_without_context_keeps_that_of_the_first_gpu(monkeypatch, index, before):
    stack = [before]

    def done(change):
        return lambda *given: (0, change(*given))

    names = ("cuCtxGetCurrent", "cuCtxSetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent")
    changes = (lambda: stack[-1], lambda c: stack.append(c), lambda c: stack.append(c), stack.pop)
    fake = types.SimpleNamespace(CUcontext=int, **dict(zip(names, map(done, changes), strict=True)))
    monkeypatch.setattr(cuda, "driver", lambda: fake)
    device = object.__new__(cuda.CudaDevice)
    device.kind, device.index, device.__dict__["context"] = "cuda", index, 99
    with device.current():
        assert stack[-1] == 99
    assert stack[-1] == (99 if not before and not index else before)
