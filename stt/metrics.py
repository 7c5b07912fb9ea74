"""What recognition tells Prometheus."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

_COMPUTE_BUCKETS_S = (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 0.8, 1.5, 3.0)
_AUDIO_BUCKETS_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)

QUEUE_WAIT = Histogram(
    "stt_queue_wait_seconds", "Submitted to started", ["model", "priority"], buckets=_COMPUTE_BUCKETS_S
)
COMPUTE = Histogram("stt_compute_seconds", "One engine step", ["model", "priority"], buckets=_COMPUTE_BUCKETS_S)
AUDIO = Histogram("stt_audio_seconds", "Audio of one engine step", ["model", "priority"], buckets=_AUDIO_BUCKETS_S)
QUEUE_DEPTH = Gauge("stt_queue_depth", "Requests that wait for an instance", ["model"])
REFUSED = Counter("stt_refused_total", "Requests refused for lack of room", ["model", "priority"])
EXPIRED = Counter("stt_expired_total", "Requests dropped because their deadline passed", ["model", "priority"])
CANCELLED = Counter("stt_cancelled_total", "Requests dropped because nobody wants them any more", ["model", "priority"])
FAILED = Counter("stt_failed_total", "Engine steps that raised", ["model"])
REUSED = Counter("stt_speculations_reused_total", "Finals answered by a speculation")
STREAMS = Gauge("stt_streams_active", "Open connections of /v1/listen")
