"""Which memories a search may see: the rules of archive, expiry, review, validity and time, and the caller's filters,
as one condition that every arm of a search shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from service.domain.query import Narrow, Query, Validity, Window
from service.postgres import direct, filters
from service.postgres.engine import Session
from service.postgres.scopes import Condition, is_valid
from service.postgres.template import Template


def conditions(alias: str, query: Query, now: datetime) -> Condition:
    """All conditions except the scope. A given window includes memories that are not valid now."""
    condition = not_expired_nor_in_review(alias, now) & not_hidden(
        alias, include_archived=query.include_archived, valid_at=query.narrow.valid_at
    )
    if query.window.is_open and query.narrow.valid_at is None:
        condition &= valid(alias, query.validity, now)
    return filter_rows(alias, query.narrow, query.window, condition, recorded=query.as_of is not None)


def valid(alias: str, validity: Validity, now: datetime) -> Condition:
    """Validity [t_valid, t_invalid): `demote` also includes memories that are no longer valid, `ignore` also those not
    yet valid. A text that names its own end is still true after it ("worked there from 2016 to 2020") and is not left
    out."""
    if validity == "ignore":
        return Condition("true")
    condition = Condition(f"({alias}.t_valid IS NULL OR {alias}.t_valid <= :now)", {"now": now})
    if validity == "exclude":
        own_end = f"{alias}.t_invalid = {alias}.valid_until"
        condition &= Condition(f"({alias}.t_invalid IS NULL OR {alias}.t_invalid > :now OR {own_end})")
    return condition


def filter_rows(
    alias: str, narrow: Narrow, window: Window, condition: Condition, *, recorded: bool = False
) -> Condition:
    """The conditions `condition` and the caller's filters. Array operators are checked row by row: under the policy no
    index serves them. `recorded`: the rows are those of an earlier moment, whose decay is not known."""
    if window.start is not None:
        condition &= Condition(f'{alias}."timestamp" >= :window_start', {"window_start": window.start})
    if window.end is not None:
        condition &= Condition(f'{alias}."timestamp" < :window_end', {"window_end": window.end})
    if narrow.valid_at is not None:
        condition &= Condition(is_valid(alias, ":valid_at"), {"valid_at": narrow.valid_at})
    if narrow.min_confidence is not None:
        stored = f"{alias}.fact_confidence"
        shown = stored if recorded else f"coalesce({filters.stat(alias, 'confidence')}, {stored})"
        enough = f"({stored} IS NULL OR {shown} >= CAST(:min_confidence AS float8))"
        condition &= Condition(enough, {"min_confidence": narrow.min_confidence})
    for name in narrow.without:
        condition &= Condition(f"{alias}.{name} IS NULL")
    if narrow.types:
        condition &= Condition(f"{alias}.type = ANY (CAST(:types AS text[]))", {"types": list(narrow.types)})
    if narrow.categories:
        chosen = {"categories": list(narrow.categories)}
        condition &= Condition(f"{alias}.categories && CAST(:categories AS text[])", chosen)
    column = f"{alias}.tag_prefixes" if narrow.tag_match == "prefix" else f"{alias}.tags"
    if narrow.tags:
        has = "@>" if narrow.tag_mode == "all" else "&&"
        condition &= Condition(f"{column} {has} CAST(:with_tags AS text[])", {"with_tags": list(narrow.tags)})
    if narrow.exclude_tags:
        unwanted = {"without_tags": list(narrow.exclude_tags)}
        condition &= Condition(f"NOT {column} && CAST(:without_tags AS text[])", unwanted)
    return condition & filters.compile_filter(alias, narrow.filters) if narrow.filters is not None else condition


def not_archived(alias: str) -> Condition:
    """Memories that are not archived."""
    return Condition(f"NOT {alias}.archived")


def not_hidden(alias: str, *, include_archived: bool, valid_at: datetime | None) -> Condition:
    """Memories that are not archived, or with `include_archived` all. Past versions only if a time is named, because
    they say what was valid then, also instead of an archived memory that ended with one."""
    if valid_at is not None:
        twice = f"v.version_of = {alias}.id AND v.t_invalid = {alias}.t_invalid"
        ended = f"SELECT FROM memory v WHERE v.workspace_id = {alias}.workspace_id AND {twice}"
        shown = f"NOT EXISTS ({ended})" if include_archived else f"{alias}.version_of IS NOT NULL"
        return Condition(f"(NOT {alias}.archived OR {shown})")
    return not_past_version(alias) if include_archived else not_archived(alias)


def not_past_version(alias: str) -> Condition:
    """Memories that are not a past version of another one."""
    return Condition(f"{alias}.version_of IS NULL")


def not_expired_nor_in_review(alias: str, now: datetime) -> Condition:
    """Memories that have not expired, even if the job that removes expired ones has not run yet, and that do not wait
    for a review: only reviews show those."""
    condition = f"({alias}.expires_at IS NULL OR {alias}.expires_at > :now) AND {not_in_review(alias).sql}"
    return Condition(condition, {"now": now})


def not_in_review(alias: str) -> Condition:
    """Memories that do not await a review."""
    return Condition(f"{alias}.review_status IS NULL")


def not_superseded(alias: str) -> Condition:
    """Memories whose place no other has taken. Uses the index of memory_edge on its targets; `now` as above."""
    edge = f"e.workspace_id = {alias}.workspace_id AND e.target_id = {alias}.id AND e.rel_type = 'SUPERSEDES'"
    taken = f"EXISTS (SELECT FROM memory_edge e WHERE {edge})"
    return Condition(f"({alias}.t_invalid IS NULL OR {alias}.t_invalid > :now OR NOT {taken})")


def may_be_compared(alias: str) -> Condition:
    """What a new fact is compared with: not what another fact superseded, which no longer takes part in
    deduplication."""
    return Condition(f"({alias}.dedup_key IS NOT NULL OR {alias}.t_invalid IS NULL OR {alias}.t_invalid > :now)")


# -- look-ups by these conditions --------------------------------------------------------------------------------------

# The scope's btree finds the rows; the other conditions filter them, and the result is sorted.
MOST_IMPORTANT = Template("""
SELECT m.id FROM {source} ORDER BY m.importance DESC, m."timestamp" DESC, m.id LIMIT :wanted
""")

RULES = Template("""
SELECT m.archived, m.expires_at, m.review_status, m.t_valid, m.t_invalid, m."timestamp", m.embedding_status,
       ({rows}) AS is_visible, ({narrow}) AS is_wanted
