"""Methods side by side: fitted on one sample of items, evaluated once on another."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from edokit._errors import (
    EDOError,
    EDOWarning,
    InputError,
    check_number,
    check_seed,
    counted,
    local_path,
    option,
)
from edokit._io.atomic import whole_file
from edokit._io.documents import write_json
from edokit._io.markup import Cell, Table
from edokit._progress import Progress, no_progress
from edokit._types import Codes, Floats, Ints
from edokit.analysis.compare.method import Method, find_method, make_method, method_names
from edokit.analysis.scores.result import CONSTANT, Score, lowest_score
from edokit.analysis.scores.statistics import item_metrics, only_label, score_methods
from edokit.analysis.scores.text import SHARES, difference, headline_sentences
from edokit.annotations.core import Annotations, Ties
from edokit.datasets.near_duplicates import near_duplicate_groups
from edokit.ensemble.estimator import EDOEnsemble
from edokit.fitdata import inputs
from edokit.folds import stratified_folds
from edokit.metrics import METRIC, best_possible, headline_metric, main_metrics
from edokit.metrics.resampling import Resampling
from edokit.predictions.core import Predictions
from edokit.predictions.files import write_predictions
from edokit.runs.folder import output_folder
from edokit.runs.inputs import InputReader, merge_options
from edokit.runs.record import RunRecord, begin_run
from edokit.scales import Scale, check_same_scale

REFERENCE = "uniform"
# Methods that learn nothing from labels: cross-validated they are the same.
_UNFITTED = (REFERENCE, "majority")
SOFT = "soft"
"""The row of a single member that learned soft labels, and the supervision that marks it."""

_SLOW = "a search that takes seconds to minutes; ask for it by name, or for all methods"

AnyPredictions = Predictions | npt.ArrayLike | str | Path
AnyAnnotations = Annotations | npt.ArrayLike | str | Path


@dataclass(frozen=True, eq=False)
class Comparison:
    """What each method scored on the test items: the result of `compare`.

    Attributes
    ----------
    scores : tuple of Score
        One per method, in the order of the table.
    fitted : mapping of str to Method
        The fitted methods by name.
    test_predictions : Predictions
        The methods' predictions of the test items: [N, methods, C].
    facts : mapping
        Items, classes, level of the intervals, the lowest CE possible on these soft labels.
    skipped : mapping of str to str
        Methods that could not be fitted on these data, with the reason.
    files : InputReader
        The files that were read, for the record of the run.
    losses : mapping of str to mapping
        The main metrics of each method by test item, ``losses["edo"]["ce"]`` [N].

    Examples
    --------
    ``comparison["edo"].ce`` is one score, ``comparison.table()`` prints all of them, and
    ``comparison.save("comparison")`` keeps them in a folder that `edo report` reads.
    """

    scores: tuple[Score, ...]
    fitted: Mapping[str, Method]
    test_predictions: Predictions
    facts: Mapping[str, Any] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    files: InputReader = field(default_factory=InputReader, repr=False)
    losses: Mapping[str, Mapping[str, Floats]] = field(default_factory=dict, repr=False)

    def __getitem__(self, name: str) -> Score:
        """The scores of one method."""
        return {score.name: score for score in self.scores}[name]

    @property
    def lowest(self) -> Score:
        """The method with the lowest CE (on an ordinal scale: RPS)."""
        return lowest_score(self.scores)

    @property
    def headline(self) -> list[str]:
        """What must not be missed: EDO (else the best method) is no better than the constant.

        Empty where it is better in CE (on an ordinal scale: RPS) and in F1.
        """
        rivals = [score for score in self.scores if score.name != CONSTANT]
        ours = {score.name: score for score in rivals}.get("edo") or lowest_score(rivals)
        items, source = self.facts["items"]["test"], self.facts["constant"]["source"]
        return headline_sentences(ours, self[CONSTANT], items, subject=ours.name, source=source)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values: ``{"methods": [{"name", "f1", "ce", "md", "bs", …}], …}``.

        The metrics are the main ones of the answer scale (`edokit.metrics.main_metrics`).
        """
        return {
            "methods": [score.to_dict() for score in self.scores],
            "skipped": [{"name": name, "reason": reason} for name, reason in self.skipped.items()],
            "lowest_ce": min(self.scores, key=lambda score: score.ce).name,
            f"lowest_{self.lowest.headline}": self.lowest.name,
            "headline": self.headline,
            **self.facts,
        }

    def table(self) -> Table:
        """The main metrics, and the CE (RPS) against constant and uniform mean, with intervals."""
        return _text_table(self)

    def markdown(self) -> str:
        """The table, with the headline, as Markdown."""
        table = self.table()
        return replace(table, notes=[*self.headline, *table.notes]).markdown()

    def save(self, folder: str | Path, *, command: str = "", overwrite: bool = False) -> None:
        """Write ``compare/`` (methods.json, the table as Markdown, the methods' predictions on
        test), EDO's ``ensemble/`` and ``run.json``.

        Parameters
        ----------
        folder : str or Path
            Made if needed; a comparison in it is replaced.
        command : str, default=""
            The command line that made it, for ``run.json``.
        overwrite : bool, default=False
            Also replace files that EDO did not write.

        Raises
        ------
        InputError
            If the folder holds something else, or another process writes to it.
        """
        folder = local_path(folder)
        with output_folder(folder, "comparison", *self.files.paths, overwrite=overwrite):
            begin_run(folder)
            inside = folder / "compare"
            write_json(self.to_dict(), inside / "methods.json")
            with whole_file(inside / "methods.md") as temporary:
                temporary.write_text(self.markdown(), encoding="utf-8")
            write_predictions(self.test_predictions, inside / "test.npz")
            ours = self.fitted.get("edo")
            if isinstance(ours, EDOEnsemble):
                ours.save(folder / "ensemble", overwrite=overwrite)
            seed = int(self.facts["seed"])
            RunRecord("compare", self.files.inputs, seed=seed, command=command).save(folder)


