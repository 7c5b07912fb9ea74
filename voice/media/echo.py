"""Whether what the caller's microphone hears is the agent: its own voice, come back from a loudspeaker. Pure.

An echo is the agent's audio again, softer and later, by a delay that stays the same. Two questions, then.

At which delay? The last quarter of a second from the caller is laid over what the agent has said, at every delay up to
`LONGEST`, both with their spectrum made flat, because two voices are alike in their pitch and not in their noise. Alike
at one delay, again: an echo. The search is made up to 2 kHz, what it finds is judged up to 4. Of recorded speakers (5
languages) the likeness of another voice, or of the same one with other words, is 0.08 in the median and at most 0.17 at
95 %; of an echo at -20 dB it is 0.88, in a room that rings for 0.4 s 0.41.

Does somebody speak over it? What was said at that delay, and shortly before, tells in bands how loud its echo can be:
by the line's gain, which is the part of the caller's audio that goes with what was said, whoever speaks over it, and
by the room's shape, which is learned. A caller is louder than that in some bands, because two voices are seldom loud in
the same ones; so also one who is softer than the echo is noticed. Nothing is cancelled: the agent only must not take
itself for a caller. Figures: `bench/echo.py`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voice.media.resample import Resampler
from wire.pcm import Pcm16, Pcm32f

RATE_HZ = 8000  # of the comparison: the telephone band holds what tells
BLOCK = 2048  # 256 ms from the caller
SEARCHED = 13824  # of what was said, 1.73 s; a size that is fast to transform
LONGEST = SEARCHED - BLOCK  # delay, 1.47 s: network and buffers both ways, Bluetooth, the room
KEPT = SEARCHED + 4608  # what was said may be ahead by the lead, which is at most 0.4 s
COARSE = 2  # the search has the spectrum's lower half, and every second delay
QUIET = 0.1  # of the energy of the loudest block that was said: in less no echo is looked for
ALIKE = 0.3  # correlation of flat spectra at the best delay
SURELY = 0.5  # the same; once is enough
ALIKE_THERE = 0.2  # the same, at a delay that is known
SURE, SUREST = 2, 32  # windows that were alike there, less those that were not: at first, and at most
EAGER, SEARCH_EVERY = 4, 2  # windows in which somebody is heard: the first ones all, then some
SAME_DELAY = 26  # 3 ms: the room's, and the clocks'; 2100 samples, then, are fast to transform
MAX_SLIP = 400  # 50 ms that audio may come early or late, before it counts as another delay
NUM_LATE = 6  # windows in a row that come later than that, one after the other
FLATTEN = 16  # bins over which the spectrum is averaged before it is made flat

FRAME, HOP = 512, 256  # 64 ms, every 32
TAPER = np.hanning(FRAME)
EDGES = np.unique(np.round(np.geomspace(200, 3700, 19) / RATE_HZ * FRAME).astype(int))  # of the bands, in bins
NUM_FRAMES = 12  # of what was said: one after the delay, the others before it
FRAMES = np.arange(NUM_FRAMES)[:, np.newaxis] * HOP + np.arange(FRAME)
RINGING_DB = 3.5  # a room's decay in one hop: 0.55 s to -60 dB
RINGING = 10 ** (-RINGING_DB / 10 * np.maximum(0, np.arange(NUM_FRAMES - 2, -2, -1)))[:, np.newaxis]
GAIN_MOVES = 0.6  # of the way to what was found
SHAPE_DB = 15.0  # between a band's gain and the line's, at most
SHAPE_FIRST_DB = 6.0  # rather too loud
SHAPE_UP_DB, SHAPE_DOWN_DB = 1.8, 0.9  # in one window, the first; rests where one window in three is above
SHAPE_SLOWS = 0.15  # to this
SPREAD = 10**-2.5  # of the echo's energy may be in any band: loudspeakers distort
NOISE_GROWS = 1.02  # the least that a band has held, in a window: 3 dB a second
NOISE_SWINGS = 2.0
MARGIN_DB, BEYOND_DB = 7.0, 20.0  # over what the echo explains; counts from there, and so far
MORE_DB = 0.3  # the mean over all bands of what counts: somebody speaks
HELD = 4  # windows that are his after two in a row that were: between two sounds


class EchoGuard:
    """`said` with all that leaves for the caller, in order; `hears` with all that comes, 32 ms at a time. `now` on one
    clock, from `begun_s` on.
    """

    def __init__(self, agent_hz: int, caller_hz: int, begun_s: float) -> None:
        self._begun_s = begun_s
        self._agent_hz, self._caller_hz = agent_hz, caller_hz
        self._from_agent = Resampler(agent_hz, RATE_HZ)
        self._from_caller = Resampler(caller_hz, RATE_HZ)
        self._said = np.zeros(KEPT, np.float32)  # up to sample `_said_to`
        self._said_to = -KEPT  # on a clock that begins with the call
        self._heard = np.zeros(BLOCK, np.float32)
        self._heard_to = 0
        self._came_to = 0
        self._num_late = 0
        self._has_gap = False  # in what was heard: nothing was kept of it
        self._num_unlike = 0  # windows for which a delay was looked for, since there was one
        self._candidate: int | None = None  # a delay that was found once
        self._delay: int | None = None
        self._sureness = 0  # of the delay; none when it has come down to 0
        self._gain = 0.0  # energy of the echo by that of what was said
        self._shape_db = np.full(EDGES.size - 1, SHAPE_FIRST_DB)  # of the room and both devices
        self._num_learned = 0
        self._levels = np.zeros(EDGES.size - 1)  # of the last frame that was heard
        self._noise: NDArray[np.float64] | None = None
        self._num_more = 0
        self._num_held = 0

    def said(self, pcm: Pcm16, now: float) -> None:
        """Audio that leaves at `now`."""
        audio = self._from_agent.push(pcm)[-KEPT:]
        begin = max(self._said_to, round((now - self._begun_s) * RATE_HZ))
        silence = np.zeros(min(KEPT, begin - self._said_to), np.float32)
        self._said = np.concatenate([self._said, silence, audio])[-KEPT:]
        self._said_to = begin + audio.size

    def take_back(self, num_samples: int) -> None:
        """So many of those that left last were never heard, and leave again, perhaps."""
        dropped = min(KEPT, round(num_samples * RATE_HZ / self._agent_hz))
        self._said = np.concatenate([np.zeros(dropped, np.float32), self._said[: KEPT - dropped]])
        self._said_to -= dropped

    def hears(self, pcm: Pcm16, now: float) -> bool:
        """Audio that came by `now`. False when no echo can be in it: the agent has been silent for too long."""
        came_to = round((now - self._begun_s) * RATE_HZ)
        self._heard_to += pcm.size * RATE_HZ // self._caller_hz
        self._follow_clock(came_to)
        if self._said_to + LONGEST < came_to - BLOCK:
            self._has_gap = True
            return False
        if self._has_gap:
            self._heard[:] = 0
            self._has_gap, self._num_unlike = False, 0
        audio = self._from_caller.push(pcm).astype(np.float32)[-BLOCK:]
        self._heard = np.concatenate([self._heard, audio])[-BLOCK:]
        self._levels = _levels(self._heard[np.newaxis, -FRAME:])[0]
        self._noise = self._levels if self._noise is None else np.minimum(NOISE_GROWS * self._noise, self._levels)
        return True

    def is_echo(self) -> bool:
        """Of the window that was heard last, in which somebody speaks."""
        is_alike = is_more = False
        if self._delay is not None:
            likeness = self._follow(self._delay)
            is_alike, is_more = likeness >= ALIKE_THERE, self._is_more(learns=likeness >= ALIKE)
            self._sureness = min(SUREST, self._sureness + 1) if is_alike else self._sureness - 1
            if not self._sureness:
                self._delay = None
        if not is_alike and (is_more or self._delay is None) and self._search():
            is_more = self._is_more(learns=True)
        if self._delay is None:
            return self._candidate is not None
        return self._is_explained(is_more)

    def _is_explained(self, is_more: bool) -> bool:
        if is_more:
            self._num_more += 1
            if self._num_more > 1:
                self._num_held = HELD
            return False
        self._num_more = 0
        self._num_held = max(0, self._num_held - 1)
        return not self._num_held

    def _follow_clock(self, came_to: int) -> None:
        """The samples count, so that messages may come when they come; unless some are missing."""
        late, is_next = came_to - self._heard_to, came_to - self._came_to > HOP // 2
        self._came_to = came_to
        self._num_late = self._num_late + is_next if late > MAX_SLIP else 0  # what a stall held back comes at once
        if late < -MAX_SLIP or self._num_late >= NUM_LATE:
            self._heard_to, self._num_late = came_to, 0

    def _search(self) -> bool:
        """At all delays. True when an echo was found."""
        self._num_unlike += 1
        if self._candidate is None and self._num_unlike > EAGER and self._num_unlike % SEARCH_EVERY:
            return False
        likeness, gain, delay = self._compare(self._best_delay())
        if likeness < ALIKE:
            self._candidate = None
            return False
        is_again = self._candidate is not None and abs(delay - self._candidate) <= SAME_DELAY
        self._candidate = delay
        if not is_again and likeness < SURELY:
            return False
        self._delay, self._gain, self._candidate = delay, gain, None
        self._sureness = SURE
        self._num_more = self._num_held = self._num_unlike = 0
        return True

    def _best_delay(self) -> int:
        said = self._said_between(self._heard_to - SEARCHED, self._heard_to)
        size, num_bins = SEARCHED // COARSE, SEARCHED // 2 // COARSE + 1
        flat_said = _flat(np.fft.rfft(said)[:num_bins])
        flat_heard = _flat(np.fft.rfft(self._heard, SEARCHED)[:num_bins])
        found = np.fft.irfft(flat_said * np.conj(flat_heard), size)[: LONGEST // COARSE + 1]
        energy = np.cumsum(np.concatenate([[0.0], np.fft.irfft(flat_said, size) ** 2]))
        energies = energy[BLOCK // COARSE :] - energy[: -BLOCK // COARSE]
        alike = found / np.sqrt(np.maximum(energies, QUIET * energies.max()) + 1e-9)
        return LONGEST - COARSE * int(np.argmax(alike))

    def _follow(self, delay: int) -> float:
        """How alike it still is there."""
        likeness, gain, found = self._compare(delay)
        if likeness >= ALIKE:
            self._gain += GAIN_MOVES * (gain - self._gain)
        if likeness >= ALIKE_THERE:
            self._delay = found  # clocks drift
        return likeness

    def _compare(self, delay: int) -> tuple[float, float, int]:
        """Likeness, gain and delay at the best one about here."""
        longest = delay + SAME_DELAY
        said = np.fft.rfft(self._said_between(self._heard_to - BLOCK - longest, self._heard_to - delay + SAME_DELAY))
        heard = np.fft.rfft(self._heard, BLOCK + 2 * SAME_DELAY)
        envelope = _envelope(said)
        flat_said, flat_heard = said / envelope, _flat(heard)
        found = np.fft.irfft(flat_said * np.conj(flat_heard))[: 2 * SAME_DELAY + 1]
        best = int(np.argmax(found))
        energy = _energy(flat_said) + 1e-9
        alone = np.fft.irfft(flat_said * np.conj(heard / envelope))[best] / energy
        likeness = found[best] / np.sqrt(energy * _energy(flat_heard) + 1e-9)
        return float(likeness), float(max(0.0, alone)) ** 2, longest - best

    def _is_more(self, *, learns: bool) -> bool:
        """Was heard than the echo and the noise explain."""
        assert self._noise is not None
        assert self._delay is not None
        end = self._heard_to - self._delay + HOP
        said = self._said_between(end - FRAME - (NUM_FRAMES - 1) * HOP, end)
        loudest = (_levels(said[FRAMES]) * RINGING).max(axis=0)
        echo = self._gain * 10 ** (self._shape_db / 10) * loudest
        noise = NOISE_SWINGS * self._noise + 1.0
        if learns:
            self._learn(echo, noise)
        over_db = 10 * np.log10((self._levels + 1e-9) / (echo + SPREAD * echo.sum() + noise))
        return float(np.clip(over_db - MARGIN_DB, 0, BEYOND_DB).mean()) > MORE_DB

    def _learn(self, echo: NDArray[np.float64], noise: NDArray[np.float64]) -> None:
        self._num_learned += 1
        pace = max(self._num_learned**-0.5, SHAPE_SLOWS)
        moves = np.where(self._levels > echo + noise, SHAPE_UP_DB, -SHAPE_DOWN_DB) * pace
        self._shape_db = np.where(echo > noise, np.clip(self._shape_db + moves, -SHAPE_DB, SHAPE_DB), self._shape_db)

    def _said_between(self, begin: int, end: int) -> Pcm32f:
        """Zeros where nothing was said, or is kept."""
        said, at = np.zeros(end - begin, np.float32), begin - (self._said_to - KEPT)
        kept = self._said[max(0, at) : max(0, at + said.size)]
        said[max(0, -at) :][: kept.size] = kept
        return said


def _levels(frames: NDArray[np.float32]) -> NDArray[np.float64]:
    """Energy in each band: [frames, FRAME] -> [frames, bands]."""
    energy: NDArray[np.float64] = np.abs(np.fft.rfft(frames * TAPER)) ** 2
    return np.add.reduceat(energy, EDGES, axis=1)[:, :-1]


def _envelope(spectrum: NDArray[np.complex128]) -> NDArray[np.float64]:
    """In steps, which is cheap."""
    levels = np.abs(spectrum)
    means = np.add.reduceat(levels, np.arange(0, levels.size, FLATTEN)) / FLATTEN
    envelope: NDArray[np.float64] = np.repeat(np.maximum(means, 1e-3 * levels.max() + 1e-9), FLATTEN)[: levels.size]
    return envelope


def _flat(spectrum: NDArray[np.complex128]) -> NDArray[np.complex128]:
    return spectrum / _envelope(spectrum)


def _energy(spectrum: NDArray[np.complex128]) -> float:
    """Of the wave, by Parseval's theorem."""
    return float((np.abs(spectrum) ** 2).sum()) / (spectrum.size - 1)
