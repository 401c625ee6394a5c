"""Dispatch of fft_chirp: transforms.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time


def candidates(table: str, arch: str, ctas: int, sms: int, time: Time) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    # 0: chirps of one length
    yield Candidate(0.0, Choice(0, ("fft_chirp_f64_4099_ff1aad",), (ctas,), ()))
