"""K heads on one encoder and the weights that pool them, trained together into a folder."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import EDOWarning, InputError
from edokit.ensemble import EDOEnsemble
from edokit.members.end_to_end import END_TO_END
from edokit.members.folder import ENSEMBLE_FOLDER as ENSEMBLE
from edokit.members.folder import (
    MEMBERS,
    check_kind,
    clear,
    described,
    member_scores,
    read_card,
    scores,
)
from edokit.members.folder import PREDICTIONS_FOLDER as TABLES
from edokit.members.jobs import CARD, FORMAT, hardware, member_seed, split_warnings, versions
from edokit.members.jobs import JOB_PREDICTIONS as PREDICTIONS
from edokit.members.pretrained import require_packages
from edokit.members.recipe import read_arrays, write_arrays
from edokit.members.storing import remove_unfinished, whole_folder
from edokit.members.supervision import Draw, Supervision
from edokit.members.train import Step, Trained, write_trained
from edokit.members.training_data import TrainingData
from edokit.predictions import Predictions
from edokit.torch.plan import HEAD, JointPlan

if TYPE_CHECKING:
    from edokit.annotations import Annotations


@dataclass(frozen=True, eq=False)
class TrainedEndToEnd(Trained):
    """What training end to end gave."""

    ensemble: EDOEnsemble
    """The weights that were learned with the members, judged on dev."""


def train_end_to_end(
    annotations: Annotations,
    *,
    out: str | Path,
    members: int = 10,
    options: Mapping[str, Any] | None = None,
    preset: str = "default",
    supervision: str = Supervision.RANDOM_SELECT.value,
    draw: str = Draw.EPOCH.value,
    seed: int = 0,
    device: str | None = None,
    pairs: bool = False,
    overwrite: bool = False,
    source: str = "",
    step: Step = lambda event: None,
) -> TrainedEndToEnd:
    """Fine-tune K heads on one encoder together with their weights, unless ``out`` holds them.

    Heads and weights learn from the split ``train``, each head from answers drawn for itself; the
    epoch with the best pool on ``dev`` is kept. ``options`` are those of `EndToEndMembers`,
    ``preset`` names the objective: "default" or "paper-fixed". ``out`` gets the model
    (``end-to-end``), ``predictions`` of all other splits, the ``ensemble`` and a manifest.
    """
    require_packages("fine-tuning")
    plan = JointPlan.of(
        TrainingData.of(annotations, pairs=pairs),
        members=members,
        options=options or {},
        preset=preset,
        supervision=supervision,
        draw=draw,
        seed=seed,
    )
    _check_device(device)
    out = Path(out)
    check_kind(out, MEMBERS, overwrite=overwrite)
    if not _is_there(plan, out, overwrite=overwrite):
        _train(plan, out, device, step)
    card = read_card(out / END_TO_END) or {}
    predictions = _predictions(plan, read_arrays(out / END_TO_END / PREDICTIONS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)  # evenly split items were told of before
        ensemble = EDOEnsemble.from_weights(
            card["weights"],
            predictions[plan.dev],
            annotations.split(plan.dev),
            size=card["size"],
            preset=preset,
            random_state=seed,
        )
    manifest = _manifest(plan, card, predictions, ensemble, source)
    ensemble.save(out / ENSEMBLE)
    write_trained(out, predictions, manifest)
    return TrainedEndToEnd(predictions, manifest, (), ensemble)


def _is_there(plan: JointPlan, out: Path, *, overwrite: bool) -> bool:
    """Whether this very training is done; another one is refused or to be replaced."""
    if out.is_dir():
        remove_unfinished(out)
    card = read_card(out / END_TO_END)
    if card is None or card.get("fingerprint") == plan.fingerprint:
        return card is not None
    if not overwrite:
        raise InputError(
            f"{out} must be empty or hold members of this very training, but its members were"
            " trained end to end on other data or with other settings",
            "choose another --out, or replace them with --overwrite",
        )
    return False


def _train(plan: JointPlan, out: Path, device: str | None, step: Step) -> None:
    """Fit, predict and keep everything in a folder that appears whole."""
    course, place = plan.course, out / END_TO_END
    history: list[dict[str, Any]] = []

    def note(event: dict[str, Any]) -> None:
        history.append(event)
        heads = f"{plan.members} heads"
        step({"done": event["epoch"], "total": event["epochs"], "member": heads, **event})

    with whole_folder(place) as folder:
        started = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            network, head = plan.network(device), plan.head()
            seed = member_seed(plan.seed, END_TO_END, 0)
            network.fit(plan.lesson(), head, seed=seed, progress=note)
            arrays: dict[str, Any] = {}
            for name, rows in plan.rows.answer.items():
                answers = network.predict_members([course.texts[i] for i in rows])
                arrays[name] = answers.astype(np.float32)
                arrays[f"{name} items"] = np.array([course.items[i] for i in rows])
        ours, theirs = split_warnings(caught)
        _predictions(plan, arrays)  # what are no probabilities is refused before it is kept
        network.save(folder)
        write_arrays(folder / PREDICTIONS, **arrays)
        card = {
            "format": FORMAT,
            "fingerprint": plan.fingerprint,
            "members": plan.names,
            "weights": network.weights_,
            "size": network.size_,
            "best_epoch": network.best_epoch_,
            "classes": course.classes,
            "items": len(plan.rows.learn),
            "seconds": round(time.perf_counter() - started, 3),
            "history": history,
            "notes": [*ours, *theirs],
            "versions": versions(),
            "hardware": hardware(),
        }
        text = json.dumps(card, ensure_ascii=False, indent=2) + "\n"
        (folder / CARD).write_text(text, encoding="utf-8")
        if (read_card(place) or {}).get("fingerprint") != plan.fingerprint:
            # What is replaced goes only now that the new is finished.
            clear(out, MEMBERS, END_TO_END)
    for line in ours:
        warnings.warn(line, EDOWarning, stacklevel=3)


def _predictions(plan: JointPlan, arrays: Mapping[str, Any]) -> dict[str, Predictions]:
    """What every head says about every split but train."""
    return {
        name: Predictions.from_arrays(
            arrays[name],
            items=arrays[f"{name} items"].tolist(),
            members=plan.names,
            classes=plan.course.classes,
            groups=[HEAD] * plan.members,
            layout="NKC",
        )
        for name in plan.rows.answer
    }


def _manifest(
    plan: JointPlan,
    card: Mapping[str, Any],
    predictions: Mapping[str, Predictions],
    ensemble: EDOEnsemble,
    source: str,
) -> dict[str, Any]:
    """As of members trained one by one, with the weights and what the pool is worth."""
    course = plan.course
    judged = {name: member_scores(course, table) for name, table in predictions.items()}
    targets = {"supervision": plan.supervision, "draw": plan.draw}
    return {
        "format": FORMAT,
        "data": described(course, source),
        "seed": plan.seed,
        "cross_fit": None,
        "groups": [
            {
                "name": HEAD,
                "recipe": "transformer",
                "members": plan.members,
                **targets,
                "options": dict(plan.options),
            }
        ],
        "members": [
            {
                "name": name,
                "group": HEAD,
                "recipe": "transformer",
                "targets": targets,
                "seed": member_seed(plan.seed, HEAD, k),
                "items": card["items"],
                "weight": card["weights"][k],
                "metrics": {split: members[k] for split, (members, _) in judged.items()},
                "kept": True,
            }
            for k, name in enumerate(plan.names)
        ],
        "mean": {split: mean for split, (_, mean) in judged.items()},
        "pool": {
            split: scores(course, table, ensemble.predict_proba(table))
            for split, table in predictions.items()
        },
        "failed": [],
        "predictions": {name: f"{TABLES}/{name}.npz" for name in predictions},
        "end_to_end": {
            "folder": END_TO_END,
            "preset": plan.preset,
            **{name: card[name] for name in ("size", "best_epoch", "history", "notes", "hardware")},
        },
        "seconds": card["seconds"],
        "versions": card["versions"],
    }


def _check_device(device: str | None) -> None:
    from edokit.members.pretrained import choose_device

    if choose_device(device).type == "mps":
        raise InputError(
            "training end to end computes weights in double precision, but mps has none",
            "choose --device cpu or cuda",
        )
