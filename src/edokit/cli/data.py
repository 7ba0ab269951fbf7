"""`edo data`: see, convert, split and obtain annotations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from edokit._errors import HAVE, InputError, are, counted, examples, one_of
from edokit.cli import console, options

if TYPE_CHECKING:
    from edokit._types import Bools
    from edokit.annotations.core import Annotations

SPLITS = Parameter(metavar="SPLITS")


def read_sizes(texts: Sequence[str], option: str, form: str) -> tuple[int, ...]:
    """``["600,100,100"]`` as the numbers of items of train, dev and test."""
    sizes = options.whole_numbers(texts, option, form)
    if len(sizes) != 3:
        raise InputError(
            f"{option} {','.join(texts)} is not three numbers, the items of train, dev and test",
            f"write {option} 600,100,100",
            code="malformed-option",
        )
    return sizes


def info(
    source: options.AnnotationsSource,
    /,
    *,
    reading: Annotated[options.SplitReading, options.FLAT] = options.SplitReading(),
    json: options.Json = False,
) -> None:
    """Count items, annotators, annotations and near-duplicate texts, split by split."""
    from edokit.datasets.info import describe_annotations

    with console.progress() as bars:
        console.add_bar(bars, "reading, comparing texts")
        result = describe_annotations(reading.annotations(source))
    console.print_result(result, lambda: _print_description(str(source), result), json)


def convert(
    source: options.AnnotationsSource,
    out: options.TableOut,
    /,
    *,
    items: Annotated[list[Path] | None, Parameter(metavar="FILE")] = None,
    group_similar: bool = False,
    raw: options.Raw = False,
    overwrite: options.Overwrite = False,
    reading: Annotated[options.SplitReading, options.FLAT] = options.SplitReading(),
    json: options.Json = False,
) -> None:
    """Write any source as a table with one row per annotation.

    Parameters
    ----------
    items : list of Path, optional
        Only the items of these predictions (repeatable).
    group_similar : bool, default=False
        Put items whose texts share most of their words into one group (column item_group), which
        folds, splits and intervals keep together.
    """
    from edokit.datasets.read import write_annotations
    from edokit.datasets.similar_texts import group_similar_texts
    from edokit.runs.folder import output_files

    left_out = ""
    with output_files(out, inputs=[source, *(items or ())], overwrite=overwrite):
        annotations = reading.annotations(source)
        if items:
            is_predicted = _is_predicted(annotations, items, source)
            missing = annotations.items[~is_predicted]
            left_out = f"; {are(len(missing), len(is_predicted), noun='item')} left out"
            if len(missing):
                left_out += f": {examples(missing)}"
            annotations = annotations.take(is_predicted)
        if group_similar:
            annotations = group_similar_texts(annotations)
        write_annotations(annotations, out, raw=raw)
    items_written = len(annotations.items)
    columns = annotations.to_table().column_names
    console.print_result(
        {
            "out": str(out),
            "items": items_written,
            "annotations": len(annotations),
            "columns": columns,
        },
        f"{out}: {counted(len(annotations), 'annotation')} of {counted(items_written, 'item')};"
        f" columns {', '.join(columns)}{left_out}",
        json,
    )


def _is_predicted(annotations: Annotations, files: Sequence[Path], source: Path) -> Bools:
    """Which items are in these predictions [N]."""
    import pandas as pd

    from edokit.predictions.shards import read_predictions

    names: list[str] = []
    for file in files:
        names.extend(read_predictions(file).items)
    predicted = pd.Index(annotations.items).isin(names)
    if not predicted.any():
        file_names = ", ".join(map(str, files))
        raise InputError(
            f"no item of {source} is in {file_names}", "check the ids", code="unknown-item"
        )
    return predicted


def split(
    source: options.AnnotationsSource,
    out: options.TableOut,
    /,
    *,
    from_splits: Annotated[options.Names, Parameter(name="--from"), SPLITS] = None,
    shares: Annotated[str | None, Parameter(name="--into")] = None,
    random_state: int = 0,
    overwrite: options.Overwrite = False,
    reading: Annotated[options.Reading, options.FLAT] = options.Reading(),
    json: options.Json = False,
) -> None:
    """Split by item, stratified by hard label; groups of items stay together.

    Items that are in a split already stay there, unless --from names it.

    Parameters
    ----------
    from_splits : list of str, optional
        The splits whose items are divided, e.g. dev; else the items without a split.
    shares : str, optional
        The splits to divide into, e.g. train=0.7,dev=0.3; by default train=0.8,dev=0.1,test=0.1 if
        no item is in a split.
    random_state : int, default=0
        Seed of the random split.
    """
    from edokit.datasets.info import describe_annotations
    from edokit.datasets.read import write_annotations
    from edokit.datasets.split import split_items
    from edokit.runs.folder import output_files

    split_shares = None
    if shares is not None:
        split_shares = options.numbers(shares.split(","), "--into", "NAME=SHARE,…")
    with output_files(out, inputs=[source], overwrite=overwrite), console.progress() as bars:
        console.add_bar(bars, "reading, comparing texts")
        annotations = split_items(
            reading.annotations(source),
            split_shares,
            from_splits=from_splits,
            random_state=random_state,
        )
        write_annotations(annotations, out)
    result = describe_annotations(annotations)
    values = {"out": str(out), **result}
    console.print_result(values, lambda: _print_description(str(out), result), json)


def get(
    name: Annotated[str, options.POSITIONAL],
    out: Annotated[Path | None, options.POSITIONAL] = None,
    /,
    *,
    source: Annotated[Path | None, Parameter(name="--from")] = None,
    timeout: float = 600,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Download a dataset from its official repository, or copy it; verify checksums.

    Parameters
    ----------
    name : str
        lewidi2023 or lewidi2025.
    out : Path, optional
        Where the dataset goes; else a folder of its name.
    source : Path, optional
        The folder of a local copy, instead of the official repository.
    timeout : float, default=600
        Seconds that all downloads together may take.
    """
    from edokit.datasets.get import DATASETS, get_dataset
    from edokit.runs.folder import locked, output_files

    one_of("the dataset", name, DATASETS)
    folder = Path(name) if out is None else out
    with locked(folder), output_files(folder, overwrite=overwrite), console.progress() as bars:
        bar = console.add_bar(bars, "files")
        files = get_dataset(name, folder, source=source, timeout=timeout, progress=bar)
    console.print_result(
        {"out": str(folder), "files": [str(file) for file in files]},
        f"{folder}: {counted(len(files), 'file')}, checksums verified",
        json,
    )


