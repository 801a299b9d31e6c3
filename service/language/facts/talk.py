"""Recognises clauses that are not meant as statements.

Small talk, requests to the assistant, instructions to whoever reads the text and suppositions are not, whatever words
they use.
"""

from __future__ import annotations

import re
from functools import lru_cache

_INJECTION = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass|delete|erase|wipe|drop|remove|clear|purge|reset"
    r"|overwrite)\b.{0,40}\b(?:above|previous|prior|earlier|instructions?|rules|prompts?|memor(?:y|ies)|facts?"
    r"|everything|all|database|history|records?|context|guardrails)\b"
    r"|\b(?:system prompt|developer mode|jailbreak|you are now|act as|pretend|role-?play|respond only with"
    r"|output only|reveal your|new instructions?|as an ai|prompt injection)\b"
    r"|\b(?:imagine|suppose|assume|let us say|hypothetically|for the sake of argument|for example|e\.g\.|in"
    r" (?:this|the|my|our|his|her) (?:story|scenario|example|dialogue|novel|book|game|film|movie|scene|dream|play"
    r"|campaign|fanfic)|the (?:user|customer) (?:says|asks)|(?:lyrics?|song|poem|quote|chorus|saying|slogan"
    r"|headline) (?:go(?:es)?|says?|reads?|is)"
    r"|my (?:main |lead )?character\b)\b",
    re.IGNORECASE,
)
_ORDERED = re.compile(
    r"^\W*(?:(?:please|now|just|you (?:must|should|have to)|assistant)[\s,:]+)*(?:ignore|disregard|forget|override"
    r"|bypass|delete|erase|wipe|drop|remove|clear|purge|reset|overwrite)\b",
    re.IGNORECASE,
)
_SAYING = re.compile(
    r"^\W*(?:like|as) (?:(?:my|the|our) [\w' ]{2,30}|they|people|he|she) (?:used to say|always says?|says?|would say"
    r"|put it)\b",
    re.I,
)
_JOKE = re.compile(
    r"\w[^\w\s]+\s*(?:just kidding|jk|(?:only |just )?joking|kidding)\W*$|\w\s+(?:just kidding|jk)\W*$", re.IGNORECASE
)
_SAY = re.compile(
    r"^\W*(?:(?:ok|okay|so|and|but|now|well)\W+)*(?:let['’]?s (?:say|assume|pretend|imagine)|say|assuming|supposing"
    r"|what if|pretend|picture this)[\s,:]+(?:that )?(?:I|we|my|our)\b",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"^\W*(?:if|unless|whether|even if|as if|as though|if only|imagine|in case|let|were i|had i|should i"
    r"|when(?:ever)? you|as soon as)\b",
    re.IGNORECASE,
)
_WISHED = re.compile(
    r"\bI (?:wish|would (?:have|be|do|rather not say|say|guess|assume|imagine|expect|need|appreciate|use|go|try"
    r"|love (?:it|that|some|your|a hand|help|to (?:hear|know|see (?:your|some|what|how|it|more|an)|get your"
    r"|learn more)))|could (?:have|use|be)"
    r"|should have|might as well)\b",
    re.IGNORECASE,
)
_UNREAL = re.compile(
    r"\b(?:would|could|might|may)\b.* if (?:I|we|they|he|she|it|my|you|there)\b"
    r"|^(?:I|we) (?:was|were) (?:going|supposed|about|planning|meant) to\b",
    re.IGNORECASE,
)
_CHAT = re.compile(
    r"^I (?:\w+ly |just |also |really |still |so |do |don't |can't |can |will |would |am not |did not |didn't |have"
    r" not |haven't )*"
    r"(?:(?:see|know (?:that|what|how|it|you|this|why|if|who|where|when|right|about|the (?:feeling|answer))"
    r"|understand|agree|disagree|guess|suppose|think so|hope so|hope (?:that )?(?:you|this|it|all|everything)"
    r"|hear you|get it|got it|appreciate|apologi[sz]e|wonder|remember(?: that| it)?|forgot|doubt|bet|mean|swear"
    r"|think (?:that )?(?:you|it|that|this|there)|thought (?:that )?(?:you|it|that|this|I|we|my|our)|feel (?:you"
    r"|like you)|believe"
    r" (?:you|it|that$)|trust you|thank|beg|insist|tried (?:it|that|this)|try (?:it|that|this)"
    r"|look forward to (?:it|that|hearing)|let you know|get back to you|talk to you|be (?:right )?back|bet you"
    r"|ask(?:ed)? you|told you|say|said|mentioned)\b.{0,60}"
    r"|(?:know|remember|care|mind|wait|tell"
    r"|say|complain|explain|thank you enough|see why not|think of any"
    r"|want to (?:talk|think|go into|argue)\b.{0,20}))$"
    r"|^I (?:have|had|got|have got) (?:\w+ )?(?:a |an |one |some |another |two |few |quick )*(?:\w+"
    r" )?(?:questions?|idea|problem|issue|request|favou?r|error|bug|thought|feeling|suggestion|doubt|point|look"
    r"|no idea|trouble|minute|moment)\b"
    r"|^I (?:can't|cannot|couldn't) (?:find my \w+|believe|wait)\b.{0,40}$|^I (?:have|had) no (?:idea|clue|doubt"
    r"|problem|choice|preference)\b|^I was (?:just |only |really"
    r" )?(?:wondering|hoping|asking|curious)\b|^I am (?:just |only |really )?(?:asking|wondering|curious|trying"
    r" to (?:understand|figure|get|make|find out|see)|checking|testing|kidding|joking|saying|talking about"
    r"|referring to|looking (?:at|for (?:\w+ )*"
    r"(?:help|advice|suggestions?|recommendations?|recipes?|ideas?|tips?|information|info|something|someone"
    r"|anything|inspiration|answers?|way|feedback|explanation|example))|having (?:trouble|issues|problems|a hard"
    r" time|difficulty)|getting an? (?:\w+ )?error|not sure|sure|afraid (?:not|so)|(?:here|back|off|done|in)$|with"
    r" you|all ears|all set"
    r"|on it|in a hurry|out|at a loss|good to go|gonna go)\b(?! to (?:the |my )?[A-Z])",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"^I (?:\w+ly |just |also |really )*(?:(?:want|need|would (?:like|love|appreciate|prefer)|will need|am"
    r" hoping|expect|ask|wanted|hope) (?:for )?(?:you|your|the assistant|some (?:help|advice|ideas|tips"
    r"|information|suggestions)|help|advice|assistance|ideas|an? (?:(?!new\b|own\b)[\w-]+ ){0,3}?"
    r"(?:recipe|list|summary|plan for (?:today|tonight)|example|explanation|answer|poem|story|script|function"
    r"|recommendation|suggestion|hand|favou?r|second opinion|code|email template|paragraph|translation)|more"
    r" (?:information|details|help|ideas))\b"
    r"|(?:want|need|would (?:like|love)|wanted|am trying|am here|came here|am going|hope) to (?:know|ask|see"
    r" (?:how|what|if|whether|some)|understand|find out|figure out|get (?:some|your|advice|help|information)"
    r"|hear|discuss|talk (?:about|to you)|check (?:if|whether)|thank|mention|say|clarify|share|tell|vent|chat"
    r"|confirm|make sure|test (?:this|you|it)|be (?:clear|honest)))",
    re.IGNORECASE,
)
_DRAFTING = re.compile(
    r"^I (?:\w+ )?(?:want|need|would like|have|am trying|plan) to (?:write|draft|create|generate|compose|make|prepare)"
    r" (?:an?|some|the|my) (?:[\w-]+ ){0,2}(?:letter|email|essay|post|message|text|story|poem|resume|cv|report"
    r"|function|script|query|list|table|prompt|speech)\b",
    re.IGNORECASE,
)
_PASTED = re.compile(
    r"^\W*(?:(?:here(?:['’]s| is)|read|check|proofread|this is) )?(?:my|the|this|a|an) (?:[\w-]+ )?(?:essay|story|poem"
    r"|text|draft|e?-?mail|cv|resume|letter|message|article|paragraph|post|speech|script|caption|bio)\b[^:?!]{0,40}:\s",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"^(?:now )?we are (?:now |about |only )?(?:\d+|[a-z]+) (?:people|of us|employees|engineers)\b", re.I
)
_UNSAID = re.compile(
    r"^I (?:never|didn't|did not|haven't|have not) (?:say|said|mention|mentioned|mean|meant|claim|told)\b"
)


def ordered(text: str) -> bool:
    """Returns whether a text tells its reader what to do with what is known ("Delete all memories"): no fact at all."""
    return _ORDERED.match(text) is not None and _INJECTION.search(text) is not None


@lru_cache(maxsize=256)  # every clause of a sentence asks for its sentence
def supposed(sentence: str) -> bool:
    """Returns whether a whole sentence only supposes something, or gives orders to whoever reads the memories."""
    return (
        _INJECTION.search(sentence) is not None
        or _PASTED.match(sentence) is not None
        or _SAY.match(sentence) is not None
        or _SAYING.match(sentence) is not None
        or _JOKE.search(sentence) is not None
    )


def statement(text: str) -> bool:
    """Returns whether a bare first-person clause is meant as a statement, not as talk with the assistant."""
    if _INJECTION.search(text) or _SUPPOSED.match(text):
        return False
    return not (
        _DRAFTING.match(text)
        or _UNSAID.match(text)
        or _COUNTED.match(text)
        or _CHAT.match(text)
        or _REQUEST.match(text)
        or _WISHED.search(text)
        or _UNREAL.search(text)
        or not re.search(r"[^\W\d_]{2}", text)
    )
