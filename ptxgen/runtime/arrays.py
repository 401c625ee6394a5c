"""Arrays of any framework, viewed as pointer, shape, strides, dtype and device.

:func:`view` reads an array; :func:`empty` makes results in the caller's framework. No framework is
imported unless an array of it was passed in.

Lifetimes and autograd: a view keeps its array alive, but work that is still enqueued does
not, so memory handed to a stream other than its own allocator's follows that framework's
rules (``Tensor.record_stream`` in PyTorch). Tensors that require grad are read as if
detached: nothing is recorded.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import Any, TypeVar

from ptxgen.errors import DeviceError, DtypeError, PtxgenError, ShapeError
from ptxgen.numerics.dtype import BYTES, PARTS
from ptxgen.runtime import dlpack
from ptxgen.runtime.device import Device
from ptxgen.runtime.registry import META, get_device, is_registered
from ptxgen.runtime.strided import (
    Strided,
    contiguous_strides,
    extent,
    overlaps_itself,
    rows_of,
    steps,
)

_T = TypeVar("_T")

_TYPESTR = {
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "c8": "complex64",
    "c16": "complex128",
    "b1": "bool",
    **{f"{s}{n}": f"{w}{8 * n}" for s, w in (("i", "int"), ("u", "uint")) for n in (1, 2, 4, 8)},
}


@dataclass(frozen=True, slots=True)
class ArrayView(Strided):
    """Address (``ptr``), layout and device of an array.

    ``strides`` count elements. ``kind`` is ``"cuda"`` or ``"host"``, or ``"meta"`` for tensors of
    :class:`ptxgen.runtime.compiling.CompilingDevice`; ``index`` is that of the GPU.
    ``framework`` is ``"torch"``, ``"cupy"``, ``"jax"``, ``"numpy"``, ``"ptxgen"``, ``"dlpack"``, or
    ``"cai"`` for others with ``__cuda_array_interface__``. ``owner`` keeps the memory alive.
    ``after`` is a stream on which the array may still be written, or None.
    """

    ptr: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    kind: str
    index: int
    readonly: bool
    framework: str
    owner: object
    after: int | None = None

    def laid(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> ArrayView:
        return replace(self, shape=shape, strides=strides)

    @property
    def address(self) -> int:
        return self.ptr

    @property
    def packed(self) -> ArrayView:
        """The layout of a contiguous copy of this array, as a view with address 0."""
        return replace(self, ptr=0, strides=contiguous_strides(self.shape))

    @property
    def where(self) -> str:
        """The device in words, such as ``"cuda:0"`` or ``"host memory"``."""
        return "host memory" if self.kind == "host" else f"{self.kind}:{self.index}"

    def extent(self) -> tuple[int, int]:
        """Returns the address range [low, high) of all elements; empty for an empty array."""
        low, high = extent(self.shape, self.strides, self.itemsize)
        return self.ptr + low, self.ptr + high

    def overlaps(self, other: ArrayView) -> bool:
        """Whether two arrays may share a byte.

        Exact if the extents are disjoint, for matrices with the same row pitch (two column ranges
        of one buffer), and if all strides are multiples of a step by which the two never coincide
        (even and odd elements). Otherwise overlapping extents count as shared.
        """
        if (self.kind, self.index) != (other.kind, other.index):
            return False
        (low, high), (other_low, other_high) = self.extent(), other.extent()
        if low >= other_high or other_low >= high:
            return False
        width = max(self.itemsize, other.itemsize)
        distances = [s * v.itemsize for v in (self, other) for s, _ in steps(v.shape, v.strides)]
        step = gcd(*distances) or width
        if width <= (other.ptr - self.ptr) % step <= step - width:
            return False
        rows, other_rows = rows_of(self.shape, self.strides), rows_of(other.shape, other.strides)
        if rows is None or other_rows is None:
            return True
        pitch, width = (n * self.itemsize for n in rows)
        other_pitch, other_width = (n * other.itemsize for n in other_rows)
        pitch = pitch or other_pitch  # a single row fits any pitch
        if pitch == 0 or (other_pitch or pitch) != pitch:
            return True
        ahead = (other_low - low) % pitch
        return ahead < width or ahead + other_width > pitch

    def coincides(self, other: ArrayView) -> bool:
        """Whether both views have the same device, address, shape, strides and dtype."""
        one, two = ((v.kind, v.index, v.ptr, v.shape, v.strides, v.dtype) for v in (self, other))
        return one == two

    def overlaps_itself(self) -> bool:
        """Whether two elements may share a byte (zero strides, too short a pitch)."""
        return overlaps_itself(self.shape, self.strides)


# -- reading ----------------------------------------------------------------------------
_ROOTS = {"torch": "torch", "cupy": "cupy", "jax": "jax", "jaxlib": "jax", "numpy": "numpy"}


@functools.lru_cache(maxsize=256)
def _framework_of_type(kind: type) -> str:
    for base in kind.__mro__:
        root = _ROOTS.get(str(base.__module__).partition(".")[0])
        if root and issubclass(kind, _arrays_of(root)):
            return root
    if issubclass(kind, DeviceArray):
        return "ptxgen"
    if hasattr(kind, "__cuda_array_interface__"):
        return "cai"
    return "dlpack" if hasattr(kind, "__dlpack__") else "other"


def _arrays_of(root: str) -> tuple[type, ...]:
    """Returns the base classes by which arrays of the framework ``root`` differ from its other
    objects, such as dtypes; ``object`` for frameworks whose objects all count as arrays.
    """
    if root == "torch":
        return (sys.modules["torch"].Tensor,)
    if root == "numpy":
        numpy = sys.modules["numpy"]
        return numpy.ndarray, numpy.generic
    return (object,)


def framework_of(obj: object) -> str:
    """Returns the framework of ``obj``, named as in :class:`ArrayView`, or ``"other"``."""
    framework = _framework_of_type(type(obj))  # type: ignore[arg-type]  # types do hash
    if framework == "other" and _has_protocol(obj, "__cuda_array_interface__"):
        return "cai"  # set on the instance
    return framework


def _has_protocol(obj: object, protocol: str) -> bool:
    """Whether ``obj`` has the attribute ``protocol``; true also if reading it raises."""
    try:
        return hasattr(obj, protocol)
    except Exception:
        return True


def scalar(obj: object) -> bool:
    """Whether ``obj`` is a NumPy scalar, which counts as a read-only array without dimensions."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(obj, numpy.generic)


