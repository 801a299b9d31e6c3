"""How large what a caller sends may be, with the check of free JSON; and from how many rows on a scope is searched in
another way. Pure.

docs/limits.md has the limits in one table, docs/decisions/048-limits.md says where they come from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from itertools import chain
from typing import Any, Final

from service.domain.errors import TooLarge

MAX_TEXT: Final = 1_000_000
"""Characters of one text."""

MAX_TEXTS: Final = 300_000
"""Characters of all texts of a request that has several. Each is embedded in windows of its own: 950,000 characters in
500 messages took 13 s of CPU, a single text of that length 5 s."""

PAGE_BYTES: Final = 4_000_000
"""Bytes of one page of an answer. The row that passes it is the last one: a page has at least one."""

MAX_BATCH_ITEMS: Final = 100
"""Items of one batch. The client waits until all of them are stored."""

MESSAGES_AT_ONCE: Final = 500
"""Messages that one request may store."""

MAX_NAME: Final = 255
MAX_NAME_BYTES: Final = 512
"""Three ids and a channel are in one index row, which holds 2,704 bytes."""

MAX_HEADER: Final = 1_000
"""Characters of If-Match and Prefer; what is kept of headers is shorter."""

MAX_ZONE: Final = 64
"""Twice the longest name of a time zone."""

MAX_ITEMS: Final = 1_000
"""Members of a list of ids, of a batch, or of the parts of a message."""

MAX_MESSAGES: Final = 5_000
MAX_DIMENSIONS: Final = 1_536
"""Numbers of the longest vector that the service keeps."""

MAX_TAGS: Final = 100
MAX_TAG: Final = 255
MAX_ALIASES: Final = 500
"""Other names of one entity, those of entities merged into it included."""

MAX_TAG_LEVELS: Final = 500
"""Levels of all tags of a row: each is a prefix that the row is found by, and that answers show."""

MAX_REPEATED: Final = 50_000
"""Values of metadata and levels of tags, times the messages that they are kept with. Each takes up to 70 microseconds
of Postgres."""


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """`values`: everything under a key or in a list, at any depth. `key_chars`: of one key. `size`: bytes as JSON."""

    values: int
    key_chars: int
    depth: int
    size: int


KEPT: Final = JsonLimits(values=1_000, key_chars=MAX_NAME, depth=16, size=65_536)
"""Metadata, properties, parts of a profile, settings. A row has up to seven filter keys for each number or time in
its metadata, and an index takes some 10 microseconds for each."""

PAYLOAD: Final = JsonLimits(values=20_000, key_chars=1_000, depth=32, size=1_048_576)
"""What tools take and give, and values of working memory, whose bytes have limits of their own; in no index."""


def weight(value: Any) -> int:
    """About how many bytes a value takes in an answer: of texts those in UTF-8, of all else a few."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode())
    parts = _parts(value.__class__)
    return 8 if parts is None else sum([8 if each is None else weight(each) for each in parts(value)])


@cache
def _parts(kind: type) -> Callable[[Any], Iterable[Any]] | None:
    """Takes a value of this type apart; None for one that is a few bytes."""
    if issubclass(kind, dict):
        return lambda value: chain(value, value.values())
    if issubclass(kind, list | tuple | bytes):
        return iter
    names = [each.name for each in fields(kind)] if is_dataclass(kind) else []
    return (lambda value: [getattr(value, name) for name in names]) if names else None


def excess(value: Any, limits: JsonLimits) -> str | None:
    """What of the limits a value exceeds, in words; None when it keeps all."""
    count = -1  # without the value itself
    for depth, level in enumerate(_levels(value)):
        if depth > limits.depth:
            return f"is nested deeper than {limits.depth} levels"
        count += len(level)
        if count > limits.values:
            return f"holds more than {limits.values:,} values"
        if any(len(key) > limits.key_chars for part in level if isinstance(part, dict) for key in part):
            return f"has a key of more than {limits.key_chars:,} characters"
    if len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()) > limits.size:
        return f"has more than {limits.size:,} bytes as JSON"
    return None


def count(value: Any) -> int:
    """How many values are under keys and in lists, at any depth."""
    return sum(map(len, _levels(value))) - 1


def _levels(value: Any) -> Iterator[list[Any]]:
    """The value, what is in it, what is in that, and so on."""
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


def united(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Both, for an update that nobody asked for and that must not fail: the new one alone where both are too large."""
    both = {**old, **new}
    return both if excess(both, KEPT) is None else dict(new)


def check_merged(field: str, merged: Mapping[str, Any]) -> None:
    """Raises TooLarge for an object that has grown over its limits by what a request adds to it."""
    found = excess(dict(merged), KEPT)
    if found is not None:
        raise TooLarge(f"{field}: {found}, with what is stored already.", field=field)


def check_texts(field: str, texts: Iterable[str]) -> None:
    """Raises TooLarge when several texts of a request are together longer than MAX_TEXTS."""
    sizes = list(map(len, texts))
    if len(sizes) > 1 and sum(sizes) > MAX_TEXTS:
        raise TooLarge(f"{field}: all texts together have more than {MAX_TEXTS:,} characters.", field=field)


"""From how many rows on a scope is searched in another way (docs/retrieval.md). The planner has no say in it: under
row-level security it cannot tell how many rows a scope has."""

EXACT_ROWS = 20_000
"""Up to here every vector is compared: 20 ms, and exact."""

BINARY_ROWS = 150_000
"""Up to here the binary quantisation of every vector is read; beyond it the graph of the index is walked."""
