"""NumPy oracles of the operations, under the same names; they return the bits of every kernel.

Arguments and results are those of the operations, on NumPy arrays. Operations with kernels have
oracles written by hand (:mod:`ptxgen.oracle`); oracles of operations composed of others call these
(:func:`ptxgen.program.interpret.derived`).

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
"""Current names of oracles, by their former names."""


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
