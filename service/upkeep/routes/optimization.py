"""What could be cleaned up in a workspace, and doing what of it a person confirms."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Self, get_args
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import ConfigDict, Field, model_validator

from service.domain.access import Right
from service.domain.errors import InvalidInput
from service.domain.optimization import (
    PAIRS,
    START,
    Applied,
    CleanupChange,
    CleanupFinding,
    GainUnit,
    Remedy,
    Section,
    SectionReport,
    WalkPlace,
)
from service.domain.request import StoredAnswer
from service.http import cursors, errors, model_budget
from service.http.deps import Admin, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.model_budget import ModelBudgetItem
from service.http.schemas import Id, NextCursor, RequestModel, ResponseModel, Time
from service.http.writes import WriteOf, answer, send
from service.runtime.resources import Resources
from service.upkeep import optimization_report, optimize

router = APIRouter(prefix="/v1/optimization", tags=["optimization"], route_class=JsonRoute)

SECTIONS: tuple[Section, ...] = get_args(Section)
MAX_CHANGES = 100
LARGEST = 20

VERSION = "Of the memory or entity as it was looked at; of a job its attempts"


class OptimizationChange(RequestModel):
    """A finding that a person confirms: the `change` of a report, as it is."""

    section: Section = Field(description="Which kind of finding, and so what is done", examples=["stale"])
    id: Id = Field(description="UUID of the memory, entity or job that it is done to")
    version: int = Field(ge=0, description=VERSION, examples=[1])
    kept_id: Id | None = Field(None, description="With duplicates and contradictions: UUID of the memory that stays")
    kept_version: int | None = Field(None, ge=1, description="Its version")

    @model_validator(mode="after")
    def _pair(self) -> Self:
        for name in ("kept_id", "kept_version"):
            if (getattr(self, name) is not None) != (self.section in PAIRS):
                raise ValueError(f"{name}: belongs to duplicates and contradictions, which need it")
        return self


class OptimizationChangeItem(ResponseModel):
    """What can be sent to `apply`, as it is."""

    section: Section = Field(description="Which kind of finding, and so what is done", examples=["stale"])
    id: Id = Field(description="UUID of the memory, entity or job that it is done to")
    version: int = Field(description=VERSION, examples=[1])
    kept_id: Id | None = Field(description="UUID of the memory that stays; null: it is about one alone")
    kept_version: int | None = Field(description="Its version; null as above")


class OptimizationFinding(ResponseModel):
    """One thing that could be cleaned up."""

    change: OptimizationChangeItem | None = Field(
        description="Send it to `apply` to have it done; null: it is not done there, `reason` says where"
    )
    ids: list[Id] = Field(description="UUIDs of the memory, entity or job it is about, and of the memory that stays")
    remedy: Remedy = Field(description="What is done about it")
    is_undoable: bool = Field(description="Whether it is part of the ruling, and so undone with it")
    reason: str = Field(description="Why it is one", examples=["It was not used since 2026-01-02."])
    gain: int = Field(description="What it gains, in `gain_unit`", examples=[1])
    gain_unit: GainUnit = Field(
        description="memories: fewer that searches look at; bytes: freed on disk; vectors: more that are found by "
        "meaning; jobs: more that are tried again"
    )
    about: str = Field(description="The first 240 characters of the memory, or the name of the entity or job")
    kept: str | None = Field(description="The same of the memory that stays; null: none")
    review_id: Id | None = Field(description="UUID of the review that decides it; null: none")


class OptimizationSection(ResponseModel):
    """The findings of one kind, in the order of their ids."""

    section: Section = Field(description="Which kind")
    findings: list[OptimizationFinding] = Field(description="At most `limit`")
    total: int = Field(description="How many there are from this page on", examples=[3])
    is_exact: bool = Field(
        description="Whether `total` is exact; else it is of what was looked at: there may be more behind it, and of "
        "duplicates, whose texts were not all compared, fewer"
    )
    next_cursor: NextCursor = None


class TableItem(ResponseModel):
    """A table, of all workspaces."""

    name: str = Field(description="Its name", examples=["memory"])
    rows: int = Field(description="As Postgres estimates them")
    dead_rows: int = Field(description="Left over by changes until VACUUM passes; many of them are bloat")
    table_bytes: int = Field(description="On disk, without indexes")
    index_bytes: int = Field(description="Its indexes on disk")


class IndexItem(ResponseModel):
    """An index, of all workspaces."""

    name: str = Field(description="Its name", examples=["pk_memory"])
    table: str = Field(description="Its table, or the partition of it", examples=["memory"])
    bytes: int = Field(description="On disk")
    scans: int = Field(description="How often it was used since the statistics began")


class StorageFigures(ResponseModel):
    """What lies on disk, of all workspaces together."""

    tables: list[TableItem] = Field(description=f"The {LARGEST} largest, the largest first")
    indexes: list[IndexItem] = Field(description=f"The {LARGEST} largest, the largest first")


class OptimizationReport(ResponseModel):
    """What could be cleaned up. Nothing is done before a person confirms it."""

    made_at: Time = Field(description="When it was made")
    sections: list[OptimizationSection] = Field(description="Those that were asked for")
    storage: StorageFigures | None = Field(
        description="Sizes and dead rows; null: the key lacks the right metrics, for they are those of all workspaces"
    )
    model_budget: ModelBudgetItem | None = Field(
        description="What was used of the language model today; null: there is none"
    )


class ApplyOptimizationRequest(RequestModel):
    """What of a report is to be done: all of it, or nothing."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "changes": [{"section": "stale", "id": "01890a5d-ac96-774b-bcce-b302099a8057", "version": 1}],
                    "dry_run": True,
                }
            ]
        }
    )

    changes: Annotated[list[OptimizationChange], Field(min_length=1, max_length=MAX_CHANGES)] = Field(
        description="The `change` of findings; no id may be taken away twice, or taken away by one and kept by another"
    )
    dry_run: bool = Field(True, description="Only tell whether it would be done; false does it")


