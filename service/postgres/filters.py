"""A filter as SQL: text with named parameters, never a value in the text; true or false, never NULL.

Values of metadata are compared as what they are in JSON: a number with numbers, a text with texts. No cast can fail,
because jsonb compares its own numbers, and a text is only read as a time where it has the form of one. Upper and lower
case are distinguished letter by letter in the pattern, so that it does not depend on the server's locale.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from service.domain.filters import ISO_TIME, AllOf, AnyOf, Check, Field, Filter, Not, fold, iso_time
from service.postgres.scopes import Condition

# one row by primary key
STAT = "(SELECT s.{name} FROM memory_stat s WHERE s.workspace_id = {m}.workspace_id AND s.memory_id = {m}.id)"

COLUMNS: Final[Mapping[str, str]] = {
    "memory": "{m}.content",
    "tag": "{m}.tags",
    "tag_prefix": "{m}.tag_prefixes",
    "category": "{m}.categories",
    "embedding": "{m}.embedding_status",
    "enriched": "({m}.enriched_at IS NOT NULL)",
    "timestamp": '{m}."timestamp"',
    "relevance": "{stat}",
    "salience": "{stat}",
    "access_count": "{stat}",
    "last_accessed": "{stat}",
    "stale_at": "{stat}",
    "stale": f"({STAT.replace('{name}', 'stale_at')} IS NOT NULL)",
}
"""Fields that are not a column of the same name."""

COMPARISONS: Final[Mapping[str, str]] = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
CASTS: Final[Mapping[str, str]] = {
    "text": "text",
    "words": "text",
    "number": "float8",
    "time": "timestamptz",
    "flag": "boolean",
    "id": "uuid",
}
IN_METADATA: Final = {"tag": "tag", "category": "category"}
"""Words that callers keep in metadata under the same name count, too."""

Predicate = Callable[[str], str]


def stat(alias: str, name: str) -> str:
    """A column of the row of memory_stat that belongs to `alias`, a row of `memory`."""
    return STAT.format(name=name, m=alias)


def compile_filter(alias: str, tree: Filter) -> Condition:
    """The filter on `alias`, a row of `memory`. Its parameters are called filter_...; one filter per statement."""
    writer = _Writer(alias)
    sql = writer.node(tree)
    return Condition(sql, writer.values)


class _Writer:
    def __init__(self, alias: str) -> None:
        self._m = alias
        self.values: dict[str, Any] = {}

    def node(self, tree: Filter) -> str:
        match tree:
            case AllOf(parts):
                return f"({' AND '.join(self.node(each) for each in parts)})"
            case AnyOf(parts):
                return f"({' OR '.join(self.node(each) for each in parts)})"
            case Not(part):
                return f"(NOT {self.node(part)})"
            case Check(field, "ne", value):
                return f"(NOT {self.node(Check(field, 'eq', value))})"
            case Check(field, "nin", value):
                return f"(NOT {self.node(Check(field, 'in', value))})"
            case Check(field, _, _) if field.path:
                return self._metadata(tree, field.path)
            case Check(field, _, _) if field.kind == "words":
                return self._words(tree)
            case _:
                return self._column(tree)

    def _given(self, value: Any, cast: str) -> str:
        """A new parameter; the cast tells the server its type."""
        time = "time_" if isinstance(value, datetime) else ""
        name = f"filter_{time}{len(self.values)}"
        self.values[name] = value
        return f"CAST(:{name} AS {cast})"

    # -- columns ----------------------------------------------------------------------------------------------------

    def _column(self, check: Check) -> str:
        column, value = self._named(check.field), check.value
        if value is None:
            return f"({column} IS NULL)"
        return f"coalesce({self._compared(column, check)}, false)"

    def _compared(self, column: str, check: Check) -> str:
        value, cast = check.value, CASTS[check.field.kind]
        if isinstance(value, tuple):
            return f"{column} = ANY ({self._given([_cast(each, cast) for each in value], f'{cast}[]')})"
        if check.operator == "eq":
            return f"{column} = {self._given(_cast(value, cast), cast)}"
        if check.operator in COMPARISONS:
            ordered = f'{column} COLLATE "C"' if cast == "text" else column
            return f"{ordered} {COMPARISONS[check.operator]} {self._given(_cast(value, cast), cast)}"
        return self._holds(check.operator, str(value))(column)

    def _named(self, field: Field) -> str:
        shape = COLUMNS.get(field.name, "{m}." + field.name)
        return shape.format(m=self._m, stat=stat(self._m, field.name))

    def _holds(self, operator: str, value: str) -> Predicate:
        """Whether `value` is a part of a text."""
        if operator == "contains":
            sought = self._given(value, "text")
            return lambda text: f"strpos({text}, {sought}) > 0"
        pattern = self._given(any_case(value), "text")
        return lambda text: f"{text} ~ {pattern}"

    # -- tags and categories ----------------------------------------------------------------------------------------

    def _words(self, check: Check) -> str:
        column = self._named(check.field)
        in_column = self._among(column, check)
        key = IN_METADATA.get(check.field.name)
        if key is None:
            return in_column
        in_metadata = self._metadata(Check(Field("metadata", "any", (key,)), check.operator, check.value), (key,))
        return f"({in_column} {'AND' if check.value is None else 'OR'} {in_metadata})"

    def _among(self, column: str, check: Check) -> str:
        """The condition on the words of the column, in the form in which they are stored."""
        value = check.value
        if value is None:
            return f"({column} = '{{}}')"
        if isinstance(value, tuple):
            return f"({column} && {self._given([fold(each) for each in value], 'text[]')})"
        if check.operator == "eq":
            return f"({self._given(fold(value), 'text')} = ANY ({column}))"
        holds = self._holds(check.operator, str(value).lower())
        return f"EXISTS (SELECT FROM unnest({column}) w WHERE {holds('w')})"

    # -- metadata ---------------------------------------------------------------------------------------------------

    def _metadata(self, check: Check, path: Sequence[str]) -> str:
        at_path, value = self._at(path), check.value
        if value is None:
            return f"(coalesce(jsonb_typeof({at_path}), 'null') = 'null' OR {at_path} = '[]')"
        if isinstance(value, tuple):
            wanted = self._given([json.dumps(each) for each in value], "text[]")
            wanted = f"CAST({wanted} AS jsonb[])"
            return self._some(at_path, lambda each: f"{each} = ANY ({wanted})")
        if check.operator == "eq":
            # a list contains a scalar, a scalar contains itself
            return f"coalesce({at_path} @> CAST({self._given(json.dumps(value), 'text')} AS jsonb), false)"
        if check.operator in COMPARISONS:
            return self._some(at_path, self._ordered(COMPARISONS[check.operator], value))
        holds = self._holds(check.operator, str(value))
        return self._some(at_path, lambda each: f"CASE WHEN {_is(each, 'string')} THEN {holds(_text(each))} END")

    def _at(self, path: Sequence[str]) -> str:
        """The value at a path. A key that contains dots itself takes precedence."""
        first = f"{self._m}.metadata -> {self._given('.'.join(path), 'text')}"
        if len(path) == 1:
            return f"({first})"
        return f"coalesce({first}, {self._m}.metadata #> {self._given(list(path), 'text[]')})"

    def _some(self, values: str, predicate: Predicate) -> str:
        """Whether the value, or one element of the list, meets it."""
        among = f"EXISTS (SELECT FROM jsonb_array_elements({values}) AS e(v) WHERE {predicate('e.v')})"
        return f"CASE WHEN {_is(values, 'array')} THEN {among} ELSE coalesce({predicate(values)}, false) END"

    def _ordered(self, sign: str, value: object) -> Predicate:
        if not isinstance(value, str):
            given = f"CAST({self._given(json.dumps(value), 'text')} AS jsonb)"
            return lambda each: f"{_is(each, 'number')} AND {each} {sign} {given}"
        moment = iso_time(value)
        if moment is None:
            text = self._given(value, "text")
            return lambda each: f'{_is(each, "string")} AND {_text(each)} COLLATE "C" {sign} {text}'
        time = self._given(moment, "timestamptz")
        return lambda each: f"CASE WHEN {_is_time(each)} THEN CAST({_text(each)} AS timestamptz) {sign} {time} END"


def any_case(text: str) -> str:
    """A regular expression that finds the text in upper and lower case, and nothing else."""
    return "".join(_letter(each) for each in text)


def _letter(char: str) -> str:
    cases = {char} | {each for each in (char.lower(), char.upper(), char.upper().lower()) if len(each) == 1}
    if len(cases) > 1:
        return f"[{''.join(sorted(cases))}]"
    return f"\\{char}" if char in _SPECIAL else char


_SPECIAL: Final = frozenset(".^$*+?()[]{}|\\")


def _cast(value: object, cast: str) -> object:
    return float(value) if cast == "float8" and isinstance(value, int | float) else value


def _is(value: str, kind: str) -> str:
    return f"jsonb_typeof({value}) = '{kind}'"


def _text(value: str) -> str:
    return f"({value} #>> '{{}}')"


def _is_time(value: str) -> str:
    """The form of a time, and not 31 February either. Sessions are in UTC, and so is a time without an offset."""
    form = f"{_is(value, 'string')} AND {_text(value)} ~ '{ISO_TIME}'"
    return f"CASE WHEN {form} THEN pg_input_is_valid({_text(value)}, 'timestamptz') ELSE false END"
