"""Checks that need the paper's figures alone."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass

import numpy as np

from edokit._io.markup import Table
from edokit.metrics import MAIN_METRICS
from reproduction import paper
from reproduction.lewidi2023.study import DATASETS, Study
from reproduction.section import signed


@dataclass(frozen=True)
class Check:
    """A question, whether the paper's numbers pass, and why."""

    question: str
    holds: bool | None
    """Whether the paper's figures pass; None where the data is missing."""
    finding: str
    """The answer in words, with the figures behind it."""
    table: Table | None = None

    @property
    def answer(self) -> str:
        """``yes``, ``no`` or ``needs the data``."""
        if self.holds is None:
            return "needs the data"
        return "yes" if self.holds else "no"


def logit(p: float) -> float:
    """The number whose sigmoid is p."""
    return math.log(p / (1 - p))


def binary_entropy(p: float) -> float:
    """Entropy of (1 − p, p) in nats."""
    return -sum(x * math.log(x) for x in (p, 1 - p) if x > 0)


SQUASHED = ("Soft-CE", "Soft-MD", "Top-5 Voting", "WEL")
"""Rows of the benchmark table whose CE is (for Soft-MD: seems to be) a sigmoid of the CE."""
# Printed figures are rounded to four decimals.
_ROUNDING = 1.01e-4


def unsquashed(method: str, printed: float) -> float:
    """The cross-entropy behind a printed CE of the benchmark table."""
    if method in SQUASHED:
        return logit(printed)
    return printed


def reductions(study: Study) -> Check:
    """The percentages of the text, and who has the lowest CE, once all CEs are on one scale."""
    rows = []
    for claim in paper.rows("reductions"):
        method = paper.row("benchmark", method=claim["method"], dataset=claim["dataset"])
        baseline = paper.row("benchmark", method=claim["against"], dataset=claim["dataset"])
        assert method is not None
        assert baseline is not None
        baseline_ce = unsquashed(baseline["method"], baseline["ce"])
        rows.append(
            [
                claim["dataset"],
                claim["against"],
                f"{claim['percent']:.0f} %",
                f"{100 * (1 - method['ce'] / baseline['ce']):.1f} %",
                f"{100 * (1 - method['ce'] / baseline_ce):.1f} %",
            ]
        )
    other_methods = []
    against_wel = []
    for dataset in DATASETS:
        lowest = min(
            paper.matching("benchmark", dataset=dataset),
            key=lambda row: unsquashed(row["method"], row["ce"]),
        )
        if lowest["method"] != "EDO-Random":
            other_methods.append(f"{dataset} ({lowest['method']})")
        edo = paper.row("benchmark", method="EDO-Random", dataset=dataset)
        wel = paper.row("benchmark", method="WEL", dataset=dataset)
        assert edo is not None
        assert wel is not None
        against_wel.append(f"{signed(100 * (edo['ce'] / logit(wel['ce']) - 1), 1)} % ({dataset})")
    return Check(
        "Does EDO-Random have the lowest CE everywhere, by the percentages in the text?",
        not other_methods,
        "With the baselines' CE un-squashed, EDO-Random's CE differs from WEL's by"
        f" {', '.join(against_wel)}, and is not the lowest on {' and '.join(other_methods)}.",
        Table(
            "reductions of CE in the text, as printed and un-squashed",
            ["dataset", "against", "text", "from printed CE", "from un-squashed CE"],
            rows,
        ),
    )


def stated(figure: str) -> float:
    """A figure of the text."""
    paper_row = paper.row("text_figures", figure=figure)
    assert paper_row is not None
    return float(paper_row["value"])


@dataclass(frozen=True)
class Reduction:
    """By which share EDO-Random lowers the scores of a baseline on a dataset."""

    baseline: str
    """The baseline with its dataset."""
    printed_ce: float
    ce: float
    """Of the un-squashed CE."""
    bs: float


