"""``ptxgen bench report``: the page of recorded runs, which files it shows, and its plots."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_bench import ENVIRONMENT, row

from ptxgen.bench import ops, plots, report, report_areas, results, row_reductions
from ptxgen.bench.cases import Case, Shape
from ptxgen.bench.flce import Line
from ptxgen.bench.report_areas import SECTIONS, SpeedUp
from ptxgen.bench.vision import Row as Model
from ptxgen.cli import main
from ptxgen.cost.tuning import short_name
from ptxgen.errors import PtxgenError

H100 = "NVIDIA H100 80GB HBM3"


def write(folder: Path, name: str, rows: Sequence[Any], **environment: Any) -> None:
    """Writes a result file ``name-GPU-DATE-COMMIT.json``; a commit may end with "-dirty"."""
    e = dataclasses.replace(ENVIRONMENT, **environment)
    place = f"{short_name(e.gpu)}-{e.date[:10].replace('-', '')}-{e.commit}"
    results.write_records(folder / f"{name}-{place}.json", results.records(rows, e))


def products(dtype: str, ratios: dict[tuple[int, int, int], float], op: str = "linear") -> Any:
    tier = "tc" if dtype == "bf16" else "simt"
    return [
        row(Case("random", op, "kn", Shape(*shape), dtype, tier), ratio, us=10.0)
        for shape, ratio in ratios.items()
    ]


def models(**times: tuple[float, float]) -> list[Model]:
    """Rows of image models; a time in the block, and one of stock PyTorch."""
    return [Model(name, *ms, 0.0, 0.0, served=1) for name, ms in times.items()]


def lines(text: str, title: str) -> dict[str, list[str]]:
    """The rows of a section's table: cells by the first one."""
    part = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    return {first: rest for first, *rest in rows[2:]}


def shown(folder: Path) -> str:
    return report.page(report.find_sections(folder))


# -- figures ----------------------------------------------------------------------
def test_a_section_has_means_tenth_percentiles_and_named_worst_cases(tmp_path: Path) -> None:
    ratios = {(1, 64, 64): 4.0, (2, 64, 64): 1.0, (32, 64, 48): 0.5, (600, 64, 64): 2.0}
    write(tmp_path, "random-bf16", products("bf16", ratios), gpu=H100, seed=3)
    text = shown(tmp_path)
    tenth = f"{np.quantile([0.5, 1.0, 4.0], 0.1):.2f}"
    assert lines(text, "Products, bf16") == {
        "NN, NT; M 1-48": ["3", f"{2 ** (1 / 3):.2f}", tenth, "0.50 (32x64x48 NN)"],
        "NN, NT; M above 512": ["1", "2.00", "2.00", "2.00 (600x64x64 NN)"],
    }
    (line,) = lines(text, "Summary").values()
    assert line == ["`torch.mm` (cuBLAS)", "4", f"{math.sqrt(2):.2f}", "0.65", "0.50", "H100"]
    assert "`ptxgen bench gemm --dtype bf16 --random 60 --seed 3`" in text
    assert "`random-bf16-h100-20260102-0123456789ab.json`." in text
    assert "Machines: one NVIDIA H100 80GB HBM3; PyTorch 2.11.0." in text
    absent = text.partition("## Areas without a run")[2].replace("\n", " ")
    assert (
        "- Attention beside faster of cuDNN and FlashAttention-2: `ptxgen bench attention`"
        in absent
    )
    assert "bf16 beside `torch.mm`" not in absent


def test_inverse_ratios_are_converted(tmp_path: Path) -> None:
    write(tmp_path, "vision", models(slow=(4.0, 3.0), fast=(1.0, 2.0)))
    (line,) = lines(shown(tmp_path), "Image models").values()
    assert line == ["2", f"{math.sqrt(1.5):.2f}", f"{0.75 + 0.125:.2f}", "0.75 (slow)"]


def test_times_and_memory_of_methods_are_compared(tmp_path: Path) -> None:
    sizes = 8, 4, 6, "bf16"
    methods = [("ptxgen", 2.0, 100), ("torch.compile", 3.0, 400), ("Liger-Kernel", 1.0, 50)]
    found = [Line(*sizes, name, ms, extra) for name, ms, extra in methods]
    write(tmp_path, "flce", [*found, Line(*sizes, "Apple's CCE", 0.0, 0, "no memory")])
    text = shown(tmp_path)
    assert {name: cells[1] for name, cells in lines(text, "Cross-entropy").items()} == {
        "beside torch.compile": "1.50",
        "beside Liger-Kernel": "0.50",
    }
    told = "`torch.compile` (peak memory, ours ÷ peer's: geomean 0.25, most 0.25 at 8x4x6)"
    assert told in text.replace("\n  ", " ")


