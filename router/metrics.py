"""What the router tells Prometheus."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

_BUCKETS_S = (0.005, 0.01, 0.02, 0.05, 0.08, 0.12, 0.18, 0.25, 0.4, 0.7, 1.0, 2.0, 5.0, 10.0, 30.0)

FIRST_BYTE = Histogram(
    "router_first_byte_seconds", "Request received to first byte of the answer sent", ["model"], buckets=_BUCKETS_S
)
REQUEST = Histogram(
    "router_request_seconds", "Request received to last byte of the answer sent", ["model"], buckets=_BUCKETS_S
)
REQUESTS = Counter("router_requests_total", "Requests by how they ended", ["model", "outcome"])
RETRIES = Counter("router_retries_total", "Requests moved to another worker before their first byte", ["model"])
