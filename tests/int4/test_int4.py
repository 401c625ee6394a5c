"""4-bit integers: what a call may ask, how elements are packed, and the oracle's bits."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest

from ptxgen import int4, reference
from ptxgen.errors import DtypeError, OptionError, ShapeError
from ptxgen.numerics import int4 as numerics
from ptxgen.numerics.int4 import ELEMENTS, GEMM, VARIANTS
from ptxgen.oracle.activation import activate
from ptxgen.oracle.int4 import quantise

SEED = 44


def matrix(rng, rows, columns, dtype):
    """Random elements; the extremes are among them."""
    low, high = ELEMENTS[dtype].low, ELEMENTS[dtype].high
    return rng.choice(np.array([low, high, *range(low, high + 1)]), (rows, columns)).astype(int)


# -- what is asked ------------------------------------------------------------------------


def test_there_are_36_variants():
    assert len(VARIANTS) == len(set(VARIANTS)) == 36


@pytest.mark.parametrize(("dtype", "k_max"), [("s4", 33_554_431), ("u4", 9_544_371)])
def test_the_longest_reduction_is_the_longest_whose_sums_are_int32(dtype, k_max):
    element = ELEMENTS[dtype]
    largest = max(abs(x * y) for x, y in itertools.product((element.low, element.high), repeat=2))
    assert element.k_max == k_max
    assert k_max * largest < 2**31 <= (k_max + 1) * largest
    numerics.check_k(dtype, k_max)
    with pytest.raises(ShapeError, match=f"K is {k_max + 1}.*at most {k_max}"):
        numerics.check_k(dtype, k_max + 1)


def test_shapes_count_bytes_and_sizes_count_elements():
    found = GEMM.infer({"a": (3, 5), "b": (10, 4), "bias": (8,)}, "rrr")
    assert found.sizes == {"M": 3, "N": 8, "K": 10}
    assert found.results == ((3, 4),)
    assert GEMM.infer({"a": (3, 5), "b": (6, 5), "c": (3, 3)}, "rcr").results == ((3, 3),)


@pytest.mark.parametrize(
    ("layout", "shapes", "message"),
    [
        ("rcr", {"a": (3, 5), "b": (7, 5)}, r"b has shape \[7, 5\], so N = 7; takes a multiple"),
        ("rrr", {"a": (3, 5), "b": (9, 4)}, r"b has shape \[9, 4\], so K = 9; takes a multiple"),
        ("rcr", {"a": (3, 5), "b": (6, 4)}, r"takes \[N, K/2\] with K = 10, that of a"),
        ("rcr", {"a": (3, 5), "b": (6, 5), "c": (3, 6)}, r"c has .* with N = 6, that of b"),
        ("rcr", {"a": (3, 5), "b": (6, 5), "bias": (3,)}, "bias has shape .*, so N = 3; takes a"),
        ("rcr", {"a": (3, 2**30), "b": (6, 2**30)}, "K = 2147483648; takes at most"),
        ("rcr", {"a": (3,), "b": (6, 5)}, r"a has shape \[3\]; takes \[M, K/2\]"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(layout, shapes, message):
    with pytest.raises(ShapeError, match=message):
        GEMM.infer(shapes, layout)


# -- packing ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_packing_every_byte_and_back(dtype):
    every = np.arange(256, dtype=np.uint8).reshape(4, 64)
    elements = int4.unpack(every, dtype)
    assert elements.shape == (4, 128)
    assert (elements.min(), elements.max()) == (ELEMENTS[dtype].low, ELEMENTS[dtype].high)
    for kind in ("int8", "int32", "int64", elements.dtype):
        packed = int4.pack(elements.astype(kind), dtype)
        assert packed.dtype == np.uint8
        assert (packed == every).all()
    assert int4.unpack(np.array([0x2F], np.uint8), dtype).tolist() == [
        -1 if dtype == "s4" else 15,
        2,
    ]


def test_packing_torch_tensors():
    torch = pytest.importorskip("torch")
    for dtype in ELEMENTS:
        elements = matrix(np.random.default_rng(SEED), 3, 8, dtype)
        packed = int4.pack(torch.tensor(elements), dtype)
        assert (packed.numpy() == int4.pack(elements, dtype)).all()
        assert (int4.unpack(packed, dtype).numpy() == elements).all()
    assert int4.pack(torch.zeros(0, 4, dtype=torch.int8)).shape == (0, 2)


@pytest.mark.parametrize(
    ("x", "dtype", "error", "message"),
    [
        (np.zeros((2, 3), int), "s4", ShapeError, "even number"),
        (np.zeros((), int), "s4", ShapeError, "even number"),
        (np.zeros((2, 2)), "s4", DtypeError, "float64; takes integers"),
        (np.full((2, 2), 8), "s4", OptionError, r"from 8 to 8; s4 takes -8 \.\. 7"),
        (np.full((2, 2), -1), "u4", OptionError, r"from -1 to -1; u4 takes 0 \.\. 15"),
        (np.zeros((2, 2), int), "s8", OptionError, "dtype is 's8'; takes 's4', 'u4'"),
        ([1, 2], "s4", DtypeError, "x is a list"),
    ],
)
def test_packing_refuses(x, dtype, error, message):
    with pytest.raises(error, match=message):
        int4.pack(x, dtype)


def test_unpacking_refuses():
    with pytest.raises(DtypeError, match="int8; takes uint8"):
        int4.unpack(np.zeros(2, np.int8))
    with pytest.raises(OptionError, match="dtype is None"):
        int4.unpack(np.zeros(2, np.uint8), None)
    with pytest.raises(ShapeError, match="no dimension"):
        int4.unpack(np.zeros((), np.uint8))


def test_importing_it_imports_nothing():
    code = "import sys, ptxgen; ptxgen.int4.pack; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "torch", "cupy", "ptxgen.ops"} & set(run.stdout.split())


# -- the oracle ---------------------------------------------------------------------------


def single(x):
    """The f32 nearest to an exact double (two roundings would need more care)."""
    return float(np.float32(x))


def element(a, b, c, bias, activation, alpha, beta, dtype):
    """Returns one output by the contract, in Python's numbers; doubles hold each step exactly."""
    v = single(single(sum(x * y for x, y in zip(a, b, strict=True))) * alpha)
    if c is not None:
        v = single(v + single(beta * c))
    if bias is not None:
        v = single(v + single(bias))
    if activation is not None:
        v = float(reference.activate(activation, np.float32(v)))
    low, high = ELEMENTS[dtype].low, ELEMENTS[dtype].high
    return 0 if math.isnan(v) else max(low, min(high, round(v) if math.isfinite(v) else v))


