"""Members learn from points of a scale and from sets of labels as from classes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from member_cases import PriorMember, on_scale

from edokit import Annotations, Scale
from edokit._names import as_names
from edokit.members import Capabilities, Group, score_members, train_members
from edokit.members.layout import MANIFEST
from edokit.members.supervision import (
    annotator_targets,
    majority_targets,
    random_select_targets,
    soft_targets,
)
from edokit.members.training_data import TrainingData, fold_numbers
from edokit.scales import NOMINAL
from tests.errors import raises_code

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*tied"),
    # The texts of these tests are drawn from few words.
    pytest.mark.filterwarnings("ignore::edokit.datasets.similar_texts.SimilarTextsWarning"),
]
KINDS = ("nominal", "ordinal", "multi-label")
PRIOR = "member_cases:PriorMember"
SETS = replace(
    Annotations.from_table(
        {
            "item": ["a", "a", "a", "b", "b"],
            "annotator": ["x", "y", "z", "x", "y"],
            "label": ["rude,long", "rude", "[]", "[]", "long"],
        },
        scale="multi-label:rude,long",
    ),
    texts=as_names(["one", "two"]),
)


class OneClassMember(PriorMember):
    """Knows nothing of sets."""

    capabilities = Capabilities(multi_label=False)


# Targets


def test_targets_of_sets_are_labels_on_their_own() -> None:
    np.testing.assert_allclose(soft_targets(SETS), [[2 / 3, 1 / 3], [0, 1 / 2]])
    np.testing.assert_array_equal(majority_targets(SETS), [[1, 0], [0, 0]])
    positions, own = annotator_targets(SETS, "x")
    assert positions.tolist() == [0, 1]
    np.testing.assert_array_equal(own, [[1, 1], [0, 0]])


def test_random_select_draws_the_whole_set_of_one_annotator() -> None:
    drawn = [random_select_targets(SETS, seed)[0].tolist() for seed in range(300)]
    assert {tuple(one) for one in drawn} == {(1, 1), (1, 0), (0, 0)}
    np.testing.assert_allclose(np.mean(drawn, axis=0), SETS.soft_labels[0], atol=0.1)


def test_an_annotator_with_two_sets_of_an_item_counts_half_each() -> None:
    rows = {"item": ["a", "a"], "annotator": ["x", "x"], "p_rude": [1, 0], "p_long": [0, 0]}
    twice = Annotations.from_table(rows, scale="multi-label:rude,long", duplicates="all")
    np.testing.assert_array_equal(annotator_targets(twice, "x")[1], [[0.5, 0]])


# Training data


def test_another_scale_is_other_data() -> None:
    points = on_scale("ordinal")
    uneven = Scale("ordinal", (1, 2, 3, 9))
    scales = (points.scale, uneven, NOMINAL)
    data = [TrainingData.from_annotations(replace(points, scale=scale)) for scale in scales]
    assert len({part.digest for part in data}) == 3


def test_folds_of_sets_have_equal_shares_of_each_label() -> None:
    data = TrainingData.from_annotations(on_scale("multi-label", 240))
    folds = fold_numbers(data, 4, 0)
    shares = np.array([data.hard_labels[folds == fold].mean(axis=0) for fold in range(4)])
    assert np.ptp(shares, axis=0).max() < 0.2
    assert np.ptp(np.bincount(folds[folds >= 0])) <= 4


# Folders


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("supervision", ["random-select", "soft", "majority", "per-annotator"])
def test_the_folder_and_its_predictions_have_the_scale(
    kind: str, supervision: str, tmp_path: Path
) -> None:
    people = on_scale(kind)
    groups = [Group(PRIOR, 1, supervision=supervision)]
    trained = train_members(people, groups, out=tmp_path, jobs=1)
    scored = score_members(tmp_path, ["a new text"], trust=["member_cases"])
    assert trained.predictions["dev"].scale == scored.scale == people.scale
    assert trained.manifest["data"]["scale"] == people.scale.to_text(people.classes)
    np.testing.assert_allclose(
        scored.probabilities[0], trained.predictions["dev"].probabilities[0], atol=1e-6
    )


def test_members_of_another_scale_are_not_mixed(tmp_path: Path) -> None:
    train_members(on_scale("ordinal"), [Group(PRIOR, 1)], out=tmp_path, jobs=1)
    with raises_code("other-settings"):
        train_members(on_scale("multi-label"), [Group(PRIOR, 1)], out=tmp_path, jobs=1)


def test_a_manifest_whose_scale_is_none_is_refused(tmp_path: Path) -> None:
    train_members(on_scale("ordinal"), [Group(PRIOR, 1)], out=tmp_path, jobs=1)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    manifest["data"]["scale"] = "ordinal:1,2,4"
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    with raises_code("classes-differ", "manifest.json"):
        score_members(tmp_path, ["a text"], trust=["member_cases"])


def test_a_recipe_that_predicts_one_class_refuses_sets() -> None:
    groups = [Group("test_member_scales:OneClassMember", 1)]
    with raises_code("unsupported-scale", "OneClassMember"):
        train_members(on_scale("multi-label"), groups, jobs=1)
    assert train_members(on_scale("ordinal"), groups, jobs=1).failed == ()
