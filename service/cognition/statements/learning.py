"""What the job `patterns` learns from: the tools that conversations used, task by task, and memories that may be
examples of a memory of type Pattern.

Only the job marks a conversation (`patterns_extracted`); a later turn or use of a tool removes the mark. The job locks
the conversation, waits for uses that are being written, and marks it only if it is unchanged since it was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from uuid import UUID

from sqlalchemy import text

from service.domain.scope import Scope
from service.language.pattern_examples import FREQUENCY_TERMS, MIN_WORDS
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.postgres.template import Template

MAX_PEERS = 1_000
"""The number of an owner's newest conversations that others are compared with."""

# Conversations that have ended: quiet, and without an open goal. A goal belongs to a conversation by its run.
OPEN_GOAL = """
    EXISTS (SELECT FROM goal g WHERE g.workspace_id = c.workspace_id AND g.run_id = c.external_id
            AND g.user_id IS NOT DISTINCT FROM c.user_id AND g.status IN ('active', 'blocked'))
"""

UNREAD = text(f"""
    SELECT c.workspace_id, c.id, c.user_id, c.agent_id, c.channel, c.turn_count, used.last_id
    FROM conversation c CROSS JOIN LATERAL (
        SELECT max(i."timestamp") AS at, max(i.id) AS last_id FROM tool_invocation i
        WHERE i.workspace_id = c.workspace_id AND i.conversation_id = c.id
    ) used
    WHERE c.workspace_id = :workspace AND c.id > :after AND NOT c.patterns_extracted
      AND (c.user_id IS NOT NULL OR c.agent_id IS NOT NULL)  -- no strategy is shared
      AND used.at <= :quiet_since AND NOT {OPEN_GOAL}
    ORDER BY c.id LIMIT :batch
""")  # noqa: S608 - no user input

# Each task of the given conversations and of other finished ones of their owner and channel. Uses without a type of
# task cannot be compared across conversations. ix_conversation_user or ix_conversation_agent.
USES = Template(f"""
    WITH peer AS (
        SELECT c.* FROM conversation c
        WHERE {{owner}} AND c.user_id IS NOT DISTINCT FROM :user_id AND c.agent_id IS NOT DISTINCT FROM :agent_id
          AND NOT {OPEN_GOAL}
          AND EXISTS (SELECT FROM tool_invocation i
                      WHERE i.workspace_id = c.workspace_id AND i.conversation_id = c.id AND i.task_type IS NOT NULL)
        ORDER BY (c.id = ANY (CAST(:conversations AS uuid[]))) DESC, c.created_at DESC, c.id LIMIT :peers
    ), used AS (
        SELECT c.id, c.external_id, c.user_id, i.task_type,
               array_agg(i.tool_name ORDER BY i."timestamp", i.id) AS tools,
               array_agg(i.success ORDER BY i."timestamp", i.id) AS successes,
               max(i."timestamp") AS last_at
        FROM peer c JOIN tool_invocation i ON i.workspace_id = c.workspace_id AND i.conversation_id = c.id
        WHERE i.task_type IS NOT NULL GROUP BY 1, 2, 3, 4
    )
    SELECT u.id AS conversation_id, u.task_type, u.tools, u.successes,
           EXISTS (SELECT FROM goal g WHERE g.workspace_id = :workspace AND g.run_id = u.external_id
                   AND g.user_id IS NOT DISTINCT FROM u.user_id AND g.status = 'abandoned') AS abandoned,
           (SELECT coalesce(jsonb_agg(s.tool_sequence), '[]') FROM strategy_conversation l
            JOIN strategy s ON s.workspace_id = l.workspace_id AND s.id = l.strategy_id
            WHERE l.workspace_id = :workspace AND l.conversation_id = u.id AND s.task_type = u.task_type) AS learned
    FROM used u WHERE u.last_at <= :quiet_since ORDER BY u.id, u.task_type
""")  # noqa: S608 - no user input

