"""``tools/lint_words.py``: docstrings that stand alone, and commit subjects."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "tools" / "lint_words.py"


@pytest.fixture(scope="module")
def words():
    spec = importlib.util.spec_from_file_location("lint_words", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Returns the rows of a tile.", ""),
        ("Threads of a CTA, all warps together.", ""),
        ("What a kernel reads.", "begins with 'What'"),
        ("The same of columns.", "begins with 'The same'"),
        ("As many as there are.", "begins with 'As'"),
        ("Assigned registers of a thread.", ""),
        ("The same.", "has 2 words"),
        ("", "has 0 words"),
    ],
)
def test_docstrings_stand_alone(words, text, why):
    found = words.fault(text)
    assert found.startswith(why) and bool(found) == bool(why)


@pytest.mark.parametrize(
    ("subject", "why"),
    [
        ("Route prompts of up to 64 rows to the wgmma kernel", ""),
        ("Which prompts are Hopper's, in attention's table", "begins with no imperative"),
        ("Adds a kernel", "begins with no imperative"),
        ("add a kernel", "begins with no imperative"),
        ("Add a kernel.", "ends with a full stop"),
        ("Add " + "x" * 69, "has 73 characters"),
    ],
)
def test_subjects_are_imperatives(words, subject, why):
    found = words.subject_fault(subject)
    assert found.startswith(why) and bool(found) == bool(why)


def test_texts_of_modules_classes_functions_and_assignments_are_read(words):
    source = '"""One."""\nclass A:\n    """Two."""\n    x = 1\n    """Three."""\n    "not one"\n'
    source += 'def f():\n    """Four."""\n    y = 1\n    "five"\n    return "none"\n'
    assert [text for _, text in words.texts(source)] == ["One.", "Two.", "Three.", "Four.", "five"]
    assert [line for line, _ in words.texts(source)] == [1, 3, 5, 8, 10]


def test_nothing_in_the_project_is_at_fault(words):
    assert not [line for _, line in words.faults(list(words.FOLDERS))]


def test_names_that_say_nothing_are_found(words):
    source = "def told(x, *, mine):\n    self.walked = 1\n    _Missed = x\n    return told.stands\n"
    found = [name for _, name in words.named(source) if words.is_banned(name)]
    assert sorted(found) == ["_Missed", "mine", "told", "walked"]
