"""Which memories may a question see? The rules of archive, expiry, validity and time, and all that the
caller narrowed it by, as one condition that every arm of a search shares."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from service.db import filters
from service.db.conditions import Condition
from service.domain.query import Narrow, Query, Validity, Window


def rows(alias: str, query: Query, now: datetime) -> Condition:
    """Everything but the scope. A given window lifts the exclusion of what is not valid now (R7.07, R7.08)."""
    found = alive(alias, now)
    if not query.include_archived:
        found &= live(alias)
    if query.window.is_open and query.narrow.valid_at is None:
        found &= valid(alias, query.validity, now)
    return narrowed(alias, query.narrow, query.window, found)


def valid(alias: str, validity: Validity, now: datetime) -> Condition:
    """Validity [t_valid, t_invalid): `demote` lets in what is over, `ignore` also what is to come (C18)."""
    if validity == "ignore":
        return Condition("true")
    found = Condition(f"({alias}.t_valid IS NULL OR {alias}.t_valid <= :now)", {"now": now})
    if validity == "exclude":
        found &= Condition(f"({alias}.t_invalid IS NULL OR {alias}.t_invalid > :now)")
    return found


def narrowed(alias: str, narrow: Narrow, window: Window, found: Condition) -> Condition:
    """`found`, and what the caller narrowed it by. Array operators are filters: under the policy no index serves them
    (A2)."""
    if window.start is not None:
        found &= Condition(f'{alias}."timestamp" >= :window_start', {"window_start": window.start})
    if window.end is not None:
        found &= Condition(f'{alias}."timestamp" < :window_end', {"window_end": window.end})
    if narrow.valid_at is not None:
        since = f"({alias}.t_valid IS NULL OR {alias}.t_valid <= :valid_at)"
        until = f"({alias}.t_invalid IS NULL OR {alias}.t_invalid > :valid_at)"
        found &= Condition(f"{since} AND {until}", {"valid_at": narrow.valid_at})
    if narrow.min_confidence is not None:
        enough = f"coalesce({alias}.fact_confidence, 1) >= CAST(:min_confidence AS float8)"
        found &= Condition(enough, {"min_confidence": narrow.min_confidence})
    for name in narrow.without:
        found &= Condition(f"{alias}.{name} IS NULL")
    if narrow.types:
        found &= _words(f"{alias}.type = ANY ({{words}})", "types", narrow.types)
    if narrow.categories:
        found &= _words(f"{alias}.categories && {{words}}", "categories", narrow.categories)
    column = f"{alias}.tag_prefixes" if narrow.tag_match == "prefix" else f"{alias}.tags"
    if narrow.tags:
        found &= _words(f"{column} {'@>' if narrow.tag_mode == 'all' else '&&'} {{words}}", "with_tags", narrow.tags)
    if narrow.exclude_tags:
        found &= _words(f"NOT {column} && {{words}}", "without_tags", narrow.exclude_tags)
    return found & filters.compiled(alias, narrow.filters) if narrow.filters is not None else found


def _words(shape: str, name: str, words: Sequence[str]) -> Condition:
    return Condition(shape.format(words=f"CAST(:{name} AS text[])"), {name: list(words)})


def live(alias: str) -> Condition:
    """What is not archived."""
    return Condition(f"NOT {alias}.archived")


def alive(alias: str, now: datetime) -> Condition:
    """What has not expired: the job that removes the rest need not have come by yet (D4). And what does not wait for a
    person's word: until then only reviews show it."""
    here = f"({alias}.expires_at IS NULL OR {alias}.expires_at > :now) AND {alias}.review_status IS NULL"
    return Condition(here, {"now": now})


def comparable(alias: str) -> Condition:
    """What a new fact is compared with: not what another fact superseded, which is out of deduplication by then."""
    return Condition(f"({alias}.dedup_key IS NOT NULL OR {alias}.t_invalid IS NULL OR {alias}.t_invalid > :now)")
