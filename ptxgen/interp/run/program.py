"""Launchable kernels: decoded segments, and initial register contents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.errors import DeviceError
from ptxgen.interp.memory.allocations import GlobalMemory
from ptxgen.interp.run import instructions
from ptxgen.interp.text.ptx import WARP, Module, parse
from ptxgen.interp.units.kernel import DEFINED, Block, Kernel, extend
from ptxgen.interp.units.sync import Wave
from ptxgen.spec.base import CPU_DEVICE_SMS

Array = NDArray[Any]
CACHE_LIMIT = 1 << 16
"""Most PTX statements of all cached programs; a program takes about 3 KB per statement."""

GPC_SMS = (16,) * 7 + (8,)
"""Least numbers of SMs in the GPCs of a GPU of :data:`CPU_DEVICE_SMS` SMs. The CTAs of a cluster of
more than two share a GPC; an H200 holds 15 clusters of eight."""

_cache: dict[tuple[str, str, int], Program] = {}
"""Cache of :func:`decode`, least recently used first; programs that any device can run."""


def decode(text: str, name: str, memory: GlobalMemory, compute: int) -> Program:
    """Decodes kernel ``name`` of a PTX text for a device with ``memory``, with a cache.

    Devices share programs, which hold no state of a launch; one that contains the address of a
    variable in global memory is decoded for each device. Threads may call this concurrently; there
    is no lock, which a fork could copy while it is held.
    """
    key = text, name, compute
    found = _cache.pop(key, None)
    if found is None:
        found = Program(parse(text, f"{name}.ptx"), name, memory, compute)
        if found.is_bound:
            return found
    _cache[key] = found
    size = sum(len(program.entry.body) for program in list(_cache.values()))
    for old in list(_cache)[:-1]:
        if size <= CACHE_LIMIT:
            break
        dropped = _cache.pop(old, None)
        size -= len(dropped.entry.body) if dropped else 0
    return found


class Program(Kernel):
    """Decoded kernel ``name`` of a module, for a GPU of compute capability ``compute`` (90 for
    9.0).
    """

    def __init__(self, module: Module, name: str, memory: GlobalMemory, compute: int) -> None:
        entry = module.entries.get(name)
        if entry is None:
            there = ", ".join(module.entries) or "no kernel"
            raise DeviceError(f"{module.file} has no kernel {name}; it has {there}")
        check_target(module, compute)
        super().__init__(module, entry, memory, compute)
        segments = self.flow.segments
        blocks = [Block(s) for s in segments]
        for segment, block in zip(segments, blocks, strict=True):
            if segment.following is not None:
                block.following = blocks[segment.following.index]
            if segment.target is not None:
                block.target = blocks[segment.target.index]
        for segment, block in zip(segments, blocks, strict=True):
            instructions.decode_segment(self, block, segment.kind)
        self._constants += [(slot, DEFINED) for slot in self.origins.values()]
        for number, name in enumerate(self.flow.unwritten, start=1):
            anything = np.zeros(1, self.dtype(name))
            origin = np.array([number], DEFINED.dtype)
            self._constants += [(self.slot(name), anything), (self.origins[name], origin)]
        a_sm = int(self.entry.directives.get("minnctapersm", (1,))[0])
        groups = GPC_SMS if self.cluster > 2 else (CPU_DEVICE_SMS,)
        self.resident_clusters = max(sum(sms * a_sm // self.cluster for sms in groups), 1)
        """Clusters that a GPU certainly runs at the same time: a CTA on each SM, or as many as the
        kernel states (.minnctapersm). Only these may wait for each other.
        """
        self.blocks = sorted(blocks, key=lambda b: b.order)
        self.entry_order = blocks[0].order

    def shared_bytes(self, dynamic: int) -> int:
        """Returns the bytes of shared memory per CTA: static variables, then ``dynamic`` bytes."""
        return self.static_shared + dynamic

    def check_block(self, block: tuple[int, int, int]) -> None:
        """Raises DeviceError if a block of this size violates the kernel's .reqntid or .maxntid."""
        most = self.entry.directives.get("maxntid")
        exact = self.entry.directives.get("reqntid")
        if exact is not None and tuple(exact) != block:
            raise DeviceError(f"{self.name} takes blocks of {tuple(exact)}, got {block}")
        if most is not None and int(np.prod(block)) > int(np.prod(most)):
            raise DeviceError(
                f"{self.name} takes at most {int(np.prod(most))} threads (.maxntid), got {block}"
            )

    def registers(self, wave: Wave) -> list[Any]:
        """Returns a wave's register slots with their initial values."""
        found: list[Any] = [None] * self._count
        for slot, value in self._constants:
            found[slot] = value
        for slot, name in self._specials:
            found[slot] = special(self, wave, name)
        for slot, offset, dtype, signed, register in self._parameters:
            raw = np.frombuffer(wave.params, dtype, 1, offset)
            found[slot] = extend(raw, signed, register)
        return found


