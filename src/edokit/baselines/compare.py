"""Methods side by side: learned on one sample of items, judged once on another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import EDOError, InputError, are, examples, one_of
from edokit._io.markup import FORMATS, Table
from edokit._types import Floats
from edokit.annotations import Annotations, Ties
from edokit.baselines.method import Method
from edokit.baselines.registry import find_method, make_method, method_names
from edokit.baselines.scores import METRICS, Score, item_scores, judged
from edokit.ensemble.inputs import align_inputs, as_predictions
from edokit.metrics import entropy
from edokit.predictions import Predictions

Sample = tuple[Predictions, Annotations]
Pair = tuple[Predictions, Predictions]
Step = Callable[[int, int, str], None]

REFERENCE = "uniform"
"""The method that the others are tested against."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """What each method scored on the test items."""

    scores: tuple[Score, ...]
    """One per method, in the order of the table."""
    fitted: Mapping[str, Method]
    """The fitted methods by name."""
    answers: Predictions
    """What each method says of the test items: [N, methods, C]."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Items, classes, level of the intervals, the best CE that is possible on these answers."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Methods that could not be fitted on these data, with the reason."""

    def __getitem__(self, name: str) -> Score:
        """The scores of one method."""
        return {score.name: score for score in self.scores}[name]

    @property
    def lowest(self) -> Score:
        """The method with the lowest CE."""
        return min(self.scores, key=lambda score: score.ce)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values: ``{"methods": [{"name", "f1", "ce", "md", "bs", …}], …}``."""
        return {
            "methods": [score.to_dict() for score in self.scores],
            "skipped": [{"name": name, "reason": reason} for name, reason in self.skipped.items()],
            "lowest_ce": self.lowest.name,
            **self.facts,
        }

    def table(self) -> Table:
        """F1, CE, MD and BS, and how the CE compares with the plain mean's; for the terminal."""
        from edokit.baselines.table import short_table

        return short_table(self)

    def text(self, kind: str) -> str:
        """Markdown or LaTeX with all intervals, or every number as CSV."""
        from edokit.baselines.table import full_table, number_table

        one_of("format", kind, FORMATS)
        return (number_table(self) if kind == "csv" else full_table(self)).text(kind)


def compare(
    dev: tuple[Any, Any],
    test: tuple[Any, Any],
    *,
    methods: Iterable[str] | None = None,
    extra: Mapping[str, tuple[Any, Any]] | None = None,
    seed: int = 0,
    samples: int = 1000,
    level: float = 0.95,
    ties: Ties = "first",
    step: Step = lambda done, total, what: None,
) -> Comparison:
    """Fit every method on ``dev`` (predictions, annotations) and judge it once on ``test``.

    ``methods`` are names (all, unless told); `uniform` is always among them. ``extra`` are other
    pools of members on the same items, NAME: (dev predictions, test predictions). Each gives a
    row NAME, the plain mean of its members, and, if there are several, ``single:NAME``, what one
    of them scores alone on average, and ``edo:NAME``. A method that these data do not allow is
    left out, with the reason. ``samples`` bootstrap samples and
    ``2 * samples`` sign flips give intervals and tests; 0 leaves them out.
    """
    known = _sample(*dev)
    unseen = _sample(*test, classes=known[1].classes)
    unseen = (same_members(known[0], unseen[0], "test predictions"), unseen[1])
    check_items_apart(known[0], unseen[0])
    pools = {name: _pair(name, pair, known, unseen) for name, pair in (extra or {}).items()}
    names = _names(methods, pools)
    jobs = [_Job(name, find_method(name).about, name, (known[0], unseen[0])) for name in names]
    for name, pair in pools.items():
        jobs += _jobs(name, pair, names)
    y = {
        "dev": known[1].hard_labels(ties=ties, random_state=seed),
        "test": unseen[1].hard_labels(ties=ties, random_state=seed),
    }
    fitted: dict[str, Method] = {}
    scores, answers, losses, skipped = [], {}, {}, {}
    for number, job in enumerate(jobs):
        step(number, len(jobs), job.name)
        started = time.perf_counter()
        method = make_method(job.method, seed=seed, ties=ties)
        try:
            method.fit(job.pools[0], known[1])
        except EDOError as error:
            if job.method == REFERENCE:
                raise
            # The other methods' results are not lost for it.
            skipped[job.name] = error.message
            continue
        fitted[job.name] = method
        seconds = time.perf_counter() - started
        on_dev = _losses(job, fitted[job.name], job.pools[0], known[1], y["dev"])
        losses[job.name] = _losses(job, fitted[job.name], job.pools[1], unseen[1], y["test"])
        answers[job.name] = fitted[job.name].predict_proba(job.pools[1])
        scores.append(
            Score(
                job.name,
                job.about,
                dev={metric: float(values.mean()) for metric, values in on_dev.items()},
                seconds=seconds,
                size=None if job.alone else getattr(fitted[job.name], "size_", None),
                weights=None if job.alone else _weights(fitted[job.name]),
            )
        )
    step(len(jobs), len(jobs), "done")
    table = judged(scores, losses, REFERENCE, samples=samples, level=level, seed=seed)
    return Comparison(
        tuple(table),
        fitted,
        Predictions.from_arrays(
            list(answers.values()),
            items=unseen[0].items,
            members=list(answers),
            classes=unseen[1].classes,
            layout=None,
        ),
        {
            "reference": REFERENCE,
            "items": {"dev": len(known[0]), "test": len(unseen[0])},
            "members": len(known[0].members),
            "classes": list(unseen[1].classes),
            "ce_floor": entropy(unseen[1].soft_labels),
            "level": level,
            "samples": samples,
            "seed": seed,
        },
        skipped,
    )


