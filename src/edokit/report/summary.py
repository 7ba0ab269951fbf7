"""The summary in words: the weights, the improvement over the uniform mean, and caveats."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edokit._types import Floats
from edokit.ensemble import EDOEnsemble
from edokit.metrics import PairedTest
from edokit.report.data import ROLES, ReportData
from edokit.report.evaluation import Evaluation
from edokit.report.formatting import clean, count, interval, listed, number, percent, signed
from edokit.report.items import filters
from edokit.report.trials import Search


@dataclass(frozen=True)
class Tile:
    """One figure of the headline."""

    value: str
    name: str
    note: str


@dataclass
class Summary:
    """Sentences by topic."""

    lead: str
    tiles: list[Tile] = field(default_factory=list)
    learned: list[str] = field(default_factory=list)
    gained: list[str] = field(default_factory=list)
    careful: list[str] = field(default_factory=list)


def summarize(found: ReportData) -> Summary:
    """The summary of whatever is known."""
    ensemble, evaluation = found.ensemble, found.evaluation
    summary = Summary(lead(ensemble, evaluation))
    if ensemble is not None:
        summary.tiles = tiles(ensemble, evaluation)
        summary.learned = learned(ensemble, evaluation)
    if found.search is not None and found.search.trials:
        summary.learned.append(" ".join(chosen(found.search, ensemble)))
    if evaluation is not None:
        summary.gained = gained(evaluation)
    summary.careful = cautions(found)
    return summary


def lead(ensemble: EDOEnsemble | None, evaluation: Evaluation | None) -> str:
    """The run in one sentence, or two."""
    if ensemble is None:
        return "This run has no ensemble that could be read; what there is, is shown below."
    kept = f"{ensemble.size_} of {count(units(ensemble), unit(ensemble))}"
    start = f"{kept} {'carries' if ensemble.size_ == 1 else 'carry'} weight"
    if evaluation is None or not evaluation.gains:
        return f"{start}, learned from {count(ensemble.n_items_, 'item')}."
    return f"{start}. {headline(evaluation)}"


def tiles(ensemble: EDOEnsemble, evaluation: Evaluation | None) -> list[Tile]:
    """The headline's figures."""
    found = [
        Tile(
            f"{ensemble.size_} of {units(ensemble)}",
            f"{unit(ensemble)}s kept",
            f"{ensemble.settings_['pool']} pool, {ensemble.settings_['solver']} solver",
        )
    ]
    if evaluation is None or evaluation.people is None:
        return found
    rows = {row["name"]: row for row in evaluation.methods}
    for name, title in (("ce", "cross-entropy (CE)"), ("md", "distance (MD)"), ("f1", "F1")):
        found.append(
            Tile(
                number(rows["edo"][name]),
                title,
                f"plain mean {number(rows['uniform'][name])}",
            )
        )
    found.append(
        Tile(number(evaluation.correlation, 2), "entropy correlation (ρ)", "ensemble and people")
    )
    return found


RULES = {
    "lowest-ce": "the lowest CE on the front",
    "f1-within-one-se": "the highest F1 within one standard error of the lowest CE",
    "knee": "the knee of the front",
    "closest": "the closest to the stated preference",
}


def chosen(search: Search, ensemble: EDOEnsemble | None) -> list[str]:
    """Which trial became the ensemble, by which rule, and how it was evaluation."""
    trial, about = search.chosen, search.about.get("chosen") or {}
    tried = f"Of {count(len(search.trials), 'trial')}, {len(search.front)}"
    sentence = f"{tried} {'is' if len(search.front) == 1 else 'are'} on the Pareto front"
    if trial is None:
        return [f"{sentence}."]
    rule = RULES.get(str(about.get("rule")))
    sentences = [f"{sentence}; trial {trial.number} was chosen{f', {rule}' if rule else ''}."]
    estimates = about.get("estimates") or {}
    honest, hopeful = (
        (estimates.get(kind) or {}).get("ce") for kind in ("cross-fitted", "optimistic")
    )
    if honest is not None and hopeful is not None:
        sentences.append(
            f"Its CE on the items it learned from is {number(hopeful)} (optimistic), on held-out"
            f" parts of them {number(honest)} (cross-fitted)."
        )
    held = about.get("weights")
    if ensemble is not None and isinstance(held, dict) and not _same(held, ensemble):
        sentences.append(
            "The ensemble of this page is not that trial’s: it was fitted with settings of its own."
        )
    return sentences


