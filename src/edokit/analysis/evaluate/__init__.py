"""Evaluation of probabilities against annotations: all metrics, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from edokit._errors import InputError, check_number, examples, option, signed
from edokit._io.tables import read_table
from edokit._types import Codes, Floats
from edokit.analysis.scores.result import Score, Slice
from edokit.analysis.scores.slices import FEWEST_ITEMS, find_slices, score_slices
from edokit.analysis.scores.statistics import (
    constant_label,
    constant_of,
    constant_of_annotations,
    score_answers,
)
from edokit.analysis.scores.text import headline_sentences
from edokit.annotations.core import Annotations, Ties
from edokit.annotator_effects import label_shares
from edokit.ensemble.fitted import Constant
from edokit.fitdata.inputs import as_predictions, select_members
from edokit.metrics import METRIC, Interval, best_possible, bootstrap, compute_metrics, metrics_of
from edokit.metrics.compute import annotation_errors
from edokit.metrics.resampling import Resampling
from edokit.predictions.core import Invalid, Predictions
from edokit.predictions.join import model_from_table
from edokit.predictions.shards import read_predictions
from edokit.runs.inputs import InputReader, merge_options
from edokit.scales import NOMINAL, Scale, check_same_scale

if TYPE_CHECKING:
    from edokit.ensemble.estimator import EDOEnsemble

# With fewer resamples the ends of an interval are mostly noise.
FEWEST_SAMPLES = 50
# Answers for each annotator, and those for nobody in particular.
KNOWN, ANONYMOUS = "known", "anonymous"
Table: TypeAlias = "pd.DataFrame | pa.Table | Mapping[str, Any]"


@dataclass(frozen=True)
class Evaluation:
    """Metrics of one set of probabilities, as `edokit.evaluate` returns them.

    Attributes
    ----------
    items : int
        Number of items.
    metrics : dict of str to float or None
        Metrics by name; None where undefined.
    best_possible : dict of str to float or None
        The best value that any answer can have on these annotations: for the CE the mean entropy
        of the soft labels, see `edokit.metrics.best_possible`.
    constant_metrics : dict of str to float or None
        The metrics of the constant answer.
    level : float
        Level of the intervals.
    intervals : dict of str to Interval
        Bootstrap interval of each metric; empty where there are none.
    annotators : list of dict
        Number of labels ``n``, ``ce`` and ``error`` of the predictions for each ``annotator``, with
        intervals over the annotator's labels (``ce_interval``, ``error_interval``), and both errors
        of anonymous answers, if there are.
    scores : tuple of Score
        The main metrics of the probabilities (``edo`` where an ensemble made them), of ``uniform``
        where members' predictions were given, and of ``constant``, with paired tests between them.
    constant : Constant
        The constant answer.
    slices : tuple of Slice
        The same by the values of item columns.
    subject : str
        What the headline is about.
    scale : Scale
        The answer scale.
    pairs : tuple of Score
        Of answers for annotators: the main metrics on their own labels, of ``known`` answers, of
        ``anonymous`` ones to the same pairs, where there are some, and of ``constant``; resampled
        by item.
    ties : int
        Items whose annotators are evenly split; their hard label follows from the order of classes.
    """

    items: int
    metrics: dict[str, float | None]
    best_possible: dict[str, float | None]
    constant_metrics: dict[str, float | None]
    level: float
    intervals: dict[str, Interval]
    annotators: list[dict[str, Any]]
    scores: tuple[Score, ...]
    constant: Constant
    slices: tuple[Slice, ...] = ()
    subject: str = "The predictions"
    scale: Scale = NOMINAL
    pairs: tuple[Score, ...] = ()
    ties: int = 0

    @property
    def ce_floor(self) -> float:
        """Lowest possible CE: the mean entropy of the soft labels."""
        return float(self.best_possible["ce"] or 0.0)

    @property
    def headline(self) -> list[str]:
        """What must not be missed: no better than a constant, one label for all."""
        about: Any = {"subject": self.subject, "source": self.constant.source}
        return [
            *headline_sentences(self.scores[0], self.scores[-1], self.items, **about),
            *(self._about_annotators() if self.pairs else ()),
        ]

    def _about_annotators(self) -> list[str]:
        """A sentence where answers for known annotators are not better than anonymous ones."""
        answers, anonymous = self.pairs[:2]
        test = answers.against.get(answers.headline)
        if test is None or test.high < 0:
            return []
        verdict = "worse" if test.low > 0 else "not clearly better"
        return [
            f"Answers for known annotators are {verdict} than anonymous ones:"
            f" {METRIC[answers.headline].short} of their labels"
            f" {answers.metrics[answers.headline]:.4f} against"
            f" {anonymous.metrics[answers.headline]:.4f} (difference {signed(test.low)} to"
            f" {signed(test.high)})."
        ]

    def __repr__(self) -> str:
        metrics = self.scores[0].metrics.items()
        listed = ", ".join(f"{name}={value:.4f}" for name, value in metrics)
        return f"Evaluation({self.items} items, {listed})"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as ``edo evaluate --json`` prints it.

        Returns
        -------
        dict
            The metrics by name, ``items``, ``ce_floor``, ``level``, ``intervals`` as
            ``[low, high]``, ``best_possible``, ``headline``, ``constant``, ``methods``, ``slices``,
            ``annotators`` and ``pairs``.
        """
        intervals = {name: [ends.low, ends.high] for name, ends in self.intervals.items()}
        return {
            "items": self.items,
            **self.metrics,
            "ties": self.ties,
            "ce_floor": self.ce_floor,
            "level": self.level,
            **({"intervals": intervals} if intervals else {}),
            "scale": self.scale.kind,
            "best_possible": self.best_possible,
            "headline": self.headline,
            "constant": {
                "shares": self.constant.shares.tolist(),
                "source": self.constant.source,
                "metrics": self.constant_metrics,
            },
            "methods": [score.item_metrics() for score in self.scores],
            "slices": [part.to_dict() for part in self.slices],
            "annotators": self.annotators,
            "pairs": [score.item_metrics() for score in self.pairs],
        }


