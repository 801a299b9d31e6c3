"""Are roundabout statements, lists and open questions read as the plain statements that they are?"""

from __future__ import annotations

import pytest

from service.language.facts import Message, extract, questions


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("Neither my wife nor I drink coffee.", ["User and their wife don't drink coffee"]),
        ("Neither of us speaks Japanese.", ["User doesn't speak Japanese"]),
        ("What I love most is sailing.", ["User loves sailing"]),
        ("Languages I speak: Dutch and Frisian", ["User speaks Dutch", "User speaks Frisian"]),
        ("The dog, Pickles, had surgery in spring.", ["User's dog Pickles had surgery in spring"]),
        ("The kids go to a French school.", ["User's kids go to a French school"]),
        ("Mina and I got engaged!", ["User and Mina got engaged"]),
        ("The cat is a small mammal.", []),
        ("Say I earn 60k and my partner earns 40k, how much tax is that?", []),
        ("In my novel, I'm a detective and my sidekick is a parrot.", []),
        ("Brilliant, you saved my day!", []),
        ("My goals this year:\n- run a 10k\n- read more", [
            "User's goals this year are to run a 10k", "User's goals this year are to read more",
        ]),
        ("I'm allergic to:\n1. Nuts\n2. Latex\nThanks!", ["User is allergic to Nuts", "User is allergic to Latex"]),
    ],
)  # fmt: skip
def test_said_straight_on(said: str, facts: list[str]) -> None:
    assert [fact.text for fact in extract([Message("user", said)])] == facts


@pytest.mark.parametrize(
    ("question", "reply", "statement"),
    [
        ("What time do you usually get up?", "around six", "I usually get up around six"),
        ("What time do you usually get up?", "six", "I usually get up at six"),
        ("What kind of music are you into?", "dub", "I am into dub"),
        ("What do you usually have for breakfast?", "oatmeal", "I usually have oatmeal for breakfast"),
        ("How many hours do you sleep?", "seven", "I sleep seven hours"),
        ("How long have you been a nurse?", "12 years", "I have been a nurse for 12 years"),
        ("When did you move to Oslo?", "in 2019", "I moved to Oslo in 2019"),
        ("Where are you going on holiday?", "Crete", "I am going on holiday to Crete"),
        ("What size do you wear?", "42", "I wear size 42"),
        ("What's your shoe size?", "43", "My shoe size is 43"),
        ("Any dietary restrictions?", "halal only", "My dietary restrictions are halal only"),
        ("What do you think?", "great", None),
        ("How do you like it?", "great", None),
        ("What can I do for you?", "a haiku", None),
    ],
)
def test_a_question_and_its_answer(question: str, reply: str, statement: str | None) -> None:
    assert questions.statement(question, reply) == statement


@pytest.mark.parametrize(
    "foreign",
    [
        "Me llamo Lucía, vivo en Granada y trabajo de enfermera",
        "Ich mag keinen Fisch.",
        "Mieszkam w Krakowie i mam kota",
        "Je m'appelle Zoé, j'habite à Nantes",
        "Ik woon in Utrecht en ik heb twee katten",
        "Jeg bor i Oslo",
        "Ho 30 anni e lavoro alla Fiat",
        "我住在北京，我喜欢喝茶。",
    ],
)
def test_nothing_is_made_of_another_language(foreign: str) -> None:
    assert extract([Message("user", foreign)]) == ()


def test_a_sentence_counts_up_to_where_it_leaves_english() -> None:
    found = extract([Message("user", "My name is Jürgen and I live in Köln, meine Frau heißt Anke")])
    assert [fact.text for fact in found] == ["User's name is Jürgen", "User lives in Köln"]


@pytest.mark.parametrize(
    ("turns", "facts"),
    [
        (["u: What's the weather in Oslo? I'm going there on Friday."], ["User is going to Oslo on Friday"]),
        (["u: I love it there."], []),
        (["u: I left Philips, I'm at ASML now"], ["User works at ASML now", "User left Philips"]),
        (["u: I used to live in Rome, now I'm in Bari"], ["User lives in Bari now", "User used to live in Rome"]),
        (["u: I'm at ASML now"], ["User is at ASML now"]),
        (["u: My exam is on Monday. It got moved to Thursday."], ["User's exam got moved to Thursday"]),
        (["u: I take 20mg of ramipril. no wait, 10mg"], ["User takes 10mg of ramipril"]),
        (["u: I'm not allergic to dogs, just cats"], ["User is not allergic to dogs", "User is allergic to cats"]),
        (["u: My dad, who's 78, has a boat."], ["User's dad is 78", "User's dad has a boat"]),
        (["u: On Sundays my husband and I go hiking"], ["User and their husband go hiking on Sundays"]),
        (["u: I'm Ben, 41, divorced, two kids"], [
            "User's name is Ben", "User is 41 years old", "User is divorced", "User has two kids",
        ]),
        (["a: You're a nurse who has a beagle.", "u: correct"], ["User is a nurse", "User has a beagle"]),
        (["a: Since you live in Ghent, a walk might be nice?", "u: yes"], []),
        (["u: I'm 32. actually 33, had my birthday last week"], ["User is 33 years old"]),
        (["u: my boss is called Dave, oops I mean Derek"], ["User's boss is called Derek"]),
        (["u: I ordered the blue one, I mean the green one."], ["User ordered the green one"]),
        (["a: Your appointment is on the 4th.", "u: no the 5th"], ["User's appointment is on the 5th"]),
        (["a: Are you still with Vodafone?", "u: no"], ["User is no longer with Vodafone"]),
        (["u: living w my parents rn"], ["User is living with their parents right now"]),
        (["u: The funeral is on Thursday in Cork."], ["The funeral is on Thursday in Cork"]),
        (["a: You live in Ghent and you have two beagles.", "u: no, one"], ["User has one beagle"]),
        (["u: My essay: I was born in 1890 in Vienna."], []),
    ],
)  # fmt: skip
def test_what_was_said_around_it(turns: list[str], facts: list[str]) -> None:
    roles = {"u": "user", "a": "assistant"}
    found = extract([Message(roles[turn[0]], turn[3:]) for turn in turns])
    assert [fact.text for fact in found] == facts
