"""Figures: the charts of results as files, and in notebooks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from report_cases import make_run, people_and_pool

import edokit
from commands import edo, printed
from edokit import EDOEnsemble, figures
from tests.errors import raises_code

pytestmark = pytest.mark.filterwarnings("ignore:.* tied:edokit._errors.EDOWarning")
STARTS = {"pdf": b"%PDF-", "svg": b"<svg", "png": b"\x89PNG", "html": b"<!doctype", "json": b"{"}


@pytest.fixture(scope="module")
def ensemble() -> EDOEnsemble:
    people, pool = people_and_pool(60)
    return EDOEnsemble(ties="random").fit(pool, people)


def refused(*words: object) -> str:
    """What a command that fails prints."""
    done = edo(*words)
    assert done.returncode == 2
    return done.stderr


def values(figure: figures.Figure, layer: int = 0) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = figure.spec["layer"][layer]["data"]["values"]
    return rows


@pytest.mark.parametrize("ending", figures.FORMATS)
def test_a_figure_is_saved_in_the_format_of_its_ending(
    ensemble: EDOEnsemble, ending: str, tmp_path: Path
) -> None:
    path = tmp_path / f"weights.{ending}"
    figures.weights(ensemble).save(path)
    assert path.read_bytes().startswith(STARTS[ending])
    figures.weights(ensemble).save(path)  # replaces it


def test_another_ending_is_refused(ensemble: EDOEnsemble, tmp_path: Path) -> None:
    with raises_code("unknown-ending") as error:
        figures.weights(ensemble).save(tmp_path / "weights.docx")
    assert error.value.code == "unknown-ending"
    with raises_code("unknown-choice", "docx"):
        figures.weights(ensemble).to_bytes("docx")
    with raises_code("invalid-number", "ppi"):
        figures.weights(ensemble).save(tmp_path / "weights.png", ppi=0)
    assert not list(tmp_path.iterdir())


def test_notebooks_show_an_image(ensemble: EDOEnsemble) -> None:
    bundle = figures.weights(ensemble)._repr_mimebundle_()
    assert bundle["image/svg+xml"].startswith("<svg")
    assert bundle["text/plain"] == "Figure('Weight of each member')"


def test_a_png_is_as_wide_in_inches_at_every_resolution(ensemble: EDOEnsemble) -> None:
    figure = figures.weights(ensemble)
    widths = []
    for ppi in (72, 300):
        # The width in pixels, from the header of the file.
        pixels = int.from_bytes(figure.to_bytes("png", ppi=ppi)[16:20], "big")
        widths.append(pixels / ppi)
    assert widths[0] == pytest.approx(widths[1], rel=0.01)


def test_weights_are_those_of_the_ensemble(ensemble: EDOEnsemble) -> None:
    drawn = {row["member"]: row["weight"] for row in values(figures.weights(ensemble))}
    weights = dict(zip(ensemble.members_, ensemble.weights_, strict=True))
    assert drawn == pytest.approx(weights, abs=1e-6)


def test_reliability_matches_items_by_id() -> None:
    people, pool = people_and_pool(60)
    fitted = EDOEnsemble(ties="random").fit(pool, people)
    answers = fitted.predict_proba(pool)
    figure = figures.reliability(answers, people)
    mixed = people.take(np.random.default_rng(0).permutation(60))
    assert values(figures.reliability(answers, mixed), 1) == values(figure, 1)
    curve = edokit.metrics.reliability_curve(answers, people.soft_labels)
    drawn = [row["share of annotations"] for row in values(figure, 1)]
    np.testing.assert_allclose(drawn, curve.observed, atol=1e-6)


def test_trials_are_drawn_by_two_metrics_of_the_search() -> None:
    people, pool = people_and_pool(40)
    search = edokit.search(pool, people, trials=10, solver="exact", folds=2, ties="random")
    figure = figures.pareto(search)
    drawn = {row["trial"]: row["CE"] for row in values(figure)}
    assert drawn == pytest.approx({t.number: t.ce for t in search.trials}, abs=1e-6)
    assert figures.pareto(search, x="md", y="ce").title == "MD and CE of the trials"
    with raises_code("unknown-metric", "x='jsd'"):
        figures.pareto(search, x="jsd")


def test_methods_and_gains_of_a_comparison_are_drawn() -> None:
    people, pool = people_and_pool(40)
    options = {"ties": "random", "samples": 200}
    result = edokit.compare(pool, people, methods=["edo", "uniform", "greedy"], **options)
    rows = values(figures.comparison(result), 1)
    drawn = {row["CE"] for row in rows}
    assert drawn <= {round(score.metrics["ce"], 6) for score in result.scores}
    few = values(figures.comparison(result, methods=["edo", "uniform"]), 1)
    assert len(few) < len(rows)
    assert figures.gains(result).title.startswith("How much better")
    with raises_code("unknown-choice", "'best'"):
        figures.comparison(result, methods=["best"])
    single_comparison = edokit.compare(pool, people, methods=["greedy"], **options)
    with raises_code("missing-value"):
        figures.gains(single_comparison)


def test_names_can_not_leave_a_page_of_one_figure() -> None:
    people, pool = people_and_pool(40)
    names = ["</script><script>alert(1)</script>", *pool.members[1:]]
    renamed = edokit.Predictions.from_arrays(
        pool.probabilities, items=pool.items, members=names, classes=pool.classes
    )
    page = figures.weights(EDOEnsemble(ties="random").fit(renamed, people)).to_bytes("html")
    assert b"<script>alert" not in page
    assert page.count(b"</script>") == 3
    assert not re.search(rb"(src|href)=", page.partition(b"<script>")[0])


def test_a_run_writes_its_figures(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    out = tmp_path / "figures"
    words = ("report", run, "--figures", out, "--figure-format", "svg,json", "--json")
    done = json.loads(printed(*words))
    names = {Path(path).name for path in done["figures"]}
    assert {"weights.svg", "weights.json", "reliability.svg"} <= names
    assert names == {path.name for path in out.iterdir()}
    printed(*words)  # again: the same files
    (out / "weights.svg").write_text("mine")
    assert "weights.svg" in refused(*words)
    assert (out / "weights.svg").read_text() == "mine"
    assert "unknown format of figures 'gif'" in refused(
        "report", run, "--figures", out, "--figure-format", "gif"
    )
    assert "--figures" in refused("report", run, "--figure-format", "pdf")


def test_groups_are_drawn_by_attribute_and_class() -> None:
    rng = np.random.default_rng(0)
    rows = {
        "item": np.repeat([f"i{k}" for k in range(40)], 12),
        "annotator": np.tile([f"a{k}" for k in range(12)], 40),
        "label": rng.integers(0, 2, 480),
        "team": np.tile(["red"] * 6 + ["blue"] * 6, 40),
    }
    annotations = edokit.Annotations.from_table(rows)
    diagnosis = edokit.diagnose(annotations, by=["team"], permutations=99)
    figure = figures.group_differences(diagnosis, "team")
    assert "share of '1'" in figure.title
    assert "share of '0'" in figures.group_differences(diagnosis.groups, "team", "0").title
    with raises_code("unknown-attribute", "'age'"):
        figures.group_differences(diagnosis, "age")
    with raises_code("unknown-class", "'2'"):
        figures.group_differences(diagnosis, "team", "2")
    with raises_code("missing-people"):
        figures.group_differences(edokit.diagnose(annotations, permutations=0), "team")
