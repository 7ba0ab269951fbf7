"""LeWiDi 2025: tables on held-out dev items, and files in the shared task's format."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lewidi2025_cases import classes_of, write_data, write_pools

from edokit import Predictions, Scale, read_predictions, write_predictions
from edokit.metrics import item_values
from edokit.metrics.formulas import decisions, medians
from reproduction.__main__ import main
from reproduction.lewidi2025 import study as studies
from reproduction.lewidi2025.data import DATASETS, read_labelled, read_test
from reproduction.lewidi2025.observations import observations
from reproduction.lewidi2025.scores import lewidi2025_b_items
from reproduction.lewidi2025.study import KNOWN, Study
from reproduction.lewidi2025.submission import Asked, check_pe, check_soft
from tests.errors import raises_code

REFERENCE = {
    "MP": (0.5235, 0.3174),
    "CSC": (1.1230, 0.2285),
    "Paraphrase": (2.7471, 0.3373),
    "VariErrNLI": (0.6529, 0.3456),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data") / "lewidi2025")


@pytest.fixture(scope="module")
def pools(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pools(data, tmp_path_factory.mktemp("pools"))


@pytest.fixture(scope="module")
def submitted(data: Path, pools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("submitted")
    words = ["--data", str(data), "--predictions", str(pools), "--out", str(out), "--folds", "2"]
    assert main(["lewidi2025", "submit", *words]) == 0
    return out


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_constant_answers_of_dev_are_the_reference_points(
    dataset: str, lewidi2025: Path
) -> None:
    study = Study(lewidi2025, Path("nowhere"), dataset)
    found = next(study.task_a()).mean, next(study.task_b()).mean
    assert found == pytest.approx(REFERENCE[dataset], abs=5e-5)


def test_items_count_the_same_whatever_their_annotators() -> None:
    scores = lewidi2025_b_items([7, 7, 7, 3], [1, 1, 1, 1], [0, 0, 0, 1], Scale())
    assert scores.tolist() == [0, 1]
    sets = [[True, False, False], [True, True, False]]
    scores = lewidi2025_b_items([0, 1], sets, np.zeros((2, 3), bool), Scale("multi-label"))
    assert scores.mean() == pytest.approx(0.5)


@pytest.mark.parametrize("dataset", DATASETS)
def test_uniform_means_have_the_official_scores(dataset: str, data: Path, pools: Path) -> None:
    study = Study(data, pools, dataset, folds=2)
    dev = study.labels["dev"]
    pool = read_predictions(pools / dataset / "anonymous" / "dev.npz").align(dev.items)
    name = "w1" if dev.scale.kind == "ordinal" else "md"
    expected = item_values(dev.scale)[name](
        pool.uniform, dev.soft_labels, dev.scale.hard(dev.soft_labels)
    ).mean()
    row = next(row for row in study.task_a() if row.pool == "anonymous")
    assert (row.method, row.mean) == ("uniform", pytest.approx(expected))
    pairs = read_predictions(pools / dataset / "annotators" / "dev-pairs.npz").pairs()
    asked = dev.pairs()
    pairs = pairs.align(asked.rows)
    ordinal = dev.scale.positions is not None
    answers = medians(pairs.uniform) if ordinal else dev.scale.hard(pairs.uniform)
    given = dev.scale.hard(asked.soft_labels)
    items = asked.rows.item_ranks
    official = lewidi2025_b_items(items, answers, given, dev.scale, len(dev.classes)).mean()
    (row,) = [
        row for row in study.task_b() if (row.pool, row.method) == (f"annotators{KNOWN}", "uniform")
    ]
    assert row.mean == pytest.approx(official)


@pytest.mark.parametrize("pairs", [False, True])
def test_no_item_is_scored_by_weights_fitted_on_it(
    pairs: bool, data: Path, pools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study(data, pools, "MP")
    labels = study.labels["dev"].pairs() if pairs else study.labels["dev"]
    pool = (
        study.pair_pools("dev", labels.rows)["annotators (known)"]
        if pairs
        else study.pools("dev")["anonymous"]
    )
    scored: list[str] = []

    class Spy:
        def __init__(self, learned: set[str]) -> None:
            self.learned = learned

        def predict_proba(self, part: Any, *, answer_for: str | None) -> Any:
            items = set(part.items)
            assert not items & self.learned
            scored.extend(part.items if answer_for is None else ())
            return part.uniform

    def spy(part: Any, own: Any, method: str) -> Any:
        assert list(part.items) == list(own.items)
        return Spy(set(part.items))

    monkeypatch.setattr(studies, "fit", spy)
    found = study.held_out(pool, labels, "uniform")
    assert sorted(scored) == sorted(pool.items)
    np.testing.assert_allclose(found[None], pool.uniform)


def test_the_table_has_every_objective_that_the_scale_has(
    data: Path, pools: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--data", str(data), "--predictions", str(pools), "--json"]
    page = tmp_path / "RESULTS.md"
    assert (
        main(
            [
                "lewidi2025",
                "table",
                *words,
                "--dataset",
                "CSC",
                "--folds",
                "2",
                "--results",
                str(page),
            ]
        )
        == 0
    )
    found = json.loads(capsys.readouterr().out)["datasets"]["CSC"]
    methods = {(row["method"], row["for"]) for row in found["A"] if row["pool"] == "all"}
    every = ("uniform", "EDO, CE", "EDO, RPS", "EDO, W1")
    assert methods == {(method, answer) for method in every for answer in (None, "w1")}
    assert {row["pool"] for row in found["A"]} == {
        "constant",
        "anonymous",
        "annotators",
        "all, annotators unknown",
        "annotators (known)",
        "all",
    }
    assert len(found["members"]) == 3 + 2 + 2
    text = page.read_text(encoding="utf-8")
    assert "CSC: task B" in text
    assert f"{found['A'][0]['score']:.4f}" in text


def test_a_submission_answers_for_every_item_and_annotator(data: Path, submitted: Path) -> None:
    files = {f"{name}_test_{kind}.tsv" for name in DATASETS for kind in ("soft", "pe")}
    with zipfile.ZipFile(submitted / "submission.zip") as archive:
        assert set(archive.namelist()) == files
    for name in DATASETS:
        test = json.loads((data / name / f"{name}_test.json").read_text(encoding="utf-8"))
        for kind in ("soft", "pe"):
            lines = (submitted / f"{name}_test_{kind}.tsv").read_text().splitlines()
            found = {line.split("\t")[0]: json.loads(line.split("\t")[1]) for line in lines}
            assert list(found) == list(test)
            for key, value in found.items():
                people = dict.fromkeys(test[key]["annotators"].split(","))
                if name == "VariErrNLI":
                    assert np.shape(value) == (3, 2 if kind == "soft" else len(people))
                else:
                    assert len(value) == (len(classes_of(name)) if kind == "soft" else len(people))
    chosen = json.loads((submitted / "choices.json").read_text())
    assert set(chosen) == set(DATASETS)


def test_labels_of_test_change_nothing(
    data: Path, pools: Path, submitted: Path, tmp_path: Path
) -> None:
    published = write_data(tmp_path / "published", test_labels=True)
    for name in DATASETS:
        assert len(read_labelled(published, name).items) == len(read_labelled(data, name).items)
        one = read_test(published, name)
        other = read_test(data, name)
        assert (one.items, one.annotators) == (other.items, other.annotators)
    words = ["--data", str(published), "--predictions", str(pools), "--out", str(tmp_path)]
    assert main(["lewidi2025", "submit", *words, "--dataset", "MP", "--folds", "2"]) == 0
    for kind in ("soft", "pe"):
        name = f"MP_test_{kind}.tsv"
        assert (tmp_path / name).read_bytes() == (submitted / name).read_bytes()


def test_without_pairs_annotators_get_the_decision_of_the_item(data: Path, tmp_path: Path) -> None:
    pools = write_pools(data, tmp_path / "pools", known=False)
    words = ["--data", str(data), "--predictions", str(pools), "--out", str(tmp_path / "out")]
    assert main(["lewidi2025", "submit", *words, "--dataset", "Paraphrase", "--folds", "2"]) == 0
    for line in (tmp_path / "out" / "Paraphrase_test_pe.tsv").read_text().splitlines():
        assert len(set(json.loads(line.split("\t")[1]))) == 1


WRONG = [
    ("soft", lambda lines: lines[1:], "items-differ", "1 of 6 items: '100'"),
    ("soft", lambda lines: [*lines, lines[0]], "items-differ", "7 lines for 6 items"),
    ("soft", lambda lines: [*lines, "999\t[0.5, 0.5]"], "items-differ", "'999'"),
    ("soft", lambda lines: [lines[1], lines[0], *lines[2:]], "items-differ", "order"),
    (
        "soft",
        lambda lines: ["100\t[0.5, 0.6]", *lines[1:]],
        "invalid-probabilities",
        "'100': probabilities sum to 1.1",
    ),
    (
        "soft",
        lambda lines: ["100\t[1.5, -0.5]", *lines[1:]],
        "invalid-probabilities",
        "from 0 to 1",
    ),
    (
        "soft",
        lambda lines: ["100\t[0.5, 0.25, 0.25]", *lines[1:]],
        "lengths-differ",
        "3 probabilities",
    ),
    ("soft", lambda lines: ["100 [0.5, 0.5]", *lines[1:]], "wrong-content", "line 1"),
    ("pe", lambda lines: ["100\t[0, 1, 1]", *lines[1:]], "lengths-differ", "3 answers"),
    ("pe", lambda lines: ["100\t[0, 2]", *lines[1:]], "unknown-class", "answer 2"),
    ("pe", lambda lines: ["100\t[0, 1.0]", *lines[1:]], "unknown-class", "answer 1.0"),
]


@pytest.mark.parametrize(("kind", "change", "code", "fact"), WRONG)
def test_a_file_in_another_format_is_refused(
    kind: str,
    change: Any,
    code: str,
    fact: str,
    data: Path,
    submitted: Path,
    tmp_path: Path,
) -> None:
    dev = read_labelled(data, "MP")
    asked = Asked("MP", read_test(data, "MP"), dev.scale, dev.classes)
    written = submitted / f"MP_test_{kind}.tsv"
    check = check_soft if kind == "soft" else check_pe
    check(written, asked)
    path = tmp_path / written.name
    path.write_text("\n".join(change(written.read_text().splitlines())) + "\n")
    with raises_code(code, fact):
        check(path, asked)


def test_sets_have_a_distribution_per_label(data: Path, submitted: Path, tmp_path: Path) -> None:
    dev = read_labelled(data, "VariErrNLI")
    asked = Asked("VariErrNLI", read_test(data, "VariErrNLI"), dev.scale, dev.classes)
    lines = (submitted / "VariErrNLI_test_soft.tsv").read_text().splitlines()
    path = tmp_path / "VariErrNLI_test_soft.tsv"
    path.write_text("\n".join(["100\t[0.2, 0.3, 0.5]", *lines[1:]]) + "\n")
    with raises_code("lengths-differ", "'100'", "2"):
        check_soft(path, asked)


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_committed_submission_has_the_format(dataset: str, lewidi2025: Path) -> None:
    folder = Path(__file__).parents[2] / "benchmarks" / "lewidi2025" / "submission"
    dev = read_labelled(lewidi2025, dataset)
    asked = Asked(dataset, read_test(lewidi2025, dataset), dev.scale, dev.classes)
    check_soft(folder / f"{dataset}_test_soft.tsv", asked)
    check_pe(folder / f"{dataset}_test_pe.tsv", asked)
    with zipfile.ZipFile(folder / "submission.zip") as archive:
        for kind in ("soft", "pe"):
            name = f"{dataset}_test_{kind}.tsv"
            assert archive.read(name) == (folder / name).read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["submit"], "--out"),
        (["table", "--dataset", "mp"], "MP"),
        (["table", "--predictions", "nowhere"], "nowhere"),
        (["table", "--data", "nowhere"], "edo data get lewidi2025"),
    ],
)
def test_what_is_missing_is_one_line(
    words: list[str], message: str, data: Path, pools: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"--data": str(data), "--predictions": str(pools)}
    more = [part for name, value in given.items() if name not in words for part in (name, value)]
    assert main(["lewidi2025", *words, *more]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_results_page_is_what_the_committed_members_give(
    dataset: str, lewidi2025: Path
) -> None:
    """The uniform mean of every pool in both tasks; other rows need fits."""
    committed = Path(__file__).parents[2] / "benchmarks" / "lewidi2025"
    page = (committed / "RESULTS.md").read_text(encoding="utf-8")
    study = Study(lewidi2025, committed, dataset)
    asked = study.labels["dev"].pairs()
    items = study.pools("dev")
    pairs = study.pair_pools("dev", asked.rows)
    found = {
        "A": {pool: study._row_a(pool, "", None, one.uniform).mean for pool, one in items.items()},
        "B": {
            pool: study._row_b(pool, "", decisions(one.uniform, study.scale)).mean
            for pool, one in pairs.items()
        },
    }
    for task, own in found.items():
        table = page.split(f"**{dataset}: task {task}, ")[1].split("\n**")[0]
        for pool, score in own.items():
            (row,) = [
                line for line in table.splitlines() if line.startswith(f"| {pool} | uniform |")
            ]
            assert float(row.split(" | ")[2]) == pytest.approx(score, abs=5.1e-5), (task, pool)


def row(pool: str, method: str, answer_for: str | None, score: Any, ce: Any = None) -> studies.Row:
    as_items = [None if values is None else np.asarray(values, float) for values in (score, ce)]
    return studies.Row(pool, method, answer_for, *as_items)  # type: ignore[arg-type]


def test_the_submission_takes_the_lowest_ce_and_its_step_only_if_it_lowers_the_score() -> None:
    constant = row(studies.CONSTANT, "training-set mean", None, [0.1], [0.1])
    low_ce = row("a", "uniform", None, [0.5], [0.6])
    high_ce = row("b", "uniform", None, [0.3], [0.7])
    gain, loss = (row("a", "uniform", "md", [score], [0.8]) for score in (0.4, 0.55))
    other = row("b", "uniform", "md", [0.2], [0.9])
    assert studies.chosen([constant, low_ce, high_ce, gain, other]) is gain
    assert studies.chosen([constant, low_ce, high_ce, loss, other]) is low_ce


def test_task_b_takes_the_lowest_score() -> None:
    rows = [row(studies.CONSTANT, "usual", None, [0.0]), row("a", "uniform", None, [0.3])]
    rows += [row("a", "EDO, CE", None, [0.2]), row("b", "uniform", None, [0.4])]
    assert studies.chosen(rows) is rows[2]


def test_sentences_about_the_tables_follow_the_sign_and_the_interval() -> None:
    noise = np.linspace(-0.01, 0.01, 50)
    constant = 0.5 + 0 * noise
    better = 0.3 + noise
    level = 0.5 + 30 * noise

    def tables(a: Any, b: Any) -> dict[str, dict[str, list[studies.Row]]]:
        stepped = row(studies.CONSTANT, "training-set mean", "md", 0.45 + noise)
        rows_a = [row(studies.CONSTANT, "training-set mean", None, constant, constant), stepped]
        rows_a += [row("annotators", "uniform", None, a, a)]
        rows_a += [row("annotators (known)", "uniform", None, a + 0.1, a + 0.1)]
        rows_a += [row("annotators", "EDO, CE", None, a, a + 0.05)]
        rows_a += [row("annotators", "EDO, W1", None, a - 0.02, a + 0.05)]
        rows_b = [row(studies.CONSTANT, "usual", None, constant), row("all", "uniform", None, b)]
        return {"MP": {"A": rows_a, "B": rows_b}}

    sentences = list(observations(tables(better, level)))
    assert "MP A -0.2000 [" in sentences[0]
    assert sentences[0].endswith("not clearly below it: MP B.")
    assert "MP 0.4500 (chosen 0.3000)" in sentences[1]
    assert "task A" in sentences[2]
    assert "MP +0.1000" in sentences[2]
    assert "lower task A score than CE on 1 of 1 pools" in sentences[3]
    assert "higher one on 0" in sentences[3]
    assert next(observations(tables(better, better))).endswith("all are clearly below.")


def test_cross_fitted_members_are_judged_on_train_and_dev_and_chosen_alone(
    data: Path, pools: Path, tmp_path: Path
) -> None:
    labels = read_labelled(data, "MP")
    folder = tmp_path / "MP"
    shutil.copytree(pools / "MP" / "anonymous", folder / "anonymous")
    shutil.copytree(pools / "MP" / "anonymous", folder / "folds")
    (folder / "folds" / "dev.npz").unlink()
    rng = np.random.default_rng(0)
    good = 0.9 * labels.soft_labels[:, None] + 0.1 * rng.dirichlet([1, 1], (len(labels.items), 3))
    test = read_predictions(folder / "folds" / "test.npz")
    names = {"items": labels.items, "classes": labels.classes, "members": test.members}
    write_predictions(
        Predictions.from_arrays(good, layout="NKC", **names), folder / "folds" / "fit.npz"
    )
    study = Study(data, tmp_path, "MP", 2, cross_fitted=True)
    rows = list(study.task_a())
    assert {row.pool for row in rows} == {"constant", "folds"}
    assert {len(row.score) for row in rows} == {len(labels.items)}
    assert {row.pool for row in Study(data, tmp_path, "MP", 2).task_a()} == {
        "constant",
        "anonymous",
    }
    words = ["--data", str(data), "--predictions", str(tmp_path), "--folds", "2"]
    out = tmp_path / "out"
    assert main(["lewidi2025", "submit", *words, "--out", str(out)]) == 0
    choices = json.loads((out / "choices.json").read_text())
    assert choices["MP"]["A"]["pool"] == "folds"
