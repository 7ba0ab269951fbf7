"""The items that the paper quotes, and our most instructive ones; by id, never by text."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from edokit._io.markup import Cell, Table
from edokit._types import Floats
from edokit.datasets.near_duplicates import normal_form
from edokit.metrics import entropy_items, md_items
from edokit.reproduce import paper
from edokit.reproduce.bars import choice
from edokit.reproduce.benchmark import PAPERS, Line
from edokit.reproduce.section import Section, difference
from edokit.reproduce.study import DATASETS, Labels, Missing, Study

NAME = "qualitative"
SHOWN = (
    *(line for line in PAPERS if line.label in ("Soft-CE", "WEL", "EDO-Random", "EDO-PerAnn")),
    Line("EDO, settled on dev", "random-select", "edo"),
)


def qualitative(study: Study) -> Section:
    """P(y=1), entropy, K and MD of the quoted items, and of items that teach something."""
    rows: list[list[Cell]] = []
    for quoted in paper.rows("quoted_items"):
        rows += _quoted(study, quoted)
    own: list[list[Cell]] = []
    for dataset in DATASETS:
        own += _instructive(study, dataset)
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
            own,
            notes=["Ids are those of the published files: <split>-<key>."],
        ),
    }
    return Section(NAME, "Qualitative examples", tables)


def find_item(texts: npt.NDArray[np.object_], digest: str) -> int | None:
    """Where the text with this SHA-256 of its normal form stands."""
    for place, text in enumerate(texts):
        if hashlib.sha256(normal_form(text).encode()).hexdigest() == digest:
            return place
    return None


def _quoted(study: Study, quoted: paper.Row) -> list[list[Cell]]:
    dataset = quoted["dataset"]
    labels = study.labels(dataset, "test")
    told = {row["method"]: row for row in paper.matching("qualitative", dataset=dataset)}
    if isinstance(labels, Missing):
        return [[dataset, quoted["item"], f"not available: {labels.reason}", *[None] * 11]]
    assert labels.people.texts is not None
    place = find_item(labels.people.texts, quoted["sha256"])
    if place is None:
        return [[dataset, quoted["item"], "not found by its text", *[None] * 11]]
    item = str(labels.people.items[place])
    people = told["Empirical"]["p1"]
    rows: list[list[Cell]] = []
    for line in SHOWN:
        printed = told.get(line.printed or "")
        theirs: list[Cell] = [None] * 5
        if printed is not None:
            size = None if printed["size"] is None else int(printed["size"])
            distance = 2 * abs(printed["p1"] - people)
            theirs = [printed["p1"], printed["entropy"], size, printed["md"], distance]
        found = line.answers(study, dataset)
        ours: list[Cell] = [None] * 4
        gap = None
        if not isinstance(found, Missing):
            p = np.mean([answer[place] for answer in found[0]], axis=0)
            sizes = found[1]
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
    """Divided items answered best and worst, and the unanimous item answered worst."""
    row, labels = choice(study, dataset), study.labels(dataset, "test")
    if isinstance(row, Missing) or isinstance(labels, Missing):
        return []
    found = Line("", row.pool, row.method).answers(study, dataset)
    assert not isinstance(found, Missing)
    p = np.mean(found[0], axis=0)
    distance, entropy = md_items(p, labels.soft), labels.people.entropy
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
            str(labels.people.items[place]),
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
    return ":".join(str(int(count)) for count in labels.people.counts[place])
