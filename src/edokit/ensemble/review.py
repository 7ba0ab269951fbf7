"""The items most in need of annotation, and why, ready for Label Studio."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edokit._errors import HAVE, InputError, are, examples, warn
from edokit._io import whole_file, write_json
from edokit._io.markup import xml_attribute, xml_text
from edokit._types import Floats
from edokit._version import __version__
from edokit.ensemble.fitted import Pooled

CONTROL = "label"
"""Name of the labelling control."""
MINORITY = 0.2
"""Expected share from which on those who label otherwise are a minority that one label hides."""
MAJORITY = 0.5
"""Up to this expected share the likeliest label has no majority, and hides no minority."""
DISAGREE = 0.2
"""Probability that two annotators choose differently from which on they are expected to disagree,
whatever the number of classes; 0.89 against 0.11 of two."""
APART = 0.25
"""Share of the largest spread from which on members are far apart."""


@dataclass(frozen=True)
class Review:
    """An item that people should look at."""

    item: str
    label: str
    """The likeliest class."""
    probabilities: Mapping[str, float]
    """Pooled probability of each class."""
    entropy: float
    spread: float
    urgency: float
    """Mean of three numbers in [0, 1]: entropy, expected minority and spread, each as a share of
    its largest value."""
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
    classes = max(len(pooled.classes), 2)
    largest = math.log(classes)
    entropies, minority = pooled.entropy, 1.0 - pooled.probabilities.max(axis=1)
    # Each as a share of its largest value; members of two opposite certain opinions, evenly
    # weighted, lie 1 from their pool.
    measures = [entropies / largest, minority / (1.0 - 1.0 / classes), pooled.spread]
    urgency = np.clip(np.stack(measures, axis=1), 0.0, 1.0).mean(axis=1)
    found = list(queue)
    for row in np.argsort(-urgency, kind="stable")[:count]:
        p = pooled.probabilities[row]
        entropy, spread = float(entropies[row]), float(pooled.spread[row])
        label, reasons = _reasons(pooled.classes, p, spread)
        found.append(
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
    return sorted(found, key=lambda one: -one.urgency)[: int(count)]


def _reasons(classes: Sequence[str], p: Floats, spread: float) -> tuple[str, dict[str, str]]:
    """The likeliest label, and why people should look at it; sizes decide the words."""
    order = np.argsort(-p, kind="stable")
    (label, *others), (most, *shares) = [classes[c] for c in order], p[order].tolist()
    rest, differ = 1.0 - most, 1.0 - float(p @ p)
    another = f"{others[0]!r}" if others else "another class"
    if len(others) > 1:
        another = f"another class, most often {another} ({shares[0]:.0%})"
    minority = (
        "minority",
        f"the label {label!r} hides a minority",
        f"about {rest:.0%} are expected to choose {another}",
    )
    if most <= MAJORITY + 1e-9:
        minority = (
            "no-majority",
            "no label is expected to have a majority",
            f"{label!r} has about {most:.0%}, {others[0]!r} {shares[0]:.0%}",
        )
    differing = f"two annotators would choose differently in {differ:.0%} of cases"
    found = {
        ("disagreement", "annotators are expected to disagree", differing): differ / DISAGREE,
        minority: rest / MINORITY,
        ("spread", "the members are far apart", f"spread {spread:.2f}"): spread / APART,
    }
    named = {kind: f"{what}: {size}" for (kind, what, size), share in found.items() if share >= 1}
    if not named:
        kind, _, size = max(found, key=found.__getitem__)
        named = {kind: f"little stands out: {size}"}
    return label, named


def label_studio_tasks(
    queue: Sequence[Review], texts: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Tasks to import, in the order of the queue, with the ensemble's label as a prediction.

    An export of the labelled tasks is read by `read_label_studio(…, item="item")`.
    """
    missing = [] if texts is None else [one.item for one in queue if one.item not in texts]
    if missing:
        raise InputError(
            f"of the items to review, {are(len(missing), len(queue), HAVE)} no text:"
            f" {examples(missing)}",
            "give the texts of all items, or none",
        )
    tasks = []
    for one in queue:
        # Beside item and text no field is text: an export must not take one for the item's text.
        data = {
            "item": one.item,
            **({} if texts is None else {"text": texts[one.item]}),
            "probabilities": dict(one.probabilities),
            "entropy": one.entropy,
            "spread": one.spread,
            "urgency": one.urgency,
            "reasons": list(one.reasons.values()),
        }
        label = {
            "id": CONTROL,
            "from_name": CONTROL,
            "to_name": "text",
            "type": "choices",
            "value": {"choices": [xml_text(one.label)]},
            "meta": {"text": [f"{name} {p:.4f}" for name, p in one.probabilities.items()]},
        }
        prediction = {
            "model_version": f"edokit {__version__}",
            "score": one.probabilities[one.label],
            "result": [label],
        }
        tasks.append({"data": data, "predictions": [prediction]})
    return tasks


def labelling_config(classes: Sequence[str], texts: bool) -> str:
    """The labelling interface of a Label Studio project for these tasks."""
    choices = "\n".join(f"    <Choice value={xml_attribute(name)}/>" for name in classes)
    shown = "$text" if texts else "$item"
    return (
        "<View>\n"
        f'  <Text name="text" value="{shown}"/>\n'
        f'  <Choices name="{CONTROL}" toName="text" choice="single" required="true">\n'
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
    with whole_file(config) as temporary:
        temporary.write_text(labelling_config(classes, texts is not None), encoding="utf-8")
    return config


def check_path(path: str | Path) -> Path:
    """The path, if tasks can go there."""
    path = Path(path)
    if path.suffix.lower() != ".json":
        raise InputError(
            f"{path}: tasks for Label Studio are written as .json", "end the name in .json"
        )
    return path
