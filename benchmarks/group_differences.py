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

from edokit import Annotations, read_annotations
from edokit.analysis.diagnose.groups import compare_groups
from edokit.analysis.diagnose.groups.result import value_of
from edokit.analysis.diagnose.groups.text import group_lines

TABLES = 200
COVERAGE_TABLES = 400
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
    is_woman = np.arange(people) < (30 if balanced else 12)
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
    given = answers(kind, quality[item], habits[person], shift * is_woman[person], rng)
    if kind == "multi-label":
        chosen = [[c for c, on in zip(CLASSES, row, strict=True) if on] for row in given]
        labels = [json.dumps(names) for names in chosen]
    elif kind == "nominal":
        labels = [CLASSES[code] for code in given]
    else:
        labels = [str(int(point)) for point in given]
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


def coverage(kind: str, balanced: bool, shift: float) -> tuple[float, float]:
    """The mean difference that the shift makes on the same draws, and how often it is covered."""
    name = "" if kind == "ordinal" else "c"
    differences = []
    intervals = []
    for seed in range(COVERAGE_TABLES):
        values = []
        for moved in (shift, 0.0) if shift else (0.0,):
            annotations = simulate(kind, balanced, moved, seed)
            woman = compare_groups(annotations, ["gender"], permutations=0).of("gender")[1]
            if moved == shift:
                intervals.append((value_of(woman.low, name), value_of(woman.high, name)))
            values.append(value_of(woman.difference, name) or 0.0)
        differences.append(values[0] - values[1] if shift else 0.0)
    truth = float(np.mean(differences))
    low, high = np.array(intervals, dtype=float).T
    return truth, float(np.mean((low <= truth) & (truth <= high)))


def simulated(tables: int) -> None:
    """Print false alarms, power and coverage."""
    print(
        "| answers | design | difference | tables | shown: any of 3 attributes | shown: gender |"
        f" gender alone tested | can't tell | coverage ({COVERAGE_TABLES} tables) |"
        "\n|---|---|---|---|---|---|---|---|---|"
    )
    for kind in SCALES:
        for balanced in (True, False):
            for shift in (0.0, SHIFT[kind]):
                any_shown = gender_shown = alone_shown = undecided = 0
                for seed in range(tables):
                    annotations = simulate(kind, balanced, shift, seed)
                    found = compare_groups(annotations, ["gender", "age", "team"])
                    any_shown += any(level.differs == "yes" for level in found.levels)
                    undecided += any(level.differs == "can't tell" for level in found.levels)
                    gender_shown += found.of("gender")[1].differs == "yes"
                    alone = compare_groups(annotations, ["gender"])
                    alone_shown += alone.levels[1].differs == "yes"
                truth, covered = coverage(kind, balanced, shift)
                counts = (any_shown, gender_shown, alone_shown, undecided)
                shares = " | ".join(f"{count / tables:.1%}" for count in counts)
                design = "balanced" if balanced else "unbalanced"
                shown = f"{truth:+.2f}" if shift else "none"
                print(
                    f"| {kind} | {design} | {shown} | {tables} | {shares} | {covered:.1%} |",
                    flush=True,
                )


def lewidi2025(folder: Path) -> None:
    """Print the comparison of MP and CSC, train and dev."""
    for name, attributes in {
        "CSC": ["Gender", "Age"],
        "MP": ["Gender", "Age", "Ethnicity simplified", "Country of residence", "Student status"],
    }.items():
        annotations = read_annotations(folder / name, split=["train", "dev"])
        found = compare_groups(annotations, attributes)
        print(f"{name}: {annotations}")
        for line in group_lines(found):
            if "items that divide" not in line:
                print(line)


if __name__ == "__main__":
    if sys.argv[1:2] == ["lewidi2025"]:
        lewidi2025(Path(sys.argv[2]))
    else:
        simulated(int(sys.argv[1]) if sys.argv[1:] else TABLES)
