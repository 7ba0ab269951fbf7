"""Annotations as the long table that they can be read from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from edokit._names import text_array
from edokit._types import Codes, Strings

if TYPE_CHECKING:
    from edokit.annotations.core import Annotations


def to_long_table(annotations: Annotations) -> pa.Table:
    """See ``Annotations.to_table``."""
    items, people = annotations.item_codes, annotations.annotator_codes
    data: dict[str, Any] = {
        "item": _column(items, annotations.items),
        "annotator": _column(people, annotations.annotators),
    }
    if annotations.label_codes is not None:
        data["label"] = _column(annotations.label_codes, annotations.classes)
    else:
        assert annotations.label_probabilities is not None
        for k, name in enumerate(annotations.classes):
            data[f"p_{name}"] = annotations.label_probabilities[:, k]
    if annotations.published is not None:
        data["hard_label"] = _column(annotations.published[items], annotations.classes)
    for name, values in (("split", annotations.splits), ("text", annotations.texts)):
        if values is not None:
            data[name] = _column(items, values)
    for name, values in annotations.attributes.items():
        data[name] = _column(people, values)
    return pa.table(data)


def _column(codes: Codes, names: Sequence[str] | Strings) -> pa.Array:
    # Texts and attributes may repeat; the entries of a dictionary may not.
    unique = text_array(names, "text in a table").dictionary_encode()
    indices = unique.indices.take(pa.array(codes, mask=codes < 0))
    return pa.DictionaryArray.from_arrays(indices, unique.dictionary)
