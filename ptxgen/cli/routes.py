"""Commands ``explain``, ``generate`` and ``prove``, for the choice of kernels."""

from __future__ import annotations

import argparse
import ast
from typing import TYPE_CHECKING, Any

from ptxgen.arguments import FORM, attention_sizes, dtype, numbers, sizes, written
from ptxgen.errors import OptionError, proposal
from ptxgen.ui import emit, emit_json, missing, note, plural

if TYPE_CHECKING:
    from ptxgen.dispatch.prove import Result

_EXAMPLES = """\
examples:
  ptxgen explain linear_dgrad 16x4096x4096 --layout nk --arch sm_80 --sms 108 --align 4
  ptxgen explain attention 1x32/8x4096x4096x128c --dtype bf16 --gpu h100
"""


def add_commands(commands: Any) -> None:
    """Adds ``ptxgen explain``, ``generate`` and ``prove`` to the subcommands ``commands``."""
    command = commands.add_parser(
        "explain",
        help="which kernel serves a problem, and why",
        description="Says which kernels run an operation of these sizes, why, how they are "
        "launched, and in what predicted time. Most tables take the route with the shortest "
        "predicted time, some the first in order whose conditions hold. --all adds every other "
        "route: those that would return the same bits, with their times, and the conditions that "
        "fail. Sizes are the operation's own: MxKxN of products, whose x is M by K and whose "
        f"weight K by N; MxN of rows; of attention {FORM}.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("op", metavar="OP", help="an operation, such as linear or logsumexp")
    command.add_argument("sizes", metavar="SIZES", nargs="+", help="such as MxKxN: 16x4096x11008")
    command.add_argument(
        "--layout", help="kn or nk (matmul: nn, nt, tn, tt); default: the first of these"
    )
    command.add_argument(
        "--dtype", type=dtype, help="bf16 or bfloat16, ... (default: f32; of int4_gemm: s4)"
    )
    command.add_argument("--tier", default="auto", help="simt, tc or auto (default: %(default)s)")
    command.add_argument(
        "--chain", action="store_const", const=True, help="of linear_wgrad: one chain"
    )
    command.add_argument("--arch", help="such as sm_80 (default: --gpu's, or sm_90)")
    command.add_argument(
        "--sms", type=int, metavar="N", help="multiprocessors (default: --gpu's, or 132)"
    )
    command.add_argument(
        "--gpu",
        metavar="NAME",
        help="whose measured tuning decides, such as h100 or the driver's name; of a GPU without "
        "one --arch and --sms say what it is (default: h200, unless --arch or --sms is given)",
    )
    command.add_argument(
        "--align",
        type=_align,
        default=16,
        metavar="A[,B]",
        help="alignment of the operands: 1 (int4_gemm), 2 (of 16 bits), 4, 8 or 16 bytes (default: "
        "%(default)s)",
    )
    command.add_argument(
        "--set",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another option of the operation, such as groups=8; of an argument that may be left "
        "out, bias=True; of any, its dtype, w=bf16",
    )
    command.add_argument(
        "--all", action="store_true", help="every other route: its time, or the failed condition"
    )
    command.add_argument(
        "--code", action="store_true", help="the Python that such a call runs, and nothing else"
    )
    command.add_argument("--json", action="store_true", help="for programs")
    command.set_defaults(run=_explain)

    command = commands.add_parser(
        "generate",
        help="write the dispatcher from the route tables",
        description="Writes dispatch/generated/ from the route tables in tiles/. The files "
        "are committed; --check fails if they are not what the tables say.",
    )
    command.add_argument("--check", action="store_true", help="write nothing, fail on drift")
    command.set_defaults(run=_generate)

    command = commands.add_parser(
        "prove",
        help="prove the dispatcher right for every problem (needs z3-solver)",
        description="Proves for all sizes and alignments that some route matches, that a match "
        "implies what its kernels require, that no route is dead, that grids and workspace are "
        "legal and that 32-bit indices cannot overflow. Prints a counterexample for what fails.",
    )
    command.add_argument(
        "match", metavar="TABLE", nargs="*", help="only these, such as 'nn_chunks_*' (default: all)"
    )
    command.add_argument("-v", "--verbose", action="store_true", help="every goal, not only sums")
    command.add_argument("--json", action="store_true", help="for programs: every goal")
    command.set_defaults(run=_prove)


def _align(text: str) -> int | tuple[int, int]:
    words = text.split(",")
    if len(words) > 2 or not {"1", "2", "4", "8", "16"}.issuperset(words):
        raise argparse.ArgumentTypeError(f"takes 1, 2, 4, 8 or 16, or two of them, not {text!r}")
    numbers = [int(word) for word in words]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else numbers[0]


def _setting(text: str) -> tuple[str, Any]:
    """Parses NAME=VALUE; the value is a Python literal, or else the text itself."""
    name, given, value = text.partition("=")
    if not given or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"takes NAME=VALUE, not {text!r}")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def given_sizes(op: str, words: list[str]) -> tuple[tuple[int, ...], dict[str, Any]]:
    """Parses the size arguments of ``op``; returns sizes in its own order, and options written with
    them (``causal``, ``page``).
    """
    from ptxgen.ops.attention_shapes import ATTENDING
    from ptxgen.ops.explaining import operation, size_names

    row = operation(op)
    if row.name in ATTENDING:
        found, causal, page = attention_sizes(" ".join(words))
        options = {"causal": True} if causal else {}
        return found, {**options, "page": page} if page else options
    names = size_names(row)
    text = numbers(words, names)
    given = dict(zip(written(names), sizes(text, written(names)), strict=True))
    return tuple(given[name] for name in names), {}


