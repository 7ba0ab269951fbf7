"""The items themselves: dataset statistics, near-duplicates, and the paper's examples."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edokit._io.markup import Cell, Table
from edokit._types import Floats
from edokit.datasets.info import describe_annotations
from edokit.datasets.near_duplicates import normal_form
from edokit.metrics import MAIN_METRICS, entropy_items, md_items
from reproduction import paper
from reproduction.lewidi2023.benchmark import OURS, PAPERS, Line, choice
from reproduction.lewidi2023.checks import duplicates
from reproduction.lewidi2023.study import DATASETS, Missing, Study
from reproduction.outcomes import HEADS, Labels
from reproduction.section import Section, difference


def dataset_statistics(study: Study) -> Section:
    """The sizes of the datasets and their splits beside the paper's."""
    rows: list[list[Cell]] = []
    further_rows: list[list[Cell]] = []
    values = {}
    for paper_row in paper.rows("dataset_statistics"):
        dataset = paper_row["dataset"]
        annotations = study.annotations(dataset)
        printed = [
            "/".join(str(int(paper_row[split])) for split in ("train", "dev", "test")),
            f"{paper_row['ratio']:.2f}",
            _range(paper_row["fewest"], paper_row["most"]),
            str(int(paper_row["annotators"])),
        ]
        if isinstance(annotations, Missing):
            rows.append([dataset, *_in_turns([annotations.note, "", "", ""], printed)])
            continue
        description = describe_annotations(annotations, near_duplicates=False)
        splits = description["splits"]
        counts = annotations.annotations_per_item
        ours = [
            "/".join(str(splits[name]["items"]) for name in ("train", "dev", "test")),
            f"{splits['train']['ratio']:.2f}",
            _range(counts.min(), counts.max()),
            f"{splits['train']['annotators']} ({description['annotators']} in all)",
        ]
        rows.append([dataset, *_in_turns(ours, printed)])
        values[dataset] = {name: splits[name] for name in ("train", "dev", "test")}
        masks = duplicates(study, dataset)
        assert masks is not None
        verbatim, near = masks
        test = splits["test"]
        further_rows.append(
            [
                dataset,
                test["entropy"],
                f"{test['unanimous']:.0%}",
                test["ties"]["items"],
                int(verbatim.sum()),
                int(near.sum()),
            ]
        )
    header = ["dataset"]
    for name in ("train/dev/test", "0 : 1 (train)", "annotations an item", "annotators (train)"):
        header += [name, f"{name}, paper"]
    tables = {
        "dataset-statistics": Table("Dataset statistics, ours beside the paper's", header, rows)
    }
    if further_rows:
        tables["dataset-test-sets"] = Table(
            "What else the test sets hold",
            [
                "dataset",
                "entropy of people's answers (lowest CE possible)",
                "unanimous",
                "tied items",
                "texts word for word in train",
                "near-duplicates of train",
            ],
            further_rows,
        )
    return Section("datasets", "Datasets", tables, values={"datasets": values})


def _range(low: float, high: float) -> str:
    if low == high:
        return str(int(low))
    return f"{int(low)}–{int(high)}"


def _in_turns(ours: list[str], printed: list[str]) -> list[str]:
    """Each of our cells followed by the paper's."""
    cells: list[str] = []
    for pair in zip(ours, printed, strict=True):
        cells += pair
    return cells


def near_duplicates(study: Study) -> Section:
    """Scores with and without test texts that repeat a train text, where there are any."""
    rows: list[list[Cell]] = []
    counts = {}
    for dataset in DATASETS:
        masks = duplicates(study, dataset)
        if masks is None or not masks[1].any():
            continue
        verbatim, near = masks
        counts[dataset] = int(near.sum())
        for line in (*PAPERS, *OURS):
            outcome = line.outcome(study, dataset)
            if isinstance(outcome, Missing):
                continue
            other_items = outcome.without(near)
            cells: list[Cell] = [dataset, line.label, line.pool]
            for metric in MAIN_METRICS:
                cells += [outcome.mean(metric), other_items.mean(metric)]
            cells.append(outcome.without(verbatim).mean("ce"))
            rows.append(cells)
    header = ["dataset", "method", "pool"]
    for metric in MAIN_METRICS:
        header += [f"{HEADS[metric]} all", f"{HEADS[metric]} without"]
    header.append("CE without verbatim")
    listed = ", ".join(f"{dataset} {count}" for dataset, count in counts.items())
    return Section(
        "near-duplicates",
        "Without near-duplicates of train texts",
        {
            "near-duplicates": Table(
                "Test scores on all texts and without near-duplicates of train texts",
                header,
                rows,
                notes=[
                    f"Left out: {listed or 'none'}. Of a conversation the agent's set phrases count"
                    " as much as the user's words; verbatim leaves out exact repetitions only."
                ],
            )
        },
        values={"left_out": counts},
    )


QUOTED_LINES = (
    *(line for line in PAPERS if line.label in ("Soft-CE", "WEL", "EDO-Random", "EDO-PerAnn")),
    Line("EDO, default", "random-select", "edo"),
)


