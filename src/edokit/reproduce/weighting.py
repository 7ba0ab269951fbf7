"""Learned weights against the plain mean of the same members."""

from __future__ import annotations

from edokit._io.markup import Cell, Table
from edokit.reproduce import paper
from edokit.reproduce.ce_variants import EFFECT_HEADER, EFFECT_NOTE, effect_cells, effect_values
from edokit.reproduce.effects import HEADS, Effect, Outcome, effect
from edokit.reproduce.methods import method_outcome
from edokit.reproduce.searches import searched_outcome
from edokit.reproduce.section import Section
from edokit.reproduce.study import DATASETS, EVERYTHING, Missing, Study

NAME = "weighting"
POOLS = ("random-select", "per-annotator")
MORE = ("soft-ce", "mixed", EVERYTHING)


def weighting(study: Study) -> Section:
    """The paper's table, and the same question for our defaults on every pool."""
    rows: list[list[Cell]] = []
    for told in paper.rows("weighting"):
        two = _searched_and_uniform(study, told["dataset"], told["pool"])
        for metric in ("f1", "ce", "md"):
            printed = told[f"delta_{metric}"]
            start: list[Cell] = [told["dataset"], told["pool"], HEADS[metric]]
            if isinstance(two, Missing):
                why = f"not available: {two.reason}"
                rows.append([*start, *[None] * 5, printed, None, why])
            else:
                one = effect(*two, metric)
                rows.append([*start, *effect_cells(one), printed, one.value - printed, ""])
    effects = weighting_effects(study)
    tables = {
        "weighting": Table(
            "Learned weights (lowest dev CE of the searches) less the plain mean",
            ["dataset", "pool", "metric", *EFFECT_HEADER, "effect paper", "difference", "note"],
            rows,
            notes=[EFFECT_NOTE, "A negative effect on CE or MD is a gain of learned weights."],
        ),
        "weighting-effects": Table(
            "Test CE of learned weights less that of the plain mean of the same members",
            ["dataset", "pool", "weights", *EFFECT_HEADER],
            [[*key, *effect_cells(one)] for key, one in effects.items()],
            notes=[EFFECT_NOTE],
        ),
    }
    values = {"effects": {" ".join(key): effect_values(one) for key, one in effects.items()}}
    return Section(NAME, "Learned weights against uniform weights", tables, values=values)


def weighting_effects(study: Study) -> dict[tuple[str, str, str], Effect]:
    """CE learned less CE uniform, by dataset, pool and who learned."""

    def find() -> dict[tuple[str, str, str], Effect]:
        effects = {}
        for dataset in DATASETS:
            for pool in (*POOLS, *MORE):
                uniform = method_outcome(study, dataset, pool, "uniform")
                if isinstance(uniform, Missing):
                    continue
                if pool in POOLS:
                    two = _searched_and_uniform(study, dataset, pool)
                    if not isinstance(two, Missing):
                        effects[dataset, pool, "paper's search"] = effect(*two, "ce")
                ours = method_outcome(study, dataset, pool, "edo")
                if not isinstance(ours, Missing):
                    effects[dataset, pool, "EDO default"] = effect(ours, uniform, "ce")
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
