"""Pointwise functions on a GPU: every kernel and named row against the oracle, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from bits import same_bits
from pointwise_cases import (
    BYTE_LAYOUTS,
    KINDS,
    LAYOUTS,
    PARTS,
    check_bytes,
    computed,
    drawn,
    rows,
    scaled,
    strided,
)

import ptxgen
from ptxgen import functions as f
from ptxgen.errors import DtypeError, FormulaError, ShapeError
from ptxgen.ops.pointwise_table import ROWS
from ptxgen.program import invoke
from ptxgen.program.launch import serving
from ptxgen.runtime import get_device
from ptxgen.spec.pointwise import INDEXINGS

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytestmark = pytest.mark.gpu

SEED = 20262


@pytest.fixture(scope="module")
def device():
    return get_device("cuda")


@ptxgen.pointwise
def mixed(x, y, s):
    return f.where(x > y, x * s, f.fma(x, y, s))


@ptxgen.pointwise
def whole(x, y, s):
    return f.where(x > y, x * s, x + y)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["bf16", "f16", "f32", "f64", "i32", "i64"])
def test_every_kernel_gives_the_bits_of_the_oracle(device, layout, kind) -> None:
    lies, way = LAYOUTS[layout]
    function, number = (whole, 3) if kind[0] == "i" else (mixed, 0.3)
    rng = np.random.default_rng(SEED)
    bases = [drawn(kind, lie.size + 5, rng) for lie in lies]
    x, y = (strided(lie, base) for lie, base in zip(lies[:2], bases[:2], strict=True))
    wanted = bases[2].copy()
    strided(lies[2], wanted)[...] = function.reference(x, y, number)
    places = (lies[0], lies[1], None, lies[2])
    out = np.empty_like(bases[2])
    problem = computed(device, function, places, (*bases[:2], number, bases[2]), (out,))
    agree(out, wanted, layout)
    names = {route.main.indexing: route.name for route in serving(problem, device.sms)}
    taken = [w for w in INDEXINGS if w in names]
    assert taken[0] == way
    for other in taken[1:]:
        out[...] = 0
        computed(device, function, places, (*bases[:2], number, bases[2]), (out,), names[other])
        agree(out, wanted, f"{layout} {other}")


@pytest.mark.parametrize("layout", BYTE_LAYOUTS)
def test_bytes_are_moved_and_cast_in_every_way(device, layout) -> None:
    check_bytes(device, layout)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_copies_keep_every_nan_and_conversions_give_one(dtype) -> None:
    codes = torch.arange(1 << 16, device="cuda").to(torch.int16).view(256, 256)
    x = codes.view(getattr(torch, dtype))
    for view, bits in ((x, codes), (x.T, codes.T), (x[:, 1::3], codes[:, 1::3])):
        assert torch.equal(f.copy(view).view(torch.int16), bits)
    turned = torch.where(x.isnan(), 0x7FFF, codes ^ -0x8000)
    assert torch.equal(f.neg(x).view(torch.int16), turned.to(torch.int16))


def agree(out, wanted, what) -> None:
    if out.dtype.kind in "iub":
        np.testing.assert_array_equal(out, wanted, str(what))
    else:
        same_bits(out, wanted, seed=SEED, what=str(what))


@pytest.mark.parametrize("name", [row.name for row in ROWS])
def test_every_row_gives_the_bits_of_the_oracle(device, name) -> None:
    """Every function has the oracle's bits in each dtype that it takes, special values included."""
    function, count = getattr(f, name), 40007
    took = []
    for kind in (*KINDS, *PARTS):
        rng = np.random.default_rng(SEED)
        arity = len(function.arguments)
        kinds = ["bool", kind, kind] if name == "where" else [kind] * arity
        bases = [drawn(k, count, rng) for k in kinds]
        try:
            wanted = function.reference(*bases)
        except (DtypeError, FormulaError):
            continue
        took.append(kind)
        out = np.empty_like(wanted)
        blank = np.full_like(wanted, 1)
        computed(device, function, [rows(count)] * (arity + 1), (*bases, blank), (out,))
        agree(out, wanted, f"{name} {kind}")
    assert took


def test_what_is_prepared_is_what_is_followed(device, monkeypatch) -> None:
    """Prepared calls have the bits of followed ones: repeated, with other numbers, in place, with
    several and broadcast results.
    """
    rng = np.random.default_rng(SEED)
    host = [rng.standard_normal((37, 64)).astype(np.float32) for _ in range(2)]
    x, y = (torch.from_numpy(h).cuda().bfloat16() for h in host)
    x16, y16 = (KINDS["bf16"].type(t.float().cpu().numpy()) for t in (x, y))
    for number in (0.5, 0.5, 7):  # the first of all makes the type of tensors known
        mixed(x, y, number)
    followed, real = [], invoke.invoke

    def follow(frame, *of):
        if frame.op is mixed:  # not what its formula calls, when it is first written down
            followed.append(of)
        return real(frame, *of)

    monkeypatch.setattr(invoke, "invoke", follow)
    for number in (0.5, 0.25, 7, -1e300):
        got = mixed(x, y, number)
        wanted = mixed.reference(x16, y16, number)
        agree(got.float().cpu().numpy(), wanted.astype(np.float32), number)
    assert not followed  # one for all numbers of a type
    z = x.clone()
    assert mixed(z, y, 0.5, out=z) is z
    again = x.clone()
    assert len(followed) == 1
    mixed(again, y, 0.5, out=again)
    assert len(followed) == 1
    agree(again.float().cpu().numpy(), z.float().cpu().numpy(), "in place")
    assert torch.equal(z.nan_to_num(), mixed(x, y, 0.5).nan_to_num())


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("count", [1, 1003, 3_000_001])
def test_a_product_by_one_in_place_writes_nothing(count, dtype) -> None:
    """A signalling NaN that has been computed with is none."""
    kind = getattr(torch, dtype)
    x = torch.randn(count, device="cuda").to(kind)
    bits = x.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()])
    odd = {"bfloat16": 0x7F81, "float16": 0x7C01, "float32": 0x7F800001, "float64": 0x7FF << 52 | 1}
    bits[::500] = odd[dtype]
    before, wide = bits.clone(), torch.promote_types(kind, torch.float32)
    scaled(x, torch.ones((), device="cuda", dtype=wide), out=x)
    assert count == 1 or torch.equal(bits, before)
    half = torch.full((), 0.5, device="cuda", dtype=wide)
    expected = (x.to(wide) * half).to(kind)
    scaled(x, half, out=x)
    assert not (bits == odd[dtype]).any() and torch.equal(x.nan_to_num(), expected.nan_to_num())


class Backwards:
    """The rows of a matrix, the last first, as CuPy has them (PyTorch has none such)."""

    def __init__(self, tensor):
        found = dict(tensor.__cuda_array_interface__)
        pitch = tensor.stride(0) * tensor.element_size()
        found["data"] = found["data"][0] + (len(tensor) - 1) * pitch, False
        found["strides"] = -pitch, tensor.element_size()
        self.tensor, self.__cuda_array_interface__ = tensor, found


def test_negative_strides():
    x, y = (torch.randn(33, 72, device="cuda") for _ in range(2))
    place = torch.zeros_like(x)
    f.add(Backwards(x), y, out=Backwards(place))
    assert torch.equal(place.flip(0), x.flip(0) + y)
    with pytest.raises(ShapeError, match="x has negative strides"):
        ptxgen.softmax(Backwards(x))
