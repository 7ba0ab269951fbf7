"""What searches and solvers give: sizes, correlations, spread over seeds, seconds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import pearsonr, rankdata

from edokit._io.markup import Cell, Table
from edokit.figures import Figure
from edokit.metrics import MAIN_METRICS
from reproduction import paper
from reproduction.lewidi2023.configurations import (
    PAPERS_POOL,
    SIGNS,
    VARIANTS,
    VARIED,
    Configuration,
    Trial,
    by_exact,
    by_gumbel,
    fixed_outcomes,
    pooled,
    run_search,
    searched,
    searched_outcome,
)
from reproduction.lewidi2023.heat_maps import Correlation, correlation_figure
from reproduction.lewidi2023.methods import method_outcome
from reproduction.lewidi2023.study import DATASETS, Missing, Pool, Study
from reproduction.outcomes import HEADS, Outcome, Predicted, outcome
from reproduction.section import Section, difference, signed

LARGEST = 10


def sizes(study: Study) -> Section:
    """Sizes under the fixed settings and the searches, and the CE of the best K by dev."""
    rows: list[list[Cell]] = []
    for (dataset, name), member_sizes in learned_sizes(study).items():
        listed = ", ".join(map(str, member_sizes))
        spread = float(np.std(member_sizes, ddof=1)) if len(member_sizes) > 1 else 0.0
        rows.append([dataset, name, float(np.mean(member_sizes)), spread, listed])
    curve: list[list[Cell]] = []
    for dataset in DATASETS:
        for size, size_outcome in size_curve(study, dataset).items():
            curve.append(
                [
                    dataset,
                    size,
                    size_outcome.mean("f1"),
                    size_outcome.mean("ce"),
                    size_outcome.spread("ce"),
                ]
            )
    return Section(
        "sizes",
        "Learned size",
        {
            "sizes": Table(
                "Members kept (K*), seed by seed",
                ["dataset", "settings", "mean", "spread between seeds", "by seed"],
                rows,
                digits=1,
            ),
            "size-curve": Table(
                "Uniform mean of the K members with the lowest dev CE (test)",
                ["dataset", "K", "F1", "CE", "CE spread"],
                curve,
            ),
        },
    )


def learned_sizes(study: Study) -> dict[tuple[str, str], tuple[int, ...]]:
    """K* by dataset and settings, one per seed."""
    member_sizes: dict[tuple[str, str], tuple[int, ...]] = {}
    for dataset in DATASETS:
        outcomes = fixed_outcomes(study, dataset)
        if isinstance(outcomes, Missing):
            continue
        for variant in VARIANTS:
            for sign in SIGNS:
                configured = outcomes[Configuration(variant, "f1+ce", sign)]
                member_sizes[dataset, f"fixed, {variant}, {sign}"] = configured.sizes
        searched = searched_outcome(study, dataset, PAPERS_POOL)
        if not isinstance(searched, Missing):
            member_sizes[dataset, "search, lowest dev CE"] = searched.sizes
    return member_sizes


def size_curve(study: Study, dataset: str) -> dict[int, Outcome]:
    """By K: the uniform mean of the K best members by dev."""
    members = study.pool(dataset, PAPERS_POOL)
    if isinstance(members, Missing):
        return {}

    def find() -> dict[int, Outcome]:
        predicted: dict[int, list[tuple[Predicted, Predicted]]] = {}
        for seed in range(study.seeds):
            sampled = members.sampled(seed)
            ranked = _ranked(sampled)
            for size in range(1, min(LARGEST, len(ranked)) + 1):
                best_members = sampled.select(ranked[:size])
                pair = Predicted(best_members.fit.uniform), Predicted(best_members.test.uniform)
                predicted.setdefault(size, []).append(pair)
        return {
            size: outcome(predictions, members.fit_labels, members.test_labels)
            for size, predictions in predicted.items()
        }

    return study.once(("size curve", dataset), find)


def _ranked(members: Pool) -> list[str]:
    from edokit.metrics import ce

    P = members.fit.probabilities
    losses = [ce(P[:, k], members.fit_labels.soft) for k in range(P.shape[1])]
    return [members.fit.members[k] for k in np.argsort(losses, kind="stable")]


SETTINGS = (*VARIED, "size")
WEAK = 0.2
"""Below this a correlation is called weak."""
Correlations = dict[tuple[str, str, str, str], tuple[float, float, float]]


def heat_maps(study: Study) -> Section:
    """A correlation per dataset, sign, setting and metric, and the paper's sentences about them."""
    correlation_table = correlations(study)
    rows: list[list[Cell]] = []
    for dataset in DATASETS:
        for sign in SIGNS:
            for setting in SETTINGS:
                cells: list[Cell] = [dataset, sign, setting]
                for metric in MAIN_METRICS:
                    correlation = correlation_table.get((dataset, sign, setting, metric))
                    cells += (
                        [None, None] if correlation is None else [correlation[0], correlation[2]]
                    )
                if any(cell is not None for cell in cells[3:]):
                    rows.append(cells)
    header = ["dataset", "sign", "setting"]
    for metric in MAIN_METRICS:
        header += [f"ρ {HEADS[metric]}", f"ρ {HEADS[metric]} spread"]
    claims = claims_checked(correlation_table)
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
                    claim["setting"],
                    HEADS[claim["metric"]],
                    claim["sign"],
                    claim["says"],
                    claim["agree"],
                    claim["of"],
                    claim["shown"],
                ]
                for claim in claims
            ],
            notes=[f"Weak: |ρ| below {WEAK}. The figure's own numbers are not printed."],
        ),
    }
    figures: dict[str, Figure] = {}
    for dataset in DATASETS:
        if any(key[0] == dataset for key in correlation_table):
            trials = searched(study, dataset, PAPERS_POOL)
            assert not isinstance(trials, Missing)
            figures[f"heat-map-{dataset}"] = _heat_map(
                correlation_table, dataset, len(trials) // len(SIGNS)
            )
    return Section("heat-maps", "Heat maps", tables, values={"claims": claims}, figures=figures)


