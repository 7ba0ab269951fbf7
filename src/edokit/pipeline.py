"""From a table of annotations to an ensemble that answers for new text: the whole job.

Every step is what another command does; `Run.commands` names them. Members are trained in folds of
all items, so that their weights are learned, and judged, on answers for items that they have not
seen. The rows of the comparison are cross-validated once more: no item is judged by weights that it
helped to choose.
"""

from __future__ import annotations

import json
import math
import shlex
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from joblib import cpu_count
from pydantic_core import to_jsonable_python

from edokit._errors import (
    EDOError,
    EDOWarning,
    InputError,
    examples,
    local_path,
    one_of,
    option,
    typed_values,
    warn,
)
from edokit._io.atomic import whole_file
from edokit._io.digests import digest_input
from edokit._io.documents import read_json, write_json
from edokit._types import Floats
from edokit.analysis.compare import Comparison, compare
from edokit.analysis.scores.result import Gain
from edokit.annotations.core import Annotations
from edokit.bundle import Bundle
from edokit.datasets.read import ScaleWarning, read_annotations, write_annotations
from edokit.ensemble.estimator import EDOEnsemble, fit
from edokit.members import Group, train_members
from edokit.members.pretrained import choose_device, local_folder, require_packages
from edokit.members.train import Trained
from edokit.members.training_data import DEV, TRAIN
from edokit.metrics import paired_test
from edokit.report import write_report
from edokit.report.formatting import listed
from edokit.runs.folder import output_folder
from edokit.runs.inputs import Input, merge_options
from edokit.runs.record import RUN_RECORD, RunRecord, begin_run
from edokit.scales import NOMINAL, looks_ordinal

Quality = Literal["fast", "good", "best"]
QUALITIES = ("fast", "good", "best")
Step = Callable[[int, int, str], None]
FOLDS = 5
METHODS = ("best-single", "greedy", "linear-pool", "edo")
"""What EDO is compared with, besides the constant answer and the uniform mean."""
SOFT = "soft"
"""The member that is trained first: one model of soft labels, which EDO is compared with, too."""
RIVALS = {
    "uniform": "a plain average of your models",
    SOFT: "one model trained on the shares of answers",
    "greedy": "greedy selection",
    "constant": "the same answer for every text",
}
"""What the summary compares EDO with, in words."""
# Share of the time after which no member starts to train; the rest is for what follows.
_TRAINING_SHARE = 0.75
_ANNOTATIONS, _POOL, _RESULTS = "annotations.parquet", "pool.toml", "summary.json"
_RARE = 2  # annotations of a label that may be a mistake
MEMBERS, _FIT = "members", "members/predictions/fit.npz"


class _OutOfTimeError(Exception):
    """Members are still to be trained, and the time for that is over."""


@dataclass(frozen=True)
class RunOptions:
    """How thorough a run is.

    Parameters
    ----------
    quality : {"fast", "good", "best"}, default="fast"
        ``fast`` trains TF-IDF members, ``good`` more of them and members on a sentence encoder,
        ``best`` also fine-tunes transformers where there is a GPU.
    time : str, default=None
        How long it may take, such as ``"90s"``, ``"10m"`` or ``"2h"``: the pool is cut to fit.
    encoder : str, default="sentence-transformers/all-MiniLM-L6-v2"
        The sentence encoder of ``good``: a folder, or a hub id that has been downloaded.
    transformer : str, default="microsoft/mpnet-base"
        The transformer of ``best``: a folder, or a hub id that has been downloaded.
    random_state : int, default=0
        Seed of members, folds and intervals.
    jobs : int, default=None
        Members that train at a time, as for `edokit.train_members`.
    overwrite : bool, default=False
        Replace a run on other annotations, and files that EDO did not write.

    Examples
    --------
    >>> from edokit.pipeline import RunOptions
    >>> RunOptions(time="10m").seconds
    600.0
    """

    quality: Quality = "fast"
    time: str | None = None
    encoder: str = "sentence-transformers/all-MiniLM-L6-v2"
    transformer: str = "microsoft/mpnet-base"
    random_state: int = 0
    jobs: int | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        one_of("quality", self.quality, QUALITIES)
        _ = self.seconds  # refuses what is no time

    @property
    def seconds(self) -> float | None:
        """The time in seconds."""
        if self.time is None:
            return None
        seconds = 0.0
        with suppress(ValueError):
            seconds = pd.Timedelta(self.time).total_seconds()
        if not seconds >= 1:
            raise InputError(
                f"{option('time', self.time)} is no time of a second or more",
                f"write {option('time', '10m')}, {option('time', '90s')} or"
                f" {option('time', '1h30m')}",
            )
        return seconds


