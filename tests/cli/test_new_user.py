"""What a person meets who uses the commands one after the other, in folders with a history."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from commands import answer, assert_one_line, edo, printed
from edokit import Annotations, Predictions, read_predictions, simulate, write_predictions
from edokit._errors import option
from edokit._io.tables import write_table
from edokit.cli.app import Options, make_app
from edokit.rows import Rows
from tests.errors import raises_code

SIZES = (60, 40, 30)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """data.csv with all splits, dev.npz, test.npz and a folder of dev's shards."""
    folder = tmp_path_factory.mktemp("shelf")
    simulation = simulate("partial-panel", random_state=0, items=SIZES)
    people = simulation.annotations
    truth = simulation.truth[:, 1]
    write_table(people.to_table(), folder / "data.csv")
    rng = np.random.default_rng(0)
    for split in ("dev", "test"):
        rows = simulation.rows(split)
        noise = rng.normal(scale=(0.05, 0.3, 0.3), size=(int(np.size(truth[rows])), 3))
        pool = Predictions.from_arrays(
            np.clip(truth[rows][:, None] + noise, 0.02, 0.98),
            items=people.items[rows],
            members=["good", "fair", "odd"],
            classes=people.classes,
            layout="NK",
        )
        write_predictions(pool, folder / f"{split}.npz")
        if split == "dev":
            for number, part in enumerate(np.array_split(np.arange(len(pool)), 2)):
                write_predictions(pool.take(part), folder / "shards" / f"part-{number}.npz")
    return folder


def words(shelf: Path, *more: object, predictions: str = "dev.npz") -> list[object]:
    learn = ("--predictions", shelf / predictions, "--annotations", shelf / "data.csv")
    return [*learn, "--split", "dev", *more]


def search(shelf: Path, out: Path, trials: int, *more: object) -> list[object]:
    more = ("--out", out, "--trials", trials, "--population", 4, "--folds", 0, *more)
    return ["search", *words(shelf, *more)]


# A search that is resumed


def test_a_search_says_what_had_been_done_before(shelf: Path, tmp_path: Path) -> None:
    first = edo(*search(shelf, tmp_path / "run", 4, "--no-report"))
    assert "before" not in first.stdout
    more = edo(*search(shelf, tmp_path / "run", 6, "--no-report"))
    assert "4 of these had been done before." in more.stdout
    again = edo(*search(shelf, tmp_path / "run", 6, "--no-report"))
    assert "6 of these had been done before; to continue, ask for more trials." in again.stdout
    assert answer(*search(shelf, tmp_path / "run", 4, "--no-report"))["done_before"] == 4
    fewer = edo(*search(shelf, tmp_path / "run", 4, "--no-report"))
    assert "4 of these had been done before; to continue, ask for more trials." in fewer.stdout


def test_a_streamed_search_has_a_page_and_says_why_it_shows_no_items(
    shelf: Path, tmp_path: Path
) -> None:
    more = ("--stream", "--out", tmp_path / "run", "--trials", 2, "--population", 2, "--folds", 0)
    done = edo("search", *words(shelf, *more, predictions="shards"))
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "were read shard by shard." in page


# Folders that hold something already


def test_a_fit_replaces_an_ensemble(shelf: Path, tmp_path: Path) -> None:
    out = tmp_path / "ensemble"
    fit = ["fit", *words(shelf, "--out", out)]
    assert edo(*fit).returncode == 0
    first = (out / "ensemble.json").read_bytes()
    assert edo(*fit).returncode == 0
    assert (out / "ensemble.json").read_bytes() == first
    assert edo(*fit, "--ce", "all").returncode == 0
    assert (out / "ensemble.json").read_bytes() != first
    (out / "ensemble.json").write_text("{}", encoding="utf-8")
    with raises_code("existing-folder", str(out), "overwrite"):
        printed(*fit)
    assert edo(*fit, "--overwrite").returncode == 0


