"""Products with NF4 weights in PTX: each kernel on the CPU device, their text, and the operations."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess

import numpy as np
import pytest
from bits import operand, same_bits
from interp_launch import Matrix

from ptxgen import nf4, reference
from ptxgen.build.compile import compile_ptx
from ptxgen.build.render import render
from ptxgen.golden import targets
from ptxgen.numerics.nf4 import WIDE
from ptxgen.ops.launch import parameters
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec import Step
from ptxgen.spec.nf4_ptx import Nf4PtxSpec

SEED = 18


def image(spec):
    return lambda _: compile_ptx(render(spec), name=spec.name, arch=targets(spec)[-1]).image


def chains(x, w, chunk, wide):
    """The sums of the chunks of ``x @ w.T``, one product after another."""
    found = []
    for begin in range(0, x.shape[1], chunk):
        acc = np.zeros((len(x), len(w)), "f8" if wide else "f4")
        for k in range(begin, min(begin + chunk, x.shape[1])):
            left, right = x[:, k, None], w[None, :, k]
            acc = left.astype("f8") * right + acc if wide else reference.fma(left, right, acc)
        found.append((acc + acc.dtype.type(0)).astype("f4"))
    return np.concatenate(found)


def check(spec, m, n, k, chunk, kind="normal", pitch=0, offset=0):
    """Runs a kernel on a weight of N rows of K (NT) or of K rows of N (NN)."""
    rng = np.random.default_rng([SEED, m, n, k])
    rows, length = (n, k) if spec.layout == "NT" else (k, n)
    q = nf4.quantize(operand(rng, (rows, length), kind))
    w, x = nf4.dequantize(q), operand(rng, (m, k), kind)
    with np.errstate(all="ignore"):
        expected = chains(
            x, w if spec.layout == "NT" else w.T, chunk, spec.accumulator == "f64"
        )
    device = CpuDevice()
    chunks = -(-k // chunk)
    given = {
        "a": Matrix(device.memory, "a", x.shape, x, pitch=pitch, offset=offset),
        "data": Matrix(device.memory, "data", (rows, length // 2), q.operands[0], dtype="u1"),
        "scales": Matrix(device.memory, "scales", q.operands[1].shape, q.operands[1]),
        "c": Matrix(device.memory, "c", (chunks * m, n), band=64),
    }
    sizes = {"M": m, "N": n, "K": k, "CHUNK": chunk, "CHUNKS": chunks}
    told = {"lda": given["a"].pitch, "ldc": n} | {name.lower(): v for name, v in sizes.items()}
    prepared = device.prepare(
        device.kernel(spec.name, image(spec), 0),
        (spec.grid.evaluate(sizes), 1, 1), (spec.threads, 1, 1),
        parameters(Step(spec), tuple(given), told), len(given), "nf4", False,
    )  # fmt: skip
    prepared.fire(0, *(matrix.ptr for matrix in given.values()))
    same_bits(given["c"].values, expected, seed=SEED, spec=spec.name, what=f"{m} {n} {k}")
    assert given["c"].intact()
