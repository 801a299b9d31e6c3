"""undo(apply(x)) = x for any rulings in a row: text, vector, edges, tags, validity, sources, entities, to the byte."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from httpx2 import AsyncClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from service.domain.job import Job
from service.memories.jobs import enrich
from service.postgres.engine import Database
from service.runtime.resources import Resources
from tests.conftest import Tenant, new_tenant
from tests.support.application import Tables
from tests.support.calls import store
from tests.support.judging import Judge, decided, dump, judged, tell

WORDS = ("tea", "rice", "chess", "rain", "jazz", "bread")
POLICIES = ("in_place", "supersede", "flag_review")


@dataclass(frozen=True)
class Step:
    """One conversation: the words of its fact, and what the model answers."""

    number: int
    word: str
    verbs: tuple[tuple[str, int, str], ...]
    correction: bool

    @property
    def said(self) -> str:
        return (
            f"{'Actually, ' if self.correction else ''}I like {self.word} number {self.number} with Anna Berg of Oslo"
        )

    @property
    def operations(self) -> list[dict[str, Any]]:
        """Texts of their own, so that an answer writes what neither the fact nor a memory says word for word."""
        return [
            {"event": verb, "id": target, "text": f"Number {self.number}: likes {self.word}"}
            for verb, target, _ in self.verbs
        ]


VERBS = st.sampled_from(["ADD", "UPDATE", "DELETE", "NONE"])
OPERATIONS = st.lists(st.tuples(VERBS, st.integers(1, 5), st.sampled_from(WORDS)), min_size=1, max_size=3).map(tuple)
CORRECTION = st.sampled_from([False, False, True])
STEPS = st.lists(st.tuples(st.sampled_from(WORDS), OPERATIONS, CORRECTION), min_size=2, max_size=6)
Drawn = tuple[str, tuple[tuple[str, int, str], ...], bool]
PRESENT = st.lists(st.sampled_from(WORDS), min_size=2, max_size=4, unique=True)


@dataclass
class World:
    """A workspace of one example."""

    resources: Resources
    database: Database
    tables: Tables
    tally: Counter[str]
    enriched: bool

    async def check(self, policy: str, present: Sequence[str], steps: Sequence[Step]) -> None:
        tenant = await new_tenant(self.database)
        async with judged(self.resources, tenant, contradiction_policy=policy) as (client, judge):
            await self._furnish(client, tenant, present)
            states, rulings = [], []
            for step in steps:
                states.append(await dump(self.tables, tenant.workspace_id))
                rulings.append(await self._take(client, judge, tenant, step))
            for ruling, state in zip(reversed(rulings), reversed(states), strict=True):
                if ruling is None:
                    continue
                answer = await client.post(f"/v1/decisions/{ruling}/undo")
                assert answer.status_code == 200, answer.text
                there = await dump(self.tables, tenant.workspace_id)
                assert _comparable(there, rulings) == _comparable(state, rulings)

    async def _furnish(self, client: AsyncClient, tenant: Tenant, present: Sequence[str]) -> None:
        """Memories with tags, metadata, a validity, entities and edges."""
        times = {"t_valid": "2020-01-01T00:00:00Z", "t_invalid": "2040-01-01T00:00:00Z"}
        ids = [
            await store(client, f"Likes {word} with Una Berg", tags=[f"likes:{word}"], metadata={"at": [word]}, **times)
            for word in present
        ]
        for source, target in pairwise(ids):
            tie = {"target_id": target, "type": "SIMILAR_TO", "strength": 0.3, "properties": {"why": "both"}}
            assert (await client.post(f"/v1/memories/{source}/relations", json=tie)).status_code == 201
        await self._enrich(tenant)

    async def _take(self, client: AsyncClient, judge: Judge, tenant: Tenant, step: Step) -> str | None:
        """The id of a decision of what was done; None when nothing was."""
        judge.say(f"Likes {step.word} number {step.number}", *step.operations)
        results = await tell(client, step.said)
        done = [each for each in results if each["id"] and each["event"] != "NONE"]
        self.tally.update(each["event"] for each in done)
        await self._enrich(tenant)
        if not done:
            return None
        self.tally["rulings"] += 1
        changes = [each for each in await decided(client, done[0]["id"]) if each["event"] != "NONE"]
        return str(changes[-1]["id"])

    async def _enrich(self, tenant: Tenant) -> None:
        """What jobs find out about a text is no part of a decision, so it happens to all texts or to none."""
        if not self.enriched:
            return
        rows = await self.tables.fetch(
            "SELECT id FROM memory WHERE workspace_id = $1 AND enriched_at IS NULL ORDER BY id", tenant.workspace_id
        )
        for row in rows:
            job = Job(tenant.workspace_id, row["id"], "enrich", row["id"], {}, 1, 3, "test")
            await enrich.run(job, self.resources)


@pytest.fixture(scope="module")
def tally() -> Counter[str]:
    """What the examples did, and under which policies."""
    return Counter()


def _comparable(rows: dict[str, str], rulings: Sequence[str | None]) -> dict[str, str]:
    """Everything; but a turn that merely confirmed a memory stays its source: nothing was done to be undone."""
    if None not in rulings:
        return rows
    return {what: how for what, how in rows.items() if not what.startswith("source")}


# no shrinking: an example is a workspace and takes a second
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=10, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck))
@given(present=PRESENT, drawn=STEPS, enriched=st.booleans())
async def test_undo_of_apply_is_what_was_there(
    resources: Resources,
    database: Database,
    tables: Tables,
    tally: Counter[str],
    policy: str,
    present: list[str],
    drawn: list[Drawn],
    *,
    enriched: bool,
) -> None:
    tally[policy] += 1
    world = World(resources, database, tables, tally, enriched)
    await world.check(policy, present, [Step(number, *each) for number, each in enumerate(drawn)])


def test_the_examples_did_something(tally: Counter[str]) -> None:
    """A property that held because nothing happened would say nothing. One policy alone need not show every event."""
    if not all(tally[policy] for policy in POLICIES):
        pytest.skip("not every policy was run")
    assert tally["rulings"] > 24
    assert min(tally[event] for event in ("ADD", "UPDATE", "DELETE")) > 3
