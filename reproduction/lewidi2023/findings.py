"""The paper's findings one by one: what it says, what was measured, and whether it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edokit._io.documents import read_json
from edokit._io.markup import Table
from reproduction import paper
from reproduction.lewidi2023.ablations import diversity_effects, sign_effects, weighting_effects
from reproduction.lewidi2023.benchmark import (
    BETTER,
    PAPERS,
    UNDECIDED,
    WORSE,
    Chosen,
    against_paper,
    best_printed,
    choice,
    sharpened,
)
from reproduction.lewidi2023.checks import duplicates
from reproduction.lewidi2023.configurations import (
    PAPERS_POOL,
    SIGNS,
    VARIANTS,
    Configuration,
    fixed_outcomes,
    searched_outcome,
)
from reproduction.lewidi2023.searches import (
    Correlations,
    claims_checked,
    correlations,
    learned_sizes,
    size_curve,
)
from reproduction.lewidi2023.study import DATASETS, EVERYTHING, Missing, Study
from reproduction.outcomes import HEADS, Effect, Outcome, effect
from reproduction.section import Section, signed

HOLDS = "holds"
PARTLY = "holds in part"
FAILS = "does not replicate"
OPEN = "not available"
ENOUGH = 0.5
LEAST_REDUCTION = 0.4
"""The least reduction of CE that the paper's abstract names."""
RULE = (
    "Every finding is judged by the share of its cases that support it. A case is a dataset, a"
    " variant or a correlation that the finding speaks of. An effect supports it if it has the"
    " direction that the paper gives (a reduction also its least size, 40 %), is larger than the"
    " spread between seeds, and 0 is outside its 95 % interval over test items; a correlation, if"
    " it is as the text says; a deviation, if it is no larger than the paper's largest. Holds: all"
    " cases; holds in part: at least half; does not replicate: fewer."
)


@dataclass(frozen=True)
class Measured:
    """What was measured, in words, and in how many of the finding's cases it came out as said."""

    here: str
    supported: int = 0
    cases: int = 0

    @property
    def verdict(self) -> str:
        """The same rule for every finding: all cases, at least half of them, or fewer."""
        if not self.cases:
            return OPEN
        share = self.supported / self.cases
        return HOLDS if share == 1 else PARTLY if share >= ENOUGH else FAILS


def lower(one: Effect) -> bool:
    """Whether an effect lowers a loss by more than the noise."""
    return one.claimed and one.value < 0


def shown(one: Effect) -> str:
    """An effect with its interval and spread."""
    return (
        f"{signed(one.value)} [{signed(one.low)}, {signed(one.high)}; spread between seeds"
        f" {one.spread:.4f}]"
    )


def largest(effects: Sequence[Effect]) -> Effect:
    """The one that is farthest from 0."""
    return max(effects, key=lambda one: abs(one.value))


def not_tested(members: str = "random-select") -> Measured:
    """Without members there is nothing to measure."""
    return Measured(f"There are no predictions of {members} members.")


def sign(study: Study) -> Measured:
    """Does the sign of the diversity term matter?"""
    effects = sign_effects(study, "gumbel")
    if not effects:
        return not_tested()
    claimed = [key for key, claim in effects.items() if claim.claimed]
    parts = []
    for dataset in DATASETS:
        dataset_effects = [claim for (name, _), claim in effects.items() if name == dataset]
        if dataset_effects:
            parts.append(f"{dataset} {shown(largest(dataset_effects))}")
    exact = sign_effects(study, "exact")
    deeper = [
        f"{d} {signed(largest(dataset_effects).value)}"
        for d in DATASETS
        if (dataset_effects := _of(exact, d))
    ]
    return Measured(
        "Preserve less suppress in test CE, the largest of the three variants:"
        f" {'; '.join(parts)}. {len(claimed)} of {len(effects)} differences exceed the noise"
        f"{_where(claimed)}. Solved to the optimum the same objectives differ by"
        f" {', '.join(deeper)}{_collapse(study)}.",
        len(claimed),
        len(effects),
    )


