"""How late packets come, behind the fastest of the last seconds, which follows drift and new routes. Pure."""

from __future__ import annotations

import math

MIN_TARGET_S = 0.03  # 10 ms behind the next packet: neighbours that swap are no loss
MAX_TARGET_S = 0.12
STALE_S = 1.0  # what was said so long ago is too old to answer
BACKLOG_SPEED = 2.0  # of real time, at least, at which comes what has been held up somewhere


class Lateness:
    """`observe` each packet that tells its time; `missed` when one came that was waited too short for."""

    WINDOW_S = 2.0  # twice this is remembered of the fastest
    BUCKET_S = 0.005
    NUM_BUCKETS = 32
    QUANTILE = 0.95  # of packets, that a hole is waited for
    MEMORY = 0.985  # of a packet in the next one's eyes: a spike is forgotten within 4 s of 20 ms packets
    RELIEF = 0.02  # s/s: how fast what was waited too short for is forgotten

    def __init__(self) -> None:
        self.is_stale = False  # the packet seen last
        self._fastest = [math.inf, math.inf]  # of the present window, and of the one before
        self._window_ends_s = -math.inf
        self._was_late = False
        self._weights = [0.0] * self.NUM_BUCKETS
        self._weight = 1.0
        self._sent_s, self._now = 0.0, 0.0  # of the packet seen last
        self._missed_s, self._missed_at_s = 0.0, 0.0

    @property
    def base_s(self) -> float:
        """Our clock less the sender's, of the fastest packet."""
        return min(self._fastest)

    @property
    def target_s(self) -> float:
        missed_s = self._missed_s - self.RELIEF * (self._now - self._missed_at_s)
        return min(MAX_TARGET_S, max(MIN_TARGET_S, self._usual_s(), missed_s))

    def observe(self, sent_s: float, now: float) -> float:
        """A packet of the sender's time `sent_s` has come; returns how late it is."""
        behind_s = now - sent_s
        if self._has_moved(behind_s, sent_s, now):
            self._fastest = [behind_s, behind_s]
        if now >= self._window_ends_s:
            self._fastest = [math.inf, self._fastest[0]]
            self._window_ends_s = now + self.WINDOW_S
        self._fastest[0] = min(self._fastest[0], behind_s)
        late_s = behind_s - self.base_s
        self.is_stale = late_s > STALE_S
        self._weight /= self.MEMORY
        self._weights[min(int(late_s / self.BUCKET_S), self.NUM_BUCKETS - 1)] += self._weight
        if self._weight > 1e100:
            self._weights = [weight / self._weight for weight in self._weights]
            self._weight = 1.0
        self._sent_s, self._now = sent_s, now
        return late_s

    def missed(self, late_s: float, now: float) -> None:
        """One came after it was given up."""
        if late_s <= STALE_S:
            self._missed_s, self._missed_at_s = max(late_s, self.target_s), now

    def _has_moved(self, behind_s: float, sent_s: float, now: float) -> bool:
        """Whether packets that are too late come one by one: no backlog, but the way or the clock they have now."""
        was_late, self._was_late = self._was_late, behind_s - self.base_s > STALE_S
        passed_s = sent_s - self._sent_s
        return was_late and self._was_late and 0 < passed_s <= BACKLOG_SPEED * (now - self._now)

    def _usual_s(self) -> float:
        enough = self.QUANTILE * sum(self._weights)
        passed = 0.0
        for index, weight in enumerate(self._weights):
            passed += weight
            if passed >= enough:
                return (index + 1) * self.BUCKET_S
        return MAX_TARGET_S
