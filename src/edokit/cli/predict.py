"""`edo predict`: pooled probabilities of new items."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edokit._errors import InputError, counted, money
from edokit.cli import console, options

if TYPE_CHECKING:
    from edokit.panels import Panel


@options.reads(options.SPLIT, options.COLUMNS)
def predict(
    ensemble: Annotated[
        Path,
        typer.Argument(help="A folder made by `edo fit`, RUN/ensemble of a search, or a bundle."),
    ],
    out: Annotated[Path, typer.Option(help="The probabilities: .csv, .tsv, .parquet or .jsonl.")],
    predictions: Annotated[
        Path | None,
        typer.Option(help="Its members' predictions: .npz, Parquet or shards."),
    ] = None,
    members: Annotated[
        Path | None,
        typer.Option(help="Or its members themselves (a folder of `edo train`; a bundle has them)"),
    ] = None,
    texts: Annotated[
        Path | None,
        typer.Option(help="with texts: item and text columns, or a text per line."),
    ] = None,
    pairs: options.Pairs = False,
    device: options.Device = None,
    trust: options.Trust = None,
    budget: options.Budget = None,
    max_length: Annotated[
        int, typer.Option(min=1, help="Characters that a text may have, with its context.")
    ] = 100_000,
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
        list[Path] | None,
        typer.Option(
            help="What this panel would answer: a file with an annotator per line, a table with"
            " annotator (and weight), or one with attribute, value, share (and size). Two panels"
            " (or persons) are compared."
        ),
    ] = None,
    as_annotator: Annotated[
        list[str] | None,
        typer.Option("--as", metavar="ANNOTATOR", help="What this person would answer."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(help="Also make a page (.html) that shows two panels side by side."),
    ] = None,
    annotators: Annotated[
        Path | None,
        typer.Option(
            help="Who the annotators are: with --panel or --as, annotations (or a table with"
            " annotator) that have their attributes; else those to predict, a row per item and"
            " annotator, and one without annotator, the anonymous answer."
        ),
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
    from edokit.bundle import ROWS, Bundle, is_bundle
    from edokit.ensemble import EDOEnsemble, predict_to_file
    from edokit.members.recipes._endpoint import session

    if review is None and (review_out is not None or (annotations is not None and page is None)):
        raise InputError(
            "--review-out and --annotations need --review N",
            "add the number of items to review, or leave them out",
        )
    # Texts are what members predict for, or what people see in the review or on the page.
    bundled = is_bundle(ensemble)
    by_members = members is not None or (bundled and predictions is None)
    unused = texts is not None and not by_members and review is None and page is None
    incomplete = by_members and texts is None
    if (predictions is None) != by_members or (bundled and members) or unused or incomplete:
        given = {"--predictions": predictions, "--members": members, "--texts": texts}
        there = [name for name, value in given.items() if value is not None]
        raise InputError(
            f"got {' and '.join(there) or 'nothing'} to pool, which is not enough or too much",
            "a bundle holds its members: give --texts alone"
            if bundled
            else "give either --predictions, or --members with --texts; --texts alone are for a"
            f" bundle, and {ensemble} has no bundle.json",
        )
    if judges is not None and not by_members:
        raise InputError(
            "--judges is for members that predict now (--members), but --predictions is given",
            "leave it out, or give it to `edo score`, which makes predictions",
        )
    named = bool(panel or as_annotator)
    if annotators is not None and not named and (not by_members or judges is not None):
        other = "--judges" if by_members else "--predictions"
        raise InputError(
            f"--annotators and {other} are given, but no --panel",
            "leave one of them out, or name the panel",
        )
    inputs = (
        *(ensemble / "ensemble.json", predictions, texts, judges, annotations, annotators),
        *(panel or ()),
    )
    how: Any = {"device": device, "trust": options.names(trust) or ()}
    whole = None
    if bundled:
        whole = Bundle.load(ensemble, max_length=max_length, **how)
        fitted = whole.ensemble
    else:
        fitted = EDOEnsemble.load(ensemble)
    views = _panels(panel or (), as_annotator or (), annotators)
    if len(views) > 2 or (len(views) == 2 and review is not None):
        what = f"{len(views)} panels and persons" if len(views) > 2 else "--review and two panels"
        raise InputError(
            f"{what} are given", "compare two at a time, or give one and ask for a review"
        )
    if page is not None and len(views) != 2:
        raise InputError(
            f"--page compares two panels, but {len(views)} {'is' if len(views) == 1 else 'are'}"
            " given",
            "name two with --panel (or --as)",
        )
    view = views[0] if views else None
    if answer_for is not None:
        fitted.answer_step(answer_for)  # refused before anything is read
    source: Any = predictions
    if by_members and texts is not None:
        from edokit.members import LoadedMembers

        if whole is None and members is not None:
            # Those that predict once only need not all be in memory.
            how["keep"] = texts.suffix.lower() == ".parquet"
            loaded = LoadedMembers(members, fitted.needed_members(), **how)
            whole = Bundle(fitted, loaded, max_length=max_length)
        assert whole is not None
        known, everyone = None, annotators if view is None else None
        if everyone is not None or judges is not None:
            asked, known = reading.texts(texts, everyone or judges, pairs=pairs)
            parts = iter([asked])
        else:
            rows = ROWS if how.get("keep", True) else sys.maxsize
            parts = reading.text_parts(texts, rows, pairs=pairs)
        people = reading.attributes(whole.members.folder, annotators or judges)
        more: dict[str, Any] = {"attributes": people}
        if len(views) == 2:
            everybody = dict.fromkeys(name for each in views for name in each.annotators)
            source = (whole.pairs(part, tuple(everybody), **more) for part in parts)
        elif everyone is not None and known is not None:
            source = (whole.pairs(part, known, **more) for part in parts)
        else:
            more |= {"panel": view, "answer_for": answer_for, "level": level}
            source = whole.describe_parts(parts, annotators=known, **more)
    shown = texts if annotations is None else annotations

    def read_texts() -> dict[str, str] | None:
        if shown is None:
            return None
        from edokit.members.recipe import joined

        found, _ = reading.texts(shown)
        return dict(zip(found.items, map(joined, found.texts), strict=True))

    if len(views) == 2:
        from edokit._io.tables import write_tables
        from edokit.ensemble import compare_panels
        from edokit.report import write_panel_page

        with output_files(out, page, inputs=inputs, overwrite=overwrite), session(budget=budget):
            compared = compare_panels(fitted, source, *views, level=level, answer_for=answer_for)
            write_tables([compared.to_table()], out, quote_formulas=quote_formulas)
            if page is not None:
                write_panel_page(compared, page, texts=read_texts(), overwrite=overwrite)
        made = {"out": str(out), **({} if page is None else {"page": str(page)})}
        if json:
            console.print_json(made | compared.summary())
        else:
            console.print_panels(compared, " and ".join(made.values()))
        return
    guard = output_files(out, review_out, inputs=inputs, overwrite=overwrite)
    with guard, session(budget=budget) as requests:
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
        f"{out}: {_rows(result)}, mean entropy {result['entropy']:.4f},"
        f" mean spread {result['spread']:.4f}"
    )
    if requests.spent:
        result["cost"] = requests.spent
        line += f"; requests cost {money(requests.spent)}"
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


def _rows(result: dict[str, Any]) -> str:
    """How many items, or pairs of them and annotators, were predicted."""
    items = counted(result["items"], "item")
    if "pairs" not in result:
        return items
    return f"{counted(result['pairs'], 'pair')} of {items} and their anonymous answers"


def _panels(panels: Sequence[Path], persons: Sequence[str], annotators: Path | None) -> list[Panel]:
    """Whose views are asked for, if anybody's."""
    if not panels and not persons:
        return []
    from edokit.panels import Panel, read_panel

    people: Any = None
    if annotators is not None:
        from edokit._io.tables import TABLE_SUFFIXES, read_table
        from edokit.datasets import read_annotations
        from edokit.members.texts import read_attributes

        tabular = annotators.suffix.lower() in TABLE_SUFFIXES
        columns = read_table(annotators).column_names if tabular else ["label"]
        if "annotator" in columns and not {"item", "label"} & {*columns}:
            people = read_attributes(annotators, [name for name in columns if name != "annotator"])
        else:
            people = read_annotations(annotators)
    found = [read_panel(path, people) for path in panels]
    return found + [Panel((person,), name=f"annotator {person!r}") for person in persons]
