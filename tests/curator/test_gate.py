"""No denial becomes its opposite, and no doubt, question, condition or hearsay becomes a plain statement.

Sentences are generated: verbs times what limits them. The offline path quotes them; a model that forgets the limit is
refused, and what it said is replaced by the quote or left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from service.curator import gate
from service.curator.extract import by_rules
from service.curator.gate import Refusal
from service.curator.grounding import grounded
from service.curator.sourcing import SourceTurns
from service.domain.fact import Comparison, Fact
from service.domain.text import CleanText
from service.language import marks
from service.language.talk import Utterance

AT = datetime(2026, 11, 22, 14, 0, tzinfo=UTC)

VERBS = [  # I, he, past, participle, -ing, object
    ("like", "likes", "liked", "liked", "liking", "jazz concerts"),
    ("work", "works", "worked", "worked", "working", "at the harbour"),
    ("eat", "eats", "ate", "eaten", "eating", "red meat"),
    ("own", "owns", "owned", "owned", "owning", "a sailing boat"),
    ("drink", "drinks", "drank", "drunk", "drinking", "black coffee"),
    ("play", "plays", "played", "played", "playing", "the cello"),
    ("live", "lives", "lived", "lived", "living", "in Bergen"),
    ("use", "uses", "used", "used", "using", "Postgres for analytics"),
    ("smoke", "smokes", "smoked", "smoked", "smoking", "small cigars"),
    ("teach", "teaches", "taught", "taught", "teaching", "chemistry lessons"),
]
DENIALS = [
    *("I don't {0} {5}.", "I do not {0} {5}.", "I never {0} {5}.", "I no longer {0} {5}.", "I don't {0} {5} any more."),
    *("I didn't {0} {5}.", "I did not {0} {5}.", "I haven't {3} {5}.", "I have never {3} {5}.", "I won't {0} {5}."),
    *("I will not {0} {5}.", "I can't {0} {5}.", "I cannot {0} {5}.", "I'm not {4} {5}.", "I wasn't {4} {5}."),
    *("I stopped {4} {5}.", "I quit {4} {5}.", "I used to {0} {5}.", "I refuse to {0} {5}.", "I hardly ever {0} {5}."),
]
DOUBTS = [
    *("I might {0} {5}.", "Maybe I {0} {5}.", "I am thinking about {4} {5}.", "I'm considering {4} {5}."),
    *("I hope to {0} {5}.", "I want to {0} {5}.", "I plan to {0} {5}.", "I'd like to {0} {5}.", "I think I {0} {5}."),
    *("Apparently I {0} {5}.", "I probably {0} {5}.", "I'm not sure whether I {0} {5}."),
]
QUESTIONS = ["Do I {0} {5}?", "Should I {0} {5}?", "Why do I {0} {5}?", "Did I tell you that I {0} {5}?"]
CONDITIONS = [
    *(
        "If it rains, I {0} {5}.",
        "Unless it rains I {0} {5}.",
        "I {0} {5} if it rains.",
        "I'd {0} {5} if I had the time.",
    ),
    *("I {0} {5} as long as it is free.", "I {0} {5} unless my sister is ill."),
]
HEARSAY = ["Tom says I {0} {5}.", "According to Tom, I {0} {5}.", "My boss thinks that I {0} {5}."]
PLAIN = ["User {1} {5}", "User {2} {5}", "User has {3} {5}", "User will {0} {5}", "User can {0} {5}", "User is {4} {5}"]


def told(*lines: str, before: tuple[str, ...] = (), known: tuple[str, ...] = ()) -> SourceTurns:
    """Messages of the form "Ann: text"; User and Assistant have no names."""
    return SourceTurns([_said(line) for line in lines], [_said(line) for line in before], [CleanText(k) for k in known])


def _said(line: str) -> Utterance:
    who, _, text = line.partition(": ")
    role = "assistant" if who == "Assistant" else "user"
    return Utterance(role, CleanText(text), None if who in ("User", "Assistant") else who, AT)


def generated(*limits: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    return ((form.format(*verb), verb) for forms in limits for form in forms for verb in VERBS)


def test_a_model_that_forgets_the_denial_is_refused() -> None:
    said = list(generated(DENIALS))
    assert len(said) == 200
    kept = [
        (sentence, fact)
        for sentence, verb in said
        for fact in (form.format(*verb) for form in PLAIN)
        if gate.refusal(fact, told(f"User: {sentence}")) is None
    ]
    assert kept == []


@pytest.mark.parametrize("limits", [DOUBTS, QUESTIONS, CONDITIONS, HEARSAY], ids=["doubt", "question", "if", "hearsay"])
def test_a_model_that_forgets_another_limit_is_refused(limits: list[str]) -> None:
    kept = [
        (sentence, fact)
        for sentence, verb in generated(limits)
        for fact in (PLAIN[0].format(*verb), PLAIN[1].format(*verb))
        if gate.refusal(fact, told(f"User: {sentence}")) is None
    ]
    assert kept == []


def test_what_is_made_instead_says_what_was_said() -> None:
    """Through the whole of what becomes of a model's facts: the quote takes their place, or nothing does."""
    for sentence, verb in generated(DENIALS, DOUBTS, CONDITIONS, HEARSAY):
        found = grounded([Fact(CleanText(PLAIN[0].format(*verb)), 0.95)], told(f"User: {sentence}"))
        assert found.refused == 1
        assert {fact.text for fact in found.facts} <= {f"User: {sentence}"}
        assert found.warnings[0].startswith("ungrounded_facts: 1 ")


