"""From files to an ensemble, and from an ensemble to files: `edo fit` and `edo predict`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from edokit._errors import InputError, counted, examples, warn
from edokit._io import whole_file, write_json
from edokit._io.markup import markdown_text
from edokit._io.schema import WrongValueError, number, read_document, record, text
from edokit._io.tables import write_tables
from edokit._lazy import pa
from edokit._outputs import REPLACE, begin_run, other_content, output_folder, refuse_input
from edokit._version import __version__
from edokit.annotations import Annotations
from edokit.annotator_effects import ATTRIBUTES_NOTE, attribute_names
from edokit.ensemble._fit import fit_inputs
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.fitted import Fitted, Pooled, describe_lambda_reg
from edokit.ensemble.inputs import predictions_for, warn_if_unanimous
from edokit.ensemble.options import Options
from edokit.ensemble.review import Review, add_urgent, check_path, label_studio_tasks, write_review
from edokit.fitdata import FitData
from edokit.metrics import main_metrics
from edokit.panels import Panel, PanelComparison
from edokit.predictions import Predictions, Shards, read_shards
from edokit.predictions.core import MemberInfo
from edokit.runs import InputReader, RunRecord
from edokit.scales import NOMINAL, Declared

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
    folder = None if out is None else Path(out)
    target = None if folder is None or overwrite else folder
    reader = InputReader(**reader_options)
    with ExitStack() as stack:
        if folder is not None:
            paths = [Path(p) for p in (predictions, annotations) if isinstance(p, str | Path)]
            guard = output_folder(folder, "ensemble", *paths, overwrite=overwrite)
            stack.enter_context(guard)
        saved = _saved_ensemble(target, options)
        labels: Any = None
        if streaming is not None or isinstance(predictions, Shards):
            sources = reader.streamed(predictions, annotations, split) | dict(streaming or {})
            predictions = FitData.open(predictions, **sources, **options.label_options)
            stack.enter_context(predictions)
            members, items = predictions.members, predictions.items
            warn_if_unanimous(predictions, annotations, split)
        else:
            predictions = reader.predictions("predictions", predictions)
            labels = reader.annotations("annotations", annotations, split)
            predictions = predictions_for(labels, predictions, options.scale)
            members, items = predictions.members, len(predictions)
        if saved is not None and (saved.members, saved.items) != (tuple(members), items):
            raise _learned_from_other_data(out)
        if isinstance(labels, Annotations):
            warn_if_unanimous(labels, annotations, split)
        fitted = fit_inputs(predictions, labels, parameters)
        if saved is not None and not _is_same(saved, fitted):
            raise _learned_from_other_data(out)
        if folder is not None:
            write_fitted(fitted, folder)
            if inputs := reader.inputs():
                RunRecord("fit", inputs, options.random_state, command).save(folder)
    return ensemble._keep(fitted)


def _saved_ensemble(folder: Path | None, options: Options) -> Fitted | None:
    """The ensemble in a folder, if there is one; refused if it was fitted with other options."""
    if folder is None or not (folder / FILE).exists():
        return None
    try:
        saved = read_fitted(folder)
    except InputError as error:
        raise InputError(error.message, REPLACE) from error
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


def _learned_from_other_data(folder: Any) -> InputError:
    return other_content(Path(folder), "an ensemble", "which was learned from other data")


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
    reader = InputReader(**dict(read_options or {}))
    if streaming is not None or isinstance(predictions, Shards):
        how = reader.streamed(predictions, annotations, split) | dict(streaming or {})
        how |= {name: getattr(ensemble, name) for name in ("ties", "random_state", "scale")}
        with FitData.open(predictions, **how) as data:
            return ensemble.trade_off(data, None)
    labels = reader.annotations("annotations", annotations, split)
    return ensemble.trade_off(reader.predictions("predictions", predictions), labels)


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
    parts: Iterable[Predictions | Pooled]
    if isinstance(predictions, str | Path):
        for made in (out, tasks if review is not None else None):
            refuse_input(made, Path(predictions))
        parts = read_shards(predictions, pairs=True)
    else:
        parts = [predictions] if isinstance(predictions, Predictions) else predictions
    queue: list[Review] = []
    shown: Mapping[str, str] | None = None
    sums = {"entropy": 0.0, "spread": 0.0}
    classes: tuple[str, ...] = ()
    of_pairs, pairs = set[str](), 0

    def tables() -> Iterator[pa.Table]:
        nonlocal queue, shown, classes, pairs
        for part in parts:
            if isinstance(part, Pooled):
                pooled = part
            else:
                pooled = ensemble.describe(part, answer_for=answer_for)
                pooled = pooled if panel is None else pooled.panel(panel, level=level)
            if review is not None and pooled.annotators is not None:
                raise InputError(
                    "a review picks items, but these predictions are of pairs of an item and an"
                    " annotator",
                    "name the panel whose view counts, or leave the review out",
                    parameters=("panel", "review"),
                )
            sums["entropy"] += float(pooled.entropy.sum())
            sums["spread"] += float(pooled.spread.sum())
            classes = pooled.classes
            if pooled.annotators is not None:
                of_pairs.update(map(str, pooled.items))
                pairs += int((pooled.annotators != "").sum())
            if review is not None:
                queue = add_urgent(queue, pooled, review)
            yield pooled.to_table()
        if review is not None:
            # Texts that are missing are noticed before anything is in its place.
            shown = texts() if callable(texts) else texts
            label_studio_tasks(queue, shown)

    count = write_tables(tables(), out, quote_formulas=quote_formulas)
    result: dict[str, Any] = {"out": str(out), "items": len(of_pairs) or count}
    if of_pairs:
        result["pairs"] = pairs
    result |= {name: sums[name] / count for name in sums}
    if answer_for is not None and ensemble.answers_ is not None:
        result["answer_for"] = {"metric": answer_for, **asdict(ensemble.answers_[answer_for])}
    if review is None:
        return result
    if shown is None:
        warn(
            "annotators who review will see ids of items alone; give annotations or texts",
            parameters=("annotations", "texts"),
        )
    config = write_review(queue, classes, tasks, shown)
    return {**result, "review": {"out": str(tasks), "config": str(config), "items": len(queue)}}


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
    parts: Iterable[Predictions]
    if isinstance(predictions, str | Path):
        parts = read_shards(predictions, pairs=True)
    else:
        parts = [predictions] if isinstance(predictions, Predictions) else predictions
    return PanelComparison.concatenate(
        [
            ensemble.describe(part, answer_for=answer_for).compare(one, other, level=level)
            for part in parts
        ]
    )


def _is_same(a: Fitted, b: Fitted) -> bool:
    """Whether the same was learned, but for rounding, by whichever version."""
    described = (a.members, a.classes, a.items, a.data) == (b.members, b.classes, b.items, b.data)
    return described and all(
        np.allclose(getattr(a, name), getattr(b, name), rtol=0, atol=1e-6)
        for name in ("weights", "member_ce")
    )


FORMAT = 1
"""Raised when older versions could no longer read what is written."""
FILE = "ensemble.json"


def write_fitted(fitted: Fitted, folder: str | Path) -> None:
    """Write ``ensemble.json`` and ``README.md``, the card."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(
            f"an ensemble is written into a folder, but {folder} is a file", "name a folder"
        )
    libraries = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    content = {
        "format": FORMAT,
        "kind": "edo-ensemble",
        **fitted.to_dict(),
        "versions": {"edokit": __version__, **libraries},
    }
    begin_run(folder)
    # By this the folder is known as EDO's, should the process end before there is a card.
    write_json(content, folder / FILE)
    with whole_file(folder / "README.md") as temporary:
        temporary.write_text(card(content), encoding="utf-8")


