"""Results that a page shows: the trials of a search, and the scores of methods."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, ConfigDict, Field, model_validator

from edokit._errors import InputError
from edokit._io.documents import Count, Document, read_json, read_model, show_value, to_model
from edokit._io.tables import read_table
from edokit.analysis.compare.result import Comparison
from edokit.analysis.evaluate.result import Evaluation
from edokit.analysis.scores.result import CONSTANT, UNIFORM, Gain, Score
from edokit.analysis.scores.text import RIVALS, headline_sentences, result_sentence
from edokit.metrics import METRIC, PairedTest, search_metrics
from edokit.report.evaluation import EvaluatedItems
from edokit.report.formatting import number

# Columns of the table of trials that are not settings.
_OUTCOMES = {"number", "slot", "weights", "on_front", "chosen", "state", "failure"}
_ESTIMATES = ("optimistic_", "cross_fitted_")


def _is_metric(name: str) -> str:
    if name not in METRIC:
        raise ValueError("is not the name of a metric")
    return name


class _ChosenTrial(Document):
    """The trial that a search chose, in ``search.json``."""

    rule: str | None = None
    estimates: dict[str, dict[str, float | None] | None] = Field(default_factory=dict)


class _SearchFile(Document):
    """The content of ``search.json``."""

    metrics: Annotated[
        list[Annotated[str, AfterValidator(_is_metric)]], Field(min_length=3, max_length=3)
    ] = Field(default_factory=lambda: list(search_metrics()))
    chosen: _ChosenTrial | None = None


class _MethodRecord(Document):
    """A method in ``methods.json``."""

    # Metrics are fields beside these. Which there are, the registry knows when a file is read.
    model_config = ConfigDict(extra="allow")

    name: str
    about: str = ""
    intervals: dict[str, tuple[float, float]] = Field(default_factory=dict)
    against_reference: dict[str, PairedTest] = Field(default_factory=dict)
    against_constant: dict[str, PairedTest] = Field(default_factory=dict)
    only_label: str | None = None

    @model_validator(mode="after")
    def _check_metrics(self) -> _MethodRecord:
        for name, value in self._metric_fields().items():
            is_number = isinstance(value, float | int) and not isinstance(value, bool)
            # NaN and integers that are too long for a float are not within these bounds.
            is_finite = is_number and abs(value) <= sys.float_info.max
            if value is not None and not is_finite:
                raise ValueError(
                    f"has {show_value(value)} for {name}, but should have a finite number"
                )
        return self

    def _metric_fields(self) -> dict[str, Any]:
        """The fields that are metrics, by name."""
        fields = self.model_extra or {}
        return {name: fields[name] for name in METRIC if name in fields}

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics that have a value."""
        values = self._metric_fields().items()
        return {name: float(value) for name, value in values if value is not None}


class SkippedMethod(Document):
    """A method that could not be fitted."""

    name: str = ""
    reason: str = ""


class _ConstantRecord(Document):
    """The constant answer in ``methods.json``."""

    source: Literal["train", "fit", "items"] = "fit"


class _ComparisonFile(Document):
    """The content of ``methods.json``."""

    methods: list[_MethodRecord]
    samples: Count | None = None
    level: Annotated[float, Field(gt=0, lt=1)] = 0.95
    skipped: list[SkippedMethod] = Field(default_factory=list)
    gains: dict[str, Gain] = Field(default_factory=dict)
    ties: Count = 0
    constant: _ConstantRecord = Field(default_factory=_ConstantRecord)


@dataclass(frozen=True)
class MethodScores:
    """The scores of compared methods.

    Attributes
    ----------
    scores : list[Score]
    samples : int or None
        Resamples of the intervals and tests.
    level : float
        Of the intervals.
    skipped : list[SkippedMethod]
        Methods that could not be fitted.
    gains : mapping of str to Gain
        Of EDO over its main rivals; empty where the file has none.
    constant_source : str
        What the constant answer is; see `SHARES`.
    ties : int
        Items whose annotators are evenly split, so that no label is the choice of most.
    """

    scores: list[Score]
    samples: int | None = None
    level: float = 0.95
    skipped: list[SkippedMethod] = field(default_factory=list)
    gains: Mapping[str, Gain] = field(default_factory=dict)
    constant_source: str = "fit"
    ties: int = 0

    @classmethod
    def from_comparison(cls, comparison: Comparison) -> MethodScores:
        """The scores of a comparison in memory, the same as those in its file."""
        return cls(
            list(comparison.scores),
            samples=comparison.data.samples,
            level=comparison.data.level,
            skipped=[
                SkippedMethod(name=name, reason=reason)
                for name, reason in comparison.skipped.items()
            ],
            gains=comparison.gains,
            constant_source=comparison.data.constant.source,
            ties=comparison.data.ties,
        )


