"""What the voice tells Prometheus."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

TTFA = Histogram(
    "tts_ttfa_seconds",
    "First text of an utterance submitted to its first audible audio sent",
    buckets=(0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.14, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0),  # fine below the promised 140 ms
)
RTF = Histogram(
    "tts_rtf",
    "Compute time over audio duration, per utterance",
    buckets=(0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0),
)
WAITING = Gauge("tts_waiting_utterances", "Utterances with text and no audio yet")
CONNECTIONS = Gauge("tts_connections", "Connections and requests under way")
UTTERANCES = Counter("tts_utterances_total", "Utterances by how they ended", ["outcome"])