def view(obj: Any, name: str, stream: int = 0) -> ArrayView:
    """Returns the view of the array ``obj``, passed as argument ``name``, for work on ``stream``.

    A DLPack producer makes ``stream`` wait for its pending writes. Of other arrays,
    :attr:`ArrayView.after` is the stream to wait for.

    Raises DtypeError for an object that is no array, and for unknown dtypes; ShapeError for layouts
    without strides; DeviceError for memory that is neither on a GPU nor in the host, and for a
    producer that fails or describes no memory.
    """
    reader = _READERS.get(framework_of(obj))
    if reader is None:
        raise DtypeError(
            f"{name} is a {_type_name(obj)}; takes an array: "
            "PyTorch, CuPy, JAX, NumPy, or anything with __dlpack__ or __cuda_array_interface__"
        )
    try:
        found = reader(obj, name, stream)
    except PtxgenError:
        raise
    except Exception as error:  # of a producer: whatever it raises, it is no array
        raise DeviceError(
            f"{name} is a {_type_name(obj)} that cannot be read: {type(error).__name__}: {error}"
        ) from error
    if len(found.strides) != len(found.shape) or any(size < 0 for size in found.shape):
        raise DeviceError(
            f"{name} is a {_type_name(obj)} of shape {list(found.shape)} and strides "
            f"{list(found.strides)}, which describe no memory"
        )
    if not found.ptr and found.size and found.framework in ("cai", "dlpack"):
        raise DeviceError(f"{name} is a {_type_name(obj)} whose address is 0; takes memory")
    return found


def _type_name(obj: object) -> str:
    return f"{type(obj).__module__}.{type(obj).__qualname__}"


