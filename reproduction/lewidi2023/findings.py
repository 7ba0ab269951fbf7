"""The paper's findings one by one: what it says, what was measured, and whether it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edokit._io.documents import read_json
from edokit._io.markup import Cell, Table
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
from reproduction.outcomes import HEADS, Effect, Outcome, effect, sample_deviation
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
    """What was measured for a finding, and how many of its cases support it."""

    sentence: str
    supported: int = 0
    cases: int = 0

    @property
    def verdict(self) -> str:
        """The same rule for every finding: all cases, at least half of them, or fewer."""
        if not self.cases:
            return OPEN
        share = self.supported / self.cases
        if share == 1:
            return HOLDS
        if share >= ENOUGH:
            return PARTLY
        return FAILS


def lower(effect: Effect) -> bool:
    """Whether an effect lowers a loss by more than the noise."""
    return effect.claimed and effect.value < 0


def shown(effect: Effect) -> str:
    """An effect with its interval and spread."""
    return (
        f"{signed(effect.value)} [{signed(effect.low)}, {signed(effect.high)}; spread between"
        f" seeds {effect.spread:.4f}]"
    )


def listed_effects(effects: Mapping[str, Effect]) -> str:
    """Effects with their datasets, as a part of a sentence."""
    return "; ".join(f"{dataset} {shown(effect)}" for dataset, effect in effects.items())


def largest(effects: Sequence[Effect]) -> Effect:
    """The effect that is farthest from 0."""
    return max(effects, key=lambda effect: abs(effect.value))


def not_tested(members: str = "random-select") -> Measured:
    """The result of a finding whose members are missing."""
    return Measured(f"There are no predictions of {members} members.")


def sign(study: Study) -> Measured:
    """Does the sign of the diversity term matter?"""
    effects = sign_effects(study, "gumbel")
    if not effects:
        return not_tested()
    claimed = [key for key, effect in effects.items() if effect.claimed]
    largest_effects = _largest_by_dataset(effects)
    optima = [
        f"{dataset} {signed(effect.value)}"
        for dataset, effect in _largest_by_dataset(sign_effects(study, "exact")).items()
    ]
    return Measured(
        "Preserve less suppress in test CE, the largest of the three variants:"
        f" {listed_effects(largest_effects)}. {len(claimed)} of {len(effects)} differences exceed"
        f" the noise{_where(claimed)}. Solved to the optimum the same objectives differ by"
        f" {', '.join(optima)}{_collapse(study)}.",
        len(claimed),
        len(effects),
    )


def _largest_by_dataset(effects: Mapping[tuple[str, str], Effect]) -> dict[str, Effect]:
    """By dataset, the largest effect of its variants."""
    largest_effects = {}
    for dataset in DATASETS:
        of_variants = [effect for (name, _), effect in effects.items() if name == dataset]
        if of_variants:
            largest_effects[dataset] = largest(of_variants)
    return largest_effects


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
    """The datasets of the claimed effects in brackets."""
    datasets = list(dict.fromkeys(dataset for dataset, _ in claimed))
    if not datasets:
        return ""
    return f" ({', '.join(datasets)})"


def diversity(study: Study) -> Measured:
    """Does preserving diversity lower the CE?"""
    effects = _effects_by_dataset(diversity_effects(study), "f1+ce", "preserve")
    if not effects:
        return not_tested()
    mean = float(np.mean([effect.value for effect in effects.values()]))
    spread = float(np.mean([effect.spread for effect in effects.values()]))
    return Measured(
        f"Mean over {len(effects)} datasets {signed(mean)}, with a spread between seeds of"
        f" {spread:.4f}: {listed_effects(effects)}.",
        sum(map(lower, effects.values())),
        len(effects),
    )


def _effects_by_dataset(
    effects: Mapping[tuple[str, str, str], Effect], *case: str
) -> dict[str, Effect]:
    """By dataset, the effect in a case: the part of the key after the dataset."""
    return {key[0]: effect for key, effect in effects.items() if key[1:] == case}


def weights(study: Study) -> Measured:
    """Do learned weights beat uniform ones?"""
    effects = weighting_effects(study)
    like_members = _effects_by_dataset(effects, PAPERS_POOL, "paper's search")
    if not like_members:
        return not_tested()
    gains = sum(map(lower, like_members.values()))
    mixed_members = _effects_by_dataset(effects, EVERYTHING, "EDO, default")
    mixed_sentence = ""
    if mixed_members:
        mixed_sentence = (
            " Where members differ (all pools joined, EDO by default):"
            f" {listed_effects(mixed_members)}; {sum(map(lower, mixed_members.values()))} of"
            f" {len(mixed_members)} beyond the noise."
        )
    return Measured(
        f"Ten like members, the paper's search: {listed_effects(like_members)}. {gains} of"
        f" {len(like_members)} gains exceed the noise.{mixed_sentence}",
        gains,
        len(like_members),
    )


def size(study: Study) -> Measured:
    """Does the learned size adapt?"""
    sizes = {d: s for (d, name), s in learned_sizes(study).items() if name.startswith("search")}
    if not sizes:
        return not_tested()
    within = float(np.mean([sample_deviation(by_seed) for by_seed in sizes.values()]))
    between = sample_deviation([float(np.mean(by_seed)) for by_seed in sizes.values()])
    correlation_table = correlations(study)
    claims = {(claim.setting, claim.metric): claim for claim in claims_checked(correlation_table)}
    size_claim = claims["size", "ce"]
    curve = []
    for dataset in DATASETS:
        points = size_curve(study, dataset)
        if len(points) > 1:
            smallest = points[min(points)]
            largest_point = points[max(points)]
            best = min(points, key=lambda size: points[size].mean("ce"))
            curve.append(
                f"{dataset} {smallest.mean('ce'):.4f} at K = {min(points)},"
                f" {largest_point.mean('ce'):.4f} at {max(points)}, lowest at {best}"
            )
    listed = [f"{dataset} {'/'.join(map(str, by_seed))}" for dataset, by_seed in sizes.items()]
    return Measured(
        f"Chosen sizes by seed: {', '.join(listed)}. Their standard deviation is {within:.1f}"
        f" between seeds of one dataset and {between:.1f} between datasets. K and dev CE correlate"
        f" negatively in {size_claim.supported} of {size_claim.cases} cases"
        f" ({size_claim.sentence}): {_by_sign(correlation_table)}."
        f" Test CE of the uniform mean of the K best: {'; '.join(curve)}.",
        int(between > within) + size_claim.supported,
        1 + size_claim.cases,
    )


def _by_sign(correlation_table: Correlations) -> str:
    """On how many datasets K and dev CE correlate positively and negatively, by sign."""
    parts = []
    for sign in SIGNS:
        rhos = []
        for dataset in DATASETS:
            correlation = correlation_table.get((dataset, sign, "size", "ce"))
            if correlation is not None:
                rhos.append(correlation[0])
        positive = sum(rho > 0 for rho in rhos)
        parts.append(
            f"under {sign} positive on {positive} and negative on {len(rhos) - positive} of"
            f" {len(rhos)} datasets"
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
        ce_mean = outcomes[Configuration("mean", "f1+ce", "preserve")]
        effects = []
        for variant in ("random", "all"):
            other_variant = outcomes[Configuration(variant, "f1+ce", "preserve")]
            effects.append(effect(ce_mean, other_variant, "ce"))
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
    cases = sum(claim.cases for claim in claims)
    if not cases:
        return not_tested()
    supported = sum(claim.supported for claim in claims)
    listed = "; ".join(
        f"{claim.setting} and {HEADS[claim.metric]} {claim.direction}: {claim.supported} of"
        f" {claim.cases}"
        for claim in claims
    )
    return Measured(
        f"{supported} of {cases} cases are as the text says ({listed}).", supported, cases
    )


def lowest(study: Study) -> Measured:
    """Has EDO-Random the lowest CE?"""
    parts = []
    supported = 0
    for dataset in DATASETS:
        edo = searched_outcome(study, dataset, PAPERS_POOL)
        if isinstance(edo, Missing):
            continue
        rivals = _rivals(study, dataset, ("EDO-Random", "EDO-PerAnn"))
        best = min(rivals, key=lambda name: rivals[name].mean("ce", "fit"))
        difference = _difference(edo, rivals[best], "ce")
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


def _rivals(study: Study, dataset: str, left_out: Sequence[str]) -> dict[str, Outcome]:
    """The outcomes of the paper's rows that are available, without some of them."""
    rivals = {}
    for line in PAPERS:
        if line.label in left_out:
            continue
        outcome = line.outcome(study, dataset)
        if isinstance(outcome, Outcome):
            rivals[line.label] = outcome
    return rivals


