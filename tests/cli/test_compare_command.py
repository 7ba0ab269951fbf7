"""`edo compare` as people type it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from commands import answer, assert_one_line, edo, printed
from edokit import Annotations, Predictions, compare, write_predictions
from edokit._io.digests import digest_input
from edokit._io.tables import write_table
from edokit.runs.record import RunRecord
from tests.errors import raises_code

METHODS = "top-5,greedy,linear-pool,edo"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with people.csv (splits dev and test), dev.npz and test.npz."""
    rng = np.random.default_rng(0)
    table: dict[str, list[object]] = {"item": [], "annotator": [], "label": [], "split": []}
    for split, count in (("dev", 40), ("test", 30)):
        share = rng.beta(0.7, 0.9, size=count)
        names = [f"{split}-{i}" for i in range(count)]
        for name, p in zip(names, share, strict=True):
            for a in range(5):
                table["item"].append(name)
                table["annotator"].append(f"ann{a}")
                table["label"].append("yes" if rng.random() < p else "no")
                table["split"].append(split)
        columns = [np.clip(share + rng.normal(scale=s, size=count), 0.02, 0.98) for s in (0.1, 0.4)]
        columns.append(rng.uniform(0.02, 0.98, size=count))
        predictions = Predictions.from_arrays(
            np.stack(columns, axis=1),
            items=names,
            members=["good", "fair", "noise"],
            classes=["no", "yes"],
            layout="NK",
        )
        write_predictions(predictions, tmp_path / f"{split}.npz")
    write_table(Annotations.from_table(table).to_table(), tmp_path / "people.csv")
    return tmp_path


def words(files: Path, *more: object) -> list[object]:
    return [
        *("compare", "--predictions", files / "dev.npz", "--annotations", files / "people.csv"),
        *("--split", "dev", "--test-predictions", files / "test.npz", "--test-split", "test"),
        *("--bootstrap", "100", *more),
    ]


def test_compare_answers_in_the_promised_shape(files: Path) -> None:
    extra = f"again={files / 'dev.npz'},{files / 'test.npz'}"
    told = answer(*words(files, "--methods", METHODS, "--extra", extra))
    names = [method["name"] for method in told["methods"]]
    assert names == [
        "constant",
        "uniform",
        *METHODS.split(","),
        "again",
        "edo:again",
    ]
    for method in told["methods"]:
        assert all(isinstance(method[metric], float) for metric in ("f1", "ce", "md", "bs"))
    again = {method["name"]: method["ce"] for method in told["methods"]}
    assert again["again"] == again["uniform"]


def test_slow_methods_run_when_asked_for(files: Path) -> None:
    from edokit.analysis.compare.method import method_names
    from edokit.analysis.compare.methods.wel import WEL

    slow = ["wel", "wel-ce"]
    told = answer(*words(files))
    named = [method["name"] for method in told["methods"]]
    assert named == [name for name in method_names() if name not in slow]
    assert [left_out["name"] for left_out in told["skipped"]] == slow
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WEL.__init__, "__kwdefaults__", {**WEL.__init__.__kwdefaults__, "trials": 1})
        everything = answer(*words(files, "--methods", "all"))
        one = answer(*words(files, "--methods", "wel,edo"))
    assert [method["name"] for method in everything["methods"]] == method_names()
    assert [method["name"] for method in one["methods"]] == ["constant", "uniform", "wel", "edo"]
    assert everything["skipped"] == one["skipped"] == []


def test_progress_names_the_method_in_work(files: Path) -> None:
    steps: list[tuple[int, int, str]] = []
    found = compare(
        *(files / name for name in ("dev.npz", "people.csv", "test.npz")),
        split="dev",
        test_split="test",
        methods=["greedy"],
        samples=0,
        progress=lambda *step: steps.append(step),
    )
    assert [name for *_, name in steps] == [*(score.name for score in found.scores), "done"]
    assert [done for done, *_ in steps] == list(range(4))


def test_a_split_that_was_forgotten_is_named(files: Path) -> None:
    given = words(files)
    where = given.index("--test-split")
    done = edo(*given[:where], *given[where + 2 :])
    assert done.returncode == 2
    assert "of the test data" in done.stderr
    assert "--test-split test" in done.stderr


