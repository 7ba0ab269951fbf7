"""Advice and limits that follow from a diagnosis; the words are in ``assets/advice.txt``."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from edokit._errors import HAVE, are
from edokit._types import Bools
from edokit.analysis.diagnose.overview import only_answer
from edokit.analysis.diagnose.text import render_lines
from edokit.analysis.diagnose.vectors import totals
from edokit.annotations.core import Annotations
from edokit.annotator_effects import label_shares

# An annotator can train a member of their own with this many labels, if the second number of them
# differ from the most frequent one.
MEMBER_LABELS = 200
MEMBER_RARE_LABELS = 20
# Members of single annotators represent everyone if there are this many of them, who gave this
# share of all labels, and each labelled this share of the items.
_FEWEST_TRAINERS = 3
_NEARLY_ALL = 0.8
# Share of items in groups from which on the limits of the test are said.
MANY_GROUPED = 0.1
# A smaller systematic share of the disagreement is called slight, and no advice follows from it.
SLIGHT_SHARE = 0.1
# With a smaller one, the disagreement is called partly structured.
STRONG_SHARE = 0.3


@dataclass(frozen=True)
class Advice:
    """One piece of advice.

    Attributes
    ----------
    topic : str
        structure, supervision, diversity, careless, labels, balance or coverage.
    choice : str or None
        What to choose, or the finding; None where nothing is known.
    text : str
        The advice as sentences.
    """

    topic: str
    choice: str | None
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Topic, choice and text."""
        return asdict(self)


def advise(
    annotations: Annotations,
    *,
    coverage: dict[str, Any],
    balance: dict[str, Any],
    clusters: dict[str, Any],
    variance: dict[str, Any] | None,
    test: dict[str, Any] | None,
    careless: dict[str, Any] | None,
    grouped_items: int = 0,
) -> tuple[list[Advice], list[str], list[dict[str, str]]]:
    """Pieces of advice; limits of the diagnosis; commands to run next, with their ``purpose``.

    They follow from parts of a `Diagnosis`. ``variance`` is None where its shares are unknown.
    ``grouped_items`` belong together with others.
    """
    per_item = annotations.annotations_per_item
    label_counts = annotations.annotations_per_annotator
    structure = _structure(variance, test, careless)
    structured = structure["structure"] in ("views", "strictness")
    trainers = _trainers(annotations)
    trainer_share = float(label_counts[trainers].sum() / len(annotations))
    trainer_coverage = 0.0
    if trainers.any():
        trainer_coverage = float(np.median(annotations.coverage[trainers]))
    represent_all = trainers.sum() >= _FEWEST_TRAINERS and trainer_share >= _NEARLY_ALL
    all_same_items = structured and represent_all and trainer_coverage >= _NEARLY_ALL
    fit_splits = [name for name in ("train", "dev") if name in annotations.split_names]
    lines = render_lines(
        "advice.txt",
        coverage=coverage,
        balance=balance,
        clusters=clusters,
        variance=variance,
        test=test,
        careless=careless,
        **structure,
        grouped_items=grouped_items,
        many_grouped=grouped_items >= MANY_GROUPED * len(annotations.items),
        kind=annotations.scale.kind,
        label=only_answer(annotations),
        structured=structured,
        strong=STRONG_SHARE,
        choice="per-annotator" if all_same_items else "soft",
        trainable=annotations.texts is not None,
        fit_split=f" --split {','.join(fit_splits)}" if fit_splits else "",
        busiest_annotator=shlex.quote(str(annotations.annotators[label_counts.argmax()])),
        items=len(annotations.items),
        annotators=len(annotations.annotators),
        active=int((label_counts > 0).sum()),
        enough=MEMBER_LABELS,
        enough_rare=MEMBER_RARE_LABELS,
        has_classes=annotations.label_codes is not None or annotations.scale.is_multi_label,
        trainers=int(trainers.sum()),
        trainer_share=trainer_share,
        trainer_coverage=trainer_coverage,
        represent_all=represent_all,
        all_train=trainers.all(),
        over_limit=trainers.sum() > per_item.min(),
        with_few=int(((label_counts > 0) & (label_counts < MEMBER_LABELS)).sum()),
        with_two=int((per_item == 2).sum()),
        with_three=float((per_item >= 3).mean()),
        are=are,
        have=HAVE,
    )
    advice = []
    limits = []
    commands = []
    # Each line has three parts: "topic | choice | text", "limit | - | text", or
    # "command | what to type | purpose".
    for line in lines:
        topic, choice, text = line.split(" | ", 2)
        if topic == "limit":
            limits.append(text)
        elif topic == "command":
            commands.append({"command": choice, "purpose": text})
        else:
            advice.append(Advice(topic, None if choice == "-" else choice, text))
    return advice, limits, commands


def _trainers(annotations: Annotations) -> Bools:
    """Annotators with enough labels to train a member of their own [A]."""
    has_enough: Bools = annotations.annotations_per_annotator >= MEMBER_LABELS
    shares = label_shares(annotations, len(annotations.classes))
    second_counts = []
    for table in annotations.scale.tables(shares):
        counts = totals(annotations.annotator_codes, table, len(has_enough))
        # The labels of each annotator's second most frequent class; 0 if there is a single class.
        with_empty_class = np.pad(counts, ((0, 0), (1, 0)))
        second_counts.append(np.sort(with_empty_class, axis=1)[:, -2])
    return np.asarray(has_enough & (np.max(second_counts, axis=0) >= MEMBER_RARE_LABELS))


def _structure(
    variance: dict[str, Any] | None, test: dict[str, Any] | None, careless: dict[str, Any] | None
) -> dict[str, Any]:
    """The kind of structure, p-values, which tests are significant, and the systematic share.

    ``structure`` is views, strictness, slight, careless, noise, or undecided where p is too close
    to 5 %; None where it was not tested.
    """
    if variance is None or test is None or test["p"] is None:
        return {"structure": None, "p_values": {}, "significant": set(), "systematic": None}
    p_values = {}
    significant = set()
    for name in ("annotator", "group_item", "views"):
        if test[name]["p"] is not None:
            p_values[name] = test[name]["p"]
        if test[name]["verdict"] == "yes":
            significant.add(name)
    structure = "views"
    if "annotator" in significant and "views" not in significant:
        structure = "strictness"
    # How much groups by items contribute may be unknown; strictness needs no groups.
    systematic = None
    if variance["group_item"] or structure == "strictness":
        systematic = variance["structured"]
    if careless and careless["explains"]:
        structure = "careless"
    elif test["verdict"] == "can't tell":
        structure = "undecided"
    elif not test["structured"]:
        structure = "noise"
    elif systematic is not None and systematic < SLIGHT_SHARE:
        structure = "slight"
    return {
        "structure": structure,
        "p_values": p_values,
        "significant": significant,
        "systematic": systematic,
    }
