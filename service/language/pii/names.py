"""Words that announce a secret, and how strongly.

`db_password`, `ClearTextPassword`, "API key" and `oktaKey` do; `password_policy`, `max_tokens`, `primaryKey`,
"tokenizer" and "monkey" do not. A name is judged as a whole identifier: the part before and the part after the
credential word can both take its meaning away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum


class Strength(IntEnum):
    """How surely the word announces a secret."""

    WEAK = 1  # key, auth, the name of a vendor: opens something only if what follows looks generated
    KEY = 2  # api key, token, secret
    PASSWORD = 3


@dataclass(frozen=True, slots=True)
class Name:
    """A credential word at a half-open span; `end` is the end of the whole identifier."""

    start: int
    end: int
    strength: Strength
    word: str


# Services whose own name before a `=` or `:` says that a generated value is theirs.
_VENDORS = (
    "adafruit|airtable|algolia|artifactory|asana|atlassian|auth0|azure|beamer|bitbucket|bittrex|circleci|cloudflare|"
    "cloudant|codecov|cohere|coinbase|confluent|contentful|datadog|discord|droneci|dropbox|easypost|etsy|facebook|fastly|"
    "finicity|finnhub|flickr|freemius|freshbooks|gitter|heroku|hubspot|intercom|jfrog|kraken|kucoin|launchdarkly|"
    "linkedin|looker|mailchimp|mailgun|mapbox|mattermost|meraki|messagebird|netlify|newrelic|new_relic|nytimes|octopus|"
    "okta|openweather|pagerduty|plaid|postmark|privateai|rapidapi|sendbird|sendgrid|sendinblue|sentry|sidekiq|snyk|"
    "softlayer|sourcegraph|spotify|squarespace|sumologic|travis|trello|twilio|twitch|twitter|typeform|vonage|wandb|"
    "yandex|zendesk"
)
_VENDOR = re.compile(rf"(?<![a-z])(?:{_VENDORS})")
_VENDOR_LAST = re.compile(rf"(?<![a-z])(?:{_VENDORS}) $")
# A vendor's name only matters before a value of that length.
_LONG_RUN = re.compile(r"[A-Za-z0-9+/=_.~-]{16}")
# Looked for in lower case; longer words come before their own beginnings.
_STEM = re.compile(
    "(?P<PASSWORD>pass(?:word|phrase|code)s?|passwd|passwort|kennwort|contrase\u00f1a|senha|pwd|mot de passe"
    "|wachtwoord|has\u0142o|l\u00f6senord|\u043fapo\u043b\u044c|\u5bc6\u7801"  # as folding.py leaves it
    "|(?:pre-?shared|wi-?fi|wpa2?|wlan)[ _-]?(?:key|schl\u00fcssel)"
    "|credentials?|creds|clave(?! (?:de )?api)|psk|pass|mdp|pw)"
    "|(?P<KEY>tokens?|secrets?|bearer|jeton|api-?schl\u00fcssel|cl\u00e9 (?:d['\u2019 ]?)?api|clave (?:de )?api)"
    "|(?P<WEAK>keys?|authorization|auth)"
)
_STEMS = (
    "pass", "pwd", "pw", "key", "token", "secret", "cred", "auth", "bearer", "kennwort", "contrase", "senha",
    "mot de", "wachtwoord", "has\u0142o", "l\u00f6senord", "\u043fapo\u043b\u044c", "\u5bc6\u7801", "clave", "psk",
    "mdp", "jeton", "schl\u00fcssel", "cl\u00e9 ",
)  # fmt: skip
# What makes a "key" one that opens something.
_OPENS = (
    "api", "access", "secret", "private", "account", "subscription", "encryption", "signing", "session", "master",
    "license", "licence", "client", "consumer", "unseal", "recovery",
    "integration", "root", "deploy", "webhook", "service", "app", "admin", "ingest",
)  # fmt: skip
# These are parts of too many other words to count inside one.
_SHORT = frozenset({"pass", "pw", "key", "keys", "auth", "authorization", "senha", "creds", "clave", "psk", "mdp"})
# "key" and "token" after these open nothing.
_HARMLESS_LIST = """
primary foreign public publishable cache sort partition idempotency unique dict index routing group row composite
natural surrogate shard object bucket redis lookup max min num count total input output prompt completion stop page
next known map hot arrow enter escape shift answer metric feature config setting json translation locale react
order dedup dedupe deduplication s3 file registry major minor piano low new extra pad eos bos unk mask sep cls
"""
_HARMLESS_BEFORE = frozenset(_HARMLESS_LIST.split())
_PART_BEFORE = re.compile(r"(?:[A-Z]?[a-z0-9]{1,20}|[A-Z0-9]{1,20})(?=[ _.-]?$)")
_TAIL = re.compile(r"[\w-]{0,40}")
_HARMLESS_AFTER = re.compile(
    r"(?i)[_-]?(?:ids?|names?|count|counter|len(?:gth)?|size|type|files?|path|dir|url|uri|endpoint|limit|usage|budget|policy|"
    r"expir\w*|ttl|field|input|prompt|hint|reset|manager|min|max|format|class|provider|service|store|version|column|label|"
    r"at|age|strength|rules?|error|exception|index|map|spec|ref|arn|alias|algorithm|alg|method|header|scheme|mode|"
    r"(?:min|max)?_?length|rotation|management|s?_per_\w+|ized?|izer)\d*$"
)


def find(text: str, low: str) -> Iterator[Name]:
    """Credential words with the rest of the identifier they stand in; vendors' names come last. `low`: see lowered."""
    if are_in(low):
        for match in _STEM.finditer(low):
            name = _judge(text, low, match)
            if name is not None:
                yield name
    if _LONG_RUN.search(text):
        for match in _VENDOR.finditer(low):
            yield Name(match.start(), _end(text, match.end()), Strength.WEAK, match.group())


