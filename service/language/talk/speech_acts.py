"""What a message does: it asks, agrees, corrects, refers to another, thanks, or states something worth remembering.

Passages that are only greetings, thanks, questions or tasks for an assistant are left out, and so are orders about the
memory itself. Passages that somebody asks to remember, and standing rules, are kept.
"""

from __future__ import annotations

import re
from collections.abc import Set

from service.language import sentences, text_values
from service.language.common_words import FUNCTION_WORDS, word_set
from service.language.lexemes import PICTURE, lexemes
from service.language.temporal import tense
from service.language.temporal.calendar import Lean

MAX_CONTEXT_CHARS = 240
"""Maximum length of the text that a message refers to and that is put before it."""


SHORT_WORDS, ANSWER_WORDS = 8, 25
"""Words of a message that rarely says all by itself, and of one that answers a question."""

_WORD = re.compile(r"[^\W_]+(?:['\u2019.-][^\W_]+)*")
_QUESTION = re.compile(r"[?\uff1f\u061f]\W*$")
_AGREES = re.compile(
    r"(?i)^\W*(?:(?:yes|yep|yup|yeah|ya|ok|okay|k|sure|deal|agreed|correct|exactly|indeed|true|nope|nah|ja|nein"
    r"|doch|genau"
    r"|stimmt|oui|non|s\u00ed)\b|(?:fine|right|perfect|great|good|si|no|never|absolutely)(?=\W*$|[,.!;:])"
    r"|(?:please do|do (?:it|that|so)|sounds good|works|go ahead|of course|not (?:really|yet|at all))\b)"
)
_YES = re.compile(
    r"(?i)\W*(?:(?:yes|yep|yup|yeah|ok|okay|correct|exactly|indeed|true|right|that['\u2019]s (?:right|it)|absolutely"
    r"|ja|genau|stimmt|oui|s[i\u00ed]|thanks|thank you)\W*)+"
)
LEAD = re.compile(
    r"(?i)^\W*(?:(?:and|but|so|ok|okay|well|no|nope|oh|sorry|wait|actually|correction|update|news|change of plans?"
    r"|turns out|it turns out|by the way|btw|fyi|now|also|i meant|i mean|hmm)\b[\s,:.!\u2014-]*)+(?:that\b\s*)?"
)
"""What a statement may begin with that is no part of it."""

_CORRECTS = re.compile(
    r"(?i)^\W*(?:(?:no|nope|wait|oh|oops|sorry|hmm?|hm)\b[\s,.!:-]*)*(?:actually|correction|i (?:meant|mean"
    r"|was wrong|misread|misspoke)"
    r"|that(?:['\u2019]s| is| was) (?:wrong|not right|not true|a mistake|a lie)|scratch that|just kidding"
    r"|my mistake|make (?:it|that)|it(?:['\u2019]s| is) spel(?:led|t)|not \S+(?: \S+)?,? but)\b"
    r"|^\W*(?:no|nope|sorry|oops|wait)\b[\s,.!:-]+(?:it|that|the|my|he|she|i|we|they|this|on|at|not)\b"
    r"|^\W*(?:no|nope|sorry|oops|wait)\b[\s,.!:-]+\S+(?: \S+){0,2}\s*$"
    r"|[.!?\s](?:no,? sorry|sorry,? no|i mean(?:t)?)\b|, (?:actually|i misread|my mistake)\W*$"
)
"""How a correction begins, or announces itself."""

_CLAUSE_END = re.compile(r"[.,;:!?\u2014](?=\s|$)")
_CUE = re.compile(
    r"(?i)\b(?:(?:i )?(?:meant?|misread)|actually|correction|spel(?:led|t)|make|sorry|oops|wait|oh|nope|no)\b"
)
_OPENING = re.compile(r"(?i)^\W*(?:(?:and|so|also|but)\s+)?(?:(i|we)|my|our)\b")

