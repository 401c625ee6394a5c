"""Command ``profile``: counts instructions and memory accesses of a kernel in the interpreter."""

from __future__ import annotations

import argparse
from typing import Any

from ptxgen.arguments import numbers, sizes
from ptxgen.cli.kernels import find
from ptxgen.ui import emit, emit_json, warn

_SLOW = 1 << 26
"""Number of multiply-adds, M * N * K, above which the interpreter takes minutes."""

_EPILOG = """\
examples:
  ptxgen profile simt_nn_f32_64x64x32_8f88ce 64x256x64
  ptxgen profile simt_nt_f32_16x32x32_9a6131 16x256x32 --lines --sites 20
"""


def add_commands(commands: Any) -> None:
    """Adds ``ptxgen profile`` to the subcommands ``commands``."""
    command = commands.add_parser(
        "profile",
        help="what a kernel does: instructions, sectors, bank conflicts (needs no GPU)",
        description="Runs the route that is named SPEC on the CPU device, for the product "
        "C[M, N] = A[M, K] . B[K, N], and counts instructions, sectors of global memory, "
        "wavefronts of shared memory, barriers and copies. docs/how-to/profile.md says how to read "
        "it. One tile shows what many do: sizes of a few tiles are enough.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "spec", metavar="SPEC", help="a kernel's or route's name (see ptxgen list, show)"
    )
    command.add_argument("sizes", metavar="MxKxN", nargs="+", help="such as 64x256x64")
    command.add_argument(
        "--op",
        help="whose plan cuts the reduction, such as linear_wgrad (default: the first that "
        "has the kernel)",
    )
    command.add_argument("--bias", action="store_true", help="with a bias")
    command.add_argument("--activation", metavar="NAME", help="relu, gelu, gelu_tanh or silu")
    command.add_argument(
        "--sites",
        type=int,
        default=10,
        metavar="N",
        help="how many accesses above the ideal are listed per kernel (default: %(default)s)",
    )
    command.add_argument(
        "--lines", action="store_true", help="name the lines of CUDA that accesses come from"
    )
    command.add_argument("--json", action="store_true", help="for programs: every access")
    command.set_defaults(run=_profile)


def _profile(arguments: argparse.Namespace) -> None:
    from ptxgen.ops.profiling import profile
    from ptxgen.program.launch import routes_by_name

    m, k, n = sizes(numbers(arguments.sizes, ("M", "N", "K")))
    if arguments.spec not in routes_by_name():
        find(arguments.spec)  # raises an error that proposes similar names
    if m * n * k > _SLOW:
        warn("this takes minutes or more: the interpreter does about a million products a second")
    found = profile(
        arguments.spec,
        m,
        n,
        k,
        op=arguments.op,
        bias=arguments.bias,
        activation=arguments.activation,
        lines=arguments.lines,
    )
    if arguments.json:
        emit_json(found.json())
    else:
        emit(found.table(max(arguments.sites, 0)))