LOCK = text("SELECT FROM conversation WHERE workspace_id = :workspace AND id = :id FOR UPDATE")

MARK = text("""
    UPDATE conversation c SET patterns_extracted = true
    WHERE c.workspace_id = :workspace AND c.id = :id AND c.turn_count = :turn_count AND NOT EXISTS (
        SELECT FROM tool_invocation i
        WHERE i.workspace_id = c.workspace_id AND i.conversation_id = c.id AND i.id > :last_id)
""")

# Two statements: the second must see what the holder of the lock has committed.
HOLD = text("SELECT FROM conversation WHERE workspace_id = :workspace AND id = :id FOR KEY SHARE")
UNMARK = text("""
    UPDATE conversation SET patterns_extracted = false
    WHERE workspace_id = :workspace AND id = :id AND patterns_extracted
""")


@dataclass(frozen=True, slots=True)
class UnreadConversation:
    """A conversation to learn from. `owner` has no run, because strategies are for the owner's other conversations. The
    last two fields are the state in which it was read."""

    id: UUID
    owner: Scope
    turn_count: int
    last_id: int


@dataclass(frozen=True, slots=True)
class TaskUses:
    """The tools that a conversation used for one type of task, in their order, and whether each use worked.

    `abandoned`: a goal of the conversation was given up. `learned`: the tool sequences of strategies for this task that
    have counted this conversation already.
    """

    conversation_id: UUID
    task_type: str
    tools: list[str]
    successes: list[bool]
    abandoned: bool
    learned: list[list[str]]

    @property
    def succeeded(self) -> bool:
        """Whether the last use worked, and no goal was given up."""
        return self.successes[-1] and not self.abandoned

    @property
    def sequence(self) -> list[str]:
        """The steps: for a success those that worked, for a failure all that were tried. Repeated use of the same tool
        is one step."""
        uses = zip(self.tools, self.successes, strict=True)
        steps = [tool for tool, worked in uses if worked or not self.succeeded]
        return [tool for tool, _ in groupby(steps)]

    @property
    def is_counted(self) -> bool:
        return self.sequence in self.learned


async def list_unread(session: Session, *, after: UUID, quiet_since: datetime, batch: int) -> list[UnreadConversation]:
    """The next finished conversations that used tools and were not learned from."""
    values = {"after": after, "quiet_since": quiet_since, "batch": batch}
    return list(map(_unread, await session.execute(UNREAD, values)))


_unread = direct.reader(
    UnreadConversation, owner=lambda row: Scope(row.workspace_id, row.user_id, row.agent_id, channel=row.channel)
)


async def list_uses(
    session: Session, owner: Scope, conversations: Sequence[UUID], *, quiet_since: datetime
) -> Sequence[TaskUses]:
    """The tools that these conversations of an owner, and others in the same channel, used, task by task."""
    statement = USES.fill(owner=scopes.with_ids("c", owner, owner.channel).sql)
    values = {**owner.columns, "conversations": conversations, "quiet_since": quiet_since, "peers": MAX_PEERS}
    return list(map(_uses, await session.execute(statement, values)))


_uses = direct.reader(TaskUses)


async def mark(session: Session, conversation: UnreadConversation) -> None:
    """Marks it as learned from, unless it has continued since it was read."""
    key = {"id": conversation.id}
    await session.execute(LOCK, key)
    seen = {"turn_count": conversation.turn_count, "last_id": conversation.last_id}
    await session.execute(MARK, {**key, **seen})


async def unmark(session: Session, conversation_id: UUID) -> None:
    """Removes the mark, in the transaction of a later use of a tool."""
    key = {"id": conversation_id}
    await session.execute(HOLD, key)
    await session.execute(UNMARK, key)


PATTERNS_AT_ONCE, EXAMPLES_OF_EACH = 1_000, 100

