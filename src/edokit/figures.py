"""Figures of results, to save and to show in notebooks: the charts of the page, one by one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edokit._errors import InputError, check_number, examples, option
from edokit._io.atomic import whole_file
from edokit._io.documents import json_text
from edokit.analysis.diagnose.groups.text import clearest_classes
from edokit.report import charts
from edokit.report.groups import drawn_classes
from edokit.report.page import chart_page
from edokit.report.results import (
    MethodScores,
    SearchTrials,
    find_headline,
    method_rows,
    parse_search,
    ranked_scores,
)
from edokit.report.vega import TOOLTIP, Spec, notebook_spec, standalone_spec

if TYPE_CHECKING:
    import numpy.typing as npt

    from edokit.analysis.compare.result import Comparison
    from edokit.analysis.diagnose.groups.result import GroupComparison
    from edokit.analysis.diagnose.result import Diagnosis
    from edokit.analysis.search.result import SearchResult
    from edokit.annotations.core import Annotations
    from edokit.ensemble.estimator import EDOEnsemble
    from edokit.report.data import ReportData

__all__ = [
    "FORMATS",
    "Figure",
    "comparison",
    "gains",
    "group_differences",
    "pareto",
    "reliability",
    "run_figures",
    "save_figures",
    "weights",
]

FORMATS = ("pdf", "svg", "png", "html", "json")
"""Endings of the files that `Figure.save` writes."""
_WIDTH = 480
_RELIABILITY_WIDTH = 340  # as wide as it is high


@dataclass(frozen=True, eq=False)
class Figure:
    """A chart: a Vega-Lite specification with its data, which notebooks show as it stands.

    Attributes
    ----------
    title : str
        What it shows.
    spec : dict
        The Vega-Lite specification. Change a copy of it to change the figure: altair reads it with
        ``alt.Chart.from_dict``.

    Examples
    --------
    >>> import numpy as np
    >>> from edokit import EDOEnsemble, figures
    >>> P = np.random.default_rng(0).dirichlet([1, 1], size=(40, 3))
    >>> ensemble = EDOEnsemble(solver="exact").fit(P, np.arange(40) % 2)
    >>> figure = figures.weights(ensemble)
    >>> figure.title
    'Weight of each member'
    >>> figure.save("weights.pdf")  # doctest: +SKIP
    """

    title: str
    spec: Spec

    @classmethod
    def from_chart(cls, chart: Spec, width: int = _WIDTH) -> Figure:
        """Make a figure of a chart of the page."""
        spec = deepcopy(chart)
        title = str(spec["title"])
        for layer in spec["layer"]:
            _name_tips(layer)
        return cls(title, standalone_spec(spec, width))

    def save(self, path: str | Path, *, ppi: float = 300) -> None:
        """Write the figure; the ending of the path says in which format.

        A file of that name is replaced.

        Parameters
        ----------
        path : str or Path
            A path that ends in ``.pdf``, ``.svg``, ``.png``, ``.html`` (with tooltips; it needs
            nothing but a browser) or ``.json`` (the specification).
        ppi : float, default=300
            Pixels per inch of a PNG.

        Raises
        ------
        InputError
            If the path has another ending.
        """
        check_number("ppi", ppi, 1)
        target = Path(path)
        name = target.suffix.lower().removeprefix(".")
        if name not in FORMATS:
            raise InputError(
                f"a figure can't be saved as {str(path)!r}: the ending says the format",
                f"end the name in {', '.join('.' + ending for ending in FORMATS[:-1])} or"
                f" .{FORMATS[-1]}",
                code="unknown-ending",
            )
        content = self.to_bytes(name, ppi=ppi)
        with whole_file(target) as temporary:
            temporary.write_bytes(content)

    def to_bytes(self, name: str = "svg", *, ppi: float = 300) -> bytes:
        """Return the content of a file in one of the `FORMATS`.

        Raises
        ------
        InputError
            If `name` is not one of them.
        """
        import vl_convert

        check_formats([name])

        if name == "pdf":
            return bytes(vl_convert.vegalite_to_pdf(self.spec))
        if name == "png":
            return bytes(vl_convert.vegalite_to_png(self.spec, ppi=ppi))
        if name == "svg":
            return vl_convert.vegalite_to_svg(self.spec).encode()
        if name == "html":
            return chart_page(self.title, self.spec).encode()
        return json_text(self.spec, allow_nan=False, indent=1).encode()

    def to_dict(self) -> dict[str, Any]:
        """Return a copy of the specification."""
        return deepcopy(self.spec)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Return the figure as notebooks show it: an image that needs no script."""
        import vl_convert

        svg = vl_convert.vegalite_to_svg(notebook_spec(self.spec))
        return {"image/svg+xml": svg, "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"Figure({self.title!r})"


def _name_tips(layer: Spec) -> None:
    """Name the fields that are shown under the pointer: all but those with an underscore."""
    mark = layer["mark"]
    if mark.get("tooltip") != TOOLTIP:
        return
    del mark["tooltip"]
    rows = layer["data"]["values"]
    names = []
    if rows:
        names = [name for name in rows[0] if not name.startswith("_")]
    # A dot or a bracket in the name of a field would lead into the field.
    fields = [re.sub(r"([.\[\]\\'\"])", r"\\\1", name) for name in names]
    layer["encoding"]["tooltip"] = [
        {"field": field, "title": name} for field, name in zip(fields, names, strict=True)
    ]


def weights(ensemble: EDOEnsemble) -> Figure:
    """Draw the weight of each member, the largest first.

    Parameters
    ----------
    ensemble : EDOEnsemble
        A fitted ensemble.

    Returns
    -------
    Figure
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(ensemble)
    return Figure.from_chart(charts.weights(ensemble))


def pareto(search: SearchResult, x: str | None = None, y: str | None = None) -> Figure:
    """Draw the trials of a search by two of its metrics, with the Pareto front in full colour.

    The chosen trial has a ring. The front is of three metrics, so that a trial on it may be
    dominated in the two that are drawn.

    Parameters
    ----------
    search : SearchResult
        The result of `edokit.search`.
    x, y : str, default=None
        Metrics that the search optimised, such as ``"f1"``, ``"ce"`` and ``"md"``. None: the
        headline metric (CE; on an ordinal scale RPS) from left to right, and F1 upwards.

    Returns
    -------
    Figure
    """
    trials = parse_search(search.to_table().to_pylist(), search.to_dict())
    return Figure.from_chart(_pareto_chart(trials, x, y))


def _pareto_chart(trials: SearchTrials, x: str | None, y: str | None) -> Spec:
    """The chart of two metrics, which must be among those of the search."""
    names = trials.metrics
    if x is None:
        x = names[1]
    if y is None:
        y = names[0]
    for name, value in {"x": x, "y": y}.items():
        if value not in names:
            raise InputError(
                f"the search did not optimise {option(name, value)}",
                f"its metrics are {', '.join(names)}",
                code="unknown-metric",
            )
    return charts.pareto(trials, x, y)


def reliability(
    probabilities: npt.ArrayLike, annotations: Annotations, *, bins: int = 10
) -> Figure:
    """Draw how often annotators chose what was predicted with which probability.

    Parameters
    ----------
    probabilities : ItemArray or array-like of shape (N, C)
        What `EDOEnsemble.predict_proba` returns of predictions with item ids, which is matched by
        id. Rows of a bare array must be in the order of the annotations' items.
    annotations : Annotations
        Annotations of the same items.
    bins : int, default=10
        Number of intervals of probability.

    Returns
    -------
    Figure
    """
    from edokit.metrics import reliability_curve

    curve = reliability_curve(probabilities, annotations.soft_labels, bins, scale=annotations.scale)
    return Figure.from_chart(charts.reliability(curve), width=_RELIABILITY_WIDTH)


def comparison(result: Comparison, methods: Sequence[str] | None = None) -> Figure:
    """Draw the headline metric of each method with its interval; methods of EDO are blue.

    Parameters
    ----------
    result : Comparison
        The result of `edokit.compare`.
    methods : sequence of str, default=None
        Methods to draw, such as ``["edo", "uniform", "top-5"]``: one that is far from the others
        (of hard labels, say) leaves no room for their differences. None: all.

    Returns
    -------
    Figure
    """
    scores = ranked_scores(MethodScores.from_comparison(result), None)
    if methods is not None:
        names = [score.name for score in scores]
        unknown = [name for name in methods if name not in names]
        if unknown or not methods:
            message = "no method is named to draw"
            if unknown:
                message = f"the comparison lacks the method {examples(unknown)}"
            raise InputError(
                message,
                f"choose from {', '.join(names)}",
                code="unknown-choice",
            )
        scores = [score for score in scores if score.name in methods]
    return Figure.from_chart(charts.methods(method_rows(scores)))


def gains(result: Comparison) -> Figure:
    """Draw how much better EDO is than a plain average of the members, in each metric.

    Parameters
    ----------
    result : Comparison
        The result of `edokit.compare`.

    Returns
    -------
    Figure

    Raises
    ------
    InputError
        If EDO or the plain average is not among the methods, or was not tested.
    """
    headline = find_headline(MethodScores.from_comparison(result), None)
    if headline is None:
        raise InputError(
            "the comparison lacks tests of edo against the uniform mean",
            f"compare with both: {option('methods', ['edo', 'uniform'])}",
            code="missing-value",
        )
    return Figure.from_chart(charts.gain(headline))


def group_differences(
    diagnosis: Diagnosis | GroupComparison, attribute: str, class_name: str | None = None
) -> Figure:
    """Draw how much each level of an attribute differs from the others, with intervals.

    Parameters
    ----------
    diagnosis : Diagnosis or GroupComparison
        The result of `edokit.diagnose` with ``by``, or its ``groups``.
    attribute : str
        One of the attributes that were compared.
    class_name : str, default=None
        The class whose share is compared. By default the second of two classes, else the class with
        the clearest differences. On an ordinal scale means are compared, and a class can't be
        named.

    Returns
    -------
    Figure

    Raises
    ------
    InputError
        If no groups, or not this attribute or class, were compared.
    """
    from edokit.analysis.diagnose.groups.result import GroupComparison

    if isinstance(diagnosis, GroupComparison):
        groups: GroupComparison | None = diagnosis
    else:
        groups = diagnosis.groups
    if groups is None:
        raise InputError(
            "the diagnosis compared no groups",
            f"ask for them with {option('by', [attribute])}",
            code="missing-people",
        )
    if attribute not in groups.attributes:
        raise InputError(
            f"groups of {attribute!r} were not compared",
            f"the attributes are {examples(groups.attributes)}",
            code="unknown-attribute",
        )
    class_names = drawn_classes(groups, attribute)
    if not class_names:
        raise InputError(
            f"no level of {attribute!r} has enough annotators to be compared",
            "choose another attribute",
            code="too-few-labels",
        )
    if groups.has_points:
        if class_name is not None:
            raise InputError(
                f"{option('class_name', class_name)} is for classes, but on an ordinal scale means"
                " are compared",
                "leave it out",
                code="inapplicable-option",
            )
        return Figure.from_chart(charts.group_levels(groups, attribute, ""))
    if class_name is None:
        class_name = class_names[0]
        if len(class_names) > 1:
            class_name = clearest_classes(groups, attribute)[0]
    if class_name not in groups.classes:
        raise InputError(
            f"{class_name!r} is not one of the classes",
            f"they are {examples(groups.classes)}",
            code="unknown-class",
        )
    return Figure.from_chart(charts.group_levels(groups, attribute, class_name))


def run_figures(run: str | Path | ReportData) -> dict[str, Figure]:
    """Return all figures that a run allows, by name.

    Parameters
    ----------
    run : str, Path or ReportData
        A folder made by ``edo run``, ``edo search``, ``edo compare`` or ``edo fit``, or what the
        page of one shows.

    Returns
    -------
    dict of str to Figure
        Such as ``weights``, ``reliability``, ``methods`` and ``pareto-f1-ce``.
    """
    from edokit.report.data import ReportData, collect

    data = run
    if not isinstance(data, ReportData):
        data = collect(data)
    figures = {}
    for name, chart in charts.all_charts(data).items():
        width = _WIDTH
        if name == "reliability":
            width = _RELIABILITY_WIDTH
        figures[name] = Figure.from_chart(chart, width=width)
    return figures


def save_figures(
    run: str | Path | ReportData, folder: str | Path, *, formats: Sequence[str] = ("pdf",)
) -> list[Path]:
    """Write all figures of a run into a folder, as ``weights.pdf`` and so on.

    Parameters
    ----------
    run : str, Path or ReportData
        As for `run_figures`.
    folder : str or Path
        Where to write. It is made if it does not exist; files of these names are replaced.
    formats : sequence of str, default=("pdf",)
        Any of `FORMATS`.

    Returns
    -------
    list of Path
        The files.
    """
    check_formats(formats)
    paths = []
    for name, figure in run_figures(run).items():
        for ending in formats:
            path = Path(folder) / f"{name}.{ending}"
            figure.save(path)
            paths.append(path)
    return paths


def check_formats(formats: Sequence[str]) -> None:
    """Raise an error for a format that figures don't have, and for none."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown or not formats:
        message = "no format of figures is named"
        if unknown:
            message = f"unknown format of figures {examples(unknown)}"
        raise InputError(
            message,
            f"choose from {', '.join(FORMATS)}",
            code="unknown-choice",
        )
