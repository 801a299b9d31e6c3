"""A LangGraph store whose items are memories.

    from loxodon import Memory
    from loxodon.integrations.langgraph import LoxodonStore

    store = LoxodonStore(Memory(), user_at=1)            # ("memories", "alice") is alice's
    graph = builder.compile(store=store)

An item is one memory: its text is what the item says, so `recall` and `search` of Loxodon find it too, and its metadata
holds namespace, key and value. Its UUID follows from them, so a put is one atomic store.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeAlias, cast
from uuid import UUID, uuid5

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
    tokenize_path,
)

from loxodon import LoxodonError, Memory, NotFoundError, types

NAMES = UUID("7f3a4d0e-5d5b-4c59-9d8e-0d7a6f1b2c31")
PAGE = 500
MOST_FOUND = 1000
"""As many as one search of the service gives."""
NO_NUL = "\ufffd"
AT_ONCE = 25
"""Stores in one request: with the largest metadata a body stays within its limit."""

Namespace: TypeAlias = tuple[str, ...]


class LoxodonStore(BaseStore):
    """A `BaseStore` on a `Memory`.

    Everything in it belongs to `agent_id`. `user_at` is the place, from 0, of the user's id in namespaces that have
    one: those items belong to that user, so a key of that user reaches them and deleting the user takes them along.
    `fields`: paths of values that a query is compared with, as in LangGraph's `index`; left out, all texts of a value.
    """

    __slots__ = ("_agent_id", "_fields", "_memory", "_user_at")

    def __init__(
        self,
        memory: Memory,
        *,
        agent_id: str = "langgraph",
        user_at: int | None = None,
        fields: list[str] | None = None,
    ) -> None:
        self._memory = memory
        self._agent_id = agent_id
        self._user_at = user_at
        self._fields = fields

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Reads first, as they were before the writes; of several writes of a key the last one counts."""
        ops = list(ops)
        results: list[Result] = [None] * len(ops)
        puts: dict[tuple[Namespace, str], PutOp] = {}
        for index, op in enumerate(ops):
            if isinstance(op, GetOp):
                results[index] = self._get(op)
            elif isinstance(op, SearchOp):
                results[index] = self._search(op)
            elif isinstance(op, ListNamespacesOp):
                results[index] = self._list_namespaces(op)
            elif isinstance(op, PutOp):
                puts[op.namespace, op.key] = op
            else:
                raise TypeError(f"LoxodonStore does not know {type(op).__name__}")
        self._put(list(puts.values()))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same in a thread: one pool of connections serves any number of event loops."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _get(self, op: GetOp) -> Item | None:
        try:
            found = self._item(self._memory.get(self._id(op.namespace, op.key), reinforce=op.refresh_ttl))
        except NotFoundError:
            return None
        return found and Item(
            value=found.value,
            key=op.key,
            namespace=op.namespace,
            created_at=found.created_at,
            updated_at=found.updated_at,
        )

    def _put(self, ops: list[PutOp]) -> None:
        for op in ops:
            if op.value is None:
                with contextlib.suppress(NotFoundError):
                    self._memory.delete(self._id(op.namespace, op.key))
        stored = [self._stored(op, op.value) for op in ops if op.value is not None]
        for start in range(0, len(stored), AT_ONCE):
            part = stored[start : start + AT_ONCE]
            for each in self._memory.add_many(part)["results"]:
                if error := each["error"]:
                    item = part[each["index"]]["metadata"]
                    raise LoxodonError(f"{item['namespace']} {item['key']!r} was not stored: {error['detail']}")

    def _stored(self, op: PutOp, value: Mapping[str, Any]) -> types.StoreRequest:
        text = "" if op.index is False else self._text(value, op.index)
        text = text.replace("\0", NO_NUL)
        metadata = {
            "namespace": list(op.namespace),
            "within": [_name(op.namespace[:depth]) for depth in range(1, len(op.namespace) + 1)],
            "key": op.key,
            "value": _without_nul(dict(value)),
            "json": json.dumps(dict(value), ensure_ascii=False, allow_nan=False),
            "indexed": bool(text),
        }
        return {
            "agent_id": self._agent_id,
            "user_id": self._user(op.namespace),
            "id": self._id(op.namespace, op.key),
            "content": text or f"{'.'.join(op.namespace)} {op.key}",
            "metadata": metadata,
            "dedup": False,
            "use_llm": False,
        }

    def _text(self, value: Mapping[str, Any], index: list[str] | None) -> str:
        """What a query is compared with."""
        paths = index or self._fields
        if paths is None:
            return "\n".join(_texts(value))
        return "\n".join(text for path in paths for text in get_text_at_path(value, tokenize_path(path)))

    def _search(self, op: SearchOp) -> list[SearchItem]:
        conditions: list[types.FilterInput] = []
        if op.namespace_prefix:
            conditions.append(_within(op.namespace_prefix))
        conditions += [each for each in map(_condition, (op.filter or {}).items()) if each is not None]
        wanted = op.offset + op.limit
        found = self._answers(op, conditions, wanted) if op.query else self._listed(op.namespace_prefix, conditions)
        matching: list[SearchItem] = []
        for memory, score in found:
            item = self._item(memory, op.namespace_prefix)
            if item is not None and _matches(item.value, op.filter or {}):
                matching.append(
                    SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, score)
                )
                if len(matching) >= wanted:
                    break
        return matching[op.offset :]

    def _answers(
        self, op: SearchOp, conditions: list[types.FilterInput], wanted: int
    ) -> Iterator[tuple[types.MemoryResponse, float | None]]:
        conditions = [*conditions, {"field": "metadata.indexed", "operator": "eq", "value": True}]
        answer = self._memory.search(
            op.query,
            agent_id=self._agent_id,
            user_id=self._user(op.namespace_prefix),
            filters={"AND": conditions},
            limit=MOST_FOUND if op.filter else min(wanted, MOST_FOUND),
            validity="ignore",
            include_archived=True,
            reinforce=op.refresh_ttl,
            detail="full",
        )
        for hit in answer["results"]:
            yield cast(types.MemoryResponse, hit), hit["score"]

    def _listed(
        self, within: Namespace, conditions: list[types.FilterInput]
    ) -> Iterator[tuple[types.MemoryResponse, float | None]]:
        for memory in self._memory.list(
            agent_id=self._agent_id,
            user_id=self._user(within),
            filters=json.dumps({"AND": conditions}) if conditions else None,
            sort="updated_at",
            include_archived=True,
            limit=PAGE,
            detail="full",
        ):
            yield cast(types.MemoryResponse, memory), None

    def _list_namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        """Goes through all items below the longest prefix that is asked for."""
        prefix = next((_fixed(each) for each in op.match_conditions or () if each.match_type == "prefix"), ())
        listed = self._listed(prefix, [_within(prefix)] if prefix else [])
        items = (self._item(memory, prefix) for memory, _ in listed)
        found = {item.namespace for item in items if item is not None}
        kept = {
            namespace[: op.max_depth]
            for namespace in found
            if all(_fits(each, namespace) for each in op.match_conditions or ())
        }
        return sorted(kept)[op.offset : op.offset + op.limit]

    def _item(self, memory: types.MemoryResponse, prefix: Namespace = ()) -> Item | None:
        """None for a memory that is no item of a store.

        The text of the value counts, which keeps the order of its keys. Where redaction took out a number that stood
        bare, that text is no JSON any more, and the value as the service holds it counts. Of the namespace, which is
        redacted like all metadata, what is known otherwise is put back.
        """
        held = memory["metadata"]
        if "namespace" not in held or "value" not in held:
            return None
        try:
            value = json.loads(held["json"])
        except (KeyError, ValueError):
            value = held["value"]
        namespace = [*prefix, *held["namespace"][len(prefix) :]]
        if memory["user_id"] and self._user_at is not None:
            namespace[self._user_at] = memory["user_id"]
        return Item(
            value=value,
            key=held["key"],
            namespace=tuple(namespace),
            created_at=datetime.fromisoformat(memory["created_at"]),
            updated_at=datetime.fromisoformat(memory["updated_at"]),
        )

    def _user(self, namespace: Namespace) -> str | None:
        return namespace[self._user_at] if self._user_at is not None and len(namespace) > self._user_at else None

    def _id(self, namespace: Namespace, key: str) -> str:
        return str(uuid5(NAMES, json.dumps([self._agent_id, list(namespace), key])))


