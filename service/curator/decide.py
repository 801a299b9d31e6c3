"""Decision between a new text and the stored ones near it: another fact, the same, or a newer version.

The language model decides where there is one, the rules otherwise and wherever its answer cannot be used: an unknown
number, an empty text, a merge that loses the new text's figures. A rejected answer is kept as evidence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal
from uuid import UUID

from pydantic import BaseModel

from service.curator import model_calls, prompts, rules
from service.domain.decision import Action, Decision, Edit, Evidence, Neighbour
from service.domain.text import CleanText
from service.errors import LlmError
from service.language import contrast
from service.resources import Resources

RULES = "rules:1"
"""Name and version of the offline decision, kept with each decision it makes."""


BRIEF, COMPARABLE = 500, 4_000
"""Characters: longer texts leave the event loop; beyond the second number the rules keep both, a comparison of long
texts word by word would be slow and worth little."""


class DecisionReply(BaseModel):
    """The shape the model is asked for; lenient, because small models leave nulls out."""

    action: Literal["none", "update", "add"]
    id: int | None = None
    text: str | None = None
    reason: str | None = None


async def between(
    new: CleanText, shown: Sequence[Neighbour], workspace_id: UUID, res: Resources, *, llm: bool
) -> Decision:
    """One edit for `new` next to `shown` (nearest first, at least one). Never raises for a failing model."""
    if not llm or res.llm is None:
        return await res.threads.run(by_rules, new, shown) if len(new) > BRIEF else by_rules(new, shown)
    prompt = prompts.decide(new, [each.text for each in shown], instruction=res.settings.custom_prompts.update_decision)
    prompt_sha256 = hashlib.sha256(f"{prompt.system}\n{prompt.user}".encode()).hexdigest()
    try:
        reply, raw = await model_calls.complete_as(res, workspace_id, prompt, DecisionReply)
    except LlmError as exc:
        return _instead(by_rules(new, shown), res.llm.model, f"model failed: {exc.detail}")
    evidence = Evidence(
        "llm", raw.model or res.llm.model, reply.action, reply.reason or "", _ids(shown), prompt_sha256, raw.text
    )
    return _checked(reply, new, shown, evidence)


def by_rules(new: CleanText, shown: Sequence[Neighbour]) -> Decision:
    """The offline decision: the first neighbour that is the same fact counts. Pure, so it also runs inside the lock."""
    for each in shown:
        if max(len(new), len(each.text)) > COMPARABLE:
            continue
        found = rules.decide_pair(new, each.text, each.similarity)
        evidence = Evidence("rules", RULES, str(found.action), found.reason, _ids(shown))
        if found.action is rules.PairAction.KEEP_BOTH:
            continue
        if found.action is rules.PairAction.NONE:
            return _one(evidence, Action.NONE, each)
        return _one(evidence, Action.UPDATE, each, CleanText(found.text or new))
    return _one(Evidence("rules", RULES, "keep_both", "nothing shown is the same", _ids(shown)), Action.ADD)


def _checked(reply: DecisionReply, new: CleanText, shown: Sequence[Neighbour], evidence: Evidence) -> Decision:
    if reply.action == "add":
        return _one(evidence, Action.ADD)
    if reply.id is None or not 1 <= reply.id <= len(shown):
        return _rejected(by_rules(new, shown), evidence, "it names no note that was shown")
    target = shown[reply.id - 1]
    if reply.action == "none":
        return _one(evidence, Action.NONE, target)
    text = (reply.text or "").strip()
    if not text:
        return _rejected(by_rules(new, shown), evidence, "an update without a text")
    if not contrast.keeps_figures(text, new):
        return _rejected(by_rules(new, shown), evidence, "an update that loses the new text's figures")
    return _one(evidence, Action.UPDATE, target, CleanText(text))


def _one(
    evidence: Evidence, action: Action, target: Neighbour | None = None, text: CleanText | None = None
) -> Decision:
    return Decision((Edit(action, target, text),), evidence)


def _rejected(fallback: Decision, evidence: Evidence, why: str) -> Decision:
    kept = replace(evidence, rejected=True, reason=f"{why}; the rules decided {fallback.evidence.verdict}")
    return replace(fallback, evidence=kept)


def _instead(fallback: Decision, model: str, why: str) -> Decision:
    return replace(fallback, evidence=replace(fallback.evidence, reason=f"{why} ({model}); {fallback.evidence.reason}"))


def _ids(shown: Sequence[Neighbour]) -> tuple[UUID, ...]:
    return tuple(each.id for each in shown)
