from __future__ import annotations

import time

import pytest
from pydantic import BaseModel

from service.providers.json_reply import as_list, parse_reply, validate

READABLE = {
    "whole array": ('["plays chess", "lives in Oslo"]', ["plays chess", "lives in Oslo"]),
    "whole object": ('{"type": "Habit", "confidence": 0.8}', {"type": "Habit", "confidence": 0.8}),
    "empty list": (" [] \n", []),
    "empty wrapper": ('{"facts": []}', {"facts": []}),
    "fence": ('```json\n["a"]\n```', ["a"]),
    "fence without a language": ('Sure!\n```\n{"a": 1}\n```\nAnything else?', {"a": 1}),
    "fence never closed": ('```json\n["a", "b"]', ["a", "b"]),
    "prose around": ('Here are the facts: ["a"]. Hope it helps.', ["a"]),
    "object in prose": ('The verdict is {"event": "NONE"} as nothing is new.', {"event": "NONE"}),
    "brackets that are no JSON": ('{name} said [sic] that ["a"]', ["a"]),
    "thoughts first": ('<think>maybe ["x"]? no</think>\n["a"]', ["a"]),
    "thoughts without their opening": ('maybe ["x"]? no</think>\n["a"]', ["a"]),
    "a tag in a string": ('```json\n["wrote </think> once"]\n```', ["wrote </think> once"]),
    "thoughts never closed": ('<think>maybe ["x"]?', None),
    "byte order mark": ('\ufeff["a"]', ["a"]),
    "JSON in a string": ('"[\\"a\\"]"', ["a"]),
    "brackets in strings": ('so: ["a ] b", "c } d"] done', ["a ] b", "c } d"]),
    "escaped quotes": ('so: ["he said \\"no\\"", "\\\\"]', ['he said "no"', "\\"]),
    "trailing commas": ('{"facts": ["a", "b",], "n": {"x": 1,},}', {"facts": ["a", "b"], "n": {"x": 1}}),
    "comma before a scalar's end": ("[true, null,]", [True, None]),
    "raw line break": ('["first\nsecond\tthird"]', ["first\nsecond\tthird"]),
    "control characters": ('["a\x01b\x0bc", "d\\u0000e"]', ["abc", "de"]),
    "lone surrogate": ('["a\\ud83d", "\\ud83d\\ude00"]', ["a", "\N{GRINNING FACE}"]),
    "not a number": ('{"confidence": NaN, "n": 1e999, "m": -Infinity}', {"confidence": None, "n": None, "m": None}),
    "second block follows": ('["a"]\n["b"]', ["a"]),
}

SAVED = {
    "in a string": ('["a", "b", "c', ["a", "b"]),
    "after an element": ('["a", "b"', ["a", "b"]),
    "after a comma": ('["a", "b", ', ["a", "b"]),
    "in a number": ("[1, 25", [1]),
    "in an object": ('[{"t": "a", "l": [1]}, {"t": "b", "l": [2', [{"t": "a", "l": [1]}]),
    "in a wrapper": ('{"facts": [{"t": "a"}, {"t": "b"', {"facts": [{"t": "a"}]}),
    "in a second array": ('{"facts": ["a"], "links": [{"x": 1}, {"y"', {"facts": ["a"], "links": [{"x": 1}]}),
    "behind the array": ('{"facts": ["a"], "rea', {"facts": ["a"]}),
    "in prose": ('Facts: ["a", {"t": "b"}, {"t"', ["a", {"t": "b"}]),
    "with a trailing comma inside": ('[["a",], ["b"', [["a"]]),
}

LOST = {
    "nothing": "",
    "prose": "There is nothing worth remembering here.",
    "scalar": "42",
    "object cut off": '{"event": "UPDATE", "text": "likes te',
    "object with arrays cut off": '{"event": "DELETE", "id": 3, "evidence": ["a", "b',
    "object with arrays cut off later": '{"event": "DELETE", "evidence": ["a"], "except": ["b"], "unless": tr',
    "no element complete": '{"facts": [{"t": "a',
    "array just opened": '{"facts": [',
    "brackets mismatched": '[["a"}, ["b"]]',
    "quotes not escaped": '{"text": "he said "hi" to us", "entities": ["Bob"]}',
    "brackets only": "[" * 100_000,
    "deep": "[" * 90 + '"a"' + "]" * 90 + "x",
}


@pytest.mark.parametrize(("text", "value"), READABLE.values(), ids=READABLE)
def test_reads(text: str, value: object) -> None:
    assert parse_reply(text) == value


@pytest.mark.parametrize(("text", "value"), SAVED.values(), ids=SAVED)
def test_saves_the_complete_elements_of_a_cut_array(text: str, value: object) -> None:
    assert parse_reply(text) == value


@pytest.mark.parametrize("text", LOST.values(), ids=LOST)
def test_none_is_not_an_empty_list(text: str) -> None:
    assert parse_reply(text) is None


def test_a_cut_answer_never_gains_elements() -> None:
    whole = '{"facts": [{"t": "a", "l": ["x", "y"]}, "b, c", {"t": "d\\"e"}, ["f"]], "links": [["g", "h"]]}'
    full = parse_reply(whole)
    assert isinstance(full, dict)
    for end in range(len(whole)):
        saved = parse_reply(whole[:end])
        if saved is not None:
            assert isinstance(saved, dict)
            assert all(full[key][: len(part)] == part for key, part in saved.items())


@pytest.mark.parametrize(
    "text", ['["' * 50_000, '{"a":"' + '\\"' * 100_000, '{"' * 40_000 + "}" * 40_000, '"' * 100_001]
)
def test_hostile_texts_cost_little(text: str) -> None:
    began = time.perf_counter()
    parse_reply(text)
    assert time.perf_counter() - began < 1.0


class ReplyShape(BaseModel):
    event: str
    id: int | None = None


def test_validate_takes_the_first_that_fits() -> None:
    assert validate('As in [1]: {"event": "ADD"}', ReplyShape) == ReplyShape(event="ADD")
    assert validate('{"action": "ADD"} or {"event": "UPDATE", "id": "2"}', ReplyShape) == ReplyShape(
        event="UPDATE", id=2
    )
    assert validate('{"event": ["ADD"]}', ReplyShape) is None
    assert validate("no", ReplyShape) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["a"], ["a"]),
        ({"facts": ["a"]}, ["a"]),
        ({"facts": [], "note": "none"}, []),
        ({"facts": ["a"], "links": ["b"]}, None),
        ({"event": "ADD"}, None),
        ("a", None),
        (None, None),
    ],
)
def test_as_list(value: object, expected: object) -> None:
    assert as_list(value) == expected