@dataclass(frozen=True)
class CompareOptions:
    """Which methods are compared, and how.

    Parameters
    ----------
    methods : iterable of str or "all", default=None
        Names of methods (see `edokit.analysis.compare.method.method_names`). If None, all but
        ``wel`` and ``wel-ce``, whose search is the slowest; ``"all"`` runs them, too.
        ``constant`` and ``uniform`` are always there, and ``soft``, a single member trained on
        soft labels, where ``member_info`` of the predictions has such (``supervision: soft``, as
        `edokit.train_members` notes it).
    samples : int, default=1000
        Bootstrap samples of the intervals (and half the sign flips of the tests); 0 for neither.
    level : float, default=0.95
        Level of the intervals.
    ties : {"first", "error", "random"}, default="first"
        Hard label of evenly split items.
    random_state : int, default=0
        Seed of searches, intervals, folds and random ties.
    folds : int, default=5
        Folds of the cross-validation, where there are no test predictions.

    Examples
    --------
    >>> from edokit.analysis.compare import CompareOptions
    >>> CompareOptions(methods=["greedy", "edo"], samples=200).level
    0.95
    """

    methods: Iterable[str] | Literal["all"] | None = None
    samples: int = 1000
    level: float = 0.95
    ties: Ties = "first"
    random_state: int = 0
    folds: int = 5

    def __post_init__(self) -> None:
        check_seed(self.random_state)
        check_number("folds", self.folds, 2, whole=True)