def test_compare_prints_a_table_for_the_terminal(files: Path) -> None:
    done = edo(*words(files, "--methods", "edo"))
    assert done.returncode == 0, done.stderr
    assert "evaluated on 30" in done.stdout
    assert "edo" in done.stdout


def test_a_run_folder_can_be_read_again(files: Path) -> None:
    run = files / "run"
    told = answer(*words(files, "--methods", "edo", "--out", run))
    assert json.loads((run / "compare" / "methods.json").read_text()) == told
    record = RunRecord.load(run)
    assert record.command == " ".join(map(str, ["edo", *sys.argv[1:]])) or record.command
    assert len(record.annotations("test_annotations", run).items) == 30
    assert record.predictions("test_predictions", run).members == ("good", "fair", "noise")
    assert record.inputs["predictions"].sha256 == digest_input(files / "dev.npz")


def test_a_comparison_without_intervals_has_a_page_with_its_items(files: Path) -> None:
    answer(*words(files, "--methods", "edo", "--bootstrap", "0", "--out", files / "run"))
    assert answer("report", files / "run", "--json")["missing"] == []


def test_the_test_people_may_stand_in_a_file_of_their_own(files: Path) -> None:
    told = answer(
        *("compare", "--predictions", files / "dev.npz", "--annotations", files / "people.csv"),
        *("--split", "dev", "--test-predictions", files / "test.npz", "--methods", "edo"),
        *("--test-annotations", files / "people.csv", "--test-split", "test", "--bootstrap", "0"),
    )
    assert told["items"] == {"dev": 40, "test": 30}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--methods", "nonsense"], "'uniform'"),
        (["--extra", "soft-ce"], "NAME=DEV,TEST"),
        (["--extra", "soft-ce=a.npz,b.npz,c.npz"], "two files"),
        (["--extra", "two=a.npz,b.npz"], "there is no file"),
        (["--test-split", "dev"], "of the test data"),
    ],
)
def test_wrong_words_get_one_line(files: Path, more: list[str], said: str) -> None:
    assert_one_line(edo(*words(files, *more)), said)


def test_a_training_wants_a_folder_without_other_runs(files: Path) -> None:
    where = ("--annotations", files / "people.csv", "--split", "dev", "--out", files / "fitted")
    assert edo("fit", "--predictions", files / "dev.npz", *where).returncode == 0
    assert edo(*words(files, "--methods", "top-5", "--out", files / "compared")).returncode == 0
    for held, name in (("a fitted ensemble", "fitted"), ("a comparison", "compared")):
        with raises_code("existing-folder", held):
            printed("train", files / "people.csv", "--out", files / name)
        assert not (files / name / "members").exists()


def test_evaluate_by_an_item_column(files: Path) -> None:
    table = pd.read_csv(files / "people.csv", dtype=str)
    table["lang"] = [("en", "it")[int(item.split("-")[1]) % 2] for item in table["item"]]
    table.to_csv(files / "people.csv", index=False)
    told = answer(*words(files, "--methods", "edo", "--out", files / "run"))
    given = ("--annotations", files / "people.csv", "--split", "test", "--bootstrap", "100")
    pooled = ("--ensemble", files / "run" / "ensemble", "--predictions", files / "test.npz")
    found = answer("evaluate", *pooled, *given, "--by", "lang", "--train-split", "dev")
    assert [method["name"] for method in found["methods"]] == ["edo", "uniform", "constant"]
    assert found["constant"]["source"] == "train"
    edo_row = next(method for method in told["methods"] if method["name"] == "edo")
    assert found["ce"] == pytest.approx(edo_row["ce"])
    assert [(one["value"], one["items"]) for one in found["slices"]] == [("en", 15), ("it", 15)]
    by_slice = [one["methods"][0]["ce"] for one in found["slices"]]
    assert sum(by_slice) / 2 == pytest.approx(edo_row["ce"])
    shown = edo("evaluate", *pooled, *given, "--by", "lang").stdout
    assert "lang: it" in shown
    assert "constant: the shares of the items of the fit" in shown
    with raises_code("missing-column", "'lnag'", "'lang'"):
        printed("evaluate", *pooled, *given, "--by", "lnag")
    assert_one_line(edo("evaluate", *given), "--probabilities")
