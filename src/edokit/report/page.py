"""The page: one HTML file that needs nothing but a browser."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from edokit._errors import printable
from edokit._io.digests import policy_digest
from edokit._io.documents import parse_json
from edokit._package import __version__
from edokit.ensemble.fitted import Reason
from edokit.metrics import METRIC, headline_metric
from edokit.report.answers import answers_view
from edokit.report.charts import METHOD_NAMES, all_charts, method_name
from edokit.report.colours import DARK, class_colours
from edokit.report.data import ROLES, ReportData
from edokit.report.decisions import correctness_view, handover_view, whose_view_sentences
from edokit.report.formatting import FILTERS, asset, count, embed
from edokit.report.groups import groups_view
from edokit.report.items import item_table
from edokit.report.results import best_values, method_rows, ranked_scores
from edokit.report.summary import NEARLY_EQUAL, summarize
from edokit.report.vega import CONFIG, Spec, page_spec
from edokit.scales import NOMINAL

# The largest number of trials of the front in its table.
MOST_FRONT_ROWS = 50


def render(data: ReportData, *, texts: bool = True) -> str:
    """The page as text; the same data give the same text."""
    scores = ranked_scores(data.comparison, data.evaluation)
    charts = all_charts(data)
    items = None
    scale = NOMINAL
    if data.evaluation is not None:
        items = item_table(data.evaluation, texts=texts)
        scale = data.evaluation.scale
    classes: tuple[str, ...] = ()
    reasons: list[Reason] = []
    if data.ensemble is not None:
        classes = tuple(map(str, data.ensemble.classes_))
        reasons = data.ensemble.explain()
    shades = class_colours(classes, scale)
    metric = headline_metric(scale)
    if scores:
        metric = scores[0].headline_metric
    embedded = {
        "figures": {name: page_spec(chart) for name, chart in charts.items()},
        "config": CONFIG,
        "dark": DARK | dict(shades),
        "colours": [light for light, _ in shades],
        "items": items,
        "terms": _terms(),
    }
    library = _vega()
    script = asset("report.js") + asset("explorer.js")
    environment = Environment(
        loader=PackageLoader("edokit.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS | {"printable": printable}
    page = environment.get_template("report.html").render(
        data=data,
        summary=summarize(data),
        scores=scores,
        method_rows=method_rows(scores),
        method_name=method_name,
        answers=answers_view(data.evaluation, texts=texts),
        right=correctness_view(data),
        handover=handover_view(data),
        whose_view=whose_view_sentences(data),
        method_names=METHOD_NAMES,
        best=best_values(scores),
        scale=scale,
        metric=METRIC,
        headline=METRIC[metric].short,
        charts=charts,
        items=items,
        groups=groups_view(data, texts=texts),
        reasons=reasons,
        front_rows=MOST_FRONT_ROWS,
        nearly_equal=NEARLY_EQUAL,
        roles=ROLES,
        library=Markup(library),
        script=Markup(script),
        embedded=embed(embedded),
        version=__version__,
        policy=_policy(library, script),
        style=Markup(asset("report.css")),
        count=count,
        terms=_terms(),
    )
    # A name may hold a lone surrogate, which no file can.
    return page.encode("utf-8", "replace").decode("utf-8")


_CHART_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="generator" content="edokit {version}">
<title>{title}</title>
</head>
<body>
<div id="chart"></div>
<script type="application/json" id="spec">{spec}</script>
<script>{library}</script>
<script>{script}</script>
</body>
</html>
"""
# Expressions are interpreted: the policy of the page allows no evaluation.
_DRAW = """
const spec = JSON.parse(document.getElementById("spec").textContent);
vegaEmbed("#chart", spec, { mode: "vega-lite", renderer: "svg", ast: true, actions: false });
"""


def chart_page(title: str, spec: Spec) -> str:
    """One chart as a page that needs nothing but a browser."""
    library = _vega()
    page = _CHART_PAGE.format(
        policy=_policy(library, _DRAW),
        version=__version__,
        title=escape(title),
        spec=embed(spec),
        library=library,
        script=_DRAW,
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
    allowed = " ".join(f"'{policy_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline';"
        " img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