_HANGS = re.compile(
    r"(?i)^\W*(?:(?:and|but|so|also|then|well|yes|no|ok|okay)\b[\s,]*)*"
    r"(?:he|she|they|him|her|them|his|hers|their|it(?!['\u2019]?s? (?:rain|snow|seems|looks|takes|took))|its|that|those"
    r"|these)(?:['\u2019](?:s|re|ll|d|ve))?\b"  # the "it" of weather and impressions names nothing
)
_VERB = r"(?:am|are|is|was|were|do|does|did|has|have|had|can|will)"
_POINTS_BACK = re.compile(
    r"(?i)\bthere\b(?! (?:is|are|was|were)\b|['\u2019]s)"
    rf"|\b(?:it|them|(?:{_VERB}|\w+n['\u2019]t)(?: (?:too|either))?)\W*$|^\W*(?:so|nor|neither) {_VERB}\b"
)
_PERSON = re.compile(r"(?i)\b(?:he|she|him|her|his|hers)\b")


def is_fragment(message: str) -> bool:
    """Whether a message has few words and does not begin with its speaker ("I", "we")."""
    return 0 < len(_WORD.findall(message)) <= SHORT_WORDS and not _OPENING.match(message)


def replies(message: str) -> bool:
    """Whether a message agrees, denies or takes something back."""
    return agrees(message) or corrects(message)


def agrees(message: str) -> bool:
    """Whether a message begins as a yes or a no."""
    return _AGREES.match(message) is not None


def only_agrees(message: str) -> bool:
    """Whether a message is a yes and nothing else."""
    return _YES.fullmatch(message) is not None


def names_nobody(message: str) -> bool:
    """Whether a message speaks of a person whom it does not name: "He owes me 60 euros." """
    match = _PERSON.search(message)
    return match is not None and not text_values.names(f"x {message[: match.start()]}")


def corrects(message: str) -> bool:
    """Whether a message takes back something that was said before."""
    return _CORRECTS.search(message) is not None


def find_topics(correction: str) -> list[tuple[text_values.Value, str]]:
    """The values that a correction gives, each with the words that name what it is of: "my rent is" of "sorry, my rent
    is 900 euros". With a number these are also the words for what is counted."""
    topics = []
    for value in text_values.find(correction) or text_values.names(correction):
        clauses = (_CUE.sub("", clause) for clause in reversed(_CLAUSE_END.split(correction[: value.start])))
        counted = _CLAUSE_END.split(correction[value.end :])[0] if value.kind == "number" else ""
        topics.append((value, next(filter(_WORD.search, clauses), "") + counted))
    return topics


def is_about(topic: str, statement: str) -> bool:
    """Whether a statement names all that the topic names, and begins with "I" or "my" where the topic does."""
    one, other = _OPENING.match(topic), _OPENING.match(statement)
    is_same = one is None or (other is not None and one.lastindex == other.lastindex)
    return is_same and frozenset(lexemes(topic)) <= frozenset(lexemes(statement))


def refers(message: str) -> bool:
    """Whether a message begins with a pronoun for somebody or something that it does not name."""
    return _HANGS.match(message) is not None


def depends(sentence: str) -> bool:
    """Whether a sentence makes no sense without the one before it, which it points to or corrects."""
    return refers(sentence) or names_nobody(sentence) or corrects(sentence) or _POINTS_BACK.search(sentence) is not None


def answers(message: str, before: str) -> bool:
    """Whether a message answers a question that `before` ends with."""
    return _QUESTION.search(before) is not None and 0 < len(_WORD.findall(message)) <= ANSWER_WORDS