@pytest.mark.parametrize(("dtype", "layout", "epilogue", "kind"), VARIANTS)
@pytest.mark.parametrize("with_c", [False, True])
def test_the_oracle_does_what_the_contract_says(dtype, layout, epilogue, kind, with_c):
    rng = np.random.default_rng(SEED)
    m, n, k = 3, 4, 10
    a, b = matrix(rng, m, k, dtype), matrix(rng, k, n, dtype)
    c = matrix(rng, m, n, dtype) if with_c else None
    bias = None if kind is None else rng.integers(-40, 40, n).astype(kind)
    alpha, beta = single(0.07), single(-1.5)
    got = reference.int4_gemm(
        int4.pack(a, dtype),
        int4.pack(b.T if layout == "rcr" else b, dtype),
        None if c is None else int4.pack(c, dtype),
        bias,
        dtype=dtype,
        layout=layout,
        activation=None if epilogue == "bias" else epilogue,
        alpha=alpha,
        beta=beta,
    )
    how = None if epilogue in ("identity", "bias") else epilogue
    expected = [
        [
            element(
                a[i].tolist(),
                b[:, j].tolist(),
                None if c is None else int(c[i, j]),
                None if bias is None else float(bias[j]),
                how,
                alpha,
                beta,
                dtype,
            )
            for j in range(n)
        ]
        for i in range(m)
    ]
    assert int4.unpack(got, dtype).tolist() == expected


def test_the_oracle_rounds_half_to_even_and_saturates():
    """The oracle rounds half to even and saturates: sums are 1, so the bias decides."""
    one = int4.pack(np.array([[1, 0]]))
    values = [0.5, 1.5, 2.5, -0.5, -1.5, 6.5, 7.5, -8.5, -9.5, 1e30, -math.inf, math.inf, math.nan]
    bias = np.array([*values, 0], np.float32) - np.float32(1)
    b = int4.pack(np.array([[1, 0]] * len(bias)))
    got = int4.unpack(reference.int4_gemm(one, b, bias=bias))[0].tolist()
    assert got[:-1] == [0, 2, 2, 0, -2, 6, 7, -8, -8, 7, -8, 7, 0]


@pytest.mark.parametrize("alpha", [math.nan, math.inf, 1e39, -1e39])
def test_the_oracle_takes_any_alpha(alpha):
    a, b = int4.pack(np.array([[1, 1]])), int4.pack(np.array([[1, 0], [-1, 0], [1, -1], [0, 0]]))
    got = int4.unpack(reference.int4_gemm(a, b, alpha=alpha)).tolist()[0]
    ends = [0, 0] if math.isnan(alpha) else [7, -8] if alpha > 0 else [-8, 7]
    assert got == [*ends, 0, 0]


