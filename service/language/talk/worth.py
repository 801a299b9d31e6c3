"""Whether a sentence is worth remembering, by what it tells of and not by its grammar.

Counted: words that carry a topic, the speaker himself, names, numbers and times; talk about the listener counts
against it. Questions, orders, pleasantries and suppositions are not kept, whatever they tell of.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from service.language.common_words import is_common
from service.language.talk.words import EMPTY, EVALUATING, NUMBER_WORDS, ORDER_VERBS, TIME_WORDS

MENTIONED_FROM, KEPT_FROM, PLAIN_FROM, ALONE_FROM = 1.0, 1.5, 2.0, 3.5
"""Worth from which a sentence of people's talk is kept behind another one; from which one is a fact: by a user without
a name ("I teach physics"), of people without praise or mood, and of people with it."""

MIN_WORDS = 2
MAX_TOPIC_WORDS = 8

MAX_STATE_WORDS = 6
"""A short statement about its speaker is a state ("I have a dog")."""

WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
OPENING = re.compile(
    r"^\W*(?:(?:(?:(?:can|could) you |please |also )*(?:remember|keep in mind|bear in mind|don['’]t forget"
    r"|note(?: to self)?"
    r"|for the record)(?: (?:this|that)\b|(?=\W*:))"
    r"|(?:thanks?(?: you)?(?: so much| a lot| again)?|thx|wow|yeah|yes|yep|yup|hey|hi|hello|oh|ah|aww?|ok(?:ay)?"
    r"|well|btw"
    r"|by the way|actually|anyway|honestly|also|fyi|haha|lol|hmm+|congrats|congratulations|please note"
    r"|guess (?:what|who(?= \w))"
    r"|you won't believe (?:it|this|what happened)|good (?:morning|evening|afternoon)"
    r"|(?:no|nope|nah|so|man|sure|cool|nice|great|awesome|right|exactly|definitely|absolutely|totally|of course|dear"
    r"|p\.?s\.?"
    r"|note|update)(?=\s*[^\w\s'’])))\b(?: (?:there|all|everyone|guys|team))?(?=\W|$)[\s,.!:;…–—-]*)+",
    re.IGNORECASE,
)
UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Letters of scripts that put no blanks between words; two of them count as one."""

FIRST_PERSON = re.compile(r"\b(?:I|I'[a-z]+|im|ive|id|me|my|mine|myself|we|we'[a-z]+|our|ours)\b", re.IGNORECASE)
INTENDS = re.compile(
    r"\W*(?:I (?:think|guess|believe) )?I(?: \w+ly)?(?:['’]ll| will| would|['’]d| like)\b", re.IGNORECASE
)
"""What somebody chooses or means to do."""

OF_SPEAKER = re.compile(r"\W*(?:(?:and|but|so|plus|also)\W+)?(?:I|I'\w+|im|ive|my|we|our)\b", re.IGNORECASE)
SPEAKER_DROPPED = re.compile(
    r"\W*(?:just|been|got|went|had|lost|took|bought|sold|quit|moved|joined|met|started|finished|finally|gonna|wanna"
    r"|gotta"
    r"|(?!(?:some|any|no|every)thing\b|morning|evening|spring|during|according)\w+ing"
    r"(?!\b[^.!?]*\b(?:is|are|was|were|can|has|makes?|made|helps?|brings?)\b))\b",
    re.IGNORECASE,
)
"""A sentence without its "I": "Got a tattoo", "Working on a sequel"; not "Networking is great"."""

POINTING = re.compile(r"\b(?:it|that|this|them|these|those|there|they)\b", re.IGNORECASE)
SECOND_PERSON = re.compile(r"\b(?:you|your|yours|you'[a-z]+|yourself|u|ur|ya|y'all)\b", re.IGNORECASE)
YOU = re.compile(r"\b(?:you|you'[a-z]+|yourself|u|ya|y'all)\b", re.IGNORECASE)
TO_LISTENER = re.compile(r"[,;]\s*(?P<said>(?:\S+ ){0,6}\S+?)[\s.!)]*$")
"""The last few words behind a comma: "as you can imagine"."""