def test_offline_a_limit_stays_with_what_it_limits() -> None:
    """What is quoted passes the gate, and has every denial and mark of its sentence."""
    for sentence, _ in generated(DENIALS, DOUBTS, QUESTIONS, CONDITIONS, HEARSAY):
        sources = told(f"User: I have a cat. {sentence} My sister Una is a pilot.")
        for fact in by_rules(sources).facts:
            assert gate.refusal(fact.text, sources, fact.message) is None
            if sentence[:-1] in fact.text or sentence[4:-1] in fact.text:
                assert marks.denials(fact.text) >= marks.denials(sentence)
                assert marks.marks(fact.text) >= marks.marks(sentence)


def test_a_denial_told_again_passes() -> None:
    for verb in VERBS:
        for said in ("I don't {0} {5}.", "I never {0} {5}.", "I no longer {0} {5}."):
            for fact in ("User does not {0} {5}", "User never {1} {5}", "User no longer {1} {5}"):
                assert gate.refusal(fact.format(*verb), told("User: " + said.format(*verb))) is None


def test_a_plain_statement_passes_and_its_denial_does_not() -> None:
    for verb in VERBS:
        sources = told("User: I {0} {5}.".format(*verb))
        assert gate.refusal("User {1} {5}".format(*verb), sources) is None
        assert gate.refusal("User does not {0} {5}".format(*verb), sources) is Refusal.DENIAL


REFUSED = [
    ("User works nights", "User: I no longer work nights", Refusal.DENIAL),
    ("User: I live in Rome.", "User: I live in Rome?", Refusal.QUESTION),
    ("User works days", "User: I work nights, not days", Refusal.DENIAL),
    ("User uses emacs", "User: I use vim instead of emacs", Refusal.DENIAL),
    ("User is a nurse", "User: I'm not a nurse but a doctor", Refusal.DENIAL),
    ("User likes cats", "User: I don't like dogs or cats", Refusal.DENIAL),
    ("User eats meat", "User: I don't eat meat and I love vegetables", Refusal.DENIAL),
    ("User's husband passed away", "User: I miss my mom, who passed away", Refusal.NAME),
    ("User lives with Karl", "User: I live with my brother", Refusal.NAME),
    ("User's cat rained all day", "User: I have a cat. It rained all day.", Refusal.SUBJECT),
    ("Bob moved to Lisbon", "Ann: I moved to Lisbon", Refusal.NAME),
    ("User has 4 dogs", "User: I have three dogs", Refusal.FIGURE),
    ("User works at Acme", "User: I worked at Acme", Refusal.TENSE),
    ("User breeds zebras", "User: I live in Oslo now and that is good", Refusal.UNSAID),
    ("User moved to Lisbon in November 2026", "User: I moved to Lisbon last month", Refusal.DATE),
    ("User moved to Lisbon on 4 October 2026", "User: I moved to Lisbon last month", Refusal.DATE),
    ("User: I moved last month (March 2020).", "User: I moved last month.", Refusal.DATE),
]
KEPT = [
    ("User: I don't work nights!", "User: Why? I don't work nights. Never mind."),
    ("User no longer works nights", "User: I don't work nights any more"),
    ("User works nights", "User: I work nights, not days"),
    ("User uses vim", "User: I use vim instead of emacs"),
    ("User is a doctor", "User: I'm not a nurse but a doctor"),
    ("User loves vegetables", "User: I don't eat meat and I love vegetables"),
    ("User's mother passed away", "User: I miss my mom, who passed away."),
    ("User stopped smoking", "User: I quit smoking"),
    ("User dislikes dogs", "User: I don't like dogs"),
    ("User has 3 dogs", "User: I have three dogs"),
    ("User's name is Alice", "User: Hi, I'm Alice. I'm a data scientist at Acme Corp"),
    ("User lives in Oslo", "User: I live in Oslo, right?"),
    ("User moved to Lisbon in October 2026", "User: I moved to Lisbon last month"),
    ("User moved to Lisbon in 2026", "User: I moved to Lisbon last month"),
    ("User met Ana around 8 November 2026", "User: I met Ana two weeks ago"),
    ("User has lived in Rome since May 2026", "User: I've lived in Rome since May"),
    ("User likes dogs", "User: Ich mag Hunde und Katzen wirklich sehr"),
    ("User might move to Berlin", "User: I might move to Berlin"),
    ("Tom says User is lazy", "User: Tom says I am lazy"),
]