def _reductions_by_pair() -> list[Reduction]:
    """The reductions of every baseline on every dataset."""
    pairs = []
    for baseline in paper.rows("benchmark"):
        if baseline["method"] in SQUASHED:
            edo = paper.row("benchmark", method="EDO-Random", dataset=baseline["dataset"])
            assert edo is not None
            pairs.append(
                Reduction(
                    f"{baseline['method']} on {baseline['dataset']}",
                    1 - edo["ce"] / baseline["ce"],
                    1 - edo["ce"] / logit(baseline["ce"]),
                    1 - edo["bs"] / baseline["bs"],
                )
            )
    return pairs


def reduction_range(study: Study) -> Check:
    """The range of reductions in the abstract, against all pairs of the benchmark table."""
    low = stated("lowest reduction of CE in the abstract (%)")
    high = stated("highest reduction of CE in the abstract (%)")
    pairs = _reductions_by_pair()
    # In whole per cent, as the abstract gives them.
    outside = [
        [pair.baseline, f"{100 * pair.printed_ce:.1f} %", f"{100 * pair.ce:.1f} %"]
        for pair in pairs
        if not low <= round(100 * pair.printed_ce) <= high
    ]
    inside = sum(low <= round(100 * pair.ce) <= high for pair in pairs)
    return Check(
        f"Does EDO lower the CE of every baseline by {low:.0f} to {high:.0f} %, as the abstract"
        " says?",
        not outside,
        f"As printed {len(outside)} of {len(pairs)} pairs are outside this range; with the"
        f" baselines' CE un-squashed {len(pairs) - inside} are.",
        Table(
            "pairs outside the range of the abstract",
            ["baseline", "reduction, printed CE", "reduction, un-squashed CE"],
            outside,
        ),
    )


def correlated_reductions(study: Study) -> Check:
    """The correlation of the reductions of BS and CE that the text states."""
    value = stated("correlation of the reductions of CE and BS")
    pairs = _reductions_by_pair()
    bs = [pair.bs for pair in pairs]
    as_printed = float(np.corrcoef([pair.printed_ce for pair in pairs], bs)[0, 1])
    as_true = float(np.corrcoef([pair.ce for pair in pairs], bs)[0, 1])
    return Check(
        f"Do the reductions of CE and BS against the baselines correlate with ρ = {value}?",
        abs(as_printed - value) < 0.005,
        f"Over the {len(pairs)} pairs of the benchmark table the correlation is {as_printed:.2f} as"
        f" printed, and {as_true:.2f} with the baselines' CE un-squashed: the two scores move"
        " together only when both are on their own scale.",
    )


def correlated_changes(study: Study) -> Check:
    """The correlation of the ablation's changes of BS and CE that the appendix states."""
    value = stated("correlation of the changes of CE and BS in the diversity ablation")
    measured = {}
    for table in ("diversity_averaged", "diversity_per_dataset"):
        changes = [(row["ce_delta"], row["bs_delta"]) for row in paper.rows(table)]
        measured[len(changes)] = float(np.corrcoef(changes, rowvar=False)[0, 1])
    listed = " and ".join(f"{rho:.2f} over {count} rows" for count, rho in measured.items())
    return Check(
        f"Do the ablation's changes of CE and BS correlate with ρ ≈ {value}?",
        any(abs(rho - value) < 0.01 for rho in measured.values()),
        f"Recomputed it is {listed} (averaged over datasets, and dataset by dataset).",
    )


