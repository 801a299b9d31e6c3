"""Counters and measurements of a process; docs/metrics.md explains each.

Labels have fixed sets of values: routes, kinds of work, models in the settings. Never a workspace, a user or a text.
Metrics read from the database are in service/worker/monitoring.py.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram, Summary, disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call] # a second series for each counter, which nobody reads

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0)
COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500)

# -- requests

HTTP_SECONDS = Histogram(
    "loxodon_http_request_seconds",
    "From the head of a request to the end of its answer",
    ["method", "route"],
    buckets=SECONDS,
)
HTTP_REQUESTS = Counter("loxodon_http_requests_total", "Requests that were answered", ["method", "route", "status"])
HTTP_RUNNING = Gauge("loxodon_http_requests_running", "Requests that came and are not answered yet")
HTTP_WAITING = Gauge("loxodon_http_requests_waiting", "Of those, the ones that wait for a place to run")

METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
OTHER = "other"

# -- the database, as this process sees it

POOL = Gauge("loxodon_pool_connections", "Connections of the pool", ["state"])
POOL_SIZE = Gauge("loxodon_pool_size", "Connections that the pool may have")
POOL_WAITING = Gauge("loxodon_pool_waiting", "Transactions that wait for a connection")
POOL_WAIT = Histogram("loxodon_pool_wait_seconds", "How long a transaction waited for a connection", buckets=SECONDS)
SCOPE_LOCK_WAIT = Histogram(
    "loxodon_scope_lock_seconds",
    "BEGIN of a write with the lock of its scope, the wait for it included",
    buckets=SECONDS,
)
DATABASE_ERRORS = Counter(
    "loxodon_database_errors_total", "Transactions that ended because of the database, by what was wrong", ["reason"]
)
REPLICA_LAG = Gauge(
    "loxodon_replica_lag_seconds", "How far a standby that serves reads is behind; NaN: not used", ["replica"]
)
REPLICA_READS = Counter(
    "loxodon_replica_reads_total", "Transactions of reads that a standby may serve, by what served them", ["target"]
)
REPLICA_FALLBACKS = Counter("loxodon_replica_fallbacks_total", "Reads that no standby served, by why", ["reason"])

# -- models and caches

EMBEDDER_WAITING = Gauge(
    "loxodon_embedder_texts_waiting", "Texts handed to the embedder whose vectors are not made yet"
)
EMBEDDER_BATCH = Histogram(
    "loxodon_embedder_batch_texts", "Texts of one call of the embedder", ["model"], buckets=COUNTS
)
EMBEDDER_SECONDS = Histogram("loxodon_embedder_seconds", "What a call of the embedder took", ["model"], buckets=SECONDS)
EMBEDDER_ERRORS = Counter("loxodon_embedder_errors_total", "Calls of the embedder that failed", ["model"])
MODEL_CALLS = Counter(
    "loxodon_model_calls_total",
    "Calls of the language model, by how they ended",
    ["provider", "model", "task", "outcome"],
)
MODEL_SECONDS = Histogram(
    "loxodon_model_call_seconds",
    "What a call of the language model took, retries included",
    ["provider", "model"],
    buckets=SECONDS,
)
MODEL_TOKENS = Counter("loxodon_model_tokens_total", "As the provider counts them", ["provider", "model", "direction"])
MODEL_COST = Counter("loxodon_model_cost_total", "What the tokens cost by the prices set", ["provider", "model"])
CACHE = Counter("loxodon_cache_lookups_total", "What was looked for in a cache", ["cache", "outcome"])


STAGES = Summary("loxodon_stage_seconds", "Stages that a text passes before it is written", ["stage"])


def request_answered(method: str, route: str, status: int, seconds: float) -> None:
    """Counts and times an answered request. `route`: the template, never the path."""
    known = method if method in METHODS else OTHER
    HTTP_REQUESTS.labels(known, route, str(status)).inc()
    HTTP_SECONDS.labels(known, route).observe(seconds)


def count_look_up(cache: str, *, hits: int = 0, misses: int = 0) -> None:
    """Counts a look-up in a cache. `cache`: embedding, model_answer, scope, working_memory."""
    if hits:
        CACHE.labels(cache, "hit").inc(hits)
    if misses:
        CACHE.labels(cache, "miss").inc(misses)