@dataclass(frozen=True)
class EvaluateOptions:
    """What is computed, and how surely.

    Parameters
    ----------
    by : str or sequence of str, default=None
        Columns of the items (see `Annotations.item_columns`) to evaluate by: each value (at
        most 50) is a slice, missing values are a slice of their own; ``agreement`` is how the votes
        of an item are divided.
    ties : {"first", "error", "random"}, default="first"
        Hard label of evenly split items.
    samples : int, default=1000
        Bootstrap samples; 0 for no intervals.
    level : float, default=0.95
        Level of the intervals.
    random_state : int, default=0
        Seed of the bootstrap and of random ties.
    invalid : {"error", "normalize"}, default="error"
        What to do with rows that do not sum to 1: raise, or divide them by their sum.

    Examples
    --------
    >>> from edokit.analysis.evaluate import EvaluateOptions
    >>> EvaluateOptions(by="lang", samples=200).level
    0.95
    """

    by: str | Sequence[str] | None = None
    ties: Ties = "first"
    samples: int = 1000
    level: float = 0.95
    random_state: int = 0
    invalid: Invalid = "error"

    def __post_init__(self) -> None:
        if self.samples:
            hint = "use 1000, or 0 for no intervals"
            check_number("samples", self.samples, FEWEST_SAMPLES, whole=True, hint=hint)


