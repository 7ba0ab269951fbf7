"""The ablation tables: cross-entropy variants, diversity, learned against uniform weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from edokit._io.markup import Cell, Table
from edokit.metrics import MAIN_METRICS
from reproduction import paper
from reproduction.lewidi2023.configurations import (
    OBJECTIVES,
    SIGN_NAMES,
    SIGNS,
    VARIANTS,
    Configuration,
    fixed_outcomes,
    searched_outcome,
)
from reproduction.lewidi2023.methods import method_outcome
from reproduction.lewidi2023.study import DATASETS, EVERYTHING, Missing, Study
from reproduction.outcomes import HEADS, Effect, Outcome, effect
from reproduction.section import Section, difference

Key = TypeVar("Key", bound=tuple[str, ...])
EFFECT_HEADER = ["effect", "spread between seeds", "low", "high", "claimed"]
EFFECT_NOTE = (
    "Low and high: 95 % interval over test items. Claimed: larger than the spread between seeds,"
    " and 0 outside the interval."
)


def ce_variants(study: Study) -> Section:
    """All three tables, and the effect of the sign with the noise beside it."""
    tables = {"ce-variants": _main(study)}
    for sign in SIGNS:
        tables[f"ce-variants-{sign}"] = _appendix(study, sign)
    values = {}
    for solver in ("gumbel", "exact"):
        effects = sign_effects(study, solver)
        tables[f"ce-variants-sign-{solver}"] = _sign_table(solver, effects)
        values[solver] = named_effects(effects)
    return Section(
        "ce-variants",
        "Cross-entropy variants and the sign of the diversity term",
        tables,
        values={"sign_effects": values},
    )


def sign_effects(study: Study, solver: str = "gumbel") -> dict[tuple[str, str], Effect]:
    """CE preserving less CE suppressing, by dataset and variant."""

    def find() -> dict[tuple[str, str], Effect]:
        effects = {}
        for dataset in DATASETS:
            outcomes = fixed_outcomes(study, dataset, solver)
            if not isinstance(outcomes, Missing):
                for variant in VARIANTS:
                    preserve = outcomes[Configuration(variant, "f1+ce", "preserve")]
                    suppress = outcomes[Configuration(variant, "f1+ce", "suppress")]
                    effects[dataset, variant] = effect(preserve, suppress, "ce")
        return effects

    return study.once(("effect of the sign", solver), find)


def effect_cells(effect: Effect) -> list[Cell]:
    """The cells under `EFFECT_HEADER`."""
    claimed = "yes" if effect.claimed else "no"
    return [effect.value, effect.spread, effect.low, effect.high, claimed]


def named_effects(effects: Mapping[Key, Effect]) -> dict[str, dict[str, object]]:
    """Effects by the words of their keys, ready for JSON."""
    return {" ".join(key): _effect_values(effect) for key, effect in effects.items()}


def _effect_values(effect: Effect) -> dict[str, object]:
    return {
        "effect": effect.value,
        "spread": effect.spread,
        "interval": [effect.low, effect.high],
        "claimed": effect.claimed,
    }


def compared(outcome: Outcome | Missing, paper_row: paper.Row, metric: str) -> list[Cell]:
    """Our mean, the paper's figure and the difference."""
    ours = None
    if isinstance(outcome, Outcome):
        ours = outcome.mean(metric)
    return [ours, paper_row[metric], difference(ours, paper_row[metric])]


def _outcome(study: Study, dataset: str, variant: str, sign: str) -> Outcome | Missing:
    outcomes = fixed_outcomes(study, dataset)
    if isinstance(outcomes, Missing):
        return outcomes
    return outcomes[Configuration(variant, "f1+ce", sign)]


def compared_header(metric: str) -> list[str]:
    """Over the cells of `compared`."""
    name = HEADS[metric]
    return [name, f"{name} paper", f"{name} difference"]


def _main(study: Study) -> Table:
    rows: list[list[Cell]] = []
    for paper_row in paper.rows("ce_variants_main"):
        outcome = _outcome(
            study, paper_row["dataset"], paper_row["variant"], paper_row["diversity"]
        )
        spread = gap = None
        note = ""
        if isinstance(outcome, Missing):
            note = outcome.note
        else:
            spread = outcome.spread("ce")
            gap = outcome.gap("ce")
        rows.append(
            [
                paper_row["dataset"],
                paper_row["variant"],
                SIGN_NAMES[paper_row["diversity"]],
                *compared(outcome, paper_row, "f1"),
                *compared(outcome, paper_row, "ce"),
                spread,
                gap,
                paper_row["gap_ce"],
                note,
            ]
        )
    return Table(
        "Cross-entropy variants under both signs (test), ours beside the paper's",
        [
            *("dataset", "variant", "sign", *compared_header("f1"), *compared_header("ce")),
            *("CE spread", "gap CE", "gap CE paper", "note"),
        ],
        rows,
        notes=[
            "Mean of the seeds, ten of twenty members each; CE spread is the standard deviation"
            " between seeds; gap is test less dev. Gumbel solver at the paper's fixed settings."
        ],
    )


