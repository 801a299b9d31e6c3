"""Readers of the change feed that are disturbed, and what must hold of what they saw."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import asyncpg  # type: ignore[import-untyped]

from bench.clients import LOST, Client
from bench.target import Service

PAUSE_S = 0.3
SILENCE_S = 30.0
"""A stream sends something twice as often."""

Seen = Mapping[str, Any]

LIVE = """
    SELECT id::text, content, version FROM memory
    WHERE workspace_id = $1 AND version_of IS NULL AND review_status IS NULL
"""


@dataclass(slots=True)
class FeedCopy:
    """What a reader has taken over, and the cursor it would go on from."""

    cursor: str | None = None
    changes: list[Seen] = field(default_factory=list)
    again: int = 0  # times it went on from a cursor after a failure

    def take(self, change: Seen) -> None:
        self.changes.append(change)
        self.cursor = change["cursor"]

    def replica(self) -> dict[str, tuple[str, int]]:
        """Text and version of every memory by its id, made from the changes alone."""
        made: dict[str, tuple[str, int]] = {}
        for each in self.changes:
            memory = each["memory"]
            if memory is None:
                made.pop(each["memory_id"], None)
            else:
                made[each["memory_id"]] = memory["memory"], memory["version"]
        return made


class PageReader:
    """Reads pages of random lengths, and often dies in the middle of one: it goes on behind the last change it has."""

    def __init__(self, service: Service, seed: int) -> None:
        self.copy = FeedCopy()
        self._client = Client(service.url, service.key)
        self._chance = random.Random(seed)

    async def follow(self, stop: asyncio.Event) -> None:
        """Until `stop` is set and nothing is left."""
        while True:
            last = stop.is_set()
            try:
                page = await self._page()
            except LOST:
                page = None
            if page is None:
                self.copy.again += 1
                await asyncio.sleep(PAUSE_S)
                continue
            found = page["results"]
            dies = bool(found) and self._chance.random() < 0.2
            for change in found[: self._chance.randrange(len(found))] if dies else found:
                self.copy.take(change)
            if dies:
                self.copy.again += 1
                continue
            self.copy.cursor = page["next_cursor"]
            if not page["has_more"]:
                if last and not found:
                    return
                await asyncio.sleep(PAUSE_S)

    async def _page(self) -> Any | None:
        after = f"&after={self.copy.cursor}" if self.copy.cursor else ""
        answer = await self._client.get(f"/v1/changes?limit={self._chance.choice((1, 7, 100, 1000))}{after}")
        return answer.json if answer.status == 200 else None


class StreamReader:
    """Listens to the stream of events, and comes back with Last-Event-ID whenever it breaks off."""

    def __init__(self, service: Service) -> None:
        self.copy = FeedCopy()
        self._url, self._key = urlsplit(service.url), service.key

    async def follow(self) -> None:
        """Until cancelled."""
        while True:
            with suppress(*LOST, ValueError):
                await self._listen()
            self.copy.again += 1
            await asyncio.sleep(PAUSE_S)

    async def _listen(self) -> None:
        reader, writer = await asyncio.open_connection(self._url.hostname, self._url.port, limit=2**20)
        try:
            since = f"Last-Event-ID: {self.copy.cursor}\r\n" if self.copy.cursor else ""
            head = f"GET /v1/changes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self._key}\r\n{since}"
            writer.write(f"{head}Accept: text/event-stream\r\n\r\n".encode())
            status = await asyncio.wait_for(reader.readline(), SILENCE_S)
            if b" 200 " not in status:
                raise EOFError
            while line := await asyncio.wait_for(reader.readline(), SILENCE_S):
                if line.startswith(b"data: ") and line.endswith(b"\n"):
                    self.copy.take(json.loads(line[len(b"data: ") :]))
        finally:
            writer.close()


class FeedReaders:
    """Two that read pages and one that listens, all from the beginning."""

    def __init__(self, service: Service, seed: int) -> None:
        self._service = service
        self._stop = asyncio.Event()
        self.pages = [PageReader(service, seed + number) for number in range(2)]
        self.stream = StreamReader(service)
        self._following = [asyncio.create_task(each.follow(self._stop)) for each in self.pages]
        self._listening = asyncio.create_task(self.stream.follow())

    async def end(self) -> list[FeedCopy]:
        """Once all of them have everything; with a fourth, which reads it all at once."""
        self._stop.set()
        await asyncio.gather(*self._following)
        wanted = len(self.pages[0].copy.changes)
        with suppress(TimeoutError):
            async with asyncio.timeout(SILENCE_S):
                while len(self.stream.copy.changes) < wanted:  # noqa: ASYNC110 (no event to wait for)
                    await asyncio.sleep(PAUSE_S)
        self._listening.cancel()
        late = PageReader(self._service, 0)
        await late.follow(self._stop)
        return [*(each.copy for each in self.pages), self.stream.copy, late.copy]


async def violations(database: str, copies: Sequence[FeedCopy], told: Iterable[tuple[str, str]]) -> list[str]:
    """What is wrong with the copies; `told`: event and memory id of every change that was acknowledged, each of which
    must have come as often as it stands there."""
    first, *others = [[_shown(each) for each in copy.changes] for copy in copies]
    wrong = [f"reader {number} saw others than the first" for number, each in enumerate(others, 2) if each != first]
    ids = Counter(each["id"] for each in copies[0].changes)
    wrong += [f"change {name} came {count} times" for name, count in ids.items() if count > 1]
    came = Counter((each["event"], each["memory_id"]) for each in copies[0].changes)
    for change, count in Counter(told).items():
        if came[change] != count:
            wrong.append(f"{change} was acknowledged {count} times and came {came[change]} times")
    connection = await asyncpg.connect(database)
    try:
        workspace = await connection.fetchval("SELECT workspace_id FROM memory_history LIMIT 1")
        live = {row[0]: (row[1], row[2]) for row in await connection.fetch(LIVE, workspace)}
    finally:
        await connection.close()
    replica = copies[0].replica()
    wrong += [
        f"the copy of {each} differs" for each in live.keys() | replica.keys() if live.get(each) != replica.get(each)
    ]
    return wrong


def _shown(change: Seen) -> tuple[Any, ...]:
    memory = change["memory"]
    return change["id"], change["event"], change["memory_id"], memory and (memory["memory"], memory["version"])
