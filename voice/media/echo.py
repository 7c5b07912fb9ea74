"""Whether what the caller's microphone hears is the agent: its own voice, come back from a loudspeaker. Pure.

An echo is the agent's audio again, softer and later, by a delay that stays the same. So the last quarter of a second
from the caller is laid over what the agent has said, at every delay up to `MAX_DELAY_S`, both with their spectrum made
flat, because two voices are alike in their pitch and not in their noise. Alike at one delay, again and again: an
echo. A caller who speaks over it is not alike, or louder than the echo has been. It is not cancelled: the agent only
must not take itself for a caller.

Of recorded speakers (15 clips, 5 languages) the likeness of another voice, or of the same one with other words, is 0.11
in the median and at most 0.28 at 95 %; of an echo at -20 dB it is 0.8, in a room that rings for 0.4 s 0.37.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voice.media.resample import Resampler
from wire.pcm import Pcm16, Pcm32f

RATE_HZ = 8000  # of the comparison: the telephone band holds what tells
BLOCK = 2048  # 256 ms from the caller
MAX_DELAY_S = 0.8  # lead, network and buffers both ways, and the room
LONGEST = round(MAX_DELAY_S * RATE_HZ)
KEPT = 16384  # of what was said, 2.05 s
ALIKE = 0.3  # correlation of flat spectra at the best delay
ALIKE_THERE = 0.2  # the same, at a delay that is known
MAX_SLIP = 400  # 50 ms that audio may come early or late, before it counts as another delay
SAME_DELAY = 24  # 3 ms: the room's, and the clocks'
SURE = 2  # blocks in a row at one delay make it known
SEARCH_EVERY = 4  # blocks that are not alike at a known delay: it may have changed
LOUDER = 4.0  # times the energy of the echo as it was: somebody speaks
GAIN_GROWS = 1.05  # by so much in a block: the room may have changed
FLATTEN = 16  # bins over which the spectrum is averaged before it is made flat


class EchoGuard:
    """`said` with all that leaves for the caller, in order; `hears` with all that comes. `now` on one clock, from
    `begun_s` on.
    """

    def __init__(self, agent_hz: int, caller_hz: int, begun_s: float) -> None:
        self._begun_s = begun_s
        self._from_agent = Resampler(agent_hz, RATE_HZ)
        self._from_caller = Resampler(caller_hz, RATE_HZ)
        self._said = np.zeros(KEPT, np.float32)  # a ring; sample n at n % KEPT
        self._said_to = -KEPT  # on a clock that begins with the call
        self._heard = np.zeros(BLOCK, np.float32)
        self._heard_to = 0
        self._has_gap = False  # in what was heard: nothing was kept of it
        self._delay: int | None = None
        self._num_there = 0  # blocks in a row that were alike at it
        self._is_known = False
        self._num_unlike = 0  # blocks since
        self._gain: float | None = None  # energy of the echo by that of what was said

    def said(self, pcm: Pcm16, now: float) -> None:
        """Audio that leaves at `now`."""
        audio = self._from_agent.push(pcm)
        begin = max(self._said_to, round((now - self._begun_s) * RATE_HZ))
        if begin > self._said_to:  # silence between what was said
            self._said[np.arange(max(self._said_to, begin - KEPT), begin) % KEPT] = 0
        self._said[np.arange(begin, begin + audio.size) % KEPT] = audio
        self._said_to = begin + audio.size

    def hears(self, pcm: Pcm16, now: float) -> bool:
        """Audio that came by `now`. False when no echo can be in it: the agent has been silent for too long."""
        came_to = round((now - self._begun_s) * RATE_HZ)
        if self._said_to + LONGEST < came_to - BLOCK:
            self._has_gap = True
            return False
        if self._has_gap:
            self._heard[:] = 0
            self._has_gap = False
        audio = self._from_caller.push(pcm).astype(np.float32)[-BLOCK:]
        if audio.size:
            self._heard = np.concatenate([self._heard[audio.size :], audio])
        self._heard_to += audio.size  # by its own clock: audio comes in messages, and they come when they come
        if abs(came_to - self._heard_to) > MAX_SLIP:
            self._heard_to = came_to
        return True

    def is_echo(self) -> bool:
        """Of the last 256 ms that were heard."""
        if self._is_known:
            assert self._delay is not None
            likeness, delay = self._likeness(max(0, self._delay - SAME_DELAY), self._delay + SAME_DELAY)
            if likeness >= ALIKE_THERE:
                self._num_unlike, self._delay = 0, delay  # clocks drift
                return not self._is_louder(delay, likeness)
            self._num_unlike += 1
            if self._num_unlike % SEARCH_EVERY:
                return False
        likeness, delay = self._likeness(0, LONGEST)
        if likeness < ALIKE:
            self._num_there = 0
            return False
        is_there = self._delay is not None and abs(delay - self._delay) <= SAME_DELAY
        self._num_there = self._num_there + 1 if is_there else 1
        self._is_known = self._num_there >= SURE
        self._delay = delay
        return self._is_known and not self._is_louder(delay, likeness)

    def _is_louder(self, delay: int, likeness: float) -> bool:
        """Than the echo has been: somebody speaks over it."""
        energy = float((self._said_between(delay, delay) ** 2).sum())
        gain = float((self._heard**2).sum()) / max(energy, 1.0)
        usual = self._gain
        if likeness >= ALIKE:
            self._gain = gain if usual is None else min(gain, GAIN_GROWS * usual)
        return usual is not None and gain > LOUDER * usual

    def _likeness(self, shortest: int, longest: int) -> tuple[float, int]:
        """At the best of these delays, and that; in samples."""
        said = self._said_between(shortest, longest)
        size = 1 << (said.size + BLOCK - 1).bit_length()
        flat_said, flat_heard = _flat(np.fft.rfft(said, size)), _flat(np.fft.rfft(self._heard, size))
        found = np.fft.irfft(flat_said * np.conj(flat_heard), size)[: longest - shortest + 1]
        waves = np.fft.irfft(flat_said, size)[: said.size], np.fft.irfft(flat_heard, size)
        energy = np.cumsum(np.concatenate([[0.0], waves[0] ** 2]))
        norm = np.sqrt((energy[BLOCK:] - energy[:-BLOCK]) * float((waves[1] ** 2).sum())) + 1e-9
        alike = found / norm
        best = int(np.argmax(alike))
        return float(alike[best]), longest - best

    def _said_between(self, shortest: int, longest: int) -> Pcm32f:
        """What was said from `longest` before the block that was heard to `shortest` before its end."""
        at = np.arange(self._heard_to - BLOCK - longest, self._heard_to - shortest)
        is_kept = (at < self._said_to) & (at >= self._said_to - KEPT)
        said: Pcm32f = np.where(is_kept, self._said[at % KEPT], np.float32(0))
        return said


def _flat(spectrum: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Divided by its own envelope."""
    levels = np.abs(spectrum)
    envelope = np.convolve(levels, np.ones(FLATTEN) / FLATTEN, mode="same")
    flat: NDArray[np.complex128] = spectrum / np.maximum(envelope, 1e-3 * levels.max() + 1e-9)
    return flat
