"""The command line: what people type, what they see, and one line when something is wrong."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from cyclopts import App

import edokit
from commands import Done, answer, assert_one_line, edo, printed
from edokit import read_predictions
from edokit._io.tables import read_table
from edokit.cli.app import COMMANDS, make_app
from edokit.cli.console import print_table
from tests.errors import raises_code

ANNOTATIONS = """item,annotator,label,text
a,ann1,no,nice weather in the north
a,ann2,no,nice weather in the north
a,ann3,yes,nice weather in the north
b,ann1,yes,the referee should go home
b,ann2,yes,the referee should go home
b,ann3,yes,the referee should go home
c,ann1,no,trains are late again
c,ann2,yes,trains are late again
c,ann3,no,trains are late again
"""
PROBABILITIES = """item,p_no,p_yes
c,0.6,0.4
a,0.7,0.3
b,0.1,0.9
"""


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(ANNOTATIONS, encoding="utf-8")
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.csv"
    path.write_text(PROBABILITIES, encoding="utf-8")
    return path


def test_help_names_every_command() -> None:
    done = edo("--help")
    assert done.returncode == 0
    for command in ("demo", "data", "predictions", "evaluate"):
        assert command in done.stdout


def test_help_lists_the_first_line_of_every_command() -> None:
    app = make_app()
    for name, summary in COMMANDS.items():
        command = reduce(App.__getitem__, name.split(), app)
        assert (inspect.getdoc(command.default_command) or "").startswith(summary), name


def test_help_imports_nothing_heavy() -> None:
    heavy = "{'numpy', 'pandas', 'pyarrow', 'sklearn', 'scipy', 'torch', 'optuna', 'altair'}"
    code = (
        "import sys\nfrom edokit.cli import main\nsys.argv = ['edo', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print(sorted({heavy} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_the_installed_script_ends_with_the_exit_code(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("edo")
    done = subprocess.run(
        [script, "data", "info", tmp_path / "nowhere.csv"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert_one_line(Done(done.returncode, done.stdout, done.stderr), "nowhere.csv")


def test_version_is_the_packages() -> None:
    from edokit import __version__

    assert edo("--version").stdout == f"edo {__version__}\n"


def test_evaluate_gives_the_metrics_of_the_matched_items(people: Path, model: Path) -> None:
    result = answer("evaluate", "--probabilities", model, "--annotations", people)
    assert result["f1"] == 1.0
    # |0.7 - 2/3| and |0.1 - 0| and |0.6 - 2/3|, twice each, over three items.
    assert result["md"] == pytest.approx(2 * (0.7 - 2 / 3 + 0.1 + 2 / 3 - 0.6) / 3)
    assert result["intervals"]["ce"] == [None, None]  # three items are too few
    assert {row["annotator"] for row in result["annotators"]} == {"ann1", "ann2", "ann3"}


def test_evaluate_shows_a_table(people: Path, model: Path) -> None:
    done = edo("evaluate", "--probabilities", model, "--annotations", people)
    assert done.returncode == 0
    assert "cross-entropy" in done.stdout
    assert "interval" in done.stdout


def test_data_info_counts_hard_labels(people: Path) -> None:
    result = answer("data", "info", people)
    (part,) = result["splits"].values()
    assert part["items"] == 3
    assert part["annotators"] == 3
    assert part["annotations_per_item"] == [3, 3]
    assert part["classes"] == {"no": 2, "yes": 1}


def test_convert_and_split_keep_every_column(tmp_path: Path) -> None:
    source, middle, last = (tmp_path / name for name in ("rows.csv", "rows.jsonl", "rows.parquet"))
    rows = [f"{i},{who},{i % 2},{'en' if i % 3 else 'it'},{i}" for i in range(20) for who in "xy"]
    source.write_text("\n".join(["item,annotator,label,lang,seconds", *rows]), encoding="utf-8")
    shown = answer("data", "convert", source, middle)["columns"]
    assert shown == ["item", "annotator", "label", "lang", "seconds"]
    answer("data", "split", middle, last)
    before = read_table(source).to_pylist()
    after = read_table(last).to_pylist()
    assert [
        {**row, "split": kept["split"]} for row, kept in zip(before, after, strict=True)
    ] == after


def test_convert_keeps_everything(people: Path, tmp_path: Path) -> None:
    for ending in (".parquet", ".jsonl", ".csv", ".tsv"):
        out = tmp_path / f"converted{ending}"
        assert answer("data", "convert", people, out)["annotations"] == 9
        assert answer("data", "info", out) == answer("data", "info", people)


def test_labels_that_need_a_decision_are_asked_for_once(tmp_path: Path) -> None:
    source = tmp_path / "rows.csv"
    lines = ["a,x,rude", "a,y,Rude", "b,x,calm", "b,y,rude", "c,x,calm;rude"]
    source.write_text("\n".join(["item,annotator,label", *lines]), encoding="utf-8")
    several = edo("data", "info", source)
    assert several.returncode == 2
    assert "rows.csv: 2 decisions are open" in several.stderr
    assert "row 6 has a set of labels" in several.stderr
    assert "--scale multi-label --ignore-case" in several.stderr
    sets = ("--scale", "multi-label")
    twice = edo("data", "info", source, *sets)
    assert "'Rude' (1 row, first row 3) and 'rude' (3 rows, first row 2)" in twice.stderr
    assert "--label-map Rude=rude" in twice.stderr
    given = (*sets, "--label-map", "Rude=rude")
    assert answer("data", "info", source, *given)["classes"] == ["calm", "rude"]
    apart = ("--classes", "calm,rude,Rude,calm;rude")
    assert len(answer("data", "info", source, *apart)["classes"]) == 4


@pytest.mark.parametrize("command", [("data", "info"), ("run", "--out", "run")])
def test_every_decision_is_listed_once_below_the_name_of_the_file(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    source = tmp_path / "rows.csv"
    lines = ["a,x,no,no", "a,y,no,no", "b,x,no,yes", "b,y,yes,yes"]
    source.write_text("\n".join(["item,annotator,label,hard_label", *lines]), encoding="utf-8")
    answered = edo(*command, source, "--classes", "no")
    assert answered.returncode == 2
    assert "rows.csv: 2 decisions are open" in answered.stderr
    assert "\n2. item 'b' has hard label 'yes'" in answered.stderr


def test_split_gives_every_item_one_split(tmp_path: Path) -> None:
    rows = ["item,annotator,label,text"]
    for i in range(60):
        for annotator in "xyz":
            rows.append(f"{i},{annotator},{i % 2},post number {i} about topic {i * 7}")
    source = tmp_path / "rows.csv"
    source.write_text("\n".join(rows), encoding="utf-8")
    out = tmp_path / "split.csv"
    result = answer("data", "split", source, out, "--into", "train=0.5,dev=0.25,test=0.25")
    sizes = {name: part["items"] for name, part in result["splits"].items()}
    assert sum(sizes.values()) == 60
    assert sizes == {"train": 30, "dev": 15, "test": 15}
    assert answer("data", "info", out, "--split", "dev")["items"] == 15
    again = tmp_path / "again.csv"
    assert answer("data", "split", out, again)["splits"] == result["splits"]
    moved = answer(
        *("data", "split", out, again, "--overwrite"),
        *("--from", "dev", "--into", "train=0.9,dev=0.1"),
    )["splits"]
    assert {name: part["items"] for name, part in moved.items()} == {
        "train": 44,
        "dev": 1,
        "test": 15,
    }
    with raises_code("repeated-option", "'dev'"):
        printed("data", "split", source, again, "--into", "train=0.5,dev=0.5,dev=0.5")


def test_join_and_info_put_models_side_by_side(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "joined.npz"
    result = answer(
        "predictions", "join", model, f"second={model}", "--out", out, "--group", "second=big"
    )
    assert result["members"] == ["model", "second"]
    info = answer("predictions", "info", out)
    assert info["items"] == 3
    assert [member["group"] for member in info["members"]] == ["", "big"]
    assert info["members"][0]["mean"]["yes"] == pytest.approx(1.6 / 3)
    shown = edo("predictions", "info", out)
    assert "second" in shown.stdout


def test_join_takes_logits_names_and_gaps_file_by_file(tmp_path: Path) -> None:
    soft, raw, out = (tmp_path / name for name in ("soft.csv", "raw.csv", "out.npz"))
    soft.write_text("item,p_no,p_yes\na,0.78,0.22\nb,0.5,0.5\nc,1,0\n", encoding="utf-8")
    raw.write_text("nr,No,p_yes\nb,-1,2\na,0,0\n", encoding="utf-8")
    names = ("--column", "item=nr", "--column", "p_No=No", "--label-map", "No=no", "--out", out)
    with raises_code("not-logits", "soft.csv", "FILE:logits"):
        printed("predictions", "join", soft, raw, *names, "--logits")
    with raises_code("invalid-probabilities", "member 'b'", "FILE:logits"):
        printed("predictions", "join", soft, f"b={raw}", *names)
    with raises_code("items-differ", "b (", "1 of 3", "'c'", "missing='drop'"):
        printed("predictions", "join", soft, f"b={raw}:logits", *names)
    done = edo("predictions", "join", soft, f"b={raw}:logits", *names, "--missing", "drop")
    assert done.returncode == 0
    assert "1 of 3 items is left out for every member (--missing drop): 'c'" in done.stderr
    joined = read_predictions(out)
    assert joined.members == ("soft", "b")
    assert joined.probabilities[0].tolist() == [[0.78, 0.22], [0.5, 0.5]]
    answer("predictions", "join", f"x={out}", f"y={out}", "--out", tmp_path / "two.npz")
    assert read_predictions(tmp_path / "two.npz").members == ("x-soft", "x-b", "y-soft", "y-b")


def test_info_on_eleven_classes_fits_into_a_terminal(tmp_path: Path) -> None:
    classes = [str(c) for c in range(-5, 6)]
    lines = ["item," + ",".join(f"p_{name}" for name in classes)]
    lines += [f"{i},0.5," + ",".join(["0.05"] * 10) for i in range(3)]
    (tmp_path / "m.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    answer("predictions", "join", tmp_path / "m.csv", "--out", tmp_path / "p.npz")
    shown = edo("predictions", "info", tmp_path / "p.npz").stdout.splitlines()
    table = shown[1:]  # the first line holds the path
    assert max(map(len, table)) <= 80
    means = answer("predictions", "info", tmp_path / "p.npz")["members"][0]["mean"]
    assert means == pytest.approx(dict(zip(classes, [0.5, *[0.05] * 10], strict=True)))


def test_names_stay_whole_in_a_table_that_goes_into_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    name = "tfidf-random-select-01-words-and-characters"
    print_table("methods", ["name", "ce"], [[name, 0.5]])
    assert name in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["is empty"]),
        ("item,annotator\na,b\n", ["'label'", "--column"]),
        ("item,annotator,label\na,b,c\na,b,d\n", ["row 3", "duplicates"]),
        ("item,annotator,label\na,b,c\na,b\n", ["row 3", "Expected 3 columns, got 2"]),
        ("item,annotator,label\na,,\n", ["'annotator'", "is empty in row 2"]),
    ],
)
def test_bad_annotations_get_one_line(content: str, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content, encoding="utf-8")
    assert_one_line(edo("data", "info", path), *words)


def test_a_label_outside_the_classes_gets_one_line_and_nothing_is_written(
    people: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    done = edo("data", "convert", people, out, "--classes", "no,maybe")
    assert_one_line(done, "'yes'", "row 4")
    assert not out.exists()


def test_items_that_do_not_match_are_counted_and_named(people: Path, tmp_path: Path) -> None:
    model = tmp_path / "other.csv"
    model.write_text("item,p_no,p_yes\na,0.5,0.5\nx,0.5,0.5\n", encoding="utf-8")
    with raises_code("items-differ", "2 of 3", "'b'", "'x'"):
        printed("evaluate", "--probabilities", model, "--annotations", people)


@pytest.mark.parametrize(
    ("row", "code", "facts"),
    [
        ("c,nan,0.4", "invalid-probabilities", ["finite", "'c'"]),
        ("c,-0.2,1.2", "invalid-probabilities", ["negative", "'c'"]),
        ("c,0.2,0.2", "invalid-probabilities", ["sum", "'c'", "normalize"]),
        ("c,many,0.2", "not-a-number", ["p_no", "'many'", "row 4"]),
    ],
)
def test_bad_probabilities_are_refused_by_item(
    row: str, code: str, facts: list[str], people: Path, tmp_path: Path
) -> None:
    model = tmp_path / "bad.csv"
    model.write_text(f"item,p_no,p_yes\na,0.5,0.5\nb,0.5,0.5\n{row}\n", encoding="utf-8")
    with raises_code(code, *facts):
        printed("evaluate", "--probabilities", model, "--annotations", people)


def test_unknown_options_and_missing_files_get_one_line(tmp_path: Path) -> None:
    assert_one_line(edo("data", "info", tmp_path / "nowhere.csv"), "nowhere.csv")
    assert_one_line(edo("data", "info", "x.csv", "--colour", "red"), "--colour", "--help")
    assert_one_line(edo("conjure"), "conjure", "--help")
    assert_one_line(edo("data", "get", "everything"), "'lewidi2023'")


def test_debug_shows_where_an_error_arose(tmp_path: Path) -> None:
    done = edo("--debug", "data", "info", tmp_path / "nowhere.csv")
    assert done.returncode == 2
    assert "Traceback" in done.stderr


def test_ties_are_counted_in_a_note(tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    model = tmp_path / "model.csv"
    people.write_text("item,annotator,label\na,x,no\na,y,yes\n", encoding="utf-8")
    model.write_text("item,p_no,p_yes\na,0.5,0.5\n", encoding="utf-8")
    done = edo("evaluate", "--probabilities", model, "--annotations", people, "--json")
    assert done.returncode == 0
    assert "note: 1 of 1 item is tied" in done.stderr
    refused = edo("evaluate", "--probabilities", model, "--annotations", people, "--ties", "error")
    assert_one_line(refused, "tied")


@pytest.mark.slow
def test_the_demo_of_a_scale_has_its_metrics(tmp_path: Path) -> None:
    shown = edo("demo", "--regime", "seven-points", "--members", "2", "--out", tmp_path / "kept")
    assert shown.returncode == 0, shown.stderr
    assert "RPS ↓" in shown.stdout
    assert "ΔRPS vs uniform" in shown.stdout
    result = json.loads((tmp_path / "kept" / "results.json").read_text())
    assert result["scale"] == "ordinal:1,2,3,4,5,6,7"
    assert result["headline_metric"] == "rps"
    by_name = {method["name"]: method for method in result["methods"]}
    assert by_name["edo"]["rps"] < by_name["constant"]["rps"]


def test_the_demo_tells_its_story(tmp_path: Path) -> None:
    out = tmp_path / "kept"
    result = answer("demo", "--regime", "two-camps", "--members", "3", "--out", out)
    by_name = {method["name"]: method for method in result["methods"]}
    assert set(by_name) == {"constant", "best-single", "uniform", "edo", "edo-paper"}
    assert result["search"]["trials"] == 50
    assert by_name["edo"]["ce"] < by_name["constant"]["ce"]
    assert set(result["truth_ce"]) == set(by_name)
    assert json.loads((out / "results.json").read_text()) == result
    assert answer("predictions", "info", out / "predictions" / "dev.npz")["items"] == 168
    again = answer(
        *("evaluate", "--probabilities", out / "probabilities.csv"),
        *("--annotations", out / "annotations.parquet", "--split", "test"),
    )
    assert again["ce"] == pytest.approx(by_name["edo"]["ce"])
    shown = edo("demo", "--regime", "two-camps", "--members", "3")
    assert "uniform mean" in shown.stdout
    # Members that know who answers: two panels part ways.
    panels = result["panels"]
    assert panels["decisions_differ"] > 0
    assert f"differently on {panels['decisions_differ']} of 168 items" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    first = (
        (out / "panels.csv").read_text(encoding="utf-8").splitlines()[1].split(",")[0].strip('"')
    )
    assert first in shown.stdout
    assert answer("data", "info", out / "annotations.parquet")["splits"]["test"]["items"] == 168


@pytest.fixture
def three_models(tmp_path: Path) -> Path:
    """Predictions of three models for the items of `people`."""
    rows = {"good": (0.35, 0.9, 0.35), "shy": (0.5, 0.6, 0.5), "wrong": (0.8, 0.2, 0.7)}
    files = []
    for name, chances in rows.items():
        lines = [f"{item},{1 - p:.2f},{p}" for item, p in zip("abc", chances, strict=True)]
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(["item,p_no,p_yes", *lines]), encoding="utf-8")
        files.append(path)
    out = tmp_path / "three.npz"
    answer("predictions", "join", *files, "--out", out)
    return out


def test_fit_predict_and_evaluate_go_from_files_to_metrics(
    people: Path, three_models: Path, tmp_path: Path
) -> None:
    ensemble = tmp_path / "ensemble"
    out = tmp_path / "pooled.parquet"
    fitted = answer(
        "fit", "--predictions", three_models, "--annotations", people, "--out", ensemble
    )
    assert set(fitted) >= {"weights", "size", "objective", "certificate"}
    assert fitted["weights"]["good"] == max(fitted["weights"].values())
    assert sum(fitted["weights"].values()) == pytest.approx(1)
    assert fitted["certificate"]["gap"] < 1e-8
    assert answer("predict", ensemble, "--predictions", three_models, "--out", out)["items"] == 3
    result = answer("evaluate", "--probabilities", out, "--annotations", people)
    assert result["ce"] == pytest.approx(fitted["metrics"]["ce"])


def test_every_choice_of_fit_reaches_the_ensemble(
    people: Path, three_models: Path, tmp_path: Path
) -> None:
    out = tmp_path / "ensemble"
    answer(
        *("fit", "--predictions", three_models, "--annotations", people, "--out", out),
        *("--preset", "paper-fixed", "--solver", "gumbel", "--ce", "all"),
        *("--diversity", "suppress", "--lambda-f1", 0.5, "--lambda-ce", 0.6),
        *("--lambda-div", 0.7, "--lambda-reg", 0.01, "--no-class-weights"),
        *("--min-members", 2, "--max-members", 3, "--seed", 7, "--epochs", 4),
        *("--pool", "linear", "--no-groups", "--recalibrate", "temperature"),
    )
    settings = json.loads((out / "ensemble.json").read_text())["settings"]
    wanted = {
        "solver": "gumbel",
        "ce": "all",
        "diversity": "suppress",
        "lambda_f1": 0.5,
        "lambda_ce": 0.6,
        "lambda_div": 0.7,
        "lambda_reg": 0.01,
        "class_weights": False,
        "min_members": 2,
        "max_members": 3,
        "random_state": 7,
        "epochs": 4,
        "recalibrate": "temperature",
    }
    assert {key: settings[key] for key in wanted} == wanted


def test_choices_without_effect_are_said_in_a_note(
    people: Path, three_models: Path, tmp_path: Path
) -> None:
    base = ("fit", "--predictions", three_models, "--annotations", people, "--out", tmp_path / "e")
    base = (*base, "--overwrite")
    assert "--epochs: only the gumbel solver" in edo(*base, "--epochs", 3).stderr
    assert "note: the diversity term has weight 0" in edo(*base, "--diversity", "suppress").stderr
    assert edo(*base).stderr == ""


def test_fit_explains_itself_in_the_terminal(
    people: Path, three_models: Path, tmp_path: Path
) -> None:
    done = edo(
        "fit", "--predictions", three_models, "--annotations", people, "--out", tmp_path / "e"
    )
    assert done.returncode == 0
    assert "good: weight" in done.stdout
    assert "Certificate" in done.stdout


def test_bad_fits_and_predictions_get_one_line_and_write_nothing(
    people: Path, three_models: Path, model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "ensemble"
    base = ("fit", "--predictions", three_models, "--annotations", people, "--out", out)
    assert_one_line(edo(*base, "--ce", "median"), "--ce", "mean")
    assert_one_line(edo(*base, "--lambda-div", -1), "--lambda-div is -1.0", "--diversity suppress")
    assert_one_line(edo(*base, "--groups"), "groups")
    assert_one_line(edo(*base, "--max-members", 0), "--max-members is 0")
    sizes = ("--solver", "gumbel", "--min-members", 3, "--max-members", 2)
    assert_one_line(edo(*base, *sizes), "--min-members 3")
    silent = [f"--lambda-{term}" for term in ("f1", "ce", "div", "reg")]
    assert_one_line(edo(*base, *(word for name in silent for word in (name, 0))), "all 0")
    assert not out.exists()
    assert answer(*base)["size"] >= 1
    other = tmp_path / "other.npz"
    answer("predictions", "join", model, "--out", other)
    done = edo("predict", out, "--predictions", other, "--out", tmp_path / "p.csv")
    assert_one_line(done, "'good'", "'good'")
    assert not (tmp_path / "p.csv").exists()
    with raises_code("missing-file", str(tmp_path / "no")):
        printed("predict", tmp_path / "no", "--predictions", other, "--out", tmp_path / "p.csv")


def test_members_go_from_texts_to_pooled_probabilities(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    trained = tmp_path / "trained"
    answer("demo", "--regime", "two-camps", "--members", "2", "--out", kept)
    people = kept / "annotations.parquet"
    answer("train", people, "--recipe", "linear", "--members", "2", "--out", trained)
    dev = trained / "predictions" / "dev.npz"
    test = trained / "predictions" / "test.npz"
    ensemble = tmp_path / "ensemble"
    base = ("--annotations", people, "--split", "dev", "--out", ensemble)
    answer("fit", "--predictions", dev, *base)
    by_file = tmp_path / "file.csv"
    by_text = tmp_path / "text.csv"
    answer("predict", ensemble, "--predictions", test, "--out", by_file)
    found = answer(
        *("predict", ensemble, "--members", trained, "--texts", people, "--split", "test"),
        *("--out", by_text),
    )
    assert found["items"] == 168
    judged = [
        answer("evaluate", "--probabilities", p, "--annotations", people, "--split", "test")["ce"]
        for p in (by_file, by_text)
    ]
    assert judged[0] == pytest.approx(judged[1], abs=1e-6)
    assert_one_line(edo("predict", ensemble, "--out", by_text), "--predictions", "--members")
    assert_one_line(edo("predict", ensemble, "--members", trained, "--out", by_text), "--texts")


def test_weights_can_be_learned_from_cross_fitted_members(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    trained = tmp_path / "trained"
    answer("demo", "--regime", "two-camps", "--members", "1", "--out", kept)
    people = kept / "annotations.parquet"
    answer("train", people, "--members", "2", "--cross-fit", "2", "--out", trained)
    fitted = answer(
        *("fit", "--predictions", trained / "predictions" / "fit.npz", "--annotations", people),
        *("--split", "train,dev", "--out", tmp_path / "ensemble"),
    )
    assert sum(fitted["weights"].values()) == pytest.approx(1)
    assert answer("data", "info", people, "--split", "train,dev")["items"] == 784 + 168
    assert_one_line(edo("data", "info", people, "--split", "train,final"), "'final'")


def test_names_that_are_given_twice_add_up(tmp_path: Path) -> None:
    table = tmp_path / "votes.csv"
    table.write_text("item,annotator,label\na,x,no\na,y,yes\na,z,maybe\nb,x,no\nb,y,yes\n")
    dropped = ("--drop-label", "maybe", "--drop-label", "yes")
    assert answer("data", "info", table, *dropped)["classes"] == ["no"]


def test_joined_predictions_keep_the_items_of_one_split_or_several(tmp_path: Path) -> None:
    annotations = edokit.simulate("two-camps", items=(8, 4, 3)).annotations
    edokit.write_annotations(annotations, tmp_path / "votes.csv")
    p = np.full((15, 1, 2), 0.5)
    pool = edokit.Predictions.from_arrays(
        p, layout="NKC", items=annotations.items, classes=annotations.classes
    )
    edokit.write_predictions(pool, tmp_path / "p.npz")
    words = ("predictions", "join", tmp_path / "p.npz", "--annotations", tmp_path / "votes.csv")
    for splits, items in (("dev", 4), ("train,dev", 12)):
        out = tmp_path / f"{items}.npz"
        assert answer(*words, "--split", splits, "--out", out)["items"] == items