@dataclass(frozen=True)
class Ingredient:
    """A group of the default pool, and what it costs."""

    group: Group
    cost: float = 1.0
    """Training time of a member, relative to the first member's (``SOFT``)."""

    def missing(self) -> str:
        """Why it can't be trained here; empty if it can."""
        recipe, model = self.group.recipe, str(self.group.options.get("model", ""))
        try:
            if model:
                local_folder(model)  # before torch is loaded
                require_packages(f"the recipe {recipe}")
            if recipe == "transformer" and choose_device(None).type == "cpu":
                return "fine-tuning needs a GPU, and there is none here"
        except EDOError as error:
            return str(error)
        return ""


# Randomised trees that learn shares: they err on other texts than a regression does.
_TREES = "sklearn.ensemble.ExtraTreesRegressor(50, min_samples_leaf=3, max_features=0.05)"
_FOREST = {"estimator": _TREES, "pieces": 5000}


def _linear(name: str, cost: float, supervision: str = "soft", **options: Any) -> Ingredient:
    return Ingredient(Group("linear", 1, name, supervision, options=options), cost)


def default_pool(options: RunOptions) -> list[Ingredient]:
    """The groups of this quality, the most useful first (``benchmarks/run.py``).

    The last ones are left out when time is short.
    """
    pool = [
        _linear("bold", 2.0, strength=20.0),
        Ingredient(Group("sklearn", 2, "forest", "soft", options=_FOREST), 5.0),
        _linear("annotators", 6.0, annotators=True),
        _linear("cautious", 1.0, strength=1.0),
        _linear("words", 1.0, words=2.0, strength=1.0),
        _linear("drawn", 1.0, "random-select", strength=2.0),
    ]
    if options.quality in ("good", "best"):
        model: dict[str, Any] = {"model": options.encoder}
        by_annotator, bold = model | {"annotators": True}, model | {"strength": 20.0}
        pool[2:2] = [  # the first one reads the texts for both
            Ingredient(Group("encoder", 1, "encoder", "soft", options=by_annotator), 30.0),
            Ingredient(Group("encoder", 1, "encoder-bold", "soft", options=bold), 1.0),
        ]
        pool.append(_linear("characters", 1.0, words=0.0))
    if options.quality == "best":
        tuned = Group("transformer", 3, "transformer", options={"model": options.transformer})
        pool.append(Ingredient(tuned, 500.0))
    return pool


@dataclass(frozen=True, eq=False)
class Run:
    """What `run` made, read from its folder.

    Parameters
    ----------
    folder : Path
        ``members/``, ``soft/``, ``ensemble/``, ``comparison/``, ``bundle/``, ``report.html``,
        ``summary.json`` and ``run.json``.
    results : dict
        The content of ``summary.json``.

    Examples
    --------
    >>> import edokit
    >>> result = edokit.Run.load("run")  # doctest: +SKIP
    >>> result.leaderboard["ce"].idxmin()  # doctest: +SKIP
    'edo'
    """

    folder: Path
    results: dict[str, Any] = field(repr=False)

    @classmethod
    def load(cls, folder: str | Path) -> Run:
        """Read the folder of a finished run.

        Parameters
        ----------
        folder : str or Path

        Returns
        -------
        Run

        Raises
        ------
        InputError
            If it is none, or not finished.
        """
        place = local_path(folder)
        if not (place / RUN_RECORD).exists() or not (place / _RESULTS).exists():
            raise InputError(
                f"{place} holds no finished run",
                "name a folder that `edo run` made, or run the same command again to finish it",
            )
        return cls(place, read_json(place / _RESULTS))

    @property
    def summary(self) -> str:
        """The result in one sentence."""
        return str(self.results["summary"])

    @property
    def commands(self) -> list[str]:
        """The commands that do the same, one after the other."""
        return list(self.results["commands"])

    @property
    def left_out(self) -> list[str]:
        """What the run did without, and why."""
        return list(self.results["left_out"])

    @property
    def leaderboard(self) -> pd.DataFrame:
        """Methods and members, the best first: metrics of items that they have not seen.

        Methods have the interval of the headline metric (CE, or RPS on an ordinal scale), members
        their weight in the ensemble.
        """
        table = pd.DataFrame(self.results["leaderboard"]).set_index("name")
        return table.sort_values(self.results["headline_metric"], kind="stable")

    @cached_property
    def ensemble(self) -> EDOEnsemble:
        """The ensemble."""
        return EDOEnsemble.load(self.folder / "ensemble")

    @cached_property
    def bundle(self) -> Bundle:
        """The ensemble with its members, which answers for texts."""
        return Bundle.load(self.folder / "bundle")

    def predict_proba(self, texts: Sequence[Any], **view: Any) -> Floats:
        """Probabilities (N, C) of texts; see `Bundle.predict_proba`."""
        return self.bundle.predict_proba(texts, **view)

    def __repr__(self) -> str:
        return f"Run {self.folder}: {self.summary}"