def _appendix(study: Study, sign: str) -> Table:
    rows: list[list[Cell]] = []
    for paper_row in paper.rows(f"ce_variants_{sign}"):
        outcome = _outcome(study, paper_row["dataset"], paper_row["variant"], sign)
        for metric in ("f1", "ce", "md"):
            spread = gap = None
            if not isinstance(outcome, Missing):
                spread = outcome.spread(metric)
                gap = outcome.gap(metric)
            rows.append(
                [
                    paper_row["dataset"],
                    paper_row["variant"],
                    HEADS[metric],
                    *compared(outcome, paper_row, metric),
                    spread,
                    gap,
                    paper_row[f"gap_{metric}"],
                    difference(gap, paper_row[f"gap_{metric}"]),
                ]
            )
    return Table(
        f"Complete results, {sign} ({SIGN_NAMES[sign]}), ours beside the paper's",
        [
            *("dataset", "variant", "metric", "ours", "paper", "difference", "spread"),
            *("gap", "gap paper", "gap difference"),
        ],
        rows,
        notes=["Spread: standard deviation between seeds. Gap: test less dev."],
    )


def _sign_table(solver: str, effects: dict[tuple[str, str], Effect]) -> Table:
    rows: list[list[Cell]] = []
    for (dataset, variant), sign_effect in effects.items():
        preserve = paper.row(
            "ce_variants_main", dataset=dataset, variant=variant, diversity="preserve"
        )
        suppress = paper.row(
            "ce_variants_main", dataset=dataset, variant=variant, diversity="suppress"
        )
        assert preserve is not None
        assert suppress is not None
        printed = preserve["ce"] - suppress["ce"]
        rows.append([dataset, variant, *effect_cells(sign_effect), printed])
    solver_names = {
        "gumbel": "the paper's solver and settings",
        "exact": "the same objectives solved to the optimum",
    }[solver]
    return Table(
        f"What the sign does to test CE: preserve less suppress, {solver_names}",
        ["dataset", "variant", *EFFECT_HEADER, "paper"],
        rows,
        notes=[EFFECT_NOTE],
    )


Pair = tuple[Outcome, Outcome]