def test_a_fit_a_search_and_a_comparison_keep_out_of_each_others_folders(
    shelf: Path, tmp_path: Path
) -> None:
    fitted = tmp_path / "fitted"
    searched = tmp_path / "searched"
    assert edo("fit", *words(shelf, "--out", fitted / "ensemble")).returncode == 0
    assert edo(*search(shelf, searched, 2, "--no-report")).returncode == 0
    before = (fitted / "ensemble" / "ensemble.json").read_bytes()
    with raises_code("existing-folder", str(fitted), "overwrite"):
        printed(*search(shelf, fitted, 2))
    assert (fitted / "ensemble" / "ensemble.json").read_bytes() == before
    with raises_code("existing-folder", str(searched)):
        printed("fit", *words(shelf, "--out", searched))
    test = ("--test-predictions", shelf / "test.npz", "--test-split", "test")
    compared = ["compare", *words(shelf, *test, "--methods", "top-5", "--bootstrap", 0)]
    with raises_code("existing-folder", str(fitted), "overwrite"):
        printed(*compared, "--out", fitted)


# Training


def test_a_single_class_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    rows = [("train", 8), ("dev", 4)]
    with (tmp_path / "one.csv").open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["item", "annotator", "label", "split", "text"])
        for split, count in rows:
            table.writerows(
                [f"{split}-{i}", "ann", "no", split, f"tea number {i}"] for i in range(count)
            )
    with raises_code("too-few-classes", "'no'", "classes=['no', 'yes']"):
        printed("train", tmp_path / "one.csv", "--members", 2, "--out", tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_members_that_are_not_asked_for_are_told_of_and_kept(shelf: Path, tmp_path: Path) -> None:
    train = ["train", shelf / "data.csv", "--out", tmp_path / "m", "--jobs", 1, "--members"]
    done = edo(*train, 3)
    assert f"Predictions: {tmp_path / 'm' / 'predictions' / 'dev.npz'}" in "".join(
        done.stdout.split("\n")
    )
    fewer = edo(*train, 2)
    assert "linear-03" in fewer.stderr
    assert (tmp_path / "m" / "members" / "linear-03").is_dir()
    assert "also holds" not in edo(*train, 3).stderr
    other = edo(*train[:-1], "--recipe", "linear:1", "--option", "c=3")
    assert "also holds" not in other.stderr  # refused, since linear-01 is another
    assert other.returncode == 2


# Classes that are nobody's hard label


@pytest.fixture
def rare(tmp_path: Path) -> Path:
    """A third class that one person chose once, and that no item has as its hard label."""
    rng = np.random.default_rng(0)
    for split, count in (("dev", 24), ("test", 20)):
        rows = []
        for i in range(count):
            said = ["yes" if rng.random() < 0.5 else "no" for _ in range(5)]
            if i == 0:
                said = ["no", "no", "no", "no", "maybe"]
            rows += [(f"{split}-{i}", f"ann{a}", label) for a, label in enumerate(said)]
        item, annotator, label = zip(*rows, strict=True)
        people = Annotations.from_table(
            {"item": item, "annotator": annotator, "label": label}, classes=["no", "yes", "maybe"]
        )
        write_table(people.to_table(), tmp_path / f"{split}.csv")
        pool = Predictions.from_arrays(
            rng.dirichlet([2.0, 2.0, 1.0], size=(count, 3)),
            items=people.items,
            members=["a", "b", "c"],
            classes=people.classes,
            layout="NKC",
        )
        write_predictions(pool, tmp_path / f"{split}.npz")
    return tmp_path


def rare_words(folder: Path) -> list[object]:
    dev = ("--predictions", folder / "dev.npz", "--annotations", folder / "dev.csv")
    return [*dev, "--classes", "no,yes,maybe"]


def test_a_class_without_a_weight_is_called_by_its_name(rare: Path) -> None:
    for solver in ("exact", "gumbel"):
        more = ("--solver", solver, "--out", rare / solver)
        fitted = edo("fit", *rare_words(rare), "--preset", "paper-fixed", *more)
        assert_one_line(fitted, "'maybe'", "--no-class-weights")
        found = edo("search", *rare_words(rare), "--trials", 2, *more)
        assert_one_line(found, "'maybe'", "--space class_weights=false")


def test_a_method_that_the_data_do_not_allow_does_not_cost_the_comparison(rare: Path) -> None:
    test = ("--test-predictions", rare / "test.npz", "--test-annotations", rare / "test.csv")
    methods = ("--methods", "linear-pool,edo-paper-fixed", "--bootstrap", 50)
    compare = ["compare", *rare_words(rare), *test, *methods]
    told = answer(*compare, "--out", rare / "out", "--no-report")
    assert [method["name"] for method in told["methods"]] == ["constant", "uniform", "linear-pool"]
    (skipped,) = told["skipped"]
    assert skipped["name"] == "edo-paper-fixed"
    assert "'maybe'" in skipped["reason"]
    shown = edo(*compare).stdout
    assert "Without edo-paper-fixed: class weights need every class" in shown
    assert edo("report", rare / "out").returncode == 0
    assert "Skipped: edo-paper-fixed: class weights" in (rare / "out" / "report.html").read_text(
        encoding="utf-8"
    )


# Words


@pytest.mark.parametrize(
    ("command", "reference", "words"),
    [
        ("fit", option("duplicates", "first"), "--duplicates first"),
        ("fit", option("groups", True), "--groups"),
        ("fit", option("groups", False), "--no-groups"),
        ("fit", option("max_members"), "--max-members"),
        ("fit", option("random_state", -1), "--seed -1"),
        ("fit", option("columns", {"item": "id"}), "--column item=id"),
        ("fit", option("classes", ["no", "yes"]), "--classes no,yes"),
        ("fit", option("classes", ["a,b", "c"]), "--classes '\"a,b\",c'"),
        (
            "fit",
            option("label_map", {"Rude": "rude", " no": "don't"}),
            """--label-map Rude=rude --label-map ' no=don'"'"'t'""",
        ),
        ("train", option("annotators", False), "--option annotators=false"),
        ("train", option("ties", "random"), "ties='random' in Python"),
        ("search", option("pool", "log"), "--space pool=log"),
        ("data info", option("question", "a b"), "--question 'a b'"),
        ("data info", option("unlabelled", "skip"), "unlabelled='skip' in Python"),
        ("predictions join", option("invalid", "normalize"), "--normalize"),
        ("predict", option("answer_for", "ce"), "--for ce"),
    ],
)
def test_references_are_shown_as_options_of_the_command(
    command: str, reference: str, words: str
) -> None:
    assert Options(make_app(), command.split()).render(f"give {reference}.") == f"give {words}."


def test_a_note_is_spelled_as_an_option_too(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("item,p_no,p_yes\nx,0.5,0.5\n", encoding="utf-8")
    table = "item,annotator,label\nx,ann1,no\nx,ann2,yes\n"
    (tmp_path / "tie.csv").write_text(table, encoding="utf-8")
    given = ("--probabilities", tmp_path / "p.csv", "--annotations", tmp_path / "tie.csv")
    assert "(--ties first)" in edo("evaluate", *given).stderr


def test_a_terminal_of_80_columns_gets_lines_of_80(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.console import Console

    monkeypatch.setattr(Console, "is_terminal", True)
    monkeypatch.setattr(Console, "width", 80)
    done = edo("diagnose", shelf / "data.csv")
    assert done.returncode == 0
    assert 70 < max(map(len, done.stdout.splitlines())) <= 80


def test_one_is_not_many(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("item,p_0,p_1\nx,0.5,0.5\n", encoding="utf-8")
    done = edo("predictions", "join", f"a={tmp_path / 'one.csv'}", "--out", tmp_path / "one.npz")
    assert "1 item, 1 member, classes" in done.stdout


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["trian"], 'Unknown command "trian". Did you mean "train"?'),
        (["train", "x.csv", "--split", "dev", "--out", "m"], "--split"),
        (["train", "x.csv", "--memebrs", "3", "--out", "m"], "did you mean --members"),
        (["train", "x.csv"], "edo: --out is missing."),
        (["train", "--out", "m"], "edo: DATA is missing."),
        (["train", "x.csv", "--out"], "edo: --out needs a value."),
        (
            ["fit", "--predictions", "--annotations", "x.csv", "--out", "m"],
            "but --annotations follows",
        ),
        (["plan", "x.csv", "--samples", "99"], "did you mean --bootstrap?"),
        (["plan", "x.csv", "--random-state", "9"], "did you mean --seed?"),
        (["demo", "extra"], "edo: unexpected argument 'extra'."),
    ],
)
def test_a_mistyped_word_gets_a_suggestion_and_the_help_of_its_command(
    words: list[str], line: str
) -> None:
    assert_one_line(edo(*words), line, f"See `edo {words[0] if words[1:] else ''}")


def test_an_option_unlike_all_others_gets_no_suggestion() -> None:
    # Of --split and --duplicates more than half of the letters are the same, with the hyphens.
    done = edo("train", "x.csv", "--out", "m", "--split", "dev")
    assert_one_line(done, "Unknown option: --split")
    assert "did you mean" not in done.stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["data", "simulate", "crowd", "x.csv", "--items", "100,50"], "--items 600,100,100"),
        (["data", "simulate", "crowd", "x.csv", "--items", "1.5"], "--items 1.5 is not a list"),
        (["plan", "x.csv", "--price", "cheap"], "--price cheap is not a number"),
        (["demo", "--members", "two"], "--members two is not a whole number"),
    ],
)
def test_a_value_that_is_no_number_is_refused_in_words_of_the_command_line(
    words: list[str], line: str
) -> None:
    done = edo(*words)
    assert_one_line(done, line)
    assert "pydantic" not in done.stderr


