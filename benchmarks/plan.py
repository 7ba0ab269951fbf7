"""Does `edo plan` predict what more annotators and items show? Writes docs/plan.md.

    python benchmarks/plan.py labels LEWIDI2023_FOLDER LEWIDI2025_FOLDER
    python benchmarks/plan.py models LEWIDI2023_FOLDER LEWIDI2025_FOLDER
    python benchmarks/plan.py example LEWIDI2023_FOLDER

`labels`: small pilots with few labels an item are drawn from data with many (train and dev, and the
simulators). What they predict, the error of the soft label of some annotators and
the spread of the difference between two models, is compared with what the other items show.
`models`: a pilot of 400 items predicts the loss of a model that is trained on 1,200 others.
`example`: the plan that the page shows.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import results

import edokit
from edokit import Annotations, Predictions
from edokit.analysis.human_labels import HumanLabels
from edokit.analysis.plan import plan
from edokit.analysis.plan.comparison import difference_spreads
from edokit.analysis.plan.kinds import same_mode
from edokit.analysis.plan.options import PlanOptions
from edokit.analysis.plan.soft_labels import soft_label_errors
from edokit.members.recipe import MemberData
from edokit.members.registry import find_recipe
from edokit.metrics import item_values

ROOT = Path(__file__).resolve().parent
PAGE = ROOT.parent / "docs" / "plan.md"
OPTIONS = PlanOptions(budget=1.0, samples=100)


def sources(lewidi2023: Path, lewidi2025: Path) -> Iterator[tuple[str, Annotations, int]]:
    """Data with many annotators per item, and the least number of labels of an item."""
    crowd = edokit.simulate("crowd", random_state=0, items=(3000, 1, 1)).annotations
    yield "simulator, crowd", crowd, 5
    yield "simulated ratings", ratings(3000, 10), 10
    yield "MD-Agreement", train_and_dev(lewidi2023 / "MD-Agreement"), 5
    yield "CSC (ratings)", train_and_dev(lewidi2025 / "CSC"), 6
    yield "MP", train_and_dev(lewidi2025 / "MP"), 8


def ratings(items: int, annotators: int) -> Annotations:
    """Annotators whose ratings are normal with standard deviation 0.7, rounded to nine points."""
    rng = np.random.default_rng(0)
    means = rng.normal(5, 1.8, (items, 1)).clip(1, 9)
    rated = rng.normal(means, 0.7, (items, annotators)).round().clip(1, 9).astype(int)
    return Annotations.from_matrix(rated, scale="ordinal:1,2,3,4,5,6,7,8,9")


def train_and_dev(folder: Path) -> Annotations:
    return edokit.read_annotations(folder).split("train", "dev")


def with_labels(data: Annotations, labels: int, rng: np.random.Generator) -> Annotations:
    """Items with at least this many labels, of which exactly this many are drawn at random."""
    data = data.take(data.annotations_per_item >= labels)
    order = rng.permutation(len(data))
    order = order[np.argsort(data.item_codes[order], kind="stable")]
    starts = np.cumsum(data.annotations_per_item) - data.annotations_per_item
    places = (starts[:, None] + np.arange(labels)).ravel()
    return relabelled(data, order[places])


def relabelled(data: Annotations, rows: np.ndarray) -> Annotations:
    """The items with these annotations only."""
    assert data.label_codes is not None
    return replace(
        data,
        item_codes=data.item_codes[rows],
        annotator_codes=data.annotator_codes[rows],
        label_codes=data.label_codes[rows],
        attributes={},
        annotation_columns={},
        published=None,
        item_columns={},
    )


def soft_labels(data: Annotations, first: int, last: int, labels: int) -> np.ndarray:
    """Soft labels of the annotations number ``first`` to ``last`` of each item."""
    place = np.arange(len(data)) % labels
    return relabelled(data, np.flatnonzero((place >= first) & (place < last))).soft_labels


def small_pilots(
    data: Annotations, labels: int, pilots: int
) -> Iterator[tuple[Annotations, Annotations]]:
    """Pilots with two or three labels an item, and the other items with all of them."""
    for number in range(pilots):
        rng = np.random.default_rng(number)
        complete = with_labels(data, labels, rng)
        order = rng.permutation(len(complete.items))
        size = min((100, 200, 400)[number % 3], len(order) // 3)
        pilot = with_labels(complete.take(order[:size]), 2 + number % 2, rng)
        yield pilot, with_labels(complete.take(order[size:]), labels, rng)


def label_cases(data: Annotations, labels: int, pilots: int) -> dict[str, list[tuple[float, ...]]]:
    """By metric, (measured, estimate, low, high) of every pilot and number of annotators."""
    cases: dict[str, list[tuple[float, ...]]] = {}
    scale = data.scale
    values = item_values(data.scale)
    counts = [1, 2, 3]
    reference = labels - counts[-1]
    for pilot, other_items in small_pilots(data, labels, pilots):
        errors = soft_label_errors(
            HumanLabels(pilot), counts, OPTIONS.samples, OPTIONS.random_state, reference
        )
        target = soft_labels(other_items, labels - reference, labels, labels)
        for k, count in enumerate(counts):
            q = soft_labels(other_items, 0, count, labels)
            for name in errors:
                if name == "f1":
                    measured = same_mode(scale.rows(q), scale.rows(target)).mean()
                else:
                    measured = values[name](q, target, scale.hard(target)).mean()
                cases.setdefault(f"soft label, {name}", []).append((measured, *errors[name].at(k)))
    return cases


def comparison_cases(
    data: Annotations, jury: Predictions, labels: int, pilots: int
) -> dict[str, list[tuple[float, ...]]]:
    """The cases of the spread of the difference between two members, with 1 to 5 annotators."""
    cases: dict[str, list[tuple[float, ...]]] = {}
    scale = data.scale
    values = item_values(data.scale)
    counts = [1, 3, labels]
    for pilot, other_items in small_pilots(data, labels, pilots):
        pilot_models = first_and_last(jury, pilot)
        p_first, p_last = first_and_last(jury, other_items)
        spreads = difference_spreads(HumanLabels(pilot), *pilot_models, counts, OPTIONS.samples)
        for k, count in enumerate(counts):
            q = soft_labels(other_items, 0, count, labels)
            y = scale.hard(q)
            for name in spreads:
                differences = values[name](p_first, q, y) - values[name](p_last, q, y)
                measured = differences.std(ddof=1)
                cases.setdefault(f"difference, {name}", []).append(
                    case(measured, spreads[name][:, k])
                )
    return cases


def first_and_last(jury: Predictions, items: Annotations) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities of the first and the last member for these items."""
    P = jury.take(jury.rows.positions(items.rows)).probabilities
    return P[:, 0].astype(float), P[:, -1].astype(float)


