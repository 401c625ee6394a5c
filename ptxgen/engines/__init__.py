"""Extensions of inference engines, which serve a model with the bits of its trainer.

An extension replaces an engine's layers, attention and sampler by operations of ptxgen, in memory
alone: when the engine starts, and for some models when they are loaded. Tables of hooks list each
function that it replaces, with the signature that it must have (:mod:`ptxgen.engines.hooks`).
:func:`report` says what was replaced, what ran, and what was left to the engine. Code for one
engine is in a package or module of its name, such as :mod:`ptxgen.engines.vllm`.

Importing this package loads neither PyTorch nor an engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxgen.engines.audit import Report

__all__ = ["report"]


def report() -> Report:
    """Returns the report of this process: hooks, layers, calls, and what an engine serves itself.

    ``str`` formats it as text, ``as_dict()`` as data for JSON, ``write(path)`` stores the latter.
    """
    from ptxgen.engines.audit import REPORT

    return REPORT
