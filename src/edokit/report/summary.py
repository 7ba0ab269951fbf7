"""The summary in words: the weights, the improvement over the uniform mean, and caveats."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from edokit._types import Codes
from edokit.baselines.scores import SHARES
from edokit.ensemble import EDOEnsemble
from edokit.metrics import METRIC, PairedTest, search_metrics
from edokit.report.data import ROLES, ReportData
from edokit.report.evaluation import Evaluation
from edokit.report.formatting import clean, count, interval, listed, number, percent, signed
from edokit.report.items import filters, minority_by_chance
from edokit.report.results import Search, headline_value

RULES = {
    **{f"lowest-{name}": f"the lowest {METRIC[name].short} on the front" for name in METRIC},
    "f1-within-one-se": "the highest F1 within one standard error of the lowest {headline}",
    "knee": "the knee of the front",
    "closest": "the closest to the stated preference",
}
VERDICTS = {
    "better": "a significant improvement",
    "worse": "significantly worse",
    "noise": "not significant",
}
EQUAL = 1.2
"""Weights whose largest is less than this many times their smallest are nearly equal."""
SLIGHT = 0.01
"""Share of a metric below which a difference, significant or not, is called slight."""
FEW_ITEMS = 200
FEW_ANNOTATIONS = 3
RARE = 0.2
"""Share of an even share below which a class is rare: 10 % of the items with two classes."""
MISCALIBRATED = 0.05
SIMILAR = 0.05
MINORITIES = {
    "nominal": "a class chosen",
    "ordinal": "a rating above or below some point of the scale",
    "multi-label": "a label chosen or left out",
}
"""What a minority's view is."""


@dataclass
class Summary:
    """Sentences by topic."""

    lead: str
    caveats: list[str]
    tiles: list[tuple[str, str, str]] = field(default_factory=list)
    """Name, value and note of each number at the top of the page."""
    weights: list[str] = field(default_factory=list)
    improvement: list[str] = field(default_factory=list)
    headline: list[str] = field(default_factory=list)
    """What must not be missed; empty where the ensemble is better than a constant answer."""


def summarize(data: ReportData) -> Summary:
    """The summary of whatever is known."""
    ensemble, evaluation = data.ensemble, data.evaluation
    summary = Summary(lead(ensemble, evaluation), caveats(data))
    if ensemble is not None:
        summary.tiles = _tiles(ensemble, evaluation)
        summary.weights = describe_weights(ensemble, evaluation)
    if data.search is not None and data.search.trials:
        summary.weights.append(describe_choice(data.search, ensemble))
    if evaluation is not None:
        summary.improvement = describe_improvement(evaluation)
        summary.headline = [clean(line, 600) for line in evaluation.headline]
    return summary


def _tiles(ensemble: EDOEnsemble, evaluation: Evaluation | None) -> list[tuple[str, str, str]]:
    settings, total = ensemble.settings_, len(ensemble.fitted_.unit_weights[0])
    about = f"{settings['pool']} pool, {settings['solver']} solver"
    tiles = [(f"{_unit(ensemble)}s with weight", f"{ensemble.size_} of {total}", about)]
    if evaluation is None or evaluation.annotations is None:
        return tiles
    edo, uniform = evaluation.scores[:2]
    f1, headline, distance = search_metrics(evaluation.scale)
    for metric in (headline, distance, f1):
        name = _named(metric)
        note = f"uniform mean {number(getattr(uniform, metric))}"
        if evaluation.constant is not None:
            note += f", constant {number(getattr(evaluation.constant, metric))}"
        tiles.append((name, number(getattr(edo, metric)), note))
    rho = number(evaluation.rho.estimate, 2)
    return [*tiles, ("entropy correlation (ρ)", rho, "ensemble and annotations")]


def _named(metric: str) -> str:
    """``cross-entropy (CE)``, ``distance (MD)``."""
    short, title = METRIC[metric].short, METRIC[metric].title
    title = "distance" if metric == "md" else title
    return short if metric == "f1" else title if short in title else f"{title} ({short})"