def test_a_misspelt_table_is_missing_for_a_run_as_for_all_commands(tmp_path: Path) -> None:
    done = edo("run", tmp_path / "vtoes.csv", "--out", tmp_path / "run")
    assert_one_line(done, "there is no file", "check the spelling")


def test_probabilities_in_place_of_a_run_are_no_run(shelf: Path) -> None:
    done = edo("evaluate", shelf / "p.csv", "--annotations", "labels.csv")
    assert_one_line(done, "--gate", f"--probabilities {shelf / 'p.csv'}")


def test_help_lists_no_choices_of_an_option_that_takes_others(tmp_path: Path) -> None:
    assert "choices: thorough" not in edo("search", "--help").stdout


def test_a_question_ends_in_one_mark(tmp_path: Path) -> None:
    table = tmp_path / "labels.csv"
    table.write_text("item,annotator,label\na,x,no\na,y,yes\n", encoding="utf-8")
    done = edo("data", "info", table, "--column", "label=Label")
    assert_one_line(done, "did you mean 'label'", "? For example: edo data info")


def test_tied_items_are_noted_once_a_file(shelf: Path, tmp_path: Path) -> None:
    for name, items in (("dev", "xyz"), ("test", "uvw")):
        table = "".join(f"{item},a,no\n{item},b,yes\n" for item in items)
        (tmp_path / f"{name}.csv").write_text(f"item,annotator,label\n{table}{name},a,no\n")
        array = np.random.default_rng(len(name)).dirichlet([1, 1], (4, 2))
        predictions = Predictions.from_arrays(
            array, items=[*items, name], members=["a", "b"], layout="NKC", classes=["no", "yes"]
        )
        write_predictions(predictions, tmp_path / f"{name}.npz")
    given = [f"--{which}{what}={tmp_path}/{name}.{ending}"
             for which, name in (("", "dev"), ("test-", "test"))
             for what, ending in (("predictions", "npz"), ("annotations", "csv"))]  # fmt: skip
    done = edo("compare", *given, "--methods", "uniform", "--bootstrap", "0")
    notes = [line for line in done.stderr.splitlines() if "tied" in line]
    assert len(notes) == 2
    assert "'x', 'y', 'z'" in notes[0]
    assert "'u', 'v', 'w'" in notes[1]


