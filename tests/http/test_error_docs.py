"""docs/errors.md: a row for every error code, with the status that the service answers."""

from __future__ import annotations

import inspect
import re
from http import HTTPStatus
from pathlib import Path

import pytest

from service.domain import errors
from service.http.errors import CODES, STATUS

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
ROWS = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", PAGE.read_text(), re.MULTILINE))
CLASSES = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, errors.ServiceError)]


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: str(error.code))
def test_every_code_has_its_row(error: type[errors.ServiceError]) -> None:
    status = next((STATUS[base] for base in error.__mro__ if base in STATUS), HTTPStatus.INTERNAL_SERVER_ERROR)
    assert str(int(status)) in ROWS[error.code].split(", ")


def test_no_row_is_left_over() -> None:
    assert sorted(ROWS) == CODES
