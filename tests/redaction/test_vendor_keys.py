"""Keys by the formats that vendors publish are found in sentences, and what only looks generated is left alone."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable

import pytest

from service.redaction import detection
from tests.redaction.vendor_grammars import SHAPES, samples

WRAPPED = frozenset({"Azure storage", "Azure service bus", "Azure shared access"})
"""Only a part of the value is the secret: the last one."""


def kept(shape: str, value: str, text: str) -> bool:
    """Whether enough of the value is left in the redacted text to be of use."""
    clean = detection.redact(text).text
    return value[-20:-4] in clean or (shape not in WRAPPED and value[: len(value) // 2] in clean)


@pytest.mark.parametrize("shape", SHAPES)
def test_of_two_hundred_keys_at_least_all_but_two_are_found(shape: str) -> None:
    left = [value for value, text in samples(shape) if kept(shape, value, text)]
    assert len(left) <= 2, left[:3]


COMMON = frozenset({"Mailgun", "Replicate"})
"""Begin like ids of applications do, so ids may begin like them."""


@pytest.mark.parametrize("shape", sorted(SHAPES.keys() - WRAPPED - COMMON))
def test_no_name_may_hold_them(shape: str) -> None:
    passed = [value for value, _ in samples(shape, 20) if not detection.holds_secret(f"chat {value}")]
    assert passed == []


CHANCE = random.Random(5)


def digits(count: int) -> str:
    return str(CHANCE.randrange(10 ** (count - 1), 10**count))


def hexadecimal(count: int) -> str:
    return CHANCE.randbytes(count // 2).hex()


NAMES: dict[str, Callable[[], str]] = {
    "uuid": lambda: f"{hexadecimal(8)}-{hexadecimal(4)}-7{hexadecimal(4)[1:]}-a{hexadecimal(4)[1:]}-{hexadecimal(12)}",
    "prefixed uuid": lambda: f"session-{NAMES['uuid']()}",
    "git commit": lambda: hexadecimal(40),
    "md5": lambda: hexadecimal(32),
    "sha256": lambda: f"sha256:{hexadecimal(64)}",
    "auth0": lambda: f"auth0|{hexadecimal(24)}",
    "google": lambda: f"google-oauth2|{digits(21)}",
    "number": lambda: digits(CHANCE.choice([6, 8, 10])),
    "snowflake": lambda: "1" + digits(17),
    "mail": lambda: f"ana.{digits(3)}@example.org",
    "telephone": lambda: f"+4917{digits(8)}",
    "chat of Slack": lambda: f"T{digits(8)}:C0{digits(8)}:1700000000.{digits(6)}",
    "thread": lambda: f"thread_{hexadecimal(24)}",
    "live": lambda: f"conv_live_{hexadecimal(24)}",
    "order": lambda: f"ORD-2026-{digits(7)}",
    "ulid": lambda: "01" + "".join(CHANCE.choices("0123456789ABCDEFGHJKMNPQRSTVWXYZ", k=24)),
}


@pytest.mark.parametrize("kind", NAMES)
def test_usual_ids_are_taken(kind: str) -> None:
    refused = [name for name in (NAMES[kind]() for _ in range(200)) if detection.holds_secret(name)]
    assert refused == []


@pytest.mark.parametrize("kind", ["uuid", "git commit", "md5", "sha256", "order", "ulid"])
def test_what_only_looks_generated_stays(kind: str) -> None:
    for name in (NAMES[kind]() for _ in range(200)):
        text = f"It is {name}, as you know."
        assert detection.redact(text).text == text


def test_a_picture_in_base64_stays() -> None:
    body = base64.b64encode(random.Random(3).randbytes(150_000)).decode()
    lines = "\n".join(body[at : at + 76] for at in range(0, len(body), 76))
    for text in (f"data:image/png;base64,{body}", lines):
        assert detection.find(text) == ()


AWS = "AKIAQ7ZR2LMX4VKP5TNB"


def in_digits(text: str, zero: int) -> str:
    """With the ten digits that begin at the code point `zero`."""
    return text.translate({48 + digit: zero + digit for digit in range(10)})


LOOK_ALIKES = [
    ("full width", "４１１１ １１１１ １１１１ １１１１"),
    ("unseen joiners", "4111\u200b1111\u200b1111\u200b1111"),
    ("soft hyphens", "AK\u00adIAQ7ZR2LMX4VKP5TNB"),
    ("hyphens that do not break", "sk\u2011proj\u2011" + "a8Kq2LmX9vKp4TnB8sWd3HcY6jFg1RtA5uEo0iQw"),
    ("Cyrillic letters", "\u0410KI\u0410Q7ZR2LMX4VKP5TNB"),
    ("Greek letters", "\u0391K\u0399\u0391Q7ZR2LMX4VKP5TNB"),
    ("styled letters", "".join(chr(0x1D5A0 + ord(each) - 65) if each > "9" else each for each in AWS)),
    ("full width mail", "ana＠example．org"),
    ("marks of direction", "\u202eAKIAQ7ZR2LMX4VKP5TNB\u202c"),
    ("en dashes", "4242\u20134242\u20134242\u20134242"),
    ("em dashes", "4242\u20144242\u20144242\u20144242"),
    ("Japanese lines", "4242\u30fc4242\u30fc4242\u30fc4242"),
    ("slashes", "6011/0009/9013/9424"),
    ("slashes of fractions", "6011\u20440009\u20449013\u20449424"),
    ("blanks of any width", "4242\u202f4242\u30004242\u20074242"),
    ("Arabic digits", in_digits("4242 4242 4242 4242", 0x660)),
    ("Devanagari digits", in_digits("4242424242424242", 0x966)),
    ("raised digits", "4242424242424242".translate({50: 0xB2, 52: 0x2074})),
    ("lowered digits", in_digits("4242424242424242", 0x2080)),
    ("black circles", in_digits("4242424242424242", 0x2776 - 1)),
    ("tags", "\U000e0020".join("4242424242424242")),
    ("keycaps", "".join(f"{each}\ufe0f\u20e3" for each in "4242424242424242")),
    ("struck out", "".join(f"{each}\u0336" for each in "4242424242424242")),
    ("Arabic digits of a telephone", in_digits("+49 176 12345678", 0x660)),
    ("dashes of a telephone", "(415)\u2011555\u20122671"),
    ("security number", in_digits("219-09-9999", 0x966).replace("-", "\u2012")),
    ("IBAN", "DE89\u20133704\u20130044\u20130532\u20130130\u201300"),
    ("IBAN in Arabic digits", "DE" + in_digits("89370400440532013000", 0x660)),
    ("key with tags", "\U000e0041".join("AKIAQ7ZR2LMX4VKP5TNB")),
    ("key with dashes", "sk\u2013proj\u2013" + "a8Kq2LmX9vKp4TnB8sWd3HcY6jFg1RtA5uEo0iQw"),
    ("own key", "l\u043ex_" + "a8Kq2LmX9vKp4TnB8sWd3HcY6jFg1RtA5uEo0iQw7Zr"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value"), LOOK_ALIKES, ids=[kind for kind, _ in LOOK_ALIKES])
def test_look_alikes_are_found_and_cut_out_where_they_are(kind: str, value: str) -> None:
    clean = detection.redact(f"Die Größe … \u200bist {value}, naïve Ωmega.").text
    assert clean.startswith("Die Größe … \u200bist ")
    assert clean.endswith(", naïve Ωmega.")
    assert "[REDACTED:" in clean
    assert len(clean) < 75
    assert "\u20e3" not in clean
    assert value.strip("\u202e\u202c") not in clean


def test_text_in_other_letters_stays() -> None:
    for text in (
        "Мама мыла раму в 2024 году, и это стоило 1500 рублей.",
        "Η Αθήνα έχει 664.046 κατοίκους από το 2011.",
        "会議は２０２４年３月５日の午前１０時からです。",
        "👨\u200d👩\u200d👧 on 12² m²",
        "इस साल १५०० लोग ٢٠٢٤ आए — 1990–2000, 3️⃣ बार।",
        "See https://example.org/4242/4242/4242/4242/a and 12/03/2024 10/04/2024.",
    ):
        assert detection.redact(text).text == text


def test_both_ends_of_a_range_of_addresses_are_found() -> None:
    for dash in "-\u2013":
        assert detection.redact(f"Use 10.0.0.1{dash}10.0.0.9.").text == f"Use [REDACTED:IP]{dash}[REDACTED:IP]."


GLUED = {
    "AWS": AWS,
    "GitHub": "ghp_" + "a8Kq2LmX9vKp4TnB8sWd3HcY6jFg1RtA5uEo",
    "own": "lox_" + "a8Kq2LmX9vKp4TnB8sWd3HcY6jFg1RtA5uEo0iQw7Zr",
    "Google": "AIza" + "a8Kq2LmX9vKp4TnB8sWd3HcY6jFg1RtA5uE",
    "GitLab": "glpat-" + "a8Kq2LmX9vKp4TnB8sWd",
    "SendGrid": "SG." + "a8Kq2LmX9vKp4TnB8sWd3H" + "." + "cY6jFg1RtA5uEo0iQw7Zra8Kq2LmX9vKp4TnB8sWd3H",
}


@pytest.mark.parametrize("whose", GLUED)
def test_a_letter_in_front_hides_no_key(whose: str) -> None:
    for letter in "px":
        name = letter + GLUED[whose]
        assert detection.holds_secret(name)
        assert detection.redact(f"It is {name}, yes.").text == f"It is {letter}[REDACTED:API_KEY], yes."
        clean, _ = detection.redact_json({name: 1})
        assert clean == {f"{letter}[REDACTED:API_KEY]": 1}


def test_words_that_end_like_a_prefix_stay() -> None:
    for name in (
        "flox_environment_configuration1",
        "roblox_PlayerController2024Module",
        "task-proj-a8kq2lmx9vkp4tnb8swd",
        "XAKIAQ7ZR2LMX4VKP5TNB",
    ):
        assert detection.redact(f"It is {name}, yes.").text == f"It is {name}, yes."
        assert not detection.holds_secret(name)


def test_an_unbroken_run_of_base64_holds_no_key_by_chance() -> None:
    blob = base64.urlsafe_b64encode(random.Random(4).randbytes(60)).decode()
    assert detection.find(f"{blob}{GLUED['GitHub']}") == ()


# -- ids ---------------------------------------------------------------------------------------------------------------

HEX, BASE_36, BASE_32 = "0123456789abcdef", "0123456789abcdefghijklmnopqrstuvwxyz", "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
WORDS = ("itest", "run", "job", "node", "lisbon", "demo", "order", "anna", "stage", "e2e", "batch", "release")
SENTENCES = (
    "Lives in Porto {}",
    "Lives in Berlin {}",
    "We talked about {} yesterday",
    "My favourite is {}.",
    "{} is done",
    "Anna works on {} this week",
    "Let's go with {}",
    "the container {} was restarted",
    "Das Paket {} ist angekommen",
    "{}",
)


def draw(chance: random.Random, alphabet: str, length: int) -> str:
    return "".join(chance.choices(alphabet, k=length))


KINDS: dict[str, Callable[[random.Random], str]] = {
    "word and hex": lambda chance: f"{chance.choice(WORDS)}-{draw(chance, HEX, 10)}",
    "word and base 36": lambda chance: f"{chance.choice(WORDS)}_{draw(chance, BASE_36, 8)}",
    "short commit": lambda chance: draw(chance, HEX, chance.randrange(7, 13)),
    "base 36": lambda chance: draw(chance, BASE_36, chance.randrange(6, 13)),
    "capitals": lambda chance: draw(chance, BASE_36, chance.randrange(6, 11)).upper(),
    "UUID without dashes": lambda chance: draw(chance, HEX, 32),
    "ULID": lambda chance: "01J" + draw(chance, BASE_32, 23),
}


@pytest.mark.parametrize("kind", KINDS)
def test_ids_stay(kind: str) -> None:
    chance = random.Random(kind)
    texts = [chance.choice(SENTENCES).format(KINDS[kind](chance)) for _ in range(400)]
    secrets = {"PASSWORD", "API_KEY"}
    assert [text for text in texts if any(item.label in secrets for item in detection.find(text))] == []