def run(
    annotations: str | Path | Annotations | pd.DataFrame,
    out: str | Path,
    options: RunOptions | None = None,
    *,
    step: Step = lambda done, total, what: None,
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
    step : callable, default: nothing
        Called as ``step(done, total, what)``.
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
    options, reading = merge_options(RunOptions, options, settings)
    folder = local_path(out)
    path = local_path(annotations) if isinstance(annotations, str | Path) else None
    with output_folder(folder, "run", path, overwrite=options.overwrite):
        source = _read(annotations, folder, reading)
        if (finished := _finished(folder, source, options)) is not None:
            return finished
        begin_run(folder)
        write_json({"options": asdict(options), "summary": None}, folder / _RESULTS)
        job = _Job(folder, source, options, started, step, command)
        results = job.results()
        write_json(results, folder / _RESULTS)
        inputs = {"annotations": Input(str(source.path), digest_input(source.path), source.reading)}
        RunRecord("run", inputs, options.random_state, command).save(folder)
    return Run(folder, results)


@dataclass(frozen=True)
class _Source:
    """Annotations, the file that they are in, and how it is read."""

    annotations: Annotations
    path: Path
    reading: dict[str, Any]
    splits: list[str]
    """The splits to learn from; none where items have no split."""


def _read(annotations: Any, folder: Path, reading: dict[str, Any]) -> _Source:
    """The annotations; what is no file is written into the folder, so that commands can read it."""
    path = folder / _ANNOTATIONS
    if isinstance(annotations, str | Path):
        path = local_path(annotations)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ScaleWarning)  # asked below
            annotations = read_annotations(path, **reading)
    elif not isinstance(annotations, Annotations):
        annotations = Annotations.from_table(annotations, **reading)
    classes, scale = annotations.classes, annotations.scale
    if "scale" not in reading and scale == NOMINAL and looks_ordinal(classes):
        raise InputError(
            f"the labels {', '.join(classes)} may be points of a scale or classes without an order",
            f"say which: {option('scale', 'ordinal')} or {option('scale', 'nominal')}",
        )
    _warn_of_rare_labels(annotations)
    if path.parent == folder:
        reading = {"classes": list(classes), "scale": scale.to_text(classes), "duplicates": "all"}
        write_annotations(annotations, path)
    splits = [name for name in annotations.split_names if name in (TRAIN, *DEV)]
    return _Source(annotations, path, reading, splits)


def _warn_of_rare_labels(annotations: Annotations) -> None:
    """Name classes that next to nobody chose, which may be spelling mistakes."""
    counts = dict(zip(annotations.classes, annotations.counts.sum(axis=0), strict=True))
    rare = [name for name, count in counts.items() if 0 < count <= _RARE]
    if rare and len(annotations) >= 100 * _RARE:
        warn(
            f"of {len(annotations)} annotations at most {_RARE} each chose {examples(rare)}; if"
            f" that is a mistake: {option('label_map', {rare[0]: 'LABEL'})}, or"
            f" {option('drop_label', [rare[0]])}"
        )


def _finished(folder: Path, source: _Source, options: RunOptions) -> Run | None:
    """The run that the folder holds already, if it is this one and nothing was left out."""
    if not (folder / RUN_RECORD).exists():
        return None
    try:
        result, record = Run.load(folder), RunRecord.load(folder)
        stored = record.inputs["annotations"]
        same_options = result.results["options"] == asdict(options)
        is_whole = not result.results["out_of_time"]
    except (EDOError, LookupError):
        return None
    # Tuples are lists in the record.
    reading = to_jsonable_python(source.reading)
    if (stored.sha256, stored.options) != (digest_input(source.path), reading):
        raise InputError(
            f"{folder} holds a run on other annotations, or on annotations that were read with"
            " other options",
            f"choose another output folder, or replace it with {option('overwrite')}",
        )
    return result if same_options and is_whole else None


