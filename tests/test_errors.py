"""What EDO says when something is wrong."""

from __future__ import annotations

import pickle
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import edokit
from edokit import EDOError, InputError, MissingExtraError
from edokit._errors import (
    HAVE,
    Decision,
    OpenDecisionsError,
    are,
    counted,
    errors_in,
    examples,
    money,
    one_of,
    typed_values,
)

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import messages

from tests.errors import raises_code


@given(st.text(), st.text())
def test_every_message_is_one_line(message: str, hint: str) -> None:
    assert len(str(InputError(message, hint, code="a-rule")).splitlines()) <= 1


def test_a_message_ends_with_what_to_do() -> None:
    with_hint = InputError("the rule, but got 3", "give 2", code="a-rule")
    assert str(with_hint) == "the rule, but got 3; give 2"
    assert str(InputError("the rule, but got 3", code="a-rule")) == "the rule, but got 3"


@pytest.mark.parametrize("kind", [EDOError, InputError, MissingExtraError])
def test_an_error_survives_the_way_between_processes(kind: type[EDOError]) -> None:
    again = pickle.loads(pickle.dumps(kind("the rule", "the hint", code="a-rule")))
    assert type(again) is kind
    assert (again.message, again.hint, again.code) == ("the rule", "the hint", "a-rule")


def test_an_error_keeps_its_code_where_it_gets_a_file() -> None:
    with pytest.raises(InputError) as raised, errors_in("labels.csv"):
        raise InputError("row 3 has no label", code="missing-value")
    assert raised.value.code == "missing-value"
    assert raised.value.message == "labels.csv: row 3 has no label"


def test_one_decision_has_its_own_code_and_several_have_one_for_all() -> None:
    first = Decision("row 3 has no label", "drop it", code="missing-value")
    second = Decision("row 5 repeats row 4", "drop it", code="duplicate-annotation")
    assert OpenDecisionsError([first]).code == "missing-value"
    assert OpenDecisionsError([first, second]).code == "open-decisions"


def test_input_errors_are_value_errors_and_missing_extras_import_errors() -> None:
    assert issubclass(InputError, ValueError)
    assert issubclass(MissingExtraError, ImportError)
    assert issubclass(InputError, EDOError)


def test_three_examples_and_a_count_of_the_rest() -> None:
    assert examples(["a", "b", "c"]) == "'a', 'b', 'c'"
    assert examples(iter(range(7))) == "'0', '1', '2' and 4 more"
    assert examples([]) == ""


def test_a_long_example_is_cut_and_a_line_break_is_spelled_out() -> None:
    assert len(examples(["x" * 5000])) < 50
    assert "\n" not in examples(["a\nb"])


def test_a_number_agrees_with_its_noun() -> None:
    assert counted(1, "such row") == "1 such row"
    assert counted(2, "array") == "2 arrays"
    assert counted(0, "item") == "0 items"
    assert counted(3, "item") == "3 items"
    assert counted(2, "class") == "2 classes"
    assert counted(2, "entry") == "2 entries"
    assert are(1, 3, noun="item") == "1 of 3 items is"
    assert are(1, 1, HAVE, "item") == "1 of 1 item has"


def test_no_message_counts_without_looking_at_the_number() -> None:
    nouns = "items|texts|members|rows|annotators|labels|groups|files|trials|folds|annotations"
    counts = r"\{(?:len\([^{}]*\)|int\([^{}]*\.sum\(\)\)|\w*tied)\}"
    # Not "all 3 items" or "each of the 3 items": that is said of several.
    several = rf"(?<! of)(?<!all)(?<!the) {counts} (?:{nouns})\b(?! are not one)"
    wrong = re.compile(rf"{several}|(?:annotator|item|label|member|text|trial)\(s\)")
    source = Path(edokit.__file__).parent
    found = [
        f"{file.relative_to(source)}: {line.strip()}"
        for file in sorted(source.rglob("*.py"))
        for line in file.read_text(encoding="utf-8").splitlines()
        if wrong.search(line.replace('f"', " "))
    ]
    assert not found, found


