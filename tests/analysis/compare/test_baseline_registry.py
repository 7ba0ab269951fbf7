"""Methods by name."""

from __future__ import annotations

import numpy as np
import pytest

from edokit._errors import InputError
from edokit.analysis.compare import method as methods
from edokit.analysis.compare.method import WeightedPool, make_method, method_names, register_method


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
    with pytest.raises(InputError, match="'uniform', 'majority'"):
        make_method("unifrom")


def test_a_new_method_is_one_class_under_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    methods.method_names()  # which enters all of them
    monkeypatch.setattr(methods, "METHODS", dict(methods.METHODS))

    @register_method("first-one", "the first member by name", order=15)
    class FirstOne(WeightedPool):
        def find_weights(self, P: np.ndarray, q: np.ndarray, y: np.ndarray) -> np.ndarray:
            return np.eye(P.shape[1])[0]

    assert isinstance(make_method("first-one"), FirstOne)
    assert method_names()[:3] == ["constant", "uniform", "first-one"]
    with pytest.raises(InputError, match="taken"):
        register_method("first-one", "another")(make_method)
