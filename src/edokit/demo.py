"""The whole method on simulated annotations: members, ensembles and their evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._io import write_json
from edokit._io.tables import write_table
from edokit._outputs import check_output
from edokit.annotations import Annotations
from edokit.baselines.scores import Score, item_scores, score_methods
from edokit.datasets.simulate import Simulation, simulate
from edokit.ensemble import EDOEnsemble
from edokit.members.recipe import MemberData
from edokit.members.recipes.linear import LinearMember
from edokit.members.supervision import random_select
from edokit.metrics import MAIN_METRICS, ce, entropy
from edokit.predictions import Predictions, write_predictions
from edokit.runs import Input, RunRecord, digest
from edokit.tuning import search

Step = Callable[[int, int, str], None]
TRIALS = 50
SAMPLES = 1000
SEEN = (1.0, 1.0, 1.0, 1.0, 0.2, 0.2, 0.2, 0.04, 0.04, 0.04)
"""The share of the training items that each of ten members sees, so that they differ."""


def run_demo(
    regime: str = "partial-panel",
    *,
    members: int = 10,
    seed: int = 0,
    out: Path | None = None,
    step: Step = lambda done, total, what: None,
    command: str = "",
) -> dict[str, Any]:
    """Simulate annotations, train members, learn their weights on dev, evaluate on test.

    Weights come from EDO's defaults, and from the paper's search of fifty trials. With ``out`` the
    data, the predictions, the ensemble, the trials and the results are written there.
    """
    if members < 1:
        raise InputError(f"the demo needs at least one member, not {members}", "ask for ten")
    if out is not None:
        check_output(out, "demo")
    simulation = simulate(regime, random_state=seed)
    people = simulation.annotations
    dev, test = people.split("dev"), people.split("test")
    seen = [SEEN[k % len(SEEN)] for k in range(members)]
    predictions = train_members(people, members, seed, step, seen)
    ensemble = EDOEnsemble(random_state=seed).fit(predictions["dev"], dev)
    found = search(
        predictions["dev"],
        dev,
        trials=TRIALS,
        random_state=seed,
        progress=lambda done, total, best: step(done, total, "searching"),
    )
    answers = _answers(simulation, ensemble, predictions["test"])
    answers["edo-paper"] = found.ensemble.predict_proba(predictions["test"])
    found.test = found.evaluate(predictions["test"], test)
    scores = _judged(answers, test, seed)
    truth = simulation.truth[simulation.rows("test")]
    result = {
        "regime": regime,
        "seed": seed,
        "items": {name: len(people.split(name).items) for name in people.split_names},
        "annotators": len(people.annotators),
        "members": members,
        "methods": [_row(scores[name], ce(p, truth)) for name, p in answers.items()],
        "ce_floor": entropy(test.soft_labels),
        "truth_ce_floor": entropy(truth),
        "ensemble": ensemble.summary(),
        "search": found.to_dict(),
        "explanation": [str(reason) for reason in ensemble.explain()],
        "gain": asdict(scores["edo"].against["ce"]),
    }
    if out is not None:
        write_table(people.to_table(), out / "annotations.parquet")
        for split, table in predictions.items():
            write_predictions(table, out / "predictions" / f"{split}.npz")
        ensemble.save(out / "ensemble")
        found.save_trials(out)
        pooled = ensemble.describe(predictions["test"])
        write_table(pooled.to_table(), out / "probabilities.csv")
        write_json(result, out / "results.json")
        _recorded(seed, out, command).save(out)
    return result


def _recorded(seed: int, out: Path, command: str) -> RunRecord:
    """How the results were made; the files are beside them."""
    inputs = {}
    for prefix, split in (("", "dev"), ("test_", "test")):
        people, table = "annotations.parquet", f"predictions/{split}.npz"
        inputs[f"{prefix}predictions"] = Input(table, digest(out / table))
        inputs[f"{prefix}annotations"] = Input(people, digest(out / people), {"split": split})
    return RunRecord("demo", inputs, seed=seed, command=command)


def train_members(
    people: Annotations,
    members: int,
    seed: int,
    step: Step = lambda done, total, what: None,
    seen: Sequence[float] | None = None,
) -> dict[str, Predictions]:
    """What quick members say of dev and test, each trained on one randomly selected answer per
    item; ``seen`` is the share of the training items that each of them sees (all, unless told)."""
    train = people.split("train")
    unseen = {name: people.split(name) for name in ("dev", "test")}
    texts = {name: _texts(part) for name, part in (("train", train), *unseen.items())}
    shared = LinearMember.prepare([text for part in texts.values() for text in part], {})
    answers: dict[str, list[Any]] = {name: [] for name in unseen}
    for k in range(members):
        step(k, members, "training members")
        part = train if seen is None else _some(train, seen[k], seed + k)

        def targets(epoch: int, part: Annotations = part, k: int = k) -> Any:
            return random_select(part, seed + k, epoch)

        member = LinearMember(len(people.classes))
        member.fit(MemberData(_texts(part), targets, shared=shared), random_state=seed + k)
        for name in unseen:
            answers[name].append(member.predict_proba(texts[name]))
    step(members, members, "training members")
    return {
        name: Predictions.from_arrays(
            answers[name],
            items=part.items,
            members=[f"linear-{k}" for k in range(members)],
            classes=people.classes,
        )
        for name, part in unseen.items()
    }


def _some(train: Annotations, share: float, seed: int) -> Annotations:
    """A share of the items, at least twenty."""
    if share >= 1:
        return train
    count = min(len(train.items), max(20, round(share * len(train.items))))
    chosen = np.random.default_rng([seed, 1]).permutation(len(train.items))[:count]
    return train.take(np.sort(chosen))


def _answers(
    simulation: Simulation, ensemble: EDOEnsemble, predictions: Predictions
) -> dict[str, npt.NDArray[Any]]:
    """The predictions of each method for the test items [N, C]."""
    shares = simulation.annotations.split("train").soft_labels.mean(axis=0)
    best = int(ensemble.member_ce_.argmin())
    return {
        "constant": np.tile(shares, (len(predictions), 1)),
        "best-single": predictions.probabilities[:, best],
        "uniform": predictions.uniform,
        "edo": ensemble.predict_proba(predictions),
    }


def _judged(answers: dict[str, npt.NDArray[Any]], test: Annotations, seed: int) -> dict[str, Score]:
    """Metrics against the soft labels with intervals, and tests against the uniform mean."""
    q, y = test.soft_labels, test.hard_labels()
    losses = {name: item_scores(p, p.argmax(axis=1), q, y) for name, p in answers.items()}
    scores = [Score(name, "") for name in answers]
    found = score_methods(scores, losses, "uniform", samples=SAMPLES, level=0.95, random_state=seed)
    return {score.name: score for score in found}


def _row(score: Score, truth_ce: float) -> dict[str, Any]:
    """One method, with its cross-entropy to the truth that is known here."""
    told = score.to_dict()
    return {key: told[key] for key in ("name", *MAIN_METRICS, "intervals")} | {"truth_ce": truth_ce}


def _texts(part: Annotations) -> list[str]:
    assert part.texts is not None
    return [str(text) for text in part.texts]