def _collapse(study: Study) -> str:
    """Whether suppressing to the optimum leaves one member everywhere."""
    sizes: set[int] = set()
    for dataset in DATASETS:
        outcomes = fixed_outcomes(study, dataset, "exact")
        if not isinstance(outcomes, Missing):
            for variant in VARIANTS:
                sizes.update(outcomes[Configuration(variant, "f1+ce", "suppress")].sizes)
    if sizes == {1}:
        return ": suppress then always ends at a single member, which costs what an ensemble gains"
    return f" (suppress keeps {min(sizes)} to {max(sizes)} members)"


def _where(claimed: Sequence[tuple[str, str]]) -> str:
    places = list(dict.fromkeys(dataset for dataset, _ in claimed))
    return f" ({', '.join(places)})" if places else ""


def _of(effects: dict[tuple[str, str], Effect], dataset: str) -> list[Effect]:
    return [sign_effect for (name, _), sign_effect in effects.items() if name == dataset]


def diversity(study: Study) -> Measured:
    """Does preserving diversity lower the CE?"""
    effects = diversity_effects(study)
    effect_by_dataset = {
        k[0]: sign_effect for k, sign_effect in effects.items() if k[1:] == ("f1+ce", "preserve")
    }
    if not effect_by_dataset:
        return not_tested()
    mean = float(np.mean([sign_effect.value for sign_effect in effect_by_dataset.values()]))
    spread = float(np.mean([sign_effect.spread for sign_effect in effect_by_dataset.values()]))
    listed = "; ".join(
        f"{dataset} {shown(sign_effect)}" for dataset, sign_effect in effect_by_dataset.items()
    )
    return Measured(
        f"Mean over {len(effect_by_dataset)} datasets {signed(mean)}, with a spread between seeds"
        f" of {spread:.4f}: {listed}.",
        sum(map(lower, effect_by_dataset.values())),
        len(effect_by_dataset),
    )


def weights(study: Study) -> Measured:
    """Do learned weights beat uniform ones?"""
    effects = weighting_effects(study)
    paper_effects = {
        k: sign_effect
        for k, sign_effect in effects.items()
        if k[1:] == (PAPERS_POOL, "paper's search")
    }
    if not paper_effects:
        return not_tested()
    gains = sum(map(lower, paper_effects.values()))
    listed = "; ".join(
        f"{key[0]} {shown(sign_effect)}" for key, sign_effect in paper_effects.items()
    )
    mixed = {
        k: sign_effect
        for k, sign_effect in effects.items()
        if k[1] == EVERYTHING and k[2] == "EDO, default"
    }
    mixed_note = ""
    if mixed:
        listed_mixed = "; ".join(
            f"{key[0]} {shown(sign_effect)}" for key, sign_effect in mixed.items()
        )
        won = sum(map(lower, mixed.values()))
        mixed_note = (
            f" Where members differ (all pools joined, EDO by default): {listed_mixed};"
            f" {won} of {len(mixed)} beyond the noise."
        )
    return Measured(
        f"Ten like members, the paper's search: {listed}. {gains} of {len(paper_effects)} gains"
        f" exceed the noise.{mixed_note}",
        gains,
        len(paper_effects),
    )


def size(study: Study) -> Measured:
    """Does the learned size adapt?"""
    sizes = {d: s for (d, name), s in learned_sizes(study).items() if name.startswith("search")}
    if not sizes:
        return not_tested()
    means = [float(np.mean(s)) for s in sizes.values()]
    within = float(np.mean([np.std(s, ddof=1) if len(s) > 1 else 0.0 for s in sizes.values()]))
    between = float(np.std(means, ddof=1)) if len(means) > 1 else 0.0
    correlation_table = correlations(study)
    claims = {(c["setting"], c["metric"]): c for c in claims_checked(correlation_table)}
    size = claims["size", "ce"]
    curve = []
    for dataset in DATASETS:
        points = size_curve(study, dataset)
        if len(points) > 1:
            smallest = points[min(points)]
            largest_point = points[max(points)]
            best = min(points, key=lambda k: points[k].mean("ce"))
            curve.append(
                f"{dataset} {smallest.mean('ce'):.4f} at K = {min(points)},"
                f" {largest_point.mean('ce'):.4f} at {max(points)}, lowest at {best}"
            )
    listed = ", ".join(f"{d} {'/'.join(map(str, s))}" for d, s in sizes.items())
    return Measured(
        f"Chosen sizes by seed: {listed}. Their standard deviation is {within:.1f} between seeds"
        f" of one dataset and {between:.1f} between datasets. K and dev CE correlate negatively in"
        f" {size['agree']} of {size['of']} cases ({size['shown']}): {_by_sign(correlation_table)}."
        f" Test CE of the uniform mean of the K best: {'; '.join(curve)}.",
        int(between > within) + size["agree"],
        1 + size["of"],
    )


