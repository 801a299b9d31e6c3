"""Extracts the facts of a conversation about its user.

Turn by turn: the user's clauses, and the assistant's claims where the user confirms them. What is said later corrects
what was said before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from service.language.facts import (
    amend,
    answers,
    clauses,
    cues,
    implied,
    person,
    phases,
    pronouns,
    reading,
    rephrasing,
    spelling,
    statement,
    talk,
    tongue,
    whereabouts,
    wishes,
)
from service.language.facts.clauses import Clause
from service.language.facts.conversation_state import ConversationState
from service.language.facts.fact import Certainty, Message, StatedFact
from service.language.facts.reading import Heard

MAX_FACTS = 200  # of one conversation
MAX_ASKED_CHARS = 4_000  # of an assistant's turn, from its end: what the user answers stands there
_SPEAKERS = frozenset({"user", "human", "customer", "client"})
_ASSISTANTS = frozenset({"assistant", "ai", "model", "bot"})
_YOU = ((re.compile(r"\b[Yy]our\b"), "my"), (re.compile(r"\b[Yy]ou\b"), "I"))
# "We have five, sorry, six"; "she is called Momo, I mean Mimi"
_MEANT = re.compile(
    r"^(?P<said>.+?)(?:\s+[–—-]+\s+|,\s*|[.!]\s+)"
    r"(?:(?:oops|whoops|sorry|no|wait|oh|er|um|well)[,\s]+)*(?:I (?:really )?mean(?:t)?|no,? wait|wait,? no"
    r"|wait(?=,)|sorry"
    r"|or rather|(?:actually )?make (?:that|it)|scratch that|correction|no)[\s,:]+(?P<meant>(?!\s|autocorrect"
    r"|typo)[^,]{1,40})$",
    re.IGNORECASE,
)
_SHORT = 5  # words: what is longer states something by itself


def extract(messages: Sequence[Message]) -> tuple[StatedFact, ...]:
    """Returns the facts of a conversation in order, each once, none that a later one of it ends."""
    names = sorted({m.name for m in messages if m.role.lower() in _SPEAKERS and m.name})
    told = ConversationState()
    for number, message in enumerate(messages):
        role = message.role.lower()
        if role in _ASSISTANTS:
            told.asked = message.text[-MAX_ASKED_CHARS:]
            told.about = _asked_about(told.asked) or told.about
            told.place = whereabouts.named(told.asked) or told.place
        if role in _SPEAKERS:
            speaker = message.name if len(names) > 1 and message.name else "User"
            told.hearer = next(name for name in names if name != speaker) if len(names) == 2 else "the assistant"
            _of_turn(message.text, number, speaker, told)
            told.asked = ""
        if len(told.facts) >= MAX_FACTS:
            break
    return tuple(_new_first(told.facts)[:MAX_FACTS])


def _new_first(facts: list[StatedFact]) -> list[StatedFact]:
    """Puts "started at Initech" before "left Acme" of the same turn: the new job is what becomes of the old memory."""
    ordered: list[StatedFact] = []
    for fact in facts:
        last = ordered[-1] if ordered else None
        if last and fact.slot in ("job", "home") and (last.subject, last.slot, last.message) == (
            fact.subject, fact.slot, fact.message
        ) and not phases.side(last).stands and phases.side(fact).stands:  # fmt: skip
            ordered.insert(-1, fact)
        else:
            ordered.append(fact)
    return ordered


def _asked_about(asked: str) -> pronouns.About | None:
    """Whom the assistant spoke of: "your dog" is "my dog" to the one who answers."""
    for pattern, instead in _YOU:
        asked = pattern.sub(instead, asked)
    return pronouns.spoken_of(asked)


def _of_turn(text: str, number: int, speaker: str, told: ConversationState) -> None:
    told.written = spelling.mend(clauses.quiet(text))
    mended = told.written.text
    answered = bool(told.asked) and tongue.is_english(mended) and _answer(mended, number, speaker, told)
    corrects, struck = False, None
    for clause in islice(clauses.of_message(mended), int(answered), None):
        clause = _in_english(clause)
        if clause.text and not talk.supposed(clause.sentence):
            struck = told.facts[-1] if told.facts and _STRUCK.match(clause.text) else struck
            corrects = _of_clause(clause, number, speaker, told, corrects=corrects)

    told.facts = [fact for fact in told.facts if fact is not struck]  # nothing that followed put another in its place


_STRUCK = re.compile(
    r"\W*(?:(?:oh|no|wait|actually|sorry|hmm|ok|well)[\s,]+)*(?:scratch|strike|forget"
    r"|ignore) that\b",
    re.IGNORECASE,
)


def _in_english(clause: Clause) -> Clause:
    """The clause up to where it goes on in another language; empty where it begins in one."""
    if not tongue.is_english(clause.sentence):
        return replace(clause, text="")
    parts = clause.text.split(",")
    first = next((at for at, part in enumerate(parts) if not tongue.is_english(part)), len(parts))
    kept = ",".join(parts[:first])
    return replace(clause, text=kept, end=clause.start + len(kept))


def _answer(reply: str, number: int, speaker: str, told: ConversationState) -> bool:
    """Takes in what the reply says through the question; returns whether its first clause is spent with that."""
    asked = clauses.quiet(told.asked)
    if _set_straight(asked, reply, number, speaker, told) or _but_for(asked, reply, number, speaker, told):
        return True
    spent = False
    for answer in answers.read(asked, reply):
        for clause in clauses.of_sentence(answer.text):
            text = f"{clause.subject} {clause.text}".strip()
            found = list(reading.facts(_heard(text, speaker, "explicit" if answer.told else "implied", told)))
            told.take(found, number, 0, len(reply))
            told.introduce(found)
        spent = spent or answer.told
    return spent


def _set_straight(asked: str, reply: str, number: int, speaker: str, told: ConversationState) -> bool:
    """ "No, purple" after "Your favorite color is green": the assistant's claim with the user's value."""
    for claim, value in answers.contradicted(asked, reply):
        parts = (f"{part.subject} {part.text}".strip() for part in clauses.of_sentence(claim))
        for fact in (found for part in parts for found in reading.facts(_heard(part, speaker, "explicit", told))):
            text = amend.amended(fact.text, fact.value, value, nouns=answers.denies(reply) or value[:2].lower() == "a ")
            new = reading.read(text) if text else None
            if new:
                told.take([new], number, 0, len(reply), correction=True)
                return True
    return False


def _but_for(asked: str, reply: str, number: int, speaker: str, told: ConversationState) -> bool:
    """ "June, but yes": what the assistant claimed, with the user's value where it fits."""
    made, value = answers.but_for(asked, reply)
    parts = [f"{part.subject} {part.text}".strip() for claim in made for part in clauses.of_sentence(claim)]
    found = [fact for part in parts for fact in reading.facts(_heard(part, speaker, "implied", told))]
    for at, fact in enumerate(found):
        text = amend.amended(fact.text, fact.value, value, nouns=False)
        new = reading.read(text) if text else None
        if new:
            told.take(found[:at] + found[at + 1 :], number, 0, len(reply))
            told.take([new], number, 0, len(reply), correction=True)
            return True
    return False


