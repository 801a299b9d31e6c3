"""Which of a search's hits count as later than another."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest

from service.domain.kinds import Classification, ClassificationSource, Importance, MemoryType
from service.domain.memory import Hit, LaterStatementItem, LeanMemory
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.search.recall import later_of

SAID_AT = datetime(2026, 3, 4, tzinfo=UTC)


def hit(number: int, *, outdated_by: Sequence[int] = (), after: Sequence[int] = (), speaker: str | None = None) -> Hit:
    memory = LeanMemory(
        id=UUID(int=number),
        scope=Scope(UUID(int=99)),
        text=CleanText(f"Statement {number}"),
        hash=str(number),
        kind=Classification(MemoryType.CONTEXT, 1.0, ClassificationSource.DEFAULT),
        importance=Importance.of_level(5),
        metadata={},
        timestamp=SAID_AT,
        speaker=speaker,
        may_be_outdated_by=tuple(UUID(int=each) for each in outdated_by),
    )
    return Hit(memory, 1.0, 1.0, later=tuple(LaterStatementItem(UUID(int=each), SAID_AT) for each in after))


@pytest.mark.parametrize(
    ("hits", "later"),
    [
        ([hit(1, after=[2]), hit(2)], {1: 2}),  # about the subject of the first hit
        ([hit(1, after=[2], speaker="Kim"), hit(2, speaker="Lee")], {}),
        ([hit(1), hit(2, after=[3]), hit(3)], {}),
        ([hit(1, outdated_by=[2]), hit(2)], {1: 2}),
        ([hit(1), hit(2, outdated_by=[3]), hit(3)], {}),
        ([hit(1), hit(2, outdated_by=[3], after=[3]), hit(3)], {2: 3}),
        ([hit(1, outdated_by=[9], after=[9]), hit(2)], {}),  # not among the hits
    ],
)
def test_what_is_later_is_a_likely_change_or_about_the_first_hit(hits: Sequence[Hit], later: dict[int, int]) -> None:
    found = later_of(hits).values()
    assert {older.memory.id.int: newer.memory.id.int for older, newer in found} == later
