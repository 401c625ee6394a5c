"""Running kernels: devices, launches, streams, scratch memory and arrays of any framework.

How an op is meant to use this
==============================
The careful way, for every first call and every framework (:class:`Call`)::

    call = Call({"x": x, "w": w, "bias": bias}, stream=stream)
    xv = call.views["x"].matrix("x")              # shapes, strides and dtypes are known here
    ...                                           # check them, choose the route
    target = call.output((*lead, n), "float32", out)
    call.stage()                                  # from here on call.views has device pointers
    function = call.device.kernel(spec.name, cubin_for, spec.shared_bytes)
    launch = call.device.prepare(function, grid, block, Parameters(...), 4, "M=.. N=.. K=..")
    launch.fire(call.stream, x_ptr, w_ptr, bias_ptr, out_ptr)
    return call.finish()

Routes of several kernels prepare each with a pointer more for each scratch memory, and combine them
in ``ScratchLaunch(device, steps, sizes)``, which is fired with four pointers and adds the
others. Memoise the launch by everything that its choice depended on: shapes, strides,
dtype, device, options and the alignment of each pointer.

The hot way, for plain torch tensors (``type(x) is torch.Tensor`` or ``Parameter``): build
that key without any view, look the launch up, and fire it::

    key = (torch_key(x), torch_key(w), torch_key(out), layout, tier, activation)
    entry = memo.get(key)
    if entry is not None:
        xp, wp, op = x.data_ptr(), w.data_ptr(), out.data_ptr()
        end = op + entry.out_bytes                # bytes between first and last element,
        if (                                      # from extent(), once per entry
            not (xp | wp | op) & entry.align
            and (end <= xp or xp + entry.x_bytes <= op)
            and (end <= wp or wp + entry.w_bytes <= op)
        ):
            entry.fire(torch_current(entry.index), xp, wp, 0, op)
            return out

Only pointers can differ between two calls of one key, so only what depends on pointers is
asked again: alignment, and that ``out`` overlaps no operand. Where the extents meet, take the
careful way, whose test is exact. Enter a key into the memo only after the careful way has
succeeded for it, and only for tensors with a unit stride (see :func:`torch_key`).
``launch.fire`` may be stored as ``entry.fire``; it is safe in any thread.
"""

from ptxgen.runtime.arrays import (
    ArrayView,
    DeviceArray,
    framework_of,
    torch_key,
    view,
)
from ptxgen.runtime.call import Call
from ptxgen.runtime.device import Device
from ptxgen.runtime.launch import Function, Launch, Parameters, ScratchLaunch, TensorBox
from ptxgen.runtime.registry import (
    default_device,
    devices,
    get_device,
    register,
    set_default_device,
    use_device,
)
from ptxgen.runtime.stream import cupy_current, resolve, torch_current
from ptxgen.runtime.strided import extent

__all__ = [
    "ArrayView",
    "Call",
    "Device",
    "DeviceArray",
    "Function",
    "Launch",
    "Parameters",
    "ScratchLaunch",
    "TensorBox",
    "cupy_current",
    "default_device",
    "devices",
    "extent",
    "framework_of",
    "get_device",
    "register",
    "resolve",
    "set_default_device",
    "torch_current",
    "torch_key",
    "use_device",
    "view",
]
