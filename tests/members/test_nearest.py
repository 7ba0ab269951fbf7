"""Members that look up the nearest answers, everybody's and the annotator's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from member_cases import KIND, RUDE

from edokit import Annotations
from edokit.members import MemberData
from edokit.members.recipes.nearest import Lookup
from edokit.members.registry import make_member
from edokit.members.supervision import soft_targets
from edokit.scales import NOMINAL

TEXTS = ["tea garden river", "awful rubbish late"]


def people(n: int = 120, contrary: int = 1, newcomer: int = 0) -> Annotations:
    """Five people answer 1 to rude texts and 0 to kind ones, by mistake sometimes the opposite.

    So many of them answer the other way round, and so does a newcomer, to so many texts.
    """
    rng = np.random.default_rng(0)
    rows: list[tuple[str, str, str, str]] = []
    for i in range(n):
        text = " ".join(rng.choice(RUDE if i % 2 else KIND, 4))
        labellers = [f"person-{a}" for a in range(5)] + ["newcomer"] * (i < newcomer)
        for a, name in enumerate(labellers):
            opposite = (a >= 5 - contrary) != (rng.random() < 0.1)
            rows.append((f"item-{i}", name, str((i + opposite) % 2), text))
    names = ("item", "annotator", "label", "text")
    return Annotations.from_table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def fitted(data: Annotations) -> Any:
    lesson = MemberData(list(data.texts), lambda epoch: soft_targets(data), annotations=data)
    return make_member("nearest", 2, {"annotators": True}).fit(lesson)


def answers(member: Any, name: str) -> Any:
    """The probability of 1 for a kind text and a rude one."""
    return member.predict_proba(TEXTS, annotators=[[name]] * 2)[:, 1]


def test_it_recovers_an_annotator_who_answers_the_other_way_round() -> None:
    member = fitted(people())
    kind, rude = member.predict_proba(TEXTS)[:, 1]
    assert kind < 0.35 < 0.65 < rude
    kind, rude = answers(member, "person-0")
    assert kind < 0.15 < 0.85 < rude
    kind, rude = answers(member, "person-4")
    assert rude < 0.25 < 0.75 < kind


def test_a_stranger_gets_the_anonymous_answer() -> None:
    member = fitted(people())
    np.testing.assert_array_equal(answers(member, "stranger"), member.predict_proba(TEXTS)[:, 1])


def test_one_label_moves_little_and_many_move_much() -> None:
    moves = []
    for labels in (1, 10, 100):
        member = fitted(people(contrary=0, newcomer=labels))
        moves.append(np.abs(answers(member, "newcomer") - member.predict_proba(TEXTS)[:, 1]).max())
    assert moves[0] < 0.15 < 0.5 < min(moves[1:])


def test_it_knows_on_which_texts_an_annotator_differs() -> None:
    data = people(200, contrary=0)
    is_about_trains = np.arange(200) % 4 > 1
    topics = np.where(is_about_trains, " train station rail", " kitchen stove spoon")
    texts = np.array([text + topic for text, topic in zip(data.texts, topics, strict=True)])
    differs = (data.annotator_codes == 4) & is_about_trains[data.item_codes]
    labels = np.where(differs, 1 - data.label_codes, data.label_codes).astype(np.int32)
    member = fitted(replace(data, texts=texts, label_codes=labels))
    asked = [f"{text}{topic}" for topic in dict.fromkeys(topics) for text in TEXTS]
    kitchen, train = member.predict_proba(asked, annotators=[["person-4"]] * 4)[:, 1].reshape(2, 2)
    assert kitchen[0] < 0.4 < 0.6 < kitchen[1]
    assert train[1] < 0.4 < 0.6 < train[0]


def test_a_text_that_is_like_no_other_gets_the_class_shares() -> None:
    data = people()
    shares = (data.soft_labels.sum(axis=0) + 1) / (len(data.items) + 2)
    np.testing.assert_allclose(fitted(data).predict_proba(["語"]), [shares])


@pytest.mark.filterwarnings("ignore:all . targets are the same")
@pytest.mark.parametrize("n", [1, 2])
def test_a_few_texts_are_enough(n: int) -> None:
    member = fitted(people(n))
    assert np.isfinite(answers(member, "person-1")).all()


def test_many_texts_are_predicted_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    from edokit.members.recipes import nearest

    data = people(40)
    whole = fitted(data)
    names = [["person-1", "person-4"], ["stranger"], [], ["person-0"]] * 10
    probabilities = whole.predict_proba(data.texts, annotators=names)
    monkeypatch.setattr(nearest, "_BLOCK", 7)
    parts = fitted(data)
    np.testing.assert_allclose(parts.predict_proba(data.texts, annotators=names), probabilities)


def test_an_answer_from_afar_counts_for_less_than_one() -> None:
    """Weights 1 and 1/2 are worth (1 + 1/2)² / (1 + 1/4) = 1.8 answers, and 2/3 of them say 0."""
    prior = np.array([[0.5, 0.5]])
    lookup = Lookup(
        texts=np.array([0, 1]),
        annotators=np.array([0, 0]),
        labels=np.eye(2),
        expected=np.tile(prior, (2, 1)),
        power=1.0,
        strength=3.0,
    )
    nobody = np.array([0])
    p = lookup.answers(np.array([[1.0, 0.5]]), nobody, nobody, prior, NOMINAL)
    moved = 1.8 * np.array([2 / 3, 1 / 3]) + 3.0 * prior[0]
    assert p[0] == pytest.approx(moved / moved.sum())
