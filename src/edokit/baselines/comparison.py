"""Methods side by side: fitted on one sample of items, evaluated once on another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from edokit._errors import EDOError, InputError, check_seed, counted, local_path
from edokit._io import whole_file, write_json
from edokit._io.markup import ENDINGS, Cell, Table
from edokit._names import owners
from edokit._outputs import begin_run, output_folder
from edokit._types import Codes, Floats, Ints, Strings
from edokit.annotations import Annotations, Ties
from edokit.baselines.methods import Method, find_method, make_method, method_names
from edokit.baselines.scores import (
    CONSTANT,
    SHARES,
    Score,
    difference,
    item_scores,
    lowest_score,
    only_label,
    score_methods,
    worth,
)
from edokit.baselines.slices import (
    Slice,
    find_slices,
    score_slices,
    slice_numbers,
    slice_table,
    worst_slice,
)
from edokit.ensemble import EDOEnsemble
from edokit.ensemble.inputs import (
    align_inputs,
    align_test_inputs,
    as_annotations,
    check_disjoint,
    predictions_for,
    select_members,
    source_name,
    warn_if_unanimous,
)
from edokit.fitdata.data import owner_codes
from edokit.metrics import METRIC, best_possible, headline_metric, main_metrics
from edokit.metrics.compute import floor_items
from edokit.predictions import Predictions, write_predictions
from edokit.runs import InputReader, RunRecord
from edokit.scales import Scale, check_same_scale

REFERENCE = "uniform"
"""The method that the others are tested against."""
_TEST = ("difference", "low", "high", "p_value")

_SLOW = "a search that takes seconds to a minute; ask for it by name, or for all methods"

AnyPredictions = Predictions | npt.ArrayLike | str | Path
AnyAnnotations = Annotations | npt.ArrayLike | str | Path
Step = Callable[[int, int, str], None]


@dataclass(frozen=True, eq=False)
class Comparison:
    """What each method scored on the test items: the result of `compare`.

    Examples
    --------
    ``comparison["edo"].ce`` is one score, ``comparison.table()`` prints all of them, and
    ``comparison.save("comparison")`` keeps them in a folder that `edo report` reads.
    """

    scores: tuple[Score, ...]
    """One per method, in the order of the table."""
    fitted: Mapping[str, Method]
    """The fitted methods by name."""
    test_predictions: Predictions
    """The methods' predictions of the test items: [N, methods, C]."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Items, classes, level of the intervals, the lowest CE possible on these soft labels."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Methods that could not be fitted on these data, with the reason."""
    files: InputReader = field(default_factory=InputReader, repr=False)
    """The files that were read, for the record of the run."""
    slices: tuple[Slice, ...] = ()
    """The same methods by the values of item columns, the one of the headline first."""

    def __getitem__(self, name: str) -> Score:
        """The scores of one method."""
        return {score.name: score for score in self.scores}[name]

    @property
    def lowest(self) -> Score:
        """The method with the lowest CE (on an ordinal scale: RPS)."""
        return lowest_score(self.scores)

    @property
    def headline(self) -> list[str]:
        """What must not be missed: EDO (else the best method) beside the constant, a bad slice.

        Empty where it is better than the constant answer in CE (on an ordinal scale: RPS) and in
        F1, on all slices alike.
        """
        ours, facts = _ours(self.scores), self.facts
        items, source = facts["items"]["test"], facts["constant"]["source"]
        return [
            *worth(ours, self[CONSTANT], items, subject=ours.name, source=source),
            *worst_slice(self.slices, facts["level"]),
        ]

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
            "slices": [one.to_dict() for one in self.slices],
        }

    def table(self) -> Table:
        """The main metrics, and the CE (RPS) against constant and uniform mean; for a terminal."""
        return _text_table(self, full=False)

    def text(self, kind: Literal["markdown", "csv", "latex"]) -> str:
        """Markdown or LaTeX with all intervals, or every number as CSV."""
        found = _number_table(self) if kind == "csv" else _text_table(self, full=True)
        return found.text(kind)

    def slice_table(self) -> Table:
        """F1 and CE (RPS) of the first method by slice, uniform mean and constant beside."""
        return slice_table(self.slices, self.facts["level"])

    def slice_text(self, kind: Literal["markdown", "csv", "latex"]) -> str:
        """The same as Markdown or LaTeX, or every number of every method as CSV."""
        return (slice_numbers(self.slices) if kind == "csv" else self.slice_table()).text(kind)

    def save(self, folder: str | Path, *, command: str = "", overwrite: bool = False) -> None:
        """Write ``compare/`` (methods.json, the table as Markdown, CSV and LaTeX, the methods'
        predictions on test), EDO's ``ensemble/`` and ``run.json``.

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
            self._write(folder, command, overwrite)

    def _write(self, folder: Path, command: str, overwrite: bool) -> None:
        begin_run(folder)
        inside = folder / "compare"
        write_json(self.to_dict(), inside / "methods.json")
        for kind, ending in ENDINGS.items():
            with whole_file(inside / f"methods.{ending}") as temporary:
                temporary.write_text(self.text(kind), encoding="utf-8")  # type: ignore[arg-type]
            if not self.slices:
                (inside / f"slices.{ending}").unlink(missing_ok=True)  # of an earlier comparison
            else:
                with whole_file(inside / f"slices.{ending}") as temporary:
                    temporary.write_text(self.slice_text(kind), encoding="utf-8")  # type: ignore[arg-type]
        write_predictions(self.test_predictions, inside / "test.npz")
        ours = self.fitted.get("edo")
        if isinstance(ours, EDOEnsemble):
            ours.save(folder / "ensemble", overwrite=overwrite)
        seed = int(self.facts["seed"])
        RunRecord("compare", self.files.inputs(), seed=seed, command=command).save(folder)


def compare(
    predictions: AnyPredictions,
    annotations: AnyAnnotations,
    test_predictions: AnyPredictions,
    test_annotations: AnyAnnotations | None = None,
    *,
    split: str | Sequence[str] | None = None,
    test_split: str | Sequence[str] | None = None,
    train_annotations: AnyAnnotations | None = None,
    train_split: str | Sequence[str] | None = None,
    methods: Iterable[str] | Literal["all"] | None = None,
    by: str | Sequence[str] | None = None,
    extra: Mapping[str, tuple[AnyPredictions, AnyPredictions]] | None = None,
    samples: int = 1000,
    level: float = 0.95,
    ties: Ties = "first",
    random_state: int = 0,
    step: Step = lambda done, total, what: None,
    **read_options: Any,
) -> Comparison:
    """Fit EDO and every baseline on the same members and evaluate them once on test items.

    Parameters
    ----------
    predictions : Predictions, array of shape (N, K, C), str or Path
        The members' predictions of the items to fit on (dev), or a file of them.
    annotations : Annotations, array, str or Path
        The annotations of these items, or a file that `read_annotations` reads.
    test_predictions : Predictions, array of shape (M, K, C), str or Path
        The same members' predictions of the items to evaluate on.
    test_annotations : Annotations, array, str or Path, default=None
        The annotations of these; ``annotations`` if None.
    split, test_split : str or sequence of str, default=None
        Only these splits of ``annotations`` and of ``test_annotations``.
    train_annotations : Annotations, str or Path, default=None
        The annotations that the members were trained on; the constant answer then has their shares,
        else those of the items to fit on.
    train_split : str or sequence of str, default=None
        Only these splits of them, or, without ``train_annotations``, of ``annotations``.
    methods : iterable of str or "all", default=None
        Names of methods (see `edokit.baselines.method_names`). If None, all but ``wel`` and
        ``wel-ce``, whose search is the slowest; ``"all"`` runs them, too.
        ``constant`` and ``uniform`` are always there.
    by : str or sequence of str, default=None
        Columns of the test items to compare by, as in `edokit.evaluate`.
    extra : mapping of str to (predictions, test_predictions), default=None
        Other pools of members on the same items. Each gives a row ``NAME``, the uniform mean of its
        members, and, if there are several, ``single:NAME``, what one of them scores alone on
        average, and ``edo:NAME``.
    samples : int, default=1000
        Bootstrap samples of the intervals (and half the sign flips of the tests); 0 for neither.
    level : float, default=0.95
        Level of the intervals.
    ties : {"first", "error", "random"}, default="first"
        Hard label of evenly split items.
    random_state : int, default=0
        Seed of searches, intervals and random ties.
    step : callable, default: nothing
        Called as ``step(done, total, method)`` before each fit.
    **read_options
        Further arguments of `read_annotations`, as ``columns`` or ``classes``, for annotations that
        are files.

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
    >>> from edokit.baselines import compare
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
    if test_annotations is None:
        test_annotations = annotations
    sources: list[Any] = [annotations, test_annotations]
    if all(isinstance(source, str | Path) for source in sources):
        alike = Path(sources[0]) == Path(sources[1])
    else:
        alike = sources[0] is sources[1]
    if alike and split == test_split:
        raise InputError(
            "the items to fit on and the items to evaluate on are the same:"
            f" {source_name(annotations, split)}",
            "give other test_annotations, or split='dev' and test_split='test'",
            parameters=("test_annotations", "split", "test_split"),
        )
    check_seed(random_state)
    files = InputReader(**read_options)
    labels = files.annotations("annotations", annotations, split)
    test_labels = files.annotations("test_annotations", test_annotations, test_split)
    dev, dev_labels = align_inputs(files.predictions("predictions", predictions), labels)
    test, test_labels = align_test_inputs(
        files.predictions("test_predictions", test_predictions), test_labels, test_split
    )
    scale, wider = dev_labels.scale, test_labels.classes != dev_labels.classes
    if wider and test_labels.scale.kind == scale.kind:
        test_labels = test_labels.with_classes(dev_labels.classes)
    check_same_scale(scale, "annotations", test_labels.scale, "test annotations")
    test = test.order_classes(dev_labels.classes)
    parts = find_slices(test_labels, by)
    for found, source, part, what in (
        (dev_labels, annotations, split, "annotations"),
        (test_labels, test_annotations, test_split, "test annotations"),
    ):
        warn_if_unanimous(found, source, part, what)
    train_labels: Annotations | None = None
    if train_annotations is not None or train_split is not None:
        given = annotations if train_annotations is None else train_annotations
        read = files.annotations("train_annotations", given, train_split)
        if not isinstance(read, Annotations):
            read = as_annotations(read, len(read), dev_labels.classes)
        train_labels = read.with_classes(dev_labels.classes)
    test = select_members(test, dev.members, "test predictions")
    check_disjoint(dev, test)
    known = method_names()
    asked = known if methods is None else [methods] if isinstance(methods, str) else list(methods)
    asked = known if "all" in asked else [find_method(name).name for name in asked]
    skipped: dict[str, str] = {}
    if methods is None:
        skipped = dict.fromkeys((name for name in known if find_method(name).slow), _SLOW)
        asked = [name for name in known if name not in skipped]
    names = [name for name in known if name in asked or name in (CONSTANT, REFERENCE)]
    others = InputReader(scale=read_options.get("scale"))
    rows = [_Row(name, find_method(name).about, name, (dev, test)) for name in names]
    for name, pair in (extra or {}).items():
        if ":" in name or not name or name in known:
            raise InputError(
                f"the name of an extra pool is empty, has a colon or is the name of a method:"
                f" {name!r}",
                "choose another name",
                parameters=("extra",),
            )
        first, second = (
            predictions_for(dev_labels, others.predictions("extra", given))
            .align(one.items, f"the predictions to compare {name!r} with")
            .order_classes(dev_labels.classes)
            for given, one in zip(pair, (dev, test), strict=True)
        )
        second = select_members(second, first.members, f"test predictions of {name!r}")
        rows += _extra_rows(name, (first, second), with_edo="edo" in names)
    truth = [
        (part.soft_labels, part.hard_labels(ties=ties, random_state=random_state))
        for part in (dev_labels, test_labels)
    ]
    fitted: dict[str, Method] = {}
    scores, probabilities, losses = [], {}, {}
    for number, row in enumerate(rows):
        step(number, len(rows), row.name)
        started = time.perf_counter()
        method: Any = make_method(row.method, random_state=random_state, ties=ties)
        try:
            if row.method == CONSTANT and train_labels is not None:
                method.take_shares(train_labels, "train")
            else:
                method.fit(row.pools[0], dev_labels)
        except EDOError as error:
            if row.method in (CONSTANT, REFERENCE):
                raise
            # The other methods' results are not lost for it.
            skipped[row.name] = error.message
            continue
        fitted[row.name] = method
        seconds = time.perf_counter() - started
        (on_dev, _), (losses[row.name], hard) = (
            _losses(row, method, pool, *part, scale)
            for pool, part in zip(row.pools, truth, strict=True)
        )
        probabilities[row.name] = method.predict_proba(row.pools[1])
        weights = None if row.alone else getattr(method, "weights_", None)
        if weights is not None:
            weights = dict(zip(method.members_, weights.tolist(), strict=True))
        scores.append(
            Score(
                row.name,
                row.about,
                dev={metric: float(values.mean()) for metric, values in on_dev.items()},
                seconds=seconds,
                size=None if row.alone else getattr(method, "size_", None),
                weights=weights,
                only_label=None if hard is None else only_label(hard, dev_labels.classes),
            )
        )
    step(len(rows), len(rows), "done")
    resampling: Any = {"samples": samples, "level": level, "random_state": random_state}
    resampling["clusters"] = owner_codes(test.items)
    scored = score_methods(scores, losses, REFERENCE, scale=scale, **resampling)
    ours = _ours(scored)
    ranked = [ours, *(score for score in scored if score is not ours)]
    floor = floor_items(test_labels.soft_labels, headline_metric(scale), scale)
    slices = score_slices(parts, ranked, losses, floor, REFERENCE, scale=scale, **resampling)
    classes = test_labels.classes
    constant = fitted[CONSTANT].constant_  # type: ignore[attr-defined]
    for method in fitted.values():
        if train_labels is not None and isinstance(method, EDOEnsemble):
            method._keep(replace(method.fitted_, constant=constant))
    pooled = Predictions.from_arrays(
        list(probabilities.values()),
        items=test.items,
        members=list(probabilities),
        classes=classes,
        layout=None,
        scale=scale,
    )
    best = best_possible(*truth[1], metrics=main_metrics(scale), scale=scale)
    facts = {
        "reference": REFERENCE,
        **_counts({"dev": dev.items, "test": test.items}),
        "members": len(dev.members),
        "classes": list(classes),
        "scale": scale.to_text(classes),
        "headline_metric": headline_metric(scale),
        "constant": {"shares": constant.shares.tolist(), "source": constant.source},
        "ce_floor": best["ce"],
        "best_possible": best,
        "level": level,
        "samples": samples,
        "seed": random_state,
        "by": list(parts),
    }
    return Comparison(tuple(scored), fitted, pooled, facts, skipped, files, slices)