def _same(held: dict[str, Any], ensemble: EDOEnsemble) -> bool:
    """Whether these weights by member are the ensemble's."""
    ours = dict(zip(ensemble.members_, ensemble.weights_.tolist(), strict=True))
    if set(held) != set(ours):
        # Weights of groups can't be compared with those of members.
        return True
    return all(abs(float(held[name]) - weight) < 1e-6 for name, weight in ours.items())


NAMES = {"f1": "F1", "ce": "CE", "md": "MD", "bs": "BS"}
_VERDICTS = {
    "better": "a gain that chance does not explain",
    "noise": "no more than chance explains",
    "worse": "a loss that chance does not explain",
}


def standing(metric: str, gain: PairedTest) -> str:
    """``better``, ``worse``, or ``noise`` where the interval of the difference holds 0."""
    low, high = (-gain.high, -gain.low) if metric == "f1" else (gain.low, gain.high)
    return "better" if high < 0 else "worse" if low > 0 else "noise"


def standings(evaluation: Evaluation) -> dict[str, list[str]]:
    """The measures by standing."""
    found: dict[str, list[str]] = {"better": [], "worse": [], "noise": []}
    for metric, name in NAMES.items():
        if metric in evaluation.gains:
            found[standing(metric, evaluation.gains[metric])].append(name)
    return found


def headline(evaluation: Evaluation) -> str:
    """How the pool compares with the plain mean, by all measures, in one sentence."""
    found = standings(evaluation)
    items = count(len(evaluation.pooled.items), evaluation.what.removesuffix("s"))
    where = f"On {items}"
    if evaluation.held_out is False:
        items = count(len(evaluation.pooled.items), "item")
        where = f"On the {items} it was learned from, which flatters it,"
    better, worse, noise = (listed(found[kind]) for kind in ("better", "worse", "noise"))
    if not better and not worse:
        return f"{where} the pool is within the noise of the plain mean in {noise}."
    parts = [
        f"{kind} in {names}" for kind, names in (("better", better), ("worse", worse)) if names
    ]
    parts[0] = parts[0].replace(" in ", " than the plain mean in ", 1)
    if noise:
        parts.append(f"within the noise in {noise}")
    *first, last = parts
    return f"{where} the pool is {', '.join(first) + ', and ' if first else ''}{last}."


def gained(evaluation: Evaluation) -> list[str]:
    """What the pool gains over the plain mean, with intervals."""
    if "ce" not in evaluation.gains:
        return []
    rows = {row["name"]: row for row in evaluation.methods}
    edo, uniform, level = rows["edo"], rows["uniform"], percent(evaluation.level)
    gain = evaluation.gains["ce"]
    sentences = [
        f"On {count(gain.n, evaluation.what.removesuffix('s'))} the cross-entropy to people’s"
        f" answers is {number(edo['ce'])} ({level}: {interval(edo['intervals']['ce'])}); the plain"
        f" mean of all members has {number(uniform['ce'])}. The difference is"
        f" {signed(gain.difference)} ({level}: {signed(gain.low)} to {signed(gain.high)}):"
        f" {_VERDICTS[standing('ce', gain)]}."
    ]
    others = {
        "md": "the distance to people’s shares (MD)",
        "bs": "the Brier score (BS)",
        "f1": "the share of hard labels met (F1)",
    }
    values = [f"{what} is {number(edo[metric])}" for metric, what in others.items()]
    gaps = [
        f"{signed(one.difference)} ({signed(one.low)} to {signed(one.high)})"
        for one in (evaluation.gains[metric] for metric in others)
    ]
    said = f"{listed(values)}; against the plain mean that is {listed(gaps)}."
    sentences.append(said[0].upper() + said[1:])
    if evaluation.correlation is not None:
        ends = interval(edo["intervals"].get("entropy_correlation"), 2)
        sentences.append(
            f"Where people disagree more, the ensemble is {_follows(evaluation.correlation)}: the"
            f" rank correlation of the two entropies is {number(evaluation.correlation, 2)}"
            f"{f' ({level}: {ends})' if ends else ''}."
        )
    return sentences


def _follows(correlation: float) -> str:
    if correlation >= 0.3:
        return "less sure, too"
    if correlation >= 0.1:
        return "a little less sure"
    return "hardly less sure"


EVEN = 1.2
"""Weights whose largest is not this many times their smallest are called even."""


