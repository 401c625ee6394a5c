"""Products with NF4 weights in PTX: each kernel on the CPU device, their text, and f64 sums."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bits import operand, same_bits
from quantized_ptx_cases import SEED, check_chains

import ptxgen
from ptxgen import nf4, reference
from ptxgen.build.compile import compile_cubin, compile_ptx
from ptxgen.build.ptx import carrier, is_ptx, retargeted
from ptxgen.build.render import render
from ptxgen.cli import main
from ptxgen.errors import CompileError, OptionError, SpecError
from ptxgen.golden import read_by_people
from ptxgen.numerics.contract import ACTIVATIONS, FMA
from ptxgen.numerics.quantized import WIDE
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.spec import ARCHITECTURES
from ptxgen.spec.base import PTX_TARGETS
from ptxgen.spec.quantized_ptx import FinishSpec, QuantizedMmaSpec, QuantizedPtxSpec
from ptxgen.tiles import SPECS, TABLES
from ptxgen.tiles.quantized_ptx import NAMED

WRITTEN = {name: s for name, s in SPECS.items() if s.ptx_since} | {
    spec.name: spec for spec in NAMED.values()
}
"""Every kernel that is written in PTX."""


# -- bits -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(NAMED))
def test_kernels_with_short_names(name):
    """Edges, chunks, and special values; test_interp_kernels.py has those of the tables."""
    spec = NAMED[name]
    if spec.layout == "NT":
        check_chains(spec, spec.bm + 3, 37, 192, 48, pitch=196)
        check_chains(spec, 3, 9, 128, 128, "special")
    else:
        check_chains(spec, spec.bm + 3, 64, 39, 16, pitch=44)
        check_chains(spec, 3, 128, 9, 9, "special", pitch=12)


def test_a_cta_takes_several_tiles_of_rows():
    """A CTA takes several tiles of rows if there are more than 512; here a tile is one row."""
    check_chains(QuantizedPtxSpec("NT", bm=1, tm=1, tn=1, warps=1, contract=WIDE), 1100, 3, 64, 64)


# -- sums in f64 ------------------------------------------------------------------------


def problem(m, n, k, kind="normal"):
    rng = np.random.default_rng([SEED, m, n, k])
    q = nf4.quantize(operand(rng, (n, k), kind))
    return (*(operand(rng, (m, size), kind) for size in (k, n)), operand(rng, (n,), kind), q)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 64), (7, 70, 128)])
def test_sums_in_f64(m, n, k):
    x, dy, bias, q = problem(m, n, k, "cancelling")
    with ptxgen.use_device(CpuDevice()):
        for activation in (None, *ACTIVATIONS):
            options = {"accumulate": "f64", "activation": activation}
            y = nf4.linear(x, q, bias, **options)
            same_bits(
                y, reference.quantized_linear(x, q, bias, **options), seed=SEED, what=activation
            )
        dx = nf4.linear_dgrad(dy, q, accumulate="f64")
    same_bits(dx, reference.quantized_linear_dgrad(dy, q, accumulate="f64"), seed=SEED)


def test_sums_in_f64_round_once():
    """Accumulation in f64 gives 2^24 + 1 - 2^24 = 1, which a chain in f32 loses."""
    w = np.zeros((1, 64), np.float32)
    w[0, :3] = 1
    x = np.zeros((1, 64), np.float32)
    x[0, :3] = 2**24, 1, -(2**24)
    q = nf4.quantize(w)
    with ptxgen.use_device(CpuDevice()):
        assert nf4.linear(x, q, accumulate="f64") == 1
        assert nf4.linear(x, q) == 0


def test_sums_in_f64_from_and_into_any_rows():
    """Rows apart and off 16 bytes; a row has its bits in any batch; empty batches and sums."""
    x, dy, bias, q = problem(20, 11, 128)
    wide, out = np.zeros((20, 133), np.float32), np.full((20, 17), np.nan, np.float32)
    wide[:, 3:131] = x
    options = {"accumulate": "f64", "activation": "silu"}
    empty = nf4.Weight(q.data[:0], q.scales[:0], 0, 128)
    with ptxgen.use_device(CpuDevice()):
        y = nf4.linear(x, q, bias, **options)
        same_bits(nf4.linear(wide[:, 3:131], q, bias, out=out[:, 2:13], **options), y)
        assert np.isnan(out[:, :2]).all() and np.isnan(out[:, 13:]).all()
        same_bits(nf4.linear(x[4:5], q, bias, **options), y[4:5])
        same_bits(nf4.linear(x.reshape(2, 10, 128), q, bias, **options), y.reshape(2, 10, 11))
        assert nf4.linear(x[:0], q, accumulate="f64").shape == (0, 11)
        got = nf4.linear_dgrad(dy[:, :0], empty, accumulate="f64")
        same_bits(got, np.zeros((20, 128), np.float32))


def test_a_kernel_of_f64_sums_serves_no_others():
    x, _, _, q = problem(3, 5, 64)
    name = TABLES["quantized", "NT", "chunks", "f32", "f64"].routes[0].name
    message = "of tier 'f64', which tier= .accumulate= of quantized weights. asks for; got 'simt'"
    with ptxgen.use_device(CpuDevice()), pytest.raises(OptionError, match=message):
        nf4.linear(x, q, kernel=name)


def test_finish_refuses_what_it_cannot_be():
    with pytest.raises(SpecError, match="whole warps: 48 vs 32"):
        FinishSpec(cta_threads=48)


# -- the text ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_nothing_is_shared(name):
    """No shared memory, no barrier, no atomic; a look-up is a tree of 15 or one shuffle."""
    spec, text = WRITTEN[name], render(WRITTEN[name])
    assert not re.search(r"\.shared|\bbar\b|barrier|\batom|\bred\b", text)
    found = text.count("mul.rn.f32"), text.count("selp.f32 %pick"), text.count("shfl.sync.idx")
    looked_up = found[0]
    assert looked_up > 0
    select = looked_up, 15 * looked_up, 0
    assert found == (select if spec.lookup == "select" else (looked_up, 15, looked_up))
    exchanges = isinstance(spec, QuantizedMmaSpec) and spec.align_a == 16
    vectors = spec.tm * spec.prefetch // 2 if exchanges else 0
    assert text.count("shfl.sync") == found[2] + 4 * vectors  # of A, which four lanes transpose
    assert name not in read_by_people(WRITTEN.values())


def ptxas():
    """An assembler, if there is one: in the path, or in the package that brings it."""
    packaged = (found for path in sys.path for found in Path(path).glob("nvidia/*/bin/ptxas"))
    return shutil.which("ptxas") or next(packaged, None)


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_the_assembler_takes_it_for_every_architecture(name, tmp_path):
    """A kernel for all that the assembler knows, the others, and without one all, for three."""
    spec, text = WRITTEN[name], render(WRITTEN[name])
    if (assembler := ptxas()) is None:
        for arch in ("sm_80", "sm_90a", "sm_120"):
            if spec.runs_on(arch.rstrip("a")):
                assert compile_cubin(text, name=name, arch=arch).resources
        return
    said = subprocess.run([assembler, "--help"], capture_output=True, text=True).stdout
    allowed = re.search(r"--gpu-name.*?Allowed values[^:]*:(.*?)\.\s", said, re.DOTALL)
    known = set(re.findall(r"'(sm_\w+)'", allowed[1]))
    served = [*PTX_TARGETS][[*PTX_TARGETS].index(spec.ptx_since) :]
    tried = [target for target in served if target in known]
    assert {"sm_90", "sm_90a", "sm_120"} <= set(tried)
    if spec != NAMED["nf4_gemm"]:
        tried = [tried[0], "sm_90", tried[-1]]
    for target in dict.fromkeys(tried):
        (tmp_path / "kernel.ptx").write_text(retargeted(text, target))
        command = [assembler, f"--gpu-name={target}", "kernel.ptx", "-o", "kernel.cubin"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, (target, done.stderr)


def test_targets():
    text = render(NAMED["nf4_gemm"])
    assert is_ptx(text) and not is_ptx(render(FinishSpec()))
    assert ".version 6.0\n.target sm_70\n" in text
    for name, arch in ARCHITECTURES.items():
        for target in (name, arch.target):
            head = f".version {arch.isa}\n.target {target}\n"
            assert head in retargeted(text, target)
            plain = text.replace(".version 6.0\n.target sm_70\n", head)
            assert retargeted(text, target) == plain
    with pytest.raises(OptionError, match=r"target 'sm_61'; takes sm_70, sm_75, sm_80, .*sm_121"):
        retargeted(text, "sm_61")
    with pytest.raises(OptionError, match=r"target 'sm_80'; takes sm_90, sm_90a, sm_100"):
        retargeted(render(QuantizedMmaSpec("NT")), "sm_80")


def test_compiling_ptx_is_retargeting_and_assembling():
    """No NVRTC for PTX; its assembler's resources for a cubin, and its refusals."""
    spec = NAMED["nf4_dgrad"]
    text = render(spec)
    made = compile_ptx(text, name=spec.name, arch="compute_75", cache=None)
    assert made.text.strip() == retargeted(text, "sm_75").strip()
    cubin = compile_cubin(text, name=spec.name, arch="sm_90a", cache=None)
    assert cubin.resources.shared == cubin.resources.barriers == 0
    assert cubin.resources.registers > 64
    broken = text.replace("fma.rn.f32", "fma.rn.f31")
    with pytest.raises(CompileError, match="ptxas"):
        compile_cubin(broken, name=spec.name, arch="sm_90a", cache=None)
    with pytest.raises(CompileError, match="not one kernel"):
        carrier(text.replace(".maxntid", ".reqntid"))
    with pytest.raises(CompileError, match="parameter 3 is other"):
        carrier(text.replace(f"{spec.name}_param_3,", "other,"))


