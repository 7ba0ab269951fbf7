"""The dataset table: sizes, class ratio, annotators."""

from __future__ import annotations

from edokit._io.markup import Cell, Table
from edokit.datasets.info import describe
from edokit.reproduce import paper
from edokit.reproduce.checks_data import duplicates
from edokit.reproduce.section import Section
from edokit.reproduce.study import Missing, Study

NAME = "datasets"


def dataset_statistics(study: Study) -> Section:
    """Ours beside the paper's."""
    rows: list[list[Cell]] = []
    more: list[list[Cell]] = []
    values = {}
    for told in paper.rows("dataset_statistics"):
        dataset = told["dataset"]
        people = study.people(dataset)
        sizes = "/".join(str(int(told[split])) for split in ("train", "dev", "test"))
        printed = [sizes, f"{told['ratio']:.2f}", _range(told["fewest"], told["most"])]
        printed.append(str(int(told["annotators"])))
        if isinstance(people, Missing):
            rows.append(
                [dataset, *_between([f"not available: {people.reason}", "", "", ""], printed)]
            )
            continue
        found = describe(people, near_duplicates=False)
        splits = found["splits"]
        counts = people.annotations_per_item
        ours = [
            "/".join(str(splits[name]["items"]) for name in ("train", "dev", "test")),
            f"{splits['train']['ratio']:.2f}",
            _range(counts.min(), counts.max()),
            f"{splits['train']['annotators']} ({found['annotators']} in all)",
        ]
        rows.append([dataset, *_between(ours, printed)])
        values[dataset] = {name: splits[name] for name in ("train", "dev", "test")}
        twice = duplicates(study, dataset)
        assert twice is not None
        test = splits["test"]
        more.append(
            [
                dataset,
                test["entropy"],
                f"{test['unanimous']:.0%}",
                test["ties"]["items"],
                int(twice[0].sum()),
                int(twice[1].sum()),
            ]
        )
    header = ["dataset"]
    for name in ("train/dev/test", "0 : 1 (train)", "annotations an item", "annotators (train)"):
        header += [name, f"{name}, paper"]
    tables = {
        "dataset-statistics": Table("Dataset statistics, ours beside the paper's", header, rows)
    }
    if more:
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
            more,
        )
    return Section(NAME, "Datasets", tables, values={"datasets": values})


def _range(low: float, high: float) -> str:
    return str(int(low)) if low == high else f"{int(low)}–{int(high)}"


def _between(ours: list[str], printed: list[str]) -> list[str]:
    return [cell for pair in zip(ours, printed, strict=True) for cell in pair]