def learned(ensemble: EDOEnsemble, evaluation: Evaluation | None) -> list[str]:
    """Which members carry the weight, and why."""
    names, held, own = _named_weights(ensemble)
    order = np.argsort(-held, kind="stable")
    reach = int(np.searchsorted(np.cumsum(held[order]), 0.5)) + 1
    heavy = order[: min(reach, 3)]
    classes = [f"“{clean(name, 40)}”" for name in ensemble.classes_]
    shown = listed(classes) if len(classes) <= 6 else f"{len(classes)} classes"
    sentences = [
        f"Out of {count(len(names), unit(ensemble))}, {ensemble.size_}"
        f" {'has' if ensemble.size_ == 1 else 'have'} weight in a {ensemble.settings_['pool']}"
        f" pool that answers for {shown}; learned from {count(ensemble.n_items_, 'item')}"
        f"{_answers(ensemble)}."
    ]
    kept = held[held > 0]
    if len(kept) > 1 and kept.max() < EVEN * kept.min():
        ends = f"{number(float(kept.min()), 3)} to {number(float(kept.max()), 3)}"
        sentences.append(f"They share it almost evenly ({ends}).")
    elif len(names) > 1:
        parts = [f"“{clean(names[k], 40)}” ({number(float(held[k]), 3)})" for k in heavy]
        verb = "carries" if len(heavy) == 1 else "carry"
        sentences.append(
            f"{listed(parts)} {verb} {percent(float(held[heavy].sum()))} of the weight."
            f" {_why(names, own, [int(k) for k in heavy], evaluation)}".rstrip()
        )
    sentences += _zeros(ensemble, names)
    return sentences


def _why(
    names: list[str], own: list[float | None], heavy: list[int], evaluation: Evaluation | None
) -> str:
    """Why the heaviest are heavy: good alone, or unlike the others."""
    reasons = []
    apart = _distance_to_others(names, evaluation)
    for k in heavy:
        value = own[k]
        if value is None:
            continue
        rank = 1 + sum(other is not None and other < value for other in own)
        unlike = rank > 1 and apart is not None and apart[k] > float(np.median(apart))
        text = f"“{clean(names[k], 40)}” is {'the best' if rank == 1 else f'number {rank}'}"
        reasons.append(f"{text} (CE {number(value)}{', but unlike the others' if unlike else ''})")
    return f"Alone on the fit data, {listed(reasons)}." if reasons else ""


def _distance_to_others(names: list[str], evaluation: Evaluation | None) -> Floats | None:
    if evaluation is None or any(name not in evaluation.predictions.members for name in names):
        return None
    distances = evaluation.distances
    where = [evaluation.predictions.members.index(name) for name in names]
    apart: Floats = distances[np.ix_(where, where)].sum(axis=1) / max(len(names) - 1, 1)
    return apart


def _zeros(ensemble: EDOEnsemble, names: list[str]) -> list[str]:
    """Why members have no weight, counted by reason."""
    without = len(names) - ensemble.size_
    if without <= 0:
        return []
    verbs = {
        "excluded_by_loss": ("would raise the loss", "would raise the loss"),
        "beyond_max_members": ("lies beyond the largest size", "lie beyond the largest size"),
        "excluded_by_size": ("is left out by the chosen size", "are left out by the chosen size"),
    }
    found = Counter[str](reason.kind for reason in ensemble.explain())
    counted = {pair: found[kind] for kind, pair in verbs.items()}
    noun = count(without, unit(ensemble))
    start = f"{noun} {'has' if without == 1 else 'have'} no weight"
    if sum(counted.values()) != without:
        return [f"{start}."]
    parts = [(n, one if n == 1 else many) for (one, many), n in counted.items() if n]
    if len(parts) == 1:
        return [f"{start}: {'it' if without == 1 else 'they'} {parts[0][1]}."]
    return [f"{start}: {listed([f'{n} {verb}' for n, verb in parts])}."]


def units(ensemble: EDOEnsemble) -> int:
    """How many members, or groups, the weights are for."""
    held = ensemble.group_weights_
    return len(ensemble.members_ if held is None else held)


def unit(ensemble: EDOEnsemble) -> str:
    """What the weights are for."""
    return "member" if ensemble.group_weights_ is None else "group"


def _named_weights(
    ensemble: EDOEnsemble,
) -> tuple[list[str], Floats, list[float | None]]:
    """Names, weights and own cross-entropies of what the weights are for: members or groups."""
    if ensemble.group_weights_ is None or ensemble.groups_ is None:
        return (
            list(ensemble.members_),
            ensemble.weights_,
            [float(value) for value in ensemble.member_ce_],
        )
    names = list(dict.fromkeys(ensemble.groups_))
    return names, ensemble.group_weights_, [None] * len(names)