@dataclass(frozen=True)
class SearchTrials:
    """The trials of a search, and how one of them was chosen.

    Attributes
    ----------
    trials : list[dict]
        Rows of ``trials.parquet`` by number: metrics, settings, ``on_front`` and ``chosen``.
    failed : int
        Trials without a result.
    rule : str
        Of the choice.
    metrics : tuple[str, ...]
        What it optimised: F1, the headline metric of the answer scale, and a distance.
    estimates : dict[str, float]
        Headline metric of the chosen trial by kind of estimate.
    """

    trials: list[dict[str, Any]]
    failed: int = 0
    rule: str = ""
    metrics: tuple[str, ...] = search_metrics()
    estimates: dict[str, float] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        """The metric by which the best trial comes first."""
        return self.metrics[1]

    @property
    def front(self) -> list[dict[str, Any]]:
        """The trials that are not dominated, lowest headline metric first."""
        front = [trial for trial in self.trials if trial.get("on_front")]
        return sorted(front, key=itemgetter(self.headline))

    @property
    def chosen(self) -> dict[str, Any] | None:
        """The chosen trial."""
        return next((trial for trial in self.trials if trial.get("chosen")), None)


def read_search(folder: Path) -> SearchTrials:
    """Read the folder ``search/`` of a run."""
    path = folder / "search.json"
    content: Any = {}
    if path.exists():
        content = read_json(path)
    return parse_search(read_table(folder / "trials.parquet").to_pylist(), content)


def parse_search(rows: Sequence[Mapping[str, Any]], content: Any) -> SearchTrials:
    """The search with these rows of ``trials.parquet`` and this content of ``search.json``."""
    document = to_model(
        content,
        _SearchFile,
        "search.json",
        title="the result of a search",
        hint="run the search again",
    )
    chosen_trial = document.chosen or _ChosenTrial()
    metrics = tuple(document.metrics)
    estimates: dict[str, float] = {}
    for kind, values in chosen_trial.estimates.items():
        value = (values or {}).get(metrics[1])
        if value is not None:
            estimates[kind] = value
    trials = []
    try:
        for row in rows:
            outcomes = {name: _as_float(row[name]) for name in metrics}
            if np.isfinite(list(outcomes.values())).all():
                trials.append({**row, **outcomes, "number": int(row["number"])})
    # Anyone may have written the table.
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        message = f"trials.parquet is damaged ({error!r})"
        raise InputError(message, "run the search again", code="wrong-content") from error
    return SearchTrials(
        sorted(trials, key=itemgetter("number")),
        len(rows) - len(trials),
        chosen_trial.rule or "",
        metrics,
        estimates,
    )


def _as_float(value: Any) -> float:
    """A metric of a trial; NaN if it has none."""
    if value is None:
        return math.nan
    return float(value)


def trial_settings(trial: Mapping[str, Any]) -> dict[str, str]:
    """Every setting of a trial as text, size and generation included."""
    settings: dict[str, str] = {}
    for name, value in trial.items():
        is_metric = name.removesuffix("_se") in METRIC
        is_outcome = is_metric or name in _OUTCOMES or name.startswith(_ESTIMATES)
        if value is None or is_outcome:
            continue
        if isinstance(value, float):
            settings[name] = f"{value:.4g}"
        else:
            settings[name] = str(value)
    return settings


def read_comparison(path: Path) -> MethodScores:
    """Read ``compare/methods.json``."""
    file = read_model(
        path,
        _ComparisonFile,
        title="the result of a comparison",
        hint="run the comparison again",
    )
    scores = [_score(row) for row in file.methods]
    gains = {name: file.gains[name] for name in RIVALS if name in file.gains}
    return MethodScores(
        scores,
        samples=file.samples,
        level=file.level,
        skipped=file.skipped,
        gains=gains,
        constant_source=file.constant.source,
        ties=file.ties,
    )


def _score(row: _MethodRecord) -> Score:
    """What a page shows of a method, from a row of the file."""
    metrics = row.metrics
    # An ordinal scale has RPS, which ranks methods there.
    headline_metric = "rps" if "rps" in metrics else "ce"
    return Score(
        row.name,
        row.about,
        metrics,
        row.intervals,
        row.against_reference,
        row.against_constant,
        headline_metric=headline_metric,
        only_label=row.only_label,
    )


def ranked_scores(
    comparison: MethodScores | None, evaluation: EvaluatedItems | None
) -> list[Score]:
    """The scores of the comparison, else of the evaluation, lowest headline metric first."""
    scores: Sequence[Score] = []
    if comparison is not None:
        scores = comparison.scores
    elif evaluation is not None:
        scores = evaluation.scores
    finite = [score for score in scores if math.isfinite(headline_value(score))]
    return sorted(finite, key=headline_value)


@dataclass(frozen=True)
class MethodRow:
    """One row of a comparison: a method, or several methods that give the very same answers.

    Attributes
    ----------
    score : Score
        The score of EDO, if it is one of these methods, else of the first.
    names : tuple of str
        The names of all these methods.
    """

    score: Score
    names: tuple[str, ...]

    @property
    def is_ours(self) -> bool:
        """Whether EDO is one of these methods."""
        return any(is_ours(name) for name in self.names)


