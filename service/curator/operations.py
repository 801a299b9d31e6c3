"""What does one new fact do to the memories nearest to it?

ADD, UPDATE, DELETE, NONE, several at once if need be. The model's answer is checked before it counts: memories that
were not shown are not touched, and no answer may retire more than it puts in place. One that fails the check is kept
as rejected evidence and the rules decide. One call per fact: a batched call would mix up which numbers belong to which.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from service.curator import asking, checks, offline, prompts
from service.curator.decide import BRIEF, RULES
from service.domain.draft import Judgement, Neighbour
from service.domain.temporal import TemporalTag
from service.domain.text import CleanText
from service.errors import LlmError
from service.language import contrast, facts
from service.language.facts import Fact as Stated
from service.language.facts.echo import content_words
from service.providers.json_reply import as_list, readings
from service.resources import Resources

MAX_OPERATIONS = 20
"""Of one answer; an honest one has one to three."""

PARAPHRASE = 0.85
"""Similarity from which an assistant's sentence is a memory in other words (R4.08: at 0.85 two may be one fact)."""


class Verb(StrEnum):
    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NONE = "NONE"


@dataclass(frozen=True, slots=True)
class Operation:
    """One verb; `target` with all but ADD, `text` with ADD and UPDATE."""

    verb: Verb
    target: Neighbour | None = None
    text: CleanText | None = None


@dataclass(frozen=True, slots=True)
class Ruling:
    """What happens, who said so, and what was odd about it."""

    operations: tuple[Operation, ...]
    judgement: Judgement
    warnings: tuple[str, ...] = ()


async def rule(fact: CleanText, shown: Sequence[Neighbour], res: Resources, *, llm: bool) -> Ruling:
    """The ruling on a fact next to `shown` (nearest first). Never raises for a failing model."""
    if not llm or res.llm is None:
        return await res.threads.run(by_rules, fact, shown) if len(fact) > BRIEF else by_rules(fact, shown)
    if not shown:
        nothing_near = Judgement("rules", RULES, "ADD", "no stored memory is near", ())
        return Ruling((Operation(Verb.ADD, None, fact),), nothing_near)
    custom = res.settings.custom_prompts.update_decision
    question = prompts.decide_fact(fact, [each.text for each in shown], instruction=custom)
    prompt_sha256 = hashlib.sha256(f"{question.system}\n{question.user}".encode()).hexdigest()
    try:
        reply = await asking.ask_once(res, question)  # an equal fact is found before anybody is asked
    except LlmError as exc:
        fallback = by_rules(fact, shown)
        reason = f"model failed: {exc.detail} {fallback.judgement.reason}"
        warning = "llm_unavailable: a fact was decided by the rules."
        return replace(fallback, judgement=replace(fallback.judgement, reason=reason), warnings=(warning,))
    ids = tuple(each.id for each in shown)
    evidence = Judgement("llm", reply.model or res.llm.model, "", "", ids, prompt_sha256, reply.text)
    ruling = checked(fact, shown, reply.text, evidence, may_drop=custom is not None)
    cut = ("llm_truncated: the model's answer was cut off.",) if reply.truncated else ()
    return replace(ruling, warnings=(*ruling.warnings, *cut))


def echo(fact: CleanText, recalled: Sequence[Neighbour]) -> Ruling | None:
    """NONE for what an assistant merely said back out of memory; None when it is no echo, or nothing was recalled."""
    if not recalled:
        return None
    same = next((each for each in recalled if _paraphrases(fact, each)), None)
    if same is None and not facts.is_echo(fact, [each.text for each in recalled]):
        return None
    ids = tuple(each.id for each in recalled)
    judged = Judgement("rules", RULES, "NONE", "the assistant said what was recalled to it", ids)
    return Ruling((Operation(Verb.NONE, same or recalled[0]),), judged)


def _paraphrases(fact: CleanText, memory: Neighbour) -> bool:
    """Close in meaning, and nothing in it that the memory lacks: no figure, no name, no negation, no other tense."""
    return memory.similarity >= PARAPHRASE and contrast.differs(fact, memory.text) is None


def by_rules(fact: CleanText, shown: Sequence[Neighbour]) -> Ruling:
    """The offline ruling; pure, so it also runs inside the lock."""
    known = [offline.Known(number, each.text, each.similarity) for number, each in enumerate(shown)]
    verdicts = offline.decide(_read(fact), known)
    operations = tuple(
        Operation(
            Verb(str(verdict.action).upper()),
            None if verdict.target is None else shown[verdict.target],
            CleanText(verdict.text) if verdict.text else None,
        )
        for verdict in verdicts
    )
    verbs = "+".join(each.verb for each in operations)
    reason = "; ".join(dict.fromkeys(verdict.reason for verdict in verdicts))
    ids = tuple(each.id for each in shown)
    return Ruling(_never_less(operations, fact), Judgement("rules", RULES, verbs, reason, ids))


def _read(fact: CleanText) -> Stated:
    """The fact taken apart; one that has no form we know is compared by its words alone."""
    return facts.read(fact) or Stated(fact, "user", None, None, "positive", "implied", TemporalTag.CURRENT)


