"""People: the annotators and their attributes, with levels that can be compared.

A column that has the same value in all rows of an annotator may describe people (gender), or be an
id (a worker number), a constant, or numbers that need bands (age). `People` decides it once, in one
place, and keeps the reason for every column that it leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, counted, examples, headings, word
from edokit._names import as_names, class_order
from edokit._types import Bools, Ints, Strings

MOST_LEVELS = 50
"""An attribute with more levels (such as a postcode) says little about any of them."""
FEW_PEOPLE = 5
"""A level with fewer people is too small to speak for anybody else."""
_MOST_NUMBERS = 12
"""Whole numbers with more distinct values are put into bands."""
_MOST_BANDS = 8
_UNKNOWN = {"", "nan", "na", "n/a", "null", "unknown", "?", "-"}
"""What a cell holds, in lower case, where a value is not known."""
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
        Level of each person, as a position in ``levels``; -1 where it is not known.
    note : str
        How values became levels where they are not the values themselves; else empty.
    """

    name: str
    levels: tuple[str, ...]
    codes: Ints
    note: str = ""

    @property
    def people(self) -> tuple[int, ...]:
        """How many people have each level."""
        known = self.codes[self.codes >= 0]
        return tuple(np.bincount(known, minlength=len(self.levels)).tolist())

    @property
    def unknown(self) -> int:
        """How many people have no known level."""
        return int((self.codes < 0).sum())

    def has(self, levels: Iterable[str]) -> Bools:
        """Return whether each person has one of these levels; one that nobody has is refused."""
        codes = [self.code(level) for level in levels]
        return np.isin(self.codes, codes)

    def code(self, level: str) -> int:
        """Return the position of a level; one that does not exist is refused."""
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
    """The annotators and what is known of them.

    Attributes
    ----------
    annotators : ndarray of str of shape (A,)
        Their ids.
    attributes : tuple of Attribute
        What describes them.
    left_out : mapping of str to str
        Columns with one value per annotator that are no attributes, and why.

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
    person has a value of their own)
    """

    annotators: Strings
    attributes: tuple[Attribute, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_columns(
        cls,
        annotators: Strings,
        columns: Mapping[str, Strings],
        of_items: Iterable[str] = (),
    ) -> People:
        """Decide which columns are attributes, and what their levels are.

        Parameters
        ----------
        annotators : ndarray of str of shape (A,)
            Ids of the people.
        columns : mapping of str to ndarray of shape (A,)
            Values of each person.
        of_items : iterable of str, default=()
            Columns that also have one value per item: they may describe what people were shown.

        Returns
        -------
        People
        """
        ambiguous = set(of_items)
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
        return cls(annotators, tuple(attributes), left_out)

    def __len__(self) -> int:
        return len(self.annotators)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    def attribute(self, name: str) -> Attribute:
        """Return the attribute of this name; one that people don't have is refused."""
        if name in self.names:
            return self.attributes[self.names.index(name)]
        if name in self.left_out:
            raise InputError(
                f"{word(name)} can't be used as an attribute: {self.left_out[name]}",
                f"the attributes are {headings(self.names) or 'none'}",
                code="unusable-attribute",
            )
        raise InputError(
            f"the annotators have no attribute {word(name)}",
            "attributes are columns with the same value in all rows of an annotator:"
            f" {headings(self.names) or 'none here'}",
            code="unknown-attribute",
        )

    def codes(self, annotators: Iterable[str]) -> Ints:
        """Return the positions of people; somebody who is not known is refused."""
        position = {str(name): code for code, name in enumerate(self.annotators)}
        names = [str(name) for name in annotators]
        unknown = [name for name in names if name not in position]
        if unknown:
            raise InputError(
                f"there is no annotator {examples(unknown)}",
                f"the annotators are {examples(self.annotators, 5)}",
                code="unknown-annotator",
            )
        return np.array([position[name] for name in names], dtype=np.int64)

    def with_levels(self, levels: Mapping[str, str | Sequence[str]]) -> Ints:
        """Return the positions of people who have these levels, as in ``{"race": "Black"}``.

        Several levels of an attribute are alternatives, several attributes must all fit.
        """
        fits = np.ones(len(self), dtype=bool)
        for name, wanted in levels.items():
            alternatives = [wanted] if isinstance(wanted, str) else list(wanted)
            fits &= self.attribute(name).has(alternatives)
        return np.flatnonzero(fits)

    def take(self, positions: npt.ArrayLike) -> People:
        """Return some of the people, with all levels."""
        chosen = np.asarray(positions)
        attributes = tuple(
            Attribute(kept.name, kept.levels, kept.codes[chosen], kept.note)
            for kept in self.attributes
        )
        return People(self.annotators[chosen], attributes, self.left_out)

    def describe(self) -> str:
        """Return in one line which columns are attributes, and which are not."""
        used = ", ".join(attribute.describe() for attribute in self.attributes)
        text = f"attributes of annotators: {used or 'none'}"
        if self.left_out:
            reasons = (f"{name} ({reason})" for name, reason in self.left_out.items())
            text += f"; not used: {', '.join(reasons)}"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for a file that `from_dict` reads."""
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
    """The column as an attribute, or why it is none."""
    texts = [str(value).strip() for value in values]
    known = [text for text in texts if text.lower() not in _UNKNOWN]
    spelling_of, merged = _one_spelling(known)
    distinct = set(spelling_of.values())
    if len(distinct) < 2:
        return None, "the same for everybody" if distinct else "empty"
    if len(distinct) == len(known):
        return None, "every person has a value of their own"
    level_of = spelling_of
    note = f"{examples(merged)} read in another spelling" if merged else ""
    if len(distinct) > _MOST_NUMBERS and all(_WHOLE.fullmatch(text) for text in distinct):
        level_of, note = _bands(distinct)
    levels = _level_order(set(level_of.values()))
    if len(levels) > MOST_LEVELS:
        return None, f"{len(levels)} different values; group them, such as postcodes by region"
    position = {level: code for code, level in enumerate(levels)}
    codes = [position[level_of[text]] if text in level_of else -1 for text in texts]
    return Attribute(name, levels, np.array(codes, dtype=np.int64), note), ""


def _one_spelling(known: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The most frequent spelling of each value, and values that differ from it in case alone."""
    count_of: dict[str, int] = {}
    for text in known:
        count_of[text] = count_of.get(text, 0) + 1
    best: dict[str, str] = {}
    for text in sorted(count_of, key=lambda text: (-count_of[text], text)):
        best.setdefault(text.casefold(), text)
    spelling_of = {text: best[text.casefold()] for text in count_of}
    return spelling_of, sorted(text for text, spelling in spelling_of.items() if text != spelling)


def _bands(distinct: set[str]) -> tuple[dict[str, str], str]:
    """Whole numbers as bands of a round width, such as 20-29."""
    number_of = {text: int(float(text)) for text in distinct}
    lowest = min(number_of.values())
    highest = max(number_of.values())
    width = 5
    while highest // width - lowest // width + 1 > _MOST_BANDS:
        # 5, 10, 50, 100, 500, …
        width *= 2 if str(width).startswith("5") else 5
    bands = {}
    for text, number in number_of.items():
        start = number // width * width
        bands[text] = f"{start}-{start + width - 1}"
    return bands, f"bands of {width}"


def few_people_sentence(names: list[str]) -> str:
    """Which levels or panels have fewer than five people."""
    listed = ", ".join(names[:8])
    if len(names) > 8:
        listed += f" and {len(names) - 8} more"
    return f"Fewer than five people: {listed}. What they answer may say little about others."


def _level_order(levels: set[str]) -> tuple[str, ...]:
    """Levels in class order; those that all have a number in them by their first number."""
    matches = {level: _LEADING.match(level) for level in levels}
    if all(matches.values()):
        first = {}
        for level, match in matches.items():
            assert match is not None
            # "under 18" comes before "18-24".
            first[level] = (int(match[1]), _BELOW.match(level) is None)
        return tuple(sorted(class_order(levels), key=first.__getitem__))
    return class_order(levels)
