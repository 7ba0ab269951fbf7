"""What is odd about the paper's numbers: each check is computed from its figures or the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from edokit import Annotations
from edokit._io.markup import Cell, Table
from edokit._types import Bools
from edokit.datasets.near_duplicates import NearDuplicates
from edokit.metrics import MAIN_METRICS
from reproduction import paper
from reproduction.lewidi2023 import paper_checks
from reproduction.lewidi2023.methods import constant_outcome
from reproduction.lewidi2023.paper_checks import SQUASHED, Check, logit
from reproduction.lewidi2023.study import DATASETS, Missing, Study
from reproduction.outcomes import Labels
from reproduction.section import Section

# The largest difference in BS at which a row of the ablation says which CE goes with a BS.
_NEAR = 0.01


def constant_scores(study: Study, dataset: str) -> dict[str, float] | None:
    """F1, CE, MD and BS of the training set's mean distribution for every item."""
    outcome = constant_outcome(study, dataset)
    if isinstance(outcome, Missing):
        return None
    return outcome.means()


def squashed_ce(study: Study) -> Check:
    """The baselines' CE are sigmoids: their range, the paper's own rows and the data show it."""
    rows: list[list[Cell]] = []
    inside = worse = 0
    for row in paper.rows("benchmark"):
        if row["method"] not in SQUASHED:
            continue
        inside += 0.5 < row["ce"] < 1
        constant = constant_scores(study, row["dataset"])
        constant_ce = None
        if constant is not None:
            constant_ce = constant["ce"]
            worse += row["bs"] < constant["bs"] and row["ce"] > constant_ce
        rows.append(
            [
                row["method"],
                row["dataset"],
                row["ce"],
                logit(row["ce"]),
                _ce_at(row["dataset"], row["bs"]),
                constant_ce,
            ]
        )
    clear = [row for row in rows if row[1] == "ConvAbuse" and row[4] is not None]
    listed = ", ".join(f"{row[0]} {row[3]:.3f} (printed {row[2]:.3f})" for row in clear)
    worse_than_constant = ""
    if worse:
        worse_than_constant = (
            f" In {worse} rows the printed CE would be worse than answering the training mean for"
            " every item, although the BS is better."
        )
    return Check(
        "Is the CE of the benchmark table's baselines a cross-entropy?",
        False,
        f"All {inside} baseline CEs lie between 0.5 and 1, as sigmoid(CE) must; WEL's published"
        " code reports sigmoid(CE). On ConvAbuse, where the two scales are farthest apart, the"
        f" paper's own rows of a like BS have a CE of {clear[0][4]:.3f}; un-squashed by the logit"
        f" the baselines fit in: {listed}.{worse_than_constant}",
        Table(
            "CE of the baselines as printed and un-squashed (logit)",
            [
                "method",
                "dataset",
                "printed",
                "un-squashed",
                "CE of the paper's own rows of a like BS",
                "constant answer",
            ],
            rows,
            notes=[
                "Whether Soft-MD is squashed, too, the paper does not say; its range fits. Around"
                " 0.66 a CE and its sigmoid are the same and nothing can be told.",
            ],
        ),
    )


def _ce_at(dataset: str, bs: float) -> float | None:
    """Mean CE of the ablation's rows whose BS is within 0.01 of this one."""
    ce_values = []
    for row in paper.matching("diversity_per_dataset", dataset=dataset):
        for column in ("without", "with"):
            if abs(row[f"bs_{column}"] - bs) <= _NEAR:
                ce_values.append(row[f"ce_{column}"])
    if not ce_values:
        return None
    return float(np.mean(ce_values))


