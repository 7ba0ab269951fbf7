"""What a reproduction reads: pools, seeds, and what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from reproduction_cases import small_lewidi, small_pool, small_study

from edokit import Predictions, write_predictions
from reproduction.lewidi2023.benchmark import annotator_limit
from reproduction.lewidi2023.study import (
    EVERYTHING,
    Missing,
    Pool,
    Study,
    draw_members,
    find_data,
    find_predictions,
)
from tests.errors import raises_code


def test_a_seed_is_half_of_the_members_and_always_the_same(tmp_path: Path) -> None:
    members = small_study(tmp_path).pool("HS-Brexit", "random-select")
    assert isinstance(members, Pool)
    sampled = [draw_members(members.fit, seed) for seed in range(3)]
    assert all(len(names) == 6 for names in sampled)
    assert sampled[0] == draw_members(members.fit, 0)
    assert len({tuple(names) for names in sampled}) == 3
    assert members.sampled(0).test.members == tuple(sampled[0])


def test_members_trained_for_one_seed_belong_to_it_alone(tmp_path: Path) -> None:
    members = small_study(tmp_path).pool("HS-Brexit", "random-select")
    assert isinstance(members, Pool)
    names = members.fit.members
    trained_for = [f"seed-{number % 3}" for number in range(len(names))]
    pool = Pool(
        members.dataset,
        members.name,
        _with_groups(members.fit, trained_for),
        _with_groups(members.test, trained_for),
        members.fit_labels,
        members.test_labels,
    )
    sampled = [pool.sampled(seed) for seed in range(3)]
    assert [one.test.members for one in sampled] == [names[seed::3] for seed in range(3)]
    assert all(one.fit.groups is None for one in sampled)


def test_the_limit_of_annotators_counts_the_members_of_one_seed(tmp_path: Path) -> None:
    data = small_lewidi(tmp_path / "data")
    predictions = tmp_path / "predictions"
    small_pool(predictions, data, "per-annotator", 10)
    study = Study(data, predictions)
    members = study.pool("HS-Brexit", "per-annotator")
    assert isinstance(members, Pool)
    assert annotator_limit(study, "HS-Brexit", "per-annotator").startswith(
        "K ≤ min A_i is switched off: 10 members"
    )
    trained_for = [f"seed-{number % 2}" for number in range(10)]
    for split, part in (("dev", members.fit), ("test", members.test)):
        path = predictions / "HS-Brexit" / "per-annotator" / f"{split}.npz"
        write_predictions(_with_groups(part, trained_for), path)
    assert annotator_limit(Study(data, predictions), "HS-Brexit", "per-annotator").startswith(
        "K ≤ min A_i holds: 5 members"
    )


def _with_groups(predictions: Predictions, groups: list[str]) -> Predictions:
    return Predictions.from_arrays(
        predictions.probabilities,
        items=predictions.items,
        members=predictions.members,
        classes=predictions.classes,
        groups=groups,
        layout="NKC",
    )


def test_pools_of_at_most_ten_are_kept_whole(tmp_path: Path) -> None:
    members = small_study(tmp_path).pool("HS-Brexit", "soft-ce")
    assert isinstance(members, Pool)
    assert draw_members(members.fit, 3) == list(members.fit.members)


def test_half_of_each_group_is_drawn(tmp_path: Path) -> None:
    everything = small_study(tmp_path).pool("HS-Brexit", EVERYTHING)
    assert isinstance(everything, Pool)
    sampled = draw_members(everything.fit, 0)
    assert sum(name.startswith("random-select/") for name in sampled) == 6
    assert sum(name.startswith("soft-ce/") for name in sampled) == 2


def test_a_pool_that_is_not_there_says_so(tmp_path: Path) -> None:
    found = small_study(tmp_path).pool("HS-Brexit", "per-annotator")
    assert isinstance(found, Missing)
    assert "HS-Brexit/per-annotator" in found.reason


def test_a_dataset_that_is_not_there_says_so(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    assert isinstance(study.annotations("ArMIS"), Missing)
    assert isinstance(study.pool("ArMIS", "random-select"), Missing)
    assert isinstance(Study(None, None).annotations("ArMIS"), Missing)


def test_out_of_fold_predictions_are_fitted_on_train_and_dev(tmp_path: Path) -> None:
    data = small_lewidi(tmp_path / "data")
    predictions = tmp_path / "predictions"
    small_pool(predictions, data, "random-select", 2, cross_fitted=True)
    study = Study(data, predictions)
    found = study.pool("HS-Brexit", "random-select")
    assert isinstance(found, Pool)
    assert found.cross_fitted
    assert len(found.fit.items) == 100


def test_cross_fitted_members_are_joined_with_others_on_dev(tmp_path: Path) -> None:
    data = small_lewidi(tmp_path / "data")
    predictions = tmp_path / "predictions"
    small_pool(predictions, data, "random-select", 2, cross_fitted=True)
    assert isinstance(Study(data, predictions).pool("HS-Brexit", EVERYTHING), Missing)
    small_pool(predictions, data, "soft-ce", 2)
    study = Study(data, predictions)
    everything, own = (study.pool("HS-Brexit", name) for name in (EVERYTHING, "random-select"))
    assert isinstance(everything, Pool)
    assert isinstance(own, Pool)
    assert everything.fit.shape == (40, 4, 2)
    assert not everything.cross_fitted
    assert (everything.fit.probabilities[:, :2] == own.fit.probabilities[own.dev]).all()


def test_the_data_is_found_where_it_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = small_lewidi(tmp_path / "lewidi2023")
    monkeypatch.delenv("EDO_LEWIDI2023", raising=False)
    monkeypatch.chdir(tmp_path)
    assert find_data(None) == Path("lewidi2023")
    monkeypatch.setenv("EDO_LEWIDI2023", str(data))
    assert find_data(None) == data
    with raises_code("wrong-folder", "edo data get"):
        find_data(tmp_path / "nowhere")


def test_predictions_must_lie_in_folders_by_dataset_and_pool(tmp_path: Path) -> None:
    with raises_code("wrong-folder", "<dataset>/<pool>"):
        find_predictions(tmp_path)
    small_study(tmp_path)
    assert find_predictions(tmp_path / "predictions") == tmp_path / "predictions"


def test_several_processes_give_the_same_in_the_same_order() -> None:
    wanted = [(7, 2), (9, 4), (5, 3)]
    assert Study(None, None, jobs=2).each(divmod, wanted) == [(3, 1), (2, 1), (1, 2)]
    assert Study(None, None, jobs=1).each(divmod, wanted) == [(3, 1), (2, 1), (1, 2)]


def test_results_are_computed_once() -> None:
    study = Study(None, None)
    calls = []
    for _ in range(2):
        assert study.once(("a", "key"), lambda: calls.append(1) or 5) == 5  # type: ignore[func-returns-value]
    assert calls == [1]
