"""A real model answers on every answer scale with the default prompts, and for annotators."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from language_model import KEY, MODEL, FaultProxy

from edokit import Annotations, Scale
from edokit.members import MemberData
from edokit.members.recipes.llm import LanguageModel
from edokit.members.supervision import soft_targets

Proxies = Callable[..., FaultProxy]
TEXTS = ("What a lovely day.", "Go away, you fool.")


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.mark.parametrize(
    ("scale", "classes", "requests"),
    [
        (Scale(), ("friendly", "angry", "neither of both"), 2),
        (Scale("ordinal", (1, 2, 3, 4, 5)), ("1", "2", "3", "4", "5"), 2),
        (Scale("multi-label"), ("joy", "anger"), 4),
    ],
    ids=lambda given: str(given) if isinstance(given, Scale) else "",
)
def test_the_default_prompt_of_a_scale_is_answered(
    proxy: Proxies, scale: Scale, classes: tuple[str, ...], requests: int
) -> None:
    front = proxy()
    member = LanguageModel(len(classes), base_url=front.url, model=MODEL)
    member.fit(MemberData([], lambda epoch: np.zeros((0, 0)), classes=classes, scale=scale))
    probabilities = member.predict_proba(TEXTS)
    rows = scale.rows(probabilities)
    np.testing.assert_allclose(rows.sum(axis=-1), 1)
    assert (probabilities > 0).all()
    assert probabilities.shape == (2, len(classes))
    front.wait_for(lambda: front.in_flight == 0)
    assert len(front.answered) == requests
    assert (member.details["failures"], member.details["probabilities"]) == (0, "logprobs")


def test_an_annotators_examples_change_what_the_model_answers(proxy: Proxies) -> None:
    rows = [
        (f"i{k}", who, label, f"{TEXTS[k % 2]} ({k})")
        for k in range(6)
        for who, label in (("mild", "polite"), ("strict", "rude"), ("fair", "polite"))
    ]
    table = dict(zip(("item", "annotator", "label", "text"), zip(*rows, strict=True), strict=True))
    people = Annotations.from_table(table)
    data = MemberData(
        people.texts, lambda epoch: soft_targets(people), annotations=people, classes=people.classes
    )
    member = LanguageModel(2, base_url=proxy().url, model=MODEL, examples=4)
    member.fit(data, random_state=0)
    assert member.known_annotators == ("fair", "mild", "strict")
    asked = [["mild"], ["strict"], ["never seen"], []]
    mild, strict, unknown, nobody = member.predict_proba([TEXTS[0]] * 4, annotators=asked)[:, 1]
    assert strict > mild
    assert unknown == nobody
