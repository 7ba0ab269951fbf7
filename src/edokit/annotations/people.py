"""People: the annotators and their attributes, with levels that can be compared.

A column with one value per annotator may be an attribute of people (gender), numbers that need
bands (age), an id (a worker number) or a constant. `People` decides this in one place, and keeps
the reason for every column that is not an attribute.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, counted, examples, headings, word
from edokit._names import as_names, class_order
from edokit._types import Bools, Codes, Ints, Strings

MOST_LEVELS = 50
"""Attributes with more levels (such as a postcode) are not used."""
FEW_PEOPLE = 5
"""A level with fewer people is too small to represent others."""
_NEARLY_ALL = 0.95
"""Share of rows from which on others look like mistakes."""
_MOST_NUMBERS = 12
"""Whole numbers with more distinct values are grouped into bands."""
_MOST_BANDS = 8
UNKNOWN = {"", "nan", "na", "n/a", "null", "unknown", "?", "-"}
"""Cells that denote an unknown value, in lower case."""
_WHOLE = re.compile(r"\d{1,9}(\.0)?")
_LEADING = re.compile(r"\D*(\d+)")
_BELOW = re.compile(r"\s*(under|below|less than|up to|younger than|<)", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Attribute:
    """One attribute of people.

    Attributes
    ----------
    name : str
        The column, such as ``gender``.
    levels : tuple of str
        Its levels in order: numbers and bands ascending, else alphabetical.
    codes : ndarray of shape (A,)
        Level of each person, as a position in ``levels``; -1 if it is unknown.
    note : str
        How levels were derived from values; empty if they are the values themselves.
    """

    name: str
    levels: tuple[str, ...]
    codes: Ints
    note: str = ""

    @property
    def people(self) -> tuple[int, ...]:
        """Number of people with each level."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.levels))
        return tuple(counts.tolist())

    @property
    def unknown(self) -> int:
        """Number of people whose level is unknown."""
        return int((self.codes < 0).sum())

    def has(self, levels: Iterable[str]) -> Bools:
        """Return whether each person has one of these levels; an unknown level is refused."""
        codes = [self.code(level) for level in levels]
        return np.isin(self.codes, codes)

    def code(self, level: str) -> int:
        """Return the position of a level; an unknown level is refused."""
        if level not in self.levels:
            raise InputError(
                f"nobody has {self.name}={level}",
                f"the levels of {self.name} are {', '.join(self.levels)}",
                code="unknown-attribute",
            )
        return self.levels.index(level)

    def describe(self) -> str:
        """Return the attribute in a few words."""
        words = [counted(len(self.levels), "level")]
        if self.note:
            words.append(self.note)
        if self.unknown:
            words.append(f"unknown for {counted(self.unknown, 'annotator')}")
        return f"{self.name} ({', '.join(words)})"