@dataclass(frozen=True)
class _Job:
    """One row of the table."""

    name: str
    about: str
    method: str
    """The method to fit."""
    pools: Pair
    """Its members on dev and on test."""
    alone: bool = False
    """Whether the row is about the members alone, not about their pool."""


def _jobs(name: str, pools: Pair, names: list[str]) -> list[_Job]:
    """The rows of an extra pool."""
    count = len(pools[0].members)
    if count == 1:
        return [_Job(name, f"{name} alone", REFERENCE, pools)]
    rows = [
        _Job(f"single:{name}", f"one of the {count} {name} members, on average", REFERENCE, pools),
        _Job(name, f"the plain mean of the {count} {name} members", REFERENCE, pools),
        _Job(f"edo:{name}", f"EDO on the {count} {name} members", "edo", pools),
    ]
    rows[0] = replace(rows[0], alone=True)
    return rows if "edo" in names else rows[:2]


def _losses(
    job: _Job,
    method: Method,
    predictions: Predictions,
    people: Annotations,
    y: npt.NDArray[np.int32],
) -> dict[str, Floats]:
    """Each metric item by item [N]."""
    q = people.soft_labels
    if job.alone:
        P = np.asarray(predictions.probabilities, dtype=np.float64)
        each = [item_scores(P[:, k], P[:, k].argmax(axis=1), q, y) for k in range(P.shape[1])]
        return {metric: np.mean([one[metric] for one in each], axis=0) for metric in METRICS}
    codes = {name: code for code, name in enumerate(people.classes)}
    hard = np.array([codes[str(name)] for name in method.predict(predictions)])
    return item_scores(method.predict_proba(predictions), hard, q, y)


def _sample(
    predictions: Any, annotations: Any, classes: tuple[str, ...] | None = None
) -> tuple[Predictions, Annotations]:
    """Predictions and annotations of the same items in the same order, classes in one order."""
    named, people = align_inputs(as_predictions(predictions), annotations)
    if classes is not None and people.classes != classes:
        people = people.with_classes(classes)
        named = named.order_classes(classes)
    return named, people


def check_items_apart(dev: Predictions, test: Predictions) -> None:
    """Judging on items that were learned from would flatter whatever learns most.

    Splits may number their items alike, so an id in both is the same item only if the members say
    the same about it.
    """
    shared = sorted(set(dev.items) & set(test.items))
    if shared and np.array_equal(_rows(dev, shared), _rows(test.select(dev.members), shared)):
        raise InputError(
            "the items to judge on must be others than those to learn from, but"
            f" {are(len(shared), len(test.items))} both: {examples(shared)}",
            "give the predictions of the test items alone",
        )


def _rows(predictions: Predictions, items: Sequence[str]) -> Any:
    """Probabilities of these items [n, K, C]."""
    position = {item: place for place, item in enumerate(predictions.items)}
    return predictions.probabilities[[position[item] for item in items]]


def _pair(name: str, pair: tuple[Any, Any], dev: Sample, test: Sample) -> Pair:
    """An extra pool's predictions in the order of the others' items and classes."""
    if ":" in name or not name:
        raise InputError(
            f"the name of an extra pool must be text without a colon, but got {name!r}",
            "choose another name",
        )
    first, second = (
        as_predictions(given)
        .align(sample[0].items, f"the predictions to compare {name!r} with")
        .order_classes(sample[1].classes)
        for given, sample in zip(pair, (dev, test), strict=True)
    )
    return first, same_members(first, second, f"test predictions of {name!r}")


def same_members(dev: Predictions, test: Predictions, what: str) -> Predictions:
    """The test predictions of dev's members, in dev's order."""
    missing = [member for member in dev.members if member not in test.members]
    if missing:
        raise InputError(
            f"the {what} must hold the members of dev, but {are(len(missing))} missing:"
            f" {examples(missing)}",
            "score the test items with these members, too",
        )
    return test.select(dev.members)


def _names(methods: Iterable[str] | None, extra: Mapping[str, Any]) -> list[str]:
    """The methods to compare, the reference always among them, in the order of tables."""
    known = method_names()
    asked = known if methods is None else [find_method(name).name for name in methods]
    taken = [name for name in extra if name in known]
    if taken:
        raise InputError(
            f"the name of an extra pool must not be that of a method, but got {examples(taken)}",
            "choose another name",
        )
    return [name for name in known if name in asked or name == REFERENCE]


def _weights(method: Any) -> dict[str, float] | None:
    weights = getattr(method, "weights_", None)
    if weights is None:
        return None
    return {name: float(w) for name, w in zip(method.members_, weights, strict=True)}
