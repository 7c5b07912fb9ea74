"""What the worker tells Prometheus, under vLLM's names where the meaning is vLLM's, so that its dashboards work.

Source of names: https://docs.vllm.ai/en/latest/design/metrics.html
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

_TTFT_BUCKETS_S = (0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 0.8, 1.5, 3.0, 8.0)
_TPOT_BUCKETS_S = (0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.06, 0.1, 0.2, 0.5)
_TOTAL_BUCKETS_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0, 6.0, 12.0, 30.0, 60.0)
_BY_MODEL = ["model_name"]

TTFT = Histogram("vllm:time_to_first_token_seconds", "Submitted to first token", _BY_MODEL, buckets=_TTFT_BUCKETS_S)
TPOT = Histogram("vllm:inter_token_latency_seconds", "Token to token", _BY_MODEL, buckets=_TPOT_BUCKETS_S)
TOTAL = Histogram("vllm:e2e_request_latency_seconds", "Submitted to ended", _BY_MODEL, buckets=_TOTAL_BUCKETS_S)
RUNNING = Gauge("vllm:num_requests_running", "Requests in the batch", _BY_MODEL)
WAITING = Gauge("vllm:num_requests_waiting", "Requests that wait for a slot or for blocks", _BY_MODEL)
KV_USAGE = Gauge("vllm:kv_cache_usage_perc", "Share of blocks that running requests hold, 0 to 1", _BY_MODEL)
CACHE_QUERIES = Counter("vllm:prefix_cache_queries", "Prompt tokens looked up", _BY_MODEL)
CACHE_HITS = Counter("vllm:prefix_cache_hits", "Prompt tokens found computed", _BY_MODEL)
PROMPT_TOKENS = Counter("vllm:prompt_tokens", "Prompt tokens of started requests", _BY_MODEL)
GENERATION_TOKENS = Counter("vllm:generation_tokens", "Tokens generated", _BY_MODEL)
SUCCESS = Counter("vllm:request_success", "Requests ended, by reason", [*_BY_MODEL, "finished_reason"])
FAILED = Counter("llm_requests_failed", "Requests failed or refused, by error code", [*_BY_MODEL, "code"])
STEP = Histogram("llm_step_seconds", "One engine step", [*_BY_MODEL, "kind"], buckets=_TPOT_BUCKETS_S)
