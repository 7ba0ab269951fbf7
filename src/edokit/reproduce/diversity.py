"""The diversity ablation: base objectives with and without the diversity term."""

from __future__ import annotations

import numpy as np

from edokit._io.markup import Cell, Table
from edokit.reproduce import paper
from edokit.reproduce.ce_variants import (
    EFFECT_HEADER,
    EFFECT_NOTE,
    SHOWN,
    effect_cells,
    effect_values,
)
from edokit.reproduce.effects import HEADS, METRICS, Effect, Outcome, effect
from edokit.reproduce.fixed import OBJECTIVES, SIGNS, Configuration, fixed_outcomes
from edokit.reproduce.section import Section, difference
from edokit.reproduce.study import DATASETS, Missing, Study

NAME = "diversity"
Pair = tuple[Outcome, Outcome]


def diversity(study: Study) -> Section:
    """Averaged and per dataset, and the effect on CE with the noise beside it."""
    effects = diversity_effects(study)
    tables = {
        "diversity": _averaged(study),
        "diversity-per-dataset": _per_dataset(study),
        "diversity-effects": Table(
            "What the diversity term does to test CE: with less without",
            ["dataset", "objective", "sign", *EFFECT_HEADER, "paper"],
            [
                [
                    dataset,
                    objective,
                    SHOWN[sign],
                    *effect_cells(one),
                    _told(dataset, objective, sign),
                ]
                for (dataset, objective, sign), one in effects.items()
            ],
            notes=[
                EFFECT_NOTE,
                "Rows without diversity are one and the same run under both signs here; in the"
                " paper they differ (see the checks).",
            ],
        ),
    }
    return Section(
        NAME,
        "Diversity ablation",
        tables,
        values={"effects": {" ".join(key): effect_values(one) for key, one in effects.items()}},
    )


def diversity_effects(study: Study) -> dict[tuple[str, str, str], Effect]:
    """CE with less CE without diversity, by dataset, objective and sign."""

    def find() -> dict[tuple[str, str, str], Effect]:
        effects = {}
        for dataset in DATASETS:
            for objective in OBJECTIVES:
                for sign in SIGNS:
                    pair = _pair(study, dataset, objective, sign)
                    if not isinstance(pair, Missing):
                        effects[dataset, objective, sign] = effect(pair[1], pair[0], "ce")
        return effects

    return study.once(("effect of diversity",), find)


def _pair(study: Study, dataset: str, objective: str, sign: str) -> Pair | Missing:
    """Without and with diversity."""
    outcomes = fixed_outcomes(study, dataset)
    if isinstance(outcomes, Missing):
        return outcomes
    without, with_ = (outcomes[Configuration("all", objective, sign, on)] for on in (False, True))
    return without, with_


def _told(dataset: str, objective: str, sign: str) -> float | None:
    told = paper.row("diversity_per_dataset", dataset=dataset, objective=objective, diversity=sign)
    return None if told is None else told["ce_delta"]


def _averaged(study: Study) -> Table:
    rows: list[list[Cell]] = []
    there = [d for d in DATASETS if not isinstance(fixed_outcomes(study, d), Missing)]
    for told in paper.rows("diversity_averaged"):
        found = [_pair(study, d, told["objective"], told["diversity"]) for d in there]
        pairs = [pair for pair in found if not isinstance(pair, Missing)]
        for metric in METRICS:
            ours = spread = None
            if pairs:
                ours = float(np.mean([p[1].mean(metric) - p[0].mean(metric) for p in pairs]))
                spread = float(np.mean([p[0].spread(metric) for p in pairs]))
            printed = told[f"{metric}_delta"]
            start: list[Cell] = [told["objective"], SHOWN[told["diversity"]], HEADS[metric]]
            rows.append([*start, ours, spread, printed, difference(ours, printed)])
    return Table(
        "Mean effect of the diversity term over datasets (with less without)",
        ["objective", "sign", "metric", "effect", "spread", "effect paper", "difference"],
        rows,
        notes=[
            f"Ours averages {', '.join(there) or 'nothing'}; spread is the mean standard deviation"
            " between seeds without diversity."
        ],
    )


def _per_dataset(study: Study) -> Table:
    rows: list[list[Cell]] = []
    for told in paper.rows("diversity_per_dataset"):
        pair = _pair(study, told["dataset"], told["objective"], told["diversity"])
        start: list[Cell] = [told["dataset"], told["objective"], SHOWN[told["diversity"]]]
        for metric in METRICS:
            ours: list[Cell] = [None, None, None, None]
            gap = None
            if not isinstance(pair, Missing):
                without, with_ = pair[0].mean(metric), pair[1].mean(metric)
                gap = with_ - without
                ours = [without, with_, gap, max(one.spread(metric) for one in pair)]
            printed = [told[f"{metric}_{what}"] for what in ("without", "with", "delta")]
            rows.append([*start, HEADS[metric], *ours, *printed, difference(gap, printed[2])])
    return Table(
        "Diversity ablation per dataset (test)",
        [
            *("dataset", "objective", "sign", "metric", "without", "with", "effect", "spread"),
            *("without, paper", "with, paper", "effect, paper", "difference"),
        ],
        rows,
        notes=["Spread: standard deviation between seeds, the larger of the two columns'."],
    )
