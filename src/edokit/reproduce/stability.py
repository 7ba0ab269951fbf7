"""Standard deviations over seeds."""

from __future__ import annotations

from dataclasses import dataclass

from edokit._io.markup import Cell, Table
from edokit.reproduce import paper
from edokit.reproduce.effects import HEADS, METRICS, Answers, Outcome, outcome
from edokit.reproduce.fixed import PAPERS_POOL, Configuration, by_gumbel, pooled
from edokit.reproduce.methods import method_outcome
from edokit.reproduce.searches import searched_outcome
from edokit.reproduce.section import Section, difference
from edokit.reproduce.study import DATASETS, Missing, Study

NAME = "stability"
_POOLS = {"EDO-Random": PAPERS_POOL, "EDO-PerAnn": "per-annotator"}


@dataclass(frozen=True)
class _Line:
    label: str
    found: Outcome | Missing
    printed: str | None = None


def stability(study: Study) -> Section:
    """How far scores move from seed to seed, beside the paper's deviations."""
    rows: list[list[Cell]] = []
    for dataset in DATASETS:
        for line in _lines(study, dataset):
            told = None
            if line.printed is not None:
                told = paper.row("deviations", method=line.printed, dataset=dataset)
            why = f"not available: {line.found.reason}" if isinstance(line.found, Missing) else ""
            if why and told is None:
                continue
            for metric in METRICS:
                ours = None if isinstance(line.found, Missing) else line.found.spread(metric)
                theirs = None if told is None else told[metric]
                rows.append(
                    [
                        dataset,
                        line.label,
                        HEADS[metric],
                        ours,
                        theirs,
                        difference(ours, theirs),
                        why,
                    ]
                )
    return Section(
        NAME,
        "Standard deviations over seeds",
        {
            "stability": Table(
                f"Standard deviation over {study.seeds} seeds (test)",
                ["dataset", "what varies", "metric", "ours", "paper", "difference", "note"],
                rows,
                notes=[
                    "A seed is ten of the twenty trained members and the solver's seed; pools of up"
                    " to ten members are the same in every seed."
                ],
            )
        },
    )


def _lines(study: Study, dataset: str) -> list[_Line]:
    lines = [
        _Line(name, searched_outcome(study, dataset, pool), name) for name, pool in _POOLS.items()
    ]
    lines.append(_Line("fixed settings, the solver's seed alone", solver_alone(study, dataset)))
    lines.append(
        _Line("plain mean, members", method_outcome(study, dataset, PAPERS_POOL, "uniform"))
    )
    lines.append(_Line("EDO, settled on dev", method_outcome(study, dataset, PAPERS_POOL, "edo")))
    return lines


def solver_alone(study: Study, dataset: str) -> Outcome | Missing:
    """The members of the first seed under every solver's seed."""
    members = study.pool(dataset, PAPERS_POOL)
    if isinstance(members, Missing):
        return members
    settings = [Configuration("mean", "f1+ce", "preserve").settings()]
    drawn = members.drawn(0)
    answers: list[tuple[Answers, Answers]] = []
    for seed in range(study.seeds):
        answers.append(pooled(drawn, by_gumbel(drawn, settings, seed)[0].weights))
    return outcome(answers, members.fit_labels, members.test_labels)
