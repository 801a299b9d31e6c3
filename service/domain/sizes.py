"""Size limits of requests, the check of free JSON, and the sizes of a scope at which searches change strategy. Pure.

docs/limits.md has the limits in one table, docs/decisions/048-limits.md says where they come from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from itertools import chain
from typing import Any, Final

from pydantic import BaseModel

from service.domain.errors import TooLarge

MAX_TEXT: Final = 1_000_000
"""Characters of one text."""

MAX_TEXTS: Final = 40_000
"""Bytes of several texts of a request, and of messages that are read for facts: each is embedded, up to 5 s of CPU."""

PAGE_BYTES: Final = 4_000_000
"""Bytes of one page of an answer, which ends with the row that passes this, so it has at least one."""

MAX_BODY_BYTES: Final = 4_000_000
"""Bytes of the body of a request: as many as of a page of an answer."""

MAX_BATCH_ITEMS: Final = 100
"""Items of one batch. The client waits until all of them are stored."""

MESSAGES_AT_ONCE: Final = 500
"""Messages that one request may store."""

FACTS_AT_ONCE: Final = 1_000
"""Facts that may come of the messages of one request: each line of a list is one."""

MAX_NAME: Final = 255
MAX_NAME_BYTES: Final = 512
"""Three ids and a channel are in one index row, which holds 2,704 bytes."""

MAX_HEADER: Final = 1_000
"""Characters of If-Match and Prefer; stored headers are shorter."""

MAX_ZONE: Final = 64
"""Twice the longest name of a time zone."""

MAX_ITEMS: Final = 1_000
"""Members of a list of ids, of a batch, of a page, or of the parts of a message."""

MAX_MESSAGES: Final = 5_000
MAX_DIMENSIONS: Final = 1_536
"""Numbers of the longest vector that the service keeps."""

MAX_TAGS: Final = 100
MAX_TAG: Final = 255
MAX_ALIASES: Final = 500
"""Aliases of one entity, including those of entities merged into it."""

MAX_TAG_LEVELS: Final = 500
"""Levels of all tags of a row. Each is a prefix by which the row can be found, and appears in answers."""

MAX_REPEATED: Final = 50_000
"""Values of metadata and levels of tags, times the messages that they are kept with. Each takes up to 70 microseconds
of Postgres."""


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """The limits of a JSON object. `values`: everything under a key or in a list, at any depth. `key_chars`: of one
    key. `size`: bytes as JSON."""

    values: int
    key_chars: int
    depth: int
    size: int


KEPT: Final = JsonLimits(values=1_000, key_chars=MAX_NAME, depth=16, size=65_536)
"""Metadata, properties, parts of a profile, settings. A row has up to seven filter keys for each number or time in
its metadata, and an index takes some 10 microseconds for each."""

PAYLOAD: Final = JsonLimits(values=20_000, key_chars=1_000, depth=32, size=1_048_576)
"""Inputs and outputs of tools, and values of working memory, whose bytes have separate limits; not indexed."""


FEW_BYTES: Final = frozenset({"UUID", "datetime", "bool", "float", "int", "Scope", "Classification", "Importance"})
"""Types of fields that a page need not add up."""


def weight(value: Any) -> int:
    """The approximate bytes of a value in an answer: texts in UTF-8, a few for anything else."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode())
    parts = _parts(value.__class__)
    return 8 if parts is None else sum([weight(each) if each else 8 for each in parts(value)])


@cache
def _parts(kind: type) -> Callable[[Any], Iterable[Any]] | None:
    """A function that takes values of this type apart; None for small ones."""
    if issubclass(kind, dict):
        return lambda value: chain(value, value.values())
    if issubclass(kind, list | tuple | bytes):
        return iter
    if issubclass(kind, BaseModel):
        return lambda value: value.__dict__.values()
    if not is_dataclass(kind):
        return None
    names = [field.name for field in fields(kind) if str(field.type).removesuffix(" | None") not in FEW_BYTES]
    return lambda value: [getattr(value, name) for name in names]


def excess(value: Any, limits: JsonLimits) -> str | None:
    """The limit that a value exceeds, in words; None if it exceeds none."""
    count = -1  # without the value itself
    for depth, level in enumerate(_levels(value)):
        if depth > limits.depth:
            return f"is nested deeper than {limits.depth} levels"
        count += len(level)
        if count > limits.values:
            return f"contains more than {limits.values:,} values"
        if any(len(key) > limits.key_chars for part in level if isinstance(part, dict) for key in part):
            return f"has a key of more than {limits.key_chars:,} characters"
    if len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()) > limits.size:
        return f"has more than {limits.size:,} bytes as JSON"
    return None


def count(value: Any) -> int:
    """How many values are under keys and in lists, at any depth."""
    return sum(map(len, _levels(value))) - 1


def _levels(value: Any) -> Iterator[list[Any]]:
    """The levels of a value: the value itself, its members, their members, and so on."""
    level = [value]
    while level:
        yield level
        inner: list[Any] = []
        for part in level:
            if isinstance(part, dict):
                inner.extend(part.values())
            elif isinstance(part, list):
                inner.extend(part)
        level = inner


def unite(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Merges two objects for an automatic update that must not fail: only the new one if both are too large
    together."""
    both = {**old, **new}
    return both if excess(both, KEPT) is None else dict(new)


def check_merged(field: str, merged: Mapping[str, Any]) -> None:
    """Raises TooLarge for a merged object that exceeds its limits."""
    problem = excess(dict(merged), KEPT)
    if problem is not None:
        raise TooLarge(f"{field}: {problem}, together with what is already stored.", field=field)


def check_texts(field: str, texts: Iterable[str], *, single: bool = False) -> None:
    """Raises TooLarge when several texts of a request, or also a `single` one, are together longer than MAX_TEXTS."""
    sizes = list(map(weight, texts))
    if (single or len(sizes) > 1) and sum(sizes) > MAX_TEXTS:
        raise TooLarge(f"{field}: the texts together have more than {MAX_TEXTS:,} bytes.", field=field)


"""Sizes of a scope at which the search strategy changes (docs/retrieval.md). The planner cannot decide this, because
under row-level security it does not know the size of a scope."""

EXACT_ROWS = 20_000
"""Up to here every vector is compared: 20 ms, and exact."""

BINARY_ROWS = 150_000
"""Up to here the binary quantisation of every vector is read; beyond it the graph of the index is walked."""
