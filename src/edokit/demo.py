"""The whole method on simulated annotations: members, ensembles and their evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from edokit._errors import InputError
from edokit._io.digests import digest_input
from edokit._io.documents import write_json
from edokit._io.tables import write_table
from edokit._progress import Progress, no_progress
from edokit._types import Floats
from edokit.analysis.compare import compare
from edokit.analysis.compare.result import Comparison
from edokit.analysis.diagnose.groups import compare_groups
from edokit.analysis.diagnose.groups.text import level_sentence
from edokit.annotations.core import Annotations
from edokit.datasets.simulate.simulation import Simulation, simulate
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.views import answer_for_annotators
from edokit.members.recipe import MemberData
from edokit.members.recipes.linear import LinearMember
from edokit.members.supervision import random_select_targets
from edokit.metrics import ce, entropy
from edokit.panels import Panel, PanelComparison
from edokit.predictions.core import Predictions
from edokit.predictions.files import write_predictions
from edokit.runs.folder import output_folder
from edokit.runs.inputs import Input
from edokit.runs.record import RunRecord, begin_run

TRIALS = 50
CAMPS = "two-camps"
"""The regime whose two groups of annotators are the panels."""
CAMPS_FILE = "camps.parquet"
"""Their annotations; the ensemble of the demo learns from another simulation."""
METHODS = ("best-single", "edo", "edo-paper")
"""What is compared, besides the constant answer and the uniform mean."""
TRAIN_SHARES = (1.0, 1.0, 1.0, 1.0, 0.2, 0.2, 0.2, 0.04, 0.04, 0.04)
"""The share of the training items for each of ten members; they differ because it does."""


def run_demo(
    regime: str = "partial-panel",
    *,
    members: int = 10,
    random_state: int = 0,
    out: Path | None = None,
    overwrite: bool = False,
    progress: Progress = no_progress,
    command: str = "",
) -> tuple[dict[str, Any], PanelComparison]:
    """Simulate annotations, train members, learn their weights on dev, compare on test.

    Weights come from EDO's defaults, and from the paper's search of fifty trials. With ``out`` the
    data, the predictions, the ensemble, the trials and the results are written there; what EDO did
    not write is replaced only with ``overwrite``. Finally two panels of annotators are compared,
    in a regime with two camps.
    """
    if members < 1:
        raise InputError(
            f"the demo needs at least one member, not {members}",
            "ask for ten",
            code="invalid-number",
        )
    with ExitStack() as stack:
        if out is not None:
            stack.enter_context(output_folder(out, "demo", overwrite=overwrite))
        simulation = simulate(regime, random_state=random_state)
        annotations = simulation.annotations
        shares = [TRAIN_SHARES[k % len(TRAIN_SHARES)] for k in range(members)]
        predictions = train_quick_members(annotations, members, random_state, progress, shares)
        comparison = compare(
            predictions["dev"],
            annotations,
            predictions["test"],
            split="dev",
            test_split="test",
            train_split="train",
            methods=METHODS,
            random_state=random_state,
            progress=progress,
        )
        progress(0, 1, "asking two panels")
        panels = compare_camps(random_state)
        ensemble: Any = comparison.fitted["edo"]
        searched: Any = comparison.fitted["edo-paper"]
        result = {
            "regime": regime,
            "annotators": len(annotations.annotators),
            **comparison.to_dict(),
            **compare_with_truth(simulation, comparison),
            "ensemble": ensemble.summary(),
            "search": searched.search_.to_dict(),
            "panels": {"regime": CAMPS, **panels.summary()},
        }
        if out is not None:
            begin_run(out)
            write_json(result, out / "results.json")
            ensemble.save(out / "ensemble", overwrite=overwrite)
            searched.search_.save_trials(out)
            write_table(
                ensemble.describe(predictions["test"]).to_table(), out / "probabilities.csv"
            )
            write_table(panels.to_table(), out / "panels.csv")
            write_table(simulate_camps(random_state).to_table(), out / CAMPS_FILE)
            inputs = write_inputs(annotations, predictions, out)
            RunRecord("demo", inputs, seed=random_state, command=command).save(out)
    return result, panels


def compare_with_truth(simulation: Simulation, comparison: Comparison) -> dict[str, Any]:
    """The CE against the true distribution of labels, which only a simulation knows."""
    predictions = comparison.test_predictions
    scale = predictions.scale
    truth = scale.rows(simulation.truth[simulation.rows("test")])
    truth_ce = {}
    for k, method in enumerate(predictions.members):
        truth_ce[method] = ce(scale.rows(predictions.probabilities[:, k]), truth)
    return {"truth_ce": truth_ce, "truth_ce_floor": entropy(truth)}


def write_inputs(
    annotations: Annotations, predictions: Mapping[str, Predictions], out: Path
) -> dict[str, Input]:
    """Write annotations and predictions, as a run record names them."""
    write_table(annotations.to_table(), out / "annotations.parquet")
    inputs = {}
    for split, role in (("dev", ""), ("test", "test_")):
        path = f"predictions/{split}.npz"
        write_predictions(predictions[split], out / path)
        inputs[f"{role}predictions"] = Input(path, digest_input(out / path))
        path = "annotations.parquet"
        inputs[f"{role}annotations"] = Input(path, digest_input(out / path), {"split": split})
    return inputs


def simulate_camps(random_state: int) -> Annotations:
    """The labels of the two groups of annotators that are compared."""
    return simulate(CAMPS, random_state=random_state).annotations


def camps_test_sentence(random_state: int) -> str:
    """Whether the two groups differ beyond chance, in a sentence."""
    attribute = "group"
    comparison = compare_groups(
        simulate_camps(random_state), [attribute], random_state=random_state
    )
    level = comparison.levels_of(attribute)[0]
    return f"As groups, by a test over people: {level_sentence(comparison, level)}."


def compare_camps(random_state: int) -> PanelComparison:
    """What the two groups of a simulation's annotators would answer.

    Two quick members know nobody; how each annotator differs from their pool is learned on dev.
    """
    annotations = simulate_camps(random_state)
    predictions = train_quick_members(annotations, 2, random_state)
    ensemble = EDOEnsemble(random_state=random_state)
    ensemble.fit(predictions["dev"], annotations.split("dev"))
    assert ensemble.people_ is not None
    anonymous = ensemble.describe(predictions["test"])
    annotators = dict.fromkeys(map(str, anonymous.items), tuple(map(str, annotations.annotators)))
    answers = answer_for_annotators(anonymous, ensemble.people_, annotators)
    group = annotations.attributes["group"]
    panels = [
        Panel(tuple(annotations.annotators[group == name]), name=str(name))
        for name in sorted(set(group))
    ]
    return answers.compare(*panels)


def train_quick_members(
    annotations: Annotations,
    members: int,
    random_state: int,
    progress: Progress = no_progress,
    shares: Sequence[float] | None = None,
) -> dict[str, Predictions]:
    """The predictions of quick members for dev and test.

    Each is trained on one randomly selected label per item. ``shares`` are the shares of the
    training items that each member is trained on; by default all items.
    """
    train = annotations.split("train")
    held_out = {"dev": annotations.split("dev"), "test": annotations.split("test")}
    texts = {name: _texts(part) for name, part in held_out.items()}
    corpus = (*_texts(train), *texts["dev"], *texts["test"])
    probabilities: dict[str, list[Floats]] = {"dev": [], "test": []}
    for k in range(members):
        progress(k, members, "training members")
        training_items = train
        seed = random_state + k
        if shares is not None and shares[k] < 1:
            n_items = min(len(train.items), max(20, round(shares[k] * len(train.items))))
            positions = np.random.default_rng([seed, 1]).permutation(len(train.items))[:n_items]
            training_items = train.take(np.sort(positions))
        member = LinearMember(len(annotations.classes))
        targets = partial(random_select_targets, training_items, seed)
        data = MemberData(_texts(training_items), targets, corpus=corpus, scale=annotations.scale)
        member.fit(data, random_state=seed)
        for name in held_out:
            probabilities[name].append(member.predict_proba(texts[name]))
    progress(members, members, "training members")
    predictions = {}
    for name, part in held_out.items():
        predictions[name] = Predictions.from_arrays(
            probabilities[name],
            items=part.items,
            members=[f"linear-{k}" for k in range(members)],
            classes=annotations.classes,
            scale=annotations.scale,
        )
    return predictions


def _texts(part: Annotations) -> list[str]:
    assert part.texts is not None
    return [str(text) for text in part.texts]
