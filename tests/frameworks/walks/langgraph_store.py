"""The LangGraph store: the cases of LangGraph's documentation, and random operations beside its own InMemoryStore.

LangGraph ships no tests for stores of others.
"""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from loxodon import LoxodonError, Memory
from loxodon.integrations.langgraph import LoxodonStore

memory = Memory()


def main() -> None:
    documented(LoxodonStore(memory, agent_id="documented"))
    values_come_back(LoxodonStore(memory, agent_id="values"))
    users(LoxodonStore(memory, agent_id="users", user_at=1))
    queries(LoxodonStore(memory, agent_id="queries", fields=["text"]))
    asyncio.run(at_once(LoxodonStore(memory, agent_id="async")))
    for seed in range(3):
        as_in_memory(LoxodonStore(memory, agent_id=f"random-{seed}"), InMemoryStore(), random.Random(seed))
    print("langgraph store: ok")


def documented(store: BaseStore) -> None:
    store.put(("users", "123"), "prefs", {"theme": "dark", "size": 3})
    item = store.get(("users", "123"), "prefs")
    assert item is not None
    assert (item.value, item.key, item.namespace) == ({"theme": "dark", "size": 3}, "prefs", ("users", "123"))
    assert item.created_at.tzinfo is not None
    store.put(("users", "123"), "prefs", {"theme": "light"})
    again = store.get(("users", "123"), "prefs")
    assert again is not None
    assert again.value == {"theme": "light"}
    assert again.created_at == item.created_at
    assert again.updated_at > item.updated_at
    assert store.search(("users", "123"), filter={"size": 3}) == []
    store.put(("users", "456"), "prefs", {"theme": "dark"})
    assert {each.namespace for each in store.search(("users",))} == {("users", "123"), ("users", "456")}
    assert [each.namespace for each in store.search(("users",), filter={"theme": "dark"})] == [("users", "456")]
    assert store.list_namespaces(prefix=("users",)) == [("users", "123"), ("users", "456")]
    store.delete(("users", "123"), "prefs")
    store.delete(("users", "123"), "never was")
    assert store.get(("users", "123"), "prefs") is None
    assert store.search(("users", "123")) == []
    store.put(("users", "123"), "prefs", {"theme": "blue"})
    assert store.search(("users", "123"))[0].value == {"theme": "blue"}
    for each in ((), ("a.b",), ("",), ("langgraph", "x")):
        try:
            store.put(each, "k", {"a": 1})
        except ValueError:
            continue
        raise AssertionError(each)


def values_come_back(store: BaseStore) -> None:
    """To the byte, and the order of keys. What redaction cuts out is cut out."""
    values: list[dict[str, Any]] = [
        {"z": 1, "a": {"y": [1, 2.5, None, True], "b": 'ü ∑ 🙂 \n\t \\ "'}},
        {"big": 1e22, "long": 123456789012345678901234567890, "small": 1e-7, "minus": -0.0, "float": 1.0},
        {"text": "  spaces  \r\n", "nul": "a\u0000b", "empty": "", "list": [], "object": {}},
        {"composed": "\u00e9", "decomposed": "e\u0301", "wide": "\uff21", "joiner": "a\u200db"},
        {"long text": "x y " * 5000},
        {},
    ]
    for index, value in enumerate(values):
        store.put(("values",), str(index), value)
        item = store.get(("values",), str(index))
        assert item is not None
        assert json.dumps(item.value) == json.dumps(value), (item.value, value)
    store.put(("values",), "secret", {"mail": "ana@example.org", "card": 4111111111111111, "note": "hello"})
    item = store.get(("values",), "secret")
    assert item is not None
    assert item.value["note"] == "hello"
    assert "ana@" not in str(item.value)
    assert "4111111111111111" not in str(item.value)
    try:
        store.put(("values",), "huge", {"text": "x" * 100_000})
    except LoxodonError as error:
        told = str(error)
    assert "65,536" in told, told


def users(store: BaseStore) -> None:
    """The label at `user_at` is the user, whatever redaction thinks of it."""
    store.put(("memories", "+49 151 23456789"), "a", {"text": "likes tea"})
    store.put(("memories", "bob"), "b", {"text": "likes coffee"})
    store.put(("settings",), "c", {"text": "no user here"})
    assert [each.key for each in store.search(("memories", "+49 151 23456789"))] == ["a"]
    assert store.list_namespaces() == [("memories", "+49 151 23456789"), ("memories", "bob"), ("settings",)]
    memory.delete_all(user_id="+49 151 23456789")
    assert store.get(("memories", "+49 151 23456789"), "a") is None
    assert memory.recall("coffee", user_id="bob")["facts"]


