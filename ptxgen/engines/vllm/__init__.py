"""The extension for vLLM: its layers, attention and sampler by operations of ptxgen.

vLLM finds :func:`register` by the entry point ``vllm.general_plugins`` and calls it in each of its
processes before it reads a model's configuration. The variable ``PTXGEN_VLLM`` has the mode:

- ``on``, the default: serves what it can and leaves the rest to vLLM.
- ``strict``: refuses a model or option of which a part would be left to vLLM, by name.
- ``audit``: serves as ``on``, counts calls by layer, and writes the report at exit.
- ``off``: leaves vLLM as it is.

:data:`ptxgen.engines.vllm.hooks.HOOKS` lists every function that is replaced at start,
``MODELS`` and ``QUANTIZED`` those that are replaced when such a model is loaded. Needs vLLM 0.26 or
0.27: ``pip install ptxgen[vllm]``.
"""

from __future__ import annotations

import os
import re

from ptxgen.errors import EngineError, OptionError, proposal

MODES = ("on", "strict", "audit", "off")
VARIABLE = "PTXGEN_VLLM"
"""Environment variable of the mode."""
OLDEST, NEWEST = (0, 26), (0, 27)
"""First and last release of vLLM whose functions the hooks fit."""


def mode() -> str:
    """Returns the mode that ``PTXGEN_VLLM`` asks for. Raises OptionError for an unknown one."""
    word = os.environ.get(VARIABLE, "") or MODES[0]
    if word not in MODES:
        takes = f"takes {', '.join(MODES)}{proposal(word, MODES)}"
        raise OptionError(f"{VARIABLE} is {word!r}; {takes}")
    return word


def installed_version() -> str:
    """Returns the version of the installed vLLM; empty if there is none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("vllm")
    except PackageNotFoundError:
        return ""


def fits(version: str) -> bool:
    """Whether the hooks are written for this version of vLLM."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and OLDEST <= (int(found[1]), int(found[2])) <= NEWEST


def register() -> None:
    """Replaces vLLM's functions in this process, and registers the attention backend ``CUSTOM``.
    Later calls in the process change nothing.

    Raises OptionError for an unknown mode; EngineError for another version of vLLM, for a function
    whose signature differs from the one in HOOKS, and in mode ``strict`` on a platform other than
    CUDA. On such a platform the other modes leave vLLM as it is, and say so in the report.
    """
    from ptxgen.engines.audit import REPORT

    word = mode()
    if word == "off" or REPORT.engine:
        return
    found = installed_version()
    if not fits(found):
        takes = f"takes {_text(OLDEST)} to {_text(NEWEST)}; {VARIABLE}=off leaves vLLM as it is"
        raise EngineError(f"vLLM has version {found or 'unknown'}; the extension {takes}")
    from vllm.platforms import current_platform

    from ptxgen.engines.hooks import defer, install
    from ptxgen.engines.vllm.hooks import BACKEND, HOOKS, MODELS, QUANTIZED

    REPORT.begin("vLLM", found, word)
    try:
        if not current_platform.is_cuda():
            REPORT.leave("vLLM", "the platform is not CUDA, so nothing is replaced")
            return
        install(HOOKS, f"vLLM {found}")
        defer((*MODELS, *QUANTIZED))
    except EngineError:
        REPORT.reset()
        raise
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    register_backend(AttentionBackendEnum.CUSTOM, BACKEND)
    REPORT.hooks = [hook.target for hook in HOOKS if hook.replacement]


def _text(release: tuple[int, int]) -> str:
    return ".".join(map(str, release))
