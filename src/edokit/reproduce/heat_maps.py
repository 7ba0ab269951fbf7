"""Spearman correlations between what a trial draws and what it gives on dev."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import pearsonr, rankdata

from edokit._io import whole_file
from edokit._io.markup import Cell, Table
from edokit.reproduce import paper
from edokit.reproduce.effects import HEADS, METRICS
from edokit.reproduce.fixed import PAPERS_POOL, SIGNS
from edokit.reproduce.searches import VARIED, Trial, searched
from edokit.reproduce.section import Draw, Section, signed
from edokit.reproduce.study import DATASETS, Missing, Study

NAME = "heat-maps"
SETTINGS = (*VARIED, "size")
WEAK = 0.2
"""Below this a correlation is called weak."""
Correlations = dict[tuple[str, str, str, str], tuple[float, float, float]]


def heat_maps(study: Study) -> Section:
    """A correlation per dataset, sign, setting and metric, and the paper's sentences about them."""
    found = correlations(study)
    rows: list[list[Cell]] = []
    for dataset in DATASETS:
        for sign in SIGNS:
            for setting in SETTINGS:
                cells: list[Cell] = [dataset, sign, setting]
                for metric in METRICS:
                    one = found.get((dataset, sign, setting, metric))
                    cells += [None, None] if one is None else [one[0], one[2]]
                if any(cell is not None for cell in cells[3:]):
                    rows.append(cells)
    header = ["dataset", "sign", "setting"]
    for metric in METRICS:
        header += [f"ρ {HEADS[metric]}", f"ρ {HEADS[metric]} spread"]
    claims = claims_checked(found)
    tables = {
        "heat-maps": Table(
            "Spearman correlations of settings and dev metrics over the trials",
            header,
            rows,
            notes=[
                "All variants together, ranks within each seed; spread is the standard deviation of"
                " ρ between seeds."
            ],
            digits=2,
        ),
        "heat-map-claims": Table(
            "What the paper says about the correlations, and how often it is so here",
            ["setting", "metric", "sign", "paper says", "so here", "of", "ρ by dataset"],
            [
                [
                    one["setting"],
                    HEADS[one["metric"]],
                    one["sign"],
                    one["says"],
                    one["agree"],
                    one["of"],
                    one["shown"],
                ]
                for one in claims
            ],
            notes=[f"Weak: |ρ| below {WEAK}. The figure's own numbers are not printed."],
        ),
    }
    figures: dict[str, Draw] = {}
    for dataset in DATASETS:
        if any(key[0] == dataset for key in found):
            trials = searched(study, dataset, PAPERS_POOL)
            assert not isinstance(trials, Missing)
            figures[f"heat-map-{dataset}"] = _drawing(found, dataset, len(trials) // len(SIGNS))
    return Section(NAME, "Heat maps", tables, values={"claims": claims}, figures=figures)


def correlations(study: Study) -> Correlations:
    """(dataset, sign, setting, metric): ρ within seeds, its p-value, ρ's spread over seeds."""

    def find() -> Correlations:
        found: Correlations = {}
        for dataset in DATASETS:
            trials = searched(study, dataset, PAPERS_POOL)
            if isinstance(trials, Missing):
                continue
            for sign in SIGNS:
                own = [t for t in trials if t.diversity == sign]
                for setting in SETTINGS:
                    for metric in METRICS:
                        one = within_seeds(own, setting, metric)
                        if one is not None:
                            found[dataset, sign, setting, metric] = one
        return found

    return study.once(("correlations",), find)


def within_seeds(
    trials: Sequence[Trial], setting: str, metric: str
) -> tuple[float, float, float] | None:
    """Spearman's ρ over ranks within each seed, since seeds have other members; p-value, spread."""
    ranks, each = [], []
    for seed in sorted({t.seed for t in trials}):
        own = [t for t in trials if t.seed == seed]
        x = np.array([t.size if setting == "size" else t.settings[setting] for t in own])
        y = np.array([getattr(t, metric) for t in own])
        if len(own) > 2 and np.ptp(x) > 0 and np.ptp(y) > 0:
            pair = np.stack([rankdata(x), rankdata(y)]) / len(own)
            ranks.append(pair)
            each.append(float(pearsonr(pair[0], pair[1])[0]))
    if not ranks:
        return None
    rho, p_value = pearsonr(*np.concatenate(ranks, axis=1))
    spread = float(np.std(each, ddof=1)) if len(each) > 1 else 0.0
    return float(rho), float(p_value), spread


def claims_checked(found: Correlations) -> list[dict[str, Any]]:
    """For each sentence of the paper: on how many datasets and signs it is so."""
    checked = []
    for told in paper.rows("heat_maps"):
        signs = SIGNS if told["diversity"] == "both" else (told["diversity"],)
        values = {
            (dataset, sign): found[dataset, sign, told["setting"], told["metric"]][0]
            for dataset in DATASETS
            for sign in signs
            if (dataset, sign, told["setting"], told["metric"]) in found
        }
        agree = {
            "positive": lambda rho: rho > WEAK,
            "negative": lambda rho: rho < -WEAK,
            "weak": lambda rho: abs(rho) <= WEAK,
        }[told["says"]]
        checked.append(
            {
                "setting": told["setting"],
                "metric": told["metric"],
                "sign": told["diversity"],
                "says": told["says"],
                "agree": sum(map(agree, values.values())),
                "of": len(values),
                "shown": ", ".join(
                    f"{dataset} {'s=−1' if sign == 'preserve' else 's=+1'} {signed(rho, 2)}"
                    for (dataset, sign), rho in values.items()
                ),
            }
        )
    return checked


def _drawing(found: Correlations, dataset: str, trials: int) -> Draw:
    def draw(path: Path) -> list[Path]:
        from edokit.search.figures import correlation_figure
        from edokit.search.trials import METRICS as SHOWN
        from edokit.search.trials import Correlation

        own = [
            Correlation(sign, setting, metric, rho, p_value, trials)
            for (name, sign, setting, metric), (rho, p_value, _) in found.items()
            if name == dataset and metric in SHOWN
        ]
        figure = correlation_figure(own)
        written = [path.with_name(f"{path.name}.{ending}") for ending in ("png", "pdf")]
        for file in written:
            with whole_file(file) as temporary:
                figure.savefig(temporary, dpi=150)
        return written

    return draw
