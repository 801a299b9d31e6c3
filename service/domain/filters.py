"""The tree, the fields and the limits of a caller's filter; pure.

A field of a memory has values: none, one, or the elements of a list. A condition holds when one of the values meets it;
`ne` and `nin` are the opposites of `eq` and `in`, so they hold for a missing value, and comparisons do not. `eq` null
asks for a field without a value. Every condition is true or false, never unknown, so NOT is its exact opposite.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, get_args
from uuid import UUID

from service.domain import moments
from service.domain.errors import InvalidInput
from service.domain.kinds import ClassificationSource, MemoryType
from service.domain.temporal import TemporalTag, TemporalType

Operator = Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "contains", "icontains"]
Kind = Literal["text", "number", "time", "flag", "id", "words", "any"]
Value = str | int | float | bool | datetime | UUID

MAX_DEPTH: Final = 8
"""Levels of AND, OR and NOT above a condition."""

MAX_CONDITIONS: Final = 100
MAX_PARTS: Final = 100
"""Members of one AND or OR."""

MAX_VALUES: Final = 1_000
"""Total number of values of all in and nin of a filter."""

MAX_JSON_VALUES: Final = 10_000
"""Values of any kind in the JSON of a filter. No filter within the other limits has more, and reading them takes up to
2 microseconds each."""

MAX_PATTERNS: Final = 20
"""Conditions with icontains: the server keeps 32 compiled patterns, and one more would be compiled for every row."""

MAX_TEXT: Final = 2_000
"""Characters of one value."""

MAX_FIELD: Final = 300
MAX_STEPS: Final = 8
"""Steps of a path into metadata."""

FIELDS: Final[Mapping[str, Kind]] = {
    "id": "id",
    "memory": "text",
    "hash": "text",
    "summary": "text",
    "type": "text",
    "classification_source": "text",
    "type_confidence": "number",
    "fact_confidence": "number",
    "importance": "number",
    "importance_level": "number",
    "relevance": "number",
    "salience": "number",
    "access_count": "number",
    "tag": "words",
    "tag_prefix": "words",
    "category": "words",
    "user_id": "text",
    "agent_id": "text",
    "run_id": "text",
    "session_id": "text",
    "channel": "text",
    "role": "text",
    "speaker": "text",
    "conversation_id": "id",
    "turn_index": "number",
    "temporal_type": "text",
    "temporal_tag": "text",
    "embedding": "text",
    "enriched": "flag",
    "stale": "flag",
    "archived": "flag",
    "version": "number",
    "timestamp": "time",
    "t_valid": "time",
    "t_invalid": "time",
    "valid_until": "time",
    "expires_at": "time",
    "created_at": "time",
    "updated_at": "time",
    "last_accessed": "time",
    "stale_at": "time",
}
"""Fields with a column of their own; every other name is a path into metadata."""

CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "type": tuple(MemoryType),
    "classification_source": tuple(ClassificationSource),
    "temporal_type": tuple(TemporalType),
    "temporal_tag": tuple(TemporalTag),
    "embedding": ("stored", "queued", "placeholder"),  # those of EmbeddingStatus, whose module imports this one
}
"""Fields with a fixed set of values. eq, ne, in and nin accept only these, because others could only be
misspellings."""

ALIASES: Final[Mapping[str, str]] = {
    "content": "memory",
    "tags": "tag",
    "tag_prefixes": "tag_prefix",
    "categories": "category",
}

EQUALITY: Final = frozenset({"eq", "ne", "in", "nin"})
ORDER: Final = frozenset({"gt", "gte", "lt", "lte"})
LISTS: Final = frozenset({"in", "nin"})
SUBSTRING: Final = frozenset({"contains", "icontains"})

OPERATORS: Final[Mapping[Kind, frozenset[str]]] = {
    "text": EQUALITY | ORDER | SUBSTRING,
    "number": EQUALITY | ORDER,
    "time": EQUALITY | ORDER,
    "flag": EQUALITY,
    "id": EQUALITY,
    "words": EQUALITY | SUBSTRING,
    "any": EQUALITY | ORDER | SUBSTRING,
}

ISO_TIME: Final = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?)?$"
"""Texts in metadata that gt, gte, lt and lte take for a time when the value is one, too. The same in SQL."""

_ISO_TIME = re.compile(ISO_TIME)


@dataclass(frozen=True, slots=True)
class Field:
    """A column by its name, or `metadata` with the path into it."""

    name: str
    kind: Kind
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """A condition. `value`: None for a missing value (eq, ne), a tuple for in and nin, else of the field's kind."""

    field: Field
    operator: Operator
    value: Value | tuple[Value, ...] | None


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Filter


