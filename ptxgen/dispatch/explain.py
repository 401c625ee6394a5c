"""Why a problem is served by the kernel that serves it.

Evaluates the predicates of the route table itself, so it can say which term failed; the
tests compare its winner with the generated code's.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ptxgen.dispatch import accepted, emit
from ptxgen.dispatch.choice import Choice
from ptxgen.errors import OptionError, ShapeError, UncoveredError
from ptxgen.expr import Expr
from ptxgen.numerics.contract import AUTO_TIER, DTYPES, ITEMSIZE, OPERATIONS, TIERS
from ptxgen.numerics.dtype import name_of
from ptxgen.spec import DIM_MAX, Route, architecture_named
from ptxgen.tiles.profiles import profiles


@dataclass(frozen=True)
class Failure:
    """A term of a predicate that a problem does not meet.

    ``left`` and ``right`` are the values of both sides of a comparison (None otherwise);
    ``values`` those of the variables.
    """

    predicate: str  # "requires", "prefer" or "architecture"
    term: str
    left: int | None
    right: int | None
    values: Mapping[str, int]

    def __str__(self) -> str:
        text = f"{self.predicate} {self.term}"
        if self.left is not None:
            return f"{text}: {self.left} vs {self.right}"
        if self.values:
            return f"{text}: {', '.join(f'{n} = {v}' for n, v in self.values.items())}"
        return text


@dataclass(frozen=True)
class Launch:
    """One kernel's launch."""

    kernel: str
    grid: int
    block: int
    shared: int  # bytes


@dataclass(frozen=True)
class Candidate:
    """A route, and what the problem makes of it.

    ``correct``: the architecture runs it and its ``requires`` holds; ``failures`` are the
    terms that do not hold, those of ``requires`` first.
    """

    route: int
    kernels: tuple[str, ...]
    reason: str
    correct: bool
    failures: tuple[Failure, ...]

    @property
    def matches(self) -> bool:
        """Whether the route would be taken if no earlier one were."""
        return not self.failures


@dataclass(frozen=True)
class Explanation:
    """The winner of a problem, and the candidates before and after it. ``str`` is for people."""

    op: str
    layout: str
    m: int
    n: int
    k: int
    dtype: str
    tier: str
    arch: str
    product: str
    """Operand layout and dimensions of the product."""
    profile: str
    """The profile whose table it is; empty: the table for any GPU."""
    plan: str
    values: Mapping[str, int]
    """The problem variables, by name."""
    choice: Choice
    launches: tuple[Launch, ...]
    candidates: tuple[Candidate, ...]
    """All routes of the table, in order; ``candidates[choice.route]`` is the winner."""
    note: str = ""
    """What should be known about the answer: that the GPU asked about has no profile."""

    @property
    def winner(self) -> Candidate:
        """The route that serves the problem."""
        return self.candidates[self.choice.route]

    @property
    def passed_over(self) -> tuple[Candidate, ...]:
        """The candidates before the winner."""
        return self.candidates[: self.choice.route]

    @property
    def also_correct(self) -> tuple[Candidate, ...]:
        """Later candidates that would return the same bits."""
        return tuple(c for c in self.candidates[self.choice.route + 1 :] if c.correct)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        v = self.values
        yield f"{self.op} M={self.m} N={self.n} K={self.k} {self.layout} {self.dtype} {self.tier}"
        yield (
            f"  product {self.product}, {self.arch}, {v['SMS']} SMs, "
            f"operands aligned to {v['ALIGN_A']} and {v['ALIGN_B']} bytes"
        )
        if self.profile:
            yield f"  profile {self.profile}"
        if self.note:
            yield f"  {self.note}"
        cut = "one chain" if v["CHUNKS"] == 1 else f"{v['CHUNKS']} chunks of {v['CHUNK']}"
        yield f"  plan {self.plan}: {cut}"
        yield f"winner: route {self.choice.route}, {' + '.join(self.winner.kernels)}"
        yield f"  because {self.winner.reason}"
        for x in self.launches:
            yield f"  {x.kernel}: grid {x.grid}, block {x.block}, shared {x.shared} bytes"
        yield f"  workspace {self.choice.workspace} bytes"
        for title, candidates in (
            ("passed over:", self.passed_over),
            ("also correct:", self.also_correct),
        ):
            if candidates:
                yield title
            for c in candidates:
                yield f"  route {c.route}, {' + '.join(c.kernels)}: {c.reason}"
                for failure in c.failures:
                    yield f"    fails {failure}"