def majority_class(study: Study) -> Check:
    """Rows that know no more than the class frequencies."""
    question = "Does EDO-PerAnn learn anything on HS-Brexit?"
    rows: list[list[Cell]] = []
    for dataset in DATASETS:
        constant = constant_scores(study, dataset)
        printed = paper.row("benchmark", method="EDO-PerAnn", dataset=dataset)
        assert printed is not None
        if constant is not None:
            printed_scores = [printed[metric] for metric in MAIN_METRICS]
            constant_answer = [constant[metric] for metric in MAIN_METRICS]
            rows.append([dataset, "EDO-PerAnn, printed", *printed_scores])
            rows.append([dataset, "constant answer", *constant_answer])
    brexit_rows = [row for row in rows if row[0] == "HS-Brexit"]
    if not brexit_rows:
        return Check(question, None, "The HS-Brexit data is needed.")
    paper_row, constant_row = brexit_rows
    deviation = paper.row("deviations", method="EDO-PerAnn", dataset="HS-Brexit")
    assert deviation is not None
    same_f1 = abs(float(paper_row[2] or 0) - float(constant_row[2] or 0)) < 1e-4
    worse_ce = float(paper_row[3] or 0) > float(constant_row[3] or 0)
    side = "above" if worse_ce else "below"
    return Check(
        question,
        not (same_f1 and worse_ce),
        f"Its F1 of {paper_row[2]:.4f} (deviation over seeds {deviation['f1']:.4f}) is that of the"
        f" majority class ({constant_row[2]:.4f}), and its CE of {paper_row[3]:.4f} is"
        f" {side} the {constant_row[3]:.4f} of answering the training mean for every item.",
        Table(
            "EDO-PerAnn beside a constant answer",
            ["dataset", "row", "F1", "CE", "MD", "BS"],
            rows,
        ),
    )


def implied_uniform(study: Study) -> Check:
    """The weighting table implies a CE for the uniform mean of ten fine-tuned models."""
    question = "Is the uniform mean that learned weights are compared with plausible?"
    rows: list[list[Cell]] = []
    for delta in paper.rows("weighting"):
        method = {"random-select": "EDO-Random", "per-annotator": "EDO-PerAnn"}[delta["pool"]]
        level = paper.row("benchmark", method=method, dataset=delta["dataset"])
        constant = constant_scores(study, delta["dataset"])
        assert level is not None
        if constant is not None:
            implied = level["ce"] - delta["delta_ce"]
            worse = "yes" if implied > constant["ce"] else "no"
            rows.append(
                [delta["dataset"], method, delta["delta_ce"], implied, constant["ce"], worse]
            )
    if not rows:
        return Check(question, None, "The data is needed.")
    bad = [row for row in rows if row[5] == "yes"]
    listed = ", ".join(f"{row[0]} {row[1]} {row[3]:.3f} against {row[4]:.3f}" for row in bad)
    return Check(
        question,
        not bad,
        "If the weighted side is the benchmark row, its CE less the printed ΔCE is the uniform"
        f" mean's. In {len(bad)} of {len(rows)} cases that is worse than the same answer for"
        f" every item ({listed}): gains over such a mean say little about weighting.",
        Table(
            "the CE of the uniform mean that the weighting table implies",
            ["dataset", "method", "ΔCE printed", "implied CE", "constant answer", "worse"],
            rows,
        ),
    )


def annotators_per_item(study: Study) -> Check:
    """The counts of the dataset table, which may cover train only."""
    question = "Are the annotators per item as in the paper's dataset table?"
    differences = []
    same_on_train = []
    compared = 0
    for row in paper.rows("dataset_statistics"):
        annotations = study.annotations(row["dataset"])
        if isinstance(annotations, Missing):
            continue
        compared += 1
        printed = f"{row['fewest']:.0f}–{row['most']:.0f} ({row['annotators']:.0f})"
        counts = _counts(annotations)
        if counts != printed:
            differences.append(f"{row['dataset']} {counts}, printed {printed}")
            if _counts(annotations.split("train")) == printed:
                same_on_train.append(row["dataset"])
    if not compared:
        return Check(question, None, "The data is needed.")
    if not differences:
        return Check(question, True, "They are.")
    scope = ""
    if same_on_train:
        scope = (
            f" Those of train alone are as printed on {' and '.join(same_on_train)}: a difference"
            " of scope."
        )
    return Check(
        question,
        len(same_on_train) == len(differences),
        "Over all splits, annotations per item (annotators) are others:"
        f" {'; '.join(differences)}.{scope}",
    )


