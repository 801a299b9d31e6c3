"""The context of a conversation for its next prompt: the last turns and relevant memories.

The last turns come first, from the newest back, up to their share of the token budget; then the memories that answer
the query (or the last message of a user), then older turns, as far as they fit. Memories that are turns of this
conversation are left out, because they are among the turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.conversations.statements import turns
from service.domain.conversation import Conversation, Turn
from service.domain.memory import Hit
from service.domain.query import Detail, Query
from service.domain.text import CleanText
from service.runtime.resources import Resources
from service.search import prompt_block, search
from service.search.prompt_block import PromptBlock, PromptLine, PromptPiece

MAX_TURNS = 200
MAX_MEMORIES = 50
TURNS_SHARE = 0.6
"""The last turns get at most this share of the budget before memories are added."""

HEADINGS = {"memories": "## What is known", "turns": "## The conversation so far"}


@dataclass(frozen=True, slots=True)
class ConversationContext:
    """The context of a conversation: `turns` in their order, `memories` best first; `text`: both as one block;
    `tokens`: its estimated size."""

    turns: tuple[Turn, ...]
    memories: tuple[Hit, ...]
    text: str
    tokens: int
    warnings: tuple[str, ...] = ()


async def context(
    conversation: Conversation,
    query: CleanText | None,
    max_tokens: int,
    res: Resources,
    *,
    include_shared: bool,
    detail: Detail = "lean",
) -> ConversationContext:
    """Returns what fits into `max_tokens`. `query` None: the last turn of a user, or else the last turn.
    `include_shared`: also memories that the workspace shares."""
    scope = conversation.scope
    async with res.db.read(scope.workspace_id) as session:
        latest = await turns.latest(session, conversation.id, limit=MAX_TURNS, now=res.clock())
    last = next((turn.text for turn in reversed(latest) if turn.role == "user"), latest[-1].text if latest else None)
    text = query or last
    hits: Sequence[Hit] = ()
    warnings: tuple[str, ...] = ()
    if text:
        # memories of the whole user or agent, not only of this conversation
        wide = scope if scope.user_id is None and scope.agent_id is None else replace(scope, run_id=None)
        wide = replace(wide, include_shared=include_shared)
        result = await search.search(Query(wide, text, MAX_MEMORIES, ranking=res.settings.ranking, detail=detail), res)
        hits, warnings = result.hits, result.warnings
    return fit(conversation, latest, hits, max_tokens, warnings)


def fit(
    conversation: Conversation,
    latest: Sequence[Turn],
    hits: Sequence[Hit],
    max_tokens: int,
    warnings: tuple[str, ...] = (),
) -> ConversationContext:
    """Returns the context cut to `max_tokens`."""
    block = PromptBlock(HEADINGS, max_tokens)
    limit = TURNS_SHARE * max_tokens
    pieces = [_turn(turn) for turn in reversed(latest)]
    recent = 0
    for piece in pieces:
        if (recent and block.tokens > limit) or not block.take(piece):
            break
        recent += 1
    elsewhere = [hit for hit in hits if hit.memory.conversation_id != conversation.id or hit.memory.turn_index is None]
    for hit in elsewhere:
        block.take(_memory(hit))
    for piece in pieces[recent:]:
        if not block.take(piece):
            break  # a conversation with gaps would mislead
    turns_taken, memories_taken = block.lines.get("turns", {}), block.lines.get("memories", {})
    return ConversationContext(
        tuple(turn for turn in latest if turn.id in turns_taken),
        tuple(hit for hit in elsewhere if hit.memory.id in memories_taken),
        block.text(("memories", "turns")),
        block.tokens,
        warnings,
    )


def _turn(turn: Turn) -> PromptPiece:
    return PromptPiece("turns", 0.0, (PromptLine(turn.id, prompt_block.format_turn(turn), (turn.index,)),))


def _memory(hit: Hit) -> PromptPiece:
    [line] = prompt_block.fact(hit.memory, hit.score, hit.memory.timestamp.date()).lines
    return PromptPiece("memories", hit.score, (replace(line, order=(-hit.score, str(hit.memory.id))),))
