"""Every table, on a small made-up folder: ours beside the paper's, missing pools said to be so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reproduction_cases import small_lewidi, small_pool, small_study

from edokit.analysis.compare.methods import wel
from edokit.metrics import MAIN_METRICS
from reproduction.lewidi2023 import benchmark as bars
from reproduction.lewidi2023.benchmark import best_printed
from reproduction.lewidi2023.command import TABLES, reproduce, results_page
from reproduction.lewidi2023.configurations import (
    VARIED,
    Configuration,
    Trial,
    chosen,
    fixed_outcomes,
    searched,
)
from reproduction.lewidi2023.findings import Measured
from reproduction.lewidi2023.methods import HeldOut
from reproduction.lewidi2023.searches import within_seeds
from reproduction.lewidi2023.study import Missing, Study
from reproduction.outcomes import Outcome
from reproduction.section import Section
from tests.errors import raises_code


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    with pytest.MonkeyPatch.context() as patch:
        # As published it takes seconds a fit; here it only has to be there.
        usual = wel.WEL.__init__
        patch.setattr(
            wel.WEL,
            "__init__",
            lambda self, **given: usual(self, trials=2, generations=3, **given),
        )
        yield small_study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def sections(study: Study, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Section]:
    out = tmp_path_factory.mktemp("out")
    return {section.name: section for section in reproduce(study, out=out)}


def cells(section: Section, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = section.to_dict()["tables"][table]["rows"]
    return found


def test_there_is_a_section_of_each_name(sections: dict[str, Section]) -> None:
    assert list(sections) == list(TABLES)


def test_headers_name_each_column_once(sections: dict[str, Section]) -> None:
    for section in sections.values():
        for name, table in section.tables.items():
            assert len(set(table.header)) == len(table.header), name


def test_everything_is_ready_for_json(sections: dict[str, Section]) -> None:
    for section in sections.values():
        json.dumps(section.to_dict(), allow_nan=False)


def test_tables_and_figures_are_written(study: Study, tmp_path: Path) -> None:
    reproduce(study, ["ce-variants", "heat-maps"], out=tmp_path)
    names = {path.name for path in (tmp_path / "tables").iterdir()}
    assert {"ce-variants.md", "ce-variants.csv", "ce-variants.tex"} <= names
    assert {"heat-map-HS-Brexit.png", "heat-map-HS-Brexit.pdf"} <= names


def test_ours_stand_beside_the_papers_with_the_difference(sections: dict[str, Section]) -> None:
    rows = cells(sections["ce-variants"], "ce-variants")
    ours = [row for row in rows if row["dataset"] == "HS-Brexit"]
    assert len(ours) == 6
    for row in ours:
        assert row["CE difference"] == pytest.approx(row["CE"] - row["CE paper"])


def test_missing_pools_are_said_to_be_missing_never_invented(
    sections: dict[str, Section],
) -> None:
    for section, table in (("ce-variants", "ce-variants"), ("weighting", "weighting")):
        gone = [row for row in cells(sections[section], table) if row["dataset"] == "ArMIS"]
        assert gone
        assert all("not available" in row["note"] for row in gone)
    per_annotator = [
        row
        for row in cells(sections["benchmark"], "benchmark-HS-Brexit")
        if row["method"] == "EDO-PerAnn"
    ]
    assert per_annotator[0]["CE"] is None
    assert per_annotator[0]["CE paper"] == 0.4412
    assert "not available" in per_annotator[0]["note"]


def test_the_printed_ce_stands_beside_the_un_squashed_one(sections: dict[str, Section]) -> None:
    rows = cells(sections["benchmark"], "benchmark-HS-Brexit")
    by_method = {row["method"]: row for row in rows if row["CE paper"] is not None}
    wel = by_method["WEL"]
    assert wel["CE paper, as printed"] == 0.5889
    assert wel["CE paper"] == pytest.approx(np.log(0.5889 / (1 - 0.5889)))
    assert by_method["EDO-PerAnn"]["CE paper, as printed"] == by_method["EDO-PerAnn"]["CE paper"]


def test_heat_maps_have_a_column_for_each_metric_of_the_paper(
    sections: dict[str, Section],
) -> None:
    (figure,) = sections["heat-maps"].figures.values()
    for panel in figure.spec["hconcat"]:
        assert panel["encoding"]["x"]["scale"]["domain"] == ["F1", "CE", "MD", "BS"]


def test_without_diversity_the_sign_changes_nothing(study: Study) -> None:
    outcomes = fixed_outcomes(study, "HS-Brexit")
    assert not isinstance(outcomes, Missing)
    for objective in ("f1", "ce", "f1+ce"):
        two = [
            outcomes[Configuration("all", objective, sign, with_diversity=False)]
            for sign in ("preserve", "suppress")
        ]
        assert (two[0].test == two[1].test).all()


def test_exact_suppression_keeps_one_member(study: Study) -> None:
    outcomes = fixed_outcomes(study, "HS-Brexit", "exact")
    assert not isinstance(outcomes, Missing)
    assert outcomes[Configuration("all", "f1+ce", "suppress")].sizes == (1, 1)


def test_the_searchs_choice_has_the_lowest_ce_of_its_seed(study: Study) -> None:
    trials = searched(study, "HS-Brexit", "random-select")
    assert not isinstance(trials, Missing)
    assert len(trials) == study.seeds * 6 * study.trials
    best = chosen(trials, 1)
    assert best.ce == min(trial.ce for trial in trials if trial.seed == 1)


def test_correlations_are_within_seeds() -> None:
    def trial(seed: int, value: float, ce: float) -> Trial:
        settings = dict.fromkeys(VARIED, value)
        return Trial(seed, "mean", "preserve", settings, 0.9, ce, 0.2, 0.1, 3, np.ones(1))

    # Within each seed more is better; between seeds the other has both more and worse.
    trials = [trial(seed, 10 * seed + k, 10 * seed - k) for seed in (0, 1) for k in range(5)]
    found = within_seeds(trials, "lambda_ce", "ce")
    assert found is not None
    assert found[0] == pytest.approx(-1.0)
    assert within_seeds(trials, "size", "ce") is None


def test_bars_are_the_best_of_the_papers_columns() -> None:
    expected = {
        "ArMIS": (0.7793, 0.5690, 0.5028, 0.2183),
        "ConvAbuse": (0.9405, 0.2149, 0.1553, 0.0640),
        "HS-Brexit": (0.9167, 0.3441, 0.2367, 0.0803),
        "MD-Agreement": (0.8214, 0.5087, 0.3632, 0.1086),
    }
    for dataset, best in expected.items():
        assert list(best_printed(dataset).values()) == pytest.approx(best, abs=2e-4)


def test_a_figure_is_better_than_the_papers_only_outside_its_interval() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(0.5, 0.1, size=(2, 4, 400))
    found = Outcome(scores.mean(axis=2), scores)
    low, high = found.interval("ce")
    assert 0.005 < high - low < 0.05
    inside = dict.fromkeys(MAIN_METRICS, found.mean("ce"))
    assert set(bars.against_paper(found, inside).values()) == {bars.UNDECIDED}
    lower = dict.fromkeys(MAIN_METRICS, 0.4)
    marks = bars.against_paper(found, lower)
    assert marks == {"f1": bars.BETTER, "ce": bars.WORSE, "md": bars.WORSE, "bs": bars.WORSE}
    higher = dict.fromkeys(MAIN_METRICS, 0.6)
    marks = bars.against_paper(found, higher)
    assert marks == {"f1": bars.WORSE, "ce": bars.BETTER, "md": bars.BETTER, "bs": bars.BETTER}


def test_uniform_mean_constant_answer_and_paper_stand_beside_our_row(
    sections: dict[str, Section],
) -> None:
    rows = cells(sections["bars"], "bars")
    first = next(at for at, row in enumerate(rows) if row["dataset"] == "HS-Brexit")
    _, uniform, constant, printed = rows[first : first + 4]
    assert "uniform mean" in uniform["row"]
    assert "constant" in constant["row"]
    assert printed["CE"] == pytest.approx(0.3441)
    values = sections["bars"].values["bars"]["HS-Brexit"]
    assert values["constant"]["ce"] == constant["CE"]
    assert values["uniform"]["ce"] == uniform["CE"]
    value, low, high = values["ce_less_uniform"]
    assert low <= value <= high
    assert value == pytest.approx(values["ce"] - uniform["CE"])


@pytest.mark.parametrize(
    ("supported", "cases", "verdict"),
    [
        (4, 4, "holds"),
        (3, 4, "holds in part"),
        (2, 4, "holds in part"),
        (1, 4, "does not replicate"),
        (0, 2, "does not replicate"),
        (0, 0, "not available"),
    ],
)
def test_one_rule_for_every_verdict(supported: int, cases: int, verdict: str) -> None:
    assert Measured("", supported, cases).verdict == verdict


def shortened(table: str) -> list[str]:
    """For each dataset the row that dev chose and its CE, beside those of its rivals."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    lines: list[list[str]] = []
    for dataset, name, _, ce, _, _ in rows[2:]:
        if dataset:
            lines.append([dataset, name, ce])
        elif any(rival in name for rival in ("uniform mean", "constant answer", "paper's best")):
            lines[-1].append(ce)
    assert [len(line) for line in lines] == [6] * 4
    return [f"| {' | '.join(line)} |" for line in lines]