def _name(namespace: Namespace) -> str:
    """A namespace as a UUID: nothing that redaction would find, whatever its labels are."""
    return str(uuid5(NAMES, json.dumps(list(namespace))))


def _within(namespace: Namespace) -> types.FilterInput:
    return {"field": "metadata.within", "operator": "eq", "value": _name(namespace)}


def _without_nul(value: Any) -> Any:
    """The service takes no NUL; the value to the letter is in its JSON, which writes NUL in other signs."""
    if isinstance(value, str):
        return value.replace("\0", NO_NUL)
    if isinstance(value, Mapping):
        return {_without_nul(key): _without_nul(each) for key, each in value.items()}
    return [_without_nul(each) for each in value] if isinstance(value, (list, tuple)) else value


def _texts(value: Any) -> Generator[str]:
    """All texts of a value, in order."""
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)


def _condition(wanted: tuple[str, Any]) -> types.FilterInput | None:
    """What the service can look up; it may let too much pass, and `_matches` decides."""
    key, value = wanted
    operator: Any = "eq"
    if isinstance(value, Mapping) and len(value) == 1:
        operator, value = next(iter(value.items()))
        operator = {"$eq": "eq", "$gt": "gt", "$gte": "gte", "$lt": "lt", "$lte": "lte"}.get(operator)
    if isinstance(value, str):
        can_be_asked = operator == "eq" and 0 < len(value) <= 200
    else:
        can_be_asked = operator in ("gt", "gte", "lt", "lte") and isinstance(value, (int, float))
    if not (can_be_asked and key.isidentifier()):
        return None
    return {"field": f"metadata.value.{key}", "operator": operator, "value": value}


