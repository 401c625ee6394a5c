"""Cases for kernels of NF4 products in PTX: chains alone, and the operations they serve."""

from __future__ import annotations

import functools

import numpy as np
from bits import KINDS, operand, same_bits
from interp_launch import Matrix

import ptxgen
from ptxgen import nf4, reference
from ptxgen.build.compile import compile_ptx
from ptxgen.build.render import render
from ptxgen.build.targets import portable_target
from ptxgen.program.launch import parameters
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec import Step
from ptxgen.tiles import SPECS

SEED = 18


def chains(x, w, chunk, wide):
    """The sums of the chunks of ``x @ w.T``, each one product after another."""
    found = []
    for begin in range(0, x.shape[1], chunk):
        acc = np.zeros((len(x), len(w)), "f8" if wide else "f4")
        for k in range(begin, min(begin + chunk, x.shape[1])):
            left, right = x[:, k, None], w[None, :, k]
            acc = left.astype("f8") * right + acc if wide else reference.fma(left, right, acc)
        found.append((acc + acc.dtype.type(0)).astype("f4"))
    return np.concatenate(found)


def check_chains(spec, m, n, k, chunk, kind="normal", pitch=0, offset=0):
    """Runs a kernel alone: all chunks of C[M, N], from rows of A that lie ``pitch`` apart."""
    rng = np.random.default_rng([SEED, m, n, k])
    product = spec.layout == "NT"
    rows, length = (n, k) if product else (k, n)
    q = nf4.quantize(operand(rng, (rows, length), kind))
    x, w = operand(rng, (m, k), kind), nf4.dequantize(q)
    with np.errstate(all="ignore"):
        expected = chains(x, w if product else w.T, chunk, spec.accumulator == "f64")
    device = CpuDevice()
    given = {
        "a": Matrix(device.memory, "a", x.shape, x, pitch=pitch, offset=offset),
        "data": Matrix(device.memory, "data", (rows, length // 2), q.operands[0], dtype="u1"),
        "scales": Matrix(device.memory, "scales", q.operands[1].shape, q.operands[1]),
        "c": Matrix(device.memory, "c", expected.shape, band=64),
    }
    sizes = {"M": m, "N": n, "K": k, "CHUNK": chunk, "CHUNKS": -(-k // chunk)}
    told = {"lda": given["a"].pitch, "ldc": n} | {name.lower(): v for name, v in sizes.items()}
    image = compile_ptx(render(spec), name=spec.name, arch=portable_target(spec)).image
    prepared = device.prepare(
        device.kernel(spec.name, lambda _: image, spec.shared_bytes),
        (spec.grid.evaluate(sizes), 1, 1), (spec.threads, 1, 1),
        parameters(Step(spec), tuple(given), told), len(given), "chains", False,
    )  # fmt: skip
    prepared.fire(0, *(matrix.ptr for matrix in given.values()))
    same_bits(given["c"].values, expected, seed=SEED, spec=spec.name, what=f"{m} {n} {k}")
    assert given["c"].intact()


def check_operation(name, m, n, k, kind, activation, device):
    """Runs the route ``name`` on a weight of N rows of K."""
    spec = SPECS[name]
    rng = np.random.default_rng([SEED, m, n, k])
    product, options = spec.layout == "NT", {"accumulate": spec.tier}
    q = nf4.quantize(operand(rng, (n, k), kind))
    x = operand(rng, (m, k if product else n), kind)
    with ptxgen.use_device(device):
        if product:
            bias = operand(rng, (n,), kind) if activation else None
            options["activation"] = activation
            got = nf4.linear(x, q, bias, kernel=name, **options)
            expected = reference.quantized_linear(x, q, bias, **options)
        else:
            got = nf4.linear_dgrad(x, q, kernel=name, **options)
            expected = reference.quantized_linear_dgrad(x, q, **options)
    same_bits(got, expected, seed=SEED, spec=name, what=f"{m} {n} {k} {kind}")


def products(name):
    """Beyond a tile, within one, the least problem, a long or empty reduction; any left over."""
    spec = SPECS[name]
    turn = sorted(n for n in SPECS if isinstance(SPECS[n], type(spec))).index(name)
    high, low, wide = spec.bm + 1, max(spec.bm - 3, 1), spec.bn + 1
    step = spec.align_a // 4
    f64, found = spec.tier == "f64", []
    if spec.layout == "NT":
        shapes = [(high, wide, 64), (low, 5, 128), (1, 1, 64), (2, 3, 192 if f64 else 2112)]
    else:
        wide, unit = -(-wide // 64) * 64, spec.unit
        step = max(step, unit)
        shapes = [(high, max(7 + step // 4, unit), wide), (low, 9 * step, 64), (1, step, 64)]
        shapes.append((2, (unit > 1) * unit if f64 else 2100, 64))
        k, chunk = max(23, 3 * unit), max(23, 3 * unit) if f64 else 16
        found += [
            lambda device: check_chains(spec, 3, 128, k, chunk, pitch=k + 1 if unit == 1 else k)
        ]
    kinds = [kind for kind in KINDS if kind != "special"]
    return found + [
        functools.partial(
            check_operation, name, *shape, kinds[(turn + i) % len(kinds)], (None, "gelu")[i % 2]
        )
        for i, shape in enumerate(shapes)
    ]
