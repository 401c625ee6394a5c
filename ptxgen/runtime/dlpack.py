"""The DLPack protocol, both ways, through ctypes.

Reading: :func:`read` parses the capsule that ``__dlpack__`` returns. The capsule is
never renamed to ``used_dltensor``: it stays the owner of the exported memory, and its own
destructor calls the producer's deleter when the last reference goes.

Writing: :func:`export` makes a capsule for memory that ptxgen owns.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ptxgen.errors import DtypeError
from ptxgen.runtime.strided import contiguous_strides

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
"""Values of DLDeviceType."""

READ_ONLY = 1
"""Bit of DLManagedTensorVersioned.flags for read-only memory."""

_NAMES = {
    **{(0, bits): f"int{bits}" for bits in (8, 16, 32, 64)},
    **{(1, bits): f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{(2, bits): f"float{bits}" for bits in (16, 32, 64)},
    (4, 16): "bfloat16",
    **{(5, bits): f"complex{bits}" for bits in (64, 128)},
    (6, 8): "bool",
    (10, 8): "float8_e4m3fn",
    (12, 8): "float8_e5m2",
}
_CODES = {name: code for code, name in _NAMES.items()}
_KINDS = {5: "complex"}


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (
        ("tensor", _Tensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


@dataclass(frozen=True, slots=True)
class Exported:
    """Tensor of a DLPack capsule. ``strides`` count elements; ``owner`` keeps the memory alive."""

    ptr: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device_type: int
    device_id: int
    readonly: bool
    owner: object


def _api(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_is_valid = _api("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_pointer = _api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_new = _api("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
# In a capsule's destructor the capsule must not be wrapped: its reference count is zero.
_dying_is_valid = _api("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_dying_pointer = _api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)

_PLAIN, _VERSIONED = b"dltensor", b"dltensor_versioned"  # capsules point at these


def device_of(obj: Any) -> tuple[int, int]:
    """Returns (DLDeviceType, index) of an object with ``__dlpack_device__``."""
    kind, index = obj.__dlpack_device__()
    return int(kind), int(index)


def request(obj: Any, stream: int | None) -> object:
    """Calls ``obj.__dlpack__``; returns a capsule whose data is ready for work on ``stream``.

    ``stream`` is a handle, or None for memory without streams.
    """
    if stream == 0:
        stream = 1  # DLPack's name for the legacy default stream
    try:
        return obj.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # a producer from before DLPack 1.0
        return obj.__dlpack__(stream=stream)


def read(capsule: object, name: str) -> Exported:
    """Parses a DLPack capsule; ``name`` is the argument's name for errors.

    Raises DtypeError for an unknown dtype or version, and for an object that is no DLPack capsule,
    or one that a consumer has used.
    """
    readonly = False
    if _is_valid(capsule, _VERSIONED):
        versioned = _Versioned.from_address(_pointer(capsule, _VERSIONED))
        if versioned.major != 1:
            raise DtypeError(
                f"{name}: its DLPack version is {versioned.major}.{versioned.minor}; takes 0.x, 1.x"
            )
        tensor, readonly = versioned.tensor, bool(versioned.flags & READ_ONLY)
    elif _is_valid(capsule, _PLAIN):
        tensor = _Managed.from_address(_pointer(capsule, _PLAIN)).tensor
    else:
        raise DtypeError(
            f"{name}: __dlpack__ returned {capsule!r}, which is no unused DLPack capsule"
        )
    dtype = _NAMES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        kind = _KINDS.get(tensor.code, f"DLPack type code {tensor.code}")
        raise DtypeError(
            f"{name}: dtype {kind} of {tensor.bits} bits and {tensor.lanes} lane(s) is not "
            f"supported; takes {', '.join(_CODES)}"
        )
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else contiguous_strides(shape)
    return Exported(
        ptr=(tensor.data or 0) + tensor.byte_offset,
        shape=shape,
        strides=strides,
        dtype=dtype,
        device_type=tensor.device_type,
        device_id=tensor.device_id,
        readonly=readonly,
        owner=capsule,
    )


# -- exporting ------------------------------------------------------------------------
_alive: dict[int, tuple[object, ...]] = {}  # by address of the managed tensor


def _release(address: int) -> None:
    _alive.pop(address, None)


def _destroy(capsule: int, alive: dict[int, tuple[object, ...]] = _alive) -> None:
    for name in (_PLAIN, _VERSIONED):
        if _dying_is_valid(capsule, name):  # else a consumer took it over
            alive.pop(_dying_pointer(capsule, name), None)


_deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_release)
_destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_destroy)
for _callback in (_deleter, _destructor):
    # Never collected: consumers may call them until the very end of the process.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_callback))


def export(
    owner: object,
    ptr: int,
    shape: tuple[int, ...],
    dtype: str,
    device: tuple[int, int],
    *,
    versioned: bool,
    readonly: bool = False,
) -> object:
    """Returns a DLPack capsule for row-major memory at ``ptr``, which ``owner`` keeps alive.

    ``device``: DLDeviceType and index; ``versioned``: whether it has the format of DLPack 1.0,
    without which ``readonly`` has no effect.
    """
    managed: Any = _Versioned(major=1, minor=0) if versioned else _Managed()
    code, bits = _CODES[dtype]
    ndim = len(shape)
    extents = (ctypes.c_int64 * ndim)(*shape)
    steps = (ctypes.c_int64 * ndim)(*contiguous_strides(shape))
    pointer: Callable[[Any], Any] = lambda array: ctypes.cast(  # noqa: E731
        array, ctypes.POINTER(ctypes.c_int64)
    )
    managed.tensor = _Tensor(ptr, *device, ndim, code, bits, 1, pointer(extents), pointer(steps), 0)
    managed.deleter = ctypes.cast(_deleter, ctypes.c_void_p)
    if versioned and readonly:
        managed.flags = READ_ONLY
    address = ctypes.addressof(managed)
    _alive[address] = (owner, managed, extents, steps)
    return _new(
        address,
        _VERSIONED if versioned else _PLAIN,
        ctypes.cast(_destructor, ctypes.c_void_p),
    )
