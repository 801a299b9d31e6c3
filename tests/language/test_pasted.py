"""What of a message is the sender's own, by the kind of text that was pasted into it.

The corpus `tests/corpora/talk/pasted.jsonl` (its test stands in test_talk) was written by someone who had not seen the
rules; the rules were tuned on it since.
"""

from __future__ import annotations

import time

import pytest

from service.language.talk.blocks import spoken

Told = list[tuple[str | None, str]]


def told(text: str) -> Told:
    """Who says what in a message; None for its sender."""
    return [(block.speaker, text[block.start : block.end].strip()) for block in spoken(text)]


@pytest.mark.parametrize(
    "text",
    [
        "I moved to Lisbon last month.\n\nCan you recommend a gym?",
        "I have a headache for three days and I take ibuprofen.\nIs this normal?",
        "Project Falcon\nBackend: Rust\nDeadline: 15 January\nLead: Greta\nPlease keep this in mind.",
        "Here's what I have so far for the trip:\n- flights: 3 May, LH 1172\n- hotel: Casa do Barrio\n- I'm vegetarian",
        "- I have two cats;\n- my sister lives in Rome;\n- I run 10 km every Sunday;",
        "API RATE LIMIT: 500 per minute. The gateway is Kong 3.4.",
        "NOTE: I'm allergic to penicillin. Also my doctor is Dr. Weiss.",
        "From: Berlin\nTo: Munich\nDate: 5 June\nI'd like the window seat.",
        "hey, i just got back from japan\nwe spent 2 weeks in kyoto\nwhat should we cook tonight?",
        "My sister Ana is getting married.\nShe lives in Porto.\nCan you help me write a speech?",
        'My mom always says "you are what you eat" and she\'s a butcher.',
        'I\'m reading "The Name of the Wind" and my daughter Ida is in second grade.',
        "For the contract: we sign on Friday with Bob.",
        "I love my job. I moved here in May.\nthanks!",
        "Please remember this note: I park in lot C.",
    ],
)
def test_the_senders_own_words_stay(text: str) -> None:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    assert told(text) == [(None, line) for line in lines]


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("```\nI am root\n```\nwe use vim", ["we use vim"]),
        ("2025-03-02 01:14:09 ERROR I am down\nwe run it in Oslo", ["we run it in Oslo"]),
        ("1\n00:00:01,000 --> 00:00:03,500\nI killed him.\n\nI teach film.", ["I teach film."]),
        ("a=1 b=2\nI use Fedora 40", ["I use Fedora 40"]),
        ("id,name,dob\n1,Ann,1990\n2,Bob,1985\nI need it as JSON", ["I need it as JSON"]),
        ("FOR SALE: piano. I am moving abroad.\nwe have no space", ["we have no space"]),
        ('★★☆☆☆ "I want my money back" – Gill\nI run the shop.', ["I run the shop."]),
        ("THE TIDE IS OUT\nBy Ann Lee - The Echo\nI saw it all, he said.\nlol that's my town", ["lol that's my town"]),
        ("1/ I quit today.\n2/ My boss cried.\nI'm in year 2", ["I'm in year 2"]),
        ("A: Have you a dog? B: Yes, I have two.\nI teach at a school.", ["I teach at a school."]),
        (
            "Outside it rained. I was king.\nThat's the start of my short story.",
            ["That's the start of my short story."],
        ),
        ("Out of office: I am in Peru. Ask Lisa.\nannoying, I need her form", ["annoying, I need her form"]),
        ('Translate into German: "My name is Peter, I am forty." I teach it.', ["I teach it."]),
        ('"I was sober nine years when he died." We meet on Monday.', ["We meet on Monday."]),
        ("Can you check my grammar?\n\nLast summer I have went to Rome.", ["Can you check my grammar?"]),
        ("My boss sent this:\nI am on leave in May.\nI sold my car.", ["My boss sent this"]),
        ("I lost my heart to you\nAnd the moon it cried too\nI have no shoes to wear\nAnd nobody would care", []),
    ],
)
def test_pasted_texts_are_left_out(text: str, own: list[str]) -> None:
    assert told(text) == [(None, line) for line in own]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("From: Ann Lee <a@b.example>\nSubject: x\n\nI am in Oslo.", [("Ann Lee", "I am in Oslo.")]),
        (
            "From: Ann\nSubject: x\nI am in Oslo.\n--\nI live in Rome.",
            [("Ann", "I am in Oslo."), (None, "I live in Rome.")],
        ),
        (
            "> On 12 Feb, Joost wrote:\n> I can do Tuesday.\nI can't.",
            [("Joost", "I can do Tuesday."), (None, "I can't.")],
        ),
        (
            "Dear Sir,\nI apply for the job.\nYours, Wilf Ack\n\nWe open in May.",
            [("Wilf Ack", "I apply for the job."), (None, "We open in May.")],
        ),
        (
            "[21:04] Nadia: im in labour\n[21:05] Femi: on my way\nI am at work.",
            [("Nadia", "im in labour"), ("Femi", "on my way"), (None, "I am at work.")],
        ),
        ("User: I am diabetic.\nAssistant: I see.\nI build this bot.", [(None, "I build this bot.")]),
        ("[10:01] Ann: I am late\n[10:02] Me: I wait here", [("Ann", "I am late"), (None, "I wait here")]),
    ],
)
def test_mails_letters_and_chats_are_told_in_the_name_of_whom_they_quote(text: str, expected: Told) -> None:
    assert told(text) == expected


def test_a_sentence_that_says_whom_it_quotes_stays_whole() -> None:
    [block] = spoken('"I bought a boat. I quit my job," said Neil Farrow.')
    assert (block.start, block.whole) == (0, True)


@pytest.mark.parametrize(
    "line",
    [
        "> quoted text here\n",
        "On Tue, Ann wrote:\n",
        "Subject: x\n",
        "Ann: hello there my friend\n",
        "A: hi B: yes ",
        "2025-03-02T01:14:09Z ERROR x\n",
        "def f(x):\n",
        "a,b,c,d\n",
        '"I am here now today" said ',
        '"',
        "'a ",
        "Dear Ann,\n",
        "Regards, ",
        "ALERT ALERT: I am. ",
        "I (be) ",
        "this ",
        "translate this\n",
        "is this spam?\n",
        "my story: I am\n",
        "--- \n",
        "[",
        "a=b ",
        "\n\n",
        " ",
        "The Old Man\n",
        "verse line here it goes\n",
    ],
)
def test_long_messages_are_read_in_linear_time(line: str) -> None:
    started = time.perf_counter()
    spoken(line * (200_000 // len(line)) + "\nwhat does this mean?")
    assert time.perf_counter() - started < 30
