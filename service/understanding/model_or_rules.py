"""The decision on a statement and the memories near it: by the rules, and by the language model where they leave it
open.

Single texts, facts of conversations, retries and jobs all use it. The rules (`judge`) also check what a model answers,
and decide wherever its answer cannot be used; a rejected answer is kept as evidence. One call per statement: in a
call for several, a model mixes up whose neighbours it numbers.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

from service.domain.decision import Action, Claim, Decision, Edit, Evidence, Neighbour, Reason
from service.domain.errors import LlmError
from service.domain.fact import Comparison
from service.runtime.resources import Resources
from service.understanding import checks, model_answers, model_calls, prompts
from service.understanding.judge import RULES, judge, settle

T = TypeVar("T")

CALLS_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class ShownClaim:
    """A statement with the memories to decide it by, nearest first."""

    claim: Claim
    shown: tuple[Neighbour, ...]
    comparison: Comparison | None = None


async def decide(
    claim: Claim, shown: Sequence[Neighbour], workspace_id: UUID, res: Resources, *, llm: bool
) -> Decision:
    """The decision on a statement next to `shown` (nearest first), the model's where `llm` says so and there is one.
    Never raises for a failing model."""
    given = ShownClaim(claim, tuple(shown))
    if llm and res.llm is not None and shown:
        return await _by_model(given, workspace_id, res)
    return (await _by_rules(_judge, [given], res))[0]


async def decide_open(given: Sequence[ShownClaim], workspace_id: UUID, res: Resources, *, llm: bool) -> list[Decision]:
    """Decides about each statement. The model is asked about those that the rules leave open; with an instruction of
    the workspace for decisions, about all that have memories near them."""
    if not llm or res.llm is None:
        return await _by_rules(_judge, given, res)
    if res.settings.llm.prompts.update_decision is not None:
        decisions: list[Decision | None] = [None if each.shown else _judge(each) for each in given]
    else:
        decisions = await _by_rules(_settle, given, res)
    slots = asyncio.Semaphore(CALLS_AT_ONCE)

    async def one(claim: ShownClaim, settled: Decision | None) -> Decision:
        if settled is not None:
            return settled
        async with slots:
            return await _by_model(claim, workspace_id, res)

    return list(await asyncio.gather(*map(one, given, decisions)))


async def _by_rules(judge_one: Callable[[ShownClaim], T], given: Sequence[ShownClaim], res: Resources) -> list[T]:
    """Judges all statements in one call; long texts off the event loop."""
    texts = [case.claim.text for case in given] + [memory.text for case in given for memory in case.shown]
    return await res.rules.run_if_long(sum(map(len, texts)), lambda: list(map(judge_one, given)))


def _judge(given: ShownClaim) -> Decision:
    return judge(given.claim, given.shown)


def _settle(given: ShownClaim) -> Decision | None:
    return settle(given.claim, given.shown, given.comparison)


async def _by_model(given: ShownClaim, workspace_id: UUID, res: Resources) -> Decision:
    assert res.llm is not None
    claim, shown = given.claim, given.shown
    custom = res.settings.llm.prompts.update_decision
    prompt = prompts.decide(claim, shown, instruction=custom)
    prompt_sha256 = hashlib.sha256(f"{prompt.system}\n{prompt.user}".encode()).hexdigest()
    try:
        # uncached: an equal text is found before anybody is asked
        reply = await model_calls.complete_uncached(res, workspace_id, prompt)
    except LlmError as exc:
        [fallback] = await _by_rules(_judge, [given], res)
        reason = f"model failed: {exc.detail} {fallback.evidence.reason}"
        warning = exc.as_warning("A fact was decided by the rules.")
        return replace(fallback, evidence=replace(fallback.evidence, reason=reason), warnings=(warning,))
    ids = tuple(neighbour.id for neighbour in shown)
    evidence = Evidence("llm", reply.model or res.llm.model, "", Reason.MODEL, ids, prompt_sha256, reply.text)
    decision = model_answers.check(claim, shown, reply.text, evidence, may_drop=custom is not None)
    cut = ("llm_truncated: the model's answer was cut off.",) if reply.truncated else ()
    return replace(decision, warnings=(*decision.warnings, *cut))


def echo_decision(claim: Claim, recalled: Sequence[Neighbour]) -> Decision | None:
    """NONE for a statement in which an assistant only repeats recalled memories; None if it says more, or none were
    recalled."""
    same = next((neighbour for neighbour in recalled if checks.says_it(neighbour.text, claim.text)), None)
    if same is None:
        return None
    ids = tuple(neighbour.id for neighbour in recalled)
    return Decision((Edit(Action.NONE, same),), Evidence("rules", RULES, "NONE", Reason.ECHO, ids))
