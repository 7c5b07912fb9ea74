"""Which utterance the voice works on next. Pure: `now` is an argument, steps are carried out elsewhere.

The model works in steps that cannot be interrupted: one pass of the encoder or one chunk of the decoder. Before each
the order is decided anew:

1. Utterances that have had no audio yet, by deadline: a long text never delays another caller's first audio by more
   than the step under way.
2. The others by when their audio runs out: first audio + audio produced so far.

Of a connection only the oldest utterance is worked on, and only while fewer than `MAX_UNSENT_CHUNKS` of its audio wait
to be sent: who does not read stalls himself. An utterance whose first audio cannot come in time fails before the work.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from tts_engine.segmenter import Unit
from wire.errors import Overloaded

MAX_UNSENT_CHUNKS = 8  # 3.5 s of audio: hides the scheduler from the client, and is all that one client can hold here
ASSUMED_DEADLINE_S = 1.0  # orders utterances that came without a deadline among those with one
# Where the prediction starts before anything was measured: bench/tts_cpu.py, one core.
_FIRST_ENCODE_S_PER_CHARACTER = 0.0005
_FIRST_DECODE_S = 0.025
_LEARNING_RATE = 0.1  # of the running means


@dataclass
class Utterance:
    """`key` is unique; `arrived_s` is when its first text came."""

    key: int
    connection: int
    arrived_s: float
    deadline_s: float | None = None
    units: deque[Unit] = field(default_factory=deque)
    num_begun: int = 0  # units handed out
    in_unit: bool = False  # a unit is begun and not finished
    ended: bool = False  # no more units come
    first_audio_s: float | None = None
    num_samples: int = 0
    compute_s: float = 0.0

    @property
    def has_work(self) -> bool:
        return self.in_unit or bool(self.units)

    @property
    def is_waiting(self) -> bool:
        return self.first_audio_s is None and self.has_work


@dataclass(frozen=True)
class Step:
    """`unit` is to be begun; None: go on with the one under way."""

    utterance: Utterance
    unit: Unit | None
    index: int


class Schedule:
    def __init__(self, max_waiting: int, sample_rate_hz: int) -> None:
        self._max_waiting = max_waiting
        self._sample_rate_hz = sample_rate_hz
        self._utterances: dict[int, Utterance] = {}  # in the order of their first text
        self._unsent: dict[int, int] = {}  # chunks per connection
        self._encode_s_per_character = _FIRST_ENCODE_S_PER_CHARACTER
        self._decode_s = _FIRST_DECODE_S

    @property
    def num_waiting(self) -> int:
        return sum(u.is_waiting for u in self._utterances.values())

    def open(self, key: int, connection: int, now: float, deadline_s: float | None) -> None:
        assert key not in self._utterances
        self._utterances[key] = Utterance(key, connection, now, deadline_s)

    def set_deadline(self, key: int, deadline_s: float) -> None:
        """Without effect on an utterance that has had audio, or has left the schedule."""
        if (utterance := self._utterances.get(key)) is not None:
            utterance.deadline_s = deadline_s

    def add(self, key: int, unit: Unit) -> None:
        """Without effect on an utterance that has left the schedule.

        Raises: Overloaded when this would be one utterance too many to wait; it leaves the schedule.
        """
        if (utterance := self._utterances.get(key)) is None:
            return
        assert not utterance.ended
        starts_waiting = utterance.first_audio_s is None and not utterance.has_work
        if starts_waiting and (waiting := self.num_waiting) >= self._max_waiting:
            del self._utterances[key]
            first_s = self._decode_s + self._encode_s_per_character * len(unit.text)
            raise Overloaded(f"{waiting} utterances wait for the voice", retry_after_s=waiting * first_s)
        utterance.units.append(unit)

    def end(self, key: int) -> None:
        if (utterance := self._utterances.get(key)) is not None:
            utterance.ended = True

    def remove(self, key: int) -> Utterance | None:
        """Cancelled or failed: no further step of it; the one under way is ignored when it is recorded."""
        return self._utterances.pop(key, None)

    def disconnect(self, connection: int) -> list[Utterance]:
        """The connection is gone; its utterances leave the schedule."""
        self._unsent.pop(connection, None)
        gone = [u for u in self._utterances.values() if u.connection == connection]
        for utterance in gone:
            del self._utterances[utterance.key]
        return gone

    def sent(self, connection: int) -> None:
        """A chunk of this connection has left."""
        self._unsent[connection] -= 1
        if not self._unsent[connection]:
            del self._unsent[connection]

    def next_step(self, now: float) -> Step | None:
        """Marks a unit that is to be begun as begun."""
        ready = [u for u in self._heads() if u.has_work and self._unsent.get(u.connection, 0) < MAX_UNSENT_CHUNKS]
        if not ready:
            return None
        utterance = min(ready, key=self._rank)
        if utterance.in_unit:
            return Step(utterance, None, utterance.num_begun - 1)
        utterance.in_unit = True
        utterance.num_begun += 1
        return Step(utterance, utterance.units.popleft(), utterance.num_begun - 1)

    def record(self, step: Step, now: float, cost_s: float, num_samples: int | None) -> bool:
        """What a step brought; None: nothing, the unit is over.

        False when its utterance is gone or too late: the audio must be dropped.
        """
        utterance = step.utterance
        if step.unit is not None and num_samples is not None:
            characters = max(1, len(step.unit.text))
            self._encode_s_per_character += _LEARNING_RATE * (cost_s / characters - self._encode_s_per_character)
        elif num_samples:
            self._decode_s += _LEARNING_RATE * (cost_s - self._decode_s)
        if utterance.key not in self._utterances:
            return False
        utterance.compute_s += cost_s
        if num_samples is None:
            utterance.in_unit = False
        elif num_samples:
            if utterance.first_audio_s is None:
                if utterance.deadline_s is not None and now > utterance.deadline_s:
                    return False
                utterance.first_audio_s = now
            utterance.num_samples += num_samples
            self._unsent[utterance.connection] = self._unsent.get(utterance.connection, 0) + 1
        return True

    def take_all(self) -> list[Utterance]:
        utterances = list(self._utterances.values())
        self._utterances.clear()
        return utterances

    def take_done(self) -> list[Utterance]:
        """Ended utterances of which everything was produced; they leave the schedule."""
        done = [u for u in self._heads() if u.ended and not u.has_work]
        for utterance in done:
            del self._utterances[utterance.key]
        return done

    def take_late(self, now: float) -> list[Utterance]:
        """Utterances whose first audio cannot come in time any more; they leave the schedule."""
        late = [u for u in self._utterances.values() if self._latest_start_s(u) < now]
        for utterance in late:
            del self._utterances[utterance.key]
        return late

    def wait_s(self, now: float) -> float | None:
        """How long nothing needs to be decided unless something changes; None: for ever."""
        soonest = min((self._latest_start_s(u) for u in self._utterances.values()), default=math.inf)
        return None if soonest == math.inf else max(0.0, soonest - now)

    def _heads(self) -> list[Utterance]:
        """The oldest utterance of each connection."""
        heads: dict[int, Utterance] = {}
        for utterance in self._utterances.values():
            heads.setdefault(utterance.connection, utterance)
        return list(heads.values())

    def _latest_start_s(self, utterance: Utterance) -> float:
        if utterance.deadline_s is None or utterance.first_audio_s is not None:
            return math.inf
        if utterance.ended and not utterance.has_work:
            return math.inf  # nothing speakable: done, not late
        cost_s = self._decode_s
        if not utterance.in_unit and utterance.units:
            cost_s += self._encode_s_per_character * len(utterance.units[0].text)
        return utterance.deadline_s - cost_s

    def _rank(self, utterance: Utterance) -> tuple[bool, float]:
        if utterance.first_audio_s is None:
            assumed_s = utterance.arrived_s + ASSUMED_DEADLINE_S
            return False, assumed_s if utterance.deadline_s is None else utterance.deadline_s
        return True, utterance.first_audio_s + utterance.num_samples / self._sample_rate_hz