def explain(
    op: str,
    m: int,
    n: int,
    k: int,
    dtype: Any = "float32",
    tier: str = "auto",
    layout: str | None = None,
    arch: str | None = None,
    sms: int | None = None,
    align: int | tuple[int, int] = 16,
    gpu: str | None = None,
) -> Explanation:
    """Which kernels serve a problem of ``op``, and why.

    ``m``, ``n``, ``k`` are the operation's own dimensions. ``layout``: default "kn" ("nn"
    for ``matmul``). ``arch`` and ``sms``: default those of the GPU's profile, or an H200's, sm_90
    with 132. ``align``: bytes (2, 4, 8 or 16), of both operands of the product or of each.
    ``gpu``: the GPU's name, whose profile decides if there is one for its SMs (default: an H200's,
    unless ``arch`` or ``sms`` is given); if not, ``arch`` and ``sms`` must be given. Raises
    OptionError, DtypeError, ShapeError for sizes that are no integers, and UncoveredError.
    """
    m, n, k = (_integer(name, size) for name, size in (("m", m), ("n", n), ("k", k)))
    sms = None if sms is None else _integer("sms", sms)
    if sms is not None and sms < 1:
        raise OptionError(f"sms is {sms}; takes 1 or more")
    note = ""
    if gpu is None and arch is None and sms is None:
        gpu = "NVIDIA H200"
    if gpu is not None:
        arch, sms, note = _gpu(gpu, arch, sms)
    if op not in OPERATIONS:
        raise accepted("operation", op, OPERATIONS)
    operation = OPERATIONS[op]
    layout = next(iter(operation.products)) if layout is None else layout
    if layout not in operation.products:
        raise accepted(f"layout of {op}", layout, operation.products)
    arch = architecture_named("sm_90" if arch is None else arch).name
    dtype = name_of(dtype)
    short = DTYPES[dtype]
    tier = AUTO_TIER[short] if tier == "auto" else tier
    product = operation.products[layout]
    key = (product.layout, operation.plan_name, short, tier)
    sms = 132 if sms is None else sms
    table = emit.serving(key, arch, None if gpu is None else (gpu, sms))
    if table is None:
        served = ("auto", *(name for name, dtypes in TIERS.items() if short in dtypes))
        raise accepted(f"tier of {op} ({layout}, {dtype})", tier, served)
    own = {"M": m, "N": n, "K": k}
    dims = {name: own[d] for name, d in zip("MNK", product.dims, strict=True)}
    if not all(1 <= d <= DIM_MAX for d in dims.values()):
        raise UncoveredError(op, m, n, k, f"every dimension must be between 1 and {DIM_MAX}")
    align_a, align_b = (align, align) if isinstance(align, int) else align
    legal = [a for a in (2, 4, 8, 16) if a >= ITEMSIZE[short]]
    if not {align_a, align_b}.issubset(legal):
        raise OptionError(
            f"align is {align!r}; operands of {dtype} are aligned to "
            f"{', '.join(map(str, legal))} bytes"
        )
    given = {"SMS": sms, "ALIGN_A": align_a, "ALIGN_B": align_b}
    env = table.environment({**dims, **given})
    candidates = tuple(_candidate(i, r, arch, env) for i, r in enumerate(table.routes))
    winner = next((c.route for c in candidates if c.matches), None)
    if winner is None:
        raise UncoveredError(op, m, n, k, "\n".join(map(str, candidates)))
    route = table.routes[winner]
    launches = tuple(
        Launch(kernel.name, kernel.grid.evaluate(env), kernel.threads, kernel.shared_bytes)
        for kernel in route.kernels
    )
    workspace = route.workspace.evaluate(env)
    grids = tuple(launch.grid for launch in launches)
    names = tuple(launch.kernel for launch in launches)
    return Explanation(
        op=op,
        layout=layout,
        m=m,
        n=n,
        k=k,
        dtype=dtype,
        tier=tier,
        arch=arch,
        product=f"{product.layout} [{dims['M']}, {dims['K']}] x [{dims['K']}, {dims['N']}]",
        profile=table.profile,
        plan=table.plan.name,
        values=env,
        choice=Choice(winner, names, grids, workspace, env["CHUNK"]),
        launches=launches,
        candidates=candidates,
        note=note,
    )


def _gpu(gpu: str, arch: str | None, sms: int | None) -> tuple[str, int, str]:
    """The architecture and SMs of a GPU, and what to say where it has no profile."""
    of_it = [p for p in profiles() if p.gpu == gpu and arch in (None, p.arch)]
    for profile in of_it:
        if sms in (None, profile.sms):
            return profile.arch, profile.sms, ""
    if arch is None and of_it:  # with another number of SMs
        arch = of_it[0].arch
    if arch is None or sms is None:
        there_are = ", ".join(f"{p.gpu} with {p.sms} SMs" for p in profiles()) or "none"
        raise OptionError(
            f"there is no profile of {gpu!r}{f' with {sms} SMs' if sms else ''} (of: {there_are}); "
            "give its architecture and its SMs, to have it routed by these"
        )
    return arch, sms, f"no profile of {gpu} with {sms} SMs: routed by its architecture"


def _integer(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ShapeError(f"{name} is {value!r}; takes an integer") from None


def _candidate(index: int, route: Route, arch: str, env: Mapping[str, int]) -> Candidate:
    absent = tuple(
        Failure("architecture", f"{kernel.name} does not run on {arch}", None, None, {})
        for kernel in route.kernels
        if not kernel.runs_on(arch)
    )
    unmet = tuple(_failures("requires", route.requires, env))
    unpreferred = tuple(_failures("prefer", route.prefer, env))
    return Candidate(
        route=index,
        kernels=tuple(kernel.name for kernel in route.kernels),
        reason=route.reason,
        correct=not absent and not unmet,
        failures=(*absent, *unmet, *unpreferred),
    )


def _failures(name: str, predicate: Expr, env: Mapping[str, int]) -> Iterator[Failure]:
    for term in dict.fromkeys(emit.conjuncts(predicate)):
        if term.evaluate(env):
            continue
        left = right = None
        text = str(term)
        if term.op in ("<", "<=", "=="):
            a, b = term.args
            left, right = a.evaluate(env), b.evaluate(env)
            if a.op == "const":  # people write the constant on the right
                left, right = right, left
                text = f"{b} {term.op.replace('<', '>')} {a}"
        values = {v: env[v] for v in sorted(term.variables())}
        yield Failure(name, text, left, right, values)
