"""Advice and limits that follow from a diagnosis, in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from edokit._errors import HAVE, are, counted
from edokit._types import Bools
from edokit.annotations import Annotations
from edokit.diagnosis.overview import only_answer
from edokit.diagnosis.permutation import LEVEL
from edokit.diagnosis.vectors import label_sums, totals
from edokit.scales import ScaleKind

ENOUGH = 200
"""Labels from which on one annotator can train a member."""
ENOUGH_RARE = 20
"""Labels outside the annotator's most frequent class that this takes."""
_FEWEST_TRAINERS = 3
_MOST = 0.8
"""Share of all labels that those who can train a member must have given, and of the items that each
of them must have labelled, for their members to represent everyone on the same items."""
_WORTH_SAYING = 0.01
SLIGHT, STRONG = 0.1, 0.3
"""Systematic shares of the disagreement: below the first it is called slight, and no advice follows
from it; from the second on the disagreement is called structured without "partly"."""
_TESTS = {
    "group_item": "some annotators agree with each other more than chance explains",
    "views": "also beyond what strictness alone explains",
}
_STRICTNESS: dict[ScaleKind, str] = {
    "nominal": "annotators differ in how often they choose each class (strictness)",
    "ordinal": "annotators differ in how high they rate (strictness)",
    "multi-label": "annotators differ in how often they choose each label (strictness)",
}
_VARIED: dict[ScaleKind, str] = {
    "nominal": f"{ENOUGH_RARE} of them outside their most frequent class",
    "ordinal": f"{ENOUGH_RARE} of them outside their most frequent point of the scale",
    "multi-label": f"with a label that was chosen in {ENOUGH_RARE} of them and not in"
    f" {ENOUGH_RARE} others",
}
"""What a member of one annotator takes, besides enough labels."""


@dataclass(frozen=True)
class Advice:
    """One piece of advice."""

    topic: str
    """structure, supervision, diversity, careless, labels, balance or coverage."""
    choice: str | None
    """What to choose, or the finding; None where nothing is known."""
    text: str
    """The advice as sentences."""

    def to_dict(self) -> dict[str, Any]:
        """Topic, choice and text."""
        return asdict(self)


def advise(
    annotations: Annotations,
    balance: dict[str, Any],
    groups: dict[str, Any],
    variance: dict[str, Any] | None,
    test: dict[str, Any] | None,
    careless: dict[str, Any] | None,
) -> list[Advice]:
    """Advice on supervision, diversity, careless annotators, labels, classes and coverage."""
    kind = annotations.scale.kind
    if (label := only_answer(annotations)) is not None:
        text = (
            f"There is no disagreement to learn from: all labels are {label}. Check that this"
            " is the right column and the right split."
        )
        return [Advice("structure", None, text), *_coverage(annotations)]
    structure = _structure(variance, test, careless, groups, kind)
    structured = structure.choice in ("views", "strictness")
    trainers = _trainers(annotations)
    finding = _finding(structure.choice, variance, test, careless)
    return [
        structure,
        _supervision(annotations, trainers, structured, finding),
        _diversity(structured, finding),
        *_careless(careless),
        _labels(annotations, trainers),
        *_balance(balance, kind),
        *_coverage(annotations),
    ]


def _finding(
    choice: str | None,
    variance: dict[str, Any] | None,
    test: dict[str, Any] | None,
    careless: dict[str, Any] | None,
) -> str:
    """What is known about the structure, as a reason for other advice."""
    if choice is None or variance is None or test is None:
        return "these data don't show whether the disagreement is structured"
    if careless and choice == "careless":
        return f"without the careless annotators no structure is left (p = {careless['p']:.2g})"
    if choice == "noise":
        return f"no structure beyond chance was found (p = {test['p']:.2g})"
    share = variance["structured"]
    if choice == "slight":
        return f"only about {share:.0%} of the disagreement is systematic"
    partly = "partly " if share < STRONG else ""
    size = f"about {share:.0%} of it or more systematic"
    return f"the disagreement is {partly}structured (p = {test['p']:.2g}), {size}"


