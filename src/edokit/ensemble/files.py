"""From files to an ensemble, and from an ensemble to files: `edo fit` and `edo predict`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from edokit._errors import EDOWarning, InputError, examples, warn
from edokit._io.tables import write_tables
from edokit._outputs import REPLACE, check_output, other_content, refuse_input
from edokit.annotations import Annotations
from edokit.ensemble._fit import choices, objective_of
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.inputs import as_predictions, warn_if_unanimous
from edokit.ensemble.persistence import FILE
from edokit.ensemble.review import Review, add_urgent, check_path, label_studio_tasks, write_review
from edokit.fitdata import FitData
from edokit.predictions import Predictions, Shards, read_shards
from edokit.runs import InputReader


def fit(
    predictions: Any,
    annotations: Any,
    *,
    out: str | Path | None = None,
    split: str | Sequence[str] | None = None,
    overwrite: bool = False,
    streaming: Mapping[str, Any] | None = None,
    read_options: Mapping[str, Any] | None = None,
    **parameters: Any,
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
    out : str or Path, optional
        Folder to save the ensemble in. An ensemble that was fitted otherwise is not replaced.
    split : str or sequence of str, optional
        Only these splits of the annotations.
    overwrite : bool, default=False
        Replace an ensemble in `out` that was fitted otherwise.
    streaming : mapping, optional
        Read the predictions shard by shard, with these arguments of `FitData.open`: ``memory``,
        ``jobs``, ….
    read_options : mapping, optional
        Further arguments of `read_annotations`, such as ``columns`` or ``classes``.
    **parameters
        Parameters of `EDOEnsemble`.

    Returns
    -------
    EDOEnsemble
        The fitted ensemble.

    Raises
    ------
    InputError
        If a parameter or the data are unusable, or `out` holds something else.

    Examples
    --------
    >>> import edokit
    >>> P = [[[0.9, 0.1], [0.6, 0.4]], [[0.2, 0.8], [0.5, 0.5]], [[0.7, 0.3], [0.4, 0.6]]]
    >>> votes = [[0, 0, 1], [1, 1, 1], [0, 0, 0]]
    >>> edokit.fit(P, votes, preset="paper-fixed", solver="exact").size_
    2
    """
    ensemble = EDOEnsemble(**parameters)
    with warnings.catch_warnings():
        # Refused before anything is read; what is only warned of is said by the fit.
        warnings.simplefilter("ignore", EDOWarning)
        objective_of(choices(ensemble.preset, ensemble.get_params()))
    folder = None if out is None else Path(out)

    def check(members: Sequence[str] | None = None, items: int | None = None) -> None:
        """Refuse a folder of something else, or with an ensemble that is not this one.

        Called as soon as more is known: parameters before anything is read, members and items
        before anything is learned, and the fitted ensemble before it is saved.
        """
        if folder is None:
            return
        check_output(folder, "ensemble")
        if overwrite or not (folder / FILE).exists():
            return
        try:
            there = load(folder)
        except InputError as error:
            raise InputError(error.message, REPLACE, parameters=("overwrite",)) from error
        found = there.get_params()
        other = [name for name, value in ensemble.get_params().items() if found[name] != value]
        if other:
            raise other_content(
                folder, "an ensemble", f"which was fitted with other settings: {examples(other)}"
            )
        same = members is None or (there.members_, there.n_items_) == (tuple(members), items)
        if not same or (hasattr(ensemble, "fitted_") and not _is_same(there, ensemble)):
            raise other_content(folder, "an ensemble", "which was learned from other data")

    check()
    reader = InputReader(**(read_options or {}))
    with ExitStack() as stack:
        if streaming is not None or isinstance(predictions, Shards):
            data = FitData.open(
                predictions,
                **reader.streamed(predictions, annotations, split),
                ties=ensemble.ties,
                random_state=ensemble.random_state,
                **(streaming or {}),
            )
            predictions, labels = stack.enter_context(data), None
            members, items = data.members, data.items
            classes, counts = data.classes, data.summaries().soft_counts
        else:
            predictions = as_predictions(reader.predictions("predictions", predictions))
            labels = reader.annotations("annotations", annotations, split)
            members, items = predictions.members, len(predictions)
            known = labels if isinstance(labels, Annotations) else None
            classes, counts = (known.classes, known.counts.sum(axis=0)) if known else ((), ())
        check(members, items)
        warn_if_unanimous(classes, counts, annotations, split)
        ensemble.fit(predictions, labels)
    check()
    if folder is not None:
        ensemble.save(folder)
    return ensemble


