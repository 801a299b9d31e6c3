"""Secrets that sentences give away, and where such a secret ends.

"My password is sunshine", "use sunshine as the password". But a sentence may also continue about the password ("is too
short", "is in the vault"). A fixed list of such words, and the text after the word, distinguish the two: a secret is at
the end of its clause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.redaction.detection import names
from service.redaction.detection.findings import PASSWORD, Finding
from service.redaction.detection.value_shapes import is_mixed, names_a_secret, stands_for_something

_CLAUSE = re.compile(
    r"(?:(?! (?:lol|haha|btw|fyi|thx|thanks|(?:just )?in case|because|if|when|while)\b| [-\u2013\u2014#] | // )"
    r"[^.!?;,\n\"'`<>()\[\]{}|=:\\]){1,90}+"
)
_CLAUSE_END = re.compile(
    r"\)|[\"'`*_)\]]{0,2}(?:\s*(?:$|[.,;!?)\n|\u2014(#]|- |//|lol\b|btw\b|thanks\b)|\s(?P<word>[^\W\d]+)\b)"
)
_POSSESSIVE = re.compile(
    r"(?i)\b(?:my|our|his|her|their|your|\w+'s|mein\w*|dein\w*|unser\w*|mon|ma|notre|votre|mi|tu|nuestra|mi[ao]|minha)"
    r"\s(?:[\w-]+\s){0,3}$"
)
_PARTICIPLE = re.compile(
    r"(?i).{2,}(?:ed|ing|ly|able|ible|ive|ory|ary|less|ful|ous|ent|ant|ic|ical|ised|ized|ness|tude|ity|tion|[ae]nce)$"
)
_FOREIGN_PARTICIPLE = re.compile(
    r"(?:(?-i:[a-z])\w*(?:en|ig|lich)|(?-i:ge|ver|be|er|ent|ab|zer)\w+t|.{2,}(?:[\u00e9\u00e8]e?s?|oire|able"
    r"|ide|[aiu]d[oa]|[aeiu]t[oa]|ct[oa]|[\u00e1\u00f3\u00e9]lid[oa]|ri[oa]|er[oa]|ow[aey]|nte|iwe|n[\u00e1\u00fd]))$",
    re.I,
)

_FUNCTION_LIST = """
a an the this that these those it its one none not no never always ever only just still already now then here
there too very so quite rather pretty really super extremely somewhat more most less least much many some any
all both each my your his her our their mine yours theirs ours whose what which who when where why how whether
if because since as at by for from in into of off on onto out over per than through to until up upon via with
within without under about after against along among around before behind below between beyond during except
inside near outside past and or but nor yet also else either neither same different similar identical like
unlike such is are was were be been being am do does did done has have had having can could may might must shall
should will would get gets got going gone let lets make makes made need needs seems looks says said means takes
took goes came again anymore anyway yesterday today tomorrow please something anything nothing everything someone
us me we they he she you i don't doesn't isn't won't can't
der die das den dem ein eine im am zu zur zum nicht noch nur sehr wie von bei mit und oder auf
le la les un une du de des dans sur au pas plus trop bien chez que qui et ou el los las una en con muy m\u00e1s por y
il lo gli nel nella non sulla na em n\u00e3o o os het een niet op nie w ikke inte
"""
_SAID_LIST = """
accepted allowed altered bad better blank blocked broken case changed checked common compromised confidential copied
correct created critical cached crucial deleted dead due easy empty encrypted enforced essential exposed expired
fake fine free generated good great hard hashed hidden important impossible incorrect insecure invalid kept key
known leaked locked long longer lost mandatory masked missing necessary new null ok okay old old-fashioned optional
out-of-date outdated personal plain plaintext predictable private protected provided public random readable redacted
required reset reused revoked rotated safe safer saved secret secure sensitive sent set shared short shorter simple
simpler stale stolen stored strong stronger stuck subject synced temporary tied trivial typed unavailable unchanged
undefined unique unknown unset unsafe up-to-date used useless valid visible weak wrong written ask asks check checks
click contact enter enters forgot forget keep keeps log login logout press see send sends store stores submit tap
try type use uses visit wait minimum maximum min max at-least characters chars letters digits symbols username user
users email account password passwords passphrase manager policy field prompt hint authentication yes yep yeah sure
sorry dunno nope idk hi hello hey ok thanks register cancel continue save back next true false tricky auth recovery
leak dialog box screen page form expiry generator hashing vault phone google facebook apple github sms sso expire
expires tab tabs settings section different working expiring failing pending urgent later soon tonight nobody
everyone everybody half twice once complex default forgotten vergessen falsch siehe oubli\u00e9 olvidada fel
gesperrt vide faux
"""
# Function words, which do not make up a passphrase.
_FUNCTION = frozenset(_FUNCTION_LIST.split())
_LINKS_LIST = """
and of in on with under over the by a at from into to for through behind before after near and or is are und der die
das den dem ein eine im am zu zum auf mit von bei de la le les un une du des dans sur au el los en con y il lo nel het
een op
"""
# Words that a passphrase may contain.
_LINKS = frozenset(_LINKS_LIST.split())
# Common words about a password: its states, and what one does with it.
_SAID = frozenset(_SAID_LIST.split())
# Words that begin another thought after the secret.
_JOINS_LIST = """
and but on for to if when so because since please in at with until from then now again which where while unless or lol
haha btw thanks und et y e en i och og f\u00fcr auf pour para sur per bitte por
"""
_JOINS = frozenset(_JOINS_LIST.split())

_DETERMINER = r"(?:the|my|our|his|her|their|your|a|its)"
_OF_SECRET = (
    rf"(?:{_DETERMINER} )?(?:[\w'-]{{1,20}} ){{0,2}}?(?:{names.PASSWORD_WORD}|pw|pin|pass)\b(?! ?(?:manager"
    rf"|policy|hint|guy|expert|reset))"
)
_TYPED = (
    r"(?:nimm|gib|benutze|tape|utilise|usa|pon|digita|metti|wpisz|type|types|typed|and|use|uses|used|using"
    r"|enter|entered|put|putting|try|tried|give|gave|choose|chose|pick|picked|set|take|with|then)"
)
_VALUE = (
    r"(?:\"(?P<{0}q>[^\"\n]{{3,64}})\"|[`'\u201c*]{{0,2}}(?P<{0}>[^\s\"'`\u201c\u201d,;()]{{3,64}}))['`\u201d*]{{0,2}}"
)
# "use hunter2 as the admin password", "admin, then hunter2 for the password"
_BEFORE = re.compile(
    rf"\b{_TYPED} {_VALUE.format('typed')} (?:as|for|in|into|at|when asked for|als|comme|como|come|jako"
    rf"|som) {_OF_SECRET}(?! (?!(?:there|here|everywhere|on|for|and|when|to|at|now|then|in|of|field|prompt"
    rf"|instead|please)\b)[a-z])"
    rf"|\b(?:(?:ask|prompt)s? (?:(?:you|me|us) )?for|prompted for|asked for|at|to) {_OF_SECRET}(?: prompt)?,? (?:just "
    rf"|then )?(?:type|enter|use|give|is|it'?s) {_VALUE.format('asked')}"
    rf"|\bfrom {_VALUE.format('old')} to (?=\S)"
    rf"|(?:^|[.!?;:,]\s|\n)(?:it'?s |so |and |btw,? )?(?!as |to |in |if ){_VALUE.format('first')} (?:is|was"
    rf"|(?:should |will )?works? as|will do as) (?:now |still )?{_OF_SECRET}"
    r"(?=\s*(?:$|[.,;!?\n)]|on\b|for\b|of\b|to\b|at\b|now\b|and\b))"
)
# "hunter2 is my password", "'open sesame', that's the vault passphrase": anchored at the verb, the value before it.
_AFTER_VALUE = re.compile(
    rf",? (?:is|was|as|=|for|\(?that's|\(?that is|\(?that was|which is) (?:now )?(?!the (?:first|most|best|worst)\b)"
    rf"{_OF_SECRET}"
    rf"|,? (?:is|was|as|=|that's|that is|which is) (?:now )?(?:{_DETERMINER} )?(?:[\w-]{{1,20}} ){{0,2}}?"
    r"(?:\w{0,30}(?:api|access|secret)[_ ]key|token)\b"
)
_LAST_RUN = re.compile(r"[^\s\"'`(]{4,64}$")
_LAST_QUOTED = re.compile(r"[\"\u201c\u00ab]([^\"\u201c\u201d\u00ab\u00bb\n]{4,64})[\"\u201d\u00bb]$")


def is_going_on(word: str) -> bool:
    """True for a word after which a sentence about a password continues."""
    bare = word.lower().strip("-'\u2019.!,")
    return bare in _FUNCTION or bare in _SAID


def is_participle(word: str) -> bool:
    """True for "expired" and "weekly": the form of a word that says how something is."""
    return _PARTICIPLE.match(word) is not None


def is_phrase(value: str) -> bool:
    """True for quoted words that may be a secret, False for a sentence about one."""
    words = value.lower().split()
    plain = [word.strip(".,!?:") for word in words if word not in _LINKS]
    if not plain or names_a_secret(value) or value.endswith((".", "?", "\u2026")):
        return False
    return len(words) <= 8 and not any(word in _FUNCTION for word in plain) and sum(word in _SAID for word in plain) < 2


def is_ended(text: str, end: int) -> bool:
    """Whether a clause ends at `end`, or another thought begins."""
    after = _CLAUSE_END.match(text, end)
    return after is not None and (after["word"] is None or after["word"].lower() in _JOINS)


def secret_end(
    text: str, name_start: int, start: int, *, sure: bool, foreign: bool = False, phrase: bool = False
) -> int | None:
    """The end of the secret of plain words that begins at `start`, or None if the words are prose.

    `sure`: a colon or an equals sign announced it, not "is".
    """
    clause = _CLAUSE.match(text, start)
    words = clause.group().split() if clause else []
    if clause is None or not words:
        return None
    opened = phrase and sure and len(words) > 4 and words[0].lower() in _LINKS  # "the cat sleeps on the stove"
    if is_going_on(words[0]) and not opened:
        return None
    ours = _POSSESSIVE.search(text, max(0, name_start - 40), name_start) is not None
    participles = _FOREIGN_PARTICIPLE if foreign else _PARTICIPLE
    first = start + len(words[0])
    if len(words) == 1 or words[1].lower() in _JOINS:
        goes_on = not (sure or (ours and len(words) == 1)) and participles.match(words[0]) is not None
        return first if is_ended(text, first) and not goes_on else None
    least = 2 if sure or ours else 3
    spoken_words = sum(word.lower() in _SAID for word in words)
    links = _LINKS if phrase else frozenset[str]()
    states = [_PARTICIPLE.match(word) is not None for word in words]  # or nouns like "ceiling", of which one may occur
    spoken = sum(states) > (phrase and len(words) > 3 and not states[0])
    spoken = spoken or any(word.lower() in _FUNCTION and word.lower() not in links for word in words)
    odd = not all(word.isalpha() or (sure and word.isdigit()) for word in words)
    if spoken or odd or spoken_words > (phrase or len(words) > 3) or not least <= len(words) <= (8 if phrase else 6):
        return None
    return start + len(clause.group().rstrip())


def find(text: str, low: str) -> Iterator[Finding]:
    """Passwords named before the word is said."""
    if names.are_in(low) or "pin" in low:
        for match in _BEFORE.finditer(low):
            yield from _find_given(text, match, plain=not (match["old"] or match["oldq"]))
        yield from _find_before(text, low)


def _find_given(text: str, match: re.Match[str], *, plain: bool) -> Iterator[Finding]:
    """The value, if it looks like one or, with `plain`, is a word that is unusual there."""
    group = next(name for name, value in match.groupdict().items() if value)
    quoted = group.endswith("q")
    start = match.start(group)
    value = text[start : match.end(group)]
    value = value if quoted else value.rstrip(".,;:!?*_" if not value.endswith("!") else ".,;:?*_")
    if len(value) < 3 or stands_for_something(value, quoted=quoted):
        return
    if quoted:
        given = is_phrase(value) if " " in value else not is_going_on(value)
    elif value.isdigit():
        given = 4 <= len(value) <= 12 and "typed" in group
    else:
        given = is_mixed(value) or (plain and not is_going_on(value) and not names_a_secret(value))
    if given:
        yield Finding(start, start + len(value), PASSWORD)


def _find_before(text: str, low: str) -> Iterator[Finding]:
    for match in _AFTER_VALUE.finditer(low):
        begin = max(0, match.start() - 66)
        before = text[begin : match.start()]
        quoted = _LAST_QUOTED.search(before)
        if quoted and not stands_for_something(quoted[1], quoted=True):
            yield Finding(begin + quoted.start(1), begin + quoted.end(1), PASSWORD)
            continue
        run = _LAST_RUN.search(before.rstrip("\"'`),"))
        if run and (is_mixed(run.group()) or (run.group().isdigit() and " as " in match.group())):
            yield Finding(begin + run.start(), begin + run.end(), PASSWORD)
