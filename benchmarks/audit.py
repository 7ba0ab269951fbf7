"""Does `edo audit` say what is true? Measured where the truth is known; writes docs/audit.md.

    python benchmarks/audit.py judges
    python benchmarks/audit.py replace
    python benchmarks/audit.py published ALT_TEST_FOLDER
    python benchmarks/audit.py lewidi LEWIDI_FOLDER

`judges`: simulated members whose errors are correlated by a known amount: the estimated number of
independent judges, and how often its 95 % interval holds the true one. `replace`: how often a
simulated candidate passes the alternative annotator test, by how much noise it has beside people;
`published`: the figures of Calderon et al. (2025), from a clone of github.com/nitaytech/AltTest,
again. `lewidi`: the members of `benchmarks/lewidi2023` on the dev splits (no test label is read).
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import results

import edokit
from edokit import Annotations, Predictions
from edokit._types import Ints

ROOT = Path(__file__).resolve().parent
PAGE = ROOT.parent / "docs" / "audit.md"
EPSILONS = {
    "wax": 0.1,
    "lgbteen": 0.2,
    "mtbench": 0.2,
    "framing": 0.15,
    "cebab_aspects": 0.1,
    "summeval": 0.2,
    "10k_prompts": 0.15,
    "cebab_stars": 0.1,
    "lesion": 0.15,
}
"""ε of each published dataset."""
RATINGS = ("summeval", "10k_prompts", "cebab_stars", "lesion")
POOLS = ("random-select", "decoder", "mixed")


def simulated_jury(
    rng: np.random.Generator, items: int, members: int, correlation: float, annotators: int
) -> tuple[Predictions, Annotations]:
    """Members whose errors have variance 0.01 and this correlation, and annotators of the items."""
    q = rng.uniform(0.3, 0.7, items)
    shared_errors = rng.normal(0, np.sqrt(correlation), (items, 1))
    member_errors = rng.normal(0, np.sqrt(1 - correlation), (items, members))
    p = np.clip(q[:, None] + 0.1 * (shared_errors + member_errors), 0, 1)
    votes = (rng.random((items, annotators)) < q[:, None]).astype(int)
    people = Annotations.from_matrix(votes, classes=[0, 1])
    return Predictions.from_arrays(
        np.stack([1 - p, p], axis=2), items=people.items, classes=people.classes, layout="NKC"
    ), people


def true_judges(members: int, correlation: float) -> float:
    """K / (1 + (K − 1) ρ)."""
    return members / (1 + (members - 1) * correlation)


def judges(runs: int) -> str:
    """Estimate and coverage by correlation and annotators per item."""
    lines = [
        "| errors correlate by | members | annotators an item | items | true judges | estimated,"
        " median | holds the truth | without taking out the labels' noise |",
        "|---|---|---|---|---|---|---|---|",
    ]
    rng = np.random.default_rng(0)
    for correlation in (0.0, 0.2, 0.5, 0.9):
        for annotators, items in ((3, 1000), (5, 300), (5, 1000)):
            truth = true_judges(8, correlation)
            estimates = []
            naive = []
            inside = 0
            for _ in range(runs):
                jury, people = simulated_jury(rng, items, 8, correlation, annotators)
                audit = edokit.audit(jury, people, samples=300)
                assert audit.judges is not None
                low = audit.judges.low or 0.0
                high = audit.judges.high or np.inf
                inside += low <= truth <= high
                estimates.append(audit.judges.estimate or np.inf)
                gaps = jury.probabilities[..., 1] - people.soft_labels[:, 1:]
                naive.append(np.square(gaps).mean() / np.square(gaps.mean(axis=1)).mean())
            lines.append(
                f"| {correlation} | 8 | {annotators} | {items:,} | {truth:.2f} |"
                f" {np.median(estimates):.2f} | {inside / runs:.0%} | {np.median(naive):.2f} |"
            )
    return "\n".join(lines)


def simulated_people(
    rng: np.random.Generator, items: int, noise: float, candidate_noise: float
) -> tuple[Predictions, Annotations]:
    """Six annotators and a candidate, who each give a random class with these probabilities."""
    truth = rng.integers(3, size=items)

    def answers(share: float, count: int) -> Ints:
        random = rng.integers(3, size=(items, count))
        return np.where(rng.random((items, count)) < share, random, truth[:, None])

    people = Annotations.from_matrix(answers(noise, 6), classes=[0, 1, 2])
    p = np.eye(3)[answers(candidate_noise, 1)]
    return Predictions.from_arrays(
        p, items=people.items, members=["candidate"], classes=people.classes, layout="NKC"
    ), people


def replacement(runs: int) -> str:
    """How often a candidate passes, by its noise."""
    lines = [
        "| random answers of people / of the candidate | items | ε 0: wins | passes | ε 0.1: wins"
        " | passes |",
        "|---|---|---|---|---|---|",
    ]
    rng = np.random.default_rng(0)
    for candidate_noise in (0.5, 0.3, 0.2, 0.1, 0.0):
        for items in (50, 200):
            cells = []
            for epsilon in (0.0, 0.1):
                rates = []
                for _ in range(runs):
                    jury, people = simulated_people(rng, items, 0.3, candidate_noise)
                    audit = edokit.audit(jury, people, replace=True, epsilon=epsilon, samples=50)
                    (row,) = (r for r in audit.replacement if r["candidate"] == "candidate")
                    rates.append(row["winning_rate"])
                passes = np.mean(np.array(rates) >= 0.5)
                cells += [f"{np.mean(rates):.1%}", f"{passes:.0%}"]
            lines.append(f"| 30% / {candidate_noise:.0%} | {items} | {' | '.join(cells)} |")
    return "\n".join(lines)


def published(folder: Path) -> str:
    """The winning rates and advantages of the paper's notebook, and how many come out the same."""
    notebook = json.loads((folder / "alt_test_example.ipynb").read_text(encoding="utf-8"))
    text = ""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            text += "".join(output.get("text", ""))
    pattern = r"^(\S+) (\S+) \[\w+\]:\tWinning Rate=(\S+)\tAdvantage Probability=(\S+)"
    figures = {
        (data, model): (rate, advantage)
        for data, model, rate, advantage in re.findall(pattern, text, re.MULTILINE)
    }
    n_same = 0
    for (dataset, model), expected in figures.items():
        row = published_row(folder / "data" / dataset, model, EPSILONS[dataset])
        outcome = (f"{row['winning_rate']:.2f}", f"{row['advantage']:.2f}")
        if outcome == expected:
            n_same += 1
        else:
            print(dataset, model, "published", expected, "here", outcome)
    return (
        f"{n_same} of the {len(figures)} published pairs of winning rate and advantage (nine"
        " datasets, up to six language models) come out the same to both digits"
        " (`python benchmarks/audit.py published ALT_TEST_FOLDER`)."
    )


