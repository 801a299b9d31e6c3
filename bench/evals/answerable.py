"""Whether the probability of an answer tells questions that have one from those about what was never said.

Conversations are stored twice, as turns (infer=false) and as facts (infer=true), and every question is searched for in
both. Questions without an answer are of these kinds:

- those that the file labels so (category `adversarial`, or without evidence): most ask of one speaker what another did
- `other conversation`: questions of another conversation, asked about the speakers of this one

AUC: how often a question with an answer has the higher probability than one without; beside it that of the best score
and of the best similarity. The table of calibration weighs questions with and without an answer alike: what was said,
what was so, and how far they are apart on average (ECE). A hit is right when it holds evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bench.clients import Client
from bench.evals.stored_facts import facts, over_http, post, settled, store
from bench.load_conversations import load, read
from bench.numbers import mean, table
from bench.target import Service

OWN = Path(__file__).parents[2] / "tests" / "corpora" / "answerable.jsonl"
HITS, TIMEOUT_S, BINS = 10, 120, 10
NEVER_SAID, ELSEWHERE = "adversarial", "other conversation"
FORMS = ("turns", "facts")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it is asked of a conversation; `evidence`: turn ids, none where it has no answer."""

    conversation: str
    text: str
    kind: str
    evidence: frozenset[str]

    @property
    def has_answer(self) -> bool:
        return bool(self.evidence)


@dataclass(frozen=True, slots=True)
class SearchedQuestion:
    """What a search said: probability of an answer, best score, best similarity, and of each hit its probability and
    whether it holds evidence."""

    asked: Asked
    probability: float
    score: float
    similarity: float
    hits: tuple[tuple[float, bool], ...]

    @property
    def best_hit(self) -> float:
        return max((probability for probability, _ in self.hits), default=0.0)


def report(path: Path) -> str:
    """The tables of the file, and of the corpus that no coefficient was fitted on."""

    async def measure(service: Service, client: httpx.AsyncClient) -> str:
        parts = []
        for title, file in ((path.name, path), ("own corpus, not fitted on", OWN)):
            conversations, questions = read(file)
            found = await _searched(service, client, conversations, list(all_questions(conversations, questions)))
            parts.append(f"{title}\n\n{shown(found)}")
        return "\n\n".join(parts)

    return over_http(measure)


def all_questions(
    conversations: Sequence[Mapping[str, Any]], questions: Sequence[Mapping[str, Any]]
) -> Iterable[Asked]:
    """The questions of the file, and each that has an answer asked of the next conversation; a question of a labelled
    kind without evidence that is not there to have no answer is left out."""
    labelled = any(each["category"] == NEVER_SAID for each in questions)
    following = {
        each["id"]: after for each, after in zip(conversations, [*conversations[1:], *conversations[:1]], strict=True)
    }
    speakers = {each["id"]: each["speakers"] for each in conversations}
    for each in questions:
        own, other = each["conversation_id"], following[each["conversation_id"]]["id"]
        evidence = frozenset() if each["category"] == NEVER_SAID else frozenset(each["evidence"])
        if labelled and not evidence and each["category"] != NEVER_SAID:
            continue
        yield Asked(own, each["text"], each["category"], evidence)
        if evidence and other != own:
            renamed = _renamed(each["text"], dict(zip(speakers[own], speakers[other], strict=False)))
            yield Asked(other, renamed, ELSEWHERE, frozenset())


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for name, other in names.items():
        text = re.sub(rf"\b{re.escape(name)}\b", other, text)
    return text


async def _searched(
    service: Service, client: httpx.AsyncClient, conversations: Sequence[dict[str, Any]], questions: Sequence[Asked]
) -> dict[str, list[SearchedQuestion]]:
    sources: dict[str, dict[str, dict[str, set[str]]]] = {form: {} for form in FORMS}
    loader = Client(service.url, service.key, timeout_s=TIMEOUT_S)
    for each in conversations:
        as_turns, as_facts = ({**each, "id": _user(each["id"], form)} for form in FORMS)
        sources["turns"][each["id"]], _, _ = await load(loader, as_turns, captions=False)
        await store(client, as_facts)
    await settled(service)
    await loader.close()
    for each in conversations:
        found = await facts(client, {**each, "id": _user(each["id"], "facts")})
        sources["facts"][each["id"]] = {fact.id: {turn for _, turn in fact.sources} for fact in found}
    return {
        form: [await _ask(client, each, form, sources[form][each.conversation]) for each in questions] for form in FORMS
    }