# The examples of a pattern: memories of the same owner and channel that have all its terms except those that only say
# how often. One walk over the workspace finds those of all the patterns: a memory is compared with the patterns whose
# rarest term (among the patterns) it has. Only memories that were added or changed since the last run: an edge that a
# person removed does not come back. A memory that is always valid is not an example, nor is one that begins later.
CANDIDATES = text("""
    WITH pattern AS MATERIALIZED (
        SELECT p.*, ARRAY(SELECT unnest(p.terms) EXCEPT SELECT unnest(CAST(:frequency AS integer[]))) AS core,
               greatest(p.created_at, p.updated_at) >= :since AS is_new
        FROM memory p
        WHERE p.workspace_id = :workspace AND p.id > :after AND p.type = 'Pattern' AND p.dedup_key IS NOT NULL
          AND p.version_of IS NULL AND p.review_status IS NULL AND NOT p.archived
          AND (p.expires_at IS NULL OR p.expires_at > :now) AND (p.t_invalid IS NULL OR p.t_invalid > :now)
        ORDER BY p.id LIMIT :patterns
    ), keyed AS MATERIALIZED (
        SELECT DISTINCT ON (p.id) p.*
        FROM (SELECT *, count(*) OVER (PARTITION BY term) AS patterns
              FROM (SELECT *, unnest(core) AS term FROM pattern WHERE cardinality(core) >= :least) each) p
        ORDER BY p.id, p.patterns, p.term
    ), said AS (
        SELECT *, unnest(m.terms) AS term, greatest(m.created_at, m.updated_at) >= :since AS is_new FROM memory m
        WHERE m.workspace_id = :workspace AND m.type NOT IN ('Pattern', 'Habit')
          AND m.temporal_tag IS DISTINCT FROM 'future' AND m.dedup_key IS NOT NULL AND m.version_of IS NULL
          AND m.review_status IS NULL AND NOT m.archived AND (m.expires_at IS NULL OR m.expires_at > :now)
          AND (greatest(m.created_at, m.updated_at) >= :since OR (SELECT bool_or(is_new) FROM keyed))
    ), example AS (
        SELECT p.id AS pattern_id, m.id, m.content,
               row_number() OVER (PARTITION BY p.id ORDER BY m.created_at DESC, m.id) AS place
        FROM keyed p JOIN said m ON m.term = p.term AND m.channel = p.channel
        WHERE m.terms @> p.core AND (m.is_new OR p.is_new)
          AND (m.user_id, m.agent_id, m.run_id) IS NOT DISTINCT FROM (p.user_id, p.agent_id, p.run_id)
          AND NOT EXISTS (SELECT FROM memory_edge e WHERE e.workspace_id = :workspace AND e.source_id = m.id
                          AND e.rel_type = 'EXEMPLIFIES' AND e.target_id = p.id)
    )
    SELECT p.id AS pattern_id, p.content AS pattern, e.id AS example_id, e.content AS example
    FROM pattern p LEFT JOIN example e ON e.pattern_id = p.id AND e.place <= :examples
    ORDER BY p.id, e.id
""")

READ_UNTIL = text("""
    SELECT max((counts ->> 'examples_until')::bigint) FROM job
    WHERE workspace_id = :workspace AND kind = 'patterns' AND reason IS NOT NULL AND counts ? 'examples_until'
""")


async def list_candidates(
    session: Session, *, after: UUID, since: datetime, now: datetime
) -> Sequence[direct.DriverRow]:
    """The next PATTERNS_AT_ONCE patterns after `after` by id, each with the memories that may be examples of it:
    pattern_id, pattern, example_id and example; the last two are None where there is none."""
    values = {
        "after": after,
        "since": since,
        "now": now,
        "frequency": FREQUENCY_TERMS,
        "least": MIN_WORDS,
        "patterns": PATTERNS_AT_ONCE,
        "examples": EXAMPLES_OF_EACH,
    }
    return await direct.fetch(session, CANDIDATES, values)


async def read_examples_until(session: Session) -> datetime:
    """The time up to which the last run read memories; the beginning of time if there was none."""
    seconds = await session.scalar(READ_UNTIL)
    return datetime.fromtimestamp(seconds or 0, UTC)
