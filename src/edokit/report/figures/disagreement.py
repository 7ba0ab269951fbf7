"""The figure of a diagnosis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edokit.report.charts.diagnosis import BINS, PARTS, known_parts
from edokit.report.charts.style import BLUE, INK, MUTED
from edokit.report.data import ReportData
from edokit.report.figures.parts import new


def diagnosis(found: ReportData) -> Callable[[], Any] | None:
    """Shares of the variance, and what chance alone would give."""
    seen = found.diagnosis or {}
    parts = known_parts(seen.get("variance") or {})
    test = (seen.get("test") or {}).get("group_item") or {}
    return (lambda: _diagnosis(parts, test)) if parts else None


def _diagnosis(parts: dict[str, dict[str, float]], test: dict[str, Any]) -> Any:
    null = [value for value in test.get("null") or [] if value is not None]
    known = len(null) > 1 and test.get("statistic") is not None
    figure = new(7.0, 2.0)
    panels = figure.subplots(1, 2 if known else 1, squeeze=False)[0]
    shares = [part["share"] for part in parts.values()]
    below = [max(part["share"] - part["low"], 0.0) for part in parts.values()]
    above = [max(part["high"] - part["share"], 0.0) for part in parts.values()]
    places = range(len(parts))
    panels[0].barh(places, shares, color=BLUE, height=0.6)
    panels[0].errorbar(
        shares, places, xerr=[below, above], fmt="none", ecolor=INK, elinewidth=0.8, capsize=2
    )
    panels[0].set_yticks(list(places), [PARTS[name] for name in parts])
    panels[0].set_ylim(len(parts) - 0.5, -0.5)
    panels[0].grid(visible=False, axis="y")
    panels[0].set_xlabel("share of the variance of the labels")
    if known:
        panels[1].hist(null, bins=BINS, color=MUTED, alpha=0.6)
        panels[1].axvline(test["statistic"], color=BLUE, linewidth=1.5)
        panels[1].set_xlabel("how far groups stand apart, answers shuffled")
        panels[1].set_ylabel("permutations")
    return figure