def _difference(outcome: Outcome, rival: Outcome, metric: str) -> Effect:
    """An outcome less its rival, on as many seeds as both have."""
    seeds = min(len(outcome.items), len(rival.items))
    return effect(_first(outcome, seeds), _first(rival, seeds), metric)


def _first(outcome: Outcome, seeds: int) -> Outcome:
    """The outcome of the first seeds."""
    return Outcome(outcome.fit[:seeds], outcome.items[:seeds], outcome.sizes[:seeds])


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
        for name, rival in _rivals(study, dataset, ("EDO-Random", "EDO-PerAnn")).items():
            level = rival.mean("ce")
            difference = _difference(edo, rival, "ce")
            cases += 1
            supported += difference.claimed and -difference.value / level >= LEAST_REDUCTION
            change = signed(100 * difference.value / level, 1)
            low = signed(100 * difference.low / level, 1)
            high = signed(100 * difference.high / level, 1)
            changes.append(f"{name} {change} [{low} … {high}]")
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
        rivals = _rivals(study, dataset, ("EDO-PerAnn",))
        best = min(rivals, key=lambda name: rivals[name].mean("md", "fit"))
        difference = _difference(searched, rivals[best], "md")
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
    sentences = [
        "These rows hold results against results, not methods against methods: our members are not"
        " the paper's, and the CE of its baselines is un-squashed."
    ]
    sentences += [_against_best(study, dataset) for dataset in DATASETS]
    sentences += _without_encoder(study)
    sentences += _sharper_answers(study)
    for dataset in DATASETS:
        sentences += _without_near_duplicates(study, dataset)
    return sentences


