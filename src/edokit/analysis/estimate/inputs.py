"""What an estimate is made from: texts and their slices, a panel, answers, and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from edokit._errors import InputError, counted, examples, local_path, option
from edokit._io.tables import READABLE_SUFFIXES, read_table
from edokit._names import as_names, class_order, encode, positions
from edokit._types import Bools, Floats
from edokit.analysis.estimate.estimator import LabelledTexts
from edokit.analysis.estimate.statistics import FEWEST_LABELS
from edokit.analysis.fit_items import FitItems, read_fit_items
from edokit.analysis.scores.slices import MOST_VALUES, SliceItems
from edokit.annotations.core import Annotations
from edokit.annotator_effects import label_shares
from edokit.bundle import PART_SIZE, Bundle
from edokit.datasets.item_groups import item_clusters
from edokit.ensemble.views import PanelLike, make_panel, parse_levels
from edokit.fitdata.inputs import load_new_labels
from edokit.fitdata.reading import AnnotationsLike, ReadOptions
from edokit.members.contexts import join_context
from edokit.members.texts import Texts, read_texts
from edokit.panels import Panel, read_panel

_TEXT_ROLES = ("item", "text", "context")
"""Columns that a file of texts may have."""
_ROLES_WITHOUT_LABELS = ("text", "context")
"""Columns of texts that a file of labels need not have."""


def read_all_texts(texts: str | Path | Texts | Sequence[Any], columns: Mapping[str, str]) -> Texts:
    """Read all texts from a file, or convert texts in memory."""
    if isinstance(texts, str | Path):
        roles = {role: name for role, name in columns.items() if role in _TEXT_ROLES}
        return read_texts(local_path(texts), columns=roles)
    return Texts.from_texts(texts)


def find_slices(
    source: str | Path | Texts | Sequence[Any],
    texts: Texts,
    by: str | None,
    columns: Mapping[str, str],
) -> SliceItems:
    """The texts [N] with each value of a column of their file; None for those without a value."""
    if by is None:
        return {}
    if not isinstance(source, str | Path) or Path(source).suffix.lower() not in READABLE_SUFFIXES:
        raise InputError(
            f"{option('by', by)} names a column, but the texts are not a table",
            "give a CSV, TSV, Parquet, JSONL or XLSX file with this column",
            code="inapplicable-option",
        )
    table = read_table(source)
    if by not in table.column_names:
        raise InputError(
            f"{source} lacks the column {by!r} of {option('by')}; its columns are"
            f" {examples(table.column_names, 20)}",
            "name one of them",
            code="missing-column",
        )
    values = encode(table[by], by)
    items = list(texts.items)
    if not texts.numbered:
        item_column = columns.get("item", "item")
        item_names = encode(table[item_column], item_column)
        items = [str(item_names.names[code]) for code in item_names.codes]
    value_by_item: dict[str, str | None] = {}
    for name, code in zip(items, values.codes, strict=True):
        value = None
        if code >= 0:
            value = str(values.names[code])
        if value_by_item.setdefault(name, value) != value:
            raise InputError(
                f"{source}: item {name!r} has two values of {by!r}",
                "give each item one value",
                code="contradictory-rows",
            )
    distinct = class_order({value for value in value_by_item.values() if value is not None})
    if len(distinct) > MOST_VALUES:
        raise InputError(
            f"column {by!r} has {len(distinct)} different values, but at most {MOST_VALUES} are"
            " allowed",
            f"choose a column with fewer values for {option('by')}",
            code="too-many-values",
        )
    text_values = np.array([value_by_item[name] for name in texts.items], dtype=object)
    slices: SliceItems = {value: text_values == value for value in distinct}
    is_missing = np.array([value is None for value in text_values])
    if is_missing.any():
        slices[None] = is_missing
    return slices


def find_panel(panel: PanelLike | str | Path | None, bundle: Bundle) -> Panel | None:
    """The panel that the user names: by its people, by levels of attributes, or by its file."""
    if panel is None:
        return None
    people = bundle.ensemble.people_
    if not isinstance(panel, str | Path):
        return make_panel(panel, people)
    if "=" in str(panel) and not Path(panel).exists():
        return make_panel(parse_levels(str(panel)), people)
    attributes = None
    if people is not None:
        attributes = people.attributes_by_person()
    return read_panel(local_path(panel), attributes)


def bundle_answers(bundle: Bundle, texts: Texts, panel: Panel | None) -> Floats:
    """The pool [N, C] for all texts, or what a panel would answer."""
    parts = bundle.describe_parts(texts.parts(PART_SIZE), panel=panel)
    return np.concatenate([pooled.probabilities for pooled in parts])


def read_labels(
    labels: AnnotationsLike, reading: ReadOptions, texts: Texts, bundle: Bundle
) -> Annotations:
    """Labels whose items are among the texts, in the classes of the bundle.

    Names of columns are given once for both files. Those of columns that only texts have are left
    out here.
    """
    columns = None
    if isinstance(labels, str | Path) and reading.columns is not None:
        columns = {
            role: name
            for role, name in reading.columns.items()
            if role not in _ROLES_WITHOUT_LABELS
        }
    reading = replace(reading, columns=columns or None)
    loaded = load_new_labels(labels, reading, bundle.classes, bundle.scale, "labels")
    text_names = set(texts.items)
    unknown = [str(item) for item in loaded.items if str(item) not in text_names]
    if unknown:
        hint = "give labels of some of these texts, or add the labelled texts to them"
        if texts.numbered:
            hint = "add a column item to the texts, so that labels can be matched by id"
        source = ""
        if isinstance(labels, str | Path):
            source = f"{labels}: "
        raise InputError(
            f"{source}{len(unknown)} of {counted(len(loaded.items), 'labelled item')} are not among"
            f" the texts: {examples(unknown)}",
            hint,
            code="unknown-item",
        )
    return loaded


def match_labels(
    labels: Annotations, texts: Texts, answers: Floats, panel: Panel | None
) -> LabelledTexts:
    """Labels of a panel, or of everybody, with the answers [N, C] to the same texts."""
    text_positions = positions(as_names(labels.items), as_names(texts.items))
    clusters = item_clusters(labels)
    shares = labels.soft_labels
    is_labelled = np.ones(len(shares), dtype=bool)
    if panel is not None:
        shares, is_labelled = panel_shares(labels, panel)
        if not is_labelled.any():
            raise InputError(
                f"none of the labels is by the people of {panel}",
                "give labels by some of them, or leave the labels out",
                code="unknown-annotator",
            )
    count = int(is_labelled.sum())
    if count < FEWEST_LABELS:
        raise InputError(
            f"{counted(count, 'labelled text')} are too few for an interval",
            f"label {FEWEST_LABELS} or more, drawn at random, or leave the labels out",
            code="too-few-items",
        )
    labelled_texts = LabelledTexts(shares, answers[text_positions], clusters, text_positions)
    return labelled_texts.take(is_labelled)


def panel_shares(labels: Annotations, panel: Panel) -> tuple[Floats, Bools]:
    """The weighted mean label [N, C] of a panel's people, and which items [N] they labelled."""
    weight_by_name = dict(zip(panel.annotators, panel.weights.tolist(), strict=True))
    person_weights = np.array([weight_by_name.get(str(name), 0.0) for name in labels.annotators])
    label_weights = person_weights[labels.annotator_codes]
    weighted_labels = label_shares(labels, len(labels.classes)) * label_weights[:, None]
    means = np.zeros((len(labels.items), weighted_labels.shape[1]))
    np.add.at(means, labels.item_codes, weighted_labels)
    weight_sums = np.bincount(labels.item_codes, label_weights, minlength=len(means))
    is_labelled = weight_sums > 0
    means[is_labelled] /= weight_sums[is_labelled, None]
    return means, is_labelled


