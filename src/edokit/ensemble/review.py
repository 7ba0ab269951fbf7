"""The items most in need of annotation, and why, ready for Label Studio."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edokit._errors import HAVE, InputError, are, examples, warn
from edokit._io import whole_file, write_json
from edokit._io.markup import xml_attribute, xml_text
from edokit._types import Floats
from edokit._version import __version__
from edokit.ensemble.pooled import Pooled
from edokit.metrics import entropy_items
from edokit.metrics._arrays import medians
from edokit.scales import Scale

CONTROL = "label"
"""Name of the labelling control."""
MINORITY = 0.2
"""Expected share from which on those who label otherwise are a minority that one label hides."""
MAJORITY = 0.5
"""Up to this expected share the likeliest label has no majority, and hides no minority."""
DISAGREE = 0.2
"""Probability that two annotators choose differently from which on they are expected to disagree,
whatever the number of classes; 0.89 against 0.11 of two. Of sets, for one label; on a scale, the
distance that two are expected to have, as a share of the range."""
APART = 0.25
"""Share of the largest spread from which on members are far apart."""
AWAY = 0.3
"""Share of a scale's range from which on others rate otherwise than the median: two points of five,
three of eleven."""


@dataclass(frozen=True)
class Review:
    """An item that people should look at."""

    item: str
    label: str | list[str]
    """The likeliest class; of sets, the labels above one half."""
    probabilities: Mapping[str, float]
    """Pooled probability of each class, or label."""
    entropy: float
    spread: float
    urgency: float
    """Mean of three numbers in [0, 1]: entropy (on a scale: standard deviation), expected minority
    (on a scale: distance from the median) and spread, each as a share of its largest value; of sets
    the mean over labels."""
    reasons: Mapping[str, str]
    """Why: ``disagreement``, ``minority``, ``no-majority``, ``spread``, each with a sentence."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; ``reasons`` are the sentences, ``kinds`` their names."""
        return {
            **asdict(self),
            "probabilities": dict(self.probabilities),
            "kinds": list(self.reasons),
            "reasons": list(self.reasons.values()),
        }


def review(pooled: Pooled, count: int) -> list[Review]:
    """The items most in need of annotation, the most urgent first.

    People are needed where annotators are expected to disagree (entropy), where one label would
    hide a minority's view, and where the members are far apart (spread).

    Parameters
    ----------
    pooled : Pooled
        What ``EDOEnsemble.describe`` returns.
    count : int
        How many items; all where there are fewer.

    Returns
    -------
    list of Review

    Examples
    --------
    >>> import numpy as np
    >>> from edokit import EDOEnsemble
    >>> from edokit.ensemble import review
    >>> yes = np.array([[0.1, 0.2], [0.4, 0.7], [0.9, 0.8]])
    >>> P = np.stack([1 - yes, yes], axis=2)  # [items, members, classes]
    >>> ensemble = EDOEnsemble().fit(P, np.array([[0, 0, 0], [0, 1, 1], [1, 1, 1]]))
    >>> [one.item for one in review(ensemble.describe(P), 1)]
    ['1']
    """
    return add_urgent([], pooled, count)