def test_a_source_is_not_replaced_by_what_is_made_of_it(shelf: Path) -> None:
    before = (shelf / "data.csv").read_bytes()
    for what in ("split", "convert"):
        with raises_code("overwritten-input", "data.csv"):
            printed("data", what, shelf / "data.csv", shelf / ".." / shelf.name / "data.csv")
    assert (shelf / "data.csv").read_bytes() == before
    before = (shelf / "dev.npz").read_bytes()
    with raises_code("overwritten-input", "dev.npz"):
        printed("predictions", "join", shelf / "dev.npz", "--logits", "--out", shelf / "dev.npz")
    assert (shelf / "dev.npz").read_bytes() == before


def test_judges_are_for_members_that_are_asked(shelf: Path, tmp_path: Path) -> None:
    assert edo("fit", *words(shelf, "--out", tmp_path / "e")).returncode == 0
    given = ("predict", tmp_path / "e", "--out", tmp_path / "p.csv", "--judges", shelf / "data.csv")
    with raises_code("inapplicable-option", "judges"):
        printed(*given, "--predictions", shelf / "dev.npz")
    train = ("train", shelf / "data.csv", "--out", tmp_path / "m", "--members", 2, "--jobs", 1)
    assert edo(*train).returncode == 0
    dev = tmp_path / "m" / "predictions" / "dev.npz"
    learn = ("--predictions", dev, "--annotations", shelf / "data.csv", "--split", "dev")
    assert edo("fit", *learn, "--no-people", "--out", tmp_path / "f").returncode == 0
    asked = ("--members", tmp_path / "m", "--texts", shelf / "data.csv", "--split", "dev")
    done = edo("predict", tmp_path / "f", "--out", tmp_path / "p.csv", *asked, *given[-2:])
    assert done.returncode == 0, done.stderr
    assert "know no annotators" in done.stderr


