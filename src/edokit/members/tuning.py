"""Options of fine-tuned groups, searched once per training and remembered in its folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from edokit._errors import InputError
from edokit.members.course import Course
from edokit.members.crossfit import rows_of
from edokit.members.pool import Group
from edokit.members.recipe import Lesson
from edokit.members.registry import find_recipe
from edokit.members.supervision import Draw, random_select

NAME = "tuning.json"


def tune_pool(
    groups: Sequence[Group],
    course: Course,
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
    course: Course,
    trials: int,
    seed: int,
    device: str | None,
    step: Callable[[dict[str, Any]], None],
) -> Any:
    from edokit.members.tune import tune

    rows = rows_of(course, None, None)
    learn, stop = course.take(rows.learn), course.take(rows.stop)
    once = group.draw == Draw.ONCE.value
    options = {**group.options, "device": device}
    lesson = Lesson(
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


def _key(group: Group, course: Course, trials: int, seed: int) -> str:
    text = json.dumps([asdict(group), course.digest, trials, seed], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _read(out: Path | None) -> dict[str, Any]:
    if out is None or not (out / NAME).is_file():
        return {}
    from edokit._io import read_json

    kept: dict[str, Any] = read_json(out / NAME)
    return kept