def add_urgent(queue: Sequence[Review], pooled: Pooled, count: int) -> list[Review]:
    """The ``count`` most urgent of a queue and of further items, such as those of another shard."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise InputError(
            f"{count!r} items can't be reviewed; the number must be 1 or more", "ask for 50"
        )
    entropies = pooled.entropy
    distances = pooled.spread / largest_spread(pooled.scale)
    measures = [*_uncertainties(pooled.probabilities, pooled.scale), distances]
    urgency = np.clip(np.stack(measures, axis=1), 0.0, 1.0).mean(axis=1)
    candidates = list(queue)
    for row in np.argsort(-urgency, kind="stable")[:count]:
        p = pooled.probabilities[row]
        entropy, spread = float(entropies[row]), float(pooled.spread[row])
        label, reasons = _reasons(pooled.classes, p, spread, pooled.scale)
        candidates.append(
            Review(
                item=str(pooled.items[row]),
                label=label,
                probabilities=dict(zip(pooled.classes, p.tolist(), strict=True)),
                entropy=entropy,
                spread=spread,
                urgency=float(urgency[row]),
                reasons=reasons,
            )
        )
    # Sorting keeps equally urgent ones in the order of the items.
    return sorted(candidates, key=lambda candidate: -candidate.urgency)[: int(count)]


def largest_spread(scale: Scale) -> float:
    """That of two members, evenly weighted, who are certain of opposite answers."""
    return 1.0 if scale.span is None else scale.span / 2


def _uncertainties(p: Floats, scale: Scale) -> tuple[Floats, Floats]:
    """How uncertain an answer is, and how many choose otherwise, as shares of the most [N]."""
    if scale.span is not None:
        place = np.array(scale.positions) / scale.span
        deviation = scale.deviations(p) / scale.span
        away = np.abs(place - place[medians(p)][:, None])
        return 2.0 * deviation, 2.0 * np.sum(p * away, axis=1)
    rows = scale.rows(p)
    classes = max(rows.shape[1], 2)
    nats = entropy_items(rows) / math.log(classes)
    minority = (1.0 - rows.max(axis=1)) / (1.0 - 1.0 / classes)
    return scale.per_item(nats, len(p)), scale.per_item(minority, len(p))


Finding = tuple[str, str, str]
"""Kind of a reason, what it is, and its size in words."""


def _reasons(
    classes: Sequence[str], p: Floats, spread: float, scale: Scale
) -> tuple[str | list[str], dict[str, str]]:
    """The label, and why people should look at it; sizes decide the words."""
    about: Mapping[str, Callable[..., tuple[Any, dict[Finding, float]]]]
    about = {"nominal": _about_class, "ordinal": _about_rating, "multi-label": _about_set}
    label, findings = about[scale.kind](classes, p, scale)
    far = spread / largest_spread(scale) / APART
    findings["spread", "the members are far apart", f"spread {spread:.2f}"] = far
    reasons = {
        kind: f"{finding}: {size}"
        for (kind, finding, size), share in findings.items()
        if share >= 1
    }
    if not reasons:
        kind, _, size = max(findings, key=findings.__getitem__)
        reasons = {kind: f"little stands out: {size}"}
    return label, reasons


def _about_rating(
    classes: Sequence[str], p: Floats, scale: Scale
) -> tuple[str, dict[Finding, float]]:
    """The likeliest point, how far two are expected to be apart, and who is off the median."""
    assert scale.span is not None
    place = np.array(scale.positions)
    middle = int(medians(p[None])[0])
    distance = float(p @ np.abs(place[:, None] - place) @ p)
    away = np.abs(place - place[middle])
    far = away >= AWAY * scale.span - 1e-9
    nearest, far_share = float(away[far].min(initial=scale.span)), float(p[far].sum())
    is_majority = far_share > MAJORITY
    minority = (
        "no-majority" if is_majority else "minority",
        f"most are expected to rate otherwise than the median {classes[middle]!r}"
        if is_majority
        else f"the median {classes[middle]!r} hides a minority",
        f"about {far_share:.0%} are expected to rate {nearest:g} or more away from it",
    )
    differing = f"two annotators would be {distance:.1f} apart"
    return classes[int(p.argmax())], {
        ("disagreement", "annotators are expected to disagree", differing): distance
        / (DISAGREE * scale.span),
        minority: far_share / MINORITY,
    }


def _about_set(
    classes: Sequence[str], p: Floats, scale: Scale
) -> tuple[list[str], dict[Finding, float]]:
    """The labels above one half, and the one that people are expected to differ most about."""
    likely_labels = [name for name, share in zip(classes, p, strict=True) if share > MAJORITY]
    c = int(np.minimum(p, 1.0 - p).argmax())
    name, share = classes[c], float(p[c])
    minority, disagreement = min(share, 1.0 - share), 2.0 * share * (1.0 - share)
    verb = "leave out" if share > MAJORITY else "choose"
    return likely_labels, {
        (
            "disagreement",
            f"annotators are expected to disagree about {name!r}",
            f"two would differ in {disagreement:.0%} of cases",
        ): disagreement / DISAGREE,
        (
            "minority",
            "the set hides a minority",
            f"about {minority:.0%} are expected to {verb} {name!r}",
        ): minority / MINORITY,
    }


def _about_class(
    classes: Sequence[str], p: Floats, scale: Scale
) -> tuple[str, dict[Finding, float]]:
    """The likeliest class, and how many are expected to choose another one."""
    order = np.argsort(-p, kind="stable")
    (label, *runners_up), (top_share, *shares) = [classes[c] for c in order], p[order].tolist()
    minority_share, disagreement = 1.0 - top_share, 1.0 - float(p @ p)
    another = f"{runners_up[0]!r}" if runners_up else "another class"
    if len(runners_up) > 1:
        another = f"another class, most often {another} ({shares[0]:.0%})"
    minority = (
        "minority",
        f"the label {label!r} hides a minority",
        f"about {minority_share:.0%} are expected to choose {another}",
    )
    if top_share <= MAJORITY + 1e-9:
        minority = (
            "no-majority",
            "no label is expected to have a majority",
            f"{label!r} has about {top_share:.0%}, {runners_up[0]!r} {shares[0]:.0%}",
        )
    differing = f"two annotators would choose differently in {disagreement:.0%} of cases"
    return label, {
        ("disagreement", "annotators are expected to disagree", differing): disagreement / DISAGREE,
        minority: minority_share / MINORITY,
    }


def label_studio_tasks(
    queue: Sequence[Review], texts: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Tasks to import, in the order of the queue, with the ensemble's label as a prediction.

    An export of the labelled tasks is read by `read_label_studio(…, item="item")`.
    """
    missing = [] if texts is None else [review.item for review in queue if review.item not in texts]
    if missing:
        raise InputError(
            f"of the items to review, {are(len(missing), len(queue), HAVE)} no text:"
            f" {examples(missing)}",
            "give the texts of all items, or none",
        )
    tasks = []
    for review in queue:
        # Beside item and text no field is text: an export must not take one for the item's text.
        data = {
            "item": review.item,
            **({} if texts is None else {"text": texts[review.item]}),
            "probabilities": dict(review.probabilities),
            "entropy": review.entropy,
            "spread": review.spread,
            "urgency": review.urgency,
            "reasons": list(review.reasons.values()),
        }
        labels = [review.label] if isinstance(review.label, str) else review.label
        label = {
            "id": CONTROL,
            "from_name": CONTROL,
            "to_name": "text",
            "type": "choices",
            "value": {"choices": [xml_text(name) for name in labels]},
            "meta": {"text": [f"{name} {p:.4f}" for name, p in review.probabilities.items()]},
        }
        prediction = {
            "model_version": f"edokit {__version__}",
            # Of a set, of the label that is least certain.
            "score": min(
                p if name in labels else 1.0 - p for name, p in review.probabilities.items()
            )
            if isinstance(review.label, list)
            else review.probabilities[review.label],
            "result": [label],
        }
        tasks.append({"data": data, "predictions": [prediction]})
    return tasks


