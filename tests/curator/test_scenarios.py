"""Changes told in other words, and things that look alike, judged beside what the local model finds near.

Written by someone who had not seen the rules. The rules were tuned on the first parts; the parts held out were read by
nobody who works on the rules, and only their totals are looked at here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from service.curator.judge import judge
from service.domain.decision import Action, Decision, Neighbour, Statement
from service.domain.text import CleanText
from service.providers import model_files
from service.providers.local import CALIBRATION, Encoder, LocalEmbedder

CORPORA = Path(__file__).parents[1] / "corpora" / "scenarios"


def cases(name: str) -> Iterator[dict[str, Any]]:
    return map(json.loads, (CORPORA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder(Encoder(model_files.load(None), window=256), threads=2, max_queue=1_000)


async def judged(embedder: LocalEmbedder, new: str, known: Sequence[str]) -> Decision:
    """The decision on a text beside those known, the nearest first."""
    vectors = await embedder.embed([CleanText(new), *map(CleanText, known)])
    first, *others = (np.asarray(each, dtype=np.float32) for each in vectors)
    near = [
        Neighbour(uuid4(), CleanText(text), "", 1, CALIBRATION.documents(float(first @ vector)))
        for text, vector in zip(known, others, strict=True)
    ]
    return judge(Statement(CleanText(new)), sorted(near, key=lambda each: -each.similarity))


def ended(decision: Decision) -> set[str]:
    changes = [each for each in decision.edits if each.action in (Action.UPDATE, Action.DELETE)]
    return {each.target.text for each in changes if each.target}


def is_outdated(text: str, words: Sequence[str]) -> bool:
    return any(any(word.lower() in text.lower() for word in each.split("|")) for each in words)


@pytest.mark.parametrize(("name", "found", "lost"), [("changes", 22, 3), ("changes-held-out", 14, 6)])
async def test_changes_in_other_words(embedder: LocalEmbedder, name: str, found: int, lost: int) -> None:
    right = wrong = 0
    for case in cases(name):
        gone = ended(await judged(embedder, case["new"], case["setup"]))
        old = {text for text in case["setup"] if is_outdated(text, case["must_not_contain"])}
        right += old <= gone
        wrong += len(gone - old)
    assert right >= found, right
    assert wrong <= lost, wrong


@pytest.mark.parametrize(("name", "found", "lost"), [("statements", 18, 0), ("statements-held-out", 15, 1)])
async def test_what_a_later_message_ends(embedder: LocalEmbedder, name: str, found: int, lost: int) -> None:
    right = wrong = 0
    for case in cases(name):
        earlier, later = f"User: {case['earlier']}", f"User: {case['later']}"
        gone = ended(await judged(embedder, later, [earlier]))
        right += bool(gone) and case["ends"]
        wrong += bool(gone) and not case["ends"]
    assert right >= found, right
    assert wrong <= lost, wrong


@pytest.mark.parametrize(("name", "joined"), [("distinct", 1), ("distinct-held-out", 2)])
async def test_things_that_look_alike_stay(embedder: LocalEmbedder, name: str, joined: int) -> None:
    wrong = 0
    for case in cases(name):
        for place in range(1, len(case["texts"])):
            decision = await judged(embedder, case["texts"][place], case["texts"][:place])
            wrong += decision.edits[0].action is not Action.ADD
    assert wrong <= joined, wrong