def value(record: dict[str, Any], *names: str) -> float:
    theirs, ours = (record[name] for name in names)
    return float(theirs / ours)


RECORDED: dict[str, tuple[str, Callable[[dict[str, Any]], float | None]]] = {
    "Products, f32": ("random-f32-*", lambda r: r["ratio"]),
    "4-bit integers": ("random-int4-*", lambda r: r["ratio"]),
    "Batched products": ("bmm-*", lambda r: value(r, "torch_us", "us")),
    "Image models, chosen": ("vision-h*", lambda r: value(r, "stock_ms", "block_ms")),
    "Host time of a call": ("host-*", lambda r: value(r, "peer_us", "us")),
    "Llama, batch_invariant()": ("step-*", lambda r: value(r, "stock_ms", "ours_ms")),
    "Compiled models": ("graph-transformers-*", lambda r: value(r, "stock_ms", "ours_ms")),
    "Row operations": (
        "ops-random-*",
        lambda r: min(filter(None, (r["eager_us"], r["compiled_us"]))) / r["ours_us"],
    ),
}
"""Areas of a summary whose figures are those of one file: files, and speed-ups of records."""


@pytest.mark.parametrize("area", RECORDED)
def test_the_summary_is_computed_from_the_newest_clean_file(area: str) -> None:
    pattern, of = RECORDED[area]
    paths = sorted(report.RESULTS.glob(f"{pattern}.json"))
    clean = [path for path in paths if "dirty" not in path.name] or paths
    newest = max((json.loads(path.read_text()) for path in clean), key=lambda d: d[0]["date"])
    values = [of(record) for record in newest]
    text = report.PAGE.read_text(encoding="utf-8")
    (found,) = re.findall(rf"^\| \[{re.escape(area)}\]\(\S+\) \| (.*) \|$", text, re.MULTILINE)
    mean = float(np.exp(np.mean(np.log(values))))
    expected = [f"{x:.2f}" for x in (mean, np.quantile(values, 0.1), min(values))]
    assert found.split(" | ")[1:5] == [str(len(values)), *expected]


# -- which files ------------------------------------------------------------------
def test_the_newest_run_counts(tmp_path: Path) -> None:
    write(tmp_path, "vision", models(a=(1.0, 2.0)), date="2026-01-03T01:00:00+00:00", commit="b")
    write(tmp_path, "vision", models(a=(1.0, 3.0)), date="2026-01-03T02:00:00+00:00", commit="a")
    assert "3.00 (a)" in shown(tmp_path)


def test_an_edited_tree_counts_only_alone(tmp_path: Path) -> None:
    later = {"date": "2026-02-01T00:00:00+00:00", "commit": "b-dirty"}
    write(tmp_path, "vision", models(a=(1.0, 3.0)), **later)
    assert "3.00 (a)" in shown(tmp_path)
    write(tmp_path, "vision", models(a=(1.0, 2.0)))
    assert "2.00 (a)" in shown(tmp_path)


def test_random_cases_come_before_chosen_ones(tmp_path: Path) -> None:
    write(tmp_path, "gemm-f32", products("f32", {(1, 64, 64): 3.0}))
    assert "3.00 (1x64x64 NN)" in shown(tmp_path)
    earlier = {"date": "2025-01-01T00:00:00+00:00", "commit": "c-dirty"}
    write(tmp_path, "random-f32", products("f32", {(1, 64, 64): 2.0}), **earlier)
    assert "2.00 (1x64x64 NN)" in shown(tmp_path) and "3.00" not in shown(tmp_path)


def test_groups_that_the_newest_run_lacks_are_of_an_older_one(tmp_path: Path) -> None:
    older = {(1, 64, 64): 3.0, (100, 64, 64): 5.0}
    write(tmp_path, "random-f32", products("f32", older), date="2025-01-01T00:00:00", commit="a")
    other = {"date": "2025-02-01T00:00:00", "commit": "b", "gpu": H100}
    write(tmp_path, "random-f32", products("f32", {(600, 64, 64): 7.0}), **other)
    write(tmp_path, "random-f32", products("f32", {(1, 64, 64): 2.0}), seed=8)
    text = shown(tmp_path)
    found = {group: cells[1] for group, cells in lines(text, "Products, f32").items()}
    assert found == {"NN, NT; M 1-48": "2.00", "NN, NT; M 49-512": "5.00"}
    assert "Seeds 7, 8." in text and H100 not in text, "a comparison is of one GPU"