def _trainers(annotations: Annotations) -> Bools:
    """Annotators with enough labels to train a member of their own [A]."""
    labels = annotations.annotations_per_annotator
    enough: Bools = labels >= ENOUGH
    shares = label_sums(annotations, np.eye(len(annotations.classes)))
    sums = [totals(annotations.annotator_codes, column, len(enough)) for column in shares.T]
    if annotations.scale.is_multi_label:
        sums = [np.minimum(count, labels - count) for count in sums]
        enough &= np.max(sums, axis=0) >= ENOUGH_RARE
    elif annotations.label_codes is not None:
        # The second most frequent class: of two classes, the rarer one.
        enough &= np.sort([*sums, np.zeros(len(labels))], axis=0)[-2] >= ENOUGH_RARE
    return enough


def _structure(
    variance: dict[str, Any] | None,
    test: dict[str, Any] | None,
    careless: dict[str, Any] | None,
    groups: dict[str, Any],
    scale: ScaleKind = "nominal",
) -> Advice:
    """Whether the disagreement is structured; the size of the systematic part decides the words."""
    if variance is None or test is None or test["p"] is None:
        reason = "no item can be permuted" if test else "no permutations were asked for"
        reason = "these data can't show it" if variance is None else reason
        return Advice("structure", None, f"Structured or noise? It was not tested: {reason}.")
    titles = {"annotator": _STRICTNESS[scale], **_TESTS}
    p = {key: test[key]["p"] for key in titles if test[key]["p"] is not None}
    significant = {key for key, value in p.items() if value <= LEVEL}
    kind, text = _verdict(significant, variance, test["structured"], careless)
    results = [
        f"{titles[key]}: {'yes' if key in significant else 'not shown'} (p = {value:.2g})"
        for key, value in p.items()
    ]
    text += f". Tests: {'; '.join(results)}." if results else "."
    if test["structured"]:
        text += _systematic_part(variance, _has_size(significant, variance))
    stability = max(groups.get("stability") or 0.0, 0.0)
    if groups["kind"] == "found" and stability < 0.5:
        text += (
            " Who belongs to which group is uncertain: two halves of the items agree on it by"
            f" {stability:.2f} (1 is fully, 0 is chance)."
        )
    return Advice("structure", kind, text)


def _verdict(
    significant: set[str],
    variance: dict[str, Any],
    structured: bool,
    careless: dict[str, Any] | None,
) -> tuple[str, str]:
    """The kind of disagreement, in a word and in a sentence."""
    if careless and careless["explains"]:
        return "careless", (
            f"The disagreement is compatible with noise: without {_listed(careless)}, who seem to"
            f" answer carelessly, no structure is left (p = {careless['p']:.2g})"
        )
    if not structured and significant:
        return "noise", "Taken together, the tests don't distinguish the disagreement from noise"
    if not structured:
        return "noise", "The disagreement is compatible with noise"
    kind, subject = "views", "annotators form groups"
    if "views" in significant:
        subject = "annotators have different views"
    elif "annotator" in significant:
        kind, subject = "strictness", "annotators differ in strictness"
    share = variance["structured"] if _has_size(significant, variance) else None
    kind = "slight" if share is not None and share < SLIGHT else kind
    return kind, f"{_degree(share)}: {subject}"


def _has_size(significant: set[str], variance: dict[str, Any]) -> bool:
    """Whether the systematic part could be estimated; groups by items alone may be unknown."""
    only_strictness = "annotator" in significant and "views" not in significant
    return bool(variance["group_item"]) or only_strictness


def _degree(share: float | None) -> str:
    """How structured the disagreement is, by its systematic share."""
    if share is None:
        return "There is structure in the disagreement, of unknown size"
    if share < SLIGHT:
        return "The disagreement has only a slight structure"
    return f"The disagreement is {'partly ' if share < STRONG else ''}structured"


