"""What the page says first: answers, how often they are right, what goes to people, whose view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_cases import make_run, people_and_pool, ratings_and_pool, sets_and_pool, texts_for

import edokit
from edokit import Annotations, EDOEnsemble, Predictions
from edokit.report import collect
from edokit.report.answers import answers_view
from edokit.report.charts import all_charts
from edokit.report.data import ReportData
from edokit.report.decisions import correctness_view, handover_view, whose_view_sentences
from edokit.report.page import render
from edokit.report.results import MethodScores, method_rows, read_comparison
from edokit.report.summary import summarize
from edokit.report.vega import percents

Made = Callable[[], tuple[Annotations, Predictions]]


def fitted(folder: Path, made: tuple[Annotations, Predictions]) -> ReportData:
    people, pool = made
    EDOEnsemble(ties="random").fit(pool, people).save(folder)
    return collect(folder, predictions=pool, annotations=people)


@pytest.mark.parametrize("made", [people_and_pool, ratings_and_pool, sets_and_pool])
def test_examples_go_from_low_to_high_with_the_answers_of_their_items(
    tmp_path: Path, made: Made
) -> None:
    data = fitted(tmp_path / "ensemble", made())
    evaluation = data.evaluation
    assert evaluation is not None
    view = answers_view(evaluation, texts=True)
    assert view is not None
    assert [example.place for example in view.examples] == ["low", "middle", "high"]
    values = [float(example.value.removesuffix("\u00a0%")) for example in view.examples]
    assert values == sorted(values)
    assert values[0] < values[2]
    answers = dict(zip(evaluation.pooled.items, evaluation.pooled.probabilities, strict=True))
    for example in view.examples:
        shares = [bar.share for bar in example.bars]
        assert shares == pytest.approx(answers[example.item])
    assert "How answers spread" in all_charts(data)["answers"]["title"]


def test_the_spread_counts_every_item(tmp_path: Path) -> None:
    data = fitted(tmp_path / "ensemble", ratings_and_pool())
    (bars,) = [layer["data"]["values"] for layer in all_charts(data)["answers"]["layer"]]
    assert sum(bar["items"] for bar in bars) == 60
    assert (bars[0]["from"], bars[-1]["to"]) == (1, 7)


def test_examples_have_veiled_texts_unless_there_are_none(tmp_path: Path) -> None:
    data = collect(make_run(tmp_path, texts=texts_for(60)))
    examples = render(data).split('id="answers"')[1].split('id="right"')[0]
    assert examples.count('class="veil" aria-expanded="false"') == 3
    bare = render(data, texts=False).split('id="answers"')[1].split('id="right"')[0]
    assert "veil" not in bare
    assert "trains are late" not in bare
    assert bare.count('class="example"') == 3


def test_the_share_of_right_labels_stands_beside_the_constant_one_model_and_the_average(
    tmp_path: Path,
) -> None:
    data = collect(make_run(tmp_path, items=200))
    evaluation = data.evaluation
    assert evaluation is not None
    view = correctness_view(data)
    assert view is not None
    assert view.rows[0].is_ensemble
    assert view.rows[1].name == "The same answer for every text"
    assert view.rows[-1].name == "A plain average of the same models"
    # Where all weight is on one member, it is in the row of the ensemble.
    names = " = ".join(row.name for row in view.rows[:-1]).lower()
    assert "the best single member" in names
    is_right = evaluation.pooled.probabilities.argmax(axis=1) == evaluation.hard_labels
    share = f"{100 * is_right.mean():.0f}\u00a0%"
    assert view.rows[0].shares == (share,)
    assert f"choice of most annotators for {share} of 200 held-out items" in view.sentence
    assert view.rows[1].comparison.startswith("clearly better (+")


def test_evenly_split_items_are_counted_where_labels_are_called_right(tmp_path: Path) -> None:
    votes = [[0, 0, 1], [1, 1, 0], [0, 0, None], [1, 1, 1]] * 10 + [[0, 1, None]] * 3
    people = Annotations.from_matrix(votes, classes=[0, 1])
    yes = np.random.default_rng(0).random((len(votes), 2))
    pool = Predictions.from_arrays(
        np.stack([1 - yes, yes], axis=2), items=people.items, classes=people.classes, layout="NKC"
    )
    data = fitted(tmp_path / "ensemble", (people, pool))
    view = correctness_view(data)
    assert view is not None
    assert "for 3 evenly split items: the label that the rule for ties gives" in view.sentence
    compared = edokit.compare(pool, people, methods=["edo"], samples=20, ties="random")
    assert MethodScores.from_comparison(compared).ties == 3
    compared.save(tmp_path / "comparison")
    loaded = read_comparison(tmp_path / "comparison" / "compare" / "methods.json")
    assert loaded.ties == 3
    view = correctness_view(ReportData("RUN", comparison=loaded))
    assert view is not None
    assert "for 3 evenly split items" in view.sentence


def test_sets_are_right_by_label_and_as_a_whole(tmp_path: Path) -> None:
    data = fitted(tmp_path / "ensemble", sets_and_pool())
    view = correctness_view(data)
    assert view is not None
    evaluation = data.evaluation
    assert evaluation is not None
    same = (evaluation.pooled.probabilities > 0.5) == evaluation.hard_labels
    shares = (same.mean(), same.all(axis=1).mean())
    assert view.rows[0].shares == tuple(f"{100 * share:.0f}\u00a0%" for share in shares)


def test_the_answers_of_one_member_are_one_row(tmp_path: Path) -> None:
    data = collect(make_run(tmp_path, members=["alone"]))
    assert data.evaluation is not None
    names = [row.names for row in method_rows(data.evaluation.scores)]
    assert names == [("edo", "uniform"), ("constant",)]
    view = correctness_view(data)
    assert view is not None
    assert len(view.rows) == 2


def test_what_goes_to_people_is_what_escalation_promises(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    yes = rng.choice([0.02, 0.5, 0.98], 600)
    votes = (rng.random((600, 5)) < yes[:, None]).astype(int)
    people = Annotations.from_matrix(votes)
    p = np.stack([1 - yes, yes], axis=1)[:, None].repeat(2, axis=1)
    pool = Predictions.from_arrays(p, items=people.items, classes=people.classes, layout="NKC")
    data = fitted(tmp_path / "ensemble", (people, pool))
    assert data.ensemble is not None
    escalation = data.ensemble.escalation("5%")
    view = handover_view(data)
    assert view is not None
    answered = f"{100 * escalation.answered:.0f}"
    assert view.headline.startswith(f"{answered} % answered, ")
    assert escalation.promise in view.sentence
    # Only a run with a bundle can answer for texts.
    assert "edo predict RUN --texts" not in render(data)
    data.has_bundle = True
    assert "edo predict RUN --texts" in render(data)
    few = handover_view(collect(make_run(tmp_path)))
    assert few is not None
    assert few.headline.startswith("No threshold can promise it")
    # An ensemble of an earlier version keeps no cross-fitted answers.
    data.ensemble.fitted_ = replace(data.ensemble.fitted_, held_out=None)
    earlier = handover_view(data)
    assert earlier is not None
    assert earlier.answered is None


def test_it_says_whose_view_it_is_and_what_was_not_compared(tmp_path: Path) -> None:
    data = collect(make_run(tmp_path))
    followed, unknown = whose_view_sentences(data)
    assert "5 annotators" in followed
    assert "Nothing is known of the annotators" in unknown
    assert data.evaluation is not None
    assert data.evaluation.annotations is not None
    table = data.evaluation.annotations.to_table().to_pandas()
    table["country"] = np.where(table["annotator"].isin(["ann-0", "ann-1"]), "north", "south")
    annotations = Annotations.from_table(pd.DataFrame(table))
    data.evaluation = replace(data.evaluation, annotations=annotations)
    assert "“country” was not tested" in whose_view_sentences(data)[1]


def test_a_page_compares_with_a_plain_average_in_one_place(tmp_path: Path) -> None:
    data = collect(make_run(tmp_path))
    assert data.ensemble is not None
    assert "uniform weights were" in str(data.ensemble.fitted_.regularization)
    weights = " ".join(summarize(data).weights)
    assert "cross-validation" in weights
    assert "uniform weights" not in weights


@pytest.mark.parametrize(
    ("ends", "shown"), [((-0.2, 0.3), ".0%"), ((-0.004, 0.03), ".1%"), ((0.001, 0.002), ".2%")]
)
def test_an_axis_in_percent_has_digits_for_several_ticks(
    ends: tuple[float, float], shown: str
) -> None:
    assert percents("gain", None, ends)["axis"]["format"] == shown
