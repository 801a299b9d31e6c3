"""What a migration will do: its statements, the locks they take, and about how long they hold them.

The migrations are written out as SQL, not run. Locks are those that Postgres' manual names for each kind of statement
on a table that exists already; times follow from the sizes in pg_class and from estimated rates, so they tell seconds
from hours, not more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from service.postgres.vitals import TableEstimate

Work = Literal["none", "scan", "rewrite", "btree", "gin", "hnsw", "rows"]

RATES: Mapping[Work, tuple[Literal["rows", "bytes"], float]] = {
    "scan": ("bytes", 200e6),
    "rewrite": ("bytes", 30e6),
    "btree": ("rows", 500e3),
    "gin": ("rows", 30e3),
    "hnsw": ("rows", 1e3),
    "rows": ("rows", 20e3),
}
"""Rows or bytes a second: estimates for two cores and a disk of a laptop (docs/upgrades.md)."""

STATEMENT = re.compile(
    r"""(?P<quoted>'(?:[^']|'')*'|"[^"]*"|(?P<tag>\$\w*\$).*?(?P=tag))|(?P<comment>--[^\n]*|/\*.*?\*/)|(?P<end>;)""",
    re.DOTALL,
)
OWN = re.compile(r"^(BEGIN|COMMIT|SET |SELECT set_config)|\balembic_version\b", re.IGNORECASE)
"""What is not worth telling: transactions, settings, and Alembic's own table."""

NAME = r'(?:ONLY\s+)?(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(?:ONLY\s+)?"?(?P<table>\w+)"?'

KINDS: Sequence[tuple[str, str, Work]] = (
    (rf"CREATE (?:UNIQUE )?INDEX CONCURRENTLY.*? ON {NAME}.*USING hnsw", "SHARE UPDATE EXCLUSIVE", "hnsw"),
    (rf"CREATE (?:UNIQUE )?INDEX CONCURRENTLY.*? ON {NAME}.*USING gin", "SHARE UPDATE EXCLUSIVE", "gin"),
    (rf"CREATE (?:UNIQUE )?INDEX CONCURRENTLY.*? ON {NAME}", "SHARE UPDATE EXCLUSIVE", "btree"),
    (rf"CREATE (?:UNIQUE )?INDEX .*? ON {NAME}.*USING hnsw", "SHARE", "hnsw"),
    (rf"CREATE (?:UNIQUE )?INDEX .*? ON {NAME}.*USING gin", "SHARE", "gin"),
    (rf"CREATE (?:UNIQUE )?INDEX .*? ON {NAME}", "SHARE", "btree"),
    (rf"ALTER TABLE {NAME}.* VALIDATE CONSTRAINT", "SHARE UPDATE EXCLUSIVE", "scan"),
    (rf"ALTER TABLE {NAME}.* ADD (?:CONSTRAINT \S+ )?FOREIGN KEY.* NOT VALID", "SHARE ROW EXCLUSIVE", "none"),
    (rf"ALTER TABLE {NAME}.* ADD (?:CONSTRAINT \S+ )?FOREIGN KEY", "SHARE ROW EXCLUSIVE", "scan"),
    (rf"ALTER TABLE {NAME}.* ADD (?:CONSTRAINT \S+ )?CHECK.* NOT VALID", "ACCESS EXCLUSIVE", "none"),
    (rf"ALTER TABLE {NAME}.* ADD (?:CONSTRAINT \S+ )?(?:UNIQUE|PRIMARY KEY) USING INDEX", "ACCESS EXCLUSIVE", "none"),
    (rf"ALTER TABLE {NAME}.* ADD (?:CONSTRAINT \S+ )?(?:UNIQUE|PRIMARY KEY|EXCLUDE)", "ACCESS EXCLUSIVE", "btree"),
    (rf"ALTER TABLE {NAME}.* ADD (?:CONSTRAINT \S+ )?CHECK", "ACCESS EXCLUSIVE", "scan"),
    (rf"ALTER TABLE {NAME}.* (?:SET DATA )?TYPE ", "ACCESS EXCLUSIVE", "rewrite"),
    (rf"ALTER TABLE {NAME}.* GENERATED ALWAYS AS .* STORED", "ACCESS EXCLUSIVE", "rewrite"),
    (rf"ALTER TABLE {NAME}.* SET NOT NULL", "ACCESS EXCLUSIVE", "scan"),
    (rf"ALTER TABLE {NAME}.* SET STATISTICS", "SHARE UPDATE EXCLUSIVE", "none"),
    (rf"ALTER TABLE {NAME}", "ACCESS EXCLUSIVE", "none"),
    (rf"CREATE (?:OR REPLACE )?(?:CONSTRAINT )?TRIGGER .*? ON {NAME}", "SHARE ROW EXCLUSIVE", "none"),
    (rf"(?:CREATE|ALTER|DROP) POLICY .*? ON {NAME}", "ACCESS EXCLUSIVE", "none"),
    (rf"DROP TRIGGER .*? ON {NAME}", "ACCESS EXCLUSIVE", "none"),
    (rf"(?:DROP TABLE|TRUNCATE(?: TABLE)?) {NAME}", "ACCESS EXCLUSIVE", "none"),
    (rf"UPDATE {NAME}", "ROW EXCLUSIVE", "rows"),
    (rf"DELETE FROM {NAME}", "ROW EXCLUSIVE", "rows"),  # noqa: S608 - a pattern
    (rf"INSERT INTO {NAME}", "ROW EXCLUSIVE", "none"),
    (r"DROP INDEX CONCURRENTLY (?:IF EXISTS )?\S+", "SHARE UPDATE EXCLUSIVE", "none"),
    (r"DROP INDEX (?:IF EXISTS )?\S+", "ACCESS EXCLUSIVE", "none"),
    (r"DO ", "what it runs takes", "none"),
)
"""The first that fits counts. A function, a right or a new table locks no table that is in use."""