def _short(metric: str) -> str:
    """``CE``, ``exact match``."""
    short, title = METRIC[metric].short, METRIC[metric].title
    return title if short in title and metric != "f1" else short


def _unit(ensemble: EDOEnsemble) -> str:
    """What weights are learned for."""
    return "member" if ensemble.group_weights_ is None else "group"


def _size(ensemble: EDOEnsemble) -> str:
    total = count(len(ensemble.fitted_.unit_weights[0]), _unit(ensemble))
    return f"{ensemble.size_} of {total} {'has' if ensemble.size_ == 1 else 'have'} weight"


def lead(ensemble: EDOEnsemble | None, evaluation: Evaluation | None) -> str:
    """The result in one or two sentences."""
    if ensemble is None:
        return "The ensemble of this run could not be read."
    if evaluation is None or not evaluation.differences:
        return f"{_size(ensemble)}, fitted on {ensemble.fitted_.learned_from}."
    n = len(evaluation.pooled.items)
    place = f"On {count(n, evaluation.name.removesuffix('s'))}"
    if evaluation.held_out is False:
        noun = evaluation.name.rpartition(" ")[2].removesuffix("s")
        place = f"In-sample (optimistic), on the {count(n, noun)} of the fit,"
    metrics = standings(evaluation)
    better, worse, noise = (listed(names) for names in metrics.values())
    if not better and not worse:
        verdict = f"does not differ significantly from the uniform mean in {noise}"
        return f"{_size(ensemble)}. {place} the ensemble {verdict}."
    parts = [
        f"{'slightly ' if _is_slight(evaluation, metrics[kind]) else ''}{kind} in {names}"
        for kind, names in (("better", better), ("worse", worse))
        if names
    ]
    verdict = " and ".join(parts).replace(" in ", " than the uniform mean in ", 1)
    verdict += f"; no significant difference in {noise}" if noise else ""
    return f"{_size(ensemble)}. {place} the ensemble is {verdict}."


def _is_slight(evaluation: Evaluation, metrics: list[str]) -> bool:
    """Whether the ensemble differs from the uniform mean by less than 1 % in all of these."""
    uniform = evaluation.scores[1]
    return all(
        abs(test.difference) < SLIGHT * abs(getattr(uniform, name))
        for name, test in evaluation.differences.items()
        if _short(name) in metrics
    )


def standings(evaluation: Evaluation) -> dict[str, list[str]]:
    """The metrics by standing; ``noise`` if the interval of the difference includes 0."""
    metrics: dict[str, list[str]] = {kind: [] for kind in VERDICTS}
    for metric, test in evaluation.differences.items():
        metrics[_standing(metric, test)].append(_short(metric))
    return metrics


def _standing(metric: str, test: PairedTest) -> str:
    low, high = (-test.high, -test.low) if METRIC[metric].higher else (test.low, test.high)
    return "better" if high < 0 else "worse" if low > 0 else "noise"


def describe_improvement(evaluation: Evaluation) -> list[str]:
    """The differences from the uniform mean, with intervals."""
    headline = evaluation.scores[0].headline if evaluation.scores else ""
    if headline not in evaluation.differences:
        return []
    edo, uniform, level = *evaluation.scores[:2], percent(evaluation.level)
    test = evaluation.differences[headline]
    sentences = [
        f"On {count(test.n, evaluation.name.removesuffix('s'))} the {METRIC[headline].title} is"
        f" {number(headline_value(edo))} ({level}: {interval(edo.intervals[headline])}); that of"
        f" the uniform mean is {number(headline_value(uniform))}. The difference is"
        f" {signed(test.difference)} ({level}: {signed(test.low)} to {signed(test.high)}):"
        f" {VERDICTS[_standing(headline, test)]}."
    ]
    parts: list[str] = []
    for name in sorted(evaluation.differences, key=lambda name: name == "f1"):
        if name != headline:
            article = f"{'the' if parts else 'The'} " if name != "f1" else ""
            value = number(getattr(edo, name))
            parts.append(
                f"{article}{_named(name)} is {value} {_bracket(evaluation.differences[name])}"
            )
    sentences.append(f"{listed(parts)}; in brackets: difference from the uniform mean.")
    if evaluation.constant is not None:
        values = [
            f"{_short(name)} {number(getattr(evaluation.constant, name))} {_bracket(test)}"
            for name, test in edo.against_constant.items()
        ]
        sentences.append(
            f"A constant answer ({SHARES[evaluation.source]}) has {listed(values)}; in brackets:"
            " ensemble minus constant."
        )
    return sentences + _describe_correlation(evaluation)