def find_referent(before: str) -> tuple[int, int]:
    """The span of `before` that a reply refers to: its last question, with the sentence before where that question
    names too little, else its beginning."""
    spans = sentences.split(before)
    asking = [index for index, (start, end) in enumerate(spans) if _QUESTION.search(before[start:end])]
    if asking:
        last = asking[-1]
        start, end = spans[last]
        earlier = spans[max(0, last - 1)][0]
        brief = len(_WORD.findall(before[start:end])) <= SHORT_WORDS and end - earlier <= MAX_CONTEXT_CHARS
        return earlier if brief else start, end
    start, end = spans[0]
    return start, max((stop for _, stop in spans if stop - start <= MAX_CONTEXT_CHARS), default=end)


_EMPTY = FUNCTION_WORDS | word_set("""
    good morning evening afternoon night thank thx cheers welcome great nice cool awesome amazing wonderful lovely
    perfect brilliant fine sure right exactly congrats congratulations haha lol hmm huh yay bye goodbye see worries
    problem glad happy hope sounds look looks know think guess mean go going fun interesting true absolutely definitely
    totally course poor thing way hallo danke bitte bonjour merci salut hola gracias ciao grazie believe luck care take
    day weekend question wonder
""")
"""Words such that a sentence of only these says nothing."""

_ASKS = re.compile(
    rf"(?i)(?!\W*{PICTURE}\W*(?:is|are|was|were)\b)"  # a picture is their subject
    r"^\W*(?:(?:so|and|but|ok|okay|btw|by the way|well|hey|hi|also)[\s,]+)*(?:"
    r"(?:what|where|when|who|whom|whose|which|why|how)(?:['\u2019]s| (?:is|are|was|were|do|does|did|can|could"
    r"|should|would|will|has|have|many|much|long|often|far|old|about|come|to))\b"
    r"|(?:is|are|do|does|did|can|could|would|will|should|has|have|may|shall) (?:you|i|we|he|she|it|they|there|this|that"
    r"|the|my|your|our)\b|any (?:ideas?|tips?|suggestions?|recommendations?|advice|thoughts)\b"
    r"|(?:i (?:was )?wonder|i(?:'d| would) like to know|do you know)\b)"
)
_TASK = re.compile(
    r"(?i)^\W*(?:(?:so|and|ok|okay|now|then|hey|also|great|thanks|please|kindly|just|(?:can|could|would|will) you"
    r"|i (?:want|need|would like|['\u2019]d like) you to|help me(?: to)?|let['\u2019]s)[\s,.!]+)*"
    r"(?:write|draft|translate|summari[sz]e|explain|show|list|tell|give|find|search|look up|generate|create|compose"
    r"|compute|calculate|convert|suggest|recommend|compare|rewrite|rephrase|proofread|describe|continue|help|brainstorm"
    r"|imagine|pretend|act as|role-?play|start|stop|go on|try again)\b"
)
_STANDING = re.compile(
    r"(?i)\b(?:never|always|every|each|any time|whenever|from now on|in (?:the )?future|by default|only|unless"
    r"|before|after|do not|don['\u2019]t|in (?:your|all) (?:answers?|repl\w+|responses?))\b"
)
_TO_REMEMBER = re.compile(
    r"(?i)^\W*(?:(?:please|can you|could you|would you(?: mind)?|will you|also|i (?:want|need) you to|you should)\s+)*"
    r"(?:remember(?:ing)?(?! (?:who|what|when|where|why|how)\b)|keep(?:ing)? in mind|bear(?:ing)? in mind|not(?:e|ing)"
    r"|sav(?:e|ing)|stor(?:e|ing)|don['\u2019]t forget|make a note|know that)\b"
)
_ABOUT_MEMORY = re.compile(
    r"(?i)\b(?:new instructions?|system prompt|developer mode|jailbreak)\b|\b(?:ignore|disregard|overwrite|purge"
    r"|reset|delete|erase|wipe)\b"
    r".{0,30}\b(?:memor(?:y|ies)|facts|instructions|prompts?)\b"
)

