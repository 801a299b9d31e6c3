"""Loggable facts about an unexpected error: its class, its location in the service, and the database's codes.

Never its message, which may quote a memory.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from service.domain.errors import ServiceError

SERVICE = Path(__file__).parents[1]
MOST_FRAMES = 12
"""The number of innermost frames that are kept; those of the framework around them say nothing."""

DIAGNOSTICS = ("sqlstate", "schema_name", "table_name", "column_name", "constraint_name")
"""The fields of a database error that quote no value."""


def is_unexpected(error: BaseException) -> bool:
    """Whether an error is neither one of ours nor a time-out."""
    return not isinstance(error, ServiceError | TimeoutError)


def frames(error: BaseException) -> list[str]:
    """The service's own frames of where it was raised, outermost first: "queue/statements/queue.py:131 claim"."""
    own = []
    for frame in traceback.extract_tb(error.__traceback__, limit=-200):
        file = Path(frame.filename)
        if file.is_relative_to(SERVICE):
            own.append(f"{file.relative_to(SERVICE)}:{frame.lineno} {frame.name}")
    return own[-MOST_FRAMES:]


def classes(error: BaseException) -> str:
    """The classes of an error and its causes: "ProgrammingError < FeatureNotSupportedError"."""
    names = [type(each).__name__ for each in _chain(error)]
    return " < ".join(dict.fromkeys(names))


def details(error: BaseException) -> dict[str, str]:
    """The database's details of an error; empty for other errors."""
    for each in _chain(error):
        diagnostics = {name: value for name in DIAGNOSTICS if isinstance(value := getattr(each, name, None), str)}
        if diagnostics:
            return diagnostics
    return {}


def locate(error: BaseException) -> str:
    """The innermost frame of the service's own code, or of any code if there is none."""
    if own := frames(error):
        return own[-1]
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return "".join(f"{Path(summary.filename).name}:{summary.lineno} {summary.name}" for summary in last) or "unknown"


def _chain(error: BaseException) -> list[BaseException]:
    """The error and what caused it; SQLAlchemy keeps the driver's error as `orig`."""
    errors: list[BaseException] = []
    while error is not None and error not in errors and len(errors) < 10:
        errors.append(error)
        cause = getattr(error, "orig", None) or error.__cause__
        if not isinstance(cause, BaseException):
            break
        error = cause
    return errors
