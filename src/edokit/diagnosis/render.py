"""A diagnosis as the lines of ``edo diagnose``."""

from __future__ import annotations

from typing import Any

from edokit._errors import counted
from edokit.scales import Declared, Scale

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
        *_groups(content["groups"], _scale(content)),
        *_variance(content["variance"] or {}),
        *_explained(content.get("explained")),
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
    positions = _scale(content).positions
    uneven = balance["ratio"] is not None and positions is None
    ratio = f" ({balance['ratio']:.1f} : 1)" if uneven else ""
    places = zip(positions or (), balance["shares"].values(), strict=False)
    mean = sum(place * share for place, share in places)
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
        "Classes" if positions is None else "Scale",
        f"  labels: {shares}" + ("" if positions is None else f"; mean {mean:.2f}"),
        f"  hard labels: {hard}{ratio}",
        *([f"  {counted(balance['ties'], 'item')} tied"] if balance["ties"] else []),
    ]


def _scale(content: dict[str, Any]) -> Scale:
    return Declared(content["scale"]).on(content["classes"])


def alpha_text(agree: dict[str, Any]) -> str:
    """``0.490 (interval)``: alpha with its level, of sets with that of each label."""
    alpha, by_label = _decimal(agree["alpha"]), agree["by_label"]
    if by_label is not None:
        values = ", ".join(f"{name} {_decimal(value)}" for name, value in by_label.items())
        return f"{alpha} (mean of the labels: {values})"
    return alpha + (" (interval)" if agree["level"] == "interval" else "")


def pairs_text(agree: dict[str, Any]) -> str:
    """How much two labels of an item agree, or how far apart they are, and by chance."""
    if (distance := agree["distance"]) is not None:
        return (
            f"two labels of an item are {distance['pairwise']:.2f} apart,"
            f" {distance['by_chance']:.2f} by chance"
        )
    rates = f"{agree['pairwise']:.1%}", f"{agree['by_chance']:.1%} by chance"
    if agree["by_label"] is not None:
        return f"two annotators agree on a label in {rates[0]} of cases, {rates[1]}"
    return f"{rates[0]} of pairs agree, {rates[1]}"


def _decimal(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _agreement(agree: dict[str, Any], entropy: dict[str, Any]) -> list[str]:
    agreement = f"unknown: {agree['reason']}"
    if agree["pairwise"] is not None:
        agreement = (
            f"Krippendorff's alpha {alpha_text(agree)}"
            + (f" ({agree['reason']})" if agree["reason"] else "")
            + f"; {pairs_text(agree)}"
        )
    return [
        "Agreement",
        f"  {agreement}",
        f"  mean entropy of an item {entropy['mean']:.3f} of at most"
        f" {entropy['attainable']:.3f} nats with so many labels;"
        f" {entropy['unanimous']:.0%} unanimous",
    ]


def _annotators(content: dict[str, Any]) -> list[str]:
    people = [person for person in content["people"] if person["agreement"] is not None]
    title, remark = "Annotators", []
    if len(people) > 12:
        title = "Annotators who agree least with the others"
        remark = [f"  … {len(people) - 5} others (--json has all)"]
        active = [person for person in people if person["annotations"] >= _FEWEST]
        if not active:
            reason = f"all {len(people)} gave fewer than {_FEWEST} labels, too few to compare them"
            return [title, f"  {reason} (--json has all)"]
        overall = content["agreement"]["pairwise"]

        def standing(person: dict[str, Any]) -> float:
            expected = overall if person["expected"] is None else person["expected"]
            return float((person["agreement"] - expected) * person["annotations"] ** 0.5)

        people = sorted(active, key=standing)[:5]
    scale = _scale(content)
    rows = [_annotator(person, scale) for person in people]
    return [title, *rows, *remark] if rows else []


def _annotator(person: dict[str, Any], scale: Scale) -> str:
    verb, preposition = ("agrees", "with") if scale.span is None else ("is", "from")
    text = (
        f"  {person['annotator']}: {counted(person['annotations'], 'label')},"
        f" {_choice(person, scale)}, {verb} {_agreed(person['agreement'], scale)} {preposition} the"
        " others"
    )
    if person["expected"] is not None:
        text += f" (two others {_agreed(person['expected'], scale)})"
    return text + (f", group {person['group']}" if person["group"] else "")


def _agreed(agreement: float, scale: Scale) -> str:
    """``81%``, or on a scale the distance: ``1.20 apart``."""
    return f"{agreement:.0%}" if scale.span is None else f"{(1 - agreement) * scale.span:.2f} apart"


def _choice(person: dict[str, Any], scale: Scale) -> str:
    """Of two classes the share of the last, of more the most frequent one; on a scale the mean."""
    shares = person["shares"]
    if person["mean"] is not None:
        return f"mean {person['mean']:.2f}"
    two = scale.is_binary(len(shares))
    name = list(shares)[-1] if two else max(shares, key=shares.__getitem__)
    return f"{'' if two else 'most often '}{name!r} {shares[name]:.0%}"


def _groups(groups: dict[str, Any], scale: Scale) -> list[str]:
    if groups["kind"] == "none":
        return ["Groups", f"  none: {groups['reason']}"]
    source = "declared" + (f" by {groups['attribute']!r}" if groups["attribute"] else "")
    if groups["kind"] == "found":
        source = f"found; two halves of the items agree on them by {groups['stability']:.2f}"
    result = [f"Groups ({source})"]
    measure = "agreement" if scale.span is None else "distance"
    for group in groups["groups"]:
        within, between = (_beyond(group[key], scale) for key in ("within", "between"))
        result.append(
            f"  {group['name']}: {counted(group['annotators'], 'annotator')},"
            f" {group['annotations']} labels; {measure} beyond the item {within} within,"
            f" {between} with others; {group['character']}"
        )
    return result


def _beyond(agreement: float | None, scale: Scale) -> str:
    if agreement is None:
        return "–"
    return f"{agreement:+.1%}" if scale.span is None else f"{-agreement * scale.span:+.2f}"


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


def _explained(account: dict[str, Any] | None) -> list[str]:
    if account is None:
        return []
    result = [
        "Known annotators",
        f"  their answers explain {account['share']:.1%} of the disagreement within items (95 %"
        f" interval {account['low']:.1%} to {account['high']:.1%}, {account['pairs']} labels); the"
        " rest is noise, or views that the members have not learned",
    ]
    if account["lasting"] is not None:
        advice = {
            "labels": "which is more: more labels per annotator, or members that learn more from"
            " them, would help",
            "annotators": "which is not clearly more: rather ask more annotators per item",
        }[account["helps"]]
        result.append(f"  at least {account['lasting']:.1%} of it lasts (see above), {advice}")
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
    values = ", ".join(f"{name} p = {p:.2g}" for name, p in rows.items() if p is not None)
    return [f"Structure or noise ({test['permutations']} permutations)", f"  {values}"]


def _range(figures: dict[str, Any]) -> str:
    low, high = figures["min"], figures["max"]
    return f"{low}" if low == high else f"{low}–{high} (median {figures['median']:g})"