def checked(
    fact: CleanText, shown: Sequence[Neighbour], answer: str, evidence: Judgement, *, may_drop: bool = False
) -> Ruling:
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
    deletes = [each for each in operations if each.verb is Verb.DELETE]
    touched = [each.target.id for each in operations if each.target is not None and each.verb is not Verb.NONE]
    if len(deletes) > 1 or len(set(touched)) < len(touched) or _sweeps(operations, fact):
        return _rejected(fact, shown, evidence, "it would retire more than it puts in place")
    verbs = "+".join(each.verb for each in operations)
    judged = replace(evidence, verdict=verbs, reason="")
    return Ruling(_never_less(meant, fact), judged, _dropped(listed, None in read))


def _dropped(listed: Sequence[Any], unknown: bool) -> tuple[str, ...]:
    """What of an answer did not count."""
    warnings = ["unknown_id: an operation on a memory that was not shown was dropped."] if unknown else []
    if len(listed) > MAX_OPERATIONS:
        warnings.append(f"too_many_operations: {len(listed)} were answered for one fact, {MAX_OPERATIONS} are read.")
    return tuple(warnings)


def _grounded(operation: Operation, fact: CleanText) -> bool:
    """Whether a written text says no more than the fact and the memory it replaces, and keeps the fact's figures."""
    text, target = operation.text, operation.target
    if text is None or text == fact:
        return True
    if not checks.is_grounded(text, fact, target.text if target else ""):
        return False
    return operation.verb is not Verb.UPDATE or contrast.keeps_figures(text, fact)


def _overwrites(operation: Operation, fact: CleanText) -> bool:
    text, target = operation.text, operation.target
    if operation.verb is not Verb.UPDATE or text is None or target is None:
        return False
    return checks.overwrites(text, fact, target.text)


def _drops(operation: Operation, fact: CleanText, shown: Sequence[Neighbour]) -> bool:
    """Whether a NONE would lose what no memory says."""
    target = operation.target
    if operation.verb is not Verb.NONE or target is None:
        return False
    return checks.is_news(_read(fact), target.text, target.similarity, [each.text for each in shown])


def _sweeps(operations: tuple[Operation, ...], fact: CleanText) -> bool:
    """Whether beside an UPDATE a memory goes that shares not a word with what is said: nothing takes its place."""
    if all(each.verb is not Verb.UPDATE for each in operations):
        return False
    told = content_words(fact).union(*(content_words(each.text) for each in operations if each.text))
    gone = (each.target for each in operations if each.verb is Verb.DELETE and each.target is not None)
    return any(not told & content_words(each.text) for each in gone)


def _operation(value: Any, fact: CleanText, shown: Sequence[Neighbour]) -> Operation | None:
    """One entry, None when it cannot count. An update of something unknown is still a new fact (R3.09)."""
    verb = _verb(value)
    if verb is None:
        return None
    texts = (value.get(key) for key in ("data", "text", "new_memory", "memory"))
    text = CleanText(next((each.strip() for each in texts if isinstance(each, str) and each.strip()), ""))
    target = _target(value.get("id"), shown)
    if verb is Verb.ADD:
        return Operation(Verb.ADD, None, text or fact)
    if verb is Verb.UPDATE and target is not None and text == target.text:
        return Operation(Verb.NONE, target)
    if verb is Verb.UPDATE:
        return Operation(Verb.UPDATE, target, text or fact) if target else Operation(Verb.ADD, None, text or fact)
    if target is None:
        return Operation(Verb.NONE, shown[0]) if verb is Verb.NONE else None
    return Operation(verb, target)


def _target(given: Any, shown: Sequence[Neighbour]) -> Neighbour | None:
    """The memory behind a local number; models also echo it in brackets, as a string, or give a full id."""
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        return None
    word = str(given).strip("[]#. ").removesuffix(".0")
    named = {**{str(each.id): each for each in shown}, **{str(place): each for place, each in enumerate(shown, 1)}}
    return named.get(word.lower())


VERB_KEYS = ("event", "action", "operation", "op")


def _verb(value: Any) -> Verb | None:
    """What an entry wants to be done; None when it is no operation."""
    names = (value[key] for key in VERB_KEYS if isinstance(value.get(key), str)) if isinstance(value, dict) else ()
    name = next(iter(names), "").upper()
    return Verb(name) if name in set(Verb) else None


def _listed(answer: str) -> list[Any] | None:
    """The first list in the answer with an operation in it, else the first list; None when there is none."""
    first: list[Any] | None = None
    for value in readings(answer):
        alone = isinstance(value, dict) and any(key in value for key in VERB_KEYS)
        listed = [value] if alone else as_list(value)
        if listed is not None and any(_verb(each) for each in listed):
            return listed
        first = listed if first is None else first
    return first


def _meaningful(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
    """NONE beside another verb says nothing."""
    real = tuple(each for each in operations if each.verb is not Verb.NONE)
    return real or operations[:1]


def _never_less(operations: tuple[Operation, ...], fact: CleanText) -> tuple[Operation, ...]:
    """A bare DELETE puts the fact that caused it in place: what is known changes, it does not vanish."""
    retires = any(each.verb is Verb.DELETE for each in operations)
    places = any(each.verb is not Verb.DELETE for each in operations)
    return (*operations, Operation(Verb.ADD, None, fact)) if retires and not places else operations


def _rejected(fact: CleanText, shown: Sequence[Neighbour], evidence: Judgement, why: str) -> Ruling:
    fallback = by_rules(fact, shown)
    reason = f"{why}; the rules decided {fallback.judgement.verdict}"
    judged = replace(evidence, verdict=fallback.judgement.verdict, reason=reason, rejected=True)
    return replace(fallback, judgement=judged, warnings=(f"decision_rejected: {why}.",))