def correlations(study: Study) -> Correlations:
    """(dataset, sign, setting, metric): ρ within seeds, its p-value, ρ's spread over seeds."""

    def find() -> Correlations:
        correlation_table: Correlations = {}
        for dataset in DATASETS:
            trials = searched(study, dataset, PAPERS_POOL)
            if isinstance(trials, Missing):
                continue
            for sign in SIGNS:
                sign_trials = [t for t in trials if t.diversity == sign]
                for setting in SETTINGS:
                    for metric in MAIN_METRICS:
                        correlation = within_seeds(sign_trials, setting, metric)
                        if correlation is not None:
                            correlation_table[dataset, sign, setting, metric] = correlation
        return correlation_table

    return study.once(("correlations",), find)


def within_seeds(
    trials: Sequence[Trial], setting: str, metric: str
) -> tuple[float, float, float] | None:
    """Spearman's ρ over ranks within each seed, since seeds have other members; p-value, spread."""
    ranks = []
    seed_ranks = []
    for seed in sorted({t.seed for t in trials}):
        seed_trials = [t for t in trials if t.seed == seed]
        x = np.array([t.size if setting == "size" else t.settings[setting] for t in seed_trials])
        y = np.array([getattr(t, metric) for t in seed_trials])
        if len(seed_trials) > 2 and np.ptp(x) > 0 and np.ptp(y) > 0:
            pair = np.stack([rankdata(x), rankdata(y)]) / len(seed_trials)
            ranks.append(pair)
            seed_ranks.append(float(pearsonr(pair[0], pair[1])[0]))
    if not ranks:
        return None
    rho, p_value = pearsonr(*np.concatenate(ranks, axis=1))
    spread = float(np.std(seed_ranks, ddof=1)) if len(seed_ranks) > 1 else 0.0
    return float(rho), float(p_value), spread