def _heard(text: str, speaker: str, certainty: Certainty, told: ConversationState, *, attribute: bool = False) -> Heard:
    return Heard(
        cues.strip(person.expand(text)).text, speaker, certainty, frozenset(told.names), attribute, told.hearer
    )


def _of_clause(clause: Clause, number: int, speaker: str, told: ConversationState, *, corrects: bool) -> bool:
    """Reads one clause; returns whether it was only a correcting cue ("No, sorry."), which then holds for the next."""
    expanded = person.expand(f"{clause.subject} {clause.text}".strip())
    meant = None if clause.question else _MEANT.match(expanded.strip(" .!"))
    if meant and not cues.strip(meant["said"]).text:  # "Actually, no, I meant Malaga" takes back what was said before
        meant = None
    bare = cues.strip(meant["said"] if meant and pronouns.with_subject(meant["said"], told.about) else expanded)
    if not clause.question:
        bare = replace(bare, text=rephrasing.straight(bare.text))
    correction = bare.correction or corrects
    if not bare.text:
        return correction and not clause.question
    if not clause.question and (
        _wished(bare.text, number, speaker, told, clause)
        or told.set_right(bare.text, number, clause)
        or told.take_back(bare.text, number)
    ):
        return False
    said = pronouns.of_thing(bare.text, told.thing)
    bare = replace(bare, text=whereabouts.resolved(said, told.place))
    told.thing = pronouns.thing(bare.text) or told.thing
    text = pronouns.with_subject(bare.text, told.about)
    told.place = whereabouts.named(clause.text) or told.place
    for aside in implied.asides(clause, asking=clause.question or text is None):
        heard = _heard(aside.text, speaker, "implied", told, attribute=aside.attribute)
        told.take(reading.facts(heard), number, aside.start, aside.end)
    if clause.question:
        told.about = pronouns.spoken_of(bare.text) or told.about
    if clause.question or (_corrects(bare.text, text, correction=correction) and told.amend(bare.text, number, clause)):
        return False
    first, comma, _ = bare.text.partition(",")  # "Actually 33, had my birthday last week"
    if (
        correction
        and comma
        and len(first.split()) < _SHORT
        and first[:1].isdigit()
        and told.amend(first, number, clause)
    ):
        return False
    before = len(told.facts)
    _state(bare, text, number, speaker, told, clause, correction=correction)
    if meant and bare.text in meant["said"] and not told.amend(meant["meant"], number, clause):
        del told.facts[before:]  # it was taken back, for what the rules cannot put in its place
    return False


