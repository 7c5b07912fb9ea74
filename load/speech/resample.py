"""Changes of sample rate of a whole utterance, by Fourier transform: no delay, so labels stay where they were. Pure."""

from __future__ import annotations

import math

import numpy as np

from wire.pcm import Pcm32f

GUARD_S = 0.05  # silence around the audio: a Fourier transform takes its end for the neighbour of its beginning
ROLL_OFF = 0.04  # upper share of the band that fades out: a wall would ring


def resampled(audio: Pcm32f, from_hz: int, to_hz: int) -> Pcm32f:
    """Sample n of the result lies at n / `to_hz` seconds."""
    if from_hz == to_hz or not audio.size:
        return audio
    common = math.gcd(from_hz, to_hz)
    up, down = to_hz // common, from_hz // common
    guard = -(-round(GUARD_S * from_hz) // down) * down
    size = -(-(audio.size + 2 * guard) // down) * down
    padded = np.zeros(size)
    padded[guard : guard + audio.size] = audio
    new_size = size * up // down
    spectrum = np.fft.rfft(padded)
    kept = min(spectrum.size, new_size // 2 + 1)
    new_spectrum = np.zeros(new_size // 2 + 1, complex)
    new_spectrum[:kept] = spectrum[:kept]
    num_fading = max(1, round(ROLL_OFF * kept))
    new_spectrum[kept - num_fading : kept] *= 0.5 + 0.5 * np.cos(np.pi * (np.arange(num_fading) + 1) / num_fading)
    result = np.fft.irfft(new_spectrum, new_size) * (new_size / size)
    begin = guard * up // down
    return result[begin : begin + -(-audio.size * up // down)].astype(np.float32)


def band_passed(audio: Pcm32f, rate_hz: int, low_hz: float, high_hz: float, slope_hz: float) -> Pcm32f:
    """What lies between the two frequencies, without delay; outside it fades over `slope_hz`."""
    guard = round(GUARD_S * rate_hz)
    padded = np.pad(audio.astype(np.float64), guard)
    hz = np.fft.rfftfreq(padded.size, 1 / rate_hz)
    rising = np.clip((hz - (low_hz - slope_hz)) / slope_hz, 0, 1)
    falling = np.clip(((high_hz + slope_hz) - hz) / slope_hz, 0, 1)
    gain = np.sin(np.pi / 2 * rising) ** 2 * np.sin(np.pi / 2 * falling) ** 2
    return np.fft.irfft(np.fft.rfft(padded) * gain, padded.size)[guard : guard + audio.size].astype(np.float32)
