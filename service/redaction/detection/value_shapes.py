"""Distinguishes strings that look like a secret from those that look like the name of one.

Code and prose mention credentials far more often than they contain one: `password = get_password()`, `token: str`,
`api_key=<your-key>`. These predicates distinguish values from references, types, placeholders and masks.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter

from service.redaction.detection.findings import PLACEHOLDER

# Words in the place of a value that are none: types, literals, states and names of variables.
_NOT_VALUES_LIST = """
    none null nil undefined true false yes no on off empty unset missing default optional required mandatory string
    str text bytes byte int integer number num bool boolean float any unknown object dict list array char varchar
    secretstr optional input output env environ getenv process config settings options self this var let const func
    function return new value val key keys token tokens secret secrets password passwords passwd passphrase pwd pass
    pw credential credentials creds auth authorization username user login hidden redacted masked encrypted hashed
    plaintext plain cleartext file path url uri vault keychain keyring generated random disabled enabled invalid
    incorrect wrong expired weak strong valid ok okay failed failure error denied accepted changed rotated revoked
    n/a na tbd todo fixme example sample placeholder dummy foo bar baz bearer basic digest oauth oauth2 jwt await
"""
NOT_VALUES = frozenset(_NOT_VALUES_LIST.split())

_TEMPLATE = re.compile(
    r"""(?x)
      \$\w*[{(\[].* | \{\{.* | %\(.* | %\w+%$ | <[^>]*>?$ | \[[^\]]*\]?$ | \(.*\)$ | \{[^}]*\}?$
    | [A-Z][A-Z0-9]*_(?:[A-Z0-9]+_)*(?:KEY|TOKEN|SECRET|PASS(?:WORD)?|PWD)$ | %[sdr]$
    | \$[A-Z_][A-Z0-9_]*$ | \$[a-z_]+$
    | (?i:your|my|the|some|insert|enter|replace|example|sample|dummy|placeholder)[-_].*
      (?i:key|token|secret|password|here|pass|value|id)\w*$
    | (?:my|your)(?:[A-Z][a-z]+)?(?:Key|Token|Secret|Password)$
    | ![a-z][a-z/_-]*$ | @[a-z\d_./~-]+\.[a-z]{2,4}$ | \d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.]*(?:Z|[+-]\d\d:?\d\d)?$
    | (?i:change[-_]?(?:it|me)|replaceme|xxx+|\.\.+|…+)$
    """
)
# Only outside quotes is this code: inside them `Summer(2024)` may well be a password.
_CODE = re.compile(
    r"""(?x)
      (?:os|process|env|self|this|cls|vars?|local|module|data|config|cfg|settings|secrets?|args|opts|options|ctx
        |request|req|params|props|state|kwargs|environ|import\.meta|System|Deno|ENV|app|user|client|response|res)
      (?:\.|\[|->|::).*
    | [A-Za-z_][\w.]*[(\[].*                                  # call(...) index[...]
    | https?:.* | (?:\.{0,2}|~|[A-Za-z]:)[/\\].*              # an address, a path
    """
)
_ATTRIBUTE = re.compile(r"(?:[a-z_]+\d{0,2}\.)+[a-z_]+\d{0,2}$|(?![\w.]*\d)(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*$")
_MASK = re.compile(r"[*xX•●#._\-]{3,}$|.{0,6}(?:\*{3,}|x{5,}|X{5,}|•{3,}|\.{3,}).{0,6}$")
_NAME = re.compile(r"[A-Za-z_]+$")
_SLUG = re.compile(r"[A-Za-z]+(?:[-_./][A-Za-z]+)*(?:[-_./]?v?\d{1,4})?(?:[-_./][A-Za-z]+)*$")
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]+$")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
# Words with digits that commonly occur next to passwords.
_TECHNICAL = re.compile(
    r"(?i)(?:sha-?\d+|md5|argon2\w*|oauth-?[12]\w*|base(?:32|64)\w*|utf-?\d+|pbkdf2|http2?s?|[a-z]?2fa|s3|ec2|k8s|"
    r"v?\d+(?:\.\d+)*|ed25519|aes-?\d*\w*|rs256|hs256|es256|x509|win32|1password\w*|bcrypt|\d+[a-z]{1,8})$"
)


def entropy_bits(value: str) -> float:
    """Shannon entropy in bits per character, 0 for the empty string."""
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values()) if total else 0.0


def stands_for_something(value: str, *, quoted: bool = False) -> bool:
    """True for a stand-in for a secret: a reference, a placeholder, a mask or a type."""
    return bool(
        not value
        or value.lower() in NOT_VALUES
        or PLACEHOLDER.match(value)
        or _MASK.match(value)
        or len(set(value)) == 1
        or _TEMPLATE.match(value)
        or (not quoted and _CODE.match(value))
    )


def names_a_secret(value: str) -> bool:
    """`userPassword`, `new_pw`, `apiToken`: the name of a variable, repeated."""
    return re.search(r"(?i)passw|pwd|secret|token|credential|_?pw$|key$|hash|input|value$|param", value) is not None


def is_attribute(value: str) -> bool:
    """`form.field`, `oauth2.token`: names joined by dots."""
    return _ATTRIBUTE.match(value) is not None


def is_plain_word(value: str) -> bool:
    """True for letters, hyphens and apostrophes in the shape of a word: it may be prose."""
    body = value.replace("-", "").replace("'", "").replace("\u2019", "")
    return body.isalpha() and (body[1:].islower() or body.isupper() or len(body) == 1)


def is_uuid(value: str) -> bool:
    """True for the 8-4-4-4-12 form."""
    return _UUID.match(value) is not None


def is_hex(value: str) -> bool:
    """True for nothing but hexadecimal digits."""
    return _HEX.match(value) is not None


def is_mixed(value: str) -> bool:
    """True for the shape people choose for passwords: letters with digits or signs between them, 5 characters up."""
    if len(value) < 5 or _TECHNICAL.match(value) or stands_for_something(value) or is_attribute(value):
        return False
    letters = any(char.isalpha() for char in value)
    digits = any(char.isdigit() for char in value)
    signs = any(char in "!@#$%^&*+=?~|" for char in value)
    return letters and (digits or signs) and not _NAME.match(value)


def is_token(value: str, *, min_chars: int, min_bits: float) -> bool:
    """True for the shape of a generated token: long enough, mixed, not a name, a slug, a date or a version."""
    if len(value) < min_chars or stands_for_something(value) or is_attribute(value):
        return False
    if any(char.isspace() for char in value) or entropy_bits(value) < min_bits:
        return False
    digits = any(char.isdigit() for char in value)
    letters = any(char.isalpha() for char in value)
    if digits and letters:
        return not _SLUG.match(value)
    return letters and _is_scrambled(value)


def _is_scrambled(value: str) -> bool:
    """Letters whose case changes as often as chance would have it; a camelCase name changes it rarely."""
    turns = sum(a.isupper() != b.isupper() for a, b in itertools.pairwise(value))
    return len(value) >= 14 and turns * 10 >= len(value) * 4
