"""Two panels side by side: how far they part ways, on which items, and as whom nobody decides."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from edokit import EDOEnsemble, Panel, Predictions, Scale, write_predictions
from edokit.ensemble.pooled import Pooled
from edokit.ensemble.reviews import compare_panels
from edokit.panels import PanelComparison
from edokit.rows import Rows
from edokit.scales import NOMINAL
from tests.errors import raises_code

ONE = Panel(("u", "v"), name="lenient")
OTHER = Panel(("w", "x"), name="strict")
WHOSE = ("u", "v", "w", "x", "")


def pool(p: np.ndarray, scale: Scale = NOMINAL) -> Predictions:
    """One member's answers [N, 5, C] about each item for u, v, w, x and nobody."""
    n, _, c = p.shape
    return Predictions.from_arrays(
        p.reshape(n * 5, 1, c),
        layout="NKC",
        items=[f"i{k}" for k in range(n) for _ in WHOSE],
        annotators=list(WHOSE) * n,
        members=["m"],
        classes=[f"c{k}" for k in range(c)],
        scale=scale,
    )


def compared(p: np.ndarray, scale: Scale = NOMINAL) -> PanelComparison:
    rows = pool(p, scale)
    pooled = rows.probabilities[:, 0]
    whose = rows.annotators
    return Pooled(
        Rows.from_names(rows.items, whose), rows.classes, pooled, np.zeros(len(rows)), scale
    ).compare(ONE, OTHER)


def yes(*shares: float) -> np.ndarray:
    """[5, 2] of two classes."""
    return np.array([[1 - share, share] for share in shares])


P = np.stack(
    [
        yes(0.1, 0.3, 0.2, 0.2, 0.2),  # alike
        yes(0.1, 0.1, 0.9, 0.9, 0.8),  # strict says c1, and so does nobody in particular
        yes(0.4, 0.4, 0.5, 0.7, 0.3),  # nobody decides as the lenient
    ]
)


def test_items_are_listed_by_how_far_the_panels_part_ways():
    found = compared(P)
    np.testing.assert_allclose(found.distances, [0.0, 1.6, 0.4], atol=1e-9)
    table = found.to_table().to_pandas()
    assert table["item"].tolist() == ["i1", "i2", "i0"]
    assert table["label (lenient)"].tolist() == ["c0", "c0", "c0"]
    assert table["label (strict)"].tolist() == ["c1", "c1", "c0"]
    np.testing.assert_allclose(table["p_c1 (strict)"], [0.9, 0.6, 0.2])
    assert (table["low_c1 (strict)"] <= table["p_c1 (strict)"]).all()


def test_the_summary_counts_whose_decision_the_anonymous_answer_follows():
    summary = compared(P).summary()
    assert summary["decisions_differ"] == 2
    assert summary["follows"] == {"lenient": 1, "strict": 1, "neither": 0}
    assert summary["distance"] == pytest.approx(2.0 / 3)


def test_a_gap_beyond_the_draw_of_a_panel_needs_many_people():
    items = np.array(["a"] * 3, dtype=object)
    people = np.array(["u", "w", ""], dtype=object)
    p = np.array([[0.7, 0.3], [0.3, 0.7], [0.5, 0.5]])
    for size, apart in ((5, False), (500, True)):
        both = (
            Panel((who,), size=size, name=who).answer(Rows.from_names(items, people), p)
            for who in "uw"
        )
        assert PanelComparison(*both, ("no", "yes")).beyond_chance.tolist() == [apart]


@pytest.mark.parametrize("scale", [NOMINAL, Scale("ordinal", (1, 2, 4)), Scale("multi-label")])
def test_every_scale_has_its_distance(scale: Scale):
    rng = np.random.default_rng(0)
    p = rng.random((6, 5, 3)) if scale.is_multi_label else rng.dirichlet(np.ones(3), (6, 5))
    found = compared(p, scale)
    expected = np.abs(scale.coordinates(p[:, :2].mean(1)) - scale.coordinates(p[:, 2:4].mean(1)))
    np.testing.assert_allclose(found.distances, expected.sum(axis=1))


def test_shards_are_compared_as_the_whole(tmp_path: Path):
    predictions = pool(P)
    whole = compared(P)
    for number, rows in enumerate((range(5), range(5, 15))):
        write_predictions(predictions.take(rows), tmp_path / f"part-{number}.npz")
    ensemble = EDOEnsemble().fit(predictions.anonymous(), ["c0", "c1", "c1"], order="annotations")
    again = compare_panels(ensemble, tmp_path, ONE, OTHER)
    pd.testing.assert_frame_equal(again.to_table().to_pandas(), whole.to_table().to_pandas())


def test_panels_of_different_items_are_refused():
    predictions = pool(P).take([k for k in range(15) if k not in (12, 13)])
    ensemble = EDOEnsemble().fit(pool(P).anonymous(), ["c0", "c1", "c1"], order="annotations")
    with raises_code("items-differ", "i2"):
        compare_panels(ensemble, predictions, ONE, OTHER)


def test_panels_of_the_same_name_are_refused():
    ensemble = EDOEnsemble().fit(pool(P).anonymous(), ["c0", "c1", "c1"], order="annotations")
    with raises_code("duplicate-name", "'lenient'"):
        compare_panels(ensemble, pool(P), ONE, Panel(("w",), name="lenient"))


def test_panels_are_beyond_chance_where_no_votes_of_theirs_can_meet():
    sure = np.stack(
        [
            yes(0.0, 0.0, 1.0, 1.0, 0.5),
            yes(1.0, 1.0, 0.0, 0.0, 0.5),  # whichever panel is higher
            yes(0.0, 0.0, 0.0, 0.0, 0.5),
            yes(0.4, 0.6, 0.6, 0.6, 0.5),  # two votes may fall either way
        ]
    )
    assert compared(sure).beyond_chance.tolist() == [True, True, False, False]
