"""Results as notebooks show them: a sentence, the charts of the page and a table.

Charts are images inside the HTML, so that they need no script, and viewers that remove unknown
elements from HTML keep them.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from edokit._errors import counted
from edokit.metrics import METRIC
from edokit.report import charts
from edokit.report.formatting import FILTERS, clean, interval, number, percent
from edokit.report.groups import chart_names
from edokit.report.items import shortened
from edokit.report.results import (
    MethodScores,
    best_values,
    find_headline,
    method_rows,
    ranked_scores,
)
from edokit.report.vega import Spec, notebook_spec, standalone_spec

if TYPE_CHECKING:
    from edokit.analysis.audit.result import Audit
    from edokit.analysis.compare.result import Comparison
    from edokit.analysis.diagnose.groups.result import GroupComparison
    from edokit.analysis.diagnose.result import Diagnosis
    from edokit.annotations.core import Annotations
    from edokit.ensemble.estimator import EDOEnsemble

_CHART_WIDTH = 440
_FIRST_ITEMS = 5
_MOST_CLASSES = 4
# Attributes and classes can be many; the page draws all of them.
_MOST_GROUP_CHARTS = 3
_COEFFICIENTS = {
    "krippendorff_alpha": "Krippendorff's α",
    "fleiss_kappa": "Fleiss' κ",
    "cohen_kappa": "Cohen's κ",
    "gwet_ac1": "Gwet's AC1",
    "gwet_ac2": "Gwet's AC2",
}


@dataclass(frozen=True)
class _Image:
    """A chart as an image."""

    title: str
    source: str

    @classmethod
    def from_chart(cls, chart: Spec) -> _Image:
        import vl_convert

        spec = notebook_spec(standalone_spec(chart, _CHART_WIDTH))
        svg = vl_convert.vegalite_to_svg(spec)
        encoded = b64encode(svg.encode()).decode()
        return cls(str(chart["title"]), f"data:image/svg+xml;base64,{encoded}")


@dataclass(frozen=True)
class _Paragraph:
    """A sentence or several, with what they are about in front, if it is named."""

    text: str
    heading: str = ""


@dataclass(frozen=True)
class _Table:
    """A table that a reader can open and close."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    notes: Sequence[str] = ()
    is_open: bool = True


def annotations_html(annotations: Annotations) -> str:
    """How often each class was chosen, and the first items, whose texts are closed at first."""
    paragraphs = [_Paragraph(_size_sentence(annotations))]
    chart_specs: list[Spec] = []
    if len(annotations):
        paragraphs.append(_Paragraph(_unanimity_sentence(annotations)))
        chart_specs.append(charts.class_shares(annotations))
    return _html("Annotations", paragraphs, chart_specs, [_first_items(annotations)])


def comparison_html(comparison: Comparison) -> str:
    """Whether EDO is better than its rivals, and the metrics of each method."""
    scores = MethodScores.from_comparison(comparison)
    return _html(
        "Comparison",
        [_Paragraph(line) for line in [*_headline_sentences(scores), *comparison.headline]],
        _method_charts(scores),
        _metric_tables(scores),
    )


def diagnosis_html(diagnosis: Diagnosis) -> str:
    """The advice, differences between groups, and coefficients of agreement."""
    sizes = [
        counted(diagnosis.items, "item"),
        counted(diagnosis.annotators, "annotator"),
        counted(diagnosis.annotations, "annotation"),
    ]
    paragraphs = [_Paragraph(", ".join(sizes) + ".")]
    for advice in diagnosis.advice:
        heading = advice.topic.capitalize()
        if advice.choice is not None:
            heading = f"{heading}: {advice.choice}"
        paragraphs.append(_Paragraph(advice.text, heading))
    return _html(
        "Diagnosis",
        paragraphs,
        _group_charts(diagnosis.groups),
        [_agreement_table(diagnosis.agreement)],
    )


def audit_html(audit: Audit) -> str:
    """How many judges a jury is worth and whether it can replace an annotator, with the tables."""
    tables: list[_Table] = []
    for table in audit.tables():
        tables.append(_Table(table.title, table.header, table.unmarked(), table.notes))
    return _html("Audit", [_Paragraph(line) for line in audit.headline], [], tables)


