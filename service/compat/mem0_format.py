"""Translates mem0's requests into this service's, and memories into mem0's form; pure.

A mem0 filter is an object of fields, with AND, OR and NOT over lists. The entities in it (user_id, agent_id, run_id)
determine the scope: those that every match must have. An app_id is kept in the metadata.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from service.compat.adapter_routes import moment, objects_in, present, whole_number
from service.domain import filters, moments, sizes
from service.domain.errors import InvalidInput
from service.domain.memory import LeanMemory, Memory
from service.http.schemas import iso
from service.intake.deferred import KIND
from service.memories.values import MemoryHistoryItem
from service.queue.statements.operations import OperationRecord
from service.search.routes.search_models import RankingTuning

ENTITIES: Final = ("user_id", "agent_id", "run_id")
NAMES: Final[Mapping[str, str]] = {
    **{name: name for name in (*ENTITIES, "memory", "updated_at")},
    "created_at": "timestamp",
    "app_id": "metadata.app_id",
    "categories": "category",
    "feedback": "metadata.feedback",
    "keywords": "memory",
    "memory_ids": "id",
}
"""Fields of mem0's memories and their names here. Every other name is a metadata key."""

KEPT_IN_METADATA: Final = ("app_id", "feedback", "feedback_reason")
MAX_REPR: Final = 2_000
"""The most characters of `filters` in a query, in which mem0's Python client sends the repr of a dictionary."""

MOST_OWNERS: Final = 10
"""The most scopes that one request may read, one after the other."""

Owner = dict[str, str]
"""Ids by name: one of several ways in which a filter can match."""

NOT_OFFERED: Final[Mapping[str, str]] = {
    "api/v1/orgs": "Organizations, projects and members are workspaces and keys here: /v1/workspaces and /v1/api-keys. "
    "Instructions and categories of a project are not kept; extraction is set per workspace.",
    "api/v1/webhooks": "Webhooks in mem0's format are not available: see POST /v1/webhooks.",
    "v1/exports": "Exports by schema are not available: read all memories with get_all or GET /v1/memories.",
    "v1/summary": "Summaries of memories are not available: POST /v1/recall returns a text for a prompt.",
    "v2/profiles": "Profiles need no settings and no jobs here: see GET /v1/users/{user_id}/profile.",
    "v2/entities": "Profiles in mem0's format are not available: see GET /v1/users/{user_id}/profile.",
}
"""Messages by the beginning of the path."""

# -- filters -----------------------------------------------------------------------------------------------------------


def tree(given: object, where: str = "filters") -> dict[str, Any] | None:
    """The filter in this service's form, None for an empty one; raises InvalidInput."""
    if not isinstance(given, dict):
        raise InvalidInput(f'{where}: must be an object, such as {{"user_id": "alice"}}.', field=where)
    parts = [part for name, value in given.items() for part in _parts(name, value, f"{where}.{name[:100]}")]
    return parts[0] if len(parts) == 1 else {"AND": parts} if parts else None


def _parts(name: str, value: Any, where: str) -> list[dict[str, Any]]:
    if name in ("AND", "OR"):
        return [{name: _members(value, where)}]
    if name == "NOT":
        inner = _members(value if isinstance(value, list) else [value], where)
        return [{"NOT": inner[0] if len(inner) == 1 else {"OR": inner}}]
    if name == "metadata":
        if not isinstance(value, dict):
            raise InvalidInput(f"{where}: must be an object with fields of metadata.", field=where)
        return [each for key, wanted in value.items() for each in _conditions(f"metadata.{key}", wanted, where)]
    own = _conditions(f"metadata.{name.removeprefix('metadata.')}", value, where)
    is_ordered = all(each["operator"] in filters.ORDER for each in own)
    if name == "timestamp" and is_ordered:  # a field of mem0's, or a metadata key
        return [{"OR": [{"AND": _conditions(name, value, where)}, {"AND": own}]}]
    return _conditions(NAMES[name], value, where) if name in NAMES else own


