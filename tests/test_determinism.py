"""The same seed gives the same bytes, whenever, and the same numbers with any number of threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from edokit import (
    Annotations,
    EDOEnsemble,
    Predictions,
    read_predictions,
    search,
    write_predictions,
    write_report,
)
from edokit._io.tables import write_table
from edokit.members import parse_groups, train_members
from edokit.members.arrays import write_arrays
from edokit.runs.inputs import Input
from edokit.runs.record import RunRecord


def people_and_pool(items: int = 80, members: int = 3) -> tuple[Annotations, Predictions]:
    rng = np.random.default_rng(0)
    share = rng.beta(0.7, 0.9, size=items)
    answers = (rng.random((items, 5)) < share[:, None]).astype(int)
    columns = [
        np.clip(share + rng.normal(0, 0.1 + k / 8, items), 0.02, 0.98) for k in range(members)
    ]
    names = [f"item-{i}" for i in range(items)]
    people = Annotations.from_matrix(answers.astype(str), items=names)
    predictions = Predictions.from_arrays(np.stack(columns, axis=1), items=names, layout="NK")
    return people, predictions


@pytest.fixture
def years_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the calls of a clock answer from another year."""
    real = time.time
    calls = iter(range(10**9))

    def later() -> float:
        return real() + (next(calls) % 2) * 1e8

    monkeypatch.setattr(time, "time", later)
    monkeypatch.setattr(time, "localtime", lambda *when: time.gmtime(later()))


@pytest.mark.usefixtures("years_later")
@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_the_same_predictions_are_the_same_bytes(suffix: str, tmp_path: Path) -> None:
    _, made = people_and_pool()
    one = tmp_path / f"one{suffix}"
    two = tmp_path / f"two{suffix}"
    write_predictions(made, one)
    write_predictions(read_predictions(one), two)
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.usefixtures("years_later")
def test_the_same_member_is_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.npz", "two.npz"):
        write_arrays(tmp_path / name, a=np.arange(5.0), b=np.array(["x", "yz"]))
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    with np.load(tmp_path / "one.npz", allow_pickle=False) as stored:
        assert stored["b"].tolist() == ["x", "yz"]


@pytest.mark.parametrize("preset", ["default", "paper-fixed"])
def test_the_same_fit_is_the_same_bytes(preset: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        people, made = people_and_pool()
        EDOEnsemble(preset, random_state=3).fit(made, people).save(tmp_path / name)
    for file in ("ensemble.json", "README.md"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_the_same_search_finds_the_same(tmp_path: Path) -> None:
    people, made = people_and_pool()
    one, two = (search(made, people, trials=12, random_state=5) for _ in range(2))
    for name, result in (("one", one), ("two", two)):
        result.ensemble.save(tmp_path / name)
    file = "ensemble.json"
    assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


@pytest.mark.usefixtures("years_later")
def test_the_same_run_has_the_same_page(tmp_path: Path) -> None:
    people, made = people_and_pool()
    write_predictions(made, tmp_path / "dev.npz")
    write_table(people.to_table(), tmp_path / "dev.csv")
    inputs = {"predictions": Input("dev.npz"), "annotations": Input("dev.csv")}
    pages = []
    for _ in range(2):
        RunRecord("fit", inputs).save(tmp_path)
        EDOEnsemble().fit(made, people).save(tmp_path / "ensemble")
        pages.append(write_report(tmp_path).read_bytes())
    assert pages[0] == pages[1]


def posts(items: int = 60) -> Annotations:
    """Posts of two kinds of words, and people who mostly tell them apart."""
    rng = np.random.default_rng(1)
    rows = []
    for k in range(items):
        words = rng.choice(("kind", "calm", "fair") if k % 2 else ("loud", "cross", "grim"), 4)
        row = {"item": f"i{k}", "text": f"{' '.join(words)} {k % 7}"}
        row["split"] = "dev" if k % 5 == 0 else "train"
        for who in "abc":
            label = str(k % 2 if rng.random() < 0.8 else 1 - k % 2)
            rows.append(row | {"annotator": who, "label": label})
    return Annotations.from_table({name: [row[name] for row in rows] for name in rows[0]})


def test_the_same_training_is_the_same_bytes_in_any_number_of_processes(tmp_path: Path) -> None:
    for name, jobs in (("one", 1), ("two", 1), ("both", 2)):
        groups = parse_groups("linear:2", supervision="random-select")
        train_members(posts(), groups, out=tmp_path / name, random_state=4, jobs=jobs)
    first = tmp_path / "one"
    files = [path.relative_to(first) for path in first.rglob("*.npz")]
    assert Path("predictions/dev.npz") in files
    assert len(files) > 3
    for other in ("two", "both"):
        for file in files:
            assert (first / file).read_bytes() == (tmp_path / other / file).read_bytes(), file


THREADS = """
import json, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {here!r})
from test_determinism import people_and_pool, posts
from edokit import EDOEnsemble
from edokit.members import train_members
from edokit.members.groups import parse_groups
from edokit.analysis.search import search
people, made = people_and_pool(6_000, 12)
found = {{}}
for preset in ("default", "paper-fixed"):
    ensemble = EDOEnsemble(preset).fit(made, people)
    shares = ensemble.predict_proba(made)[:200]
    found[preset] = [ensemble.weights_.tolist(), shares.ravel().tolist()]
few, small = people_and_pool(300, 5)
result = search(small, few, trials=6, population=3, folds=2, random_state=2)
found["search"] = [
    [[trial.f1, trial.ce, trial.md] for trial in result.trials], result.ensemble.weights_.tolist()
]
trained = train_members(posts(), parse_groups("linear:2"), jobs=1)
found["training"] = [trained.predictions["dev"].probabilities.tolist(), []]
print(json.dumps(found))
"""


@pytest.mark.slow
def test_two_numbers_of_threads_agree() -> None:
    here = str(Path(__file__).parent)
    found = []
    for threads in ("1", "2"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
        ran = subprocess.run(
            [sys.executable, "-c", THREADS.format(here=here)],
            env={**os.environ, **dict.fromkeys(names, threads)},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(json.loads(ran.stdout))
    one, two = found
    for preset, (weights, shares) in one.items():
        np.testing.assert_allclose(weights, two[preset][0], rtol=0, atol=1e-10)
        np.testing.assert_allclose(shares, two[preset][1], rtol=0, atol=1e-10)
