"""Bodies made to cost more than they weigh, and the one parse of those that are taken."""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.routing import APIRoute, iter_route_contexts
from httpx2 import AsyncClient

from service.domain.errors import InvalidInput
from service.http import json_body
from service.http.json_body import JsonRoute

BYTES_PER_BYTE = 32
"""What a parse may take at its peak for each byte of the body; what it gives back is part of it."""

SLOW_S_PER_MB = 3.0
"""Many times the processor time it takes, and a hundredth of what a quadratic step would take."""


def joined(each: Callable[[int], str], count: int) -> bytes:
    return f"[{','.join(each(number) for number in range(count))}]".encode()


SHAPES: dict[str, tuple[Callable[[], bytes], str | None]] = {
    "2 million zeros": (lambda: b"[" + b"0," * 1_999_998 + b"0]", "body"),
    "a million empty objects": (lambda: b"[" + b"{}," * 1_299_999 + b"{}]", "body"),
    "many empty objects": (lambda: joined(lambda _: "{}", 124_000), None),
    "many empty lists": (lambda: joined(lambda _: "[]", 124_000), None),
    "many objects of one key": (lambda: joined(lambda number: f'{{"{number:x}":0}}', 83_000), None),
    "objects behind an emoji": (lambda: '["\U0001f600",'.encode() + joined(lambda _: "{}", 120_000) + b"]", None),
    "keys": (lambda: b"{" + b",".join(b'"%x":0' % number for number in range(240_000)) + b"}", None),
    "one key many times": (lambda: b'{"a":' + b'0,"a":' * 240_000 + b"0}", "a"),
    "long keys, nested": (
        lambda: b"".join(b'{"%s":' % (b"k" * 1_000) for _ in range(30)) + b"[0" + b",0" * 10_000 + b"]" + b"}" * 30,
        None,
    ),
    "long keys, nested, and a NaN": (
        lambda: b'{"k":' + (b'{"%s":' % (b"k" * 1_000)) * 30 + b"NaN" + b"}" * 31,
        "k.kkk",
    ),
    "a key of a megabyte": (lambda: b'{"k":{"%s":1}}' % (b"k" * 1_000_000), "k.kkk"),
    "brackets": (lambda: b"[" * 2_000_000 + b"]" * 2_000_000, "body"),
    "100,000 brackets": (lambda: b"[" * 100_000, "body"),
    "open objects": (lambda: b'{"a":' * 800_000, "body"),
    "one number": (lambda: b"9" * 4_000_000, "body"),
    "numbers of 4,000 digits": (lambda: b"[" + b",".join([b"9" * 4_000] * 900) + b"]", "[0]"),
    "escapes": (lambda: b'"' + b"\\u0041" * 660_000 + b'"', None),
    "a NUL behind escapes": (lambda: b'["' + b"\\u0041" * 660_000 + b'\\u0000"]', "[0]"),
    "escaped quotes without an end": (lambda: b'"' + b'\\"' * 1_999_999, "body"),
    "quotes": (lambda: b"[" + b'"",' * 1_300_000 + b'""]', "body"),
    "commas in a text": (lambda: b'["' + b"," * 3_900_000 + b'"]', None),
    "surrogate pairs": (lambda: b'["' + b"\\ud83d\\ude00" * 330_000 + b'"]', None),
    "emoji": (lambda: ('["' + "\U0001f600" * 900_000 + '"]').encode(), None),
    "blanks": (lambda: b" " * 4_000_000, "body"),
}


@pytest.fixture(scope="module")
def old_objects() -> Iterator[None]:
    """Left out by the garbage collector, which otherwise takes a second to look at those of other tests."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("old_objects")
@pytest.mark.parametrize("name", SHAPES)
def test_time_and_memory_grow_with_the_body_alone(name: str) -> None:
    make, field = SHAPES[name]
    raw = make()
    tracemalloc.start()
    began = time.thread_time()
    refused = parsed(raw)
    took_s = time.thread_time() - began
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert took_s < 0.5 + SLOW_S_PER_MB * len(raw) / 1e6, f"{took_s:.2f} s"
    assert peak < 100_000 + BYTES_PER_BYTE * len(raw), f"{peak / len(raw):.1f} bytes per byte"
    assert (refused and refused.field) == field or str(refused and refused.field).startswith(field or "body"), refused
    assert refused is None or len(refused.detail) < 4_000


def parsed(raw: bytes) -> InvalidInput | None:
    try:
        json_body.parse(raw)
    except InvalidInput as exc:
        return exc
    return None


@pytest.mark.parametrize(
    ("values", "taken"),
    [(json_body.MAX_VALUES - 1, True), (json_body.MAX_VALUES, True), (json_body.MAX_VALUES + 1, False)],
)
def test_values_are_counted_outside_of_texts(values: int, taken: bool) -> None:
    texts = [r"\\", r"\"", r"\",[{,", ",,,[[[", ""]
    raw = json.dumps([1] * (values - len(texts)))[:-1] + "".join(f',"{each}"' for each in texts) + "]"
    assert (parsed(raw.encode()) is None) == taken


def test_depth() -> None:
    assert parsed(b"[" * 32 + b"]" * 32) is None
    for deep in (b"[" * 33 + b"1" + b"]" * 33, b'{"a":' * 33 + b"1" + b"}" * 33, b"[" * 900 + b"]" * 900):
        refused = parsed(deep)
        assert refused is not None
        assert "nested deeper than 32 levels" in refused.detail


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a": [1, -2.5, 1e308, 12345678901234567890123, true, null, "\\ud83d\\ude00", "\\u00e9"]}', None),
        (b"  3 ", 3),
        (b"[]", []),
        (b'{"": {"": ""}}', {"": {"": ""}}),
    ],
)
def test_what_is_taken_is_as_it_was_sent(raw: bytes, value: Any) -> None:
    assert json_body.parse(raw) == (json.loads(raw) if value is None else value)


def test_every_route_takes_the_parse_of_the_middleware(app: FastAPI) -> None:
    routes = [each.original_route for each in iter_route_contexts(app.routes)]
    operations = [each for each in routes if isinstance(each, APIRoute)]
    assert len(operations) > 100
    other = {each.path for each in operations if not isinstance(each, JsonRoute)}
    bodiless = {"/", "/console", "/console/{path:path}", "/docs", "/openapi.json"}
    assert other <= {*bodiless, "/mcp"}  # test_mcp.py has its hostile bodies


async def test_a_body_is_parsed_once(client: AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    parse, seen = json_body.parse, list[bytes]()

    def counted(raw: bytes, parameter: str = "") -> Any:
        seen.append(raw)
        return parse(raw, parameter)

    async def refuse(_: Request) -> Any:
        raise AssertionError("parsed again")

    monkeypatch.setattr(json_body, "parse", counted)
    monkeypatch.setattr(Request, "json", refuse)
    body = {"content": "Parks in bay 12", "user_id": "alice"}
    answer = await client.post("/v1/memories", json=body, headers={"Idempotency-Key": "once"})
    assert answer.status_code == 201, answer.text
    assert len(seen) == 1
