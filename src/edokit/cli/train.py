"""`edo train`: members and their predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from edokit._errors import InputError, counted, printable
from edokit.cli import console, options
from edokit.members import (
    Group,
    TrainingOptions,
    TrainingPreview,
    preview_training,
    train_members,
)
from edokit.members.groups import parse_groups
from edokit.members.layout import BY_ANNOTATOR
from edokit.members.train import Trained
from edokit.members.training_data import DEV, FIT
from edokit.runs.folder import check_output


def recipe_options(texts: Sequence[str], option: str, form: str) -> dict[str, str | list[str]]:
    """``["a=1", "a=2", "b=x"]`` as ``{"a": ["1", "2"], "b": "x"}``."""
    values_by_key: dict[str, list[str]] = {}
    for text in texts:
        for key, value in options.key_values([text], option, form).items():
            values_by_key.setdefault(key, []).append(value)
    result: dict[str, str | list[str]] = {}
    for key, values in values_by_key.items():
        result[key] = values
        if len(values) == 1:
            result[key] = values[0]
    return result


@dataclass(frozen=True, kw_only=True)
class GroupOptions:
    """Which members are trained, and on what.

    Parameters
    ----------
    recipe : str, default="linear"
        linear, trees, nearest, encoder, embeddings, sklearn, transformer or llm; several as
        linear:5,encoder:5; or a TOML file.
    supervision : str, default="random-select"
        Targets: random-select, per-annotator, per-group, soft or majority.
    attribute : str, optional
        With per-group supervision, the attribute of annotators whose levels get a member each.
    levels : list of str, optional
        With per-group supervision, the levels that get a member, separated by commas; all if left
        out.
    draw : str, optional
        random-select draws every epoch or once.
    members : int, optional
        How many members of a group; 10 (of llm 1) unless the recipe says, with per-group
        supervision one for each level.
    option : dict, optional
        An option of the recipe, or GROUP.KEY=VALUE; one that is given several times makes a group
        of members for each value.
    """

    recipe: str = "linear"
    supervision: str = "random-select"
    attribute: str | None = None
    levels: options.Names = None
    draw: Annotated[str | None, Parameter(metavar="epoch|once")] = None
    members: int | None = None
    option: Annotated[dict[str, Any] | None, options.parser(recipe_options, "KEY=VALUE")] = None

    def groups(self) -> list[Group]:
        """The groups of members."""
        return parse_groups(
            self.recipe,
            options=self.option,
            members=self.members,
            supervision=self.supervision,
            draw=self.draw,
            attribute=self.attribute,
            levels=self.levels or (),
        )


@dataclass(frozen=True, kw_only=True)
class TrainingFlags:
    """How members are trained.

    Parameters
    ----------
    random_state : int
        Seed of all members; each derives its own from it.
    cross_fit : int, optional
        Number of folds of train and dev to train in; the predictions called fit are out-of-fold.
    jobs : int, optional
        Members that train at a time, in processes of their own. By default, on a GPU as many as
        fit into its memory, else one per core if there is enough work.
    device : str, optional
        Where to compute, e.g. cpu or cuda.
    keep_models : bool
        Keep the models beside their predictions.
    overwrite : bool
        Replace existing files, even those that edo did not write.
    budget : float, optional
        What the requests of this run to servers may cost together, in the unit of their prices.
        Members that it does not cover fail; all answers are kept, and not asked again.
    allow_http : bool
        Whether members may send texts, and your key, to other machines over http, unencrypted.
    ignore_annotator_limit : bool
        Allow more per-annotator members than the least annotated item has annotators (the paper's
        K ≤ min A_i).
    min_annotators : int
        With per-group supervision, fewer annotators than this are too few for a level to have a
        member.
    small_levels : str
        What to do with such levels: error, or skip (train no member for them).
    """

    random_state: int = 0
    cross_fit: int | None = None
    jobs: int | None = None
    device: str | None = None
    keep_models: Annotated[bool, options.TWO_SIDED] = True
    overwrite: bool = False
    budget: float | None = None
    allow_http: bool = False
    ignore_annotator_limit: bool = False
    min_annotators: int = 5
    small_levels: Annotated[str, Parameter(metavar="error|skip")] = "error"

    def to_options(self, source: str) -> TrainingOptions:
        """Return the options of a training on annotations from this source."""
        return TrainingOptions(
            random_state=self.random_state,
            cross_fit=self.cross_fit,
            jobs=self.jobs,
            device=self.device,
            keep_models=self.keep_models,
            overwrite=self.overwrite,
            source=source,
            budget=self.budget,
            allow_http=self.allow_http,
            ignore_annotator_limit=self.ignore_annotator_limit,
            min_annotators=self.min_annotators,
            small_levels=self.small_levels,
        )


def train(
    data: options.AnnotationsSource,
    /,
    *,
    out: Path,
    group_options: Annotated[GroupOptions, options.FLAT] = GroupOptions(),
    flags: Annotated[TrainingFlags, options.FLAT] = TrainingFlags(),
    dry_run: bool = False,
    reading: Annotated[options.Reading, options.FLAT] = options.Reading(),
    json: options.Json = False,
) -> None:
    """Train members and write their predictions for dev and test; run it again to resume.

    Parameters
    ----------
    out : Path
        Folder for members, predictions and manifest.
    dry_run : bool, default=False
        Show the prompts of language models for three items, and the requests, tokens and cost to
        expect; send and write nothing.
    """
    check_output(out, "members", data, overwrite=flags.overwrite)
    groups = group_options.groups()
    annotations = reading.annotations(data)
    settings = flags.to_options(data.name)
    if dry_run:
        preview = preview_training(annotations, groups, options=settings)
        console.print_result(preview.to_dict(), lambda: _show_preview(preview), json)
        return
    with console.resumable(), console.progress() as bars:
        progress = console.add_bar(bars, "training")
        trained = train_members(annotations, groups, out=out, options=settings, progress=progress)
    _show(trained, out, json)
    _check_failures(trained)


def _show_preview(preview: TrainingPreview) -> None:
    """Print the prompts of each member, then what they would take."""
    for member in preview.members:
        for prompt in member.prompts:
            console.write_line(printable(f"== {member.member}, item {prompt.item}"))
            for message in prompt.messages:
                console.write_line(f"[{message['role']}]")
                for line in message["content"].splitlines():
                    console.write_line(printable(line))
            console.write_line()
    console.print_tables(preview.to_table())


def _check_failures(trained: Trained) -> None:
    """Raise an error if members failed, which names the members of each reason."""
    if not trained.failed:
        return
    members: dict[str, list[str]] = {}
    for failure in trained.failed:
        members.setdefault(failure.text, []).append(failure.job.path)
    reasons = "; ".join(f"{', '.join(paths)}: {reason}" for reason, paths in members.items())
    raise InputError(
        f"every member must be trained, but {len(trained.failed)} failed ({reasons})",
        "the others are saved; start again to try these again",
        code="failed-member",
    )


_MANIFEST_KEYS = ("cross_fit", "groups", "members", "mean", "failed", "predictions", "seconds")


def _show(trained: Trained, out: Path, json: bool) -> None:
    """Print the metrics of the members, or the main part of the manifest as JSON."""
    manifest = trained.manifest
    if json:
        console.print_json({"out": str(out), **{key: manifest[key] for key in _MANIFEST_KEYS}})
        return
    members = manifest["members"]
    # Quality is chosen on dev and reported on test once, by other commands.
    splits = [split for split in manifest["predictions"] if split in (FIT, *DEV)]
    title = f"{out}: {counted(len(members), 'member')}, {manifest['seconds']:.1f} s"
    notes = _notes(trained, out, splits)
    console.print_records(title, _records(trained, splits), notes)
    console.print_request_costs({member["name"]: member.get("details", {}) for member in members})


def _notes(trained: Trained, out: Path, splits: Sequence[str]) -> list[str]:
    """What had been trained before, what was written, and which splits were not evaluated."""
    files = trained.manifest["predictions"]
    notes = []
    if trained.resumed:
        verb = "were"
        if trained.resumed == 1:
            verb = "was"
        notes.append(f"{counted(trained.resumed, 'fit')} had been done before and {verb} kept.")
    notes.append(f"Predictions: {', '.join(str(out / name) for name in files.values())}")
    by_item = [split for split in files if not split.endswith(BY_ANNOTATOR)]
    unevaluated = [split for split in by_item if split not in splits]
    if unevaluated:
        notes.append(f"Not looked at here: {', '.join(unevaluated)} (edo evaluate, edo compare).")
    return notes


def _records(trained: Trained, splits: Sequence[str]) -> list[dict[str, Any]]:
    """Metrics of each member and of their mean."""
    from edokit.metrics import METRIC, headline_metric

    scale = next(iter(trained.predictions.values())).scale
    metrics = [headline_metric(scale)]
    metrics += [name for name in ("ce", "f1") if name not in metrics]

    members = trained.manifest["members"]
    has_levels = any("level" in member["targets"] for member in members)

    def record(
        name: str, targets: dict[str, Any], metrics_by_split: dict[str, Any], seconds: float
    ) -> dict[str, Any]:
        row = {"member": name, "annotator": targets.get("annotator")}
        if has_levels:
            row["level"] = targets.get("level")
        for split in splits:
            for metric in metrics:
                row[f"{split} {METRIC[metric].label}"] = metrics_by_split[split][metric]
        row["seconds"] = f"{seconds:.1f}"
        return row

    records = [
        record(member["name"], member["targets"], member["metrics"], member["seconds"])
        for member in members
    ]
    manifest = trained.manifest
    records.append(record("mean of all", {}, manifest["mean"], manifest["seconds"]))
    return records