def _by_sign(found: Correlations) -> str:
    """On how many datasets K and dev CE rise and fall together, by the sign of the diversity."""
    parts = []
    for sign in SIGNS:
        values = [
            found[d, sign, "size", "ce"][0] for d in DATASETS if (d, sign, "size", "ce") in found
        ]
        positive = sum(rho > 0 for rho in values)
        parts.append(
            f"under {sign} positive on {positive} and negative on {len(values) - positive} of"
            f" {len(values)} datasets"
        )
    return ", ".join(parts)


def variants(study: Study) -> Measured:
    """Is CE-mean the most stable variant?"""
    parts = []
    claimed = 0
    for dataset in DATASETS:
        outcomes = fixed_outcomes(study, dataset)
        if isinstance(outcomes, Missing):
            continue
        mean, *further = (
            outcomes[Configuration(variant, "f1+ce", "preserve")]
            for variant in ("mean", "random", "all")
        )
        effects = [effect(mean, outcome, "ce") for outcome in further]
        claimed += all(map(lower, effects))
        parts.append(f"{dataset} {shown(largest(effects))}")
    if not parts:
        return not_tested()
    return Measured(
        "Judged by CE, as the paper's text explains the word: CE-mean less the other variant that"
        f" differs most, preserving, fixed settings: {'; '.join(parts)}.",
        claimed,
        len(parts),
    )


def heat_maps(study: Study) -> Measured:
    """Do settings and metrics correlate as the paper says?"""
    claims = claims_checked(correlations(study))
    cases = sum(claim["of"] for claim in claims)
    if not cases:
        return not_tested()
    agree = sum(claim["agree"] for claim in claims)
    listed = "; ".join(
        f"{claim['setting']} and {HEADS[claim['metric']]} {claim['says']}: {claim['agree']} of"
        f" {claim['of']}"
        for claim in claims
    )
    return Measured(f"{agree} of {cases} cases are as the text says ({listed}).", agree, cases)


def lowest(study: Study) -> Measured:
    """Has EDO-Random the lowest CE?"""
    parts = []
    supported = 0
    for dataset in DATASETS:
        edo = searched_outcome(study, dataset, PAPERS_POOL)
        if isinstance(edo, Missing):
            continue
        rivals = {
            line.label: outcome
            for line in PAPERS
            if line.label not in ("EDO-Random", "EDO-PerAnn")
            and isinstance(outcome := line.outcome(study, dataset), Outcome)
        }
        best = min(rivals, key=lambda name: rivals[name].mean("ce", "fit"))
        rival = rivals[best]
        seeds = min(len(edo.items), len(rival.items))
        difference = effect(_first(edo, seeds), _first(rival, seeds), "ce")
        parts.append(f"{dataset} {edo.mean('ce'):.4f}, best baseline {best} {shown(difference)}")
        supported += lower(difference)
    if not parts:
        return not_tested()
    return Measured(
        "EDO-Random less that of the paper's baselines which has the lowest CE on dev, on our"
        f" members: {'; '.join(parts)}.",
        supported,
        len(parts),
    )


def _first(found: Outcome, seeds: int) -> Outcome:
    return Outcome(found.fit[:seeds], found.items[:seeds], found.sizes[:seeds])


