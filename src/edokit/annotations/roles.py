"""Guesses the roles of a table's columns (item, annotator, label, text) from names and content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa

from edokit._errors import option, warn
from edokit._io.tables import class_columns
from edokit.annotations.people import UNKNOWN

_ITEM = (
    "id item_id instance instance_id comment_id post_id tweet_id text_id doc_id document_id"
    " message_id example_id sentence_id utterance_id sample_id task task_id"
)
_ANNOTATOR = (
    "annotator_id user user_id rater rater_id worker worker_id coder coder_id labeler labeller"
    " judge judge_id participant participant_id respondent respondent_id"
)
_LABEL = (
    "rating score annotation answer judgment judgement toxicity toxic offensive offensiveness"
    " hate hate_speech hateful abusive sentiment"
)
_TEXT = "comment comment_text tweet post message sentence utterance body content"
USUAL_NAMES = {
    "item": frozenset(_ITEM.split()),
    "annotator": frozenset(_ANNOTATOR.split()),
    "label": frozenset(_LABEL.split()),
    "text": frozenset(_TEXT.split()),
}
"""Common names of the columns of each role, in lower case with underscores."""
SHORTEST_TEXT = 15
"""A column with fewer characters on average contains names or codes instead of texts."""
_MOST_LABELS = 50
_LONGEST_HEADING = 200
"""Longer names of columns are somebody's text, or damage: messages propose none of them."""


def guess_roles(
    table: pa.Table, columns: Mapping[str, str], roles: Mapping[str, str]
) -> dict[str, str]:
    """The column of each role: those that were named, and those that can be guessed.

    A role is guessed only if the table lacks its default column, exactly one column has a common
    name, and its content agrees: items repeat, annotators differ within items, there are few
    labels, and texts are long and the same for an item. If several columns qualify, none is chosen.

    Parameters
    ----------
    table : pyarrow.Table
        One row per annotation.
    columns : mapping of str to str
        The columns that were named, by role.
    roles : mapping of str to str
        The default column of each role.

    Returns
    -------
    dict of str to str
        ``columns`` and the guessed columns, which a warning lists.
    """
    guessed: dict[str, str] = {}
    for role, usual_names in USUAL_NAMES.items():
        if role in columns or roles[role] in table.column_names:
            continue
        if role == "label" and class_columns(table.column_names):
            continue  # the shares of classes are the labels
        assigned = {*columns.values(), *guessed.values(), *roles.values()}
        item = guessed.get("item", columns.get("item", roles["item"]))
        candidates = []
        for name in table.column_names:
            if name in assigned or _normalised(name) not in usual_names:
                continue
            if _content_fits(table, role, name, item):
                candidates.append(name)
        if len(candidates) == 1:
            guessed[role] = candidates[0]
    _note_guesses(guessed)
    return {**columns, **guessed}


def guess_text_roles(table: pa.Table, columns: Mapping[str, str]) -> dict[str, str]:
    """The columns of texts and of their items, in a table without labels.

    A role is guessed as by `guess_roles`; items need not repeat there, but each has one text.

    Parameters
    ----------
    table : pyarrow.Table
    columns : mapping of str to str
        The columns that were named, by role.
    """
    guessed: dict[str, str] = {}
    for role in ("text", "item"):
        if role in columns or role in table.column_names:
            continue
        assigned = {*columns.values(), *guessed.values()}
        text = guessed.get("text", columns.get("text", "text"))
        candidates = []
        for name in table.column_names:
            if name in assigned or _normalised(name) not in USUAL_NAMES[role]:
                continue
            values = _values(table, name)
            if role == "text":
                fits = _is_long(values)
            else:
                fits = text in table.column_names and _identifies(values, _values(table, text))
            if fits:
                candidates.append(name)
        if len(candidates) == 1:
            guessed[role] = candidates[0]
    _note_guesses(guessed)
    return {**columns, **guessed}


def _identifies(items: pd.Series, texts: pd.Series) -> bool:
    """Whether every row has an item, and each item a single text."""
    has_gaps = items.isna().any() or (items.str.strip() == "").any()
    return not has_gaps and _describes(items, texts)


