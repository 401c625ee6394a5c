"""Draws a sound: its spectrogram and log-mel features; inverts the short-time transform.

The sound is a chirp, a chord and noise. Needs no PyTorch; pictures need matplotlib.

python examples/spectrogram.py                 # half a second of sound without a GPU, else eight
python examples/spectrogram.py --pictures DIR  # writes spectrogram.png there
python examples/spectrogram.py --seconds 2     # a sound of another length
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import ptxgen

RATE, N_FFT, HOP, SEED = 16000, 512, 128, 0


def main(argv: list[str] | None = None) -> int:
    """Prints the largest error of the inverse, and whether a frame has its bits alone; returns 1
    if a bit differs.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="write pictures to DIR")
    parser.add_argument("--seconds", type=float, help="length of the sound")
    chosen = parser.parse_args(argv)
    fast = ptxgen.devices()[0].kind != "cpu"
    seconds = chosen.seconds or (8.0 if fast else 0.5)
    x = sound(seconds)
    window = np.hanning(N_FFT + 1)[:-1].astype(np.float32)
    of = {"n_fft": N_FFT, "hop_length": HOP, "window": window}
    spectrum = ptxgen.stft(x, **of)
    back = ptxgen.istft(spectrum, **of, length=len(x))
    error = abs(back - x).max()
    print(f"{seconds:g} s of sound, {spectrum.shape[1]} frames of {spectrum.shape[0]} bins")
    print(f"istft(stft(x)) - x: at most {error:.2g}")
    features = ptxgen.log_mel_spectrogram(x, RATE, n_fft=N_FFT, hop_length=HOP, n_mels=64, clamp=8)
    low, high = features.min(), features.max()
    print(f"log-mel features {list(features.shape)}: {low:.2f} to {high:.2f}")
    frame = spectrum.shape[1] // 2
    start = frame * HOP - N_FFT // 2
    alone = ptxgen.stft(x[start : start + N_FFT], **of, center=False)[:, 0]
    same = alone.tobytes() == spectrum[:, frame].tobytes()
    print(f"frame {frame} alone: {'the same bits' if same else 'OTHER BITS'}")
    if chosen.pictures:
        draw(chosen.pictures, x, spectrum, features, seconds)
    return int(not same)


def sound(seconds: float) -> Any:
    """Returns a chirp from 300 Hz to 6 kHz, a chord in the second half, and noise."""
    t = np.arange(int(RATE * seconds)) / RATE
    chirp = 0.3 * np.sin(2 * np.pi * (300 * t + (6000 - 300) / (2 * seconds) * t**2))
    chord = sum(0.1 * np.sin(2 * np.pi * f * t) for f in (440.0, 554.4, 659.3, 880.0))
    noise = 0.005 * np.random.default_rng(SEED).standard_normal(t.size)
    return (chirp + chord * (t >= seconds / 2) + noise).astype(np.float32)


def draw(folder: Path, x: Any, spectrum: Any, features: Any, seconds: float) -> None:
    """Writes the waveform, its spectrogram in decibels, and the log-mel features."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(3, 1, figsize=(8, 6), sharex=True, layout="constrained")
    axes[0].plot(np.arange(len(x)) / RATE, x, linewidth=0.3)
    axes[0].set_ylabel("amplitude")
    decibels = 20 * np.log10(np.maximum(abs(spectrum), 1e-5))
    of = {"origin": "lower", "aspect": "auto", "interpolation": "nearest"}
    limit = decibels.max()
    shown = axes[1].imshow(
        decibels, **of, extent=(0, seconds, 0, RATE / 2000), vmin=limit - 50, vmax=limit
    )
    figure.colorbar(shown, ax=axes[1], label="dB")
    axes[1].set_ylabel("kHz")
    shown = axes[2].imshow(
        features, **of, extent=(0, seconds, 0, len(features)), cmap="magma", vmin=features.max() - 5
    )
    figure.colorbar(shown, ax=axes[2], label="log10")
    axes[2].set_ylabel("mel filter")
    axes[2].set_xlabel("seconds")
    figure.savefig(folder / "spectrogram.png", dpi=80)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