Filter = Check | AllOf | AnyOf | Not


def read(raw: Mapping[str, Any], where: str = "filters") -> Filter:
    """Parses the JSON form of a filter; raises InvalidInput naming the path inside it."""
    return _Reader().node(raw, where, 0)


def write(tree: Filter) -> dict[str, Any]:
    """The JSON form, from which `read` makes the same tree."""
    match tree:
        case AllOf(parts):
            return {"AND": [write(each) for each in parts]}
        case AnyOf(parts):
            return {"OR": [write(each) for each in parts]}
        case Not(part):
            return {"NOT": write(part)}
        case Check(field, operator, value):
            name = ".".join(("metadata", *field.path)) if field.path else field.name
            shown = [plain(each) for each in value] if isinstance(value, tuple) else plain(value)
            return {"field": name, "operator": operator, "value": shown}


def with_texts(tree: Filter, change: Callable[[str], str]) -> Filter:
    """The tree with every text it compares with changed."""
    match tree:
        case AllOf(parts):
            return AllOf(tuple(with_texts(each, change) for each in parts))
        case AnyOf(parts):
            return AnyOf(tuple(with_texts(each, change) for each in parts))
        case Not(part):
            return Not(with_texts(part, change))
        case Check(field, operator, tuple() as values):
            return Check(field, operator, tuple(change(v) if isinstance(v, str) else v for v in values))
        case Check(field, operator, str() as value):
            return Check(field, operator, change(value))
    return tree


def field_of(name: str) -> Field | None:
    """The field with this name, None for an invalid path: `metadata.a.b` or `a.b` is b inside a. Keys hold dots at
    their ends and in a row ("e.g.", "a..b"), so single steps may be empty."""
    known = ALIASES.get(name, name)
    if known in FIELDS:
        return Field(known, FIELDS[known])
    path = tuple(name.removeprefix("metadata.").split("."))
    if name == "metadata" or not any(path) or len(path) > MAX_STEPS or len(name) > MAX_FIELD:
        return None
    return Field("metadata", "any", path)


def fold(word: object) -> str:
    """A tag or category as stored: stripped and in lower case."""
    return str(word).strip().lower()


def iso_time(text: str) -> datetime | None:
    """The moment that a text in ISO 8601 names (UTC where it names no offset), None for every other text."""
    return _moment(text) if _ISO_TIME.match(text) else None


class _Reader:
    """Reads one filter, counting its conditions and values against the limits."""

    def __init__(self) -> None:
        self._conditions = 0
        self._patterns = 0
        self._values = 0

    def node(self, raw: object, where: str, depth: int) -> Filter:
        if not isinstance(raw, Mapping):
            raise _bad(where, "must be {field, operator, value} or one of AND, OR, NOT")
        if depth > MAX_DEPTH:
            raise _bad(where, f"the filter is nested deeper than {MAX_DEPTH} levels")
        branches = [name for name in ("AND", "OR", "NOT") if raw.get(name) is not None]
        given = [raw[name] for name in ("field", "operator", "value") if name in raw]
        leaf = any(each is not None for each in given) or bool(given and not branches)  # some clients send every null
        if len(branches) + leaf != 1:
            raise _bad(where, "must be {field, operator, value} or exactly one of AND, OR, NOT")
        if leaf:
            return self._check(raw, where)
        name = branches[0]
        inside = f"{where}.{name}"
        if name == "NOT":
            return Not(self.node(raw[name], inside, depth + 1))
        parts = self._parts(raw[name], inside, depth + 1)
        return AllOf(parts) if name == "AND" else AnyOf(parts)

    def _parts(self, raw: object, where: str, depth: int) -> tuple[Filter, ...]:
        if not isinstance(raw, list) or not 1 <= len(raw) <= MAX_PARTS:
            raise _bad(where, f"must be a list of 1 to {MAX_PARTS} filters")
        return tuple(self.node(each, f"{where}[{index}]", depth) for index, each in enumerate(raw))

    def _check(self, raw: Mapping[str, Any], where: str) -> Check:
        self._conditions += 1
        if self._conditions > MAX_CONDITIONS:
            raise _bad(where, f"a filter may have at most {MAX_CONDITIONS} conditions")
        name = raw.get("field")
        field = field_of(name) if isinstance(name, str) and name else None
        if field is None:
            raise _bad(f"{where}.field", f"must name a field, or a path of at most {MAX_STEPS} steps into metadata")
        operator = raw.get("operator")
        if operator not in OPERATORS["any"]:
            raise _bad(f"{where}.operator", f"must be one of {', '.join(get_args(Operator))}")
        if operator not in OPERATORS[field.kind]:
            raise _bad(f"{where}.operator", f"{operator} cannot be used with {_KINDS[field.kind]}")
        if "value" not in raw:
            raise _bad(f"{where}.value", "is missing")
        self._patterns += operator == "icontains"
        if self._patterns > MAX_PATTERNS:
            raise _bad(f"{where}.operator", f"a filter may have icontains at most {MAX_PATTERNS} times")
        self._values += len(raw["value"]) if isinstance(raw["value"], list) else 0
        if self._values > MAX_VALUES:
            raise _bad(f"{where}.value", f"the lists of in and nin may have at most {MAX_VALUES} values together")
        return Check(field, operator, _value(raw["value"], field, operator, f"{where}.value"))


