"""Lets clients write, change, delete and purge everything of two users at once, and checks what is left.

    python -m bench.contention [--seconds 120] [--clients 12] [--seed 1] [--policy supersede] [--citus-bin FOLDER]

Each client picks at random what to do with what any of them has stored. Every text has a word of its own, so after a
purge of a user none of the words that were stored before it began may be in any table. When all jobs are done, the
rules of `loxodon doctor` must hold. Printed are the answers by verb and status: 404, 409 and 412 are those of a race
that was lost, 503 those of a transaction that gave way. The exit code is 1 for any other error, or when anything is
wrong in the database.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlencode

import asyncpg  # type: ignore[import-untyped]

from bench import sentences, target
from bench.citus_cluster import cluster
from bench.clients import Client
from bench.superuser import login_url
from bench.target import Service
from service.memories.edits import Policy
from service.postgres import doctor
from service.postgres.roles import APP, OWNER, URL_VARIABLES, WORKER

USERS = ("alice", "bob")
WORD = "zq[0-9a-f]+vx"
CHANNELS = ("_global", "atlas", "borealis")
LOST_RACES = frozenset({404, 409, 412, 503})
JOBS_S = 180.0
TABLES = """
    SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace_id'
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1
"""
OPEN_JOBS = "SELECT count(*) FROM job WHERE state IN ('ready', 'running') AND run_after < now() + interval '1 minute'"
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


@dataclass(slots=True)
class Stored:
    """What is known of a user: ids by kind, and the words of texts that were answered."""

    ids: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    words: set[str] = field(default_factory=set)


class Contention:
    """The load and what came of it. `answers`: by verb and status; `erased`: words that must be gone."""

    def __init__(self, service: Service, seed: int) -> None:
        self._service, self._seed = service, seed
        self._stored = {user: Stored() for user in USERS}
        self._words = 0
        self.answers: Counter[tuple[str, int]] = Counter()
        self.errors: list[str] = []
        self.erased: set[str] = set()

    async def run(self, clients: int, seconds: float) -> None:
        until = time.monotonic() + seconds
        await asyncio.gather(*(self._client(number, until) for number in range(clients)))

    async def _client(self, number: int, until: float) -> None:
        hand = _Hand(self, Client(self._service.url, self._service.key), random.Random(self._seed * 1000 + number))
        verbs, weights = list(VERBS), [VERBS[each] for each in VERBS]
        while time.monotonic() < until:
            await hand.chance.choices(verbs, weights)[0](hand)
        await hand.client.close()

    def word(self) -> str:
        """A word that nothing else has."""
        self._words += 1
        return WORD.replace("[0-9a-f]+", f"{self._words:x}")

    def of(self, user: str) -> Stored:
        return self._stored[user]


class _Hand:
    """A client: what it does next is up to `chance`."""

    def __init__(self, load: Contention, client: Client, chance: random.Random) -> None:
        self.load, self.client, self.chance = load, client, chance
        self.user = USERS[0]

    async def send(
        self, verb: str, method: str, path: str, body: object = None, words: Sequence[str] = (), **params: Any
    ) -> Any:
        """The answer as JSON; None when it is an error. `words`: those that it stores."""
        query = f"?{urlencode(params)}" if params else ""
        sent = b"" if body is None else json.dumps(body).encode()
        answer = await self.client.request(method, f"/v1{path}{query}", sent, {})
        self.load.answers[verb, answer.status] += 1
        if answer.status >= 400:
            if answer.status not in LOST_RACES:
                self.load.errors.append(f"{verb} {answer.status}: {answer.body.decode()[:300]}")
            return None
        self.load.of(self.user).words |= set(words)
        return answer.json if answer.body else {}

    def text(self) -> tuple[str, str]:
        """A sentence, and the word in it that no other has."""
        word = self.load.word()
        person, thing, place = map(self.chance.choice, (sentences.PEOPLE, sentences.THINGS, sentences.PLACES))
        pattern = self.chance.choice(("{p} likes {t} from {w}.", "{p} lives in {l}, at {w}.", "I work at {w} in {l}."))
        return pattern.format(p=person, t=thing, l=place, w=word), word

    def one(self, kind: str) -> str | None:
        """An id of the user, rather a late one; None where there is none."""
        known = self.load.of(self.user).ids[kind]
        return known[-self.chance.randint(1, min(len(known), 40))] if known else None

    def noted(self, results: Sequence[dict[str, Any]]) -> None:
        self.load.of(self.user).ids["memory"] += [each["id"] for each in results if each.get("id")]


async def _store(hand: _Hand) -> None:
    text, word = hand.text()
    body = {"content": text, "user_id": hand.user, "channel": hand.chance.choice(CHANNELS)}
    hand.noted((await hand.send("store", "POST", "/memories", body, [word]) or {}).get("results", ()))


async def _tell(hand: _Hand) -> None:
    told = [hand.text() for _ in range(hand.chance.randint(1, 3))]
    messages = [{"role": "user", "content": text} for text, _ in told]
    body = {"messages": messages, "user_id": hand.user, "run_id": f"run-{hand.chance.randint(1, 5)}"}
    answer = await hand.send("tell", "POST", "/memories", body, [word for _, word in told])
    hand.noted((answer or {}).get("results", ()))


async def _batch(hand: _Hand) -> None:
    told = [hand.text() for _ in range(20)]
    items = [{"content": text, "user_id": hand.user} for text, _ in told]
    answer = await hand.send("batch", "POST", "/memories/batch", {"items": items})
    for (_, word), each in zip(told, (answer or {}).get("results", ()), strict=False):
        hand.load.answers["batch item", each["status"]] += 1
        if each["status"] < 400:
            hand.load.of(hand.user).words.add(word)
            hand.noted(each["results"])
        elif each["status"] not in LOST_RACES:
            hand.load.errors.append(f"batch item: {each}")


async def _turn(hand: _Hand) -> None:
    talk = hand.one("conversation") if hand.chance.random() < 0.8 else None
    if talk is None:
        made = await hand.send("open", "POST", "/conversations", {"user_id": hand.user})
        hand.load.of(hand.user).ids["conversation"] += [made["id"]] if made else []
        return
    text, word = hand.text()
    made = await hand.send("turn", "POST", f"/conversations/{talk}/turns", {"role": "user", "content": text}, [word])
    hand.load.of(hand.user).ids["turn"] += [made["id"]] if made else []


async def _patch(hand: _Hand) -> None:
    text, word = hand.text()
    if one := hand.one("memory"):
        await hand.send("patch", "PATCH", f"/memories/{one}", {"content": text}, [word])


async def _delete_many(hand: _Hand) -> None:
    ids = list({one for _ in range(10) if (one := hand.one("memory"))})
    if ids:
        await hand.send("batch delete", "POST", "/memories/batch/delete", {"ids": ids})


async def _relate(hand: _Hand) -> None:
    one, other = hand.one("memory"), hand.one("memory")
    if one and other and one != other:
        body = {"target_id": other, "type": "RELATES_TO"}
        await hand.send("relate", "POST", f"/memories/{one}/relations", body)


async def _undo(hand: _Hand) -> None:
    if one := hand.one("memory"):
        found = await hand.send("decisions", "GET", f"/memories/{one}/decisions")
        for each in (found or {}).get("results", ())[:1]:
            await hand.send("undo", "POST", f"/decisions/{each['id']}/undo")


async def _merge(hand: _Hand) -> None:
    found = await hand.send("entities", "POST", "/entities", {"user_id": hand.user, "limit": 20})
    ids = [each["id"] for each in (found or {}).get("results", ())]
    if len(ids) > 1:
        source, target_id = hand.chance.sample(ids, 2)
        await hand.send("merge", "POST", "/entities/merge", {"source_id": source, "target_id": target_id})


async def _goal(hand: _Hand) -> None:
    text, word = hand.text()
    ids = [one] if (one := hand.one("memory")) else []
    await hand.send("goal", "POST", "/goals", {"description": text, "user_id": hand.user, "memory_ids": ids}, [word])


async def _forget(hand: _Hand) -> None:
    body = {"user_id": hand.user, "query": hand.chance.choice(sentences.THINGS), "purge": hand.chance.random() < 0.5}
    await hand.send("forget", "POST", "/forget", body)


async def _switch(hand: _Hand) -> None:
    hand.user = hand.chance.choice(USERS)


async def _purge_user(hand: _Hand) -> None:
    known = hand.load.of(hand.user)
    before = set(known.words)
    if await hand.send("purge user", "DELETE", "/memories", user_id=hand.user, purge=True) is not None:
        hand.load.erased |= before
        known.words -= before


def _of_one(verb: str, method: str, kind: str, path: str, **params: Any) -> Callable[[_Hand], Awaitable[None]]:
    """What needs nothing but an id."""

    async def act(hand: _Hand) -> None:
        if one := hand.one(kind):
            await hand.send(verb, method, path.format(one), **params)

    return act


def _of_scope(verb: str, method: str, path: str, **params: Any) -> Callable[[_Hand], Awaitable[None]]:
    async def act(hand: _Hand) -> None:
        await hand.send(verb, method, path, **{"user_id": hand.user, **params})

    return act


VERBS: dict[Callable[[_Hand], Awaitable[None]], float] = {
    _store: 10,
    _tell: 8,
    _batch: 3,
    _turn: 6,
    _patch: 6,
    _delete_many: 1,
    _relate: 3,
    _undo: 2,
    _merge: 1,
    _goal: 1,
    _forget: 0.3,
    _switch: 6,
    _of_one("read", "GET", "memory", "/memories/{}"): 2,
    _of_one("delete", "DELETE", "memory", "/memories/{}"): 3,
    _of_one("purge", "DELETE", "memory", "/memories/{}", purge=True): 0.7,
    _of_one("restore", "POST", "memory", "/memories/{}/restore"): 1,
    _of_one("promote", "POST", "memory", "/memories/{}/promote"): 2,
    _of_one("delete turn", "DELETE", "turn", "/turns/{}", facts=True): 1,
    _of_one("purge turn", "DELETE", "turn", "/turns/{}", purge=True): 0.5,
    _of_one("delete conversation", "DELETE", "conversation", "/conversations/{}", facts=True): 0.4,
    _of_one("purge conversation", "DELETE", "conversation", "/conversations/{}", purge=True): 0.2,
    _of_scope("search", "GET", "/memories/search", query="who likes what", limit=5): 3,
    _of_scope("delete channel", "DELETE", "/memories", channel="atlas"): 0.2,
    _of_scope("purge channel", "DELETE", "/memories", channel="borealis", purge=True): 0.15,
    _of_scope("delete run", "DELETE", "/memories", run_id="run-1"): 0.15,
    _purge_user: 0.12,
}
"""What clients do, and how often."""


async def jobs_done(connection: asyncpg.Connection) -> None:
    until = time.monotonic() + JOBS_S
    while await connection.fetchval(OPEN_JOBS):
        if time.monotonic() > until:
            raise SystemExit(f"jobs are still open after {JOBS_S:.0f} s")
        await asyncio.sleep(0.5)


async def left_of(connection: asyncpg.Connection, words: set[str]) -> list[str]:
    """Tables and rows that still hold one of these words."""
    found = []
    for (table,) in await connection.fetch(TABLES):
        rows = f"SELECT m[1], left(r::text, 300) FROM {table} r, regexp_matches(r::text, '{WORD}', 'g') m"
        found += [f"{table} still holds {row[0]}: {row[1]}" for row in await connection.fetch(rows) if row[0] in words]
    return found


async def contention(service: Service, options: argparse.Namespace) -> bool:
    """Prints the counts; returns whether everything is right."""
    assert service.database is not None
    load, connection = Contention(service, options.seed), await asyncpg.connect(service.database)
    client, policy = Client(service.url, service.key), {"settings": {"contradiction_policy": options.policy}}
    await client.request("PATCH", "/v1/workspaces/current", json.dumps(policy).encode(), {})
    await client.close()
    await load.run(options.clients, options.seconds)
    await jobs_done(connection)
    for verb in sorted({each for each, _ in load.answers}):
        print(f"{verb:<20} {dict(sorted((status, n) for (name, status), n in load.answers.items() if name == verb))}")
    print(f"\n{await connection.fetchval(DEADLOCKS)} deadlocks; {len(load.erased)} words were purged with their user")
    logged = [line for line in service.log.splitlines() if '"level": "error"' in line]
    wrong = [*load.errors, *logged, *await left_of(connection, load.erased)]
    for found in await doctor.examine(service.database, examples=5):
        wrong += [f"{found.check.name}: {row.id} ({found.broken} in all)" for row in found.examples]
    await connection.close()
    print("\n".join(["", f"{len(wrong)} violations", *wrong[:50]]) if wrong else "all is well")
    return not wrong


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policy", default="in_place", choices=get_args(Policy))
    parser.add_argument("--citus-bin", type=Path, help="on three nodes: programs of a Postgres with Citus and pgvector")
    options = parser.parse_args(words)
    with started(options.citus_bin) as service:
        return 0 if asyncio.run(contention(service, options)) else 1


@contextmanager
def started(citus_bin: Path | None) -> Iterator[Service]:
    """A service on its embedded Postgres, or on a Citus cluster of a coordinator and two workers."""
    if citus_bin is None:
        with target.started() as service:
            yield service
        return
    with tempfile.TemporaryDirectory(prefix="loxodon-contention-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        with cluster(citus_bin, Path(folder), {"max_connections": "100"}) as citus:
            env = {URL_VARIABLES[role]: login_url(citus.url, role) for role in (OWNER, APP, WORKER)}
            with target.started(env=env, database=citus.nodes[0].url) as service:
                yield service


if __name__ == "__main__":
    raise SystemExit(main())
