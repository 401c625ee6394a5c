"""Random calls of every operation: valid ones have the oracle's bits, and are as near to a float64
formula as its bound says; bad ones raise an error that names the argument. Long tests draw
:data:`LONG` of them (tools/fuzz_calls.py draws as many as you like).
"""

from __future__ import annotations

from types import SimpleNamespace

import calls
import formulas
import numpy as np
import pytest

import ptxgen
from ptxgen import functions, graph, int4, layout, nf4, quantized
from ptxgen.ops import OPERATIONS
from ptxgen.runtime.cpu import CpuDevice

VALID, BAD = 1, 3
"""Calls of each operation; the first seed is SEED."""
LONG = {"valid": 1200, "bad": 1800}
"""Calls of all operations together, at least; the first seed is LONG_SEED."""
SEED, LONG_SEED = 1000, 100_000
NO_OPERATIONS = {
    *("FORMATS", "QuantizedWeight", "WeightFormat", "register"),
    *("signed", "unsigned", "excess", "floats"),
}
"""Public names of rooms of operations that are none."""
WITHOUT = {
    *("quantized.from_bitsandbytes", "quantized.to_bitsandbytes", "quantized.from_gguf"),
    *("quantized.from_awq", "quantized.from_gptq", "quantized.from_compressed_tensors"),
    *("quantized.from_fp8", "quantized.from_nvfp4"),
}
"""Conversions of weights of other projects, which tests/quantized tests."""


@pytest.fixture(autouse=True, scope="module")
def on_cpu():
    """A device that forgets its kernels afterwards."""
    with ptxgen.use_device(CpuDevice()):
        yield


def repeat(kind: str, name: str, seed: int) -> str:
    """Command that repeats a call."""
    return f"reproduce: python tools/fuzz_calls.py --one {kind} {name} {seed}"


def test_every_public_operation_is_drawn() -> None:
    rooms = {"": ptxgen, "functions.": functions, "layout.": layout, "int4.": int4}
    rooms["quantized."] = quantized
    public = {
        prefix + name
        for prefix, room in rooms.items()
        for name in (OPERATIONS if room is ptxgen else room.__all__)
        if name not in NO_OPERATIONS and (room is not ptxgen or OPERATIONS[name].public)
    }
    named = {n for n in public if "." in n or n in dir(ptxgen)}
    assert named - WITHOUT <= calls.operations().keys()
    assert WITHOUT <= named


def test_gradients_of_described_operations_are_right() -> None:
    """Operations whose calls are drawn by their forms alone."""
    drawn = calls.operations().keys() - calls.written().keys()
    for name in sorted(drawn):
        wrong = calls.gradient_fault(OPERATIONS[name], SEED)
        assert not wrong, f"{name}: {wrong}"


@pytest.mark.parametrize("name", sorted(calls.operations()))
def test_valid_calls_are_right(name: str) -> None:
    for seed in range(SEED, SEED + VALID):
        wrong = calls.judge(calls.valid(name, seed))
        assert not wrong, f"{wrong}\n{repeat('valid', name, seed)}"


