"""An element of a product is a function of its row, its column and K, on a real GPU: 2,000 random
products beside slices of them, by whatever kernels serve, and layers of models fused and apart.
"""

from __future__ import annotations

import numpy as np
import pytest
from gpu_arrays import NAMES, admits, chunk_of, naive, routes_by_name, same_on_gpu

import ptxgen
from ptxgen.numerics.contract import ACTIVATIONS, AUTO_TIER, ITEMSIZE, TIERS
from ptxgen.program.launch import architecture
from ptxgen.runtime import get_device

try:
    import torch
except ImportError:
    torch = None

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch is None, reason="needs PyTorch"),
]

SEED = 50
BLOCK, BLOCKS = 100, 20
OPERANDS = [(dtype, tier) for tier, dtypes in TIERS.items() for dtype in dtypes]
LENGTH_MAX = 20_000


class Draw:
    """A random product of few rows and columns, and of any length."""

    def __init__(self, seed, device):
        self.seed, self.device = seed, device
        self.rng = rng = np.random.default_rng([SEED, seed])
        self.dtype, self.tier = OPERANDS[seed % len(OPERANDS)]
        self.m, self.n = (int(2 ** rng.uniform(1, 7)) for _ in "mn")
        self.k = int(2 ** rng.uniform(4, np.log2(LENGTH_MAX)))
        if rng.random() < 0.7:  # rows of whole vectors
            self.m, self.n, self.k = (-(-size // 8) * 8 for size in (self.m, self.n, self.k))
        self.turned = tuple(bool(v) for v in rng.integers(0, 2, 2))
        self.activation = str(rng.choice(ACTIVATIONS)) if self.dtype != "f64" else "none"
        wide = ITEMSIZE[self.dtype] == 2 and rng.random() < 0.5
        self.out = "f32" if wide else self.dtype
        self.generator = torch.Generator("cuda").manual_seed(seed)
        self.x, self.w = self.random(self.m, self.k), self.random(self.k, self.n)
        self.bias = self.random(self.n) if rng.random() < 0.5 else None

    def random(self, *shape):
        x = torch.randn(shape, device="cuda", generator=self.generator, dtype=torch.float32)
        return x.to(getattr(torch, NAMES[self.dtype]))

    def cut(self, size):
        begin, end = sorted(int(v) for v in self.rng.choice(size + 1, 2, replace=False))
        return slice(begin, end)

    def kernel(self, m, n, turned):
        """Draws one of all kernels that serve contiguous operands of this layout."""
        layout = "".join("NT"[t] for t in turned)
        lengths = (m if turned[0] else self.k) | (self.k if turned[1] else n)
        align = (lengths * ITEMSIZE[self.dtype] | 16) & -(lengths * ITEMSIZE[self.dtype] | 16)
        arch = architecture(self.device)
        found = [
            name
            for name, (stored, route) in ROUTES.items()
            if stored == layout
            and (route.main.dtype, route.main.tier) == (self.dtype, self.tier)
            and all(kernel.runs_on(arch) for kernel in route.kernels)
            and admits(route, "linear", m, n, self.k, align=align, sms=self.device.sms)
        ]
        return str(self.rng.choice(found))

    def of(self, rows=slice(None), columns=slice(None), forced=False):
        """The product of some rows and columns, by the kernel that is chosen or any that serves."""
        x, w, turned, name = self.x[rows], self.w[:, columns], self.turned, None
        if forced and 1 not in (*x.shape, *w.shape):  # vectors are stored both ways
            turned = tuple(bool(v) for v in self.rng.integers(0, 2, 2))
            name = self.kernel(x.shape[0], w.shape[1], turned)
            x, w = x.contiguous(), w.contiguous()
        x, w = (v.T.contiguous().T if t else v for v, t in zip((x, w), turned, strict=True))
        bias = None if self.bias is None else self.bias[columns].contiguous()
        how = {"tier": self.tier, "activation": self.activation, "layout": "kn"}
        return ptxgen.linear(x, w, bias, out_dtype=NAMES[self.out], kernel=name, **how)

    def same(self, got, expected, what):
        text = f"{self.dtype} {self.tier} {self.m}x{self.k}x{self.n} {self.activation}"
        assert same_on_gpu(torch, got.contiguous(), expected.contiguous()), (
            f"seed {self.seed}: {text}: {what} differs"
        )


ROUTES = routes_by_name()


@pytest.fixture(scope="module")
def device():
    return get_device("cuda")


@pytest.mark.parametrize("block", range(BLOCKS))
def test_an_element_knows_its_row_its_column_and_k(block, device):
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        draw = Draw(seed, device)
        whole = draw.of()
        if draw.activation == "none":
            chunk = chunk_of(draw.k, draw.tier, draw.dtype)
            how = {"bias": draw.bias, "tier": draw.tier, "out_dtype": draw.out}
            draw.same(whole, naive(torch, draw.x, draw.w, chunk, **how), "the contract")
        draw.same(draw.of(forced=True), whole, "another kernel")
        rows, columns = draw.cut(draw.m), draw.cut(draw.n)
        draw.same(draw.of(rows, columns), whole[rows, columns], f"{rows}, {columns}")
        draw.same(draw.of(rows, columns, True), whole[rows, columns], f"{rows}, {columns}, forced")
        middle = int(draw.rng.integers(1, draw.n))
        parts = [draw.of(columns=part) for part in (slice(0, middle), slice(middle, None))]
        draw.same(torch.cat(parts, 1), whole, f"columns up to {middle} and behind")
        plain = {"tier": draw.tier, "out_dtype": NAMES[draw.out]}
        product = ptxgen.matmul(draw.x, draw.w, **plain)
        gradient = ptxgen.linear_wgrad(draw.x.T.contiguous(), draw.w, layout="kn", **plain)
        draw.same(gradient, product, "a weight's gradient")
        turned = ptxgen.matmul(draw.w.T, draw.x.T, **plain)
        draw.same(turned.T, product, "the transposed product")
        several = ptxgen.matmul(torch.stack([draw.x] * 3), torch.stack([draw.w] * 3), **plain)
        draw.same(several, torch.stack([product] * 3), "a batch")
        if draw.dtype != "f64" and AUTO_TIER[draw.dtype] == draw.tier:
            ends = torch.tensor([rows.start, draw.m], dtype=torch.int32, device="cuda")
            groups = ptxgen.grouped_linear(
                draw.x, torch.stack([draw.w] * 2), ends, layout="kn", out_dtype=NAMES[draw.out]
            )
            draw.same(groups, product, "groups")


LAYERS = [
    ("bf16", 8192, (8192, 1024, 1024)),
    ("f16", 8192, (8192, 1024)),
    ("bf16", 4096, (8192, 512)),
    ("f16", 4096, (8192, 512)),
    ("f32", 2048, (2048, 2048, 2048)),
    ("f64", 2048, (2048, 256)),
]


@pytest.mark.parametrize("rows", [1, 7, 64, 300, 4500])
@pytest.mark.parametrize(("dtype", "k", "widths"), LAYERS)
def test_fused_layers_are_their_parts(dtype, k, widths, rows, device):
    """Q beside K and V, forward and their weights' gradients."""
    torch.manual_seed(SEED)
    kind = getattr(torch, NAMES[dtype])
    x = torch.randn((rows, k), device="cuda").to(kind)
    weights = [torch.randn((n, k), device="cuda").to(kind) for n in widths]
    fused = ptxgen.linear(x, torch.cat(weights), layout="nk")
    apart = torch.cat([ptxgen.linear(x, w, layout="nk") for w in weights], 1)
    assert same_on_gpu(torch, fused, apart)
    dy = torch.randn((rows, sum(widths)), device="cuda").to(kind)
    whole = ptxgen.linear_wgrad(x, dy, layout="nk")
    parts = [ptxgen.linear_wgrad(x, part, layout="nk") for part in dy.split(widths, 1)]
    assert same_on_gpu(torch, whole, torch.cat(parts))
