"""``torch.fft``, ``torch.stft``, ``torch.istft`` in the block and compiled, on the CPU device."""

from __future__ import annotations

import pytest

import ptxgen

torch = pytest.importorskip("torch", reason="needs PyTorch")
pt = pytest.importorskip("ptxgen.torch")

TRANSFORMS = [
    *("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"),
    *(f"{name}{end}" for name in ("fft", "ifft", "rfft", "irfft") for end in "2n"),
]


@pytest.fixture(autouse=True)
def _on_cpu():
    with ptxgen.use_device("cpu"):
        yield
    torch._dynamo.reset()


def same(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        parts = [torch.view_as_real(v.resolve_conj()) if v.is_complex() else v for v in (a, b)]
        assert a.shape == b.shape and torch.equal(*parts)


def in_block(function, *given):
    """Runs ``function``; everything that may depend on the batch is ptxgen's."""
    with pt.batch_invariant(strict=True):
        return function(*given)


def drawn(name):
    torch.manual_seed(0)
    real = name.startswith(("rfft", "ihfft"))
    return torch.randn(3, 6, 9, dtype=None if real else torch.complex64)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_those_of_ptxgen(name) -> None:
    x, one = drawn(name), name[-1] not in "2n"
    for how in ({}, {"n": 8, "dim": 1} if one else {"s": (5, 8), "dim": (0, 2), "norm": "ortho"}):
        own = {("axis" if one else "axes") if n == "dim" else n: v for n, v in how.items()}
        found = in_block(lambda v: getattr(torch.fft, name)(v, **how), x)  # noqa: B023
        same([found], [getattr(pt, name)(x, **own)])
        torch.testing.assert_close(found, getattr(torch.fft, name)(x, **how))


def spectra(x, z, w):
    """Transforms, shifted, with complex arithmetic beside them."""
    s = torch.stft(x, 16, 4, window=w, return_complex=True)
    y = torch.fft.fftshift(torch.fft.fft2(z * z.conj() + s[:, :6, :9]))
    return torch.istft(s, 16, 4, window=w), y, torch.view_as_real(y), y.angle() + y.abs()


def arguments():
    torch.manual_seed(1)
    return torch.randn(2, 60), torch.randn(2, 6, 9, dtype=torch.complex64), torch.hann_window(16)


def test_compiled_graphs_have_the_blocks_bits() -> None:
    x, z, w = arguments()
    found = in_block(spectra, x, z, w)
    s = pt.stft(x, 16, 4, window=w)
    same(found[:1], [pt.istft(s, 16, 4, window=w)])
    backend = pt.Backend()
    same(torch.compile(spectra, backend=backend, fullgraph=True)(x, z, w), found)
    lowered = backend.report().lowered
    names = "unfold", "_fft_r2c", "_fft_c2r", "_fft_c2c", "unfold_backward", "roll"
    assert all(f"aten.{name}.default" in lowered for name in names)
    assert not backend.report().unknown
    for a, b in zip(found, spectra(x, z, w), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


LONG = [pytest.param(name, marks=pytest.mark.long) for name in ("rfft", "irfft", "hfft", "fftn")]


@pytest.mark.parametrize("name", ["fft", "stft", "istft", *LONG])
def test_gradients_are_transforms_in_the_block_and_compiled(name) -> None:
    x, _, w = arguments()
    if name == "stft":

        def function(v):
            window = w.to(v.dtype)
            return torch.stft(v, 16, 4, window=window, return_complex=True)

    elif name == "istft":
        x = torch.stft(x, 16, 4, window=w, return_complex=True)

        def function(v):
            return torch.istft(v, 16, 4, window=w.to(v.real.dtype))

    else:
        x, function = drawn(name), getattr(torch.fft, name)
    dy = torch.randn_like(function(x))

    def gradient(of, x=x, dy=dy):
        leaf = x.clone().requires_grad_()
        return torch.autograd.grad(of(leaf), leaf, dy)

    found = in_block(gradient, function)
    same(gradient(torch.compile(function, backend="ptxgen", fullgraph=True)), found)
    wide = (v.to(torch.promote_types(v.dtype, torch.float64)) for v in (x, dy))
    exact = gradient(function, *wide)
    # In the root mean square, with u = 2**-24: each of at most three transforms of up to 16
    # elements is within 0.7 u sqrt(log2(16)) = 1.4 u (contracts.md); a product by a window, a sum
    # of 4 frames and a division by an envelope are within 3 u in all.
    norm = torch.linalg.vector_norm
    assert norm(found[0] - exact[0]) <= 8 * 2.0**-24 * norm(exact[0])


def test_torch_refuses_windows_that_leave_gaps() -> None:
    x, _, w = arguments()
    s = in_block(lambda: torch.stft(x, 16, 4, window=w, return_complex=True))
    with pytest.raises(RuntimeError, match="window overlap add min"):
        in_block(lambda: torch.istft(s, 16, 4, window=w, center=False))
