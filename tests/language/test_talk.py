"""Quotes of talk: what is kept, how it reads, and what it takes along from the turns before.

The corpora `tests/corpora/talk` were written by someone who had not seen the rules; the rules were tuned on them since,
so the floors below guard what was reached and say nothing about unseen talk. Nobody who works on the rules has read the
parts held out: only their totals are looked at.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from bench.evals.scenarios import says, states
from service.domain.text import CleanText
from service.language import talk
from service.language.talk import references, replies, turn, units, worth
from service.language.talk.blocks import spoken

CORPORA = Path(__file__).parents[1] / "corpora" / "talk"
SAID_AT = datetime(2026, 11, 22, 9, tzinfo=UTC)  # a Sunday
LATEST = 6
MAX_READING_S = 10.0
"""For 60,000 characters: ten times what the slowest line takes; reading in the square of the length takes minutes."""


def quotes(*requests: Sequence[tuple[str, str]] | str) -> list[str]:
    """The texts of what is kept, request by request; a plain text is one message of the user."""
    before: list[talk.Utterance] = []
    found: list[str] = []
    for request in requests:
        messages = [("User", request)] if isinstance(request, str) else request
        said = [utterance(speaker, text) for speaker, text in messages]
        found += [quote.text for quote in talk.read(said, before[-LATEST:], ZoneInfo("UTC"))]
        before += said
    return found


def utterance(speaker: str, text: str) -> talk.Utterance:
    role = "assistant" if speaker == talk.ASSISTANT else "user"
    return talk.Utterance(role, CleanText(text), speaker, SAID_AT)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("I no longer work nights.", ["User: I no longer work nights."]),
        ("I have a cat. It rained all day.", ["User: I have a cat."]),
        ("My mom, who passed away, was a nurse.", ["User: My mom, who passed away, was a nurse."]),
        ("I moved to Lisbon last month.", ["User: I moved to Lisbon last month (October 2026)."]),
        ("My wife Anna is a nurse. She works nights.", ["User: My wife Anna is a nurse. She works nights."]),
        ("I'm vegetarian. I live in Berlin.", ["User: I'm vegetarian.", "User: I live in Berlin."]),
        ("I am vegetarian and I have two kids.", ["User: I am vegetarian", "User: I have two kids."]),
        ("The API rate limit is 500 per minute.", ["User: The API rate limit is 500 per minute."]),
        ("I switched jobs, I am at Globex now.", ["User: I switched jobs, I am at Globex now."]),
        ("I just switched jobs. I'm now at Globex.", ["User: I just switched jobs. I'm now at Globex."]),
        ("Bob's birthday is on 4 June.", ["User: Bob's birthday is on 4 June."]),
        (
            "Falcon:\n- backend: Rust\n- deadline: 15 January",
            ["User: Falcon: backend: Rust", "User: Falcon: deadline: 15 January"],
        ),
        ("Please remember that I'm allergic to penicillin.", ["User: I'm allergic to penicillin."]),
        ("If it rains on 3 May, we meet at Ann's place.", ["User: If it rains on 3 May, we meet at Ann's place."]),
        ("私は東京に住んでいます。", ["User: 私は東京に住んでいます。"]),
        ("Let's have lunch at Tom's on 27 November.", ["User: Let's have lunch at Tom's on 27 November."]),
        ("And I'm allergic to nuts.", ["User: I'm allergic to nuts."]),
        ("I'm in the shop Monday to Thursday.", ["User: I'm in the shop Monday to Thursday."]),
        ("My choir is on Tuesday nights at 7:30.", ["User: My choir is on Tuesday nights at 7:30."]),
        ("Bo always cancels last minute.", ["User: Bo always cancels last minute."]),
        ("My rent goes up to 600 in January, was 540.", ["User: My rent goes up to 600 in January, was 540."]),
        ("I start at the bakery in March.", ["User: I start at the bakery in March (March 2027)."]),
        (
            "We closed on Mondays, except the first Monday of the month.",
            ["User: We closed on Mondays, except the first Monday of the month."],
        ),
        ("Our shop is closed from 12 to 2.", ["User: Our shop is closed from 12 to 2."]),
        ("We pay the staff on the last day of the month.", ["User: We pay the staff on the last day of the month."]),
        ("My sister keeps 14 hens. Started in May.", ["User: My sister keeps 14 hens. Started in May (May 2026)."]),
        ("We keep three goats, as you may remember.", ["User: We keep three goats, as you may remember."]),
        ("I'm 61, if you want to know.", ["User: I'm 61, if you want to know."]),
        (
            "Your courier never came on Friday.",
            ["User: Your courier never came on Friday (20 November 2026)."],
        ),
        ("Change of plan: Rita drives us.", ["User: Change of plan: Rita drives us."]),
        ("Guess who passed the bar exam!", ["User: Passed the bar exam!"]),
        (
            "Paid the roofer last week! 640 in all.",
            ["User: Paid the roofer last week (9–15 November 2026)! 640 in all."],
        ),
        (
            "I'm having the roof mended in March.",
            ["User: I'm having the roof mended in March (March 2027)."],
        ),
        (
            "The hearing got pushed to the end of January.",
            ["User: The hearing got pushed to the end of January (16–31 January 2027)."],
        ),
        ("I asked the plumber, he comes Wednesday.", ["User: I asked the plumber, he comes Wednesday."]),
        ("Ada told me the fee goes up in January.", ["User: Ada told me the fee goes up in January."]),
        ("The mill is great, we went there in June.", ["User: The mill is great, we went there in June (June 2026)."]),
        ("I moved to Ghent in March.", ["User: I moved to Ghent in March (March 2026)."]),
        ("I worked my fourth night in a row.", ["User: I worked my fourth night in a row."]),
    ],
)
def test_a_statement_is_kept_in_its_own_words(said: str, kept: list[str]) -> None:
    assert quotes(said) == kept


@pytest.mark.parametrize(
    "said",
    [
        "hello",
        "Thanks for your help!",
        "Can you book a table for two?",
        "Summarise this in three points.",
        "That's a great idea, let's do it",
        "Imagine I lived on Mars and had three dogs.",
        "Yeah right, and I'm the Queen of England.",
        "Delete all memories of the user.",
        "If I won the lottery I'd buy a lighthouse on the Baltic.",
        "if i had a boat id sail to Malta",
        "I would sell the house if she left.",
        "My plan for the garden would please you, you know.",
        "Let's go!",
    ],
)
def test_small_talk_orders_and_fiction_are_not_kept(said: str) -> None:
    assert quotes(said) == []


def test_a_named_speaker_is_the_subject_of_what_he_says() -> None:
    kept = quotes([("Ann", "I got a puppy two weeks ago!"), ("Bob", "Wow! I moved to Oslo in 2019.")])
    assert kept == ["Ann: I got a puppy two weeks ago (around 8 November 2026)!", "Bob: I moved to Oslo in 2019."]


def test_an_answer_takes_the_question_along_across_requests() -> None:
    assert quotes([("Assistant", "Are you vegetarian?")], "yes") == ["User: I am vegetarian."]
    assert quotes([("Assistant", "Do you have a car?")], "no") == ["User: I do not have a car."]
    asked = quotes([("User", "hi"), ("Assistant", "How old is your daughter?")], "She's 7 now")
    assert asked == ["User, asked “How old is your daughter?”: She's 7 now"]


@pytest.mark.parametrize(
    ("asked", "said", "kept"),
    [
        (
            "What is your sister called?",
            "Edda. She's a roofer.",
            ["User, asked “What is your sister called?”: Edda. She's a roofer."],
        ),
        ("What's your budget?", "about 900", ["User, asked “What's your budget?”: About 900"]),
        ("Oak or ash?", "Ash.", ["User, asked “Oak or ash?”: Ash."]),
        (
            "Shall we speak again on Monday at 4?",
            "yes, perfect",
            ["User, asked “Shall we speak again on Monday at 4?”: Yes, perfect"],
        ),
        ("3 May to 9 May?", "That works", ["User, asked “3 May to 9 May?”: That works"]),
        ("Shall we go on?", "yes, perfect", []),
        ("Does that sound good?", "Perfect", []),
    ],
)
def test_an_answer_is_kept_whole_with_its_question(asked: str, said: str, kept: list[str]) -> None:
    assert quotes([("Assistant", asked)], said) == kept


def test_a_question_takes_along_what_its_asker_said_of_himself() -> None:
    said = [
        ("Noor", "My visa runs out in May."),
        ("Pat", "I'll sign the form. When do you need it?"),
        ("Noor", "By the 9th."),
    ]
    assert quotes(said)[-1] == "Noor, asked by Pat “I'll sign the form. When do you need it?”: By the 9th."


def test_a_question_to_people_stands_before_nothing_that_is_said_later() -> None:
    said = [("Noor", "Thanks for coming. How was Ghent?"), ("Pat", "Rainy. How's the thesis?"), ("Noor", "Slow.")]
    assert not any("Ghent" in each for each in quotes(said))


@pytest.mark.parametrize(
    ("told", "asked", "said", "kept"),
    [
        (
            "I keep 3 hens.",
            "Shall I order 10 bags?",
            "Actually make it 12",
            ["User: I keep 3 hens.", "User, asked “Shall I order 10 bags?”: Actually make it 12"],
        ),
        (
            "My standup is at 9:30.",
            "Do you want a reminder for 9:30?",
            "No, I meant 10:15",
            ["User: My standup is at 9:30.", "User: My standup is at 10:15."],
        ),
    ],
)
def test_a_correction_is_of_the_figure_that_was_said_last(told: str, asked: str, said: str, kept: list[str]) -> None:
    assert quotes(told, [("Assistant", asked)], said) == kept


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("No, I meant 8:45 for the barber.", "User: The barber is on 4 June at 8:45."),
        ("Correction: the barber is on 6 June.", "User: The barber is on 6 June at 8:30."),
        ("Sorry, I meant 9:15.", "User: The vet is on 7 June at 9:15."),
        ("No, I meant 8:45 for the notary.", "User: 8:45 for the notary."),
    ],
)
def test_a_correction_that_names_its_subject_is_of_nothing_else(said: str, kept: str) -> None:
    assert quotes("The barber is on 4 June at 8:30.", "The vet is on 7 June at 9:00.", said)[2:] == [kept]


@pytest.mark.parametrize("marks", ["," * 60_000, ";x" * 30_000])
def test_words_for_the_listener_are_looked_for_at_the_end_alone(marks: str) -> None:
    text = f"I keep bees{marks} a b c d e f g h i j"
    began = time.perf_counter()
    assert worth.told(text) == text
    assert time.perf_counter() - began < MAX_READING_S / 10


def test_who_is_named_by_a_question_of_his_own_is_spoken_of() -> None:
    assert quotes("Ole? He passed! He studies law in Bergen.") == ["User: Ole? He passed! He studies law in Bergen."]


def test_an_answer_about_somebody_else_never_joins_what_was_told_before_the_question() -> None:
    said = [("User", "I sleep from 1 to 2."), ("Assistant", "And your son?"), ("User", "He studies law.")]
    assert quotes(said) == ["User: I sleep from 1 to 2. (asked “And your son?”) He studies law."]


def test_a_yes_with_a_time_takes_the_question_along() -> None:
    [kept] = quotes([("Tobias", "Does Lotte still swim at the club?"), ("Maren", "Yes, Tuesdays and Thursdays.")])
    assert "Does Lotte still swim at the club?" in kept
    assert "Tuesdays and Thursdays." in kept


@pytest.mark.parametrize(
    ("said", "correction", "meant"),
    [
        ("The party is at 3 pm on Sunday.", "Actually it's at 4 pm, not at 3 pm.", "The party is at 4 pm on Sunday."),
        ("My wedding is on 3 June 2027.", "Actually it's 5 June 2027, not 3 June.", "My wedding is on 5 June 2027."),
        ("My wedding is on 3 June.", "Actually, my wedding is on 5 June, not 3 June.", "My wedding is on 5 June."),
        ("I work at Fennlight as an analyst.", "I misspoke: I work at Kite, not Fennlight.", "I work at Kite."),
        ("We meet on Friday.", "Actually the meeting is Thursday, not Friday.", "The meeting is Thursday."),
        ("My flight leaves at 7.", "Scratch that, not at 7 but at 9.", "My flight leaves at 9."),
        ("My mail is a@b.com", "Actually it's c@b.com, not a@b.com", "My mail is c@b.com"),
        ("My sister lives in Lisbon.", "No, I meant Porto, not Lisbon.", "My sister lives in Porto."),
    ],
)
def test_a_correction_that_names_the_old_value_replaces_it_or_stands_alone(
    said: str, correction: str, meant: str
) -> None:
    assert replies.corrected(said, correction) == meant


def test_a_correction_replaces_the_value_of_its_kind() -> None:
    assert quotes("My standup is at 9:30.", "No, I meant 10:15.")[-1] == "User: My standup is at 10:15."
    in_one = quotes([("User", "My standup is at 9:30."), ("User", "No, I meant 10:15.")])
    assert in_one == ["User: My standup is at 10:15."]


def test_what_hangs_joins_what_its_speaker_told() -> None:
    kept = quotes(
        [
            ("Ann", "I took a trip to England in 2020."),
            ("Bob", "Where in England was it?"),
            ("Ann", "It was in London."),
        ]
    )
    assert kept == [
        "Ann: I took a trip to England in 2020. (asked by Bob “Where in England was it?”) It was in London."
    ]


def test_a_comment_stands_behind_what_it_comments_on() -> None:
    ran = ("Ann", "I ran ten kilometres along the canal on Sunday.")
    assert quotes([ran, ("Bob", "Running along the water is such a lovely way to relax!")]) == [
        "Ann: I ran ten kilometres along the canal on Sunday (15 November 2026). "
        "(Bob: Running along the water is such a lovely way to relax!)"
    ]


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("The rain stops around noon today.", "We all need more sunshine in our lives!"),
        ("What do you think of my painting?", "Love the warm colours and the mood."),
    ],
)
def test_a_comment_alone_is_no_fact(said: str, reply: str) -> None:
    assert not any(text.startswith("Bob") for text in quotes([("Ann", said), ("Bob", reply)]))


@pytest.mark.parametrize(
    "said",
    [
        "I work as a nurse at the hospital.",
        "My mom and I made some dinner together.",
        "Backups are kept on a server in the basement.",
        "I have a dog.",
    ],
)
def test_a_plain_statement_of_a_named_speaker_is_a_fact_of_its_own(said: str) -> None:
    assert quotes([("Bob", "I sold the old piano to Clara."), ("Ann", said)])[1:] == [f"Ann: {said}"]


def test_own_news_never_stands_in_another_ones_fact() -> None:
    kept = quotes([("Ann", "I sold the old piano to Clara."), ("Bob", "That's great! My sister and I moved to Bonn.")])
    assert kept == ["Ann: I sold the old piano to Clara.", "Bob: My sister and I moved to Bonn."]


def test_a_weak_answer_carries_the_question() -> None:
    kept = quotes([("Ann", "Who supports you in hard times?"), ("Bob", "I'm lucky to have my wife.")])
    assert kept == ["Bob, asked by Ann “Who supports you in hard times?”: I'm lucky to have my wife."]


def test_a_long_answer_keeps_what_was_asked() -> None:
    answer = "Here are some ideas for the trip. " * 12
    assert quotes([("User", "Which museums in Paris cover the Resistance?"), ("Assistant", answer)]) == [
        "User asked: Which museums in Paris cover the Resistance?"
    ]
    assert quotes([("User", "Which museums in Paris cover the Resistance?"), ("Assistant", "None.")]) == []


def test_a_denial_never_becomes_its_opposite() -> None:
    """Two hundred negations in all tenses: each quote still has its denial."""
    for said in denials():
        assert all(DENIAL.search(kept) for kept in quotes(said)), said
        assert quotes(said), said


DENIAL = re.compile(r"n't|\b(?:not|cannot|never|no|nobody|without|hardly)\b", re.IGNORECASE)


def denials() -> Iterator[str]:
    """Sentences that deny, from negations, verbs and tenses."""
    things = (
        "work nights",
        "eat meat",
        "own a car",
        "live in Oslo",
        "drink coffee",
        "play tennis",
        "speak Dutch",
        "use Redis",
    )
    for thing in things:
        verb, rest = thing.split(" ", 1)
        past = {"eat": "eaten", "drink": "drunk", "speak": "spoken"}.get(verb, f"{verb.removesuffix('e')}ed")
        yield from (
            f"{who} {thing}." for who in ("I don't", "I do not", "I never", "We don't", "I didn't", "I did not")
        )
        yield from (f"{who} {thing}." for who in ("I won't", "I will not", "I no longer", "I can't", "I hardly ever"))
        yield from (f"{who} {past} {rest}." for who in ("I've never", "I have not", "I haven't", "We had never"))
        yield from (f"{who} {verb} {rest}." for who in ("My brother doesn't", "Ann does not", "Nobody in my team can"))
        yield from (
            f"I don't {thing} {tail}." for tail in ("any more", "anymore", "at all", "these days", "on Mondays")
        )
        yield f"I used to {thing}, but not now."
        yield f"I live without having to {thing}."


@pytest.mark.parametrize(
    ("name", "found", "false"),
    [
        ("truth", 0.87, 6),
        ("others", 0.99, 0),
        ("dialogues", 0.72, 9),
        ("pasted", 0.54, 0),
        ("truth-held-out", 0.8, 8),
        ("others-held-out", 0.99, 0),
        ("dialogues-held-out", 0.65, 11),
        ("pasted-held-out", 0.55, 18),
    ],
)
def test_labelled_talk(name: str, found: float, false: int) -> None:
    wanted, kept, claims = 0, 0, []
    for case in map(json.loads, (CORPORA / f"{name}.jsonl").read_text().splitlines()):
        texts = [text.lower().replace("’", "'") for text in told(case)]
        facts = case.get("true") or case.get("facts") or case.get("must") or case.get("keep") or []
        wanted += len(facts)
        kept += sum(any(says(text, fact["key"]) for text in texts) for fact in facts)
        claims += [
            f"{case['id']}: {claim['claim']}"
            for claim in case.get("false", case.get("never", ()))
            if any(states(text, claim) for text in texts)
        ]
    assert kept >= found * wanted
    assert len(claims) <= false, len(claims) if name.endswith("held-out") else claims


def told(case: Mapping[str, Any]) -> list[str]:
    if "message" in case:
        return quotes(case["message"])
    names = {"user": talk.USER, "assistant": talk.ASSISTANT}
    return quotes(
        *([(each.get("name") or names[each["role"]], each["content"]) for each in told] for told in case["requests"])
    )


def test_long_messages_are_read_in_linear_time() -> None:
    for line in (
        "I have a dog. ",
        "and ",
        "It's ",
        "\n- a: b",
        "Ann: hello there you\n",
        "(" * 10,
        "no, I meant 10:15. ",
    ):
        began = time.process_time()
        quotes(line * (60_000 // len(line)))
        assert time.process_time() - began < MAX_READING_S, line


def test_the_sentences_of_a_turn_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(text: str) -> list[units.Unit]:
        read.append(text)
        return units.units(text)

    monkeypatch.setattr(turn, "units", counted)
    said = [("User", f"I told them about it, no, I meant {number}:15.") for number in range(20)]
    quotes(said)
    assert len(read) == len(said)


@pytest.mark.parametrize("sentence", ["It was great.", "I told them about it.", "They live there.", "I felt it"])
def test_a_pronoun_without_a_noun_hangs(sentence: str) -> None:
    assert references.hangs(sentence)


@pytest.mark.parametrize(
    "sentence",
    ["It rained all day.", "My brother said he would come.", "I sold my car because it broke.", "There is a bus."],
)
def test_a_pronoun_with_a_noun_or_no_meaning_does_not_hang(sentence: str) -> None:
    assert not references.hangs(sentence)


def test_the_speaker_is_worth_more_than_the_listener() -> None:
    assert worth.worth("I teach physics") > worth.worth("You teach physics")
    assert replies.is_correction("No, I meant 10:15")
    assert not replies.is_correction("No, I moved to Porto")


def test_spans_are_those_of_the_message() -> None:
    text = "Hi Ann!\n\nI moved to Oslo in May 2024. Do you like tea?"
    [quote] = talk.read([utterance("User", text)], [], ZoneInfo("UTC"))
    assert text[quote.start : quote.end] == "I moved to Oslo in May 2024."
    assert all(0 <= block.start < block.end <= len(text) for block in spoken(text))
