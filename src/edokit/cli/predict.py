"""`edo predict`: pooled probabilities of new items."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edokit.cli import console, options


def predict(
    ensemble: Annotated[
        Path, typer.Argument(help="A folder made by `edo fit`.", show_default=False)
    ],
    predictions: Annotated[
        Path, typer.Option(help="What its members say: .npz, Parquet or a folder of shards.")
    ],
    out: Annotated[Path, typer.Option(help="The probabilities: .csv, .tsv, .parquet or .jsonl.")],
    json: options.Json = False,
) -> None:
    """Pool the members' answers: probabilities, entropy, spread of the members and a label."""
    from edokit.ensemble import load_ensemble
    from edokit.files import write_table
    from edokit.predictions import read_predictions

    pooled = load_ensemble(ensemble).describe(read_predictions(predictions))
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