def _systematic_part(variance: dict[str, Any], has_size: bool) -> str:
    parts = [variance[key] for key in ("annotator", "group_item")]
    total = sum(part["share"] for part in parts if part)
    return (
        f" About {variance['structured']:.0%} of the disagreement ({total:.0%} of the variance of"
        " the labels) or more is systematic; the rest is noise or views of single annotators"
        + ("." if has_size else ", or of groups, whose part can't be estimated.")
    )


def _listed(careless: dict[str, Any]) -> str:
    """Careless annotators, with the share of their labels that seems random."""
    rows = careless["annotators"]
    names = [f"{row['annotator']!r} (about {row['random']:.0%})" for row in rows]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} others" if len(names) > 5 else "")


def _careless(careless: dict[str, Any] | None) -> list[Advice]:
    if careless is None:
        return []
    text = (
        f"Check {_listed(careless)}: in brackets the share of their labels that seems random. They"
        " may be careless, or have views that nobody shares; leave careless ones out."
    )
    if careless["p"] is not None and not careless["explains"]:
        text += f" Without them the disagreement is still structured (p = {careless['p']:.2g})."
    return [Advice("careless", "check", text)]


def _supervision(
    annotations: Annotations, trainers: Bools, structured: bool, finding: str
) -> Advice:
    count = int(trainers.sum())
    share = float(annotations.annotations_per_annotator[trainers].sum() / len(annotations))
    complete = float(np.median(annotations.coverage[trainers])) if count else 0.0
    enough = count >= _FEWEST_TRAINERS and share >= _MOST
    able = f"{count or 'none'} of {len(annotations.annotators)} annotators"
    able += f" {'has' if count < 2 else 'have'} {ENOUGH} labels or more"
    if annotations.label_codes is not None or annotations.scale.is_multi_label:
        able += f", {_VARIED[annotations.scale.kind]}"
    if structured and enough and complete >= _MOST:
        text = (
            f"Try per-annotator members first: {finding}, and {able} ({share:.0%} of all labels,"
            f" on {complete:.0%} of the items): each can train a member of their own. Compare with"
            " random-select."
        )
        return Advice("supervision", "per-annotator", text)
    if structured and enough:
        finding += (
            f", and {able}, but each of them labelled only {complete:.0%} of the items, so members"
            " would be trained on different ones"
        )
    elif structured:
        finding += f", but {'only ' if count else ''}{able} ({share:.0%} of all labels)"
    text = (
        f"Use random-select: {finding}. One label drawn per item teaches every member the"
        " distribution of all annotators, however few labels each of them gave."
    )
    return Advice("supervision", "random-select", text)


def _diversity(structured: bool, finding: str) -> Advice:
    if structured:
        text = (
            f"Try preserve first: {finding}, so members that differ may represent annotators who"
            " do. Expect small differences: look at their intervals before keeping the term."
        )
    else:
        text = (
            f"Leave the diversity term out (lambda_div 0) or try preserve first: {finding}, so"
            " there is little to preserve, but suppress tends to keep a single member and gains"
            " nothing."
        )
    return Advice("diversity", "preserve", text)


def _labels(annotations: Annotations, trainers: Bools) -> Advice:
    per_annotator = annotations.annotations_per_annotator
    active = per_annotator[per_annotator > 0]
    if trainers.all():
        text = (
            f"There are enough labels per annotator: {active.min()} or more from each of"
            f" {len(active)}."
        )
        return Advice("labels", "enough", text)
    text = (
        f"{(active < ENOUGH).sum()} of {len(active)} annotators gave fewer than {ENOUGH} labels"
        f" (median {np.median(active):g}); {trainers.sum() or 'none'} gave enough for a member of"
        f" their own ({ENOUGH} or more, {_VARIED[annotations.scale.kind]})."
    )
    return Advice("labels", "few", text)


