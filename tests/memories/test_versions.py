"""Ten dated statements about one thing, in any order: the same memory, and the same history of values."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any, Literal
from uuid import UUID, uuid4

import pytest

from service.domain.decision import Action, Decision, Edit, Evidence, Neighbour
from service.domain.draft import Draft
from service.domain.memory import Outcome
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.memories import decide, edits
from service.memories.pipeline import FACT, run
from service.memories.review import undo_decision
from service.memories.statements import memories, versions
from service.memories.store import store_text
from service.memories.writing import MemoryBatch
from service.postgres.engine import Session
from service.postgres.scopes import ScopeLocks
from service.runtime import pii
from service.runtime.resources import Resources
from service.runtime.transactions import write_transaction
from tests.support.verbs import CALL, Verbs

DAY = datetime(2019, 5, 1, tzinfo=UTC)
CITIES = ("Oslo", "Lisbon", "Porto", "Faro", "Madrid", "Paris", "Lyon", "Rome", "Milan", "Turin")
RETURNS = ("Oslo", "Lisbon", "Oslo", "Oslo", "Paris", "Lisbon", "Paris", "Rome", "Oslo", "Rome")

Said = tuple[str, datetime]


def said(cities: Sequence[str]) -> list[Said]:
    """Each city a month after the one before."""
    return [(f"Ann lives in {city}.", DAY + timedelta(days=30 * at)) for at, city in enumerate(cities)]


async def prepared(verbs: Verbs, text: str, **given: Any) -> Draft:
    return await run((pii.redact, *FACT), verbs.draft(text, **given), verbs.res)


class OneHome:
    """Judges by times alone: whoever lives somewhere lives nowhere else."""

    def __init__(self, verbs: Verbs, res: Resources) -> None:
        self.verbs, self.res = verbs, res

    async def tell(self, statement: Said) -> Outcome:
        text, at = statement
        draft = await prepared(self.verbs, text, timestamp=at)
        async with write_transaction(draft.scope, self.res, CALL) as write:
            current = await self.current(write.session, draft)
            decision = Decision((self.edit(draft, current),), Evidence("rules", "test", "NONE", "by time", ()))
            batch = MemoryBatch(write)
            [outcome, *_] = await edits.carry_out(batch, replace(draft, decision=decision), conversation_id=uuid4())
            await batch.flush()
        return outcome

    async def current(self, session: Session, draft: Draft) -> Neighbour | None:
        rows = await self.verbs.rows(
            "SELECT id FROM memory WHERE NOT archived AND dedup_key IS NOT NULL AND t_invalid IS NULL"
        )
        if not rows:
            return None
        row = await memories.get(session, rows[0].id)
        assert row is not None
        times = row.timestamp, row.t_valid, row.t_invalid
        return Neighbour(row.id, CleanText(row.text), row.hash, row.version, 0.9, *times)

    def edit(self, draft: Draft, current: Neighbour | None) -> Edit:
        if current is None:
            return Edit(Action.ADD, None, draft.clean)
        assert current.timestamp is not None
        if current.hash == draft.hash:
            return decide.repeat_decision(draft, current).edits[0]
        if draft.timestamp < current.timestamp:
            return Edit(Action.NONE, current, earlier=True)
        return Edit(Action.UPDATE, current, draft.clean)

    async def state(self) -> tuple[Any, list[Any]]:
        """The current memory, and the values with the time they held."""
        [row] = await self.verbs.rows(
            "SELECT id, content, timestamp, t_valid, t_invalid FROM memory"
            " WHERE NOT archived AND dedup_key IS NOT NULL AND t_invalid IS NULL"
        )
        async with self.res.db.read(self.verbs.workspace_id) as session:
            line = await versions.read_line(session, row.id)
        return tuple(row)[1:], [(each.text, each.said_at, each.t_valid, each.t_invalid) for each in line]

    async def forget(self) -> None:
        await self.verbs.change("DELETE FROM memory")


@pytest.fixture(params=["in_place", "supersede"])
def home(request: pytest.FixtureRequest, verbs: Verbs) -> OneHome:
    policy: Literal["in_place", "supersede"] = request.param
    settings = verbs.res.settings.changed(contradiction_policy=policy)
    res = replace(verbs.res, settings=settings)
    verbs.res = res
    return OneHome(verbs, res)


@pytest.mark.parametrize("cities", [CITIES, RETURNS], ids=["moves", "returns"])
async def test_any_order_of_arrival_ends_the_same(home: OneHome, cities: Sequence[str]) -> None:
    statements, wanted = said(cities), None
    for seed in range(6):
        order = list(statements)
        if seed:
            random.Random(seed).shuffle(order)
        for each in order:
            await home.tell(each)
            if seed % 2:  # a retry
                await home.tell(each)
        found = await home.state()
        wanted = wanted or found
        assert found == wanted, order
        await home.forget()
    assert wanted is not None
    current, values = wanted
    assert current[0] == statements[-1][0]
    assert [text for text, *_ in values] == [t for at, (t, _) in enumerate(statements) if t != statements[at - 1][0]]
    ends, starts = [each[3] for each in values], [each[2] for each in values]
    assert starts[1:] == ends[:-1]
    assert starts[0] is None
    assert ends[-1] is None


async def test_every_order_of_four(home: OneHome) -> None:
    statements, wanted = said(("Oslo", "Rome", "Oslo", "Paris")), None
    for order in permutations(statements):
        for each in order:
            await home.tell(each)
        found = await home.state()
        wanted = wanted or found
        assert found == wanted, order
        await home.forget()


async def test_late_news_is_undone_whole(home: OneHome) -> None:
    first, between, last = said(("Oslo", "Rome", "Paris"))
    await home.tell(first)
    await home.tell(last)
    before = await home.state()
    outcome = await home.tell(between)
    assert (outcome.event, outcome.text) == (Action.NONE, last[0])
    assert outcome.kept_as is not None
    assert [text for text, *_ in (await home.state())[1]] == [each[0] for each in (first, between, last)]
    await _undo(home, outcome.kept_as)
    assert await home.state() == before


async def test_an_update_is_undone_with_its_past_version(home: OneHome) -> None:
    first, last = said(("Oslo", "Paris"))
    await home.tell(first)
    before = await home.state()
    outcome = await home.tell(last)
    assert outcome.memory_id is not None
    await _undo(home, outcome.memory_id)
    assert await home.state() == before


async def _undo(home: OneHome, memory_id: UUID) -> None:
    rows = await home.verbs.rows(
        "SELECT id FROM decision WHERE memory_id = :id AND history_id IS NOT NULL ORDER BY id DESC", id=memory_id
    )
    await undo_decision(home.verbs.workspace_id, rows[0].id, home.res, CALL)


async def test_what_was_over_when_it_was_said_keeps_its_own_time(verbs: Verbs) -> None:
    home = OneHome(verbs, verbs.res)
    text, at = said(("Oslo",))[0]
    await home.tell((text, at))
    then = {"t_valid": DAY - timedelta(900), "t_invalid": DAY - timedelta(800)}
    draft = await prepared(verbs, "Ann lived in Rome.", timestamp=at, **then)
    async with write_transaction(draft.scope, verbs.res, CALL) as write:
        current = await home.current(write.session, draft)
        evidence = Evidence("rules", "test", "NONE", "by time", ())
        decision = Decision((Edit(Action.NONE, current, earlier=True),), evidence)
        batch = MemoryBatch(write)
        await edits.carry_out(batch, replace(draft, decision=decision), conversation_id=uuid4())
    _, values = await home.state()
    assert [(text, t_valid, t_invalid) for text, _, t_valid, t_invalid in values] == [
        ("Ann lived in Rome.", DAY - timedelta(900), DAY - timedelta(800)),
        ("Ann lives in Oslo.", DAY, None),
    ]


class CountedLocks(ScopeLocks):
    """Tells when so many writers have come to a scope."""

    def __init__(self) -> None:
        super().__init__()
        self.came = 0
        self.reached: defaultdict[int, asyncio.Event] = defaultdict(asyncio.Event)

    @asynccontextmanager
    async def hold(self, scope: Scope) -> AsyncIterator[None]:
        self.came += 1
        self.reached[self.came].set()
        async with super().hold(scope):
            yield


async def test_a_decision_does_not_hold_when_its_target_was_said_again_meanwhile(verbs: Verbs) -> None:
    """Both are decided while Oslo is of 2019; then Oslo of 2021 is written, so Lisbon of 2020 is older news."""
    known = await verbs.stored("Ann lives in Oslo.", timestamp=datetime(2019, 5, 1, tzinfo=UTC))
    locks = CountedLocks()
    res = replace(verbs.res, locks=locks)
    async with locks.hold(verbs.scope()):
        again = verbs.draft("Ann lives in Oslo.", timestamp=datetime(2021, 5, 1, tzinfo=UTC))
        first = asyncio.create_task(store_text(again, res, CALL))
        await locks.reached[2].wait()
        older = verbs.draft("Ann lives in Lisbon.", timestamp=datetime(2020, 5, 1, tzinfo=UTC))
        second = asyncio.create_task(store_text(older, res, CALL))
        await locks.reached[3].wait()
    assert (await first).event is Action.NONE
    assert (await second).kept_as is not None
    memory = await verbs.memory(known)
    assert memory is not None
    assert memory.text == "Ann lives in Oslo."