def _user(conversation: str, form: str) -> str:
    return f"{conversation} as {form}"


async def _ask(client: httpx.AsyncClient, asked: Asked, form: str, sources: Mapping[str, set[str]]) -> SearchedQuestion:
    body = {"query": asked.text, "user_id": _user(asked.conversation, form), "limit": HITS, "reinforce": False}
    found = await post(client, "/v1/memories/search", body)
    hits = found["results"]
    return SearchedQuestion(
        asked,
        found["answer_probability"] or 0.0,
        max((hit["score"] for hit in hits), default=0.0),
        max((hit["similarity"] or 0.0 for hit in hits), default=0.0),
        tuple((hit["answer_probability"] or 0.0, bool(sources.get(hit["id"], set()) & asked.evidence)) for hit in hits),
    )


# -- what is printed --------------------------------------------------------------------------------------------------


def shown(found: Mapping[str, Sequence[SearchedQuestion]]) -> str:
    """AUC by kind of question, then calibration, for turns and for facts."""
    return "\n\n".join([_separation(found), *(_calibration(form, found[form]) for form in FORMS)])


def _separation(found: Mapping[str, Sequence[SearchedQuestion]]) -> str:
    measures = ("probability", "best_hit", "score", "similarity")
    head = ["AUC, questions with an answer and", "n", *(f"{form}, {each}" for form in FORMS for each in measures)]
    kinds = sorted({each.asked.kind for each in found[FORMS[0]] if not each.asked.has_answer})
    rows = []
    for kind in kinds:
        cells = []
        for form in FORMS:
            groups = [each for each in found[form] if each.asked.has_answer], _of_kind(found[form], kind)
            for measure in measures:
                values = [[getattr(each, measure) for each in group] for group in groups]
                cells.append(f"{auc(values[0], values[1]):.3f}")
        rows.append([kind, len(_of_kind(found[FORMS[0]], kind)), *cells])
    return table(head, rows)


def _of_kind(found: Sequence[SearchedQuestion], kind: str) -> list[SearchedQuestion]:
    return [each for each in found if each.asked.kind == kind]


def _calibration(form: str, found: Sequence[SearchedQuestion]) -> str:
    """Both halves weigh the same: of how many questions without an answer are asked, a file says nothing."""
    with_answer = sum(each.asked.has_answer for each in found)
    weight = {True: 0.5 / with_answer, False: 0.5 / (len(found) - with_answer)}
    results = [(each.probability, each.asked.has_answer, weight[each.asked.has_answer]) for each in found]
    hits = [(probability, right, weight[each.asked.has_answer]) for each in found for probability, right in each.hits]
    head = [f"{form}: probability", *(f"{at / BINS:.1f}-{(at + 1) / BINS:.1f}" for at in range(BINS)), "ECE"]
    rows = []
    for name, said in (("of an answer", results), ("of a hit", hits)):
        means, error = calibration(said)
        rows.append([f"{name}: was so", *means, f"{error:.3f}"])
    right, wrong = ([each for each, holds, _ in hits if holds is so] for so in (True, False))
    return f"{table(head, rows)}\nhits that hold evidence and others: AUC {auc(right, wrong):.3f}"


def calibration(said: Sequence[tuple[float, bool, float]]) -> tuple[list[str], float]:
    """By tenths of the probability how often it was so, and the expected calibration error. `said`: probability,
    whether it was so, and weight."""
    bins: list[list[tuple[float, bool, float]]] = [[] for _ in range(BINS)]
    for each in said:
        bins[min(BINS - 1, int(each[0] * BINS))].append(each)
    error, means = 0.0, []
    for group in bins:
        weight = sum(each[2] for each in group)
        was = sum(each[2] for each in group if each[1])
        error += abs(sum(each[0] * each[2] for each in group) - was)
        means.append(f"{was / weight:.2f}" if weight else "-")
    return means, error / (sum(each[2] for each in said) or 1.0)


def auc(high: Sequence[float], low: Sequence[float]) -> float:
    """How often one of `high` is above one of `low`; equal ones count half."""
    return mean(float(one > other) + 0.5 * float(one == other) for one in high for other in low)


if __name__ == "__main__":
    import sys

    print(report(Path(sys.argv[1])))