LOCKING = [(re.compile(pattern, re.IGNORECASE | re.DOTALL), lock, work) for pattern, lock, work in KINDS]

STOPS = {
    "ACCESS EXCLUSIVE": "reads and writes wait",
    "SHARE ROW EXCLUSIVE": "writes wait",
    "SHARE": "writes wait",
    "SHARE UPDATE EXCLUSIVE": "nobody waits",
    "ROW EXCLUSIVE": "nobody waits, but for the rows",
}


@dataclass(frozen=True, slots=True)
class LockingStep:
    """A statement that locks a table which is in use. `seconds`: about how long it runs."""

    statement: str
    lock: str
    table: str | None
    rows: float
    seconds: float


@dataclass(frozen=True, slots=True)
class PlannedRevision:
    """A migration that will run. `others`: how many of its statements lock nothing that is in use."""

    revision: str
    title: str
    steps: tuple[LockingStep, ...]
    others: int


@dataclass(frozen=True, slots=True)
class Plan:
    """`current`: None for an empty database. Empty `revisions`: nothing is to be done."""

    current: str | None
    newest: str
    revisions: tuple[PlannedRevision, ...]


def revision_of(revision: str, title: str, sql: str, sizes: Mapping[str, TableEstimate]) -> PlannedRevision:
    """What this SQL of a migration does to tables of these sizes; others are new."""
    found = [each for each in statements(sql) if not OWN.search(each)]
    steps = [step for each in found if (step := _step(each, sizes)) is not None]
    return PlannedRevision(revision, title, tuple(steps), len(found) - len(steps))


def statements(sql: str) -> Iterator[str]:
    """The statements of a script, without comments; each in one line but for what is quoted."""
    begun, kept = 0, list[str]()
    for token in STATEMENT.finditer(sql):
        kept.append(sql[begun : token.start()])
        begun = token.end()
        if token["quoted"]:
            kept.append(token["quoted"])
        elif token["end"]:
            if statement := _one_line(kept):
                yield statement
            kept = []
    if statement := _one_line([*kept, sql[begun:]]):
        yield statement


def _one_line(parts: Sequence[str]) -> str:
    return " ".join("".join(parts).split())


def _step(statement: str, sizes: Mapping[str, TableEstimate]) -> LockingStep | None:
    for pattern, lock, work in LOCKING:
        if (found := pattern.match(statement)) is None:
            continue
        table = found.groupdict().get("table")
        if table is not None and table not in sizes:
            return None
        size = sizes.get(table or "", TableEstimate("", 0, 0))
        return LockingStep(statement, lock, table, size.rows, _seconds(work, size))
    return None


def _seconds(work: Work, size: TableEstimate) -> float:
    if work == "none":
        return 0.0
    by, rate = RATES[work]
    return (size.rows if by == "rows" else size.bytes) / rate


def described(plan: Plan) -> str:
    """For a person."""
    where = "is empty" if plan.current is None else f"is at revision {plan.current}"
    if not plan.revisions:
        return f"The database {where}, the newest that this version knows: nothing is to be done."
    lines = [f"The database {where}; this version of the service brings it to {plan.newest}. Nothing was changed.", ""]
    for each in plan.revisions:
        lines.append(f"{each.revision}  {each.title}")
        for step in each.steps:
            lines.append(f"    {step.statement[:110]}{' ...' if len(step.statement) > 110 else ''}")
            lines.append(f"        {_effect(step)}")
        if each.others:
            lines.append(f"    {each.others} statements that lock no table in use")
        lines.append("")
    longest = max((step.seconds for each in plan.revisions for step in each.steps), default=0.0)
    waits = [step for each in plan.revisions for step in each.steps if _stops(step) and step.seconds >= 1]
    lines.append(f"Longest statement: {duration(longest)}. {_advice(waits)}")
    return "\n".join(lines)


def _effect(step: LockingStep) -> str:
    if step.table is None:
        return f"lock: {step.lock}"
    stops = f" ({STOPS[step.lock]})" if step.lock in STOPS else ""
    return f"lock: {step.lock} on {step.table}{stops}; {step.rows:,.0f} rows, {duration(step.seconds)}"


def _stops(step: LockingStep) -> bool:
    return "nobody" not in STOPS.get(step.lock, "nobody")


def _advice(waits: Sequence[LockingStep]) -> str:
    if not waits:
        return "Requests can continue: statements that lock a table are short, or give up and can be repeated."
    tables = ", ".join(sorted({str(step.table) for step in waits}))
    return f"Requests wait for {tables} during this step: choose a quiet hour."


def duration(seconds: float) -> str:
    """About how long."""
    if seconds < 1:
        return "less than a second"
    for size, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"about {seconds / size:.0f} {unit}"
    return f"about {seconds:.0f} seconds"
