"""Complex tensors in PyTorch, on the CPU device: gradients, compiled graphs, the block."""

from __future__ import annotations

import pytest

import ptxgen
from ptxgen import functions as f
from ptxgen import layout
from ptxgen.errors import DtypeError, ShapeError

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")


@pytest.fixture(autouse=True)
def _on_cpu():
    with ptxgen.use_device("cpu"):
        yield
    torch._dynamo.reset()


def drawn(*shape, dtype=torch.complex64):
    return torch.randn(*shape, dtype=dtype)


def close(found, wanted):
    """Compares values within some ulp; a lazily conjugated one counts by its values."""
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a.resolve_conj(), b.resolve_conj(), rtol=3e-5, atol=3e-6)


def ours(z, w, r):
    y = f.sub(f.mul(f.div(f.mul(z, w), f.add(w, 2.0)), r), f.conj(z))
    size = f.add(f.abs(y), f.angle(y))
    return f.add(size, f.mul(f.real(z), f.imag(y))), f.where(size > 1, y, f.neg(z))


def theirs(z, w, r):
    y = z * w / (w + 2.0) * r - z.conj()
    size = y.abs() + y.angle()
    return size + z.real * y.imag, torch.where(size > 1, y, -z)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_gradients_have_pytorchs_convention(dtype) -> None:
    """By broadcast operands and real ones, too; of z w by z it is dy conj(w)."""
    torch.manual_seed(2)
    leaves = (
        drawn(5, 7, dtype=dtype),
        drawn(7, dtype=dtype),
        torch.randn(5, 1, dtype=dtype.to_real()),
    )
    for leaf in leaves:
        leaf.requires_grad_()
    found, wanted = ours(*leaves), theirs(*leaves)
    close(found, wanted)
    dys = [torch.randn_like(y) for y in wanted]
    dys[1] = dys[1].conj()  # as PyTorch's own backward passes it on
    close(torch.autograd.grad(found, leaves, dys), torch.autograd.grad(wanted, leaves, dys))
    z, w, _ = leaves
    (dz,) = torch.autograd.grad(f.mul(z, w), z, dys[1])
    a, b, c, d = dys[1].real, dys[1].imag, w.real, w.imag
    assert torch.equal(dz, torch.complex(a * c + b * d, b * c - a * d))


def test_gradients_of_moves_sums_and_parts() -> None:
    torch.manual_seed(2)
    z = drawn(5, 7).requires_grad_()
    x = torch.randn(5, 7, requires_grad=True)
    at = torch.tensor([1, 1, 4])
    for found, wanted, leaf in (
        (pt.sum(z, 1), z.sum(1), z),
        (pt.mean(z, 0), z.mean(0), z),
        (pt.embedding(z, at), z[at], z),
        (ptxgen.functions.copy(z.T), z.T, z),
        (layout.concat([z, f.conj(z)], 1), torch.cat([z, z.conj()], 1), z),
        (f.complex(x, f.mul(x, 2.0)), torch.complex(x, 2 * x), x),
        (f.polar(f.mul(x, x), x), torch.polar(x * x, x), x),
        (layout.view_as_real(f.neg(z)), torch.view_as_real(-z), z),
        (f.abs(f.mul(z, 0.0)), (z * 0).abs(), z),
    ):
        dy = torch.randn_like(wanted)
        close([found], [wanted])
        close(torch.autograd.grad(found, leaf, dy), torch.autograd.grad(wanted, leaf, dy))


def test_second_derivatives() -> None:
    torch.manual_seed(2)
    z, w = drawn(3, dtype=torch.complex128), drawn(3, dtype=torch.complex128)
    given = z.requires_grad_(), w.requires_grad_()
    assert torch.autograd.gradcheck(lambda z, w: f.div(z, w), given)
    assert torch.autograd.gradcheck(lambda z, w: f.abs(f.mul(z, w)), given)
    assert torch.autograd.gradgradcheck(lambda z, w: f.mul(z, w), given)


def rotary(x, turns):
    """Rotary embedding as models write it, and operators on complex tensors."""
    z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    y = torch.view_as_real(z * turns).flatten(-2)
    parts = -z.real, z.imag, z.conj() == z, torch.complex(y, y + 1)
    return y, *parts, (z.conj() + turns).abs(), z.sum(0), z.mean(), torch.cat([z, -z], 1)


def test_compiled_graphs_have_the_bits_of_the_block() -> None:
    torch.manual_seed(2)
    turns = torch.polar(torch.ones(3, 4), torch.randn(3, 4))
    x = torch.randn(5, 3, 8, requires_grad=True)
    backend = pt.Backend()
    found = torch.compile(rotary, backend=backend, fullgraph=True)(x, turns)
    with pt.batch_invariant(strict=True) as block:
        wanted = rotary(x, turns)
    dys = [torch.randn_like(y) for y in wanted if y.dtype is not torch.bool]
    real = [[y for y in of if y.dtype is not torch.bool] for of in (found, wanted)]
    first, second = (torch.autograd.grad(of, x, dys)[0] for of in real)
    for a, b in (*zip(found, wanted, strict=True), (first, second)):
        assert torch.equal(a.resolve_conj(), b.resolve_conj()) and a.dtype == b.dtype
    assert {"sum": 1, "mean": 1}.items() <= block.served.items()
    lowered = backend.report().lowered
    names = [
        "view_as_real",
        "view_as_complex",
        "_conj",
        "complex",
        "neg.default",
        "eq.Tensor",
        "cat",
        "sum",
        "mean",
    ]
    assert all(any(f"aten.{name}" in op for op in lowered) for name in names)
    assert not backend.report().unknown


def test_operators_of_the_library_in_compiled_graphs() -> None:
    z, w = drawn(3, 5), drawn(5)
    backend = pt.Backend()
    made = torch.compile(lambda z, w: f.abs(f.mul(z, w)), backend=backend, fullgraph=True)
    assert torch.equal(made(z, w), f.abs(f.mul(z, w)))
    (program,) = backend.report().programs
    assert len(program.steps) == 1, "product and magnitude are fused"


def test_lazily_conjugated_tensors_are_refused_by_name() -> None:
    z = drawn(3, 5)
    for _ in range(2):
        with pytest.raises(ShapeError, match=r"x is a lazily conjugated .*; pass x.resolve_conj"):
            f.neg(z.conj())
        assert torch.equal(f.neg(z.conj().resolve_conj()), -z.conj())
    with pytest.raises(DtypeError, match="a has dtype complex64"):
        pt.matmul(z, z.T)
