"""Checks of tests/corpora/curator: what a new text does to a stored one, decided without a model."""

from __future__ import annotations

from uuid import UUID

from service.domain.decision import Action, Claim, Decision, Neighbour
from service.domain.fact import Fact
from service.domain.text import CleanText
from service.language.talk import Utterance
from service.providers.json_reply import as_list, parse_reply
from service.understanding.grounding import ground
from service.understanding.judge import judge
from service.understanding.sourcing import SourceTurns

CONVERSATION = [
    Utterance("user", CleanText("I live in Lisbon. I have a cat.")),
    Utterance("assistant", CleanText("I remember that you like green tea. How is your cat?")),
    Utterance("user", CleanText("Fine. No, sorry. I meant a dog! And I moved, actually I live in Porto now.")),
]


def judged(old: str, new: str, similarity: float) -> Decision:
    return judge(Claim(CleanText(new)), [Neighbour(UUID(int=1), CleanText(old), "", 1, similarity)])


def check_stays(old: str, new: str, similarity: float = 0.8) -> None:
    """Both stay, be the old one marked or not."""
    decision = judged(old, new, similarity)
    assert ([edit.action for edit in decision.edits], decision.strikes) == ([Action.ADD], ())


def check_judged_none(old: str, new: str, similarity: float = 0.8) -> None:
    assert [edit.action for edit in judged(old, new, similarity).edits] == [Action.NONE]


def check_judged_update(old: str, new: str, similarity: float = 0.8) -> None:
    """The new text takes the place of the old one, as it was given."""
    assert [(edit.action, edit.text) for edit in judged(old, new, similarity).edits] == [(Action.UPDATE, new)]


def check_sourcing(text: str, message: int, *, correction: bool) -> None:
    """A fact is found in the sentence of CONVERSATION that it came from."""
    [found] = ground([Fact(CleanText(text), 0.95)], SourceTurns(CONVERSATION))[0]
    assert (found.message, found.correction) == (message, correction)


def check_model_replies(reply: str, facts: list[str] | None) -> None:
    """The ways of answering with a list, in the order they are tried."""
    assert as_list(parse_reply(reply)) == facts
