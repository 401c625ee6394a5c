"""Saved programs: loaded again they have the same bits, and what is damaged is refused by name."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from bits import difference

import ptxgen
from ptxgen import dispatch, graph
from ptxgen import functions as f
from ptxgen.build import compile, render
from ptxgen.errors import DeviceError, DtypeError, SavedError, ShapeError, TraceError
from ptxgen.numerics.versions import versions
from ptxgen.ops import OPERATIONS
from ptxgen.program import launch, saved
from ptxgen.program.buffer import INPUT, Buffer, Memory, imagined
from ptxgen.program.build import ProgramBuilder
from ptxgen.program.execute import plan
from ptxgen.program.place import elements, put
from ptxgen.program.recorded import recorded
from ptxgen.program.replay import Owned
from ptxgen.runtime import get_device
from ptxgen.runtime.cpu import CpuDevice
from ptxgen.tiles import TABLES

RNG = np.random.default_rng(3)


def drawn(*shape: int, dtype: str = "f4") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


@pytest.fixture(autouse=True)
def cpu():
    with ptxgen.use_device("cpu"):
        yield


W, BIAS, GAIN = drawn(64, 32), drawn(32), drawn(32)


def layer(x):
    y = ptxgen.layer_norm(ptxgen.linear(x, W, BIAS, activation="gelu", layout="kn"), GAIN, BIAS)
    return ptxgen.softmax(f.mul(y, 2.0)), f.add(y, x[:, :32]), None, y.T


def several(found):
    return found if isinstance(found, tuple) else (found,)


def same(found, expected) -> None:
    for a, b in zip(several(found), several(expected), strict=True):
        assert (a is None) == (b is None)
        assert a is None or (a.dtype == b.dtype and not difference(a, b))


def half(*shape: int) -> np.ndarray:
    return drawn(*shape).astype(ml_dtypes.bfloat16)


def by_tensor_maps(x, w):
    """A product whose kernel copies by tensor maps."""
    found = ptxgen.explain("linear", 64, 64, 64, dtype="bf16", tier="tc", layout="kn")
    (name, *_) = (c.name for c in found.also_correct if c.name.startswith("wgmma"))
    return ptxgen.linear(x, w, tier="tc", kernel=name, layout="kn")


COMPOSED = {
    "softmax": (lambda x: ptxgen.softmax(x), drawn(5, 300)),
    "linear": (by_tensor_maps, half(64, 64), half(64, 64)),
    "split": (lambda x, w: ptxgen.linear(x, w, layout="kn"), drawn(1, 4096), drawn(4096, 32)),
    "layer_norm": (lambda x, g: ptxgen.layer_norm(x, g, g), drawn(3, 77), drawn(77)),
    "attention": (
        lambda q, k, v: ptxgen.attention(q, k, v, causal=True),
        *(half(1, 2, 40, 32) for _ in "qkv"),
    ),
    "group_norm": (lambda x, g: ptxgen.group_norm(x, 2, g, g), drawn(2, 6, 35), drawn(6)),
}


def maps_of(launched):
    return [box for each in launched.prepared for box in each.params.maps]


@pytest.mark.parametrize("name", COMPOSED)
def test_what_is_loaded_has_the_bits_of_what_was_saved(name: str, tmp_path: Path) -> None:
    function, *arrays = COMPOSED[name]
    captured = ptxgen.capture(function, *arrays)
    captured.save(tmp_path / "it")
    loaded = ptxgen.load(tmp_path / "it")
    expected = function(*arrays)
    for _ in range(2):
        same(captured(*arrays), expected)
        same(loaded(*arrays), expected)
    maps = [box for each in captured._of.steps for p in each.launches for box in maps_of(p)]
    assert (name == "linear") == bool(maps)
    assert str(loaded.program) == str(captured.program) and repr(loaded) == repr(captured)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "it").read_bytes()


def test_arrays_from_outside_are_in_the_file_or_given(tmp_path: Path) -> None:
    captured = ptxgen.capture(layer, drawn(8, 64))
    assert [x is y for x, y in zip(captured.outside, (W, BIAS, GAIN), strict=True)] == [True] * 3
    x = drawn(8, 64)
    expected = captured(x)
    captured.save(tmp_path / "with")
    captured.save(tmp_path / "without", arrays=False)
    assert [n for n in zipfile.ZipFile(tmp_path / "without").namelist() if "arrays" in n] == []
    same(ptxgen.load(tmp_path / "with")(x), expected)
    same(ptxgen.load(tmp_path / "without", arrays=captured.outside)(x), expected)
    other = ptxgen.load(tmp_path / "with", arrays=(W, BIAS * 2, GAIN))
    assert difference(other(x)[1], expected[1])
    for arrays, error, says in [
        (None, SavedError, "saved without its arrays; pass arrays= for outside0, outside1, outs"),
        ((W, BIAS), SavedError, "reads 3 arrays; got arrays= of 2"),
        ((W.T, BIAS, GAIN), ShapeError, r"outside0 has shape \[32, 64\]; takes \[64, 32\]"),
        ((W, BIAS.astype("f8"), GAIN), DtypeError, "outside1 has dtype float64; takes float32"),
    ]:
        with pytest.raises(error, match=says):
            ptxgen.load(tmp_path / "without", arrays=arrays)


def test_nothing_is_traced_chosen_rendered_or_compiled(tmp_path: Path, monkeypatch) -> None:
    captured = ptxgen.capture(layer, drawn(8, 64))
    captured.save(tmp_path / "it")
    x = drawn(8, 64)
    expected = captured(x)

    def refused(*_, **__):
        raise AssertionError("this is done ahead of time")

    for module, name in [
        (render, "source"),
        (compile, "_get_or_build"),
        (dispatch, "candidates"),
        (launch, "choose"),
        (launch, "candidates"),
        (launch, "_built"),
    ]:
        monkeypatch.setattr(module, name, refused)
    anew = CpuDevice()
    with pytest.raises(AssertionError):
        launch.prepare(captured.program.steps[0].problem, ("a",), anew)
    with ptxgen.use_device(anew):
        loaded = ptxgen.load(tmp_path / "it")
        same(loaded(x), expected)
        str(loaded.program)
    assert anew.loaded() == (), "what a file has is not what others ask for by name"


def test_a_process_that_only_loads_compiles_nothing(tmp_path: Path) -> None:
    captured = ptxgen.capture(layer, drawn(8, 64))
    captured.save(tmp_path / "it")
    x = drawn(8, 64)
    np.save(tmp_path / "x.npy", x)
    code = f"""