def case(measured: float, resampled: np.ndarray) -> tuple[float, ...]:
    """The measured value with the estimate and its interval."""
    return (measured, np.median(resampled), *np.quantile(resampled, [0.025, 0.975]))


def coverage_table(cases: dict[str, dict[str, list[tuple[float, ...]]]]) -> str:
    """How many measured values are in their interval."""
    lines = ["| data | quantity | cases | predicted / measured | in its interval |"]
    lines.append("|---|---|---|---|---|")
    all_inside = []
    for name, quantities in cases.items():
        for quantity, rows in quantities.items():
            measured, estimate, low, high = np.array(rows).T
            inside = (low <= measured) & (measured <= high)
            all_inside.append(inside)
            lines.append(
                f"| {name} | {quantity} | {len(rows)} | {np.mean(estimate / measured):.2f} |"
                f" {inside.mean():.0%} |"
            )
    total = np.concatenate(all_inside)
    lines.append(f"| **all** | | {len(total)} | | **{total.mean():.0%}** |")
    return "\n".join(lines)


def labels(lewidi2023: Path, lewidi2025: Path, pilots: int) -> str:
    """The table of soft labels and comparisons."""
    cases = {
        name: label_cases(data, least, pilots)
        for name, data, least in sources(lewidi2023, lewidi2025)
    }
    members = {
        "MD-Agreement": (lewidi2023, "lewidi2023/MD-Agreement/mixed", 5),
        "CSC (ratings)": (lewidi2025, "lewidi2025/CSC/anonymous", 5),
        "MP": (lewidi2025, "lewidi2025/MP/small", 5),
    }
    for name, (folder, pool, least) in members.items():
        jury = edokit.read_predictions(ROOT / pool / "dev.npz")
        people = edokit.read_annotations(folder / Path(pool).parts[1], split="dev")
        jury = jury.on_scale(people.scale).order_classes(people.classes)
        cases[name] |= comparison_cases(people, jury, least, pilots)
    return coverage_table(cases)