def _note_guesses(guessed: Mapping[str, str]) -> None:
    """Say which columns were guessed."""
    if guessed:
        pairs = ", ".join(f"{role}={name}" for role, name in guessed.items())
        warn(
            f"columns are read as {pairs}, by their names and content; if that is wrong, name"
            f" them: {option('columns', dict.fromkeys(guessed, 'NAME'))}"
        )


@dataclass(frozen=True)
class Proposal:
    """Columns that may have the missing roles.

    Attributes
    ----------
    columns : mapping of str to str
        The proposed column of each role.
    label_candidates : sequence of str
        Columns that may hold the labels, if several may; then none is proposed.
    """

    columns: Mapping[str, str]
    label_candidates: Sequence[str] = ()


def propose_roles(table: pa.Table, names: Mapping[str, str], missing: Sequence[str]) -> Proposal:
    """Columns that may have the missing roles, by their content alone.

    They are only proposed in a message. As item, the repeating column with the most distinct values
    is proposed (with a single text per value, if there are texts; if no column is so, the texts
    themselves); as annotator, a column with different values in nearly all rows of an item; as
    label, the only column with few values that describes neither items nor annotators.

    Parameters
    ----------
    table : pyarrow.Table
        One row per annotation.
    names : mapping of str to str
        The columns with a known role.
    missing : sequence of str
        The roles to propose a column for.
    """
    unassigned = _readable_columns(table, names)
    repeated = {name: values for name, values in unassigned.items() if values.duplicated().any()}
    proposed: dict[str, str] = {}
    if "item" in missing and "annotator" in missing:
        # Without an item, only the name tells whether a column has the annotators.
        for name in repeated:
            if _normalised(name) in USUAL_NAMES["annotator"]:
                proposed["annotator"] = name
                del unassigned[name]
                del repeated[name]
                break
    item_column = names.get("item")
    if "item" in missing:
        item_column = _propose_item(table, names, unassigned, repeated)
    if item_column is None:
        return Proposal(proposed)
    if "item" in missing:
        proposed["item"] = item_column
        unassigned.pop(item_column, None)
    items = _values(table, item_column)
    varying: dict[str, pd.Series] = {}
    for name, values in unassigned.items():
        if name in repeated and not _describes(items, values):
            varying[name] = values
    if "annotator" in missing and "annotator" not in proposed and varying:
        shares = {name: _distinct_share(items, values) for name, values in varying.items()}
        annotator = max(shares, key=shares.__getitem__)
        proposed["annotator"] = annotator
        del varying[annotator]
    annotator_column = {**names, **proposed}.get("annotator")
    annotators = None
    if annotator_column is not None:
        annotators = _values(table, annotator_column)
    candidates = _label_candidates(varying, annotators)
    if "label" not in missing:
        return Proposal(proposed)
    if len(candidates) == 1:
        return Proposal({**proposed, "label": candidates[0]})
    return Proposal(proposed, candidates)


def _readable_columns(table: pa.Table, names: Mapping[str, str]) -> dict[str, pd.Series]:
    """The known values of the columns without a role that have any."""
    columns: dict[str, pd.Series] = {}
    for name in table.column_names:
        if name in names.values() or len(name) > _LONGEST_HEADING:
            continue
        values = _known_values(table, name)
        if values.notna().any():
            columns[name] = values
    return columns


def _propose_item(
    table: pa.Table,
    names: Mapping[str, str],
    unassigned: Mapping[str, pd.Series],
    repeated: Mapping[str, pd.Series],
) -> str | None:
    """The candidate for the item with the most distinct values."""
    texts = {name: values for name, values in unassigned.items() if _is_long(values)}
    if "text" in names:
        texts[names["text"]] = _values(table, names["text"])
    counts = {}
    for name, values in _item_candidates(repeated, texts).items():
        counts[name] = values.nunique()
    return max(counts, key=counts.__getitem__, default=None)


def _distinct_share(items: pd.Series, values: pd.Series) -> float:
    """The share of rows whose value is new to their item."""
    pairs = pd.DataFrame({"item": items, "value": values})
    return float(1 - pairs.duplicated().mean())


