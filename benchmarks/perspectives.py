"""How close answers for known annotators come to the truth, by labels per annotator (simulated).

    python benchmarks/perspectives.py              # section and figure of RESULTS.md

The same number of items and labels is spread over few or many annotators, so that what is learned
about the texts stays the same and only what is known of each annotator changes. One `linear` member
that knows annotators is trained per simulation; its answers for held-out items are compared with
the probabilities with which each simulated annotator gives each label. Everything is simulated: no
test set of real data is looked at.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from results import machine, save_figure, write_section
from scipy import stats

from edokit import simulate
from edokit._types import Floats
from edokit.datasets.simulate.regimes import REGIMES
from edokit.members import Group, score_members, train_members
from edokit.members.texts import Texts

ITEMS = 2400
PER_ITEM = 5
HELD_OUT = 300
COUNTS = (6, 12, 30, 60, 150, 300, 600)
NAMES = ("two-camps", "crowd")
ASKED = 60
"""Annotators whose answers are compared, drawn at random."""
KINDS = {
    "anonymous": "anonymous answer",
    "known": "answer for the annotator",
    "best": "best possible anonymous answer",
}
IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
COLOURS = {"anonymous": "#858b94", "known": "#0072b2", "best": "#d55e00"}


def measured(name: str, annotators: int, seed: int) -> dict[str, float]:
    """Mean Kullback–Leibler divergence from the truth of each annotator, in nats."""
    regime = replace(
        REGIMES[name],
        annotators=annotators,
        per_item={PER_ITEM: 1.0},
        items=(ITEMS, 20, HELD_OUT),
        activity_spread=0.0,
    )
    simulation = simulate(regime, random_state=seed)
    rows = simulation.rows("test")
    rng = np.random.default_rng([seed, annotators])
    asked_codes = np.sort(rng.permutation(annotators)[:ASKED])
    people = tuple(str(simulation.annotators[code]) for code in asked_codes)
    items = tuple(map(str, simulation.annotations.items[rows]))
    texts = Texts(items, tuple(map(str, simulation.annotations.texts[rows])))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = Group("knowing:KnowingLinear", 1, "linear", supervision="soft")
        train_members(simulation.annotations, [group], out=folder, jobs=1, random_state=seed)
        predictions = score_members(
            folder,
            texts,
            annotators=dict.fromkeys(items, people),
            by_annotator=True,
            trust=["knowing"],
        )
    everybody = simulation.annotator_probabilities(rows)
    is_pair = predictions.annotators != ""
    answers = {
        "anonymous": predictions.anonymous().align(items).uniform[:, None],
        "known": predictions.uniform[is_pair].reshape(len(items), len(people), -1),
        "best": everybody.mean(axis=1, keepdims=True),
    }
    return {kind: divergence(everybody[:, asked_codes], p) for kind, p in answers.items()}


def divergence(truth: Floats, p: Floats) -> float:
    """Mean of Σ_c truth · ln(truth / p)."""
    p = np.clip(np.broadcast_to(p, truth.shape), 1e-12, 1)
    truth = np.clip(truth, 1e-12, 1)
    return float((truth * np.log(truth / p)).sum(axis=-1).mean())


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean, and half the width of its 95 % t interval."""
    sample = np.asarray(values)
    half = stats.t.ppf(0.975, len(sample) - 1) * sample.std(ddof=1) / np.sqrt(len(sample))
    return float(sample.mean()), float(half)


Divergences = dict[str, list[float]]
"""By kind of answer, the divergence of each simulation."""


def draw(results: Mapping[tuple[str, int], Divergences]) -> Path:
    """Divergence against labels per annotator, a plot per regime."""
    import altair as alt

    rows = []
    for (regime, count), divergences in results.items():
        for kind, title in KINDS.items():
            mean, half = interval(divergences[kind])
            row = {"regime": regime, "labels": ITEMS * PER_ITEM / count, "kind": title}
            rows.append(row | {"mean": mean, "low": mean - half, "high": mean + half})
    scale = alt.Scale(domain=list(KINDS.values()), range=[COLOURS[kind] for kind in KINDS])
    plot = alt.Chart().encode(
        alt.X("labels:Q", scale=alt.Scale(type="log"), title="labels per annotator"),
        alt.Color("kind:N", scale=scale, title=None, legend=alt.Legend(orient="top")),
    )
    band = plot.mark_area(opacity=0.18).encode(y="low:Q", y2="high:Q")
    y = alt.Y("mean:Q", title="distance to the annotator's true distribution (KL, nats)")
    chart = alt.layer(band, plot.mark_line(point=True).encode(y), data=alt.Data(values=rows))
    panels = chart.properties(width=300, height=260).facet(alt.Column("regime:N", title=None))
    return save_figure(panels.resolve_scale(y="independent"), "perspectives", IMAGES)


def main() -> None:
    """Measure, draw and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=8, help="Simulations per point.")
    parser.add_argument("--counts", type=int, nargs="+", default=list(COUNTS))
    arguments = parser.parse_args()
    results: dict[tuple[str, int], Divergences] = {}
    for name in NAMES:
        for count in arguments.counts:
            divergences: Divergences = {kind: [] for kind in KINDS}
            for seed in range(arguments.seeds):
                for kind, value in measured(name, count, seed).items():
                    divergences[kind].append(value)
            results[name, count] = divergences
            print(name, count, {kind: interval(values) for kind, values in divergences.items()})
    figure = draw(results)
    heads = ["regime", "annotators", "labels per annotator", *KINDS.values(), "known − anonymous"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for (name, count), divergences in results.items():
        cells = [name, str(count), str(ITEMS * PER_ITEM // count)]
        gain = np.subtract(divergences["known"], divergences["anonymous"])
        for values in (*divergences.values(), gain):
            mean, half = interval(values)
            cells.append(f"{mean:.4f} ± {half:.4f}")
        lines.append(f"| {' | '.join(cells)} |")
    text = [
        "    python benchmarks/perspectives.py",
        "",
        f"Simulated annotators, {ITEMS:,} training items with {PER_ITEM} labels each, whoever gives"
        " them; one `linear` member that knows annotators. Mean Kullback–Leibler divergence (nats)"
        f" of an answer from the probabilities with which an annotator gives each label, on"
        f" {HELD_OUT} held-out items and up to {ASKED} annotators; mean and 95 % t interval over"
        f" {arguments.seeds} simulations. The best possible anonymous answer is everybody's true"
        " mean: what is below it can only come from knowing who answers.",
        "",
        *lines,
        "",
        f"![Distance to the truth against labels per annotator](../docs/images/{figure.name})",
        "",
        machine("numpy", "scikit-learn"),
    ]
    write_section("Known annotators (`perspectives.py`)", "\n".join(text))


if __name__ == "__main__":
    main()