class AppliedChangeItem(ResponseModel):
    """One change."""

    section: Section = Field(description="Which kind of finding it was")
    id: Id = Field(description="UUID of the memory, entity or job")
    remedy: Remedy = Field(description="What was done to it, or would be")
    is_undoable: bool = Field(description="Whether `undo` takes it back")


class ApplyOptimizationResponse(ResponseModel):
    """What was done, or in a dry run would be."""

    dry_run: bool = Field(description="Whether nothing was done because it was one")
    applied: int = Field(description="How many changes were done: all, or in a dry run 0")
    changes: list[AppliedChangeItem] = Field(description="In the order of the request")
    decision_id: Id | None = Field(
        description="UUID of a decision, by which POST /v1/decisions/{id}/undo takes all of it back; null: nothing"
    )


@router.get("/report", summary="What could be cleaned up", responses=errors.documented(400, 401, 403, 503))
async def get_optimization_report(
    caller: Admin,
    res: ResourcesOf,
    section: Annotated[
        list[Section] | None, Query(max_length=len(SECTIONS), description="Repeatable; default all sections")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=100, description="Findings of each section")] = 20,
    cursor: Annotated[str | None, Query(max_length=200, description="With one section: where to read on")] = None,
) -> OptimizationReport:
    """Needs the right `admin`. Whatever the workspace holds, a section looks at no more than 100,000 rows. Duplicates
    are looked for among memories that enrichment found to be near each other, contradictions among those that were
    marked when the newer one was stored."""
    wanted = list(dict.fromkeys(section or SECTIONS))
    if cursor is not None and len(wanted) != 1:
        raise InvalidInput("cursor: reads on in one section; name it in section.", field="cursor")
    after = START if cursor is None else cursors.unpack(cursor, _place)
    found = [
        await optimization_report.report(caller.workspace_id, each, res, after=after, limit=limit) for each in wanted
    ]
    return OptimizationReport(
        made_at=res.clock(),
        sections=[_section(each) for each in found],
        storage=await _storage(res) if caller.may(Right.METRICS) else None,
        model_budget=await model_budget.read(caller, res),
    )


@router.post(
    "/apply",
    summary="Do what of a report is confirmed",
    response_model=ApplyOptimizationResponse,
    responses=errors.documented(400, 401, 403, 409, 413, 503),
)
async def apply_optimization(
    body: ApplyOptimizationRequest, caller: Admin, res: ResourcesOf, write: WriteOf
) -> Response:
    """Needs the right `admin`. Everything or nothing: 409 names the first that has changed since the report. What is
    done to memories is one ruling, which `POST /v1/decisions/{id}/undo` takes back."""
    changes = [CleanupChange(one.section, one.id, one.version, one.kept_id, one.kept_version) for one in body.changes]
    _refuse_overlap(changes)
    shown = partial(applied_answer, dry_run=body.dry_run)
    context = write.answered_by(shown)
    return send(shown(await optimize.apply(caller.workspace_id, changes, res, context, dry_run=body.dry_run)))


def _refuse_overlap(changes: list[CleanupChange]) -> None:
    gone: set[UUID] = set()
    for place, each in enumerate(changes):
        if each.id in gone:
            raise InvalidInput(f"changes[{place}].id: another change takes it already.", field=f"changes[{place}].id")
        gone.add(each.id)
    for place, each in enumerate(changes):
        if each.kept_id in gone:
            field = f"changes[{place}].kept_id"
            raise InvalidInput(f"{field}: another change takes it away; apply that one first.", field=field)


async def _storage(res: Resources) -> StorageFigures:
    found = await optimization_report.storage(res, limit=LARGEST)
    tables, indexes = [TableItem.of(each) for each in found.tables], [IndexItem.of(each) for each in found.indexes]
    return StorageFigures(tables=tables, indexes=indexes)


def applied_answer(found: Applied, *, dry_run: bool) -> StoredAnswer:
    body = ApplyOptimizationResponse(
        dry_run=dry_run,
        applied=0 if dry_run else len(found.changes),
        changes=[AppliedChangeItem.of(each) for each in found.changes],
        decision_id=found.decision_id,
    )
    return answer(200, body)


def _place(text: str) -> WalkPlace:
    first, _, second = text.partition("|")
    return WalkPlace(UUID(first), UUID(second))


def _section(found: SectionReport) -> OptimizationSection:
    more = cursors.pack(f"{found.next.first}|{found.next.second}") if found.next else None
    return OptimizationSection.of(found, findings=[_finding(each) for each in found.findings], next_cursor=more)


def _finding(found: CleanupFinding) -> OptimizationFinding:
    change = found.change
    return OptimizationFinding.of(
        found,
        change=OptimizationChangeItem.of(change) if found.is_applicable else None,
        ids=[each for each in (change.id, change.kept_id) if each is not None],
        remedy=change.remedy,
        is_undoable=change.is_undoable,
    )
