"""Stored text in a prompt: about how many tokens it is, and made harmless, so that it cannot pass for a line of the
prompt and has no invisible characters.

Text in the database and in answers of the REST API is unchanged; this is for blocks of text that a model reads.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final

LINE_ENDS = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")

UNSEEN = frozenset({"Cc", "Cf", "Cs"})
BLANKS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\U000e0000-\U000e0fff]|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]+"
)
"""Letters and marks without a shape, and variation selectors after another: text can be hidden in them."""

JOINERS = "\u200c\u200d"

STEERING = re.compile(
    r"<[|｜]|[|｜]>|<</?SYS>>|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]"
    r"|</?(?:s|bos|eos|(?:start|end)_of_turn|(?:start|end)_header_id)>"
    r"|!\[|</?(?:img|image|picture|video|audio|source|iframe|object|embed|link|svg|script|style|base|meta)\b",
    re.IGNORECASE,
)
"""Marks of chat templates, and links that a client would fetch when it shows Markdown or HTML. A space inside makes
them harmless."""


def harmless(text: str) -> str:
    """The text with its line ends as \\n, without invisible characters, and without what steers models or clients."""
    text = LINE_ENDS.sub("\n", text)
    if not text.isascii() or not text.replace("\n", "").isprintable():
        text = BLANKS.sub("", text)
        text = "".join(char for at, char in enumerate(text) if _is_seen(text, at, char))
    return STEERING.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)


def one_line(text: str) -> str:
    """The harmless text without line breaks: it cannot end a list, open a heading or begin a speaker's line."""
    return " ".join(harmless(text).split())


def indented(text: str) -> str:
    """The harmless text, whose later lines cannot be taken for lines of the prompt."""
    return harmless(text).replace("\n", "\n    ")


def harmless_in(value: Any) -> Any:
    """The JSON value with all its texts harmless."""
    if isinstance(value, str):
        return harmless(value)
    if isinstance(value, dict):
        return {name: harmless_in(each) for name, each in value.items()}
    return [harmless_in(each) for each in value] if isinstance(value, list) else value


def _is_seen(text: str, at: int, char: str) -> bool:
    if char in "\n\t":
        return True
    if char not in JOINERS:
        return unicodedata.category(char) not in UNSEEN
    before, after = (unicodedata.category(each) if each else "" for each in (text[at - 1 : at], text[at + 1 : at + 2]))
    if after == "So":
        return before in {"So", "Sk", "Mn"}  # a joined emoji, whose parts may have a skin tone or a selector
    return before in {"Lo", "Mn", "Mc"} and after == "Lo"  # Persian, Hindi and others: no Latin word has one


BYTES_PER_TOKEN: Final = 4
"""English has about four characters per token with the usual tokenisers; other scripts have more bytes and more tokens
per character."""


def estimate_tokens(text: str) -> int:
    """Returns about how many tokens the text is; at least 1."""
    return max(1, estimate_tokens_of_bytes(len(text.encode())))


def estimate_tokens_of_bytes(count: int) -> int:
    """Returns the estimate for this many bytes of UTF-8; 0 for none."""
    return -(-count // BYTES_PER_TOKEN)
