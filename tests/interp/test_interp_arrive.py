"""bar.arrive, which orders one way: whoever waits at the barrier is ordered after the arrival."""

from __future__ import annotations

import pytest
from interp_snippet import run

from ptxgen.errors import RaceFault

STORE, LOAD = "@!%p2 st.shared.u32 [%r1], %r3;", "@!%p2 ld.shared.u32 %r4, [%r1+4];"


def program(first: str, last: str) -> str:
    """Returns two warps: one executes ``first``, bar.arrive and ``last``; the other stores word 1,
    waits at the barrier, and loads word 0.
    """
    return f"""
    mov.u32 %r1, buffer;
    setp.ge.u32 %p1, %r0, 32;
    and.b32 %r2, %r0, 31;
    setp.ne.u32 %p2, %r2, 0;
    mov.u32 %r3, 7;
    @%p1 bra SECOND;
    {first}
    bar.arrive 1, 64;
    {last}
    ret;
SECOND:
    @!%p2 st.shared.u32 [%r1+4], %r3;
    bar.sync 1, 64;
    @%p2 ret;
    ld.shared.u32 %r4, [%r1];
    st.global.u32 [%rd0], %r4;
"""


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("first", "last", "is_right"),
    [
        (STORE, "", True),
        (STORE, "@!%p2 st.shared.u32 [%r1+8], %r3;", True),
        (STORE, STORE, False),  # after the arrival, nothing orders it before the load
        (STORE, LOAD, False),  # who arrives has not waited for the other's store
    ],
)
def test_an_arrival_orders_one_way(first: str, last: str, is_right: bool, seed: int) -> None:
    head = ".shared .align 4 .b32 buffer[4];\n"
    if is_right:
        assert run(program(first, last), block=64, head=head, seed=seed).tolist() == [7]
    else:
        with pytest.raises(RaceFault):
            run(program(first, last), block=64, head=head, seed=seed)
