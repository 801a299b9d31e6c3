"""What becomes of a job whose attempt failed, and what may be written down about it?"""

from __future__ import annotations

import traceback

from service.domain.job import Ending, Job
from service.errors import ServiceError

MAX_BACKOFF_S = 600.0


def failed(job: Job, error: Exception, *, alone: bool, backoff_s: float) -> Ending:
    """Tried again after `backoff_s` doubled with each attempt, or dead: after the last one, or when none can help.

    Of an error only `retryable` is read; one that does not say is retried. A job that failed in company (`alone` is
    false) is tried alone first: nobody knows whose fault it was.
    """
    hopeless = alone and not getattr(error, "retryable", True)
    if hopeless or job.is_last_attempt:
        return Ending(job, "dead", error=describe(error))
    delay_s = min(MAX_BACKOFF_S, backoff_s * 2 ** (job.attempts - 1))
    return Ending(job, "ready", delay_s=delay_s, error=describe(error))


def describe(error: BaseException) -> str:
    """Our own errors in their words; of others class and place only, because their message may quote a memory."""
    if isinstance(error, ServiceError):
        return f"{error.code}: {error.detail}"
    frames = traceback.extract_tb(error.__traceback__)[-1:]
    return " ".join([type(error).__name__, *(f"at {frame.name}:{frame.lineno}" for frame in frames)])
