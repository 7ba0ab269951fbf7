"""Does `edo diagnose` say what is true? Measured on the simulator, where the truth is known.

    python benchmarks/diagnose.py power --figure docs/images/diagnose-power.svg
    python benchmarks/diagnose.py declared
    python benchmarks/diagnose.py shares
    python benchmarks/diagnose.py careless
    python benchmarks/diagnose.py lewidi LEWIDI_FOLDER
    python benchmarks/diagnose.py lewidi2025 LEWIDI2025_FOLDER

`power`: how often the test finds structure, by how much of the disagreement is systematic; at 0
there is none, and 5 % are false alarms. `declared`: the same for groups that needn't be found.
`shares`: the estimated shares of the variance beside the true ones. `careless`: how often the
disagreement is called structured when two annotators give part of their labels at random, by the
test alone and by the diagnosis, which repeats the test without careless annotators. `lewidi`: the
diagnosis of the four datasets. `lewidi2025`: ratings and sets as such, and read as classes (train
and dev; the test labels are held out).
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from true_variance import true_variance

from edokit import read_annotations, simulate
from edokit.analysis.diagnose import diagnose
from edokit.analysis.diagnose.clusters import Clusters, Design, cross_fitted, find_structure
from edokit.analysis.diagnose.permutation import permutation_test
from edokit.analysis.diagnose.variance import Part, decompose
from edokit.analysis.diagnose.vectors import LabelVectors
from edokit.analysis.sequential import LEVEL
from edokit.annotations.core import Annotations
from edokit.datasets.simulate.regimes import REGIMES, Regime
from edokit.datasets.simulate.simulation import Simulation

DESIGNS: dict[str, Regime] = {
    "6 annotators, all items": replace(REGIMES["two-camps"], items=(300, 1, 1)),
    "8 annotators, 2-7 per item": replace(REGIMES["partial-panel"], items=(800, 1, 1)),
    "100 annotators, 5 per item": replace(
        REGIMES["crowd"], items=(1000, 1, 1), annotators=100, activity_spread=1.0
    ),
}
STRICT = {"group_weight": 0.0, "personal_weight": 0.0, "noise_spread": 0.0}
"""What makes a regime one of strictness alone."""
STRUCTURED = (0.0, 0.15, 0.3, 0.5)
TESTS = {
    "annotators": "annotator",
    "groups by items": "group_item",
    "beyond strictness": "views",
}
PARTS = ("item", "annotator", "group_item", "rest")


def rejections(regime: Regime, structured: float, runs: int, permutations: int) -> dict[str, float]:
    """Share of the runs in which each test finds something."""
    verdicts: dict[str, list[bool]] = {name: [] for name in ("any structure", *TESTS)}
    for seed in range(runs):
        annotations = simulate(
            replace(regime, structured=structured), random_state=seed
        ).annotations
        vectors = LabelVectors.from_annotations(annotations)
        design = Design.from_vectors(vectors)
        result = permutation_test(
            vectors, design, find_structure(vectors, design), permutations, seed
        )
        verdicts["any structure"].append(result["structured"])
        for name, key in TESTS.items():
            verdicts[name].append((result[key]["p"] or 1.0) <= LEVEL)
    return {name: float(np.mean(values)) for name, values in verdicts.items()}


def runs_at(structured: float, runs: int) -> int:
    """The number of runs: false alarms are rare, so they need all of them."""
    if structured == 0:
        return runs
    return max(runs // 4, 1)


def power(runs: int, permutations: int, figure: Path | None) -> None:
    """Print the curves, and draw them."""
    names = ["any structure", *TESTS]
    print(f"| annotators | systematic | runs | {' | '.join(names)} |")
    print("|---" * (3 + len(names)) + "|")
    curves: dict[str, list[tuple[float, dict[str, float]]]] = {}
    for name, regime in DESIGNS.items():
        for structured in STRUCTURED:
            count = runs_at(structured, runs)
            shares = rejections(regime, structured, count, permutations)
            curves.setdefault(name, []).append((structured, shares))
            cells = " | ".join(f"{share:.1%}" for share in shares.values())
            print(f"| {name} | {structured:.0%} | {count} | {cells} |", flush=True)
        strict_regime = replace(regime, **STRICT)
        count = max(runs // 4, 1)
        shares = rejections(strict_regime, 0.5, count, permutations)
        cells = " | ".join(f"{share:.1%}" for share in shares.values())
        print(f"| {name} | 50%, strictness alone | {count} | {cells} |", flush=True)
    if figure is not None:
        draw(curves, figure)


def declared_power(runs: int, permutations: int) -> None:
    """Print how often declared groups are found to differ by items."""
    print("| annotators | systematic | runs | declared groups by items |")
    print("|---" * 4 + "|")
    for name, regime in DESIGNS.items():
        for structured in STRUCTURED:
            count = runs_at(structured, runs)
            is_rejected = []
            for seed in range(count):
                simulation = simulate(
                    replace(regime, structured=structured), random_state=seed
                ).annotations
                vectors = LabelVectors.from_annotations(simulation)
                group = np.unique(simulation.attributes["group"], return_inverse=True)[1]
                design = Design.from_vectors(vectors, group, int(group.max()) + 1)
                rng = np.random.default_rng(seed)
                real = find_structure(vectors, design).groups.score
                chance = [
                    find_structure(vectors.permuted(rng), design).groups.score
                    for _ in range(permutations)
                ]
                p = (1 + sum(score >= real for score in chance)) / (1 + permutations)
                is_rejected.append(p <= LEVEL)
            rate = np.mean(is_rejected)
            print(f"| {name} | {structured:.0%} | {count} | {rate:.1%} |", flush=True)


def with_careless(annotations: Annotations, rate: float, seed: int) -> tuple[Annotations, set[str]]:
    """Two annotators with many labels give a share of them at random."""
    rng = np.random.default_rng([seed, 7])
    busy = annotations.annotations_per_annotator.argsort(kind="stable")[::-1]
    careless_people = rng.choice(busy[: max(len(busy) // 4, 6)], size=2, replace=False)
    table = annotations.to_table().to_pandas()
    names = {str(name) for name in annotations.annotators[careless_people]}
    hit = table["annotator"].astype(str).isin(names) & (rng.random(len(table)) < rate)
    table.loc[hit, "label"] = rng.choice(list(annotations.classes), size=int(hit.sum()))
    return Annotations.from_table(table, classes=list(annotations.classes)), names


def careless(runs: int, permutations: int) -> None:
    """Print how often disagreement is called structured, by one test and by the diagnosis."""
    print(
        "| annotators | systematic | random labels of two | runs | p ≤ 5 % | called structured |"
        " called slight | careless found | others suspected |"
    )
    print("|---" * 9 + "|")
    for name, regime in DESIGNS.items():
        for structured, rate in ((0.0, 0.0), (0.0, 0.2), (0.0, 0.4), (0.3, 0.0), (0.3, 0.4)):
            test_rejects = []
            kinds = []
            hits = []
            false_alarms = []
            # The detection was developed on seeds below 100.
            for seed in range(1000, 1000 + runs):
                simulation = simulate(replace(regime, structured=structured), random_state=seed)
                annotations, names = with_careless(simulation.annotations, rate, seed)
                if rate == 0:
                    names = set()
                result = diagnose(annotations, permutations=permutations, random_state=seed)
                suspected: set[str] = set()
                if result.careless:
                    suspected = {entry["annotator"] for entry in result.careless["annotators"]}
                test_rejects.append(result.test["p"] <= LEVEL)
                kinds.append(result.advice[0].choice)
                hits.append(len(suspected & names) / 2)
                false_alarms.append(len(suspected - names))
            hit_rate = "–"
            if rate > 0:
                hit_rate = f"{np.mean(hits):.0%}"
            full = np.mean([kind in ("views", "strictness") for kind in kinds])
            slight = np.mean([kind == "slight" for kind in kinds])
            print(
                f"| {name} | {structured:.0%} | {rate:.0%} | {runs} | {np.mean(test_rejects):.1%} |"
                f" {full:.1%} | {slight:.1%} | {hit_rate} |"
                f" {np.mean(false_alarms):.2f} per run |",
                flush=True,
            )


def draw(curves: dict[str, list[tuple[float, dict[str, float]]]], path: Path) -> None:
    """One panel per design, a line per test; the dashed line is the level."""
    import altair as alt

    tests = ("any structure", *TESTS)
    colours = ["#000000", "#0072b2", "#d55e00", "#009e73"]
    rows = []
    for design, points in curves.items():
        for part, shares in points:
            for test in tests:
                rows.append({"design": design, "test": test, "part": part, "share": shares[test]})
    x = alt.X("part:Q", title="systematic part of the disagreement").axis(format="%")
    y = alt.Y("share:Q", title="structure found (share of runs)").axis(format="%")
    colour = alt.Color("test:N", scale=alt.Scale(domain=tests, range=colours), title=None)
    lines = alt.Chart().mark_line(point=True).encode(x, y, colour)
    level = alt.Chart().mark_rule(color="grey", strokeDash=[4, 4]).encode(y=alt.datum(LEVEL))
    panels = alt.layer(lines, level, data=alt.Data(values=rows)).properties(width=240, height=200)
    path.parent.mkdir(parents=True, exist_ok=True)
    panels.facet(alt.Column("design:N", title=None, sort=list(curves))).save(path)


def declared(vectors: LabelVectors, annotations: Annotations) -> dict[str, Part]:
    """The estimate with the true groups."""
    group = np.unique(annotations.attributes["group"], return_inverse=True)[1]
    count = int(group.max()) + 1
    shares = decompose(
        vectors, Design.from_vectors(vectors, group, count), [Clusters(group, count)]
    )
    assert shares is not None
    return shares[1]


def truth(simulation: Simulation) -> dict[str, float]:
    true_parts = true_variance(simulation)
    shares = {name: value / sum(true_parts.values()) for name, value in true_parts.items()}
    return {**shares, "rest": shares["annotator_item"] + shares["noise"]}


def shares(runs: int) -> None:
    """Print true and estimated shares, in percent of the total variance."""
    panel = replace(
        REGIMES["two-camps"],
        annotators=24,
        per_item={8: 1.0},
        balance=(0.7, 0.3),
        items=(900, 1, 1),
    )
    regimes = {
        "two-camps (6)": REGIMES["two-camps"],
        "partial-panel (8)": REGIMES["partial-panel"],
        "24 annotators, 8 per item": panel,
        "crowd (670)": REGIMES["crowd"],
    }
    print("| annotators | part | true | estimated, groups declared | estimated, groups found |")
    print("|---" * 5 + "|")
    for name, regime in regimes.items():
        rows: dict[str, list[tuple[float, ...]]] = {part: [] for part in PARTS}
        for seed in range(runs):
            simulation = simulate(regime, random_state=seed)
            vectors = LabelVectors.from_annotations(simulation.annotations)
            true_parts = truth(simulation)
            by_declared_groups = declared(vectors, simulation.annotations)
            decomposition = decompose(
                vectors, Design.from_vectors(vectors), cross_fitted(vectors, seed)
            )
            assert decomposition is not None
            by_found_groups = decomposition[1]
            for part in PARTS:
                rows[part].append(
                    (true_parts[part], by_declared_groups[part].share, by_found_groups[part].share)
                )
        for part in PARTS:
            means = np.mean(rows[part], axis=0)
            errors = 2 * np.std(rows[part], axis=0, ddof=1) / np.sqrt(runs)
            print(
                f"| {name} | {part} | {means[0]:.1%} | {means[1]:.1%} ± {errors[1]:.1%} |"
                f" {means[2]:.1%} ± {errors[2]:.1%} |",
                flush=True,
            )


def lewidi(folder: Path) -> None:
    """Print the diagnosis of the four datasets."""
    print(
        "| dataset | items | annotators | groups by items | rest | p any | p annotators |"
        " p groups | p beyond strictness | groups, stability | kind | supervision | CPU s |"
    )
    print("|---" * 13 + "|")
    for name in ("ArMIS", "ConvAbuse", "HS-Brexit", "MD-Agreement"):
        annotations = read_annotations(folder / name)
        start = time.process_time()
        diagnosis = diagnose(annotations)
        spent = time.process_time() - start
        variance = diagnosis.variance
        test = diagnosis.test
        choices = {advice.topic: advice.choice for advice in diagnosis.advice}
        parts = [_share(variance[part]) for part in PARTS]
        p = [test["p"], *(test[key]["p"] for key in ("annotator", "group_item", "views"))]
        sizes = ", ".join(str(group["annotators"]) for group in diagnosis.clusters["groups"])
        print(
            f"| {name} | {' | '.join(parts)} | {' | '.join(f'{value:.2f}' for value in p)} |"
            f" {sizes}; {diagnosis.clusters['stability']:.2f} | {choices['structure']} |"
            f" {choices['supervision']} | {spent:.1f} |"
        )


def lewidi2025(folder: Path, permutations: int) -> None:
    """Print the diagnosis of ratings and sets, on their scale and as classes."""
    print(
        "| dataset | read as | alpha | items | annotators | groups by items | rest | p any |"
        " kind | careless |"
    )
    print("|---" * 10 + "|")
    for name in ("Paraphrase", "CSC", "VariErrNLI"):
        on_scale = read_annotations(folder / name)
        table = on_scale.to_table().to_pandas().drop(columns="answer_scale")
        if on_scale.scale.is_multi_label:
            table["label"] = [" & ".join(sorted(json.loads(labels))) for labels in table["label"]]
        as_classes = Annotations.from_table(table)
        for people in (on_scale, as_classes):
            diagnosis = diagnose(people, permutations=permutations)
            parts = [_share(diagnosis.variance[part]) for part in PARTS]
            careless = 0
            if diagnosis.careless:
                careless = len(diagnosis.careless["annotators"])
            choices = {advice.topic: advice.choice for advice in diagnosis.advice}
            kind = choices["structure"]
            print(
                f"| {name} | {people.scale.kind} | {diagnosis.agreement['alpha']:.3f} |"
                f" {' | '.join(parts)} | {diagnosis.test['p']:.2f} | {kind} | {careless} |",
                flush=True,
            )


def _share(part: dict[str, float] | None) -> str:
    if part is None:
        return "–"
    return f"{part['share']:.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parts = ["power", "declared", "shares", "careless", "lewidi", "lewidi2025"]
    parser.add_argument("what", choices=parts)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--permutations", type=int, default=39)
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.what == "power":
        power(arguments.runs or 100, arguments.permutations, arguments.figure)
    elif arguments.what == "declared":
        declared_power(arguments.runs or 100, arguments.permutations)
    elif arguments.what == "shares":
        shares(arguments.runs or 5)
    elif arguments.what == "careless":
        careless(arguments.runs or 40, arguments.permutations)
    elif arguments.what == "lewidi2025":
        lewidi2025(arguments.folder, arguments.permutations)
    else:
        lewidi(arguments.folder)


if __name__ == "__main__":
    main()
