"""A recipe, a baseline and a dataset are one file each: the examples in CONTRIBUTING prove it.

A folder with the new file joins the package's own, so nothing is written into the source tree.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from commands import answer
from edokit import Annotations, Predictions, datasets, read_annotations
from edokit._errors import InputError
from edokit.analysis.compare import compare
from edokit.analysis.compare import method as methods
from edokit.analysis.compare.method import make_method, method_names
from edokit.datasets import read as sources
from edokit.datasets.get import DATASETS
from edokit.members import recipes
from edokit.members.recipe import find_recipe, recipe_names

ROOT = Path(__file__).resolve().parent.parent
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
        "encoder",
        "linear",
        "llm",
        "nearest",
        "shares",
        "sklearn",
        "transformer",
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

    texts, again = tmp_path / "people.csv", tmp_path / "again.npz"
    answer("score", "--members", out, "--texts", texts, "--out", again)
    assert np.load(again)["probabilities"].shape == (3, 2, 2)


def test_a_file_of_recipes_holds_one_class(shelve: Shelve) -> None:
    shelve(recipes, "empty_one", '"""Nothing."""\n')
    with pytest.raises(InputError, match=r"empty_one holds 0 classes"):
        find_recipe("empty_one")


# --- Baselines ------------------------------------------------------------------------------------


def test_a_new_baseline_is_one_class_and_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "METHODS", dict(methods.METHODS))
    exec(compile(shown("Adding a baseline"), "CONTRIBUTING.md", "exec"), {"__name__": "two_best"})
    assert "two-best" in method_names()
    assert make_method("two-best").__class__.__name__ == "TwoBest"

    rng = np.random.default_rng(0)

    def sample(name: str) -> tuple[Predictions, Annotations]:
        share = rng.random(40)
        items = [f"{name}-{i}" for i in range(40)]
        said = np.where(rng.random((40, 5)) < share[:, None], "yes", "no").astype(object)
        members = [np.clip(share + rng.normal(0, s, 40), 0.05, 0.95) for s in (0.1, 0.2, 0.8)]
        people = Annotations.from_matrix(said, items=items, classes=["no", "yes"])
        pool = Predictions.from_arrays(members, items=items, classes=["no", "yes"], layout="KN")
        return pool, people

    found = compare(*sample("dev"), *sample("test"), methods=["two-best"], samples=20)
    assert [score.name for score in found.scores] == ["constant", "uniform", "two-best"]


# --- Datasets -------------------------------------------------------------------------------------


def test_a_new_dataset_is_one_file_and_is_read(
    shelve: Shelve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelve(datasets, "tally", shown("Adding a dataset"))
    monkeypatch.setitem(sources.SOURCES, "tally", (".tally",))
    path = tmp_path / "posts.tally"
    path.write_text("post-1 no no yes\npost-2 yes yes\n", encoding="utf-8")
    people = read_annotations(path)
    assert people.items.tolist() == ["post-1", "post-2"]
    np.testing.assert_allclose(people.soft_labels, [[2 / 3, 1 / 3], [0, 1]])
    assert read_annotations(path, format="tally").classes == ("no", "yes")
    with pytest.raises(InputError, match=r"user_first is not an option of the format 'tally'"):
        read_annotations(path, user_first=True)
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
