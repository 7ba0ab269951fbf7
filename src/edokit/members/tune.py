"""Learning rate, batch size and warm-up, searched on the dev texts as the paper did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edokit._errors import EDOError, InputError
from edokit.members.recipe import Lesson, Progress
from edokit.members.transformer import TransformerMember

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


def tune(
    n_trials: int,
    lesson: Lesson,
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
                "tune on the targets of all annotators",
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
