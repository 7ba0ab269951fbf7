"""`edo data`: see, convert, split and obtain annotations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from edokit._errors import InputError, are, counted, examples, one_of
from edokit.cli import console, options


@options.reads(options.SPLIT, options.FORMATS)
def info(source: options.Source, *, reading: options.Reading, json: options.Json = False) -> None:
    """Count items, annotators, annotations and near-duplicate texts, split by split."""
    from edokit.datasets import describe_annotations

    with console.progress() as bars:
        console.add_bar(bars, "reading, comparing texts")
        result = describe_annotations(reading.annotations(source))
    if json:
        console.print_json(result)
    else:
        console.print_described(str(source), result)


@options.reads(options.SPLIT, options.FORMATS, options.TEXTS)
def convert(
    source: options.Source,
    out: options.TableOut,
    items: Annotated[
        list[Path] | None,
        typer.Option(help="Only the items of these predictions (repeatable).", metavar="FILE"),
    ] = None,
    quote_formulas: options.QuoteFormulas = False,
    overwrite: options.Overwrite = False,
    *,
    reading: options.Reading,
    json: options.Json = False,
) -> None:
    """Write any source as one row per annotation, with all its columns of text or numbers."""
    import numpy as np

    from edokit._outputs import output_files
    from edokit.datasets import write_annotations
    from edokit.predictions import read_predictions

    left_out = ""
    with output_files(out, inputs=[source, *(items or ())], overwrite=overwrite):
        annotations = reading.annotations(source)
        if items:
            known = np.concatenate([read_predictions(file).items for file in items])
            kept = np.isin(annotations.items, known)
            if not kept.any():
                raise InputError(
                    f"none of the {counted(len(kept), 'item')} of {source} is in"
                    f" {', '.join(map(str, items))}",
                    "check the ids",
                )
            gone = annotations.items[~kept]
            some = f": {examples(gone)}" if len(gone) else ""
            left_out = f"; {are(len(gone), len(kept), noun='item')} left out (--items){some}"
            annotations = annotations.take(kept)
        write_annotations(annotations, out, quote_formulas=quote_formulas)
    n, columns = len(annotations.items), annotations.to_table().column_names
    console.done(
        {"out": str(out), "items": n, "annotations": len(annotations), "columns": columns},
        f"{out}: {counted(len(annotations), 'annotation')} of {counted(n, 'item')};"
        f" columns {', '.join(columns)}{left_out}",
        json,
    )


@options.reads(options.FORMATS)
def split(
    source: options.Source,
    out: options.TableOut,
    from_splits: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="SPLITS",
            help="The splits whose items are divided, e.g. dev; else the items without a split.",
        ),
    ] = None,
    shares: Annotated[
        str | None,
        typer.Option(
            "--into",
            "--shares",
            help="The splits to divide into, with or without shares: train,dev or"
            " train=0.7,dev=0.3; by default train=0.8,dev=0.1,test=0.1 if no item is in a split.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random split.")] = 0,
    overwrite: options.Overwrite = False,
    *,
    reading: options.Reading,
    json: options.Json = False,
) -> None:
    """Split by item, stratified by hard label, near-duplicate texts kept on one side.

    Items that are in a split already stay there, unless --from names it.
    """
    from edokit._outputs import output_files
    from edokit.datasets import describe_annotations, split_items, write_annotations
    from edokit.datasets.split import split_moves

    with output_files(out, inputs=[source], overwrite=overwrite), console.progress() as bars:
        console.add_bar(bars, "reading, comparing texts")
        before = reading.annotations(source)
        annotations = split_items(
            before,
            None if shares is None else _shares(shares),
            from_splits=options.names(from_splits),
            random_state=seed,
        )
        write_annotations(annotations, out)
    moves, result = split_moves(before, annotations), describe_annotations(annotations)
    if json:
        listed = [{"from": old or None, "to": new, "items": n} for (old, new), n in moves.items()]
        console.print_json({"out": str(out), "moves": listed, **result})
        return
    console.print_described(str(out), result)
    lines = [
        f"{old or 'no split'} → {new}: {counted(n, 'item')}"
        for (old, new), n in moves.items()
        if old != new
    ]
    kept = [f"{old} {n}" for (old, new), n in moves.items() if old == new]
    lines = lines or ["Every item is in a split already: nothing moves."]
    console.print_lines([*lines, *([f"Kept: {', '.join(kept)}."] if kept else [])])


def get(
    name: Annotated[str, typer.Argument(help="lewidi2023 or lewidi2025.")],
    out: Annotated[
        Path | None,
        typer.Argument(help="Where the dataset goes; else a folder of its name."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", help="A local copy, a folder or a zip, instead of the official repository."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds that all downloads together may take.")
    ] = 600,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Download a dataset from its official repository, or copy it, with checksums verified."""
    from edokit._outputs import locked, output_files
    from edokit.datasets.read import obtainable

    known = obtainable()
    one_of("the dataset", name, known)
    out = Path(name) if out is None else out
    with locked(out), output_files(out, overwrite=overwrite), console.progress() as bars:
        bar = console.add_bar(bars, "files")
        files = known[name](out, source=source, timeout=timeout, progress=bar)
    console.done(
        {"out": str(out), "files": [str(file) for file in files]},
        f"{out}: {counted(len(files), 'file')}, checksums verified",
        json,
    )


