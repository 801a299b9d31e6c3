"""docs/errors.md: a row for every error code, with the status that the service answers."""

from __future__ import annotations

import inspect
import re
from http import HTTPStatus
from pathlib import Path

import pytest

from service.domain import errors
from service.http.error_page import HELP
from service.http.errors import STATUS

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
ROWS = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", PAGE.read_text(), re.MULTILINE))
CLASSES = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, errors.ServiceError)]
HTTP_CODES = {"method_not_allowed", "http_error", "internal_error"}


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: str(error.code))
def test_every_code_has_its_row(error: type[errors.ServiceError]) -> None:
    status = next((STATUS[base] for base in error.__mro__ if base in STATUS), HTTPStatus.INTERNAL_SERVER_ERROR)
    assert str(int(status)) in ROWS[error.code].split(", ")


def test_the_page_of_the_service_has_the_same_rows() -> None:
    """What the `type` of a problem leads to."""
    said = {code: (each.status, re.sub(r"\s+", " ", each.when)) for code, each in HELP.items()}
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| (.*?) \|", PAGE.read_text(), re.MULTILINE)
    assert said == {code: (status, re.sub(r"\[([^]]+)]\([^)]+\)|[*`]", r"\1", when)) for code, status, when in rows}


def test_no_row_is_left_over() -> None:
    assert ROWS.keys() == {each.code for each in CLASSES} | HTTP_CODES
