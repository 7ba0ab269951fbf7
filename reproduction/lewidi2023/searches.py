"""What searches and solvers give: sizes, correlations, spread over seeds, seconds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.stats import pearsonr, rankdata

from edokit._io.markup import Cell, Table
from edokit.figures import Figure
from edokit.metrics import MAIN_METRICS, ce
from reproduction import paper
from reproduction.lewidi2023.configurations import (
    PAPERS_POOL,
    SIGN_NAMES,
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
from reproduction.outcomes import HEADS, Outcome, Predicted, outcome, sample_deviation
from reproduction.section import Section, difference, signed

LARGEST = 10


def sizes(study: Study) -> Section:
    """Sizes under the fixed settings and the searches, and the CE of the best K by dev."""
    rows: list[list[Cell]] = []
    for (dataset, name), member_sizes in learned_sizes(study).items():
        listed = ", ".join(map(str, member_sizes))
        spread = sample_deviation(member_sizes)
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
    """The names of members, the one with the lowest CE first."""
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
                    if correlation is None:
                        cells += [None, None]
                    else:
                        cells += [correlation[0], correlation[2]]
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
                    claim.setting,
                    HEADS[claim.metric],
                    claim.sign,
                    claim.direction,
                    claim.supported,
                    claim.cases,
                    claim.sentence,
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
    values = {"claims": [claim.to_dict() for claim in claims]}
    return Section("heat-maps", "Heat maps", tables, values=values, figures=figures)


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
    seed_rhos = []
    for seed in sorted({t.seed for t in trials}):
        seed_trials = [t for t in trials if t.seed == seed]
        x = np.array([_setting(trial, setting) for trial in seed_trials])
        y = np.array([getattr(trial, metric) for trial in seed_trials])
        if len(seed_trials) > 2 and np.ptp(x) > 0 and np.ptp(y) > 0:
            pair = np.stack([rankdata(x), rankdata(y)]) / len(seed_trials)
            ranks.append(pair)
            seed_rhos.append(float(pearsonr(pair[0], pair[1])[0]))
    if not ranks:
        return None
    rho, p_value = pearsonr(*np.concatenate(ranks, axis=1))
    return float(rho), float(p_value), sample_deviation(seed_rhos)


def _setting(trial: Trial, setting: str) -> float:
    if setting == "size":
        return trial.size
    return trial.settings[setting]


@dataclass(frozen=True)
class CorrelationClaim:
    """A sentence of the paper about a correlation, and how many cases support it."""

    setting: str
    metric: str
    sign: str
    """``preserve``, ``suppress`` or ``both``."""
    direction: str
    """``positive``, ``negative`` or ``weak``."""
    rhos: Mapping[tuple[str, str], float]
    """ρ by dataset and sign: the cases."""

    @property
    def cases(self) -> int:
        """The number of cases."""
        return len(self.rhos)

    @property
    def supported(self) -> int:
        """The number of cases with a correlation in the direction that the paper says."""
        return sum(_direction(rho) == self.direction for rho in self.rhos.values())

    @property
    def sentence(self) -> str:
        """The correlation of each case."""
        return ", ".join(
            f"{dataset} {SIGN_NAMES[sign]} {signed(rho, 2)}"
            for (dataset, sign), rho in self.rhos.items()
        )

    def to_dict(self) -> dict[str, str | int]:
        """Ready for JSON."""
        return {
            "setting": self.setting,
            "metric": self.metric,
            "sign": self.sign,
            "says": self.direction,
            "agree": self.supported,
            "of": self.cases,
            "shown": self.sentence,
        }


def _direction(rho: float) -> str:
    if rho > WEAK:
        return "positive"
    if rho < -WEAK:
        return "negative"
    return "weak"


def claims_checked(correlation_table: Correlations) -> list[CorrelationClaim]:
    """The paper's sentences about correlations, with the datasets and signs that they cover."""
    claims = []
    for paper_row in paper.rows("heat_maps"):
        setting = paper_row["setting"]
        metric = paper_row["metric"]
        signs: Sequence[str] = [paper_row["diversity"]]
        if paper_row["diversity"] == "both":
            signs = SIGNS
        rhos = {}
        for dataset, sign in product(DATASETS, signs):
            correlation = correlation_table.get((dataset, sign, setting, metric))
            if correlation is not None:
                rhos[dataset, sign] = correlation[0]
        claims.append(
            CorrelationClaim(setting, metric, paper_row["diversity"], paper_row["says"], rhos)
        )
    return claims


def _heat_map(correlation_table: Correlations, dataset: str, trials: int) -> Figure:
    correlated = [
        Correlation(sign, setting, metric, rho, p_value, trials)
        for (name, sign, setting, metric), (rho, p_value, _) in correlation_table.items()
        if name == dataset
    ]
    return correlation_figure(correlated)


_POOLS = {"EDO-Random": PAPERS_POOL, "EDO-PerAnn": "per-annotator"}


@dataclass(frozen=True)
class _StabilityRow:
    label: str
    outcome: Outcome | Missing
    printed: str | None = None
    """The name of the row in the paper."""


def stability(study: Study) -> Section:
    """How far scores move from seed to seed, beside the paper's deviations."""
    rows: list[list[Cell]] = []
    for dataset in DATASETS:
        for row in _stability_rows(study, dataset):
            paper_row = None
            if row.printed is not None:
                paper_row = paper.row("deviations", method=row.printed, dataset=dataset)
            if isinstance(row.outcome, Missing) and paper_row is None:
                continue
            for metric in MAIN_METRICS:
                spread = None
                note = ""
                if isinstance(row.outcome, Missing):
                    note = row.outcome.note
                else:
                    spread = row.outcome.spread(metric)
                printed = None
                if paper_row is not None:
                    printed = paper_row[metric]
                rows.append(
                    [
                        dataset,
                        row.label,
                        HEADS[metric],
                        spread,
                        printed,
                        difference(spread, printed),
                        note,
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


def _stability_rows(study: Study, dataset: str) -> list[_StabilityRow]:
    rows = []
    for name, pool in _POOLS.items():
        rows.append(_StabilityRow(name, searched_outcome(study, dataset, pool), printed=name))
    solver = solver_alone(study, dataset)
    uniform = method_outcome(study, dataset, PAPERS_POOL, "uniform")
    default = method_outcome(study, dataset, PAPERS_POOL, "edo")
    rows.append(_StabilityRow("fixed settings, the solver's seed alone", solver))
    rows.append(_StabilityRow("uniform mean, members", uniform))
    rows.append(_StabilityRow("EDO, default", default))
    return rows


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
    """Seconds of fits, searches and training, beside what the paper says."""
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
    """Mean seconds of training one member, if the manifest has them."""
    assert study.predictions is not None
    manifest = study.predictions / members.dataset / members.name / "manifest.json"
    try:
        trained = json.loads(manifest.read_text(encoding="utf-8"))["members"]
        return float(sum(entry["seconds"] for entry in trained) / len(trained))
    except (OSError, ValueError, KeyError, ZeroDivisionError):
        return None
