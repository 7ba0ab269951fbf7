"""Findings about the benchmark: against baselines, over seeds, and beyond the paper."""

from __future__ import annotations

from collections.abc import Sequence

from edokit._io import read_json
from edokit.reproduce import paper
from edokit.reproduce.bars import Chosen, best_printed, choice
from edokit.reproduce.benchmark import PAPERS
from edokit.reproduce.checks_data import duplicates
from edokit.reproduce.effects import HEADS, METRICS, Outcome, effect
from edokit.reproduce.finding import FAILS, HOLDS, PARTLY, Finding, not_tested, shown
from edokit.reproduce.fixed import PAPERS_POOL
from edokit.reproduce.methods import method_outcome
from edokit.reproduce.searches import searched_outcome
from edokit.reproduce.section import signed
from edokit.reproduce.study import DATASETS, Missing, Study
from edokit.reproduce.trade import on_front, sharpened


def lowest(study: Study) -> Finding:
    """Has EDO-Random the lowest CE?"""
    says = "EDO-Random has the lowest CE of all methods on every dataset."
    parts, verdicts = [], []
    for dataset in DATASETS:
        edo = searched_outcome(study, dataset, PAPERS_POOL)
        if isinstance(edo, Missing):
            continue
        others = {
            line.label: found
            for line in PAPERS
            if line.label not in ("EDO-Random", "EDO-PerAnn")
            and isinstance(found := line.outcome(study, dataset), Outcome)
        }
        best = min(others, key=lambda name: others[name].mean("ce"))
        rival = others[best]
        seeds = min(len(edo.items), len(rival.items))
        one = effect(_first(edo, seeds), _first(rival, seeds), "ce")
        parts.append(f"{dataset} {edo.mean('ce'):.4f}, best baseline {best} {shown(one)}")
        verdicts.append(one.claimed and one.value < 0)
    if not parts:
        return not_tested(says)
    verdict = HOLDS if all(verdicts) else PARTLY if any(verdicts) else FAILS
    return Finding(
        says,
        f"EDO-Random less the best of the paper's baselines on our members: {'; '.join(parts)}.",
        verdict,
    )


def _first(found: Outcome, seeds: int) -> Outcome:
    return Outcome(found.fit[:seeds], found.items[:seeds], found.sizes[:seeds])


def reductions(study: Study) -> Finding:
    """By how much does it lower the CE?"""
    says = "EDO lowers CE by 40 to 78 % against its baselines (62 % against WEL on ConvAbuse)."
    parts, cuts = [], []
    for dataset in DATASETS:
        edo = searched_outcome(study, dataset, PAPERS_POOL)
        wel = method_outcome(study, dataset, PAPERS_POOL, "wel")
        if isinstance(edo, Missing) or isinstance(wel, Missing):
            continue
        one, level = effect(edo, wel, "ce"), wel.mean("ce")
        cuts.append(-100 * one.value / level)
        ends = f"{signed(100 * one.low / level, 1)} … {signed(100 * one.high / level, 1)} %"
        parts.append(f"{dataset} {signed(100 * one.value / level, 1)} % [{ends}]")
    if not parts:
        return not_tested(says)
    return Finding(
        says,
        f"EDO-Random against WEL on the same members, both with a real CE: {'; '.join(parts)}.",
        HOLDS if min(cuts) >= 40 else FAILS,
    )


def per_annotator(study: Study) -> Finding:
    """Has EDO-PerAnn the lowest MD where annotators are few?"""
    says = "EDO-PerAnn has the lowest MD on ConvAbuse and HS-Brexit."
    parts, verdicts = [], []
    for dataset in ("ConvAbuse", "HS-Brexit"):
        own = searched_outcome(study, dataset, "per-annotator")
        if isinstance(own, Missing):
            continue
        others = {
            line.label: found
            for line in PAPERS
            if line.label != "EDO-PerAnn"
            and isinstance(found := line.outcome(study, dataset), Outcome)
        }
        best = min(others, key=lambda name: others[name].mean("md"))
        seeds = min(len(own.items), len(others[best].items))
        one = effect(_first(own, seeds), _first(others[best], seeds), "md")
        parts.append(f"{dataset} MD {own.mean('md'):.4f}, best other {best} {shown(one)}")
        verdicts.append(one.claimed and one.value < 0)
    if not parts:
        return not_tested(says, "per-annotator")
    verdict = HOLDS if all(verdicts) else PARTLY if any(verdicts) else FAILS
    return Finding(says, f"EDO-PerAnn less the best of the others: {'; '.join(parts)}.", verdict)