def read_fitted(folder: str | Path) -> Fitted:
    """What ``write_fitted`` wrote, in this or an older version; anything else is refused."""
    path = Path(folder) / FILE
    if not path.exists():
        inside = Path(folder) / "ensemble"
        found = (inside / FILE).exists()
        raise InputError(
            f"an ensemble is a folder with {FILE}, but {folder}"
            f" {'has none' if Path(folder).exists() else 'does not exist'}",
            f"give {inside}" if found else "make one with `edo fit` or EDOEnsemble.save",
        )
    with reading(path, "ensemble") as content:
        return Fitted.from_dict(content)


@contextmanager
def reading(path: Path, kind: str, newest: int = FORMAT) -> Iterator[dict[str, Any]]:
    """The content of a JSON file of this kind; whatever is wrong with it is one error."""
    about = record({"kind": text, "format": number(0, whole=True)})
    content = read_document(path, about, f"an EDO {kind}", "check that it is the right file")
    if content["kind"] != f"edo-{kind}":
        raise InputError(
            f"{path} does not describe an EDO {kind}", "check that it is the right file"
        )
    if content["format"] > newest:
        raise InputError(
            f"{path} has format {content['format']}; this version reads format {newest} or older",
            "install a newer edokit (pip install --upgrade edokit)",
        )
    try:
        yield content
    except WrongValueError as error:
        raise InputError(f"{path} is damaged: {error}", "restore it, or fit again") from error