def check_target(module: Module, compute: int) -> None:
    """Raises DeviceError unless a GPU of compute capability ``compute`` (90 for 9.0) can run the
    module.
    """
    digits = module.target.removeprefix("sm_")
    number = int(digits.rstrip("af"))
    own = digits.endswith("a")
    family = digits.endswith("f")
    fits = number == compute if own else number <= compute
    if family:
        fits = number <= compute and number // 10 == compute // 10
    if not fits:
        raise DeviceError(
            f"{module.file} is for {module.target}; this device is a model of sm_{compute}"
        )
    if module.address_size != 64:
        raise DeviceError(f"{module.file} has {module.address_size}-bit addresses; takes 64")


def special(program: Program, wave: Wave, name: str) -> Array:
    """Returns the value of a special register: one element per lane, or one if uniform."""
    base, _, axis = name[1:].partition(".")
    at = "xyz".index(axis) if axis else 0
    if base in ("ntid", "nctaid"):
        return np.array([(wave.block if base == "ntid" else wave.grid)[at]], np.uint32)
    if base == "tid":
        x, y, _ = wave.block
        return (wave.thread // (1, x, x * y)[at] % (x, y, 1 << 30)[at]).astype(np.uint32)
    size = program.entry.directives.get("reqnctapercluster", (1, 1, 1))
    if base in ("ctaid", "clusterid", "cluster_ctaid", "cluster_ctarank"):
        # A cluster's CTAs are consecutive here, whatever its shape.
        flat = np.array(wave.ctas, np.int64) if len(wave.ctas) > 1 else np.array([wave.ctas.start])
        shape = tuple(g // s for g, s in zip(wave.grid, size, strict=True))
        index, rank = flat // wave.cluster, flat % wave.cluster
        inner = (rank % size[0], rank // size[0] % size[1], rank // (size[0] * size[1]))
        outer = (index % shape[0], index // shape[0] % shape[1], index // (shape[0] * shape[1]))
        if base == "cluster_ctarank":
            value = rank
        elif base == "clusterid":
            value = outer[at]
        elif base == "cluster_ctaid":
            value = inner[at]
        else:
            value = outer[at] * size[at] + inner[at]
        if len(flat) == 1:
            return value.astype(np.uint32)
        return np.repeat(value, wave.threads).astype(np.uint32)
    lane = (wave.lanes % WARP).astype(np.uint32)
    one = np.uint32(1)
    exact: dict[str, Callable[[], Array]] = {
        "laneid": lambda: lane,
        "warpid": lambda: (wave.thread // WARP).astype(np.uint32),
        "nwarpid": lambda: np.array([wave.threads // WARP], np.uint32),
        "lanemask_eq": lambda: one << lane,
        "lanemask_lt": lambda: (one << lane) - one,
        "lanemask_le": lambda: ((one << lane) - one) | (one << lane),
        "lanemask_gt": lambda: ~(((one << lane) - one) | (one << lane)),
        "lanemask_ge": lambda: ~((one << lane) - one),
        "cluster_nctarank": lambda: np.array([wave.cluster], np.uint32),
        "cluster_nctaid": lambda: np.array([size[at]], np.uint32),
        "nclusterid": lambda: np.array([wave.grid[at] // size[at]], np.uint32),
        "is_explicit_cluster": lambda: np.array([wave.cluster > 1]),
        "dynamic_smem_size": lambda: np.array(
            [wave.shared_limit - program.shared_bytes(0)], np.uint32
        ),
        "total_smem_size": lambda: np.array([wave.shared_limit], np.uint32),
    }
    return exact[base]()
