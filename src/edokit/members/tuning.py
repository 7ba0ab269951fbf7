"""Learning rate, batch size and warm-up of fine-tuned groups, searched on the dev texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import RootModel

from edokit._errors import EDOError, InputError, counted, option
from edokit._io.documents import Document, Json, read_model
from edokit._io.json import read_json
from edokit.members.groups import Group
from edokit.members.jobs import TrainingJob, member_data
from edokit.members.recipe import MemberData, Progress, find_recipe
from edokit.members.supervision import Supervision
from edokit.members.training_data import TrainingData, rows_for_job

NAME = "tuning.json"
LEARNING_RATE = (1e-6, 1e-4)
BATCH_SIZES = (4, 8, 16, 32, 64)
WARMUP_STEPS = (1, 500)


def tune_groups(
    groups: Sequence[Group],
    data: TrainingData,
    trials: int,
    random_state: int = 0,
    out: Path | None = None,
    device: str | None = None,
    step: Progress = lambda event: None,
) -> list[Group]:
    """The groups with the learning rate, batch size and warm-up that do best on dev.

    Groups of the recipe ``transformer`` are searched, on randomly selected labels. Results are
    kept in ``out``, so that a resumed training does not search again.
    """
    from edokit._io import write_json

    if not any(group.recipe == "transformer" for group in groups):
        raise InputError(
            "only groups of the recipe 'transformer' can be tuned, and there is none",
            f"leave {option('tune')} out",
        )
    path = None if out is None else out / NAME
    tuned: dict[str, Any] = {}
    if path is not None and path.is_file():
        hint = "remove it to tune again"
        read_model(path, _TunedGroups, title="the result of tuning", hint=hint)
        tuned = read_json(path)
    rows = rows_for_job(data, None, None)
    train, stop = data.take(rows.train), data.take(rows.stop)
    tuned_groups = []
    for group in groups:
        if group.recipe == "transformer":
            text = json.dumps([asdict(group), data.digest, trials, random_state], sort_keys=True)
            key = hashlib.sha256(text.encode()).hexdigest()[:32]
            if key not in tuned:
                options = {**group.options, "device": device}
                shared = find_recipe(group.recipe).prepare((*train.texts, *stop.texts), options)
                job = TrainingJob(
                    member="",
                    group=group.name,
                    recipe=group.recipe,
                    options=options,
                    supervision=Supervision.RANDOM_SELECT.value,
                    draw=str(group.draw),
                    seed=random_state,
                )
                best, results = tune_options(
                    trials,
                    member_data(train, job, stop, shared),
                    len(data.classes),
                    options,
                    random_state=random_state,
                    progress=partial(_report, step, group.name),
                )
                tuned[key] = {"group": group.name, "best": best, "trials": results}
                if path is not None:
                    write_json(tuned, path)
            group = replace(group, options={**group.options, **tuned[key]["best"]})
        tuned_groups.append(group)
    return tuned_groups


class _TunedGroup(Document):
    best: dict[str, Json]


class _TunedGroups(RootModel[dict[str, _TunedGroup]]):
    """The best options of each tuned group, by a digest of the group, data and search."""


def tune_options(
    n_trials: int,
    data: MemberData,
    n_classes: int,
    options: Mapping[str, Any],
    *,
    random_state: int,
    progress: Progress | None = None,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Train one transformer member per trial and keep the options of the lowest dev CE.

    ``options`` are those that stay as they are. Returns the best learning rate, batch size and
    warm-up, and every trial: its options, and its dev CE (None where training failed).
    """
    import optuna

    from edokit.members.recipes.transformer import TransformerMember

    if n_trials < 1 or not len(data.dev_texts):
        raise InputError(
            "tuning needs at least one trial and dev texts to evaluate it on, not"
            f" {counted(n_trials, 'trial')} and {counted(len(data.dev_texts), 'dev text')}",
            "add a dev split",
        )
    trials: list[dict[str, Any]] = []

    def dev_ce(trial: Any) -> float:
        tried = {
            "learning_rate": trial.suggest_float("learning_rate", *LEARNING_RATE, log=True),
            "batch_size": trial.suggest_categorical("batch_size", BATCH_SIZES),
            "warmup_steps": trial.suggest_int("warmup_steps", *WARMUP_STEPS),
        }

        def report(event: dict[str, Any]) -> None:
            if progress is not None and "epoch" in event:
                progress({"trial": trial.number + 1, "trials": n_trials, **event})

        member = TransformerMember(n_classes, **{**options, **tried})
        try:
            member.fit(data, random_state=random_state, progress=report)
        except EDOError as error:
            trials.append({**tried, "dev_ce": None, "reason": error.message})
            raise optuna.TrialPruned from error
        if not member.history_:
            raise InputError(
                "all targets have one class, so there is nothing to tune",
                "tune on the labels of all annotators",
            )
        lowest = float(min(report["dev_ce"] for report in member.history_))
        trials.append({**tried, "dev_ce": lowest})
        return lowest

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=random_state))
        study.optimize(dev_ce, n_trials=n_trials)
    finally:
        optuna.logging.set_verbosity(before)
    done = [trial for trial in trials if trial["dev_ce"] is not None]
    if not done:
        reason = trials[0]["reason"]
        raise InputError(f"all {n_trials} trials failed: {reason}", "correct the options")
    best = min(done, key=lambda trial: trial["dev_ce"])
    return {name: best[name] for name in best if name != "dev_ce"}, trials


def _report(step: Progress, group: str, event: dict[str, Any]) -> None:
    step({"member": f"{group}: tuning", **event})
