"""The decision on a statement and the memories near it: by the rules, and by the language model where they leave it
open.

Single texts, facts of conversations, retries and jobs all use it. The rules (`judge`) also check what a model answers,
and decide wherever its answer cannot be used; a rejected answer is kept as evidence. One call per statement: in a
call for several, a model mixes up whose neighbours it numbers.

An answer is checked before it counts: memories that were not shown are not touched, older news overwrites nothing, and
no answer may retire more than it replaces, lose a word of the fact, or write what neither says.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from service.domain.decision import Action, Claim, Decision, Edit, Evidence, Neighbour, Reason
from service.domain.errors import LlmError
from service.domain.fact import Comparison
from service.domain.text import CleanText
from service.providers.json_reply import as_list, readings
from service.runtime.resources import Resources
from service.understanding import grounding, model_calls, prompts
from service.understanding.judge import NEAR_UNSEEN, RULES, is_later, judge, settle
from service.understanding.sourcing import content_words

MAX_OPERATIONS = 20
"""Maximum number of entries in an answer; a sensible one has one to three."""

_BETWEEN_THINGS = re.compile(r"(?i)[,;.]\s|\b(?:and|but)\b")


def check_answer(
    claim: Claim, shown: Sequence[Neighbour], answer: str, evidence: Evidence, *, may_drop: bool = False
) -> Decision:
    """The usable part of the model's answer. Pure. `may_drop`: an instruction of the workspace's own may want facts
    left out, by NONE."""
    fact = claim.text
    listed = _find_list(answer)
    if not listed:
        return _reject(claim, shown, evidence, "the answer could not be read")
    read = [_operation(each, fact, shown) for each in listed[:MAX_OPERATIONS]]
    operations = tuple(edit for edit in read if edit is not None)
    if not operations:
        return _reject(claim, shown, evidence, "it names no memory that was shown")
    if not all(_is_grounded(edit, fact) for edit in operations):
        return _reject(claim, shown, evidence, "it writes what neither the fact nor the memory says")
    touched = [edit.target for edit in operations if edit.target is not None and edit.action is not Action.NONE]
    deletes = [edit for edit in operations if edit.action is Action.DELETE]
    if len(deletes) > 1 or len({memory.id for memory in touched}) < len(touched):
        return _reject(claim, shown, evidence, "it would retire more than it puts in place")
    words = content_words(fact).union(*(content_words(edit.text) for edit in operations if edit.text))
    replaces = any(edit.action is Action.UPDATE for edit in operations)
    if any(_says_something_else(memory, words, replaced=replaces) for memory in touched):
        return _reject(claim, shown, evidence, "it puts the fact in the place of a memory about something else")
    meant = _complete(operations, fact)
    if not may_drop and any(_drops(each, claim, shown) for each in meant):
        return _reject(claim, shown, evidence, "it drops a fact that no memory says")
    verbs = "+".join(edit.action for edit in operations)
    edits = _in_time(meant, claim)
    return Decision(
        edits,
        replace(evidence, verdict=verbs, reason=_why(listed) or evidence.reason),
        _explain_dropped(listed, None in read),
    )


def _explain_dropped(listed: Sequence[Any], unknown: bool) -> tuple[str, ...]:
    """The rejected part of an answer."""
    warnings = ["unknown_id: an operation on a memory that was not shown was dropped."] if unknown else []
    if len(listed) > MAX_OPERATIONS:
        warnings.append(f"too_many_operations: {len(listed)} were returned for one fact; {MAX_OPERATIONS} are read.")
    return tuple(warnings)


def _why(listed: Sequence[Any]) -> str:
    """The model's own words for it, where it gave some."""
    reasons = (each.get("reason") for each in listed if isinstance(each, dict))
    return next((each for each in reasons if isinstance(each, str) and each), "")


def _in_time(edits: tuple[Edit, ...], claim: Claim) -> tuple[Edit, ...]:
    """Turns an edit that would end a memory that is newer than the statement into one that makes the statement its
    history."""
    late = [edit.target for edit in edits if edit.target and edit.action is not Action.NONE]
    later = next((target for target in late if is_later(target, claim)), None)
    return edits if later is None else (Edit(Action.NONE, later, earlier=True),)


def _is_grounded(operation: Edit, fact: CleanText) -> bool:
    """Whether a written text says what the fact and the memory that it replaces say, and nothing else."""
    text, target = operation.text, operation.target
    return text is None or text == fact or grounding.is_borne_out(text, fact, target.text if target else "")


def _says_something_else(memory: Neighbour, words: frozenset[str], *, replaced: bool) -> bool:
    """Whether these words leave out more than one of the things that a memory says, or, where something is `replaced`,
    all that one says that is not near."""
    things = [thing for thing in map(content_words, _BETWEEN_THINGS.split(memory.text)) if thing]
    left_out = sum(map(words.isdisjoint, things))
    return left_out > 1 or (replaced and left_out == len(things) and memory.similarity < NEAR_UNSEEN)


def _drops(operation: Edit, claim: Claim, shown: Sequence[Neighbour]) -> bool:
    """Whether a NONE would lose a fact that no memory says."""
    return operation.action is Action.NONE and not any(grounding.says_it(each.text, claim.text) for each in shown)


def _operation(value: Any, fact: CleanText, shown: Sequence[Neighbour]) -> Edit | None:
    """One entry, None when it cannot count."""
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
        return Edit(Action.UPDATE, target, text or fact) if target else None
    return Edit(action, target) if target else None


