"""Single answers of judges beside the labels of annotators: confusion tables and Cohen's kappa."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edokit._types import Floats, Ints
from edokit.analysis.agreement import agreement_weights
from edokit.analysis.agreement.coefficients import (
    CoefficientEstimate,
    cohen_kappas,
    interval_or_unknown,
    mean_estimate,
)
from edokit.analysis.audit.result import ConfusionRow, JudgeRow
from edokit.analysis.human_labels import HumanLabels

# What annotators said of one label of multi-label data.
CHOICES = ("not chosen", "chosen")


def judge_rows(
    judges: Mapping[str, Floats], labels: HumanLabels, level: float, clusters: Ints | None
) -> list[JudgeRow]:
    """Agreement of the single answers of judges [N, C] with the annotators' labels."""
    tables = labels.scale.tables(labels.shares)
    weights = agreement_weights(labels.scale, tables[0].shape[1])
    rows: list[JudgeRow] = []
    for name, p in judges.items():
        observed: list[CoefficientEstimate] = []
        kappas: list[CoefficientEstimate] = []
        for human, answers in _codes(p, labels):
            observed.append(_observed(human, answers, weights, labels))
            kappa = _kappa(human, answers, weights, labels)
            if kappa is not None:
                kappas.append(kappa)
        rows.append(
            {
                "judge": name,
                "labels": len(labels.item_codes),
                "agreement": interval_or_unknown(mean_estimate(observed), level, clusters),
                "cohen_kappa": interval_or_unknown(mean_estimate(kappas), level, clusters),
            }
        )
    return rows


def confusion_rows(judges: Mapping[str, Floats], labels: HumanLabels) -> list[ConfusionRow]:
    """How often each judge [N, C] gives each answer where annotators gave one label."""
    classes = labels.annotations.classes
    # For multi-label data, each label is a question of its own.
    questions = labels.scale.row_labels(classes) or (None,)
    rows: list[ConfusionRow] = []
    for name, p in judges.items():
        for question, (human, answers) in zip(questions, _codes(p, labels), strict=True):
            names = classes if question is None else CHOICES
            table = np.zeros((len(names), len(names)), dtype=np.int64)
            np.add.at(table, (human, answers), 1)
            for label, counts in zip(names, table, strict=True):
                rows.append(
                    {
                        "judge": name,
                        "question": question,
                        "human": label,
                        "answers": dict(zip(names, counts.tolist(), strict=True)),
                    }
                )
    return rows


def _codes(p: Floats, labels: HumanLabels) -> list[tuple[Ints, Ints]]:
    """For each question, the codes of the annotators' labels and of the judge's answers [M].

    There is one question; for multi-label data, each label is one.
    """
    single = labels.single_answers(p)[labels.item_codes]
    human_tables = labels.scale.tables(labels.shares)
    answer_tables = labels.scale.tables(single)
    codes: list[tuple[Ints, Ints]] = []
    for human, answers in zip(human_tables, answer_tables, strict=True):
        codes.append((human.argmax(axis=1), answers.argmax(axis=1)))
    return codes


def _observed(
    human: Ints, answers: Ints, weights: Floats, labels: HumanLabels
) -> CoefficientEstimate:
    """The mean agreement of the judge's answers with the annotators' labels [M]."""
    agreement = weights[human, answers]
    value = float(agreement.mean())
    items = len(labels.counts)
    changes = np.bincount(labels.item_codes, weights=agreement - value, minlength=items)
    influence = np.asarray(changes * (items / len(human)), dtype=np.float64)
    has_labels = labels.counts > 0
    return CoefficientEstimate(value, influence, has_labels, has_labels)


def _kappa(
    human: Ints, answers: Ints, weights: Floats, labels: HumanLabels
) -> CoefficientEstimate | None:
    """Cohen's kappa of the judge with the annotators, who count as one other person."""
    one_pair = np.zeros(len(human), dtype=np.int64)
    kappas = cohen_kappas(human, answers, one_pair, 1, weights)
    if np.isnan(kappas.values[0]):
        return None
    items = len(labels.counts)
    changes = np.bincount(labels.item_codes, weights=kappas.changes, minlength=items)
    influence = np.asarray(changes * items, dtype=np.float64)
    varied = labels.item_codes[kappas.is_varied]
    is_counted = np.bincount(varied, minlength=items) > 0
    return CoefficientEstimate(float(kappas.values[0]), influence, labels.counts > 0, is_counted)
