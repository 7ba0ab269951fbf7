"""Cost against loss: every cheaper ensemble is solved again, and its loss is held out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ensemble_cases import people_and_pool

from edokit import Annotations, EDOEnsemble, Objective, Predictions, write_predictions
from edokit._errors import InputError
from edokit.ensemble.inputs import from_flat
from edokit.ensemble.trade_off import Reduced, earned
from edokit.fitdata.data import FitData
from edokit.metrics import ce_items, item_values
from edokit.predictions.shards import Shards
from edokit.scales import Scale

PEOPLE, POOL = people_and_pool()
INFO: dict[str, dict[str, Any]] = {
    "good": {"model": "large", "prompt": "plain", "cost": 0.02},
    "fair": {"model": "small", "prompt": "plain", "cost": 0.001},
    "noise-1": {"model": "small", "prompt": "odd", "cost": 0.001},
    "noise-2": {"model": "tiny", "cost": 0.0},
}
PRICED = POOL.with_info(INFO)


def literal_losses(members: list[str], **settings: Any) -> np.ndarray:
    """Held-out cross-entropy of each item, from one ordinary fit per fold."""
    data = FitData.from_predictions(PRICED, PEOPLE).draw(5000)
    kept = [POOL.members.index(name) for name in members]
    losses = []
    for rest, fold in data.folds(5, 0):
        fitted = EDOEnsemble(**from_flat(settings)).fit(rest.select(kept))
        p = np.einsum("nkc,k->nc", fold.sample.P[:, kept], fitted.weights_)
        losses.append(ce_items(p, fold.sample.q))
    return np.concatenate(losses)


def test_losses_and_errors_are_those_of_a_fit_per_fold() -> None:
    fitted = EDOEnsemble(objective=Objective(reg=0.05)).fit(PRICED, PEOPLE)
    found = fitted.trade_off(PRICED, PEOPLE)
    assert (found.metric, found.items, found.held_out) == ("ce", 120, True)
    base = literal_losses(list(POOL.members), lambda_reg=0.05)
    assert found.whole.loss == pytest.approx(base.mean(), abs=1e-9)
    assert found.whole.members[0] == "good"
    (without,) = [one for one in found.drops if one.dropped == ("good",)]
    apart = literal_losses(["fair", "noise-1", "noise-2"], lambda_reg=0.05) - base
    assert without.difference == pytest.approx(apart.mean(), abs=1e-9)
    assert without.error == pytest.approx(apart.std(ddof=1) / np.sqrt(120), rel=1e-6)
    assert without.verdict == "worse"


def test_costs_are_those_of_members_with_weight() -> None:
    found = EDOEnsemble().fit(PRICED, PEOPLE).trade_off(PRICED, PEOPLE)
    assert found.all_cost == pytest.approx(0.022)
    for one in (found.whole, *found.drops, *found.path):
        assert one.cost == pytest.approx(sum(INFO[name]["cost"] for name in one.members))
        assert not set(one.members) & set(one.dropped)
    assert found.path[0] == found.whole
    assert len(found.path[-1].members) == 1
    gone = [one.dropped for one in found.path]
    assert [len(names) for names in gone] == list(range(len(gone)))
    assert "One item costs" in found.summary[0]


def test_a_copy_of_a_member_is_free_to_drop_and_a_needed_one_is_not() -> None:
    twins = np.concatenate([POOL.probabilities, POOL.probabilities[:, :1]], axis=1)
    pool = Predictions.from_arrays(
        twins,
        items=POOL.items,
        members=[*POOL.members, "copy"],
        classes=POOL.classes,
        layout="NKC",
        member_info={
            "good": {"cost": 1.0},
            "copy": {"cost": 5.0},
            **{name: {"cost": 0.1} for name in POOL.members[1:]},
        },
    )
    fitted = EDOEnsemble(objective=Objective(reg=1e-4)).fit(pool, PEOPLE)
    found = fitted.trade_off(pool, PEOPLE)
    by_name = {one.dropped[0]: one for one in found.drops}
    assert by_name["copy"].verdict == "free"
    assert abs(by_name["copy"].difference) < 1e-4
    assert found.path[1].dropped == ("copy",)
    assert any("As good within 1%" in line for line in found.summary)


def test_a_wide_interval_is_unclear_and_never_free() -> None:
    one = Reduced((), ("a",), None, loss=0.5, difference=0.0, error=0.01)
    assert one.verdict == "unclear"
    assert replace(one, error=0.001).verdict == "free"
    assert replace(one, difference=0.03).verdict == "worse"
    assert replace(one, difference=-0.03).verdict == "better"


def test_without_costs_every_member_counts_the_same() -> None:
    found = EDOEnsemble().fit(POOL, PEOPLE).trade_off(POOL, PEOPLE)
    assert found.whole.cost is None
    assert found.all_cost is None
    assert len(found.path) > 1
    assert not any("cost" in line for line in found.summary)


@pytest.mark.parametrize(
    "settings",
    [
        {"pool": "log"},
        {"recalibrate": "temperature"},
        {"preset": "paper-fixed", "epochs": 2},
        {"diversity": "suppress", "lambda_div": 0.1},
    ],
)
def test_every_kind_of_ensemble_can_be_asked(settings: dict[str, Any]) -> None:
    found = EDOEnsemble(**from_flat(settings)).fit(PRICED, PEOPLE).trade_off(PRICED, PEOPLE)
    assert all(np.isfinite(one.loss) for one in found.path)
    assert found.whole.verdict == "free"


def test_groups_are_dropped_as_groups() -> None:
    fitted = EDOEnsemble(groups=True).fit(PRICED, PEOPLE)
    found = fitted.trade_off(PRICED, PEOPLE)
    assert found.unit == "group"
    assert found.whole.members[0] == "a"
    assert {name for one in found.drops for name in one.dropped} <= {"a", "b"}
    assert found.path[-1].cost == pytest.approx({"a": 0.021, "b": 0.001}[found.path[-1].members[0]])


def on_scale(scale: Scale, items: int = 60) -> tuple[Annotations, Predictions]:
    rng = np.random.default_rng(3)
    ids = [f"i{k}" for k in range(items)]
    classes = ["a", "b", "c"] if scale.is_multi_label else ["1", "2", "3"]
    truth = rng.dirichlet([1, 1, 1], items)
    if scale.is_multi_label:
        rows = [
            (item, f"p{k}", [c for c, p in zip(classes, share, strict=True) if rng.random() < p])
            for item, share in zip(ids, truth, strict=True)
            for k in range(4)
        ]
        labels = [str(chosen).replace("'", '"') for _, _, chosen in rows]
        table = {
            "item": [row[0] for row in rows],
            "annotator": [row[1] for row in rows],
            "label": labels,
        }
        people = Annotations.from_table(table, scale="multi-label:a,b,c")
    else:
        drawn = np.array([rng.choice(classes, 4, p=share) for share in truth])
        people = Annotations.from_matrix(drawn, items=ids, scale="ordinal:1,2,3")
    members = [0.7 * truth + 0.3 * rng.dirichlet([1, 1, 1], items) for _ in range(3)]
    info = {str(k): {"cost": float(k + 1)} for k in range(3)}
    pool = Predictions.from_arrays(
        np.stack(members, axis=1),
        items=ids,
        classes=classes,
        layout="NKC",
        scale=scale,
        member_info=info,
    )
    return people, pool


def test_ordinal_scales_lose_ranked_probability_and_sets_may_weigh_each_label() -> None:
    people, pool = on_scale(Scale("ordinal", (1, 2, 3)))
    found = EDOEnsemble(ties="random").fit(pool, people).trade_off(pool, people)
    assert found.metric == "rps"
    people, pool = on_scale(Scale("multi-label"))
    for weights in ("shared", "per-label"):
        fitted = EDOEnsemble(label_weights=weights, ties="random").fit(pool, people)
        found = fitted.trade_off(pool, people)
        assert found.metric == "ce"
        own = fitted.predict_proba(pool)
        in_sample = item_values(pool.scale)["ce"](own, people.soft_labels, pool.scale.hard(own))
        assert found.whole.loss > in_sample.mean()  # it is held out
        assert found.whole.loss == pytest.approx(in_sample.mean(), rel=0.1)


def test_shards_give_the_same_as_memory(tmp_path: Path) -> None:
    for number, rows in enumerate((range(70), range(70, 120))):
        write_predictions(PRICED.take(list(rows)), tmp_path / f"part-{number}.npz")
    fitted = EDOEnsemble(objective=Objective(reg=0.05)).fit(PRICED, PEOPLE)
    whole = fitted.trade_off(PRICED, PEOPLE)
    shards = fitted.trade_off(Shards.open(tmp_path), PEOPLE)
    assert shards.items == whole.items
    assert [one.dropped for one in shards.path] == [one.dropped for one in whole.path]
    assert shards.whole.loss == pytest.approx(whole.whole.loss, rel=0.02)


def test_pairs_of_an_item_are_one_observation() -> None:
    items = np.repeat([f"i{k}" for k in range(40)], 3)
    whose = np.tile(["p", "q", "r"], 40)
    votes = np.where(np.arange(120) % 7 < 3, "no", "yes")
    people = Annotations.from_table({"item": items, "annotator": whose, "label": votes})
    pairs = Predictions.from_arrays(
        POOL.probabilities,
        items=items,
        annotators=whose,
        members=POOL.members,
        classes=POOL.classes,
        layout="NKC",
        member_info=INFO,
    )
    fitted = EDOEnsemble(objective=Objective(reg=0.05)).fit(pairs.pairs(), people.pairs())
    found = fitted.trade_off(pairs.pairs(), people.pairs())
    data = FitData.from_predictions(pairs.pairs(), people.pairs()).draw(5000)
    whole, without = [], []
    owners = []
    for rest, fold in data.folds(5, 0):
        assert fold.rows is not None
        owners += fold.rows.item_names.tolist()
        heaviest = list(data.members).index(found.drops[0].dropped[0])
        kept = [k for k in range(4) if k != heaviest]
        for chosen, into in ((list(range(4)), whole), (kept, without)):
            own = EDOEnsemble(objective=Objective(reg=0.05)).fit(rest.select(chosen))
            p = np.einsum("nkc,k->nc", fold.sample.P[:, chosen], own.weights_)
            into.append(ce_items(p, fold.sample.q))
    apart = np.concatenate(without) - np.concatenate(whole)
    sums: dict[str, float] = {}
    for name, value in zip(owners, apart - apart.mean(), strict=True):
        sums[name] = sums.get(name, 0.0) + value
    error = np.sqrt(sum(value**2 for value in sums.values()) * 40 / 39) / 120
    assert found.drops[0].error == pytest.approx(error, rel=1e-6)


def test_few_items_are_in_sample_and_said_to_be() -> None:
    part, people = PRICED.take(range(8)), PEOPLE.take(range(8))
    found = EDOEnsemble(objective=Objective(reg=0.1)).fit(part, people).trade_off(part, people)
    assert not found.held_out
    assert "in-sample" in " ".join(found.summary)


def test_members_that_are_missing_are_named() -> None:
    fitted = EDOEnsemble(objective=Objective(reg=0.1)).fit(PRICED, PEOPLE)
    with pytest.raises(InputError, match="'noise-2'"):
        fitted.trade_off(PRICED.select(["good", "fair", "noise-1"]), PEOPLE)


def test_each_model_and_prompt_earns_the_weight_of_its_members() -> None:
    fitted = EDOEnsemble().fit(PRICED, PEOPLE).fitted_
    weight = dict(zip(fitted.members, fitted.weights, strict=True))
    found = earned(fitted)
    assert list(found) == ["model", "prompt"]
    by_model = {row["value"]: row for row in found["model"]}
    assert by_model["small"]["weight"] == pytest.approx(weight["fair"] + weight["noise-1"])
    assert by_model["small"]["members"] == 2
    assert by_model["small"]["all_cost"] == pytest.approx(0.002)
    assert sum(row["weight"] for row in found["prompt"]) == pytest.approx(1.0)
    assert {row["value"] for row in found["prompt"]} == {"plain", "odd", None}
    assert earned(EDOEnsemble().fit(POOL, PEOPLE).fitted_) == {}
