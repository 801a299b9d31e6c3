"""Answers and corrections, read with what they answer or correct.

"Are you vegetarian?" "Yes." is "I am vegetarian."; "My standup is at 9:30." "No, I meant 10:15." is "My standup is at
10:15." Only where the form leaves no choice; otherwise the words before are quoted beside.
"""

from __future__ import annotations

import re

from service.language.talk import references
from service.language.talk.words import EMPTY, TIME_WORDS

YES = re.compile(
    r"^\W*(?:yes|yeah|yep|yup|yea|sure(?: do| am)?|correct|right|exactly|indeed|absolutely|definitely|of course"
    r"|(?:yes,? )?(?:I|we) (?:do|am|have|did|are)"
    r"|si|oui|ja|uh-?huh|affirmative|true|that's right|i think so)\b(?P<more>.*)$",
    re.IGNORECASE | re.DOTALL,
)
NO = re.compile(
    r"^\W*(?:no|nope|nah|not (?:really|at all|anymore|any more|yet)|never|(?:no,? )?(?:I|we) (?:don't|'m not|am not"
    r"|haven't|didn't|do not|have not|did not)"
    r"|negative)\b(?P<more>.*)$",
    re.IGNORECASE | re.DOTALL,
)
ASKED = re.compile(
    r"^\W*(?:(?:so|and|ok|okay|well|oh|by the way|just to check|wait|hey|hi)\W+)*(?P<verb>are|do|did|have|were|will"
    r"|can)(?P<not>n't)? you(?: (?P<filler>still|already"
    r"|also|actually|ever|currently|really|now))? (?P<rest>[^?]+)\?\W*$",
    re.IGNORECASE,
)
STATED = {
    "are": ("I am", "I am not"),
    "do": ("I", "I do not"),
    "did": ("I did", "I did not"),
    "have": ("I have", "I have not"),
    "were": ("I was", "I was not"),
    "will": ("I will", "I will not"),
    "can": ("I can", "I cannot"),
}
UNDECLARABLE = re.compile(r"\b(?:you|or|any|anyone|anything|anybody|ever|yet)\b", re.IGNORECASE)
FILLERS_LOST = frozenset({"ever", "really", "actually"})
"""What a question has and its statement has not."""

OFFER = re.compile(
    r"\b(?:would you like|do you want|shall i|should i|can i|could i|may i|want me to|need (?:any|more|some) (?:help"
    r"|info)|need help|have any (?:other )?questions"
    r"|anything else|does that (?:help|make sense|work|sound)|is that (?:ok|okay|right|correct)|how are you"
    r"|how can i|make sense|ready to"
    r"|know what i mean|are you (?:sure|ok|okay|there|ready|sitting|kidding|serious|asking|looking for"
    r"|interested in (?:hearing|learning))|did you mean|do you mean"
    r"|have you (?:tried|considered|thought)|do you (?:know|think|agree|remember|see)|can you|could you|will you)\b",
    re.IGNORECASE,
)
"""Questions whose yes or no tells nothing about whom they are put to."""

PROPOSAL = re.compile(
    r"\b(?:shall we|should we|can we|could we|how about|what about|(?:would|does|will|is)\b.{1,40}"
    r"\b(?:suit|work|fit|be (?:ok|okay|fine|good)|ok|okay|fine|good)\b)|^\W*[^,.;!?]{1,40}\?\W*$",
    re.IGNORECASE,
)
"""Questions that propose something; a few words with a question mark do, too ("23 March to 2 April?")."""

CONSENT = re.compile(
    r"^\W*(?:perfect|great|fine|good|ok|okay|deal|done|agreed|sounds (?:good|great|perfect)|that works"
    r"|works(?: for me)?|suits me|let['’]?s do (?:it|that))\b",
    re.IGNORECASE,
)

OPEN_QUESTION = re.compile(
    r"\b(?:what|which|who|whose|where|when|how (?:old|many|much|long|often|far|big|tall)|how|why)\b", re.IGNORECASE
)
CORRECTION = re.compile(
    r"^\W*(?:(?:oh|oops|ah|sorry|wait|hmm|well|uh|ugh|argh|damn)\W+)*(?:no\b[,.;: –—-]+(?:wait\W+|sorry\W+"
    r"|actually\W+)?(?:i (?:meant|mean)|it(?:'s| is)|that(?:'s| is|"
    r" should be)|make (?:that|it)|not)\b|i meant\b|i mean(?=,? \S+\W*$)|correction\W|scratch that\W|my (?:mistake"
    r"|bad)\W|(?:sorry|oops)\W+(?:i meant|it's|it is|that's|make that|not)\b"
    r"|make (?:that|it)\b|let me correct\b|i misspoke\b|typo\W|actually,?\s+(?:it(?:'s| is| was)|that(?:'s"
    r"| is| was)|make (?:that|it)|no)\b|"
    r"(?:that|it) should (?:be|have been|say|read)\b|i (?:said|wrote) .{1,40} but (?:i )?meant\b)",
    re.IGNORECASE,
)
MARKED_CORRECTION = re.compile(
    r"^\W*(?:actually|correction|no,? wait|scratch that|my mistake|i misspoke|i was wrong|i mistyped|mistyped"
    r"|wrong \w+[:,.])"
    r"(?!\w)",
    re.IGNORECASE,
)
LEAD = re.compile(
    r"^\W*(?:(?:oh|oops|ah|sorry|wait|hmm|well|no|actually|correction|scratch that|my (?:mistake|bad)|typo"
    r"|i (?:misspoke|mistyped|was wrong)[^,.:;–—]{0,25}(?=[,.:;–—])|i (?:meant|mean)|it(?:'s| is| was)"
    r"|that(?:'s| is)|make (?:that|it)"
    r"|(?:that|it) should (?:be|have been|say|read)|to say)\b[\s,.:;*–—-]*)+",
    re.IGNORECASE,
)
OWN_SUBJECT = re.compile(r"\W*(?:I|I['’]\w+|we|my|our)\b", re.IGNORECASE)
"""A correction that is a statement by itself: nothing of the one before is left."""