def test_readme_and_findings_show_the_results_page() -> None:
    root = Path(__file__).parents[2]
    page = (root / "benchmarks/lewidi2023/RESULTS.md").read_text(encoding="utf-8")
    readme = (root / "README.md").read_text(encoding="utf-8")
    best = page[page.index("## The paper's best figures against ours") :]
    table = best[best.index("| dataset | row | F1") :].partition("\n\n")[0]
    for line in shortened(table):
        assert line in readme
    counted = re.search(r"(\d+) clearly better, (\d+) clearly worse, (\d+) undecided", page)
    assert counted is not None
    better, worse, undecided = counted.groups()
    assert f"{better} are clearly better" in readme
    assert f"{worse} clearly worse, {undecided} undecided" in readme
    corrected = re.search(r"5 %\) (\d+) clearly better, (\d+) clearly worse", page)
    assert corrected is not None
    sentence = "corrected for the number of comparisons, {} and {}.".format(*corrected.groups())
    assert sentence in " ".join(readme.split())
    gain = re.search(
        r"MD-Agreement: CE less that of the uniform mean ([^.]*\.[^.]*\.[^.]*\.\d+\])", page
    )
    assert gain is not None
    assert gain[1] in readme
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    verdicts = re.search(r"(\d+) × holds, (\d+) × holds in part, (\d+) × does not", page)
    assert verdicts is not None
    holds, partly, fails = (words[int(n)] for n in verdicts.groups())
    sentence = f"{holds} holds, {partly} holds in part and {fails} do not replicate"
    for name in ("README.md", "docs/findings.md"):
        assert sentence in (root / name).read_text(encoding="utf-8")


