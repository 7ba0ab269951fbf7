"""`edo score`: predictions of trained or existing models."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from edokit._errors import InputError, option
from edokit.cli import console, options

if TYPE_CHECKING:
    from edokit.members.existing import LabelMap
    from edokit.members.texts import Texts

_FOR_MEMBERS = "trained members (--members), but --model is given"


@dataclass(frozen=True, kw_only=True)
class TrainedMembers(options.Spending):
    """Trained members that predict.

    Parameters
    ----------
    annotators : Path, optional
        Predict each annotator of each item (item and annotator columns, or a source of annotations;
        annotators alone, as in a panel, are asked about every item): a row per item and annotator,
        and one without annotator, the anonymous answer.
    judges : Path, optional
        The annotators of each item (item and annotator columns, or a source of annotations):
        members that know annotators predict for these.
    """

    annotators: Path | None = None
    judges: Path | None = None


@dataclass(frozen=True, kw_only=True)
class ExistingModels:
    """Models from elsewhere that predict.

    Parameters
    ----------
    model : list of str, optional
        A text-classification model: hub id or folder (repeatable).
    label : dict of str, optional
        The class of a model's label (repeatable).
    classes : list of str, optional
        The classes in order, separated by commas.
    """

    model: Annotated[list[str] | None, Parameter(metavar="[NAME=]MODEL")] = None
    label: Annotated[dict[str, str] | None, options.key_value("LABEL=CLASS")] = None
    classes: options.Names = None


def score(
    *,
    texts: Path,
    out: Path,
    members: list[Path] | None = None,
    ensemble: Path | None = None,
    trained: Annotated[TrainedMembers, options.FLAT] = TrainedMembers(),
    existing: Annotated[ExistingModels, options.FLAT] = ExistingModels(),
    loading: Annotated[options.Loading, options.FLAT] = options.Loading(),
    overwrite: options.Overwrite = False,
    reading: Annotated[options.TextReading, options.FLAT] = options.TextReading(),
    json: options.Json = False,
) -> None:
    """Write the predictions of trained members, or of models that you have, for texts.

    Parameters
    ----------
    texts : Path
        A table with item and text columns, a .txt file with a text per line, or any source of
        annotations.
    out : Path
        The predictions: .npz or .parquet.
    members : list of Path, optional
        A folder of members that `edo train` made (repeatable: all of them predict together).
    ensemble : Path, optional
        Only the members of this ensemble.
    """
    from edokit.ensemble.estimator import EDOEnsemble
    from edokit.members import score_members, score_models
    from edokit.members.score import model_names
    from edokit.predictions.files import check_ending, write_predictions
    from edokit.runs.folder import output_files

    _check(members, ensemble, trained, existing, trust=loading.trust)
    inputs = [texts, trained.annotators, trained.judges]
    check_ending(out)
    source = reading.source(texts)
    people = trained.annotators or trained.judges
    with output_files(out, inputs=inputs):  # refuses an input as the output
        items = source.read()
        annotators = source.read_annotators(people, items.items)
    if not overwrite:
        _refuse_other_texts(out, items)
    labels: dict[str, LabelMap] = {}
    needed_members = None
    if members and ensemble is not None:
        needed_members = EDOEnsemble.load(ensemble).needed_members()
    with console.progress() as bars:
        progress = console.add_bar(bars, "scoring")
        if members:
            predictions = score_members(
                members,
                items,
                needed_members,
                annotators=annotators,
                by_annotator=trained.annotators is not None,
                budget=trained.budget,
                allow_http=trained.allow_http,
                progress=progress,
                **options.given_arguments(loading),
            )
        else:
            predictions, labels = score_models(
                model_names(existing.model or []),
                items,
                classes=existing.classes,
                labels=existing.label or {},
                device=loading.device,
                progress=progress,
            )
    with output_files(out, inputs=inputs, overwrite=overwrite):
        write_predictions(predictions, out)
    judges = None if trained.judges is None else str(trained.judges)
    console.print_predictions(predictions, out, json, labels=labels, judges=judges)
    if not json:
        console.print_lines(
            f"{name}: {console.arrows(classes)}" for name, classes in labels.items()
        )
        console.print_request_costs(predictions.member_info)


def _check(
    members: list[Path] | None,
    ensemble: Path | None,
    trained: TrainedMembers,
    existing: ExistingModels,
    *,
    trust: list[str] | None,
) -> None:
    """Refuse options that do not belong together."""
    hint = "give one of them: it says which models predict"
    if members is None and not existing.model:
        raise InputError("neither --members nor --model is given", hint, code="missing-option")
    if members is not None and existing.model:
        raise InputError("both --members and --model are given", hint, code="conflicting-options")
    if members is None:
        options.refuse_given(trained, _FOR_MEMBERS)
        for name, value in (("ensemble", ensemble), ("trust", trust)):
            if value is not None:
                raise InputError(
                    f"{option(name)} is for {_FOR_MEMBERS}",
                    "leave it out",
                    code="inapplicable-option",
                )
    else:
        options.refuse_given(existing, "existing models (--model), but --members is given")
    if trained.annotators and trained.judges:
        raise InputError(
            "--annotators gives a row per item and annotator, --judges one per item",
            "leave one of them out",
            code="conflicting-options",
        )


def _refuse_other_texts(out: Path, texts: Texts) -> None:
    """Refuse a file of other predictions before scoring, which may take hours."""
    from edokit.predictions.shards import read_predictions

    if not out.is_file():
        return
    scored = None
    with suppress(InputError):
        scored = set(map(str, read_predictions(out).items))
    if scored != set(texts.items):
        raise InputError(
            f"{out} is there already, and does not hold predictions of these texts",
            f"name another file, or replace it with {option('overwrite', True)}",
            code="existing-file",
        )