def zero_diversity(study: Study) -> Check:
    """Without diversity its sign cannot matter; the two rows are two runs of the same thing."""
    rows = []
    gaps = {}
    for plus in paper.matching("diversity_per_dataset", diversity="suppress"):
        minus = paper.row(
            "diversity_per_dataset",
            dataset=plus["dataset"],
            objective=plus["objective"],
            diversity="preserve",
        )
        assert minus is not None
        gap = {m: minus[f"{m}_without"] - plus[f"{m}_without"] for m in MAIN_METRICS}
        gaps[plus["dataset"], plus["objective"]] = gap["ce"]
        rows.append(
            [
                plus["dataset"],
                plus["objective"],
                plus["ce_without"],
                minus["ce_without"],
                *(gap[m] for m in MAIN_METRICS),
            ]
        )
    headline = paper.row("diversity_main", objective="f1+ce", diversity="preserve")
    assert headline is not None
    joint = np.mean([gap for (_, objective), gap in gaps.items() if objective == "f1+ce"])
    dataset, objective = max(gaps, key=lambda key: abs(gaps[key]))
    worst = gaps[dataset, objective]
    largest = rows[list(gaps).index((dataset, objective))]
    return Check(
        "Are the ablation's rows without diversity the same under both signs?",
        max(map(abs, gaps.values())) < _ROUNDING,
        f"With λ_Div = 0 the sign does nothing, yet the rows differ by up to {abs(worst):.4f} in CE"
        f" ({dataset}, {objective}: {largest[2]:.4f} and {largest[3]:.4f})."
        f" Averaged over datasets the joint rows differ by {abs(joint):.4f}: chance alone is as"
        f" large as the headline effect of {signed(headline['delta_ce'])}.",
        Table(
            "rows with λ_Div = 0 under both signs (they should be equal)",
            ["dataset", "objective", "CE, s=+1", "CE, s=−1", "ΔF1", "ΔCE", "ΔMD", "ΔBS"],
            rows,
        ),
    )


def mixed_variants(study: Study) -> Check:
    """The caption says CE-all; other appendix tables show which variant the joint rows are."""
    variants = [*paper.rows("ce_variants_preserve"), *paper.rows("ce_variants_suppress")]
    rows = []
    for row in paper.matching("diversity_per_dataset", objective="f1+ce"):
        equal_variants = [
            variant["variant"] for variant in variants if _has_same_figures(variant, row)
        ]
        rows.append(
            [
                row["dataset"],
                row["diversity"],
                row["ce_with"],
                ", ".join(equal_variants) or "none of them",
            ]
        )
    n_other = sum(row[3] != "all" for row in rows)
    return Check(
        "Do the diversity ablation's joint rows use CE-all, as its caption says?",
        n_other == 0,
        f"{n_other} of {len(rows)} joint rows with diversity are, figure by figure, rows of another"
        " cross-entropy variant in the appendix: the ablation changes the variant along with the"
        " diversity term, so its Δ is not the effect of diversity alone.",
        Table(
            "which cross-entropy variant the ablation's joint rows equal",
            ["dataset", "sign", "CE with diversity", "equals variant"],
            rows,
        ),
    )


def _has_same_figures(variant: paper.Row, row: paper.Row) -> bool:
    """Whether a row of the variants and one of the ablation with diversity are the same run."""
    if variant["dataset"] != row["dataset"] or variant["diversity"] != row["diversity"]:
        return False
    return all(abs(variant[m] - row[f"{m}_with"]) < _ROUNDING for m in ("f1", "ce", "md"))


def averages(study: Study) -> Check:
    """The averaged ablation should be the mean of the four datasets."""
    rows = []
    flips = []
    for row in paper.rows("diversity_averaged"):
        parts = list(
            paper.matching(
                "diversity_per_dataset", objective=row["objective"], diversity=row["diversity"]
            )
        )
        for m in MAIN_METRICS:
            mean = float(np.mean([part[f"{m}_delta"] for part in parts]))
            printed = row[f"{m}_delta"]
            if abs(mean - printed) > 2 * _ROUNDING:
                rows.append([row["objective"], row["diversity"], m.upper(), printed, mean])
                if mean * printed < 0:
                    flips.append(f"Δ{m.upper()} of {row['objective']}, {row['diversity']}")
    finding = (
        f"{len(rows)} of the 24 averaged differences are not the mean of the four per-dataset ones"
    )
    if flips:
        finding += f", and {len(flips)} have the other sign ({'; '.join(flips)})"
    return Check(
        "Is the averaged ablation the mean of the four datasets?",
        not rows,
        f"{finding}.",
        Table(
            "averaged differences that do not follow from the per-dataset table",
            ["objective", "sign", "metric", "printed Δ", "mean of the four"],
            rows,
        ),
    )