@pytest.mark.parametrize(("fact", "said", "why"), REFUSED)
def test_refused(fact: str, said: str, why: Refusal) -> None:
    assert gate.refusal(fact, told(said)) is why


@pytest.mark.parametrize(("fact", "said"), KEPT)
def test_kept(fact: str, said: str) -> None:
    assert gate.refusal(fact, told(said)) is None


def test_the_turns_before_count() -> None:
    asked = ("Assistant: Are you vegetarian?",)
    assert gate.refusal("User is vegetarian", told("User: Yes.", before=asked)) is None
    assert gate.refusal("User is vegetarian", told("User: No.", before=asked)) is not None
    assert gate.refusal("User is not vegetarian", told("User: No.", before=asked)) is None
    standup = told("User: No, I meant 10:15.", before=("User: My standup is at 9:30.",))
    assert gate.refusal("User's standup is at 10:15", standup) is None


def test_nobody_is_given_what_another_said_of_himself() -> None:
    sources = told("Ann: I moved to Lisbon", "Bob: Nice!")
    assert gate.refusal("Bob moved to Lisbon", sources) is Refusal.SUBJECT
    assert gate.refusal("Ann moved to Lisbon", sources) is None


def test_a_name_may_come_from_what_is_known() -> None:
    sources = told("User: He moved to Porto", known=("User's brother Karl moved to Faro",))
    assert gate.refusal("Karl moved to Porto", sources) is None
    assert gate.refusal("Otto moved to Porto", sources) is Refusal.NAME


def test_a_sentence_in_the_place_of_facts_bears_on_what_they_did() -> None:
    sources = told("User: I moved to Porto in May.")
    rome, dog = CleanText("User lives in Rome"), CleanText("User has a dog")
    seen = frozenset({rome, dog})
    made_up = [
        Fact(CleanText(f"Otto {verb} Porto"), 0.95, comparison=Comparison(seen, frozenset({named})))
        for verb, named in (("moved to", rome), ("likes", dog))
    ]
    found = grounded(made_up, sources)
    assert (found.refused, found.quoted) == (2, 1)
    [sentence] = found.facts
    assert sentence.comparison == Comparison(seen, seen)


def test_the_parts_of_a_fact_are_checked() -> None:
    sources = SourceTurns(
        [_said("Ann: I moved to Lisbon last month. Rex, my dog, likes it there.")], zone=ZoneInfo("UTC")
    )
    fact = Fact(
        CleanText("User moved to Lisbon last month"),
        0.95,
        speaker="Otto",
        message=7,
        t_valid=datetime(2026, 10, 1, tzinfo=UTC),
        t_invalid=datetime(2027, 1, 1, tzinfo=UTC),
    )
    [found] = grounded([fact], sources).facts
    assert found.text == "Ann moved to Lisbon last month (October 2026)"
    assert (found.speaker, found.message) == ("Ann", 0)
    assert found.t_valid == datetime(2026, 10, 1, tzinfo=UTC)
    assert found.t_invalid is None, "nobody said until when"