def test_render_by_short_name(capsys):
    assert main(["render", "nf4_gemm", "--target", "sm_75"]) == 0
    shown = capsys.readouterr().out
    assert shown.strip() == retargeted(render(NAMED["nf4_gemm"]), "sm_75").strip()
    assert main(["render", FinishSpec().name, "--target", "sm_90"]) != 0
    assert "is written in CUDA C++; pass --ptx" in capsys.readouterr().err


# -- specs ------------------------------------------------------------------------------


def test_a_spec_refuses_what_it_cannot_be():
    for kind, bad, why in (
        (QuantizedPtxSpec, {"layout": "TN"}, "layout: TN vs"),
        (QuantizedPtxSpec, {"lookup": "guess"}, "lookup: guess vs"),
        (QuantizedPtxSpec, {"prefetch": 3}, "prefetch: 3 vs"),
        (QuantizedPtxSpec, {"align_a": 8}, "align_a: 8 vs"),
        (QuantizedPtxSpec, {"bm": 20}, "whole warps along m: 20 vs 8"),
        (QuantizedPtxSpec, {"bm": 48}, "whole warps along n: 4 vs 6"),
        (QuantizedPtxSpec, {"tn": 3}, "tn: 3 vs"),
        (QuantizedPtxSpec, {"layout": "NN", "tn": 2}, r"tn: 2 vs \(4, 8\)"),
        (QuantizedPtxSpec, {"min_arch": "sm_70"}, "min_arch: sm_70 vs"),
        (QuantizedMmaSpec, {"contract": FMA}, "contract: fma/3 vs wide/1"),
        (QuantizedMmaSpec, {"tm": 1, "bm": 32}, "tm: 1 vs"),
        (QuantizedMmaSpec, {"tn": 1}, "tn: 1 vs"),
        (QuantizedMmaSpec, {"align_a": 16}, "prefetch: 1 vs >= 2"),
        (QuantizedMmaSpec, {"min_arch": "sm_100"}, "min_arch: sm_100 vs sm_90"),
    ):
        with pytest.raises(SpecError, match=why):
            kind(**{"layout": "NT", **bad})


def test_tensor_cores_only_where_they_were_measured():
    spec = QuantizedMmaSpec("NT")
    assert [arch for arch in ARCHITECTURES if spec.runs_on(arch)] == ["sm_90"]
    for layout in ("NT", "NN"):
        filler = TABLES["quantized", layout, "chunks", "f32", "f64"].routes[-1].main
        assert all(filler.runs_on(arch) for arch in ARCHITECTURES)
