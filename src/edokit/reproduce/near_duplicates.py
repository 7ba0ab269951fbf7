"""The main results with and without test texts that nearly repeat a train text."""

from __future__ import annotations

from edokit._io.markup import Cell, Table
from edokit.reproduce.benchmark import OURS, PAPERS
from edokit.reproduce.checks_data import duplicates
from edokit.reproduce.effects import HEADS, METRICS
from edokit.reproduce.section import Section
from edokit.reproduce.study import DATASETS, Missing, Study

NAME = "near-duplicates"


def near_duplicates(study: Study) -> Section:
    """Datasets without near-duplicates are left out."""
    rows: list[list[Cell]] = []
    counts = {}
    for dataset in DATASETS:
        found = duplicates(study, dataset)
        if found is None or not found[1].any():
            continue
        near = found[1]
        counts[dataset] = int(near.sum())
        for line in (*PAPERS, *OURS):
            one = line.outcome(study, dataset)
            if isinstance(one, Missing):
                continue
            rest = one.among(~near)
            cells: list[Cell] = [dataset, line.label, line.pool]
            for metric in METRICS:
                cells += [one.mean(metric), rest.mean(metric)]
            cells.append(one.among(~found[0]).mean("ce"))
            rows.append(cells)
    header = ["dataset", "method", "pool"]
    for metric in METRICS:
        header += [f"{HEADS[metric]} all", f"{HEADS[metric]} without"]
    header.append("CE without verbatim")
    listed = ", ".join(f"{dataset} {count}" for dataset, count in counts.items())
    return Section(
        NAME,
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