def labelling_config(classes: Sequence[str], texts: bool, sets: bool = False) -> str:
    """The labelling interface of a Label Studio project for these tasks."""
    choice = 'choice="multiple"' if sets else 'choice="single" required="true"'
    choices = "\n".join(f"    <Choice value={xml_attribute(name)}/>" for name in classes)
    value = "$text" if texts else "$item"
    return (
        "<View>\n"
        f'  <Text name="text" value="{value}"/>\n'
        f'  <Choices name="{CONTROL}" toName="text" {choice}>\n'
        f"{choices}\n"
        "  </Choices>\n"
        "</View>\n"
    )


def write_review(
    queue: Sequence[Review],
    classes: Sequence[str],
    path: str | Path,
    texts: Mapping[str, str] | None = None,
) -> Path:
    """Write tasks for Label Studio, and beside them (``.xml``) the labelling interface.

    Parameters
    ----------
    queue : sequence of Review
        What ``review`` returned.
    classes : sequence of str
        Classes to choose from.
    path : str or Path
        File for the tasks; ends in ``.json``.
    texts : mapping of str to str, default=None
        Text of each item; without it annotators see the item's id.

    Returns
    -------
    Path
        File with the labelling interface.

    Raises
    ------
    InputError
        If an item has no text, or the path does not end in ``.json``.
    """
    path = check_path(path)
    changed = [name for name in classes if xml_text(name) != name]
    if changed:
        warn(
            f"{are(len(changed), len(classes), HAVE)} control characters in the name, which the"
            f" labelling interface can't hold; annotators choose {examples(map(xml_text, changed))}"
        )
    write_json(label_studio_tasks(queue, texts), path)
    config = path.with_suffix(".xml")
    sets = any(isinstance(review.label, list) for review in queue)
    with whole_file(config) as temporary:
        temporary.write_text(labelling_config(classes, texts is not None, sets), encoding="utf-8")
    return config


def check_path(path: str | Path) -> Path:
    """The path, if tasks can go there."""
    path = Path(path)
    if path.suffix.lower() != ".json":
        raise InputError(
            f"{path}: tasks for Label Studio are written as .json", "end the name in .json"
        )
    return path
