"""Learning rate, batch size and warm-up of fine-tuned groups, searched on the dev texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from edokit._errors import EDOError, InputError
from edokit.members.groups import Group
from edokit.members.recipe import MemberData, Progress, find_recipe
from edokit.members.recipes.transformer import TransformerMember
from edokit.members.supervision import Draw, random_select
from edokit.members.training_data import TrainingData, rows_for_job

NAME = "tuning.json"


def tune_pool(
    groups: Sequence[Group],
    course: TrainingData,
    trials: int,
    *,
    seed: int = 0,
    out: Path | None = None,
    device: str | None = None,
    step: Callable[[dict[str, Any]], None] = lambda event: None,
) -> list[Group]:
    """The groups with the learning rate, batch size and warm-up that do best on dev.

    Groups of the recipe ``transformer`` are searched, on randomly selected answers. What was found
    is kept in ``out``, so that a training that goes on does not search again.
    """
    if not any(group.recipe == "transformer" for group in groups):
        raise InputError(
            "tuning is for the recipe 'transformer', but the pool has none of it",
            "leave --tune out",
        )
    kept = _read(out)
    tuned = []
    for group in groups:
        if group.recipe != "transformer":
            tuned.append(group)
            continue
        key = _key(group, course, trials, seed)
        if key not in kept:
            found = _search(group, course, trials, seed, device, step)
            kept[key] = {"group": group.name, "best": found.best, "trials": found.trials}
            if out is not None:
                from edokit._io import write_json

                write_json(kept, out / NAME)
        tuned.append(replace(group, options={**group.options, **kept[key]["best"]}))
    return tuned


def _search(
    group: Group,
    course: TrainingData,
    trials: int,
    seed: int,
    device: str | None,
    step: Callable[[dict[str, Any]], None],
) -> Any:
    from edokit.members.tuning import tune_options as tune

    rows = rows_for_job(course, None, None)
    learn, stop = course.take(rows.learn), course.take(rows.stop)
    once = group.draw == Draw.ONCE.value
    options = {**group.options, "device": device}
    lesson = MemberData(
        texts=learn.texts,
        targets=lambda epoch: random_select(learn, seed, 0 if once else epoch),
        dev_texts=stop.texts,
        dev_soft_labels=stop.soft_labels if len(stop) else None,
        dev_hard_labels=stop.hard if len(stop) else None,
        annotations=learn,
        shared=find_recipe(group.recipe).prepare((*learn.texts, *stop.texts), options),
    )
    return tune(
        trials,
        lesson,
        len(course.classes),
        options,
        seed=seed,
        progress=lambda event: step({"member": f"{group.name}: tuning", **event}),
    )


def _key(group: Group, course: TrainingData, trials: int, seed: int) -> str:
    text = json.dumps([asdict(group), course.digest, trials, seed], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _read(out: Path | None) -> dict[str, Any]:
    if out is None or not (out / NAME).is_file():
        return {}
    from edokit._io import read_json

    kept: dict[str, Any] = read_json(out / NAME)
    return kept


LEARNING_RATE = (1e-6, 1e-4)
BATCH_SIZES = (4, 8, 16, 32, 64)
WARMUP_STEPS = (1, 500)


@dataclass(frozen=True)
class Tuned:
    """What a search found."""

    best: dict[str, Any]
    """learning_rate, batch_size and warmup_steps of the lowest dev CE."""
    trials: list[dict[str, Any]]
    """Every trial: its options, and its dev_ce (None where training failed)."""


def tune_options(
    n_trials: int,
    lesson: MemberData,
    n_classes: int,
    options: Mapping[str, Any],
    *,
    seed: int,
    progress: Progress | None = None,
) -> Tuned:
    """Train one member per trial and keep the options of the lowest dev CE.

    ``options`` are those of `TransformerMember` that stay as they are.
    """
    import optuna

    if n_trials < 1 or not len(lesson.dev_texts):
        raise InputError(
            "tuning needs at least one trial and dev texts to judge it on, but got"
            f" {n_trials} trial(s) and {len(lesson.dev_texts)} dev texts",
            "give a dev split",
        )
    trials: list[dict[str, Any]] = []

    def dev_ce(trial: Any) -> float:
        chosen = {
            "learning_rate": trial.suggest_float("learning_rate", *LEARNING_RATE, log=True),
            "batch_size": trial.suggest_categorical("batch_size", BATCH_SIZES),
            "warmup_steps": trial.suggest_int("warmup_steps", *WARMUP_STEPS),
        }

        def tell(report: dict[str, Any]) -> None:
            if progress is not None:
                progress({"trial": trial.number + 1, "trials": n_trials, **report})

        member = TransformerMember(n_classes, **{**options, **chosen})
        try:
            member.fit(lesson, seed=seed, progress=tell)
        except EDOError as error:
            trials.append({**chosen, "dev_ce": None, "reason": error.message})
            raise optuna.TrialPruned from error
        if not member.history_:
            raise InputError(
                "tuning needs targets of several classes, but all name one",
                "tune_options on the targets of all annotators",
            )
        lowest = float(min(report["dev_ce"] for report in member.history_))
        trials.append({**chosen, "dev_ce": lowest})
        return lowest

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        study.optimize(dev_ce, n_trials=n_trials)
    finally:
        optuna.logging.set_verbosity(before)
    done = [trial for trial in trials if trial["dev_ce"] is not None]
    if not done:
        raise InputError(
            f"at least one trial must succeed, but all {n_trials} failed: {trials[0]['reason']}",
            "correct the options",
        )
    best = min(done, key=lambda trial: trial["dev_ce"])
    return Tuned({name: best[name] for name in best if name != "dev_ce"}, trials)