def compare(
    predictions: AnyPredictions,
    annotations: AnyAnnotations,
    test_predictions: AnyPredictions | None = None,
    test_annotations: AnyAnnotations | None = None,
    options: CompareOptions | None = None,
    *,
    split: str | Sequence[str] | None = None,
    test_split: str | Sequence[str] | None = None,
    train_split: str | Sequence[str] | None = None,
    extra: Mapping[str, tuple[AnyPredictions, AnyPredictions]] | None = None,
    progress: Progress = no_progress,
    **settings: Any,
) -> Comparison:
    """Fit EDO and every baseline on the same members and evaluate them once on test items.

    Without test items they are cross-validated: every item is evaluated by methods that were fitted
    on the items of other folds, and near-duplicate texts share a fold.

    Parameters
    ----------
    predictions : Predictions, array of shape (N, K, C), str or Path
        The members' predictions of the items to fit on (dev), or a file of them.
    annotations : Annotations, array, str or Path
        The annotations of these items, or a file that `read_annotations` reads.
    test_predictions : Predictions, array of shape (M, K, C), str or Path, default=None
        The same members' predictions of the items to evaluate on. None: cross-validation; the
        members should not have been trained on the items, as in ``fit.npz`` of a cross-fit.
    test_annotations : Annotations, array, str or Path, default=None
        The annotations of these; ``annotations`` if None.
    options : CompareOptions, default=None
        Which methods are compared, and how.
    split, test_split : str or sequence of str, default=None
        Only these splits of ``annotations`` and of ``test_annotations``.
    train_split : str or sequence of str, default=None
        The splits of ``annotations`` that the members were trained on; the constant answer then has
        their shares, else those of the items to fit on.
    extra : mapping of str to (predictions, test_predictions), default=None
        Other pools of members on the same items (without test predictions: the predictions twice).
        Each gives a row ``NAME``, the uniform mean of its members, and, if there are several,
        ``edo:NAME``.
    progress : callable, default=no_progress
        Called before each fit with the methods done, their number, and the name of the next.
    **settings
        Single fields of `CompareOptions`, such as ``samples=200``, and further arguments of
        `read_annotations`, such as ``columns`` or ``classes``, for annotations that are files.

    Returns
    -------
    Comparison
        A score per method, with intervals and paired tests against ``uniform`` and ``constant``. A
        method that these data do not allow is left out, with the reason in ``skipped``.

    Raises
    ------
    InputError
        If predictions and annotations do not match, dev and test share items, or a name is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from edokit.analysis.compare import compare
    >>> rng = np.random.default_rng(0)
    >>> def sample(n):
    ...     share = rng.random(n)
    ...     labels = (rng.random((n, 5)) < share[:, None]).astype(int)
    ...     members = [np.clip(share + rng.normal(0, s, n), 0.05, 0.95) for s in (0.1, 0.2, 0.8)]
    ...     p = np.stack(members, axis=1)
    ...     return np.stack([1 - p, p], axis=2), labels
    >>> found = compare(*sample(80), *sample(80), methods=["best-single", "edo"], samples=200)
    >>> [score.name for score in found.scores]
    ['constant', 'uniform', 'best-single', 'edo']
    >>> found["edo"].ce < found["uniform"].ce
    True
    """
    options, reading = merge_options(CompareOptions, options, settings)
    files = InputReader(**reading)
    if test_predictions is None:
        for name, value in {"test_annotations": test_annotations, "test_split": test_split}.items():
            if value is not None:
                raise InputError(
                    f"{option(name)} is about test items, but there is no"
                    f" {option('test_predictions')}",
                    "add them, or leave it out to cross-validate",
                )
    test_labels = annotations if test_annotations is None else test_annotations
    evaluated = (test_predictions, test_labels, test_split)
    data = _read_samples(files, (predictions, annotations, split), evaluated, options)
    if train_split is not None:
        labels = files.annotations("train_annotations", annotations, train_split)
        data = replace(data, train_labels=labels.with_classes(data.classes))
    names, skipped = _method_names(options.methods)
    rows = _rows(names, data, extra or {}, InputReader(scale=reading.get("scale")))
    fits, failures = _fit_methods(rows, data, options, progress)
    losses = {fit.score.name: fit.losses for fit in fits}
    resampling = Resampling(
        options.samples, options.level, options.random_state, data.test.rows.clusters
    )
    scored = score_methods([fit.score for fit in fits], losses, REFERENCE, resampling, data.scale)
    probabilities = np.stack([fit.probabilities for fit in fits], axis=1)
    return Comparison(
        tuple(scored),
        {fit.score.name: fit.method for fit in fits},
        Predictions(probabilities, data.test.rows, tuple(losses), data.classes, scale=data.scale),
        _facts(data, options, fits),
        skipped | failures,
        files,
        losses,
    )


@dataclass(frozen=True)
class _Samples:
    """Predictions and labels of the items to fit on and of those to evaluate on.

    In a cross-validation these are the same; ``folds`` [N] then has the fold of each row.
    ``train_labels`` are what the constant answer has its shares from, if not from dev.
    """

    dev: Predictions
    dev_labels: Annotations
    test: Predictions
    test_labels: Annotations
    folds: Ints | None = None
    train_labels: Annotations | None = None

    @property
    def scale(self) -> Scale:
        return self.dev_labels.scale

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(self.dev_labels.classes)


