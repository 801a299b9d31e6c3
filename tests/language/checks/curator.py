"""Checks of tests/corpora/curator: what a new text does to stored ones, decided without a model."""

from __future__ import annotations

from service.curator.offline import OfflineEdit, ShownMemory, decide
from service.curator.rules import PairAction, decide_pair
from service.curator.sourcing import SourceMessage, placed
from service.domain.decision import Action
from service.domain.fact import Fact
from service.domain.text import CleanText
from service.language.facts import read
from service.providers.json_reply import as_list, parse_reply

CONVERSATION = [
    SourceMessage("user", CleanText("I live in Lisbon. I have a cat.")),
    SourceMessage("assistant", CleanText("I remember that you like green tea. How is your cat?")),
    SourceMessage("user", CleanText("Fine. No, sorry. I meant a dog! And I moved, actually I live in Porto now.")),
]


def decided(new: str, old: str, similarity: float = 0.8) -> tuple[OfflineEdit, ...]:
    """The edits that a new fact makes to one stored memory."""
    fact = read(new)
    assert fact is not None
    return decide(fact, [ShownMemory(1, old, similarity)])


def check_offline_update(new: str, old: str, text: str, similarity: float) -> None:
    first = decided(new, old, similarity)[0]
    assert (first.action, first.target, first.text) == (Action.UPDATE, 1, text)


def check_offline_none(new: str, old: str) -> None:
    assert [(edit.action, edit.target, edit.text) for edit in decided(new, old)] == [(Action.NONE, 1, None)]


def check_offline_add(new: str, old: str) -> None:
    assert [(edit.action, edit.target, edit.text) for edit in decided(new, old)] == [(Action.ADD, None, new)]


def check_rules_none(new: str, old: str) -> None:
    decision = decide_pair(new, old, 0.9)
    assert (decision.action, decision.text) == (PairAction.NONE, None)


def check_rules_replace(new: str, old: str) -> None:
    decision = decide_pair(new, old, 0.9)
    assert (decision.action, decision.text) == (PairAction.REPLACE, new)


def check_rules_keep_both(new: str, old: str) -> None:
    """Never dropped, never written over."""
    assert decide_pair(new, old, 0.9).action is PairAction.KEEP_BOTH


def check_rules_merge(new: str, old: str, text: str | None) -> None:
    """`text`: the merged memory; None where both stay."""
    decision = decide_pair(new, old, 0.85)
    assert decision.text == text
    assert decision.action is (PairAction.MERGE if text else PairAction.KEEP_BOTH)
    assert decide_pair(new, old, 0.75).action is PairAction.KEEP_BOTH


def check_rules_reworded(new: str, old: str) -> None:
    """The text is stored as it was given, not as the plain words that both are compared in."""
    assert decide_pair(new, old, 0.9).text == new


def check_rules_without_content(new: str, old: str) -> None:
    """A text without content words replaces nothing and is not dropped."""
    assert decide_pair(new, old, 0.9).action is PairAction.KEEP_BOTH
    assert decide_pair(old, new, 0.9).action is PairAction.KEEP_BOTH
    assert decide_pair(old, old, 0.9).action is PairAction.NONE


def check_sourcing(text: str, message: int, *, correction: bool) -> None:
    """A fact is found in the sentence of CONVERSATION that it came from."""
    [found] = placed([Fact(CleanText(text), 0.95)], CONVERSATION)
    assert (found.message, found.correction) == (message, correction)


def check_model_replies(reply: str, facts: list[str] | None) -> None:
    """The ways of answering with a list, in the order they are tried."""
    assert as_list(parse_reply(reply)) == facts
