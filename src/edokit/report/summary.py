"""The summary in words: the weights, the improvement over the uniform mean, and caveats."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from edokit._types import Floats
from edokit.ensemble import EDOEnsemble
from edokit.metrics import MAIN_METRICS, PairedTest
from edokit.report.data import ROLES, ReportData
from edokit.report.evaluation import Evaluation
from edokit.report.formatting import clean, count, interval, listed, number, percent, signed
from edokit.report.items import filters
from edokit.report.trials import Search

RULES = {
    "lowest-ce": "the lowest CE on the front",
    "f1-within-one-se": "the highest F1 within one standard error of the lowest CE",
    "knee": "the knee of the front",
    "closest": "the closest to the stated preference",
}
VERDICTS = {
    "better": "a significant improvement",
    "noise": "not significant",
    "worse": "significantly worse",
}
EQUAL = 1.2
"""Weights whose largest is less than this many times their smallest are nearly equal."""
FEW_ITEMS = 200
FEW_ANNOTATIONS = 3
RARE = 0.1
MISCALIBRATED = 0.05
SIMILAR = 0.05


@dataclass(frozen=True)
class Tile:
    """One number at the top of the page."""

    value: str
    name: str
    note: str


@dataclass
class Summary:
    """Sentences by topic."""

    lead: str
    tiles: list[Tile] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)
    improvement: list[str] = field(default_factory=list)
    caveats: list[str] = field(default_factory=list)


def summarize(data: ReportData) -> Summary:
    """The summary of whatever is known."""
    ensemble, evaluation = data.ensemble, data.evaluation
    summary = Summary(lead(ensemble, evaluation), caveats=caveats(data))
    if ensemble is not None:
        summary.tiles = tiles(ensemble, evaluation)
        summary.weights = describe_weights(ensemble, evaluation)
    if data.search is not None and data.search.trials:
        summary.weights.append(" ".join(describe_choice(data.search, ensemble)))
    if evaluation is not None:
        summary.improvement = describe_improvement(evaluation)
    return summary


def lead(ensemble: EDOEnsemble | None, evaluation: Evaluation | None) -> str:
    """The result in one or two sentences."""
    if ensemble is None:
        return "The ensemble of this run could not be read."
    kept = f"{ensemble.size_} of {count(n_units(ensemble), unit(ensemble))}"
    start = f"{kept} {'has' if ensemble.size_ == 1 else 'have'} weight"
    if evaluation is None or not evaluation.differences:
        return f"{start}, fitted on {count(ensemble.n_items_, 'item')}."
    return f"{start}. {headline(evaluation)}"


def tiles(ensemble: EDOEnsemble, evaluation: Evaluation | None) -> list[Tile]:
    """The numbers at the top of the page."""
    settings = ensemble.settings_
    found = [
        Tile(
            f"{ensemble.size_} of {n_units(ensemble)}",
            f"{unit(ensemble)}s with weight",
            f"{settings['pool']} pool, {settings['solver']} solver",
        )
    ]
    if evaluation is None or evaluation.annotations is None:
        return found
    edo, uniform = evaluation.scores[:2]
    for metric, name in (("ce", "cross-entropy (CE)"), ("md", "distance (MD)"), ("f1", "F1")):
        note = f"uniform mean {number(getattr(uniform, metric))}"
        found.append(Tile(number(getattr(edo, metric)), name, note))
    rho = number(evaluation.rho.estimate, 2)
    return [*found, Tile(rho, "entropy correlation (ρ)", "ensemble and annotations")]


def n_units(ensemble: EDOEnsemble) -> int:
    """The number of members, or of groups, that weights are learned for."""
    weights = ensemble.group_weights_
    return len(ensemble.members_ if weights is None else weights)


def unit(ensemble: EDOEnsemble) -> str:
    """What weights are learned for."""
    return "member" if ensemble.group_weights_ is None else "group"


# The improvement over the uniform mean.


def standing(metric: str, difference: PairedTest) -> str:
    """``better``, ``worse``, or ``noise`` where the interval of the difference includes 0."""
    low, high = difference.low, difference.high
    if metric == "f1":
        low, high = -high, -low
    return "better" if high < 0 else "worse" if low > 0 else "noise"


def standings(evaluation: Evaluation) -> dict[str, list[str]]:
    """The metrics by standing."""
    found: dict[str, list[str]] = {"better": [], "worse": [], "noise": []}
    for metric in MAIN_METRICS:
        if metric in evaluation.differences:
            found[standing(metric, evaluation.differences[metric])].append(metric.upper())
    return found


def headline(evaluation: Evaluation) -> str:
    """The ensemble against the uniform mean in all metrics, in one sentence."""
    found = standings(evaluation)
    n = len(evaluation.pooled.items)
    where = f"On {count(n, evaluation.name.removesuffix('s'))}"
    if evaluation.held_out is False:
        where = f"In-sample (optimistic), on the {count(n, 'item')} of the fit,"
    better, worse, noise = (listed(found[kind]) for kind in ("better", "worse", "noise"))
    if not better and not worse:
        return (
            f"{where} the ensemble does not differ significantly from the uniform mean in {noise}."
        )
    parts = [
        f"{kind} in {names}" for kind, names in (("better", better), ("worse", worse)) if names
    ]
    differs = " and ".join(parts).replace(" in ", " than the uniform mean in ", 1)
    rest = f"; no significant difference in {noise}" if noise else ""
    return f"{where} the ensemble is {differs}{rest}."


def describe_improvement(evaluation: Evaluation) -> list[str]:
    """The differences from the uniform mean, with intervals."""
    if "ce" not in evaluation.differences:
        return []
    edo, uniform, level = *evaluation.scores[:2], percent(evaluation.level)
    ce = evaluation.differences["ce"]
    sentences = [
        f"On {count(ce.n, evaluation.name.removesuffix('s'))} the cross-entropy is"
        f" {number(edo.ce)} ({level}: {interval(edo.intervals['ce'])}); that of the uniform"
        f" mean is {number(uniform.ce)}. The difference is {signed(ce.difference)}"
        f" ({level}: {signed(ce.low)} to {signed(ce.high)}): {VERDICTS[standing('ce', ce)]}."
    ]
    others = []
    for metric, name in (("md", "The distance (MD)"), ("bs", "the Brier score (BS)"), ("f1", "F1")):
        one = evaluation.differences[metric]
        others.append(
            f"{name} is {number(getattr(edo, metric))} ({signed(one.difference)};"
            f" {signed(one.low)} to {signed(one.high)})"
        )
    sentences.append(f"{listed(others)}; in brackets: difference from the uniform mean.")
    rho = evaluation.rho.estimate
    if rho is not None:
        ends = interval((evaluation.rho.low, evaluation.rho.high), 2)
        strength = "clearly" if rho >= 0.3 else "weakly" if rho >= 0.1 else "hardly"
        sentences.append(
            f"The entropies of ensemble and annotations are {strength} correlated:"
            f" ρ = {number(rho, 2)}{f' ({level}: {ends})' if ends else ''}."
        )
    return sentences


# The weights.


def describe_weights(ensemble: EDOEnsemble, evaluation: Evaluation | None) -> list[str]:
    """Which members have weight, and why."""
    names, weights, own = _units(ensemble)
    order = np.argsort(-weights, kind="stable")
    half = int(np.searchsorted(np.cumsum(weights[order]), 0.5)) + 1
    largest = [int(k) for k in order[: min(half, 3)]]
    classes = [f"“{clean(name, 40)}”" for name in ensemble.classes_]
    shown = f"classes {listed(classes)}" if len(classes) <= 6 else f"{len(classes)} classes"
    data = ensemble.data_
    annotations = (
        f" with {count(int(data['annotations']), 'annotation')} of"
        f" {count(int(data['annotators']), 'annotator')}"
        if data
        else ""
    )
    sentences = [
        f"{ensemble.size_} of {count(len(names), unit(ensemble))}"
        f" {'has' if ensemble.size_ == 1 else 'have'} weight in a {ensemble.settings_['pool']} pool"
        f" over the {shown}, fitted on {count(ensemble.n_items_, 'item')}{annotations}."
    ]
    kept = weights[weights > 0]
    if len(kept) > 1 and kept.max() < EQUAL * kept.min():
        ends = f"{number(float(kept.min()), 3)} to {number(float(kept.max()), 3)}"
        sentences.append(f"Their weights are nearly equal ({ends}).")
    elif len(names) > 1:
        parts = [f"“{clean(names[k], 40)}” ({number(float(weights[k]), 3)})" for k in largest]
        sentences.append(
            f"{listed(parts)} {'has' if len(largest) == 1 else 'have'}"
            f" {percent(float(weights[largest].sum()))} of the weight."
            f" {_reasons_for(names, own, largest, evaluation)}".rstrip()
        )
    return sentences + _without_weight(ensemble, names)


def _reasons_for(
    names: list[str], own: list[float | None], largest: list[int], evaluation: Evaluation | None
) -> str:
    """The rank of the heaviest members by their own CE, and which differ from the others."""
    reasons = []
    mean_distance = _mean_distances(names, evaluation)
    for k in largest:
        ce = own[k]
        if ce is None:
            continue
        rank = 1 + sum(other is not None and other < ce for other in own)
        differs = mean_distance is not None and mean_distance[k] > float(np.median(mean_distance))
        note = ", differs from the others" if rank > 1 and differs else ""
        reasons.append(f"“{clean(names[k], 40)}” ranks {rank} (CE {number(ce)}{note})")
    return f"On the fit data alone, {listed(reasons)}." if reasons else ""


def _mean_distances(names: list[str], evaluation: Evaluation | None) -> Floats | None:
    """The mean distance of each member to the others."""
    if evaluation is None or any(name not in evaluation.predictions.members for name in names):
        return None
    at = [evaluation.predictions.members.index(name) for name in names]
    means: Floats = evaluation.distances[np.ix_(at, at)].sum(axis=1) / max(len(names) - 1, 1)
    return means


def _without_weight(ensemble: EDOEnsemble, names: list[str]) -> list[str]:
    """Why members have no weight, counted by reason."""
    without = len(names) - ensemble.size_
    if without <= 0:
        return []
    verbs = {
        "excluded_by_loss": ("would raise the loss", "would raise the loss"),
        "beyond_max_members": ("is beyond the largest size", "are beyond the largest size"),
        "excluded_by_size": ("is left out by the chosen size", "are left out by the chosen size"),
    }
    kinds = Counter(reason.kind for reason in ensemble.explain() if reason.kind in verbs)
    start = f"{count(without, unit(ensemble))} {'has' if without == 1 else 'have'} no weight"
    if kinds.total() != without:
        return [f"{start}."]
    parts = [(n, verbs[kind][n > 1]) for kind, n in kinds.items()]
    if len(parts) == 1:
        return [f"{start}: {'it' if without == 1 else 'they'} {parts[0][1]}."]
    return [f"{start}: {listed([f'{n} {verb}' for n, verb in parts])}."]


def _units(ensemble: EDOEnsemble) -> tuple[list[str], Floats, list[float | None]]:
    """Names, weights and own cross-entropies of the members, or of the groups."""
    if ensemble.group_weights_ is None or ensemble.groups_ is None:
        own = [float(value) for value in ensemble.member_ce_]
        return list(ensemble.members_), ensemble.weights_, [*own]
    names = list(dict.fromkeys(ensemble.groups_))
    return names, ensemble.group_weights_, [None] * len(names)


def describe_choice(search: Search, ensemble: EDOEnsemble | None) -> list[str]:
    """Which trial was chosen, by which rule, and its estimates."""
    front = f"{len(search.front)} {'is' if len(search.front) == 1 else 'are'} on the Pareto front"
    start = f"Of {count(len(search.trials), 'trial')}, {front}"
    if search.chosen is None:
        return [f"{start}."]
    rule = f", {RULES[search.rule]}" if search.rule in RULES else ""
    sentences = [f"{start}; trial {search.chosen.number} was chosen{rule}."]
    cross_fitted, optimistic = map(search.estimates.get, ("cross-fitted", "optimistic"))
    if cross_fitted is not None and optimistic is not None:
        sentences.append(
            f"Its CE is {number(optimistic)} in-sample (optimistic) and {number(cross_fitted)}"
            " cross-fitted."
        )
    if ensemble is not None:
        ours = dict(zip(ensemble.members_, ensemble.weights_.tolist(), strict=True))
        # Weights of groups can't be compared with those of members.
        if set(ours) == set(search.weights) and any(
            abs(search.weights[name] - weight) >= 1e-6 for name, weight in ours.items()
        ):
            sentences.append("The ensemble of this page was fitted with other settings.")
    return sentences


# What to be careful about.


def caveats(data: ReportData) -> list[str]:
    """Sentences, the gravest first; the last one holds for every ensemble."""
    found: list[str] = []
    changed = [ROLES.get(role, role).lower() for role, s in data.inputs.items() if s == "changed"]
    if changed:
        found.append(f"Changed since the run: {listed(changed)}. The page shows the current files.")
    if data.evaluation is not None:
        found += _about_sample(data.evaluation)
        found += _about_annotations(data.evaluation)
    if data.ensemble is not None:
        if len(data.ensemble.members_) == 1:
            found.append("There is a single member, so there were no weights to learn.")
        certificate = data.ensemble.certificate_
        if certificate is not None and not certificate.global_optimum:
            found.append(f"The weights may not be optimal: {certificate.reason}.")
    found.append(
        "An ensemble reproduces the views of its annotators, biases included. It shows where"
        " people disagree; it does not replace them."
    )
    return found


def _about_sample(evaluation: Evaluation) -> list[str]:
    """Whether the items are held out, many, and enough to tell methods apart."""
    found = []
    if evaluation.held_out is False:
        found.append(
            "The ensemble was fitted on the items shown here, so all metrics are in-sample"
            " (optimistic). Evaluate on held-out items (`edo compare`, or --predictions and"
            " --annotations of a test split)."
        )
    if evaluation.annotations is None or evaluation.hard_labels is None:
        return found
    if evaluation.held_out is None:
        found.append(
            "It is not recorded whether the ensemble was fitted on the items shown here; if it"
            " was, all metrics are in-sample (optimistic)."
        )
    n = len(evaluation.hard_labels)
    if n < FEW_ITEMS:
        found.append(f"With {count(n, 'item')} the intervals are wide.")
    several = len(evaluation.predictions.members) > 1
    differ = standings(evaluation)
    if several and not differ["better"] and not differ["worse"]:
        found.append(
            "On these items the learned weights do not differ significantly from the uniform"
            " mean, which is simpler."
        )
    largest = float(evaluation.distances.max())
    if several and largest < SIMILAR:
        found.append(
            f"The members are nearly identical (distance at most {number(largest, 3)}), so the"
            " weights matter little."
        )
    ece = evaluation.ece
    if ece is not None and ece > MISCALIBRATED:
        found.append(
            f"The probabilities are off by {number(ece, 3)} on average (ECE);"
            " `edo fit --recalibrate temperature` may help."
        )
    return found


def _about_annotations(evaluation: Evaluation) -> list[str]:
    """Few annotations, rare classes, and minorities that the ensemble misses."""
    annotations, hard = evaluation.annotations, evaluation.hard_labels
    if annotations is None or hard is None:
        return []
    found = []
    per_item = float(np.median(annotations.annotations_per_item))
    if per_item < FEW_ANNOTATIONS and annotations.label_codes is not None:
        found.append(
            f"Half of the items have at most {count(int(per_item), 'annotation')}, so their soft"
            " labels are coarse."
        )
    classes = evaluation.pooled.classes
    shares = np.bincount(hard, minlength=len(classes)) / len(hard)
    present = np.flatnonzero(shares > 0)
    if len(present) == 1:
        only = clean(classes[present[0]], 40)
        found.append(f"Every item has the same hard label, “{only}”, so F1 is not informative.")
    elif shares[present].min() < RARE:
        rare = present[int(shares[present].argmin())]
        found.append(
            f"Class “{clean(classes[rare], 40)}” is the hard label of only"
            f" {percent(float(shares[rare]), 1)} of the items, so errors on it hardly affect the"
            " averages."
        )
    sizes = {group.key: int(group.mask.sum()) for group in filters(evaluation)}
    if sizes["sure"]:
        share = percent(sizes["sure"] / len(hard), 1)
        found.append(
            f"In {count(sizes['sure'], 'item')} ({share}) annotators disagree and the ensemble is"
            " confident."
        )
    if sizes["minority"]:
        share = percent(sizes["minority"] / len(hard), 1)
        found.append(
            f"In {count(sizes['minority'], 'item')} ({share}) a class chosen by at least a fifth"
            " of the annotators gets less than half of its share."
        )
    return found
