"""What goes into the prompt of a conversation that goes on? What was said last, and what is known that bears on it.

The last turns come first, from the newest back, up to their share of the room; then the memories that answer the
question (or the last thing a user said), then older turns, as far as both fit. Memories that are turns of this
conversation are left out: they are said already, or have been.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.db.episodes import turns as rows
from service.domain.conversation import Conversation, Turn
from service.domain.memory import Hit
from service.domain.query import Query
from service.domain.text import CleanText
from service.resources import Resources
from service.retrieval import phrasing, search
from service.retrieval.packing import Block, Line, Piece, one_line

LAST_TURNS = 200
MEMORIES = 50
TURNS_SHARE = 0.6
"""Of the room, at most this for the last turns before memories have had theirs."""

HEADINGS = {"memories": "## What is known", "turns": "## The conversation so far"}


@dataclass(frozen=True, slots=True)
class Context:
    """`turns` in their order, `memories` best first; `text` is both as one block and `tokens` its estimate."""

    turns: tuple[Turn, ...]
    memories: tuple[Hit, ...]
    text: str
    tokens: int
    warnings: tuple[str, ...] = ()


async def context(there: Conversation, asked: CleanText | None, max_tokens: int, res: Resources) -> Context:
    """What fits into `max_tokens`. `asked` None: the last thing a user said, or else the last thing said."""
    workspace_id = there.scope.workspace_id
    async with res.db.read(workspace_id) as session:
        said = await rows.latest(session, workspace_id, there.id, limit=LAST_TURNS)
    about = asked or next(
        (turn.text for turn in reversed(said) if turn.role == "user"), said[-1].text if said else None
    )
    hits: Sequence[Hit] = ()
    warnings: tuple[str, ...] = ()
    if about:
        # memories of the whole user or agent, not of this conversation alone
        scope = there.scope
        wide = scope if scope.user_id is None and scope.agent_id is None else replace(scope, run_id=None)
        found = await search.search(Query(wide, about, MEMORIES, ranking=res.settings.ranking), res)
        hits, warnings = found.hits, found.warnings
    return fitted(there, said, hits, max_tokens, warnings)


def fitted(
    there: Conversation, said: Sequence[Turn], hits: Sequence[Hit], max_tokens: int, warnings: tuple[str, ...] = ()
) -> Context:
    """The context within its room. Pure."""
    block = Block(HEADINGS, max_tokens)
    limit = TURNS_SHARE * max_tokens
    pieces = [_spoken(turn) for turn in reversed(said)]
    recent = 0
    for piece in pieces:
        if recent and block.tokens > limit:
            break
        if not block.take(piece):
            break
        recent += 1
    elsewhere = [hit for hit in hits if hit.memory.conversation_id != there.id or hit.memory.turn_index is None]
    for hit in elsewhere:
        block.take(_known(hit))
    for piece in pieces[recent:]:
        if not block.take(piece):
            break  # a conversation with gaps would mislead
    turns, memories = block.lines.get("turns", {}), block.lines.get("memories", {})
    return Context(
        tuple(turn for turn in said if turn.id in turns),
        tuple(hit for hit in elsewhere if hit.memory.id in memories),
        block.text(("memories", "turns")),
        block.tokens,
        warnings,
    )


def _spoken(turn: Turn) -> Piece:
    told = f"{one_line(turn.speaker or turn.role)}: {one_line(turn.text)}"
    return Piece("turns", 0.0, (Line(turn.id, told, (turn.index,)),))


def _known(hit: Hit) -> Piece:
    [line] = phrasing.fact(hit.memory, hit.score).lines
    return Piece("memories", hit.score, (replace(line, order=(-hit.score, str(hit.memory.id))),))
