"""Pointwise functions in PyTorch, on the CPU device: gradients, fakes, compilation."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import ptxgen
from ptxgen import functions as f
from ptxgen import layout
from ptxgen.errors import GradError, OptionError

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("ptxgen.torch")
saturates = pytest.importorskip("ptxgen.torch.elementwise").saturates


@pytest.fixture(autouse=True)
def _on_cpu():
    with ptxgen.use_device("cpu"):
        yield


@ptxgen.pointwise
def both(x, y, t=0.5):
    return f.where(x > y, x * y, t * x / (y * y + 1)), x - y


def stock(x, y, t):
    return torch.where(x > y, x * y, t * x / (y * y + 1)), x - y


def operands():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(3, 5, generator=generator, requires_grad=True)
    return x, torch.randn(5, generator=generator, requires_grad=True)


def test_gradients_of_all_arguments_also_broadcast_and_twice() -> None:
    x, y = operands()
    found, wanted = both(x, y, 0.25), stock(x, y, 0.25)
    weight = torch.linspace(-1, 2, 15).view(3, 5)

    def total(results):
        return (results[0] * weight).sum() + results[1].square().sum()

    first = torch.autograd.grad(total(found), (x, y), create_graph=True)
    expected = torch.autograd.grad(total(wanted), (x, y), create_graph=True)
    for a, b in zip(first, expected, strict=True):
        torch.testing.assert_close(a, b)
    second = torch.autograd.grad(first[1].square().sum(), (x, y))
    again = torch.autograd.grad(expected[1].square().sum(), (x, y))
    for a, b in zip(second, again, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("kind", [float, np.float32, np.float64])
def test_gradients_know_each_number(kind) -> None:
    """Gradients use each call's own number, also if numbers compare equal (0.0 and -0.0) or are
    NumPy's.
    """
    x, dy = torch.ones(4, requires_grad=True), torch.ones(4)
    for number in (2.0, 3.0, 0.0, -0.0):
        (dx,) = torch.autograd.grad(f.mul(x, kind(number)), x, dy)
        assert torch.equal(dx.view(torch.int32), (dy * number).view(torch.int32))


def test_only_what_is_asked_for_is_computed() -> None:
    x, y = operands()
    y = y.detach()
    (found,) = torch.autograd.grad(f.swiglu(x, y).sum(), (x,))
    (wanted,) = torch.autograd.grad((torch.nn.functional.silu(x) * y).sum(), (x,))
    torch.testing.assert_close(found, wanted)
    chosen = f.where(x > 0, x, 2.0)
    (found,) = torch.autograd.grad(chosen.sum(), (x,))
    torch.testing.assert_close(found, (x > 0).float())


def test_dtypes_of_gradients() -> None:
    x = torch.randn(4, 8).bfloat16().requires_grad_()
    w = torch.randn(8).requires_grad_()
    z = f.mul(x, w, out_dtype="bfloat16")
    assert z.dtype == torch.bfloat16
    dx, dw = torch.autograd.grad(z.float().sum(), (x, w))
    assert (dx.dtype, dw.dtype) == (torch.bfloat16, torch.float32)
    torch.testing.assert_close(dw, x.float().sum(0).detach())


BYTES = [getattr(torch, n) for n in ("uint8", "int8", "float8_e4m3fn", "float8_e5m2")]
FLOAT8 = [dtype for dtype in BYTES if dtype.is_floating_point]


def same_numbers(a, b) -> bool:
    """Whether tensors have the same dtype and numbers, also the signs of zeros; NaNs are alike."""
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    a, b = a.double(), b.double()
    return bool(((a == b) & (a.signbit() == b.signbit()) | a.isnan() & b.isnan()).all())


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_casts_to_floats_of_8_bits_are_pytorchs(dtype) -> None:
    """Every bfloat16 and float16, and random numbers of other dtypes."""
    if dtype == torch.float8_e4m3fn and not saturates():
        pytest.skip("this PyTorch gives NaN beyond the largest number")
    generator = torch.Generator().manual_seed(8)
    halves = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16)
    words = torch.randint(-(1 << 31), 1 << 31, (1 << 17,), generator=generator)
    wide = torch.randn(1 << 16, generator=generator, dtype=torch.float64) * 300
    singles = words.to(torch.int32).view(torch.float32)
    given = [halves.view(torch.bfloat16), halves.view(torch.float16), singles, wide, wide.float()]
    given += [words, (words % 70000).to(torch.int32), words % 2 == 0]
    given += [torch.arange(256, dtype=torch.uint8).view(each) for each in BYTES]
    for x in given:
        assert same_numbers(f.cast(x, dtype), x.to(dtype)), x.dtype


def test_casts_of_8_bits_are_pytorchs() -> None:
    codes = torch.arange(256, dtype=torch.uint8)
    for source in BYTES:
        real = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
        whole = () if source.is_floating_point else (torch.int32, torch.int64, *BYTES[:2])
        for to in (*real, *whole, torch.bool):
            assert same_numbers(f.cast(codes.view(source), to), codes.view(source).to(to))


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_gradients_of_casts_are_cast_back(dtype) -> None:
    x, dy = torch.randn(5, 6), torch.randn(5, 6)
    for source, to in ((torch.float32, dtype), (dtype, torch.bfloat16)):
        ours, theirs = (x.to(source).requires_grad_() for _ in range(2))
        pairs = (ours, f.cast(ours, to)), (theirs, theirs.to(to))
        got, wanted = (torch.autograd.grad(y, (of,), dy.to(to))[0] for of, y in pairs)
        assert got.dtype == source and same_numbers(got, wanted)
    assert not f.cast(x.requires_grad_(), torch.uint8).requires_grad
    parts = x.detach().to(dtype).requires_grad_(), x.detach().to(dtype).requires_grad_()
    joint = layout.concat([parts[0].T, parts[1].T], 1)
    found = torch.autograd.grad(joint, parts, torch.cat((dy, 2 * dy)).T.to(dtype))
    assert same_numbers(found[0], dy.to(dtype)) and same_numbers(found[1], (2 * dy).to(dtype))


def test_rope_turns_back() -> None:
    x = torch.randn(2, 5, 3, 8, requires_grad=True)
    cos, sin = torch.randn(5, 1, 4), torch.randn(5, 1, 4)
    a, b = x[..., :4], x[..., 4:]
    wanted = torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
    found = layout.rope(x, cos, sin)
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    dy = torch.randn_like(x)
    (dx,), (expected,) = (torch.autograd.grad(r, (x,), dy) for r in (found, wanted))
    torch.testing.assert_close(dx, expected)


def joined(x, y):
    return layout.pad(layout.concat([x, y * 2, x], -1), [(1, 0), (0, 3)], 7)


def test_gradients_of_layouts_are_parts() -> None:
    x, y = torch.randn(4, 8, requires_grad=True), torch.randn(4, 3, requires_grad=True)
    found = joined(x, y)
    both = torch.cat((x, y * 2, x), -1)
    wanted = torch.nn.functional.pad(both, (0, 3, 1, 0), value=7.0)
    assert torch.equal(found, wanted)
    dz = torch.randn_like(wanted)
    got, expected = (torch.autograd.grad(z, (x, y), dz) for z in (found, wanted))
    assert all(map(torch.equal, got, expected))
    (dy,) = torch.autograd.grad(layout.concat([x.detach(), y], 1).sum(), (y,))
    assert torch.equal(dy, torch.ones_like(y))
    with pytest.raises(GradError, match="requires grad"):
        layout.concat([x, x], out=torch.empty(8, 8))


def test_layouts_are_operators() -> None:
    x, y = torch.randn(4, 8, requires_grad=True), torch.randn(4, 3, requires_grad=True)
    utilities = ("test_schema", "test_faketensor", "test_autograd_registration")
    padded = {"widths": [0, 1, 2, 0], "value": 1.5}
    for name, given, how in (("concat", ([x, y],), {"axis": 1}), ("pad", (x,), padded)):
        operator = getattr(torch.ops.ptxgen, name).default
        torch.library.opcheck(operator, given, how, test_utils=utilities)
    compiled = torch.compile(joined, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in (4, 6):  # the second: of sizes that are known when it runs
        given = x.detach().repeat(rows // 2, 1), y.detach().repeat(rows // 2, 1).requires_grad_()
        assert torch.equal(compiled(*given), joined(*given))
        (got,), (expected,) = (
            torch.autograd.grad(each(*given).square().sum(), given[1:])
            for each in (compiled, joined)
        )
        assert torch.equal(got, expected)
    with pytest.raises(torch._dynamo.exc.TorchDynamoException, match="out= cannot be traced"):
        torch.compile(
            lambda x: layout.concat([x], out=torch.empty(4, 8)), fullgraph=True, backend="eager"
        )(x)


def test_compiled_as_one_graph() -> None:
    x, y = operands()
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    @torch.compile(fullgraph=True, backend=backend)
    def step(x, y):
        a, b = both(x, y, 0.25)
        return f.gelu(a) + layout.rope(b[:, :4], y[:2], y[1:3])[:, :1]

    found = step(x, y)
    a, b = both(x, y, 0.25)
    wanted = f.gelu(a) + layout.rope(b[:, :4], y.detach()[:2], y.detach()[1:3])[:, :1]
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    assert len(graphs) == 1


def test_what_is_first_seen_by_a_compiler() -> None:
    """A function, its gradient, clamps and dtypes that nobody called before: all without memory."""
    x = torch.randn(4, 8, requires_grad=True)
    fresh = ptxgen.pointwise(lambda x: f.exp(x) * 2 + x)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def step(x):
        return fresh(x, out_dtype=torch.bfloat16), f.clamp(x, -1, 1)

    found, clamped = step(x)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(clamped, x.clamp(-1, 1))
    (dx,) = torch.autograd.grad(found.float().sum(), (x,))
    torch.testing.assert_close(dx, 2 * x.exp() + 1)


def test_a_function_lives_as_long_as_its_gradients() -> None:
    x = torch.randn(5, requires_grad=True)
    total = ptxgen.pointwise(lambda x: x * x)(x).sum()
    gc.collect()
    total.backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())


def test_the_operator_keeps_its_promises() -> None:
    x, y = operands()
    operator = torch.ops.ptxgen.pointwise.default
    tests = ("test_schema", "test_faketensor", "test_autograd_registration")
    for arrays, which, numbers in (([x, y], "aan", [0.25]), ([x.detach(), y], "aan", [2])):
        torch.library.opcheck(operator, (both.key, which, arrays, numbers, None), test_utils=tests)


def test_errors() -> None:
    x, y = operands()
    with pytest.raises(GradError, match="x requires grad"):
        f.add(x, y, out=torch.empty(3, 5))
    with pytest.raises(OptionError, match="no longer there"):
        torch.ops.ptxgen.pointwise("gone.0", "a", [x], [], None)
