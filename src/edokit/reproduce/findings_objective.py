"""Findings about the objective: sign, diversity, weights, size, variants, correlations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edokit.reproduce.ce_variants import sign_effects
from edokit.reproduce.diversity import diversity_effects
from edokit.reproduce.effects import HEADS, Effect, effect
from edokit.reproduce.finding import FAILS, HOLDS, OPEN, PARTLY, Finding, largest, not_tested, shown
from edokit.reproduce.fixed import PAPERS_POOL, VARIANTS, Configuration, fixed_outcomes
from edokit.reproduce.heat_maps import claims_checked, correlations
from edokit.reproduce.section import signed
from edokit.reproduce.sizes import learned_sizes, size_curve
from edokit.reproduce.study import DATASETS, EVERYTHING, Missing, Study
from edokit.reproduce.weighting import weighting_effects


def sign(study: Study) -> Finding:
    """Does the sign of the diversity term matter?"""
    says = "The sign of the diversity term matters, critically so on HS-Brexit (CE by up to 0.29)."
    effects = sign_effects(study, "gumbel")
    if not effects:
        return not_tested(says)
    claimed = [key for key, one in effects.items() if one.claimed]
    parts = []
    for dataset in DATASETS:
        own = [one for (name, _), one in effects.items() if name == dataset]
        if own:
            parts.append(f"{dataset} {shown(largest(own))}")
    exact = sign_effects(study, "exact")
    deeper = [f"{d} {signed(largest(own).value)}" for d in DATASETS if (own := _of(exact, d))]
    brexit = [one.claimed for (name, _), one in effects.items() if name == "HS-Brexit"]
    critical = max((abs(one.value) for one in _of(effects, "HS-Brexit")), default=0.0)
    verdict = FAILS if not any(brexit) else HOLDS if critical > 0.1 else PARTLY
    if not brexit:
        verdict = OPEN
    return Finding(
        says,
        "Preserve less suppress in test CE, the largest of the three variants:"
        f" {'; '.join(parts)}. {len(claimed)} of {len(effects)} differences exceed the noise"
        f"{_where(claimed)}. Solved to the optimum the same objectives differ by"
        f" {', '.join(deeper)}{_collapse(study)}.",
        verdict,
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
    return [one for (name, _), one in effects.items() if name == dataset]


def diversity(study: Study) -> Finding:
    """Does preserving diversity lower the CE?"""
    says = "Preserving diversity with the joint objective lowers CE by 0.0993 on average."
    effects = diversity_effects(study)
    own = {k[0]: one for k, one in effects.items() if k[1:] == ("f1+ce", "preserve")}
    if not own:
        return not_tested(says)
    mean = float(np.mean([one.value for one in own.values()]))
    spread = float(np.mean([one.spread for one in own.values()]))
    listed = "; ".join(f"{dataset} {shown(one)}" for dataset, one in own.items())
    helps = [d for d, one in own.items() if one.claimed and one.value < 0]
    verdict = FAILS if mean > -0.01 and not helps else PARTLY if mean > -0.05 else HOLDS
    return Finding(
        says,
        f"Mean over {len(own)} datasets {signed(mean)}, with a spread between seeds of"
        f" {spread:.4f}: {listed}.",
        verdict,
    )


def weights(study: Study) -> Finding:
    """Do learned weights beat uniform ones?"""
    says = "Learned weights lower CE against uniform weights on every dataset."
    effects = weighting_effects(study)
    own = {k: one for k, one in effects.items() if k[1:] == (PAPERS_POOL, "paper's search")}
    if not own:
        return not_tested(says)
    gains = [k for k, one in own.items() if one.claimed and one.value < 0]
    listed = "; ".join(f"{key[0]} {shown(one)}" for key, one in own.items())
    mixed = {k: one for k, one in effects.items() if k[1] == EVERYTHING and k[2] == "EDO default"}
    more = ""
    if mixed:
        listed_mixed = "; ".join(f"{key[0]} {shown(one)}" for key, one in mixed.items())
        won = sum(one.claimed and one.value < 0 for one in mixed.values())
        more = (
            f" Where members differ (all pools joined, pool settled on dev): {listed_mixed};"
            f" {won} of {len(mixed)} beyond the noise."
        )
    verdict = HOLDS if len(gains) == len(own) else PARTLY if gains else FAILS
    return Finding(
        says,
        f"Ten like members, the paper's search: {listed}. {len(gains)} of {len(own)} gains exceed"
        f" the noise.{more}",
        verdict,
    )


def size(study: Study) -> Finding:
    """Does the learned size adapt?"""
    says = "The learned size K adapts to the dataset, and larger K goes with lower CE."
    sizes = {d: s for (d, what), s in learned_sizes(study).items() if what.startswith("search")}
    if not sizes:
        return not_tested(says)
    means = [float(np.mean(s)) for s in sizes.values()]
    within = float(np.mean([np.std(s, ddof=1) if len(s) > 1 else 0.0 for s in sizes.values()]))
    between = float(np.std(means, ddof=1)) if len(means) > 1 else 0.0
    told = {(c["setting"], c["metric"]): c for c in claims_checked(correlations(study))}
    size = told["size", "ce"]
    curve = []
    for dataset in DATASETS:
        points = size_curve(study, dataset)
        if len(points) > 1:
            first, last = points[min(points)], points[max(points)]
            best = min(points, key=lambda k: points[k].mean("ce"))
            curve.append(
                f"{dataset} {first.mean('ce'):.4f} at K = {min(points)}, {last.mean('ce'):.4f} at"
                f" {max(points)}, lowest at {best}"
            )
    adapts, goes = between > within, size["agree"] > size["of"] / 2
    verdict = HOLDS if adapts and goes else FAILS if not adapts and not goes else PARTLY
    listed = ", ".join(f"{d} {'/'.join(map(str, s))}" for d, s in sizes.items())
    return Finding(
        says,
        f"Chosen sizes by seed: {listed}. Their standard deviation is {within:.1f} between seeds"
        f" of one dataset and {between:.1f} between datasets. K and dev CE correlate negatively in"
        f" {size['agree']} of {size['of']} cases ({size['shown']}). Test CE of the plain mean of"
        f" the K best: {'; '.join(curve)}.",
        verdict,
    )


def variants(study: Study) -> Finding:
    """Is CE-mean the most stable variant?"""
    says = "CE-mean gives the most stable calibration; on HS-Brexit the variants differ most."
    parts, claimed = [], 0
    for dataset in DATASETS:
        outcomes = fixed_outcomes(study, dataset)
        if isinstance(outcomes, Missing):
            continue
        mean, *others = (
            outcomes[Configuration(variant, "f1+ce", "preserve")]
            for variant in ("mean", "random", "all")
        )
        effects = [effect(mean, other, "ce") for other in others]
        claimed += any(one.claimed and one.value < 0 for one in effects)
        parts.append(f"{dataset} {shown(largest(effects))}")
    if not parts:
        return not_tested(says)
    return Finding(
        says,
        "CE-mean less the other variant that differs most, preserving, fixed settings:"
        f" {'; '.join(parts)}.",
        HOLDS if claimed == len(parts) else PARTLY if claimed else FAILS,
    )


def heat_maps(study: Study) -> Finding:
    """Do settings and metrics correlate as the paper says?"""
    says = "Settings and dev metrics correlate as the heat maps show."
    claims = claims_checked(correlations(study))
    cases = sum(one["of"] for one in claims)
    if not cases:
        return not_tested(says)
    agree = sum(one["agree"] for one in claims)
    listed = "; ".join(
        f"{one['setting']} and {HEADS[one['metric']]} {one['says']}: {one['agree']} of {one['of']}"
        for one in claims
    )
    share = agree / cases
    return Finding(
        says,
        f"{agree} of {cases} cases are as the text says ({listed}).",
        HOLDS if share > 0.9 else FAILS if share < 0.5 else PARTLY,
    )