def _target(given: Any, shown: Sequence[Neighbour]) -> Neighbour | None:
    """The memory with a local number; models also echo it in brackets, as a string, or give a full id."""
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        return None
    word = str(given).strip("[]#. ").removesuffix(".0")
    named = {
        **{str(neighbour.id): neighbour for neighbour in shown},
        **{str(index): each for index, each in enumerate(shown, 1)},
    }
    return named.get(word.lower())


ACTION_KEYS = ("event", "action", "operation", "op")


def _action(value: Any) -> Action | None:
    """The operation of an entry; None for anything else."""
    names = (value[key] for key in ACTION_KEYS if isinstance(value.get(key), str)) if isinstance(value, dict) else ()
    name = next(iter(names), "").upper()
    return Action(name) if name in set(Action) else None


def _find_list(answer: str) -> list[Any]:
    """The first list in the answer with an operation in it; empty if there is none."""
    for value in readings(answer):
        alone = isinstance(value, dict) and any(key in value for key in ACTION_KEYS)
        listed = [value] if alone else as_list(value)
        if listed is not None and any(map(_action, listed)):
            return listed
    return []


def _complete(operations: tuple[Edit, ...], fact: CleanText) -> tuple[Edit, ...]:
    """The operations without NONE next to another action. Where there is nothing but DELETE, the fact that caused it is
    added: what is known changes but does not vanish."""
    real = tuple(edit for edit in operations if edit.action is not Action.NONE) or operations[:1]
    is_bare = all(edit.action is Action.DELETE for edit in real)
    return (*real, Edit(Action.ADD, None, fact)) if is_bare else real


def _reject(claim: Claim, shown: Sequence[Neighbour], evidence: Evidence, why: str) -> Decision:
    fallback = judge(claim, shown)
    reason = f"{why}; the rules decided {fallback.evidence.verdict}"
    judged = replace(evidence, verdict=fallback.evidence.verdict, reason=reason, rejected=True)
    return replace(fallback, evidence=judged, warnings=(f"decision_rejected: {why}.",))


CALLS_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class ShownClaim:
    """A statement with the memories to decide it by, nearest first."""

    claim: Claim
    shown: tuple[Neighbour, ...]
    comparison: Comparison | None = None


async def decide(
    claims: Sequence[ShownClaim], workspace_id: UUID, res: Resources, *, llm: bool, ask_always: bool = False
) -> list[Decision]:
    """The decision on each statement. If `llm` says so and there is a model, it is asked about those that the rules
    leave open; with `ask_always`, or an instruction of the workspace for decisions, about all that have memories near
    them. Never raises for a failing model."""
    asks = llm and res.llm is not None
    asks_all = ask_always or res.settings.llm.prompts.update_decision is not None

    def decide_by_rules(given: ShownClaim) -> Decision | None:
        if asks and asks_all and given.shown:
            return None
        return settle(given.claim, given.shown, given.comparison) if asks else judge(given.claim, given.shown)

    chars = sum(map(_count_chars, claims))
    decisions = await res.rules.run_if_long(chars, lambda: list(map(decide_by_rules, claims)))
    slots = asyncio.Semaphore(CALLS_AT_ONCE)

    async def ask_if_open(claim: ShownClaim, decision: Decision | None) -> Decision:
        if decision is not None:
            return decision
        async with slots:
            return await _by_model(claim, workspace_id, res)

    return list(await asyncio.gather(*map(ask_if_open, claims, decisions)))


def _count_chars(given: ShownClaim) -> int:
    return len(given.claim.text) + sum(len(memory.text) for memory in given.shown)


async def _by_model(given: ShownClaim, workspace_id: UUID, res: Resources) -> Decision:
    assert res.llm is not None
    claim, shown = given.claim, given.shown
    custom = res.settings.llm.prompts.update_decision
    prompt = prompts.decide(claim, shown, instruction=custom)
    prompt_sha256 = hashlib.sha256(f"{prompt.system}\n{prompt.user}".encode()).hexdigest()
    try:
        # uncached: an equal text is found before anybody is asked
        reply = await model_calls.complete_on_account(res, workspace_id, prompt)
    except LlmError as exc:
        fallback = await res.rules.run_if_long(_count_chars(given), judge, claim, shown)
        reason = f"model failed: {exc.detail} {fallback.evidence.reason}"
        warning = exc.as_warning("A fact was decided by the rules.")
        return replace(fallback, evidence=replace(fallback.evidence, reason=reason), warnings=(warning,))
    ids = tuple(neighbour.id for neighbour in shown)
    evidence = Evidence("llm", reply.model or res.llm.model, "", Reason.MODEL, ids, prompt_sha256, reply.text)
    decision = check_answer(claim, shown, reply.text, evidence, may_drop=custom is not None)
    cut = ("llm_truncated: the model's answer was cut off.",) if reply.truncated else ()
    return replace(decision, warnings=(*decision.warnings, *cut))


def echo_decision(claim: Claim, recalled: Sequence[Neighbour]) -> Decision | None:
    """NONE for a statement in which an assistant only repeats recalled memories; None if it says more, or none were
    recalled."""
    same = next((neighbour for neighbour in recalled if grounding.says_it(neighbour.text, claim.text)), None)
    if same is None:
        return None
    ids = tuple(neighbour.id for neighbour in recalled)
    return Decision((Edit(Action.NONE, same),), Evidence("rules", RULES, "NONE", Reason.ECHO, ids))
