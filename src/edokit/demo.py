"""The whole story on simulated people: members, a pool, and how close it comes to the answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from edokit.annotations import Annotations
from edokit.datasets.simulate import Simulation, simulate
from edokit.errors import InputError
from edokit.files import write_json, write_table
from edokit.members.linear import LinearMember
from edokit.members.recipe import Lesson
from edokit.members.supervision import random_select
from edokit.metrics import bootstrap, ce, entropy, evaluate
from edokit.predictions import Predictions, write_predictions

Step = Callable[[int, int, str], None]
SHOWN = ("f1", "ce", "md", "bs")


def run_demo(
    regime: str = "partial-panel",
    *,
    members: int = 10,
    seed: int = 0,
    out: Path | None = None,
    step: Step = lambda done, total, what: None,
) -> dict[str, Any]:
    """Simulate people, train members on randomly selected answers, pool them, judge the pool.

    With ``out`` the data, the predictions and the results are kept there.
    """
    if members < 1:
        raise InputError(f"the demo needs at least one member, but got {members}", "ask for ten")
    simulation = simulate(regime, seed=seed)
    predictions = train_members(simulation.annotations, members, seed, step)
    methods = [_constant(simulation), *_judged(simulation, predictions["test"])]
    test = simulation.annotations.split("test")
    result = {
        "regime": regime,
        "seed": seed,
        "items": {
            name: len(simulation.annotations.split(name).items)
            for name in simulation.annotations.split_names
        },
        "annotators": len(simulation.annotations.annotators),
        "members": members,
        "methods": methods,
        "ce_floor": entropy(test.soft_labels),
        "truth_ce_floor": entropy(simulation.truth[simulation.rows("test")]),
    }
    if out is not None:
        write_table(simulation.annotations.to_table(), out / "annotations.parquet")
        for split, table in predictions.items():
            write_predictions(table, out / "predictions" / f"{split}.npz")
        write_json(result, out / "results.json")
    return result


def train_members(
    people: Annotations,
    members: int,
    seed: int,
    step: Step = lambda done, total, what: None,
) -> dict[str, Predictions]:
    """What quick members, each trained on one randomly selected answer per item, say of dev and
    test."""
    train = people.split("train")
    unseen = {name: people.split(name) for name in ("dev", "test")}
    texts = {name: _texts(part) for name, part in (("train", train), *unseen.items())}
    shared = LinearMember.prepare([text for part in texts.values() for text in part], {})
    answers: dict[str, list[Any]] = {name: [] for name in unseen}
    for k in range(members):
        step(k, members, "training members")

        def targets(epoch: int, k: int = k) -> Any:
            return random_select(train, seed + k, epoch)

        member = LinearMember(len(people.classes))
        member.fit(Lesson(texts["train"], targets, shared=shared), seed=seed + k)
        for name in unseen:
            answers[name].append(member.predict_proba(texts[name]))
    step(members, members, "training members")
    return {
        name: Predictions.from_arrays(
            answers[name],
            items=part.items,
            members=[f"linear-{k}" for k in range(members)],
            classes=people.classes,
            groups=["linear"] * members,
        )
        for name, part in unseen.items()
    }


def _judged(simulation: Simulation, predictions: Predictions) -> list[dict[str, Any]]:
    """One member and the plain mean of all, on people's answers and on the known truth."""
    return [
        _row("one member", predictions.probabilities[:, 0], simulation),
        _row(f"mean of {len(predictions.members)}", predictions.uniform, simulation),
    ]


def _constant(simulation: Simulation) -> dict[str, Any]:
    """The same answer for every item: how often people give each answer in train."""
    shares = simulation.annotations.split("train").soft_labels.mean(axis=0)
    rows = simulation.rows("test")
    return _row("same answer for all", shares[None].repeat(len(rows), axis=0), simulation)


def _row(name: str, p: Any, simulation: Simulation) -> dict[str, Any]:
    test = simulation.annotations.split("test")
    q, y = test.soft_labels, test.hard_labels()
    intervals = bootstrap(p, q, y, metrics=SHOWN, seed=simulation.seed)
    return {
        "name": name,
        **evaluate(p, q, y, metrics=SHOWN),
        "truth_ce": ce(p, simulation.truth[simulation.rows("test")]),
        "intervals": {key: [i.low, i.high] for key, i in intervals.items()},
    }


def _texts(part: Annotations) -> list[str]:
    assert part.texts is not None
    return [str(text) for text in part.texts]
