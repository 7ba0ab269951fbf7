"""What is said of a method that is no better than a constant answer."""

import pytest

from edokit.analysis.scores.result import Score, lowest_score
from edokit.analysis.scores.text import hard_label_sentence, headline_sentences, short_ends
from edokit.metrics import PairedTest


def said(ce: float, f1: float, ce_ends=None, f1_ends=None) -> list[str]:
    """Sentences about these figures; the constant answer has CE .5 and F1 .8."""
    ends = {"ce": ce_ends, "f1": f1_ends}
    tests = {
        metric: PairedTest(sum(pair) / 2, *pair, p_value=0.5, n=100)
        for metric, pair in ends.items()
        if pair is not None
    }
    score = Score("edo", metrics={"ce": ce, "f1": f1}, against_constant=tests)
    constant = Score("constant", metrics={"ce": 0.5, "f1": 0.8})
    return headline_sentences(score, constant, 100, subject="EDO", source="fit")


def test_the_lowest_score_is_that_of_the_headline_metric():
    scores = [
        Score(name, metrics={"ce": ce, "rps": rps}, headline_metric="rps")
        for name, ce, rps in (("a", 0.5, 0.3), ("b", 0.6, 0.2))
    ]
    assert lowest_score(scores).name == "b"


def test_nothing_is_said_of_a_method_that_is_clearly_better_in_both():
    assert said(0.4, 0.9, (-0.2, -0.01), (0.01, 0.2)) == []


@pytest.mark.parametrize(
    ("ce", "ends", "verdict"),
    [
        (0.6, (0.05, 0.2), "worse than"),
        (0.6, (-0.01, 0.2), "not better than"),
        (0.49, (-0.2, 0.01), "not clearly better than"),
        (0.6, None, "worse than"),
        (0.5, None, "not better than"),
    ],
)
def test_the_verdict_on_ce_follows_the_interval_and_the_side(ce, ends, verdict):
    (sentence,) = said(ce, 0.9, ends, (0.01, 0.2))
    assert sentence.startswith(f"EDO is {verdict} a constant answer")
    assert "F1" not in sentence


@pytest.mark.parametrize(
    ("f1", "ends", "verdict"),
    [
        (0.7, (-0.2, -0.05), "worse than"),
        (0.7, (-0.2, 0.01), "not better than"),
        (0.81, (-0.01, 0.2), "not clearly better than"),
    ],
)
def test_a_higher_f1_is_better(f1, ends, verdict):
    (sentence,) = said(0.4, f1, (-0.2, -0.01), ends)
    assert sentence.startswith(f"EDO is {verdict} a constant answer")
    assert "CE" not in sentence


def test_evenly_split_items_are_not_said_to_have_a_choice_of_most():
    score = Score("edo", metrics={"f1": 0.9})
    constant = Score("constant", metrics={"f1": 0.8})
    assert "12 evenly split items" in hard_label_sentence(score, constant, 12)
    assert "split" not in hard_label_sentence(score, constant, 0)


def test_ends_of_ten_and_more_keep_their_digits():
    assert short_ends((-0.154, 10.25)) == "−.154…+10.250"
