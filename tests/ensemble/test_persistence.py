"""Saved ensembles: whole, readable, harmless, and readable by later versions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ensemble_cases import people_and_pool
from sklearn.base import clone

from edokit import EDOEnsemble, InputError
from edokit.config import from_parameters, settings_document, to_parameters
from tests.errors import raises_code

PEOPLE, POOL = people_and_pool()
KEPT = Path(__file__).parent / "fixtures"
"""Ensembles whose parameters are named flat; every later version must load them."""


@pytest.mark.parametrize(
    "ensemble",
    [
        EDOEnsemble(),
        EDOEnsemble("paper-fixed"),
        EDOEnsemble(pool="log", groups=True, recalibrate="temperature"),
    ],
    ids=["default", "paper", "log of groups"],
)
def test_a_saved_ensemble_predicts_the_same(ensemble: EDOEnsemble, tmp_path: Path) -> None:
    ensemble.fit(POOL, PEOPLE).save(tmp_path / "e")
    loaded = EDOEnsemble.load(tmp_path / "e")
    np.testing.assert_array_equal(loaded.predict_proba(POOL), ensemble.predict_proba(POOL))
    assert loaded.explain() == ensemble.explain()
    assert loaded.certificate_ == ensemble.certificate_
    assert loaded.summary() == ensemble.summary()
    assert loaded.get_params() == ensemble.get_params()
    if ensemble.trajectory_ is not None:
        assert loaded.trajectory_ is not None
        np.testing.assert_array_equal(loaded.trajectory_.sizes, ensemble.trajectory_.sizes)


def test_the_constant_answer_is_saved(tmp_path: Path) -> None:
    ensemble = EDOEnsemble().fit(POOL, PEOPLE)
    assert ensemble.constant_.shares == pytest.approx(PEOPLE.soft_labels.mean(axis=0))
    assert ensemble.constant_.label == np.bincount(PEOPLE.hard_labels()).argmax()
    ensemble.save(tmp_path)
    loaded = EDOEnsemble.load(tmp_path).constant_
    assert loaded.shares.tolist() == ensemble.constant_.shares.tolist()
    assert (loaded.label, loaded.source) == (ensemble.constant_.label, "fit")
    for broken in ({"shares": [2.0, -1.0]}, {"label": 9}, {"shares": [1.0]}):
        content = json.loads((tmp_path / "ensemble.json").read_text())
        content["constant"] |= broken
        (tmp_path / "broken").mkdir(exist_ok=True)
        (tmp_path / "broken" / "ensemble.json").write_text(json.dumps(content))
        with pytest.raises(InputError, match="constant"):
            EDOEnsemble.load(tmp_path / "broken")


def test_the_folder_holds_text_alone(tmp_path: Path) -> None:
    EDOEnsemble().fit(POOL, PEOPLE).save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "ensemble.json"]
    content = json.loads((tmp_path / "ensemble.json").read_text())
    assert content["format"] == 1
    assert set(content["versions"]) >= {"edokit", "numpy"}


def test_the_card_names_members_metrics_use_and_limits(tmp_path: Path) -> None:
    EDOEnsemble().fit(POOL, PEOPLE).save(tmp_path)
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    for words in ("good", "CE", "Intended use", "Limits", "human oversight", "120 items"):
        assert words in card


def test_the_card_counts_groups_where_weights_are_learned_between_groups(tmp_path: Path) -> None:
    ensemble = EDOEnsemble(groups=True).fit(POOL, PEOPLE)
    ensemble.save(tmp_path)
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert f"\n{ensemble.size_} of 2 groups of members carry weight" in card


@pytest.mark.parametrize("folder", sorted(KEPT.iterdir()), ids=lambda path: path.name)
def test_ensembles_that_name_their_parameters_flat_load(folder: Path) -> None:
    loaded = EDOEnsemble.load(folder)
    stored = json.loads((folder / "ensemble.json").read_text())
    np.testing.assert_array_equal(loaded.weights_, stored["weights"])
    config = from_parameters(**loaded.get_params(deep=False))
    flat = settings_document(
        config, config.objective, config.solver, preset=loaded.preset, scale=loaded.scale
    )
    asked = {name: value for name, value in stored["parameters"].items() if value is not None}
    # Parameters of earlier builds.
    assert (asked.pop("label_weights"), asked.pop("order")) == ("shared", "ce")
    if asked.pop("regularize", "v") == "v":
        again = clone(loaded).fit(POOL, PEOPLE)
        np.testing.assert_allclose(loaded.weights_, again.weights_, atol=1e-6)
        assert loaded.explain()[0].kind == again.explain()[0].kind
    assert flat.items() >= asked.items()


def test_the_former_preset_paper_is_read_as_paper_fixed(tmp_path: Path) -> None:
    EDOEnsemble("paper-fixed").fit(POOL, PEOPLE).save(tmp_path)
    path = tmp_path / "ensemble.json"
    text = path.read_text(encoding="utf-8")
    assert '"paper-fixed"' in text
    path.write_text(text.replace('"paper-fixed"', '"paper"'), encoding="utf-8")
    loaded = EDOEnsemble.load(tmp_path)
    assert loaded.preset == "paper-fixed"
    assert clone(loaded).fit(POOL, PEOPLE).weights_.tolist() == loaded.weights_.tolist()


def test_a_newer_format_is_refused_with_a_remedy(tmp_path: Path) -> None:
    EDOEnsemble().fit(POOL, PEOPLE).save(tmp_path)
    path = tmp_path / "ensemble.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "format": 2}))
    with raises_code("other-version", "2", "1"):
        EDOEnsemble.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "code", "fact"),
    [
        ({"weights": [1.0]}, "damaged-file", "weights"),
        ({"weights": [0.5, 0.5, 0.5, 0.5]}, "damaged-file", "weights"),
        ({"members": [1, 2, 3, 4]}, "wrong-content", "members[0] is 1"),
        ({"classes": ["", "1"]}, "wrong-content", "classes"),
        ({"temperature": 0}, "wrong-content", "temperature is 0"),
        ({"temperature": 1e-320}, "wrong-content", "temperature is 1e-320"),
        ({"items": 10**30}, "wrong-content", "items"),
        ({"settings": {"lambda_ce": 1.0}}, "damaged-file", "'pool'"),
        ({"kind": "cake"}, "wrong-content", "ensemble.json"),
        ({"certificate": {"gap": 1}}, "wrong-content", "certificate.convex"),
        (
            {"reasons": [{"member": "good", "weight": 1.0, "kind": "magic"}]},
            "wrong-content",
            "'magic'",
        ),
        (
            {"reasons": [{"member": "good", "weight": 1.0, "kind": "kept"}]},
            "wrong-content",
            "reasons[0].ce",
        ),
        (
            {"reasons": [{"member": 7, "weight": 1.0, "kind": "kept"}]},
            "wrong-content",
            "reasons[0].member is 7",
        ),
    ],
)
def test_a_damaged_ensemble_is_refused(
    change: dict[str, object], code: str, fact: str, tmp_path: Path
) -> None:
    EDOEnsemble().fit(POOL, PEOPLE).save(tmp_path)
    path = tmp_path / "ensemble.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with raises_code(code, fact):
        EDOEnsemble.load(tmp_path)


@pytest.mark.parametrize("names", [(0, 1), (False, True), (0.5, 1.5), ("no", "yes")], ids=str)
def test_labels_keep_their_type_in_a_file(names: tuple[Any, Any], tmp_path: Path) -> None:
    labels = np.array(names)[np.arange(len(POOL)) % 2]
    named = replace(POOL, classes=tuple(map(str, names)))
    ensemble = EDOEnsemble().fit(named, labels[:, None].repeat(2, axis=1), order="annotations")
    ensemble.save(tmp_path)
    loaded = EDOEnsemble.load(tmp_path)
    assert loaded.classes_.tolist() == list(names)
    assert loaded.classes_.dtype == ensemble.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(named), ensemble.predict(named))


def test_labels_that_are_not_the_classes_are_refused(tmp_path: Path) -> None:
    EDOEnsemble().fit(POOL, PEOPLE).save(tmp_path)
    path = tmp_path / "ensemble.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "labels": [0, 1]}))
    with raises_code("damaged-file"):
        EDOEnsemble.load(tmp_path)


def test_a_folder_without_an_ensemble_is_refused(tmp_path: Path) -> None:
    with raises_code("wrong-folder", "ensemble.json"):
        EDOEnsemble.load(tmp_path)
    (tmp_path / "file").write_text("x")
    with raises_code("not-a-folder"):
        EDOEnsemble().fit(POOL, PEOPLE).save(tmp_path / "file")


@pytest.mark.parametrize("preset", ["default", "paper-fixed"])
def test_a_configuration_comes_back_from_its_parameters(preset: str) -> None:
    config = from_parameters(
        preset=preset, pool="log", groups=True, ties="error", random_state=3, people=False
    )
    assert from_parameters(**to_parameters(config, preset)) == config