def test_the_page_of_findings_has_the_verdicts_of_all_kinds_of_members(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = Path(__file__).resolve().parents[2]
    monkeypatch.syspath_prepend(str(root / "tools"))
    import findings_table

    page = (root / "docs" / "findings.md").read_text(encoding="utf-8")
    assert findings_table.with_table(page) == page, "run python tools/findings_table.py"
    assert findings_table.table().count("\n") == 11


def test_the_page_of_findings_shows_figures_of_the_results_pages() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "findings.md").read_text(encoding="utf-8")
    protocol = root / "benchmarks" / "lewidi2023_protocol"
    results = (root / "benchmarks/lewidi2023/RESULTS.md").read_text(encoding="utf-8")
    for backbone in ("minilm", "mpnet"):
        results += (protocol / backbone / "RESULTS.md").read_text(encoding="utf-8")
    judged = page[page.index("## Which findings hold") : page.index("## Against the paper's best")]
    figures = set(re.findall(r"\d\.\d{4}", judged))
    assert len(figures) > 10
    assert [figure for figure in sorted(figures) if figure not in results] == []
    for low, high in re.findall(r"\[(\d\.\d{4}), (\d\.\d{4})\]", judged):
        # The page gives sizes of reductions, the results differences.
        assert f"[−{high}, −{low};" in results


