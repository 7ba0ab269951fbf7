"""Coverage, class balance, agreement, annotators and groups, as plain values."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import xlogy

from edokit._errors import HAVE, EDOWarning, InputError, are, examples, option
from edokit._names import class_order
from edokit._types import Floats, Ints
from edokit.annotations import Annotations
from edokit.annotations.core import find_attribute
from edokit.datasets.info import class_ratio
from edokit.diagnosis.variance import pair_agreement
from edokit.diagnosis.vectors import LabelVectors, label_sums, products, squares, totals
from edokit.scales import Scale


def coverage(annotations: Annotations) -> dict[str, Any]:
    """Labels per item and per annotator, gaps, and pairs of annotators with shared items."""
    per_item = annotations.annotations_per_item
    per_annotator = annotations.annotations_per_annotator
    labelled = ~annotations.repeated
    annotators = len(annotations.annotators)
    shape = (annotators, len(annotations.items))
    cells = (annotations.annotator_codes[labelled], annotations.item_codes[labelled])
    table = sparse.csr_matrix((np.ones(int(labelled.sum()), dtype=np.int32), cells), shape)
    shared: Any = sparse.triu(table @ table.T, k=1, format="csr")
    return {
        "per_item": _ends(per_item),
        "per_annotator": _ends(per_annotator[per_annotator > 0]),
        "filled": float(labelled.sum() / (shape[0] * shape[1])),
        "single": int((per_item == 1).sum()),
        "silent": [str(name) for name in annotations.annotators[per_annotator == 0]],
        "repeated": int(annotations.repeated.sum()),
        "pairs": {
            "possible": annotators * (annotators - 1) // 2,
            "meeting": len(shared.data),
            "median_shared": float(np.median(shared.data)) if len(shared.data) else None,
        },
    }


def _ends(counts: Ints) -> dict[str, float]:
    values = counts.min(), np.median(counts), counts.max()
    return {name: v.item() for name, v in zip(("min", "median", "max"), values, strict=True)}


def balance(annotations: Annotations) -> dict[str, Any]:
    """Classes by share of labels (every item counted once) and by hard label."""
    with warnings.catch_warnings():
        # Ties are counted below.
        warnings.simplefilter("ignore", EDOWarning)
        hard = annotations.hard_labels()
    hard = annotations.scale.indicators(hard, len(annotations.classes)).sum(axis=0)
    return {
        "shares": _by_class(annotations, annotations.soft_labels.mean(axis=0)),
        "hard": _by_class(annotations, hard),
        "ratio": class_ratio(hard),
        "ties": int(annotations.evenly_split.sum()),
    }


def entropy(annotations: Annotations) -> dict[str, Any]:
    """The mean entropy of items in nats, and the share of unanimous items.

    ``attainable`` is the mean of the largest entropy that the labels of each item can have: few
    labels can't show many classes.
    """
    nats = annotations.entropy
    classes = max(len(annotations.scale.row_classes(annotations.classes)), 2)
    attainable = largest = float(np.log(classes))
    if not _are_probabilities(annotations):
        # The most even counts: n = even · classes + extra; `extra` classes have one label more.
        n = annotations.annotations_per_item.clip(1)
        even, extra = np.divmod(n, classes)
        surprise = (classes - extra) * xlogy(even, even / n)
        attainable = -float(np.mean((surprise + extra * xlogy(even + 1, (even + 1) / n)) / n))
    return {
        "mean": float(nats.mean()),
        "largest": largest,
        "attainable": attainable,
        "unanimous": float((nats < 1e-12).mean()),
    }


def _by_class(annotations: Annotations, values: Any) -> dict[str, Any]:
    return dict(zip(annotations.classes, values.tolist(), strict=True))


# Largest number of annotators for a table of all pairs.
LARGEST_MATRIX = 40


def agreement(annotations: Annotations) -> dict[str, Any]:
    """Krippendorff's alpha, how much two labels of an item agree (0 to 1), and how much by chance.

    Classes agree if they are the same, sets by the share of their labels that are, and points of a
    scale by their distance relative to the range (``distance`` has it in units of the scale).
    Probabilities agree by their expectation. Alpha of a scale is at the interval level; alpha of
    sets is the mean over their labels (``by_label``).
    """
    several = annotations.annotations_per_item >= 2
    alpha = pairwise = reason = by_label = None
    if not several.any():
        reason = "no item has two labels"
    elif (label := only_answer(annotations)) is not None:
        reason = f"all labels are {label}"
    elif _are_probabilities(annotations):
        reason = "the labels are probabilities; alpha is for classes"
    else:
        alphas = _alphas(annotations.take(several))
        varying = [value for value in alphas if value is not None]
        alpha = float(np.mean(varying)) if varying else None
        by_label = dict(zip(annotations.classes, alphas, strict=False)) if len(alphas) > 1 else None
    if several.any():
        agreeing, pairs = _pairs_by_item(annotations)
        pairwise = float(agreeing[several].sum() / pairs[several].sum())
    vectors, lengths = _label_vectors(annotations)
    mean = vectors.mean(axis=0)
    by_chance = float(1 - 2 * (lengths.mean() - mean @ mean))
    span = annotations.scale.span
    return {
        "alpha": alpha,
        "level": "nominal" if span is None else "interval",
        "by_label": by_label,
        "pairwise": pairwise,
        "by_chance": by_chance,
        "distance": None
        if span is None or pairwise is None
        else {"pairwise": (1 - pairwise) * span, "by_chance": (1 - by_chance) * span},
        "reason": reason,
    }


def only_answer(annotations: Annotations) -> str | None:
    """The label that all annotations have, in words; None if they differ."""
    shares = label_sums(annotations, np.eye(len(annotations.classes)))
    if (shares != shares[0]).any():
        return None
    names = [name for name, share in zip(annotations.classes, shares[0], strict=True) if share > 0]
    if annotations.scale.is_multi_label:
        return f"the set {{{', '.join(map(repr, names))}}}" if names else "the empty set"
    return repr(names[0]) if len(names) == 1 else None


def _alphas(annotations: Annotations) -> list[float | None]:
    """Krippendorff's alpha, of sets one per label; None for labels that don't vary."""
    import krippendorff

    scale, shares = annotations.scale, annotations.soft_labels
    n = annotations.annotations_per_item[:, None]
    tables = [table * n for table in scale.tables(shares)]
    return [
        float(
            krippendorff.alpha(
                value_counts=np.rint(table).astype(np.int64),
                value_domain=np.arange(table.shape[1]) if scale.span is None else scale.positions,
                level_of_measurement="nominal" if scale.span is None else "interval",
            )
        )
        if (table.sum(axis=0) > 0).sum() > 1
        else None
        for table in tables
    ]


def _are_probabilities(annotations: Annotations) -> bool:
    """Whether some annotator gave probabilities instead of a class or a set."""
    shares = annotations.label_probabilities
    return shares is not None and bool(((shares > 0) & (shares < 1)).any())


def _label_vectors(annotations: Annotations) -> tuple[Floats, Floats]:
    """Each label as a vector [M, D], and its expected squared length [M]."""
    of_classes = annotations.scale.vectors(len(annotations.classes), absolute=True)
    lengths = label_sums(annotations, squares(of_classes)[:, None])
    return label_sums(annotations, of_classes), lengths[:, 0]


def describe_annotators(
    annotations: Annotations, group: Ints | None = None, names: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Labels, base rates and agreement with the others of each annotator, in the data's order.

    ``expected`` is the mean agreement of two *others* on the same items, as far as these have two.
    """
    item, positions = annotations.item_codes, annotations.scale.positions
    vectors, lengths = _label_vectors(annotations)

    def of_peers(numbers: Floats) -> Floats:
        """Sums over the other annotators of the same item."""
        return totals(item, numbers, len(annotations.items))[item] - numbers

    peers = annotations.annotations_per_item[item] - 1
    with_peers = (
        peers * (1 - lengths) - of_peers(lengths) + 2 * products(vectors, of_peers(vectors))
    )
    agreeing, pairs = _pairs_by_item(annotations)
    between_peers, peer_pairs = agreeing[item] - 2 * with_peers, pairs[item] - 2 * peers
    labels = pd.DataFrame(label_sums(annotations, np.eye(len(annotations.classes))))
    labels["agreement"] = np.where(peers > 0, with_peers / np.maximum(peers, 1), np.nan)
    labels["expected"] = np.where(peers > 1, between_peers / np.maximum(peer_pairs, 1), np.nan)
    by_annotator = labels.groupby(annotations.annotator_codes).mean()
    means = by_annotator.reindex(range(len(annotations.annotators))).to_numpy()
    described = []
    for a, (*shares, agreement, expected) in enumerate(means):
        known = not np.isnan(shares[0])
        described.append(
            {
                "annotator": str(annotations.annotators[a]),
                "annotations": int(annotations.annotations_per_annotator[a]),
                "shares": _by_class(annotations, np.array(shares)) if known else None,
                "mean": float(np.dot(shares, positions)) if positions and known else None,
                "agreement": _finite(agreement),
                "expected": _finite(expected),
                "group": None if group is None or group[a] < 0 else names[group[a]],
            }
        )
    return described


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def matrix(annotations: Annotations, group: Ints) -> dict[str, Any] | None:
    """Agreement of all pairs, groups side by side; None where there are too many annotators."""
    count = len(annotations.annotators)
    if count > LARGEST_MATRIX:
        return None
    vectors, lengths = _label_vectors(annotations)
    rows = ~annotations.repeated
    annotator, item = annotations.annotator_codes[rows], annotations.item_codes[rows]
    table = np.zeros((vectors.shape[1] + 2, count, len(annotations.items)))
    table[:, annotator, item] = np.vstack([np.ones(len(item)), lengths[rows], vectors[rows].T])
    labelled, squared, *labels = table
    shared = labelled @ labelled.T
    agreed = shared - squared @ labelled.T - labelled @ squared.T
    agreed = agreed + 2 * sum(column @ column.T for column in labels)
    order = np.argsort(np.where(group < 0, count, group), kind="stable")
    shares = np.divide(agreed, shared, out=np.full_like(agreed, np.nan), where=shared > 0)
    np.fill_diagonal(shares, np.nan)
    return {
        "annotators": [str(annotations.annotators[a]) for a in order],
        "agreement": [[_finite(share) for share in row] for row in shares[order][:, order]],
        "shared": shared[order][:, order].astype(int).tolist(),
    }


