"""Decision on one statement next to the memories near it: by the language model where there is one, else by the rules.

Single texts, facts of conversations, retries and jobs all come here. The rules (`judge`) also check what a model
answers
and decide wherever its answer cannot be used; a rejected answer is kept as evidence. One call per statement: a batched
call would mix up which numbers belong to which.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from service.curator import model_answers, model_calls, prompts
from service.curator.judge import RULES, judge
from service.domain.decision import Action, Decision, Edit, Evidence, Neighbour, Reason, Statement
from service.errors import LlmError
from service.language import contrast, echo
from service.resources import Resources

PARAPHRASE = 0.85
"""Similarity from which an assistant's sentence is a memory in other words (at 0.85 two may be one fact)."""


async def decide(statement: Statement, shown: Sequence[Neighbour], res: Resources, *, llm: bool) -> Decision:
    """The decision on a statement next to `shown` (nearest first). Never raises for a failing model."""
    if not llm or res.llm is None or not shown:
        return await _by_rules(statement, shown, res)
    custom = res.settings.custom_prompts.update_decision
    prompt = prompts.decide(statement, shown, instruction=custom)
    prompt_sha256 = hashlib.sha256(f"{prompt.system}\n{prompt.user}".encode()).hexdigest()
    try:
        reply = await model_calls.complete_uncached(res, prompt)  # an equal text is found before anybody is asked
    except LlmError as exc:
        fallback = await _by_rules(statement, shown, res)
        reason = f"model failed: {exc.detail} {fallback.evidence.reason}"
        warning = "llm_unavailable: a fact was decided by the rules."
        return replace(fallback, evidence=replace(fallback.evidence, reason=reason), warnings=(warning,))
    ids = tuple(each.id for each in shown)
    evidence = Evidence("llm", reply.model or res.llm.model, "", Reason.MODEL, ids, prompt_sha256, reply.text)
    decision = model_answers.checked(statement, shown, reply.text, evidence, may_drop=custom is not None)
    cut = ("llm_truncated: the model's answer was cut off.",) if reply.truncated else ()
    return replace(decision, warnings=(*decision.warnings, *cut))


async def _by_rules(statement: Statement, shown: Sequence[Neighbour], res: Resources) -> Decision:
    """Off the event loop: some milliseconds, more for long texts."""
    return await res.rules.run(judge, statement, shown) if shown else judge(statement, shown)


def said_back(statement: Statement, recalled: Sequence[Neighbour]) -> Decision | None:
    """NONE for what an assistant merely said back out of memory; None when it is no echo, or nothing was recalled."""
    if not recalled:
        return None
    same = next((each for each in recalled if _paraphrases(statement, each)), None)
    if same is None and not echo.is_echo(statement.text, [each.text for each in recalled]):
        return None
    ids = tuple(each.id for each in recalled)
    return Decision((Edit(Action.NONE, same or recalled[0]),), Evidence("rules", RULES, "NONE", Reason.ECHO, ids))


def _paraphrases(statement: Statement, memory: Neighbour) -> bool:
    """Close in meaning, and nothing in it that the memory lacks: no figure, no name, no negation, no other tense."""
    return memory.similarity >= PARAPHRASE and contrast.differs(statement.text, memory.text) is None