def _ours(scores: Sequence[Score]) -> Score:
    """The score that headlines are about: EDO's, else the lowest but the constant's."""
    rivals = [score for score in scores if score.name != CONSTANT]
    return {score.name: score for score in rivals}.get("edo") or lowest_score(rivals)


class _Row(NamedTuple):
    """One row of the table: a method, and its members on dev and on test."""

    name: str
    about: str
    method: str
    pools: tuple[Predictions, Predictions]
    alone: bool = False
    """Whether the row is about the members alone, not about their pool."""


def _extra_rows(name: str, pools: tuple[Predictions, Predictions], *, with_edo: bool) -> list[_Row]:
    """The rows of an extra pool."""
    count = len(pools[0].members)
    if count == 1:
        return [_Row(name, f"{name} alone", REFERENCE, pools)]
    members = f"the {count} {name} members"
    rows = [
        _Row(f"single:{name}", f"one of {members}, on average", REFERENCE, pools, alone=True),
        _Row(name, f"the uniform mean of {members}", REFERENCE, pools),
        _Row(f"edo:{name}", f"EDO on {members}", "edo", pools),
    ]
    return rows if with_edo else rows[:2]


def _losses(
    row: _Row, method: Method, predictions: Predictions, q: Floats, y: Codes, scale: Scale
) -> tuple[dict[str, Floats], Ints | None]:
    """Each metric item by item [N], and the hard labels where there is one method."""
    if row.alone:
        P = np.asarray(predictions.probabilities, dtype=np.float64)
        members = [P[:, k] for k in range(P.shape[1])]
        each = [item_scores(p, scale.hard(p), q, y, scale) for p in members]
        return {metric: np.mean([one[metric] for one in each], axis=0) for metric in each[0]}, None
    hard = method.predict(predictions)
    if not scale.is_multi_label:
        codes = {name: code for code, name in enumerate(predictions.classes)}
        hard = np.array([codes[str(name)] for name in hard])
    return item_scores(method.predict_proba(predictions), hard, q, y, scale), hard