MAX_TAIL_CHARS = 120
"""Where they are looked for; from each comma of a long text the search would read to its end."""

CHAT = re.compile(
    r"\b(?:can't wait|cannot wait|let me know|talk (?:to you )?(?:soon|later)|take care|good luck|no (?:worries"
    r"|problem)"
    r"|you're welcome|my pleasure|since (?:we|our) last|since we (?:chatted|talked|spoke|met)|long time no"
    r"|i appreciate|thank you|thanks for|i (?:\S+ )?(?:agree|get it"
    r"|understand|see what)|i (?:wonder|was wondering|have (?:a|one|another|some) questions?|forgot to (?:ask|mention))"
    r"|glad (?:to|you|that)|(?:hope|know|bet|think|sure|believe|wish|hear|see|love (?:how|that|your)|proud of|happy for"
    r"|excited for|sorry (?:to hear|about|for)|rooting for|here for) (?:that )?(?:you|your|you're|to hear|it))\b",
    re.IGNORECASE,
)
ASSUMED = re.compile(r"^\W*(?:I think|I guess|I believe|I'm pretty sure|pretty sure)\b", re.IGNORECASE)
"""What states something with a doubt, even before a question mark."""

SUPPOSED = re.compile(
    r"^\W*(?:(?:and|but|so|ok|okay|well) )?(?:suppose|supposing|imagine|assume|assuming|pretend|what if"
    r"|let's say"
    r"|say(?:,| I| we| you)|as if|if only|picture this|hypothetically|in theory|for example|e\.g\.|had i|were i"
    r"|should i"
    r"|should you|if i were|if i was|if i had|if\b(?=[^.!?]*\b(?:\w+'d|would|could|wouldnt|id|youd|hed|theyd)\b)"
    r"|(?:i|we|he|she|they)(?: would|'?d)(?! (?:like|love|prefer|rather|have)\b)[^.!?]*\bif (?!you\b|that\b))\b",
    re.IGNORECASE,
)
TO_THE_MEMORY = re.compile(
    r"\b(?:new instructions?|system prompt|developer (?:note|mode)|memory system|jailbreak)\b"
    r"|\b(?:ignore|disregard|delete|erase|wipe|overwrite|purge|reset|store|record|save)\b.{0,30}\b(?:memor(?:y|ies)|facts"
    r"|instructions|prompts?|that the user)\b",
    re.IGNORECASE,
)
"""What tells whoever keeps the memory what to do with it is no fact."""

IRONY = re.compile(
    r"^\W*(?:(?:lol|haha|lmao)\W+)?(?:yeah,? right|sure,? (?:and|because)|oh,? (?:sure|great|brilliant|joy)|as if"
    r"|right,? and)\b|(?:\s/s"
    r"|just kidding"
    r"|\bjk\b|i'm kidding|i'm joking|not really)\W*$",
    re.IGNORECASE,
)
REQUEST = re.compile(
    r"\bi (?:just |really |also |only )*(?:(?:need|want|would like|wanted|would love|am looking for|was hoping for"
    r"|could use)"
    r" (?:you|your|to (?:know|ask|understand|see if|hear|find out|learn (?:how|more)|make sure)"
    r"|(?:some |a |any |more )?(?:help|advice|ideas?|tips?|suggestions?|recommendations?|information|example"
    r"|explanation))"
    r"|have a (?:quick )?(?:question|request))\b"
    r"|^\W*(?:(?:can|could|would|will) you|please|kindly|any (?:ideas|tips|suggestions|recommendations|advice)"
    r"|how (?:do|can|to)"
    r"|what(?:'s| is| are)|which|who|when (?:is|do)|where (?:is|do|can)|why|is there|are there|do you|does it)\b",
    re.IGNORECASE,
)
"""What asks the listener for something, with or without a question mark."""

