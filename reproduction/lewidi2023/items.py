"""The items themselves: dataset statistics, near-duplicates, and the paper's examples."""

from __future__ import annotations

import hashlib

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
    """Ours beside the paper's."""
    rows: list[list[Cell]] = []
    further_rows: list[list[Cell]] = []
    values = {}
    for paper_row in paper.rows("dataset_statistics"):
        dataset = paper_row["dataset"]
        annotations = study.annotations(dataset)
        sizes = "/".join(str(int(paper_row[split])) for split in ("train", "dev", "test"))
        printed = [
            sizes,
            f"{paper_row['ratio']:.2f}",
            _range(paper_row["fewest"], paper_row["most"]),
        ]
        printed.append(str(int(paper_row["annotators"])))
        if isinstance(annotations, Missing):
            rows.append(
                [dataset, *_between([f"not available: {annotations.reason}", "", "", ""], printed)]
            )
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
        rows.append([dataset, *_between(ours, printed)])
        values[dataset] = {name: splits[name] for name in ("train", "dev", "test")}
        repeated = duplicates(study, dataset)
        assert repeated is not None
        test = splits["test"]
        further_rows.append(
            [
                dataset,
                test["entropy"],
                f"{test['unanimous']:.0%}",
                test["ties"]["items"],
                int(repeated[0].sum()),
                int(repeated[1].sum()),
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
    return str(int(low)) if low == high else f"{int(low)}–{int(high)}"


def _between(ours: list[str], printed: list[str]) -> list[str]:
    return [cell for pair in zip(ours, printed, strict=True) for cell in pair]


def near_duplicates(study: Study) -> Section:
    """Datasets without near-duplicates are left out."""
    rows: list[list[Cell]] = []
    counts = {}
    for dataset in DATASETS:
        duplicate_masks = duplicates(study, dataset)
        if duplicate_masks is None or not duplicate_masks[1].any():
            continue
        near = duplicate_masks[1]
        counts[dataset] = int(near.sum())
        for line in (*PAPERS, *OURS):
            outcome = line.outcome(study, dataset)
            if isinstance(outcome, Missing):
                continue
            other_items = outcome.without(near)
            cells: list[Cell] = [dataset, line.label, line.pool]
            for metric in MAIN_METRICS:
                cells += [outcome.mean(metric), other_items.mean(metric)]
            cells.append(outcome.without(duplicate_masks[0]).mean("ce"))
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
    """P(y=1), entropy, K and MD of the quoted items, and of items that teach something."""
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
    """Position of the text with this SHA-256 of its normal form."""
    for place, text in enumerate(texts):
        if hashlib.sha256(normal_form(text).encode()).hexdigest() == digest:
            return place
    return None


def _quoted(study: Study, quoted: paper.Row) -> list[list[Cell]]:
    dataset = quoted["dataset"]
    labels = study.labels(dataset, "test")
    paper_rows = {row["method"]: row for row in paper.matching("qualitative", dataset=dataset)}
    if isinstance(labels, Missing):
        return [[dataset, quoted["item"], f"not available: {labels.reason}", *[None] * 11]]
    assert labels.annotations.texts is not None
    place = find_item(labels.annotations.texts, quoted["sha256"])
    if place is None:
        return [[dataset, quoted["item"], "not found by its text", *[None] * 11]]
    item = str(labels.annotations.items[place])
    empirical = paper_rows["Empirical"]["p1"]
    rows: list[list[Cell]] = []
    for line in QUOTED_LINES:
        printed = paper_rows.get(line.printed or "")
        theirs: list[Cell] = [None] * 5
        if printed is not None:
            size = None if printed["size"] is None else int(printed["size"])
            distance = 2 * abs(printed["p1"] - empirical)
            theirs = [printed["p1"], printed["entropy"], size, printed["md"], distance]
        predicted = line.predicted(study, dataset)
        ours: list[Cell] = [None] * 4
        gap = None
        if not isinstance(predicted, Missing):
            p = np.mean([answer[place] for answer in predicted[0]], axis=0)
            sizes = predicted[1]
            span = f"{min(sizes)}–{max(sizes)}" if min(sizes) < max(sizes) else str(min(sizes))
            ours = [float(p[1]), *_entropy_and_md(p, labels.soft[place]), span]
            gap = difference(float(p[1]), None if printed is None else printed["p1"])
        elif printed is None:
            continue
        start: list[Cell] = [dataset, item, _split(labels, place), line.label]
        rows.append(
            [
                *start,
                *(ours[0], theirs[0], gap, ours[1], theirs[1]),
                *(ours[3], theirs[2], ours[2], theirs[3], theirs[4]),
            ]
        )
    return rows


def _instructive(study: Study, dataset: str) -> list[list[Cell]]:
    """Divided items with the nearest and farthest prediction, and the worst unanimous item."""
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
    return [
        [
            dataset,
            str(labels.annotations.items[place]),
            _split(labels, place),
            float(p[place, 1]),
            *_entropy_and_md(p[place], labels.soft[place]),
            words,
        ]
        for place, words in picked
    ]


def _entropy_and_md(p: Floats, q: Floats) -> tuple[float, float]:
    return float(entropy_items(p[None])[0]), float(md_items(p[None], q[None])[0])


def _split(labels: Labels, place: int) -> str:
    return ":".join(str(int(count)) for count in labels.annotations.counts[place])