def evaluate(
    probabilities: str | Path | Table | Predictions | npt.ArrayLike | None,
    annotations: Annotations | str | Path | Table,
    options: EvaluateOptions | None = None,
    *,
    predictions: Predictions | npt.ArrayLike | str | Path | None = None,
    ensemble: EDOEnsemble | str | Path | None = None,
    split: str | Sequence[str] | None = None,
    train_split: str | Sequence[str] | None = None,
    **settings: Any,
) -> Evaluation:
    """Evaluate probabilities against annotations with every metric.

    Parameters
    ----------
    probabilities : path, table, Predictions or array-like
        A file or table with ``item`` and one ``p_<class>`` column per class, matched by item id
        (the index of a DataFrame without ``item``); or an array [N, C] in the order of the
        annotations' items and classes. Answers for each annotator (a table with ``annotator``, too,
        or predictions of pairs, as of `edo score --annotators`) are averaged over an item's
        annotators. None for the probabilities of ``ensemble`` on ``predictions``.
    annotations : Annotations, path or table
        Annotations of the same items; a path is read with `edokit.read_annotations`, a table with
        `Annotations.from_table`.
    options : EvaluateOptions, default=None
        What is computed, and how surely.
    predictions : Predictions, array of shape (N, K, C), str or Path, default=None
        The members' predictions of the same items: their uniform mean is evaluated, too. Of pairs
        of an item and an annotator, the ensemble is evaluated as answers for annotators.
    ensemble : EDOEnsemble, str or Path, default=None
        The ensemble, or its folder, that made the probabilities. The constant answer then has the
        shares of the items that it was fitted on.
    split : str or sequence of str, default=None
        Only these splits of the annotations.
    train_split : str or sequence of str, default=None
        Splits of ``annotations`` whose shares the constant answer has instead. Without them and
        without an ensemble it has those of the evaluated items, which no constant can beat on them.
    **settings
        Single fields of `EvaluateOptions`, such as ``samples=200``, and further arguments of
        `read_annotations`, such as ``columns`` or ``scale``, for annotations that are files.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        If the items, classes or scales differ, a row holds no probabilities, or ``samples`` is too
        small.

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
    options, reading = merge_options(EvaluateOptions, options, settings)
    files = InputReader(**reading)
    labelled = _annotations(files, "annotations", annotations, split)
    slices = find_slices(labelled, options.by)
    if isinstance(ensemble, str | Path):
        from edokit.ensemble.estimator import EDOEnsemble

        ensemble = EDOEnsemble.load(ensemble)
    answers = _read_answers(probabilities, predictions, ensemble, labelled, options.invalid)
    labelled = answers.labelled
    y = labelled.hard_labels(ties=options.ties, random_state=options.random_state)
    constant = constant_of(ensemble, labelled, y)
    if train_split is not None:
        train = _annotations(files, "train_annotations", annotations, train_split)
        train = train.with_classes(labelled.classes)
        constant = constant_of_annotations(train, "train", ties=options.ties)
    subject = "The predictions" if ensemble is None else "The ensemble"
    if isinstance(probabilities, str | Path):
        subject = Path(probabilities).name
    return evaluate_answers(answers, y, constant, slices, options, subject)


def evaluate_answers(
    answers: Answers,
    y: Codes,
    constant: Constant,
    slices: dict[str, Any],
    options: EvaluateOptions,
    subject: str,
) -> Evaluation:
    """Every metric of these answers; ``y`` are the hard labels."""
    labelled, p = answers.labelled, answers.probabilities
    q, scale = labelled.soft_labels, labelled.scale
    on: Any = {"scale": scale}
    clusters = labelled.rows.clusters
    resampling = Resampling(options.samples, options.level, options.random_state, clusters)
    scores, losses = score_answers(answers.by_name, constant, labelled, y, resampling)
    constant_rows = np.tile(constant.shares, (len(q), 1))
    hard = scale.indicators(constant_label(constant, len(q)), q.shape[1]).astype(np.float64)
    hard_metrics = [name for name in metrics_of(scale) if METRIC[name].hard]
    level = options.level if options.samples else None
    return Evaluation(
        items=len(q),
        metrics=compute_metrics(p, q, y, **on),
        ties=int(labelled.tied.sum()),
        best_possible=best_possible(q, y, **on),
        constant_metrics=compute_metrics(constant_rows, q, y, **on)
        | compute_metrics(hard, q, y, metrics=hard_metrics, **on),
        level=options.level,
        intervals=bootstrap(p, q, y, **on, **vars(resampling)) if options.samples else {},
        annotators=_annotator_errors(labelled, answers.errors(), level),
        scores=tuple(scores),
        constant=constant,
        slices=score_slices(slices, scores, losses, labelled, resampling),
        subject=subject,
        scale=scale,
        pairs=_score_pairs(answers, constant, options.ties, resampling),
    )


@dataclass(frozen=True)
class Answers:
    """What is evaluated, in the order of the annotations' items and classes.

    ``by_name`` has answers to items [N, C], those to evaluate first; ``by_annotator`` [M, C] are
    the answers for each pair of an item and an annotator.
    """

    labelled: Annotations
    by_name: dict[str, Floats]
    by_annotator: Floats | None = None

    @property
    def probabilities(self) -> Floats:
        """The answers to evaluate [N, C]."""
        return next(iter(self.by_name.values()))

    def errors(self) -> dict[str, tuple[Floats, Floats]]:
        """CE and error on each annotation [M], by prefix."""
        labelled = self.labelled
        rows = {"": (self.probabilities, labelled.item_codes)}
        if self.by_annotator is not None:
            rows[""] = self.by_annotator, labelled.pairs().item_codes
            if ANONYMOUS in self.by_name:
                rows["anonymous_"] = self.by_name[ANONYMOUS], labelled.item_codes
        shares = label_shares(labelled, len(labelled.classes))
        return {
            prefix: annotation_errors(p, codes, shares, labelled.scale)
            for prefix, (p, codes) in rows.items()
        }


def _read_answers(
    probabilities: Any,
    predictions: Any,
    ensemble: EDOEnsemble | None,
    labelled: Annotations,
    invalid: Invalid,
) -> Answers:
    """The answers to evaluate, from probabilities, or from an ensemble and its members."""
    members = None
    if ensemble is not None:
        check_same_scale(labelled.scale, "annotations", ensemble.fitted_.scale, "ensemble")
    if predictions is not None:
        members = as_predictions(InputReader().predictions("predictions", predictions))
        members = members.annotated(labelled).on_scale(labelled.scale, "annotations")
    if probabilities is not None:
        answers = _as_predictions(probabilities, labelled, invalid)
    elif members is not None and ensemble is not None:
        answers = ensemble.describe(members, only_knowing=True).as_predictions()
    else:
        raise InputError(
            "there is nothing to evaluate",
            f"give {option('probabilities', 'FILE')}, or {option('ensemble', 'FOLDER')} and"
            f" {option('predictions', 'FILE')}",
        )
    if ensemble is not None and {*ensemble.fitted_.classes} != {*answers.classes}:
        raise InputError(
            f"the ensemble is about the classes {examples(ensemble.fitted_.classes, 20)}, the"
            f" probabilities are about {examples(answers.classes, 20)}",
            "give the ensemble that made them",
        )
    if {*labelled.classes} < {*answers.classes}:
        labelled = labelled.with_classes(answers.classes)
    answers = answers.order_classes(labelled.classes).on_scale(labelled.scale, "annotations")
    answers = answers.annotated(labelled)
    by_name = {answers.members[0]: answers.panel_means().align(labelled.rows).uniform}
    if members is not None:
        if ensemble is not None:
            members = select_members(members, ensemble.members_, "predictions")
        members = members.order_classes(labelled.classes).panel_means()
        by_name["uniform"] = members.align(labelled.rows).uniform
    by_annotator, is_named = None, answers.rows.is_named
    if is_named.any():
        by_annotator = answers.pairs().align(labelled.pairs().rows).uniform
        if not is_named.all():
            by_name[ANONYMOUS] = answers.anonymous().align(labelled.rows).uniform
    return Answers(labelled, by_name, by_annotator)


def _score_pairs(
    answers: Answers, constant: Constant, ties: Ties, resampling: Resampling
) -> tuple[Score, ...]:
    """Scores of answers for annotators on their own labels, beside the anonymous answers."""
    if answers.by_annotator is None:
        return ()
    rows, by_name = answers.labelled.pairs(), {KNOWN: answers.by_annotator}
    if ANONYMOUS in answers.by_name:
        item_rows = answers.labelled.rows.positions(rows.rows.by_item())[rows.rows.item_codes]
        by_name[ANONYMOUS] = answers.by_name[ANONYMOUS][item_rows]
    y = rows.hard_labels(ties=ties, random_state=resampling.random_state)
    by_item = replace(resampling, clusters=rows.rows.clusters)
    return tuple(score_answers(by_name, constant, rows, y, by_item, ANONYMOUS)[0])


def _annotator_errors(
    labelled: Annotations, errors: Mapping[str, tuple[Floats, Floats]], level: float | None
) -> list[dict[str, Any]]:
    """CE and error of each annotator, from those of all annotations [M].

    With a level, t intervals over the annotator's labels, since there may be thousands of
    annotators.
    """
    from scipy.special import stdtrit  # Student's t

    # By code, as several annotators may be called the same.
    table = pd.DataFrame(
        {
            f"{prefix}{name}": values
            for prefix, by_name in errors.items()
            for name, values in zip(("ce", "error"), by_name, strict=True)
        }
    ).groupby(labelled.annotator_codes)
    n, means = table.size().to_numpy(), table.mean()
    columns: dict[str, Any] = {
        "annotator": labelled.annotators[means.index].tolist(),
        "n": n.tolist(),
        **{str(name): values.tolist() for name, values in means.items()},
    }
    if level is not None:
        variances = table.var().div(n, axis=0)  # of the means
        reach = stdtrit(np.maximum(n - 1, 1), (1 + level) / 2)
        for name in ("ce", "error"):
            half = reach * np.sqrt(variances[name])
            ends = np.stack([means[name] - half, means[name] + half], axis=1).tolist()
            columns[f"{name}_interval"] = [
                pair if count >= FEWEST_ITEMS else None for pair, count in zip(ends, n, strict=True)
            ]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _annotations(
    files: InputReader, role: str, source: Any, split: str | Sequence[str] | None
) -> Annotations:
    """Annotations of these splits, from a file, a table, or as given."""
    annotations = files.annotations(role, source, split)
    if isinstance(annotations, Annotations):
        return annotations
    return Annotations.from_table(annotations)


def _as_predictions(source: Any, annotations: Annotations, invalid: Invalid) -> Predictions:
    """The probabilities of items, or of pairs of an item and an annotator, as one member."""
    path: str | Path = "the probabilities"
    if isinstance(source, str | Path):
        path = Path(source)
        if path.suffix.lower() == ".npz" or path.is_dir():
            source = read_predictions(path, invalid=invalid)
        else:
            source = read_table(path)
    elif isinstance(source, pd.DataFrame | Mapping):
        frame = pd.DataFrame(source)
        if "item" not in frame.columns:
            frame = frame.rename_axis(index="item").reset_index()
        source = pa.Table.from_pandas(frame, preserve_index=False)
    elif not isinstance(source, Predictions | pa.Table):
        source = Predictions.from_arrays(
            np.asarray(source),
            items=annotations.items,
            classes=annotations.classes,
            layout="NC",
            invalid=invalid,
            scale=annotations.scale,
        )
    if isinstance(source, pa.Table):
        source = _from_table(source, path, annotations, invalid)
    p = source.uniform[:, None]
    return Predictions(p, source.rows, ("predictions",), source.classes, scale=source.scale)


def _from_table(
    table: pa.Table, path: str | Path, annotations: Annotations, invalid: Invalid
) -> Predictions:
    """Probabilities of items or of pairs."""
    if "annotator" in table.column_names and "member" not in table.column_names:
        table = table.append_column("member", pa.array(["predictions"] * len(table)))
    # Rows of sets need not sum to one; an order of the classes is declared later.
    scale = annotations.scale if annotations.scale.is_multi_label else None
    return model_from_table(table, path, "predictions", invalid=invalid, scale=scale)