def _answers(ensemble: EDOEnsemble) -> str:
    data = ensemble.data_
    if not data:
        return ""
    return (
        f" with {count(int(data['annotations']), 'answer')} of"
        f" {count(int(data['annotators']), 'annotator')}"
    )


FEW_ITEMS = 200
FEW_ANNOTATORS = 3
RARE = 0.1
MISCALIBRATED = 0.05
ALIKE = 0.05


def cautions(found: ReportData) -> list[str]:
    """Sentences, the gravest first; the last one holds for every ensemble."""
    said: list[str] = []
    changed = [ROLES.get(role, role).lower() for role, s in found.inputs.items() if s == "changed"]
    if changed:
        said.append(
            f"The {listed(changed)} changed since the run; what is shown here comes from the files"
            " as they are now."
        )
    if found.evaluation is not None:
        said += _about_items(found.evaluation)
    if found.ensemble is not None:
        said += _about_ensemble(found.ensemble)
    said.append(
        "An ensemble repeats the views of the annotators it learned from, biases included. It"
        " shows where people disagree; it does not replace them."
    )
    return said


def _about_items(evaluation: Evaluation) -> list[str]:
    said = []
    if evaluation.held_out is False:
        said.append(
            "The weights were learned from the very items shown here, so every figure is"
            " optimistic; judge on items that were held out (`edo compare`, or --predictions and"
            " --annotations of a test split)."
        )
    if evaluation.held_out is None and evaluation.people is not None:
        said.append(
            "Whether the ensemble learned from the items shown here is not recorded; if it did,"
            " every figure is optimistic."
        )
    if evaluation.people is None or evaluation.hard is None:
        return said
    items = len(evaluation.hard)
    if items < FEW_ITEMS:
        said.append(f"With {count(items, 'item')} the intervals are wide.")
    found = standings(evaluation)
    if not found["better"] and not found["worse"] and len(evaluation.predictions.members) > 1:
        said.append(
            "On these items learned weights can’t be told from the plain mean, which is simpler."
        )
    if float(evaluation.distances.max()) < ALIKE and len(evaluation.predictions.members) > 1:
        said.append(
            f"The members answer nearly alike (at most"
            f" {number(float(evaluation.distances.max()), 3)} apart), so weights matter little."
        )
    ece = evaluation.metrics.get("ece")
    if ece is not None and ece > MISCALIBRATED:
        said.append(
            f"Probabilities are {number(ece, 3)} off people’s shares on average (ECE);"
            " `edo fit --recalibrate temperature` may help."
        )
    said += _about_people(evaluation)
    named = {group.key: int(group.mask.sum()) for group in filters(evaluation)}
    if named["sure"]:
        said.append(
            f"In {count(named['sure'], 'item')} ({percent(named['sure'] / items, 1)}) people"
            " disagree and the ensemble is sure."
        )
    if named["minority"]:
        said.append(
            f"In {count(named['minority'], 'item')} ({percent(named['minority'] / items, 1)}) a"
            " minority of at least a fifth gets less than half of its share."
        )
    return said


def _about_people(evaluation: Evaluation) -> list[str]:
    assert evaluation.people is not None
    assert evaluation.hard is not None
    said = []
    per_item = float(np.median(evaluation.people.annotations_per_item))
    if per_item < FEW_ANNOTATORS and evaluation.people.label_codes is not None:
        said.append(
            f"Half of the items have at most {count(int(per_item), 'annotation')}: shares of so"
            " few people are coarse."
        )
    held = np.bincount(evaluation.hard, minlength=len(evaluation.pooled.classes)) / len(
        evaluation.hard
    )
    present = np.flatnonzero(held > 0)
    if len(present) == 1:
        said.append(
            f"Every item has the same hard label,"
            f" “{clean(evaluation.pooled.classes[present[0]], 40)}”: F1 says nothing here."
        )
    elif held[present].min() < RARE:
        rare = present[int(held[present].argmin())]
        said.append(
            f"The class “{clean(evaluation.pooled.classes[rare], 40)}” is the hard label of"
            f" {percent(float(held[rare]), 1)} of the items only; errors on it hardly show in the"
            " averages."
        )
    return said


def _about_ensemble(ensemble: EDOEnsemble) -> list[str]:
    said = []
    if len(ensemble.members_) == 1:
        said.append("There is a single member, so there was nothing to weigh.")
    certificate = ensemble.certificate_
    if certificate is not None and not certificate.global_optimum:
        said.append(f"The weights may not be the best there are: {certificate.reason}.")
    return said
