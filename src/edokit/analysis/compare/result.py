"""The result of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from edokit._errors import counted, local_path
from edokit._io.atomic import whole_file
from edokit._io.documents import write_json
from edokit._io.markup import Table
from edokit._package import notebook_html
from edokit._types import Floats, Ints
from edokit.analysis.compare.method import EDO, Method
from edokit.analysis.compare.options import Correction
from edokit.analysis.scores.result import UNIFORM, Gain, Score, lowest_score
from edokit.analysis.scores.text import RIVALS
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.fitted import Constant
from edokit.metrics import headline_metric, paired_test
from edokit.predictions.core import Predictions
from edokit.predictions.files import write_predictions
from edokit.runs.folder import output_folder
from edokit.runs.inputs import Input
from edokit.runs.record import RunRecord, begin_run
from edokit.scales import Scale

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ComparedData:
    """The data of a comparison, and how methods were evaluated on them.

    Attributes
    ----------
    items : mapping of str to int
        Number of items of ``dev`` and ``test``.
    rows : mapping of str to int
        Number of rows of ``dev`` and ``test``: items, or pairs of an item and an annotator.
    ties : int
        Test items whose annotators are evenly split.
    members : int
        Number of members.
    classes : tuple of str
    scale : Scale
    constant : Constant
        The constant answer.
    best_possible : mapping of str to float or None
        The best value of each metric that any answer can have on the test items.
    folds : int or None
        Folds of a cross-validation; None where there are test items.
    level : float
        Level of the intervals.
    samples : int
        Resamples of intervals that need them; tests make twice as many sign flips.
    seed : int
    metrics : tuple of str
        The metrics of the tables.
    seeds : int
        How often each method was fitted.
    correct : {"holm", "none"}
        How p-values against ``uniform`` are corrected for the number of tests.
    """

    items: Mapping[str, int]
    rows: Mapping[str, int]
    ties: int
    members: int
    classes: tuple[str, ...]
    scale: Scale
    constant: Constant
    best_possible: Mapping[str, float | None]
    folds: int | None
    level: float
    samples: int
    seed: int
    metrics: tuple[str, ...]
    seeds: int = 1
    correct: Correction = "holm"

    @property
    def headline_metric(self) -> str:
        """The metric that ranks methods."""
        return headline_metric(self.scale)

    def to_dict(self) -> dict[str, object]:
        """Return plain values, ready for JSON."""
        content: dict[str, object] = {
            "reference": UNIFORM,
            "ties": self.ties,
            "items": dict(self.items),
        }
        if self.rows != self.items:
            content["pairs"] = dict(self.rows)
        constant = {"shares": self.constant.shares.tolist(), "source": self.constant.source}
        return {
            **content,
            "members": self.members,
            "classes": list(self.classes),
            "scale": self.scale.to_text(self.classes),
            "headline_metric": self.headline_metric,
            "constant": constant,
            "ce_floor": self.best_possible["ce"],
            "best_possible": dict(self.best_possible),
            "folds": self.folds,
            "level": self.level,
            "samples": self.samples,
            "seed": self.seed,
            "metrics": list(self.metrics),
            "seeds": self.seeds,
            "correct": self.correct,
        }


@dataclass(frozen=True, eq=False)
class Comparison:
    """What each method scored on the test items: the result of `compare`.

    Attributes
    ----------
    scores : tuple of Score
        One per method, in the order of the table.
    fitted : mapping of str to Method
        The fitted methods by name.
    test_predictions : Predictions
        The methods' predictions of the test items: [N, methods, C].
    data : ComparedData
        Items, classes, the constant answer, level of the intervals.
    skipped : mapping of str to str
        Methods that could not be fitted on these data, with the reason.
    inputs : mapping of str to Input
        The files that were read, by role, for the record of the run.
    losses : mapping of str to mapping
        The metrics of each method by test item, ``losses["edo"]["ce"]`` [N], where they are means
        over items.
    clusters : ndarray of int of shape (N,) or None
        Test items with the same number are resampled together: those of a group, and
        near-duplicates. None where every item is on its own.

    Examples
    --------
    ``comparison["edo"].ce`` is one score, ``comparison.to_frame()`` has all of them,
    ``comparison.to_latex()`` is a table for a paper, and
    ``comparison.save("comparison")`` keeps them in a folder that `edo report` reads.
    """

    scores: tuple[Score, ...]
    fitted: Mapping[str, Method]
    test_predictions: Predictions
    data: ComparedData
    skipped: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, Input] = field(default_factory=dict, repr=False)
    losses: Mapping[str, Mapping[str, Floats]] = field(default_factory=dict, repr=False)
    clusters: Ints | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        items = counted(self.data.items["test"], "item")
        return f"Comparison({counted(len(self.scores), 'method')}, {items})"

    def __getitem__(self, name: str) -> Score:
        """The scores of one method."""
        return {score.name: score for score in self.scores}[name]

    @property
    def facts(self) -> dict[str, object]:
        """`data` as plain values."""
        return self.data.to_dict()

    @property
    def lowest(self) -> Score:
        """The method with the lowest CE (on an ordinal scale: RPS)."""
        return lowest_score(self.scores)

    @cached_property
    def gains(self) -> dict[str, Gain]:
        """The gain of EDO in the headline metric over its main rivals, with intervals.

        Over the uniform mean, a single model of soft labels, greedy selection and the constant
        answer, where they were compared. Empty without EDO, without intervals, and where there are
        too few items for them.
        """
        metric = self.data.headline_metric
        if EDO not in self.losses or not self[EDO].intervals:
            return {}
        gains: dict[str, Gain] = {}
        for name in RIVALS:
            if name in self.losses:
                test = paired_test(
                    self.losses[EDO][metric],
                    self.losses[name][metric],
                    clusters=self.clusters,
                    samples=self.data.samples,
                    level=self.data.level,
                    random_state=self.data.seed,
                )
                gains[name] = Gain.from_test(metric, test, self[name])
        return gains

    @property
    def headline(self) -> list[str]:
        """Warnings that EDO (else the best method) does not beat the constant answer.

        Empty if it does in CE (on an ordinal scale: RPS) and in F1.
        """
        from edokit.analysis.compare.text import headline

        return headline(self)

    def to_dict(self) -> dict[str, object]:
        """Return plain values: ``{"methods": [{"name", "f1", "ce", "md", "bs", …}], …}``.

        The metrics are the main ones of the answer scale (`edokit.metrics.main_metrics`).
        """
        skipped = [{"name": name, "reason": reason} for name, reason in self.skipped.items()]
        return {
            "methods": [score.to_dict() for score in self.scores],
            "skipped": skipped,
            "lowest_ce": min(self.scores, key=lambda score: score.ce).name,
            f"lowest_{self.lowest.headline_metric}": self.lowest.name,
            "headline": self.headline,
            "gains": {name: asdict(gain) for name, gain in self.gains.items()},
            **self.data.to_dict(),
        }

    def to_table(self) -> Table:
        """Return the metrics of each method."""
        from edokit.analysis.compare.text import table

        return table(self)

    def table(self) -> Table:
        """`to_table` under its earlier name."""
        return self.to_table()

    def differences(self) -> Table:
        """Return how much lower or higher the headline metric (CE or RPS) of each method is.

        It is compared with that of the uniform mean and of the constant answer, with intervals and
        p-values.
        """
        from edokit.analysis.compare.text import differences

        return differences(self)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row per method and metric, numbers in full.

        Its columns are ``method``, ``metric``, ``value``, ``low`` and ``high`` (the interval),
        ``seed_deviation``, the difference to ``uniform`` (``difference``, ``difference_low``,
        ``difference_high``, ``p_value``, ``p_adjusted``), and the same to ``constant`` with the
        prefix ``constant_``, uncorrected.
        """
        from edokit.analysis.compare.text import frame

        return frame(self)

    def to_markdown(self) -> str:
        """Return the tables, with the headline, as Markdown."""
        table = self.to_table()
        parts = [replace(table, notes=[*self.headline, *table.notes]).markdown()]
        if self.scores[0].intervals:
            parts.append(self.differences().markdown())
        return "\n".join(parts)

    def markdown(self) -> str:
        """`to_markdown` under its earlier name."""
        return self.to_markdown()

    def to_latex(self, *, label: str = "") -> str:
        """Return one table for a paper, with ``booktabs`` rules; its notes are in the caption.

        The best value of each metric is bold. A star marks what is significantly better than the
        uniform mean, a dagger what is significantly worse, after the correction.

        Parameters
        ----------
        label : str, default=""
            The label to refer to it by, such as ``"tab:methods"``.
        """
        from edokit._io.latex import latex
        from edokit.analysis.compare.text import paper_table

        return latex(paper_table(self), label=label)

    def _repr_html_(self) -> str:
        """The result in one sentence, a chart and the metrics of each method, in a notebook."""
        return notebook_html("comparison_html", self)

    def save(self, folder: str | Path, *, command: str = "", overwrite: bool = False) -> None:
        """Write ``compare/``, EDO's ``ensemble/`` and ``run.json``.

        ``compare/`` has the result as JSON and as Markdown, and the methods' predictions on test.

        Parameters
        ----------
        folder : str or Path
            Made if needed; a comparison in it is replaced.
        command : str, default=""
            The command line that made it, for ``run.json``.
        overwrite : bool, default=False
            Also replace files that EDO did not write.

        Raises
        ------
        InputError
            If the folder holds something else, or another process writes to it.
        """
        folder = local_path(folder)
        paths = [Path(source.path) for source in self.inputs.values()]
        with output_folder(folder, "comparison", *paths, overwrite=overwrite):
            begin_run(folder)
            results = folder / "compare"
            write_json(self.to_dict(), results / "methods.json")
            with whole_file(results / "methods.md") as temporary:
                temporary.write_text(self.markdown(), encoding="utf-8")
            write_predictions(self.test_predictions, results / "test.npz")
            ensemble = self.fitted.get(EDO)
            if isinstance(ensemble, EDOEnsemble):
                ensemble.save(folder / "ensemble", overwrite=overwrite)
            record = RunRecord("compare", self.inputs, seed=self.data.seed, command=command)
            record.save(folder)
