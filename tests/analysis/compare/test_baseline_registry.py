"""Methods by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pool_cases import sample

from edokit import compare
from edokit.analysis.compare import method as methods
from edokit.analysis.compare.method import (
    WeightedPool,
    find_method,
    make_method,
    method_names,
    register_method,
)
from edokit.datasets.read import sources
from edokit.fitdata.reading import FILE_OPTIONS, READING_OPTIONS
from tests.errors import raises_code

THEIRS = "their_methods:Theirs"


def test_the_names_that_scripts_rely_on_are_there() -> None:
    expected = [
        "constant",
        "uniform",
        "majority",
        "best-single",
        "top-5",
        "wel",
        "wel-ce",
        "greedy",
        "linear-pool",
    ]
    expected += ["log-pool", "edo-paper-fixed", "edo-paper", "edo"]
    assert [name for name in method_names() if name in expected] == expected


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with raises_code("unknown-method", "'uniform'", "'majority'"):
        make_method("unifrom")


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0], [1.5, -0.5, 0.0], [np.nan] * 3, [1.0], None])
def test_weights_that_are_not_on_the_simplex_are_refused(weights: list[float] | None) -> None:
    class Careless(WeightedPool):
        def find_weights(self, P: np.ndarray, q: np.ndarray, y: np.ndarray) -> np.ndarray:
            return weights  # type: ignore[return-value]

    P = np.full((4, 3, 2), 0.5)
    with raises_code("invalid-weights", "Careless"):
        Careless().fit(P, [0, 1, 1, 0])


def test_a_pool_without_a_rule_is_refused() -> None:
    with raises_code("invalid-plugin", "find_weights"):
        find_method("edokit.analysis.compare.method:WeightedPool")


def test_a_new_method_is_one_class_under_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    methods.method_names()  # which enters all of them
    monkeypatch.setattr(methods, "METHODS", dict(methods.METHODS))

    @register_method("first-one", "the first member by name", order=15)
    class FirstOne(WeightedPool):
        def find_weights(self, P: np.ndarray, q: np.ndarray, y: np.ndarray) -> np.ndarray:
            return np.eye(P.shape[1])[0]

    assert isinstance(make_method("first-one"), FirstOne)
    assert method_names()[:3] == ["constant", "uniform", "first-one"]
    with raises_code("taken-name"):
        register_method("first-one", "another")(make_method)


def test_a_method_of_another_package_needs_no_registration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "their_methods.py").write_text(
        "from edokit.analysis.compare.methods.simple import Uniform\n\n\n"
        "class Theirs(Uniform):\n"
        '    """The mean, as they have it."""\n\n\n'
        "class Half:\n"
        "    def fit(self, predictions, annotations):\n"
        "        return self\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    comparison = compare(*sample(40), *sample(30, seed=1, prefix="new"), methods=THEIRS, samples=0)
    assert [score.name for score in comparison.scores] == ["constant", "uniform", THEIRS]
    assert comparison[THEIRS].description == "The mean, as they have it."
    assert comparison[THEIRS].metrics == comparison["uniform"].metrics
    with raises_code("invalid-plugin", "predict_proba"):
        find_method("their_methods:Half")
    with raises_code("failed-import"):
        find_method("their_methods:Missing")


MEAN_OF_MEMBERS = """
import numpy as np
import pandas as pd
from edokit import ItemArray


class Mean:
    def fit(self, predictions, annotations):
        return self

    def predict_proba(self, predictions):
        return predictions.probabilities.mean(axis=1)

    def predict(self, predictions):
        codes = predictions.probabilities.mean(axis=1).argmax(axis=1)
        return np.asarray(predictions.classes)[codes]


class Array(Mean):
    def predict_proba(self, predictions):
        mean = super().predict_proba(predictions)
        return ItemArray(mean[::-1], predictions.items[::-1], predictions.classes)


class Frame(Mean):
    def predict_proba(self, predictions):
        return pd.DataFrame(super().predict_proba(predictions), predictions.items)[::-1]


class Columns(Mean):
    def predict_proba(self, predictions):
        mean = super().predict_proba(predictions)[:, ::-1]
        return pd.DataFrame(mean, predictions.items, predictions.classes[::-1])


class Fewer(Mean):
    def predict(self, predictions):
        return super().predict(predictions)[1:]


class Codes(Mean):
    def predict(self, predictions):
        return predictions.probabilities.mean(axis=1).argmax(axis=1) + 5
"""


@pytest.mark.parametrize(
    ("method", "words"),
    [
        pytest.param("Array", "another order", id="array-with-ids-in-another-order"),
        pytest.param("Frame", "another order", id="table-in-another-order"),
        pytest.param("Columns", "has the classes", id="table-with-other-column-order"),
        pytest.param("Fewer", "shape", id="label-missing"),
        pytest.param("Codes", "'5'", id="codes-in-place-of-labels"),
    ],
)
def test_answers_that_do_not_fit_the_predictions_are_never_compared(
    method: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"answers_{method}.py").write_text(MEAN_OF_MEMBERS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    name = f"answers_{method}:{method}"
    comparison = compare(*sample(20), *sample(10, seed=1, prefix="new"), methods=name, samples=0)
    assert words in comparison.skipped[name]


def test_a_keyword_that_nothing_takes_is_called_unknown() -> None:
    dev = sample(20)
    test = sample(10, seed=1, prefix="new")
    with raises_code("unknown-option", "'method'", "'methods'"):
        compare(*dev, *test, method="edo")


def test_options_of_every_source_of_annotations_are_known() -> None:
    taken = {name for source in sources() for name in source.options}
    assert taken <= {*FILE_OPTIONS, *READING_OPTIONS}
