"""The layout of a weight, which callers state: leaving it out warns and takes "kn"."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

import ptxgen
from ptxgen import graph
from ptxgen.cli.stubs import stubs

NAMES = ("linear", "linear_dgrad", "linear_wgrad", "grouped_linear", "grouped_linear_wgrad")
X, W = (np.random.default_rng(i).standard_normal((3, 3)).astype("f4") for i in range(2))
ENDS = np.array([1, 3], np.int32)


def operands(name: str) -> tuple[np.ndarray, ...]:
    """Square arguments, which fit both layouts."""
    if not name.startswith("grouped"):
        return X, W
    return (X, np.stack([W, X]), ENDS) if name == "grouped_linear" else (X, W, ENDS)


@pytest.fixture(autouse=True)
def on_cpu():
    with ptxgen.use_device("cpu"):
        yield


@pytest.mark.parametrize("room", [ptxgen, ptxgen.reference], ids=lambda room: room.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_a_layout_left_out_warns_at_the_callers_line(name, room):
    function, given = getattr(room, name), operands(name)
    kn, nk = (function(*given, layout=layout) for layout in ("kn", "nk"))
    assert (kn != nk).any(), "a square weight tells nobody"
    for _ in range(2):  # a known call, too
        with pytest.warns(FutureWarning, match=f'^{name}: pass layout="kn" .* or "nk" ') as told:
            found = function(*given)
        assert [each.filename for each in told] == [__file__]
        assert (found == kn).all()
    with pytest.raises(ptxgen.OptionError, match=r"layout.*None.*'kn', 'nk'"):
        function(*given, layout=None)


@pytest.mark.parametrize("name", NAMES)
def test_signatures_and_stubs_have_no_default(name):
    assert inspect.signature(getattr(ptxgen, name)).parameters["layout"].default is inspect._empty
    text = next(t for path, t in stubs().items() if path.parts[-2:] == ("ptxgen", "__init__.pyi"))
    assert "    layout: str,\n" in text.partition(f"def {name}(")[2].partition(") -> ")[0]


def test_a_call_site_is_told_once():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(3):
            ptxgen.linear(X, W)
        ptxgen.linear(X, W, layout="kn")
    assert len(told) == 1


def test_given_memory_and_traces_are_told_too(tmp_path):
    expected = ptxgen.linear(X, W, layout="kn")
    with pytest.warns(FutureWarning, match="pass layout="):
        assert (ptxgen.linear(X, W, out=np.empty_like(X)) == expected).all()
    with pytest.warns(FutureWarning, match="pass layout="):
        captured = ptxgen.capture(lambda x: ptxgen.linear(x, W), X)
    path = tmp_path / "program"
    captured.save(path)
    assert (captured(X) == expected).all() and (ptxgen.load(path)(X) == expected).all()

    def program(**layout: str) -> str:
        b = graph.Builder("layer", device="cpu")
        b.output(
            b.linear(b.input("x", (3, 3), "float32"), b.input("w", (3, 3), "float32"), **layout)
        )
        return str([step.problem for step in b.program().steps])

    with pytest.warns(FutureWarning, match="pass layout="):
        assert program() == program(layout="kn") != program(layout="nk")


def test_sizes_alone_need_none():
    assert str(ptxgen.explain("linear", 3, 3, 3)) == str(
        ptxgen.explain("linear", 3, 3, 3, layout="kn")
    )


def test_inside_the_package_it_is_always_given():
    from ptxgen.ops import OPERATIONS

    for name in NAMES:
        (layout,) = (p for p in OPERATIONS[name].parameters if p.name == "layout")
        assert layout.stated
        lower = inspect.signature(OPERATIONS[name].lower).parameters["layout"]
        assert lower.default is lower.empty


def test_gradients_and_compilers_are_told_too():
    torch = pytest.importorskip("torch")
    import ptxgen.torch as served

    x, w, ends = map(torch.from_numpy, operands("grouped_linear"))
    x.requires_grad_()
    kn = served.grouped_linear(x, w, ends, layout="kn")
    with pytest.warns(FutureWarning, match="grouped_linear: pass layout="):
        found = served.grouped_linear(x, w, ends)
    assert torch.equal(found, kn) and found.requires_grad
    compiled = torch.compile(
        lambda x: served.grouped_linear(x, w, ends), backend="eager", fullgraph=True
    )
    with pytest.warns(FutureWarning, match="grouped_linear: pass layout="):
        assert torch.equal(compiled(x.detach()), kn)