def test_names_of_files_are_told_apart() -> None:
    for name in ("attention-random-h100-20261127-3a70d5c", "random-bf16-h100-20261128-86-dirty"):
        assert report.FILE.fullmatch(f"{name}.json")[1] == name.partition("-h100")[0]
    assert not report.FILE.fullmatch("README.md")


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PtxgenError, match="no result files"):
        report.find_sections(tmp_path)
    with pytest.raises(PtxgenError, match="no folder"):
        report.find_sections(tmp_path / "none")


# -- lines ------------------------------------------------------------------------
def test_a_table_has_ten_lines_at_most() -> None:
    found = report.find(SECTIONS[0].comparisons[0], report.RESULTS)
    groups = {f"g{n}": [SpeedUp(f"g{n}", "case", 1.0)] * (1 + n % 7) for n in range(13)}
    kept = report.merge_groups([dataclasses.replace(found, groups=groups)])
    assert len(kept) == 10 and [*kept][-1] == "others"
    assert sum(map(len, kept.values())) == sum(map(len, groups.values()))
    assert "g0" not in kept and "g6" in kept


def test_no_case_of_a_section_is_lost() -> None:
    for section, found in report.find_sections(report.RESULTS).items():
        groups = report.merge_groups(found)
        assert len(groups) <= 10, section.title
        assert sum(map(len, groups.values())) == sum(len(each.all) for each in found)


def test_sections_have_names_of_their_own() -> None:
    for names in zip(*((s.title, s.image) for s in SECTIONS), strict=True):
        assert len({*names}) == len(names)
    assert {"random-bf16-torch"} <= {s.image for s in SECTIONS}, "the README shows it"


def test_groups_are_of_operations_that_are_timed() -> None:
    assert report_areas.FAMILIES.keys() <= row_reductions.OPERATIONS.keys()
    named = {case.name for case in ops.cases()}
    assert report_areas.OTHERS.keys() <= named | {name.split()[0] for name in named}
    assert not named & report_areas.OTHERS.keys() & row_reductions.OPERATIONS.keys()


# -- the page and its check -------------------------------------------------------
def test_the_page_is_that_of_the_result_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "report", "--check"]) == 0, capsys.readouterr().out


def test_the_page_is_short() -> None:
    text = report.PAGE.read_text(encoding="utf-8")
    prose = " ".join(line for line in text.splitlines() if not line.startswith("|"))
    assert len([word for word in prose.split() if re.search(r"\w", word)]) <= 1500
    for name in re.findall(r"\]\((images/\S+)\)", text):
        assert (report.PAGE.parent / name).stat().st_size <= 60 << 10, name


def test_a_changed_figure_and_a_missing_plot_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, folder = tmp_path / "docs" / "page.md", tmp_path / "results"
    write(folder, "vision", models(slow=(4.0, 3.0), fast=(1.0, 2.0)))
    command = ["bench", "report", "--results", str(folder), "--page", str(page)]
    found = report.find_sections(folder)
    page.parent.mkdir()
    page.write_text(text := report.page(found), encoding="utf-8")
    images = [page.parent / f"images/{name}.png" for name, _ in report.drawn(found)]
    images[0].parent.mkdir()
    for image in images:
        image.touch()
    assert main([*command, "--check"]) == 0
    page.write_text(text.replace("0.75 (slow)", "0.85 (slow)"), encoding="utf-8")
    assert main([*command, "--check"]) == 1
    said = capsys.readouterr().out
    assert "-| chosen models, one of a family | 2 | 1.22 | 0.88 | 0.85 (slow) |" in said
    page.write_text(text + "\n", encoding="utf-8")
    assert main([*command, "--check"]) == 1
    page.write_text(text, encoding="utf-8")
    images[1].unlink()
    assert main([*command, "--check"]) == 1
    assert "there is no" in capsys.readouterr().out
    page.unlink()
    assert main([*command, "--check"]) == 1


def test_the_command_writes_page_and_plots(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    page, folder = tmp_path / "docs" / "page.md", tmp_path / "results"
    write(folder, "vision", models(slow=(4.0, 3.0), fast=(1.0, 20.0)))
    command = ["bench", "report", "--results", str(folder), "--page", str(page)]
    assert main(command) == 0 and main([*command, "--check"]) == 0
    assert {p.name for p in tmp_path.glob("docs/images/*")} == {"performance.png", "vision.png"}


def test_plots_are_the_same_for_the_same_speed_ups(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    groups = {"one": [0.5], "many": [0.9 + 0.1 * i for i in range(40)]}
    for name in "ab":
        plots.speed_ups(plots.SpeedUps("Title", "GPU", groups, 4.0), tmp_path / f"{name}.svg")
    a, b = ((tmp_path / f"{name}.svg").read_text() for name in "ab")
    assert a == b and "<svg" in a
    assert "triangles: above 4" in a