def _bracket(test: PairedTest) -> str:
    return f"({signed(test.difference)}; {signed(test.low)} to {signed(test.high)})"


def _describe_correlation(evaluation: Evaluation) -> list[str]:
    """How strongly the entropies of ensemble and annotations are correlated."""
    rho, low, high = evaluation.rho.estimate, evaluation.rho.low, evaluation.rho.high
    if rho is None:
        return []
    strength = "clearly" if abs(rho) >= 0.3 else "weakly" if abs(rho) >= 0.1 else "hardly"
    if low is not None and high is not None and low <= 0 <= high:
        strength = "not significantly"
    elif rho < 0:
        strength += ", and negatively,"
    ends = interval((low, high), 2)
    return [
        f"The entropies of ensemble and annotations are {strength} correlated:"
        f" ρ = {number(rho, 2)}{f' ({percent(evaluation.level)}: {ends})' if ends else ''}."
    ]


def describe_weights(ensemble: EDOEnsemble, evaluation: Evaluation | None) -> list[str]:
    """Which members have weight, and why."""
    names, weights = ensemble.fitted_.unit_weights
    classes = [f"“{clean(name, 40)}”" for name in ensemble.classes_]
    nouns = {"ordinal": "points of the scale", "multi-label": "labels of sets"}
    noun = nouns.get(ensemble.scale_.kind, "classes")
    answers = f"{len(classes)} {noun}"
    if len(classes) <= 6:
        answers = f"{noun}{'' if noun == 'classes' else ','} {listed(classes)}"
    annotations = ""
    if data := ensemble.data_:
        annotators = count(int(data["annotators"]), "annotator")
        annotations = f" with {count(int(data['annotations']), 'annotation')} of {annotators}"
    sentences = [
        f"{_size(ensemble)} in a {ensemble.settings_['pool']} pool over the {answers},"
        f" fitted on {ensemble.fitted_.learned_from}{annotations}."
    ]
    positive = weights[weights > 0]
    if len(positive) > 1 and positive.max() < EQUAL * positive.min():
        low, high = number(float(positive.min()), 3), number(float(positive.max()), 3)
        alike = f"equal ({low})" if low == high else f"nearly equal ({low} to {high})"
        sentences.append(f"Their weights are {alike}.")
    elif len(names) > 1:
        order = np.argsort(-weights, kind="stable")
        half = int(np.searchsorted(np.cumsum(weights[order]), 0.5)) + 1
        largest = [int(k) for k in order[: min(half, 3)]]
        parts = [f"“{clean(names[k], 40)}” ({number(float(weights[k]), 3)})" for k in largest]
        share = percent(float(weights[largest].sum()))
        verb = "has" if len(largest) == 1 else "have"
        reasons = _reasons_for(ensemble, largest, evaluation)
        sentences.append(f"{listed(parts)} {verb} {share} of the weight.{reasons}")
    if (regularization := ensemble.fitted_.regularization) is not None:
        sentences.append(regularization)
    return sentences + _without_weight(ensemble, len(names) - ensemble.size_)


DISTANT = 1.25
"""A member differs whose distance to the others is so many times the median member's."""