def simulate(
    regime: Annotated[
        str,
        typer.Argument(
            help="three-voices, partial-panel, two-camps, crowd, seven-points (ordinal) or"
            " three-labels (multi-label)."
        ),
    ],
    out: options.TableOut,
    truth: Annotated[
        Path | None,
        typer.Option(help="Also a table with the shares of the whole population, item by item."),
    ] = None,
    items: Annotated[
        str | None, typer.Option(help="Items of train, dev and test, e.g. 600,100,100.")
    ] = None,
    n_classes: Annotated[
        int | None, typer.Option(help="How many classes or points; the regime's by default.")
    ] = None,
    structured: Annotated[
        float | None,
        typer.Option(help="The lasting part of the disagreement: 0 is pure noise, 1 has none."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of annotators and texts.")] = 0,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Simulate annotators of short posts, whose true label distribution is known."""
    from edokit._outputs import output_files
    from edokit.annotations import Annotations
    from edokit.datasets import describe_annotations, write_annotations
    from edokit.datasets.simulate import simulate as simulate_regime

    sizes = None if items is None else _sizes(items)
    with output_files(out, truth, overwrite=overwrite):
        found = simulate_regime(
            regime, random_state=seed, items=sizes, n_classes=n_classes, structured=structured
        )
        people = found.annotations
        write_annotations(people, out)
        if truth is not None:
            shares = Annotations.from_soft_labels(
                found.truth,
                items=people.items,
                classes=people.classes,
                annotator="everyone",
                scale=people.scale,
            )
            write_annotations(replace(shares, splits=people.splits), truth)
    result = describe_annotations(people, near_duplicates=False)
    if json:
        console.print_json({"out": str(out), "truth": truth and str(truth), **result})
    else:
        console.print_described(str(out), result)


def _sizes(text: str) -> tuple[int, int, int]:
    """``600,100,100`` as numbers."""
    try:
        train, dev, test = map(int, text.split(","))
    except ValueError as error:
        raise InputError(
            f"--items {text!r} is not three whole numbers", "write --items 600,100,100"
        ) from error
    return train, dev, test


def _shares(text: str) -> dict[str, float] | list[str]:
    """``train,dev`` as names, ``train=0.7,dev=0.3`` as shares."""
    parts = [part.strip() for part in text.split(",")]
    if all(parts) and "=" not in text:
        return parts
    return options.numbers(parts, "--into", "NAME=SHARE,…")