def queries(store: BaseStore) -> None:
    store.put(("docs",), "tea", {"text": "She drinks green tea in the morning", "lang": "en"})
    store.put(("docs",), "car", {"text": "The car is parked behind the house", "lang": "en"})
    store.put(("docs", "old"), "tee", {"text": "Hot drinks are served until noon", "lang": "de"})
    store.put(("docs",), "hidden", {"text": "what does she drink: tea"}, index=False)
    store.put(("docs",), "by title", {"title": "Engines of cars", "text": "tea"}, index=["title"])
    found = store.search(("docs",), query="what does she drink", limit=2)
    assert found[0].key == "tea", found
    assert found[0].score is not None
    assert len(found) == 2
    assert "hidden" not in [each.key for each in store.search(("docs",), query="drink tea", limit=10)]
    assert [each.key for each in store.search(("docs",), query="drink", filter={"lang": "de"})] == ["tee"]
    assert store.search(("docs",), query="drink", offset=1)[0].key == store.search(("docs",), query="drink")[1].key


async def at_once(store: BaseStore) -> None:
    await asyncio.gather(*(store.aput(("n",), "same", {"number": number}) for number in range(10)))
    assert len(await store.asearch(("n",))) == 1
    await asyncio.gather(*(store.aput(("n",), str(number), {"number": number}) for number in range(10)))
    await store.adelete(("n",), "same")
    found = await store.asearch(("n",), limit=20, filter={"number": {"$gte": 4}})
    assert sorted(each.value["number"] for each in found) == [4, 5, 6, 7, 8, 9]
    assert await store.aget(("n",), "same") is None
    assert await store.alist_namespaces() == [("n",)]


def as_in_memory(store: BaseStore, model: InMemoryStore, dice: random.Random) -> None:
    """The same operations give the same, but for times and the order of what has none."""
    labels, keys = ("a", "b", "C", "c"), ("k", "K", "über", "x/y z")

    def namespace(shortest: int = 1) -> tuple[str, ...]:
        return tuple(dice.choice(labels) for _ in range(dice.randint(shortest, 3)))

    def value() -> dict[str, Any]:
        kinds: list[Any] = [1, 2.5, "red", "blue", True, None, ["red"], {"deep": 1}]
        return {name: dice.choice(kinds) for name in ("p", "q", "n.o") if dice.random() < 0.7} | {"n": dice.random()}

    filters: list[dict[str, Any] | None] = [
        *(None, {"p": "red"}, {"p": ["red"]}, {"p": {"deep": 1}}, {"p": True}, {"p": None}),
        *({"p": {"$ne": "red"}}, {"n": {"$gt": 0.5, "$lt": 0.9}}, {"n": {"$lte": 0.5}}, {"n.o": "blue"}, {"query": 1}),
    ]
    conditions: list[tuple[MatchCondition, ...] | None] = [
        None,
        (MatchCondition("prefix", ("a",)),),
        (MatchCondition("prefix", ("*", "b")), MatchCondition("suffix", ("c",))),
        (MatchCondition("suffix", ("a", "*")),),
    ]
    for _ in range(60):
        ops: list[Any] = []
        for _ in range(dice.randint(1, 4)):
            ops += [
                dice.choice(
                    (
                        PutOp(namespace(), dice.choice(keys), value()),
                        PutOp(namespace(), dice.choice(keys), value()),
                        PutOp(namespace(), dice.choice(keys), None),
                        GetOp(namespace(), dice.choice(keys)),
                        SearchOp(namespace(0), dice.choice(filters), limit=1000),
                        ListNamespacesOp(dice.choice(conditions), max_depth=dice.choice((None, 1, 2)), limit=1000),
                    )
                )
            ]
        listing = [op for op in ops if isinstance(op, ListNamespacesOp)][:1]
        for empty in [each for each, items in model._data.items() if not items]:
            del model._data[empty]  # an InMemoryStore lists namespaces whose items are gone
        ops = listing or ops
        for op, told, wanted in zip(ops, store.batch(ops), model.batch(ops), strict=True):
            assert plain(told) == plain(wanted), (op, plain(told), plain(wanted))


def plain(result: Any) -> Any:
    if isinstance(result, list):
        return sorted((plain(each) for each in result), key=str)
    return (result.namespace, result.key, json.dumps(result.value)) if isinstance(result, Item) else result


if __name__ == "__main__":
    main()
