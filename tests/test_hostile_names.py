"""A hostile name stays text in every kind of output: terminal, JSON, XML, Markdown, CSV, HTML."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from commands import edo
from edokit import (
    Annotations,
    EDOEnsemble,
    Predictions,
    compare,
    read_annotations,
    write_annotations,
    write_predictions,
    write_report,
)
from edokit._errors import printable
from edokit._io.documents import json_text
from edokit._io.markup import Table, markdown_text, spreadsheet_text, xml_attribute
from edokit.ensemble.reviews import predict_to_file, review, write_review
from edokit.report import collect

NAMES = {
    "escape": "\x1b[31mred",
    "c1": "\x9b31mred",
    "turned": "\u202eevil\u2066",
    "tag": "<script>alert(1)</script>",
    "entity": "&lt;b&gt; &amp; co",
    "link": "[x](javascript:alert(1))",
    "marks": "**bold** `code` _x_ a|b \\",
    "formula": "=HYPERLINK(1)",
    "sum": "@SUM(1+1)",
    "minus": "-2+3",
    "tab": "a\tb",
    "line": "two\nlines",
    "not xml": "\ufffe\x01",
}
STEERING = set("\x1b\x9b\u202e\u2066\x01")


def steers(text: str) -> set[str]:
    return STEERING & set(text)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Annotations, Predictions]:
    """An ensemble, with files, whose classes, members, items and annotators have these names."""
    folder = tmp_path_factory.mktemp("names")
    names = list(NAMES.values())
    rng = np.random.default_rng(0)
    codes = rng.integers(0, len(names), size=(60, 3))
    codes[: len(names), 0] = range(len(names))
    items = [*names, *(f"item {i}" for i in range(60 - len(names)))]
    table = {
        "item": np.repeat(items, 3),
        "annotator": [names[k] for k in (0, 3, 7)] * 60,
        "label": [names[c] for c in codes.ravel()],
    }
    people = Annotations.from_table(table, classes=names)
    P = rng.dirichlet(np.ones(len(names)), size=(60, len(names)))
    pool = Predictions.from_arrays(P, items=items, members=names, classes=names, layout="NKC")
    EDOEnsemble(ties="random").fit(pool, people).save(folder / "ensemble")
    write_annotations(people, folder / "people.parquet")
    write_predictions(pool, folder / "pool.parquet")
    return folder, people, pool


def said(*words: object) -> str:
    """What a command prints."""
    done = edo(*words)
    assert not done.returncode, done.stderr
    assert not steers(done.stderr)
    return done.stdout


def test_a_card_holds_no_markup_of_names(made: tuple[Path, Annotations, Predictions]) -> None:
    card = (made[0] / "ensemble" / "README.md").read_text(encoding="utf-8")
    assert not steers(card)
    assert "<" not in card
    assert "](" not in card.replace("\\](", "")
    assert "\\x1b" in card
    rows = [line for line in card.splitlines() if line.startswith("|")]
    assert {line.replace("\\\\", "").replace("\\|", "").count("|") for line in rows} == {4}


def test_the_labelling_interface_is_xml_and_its_choices_are_those_of_the_tasks(
    made: tuple[Path, Annotations, Predictions], tmp_path: Path
) -> None:
    folder, _, pool = made
    queue = review(EDOEnsemble.load(folder / "ensemble").describe(pool), 60)
    config = write_review(queue, pool.classes, tmp_path / "tasks.json")
    assert not steers(config.read_text(encoding="utf-8"))
    choices = [one.get("value") for one in ElementTree.parse(config).iter("Choice")]
    kept = [one for one, name in zip(choices, pool.classes, strict=True) if one == name]
    assert len(kept) == 11
    written = (tmp_path / "tasks.json").read_text(encoding="utf-8")
    assert not steers(written)
    for task in json.loads(written):
        (result,) = task["predictions"][0]["result"]
        assert result["value"]["choices"][0] in choices


@pytest.mark.parametrize("words", [("data", "info"), ("diagnose", "--permutations", "0")])
def test_commands_print_names_without_steering(
    made: tuple[Path, Annotations, Predictions], words: tuple[str, ...]
) -> None:
    people = made[0] / "people.parquet"
    assert not steers(said(*words, people))
    found = said(*words, people, "--json")
    assert not steers(found)
    assert "\\u001b[31mred" in json.dumps(json.loads(found))


def test_json_is_the_same_value_and_printable() -> None:
    names = [*NAMES.values(), "\U000e0041", "\ud800", "é 漢字"]
    text = json_text(names)
    assert text.isprintable()
    assert json.loads(text) == names
    assert "é 漢字" in text


def test_a_comparison_prints_no_name_raw(made: tuple[Path, Annotations, Predictions]) -> None:
    _, people, pool = made
    half = np.arange(60) % 2 == 0
    parts = [
        (pool.take(np.flatnonzero(at)), people.take(np.flatnonzero(at))) for at in (half, ~half)
    ]
    extra = {
        name: (parts[0][0].select([pool.members[0]]), parts[1][0].select([pool.members[0]]))
        for name in NAMES.values()
        if ":" not in name
    }
    comparison = compare(
        *parts[0], *parts[1], methods=["uniform"], extra=extra, samples=0, ties="random"
    )
    assert "<script" not in comparison.markdown()
    assert not steers(comparison.markdown())


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_table_for_a_spreadsheet_holds_no_formula(
    made: tuple[Path, Annotations, Predictions], tmp_path: Path, ending: str
) -> None:
    folder, people, pool = made
    out = tmp_path / f"probabilities.{ending}"
    ensemble = EDOEnsemble.load(folder / "ensemble")
    predict_to_file(ensemble, pool, out)
    write_annotations(people, tmp_path / f"people.{ending}")
    for path in (out, tmp_path / f"people.{ending}"):
        with path.open(encoding="utf-8", newline="") as stream:
            cells = [
                cell for row in csv.reader(stream, delimiter=",\t"[ending == "tsv"]) for cell in row
            ]
        assert "'=HYPERLINK(1)" in cells
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t"))]
    second_annotations = read_annotations(tmp_path / f"people.{ending}")
    assert second_annotations.items.tolist() == people.items.tolist()
    assert second_annotations.annotators.tolist() == people.annotators.tolist()
    predict_to_file(ensemble, pool, out, raw=True)
    assert "'=HYPERLINK" not in out.read_text(encoding="utf-8")


def test_the_option_is_there_on_the_command_line(
    made: tuple[Path, Annotations, Predictions], tmp_path: Path
) -> None:
    source = made[0] / "people.parquet"
    out = tmp_path / "people.csv"
    said("data", "convert", source, out)
    assert "'@SUM(1+1)" in out.read_text(encoding="utf-8")
    said("data", "convert", source, tmp_path / "raw.csv", "--raw")
    assert "'@SUM(1+1)" not in (tmp_path / "raw.csv").read_text(encoding="utf-8")
    said(
        *("predict", made[0] / "ensemble", "--predictions", made[0] / "pool.parquet"),
        *("--out", tmp_path / "p.csv", "--raw"),
    )
    assert "'-2+3" not in (tmp_path / "p.csv").read_text(encoding="utf-8")


def test_a_page_holds_no_name_raw(
    made: tuple[Path, Annotations, Predictions], tmp_path: Path
) -> None:
    folder, people, pool = made
    data = collect(folder / "ensemble", predictions=pool, annotations=people)
    page = write_report(data, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    # What follows is the chart library.
    assert not steers(page[: page.index("<script>")])


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_each_form_shows_a_name_as_text(name: str) -> None:
    for shown in (printable(name), markdown_text(name), xml_attribute(name)):
        assert shown.isprintable()
    assert "<" not in markdown_text(name)
    ElementTree.fromstring(f"<a b={xml_attribute(name)}/>")


@pytest.mark.parametrize("text", ["-5", "+1.5", "-.5e-3", "plain", "a=b", "", "p_-5"])
def test_numbers_and_plain_text_are_no_formulas(text: str) -> None:
    assert spreadsheet_text(text) == text


@pytest.mark.parametrize("text", ["=1", "+a", "-a", "@a", "\t1", "\ra", " =1", "-1+1", "-1\n=2"])
def test_formulas_begin_with_a_quote(text: str) -> None:
    assert spreadsheet_text(text) == "'" + text


def test_a_table_in_markdown_holds_no_tag_in_title_header_cells_and_notes() -> None:
    tag = NAMES["tag"]
    assert "<" not in Table(tag, [tag, "b"], [[tag, 1]], [f"Without {tag}: no."]).markdown()