def qualitative(study: Study) -> Section:
    """P(y=1), entropy, K and MD of the quoted items, and of instructive items of ours."""
    rows: list[list[Cell]] = []
    for quoted in paper.rows("quoted_items"):
        rows += _quoted(study, quoted)
    dataset_rows: list[list[Cell]] = []
    for dataset in DATASETS:
        dataset_rows += _instructive(study, dataset)
    tables = {
        "qualitative": Table(
            "The items that the paper quotes, found by the digest of their text",
            [
                *("dataset", "item", "people 0:1", "method", "P(y=1)", "P paper", "P difference"),
                *("entropy", "entropy paper", "K", "K paper", "MD", "MD paper", "MD from P paper"),
            ],
            rows,
            notes=[
                "P(y=1) is the mean over seeds, and entropy and MD are those of that mean; K lists"
                " the smallest and largest size. The paper's MD does not follow from its P (see the"
                " checks), so the last column recomputes it."
            ],
        ),
        "qualitative-own": Table(
            "Our most instructive items under the row that dev chose",
            ["dataset", "item", "people 0:1", "P(y=1)", "entropy", "MD", "what it shows"],
            dataset_rows,
            notes=["Ids are those of the published files: <split>-<key>."],
        ),
    }
    return Section("qualitative", "Qualitative examples", tables)


def find_item(texts: npt.NDArray[np.object_], digest: str) -> int | None:
    """The index of the text whose normal form has this SHA-256."""
    for index, text in enumerate(texts):
        if hashlib.sha256(normal_form(text).encode()).hexdigest() == digest:
            return index
    return None


def _quoted(study: Study, quoted: paper.Row) -> list[list[Cell]]:
    """The rows of an item that the paper quotes, one for each method."""
    dataset = quoted["dataset"]
    labels = study.labels(dataset, "test")
    paper_rows = {row["method"]: row for row in paper.matching("qualitative", dataset=dataset)}
    if isinstance(labels, Missing):
        return [[dataset, quoted["item"], labels.note, *[None] * 11]]
    assert labels.annotations.texts is not None
    index = find_item(labels.annotations.texts, quoted["sha256"])
    if index is None:
        return [[dataset, quoted["item"], "not found by its text", *[None] * 11]]
    item = str(labels.annotations.items[index])
    people = _label_counts(labels, index)
    empirical = paper_rows["Empirical"]["p1"]
    rows: list[list[Cell]] = []
    for line in QUOTED_LINES:
        printed = paper_rows.get(line.printed or "")
        predicted = line.predicted(study, dataset)
        if printed is None and isinstance(predicted, Missing):
            continue
        ours = _Example()
        if not isinstance(predicted, Missing):
            probabilities, sizes = predicted
            p = np.mean([answer[index] for answer in probabilities], axis=0)
            entropy, md = _entropy_and_md(p, labels.soft[index])
            ours = _Example(float(p[1]), entropy, _range(min(sizes), max(sizes)), md)
        theirs = _Example()
        if printed is not None:
            size = None
            if printed["size"] is not None:
                size = int(printed["size"])
            recomputed_md = 2 * abs(printed["p1"] - empirical)
            theirs = _Example(printed["p1"], printed["entropy"], size, printed["md"], recomputed_md)
        rows.append(
            [
                dataset,
                item,
                people,
                line.label,
                ours.p1,
                theirs.p1,
                difference(ours.p1, theirs.p1),
                ours.entropy,
                theirs.entropy,
                ours.size,
                theirs.size,
                ours.md,
                theirs.md,
                theirs.recomputed_md,
            ]
        )
    return rows


@dataclass(frozen=True)
class _Example:
    """What a method says about a quoted item; None where that is unknown."""

    p1: float | None = None
    """P(y=1)."""
    entropy: float | None = None
    size: str | int | None = None
    """The number of members, or its range over seeds."""
    md: float | None = None
    recomputed_md: float | None = None
    """MD as it follows from P(y=1)."""


def _instructive(study: Study, dataset: str) -> list[list[Cell]]:
    """The divided items with the nearest and farthest answer, and the worst unanimous item."""
    row = choice(study, dataset)
    labels = study.labels(dataset, "test")
    if isinstance(row, Missing) or isinstance(labels, Missing):
        return []
    predicted = Line("", row.pool, row.method).predicted(study, dataset)
    assert not isinstance(predicted, Missing)
    p = np.mean(predicted[0], axis=0)
    distance = md_items(p, labels.soft)
    entropy = labels.annotations.entropy
    divided = np.flatnonzero(entropy >= entropy.max() - 1e-9)
    united = np.flatnonzero(entropy < 1e-9)
    picked = [
        (int(divided[distance[divided].argmin()]), "people are divided, and the answer says so"),
        (int(divided[distance[divided].argmax()]), "people are divided, the answer is not"),
    ]
    if len(united):
        worst = int(united[distance[united].argmax()])
        picked.append((worst, "people agree, the answer leans the other way"))
    rows: list[list[Cell]] = []
    for index, lesson in picked:
        rows.append(
            [
                dataset,
                str(labels.annotations.items[index]),
                _label_counts(labels, index),
                float(p[index, 1]),
                *_entropy_and_md(p[index], labels.soft[index]),
                lesson,
            ]
        )
    return rows


def _entropy_and_md(p: Floats, q: Floats) -> tuple[float, float]:
    return float(entropy_items(p[None])[0]), float(md_items(p[None], q[None])[0])


def _label_counts(labels: Labels, index: int) -> str:
    """How many annotators chose each class, such as 2:3."""
    return ":".join(str(int(count)) for count in labels.annotations.counts[index])
