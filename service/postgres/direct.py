"""Statements of fixed text, straight to the driver.

On the hot path most of a statement's time in this process was SQLAlchemy's (cache keys, contexts, a greenlet, result
objects): 0.3 ms each, three times what the driver needs. Here a TextClause is compiled once and then handed to asyncpg
with its parameters converted by their types. Rows come as the driver gives them, so `.columns()` has no effect.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import lru_cache
from itertools import groupby, starmap
from operator import attrgetter
from typing import Any, Final, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, Dialect, Select, TextClause, tuple_
from sqlalchemy.sql.base import Executable

from service.domain import sizes
from service.postgres.engine import Session, driver, is_citus

T = TypeVar("T")

Parameter = tuple[str, Callable[[Any], Any] | None]


def reader(kind: Callable[..., T], /, **special: Callable[[Any], Any]) -> Callable[[Any], T]:
    """Makes values of a dataclass out of rows: each field is what `special` makes of the row, else the column of its
    name."""
    names = [field.name for field in fields(kind) if field.name not in special]  # type: ignore[arg-type]
    read = attrgetter(*names)  # of several names, so it returns a tuple
    return lambda row: kind(
        **dict(zip(names, read(row), strict=True)), **{name: make(row) for name, make in special.items()}
    )


DriverRow = Any
"""A row with its columns as attributes."""


async def fetch(session: Session, statement: TextClause, values: Mapping[str, Any]) -> list[Any]:
    """All rows, each a DriverRow; none for a statement that returns nothing."""
    records = await _records(session, statement, values)
    return list(map(_name_columns(tuple(records[0].keys())), records)) if records else []


async def columns(session: Session, statement: TextClause, values: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """All rows by columns, which costs nothing per row; empty without a row."""
    records = await _records(session, statement, values)
    return dict(zip(records[0].keys(), zip(*records, strict=True), strict=True)) if records else {}


async def first(session: Session, statement: TextClause, values: Mapping[str, Any]) -> Any | None:
    """The first row, None when there is none."""
    rows = await fetch(session, statement, values)
    return rows[0] if rows else None


PIECE: Final = 32
"""Rows that are read at once of a page: one may have a megabyte."""


async def page(
    session: Session, statement: Executable, values: Mapping[str, Any] | None, make: Callable[[Any], T]
) -> list[T]:
    """The results of `make` for the rows, in order: read in pieces until they exceed a page of an answer
    (sizes.PAGE_BYTES). The other rows stay on the server."""
    values_made: list[T] = []
    size = 0
    filled = session.fill(values) if values is not None else None
    rows = await session.stream(statement, filled, execution_options={"yield_per": PIECE})
    async for piece in rows.partitions(PIECE):
        made = list(map(make, piece))
        values_made += made
        size += sizes.weight(made)
        if size - sizes.weight(made[-1]) >= sizes.PAGE_BYTES:  # `cursors.cut` keeps all but the last of these
            break
    await rows.close()
    return values_made


async def newest(
    session: Session,
    query: Select[Any],
    key: Sequence[ColumnElement[Any]],
    make: Callable[[Any], T],
    *,
    after: tuple[datetime, UUID | int] | None,
    limit: int,
) -> list[T]:
    """The rows converted by `make`, newest first, after the keyset position `after`. `key`: a time and the id."""
    if after is not None:
        query = query.where(tuple_(*key) < tuple_(*after))
    return await page(session, query.order_by(*(column.desc() for column in key)).limit(limit), None, make)


async def page_of_ids(
    ids: Sequence[UUID], read: Callable[[Sequence[UUID]], Awaitable[Mapping[UUID, T]]]
) -> tuple[dict[UUID, T], int]:
    """The first rows of these ids that fit a page of an answer, and how many of the ids that were."""
    by_id: dict[UUID, T] = {}
    size = 0
    for start in range(0, len(ids), PIECE):
        piece = await read(ids[start : start + PIECE])
        for index, each in enumerate(ids[start : start + PIECE], start + 1):
            if each in piece:
                by_id[each] = piece[each]
                size += sizes.weight(piece[each])
            if size >= sizes.PAGE_BYTES:
                return by_id, index
    return by_id, len(ids)


async def fetch_many(session: Session, statement: TextClause, values: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The rows that the statement returns for each set of values, in order, in one round trip."""
    arguments = [_prepare(session, statement, value)[1] for value in values]
    sql, _ = compile_statement(statement, session.dialect)
    records = await (await driver(session)).fetchmany(sql, arguments)
    return list(map(_name_columns(tuple(records[0].keys())), records)) if records else []