TOGETHER = re.compile(r"\W*let['’]?s (?!see|say|talk|start|begin)\w", re.IGNORECASE)
"""What speaker and listener are to do together; "let's see" is no plan."""

CONDITION = re.compile(r"^\W*(?:and |but |so )?(?:if|unless|in case|provided|as long as)\b", re.IGNORECASE)
GENERAL = re.compile(
    r"\b(?:is|are|'s|'re) (?:\w+ly |so |super |very |the |such )*(?:key|important|powerful|crucial|essential|priceless"
    r"|everything)\b|\b(?:we|people|everyone|one|it|life|you) can\b|\bwe (?:all|should|must|need)\b"
    r"|\blife(?:'s| is| has)\b",
    re.IGNORECASE,
)
"""Wisdoms, which are true of everybody."""

MOOD = re.compile(
    r"\b(?:feel|feels|feeling|felt|glad|happy|hopeful|optimistic|excited|thankful|grateful|proud|joy|lucky|love"
    r"|loved|loving|looking forward|appreciate|cherish|stoked|thrilled|inspired|inspiring)\b",
    re.IGNORECASE,
)
MIN_TOPICS_BESIDE_MOOD = 3

NAME_FIRST = re.compile(
    r"\W*(?!\w+ing\b)[A-Z][a-z]+(?:'s)? (?:is|was|has|had|does|did|doesn't|didn't|isn't|wasn't|will|won't|can|can't"
    r"|lives|works"
    r"|owns|likes"
    r"|leads|wants|needs|says|said|told|moved|got)\b"
)
"""A name before a verb at the beginning, where every word has a capital."""

NAMING = re.compile(r"\W*(?i:call me) [A-Z]\w+\W*$")
"""No order but a name."""

SUBJECT_NEXT = re.compile(r"^(?:is|was|are|were|has|had|will|can|of)\b", re.IGNORECASE)
"""Behind a word that is no order here: "Change of plan", "Help is on the way"."""


@dataclass(frozen=True, slots=True)
class SentenceFeatures:
    """What is counted in a sentence. `topics`: words that carry one; `rare`: one of them is no everyday word."""

    words: int
    topics: int
    first_person: bool
    second_person: bool
    rare: bool
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


def features(sentence: str, names: Collection[str] = ()) -> SentenceFeatures:
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
    unspaced = len(UNSPACED.findall(text)) // 2
    return SentenceFeatures(
        words=len(words) + unspaced,
        topics=len(topics) + unspaced,
        first_person=FIRST_PERSON.search(text) is not None,
        second_person=SECOND_PERSON.search(text) is not None,
        rare=any(len(topic) > 3 and topic[0].isalpha() and not is_common(topic) for topic in topics),
        number=any(word[0].isdigit() or word in NUMBER_WORDS for word in low),
        time=any(stem in TIME_WORDS for stem in stems),
        name=capital
        or (
            len(words) > 1
            and NAME_FIRST.match(text) is not None
            and not is_common(stems[0])
            and stems[0] not in EMPTY | set(names)
        ),
    )


def worth(sentence: str, names: Collection[str] = ()) -> float:
    """Half a point for each topic word, and for a rare one, a name, a number, a time, a short statement of
    the speaker; one for the speaker. 2 less for the listener, one less for something of his at a time ("Your technician
    came on Friday") or for a condition, 1.5 for a wisdom.

    The weights are set by hand: fitted ones did worse on conversations they had not seen.
    """
    sentence = told(sentence)
    found = features(sentence, names)
    points = min(found.topics, MAX_TOPIC_WORDS) + found.rare + found.number + found.time + found.name
    concerns_listener = found.second_person * (1.0 if found.time and not YOU.search(sentence) else 2.0)
    general = GENERAL.search(sentence) is not None
    state = is_state(sentence, found)
    condition = CONDITION.match(sentence) is not None
    speaker = found.first_person or SPEAKER_DROPPED.match(sentence) is not None
    return 0.5 * (points + state) - condition + speaker - concerns_listener - 1.5 * general