import sys, numpy, ptxgen
with ptxgen.use_device("cpu"):
    found = ptxgen.load({str(tmp_path / "it")!r})(numpy.load({str(tmp_path / "x.npy")!r}))
numpy.save({str(tmp_path / "y.npy")!r}, found[0])
print([m for m in sys.modules if m in ("jinja2", "cuda", "z3") or "generated" in m])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert not difference(np.load(tmp_path / "y.npy"), captured(x)[0])


# -- what is refused ----------------------------------------------------------------------------
@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "it"
    with ptxgen.use_device("cpu"):
        ptxgen.capture(layer, drawn(8, 64)).save(path)
    return path


def rewritten(file: Path, to: Path, change, *, comment=None, parts=()) -> Path:
    """The file with another program.json, properly signed, and some parts replaced."""
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(to, "w") as new:
        text = json.loads(old.read(saved.PROGRAM))
        change(text)
        program = json.dumps(text).encode()
        signed = f"ptxgen program {saved.FORMAT} {hashlib.sha256(program).hexdigest()}"
        new.comment = (comment or signed).encode()
        for name in old.namelist():
            data = program if name == saved.PROGRAM else old.read(name)
            new.writestr(name, dict(parts).get(name, data))
    return to


def test_a_file_for_something_else_is_refused_by_name(file: Path, tmp_path: Path) -> None:
    def refused(says: str, change=lambda text: None, **how) -> None:
        with pytest.raises(SavedError, match=says):
            ptxgen.load(rewritten(file, tmp_path / "it", change, **how))

    def of(**how):
        return lambda text: text["for"].update(how)

    ptxgen.load(rewritten(file, tmp_path / "it", lambda text: None))
    refused(r"has ptx for sm_80; cpu:0 \(PTX interpreter\) takes ptx for sm_90a", of(arch="sm_80"))
    refused("has cubin for sm_90a; cpu:0", of(image="cubin"))
    refused(f"has format 1; takes format {saved.FORMAT}", comment="ptxgen program 1 0")
    refused("is not marked as one", comment="something else")
    unsigned = f"ptxgen program {saved.FORMAT} {'0' * 64}"
    refused("program.json is not what was saved", comment=unsigned)
    old = lambda text: text.update(contracts=["fma/1", *text["contracts"][1:]])  # noqa: E731
    refused("has the bits of contract fma/1; here is fma/3", old)
    refused("contract fmb/1; here is none", lambda text: text.update(contracts=["fmb/1"]))
    refused("kernels/1 is not what was saved", parts={"kernels/1": b".version 8.0"}.items())
    refused("arrays/outside0 is not what was", parts={"arrays/outside0": bytes(8192)}.items())
    nine = lambda text: text["parts"].update({"kernels/9": "0" * 64})  # noqa: E731
    refused("malformed: parts is with 'kernels/9'", nine)
    refused("malformed: program.json is without steps; takes", lambda text: text.pop("steps"))


def read(path: Path):
    with saved.opened(path, get_device("cpu")) as found:
        return found.listing(), list(found.arrays())