_KINDS: Final[Mapping[Kind, str]] = {
    "text": "a text field",
    "number": "a number field",
    "time": "a time field",
    "flag": "a yes-or-no field",
    "id": "an id field",
    "words": "tags and categories",
    "any": "metadata",
}


def _value(raw: object, field: Field, operator: str, where: str) -> Value | tuple[Value, ...] | None:
    if operator in LISTS:
        if not isinstance(raw, list):
            raise _bad(where, f"{operator} takes a list")
        return tuple(_choose(each, field, f"{where}[{index}]") for index, each in enumerate(raw))
    if isinstance(raw, list | dict):
        raise _bad(where, f"{operator} takes a single value; use in or nin for a list")
    if raw is None:
        if operator in ("eq", "ne"):
            return None
        raise _bad(where, f"{operator} needs a value; only eq and ne take null")
    if operator in SUBSTRING and not isinstance(raw, str):
        raise _bad(where, f"{operator} takes a string")
    if operator in ORDER and isinstance(raw, bool):
        raise _bad(where, f"{operator} takes a number, a string or a time")
    return _choose(raw, field, where) if operator in EQUALITY else _single(raw, field.kind, where)


def _choose(raw: object, field: Field, where: str) -> Value:
    """One value of a field, one of its CHOICES where it has any."""
    value = _single(raw, field.kind, where)
    choices = CHOICES.get(field.name)
    if choices is not None and value not in choices:
        raise _bad(where, f"must be one of {', '.join(choices)}")
    return value


def _single(raw: object, kind: Kind, where: str) -> Value:
    """One value of the field's kind."""
    if isinstance(raw, str) and len(raw) > MAX_TEXT:
        raise _bad(where, f"must have at most {MAX_TEXT} characters")
    if isinstance(raw, float) and not math.isfinite(raw):
        raise _bad(where, "must be a finite number")
    match kind, raw:
        case (("text" | "words" | "any"), str()):
            return raw
        case (("flag" | "any"), bool()):
            return raw
        case (("number" | "any"), int() | float()) if not isinstance(raw, bool):
            return raw
        case "time", str() if (moment := _moment(raw)) is not None:
            return moments.clamp(moment)
        case "id", str() if (uuid := uuid_or_none(raw)) is not None:
            return uuid
    raise _bad(where, f"must be {_WANTED[kind]}")


_WANTED: Final[Mapping[Kind, str]] = {
    "text": "a string",
    "number": "a number",
    "time": "an ISO 8601 time such as 2026-03-02T09:30:00+00:00",
    "flag": "true or false",
    "id": "a UUID",
    "words": "a string",
    "any": "a string, a number, true or false",
}


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def uuid_or_none(text: str) -> UUID | None:
    """The UUID, None for any other text."""
    try:
        return UUID(text)
    except ValueError:
        return None


def plain(value: Any) -> Any:
    """The filter as JSON has it."""
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value


def _bad(where: str, message: str) -> InvalidInput:
    return InvalidInput(f"{where}: {message}.", field=where)
