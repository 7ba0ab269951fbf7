"""Evaluation of probabilities against annotations: all metrics, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, counted, errors_in, examples, one_of, warn
from edokit._io.tables import read_table
from edokit._lazy import pa, pd
from edokit._names import owners, positions
from edokit._types import Codes, Floats
from edokit.annotations import Annotations, Ties
from edokit.annotations.long_table import scale_of_table
from edokit.baselines.scores import Score, constant_of, same_label, score_answers, signed, worth
from edokit.baselines.slices import FEWEST_ITEMS, Slice, find_slices, score_slices, worst_slice
from edokit.ensemble.fitted import Constant
from edokit.ensemble.inputs import as_predictions, select_members
from edokit.fitdata.data import owner_codes
from edokit.metrics import (
    METRIC,
    Interval,
    best_possible,
    bootstrap,
    compute_metrics,
    headline_metric,
    metrics_of,
)
from edokit.metrics.compute import floor_items
from edokit.metrics.resampling import intervals
from edokit.metrics.scorers import SCORERS, official_items
from edokit.metrics.scores import annotation_errors
from edokit.predictions import Predictions, model_from_table, read_predictions
from edokit.predictions.core import ANONYMOUS as MEMBER_ANONYMOUS
from edokit.predictions.core import PREFIX, checked
from edokit.predictions.files import from_long_table
from edokit.runs import InputReader
from edokit.scales import NOMINAL, Scale, check_same_scale

if TYPE_CHECKING:
    from edokit.ensemble import EDOEnsemble

FEWEST_SAMPLES = 50
"""With fewer resamples the ends of an interval are mostly noise."""
KNOWN, ANONYMOUS = "known", "anonymous"
"""Answers for each annotator, and those for nobody in particular."""
_NAMED = 3  # annotators that a headline names
Table: TypeAlias = "pd.DataFrame | pa.Table | Mapping[str, Any]"


@dataclass(frozen=True)
class OfficialScores:
    """The official scores of a shared task."""

    scorer: str
    scores: dict[str, float]
    """The scores by name."""
    intervals: dict[str, tuple[float, float]]
    """Bootstrap interval of each over items; empty where there are none."""
    constant: dict[str, float]
    """Those of the constant answer."""
    note: str
    """What was compared."""


@dataclass(frozen=True)
class Evaluation:
    """Metrics of one set of probabilities, as `edokit.evaluate` returns them."""

    items: int
    """Number of items."""
    metrics: dict[str, float | None]
    """Metrics by name; None where undefined."""
    best_possible: dict[str, float | None]
    """The best value that any answer can have on these annotations: for the CE the mean entropy of
    the soft labels, see `edokit.metrics.best_possible`."""
    constant_metrics: dict[str, float | None]
    """The metrics of the constant answer."""
    level: float
    """Level of the intervals."""
    intervals: dict[str, Interval]
    """Bootstrap interval of each metric; empty where there are none."""
    annotators: list[dict[str, Any]]
    """Number of labels ``n``, ``ce`` and ``error`` of the predictions for each ``annotator``, with
    intervals over the annotator's items (``ce_interval``, ``error_interval``), how far the CE is
    above that on all other labels (``against_rest``, corrected for the number of annotators),
    whether it clearly is (``served_badly``), and both errors of anonymous answers, if there are."""
    scores: tuple[Score, ...]
    """The main metrics of the probabilities (``edo`` where an ensemble made them), of ``uniform``
    where members' predictions were given, and of ``constant``, with paired tests between them."""
    constant: Constant
    """The constant answer."""
    slices: tuple[Slice, ...] = ()
    """The same by the values of item columns."""
    subject: str = "The predictions"
    """What the headline is about."""
    scale: Scale = NOMINAL
    """The answer scale."""
    official: OfficialScores | None = None
    """The scores of the ``scorer``."""
    pairs: tuple[Score, ...] = ()
    """Of answers for annotators: the main metrics on their own labels, of ``known`` answers, of
    ``anonymous`` ones to the same pairs, where there are some, and of ``constant``; resampled by
    item."""

    @property
    def ce_floor(self) -> float:
        """Lowest possible CE: the mean entropy of the soft labels."""
        return float(self.best_possible["ce"] or 0.0)

    @property
    def headline(self) -> list[str]:
        """What must not be missed: no better than a constant, one label for all, a bad slice."""
        return [
            *worth(
                self.scores[0],
                self.scores[-1],
                self.items,
                subject=self.subject,
                source=self.constant.source,
            ),
            *worst_slice(self.slices, self.level),
            *(self._about_annotators() if self.pairs else ()),
        ]

    def _about_annotators(self) -> list[str]:
        """Whether knowing annotators helps, and who is served badly."""
        found, known = [], self.pairs[0]
        test = known.against.get(known.headline)
        if test is not None and test.high >= 0:
            worse = "worse" if test.low > 0 else "not clearly better"
            name, anonymous = METRIC[known.headline].short, self.pairs[1]
            found.append(
                f"Answers for known annotators are {worse} than anonymous ones: {name} of their"
                f" labels {known.metrics[known.headline]:.4f} against"
                f" {anonymous.metrics[known.headline]:.4f} (difference {signed(test.low)} to"
                f" {signed(test.high)})."
            )
        badly = [one for one in self.annotators if one["served_badly"]]
        badly.sort(key=lambda one: -one["against_rest"][0])
        if badly:
            shown = ", ".join(
                f"{one['annotator']!r} (CE {one['ce']:.4f} on {counted(one['n'], 'label')};"
                f" {signed(one['against_rest'][0])} to {signed(one['against_rest'][1])} above the"
                " rest)"
                for one in badly[:_NAMED]
            )
            more = f" and {len(badly) - _NAMED} more" if len(badly) > _NAMED else ""
            found.append(
                f"Served badly: {shown}{more}; {self.level:.0%} intervals, corrected for the"
                " number of annotators."
            )
        return found

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value:.4f}" for name, value in self.scores[0].metrics.items())
        return f"Evaluation({self.items} items, {shown})"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as ``edo evaluate --json`` prints it.

        Returns
        -------
        dict
            The metrics by name, ``items``, ``ce_floor``, ``level``, ``intervals`` as
            ``[low, high]``, ``best_possible``, ``headline``, ``constant``, ``methods``, ``slices``,
            ``annotators``, ``pairs`` and, with a scorer, ``official``.
        """
        result: dict[str, Any] = {
            "items": self.items,
            **self.metrics,
            "ce_floor": self.ce_floor,
            "level": self.level,
        }
        if self.intervals:
            result["intervals"] = {name: [i.low, i.high] for name, i in self.intervals.items()}
        if self.official is not None:
            result["official"] = asdict(self.official)
        return {
            **result,
            "scale": self.scale.kind,
            "best_possible": self.best_possible,
            "headline": self.headline,
            "constant": {
                "shares": self.constant.shares.tolist(),
                "source": self.constant.source,
                "metrics": self.constant_metrics,
            },
            "methods": [score.on_items() for score in self.scores],
            "slices": [one.to_dict() for one in self.slices],
            "annotators": self.annotators,
            "pairs": [score.on_items() for score in self.pairs],
        }


def evaluate(
    probabilities: str | Path | Table | Predictions | Annotations | npt.ArrayLike | None,
    annotations: Annotations | str | Path | Table,
    *,
    predictions: Predictions | npt.ArrayLike | str | Path | None = None,
    ensemble: EDOEnsemble | str | Path | None = None,
    train_annotations: Annotations | str | Path | Table | None = None,
    by: str | Sequence[str] | None = None,
    scorer: Literal["lewidi2023", "lewidi2025-a", "lewidi2025-b"] | None = None,
    invalid: Literal["error", "normalize"] = "error",
    ties: Ties = "first",
    samples: int = 1000,
    level: float = 0.95,
    random_state: int = 0,
) -> Evaluation:
    """Evaluate probabilities against annotations with every metric.

    Parameters
    ----------
    probabilities : path, table, Predictions, Annotations or array-like
        A file or table with ``item`` and one ``p_<class>`` column per class, matched by item id
        (the index of a DataFrame without ``item``); or an array [N, C] in the order of the
        annotations' items and classes. Answers for each annotator have an ``annotator``, too, and
        either probabilities or a ``label``: predictions of pairs (`edo score --annotators`), a
        table, or Annotations; the mean over an item's annotators is then its distribution. None
        for the probabilities of ``ensemble`` on ``predictions``.
    annotations : Annotations, path or table
        Annotations of the same items; a path is read with `edokit.read_annotations`, a table with
        `Annotations.from_table`.
    predictions : Predictions, array of shape (N, K, C), str or Path, default=None
        The members' predictions of the same items: their uniform mean is evaluated, too. Of pairs
        of an item and an annotator, the ensemble is evaluated as answers for annotators.
    ensemble : EDOEnsemble, str or Path, default=None
        The ensemble, or its folder, that made the probabilities. The constant answer then has the
        shares of the items that it was fitted on.
    train_annotations : Annotations, path or table, default=None
        Training items, whose shares the constant answer has instead. Without an ensemble, too, it
        has the shares of the evaluated items, which no constant can beat on them.
    by : str or sequence of str, default=None
        Columns of the items (see `Annotations.item_columns`) to evaluate by: each value is a slice,
        a column of many numbers is put into quarters, missing values are a slice of their own.
    scorer : {"lewidi2023", "lewidi2025-a", "lewidi2025-b"}, default=None
        Also the official scores of a shared task (`edokit.metrics.scorers`).
    invalid : {"error", "normalize"}, default="error"
        What to do with rows that do not sum to 1: raise, or divide them by their sum.
    ties : {"first", "error", "random"}, default="first"
        Hard label of evenly split items.
    samples : int, default=1000
        Bootstrap resamples; 0 for no intervals.
    level : float, default=0.95
        Level of the intervals.
    random_state : int, default=0
        Seed of the bootstrap and of ``ties="random"``.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        If the items, classes or scales differ, a row holds no probabilities, a scorer does not fit
        the annotations, or ``samples`` is too small.

    Examples
    --------
    >>> import edokit
    >>> annotations = edokit.Annotations.from_matrix(
    ...     [["no", "yes", "yes"], ["no", "no", "no"]], items=["a", "b"]
    ... )
    >>> probabilities = {"item": ["b", "a"], "p_no": [0.9, 0.4], "p_yes": [0.1, 0.6]}
    >>> found = edokit.evaluate(probabilities, annotations, samples=0)
    >>> found
    Evaluation(2 items, f1=1.0000, ce=0.3757, md=0.1667, bs=0.0144)
    >>> round(found.ce_floor, 4)
    0.3183
    """
    if 0 < samples < FEWEST_SAMPLES:
        raise InputError(
            f"{samples} bootstrap samples are too few for an interval;"
            f" it takes at least {FEWEST_SAMPLES}",
            "use 1000, or 0 for no intervals",
        )
    if scorer is not None:
        one_of("scorer", scorer, SCORERS)
    labelled = _annotations(annotations)
    slices = find_slices(labelled, by)
    if isinstance(ensemble, str | Path):
        from edokit.ensemble import EDOEnsemble

        ensemble = EDOEnsemble.load(ensemble)
    if ensemble is not None:
        check_same_scale(labelled.scale, "annotations", ensemble.fitted_.scale, "ensemble")
    members, pairs, anonymous = None, None, None
    if predictions is not None:
        read = InputReader().predictions("predictions", predictions)
        if isinstance(read, Predictions) and read.annotators is not None:
            read = read.annotated(labelled)
            if ensemble is not None:
                if any(name.endswith(MEMBER_ANONYMOUS) for name in ensemble.members_):
                    read = read.with_anonymous()
                if probabilities is None:
                    probabilities = _pooled(ensemble, read)
            read = read.panel_means()
        members = as_predictions(read).on_scale(labelled.scale, "annotations").align(labelled.items)
    if probabilities is not None:
        own, pairs, anonymous = _given(probabilities, labelled, invalid)
    elif members is not None and ensemble is not None:
        pooled = ensemble.predict_proba(members)[:, None]
        classes = ensemble.fitted_.classes
        own = Predictions(pooled, members.items, ("edo",), classes, scale=labelled.scale)
    else:
        raise InputError(
            "there is nothing to evaluate",
            "give probabilities='FILE', or ensemble='FOLDER' and predictions='FILE'",
            parameters=("probabilities", "ensemble", "predictions"),
        )
    if ensemble is not None and set(ensemble.fitted_.classes) != set(own.classes):
        raise InputError(
            f"the ensemble is about the classes {examples(ensemble.fitted_.classes, 20)}, the"
            f" probabilities are about {examples(own.classes, 20)}",
            "give the ensemble that made them",
            parameters=("ensemble",),
        )
    if set(labelled.classes) < set(own.classes):
        labelled = labelled.with_classes(own.classes)
    classes, q, scale = labelled.classes, labelled.soft_labels, labelled.scale
    p = own.order_classes(classes).on_scale(scale, "annotations").uniform
    by_annotator = None
    if pairs is not None:
        by_annotator = pairs.order_classes(classes).on_scale(scale, "annotations").uniform
    y = labelled.hard_labels(ties=ties, random_state=random_state)
    constant = _constant(ensemble, train_annotations, labelled, y, ties)
    same = np.tile(constant.shares, (len(q), 1))
    official = None
    if scorer is not None:
        items = official_items(scorer, labelled, p, y, by_annotator)
        usual = official_items(scorer, labelled, same, y)
        ends = intervals(items, samples=samples, level=level, random_state=random_state)
        means = [{name: float(each.mean()) for name, each in one.items()} for one in (items, usual)]
        note = _compared(scorer, scale, by_annotator is not None)
        official = OfficialScores(scorer, means[0], ends, means[1], note)
    answers = {own.members[0]: p}
    if members is not None:
        known = (
            members
            if ensemble is None
            else select_members(members, ensemble.members_, "predictions")
        )
        answers["uniform"] = known.order_classes(classes).uniform
    if anonymous is not None:
        answers[ANONYMOUS] = anonymous.order_classes(classes).on_scale(scale, "annotations").uniform
    resampling: Any = {"samples": samples, "level": level, "random_state": random_state}
    on: Any = {"scale": scale}
    scores, losses = score_answers(answers, constant, q, y, classes, **on, **resampling)
    hard = scale.indicators(same_label(constant, len(q)), len(classes)).astype(np.float64)
    constants = compute_metrics(same, q, y, **on)
    named = [name for name in metrics_of(scale) if METRIC[name].hard]
    errors = {"": annotation_errors(p, labelled.item_codes, labelled.labels, **on)}
    of_pairs: list[Score] = []
    if by_annotator is not None:
        rows = labelled.pairs()
        errors[""] = annotation_errors(by_annotator, rows.item_codes, labelled.labels, **on)
        clusters = owner_codes(rows.items)
        known_answers = {KNOWN: by_annotator}
        if anonymous is not None:
            errors["anonymous_"] = annotation_errors(
                answers[ANONYMOUS], labelled.item_codes, labelled.labels, **on
            )
            order = positions(owners(rows.items), labelled.items)
            known_answers[ANONYMOUS] = answers[ANONYMOUS][order]
        hard_pairs = rows.hard_labels(ties=ties, random_state=random_state)
        how: Any = {"reference": ANONYMOUS, "clusters": clusters, **on, **resampling}
        truth = (rows.soft_labels, hard_pairs, classes)
        of_pairs, _ = score_answers(known_answers, constant, *truth, **how)
    floor = floor_items(q, headline_metric(scale), scale)
    subject = "The predictions" if ensemble is None else "The ensemble"
    return Evaluation(
        items=len(q),
        metrics=compute_metrics(p, q, y, **on),
        best_possible=best_possible(q, y, **on),
        constant_metrics=constants | compute_metrics(hard, q, y, metrics=named, **on),
        level=level,
        intervals=bootstrap(p, q, y, **on, **resampling) if samples else {},
        annotators=_annotator_errors(labelled, errors, level if samples else None),
        scores=tuple(scores),
        constant=constant,
        slices=score_slices(slices, scores, losses, floor, "uniform", **on, **resampling),
        subject=Path(probabilities).name if isinstance(probabilities, str | Path) else subject,
        scale=scale,
        official=official,
        pairs=tuple(of_pairs),
    )


def _annotator_errors(
    labelled: Annotations, errors: Mapping[str, tuple[Floats, Floats]], level: float | None
) -> list[dict[str, Any]]:
    """CE and error of each annotator, from those of all annotations [M]; first those to judge by.

    With a level, t intervals over the annotator's labels, since there may be thousands of
    annotators; the difference from the rest is corrected for their number.
    """
    from scipy.special import stdtrit  # Student's t

    codes = labelled.annotator_codes
    n = np.bincount(codes, minlength=len(labelled.annotators))
    given, enough = np.flatnonzero(n), (n >= FEWEST_ITEMS) & (n.sum() - n >= FEWEST_ITEMS)
    found: list[dict[str, Any]] = [
        {"annotator": str(labelled.annotators[a]), "n": int(n[a])} for a in given
    ]

    def moments(values: Floats) -> tuple[Floats, Floats]:
        """Mean of each annotator, and the variance of that mean."""
        mean = np.bincount(codes, values, minlength=len(n)) / np.maximum(n, 1)
        squares = np.bincount(codes, (values - mean[codes]) ** 2, minlength=len(n))
        return mean, squares / np.maximum(n - 1, 1) / np.maximum(n, 1)

    for prefix, both in errors.items():
        for name, values in zip(("ce", "error"), both, strict=True):
            mean, variance = moments(values)
            for row, a in zip(found, given, strict=True):
                row[f"{prefix}{name}"] = float(mean[a])
                if level is not None and not prefix:
                    half = stdtrit(n[a] - 1, (1 + level) / 2) * np.sqrt(variance[a])
                    ends = [float(mean[a] - half), float(mean[a] + half)] if enough[a] else None
                    row[f"{name}_interval"] = ends
    values = next(iter(errors.values()))[0]
    mean, variance = moments(values)
    rest = (values.sum() - n * mean) / np.maximum(n.sum() - n, 1)
    spread = values.var() / np.maximum(n.sum() - n, 1)
    # Two annotators are one comparison, each the rest of the other.
    comparisons = max(int(enough.sum()) - (len(given) == 2), 1)
    for row, a in zip(found, given, strict=True):
        ends = None
        if level is not None and enough[a]:
            half = stdtrit(n[a] - 1, 1 - (1 - level) / (2 * comparisons))
            half *= np.sqrt(variance[a] + spread[a])
            ends = [float(mean[a] - rest[a] - half), float(mean[a] - rest[a] + half)]
        row["against_rest"] = ends
        row["served_badly"] = ends is not None and ends[0] > 0
    return found


def _pooled(ensemble: EDOEnsemble, pairs: Predictions) -> Predictions:
    """What the ensemble answers for each pair, and anonymously."""
    found = ensemble.describe(pairs)
    how: Any = {"annotators": found.annotators, "scale": found.scale}
    return Predictions(
        found.probabilities[:, None], found.items, ("edo",), found.classes, **how
    ).named()


def _compared(scorer: str, scale: Scale, by_annotator: bool) -> str:
    """What an official score compares, in a sentence."""
    if scorer == "lewidi2023":
        return "Micro-F1 to hard labels, cross-entropy to soft labels."
    if scorer == "lewidi2025-a":
        return {
            "nominal": "Manhattan distance to the soft labels.",
            "ordinal": "Wasserstein distance to the soft labels, in points of the scale.",
            "multi-label": "Manhattan distance to the soft labels, averaged over the labels.",
        }[scale.kind]
    what = {
        "nominal": "Error rate",
        "ordinal": "Absolute distance over the number of points",
        "multi-label": "Error rate, averaged over the labels",
    }[scale.kind]
    decision = {
        "nominal": "its most probable class",
        "ordinal": "its median",
        "multi-label": "its labels above one half",
    }[scale.kind]
    if by_annotator:
        return f"{what} of the answer for each annotator."
    return (
        f"{what}. The annotators are unknown to these predictions: each is given the anonymous"
        f" answer of the item ({decision})."
    )


def _annotations(source: Annotations | str | Path | Table) -> Annotations:
    if isinstance(source, Annotations):
        return source
    if isinstance(source, str | Path):
        from edokit.datasets import read_annotations

        return read_annotations(source)
    return Annotations.from_table(source)


def _constant(
    ensemble: EDOEnsemble | None,
    train: Annotations | str | Path | Table | None,
    labelled: Annotations,
    y: Codes,
    ties: Ties,
) -> Constant:
    """The constant answer: of the training items, else of the ensemble, else of these items."""
    classes, scale = labelled.classes, labelled.scale
    if train is not None:
        labels = _annotations(train)
        check_same_scale(labels.scale, "training annotations", scale, "annotations")
        if labels.classes != classes:
            labels = labels.with_classes(classes)
        from edokit.baselines.methods import ConstantAnswer

        return ConstantAnswer(ties=ties).take_shares(labels, "train").constant_
    if ensemble is not None and ensemble.constant_ is None:
        warn(
            "the ensemble was saved by an earlier version, without the shares of its fit data; the"
            " constant answer has the shares of these items"
        )
    return constant_of(ensemble, classes, labelled.soft_labels, y, scale)


def _given(
    source: str | Path | Table | Predictions | Annotations | npt.ArrayLike,
    annotations: Annotations,
    invalid: Literal["error", "normalize"],
) -> tuple[Predictions, Predictions | None, Predictions | None]:
    """The probabilities as one member, in the order of the annotations' items, and of pairs.

    Pairs are those of an item and an annotator; None where annotators are not known. Anonymous
    answers come last, where there are some beside the pairs.
    """
    scale = annotations.scale
    where: str | Path = "the probabilities"
    if isinstance(source, str | Path):
        where, path = source, Path(source)
        if path.suffix.lower() == ".npz" or path.is_dir():
            source = read_predictions(path, invalid=invalid)
        else:
            source = read_table(path, numbers=lambda name: name.startswith(PREFIX))
    elif isinstance(source, pd.DataFrame):
        if "item" not in source.columns:
            source = source.rename_axis(index="item").reset_index()
        source = pa.Table.from_pandas(source, preserve_index=False)
    elif isinstance(source, Mapping):
        source = pa.table(dict(source))
    if isinstance(source, pa.Table):
        source = _from_table(source, where, annotations, invalid)
    if isinstance(source, Annotations):
        check_same_scale(source.scale, "answers", scale, "annotations")
        answers = source
        if answers.classes != annotations.classes:
            answers = answers.with_classes(annotations.classes)
        shares = answers.labels
        if shares.ndim == 1:
            shares = scale.indicators(shares, len(answers.classes)).astype(np.float64)
        source = Predictions(
            shares[:, None],
            answers.items[answers.item_codes],
            ("predictions",),
            answers.classes,
            annotators=answers.annotators[answers.annotator_codes],
            scale=scale,
        ).named()
    if not isinstance(source, Predictions):
        array = np.asarray(source)
        n, c = len(annotations.items), len(annotations.classes)
        if array.shape != (n, c):
            raise InputError(
                f"the probabilities have the shape {array.shape}, the annotations {n} items"
                f" and {c} classes",
                f"give an array of shape ({n}, {c}), or a table with item and p_<class> columns",
            )
        columns = {f"p_{name}": array[:, k] for k, name in enumerate(annotations.classes)}
        table = pa.table({"item": annotations.items, **columns})
        source = _from_table(table, where, annotations, invalid)
        assert isinstance(source, Predictions)
    one = replace(
        source,
        probabilities=source.uniform[:, None],
        members=("predictions",),
        groups=None,
    )
    if one.annotators is None:
        return one.align(annotations.items), None, None
    one = one.annotated(annotations)
    assert one.annotators is not None
    pairs = one.pairs().align(annotations.pairs().items)
    anonymous = None
    if (one.annotators == "").any():
        anonymous = one.anonymous().align(annotations.items)
    return one.panel_means().align(annotations.items), pairs, anonymous


def _from_table(
    table: pa.Table,
    where: str | Path,
    annotations: Annotations,
    invalid: Literal["error", "normalize"],
) -> Predictions | Annotations:
    """Probabilities of items or of pairs, or the answer of each annotator."""
    names, sets = table.column_names, annotations.scale.is_multi_label
    own = annotations.scale if sets else None
    if "annotator" not in names:
        return model_from_table(table, where, "predictions", invalid=invalid, scale=own)
    with errors_in(where):
        if not any(name.startswith(PREFIX) for name in names):
            return Annotations.from_table(
                table.select([name for name in names if name in ("item", "annotator", "label")]),
                classes=annotations.classes,
                scale=annotations.scale,
            )
        if "member" not in names:
            table = table.append_column("member", pa.array(["predictions"] * len(table)))
        found = from_long_table(table, Path(where))
        if found.scale == NOMINAL:
            declared = scale_of_table(table, own)
            if set(declared.classes or ()) == set(found.classes):
                found = found.order_classes(declared.classes or ())
            found = replace(found, scale=declared.on(found.classes))
    array = checked(
        *(found.probabilities, found.items, found.members, invalid, f" in {where}"),
        sets=found.scale.is_multi_label,
    )
    return replace(found, probabilities=array)