def _reasons_for(ensemble: EDOEnsemble, largest: list[int], evaluation: Evaluation | None) -> str:
    """The rank of the heaviest members by their own CE, and which differ from the others."""
    if ensemble.group_weights_ is not None:
        return ""
    names, losses = ensemble.members_, ensemble.member_ce_
    distance = np.zeros(len(names))
    if evaluation is not None and set(names) <= set(evaluation.predictions.members):
        at = [evaluation.predictions.members.index(name) for name in names]
        distance = evaluation.distances[np.ix_(at, at)].sum(axis=1)
    reasons = []
    for k in largest:
        rank = 1 + int((losses < losses[k]).sum())
        differs = rank > 1 and distance[k] > DISTANT * np.median(distance)
        note = ", differs from the others" if differs else ""
        reasons.append(f"“{clean(names[k], 40)}” ranks {rank} (CE {number(losses[k])}{note})")
    return f" On the fit data alone, {listed(reasons)}."


def _without_weight(ensemble: EDOEnsemble, without: int) -> list[str]:
    """Why members have no weight, counted by reason."""
    if without <= 0:
        return []
    verbs = {
        "excluded_by_loss": ("would raise the loss", "would raise the loss"),
        "beyond_max_members": ("is beyond the largest size", "are beyond the largest size"),
        "excluded_by_size": ("is left out by the chosen size", "are left out by the chosen size"),
    }
    unit = _unit(ensemble)
    start = count(without, f"{unit} has no weight", f"{unit}s have no weight")
    kinds = Counter(reason.kind for reason in ensemble.explain() if reason.kind in verbs)
    if kinds.total() != without:
        return [f"{start}."]
    parts = [(n, verbs[kind][n > 1]) for kind, n in kinds.items()]
    if len(parts) == 1:
        return [f"{start}: {'it' if without == 1 else 'they'} {parts[0][1]}."]
    return [f"{start}: {listed([f'{n} {verb}' for n, verb in parts])}."]


def describe_choice(search: Search, ensemble: EDOEnsemble | None) -> str:
    """Which trial was chosen, by which rule, and its estimates."""
    front = f"{len(search.front)} {'is' if len(search.front) == 1 else 'are'} on the Pareto front"
    start = f"Of {count(len(search.trials), 'trial')}, {front}"
    if search.chosen is None:
        return f"{start}."
    headline = METRIC[search.headline].short
    rule = f", {RULES[search.rule].format(headline=headline)}" if search.rule in RULES else ""
    text = f"{start}; trial {search.chosen.number} was chosen{rule}."
    cross_fitted, optimistic = map(search.estimates.get, ("cross-fitted", "optimistic"))
    if cross_fitted is not None and optimistic is not None:
        text += (
            f" Its {headline} is {number(optimistic)} in-sample (optimistic) and"
            f" {number(cross_fitted)} cross-fitted."
        )
    if ensemble is not None:
        ours = dict(zip(ensemble.members_, ensemble.weights_.tolist(), strict=True))
        # Weights of groups can't be compared with those of members.
        if set(ours) == set(search.weights) and any(
            abs(search.weights[name] - weight) >= 1e-6 for name, weight in ours.items()
        ):
            text += " The ensemble of this page was fitted with other settings."
    return text


def caveats(data: ReportData) -> list[str]:
    """Sentences, the gravest first; the last one holds for every ensemble."""
    sentences: list[str] = []
    changed = [ROLES.get(role, role).lower() for role, s in data.inputs.items() if s == "changed"]
    if changed:
        sentences.append(
            f"Changed since the run: {listed(changed)}. The page shows the current files."
        )
    if data.evaluation is not None:
        sentences += _about_items(data.evaluation)
    if data.ensemble is not None:
        if len(data.ensemble.members_) == 1:
            sentences.append("There is a single member, so there were no weights to learn.")
        if unlearned := data.ensemble.fitted_.nothing_learned:
            sentences.append(unlearned)
        certificate = data.ensemble.certificate_
        if certificate is not None and not certificate.global_optimum:
            sentences.append(f"The weights may not be optimal: {certificate.reason}.")
    sentences.append(
        "An ensemble reproduces the views of its annotators, biases included. It shows where"
        " people disagree; it does not replace them."
    )
    return sentences


