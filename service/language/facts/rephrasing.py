"""Rephrases roundabout statements as plain ones.

"Neither my wife nor I drink coffee", "Things I can't eat: shellfish", "What I love about Rome is the light", "The kids
are at camp": English has a few ways to say "I ..." and "My ..." without beginning so.
"""

from __future__ import annotations

import re

from service.language.facts import verbs, wordbook

_LIKE = r"(?:love|like|enjoy|hate|dislike|need|want|miss|prefer|fear)"
_THINGS = (
    r"(?:(?:the|some|a few|other|more) )?(?:(?:\w+ )?(?:things?|stuff|food|[a-z]+s)|what|everything)"
    r"(?: (?:that|which))?"
)
_FORMS: tuple[tuple[str, str], ...] = (
    (r"neither (?P<a>(?:my|our) [\w-]+(?: [\w-]+)?) nor (?:I|me) (?P<b>[a-z]+)\b", r"\g<a> and I don't \g<b>"),
    (r"neither of us (?:can)\b", "We can't"),
    (r"neither of us (?:is|are)\b", "We aren't"),
    (r"neither of us (?P<b>[a-z]+)\b", r"We don't {base}"),
    (r"both of us\b", "We both"),
    (r"it takes (?:me|us) (?P<a>[\w ]+?) to (?=get|commute|drive|walk|cycle|travel)", r"I need \g<a> to "),
    (r"(?P<a>I|we) neither (?P<b>[a-z]+) nor (?=[a-z]+)", r"\g<a> don't {base} or "),
    (
        r"no (?=(?:[\w-]+ )?(?:kids|children|pets|siblings|allergies|brothers|sisters|car|partner)(?:(?: yet"
        r"| here)?$|,? (?:and |or )?no\b))",
        "I have no ",
    ),
    (
        r"(?:my|the) (?:doctor|gp|dentist|vet|optician|nurse|consultant|midwife|surgeon|physio|therapist"
        r"|psychiatrist|specialist|scan|test|report|letter)s?"
        r" (?:says?|said|told me|shows?|showed|confirm(?:s|ed)?) (?:that )?(?=my\b|I (?:am|have)\b)",
        "",
    ),
    (
        r"(?:my|the) (?:landlord|landlady|boss|manager|teacher|school|company|doctor|coach)"
        r" (?:says|said|told me|wants) (?:that )?(?=I (?:have to|need to|must|can't|am not allowed)\b)",
        "",
    ),
    (r"(?:according to|per) (?:the|my) [\w' -]{2,30}? (?=my\b)", ""),
    (r"it (?:is|has been) (?P<a>[\w ]{2,30}?) since I (?P<b>(?:last )?[a-z]+) (?P<c>.+)$", r"I \g<b> \g<c> \g<a> ago"),
    (
        r"(?P<a>(?:my|our) (?:[\w-]+ )?[\w-]+),? (?:he|she|they) (?=(?:is|was|has|doesn't|works|lives|[a-z]+s)\b)",
        r"\g<a> ",
    ),
    (r"(?:there is|there's|there are) no (?:way|chance)(?: that)? I am (?:ever )?", "I am not "),
    (r"(?:there is|there's|there are) no (?:way|chance)(?: that)? I will (?:ever )?", "I will not "),
    (rf"what I (?:really |most |actually )?(?P<b>{_LIKE})(?: most| best)? is (?!that\b|when\b|how\b)", r"I \g<b> "),
    (
        rf"what I (?P<b>{_LIKE})(?: most| best)? about (?P<a>[\w' ]{{2,30}}?) (?:is|are) (?!that\b|when\b|how\b)",
        r"I \g<b> about \g<a> ",
    ),
    (
        rf"{_THINGS} I (?P<b>(?:[a-z]+ly |really |always |never )?(?:[a-z]+(?:n['’]t)?|am|have)(?: (?!(?:are|is)\b)"
        r"[a-z]+){0,3}?)(?: the most| a lot)?\s*(?::| (?:are|is|include)(?=[: ]))\s*:?\s*(?=\w)",
        r"I \g<b> ",
    ),
    (r"my (?P<a>(?:[\w-]+ ){0,2}[a-z-]+s(?: (?:this|for|of) (?:the )?\w+)?)\s*:\s*(?=\w)", r"my \g<a> are "),
    (r"my (?P<a>(?:[\w-]+ ){0,2}[a-z-]+)\s*:\s*(?=\w)", r"my \g<a> is "),
)
_STRAIGHT = tuple((re.compile(rf"^(?:{pattern})", re.IGNORECASE), instead) for pattern, instead in _FORMS)
_COLON = re.compile(r"^(I [^:]{2,40}):\s+(?=\w)")
_NAMED = re.compile(
    r"^(?P<name>[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?), (?P<who>(?:my|our) (?:[\w-]+ ){0,2}?(?P<noun>[\w-]+)),? (?=(?:is"
    r"|was|has|who|[a-z]+s)\b)"
)
_APPOSED = re.compile(
    r"^(?P<who>(?:my|our|the) (?:[\w-]+ ){0,2}?(?P<noun>[\w-]+)), (?P<name>[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?),"
    r" (?=[a-z])",
    re.IGNORECASE,
)
_HOUSEHOLD = re.compile(r"^the (?P<noun>[a-z-]+(?: (?:boys|girls|kids|children))?)(?= (?:[A-Z]|\w+))", re.IGNORECASE)
_GENERAL = re.compile(r"\bis an? (?:\w+ )*(?:mammal|species|animal|predator|symbol|breed|pet)\b", re.IGNORECASE)
_OURS = frozenset(
    (wordbook.KIN | {"kids", "children", "twins", "dog", "cat", "dogs", "cats", "puppy", "kitten", "vet", "missus"})
    - {"assistant", "child", "father", "mother", "friend", "son", "daughter", "ex", "twin"}
)  # fmt: skip
"""Whom people call "the" and mean their own; "the mother" may be anybody's."""


def straight(text: str) -> str:
    """Returns a bare clause, contractions spelt out, in the plain order, with "I" or "my" at its head if possible."""
    text = _COLON.sub(r"\1 ", text)
    apposed = _APPOSED.match(text)
    if apposed and apposed["name"][0].isupper() and (wordbook.kin(apposed["noun"]) or wordbook.animal(apposed["noun"])):
        text = f"{apposed['who']} {apposed['name']} {text[apposed.end() :]}"
    named = _NAMED.match(text)
    if named and (wordbook.kin(named["noun"]) or wordbook.animal(named["noun"])):
        text = f"{named['who']} {named['name']} {text[named.end() :]}"
    household = _HOUSEHOLD.match(text)
    if household and household["noun"].lower() in _OURS and not _GENERAL.search(text):
        return f"my{text[3:]}"
    for pattern, instead in _STRAIGHT:
        found = pattern.match(text)
        if found:
            groups = found.groupdict()
            known = verbs.lemma(groups["b"].lower()) if groups.get("b") else ""
            return found.expand(instead.replace("{base}", known)) + text[found.end() :]
    return text