def test_without_c_beta_is_not_used_and_the_sums_have_no_epilogue():
    rng = np.random.default_rng(SEED)
    a, b = matrix(rng, 3, 6, "u4"), matrix(rng, 6, 4, "u4")
    how = {"dtype": "u4", "layout": "rrr"}
    packed = int4.pack(a, "u4"), int4.pack(b, "u4")
    plain = reference.int4_gemm(*packed, **how)
    assert (reference.int4_gemm(*packed, beta=math.nan, **how) == plain).all()
    sums = reference.int4_gemm(*packed, None, np.ones(4, np.float32), alpha=3, activation="silu",
                               out_dtype="int32", **how)  # fmt: skip
    assert sums.dtype == np.int32
    assert (sums == a @ b).all()
    wide = reference.int4_gemm(*packed, alpha=0.5, out_dtype=np.float32, **how)
    assert wide.dtype == np.float32
    assert (wide == (a @ b) * 0.5).all()


def test_empty_products():
    a, b = np.zeros((2, 0), np.uint8), np.zeros((4, 0), np.uint8)
    got = reference.int4_gemm(a, b, bias=np.arange(4, dtype=np.int32))
    assert int4.unpack(got).tolist() == [[0, 1, 2, 3]] * 2
    assert reference.int4_gemm(a[:0], b).shape == (0, 2)


def operands():
    return {"a": np.zeros((3, 5), np.uint8), "b": np.zeros((6, 5), np.uint8)}


BIAS = np.zeros(6, np.float32)

REFUSED = [
    ({"activation": "relu"}, OptionError, "bias is None; activation 'relu' takes one"),
    ({"activation": "identity", "bias": BIAS}, OptionError, "'identity' takes none"),
    ({"activation": "gelu_tanh", "bias": BIAS}, OptionError, "activation is 'gelu_tanh'"),
    ({"dtype": "s8"}, OptionError, "dtype is 's8'; takes 's4', 'u4'"),
    ({"layout": "ccr"}, OptionError, "layout is 'ccr'; takes 'rcr', 'rrr'"),
    ({"out_dtype": "u4"}, DtypeError, "out_dtype is 'u4'; takes"),
    ({"out_dtype": "int64"}, DtypeError, "out_dtype is 'int64'; takes"),
    ({"a": np.zeros((3, 5), np.int8)}, DtypeError, "a .* int8"),
    ({"bias": BIAS.astype("f8")}, DtypeError, "bias .* float64"),
    ({"bias": BIAS[:4]}, ShapeError, r"bias has shape \[4\]; takes \[N\] with N = 6"),
    ({"b": np.zeros((5, 5), np.uint8)}, ShapeError, "N = 5; takes a multiple of 2"),
    ({"c": np.zeros((3, 6), np.uint8)}, ShapeError, r"takes \[M, N/2\] with N = 6"),
]
"""Calls that both oracle and library refuse: arguments, error type, message."""


@pytest.mark.parametrize(("given", "error", "message"), REFUSED)
def test_the_oracle_refuses(given, error, message):
    with pytest.raises(error, match=message):
        reference.int4_gemm(**{**operands(), **given})


@pytest.mark.parametrize("name", numerics.STAIRS)
def test_activations_are_stairs(name):
    """The least number of each step, found again; around it, and below 0, nothing else."""
    assert set(numerics.STAIRS) == set(numerics.EPILOGUES[3:])

    def rounded(bits):
        return np.rint(activate(name, np.asarray(bits, np.uint32).view(np.float32)))

    steps = [float.fromhex(step) for step in numerics.STAIRS[name].split()]
    assert len(steps) == ELEMENTS["u4"].high
    for height, step in enumerate(steps, start=1):
        low, high = 0, int(np.float32(40).view(np.uint32))
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if rounded([middle])[0] >= height else (middle, high)
        assert np.uint32(high).view(np.float32) == step
        near = np.arange(high - 2000, high + 2000)
        assert (rounded(near) == np.where(near < high, height - 1, height)).all()
    random = np.random.default_rng(1).integers(0, 1 << 32, 200_000, np.uint32)
    x = np.append(random.view(np.float32), np.float32([np.nan, np.inf, -np.inf, -0.0, 0.0]))
    expected = quantise(activate(name, x), "u4")
    assert (np.sum([x >= step for step in steps], axis=0) == expected).all()
