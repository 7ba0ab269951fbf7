"""Results in a notebook: what they show, and that nothing in them can act."""

from __future__ import annotations

import sys
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import edokit
from edokit import Annotations, Predictions, ProgressBar, Run

ACTING = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
HARMLESS = {"div", "p", "strong", "bdi", "img", "details", "summary", "code"}
HARMLESS |= {"table", "thead", "tbody", "tr", "th", "td"}


class Shown(HTMLParser):
    """The text, the elements and the charts of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.charts: dict[str, str] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        values = {name: value or "" for name, value in attrs}
        if tag == "img":
            kind, _, content = values["src"].partition(",")
            assert kind == "data:image/svg+xml;base64"
            self.charts[values["alt"]] = b64decode(content).decode()

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(result: Any) -> Shown:
    return Shown(result._repr_html_())


def table(text: str | None = None) -> Annotations:
    """Forty items and five annotators in two teams that differ."""
    rng = np.random.default_rng(0)
    rows = []
    for item in range(40):
        for annotator in range(5):
            rude = rng.random() < (0.2 if annotator % 2 else 0.7)
            team = ("red", "blue")[annotator % 2]
            rows.append((f"post-{item}", f"who-{annotator}", "rude" if rude else "fine", team))
    columns = dict(
        zip(("item", "annotator", "label", "team"), zip(*rows, strict=True), strict=True)
    )
    return Annotations.from_table(columns | {"text": [text] * len(rows)})


def compared(annotations: Annotations) -> edokit.analysis.compare.result.Comparison:
    rng = np.random.default_rng(1)
    share = annotations.soft_labels[:, 1]
    members = [np.clip(share + rng.normal(0, s, len(share)), 0.05, 0.95) for s in (0.1, 0.5)]
    p = np.stack(members, axis=1)
    predictions = Predictions.from_arrays(
        np.stack([1 - p, p], axis=2),
        items=annotations.items,
        classes=annotations.classes,
        layout="NKC",
    )
    return edokit.compare(predictions, annotations, methods=("best-single", "edo"), samples=200)


def test_annotations_show_their_classes_and_the_first_items() -> None:
    page = shown(table("what a fine day"))
    assert "40 items, 5 annotators, 200 annotations" in page.text
    assert "what a fine day" in page.text
    (chart,) = page.charts.values()
    assert "fine" in chart
    assert "rude" in chart


@pytest.mark.parametrize("scale", ["ordinal", "multi-label"])
def test_annotations_of_other_scales_show_every_class(scale: Any) -> None:
    regime = {"ordinal": "seven-points", "multi-label": "three-labels"}[scale]
    annotations = edokit.simulate(regime, items=(20, 5, 5)).annotations
    (chart,) = shown(annotations).charts.values()
    assert all(f">{name}<" in chart for name in annotations.classes)


def test_annotations_without_texts_or_rows_are_shown() -> None:
    shares = Annotations.from_soft_labels([[0.25, 0.75], [1.0, 0.0]], classes=["no", "yes"])
    assert "No item has several annotations" in shown(shares).text
    assert not shown(shares.take(np.zeros(2, dtype=bool))).charts


def test_a_comparison_shows_every_method_with_its_metrics() -> None:
    result = compared(table())
    page = shown(result)
    (chart,) = page.charts.values()
    for name in ("EDO: this ensemble", "plain average (uniform)", "constant answer"):
        assert name in page.text
        assert name in chart
    assert f"{result['edo'].ce:.4f}" in page.text


def test_a_diagnosis_shows_advice_agreement_and_groups() -> None:
    diagnosis = edokit.diagnose(table(), by=["team"], permutations=99)
    page = shown(diagnosis)
    assert diagnosis.advice[0].text[:60] in page.text
    alpha = diagnosis.agreement["krippendorff_alpha"]["estimate"]
    assert f"{alpha:.2f}".replace("-", "−") in page.text
    (chart,) = page.charts.values()
    assert "blue (2)" in chart


def test_an_audit_shows_its_sentences_and_tables() -> None:
    annotations = table()
    share = annotations.soft_labels[:, 1]
    rng = np.random.default_rng(1)
    p = np.clip(share[:, None] + rng.normal(0, 0.2, (len(share), 3)), 0.05, 0.95)
    jury = Predictions.from_arrays(
        p, layout="NK", items=annotations.items, classes=annotations.classes
    )
    audit = edokit.audit(jury, annotations, samples=200)
    page = shown(audit)
    assert audit.headline[0] in page.text
    assert all(table.title in page.text for table in audit.tables())
    assert "Two annotators" in page.text  # a note below a table


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("notebook") / "first run"
    annotations = edokit.simulate("two-camps", items=(60, 20, 0)).annotations
    return edokit.run(annotations, folder, quality="fast", time="1s")


def test_a_run_shows_its_sentence_and_charts_but_no_path(run: Run) -> None:
    page = shown(run)
    assert run.summary.split(";")[0] in page.text
    assert "Cross-entropy of each method" in page.charts
    assert "first run" in page.text
    assert str(run.folder.parent) not in run._repr_html_()


def test_a_run_whose_folder_has_gone_shows_its_sentence(run: Run, tmp_path: Path) -> None:
    page = shown(Run(tmp_path / "gone", run.results))
    assert run.summary.split(";")[0] in page.text
    assert not page.charts


def test_nothing_that_comes_from_data_can_act() -> None:
    rows = table().to_table().to_pandas().astype(str).replace("rude", ACTING)
    rows["team"] = rows["team"] + ACTING
    rows["item"] = rows["item"] + ACTING
    annotations = Annotations.from_table(rows)
    with_texts = Annotations.from_table(rows.assign(text=ACTING))
    assert ACTING in shown(with_texts).text
    results = (
        annotations,
        with_texts,
        compared(annotations),
        edokit.diagnose(annotations, by=["team"]),
    )
    for result in results:
        page = shown(result)
        assert page.elements <= HARMLESS
        assert page.attributes <= {"style", "src", "alt", "open"}
        for chart in page.charts.values():
            assert "<script" not in chart
            assert "<img" not in chart


class Notebook:
    """What a kernel was asked to display, the last state of each element."""

    def __init__(self) -> None:
        self.elements: list[dict[str, str]] = []

    def display(self, content: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        place = len(self.elements)
        self.elements.append(content)

        def update(content: dict[str, str], *, raw: bool) -> None:
            self.elements[place] = content

        return SimpleNamespace(update=update)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    kernel = Notebook()
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    display = SimpleNamespace(display=kernel.display)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return kernel


def test_a_progress_bar_is_one_element_of_the_output(notebook: Notebook) -> None:
    edokit.diagnose(table(), permutations=39, progress=ProgressBar())
    (element,) = notebook.elements
    assert element["text/plain"].startswith("78 of 78")
    assert 'value="78" max="78"' in element["text/html"]


def test_names_in_a_progress_bar_cannot_act(notebook: Notebook) -> None:
    ProgressBar()(1, 2, ACTING)
    (element,) = notebook.elements
    assert Shown(element["text/html"]).elements == {"progress"}


def test_a_progress_bar_is_silent_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    edokit.diagnose(table(), permutations=39, progress=ProgressBar())
    assert capfd.readouterr() == ("", "")


def test_a_progress_bar_in_a_terminal_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    bar = ProgressBar()
    bar(0, 2, "first")
    bar(2, 2, "last\x1b[2J")
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert "2/2 last[2J" in printed
