"""Do the tests and intervals of `edo diagnose --by` keep what they promise?

    python benchmarks/group_differences.py                  simulated tables
    python benchmarks/group_differences.py lewidi2025 DIR   MP and CSC, train and dev

Simulated people have habits of their own (normal, with a standard deviation of 0.5 points on a
scale from 1 to 5, or of 1 in log-odds) and label 40 items each, about five people an item.
"balanced": 30 women and 30 men. "unbalanced": 12 women and 48 men, 10 to 80 labels each, and women
are shown items that everybody rates higher. With a difference, women's answers are shifted by half
a point before they are rounded and cut to the scale, or by 1.2 in log-odds of the last class or
label. Every table has two more attributes without any difference: age in four bands and team in
three. The coverage of intervals is that of the difference between women and men.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from results import machine, write_section

from edokit import Annotations, read_annotations
from edokit.analysis.diagnose.groups import compare_groups
from edokit.analysis.diagnose.groups.result import value_of
from edokit.analysis.diagnose.groups.text import group_lines

TABLES = 200
COVERAGE_TABLES = 600
"""Tables whose intervals are counted: the tests are of the first ones."""
HABIT = 0.5
SHIFT = {"ordinal": 0.5, "nominal": 1.2, "multi-label": 1.2}
SCALES = {"ordinal": "ordinal:1,2,3,4,5", "nominal": "nominal", "multi-label": "multi-label"}
CLASSES = ("a", "b", "c")


def answers(
    kind: str, quality: np.ndarray, habit: np.ndarray, shift: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """What people answer: points, class codes, or an indicator of each label [n, 3]."""
    if kind == "ordinal":
        latent = 3 + quality[:, 0] + habit[:, 0] + shift + rng.normal(0, 1, len(quality))
        return np.clip(np.rint(latent), 1, 5)
    logits = quality + 2 * habit
    logits[:, -1] += shift
    if kind == "multi-label":
        return (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(int)
    return (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


def simulate(kind: str, balanced: bool, shift: float, seed: int) -> Annotations:
    """A table of annotations with the attributes gender, age and team."""
    rng = np.random.default_rng([seed, 42])
    people = 60
    women = 30 if balanced else 12
    is_woman = np.arange(people) < women
    n_items = people * 40 // 5
    quality = rng.normal(0, 1, (n_items, 3))
    habits = rng.normal(0, HABIT, (people, 3))
    ages = rng.permutation(people) % 4
    teams = rng.permutation(people) % 3
    item_numbers = []
    person_numbers = []
    for person in range(people):
        count = 40 if balanced else int(rng.integers(10, 81))
        weights = np.ones(n_items)
        if not balanced and is_woman[person]:
            weights = np.exp(quality[:, 0] + quality[:, 2])
        item_numbers.append(rng.choice(n_items, count, replace=False, p=weights / weights.sum()))
        person_numbers.append(np.full(count, person))
    item = np.concatenate(item_numbers)
    person = np.concatenate(person_numbers)
    given_answers = answers(kind, quality[item], habits[person], shift * is_woman[person], rng)
    if kind == "multi-label":
        labels = []
        for row in given_answers:
            names = [name for name, is_chosen in zip(CLASSES, row, strict=True) if is_chosen]
            labels.append(json.dumps(names))
    elif kind == "nominal":
        labels = [CLASSES[code] for code in given_answers]
    else:
        labels = [str(int(point)) for point in given_answers]
    table = {
        "item": [f"i{number}" for number in item],
        "annotator": [f"p{number}" for number in person],
        "label": labels,
        "gender": np.where(is_woman[person], "woman", "man"),
        "age": [f"{20 + 10 * age}-{29 + 10 * age}" for age in ages[person]],
        "team": [("red", "green", "blue")[team] for team in teams[person]],
    }
    classes = None if kind == "ordinal" else CLASSES
    return Annotations.from_table(table, scale=SCALES[kind], classes=classes)


class Cell:
    """The results of the tables of one kind, one design and one shift."""

    def __init__(self) -> None:
        self.tables = 0
        self.any_shown = 0
        self.gender_shown = 0
        self.undecided = 0
        self.differences: list[float] = []
        self.ends: list[tuple[float, float]] = []

    def add(self, annotations: Annotations, name: str, tested: bool) -> None:
        """Count a table: its interval of the class, and its tests if they are asked for."""
        if tested:
            comparison = compare_groups(annotations, ["gender", "age", "team"])
            self.tables += 1
            self.any_shown += any(level.differs == "yes" for level in comparison.levels)
            self.undecided += any(level.differs == "can't tell" for level in comparison.levels)
            self.gender_shown += comparison.levels_of("gender")[1].differs == "yes"
        else:
            comparison = compare_groups(annotations, ["gender"], permutations=0)
        woman = comparison.levels_of("gender")[1]
        self.differences.append(value_of(woman.difference, name) or 0.0)
        self.ends.append((value_of(woman.low, name) or 0.0, value_of(woman.high, name) or 0.0))

    def coverage(self, truth: float) -> float:
        """How often the intervals cover the true difference."""
        low, high = np.array(self.ends).T
        return float(np.mean((low <= truth) & (truth <= high)))


def simulated(tables: int, coverage_tables: int) -> list[str]:
    """The table of false alarms, power and coverage; prints its rows as they are computed."""
    heads = ["answers", "design", "difference", "shown: any of 3 attributes", "shown: gender"]
    heads += ["can't tell", "coverage"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    print("\n".join(lines), flush=True)
    for balanced in (False, True):
        design = "balanced" if balanced else "unbalanced"
        for kind in SCALES:
            name = "" if kind == "ordinal" else CLASSES[-1]
            without_shift = Cell()
            with_shift = Cell()
            for seed in range(coverage_tables):
                is_tested = seed < tables
                without_shift.add(simulate(kind, balanced, 0.0, seed), name, is_tested)
                with_shift.add(simulate(kind, balanced, SHIFT[kind], seed), name, is_tested)
            # The true difference is the mean change of the difference on the same draws.
            changes = np.subtract(with_shift.differences, without_shift.differences)
            truth = float(np.mean(changes))
            lines.append(cell_line(f"| {kind} | {design} | none |", without_shift, 0.0))
            print(lines[-1], flush=True)
            lines.append(cell_line(f"| {kind} | {design} | {truth:+.2f} |", with_shift, truth))
            print(lines[-1], flush=True)
    return lines


def cell_line(start: str, cell: Cell, truth: float) -> str:
    """A row of the table."""
    counts = (cell.any_shown, cell.gender_shown, cell.undecided)
    shares = " | ".join(f"{count / cell.tables:.1%}" for count in counts)
    return f"{start} {shares} | {cell.coverage(truth):.1%} |"


def lewidi2025(folder: Path) -> None:
    """Print the comparison of MP and CSC, train and dev."""
    for name, attributes in {
        "CSC": ["Gender", "Age"],
        "MP": ["Gender", "Age", "Ethnicity simplified", "Country of residence", "Student status"],
    }.items():
        annotations = read_annotations(folder / name, split=["train", "dev"])
        comparison = compare_groups(annotations, attributes)
        print(f"{name}: {annotations}")
        for line in group_lines(comparison):
            if "items that divide" not in line:
                print(line)


HEAD = """\
    python benchmarks/group_differences.py

Simulated tables of 60 people with three attributes: gender, age in four bands, team in three. Only
genders differ, or nothing does. Balanced: 30 women and 30 men with 40 labels each. Unbalanced: 12
women and 48 men, 10 to 80 labels each, and women see items that everybody rates higher. Shown:
share of {tables} tables in which some level of any attribute, or of gender, is said to differ
(5 % after the correction for all three attributes). Can't tell: the permutations do not decide.
Coverage of the 95 % intervals of women against men (classes and labels: of the last one), in
{coverage_tables} tables; the true difference is the mean change that the shift makes.
"""

if __name__ == "__main__":
    if sys.argv[1:2] == ["lewidi2025"]:
        lewidi2025(Path(sys.argv[2]))
    else:
        rows = simulated(TABLES, COVERAGE_TABLES)
        head = HEAD.format(tables=TABLES, coverage_tables=COVERAGE_TABLES)
        text = "\n".join([head, *rows, "", machine("numpy", "scipy")])
        write_section("Do groups differ? (`group_differences.py`)", text)
