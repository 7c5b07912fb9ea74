"""What a run leaves behind: every call as it was spoken and heard, every turn as it was measured. Plain values.

Times are seconds of one monotonic clock from the start of the run, so calls can be laid side by side. A turn begins
with one utterance of the caller and ends before the next. What could not be measured is None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from load.alignment import word_error_rate
from wire.pcm import Pcm16

MISREPORTED_S = 0.03  # what media and codec explain is less

Placed: TypeAlias = tuple[float, Pcm16]  # when the first sample left or arrived, and what
CallOutcome: TypeAlias = Literal["completed", "refused", "failed", "broken"]  # broken: it had begun
TurnOutcome: TypeAlias = Literal["answered", "missed", "cut_in", "interrupted", "unasked"]


@dataclass(frozen=True)
class Said:
    """One utterance of the caller; `end_s` is when its last speech sample left, which is labelled, not detected."""

    name: str
    text: str
    start_s: float
    end_s: float
    is_barge_in: bool = False  # it was meant to take the turn from the speaking agent
    is_backchannel: bool = False  # it was not meant to


@dataclass
class CallRecord:
    """`heard` is the agent's audio by arrival; `messages` what the server told, as JSON objects."""

    number: int
    scenario: str
    transport: str
    seed: int
    sample_rate_hz: int
    output_sample_rate_hz: int
    scheduled_s: float
    placed_s: float
    ready_s: float | None = None
    ended_s: float | None = None
    outcome: CallOutcome = "completed"
    reason: str = ""
    retry_after_s: float | None = None
    said: list[Said] = field(default_factory=list)
    sent: list[Placed] = field(default_factory=list)
    heard: list[Placed] = field(default_factory=list)
    messages: list[tuple[float, Mapping[str, Any]]] = field(default_factory=list)
    late_s: list[float] = field(default_factory=list)  # of each message the caller sent: how late it left


@dataclass(frozen=True)
class TurnRecord:
    """`latency_s` is the project's turn latency: last speech sample sent to first audible word of the LLM's reply.

    `first_audible_s` counts any speech, fillers too, `first_packet_s` any audio packet, both from the same moment.
    `server_*` is what the server claims for the same turn.
    """

    call: int
    turn: int
    scenario: str
    transport: str
    said: str
    outcome: TurnOutcome
    latency_s: float | None = None
    first_audible_s: float | None = None
    first_packet_s: float | None = None
    reply: str = ""  # text of the answer by the server
    recognised: str = ""  # the answer's audio, by our own recognition
    understood: str | None = None  # what the server says the caller said
    heard: str | None = None  # what the server says was heard of the answer
    heard_word_errors: float | None = None  # of that, against what our own recognition heard of the answer
    gaps_s: tuple[float, ...] = ()  # silences inside the answer where the player ran dry
    num_clicks: int = 0
    lead_s: float | None = None  # the most audio of the answer that lay unplayed: received ahead of real time
    lost_s: float | None = None  # where the answer went on after pauses: what never sounded of what had been sent
    repeated_s: float | None = None  # ... and what sounded twice
    is_broken_off: bool = False  # the server took the rest of the answer back, and the caller had not barged in
    barge_in_stop_s: float | None = None  # caller onset -> last audible sample of the interrupted answer
    duck_s: float | None = None  # caller onset -> that answer stays at least 6 dB softer, or is silent
    stale_s: float = 0.0  # audible audio of an interrupted answer after the server said it was cleared
    server_latency_s: float | None = None
    server_stages_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_misreported(self) -> bool:
        """The server's figure and the caller's differ by more than `MISREPORTED_S`."""
        if self.latency_s is None or self.server_latency_s is None:
            return False
        return abs(self.latency_s - self.server_latency_s) > MISREPORTED_S

    @property
    def understood_word_errors(self) -> float | None:
        """Of the server's transcript, by words of what was said."""
        return None if self.understood is None else word_error_rate(self.said, self.understood)
