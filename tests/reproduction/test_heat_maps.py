"""The paper's heat maps show every correlation, with stars where chance is unlikely."""

from __future__ import annotations

import pytest

from reproduction.lewidi2023.heat_maps import Correlation, correlation_figure


def drawn(rows: list[Correlation]) -> str:
    """The figure as SVG."""
    return correlation_figure(rows).to_bytes("svg").decode()


def test_the_heat_map_has_a_panel_per_sign_and_stars_where_significant() -> None:
    correlations = [
        Correlation(sign, parameter, metric, rho, p_value, 20)
        for sign in ("preserve", "suppress")
        for parameter, metric, rho, p_value in (
            ("lambda_div", "f1", -0.1, 0.6),
            ("lambda_div", "ce", 1.0, 0.04),
            ("size", "ce", 0.2, 0.4),
        )
    ]
    svg = drawn(correlations)
    for title in ("preserve (20 trials)", "suppress (20 trials)"):
        assert svg.count(f">{title}<") == 1
    # A pair without a value has a dash.
    for text in ("−0.10", "1.00*", "–", "0.20"):
        assert svg.count(f">{text}<") == 2


@pytest.mark.parametrize(
    ("rho", "p_value", "text"),
    [(-0.7, 0.002, "−0.70**"), (0.1, 0.9, "0.10"), (0.9, 0.0001, "0.90***"), (0.5, 0.04, "0.50*")],
)
def test_stars_mark_unlikely_chance(rho: float, p_value: float, text: str) -> None:
    row = Correlation("preserve", "lambda_ce", "ce", rho, p_value, 9)
    assert f">{text}<" in drawn([row])


def test_every_row_of_a_heat_map_is_named() -> None:
    names = [f"p{k}" for k in range(12)]
    svg = drawn([Correlation("preserve", name, "ce", 0.1, 0.5, 9) for name in names])
    assert [name for name in names if f">{name}<" not in svg] == []
