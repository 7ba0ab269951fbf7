"""The summary in words: what was learned, what it gains, what to be careful about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit.ensemble import EDOEnsemble
from edokit.report.cautions import cautions
from edokit.report.collected import Collected
from edokit.report.judged import Judged
from edokit.report.numbers import count, interval, listed, number, percent, signed
from edokit.report.safe import clean
from edokit.report.trials import Search

Floats = npt.NDArray[np.float64]
LEVEL = "95\u00a0%"
"""Of the intervals, with a space that does not break."""

EVEN = 1.2
"""Weights whose largest is not this many times their smallest are called even."""


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


def summarize(found: Collected) -> Summary:
    """The summary of whatever is known."""
    ensemble, judged = found.ensemble, found.judged
    summary = Summary(lead(ensemble, judged))
    if ensemble is not None:
        summary.tiles = tiles(ensemble, judged)
        summary.learned = learned(ensemble, judged)
    if found.search is not None and found.search.trials:
        summary.learned.append(" ".join(chosen(found.search, ensemble)))
    if judged is not None:
        summary.gained = gained(judged)
    summary.careful = cautions(found)
    return summary


def lead(ensemble: EDOEnsemble | None, judged: Judged | None) -> str:
    """The run in one sentence."""
    if ensemble is None:
        return "This run has no ensemble that could be read; what there is, is shown below."
    kept = f"{ensemble.size_} of {count(_units(ensemble), _unit(ensemble))}"
    carry = "carries" if ensemble.size_ == 1 else "carry"
    start = f"{kept} {carry} weight"
    gain = judged.gains.get("ce") if judged is not None else None
    if judged is None or gain is None:
        return f"{start}, learned from {count(ensemble.n_items_, 'item')}."
    if judged.held_out is False:
        return (
            f"{start}. On the {count(gain.n, 'item')} they were learned from, the pool's"
            f" cross-entropy to people’s answers differs from the plain mean’s by"
            f" {signed(gain.difference)}."
        )
    where = f"On {count(gain.n, judged.what.removesuffix('s'))}"
    if gain.high < 0:
        return f"{start}. {where} the pool is closer to people’s answers than the plain mean."
    if gain.low > 0:
        return f"{start}. {where} the plain mean is closer to people’s answers than the pool."
    return f"{start}. {where} the pool is as close to people’s answers as the plain mean."


def tiles(ensemble: EDOEnsemble, judged: Judged | None) -> list[Tile]:
    """The headline's figures."""
    found = [
        Tile(
            f"{ensemble.size_} of {_units(ensemble)}",
            f"{_unit(ensemble)}s kept",
            f"{ensemble.settings_['pool']} pool, {ensemble.settings_['solver']} solver",
        )
    ]
    if judged is None or judged.people is None:
        return found
    rows = {row["name"]: row for row in judged.methods}
    for name, title in (("ce", "cross-entropy (CE)"), ("md", "distance (MD)"), ("f1", "F1")):
        found.append(
            Tile(
                number(rows["edo"][name]),
                title,
                f"plain mean {number(rows['uniform'][name])}",
            )
        )
    found.append(
        Tile(number(judged.correlation, 2), "entropy correlation (ρ)", "ensemble and people")
    )
    return found


def learned(ensemble: EDOEnsemble, judged: Judged | None) -> list[str]:
    """Which members carry the weight, and why."""
    names, held, own = _named_weights(ensemble)
    order = np.argsort(-held, kind="stable")
    reach = int(np.searchsorted(np.cumsum(held[order]), 0.5)) + 1
    heavy = order[: min(reach, 3)]
    classes = [f"“{clean(name, 40)}”" for name in ensemble.classes_]
    shown = listed(classes) if len(classes) <= 6 else f"{len(classes)} classes"
    sentences = [
        f"Out of {count(len(names), _unit(ensemble))}, {ensemble.size_}"
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
            f" {_why(names, own, [int(k) for k in heavy], judged)}".rstrip()
        )
    sentences += _zeros(ensemble, names)
    return sentences


