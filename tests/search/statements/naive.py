"""What a search may see, said once more in plain Python: the model that the SQL is compared with.

Nothing here is taken from the service but its shapes; a rule that stands in both places was written down twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Json = Any
GLOBAL = "_global"


@dataclass(frozen=True)
class NaiveRow:
    """A memory, as far as it decides who sees it. `workspace`: 0 is the caller's. `in_talk`: it has a context."""

    id: str
    workspace: int
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    channel: str
    content: str
    type: str
    importance: float
    fact_confidence: float | None
    tags: Sequence[str]
    categories: Sequence[str]
    metadata: Mapping[str, Json]
    timestamp: datetime
    t_valid: datetime | None
    t_invalid: datetime | None
    expires_at: datetime | None
    archived: bool
    flagged: bool
    has_vector: bool
    in_talk: bool


@dataclass(frozen=True)
class Case:
    """A query's options, by their names on the wire."""

    ids: Mapping[str, str]
    channel: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict)


def sees(case: Case, row: NaiveRow, now: datetime) -> bool:
    """Whether this row may answer the query."""
    asked = case.options
    channels = {GLOBAL, case.channel or GLOBAL, *asked.get("channels", [])}
    if row.workspace != 0 or row.channel not in channels or row.flagged:
        return False
    if not _in_scope(case, row):
        return False
    if row.expires_at is not None and row.expires_at <= now:
        return False
    if row.archived and not asked.get("include_archived", False):
        return False
    return _in_time(asked, row, now) and _worded(asked, row) and _sure(asked, row) and _let_through(asked, row)


def _in_scope(case: Case, row: NaiveRow) -> bool:
    asked, ids = case.options, {name: getattr(row, name) for name in ("user_id", "agent_id", "run_id")}
    if not any(ids.values()):
        return bool(asked.get("include_shared") or asked.get("shared"))
    if asked.get("shared"):
        return False
    same = [ids[name] == value for name, value in case.ids.items()]
    if not (any(same) if asked.get("scope_match") == "any" else all(same)):
        return False
    return asked.get("scope_mode") != "exact" or not any(ids[name] for name in ids if name not in case.ids)


def _in_time(asked: Mapping[str, Json], row: NaiveRow, now: datetime) -> bool:
    start, end, valid_at = (moment(asked.get(name)) for name in ("start", "end", "valid_at"))
    if (start and row.timestamp < start) or (end and row.timestamp >= end):
        return False
    if valid_at is not None:
        return _valid(row, valid_at)
    validity = asked.get("validity", "exclude")
    if validity == "ignore" or start or end:
        return True
    if validity == "demote":
        return row.t_valid is None or row.t_valid <= now
    return _valid(row, now)


def _valid(row: NaiveRow, at: datetime) -> bool:
    return (row.t_valid is None or row.t_valid <= at) and (row.t_invalid is None or at < row.t_invalid)


def _worded(asked: Mapping[str, Json], row: NaiveRow) -> bool:
    prefix = asked.get("tag_match", "prefix") == "prefix"

    def bears(tag: str) -> bool:
        return tag in row.tags or (prefix and any(re.match(re.escape(tag) + "[:/]", each) for each in row.tags))

    wanted, unwanted = asked.get("tags", []), asked.get("exclude_tags", [])
    enough = all if asked.get("tag_mode", "any") == "all" else any
    if (wanted and not enough(bears(tag) for tag in wanted)) or any(bears(tag) for tag in unwanted):
        return False
    categories, types = asked.get("categories", []), asked.get("types", [])
    return (not categories or bool(set(categories) & set(row.categories))) and (not types or row.type in types)


def _sure(asked: Mapping[str, Json], row: NaiveRow) -> bool:
    least = asked.get("min_confidence")
    return least is None or row.fact_confidence is None or bool(row.fact_confidence >= least)


def _let_through(asked: Mapping[str, Json], row: NaiveRow) -> bool:
    tree = asked.get("filters")
    return tree is None or holds(tree, row)