_CARD = """# An EDO ensemble

{size} of {count} members carry weight in a {pool} pool over the {kind} {classes}.
{learned} {items}{annotated}, by edokit {version}.

## Members
| member | weight | own cross-entropy |
|---|---|---|
{members}

## On {where}
{metrics}

Settings: {settings}.
{penalty}{certificate}
## Intended use
Estimating how a group of annotators would label items: which they would disagree on, and how far.
A low entropy means that the annotators' labels are predictable, not that a label is right.

## Limits
- It repeats the views, and the biases, of the annotators it learned from; it does not remove them.
- It was not made to replace human oversight. In high-stakes decisions, such as moderation, keep
  people in the loop, first of all where the entropy or the spread is high. Who should
  look, and how: people who know the matter, and those concerned; `edo predict --review N` picks the
  N items where they are needed most, says why, and writes them for Label Studio.
- Do not use it for surveillance, for punishing people, or without the consent of those concerned,
  and keep to the data protection rules that apply to you.
- Weights fit the data above; on other topics, languages or groups of people, measure first
  (`edo evaluate`).
{attributes}"""
_ATTRIBUTES = """
## Attributes of annotators
{users} used attributes of the annotators, beside or instead of their ids: {names}. {note}
"""


_KINDS = {
    "nominal": "classes",
    "ordinal": "ordinal scale",
    "multi-label": "labels (any number of them at once)",
}


def card(content: dict[str, Any]) -> str:
    """The card of an ensemble as ``ensemble.json`` describes it."""
    members, own = content["members"], content["member_ce"]
    # Some older ensembles of groups hold the cross-entropies of the groups.
    own = own if len(own) == len(members) else [None] * len(members)
    by_weight = sorted(zip(members, content["weights"], own, strict=True), key=lambda row: -row[1])
    shown = [row for row in by_weight if row[1] > 0]
    rows = [
        f"| {markdown_text(name)} | {weight:.4f} | {'–' if ce is None else f'{ce:.4f}'} |"
        for name, weight, ce in shown
    ]
    if len(shown) < len(by_weight):
        rows.append(f"| {counted(len(by_weight) - len(shown), 'other')} | 0 | |")
    metrics, settings, data = content["metrics"], content["settings"], content.get("data")
    annotated = certificate = penalty = ""
    if data:
        hard = ", ".join(
            f"{count} × {markdown_text(name)}" for name, count in data["hard_labels"].items()
        )
        annotated = (
            f" with {data['annotations']} annotations by {data['annotators']} annotators"
            f" (hard labels: {hard})"
        )
    if content["certificate"]:
        certificate = "\nCertificate: {reason} ({gap:.1e}).\n".format(**content["certificate"])
    items, pairs = counted(content["items"], "item"), content.get("pairs")
    items = items if pairs is None else f"{counted(pairs, 'pair')} of {items}"
    if chosen := describe_lambda_reg(settings, content["items"], pairs):
        penalty = f"\n{chosen}\n"
    learned, scale = settings.get("solver") != "given", content.get("scale")
    named = [
        *("solver", "ce", "diversity", "lambda_f1", "lambda_ce", "lambda_div", "lambda_reg"),
        *("class_weights", "recalibrate"),
        *(name for name in ("lambda_rps", "lambda_w1") if settings.get(name)),
        *(["label_weights"] if content.get("label_weights") else []),
    ]
    return _CARD.format(
        size=content["size"],
        count=len(content["members"]) if content["groups"] is None else "the grouped",
        pool=content["pool"],
        kind="classes" if not scale else _KINDS[Declared(scale).kind],
        classes=", ".join(map(markdown_text, content["classes"])),
        learned="Learned from" if learned else "Its weights were given; evaluated on",
        where="the fit data (not held out)" if learned else "these items",
        items=items,
        annotated=annotated,
        version=content["versions"]["edokit"],
        members="\n".join(rows),
        metrics=", ".join(
            f"{name.upper().replace('_', ' ')} {metrics[name]:.4f}"
            for name in main_metrics(Declared(scale or NOMINAL).on(content["classes"]))
            if metrics.get(name) is not None
        ),
        settings=", ".join(f"{name} {settings[name]}" for name in named if name in settings),
        penalty=penalty,
        certificate=certificate,
        attributes=_attributes_of(content.get("member_info") or {}),
    )


def _attributes_of(member_info: MemberInfo) -> str:
    """The part of a card about attributes of annotators, if members use some."""
    used = [str(own["attributes"]) for own in member_info.values() if own.get("attributes")]
    if not used:
        return ""
    names = dict.fromkeys(name for text in used for name in attribute_names(text))
    shown = ", ".join(map(markdown_text, names))
    return _ATTRIBUTES.format(users=counted(len(used), "member"), names=shown, note=ATTRIBUTES_NOTE)
