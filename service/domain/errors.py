"""Errors of the service.

No HTTP status here: http/errors.py maps a class to one. `detail` is a sentence for the caller; it never holds memory
text, SQL or a secret.
"""

from __future__ import annotations

from typing import Self


class ServiceError(Exception):
    """Base of every error of ours. `code` is stable and for machines. The job loop reads `retryable`, and `pauses`: the
    job waits for `retry_after_s` and loses no attempt."""

    code = "service_error"
    retryable = False
    pauses = False

    def __init__(self, detail: str, *, field: str | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.field = field
        self.retry_after_s = retry_after_s


class InvalidInput(ServiceError):
    """The caller sent something that cannot be used; `field` names it."""

    code = "invalid_input"


class ScopeMissing(InvalidInput):
    code = "scope_error"

    def __init__(self, *, field: str = "user_id") -> None:
        super().__init__("At least one of user_id, agent_id, or run_id must be provided.", field=field)


class TooLarge(InvalidInput):
    """Content beyond a hard limit."""

    code = "too_large"


class BodyTooLarge(TooLarge):
    """The body of the request is too large: the code of TooLarge with a different status."""


class PiiRejected(InvalidInput):
    """A secret was announced that cannot be cut out."""

    code = "pii_rejected"


class Unauthenticated(ServiceError):
    """No key, or an unknown, expired or revoked one."""

    code = "unauthenticated"


class Forbidden(ServiceError):
    code = "forbidden"


class NotFound(ServiceError):
    """There is no such row in the caller's workspace."""

    code = "not_found"

    @classmethod
    def of(cls, record: str, field: str = "id") -> Self:
        return cls(f"There is no {record} with this id.", field=field)


class Conflict(ServiceError):
    code = "conflict"


class IdempotencyMismatch(Conflict):
    code = "idempotency_mismatch"


class PlaceLost(ServiceError):
    """The feed cannot be continued from there."""

    code = "place_lost"


class PreconditionFailed(ServiceError):
    """If-Match names another version."""

    code = "precondition_failed"


class TooManyRequests(ServiceError):
    """Too many requests of this workspace are waiting."""

    code = "too_many_requests"
    retryable = True


class RateLimited(TooManyRequests):
    """A budget is used up, or too many keys were wrong."""

    code = "rate_limited"


class RequestTimeout(ServiceError):
    """The body came too slowly."""

    code = "request_timeout"
    retryable = True


class Unavailable(ServiceError):
    code = "unavailable"
    retryable = True


class StoreUnavailable(Unavailable):
    """Postgres cannot be reached, or is overloaded."""

    code = "store_unavailable"


class LockedOut(StoreUnavailable):
    """A lock was not free in time, or the database broke a deadlock. That is not the fault of the work itself, so a job
    is retried however often it happens."""

    pauses = True


class Misconfigured(StoreUnavailable):
    """The database cannot be used as the settings say, however long one waits."""


class SchemaMismatch(Misconfigured):
    """The schema does not fit the code."""

    code = "schema_mismatch"


class OutcomeUnknown(Unavailable):
    """The connection was lost during COMMIT."""

    code = "outcome_unknown"


class DeadlineExceeded(Unavailable):
    code = "deadline_exceeded"


class ProviderError(Unavailable):
    code = "provider_error"


class EmbeddingError(ProviderError):
    code = "embedding_error"


class LlmError(ProviderError):
    """A call of the language model failed. `tokens`: how many it used, of prompt and answer; None if unknown, as after
    a time-out, which may have to be paid for. `warning`: the beginning of the warning if a request does without the
    model. `provider_message`: the provider's message, without keys. It may quote the prompt, so no log or job contains
    it."""

    code = "llm_error"
    warning = "llm_unavailable"
    tokens: tuple[int, int] | None = (0, 0)
    provider_message = ""

    def as_warning(self, consequence: str) -> str:
        """The warning for a caller whose request does without the model."""
        return f"{self.warning}: {' '.join(filter(None, (self.detail, self.provider_message, consequence)))}"


class PromptTooLong(LlmError):
    """The prompt is too long for the model; a shorter one would fit."""

    retryable = False


class AnswerCut(LlmError):
    """The answer is too long for the model; the answer about a part would fit."""


class UnusableAnswer(LlmError):
    """The model's answer cannot be used. Asking again costs as much and seldom helps."""


class ModelBudgetSpent(LlmError):
    """The day's budget for the model is spent, and nothing was sent. `retry_after_s`: until the next day begins, in
    UTC."""

    code = "model_budget"
    warning = "model_budget"
    pauses = True


class RerankError(ProviderError):
    code = "rerank_error"