def trained_loss(data: Annotations, test: Annotations, labels: int, seed: int) -> float:
    """The loss on test of a TF-IDF member that is trained on this many labels per item."""
    rng = np.random.default_rng(seed)
    train = with_labels(data, labels, rng)
    texts = train.whole_texts
    assert texts is not None
    assert test.whole_texts is not None
    member = find_recipe("linear")(len(train.classes))
    member.fit(
        MemberData(
            list(texts),
            lambda epoch: train.soft_labels,
            scale=train.scale,
            classes=train.classes,
        )
    )
    p = member.predict_proba(list(test.whole_texts))
    human_labels = HumanLabels(test)
    return float(human_labels.losses(p).mean())


def models(lewidi2023: Path, lewidi2025: Path, pilots: int) -> str:
    """The table of trained models: pilots of 400 items, three labels each."""
    cases: dict[str, dict[str, list[tuple[float, ...]]]] = {}
    folders = {
        "MD-Agreement": lewidi2023 / "MD-Agreement",
        "CSC (ratings)": lewidi2025 / "CSC",
        "MP": lewidi2025 / "MP",
    }
    for name, folder in folders.items():
        data = train_and_dev(folder)
        data = data.take(data.annotations_per_item >= 3)
        rows: list[tuple[float, ...]] = []
        for number in range(pilots):
            rng = np.random.default_rng(number)
            order = rng.permutation(len(data.items))
            pilot = with_labels(data.take(np.sort(order[:400])), 3, rng)
            # Its soft labels have as many annotators as those of the pilot.
            test = with_labels(data.take(np.sort(order[1600:2600])), 3, rng)
            for count in (1, 3):
                pilot_plan = plan(pilot, budget=1200 * count, annotators=[count], samples=100)
                estimate, low, high = pilot_plan.curve[0]["model"][pilot_plan.metric]
                train = data.take(np.sort(order[400:1600]))
                rows.append((trained_loss(train, test, count, number), estimate, low, high))
        cases[name] = {"model, 1,200 items": rows}
    return coverage_table(cases)


def example(lewidi2023: Path) -> str:
    """The plan of a pilot: 300 items of MD-Agreement's dev split, and two of its members."""
    people = edokit.read_annotations(lewidi2023 / "MD-Agreement", split="dev").take(range(300))
    members = edokit.read_predictions(ROOT / "lewidi2023" / "MD-Agreement" / "mixed" / "dev.npz")
    jury = members.align(edokit.read_annotations(lewidi2023 / "MD-Agreement", split="dev").rows)
    jury = jury.take(range(300))
    example_plan = plan(people, predictions=jury, budget=2000, price=0.1, item_price=0.2)
    tables = "\n".join(table.markdown() for table in example_plan.tables())
    return "\n\n".join([*(f"> {line}" for line in example_plan.headline), tables]).rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("labels", "models", "example"))
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--pilots", type=int)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.what == "labels":
        text = labels(*arguments.folders, arguments.pilots or 12)
    elif arguments.what == "models":
        text = models(*arguments.folders, arguments.pilots or 4)
    else:
        text = example(*arguments.folders)
    marks = f"<!-- {arguments.what} -->", f"<!-- end of {arguments.what} -->"
    results.rewrite(PAGE, marks, f"{marks[0]}\n{text}\n{marks[1]}")
    print(text)


if __name__ == "__main__":
    main()
