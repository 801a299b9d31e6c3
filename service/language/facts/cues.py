"""Words at the edge of a sentence that are no part of its statement, and what they say about it.

"Oh, actually, I think I live ..." opens with an interjection, a correction and a doubt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# What people say before they come to the point. Behind each a comma or a blank.
_OPENINGS = r"""
hi|hello|hey|hiya|yo|howdy|greetings|good (?:morning|afternoon|evening|day)|dear assistant
there|everyone|everybody|folks|guys|team|assistant|claude|again
oh(?: my)?(?: god| gosh)?|ah+|wow|well|so|ok|okay|alright|all right|yeah
yes|yep|yup|sure|right|exactly|correct|absolutely
ha(?:ha)+|lol|omg|jus|so+|hm+|um+|uh+|er+|huh|aw+|yay|ugh|cool|great|nice|perfect|awesome|amazing|interesting|indeed|true|totally
brilliant(?=\W)|excellent(?=\W)|fantastic(?=\W)|wonderful(?=\W)|lovely(?=\W)|good(?=[,!.])
really(?= i\b)|honestly|frankly|basically|obviously|of course|clearly|anyways?
also|and|but|plus|then|besides|moreover|additionally
by the way|btw|fyi|for (?:your|the) (?:information|record|context)|for (?:context|reference|background)
just so you know
as you (?:know|may know|might know)|as i (?:said|mentioned|told you)(?: before| earlier)?
like i said|you know(?: what)?|you see
to be (?:honest|fair|clear|precise|exact|more precise)|tbh|in fact|fun fact
(?:quick|small|little|big|one) (?:update|note|thing)|long story short|to cut a long story short
update|note|fact|fwiw|imo|in my (?:humble |honest )?opinion|imho|if you ask me
personally|in my case|in general|sadly|unfortunately|luckily|fortunately
happily
thankfully|apparently|turns out|it turns out|the thing is|(?:good|bad|big|great|exciting|sad) news|guess what
speaking of which|about me|(?:a (?:little|bit) |some (?:background|info) )?about (?:me|myself)
let me (?:introduce myself|tell you about myself)
nice to meet you|pleased to meet you|first(?: of all|ly)?|second(?:ly)?
third(?:ly)?|finally|lastly|one more thing|another thing
thanks(?: so much| a lot| again)?|thank you(?: so much| very much| again)?|thx|please|no worries|no problem
(?:please |and |also )*(?:do )?(?:remember|note|keep in mind|bear in mind|don't forget|be aware)(?: that| this)?
(?:did|do) (?:you know|i mention|i tell you|i say)(?: that)?|i forgot to (?:mention|say|tell you)(?: that)?
i (?:already )?(?:told|mentioned to) you(?: already| before)?(?: that)?
i (?:have )?(?:already )?(?:mentioned|said)(?: before| earlier)?(?: that)?
i (?:just |also )?(?:should|want to|wanted to|would like to) (?:also )?(?:mention|say|add|tell you)(?: that)?
i (?:just |also )?(?:have to|need to|must|will|can) (?:also )?(?:mention|say|add|tell you|point out|admit)(?: that)?
i (?:just )?(?:found out|learned|realized|realised)(?: that)?(?= i\b)
i am (?:\w+ )?(?:happy|excited|proud|sad|sorry|pleased) to (?:say|announce|share|report|tell you|let you know)(?: that)?
i am (?:\w+ )?(?:glad|afraid|delighted|thrilled) to (?:say|announce|share|report|tell you|let you know)(?: that)?
you should know(?: that)?|let me (?:tell you|mention|add|say|explain)(?: that)?
it is (?:worth|important) (?:noting|knowing|to know|to note)(?: that)?
the (?:truth|fact|reason|problem|point) is(?: that)?|(?:all )?i can say is(?: that)?
i mean to say(?: that)?|i swear|trust me|believe me
"""
_CORRECTIONS = r"""
actually|no|nope|nah|sorry|my bad|my mistake|correction|small correction|wait|oops|whoops|hold on|hang on|scratch that
strike that|never mind|nevermind|i misspoke|i was wrong|i (?:mis)?typed|let me (?:correct|rephrase)(?: that| myself)?
i (?:really |actually )?(?:meant|mean)(?: to say)?(?: that)?|i should have said
what i meant (?:is|was)(?: that)?|on second thought|or rather
that(?: is|'s) (?:wrong|not right|not correct|incorrect|not true|outdated|old)(?: now| information)?
not anymore|i made a mistake
you(?: have|'ve)? got (?:that|it) wrong|you are (?:wrong|mistaken)|that was (?:wrong|a mistake|a typo)
to correct myself|i take that back|(?:i|we) (?:have )?(?:just )?changed (?:my|our) minds?
make that|make it(?= \d)|more like(?= \S{1,12}\W*$)|typo
"""
_DOUBTS = r"""
maybe|perhaps|probably|possibly|presumably|if i (?:remember|recall) (?:correctly|right|it right)
i am not (?:\w+ )?sure,? but
not sure,? but|as far as i (?:know|remember)|afaik|it seems(?: that| like)?|i have a feeling(?: that)?
"""


def _opening(block: str) -> re.Pattern[str]:
    options = "|".join(line for line in block.strip().splitlines())
    return re.compile(
        rf"(?:{options})(?:\s*[,:;.!…—–-]+\s*|\s+|$)(?:that\s+(?!is\b|was\b|has\b|would\b|will\b|one\b|makes?\b"
        rf"|helps?\b|sounds?\b))?",
        re.IGNORECASE,
    )


_OPENING, _CORRECTION, _DOUBT = _opening(_OPENINGS), _opening(_CORRECTIONS), _opening(_DOUBTS)
# "No sugar for me", "So far ...", "Right now", "Then again": the word belongs to what follows.
_BELONGS = re.compile(
    r"(?:no (?:kids|children|pets|siblings|allergies|car|partner)\b|no (?!i\b|we\b|my\b|it\b|that\b|the\b|in\b|on\b"
    r"|at\b|from\b"
    r"|wait|sorry|actually|not\b)\w+ (?!i\b)|so (?:far|many|much)|right (?:now"
    r"|after|before)|great \w+ing|sure \w+ing|nice \w+s\b"
    r"|first \w+ (?:is|was)|second \w+|third \w+|finally \w+ed|please \w+|then again|well[- ]\w+ed"
    r"|right[- ]handed|about \d"
    r"|(?:team|guys|folks|update|note|fact|cool|perfect|great|awesome|amazing|nice|interesting|clearly|remember)"
    r" (?:to|is|was|are|has|of|in)\b)",
    re.IGNORECASE,
)
_CORRECTING = re.compile(
    r"\bactually\b|\bi meant\b|\brather than what i said\b|\bnot\b[^,.;]{1,40}\bas i (?:said|told|wrote)\b"
    r"|,\s*not\s+[\w' -]{1,30}$|\bi was wrong\b|\bto correct\b|\binstead of what\b",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:maybe|perhaps|probably|possibly|might|presumably|i (?:think|guess|suppose|believe|assume)|not"
    r" (?:entirely |quite )?sure"
    r"|i am thinking (?:of|about)|considering|kind of|sort of)\b",
    re.IGNORECASE,
)
_CLOSINGS = re.compile(
    r"(?:[\s,]+(?:right|you know|though|lol|lmao|ngl|tbf|smh|fr|haha+|thanks(?: a lot| again)?|thank you|please|btw"
    r"|by the way|tbh"
    r"|fyi|actually|ok|okay"
    r"|to be honest|in fact|of course|for sure|as you know|i guess|i think|i believe|i suppose|imo|if that helps"
    r"|just so you know|if you (?:must|want to) know"
    r"|(?:nice|pleased|good) to meet you|not (?:\w+ )?sure(?: yet| though)?|no idea"
    r" (?:why|yet)|or (?:something|so|whatever)(?: like that)?|and stuff|i hope|hopefully|if possible|wish me luck"
    r"|fingers crossed|knock on wood|touch wood"
    r"|as i (?:said|mentioned)(?: before| earlier)?|by the by|xd|anyway|remember|correct|i mean|hehe|:\)|:d|;\)"
    r"|:\())+\s*$",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"(?:\s*,)?\s+(?:so|and)\s+(?:please |no |nothing |don't |do not |keep |avoid |what |can you |could you ).*$"
    r"|\s*,\s*(?:please )?(?:remind|help|tell|show|give|send|advise|suggest|recommend) (?:me|us)\b.*$",
    re.IGNORECASE,
)
_OWN = re.compile(r"(?:I|my|we|our)\b", re.IGNORECASE)
# "Clarinet, I mean", "4 pm, sorry", "740*": what is said again, right this time
_SAID_AGAIN = re.compile(
    r"[\s,.–—-]+(?:i mean|i meant|sorry|my bad|actually|rather|really|autocorrect|typo|oops)[\s,.!*]*$|(?<=\w)\*$"
    r"|^\*(?=\w)",
    re.IGNORECASE,
)
_AGAIN_WORDS = 5
_THEM = re.compile(
    r",\s*(?:just |already )?[a-z]+(?:ed|old|ave|ook|ew|ost) (?:them|it)(?: all)?(?: \w+)?$", re.IGNORECASE
)
_WE = re.compile(r",\s*(?:just )?(?:me and (?:my|our) [\w -]+|me and [A-Z]\w+|(?:my|our) [\w -]+ and (?:me|I))$")
_FILLER = re.compile(
    r"^((?:I|we|my \w+)(?: (?:am|have|do|is|was))?) (?:actually|basically|honestly|literally|obviously) (?=\w)", re.I
)
_PICTURES = re.compile(r"[\u2600-\u27bf\U0001f000-\U0001faff\ufe0f\u200d]+|[:;]-?[)(DP](?!\w)|<3")
_END = ' \t\n.!?,;:…-–—"”'


@dataclass(frozen=True, slots=True)
class Bare:
    """A clause without its opening and closing words. `greeted`: it opened with a greeting or an introduction."""

    text: str
    correction: bool
    unsure: bool
    greeted: bool


_HEADED = re.compile(r"^[A-Z]?[a-z]+(?: [a-z]+)?:\s+(?=(?:I|[Mm]y|[Ww]e|[Oo]ur)\b)")
_OPEN_DOUBT = re.compile(r"\b(?:maybe|perhaps|possibly)\b", re.IGNORECASE)
_OPINION = re.compile(
    r"^(?:in my (?:humble |honest )?opinion|imo|imho|if you ask me|to me|for me|personally)\b,?", re.IGNORECASE
)
_GREETING = re.compile(r"\s*(?:hi|hello|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening))\b", re.IGNORECASE)


def strip(clause: str) -> Bare:
    """Returns what a clause (contractions spelt out) states, and what the words around it say about that."""
    text = _HEADED.sub("", _PICTURES.sub(" ", re.sub(r"!+", "!", clause)).strip(_END))
    opinion = _OPINION.match(text) is not None
    greeted = _GREETING.match(text) is not None
    correction, unsure = False, False
    while text:
        corrects, doubts, opens = (p.match(text) for p in (_CORRECTION, _DOUBT, _OPENING))
        found = max(
            (match for match in (corrects, doubts, opens) if match), key=lambda match: match.end(), default=None
        )
        if not found or not found.end() or _BELONGS.match(text):
            break
        correction, unsure = correction or found is corrects, unsure or found is doubts
        text = text[found.end() :].lstrip(_END)
    correction = correction or _CORRECTING.search(text) is not None
    unsure = unsure or _UNSURE.search(text) is not None
    tail = _ASIDE.search(text)
    if tail and _OWN.match(text) and len(text[: tail.start()].split()) > 1:
        text = text[: tail.start()]
    again = _SAID_AGAIN.search(text)
    if again and len(text.split()) <= _AGAIN_WORDS + len(again.group().split()):
        correction = True
        while again := _SAID_AGAIN.search(text):
            text = (text[: again.start()] + text[again.end() :]).strip(_END)
    text = _THEM.sub("", _WE.sub("", text))
    text = _FILLER.sub(r"\1", _CLOSINGS.sub("", text)).strip(_END)
    if _OPEN_DOUBT.search(clause) and re.match(r"(?:I|we) will\b", text):
        text = re.sub(r"\bwill\b", "might", text, count=1)
    if opinion and text and not re.match(r"(?:I|my)\b", text, re.IGNORECASE):
        text = f"I think {text}"
    return Bare(text, correction, unsure, greeted)