def _explain(arguments: argparse.Namespace) -> None:
    from dataclasses import asdict

    from ptxgen.dispatch.explain import Explanation
    from ptxgen.ops.explaining import explain

    given, options = given_sizes(arguments.op, arguments.sizes)
    options |= {
        name: getattr(arguments, name)
        for name in ("dtype", "tier", "layout", "chain", "arch", "sms", "align", "gpu")
    }
    if options["tier"] == "auto":
        options["tier"] = None
    for name, value in arguments.set:
        if name == "op" or options.get(name) is not None:
            raise OptionError(f"--set {name}={value!r}: {name} is given already")
        options[name] = value
    if arguments.code:
        emit(_code(arguments.op, given, options))
        return
    found = explain(arguments.op, *given, **options)
    if arguments.json:
        if isinstance(found, Explanation):
            emit_json(asdict(found) | {"choice": found.choice._asdict()})
        else:
            emit_json(found.asdict())
    else:
        emit(found if arguments.all else found.brief())
        emit(found.legend())


def _code(op: str, sizes: tuple[int, ...], options: dict[str, Any]) -> str:
    """Returns the Python code that a repeated call of ``op`` runs, with the kernels for an H200."""
    from ptxgen.ops.explaining_code import explain_code

    for name in ("arch", "sms", "gpu", "align"):
        if options.pop(name) not in (None, 16):
            raise OptionError(f"--{name} is given, but --code shows a call on an H200")
    dtype = options.pop("dtype")
    return explain_code(op, sizes, dtype, **{n: v for n, v in options.items() if v is not None})


def _generate(arguments: argparse.Namespace) -> int:
    from ptxgen.cli.stubs import stubs
    from ptxgen.dispatch.emit import generate, written

    differences = generate(check=arguments.check)
    differences += written(stubs(), check=arguments.check)
    if not differences:
        emit("dispatch/generated, stubs: as the route tables and the operations say")
        return 0
    for difference in differences:
        emit(difference if arguments.check else f"{difference.path.name}: was {difference.what}")
    if arguments.check:
        files = plural(len(differences), "file")
        note(f"{files} differ; `ptxgen generate` writes them")
        return 1
    return 0


def _prove(arguments: argparse.Namespace) -> int:
    from dataclasses import asdict
    from fnmatch import fnmatchcase

    from ptxgen.dispatch import emit as emitter
    from ptxgen.dispatch.prove import prove

    report = _Report(verbose=arguments.verbose, silent=arguments.json)
    chosen = None
    if arguments.match:
        tables = emitter.tables()
        names = {table.name: table for table in tables}
        chosen = [t for n, t in names.items() if any(fnmatchcase(n, m) for m in arguments.match)]
        if not chosen:
            known = ", ".join(names)
            patterns = " ".join(arguments.match)
            close = proposal(patterns, names) or f"; there are {known}"
            raise OptionError(f"no table matches {patterns}{close}")
    try:
        results = prove(chosen, report=report)
    except ModuleNotFoundError as error:
        raise missing("proving", error) from error
    report.close()
    if arguments.json:
        emit_json([asdict(result) for result in results])
    failed = sum(not result.ok for result in results)
    if failed:
        note(f"{failed} of {plural(len(results), 'goal')} failed")
        return 1
    if not arguments.json:
        seconds = sum(result.seconds for result in results)
        emit(f"all {plural(len(results), 'goal')} proved in {seconds:.1f} s")
    return 0


class _Report:
    """Printer of the results of ``ptxgen prove``, one at a time: goals that fail, and for each
    route table and set of architectures the number of proved goals.
    """

    def __init__(self, *, verbose: bool, silent: bool) -> None:
        self._verbose, self._silent = verbose, silent
        self._group: tuple[str, tuple[str, ...]] | None = None
        self._proved = self._goals = 0
        self._seconds = 0.0

    def __call__(self, result: Result) -> None:
        if self._silent:
            return
        group = (result.table, result.archs)
        if group != self._group:
            self.close()
            self._group = group
        self._goals += 1
        self._proved += result.ok
        self._seconds += result.seconds
        if self._verbose or not result.ok:
            emit(result)

    def close(self) -> None:
        """Prints the counts of the current table and its architectures."""
        if self._group is not None:
            table, archs = self._group
            where = f" on {', '.join(archs)}" if archs else ""
            note(
                f"{table}{where}: {self._proved} of {plural(self._goals, 'goal')} proved, "
                f"{self._seconds:.1f} s"
            )
        self._group, self._goals, self._proved, self._seconds = None, 0, 0, 0.0
