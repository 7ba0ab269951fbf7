"""The trials of a search in three linked views."""

from __future__ import annotations

import plotly.graph_objects as go

from edokit.report.charts.style import FAINT, INK, SIGNS, blank
from edokit.report.formatting import label
from edokit.report.trials import Search, Trial

VIEWS = {"f1-ce": ("f1", "ce"), "f1-md": ("f1", "md"), "ce-md": ("ce", "md")}
AXES = {
    "f1": "F1 (higher is better)",
    "ce": "CE (lower is better)",
    "md": "MD (lower is better)",
}


def pareto(search: Search, view: str) -> go.Figure:
    """One view; the traces of all three views hold the same trials in the same order."""
    x, y = VIEWS[view]
    figure = blank(320)
    for sign in SIGNS:
        for on_front in (False, True):
            trials = group(search, sign, on_front)
            figure.add_scatter(
                x=[round(getattr(trial, x), 6) for trial in trials],
                y=[round(getattr(trial, y), 6) for trial in trials],
                customdata=[trial.number for trial in trials],
                text=[described(trial) for trial in trials],
                mode="markers",
                hovertemplate="%{text}<extra></extra>",
                marker={
                    "color": SIGNS[sign],
                    "size": 10 if on_front else 7,
                    "opacity": 0.95 if on_front else 0.28,
                    "symbol": "circle" if sign != "suppress" else "diamond",
                    "line": {"width": 1 if on_front else 0, "color": FAINT},
                },
            )
    chosen = search.chosen
    figure.add_scatter(
        x=[getattr(chosen, x)] if chosen else [],
        y=[getattr(chosen, y)] if chosen else [],
        mode="markers",
        hoverinfo="skip",
        marker={"symbol": "circle-open", "size": 20, "color": INK, "line": {"width": 2}},
    )
    figure.update_xaxes(title_text=AXES[x], nticks=6)
    figure.update_yaxes(title_text=AXES[y], nticks=6)
    return figure


def group(search: Search, sign: str, on_front: bool) -> list[Trial]:
    """The trials of one trace."""
    return [t for t in search.trials if t.sign == sign and t.on_front == on_front]


def described(trial: Trial) -> str:
    """A trial with its settings, for a hover label."""
    what = "chosen" if trial.chosen else "on the front" if trial.on_front else "dominated"
    lines = [
        f"<b>Trial {trial.number}</b>, {what}",
        f"F1 {trial.f1:.4f} · CE {trial.ce:.4f} · MD {trial.md:.4f}",
    ]
    lines += [f"{label(name)}: {label(value)}" for name, value in trial.settings.items()]
    return "<br>".join(lines)
