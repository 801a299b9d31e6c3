"""Whether a sentence is worth remembering, by what it tells of and not by its grammar.

Counted: words that carry a topic, the speaker himself, names, numbers and times; talk about the listener counts
against it. Questions, orders, pleasantries and suppositions are not kept, whatever they tell of.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from service.language.talk.words import EMPTY, NUMBER_WORDS, ORDER_VERBS, TIME_WORDS

KEPT_FROM = 2.0
"""Worth from which a sentence is kept: four topic words, or two and the speaker ("I teach physics")."""

MIN_WORDS = 3
MAX_TOPIC_WORDS = 8

WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
OPENING = re.compile(
    r"^\W*(?:(?:thanks?(?: you)?(?: so much| a lot| again)?|thx|wow|yeah|yes|yep|yup|yea|no|nope|nah|hey|hi|hello|oh|ah|aww?"
    r"|ok(?:ay)?|well|sure|so|man|cool|nice|great|awesome|good (?:morning|evening|afternoon)|dear|btw|by the way"
    r"|actually|anyway|honestly|also|fyi|ps|p\.s\.|haha|lol|hmm+|right|exactly|definitely|absolutely|totally|of course"
    r"|congrats|congratulations|please note|note|update)\b(?: (?:there|all|everyone|guys|team))?(?=\W|$)[\s,.!:;…–—-]*)+",
    re.IGNORECASE,
)
FIRST_PERSON = re.compile(
    r"\b(?:I|I'[a-z]+|im|ive|id|me|my|mine|myself|we|we'[a-z]+|our|ours|us)\b", re.IGNORECASE
)
SECOND_PERSON = re.compile(r"\b(?:you|your|yours|you'[a-z]+|yourself|u|ur)\b", re.IGNORECASE)
CHAT = re.compile(
    r"\b(?:can't wait|cannot wait|let me know|talk (?:to you )?(?:soon|later)|take care|good luck|no (?:worries|problem)"
    r"|you're welcome|my pleasure|i appreciate|thank you|thanks for|i (?:totally |really |completely )?(?:agree|get it"
    r"|understand|see what)|i (?:wonder|was wondering|have (?:a|one|another|some) questions?|forgot to (?:ask|mention))"
    r"|glad (?:to|you|that)|(?:hope|know|bet|think|sure|believe|wish|hear|see|love (?:how|that|your)|proud of|happy for"
    r"|excited for|sorry (?:to hear|about|for)|rooting for|here for) (?:that )?(?:you|your|you're|to hear|it))\b",
    re.IGNORECASE,
)
SUPPOSED = re.compile(
    r"^\W*(?:(?:and|but|so|ok|okay|well) )?(?:if|unless|suppose|supposing|imagine|assume|assuming|pretend|what if|let's say"
    r"|say(?:,| I| we| you)|as if|if only|picture this|hypothetically|in theory|for example|e\.g\.|had i|were i|should i"
    r"|should you|in case)\b",
    re.IGNORECASE,
)
IRONY = re.compile(
    r"^\W*(?:yeah,? right|sure,? (?:and|because)|oh,? (?:sure|great|brilliant|joy)|as if|right,? and)\b|(?:\s/s|just kidding"
    r"|\bjk\b|i'm kidding|i'm joking|not really)\W*$",
    re.IGNORECASE,
)
REQUEST = re.compile(
    r"\bi (?:just |really |also |only )*(?:(?:need|want|would like|wanted|would love|am looking for|was hoping for|could use)"
    r" (?:you|your|to (?:know|ask|understand|see if|hear|find out|learn (?:how|more)|make sure)"
    r"|(?:some |a |any |more )?(?:help|advice|ideas?|tips?|suggestions?|recommendations?|information|example|explanation))"
    r"|have a (?:quick )?(?:question|request))\b"
    r"|^\W*(?:(?:can|could|would|will) you|please|kindly|any (?:ideas|tips|suggestions|recommendations|advice)|how (?:do|can|to)"
    r"|what(?:'s| is| are)|which|who|when (?:is|do)|where (?:is|do|can)|why|is there|are there|do you|does it)\b",
    re.IGNORECASE,
)
"""What asks the listener for something, with or without a question mark."""

SUBJECT_NEXT = re.compile(r"^(?:is|was|are|were|has|had|will|can|ing)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Features:
    """What is counted in a sentence. `topics`: words that carry one."""

    words: int
    topics: int
    first_person: bool
    second_person: bool
    number: bool
    time: bool
    name: bool


def bare(sentence: str, names: Collection[str] = ()) -> str:
    """The sentence without greetings, thanks, interjections and the listener's name before it."""
    text = sentence.strip()
    while True:
        shorter = OPENING.sub("", text)
        first = WORD.match(shorter)
        if first and first.group().casefold() in names and shorter[first.end() : first.end() + 1] in (",", "!", "."):
            shorter = shorter[first.end() :].lstrip(" ,.!–—-")
        if shorter == text:
            return text
        text = shorter


def features(sentence: str, names: Collection[str] = ()) -> Features:
    """The features of a sentence; `names`: of the speakers, lower case, who are no topic."""
    text = sentence.replace("’", "'")
    words = WORD.findall(text)
    low = [word.lower() for word in words]
    stems = [word.removesuffix("'s") for word in low]
    topics = {
        stem for stem in stems if stem not in EMPTY and stem not in names and (len(stem) > 2 or stem[0].isdigit())
    }
    capital = any(
        word[0].isupper() and stem not in EMPTY and stem not in names
        for word, stem in zip(words[1:], stems[1:], strict=True)
    )
    return Features(
        words=len(words),
        topics=len(topics),
        first_person=FIRST_PERSON.search(text) is not None,
        second_person=SECOND_PERSON.search(text) is not None,
        number=any(word[0].isdigit() or word in NUMBER_WORDS for word in low),
        time=any(stem in TIME_WORDS for stem in stems),
        name=capital,
    )


def worth(sentence: str, names: Collection[str] = ()) -> float:
    """Half a point for each topic word, name, number and time, one for the speaker; 1.5 less for the listener.

    The weights are set by hand: fitted ones did worse on conversations they had not seen.
    """
    found = features(sentence, names)
    points = min(found.topics, MAX_TOPIC_WORDS) * 0.5 + found.first_person
    return points + 0.5 * (found.number + found.time + found.name) - 1.5 * found.second_person


def is_question(sentence: str) -> bool:
    """Whether a sentence asks: it ends with a question mark, or begins as a question to the listener."""
    return sentence.rstrip(" \"'”’)*_").endswith(("?", "？", "؟"))


def is_statement(sentence: str, names: Collection[str] = ()) -> bool:
    """Whether a sentence states something: no question, order, supposition, irony or mere talk with the listener."""
    text = bare(sentence, names).replace("’", "'")
    if is_question(text) or SUPPOSED.match(text) or IRONY.search(sentence) or REQUEST.search(text):
        return False
    return not is_order(text) and not (CHAT.search(text) and features(text, names).topics < 4)


def is_order(text: str) -> bool:
    """Whether a bare sentence begins with an order ("Summarise this", "Keep going")."""
    words = WORD.findall(text.replace("’", "'"))
    if not words or words[0].lower() not in ORDER_VERBS:
        return False
    return len(words) == 1 or not SUBJECT_NEXT.match(words[1])


def is_worth_keeping(sentence: str, names: Collection[str] = ()) -> bool:
    """Whether a sentence states something that a reader would want later."""
    text = bare(sentence, names)
    enough = len(WORD.findall(text)) >= MIN_WORDS
    return enough and is_statement(sentence, names) and worth(text, names) >= KEPT_FROM