def _pairs_by_item(annotations: Annotations) -> tuple[Floats, Floats]:
    """How much the ordered pairs of labels of each item agree, summed, and their number [N]."""
    vectors, lengths = _label_vectors(annotations)

    def by_item(numbers: Floats) -> Floats:
        return totals(annotations.item_codes, numbers, len(annotations.items))

    n = annotations.annotations_per_item.astype(np.float64)
    inner = squares(by_item(vectors)) - by_item(squares(vectors))
    return n * (n - 1) - 2 * ((n - 1) * by_item(lengths) - inner), n * (n - 1)


# Differences between shares below this are not worth a word.
_SLIGHT = 0.02
DeclaredGroups = str | Mapping[Any, Any]


def declared_groups(annotations: Annotations, groups: DeclaredGroups) -> tuple[Ints, list[str]]:
    """The group of each annotator [A], -1 for none, and the groups' names.

    ``groups`` names an attribute of the annotators, or maps annotators to groups. Empty text and
    None are no group.
    """
    annotators = [str(name) for name in annotations.annotators]
    if isinstance(groups, str):
        values = list(find_attribute(annotations, groups))
    else:
        by_name = {str(name): value for name, value in groups.items()}
        if missing := [name for name in annotators if name not in by_name]:
            raise InputError(
                f"{are(len(missing), len(annotators), HAVE)} no entry in {option('groups')}:"
                f" {examples(missing)}",
                "add them; None means no group",
            )
        values = [by_name[name] for name in annotators]
    group_of = ["" if value is None else str(value) for value in values]
    names = list(class_order({name for name in group_of if name}))
    if not names:
        raise InputError(
            f"{option('groups')} assigns no annotator to a group",
            f"leave {option('groups')} out to have them found",
        )
    return pd.Index(names).get_indexer(pd.Index(group_of)).astype(np.int64), names