@pytest.mark.parametrize(
    ("backbone", "sentence", "near_the_prior"),
    [
        ("minilm", "one holds in part and nine do not replicate", "25 of the 50"),
        ("mpnet", "four hold in part and six do not replicate", "14 of MPNet's"),
    ],
)
def test_the_page_of_findings_counts_what_holds_under_the_papers_protocol(
    backbone: str, sentence: str, near_the_prior: str
) -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "findings.md").read_text(encoding="utf-8")
    pools = root / "benchmarks" / "lewidi2023_protocol" / backbone
    results = (pools / "RESULTS.md").read_text(encoding="utf-8")
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    verdicts = re.search(r"(\d+) × holds, (\d+) × holds in part, (\d+) × does not", results)
    assert verdicts is not None
    holds, partly, fails = (int(count) for count in verdicts.groups())
    assert holds == 0
    verb = "holds" if partly == 1 else "hold"
    assert sentence == f"{words[partly]} {verb} in part and {words[fails]} do not replicate"
    manifest = json.loads((pools / "HS-Brexit/random-select/manifest.json").read_text("utf-8"))
    losses = [member["metrics"]["dev"]["ce"] for member in manifest["members"]]
    assert near_the_prior.startswith(f"{sum(loss > 0.37 for loss in losses)} of ")
    text = " ".join(page.split())
    for shown in (sentence, near_the_prior):
        assert shown in text


def test_the_row_is_chosen_without_looking_at_test(sections: dict[str, Section]) -> None:
    rows = cells(sections["bars"], "bars-candidates")
    first = min(rows, key=lambda row: row["held-out CE"])
    assert first["held-out CE"] == first["on dev"]
    mine = sections["bars"].values["bars"]["HS-Brexit"]
    assert mine["row"] == f"{first['method']} on {first['pool']}"
    assert mine["ce"] == first["CE"]


def test_sharper_answers_are_points_of_a_trade(sections: dict[str, Section]) -> None:
    rows = cells(sections["trade"], "trade")
    assert [row["power"] for row in rows] == [0.75, 1.0, 1.25, 1.5, 1.75, 2.0]
    assert len({row["F1"] for row in rows}) == 1
    assert sum(row["on dev's front"].endswith(", chosen") for row in rows) == 1


def test_instructive_items_are_shown_by_id(sections: dict[str, Section]) -> None:
    own = cells(sections["qualitative"], "qualitative-own")
    assert own
    assert all(row["item"].startswith("test-") for row in own)
    assert "rude" not in json.dumps(sections["qualitative"].to_dict())


def test_findings_come_with_a_verdict_and_their_noise(sections: dict[str, Section]) -> None:
    found = sections["findings"].values["findings"]
    verdicts = {"holds", "holds in part", "does not replicate", "not available"}
    assert {one["verdict"] for one in found} <= verdicts
    sign = found[0]
    assert "spread between seeds" in sign["here"]
    per_annotator = next(one for one in found if "PerAnn" in one["paper"])
    assert per_annotator["verdict"] == "not available"


def test_the_page_is_written_from_the_sections(study: Study, sections: dict[str, Section]) -> None:
    page = results_page(list(sections.values()), study, "python -m reproduction lewidi2023")
    assert page.startswith("# LeWiDi 2023")
    assert "Written by `python -m reproduction lewidi2023`" in page
    assert "- ArMIS: no members" in page
    assert page.index("## Which findings hold") < page.index("## Benchmark table")


