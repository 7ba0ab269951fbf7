"""A recipe, a metric, a baseline and a reader are one place each, as CONTRIBUTING's examples show.

A folder with the new file joins the package's own, so nothing is written into the source tree.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from commands import answer, edo
from edokit import (
    Annotations,
    EDOEnsemble,
    Predictions,
    datasets,
    read_annotations,
    read_predictions,
    write_annotations,
    write_predictions,
)
from edokit.analysis.compare import methods
from edokit.analysis.compare.method import METHODS, make_method, method_names
from edokit.datasets import read as sources
from edokit.datasets.get import DATASETS
from edokit.members import recipes
from edokit.members.registry import find_recipe, recipe_names
from edokit.metrics import METRIC, compute_metrics, register_metric
from edokit.metrics.registry import ItemFormula, by_row

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import metric_table  # noqa: E402

from tests.errors import raises_code  # noqa: E402

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PEOPLE = """item,annotator,label,text,split
a,ann-1,no,what a fine day,train
a,ann-2,yes,what a fine day,train
b,ann-1,no,the bus is late,dev
b,ann-2,no,the bus is late,dev
c,ann-1,yes,tea or coffee,test
c,ann-2,no,tea or coffee,test
"""

Shelve = Callable[[ModuleType, str, str], None]


def shown(heading: str) -> str:
    """The example that CONTRIBUTING gives under this heading."""
    part = CONTRIBUTING.split(f"## {heading}\n")[1].split("\n## ")[0]
    found = re.search(r"^```python\n(.*?)^```", part, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def shelve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelve]:
    """Puts a file beside those of a package, until the test is over."""
    made: list[tuple[ModuleType, str]] = []

    def put(package: ModuleType, name: str, text: str) -> None:
        folder = tmp_path / "shelf" / package.__name__
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
        made.append((package, name))

    yield put
    for package, name in made:
        sys.modules.pop(f"{package.__name__}.{name}", None)
        vars(package).pop(name, None)


# --- Recipes --------------------------------------------------------------------------------------


def test_a_new_recipe_is_one_file_and_trains(shelve: Shelve, tmp_path: Path) -> None:
    assert "shares" not in recipe_names()
    shelve(recipes, "shares", shown("Adding a recipe"))
    assert recipe_names() == [
        "embeddings",
        "encoder",
        "linear",
        "llm",
        "nearest",
        "shares",
        "sklearn",
        "transformer",
        "trees",
    ]
    assert find_recipe("shares").__name__ == "SharesMember"

    (tmp_path / "people.csv").write_text(PEOPLE, encoding="utf-8")
    out = tmp_path / "members"
    how = ("--recipe", "shares", "--supervision", "soft", "--members", 2, "--jobs", 1)
    answer("train", tmp_path / "people.csv", *how, "--option", "smooth=2", "--out", out)
    predictions = Predictions.from_arrays(
        np.load(out / "predictions" / "test.npz")["probabilities"], layout="NKC"
    )
    # One item was learned from, half of its answers yes.
    np.testing.assert_allclose(predictions.probabilities, 0.5)

    texts = tmp_path / "people.csv"
    again = tmp_path / "again.npz"
    answer("score", "--members", out, "--texts", texts, "--out", again)
    assert np.load(again)["probabilities"].shape == (3, 2, 2)


def test_a_file_of_recipes_holds_one_class(shelve: Shelve) -> None:
    shelve(recipes, "empty_one", '"""Nothing."""\n')
    with raises_code("invalid-plugin", "empty_one", "0 recipes"):
        find_recipe("empty_one")


# --- Metrics --------------------------------------------------------------------------------------


@pytest.fixture
def keep_metrics() -> Iterator[None]:
    """Takes the metrics that a test registers out of the registry again."""
    names = set(METRIC)
    yield
    for name in set(METRIC) - names:
        del METRIC[name]


def write_sample(folder: Path, name: str, items: int) -> None:
    """Annotations and predictions of three members, as files."""
    rng = np.random.default_rng(len(name))
    share = rng.random(items)
    ids = [f"{name}-{i}" for i in range(items)]
    votes = np.where(rng.random((items, 5)) < share[:, None], "yes", "no").astype(object)
    people = Annotations.from_matrix(votes, items=ids, classes=["no", "yes"])
    write_annotations(people, folder / f"{name}.csv")
    members = [np.clip(share + rng.normal(0, s, items), 0.05, 0.95) for s in (0.1, 0.2, 0.8)]
    pool = Predictions.from_arrays(members, items=ids, classes=["no", "yes"], layout="KN")
    write_predictions(pool, folder / f"{name}.npz")


@pytest.mark.usefixtures("keep_metrics")
def test_a_new_metric_is_one_entry_and_is_shown_everywhere(tmp_path: Path) -> None:
    exec(compile(shown("Adding a metric"), "CONTRIBUTING.md", "exec"), {"__name__": "new_metric"})
    write_sample(tmp_path, "dev", 40)
    write_sample(tmp_path, "test", 30)
    dev = ("--predictions", tmp_path / "dev.npz", "--annotations", tmp_path / "dev.csv")
    test = (tmp_path / "test.npz", tmp_path / "test.csv")
    quick = ("--bootstrap", 50)

    ensemble = tmp_path / "ensemble"
    answer("fit", *dev, "--out", ensemble)
    how = ("--ensemble", ensemble, "--predictions", test[0], "--annotations", test[1])
    evaluated = answer("evaluate", *how, *quick)
    p = EDOEnsemble.load(ensemble).predict_proba(read_predictions(test[0]))
    q = read_annotations(test[1]).soft_labels
    distance = np.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum(axis=1) / 2).mean()
    assert evaluated["hellinger"] == pytest.approx(distance)
    low, high = evaluated["intervals"]["hellinger"]
    assert low < distance < high
    assert evaluated["best_possible"]["hellinger"] == 0
    assert evaluated["constant"]["metrics"]["hellinger"] > distance
    assert "Hellinger distance ↓" in edo("evaluate", *how, *quick).stdout

    out = tmp_path / "comparison"
    how = (*dev, "--test-predictions", test[0], "--test-annotations", test[1], "--methods", "edo")
    compared = answer("compare", *how, *quick, "--out", out)
    methods = {method["name"]: method for method in compared["methods"]}
    assert methods["edo"]["hellinger"] == pytest.approx(distance)
    assert methods["edo"]["against_constant"]["hellinger"]["difference"] < 0
    assert "HD ↓" in edo("compare", *how, *quick).stdout

    page = (out / "report.html").read_text(encoding="utf-8")
    assert "HD: Hellinger distance" in page
    assert f"{distance:.4f}" in page
    assert "| Hellinger distance, HD | `hellinger` | distance of the square" in metric_table.table()


@pytest.mark.usefixtures("keep_metrics")
@pytest.mark.parametrize(
    ("formula", "words"),
    [
        pytest.param(lambda p, q, y: np.abs(p - q), "(3, 2)", id="a-value-per-class"),
        pytest.param(lambda p, q, y: np.abs(p - q).mean(), "()", id="their-mean"),
        pytest.param(lambda p, q, y: np.abs(p - q)[1:, 0], "(2,)", id="an-item-too-few"),
        pytest.param(lambda p, q, y: 1 / p[:, 0], "inf for 1 of 3", id="infinite"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_formula_that_returns_no_value_per_item_is_refused(
    formula: ItemFormula, words: str
) -> None:
    register_metric(replace(METRIC["md"], name="theirs", formula=by_row(formula), main=()))
    p = np.array([[0.0, 1.0], [0.4, 0.6], [0.7, 0.3]])
    with raises_code("invalid-plugin", "'theirs'", words):
        compute_metrics(p, q=p, y=[1, 1, 0])


@pytest.mark.usefixtures("keep_metrics")
def test_a_metric_that_cannot_be_shown_is_refused() -> None:
    known = METRIC["md"]
    with raises_code("taken-name", "'md'"):
        register_metric(known)
    with raises_code("invalid-plugin"):
        register_metric(replace(METRIC["entropy_correlation"], name="ranks"))
    with raises_code("invalid-plugin"):
        replace(METRIC["ece"], main=("nominal",))
    with raises_code("invalid-plugin"):
        replace(METRIC["w1"], main=("nominal",))
    with raises_code("unknown-choice", "main", "'nominel'"):
        replace(METRIC["w1"], main=("nominel",))
    with raises_code("invalid-name", "'hellinger distance'"):
        replace(known, name="hellinger distance")


def test_the_table_of_metrics_is_what_the_registry_holds() -> None:
    written = metric_table.PAGE.read_text(encoding="utf-8")
    assert written == metric_table.page(written), "run python tools/metric_table.py"


# --- Baselines ------------------------------------------------------------------------------------


@pytest.fixture
def keep_methods() -> Iterator[None]:
    """Takes the methods that a test registers out of the registry again."""
    names = set(method_names())
    yield
    for name in set(METHODS) - names:
        del METHODS[name]


@pytest.mark.usefixtures("keep_methods")
def test_a_new_baseline_is_one_file_and_is_compared(shelve: Shelve, tmp_path: Path) -> None:
    shelve(methods, "two_best", shown("Adding a baseline"))
    assert "two-best" in method_names()
    assert make_method("two-best").__class__.__name__ == "TwoBest"

    write_sample(tmp_path, "dev", 40)
    write_sample(tmp_path, "test", 30)
    dev = ("--predictions", tmp_path / "dev.npz", "--annotations", tmp_path / "dev.csv")
    test = (
        "--test-predictions",
        tmp_path / "test.npz",
        "--test-annotations",
        tmp_path / "test.csv",
    )
    compared = answer("compare", *dev, *test, "--methods", "two-best", "--bootstrap", 20)
    weights = {method["name"]: method["weights"] for method in compared["methods"]}
    assert list(weights) == ["constant", "uniform", "two-best"]
    assert sorted(weights["two-best"].values()) == [0, 0.5, 0.5]


# --- Readers --------------------------------------------------------------------------------------


def test_a_new_reader_is_one_file_and_is_read(
    shelve: Shelve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelve(datasets, "tally", shown("Adding a reader"))
    monkeypatch.setitem(sources.SOURCES, "tally", (".tally",))
    path = tmp_path / "posts.tally"
    path.write_text("post-1 no no yes\npost-2 yes yes\n", encoding="utf-8")
    people = read_annotations(path)
    assert people.items.tolist() == ["post-1", "post-2"]
    np.testing.assert_allclose(people.soft_labels, [[2 / 3, 1 / 3], [0, 1]])
    assert read_annotations(path, format="tally").classes == ("no", "yes")
    with raises_code("inapplicable-option", "user_first", "'tally'"):
        read_annotations(path, user_first=True)
    path.write_text("post-1 no no\n\npost-2 yes Yes\n", encoding="utf-8")
    with raises_code("doubtful-spelling", "posts.tally", "line 3"):
        read_annotations(path)
    path.write_text("post-1 no no\n\npost-2\n", encoding="utf-8")
    with raises_code("missing-value", "posts.tally: item 'post-2' in line 3"):
        read_annotations(path)
    path.write_text("\n\n", encoding="utf-8")
    with raises_code("no-rows", "posts.tally"):
        read_annotations(path)
    path.write_text("post-1 no no yes\n\npost-2 yes yes\n", encoding="utf-8")
    described = answer("data", "info", path)
    assert sum(part["items"] for part in described["splits"].values()) == 2


# --- What people read -----------------------------------------------------------------------------


def test_help_names_everything_that_the_registries_hold() -> None:
    pages = ROOT / "docs" / "commands"
    for page, names in (
        ("train.md", recipe_names()),
        ("compare.md", method_names()),
        ("data-info.md", [source.name for source in sources.sources()]),
        ("data-get.md", DATASETS),
    ):
        text = (pages / page).read_text(encoding="utf-8")
        assert [name for name in names if name not in text] == [], page
