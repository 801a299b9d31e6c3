"""How does a statement of fixed text reach the driver without a detour?

On the hot path most of a statement's time in our process was SQLAlchemy's: keys for its caches, contexts, a greenlet,
result objects; 0.3 ms each time, three times what the driver needs. Here a TextClause is compiled once and then goes
straight to asyncpg: parameters as their types say, rows as the driver gives them (so no `.columns()`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import Dialect, TextClause

from service.db.engine import Session, driver

Parameter = tuple[str, Callable[[Any], Any] | None]


class Row(asyncpg.Record):  # type: ignore[misc]
    """A row with its columns as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


async def fetch(session: Session, statement: TextClause, values: Mapping[str, Any]) -> list[Any]:
    """All rows, each a Row; none for a statement that returns nothing."""
    text, arguments = _prepared(session, statement, values)
    found: list[Any] = await (await driver(session)).fetch(text, *arguments, record_class=Row)
    return found


async def first(session: Session, statement: TextClause, values: Mapping[str, Any]) -> Any | None:
    """The first row, None when there is none."""
    rows = await fetch(session, statement, values)
    return rows[0] if rows else None


async def many(session: Session, statement: TextClause, values: Sequence[Mapping[str, Any]]) -> None:
    """Runs it once for each, in one go."""
    arguments = [_prepared(session, statement, each)[1] for each in values]
    await (await driver(session)).executemany(compiled(statement, session.dialect)[0], arguments)


def _prepared(session: Session, statement: TextClause, values: Mapping[str, Any]) -> tuple[str, list[Any]]:
    text, parameters = compiled(statement, session.dialect)
    return text, [convert(values[name]) if convert else values[name] for name, convert in parameters]


@lru_cache(maxsize=512)
def compiled(statement: TextClause, dialect: Dialect) -> tuple[str, tuple[Parameter, ...]]:
    """The text with $1, $2 …, and for each of them the name of its value and what its type does to it."""
    made = statement.compile(dialect=dialect)
    kinds = {name: bound.type.dialect_impl(dialect).bind_processor(dialect) for name, bound in made.binds.items()}
    names = made.positiontup or ()
    return str(made), tuple((name, kinds[name]) for name in names)