def told(sentence: str) -> str:
    """The sentence without a few last words that are only for the listener ("..., you know", "..., if you agree")."""
    tail = TO_LISTENER.search(sentence, max(0, len(sentence) - MAX_TAIL_CHARS))
    if tail is None or not YOU.search(tail["said"]) or FIRST_PERSON.search(tail["said"]):
        return sentence
    return sentence[: tail.start()]


def is_faint(text: str, names: Collection[str] = ()) -> bool:
    """Whether a bare sentence of people's talk says too little by itself: it is for the listener or true of everybody;
    or it has no name, number or time, colours what it tells or points at something, and tells little."""
    text = told(text)
    found = features(text, names)
    if found.second_person or GENERAL.search(text):
        return True
    if found.name or found.number or found.time or is_plain(text, names):
        return False
    mood = MOOD.search(text) is not None and found.topics < MIN_TOPICS_BESIDE_MOOD
    of_speaker = OF_SPEAKER.match(text) or SPEAKER_DROPPED.match(text)
    return mood or not of_speaker or worth(text, names) < ALONE_FROM


def is_plain(text: str, names: Collection[str] = ()) -> bool:
    """Whether a sentence tells of its speaker or of the world without a word of mood, praise or pointing."""
    subject = OF_SPEAKER.match(text) or not FIRST_PERSON.search(text)
    coloured = MOOD.search(text) or POINTING.search(text) or any(w.lower() in EVALUATING for w in WORD.findall(text))
    return bool(subject) and not coloured and worth(text, names) >= PLAIN_FROM


def is_state(text: str, found: SentenceFeatures) -> bool:
    """Whether a sentence is a short statement about its speaker ("I have a dog")."""
    brief = found.topics > 0 and found.words <= MAX_STATE_WORDS
    return brief and OF_SPEAKER.match(text) is not None and POINTING.search(text) is None


def is_own(text: str) -> bool:
    """Whether a text tells of its speaker, and not of what he feels about the listener."""
    own = FIRST_PERSON.search(text) or SPEAKER_DROPPED.match(text)
    return own is not None and not GENERAL.search(text) and not (MOOD.search(text) and SECOND_PERSON.search(text))


def is_question(sentence: str) -> bool:
    """Whether a sentence asks: it ends with a question mark, and does not merely state with a doubt."""
    if ASSUMED.match(sentence):
        return False
    return sentence.rstrip(" \"'”’)*_").endswith(("?", "？", "؟"))


def is_statement(sentence: str, names: Collection[str] = ()) -> bool:
    """Whether a sentence states something: no question, order, supposition, irony or mere talk with the listener."""
    text = bare(sentence, names).replace("’", "'")
    if is_question(text) or SUPPOSED.match(text) or IRONY.search(sentence) or REQUEST.search(text):
        return False
    return (
        not is_order(text)
        and not TO_THE_MEMORY.search(text)
        and not (CHAT.search(sentence) and features(text, names).topics < 3)
    )


def is_order(text: str) -> bool:
    """Whether a bare sentence begins with an order ("Summarise this", "Keep going"); an appointment is none."""
    words = WORD.findall(text.replace("’", "'"))
    if not words or words[0].lower() not in ORDER_VERBS or NAMING.match(text) or is_appointment(text):
        return False
    return len(words) == 1 or words[0].lower() == "think" or not SUBJECT_NEXT.match(words[1])


def is_appointment(text: str) -> bool:
    """Whether a bare sentence proposes to do something together at a time ("Let's have lunch on Monday")."""
    return TOGETHER.match(text) is not None and features(text).time


def is_worth_keeping(sentence: str, names: Collection[str] = (), *, least: float = KEPT_FROM) -> bool:
    """Whether a sentence states something of this worth at least."""
    text = bare(sentence, names)
    enough = features(text, names).words >= MIN_WORDS
    return enough and is_statement(sentence, names) and worth(text, names) >= least
