"""Imports go one way, and importing ptxgen does no work."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from loops import for_each

import ptxgen

ROOT = Path(ptxgen.__file__).parent

# The flow of docs/explanation/architecture.md: a room may import the rooms above it, and itself.
ROOMS = (
    "lazy",
    "locks",
    "errors",
    "types",
    "expr",
    "cost",
    "numerics",
    "spec",
    "tiles",
    "templates",
    "build",
    "dispatch",
    "oracle",
    "interp",
    "runtime",
    "program",
    "ops",
    "graph",
    "torch",
    "autograd",
    "functions",
    "layout",
    "int4",
    "quantized",
    "nf4",
    "reference",
    "ui",
    "engines",
    "golden",
    "arguments",
    "bench",
    "cli",
    "__init__",
    "__main__",
)
HIDDEN = re.compile(r"ptxgen(\.\w+)+\.?(:\w+)?")
"""A text that names a module, or something in one."""
LISTS = {
    "ptxgen/__init__.py": "the names that it loads when they are used, from rooms above it",
    "ptxgen/ops/__init__.py": "its own room",
    "ptxgen/dispatch/__init__.py": "generated modules, of its own room",
    "ptxgen/tiles/gemm.py": "its own room",
}
"""Files that put module names together from texts, and the modules that these name."""
HEAVY = (
    *("cuda", "jinja2", "z3", "torch", "cupy", "jax", "rich", "matplotlib", "triton"),
    "transformers",
    "vllm",
)
# These rooms are imported only when somebody asks for what they are about.
MAY_IMPORT = {
    "torch": {"torch", "transformers"},
    "engines": {"torch", "transformers", "vllm"},
    "ui": {"rich"},
    "bench": {"matplotlib", "rich", "torch", "triton"},
}


def room(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[0].removesuffix(".py")


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def imported(tree: ast.AST, path: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything that the module imports, relative names resolved."""
    package = path.relative_to(ROOT.parent).parts[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            module = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            # "from ptxgen import tiles" imports a room, "from ptxgen.spec import M" a name of one.
            names = [f"{module}.{a.name}" for a in node.names] if module == "ptxgen" else [module]
            yield from ((node.lineno, name) for name in names)
        elif isinstance(node, ast.Constant) and HIDDEN.fullmatch(str(node.value)):
            # for importlib, or to look into sys.modules
            yield node.lineno, node.value.partition(":")[0].rstrip(".")


def hidden(path: Path) -> Iterator[str]:
    """The names of modules in texts."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and HIDDEN.fullmatch(str(node.value)):
            yield str(node.value).partition(":")[0]


def parts(tree: ast.AST) -> Iterator[tuple[int, list[str]]]:
    """Line and constant parts of every text that is put together and begins with the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            texts = [v.value for v in node.values if isinstance(v, ast.Constant)]
            first = isinstance(node.values[0], ast.Constant)
            if first and texts[0].startswith("ptxgen."):
                yield node.lineno, texts


@for_each("path", modules())
def test_imports_go_one_way(path: Path) -> None:
    here = room(path)
    assert here in ROOMS, f"{path} is in no room: give {here!r} its place in the order"
    above = ROOMS[: ROOMS.index(here) + 1]
    for line, name in imported(ast.parse(path.read_text(encoding="utf-8")), path):
        if name.startswith("ptxgen."):
            target = name.split(".")[1]
            if (ROOT / target).is_dir() or (ROOT / f"{target}.py").exists():
                assert target in above, f"{path}:{line}: {here} imports {target}, which is below it"


def test_names_of_modules_are_put_together_in_their_own_room_only() -> None:
    """Texts build module names only in their own room, so that no import hides there. Messages and
    documents are no such texts.
    """
    found = set()
    for path in modules():
        for line, texts in parts(ast.parse(path.read_text(encoding="utf-8"))):
            target = texts[0].split(".")[1]
            if not target or (ROOT / target).is_dir() or (ROOT / f"{target}.py").exists():
                name = str(path.relative_to(ROOT.parent))
                assert name in LISTS, f"{path}:{line} puts a module's name together: {texts}"
                assert not target or target == room(path), f"{path}:{line}: {texts} is another room"
                found.add(name)
    assert found == LISTS.keys()


def _at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when a module is imported (not those for type checkers only)."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _at_import(node.orelse)
            continue
        yield node
        for name in ("body", "orelse", "finalbody"):
            yield from _at_import(getattr(node, name, []))


@for_each("path", modules())
def test_heavy_modules_are_imported_lazily(path: Path) -> None:
    allowed = MAY_IMPORT.get(room(path), set())
    for node in _at_import(ast.parse(path.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for line, name in imported(ast.Module([node], []), path):
                top = name.split(".")[0]
                assert top not in HEAVY or top in allowed, f"{path}:{line} imports {name}"


def loaded_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent
    )
    return set(run.stdout.split())


def test_importing_ptxgen_does_no_work() -> None:
    loaded = loaded_after("import ptxgen")
    assert "ptxgen" in loaded
    assert not loaded & {*HEAVY, "numpy"}


def test_choosing_does_no_work() -> None:
    """Dispatch is plain Python: neither the solver nor the compiler nor arrays."""
    loaded = loaded_after(
        "from ptxgen.dispatch import choose\n"
        "choose(('NN', 'chunks', 'f32', 'simt'), dict(M=1, N=2, K=3, ALIGN_A=16, ALIGN_B=16), "
        "arch='sm_90', sms=132)"
    )
    assert not loaded & {*HEAVY, "numpy"}


def test_tools_of_dispatch_import_z3_only_to_prove() -> None:
    loaded = loaded_after("import ptxgen.dispatch.prove, ptxgen.dispatch.explain")
    assert not loaded & {*HEAVY, "numpy"}


WITHOUT_CUDA = """
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("cuda", "nvidia"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refused())
import numpy, ptxgen
from ptxgen.cli import main

x = numpy.arange(12, dtype="f4").reshape(3, 4)
assert (ptxgen.reference.linear(x, x.T) == x @ x.T).all()
assert (ptxgen.reference.softmax(x).sum(1) > 0.9).all()
assert (ptxgen.reference.sum(x, 1) == x.sum(1)).all()
from ptxgen.tiles import SPECS
kernel = next(name for name in SPECS if name.startswith("simt_nn_f32_"))
for words in (["list", "--layout", "NN"], ["show", kernel], ["render", kernel], ["env"],
              ["explain", "linear", "16", "4096", "4096", "--arch", "sm_90", "--sms", "132"]):
    assert main(words) == 0, words
sys.platform = "darwin"
try:
    ptxgen.linear(x, x.T.copy())
except ptxgen.PtxgenError as error:
    print("refused:", error)
assert "cuda.bindings" not in sys.modules
"""


def test_without_cuda_sources_are_rendered_and_oracles_computed(tmp_path: Path) -> None:
    """macOS has neither cuda-bindings nor NVRTC. (Nor is a kernel taken from an earlier cache.)"""
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_CUDA],
        capture_output=True,
        text=True,
        cwd=ROOT.parent,
        env={**os.environ, "PTXGEN_CACHE_DIR": str(tmp_path), "COLUMNS": "200"},
    )
    assert run.returncode == 0, run.stderr
    assert "__global__" in run.stdout, "no source was rendered"
    assert "refused: NVRTC cannot be loaded" in run.stdout, run.stdout[-500:]


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Within rooms too, and counting what is imported in functions or for types only."""
    names = {
        ".".join(path.relative_to(ROOT.parent).with_suffix("").parts): path for path in modules()
    }
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    imports: dict[str, set[str]] = {name: set() for name in names}
    for name, path in names.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imports[name] |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}": node.module for alias in node.names}
                imports[name] |= {found if found in names else at for found, at in inner.items()}
        if path.name != "__init__.py":  # which name what they load later
            told = (found for found in hidden(path) if found in names)
            imports[name] |= {found for found in told if names[found].name != "__init__.py"}
        imports[name] = (imports[name] & names.keys()) - {name}
    assert sum(map(len, imports.values())) > len(names)
    list(TopologicalSorter(imports).static_order())  # CycleError names the modules of a circle
