"""Tolerant parsing of JSON in a language model's answer.

Tried in order: the whole answer, a fenced block, the first `[...]` or `{...}` in the text. Where no block is valid, it
is repaired: trailing commas and control characters are removed, an array that was cut off keeps its complete elements.
Unreadable text gives None and never an empty list: "unreadable" must not look like "no facts".

Only arrays are repaired when cut off. An object is dropped whole, since its missing fields might have reversed its
meaning, unless it merely wraps arrays. Pure; nothing here raises on any text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound=BaseModel)

MAX_STARTS = 24
"""Opening brackets tried in one text: bounds the work on a text of nothing but brackets."""

MAX_DEPTH = 64

THOUGHTS = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
UNOPENED = re.compile(r"\A.*?</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
"""Reasoning whose opening tag was part of the prompt, as with some servers."""

FENCE = re.compile(r"```[ \t]*[\w+-]*[ \t]*\r?\n(.*?)(?:```|\Z)", re.DOTALL)
OPENING = re.compile(r'\{(?=\s*["}])|\[(?=\s*(?:["\[{\]\d-]|true|false|null))')
"""A bracket that may begin JSON, unlike those in "{name} said [sic]"."""

TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},]|"', re.DOTALL)
UNSTORABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
"""Characters that mean nothing in a memory and that Postgres (NUL, lone surrogates) refuses."""

CLOSER = {"[": "]", "{": "}"}


def parse_reply(text: str) -> object | None:
    """The array or object in a model's answer; None when there is none. Wrappers are kept, see `as_list`."""
    return next(readings(text), None)


def validate(text: str, model: type[Model]) -> Model | None:
    """The first array or object of the answer that fits `model`; None when none does."""
    for value in readings(text):
        try:
            return model.model_validate(value)
        except ValidationError:
            continue
    return None


def as_list(value: object) -> list[object] | None:
    """The requested list: the value itself, or the only list (of several, the only non-empty one) in a wrapping object.

    JSON modes return objects, so `{"facts": [...]}` is as good an answer as `[...]`. None when it is neither.
    """
    if isinstance(value, list):
        return value
    lists = [member for member in value.values() if isinstance(member, list)] if isinstance(value, dict) else []
    filled = [each for each in lists if each]
    return filled[0] if len(filled) == 1 else [] if lists and not filled else None


def readings(text: str) -> Iterator[object]:
    """Every array or object that the answer can be read as, the most literal one first."""
    answer, closed = THOUGHTS.subn("", text.strip().removeprefix("\ufeff"), count=1)
    answer = answer.strip().removeprefix("\ufeff")
    value = _load(answer)
    if isinstance(value, (list, dict)):
        yield value
        yield from _readings(answer, answer)
        return
    body = answer if closed else UNOPENED.sub("", answer, count=1).strip()
    yield from _readings(body)
    if body != answer:  # the tag may have stood in a string
        yield from _readings(answer)


def _readings(text: str, *read: str) -> Iterator[object]:
    fenced = [match.group(1).strip() for match in FENCE.finditer(text)]
    for candidate in (each for each in (text, *fenced) if each not in read):
        value = _load(candidate)
        if isinstance(value, str):  # JSON inside a JSON string
            value = _load(value)
        if isinstance(value, (list, dict)):
            yield value
    for source in (*fenced, text):
        yield from _blocks(source)


def _blocks(text: str) -> Iterator[object]:
    """The blocks that can be read, mended where needed, from left to right.

    Never one from inside another: the list of a broken fact's entities is not a list of facts.
    """
    position = 0
    for _ in range(MAX_STARTS):
        opening = OPENING.search(text, position)
        if opening is None:
            return
        value, end = _read_block(text, opening.start())
        if value is not None:
            yield value
        position = end


def _read_block(text: str, start: int) -> tuple[object | None, int]:
    """The value of the block that opens at `start`, None when it is none, and where it ends."""
    scan = _Scan()
    position = start
    for match in TOKEN.finditer(text, start):
        going = scan.take(text[position : match.start()], match.group())
        position = match.end()
        if not scan.stack:
            return _load("".join(scan.parts)), position
        if not going:
            break
    saved = _load(scan.saved())
    return (saved if _is_envelope(saved) else None), len(text)


def _is_envelope(value: object) -> bool:
    if isinstance(value, dict):
        return bool(value) and all(_is_envelope(member) for member in value.values())
    return isinstance(value, list)


@dataclass(slots=True)
class _Scan:
    """The part of a block read so far: its text without trailing commas, and the open brackets."""

    parts: list[str] = field(default_factory=list)
    stack: list[str] = field(default_factory=list)
    comma: int | None = None  # where in `parts` a comma stands that nothing has followed yet
    safe: tuple[int, str] | None = None  # how many parts could be kept if the text ended here, and what closes them

    def take(self, between: str, symbol: str) -> bool:
        """Adds the text before the token and the token; False when the block is cut off or broken there."""
        self.parts.append(between)
        if between.strip():
            self.comma = None
        if symbol == '"':  # a string that never ends
            return False
        if symbol in CLOSER:
            self.stack.append(symbol)
        elif symbol in "]}" and CLOSER[self.stack.pop()] != symbol:
            self.stack.append(symbol)  # not empty: the block did not end, it broke
            self.safe = None
            return False
        if symbol in "]}" and self.comma is not None:
            self.parts[self.comma] = ""
        self.comma = len(self.parts) if symbol == "," else None
        self.parts.append(symbol)
        self._mark(symbol)
        return len(self.stack) <= MAX_DEPTH

    def _mark(self, symbol: str) -> None:
        """An element of the outermost array, or that array itself, is complete."""
        in_array = self.stack[-1:] == ["["] and self.stack.count("[") == 1
        closed_array = symbol == "]" and "[" not in self.stack
        if symbol not in CLOSER and (in_array or closed_array):
            kept = len(self.parts) - (symbol == ",")
            self.safe = kept, "".join(CLOSER[opener] for opener in reversed(self.stack))

    def saved(self) -> str:
        """The complete part of a block that was cut off; nothing at all reads as an empty text."""
        if self.safe is None:
            return ""
        kept, closing = self.safe
        return "".join(self.parts[:kept]) + closing


def _load(text: str) -> object | None:
    """JSON with raw control characters allowed in strings, cleaned; None when it is none. NaN and the like are null."""
    try:
        return _clean(json.loads(text, strict=False, parse_constant=lambda _: None, parse_float=_finite))
    except (ValueError, RecursionError):
        return None


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if abs(number) != float("inf") else None


def _clean(value: object) -> object:
    if isinstance(value, str):
        return UNSTORABLE.sub("", value)
    if isinstance(value, list):
        return [_clean(element) for element in value]
    if isinstance(value, dict):
        return {_clean(key): _clean(member) for key, member in value.items()}
    return value
