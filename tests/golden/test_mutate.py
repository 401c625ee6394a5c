"""tools/mutate.py: its mistakes can be planted, and it tells what is caught from what is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from loops import for_each
from test_interp_kernels import routes

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import mistakes  # noqa: E402
import mutate  # noqa: E402
from mistakes import MISTAKES, Mistake  # noqa: E402


@for_each("mistake", MISTAKES)
def test_every_mistake_has_a_place(mistake):
    text = mutate.planted(mistake, ROOT)
    assert text is not None, f"{mistake.what}: its text is not in {mistake.file}, or not once"
    assert text != (ROOT / mistake.file).read_text()


def test_kernels_that_gates_name_are_among_those_that_run():
    known = [run if isinstance(run, str) else str(run.values[0]) for run in routes()]

    def fits(word, name):
        return word[4:] not in name if word.startswith("not ") else word in name

    for mistake in MISTAKES:
        if any(part.endswith("test_interp_kernels.py") for part in mistake.gate):
            first, *words = mistake.gate[mistake.gate.index("-k") + 1].split(" and ")
            named = [name for name in known if all(fits(word, name) for word in words)]
            assert named or first != "test_bits", mistake.what


def test_mistakes_are_of_all_rooms_that_decide_bits_and_of_all_gates():
    assert len(MISTAKES) >= 50 and len({mistake.what for mistake in MISTAKES}) == len(MISTAKES)
    files = [mistake.file.split("/") for mistake in MISTAKES]
    assert {"spec", "templates", "numerics", "oracle", "tiles", "interp"} <= {f[1] for f in files}
    families = {path.name for path in (ROOT / "ptxgen/templates").iterdir() if path.is_dir()}
    assert families == {f[2] for f in files if f[1] == "templates"}
    commands = {mutate.name_of(mistake.gate).split(" tests/")[0] for mistake in MISTAKES}
    for command in ("pytest", "ptxgen golden check", "ptxgen golden bits", "ptxgen prove"):
        assert any(known.startswith(command) for known in commands), command


def outcome(tmp_path: Path, source: str, *, old: str = "1 + 1", new: str = "1 + 2"):
    (tmp_path / "sum.py").write_text("TWO = 1 + 1\n")
    mistake = Mistake("a wrong sum", "sum.py", old, new, ("-c", source))
    found = mutate.plant_one(mistake, tmp_path, tmp_path)
    assert (tmp_path / "sum.py").read_text() == "TWO = 1 + 1\n", "it is taken back"
    return found


def test_gates_have_names():
    gate = mistakes.tests("x.py", "a and b")
    assert mutate.name_of(gate) == "pytest tests/x.py -k 'a and b'"
    assert mutate.name_of(mistakes.BITS) == "ptxgen golden bits"


def test_gates_run_together_without_a_mistake():
    one, two = mistakes.tests("x.py", "a and b"), mistakes.tests("x.py", "c")
    every, long = mistakes.tests("y.py", ""), (*one, "--long")
    found = mutate.merge_gates(
        [one, mistakes.BITS, two, long, one, every, mistakes.tests("y.py", "d")]
    )
    assert found == [mistakes.tests("x.py", "(a and b) or (c)"), mistakes.BITS,
                     (*mistakes.tests("x.py", "(a and b)"), "--long"), every]  # fmt: skip


SAYS = "import sys; sys.path.insert(0, '.'); from sum import TWO; print({!r}); sys.exit(TWO != 2)"


def test_caught_by_what_a_gate_says(tmp_path):
    found = outcome(tmp_path, SAYS.format("E   assert 3 == 2"))
    assert found.caught and found.said == "assert 3 == 2"
    assert outcome(tmp_path, SAYS.format("fma/3 linear f32 has moved")).caught
    assert outcome(tmp_path, SAYS.format("stale     sm_80   a kernel")).caught


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("pass", "SURVIVED: the gate passes"),
        ("import nothing", "BROKEN, not caught: Traceback"),
        ("print('E   ptxgen.errors.CompileError: no'); raise SystemExit(1)", "BROKEN, not caught"),
        ("print('E   assert 3 == 2'); raise SystemExit(2)", "ended with 2"),
        ("raise SystemExit(1)", "ended with 1: nothing said"),
    ],
)
def test_what_is_not_caught(tmp_path, source, said):
    found = outcome(tmp_path, source)
    assert not found.caught and found.said.startswith(said)


def test_a_text_that_is_gone_fails_by_name(tmp_path):
    found = outcome(tmp_path, "pass", old="2 + 2")
    assert not found.caught and found.said == "its text occurs 0 times in sum.py, not once"


def test_a_survivor_fails_the_run_and_the_tree_is_left_alone(monkeypatch, capsys, tmp_path):
    (tmp_path / "sum.py").write_text("TWO = 1 + 1\n")
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    monkeypatch.setattr(mutate, "COPIED", ("sum.py",))
    gate = ("-c", SAYS.format("E   assert 3 == 2"))
    caught = Mistake("seen", "sum.py", "1 + 1", "1 + 2", gate)
    missed = Mistake("unseen", "sum.py", "1 + 1", "2 - 0", gate)
    monkeypatch.setattr(mutate, "MISTAKES", (caught,))
    assert mutate.main([]) == 0
    assert "caught  seen" in capsys.readouterr().out
    monkeypatch.setattr(mutate, "MISTAKES", (caught, missed))
    assert mutate.main(["--jobs", "1"]) == 1
    said = capsys.readouterr().out
    assert "1 of 2 mistakes caught" in said and said.endswith("not caught: unseen\n")
    assert (tmp_path / "sum.py").read_text() == "TWO = 1 + 1\n"
    broken = Mistake("any", "sum.py", "1 + 1", "1 + 2", ("-c", "raise SystemExit('bad')"))
    monkeypatch.setattr(mutate, "MISTAKES", (broken,))
    with pytest.raises(
        SystemExit, match=r"without a mistake, this gate fails: -c 'raise(.|\n)*bad"
    ):
        mutate.main([])
    assert mutate.main(["--passed"]) == 1  # nothing said what is wrong
    assert "ended with 1: bad" in capsys.readouterr().out


def test_a_gate_of_no_tests_is_no_gate(tmp_path):
    done = subprocess.CompletedProcess((), 5, "2103 deselected in 1.23s\n", "")
    assert not mutate.outcome_of(done, 1.0).caught