def claims_checked(found: Correlations) -> list[dict[str, Any]]:
    """For each sentence of the paper: on how many datasets and signs it is so."""
    checked = []
    for paper_row in paper.rows("heat_maps"):
        signs = SIGNS if paper_row["diversity"] == "both" else (paper_row["diversity"],)
        values = {
            (dataset, sign): found[dataset, sign, paper_row["setting"], paper_row["metric"]][0]
            for dataset in DATASETS
            for sign in signs
            if (dataset, sign, paper_row["setting"], paper_row["metric"]) in found
        }
        agree = {
            "positive": lambda rho: rho > WEAK,
            "negative": lambda rho: rho < -WEAK,
            "weak": lambda rho: abs(rho) <= WEAK,
        }[paper_row["says"]]
        checked.append(
            {
                "setting": paper_row["setting"],
                "metric": paper_row["metric"],
                "sign": paper_row["diversity"],
                "says": paper_row["says"],
                "agree": sum(map(agree, values.values())),
                "of": len(values),
                "shown": ", ".join(
                    f"{dataset} {'s=−1' if sign == 'preserve' else 's=+1'} {signed(rho, 2)}"
                    for (dataset, sign), rho in values.items()
                ),
            }
        )
    return checked


def _heat_map(found: Correlations, dataset: str, trials: int) -> Figure:
    correlated = [
        Correlation(sign, setting, metric, rho, p_value, trials)
        for (name, sign, setting, metric), (rho, p_value, _) in found.items()
        if name == dataset
    ]
    return correlation_figure(correlated)


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
            paper_row = None
            if line.printed is not None:
                paper_row = paper.row("deviations", method=line.printed, dataset=dataset)
            why = f"not available: {line.found.reason}" if isinstance(line.found, Missing) else ""
            if why and paper_row is None:
                continue
            for metric in MAIN_METRICS:
                ours = None if isinstance(line.found, Missing) else line.found.spread(metric)
                theirs = None if paper_row is None else paper_row[metric]
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
        "stability",
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
        _Line("uniform mean, members", method_outcome(study, dataset, PAPERS_POOL, "uniform"))
    )
    lines.append(_Line("EDO, default", method_outcome(study, dataset, PAPERS_POOL, "edo")))
    return lines


def solver_alone(study: Study, dataset: str) -> Outcome | Missing:
    """The members of the first seed under every solver's seed."""
    members = study.pool(dataset, PAPERS_POOL)
    if isinstance(members, Missing):
        return members
    settings = [Configuration("mean", "f1+ce", "preserve").settings()]
    sampled = members.sampled(0)
    predicted: list[tuple[Predicted, Predicted]] = []
    for seed in range(study.seeds):
        predicted.append(pooled(sampled, by_gumbel(sampled, settings, seed)[0].weights))
    return outcome(predicted, members.fit_labels, members.test_labels)


def efficiency(study: Study) -> Section:
    """Measured here, beside what the paper says."""
    rows: list[list[Cell]] = []
    settings = [Configuration("mean", "f1+ce", "preserve").settings()]
    for dataset in DATASETS:
        members = study.pool(dataset, PAPERS_POOL)
        if isinstance(members, Missing):
            continue
        sampled = members.sampled(0)
        fit = _seconds(by_gumbel, sampled, settings, 0)
        exact = _seconds(by_exact, sampled, settings, 0)
        search = _seconds(run_search, sampled, 0, "mean", "preserve", study.trials)
        rows.append(
            [
                dataset,
                len(sampled.fit.items),
                fit,
                exact,
                search,
                search / study.trials,
                _training(study, members),
            ]
        )
    paper_row = paper.row("efficiency", figure="one step of the ensemble optimisation")
    assert paper_row is not None
    return Section(
        "efficiency",
        "Efficiency",
        {
            "efficiency": Table(
                "Seconds on the machine that wrote this table (one core)",
                [
                    "dataset",
                    "items",
                    "one fit, gumbel",
                    "one fit, exact",
                    f"search, {study.trials} trials",
                    "per trial",
                    "training a member (from the manifest)",
                ],
                rows,
                notes=[
                    f"The paper: below {paper_row['value']:.0f} seconds per step of the ensemble"
                    " optimisation; it gives no total."
                ],
                digits=3,
            )
        },
    )


def _seconds(work: Callable[..., object], *arguments: object) -> float:
    started = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - started


def _training(study: Study, members: Pool) -> float | None:
    """Mean seconds of training one member, where a manifest tells."""
    assert study.predictions is not None
    manifest = study.predictions / members.dataset / members.name / "manifest.json"
    try:
        trained = json.loads(manifest.read_text(encoding="utf-8"))["members"]
        return float(sum(entry["seconds"] for entry in trained) / len(trained))
    except (OSError, ValueError, KeyError, ZeroDivisionError):
        return None