def published_row(folder: Path, model: str, epsilon: float) -> dict[str, Any]:
    """The test of one language model on one published dataset."""
    people = json.loads((folder / "human_annotations.json").read_text(encoding="utf-8"))
    models = json.loads((folder / "llm_annotations.json").read_text(encoding="utf-8"))
    answers = models[model]
    is_rating = folder.name in RATINGS
    class_name = rating_name if is_rating else str
    table: dict[str, list[str]] = {"item": [], "annotator": [], "label": []}
    labels = set(answers.values())
    for annotator, label_of_item in people.items():
        for item, label in label_of_item.items():
            if item in answers:
                table["item"].append(item)
                table["annotator"].append(annotator)
                table["label"].append(class_name(label))
                labels.add(label)
    scale = None
    if is_rating:
        classes = [rating_name(label) for label in sorted(map(float, labels))]
        scale = f"ordinal:{','.join(classes)}"
    else:
        classes = sorted(labels)
    annotations = Annotations.from_table(table, classes=classes, scale=scale)
    codes = [classes.index(class_name(answers[item])) for item in annotations.items]
    jury = Predictions.from_arrays(
        np.eye(len(classes))[codes][:, None],
        items=annotations.items,
        members=[model],
        classes=classes,
        layout="NKC",
    )
    audit = edokit.audit(jury, annotations, replace=True, epsilon=epsilon)
    (row,) = (row for row in audit.replacement if row["candidate"] == model)
    return dict(row)


def rating_name(label: str | float) -> str:
    """A rating as the name of a class: 4 for 4.0."""
    return f"{float(label):g}"


def lewidi(folder: Path) -> str:
    """Judges and the replacement test of the committed members, on dev."""
    lines = [
        "| dataset | members | count as | 95 % | uniform: winning rate, ε 0.1 | advantage |"
        " constant |",
        "|---|---|---|---|---|---|---|",
    ]
    for dataset in ("ArMIS", "ConvAbuse", "HS-Brexit", "MD-Agreement"):
        people = edokit.read_annotations(folder / dataset, split="dev")
        for pool in POOLS:
            file = ROOT / "lewidi2023" / dataset / pool / "dev.npz"
            if file.exists():
                lines.append(lewidi_row(dataset, pool, edokit.read_predictions(file), people))
    return "\n".join(lines)


def lewidi_row(dataset: str, pool: str, jury: Predictions, people: Annotations) -> str:
    """A row of the table."""
    audit = edokit.audit(jury, people)
    judges = audit.judges
    assert judges is not None
    count = judge_count(judges.estimate, "no error")
    low = judge_count(judges.low, "no limit")
    high = judge_count(judges.high, "no limit")
    try:
        test = edokit.audit(jury, people, replace=True).replacement
        rows = {row["candidate"]: row for row in test}
        uniform = rows["uniform"]
        cells = [
            f"{uniform['winning_rate']:.2f} of {len(uniform['annotators'])}",
            "{:.2f} ({:.2f}–{:.2f})".format(uniform["advantage"], *uniform["interval"]),
            f"{rows['constant']['winning_rate']:.2f}, {rows['constant']['advantage']:.2f}",
        ]
    except edokit.InputError:
        cells = ["too few shared items", "–", "–"]
    start = f"| {dataset} | {len(jury.members)}, {pool} | {count} | {low} to {high} |"
    return f"{start} {' | '.join(cells)} |"


def judge_count(value: float | None, missing: str) -> str:
    """A number of judges, or words where there is none."""
    if value is None:
        return missing
    return f"{value:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("judges", "replace", "published", "lewidi"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--runs", type=int, default=100)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.what == "judges":
        text = judges(arguments.runs)
    elif arguments.what == "replace":
        text = replacement(arguments.runs)
    elif arguments.what == "published":
        text = published(arguments.folder)
    else:
        text = lewidi(arguments.folder)
    marks = (f"<!-- {arguments.what} -->", f"<!-- end of {arguments.what} -->")
    results.rewrite(PAGE, marks, f"{marks[0]}\n{text}\n{marks[1]}")
    print(text)


if __name__ == "__main__":
    main()
