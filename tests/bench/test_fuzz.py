"""Generated requests: what fits into half a minute of the suite, and what the list of exceptions covers."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench.fuzz import ENVIRONMENT, FuzzCaller, fuzz, read_only_key, warm
from bench.fuzz_exceptions import LISTED, REFUSED, TAKEN, ListedFailure
from bench.target import started
from tests.thorough import THOROUGH, many

SEED = 1


@pytest.mark.timeout(240)
def test_generated_requests_get_what_the_document_says() -> None:
    """The same requests at each run; in CI with every right alone. `make fuzz` sends fifty times as many."""
    with started(env=ENVIRONMENT) as service, ThreadPoolExecutor() as threads:
        warm(service.url)
        callers = [FuzzCaller("every right", service.key, "fuzzing", many(2, 4))]
        if THOROUGH:
            callers.append(FuzzCaller("no key", None, "fuzzing", 1))
            callers.append(FuzzCaller("read-only key", read_only_key(service), "fuzzing", 1))
        runs = list(threads.map(lambda caller: fuzz(service.url, caller, SEED), callers))
    for run in runs:
        assert run.passed, f"{run.caller}\n{run.printed[-10_000:]}"
    assert sum(run.cases for run in runs) > 300


def test_what_is_not_listed_fails() -> None:
    """No exception is so wide that it would hide the refusal of a plain field, or of nothing at all."""
    for detail in ("content: is missing", "importance: must be less than or equal to 1", ""):
        assert not any(each.covers(REFUSED, "POST /v1/memories", detail) for each in LISTED)
    assert not any(each.covers(TAKEN, "POST /v1/memories", "") for each in LISTED)
    for kind in ("ServerError", "UndefinedStatusCode", "JsonSchemaError", "UndefinedContentType"):
        assert kind not in {each.kind for each in LISTED}


def test_an_exception_covers_its_own_operation_only() -> None:
    one = ListedFailure(REFUSED, "GET /v1/x", "validity: give", "why")
    assert one.covers(REFUSED, "GET /v1/x", "validity: give validity or valid_at")
    assert not one.covers(REFUSED, "GET /v1/xy", "validity: give validity")
    assert not one.covers(REFUSED, "GET /v1/x", "the validity: give")
    assert all(each.reason and re.compile(each.detail) for each in LISTED)
