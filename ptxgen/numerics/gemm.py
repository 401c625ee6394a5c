"""The signatures of the products: arguments, results, options and shapes."""

from __future__ import annotations

from ptxgen.numerics.contract import ACTIVATIONS, TIERS
from ptxgen.numerics.signature import Option, Signature

_TIER = Option("auto", ("auto", *TIERS))
_WEIGHT = Option("kn", ("kn", "nk"))
_SIZES = ("M", "N", "K")

LINEAR = Signature(
    "linear",
    ("x", "w", "bias"),
    ("out",),
    {
        "kn": {"x": "... K", "w": "K N", "bias": "N", "out": "... N"},
        "nk": {"x": "... K", "w": "N K", "bias": "N", "out": "... N"},
    },
    _SIZES,
    optional=frozenset({"bias"}),
    options={
        "layout": _WEIGHT,
        "tier": _TIER,
        "activation": Option(None, (None, *ACTIVATIONS)),
        "out_dtype": Option(),
    },
)
DGRAD = Signature(
    "linear_dgrad",
    ("dy", "w"),
    ("out",),
    {
        "kn": {"dy": "... N", "w": "K N", "out": "... K"},
        "nk": {"dy": "... N", "w": "N K", "out": "... K"},
    },
    _SIZES,
    options={"layout": _WEIGHT, "tier": _TIER, "out_dtype": Option()},
)
WGRAD = Signature(
    "linear_wgrad",
    ("x", "dy"),
    ("out",),
    {
        "kn": {"x": "... K", "dy": "... N", "out": "K N"},
        "nk": {"x": "... K", "dy": "... N", "out": "N K"},
    },
    _SIZES,
    options={
        "layout": _WEIGHT,
        "tier": _TIER,
        "accumulate": Option(False, (False, True), "bool"),
        "chain": Option(False, (False, True), "bool"),
        "out_dtype": Option(),
    },
)
MATMUL = Signature(
    "matmul",
    ("a", "b"),
    ("out",),
    {
        "nn": {"a": "* M K", "b": "* K N", "out": "* M N"},
        "nt": {"a": "* M K", "b": "* N K", "out": "* M N"},
        "tn": {"a": "* K M", "b": "* K N", "out": "* M N"},
        "tt": {"a": "* K M", "b": "* N K", "out": "* M N"},
    },
    _SIZES,
    options={
        "layout": Option("nn", ("nn", "nt", "tn", "tt")),
        "tier": _TIER,
        "out_dtype": Option(),
    },
)
