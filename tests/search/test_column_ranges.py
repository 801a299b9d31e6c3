"""The column ranges of a question, which leave out no row that it asks for."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from service.domain import filters, moments
from service.domain.query import EVER, Narrow, Window
from service.search.column_ranges import TIME_STEP, ColumnRange, find_ranges, time_span


def check(field: str, operator: str, value: Any) -> dict[str, Any]:
    return {"field": field, "operator": operator, "value": value}


MAY, JUNE = (datetime(2026, month, 1, tzinfo=UTC) for month in (5, 6))
SINCE, UNTIL = check("timestamp", "gte", MAY.isoformat()), check("timestamp", "lt", JUNE.isoformat())
BEFORE_ALL = moments.FIRST - timedelta(days=1)
ONE = str(UUID(int=1))

FOUND: list[tuple[dict[str, Any], tuple[ColumnRange, ...]]] = [
    (SINCE, (ColumnRange("timestamp", MAY),)),
    ({"AND": [SINCE, {"AND": [UNTIL]}]}, (ColumnRange("timestamp", MAY, JUNE - TIME_STEP),)),
    ({"AND": [SINCE, check("timestamp", "gt", JUNE.isoformat())]}, (ColumnRange("timestamp", JUNE + TIME_STEP),)),
    (check("created_at", "eq", MAY.isoformat()), (ColumnRange("created_at", MAY, MAY),)),
    (check("created_at", "lt", "0001-01-01"), (ColumnRange("created_at", None, BEFORE_ALL - TIME_STEP),)),
    (check("created_at", "gt", "9999-12-31T23:59:59.999999Z"), (ColumnRange("created_at", moments.END + TIME_STEP),)),
    (check("importance", "gt", 0.5), (ColumnRange("importance", math.nextafter(0.5, 1)),)),
    (check("importance", "lte", 1), (ColumnRange("importance", None, 1),)),
    (check("id", "in", [ONE]), (ColumnRange("id", among=(UUID(ONE),)),)),
    (
        {"AND": [check("user_id", "eq", "ana"), check("importance", "gte", 0.9)]},
        (ColumnRange("user_id", among=("ana",)), ColumnRange("importance", 0.9)),
    ),
    # what bounds nothing
    ({"OR": [SINCE, check("importance", "gt", 0.9)]}, ()),
    ({"NOT": SINCE}, ()),
    (check("timestamp", "ne", MAY.isoformat()), ()),
    (check("timestamp", "eq", None), ()),
    (check("id", "nin", [ONE]), ()),
    (check("user_id", "gt", "ana"), ()),
    (check("updated_at", "gt", MAY.isoformat()), ()),
    (check("metadata.importance", "gt", 0.9), ()),
]


@pytest.mark.parametrize(("raw", "bounds"), FOUND)
def test_of_a_filter(raw: dict[str, Any], bounds: tuple[ColumnRange, ...]) -> None:
    assert find_ranges(Narrow(filters.read(raw)), EVER) == bounds


def test_of_a_window() -> None:
    found = find_ranges(Narrow(filters.read(UNTIL)), Window(MAY, JUNE))
    assert found == (ColumnRange("timestamp", MAY, JUNE - TIME_STEP),)
    assert time_span(found) == (MAY, JUNE - TIME_STEP)
    assert time_span(find_ranges(Narrow(), Window(None, JUNE))) == (None, JUNE - TIME_STEP)
    assert time_span(find_ranges(Narrow(filters.read(check("importance", "gt", 1))), EVER)) == (None, None)
    assert find_ranges(Narrow(), EVER) == ()