_THANKS = re.compile(
    r"(?i)^\W*(?:(?:ok|great|perfect|cool|hey|and|so)\W+)*(?:thank|thanks|thx|cheers|danke|merci|gracias"
    r"|that['\u2019]s (?:a )?(?:great|good|nice|perfect))\b"
)
MAX_THANKS = 8
"""The most words of a sentence of thanks or praise that says nothing else."""

_DOUBT = re.compile(
    r"(?i)\b(?:maybe|perhaps|might|could be|probably|possibly|i (?:think|guess|suppose|hope)|not sure|considering"
    r"|hopefully|thinking (?:of|about))\b"
)
CERTAIN, UNCERTAIN = 0.95, 0.5
"""The confidence in statements made outright, and in those made with a doubt."""

_ADVICE = re.compile(
    r"(?i)\?|\b(?:you (?:could|should|can|might|may want)|i(?:['\u2019]d| would)? (?:recommend|suggest|advise)|try"
    r"|i (?:can|could)|consider|shall (?:i|we)|would you|let me know|if you|for example|here(?:['\u2019]s| is| are))\b"
)
_OWN_ACT = re.compile(r"(?i)\b(?:I|we)(?:['\u2019](?:ve|ll)| have| will| (?P<did>\w+))\b")
_NAMED = re.compile(r"\w*\d\w*|(?<=[a-z,;] )[A-Z]\w+")
MAX_REPORT_CHARS = 300
"""A longer text of an assistant is an answer, which search finds as a turn."""

MIN_SHARED = 2
"""The least number of words that an assistant's report shares with the kept part of the talk."""


def is_worth_keeping(passage: str, *, answers_something: bool) -> bool:
    """Whether a passage of a person is kept. `answers_something`: it refers to what was said before it."""
    if is_about_the_memory(passage):
        return False
    spoken = [passage[start:end] for start, end in sentences.split(passage)]
    return any(_states(sentence) or (answers_something and _replies_briefly(sentence)) for sentence in spoken)


def _replies_briefly(sentence: str) -> bool:
    return not asks(sentence) and not _only_thanks(sentence) and (is_fragment(sentence) or replies(sentence))


def _only_thanks(sentence: str) -> bool:
    return _THANKS.match(sentence) is not None and len(_WORD.findall(sentence)) <= MAX_THANKS


def _states(sentence: str) -> bool:
    if _TO_REMEMBER.match(sentence):
        return len(content_words(sentence)) > 1
    if not content_words(sentence) or _only_thanks(sentence) or asks(sentence):
        return False
    return not _TASK.match(sentence) or _STANDING.search(sentence) is not None


def is_about_the_memory(text: str) -> bool:
    """Whether a text instructs the keeper of the memory, which is not a fact."""
    return _ABOUT_MEMORY.search(text) is not None


def asks(sentence: str) -> bool:
    """Whether a sentence asks: by its mark, or by how it begins."""
    return _QUESTION.search(sentence) is not None or _ASKS.match(sentence) is not None


def is_report(passage: str, kept: Set[str]) -> bool:
    """Whether an assistant says what it did or will do, or gives a name or figure of something that was talked about.
    `kept`: the content words of the kept part of the talk; names and figures among them are not new."""
    names = {word.casefold() for word in _NAMED.findall(passage)}
    if not names or len(passage) > MAX_REPORT_CHARS or _ADVICE.search(passage):
        return False
    acts = (act["did"] for act in _OWN_ACT.finditer(passage.lower()))
    if any(did is None or Lean.PAST in tense.verbs(did) for did in acts):
        return True
    return not names <= kept and len(content_words(passage) & kept) >= MIN_SHARED


def content_words(text: str) -> frozenset[str]:
    """The words that carry a topic, in lower case."""
    words = (word.casefold().replace("\u2019", "'") for word in _WORD.findall(text))
    return frozenset(word for word in words if word not in _EMPTY)


def rate_confidence(passage: str) -> float:
    """The confidence in a text, 0..1, lower for words of doubt."""
    return UNCERTAIN if _DOUBT.search(passage) else CERTAIN