def method_rows(scores: Sequence[Score]) -> list[MethodRow]:
    """A row for each score; methods with equal metrics and intervals are one row.

    The average of one member is that member, and the top five of five members are all of them.
    """
    groups: list[list[Score]] = []
    for score in scores:
        for group in groups:
            has_same_metrics = score.metrics and score.metrics == group[0].metrics
            if has_same_metrics and score.intervals == group[0].intervals:
                group.append(score)
                break
        else:
            groups.append([score])
    rows: list[MethodRow] = []
    for group in groups:
        ours = [score for score in group if is_ours(score.name)]
        ordered = ours + [score for score in group if not is_ours(score.name)]
        rows.append(MethodRow(ordered[0], tuple(score.name for score in ordered)))
    return rows


@dataclass(frozen=True)
class Headline:
    """The ensemble beside a plain average of the members: what the headline of a page is about.

    Attributes
    ----------
    edo, uniform : Score
    constant : Score or None
    level : float
        Confidence level of the intervals.
    held_out : bool or None
        Whether the ensemble was fitted without the items; None if that is not known.
    rival_gains : mapping of str to Gain
        Over all rivals of a comparison; empty where only the tests of the scores are known.
    constant_source : str
        What the constant answer is; see `SHARES`.
    cautions : list of str
        Where the ensemble is not clearly better than the constant, on the same items.
    one_model : Score or None
        A single model: that of soft labels, else the best member.
    ties : int
        Items whose annotators are evenly split, so that no label is the choice of most.
    """

    edo: Score
    uniform: Score
    constant: Score | None
    level: float
    held_out: bool | None
    rival_gains: Mapping[str, Gain] = field(default_factory=dict)
    constant_source: str = "fit"
    cautions: Sequence[str] = ()
    one_model: Score | None = None
    ties: int = 0

    @property
    def gains(self) -> dict[str, Gain]:
        """Gain over the plain average in each metric, the headline metric first."""
        names = [name for name in self.edo.against if name != self.metric]
        if self.metric in self.edo.against:
            names.insert(0, self.metric)
        tests = self.edo.against
        return {name: Gain.from_test(name, tests[name], self.uniform) for name in names}

    @property
    def metric(self) -> str:
        """The headline metric."""
        return self.edo.headline_metric

    @property
    def sentence(self) -> str:
        """The headline, in the words of `edo run`."""
        if self.rival_gains:
            return result_sentence(self.rival_gains)
        gains = {UNIFORM: self.gains[self.metric]}
        test = self.edo.against_constant.get(self.metric)
        if test is not None and self.constant is not None:
            gains[CONSTANT] = Gain.from_test(self.metric, test, self.constant)
        return result_sentence(gains)


def find_headline(
    comparison: MethodScores | None,
    evaluation: EvaluatedItems | None,
    *,
    tested_only: bool = True,
) -> Headline | None:
    """The headline: of the evaluated items, or of the comparison if these are the fit's own.

    ``tested_only=False`` also returns scores without a test against the plain average, as of items
    in too few groups.
    """
    source: Evaluation | MethodScores | None = None
    held_out: bool | None = None
    if evaluation is not None:
        source = evaluation.result
        held_out = evaluation.held_out
    if comparison is not None and (source is None or held_out is False):
        source = comparison
        held_out = True
    if source is None:
        return None
    scores = {score.name: score for score in source.scores}
    edo = scores.get("edo")
    uniform = scores.get("uniform")
    if edo is None or uniform is None:
        return None
    if tested_only and edo.headline_metric not in edo.against:
        return None
    constant = scores.get(CONSTANT)
    one_model = scores.get("soft", scores.get("best-single"))
    if isinstance(source, Evaluation):
        ties = 0
        if evaluation is not None and evaluation.annotations is not None:
            ties = int(evaluation.annotations.tied.sum())
        return Headline(
            edo,
            uniform,
            constant,
            source.level,
            held_out,
            constant_source=source.constant.source,
            cautions=source.headline,
            one_model=one_model,
            ties=ties,
        )
    cautions: list[str] = []
    if constant is not None and edo.headline_metric in edo.against:
        cautions = headline_sentences(
            edo,
            constant,
            edo.against[edo.headline_metric].n,
            subject="The ensemble",
            source=source.constant_source,
        )
    return Headline(
        edo,
        uniform,
        constant,
        source.level,
        held_out,
        rival_gains=source.gains,
        constant_source=source.constant_source,
        cautions=cautions,
        one_model=one_model,
        ties=source.ties,
    )


def best_values(scores: Sequence[Score]) -> dict[str, str]:
    """The best value of each metric that some score has, after rounding."""
    best = {}
    for metric, entry in METRIC.items():
        values = [score.metrics[metric] for score in scores if metric in score.metrics]
        if values:
            finite = [value for value in values if math.isfinite(value)]
            if entry.higher:
                best_value = max(finite, default=None)
            else:
                best_value = min(finite, default=None)
            best[metric] = number(best_value)
    return best


def is_ours(name: str) -> bool:
    """Whether the method is EDO."""
    return name == "edo" or name.startswith(("edo-", "edo:"))


def headline_value(score: Score) -> float:
    """The metric that ranks methods."""
    return float(getattr(score, score.headline_metric))
