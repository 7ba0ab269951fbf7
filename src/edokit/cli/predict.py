"""`edo predict`: pooled probabilities of new items."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edokit._errors import InputError, counted
from edokit.cli import console, options

if TYPE_CHECKING:
    from edokit.panels import Panel


@options.reads(options.SPLIT, options.COLUMNS)
def predict(
    ensemble: Annotated[
        Path,
        typer.Argument(
            help="A folder made by `edo fit`, or RUN/ensemble of a search.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option(help="The probabilities: .csv, .tsv, .parquet or .jsonl.")],
    predictions: Annotated[
        Path | None,
        typer.Option(help="Its members' predictions: .npz, Parquet or shards."),
    ] = None,
    members: Annotated[
        Path | None, typer.Option(help="Or its members themselves (a folder of `edo train`), …")
    ] = None,
    texts: Annotated[
        Path | None, typer.Option(help="… with texts: item and text columns, or a text per line.")
    ] = None,
    pairs: options.Pairs = False,
    device: options.Device = None,
    judges: options.Judges = None,
    review: Annotated[
        int | None,
        typer.Option(min=1, help="Also pick so many items that most need annotators."),
    ] = None,
    review_out: Annotated[
        Path | None,
        typer.Option(help="Where they go, for Label Studio (.json); beside --out if not given."),
    ] = None,
    answer_for: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="METRIC",
            help="Answers for a metric instead of the pool: ce, md, w1 (ordinal scales) or f1, by a"
            " step that was fitted with the ensemble.",
        ),
    ] = None,
    panel: Annotated[
        Path | None,
        typer.Option(
            help="What this panel would answer: a file with an annotator per line, a table with"
            " annotator (and weight), or one with attribute, value, share (and size)."
        ),
    ] = None,
    as_annotator: Annotated[
        str | None, typer.Option("--as", metavar="ANNOTATOR", help="What this person would answer.")
    ] = None,
    annotators: Annotated[
        Path | None,
        typer.Option(help="Annotations whose annotators have the attributes of --panel."),
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals of a panel's votes.")] = 0.9,
    quote_formulas: options.QuoteFormulas = False,
    annotations: Annotated[
        Path | None, typer.Option(help="A source with the texts of the items to review.")
    ] = None,
    overwrite: options.Overwrite = False,
    *,
    reading: options.Reading,
    json: options.Json = False,
) -> None:
    """Pool the members' predictions: probabilities, entropy, spread of the members and a label."""
    from edokit._outputs import output_files
    from edokit.ensemble import load_ensemble, predict_to_file

    if review is None and (review_out is not None or annotations is not None):
        raise InputError(
            "--review-out and --annotations need --review N",
            "add the number of items to review, or leave them out",
        )
    # Texts are what members predict for, or what annotators see in the review.
    unused = texts is not None and members is None and review is None
    incomplete = members is not None and texts is None
    if (predictions is None) == (members is None) or unused or incomplete:
        given = {"--predictions": predictions, "--members": members, "--texts": texts}
        there = [name for name, value in given.items() if value is not None]
        raise InputError(
            f"got {' and '.join(there) or 'nothing'} to pool, which is not enough or too much",
            "give either --predictions, or --members with --texts",
        )
    if judges is not None and members is None:
        raise InputError(
            "--judges is for members that predict now (--members), but --predictions is given",
            "leave it out, or give it to `edo score`, which makes predictions",
        )
    inputs = (ensemble / "ensemble.json", predictions, texts, judges, annotations, panel)
    fitted = load_ensemble(ensemble)
    view = _panel(panel, as_annotator, annotators)
    if answer_for is not None:
        fitted.answer_step(answer_for)  # refused before anything is read
    source: Any = predictions
    if members is not None and texts is not None:
        from edokit.members import score_members

        asked, known = reading.texts(texts, judges, pairs=pairs)
        needed = fitted.needed_members()
        if view is not None:
            known = dict.fromkeys(asked.items, view.annotators)
        source = score_members(
            members,
            asked,
            needed,
            device=device,
            annotators=known,
            by_annotator=view is not None,
        )
    shown = texts if annotations is None else annotations

    def read_texts() -> dict[str, str] | None:
        if shown is None:
            return None
        from edokit.members.recipe import joined

        found, _ = reading.texts(shown)
        return dict(zip(found.items, map(joined, found.texts), strict=True))

    with output_files(out, review_out, inputs=inputs, overwrite=overwrite):
        result = predict_to_file(
            fitted,
            source,
            out,
            review=review,
            review_out=review_out,
            texts=read_texts,
            quote_formulas=quote_formulas,
            answer_for=answer_for,
            panel=view,
            level=level,
        )
    line = (
        f"{out}: {counted(result['items'], 'item')}, mean entropy {result['entropy']:.4f},"
        f" mean spread {result['spread']:.4f}"
    )
    if view is not None:
        line += f"; what {view} would answer"
    if answer_for is not None:
        line += (
            f"; p_… are answers for {answer_for}, not the pool: {fitted.answer_step(answer_for)}"
        )
    if review is not None:
        queue = result["review"]
        some = counted(queue["items"], "item")
        fewer = queue["items"] < review
        line += f"; {'all ' if fewer else 'the '}{some} to review, most urgent first, for Label"
        line += f" Studio: {queue['out']} (interface: {queue['config']})"
    console.done(result, line, json)


def _panel(panel: Path | None, person: str | None, annotators: Path | None) -> Panel | None:
    """Whose view is asked for, if anybody's."""
    if panel is not None and person is not None:
        raise InputError("both --panel and --as are given", "leave one of them out")
    if person is not None:
        from edokit.panels import Panel

        return Panel((person,), name=f"annotator {person!r}")
    if panel is None:
        return None
    from edokit.datasets import read_annotations
    from edokit.panels import read_panel

    return read_panel(panel, None if annotators is None else read_annotations(annotators))