JOINED_ROWS = 2
"""New rows of one table that still travel in a statement joined with others. More of them go as a batch of their own;
otherwise each number of rows would be another statement to prepare."""


@dataclass(frozen=True, slots=True)
class NewRows:
    """Rows to add: one INSERT ... VALUES and, for each row, the values of its parameters."""

    statement: TextClause
    rows: Sequence[Mapping[str, Any]]


class InsertBatch:
    """New rows of one transaction that are written together. Nothing that is read in between may depend on them."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._rows: dict[TextClause, list[Mapping[str, Any]]] = {}

    def add(self, *groups: NewRows) -> None:
        """Rows of one statement are written together, in the place of the first of them."""
        for group in groups:
            self._rows.setdefault(group.statement, []).extend(group.rows)

    async def flush(self) -> None:
        """Writes what was added since the last flush."""
        rows, self._rows = self._rows, {}
        await insert(self.session, *starmap(NewRows, rows.items()))


async def insert(session: Session, *groups: NewRows) -> None:
    """Adds the rows in the order given. Neighbouring groups of few rows go as one statement: a store writes to six
    tables, and a round trip for each was a third of its time. Foreign keys are checked at the end of a statement."""
    filled = [group for group in groups if group.rows]
    for few, run in groupby(filled, key=lambda group: len(group.rows) <= JOINED_ROWS):
        if few:
            each = [(group.statement, row) for group in run for row in group.rows]
            statements = tuple(statement for statement, _ in each)
            sql, parameters = _join(statements, session.dialect, in_order=is_citus(session))
            arguments = [
                argument
                for (_, row), names in zip(each, parameters, strict=True)
                for argument in _convert(session, names, row)
            ]
            await (await driver(session)).fetch(sql, *arguments)
        else:
            for group in run:
                await fetch_many(session, group.statement, group.rows)


@lru_cache(maxsize=256)
def _join(
    statements: tuple[TextClause, ...], dialect: Dialect, *, in_order: bool
) -> tuple[str, list[tuple[Parameter, ...]]]:
    """WITH part_1 AS (INSERT ...), part_2 AS (INSERT ...) INSERT ..., and the parameters of each INSERT. The first of
    the statements stands last, where it runs before the others. `in_order`: for Citus, which runs the parts one by one
    and checks the foreign keys of each, it is the first part."""
    parts, parameters, count = [], [], 0
    for statement in statements:
        sql, names = compile_statement(statement, dialect)
        parts.append(_renumber(sql, count))
        parameters.append(names)
        count += len(names)
    last, rest = ("SELECT", parts) if in_order and len(parts) > 1 else (parts[0], parts[1:])
    with_parts = ", ".join(f"part_{number} AS ({part})" for number, part in enumerate(rest, 1))
    return (f"WITH {with_parts} {last}" if rest else last), parameters


def _renumber(sql: str, count: int) -> str:
    """The statement with its parameters counted from `count` + 1 on."""
    return re.sub(r"\$(\d+)", lambda match: f"${int(match[1]) + count}", sql)


async def _records(session: Session, statement: TextClause, values: Mapping[str, Any]) -> list[Any]:
    text, arguments = _prepare(session, statement, values)
    records: list[Any] = await (await driver(session)).fetch(text, *arguments)
    return records


@lru_cache(maxsize=512)
def _name_columns(names: tuple[str, ...]) -> Callable[[Any], DriverRow]:
    """Makes a DriverRow of the driver's record: looking a column up by its name in that costs five times as much."""
    kind: Any = namedtuple  # for mypy, which wants the names written out
    make: Callable[[Any], DriverRow] = kind("Row", names, rename=True)._make
    return make


def _prepare(session: Session, statement: TextClause, values: Mapping[str, Any]) -> tuple[str, list[Any]]:
    text, parameters = compile_statement(statement, session.dialect)
    return text, _convert(session, parameters, values)


def _convert(session: Session, parameters: Sequence[Parameter], values: Mapping[str, Any]) -> list[Any]:
    values = session.fill(values)
    return [convert(values[name]) if convert else values[name] for name, convert in parameters]


@lru_cache(maxsize=512)
def compile_statement(statement: TextClause, dialect: Dialect) -> tuple[str, tuple[Parameter, ...]]:
    """The text with $1, $2 …, and for each of them the name of its value and the conversion of its type."""
    made = statement.compile(dialect=dialect)
    kinds = {name: bound.type.dialect_impl(dialect).bind_processor(dialect) for name, bound in made.binds.items()}
    names = made.positiontup or ()
    return str(made), tuple((name, kinds[name]) for name in names)
