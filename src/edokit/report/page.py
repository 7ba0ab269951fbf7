"""The page: one HTML file that needs nothing but a browser."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from edokit._errors import printable
from edokit._io.documents import parse_json
from edokit._package import __version__
from edokit.metrics import METRIC, headline_metric
from edokit.panels import PanelAnswer, PanelComparison
from edokit.report.charts import all_charts
from edokit.report.colours import DARK, class_colours
from edokit.report.data import ROLES, ReportData
from edokit.report.formatting import FILTERS, asset, clean, count, embed
from edokit.report.items import item_table, shortened
from edokit.report.results import ABOUT, best_values, is_ours, ranked_scores, trial_settings
from edokit.report.summary import EQUAL, summarize
from edokit.report.vega import CONFIG, page_spec
from edokit.scales import NOMINAL

# Trials of the front that are also listed as a table.
FRONT_ROWS = 50
# Items of two panels on a page, and those that are shown at once; the table has all of them.
PANEL_ROWS, FIRST_ROWS = 200, 20


def render(data: ReportData, *, texts: bool = True) -> str:
    """The page as text; the same data give the same text."""
    ensemble, evaluation, search = data.ensemble, data.evaluation, data.search
    scores, charts = ranked_scores(data.comparison, evaluation), all_charts(data)
    items = None if evaluation is None else item_table(evaluation, texts=texts)
    scale = NOMINAL if evaluation is None else evaluation.scale
    classes = () if ensemble is None else tuple(map(str, ensemble.classes_))
    shades = class_colours(classes, scale)
    headline = METRIC[scores[0].headline if scores else headline_metric(scale)].short
    embedded = {
        "figures": {name: page_spec(chart) for name, chart in charts.items()},
        "config": CONFIG,
        "dark": DARK | dict(shades),
        "colours": [light for light, _ in shades],
        # The settings of each trial are shown on a click.
        "trials": {}
        if search is None
        else {trial["number"]: _trial_facts(trial, search.metrics) for trial in search.trials},
        "items": items,
        "terms": _terms(),
    }
    library, script = _vega(), asset("report.js") + asset("explorer.js")
    return _fill(
        "report.html",
        library,
        script,
        data=data,
        summary=summarize(data),
        scores=scores,
        is_ours=is_ours,
        about_methods=ABOUT,
        best=best_values(scores),
        scale=scale,
        metric=METRIC,
        headline=headline,
        charts=charts,
        items=items,
        reasons=() if ensemble is None else ensemble.explain(),
        front_rows=FRONT_ROWS,
        nearly_equal=EQUAL,
        roles=ROLES,
        library=Markup(library),
        script=Markup(script),
        embedded=embed(embedded),
    )


def _trial_facts(trial: Mapping[str, Any], metrics: Sequence[str]) -> dict[str, Any]:
    """What the page shows of a trial."""
    settings = trial_settings(trial)
    return {
        "metrics": {METRIC[name].short: round(trial[name], 6) for name in metrics},
        "front": bool(trial.get("on_front")),
        "chosen": bool(trial.get("chosen")),
        "settings": {clean(name): clean(value) for name, value in settings.items()},
    }


def render_panels(comparison: PanelComparison, texts: Mapping[str, str]) -> str:
    """A page about two panels, without scripts."""
    return _fill(
        "panels.html",
        comparison=comparison,
        found=comparison.summary(),
        rows=comparison.order[:PANEL_ROWS].tolist(),
        first_rows=FIRST_ROWS,
        cells=_panel_cells,
        means=[
            [(float(share), None, None, False) for share in answer.probabilities.mean(axis=0)]
            for answer in comparison.answers
        ],
        classes=comparison.classes,
        scale=comparison.scale,
        colours=class_colours(comparison.classes, comparison.scale),
        texts=texts,
        shortened=shortened,
    )


def _panel_cells(
    comparison: PanelComparison, answer: PanelAnswer, i: int
) -> list[tuple[float, float | None, float | None, bool]]:
    """Share, ends of its interval, and whether it is decided for, of each class of an item."""
    p, scale, votes = answer.probabilities[i], comparison.scale, answer is not comparison.anonymous
    decided = scale.indicators(scale.hard(p[None]), len(p))[0].tolist()
    ends = [rows[i].tolist() if votes else [None] * len(p) for rows in (answer.low, answer.high)]
    return list(zip(p.tolist(), *ends, map(bool, decided), strict=True))


def _fill(template: str, *scripts: str, **content: Any) -> str:
    """The page that a template makes of its content; only these scripts may run on it."""
    environment = Environment(
        loader=PackageLoader("edokit.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS | {"printable": printable}
    page = environment.get_template(template).render(
        **content,
        version=__version__,
        policy=_policy(*scripts),
        style=Markup(asset("report.css")),
        count=count,
        terms=_terms(),
    )
    # A name may hold a lone surrogate, which no file can.
    return page.encode("utf-8", "replace").decode("utf-8")


@cache
def _terms() -> dict[str, str]:
    """What metrics and other terms mean, in plain words."""
    terms: dict[str, str] = parse_json(asset("terms.json"), "terms.json")
    return terms


@cache
def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, which must not end its script element."""
    import vl_convert

    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script.replace("\r\n", "\n").replace("</script", "<\\/script")


def _policy(*scripts: str) -> str:
    """A content security policy: only these scripts run, and nothing is fetched."""
    hashes = [b64encode(sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{value}'" for value in hashes) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline';"
        " img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
