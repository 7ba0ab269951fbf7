"""Files of what an ensemble answers, and the items most in need of people, for Label Studio."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from edokit._errors import HAVE, InputError, are, check_number, examples, option, warn
from edokit._io.atomic import whole_file
from edokit._io.documents import write_json
from edokit._io.markup import xml_attribute, xml_text
from edokit._io.tables import write_tables
from edokit._package import __version__
from edokit._types import Bools, Floats
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.pooled import Pooled
from edokit.metrics import entropy_items, medians
from edokit.panels import Panel, PanelComparison
from edokit.predictions.core import Predictions
from edokit.predictions.shards import Shards, read_shards
from edokit.runs import refuse_input
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


def review(pooled: Pooled, count: int, *, annotated: bool = False) -> list[Review]:
    """The items most in need of annotation, the most urgent first.

    People are needed where annotators are expected to disagree (entropy), where one label would
    hide a minority's view, and where the members are far apart (spread).

    Parameters
    ----------
    pooled : Pooled
        What ``EDOEnsemble.describe`` returns.
    count : int
        How many items; all where there are fewer.
    annotated : bool, default=False
        Whether annotators have labelled the items: then reasons speak of what the model expects.

    Returns
    -------
    list of Review

    Examples
    --------
    >>> import numpy as np
    >>> from edokit import EDOEnsemble
    >>> from edokit.ensemble.reviews import review
    >>> yes = np.array([[0.1, 0.2], [0.4, 0.7], [0.9, 0.8]])
    >>> P = np.stack([1 - yes, yes], axis=2)  # [items, members, classes]
    >>> ensemble = EDOEnsemble().fit(P, np.array([[0, 0, 0], [0, 1, 1], [1, 1, 1]]))
    >>> [one.item for one in review(ensemble.describe(P), 1)]
    ['1']
    """
    return add_urgent([], pooled, count, annotated=annotated)


def add_urgent(
    queue: Sequence[Review], pooled: Pooled, count: int, *, annotated: bool = False
) -> list[Review]:
    """The ``count`` most urgent of a queue and of further items, such as those of another shard."""
    check_number("review", count, 1, whole=True, hint="ask for 50")
    scale, entropies = pooled.scale, pooled.entropy
    farness = pooled.spread / _largest_spread(scale)
    measures = [*_uncertainties(pooled.probabilities, scale), farness]
    urgency = np.clip(np.stack(measures, axis=1), 0.0, 1.0).mean(axis=1)
    candidates = list(queue)
    for row in np.argsort(-urgency, kind="stable")[:count]:
        p, spread = pooled.probabilities[row], float(pooled.spread[row])
        label: str | list[str] = pooled.classes[int(p.argmax())]
        if scale.kind == "multi-label":
            likely = zip(pooled.classes, p, strict=True)
            label = [name for name, share in likely if share > MAJORITY]
        candidates.append(
            Review(
                item=str(pooled.items[row]),
                label=label,
                probabilities=dict(zip(pooled.classes, p.tolist(), strict=True)),
                entropy=float(entropies[row]),
                spread=spread,
                urgency=float(urgency[row]),
                reasons=_reasons(pooled.classes, p, spread, scale, annotated),
            )
        )
    # Sorting keeps equally urgent ones in the order of the items.
    return sorted(candidates, key=lambda candidate: -candidate.urgency)[: int(count)]


def _largest_spread(scale: Scale) -> float:
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


def _reasons(
    classes: Sequence[str], p: Floats, spread: float, scale: Scale, annotated: bool
) -> dict[str, str]:
    """Why people should look at an item with pool p [C]; sizes decide the words."""
    names = [repr(name) for name in classes]
    if scale.kind == "multi-label":
        # The label that people are expected to differ most about.
        c = int(np.minimum(p, 1.0 - p).argmax())
        names, p = [f"not {names[c]}", names[c]], np.array([1.0 - p[c], p[c]])
    centre, distances, far = _distances(p, scale)
    difference, minority = float(p @ distances @ p), float(p[far].sum())
    runner_up = int(np.where(far, p, -1.0).argmax())
    unsure, expecting = "annotators are expected to disagree", ""
    if annotated:
        unsure, expecting = "the model is unsure", "by its answer "
    differing = f"{expecting}two annotators would choose differently in {difference:.0%} of cases"
    answer, otherwise = "the label", "choose otherwise"
    if scale.span is not None:
        differing = f"{expecting}two annotators would be {difference * scale.span:.1f} apart"
        answer, nearest = "the median", distances[centre][far].min(initial=1.0) * scale.span
        otherwise = f"rate {nearest:g} or more away"
    kind, words = "minority", f"{answer} {names[centre]} hides a minority"
    if minority >= MAJORITY - 1e-9:
        kind, words = "no-majority", f"{answer} {names[centre]} has no majority ({p[centre]:.0%})"
    size = (
        f"{expecting}about {minority:.0%} are expected to {otherwise}, most often"
        f" {names[runner_up]} ({p[runner_up]:.0%})"
    )
    farness, far_apart = spread / _largest_spread(scale), f"spread {spread:.2f}"
    findings = [
        ("disagreement", unsure, differing, difference / DISAGREE),
        (kind, words, size, minority / MINORITY),
        ("spread", "the members are far apart", far_apart, farness / APART),
    ]
    reasons = {kind: f"{words}: {size}" for kind, words, size, ratio in findings if ratio >= 1}
    if not reasons:
        kind, _, size, _ = max(findings, key=lambda finding: finding[3])
        reasons = {kind: f"little stands out: {size}"}
    return reasons


def _distances(p: Floats, scale: Scale) -> tuple[int, Floats, Bools]:
    """The answer to give, distances of answers [C, C] as shares of the largest, and which answers
    are far from it [C]: other classes, or points of a scale."""
    if scale.span is None:
        centre = int(p.argmax())
        return centre, 1.0 - np.eye(len(p)), np.arange(len(p)) != centre
    place, centre = np.array(scale.positions) / scale.span, int(medians(p[None])[0])
    distances = np.abs(place[:, None] - place)
    return centre, distances, distances[centre] >= AWAY - 1e-9


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
    return [_task(review, None if texts is None else texts[review.item]) for review in queue]


def _task(review: Review, text: str | None) -> dict[str, Any]:
    # Beside item and text no field is text: an export must not take one for the item's text.
    content = review.to_dict()
    data = {"item": review.item} if text is None else {"item": review.item, "text": text}
    names = ("probabilities", "entropy", "spread", "urgency", "reasons")
    data |= {name: content[name] for name in names}
    labels = [review.label] if isinstance(review.label, str) else review.label
    # Of a set, the score is that of the label that is least certain.
    shares = [p if name in labels else 1.0 - p for name, p in review.probabilities.items()]
    sets = isinstance(review.label, list)
    result = {
        "id": CONTROL,
        "from_name": CONTROL,
        "to_name": "text",
        "type": "choices",
        "value": {"choices": [xml_text(name) for name in labels]},
        "meta": {"text": [f"{name} {p:.4f}" for name, p in review.probabilities.items()]},
    }
    prediction = {
        "model_version": f"edokit {__version__}",
        "score": min(shares) if sets else review.probabilities[labels[0]],
        "result": [result],
    }
    return {"data": data, "predictions": [prediction]}


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


# --- Files of answers -----------------------------------------------------------------------------


def predict_to_file(
    ensemble: EDOEnsemble,
    predictions: Predictions | Shards | Iterable[Pooled] | str | Path,
    out: str | Path,
    *,
    review: int | None = None,
    review_out: str | Path | None = None,
    texts: Callable[[], Mapping[str, str] | None] | Mapping[str, str] | None = None,
    quote_formulas: bool = False,
    answer_for: str | None = None,
    panel: Panel | None = None,
    level: float = 0.9,
) -> dict[str, Any]:
    """Write the pooled probabilities of all items; shards are read one by one.

    Parameters
    ----------
    ensemble : EDOEnsemble
        A fitted ensemble.
    predictions : Predictions, Shards, str or Path
        The members' predictions, or where they are: a file, or a folder of shards. Or what the
        ensemble made of them already, as `Pooled` in parts.
    out : str or Path
        The table (.csv, .tsv, .parquet or .jsonl): item, ``p_<class>`` columns, entropy, spread
        and label; see `Pooled.to_table`.
    review : int, optional
        Also write so many items that most need annotators, as tasks for Label Studio.
    review_out : str or Path, optional
        The file of these tasks (.json); by default beside `out`.
    texts : mapping of str to str or callable, optional
        Text of each item to review, or a function that reads them.
    quote_formulas : bool, default=False
        In a CSV for a spreadsheet, put a quote before ids and labels that it would run as formulas.
    answer_for : {"ce", "md", "w1", "f1"}, optional
        Write answers for this metric in the ``p_<class>`` columns, and its name in ``answer_for``.
    panel : Panel, optional
        Write what this panel would answer, a row per item, from predictions for pairs of an item
        and an annotator.
    level : float, default=0.9
        Level of the intervals of the panel's votes.

    Returns
    -------
    dict
        ``out``, ``items`` (and ``pairs`` of an item and an annotator, where predictions are of
        these), mean ``entropy`` and ``spread``; ``answer_for`` with the metric and its
        step where answers were asked for, and ``review`` with ``out``, ``config`` and ``items``
        where a review was.

    Raises
    ------
    InputError
        If members are missing or a file can't be read or written; nothing is written then.
    """
    out = Path(out)
    tasks = Path(review_out) if review_out else out.with_name(f"{out.stem}-review.json")
    if review is not None:
        check_path(tasks)
    if isinstance(predictions, str | Path):
        for path in (out, tasks) if review is not None else (out,):
            refuse_input(path, Path(predictions))

    def pooled_parts() -> Iterator[Pooled]:
        for part in _in_parts(predictions):
            if isinstance(part, Pooled):
                yield part
            else:
                pooled = ensemble.describe(part, answer_for=answer_for, only_knowing=True)
                yield pooled if panel is None else pooled.panel(panel, level=level)

    summary = _Summary(review)
    item_texts: Mapping[str, str] | None = None

    def tables() -> Iterator[pa.Table]:
        nonlocal item_texts
        for pooled in pooled_parts():
            summary.add(pooled)
            yield pooled.to_table()
        if review is not None:
            # Texts that are missing are noticed before anything is in its place.
            item_texts = texts() if callable(texts) else texts
            label_studio_tasks(summary.queue, item_texts)

    rows = write_tables(tables(), out, quote_formulas=quote_formulas)
    result: dict[str, Any] = {"out": str(out), **summary.to_dict(rows)}
    if answer_for is not None:
        result["answer_for"] = {"metric": answer_for, **asdict(ensemble.answers_[answer_for])}
    if review is None:
        return result
    if item_texts is None:
        warn(
            "annotators who review will see ids of items alone; give"
            f" {option('annotations')} or {option('texts')}"
        )
    config = write_review(summary.queue, summary.classes, tasks, item_texts)
    review_files = {"out": str(tasks), "config": str(config), "items": len(summary.queue)}
    return {**result, "review": review_files}


class _Summary:
    """What `predict_to_file` reports of pooled items, part by part."""

    def __init__(self, review: int | None) -> None:
        self.review = review
        self.queue: list[Review] = []
        self.classes: tuple[str, ...] = ()
        self.entropy = self.spread = 0.0
        self.items: set[str] = set()  # of pairs
        self.pairs = 0

    def add(self, pooled: Pooled) -> None:
        """Count further items."""
        self.entropy += float(pooled.entropy.sum())
        self.spread += float(pooled.spread.sum())
        self.classes = pooled.classes
        if pooled.rows.people:
            if self.review is not None:
                raise InputError(
                    "a review picks items, but these predictions are of pairs of an item and an"
                    " annotator",
                    f"name the {option('panel')} whose view counts, or leave {option('review')}"
                    " out",
                )
            self.items.update(map(str, pooled.rows.items))
            self.pairs += int(pooled.rows.is_named.sum())
        if self.review is not None:
            self.queue = add_urgent(self.queue, pooled, self.review)

    def to_dict(self, rows: int) -> dict[str, Any]:
        """Numbers of items and of pairs, and means over rows."""
        pairs = {"pairs": self.pairs} if self.items else {}
        means = {"entropy": self.entropy / rows, "spread": self.spread / rows}
        return {"items": len(self.items) or rows, **pairs, **means}


def _in_parts(predictions: Any) -> Iterable[Any]:
    """Predictions of a file or a folder, shard by shard; others as they are."""
    if isinstance(predictions, str | Path):
        return read_shards(predictions)
    return [predictions] if isinstance(predictions, Predictions) else predictions


def compare_panels(
    ensemble: EDOEnsemble,
    predictions: Predictions | Iterable[Predictions] | str | Path,
    one: Panel,
    other: Panel,
    *,
    level: float = 0.9,
    answer_for: str | None = None,
) -> PanelComparison:
    """Compare what two panels would answer; shards are read one by one.

    Parameters
    ----------
    ensemble : EDOEnsemble
        A fitted ensemble.
    predictions : Predictions, Shards, str or Path
        The members' predictions for pairs of an item and an annotator, or where they are.
    one, other : Panel
    level : float, default=0.9
        Level of the intervals of the panels' votes.
    answer_for : {"ce", "md", "w1", "f1"}, optional
        Compare answers for this metric instead of the pool.

    Returns
    -------
    PanelComparison

    Raises
    ------
    InputError
        If a panel's annotators have no answers, or the panels answered different items.
    """
    parts = [
        ensemble.describe(part, answer_for=answer_for, only_knowing=True)
        for part in _in_parts(predictions)
    ]
    return Pooled.concatenate(parts).compare(one, other, level=level)