RESTATED = re.compile(
    r"\b(?:it|that|he|she|they|this)(?:['’](?:s|re|ve)| is| are| was| were| has| have)?(?: (?:been|just|now|moved"
    r"|pushed|changed"
    r"|put|brought|postponed|rescheduled|raised|lowered|cut|born|called|named|it|back|forward))*(?: (?:to|on|in|at"
    r"|until|the))*"
    r" (?P<value>[^\s,;.!?]+(?: [^\s,;.!?]+)?)(?: (?:now|lol|instead|actually))?\W*$",
    re.IGNORECASE,
)
NOT_THE_OLD = re.compile(
    r"(?:,|\s)\s*(?:not|instead of|rather than)\s+(?P<old>[^,;]+?)(?=[,;]|[.!?]+(?:\s|$)|$)"
    r"|^not\s+(?P<first>[^,;]+?)(?:\s*[,;]\s*(?:but\s+)?|\s+but\s+)(?=\S)",
    re.IGNORECASE,
)
MONTHS = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?"
)
VALUE_KINDS = tuple(
    re.compile(form)
    for form in (
        r"(?i)\b\d{1,2}(?:[:.]\d{2})?\s*[ap]\.?m\b\.?|\b\d{1,2}:\d{2}\b|(?<=at )\d{1,2}\b|\b(?:noon|midnight)\b"
        r"|\bhalf past \w+",
        rf"(?i)\b(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{MONTHS})|(?:{MONTHS})\.? \d{{1,2}}(?:st|nd|rd"
        rf"|th)?)(?:,? \d{{4}})?\b|\b\d{{4}}-\d{{2}}-\d{{2}}\b",
        r"(?i)\b\d{1,2}(?:st|nd|rd|th)\b",
        r"(?i)\b(?:mon|tues?|wednes|thurs?|fri|satur|sun)(?:day)?s?\b|\b(?:today|tomorrow|tonight)\b",
        rf"(?i)\b(?:{MONTHS})\b",
        r"[\w.+-]+@[\w.-]+\w",
        r"(?<!\w)[$€£]?\d[\d.,]*(?:\s?(?:%|k|kg|g|mg|ml|km|m|cm|lbs?|miles?|euros?|dollars?|pounds?|years?|months?"
        r"|weeks?|days?|hours?|minutes?|people))?\b|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen"
        r"|twenty|thirty|forty|fifty)\b",
        r"(?<![.!?] )(?<!^)\b[A-Z][\w'-]*(?: [A-Z][\w'-]*)*",
    )
)
"""Kinds of values, the most particular first: time, date, day of a month, weekday, month, address, figure, name."""

AGREEABLE = VALUE_KINDS[:4]
"""Kinds of values that are agreed on: times, dates and days."""

STATES = re.compile(r"\b(?:is|are|was|were|has|have|had|will|starts?|begins?)\b|\w['’]s\b", re.IGNORECASE)
"""What makes a correction a statement of its own: "the party is at 4"."""


def is_correction(sentence: str) -> bool:
    """Whether a sentence corrects what its speaker said before."""
    return CORRECTION.match(sentence) is not None or MARKED_CORRECTION.match(sentence) is not None


def may_correct(previous: str, correction: str) -> bool:
    """Whether a correction may be of a sentence: it names nothing, or something of it ("No, I meant 9:30 for the
    dentist")."""
    rest = _first_clause(NOT_THE_OLD.sub(" ", LEAD.sub("", correction)))
    found = _value(rest)
    named = _topics(rest.replace(found[1].strip(), " ", 1) if found else rest)
    return not named or bool(named & _topics(previous))


def _topics(text: str) -> set[str]:
    words = (word.casefold().removesuffix("'s") for word in re.findall(r"[^\W\d_]{3,}(?:'s)?", text))
    return {word for word in words if word not in EMPTY and word not in TIME_WORDS}


def value_put(previous: str, correction: str) -> str | None:
    """The one value of `previous` whose place the value that a correction names would take; None without one."""
    found = _place(previous, _first_clause(LEAD.sub("", correction)))
    return found[0].group().strip() if found else None