@pytest.mark.parametrize("name", sorted(calls.operations()))
def test_bad_calls_are_refused_by_name(name: str) -> None:
    """Bad calls are refused by name, also if the unspoiled call is known or other arrays are nodes
    of a program. Calls that the oracle takes, too, have its bits.
    """
    for seed in range(SEED, SEED + BAD):
        for _ in range(2 if seed < SEED + VALID else 0):
            calls.operations()[name].function(**calls.valid(name, seed).given)
        call = calls.bad(name, seed)
        wrong = calls.judge(call) or calls.traced(call)
        assert not wrong, f"{call}: {wrong}\n{repeat('bad', name, seed)}"


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(calls.operations()))
@pytest.mark.parametrize("kind", LONG)
def test_many_calls(kind: str, name: str) -> None:
    for i in range(-(-LONG[kind] // len(calls.operations()))):
        seed = LONG_SEED + i
        call = getattr(calls, kind)(name, seed)
        wrong = calls.judge(call) or (calls.traced(call) if kind == "bad" else "")
        assert not wrong, f"{call}: {wrong}\n{repeat(kind, name, seed)}"


def test_bounds_judge_nearly_all_results_and_are_tight() -> None:
    """Numbers that are off by what four lost bits make are found in most calls of what rounds."""
    judged = found = 0
    for name in ("linear", "softmax", "rms_norm", "conv", "ssd", "functions.tanh", "resize"):
        for seed in range(SEED, SEED + 6):
            call = calls.valid(name, seed)
            got = calls.operations()[name].oracle(**call.given)
            first = np.asarray(got[0] if isinstance(got, tuple) else got)
            wide = first.astype(np.float64)
            if not wide.size or not np.isfinite(wide).all() or not wide.any():
                continue
            bits = {2: 5, 4: 18, 8: 46}[first.dtype.itemsize]
            off = (wide * (1 + 2.0**-bits)).astype(first.dtype)
            judged += 1
            mine = (off, *got[1:]) if isinstance(got, tuple) else off
            found += bool(formulas.judge(name, call.given, mine))
    assert judged > 20 and found > 0.8 * judged, (found, judged)


def test_the_judge_finds_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    call = calls.valid("softmax", 7)
    of = calls.operations()["softmax"]

    def judged(function: object) -> str:
        monkeypatch.setitem(
            calls.operations(), "softmax", calls.Operation(function, of.oracle, of.draw)
        )
        return calls.judge(call)

    def bare(**given: object) -> object:
        raise ValueError("axis")

    def refused(**given: object) -> object:
        raise ptxgen.ShapeError("it is not nice")

    def changed(**given: object) -> object:
        found = of.function(**given)
        given["x"][...] = 0
        return found

    assert judged(of.function) == ""
    assert judged(lambda **given: of.function(**given) * 2)
    assert "bare ValueError" in judged(bare) and "refused" in judged(refused)
    spoiled = calls.Call("softmax", {**call.given, "axis": 9}, "axis", "9")
    monkeypatch.setitem(calls.operations(), "softmax", calls.Operation(refused, of.oracle, of.draw))
    assert "does not name axis" in calls.judge(spoiled)
    call.given["x"].flags.writeable = True
    assert "x has been changed" in judged(changed)


X, Q = np.ones((2, 64), "f4"), nf4.quantize(np.ones((2, 64), "f4"))
DATA, SCALES = Q.data, Q.scales
BARE = {
    "interface without keys": (lambda: ptxgen.softmax(calls.failing({})), "x"),
    "interface None": (lambda: ptxgen.softmax(calls.failing(None)), "x"),
    "interface that raises": (lambda: ptxgen.softmax(calls.failing(RuntimeError("no"))), "x"),
    "no address": (
        lambda: ptxgen.softmax(
            calls.failing({"shape": (3,), "typestr": "<f4", "data": (0, False), "version": 3})
        ),
        "x",
    ),
    "weight of text": (lambda: nf4.Weight(DATA, SCALES, "2", 64), "n"),
    "weight of half": (lambda: nf4.Weight(DATA, SCALES, 2, 64.5), "k"),
    "weight of K 32": (lambda: nf4.Weight(DATA, SCALES, 2, 32), "k"),
    "quantised K 5": (lambda: nf4.quantize(X[:, :5]), "w"),
    "quantised layout": (lambda: nf4.quantize(X, np.ones(2)), "layout"),
    "dequantised None": (lambda: nf4.dequantize(None), "q"),
    "dequantised dtype": (lambda: nf4.dequantize(Q, 10**5000), "dtype"),
    "converted None": (lambda: nf4.to_bitsandbytes(None), "q"),
    "converted state": (lambda: nf4.from_bitsandbytes(SimpleNamespace(quant_state=3)), "param"),
    "linear of K 3": (lambda: nf4.linear(X[:, :3], Q), "x"),
    "packed dtype": (lambda: int4.pack(np.ones((2, 2), int), []), "dtype"),
    "packed class": (lambda: int4.pack(np.ndarray), "x"),
    "packed NumPy dtype": (lambda: int4.pack(np.dtype("i4")), "x"),
    "unpacked dtype": (lambda: int4.unpack(np.ones(2, "u1"), {}), "dtype"),
    "split class": (lambda: layout.split_qkv(np.ndarray, 1, 1), "x"),
    "split None": (lambda: layout.split_qkv(None, 1, 1), "x"),
    "routed in groups": (lambda: ptxgen.moe_router(X[:, :7], 2, groups=2), "logits"),
    "split into many": (lambda: layout.split_qkv(X, 10**5000, 1), "heads"),
    "narrowed far away": (lambda: layout.narrow(X, 0, 10**5000, 1), "start"),
    "narrowed NumPy dtype": (lambda: layout.narrow(np.dtype("f4"), 0, 0, 0), "x"),
    "large constant": (lambda: ptxgen.pointwise(lambda a: a * 10**400)(X), "f32"),
    "division by zero": (lambda: ptxgen.pointwise(lambda a: a * (1 / 0))(X), "cannot be traced"),
    "large number": (lambda: functions.add(X, 10**5000), "y"),
    "large axis": (lambda: ptxgen.sum(X, axis=10**5000), "axis"),
    "large stream": (lambda: ptxgen.sum(X, stream=(10**5000,)), "stream"),
    "index that raises": (lambda: ptxgen.softmax(X, axis=calls.raising("__index__")), "axis"),
    "float that raises": (lambda: ptxgen.rms_norm(X, eps=calls.raising("__float__")), "eps"),
    "None beside a node": (lambda: node(lambda b, x: b.linear(None, x, layout="kn")), "x"),
    "text beside a node": (lambda: node(lambda b, x: b.linear(x, "w", layout="kn")), "w"),
    "no sequence of nodes": (lambda: node(lambda b, x: b.concat(x)), "arrays"),
    "a pair beside a node": (lambda: node(lambda b, x: b.linear(x, (x, x), layout="kn")), "w"),
}
"""Calls that once raised an error that is none of ptxgen's, or that named another argument."""


def node(call: object) -> object:
    """A call that adds a node to a program, with an input of it."""
    b = graph.Builder("bad", device="cpu")
    return call(b, b.input("given", (2, 64), "float32"))


@pytest.mark.parametrize("what", BARE)
def test_errors_are_typed_and_name_the_argument(what: str) -> None:
    call, name = BARE[what]
    with pytest.raises(ptxgen.PtxgenError, match=rf"\b{name}\b"):
        call()
