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
        Groups declared by this attribute of the annotators; else found.
    permutations : int, optional
        Permutations at most; 0: no test. By default as many as a clear verdict takes.
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
    source, file, file_options = _read(annotations, reading)
    if card is not None and by is None:
        by = [attribute.name for attribute in source.people.attributes]
    written: dict[str, object] | None = None
    tasks = None
    if labels is not None:
        tasks = labels.with_name(f"{labels.stem}-review.json")
    outputs = [labels, tasks, card]
    if tasks is not None:
        outputs.append(tasks.with_suffix(".xml"))
    with console.progress() as bars, output_files(*outputs, inputs=[file], overwrite=overwrite):
        diagnosis = run_diagnosis(
            source,
            groups=group_by,
            by=by,
            permutations=permutations,
            random_state=random_state,
            progress=console.add_stages(bars, "permuting labels"),
        )
        if labels is not None:
            written = _write_labels(annotations, source, labels, review, raw)
        card_content = None
        if card is not None:
            made_card = disagreement_card(source, diagnosis=diagnosis, name=file.stem)
            made_card.write(card)
            card_content = {"out": str(card), **made_card.to_dict()}
    flags = reading_flags({name: v for name, v in file_options.items() if name != "split"})
    run = annotations if (annotations / "bundle").is_dir() else None
    diagnosis = diagnosis.with_source(file, flags, run)
    _print(diagnosis, written, card_content, json)


def _read(path: Path, reading: options.SplitReading) -> tuple[Annotations, Path, dict[str, object]]:
    """The annotations, the file that they are from, and how it is read."""
    from edokit.analysis.fit_items import is_fit_folder, read_fit_labels

    reading_options = options.keywords(reading)
    if not is_fit_folder(path):
        return reading.annotations(path), path, reading_options
    if reading_options:
        names = ", ".join(option(name) for name in reading_options)
        raise InputError(
            f"{path} says how its annotations are read, so {names} can't be given",
            "leave it out, or give the table of annotations",
            code="inapplicable-option",
        )
    fit_labels = read_fit_labels(path)
    return fit_labels.annotations, fit_labels.path, dict(fit_labels.options)


def _write_labels(
    path: Path, annotations: Annotations, out: Path, review: int | None, raw: bool
) -> dict[str, object]:
    """Rank the labels and write them; with the answers of the ensemble in a folder of one."""
    from edokit.analysis.fit_items import is_fit_folder
    from edokit.analysis.labels import check_labels

    check = check_labels(path if is_fit_folder(path) else annotations)
    return check.write(out, review=50 if review is None else review, raw=raw)


def _print(
    diagnosis: Diagnosis,
    written: dict[str, object] | None,
    card: dict[str, object] | None,
    json: bool,
) -> None:
    from edokit.analysis.labels.text import written_lines

    result = diagnosis.to_dict()
    lines = diagnosis.lines()
    if written is not None:
        result["labels"] = written
        lines = [*lines, *written_lines(written)]
    if card is not None:
        result["card"] = card
        lines = [*lines, f"Card: {card['out']}"]
    console.print_result(result, lambda: console.print_lines(lines), json)
