"""Changes told in other words, and things that look alike, judged beside what the local model finds near.

Written by someone who had not seen the rules. Few changes told in other words are recognised; nothing that still holds
may end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from service.domain.decision import Action, Claim, Decision, Neighbour
from service.domain.text import CleanText
from service.providers import model_files
from service.providers.local import CALIBRATION, Encoder, LocalEmbedder
from service.understanding import outdating
from service.understanding.compare import LinkKind, relate
from service.understanding.judge import judge

CORPORA = Path(__file__).parents[1] / "corpora" / "scenarios"


def cases(name: str) -> Iterator[dict[str, Any]]:
    return map(json.loads, (CORPORA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder(Encoder(model_files.load(None)), threads=2, max_queue=1_000)


async def judged(embedder: LocalEmbedder, new: str, known: Sequence[str]) -> Decision:
    """The decision on a text beside those known, the nearest first."""
    vectors = await embedder.embed([CleanText(new), *map(CleanText, known)])
    first, *others = (np.asarray(each, dtype=np.float32) for each in vectors)
    near = [
        Neighbour(uuid4(), CleanText(text), "", 1, CALIBRATION.documents(float(first @ vector)), vector=vector)
        for text, vector in zip(known, others, strict=True)
    ]
    change = outdating.weigh(first, embedder.model)
    return judge(Claim(CleanText(new), change=change), sorted(near, key=lambda each: -each.similarity))


def ended(decision: Decision) -> set[str]:
    changes = [each for each in decision.edits if each.action in (Action.UPDATE, Action.DELETE)]
    return {each.target.text for each in changes if each.target}


def is_outdated(text: str, words: Sequence[str]) -> bool:
    return any(any(word.lower() in text.lower() for word in each.split("|")) for each in words)


@pytest.mark.parametrize("name", ["changes", "changes-held-out"])
async def test_a_change_ends_nothing_else(embedder: LocalEmbedder, name: str) -> None:
    for case in cases(name):
        decision = await judged(embedder, case["new"], case["setup"])
        old = {text for text in case["setup"] if is_outdated(text, case["must_not_contain"])}
        assert ended(decision) <= old, case["new"]


@pytest.mark.parametrize("name", ["statements", "statements-held-out"])
async def test_what_holds_beside_a_later_message_stays(embedder: LocalEmbedder, name: str) -> None:
    for case in cases(name):
        gone = ended(await judged(embedder, f"User: {case['later']}", [f"User: {case['earlier']}"]))
        assert case["ends"] or not gone, case["later"]


@pytest.mark.parametrize("name", ["distinct", "distinct-held-out"])
async def test_things_that_look_alike_stay(embedder: LocalEmbedder, name: str) -> None:
    for case in cases(name):
        for place in range(1, len(case["texts"])):
            decision = await judged(embedder, case["texts"][place], case["texts"][:place])
            assert decision.edits[0].action is Action.ADD, case["texts"][place]


async def test_most_of_what_a_later_message_outdates_is_marked(embedder: LocalEmbedder) -> None:
    found = []
    for case in cases("statements-held-out"):
        decision = await judged(embedder, f"User: {case['later']}", [f"User: {case['earlier']}"])
        found.append((case["ends"], bool(decision.outdates or decision.strikes)))
    right = sum(ends and marked for ends, marked in found)
    assert right >= 0.6 * sum(ends for ends, _ in found)
    assert right >= 0.6 * sum(marked for _, marked in found)


def test_vectors_of_another_embedder_say_nothing_of_changes() -> None:
    assert outdating.weigh(np.zeros(384, dtype=np.float32), "openai:text-embedding-3-small") is None


def test_a_sentence_that_is_about_its_document_does_not_end_in_another() -> None:
    """ "No data were lost" means the fire that the report is about."""
    report = "Report on the mill. The pump failed at night. No seals were lost. Ada Lund led the review."
    other = "Report on the barn. A door was left open. Seals were lost. Bo Falk led the review."
    for one, two in ((report, other), (f"User: {report}", f"User: {other}")):
        link = relate(two, one, 0.9)
        assert link is None or link.kind is LinkKind.UNSURE


def test_no_sentence_is_struck_from_a_document() -> None:
    """Nobody says "I" in it; the same words in a message end."""
    document = "Team page. Ana Lind is the lead. The office is on Elm Street."
    link = relate("Ana Lind is not the lead.", document, 0.8)
    assert link is not None
    assert (link.kind, link.text) == (LinkKind.UNSURE, None)
    said = relate("User: Ana Lind is not the lead.", f"User: {document}", 0.8)
    assert said is not None
    assert said.text == "User: Team page. The office is on Elm Street."
