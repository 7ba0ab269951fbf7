"""The paper's own numbers: every file names its table, and holds what is printed there."""

from __future__ import annotations

from importlib.resources import files

import pytest

from reproduction import paper
from reproduction.lewidi2023.study import DATASETS
from tests.errors import raises_code

COUNTS = {
    "dataset_statistics": 4,
    "ce_variants_main": 24,
    "ce_variants_preserve": 12,
    "ce_variants_suppress": 12,
    "diversity_main": 6,
    "diversity_averaged": 6,
    "diversity_per_dataset": 24,
    "weighting": 8,
    "benchmark": 24,
    "deviations": 8,
    "qualitative": 20,
    "quoted_items": 4,
    "findings": 10,
    "parameters": 13,
}


def test_every_file_names_its_table() -> None:
    folder = files("reproduction.paper")
    there = {place.name[:-4] for place in folder.iterdir() if place.name.endswith(".csv")}
    assert there == set(paper.sources())
    assert all(source["label"] and source["what"] for source in paper.sources().values())


@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_every_row_is_there(name: str, count: int) -> None:
    assert len(paper.rows(name)) == count


@pytest.mark.parametrize(
    ("name", "wanted", "column", "value"),
    [
        ("benchmark", {"method": "WEL", "dataset": "ConvAbuse"}, "ce", 0.5577),
        ("benchmark", {"method": "Soft-CE", "dataset": "ConvAbuse"}, "md", 4.8068),
        ("benchmark", {"method": "EDO-PerAnn", "dataset": "MD-Agreement"}, "bs", 0.1592),
        ("weighting", {"dataset": "MD-Agreement", "pool": "per-annotator"}, "delta_ce", -0.5607),
        ("deviations", {"method": "EDO-PerAnn", "dataset": "ArMIS"}, "ce", 0.0512),
        (
            "diversity_per_dataset",
            {"dataset": "HS-Brexit", "objective": "f1+ce", "diversity": "preserve"},
            "ce_without",
            0.7747,
        ),
        ("diversity_main", {"objective": "f1+ce", "diversity": "preserve"}, "delta_ce", -0.0993),
        ("qualitative", {"dataset": "HS-Brexit", "method": "Soft-CE"}, "md", 0.3248),
        ("dataset_statistics", {"dataset": "HS-Brexit"}, "ratio", 9.89),
    ],
)
def test_figures_are_as_printed(
    name: str, wanted: dict[str, str], column: str, value: float
) -> None:
    row = paper.row(name, **wanted)
    assert row is not None
    assert row[column] == value


def test_main_and_appendix_tables_of_the_paper_agree() -> None:
    for row in paper.rows("ce_variants_main"):
        same = paper.row(
            f"ce_variants_{row['diversity']}", dataset=row["dataset"], variant=row["variant"]
        )
        assert same is not None
        assert [same[key] for key in ("f1", "ce", "gap_ce")] == [
            row[key] for key in ("f1", "ce", "gap_ce")
        ]
    for row in paper.rows("diversity_main"):
        same = paper.row(
            "diversity_averaged", objective=row["objective"], diversity=row["diversity"]
        )
        assert same is not None
        assert [same[f"{m}_delta"] for m in ("f1", "ce", "md")] == [
            row[f"delta_{m}"] for m in ("f1", "ce", "md")
        ]


def test_quoted_items_are_kept_as_ids_and_digests_only() -> None:
    rows = paper.rows("quoted_items")
    assert {row["dataset"] for row in rows} == set(DATASETS)
    assert all(set(row) == {"dataset", "item", "sha256"} for row in rows)
    assert all(len(str(row["sha256"])) == 64 for row in rows)


def test_an_unknown_table_is_refused() -> None:
    with raises_code("unknown-choice"):
        paper.rows("nothing")
