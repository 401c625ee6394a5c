"""golden/bits.json: what it pins, that it sees a moved bit, and that inputs are the same always."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from ml_dtypes import bfloat16

from ptxgen import golden, numerics
from ptxgen.cli import main
from ptxgen.golden import bits
from ptxgen.numerics.column_reductions import REDUCTIONS
from ptxgen.numerics.contract import CONTRACTS, COPY, OPERATIONS, PLANS, TENSOR_CORES, Contract, K
from ptxgen.numerics.dtype import COMPLEX, FULL, NAMES
from ptxgen.numerics.formats import FORMATS
from ptxgen.numerics.formula import STORED
from ptxgen.numerics.functions import FUNCTIONS
from ptxgen.numerics.row_reductions import TABLE
from ptxgen.ops.pointwise_table import ROWS

COMMITTED = bits.load(golden.checkout_folder() / "bits.json")


def modules():
    for module in pkgutil.iter_modules(numerics.__path__, "ptxgen.numerics."):
        yield importlib.import_module(module.name)


SUMS = ("epilogues", "plans", "sums of batches", "sums of rows")


def test_every_contract_is_pinned_for_every_dtype_and_operation():
    values = [v for m in modules() for v in vars(m).values()]
    values += [v for by_tier in values if isinstance(by_tier, Mapping) for v in by_tier.values()]
    known = {str(v) for v in values if isinstance(v, Contract)}
    known |= {str(row.contract) for row in FORMATS.values()}
    assert known - {str(COPY)} == COMMITTED.keys()
    for by_dtype in CONTRACTS.values():
        for dtype, contract in by_dtype.items():
            pinned = COMMITTED[str(contract)]
            assert all(dtype in pinned[what] for what in (*OPERATIONS, *SUMS))
    rows = COMMITTED["rows/1"]
    assert all(set(rows[name]) == set(row.dtypes) for name, row in TABLE.items())
    assert all(len(rows[name]) == len(of.takes) for name, of in REDUCTIONS.items())
    functions = COMMITTED["pointwise/1"]
    assert {row.name for row in ROWS} <= functions.keys()
    for name, function in FUNCTIONS.items():
        taken = {dtype for dtype in NAMES.values() if STORED[dtype] in function.types}
        assert taken <= functions[name].keys()
    for to in FULL:
        taken = FULL.keys() - (set() if to in COMPLEX.values() else set(COMPLEX.values()))
        assert functions[f"cast to {to}"].keys() == taken
    assert COMMITTED["tc16/3"]["dot16"].keys() == TENSOR_CORES.keys()
    assert {s for c in COMMITTED["int4/1"].values() for s in c} == {"s4", "u4"}


CUT = [
    (tier, dtype, plan.name)
    for tier, dtype in (("simt", "f32"), ("simt", "f64"), ("tc", "bf16"))
    for plan in PLANS[CONTRACTS[tier][dtype].name].values()
    if not plan.continued
]


@pytest.mark.parametrize(("tier", "dtype", "plan"), CUT)
def test_results_cross_every_rule_that_cuts_a_sum(monkeypatch, tier, dtype, plan):
    """A plan that never cuts is seen: as a rule, and in bits of results."""
    contract = CONTRACTS[tier][dtype]
    whole = replace(PLANS[contract.name][plan], chunk=K)
    monkeypatch.setitem(PLANS[contract.name], plan, whole)
    assert plan == "chunks"
    found = bits.digests([lambda: bits.products_of(tier, dtype)])
    moved = bits.differences(COMMITTED, found)
    others = (name for name in moved if not name.endswith("is gone"))
    what = "plans", "sums of batches", "sums of rows"
    assert list(others) == [f"{contract} {each} {dtype} has moved" for each in what]


def test_a_moved_bit_is_named(tmp_path, monkeypatch, capsys):
    """A moved bit is named by contract, operation and dtype; ``--update`` accepts it and leaves no
    difference.
    """
    monkeypatch.setattr(bits, "ALL", (bits.quantised,))
    monkeypatch.setattr(bits.digests, "__defaults__", ((bits.quantised,),))
    assert main(["golden", "bits", "--update", "--golden", str(tmp_path)]) == 0
    assert main(["golden", "bits", "--golden", str(tmp_path)]) == 0
    assert "as committed" in capsys.readouterr().out
    path = tmp_path / "bits.json"
    content = json.loads(path.read_text())
    content["int4/1"]["gemm rcr"]["s4"] = "0" * 16
    content["int4/1"]["other"] = {"u4": "1"}
    del content["wide/1"]
    path.write_text(json.dumps(content))
    assert main(["golden", "bits", "--golden", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "int4/1 gemm rcr s4 has moved",
        "int4/1 other u4 is gone",
        "wide/1 products f32 is not committed",
    ]
    assert "new version of its contract" in said.err


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (np.float32([0.0]), np.float32([-0.0]), False),
        (np.float32([np.nan]), -np.float32([np.nan]), True),
        (np.float32([1]), np.float64([1]), False),
        (np.zeros((2, 3), np.int32), np.zeros((3, 2), np.int32), False),
        ([np.zeros(2), None], [np.zeros(2), np.zeros(0)], False),
        (np.ones(1, bfloat16), np.full(1, 1.01, bfloat16), False),
        (np.arange(6.0)[::2], np.float64([0, 2, 4]), True),
    ],
)
def test_digests_are_of_bits_dtypes_and_shapes(one, other, same):
    assert (bits.digest(one) == bits.digest(other)) is same


def test_inputs_are_made_by_integer_arithmetic():
    """SplitMix64, whose first numbers are known."""
    assert [f"{x:x}" for x in bits.words(0, 3)] == [
        "e220a8397b1dcdaf",
        "6e789e6aa1b965f4",
        "6c45d188009454f",
    ]


def test_numbers_are_of_all_kinds():
    found = bits.numbers(1, (9999,), "f32", special=True)
    assert np.isnan(found).any() and np.isinf(found).any() and (np.abs(found) < 2.0**-126).any()
    plain = bits.numbers(1, (9999,), "f32")
    assert np.isfinite(plain).all() and len(np.unique(plain)) > 9000
    assert 2.0**-20 < np.abs(plain).min() < 2.0**-9 and 64 < np.abs(plain).max() <= 128
    whole = bits.numbers(1, (9999,), "i64")
    assert np.abs(whole).max() > 2**60 and (np.abs(whole) < 100).any() and (whole < 0).any()
    assert set(bits.numbers(1, (99,), "bool")) == {False, True}
    assert {*bits.indices(1, (999,), -1, 4)} == {-1, 0, 1, 2, 3}