def test_per_annotator_and_cross_fitted_members_have_their_rows(tmp_path: Path) -> None:
    data = small_lewidi(tmp_path / "data", ("ArMIS", "HS-Brexit"))
    predictions = tmp_path / "predictions"
    small_pool(predictions, data, "random-select", 3, dataset="ArMIS", cross_fitted=True)
    small_pool(predictions, data, "per-annotator", 3)
    more = Study(data, predictions, 2, trials=2)
    rows = cells(TABLES["stability"](more), "stability")
    there = {(row["dataset"], row["what varies"]) for row in rows if row["ours"] is not None}
    assert ("ArMIS", "EDO-Random") in there
    assert ("HS-Brexit", "EDO-PerAnn") in there
    assert ("HS-Brexit", "EDO-Random") not in there
    assert set(TABLES["bars"](more).values["bars"]) == {"ArMIS", "HS-Brexit"}


def test_cross_fitted_pools_are_told_apart_by_all_their_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = small_lewidi(tmp_path / "data")
    predictions = tmp_path / "predictions"
    for name, cross_fitted in (("random-select", True), ("mixed", True), ("soft-ce", False)):
        small_pool(predictions, data, name, 2, cross_fitted=cross_fitted)
    found = {
        ("random-select", "uniform"): HeldOut(100, 0.50, 0.52),
        ("mixed", "uniform"): HeldOut(100, 0.48, 0.53),
        ("soft-ce", "uniform"): HeldOut(40, 0.54, 0.54),
    }
    monkeypatch.setattr(bars, "held_out_ce", lambda *_: found)
    row = bars.choice(Study(data, predictions, 1), "HS-Brexit")
    assert isinstance(row, bars.Chosen)
    assert row.pool == "mixed"
    assert row.by_dev is not None
    assert row.by_dev.pool == "random-select"
    # On the items that both have, the third is better than the best of the cross-fitted ones.
    found["soft-ce", "uniform"] = HeldOut(40, 0.525, 0.525)
    row = bars.choice(Study(data, predictions, 1), "HS-Brexit")
    assert isinstance(row, bars.Chosen)
    assert row.pool == "soft-ce"


def test_an_unknown_table_is_refused(study: Study) -> None:
    with raises_code("unknown-choice"):
        reproduce(study, ["table-7"])


def test_tables_without_data_or_predictions_say_what_to_do() -> None:
    with raises_code("missing-data", "2023"):
        reproduce(Study(None, None), ["benchmark"])
    assert reproduce(Study(None, None), ["checks"])[0].name == "checks"


@pytest.mark.lewidi
def test_quoted_items_are_found_by_their_text(lewidi: Path) -> None:
    from reproduction import paper
    from reproduction.lewidi2023.items import find_item
    from reproduction.outcomes import Labels

    study = Study(lewidi, None)
    for quoted in paper.rows("quoted_items"):
        labels = study.labels(quoted["dataset"], "test")
        assert isinstance(labels, Labels)
        assert labels.annotations.texts is not None
        place = find_item(labels.annotations.texts, quoted["sha256"])
        assert place is not None
        assert labels.annotations.items[place] == quoted["item"]
        paper_row = paper.row("qualitative", dataset=quoted["dataset"], method="Empirical")
        assert paper_row is not None
        assert labels.soft[place, 1] == pytest.approx(paper_row["p1"], abs=1e-4)


@pytest.mark.lewidi
def test_dataset_statistics_are_the_papers_but_for_one_range(lewidi: Path) -> None:
    from reproduction.lewidi2023.items import dataset_statistics

    rows = dataset_statistics(Study(lewidi, None)).to_dict()["tables"]["dataset-statistics"]["rows"]
    for row in rows:
        assert row["train/dev/test"] == row["train/dev/test, paper"]
        assert row["0 : 1 (train)"] == row["0 : 1 (train), paper"]
    other = [
        r["dataset"] for r in rows if r["annotations an item"] != r["annotations an item, paper"]
    ]
    assert other == ["ConvAbuse"]
