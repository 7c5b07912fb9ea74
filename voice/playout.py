"""What is played, when, and what of it was heard. Pure: `now` is an argument, the shell sends what `take` gives.

Samples of the agent's audio are counted from the start of the call, on one clock for everything: pacing, word times,
acknowledgements, clearing. Pacing follows a monotonic clock with a bounded lead: up to `lead_s` of audio is sent ahead
of real time, so a stall of the event loop shorter than that is not heard, and a barge-in throws away no more. Where the
loop is late by more than half of it the lead grows, up to `max_lead_s`, and shrinks again as that is forgotten.

    0 ......... heard ......... sent ......... end
                 |               |              |
       acknowledged or     given to the    queued here
       estimated           transport

The words of the present utterance are the ledger: each is queued, sent, heard or cleared. A word counts as heard once
more than half of it was.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from wire.pcm import AUDIO_FRAME_S, Pcm16

MAX_QUEUED_S = 20.0  # above this the synthesiser has to wait; bounds memory and wasted synthesis
MAX_LEAD = 2.5  # times the usual one
KEPT_S = 1.0  # of what was sent, to be taken back: more than any lead
MAX_WAY_S = 1.0
MAX_BEHIND_S = 5.0  # that a listener may acknowledge late: one that takes nothing for so long is gone (wire.sockets)
REFILL_S = 0.08  # queued before a voice that fell behind goes on
RAMP_S = 0.01  # in which the voice is lowered or raised: no click
LAG_RELIEF = 0.02  # s/s: how fast a stall of the loop is forgotten
ACKNOWLEDGED_WITHIN_S = 0.04  # the way of an acknowledgement, and the time since
REPORTED_WITHIN_S = 0.08  # what a receiver report leaves open: the listener's jitter buffer
GUESSED_WITHIN_S = 0.2

WordState: TypeAlias = Literal["queued", "sent", "heard", "cleared"]


@dataclass(frozen=True)
class SpokenWord:
    """`end_char` is where the word ends in the text of the agent's utterance."""

    text: str
    start_sample: int
    end_sample: int
    end_char: int


@dataclass(frozen=True)
class Heard:
    """Samples the listener has heard, true to `within_s`."""

    sample: int
    within_s: float


