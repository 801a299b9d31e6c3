"""A secret in any field that the OpenAPI document has gets into no table and into no log; a purge leaves no word.

Every place that takes a text, of every operation, gets a secret that is unlike all others in a request that is valid
but for it. Then all tables are read, and what was logged. `CANARIES=all` puts every kind of secret into every place.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient, Response

from service.domain.errors import LlmError
from service.domain.job import Job
from service.intake import deferred
from service.memories.jobs import enrich
from service.providers.protocols import LlmReply, LlmRequest
from service.redaction.detection.accounts import luhn
from service.runtime.resources import Resources
from tests.app.openapi_fields import KEY, Document, TextPlace
from tests.conftest import Tenant
from tests.redaction.vendor_grammars import BASE32, URL
from tests.support.application import Tables, client_of, serving
from tests.thorough import many

USER = "alice"
TALK: dict[str, Any] = {"messages": [{"role": "user", "content": "I moved to Lisbon last week."}], "user_id": USER}
NOT_FREE = {
    "create_api_key body rights.0",
    "forget body ids.0",
    *(f"{each} body cursor" for each in ("get_memories", "list_entities", "search_memories")),
    *(f"{each} body timezone" for each in ("recall", "search_memories", "store_memory", "store_conversation_later")),
    "store_memories body items.0.timezone",
    "create_webhook body url",
    "update_webhook body url",
}
"""Fields of bodies that take no words, although the document says no more than that they are texts."""

AMONG: dict[str, Any] = {"field": "tag", "operator": "in", "value": ["x"]}
TALK = {"messages": [{"role": "user", "content": "I moved to Lisbon last week."}], "user_id": USER}
TALKS = [TALK, {**TALK, "infer": False}]
PARTS: dict[str, Any] = {
    "messages": [{"role": "user", "content": [{"type": "text", "text": "I moved."}]}],
    "user_id": USER,
}
NESTED = [{"filters": each} for each in (AMONG, {"AND": [AMONG]}, {"OR": [AMONG]}, {"NOT": AMONG})]
MORE: dict[str, list[dict[str, Any]]] = {
    "store_memory": [*TALKS, PARTS, *({**TALK, **each} for each in NESTED)],
    "store_conversation_later": [*TALKS, *({**TALK, **each} for each in NESTED)],
    "search_memories": [
        {"query": "tea", "user_id": USER},
        *({"query": "tea", "user_id": USER, **each} for each in NESTED),
    ],
    "recall": [{"query": "tea", "user_id": USER}],
    "create_conversation": [{"run_id": "r", "user_id": USER}],
    "upsert_entity": [{"name": "Acme", "user_id": USER}],
}
"""Other forms of a request than the example's."""

NAMED = ("user_id", "agent_id", "run_id", "channel")
KEPT_BY_DESIGN = frozenset(
    {
        *(f"api_key.{column}" for column in ("name", "channels")),
        *(f"api_key.{prefix}{column}" for prefix in ("", "default_") for column in NAMED),
        "audit_log.request_id",  # of reads by id, which name no user
        "audit_log.session_id",
        "idempotency.key",  # of deletions, which name no user
        "tool.name",  # what tools the workspace has
        "webhook.description",
    }
)
"""What a purge of a user leaves: it belongs to the workspace."""

ALONE = frozenset({"reset_workspace", "create_workspace", "update_workspace"})
"""What would disturb the others gets a workspace of its own."""


def secret(kind: int, number: int) -> str:
    """A secret of one of three kinds, another one for each number."""
    chance = random.Random(number)
    if kind % 3 == 0:
        return "AKIA" + "".join(chance.choices(BASE32, k=16))
    if kind % 3 == 1:
        digits = "4" + "".join(chance.choices("0123456789", k=14))
        return next(digits + last for last in "0123456789" if luhn(digits + last))
    return "lox_" + "".join(chance.choices(URL, k=43))


