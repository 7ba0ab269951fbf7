"""Advice and limits that follow from a diagnosis, as small objects; `render` puts them in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edokit._types import Bools
from edokit.annotations import Annotations
from edokit.diagnosis.permutation import LEVEL
from edokit.diagnosis.variance import Shares

ENOUGH = 200
"""Labels from which on one annotator can train a member."""
ENOUGH_RARE = 20
"""Labels outside the annotator's most frequent class that this takes."""
UNEVEN = 3.0
"""Ratio of the largest class to the smallest from which on classes are called uneven."""
_FEWEST_TRAINERS = 3
_MOST = 0.8
"""Share of all labels that those who can train a member must have given, and of the items that each
of them must have labelled, for their members to represent everyone on the same items."""
_WORTH_SAYING = 0.01


@dataclass(frozen=True)
class Advice:
    """One piece of advice."""

    topic: str
    """structure, supervision, diversity, labels, balance or coverage."""
    choice: str | None
    """What to choose, or the finding; None where nothing is known."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The numbers behind it."""

    @property
    def text(self) -> str:
        """The advice as sentences."""
        from edokit.diagnosis.render import advice_text

        return advice_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Topic, choice and text."""
        return {"topic": self.topic, "choice": self.choice, "text": self.text}


@dataclass(frozen=True)
class Limit:
    """One thing that these data can't show."""

    kind: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The limit as a sentence."""
        from edokit.diagnosis.render import limit_text

        return limit_text(self)


def advise(
    annotations: Annotations,
    balance: dict[str, Any],
    groups: dict[str, Any],
    variance: dict[str, Any] | None,
    test: dict[str, Any] | None,
) -> list[Advice]:
    """Advice on supervision, diversity, labels per annotator, classes and coverage."""
    used = [name for name, share in balance["shares"].items() if share > 0]
    if len(used) == 1:
        return [Advice("structure", None, {"only": used[0]}), *_coverage(annotations)]
    trainers = _trainers(annotations)
    finding = _finding(variance, test)
    return [
        _structure(variance, test, groups),
        _supervision(annotations, trainers, finding),
        Advice("diversity", "preserve", finding),
        _labels(annotations, trainers),
        *_balance(balance),
        *_coverage(annotations),
    ]


def limits(
    annotations: Annotations, shares: Shares | None, single: list[str], unassigned: int
) -> list[Limit]:
    """What can't be known; ``single`` are declared groups of one annotator."""
    found = []
    active = int((annotations.annotations_per_annotator > 0).sum())
    if annotations.repeated.any():
        found.append(Limit("repeated", {"labels": int(annotations.repeated.sum())}))
    if shares is None:
        return found
    found.append(Limit("one_label"))
    if active < 4:
        found.append(Limit("few_annotators", {"annotators": active}))
    hidden = (shares.item.hidden, shares.group_item.hidden)
    if max(hidden) >= _WORTH_SAYING and active >= 2:
        known = not np.isnan(shares.group_item.share)
        facts = {
            "annotators": active,
            "item": hidden[0],
            "group_item": hidden[1] if known else None,
        }
        found.append(Limit("hidden", facts))
    if single:
        found.append(Limit("single_groups", {"names": single}))
    if unassigned:
        found.append(Limit("unassigned", {"annotators": active, "unassigned": unassigned}))
    pairs = int((annotations.annotations_per_item == 2).sum())
    if pairs:
        found.append(Limit("two_labels", {"items": pairs}))
    return found


def _trainers(annotations: Annotations) -> Bools:
    """Annotators with enough labels to train a member of their own [A]."""
    enough: Bools = annotations.annotations_per_annotator >= ENOUGH
    if annotations.label_codes is None:
        return enough
    count = len(annotations.annotators)
    table = np.zeros((count, len(annotations.classes)))
    np.add.at(table, (annotations.annotator_codes, annotations.label_codes), 1.0)
    # The second most frequent class: of two classes, the rarer one.
    second = np.sort(table, axis=1)[:, -2] if table.shape[1] > 1 else np.zeros(count)
    return enough & (second >= ENOUGH_RARE)


def _finding(variance: dict[str, Any] | None, test: dict[str, Any] | None) -> dict[str, Any]:
    """What the test found, for the other advice."""
    if test is None or variance is None or test["p"] is None:
        return {"p": None, "structured": False}
    return {
        "p": test["p"],
        "structured": bool(test["structured"]),
        "lasting": variance["structured"],
    }


def _structure(
    variance: dict[str, Any] | None, test: dict[str, Any] | None, groups: dict[str, Any]
) -> Advice:
    if variance is None:
        return Advice("structure", None, {"untested": "these data can't show it"})
    if test is None or test["p"] is None:
        why = "no permutations were asked for" if test is None else "no item can be permuted"
        return Advice("structure", None, {"untested": why})
    p = {key: test[key]["p"] for key in ("annotator", "group_item", "views")}
    significant = {key for key, value in p.items() if value is not None and value <= LEVEL}
    kind = "views"
    if not test["structured"]:
        kind = "noise"
    elif "views" not in significant and "annotator" in significant:
        kind = "strictness"
    unstable = groups["kind"] == "found" and (groups["stability"] or 0.0) < 0.5
    facts = {
        "p": p,
        "significant": significant,
        "lasting": variance["structured"],
        "stability": max(groups["stability"] or 0.0, 0.0) if unstable else None,
    }
    return Advice("structure", kind, facts)


def _supervision(annotations: Annotations, trainers: Bools, finding: dict[str, Any]) -> Advice:
    count = int(trainers.sum())
    share = float(annotations.annotations_per_annotator[trainers].sum() / len(annotations))
    complete = float(np.median(annotations.coverage[trainers])) if count else 0.0
    enough = count >= _FEWEST_TRAINERS and share >= _MOST
    facts = {
        **finding,
        "trainers": count,
        "annotators": len(annotations.annotators),
        "by_class": annotations.label_codes is not None,
        "share": share,
        "complete": complete,
        "enough": enough,
    }
    if finding["structured"] and enough and complete >= _MOST:
        return Advice("supervision", "per-annotator", facts)
    return Advice("supervision", "random-select", facts)


def _labels(annotations: Annotations, trainers: Bools) -> Advice:
    per_annotator = annotations.annotations_per_annotator
    active = per_annotator[per_annotator > 0]
    facts = {
        "annotators": len(active),
        "least": int(active.min()),
        "median": float(np.median(active)),
        "few": int((active < ENOUGH).sum()),
        "trainers": int(trainers.sum()),
    }
    return Advice("labels", "enough" if trainers.all() else "few", facts)


def _balance(balance: dict[str, Any]) -> list[Advice]:
    hard, ratio, result = balance["hard"], balance["ratio"], []
    empty = [name for name, count in hard.items() if not count]
    if empty:
        result.append(Advice("balance", "empty", {"classes": empty}))
    if ratio is not None and ratio >= UNEVEN:
        rare = min(hard, key=hard.__getitem__)
        facts = {"ratio": ratio, "rare": rare, "items": hard[rare]}
        result.append(Advice("balance", "uneven", facts))
    return result


def _coverage(annotations: Annotations) -> list[Advice]:
    per_item, result = annotations.annotations_per_item, []
    single = int((per_item == 1).sum())
    if single:
        result.append(Advice("coverage", "single", {"single": single, "items": len(per_item)}))
    three = float((per_item >= 3).mean())
    if per_item.max() >= 2 and three < 0.5:
        result.append(Advice("coverage", "thin", {"three": three}))
    return result