def reductions(study: Study) -> Measured:
    """By how much does it lower the CE of each baseline?"""
    parts = []
    supported = 0
    cases = 0
    for dataset in DATASETS:
        edo = searched_outcome(study, dataset, PAPERS_POOL)
        if isinstance(edo, Missing):
            continue
        changes = []
        for line in PAPERS:
            rival = line.outcome(study, dataset)
            if line.label in ("EDO-Random", "EDO-PerAnn") or isinstance(rival, Missing):
                continue
            seeds = min(len(edo.items), len(rival.items))
            level = rival.mean("ce")
            difference = effect(_first(edo, seeds), _first(rival, seeds), "ce")
            cases += 1
            supported += difference.claimed and -difference.value / level >= LEAST_REDUCTION
            low = signed(100 * difference.low / level, 1)
            high = signed(100 * difference.high / level, 1)
            changes.append(
                f"{line.label} {signed(100 * difference.value / level, 1)} [{low} … {high}]"
            )
        parts.append(f"{dataset}: {', '.join(changes)}")
    if not cases:
        return not_tested()
    return Measured(
        "EDO-Random against each baseline on our members, all with a real CE, in per cent of the"
        f" baseline's: {'; '.join(parts)}.",
        supported,
        cases,
    )


def per_annotator(study: Study) -> Measured:
    """Has EDO-PerAnn the lowest MD where annotators are few?"""
    parts = []
    supported = 0
    for dataset in ("ConvAbuse", "HS-Brexit"):
        searched = searched_outcome(study, dataset, "per-annotator")
        if isinstance(searched, Missing):
            continue
        rivals = {
            line.label: outcome
            for line in PAPERS
            if line.label != "EDO-PerAnn"
            and isinstance(outcome := line.outcome(study, dataset), Outcome)
        }
        best = min(rivals, key=lambda name: rivals[name].mean("md", "fit"))
        seeds = min(len(searched.items), len(rivals[best].items))
        difference = effect(_first(searched, seeds), _first(rivals[best], seeds), "md")
        parts.append(
            f"{dataset} MD {searched.mean('md'):.4f}, best other {best} {shown(difference)}"
        )
        supported += lower(difference)
    if not parts:
        return not_tested("per-annotator")
    return Measured(
        f"EDO-PerAnn less that of the others which has the lowest MD on dev: {'; '.join(parts)}.",
        supported,
        len(parts),
    )


def stable(study: Study) -> Measured:
    """Are results stable over seeds?"""
    parts = []
    supported = 0
    highest_ce = max(row["ce"] for row in paper.matching("deviations", method="EDO-Random"))
    for dataset in DATASETS:
        searched = searched_outcome(study, dataset, PAPERS_POOL)
        paper_row = paper.row("deviations", method="EDO-Random", dataset=dataset)
        if not isinstance(searched, Missing) and paper_row is not None:
            parts.append(f"{dataset} {searched.spread('ce'):.4f} (paper {paper_row['ce']:.4f})")
            supported += searched.spread("ce") <= highest_ce
    if not parts:
        return not_tested()
    return Measured(
        f"Standard deviation of test CE over seeds, other members in each: {', '.join(parts)}.",
        supported,
        len(parts),
    )


def beyond(study: Study) -> list[str]:
    """More results: the paper's best figures, sharper predictions, near-duplicates."""
    words = [
        "These rows hold results against results, not methods against methods: our members are not"
        " the paper's, and the CE of its baselines is un-squashed."
    ]
    for dataset in DATASETS:
        row = choice(study, dataset)
        if isinstance(row, Missing):
            words.append(f"{dataset}: no row of ours, {row.reason}.")
            continue
        marks = against_paper(row.outcome, best_printed(dataset))
        sides = {
            side: _listed(
                row.outcome, best_printed(dataset), [m for m in marks if marks[m] == side]
            )
            for side in (BETTER, WORSE, UNDECIDED)
        }
        words.append(
            f"{dataset}: dev chose {row.name} (CE {row.held_out.ce:.4f} on {row.held_out.items}"
            " held-out items). Against the best of the paper's table, by the 95 % interval over"
            f" test items: {'; '.join(f'{k} in {v}' for k, v in sides.items() if v)}."
            + _by_dev(row)
        )
    words += _without_encoder(study)
    abuse = choice(study, "ConvAbuse")
    if not isinstance(abuse, Missing):
        power = abuse.held_out.power
        pooled_outcome = abuse.outcome
        sharp = sharpened(study, "ConvAbuse", abuse, power)
        words.append(
            "On ConvAbuse sharper answers trade CE for MD. Held-out fifths of dev choose the power"
            f" {power:g} for the odds (lowest MD within one standard error of the lowest CE): MD"
            f" {sharp.mean('md'):.4f} at CE {sharp.mean('ce'):.4f}, against"
            f" {pooled_outcome.mean('md'):.4f} at {pooled_outcome.mean('ce'):.4f} without."
        )
    for dataset in DATASETS:
        near_duplicates = duplicates(study, dataset)
        chosen_row = choice(study, dataset)
        if (
            near_duplicates is None
            or isinstance(chosen_row, Missing)
            or not near_duplicates[1].any()
        ):
            continue
        verbatim, near = near_duplicates
        other_ce = chosen_row.outcome.without(near).mean("ce")
        words.append(
            f"Without the {int(near.sum())} test texts of {dataset} that nearly repeat a train"
            f" text, that row's CE is {other_ce:.4f} instead of {chosen_row.outcome.mean('ce'):.4f}"
            f" ({chosen_row.outcome.without(verbatim).mean('ce'):.4f} without the"
            f" {int(verbatim.sum())} that are there word for word)."
        )
    return words


