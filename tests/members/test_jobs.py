"""A plan names every fit, and a pool can grow without changing the members it has."""

from __future__ import annotations

from dataclasses import replace

import pytest
from member_cases import small_people

from edokit.members import TrainingOptions, parse_groups
from edokit.members.plan import make_plan
from edokit.members.training_data import TrainingData, fold_numbers
from tests.errors import raises_code

COURSE = TrainingData.from_annotations(small_people())


def test_members_are_numbered_within_their_group() -> None:
    options = {"estimator": "sklearn.naive_bayes.ComplementNB"}
    plan = make_plan(COURSE, parse_groups("linear:2,sklearn:1", options=options))
    assert [job.path for job in plan.jobs] == ["linear-01", "linear-02", "sklearn-01"]


def test_with_folds_each_member_has_a_unit_per_fold() -> None:
    plan = make_plan(COURSE, parse_groups("linear:1"), TrainingOptions(cross_fit=3))
    assert [job.path for job in plan.jobs] == [f"linear-01/fold-{f}" for f in range(3)]
    assert len({job.seed for job in plan.jobs}) == 3


def test_a_growing_pool_keeps_the_members_it_has() -> None:
    small = make_plan(COURSE, parse_groups("linear:3"))
    large = make_plan(COURSE, parse_groups("linear:5,transformer:2"))
    assert large.jobs[:3] == small.jobs
    assert [large.fingerprint(u) for u in large.jobs[:3]] == [
        small.fingerprint(u) for u in small.jobs
    ]


def test_all_members_have_their_own_seed() -> None:
    plans = [
        make_plan(COURSE, parse_groups("linear:20,transformer:20"), TrainingOptions(random_state=s))
        for s in (0, 1)
    ]
    seeds = [job.seed for plan in plans for job in plan.jobs]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_per_annotator_members_learn_from_the_most_active_of_train() -> None:
    plan = make_plan(COURSE, parse_groups("linear:3", supervision="per-annotator"))
    assert [job.annotator for job in plan.jobs] == ["person-0", "person-1", "person-2"]
    with raises_code("too-many-members", "4", "3"):
        make_plan(COURSE, parse_groups("linear:4", supervision="per-annotator"))


@pytest.mark.parametrize(
    "change",
    [{"options": {"strength": 2.0}}, {"supervision": "soft"}, {"recipe": "sklearn"}],
)
def test_a_fingerprint_changes_with_what_is_trained(change: dict[str, object]) -> None:
    plan = make_plan(COURSE, parse_groups("linear:1"))
    unit = plan.jobs[0]
    assert plan.fingerprint(replace(unit, **change)) != plan.fingerprint(unit)  # type: ignore[arg-type]


def test_a_fingerprint_changes_with_the_data_and_with_the_folds() -> None:
    plan = make_plan(COURSE, parse_groups("linear:1"))
    other = make_plan(TrainingData.from_annotations(small_people(seed=1)), parse_groups("linear:1"))
    folded = replace(plan, folds=fold_numbers(COURSE, 3, 0))
    prints = {one.fingerprint(plan.jobs[0]) for one in (plan, other, folded)}
    assert len(prints) == 3


def test_a_negative_seed_is_refused() -> None:
    with raises_code("invalid-number", "random_state", "1"):
        make_plan(COURSE, parse_groups("linear:1"), TrainingOptions(random_state=-1))