def holds(tree: Mapping[str, Json], row: NaiveRow) -> bool:
    """Does the filter let the row through?"""
    if "AND" in tree:
        return all(holds(each, row) for each in tree["AND"])
    if "OR" in tree:
        return any(holds(each, row) for each in tree["OR"])
    if "NOT" in tree:
        return not holds(tree["NOT"], row)
    operator, value = tree["operator"], tree["value"]
    if operator in ("ne", "nin"):
        turned = {"ne": "eq", "nin": "in"}[operator]
        return not holds({**tree, "operator": turned}, row)
    sources = _sources(tree["field"], row)
    if value is None:
        return not any(present for present, _, _ in sources)
    return any(_meets(each, operator, value, lowered=lowered) for _, each, lowered in sources)


def _sources(name: str, row: NaiveRow) -> list[tuple[bool, list[Json], bool]]:
    """Where a field's values stand: is there anything, what, and is it kept in lower case?"""
    if name in ("tag", "tags"):
        return [(bool(row.tags), list(row.tags), True), _from_metadata(row, ["tag"])]
    if name in ("category", "categories"):
        return [(bool(row.categories), list(row.categories), True), _from_metadata(row, ["category"])]
    column = {"memory": "content"}.get(name, name)
    if column != "metadata" and column in NaiveRow.__dataclass_fields__ and column not in ("workspace", "flagged"):
        value = getattr(row, column)
        return [(value is not None, [] if value is None else [value], False)]
    return [_from_metadata(row, name.removeprefix("metadata.").split("."))]


def _from_metadata(row: NaiveRow, path: Sequence[str]) -> tuple[bool, list[Json], bool]:
    value: Json = row.metadata
    if ".".join(path) in row.metadata:
        value = row.metadata[".".join(path)]
    else:
        for step in path:
            if isinstance(value, list) and step.isdigit() and int(step) < len(value):
                value = value[int(step)]
            elif isinstance(value, dict) and step in value:
                value = value[step]
            else:
                value = None
                break
    if value is None or value == []:
        return False, [], False
    return True, list(value) if isinstance(value, list) else [value], False


def _meets(values: Sequence[Json], operator: str, wanted: Json, *, lowered: bool) -> bool:
    if operator == "in":
        return any(_meets(values, "eq", each, lowered=lowered) for each in wanted)
    if lowered:
        wanted = wanted.strip().lower() if operator == "eq" else wanted.lower()
    return any(_COMPARED[operator](value, wanted) for value in values)


def _equal(value: Json, wanted: Json) -> bool:
    if isinstance(value, datetime):
        return value == moment(wanted)
    return _kind(value) == _kind(wanted) and bool(value == wanted)


def _ordered(sign: Callable[[Any, Any], bool]) -> Callable[[Json, Json], bool]:
    def compared(value: Json, wanted: Json) -> bool:
        if isinstance(value, datetime):
            return sign(value, moment(wanted))
        if _kind(value) != _kind(wanted) or _kind(value) not in ("number", "text"):
            return False
        if isinstance(wanted, str) and (asked := moment(wanted)) is not None:
            stored = moment(value)
            return stored is not None and sign(stored, asked)
        return sign(value, wanted)

    return compared


def _kind(value: Json) -> str:
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__


_COMPARED: Mapping[str, Callable[[Json, Json], bool]] = {
    "eq": _equal,
    "gt": _ordered(lambda value, wanted: value > wanted),
    "gte": _ordered(lambda value, wanted: value >= wanted),
    "lt": _ordered(lambda value, wanted: value < wanted),
    "lte": _ordered(lambda value, wanted: value <= wanted),
    "contains": lambda value, wanted: isinstance(value, str) and wanted in value,
    "icontains": lambda value, wanted: isinstance(value, str) and wanted.casefold() in value.casefold(),
}


def moment(text: Json) -> datetime | None:
    """The moment that a text names, in the forms that the random rows use."""
    if isinstance(text, datetime):
        return text
    if not isinstance(text, str) or not re.match(r"\d{4}-\d\d-\d\d", text):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
