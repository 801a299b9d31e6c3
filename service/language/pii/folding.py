"""Look-alikes folded to what they look like: digits of full width, a Cyrillic letter or an unseen joiner in a key.

Only for looking: what is cut out is cut out of the text as it was sent, and a text without findings stays as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from service.language.pii.findings import Finding

# Blocks of characters with a plain form in NFKC: super- and subscripts, letterlike, enclosed, full width, styled.
_COMPATIBLE = (
    (0x2000, 0x200A),
    (0x2070, 0x214F),
    (0x2460, 0x24FF),
    (0xFE50, 0xFF5E),
    (0x1D400, 0x1D7FF),
    (0x1F100, 0x1F1FF),
)
# Cyrillic and Greek letters that nobody can tell from Latin ones (of Unicode's confusables), and kinds of hyphens.
_CONFUSABLE = str.maketrans(
    "АВЕКМНОРСТУХЅІЈаеорсухѕіјһԁԛԝ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαορυν" + "‐‑‒−",
    "ABEKMHOPCTYXSIJaeopcyxsijhdqw" + "ABEZHIKMNOPTYXaopuv" + "----",
)
# Joiners, marks of direction, variation selectors, soft hyphens: nobody sees them.
_UNSEEN = frozenset(
    (0x00AD, 0x034F, 0x180E, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070))
) | frozenset(range(0xFE00, 0xFE10))


def _table() -> dict[int, int | None]:
    found: dict[int, int | None] = dict(_CONFUSABLE)
    for first, last in _COMPATIBLE:
        for code in range(first, last + 1):
            plain = unicodedata.normalize("NFKC", chr(code))
            if len(plain) == 1 and plain.isascii() and code not in found:
                found[code] = ord(plain)
    return found | dict.fromkeys(_UNSEEN)


_PLAIN = _table()
_FOLDABLE = re.compile("[" + "".join(map(re.escape, map(chr, _PLAIN))) + "]")


def folded(text: str) -> tuple[str, list[int] | None]:
    """The text as it looks, and where in `text` each of its characters is; None when all are at the same places."""
    if text.isascii() or not _FOLDABLE.search(text):
        return text, None
    plain = text.translate(_PLAIN)
    if len(plain) == len(text):
        return plain, None
    return plain, [place for place, char in enumerate(text) if ord(char) not in _UNSEEN]


def unfolded(found: Iterable[Finding], places: list[int] | None) -> tuple[Finding, ...]:
    """The findings where they are in the text as it was sent."""
    if places is None:
        return tuple(found)
    return tuple(Finding(places[each.start], places[each.end - 1] + 1, each.label) for each in found)
