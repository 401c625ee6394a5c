"""Signatures of the matrix products: arguments, results and shapes."""

from __future__ import annotations

from ptxgen.numerics.signature import Signature

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
)
MATMUL = Signature(
    "matmul",
    ("a", "b", "bias"),
    ("out",),
    {
        "nn": {"a": "* M K", "b": "* K N", "bias": "N", "out": "* M N"},
        "nt": {"a": "* M K", "b": "* N K", "bias": "N", "out": "* M N"},
        "tn": {"a": "* K M", "b": "* K N", "bias": "N", "out": "* M N"},
        "tt": {"a": "* K M", "b": "* N K", "bias": "N", "out": "* M N"},
    },
    _SIZES,
    optional=frozenset({"bias"}),
)