def in_words(place: TextPlace, text: str) -> str:
    """As a text of some words where there is room; a name stands alone."""
    most = place.leaf.get("maxLength", 1_000)
    return f"see {text} there" if place.steps[-1][0] != KEY and most >= len(text) + 10 else text


class FailingModel:
    """Then conversations are kept as they are, with jobs that are to read them later."""

    model = "test:failing"

    async def complete(self, ask: LlmRequest) -> LlmReply:
        raise LlmError("down")

    async def close(self) -> None:
        return None


class FurnishedWorkspace:
    """Something of everything, so that every route finds what it is about."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client

    async def post(self, path: str, body: dict[str, Any], *, method: str = "POST") -> dict[str, Any]:
        answer = await self.client.request(method, path, json=body)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def memory(self) -> str:
        body = {"content": f"Likes tea {uuid4()}", "user_id": USER, "dedup": False, "channel": "side"}
        return str((await self.post("/v1/memories", body))["results"][0]["id"])

    async def conversation(self) -> str:
        return str((await self.post("/v1/conversations", {"external_id": str(uuid4()), "user_id": USER}))["id"])

    async def turn(self) -> str:
        path = f"/v1/conversations/{await self.conversation()}/turns"
        return str((await self.post(path, {"role": "user", "content": "Likes tea"}))["id"])

    async def entity(self) -> str:
        body = {"name": f"Acme {uuid4()}", "user_id": USER}
        return str((await self.post("/v1/entities", body, method="PUT"))["id"])

    async def goal(self) -> str:
        return str((await self.post("/v1/goals", {"description": "Go to Oslo", "user_id": USER}))["id"])

    async def strategy(self) -> str:
        return str((await self.post("/v1/strategies", {"description": "Ask first", "user_id": USER}))["id"])

    async def key(self) -> str:
        return str((await self.post("/v1/api-keys", {"name": "test", "rights": ["memory:read"]}))["id"])

    async def fill(self, path: str, place: TextPlace, text: str) -> str:
        """The path with something that is there in the place of its parameters."""
        made = {
            "memories": self.memory,
            "conversations": self.conversation,
            "turns": self.turn,
            "goals": self.goal,
            "strategies": self.strategy,
            "api-keys": self.key,
            "entities": self.entity,
        }
        resource = [*path.split("/"), ""][2]
        for name in re.findall(r"\{(\w+)\}", path):
            if place.kind == "path" and place.steps[0][0] == name:
                value = quote(text, safe="")
            elif name == "id":
                value = await made[resource]() if resource in made else str(uuid4())
            else:
                plain = {"type": "user", "user_id": USER, "key": "cart", "name": "Acme"}
                value = plain.get(name, "chat-1")
            path = path.replace(f"{{{name}}}", value)
        return path


REFERENCES: dict[str, dict[str, Callable[[FurnishedWorkspace], Awaitable[str]]]] = {
    "create_relation": {"target_id": FurnishedWorkspace.memory},
    "create_entity_relation": {"source_id": FurnishedWorkspace.entity, "target_id": FurnishedWorkspace.entity},
    "merge_entities": {"source_id": FurnishedWorkspace.entity, "target_id": FurnishedWorkspace.entity},
    "record_tool_invocation": {"conversation_id": FurnishedWorkspace.conversation},
    "reinforce_strategy": {"conversation_id": FurnishedWorkspace.conversation},
    "set_active_goal": {"goal_id": FurnishedWorkspace.goal},
}
"""Ids in bodies, of things that must be there."""


class Sender:
    """Puts texts into places. `sent` is what was put where."""

    def __init__(self, document: Document, world: FurnishedWorkspace, alone: FurnishedWorkspace) -> None:
        self.document, self.world, self.alone = document, world, alone
        self.sent: dict[str, str] = {}
        self.statuses: dict[str, set[int]] = {}

    async def send(self, place: TextPlace, text: str) -> None:
        self.sent[text.lower()] = place.name
        if place.kind == "body" and place.is_free:
            self.statuses.setdefault(place.name, set())
        value = in_words(place, text)
        inside = value if place.kind == "body" else "x"
        for body in self._bodies(place, inside):
            for headers in ({}, {"Prefer": "respond-async"}) if "messages" in (body or ()) else ({},):
                answer = await self._ask(place, text if place.kind == "header" else value, body, headers)
                if place.name in self.statuses:
                    self.statuses[place.name].add(answer.status_code)
                assert answer.status_code < 500, f"{place.name}: {answer.text}"

    def _bodies(self, place: TextPlace, value: str) -> list[Any]:
        if place.body is None:
            return [None]
        if place.kind == "body":
            forms = [each for each in MORE.get(place.operation, ()) if each in TALKS or place.steps[0][0] in each]
            return self.document.requests(place, value, forms)
        return place.body.get("examples", [])[:1] or [{}]

    async def _ask(self, place: TextPlace, value: str, body: Any, headers: dict[str, str]) -> Response:
        world = self.alone if place.operation in ALONE else self.world
        path = await world.fill(place.path, place, value)
        name = str(place.steps[0][0])
        params = {"user_id": USER} if "user_id" in place.beside else {}
        if place.kind == "query":
            params[name] = value
        sent = {**headers, **({name: value} if place.kind == "header" else {})}
        for reference, make in REFERENCES.get(place.operation, {}).items():
            if reference in body and value not in str(body[reference]):
                body[reference] = await make(world)
        return await world.client.request(place.method.upper(), path, params=params, json=body, headers=sent)


COLUMNS = """
    SELECT c.oid::regclass::text AS name, array_agg(a.attname ORDER BY a.attnum) AS columns,
           bool_or(a.attname = 'workspace_id') AS has_workspace
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
         JOIN pg_type t ON t.oid = a.atttypid
         JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'm') AND NOT c.relispartition AND n.nspname <> 'information_schema'
      AND n.nspname !~ '^pg_' AND (t.typcategory IN ('S', 'A', 'U') OR t.typname = 'uuid')
      AND t.typname NOT IN ('vector', 'halfvec', 'bit', '_int4', '_int8', '_float4', '_uuid')
    GROUP BY c.oid
