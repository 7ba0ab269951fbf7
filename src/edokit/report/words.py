"""The summary in words: what was learned, what it gains, what to be careful about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from edokit.ensemble import EDOEnsemble
from edokit.report.cautions import cautions
from edokit.report.data import Collected
from edokit.report.evaluation import Judged
from edokit.report.formatting import count, number
from edokit.report.gained import gained, headline
from edokit.report.learned import learned, unit, units
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
    """The run in one sentence, or two."""
    if ensemble is None:
        return "This run has no ensemble that could be read; what there is, is shown below."
    kept = f"{ensemble.size_} of {count(units(ensemble), unit(ensemble))}"
    start = f"{kept} {'carries' if ensemble.size_ == 1 else 'carry'} weight"
    if judged is None or not judged.gains:
        return f"{start}, learned from {count(ensemble.n_items_, 'item')}."
    return f"{start}. {headline(judged)}"


def tiles(ensemble: EDOEnsemble, judged: Judged | None) -> list[Tile]:
    """The headline's figures."""
    found = [
        Tile(
            f"{ensemble.size_} of {units(ensemble)}",
            f"{unit(ensemble)}s kept",
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