def _counts(annotations: Annotations) -> str:
    """Fewest and most annotations of an item, and the number of annotators."""
    counts = annotations.annotations_per_item
    return f"{counts.min()}–{counts.max()} ({len(annotations.annotators)})"


def near_duplicates(study: Study) -> Check:
    """Test texts that are also in train."""
    question = "Are the test texts new?"
    rows: list[list[Cell]] = []
    for dataset in DATASETS:
        duplicate_masks = duplicates(study, dataset)
        if duplicate_masks is not None:
            verbatim, near = duplicate_masks
            rows.append([dataset, len(near), int(verbatim.sum()), int(near.sum())])
    if not rows:
        return Check(question, None, "The data is needed.")
    listed = ", ".join(f"{row[0]} {row[3]} of {row[1]}" for row in rows if row[3])
    finding = "They are."
    if listed:
        finding = (
            f"Test texts that nearly repeat a train text: {listed}. Results come with and without"
            " them."
        )
    return Check(
        question,
        not listed,
        finding,
        Table(
            "test texts that also stand in train",
            ["dataset", "test texts", "word for word", "nearly"],
            rows,
        ),
    )


def duplicates(study: Study, dataset: str) -> tuple[Bools, Bools] | None:
    """Two masks of the test texts [N]: those that repeat a train text verbatim, and nearly."""
    annotations = study.annotations(dataset)
    if isinstance(annotations, Missing):
        return None

    def find() -> tuple[Bools, Bools]:
        assert annotations.texts is not None
        assert annotations.splits is not None
        alike = NearDuplicates.among(annotations.texts)
        train = annotations.splits == "train"
        test = annotations.splits == "test"
        return alike.has_match(train, verbatim=True)[test], alike.has_match(train)[test]

    labels = study.labels(dataset, "test")
    assert isinstance(labels, Labels)
    return study.once(("near-duplicates", dataset), find)


CHECKS: Mapping[str, Callable[[Study], Check]] = {
    "squashed-ce": squashed_ce,
    "reductions": paper_checks.reductions,
    "reduction-range": paper_checks.reduction_range,
    "correlated-reductions": paper_checks.correlated_reductions,
    "correlated-changes": paper_checks.correlated_changes,
    "zero-diversity": paper_checks.zero_diversity,
    "mixed-variants": paper_checks.mixed_variants,
    "averages": paper_checks.averages,
    "distance-bounds": paper_checks.distance_bounds,
    "qualitative-figures": paper_checks.qualitative_figures,
    "majority-class": majority_class,
    "uniform-worse-than-constant": implied_uniform,
    "one-random-generation": paper_checks.one_generation,
    "annotators-per-item": annotators_per_item,
    "near-duplicates": near_duplicates,
}


def checks(study: Study) -> Section:
    """All checks, a sentence and a table each."""
    results = {name: check(study) for name, check in CHECKS.items()}
    summary = Table(
        "Checks of the paper's own numbers",
        ["check", "question", "answer", "what was found"],
        [
            [name, result.question, result.answer, result.finding]
            for name, result in results.items()
        ],
    )
    tables = {"checks": summary}
    sentences = []
    values = {}
    for name, result in results.items():
        if result.table is not None:
            tables[f"check-{name}"] = replace(result.table, title=f"{name}: {result.table.title}")
        sentences.append(f"{result.question} {result.answer.capitalize()}. {result.finding}")
        values[name] = {
            "question": result.question,
            "holds": result.holds,
            "finding": result.finding,
        }
    return Section(
        "checks", "Checks of the paper's own numbers", tables, sentences, {"checks": values}
    )
