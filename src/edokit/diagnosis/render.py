"""A diagnosis in words: advice, limits, and the lines of ``edo diagnose``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edokit._errors import counted
from edokit.diagnosis.advice import ENOUGH, ENOUGH_RARE, Advice, Limit

_BAR = 20
"""Characters of a full bar: a line fits into 80."""
_VERY_UNEVEN = 10.0
_TESTS = {
    "annotator": "annotators differ in how often they choose each class",
    "group_item": "some annotators agree with each other more than chance explains",
    "views": "also beyond what strictness alone explains",
}


def advice_text(advice: Advice) -> str:
    """One piece of advice as sentences."""
    return _ADVICE[advice.topic](advice.choice, advice.facts)


def limit_text(limit: Limit) -> str:
    """One limit as a sentence."""
    facts = limit.facts
    if limit.kind == "repeated":
        labels = counted(facts["labels"], "further label")
        return (
            f"{labels} of an annotator for the same item: only the first one counts for structure."
        )
    if limit.kind == "one_label":
        return (
            "With one label per annotator and item, the view of a single annotator can't be told"
            " from noise; asking the same annotators again about some items would tell them apart."
        )
    if limit.kind == "few_annotators":
        return (
            f"With {facts['annotators']} annotators there are no two groups of two: the variance of"
            " groups by items can't be estimated."
        )
    if limit.kind == "hidden":
        more = facts["group_item"]
        return (
            f"There are {facts['annotators']} annotators: if the rest is views of their own, up to"
            f" {facts['item']:.1%} of the variance more belongs to items"
            + ("." if more is None else f" and up to {more:.1%} more to groups by items.")
        )
    if limit.kind == "single_groups":
        names = ", ".join(map(repr, facts["names"][:3])) + (
            ", …" if len(facts["names"]) > 3 else ""
        )
        return (
            f"{len(facts['names'])} declared groups have one annotator each ({names}): their view"
            " can't be told from noise."
        )
    if limit.kind == "unassigned":
        return (
            f"{facts['unassigned']} of {facts['annotators']} annotators are in no group: they"
            " labelled too few contested items, or none is declared for them."
        )
    return (
        f"{facts['items']} items have two labels: they count for the variance, but don't show who"
        " agrees with whom."
    )


def _structure(kind: str | None, facts: Mapping[str, Any]) -> str:
    if "only" in facts:
        return (
            f"There is no disagreement to learn from: all labels are {facts['only']!r}. Check that"
            " this is the right column and the right split."
        )
    if kind is None:
        return f"Structured or noise? It was not tested: {facts['untested']}."
    significant = facts["significant"]
    if kind == "noise":
        text = "The disagreement is compatible with noise"
        if significant:
            text = "Taken together, the tests don't distinguish the disagreement from noise"
    elif kind == "strictness":
        text = "The disagreement is structured: annotators differ in strictness"
    elif "views" in significant:
        text = "The disagreement is structured: annotators have different views"
    else:
        text = "The disagreement is structured: annotators form groups"
    parts = [
        f"{words}: {'yes' if key in significant else 'not shown'} (p = {facts['p'][key]:.2g})"
        for key, words in _TESTS.items()
        if facts["p"][key] is not None
    ]
    text += f". Tests: {'; '.join(parts)}." if parts else "."
    if kind != "noise":
        text += (
            f" At least {facts['lasting']:.0%} of the disagreement is systematic; the rest is noise"
            " or views of single annotators."
        )
    if facts["stability"] is not None:
        text += (
            " Who belongs to which group is uncertain: two halves of the items agree on it by"
            f" {facts['stability']:.2f} (1 is fully, 0 is chance)."
        )
    return text


def _finding(facts: Mapping[str, Any]) -> str:
    if facts["p"] is None:
        return "these data don't show whether the disagreement is structured"
    if facts["structured"]:
        return (
            f"the disagreement is structured (p = {facts['p']:.2g}), at least"
            f" {facts['lasting']:.0%} of it systematic"
        )
    return f"no structure beyond chance was found (p = {facts['p']:.2g})"


def _supervision(choice: str | None, facts: Mapping[str, Any]) -> str:
    finding = _finding(facts)
    known = f"{facts['trainers']} of {facts['annotators']} annotators have {ENOUGH} labels or more"
    if facts["by_class"]:
        known += f", at least {ENOUGH_RARE} of them outside their most frequent class"
    if choice == "per-annotator":
        return (
            f"Try per-annotator members first: {finding}, and {known} ({facts['share']:.0%} of all"
            f" labels, on {facts['complete']:.0%} of the items): each can train a member of their"
            " own. Compare with random-select."
        )
    why = finding
    if facts["structured"] and not facts["enough"]:
        why = f"{finding}, but only {known} ({facts['share']:.0%} of all labels)"
    elif facts["structured"]:
        why = (
            f"{finding}, and {known}, but each of them labelled only {facts['complete']:.0%} of the"
            " items, so members would be trained on different ones"
        )
    return (
        f"Use random-select: {why}. One label drawn per item teaches every member the distribution"
        " of all annotators, however few labels each of them gave."
    )


def _diversity(choice: str | None, facts: Mapping[str, Any]) -> str:
    if facts["structured"]:
        return (
            f"Try preserve first: {_finding(facts)}, so members that differ may represent"
            " annotators who do. Expect small differences: look at their intervals before keeping"
            " the term."
        )
    return (
        f"Leave the diversity term out (lambda_div 0) or try preserve first: {_finding(facts)}, so"
        " there is little to preserve, but suppress tends to keep a single member and gains"
        " nothing."
    )


def _labels(choice: str | None, facts: Mapping[str, Any]) -> str:
    if choice == "enough":
        return (
            f"There are enough labels per annotator: {facts['least']} or more from each of"
            f" {facts['annotators']}."
        )
    return (
        f"{facts['few']} of {facts['annotators']} annotators gave fewer than {ENOUGH} labels"
        f" (median {facts['median']:g}); {facts['trainers']} gave enough for a member of their own"
        f" ({ENOUGH} or more, {ENOUGH_RARE} of them outside their most frequent class)."
    )


def _balance_advice(choice: str | None, facts: Mapping[str, Any]) -> str:
    if choice == "empty":
        return (
            f"No item has the hard label {', '.join(map(repr, facts['classes']))}: class weights"
            " are not possible, and F1 doesn't cover it."
        )
    very = "very " if facts["ratio"] >= _VERY_UNEVEN else ""
    return (
        f"Classes are {very}uneven, {facts['ratio']:.1f} : 1; {facts['rare']!r} is the hard label"
        f" of {facts['items']} items. Split by class, look at macro-F1 beside micro-F1, and leave"
        " class weights off where test is as uneven: they cost cross-entropy there."
    )


def _coverage_advice(choice: str | None, facts: Mapping[str, Any]) -> str:
    if choice == "single":
        return (
            f"{facts['single']} of {facts['items']} items have one label: their soft label is 0 or"
            " 1 whatever annotators think. More labels per item show disagreement."
        )
    return (
        f"Only {facts['three']:.0%} of the items have three labels or more; the others don't show"
        " who agrees with whom."
    )


_ADVICE = {
    "structure": _structure,
    "supervision": _supervision,
    "diversity": _diversity,
    "labels": _labels,
    "balance": _balance_advice,
    "coverage": _coverage_advice,
}


def lines(content: dict[str, Any]) -> list[str]:
    """Coverage, agreement, annotators, groups, variance, test, advice and limits, line by line."""
    return [
        *_coverage(content),
        *_agreement(content),
        *_annotators(content),
        *_groups(content["groups"]),
        *_variance(content),
        *_test(content["test"]),
        "Advice",
        *(f"  - {advice['text']}" for advice in content["advice"]),
        *(["What can't be known"] if content["limits"] else []),
        *(f"  - {limit}" for limit in content["limits"]),
    ]


def _coverage(content: dict[str, Any]) -> list[str]:
    cover, balance = content["coverage"], content["balance"]
    per_item, per_annotator, pairs = cover["per_item"], cover["per_annotator"], cover["pairs"]
    shares = ", ".join(f"{name} {share:.0%}" for name, share in balance["shares"].items())
    hard = ", ".join(f"{name} {count}" for name, count in balance["hard"].items())
    result = [
        "Coverage",
        f"  {content['items']} items, {content['annotators']} annotators,"
        f" {content['annotations']} labels; {cover['filled']:.1%} of all cells are filled",
        f"  labels per item {_range(per_item)}, per annotator {_range(per_annotator)}",
        f"  {pairs['meeting']} of {pairs['possible']} pairs of annotators share an item"
        + (f" (median {pairs['median_shared']:g} items)" if pairs["meeting"] else ""),
    ]
    for count, words in (
        (cover["single"], "items with a single label"),
        (len(cover["silent"]), "annotators without a label"),
        (cover["repeated"], "repeated labels of an annotator for an item"),
    ):
        if count:
            result.append(f"  {count} {words}")
    ratio = "" if balance["ratio"] is None else f" ({balance['ratio']:.1f} : 1)"
    result += ["Classes", f"  labels: {shares}", f"  hard labels: {hard}{ratio}"]
    if balance["ties"]:
        result.append(f"  {counted(balance['ties'], 'item')} tied")
    return result


def _agreement(content: dict[str, Any]) -> list[str]:
    agree, entropy = content["agreement"], content["entropy"]
    if agree["pairwise"] is None:
        return ["Agreement", f"  unknown: {agree['reason']}", *_entropy(entropy)]
    alpha = "–" if agree["alpha"] is None else f"{agree['alpha']:.3f}"
    result = [
        "Agreement",
        f"  Krippendorff's alpha {alpha}"
        + (f" ({agree['reason']})" if agree["reason"] else "")
        + f"; {agree['pairwise']:.1%} of pairs agree, {agree['by_chance']:.1%} by chance",
    ]
    return [*result, *_entropy(entropy)]


def _entropy(entropy: dict[str, Any]) -> list[str]:
    return [
        f"  mean entropy of an item {entropy['mean']:.3f} of {entropy['largest']:.3f} nats;"
        f" {entropy['unanimous']:.0%} unanimous"
    ]


def _annotators(content: dict[str, Any]) -> list[str]:
    known = [p for p in content["people"] if p["agreement"] is not None]
    if not known:
        return []
    last = content["classes"][-1]
    if len(known) <= 12:
        return ["Annotators", *(f"  {_annotator(p, last)}" for p in known)]
    apart = sorted(known, key=lambda p: (p["agreement"] - p["expected"]) * p["annotations"] ** 0.5)
    return [
        "Annotators who agree least with the others",
        *(f"  {_annotator(p, last)}" for p in apart[:5]),
        f"  … {len(known) - 5} others (--json has all)",
    ]


def _annotator(row: dict[str, Any], last: str) -> str:
    group = f", group {row['group']}" if row["group"] else ""
    return (
        f"{row['annotator']}: {row['annotations']} labels, {row['shares'][last]:.0%} {last!r},"
        f" agrees {row['agreement']:.0%} with the others (two others {row['expected']:.0%}){group}"
    )


def _groups(groups: dict[str, Any]) -> list[str]:
    if groups["kind"] == "none":
        return ["Groups", f"  none: {groups['reason']}"]
    how = (
        f"declared by {groups['attribute']!r}"
        if groups["attribute"]
        else "declared"
        if groups["kind"] == "declared"
        else f"found; two halves of the items agree on them by {groups['stability']:.2f}"
    )
    result = [f"Groups ({how})"]
    for group in groups["groups"]:
        within = "–" if group["within"] is None else f"{group['within']:+.1%}"
        between = "–" if group["between"] is None else f"{group['between']:+.1%}"
        result.append(
            f"  {group['name']}: {counted(group['annotators'], 'annotator')},"
            f" {group['annotations']} labels; agreement beyond the item {within} within,"
            f" {between} with others;"
            f" {group['character']}"
        )
    return result


def _variance(content: dict[str, Any]) -> list[str]:
    variance = content["variance"]
    title = "Variance of the labels (95 % intervals over items)"
    if variance is None or "total" not in variance:
        return [title, f"  unknown: {(variance or {}).get('reason', 'nothing varies')}"]
    result = [title]
    for key, words in (
        ("item", "items"),
        ("annotator", "annotators"),
        ("group_item", "groups by items"),
        ("rest", "rest: noise, single views"),
    ):
        part = variance[key]
        if part is None:
            result.append(f"  {words:<32} unknown: {variance['reason']}")
            continue
        bar = "█" * round(_BAR * part["share"])
        ends = f"[{part['low']:.1%}, {part['high']:.1%}]"
        result.append(f"  {words:<32}{part['share']:>6.1%}  {ends:<15} {bar}".rstrip())
    return result


def _test(test: dict[str, Any] | None) -> list[str]:
    if test is None or test["p"] is None:
        return []
    rows = [
        ("any structure", test["p"]),
        ("annotators", test["annotator"]["p"]),
        ("groups by items", test["group_item"]["p"]),
        ("groups beyond strictness", test["views"]["p"]),
    ]
    shown = ", ".join(f"{name} p = {p:.2g}" for name, p in rows if p is not None)
    return [f"Structure or noise ({test['permutations']} permutations)", f"  {shown}"]


def _range(figures: dict[str, Any]) -> str:
    low, high = figures["min"], figures["max"]
    return f"{low}" if low == high else f"{low}–{high} (median {figures['median']:g})"
