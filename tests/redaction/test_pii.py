"""Redaction: what is replaced, what is refused, nested values, and the evaluation's own counting."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.evals.pii import report
from bench.evals.scoring import read_rows
from service.domain.errors import PiiRejected
from service.domain.text import RedactionCount
from service.redaction import detection
from service.redaction.detection import names, scorer, value_shapes

LINES = [row["text"] for row in read_rows(Path(__file__).parents[1] / "corpora" / "pii" / "untouched" / "prose.jsonl")]


def test_corpus_is_broad() -> None:
    assert len(LINES) >= 150


def test_the_whole_corpus_at_once() -> None:
    """Neighbouring lines give no false context either."""
    text = "\n".join(LINES) + "\nThat is all."
    assert [text[item.start - 30 : item.end] for item in detection.find(text)] == []


def test_lower_case_keeps_every_place() -> None:
    text = "\u0130stanbul PASSWORD"
    assert len(names.lower(text)) == len(text)


def test_the_end_of_a_uuid_is_no_account_number() -> None:
    number = "be00-a1b2c3d4e067"  # its check digits hold
    assert detection.redact(f"seat 2a3afdc8-fdc4-4705-{number}").text == f"seat 2a3afdc8-fdc4-4705-{number}"
    assert detection.redact(f"to {number}").text == "to [REDACTED:IBAN]"


@pytest.mark.parametrize(
    "text",
    [
        "My wife's password manager is 1Password.",
        "password manager: 1Password, the one at work, too",
        "We switched from Dashlane to RoboForm9 as our password manager.",
        "Unser Passwortmanager ist KeePass2.",
    ],
)
def test_the_name_of_a_password_manager_is_no_password(text: str) -> None:
    assert detection.redact(text).text == text


def test_the_password_of_a_password_manager_is_one() -> None:
    text = "The password of my password manager is Amsel#47 and it is called 1Password."
    assert detection.redact(text).text == text.replace("Amsel#47", "[REDACTED:PASSWORD]")


@pytest.mark.parametrize(
    "text",
    [
        "I use Python3.",
        "We use Neo4j for graphs.",
        "I went with Pixel8.",
        "Wir arbeiten mit Angular17.",
        "Uso Kubuntu24 sul portatile.",
        "My favourite album is Blink182.",
        "Our user portal runs on Drupal10.",
        "Reopen 5512, Hanne Dahl still cannot log in.",
        "el servidor de pruebas escucha en el puerto 8081",
    ],
)
def test_a_name_or_a_number_alone_is_no_secret(text: str) -> None:
    assert detection.redact(text).text == text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("it's Heron91 for the wifi upstairs", "Heron91"),
        ("The safe opens with Amsel61", "Amsel61"),
        ("Anmelden mit karl und Pfau21", "Pfau21"),
        ("inloggen met jan en Fiets7", "Fiets7"),
        ("la clé wifi est Mouette14", "Mouette14"),
        ("mi pin es 6203", "6203"),
    ],
)
def test_a_name_or_a_number_near_a_word_about_access_is_a_secret(text: str, secret: str) -> None:
    assert detection.redact(text).text == text.replace(secret, "[REDACTED:PASSWORD]")


def test_only_the_span_is_replaced_and_counted() -> None:
    result = detection.redact("  mail a@b.org or c@d.org,\ncall +49 30 901820 ")
    assert result.text == "  mail [REDACTED:EMAIL] or [REDACTED:EMAIL],\ncall [REDACTED:PHONE] "
    assert result.redactions == (RedactionCount("EMAIL", 2), RedactionCount("PHONE", 1))


def test_overlap_becomes_one_span_under_the_stronger_label() -> None:
    text = "x postgresql://bob@example.org:s3cret!@10.0.0.1/db y"
    (found,) = detection.find("x postgresql://bob:s3cret!@10.0.0.1/db y")
    assert found == detection.Finding(2, 38, "CONNECTION_STRING")
    assert "s3cret" not in detection.redact(text).text


def test_findings_ascend_without_overlap() -> None:
    text = "a@b.org 10.0.0.1 my password is Frosch99! +49 30 901820 4111 1111 1111 1111 a@b.org"
    found = detection.find(text)
    assert len(found) == 6
    assert all(left.end <= right.start for left, right in pairwise(found))


PIECES = st.sampled_from(
    [
        "my password is ",
        "hunter2 ",
        "a@b.org",
        "4111 1111 1111 1111",
        "call me at ",
        "555-0134",
        " 12 ",
        "api key: ",
        "x9K2mQ7pLw4Zr8Tn",
        "[REDACTED:EMAIL]",
        "\n",
        ": ",
        "=",
        "10.0.0.1",
        "token ",
        '"',
        "DE89370400440532013000",
        "-",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_redacting_twice_is_redacting_once(text: str) -> None:
    try:
        once = detection.redact(text)
    except PiiRejected:
        return
    assert detection.redact(once.text) == detection.Redacted(once.text, ())


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join), st.lists(PIECES, max_size=12).map("".join))
def test_tokens_judged_in_another_text_change_no_finding(before: str, text: str) -> None:
    labels: scorer.Labels = {}
    detection.find(before + text, labels)
    assert detection.find(text, labels) == detection.find(text)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_survived(text: str) -> None:
    found = detection.find(text)
    assert all(0 <= item.start < item.end <= len(text) for item in found)


def test_json_values_and_keys_are_redacted() -> None:
    value = {"a@b.org": ["c@d.org", {"note": "call +49 30 901820", "n": 7, "ok": True, "none": None}]}
    clean, redactions = detection.redact_json(value)
    assert clean == {
        "[REDACTED:EMAIL]": ["[REDACTED:EMAIL]", {"note": "call [REDACTED:PHONE]", "n": 7, "ok": True, "none": None}]
    }
    assert redactions == (RedactionCount("EMAIL", 2), RedactionCount("PHONE", 1))
    assert value["a@b.org"][0] == "c@d.org"


def test_keys_that_become_the_same_keep_their_values() -> None:
    value = {"a@b.org": 1, "c@d.org": 2, "[REDACTED:EMAIL]": 3, "e@f.org": 4, "[REDACTED:EMAIL]_3": 5}
    clean, _ = detection.redact_json(value)
    assert isinstance(clean, dict)
    assert clean == {
        "[REDACTED:EMAIL]_2": 1,
        "[REDACTED:EMAIL]_4": 2,
        "[REDACTED:EMAIL]": 3,
        "[REDACTED:EMAIL]_5": 4,
        "[REDACTED:EMAIL]_3": 5,
    }


def test_json_announcement_without_value_is_rejected() -> None:
    with pytest.raises(PiiRejected):
        detection.redact_json({"note": "my password is"})


def test_quotes_make_code_a_value() -> None:
    assert value_shapes.stands_for_something("Summer(2024)")
    assert not value_shapes.stands_for_something("Summer(2024)", quoted=True)


def test_entropy_in_bits() -> None:
    assert value_shapes.entropy_bits("") == 0
    assert value_shapes.entropy_bits("aaaa") == 0
    assert value_shapes.entropy_bits("abcd") == pytest.approx(2)


ROWS = [
    {"kind": "positive", "text": "mail a@b.org", "spans": [{"start": 5, "end": 12, "label": "EMAIL"}]},
    {"kind": "positive", "text": "mail nobody", "spans": [{"start": 5, "end": 11, "label": "EMAIL"}]},
    {"kind": "positive", "text": "at 10.0.0.1", "spans": [{"start": 3, "end": 11, "label": "PHONE"}]},
    {"kind": "negative", "text": "my password", "spans": []},
    {"kind": "negative", "text": "plain prose", "spans": []},
    {"kind": "hard_negative", "text": "see c@d.org", "spans": []},
]


def test_the_report_counts_covered_labelled_and_touched(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    lines = [line.split() for line in report(path).splitlines()]
    assert ["EMAIL", "2", "0.500", "0.500"] in lines
    assert ["PHONE", "1", "1.000", "0.000"] in lines
    assert ["gated", "3", "0.667", "0.333"] in lines
    assert ["negative", "1", "of", "2", "touched"] in lines
    assert ["hard_negative", "1", "of", "1", "touched"] in lines
    assert ["precision", "1.000", "of", "2", "findings", "in", "positives"] in lines
