"""SQL texts as statements: with the types of their parameters, and put together from pieces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from pgvector.sqlalchemy import SPARSEVEC
from sqlalchemy import DateTime, Text, TextClause, Uuid, bindparam, text
from sqlalchemy.types import ARRAY, TypeEngine

from service.postgres.vectors import TERM_DIMENSIONS, Half

TIMES: Final = "now window_start window_end valid_at since until stored_by as_of asked_at after_time"

TYPES: Final[Mapping[str, TypeEngine[Any]]] = {
    **dict.fromkeys(TIMES.split(), DateTime(timezone=True)),
    **dict.fromkeys(("query_vector", "original_vector"), Half()),
    **dict.fromkeys(("text_idf", "context_idf", "bm25"), SPARSEVEC(TERM_DIMENSIONS)),
    **dict.fromkeys(("of_user", "of_agent", "of_run"), Text()),
    "of_channels": ARRAY(Text()),
    "workspace": Uuid(),
}
"""Types of parameters that the driver would guess wrong: a bare datetime would be taken without its zone."""

PARAMETER: Final = re.compile(r"(?<![:\w]):(\w+)")

TIME_PARAMETER: Final = re.compile(r"(?:filter|bound)_time_\w+")
"""Time parameters of a filter and of bounds, which are numbered."""


def typed_text(sql: str, /, **types: TypeEngine[Any]) -> TextClause:
    """The statement, with the types of those parameters that need one. `types`: of further ones."""
    known = {**TYPES, **types}
    kinds = {
        name: TYPES["now"] if TIME_PARAMETER.fullmatch(name) else known.get(name) for name in PARAMETER.findall(sql)
    }
    return text(sql).bindparams(*(bindparam(name, type_=kind) for name, kind in kinds.items() if kind is not None))


class Template:
    """SQL with {gaps} for pieces of our own, such as conditions: some are filled with `pieces`, the others by `fill`.

    A filled statement is kept: putting it together, and compiling it, costs more than running it.
    """

    def __init__(self, sql: str, **pieces: str | float) -> None:
        self._sql = sql
        self._pieces = pieces
        self.fill = lru_cache(maxsize=256)(self._fill)

    def _fill(self, **others: str | float) -> TextClause:
        return typed_text(self._sql.format(**self._pieces, **others))
