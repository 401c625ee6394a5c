"""Types of results: asserted by mypy (make lint), and met by the values (pytest)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

import numpy as np
from numpy.typing import NDArray

import ptxgen
from ptxgen import functions, layout, reference
from ptxgen.ops.pointwise import Pointwise

F32 = NDArray[np.float32]
X: F32 = np.ones((2, 4), np.float32)
T: F32 = np.ones((1, 2, 4), np.float32)
W: F32 = np.ones((4, 2), np.float32)


def test_results_have_the_type_of_the_first_array() -> None:
    with ptxgen.use_device("cpu"):
        assert_type(ptxgen.linear(X, W, layout="kn"), F32)
        found: tuple[object, ...] = (
            ptxgen.linear(X, W, layout="kn"),
            assert_type(ptxgen.softmax(X), F32),
            assert_type(functions.add(X, 1.0), F32),
            assert_type(layout.transpose(X), F32),
            assert_type(layout.concat([X, X]), F32),
            *assert_type(ptxgen.topk(X, 2), tuple[F32, Any]),
        )
    assert all(isinstance(each, np.ndarray) for each in found)


def test_an_argument_says_whether_there_is_a_second_result() -> None:
    with ptxgen.use_device("cpu"):
        alone = assert_type(ptxgen.rms_norm(X), F32)
        both = assert_type(ptxgen.rms_norm(X, residual=X), tuple[F32, F32])
        scanned = assert_type(ptxgen.linear_recurrence(T, T), F32)
        kept = assert_type(ptxgen.linear_recurrence(T, T, return_state=True), tuple[F32, F32])
    assert isinstance(alone, np.ndarray) and isinstance(scanned, np.ndarray)
    assert isinstance(both, tuple) and isinstance(kept, tuple)


def test_oracles_take_what_numpy_takes_and_return_its_arrays() -> None:
    found = assert_type(reference.softmax(X), NDArray[Any])
    both = assert_type(reference.rms_norm(X, residual=X), tuple[NDArray[Any], NDArray[Any]])
    assert isinstance(found, np.ndarray) and isinstance(both, tuple)
    assert (assert_type(reference.linear(X, W, layout="kn"), NDArray[Any]) == 4.0).all()


if TYPE_CHECKING:

    class Tensor:
        """An array of another framework."""

        shape: tuple[int, ...]
        dtype: object

    def _of_another_framework(x: Tensor, some: Tensor | None, state: bool) -> None:
        assert_type(ptxgen.linear(x, x, layout="kn"), Tensor)
        assert_type(functions.exp(x), Tensor)
        assert_type(functions.mul(2.0, x), Any)
        assert_type(ptxgen.rms_norm(x, residual=some), Tensor | tuple[Tensor, Tensor])
        assert_type(
            ptxgen.linear_recurrence(x, x, return_state=state), Tensor | tuple[Tensor, Tensor]
        )
        ptxgen.linear(3, x, layout="kn")  # type: ignore[type-var]
        made: Pointwise = ptxgen.pointwise(lambda a: a)
        assert_type(made(x), Any)
