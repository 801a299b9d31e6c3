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