def _corrects(bare: str, text: str | None, *, correction: bool) -> bool:
    """Whether a clause may be nothing but another value: "Thursday", "not Acme, Apex"."""
    return (correction and (text is None or len(bare.split()) <= _SHORT)) or bare.lower().startswith("not ")


def _wished(text: str, number: int, speaker: str, told: ConversationState, clause: Clause) -> bool:
    """Takes in a lasting wish about the answers; returns whether the clause is one."""
    wish = wishes.read(text)
    if wish is None:
        return False
    slot = "nickname" if " goes by " in wish else "communication"
    value = wish.rpartition(" by ")[2] if slot == "nickname" else wish.removeprefix("User wants the assistant ")
    fact = reading.fact(wish.replace("User", speaker, 1), statement.parse(wish), None, "explicit")
    told.take([replace(fact, slot=slot, value=value, polarity="positive")], number, clause.start, clause.end)
    return True


def _state(
    bare: cues.Bare,
    text: str | None,
    number: int,
    speaker: str,
    told: ConversationState,
    clause: Clause,
    *,
    correction: bool,
) -> None:
    """Takes in what a clause states, and notes whom it spoke of."""
    name = reading.introduced(bare.text, greeted=bare.greeted)
    if name and (text is None or not reading.introduced(bare.text)):
        text = f"my name is {name}"
    if not text or whereabouts.points_there(text):
        return
    last = told.facts[-1] if told.facts and told.facts[-1].message == number else None
    text = whereabouts.settled(text, last)
    certainty: Certainty = "uncertain" if bare.unsure else "explicit"
    found = list(reading.facts(Heard(text, speaker, certainty, frozenset(told.names), hearer=told.hearer)))
    told.take(found, number, clause.start, clause.end, correction=correction)
    told.about = pronouns.spoken_of(text) or told.about
    told.introduce(found)
