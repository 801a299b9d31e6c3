"""Retries of failed provider calls, with exponential back-off inside a deadline.

3 retries, delay = base * 2^attempt (1, 2, 4 s), for rate limits and, by a setting, for time-outs, broken connections
and 5xx. A `Retry-After` replaces the computed delay. The caller's deadline bounds attempts and waits together: a wait
that would not fit is not begun, the failure is raised at once.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")


class FailureReason(StrEnum):
    """Why a call failed; the values appear in the error's detail."""

    RATE_LIMIT = "rate limit"
    QUOTA = "quota used up"
    TIMEOUT = "time-out"
    UNREACHABLE = "connection failed"
    SERVER = "server error"
    UNREADABLE = "unreadable answer"
    UNAUTHORISED = "key refused"
    REFUSED = "request refused"
    FILTERED = "request filtered"
    TOO_LONG = "request too long"


LASTING = frozenset({FailureReason.REFUSED, FailureReason.TOO_LONG})
"""Failures that the same request would meet again."""

UNTIL_CHANGED = frozenset({FailureReason.REFUSED, FailureReason.UNAUTHORISED, FailureReason.QUOTA})
"""Failures that persist until somebody changes a key, a model or a limit."""

TRANSIENT = frozenset(
    {FailureReason.TIMEOUT, FailureReason.UNREACHABLE, FailureReason.SERVER, FailureReason.UNREADABLE}
)


class CallFailed(Exception):
    """One call did not succeed. As text it says nothing of request or answer, so that it may be logged.

    `parameter`: the request field that the server named as the culprit, if it named one. `message`: the server's own
    sentence, which may quote the request: it is for the caller alone.
    """

    def __init__(
        self,
        reason: FailureReason,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        parameter: str | None = None,
        message: str = "",
    ) -> None:
        super().__init__(reason if status is None else f"{reason} ({status})")
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.parameter = parameter
        self.message = message


def delay_s(failed: CallFailed, attempt: int, base_delay_s: float) -> float | None:
    """Seconds to wait after the failure of attempt 0, 1, ...; None when it should not be retried."""
    if failed.reason is not FailureReason.RATE_LIMIT and failed.reason not in TRANSIENT:
        return None
    return base_delay_s * 2**attempt if failed.retry_after_s is None else failed.retry_after_s


async def run(call: Callable[[], Awaitable[T]], *, retries: int, base_delay_s: float, deadline_s: float) -> T:
    """The result of `call`, tried until it succeeds, has failed after `retries` more attempts, or `deadline_s` is over.

    Raises the last CallFailed, or one with FailureReason.TIMEOUT when the deadline cut an attempt off.
    """
    try:
        async with asyncio.timeout(deadline_s) as limit:
            for attempt in itertools.count():
                try:
                    return await call()
                except CallFailed as failed:
                    wait_s = delay_s(failed, attempt, base_delay_s) if attempt < retries else None
                    ends_at = limit.when()
                    if wait_s is None or (ends_at and asyncio.get_running_loop().time() + wait_s >= ends_at):
                        raise
                await asyncio.sleep(wait_s)
    except TimeoutError as exc:
        raise CallFailed(FailureReason.TIMEOUT) from exc
    raise AssertionError("the last attempt returns or raises")


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait according to the server, >= 0; None when the header is missing or unreadable.

    `retry-after-ms` is OpenAI's and Azure's finer header; `Retry-After` holds seconds or a date (RFC 9110 10.2.3).
    """
    millis = _number(headers.get("retry-after-ms"))
    if millis is not None:
        return millis / 1_000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        return max(0.0, (parsedate_to_datetime(value) - now).total_seconds())
    except (ValueError, TypeError):  # no date, or one without a zone
        return None


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else -1.0
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