def _read_samples(
    files: InputReader,
    fit: tuple[Any, Any, Any],
    evaluated: tuple[Any, Any, Any],
    options: CompareOptions,
) -> _Samples:
    """Predictions, annotations and split of dev and test, read and matched.

    Without test predictions, the items of dev are dealt into folds.
    """
    labels = files.annotations("annotations", *fit[1:])
    dev, labels = inputs.align_inputs(files.predictions("predictions", fit[0]), labels)
    if evaluated[0] is None:
        return _Samples(dev, labels, dev, labels, _folds(labels, options))
    test_labels = files.annotations("test_annotations", *evaluated[1:])
    test = files.predictions("test_predictions", evaluated[0])
    test, test_labels = inputs.align_test_inputs(test, test_labels, evaluated[2])
    if test_labels.classes != labels.classes and test_labels.scale.kind == labels.scale.kind:
        test_labels = test_labels.with_classes(labels.classes)
    check_same_scale(labels.scale, "annotations", test_labels.scale, "test annotations")
    test = test.order_classes(labels.classes)
    test = inputs.select_members(test, dev.members, "test predictions")
    inputs.check_disjoint(dev, test)
    return _Samples(dev, labels, test, test_labels)


def _folds(labels: Annotations, options: CompareOptions) -> Ints:
    """The fold of each row [N]; near-duplicate texts share one."""
    owner, texts = labels.rows.clusters, labels.whole_texts
    if owner is None and texts is not None:
        owner = near_duplicate_groups(texts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)  # of ties, which are counted below
        hard = labels.hard_labels()
    units = len(hard) if owner is None else len(set(owner.tolist()))
    if units < 2 * options.folds:
        raise InputError(
            f"{counted(units, 'item')} are too few to cross-validate in"
            f" {option('folds', options.folds)}",
            f"give {option('test_predictions')}, or fewer folds",
        )
    seed = [options.random_state, options.folds, 0]
    return stratified_folds(hard, options.folds, seed, groups=owner)


def _method_names(
    methods: Iterable[str] | Literal["all"] | None,
) -> tuple[list[str], dict[str, str]]:
    """The methods to compare in the order of the table, and why others are left out."""
    registered = method_names()
    if methods is None:
        skipped = {name: _SLOW for name in registered if find_method(name).slow}
        return [name for name in registered if name not in skipped], skipped
    requested = [methods] if isinstance(methods, str) else list(methods)
    if "all" in requested:
        return registered, {}
    names = {CONSTANT, REFERENCE, *(find_method(name).name for name in requested)}
    return [name for name in registered if name in names], {}


def _extra_pools(
    name: str, pool: tuple[Any, Any], data: _Samples, files: InputReader
) -> tuple[Predictions, Predictions]:
    """The predictions of an extra pool on dev and test."""
    if ":" in name or not name or name in method_names():
        raise InputError(
            f"{option('extra')}: the name of a pool is empty, has a colon or is the name of a"
            f" method: {name!r}",
            "choose another name",
        )
    dev, test = (
        inputs.predictions_for(data.dev_labels, files.predictions("extra", source))
        .align(members.rows, f"the predictions to compare {name!r} with")
        .order_classes(data.classes)
        for source, members in zip(pool, (data.dev, data.test), strict=True)
    )
    return dev, inputs.select_members(test, dev.members, f"test predictions of {name!r}")


class _Fit(NamedTuple):
    """What came of one row: its score before the test, and the answers to test items."""

    score: Score
    method: Any
    probabilities: Floats
    losses: dict[str, Floats]


def _fit_methods(
    rows: Sequence[_Row], data: _Samples, options: CompareOptions, progress: Progress
) -> tuple[list[_Fit], dict[str, str]]:
    """Fit each method on dev and evaluate it on dev and test; why some could not be fitted."""
    drawing = {"ties": options.ties, "random_state": options.random_state}
    labels = (data.dev_labels, data.test_labels)
    truth = [(part.soft_labels, part.hard_labels(**drawing)) for part in labels]  # type: ignore[arg-type]
    fits: list[_Fit] = []
    failures = {}
    for number, row in enumerate(rows):
        progress(number, len(rows), row.name)
        try:
            fits.append(_fit_row(row, data, truth, drawing))
        except EDOError as error:
            if row.method in (CONSTANT, REFERENCE):
                raise
            # The other methods' results are not lost for it.
            failures[row.name] = error.message
    progress(len(rows), len(rows), "done")
    return fits, failures