def _why(names: list[str], own: list[float | None], heavy: list[int], judged: Judged | None) -> str:
    """Why the heaviest are heavy: good alone, or unlike the others."""
    reasons = []
    apart = _distance_to_others(names, judged)
    for k in heavy:
        value = own[k]
        if value is None:
            continue
        rank = 1 + sum(other is not None and other < value for other in own)
        unlike = rank > 1 and apart is not None and apart[k] > float(np.median(apart))
        text = f"“{clean(names[k], 40)}” is {'the best' if rank == 1 else f'number {rank}'}"
        reasons.append(f"{text} (CE {number(value)}{', but unlike the others' if unlike else ''})")
    return f"Alone on the fit data, {listed(reasons)}." if reasons else ""


def _distance_to_others(names: list[str], judged: Judged | None) -> Floats | None:
    if judged is None or any(name not in judged.predictions.members for name in names):
        return None
    distances = judged.distances
    where = [judged.predictions.members.index(name) for name in names]
    apart: Floats = distances[np.ix_(where, where)].sum(axis=1) / max(len(names) - 1, 1)
    return apart


def _zeros(ensemble: EDOEnsemble, names: list[str]) -> list[str]:
    """Why members have no weight, counted by reason."""
    without = len(names) - ensemble.size_
    if without <= 0:
        return []
    reasons = [line for line in ensemble.explain() if ": weight 0.000" in line]
    kinds = {
        ("would raise the loss", "would raise the loss"): "the loss would grow",
        ("lies beyond the largest size", "lie beyond the largest size"): "beyond max_members",
        ("is left out by the chosen size", "are left out by the chosen size"): "leaves it out",
    }
    counted = {verbs: sum(mark in line for line in reasons) for verbs, mark in kinds.items()}
    noun = count(without, _unit(ensemble))
    start = f"{noun} {'has' if without == 1 else 'have'} no weight"
    if sum(counted.values()) != without:
        return [f"{start}."]
    parts = [(n, one if n == 1 else many) for (one, many), n in counted.items() if n]
    if len(parts) == 1:
        return [f"{start}: {'it' if without == 1 else 'they'} {parts[0][1]}."]
    return [f"{start}: {listed([f'{n} {verb}' for n, verb in parts])}."]


RULES = {
    "lowest-ce": "the lowest CE on the front",
    "f1-within-one-se": "the highest F1 within one standard error of the lowest CE",
    "knee": "the knee of the front",
    "closest": "the closest to the stated preference",
}


def chosen(search: Search, ensemble: EDOEnsemble | None) -> list[str]:
    """Which trial became the ensemble, by which rule, and how it was judged."""
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


def gained(judged: Judged) -> list[str]:
    """What the pool gains over the plain mean, with intervals."""
    gain = judged.gains.get("ce")
    if gain is None:
        return []
    rows = {row["name"]: row for row in judged.methods}
    edo, uniform = rows["edo"], rows["uniform"]
    sentences = [
        f"On {count(gain.n, judged.what.removesuffix('s'))} the cross-entropy to people’s answers"
        f" is {number(edo['ce'])} ({LEVEL}: {interval(edo['intervals']['ce'])}); the plain mean of"
        f" all members has {number(uniform['ce'])}. The difference is {signed(gain.difference)}"
        f" ({LEVEL}: {signed(gain.low)} to {signed(gain.high)}): {_verdict(gain.low, gain.high)}."
    ]
    md = judged.gains["md"]
    sentences.append(
        f"The distance to people’s shares (MD) is {number(edo['md'])}, {signed(md.difference)}"
        f" against the plain mean ({LEVEL}: {signed(md.low)} to {signed(md.high)})."
    )
    if judged.correlation is not None:
        ends = interval(edo["intervals"].get("entropy_correlation"), 2)
        sentences.append(
            f"Where people disagree more, the ensemble is {_follows(judged.correlation)}: the rank"
            f" correlation of the two entropies is {number(judged.correlation, 2)}"
            f"{f' ({LEVEL}: {ends})' if ends else ''}."
        )
    return sentences


def _verdict(low: float, high: float) -> str:
    if high < 0:
        return "a gain that chance does not explain"
    if low > 0:
        return "a loss that chance does not explain"
    return "no more than chance explains"


def _follows(correlation: float) -> str:
    if correlation >= 0.3:
        return "less sure, too"
    if correlation >= 0.1:
        return "a little less sure"
    return "hardly less sure"


def _units(ensemble: EDOEnsemble) -> int:
    held = ensemble.group_weights_
    return len(ensemble.members_ if held is None else held)


def _unit(ensemble: EDOEnsemble) -> str:
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
