"""The card of a dataset: every number from a result object, in Markdown and LaTeX."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import edokit
from commands import status
from edokit import Annotations, disagreement_card
from tests.errors import raises_code

TITLES = [
    "Who labelled",
    "Agreement",
    "Structure or noise",
    "Which groups differ",
    "The best score any model could reach",
    "Annotators needed",
]


@pytest.mark.parametrize("regime", ["two-camps", "seven-points", "three-labels"])
def test_every_scale_has_a_card_with_its_own_numbers(regime: str) -> None:
    annotations = edokit.simulate(regime, random_state=0, items=(60, 0, 1)).annotations
    diagnosis = edokit.diagnose(annotations, by=[], permutations=0)
    card = disagreement_card(annotations, diagnosis=diagnosis, name="our data")
    assert [section.title for section in card.sections()] == TITLES
    alpha = diagnosis.agreement["krippendorff_alpha"]["estimate"]
    for text in (card.markdown(), card.latex()):
        assert f"{alpha:.3f}" in text
        assert f"{len(annotations.items)} items" in text
        assert "Disagreement in our data" in text
    assert card.plan is not None
    assert f"{card.plan.curve[0]['annotators']}" in card.markdown()


def test_groups_that_differ_are_named() -> None:
    rng = np.random.default_rng(0)
    strict = rng.random((150, 12)) < np.repeat([0.15, 0.75], 6)
    columns = {
        "item": np.repeat(np.arange(150), 12),
        "annotator": np.tile(np.arange(12), 150),
        "label": np.where(strict, "yes", "no").ravel(),
        "team": np.tile(np.repeat(["red", "blue"], 6), 150),
    }
    card = disagreement_card(Annotations.from_table(columns))
    sections = {section.title: section for section in card.sections()}
    assert "team=blue, team=red" in sections["Which groups differ"].sentences[0]
    assert ["team", "red", 6] in [list(row) for row in sections["Who labelled"].tables[0].rows]


def test_what_is_unknown_is_said() -> None:
    single = Annotations.from_matrix([["a"], ["b"], ["a"]])
    text = disagreement_card(single, by=[]).markdown()
    assert "too few items have labels of two annotators" in text
    assert "no item has two labels" in text
    assert "hide disagreement" in text


def test_items_with_a_single_label_are_unanimous_and_said_to_be_counted() -> None:
    rows = [["a", "b"], ["a", "a"], ["a", None], ["b", None]]
    text = disagreement_card(Annotations.from_matrix(rows), by=[]).markdown()
    assert "75% of the items are unanimous, counting those with a single label." in text
    text = disagreement_card(Annotations.from_matrix(rows[:2]), by=[]).markdown()
    assert "50% of the items are unanimous." in text


def test_names_stay_text_in_latex_and_markdown() -> None:
    odd = Annotations.from_matrix([["a_b", "50%"], ["50%", "a_b"]] * 10)
    card = disagreement_card(odd, by=[])
    assert r"a\_b" in card.latex()
    assert r"50\%" in card.latex()
    assert r"\_" not in card.markdown().replace(r"a\_b", "")


def test_latex_is_complete_whatever_names_there_are() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for item in range(60):
        for who in range(10):
            team = "A_1 & co" if who % 2 else "50% #2 $ {^~\\"
            label = "yes_{x}" if rng.random() < 0.3 + 0.4 * (who % 2) else "no & ~never\\"
            rows.append((f"it_{item}", f"who_{who}", label, team))
    table = pd.DataFrame(rows, columns=["item", "annotator", "label", "team_name"])
    text = disagreement_card(Annotations.from_table(table), by=["team_name"]).latex()
    assert r"A\_1 \& co" in text
    assert r"50\% \#2 \$ \{\textasciicircum{}\textasciitilde{}\textbackslash{}" in text
    ends = {"table": 0, "tabular": 0}
    for line in text.splitlines():
        if line.startswith("%"):
            continue
        bare = re.sub(r"\\[&%$#_{}\\]", "", line)  # without escaped signs and ends of rows
        assert bare.count("{") == bare.count("}")
        assert bare.count("$") % 2 == 0
        assert not set(re.sub(r"\$[^$]*\$", "", bare)) & set("%#_^~")
        assert "&" not in bare or line.endswith(r"\\")
        for name in ends:
            ends[name] += line.count(rf"\begin{{{name}}}") - line.count(rf"\end{{{name}}}")
    assert set(ends.values()) == {0}
    columns = re.findall(r"begin\{tabular\}\{@\{\}(\w+)@", text)
    assert "llr" in columns  # attribute, level and number of people
    assert re.search(r"\$-\$0\.\d", text)  # a difference below 0


@pytest.mark.parametrize("ending", [".md", ".tex"])
def test_the_command_writes_it(
    ending: str, small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"card{ending}"
    words = ["--card", out, "--permutations", 0, "--json"]
    assert status("diagnose", small_run, *words) == 0
    card = json.loads(capsys.readouterr().out)["card"]
    text = out.read_text(encoding="utf-8")
    assert f"{card['best_possible']['ce']:.4f}" in text
    out.write_text("somebody's notes", encoding="utf-8")
    assert status("diagnose", small_run, *words) == 2
    assert out.read_text(encoding="utf-8") == "somebody's notes"
    assert status("diagnose", small_run, "--card", tmp_path / "card.docx") == 2
    assert ".tex" in capsys.readouterr().err


def test_another_ending_is_refused() -> None:
    card = disagreement_card(Annotations.from_matrix([["a", "b"], ["b", "b"]]), by=[])
    with raises_code("unknown-ending"):
        card.write("card.pdf")


def test_levels_that_were_not_tested_are_not_said_to_be_alike() -> None:
    camps = edokit.simulate("two-camps", random_state=0, items=(60, 0, 1)).annotations
    untested = edokit.diagnose(camps, by="group", permutations=0)
    sections = disagreement_card(camps, diagnosis=untested).sections()
    groups = next(section for section in sections if section.title == "Which groups differ")
    assert groups.sentences[0].startswith("No level was tested")
    assert not any("No difference" in sentence for sentence in groups.sentences)


def test_the_number_of_annotators_comes_with_an_interval() -> None:
    camps = edokit.simulate("two-camps", random_state=0, items=(60, 0, 1)).annotations
    card = disagreement_card(camps, by=[])
    assert card.plan is not None
    needed = next(section for section in card.sections() if section.title == "Annotators needed")
    row = next(row for row in card.plan.curve if row["soft_label"]["md"][0] <= 0.1)
    _, low, high = row["soft_label"]["md"]
    assert needed.sentences[0].startswith(f"{row['annotators']} is the smallest")
    assert f"{low:.3f} to {high:.3f}" in needed.sentences[0]
    assert ("may take more" in needed.sentences[0]) == (high > 0.1)


def test_repeated_labels_of_one_annotator_are_not_labels_of_two() -> None:
    columns = {"item": [0, 0, 1, 1], "annotator": ["a", "a", "b", "b"], "label": [0, 1, 0, 0]}
    repeated = Annotations.from_table(columns, duplicates="all")
    assert disagreement_card(repeated, by=[]).plan is None


def test_probabilities_have_no_coefficients_and_the_card_says_so() -> None:
    columns = {"item": [0, 0, 1, 1] * 10, "annotator": ["a", "b"] * 20, "label": ["x", "y"] * 20}
    people = Annotations.from_table({**columns, "item": np.repeat(np.arange(20), 2)})
    probabilities = replace(
        people, label_codes=None, label_probabilities=np.tile([0.3, 0.7], (40, 1))
    )
    agreement = disagreement_card(probabilities, by=[]).sections()[1]
    assert "probabilities" in agreement.sentences[-1]
    assert not agreement.tables