def _fit_row(
    row: _Row, data: _Samples, truth: Sequence[tuple[Floats, Codes]], drawing: dict[str, Any]
) -> _Fit:
    """Fit one method, and evaluate it."""
    start = time.perf_counter()
    method: Any = make_method(row.method, **drawing)
    is_given = row.method == CONSTANT and data.train_labels is not None
    if is_given:
        method.take_shares(data.train_labels, "train")
    else:
        method.fit(row.pools[0], data.dev_labels)
    seconds = time.perf_counter() - start
    if data.train_labels is not None and isinstance(method, EDOEnsemble):
        constant: Any = make_method(CONSTANT, **drawing)
        constant.take_shares(data.train_labels, "train")
        method._keep(replace(method.fitted_, constant=constant.constant_))
    answers = [_answers(method, pool, data.scale) for pool in row.pools]
    if data.folds is not None and not is_given and row.method not in _UNFITTED:
        answers[1] = _cross_validated(row, data, data.folds, drawing)
    dev_losses, losses = (
        item_metrics(*answer, *labels, data.scale)
        for answer, labels in zip(answers, truth, strict=True)
    )
    probabilities, hard = answers[1]
    has_weights = hasattr(method, "weights_")
    score = Score(
        row.name,
        row.about,
        dev={metric: float(values.mean()) for metric, values in dev_losses.items()},
        size=method.size_ if has_weights else None,
        weights=dict(zip(method.members_, method.weights_.tolist(), strict=True))
        if has_weights
        else None,
        seconds=seconds,
        only_label=only_label(hard, data.classes),
    )
    return _Fit(score, method, probabilities, losses)


def _facts(data: _Samples, options: CompareOptions, fits: Sequence[_Fit]) -> dict[str, Any]:
    """What `Comparison.facts` holds."""
    scale, labels = data.scale, data.test_labels
    hard = labels.hard_labels(ties=options.ties, random_state=options.random_state)
    best = best_possible(labels.soft_labels, hard, metrics=main_metrics(scale), scale=scale)
    constant = next(fit.method.constant_ for fit in fits if fit.score.name == CONSTANT)
    rows = {"dev": data.dev.rows, "test": data.test.rows}
    items = {split: len(index.items) for split, index in rows.items()}
    row_counts = {split: len(index) for split, index in rows.items()}
    return {
        "reference": REFERENCE,
        "ties": int(labels.tied.sum()),
        "items": items,
        **({} if items == row_counts else {"pairs": row_counts}),
        "members": len(data.dev.members),
        "classes": list(data.classes),
        "scale": scale.to_text(data.classes),
        "headline_metric": headline_metric(scale),
        "constant": {"shares": constant.shares.tolist(), "source": constant.source},
        "ce_floor": best["ce"],
        "best_possible": best,
        "folds": None if data.folds is None else options.folds,
        "level": options.level,
        "samples": options.samples,
        "seed": options.random_state,
    }


class _Row(NamedTuple):
    """One row of the table: a method, and its members on dev and on test."""

    name: str
    about: str
    method: str
    pools: tuple[Predictions, Predictions]


def _rows(
    names: Sequence[str],
    data: _Samples,
    extra: Mapping[str, tuple[AnyPredictions, AnyPredictions]],
    files: InputReader,
) -> list[_Row]:
    """The rows of the methods, of a soft-label member and of other pools."""
    rows = [_Row(name, find_method(name).about, name, (data.dev, data.test)) for name in names]
    info = data.dev.member_info
    soft = [name for name in data.dev.members if info.get(name, {}).get("supervision") == SOFT]
    if soft and SOFT not in extra:
        about = "the soft-label member with the lowest CE on dev"
        rows.append(
            _Row(SOFT, about, "best-single", (data.dev.select(soft), data.test.select(soft)))
        )
    for name, pool in extra.items():
        pools = _extra_pools(name, pool, data, files)
        count = len(pools[0].members)
        about = f"the uniform mean of the {count} {name} members" if count > 1 else f"{name} alone"
        rows.append(_Row(name, about, REFERENCE, pools))
        if count > 1 and "edo" in names:
            rows.append(_Row(f"edo:{name}", f"EDO on the {count} {name} members", "edo", pools))
    return rows


