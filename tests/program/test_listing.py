"""Programs for people: the table and the picture say what the program is."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

import ptxgen
from ptxgen import functions as f
from ptxgen import graph
from ptxgen.program.launch import launch
from ptxgen.runtime import get_device

X, W = np.zeros((8, 64), "f4"), np.zeros((64, 32), "f4")


def layer(x, w):
    y = ptxgen.linear(x, w, layout="kn")
    z = f.exp(y)
    return ptxgen.softmax(f.mul(z, 0.5)), f.add(y, z)


def test_a_table_has_the_kernels_that_are_launched_and_their_times() -> None:
    cpu = get_device("cpu")
    with ptxgen.use_device("cpu"):
        program = graph.trace(layer, X, W)
        heads, *lines, sums = str(program).splitlines()
        us = program.listing().us
    assert heads.split() == ["step", "kernel", "reads", "writes", "bytes", "µs"]
    for number, (line, step) in enumerate(zip(lines, program.steps, strict=True)):
        (one,) = launch(step.problem, tuple(step.bind), cpu).prepared
        cells = [str(number), step.problem.what.split()[0], one.function.symbol]
        assert line.split()[:3] == cells and f" {step.nbytes:,}" in line
    nbytes = sum(step.nbytes for step in program.steps)
    assert sums == f"{len(lines)} steps, {nbytes:,} bytes, {us:.1f} µs"
    assert all(float(line.split()[-1]) > 0 for line in lines)
    assert us == sum(step.predicted(cpu) for step in program.steps)
    assert lines[0].startswith("0  linear")
    assert "x f32[8, 64], w f32[64, 32]" in lines[0]
    assert lines[0].endswith(f"{ptxgen.explain('linear', 8, 32, 64).winner.time:.1f}")


def test_a_kernel_that_is_asked_for_is_shown() -> None:
    names = [c.name for c in ptxgen.explain("linear", 8, 32, 64).also_correct][:2]
    with ptxgen.use_device("cpu"):
        for name in names:
            program = graph.trace(
                lambda x, w, name=name: ptxgen.linear(x, w, kernel=name, layout="kn"), X, W
            )
            assert f" {name} " in str(program)


def test_a_picture_has_a_box_for_each_step_and_an_edge_for_what_is_between(tmp_path) -> None:
    with ptxgen.use_device("cpu"):
        program = graph.trace(layer, X, W)
        program.draw(tmp_path / "layer.svg")
    root = ElementTree.parse(tmp_path / "layer.svg").getroot()
    name = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f".//{name}rect")) == 1 + len(program.steps)
    edges = [t.text for t in root.findall(f".//{name}g/{name}title")]
    assert edges == [f"t{i} f32[8, 32], 1,024 bytes" for i in range(3)]
    arrows = [p.get("d").count("z") for p in root.findall(f".//{name}g/{name}path")][1::2]
    assert arrows == [2, 2, 1], "readers of each"
    texts = "\n".join(t.text for t in root.iter(f"{name}text"))
    assert "reads x f32[8, 64], 2,048 bytes; w f32[64, 32], 8,192 bytes" in texts
    assert texts.count("returned") == 2


def test_parts_of_an_array_have_an_edge_each(tmp_path) -> None:
    """Parts of an array have an edge each in the drawing, and what overwrites them begins
    another.
    """

    def joined(x):
        y = ptxgen.layout.concat((x[:, :8], f.neg(x[:, 8:])), 1)
        return ptxgen.softmax(f.exp(y))

    with ptxgen.use_device("cpu"):
        graph.apply(graph.trace(joined, X), ["reuse"])[0].draw(tmp_path / "joined.svg")
    root = ElementTree.parse(tmp_path / "joined.svg").getroot()
    name = "{http://www.w3.org/2000/svg}"
    edges = [t.text.rpartition(", ")[0] for t in root.findall(f".//{name}g/{name}title")]
    assert edges == ["t0 f32[8, 56]", "t1 f32[8, 8]", "t1 f32[8, 56]", "t1 f32[8, 64]"]
