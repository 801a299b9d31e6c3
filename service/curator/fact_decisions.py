"""Decides what one new fact does to the nearest memories.

The model's answer is checked before it counts: memories that were not shown are not touched, and no answer may retire
more than it puts in place. One that fails the check is kept as rejected evidence and the rules decide. One call per
fact: a batched call would mix up which numbers belong to which.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from service.curator import checks, model_calls, offline, prompts
from service.curator.decide import BRIEF, RULES
from service.domain.decision import Action, Decision, Edit, Evidence, Neighbour
from service.domain.temporal import TemporalTag
from service.domain.text import CleanText
from service.errors import LlmError
from service.language import contrast, facts
from service.language.facts import StatedFact
from service.language.facts.echo import content_words
from service.providers.json_reply import as_list, readings
from service.resources import Resources

MAX_OPERATIONS = 20
"""Of one answer; an honest one has one to three."""

PARAPHRASE = 0.85
"""Similarity from which an assistant's sentence is a memory in other words (at 0.85 two may be one fact)."""


async def decide(fact: CleanText, shown: Sequence[Neighbour], res: Resources, *, llm: bool) -> Decision:
    """The decision on a fact next to `shown` (nearest first). Never raises for a failing model."""
    if not llm or res.llm is None:
        return await res.threads.run(by_rules, fact, shown) if len(fact) > BRIEF else by_rules(fact, shown)
    if not shown:
        nothing_near = Evidence("rules", RULES, "ADD", "no stored memory is near", ())
        return Decision((Edit(Action.ADD, None, fact),), nothing_near)
    custom = res.settings.custom_prompts.update_decision
    prompt = prompts.decide_fact(fact, [each.text for each in shown], instruction=custom)
    prompt_sha256 = hashlib.sha256(f"{prompt.system}\n{prompt.user}".encode()).hexdigest()
    try:
        reply = await model_calls.complete_uncached(res, prompt)  # an equal fact is found before anybody is asked
    except LlmError as exc:
        fallback = by_rules(fact, shown)
        reason = f"model failed: {exc.detail} {fallback.evidence.reason}"
        warning = "llm_unavailable: a fact was decided by the rules."
        return replace(fallback, evidence=replace(fallback.evidence, reason=reason), warnings=(warning,))
    ids = tuple(each.id for each in shown)
    evidence = Evidence("llm", reply.model or res.llm.model, "", "", ids, prompt_sha256, reply.text)
    decision = checked(fact, shown, reply.text, evidence, may_drop=custom is not None)
    cut = ("llm_truncated: the model's answer was cut off.",) if reply.truncated else ()
    return replace(decision, warnings=(*decision.warnings, *cut))


def echo(fact: CleanText, recalled: Sequence[Neighbour]) -> Decision | None:
    """NONE for what an assistant merely said back out of memory; None when it is no echo, or nothing was recalled."""
    if not recalled:
        return None
    same = next((each for each in recalled if _paraphrases(fact, each)), None)
    if same is None and not facts.is_echo(fact, [each.text for each in recalled]):
        return None
    ids = tuple(each.id for each in recalled)
    judged = Evidence("rules", RULES, "NONE", "the assistant said what was recalled to it", ids)
    return Decision((Edit(Action.NONE, same or recalled[0]),), judged)


def _paraphrases(fact: CleanText, memory: Neighbour) -> bool:
    """Close in meaning, and nothing in it that the memory lacks: no figure, no name, no negation, no other tense."""
    return memory.similarity >= PARAPHRASE and contrast.differs(fact, memory.text) is None


def by_rules(fact: CleanText, shown: Sequence[Neighbour]) -> Decision:
    """The offline decision; pure, so it also runs inside the lock."""
    known = [offline.ShownMemory(number, each.text, each.similarity) for number, each in enumerate(shown)]
    verdicts = offline.decide(_read(fact), known)
    operations = tuple(
        Edit(
            verdict.action,
            None if verdict.target is None else shown[verdict.target],
            CleanText(verdict.text) if verdict.text else None,
        )
        for verdict in verdicts
    )
    verbs = "+".join(each.action for each in operations)
    reason = "; ".join(dict.fromkeys(verdict.reason for verdict in verdicts))
    ids = tuple(each.id for each in shown)
    return Decision(_never_less(operations, fact), Evidence("rules", RULES, verbs, reason, ids))


def _read(fact: CleanText) -> StatedFact:
    """The fact taken apart; one that has no form we know is compared by its words alone."""
    return facts.read(fact) or StatedFact(fact, "user", None, None, "positive", "implied", TemporalTag.CURRENT)


def checked(
    fact: CleanText, shown: Sequence[Neighbour], answer: str, evidence: Evidence, *, may_drop: bool = False
) -> Decision:
    """The model's answer as far as it may count. Pure. `may_drop`: an instruction of the workspace's own may want facts
    left out, by NONE."""
    listed = _listed(answer)
    if listed is None:
        return _rejected(fact, shown, evidence, "the answer could not be read")
    read = [_operation(each, fact, shown) for each in listed[:MAX_OPERATIONS]]
    operations = tuple(each for each in read if each is not None)
    if not operations:
        return _rejected(fact, shown, evidence, "it names no memory that was shown")
    if not all(_grounded(each, fact) for each in operations):
        return _rejected(fact, shown, evidence, "it writes what neither the fact nor the memory says")
    if any(_overwrites(each, fact) for each in operations):
        return _rejected(fact, shown, evidence, "it puts the fact in the place of a memory about something else")
    meant = _meaningful(operations)
    if not may_drop and any(_drops(each, fact, shown) for each in meant):
        return _rejected(fact, shown, evidence, "it drops a fact that no memory says")
    deletes = [each for each in operations if each.action is Action.DELETE]
    touched = [each.target.id for each in operations if each.target is not None and each.action is not Action.NONE]
    if len(deletes) > 1 or len(set(touched)) < len(touched) or _deletes_unrelated(operations, fact):
        return _rejected(fact, shown, evidence, "it would retire more than it puts in place")
    verbs = "+".join(each.action for each in operations)
    judged = replace(evidence, verdict=verbs, reason="")
    return Decision(_never_less(meant, fact), judged, _dropped(listed, None in read))


