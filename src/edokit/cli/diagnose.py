"""`edo diagnose`: what kind of disagreement is in the annotations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from edokit._errors import InputError, option
from edokit.cli import console, options

if TYPE_CHECKING:
    from edokit.analysis.diagnose.result import Diagnosis
    from edokit.annotations.core import Annotations

SourceArgument = Annotated[
    Path,
    options.POSITIONAL,
    Parameter(
        help="A table (CSV, TSV, Parquet, JSONL, XLSX), a LeWiDi JSON or a folder of its splits, a"
        " Label Studio, Argilla, doccano or Potato export; or the folder of `edo run` or `edo fit`:"
        " the annotations of its fit."
    ),
]


def diagnose(
    annotations: SourceArgument,
    /,
    *,
    by: options.Names = None,
    group_by: str | None = None,
    permutations: int | None = None,
    random_state: int = 0,
    labels: Path | None = None,
    review: int | None = None,
    card: Path | None = None,
    overwrite: options.Overwrite = False,
    raw: options.Raw = False,
    reading: Annotated[options.SplitReading, options.FLAT] = options.SplitReading(),
    json: options.Json = False,
) -> None:
    """Show coverage, agreement and groups of annotators: structure or noise? Advice.

    Parameters
    ----------
    by : list of str, optional
        Do groups differ? Compare the levels of these attributes of annotators on the same items,
        e.g. gender,age.
    group_by : str, optional
        An attribute whose values are the groups of annotators. By default, groups are looked for in
        the labels.
    permutations : int, optional
        The largest number of permutations of a test; 0 for no test. By default as many as a clear
        verdict takes.
    random_state : int, default=0
        Seed of the permutations.
    labels : Path, optional
        Also rank single labels by how unlikely they are, into this table (.csv, .tsv, .parquet or
        .jsonl): given the other annotators, the person's habit and, with the folder of a run, the
        text. The first ones are written beside it as tasks for Label Studio.
    review : int, optional
        With --labels: how many labels become tasks; 50 by default.
    card : Path, optional
        Also write what a dataset paper or a model card needs on disagreement, as Markdown (.md) or
        LaTeX (.tex): who labelled, agreement, structure or noise, which groups differ (all
        attributes, or those of --by), the best possible score, annotators needed.
    """
    from edokit.analysis.card import disagreement_card
    from edokit.analysis.card.result import check_card_path
    from edokit.analysis.diagnose import diagnose as run_diagnosis
    from edokit.pipeline.text import reading_flags
    from edokit.runs.folder import output_files

    if review is not None and labels is None:
        raise InputError(
            f"{option('review', review)} is about labels to check, but {option('labels')} is not"
            " given",
            f"add {option('labels', 'labels.csv')}, or leave it out",
            code="missing-option",
        )
    if card is not None:
        check_card_path(card)
    source = annotations
    labelled_items, file, file_options = _read(source, reading)
    if card is not None and by is None:
        by = [attribute.name for attribute in labelled_items.people.attributes]
    ranking: dict[str, object] | None = None
    tasks = None
    if labels is not None:
        tasks = labels.with_name(f"{labels.stem}-review.json")
    outputs = [labels, tasks, card]
    if tasks is not None:
        outputs.append(tasks.with_suffix(".xml"))
    with console.progress() as bars, output_files(*outputs, inputs=[file], overwrite=overwrite):
        diagnosis = run_diagnosis(
            labelled_items,
            groups=group_by,
            by=by,
            permutations=permutations,
            random_state=random_state,
            progress=console.add_stages(bars, "permuting labels"),
        )
        if labels is not None:
            ranking = _rank_labels(source, labelled_items, labels, review, raw)
        card_content = None
        if card is not None:
            disagreement = disagreement_card(labelled_items, diagnosis=diagnosis, name=file.stem)
            disagreement.write(card)
            card_content = {"out": str(card), **disagreement.to_dict()}
    file_options.pop("split", None)  # `edo run`, which is proposed, takes no split
    run = None
    if (source / "bundle").is_dir():  # of `edo run`; `edo fit` makes no bundle
        run = source
    diagnosis = diagnosis.with_source(file, reading_flags(file_options), run)
    _print(diagnosis, ranking, card_content, json)


def _read(path: Path, reading: options.SplitReading) -> tuple[Annotations, Path, dict[str, object]]:
    """The annotations, the file that they are from, and how it is read."""
    from edokit.analysis.fit_items import is_fit_folder, read_fit_labels

    reading_options = options.given_arguments(reading)
    if not is_fit_folder(path):
        return reading.annotations(path), path, reading_options
    if reading_options:
        names = ", ".join(option(name) for name in reading_options)
        raise InputError(
            f"{path} says how its annotations are read, so {names} can't be given",
            f"leave out {names}, or give the table of annotations",
            code="inapplicable-option",
        )
    fit_labels = read_fit_labels(path)
    return fit_labels.annotations, fit_labels.path, dict(fit_labels.options)


def _rank_labels(
    source: Path, annotations: Annotations, out: Path, review: int | None, raw: bool
) -> dict[str, object]:
    """Rank the labels by how unlikely they are, and write them.

    Where the source is the folder of a fit, its ensemble's answers are taken into account.
    """
    from edokit.analysis.fit_items import is_fit_folder
    from edokit.analysis.labels import check_labels

    if review is None:
        review = 50
    if is_fit_folder(source):
        check = check_labels(source)
    else:
        check = check_labels(annotations)
    return check.write(out, review=review, raw=raw)


def _print(
    diagnosis: Diagnosis,
    ranking: dict[str, object] | None,
    card: dict[str, object] | None,
    json: bool,
) -> None:
    """Print the diagnosis, and where the ranked labels and the card are."""
    from edokit.analysis.labels.text import written_lines

    result = diagnosis.to_dict()
    lines = diagnosis.lines()
    if ranking is not None:
        result["labels"] = ranking
        lines = [*lines, *written_lines(ranking)]
    if card is not None:
        result["card"] = card
        lines = [*lines, f"Card: {card['out']}"]
    console.print_result(result, lambda: console.print_lines(lines), json)