def _members(value: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value:
        raise InvalidInput(f"{where}: must be a list of conditions.", field=where)
    members = [tree(each, f"{where}[{index}]") for index, each in enumerate(value)]
    if any(member is None for member in members):
        raise InvalidInput(f"{where}: contains an empty condition.", field=where)
    return [member for member in members if member is not None]


def _conditions(field: str, value: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(value, dict):
        return [_condition(field, "in" if isinstance(value, list) else "eq", value, where)]
    if not value:
        raise InvalidInput(f"{where}: has no operator.", field=where)
    return [_condition(field, operator, wanted, f"{where}.{operator[:100]}") for operator, wanted in value.items()]


def _condition(field: str, operator: str, value: Any, where: str) -> dict[str, Any]:
    """One condition, `*` for anything that is there; raises InvalidInput with the place in mem0's filter."""
    if operator in ("eq", "in") and "*" in (value if isinstance(value, list) else [value]):
        operator, value = "ne", None
    elif operator == "ne" and value == "*":
        operator, value = "eq", None
    condition = {"field": field, "operator": operator, "value": value}
    try:
        filters.read(condition, where)
    except InvalidInput as exc:
        fault = exc.detail.removeprefix(where).partition(": ")[2]
        raise InvalidInput(f"{where}: {fault}", field=where) from None
    return condition


# -- whose memories ----------------------------------------------------------------------------------------------------


def scopes(sent: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The scopes of a search or list, as fields of a request; none if the filter contradicts itself. Raises
    InvalidInput if the filter does not determine them, or there are too many."""
    if yes_or_no(sent, "show_expired"):
        raise InvalidInput("show_expired: is not supported; expired memories are deleted.", field="show_expired")
    given = sent.get("filters")
    if sizes.count(given) > filters.MAX_JSON_VALUES:
        raise InvalidInput(f"filters: contains more than {filters.MAX_JSON_VALUES:,} values.", field="filters")
    if given is not None:
        tree(given)  # also where it then matches nothing
    named = present(sent, *ENTITIES)
    for name, value in named.items():
        _condition(name, "eq", value, name)
    owners = _join([named], _owners(given) if isinstance(given, dict) else [{}])
    kinds = {tuple(sorted(owner)) for owner in owners}
    if len(owners) <= 1 or () in kinds:
        return [{}] if () in kinds else list(owners)
    if len(kinds) == len(owners) and all(len(kind) == 1 for kind in kinds):
        return [{"scope_match": "any", **{name: value for owner in owners for name, value in owner.items()}}]
    if len(kinds) > 1 or len(owners) > MOST_OWNERS:
        detail = f"filters: too many combinations of ids; send several requests (at most {MOST_OWNERS} ids "
        raise InvalidInput(f"{detail}of one kind, or one id of each kind, are accepted at once).", field="filters")
    return list(owners)


def _owners(given: Mapping[str, Any]) -> list[Owner]:
    owners: list[Owner] = [{}]
    for name, value in given.items():
        if name == "AND" and isinstance(value, list):
            for each in value:
                owners = _join(owners, _owners(each) if isinstance(each, dict) else [{}])
        elif name == "OR" and isinstance(value, list):
            owners = _join(owners, [way for each in value if isinstance(each, dict) for way in _owners(each)])
        elif name in ENTITIES and (named := _ids_named(value)):
            owners = _join(owners, [{name: each} for each in named])
    return owners


def _ids_named(value: Any) -> list[str]:
    """The ids that a condition allows; empty if it allows all."""
    if isinstance(value, dict):
        value = value.get("eq", value.get("in"))
    ids = value if isinstance(value, list) else [value]
    return [each for each in ids if isinstance(each, str)] if "*" not in ids else []


def _join(one: Sequence[Owner], other: Sequence[Owner]) -> list[Owner]:
    """Every consistent combination of both, each once."""
    if len(one) * len(other) > filters.MAX_CONDITIONS:
        raise InvalidInput("filters: names too many users, agents and runs.", field="filters")
    ways = [{**a, **b} for a in one for b in other if all(b.get(name, value) == value for name, value in a.items())]
    return [way for index, way in enumerate(ways) if way not in ways[:index]]


def narrow(sent: Mapping[str, Any], scope: Mapping[str, Any]) -> dict[str, Any] | None:
    """The filter of a search or list, without the conditions of its only scope."""
    given = sent.get("filters")
    parts = [] if given is None else [tree(_without(given, scope) if isinstance(given, dict) else given)]
    for name, operator in (("start_date", "gte"), ("end_date", "lte")):
        if sent.get(name) is not None:
            parts.append(_condition(NAMES["created_at"], operator, iso(moment(sent[name], name)), name))
    for name, operator in (("app_id", "eq"), ("keywords", "icontains")):
        if sent.get(name) is not None:
            parts.append(_condition(NAMES[name], operator, sent[name], name))
    if sent.get("metadata") is not None:
        parts += _parts("metadata", sent["metadata"], "metadata")
    parts = [part for part in parts if part is not None]
    return parts[0] if len(parts) == 1 else {"AND": parts} if parts else None


def _without(given: Mapping[str, Any], scope: Mapping[str, Any]) -> dict[str, Any]:
    if "scope_match" in scope:
        return dict(given)
    left = {name: each for name, each in given.items() if not (name in ENTITIES and scope.get(name) == each)}
    if isinstance(left.get("AND"), list):
        inner = [_without(each, scope) if isinstance(each, dict) else each for each in left.pop("AND")]
        if inner := [each for each in inner if each != {}]:
            left["AND"] = inner
    return left


# -- requests ----------------------------------------------------------------------------------------------------------

TAKEN: Final = frozenset(
    {*ENTITIES, "messages", "filters", "metadata", "infer", "timestamp", "expiration_date", "async_mode"}
)
WITHOUT_MEANING: Final = frozenset(
    {"api_version", "app_id", "enable_graph", "org_id", "org_name", "output_format", "project_id", "project_name"}
    | {"source", "version"}
)
"""Fields of an add without an effect here, and app_id, which is kept."""


def yes_or_no(sent: Mapping[str, Any], name: str) -> bool | None:
    """The answer in a query or body, None if there is none; raises InvalidInput."""
    given = sent.get(name)
    if given is None or isinstance(given, bool):
        return given
    if given not in ("true", "false"):
        raise InvalidInput(f"{name}: must be true or false.", field=name)
    return bool(given == "true")


def page(sent: Mapping[str, Any], *, size: int, most: int) -> tuple[int, int]:
    """`page`, and `page_size` (or `limit`), at most `most`; raises InvalidInput for a number below 1."""
    given = sent.get("page_size", sent.get("limit"))
    number = whole_number(sent.get("page"), "page", default=1, most=1_000_000, strict=True)
    return number, whole_number(given, "page_size", default=size, most=most, strict=True)


def conversation(sent: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The body of POST /v1/memories for an add, and warnings about ignored fields; raises InvalidInput."""
    if sent.get("messages") in (None, []):
        raise InvalidInput('messages: are missing; send a list of {"role", "content"}.', field="messages")
    named = sent.get("filters") or {}
    if not isinstance(named, dict):
        raise InvalidInput("filters: must be an object.", field="filters")
    body = {**present(named, *ENTITIES), **present(sent, *ENTITIES), "messages": _messages(sent["messages"])}
    body["metadata"] = sent.get("metadata") or {}
    app_id = sent.get("app_id") or named.get("app_id")
    if isinstance(body["metadata"], dict) and app_id:
        body["metadata"] = {**body["metadata"], "app_id": app_id}
    if sent.get("infer") is not None:
        body["infer"] = sent["infer"]
    if sent.get("timestamp") is not None:
        zone = moments.zone_of(sent["timestamp"])
        body |= {"timestamp": moment(sent["timestamp"], "timestamp"), "timezone": zone}
    if sent.get("expiration_date") is not None:
        body["expires_at"] = expiry(sent["expiration_date"])
    unused = [name for name, value in sent.items() if value is not None and name not in TAKEN | WITHOUT_MEANING]
    return body, [f"not_used: {name[:100]} has no meaning here and was ignored." for name in unused[:20]]


def _messages(given: Any) -> Any:
    if isinstance(given, dict):
        given = [given]
    return [_message(each) for each in given] if isinstance(given, list) else given


def _message(given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    message = present(given, "role", "content", "name", "timestamp", "created_at")
    if isinstance(message.get("content"), dict):
        message["content"] = [message["content"]]
    return message


def expiry(given: object) -> datetime | None:
    """The moment after a memory's last day; None for null."""
    if given is None:
        return None
    given_end = moment(given, "expiration_date").astimezone(UTC)
    return given_end.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)


def search_body(sent: Mapping[str, Any], most: int) -> dict[str, Any]:
    """The body of POST /v1/memories/search, without its scope and filter; raises InvalidInput."""
    given = {
        "query": sent.get("query"),
        "limit": whole_number(sent.get("top_k", sent.get("limit")), "top_k", default=10, most=most, strict=True),
        "categories": sent.get("categories") or [],
        "turns": False,
        "detail": "full",
    }
    if not isinstance(given["query"], str) or not given["query"].strip():
        raise InvalidInput("query: must be a string that is not blank.", field="query")
    if sent.get("threshold") is not None:
        given["min_score"] = sent["threshold"]
    if sent.get("reference_date") is not None:
        given["timestamp"] = moment(sent["reference_date"], "reference_date")
    if (rerank := yes_or_no(sent, "rerank")) is not None:
        given["tuning"] = RankingTuning(rerank=rerank)
    return given


def patch_body(sent: Mapping[str, Any]) -> dict[str, Any]:
    """The body of PATCH /v1/memories/{id}; raises InvalidInput if nothing changes."""
    given = present(sent, "metadata")
    if sent.get("text", sent.get("data")) is not None:
        given["content"] = sent.get("text", sent.get("data"))
    if "expiration_date" in sent:
        given["expires_at"] = expiry(sent["expiration_date"])
    if sent.get("timestamp") is not None:
        given |= {"timestamp": moment(sent["timestamp"], "timestamp"), "allow_system_fields": True}
    if not given:
        raise InvalidInput("text: give at least one of text, metadata, timestamp and expiration_date.", field="text")
    return given


def items(sent: Mapping[str, Any], most: int) -> list[dict[str, Any]]:
    """The members of `memories`, or of `memory_ids`; raises InvalidInput."""
    given = sent.get("memories", sent.get("memory_ids"))
    if isinstance(given, list):
        given = [each if isinstance(each, dict) else {"memory_id": each} for each in given]
    items = objects_in({"memories": given}, "memories", most)
    for index, each in enumerate(items):
        if not isinstance(each.get("memory_id"), str):
            raise InvalidInput(f"memories[{index}].memory_id: is missing.", field=f"memories[{index}].memory_id")
    return items


def parse_repr(given: str | None) -> dict[str, Any]:
    """Parses `{'user_id': 'alice'}` as mem0's Python client writes it; raises InvalidInput for anything else."""
    if given is None:
        return {}
    try:
        value = ast.literal_eval(given) if len(given) <= MAX_REPR else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None
    if not isinstance(value, dict) or not all(isinstance(each, str) for pair in value.items() for each in pair):
        detail = "filters: must be an object of ids, such as {'user_id': 'alice'}."
        raise InvalidInput(detail, field="filters")
    return value


# -- answers -----------------------------------------------------------------------------------------------------------


def memory_item(memory: Memory, **more: Any) -> dict[str, Any]:
    """A memory as mem0 shows it."""
    metadata = dict(memory.metadata)
    kept = {name: metadata.pop(name, None) for name in KEPT_IN_METADATA}
    last_day = None if memory.expires_at is None else (memory.expires_at - timedelta(microseconds=1)).date().isoformat()
    return {
        "id": str(memory.id),
        "memory": memory.text,
        "hash": memory.hash,
        "user_id": memory.scope.user_id,
        "agent_id": memory.scope.agent_id,
        "run_id": memory.scope.run_id,
        **kept,
        "metadata": metadata,
        "categories": list(memory.categories),
        "expiration_date": last_day,
        "created_at": iso(memory.timestamp),
        "updated_at": iso(memory.updated_at),
        **more,
    }


def history_entry(entry: MemoryHistoryItem) -> dict[str, Any]:
    """A change of a memory as mem0 shows it."""
    return {
        "id": str(entry.id),
        "memory_id": str(entry.memory_id),
        "event": entry.event,
        "input": None,
        "old_memory": entry.old_memory,
        "new_memory": entry.new_memory,
        "user_id": entry.user_id,
        "metadata": {},
        "created_at": iso(entry.timestamp),
        "updated_at": iso(entry.timestamp),
    }


def added_item(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """The outcome for one fact of an add, from that of POST /v1/memories."""
    item = {"id": outcome["id"], "event": outcome["event"], "memory": outcome["memory"]}
    if outcome.get("old_memory"):
        item["previous_memory"] = outcome["old_memory"]
    return {**item, "data": {"memory": outcome["memory"]}}


STATUS: Final[Mapping[str, str]] = {
    "queued": "PENDING",
    "running": "RUNNING",
    "done": "SUCCEEDED",
    "failed": "FAILED",
}
"""The status of an event by the state of its operation."""


def made_by(operation: OperationRecord) -> list[UUID]:
    """The ids of the memories that an event made."""
    return [UUID(each["id"]) for each in (operation.result or {}).get("results", []) if each.get("id")]


def event_item(operation: OperationRecord, texts: Mapping[UUID, LeanMemory]) -> dict[str, Any]:
    """The event of an add or a long deletion, as mem0 shows it. `texts`: of the new memories."""
    results = [
        {**each, "data": {"memory": texts[UUID(each["id"])].text}}
        for each in (operation.result or {}).get("results", [])
        if each.get("id") and UUID(each["id"]) in texts
    ]
    warnings = (operation.result or {}).get("warnings", [])
    faults = (warning for warning in warnings if warning.startswith("llm_"))  # the language model failed
    return {
        "id": str(operation.id),
        "event_type": "ADD" if operation.kind == KIND else "DELETE",
        "status": STATUS[operation.state],
        "results": results,
        "error": (operation.error or {}).get("detail") or next(faults, None),
        "warnings": warnings,
        "created_at": iso(operation.created_at),
        "updated_at": iso(operation.finished_at or operation.created_at),
    }


def choose_fields(item: dict[str, Any], sent: Mapping[str, Any]) -> dict[str, Any]:
    """The item, or its requested `fields` with those that every client needs."""
    wanted = sent.get("fields") or []
    if not isinstance(wanted, list):
        raise InvalidInput("fields: must be a list.", field="fields")
    kept = {"id", "memory", "score", *map(str, wanted)}
    return {name: value for name, value in item.items() if not wanted or name in kept}
