"""``ptxgen bench spectra``: log-mel features and power spectral densities of random sizes, against
the formulas in PyTorch.

Beside ``log_mel_spectrogram``, which takes waveforms, PyTorch calls ``torch.stft`` (cuFFT) and a
product with the filters. The other cases begin with spectra. Each entry of :data:`OPERATIONS` draws
cases of one operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import ptxgen
from ptxgen.bench import draw
from ptxgen.bench.opcase import DrawnArea, OpCase, Work, device_of, with_gradients

FLOOR = 1e-10
"""Least value whose logarithm is taken."""
CLOSE = 1e-3
"""Largest difference of features, powers of ten; for densities relative to the largest one."""
RATE = 16000
"""Samples a second of the filters, Hz."""


def filters(torch: Any, mels: int, size: int) -> Any:
    """Returns mel filters of transforms of length ``size``, [mels, size / 2 + 1]."""
    found = ptxgen.mel_filters(RATE, size, mels)
    return torch.as_tensor(found, dtype=torch.float32, device=device_of(torch))


def near(ours: Any, theirs: Any) -> bool:
    """Returns whether features differ by :data:`CLOSE` at most."""
    return bool((ours - theirs).abs().max() <= CLOSE)


def relatively_near(ours: Any, theirs: Any) -> bool:
    """Returns whether the first tensors differ by at most :data:`CLOSE` of the largest element."""
    a, b = (x[0] if isinstance(x, tuple) else x for x in (ours, theirs))
    return bool((a - b).abs().max() <= CLOSE * b.abs().max())


# -- PyTorch's side -------------------------------------------------------------------------
def powers(spectra: Any, bins: int) -> Any:
    """Returns the squared magnitudes of the first ``bins`` bins of spectra in block layout."""
    re, im = spectra.tensor_split(2, -1)
    return re[..., :bins].square() + im[..., :bins].square()


def features(torch: Any, power: Any, filters: Any) -> Any:
    """Returns the logarithms of ``power`` times filters, [..., mels]."""
    return torch.log10(torch.clamp(power @ filters.T, min=FLOOR))


# -- cases ----------------------------------------------------------------------------------
def frames_case(batch: int, samples: int, size: int, hop: int, mels: int) -> OpCase:
    """Returns a case of log-mel features of waveforms: frames of ``size`` samples, ``hop`` apart.

    The frames of both sides lie within the waveform.
    """

    def make(torch: Any) -> Work:
        import ptxgen.torch as of

        device = device_of(torch)
        wave = torch.randn(batch, samples, device=device)
        window = torch.hann_window(size, device=device)
        mel = filters(torch, mels, size)
        how: dict[str, Any] = {"n_fft": size, "hop_length": hop, "n_mels": mels, "center": False}

        def ours(wave: Any) -> Any:
            return of.log_mel_spectrogram(wave, RATE, window=window, floor=FLOOR, **how)

        def stock(wave: Any) -> Any:
            given = {"hop_length": hop, "window": window, "center": False, "return_complex": True}
            found = torch.view_as_real(torch.stft(wave, size, **given).transpose(-1, -2))
            return features(torch, found.square().sum(-1), mel).transpose(-1, -2)

        return Work((wave,), ours, stock, compiled=False, agree=near)

    count = batch * ((samples - size) // hop + 1)
    sizes = f"{batch}x{samples} n {size} hop {hop} mels {mels}"
    return OpCase("log_mel_spectrogram", sizes, 4 * (batch * samples + count * mels), make)


def log_mel_case(frames: int, size: int, mels: int, backward: bool = False) -> OpCase:
    """Returns a case of log-mel features of spectra, alone or with both gradients."""

    def make(torch: Any) -> Work:
        import ptxgen.torch as of

        device, bins = device_of(torch), size // 2 + 1
        spectra = torch.randn(frames, 2 * bins, device=device)
        mel = filters(torch, mels, size)

        def stock(spectra: Any, mel: Any) -> Any:
            return features(torch, powers(spectra, bins), mel)

        if backward:
            dy = torch.randn(frames, mels, device=device)
            return with_gradients(torch, dy, (spectra, mel), of.log_mel, stock)
        return Work((spectra, mel), of.log_mel, stock, agree=near)

    name = f"log_mel{' + backward' if backward else ''}"
    nbytes = (1 + 2 * backward) * 4 * frames * (size + 2 + mels)
    return OpCase(name, f"{frames} n {size} mels {mels}", nbytes, make)


def welch_case(groups: int, segments: int, bins: int, peaks: int = 0) -> OpCase:
    """Returns a case of ``welch``, or of ``welch_peaks`` with its ``peaks`` largest bins."""

    def make(torch: Any) -> Work:
        import ptxgen.torch as of

        spectra = torch.randn(groups * segments, 2 * bins, device=device_of(torch))

        def ours(spectra: Any) -> Any:
            if peaks:
                return of.welch_peaks(spectra, segments, peaks)
            return of.welch(spectra, segments)

        def stock(spectra: Any) -> Any:
            mean = powers(spectra, bins).view(groups, segments, bins).mean(1)
            return tuple(mean.topk(peaks)) if peaks else mean

        return Work((spectra,), ours, stock, agree=relatively_near)

    name = f"welch{'_peaks' if peaks else ''}"
    sizes = f"{groups}x{segments}x{bins}" + (f" k {peaks}" if peaks else "")
    return OpCase(name, sizes, 4 * groups * bins * (2 * segments + (not peaks)), make)


# -- draws ----------------------------------------------------------------------------------
def _size(random: Random) -> int:
    return int(random.choice((256, 400, 512, 1024, 2048)))


def _frames(random: Random) -> OpCase:
    size, mels = _size(random), int(random.choice((64, 80, 128)))
    hop = size // int(random.choice((2, 4)))
    batch = draw.integer(random, 1, 64)
    return frames_case(batch, RATE * draw.integer(random, 1, 30), size, hop, mels)


def _log_mel(random: Random, *, backward: bool = False) -> OpCase:
    size, mels = _size(random), int(random.choice((64, 80, 128)))
    return log_mel_case(draw.integer(random, 1 << 10, 1 << 16), size, mels, backward)


def _log_mel_backward(random: Random) -> OpCase:
    return _log_mel(random, backward=True)


def _welch(random: Random) -> OpCase:
    bins, segments = draw.rows(random, 64, 4096), draw.integer(random, 4, 64)
    return welch_case(
        max(1, draw.integer(random, 1 << 18, 1 << 24) // bins // segments), segments, bins
    )


def _peaks(random: Random) -> OpCase:
    bins, segments = draw.rows(random, 64, 4096), draw.integer(random, 4, 64)
    groups = max(1, draw.integer(random, 1 << 18, 1 << 24) // bins // segments)
    return welch_case(groups, segments, bins, draw.integer(random, 1, 32))


OPERATIONS: Mapping[str, Callable[[Random], OpCase]] = {
    "log_mel_spectrogram": _frames,
    "log_mel": _log_mel,
    "log_mel + backward": _log_mel_backward,
    "welch": _welch,
    "welch_peaks": _peaks,
}
"""Functions that draw a random case, by name of the case."""


class Spectra(DrawnArea):
    """Benchmark ``ptxgen bench spectra``: random features and densities, against PyTorch."""

    name = "spectra"
    about = (
        "Times log-mel features and Welch's densities beside their formulas in PyTorch, eager and "
        "by torch.compile, in one run, with a cold L2, after comparing results; medians in µs. "
        "limit = bytes / 4.3 TB/s, each number once."
    )
    operations = OPERATIONS
    count = 6


main, _parser = Spectra.main, Spectra.parser