def stable(study: Study) -> Finding:
    """Are results stable over seeds?"""
    says = "EDO-Random is stable over seeds (CE deviations 0.0005 to 0.0045)."
    parts, verdicts = [], []
    for dataset in DATASETS:
        own = searched_outcome(study, dataset, PAPERS_POOL)
        told = paper.row("deviations", method="EDO-Random", dataset=dataset)
        if not isinstance(own, Missing) and told is not None:
            parts.append(f"{dataset} {own.spread('ce'):.4f} (paper {told['ce']:.4f})")
            verdicts.append(own.spread("ce") < 0.02)
    if not parts:
        return not_tested(says)
    return Finding(
        says,
        f"Standard deviation of test CE over seeds, other members in each: {', '.join(parts)}.",
        HOLDS if all(verdicts) else PARTLY,
    )


def beyond(study: Study) -> list[str]:
    """What else the numbers say: the paper's best figures, the trade, the near-duplicates."""
    words = [
        "These rows hold results against results, not methods against methods: our members are not"
        " the paper's, and the CE of its baselines is un-squashed."
    ]
    for dataset in DATASETS:
        row = choice(study, dataset)
        if isinstance(row, Missing):
            words.append(f"{dataset}: no row of ours, {row.reason}.")
            continue
        best = best_printed(dataset)
        won = [m for m in METRICS if (row.outcome.mean(m) > best[m]) == (m == "f1")]
        lost = [m for m in METRICS if m not in won]
        words.append(
            f"{dataset}: dev chose {row.name} (CE {row.held_out.ce:.4f} on {row.held_out.items}"
            " held-out items); on test it is better than the best of the paper's table in"
            f" {_listed(row.outcome, best, won) or 'no column'}"
            + (f", and not in {_listed(row.outcome, best, lost)}." if lost else ".")
            + _by_dev(row)
        )
    words += _without_encoder(study)
    abuse = choice(study, "ConvAbuse")
    if not isinstance(abuse, Missing):
        points = sharpened(study, "ConvAbuse", abuse)
        plain, sharp = points[1.0], points[1.5]
        front = on_front(points)
        both = " Both are on the front of dev;" if front[1.0] and front[1.5] else ""
        words.append(
            "On ConvAbuse sharper answers trade CE for MD: odds to the power 1.5 give MD"
            f" {sharp.mean('md'):.4f} at CE {sharp.mean('ce'):.4f}, against {plain.mean('md'):.4f}"
            f" at {plain.mean('ce'):.4f}.{both or ' So'} which one is better depends on what the"
            " answers are for."
        )
    for dataset in DATASETS:
        found, own = duplicates(study, dataset), choice(study, dataset)
        if found is None or isinstance(own, Missing) or not found[1].any():
            continue
        rest = own.outcome.among(~found[1]).mean("ce")
        words.append(
            f"Without the {int(found[1].sum())} test texts of {dataset} that nearly repeat a train"
            f" text, that row's CE is {rest:.4f} instead of {own.outcome.mean('ce'):.4f}"
            f" ({own.outcome.among(~found[0]).mean('ce'):.4f} without the {int(found[0].sum())}"
            " that are there word for word)."
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
        recipes = list(dict.fromkeys(one["recipe"] for one in read_json(manifest)["groups"]))
        if "transformer" not in recipes:
            words.append(
                f"{dataset}: its {PAPERS_POOL} members are of the recipes {' and '.join(recipes)};"
                " what is missing against the paper is a fine-tuned encoder of its language"
                " (--train --backbone NAME)."
            )
    return words


def _listed(found: Outcome, best: dict[str, float], metrics: Sequence[str]) -> str:
    parts = []
    for m in metrics:
        near = abs(found.mean(m) - best[m]) <= found.spread(m)
        noise = ", less apart than seeds are" if near else ""
        parts.append(f"{HEADS[m]} ({found.mean(m):.4f} to {best[m]:.4f}{noise})")
    return ", ".join(parts)
