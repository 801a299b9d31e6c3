"""Facts read out of conversations: where they were said, whose they are, and that no text breaks the reading."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from bench.evals import curator
from service.language import wordlists
from service.language.facts import Message, StatedFact, extract, read, spelling, verbs


def told(*turns: str) -> tuple[StatedFact, ...]:
    """The facts of turns; one that begins with "A:" is the assistant's."""
    roles = [("assistant", turn[2:].strip()) if turn.startswith("A:") else ("user", turn) for turn in turns]
    return extract([Message(role, text) for role, text in roles])


def texts(*turns: str) -> list[str]:
    return [fact.text for fact in told(*turns)]


def test_an_introduction_gives_four_facts() -> None:
    assert texts(
        "Hi, I'm Alice. I'm a data scientist at Acme Corp, I work on NLP and recommendation systems, "
        "and I prefer PyTorch over TensorFlow"
    ) == [
        "User's name is Alice",
        "User is a data scientist at Acme Corp",
        "User works on NLP and recommendation systems",
        "User prefers PyTorch over TensorFlow",
    ]


def test_pronouns_are_resolved() -> None:
    assert texts("I have a sister. She lives in Kiel. I visit her every June.") == [
        "User has a sister",
        "User's sister lives in Kiel",
        "User visits their sister every June",
    ]


def test_several_people_speak() -> None:
    found = extract([Message("user", "I live in Cork", "Una"), Message("user", "I live in Sligo", "Finn")])
    assert [(fact.text, fact.subject) for fact in found] == [
        ("Una lives in Cork", "Una"),
        ("Finn lives in Sligo", "Finn"),
    ]


def test_provenance_names_the_message_and_the_span() -> None:
    messages = [Message("assistant", "Hello!"), Message("user", "Well, I live in Oslo and my dog is ill.")]
    spans = [messages[fact.message].text[fact.start : fact.end] for fact in extract(messages)]
    assert spans == ["Well, I live in Oslo", "my dog is ill."]


PIECES = wordlists.words("""
    I my 's is not no , . and Bob ? - ( " from to likes Oslo the she : he it's i'm You 7
""")


@given(
    st.lists(
        st.sampled_from(sorted(PIECES)),
        max_size=25,
    ),
    st.text(max_size=40),
)
@settings(max_examples=300, deadline=None)
def test_no_text_breaks_it(words: list[str], tail: str) -> None:
    text = " ".join(words) + tail
    messages = [Message("assistant", text), Message("user", text), Message("assistant", text), Message("user", "Yes")]
    for fact in extract(messages):
        assert fact.text.strip()
        assert 0 <= fact.start <= fact.end <= len(messages[fact.message].text)
    read(text)


TURNS = [
    turn[3:] for row in curator.rows(curator.CORPORA / "second-turns.jsonl", held_out=False) for turn in row["turns"]
]


JOINTS = [
    "my",
    "who's",
    "'s",
    "n",
    "2",
    "4",
    "r",
    "an",
    "been",
    "neither",
    "nor",
    "and",
    "so",
    "is",
    "*740",
    "actually",
    "no",
    "sorry",
    "I",
    "mean",
    "used",
    "to",
    "but",
    "yes",
    "is",
]


def test_garbled_talk_raises_nothing() -> None:
    chance = random.Random(7)
    words = [word for turn in TURNS for word in turn.split()] + JOINTS * 20
    for _ in range(600):
        said = " ".join(chance.choices(words, k=chance.randint(1, 14)))
        talk = [
            Message("user", chance.choice(TURNS)),
            Message("assistant", chance.choice(TURNS)),
            Message("user", said),
        ]
        for fact in extract(talk):
            assert 0 <= fact.start <= fact.end <= len(talk[fact.message].text)
            read(fact.text)


def test_a_possession_of_nothing_has_no_attribute() -> None:
    for text in ("User's is Rex", "User's 's is 5", "My is in Rome"):
        fact = read(text)
        assert fact is None or fact.slot is None or fact.value


def test_each_part_is_a_fact() -> None:
    found = extract([Message("user", "i work at lidl i have two kids")])
    assert [fact.text for fact in found] == ["User works at lidl", "User has two kids"]


def test_offsets_lead_back() -> None:
    typed = "hes 7 n im 34 btw"
    mended = spelling.mend(typed)
    at = mended.text.index("34")
    assert typed[mended.original(at) :].startswith("34")
    assert mended.original(len(mended.text)) == len(typed)


def test_a_fact_points_at_what_was_typed() -> None:
    typed = "dont ask. im allergic to nuts"
    (fact,) = extract([Message("user", typed)])
    assert typed[fact.start : fact.end] == "im allergic to nuts"


def test_what_a_friend_has_is_the_friends() -> None:
    fact = read("User's friend has three cats")
    assert fact is not None
    assert fact.subject == "user's friend"


def test_unlisted_verbs_lose_their_ending() -> None:
    assert [verbs.lemma(word) for word in ("grokking", "zorps", "florped")] == ["grokk", "zorp", "florp"]


def test_a_sentence_counts_up_to_where_it_leaves_english() -> None:
    found = extract([Message("user", "My name is Jürgen and I live in Köln, meine Frau heißt Anke")])
    assert [fact.text for fact in found] == ["User's name is Jürgen", "User lives in Köln"]
