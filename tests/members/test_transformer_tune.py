"""The paper's search over learning rate, batch size and warm-up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_transformer import lesson, tiny_model

from edokit._errors import InputError
from edokit.members.tuning import BATCH_SIZES, LEARNING_RATE, WARMUP_STEPS
from edokit.members.tuning import tune_options as tune


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


def test_the_lowest_dev_ce_wins(model: str) -> None:
    told = []
    options = {"model": model, "epochs": 1, "device": "cpu"}
    best, trials = tune(4, lesson(n=16, n_dev=8), 2, options, random_state=0, progress=told.append)
    assert len(trials) == 4
    lowest = min(trials, key=lambda trial: trial["dev_ce"])
    assert best == {name: lowest[name] for name in best}
    assert sorted(best) == ["batch_size", "learning_rate", "warmup_steps"]
    for trial in trials:
        assert LEARNING_RATE[0] <= trial["learning_rate"] <= LEARNING_RATE[1]
        assert trial["batch_size"] in BATCH_SIZES
        assert WARMUP_STEPS[0] <= trial["warmup_steps"] <= WARMUP_STEPS[1]
    assert [(report["trial"], report["trials"]) for report in told] == [
        (t, 4) for t in (1, 2, 3, 4)
    ]
    assert tune(4, lesson(n=16, n_dev=8), 2, options, random_state=0)[0] == best


def test_a_search_needs_dev_texts_and_trials(model: str) -> None:
    for n_trials, given in ((0, lesson(n=16)), (1, lesson(n=16, dev_texts=()))):
        with pytest.raises(InputError, match="at least one trial and dev texts"):
            tune(n_trials, given, 2, {"model": model}, random_state=0)


def test_a_search_in_which_nothing_trains_says_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"all 2 trials failed: .* holds neither config"):
        tune(2, lesson(n=16), 2, {"model": str(tmp_path)}, random_state=0)


def test_targets_of_one_class_cannot_be_tuned_on(model: str) -> None:
    ones = np.tile([0.0, 1.0], (16, 1))
    same = lesson(n=16, targets=lambda epoch: ones)
    with pytest.warns(UserWarning, match="one class"), pytest.raises(InputError, match="one class"):
        tune(1, same, 2, {"model": model, "device": "cpu"}, random_state=0)
