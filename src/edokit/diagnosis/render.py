"""A diagnosis as the lines of ``edo diagnose``."""

from __future__ import annotations

from typing import Any

from edokit._errors import counted

_BAR = 20
"""Characters of a full bar: a line fits into 80."""
_FEWEST = 10
"""Labels from which on the agreement of an annotator with the others says something."""


def lines(content: dict[str, Any]) -> list[str]:
    """Coverage, agreement, annotators, groups, variance, test, advice and limits, line by line."""
    return [
        *_coverage(content),
        *_agreement(content["agreement"], content["entropy"]),
        *_annotators(content),
        *_groups(content["groups"]),
        *_variance(content["variance"] or {}),
        *_test(content["test"]),
        "Advice",
        *(f"  - {advice['text']}" for advice in content["advice"]),
        *(["What can't be known"] if content["limits"] else []),
        *(f"  - {limit}" for limit in content["limits"]),
    ]


def _coverage(content: dict[str, Any]) -> list[str]:
    cover, balance = content["coverage"], content["balance"]
    pairs = cover["pairs"]
    shares = ", ".join(f"{name} {share:.0%}" for name, share in balance["shares"].items())
    hard = ", ".join(f"{name} {count}" for name, count in balance["hard"].items())
    ratio = "" if balance["ratio"] is None else f" ({balance['ratio']:.1f} : 1)"
    counts = [
        (cover["single"], "item", "with a single label"),
        (len(cover["silent"]), "annotator", "without a label"),
        (cover["repeated"], "repeated label", "of an annotator for an item"),
    ]
    return [
        "Coverage",
        f"  {content['items']} items, {content['annotators']} annotators,"
        f" {content['annotations']} labels; {cover['filled']:.1%} of all cells are filled",
        f"  labels per item {_range(cover['per_item'])},"
        f" per annotator {_range(cover['per_annotator'])}",
        f"  {pairs['meeting']} of {pairs['possible']} pairs of annotators share an item"
        + (f" (median {pairs['median_shared']:g} items)" if pairs["meeting"] else ""),
        *(f"  {counted(count, noun)} {words}" for count, noun, words in counts if count),
        "Classes",
        f"  labels: {shares}",
        f"  hard labels: {hard}{ratio}",
        *([f"  {counted(balance['ties'], 'item')} tied"] if balance["ties"] else []),
    ]


def _agreement(agree: dict[str, Any], entropy: dict[str, Any]) -> list[str]:
    known = f"unknown: {agree['reason']}"
    if agree["pairwise"] is not None:
        alpha = "–" if agree["alpha"] is None else f"{agree['alpha']:.3f}"
        known = (
            f"Krippendorff's alpha {alpha}"
            + (f" ({agree['reason']})" if agree["reason"] else "")
            + f"; {agree['pairwise']:.1%} of pairs agree, {agree['by_chance']:.1%} by chance"
        )
    return [
        "Agreement",
        f"  {known}",
        f"  mean entropy of an item {entropy['mean']:.3f} of at most"
        f" {entropy['attainable']:.3f} nats with so many labels;"
        f" {entropy['unanimous']:.0%} unanimous",
    ]


def _annotators(content: dict[str, Any]) -> list[str]:
    known = [one for one in content["people"] if one["agreement"] is not None]
    title, more = "Annotators", []
    if len(known) > 12:
        title = "Annotators who agree least with the others"
        more = [f"  … {len(known) - 5} others (--json has all)"]
        enough = [one for one in known if one["annotations"] >= _FEWEST]
        if not enough:
            few = f"all {len(known)} gave fewer than {_FEWEST} labels, too few to compare them"
            return [title, f"  {few} (--json has all)"]
        usual = content["agreement"]["pairwise"]

        def standing(one: dict[str, Any]) -> float:
            other = usual if one["expected"] is None else one["expected"]
            return float((one["agreement"] - other) * one["annotations"] ** 0.5)

        enough.sort(key=standing)
        known = enough[:5]
    rows = [
        f"  {one['annotator']}: {counted(one['annotations'], 'label')}, {_choice(one['shares'])},"
        f" agrees {one['agreement']:.0%} with the others"
        + ("" if one["expected"] is None else f" (two others {one['expected']:.0%})")
        + (f", group {one['group']}" if one["group"] else "")
        for one in known
    ]
    return [title, *rows, *more] if rows else []


def _choice(shares: dict[str, float]) -> str:
    """Of two classes the share of the last, of more the most frequent one."""
    name = list(shares)[-1] if len(shares) == 2 else max(shares, key=shares.__getitem__)
    return f"{'' if len(shares) == 2 else 'most often '}{name!r} {shares[name]:.0%}"


def _groups(groups: dict[str, Any]) -> list[str]:
    if groups["kind"] == "none":
        return ["Groups", f"  none: {groups['reason']}"]
    how = "declared" + (f" by {groups['attribute']!r}" if groups["attribute"] else "")
    if groups["kind"] == "found":
        how = f"found; two halves of the items agree on them by {groups['stability']:.2f}"
    result = [f"Groups ({how})"]
    for group in groups["groups"]:
        within, between = (
            "–" if group[key] is None else f"{group[key]:+.1%}" for key in ("within", "between")
        )
        result.append(
            f"  {group['name']}: {counted(group['annotators'], 'annotator')},"
            f" {group['annotations']} labels; agreement beyond the item {within} within,"
            f" {between} with others; {group['character']}"
        )
    return result


def _variance(variance: dict[str, Any]) -> list[str]:
    result = ["Variance of the labels (95 % intervals over items)"]
    if "total" not in variance:
        return [*result, f"  unknown: {variance.get('reason', 'nothing varies')}"]
    names = {"item": "items", "annotator": "annotators", "group_item": "groups by items"}
    for key, words in {**names, "rest": "rest: noise, single views"}.items():
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
    rows = {
        "any structure": test["p"],
        "annotators": test["annotator"]["p"],
        "groups by items": test["group_item"]["p"],
        "groups beyond strictness": test["views"]["p"],
    }
    shown = ", ".join(f"{name} p = {p:.2g}" for name, p in rows.items() if p is not None)
    return [f"Structure or noise ({test['permutations']} permutations)", f"  {shown}"]


def _range(figures: dict[str, Any]) -> str:
    low, high = figures["min"], figures["max"]
    return f"{low}" if low == high else f"{low}–{high} (median {figures['median']:g})"
