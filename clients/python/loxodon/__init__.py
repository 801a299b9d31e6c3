"""Loxodon's client: memory for AI agents.

    from loxodon import Memory

    memory = Memory()                                    # LOXODON_URL, LOXODON_API_KEY
    memory.add("Prefers tea over coffee in the morning", user_id="alice")
    for hit in memory.search("what does she drink", user_id="alice")["results"]:
        print(hit["memory"], hit["score"])

`AsyncMemory` is the same with await; `loxodon.errors` and `loxodon.types` have the rest.
"""

from loxodon._async import AsyncMemory, AsyncPages
from loxodon._sync import Memory, Pages
from loxodon._wire import __version__
from loxodon.errors import (
    ApiError,
    ConflictError,
    DeadlineExceededError,
    ForbiddenError,
    IdempotencyMismatchError,
    InternalError,
    InvalidInputError,
    LoxodonError,
    NoAnswerError,
    NotFoundError,
    OutcomeUnknownError,
    PiiRejectedError,
    PlaceLostError,
    PreconditionFailedError,
    RateLimitedError,
    ScopeMissingError,
    TooLargeError,
    UnauthenticatedError,
    UnavailableError,
    UnsendableError,
)

__all__ = [
    "ApiError",
    "AsyncMemory",
    "AsyncPages",
    "ConflictError",
    "DeadlineExceededError",
    "ForbiddenError",
    "IdempotencyMismatchError",
    "InternalError",
    "InvalidInputError",
    "LoxodonError",
    "Memory",
    "NoAnswerError",
    "NotFoundError",
    "OutcomeUnknownError",
    "Pages",
    "PiiRejectedError",
    "PlaceLostError",
    "PreconditionFailedError",
    "RateLimitedError",
    "ScopeMissingError",
    "TooLargeError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnsendableError",
    "__version__",
]
