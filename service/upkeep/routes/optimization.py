"""Routes for the optimisation report and for applying findings that a person confirms."""

from __future__ import annotations

from typing import Annotated, Self, get_args
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field, model_validator

from service.domain.errors import InvalidInput
from service.http import cursors
from service.http.deps import Admin, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.schemas import Id, RequestModel, ResponseModel, Time, example
from service.http.writes import CallOf, sends
from service.upkeep import optimization
from service.upkeep.values import (
    PAIRS,
    START,
    VERSION,
    ApplyOptimizationResponse,
    OptimizationChangeItem,
    OptimizationSection,
    Section,
    WalkCursor,
)

router = APIRouter(prefix="/v1/optimization", tags=["optimization"], route_class=JsonRoute)

SECTIONS: tuple[Section, ...] = get_args(Section)
MAX_CHANGES = 100


class OptimizationChange(RequestModel):
    """A confirmed finding: the `change` of a report, unmodified."""

    section: Section = Field(description="Kind of finding, which determines the remedy", examples=["stale"])
    id: Id = Field(description="UUID of the memory or entity to change")
    version: int = Field(ge=0, description=VERSION, examples=[1])
    kept_id: Id | None = Field(None, description="For duplicates and contradictions, UUID of the memory to keep")
    kept_version: int | None = Field(None, ge=1, description="Its version")

    @model_validator(mode="after")
    def _pair(self) -> Self:
        for name in ("kept_id", "kept_version"):
            if (getattr(self, name) is not None) != (self.section in PAIRS):
                raise ValueError(f"{name}: is required for duplicates and contradictions, and not allowed otherwise")
        return self


class OptimizationReport(ResponseModel):
    """What could be cleaned up. Nothing changes until a person confirms it."""

    made_at: Time = Field(description="When it was created")
    sections: list[OptimizationSection] = Field(description="The requested sections")


class ApplyOptimizationRequest(RequestModel):
    """Findings to apply: all of them, or none."""

    model_config = example(
        changes=[{"section": "stale", "id": "01890a5d-ac96-774b-bcce-b302099a8057", "version": 1}], dry_run=True
    )

    changes: Annotated[list[OptimizationChange], Field(min_length=1, max_length=MAX_CHANGES)] = Field(
        description="The `change` of each finding; an id may be removed only once, and not be kept by another"
    )
    dry_run: bool = Field(True, description="Only report whether it could be applied; false applies it")


@router.get("/report", summary="Get the optimisation report")
async def get_optimization_report(
    caller: Admin,
    res: ResourcesOf,
    section: Annotated[
        list[Section] | None, Query(max_length=len(SECTIONS), description="Repeatable; default all sections")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=100, description="Maximum number of findings per section")] = 20,
    cursor: Annotated[
        str | None, Query(max_length=200, description="next_cursor of a section; needs exactly one section")
    ] = None,
) -> OptimizationReport:
    """A section examines at most 100,000 rows. Duplicates are searched among memories that enrichment found to be
    similar, contradictions among those marked when the newer memory was stored."""
    wanted = list(dict.fromkeys(section or SECTIONS))
    if cursor is not None and len(wanted) != 1:
        raise InvalidInput("cursor: requires exactly one section.", field="cursor")
    after = START if cursor is None else WalkCursor(*cursors.unpack(cursor, UUID, UUID))
    sections = [await optimization.report(caller.workspace_id, each, res, after=after, limit=limit) for each in wanted]
    return OptimizationReport(made_at=res.clock(), sections=sections)


@router.post("/apply", summary="Apply findings of an optimisation report")
@sends()
async def apply_optimization(
    body: ApplyOptimizationRequest, caller: Admin, res: ResourcesOf, call: CallOf
) -> ApplyOptimizationResponse:
    """Applies all changes or none: 409 names the first object that has changed since the
    report. Changes of memories can be undone together with `POST /v1/decisions/{id}/undo`."""
    changes = list(map(OptimizationChangeItem.of, body.changes))
    _refuse_overlap(changes)
    return await optimization.apply(caller.workspace_id, changes, res, call, dry_run=body.dry_run)


def _refuse_overlap(changes: list[OptimizationChangeItem]) -> None:
    removed: set[UUID] = set()
    for index, change in enumerate(changes):
        if change.id in removed:
            raise InvalidInput(f"changes[{index}].id: another change already removes it.", field=f"changes[{index}].id")
        removed.add(change.id)
    for index, change in enumerate(changes):
        if change.kept_id in removed:
            field = f"changes[{index}].kept_id"
            raise InvalidInput(f"{field}: another change removes it; apply that one first.", field=field)
