"""Hooks: the functions of an engine that an extension replaces, calls or implements.

A hook states the signature that the extension was written for. :func:`install` compares the
signatures of all its hooks before it replaces the first function, so it replaces all or none.
Annotations are left out of the comparison: parameters, their order, kinds and defaults count.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ptxgen.errors import EngineError


@dataclass(frozen=True)
class Hook:
    """A function of an engine, and its replacement.

    ``part``: label of the part of the model, for reports; ``owner``: "module", or "module:Class";
    ``attribute``: name of the function there; ``signature``: its parameters with their defaults,
    behind "classmethod" or "staticmethod" if it is one. ``replacement``: "module:function", a
    function that takes the original and returns its replacement; empty for a function that the
    extension calls, or implements in a class of its own.
    """

    part: str
    owner: str
    attribute: str
    signature: str
    replacement: str = ""

    @property
    def target(self) -> str:
        """Dotted name of the engine's function."""
        return f"{self.owner.replace(':', '.')}.{self.attribute}"


@dataclass(frozen=True)
class _Installed:
    """A replaced function: where it is, what was there, and whether the owner itself had it."""

    owner: Any
    attribute: str
    original: Any
    replacement: Any
    owned: bool


_installed: list[_Installed] = []
_deferred: list[Hook] = []


# -- signatures -------------------------------------------------------------------------------
def describe(member: Any) -> str:
    """Returns the signature of a class member or function, in the form of ``Hook.signature``."""
    kind = {classmethod: "classmethod ", staticmethod: "staticmethod "}.get(type(member), "")
    function = member.__func__ if kind else member
    found = inspect.signature(function)
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    return kind + str(inspect.Signature(plain))


def read_signature(hook: Hook) -> str | None:
    """Returns the signature that the installed sources have, without importing the engine; None if
    there is no such function.
    """
    module, _, name = hook.owner.partition(":")
    path = _source(module)
    if path is None:
        return None
    body: list[ast.stmt] = ast.parse(path.read_text(encoding="utf-8")).body
    if name:
        owner = next((n for n in body if isinstance(n, ast.ClassDef) and n.name == name), None)
        body = owner.body if owner else []
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name == hook.attribute:
            return _written(node)
        if isinstance(node, ast.ImportFrom) and not name and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == hook.attribute:
                    return read_signature(Hook(hook.part, node.module, alias.name, ""))
    return None


def _source(module: str) -> Path | None:
    """Returns a module's source file; imports nothing below the outermost package."""
    top, *rest = module.split(".")
    found = find_spec(top)
    for root in (found.submodule_search_locations or ()) if found else ():
        path = Path(root, *rest)
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return file
    return None


def _written(node: ast.FunctionDef) -> str:
    """Returns the signature of a function's source, without annotations."""
    names = {n.id for n in node.decorator_list if isinstance(n, ast.Name)}
    kind = next((f"{k} " for k in ("classmethod", "staticmethod") if k in names), "")
    of = node.args
    for argument in (*of.posonlyargs, *of.args, *of.kwonlyargs, of.vararg, of.kwarg):
        if argument is not None:
            argument.annotation = None
    return f"{kind}({ast.unparse(of)})"


# -- installation -----------------------------------------------------------------------------
def install(hooks: Iterable[Hook], engine: str) -> None:
    """Replaces the functions of all hooks. A hook that is installed already is left as it is.

    Raises EngineError, and replaces nothing, if a function is missing or has another signature; the
    message names each of them, and what was found.
    """
    found = [(hook, *_locate(hook)) for hook in hooks]
    wrong = [f"{hook.target} {why}" for hook, _, _, why in found if why]
    if wrong:
        raise EngineError(f"{engine} is not the one that the extension fits: " + "; ".join(wrong))
    for hook, owner, member, _ in found:
        if hook.replacement and not _find_installed(owner, hook.attribute):
            _replace(hook, owner, member)


def defer(hooks: Iterable[Hook]) -> None:
    """Keeps hooks for :func:`install_deferred`: those of modules that few models need."""
    _deferred[:] = hooks


def install_deferred(module: str, engine: str) -> list[Hook]:
    """Replaces the functions of the deferred hooks of one of the engine's modules, and returns the
    hooks. Raises as :func:`install`.
    """
    found = [hook for hook in _deferred if hook.owner.partition(":")[0] == module]
    install(found, engine)
    return found


def remove() -> None:
    """Puts all originals back, the last replaced first, and forgets deferred hooks."""
    _deferred.clear()
    while _installed:
        last = _installed.pop()
        if last.owned:
            setattr(last.owner, last.attribute, last.original)
        else:
            delattr(last.owner, last.attribute)


def _locate(hook: Hook) -> tuple[Any, Any, str]:
    """Returns a hook's owner, the engine's own function, and how its signature differs (or "")."""
    module, _, name = hook.owner.partition(":")
    try:
        owner = import_module(module)
        owner = getattr(owner, name) if name else owner
        member = inspect.getattr_static(owner, hook.attribute)
    except (ImportError, AttributeError) as error:
        return None, None, f"cannot be found ({error})"
    ours = _find_installed(owner, hook.attribute)
    member = ours.original if ours else member
    found = describe(member)
    if found != hook.signature:
        return owner, member, f"takes {found}; the extension fits {hook.signature}"
    return owner, member, ""


def _find_installed(owner: Any, attribute: str) -> _Installed | None:
    """Returns the replacement that is installed at ``owner.attribute``, or None."""
    return next((i for i in _installed if i.owner is owner and i.attribute == attribute), None)


def _replace(hook: Hook, owner: Any, member: Any) -> None:
    kind = type(member) if isinstance(member, classmethod | staticmethod) else None
    original = member.__func__ if kind else member
    module, _, name = hook.replacement.partition(":")
    make: Callable[[Any], Any] = getattr(import_module(module), name)
    made = functools.wraps(original)(make(original))
    replacement = kind(made) if kind else made
    owned = hook.attribute in vars(owner)
    setattr(owner, hook.attribute, replacement)
    _installed.append(_Installed(owner, hook.attribute, member, replacement, owned))