def diversity(study: Study) -> Section:
    """The ablation averaged and per dataset, and the effect on CE with the noise beside it."""
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
                    SIGN_NAMES[sign],
                    *effect_cells(sign_effect),
                    _paper_effect(dataset, objective, sign),
                ]
                for (dataset, objective, sign), sign_effect in effects.items()
            ],
            notes=[
                EFFECT_NOTE,
                "Rows without diversity are one and the same run under both signs here; in the"
                " paper they differ (see the checks).",
            ],
        ),
    }
    return Section(
        "diversity",
        "Diversity ablation",
        tables,
        values={"effects": named_effects(effects)},
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
                        without_diversity, with_diversity = pair
                        effects[dataset, objective, sign] = effect(
                            with_diversity, without_diversity, "ce"
                        )
        return effects

    return study.once(("effect of diversity",), find)


def _pair(study: Study, dataset: str, objective: str, sign: str) -> Pair | Missing:
    """The outcomes without and with diversity."""
    outcomes = fixed_outcomes(study, dataset)
    if isinstance(outcomes, Missing):
        return outcomes
    without_diversity = outcomes[Configuration("all", objective, sign, with_diversity=False)]
    with_diversity = outcomes[Configuration("all", objective, sign, with_diversity=True)]
    return without_diversity, with_diversity


def _paper_effect(dataset: str, objective: str, sign: str) -> float | None:
    paper_row = paper.row(
        "diversity_per_dataset", dataset=dataset, objective=objective, diversity=sign
    )
    if paper_row is None:
        return None
    return float(paper_row["ce_delta"])


def _averaged(study: Study) -> Table:
    rows: list[list[Cell]] = []
    available = [d for d in DATASETS if not isinstance(fixed_outcomes(study, d), Missing)]
    for paper_row in paper.rows("diversity_averaged"):
        objective = paper_row["objective"]
        sign = paper_row["diversity"]
        pairs = []
        for dataset in available:
            pair = _pair(study, dataset, objective, sign)
            if not isinstance(pair, Missing):
                pairs.append(pair)
        for metric in MAIN_METRICS:
            ours = spread = None
            if pairs:
                changes = [after.mean(metric) - before.mean(metric) for before, after in pairs]
                ours = float(np.mean(changes))
                spread = float(np.mean([before.spread(metric) for before, _ in pairs]))
            printed = paper_row[f"{metric}_delta"]
            rows.append(
                [
                    objective,
                    SIGN_NAMES[sign],
                    HEADS[metric],
                    ours,
                    spread,
                    printed,
                    difference(ours, printed),
                ]
            )
    return Table(
        "Mean effect of the diversity term over datasets (with less without)",
        ["objective", "sign", "metric", "effect", "spread", "effect paper", "difference"],
        rows,
        notes=[
            f"Ours averages {', '.join(available) or 'nothing'}; spread is the mean standard"
            " deviation between seeds without diversity."
        ],
    )


def _per_dataset(study: Study) -> Table:
    rows: list[list[Cell]] = []
    for paper_row in paper.rows("diversity_per_dataset"):
        pair = _pair(study, paper_row["dataset"], paper_row["objective"], paper_row["diversity"])
        start: list[Cell] = [
            paper_row["dataset"],
            paper_row["objective"],
            SIGN_NAMES[paper_row["diversity"]],
        ]
        for metric in MAIN_METRICS:
            ours: list[Cell] = [None, None, None, None]
            gap = None
            if not isinstance(pair, Missing):
                without_diversity = pair[0].mean(metric)
                with_diversity = pair[1].mean(metric)
                gap = with_diversity - without_diversity
                spread = max(outcome.spread(metric) for outcome in pair)
                ours = [without_diversity, with_diversity, gap, spread]
            printed = [paper_row[f"{metric}_{column}"] for column in ("without", "with", "delta")]
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


POOLS = ("random-select", "per-annotator")
MORE = ("soft-ce", "mixed", EVERYTHING)


def weighting(study: Study) -> Section:
    """The paper's table, and the same question for our defaults on every pool."""
    rows: list[list[Cell]] = []
    for paper_row in paper.rows("weighting"):
        pair = _searched_and_uniform(study, paper_row["dataset"], paper_row["pool"])
        for metric in ("f1", "ce", "md"):
            printed = paper_row[f"delta_{metric}"]
            cells: list[Cell] = [paper_row["dataset"], paper_row["pool"], HEADS[metric]]
            if isinstance(pair, Missing):
                cells += [*[None] * len(EFFECT_HEADER), printed, None, pair.note]
            else:
                metric_effect = effect(*pair, metric)
                cells += [*effect_cells(metric_effect), printed, metric_effect.value - printed, ""]
            rows.append(cells)
    effects = weighting_effects(study)
    tables = {
        "weighting": Table(
            "Learned weights (lowest dev CE of the searches) less the uniform mean",
            ["dataset", "pool", "metric", *EFFECT_HEADER, "effect paper", "difference", "note"],
            rows,
            notes=[EFFECT_NOTE, "A negative effect on CE or MD is a gain of learned weights."],
        ),
        "weighting-effects": Table(
            "Test CE of learned weights less that of the uniform mean of the same members",
            ["dataset", "pool", "weights", *EFFECT_HEADER],
            [[*key, *effect_cells(metric_effect)] for key, metric_effect in effects.items()],
            notes=[EFFECT_NOTE],
        ),
    }
    values = {"effects": named_effects(effects)}
    return Section("weighting", "Learned weights against uniform weights", tables, values=values)


def weighting_effects(study: Study) -> dict[tuple[str, str, str], Effect]:
    """CE of learned less CE of uniform weights, by dataset, pool and method of learning."""

    def find() -> dict[tuple[str, str, str], Effect]:
        effects = {}
        for dataset in DATASETS:
            for pool in (*POOLS, *MORE):
                uniform = method_outcome(study, dataset, pool, "uniform")
                if isinstance(uniform, Missing):
                    continue
                if pool in POOLS:
                    pair = _searched_and_uniform(study, dataset, pool)
                    if not isinstance(pair, Missing):
                        effects[dataset, pool, "paper's search"] = effect(*pair, "ce")
                default = method_outcome(study, dataset, pool, "edo")
                if not isinstance(default, Missing):
                    effects[dataset, pool, "EDO, default"] = effect(default, uniform, "ce")
        return effects

    return study.once(("effect of weighting",), find)


def _searched_and_uniform(
    study: Study, dataset: str, pool: str
) -> tuple[Outcome, Outcome] | Missing:
    learned = searched_outcome(study, dataset, pool)
    uniform = method_outcome(study, dataset, pool, "uniform")
    if isinstance(learned, Missing):
        return learned
    assert isinstance(uniform, Outcome)
    return learned, uniform