def test_no_cut_or_altered_file_is_taken_for_what_it_was(file: Path, tmp_path: Path) -> None:
    """Either it is refused as such, or its parts are what they were."""
    whole, path = file.read_bytes(), tmp_path / "it"
    for length in (0, 1, 100, *range(500, len(whole), len(whole) // 20), len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(SavedError, match="altered"):
            ptxgen.load(path)
    before, taken = read(file), 0
    for at in RNG.integers(0, len(whole), 200):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << RNG.integers(8)]) + whole[at + 1 :])
        try:
            found = read(path)
        except SavedError:
            continue
        taken += 1
        assert found[0] == before[0]
        pairs = zip(found[1], before[1], strict=True)
        assert all((a == b).all() for a, b in pairs)
    assert taken < 20
    with pytest.raises(SavedError, match="No such file"):
        ptxgen.load(tmp_path / "missing")
    with pytest.raises(SavedError, match="cannot be written"):
        ptxgen.capture(f.neg, BIAS).save(tmp_path / "missing" / "it")


def test_a_loaded_program_is_on_its_device(file: Path) -> None:
    loaded = ptxgen.load(file)
    with ptxgen.use_device(CpuDevice()), pytest.raises(DeviceError, match="layer is on cpu:0"):
        loaded(drawn(8, 64))
    with pytest.raises(ShapeError, match=r"x has shape \[4, 64\]; takes \[8, 64\]"):
        loaded(drawn(4, 64))


def test_the_contracts_of_all_kernels_are_known() -> None:
    kernels = (k for table in TABLES.values() for route in table.routes for k in route.kernels)
    assert {str(k.contract) for k in kernels} <= {f"{n}/{v}" for n, v in versions().items()}


def test_programs_are_captured_by_themselves(tmp_path: Path) -> None:
    x, y = drawn(4, 8), drawn(4, 8)
    program = graph.trace(lambda x, y: (ptxgen.softmax(f.add(x, y)), f.mul(x, y)), x, y)
    captured = ptxgen.capture(program, passes=graph.fewer)
    expected = ptxgen.softmax(x + y), x * y
    same(captured(x, y), expected)
    captured.save(tmp_path / "it")
    shutil.move(tmp_path / "it", tmp_path / "elsewhere")
    same(ptxgen.load(tmp_path / "elsewhere")(x, y), expected)
    with pytest.raises(TraceError, match="says its shapes itself"):
        ptxgen.capture(program, x, y)


def test_programs_that_no_replay_can_stand_for_are_refused() -> None:
    def program(lower, **how):
        b = ProgramBuilder(OPERATIONS, "it", **how)
        return b.finish(lower(b, b.input("x", imagined((4, 8), "float32"))))

    x = drawn(4, 8)
    turned = ptxgen.capture(
        program(lambda b, x: b.permute(b.neg(x), (1, 0)), contiguous_results=True)
    )
    same(turned(x), -x.T)
    for lower, how, says in [
        (lambda b, x: b.narrow(b.neg(x), 1, 0, 3), {}, r"returns <out float32 \[4, 3\]>, a view"),
        (lambda b, x: x, {"aliases": True}, "returns <x float32"),
    ]:
        with pytest.raises(TraceError, match=says):
            ptxgen.capture(program(lower, **how))
    apart = Buffer(Memory("y", INPUT, low=8), (4, 8), (8, 1), "float32")
    written = program(lambda b, x: (b.neg(x), b.exp(x, out=b.input("y", apart, written=True)))[0])
    with pytest.raises(ShapeError, match=r"it writes <y .*, which has .* lies 8 bytes behind a"):
        ptxgen.capture(written)


def test_arrays_from_outside_lie_as_they_did(tmp_path: Path) -> None:
    """Turned, apart, backwards, and not at a multiple of 16."""
    cpu, x, w = get_device("cpu"), drawn(4, 8), drawn(8, 16)
    for strides, low in [((16, 1), 0), ((1, 24), 8), ((40, 2), 4), ((0, 1), 12), ((-16, 1), 0)]:
        b = ProgramBuilder(OPERATIONS, "it", contiguous_results=True)
        own = b.input("x", imagined((4, 8), "float32"))
        lies = b.input("w", Buffer(Memory("w", INPUT, low=low), (8, 16), strides, "float32"))
        program = b.finish(
            b.linear(own, lies if strides[0] in (1, 16) else b.packed(lies), layout="kn")
        )
        bits = np.broadcast_to(w[:1], w.shape) if strides[0] == 0 else w
        where, kept = put(lies, bits.view("u4"), cpu, 0)
        assert where % 16 == low and (elements(lies, cpu, where, 0) == bits.view("u4")).all()
        made = Owned(recorded(plan(program, cpu), 1), program, cpu, [(where, kept)])
        made.save(tmp_path / "it")
        expected = ptxgen.linear(x, np.ascontiguousarray(bits), layout="kn")
        same(made(x), expected)
        same(ptxgen.load(tmp_path / "it")(x), expected)
        same(ptxgen.load(tmp_path / "it", arrays=[bits])(x), expected)
