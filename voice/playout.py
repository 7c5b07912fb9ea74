"""What is played, when, and what of it was heard. Pure: `now` is an argument, the shell sends what `take` gives.

Samples of the agent's audio are counted from the start of the call, on one clock for everything: pacing, word times,
acknowledgements, clearing. Pacing follows a monotonic clock with a bounded lead: up to `lead_s` of audio is sent ahead
of real time, so a stall of the event loop shorter than that is not heard, and a barge-in throws away no more.

    0 ......... heard ......... sent ......... end
                 |               |              |
       acknowledged or     given to the    queued here
       estimated           transport

A word counts as heard once more than half of it was.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from wire.pcm import AUDIO_FRAME_S, Pcm16

MAX_QUEUED_S = 20.0  # above this the synthesiser has to wait; bounds memory and wasted synthesis


@dataclass(frozen=True)
class SpokenWord:
    """`end_char` is where the word ends in the text of the agent's utterance."""

    text: str
    start_sample: int
    end_sample: int
    end_char: int


class Playout:
    def __init__(self, rate_hz: int, lead_s: float) -> None:
        self.rate_hz = rate_hz
        self._lead_samples = round(lead_s * rate_hz)
        self._message_samples = round(AUDIO_FRAME_S * rate_hz)
        self._queue: deque[Pcm16] = deque()
        self._num_queued = 0
        self._words: list[SpokenWord] = []
        self.sent = 0
        self.num_underruns = 0
        self._in_utterance = False
        self._pace = _Clock(rate_hz)  # when samples are due to leave
        self._ear = _Clock(rate_hz)  # when they are heard: the same, until the listener acknowledges
        self._acked = 0

    @property
    def end(self) -> int:
        """Count at which audio pushed next will begin."""
        return self.sent + self._num_queued

    @property
    def is_full(self) -> bool:
        return self._num_queued >= MAX_QUEUED_S * self.rate_hz

    def push(self, pcm: Pcm16) -> None:
        if pcm.size:
            self._queue.append(pcm)
            self._num_queued += pcm.size

    def add_words(self, words: list[SpokenWord]) -> None:
        """Words in the order in which they sound."""
        self._words.extend(words)

    def take(self, now: float, *, more_comes: bool) -> Pcm16 | None:
        """The next message to send at `now`, or None when nothing may leave yet.

        `more_comes`: the utterance is not complete, so a part of a message waits for its rest.
        """
        if not self._has_message(more_comes):
            return None
        if self._pace.position(now) >= self.sent:
            self._restart(now)
        if self.sent >= self._pace.position(now) + self._lead_samples:
            return None
        pcm = self._dequeue(min(self._message_samples, self._num_queued))
        self.sent += pcm.size
        self._in_utterance = more_comes or self._num_queued > 0
        return pcm

    def next_due_s(self, now: float, *, more_comes: bool) -> float | None:
        """Seconds until `take` may give the next message; None while there is none."""
        if not self._has_message(more_comes):
            return None
        ahead = self.sent - self._pace.position(now) - self._lead_samples
        return max(0.0, ahead / self.rate_hz)

    def heard(self, now: float) -> int:
        """Samples the listener has heard, from its last acknowledgement and the clock since."""
        return max(self._acked, min(self.sent, int(self._ear.position(now))))

    def acknowledge(self, sample: int, now: float) -> bool:
        """The listener says it has played up to `sample`. False for a count that was never sent or goes back."""
        if not self._acked <= sample <= self.sent:
            return False
        self._acked = sample
        self._ear.set(sample, now)
        return True

    def is_over(self, now: float) -> bool:
        """All that was queued has been sent and heard."""
        return not self._num_queued and self.heard(now) >= self.sent

    def left_s(self, now: float) -> float:
        """Seconds of audio sent or queued that are still to be heard."""
        return (self.end - self.heard(now)) / self.rate_hz

    def heard_chars(self, now: float, base: int) -> int:
        """Characters heard of the utterance whose audio began at `base`."""
        heard, end_char = self.heard(now), 0
        for word in self._words:
            if word.start_sample >= base and heard > (word.start_sample + word.end_sample) / 2:
                end_char = max(end_char, word.end_char)
        return end_char

    def end_utterance(self) -> None:
        """What was queued was heard to its end: silence from here is no underrun, its words are done with."""
        self._in_utterance = False
        self._words.clear()

    def clear(self, now: float) -> int:
        """Drop everything not yet heard; return the number of queued samples dropped. The clock stands at `sent`."""
        dropped = self._num_queued
        self._queue.clear()
        self._num_queued = 0
        self.end_utterance()
        self._acked = self.sent
        self._pace.set(self.sent, now)
        self._ear.set(self.sent, now)
        return dropped

    def _has_message(self, more_comes: bool) -> bool:
        return self._num_queued >= (self._message_samples if more_comes else 1)

    def _restart(self, now: float) -> None:
        """The listener has run dry; its clock stood still and goes on with the next sample."""
        if self._in_utterance:
            self.num_underruns += 1
        self._pace.set(self.sent, now)
        self._ear.set(self.sent, now)

    def _dequeue(self, num_samples: int) -> Pcm16:
        parts = []
        need = num_samples
        while need:
            head = self._queue.popleft()
            if head.size > need:
                self._queue.appendleft(head[need:])
                head = head[:need]
            parts.append(head)
            need -= head.size
        self._num_queued -= num_samples
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


class _Clock:
    """At `set`'s instant the given sample was about to play; it runs on at the sample rate."""

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self.set(0, 0.0)

    def set(self, sample: int, now: float) -> None:
        self._sample, self._at_s = sample, now

    def position(self, now: float) -> float:
        return self._sample + (now - self._at_s) * self._rate_hz