def run_html(
    name: str,
    sentences: Sequence[str],
    *,
    scores: MethodScores | None,
    ensemble: EDOEnsemble | None,
    groups: GroupComparison | None,
) -> str:
    """The result, the headline metric of each method, weights, and differences between groups."""
    chart_specs: list[Spec] = []
    tables: list[_Table] = []
    if scores is not None:
        chart_specs += _method_charts(scores)
        tables += _metric_tables(scores)
    if ensemble is not None and len(ensemble.members_) > 1:
        chart_specs.append(charts.weights(ensemble))
    chart_specs += _group_charts(groups)
    return _html(name, [_Paragraph(line) for line in sentences], chart_specs, tables)


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("edokit.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS
    return environment.get_template("notebook.html")


def _html(
    title: str,
    paragraphs: Sequence[_Paragraph],
    chart_specs: Sequence[Spec],
    tables: Sequence[_Table],
) -> str:
    """The template with these parts; charts become images, and empty tables are left out."""
    html = _template().render(
        title=title,
        paragraphs=paragraphs,
        images=[_Image.from_chart(chart) for chart in chart_specs],
        tables=[table for table in tables if table.rows],
    )
    # A name may hold a lone surrogate, which no file can.
    return html.encode("utf-8", "replace").decode("utf-8")


def _size_sentence(annotations: Annotations) -> str:
    scale = annotations.scale.kind
    sizes = [
        counted(len(annotations.rows), annotations.rows.noun),
        counted(len(annotations.annotators), "annotator"),
        counted(len(annotations), "annotation"),
    ]
    classes = counted(len(annotations.classes), "class")
    return f"{', '.join(sizes)}; {classes} ({scale})."


def _unanimity_sentence(annotations: Annotations) -> str:
    """How many of the items with several annotations have only one answer."""
    several = annotations.annotations_per_item > 1
    if not several.any():
        return "No item has several annotations."
    unanimous = float((annotations.entropy[several] < 1e-12).mean())
    return (
        f"{counted(int(several.sum()), annotations.rows.noun)} with several annotations,"
        f" {percent(unanimous)} of them unanimous."
    )


def _first_items(annotations: Annotations) -> _Table:
    """The first items with their most frequent answers."""
    texts = annotations.texts
    columns = ["item", "answers"]
    if texts is not None:
        columns.append("text")
    rows: list[list[object]] = []
    for row, item in enumerate(annotations.items[:_FIRST_ITEMS]):
        cells: list[object] = [item, _answers(annotations, row)]
        if texts is not None:
            cells.append(shortened(texts[row]))
        rows.append(cells)
    return _Table(f"The first {counted(len(rows), 'item')}", columns, rows, is_open=False)


def _answers(annotations: Annotations, row: int) -> str:
    """The most frequent classes of an item with their number of annotators."""
    counts = np.asarray(annotations.counts[row])
    order = np.argsort(-counts, kind="stable")[:_MOST_CLASSES]
    parts: list[str] = []
    for c in order:
        if counts[c] > 0:
            # Soft labels without annotators have fractional counts.
            digits = 0 if float(counts[c]).is_integer() else 2
            parts.append(f"{clean(annotations.classes[c], 40)} {number(float(counts[c]), digits)}")
    return ", ".join(parts)


def _headline_sentences(scores: MethodScores) -> list[str]:
    """The headline, if the comparison has one."""
    headline = find_headline(scores, None)
    if headline is None:
        return []
    return [headline.sentence]


def _method_charts(scores: MethodScores) -> list[Spec]:
    """The chart of all methods, if there are several."""
    rows = method_rows(ranked_scores(scores, None))
    if len(rows) < 2:
        return []
    return [charts.methods(rows)]


def _metric_tables(scores: MethodScores) -> list[_Table]:
    """A row per method: its metrics, with an interval for the metric that ranks them."""
    ranked = ranked_scores(scores, None)
    if not ranked:
        return []
    metric = ranked[0].headline_metric
    names = list(best_values(ranked))
    rows: list[list[object]] = []
    for row in method_rows(ranked):
        values = [number(row.score.metrics.get(name)) for name in names]
        ends = interval(row.score.intervals.get(metric))
        rows.append([charts.method_name(row.names), *values, ends])
    columns = [_heading(name) for name in names]
    return [_Table("Metrics", ["method", *columns, f"interval of {_short(metric)}"], rows)]


def _short(metric: str) -> str:
    return METRIC[metric].short


def _heading(metric: str) -> str:
    """The name of a metric with the direction in which it is better."""
    arrow = "↓"
    if METRIC[metric].higher:
        arrow = "↑"
    return f"{_short(metric)} {arrow}"


def _group_charts(groups: GroupComparison | None) -> list[Spec]:
    """The charts of the first attributes and classes."""
    if groups is None:
        return []
    pairs = list(chart_names(groups).values())[:_MOST_GROUP_CHARTS]
    return [charts.group_levels(groups, attribute, class_name) for attribute, class_name in pairs]


def _agreement_table(agreement: Mapping[str, Any]) -> _Table:
    """The coefficients of agreement that could be computed."""
    rows: list[list[object]] = []
    for key, name in _COEFFICIENTS.items():
        value = agreement.get(key)
        if value is not None and value["estimate"] is not None:
            ends = interval((value["low"], value["high"]), 2)
            rows.append([name, number(value["estimate"], 2), ends])
    return _Table("Agreement beyond chance", ["coefficient", "estimate", "interval"], rows)
