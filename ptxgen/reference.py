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


def __getattr__(name: str) -> Any:
    from ptxgen import oracle

    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in oracle.__all__:
        value = getattr(oracle, name)
    else:
        from ptxgen.ops import OPERATIONS
        from ptxgen.program.interpret import derived

        if name not in OPERATIONS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        op = OPERATIONS[name]
        value = op.oracle or derived(op)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    from ptxgen import oracle
    from ptxgen.ops import OPERATIONS

    public = {name for name, op in OPERATIONS.items() if op.public}
    return sorted({*oracle.__all__, *public})