def _matches(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(_compares(value.get(key), each) for key, each in wanted.items())


def _compares(value: Any, wanted: Any) -> bool:
    """As LangGraph's own stores compare."""
    if isinstance(wanted, Mapping):
        if any(key.startswith("$") for key in wanted):
            return all(COMPARED[key](value, each) for key, each in wanted.items())
        return isinstance(value, Mapping) and _matches(value, wanted)
    if isinstance(wanted, (list, tuple)):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(_compares, value, wanted))
    return bool(value == wanted)


COMPARED: dict[str, Any] = {
    "$eq": lambda value, wanted: value == wanted,
    "$ne": lambda value, wanted: value != wanted,
    "$gt": lambda value, wanted: value is not None and float(value) > float(wanted),
    "$gte": lambda value, wanted: value is not None and float(value) >= float(wanted),
    "$lt": lambda value, wanted: value is not None and float(value) < float(wanted),
    "$lte": lambda value, wanted: value is not None and float(value) <= float(wanted),
}


def _fixed(condition: MatchCondition) -> Namespace:
    """The labels before the first wildcard."""
    labels = list(condition.path)
    return tuple(labels[: labels.index("*")] if "*" in labels else labels)


def _fits(condition: MatchCondition, namespace: Namespace) -> bool:
    size = len(condition.path)
    if len(namespace) < size:
        return False
    part = namespace[:size] if condition.match_type == "prefix" else namespace[len(namespace) - size :]
    return all(wanted in ("*", label) for wanted, label in zip(condition.path, part, strict=True))
