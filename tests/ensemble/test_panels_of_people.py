"""Answers for people and panels: effects on top of the pool, in Python and on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import edokit
from commands import answer, edo
from edokit import (
    Annotations,
    EDOEnsemble,
    EDOWarning,
    Panel,
    Predictions,
    write_predictions,
)
from edokit.ensemble.panel_table import PanelTable
from tests.errors import raises_code

STRICT = [f"strict-{number}" for number in range(6)]
LENIENT = [f"lenient-{number}" for number in range(6)]


def table(kind: str, n_items: int = 150, seed: int = 0) -> tuple[Predictions, Annotations]:
    """Six strict and six lenient people, and a pool that only knows the mean of all."""
    rng = np.random.default_rng(seed)
    severity = rng.normal(0, 1.5, n_items)
    columns: dict[str, list[object]] = {"item": [], "annotator": [], "label": [], "temper": []}
    for person in (*STRICT, *LENIENT):
        temper = person.split("-")[0]
        shift = 1.0 if temper == "strict" else -1.0
        chance = 1 / (1 + np.exp(-(severity + shift)))
        for item in range(n_items):
            is_rude = bool(rng.random() < chance[item])
            label: object = int(is_rude)
            if kind == "ordinal":
                label = 1 + int(is_rude) + int(rng.random() < chance[item])
            if kind == "multi-label":
                label = ["rude"] if is_rude else ["calm"]
            columns["item"].append(f"item-{item}")
            columns["annotator"].append(person)
            columns["label"].append(label)
            columns["temper"].append(temper)
    scales = {"nominal": None, "ordinal": "ordinal", "multi-label": "multi-label"}
    people = Annotations.from_table(columns, scale=scales[kind])
    pool = people.soft_labels * 0.8 + 0.2 * people.soft_labels.mean(axis=0)
    members = {"a": pool, "b": 0.7 * pool + 0.3 * pool.mean(axis=0)}
    predictions = Predictions.from_arrays(
        members, items=people.items, classes=people.classes, scale=people.scale
    )
    return predictions, people


@pytest.mark.parametrize("kind", ["nominal", "ordinal", "multi-label"])
def test_panels_by_attribute_part_ways_around_the_anonymous_answer(kind: str) -> None:
    predictions, people = table(kind)
    ensemble = EDOEnsemble(ties="random").fit(predictions, people)
    severe = {"nominal": "1", "ordinal": "3", "multi-label": "rude"}[kind]
    column = people.classes.index(severe)
    everybody = ensemble.predict_proba(predictions)[:, column].mean()
    strict = ensemble.predict_proba(predictions, panel={"temper": "strict"})[:, column].mean()
    lenient = ensemble.predict_proba(predictions, panel={"temper": "lenient"})[:, column].mean()
    assert lenient < everybody - 0.05
    assert strict > everybody + 0.05
    # The panel of everybody is the anonymous answer up to calibration.
    all_of_them = ensemble.predict_proba(predictions, panel=[*STRICT, *LENIENT])
    assert abs(all_of_them[:, column].mean() - everybody) < 0.03


def test_answers_for_a_person_are_closer_to_that_person_on_new_items() -> None:
    predictions, people = table("nominal")
    ensemble = EDOEnsemble(ties="random").fit(predictions, people)
    new, answers = table("nominal", seed=1)
    anonymous = ensemble.predict_proba(new)
    assert answers.label_codes is not None
    losses: dict[str, list[float]] = {"known": [], "anonymous": []}
    for code, person in enumerate(answers.annotators):
        own_labels = answers.annotator_codes == code
        rows = answers.item_codes[own_labels]
        labels = answers.label_codes[own_labels]
        known = ensemble.predict_proba(new, panel=[person])
        losses["known"].append(float(-np.log(known[rows, labels]).mean()))
        losses["anonymous"].append(float(-np.log(anonymous[rows, labels]).mean()))
    assert np.mean(losses["known"]) < np.mean(losses["anonymous"]) - 0.02


def test_effects_are_saved_with_the_ensemble_and_left_out_on_request(tmp_path: Path) -> None:
    predictions, people = table("nominal")
    ensemble = EDOEnsemble(ties="random").fit(predictions, people)
    ensemble.save(tmp_path / "e")
    loaded = edokit.load(tmp_path / "e")
    panel = {"temper": ["strict"]}
    np.testing.assert_array_equal(
        loaded.predict_proba(predictions, panel=panel),
        ensemble.predict_proba(predictions, panel=panel),
    )
    without = EDOEnsemble(ties="random", people=False).fit(predictions, people)
    assert without.people_ is None
    np.testing.assert_array_equal(without.weights_, ensemble.weights_)
    with raises_code("missing-people"):
        without.predict_proba(predictions, panel=["strict-1"])


@pytest.mark.parametrize(
    ("panel", "facts"),
    [
        ({"humour": "dry"}, ("'humour'", "'temper'")),
        ({"temper": "sour"}, ("'sour'", "'lenient'", "'strict'")),
    ],
)
def test_unknown_attributes_and_levels_name_what_exists(
    panel: dict[str, str], facts: tuple[str, ...]
) -> None:
    predictions, people = table("nominal", 60)
    ensemble = EDOEnsemble(ties="random").fit(predictions, people)
    with raises_code("unknown-choice", *facts):
        ensemble.predict_proba(predictions, panel=panel)


@pytest.mark.parametrize(
    ("panel", "words"),
    [
        (["strict-1", "zoe"], "1 of 2 annotators is unknown to the ensemble, so the anonymous"),
        (["zoe", "yan"], "2 of 2 annotators are unknown to the ensemble, so the anonymous"),
    ],
)
def test_a_warning_counts_the_annotators_who_are_unknown(panel: list[str], words: str) -> None:
    predictions, people = table("nominal", n_items=20)
    ensemble = EDOEnsemble(ties="random").fit(predictions, people)
    with pytest.warns(EDOWarning, match=words):
        ensemble.predict_proba(predictions, panel=panel)


def test_the_command_writes_a_row_per_item_and_panel(tmp_path: Path) -> None:
    predictions, people = table("nominal", 80)
    write_predictions(predictions, tmp_path / "p.npz")
    edokit.write_annotations(people, tmp_path / "a.csv")
    fitted = edo(
        *("fit", "--predictions", tmp_path / "p.npz", "--annotations", tmp_path / "a.csv"),
        *("--ties", "random", "--out", tmp_path / "e"),
    )
    assert fitted.returncode == 0, fitted.stderr
    asked = ("predict", tmp_path / "e", "--predictions", tmp_path / "p.npz")
    result = answer(*asked, "--by", "temper", "--out", tmp_path / "by.csv")
    written = pd.read_csv(tmp_path / "by.csv")
    assert set(written["panel"]) == {"anonymous", "temper=strict", "temper=lenient"}
    assert len(written) == 3 * 80
    assert {"p_0", "p_1", "low_1", "high_1"} <= set(written.columns)
    assert result["panels"][0]["panel"] == "anonymous"
    three = answer(
        *asked,
        *("--panel", "temper=strict", "--panel", "temper=lenient,strict", "--as", "strict-1"),
        *("--out", tmp_path / "three.csv"),
    )
    assert [entry["people"] for entry in three["panels"]] == [None, 6, 12, 1]
    refused = edo(*asked, "--panel", "temper=sour", "--out", tmp_path / "x.csv")
    assert refused.returncode == 2
    assert "lenient" in refused.stderr


def test_panels_of_fewer_than_five_people_are_named() -> None:
    predictions, people = table("nominal", 40)
    ensemble = EDOEnsemble(ties="random").fit(predictions, people)
    panels = [
        Panel(tuple(STRICT), name="temper=strict"),
        Panel(tuple(LENIENT[:2]), name="age=old"),
        Panel(("strict-1",), name="annotator 'strict-1'"),
    ]
    answers = PanelTable(ensemble, panels)
    list(answers.tables([ensemble.describe(predictions)]))
    notes = " ".join(answers.to_table("out.csv")[0].notes)
    assert "Fewer than five people: age=old." in notes