@dataclass
class _Job:
    """One run: its steps in turn."""

    folder: Path
    source: _Source
    options: RunOptions
    started: float
    step: Step
    command: str
    left_out: list[str] = field(default_factory=list)
    out_of_time: list[str] = field(default_factory=list)

    def results(self) -> dict[str, Any]:
        """Run all steps and return the content of ``summary.json``."""
        seed, splits = self.options.random_state, self.source.splits or None
        soft = self.train(SOFT, [Group("linear", 1, supervision="soft")])
        trained = self.train_pool(self.choose(float(soft.manifest["seconds"])))
        files: Any = (self.folder / _FIT, self.source.path)
        self.step(0, 4, "learning weights")
        fit(
            *files,
            ensemble=EDOEnsemble(random_state=seed),
            out=self.folder / "ensemble",
            split=splits,
            read_options=self.source.reading,
        )
        self.step(1, 4, "comparing")
        comparison = compare(
            *files,
            split=splits,
            methods=METHODS,
            random_state=seed,
            extra={SOFT: (soft.predictions["fit"],) * 2},
            **self.source.reading,
        )
        comparison.save(self.folder / "comparison", command=self.command)
        self.step(2, 4, "making the bundle")
        Bundle.create(*map(self.folder.joinpath, ("ensemble", "members", "bundle")), overwrite=True)
        self.step(3, 4, "making the page")
        write_report(self.folder, overwrite=True)
        return self.describe(comparison, trained)

    def train(self, name: str, groups: Sequence[Group], *, in_time: bool = False) -> Trained:
        """Train members in folds, perhaps until time is up; those that are finished are kept."""

        def progress(event: dict[str, Any]) -> None:
            if "done" in event:
                self.step(event["done"], event["total"], "training members")
                if in_time and self.seconds_left() < 0:
                    raise _OutOfTimeError

        return train_members(
            self.source.annotations,
            groups,
            out=self.folder / name,
            random_state=self.options.random_state,
            cross_fit=FOLDS,
            jobs=self.options.jobs,
            overwrite=self.options.overwrite,
            source=self.source.path.name,
            step=progress,
        )

    def seconds_left(self) -> float:
        """Seconds left for training members."""
        limit = self.options.seconds
        if limit is None:
            return math.inf
        return self.started + _TRAINING_SHARE * limit - time.monotonic()

    def choose(self, seconds: float) -> list[Group]:
        """The groups of the pool that fit into the time; ``seconds`` is what the first member took.

        The first group is always among them.
        """
        cores = cpu_count()
        workers = cores if self.options.jobs is None else min(self.options.jobs, cores)
        seconds_left, pool = self.seconds_left(), list[Group]()
        for ingredient in default_pool(self.options):
            group = ingredient.group
            if reason := ingredient.missing():
                self.left_out.append(f"{group.name}: {reason}")
                continue
            if not self.is_trained(group):
                seconds_left -= seconds * ingredient.cost * group.members / workers
            if seconds_left < 0 and pool:
                self.out_of_time.append(group.name)
            else:
                pool.append(group)
        return pool

    def is_trained(self, group: Group) -> bool:
        """Whether all folds of the group's members are there."""
        cards = self.folder.glob(f"members/members/{group.name}-??/fold-*/member.json")
        return len(list(cards)) == FOLDS * group.members

    def train_pool(self, pool: list[Group]) -> Trained:
        """Train the pool; groups that are not finished in time are left out."""
        write_groups(pool, self.folder / _POOL)
        try:
            return self.train(MEMBERS, pool, in_time=True)
        except _OutOfTimeError:
            finished = [group for group in pool if self.is_trained(group)] or pool[:1]
        self.out_of_time += [group.name for group in pool if group not in finished]
        write_groups(finished, self.folder / _POOL)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)  # of members that are not finished
            return self.train(MEMBERS, finished)

    def describe(self, comparison: Comparison, trained: Trained) -> dict[str, Any]:
        """The content of ``summary.json``."""
        if self.out_of_time:
            names = ", ".join(self.out_of_time)
            self.left_out.append(f"{names}: no time; the same command goes on with them")
        for failure in trained.failed:
            self.left_out.append(f"{failure.job.path}: it failed: {failure.reason}")
        gains = compare_rivals(comparison)
        return {
            "summary": sentence(gains),
            "options": asdict(self.options),
            "left_out": self.left_out,
            "out_of_time": self.out_of_time,
            "commands": self.commands(),
            "headline_metric": comparison.facts["headline_metric"],
            "items": comparison.facts["items"]["dev"],
            "gains": {name: asdict(gain) for name, gain in gains.items()},
            "leaderboard": leaderboard(comparison, trained),
            "seconds": round(time.monotonic() - self.started, 1),
        }

    def commands(self) -> list[str]:
        """The commands that do the same."""
        place, source = self.folder, self.source.path
        reading = reading_flags(self.source.reading)
        seed = ["--seed", self.options.random_state]
        folds = ["--cross-fit", FOLDS, *seed]
        labels = ["--predictions", place / _FIT, "--annotations", source, *reading]
        labels += ["--split", ",".join(self.source.splits)] if self.source.splits else []
        soft = ["--recipe", "linear", "--supervision", "soft", "--members", 1]
        extra = f"{SOFT}={place / SOFT / 'predictions' / 'fit.npz'}"
        rows = ["--methods", ",".join(METHODS), "--extra", extra, "--no-report"]
        pool = ["--recipe", place / _POOL]
        members = ["--members", place / MEMBERS]
        words: list[list[Any]] = [
            ["train", source, *reading, *soft, *folds, "--out", place / SOFT],
            ["train", source, *reading, *pool, *folds, "--out", place / MEMBERS],
            ["fit", *labels, *seed, "--out", place / "ensemble"],
            ["compare", *labels, *rows, *seed, "--out", place / "comparison"],
            ["bundle", place / "ensemble", *members, "--out", place / "bundle"],
            ["report", place],
        ]
        return [shlex.join(["edo", *map(str, line)]) for line in words]


