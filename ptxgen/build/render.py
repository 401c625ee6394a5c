"""Renders specs to source text, in one strict Jinja environment; templates read the spec."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2

    from ptxgen.spec import KernelSpec


PACKAGE = Path(__file__).parents[1]
READ = ("*.py", "numerics", "spec", "templates", "build/render.py")
"""Glob patterns of the files and folders of the package on which a rendered source depends, besides
the spec."""


@cache
def environment(folder: Path | None = None) -> jinja2.Environment:
    """Returns the Jinja environment: undefined names are errors, blocks leave no blank lines.

    ``folder``: folder with more templates, besides the package's.
    """
    import jinja2

    loaders: list[jinja2.BaseLoader] = [jinja2.PackageLoader("ptxgen", "templates")]
    loaders += [] if folder is None else [jinja2.FileSystemLoader(folder)]
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def render(spec: KernelSpec) -> str:
    """Renders ``spec`` to CUDA C++, or to PTX for the oldest target that takes it."""
    template = environment(spec.folder).get_template(spec.template)
    return template.render(spec=spec, **spec.context)


def source(spec: KernelSpec) -> str:
    """Returns the rendered ``spec``, from the cache on disk if it is there (Jinja is slow).

    A source is a function of the spec and of the code that renders it, so both are the key.
    """
    from ptxgen.build.cache import Entry, Key, default_cache

    def build() -> Entry:
        return Entry(render(spec).encode(), {"kernel": spec.name})

    read = (renderer(PACKAGE), renderer(spec.folder, ("*.j2",)) if spec.folder else "")
    key = Key(" ".join((spec.canonical(), *read)), (), "any", "", "source")
    return default_cache().get_or_build(key, build)[0].image.decode()


@cache
def renderer(package: Path, patterns: tuple[str, ...] = READ) -> str:
    """Returns a digest of all that a rendered source depends on besides its spec: Jinja's version,
    and the ``.py`` and ``.j2`` files of ``package`` that match ``patterns``.
    """
    files = {
        file
        for pattern in patterns
        for found in package.glob(pattern)
        for file in ([found] if found.is_file() else found.rglob("*"))
        if file.suffix in (".py", ".j2")
    }
    digest = hashlib.sha256(version("jinja2").encode())
    for file in sorted(files):
        name = file.relative_to(package).as_posix().encode()
        digest.update(hashlib.sha256(file.read_bytes()).digest() + name + b"\0")
    return digest.hexdigest()
