"""Claims about the user in an assistant's turn, put into the first person.

"So you are a nurse, right?" claims "I am a nurse"; an offer ("would you like me to ...") claims nothing.
"""

from __future__ import annotations

import re

from service.language.facts import verbs

OFFER = re.compile(
    r"\b(?:(?:want|like|need|prefer|allow) me|shall i|should i|can i|may i|could i|would you like|do you want"
    r"|are you (?:looking|trying|asking|interested in (?:me|more|learning|hearing|seeing))|do you need|did you"
    r" (?:try|know|mean|see|hear)|have you (?:tried|considered|thought|checked)"
    r"|can you|could you|would you|will you|are you sure|let me know|do you think|you (?:can|could|should|might"
    r"|may|will|would|need|must|want|mean)\b(?!['’]))",
    re.IGNORECASE,
)
_INVERTED = re.compile(
    r"^\W*(?:(?:so|and|ok|okay|oh|hmm|great|thanks|also|just to (?:confirm|check|be sure)|to confirm|then|i see"
    r"|wait|well|right|got it)[\s,.:!-]+)*(?P<aux>do|does|did|are|were|have|has|is|was|can) (?P<who>you|your (?:\w+"
    r" ){1,3}?)(?: )?(?P<rest>\b.+)$",
    re.IGNORECASE,
)
_CLAIM = re.compile(
    r"\b(?P<claim>(?:you(?:['’](?:re|ve|d))?|your (?:[\w-]+ ){1,4}?(?:is|are|was|has|lives?|works?|loves?"
    r"|likes?)) .+)$",
    re.IGNORECASE,
)
_TOLD_YOU = re.compile(
    r"^you(?:['’]ve)? (?:mentioned|said|told me|noted|shared|wrote|stated|explained)(?: earlier| before|"
    r" previously)?(?: that)? (?=(?:you|your)\b)",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"[,\s]+(?:right|correct|is that (?:right|correct|so|true)|(?:is|are|was|do|does|did|have|has)n['’]t (?:it|you"
    r"|he|she|they)|yes|no|am"
    r" i right|did i get that right|if i (?:remember|recall|understand) correctly)\W*$",
    re.IGNORECASE,
)
# "Since you live in Ghent, a walk might be nice?" asks about the walk
_SUGGESTS = re.compile(
    r"\W*(?:since|because|as|given|considering|if(?! I\b)|when|while|although|for|how about|what about)\b", re.I
)
_WHO = re.compile(
    r",? who (?P<verb>is|has|lives|works|likes|loves|plays|owns|speaks|studies|teaches|runs|enjoys|prefers) "
)
_VOICE = (
    (r"\byou(?:['’]re| are)\b", "I am"),
    (r"\byou(?:['’]ve| have)\b", "I have"),
    (r"\byou were\b", "I was"),
    (r"\byourself\b", "myself"),
    (r"\byours\b", "mine"),
    (r"\byour\b", "my"),
    (r"(?<=\w )you$|(?<=for )you\b|(?<=to )you\b|(?<=with )you\b", "me"),
    (r"\byou\b", "I"),
)


def made(said: list[str], last: str) -> list[str]:
    """Returns what a turn claims, in the first person: its question `last`, else its last sentence that claims."""
    statements = [each for each in said if of_sentence(each) and not OFFER.search(each)]
    about = [last] if last and of_sentence(last) else statements[-1:]
    return [claim for each in about if (claim := of_sentence(each))]


def of_sentence(sentence: str) -> str | None:
    """Returns what one sentence claims, None when it claims nothing."""
    if _SUGGESTS.match(sentence):
        return None
    bare = _TAG.sub("", sentence.strip().rstrip("?.! ")).strip()
    bare = re.sub(r"\band that (?=you)", "and ", bare, flags=re.IGNORECASE)
    remembered = re.search(r"\b(?:remember|note|save|store|recall) that (?=you)", bare, re.IGNORECASE)
    if remembered:
        return _first_person(bare[remembered.end() :])
    inverted = _INVERTED.match(bare)
    if inverted:
        if OFFER.search(bare):
            return None
        rest = re.sub(r"\b(?:any|a specific|some|a particular|ever) ", "", inverted["rest"])
        if re.search(r"\b(?:anything|something|else|or)\b", rest) or not rest:
            return None
        return _straight(inverted["aux"].lower(), inverted["who"].strip(), rest)
    found = _CLAIM.search(bare)
    if not found or re.match(r"\W*(?:what|how|where|when|which|who|why)\b", bare, re.IGNORECASE):
        return None
    if OFFER.search(bare):
        return None
    return _first_person(_TOLD_YOU.sub("", found["claim"]))


def _straight(aux: str, who: str, rest: str) -> str:
    """ "are you vegan" gives "I am vegan", "did you move" "I moved"."""
    subject = _first_person(who)
    if aux == "does":
        first, _, tail = rest.partition(" ")
        return f"{subject} {verbs.third(first.lower())} {_first_person(tail)}".strip()
    if aux == "do":
        return f"{subject} {_first_person(rest)}"
    if aux == "did":
        first, _, tail = rest.partition(" ")
        return f"{subject} {verbs.past(first.lower())} {_first_person(tail)}".strip()
    be = {"are": "am", "were": "was"}.get(aux, aux) if subject == "I" else aux
    return f"{subject} {be} {_first_person(rest)}"


def _first_person(text: str) -> str:
    """ "You are a librarian who has a beagle" gives "I am a librarian, and I have a beagle"."""
    who = _WHO.search(text)
    if who:
        verb = {"is": "am"}.get(who["verb"]) or verbs.lemma(who["verb"])
        text = f"{text[: who.start()]}, and I {verb} {text[who.end() :]}"
    for pattern, instead in _VOICE:
        text = re.sub(pattern, instead, text, flags=re.IGNORECASE)
    return text


def denied(claim: str) -> str | None:
    """Returns the denial of a first-person claim, None where there is no simple one."""
    if " still " in claim:
        return claim.replace(" still ", " no longer ", 1)
    for pattern, instead in (
        (r"^I am\b", "I am not"),
        (r"^I was\b", "I was not"),
        (r"^I can\b", "I cannot"),
        (r"^I have (?=\w+(?:ed|en)\b)", "I have not "),
        (r"^(My [\w ]+?) is\b", r"\1 is not"),
    ):
        if re.match(pattern, claim):
            return re.sub(pattern, instead, claim, count=1)
    word = re.match(r"^I (\w+)\b", claim)
    known = verbs.form(word.group(1).lower()) if word else None
    if known is None:
        return None
    return re.sub(r"^I \w+", f"I {'do not' if known.shape == 'base' else 'did not'} {known.lemma}", claim, count=1)
