"""`edo predictions`: join files of single models, and see what is in a predictions file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter

from edokit._errors import InputError, counted
from edokit.cli import console, options
from edokit.predictions.core import Invalid
from edokit.predictions.files import write_predictions
from edokit.predictions.join import JoinOptions, Missing, join_models
from edokit.predictions.sampled import SMOOTHING, Unparsed
from edokit.predictions.shards import describe_predictions
from edokit.runs.folder import output_files

_MOST_CLASS_COLUMNS = 3
"""The largest number of classes whose mean probabilities are columns of the table."""
_DETAILS = ("model", "prompt", "persona", "answers", "failures")
"""Entries of `member_info` that are columns of the table."""
_LOGITS_SUFFIX = ":logits"


@dataclass(frozen=True, kw_only=True)
class JoinFlags:
    """How files of models are read and joined.

    Parameters
    ----------
    groups : dict of str, optional
        The recipe of a member (repeatable).
    logits : bool
        All files hold logits; else FILE:logits for one.
    columns : dict of str, optional
        Another column name for item, member, group or p_CLASS, e.g. item=id or p_yes=score; of
        sampled answers also for answer, annotator, model, prompt or persona (repeatable).
    label_map : dict of str, optional
        Read a class, or a sampled answer, as another (repeatable).
    missing : str
        What to do with items that a file lacks: refuse them, or leave them out with a warning that
        names them.
    scale : str, optional
        The answer scale of files that note none: ordinal, multi-label, or with the classes as in
        ordinal:low=0,mid=1,high=3. Multi-label columns are probabilities (or logits) of each label
        on its own. Files of different scales are refused.
    classes : list of str, optional
        All classes in order, separated by commas; by default those of the scale, else of the files.
        For sampled answers they must be declared.
    smoothing : float
        What is added to the count of each class where answers were sampled.
    unparsed : str
        What to do with sampled answers that are not a class: refuse them, or leave them out, with a
        warning and the number of failures in member_info.
    """

    groups: Annotated[
        dict[str, str] | None, options.key_value("NAME=GROUP"), Parameter(name="--group")
    ] = None
    logits: bool = False
    columns: Annotated[dict[str, str] | None, options.key_value("ROLE=NAME")] = None
    label_map: Annotated[dict[str, str] | None, options.key_value("OLD=NEW")] = None
    missing: Missing = "error"
    scale: str | None = None
    classes: options.Names = None
    smoothing: float = SMOOTHING
    unparsed: Unparsed = "error"

    def to_options(
        self, models: Sequence[JoinedFile], invalid: Invalid, items: Iterable[str] | None
    ) -> JoinOptions:
        """Return the options of joining these files, for these items alone."""
        return JoinOptions(
            names=[model.name for model in models],
            groups=self.groups,
            logits=[self.logits or model.holds_logits for model in models],
            invalid=invalid,
            columns=self.columns,
            label_map=self.label_map,
            missing=self.missing,
            scale=self.scale,
            classes=self.classes,
            smoothing=self.smoothing,
            unparsed=self.unparsed,
            items=items,
        )


def join(
    files: Annotated[list[str], options.POSITIONAL, Parameter(metavar="[NAME=]FILE[:logits]...")],
    /,
    *,
    out: Path,
    flags: Annotated[JoinFlags, options.FLAT] = JoinFlags(),
    normalize: options.Normalize = False,
    annotations: Path | None = None,
    split: options.Names = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Put one file per model side by side, items matched by id.

    Parameters
    ----------
    files : list of str
        One CSV, Parquet, JSONL or npz per model; the name defaults to the file's. A file of several
        members keeps their names, with NAME- before them if one is given. :logits after a file says
        that its numbers are logits. A table with the columns item, member and answer holds sampled
        answers, one per row, whose shares become probabilities.
    out : Path
        The predictions: .npz or .parquet.
    annotations : Path, optional
        Keep only the items of these annotations.
    split : list of str, optional
        With --annotations, keep only the items of this split, e.g. dev, or of these: train,dev.
    """
    from edokit.datasets.read import read_annotations

    if split is not None and annotations is None:
        raise InputError(
            "--split chooses items of --annotations",
            "give --annotations, too",
            code="missing-option",
        )
    models = [_model_file(text) for text in files]
    paths = [model.path for model in models]
    with output_files(out, inputs=[*paths, annotations], overwrite=overwrite):
        items = None
        if annotations is not None:
            items = read_annotations(annotations, split=split).items
        invalid: Invalid = "normalize" if normalize else "error"
        joined = join_models(paths, flags.to_options(models, invalid, items))
        write_predictions(joined, out)
    console.print_predictions(joined, out, json)


class JoinedFile(NamedTuple):
    """A file of a model's predictions, as typed: ``[NAME=]FILE[:logits]``."""

    name: str | None
    path: Path
    holds_logits: bool


def _model_file(text: str) -> JoinedFile:
    """Read ``[NAME=]FILE[:logits]``."""
    holds_logits = text.endswith(_LOGITS_SUFFIX) and not Path(text).exists()
    if holds_logits:
        text = text.removesuffix(_LOGITS_SUFFIX)
    name, path = options.named_file(text)
    return JoinedFile(name, path, holds_logits)


def info(path: options.Argument, /, *, json: options.Json = False) -> None:
    """Show items, members, classes and how far the members are from each other.

    Parameters
    ----------
    path : Path
        An .npz, a Parquet file or a folder of shards.
    """
    description = describe_predictions(path)
    if json:
        console.print_json(description)
        return
    members = description["members"]
    classes = description["classes"]
    rows = counted(description["items"], "item")
    if "annotators" in description:
        annotators = counted(description["annotators"], "annotator")
        rows = f"{counted(description['items'], 'pair')} of item and annotator ({annotators})"
    kind = ""
    if "scale" in description:
        kind = f" ({description['scale'].partition(':')[0]})"
    console.print_records(
        f"{path}: {rows}, {counted(len(members), 'member')},"
        f" {len(classes)} classes{kind}, {counted(description['shards'], 'file')}",
        [_member_record(member, classes) for member in members],
        ["distance: mean L1 distance to the uniform mean of all members (0 to 2)."],
    )


def _member_record(member: dict[str, Any], classes: Sequence[str]) -> dict[str, object]:
    """A row of the table; mean probabilities only if there are few classes."""
    record: dict[str, object] = {"member": member["name"], "group": member["group"] or "–"}
    if len(classes) <= _MOST_CLASS_COLUMNS:
        for name in classes:
            record[f"mean p({name})"] = member["mean"][name]
    record["entropy"] = member["entropy"]
    record["distance"] = member["distance"]
    info = member.get("info", {})
    for key in _DETAILS:
        if key in info:
            record[key] = str(info[key])[:24]
    return record
