"""Sentences and lines made of checked labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from edokit._errors import counted

if TYPE_CHECKING:
    from edokit.analysis.labels.result import CheckedLabel

CLEAR_RATIO = 1.25
"""The annotator is mentioned where a label is this many times as likely for them as for anybody,
or as unlikely."""


def reason(label: CheckedLabel, unlikely_choice: tuple[str, bool] | None = None) -> str:
    """Why a label is likely or unlikely: the other annotators, the text, and its annotator.

    For multi-label data, ``unlikely_choice`` is the label whose choice is least likely, and whether
    it was chosen.
    """
    parts = []
    if unlikely_choice is not None:
        name, is_chosen = unlikely_choice
        parts.append(f"{name!r} was {'chosen' if is_chosen else 'left out'}")
    parts.append(_about_others(label))
    if label.by_text is not None:
        parts.append(f"the ensemble gives it {_percent(label.by_text)}")
    if label.probability * CLEAR_RATIO < label.by_anybody:
        parts.append(f"and it is even less likely for {label.annotator}")
    elif label.probability > label.by_anybody * CLEAR_RATIO:
        parts.append(f"but it is more likely for {label.annotator}")
    return ", ".join(parts)


def _about_others(label: CheckedLabel) -> str:
    if label.by_others is None:
        return "nobody else labelled the item"
    # ``by_others`` is a share of them; rounding gives their number back.
    agreeing = round(label.by_others * label.others)
    if label.others == 1:
        return "the other annotator agrees" if agreeing else "the other annotator disagrees"
    if agreeing == label.others:
        return f"all {label.others} others agree"
    if not agreeing:
        return f"none of {label.others} others agrees"
    return f"{agreeing} of {label.others} others {'agrees' if agreeing == 1 else 'agree'}"


def _percent(share: float) -> str:
    if share < 0.01:
        return "less than 1 %"
    return f"{share:.0%}".replace("%", " %")


def label_sentence(label: CheckedLabel) -> str:
    """Who gave which label, with the reason."""
    return f"{label.annotator} said {_quoted(label.label)}: {label.reason}"


def _quoted(label: str | list[str]) -> str:
    if isinstance(label, str):
        return repr(label)
    return ", ".join(map(repr, label)) or "none of the labels"


def written_lines(written: Mapping[str, Any]) -> list[str]:
    """The first three labels, and which files `LabelCheck.write` wrote."""
    output_lines = ["Labels to check, the least likely first"]
    for label in written["first"][:3]:
        who = f"{label['annotator']} said {_quoted(label['label'])}"
        output_lines.append(f"  {label['item']}: {who}: {label['reason']}")
    output_lines.append(f"  all {counted(written['labels'], 'label')}: {written['out']}")
    if written["repeated"]:
        repeated = counted(written["repeated"], "further label")
        output_lines.append(f"  {repeated} of an annotator for the same item are not in it")
    review = written.get("review")
    if review is not None:
        output_lines.append(
            f"  the first {counted(review['labels'], 'label')} as"
            f" {counted(review['items'], 'task')} for Label Studio: {review['out']} (interface:"
            f" {review['config']})"
        )
    return output_lines


def lines(labels: Sequence[CheckedLabel], n_labels: int, has_text: bool) -> list[str]:
    """The least likely labels, a line each."""
    evidence = "the other annotators and each person's habit"
    if has_text:
        evidence = "the text, the other annotators and each person's habit"
    output_lines = [f"{counted(n_labels, 'label')}, the least likely first, given {evidence}"]
    for label in labels:
        probability = _percent(label.probability)
        output_lines.append(f"  {probability}  {label.item}: {label_sentence(label)}")
    return output_lines