"""


async def dumped(tables: Tables, workspaces: list[Any]) -> AsyncIterator[tuple[str, str]]:
    """Every column of every table as `table.column` and its texts in small letters; partitions with their table."""
    for table in await tables.fetch(COLUMNS):
        where = " WHERE workspace_id = ANY ($1)" if table["has_workspace"] else ""
        columns = ", ".join(
            f"""string_agg(coalesce("{each}"::text, ''), E'\\n') AS "{each}" """ for each in table["columns"]
        )
        values = [workspaces] if where else []
        [row] = await tables.fetch(f"SELECT {columns} FROM {table['name']}{where}", *values)
        for column, found in row.items():
            yield f"{table['name']}.{column}", unescaped(found or "").lower()


def unescaped(text: str) -> str:
    """With the texts that bytea columns show in hexadecimal."""
    hexadecimal = re.findall(r"\\x((?:[0-9a-f]{2})+)", text)
    return "\n".join([text, *(bytes.fromhex(each).decode("utf-8", "replace") for each in hexadecimal)])


FORMS = re.compile(r"akia[a-z2-7]{16}|lox_[a-z0-9_-]{43}|4\d{15}|zq\d{5}x")


async def leaks(sent: dict[str, str], texts: AsyncIterator[tuple[str, str]]) -> list[str]:
    """Where what was sent is found, and by which field it came."""
    found = set()
    async for where, text in texts:
        found |= {f"{where} <- {sent[each]}" for each in FORMS.findall(text) if each in sent}
    return sorted(found)


def server_log(folder: str) -> str:
    return "".join(each.read_text(errors="replace") for each in Path(folder).parent.rglob("*.log"))


EVERYTHING = os.environ.get("CANARIES") == "all"
MOST_ALIKE = many(1, 2)


def chosen(document: Document) -> Iterator[tuple[int, TextPlace]]:
    """Every field of a body; of parameters and headers with the same name, which have one type, a few operations'."""
    seen: Counter[tuple[str, str, bool]] = Counter()
    for number, place in enumerate(document.places()):
        alike = (place.kind, str(place.steps[0][0]), place.method == "get")
        seen[alike] += 1
        if EVERYTHING or place.kind == "body" or seen[alike] <= MOST_ALIKE:
            yield number, place


