"""What does a worker count? Labels are names of work, never a workspace or a user (B29)."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

JOBS_DONE = Counter("jobs_done_total", "Attempts that ended, by kind of work and how", ["kind", "outcome"])
JOB_WAIT = Histogram(
    "job_wait_seconds",
    "From the moment a job was due to its claim",
    ["kind"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 2, 5, 15, 60, 300, 1800),
)
JOB_RUN = Histogram(
    "job_run_seconds", "How long a run took", ["kind"], buckets=(0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 20, 60, 300)
)
