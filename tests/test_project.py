"""The project's files agree with one another."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ptxgen
from ptxgen.build.compile import TOOLCHAIN

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
REQUIREMENTS = [
    *PROJECT["dependencies"],
    *(r for extra in PROJECT["optional-dependencies"].values() for r in extra),
]


@pytest.mark.parametrize("requirement", sorted(set(REQUIREMENTS)))
def test_every_dependency_is_justified(requirement: str) -> None:
    found = re.fullmatch(r"([\w-]+)((?:>=|==)[\d.]+)(?:,<[\d.]+)?(?:; .+)?", requirement)
    assert found, requirement
    rows = (ROOT / "docs/reference/dependencies.md").read_text().splitlines()
    bound = found[2].replace(">=", "≥ ").replace("==", "= ")
    assert any(r.startswith(f"| {found[1]} | {bound}") for r in rows), f"{requirement} has no row"


def test_the_pinned_compiler_is_the_one_of_the_goldens() -> None:
    pinned = f"{TOOLCHAIN.distribution}=={TOOLCHAIN.nvrtc}"
    assert pinned in {r.partition(";")[0] for r in PROJECT["optional-dependencies"]["test"]}


def test_oldest_packages_are_the_lower_bounds_of_pyproject() -> None:
    tool = [sys.executable, str(ROOT / "tools/oldest.py"), "test", "bench"]
    found = subprocess.run(tool, capture_output=True, text=True, check=True).stdout.split()
    ranged = {re.split("[,;]", r)[0] for r in REQUIREMENTS if ">=" in r}
    assert {r.replace("==", ">=") for r in found} <= ranged
    assert {"numpy", "jinja2", "ml-dtypes", "scipy"} <= {r.partition("==")[0] for r in found}


def test_the_readme_of_package_indexes_has_no_link_to_a_file() -> None:
    text = readme = (ROOT / "README.md").read_text()
    hook = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for each in hook["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    assert not re.findall(r"\]\((?!https?:)[^)]*\)", text)
    linked = re.findall(r"(?<!!)\[([^\]]*)\]\((?!https?:)([^)#]+)", readme)
    assert len(linked) > 20
    for words, path in linked:
        assert f"{words} (`{path}`)" in text


def test_one_version_everywhere() -> None:
    version = PROJECT["version"]
    assert ptxgen.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    heads = re.findall(r"^## \[(.+?)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heads[0][0] == version
    assert all(re.fullmatch(r"unreleased|\d{4}-\d\d-\d\d", date) for _, date in heads)


def test_commands_of_the_documents_are_found_with_what_they_need() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    import doc_commands

    items = list(doc_commands.collect())
    assert len({item.location for item in items}) == len(items), "a place is a line"
    found = {item.text: item for item in items}
    recorded = next(
        item for text, item in found.items() if "--rows bench/results/random-f32" in text
    )
    assert recorded.location.startswith("README.md:") and recorded.phase == "checkout"
    assert found["make test"].skip_reason(checkout=True) == "has a gate of its own"
    demo = found["ptxgen demo"]
    assert demo.phase == "wheel" and not demo.skip_reason(checkout=False)
    told = {word for item in found.values() for word in item.needs if item.kind == "sh"}
    assert told <= {"gpu", "checkout", "recipe", *doc_commands.EXTRAS}


def test_makefile_has_the_targets_of_the_project() -> None:
    makefile = (ROOT / "Makefile").read_text()
    documented = set(re.findall(r"^([\w-]+):.*## ", makefile, re.MULTILINE))
    phony = set(" ".join(re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)).split())
    phony -= {"generated", "goldens", "bits", "proofs"}  # parts of others
    phony -= {"torch-ready", "torch-tests", "torch-mistakes"}
    assert documented == phony >= {"run", "test", "test-gpu", "bench", "lint", "golden", "clean"}


def test_ci_runs_the_tests() -> None:
    script = ROOT / ".ci/run"
    assert os.access(script, os.X_OK)
    assert "exec make test" in script.read_text()
    subprocess.run(["bash", "-n", script], check=True)


def test_documents_link_to_files_that_exist() -> None:
    for document in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")):
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_long_tests_run_only_when_asked_and_are_counted(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    gpu: .\n    long: .\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n@pytest.mark.long\ndef test_long(): pass\n\ndef test_short(): pass\n"
    )

    def said(*options: str) -> str:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout

    short = said()
    assert "1 passed, 1 deselected" in short
    assert "1 long tests were left out: make test-all runs them" in short
    both = said("-n", "1")
    assert "1 passed" in both and "1 long tests were left out" in both
    long = said("--long")
    assert "2 passed" in long and "were left out" not in long