def _by_dev(row: Chosen) -> str:
    if row.by_dev is None:
        return ""
    return (
        f" The items of dev alone would have chosen {row.by_dev.name}"
        f" (CE {row.by_dev.held_out.dev_ce:.4f} against {row.held_out.dev_ce:.4f} on them, and"
        f" {row.by_dev.outcome.mean('ce'):.4f} on test)."
    )


def _without_encoder(study: Study) -> list[str]:
    """Datasets whose random-select members are no fine-tuned encoders, by their manifests."""
    words = []
    for dataset in DATASETS if study.predictions is not None else ():
        assert study.predictions is not None
        manifest = study.predictions / dataset / PAPERS_POOL / "manifest.json"
        if not manifest.is_file():
            continue
        recipes = list(dict.fromkeys(group["recipe"] for group in read_json(manifest)["groups"]))
        if "transformer" not in recipes:
            words.append(
                f"{dataset}: its {PAPERS_POOL} members are of the recipes {' and '.join(recipes)};"
                " what is missing against the paper is a fine-tuned encoder of its language"
                " (--train --backbone NAME)."
            )
    return words


def _listed(found: Outcome, best: dict[str, float], metrics: Sequence[str]) -> str:
    return ", ".join(f"{HEADS[m]} ({found.mean(m):.4f}, paper {best[m]:.4f})" for m in metrics)


FINDINGS: Mapping[str, Callable[[Study], Measured]] = {
    "sign": sign,
    "diversity": diversity,
    "weights": weights,
    "size": size,
    "variants": variants,
    "heat-maps": heat_maps,
    "lowest": lowest,
    "reductions": reductions,
    "per-annotator": per_annotator,
    "stable": stable,
}
"""By their names in ``paper/findings.csv``."""


def findings(study: Study) -> Section:
    """All of the paper's findings, and more results."""
    claims = {row["finding"]: row["says"] for row in paper.rows("findings")}
    listed = [(claims[name], measure(study)) for name, measure in FINDINGS.items()]
    further = beyond(study)
    counts = {
        v: sum(finding.verdict == v for _, finding in listed) for v in (HOLDS, PARTLY, FAILS, OPEN)
    }
    return Section(
        "findings",
        "Which findings hold",
        {
            "findings": Table(
                "The paper's findings and ours",
                ["the paper says", "verdict", "cases that support it", "what was measured here"],
                [
                    [says, finding.verdict, f"{finding.supported} of {finding.cases}", finding.here]
                    for says, finding in listed
                ],
                notes=[RULE],
            )
        },
        [
            f"{len(listed)} findings: " + ", ".join(f"{n} × {v}" for v, n in counts.items()) + ".",
            RULE,
            *(f"{says} {finding.verdict.capitalize()}. {finding.here}" for says, finding in listed),
            *further,
        ],
        {
            "rule": RULE,
            "findings": [
                {
                    "paper": says,
                    "verdict": finding.verdict,
                    "supported": finding.supported,
                    "cases": finding.cases,
                    "here": finding.here,
                }
                for says, finding in listed
            ],
            "beyond": further,
        },
    )
