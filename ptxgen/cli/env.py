"""Command ``env``: prints versions, GPUs and folders, for bug reports."""

from __future__ import annotations

import argparse
import platform
from importlib import metadata
from typing import Any

from ptxgen.ui import emit, emit_json, pairs


def add_commands(commands: Any) -> None:
    """Adds ``ptxgen env`` to the subcommands ``commands``."""
    command = commands.add_parser("env", help="versions, GPUs and places, for bug reports")
    command.add_argument("--json", action="store_true", help="for programs")
    command.set_defaults(run=_env)


def version(distribution: str) -> str:
    """Returns the installed version of a distribution, or "not installed"."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def facts() -> dict[str, Any]:
    """Returns the entries of ``ptxgen env``, by name. Works without GPU, driver or compiler."""
    from ptxgen.build.cache import default_root

    devices, driver = _devices()
    return {
        "ptxgen": version("ptxgen"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "numpy": version("numpy"),
        "jinja2": version("jinja2"),
        "cuda-bindings": version("cuda-bindings"),
        **_compiler(),
        "driver": driver,
        "devices": devices,
        "cache": str(default_root()),
    }


def _compiler() -> dict[str, Any]:
    from ptxgen.build.compile import TOOLCHAIN, toolchain_version
    from ptxgen.errors import CompileError

    try:
        found = toolchain_version()
    except CompileError as error:
        return {"nvrtc": str(error), "nvrtc_pinned": False}
    return {"nvrtc": found, "nvrtc_pinned": found == TOOLCHAIN.nvrtc}


def _devices() -> tuple[list[dict[str, Any]], str]:
    """Returns facts about the usable devices, and the driver's CUDA version (or its error)."""
    from ptxgen.errors import DeviceError
    from ptxgen.runtime import devices
    from ptxgen.runtime.cuda import driver

    try:
        status, number = driver().cuDriverGetVersion()
        text = f"CUDA {number // 1000}.{number % 1000 // 10}" if not int(status) else status.name
    except DeviceError as error:
        text = str(error).partition(";")[0]
    found = [
        {"device": str(d), "name": d.name, "arch": d.arch, "sms": d.sms, "shared": d.max_shared}
        for d in devices()
    ]
    return found, text


def _env(arguments: argparse.Namespace) -> None:
    found = facts()
    if arguments.json:
        emit_json(found)
        return
    pinned = found.pop("nvrtc_pinned")
    if found["nvrtc"][:1].isdigit():
        found["nvrtc"] += " (the pinned one)" if pinned else " (not the pinned one: no goldens)"
    found["devices"] = (
        "\n".join("{device}  {name}, {arch}, {sms} SMs".format(**d) for d in found["devices"])
        or "none"
    )
    emit(pairs(found.items(), indent=""))
