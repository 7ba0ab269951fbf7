"""An ensemble learned shard by shard is the one learned in memory, in memory that does not grow."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edokit import EDOEnsemble, EDOWarning, Gumbel, Objective, fit
from edokit.fitdata.data import FitData
from edokit.metrics import METRIC
from edokit.objective.settings import Pool
from edokit.predictions.shards import Shards
from flat_options import flat_ensemble
from shard_cases import Cut, cut
from tests.errors import raises_code

SAMPLE = 200  # items, in these tests

pytestmark = pytest.mark.filterwarnings("ignore:.* tied:edokit._errors.EDOWarning")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Cut:
    return cut(tmp_path_factory.mktemp("shards"), 500, [120, 130, 400], members=6)


def alike(one: Any, other: Any, where: str = "") -> None:
    """Numbers agree to eight digits, everything else entirely."""
    if isinstance(one, dict):
        assert list(one) == list(other), where
        for name in one:
            alike(one[name], other[name], f"{where}.{name}")
    elif isinstance(one, list) and one and isinstance(one[0], dict):
        assert len(one) == len(other), where
        for each, its in zip(one, other, strict=True):
            alike(each, its, where)
    elif isinstance(one, list) and one and isinstance(one[0], float):
        np.testing.assert_allclose(one, other, atol=1e-8, err_msg=where)
    elif isinstance(one, float):
        assert one == pytest.approx(other, abs=1e-8), where
    else:
        assert one == other, where


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"pool": "log", "lambda_div": 0.1},
        {"groups": True, "pool": "log"},
        {"groups": True, "max_members": 2},
        {"preset": "paper-fixed", "solver": "exact", "diversity": "suppress"},
        {"ce": "all", "lambda_div": 0.05, "class_weights": True},
        {"solver": "gumbel", "ce": "all", "epochs": 3, "random_state": 5},
        {"preset": "paper-fixed", "ce": "random"},
    ],
    ids=str,
)
def test_shards_give_the_ensemble_that_memory_gives(
    made: Cut, choices: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Effects of people are fitted in memory alone.
    in_memory = flat_ensemble(choices).set_params(people=False)
    wanted = in_memory.fit(made.pool, made.people).fitted_.to_dict()
    if wanted["settings"]["solver"] == "exact":
        # Gumbel learns from the sample alone; exact has to find the same in passes.
        monkeypatch.setattr("edokit.fitdata.sharded.SAMPLE", SAMPLE)
    with FitData.open(made.predictions, made.annotations, jobs=1) as shards:
        found = flat_ensemble(choices).set_params(people=False).fit(shards).fitted_.to_dict()
    # Ranks among all items, and values relative to all items, are no sums over shards.
    relative = [name for name, metric in METRIC.items() if metric.relative is not None]
    for name in ("entropy_correlation", *relative):
        assert found["metrics"].pop(name, None) is None
        wanted["metrics"].pop(name, None)
    gaps = [each["certificate"].pop("gap") for each in (found, wanted) if each["certificate"]]
    assert max(gaps, default=0.0) < 1e-8
    if wanted["settings"]["solver"] == "exact":
        # Of shards, answers to the sample are kept.
        assert len(found.pop("held_out")["answers"]) == SAMPLE
        del wanted["held_out"]
    # Trailing digits of prices may round either way.
    del found["explanation"], wanted["explanation"]
    for here, there in zip(found.pop("reasons"), wanted.pop("reasons"), strict=True):
        assert here["member"] == there["member"]
        assert here["kind"] == there["kind"]
        assert here.get("price", 0) == pytest.approx(there.get("price", 0), abs=1e-5)
    alike(found, wanted)


def test_fit_takes_shards_like_predictions(made: Cut) -> None:
    ensemble = EDOEnsemble().fit(Shards.open(made.predictions), made.people)
    wanted = EDOEnsemble().fit(made.pool, made.people)
    np.testing.assert_allclose(ensemble.weights_, wanted.weights_, atol=1e-9)
    np.testing.assert_allclose(
        ensemble.predict_proba(made.pool), wanted.predict_proba(made.pool), atol=1e-9
    )


def test_gumbel_says_that_it_learned_from_a_sample(
    made: Cut, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("edokit.fitdata.sharded.SAMPLE", 90)
    with (
        FitData.open(made.predictions, made.people, jobs=1, scratch=tmp_path) as data,
        pytest.warns(EDOWarning, match="90 of 500 items"),
    ):
        ensemble = EDOEnsemble(solver=Gumbel(epochs=3)).fit(data)
    assert ensemble.n_items_ == 500
    pooled = ensemble.predict_proba(made.pool)
    q = made.people.soft_labels
    assert ensemble.metrics_["ce"] == pytest.approx(-float((q * np.log(pooled)).sum(axis=1).mean()))


def test_shards_are_pooled_one_after_the_other(made: Cut) -> None:
    ensemble = EDOEnsemble(pool="log").fit(made.pool, made.people)
    wanted = ensemble.describe(made.pool)
    found = ensemble.describe(Shards.open(made.predictions))
    where = {item: row for row, item in enumerate(wanted.items)}
    rows = [where[item] for item in found.items]
    np.testing.assert_allclose(found.probabilities, wanted.probabilities[rows], atol=1e-7)
    np.testing.assert_allclose(found.spread, wanted.spread[rows], atol=1e-7)
    assert set(ensemble.predict(Shards.open(made.predictions))) <= set(ensemble.classes_)


def test_choices_that_do_not_go_together_are_refused_before_anything_is_read(made: Cut) -> None:
    (made.predictions.parent / "broken").mkdir()
    shards = Shards.open(made.predictions)
    with raises_code("unknown-choice", "ce"):
        EDOEnsemble(objective=Objective(ce="median")).fit(
            shards, made.predictions.parent / "broken"
        )


def test_a_pass_over_shards_leaves_no_array_to_the_garbage_collector(
    made: Cut, tmp_path: Path
) -> None:
    """Else the arrays of many shards are in memory at a time, until it looks for cycles."""
    with FitData.open(made.predictions, made.annotations, jobs=1, scratch=tmp_path) as data:
        weights = np.full((1, len(data.members)), 1 / len(data.members))
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            data.expansions(weights)
            data.scores(weights, [Pool.LINEAR])
            data.evaluate(weights[0])
            gc.collect()
            left = [value.shape for value in gc.garbage if isinstance(value, np.ndarray)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
    assert left == []


MEMORY = """
import resource, sys, warnings
from pathlib import Path
import numpy as np
from edokit import Annotations, EDOEnsemble
from edokit.fitdata import sharded
from edokit.fitdata.data import FitData
warnings.simplefilter("ignore")
folder, parts = Path(sys.argv[1]), int(sys.argv[2])
sharded.SAMPLE = 1024
with FitData.open(folder / "p", folder / "a", jobs=1, scratch=folder / "s") as data:
    assert len(data) == parts * 20_000
    EDOEnsemble().fit(data)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_shards(tmp_path: Path) -> None:
    peaks = [_peak(tmp_path / str(parts), parts) for parts in (2, 12)]
    # Ten more shards would be 32 MB in float64, and several times that in a solver.
    assert (peaks[1] - peaks[0]) * 1024 < 20 * 2**20, peaks