def load(folder: str | Path) -> EDOEnsemble:
    """Load a saved ensemble.

    Parameters
    ----------
    folder : str or Path
        A folder made by `edo fit` or ``EDOEnsemble.save``, or ``RUN/ensemble`` of a search.

    Returns
    -------
    EDOEnsemble
        The fitted ensemble; saved ensembles of earlier versions load, too.

    Raises
    ------
    InputError
        If there is no ensemble, or a damaged one.
    """
    return EDOEnsemble.load(folder)


load_ensemble = load
save_ensemble = EDOEnsemble.save


def predict_to_file(
    ensemble: EDOEnsemble,
    predictions: Predictions | Shards | str | Path,
    out: str | Path,
    *,
    review: int | None = None,
    review_out: str | Path | None = None,
    texts: Callable[[], Mapping[str, str] | None] | Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Write the pooled probabilities of all items; shards are read one by one.

    Parameters
    ----------
    ensemble : EDOEnsemble
        A fitted ensemble.
    predictions : Predictions, Shards, str or Path
        The members' predictions, or where they are: a file, or a folder of shards.
    out : str or Path
        The table (.csv, .tsv, .parquet or .jsonl): item, ``p_<class>`` columns, entropy, spread
        and label.
    review : int, optional
        Also write so many items that most need annotators, as tasks for Label Studio.
    review_out : str or Path, optional
        The file of these tasks (.json); by default beside `out`.
    texts : mapping of str to str or callable, optional
        Text of each item to review, or a function that reads them.

    Returns
    -------
    dict
        ``out``, ``items``, mean ``entropy`` and ``spread``, and ``review`` with ``out``, ``config``
        and ``items`` where a review was asked for.

    Raises
    ------
    InputError
        If members are missing or a file can't be read or written; nothing is written then.
    """
    out = Path(out)
    tasks = Path(review_out) if review_out else out.with_name(f"{out.stem}-review.json")
    if review is not None:
        check_path(tasks)
    parts: Iterable[Predictions]
    if isinstance(predictions, str | Path):
        for made in (out, tasks if review is not None else None):
            refuse_input(made, Path(predictions))
        parts = read_shards(predictions)
    else:
        parts = [predictions] if isinstance(predictions, Predictions) else predictions
    queue: list[Review] = []
    shown: Mapping[str, str] | None = None
    sums = {"entropy": 0.0, "spread": 0.0}
    classes: tuple[str, ...] = ()

    def tables() -> Iterator[pa.Table]:
        nonlocal queue, shown, classes
        for part in parts:
            pooled = ensemble.describe(part)
            sums["entropy"] += float(pooled.entropy.sum())
            sums["spread"] += float(pooled.spread.sum())
            classes = pooled.classes
            if review is not None:
                queue = add_urgent(queue, pooled, review)
            yield pooled.to_table()
        if review is not None:
            # Texts that are missing are noticed before anything is in its place.
            shown = texts() if callable(texts) else texts
            label_studio_tasks(queue, shown)

    count = write_tables(tables(), out)
    result = {"out": str(out), "items": count, **{name: sums[name] / count for name in sums}}
    if review is None:
        return result
    if shown is None:
        warn(
            "annotators who review will see ids of items alone; give annotations or texts",
            parameters=("annotations", "texts"),
        )
    config = write_review(queue, classes, tasks, shown)
    return {**result, "review": {"out": str(tasks), "config": str(config), "items": len(queue)}}


def _is_same(one: EDOEnsemble, other: EDOEnsemble) -> bool:
    """Whether the same was learned, but for rounding, by whichever version."""
    a, b = one.fitted_, other.fitted_
    described = (a.members, a.classes, a.items, a.data) == (b.members, b.classes, b.items, b.data)
    return described and all(
        np.allclose(getattr(a, name), getattr(b, name), rtol=0, atol=1e-6)
        for name in ("weights", "member_ce")
    )