def _text_table(comparison: Comparison, *, full: bool) -> Table:
    """The main metrics, and the CE (RPS) against constant and uniform; ``full`` with intervals.

    The short one fits into a terminal of 80 characters.
    """
    scores, facts, tested = comparison.scores, comparison.facts, _tested(comparison)
    metrics, headline = _metrics(comparison), METRIC[scores[0].headline].short
    notes = comparison.headline if full else []
    notes += [f"The lowest possible CE on these soft labels is {facts['ce_floor']:.4f}."]
    if tested:
        delta = f"Δ{headline} vs" if full else "Δ"
        columns = [f"{delta} {other}" for other in (CONSTANT, REFERENCE)]
        columns += [f"p vs {REFERENCE}", "≈ lowest"] if full else []
        p_value = (
            ", and the p-value of a paired sign-flip test (not corrected for the number of tests)"
        )
        notes.append(
            f"{delta[0]}: {facts['level']:.0%} bootstrap interval of the {headline} less that of"
            f" {CONSTANT}"
            f" ({SHARES[facts['constant']['source']]}) and of the uniform mean"
            f"{p_value if full else ''}. ≈: not significantly above the lowest {headline},"
            f" {comparison.lowest.name}'s."
        )
        rows = [_tested_row(score, full) for score in scores]
    else:
        columns = ["size"]
        rows = [[*_values(score), score.size] for score in scores]
    reasons = dict.fromkeys(comparison.skipped.values())
    for reason in reasons:
        names = [name for name, own in comparison.skipped.items() if own == reason]
        notes.append(f"Without {', '.join(names)}: {reason}.")
    best = set()  # cells of the largest F1 and the lowest of the others
    for column, metric in enumerate(metrics, start=1):
        values = [round(score.metrics[metric], 4) for score in scores]
        wanted = max(values) if METRIC[metric].higher else min(values)
        best |= {(row, column) for row, value in enumerate(values) if value == wanted}
    dev, test = (
        f"{counted(facts['pairs'][split], 'pair')} of {counted(facts['items'][split], 'item')}"
        if "pairs" in facts
        else counted(facts["items"][split], "item")
        for split in ("dev", "test")
    )
    title = f"{counted(len(rows), 'method')}, fitted on {dev}, evaluated on {test}"
    return Table(
        title,
        ["method", *(METRIC[metric].label for metric in metrics), *columns],
        rows,
        notes,
        best,
    )


