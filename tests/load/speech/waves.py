"""Constructed waveforms whose truth is known."""

from __future__ import annotations

import numpy as np

from load.speech.sound import Sound

TOLERANCE_S = 0.01


def voice_like(seconds: float, rate_hz: int, hz: float = 120.0, dbfs: float = -15.0) -> np.ndarray:
    """A fundamental with harmonics, float32."""
    t = np.arange(round(seconds * rate_hz)) / rate_hz
    harmonics = [k for k in range(1, 25) if k * hz < min(3300, rate_hz / 2)]
    wave = sum(np.sin(2 * np.pi * k * hz * t + k) / k for k in harmonics)
    return (wave / np.sqrt(np.mean(wave**2)) * 10 ** (dbfs / 20)).astype(np.float32)


def silence(seconds: float, rate_hz: int) -> np.ndarray:
    return np.zeros(round(seconds * rate_hz), np.float32)


def words(
    lengths_s: list[float], rate_hz: int = 16000, gap_s: float = 0.05, lead_s: float = 0.3, tail_s: float = 0.4
) -> Sound:
    """Tones with gaps between them; the borders lie in the middle of the gaps."""
    parts, borders, at = [silence(lead_s, rate_hz)], [], round(lead_s * rate_hz)
    for i, length_s in enumerate(lengths_s):
        parts.append(voice_like(length_s, rate_hz, 110 + 25 * i))
        at += parts[-1].size
        if i + 1 < len(lengths_s):
            parts.append(silence(gap_s, rate_hz))
            borders.append(at + parts[-1].size // 2)
            at += parts[-1].size
    parts.append(silence(tail_s, rate_hz))
    return Sound(np.concatenate(parts), rate_hz, round(lead_s * rate_hz), at, tuple(borders))


def pitch_hz(audio: np.ndarray, rate_hz: int) -> float:
    """By autocorrelation, for steady tones of 60 to 400 Hz."""
    audio = audio - audio.mean()
    spectrum = np.fft.rfft(audio, 2 * audio.size)
    correlation = np.fft.irfft(np.abs(spectrum) ** 2)[: audio.size]
    low, high = round(rate_hz / 400), round(rate_hz / 60)
    return rate_hz / (low + int(correlation[low:high].argmax()))
