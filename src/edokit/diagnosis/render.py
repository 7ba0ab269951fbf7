"""A diagnosis for people, line by line."""

from __future__ import annotations

from typing import Any

from edokit._errors import counted

_BAR = 20
"""Characters of a full bar: a line fits into 80."""


def lines(content: dict[str, Any]) -> list[str]:
    """Coverage, agreement, people, groups, variance, test, advice and limits in words."""
    return [
        *_coverage(content),
        *_agreement(content),
        *_people(content),
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
    per_item, per_person, pairs = cover["per_item"], cover["per_annotator"], cover["pairs"]
    shares = ", ".join(f"{name} {share:.0%}" for name, share in balance["shares"].items())
    hard = ", ".join(f"{name} {count}" for name, count in balance["hard"].items())
    said = [
        "Coverage",
        f"  {content['items']} items, {content['annotators']} annotators,"
        f" {content['annotations']} answers; {cover['filled']:.1%} of all cells are filled",
        f"  answers per item {_range(per_item)}, per annotator {_range(per_person)}",
        f"  {pairs['meeting']} of {pairs['possible']} pairs of annotators share an item"
        + (f" (median {pairs['median_shared']:g} items)" if pairs["meeting"] else ""),
    ]
    for count, words in (
        (cover["single"], "single answers to an item"),
        (len(cover["silent"]), "annotators without an answer"),
        (cover["repeated"], "further answers of someone to the same item"),
    ):
        if count:
            said.append(f"  gaps and repeats: {count} {words}")
    ratio = "" if balance["ratio"] is None else f" ({balance['ratio']:.1f} : 1)"
    said += ["Classes", f"  answers: {shares}", f"  hard labels: {hard}{ratio}"]
    if balance["ties"]:
        said.append(f"  {counted(balance['ties'], 'item')} tied")
    return said


def _agreement(content: dict[str, Any]) -> list[str]:
    agree, entropy = content["agreement"], content["entropy"]
    if agree["pairwise"] is None:
        return ["Agreement", f"  not known: {agree['reason']}", *_entropy(entropy)]
    alpha = "–" if agree["alpha"] is None else f"{agree['alpha']:.3f}"
    said = [
        "Agreement",
        f"  Krippendorff's alpha {alpha}"
        + (f" ({agree['reason']})" if agree["reason"] else "")
        + f"; {agree['pairwise']:.1%} of pairs agree, {agree['by_chance']:.1%} by chance",
    ]
    return [*said, *_entropy(entropy)]


def _entropy(entropy: dict[str, Any]) -> list[str]:
    return [
        f"  mean entropy of an item {entropy['mean']:.3f} of {entropy['largest']:.3f} nats;"
        f" {entropy['unanimous']:.0%} unanimous"
    ]


def _people(content: dict[str, Any]) -> list[str]:
    known = [p for p in content["people"] if p["agreement"] is not None]
    if not known:
        return []
    last = content["classes"][-1]
    if len(known) <= 12:
        return ["Annotators", *(f"  {_person(p, last)}" for p in known)]
    apart = sorted(known, key=lambda p: (p["agreement"] - p["expected"]) * p["annotations"] ** 0.5)
    return [
        "Annotators who stand apart most",
        *(f"  {_person(p, last)}" for p in apart[:5]),
        f"  … {len(known) - 5} others (--json has all)",
    ]


def _person(person: dict[str, Any], last: str) -> str:
    group = f", group {person['group']}" if person["group"] else ""
    return (
        f"{person['annotator']}: {person['annotations']} answers, {person['shares'][last]:.0%}"
        f" {last!r}, agrees {person['agreement']:.0%} with the rest (two others"
        f" {person['expected']:.0%}){group}"
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
    said = [f"Groups ({how})"]
    for group in groups["groups"]:
        within = "–" if group["within"] is None else f"{group['within']:+.1%}"
        between = "–" if group["between"] is None else f"{group['between']:+.1%}"
        said.append(
            f"  {group['name']}: {counted(group['annotators'], 'annotator')},"
            f" {group['annotations']} answers; agreement beyond the item {within} within,"
            f" {between} with others;"
            f" {group['character']}"
        )
    return said


def _variance(content: dict[str, Any]) -> list[str]:
    variance = content["variance"]
    title = "Where the labels' variance comes from (95 % intervals over items)"
    if variance is None or "total" not in variance:
        return [title, f"  not known: {(variance or {}).get('reason', 'nothing varies')}"]
    said = [title]
    for key, words in (
        ("item", "items"),
        ("annotator", "annotators"),
        ("group_item", "groups by items"),
        ("rest", "rest: noise, one person's views"),
    ):
        part = variance[key]
        if part is None:
            said.append(f"  {words:<32} not known: {variance['reason']}")
            continue
        bar = "█" * round(_BAR * part["share"])
        ends = f"[{part['low']:.1%}, {part['high']:.1%}]"
        said.append(f"  {words:<32}{part['share']:>6.1%}  {ends:<15} {bar}".rstrip())
    return said


def _test(test: dict[str, Any] | None) -> list[str]:
    if test is None or test["p"] is None:
        return []
    rows = [
        ("any structure", test["p"]),
        ("annotators", test["annotator"]["p"]),
        ("groups by items", test["group_item"]["p"]),
        ("groups beyond strictness", test["views"]["p"]),
    ]
    said = ", ".join(f"{name} p = {p:.2g}" for name, p in rows if p is not None)
    return [f"Structure or noise ({test['permutations']} shuffles)", f"  {said}"]


def _range(figures: dict[str, Any]) -> str:
    low, high = figures["min"], figures["max"]
    return f"{low}" if low == high else f"{low}–{high} (median {figures['median']:g})"