@dataclass(frozen=True, eq=False)
class People:
    """The annotators and their attributes.

    Attributes
    ----------
    annotators : ndarray of str of shape (A,)
        Their ids.
    attributes : tuple of Attribute
        Their attributes.
    left_out : mapping of str to str
        Columns with one value per annotator that are not attributes, with the reason.

    Examples
    --------
    >>> import edokit
    >>> rows = {"item": [1, 1, 1, 1], "annotator": list("abcd"), "label": [0, 1, 1, 0]}
    >>> described = {"gender": ["f", "m", "", "f"], "worker": ["w1", "w2", "w3", "w4"]}
    >>> people = edokit.Annotations.from_table({**rows, **described}).people
    >>> people.attribute("gender").levels, people.attribute("gender").people
    (('f', 'm'), (2, 1))
    >>> print(people.describe())
    attributes of annotators: gender (2 levels, unknown for 1 annotator); not used: worker (every
    person has a different value)
    """

    annotators: Strings
    attributes: tuple[Attribute, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_columns(
        cls,
        annotators: Strings,
        columns: Mapping[str, Strings],
        item_columns: Iterable[str] = (),
        contradicted: Mapping[str, str] | None = None,
    ) -> People:
        """Decide which columns are attributes, and what their levels are.

        Parameters
        ----------
        annotators : ndarray of str of shape (A,)
            Ids of the people.
        columns : mapping of str to ndarray of shape (A,)
            Values of each person.
        item_columns : iterable of str, default=()
            Columns that also have one value per item: they may describe items instead of people.
        contradicted : mapping of str to str, default=None
            Columns with several values of a few annotators, and whose rows contradict each other
            (see `contradictions`).

        Returns
        -------
        People
        """
        ambiguous = set(item_columns)
        attributes = []
        left_out = {}
        for name, values in columns.items():
            attribute, reason = _as_attribute(name, values)
            if attribute is None:
                left_out[name] = reason
            elif name in ambiguous:
                left_out[name] = "it also has one value per item"
            else:
                attributes.append(attribute)
        return cls(annotators, tuple(attributes), left_out | dict(contradicted or {}))

    def __len__(self) -> int:
        return len(self.annotators)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    def attribute(self, name: str) -> Attribute:
        """Return the attribute of this name; an unknown name is refused."""
        if name in self.names:
            return self.attributes[self.names.index(name)]
        if name in self.left_out:
            raise InputError(
                f"{word(name)} can't be used as an attribute: {self.left_out[name]}",
                f"the attributes are {headings(self.names) or 'none'}",
                code="unusable-attribute",
            )
        raise unknown_attribute(name, self.names)

    def codes(self, annotators: Iterable[str]) -> Ints:
        """Return the positions of people; an unknown annotator is refused."""
        code_by_name = {str(name): code for code, name in enumerate(self.annotators)}
        names = [str(name) for name in annotators]
        unknown = [name for name in names if name not in code_by_name]
        if unknown:
            raise InputError(
                f"unknown annotators: {examples(unknown)}",
                f"the annotators are {examples(self.annotators, 5)}",
                code="unknown-annotator",
            )
        return np.array([code_by_name[name] for name in names], dtype=np.int64)

    def take(self, positions: npt.ArrayLike) -> People:
        """Return some of the people, with all levels."""
        codes = np.asarray(positions)
        attributes = tuple(
            replace(attribute, codes=attribute.codes[codes]) for attribute in self.attributes
        )
        return People(self.annotators[codes], attributes, self.left_out)

    def describe(self) -> str:
        """Return one line that says which columns are attributes, and which are not."""
        descriptions = ", ".join(attribute.describe() for attribute in self.attributes)
        text = f"attributes of annotators: {descriptions or 'none'}"
        if self.left_out:
            reasons = (f"{name} ({reason})" for name, reason in self.left_out.items())
            text += f"; not used: {', '.join(reasons)}"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return the people as JSON values, which `from_dict` reads."""
        return {
            "annotators": [str(name) for name in self.annotators],
            "attributes": [
                {
                    "name": attribute.name,
                    "levels": list(attribute.levels),
                    "codes": attribute.codes.tolist(),
                    "note": attribute.note,
                }
                for attribute in self.attributes
            ],
            "left_out": dict(self.left_out),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> People:
        """Return the people that `to_dict` wrote."""
        attributes = tuple(
            Attribute(
                name=entry["name"],
                levels=tuple(entry["levels"]),
                codes=np.array(entry["codes"], dtype=np.int64),
                note=entry["note"],
            )
            for entry in content["attributes"]
        )
        return cls(as_names(content["annotators"]), attributes, dict(content["left_out"]))


def _as_attribute(name: str, values: Strings) -> tuple[Attribute | None, str]:
    """The column as an attribute, or the reason why it is not one."""
    texts = [str(value).strip() for value in values]
    known_texts = [text for text in texts if text.lower() not in UNKNOWN]
    main_spellings = _main_spellings(known_texts)
    distinct = set(main_spellings.values())
    if len(distinct) < 2:
        if not distinct:
            return None, "empty"
        return None, "the same for everybody"
    if len(distinct) == len(known_texts):
        return None, "every person has a different value"
    level_by_text = main_spellings
    note = ""
    merged = sorted(text for text, spelling in main_spellings.items() if text != spelling)
    if merged:
        note = f"{examples(merged)} read in another spelling"
    if len(distinct) > _MOST_NUMBERS and all(_WHOLE.fullmatch(text) for text in distinct):
        level_by_text, note = _bands(distinct)
    levels = _level_order(set(level_by_text.values()))
    if len(levels) > MOST_LEVELS:
        return None, f"{len(levels)} different values; group them, such as postcodes by region"
    code_by_level = {level: code for code, level in enumerate(levels)}
    code_by_text = {text: code_by_level[level] for text, level in level_by_text.items()}
    codes = [code_by_text.get(text, -1) for text in texts]
    return Attribute(name, levels, np.array(codes, dtype=np.int64), note), ""


def _main_spellings(texts: Sequence[str]) -> dict[str, str]:
    """The most frequent spelling of each text, among those that differ only in case."""
    counts = Counter(texts)
    main_by_key: dict[str, str] = {}
    for text in sorted(counts, key=lambda text: (-counts[text], text)):
        main_by_key.setdefault(text.casefold(), text)
    return {text: main_by_key[text.casefold()] for text in counts}


def _bands(distinct: set[str]) -> tuple[dict[str, str], str]:
    """Whole numbers as bands of a round width, such as 20-29."""
    numbers = {text: int(float(text)) for text in distinct}
    lowest = min(numbers.values())
    highest = max(numbers.values())
    width = 5
    while highest // width - lowest // width + 1 > _MOST_BANDS:
        # 5, 10, 50, 100, 500, …
        if str(width).startswith("5"):
            width *= 2
        else:
            width *= 5
    bands = {}
    for text, number in numbers.items():
        start = number // width * width
        bands[text] = f"{start}-{start + width - 1}"
    return bands, f"bands of {width}"


def contradictions(
    annotators: Strings, annotator_codes: Codes, columns: Mapping[str, Strings]
) -> dict[str, str]:
    """Columns that would be attributes but for a few rows, and which rows contradict.

    In such a column, nearly all rows have the most frequent value of their annotator.

    Parameters
    ----------
    annotators : ndarray of str of shape (A,)
        Ids of the people.
    annotator_codes : ndarray of shape (M,)
        The annotator of each row.
    columns : mapping of str to ndarray of shape (M,)
        Columns with several values of an annotator.
    """
    reasons = {}
    for name, values in columns.items():
        rows_of_value: list[Counter[str]] = [Counter() for _ in annotators]
        for code, value in zip(annotator_codes.tolist(), values, strict=True):
            if str(value).strip().lower() not in UNKNOWN:
                rows_of_value[code][str(value)] += 1
        most_frequent = [counts.most_common(1)[0] for counts in rows_of_value if counts]
        n_known_rows = sum(counts.total() for counts in rows_of_value)
        agreeing = sum(count for _, count in most_frequent)
        levels = {value for value, _ in most_frequent}
        if len(levels) < 2 or agreeing == n_known_rows or agreeing < _NEARLY_ALL * n_known_rows:
            continue
        has_several = [len(counts) > 1 for counts in rows_of_value]
        code = has_several.index(True)
        (value, count), (other_value, other_count) = rows_of_value[code].most_common(2)
        reasons[name] = (
            f"annotator {str(annotators[code])!r} has {word(value)} in {counted(count, 'row')} and"
            f" {word(other_value)} in {other_count}"
        )
    return reasons


def unknown_attribute(name: str, names: Iterable[str]) -> InputError:
    """The error for an attribute that annotators do not have; ``names`` are those they have."""
    known_names = list(names)
    by_lower_case = {known_name.lower(): known_name for known_name in known_names}
    close = get_close_matches(name.lower(), by_lower_case, 1)
    suggestion = ""
    if close:
        suggestion = f"did you mean {by_lower_case[close[0]]!r}? "
    return InputError(
        f"{word(name)} is not an attribute of the annotators",
        f"{suggestion}attributes are columns with the same value in all rows of an annotator:"
        f" {headings(known_names) or 'none here'}",
        code="unknown-attribute",
    )


def few_people_sentence(names: list[str]) -> str:
    """A sentence on levels or panels with fewer than five people."""
    listed = ", ".join(names[:8])
    if len(names) > 8:
        listed += f" and {len(names) - 8} more"
    return f"Fewer than five people: {listed}. Their answers may say little about others."


def _level_order(levels: set[str]) -> tuple[str, ...]:
    """Levels in class order; if all of them contain a number, by their first number."""
    matches = {level: _LEADING.match(level) for level in levels}
    sort_keys = {}
    for level, match in matches.items():
        if match is None:
            return class_order(levels)
        # "under 18" comes before "18-24".
        sort_keys[level] = (int(match[1]), _BELOW.match(level) is None)
    return tuple(sorted(class_order(levels), key=sort_keys.__getitem__))