def _known_dtype(dtype: str, name: str) -> str:
    if dtype not in BYTES:
        raise DtypeError(f"{name}: dtype {dtype} is not supported; takes {', '.join(BYTES)}")
    return dtype


def _element_strides(strides: tuple[int, ...], itemsize: int, name: str) -> tuple[int, ...]:
    """Converts byte strides to element strides. Raises ShapeError if one is no multiple of
    ``itemsize``.
    """
    if any(step % itemsize for step in strides):
        raise ShapeError(
            f"{name} has byte strides {list(strides)} that are no multiples of its "
            f"{itemsize}-byte elements; pass a contiguous copy of {name}"
        )
    return tuple(step // itemsize for step in strides)


def _read_protocol(x: Any, name: str, what: str, read: Callable[[], _T]) -> _T:
    """Returns ``read()``, which reads protocol ``what`` of ``x``; errors become DeviceErrors."""
    try:
        return read()
    except PtxgenError:
        raise
    except Exception as error:
        raise DeviceError(
            f"{name} is a {_type_name(x)} whose {what} raised {type(error).__name__}: "
            f"{error}; pass an array that can be exported, such as a copy"
        ) from error


def _view_torch(x: Any, name: str, stream: int) -> ArrayView:
    torch = sys.modules["torch"]
    kind = x.device.type
    if x.layout is not torch.strided:
        raise ShapeError(f"{name} is a torch tensor of layout {x.layout}; pass {name}.to_dense()")
    if kind not in ("cuda", "cpu") and not (kind == META and is_registered(META)):
        raise DeviceError(f"{name} is a torch tensor on {x.device}; takes CUDA tensors")
    dtype = _known_dtype(str(x.dtype).removeprefix("torch."), name)
    if x.is_neg():
        raise ShapeError(f"{name} is a lazily negated torch tensor; pass {name}.resolve_neg()")
    if dtype in PARTS and x.is_conj():
        raise ShapeError(f"{name} is a lazily conjugated torch tensor; pass {name}.resolve_conj()")
    try:
        ptr = x.data_ptr()
    except RuntimeError as error:  # fake, functional and vmapped tensors have no memory
        raise DeviceError(f"{name} is a torch tensor without memory of its own: {error}") from error
    if kind == "cpu":
        kind, index = "host", 0
    elif kind == META:  # addresses of storages are apart, as those of arrays are
        ptr, index = (x.untyped_storage()._cdata << 48) + x.storage_offset() * x.itemsize, 0
    else:
        index = x.get_device()
    return ArrayView(ptr, tuple(x.shape), tuple(x.stride()), dtype, kind, index, False, "torch", x)


def _view_cupy(x: Any, name: str, stream: int) -> ArrayView:
    if not hasattr(type(x), "__cuda_array_interface__"):
        raise DtypeError(f"{name} is a {type(x).__qualname__} of CuPy; takes a dense array")
    dtype = _known_dtype(x.dtype.name, name)
    strides = _element_strides(x.strides, BYTES[dtype], name)
    return ArrayView(
        x.data.ptr, x.shape, strides, dtype, "cuda", int(x.device.id), False, "cupy", x
    )


def _view_numpy(x: Any, name: str, stream: int) -> ArrayView:
    fixed = scalar(x)
    if fixed:  # its own interface describes a short-lived copy
        x = sys.modules["numpy"].asarray(x)
    interface = getattr(x, "__array_interface__", None)
    if interface is None or hasattr(x, "mask"):
        raise DtypeError(f"{name} is a NumPy {type(x).__qualname__}; takes a plain array")
    if not x.dtype.isnative:
        raise DtypeError(
            f"{name}: dtype {x.dtype.str} is not in native byte order; "
            f"pass {name}.astype({x.dtype.name!r})"
        )
    dtype = _known_dtype(x.dtype.name, name)
    strides = _element_strides(x.strides, BYTES[dtype], name)
    ptr, readonly = interface["data"]
    return ArrayView(ptr, x.shape, strides, dtype, "host", 0, readonly or fixed, "numpy", x)


def _view_cai(x: Any, name: str, stream: int) -> ArrayView:
    what = "__cuda_array_interface__"
    interface = _read_protocol(x, name, what, lambda: x.__cuda_array_interface__)
    lacking = [key for key in ("shape", "typestr", "data") if key not in dict(interface)]
    if lacking:
        raise DeviceError(f"{name}: its {what} has no {lacking[0]!r}; pass an array")
    typestr = str(interface["typestr"])
    dtype = _TYPESTR.get(typestr[1:])
    if dtype is None or typestr[0] == ">":
        if hasattr(x, "__dlpack__"):  # which has a code for bfloat16
            return _view_dlpack(x, name, stream)
        raise DtypeError(
            f"{name}: dtype {typestr!r} of its __cuda_array_interface__ is not supported; "
            f"takes little-endian {', '.join(_TYPESTR)}, and through __dlpack__ also bfloat16"
        )
    if interface.get("mask") is not None:
        raise DtypeError(f"{name} is masked; pass an array without mask")
    after = interface.get("stream")
    if after == 0:
        raise DeviceError(
            f"{name}: stream 0 in its __cuda_array_interface__ is ambiguous and not allowed; "
            "its producer must say 1 (legacy default), 2 (per-thread default) or a handle"
        )
    shape = tuple(int(size) for size in interface["shape"])
    strides = interface.get("strides")
    found = (
        contiguous_strides(shape)
        if strides is None
        else _element_strides(tuple(strides), BYTES[dtype], name)
    )
    ptr, readonly = interface["data"]
    ptr = int(ptr or 0)
    index = _cuda_index(ptr) if ptr else 0
    return ArrayView(ptr, shape, found, dtype, "cuda", index, bool(readonly), "cai", x, after)


def _cuda_index(ptr: int) -> int:
    from ptxgen.runtime import cuda

    return cuda.pointer_device(ptr)


def _view_dlpack(x: Any, name: str, stream: int) -> ArrayView:
    kind, _ = _read_protocol(x, name, "__dlpack_device__", lambda: dlpack.device_of(x))
    on_gpu = kind in (dlpack.CUDA, dlpack.CUDA_MANAGED)
    if not on_gpu and kind not in (dlpack.CPU, dlpack.CUDA_HOST):
        raise DeviceError(f"{name} lies on DLPack device type {kind}; takes CUDA and host memory")
    ready = stream if on_gpu else None
    capsule = _read_protocol(x, name, "__dlpack__", lambda: dlpack.request(x, ready))
    found = dlpack.read(capsule, name)
    # A capsule need not keep its producer alive, nor the other way round: hold both.
    return ArrayView(
        found.ptr,
        found.shape,
        found.strides,
        found.dtype,
        "cuda" if on_gpu else "host",
        found.device_id if on_gpu else 0,
        found.readonly,
        "dlpack",
        (x, found.owner),
    )


def _view_jax(x: Any, name: str, stream: int) -> ArrayView:
    if type(x).__name__.endswith("Tracer"):
        raise DeviceError(f"{name} is being traced by JAX; call ptxgen outside of jax.jit")
    if not hasattr(x, "__dlpack__"):
        raise DtypeError(f"{name} is a {type(x).__qualname__} of JAX; takes an array")
    if len(x.devices()) != 1:
        raise DeviceError(f"{name} is a JAX array on {len(x.devices())} devices; takes one")
    found = _view_dlpack(x, name, stream)
    return replace(found, framework="jax", readonly=True)  # whatever the capsule says


def _view_own(x: DeviceArray, name: str, stream: int) -> ArrayView:
    strides = contiguous_strides(x.shape)
    where = x.device
    return ArrayView(
        x.ptr, x.shape, strides, x.dtype, where.kind, where.index, False, "ptxgen", x, x.stream
    )


# -- our own arrays -----------------------------------------------------------------------
class DeviceArray:
    """A row-major array in device memory of ptxgen, for frameworks in which it cannot allocate.

    Offers ``__cuda_array_interface__`` and ``__dlpack__``; ``stream`` writes it, and consumers wait
    for that. The memory is freed with the last reference (the driver then waits for work that uses
    it).
    """

    __slots__ = ("__weakref__", "_owner", "device", "dtype", "ptr", "shape", "stream")

    def __init__(
        self,
        device: Device,
        shape: tuple[int, ...],
        dtype: str,
        stream: int = 0,
        owner: DeviceArray | None = None,
    ) -> None:
        """Allocates memory, or takes the first bytes of that of ``owner``, which it keeps alive."""
        self.device, self.shape, self.dtype, self.stream = device, shape, dtype, stream
        self._owner = owner
        # At least a byte, as consumers refuse null pointers.
        self.ptr: int = device.alloc(max(self.nbytes, 1)) if owner is None else owner.ptr

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return prod(self.shape) * BYTES[self.dtype]

    def __repr__(self) -> str:
        return f"<DeviceArray {list(self.shape)} {self.dtype} on {self.device}>"

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        typestr = {name: text for text, name in _TYPESTR.items()}.get(self.dtype)
        if typestr is None or self.device.kind != "cuda":
            raise AttributeError(
                f"__cuda_array_interface__ cannot describe {self!r}; use __dlpack__"
            )
        return {
            "version": 3,
            "shape": self.shape,
            "strides": None,
            "typestr": ("|" if typestr[1:] == "1" else "<") + typestr,
            "data": (self.ptr, False),
            "stream": self.stream or 1,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, self.device.index

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        if self.device.kind != "cuda":
            raise BufferError(f"{self!r} has no address that others could read")
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError(f"{self!r} is exported without copying, from its own device only")
        if stream != -1:  # -1: the consumer wants no synchronisation; None: legacy default
            self.device.order(stream or 0, self.stream)
        return dlpack.export(
            self,
            self.ptr,
            self.shape,
            self.dtype,
            self.__dlpack_device__(),
            versioned=max_version is not None and max_version[0] >= 1,
        )

    def __del__(self) -> None:
        ptr, self.ptr = getattr(self, "ptr", 0), 0
        if ptr and self._owner is None and not sys.is_finalizing():
            self.device.free(ptr)


_READERS: dict[str, Callable[[Any, str, int], ArrayView]] = {
    "torch": _view_torch,
    "cupy": _view_cupy,
    "jax": _view_jax,
    "numpy": _view_numpy,
    "ptxgen": _view_own,
    "cai": _view_cai,
    "dlpack": _view_dlpack,
}


# -- making results -------------------------------------------------------------------------
def empty(
    like: ArrayView, shape: tuple[int, ...], dtype: str, where: Device, stream: int
) -> tuple[ArrayView, Callable[[], Any]]:
    """Allocates uninitialised row-major memory for a result in the framework of ``like``.

    Returns a view of it, to be written by work on ``stream`` of device ``where``, and a function
    that returns the caller's array; call that after the work has been enqueued. In frameworks whose
    allocators know streams the memory belongs to ``stream``.
    """
    framework = like.framework if like.kind != "host" else "host"
    if framework == "torch":
        torch = sys.modules["torch"]
        if like.kind == META:
            tensor = torch.empty(shape, dtype=getattr(torch, dtype), device=META)
            return view(tensor, "out"), lambda: tensor
        with _torch_stream(torch, like.index, stream):
            tensor = torch.empty(
                shape, dtype=getattr(torch, dtype), device=torch.device("cuda", like.index)
            )
        return view(tensor, "out"), lambda: tensor
    if framework == "cupy":
        cupy: Any = sys.modules["cupy"]
        kind = like.owner.dtype if like.dtype == dtype else dtype  # type: ignore[attr-defined]
        with cupy.cuda.Device(like.index), _cupy_stream(cupy, stream):
            array = cupy.empty(shape, kind)
        return view(array, "out"), lambda: array
    ours = DeviceArray(where, shape, dtype, stream)
    found = view(ours, "out")
    if framework == "jax":
        return found, lambda: importlib.import_module("jax.dlpack").from_dlpack(ours)
    return found, lambda: ours


def _torch_stream(torch: Any, index: int, stream: int) -> Any:
    if torch.cuda.current_stream(index).cuda_stream == stream:
        return nullcontext()
    return torch.cuda.stream(torch.cuda.ExternalStream(stream, device=index))


def _cupy_stream(cupy: Any, stream: int) -> Any:
    if cupy.cuda.get_current_stream().ptr == stream:
        return nullcontext()
    return cupy.cuda.ExternalStream(stream)


# -- host memory ------------------------------------------------------------------------------
class _RawInterface:
    """``__array_interface__`` of host memory, of the type :func:`bits_type`."""

    def __init__(self, source: ArrayView) -> None:
        self._source = source
        self.__array_interface__ = {
            "version": 3,
            "shape": source.shape,
            "strides": tuple(step * source.itemsize for step in source.strides),
            "typestr": ("|" if source.itemsize in (1, 16) else "<") + bits_type(source.itemsize),
            "data": (source.ptr, source.readonly),
        }


def bits_type(itemsize: int) -> str:
    """Returns the NumPy type by which elements are moved bit by bit: unsigned integers, since NumPy
    lacks bfloat16, or plain bytes ("V16") of complex128.
    """
    return f"{'V' if itemsize > 8 else 'u'}{itemsize}"


def host_bits(source: ArrayView) -> Any:
    """Returns a NumPy array of :func:`bits_type` that shares the memory of a host view."""
    import numpy

    if source.size == 0:  # NumPy refuses null pointers
        return numpy.empty(source.shape, bits_type(source.itemsize))
    return numpy.asarray(_RawInterface(source))


def upload(source: ArrayView, where: Device, stream: int) -> ArrayView:
    """Copies a host view to device ``where``, row-major; the copy is enqueued on ``stream``.

    The returned view owns a :class:`DeviceArray` and a packed host copy. Synchronise ``stream``
    before the view is dropped.
    """
    import numpy

    ours = DeviceArray(where, source.shape, source.dtype, stream)
    try:
        packed = numpy.ascontiguousarray(host_bits(source))
    except MemoryError:
        raise DeviceError(
            f"this machine has no memory for a packed copy of {ours.nbytes} bytes"
        ) from None
    if ours.nbytes:
        where.copy_in(ours.ptr, packed.ctypes.data, ours.nbytes, stream)
    return replace(view(ours, ""), framework=source.framework, owner=(ours, packed), after=None)


def download(source: ArrayView, target: ArrayView, where: Device, stream: int) -> None:
    """Copies a row-major device view into a host view, and waits for ``stream``."""
    import numpy

    direct = target.contiguous and source.nbytes > 0
    packed = host_bits(target) if direct else numpy.empty(source.shape, bits_type(source.itemsize))
    if source.nbytes:
        where.copy_out(packed.ctypes.data, source.ptr, source.nbytes, stream)
    where.synchronize(stream)
    if not direct:
        host_bits(target)[...] = packed


def host_empty(like: ArrayView, shape: tuple[int, ...], dtype: str) -> Any:
    """Returns an uninitialised host array in the framework of ``like`` (NumPy unless PyTorch)."""
    if like.framework == "torch":
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtype))
    import numpy

    owner: Any = like.owner
    same = like.framework == "numpy" and like.dtype == dtype
    try:
        return numpy.empty(shape, owner.dtype if same else dtype)
    except TypeError as error:
        raise DtypeError(
            f"NumPy knows no dtype {dtype}; import ml_dtypes and pass its arrays, or pass out="
        ) from error


def common_device(views: dict[str, ArrayView]) -> Device | None:
    """Returns the device of all ``views`` (by argument name); None if they are in host memory.

    Raises DeviceError, naming two arguments, if they are on different devices.
    """
    (first, lead), *others = views.items()
    for name, other in others:
        if (other.kind, other.index) == (lead.kind, lead.index):
            continue
        moved, target = (first, other) if lead.kind == "host" else (name, lead)
        hint = (
            f"move {moved} to {target.where}"
            if "host" in (lead.kind, other.kind)
            else "all arguments of a call must be on one device"
        )
        raise DeviceError(f"{first} is in {lead.where}, {name} in {other.where}; {hint}")
    return None if lead.kind == "host" else get_device(f"{lead.kind}:{lead.index}")