class Playout:
    """`listener_delay_s`: from sending to hearing, where the transport knows it; None where it does not. `way_s`: of an
    acknowledgement, and of what is sent; 0 while it is not known.
    """

    def __init__(self, rate_hz: int, lead_s: float) -> None:
        self.rate_hz = rate_hz
        self.listener_delay_s: float | None = None
        self.way_s = 0.0
        self.max_lead_s = MAX_LEAD * lead_s
        self._usual_lead_s = lead_s
        self._message_samples = round(AUDIO_FRAME_S * rate_hz)
        self._queue: deque[Pcm16] = deque()
        self._num_queued = 0
        self._kept: deque[Pcm16] = deque()  # sent last, up to `sent`
        self._num_kept = 0
        self._words: list[SpokenWord] = []
        self._cleared: list[SpokenWord] = []  # of the utterance that was stopped last
        self.sent = 0
        self.num_underruns = 0
        self.is_paused = False
        self._in_utterance = False
        self._gain = self._wanted_gain = 1.0
        self._pace = _Clock(rate_hz)  # when samples are due to leave
        self._ear = _Clock(rate_hz)  # when they are heard: the same, until the listener acknowledges
        self._acked = 0
        self._has_acked = False
        self._there_and_back_s = 0.0  # from sending to the acknowledgement of it
        self._floor = 0  # heard for certain
        self._due_s: float | None = None  # when the shell was told to come back
        self._lag_s, self._lagged_s = 0.0, 0.0  # how late it came at worst, and when that was

    @property
    def end(self) -> int:
        """Count at which audio pushed next will begin."""
        return self.sent + self._num_queued

    @property
    def is_full(self) -> bool:
        return self._num_queued >= MAX_QUEUED_S * self.rate_hz

    def lead_s(self, now: float) -> float:
        """How far ahead of real time audio is sent at present."""
        return min(self.max_lead_s, max(self._usual_lead_s, 2 * self._usual_lag_s(now)))

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
        self._note_lag(now)
        if not self._has_message(now, more_comes):
            return None
        if self._pace.position(now) >= self.sent:
            self._restart(now)
        if self.sent >= self._pace.position(now) + self.lead_s(now) * self.rate_hz:
            return None
        pcm = self._dequeue(min(self._message_samples, self._num_queued))
        self._keep(pcm)
        self.sent += pcm.size
        self._in_utterance = more_comes or self._num_queued > 0
        return self._shaped(pcm)

    def next_due_s(self, now: float, *, more_comes: bool) -> float | None:
        """Seconds until `take` may give the next message; None while there is none."""
        if not self._has_message(now, more_comes):
            return None
        ahead_s = (self.sent - self._pace.position(now)) / self.rate_hz - self.lead_s(now)
        self._due_s = now + max(0.0, ahead_s)
        return max(0.0, ahead_s)

    def duck(self, gain: float) -> None:
        """How loud everything is that leaves from now on, 1 as it came: a caller speaks over the agent, or no more."""
        self._wanted_gain = gain

    def take_back(self, now: float) -> int:
        """What the listener has not heard is to leave again, because he drops it. Returns where it begins."""
        when_told = self.heard(now + self.way_s)
        sample = max(when_told, self.sent - self._num_kept)
        self._take_back(sample, now)
        self._in_utterance = False
        return sample

    def pause(self) -> None:
        """Nothing leaves until `resume`; what the listener has of it still sounds."""
        self.is_paused = True

    def resume(self, now: float, at_sample: int | None = None) -> None:
        """Go on with the next sample, or with `at_sample`: where the listener stopped, who has dropped the rest.

        Raises: ValueError for a sample that was not sent, or longer ago than `KEPT_S`.
        """
        if at_sample is not None:
            self._take_back(at_sample, now)
        self.is_paused = False
        self._in_utterance = False  # the silence until now is no underrun

    def heard(self, now: float) -> int:
        """Samples the listener has heard."""
        return self.heard_up_to(now).sample

    def heard_up_to(self, now: float) -> Heard:
        """From the listener's last acknowledgement and the clock since; else from the clock and what is known of the
        way to him.
        """
        behind_s = 0.0 if self._has_acked else self.listener_delay_s or 0.0
        sample = max(self._floor, self._acked, min(self.sent, int(self._ear.position(now - behind_s))))
        if self._has_acked:
            return Heard(sample, ACKNOWLEDGED_WITHIN_S)
        return Heard(sample, GUESSED_WITHIN_S if self.listener_delay_s is None else REPORTED_WITHIN_S)

    def acknowledge(self, sample: int, now: float) -> bool:
        """The listener says it has played up to `sample`. False for a count that was never sent or goes back."""
        if not self._acked <= sample <= self.sent:
            return False
        self._acked, self._has_acked = sample, True
        position = self._pace.position(now)
        if sample < position < self.sent:  # neither has run dry
            self._there_and_back_s = min(MAX_WAY_S, (position - sample) / self.rate_hz)
        self._floor = min(self._floor, sample)  # it knows better
        self._ear.set(sample, now - self.way_s)
        return True

    def is_over(self, now: float) -> bool:
        """All that was queued has been sent and heard, or the listener has stopped playing."""
        overdue = self._pace.position(now) - self.sent
        return not self._num_queued and (self.heard(now) >= self.sent or overdue >= MAX_BEHIND_S * self.rate_hz)

    def left_s(self, now: float) -> float:
        """Seconds of audio sent or queued that are still to be heard."""
        return (self.end - self.heard(now)) / self.rate_hz

    def heard_chars(self, now: float, base: int) -> int:
        """Characters heard of the utterance whose audio began at `base`."""
        heard, end_char = self.heard(now), 0
        for word in self._words:
            if word.start_sample >= base and _is_heard(word, heard):
                end_char = max(end_char, word.end_char)
        return end_char

    def ledger(self, now: float) -> list[tuple[SpokenWord, WordState]]:
        """Every word of the present utterance, or of the one that was cleared last, and what became of it."""
        heard = self.heard(now)
        found: list[tuple[SpokenWord, WordState]] = [(word, "cleared") for word in self._cleared]
        for word in self._words:
            unheard: WordState = "sent" if word.end_sample <= self.sent else "queued"
            found.append((word, "heard" if _is_heard(word, heard) else unheard))
        return found

    def end_utterance(self) -> None:
        """What was queued was heard to its end: silence from here is no underrun, its words are done with."""
        self._in_utterance = False
        self._gain = self._wanted_gain = 1.0
        self._words.clear()
        self._cleared.clear()

    def clear(self, now: float) -> int:
        """Drop everything not yet heard; return the number of queued samples dropped. The clock stands at `sent`."""
        dropped = self._num_queued
        heard = self.heard(now)
        cleared = [word for word in self._words if not _is_heard(word, heard)]
        self._queue.clear()
        self._num_queued = 0
        self._kept.clear()
        self._num_kept = 0
        self.end_utterance()
        self._cleared = cleared
        self.is_paused = False
        self._acked = self._floor = self.sent
        self._pace.set(self.sent, now)
        self._ear.set(self.sent, now)
        return dropped

    def _has_message(self, now: float, more_comes: bool) -> bool:
        """A listener who has run dry within an utterance hears one gap, and not one after each message."""
        if self.is_paused or not self._num_queued:
            return False
        is_dry = self._in_utterance and self._pace.position(now) >= self.sent
        least = round(REFILL_S * self.rate_hz) if is_dry else self._message_samples
        return not more_comes or self._num_queued >= least

    def _restart(self, now: float) -> None:
        """The listener has run dry; its clock stood still and goes on with the next sample."""
        if self._in_utterance:
            self.num_underruns += 1
        self._floor = self.heard(now)
        self._pace.set(self.sent, now)
        back_s = self.way_s or self._there_and_back_s / 2
        self._ear.set(self.sent, now + max(0.0, self._there_and_back_s - back_s))

    def _take_back(self, sample: int, now: float) -> None:
        if not self.sent - self._num_kept <= sample <= self.sent:
            raise ValueError(f"sample {sample} is not among the last {self._num_kept} before {self.sent}")
        while self.sent > sample:
            last = self._kept.pop()
            self._num_kept -= last.size
            again = last[-(self.sent - sample) :]
            if again.size < last.size:
                self._kept.append(last[: last.size - again.size])
                self._num_kept += last.size - again.size
            self._queue.appendleft(again)
            self._num_queued += again.size
            self.sent -= again.size
        self._acked, self._floor = min(self._acked, sample), min(self._floor, sample)
        self._pace.set(sample, now)
        self._ear.set(sample, now)

    def _keep(self, pcm: Pcm16) -> None:
        self._kept.append(pcm)
        self._num_kept += pcm.size
        while self._num_kept - self._kept[0].size >= KEPT_S * self.rate_hz:
            self._num_kept -= self._kept.popleft().size

    def _shaped(self, pcm: Pcm16) -> Pcm16:
        if self._gain == self._wanted_gain == 1.0:
            return pcm
        gains = np.full(pcm.size, self._wanted_gain, np.float32)
        ramp = min(pcm.size, round(RAMP_S * self.rate_hz))
        gains[:ramp] = np.linspace(self._gain, self._wanted_gain, ramp, dtype=np.float32)
        self._gain = self._wanted_gain
        return (pcm * gains).astype(np.int16)

    def _note_lag(self, now: float) -> None:
        due_s, self._due_s = self._due_s, None
        if due_s is not None and now - due_s > self._usual_lag_s(now):
            self._lag_s, self._lagged_s = min(now - due_s, self.max_lead_s / 2), now

    def _usual_lag_s(self, now: float) -> float:
        return max(0.0, self._lag_s - LAG_RELIEF * (now - self._lagged_s))

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


def _is_heard(word: SpokenWord, heard: int) -> bool:
    return heard > (word.start_sample + word.end_sample) / 2
