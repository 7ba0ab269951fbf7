"""`edo predict`: pooled probabilities of new items."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edokit._errors import InputError, counted
from edokit.cli import console, options, reviewing

if TYPE_CHECKING:
    from edokit.ensemble import EDOEnsemble


def predict(
    ensemble: Annotated[
        Path,
        typer.Argument(
            help="A folder made by `edo fit`, or RUN/ensemble of a search.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option(help="The probabilities: .csv, .tsv, .parquet or .jsonl.")],
    predictions: Annotated[
        Path | None, typer.Option(help="What its members say: .npz, Parquet or a folder of shards.")
    ] = None,
    members: Annotated[
        Path | None, typer.Option(help="Or its members themselves (a folder of `edo train`), …")
    ] = None,
    texts: Annotated[
        Path | None, typer.Option(help="… with texts: item and text columns, or a text per line.")
    ] = None,
    pairs: Annotated[
        bool,
        typer.Option("--pairs", help="The first line of a text is judged, the rest is context."),
    ] = False,
    device: Annotated[str | None, typer.Option(help="Where to compute, e.g. cpu or cuda.")] = None,
    judges: options.Judges = None,
    review: Annotated[
        int | None,
        typer.Option(min=1, help="Also pick so many items where people are needed most."),
    ] = None,
    review_out: Annotated[
        Path | None,
        typer.Option(help="Where they go, for Label Studio (.json); beside --out unless told."),
    ] = None,
    annotations: Annotated[
        Path | None, typer.Option(help="A source with the texts of the items to review.")
    ] = None,
    split: options.Split = None,
    column: options.Column = None,
    json: options.Json = False,
) -> None:
    """Pool the members' answers: probabilities, entropy, spread of the members and a label."""
    from edokit._io import write_table
    from edokit._outputs import refuse_input
    from edokit.ensemble import load_ensemble
    from edokit.predictions import read_predictions

    if review is None and (review_out is not None or annotations is not None):
        raise InputError(
            "--review-out and --annotations go with --review N, but it is not given",
            "say how many items to review, or leave them out",
        )
    # Texts are what members are asked about, or what people see in the review.
    unasked = texts is not None and members is None and review is None
    lacking = members is not None and texts is None
    if (predictions is None) == (members is None) or unasked or lacking:
        raise InputError(
            "what to pool is given by --predictions, or by --members with --texts, but"
            f" {_given(predictions, members, texts)}",
            "give one of the two",
        )
    if judges is not None and members is None:
        raise InputError(
            "--judges is for members that are asked now (--members), but --predictions is given",
            "leave it out, or give it to `edo score`, which makes predictions",
        )
    for made in (out, review_out):
        refuse_input(made, predictions, texts, judges, annotations)
    fitted = load_ensemble(ensemble)
    shown = texts if annotations is None else annotations
    queue = reviewing.Queue(review, review_out, out, shown, split, column)
    if predictions is not None and predictions.is_dir():
        _by_shard(fitted, predictions, out, queue, json)
        return
    if members is None or texts is None:
        answers = read_predictions(str(predictions))
    else:
        from edokit.members import score_members

        asked, people = options.read_asked(texts, judges, column=column, split=split, context=pairs)
        needed = fitted.needed_members()
        answers = score_members(members, asked, needed, device=device, annotators=people)
    pooled = fitted.describe(answers)
    queue.add(pooled)
    queue.find_texts()
    write_table(pooled.to_table(), out)
    count = len(pooled.items)
    console.done(
        {
            "out": str(out),
            "items": count,
            "entropy": float(pooled.entropy.mean()),
            "spread": float(pooled.spread.mean()),
            **queue.write(),
        },
        f"{out}: {counted(count, 'item')}, mean entropy {pooled.entropy.mean():.4f},"
        f" mean spread {pooled.spread.mean():.4f}{queue.said()}",
        json,
    )


def _by_shard(
    fitted: EDOEnsemble, folder: Path, out: Path, queue: reviewing.Queue, json: bool
) -> None:
    """Pool one shard after the other, so that no more than one need be in memory."""
    from edokit._io import write_tables
    from edokit.predictions import read_shards

    sums = {"items": 0, "entropy": 0.0, "spread": 0.0}

    def parts() -> Iterator[Any]:
        for shard in read_shards(folder):
            pooled = fitted.describe(shard)
            sums["items"] += len(pooled.items)
            sums["entropy"] += float(pooled.entropy.sum())
            sums["spread"] += float(pooled.spread.sum())
            queue.add(pooled)
            yield pooled.to_table()

    count = write_tables(parts(), out)
    means = {name: sums[name] / count for name in ("entropy", "spread")}
    console.done(
        {"out": str(out), "items": count, **means, **queue.write()},
        f"{out}: {counted(count, 'item')}, mean entropy {means['entropy']:.4f},"
        f" mean spread {means['spread']:.4f}{queue.said()}",
        json,
    )


def _given(predictions: Path | None, members: Path | None, texts: Path | None) -> str:
    """Which of the options are there, in words."""
    options = {"--predictions": predictions, "--members": members, "--texts": texts}
    there = [name for name, value in options.items() if value is not None]
    return f"got {' and '.join(there)}" if there else "got none of them"
