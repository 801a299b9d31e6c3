"""A generated hostile corpus: long repeats of every class of token, as texts and as HTTP bodies.

`texts()` lists the recipes, `HostileText.of_length()` makes one of any length, and `bodies()` yields requests ready to
send:

    for each in bodies(size=100_000):
        await client.post(each.path, content=each.body, headers={"content-type": "application/json"})

Nothing here follows from how the service reads a text: the classes are those of Unicode, of writing and of the usual
formats.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

TOKENS: dict[str, str] = {
    # white space and what does not show
    "newline": "\n",
    "return": "\r",
    "line end": "\r\n",
    "space": " ",
    "tab": "\t",
    "vertical tab": "\v",
    "no-break space": "\u00a0",
    "wide space": "\u3000",
    "line separator": "\u2028",
    "zero width": "\u200b",
    "joiner": "\u200d",
    "direction mark": "\u202e",
    "byte order mark": "\ufeff",
    "combining mark": "e\u0301",
    "stacked marks": "\u0301",
    # punctuation
    "double quote": '"',
    "single quote": "'",
    "opening quote": "\u201c",
    "closing quote": "\u201d",
    "low quote": "\u201e",
    "apostrophe": "\u2019",
    "guillemet": "\u00ab",
    "backtick": "`",
    "quoted word": '"word" ',
    "unclosed quote": ' "word',
    "round bracket": "(",
    "closing bracket": ")",
    "brackets": "()",
    "square bracket": "[",
    "brace": "{",
    "angle": "<",
    "closing angle": ">",
    "dot": ".",
    "spaced dot": ". ",
    "comma": ",",
    "spaced comma": ", ",
    "semicolon": ";",
    "colon": ":",
    "spaced colon": ": ",
    "exclamation": "!",
    "question": "? ",
    "ellipsis": "\u2026",
    "at": "@",
    "slash": "/",
    "backslash": "\\",
    "hyphen": "-",
    "spaced hyphen": " - ",
    "long dash": "\u2014",
    "underscore": "_",
    "plus": "+",
    "equals": "=",
    "star": "*",
    "hash": "#",
    "percent": "%",
    "dollar": "$",
    "ampersand": "&",
    "pipe": "|",
    "tilde": "~",
    "caret": "^",
    # letters and digits
    "letter": "a",
    "capital": "A",
    "digit": "7",
    "zero": "0",
    "fullwidth digit": "\uff17",
    "fullwidth letter": "\uff21",
    "arabic digit": "\u0667",
    "superscript": "\u00b2",
    "accented": "\u00e9",
    "sharp s": "\u00df",
    "dotted capital": "\u0130",
    "cyrillic": "\u0434\u043e\u043c ",
    "greek": "\u03c9",
    "cjk": "\u6c34",
    "kana": "\u3042",
    "hangul": "\ud55c",
    "arabic": "\u0633\u0644\u0627\u0645 ",
    "emoji": "\U0001f600",
    "emoji family": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "flag": "\U0001f1e9\U0001f1ea",
    # words
    "word": "word ",
    "long word": "antidisestablishmentarianism ",
    "capital word": "Word ",
    "upper word": "WORD ",
    "camel": "camelCase",
    "initials": "J. R. ",
    "and": "and ",
    "not": "not ",
    "if": "if ",
    "that": "that ",
    "the": "the ",
    "of": "of ",
    "I": "I ",
    "my": "my ",
    "is": "is ",
    "to": "to ",
    "no longer": "no longer ",
    "very": "very ",
    "remember": "remember ",
    "forget": "forget ",
    "said": "said ",
    "and list": "a, b and c, ",
    "I am": "I am ",
    "I like": "I like ",
    "I don't": "I don't ",
    "my name is": "my name is ",
    "possessive": "Anna's ",
    "person": "Anna Smith ",
    "title": "Dr. ",
    "company": "Acme Inc. ",
    "sentence": "I moved to Lisbon. ",
    "question sentence": "Where do you live? ",
    "german": "Ich bin nicht in Berlin und ",
    # numbers and times
    "number": "12 ",
    "decimal": "1.5",
    "grouped number": "1,000,",
    "number unit": "12 kg ",
    "money": "$12.50 ",
    "percentage": "12% ",
    "ordinal": "3rd ",
    "number word": "twenty ",
    "hundred": "two hundred and ",
    "month": "March ",
    "weekday": "Monday ",
    "year": "2023 ",
    "date": "2023-05-06 ",
    "slashed date": "05/06/2023 ",
    "long date": "May 6, 2023 ",
    "time": "10:30 ",
    "timestamp": "2023-05-06T10:30:00Z ",
    "clock": "3 pm ",
    "next": "next ",
    "last": "last ",
    "ago": "two days ago ",
    "every": "every ",
    "between": "between ",
    "from to": "from Monday to ",
    "before": "before ",
    "in": "in 3 ",
    "day of": "the day after ",
    # what names somebody or something
    "mail": "a.b@example.com ",
    "mail start": "a@",
    "mail dots": "a.b.",
    "mail domain": "@a.b",
    "url": "https://example.com/a?b=c ",
    "url start": "https://",
    "url path": "/path",
    "host": "www.example.com ",
    "user info": "u:p@",
    "parameter": "&key=value",
    "key value": "key=value ",
    "key colon": "key: value\n",
    "password": "password: ",
    "secret": "api_key=",
    "bearer": "Bearer ",
    "token": "eyJhbGciOi.",
    "own key": "lox_abc",
    "vendor key": "sk-",
    "begin key": "-----BEGIN PRIVATE KEY-----\n",
    "dashes": "-----",
    "base64": "QUJDRA",
    "base64 end": "QUJDRA==",
    "hex": "deadbeef",
    "hex pairs": "de:ad:",
    "uuid": "123e4567-e89b-12d3-a456-426614174000 ",
    "ip": "10.0.0.1 ",
    "ip part": "10.",
    "ip6": "fe80:",
    "phone": "+1 555 123 4567 ",
    "phone part": "555-",
    "phone bracket": "(555) ",
    "card": "4111 1111 1111 1111 ",
    "card part": "4111-",
    "iban": "DE89 3704 0044 0532 0130 00 ",
    "iban part": "DE89 ",
    "ssn": "123-45-6789 ",
    "street": "12 Main Street, ",
    "path": "C:\\dir\\",
    "file": "file.txt ",
    "version": "v1.2.3 ",
    "identifier": "ABC-123 ",
    "handle": "@name ",
    "hashtag": "#tag ",
    # forms of pasted text
    "quoted line": "> word\n",
    "quote marks": "> ",
    "deep quote": ">",
    "fence": "```\n",
    "bullet": "- word\n",
    "numbered": "1. word\n",
    "heading": "# Word\n",
    "table": "| a | b |\n",
    "rule": "---\n",
    "speaker": "Anna: hello\n",
    "speaker start": "Anna: ",
    "user turn": "User: hello\nAssistant: hi\n",
    "chat line": "[10:30] Anna: hi\n",
    "mail header": "From: a@b.c\nSubject: x\n",
    "reply line": "On Monday, Anna wrote:\n",
    "forwarded": "---------- Forwarded message ---------\n",
    "log line": "2023-05-06 10:30:00 INFO a.b: message\n",
    "trace": '  File "a.py", line 1, in f\n',
    "diff": "+ a\n- b\n",
    "html": "<p>",
    "html closed": "<b>a</b>",
    "html comment": "<!--",
    "entity": "&amp;",
    "json": '{"a": ',
    "json list": '["a", ',
    "csv": "a,b,c\n",
    "code": "f(x); ",
    "emphasis": "**a**",
    "link": "[a](b)",
    "signature": "-- \n",
    "dear": "Dear Anna,\n\n",
    "quote said": '"Hi," said Anna. ',
    "paragraph": "word.\n\n",
}
"""Name of a class -> one piece of it."""

ENDS = ("", "!", "\n", "x", "@", '"')
"""What a repeat ends with: a rule that nearly matches must try again."""


@dataclass(frozen=True)
class HostileText:
    """A recipe: `unit` repeated between `start` and `end`."""

    name: str
    unit: str
    start: str = ""
    end: str = ""

    def of_length(self, chars: int) -> str:
        """The text of exactly `chars` characters, of which the repeat gives way to start and end."""
        room = max(1, chars - len(self.start) - len(self.end))
        return self.start + (self.unit * (room // len(self.unit) + 1))[:room] + self.end


def texts() -> Iterator[HostileText]:
    """Every class alone, with spaces between, on lines of its own, and with something before and after."""
    for name, token in TOKENS.items():
        yield HostileText(name, token)
        if not token[-1].isspace():
            yield HostileText(f"{name}, spaced", token + " ")
        if not token.endswith("\n"):
            yield HostileText(f"{name}, lines", token + "\n")
        for end in ENDS[1:]:
            yield HostileText(f"{name}, then {end!r}", token, "a ", end)


def pairs() -> Iterator[HostileText]:
    """Every class in turn with every other."""
    for (one, first), (two, second) in itertools.permutations(TOKENS.items(), 2):
        yield HostileText(f"{one} + {two}", first + second)


def halves(chars: int, *, every: int = 1) -> Iterator[tuple[str, str]]:
    """Name and text: half of one class, then half of another; of all such pairs each `every`-th."""
    for (one, first), (two, second) in itertools.islice(itertools.permutations(TOKENS.items(), 2), 0, None, every):
        half = chars // 2
        yield f"{one}, then {two}", HostileText(one, first).of_length(half) + HostileText(two, second).of_length(half)


def mixtures(count: int, seed: int = 1) -> Iterator[HostileText]:
    """`count` random sequences of two to eight classes."""
    dice = random.Random(seed)
    for _ in range(count):
        names = dice.choices(list(TOKENS), k=dice.randint(2, 8))
        yield HostileText(" + ".join(names), "".join(TOKENS[name] for name in names))


@dataclass(frozen=True)
class HostileBody:
    """One POST request."""

    name: str
    path: str
    body: bytes


def _content(text: str) -> tuple[str, dict[str, object]]:
    return "/v1/memories", {"content": text[:100_000]}


def _one_message(text: str) -> tuple[str, dict[str, object]]:
    return "/v1/memories", {"messages": [{"role": "user", "content": text}]}


def _many_messages(text: str, count: int = 200) -> tuple[str, dict[str, object]]:
    size = max(1, len(text) // count)
    pieces = [text[at : at + size] for at in range(0, size * count, size)]
    return "/v1/memories", {"messages": [{"role": "user", "content": piece} for piece in pieces if piece]}


def _query(text: str) -> tuple[str, dict[str, object]]:
    return "/v1/memories/search", {"query": text[:100_000]}


def _tags(text: str) -> tuple[str, dict[str, object]]:
    return "/v1/memories", {"content": "A note.", "tags": [text]}


def _metadata(text: str) -> tuple[str, dict[str, object]]:
    size = max(2, len(text) // 200)
    half = size // 2
    found = {f"{at}{text[at : at + half]}": text[at + half : at + size] for at in range(0, len(text), size)}
    return "/v1/memories", {"content": "A note.", "metadata": found}


SHAPES: dict[str, Callable[[str], tuple[str, dict[str, object]]]] = {
    "content": _content,
    "one message": _one_message,
    "200 messages": _many_messages,
    "query": _query,
    "tag": _tags,
    "metadata": _metadata,
}
"""Where in a request the text stands; content and query are cut to what the schema lets through."""


def bodies(size: int = 100_000, *, seed: int = 1, shapes: tuple[str, ...] = tuple(SHAPES)) -> Iterator[HostileBody]:
    """Every text in every shape, about `size` bytes each, shuffled by `seed`: the same seed gives the same requests."""
    recipes = [(text, shape) for text in texts() for shape in shapes]
    random.Random(seed).shuffle(recipes)
    for text, shape in recipes:
        path, asked = SHAPES[shape](_of_bytes(text, size))
        body = json.dumps({"user_id": "hostile", **asked}, ensure_ascii=False)
        yield HostileBody(f"{text.name} as {shape}", path, body.encode())


def _of_bytes(text: HostileText, size: int) -> str:
    """The text that is about `size` bytes long as JSON."""
    sample = json.dumps(text.unit * 10, ensure_ascii=False)[1:-1].encode()
    return text.of_length(max(1, size * len(text.unit) * 10 // len(sample)))
