"""The errors of the client: one class for what a program may want to tell apart, `code` for the rest.

LoxodonError
  UnsendableError               no request can carry what was given; none was sent
  NoAnswerError                 no answer came: connection refused or lost, or it took too long
  ApiError                      the service refused: message, code, status, field, request_id
    InvalidInputError           invalid_input
      ScopeMissingError         scope_error: name a user_id, agent_id or run_id
      TooLargeError             too_large
      PiiRejectedError          pii_rejected: it announces a secret that cannot be cut out
    UnauthenticatedError        unauthenticated
    ForbiddenError              forbidden
    NotFoundError               not_found
    ConflictError               conflict
      IdempotencyMismatchError  idempotency_mismatch
      PreconditionFailedError   precondition_failed: it changed since it was read
    RateLimitedError            rate_limited, too_many_requests: `retry_after_s` says when to come again
    UnavailableError            store_unavailable, unavailable and whatever else is 503; it was tried several times
      OutcomeUnknownError       outcome_unknown: written as a whole or not at all
      DeadlineExceededError     deadline_exceeded: nothing was written
    InternalError               internal_error
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar


class LoxodonError(Exception):
    """All errors of this package."""


class UnsendableError(LoxodonError, ValueError):
    """No request can carry what was given, so none was sent."""


class NoAnswerError(LoxodonError):
    """No answer came. `sent` tells whether the request may have reached the service."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class ApiError(LoxodonError):
    """The service's own sentence is `message`; `field` is the part of the request to blame, None where none is.

    `retry_after_s`: seconds to wait, None where the answer names none. `problem`: the whole answer.
    """

    codes: ClassVar[tuple[str, ...]] = ()

    def __init__(self, status: int, problem: Mapping[str, Any], *, retry_after_s: float | None = None) -> None:
        self.status = status
        self.problem = dict(problem)
        self.code = str(problem.get("code", "http_error"))
        self.message = str(problem.get("detail", f"The answer has status {status}."))
        self.field: str | None = problem.get("field")
        self.request_id: str | None = problem.get("request_id")
        self.retry_after_s = retry_after_s
        super().__init__(status, problem)

    def __str__(self) -> str:
        told = "; ".join(
            f"{name} {value}" for name, value in (("field", self.field), ("request", self.request_id)) if value
        )
        return f"{self.message} ({self.code}, {self.status}{'; ' if told else ''}{told})"


class InvalidInputError(ApiError):
    codes: ClassVar[tuple[str, ...]] = ("invalid_input",)


class ScopeMissingError(InvalidInputError):
    codes: ClassVar[tuple[str, ...]] = ("scope_error",)


class TooLargeError(InvalidInputError):
    codes: ClassVar[tuple[str, ...]] = ("too_large",)


class PiiRejectedError(InvalidInputError):
    codes: ClassVar[tuple[str, ...]] = ("pii_rejected",)


class UnauthenticatedError(ApiError):
    codes: ClassVar[tuple[str, ...]] = ("unauthenticated",)


class ForbiddenError(ApiError):
    codes: ClassVar[tuple[str, ...]] = ("forbidden",)


class NotFoundError(ApiError):
    codes: ClassVar[tuple[str, ...]] = ("not_found",)


class ConflictError(ApiError):
    codes: ClassVar[tuple[str, ...]] = ("conflict",)


class IdempotencyMismatchError(ConflictError):
    codes: ClassVar[tuple[str, ...]] = ("idempotency_mismatch",)


class PreconditionFailedError(ConflictError):
    codes: ClassVar[tuple[str, ...]] = ("precondition_failed",)


class PlaceLostError(ApiError):
    codes: ClassVar[tuple[str, ...]] = ("place_lost",)


class RateLimitedError(ApiError):
    codes: ClassVar[tuple[str, ...]] = ("rate_limited", "too_many_requests")


class UnavailableError(ApiError):
    codes: ClassVar[tuple[str, ...]] = (
        "unavailable",
        "store_unavailable",
        "schema_mismatch",
        "provider_error",
        "embedding_error",
        "llm_error",
    )


class OutcomeUnknownError(UnavailableError):
    codes: ClassVar[tuple[str, ...]] = ("outcome_unknown",)


class DeadlineExceededError(UnavailableError):
    codes: ClassVar[tuple[str, ...]] = ("deadline_exceeded", "request_timeout")


class InternalError(ApiError):
    codes: ClassVar[tuple[str, ...]] = ("internal_error", "service_error")


def _leaves(kind: type[ApiError]) -> list[type[ApiError]]:
    return [kind, *(each for child in kind.__subclasses__() for each in _leaves(child))]


BY_CODE = {code: kind for kind in _leaves(ApiError) for code in kind.codes}
BY_STATUS: dict[int, type[ApiError]] = {
    400: InvalidInputError,
    401: UnauthenticatedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    412: PreconditionFailedError,
    413: TooLargeError,
    422: InvalidInputError,
    429: RateLimitedError,
    500: InternalError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}
"""For codes of a newer service, and for answers of a proxy."""


def error_of(status: int, body: bytes, *, retry_after_s: float | None = None) -> ApiError:
    """The error that an answer means, also where it is not the service's own."""
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        text = body.decode(errors="replace").strip()[:300]
        problem = {"detail": text or f"The answer has status {status} and no text."}
    kind = BY_CODE.get(str(problem.get("code"))) or BY_STATUS.get(status, ApiError)
    return kind(status, problem, retry_after_s=retry_after_s)
