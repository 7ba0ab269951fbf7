"""`edo predict`: pooled probabilities of new items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from edokit._errors import InputError, are, check_number, counted, money
from edokit.cli import console, options
from edokit.predict import PoolInputs, Predictor, Viewpoint

if TYPE_CHECKING:
    from edokit.panels import PanelComparison
    from edokit.predict import TextSource


@dataclass(frozen=True, kw_only=True)
class Extras:
    """What is written beside the probabilities.

    Parameters
    ----------
    review : int, optional
        Also pick so many items that most need annotators.
    review_out : Path, optional
        Where they go, for Label Studio (.json); beside --out if not given.
    annotations : Path, optional
        A source with the texts of the items to review.
    page : Path, optional
        Also make a page (.html) that shows two panels side by side.
    """

    review: int | None = None
    review_out: Path | None = None
    annotations: Path | None = None
    page: Path | None = None

    def check(self, panels: int) -> None:
        """Refuse options that do not belong together; ``panels``: how many there are."""
        texts_unused = self.annotations is not None and self.page is None
        if self.review is None and (self.review_out is not None or texts_unused):
            raise InputError(
                "--review-out and --annotations need --review N",
                "add the number of items to review, or leave them out",
            )
        check_number("review", 1 if self.review is None else self.review, 1, whole=True)
        if panels > 2 or (panels == 2 and self.review is not None):
            raise InputError(
                f"{panels} panels and persons are given{' with --review' if self.review else ''}",
                "compare two at a time, or give one and ask for a review",
            )
        if self.page is not None and panels != 2:
            raise InputError(
                f"--page compares two panels, but {are(panels)} given",
                "name two with --panel (or --as)",
            )


def predict(
    ensemble: options.Argument,
    /,
    *,
    out: Path,
    inputs: Annotated[PoolInputs, options.FLAT] = PoolInputs(),
    loading: Annotated[options.Loading, options.FLAT] = options.Loading(),
    spending: Annotated[options.Spending, options.FLAT] = options.Spending(),
    viewpoint: Annotated[Viewpoint, options.FLAT] = Viewpoint(),
    extras: Annotated[Extras, options.FLAT] = Extras(),
    quote_formulas: options.QuoteFormulas = False,
    overwrite: options.Overwrite = False,
    reading: Annotated[options.TextReading, options.FLAT] = options.TextReading(),
    json: options.Json = False,
) -> None:
    """Pool the members' predictions: probabilities, entropy, spread and a label.

    Parameters
    ----------
    ensemble : Path
        A folder made by `edo fit`, RUN/ensemble of a search, or a bundle.
    out : Path
        The probabilities: .csv, .tsv, .parquet or .jsonl.
    """
    from edokit._outputs import output_files
    from edokit.members.recipes._endpoint import session

    panels = viewpoint.panels(inputs.annotators)
    extras.check(len(panels))
    predictor = Predictor(
        ensemble,
        inputs,
        None if inputs.texts is None else reading.source(inputs.texts, inputs.pairs),
        viewpoint,
        texts_shown=extras.review is not None or extras.page is not None,
        **options.keywords(loading),
    )
    texts_file = extras.annotations or inputs.texts
    texts = None if texts_file is None else reading.source(texts_file)
    files = [*predictor.files(), extras.annotations]
    with (
        output_files(out, extras.page, extras.review_out, inputs=files, overwrite=overwrite),
        session(budget=spending.budget) as requests,
    ):
        if len(panels) == 2:
            comparison = predictor.compare(panels, out, quote_formulas=quote_formulas)
            if extras.page is not None:
                _write_page(comparison, extras.page, texts, overwrite)
        else:
            result = predictor.write(
                out,
                panels,
                texts,
                quote_formulas=quote_formulas,
                review=extras.review,
                review_out=extras.review_out,
            )
    if len(panels) == 2:
        _show_comparison(comparison, [out, *filter(None, [extras.page])], json)
        return
    if requests.spent:
        result["cost"] = requests.spent
    lines = [_rows(result), *(f"what {panel} would answer" for panel in panels)]
    console.done(result, "; ".join([*lines, *_notes(result, predictor, extras)]), json)


def _notes(result: dict[str, Any], predictor: Predictor, extras: Extras) -> Iterator[str]:
    """What requests cost, what the probabilities are, and what to review."""
    if "cost" in result:
        yield f"requests cost {money(result['cost'])}"
    if metric := predictor.viewpoint.answer_for:
        step = predictor.ensemble.answer_step(metric)
        yield f"p_… are answers for {metric}, not the pool: {step}"
    if extras.review is not None:
        yield _review(result["review"], extras.review)


def _write_page(
    comparison: PanelComparison, page: Path, texts: TextSource | None, overwrite: bool
) -> None:
    from edokit.report import write_panel_page

    by_item = None if texts is None else texts.by_item()
    write_panel_page(comparison, page, texts=by_item, overwrite=overwrite)


def _show_comparison(comparison: PanelComparison, files: list[Path], json: bool) -> None:
    names = dict(zip(("out", "page"), map(str, files), strict=False))
    if json:
        console.print_json(names | comparison.summary())
    else:
        console.print_panels(comparison, " and ".join(names.values()))


def _rows(result: dict[str, Any]) -> str:
    """How many items, or pairs of them and annotators, were predicted."""
    rows = counted(result["items"], "item")
    if "pairs" in result:
        rows = f"{counted(result['pairs'], 'pair')} of {rows} and their anonymous answers"
    return (
        f"{result['out']}: {rows}, mean entropy {result['entropy']:.4f},"
        f" mean spread {result['spread']:.4f}"
    )


def _review(queue: dict[str, Any], requested: int) -> str:
    """Where the items to review are."""
    items = f"{'all' if queue['items'] < requested else 'the'} {counted(queue['items'], 'item')}"
    return (
        f"{items} to review, most urgent first, for Label Studio: {queue['out']} (interface:"
        f" {queue['config']})"
    )
