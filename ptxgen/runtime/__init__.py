"""Runtime of kernels: devices, launches, streams, scratch memory, arrays of any framework.

:class:`Call` reads and checks a call's arrays, and copies host arrays to the device. Its
:class:`Device` loads kernels and prepares launches, which are fired on the call's stream::

    call = Call({"x": x, "w": w, "bias": bias}, stream=stream)
    xv = call.views["x"].matrix("x")              # shapes, strides and dtypes are known here
    target = call.target(out, "out")              # checked: nothing has been enqueued yet
    call.stage()                                  # the stream waits for pending writes
    function = call.device.kernel(spec.name, cubin_for, spec.shared_bytes)
    launch = call.device.prepare(function, grid, block, Parameters(...), 4, "M=.. N=.. K=..")
    launch.fire(call.stream, xv.ptr, w_ptr, bias_ptr, target.ptr)

A launch is prepared once for each problem, and fired from any thread. The launches of a route with
several kernels form one :class:`ScratchLaunch`, which adds pointers to scratch memory.
"""

from ptxgen.runtime.arrays import ArrayView, DeviceArray, framework_of, view
from ptxgen.runtime.call import Call
from ptxgen.runtime.device import Device
from ptxgen.runtime.launch import Launch, Parameters, ScratchLaunch, TensorBox
from ptxgen.runtime.registry import (
    default_device,
    devices,
    get_device,
    set_default_device,
    use_device,
)
from ptxgen.runtime.stream import cupy_current, resolve, torch_current

__all__ = [
    "ArrayView",
    "Call",
    "Device",
    "DeviceArray",
    "Launch",
    "Parameters",
    "ScratchLaunch",
    "TensorBox",
    "cupy_current",
    "default_device",
    "devices",
    "framework_of",
    "get_device",
    "resolve",
    "set_default_device",
    "torch_current",
    "use_device",
    "view",
]
