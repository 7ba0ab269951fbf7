"""How often people disagree, in numbers and as a figure: the paper's figure 1, from the data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edokit import Annotations
from edokit._io.markup import Cell, Table
from edokit.figures import Figure
from edokit.report import vega
from edokit.report.colours import BLUE, FAINT, VERMILION
from reproduction.lewidi2023.study import DATASETS, Missing, Study
from reproduction.section import Section

KINDS = ("all say 0", "most say 0", "tied", "most say 1", "all say 1")
"""How the annotators of an item answer, from agreement on 0 to agreement on 1."""
COLOURS = (BLUE, "#8fbfdd", FAINT, "#eeb183", VERMILION)
"""The colour of each kind."""


def disagreement(study: Study) -> Section:
    """How the annotators of each dataset answer."""
    rows: list[list[Cell]] = []
    shares: dict[str, dict[str, float]] = {}
    for dataset in DATASETS:
        annotations = study.annotations(dataset)
        if isinstance(annotations, Missing):
            rows.append([dataset, annotations.note, *[None] * 6])
            continue
        shares[dataset] = kind_shares(annotations)
        rows.append(
            [
                dataset,
                len(annotations.items),
                *(f"{share:.1%}" for share in shares[dataset].values()),
                pair_disagreement(annotations),
            ]
        )
    figures: dict[str, Figure] = {}
    if shares:
        figures["disagreement"] = disagreement_figure(shares)
    return Section(
        "disagreement",
        "Annotator disagreement",
        {
            "disagreement": Table(
                "How the annotators of an item answer (all splits)",
                ["dataset", "items", *KINDS, "two annotators differ"],
                rows,
                notes=[
                    "The last column is the probability that two of an item's annotators, drawn at"
                    " random, give different labels; mean over items. With --out,"
                    " disagreement.pdf draws these numbers in place of the paper's figure 1."
                ],
            )
        },
        values={"shares": shares},
        figures=figures,
    )


def kind_shares(annotations: Annotations) -> dict[str, float]:
    """The share of items of each of the kinds."""
    zeros = annotations.counts[:, 0]
    ones = annotations.counts[:, 1]
    is_kind = (
        ones == 0,
        (ones > 0) & (ones < zeros),
        ones == zeros,
        (zeros > 0) & (zeros < ones),
        zeros == 0,
    )
    return {kind: float(np.mean(rows)) for kind, rows in zip(KINDS, is_kind, strict=True)}


def pair_disagreement(annotations: Annotations) -> float:
    """The probability that two annotators of an item differ, mean over items with two or more."""
    counts = annotations.counts
    totals = counts.sum(axis=1)
    several = totals > 1
    counts = counts[several]
    totals = totals[several]
    agreeing_share = (counts * (counts - 1)).sum(axis=1) / (totals * (totals - 1))
    return float(np.mean(1 - agreeing_share))


def disagreement_figure(shares: Mapping[str, Mapping[str, float]]) -> Figure:
    """A bar for each dataset, divided by how its annotators answer."""
    names = []
    kinds = []
    starts = []
    ends = []
    for dataset, by_kind in shares.items():
        start = 0.0
        for kind, share in by_kind.items():
            names.append(dataset)
            kinds.append(kind)
            starts.append(start)
            start += share
            ends.append(start)
    records = vega.rows(
        dataset=names,
        annotators=kinds,
        _start=starts,
        _end=ends,
        share=np.subtract(ends, starts),
    )
    colour = {
        "field": "annotators",
        "type": "nominal",
        "scale": {"domain": list(KINDS), "range": list(COLOURS)},
        "legend": {"title": "annotators of an item", "orient": "bottom"},
    }
    bars = vega.layer(
        "bar", records, {"x2": {"field": "_end"}, "color": colour}, height={"band": 0.7}
    )
    chart = vega.chart(
        "How the annotators of an item answer",
        [bars],
        vega.percents("_start", "share of the items", [0.0, 1.0], domain=(0.0, 1.0)),
        vega.names("dataset", list(shares)),
        40 * len(shares),
    )
    return Figure.from_chart(chart)
