"""Does the learned size adapt? Sizes seed by seed, and what size is worth."""

from __future__ import annotations

import numpy as np

from edokit._io.markup import Cell, Table
from edokit.reproduce.effects import Answers, Outcome, outcome
from edokit.reproduce.fixed import PAPERS_POOL, SIGNS, VARIANTS, Configuration, fixed_outcomes
from edokit.reproduce.searches import searched_outcome
from edokit.reproduce.section import Section
from edokit.reproduce.study import DATASETS, Missing, Pool, Study

NAME = "sizes"
LARGEST = 10


def sizes(study: Study) -> Section:
    """Sizes under the fixed settings and the searches, and the CE of the best K by dev."""
    rows: list[list[Cell]] = []
    for (dataset, what), found in learned_sizes(study).items():
        listed = ", ".join(map(str, found))
        spread = float(np.std(found, ddof=1)) if len(found) > 1 else 0.0
        rows.append([dataset, what, float(np.mean(found)), spread, listed])
    curve: list[list[Cell]] = []
    for dataset in DATASETS:
        for size, one in size_curve(study, dataset).items():
            curve.append([dataset, size, one.mean("f1"), one.mean("ce"), one.spread("ce")])
    return Section(
        NAME,
        "Learned size",
        {
            "sizes": Table(
                "Members kept (K*), seed by seed",
                ["dataset", "settings", "mean", "spread between seeds", "by seed"],
                rows,
                digits=1,
            ),
            "size-curve": Table(
                "Plain mean of the K members with the lowest dev CE (test)",
                ["dataset", "K", "F1", "CE", "CE spread"],
                curve,
            ),
        },
    )


def learned_sizes(study: Study) -> dict[tuple[str, str], tuple[int, ...]]:
    """K* by dataset and settings, one per seed."""
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    for dataset in DATASETS:
        outcomes = fixed_outcomes(study, dataset)
        if isinstance(outcomes, Missing):
            continue
        for variant in VARIANTS:
            for sign in SIGNS:
                one = outcomes[Configuration(variant, "f1+ce", sign)]
                found[dataset, f"fixed, {variant}, {sign}"] = one.sizes
        searched = searched_outcome(study, dataset, PAPERS_POOL)
        if not isinstance(searched, Missing):
            found[dataset, "search, lowest dev CE"] = searched.sizes
    return found


def size_curve(study: Study, dataset: str) -> dict[int, Outcome]:
    """By K: the plain mean of the K best members by dev."""
    members = study.pool(dataset, PAPERS_POOL)
    if isinstance(members, Missing):
        return {}

    def find() -> dict[int, Outcome]:
        answers: dict[int, list[tuple[Answers, Answers]]] = {}
        for seed in range(study.seeds):
            drawn = members.drawn(seed)
            ranked = _ranked(drawn)
            for size in range(1, min(LARGEST, len(ranked)) + 1):
                some = drawn.of(ranked[:size])
                pair = Answers(some.fit.uniform), Answers(some.test.uniform)
                answers.setdefault(size, []).append(pair)
        return {
            size: outcome(found, members.fit_labels, members.test_labels)
            for size, found in answers.items()
        }

    return study.once(("size curve", dataset), find)


def _ranked(members: Pool) -> list[str]:
    from edokit.metrics import ce

    P = members.fit.probabilities
    losses = [ce(P[:, k], members.fit_labels.soft) for k in range(P.shape[1])]
    return [members.fit.members[k] for k in np.argsort(losses, kind="stable")]