def describe_groups(
    annotations: Annotations, group: Ints, names: list[str]
) -> list[dict[str, Any]]:
    """Size, base rates, and agreement within and across, group by group.

    ``within`` and ``between`` are the agreement of pairs beyond the mean pair of the same item.
    """
    scale, classes = annotations.scale, len(annotations.classes)
    rows = label_sums(annotations, np.eye(classes))
    vectors = LabelVectors.of(annotations, scale.vectors(classes, absolute=True))
    label_group = group[annotations.annotator_codes]
    grouped = rows[label_group >= 0]
    overall = (grouped if len(grouped) else rows).mean(axis=0)
    within, between = pair_agreement(vectors, group, len(names))
    described = []
    for code, name in enumerate(names):
        group_rows = rows[label_group == code]
        shares = group_rows.mean(axis=0) if len(group_rows) else None
        near, far = within[code], between[code]
        character = "no labels"
        if shares is not None:  # small and chance differences are none
            parts = _base_rates(annotations.classes, shares, overall, len(group_rows), scale)
            if near is not None and far is not None and near < far - _SLIGHT:
                parts.append(
                    "its annotators agree less with each other than with the others: less"
                    " consistent"
                )
            character = "; ".join(parts) or "about the same base rates as all groups"
        described.append(
            {
                "name": name,
                "annotators": int((group == code).sum()),
                "annotations": len(group_rows),
                "shares": None if shares is None else _by_class(annotations, shares),
                "within": near,
                "between": far,
                "character": character,
            }
        )
    return described


def _base_rates(
    classes: tuple[str, ...], shares: Any, overall: Any, labels: int, scale: Scale
) -> list[str]:
    """The class, or the mean on a scale, in which a group differs from all; else nothing."""
    if scale.span is not None:
        place = np.array(scale.positions)
        group_mean, mean = float(shares @ place), float(overall @ place)
        chance = 3.0 * float(np.sqrt(overall @ (place - mean) ** 2 / labels))
        if abs(group_mean - mean) < max(_SLIGHT * scale.span, chance):
            return []
        direction = "higher" if group_mean > mean else "lower"
        return [f"rates {direction} than all groups (mean {group_mean:.2f} against {mean:.2f})"]
    difference = shares - overall
    c = int(np.argmax(np.abs(difference)))
    # Three standard errors, since the largest of several differences is looked at.
    chance = 3.0 * float(np.sqrt(overall[c] * (1.0 - overall[c]) / labels))
    if abs(difference[c]) < max(_SLIGHT, chance):
        return []
    if scale.is_binary(len(classes)) and difference[c] < 0:
        c = 1 - c
    rates = f"({shares[c]:.0%} against {overall[c]:.0%})"
    return [
        f"{'more' if difference[c] > 0 else 'less'} often {classes[c]!r} than all groups {rates}"
    ]