def _tested_row(score: Score, full: bool) -> list[Cell]:
    cells, near = _values(score), "≈" if score.within_noise else ""
    if full:
        for column, metric in enumerate(score.metrics, start=1):
            low, high = score.intervals[metric]
            cells[column] = f"{cells[column]:.4f} ({low:.4f} … {high:.4f})"
    else:
        value = score.metrics[score.headline]
        cells[1 + list(score.metrics).index(score.headline)] = f"{value:.4f}{near or ' '}"
    test = score.against.get(score.headline)
    cells += [difference(one, full) for one in (score.against_constant.get(score.headline), test)]
    if full:
        p = None if test is None else test.p_value
        cells += [p if p is None else "<.001" if p < 0.001 else f"{p:.3f}", near]
    return cells


def _counts(names: Mapping[str, Strings]) -> dict[str, dict[str, int]]:
    """Items of each split and, where these are pairs of an item and an annotator, pairs."""
    items = {split: len(set(owners(own))) for split, own in names.items()}
    pairs = {split: len(own) for split, own in names.items()}
    return {"items": items} if items == pairs else {"items": items, "pairs": pairs}


def _number_table(comparison: Comparison) -> Table:
    """One column per number: metrics, intervals, tests against uniform and constant, dev."""
    metrics = _metrics(comparison)
    header = ["method", "about", *metrics, *(f"dev_{metric}" for metric in metrics)]
    header += ["size", "seconds"]
    tested = _tested(comparison)
    if tested:
        header += [f"{metric}_{end}" for metric in metrics for end in ("low", "high")]
        header += [
            f"{metric}_vs_{other}_{part}"
            for other in (REFERENCE, CONSTANT)
            for metric in metrics
            for part in _TEST
        ]
        header.append(f"within_noise_of_lowest_{comparison.lowest.headline}")
    rows = []
    for score in comparison.scores:
        row: list[Cell] = [score.name, score.about, *_values(score)[1:]]
        row += [*(score.dev[metric] for metric in metrics), score.size, score.seconds]
        if tested:
            row += [end for metric in metrics for end in score.intervals[metric]]
            both = (score.against, score.against_constant)
            tests = [against.get(metric) for against in both for metric in metrics]
            row += [None if t is None else getattr(t, part) for t in tests for part in _TEST]
            row.append(int(score.within_noise))
        rows.append(row)
    return Table("", header, rows)


def _tested(comparison: Comparison) -> bool:
    return bool(comparison.scores[0].intervals)


def _metrics(comparison: Comparison) -> list[str]:
    return list(comparison.scores[0].metrics)


def _values(score: Score) -> list[Cell]:
    return [score.name, *score.metrics.values()]
