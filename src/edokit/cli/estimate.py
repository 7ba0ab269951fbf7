"""`edo estimate`: shares among many texts, from their answers and few labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from edokit.cli import console, options


def estimate(
    bundle: options.Argument,
    /,
    *,
    texts: Path,
    labels: Path | None = None,
    by: str | None = None,
    panel: str | None = None,
    level: float = 0.95,
    reading: Annotated[options.Reading, options.FLAT] = options.Reading(),
    json: options.Json = False,
) -> None:
    """Estimate the share of each class among many texts, from answers and a few labels.

    Labels of some of the texts, drawn at random, correct the answers, and the answers make the
    labels count for more. The interval is never wider than that of the labels alone.

    Parameters
    ----------
    bundle : Path
        A folder made by `edo run` or `edo bundle`.
    texts : Path
        All texts: item and text columns, or a text per line.
    labels : Path, optional
        Annotations of some of these items (any source). Without them, people are assumed to judge
        these texts as they judged those of the fit with the same answers.
    by : str, optional
        Also for the texts with each value of this column, e.g. country.
    panel : str, optional
        In whose eyes: people with a level of an attribute (race=Black), or the file of a panel.
    level : float, default=0.95
        Level of the intervals.
    """
    from edokit.analysis.estimate import estimate as estimate_shares

    result = estimate_shares(
        bundle,
        texts,
        labels=labels,
        panel=panel,
        by=by,
        level=level,
        **options.given_arguments(reading),
    )
    console.print_answer(result, json)