def find_fit_items(bundle: Bundle, folder: Path | None) -> FitItems | None:
    """The items of the fit; None where its files are missing."""
    places: list[Path] = []
    if folder is not None:
        places.append(folder)
    if bundle.folder is not None:  # a bundle may be in the folder of its run
        places.append(bundle.folder.parent)
    for place in places:
        with suppress(InputError):
            return read_fit_items(place, bundle.ensemble)
    return None


def held_out_answers(
    answers: Floats, texts: Texts, fit_items: FitItems, bundle: Bundle, panel: Panel | None
) -> tuple[Floats, Bools]:
    """The answers [N, C] with held-out ones for texts of the fit, and which texts these are.

    What the members answer to texts that they learned from is closer to the labels than what they
    answer to others.
    """
    fit_texts = fit_items.labels.whole_texts
    if fit_texts is None:
        return answers, np.zeros(len(answers), dtype=bool)
    fit_positions = {str(text): position for position, text in enumerate(fit_texts)}
    matches = np.array([fit_positions.get(join_context(text), -1) for text in texts.texts])
    was_in_fit = matches >= 0
    corrected = answers.copy()
    corrected[was_in_fit] = fit_items.answers(bundle.ensemble, panel)[matches[was_in_fit]]
    return corrected, was_in_fit


def labels_of_fit(
    bundle: Bundle, fit_items: FitItems | None, panel: Panel | None
) -> LabelledTexts | None:
    """Labels and held-out answers of the items of the fit; None where they are missing or few."""
    held_out = bundle.ensemble.fitted_.held_out
    if panel is None and held_out is not None and len(held_out) >= FEWEST_LABELS:
        return LabelledTexts(held_out.shares, held_out.answers, held_out.groups, None)
    if fit_items is None:
        return None
    labels = fit_items.labels.with_classes(bundle.classes)
    answers = fit_items.answers(bundle.ensemble, panel)
    shares = labels.soft_labels
    is_labelled = np.ones(len(shares), dtype=bool)
    if panel is not None:
        shares, is_labelled = panel_shares(labels, panel)
    if is_labelled.sum() < FEWEST_LABELS:
        return None
    return LabelledTexts(shares, answers, fit_items.clusters, None).take(is_labelled)
