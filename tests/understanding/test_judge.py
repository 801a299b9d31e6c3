"""What one statement does to the memories near it, decided without a model."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.decision import UNJUDGED, Action, Claim, Edit, Neighbour, Reason
from service.domain.fact import Comparison
from service.domain.text import CleanText
from service.language import text_values
from service.understanding.judge import judge, settle
from service.understanding.model_or_rules import check_answer
from tests.thorough import many

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


def day(number: int) -> datetime:
    return BEGINNING + timedelta(days=number)


def memory(text: str, number: int = 1, *, similarity: float = 0.8, said_at: datetime | None = None) -> Neighbour:
    return Neighbour(UUID(int=number), CleanText(text), "", 1, similarity, said_at)


def edits(new: str, *known: str, similarity: float = 0.8) -> list[tuple[Action, int | None]]:
    shown = [memory(text, number, similarity=similarity) for number, text in enumerate(known, 1)]
    decision = judge(Claim(CleanText(new)), shown)
    return [(edit.action, edit.target.id.int if edit.target else None) for edit in decision.edits]


def test_nothing_known() -> None:
    decision = judge(Claim(CleanText("User lives in Oslo")), [])
    assert decision.edits == (Edit(Action.ADD, None, CleanText("User lives in Oslo")),)
    assert decision.evidence.reason == Reason.NOTHING_NEAR


def test_a_past_row_is_not_brought_back() -> None:
    assert edits("User moved back to Berlin", "User used to live in Berlin", "User lives in Munich") == [
        (Action.UPDATE, 2)
    ]
    assert edits("User moved back to Berlin", "User used to live in Berlin") == [(Action.ADD, None)]


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("User: I moved to Bergen last month (October 2026).", "User lives in Oslo"),
        ("Ann: I moved to Bergen.", "Ann: I live in Oslo."),
        ("Ann moved to Bergen", "Ann: I live in Oslo."),
        ("I moved to Bergen", "User: I live in Oslo."),
    ],
)
def test_content_and_messages_are_judged_alike(new: str, old: str) -> None:
    assert edits(new, old, similarity=0.6) == [(Action.UPDATE, 1)]


@pytest.mark.parametrize(
    "new", ["I moved from Bonn to Ulm.", "We moved from Bonn to Ulm last month.", "I moved to Ulm."]
)
def test_a_new_home_ends_the_one_that_it_names(new: str) -> None:
    assert edits(new, "I live in Bonn.") == [(Action.UPDATE, 1)]
    assert edits(new, "I was born in Bonn.") == edits(new, "Greta lives in Bonn.") == [(Action.ADD, None)]


@pytest.mark.parametrize("rest", ["Kim does too.", "So does Kim.", "Kim doesn't.", "I love it."])
def test_a_sentence_is_not_ended_alone_before_one_that_needs_it(rest: str) -> None:
    decision = judge(Claim(CleanText("I live in Aalst.")), [memory(f"I live in Gent. {rest}")])
    assert (decision.strikes, decision.outdates) == ((), (UUID(int=1),))


def test_a_new_date_ends_the_one_that_it_names() -> None:
    assert edits("We shifted the rehearsal from Tuesday to Thursday.", "The rehearsal is on Tuesday.") == [
        (Action.UPDATE, 1)
    ]


@pytest.mark.parametrize(
    ("new", "action"),
    [
        ("I moved to Hof in 2004.", Action.ADD),
        ("I moved to Hof back in 1999.", Action.ADD),
        ("I moved to Hof in the summer of 2011.", Action.ADD),
        ("I moved to Hof thirty years ago (1996).", Action.ADD),
        ("I'm relocated to Hof in 2033.", Action.ADD),
        ("I have a cat. I moved to Hof in March 2012.", Action.ADD),
        ("I moved to Hof in March 2026.", Action.UPDATE),
        ("I moved to Hof last month (October 2026).", Action.UPDATE),
        ("I moved to Hof in April.", Action.UPDATE),
        ("I live in Hof since 2004.", Action.UPDATE),
        ("I live in Hof until 2031.", Action.UPDATE),
    ],
)
def test_an_event_of_another_year_ends_nothing(new: str, action: Action) -> None:
    decision = judge(Claim(CleanText(new), said_at=day(320)), [memory("I live in Jena.", said_at=day(40))])
    assert [edit.action for edit in decision.edits] == [action]


def test_a_year_is_compared_with_when_the_older_was_said() -> None:
    new = Claim(CleanText("I moved to Hof in 2005."), said_at=day(320))
    old = memory("I live in Jena.", said_at=datetime(2003, 5, 1, tzinfo=UTC))
    assert judge(new, [old]).edits[0].action is Action.UPDATE


@pytest.mark.parametrize("old", ["User: I live in Oslo.", "Bob: I live in Oslo.", "User's sister lives in Oslo"])
def test_other_people_are_others(old: str) -> None:
    assert edits("Ann: I moved to Bergen.", old) == [(Action.ADD, None)]


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("User: We moved the project review meeting to Friday.", "User: The budget meeting is on Thursday."),
        ("User: I moved to Lisbon last month.", "User: I work at Acme now."),
        ("Anna moved to Paris", "Anna works at Acme"),
        ("We found a flat near the river.", "I work at Acme."),
        ("I started a new book.", "I work at Acme."),
        ("I switched to the night shift.", "I work at Acme."),
        ("I fly to Pune on 20 December and come back on 4 January.", "I moved from Leeds to Bristol last month."),
        ("Maren: I changed the booking to 8 pm.", "Maren: Morning Tobias!"),
        ("Tobias: I'm moving from Hamburg to Bremen.", "Tobias: I'll send you her address tomorrow."),
        ("No choir on Friday since the hall is closed.", "Our choir meets at 7 pm."),
        ("We don't have choir this week.", "We have choir on Mondays."),
        ("Ida's coach moved the match to Sunday.", "My daughter Ida is nine."),
        ("Our chef Bo swapped his van for a truck.", "Our chef Bo lives above the bakery."),
        ("My son's swimming lesson is on Fridays instead of Mondays.", "I have swimming lessons with Karl."),
        ("What could I cook instead of the vegan curry?", "I'm vegan."),
        ("Mona has a new supervisor from the Oslo office.", "My supervisor is Mona."),
        ("My uncle sold his sailing boat.", "I have a sailing boat."),
        ("The scan showed that my brother isn't diabetic after all.", "I'm diabetic."),
        ("The nurse says my mother no longer takes lithium.", "I take lithium."),
        ("Petra's pottery class has moved from Mondays to Fridays.", "I go to pottery on Mondays with Petra."),
        ("Yusuf's train has been moved from 7 to 9.", "My train is at 7."),
        ("My parents have sold their house on Mill Lane.", "I live in a house on Mill Lane."),
        ("Laura no longer drinks coffee.", "I drink coffee."),
        ("Peter mentioned that he sold the canoe.", "I have a canoe."),
        ("My sister-in-law's name is Maja.", "My sister's name is Ada."),
        ("My in-laws sold their boat.", "We own a boat."),
        ("My teammate's keyboard is now a Moonlander.", "My keyboard is a Model M."),
        ("Olga says her favourite author is Le Guin now.", "My favourite author is Lem."),
        ("My boss quit drinking.", "I drink a beer every evening."),
        ("My monitor at work is now an Eizo.", "My monitor at home is a Dell."),
        ("The heater downstairs is now a Vaillant.", "The heater upstairs is a Bosch."),
        ("My private number is now 555 0199.", "My office number is 555 0142."),
        ("Band practice is cancelled this Thursday because of the snow.", "Band practice is on Thursdays at 20:00."),
        ("User: Tea, not coffee, Mona insists on that.", "User: Not yet, a decision on the 9th."),
        ("User: Finn n me are going out since like two months", "User: Hes in year 12 like me so"),
    ],
)
def test_a_change_of_something_else_ends_nothing(new: str, old: str) -> None:
    assert edits(new, old, similarity=0.7) == [(Action.ADD, None)]


def test_a_correction_ends_the_same_statement_with_another_value() -> None:
    told = Claim(CleanText("User: I start at Fennlight on 9 November."), correction=True)
    [edit] = judge(told, [memory("User: I start at Fennlight on 2 November.")]).edits
    assert edit.action is Action.UPDATE


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("User: Actually, the rent of the flat is 900 euros.", "User: The rent of the garage is 60 euros."),
        ("User: Sorry, my wife's birthday is on 4 May.", "User: My mother's birthday is on 14 May."),
        ("User: Actually, I pay 50 euros a month.", "User: My sister pays 40 euros a month."),
        ("User: Sorry, 4 May.", "User: My exam is on 3 May."),
    ],
)
def test_a_correction_of_something_else_ends_nothing(new: str, old: str) -> None:
    assert judge(Claim(CleanText(new), correction=True), [memory(old)]).edits[0].action is Action.ADD


def test_reasons_are_sentences_of_the_vocabulary() -> None:
    for new, old, reason in (
        ("User lives in Bergen", "User lives in Oslo", Reason.NEW_VALUE),
        ("User no longer smokes", "User smokes", Reason.OPPOSITE),
        ("User has a dog", "User has a dog.", Reason.SAME_TEXT),
    ):
        assert judge(Claim(CleanText(new)), [memory(old)]).evidence.reason in (reason, Reason.CHANGE)


# -- time --------------------------------------------------------------------------------------------------------------


def test_older_news_never_overwrites() -> None:
    known = memory("User lives in Berlin", said_at=day(300))
    decision = judge(Claim(CleanText("User lives in Paris"), said_at=day(10)), [known])
    assert decision.edits == (Edit(Action.NONE, known, earlier=True),)
    assert decision.evidence.reason == Reason.EARLIER


def test_what_holds_later_counts_whenever_it_was_said() -> None:
    known = replace(memory("User lives in Berlin", said_at=day(100)), t_valid=day(90))
    statement = Claim(CleanText("User lives in Paris"), said_at=day(200), t_valid=day(5))
    [edit] = judge(statement, [known]).edits
    assert (edit.action, edit.earlier) == (Action.NONE, True)


def test_of_one_moment_the_later_arrival_wins() -> None:
    known = memory("User lives in Berlin", said_at=day(1))
    assert judge(Claim(CleanText("User lives in Paris"), said_at=day(1)), [known]).edits[0].action is Action.UPDATE


def test_what_was_over_when_it_was_said_ends_nothing() -> None:
    known = memory("User lives in Berlin", said_at=day(1))
    over = Claim(CleanText("User lives in Rome"), said_at=day(90), t_valid=day(30), t_invalid=day(60))
    assert judge(over, [known]).edits[0].action is Action.ADD


VALUES = ["Oslo", "Bergen", "Rome", "Lisbon", "Kiel", "York", "Graz", "Ghent", "Porto", "Brno"]


# -- what never joins --------------------------------------------------------------------------------------------------

TEMPLATES = (
    "Order {n} was shipped to {city} on {date}.",
    "Order {n} is delayed until {date}.",
    "Order #{n} has {m} items.",
    "Build {n} passed in {m} minutes.",
    "Build {n} became the current build on {date}.",
    "Deployment {n} switched node-{m} to version {m}.{k}.{n}.",
    "Run {n} reached an accuracy of 0.{m}.",
    "Experiment {n} switched to a batch size of {m}.",
    "Invoice INV-{n} over {m} euros was paid on {date}.",
    "Invoice {n} is due on {date}.",
    "User ran {m} km on {date}.",
    "Weight on {date}: {m}.{k} kg",
    "On {date}, the temperature was {m} degrees.",
    "User slept {k} hours on {date}.",
    "Meeting on {date} at {k}:00 with {name} about the budget.",
    "Meeting room {n} has {k} seats.",
    "Ticket ABC-{n} moved to review.",
    "Customer {n} lives in {city}.",
    "Host 10.0.{k}.{n} is in {city}.",
    "Flight LH{n} was rescheduled to {k}:30.",
    "Patient {n} takes {m} mg of ramipril.",
    "User transferred {m} euros to {name} on {date}.",
    "{name} visited {city} on {date}.",
    "File /var/log/app-{n}.log has {m} errors.",
)
RECORDS = many(140, 420)
"""Of each template: together three thousand, or ten thousand."""


def records(template: str) -> list[str]:
    """Records of one template, each with a number and a day of its own."""
    rng = random.Random(template)
    return [
        template.format(
            n=1000 + number,
            m=rng.randrange(10, 99),
            k=rng.randrange(1, 9),
            city=rng.choice(VALUES),
            name=rng.choice(("Ann", "Bob", "Dora", "Finn")),
            date=f"{day(number):%Y-%m-%d}",
        )
        for number in range(RECORDS)
    ]


@pytest.mark.parametrize("template", TEMPLATES)
def test_records_of_one_template_all_live(template: str) -> None:
    texts = records(template)
    known = [memory(text, number, similarity=0.97, said_at=BEGINNING) for number, text in enumerate(texts, 1)]
    rng = random.Random(1)
    wrong = [
        (text, edit.target and edit.target.text)
        for index, text in enumerate(texts)
        for edit in judge(
            Claim(CleanText(text), said_at=BEGINNING),
            [known[other] for other in {(index + 1) % RECORDS, *rng.sample(range(RECORDS), 4)} - {index}],
        ).edits
        if edit.action is not Action.ADD
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Assistant asked: Is the mill open? User: Not any more.", "User: The mill is open."),
        ("Rita said: I leave as treasurer. Ann: Who takes over?", "Rita: I leave as treasurer."),
        (
            "Assistant asked: When do you leave? User: By the 20th.",
            "Assistant asked: When is it due? User: By the 20th.",
        ),
    ],
)
def test_what_a_message_takes_up_ends_nothing(new: str, old: str) -> None:
    assert edits(new, old, similarity=0.9) == [(Action.ADD, None)]


def test_the_same_answer_to_the_same_question_is_known() -> None:
    answer = "Assistant asked: When do you leave? User: By the 20th."
    assert edits(answer, answer) == [(Action.NONE, 1)]


def test_a_correction_of_what_was_just_said_ends_it() -> None:
    told = CleanText("User said: My flight lands at \u2026. User: Actually it's 16:20, I misread.")
    known = memory("User: My flight lands at 14:20.")
    assert judge(Claim(told, correction=True), [known]).edits[0].action is Action.UPDATE
    assert judge(Claim(told), [known]).edits[0].action is Action.ADD


FLIGHT = "User said: My flight is on \u2026. User: "


@pytest.mark.parametrize(
    ("new", "ends"),
    [
        (f"{FLIGHT}Sorry, 5 May.", True),
        ("User: Actually, my flight is on 5 May.", True),
        (f"{FLIGHT}Sorry, my hotel is booked for 5 May.", False),
        ("User: Sorry, 5 May.", False),
        ("User said: My exam is on \u2026. User: Sorry, 5 May.", False),
    ],
)
def test_a_correction_can_be_corrected(new: str, ends: bool) -> None:
    known = memory(f"{FLIGHT}No, 4 May.")
    assert (judge(Claim(CleanText(new), correction=True), [known]).edits[0].action is Action.UPDATE) == ends


@pytest.mark.parametrize(
    ("new", "old", "replaces"),
    [
        ("Rex is also afraid of thunder", "Rex is a brown dog, eight years old, and sleeps in the kitchen", False),
        ("User eats fish again", "User is vegetarian, allergic to nuts and plays chess", False),
        ("User works at Aldi", "User works at Lidl as a cashier", True),
        ("User moved to Bergen", "User lives in Oslo (since March 2024)", True),
    ],
)
def test_a_models_update_leaves_out_one_thing_at_most_of_what_a_memory_says(new: str, old: str, replaces: bool) -> None:
    answer = f'[{{"event": "UPDATE", "id": "1", "data": "{new}"}}]'
    decision = check_answer(Claim(CleanText(new)), [memory(old)], answer, UNJUDGED)
    assert decision.evidence.rejected != replaces


@given(st.text(max_size=60), st.text(max_size=60))
def test_what_differs_in_a_figure_is_never_dropped(new: str, old: str) -> None:
    [edit, *_] = judge(Claim(CleanText(new)), [memory(old, similarity=0.9)]).edits
    if edit.action is Action.NONE:
        assert text_values.figures(new) == text_values.figures(old)


@pytest.mark.parametrize(("new", "old"), list(itertools.permutations(("Likes tea", "it is", "who are you", "!!"), 2)))
def test_what_has_no_content_replaces_nothing(new: str, old: str) -> None:
    assert edits(new, old, similarity=0.9) == [(Action.ADD, None)]


def test_what_may_be_outdated_is_marked() -> None:
    statement = Claim(CleanText("User drives a Skoda now"), change=lambda _: 5.0)
    vector = np.zeros(384, dtype=np.float32)
    decision = judge(statement, [replace(memory("User drives a Fiat"), vector=vector)])
    assert [edit.action for edit in decision.edits] == [Action.ADD]
    assert decision.outdates == (UUID(int=1),)
    assert decision.evidence.reason == Reason.UNSURE


@pytest.mark.parametrize(
    ("new", "old", "marked"),
    [
        ("Priya Raman works at Brightwave Labs.", "Marco Silva works at Brightwave Labs.", False),
        ("Marek is away, Priya Raman is on call.", "Marek is on call this week.", True),
        ("Priya Raman took over from Marco Silva.", "Marco Silva works at Brightwave Labs.", True),
    ],
)
def test_a_statement_about_another_person_marks_nothing(new: str, old: str, marked: bool) -> None:
    statement = Claim(CleanText(new), change=lambda _: 9.0)
    known = replace(memory(old, similarity=0.6), vector=np.zeros(384, dtype=np.float32))
    assert bool(judge(statement, [known]).outdates) is marked


@pytest.mark.parametrize("old", ["I live in Oslo.", "I live in Oslo. I have two cats, Pip and Nora."])
@pytest.mark.parametrize(
    ("new", "marked"),
    [
        ("I moved to Bergen yesterday.", True),
        ("I am living in Bergen this week.", True),
        ("I slept in Bergen yesterday.", False),
        ("I moved the sofa yesterday.", False),
    ],
)
def test_another_value_that_may_not_last_marks_the_known_one(new: str, old: str, marked: bool) -> None:
    decision = judge(Claim(CleanText(new)), [memory(old, similarity=0.6)])
    assert [edit.action for edit in decision.edits] == [Action.ADD]
    assert bool(decision.outdates) is marked


def test_contradiction_works_both_ways() -> None:
    earlier = memory("User lives in Berlin", said_at=day(1))
    later = memory("User lives in Berlin", said_at=day(99))
    statement = Claim(CleanText("User lives in Paris"), said_at=day(50))
    assert judge(statement, [earlier]).edits == (Edit(Action.UPDATE, earlier, statement.text),)
    assert judge(statement, [later]).edits == (Edit(Action.NONE, later, earlier=True),)
    assert judge(statement, [memory("User likes tea", said_at=day(1))]).only_adds


TEA, BOAT = CleanText("User likes tea"), CleanText("User owns a boat")
LOOKED = Comparison(frozenset({TEA, BOAT}), frozenset())

OPEN_OR_NOT = {
    "nothing known": ("User plays the cello", [], LOOKED, Action.ADD),
    "seen, and nobody named it": ("User plays the cello", [(TEA, 0.8)], LOOKED, Action.ADD),
    "seen, but all but the same": ("User plays the cello", [(TEA, 0.95)], LOOKED, None),
    "seen, further away": ("User plays the cello", [(BOAT, 0.8), (TEA, 0.95)], LOOKED, Action.ADD),
    "named": ("User plays the cello", [(BOAT, 0.6), (TEA, 0.3)], replace(LOOKED, named=frozenset({TEA})), None),
    "near, and nobody looked": ("User plays the cello", [(TEA, 0.5)], None, None),
    "far, and nobody looked": ("User plays the cello", [(TEA, 0.4)], None, Action.ADD),
    "the same words": ("User likes the tea", [(TEA, 0.97), (BOAT, 0.6)], None, Action.NONE),
    "a change": ("User no longer likes tea", [(TEA, 0.8)], LOOKED, None),
    "unsure": ("User drives a Volvo now", [("User drives a Ford", 0.8)], LOOKED, None),
}


@pytest.mark.parametrize(("new", "known", "comparison", "action"), OPEN_OR_NOT.values(), ids=OPEN_OR_NOT)
def test_what_a_model_need_not_be_asked(
    new: str, known: list[tuple[str, float]], comparison: Comparison | None, action: Action | None
) -> None:
    shown = [memory(text, number, similarity=near) for number, (text, near) in enumerate(known, 1)]
    found = settle(Claim(CleanText(new)), shown, comparison)
    assert (found.edits[0].action if found else None) == action
    assert found is None or found == judge(Claim(CleanText(new)), shown)
