"""The page put together: one HTML file that needs nothing but a browser."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from edokit._version import __version__
from edokit.report import formatting as numbers
from edokit.report.charts.style import CLASSES, DARK, to_json
from edokit.report.charts.weights import TERMS
from edokit.report.data import ROLES, ReportData
from edokit.report.drawn import draw
from edokit.report.formatting import clean, embed
from edokit.report.items import MOST, item_table, shortened
from edokit.report.methods import COLUMNS, left_out, method_rows
from edokit.report.summary import summarize

FRONT_ROWS = 50
"""Trials of the front that are also listed as a table."""
STATES = {
    "same": "unchanged",
    "changed": "changed since",
    "gone": "no longer there",
    "large": "over one GiB, not checked",
}


def render(found: ReportData, *, texts: bool = True) -> str:
    """The page as text; the same data gives the same text."""
    rows = method_rows(found)
    figures = draw(found, rows)
    items = None if found.evaluation is None else item_table(found.evaluation, texts=texts)
    data = {
        "figures": {name: json.loads(to_json(figure)) for name, figure in figures.items()},
        "dark": DARK,
        "colours": CLASSES,
        "trials": _trials(found),
        "items": items,
    }
    library, script = _plotly(), _asset("report.js") + _asset("explorer.js")
    environment = Environment(
        loader=PackageLoader("edokit.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": numbers.number,
        "signed": numbers.signed,
        "percent": numbers.percent,
        "clean": clean,
    }
    page = environment.get_template("report.html").render(
        found=found,
        ensemble=found.ensemble,
        evaluation=found.evaluation,
        search=found.search,
        record=found.record,
        summary=summarize(found),
        rows=rows,
        columns=COLUMNS,
        left_out=left_out(found),
        differences=any(row.against[0] for row in rows),
        heights={name: int(figure.layout.height) for name, figure in figures.items()},
        terms=TERMS,
        items=items,
        most=MOST,
        reasons=_reasons(found),
        front=_front(found),
        ending=_ending(found),
        queue=_queue(found, texts),
        roles=ROLES,
        states=STATES,
        version=__version__,
        policy=_policy(library, script),
        style=Markup(_asset("report.css")),
        library=Markup(library),
        script=Markup(script),
        data=embed(data),
        count=numbers.count,
    )
    # A name may hold a lone surrogate, which no file can.
    return page.encode("utf-8", "replace").decode("utf-8")


def _trials(found: ReportData) -> dict[str, dict[str, Any]]:
    """What is shown of a trial when it is picked, by number."""
    if found.search is None:
        return {}
    return {
        str(trial.number): {
            "f1": round(trial.f1, 6),
            "ce": round(trial.ce, 6),
            "md": round(trial.md, 6),
            "front": trial.on_front,
            "chosen": trial.chosen,
            "settings": {clean(name): clean(value) for name, value in trial.settings.items()},
        }
        for trial in found.search.trials
    }


def _ending(found: ReportData) -> str:
    """The size that the epochs ended with, in words."""
    trajectory = None if found.ensemble is None else found.ensemble.trajectory_
    if found.ensemble is None or trajectory is None or not len(trajectory):
        return ""
    last = trajectory.sizes[-1]
    size = int(found.ensemble.settings_.get("min_members") or 1) + int(last.argmax())
    return (
        f"size {size} is the likeliest ({numbers.percent(float(last.max()), 1)}; all alike would"
        f" be {numbers.percent(1 / len(last), 1)})"
    )


def _queue(found: ReportData, texts: bool) -> list[dict[str, Any]]:
    """The review queue with the items' texts, where there are some to show."""
    people = None if found.evaluation is None else found.evaluation.people
    if people is None or people.texts is None or not texts:
        return [{**entry, "text": None} for entry in found.review]
    wanted = {str(entry["item"]) for entry in found.review}
    shown = {
        str(item): text
        for item, text in zip(people.items, people.texts, strict=True)
        if item in wanted
    }
    return [{**entry, "text": shortened(shown.get(entry["item"]))} for entry in found.review]


def _front(found: ReportData) -> list[Any]:
    if found.search is None:
        return []
    return sorted(found.search.front, key=lambda trial: trial.ce)[:FRONT_ROWS]


def _reasons(found: ReportData) -> dict[str, list[tuple[str, str]]]:
    """Why members have weight or none: name and reason."""
    split: dict[str, list[tuple[str, str]]] = {"kept": [], "zero": []}
    if found.ensemble is None:
        return split
    for reason in found.ensemble.explain():
        text = reason.detail[:1].upper() + reason.detail[1:]
        split["kept" if reason.has_weight else "zero"].append((reason.member, text))
    return split


def _asset(name: str) -> str:
    return (files("edokit.report") / "assets" / name).read_text(encoding="utf-8")


def _plotly() -> str:
    """Plotly's own script, which must not end the element it stands in."""
    from plotly.offline import get_plotlyjs

    text: str = get_plotlyjs()
    return text.replace("\r\n", "\n").replace("</script", "<\\/script")


def _policy(*scripts: str) -> str:
    """Only these scripts run, and nothing is fetched: a text that got through would stay inert."""
    hashes = [
        base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
        for script in scripts
    ]
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline';"
        " img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
