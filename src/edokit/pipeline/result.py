"""What a run made: its summary, and the objects in its folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from edokit._errors import EDOError, InputError, local_path
from edokit._io.documents import read_json
from edokit._types import Floats
from edokit.analysis.compare.result import Comparison
from edokit.analysis.diagnose.groups.result import GroupComparison
from edokit.analysis.scores.result import CONSTANT, Gain
from edokit.analysis.scores.text import hard_label_sentence
from edokit.bundle import Bundle
from edokit.ensemble.estimator import EDOEnsemble
from edokit.members.contexts import Text
from edokit.members.train import Trained
from edokit.pipeline.options import RunOptions
from edokit.report.data import GROUPS, read_groups
from edokit.report.results import MethodScores, read_comparison
from edokit.runs.record import RUN_RECORD

SUMMARY = "summary.json"


@dataclass(frozen=True)
class RunSummary:
    """The result of a run in numbers and in words: the content of ``summary.json``.

    Attributes
    ----------
    summary : str
        The result in one sentence.
    options : RunOptions
    left_out : list of str
        What the run left out, and why.
    out_of_time : list of str
        Groups that were left out for lack of time.
    commands : list of str
        The commands that do the same.
    headline_metric : str
    items : int
        Items that members learned from.
    gains : mapping of str to Gain
        Of EDO over each rival in the headline metric.
    leaderboard : list of dict
        A row for each method and each member.
    seconds : float
        How long it took.
    groups : list of dict
        Levels of the attributes that were compared, as `edo diagnose --by` has them.
    encoder : str
        The sentence encoder of the pool; empty if it has none.
    encoder_note : str
        What the encoder gained, or how to get one.
    quality : list of str
        How often the ensemble's label is right, and where it is not clearly better than a constant
        answer.
    """

    summary: str
    options: RunOptions
    left_out: list[str]
    out_of_time: list[str]
    commands: list[str]
    headline_metric: str
    items: int
    gains: Mapping[str, Gain]
    leaderboard: list[dict[str, Any]]
    seconds: float
    groups: list[dict[str, Any]] = field(default_factory=list)
    encoder: str = ""
    encoder_note: str = ""
    quality: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Run:
    """What `run` made, read from its folder.

    Parameters
    ----------
    folder : Path
        ``members/``, ``soft/``, ``ensemble/``, ``comparison/``, ``bundle/``, ``report.html``,
        ``summary.json``, ``run.json`` and, where groups were compared, ``groups.json``.
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
            If it does not hold a run, or one that is not finished.
        """
        place = local_path(folder)
        if not (place / RUN_RECORD).exists() or not (place / SUMMARY).exists():
            raise InputError(
                f"{place} does not hold a finished run",
                "name a folder that `edo run` made, or run the same command again to finish it",
                code="wrong-folder",
            )
        return cls(place, read_json(place / SUMMARY))

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
        """What the run left out, and why."""
        return list(self.results["left_out"])

    @property
    def encoder_note(self) -> str:
        """What the sentence encoder gained, or how to get one; empty if neither is known."""
        return str(self.results.get("encoder_note", ""))

    @property
    def quality(self) -> list[str]:
        """How often the ensemble's label is right, and where a constant answer is as good."""
        return list(self.results.get("quality", []))

    @property
    def groups(self) -> GroupComparison | None:
        """How groups of people differ; None unless the run was asked to compare them (``by``)."""
        path = self.folder / GROUPS
        if not path.exists():
            return None
        return read_groups(path)

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

    def predict_proba(self, texts: Sequence[Text], **view: object) -> Floats:
        """Probabilities (N, C) of texts; see `Bundle.predict_proba`."""
        return self.bundle.predict_proba(texts, **view)

    def with_objects(self, ensemble: EDOEnsemble, bundle: Bundle) -> Run:
        """Hold these objects, so that they need not be read from the files of the run."""
        # Where `cached_property` keeps what it has read.
        vars(self)["ensemble"] = ensemble
        vars(self)["bundle"] = bundle
        return self

    def _repr_html_(self) -> str:
        """The result in one sentence, its charts and the metrics of each method, in a notebook."""
        from edokit.report.notebook import run_html

        scores: MethodScores | None = None
        ensemble: EDOEnsemble | None = None
        groups: GroupComparison | None = None
        # The folder may have been moved since; the sentence is still true.
        with suppress(EDOError, OSError):
            scores = read_comparison(self.folder / "comparison" / "compare" / "methods.json")
            ensemble = self.ensemble
            groups = self.groups
        return run_html(
            f"Run {self.folder.name}",
            [self.summary, *self.left_out],
            scores=scores,
            ensemble=ensemble,
            groups=groups,
        )

    def __repr__(self) -> str:
        return f"Run {self.folder}: {self.summary}"


def quality_sentences(comparison: Comparison) -> list[str]:
    """How often the ensemble's label is right, and where a constant answer is about as good."""
    constant = next((score for score in comparison.scores if score.name == CONSTANT), None)
    sentences: list[str] = []
    if constant is not None and not comparison.data.scale.is_multi_label:
        sentences.append(hard_label_sentence(comparison["edo"], constant, comparison.data.ties))
    return sentences + comparison.headline


def leaderboard(comparison: Comparison, trained: Trained) -> list[dict[str, Any]]:
    """A row for each method and each member."""
    headline = comparison.data.headline_metric
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