def test_a_mode_that_does_not_exist_is_refused_with_those_that_do() -> None:
    one_of("ties", "first", ["first", "error"])
    with raises_code("unknown-choice", "ties", "'first', 'error'", "'last'"):
        one_of("ties", "last", ["first", "error"])
    with raises_code("unknown-choice", "draw", "must be 'once'"):
        one_of("draw", "epoch", ["once"])


def test_a_misspelt_mode_gets_the_closest_one_as_a_suggestion() -> None:
    with raises_code("unknown-choice", "did you mean 'lambda_reg'?"):
        one_of("space", "lamda_reg", ["lambda_f1", "lambda_ce", "lambda_reg"])
    with raises_code("unknown-choice", "choose 'first', for example"):
        one_of("ties", 7, ["first", "error"])


@pytest.mark.parametrize("seed", [-1, 2**32, 10**400, 1.5, True, "zero"])
def test_a_seed_that_cannot_be_kept_is_refused_before_anything_is_done(seed: Any) -> None:
    P = np.full((6, 2, 2), 0.5)
    labels = [[0, 1], [1, 1], [0, 0]] * 2
    for call in (
        lambda: edokit.EDOEnsemble(random_state=seed).fit(P, labels),
        lambda: edokit.search(P, labels, random_state=seed),
        lambda: edokit.compare(P, labels, P, [*labels], random_state=seed),
        lambda: edokit.simulate(random_state=seed),
    ):
        with raises_code("invalid-number", "random_state"):
            call()


@pytest.mark.parametrize(
    ("value", "shown"),
    [(2.1391e-05, "0.00002139"), (-4.596e-06, "−0.000004596"), (1200, "1200"), (0.0, "0")],
)
def test_costs_are_written_without_exponents(value: float, shown: str) -> None:
    assert money(value) == shown


def test_every_extra_that_an_error_names_is_in_the_readme_and_can_be_installed() -> None:
    root = Path(__file__).parents[1]
    section = (root / "pyproject.toml").read_text().split("[project.optional-dependencies]")[1]
    declared = set(re.findall(r"^(\w+) = \[", section.split("[project.scripts]")[0], re.MULTILINE))
    table = (root / "README.md").read_text().split("| extra | for |")[1].split("\n\n")[0]
    listed = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    assert listed == declared - {"bench", "docs", "dev"}
    sources = (root / "src" / "edokit").rglob("*.py")
    pages = [*(root / "docs").rglob("*.md"), root / "README.md"]
    text = "\n".join(path.read_text() for path in (*sources, *pages))
    assert 'pip install "edokit[' not in text


def test_values_of_options_are_written_as_one_types_them() -> None:
    assert typed_values({"item": "id", "text": "t"}) == ["item=id", "text=t"]
    assert typed_values(["no", "yes, maybe", 'say "no"']) == ['no,"yes, maybe","say ""no"""']
    assert typed_values((10, 5)) == ["10,5"]
    assert typed_values(0.5) == ["0.5"]


def test_all_messages_are_in_the_snapshot() -> None:
    written = messages.SNAPSHOT.read_text(encoding="utf-8")
    assert written == messages.snapshot(), "run python tools/messages.py"


def test_codes_are_few_noun_phrases_that_the_reference_lists() -> None:
    codes = messages.codes()
    assert 100 <= len(codes) <= 200
    page = messages.PAGE.read_text(encoding="utf-8")
    assert page == messages.page(page), "run python tools/messages.py"


def test_every_error_of_the_package_names_one_code() -> None:
    for message in messages.messages():
        for code in message.code.split(" | "):
            is_passed_on = re.fullmatch(r"\{\w+\.code\}|unknown-\{role\}", code)
            assert code == "warning" or is_passed_on or messages.CODE.fullmatch(code), message
