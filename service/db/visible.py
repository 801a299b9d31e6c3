"""Which memories may a question see? The rules of archive, expiry, validity and time as one condition."""

from __future__ import annotations

from datetime import datetime

from service.db.conditions import Condition
from service.domain.query import Query


def rows(alias: str, query: Query, now: datetime) -> Condition:
    """Everything but the scope. A given window lifts the exclusion of what is not valid now (R7.07, R7.08)."""
    found = alive(alias, now)
    if not query.include_archived:
        found &= live(alias)
    if query.validity != "ignore" and query.window.is_open:
        found &= Condition(f"({alias}.t_valid IS NULL OR {alias}.t_valid <= :now)")
        if query.validity == "exclude":
            found &= Condition(f"({alias}.t_invalid IS NULL OR {alias}.t_invalid > :now)")
    if query.window.start is not None:
        found &= Condition(f'{alias}."timestamp" >= :window_start', {"window_start": query.window.start})
    if query.window.end is not None:
        found &= Condition(f'{alias}."timestamp" < :window_end', {"window_end": query.window.end})
    return found


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