def _dropped(listed: Sequence[Any], unknown: bool) -> tuple[str, ...]:
    """What of an answer did not count."""
    warnings = ["unknown_id: an operation on a memory that was not shown was dropped."] if unknown else []
    if len(listed) > MAX_OPERATIONS:
        warnings.append(f"too_many_operations: {len(listed)} were answered for one fact, {MAX_OPERATIONS} are read.")
    return tuple(warnings)


def _grounded(operation: Edit, fact: CleanText) -> bool:
    """Whether a written text says no more than the fact and the memory it replaces, and keeps the fact's figures."""
    text, target = operation.text, operation.target
    if text is None or text == fact:
        return True
    if not checks.is_grounded(text, fact, target.text if target else ""):
        return False
    return operation.action is not Action.UPDATE or contrast.keeps_figures(text, fact)


def _overwrites(operation: Edit, fact: CleanText) -> bool:
    text, target = operation.text, operation.target
    if operation.action is not Action.UPDATE or text is None or target is None:
        return False
    return checks.overwrites(text, fact, target.text)


def _drops(operation: Edit, fact: CleanText, shown: Sequence[Neighbour]) -> bool:
    """Whether a NONE would lose what no memory says."""
    target = operation.target
    if operation.action is not Action.NONE or target is None:
        return False
    return checks.is_news(_read(fact), target.text, target.similarity, [each.text for each in shown])


def _deletes_unrelated(operations: tuple[Edit, ...], fact: CleanText) -> bool:
    """Whether an UPDATE comes with the deletion of a memory that has no word in common with the new texts."""
    if all(each.action is not Action.UPDATE for each in operations):
        return False
    new_words = content_words(fact).union(*(content_words(each.text) for each in operations if each.text))
    deleted = (each.target for each in operations if each.action is Action.DELETE and each.target is not None)
    return any(not new_words & content_words(each.text) for each in deleted)


def _operation(value: Any, fact: CleanText, shown: Sequence[Neighbour]) -> Edit | None:
    """One entry, None when it cannot count. An update of something unknown is still a new fact."""
    action = _action(value)
    if action is None:
        return None
    texts = (value.get(key) for key in ("data", "text", "new_memory", "memory"))
    text = CleanText(next((each.strip() for each in texts if isinstance(each, str) and each.strip()), ""))
    target = _target(value.get("id"), shown)
    if action is Action.ADD:
        return Edit(Action.ADD, None, text or fact)
    if action is Action.UPDATE and target is not None and text == target.text:
        return Edit(Action.NONE, target)
    if action is Action.UPDATE:
        return Edit(Action.UPDATE, target, text or fact) if target else Edit(Action.ADD, None, text or fact)
    if target is None:
        return Edit(Action.NONE, shown[0]) if action is Action.NONE else None
    return Edit(action, target)


def _target(given: Any, shown: Sequence[Neighbour]) -> Neighbour | None:
    """The memory behind a local number; models also echo it in brackets, as a string, or give a full id."""
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        return None
    word = str(given).strip("[]#. ").removesuffix(".0")
    named = {**{str(each.id): each for each in shown}, **{str(place): each for place, each in enumerate(shown, 1)}}
    return named.get(word.lower())


ACTION_KEYS = ("event", "action", "operation", "op")


def _action(value: Any) -> Action | None:
    """What an entry wants to be done; None when it is no operation."""
    names = (value[key] for key in ACTION_KEYS if isinstance(value.get(key), str)) if isinstance(value, dict) else ()
    name = next(iter(names), "").upper()
    return Action(name) if name in set(Action) else None


def _listed(answer: str) -> list[Any] | None:
    """The first list in the answer with an operation in it, else the first list; None when there is none."""
    first: list[Any] | None = None
    for value in readings(answer):
        alone = isinstance(value, dict) and any(key in value for key in ACTION_KEYS)
        listed = [value] if alone else as_list(value)
        if listed is not None and any(_action(each) for each in listed):
            return listed
        first = listed if first is None else first
    return first


def _meaningful(operations: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """NONE beside another action says nothing."""
    real = tuple(each for each in operations if each.action is not Action.NONE)
    return real or operations[:1]


def _never_less(operations: tuple[Edit, ...], fact: CleanText) -> tuple[Edit, ...]:
    """A bare DELETE puts the fact that caused it in place: what is known changes, it does not vanish."""
    retires = any(each.action is Action.DELETE for each in operations)
    places = any(each.action is not Action.DELETE for each in operations)
    return (*operations, Edit(Action.ADD, None, fact)) if retires and not places else operations


def _rejected(fact: CleanText, shown: Sequence[Neighbour], evidence: Evidence, why: str) -> Decision:
    fallback = by_rules(fact, shown)
    reason = f"{why}; the rules decided {fallback.evidence.verdict}"
    judged = replace(evidence, verdict=fallback.evidence.verdict, reason=reason, rejected=True)
    return replace(fallback, evidence=judged, warnings=(f"decision_rejected: {why}.",))