FROM memory m WHERE m.workspace_id = :workspace AND m.id = :memory_id AND {scope}
""")


async def most_important(session: Session, rows: Condition, *, limit: int, source: str = "memory m") -> Sequence[UUID]:
    """At most `limit` of the rows, the most important first, then the latest. `rows`: a condition on `source`."""
    statement = MOST_IMPORTANT.fill(source=rows.source(source))
    return [row.id for row in await direct.fetch(session, statement, {**rows.values, "wanted": limit})]


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """A memory of the scope, as far as the rules of visibility read it. `is_visible`: it passes all of them;
    `is_wanted`: it passes the caller's filters, ignoring times."""

    archived: bool
    expires_at: datetime | None
    review_status: str | None
    t_valid: datetime | None
    t_invalid: datetime | None
    timestamp: datetime
    embedding_status: str
    is_visible: bool
    is_wanted: bool


async def check(
    session: Session, scope: Condition, rows: Condition, narrow: Condition, memory_id: UUID
) -> RuleCheck | None:
    """How one memory meets these rules; `narrow`: the caller's filters, a part of `rows`. None when it is not in the
    scope."""
    values = {**scope.values, **rows.values, **narrow.values, "memory_id": memory_id}
    row = (await session.execute(RULES.fill(scope=scope.sql, rows=rows.sql, narrow=narrow.sql), values)).one_or_none()
    return RuleCheck(*row) if row is not None else None


ENDED = """CASE WHEN m.t_invalid = m.valid_until AND m.t_invalid <= m."timestamp" THEN NULL
            ELSE least(m.valid_until, m.t_invalid) END"""
"""When a memory stopped being true; NULL for one about a time that was already past when it was said."""
