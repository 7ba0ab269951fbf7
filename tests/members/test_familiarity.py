"""Texts that are unlike those of the fit are known, flagged, and may get the constant answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

import edokit
from commands import edo
from edokit import EDOWarning, simulate
from edokit.members import Group, train_members
from edokit.members.familiarity import UNFAMILIAR, Familiarity
from edokit.members.layout import FAMILIARITY
from tests.errors import raises_code

PEOPLE = simulate("two-camps", items=(200, 80, 60), random_state=0).annotations
ORDINARY = [str(text) for text in PEOPLE.split("test").texts]
STRANGE = ["遅いバスがまた来た", "😀😂👍🔥🎉", "zqxj vvkw qqpz", "..."]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Members, an ensemble and a bundle."""
    folder = tmp_path_factory.mktemp("familiarity")
    groups = [Group("linear", 2)]
    trained = train_members(PEOPLE, groups, out=folder / "members", jobs=1)
    edokit.fit(trained.predictions["dev"], PEOPLE.split("dev"), out=folder / "ensemble")
    edokit.Bundle.create(folder / "ensemble", folder / "members", folder / "bundle")
    return folder


def test_ranks_of_new_texts_are_spread_evenly_and_strange_texts_rank_last() -> None:
    rng = np.random.default_rng(0)
    words = [f"{first}{last}" for first in "bcdfglmnprst" for last in ("ake", "ore", "inst", "ul")]
    texts = [" ".join(rng.choice(words, rng.integers(4, 15))) for _ in range(1500)]
    familiarity = Familiarity.fit(texts[:1000])
    ranks = familiarity.rank(texts[1000:])
    assert abs(ranks.familiarity.mean() - 0.5) < 0.06
    assert ranks.unfamiliar.mean() < 3 * UNFAMILIAR
    assert ranks.is_readable.all()
    strange = familiarity.rank(STRANGE)
    assert strange.unfamiliar.all()
    assert not strange.is_readable[:3].any()


def test_equal_texts_are_held_out_together() -> None:
    texts = [f"{word} and {word}" for word in ("apple", "stone", "river", "cloud", "fence")] * 4
    surprises = Familiarity.fit(texts).surprises
    assert surprises.min() > np.log(5)  # none is known from its copies
    groups = [f"author-{number}" for number in range(len(texts))]
    assert Familiarity.fit(texts, groups).surprises.min() > np.log(5)


def test_what_cannot_be_read_gets_the_constant_answer(made: Path) -> None:
    bundle = edokit.load(made / "bundle")
    constant = bundle.ensemble.constant_.shares
    described = bundle.describe([*ORDINARY[:20], *STRANGE[:3]])
    assert described.unfamiliar is not None
    assert described.unfamiliar[20:].all()
    np.testing.assert_allclose(described.probabilities[20:], np.tile(constant, (3, 1)), atol=1e-9)
    answered = bundle.describe(STRANGE[:3], unfamiliar="answer")
    assert np.abs(answered.probabilities - constant).max() > 1e-3
    for policy in ("constant", "people"):
        handled = bundle.describe([*ORDINARY[:20], *STRANGE], unfamiliar=policy)
        flags = handled.unfamiliar
        if policy == "people":
            assert list(handled.decisions[flags]) == ["people"] * flags.sum()
            assert list(handled.decisions[~flags]) == list(handled.labels[~flags])
        else:
            expected = np.tile(constant, (flags.sum(), 1))
            np.testing.assert_allclose(handled.probabilities[flags], expected, atol=1e-9)


def test_unfamiliar_texts_are_for_people_where_a_promise_is_made(made: Path) -> None:
    from edokit.serve.batching import Answerer
    from edokit.serve.requests import Question

    bundle = edokit.load(made / "bundle")
    escalation = bundle.ensemble.escalation("45%")
    assert escalation.threshold is not None
    texts = [*ORDINARY, *STRANGE[:3]]
    handled = bundle.describe(texts, escalate=escalation)
    assert handled.for_people is not None
    assert handled.for_people[-3:].all()
    assert not handled.for_people.all()
    answered = bundle.describe(texts, escalate="45%", unfamiliar="answer")
    assert answered.for_people is not None
    assert (answered.for_people <= handled.for_people).all()
    records = Answerer(bundle, None, escalation)(Question(texts))
    assert [record["decision"] for record in records] == list(handled.decisions)
    person = str(PEOPLE.annotators[0])
    (record,) = Answerer(bundle, None, escalation)(Question(texts[:1], panel=(person,)))
    assert "decision" not in record
    with raises_code("conflicting-options"):
        bundle.describe(texts, escalate="45%", panel=[person])


