"""From files to an ensemble, and from an ensemble to files: `edo fit` and `edo predict`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from edokit._errors import InputError, examples, option, warn
from edokit._io.tables import write_tables
from edokit._outputs import REPLACE, other_content, output_folder, refuse_input
from edokit.annotations import Annotations
from edokit.ensemble._fit import fit_inputs
from edokit.ensemble.document import FILE, read_fitted, write_fitted
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.fitted import Fitted
from edokit.ensemble.inputs import predictions_for, warn_if_unanimous
from edokit.ensemble.options import Options
from edokit.ensemble.pooled import Pooled
from edokit.ensemble.review import Review, add_urgent, check_path, label_studio_tasks, write_review
from edokit.fitdata import FitData
from edokit.panels import Panel, PanelComparison
from edokit.predictions import Predictions, Shards, read_shards
from edokit.runs import InputReader, RunRecord

if TYPE_CHECKING:
    from edokit.ensemble.trade_off import TradeOff


def fit(
    predictions: Any,
    annotations: Any,
    *,
    ensemble: EDOEnsemble | None = None,
    out: str | Path | None = None,
    split: str | Sequence[str] | None = None,
    overwrite: bool = False,
    streaming: Mapping[str, Any] | None = None,
    read_options: Mapping[str, Any] | None = None,
    command: str = "",
) -> EDOEnsemble:
    """Learn member weights and ensemble size from predictions and annotations.

    Parameters
    ----------
    predictions : Predictions, array of shape (n_items, n_members, n_classes), Shards, str or Path
        What each member predicts for each item. A path is read as `read_predictions` does; `Shards`
        are read one by one.
    annotations : Annotations, array, str or Path
        The labels of these items, in any form that `EDOEnsemble.fit` takes. A path is read as
        `read_annotations` does.
    ensemble : EDOEnsemble, optional
        The options of the fit; ``EDOEnsemble()`` by default. It is not changed.
    out : str or Path, optional
        Folder to save the ensemble in, with a record of the files it was fitted on (``run.json``).
        An ensemble that was fitted otherwise is not replaced.
    split : str or sequence of str, optional
        Only these splits of the annotations.
    overwrite : bool, default=False
        Replace an ensemble in `out` that was fitted otherwise, and what EDO did not write.
    streaming : mapping, optional
        Read the predictions shard by shard, with these arguments of `FitData.open`: ``memory``,
        ``jobs``, ….
    read_options : mapping, optional
        Further arguments of `read_annotations`, such as ``columns`` or ``classes``.
    command : str, default=""
        The command line to record in ``run.json``.

    Returns
    -------
    EDOEnsemble
        The fitted ensemble.

    Raises
    ------
    InputError
        If an option or the data are unusable, or `out` holds something else.

    Examples
    --------
    >>> import edokit
    >>> from edokit import EDOEnsemble
    >>> P = [[[0.9, 0.1], [0.6, 0.4]], [[0.2, 0.8], [0.5, 0.5]], [[0.7, 0.3], [0.4, 0.6]]]
    >>> votes = [[0, 0, 1], [1, 1, 1], [0, 0, 0]]
    >>> edokit.fit(P, votes, ensemble=EDOEnsemble("paper-fixed", solver="exact")).size_
    2
    """
    ensemble = EDOEnsemble() if ensemble is None else clone(ensemble)
    reader_options = dict(read_options or {})
    ensemble.scale = ensemble.scale or reader_options.get("scale")
    if isinstance(annotations, str | Path):
        reader_options["scale"] = ensemble.scale
    parameters = ensemble.get_params(deep=False)
    options = Options.of(parameters)  # refused before anything is read
    reader = InputReader(**reader_options)
    with ExitStack() as stack:
        saved = None
        if out is not None:
            paths = [Path(p) for p in (predictions, annotations) if isinstance(p, str | Path)]
            guard = output_folder(Path(out), "ensemble", *paths, overwrite=overwrite)
            stack.enter_context(guard)
            saved = None if overwrite else _saved_ensemble(Path(out), options)
        source = (predictions, annotations, split)
        predictions, labels = _read(stack, reader, source, streaming, options)
        streamed = isinstance(predictions, FitData)
        if not streamed:
            predictions = predictions_for(labels, predictions, options.scale)
        labelled = predictions if streamed else labels
        if isinstance(labelled, Annotations | FitData):
            warn_if_unanimous(labelled, annotations, split)
        fitted = fit_inputs(predictions, labels, parameters)
        if saved is not None and not _is_same(saved, fitted):
            raise other_content(Path(str(out)), "an ensemble", "which was learned from other data")
        if out is not None:
            write_fitted(fitted, out)
            if inputs := reader.inputs():
                RunRecord("fit", inputs, options.random_state, command).save(Path(out))
    return ensemble._keep(fitted)


def _saved_ensemble(folder: Path, options: Options) -> Fitted | None:
    """The ensemble in a folder, if there is one; refused if it was fitted with other options."""
    if not (folder / FILE).exists():
        return None
    try:
        saved = read_fitted(folder)
    except InputError as error:
        raise InputError(error._message, REPLACE) from error
    saved_flat, flat = Options.of(saved.parameters).to_flat(), options.to_flat()
    if flat["scale"] == saved.scale:
        saved_flat["scale"] = flat["scale"]
    names = dict.fromkeys([*flat, *saved_flat])
    different = [name for name in names if flat.get(name) != saved_flat.get(name)]
    if different:
        raise other_content(
            folder, "an ensemble", f"which was fitted with other settings: {examples(different)}"
        )
    return saved


def explain_costs(
    ensemble: EDOEnsemble,
    predictions: Any,
    annotations: Any,
    *,
    split: str | Sequence[str] | None = None,
    streaming: Mapping[str, Any] | None = None,
    read_options: Mapping[str, Any] | None = None,
) -> TradeOff:
    """`EDOEnsemble.trade_off` of what `fit` takes: files, or shards read one by one."""
    options = Options.of(ensemble.get_params(deep=False))
    with ExitStack() as stack:
        reader = InputReader(**dict(read_options or {}))
        source = (predictions, annotations, split)
        return ensemble.trade_off(*_read(stack, reader, source, streaming, options))


def _read(
    stack: ExitStack,
    reader: InputReader,
    source: tuple[Any, Any, str | Sequence[str] | None],
    streaming: Mapping[str, Any] | None,
    options: Options,
) -> tuple[Any, Any]:
    """Predictions and labels of a source; or data that are open shard by shard, and None."""
    predictions, annotations, split = source
    if streaming is not None or isinstance(predictions, Shards):
        sources = reader.streamed(predictions, annotations, split) | dict(streaming or {})
        data = FitData.open(predictions, **sources, **options.label_options)
        return stack.enter_context(data), None
    labels = reader.annotations("annotations", annotations, split)
    return reader.predictions("predictions", predictions), labels


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
                pooled = ensemble.describe(part, answer_for=answer_for)
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
        if pooled.annotators is not None:
            if self.review is not None:
                raise InputError(
                    "a review picks items, but these predictions are of pairs of an item and an"
                    " annotator",
                    f"name the {option('panel')} whose view counts, or leave {option('review')}"
                    " out",
                )
            self.items.update(map(str, pooled.items))
            self.pairs += int((pooled.annotators != "").sum())
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
        return read_shards(predictions, pairs=True)
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
    return PanelComparison.concatenate(
        [
            ensemble.describe(part, answer_for=answer_for).compare(one, other, level=level)
            for part in _in_parts(predictions)
        ]
    )


def _is_same(a: Fitted, b: Fitted) -> bool:
    """Whether the same was learned, but for rounding, by whichever version."""
    described = (a.members, a.classes, a.items, a.data) == (b.members, b.classes, b.items, b.data)
    return described and all(
        np.allclose(getattr(a, name), getattr(b, name), rtol=0, atol=1e-6)
        for name in ("weights", "member_ce")
    )
