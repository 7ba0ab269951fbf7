"""The paper's parameter table and figure 1: made from the code, the searches and the data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reproduction_cases import small_study

from edokit import Annotations, Objective, SearchSpace
from reproduction import paper
from reproduction.lewidi2023.configurations import chosen, searched
from reproduction.lewidi2023.disagreement import KINDS, kind_shares, pair_disagreement
from reproduction.lewidi2023.parameters import parameters
from reproduction.lewidi2023.study import Missing, Study
from reproduction.section import Section


def records(section: Section, table: str) -> list[dict[str, Any]]:
    """The rows of a table by column, as they are printed in JSON."""
    rows: list[dict[str, Any]] = section.to_dict()["tables"][table]["rows"]
    return rows


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    """The rows of the parameter table by parameter, made without data."""
    section = parameters(Study(None, None))
    assert list(section.tables) == ["parameters"]
    return {row["parameter"]: row for row in records(section, "parameters")}


def test_what_the_paper_searches_is_what_its_space_searches(
    rows: dict[str, dict[str, Any]],
) -> None:
    drawn = {name for name, row in rows.items() if row["kind"] in ("searched", "chosen on dev")}
    assert drawn | {"ce"} == set(SearchSpace.paper().searched)
    for name in drawn - {"diversity"}:
        assert rows[name]["range, paper"] == rows[name]["range, SearchSpace.paper()"]


def test_the_settings_of_the_ablations_are_those_of_the_preset(
    rows: dict[str, dict[str, Any]],
) -> None:
    compared = [name for name, row in rows.items() if row["ablations, paper"] not in (None, "both")]
    assert len(compared) == 7
    for name in compared:
        assert rows[name]["ablations, paper"] == rows[name]["ablations, paper-fixed"]


def test_the_paper_learns_weights_and_sizes_alone(rows: dict[str, dict[str, Any]]) -> None:
    assert [name for name in rows if rows[name]["kind"] == "learned"] == ["weights", "size_logits"]
    assert rows["lambda_f1"]["default of edokit"] == f"{Objective().f1:g}"
    assert paper.row("parameters", parameter="lambda_reg", low=1e-5, high=1e-2) is not None


@pytest.mark.parametrize(("sign", "diversity"), [(-1, "preserve"), (1, "suppress")])
def test_the_sign_of_the_paper_is_a_diversity(sign: int, diversity: str) -> None:
    assert Objective(diversity=sign) == Objective(diversity=diversity)  # type: ignore[arg-type]
    assert Objective(diversity=sign).resolve().diversity.sign == sign  # type: ignore[arg-type]


def test_the_choices_are_those_of_the_searches(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    (row,) = records(parameters(study), "parameters-chosen")
    trials = searched(study, "HS-Brexit", "random-select")
    assert not isinstance(trials, Missing)
    best = [chosen(trials, seed) for seed in range(study.seeds)]
    sizes = [trial.size for trial in best]
    assert row["dataset"] == "HS-Brexit"
    assert row["size K*"] == f"{np.median(sizes):.2g} [{min(sizes)}, {max(sizes)}]"
    for kind in {trial.variant for trial in best}:
        assert f"{[trial.variant for trial in best].count(kind)} {kind}" in row["kinds of CE"]


def test_items_are_counted_by_how_their_annotators_answer() -> None:
    votes = ["000", "000", "001", "01", "011", "111"]
    rows = [
        (item, who, label) for item, labels in enumerate(votes) for who, label in enumerate(labels)
    ]
    columns = zip(*rows, strict=True)
    annotations = Annotations.from_table(
        dict(zip(("item", "annotator", "label"), map(list, columns), strict=True))
    )
    shares = kind_shares(annotations)
    assert list(shares) == list(KINDS)
    assert list(shares.values()) == pytest.approx([2 / 6, 1 / 6, 1 / 6, 1 / 6, 1 / 6])
    # Two of three pairs differ where one of three dissents; the only pair where two differ.
    assert pair_disagreement(annotations) == pytest.approx((2 / 3 + 1 + 2 / 3) / 6)


def test_the_figure_of_disagreement_has_the_numbers_of_its_table(tmp_path: Path) -> None:
    from reproduction.lewidi2023.disagreement import disagreement, disagreement_figure

    section = disagreement(small_study(tmp_path))
    shares = section.values["shares"]
    assert list(shares) == ["HS-Brexit"]
    table = {row["dataset"]: row for row in records(section, "disagreement")}
    assert "not available" in str(table["ArMIS"]["items"])
    bars = disagreement_figure(shares).spec["layer"][0]["data"]["values"]
    for bar in bars:
        assert table["HS-Brexit"][bar["annotators"]] == f"{bar['share']:.1%}"
    assert bars[-1]["_end"] == pytest.approx(1.0)
    written = section.write(tmp_path / "tables")
    assert {"disagreement.png", "disagreement.pdf"} <= {path.name for path in written}
    json.dumps(section.to_dict(), allow_nan=False)
