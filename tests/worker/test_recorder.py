"""How claimed jobs end: retried when, dead when, and with which message."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest

from service.domain.errors import EmbeddingError, InvalidInput, LockedOut, StoreUnavailable
from service.domain.job import Job
from service.worker import recorder

BACKOFF_S = 2.0


def job(attempts: int, max_attempts: int = 3) -> Job:
    return Job(uuid4(), uuid4(), "enrich", None, {}, attempts, max_attempts, "w")


@pytest.mark.parametrize(
    ("error", "attempts", "alone", "state", "delay_s"),
    [
        (StoreUnavailable("x"), 1, True, "ready", 2),
        (StoreUnavailable("x"), 2, True, "ready", 4),
        (StoreUnavailable("x"), 3, True, "dead", 0),
        (EmbeddingError("x"), 1, False, "ready", 2),
        (InvalidInput("x"), 1, True, "dead", 0),
        (InvalidInput("x"), 1, False, "ready", 2),
        (InvalidInput("x"), 3, False, "dead", 0),
        (RuntimeError("x"), 1, True, "ready", 2),
        (TimeoutError(), 2, True, "ready", 4),
    ],
)
def test_failed(error: Exception, attempts: int, alone: bool, state: str, delay_s: float) -> None:
    ending = recorder.ending_of_failure(job(attempts), error, alone=alone, backoff_s=BACKOFF_S)
    assert (ending.state, ending.delay_s, ending.counted) == (state, delay_s, True)


def test_who_was_locked_out_loses_no_attempt() -> None:
    ending = recorder.ending_of_failure(job(3), LockedOut("x", retry_after_s=1), alone=True, backoff_s=BACKOFF_S)
    assert (ending.state, ending.delay_s, ending.counted) == ("ready", 1, False)


def test_the_pause_has_an_end() -> None:
    ending = recorder.ending_of_failure(job(40, 99), StoreUnavailable("x"), alone=True, backoff_s=BACKOFF_S)
    assert ending.delay_s == recorder.MAX_BACKOFF_S


def test_nothing_is_quoted_from_errors_that_are_not_ours() -> None:
    def fail() -> None:
        raise ValueError("the text of a memory")

    try:
        fail()
    except ValueError as exc:
        said = recorder.describe(exc)
    assert re.fullmatch(r"ValueError at test_recorder.py:\d+ fail", said)
    assert "memory" not in said
    assert recorder.describe(InvalidInput("Too long.")) == "invalid_input: Too long."