def _label_candidates(
    columns: Mapping[str, pd.Series], annotators: pd.Series | None
) -> tuple[str, ...]:
    """The columns with few values that do not describe the annotators."""
    candidates = []
    for name, values in columns.items():
        if not 1 < values.nunique() <= _MOST_LABELS:
            continue
        if annotators is None or not _describes(annotators, values):
            candidates.append(name)
    return tuple(candidates)


def _describes(owners: pd.Series, values: pd.Series) -> bool:
    """Whether each item, or each annotator, has at most one known value."""
    return bool(values.groupby(owners).nunique().max() <= 1)


def propose_annotator_columns(table: pa.Table, names: Mapping[str, str]) -> list[str]:
    """Columns that may have the labels of one annotator each, of a table with one row per item.

    These are short columns that share most of their values. Every other column without a role has
    a value of its own in each row, unless there are at least three such columns.

    Parameters
    ----------
    table : pyarrow.Table
    names : mapping of str to str
        The columns with a known role.
    """
    label_sets: dict[str, set[str]] = {}
    n_other_columns = 0
    has_distinct = False
    for name in table.column_names:
        if len(name) > _LONGEST_HEADING:
            continue
        values = _values(table, name)
        if values.isna().all():
            continue
        labels = set(values.dropna().str.strip().str.lower()) - {""}
        if len(labels) == len(values):
            has_distinct = True
        elif name in names.values() or len(labels) > _MOST_LABELS or _is_long(values):
            continue
        elif len(labels) < 2:
            n_other_columns += 1
        else:
            label_sets[name] = labels
    best: list[str] = []
    for labels in label_sets.values():
        group = [
            name for name, other_labels in label_sets.items() if _overlap(labels, other_labels)
        ]
        if len(group) > len(best):
            best = group
    n_other_columns += len(label_sets) - len(best)
    if not has_distinct or len(best) < 2 or (n_other_columns and len(best) < 3):
        return []
    return best


def _overlap(labels: set[str], other: set[str]) -> bool:
    """Whether two sets of labels have at least half of their labels in common."""
    return 2 * len(labels & other) >= len(labels | other)


def _item_candidates(
    repeated: Mapping[str, pd.Series], texts: Mapping[str, pd.Series]
) -> dict[str, pd.Series]:
    """The columns that may identify items: of those that repeat, those with one text per value.

    If there are texts and no other column has one text per value, these are texts that repeat.
    """
    short = {name: values for name, values in repeated.items() if not _is_long(values)}
    candidates = short or dict(repeated)
    has_one_text = False
    for text_name, text in texts.items():
        with_one_text = {
            name: values
            for name, values in candidates.items()
            if name != text_name and text.groupby(values).nunique().max() <= 1
        }
        if with_one_text:
            candidates = with_one_text
            has_one_text = True
    repeated_texts = {name: text for name, text in texts.items() if text.duplicated().any()}
    if has_one_text or not repeated_texts:
        return candidates
    return repeated_texts


def _normalised(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def _content_fits(table: pa.Table, role: str, name: str, item: str) -> bool:
    """Whether the content of a column is compatible with this role."""
    values = _values(table, name)
    if values.isna().all():
        return False
    if role == "item":
        return bool(values.duplicated().any())
    if role == "label":
        return 1 < values.nunique() <= _MOST_LABELS
    if item not in table.column_names:
        return False
    per_item = values.groupby(_values(table, item)).nunique()
    if role == "annotator":
        # The author of a text is the same in all rows of an item.
        return bool(values.duplicated().any() and (per_item > 1).any())
    # A text that one row leaves out is in another row of its item.
    written = values[values.str.strip() != ""]
    per_item = written.groupby(_values(table, item)).nunique()
    return _is_long(written) and bool((per_item <= 1).all())


def _is_long(values: pd.Series) -> bool:
    return bool(values.str.len().mean() >= SHORTEST_TEXT)


def _values(table: pa.Table, name: str) -> pd.Series:
    """A column as text; all values are missing if it is not text, such as objects of JSON."""
    try:
        texts = table[name].cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        texts = pa.nulls(len(table), pa.string())
    return pd.Series(texts.to_pylist(), dtype="str")


def _known_values(table: pa.Table, name: str) -> pd.Series:
    """A column as text, in which unknown values are missing."""
    values = _values(table, name)
    return values.mask(values.str.strip().str.lower().isin(UNKNOWN))
