"""Cross-entropy variants under both signs: the main table and both of the appendix."""

from __future__ import annotations

from typing import Any

from edokit._io.markup import Cell, Table
from edokit.reproduce import paper
from edokit.reproduce.effects import HEADS, Effect, Outcome, effect
from edokit.reproduce.fixed import SIGNS, VARIANTS, Configuration, fixed_outcomes
from edokit.reproduce.section import Section, difference
from edokit.reproduce.study import DATASETS, Missing, Study

NAME = "ce-variants"
SHOWN = {"preserve": "s=−1", "suppress": "s=+1"}
EFFECT_HEADER = ["effect", "spread between seeds", "low", "high", "claimed"]
EFFECT_NOTE = (
    "Low and high: 95 % interval over test items. Claimed: larger than the spread between seeds,"
    " and 0 outside the interval."
)


def ce_variants(study: Study) -> Section:
    """All three tables, and what the sign does, with the noise beside it."""
    tables = {
        "ce-variants": _main(study),
        **{f"ce-variants-{sign}": _appendix(study, sign) for sign in SIGNS},
    }
    found = {solver: sign_effects(study, solver) for solver in ("gumbel", "exact")}
    for solver, effects in found.items():
        tables[f"ce-variants-sign-{solver}"] = _sign_table(solver, effects)
    return Section(
        NAME,
        "Cross-entropy variants and the sign of the diversity term",
        tables,
        values={
            "sign_effects": {
                solver: {
                    f"{dataset} {variant}": effect_values(one)
                    for (dataset, variant), one in effects.items()
                }
                for solver, effects in found.items()
            }
        },
    )


def sign_effects(study: Study, solver: str = "gumbel") -> dict[tuple[str, str], Effect]:
    """CE preserving less CE suppressing, by dataset and variant."""

    def find() -> dict[tuple[str, str], Effect]:
        effects = {}
        for dataset in DATASETS:
            outcomes = fixed_outcomes(study, dataset, solver)
            if not isinstance(outcomes, Missing):
                for variant in VARIANTS:
                    two = [outcomes[Configuration(variant, "f1+ce", sign)] for sign in SIGNS]
                    effects[dataset, variant] = effect(two[0], two[1], "ce")
        return effects

    return study.once(("effect of the sign", solver), find)


def effect_cells(one: Effect) -> list[Cell]:
    """The cells under `EFFECT_HEADER`."""
    return [one.value, one.spread, one.low, one.high, "yes" if one.claimed else "no"]


def effect_values(one: Effect) -> dict[str, Any]:
    """Ready for JSON."""
    return {
        "effect": one.value,
        "spread": one.spread,
        "interval": [one.low, one.high],
        "claimed": one.claimed,
    }


def compared(found: Outcome | Missing, told: paper.Row, metric: str) -> list[Cell]:
    """Ours, the paper's and the difference."""
    ours = None if isinstance(found, Missing) else found.mean(metric)
    return [ours, told[metric], difference(ours, told[metric])]


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
    for told in paper.rows("ce_variants_main"):
        found = _outcome(study, told["dataset"], told["variant"], told["diversity"])
        missing = isinstance(found, Missing)
        rows.append(
            [
                told["dataset"],
                told["variant"],
                SHOWN[told["diversity"]],
                *compared(found, told, "f1"),
                *compared(found, told, "ce"),
                None if isinstance(found, Missing) else found.spread("ce"),
                None if isinstance(found, Missing) else found.gap("ce"),
                told["gap_ce"],
                _why(found) if missing else "",
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
    for told in paper.rows(f"ce_variants_{sign}"):
        found = _outcome(study, told["dataset"], told["variant"], sign)
        for metric in ("f1", "ce", "md"):
            spread = gap = None
            if not isinstance(found, Missing):
                spread, gap = found.spread(metric), found.gap(metric)
            rows.append(
                [
                    told["dataset"],
                    told["variant"],
                    HEADS[metric],
                    *compared(found, told, metric),
                    spread,
                    gap,
                    told[f"gap_{metric}"],
                    difference(gap, told[f"gap_{metric}"]),
                ]
            )
    return Table(
        f"Complete results, {sign} ({SHOWN[sign]}), ours beside the paper's",
        [
            *("dataset", "variant", "metric", "ours", "paper", "difference", "spread"),
            *("gap", "gap paper", "gap difference"),
        ],
        rows,
        notes=["Spread: standard deviation between seeds. Gap: test less dev."],
    )


def _sign_table(solver: str, effects: dict[tuple[str, str], Effect]) -> Table:
    rows: list[list[Cell]] = []
    for (dataset, variant), one in effects.items():
        two = [
            paper.row("ce_variants_main", dataset=dataset, variant=variant, diversity=sign)
            for sign in SIGNS
        ]
        assert two[0] is not None
        assert two[1] is not None
        rows.append([dataset, variant, *effect_cells(one), two[0]["ce"] - two[1]["ce"]])
    how = {
        "gumbel": "the paper's solver and settings",
        "exact": "the same objectives solved to the optimum",
    }[solver]
    return Table(
        f"What the sign does to test CE: preserve less suppress, {how}",
        ["dataset", "variant", *EFFECT_HEADER, "paper"],
        rows,
        notes=[EFFECT_NOTE],
    )


def _why(found: Outcome | Missing) -> str:
    return f"not available: {found.reason}" if isinstance(found, Missing) else ""