def _against_best(study: Study, dataset: str) -> str:
    """The row that dev chose, and how it compares with the best of the paper's table."""
    row = choice(study, dataset)
    if isinstance(row, Missing):
        return f"{dataset}: no row of ours, {row.reason}."
    best = best_printed(dataset)
    marks = against_paper(row.outcome, best)
    verdicts = []
    for verdict in (BETTER, WORSE, UNDECIDED):
        metrics = [metric for metric in marks if marks[metric] == verdict]
        if metrics:
            verdicts.append(f"{verdict} in {_listed(row.outcome, best, metrics)}")
    return (
        f"{dataset}: dev chose {row.name} (CE {row.held_out.ce:.4f} on {row.held_out.items}"
        " held-out items). Against the best of the paper's table, by the 95 % interval over"
        f" test items: {'; '.join(verdicts)}.{_by_dev(row)}"
    )


def _sharper_answers(study: Study) -> list[str]:
    """What a power of the odds does to CE and MD on ConvAbuse."""
    row = choice(study, "ConvAbuse")
    if isinstance(row, Missing):
        return []
    power = row.held_out.power
    sharp = sharpened(study, "ConvAbuse", row, power)
    return [
        "On ConvAbuse sharper answers trade CE for MD. Held-out fifths of dev choose the power"
        f" {power:g} for the odds (lowest MD within one standard error of the lowest CE): MD"
        f" {sharp.mean('md'):.4f} at CE {sharp.mean('ce'):.4f}, against"
        f" {row.outcome.mean('md'):.4f} at {row.outcome.mean('ce'):.4f} without."
    ]


def _without_near_duplicates(study: Study, dataset: str) -> list[str]:
    """The CE of the chosen row without test texts that repeat a train text."""
    masks = duplicates(study, dataset)
    row = choice(study, dataset)
    if masks is None or isinstance(row, Missing):
        return []
    verbatim, near = masks
    if not near.any():
        return []
    return [
        f"Without the {int(near.sum())} test texts of {dataset} that nearly repeat a train"
        f" text, that row's CE is {row.outcome.without(near).mean('ce'):.4f} instead of"
        f" {row.outcome.mean('ce'):.4f} ({row.outcome.without(verbatim).mean('ce'):.4f} without"
        f" the {int(verbatim.sum())} that are there word for word)."
    ]


def _by_dev(row: Chosen) -> str:
    """The row that the items of dev alone would have chosen, as a sentence."""
    if row.by_dev is None:
        return ""
    return (
        f" The items of dev alone would have chosen {row.by_dev.name}"
        f" (CE {row.by_dev.held_out.dev_ce:.4f} against {row.held_out.dev_ce:.4f} on them, and"
        f" {row.by_dev.outcome.mean('ce'):.4f} on test)."
    )


def _without_encoder(study: Study) -> list[str]:
    """Datasets whose random-select members are not fine-tuned encoders, by their manifests."""
    if study.predictions is None:
        return []
    sentences = []
    for dataset in DATASETS:
        manifest = study.predictions / dataset / PAPERS_POOL / "manifest.json"
        if not manifest.is_file():
            continue
        recipes = list(dict.fromkeys(group["recipe"] for group in read_json(manifest)["groups"]))
        if "transformer" not in recipes:
            sentences.append(
                f"{dataset}: its {PAPERS_POOL} members are of the recipes {' and '.join(recipes)};"
                " what is missing against the paper is a fine-tuned encoder of its language"
                " (--train --backbone NAME)."
            )
    return sentences


def _listed(outcome: Outcome, best: dict[str, float], metrics: Sequence[str]) -> str:
    return ", ".join(f"{HEADS[m]} ({outcome.mean(m):.4f}, paper {best[m]:.4f})" for m in metrics)


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
    rows: list[list[Cell]] = []
    sentences = []
    values = []
    verdicts = []
    for name, measure in FINDINGS.items():
        claim = claims[name]
        measured = measure(study)
        verdicts.append(measured.verdict)
        rows.append(
            [
                claim,
                measured.verdict,
                f"{measured.supported} of {measured.cases}",
                measured.sentence,
            ]
        )
        sentences.append(f"{claim} {measured.verdict.capitalize()}. {measured.sentence}")
        values.append(
            {
                "paper": claim,
                "verdict": measured.verdict,
                "supported": measured.supported,
                "cases": measured.cases,
                "here": measured.sentence,
            }
        )
    counts = [f"{verdicts.count(name)} × {name}" for name in (HOLDS, PARTLY, FAILS, OPEN)]
    further = beyond(study)
    return Section(
        "findings",
        "Which findings hold",
        {
            "findings": Table(
                "The paper's findings and ours",
                ["the paper says", "verdict", "cases that support it", "what was measured here"],
                rows,
                notes=[RULE],
            )
        },
        [f"{len(rows)} findings: {', '.join(counts)}.", RULE, *sentences, *further],
        {"rule": RULE, "findings": values, "beyond": further},
    )