def are_in(low: str) -> bool:
    """False when the lower-case text cannot hold a credential word; most texts cannot."""
    return any(stem in low for stem in _STEMS)


def lowered(text: str) -> str:
    """The text in lower case, every character still at its place (a dotted capital I would become two)."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(char.lower()[:1] for char in text)


def of_key(key: str) -> Strength | None:
    """The strongest credential word that ends the name of a field, or None."""
    found = [name.strength for name in find(key, lowered(key)) if not key[name.end :].strip("\"' :=")]
    return max(found, default=None)


def is_harmless_key(name: str) -> bool:
    """True for `primary_key` and `next_page_token`: what stands before the last word says that it opens nothing."""
    parts = re.split(r"[_.-]", name.lower())
    return parts[-1].startswith(("key", "token")) and parts[-2] in _HARMLESS_BEFORE


def _judge(text: str, low: str, match: re.Match[str]) -> Name | None:
    start, word = match.start(), match.group()
    strength = Strength[match.lastgroup or "WEAK"]
    end = _end(text, match.end())
    rest = text[match.end() : end]
    if _continues(text[start : match.end()], rest) or _HARMLESS_AFTER.match(rest):
        return None
    before = low[max(0, start - 16) : start]
    if word in {"key", "keys"} and (before.rstrip(" _.-").endswith(_OPENS) or _VENDOR_LAST.search(before)):
        strength = Strength.KEY
    elif _is_harmless(text, start, word):
        return None
    return Name(start, end, strength, word)


def _is_harmless(text: str, start: int, word: str) -> bool:
    if word in _SHORT and _is_inside_a_word(text, start):
        return True
    return word.startswith(("key", "token")) and _part_before(text, start) in _HARMLESS_BEFORE


def _end(text: str, position: int) -> int:
    tail = _TAIL.match(text, position)
    return tail.end() if tail else position


def _is_inside_a_word(text: str, start: int) -> bool:
    """monkey, compass, APIKEY? A capital after a small letter begins a word of its own (oktaKey)."""
    before = text[start - 1 : start]
    return before.isalpha() and not (before.islower() and text[start].isupper())


def _continues(word: str, rest: str) -> bool:
    """True for tokenizer, keyboard, AUTHOR: the letters go on in the same case, so it is another word."""
    return rest[:1].isalpha() and (rest[0].islower() or (word[-1].isupper() and len(word) > 1))


def _part_before(text: str, start: int) -> str:
    """The word in front, also inside an identifier: `nextPageToken` gives page."""
    part = _PART_BEFORE.search(text, max(0, start - 22), start)
    return part.group().lower() if part else ""
