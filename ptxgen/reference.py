"""NumPy oracles of the operations, with their names: the bits that every kernel returns.

Arguments and results are those of the operations, on NumPy arrays. Contracts have oracles that are
written by hand (:mod:`ptxgen.oracle`); those of operations that are made of others are made of
theirs (:func:`ptxgen.program.interpret.derived`).

>>> import numpy, ptxgen
>>> ptxgen.reference.softmax(numpy.zeros((1, 4), "f4"))
array([[0.25, 0.25, 0.25, 0.25]], dtype=float32)
"""

from __future__ import annotations

from typing import Any

from ptxgen import lazy

OTHER_NAMES = {
    "nf4_dequantize": "dequantize",
    "nf4_linear": "quantized_linear",
    "nf4_linear_dgrad": "quantized_linear_dgrad",
}
"""Names that oracles had before."""


def _load(name: str) -> Any:
    from ptxgen import oracle

    name = OTHER_NAMES.get(name, name)
    if name in oracle.__all__:
        return getattr(oracle, name)
    from ptxgen.ops import OPERATIONS
    from ptxgen.program.interpret import derived

    op = OPERATIONS[name]
    return op.oracle or derived(op)


def _names() -> set[str]:
    from ptxgen import oracle
    from ptxgen.ops import OPERATIONS

    return {*oracle.__all__, *(name for name, op in OPERATIONS.items() if op.public)}


__getattr__, __dir__ = lazy.attributes(__name__, _load, _names)