def distance_bounds(study: Study) -> Check:
    """For two classes an item's BS is MD²/2, so MD is at most 2 and BS at least (mean MD)²/2."""
    rows = []
    for row in paper.rows("benchmark"):
        lowest_bs = row["md"] ** 2 / 2
        if row["md"] > 2 or row["bs"] < lowest_bs - _ROUNDING:
            above_two = "yes" if row["md"] > 2 else "no"
            rows.append([row["method"], row["dataset"], row["md"], row["bs"], lowest_bs, above_two])
    above = [row for row in rows if row[5] == "yes"]
    return Check(
        "Are MD and BS of the benchmark table possible for two classes?",
        not rows,
        f"MD cannot exceed 2, yet {above[0][0]} on {above[0][1]} has {above[0][2]:.4f}. With two"
        f" classes BS is at least MD²/2; {len(rows)} rows break that, all of them {rows[0][0]}.",
        Table(
            "rows of the benchmark table that no predictions on two classes can have",
            ["method", "dataset", "MD", "BS", "smallest BS for this MD", "MD above 2"],
            rows,
        ),
    )


def qualitative_figures(study: Study) -> Check:
    """MD and entropy follow from P(y=1) and the split; the printed ones don't."""
    rows = []
    wrong = {"md": 0, "entropy": 0}
    for row in paper.rows("qualitative"):
        if row["md"] is None:
            continue
        empirical = paper.row("qualitative", dataset=row["dataset"], method="Empirical")
        assert empirical is not None
        distance = 2 * abs(row["p1"] - empirical["p1"])
        entropy = binary_entropy(row["p1"])
        wrong["md"] += abs(distance - row["md"]) > 3 * _ROUNDING
        wrong["entropy"] += abs(entropy - row["entropy"]) > 3 * _ROUNDING
        rows.append(
            [
                row["dataset"],
                row["method"],
                row["p1"],
                empirical["p1"],
                row["md"],
                distance,
                row["entropy"],
                entropy,
            ]
        )
    first_row = rows[0]
    return Check(
        "Do MD and entropy in the qualitative table follow from its P(y=1)?",
        not any(wrong.values()),
        f"None of {len(rows)} does: {wrong['md']} MDs and {wrong['entropy']} entropies differ from"
        f" what P(y=1) gives. {first_row[1]} on {first_row[0]}: P = {first_row[2]:.4f} against"
        f" {first_row[3]:.4f} is an MD of {first_row[5]:.3f}, printed {first_row[4]:.4f}.",
        Table(
            "qualitative figures, printed and recomputed from P(y=1)",
            [
                "dataset",
                "method",
                "P(y=1)",
                "people",
                "MD printed",
                "MD",
                "entropy printed",
                "entropy",
            ],
            rows,
        ),
    )


def one_generation(study: Study) -> Check:
    """Optuna's NSGA-II starts to evolve after one population of random trials."""
    from optuna.samplers import NSGAIISampler

    population = int(inspect.signature(NSGAIISampler).parameters["population_size"].default)
    paper_row = paper.row("efficiency", figure="trials per configuration")
    assert paper_row is not None
    trials = int(paper_row["value"])
    generations = -(-trials // population)
    return Check(
        "Does the paper's search evolve?",
        generations > 1,
        f"NSGA-II in Optuna draws its first {population} trials at random (the default population)."
        f" {trials} trials are {generations} generation: with the default, the paper's search is"
        " random search. We use a population of 10, five generations.",
    )
