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
from edokit.analysis.diagnose.vectors import label_sums, totals
from edokit.annotations.core import Annotations

# Labels from which on one annotator can train a member.
ENOUGH = 200
# Labels outside the annotator's most frequent class that this takes.
ENOUGH_RARE = 20
_FEWEST_TRAINERS = 3
# Share of all labels that those who can train a member must have given, and of the items that each
# of them must have labelled, for their members to represent everyone on the same items.
_MOST = 0.8
# Systematic shares of the disagreement: below the first it is called slight, and no advice follows
# from it; from the second on the disagreement is called structured without "partly".
SLIGHT, STRONG = 0.1, 0.3


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
    annotations: Annotations, results: dict[str, Any]
) -> tuple[list[Advice], list[str], list[dict[str, str]]]:
    """Advice on supervision, diversity, careless annotators, labels, classes and coverage; limits;
    commands to run next, with their ``purpose``.

    ``results`` has coverage, balance, clusters, variance, test and careless of the diagnosis.
    """
    per_item, labels = annotations.annotations_per_item, annotations.annotations_per_annotator
    structure = _structure(**{key: results[key] for key in ("variance", "test", "careless")})
    structured = structure["structure"] in ("views", "strictness")
    trainers = _trainers(annotations)
    trainer_share = float(labels[trainers].sum() / len(annotations))
    trainer_coverage = float(np.median(annotations.coverage[trainers])) if trainers.any() else 0.0
    represent_all = trainers.sum() >= _FEWEST_TRAINERS and trainer_share >= _MOST
    all_same_items = structured and represent_all and trainer_coverage >= _MOST
    fit_splits = [name for name in ("train", "dev") if name in annotations.split_names]
    lines = render_lines(
        "advice.txt",
        **results,
        **structure,
        kind=annotations.scale.kind,
        label=only_answer(annotations),
        structured=structured,
        strong=STRONG,
        choice="per-annotator" if all_same_items else "soft",
        trainable=annotations.texts is not None,
        fit_split=f" --split {','.join(fit_splits)}" if fit_splits else "",
        someone=shlex.quote(str(annotations.annotators[labels.argmax()])),
        items=len(annotations.items),
        annotators=len(annotations.annotators),
        active=int((labels > 0).sum()),
        enough=ENOUGH,
        enough_rare=ENOUGH_RARE,
        varies=annotations.label_codes is not None or annotations.scale.is_multi_label,
        trainers=int(trainers.sum()),
        trainer_share=trainer_share,
        trainer_coverage=trainer_coverage,
        represent_all=represent_all,
        all_train=trainers.all(),
        over_limit=trainers.sum() > per_item.min(),
        with_few=int(((labels > 0) & (labels < ENOUGH)).sum()),
        with_two=int((per_item == 2).sum()),
        with_three=float((per_item >= 3).mean()),
        are=are,
        have=HAVE,
    )
    pieces = [line.split(" | ", 2) for line in lines]
    advice = [
        Advice(topic, None if choice == "-" else choice, text)
        for topic, choice, text in pieces
        if topic not in ("limit", "command")
    ]
    commands = [
        {"command": choice, "purpose": text} for topic, choice, text in pieces if topic == "command"
    ]
    return advice, [text for topic, _, text in pieces if topic == "limit"], commands


def _trainers(annotations: Annotations) -> Bools:
    """Annotators with enough labels to train a member of their own [A]."""
    labels = annotations.annotations_per_annotator
    enough: Bools = labels >= ENOUGH
    shares = label_sums(annotations, np.eye(len(annotations.classes)))
    rarer = []
    for table in annotations.scale.tables(shares):
        sums = totals(annotations.annotator_codes, table, len(enough))
        # The second most frequent class: of two classes, the rarer one.
        rarer.append(np.sort(np.pad(sums, ((0, 0), (1, 0))), axis=1)[:, -2])
    return np.asarray(enough & (np.max(rarer, axis=0) >= ENOUGH_RARE))


def _structure(
    variance: dict[str, Any] | None, test: dict[str, Any] | None, careless: dict[str, Any] | None
) -> dict[str, Any]:
    """Whether the disagreement is structured, the p-values, and the systematic share.

    ``structure`` is views, strictness, slight, careless, noise, or undecided where p is too close
    to 5 %; None where it was not tested.
    """
    if variance is None or test is None or test["p"] is None:
        return {"structure": None, "p_values": {}, "significant": set(), "systematic": None}
    tests = ("annotator", "group_item", "views")
    p_values = {key: p for key in tests if (p := test[key]["p"]) is not None}
    significant = {key for key in p_values if test[key]["verdict"] == "yes"}
    only_strictness = "annotator" in significant and "views" not in significant
    # The size of groups by items alone may be unknown.
    systematic = variance["structured"] if variance["group_item"] or only_strictness else None
    structure = "strictness" if only_strictness else "views"
    if careless and careless["explains"]:
        structure = "careless"
    elif test["verdict"] == "can't tell":
        structure = "undecided"
    elif not test["structured"]:
        structure = "noise"
    elif systematic is not None and systematic < SLIGHT:
        structure = "slight"
    return {
        "structure": structure,
        "p_values": p_values,
        "significant": significant,
        "systematic": systematic,
    }
