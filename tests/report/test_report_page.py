"""The page: complete, the same for the same run, inert, and honest about what is missing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_cases import ARABIC, HOSTILE, make_run, make_search, people_and_pool, texts_for

from edokit import EDOEnsemble, fit, write_annotations, write_predictions, write_report
from edokit._io.documents import read_json, write_json
from edokit._io.tables import read_table
from edokit.report import collect
from edokit.report.page import render
from edokit.runs.record import RunRecord
from tests.errors import raises_code

SECTIONS = [
    *("summary", "answers", "right", "handover", "groups", "caveats"),
    *("methods", "items", "weights", "diagnosis"),
    *("calibration", "front", "reproduce"),
]


class Reader(HTMLParser):
    """Elements and text outside of scripts and styles; the contents of scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else ""
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif not self._inside:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    @property
    def data(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.scripts[0])
        return value

    @property
    def charts(self) -> list[str]:
        return [str(attrs["data-chart"]) for _, attrs in self.tags if "data-chart" in attrs]


def page_of(folder: Path, **options: Any) -> Reader:
    return Reader(render(collect(folder), **options))


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has everything, with hostile names and texts."""
    return make_run(
        tmp_path_factory.mktemp("full"),
        members=HOSTILE[:3],
        classes=[HOSTILE[1], HOSTILE[7]],
        texts=texts_for(60, [*HOSTILE, ARABIC]),
        search=12,
        compare=True,
        names=[HOSTILE[0]],
        preset="paper-fixed",
    )


@pytest.fixture(scope="module")
def page(full: Path) -> Reader:
    return page_of(full)


def test_a_full_run_has_every_section_and_chart(page: Reader) -> None:
    ids = [attrs["id"] for tag, attrs in page.tags if tag == "section"]
    assert ids == SECTIONS
    wanted = {
        *("pareto-f1-ce", "pareto-f1-md", "pareto-ce-md"),
        *("answers", "weights", "gain", "methods"),
        "reliability",
    }
    assert wanted <= set(page.charts)
    assert "By cross-entropy (CE), on" in page.text
    assert "agreement with the others" in page.text
    assert set(page.charts) == set(page.data["figures"])
    assert len(page.charts) == len(set(page.charts))


def test_the_same_run_gives_the_same_bytes(full: Path, tmp_path: Path) -> None:
    first = write_report(full, tmp_path / "a.html").read_bytes()
    assert write_report(full, tmp_path / "b.html").read_bytes() == first


def test_the_chart_library_is_there_once_and_nothing_is_fetched(page: Reader) -> None:
    assert ["vegaEmbed" in script[-200:] for script in page.scripts] == [False, True, False]
    assert sum(map(len, page.scripts[1:])) < 1_200_000
    for tag, attrs in page.tags:
        assert not attrs.get("src"), (tag, attrs)
        assert attrs.get("href") is None or str(attrs["href"]).startswith("#"), (tag, attrs)


def test_the_policy_allows_the_pages_own_scripts_alone(page: Reader) -> None:
    policy = next(
        str(attrs["content"]) for _, attrs in page.tags if "Content-Security" in str(attrs)
    )
    for script in page.scripts[1:]:
        hashed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{hashed}'" in policy
    assert "unsafe-eval" not in policy
    assert policy.split("script-src")[1].split(";")[0].count("'") == 4
    assert "default-src 'none'" in policy


def test_hostile_names_and_texts_make_no_elements(page: Reader) -> None:
    assert len(page.scripts) == 3
    assert not [tag for tag, _ in page.tags if tag in ("img", "b", "iframe", "object")]
    assert not [(tag, name) for tag, attrs in page.tags for name in attrs if name.startswith("on")]
    assert HOSTILE[0] in page.text
    assert page.data["items"]["texts"][: len(HOSTILE)] == HOSTILE
    assert page.data["items"]["classes"] == [HOSTILE[1], HOSTILE[7]]


def test_the_run_can_be_reproduced(page: Reader, full: Path) -> None:
    record = read_json(full / "run.json")
    assert record["command"] in page.text
    assert record["inputs"]["test_predictions"]["sha256"] in page.text
    assert record["versions"]["numpy"] in page.text
    assert "unchanged" in page.text


def test_the_comparison_is_the_table_of_methods(page: Reader) -> None:
    assert "about top-5" in page.text
    assert "−0.0100" in page.text
    assert "−0.0200 to −0.0010" in page.text


def test_the_chosen_trial_is_named(page: Reader) -> None:
    assert "trial 0 was chosen, the lowest CE on the front" in page.text
    assert "0.2810 in-sample (optimistic)" in page.text
    trials = page.data["figures"]["pareto-f1-ce"]["layer"][0]["data"]["values"]
    (chosen,) = (trial for trial in trials if trial["state"] == "chosen")
    assert chosen["trial"] == 0
    assert "optimistic_ce" not in chosen


def test_texts_can_be_left_out(full: Path) -> None:
    reader = page_of(full, texts=False)
    assert "texts" not in reader.data["items"]
    assert "no texts on this page" in reader.text
    assert ARABIC not in json.dumps(reader.data, ensure_ascii=False)


def menu(reader: Reader) -> list[str]:
    """The sections that the menu links to."""
    links = [str(attrs.get("href")) for tag, attrs in reader.tags if tag == "a"]
    return [link[1:] for link in links[1:]]  # the first skips to the summary


def test_sections_without_content_and_their_menu_entries_are_left_out(tmp_path: Path) -> None:
    reader = page_of(make_run(tmp_path, members=["alone"]))
    ids = [attrs["id"] for tag, attrs in reader.tags if tag == "section"]
    assert ids == menu(reader) == [s for s in SECTIONS if s != "front"]
    assert "exact solver has no epochs" in reader.text
    assert not [name for name in reader.charts if name.startswith(("pareto", "sizes"))]


def test_every_metric_and_the_spread_are_explained(page: Reader) -> None:
    terms = [attrs for tag, attrs in page.tags if tag == "abbr"]
    assert all(attrs["title"] and attrs["tabindex"] == "0" for attrs in terms)
    explained = {str(attrs["title"]).split(":")[0] for attrs in terms}
    expected = {"Cross-entropy (CE)", "Manhattan distance (MD)", "Brier score (BS)", "F1"}
    assert expected | {"ρ (Spearman's rank correlation)"} <= explained
    assert page.data["terms"]["spread"].startswith("Spread")  # of the explorer's columns
    assert set(page.data["terms"]) >= {"rps", "w1", "exact_match"}  # of other scales


def test_a_search_in_which_all_failed(tmp_path: Path) -> None:
    make_run(tmp_path)
    make_search(tmp_path / "search", 4, failed=4)
    assert "No trial of the search has a result (4 failed)" in page_of(tmp_path).text


def test_one_member(tmp_path: Path) -> None:
    reader = page_of(make_run(tmp_path, members=["alone"]))
    assert "One model, so there were no weights to learn" in reader.text
    assert "gain" not in reader.charts


def test_no_texts(tmp_path: Path) -> None:
    assert "There are no texts on this page" in page_of(make_run(tmp_path)).text


def test_one_class_chosen(tmp_path: Path) -> None:
    reader = page_of(make_run(tmp_path, opinions=False))
    assert "reliability" in reader.charts


def test_a_single_item(tmp_path: Path) -> None:
    assert "1 test item" in page_of(make_run(tmp_path, items=1)).text


def test_many_classes(tmp_path: Path) -> None:
    reader = page_of(make_run(tmp_path, classes=[f"c{i}" for i in range(12)]))
    assert len(reader.data["items"]["p"][0]) == 12


def test_items_that_were_fitted_on_are_called_so(tmp_path: Path) -> None:
    reader = page_of(make_run(tmp_path, test=False))
    assert "all metrics are in-sample (optimistic)" in reader.text


def test_missing_inputs_are_named(tmp_path: Path) -> None:
    make_run(tmp_path)
    for name in ("dev.npz", "test.parquet"):
        (tmp_path / name).unlink()
    reader = page_of(tmp_path)
    assert "Test annotations could not be shown" in reader.text
    assert "Predictions of the fit could not be shown" in reader.text
    assert "items" not in menu(reader)
    assert reader.charts == ["weights"]


def test_changed_inputs_are_named(tmp_path: Path) -> None:
    make_run(tmp_path)
    people, pool = people_and_pool(50, prefix="test")
    from edokit import write_predictions
    from edokit._io.tables import write_table

    write_predictions(pool, tmp_path / "test.npz")
    write_table(people.to_table(), tmp_path / "test.parquet")
    reader = page_of(tmp_path)
    assert "Changed since the run: test predictions and test annotations" in reader.text
    assert "50 test items" in reader.text


def test_inputs_that_no_longer_fit_give_way_to_those_that_do(tmp_path: Path) -> None:
    make_run(tmp_path)
    (tmp_path / "test.parquet").write_bytes(b"no table")
    reader = page_of(tmp_path)
    assert "Test annotations could not be shown" in reader.text
    assert "fit items" in reader.text


def test_the_diagnosis_is_of_all_annotations_or_says_of_which(tmp_path: Path) -> None:
    run = make_run(tmp_path, items=30)
    table = read_table(run / "test.parquet").to_pandas()
    table["split"] = "test"
    train = table.assign(split="train", item="train-" + table["item"].astype(str))
    pd.concat([table, train]).to_parquet(run / "test.parquet")
    record = RunRecord.load(run)
    labels = record.inputs["test_annotations"]
    options = {**labels.options, "split": "test"}
    inputs = {**record.inputs, "test_annotations": replace(labels, options=options)}
    replace(record, inputs=inputs).save(run)
    data = collect(run)
    assert data.evaluation is not None
    assert (len(data.evaluation.pooled.items), data.diagnosis["items"]) == (30, 60)
    said = "of all 60 items of test.parquet (test and train)"
    assert said in Reader(render(data)).text
    people, pool = people_and_pool(20)
    given = collect(run / "ensemble", predictions=pool, annotations=people)
    assert "of the 20 given items of this page" in Reader(render(given)).text


def test_classes_stand_in_their_declared_order(tmp_path: Path) -> None:
    reader = page_of(make_run(tmp_path, classes=["remove", "keep", "discuss"]))
    assert reader.data["items"]["classes"] == ["remove", "keep", "discuss"]
    assert len(reader.data["colours"]) == 3


def test_damaged_parts_are_named(tmp_path: Path) -> None:
    make_run(tmp_path, search=4, compare=True)
    (tmp_path / "search" / "trials.parquet").write_bytes(b"no table")
    write_json({"methods": 7}, tmp_path / "compare" / "methods.json")
    reader = page_of(tmp_path)
    assert "The search could not be shown" in reader.text
    assert "The comparison could not be shown" in reader.text
    assert "items" in reader.data


def test_a_damaged_ensemble_still_gives_a_page(tmp_path: Path) -> None:
    make_run(tmp_path, compare=True)
    (tmp_path / "ensemble" / "ensemble.json").write_text("{}")
    reader = page_of(tmp_path)
    assert "The ensemble of this run could not be read" in reader.text
    assert reader.charts == ["gain", "methods"]


def test_a_saved_ensemble_with_items(tmp_path: Path) -> None:
    people, pool = people_and_pool(40, texts=texts_for(40))
    EDOEnsemble(ties="random").fit(pool, people).save(tmp_path / "ensemble")
    alone = collect(tmp_path / "ensemble")
    assert alone.evaluation is None
    assert "items" not in menu(Reader(render(alone)))
    found = collect(tmp_path / "ensemble", predictions=pool, annotations=people)
    reader = Reader(render(found))
    assert "not recorded whether the ensemble was fitted on the items shown" in reader.text
    unknown = collect(tmp_path / "ensemble", predictions=pool)
    assert "The items lack annotations" in Reader(render(unknown)).text


def test_a_fit_records_its_files_and_a_page_knows_its_items_from_others(tmp_path: Path) -> None:
    people, pool = people_and_pool(60, texts=texts_for(60))
    first = np.arange(40)
    rest = np.arange(40, 60)
    fitted = pool.take(first)
    other = pool.take(rest)
    write_predictions(fitted, tmp_path / "dev.npz")
    write_annotations(people.take(first), tmp_path / "people.csv")
    out = tmp_path / "ensemble"
    estimator = EDOEnsemble(ties="random")
    ensemble = fit(tmp_path / "dev.npz", tmp_path / "people.csv", ensemble=estimator, out=out)
    alone = collect(out)
    assert alone.record.kind == "fit"
    assert alone.inputs == {"predictions": "same", "annotations": "same"}
    assert (alone.evaluation.name, alone.evaluation.held_out) == ("fit items", False)
    renamed = replace(fitted, probabilities=fitted.probabilities[:, ::-1])
    for given, held_out in ((fitted, False), (other, True), (renamed, None)):
        labels = people.take(rest if given is other else first)
        found = collect(out, predictions=given, annotations=labels)
        assert found.evaluation.held_out is held_out
    ensemble.save(out)  # perhaps fitted on something else
    assert collect(out).record is None


def test_annotations_alone_are_refused(tmp_path: Path) -> None:
    make_run(tmp_path)
    people, _ = people_and_pool(10)
    with raises_code("missing-option"):
        collect(tmp_path, annotations=people)
    (tmp_path / "ensemble" / "ensemble.json").unlink()
    with raises_code("missing-option"):
        collect(tmp_path, annotations=people)


@pytest.mark.parametrize("what", ["nowhere", "empty", "file"])
def test_what_is_no_run_is_refused(tmp_path: Path, what: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    with raises_code("wrong-folder"):
        collect(tmp_path / what)


def test_inputs_too_large_for_a_page_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import edokit.report.data as module

    make_run(tmp_path)
    monkeypatch.setattr(module, "digest_input", lambda path: None)
    reader = page_of(tmp_path)
    assert "is over one GiB, too large for a page" in reader.text


def test_weights_of_groups_are_called_so(tmp_path: Path) -> None:
    people, pool = people_and_pool(60, members=["a1", "a2", "b1"])
    pool = pool.grouped({"a1": "a", "a2": "a", "b1": "b"})
    EDOEnsemble(groups=True, ties="random").fit(pool, people).save(tmp_path)
    reader = Reader(render(collect(tmp_path, predictions=pool, annotations=people)))
    assert "Weights were learned between groups" in reader.text
    assert "2 groups" in reader.text


def test_a_member_of_small_weight_is_not_listed_as_having_none(tmp_path: Path) -> None:
    people, pool = people_and_pool()
    weights = [0.9997, 0.0003, 0.0]
    EDOEnsemble.from_weights(weights, pool, people, ties="random").save(tmp_path)
    page = render(collect(tmp_path))
    assert "Why 1 member has no weight" in page
    assert re.findall(r"<dt><bdi>(.*?)</bdi></dt>", page) == ["noise"]


def test_collected_data_need_a_place_for_the_page(tmp_path: Path) -> None:
    people, pool = people_and_pool()
    EDOEnsemble(ties="random").fit(pool, people).save(tmp_path)
    with raises_code("missing-option"):
        write_report(collect(tmp_path))
