"""How do new rows of several tables reach the database in one round trip?

A store writes into six tables. One INSERT each costs a round trip and a compilation each, which was a third of a
store's time; as parts of one statement they cost one. Foreign keys are checked when the statement ends, so the
parts' order does not matter. The text is kept per shape: tables, columns and number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

from sqlalchemy import Dialect

from service.db.engine import Session, driver
from service.db.tables import Table

Convert = Callable[[Any], Any]
Shape = tuple[tuple[str, tuple[str, ...], int, str], ...]

FEW = 2
"""More rows of one table go as a batch of their own: a text per number of rows would crowd the cache."""


@dataclass(frozen=True, slots=True)
class Rows:
    """New rows of one table, by column name; all with the same columns. Columns left out get the table's default.
    `clash`: the ON CONFLICT clause, a fixed text."""

    table: type[Table]
    values: Sequence[Mapping[str, Any]]
    clash: str = ""


class Waiting:
    """Rows of one transaction that go with later ones, in one statement: nothing that is read before may need them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._groups: list[Rows] = []

    def add(self, *groups: Rows) -> None:
        self._groups.extend(groups)

    async def flush(self) -> None:
        """Writes what waits."""
        groups, self._groups = self._groups, []
        await insert(self._session, *groups)


async def insert(session: Session, *groups: Rows) -> None:
    """Inserts all of them in the order given: neighbours of few rows in one statement, many rows table by table."""
    filled = [group for group in groups if group.values]
    if not filled:
        return
    connection = await driver(session)
    for few, run in groupby(filled, key=lambda group: len(group.values) <= FEW):
        together = list(run)
        converted = [_converted(group, session.dialect) for group in together]
        if few:
            shape = tuple(_shape(each, len(each.values)) for each in together)
            await connection.fetch(_statement(shape), *(value for rows in converted for row in rows for value in row))
            continue
        for group, rows in zip(together, converted, strict=True):
            one = _statement((_shape(group, 1),))
            await connection.executemany(one, rows)


def _shape(group: Rows, count: int) -> tuple[str, tuple[str, ...], int, str]:
    return group.table.__tablename__, tuple(group.values[0]), count, group.clash


@lru_cache(maxsize=256)
def _statement(shape: Shape) -> str:
    parts, at = [], 0
    for table, columns, count, clash in shape:
        rows = []
        for _ in range(count):
            rows.append("(" + ", ".join(f"${at + place}" for place in range(1, len(columns) + 1)) + ")")
            at += len(columns)
        names = ", ".join(f'"{column}"' for column in columns)
        part = f"INSERT INTO {table} ({names}) VALUES {', '.join(rows)}"  # noqa: S608 - names of our own tables
        parts.append(f"{part} {clash}" if clash else part)
    first, rest = parts[0], parts[1:]
    beside = ", ".join(f"part_{number} AS ({part})" for number, part in enumerate(rest))
    return f"WITH {beside} {first}" if beside else first


def _converted(group: Rows, dialect: Dialect) -> list[list[Any]]:
    """The values as the driver takes them, column by column."""
    columns = list(group.values[0])
    converts = [_convert(group.table, column, dialect) for column in columns]
    return [
        [convert(row[column]) if convert else row[column] for column, convert in zip(columns, converts, strict=True)]
        for row in group.values
    ]


@lru_cache(maxsize=1024)
def _convert(table: type[Table], column: str, dialect: Dialect) -> Convert | None:
    """What the column's type does to a value on its way to the driver, as in any statement of SQLAlchemy's."""
    return table.__table__.c[column].type.dialect_impl(dialect).bind_processor(dialect)