def _peak(folder: Path, parts: int) -> int:
    """Kilobytes that a process of its own had resident at most."""
    for name in ("p", "a"):
        (folder / name).mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number in range(parts):
        ids = np.arange(20_000) + 20_000 * number
        leaning = rng.normal(size=(20_000, 1))
        yes = 1 / (1 + np.exp(-leaning - rng.normal(size=(20_000, 10))))
        np.savez(
            folder / "p" / f"{number:02d}.npz",
            probabilities=np.stack([1 - yes, yes], axis=2).astype(np.float32),
            items=ids,
            members=np.arange(10),
            classes=np.arange(2),
        )
        share = np.round(3 / (1 + np.exp(-leaning[:, 0]))) / 3
        rows = "\n".join(f"{i},{1 - q:.4f},{q:.4f}" for i, q in zip(ids, share, strict=True))
        (folder / "a" / f"{number:02d}.csv").write_text("item,p_0,p_1\n" + rows, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(folder), str(parts)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_shards_may_be_fitted_on_a_declared_scale(made: Cut) -> None:
    ensemble = EDOEnsemble(scale="nominal")
    found = fit(made.predictions, made.annotations, ensemble=ensemble, streaming={"jobs": 1})
    np.testing.assert_allclose(
        found.weights_, EDOEnsemble().fit(made.pool, made.people).weights_, atol=1e-9
    )