def simulate(
    regime: Annotated[str, options.POSITIONAL],
    out: options.TableOut,
    /,
    *,
    items: Annotated[tuple[int, int, int] | None, options.parser(read_sizes, "NUMBERS")] = None,
    random_state: int = 0,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Simulate annotators of short posts, whose true label distribution is known.

    Parameters
    ----------
    regime : str
        three-voices, partial-panel, two-camps, crowd, seven-points (ordinal) or three-labels
        (multi-label).
    items : list of int, optional
        Items of train, dev and test, e.g. 600,100,100.
    random_state : int, default=0
        Seed of annotators and texts.
    """
    from edokit.datasets.info import describe_annotations
    from edokit.datasets.read import write_annotations
    from edokit.datasets.simulate.simulation import simulate as simulate_regime
    from edokit.runs.folder import output_files

    with output_files(out, overwrite=overwrite):
        annotations = simulate_regime(regime, random_state=random_state, items=items).annotations
        write_annotations(annotations, out)
    result = describe_annotations(annotations, near_duplicates=False)
    values = {"out": str(out), **result}
    console.print_result(values, lambda: _print_description(str(out), result), json)


def _print_description(title: str, description: dict[str, Any]) -> None:
    """The figures of `edokit.datasets.info.describe_annotations`, a column per split."""
    names = [name for name in ("train", "dev", "test") if name in description["splits"]]
    names += [name for name in description["splits"] if name not in names]
    columns = [_figures(description["splits"][name], description["classes"]) for name in names]
    rows = []
    for figure in columns[0]:
        rows.append([figure, *(column[figure] for column in columns)])
    console.print_table(title, ["", *names], rows, _description_notes(description))


def _figures(split: dict[str, Any], classes: Sequence[str]) -> dict[str, object]:
    """The column of a split in the table, by the name of each row."""
    lowest, highest = split["annotations_per_item"]
    per_item = f"{lowest}–{highest}"
    if lowest == highest:
        per_item = str(lowest)
    figures: dict[str, object] = {
        "items": split["items"],
        "annotators": split["annotators"],
        "annotations": split["annotations"],
        "per item": per_item,
    }
    for name in classes:
        figures[f"annotations {name}"] = f"{split['annotations_per_class'][name]:.6g}"
    for name in classes:
        figures[f"hard label {name}"] = f"{split['classes'][name]:.6g}"
    figures["largest : smallest"] = None
    if split["ratio"]:
        figures["largest : smallest"] = f"{split['ratio']:.2f} : 1"
    figures["tied items"] = split["ties"]["items"]
    figures["unanimous items"] = f"{split['unanimous']:.0%}"
    figures["mean entropy (nats)"] = f"{split['entropy']:.3f}"
    figures["median coverage"] = f"{split['coverage']['median']:.1%}"
    return figures


def _description_notes(description: dict[str, Any]) -> list[str]:
    """The scale, further columns, and near-duplicate texts."""
    notes = [f"Answer scale: {description['scale']}."]
    for heading, key in (("Item columns", "columns"), ("Annotators' attributes", "attributes")):
        if description[key]:
            notes.append(f"{heading}: {', '.join(description[key])}.")
    groups = description.get("item_groups")
    if groups:
        grouped_items = are(groups["items"], description["items"], noun="item")
        notes.append(f"{grouped_items} in {counted(groups['groups'], 'group')}.")
    duplicates = description.get("near_duplicates")
    if duplicates:
        texts = counted(duplicates["items"], "text")
        n_groups = counted(duplicates["groups"], "group")
        notes.append(f"{texts} with near-duplicates, in {n_groups}.")
        for name, counts in duplicates.get("splits", {}).items():
            notes.append(
                f"Of {name}, {are(counts['near'], verb=HAVE, noun='text')} a near-duplicate in"
                f" {duplicates['also_in']} ({counts['verbatim']} word for word)."
            )
    return notes