def _balance(balance: dict[str, Any], scale: ScaleKind) -> list[Advice]:
    hard, ratio, result = balance["hard"], balance["ratio"], []
    empty = [name for name, count in hard.items() if not count]
    if empty:
        text = (
            f"No item has the hard label {' or '.join(map(repr, empty))}: class weights are not"
            f" possible, and F1 doesn't cover {'it' if len(empty) == 1 else 'them'}."
        )
        if scale == "multi-label":
            text = (
                f"No item has the label {' or '.join(map(repr, empty))} by majority: class weights"
                " are not possible, and hard labels don't show who chose it."
            )
        result.append(Advice("balance", "empty", text))
    if ratio is not None and ratio >= 3 and scale != "ordinal":
        rare = min(hard, key=hard.__getitem__)
        uneven = f"are {'very ' if ratio >= 10 else ''}uneven, {ratio:.1f} : 1;"
        items = counted(hard[rare], "item")
        text = (
            f"Classes {uneven} {rare!r} is the hard label of {items}. Split by class, look at"
            " macro-F1 beside micro-F1, and leave class weights off where test is as uneven: they"
            " cost cross-entropy there."
        )
        if scale == "multi-label":
            text = (
                f"Labels {uneven} most annotators chose {rare!r} for {items}. Look at the error of"
                " each label, not only at the mean over labels."
            )
        result.append(Advice("balance", "uneven", text))
    return result


def _coverage(annotations: Annotations) -> list[Advice]:
    per_item, result = annotations.annotations_per_item, []
    single = int((per_item == 1).sum())
    if single:
        text = (
            f"{are(single, len(per_item), HAVE, 'item')} one label: the soft label is 0 or 1"
            " whatever annotators think. More labels per item show disagreement."
        )
        result.append(Advice("coverage", "single", text))
    three = float((per_item >= 3).mean())
    if per_item.max() >= 2 and three < 0.5:
        text = (
            f"Only {three:.0%} of the items have three labels or more; the others don't show who"
            " agrees with whom."
        )
        result.append(Advice("coverage", "thin", text))
    return result


def limits(
    annotations: Annotations, variance: dict[str, Any] | None, single: list[str], unassigned: int
) -> list[str]:
    """What can't be known; ``single`` are declared groups of one annotator."""
    active = int((annotations.annotations_per_annotator > 0).sum())
    repeated = int(annotations.repeated.sum())
    texts = []
    if repeated:
        texts.append(
            f"{counted(repeated, 'further label')} of an annotator for the same item: only the"
            " first one counts for structure."
        )
    if variance is not None:
        texts.append(
            "With one label per annotator and item, the view of a single annotator can't be"
            " distinguished from noise; a second label of the same annotators for some items can."
        )
        if active < 4:
            texts.append(
                f"With {active} annotators there are no two groups of two: the variance of groups"
                " by items can't be estimated."
            )
        item, views = variance["item"]["hidden"], (variance["group_item"] or {}).get("hidden")
        if max(item, views or 0.0) >= _WORTH_SAYING and active >= 2:
            texts.append(
                f"There are {active} annotators: if the rest is views of their own, up to"
                f" {item:.1%} of the variance more belongs to items"
                + ("." if views is None else f" and up to {views:.1%} more to groups by items.")
            )
        if single:
            names = ", ".join(map(repr, single[:3])) + (", …" if len(single) > 3 else "")
            texts.append(
                f"{are(len(single), None, HAVE, 'declared group')} one annotator each ({names}):"
                " such a view can't be distinguished from noise."
            )
        if unassigned:
            texts.append(
                f"{are(unassigned, active, noun='annotator')} in no group: they labelled too few"
                " contested items, or none is declared for them."
            )
        pairs = int((annotations.annotations_per_item == 2).sum())
        if pairs:
            texts.append(
                f"{are(pairs, None, HAVE, 'item')} two labels, which count for the variance, but"
                " don't show who agrees with whom."
            )
    return texts
