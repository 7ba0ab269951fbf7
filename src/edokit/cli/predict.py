"""`edo predict`: pooled probabilities of new items."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edokit.cli import console, options
from edokit.errors import InputError


def predict(
    ensemble: Annotated[
        Path, typer.Argument(help="A folder made by `edo fit`.", show_default=False)
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
    split: options.Split = None,
    column: options.Column = None,
    json: options.Json = False,
) -> None:
    """Pool the members' answers: probabilities, entropy, spread of the members and a label."""
    from edokit.ensemble import load_ensemble
    from edokit.files import write_table
    from edokit.predictions import read_predictions

    if (predictions is None) == (members is None) or (members is None) != (texts is None):
        raise InputError(
            "what to pool is given by --predictions, or by --members with --texts, but"
            f" {_given(predictions, members, texts)}",
            "give one of the two",
        )
    fitted = load_ensemble(ensemble)
    if members is None or texts is None:
        answers = read_predictions(str(predictions))
    else:
        from edokit.members import read_texts, score_members

        asked = read_texts(
            texts,
            columns=options.pairs(column, "--column", "ROLE=NAME"),
            pairs=pairs,
            split=split,
        )
        answers = score_members(members, asked, fitted.needed_members(), device=device)
    pooled = fitted.describe(answers)
    write_table(pooled.to_table(), out)
    count = len(pooled.items)
    console.done(
        {
            "out": str(out),
            "items": count,
            "entropy": float(pooled.entropy.mean()),
            "spread": float(pooled.spread.mean()),
        },
        f"{out}: {count} items, mean entropy {pooled.entropy.mean():.4f},"
        f" mean spread {pooled.spread.mean():.4f}",
        json,
    )


def _given(predictions: Path | None, members: Path | None, texts: Path | None) -> str:
    """Which of the options are there, in words."""
    options = {"--predictions": predictions, "--members": members, "--texts": texts}
    there = [name for name, value in options.items() if value is not None]
    return f"got {' and '.join(there)}" if there else "got none of them"
