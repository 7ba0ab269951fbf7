"""From a table of annotations to an ensemble that answers for new text: the whole job.

Every step is what another command does; `Run.commands` names them. Each step hands its objects on
to the next: the table is parsed once and every model is loaded once. Members are trained in folds
of all items, so that their weights are learned, and judged, on answers for items that they have not
seen. The rows of the comparison are cross-validated once more: no item is judged by weights that it
helped to choose.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import cpu_count
from pydantic_core import to_jsonable_python

from edokit._errors import (
    EDOError,
    EDOWarning,
    InputError,
    each_warning_once,
    local_path,
    option,
    warn,
)
from edokit._io.digests import digest_input
from edokit._io.documents import write_json
from edokit._progress import Progress, no_progress
from edokit.analysis.compare import compare
from edokit.analysis.compare.result import Comparison
from edokit.analysis.diagnose.groups import compare_groups
from edokit.analysis.diagnose.groups.result import GroupComparison
from edokit.analysis.scores.text import result_sentence
from edokit.annotations.core import Annotations
from edokit.bundle import Bundle
from edokit.datasets.similar_texts import SimilarTextsWarning, warn_of_similar_texts
from edokit.ensemble.estimator import EDOEnsemble
from edokit.fitdata.reading import separate_settings
from edokit.members import Group, train_members
from edokit.members.pretrained import public_name
from edokit.members.train import Trained
from edokit.pipeline.encoders import EncoderChoice, EncoderGain, choose_encoder, encoder_gain
from edokit.pipeline.options import RunOptions
from edokit.pipeline.pool import default_pool, with_earlier_names, write_groups
from edokit.pipeline.result import SUMMARY, Run, RunSummary, leaderboard, quality_sentences
from edokit.pipeline.source import AnnotationsFile, read_source
from edokit.pipeline.text import step_commands
from edokit.predictions.core import Predictions
from edokit.report import write_report
from edokit.report.data import ENCODER, GROUPS, collect_comparison, read_groups
from edokit.runs.folder import REPORT, output_folder
from edokit.runs.inputs import Input
from edokit.runs.record import RUN_RECORD, RunRecord, begin_run

FOLDS = 5
METHODS = ("best-single", "greedy", "linear-pool", "edo")
"""What EDO is compared with, besides the constant answer and the uniform mean."""
SOFT = "soft"
"""The member that is trained first: one model of soft labels, which EDO is compared with, too."""
# Share of the time after which no member starts to train; the rest is for what follows.
_TRAINING_SHARE = 0.75


class _OutOfTimeError(Exception):
    """Members are still to be trained, and the time for that is over."""


def run(
    annotations: str | Path | Annotations | pd.DataFrame,
    out: str | Path,
    options: RunOptions | None = None,
    *,
    progress: Progress = no_progress,
    command: str = "",
    **settings: Any,
) -> Run:
    """Train a diverse pool, learn its weights, compare, and write a page and a bundle.

    Parameters
    ----------
    annotations : str, Path, Annotations or DataFrame
        A source that `read_annotations` reads, with texts, or its content. Items of splits other
        than train and dev are left alone.
    out : str or Path
        The folder of the run. What is finished there is not done again.
    options : RunOptions, default=None
        How thorough it is. None: the defaults.
    progress : callable, default=no_progress
        Called with the steps done, their total, and what is being done.
    command : str, default=""
        The command line to record in ``run.json``.
    **settings
        Single fields of `RunOptions`, such as ``quality="good"``, and further arguments of
        `read_annotations`, such as ``columns`` or ``scale``.

    Returns
    -------
    Run
        Leaderboard, ensemble, bundle, and the result in one sentence.

    Raises
    ------
    InputError
        If the annotations leave a decision open, an option is invalid, or `out` holds something
        else.

    Examples
    --------
    >>> import edokit
    >>> annotations = edokit.simulate("two-camps", items=(60, 10, 10)).annotations
    >>> result = edokit.run(annotations, "run", time="60s")  # doctest: +SKIP
    >>> result.predict_proba(["such a rude reply"]).shape  # doctest: +SKIP
    (1, 2)
    """
    started = time.monotonic()
    changes, reading = separate_settings(settings, RunOptions)
    options = replace(options or RunOptions(), **changes)
    folder = local_path(out)
    path = None
    if isinstance(annotations, str | Path):
        path = local_path(annotations)
    with output_folder(folder, "run", path, overwrite=options.overwrite), each_warning_once():
        source = read_source(annotations, folder, reading)
        for name in options.by or ():
            source.annotations.people.attribute(name)  # refused before anything is trained
        encoder = None
        if options.quality != "fast":
            texts: list[object] = []
            if source.to_learn_from.whole_texts is not None:
                texts = source.to_learn_from.whole_texts.tolist()
            encoder = choose_encoder(options.encoder, texts)
        finished = _finished(folder, source, options, encoder)
        if finished is not None:
            return finished
        begin_run(folder)
        # Marks the folder as that of a run, even if the process ends before there is a result.
        write_json({"options": asdict(options), "summary": None}, folder / SUMMARY)
        job = _RunSteps(folder, source, options, started, progress, command, encoder)
        # Warn once here, since each of the steps would.
        warn_of_similar_texts(source.to_learn_from)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SimilarTextsWarning)
            result = job.run()
        write_json(result.results, folder / SUMMARY)
        inputs = {"annotations": source.recorded()}
        RunRecord("run", inputs, options.random_state, command).save(folder)
    return result


def _finished(
    folder: Path,
    source: AnnotationsFile,
    options: RunOptions,
    encoder: EncoderChoice | None,
) -> Run | None:
    """The finished run in the folder, if it has these options and is complete; else None.

    It is not complete if groups were left out for lack of time, or if the sentence encoder has been
    installed since.
    """
    if not (folder / RUN_RECORD).exists():
        return None
    try:
        result = Run.load(folder)
        recorded = RunRecord.load(folder).inputs["annotations"]
        # A run of an earlier version did not record the options that came later.
        recorded_options = asdict(RunOptions()) | result.results["options"]
        if options.quality == "fast":
            recorded_options["encoder"] = options.encoder  # not used by this quality
        has_same_options = recorded_options == asdict(options)
        is_complete = not result.results["out_of_time"]
        if encoder is not None and encoder.available:
            has_encoder = result.results.get("encoder") == public_name(encoder.model)
            is_complete = is_complete and has_encoder
    except (EDOError, LookupError):
        return None
    # Tuples are lists in the record.
    reading = to_jsonable_python(source.reading)
    if recorded.sha256 != source.sha256 or recorded.options != reading:
        if options.overwrite:
            return None
        raise InputError(
            f"{folder} holds a run on other annotations, or on annotations that were read with"
            " other options",
            f"choose another output folder, or replace it with {option('overwrite')}",
            code="other-settings",
        )
    if has_same_options and is_complete:
        return result
    return None


@dataclass
class _RunSteps:
    """The steps of a run, and what they leave out."""

    folder: Path
    source: AnnotationsFile
    options: RunOptions
    started: float
    progress: Progress
    command: str
    encoder: EncoderChoice | None = None
    left_out: list[str] = field(default_factory=list)
    out_of_time: list[str] = field(default_factory=list)

    def run(self) -> Run:
        """Take all steps, one after the other; each has the objects of those before it."""
        soft_label_model = self.train(SOFT, [Group("linear", 1, supervision="soft")])
        pool = self.groups_in_time(float(soft_label_model.manifest["seconds"]))
        trained = self.train_pool(pool)
        predictions = trained.predictions["fit"]
        labels = self.source.to_learn_from
        inputs = self.inputs()
        self.progress(0, 4, "learning weights")
        ensemble = self.fit(predictions, labels, inputs)
        self.progress(1, 4, "comparing")
        comparison = self.compare(predictions, labels, soft_label_model.predictions["fit"], inputs)
        self.progress(2, 4, "making the bundle")
        bundle = Bundle.create(
            ensemble, self.folder / "members", self.folder / "bundle", overwrite=True
        )
        groups = self.compare_groups(labels)
        gain = self.encoder_gain(comparison, predictions, labels)
        self.progress(3, 4, "making the page")
        self.write_page(comparison, predictions, labels, inputs, groups, gain)
        summary = self.summarize(comparison, trained, groups, gain)
        self.progress(4, 4, "done")
        return Run(self.folder, summary.to_dict()).with_objects(ensemble, bundle)

    def train(self, name: str, groups: Sequence[Group], *, in_time: bool = False) -> Trained:
        """Train members in folds; those that are finished are saved.

        With ``in_time``, training ends with an `_OutOfTimeError` once the time is up.
        """
        done_before = -1

        def progress(done: int, total: int, task: str) -> None:
            nonlocal done_before
            self.progress(done, total, "training members")
            # The time is looked at between members, never while one is trained.
            if in_time and done > done_before and self.seconds_left() < 0:
                raise _OutOfTimeError
            done_before = done

        return train_members(
            self.source.annotations,
            groups,
            out=self.folder / name,
            random_state=self.options.random_state,
            cross_fit=FOLDS,
            jobs=self.options.jobs,
            overwrite=self.options.overwrite,
            source=self.source.path.name,
            progress=progress,
        )

    def seconds_left(self) -> float:
        """Seconds left for training members."""
        limit = self.options.seconds
        if limit is None:
            return math.inf
        return self.started + _TRAINING_SHARE * limit - time.monotonic()

    def groups_in_time(self, first_member_seconds: float) -> list[Group]:
        """The groups of the pool that can be trained in time.

        Times are estimated from that of the first member. The first group is always included.
        """
        workers = cpu_count()
        if self.options.jobs is not None:
            workers = min(self.options.jobs, workers)
        seconds_left = self.seconds_left()
        pool: list[Group] = []
        ingredients = with_earlier_names(
            default_pool(self.pool_options()), self.folder / "members" / "members"
        )
        for ingredient in ingredients:
            group = ingredient.group
            if reason := ingredient.missing():
                self.left_out.append(f"{group.name}: {reason}")
                continue
            if not self.is_trained(group):
                cost = first_member_seconds * ingredient.cost
                seconds_left -= cost * group.n_members / workers
            if seconds_left < 0 and pool:
                self.out_of_time.append(group.name)
            else:
                pool.append(group)
        return pool

    def pool_options(self) -> RunOptions:
        """The options with the sentence encoder that was chosen.

        With ``auto``, one that is not on this machine is not listed among what was left out; a note
        at the end says how to get it.
        """
        encoder = self.encoder
        if encoder is None:
            return self.options
        model: str | None = encoder.model
        is_automatic = self.options.quality == "auto" and self.options.encoder is None
        if is_automatic and not encoder.available:
            model = None
        return replace(self.options, encoder=model)

    def is_trained(self, group: Group) -> bool:
        """Whether all folds of the group's members are there."""
        cards = self.folder.glob(f"members/members/{group.name}-??/fold-*/member.json")
        return len(list(cards)) == FOLDS * group.n_members

    def train_pool(self, pool: list[Group]) -> Trained:
        """Train the pool; groups that are not finished in time are left out."""
        write_groups(pool, self.folder / "pool.toml")
        try:
            return self.train("members", pool, in_time=True)
        except _OutOfTimeError:
            finished = [group for group in pool if self.is_trained(group)] or pool[:1]
        self.out_of_time += [group.name for group in pool if group not in finished]
        write_groups(finished, self.folder / "pool.toml")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)  # of members that are not finished
            return self.train("members", finished)

    def inputs(self) -> dict[str, Input]:
        """What weights are learned from and methods are compared on, for the records of both."""
        path = self.folder / "members" / "predictions" / "fit.npz"
        options: dict[str, Any] = {}
        if self.source.reading.get("scale") is not None:
            options["scale"] = self.source.reading["scale"]
        return {
            "annotations": self.source.recorded_splits(),
            "predictions": Input(str(path), digest_input(path), options),
        }

    def fit(
        self, predictions: Predictions, labels: Annotations, inputs: dict[str, Input]
    ) -> EDOEnsemble:
        """Learn weights, and write the ensemble."""
        seed = self.options.random_state
        out = self.folder / "ensemble"
        ensemble = EDOEnsemble(random_state=seed, people=not self.options.no_people)
        ensemble.fit(predictions, labels)
        ensemble.save(out)
        RunRecord("fit", inputs, seed).save(out)
        return ensemble

    def compare(
        self,
        predictions: Predictions,
        labels: Annotations,
        soft: Predictions,
        inputs: dict[str, Input],
    ) -> Comparison:
        """Compare EDO with other methods and the model of soft labels, and write the result."""
        comparison = compare(
            predictions,
            labels,
            methods=METHODS,
            random_state=self.options.random_state,
            extra={SOFT: (soft, soft)},
        )
        comparison = replace(comparison, inputs=inputs)
        comparison.save(self.folder / "comparison", command=self.command)
        return comparison

    def compare_groups(self, labels: Annotations) -> GroupComparison | None:
        """Compare the levels of the attributes that were asked for, and write the result."""
        path = self.folder / GROUPS
        if not self.options.by:
            if not path.exists():
                return None
            if self.options.overwrite:  # they may be of other annotations
                path.unlink()
                return None
            warn(f"{path} is kept: groups were compared in an earlier run on these annotations")
            return read_groups(path)
        groups = compare_groups(labels, self.options.by, random_state=self.options.random_state)
        write_json(groups.to_dict(), path)
        return groups

    def encoder_gain(
        self, comparison: Comparison, predictions: Predictions, labels: Annotations
    ) -> EncoderGain | None:
        """What the members on a sentence encoder gained, and write it."""
        path = self.folder / ENCODER
        path.unlink(missing_ok=True)  # of an earlier run of the same folder
        if self.encoder is None:
            return None
        seed = self.options.random_state
        gain = encoder_gain(self.encoder.model, predictions, labels, comparison, seed)
        if gain is not None:
            write_json({**asdict(gain), "sentence": gain.sentence}, path)
        return gain

    def write_page(
        self,
        comparison: Comparison,
        predictions: Predictions,
        labels: Annotations,
        inputs: dict[str, Input],
        groups: GroupComparison | None,
        gain: EncoderGain | None,
    ) -> None:
        """Write the page of the comparison."""
        record = RunRecord("compare", inputs, self.options.random_state, self.command)
        page = collect_comparison(
            comparison, record, predictions, labels, name=self.folder.resolve().name
        )
        page.groups = groups
        page.has_bundle = True
        if gain is not None:
            page.remarks.append(gain.sentence)
        write_report(page, self.folder / REPORT, texts=not self.options.no_texts, overwrite=True)

    def summarize(
        self,
        comparison: Comparison,
        trained: Trained,
        groups: GroupComparison | None,
        gain: EncoderGain | None,
    ) -> RunSummary:
        """The result in numbers and in words."""
        left_out = list(self.left_out)
        if self.out_of_time:
            names = ", ".join(self.out_of_time)
            left_out.append(f"{names}: no time; the same command goes on with them")
        for failure in trained.failed:
            left_out.append(f"{failure.job.path}: it failed: {failure.reason}")
        encoder = ""
        encoder_note = ""
        if gain is not None:
            encoder = gain.model
            encoder_note = gain.sentence
        elif self.encoder is not None and self.options.quality == "auto":
            encoder_note = self.encoder.advice
        compared_groups: list[dict[str, Any]] = []
        if groups is not None:
            compared_groups = groups.to_dict()["groups"]
        gains = comparison.gains
        commands = step_commands(
            self.folder,
            self.source.path,
            self.source.reading,
            splits=self.source.splits,
            methods=METHODS,
            folds=FOLDS,
            seed=self.options.random_state,
            by=self.options.by or (),
            texts=not self.options.no_texts,
            people=not self.options.no_people,
        )
        return RunSummary(
            summary=result_sentence(gains),
            quality=quality_sentences(comparison),
            options=self.options,
            left_out=left_out,
            out_of_time=self.out_of_time,
            commands=commands,
            headline_metric=comparison.data.headline_metric,
            items=comparison.data.items["dev"],
            gains=gains,
            leaderboard=leaderboard(comparison, trained),
            seconds=round(time.monotonic() - self.started, 1),
            groups=compared_groups,
            encoder=encoder,
            encoder_note=encoder_note,
        )
