"""How long statements take, by the function that sends them.

The name is found on the stack, a few frames up, so that statements need no explicit names. With tracing on, each is
also a span.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

from sqlalchemy.engine import CursorResult
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.base import Executable

from service.observability import tracing
from service.observability.metrics import OTHER, STATEMENTS

SERVICE = Path(__file__).parents[1]
STATEMENTS_IN = frozenset({"statements", "postgres", "queue"})
"""Folders whose functions send statements."""

SENDERS = frozenset({"direct.py", "engine.py", "measured.py"})
"""Files that send statements for others."""

_names: dict[int, tuple[str | None, CodeType]] = {}
"""Names by the id of a code object, which is kept so that its id is not reused."""


class Timed:
    """Times a statement. `name`: instead of the caller's, as for BEGIN; `otherwise`: if the caller is in none of these
    folders."""

    __slots__ = ("_began", "_name", "_span")

    def __init__(self, name: str | None = None, *, otherwise: str = OTHER) -> None:
        self._name = name or caller(otherwise)

    def __enter__(self) -> None:
        self._span = tracing.begin_statement(self._name) if tracing.is_on() else None
        self._began = time.perf_counter()

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        STATEMENTS.add(self._name, time.perf_counter() - self._began)
        if self._span is not None:
            tracing.end(self._span, error)


class TimedConnection(AsyncConnection):
    """A connection whose statements are timed."""

    __slots__ = ()

    async def execute(
        self, statement: Executable, parameters: Any = None, *, execution_options: Any = None
    ) -> CursorResult[Any]:
        with Timed():
            return await super().execute(statement, parameters, execution_options=execution_options)


def caller(otherwise: str = OTHER) -> str:
    """The nearest function on the stack that sends statements: "queue.queue.claim"."""
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        known = _names.get(id(code))
        if known is None:
            known = _names[id(code)] = (_name_of(code), code)
        if known[0] is not None:
            return known[0]
        frame = frame.f_back  # type: ignore[assignment]
    return otherwise


def _name_of(code: CodeType) -> str | None:
    file = Path(code.co_filename)
    if not file.is_relative_to(SERVICE) or file.name in SENDERS or code.co_name.startswith("<"):
        return None
    parts = file.relative_to(SERVICE).with_suffix("").parts
    if STATEMENTS_IN.isdisjoint(parts):
        return None
    return ".".join((*(part for part in parts if part != "statements"), code.co_name.lstrip("_")))