def _answers(method: Any, pool: Predictions, scale: Scale) -> tuple[Floats, Ints]:
    """What a fitted method says of items: probabilities [N, C] and codes of its hard labels."""
    return method.predict_proba(pool), scale.codes(method.predict(pool), pool.classes)


def _cross_validated(
    row: _Row, data: _Samples, folds: Ints, drawing: Mapping[str, Any]
) -> tuple[Floats, Ints]:
    """The answers of a method for every fold, fitted on the items of the others."""
    pool, answers = row.pools[0], []
    for fold in range(int(folds.max()) + 1):
        inside, outside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)  # the fit on all items warned
            method: Any = make_method(row.method, **drawing)
            method.fit(pool.take(outside), data.dev_labels.take(outside))
        answers.append(_answers(method, pool.take(inside), data.scale))
    back = np.argsort(np.argsort(folds, kind="stable"))
    probabilities, hard = (np.concatenate(parts)[back] for parts in zip(*answers, strict=True))
    return probabilities, hard


def _text_table(comparison: Comparison) -> Table:
    """The main metrics, and the CE (RPS) against constant and uniform, in 80 characters."""
    scores, facts = comparison.scores, comparison.facts
    metrics, headline = scores[0].metrics, METRIC[scores[0].headline].short
    notes = [f"The lowest possible CE on these soft labels is {facts['ce_floor']:.4f}."]
    rows: list[list[Cell]] = [[score.name, *score.metrics.values(), score.size] for score in scores]
    columns = ["size"]
    if scores[0].intervals:
        columns = [f"Δ {rival}" for rival in (CONSTANT, REFERENCE)]
        notes.append(
            f"Δ: {facts['level']:.0%} bootstrap interval of the {headline} less that of"
            f" {CONSTANT} ({SHARES[facts['constant']['source']]}) and of the uniform mean."
            f" ≈: not significantly above the lowest {headline}, {comparison.lowest.name}'s."
        )
        rows = [_tested_row(score) for score in scores]
    for reason in dict.fromkeys(comparison.skipped.values()):
        names = [name for name, text in comparison.skipped.items() if text == reason]
        notes.append(f"Without {', '.join(names)}: {reason}.")
    sizes = {split: counted(count, "item") for split, count in facts["items"].items()}
    for split, count in facts.get("pairs", {}).items():
        sizes[split] = f"{counted(count, 'pair')} of {sizes[split]}"
    dev, test = sizes["dev"], sizes["test"]
    title = f"{counted(len(rows), 'method')}, fitted on {dev}, evaluated on {test}"
    if facts["folds"]:
        title = (
            f"{counted(len(rows), 'method')}, cross-validated on {dev} in {facts['folds']} folds"
        )
    header = ["method", *(METRIC[metric].label for metric in metrics), *columns]
    return Table(title, header, rows, notes, _best_cells(scores))


def _best_cells(scores: Sequence[Score]) -> set[tuple[int, int]]:
    """Row and column of the largest F1 and of the lowest other metrics."""
    cells = set()
    for column, metric in enumerate(scores[0].metrics, start=1):
        values = [round(score.metrics[metric], 4) for score in scores]
        best = max(values) if METRIC[metric].higher else min(values)
        cells |= {(row, column) for row, value in enumerate(values) if value == best}
    return cells


def _tested_row(score: Score) -> list[Cell]:
    """The metrics, and the headline metric against constant and uniform mean."""
    cells: list[Cell] = [score.name, *score.metrics.values()]
    near = "≈" if score.within_noise else " "
    column = 1 + list(score.metrics).index(score.headline)
    cells[column] = f"{score.metrics[score.headline]:.4f}{near}"
    tests = (score.against_constant, score.against)
    return [*cells, *(difference(by_metric.get(score.headline)) for by_metric in tests)]
