"""Attention with every option, on 1 to 17 queries, by every kernel: no read beyond an array, and
the oracle's bits.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random

import pytest
from attention_draws import SEED, combinations, drawn, kernels

import ptxgen
from ptxgen.runtime.cpu import CpuDevice

ALL = kernels() + kernels(backward=True)
FEW, SHARED, CLUSTER = (
    next(k for k in ALL if k.spec.family == family and k.spec.rounds_scores)
    for family in ("attention_few", "attention_decode", "attention_cluster")
)
PLAIN = next(k for k in ALL if k.spec.family == "attention_few" and not k.spec.rounds_scores)
SHARE = [(PLAIN, 12), (FEW, 20), (SHARED, 8), (CLUSTER, 0)]
"""Kernels of ``make test``, with random calls of each besides those on one query."""


@lru_cache(maxsize=1)
def device(kernel):
    """A device of two SMs, so that CTAs have several tiles, for the calls of a kernel."""
    made = CpuDevice()
    made.sms = 2
    return made


def check(kernel, calls):
    """Runs calls of a kernel, each by its number among all."""
    function = ptxgen.attention_grad if kernel.backward else ptxgen.attention
    with ptxgen.use_device(device(str(kernel))):
        for n, (queries, names) in calls:
            drawn(kernel, n, queries, names).check(function, kernel)


@pytest.mark.parametrize(("kernel", "more"), SHARE, ids=lambda x: str(x))
def test_options_of_one_query(kernel, more):
    """All options on one query, and some random calls on more."""
    found = list(enumerate(combinations(kernel, SEED, 2)))
    one = [call for call in found if call[1][0] == 1]
    check(kernel, one + Random(SEED).sample(found, more))


@pytest.mark.long
@pytest.mark.parametrize("kernel", ALL[::2], ids=str)
def test_every_option(kernel):
    """Each option runs on one number of queries, in turn, by every second kernel. (GPU tests take
    all of them.)
    """
    check(kernel, enumerate(combinations(kernel, SEED, 2, some=1)))