def _about_items(evaluation: Evaluation) -> list[str]:
    """Whether the items are held out, many and well annotated, and what the ensemble misses."""
    in_sample = [
        "The ensemble was fitted on the items shown here, so all metrics are in-sample"
        " (optimistic). Evaluate on held-out items (`edo compare`, or --predictions and"
        " --annotations of a test split)."
    ]
    sentences = in_sample if evaluation.held_out is False else []
    annotations, hard = evaluation.annotations, evaluation.hard_labels
    if annotations is None or hard is None:
        return sentences
    n, several = len(hard), len(evaluation.predictions.members) > 1
    metrics, largest = standings(evaluation), float(evaluation.distances.max())
    ece = evaluation.ece or 0.0
    per_item = float(np.median(annotations.annotations_per_item))
    coarse = per_item < FEW_ANNOTATIONS and annotations.label_codes is not None
    # Each sentence with the condition under which it is shown.
    conditions = {
        "It is not recorded whether the ensemble was fitted on the items shown here; if it"
        " was, all metrics are in-sample (optimistic).": evaluation.held_out is None,
        f"With {count(n, 'item')} the intervals are wide.": n < FEW_ITEMS,
        "On these items the learned weights do not differ significantly from the uniform mean,"
        " which is simpler.": several and not metrics["better"] and not metrics["worse"],
        f"The members are nearly identical (distance at most {number(largest, 3)}), so the"
        " weights matter little.": several and largest < SIMILAR,
        f"The probabilities are off by {number(ece, 3)} on average (ECE);"
        " `edo fit --recalibrate temperature` may help.": ece > MISCALIBRATED,
        f"Half of the items have at most {count(int(per_item), 'annotation')}, so their soft"
        " labels are coarse.": coarse and not evaluation.name.endswith("pairs"),
    }
    sentences += [sentence for sentence, holds in conditions.items() if holds]
    return sentences + _about_hard_labels(evaluation, hard) + _about_divided_items(evaluation)


def _about_hard_labels(evaluation: Evaluation, hard: Codes) -> list[str]:
    """Whether all items have the same hard label, or hardly any item has a rare one."""
    classes, scale = evaluation.pooled.classes, evaluation.scale
    shares = scale.indicators(hard, len(classes)).mean(axis=0)
    present = np.flatnonzero(shares)
    sentences = []
    if len(np.unique(hard, axis=0)) == 1:
        label = ", ".join(clean(classes[c], 40) for c in present) or "none"
        sentences.append(
            f"Every item has the same hard label, “{label}”, so F1 is not informative."
        )
    rarest = present[shares[present].argmin()] if len(present) else 0
    # A rare point of a scale has neighbours that count.
    even = len(scale.row_classes(classes)) if scale.span is None else np.inf
    if shares[rarest] * even < RARE:
        rare = clean(classes[rarest], 40)
        subject = f"Class “{rare}” is the hard label of"
        if scale.is_multi_label:
            subject = f"Most annotators chose the label “{rare}” for"
        sentences.append(
            f"{subject} only {percent(float(shares[rarest]), 1)} of the items, so errors on it"
            " hardly affect the averages."
        )
    return sentences


def _about_divided_items(evaluation: Evaluation) -> list[str]:
    """How often the ensemble is confident where annotators are divided, or misses a minority."""
    n, masks = len(evaluation.pooled.items), filters(evaluation)
    sure, minority = (int(masks[key].sum()) for key in ("sure", "minority"))
    chance, deviation = minority_by_chance(evaluation)
    sentences = []
    if sure:
        sentences.append(
            f"In {count(sure, 'item')} ({percent(sure / n, 1)}) annotators are divided and the"
            " ensemble is confident."
        )
    if minority > chance + 2 * deviation:
        sentences.append(
            f"In {count(minority, 'item')} ({percent(minority / n, 1)})"
            f" {MINORITIES[evaluation.scale.kind]} by at least a fifth of the annotators gets less"
            f" than half of its share; chance would explain {percent(chance / n, 1)}."
        )
    return sentences