def corrected(previous: str, correction: str) -> str | None:
    """The previous sentence with the one value of the kind that the correction names replaced by it, or the correction
    itself where it says "not" that value and is a statement; None where there are several such values, or none."""
    rest = LEAD.sub("", correction).strip(" .!?")
    gone = NOT_THE_OLD.search(rest)
    old = (gone["old"] or gone["first"]).strip() if gone else None
    new = (rest[: gone.start()] + rest[gone.end() :]).strip(" .,;") if gone else rest
    if old and new:
        there = list(re.finditer(rf"(?<!\w){re.escape(old)}(?!\w)", previous, re.IGNORECASE))
        if len(there) == 1:
            return _put(new, previous[: there[0].start()], previous[there[0].end() :])
    new = _first_clause(new)
    if not new or len(new.split()) > 6 or OWN_SUBJECT.match(new):
        return None
    found = _place(previous, new)
    return previous[: found[0].start()] + found[1] + previous[found[0].end() :] if found else None


def _first_clause(text: str) -> str:
    """What stands before the first comma: "the 21st" of "the 21st, the 14th is Tom's"."""
    return re.split(r"[,;](?!\d)", text, maxsplit=1)[0].strip(" .!?")


def _place(previous: str, new: str) -> tuple[re.Match[str], str] | None:
    """Where the only value in `previous` stands of the kind that `new` has, and the new value."""
    found = _value(new)
    if found is None:
        return None
    kind, value = found
    there = _alike(list(kind.finditer(previous)), value)
    return (there[0], value.strip()) if len(there) == 1 else None


def _value(text: str) -> tuple[re.Pattern[str], str] | None:
    """The value of the most particular kind that a text has, and the kind."""
    for kind in VALUE_KINDS:
        if found := kind.search(f"x {text}"):
            return kind, found.group()
    return None


def _put(new: str, before: str, after: str) -> str:
    """`new` between the words around the old value: "at 4" after "The party is at"; by itself where it is a statement,
    as "the party is at 4"."""
    told, words = before.split(), new.split()
    if told and words[0].casefold() == told[-1].casefold() and len(words) > 1:
        words = words[1:]
    restates = bool(told) and told[-1].casefold() in [word.casefold() for word in words]
    if restates or OWN_SUBJECT.match(new) or STATES.search(new):
        return f"{new[0].upper()}{new[1:]}."
    value = " ".join(words)
    repeated = re.match(rf"\s+{re.escape(words[-1])}(?!\w)", after)  # "5 June 2027" before " 2027."
    return before + value + (after[repeated.end() :] if repeated else after)


def restated(previous: str, sentence: str) -> str | None:
    """The previous statement with the value that the sentence says "it" has now: "I have a call at 7." "They've pushed
    it to 8."; None where it says none, or there is no single value of the kind."""
    told = RESTATED.search(sentence)
    return corrected(previous, told["value"]) if told else None


def _alike(found: list[re.Match[str]], value: str) -> list[re.Match[str]]:
    """Of several values those that are written like the new one: as many digits, the same marks."""
    if len(found) < 2:
        return found
    form = re.sub(r"\d", "9", value.strip())
    return [each for each in found if re.match(re.escape(form), re.sub(r"\d", "9", each.group()))]


def declared(question: str, answer: str) -> str | None:
    """A yes or no to a question about the one who answers, as a statement; None for any other."""
    asked = ASKED.match(question.strip())
    if asked is None or asked["not"] or is_offer(question):
        return None
    yes, no = YES.match(answer.strip()), NO.match(answer.strip())
    if (yes is None) == (no is None):
        return None
    rest = re.sub(r"\byourself\b", "myself", re.sub(r"\byour\b", "my", asked["rest"], flags=re.IGNORECASE))
    if UNDECLARABLE.search(rest) or asked["filler"] in FILLERS_LOST or references.hangs(rest):
        return None
    filler = f" {asked['filler'].lower()}" if asked["filler"] else ""
    return f"{STATED[asked['verb'].lower()][no is not None]}{filler} {rest.strip()}."


def agrees(question: str, answer: str) -> bool:
    """Whether an answer takes up a proposal that has a time: "Shall we meet on Friday at 6?" "Yes, fine"."""
    proposed = PROPOSAL.search(question) is not None and any(kind.search(question) for kind in AGREEABLE)
    return proposed and (YES.match(answer.strip()) or CONSENT.match(answer.strip())) is not None


def chooses(question: str, answer: str) -> bool:
    """Whether an answer begins with one of what the question lets it choose: "Cedar or larch?" "Larch."."""
    first = re.match(r"\W*(\w{3,})", answer)
    return (
        first is not None
        and re.search(rf"\b(?:{first[1]},? or|or (?:the |an? )?{first[1]})\b", question, re.I) is not None
    )


def is_offer(question: str) -> bool:
    """Whether a question offers, checks or asks for help: its answer is no fact."""
    return OFFER.search(question) is not None