def write_groups(groups: Sequence[Group], path: Path) -> None:
    """Write groups as the TOML file that ``edo train --recipe`` reads."""
    lines = []
    for group in groups:
        lines.append("[[group]]")
        values = {"name": group.name, "recipe": group.recipe, "members": group.members}
        values["supervision"] = group.supervision
        values |= {f"options.{name}": value for name, value in group.options.items()}
        lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    with whole_file(path) as temporary:
        temporary.write_text("\n".join([*lines, ""]), encoding="utf-8")


def reading_flags(reading: Mapping[str, Any]) -> list[str]:
    """Arguments of `read_annotations` as flags of the command line."""
    words: list[str] = []
    for name, value in reading.items():
        flag = "--column" if name == "columns" else f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words += [flag] if value else []
        else:
            words += [word for text in typed_values(value) for word in (flag, text)]
    return words


def compare_rivals(comparison: Comparison) -> dict[str, Gain]:
    """The gain of EDO over each rival in the headline metric, from paired items."""
    metric, losses = comparison.facts["headline_metric"], comparison.losses
    return {
        name: Gain.from_test(
            metric, paired_test(losses["edo"][metric], losses[name][metric]), comparison[name]
        )
        for name in RIVALS
        if name in losses
    }


def sentence(gains: Mapping[str, Gain]) -> str:
    """The result for somebody who has to decide, from the gains on `RIVALS`."""
    if gains["constant"].standing != "better":
        return (
            f"No better than {RIVALS['constant']}: from these texts the models could not learn how"
            " your annotators answer."
        )
    by_standing: dict[str, list[str]] = {"better": [], "worse": [], "unclear": []}
    for name, gain in gains.items():
        by_standing[gain.standing].append(name)
    better = [name for name in by_standing["better"] if name != "constant"] or ["constant"]
    parts = ["Matches your annotators " + listed([_against(name, gains) for name in better])]
    if worse := by_standing["worse"]:
        parts.append(listed([_against(name, gains) for name in worse]))
    if equal := by_standing["unclear"]:
        parts.append(f"no better than {listed([RIVALS[name] for name in equal], 'or')}")
    return "; ".join(parts) + "."


def _against(name: str, gains: Mapping[str, Gain]) -> str:
    return f"{gains[name].percent} {gains[name].standing} than {RIVALS[name]}"


def leaderboard(comparison: Comparison, trained: Trained) -> list[dict[str, Any]]:
    """A row for each method and each member."""
    headline = comparison.facts["headline_metric"]
    rows: list[dict[str, Any]] = []
    for score in comparison.scores:
        low, high = score.intervals[headline]
        rows.append(
            {"name": score.name, "kind": "method", **score.metrics, "low": low, "high": high}
        )
    weights = comparison["edo"].weights or {}
    for member in trained.manifest["members"]:
        metrics = {name: member["metrics"]["fit"][name] for name in comparison["edo"].metrics}
        weight = weights.get(member["name"])
        rows.append({"name": member["name"], "kind": "member", **metrics, "weight": weight})
    return rows