@asynccontextmanager
async def sending(app: FastAPI, tenant: Tenant, other: Tenant) -> AsyncIterator[Sender]:
    async with client_of(app, tenant.key) as client, client_of(app, other.key) as apart:
        for each in (client, apart):
            answer = await each.patch("/v1/workspaces/current", json={"settings": {"audit_level": "verbose"}})
            assert answer.status_code == 200, answer.text
        yield Sender(Document(app.openapi()), FurnishedWorkspace(client), FurnishedWorkspace(apart))


async def do_the_jobs(resources: Resources, tables: Tables, tenant: Tenant) -> None:
    """What the worker does with what was stored."""
    mine = "WHERE workspace_id = $1"
    for row in await tables.fetch(f"SELECT id FROM operation {mine} AND kind = 'record' LIMIT 50", tenant.workspace_id):
        job = Job(tenant.workspace_id, row["id"], "ingest", None, {"operation_id": str(row["id"])}, 1, 3, "t")
        await deferred.ingest(job, resources)
    for row in await tables.fetch(f"SELECT id FROM memory {mine} ORDER BY id DESC LIMIT 100", tenant.workspace_id):
        await enrich.run(Job(tenant.workspace_id, row["id"], "enrich", row["id"], {}, 1, 3, "t"), resources)
    await asyncio.sleep(0)


async def test_no_secret_gets_into_a_table_or_a_log(
    resources: Resources, tenant: Tenant, stranger: Tenant, tables: Tables, capfd: pytest.CaptureFixture[str]
) -> None:
    async with (
        serving(replace(resources, llm=FailingModel())) as app,
        sending(app, tenant, stranger) as sender,
    ):
        for number, place in chosen(sender.document):
            for kind in range(3) if EVERYTHING else (number,):
                await sender.send(place, secret(kind, 3 * number + kind % 3))
        await do_the_jobs(resources, tables, tenant)

    async def everywhere() -> AsyncIterator[tuple[str, str]]:
        async for found in dumped(tables, [tenant.workspace_id, stranger.workspace_id]):
            yield found
        yield "the log", "".join(capfd.readouterr()).lower()
        yield "the log of Postgres", server_log(await tables.value("SHOW data_directory")).lower()

    assert await leaks(sender.sent, everywhere()) == []


async def test_a_purge_leaves_no_word_of_a_user(
    resources: Resources, tenant: Tenant, stranger: Tenant, tables: Tables, capfd: pytest.CaptureFixture[str]
) -> None:
    async with (
        serving(replace(resources, llm=FailingModel())) as app,
        sending(app, tenant, stranger) as sender,
    ):
        users = [USER]
        for number, place in chosen(sender.document):
            word = f"zq{number:05}x"
            if place.operation not in ALONE:
                await sender.send(place, word)
                users += [in_words(place, word)] * (place.steps[-1][0] == "user_id")
        await do_the_jobs(resources, tables, tenant)
        for user in users:
            answer = await sender.world.client.delete("/v1/memories", params={"user_id": user, "purge": True})
            assert answer.status_code == 200, answer.text

    found = await leaks(sender.sent, dumped(tables, [tenant.workspace_id]))
    left = [each for each in found if each.split(" <- ")[0] not in KEPT_BY_DESIGN]
    assert not left, "\n".join(left)
    refused = {name for name, found in sender.statuses.items() if not any(200 <= each < 300 for each in found)}
    assert sorted(refused - NOT_FREE) == [], "a request that is refused for another reason shows nothing"
