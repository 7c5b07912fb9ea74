"""What the call server tells Prometheus."""

from __future__ import annotations

import asyncio

from prometheus_client import Counter, Gauge, Histogram

# Fine around the two promises, 140 ms and 700 ms; the tail up to where a caller has hung up.
_LATENCY_BUCKETS_S = (0.02, 0.05, 0.1, 0.14, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0)

TURN_LATENCY = Histogram(
    "voice_turn_latency_seconds",
    "Last speech sample received to first audible answer sample written",
    buckets=_LATENCY_BUCKETS_S,
)
STAGE = Histogram("voice_stage_seconds", "Share of a turn's latency", ["stage"], buckets=_LATENCY_BUCKETS_S)
TURNS = Counter("voice_turns_total", "Caller turns by outcome", ["outcome"])
CALLS = Counter("voice_calls_total", "Calls by how they ended", ["reason"])
ACTIVE_CALLS = Gauge("voice_calls_active", "Calls under way", multiprocess_mode="livesum")
REVISIONS = Counter(
    "voice_revisions_total", "Answers begun before the turn was over: how far they got, and their use", ["tier", "fate"]
)
REVISION_LEAD = Histogram(
    "voice_revision_lead_seconds",
    "How long before the end of the turn an answer of use was begun",
    ["tier"],
    buckets=(0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0),
)
REVISION_WASTE = Histogram(
    "voice_revision_waste_seconds",
    "How long an answer was worked on that was of no use",
    ["tier"],
    buckets=(0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0),
)
FILLERS = Counter("voice_fillers_total", "Times a caller had to be told that the answer takes longer")
UNDERRUNS = Counter("voice_underruns_total", "Times the agent's audio ran dry within an utterance")
LOOP_LAG = Histogram(
    "voice_loop_lag_seconds",
    "How late the event loop ran what was due: the agent's audio leaves as late",
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
)
RTP_PACKETS = Counter("voice_rtp_packets_total", "Callers' packets over WebRTC by what became of them", ["fate"])

_LAG_EVERY_S = 0.05


async def watch_loop() -> None:
    """Observe the event loop's lag until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due_s = loop.time() + _LAG_EVERY_S
        await asyncio.sleep(_LAG_EVERY_S)
        LOOP_LAG.observe(loop.time() - due_s)