def test_simulated_items_are_not_taken_for_published_ones() -> None:
    people = simulate("partial-panel", random_state=0, items=(2, 1, 1)).annotations
    assert people.items.tolist() == ["sim-train-1", "sim-train-2", "sim-dev-1", "sim-test-1"]


# What a second look found


def test_a_demo_keeps_out_of_other_results(shelf: Path, tmp_path: Path) -> None:
    assert edo(*search(shelf, tmp_path / "run", 4, "--no-report")).returncode == 0
    with raises_code("existing-folder", str(tmp_path / "run")):
        printed("demo", "--out", tmp_path / "run")
    trained = edo("train", shelf / "data.csv", "--members", 2, "--out", tmp_path / "members")
    assert trained.returncode == 0
    with raises_code("existing-folder", str(tmp_path / "members")):
        printed("demo", "--out", tmp_path / "members")


def test_a_demo_is_not_run_for_a_place_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    for place in ("notes.txt", "notes.txt/demo"):
        with raises_code("not-a-folder", str(tmp_path / "notes.txt")):
            printed("demo", "--out", tmp_path / place)


def test_training_again_says_what_was_kept(shelf: Path, tmp_path: Path) -> None:
    command = ("train", shelf / "data.csv", "--members", 2, "--out", tmp_path / "members")
    first = edo(*command)
    assert "before" not in first.stdout
    assert "2 fits had been done before and were kept." in edo(*command).stdout
    shutil.rmtree(tmp_path / "members" / "members" / "linear-02")
    assert "1 fit had been done before and was kept." in edo(*command).stdout


@pytest.mark.parametrize("command", ["train", "search"])
def test_what_is_interrupted_says_what_is_kept(
    command: str, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("edokit.cli.train.train_members", interrupted)
    monkeypatch.setattr("edokit.cli.search.run_search", interrupted)
    given = ["--predictions", shelf / "dev.npz", "--annotations"] if command == "search" else []
    ended = edo(command, *given, shelf / "data.csv", "--out", tmp_path / "out")
    assert ended.returncode == 130
    assert "what is finished is kept; run the same command again to resume" in ended.stderr


def test_items_without_predictions_are_left_out_by_a_command_that_the_error_names(
    shelf: Path, tmp_path: Path
) -> None:
    pool = read_predictions(shelf / "dev.npz")
    few = tmp_path / "few.npz"
    write_predictions(pool.take(np.arange(2, len(pool))), few)
    learn = ["fit", "--predictions", few, "--split", "dev", "--out", tmp_path / "out"]
    with raises_code("items-differ", "edo data convert ANNOTATIONS OUT --items PREDICTIONS"):
        printed(*learn, "--annotations", shelf / "data.csv")
    kept = tmp_path / "kept.csv"
    made = edo("data", "convert", shelf / "data.csv", kept, "--items", few)
    assert f"of {len(pool) - 2} items" in made.stdout
    assert f"{sum(SIZES) - len(pool) + 2} of {sum(SIZES)} items are left out" in made.stdout
    assert edo(*learn, "--annotations", kept).returncode == 0
    other = tmp_path / "other.npz"
    write_predictions(replace(pool, rows=Rows.from_names(pool.items + "x")), other)
    with raises_code("unknown-item", "data.csv", "other.npz"):
        printed("data", "convert", shelf / "data.csv", tmp_path / "no.csv", "--items", other)
