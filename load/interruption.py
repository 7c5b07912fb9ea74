"""What the agent does when the caller begins to speak over it: when it lowers its voice, when it is silent. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load.hearing import softer_from
from load.record import CallRecord
from load.told import replies
from load.track import Track, clears_s

BEFORE_S = 1.0  # a pause of the agent's that is shorter has not ended its answer; how loud it spoke is taken from there
CLEARED_S = 1.0  # of the caller's last sample: an agent that clears its answer later does so for something else
AFTER_S = 10.0  # of the caller's last sample; an agent that still goes on then does not stop


@dataclass(frozen=True)
class Interruption:
    """`stale_s`: audible audio of the interrupted answer after the server said it was cleared; None: it did not say.

    `duck_s` and `stop_s` count from the caller's onset. A pause of the agent's own right behind it looks like its end;
    one right before it leaves nothing to tell of `duck_s`.
    """

    start_s: float
    stop_s: float
    duck_s: float | None
    stale_s: float | None

    @property
    def stopped_at_s(self) -> float:
        return self.start_s + self.stop_s


def interruption(call: CallRecord, track: Track, index: int) -> Interruption | None:
    """Of the agent's speech by that utterance. None: the agent was not speaking when it began.

    Speech of the agent that begins while the caller speaks, and before it is cleared, is still what was interrupted
    when the caller barges in or signals that he listens; else it is a new answer, which cuts in. So is what the agent
    says once the server has told the text of another reply.
    """
    said = call.said[index]
    until_s = call.said[index + 1].start_s if index + 1 < len(call.said) else np.inf
    until_s = min(until_s, said.end_s + AFTER_S, track.end_s + BEFORE_S)
    if until_s <= said.start_s:
        return None
    cleared = [at_s for at_s in clears_s(call) if said.start_s <= at_s < min(until_s, said.end_s + CLEARED_S)]
    speaks_over = said.is_barge_in or said.is_backchannel
    before_s = max([said.end_s, *cleared[:1]]) if speaks_over else said.start_s
    anew_s = [reply.from_s for reply in replies(call.messages) if cleared and reply.from_s > cleared[0]]
    before_s = min([before_s, *anew_s])
    old = [heard for heard in track.audible(said.start_s - BEFORE_S, until_s) if heard.start_s < before_s]
    if not old or old[0].start_s >= said.start_s:
        return None
    stop_s = old[-1].end_s - said.start_s
    if stop_s <= 0 and not cleared:  # it had ended by itself
        return None
    stop_s = max(0.0, stop_s)
    before = track.render(said.start_s - BEFORE_S, said.start_s)
    during = track.render(said.start_s, said.start_s + stop_s)
    softer = softer_from(before, during, track.rate_hz)
    stale_s = sum(max(0.0, heard.end_s - max(cleared[0], heard.start_s)) for heard in old) if cleared else None
    return Interruption(
        start_s=said.start_s,
        stop_s=stop_s,
        duck_s=softer / track.rate_hz if softer is not None else None,
        stale_s=stale_s,
    )