@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_the_constant_survives_the_temperature_of_a_pool(made: Path, temperature: float) -> None:
    from dataclasses import replace

    bundle = edokit.load(made / "bundle")
    fitted = replace(bundle.ensemble.fitted_, temperature=temperature)
    bundle.ensemble._keep(fitted)
    with pytest.warns(EDOWarning, match="1 of 1 text"):
        answers = bundle.predict_proba(STRANGE[:1])
    np.testing.assert_allclose(answers[0], fitted.constant.shares, atol=1e-9)


def test_a_panel_has_no_label_for_a_text_that_cannot_be_read(made: Path) -> None:
    bundle = edokit.load(made / "bundle")
    people = [str(name) for name in PEOPLE.annotators[:2]]
    texts = [*ORDINARY[:2], STRANGE[0]]
    answered = bundle.describe(texts, panel=people)
    labels = answered.to_table()["label"].to_pylist()
    assert labels[:2] == answered.labels[:2].tolist()
    assert labels[2] is None
    assert [record["label"] for record in answered.to_records()] == labels
    assert None not in bundle.describe(texts).to_table()["label"].to_pylist()
    asked = bundle.describe(texts, panel=people, unfamiliar="answer")
    assert None not in asked.to_table()["label"].to_pylist()


def test_familiarity_is_the_same_in_every_answer(made: Path, tmp_path: Path) -> None:
    bundle = edokit.load(made / "bundle")
    texts = [*ORDINARY[:4], STRANGE[0]]
    wanted = bundle.describe(texts).familiarity
    people = [str(name) for name in PEOPLE.annotators[:2]]
    for view in ({"panel": people}, {"annotators": [people] * 5}, {"answer_for": "f1"}):
        np.testing.assert_array_equal(bundle.describe(texts, **view).familiarity, wanted)
    (tmp_path / "new.txt").write_text("\n".join(texts), encoding="utf-8")
    out = tmp_path / "out.csv"
    code, answer, _ = edo(
        "predict", made / "bundle", "--texts", tmp_path / "new.txt", "--out", out, "--json"
    )
    assert code == 0
    table = pyarrow.csv.read_csv(out)
    np.testing.assert_allclose(table["familiarity"].to_numpy(), wanted)
    assert json.loads(answer)["unfamiliar"] == table["unfamiliar"].to_pylist().count(True)
    records = bundle.describe(texts).to_records()
    assert [record["unfamiliar"] for record in records] == table["unfamiliar"].to_pylist()


def test_a_folder_of_an_earlier_version_says_that_familiarity_is_not_known(
    made: Path, tmp_path: Path
) -> None:
    import shutil

    members = Path(shutil.copytree(made / "members", tmp_path / "members"))
    (members / FAMILIARITY).unlink()
    bundle = edokit.Bundle.create(made / "ensemble", members, tmp_path / "bundle")
    assert bundle.describe(ORDINARY[:2]).familiarity is None
    with raises_code("missing-familiarity"):
        bundle.describe(ORDINARY[:2], unfamiliar="people")
    (tmp_path / "new.txt").write_text(ORDINARY[0], encoding="utf-8")
    given = ["predict", tmp_path / "bundle", "--texts", tmp_path / "new.txt"]
    code, said, _ = edo(*given, "--out", tmp_path / "out.csv")
    assert code == 0
    assert "is not known" in said


@pytest.mark.parametrize(
    "change",
    [
        {"counts": np.ones(3, dtype=np.uint32)},
        {"pieces": np.ones(5)},
        {"surprises": np.zeros(0, dtype=np.float32)},
    ],
)
def test_a_damaged_file_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    from dataclasses import replace

    replace(Familiarity.fit(ORDINARY), **change).save(tmp_path)
    with raises_code("damaged-file", FAMILIARITY):
        Familiarity.load(tmp_path)


def test_an_unknown_policy_is_refused(made: Path, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text(ORDINARY[0], encoding="utf-8")
    given = ["predict", made / "bundle", "--texts", tmp_path / "new.txt"]
    code, _, said = edo(*given, "--out", tmp_path / "o.csv", "--unfamiliar", "guess")
    assert code == 2
    assert "--unfamiliar must be one of 'answer', 'constant', 'people'" in said
