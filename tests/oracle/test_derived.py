"""Oracles that follow from programs have the bits of those that were written by hand."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxgen import reference
from ptxgen.errors import SpecError
from ptxgen.ops import OPERATIONS
from ptxgen.program.interpret import derived

RANDOM = np.random.default_rng(0)


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape, dtype=np.float32).astype(dtype)


X, TARGET = numbers(6, 40), np.array([0, 3, 39, -100, 7, 1])
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("sum", (numbers(3, 4, 5),), {"axis": 1}),
    ("sum", (numbers(3, 4, 5, dtype=ml_dtypes.bfloat16),), {"axis": (0, 2)}),
    ("mean", (numbers(3, 4, 5),), {"axis": (0, 2), "keepdims": True}),
    ("prod", (X,), {"axis": 0}),
    ("amax", (X,), {"axis": 0}),
    ("amin", (X,), {}),
    ("argmax", (X,), {}),
    ("argmin", (X,), {"axis": 1, "keepdims": True}),
    ("var", (X,), {"axis": 0, "correction": 0.0}),
    ("std", (X,), {}),
    ("softmax", (X,), {"axis": 0}),
    ("log_softmax", (X.astype(np.float16),), {"out_dtype": "float32"}),
    ("rms_norm", (X, numbers(40)), {"residual": numbers(6, 40)}),
    ("layer_norm", (X, numbers(40), numbers(40)), {"eps": 0.1}),
    ("group_norm", (numbers(2, 6, 5, 7), 3, numbers(6), numbers(6)), {}),
    ("cross_entropy", (X, TARGET), {"label_smoothing": 0.1}),
    ("cross_entropy", (X, TARGET), {"reduction": "none", "softcap": 2.0, "z_loss": 0.01}),
]


def several(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize(
    ("name", "arguments", "options"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)]
)
def test_derived_oracles_are_the_written_ones(
    name: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    written = several(getattr(reference, name)(*arguments, **options))
    made = several(derived(OPERATIONS[name])(*arguments, **options))
    for one, other in zip(made, written, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        assert one.tobytes() == other.tobytes()


def test_what_launches_has_no_derived_oracle() -> None:
    with pytest.raises(SpecError, match=r"logsumexp launches .* has no oracle"):
        derived(OPERATIONS["logsumexp"])(X)


def test_a_derived_oracle_of_other_options_differs() -> None:
    """Derived oracles use options: another eps gives other bits, so the comparison would see it."""
    one = derived(OPERATIONS["layer_norm"])(X, eps=0.1)
    assert one.tobytes() != reference.layer_norm(X, eps=0.2).tobytes()


def test_they_take_arrays_of_any_strides() -> None:
    """Derived oracles take any strides, negative ones too, as calls on host arrays do."""
    x, weight = numbers(12, 7)[::-1].T, numbers(24)[::2]
    packed = np.ascontiguousarray(x), weight.copy()
    for name in ("rms_norm", "layer_norm"):
        oracle = derived(OPERATIONS[name])
        assert (oracle(x, weight) == oracle(*packed)).all()
        assert (getattr(reference, name)(x, weight) == oracle(*packed)).all()
