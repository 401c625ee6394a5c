"""Spec to source text: one strict Jinja environment, which hands the template the spec."""

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
"""What decides a rendered source besides its spec: files of the package, and whole folders."""


@cache
def environment(folder: Path | None = None) -> jinja2.Environment:
    """The one environment: undefined names are errors, blocks leave no blank lines.

    ``folder``: where there are more templates than the package's.
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
    """The source of ``spec``: CUDA C++, or PTX for the oldest target that takes it."""
    template = environment(spec.folder).get_template(spec.template)
    return template.render(spec=spec, **spec.context)


def source(spec: KernelSpec) -> str:
    """What rendering ``spec`` gives, from the cache: Jinja alone costs more than a warm start may.

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
    """Identifies all that rendering reads: the templates, what they are given, and Jinja."""
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
