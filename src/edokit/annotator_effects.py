"""How annotators differ from an anonymous answer: shrunken offsets and slopes.

An annotator a answers item i, whose anonymous answer has the logits z_i, with the logits
z_i + u_a + s_a · (z_i − mean of z_i): u_a is an offset per class, s_a how much more (or less) than
others the annotator follows the text. Both are normally distributed over annotators around zero
with a covariance that is estimated from all of them (empirical Bayes), so that effects shrink the
more the fewer labels they rest on. Where attributes of the annotators count, both are sums: what is
the annotator's own, and an effect of each value of an attribute, which shrink in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, counted, headings
from edokit._types import Codes, Floats, Ints
from edokit.scales import Scale, as_number

# Probabilities closer to 0 or 1 do not count as more certain.
_LEAST = 1e-6
_ROUNDS = 20
# Annotations at a time.
_BLOCK = 1 << 16
# Attributes by annotator, as in ``{"ann": {"age": "29"}}``.
Attributes = Mapping[str, Mapping[str, str]]


class AttributeValue(NamedTuple):
    """A value that an attribute of annotators may have."""

    attribute: str
    value: str  # or the upper end of a range of numbers
    is_range: bool = False


@dataclass(frozen=True, eq=False)
class KnownAnnotators:
    """Whom a member knows: A annotators, and V values of their attributes.

    Each has a row in a table of R effects: first the annotators (none where ids do not count), then
    the values. ``codes`` [A, 1 + B] are the rows of each annotator: their own, and one per
    attribute; -1: none.
    """

    annotators: tuple[str, ...]
    codes: Ints
    values: tuple[AttributeValue, ...] = ()

    @classmethod
    def named(cls, annotators: Iterable[object]) -> KnownAnnotators:
        """Annotators without attributes."""
        people = tuple(map(str, annotators))
        return cls(people, np.arange(len(people))[:, None])

    @classmethod
    def of(cls, annotations: Any, attributes: Sequence[str] = ()) -> KnownAnnotators:
        """The annotators of annotations, with these attributes.

        An attribute with many values that are numbers becomes ranges, with about equally many
        annotators in each.
        """
        values: list[AttributeValue] = []
        for name in attributes:
            values += _values(name, find_attribute(annotations, name))
        people = replace(cls.named(annotations.annotators), values=tuple(values))
        attributes_by_person = attributes_of(annotations).values()
        codes = [[a, *people.rows(person)] for a, person in enumerate(attributes_by_person)]
        return replace(people, codes=np.array(codes, dtype=np.int64))

    def without_ids(self) -> KnownAnnotators:
        """The same where attributes alone count: annotators have no rows of their own."""
        codes = np.where(self.codes < 0, -1, self.codes - len(self.annotators))
        codes[:, 0] = -1
        return replace(self, codes=codes)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that count [B]."""
        return tuple(dict.fromkeys(value.attribute for value in self.values))

    @property
    def first_value(self) -> int:
        """The row of the first value: as many as annotators have rows of their own."""
        return int(self.codes[:, 0].max(initial=-1)) + 1

    @property
    def n_rows(self) -> int:
        """R."""
        return self.first_value + len(self.values)

    @property
    def is_whole(self) -> bool:
        """Whether its parts fit together; what was read from a file may not."""
        codes, n, b = self.codes, len(self.annotators), len(self.attributes)
        ends = [end for _, end, is_range in self.values if is_range and end != "inf"]
        fits = codes.shape == (n, 1 + b) and bool((codes < self.n_rows).all())
        return fits and all(as_number(end) is not None for end in ends)

    def rows(self, attributes: Mapping[str, str]) -> list[int]:
        """The row of each attribute's value of one annotator [B]; -1 where it was never seen."""
        row_of = dict.fromkeys(self.attributes, -1)
        for row, (attribute, value, is_range) in enumerate(self.values, start=self.first_value):
            text = attributes.get(attribute, "")
            if row_of[attribute] < 0 and text:
                number = as_number(text)
                matches = (
                    number is not None and number <= float(value) if is_range else text == value
                )
                row_of[attribute] = row if matches else -1
        return [*row_of.values()]

    def seen(self, attributes: Mapping[str, str]) -> list[str]:
        """The attributes of one annotator whose values were seen."""
        rows = zip(self.attributes, self.rows(attributes), strict=True)
        return [name for name, row in rows if row >= 0]

    def asked(
        self,
        annotators: Sequence[Iterable[str]],
        n_texts: int,
        attributes: Attributes | None = None,
    ) -> tuple[Ints, Ints]:
        """The text [P] and the rows of the annotator [P, 1 + B] of each pair that is asked for.

        One that is not known has rows of the values of ``attributes``, where these are given; else,
        as a text without annotators, -1 alone.
        """
        if len(annotators) != n_texts:
            raise InputError(
                f"{counted(n_texts, 'text')} came with {counted(len(annotators), 'list')} of"
                " annotators",
                "give one list of annotators per text",
            )
        attributes = attributes or {}
        row_of: dict[str, list[int]] = dict(zip(self.annotators, self.codes.tolist(), strict=True))
        nobody = [-1] * self.codes.shape[1]

        def rows(name: str) -> list[int]:
            if name not in row_of:
                row_of[name] = [-1, *self.rows(attributes[name])] if name in attributes else nobody
            return row_of[name]

        pairs = [[rows(str(name)) for name in names] or [nobody] for names in annotators]
        codes = [codes for text_codes in pairs for codes in text_codes]
        shape = (len(codes), len(nobody))
        return (
            np.repeat(np.arange(n_texts), list(map(len, pairs))),
            np.array(codes, dtype=np.int64).reshape(shape),
        )


def attributes_of(annotations: Any) -> dict[str, dict[str, str]]:
    """The attributes of each annotator, by name."""
    columns = getattr(annotations, "attributes", {})
    return {
        str(person): {name: str(values[a]) for name, values in columns.items()}
        for a, person in enumerate(annotations.annotators)
    }


# An attribute with more values than this, all of them numbers, becomes so many ranges.
_MANY_VALUES, _RANGES = 10, 5


def _values(attribute: str, entries: Iterable[object]) -> list[AttributeValue]:
    """The values of an attribute; a gap (empty text) is none."""
    values = [value for value in map(str, entries) if value]
    distinct = sorted(set(values))
    numbers = [number for value in values if (number := as_number(value)) is not None]
    if len(distinct) <= _MANY_VALUES or len(numbers) < len(values):
        return [AttributeValue(attribute, value) for value in distinct]
    ends = np.unique(np.quantile(numbers, np.arange(1, _RANGES) / _RANGES, method="lower"))
    ranges = [*ends[ends < max(numbers)].tolist(), float("inf")]
    return [AttributeValue(attribute, f"{end:g}", True) for end in ranges]


# Belongs in the card of every model that uses attributes.
ATTRIBUTES_NOTE = (
    "An answer by attributes is a shrunken mean of the annotators who share them, not of everybody"
    " who does, and not of any person: people with the same attributes differ. Use attributes that"
    " people have given with consent; never infer them, and never decide about a person by them."
    " Age, gender, origin, religion or health are personal data, in many places protected by law."
)


def find_attribute(annotations: Any, name: str) -> Sequence[str]:
    """The values [A] of an attribute of the annotators; one that they have not is refused."""
    columns = getattr(annotations, "attributes", {})
    if name in columns:
        values: Sequence[str] = columns[name]
        return values
    kinds = ("item_columns", "annotation_columns")
    varies = any(name in getattr(annotations, kind, {}) for kind in kinds)
    reason = f": {name!r} is not the same in all rows of an annotator" if varies else ""
    raise InputError(
        f"the annotators have no attribute {name!r}{reason}",
        f"their attributes are {headings(columns)}"
        if columns
        else "give the annotations a column with one value per annotator",
    )


def attribute_names(text: str) -> tuple[str, ...]:
    """Names of attributes in an option, separated by commas."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


@dataclass(frozen=True, eq=False)
class AnnotatorEffects:
    """Offsets and a slope [R, C + 1] of annotators and of values of their attributes."""

    known: KnownAnnotators
    effects: Floats

    @property
    def annotators(self) -> npt.NDArray[np.str_]:
        """The annotators that it knows [A]."""
        return np.array(self.known.annotators)

    @classmethod
    def fit(
        cls,
        anonymous: Floats,
        annotations: Any,
        scale: Scale,
        *,
        attributes: Sequence[str] = (),
        ids: bool = True,
    ) -> AnnotatorEffects:
        """Learn from anonymous answers [N, C], which have not seen the labels, and annotations.

        ``attributes`` of the annotators count beside their ``ids``, or alone.
        """
        z = _logits(anonymous, scale)
        labels = label_shares(annotations, z.shape[1])
        # Annotations in the order of annotators, so that sums are over runs of rows.
        order = np.argsort(annotations.annotator_codes, kind="stable")
        whose = np.asarray(annotations.annotator_codes)[order]
        rows = np.asarray(annotations.item_codes)[order]
        people = KnownAnnotators.of(annotations, attributes)
        n, d = len(people.annotators), z.shape[1] + 1
        effects_of_ids, covariance = np.zeros((n, d)), np.eye(d) / 4
        values = [_ValueEffects(codes - n, d) for codes in people.codes[:, 1:].T]
        for _ in range(_ROUNDS):
            inverse = np.linalg.inv(covariance)
            shared = sum((value.of_annotators() for value in values), np.zeros((n, d)))
            gradient, hessian = _derivatives(
                effects_of_ids + shared, z, labels[order], rows, whose, scale
            )
            penalised = hessian + inverse
            if values:
                _fit_values(values, effects_of_ids + shared, shared, gradient, hessian, penalised)
                moved = sum((value.of_annotators() for value in values), -shared)
                gradient += (hessian @ moved[..., None])[..., 0]
            # One Newton step for all annotators; the covariance settles more slowly than that.
            effects_of_ids = effects_of_ids - _limited(
                np.linalg.solve(penalised, (gradient + effects_of_ids @ inverse)[..., None])
            )
            covariance = _covariance(effects_of_ids, np.linalg.inv(penalised))
        table = np.concatenate([effects_of_ids, *(value.effects for value in values)])
        return cls(people, table) if ids else cls(people.without_ids(), table[n:])

    def predict(
        self,
        anonymous: Floats,
        annotators: Sequence[Iterable[str]],
        scale: Scale,
        attributes: Attributes | None = None,
    ) -> Floats:
        """The mean answer [N, C] of the annotators of each text.

        One that is not known, nor any value of their attributes, gives the anonymous answer, and so
        does a text without annotators.
        """
        rows, codes = self.known.asked(annotators, len(anonymous), attributes)
        answers, is_known = anonymous[rows], (codes >= 0).any(axis=1)
        z, codes = _logits(anonymous, scale)[rows[is_known]], codes[is_known]
        effects = (self.effects[codes] * (codes >= 0)[..., None]).sum(axis=1)
        answers[is_known] = _moved(z, effects, scale)
        return mean_over_pairs(answers, rows)


class _ValueEffects:
    """The effects [V, E] of the values of one attribute, and how far they spread."""

    def __init__(self, codes: Ints, n_effects: int) -> None:
        present = codes >= 0
        lowest = int(codes[present].min(initial=len(codes)))
        self.people, self.codes = np.flatnonzero(present), codes[present] - lowest
        self.annotators = len(codes)
        self.effects = np.zeros((int(self.codes.max(initial=-1)) + 1, n_effects))
        self.covariance = np.eye(n_effects) / 4

    def of_annotators(self) -> Floats:
        """The effect of each annotator's value [A, E]."""
        effects = np.zeros((self.annotators, self.effects.shape[1]))
        effects[self.people] = self.effects[self.codes]
        return effects

    def step(self, precision: Floats, response: Floats) -> None:
        """Fit what the annotators have beyond the other attributes: precision [A, E, E], and
        precision times estimate [A, E]."""
        v, e = self.effects.shape
        summed, responses = np.zeros((v, e, e)), np.zeros((v, e))
        np.add.at(summed, self.codes, precision[self.people])
        np.add.at(responses, self.codes, response[self.people])
        summed += np.linalg.inv(self.covariance)
        step = self.effects - np.linalg.solve(summed, responses[..., None])[..., 0]
        self.effects = self.effects - _limited(step[..., None])
        self.covariance = _covariance(self.effects, np.linalg.inv(summed))


def _fit_values(
    values: Sequence[_ValueEffects],
    total: Floats,
    shared: Floats,
    gradient: Floats,
    hessian: Floats,
    penalised: Floats,
) -> None:
    """A step of each attribute in turn, the annotators' own effects integrated out.

    Near the present ``total`` effects [A, E], the labels of an annotator are as good as one
    estimate with precision H; around what the attributes explain, it varies by H⁻¹ plus the
    covariance of own effects. H may be singular, so its inverse is avoided.
    """
    damping = np.linalg.solve(penalised, hessian).swapaxes(1, 2)  # H (H + S⁻¹)⁻¹
    precision = hessian - damping @ hessian
    estimate = (hessian @ total[..., None])[..., 0] - gradient
    response = estimate - (damping @ estimate[..., None])[..., 0]
    for attribute in values:
        from_others = shared - attribute.of_annotators()
        attribute.step(precision, response - (precision @ from_others[..., None])[..., 0])
        shared = from_others + attribute.of_annotators()


def _limited(step: Floats) -> Floats:
    """Newton steps [n, E, 1] as [n, E], of a length that can't overshoot by far."""
    steps = step[..., 0]
    limited: Floats = steps / np.maximum(np.abs(steps).max(axis=1, keepdims=True), 1.0)
    return limited


def _covariance(effects: Floats, posterior: npt.NDArray[Any]) -> Floats:
    """How effects [n, E] spread, given the posterior covariance [n, E, E] of each."""
    n, d = effects.shape
    spread = np.einsum("ai,aj->ij", effects, effects) + posterior.sum(axis=0)
    # As if there were as many more of them as effects, which differ alike in all classes.
    alike = np.append(np.full(d - 1, np.trace(spread[:-1, :-1]) / (d - 1)), spread[-1, -1])
    covariance: Floats = (spread + np.diag(alike / n) * d) / (n + d)
    return covariance


def _logits(p: Floats, scale: Scale) -> Floats:
    return scale.logits(np.clip(p, _LEAST, 1 - _LEAST))


def _moved(z: Floats, effects: Floats, scale: Scale) -> Floats:
    """Probabilities [M, C] of annotators with these effects [M, C + 1]."""
    return scale.from_logits(z + effects[:, :-1] + effects[:, -1:] * z)


def _derivatives(
    effects: Floats, z: Floats, labels: Floats, rows: Ints, whose: Codes, scale: Scale
) -> tuple[Floats, Floats]:
    """Gradient [A, E] and Hessian [A, E, E] of the cross-entropy, summed over own labels."""
    n, e = effects.shape
    gradient, hessian = np.zeros((n, e)), np.zeros((n, e, e))
    for start in range(0, len(rows), _BLOCK):
        part = slice(start, start + _BLOCK)
        annotators, base = whose[part], z[rows[part]]
        p = _moved(base, effects[annotators], scale)
        offsets = np.broadcast_to(np.eye(e - 1), (*p.shape, e - 1))
        design = np.concatenate([offsets, base[:, :, None]], axis=2)
        weighted = scale.curvature(p) @ design
        present, starts = np.unique(annotators, return_index=True)
        slopes = np.einsum("mce,mc->me", design, p - labels[part])
        gradient[present] += np.add.reduceat(slopes, starts, axis=0)
        hessian[present] += np.add.reduceat(design.swapaxes(1, 2) @ weighted, starts, axis=0)
    return gradient, hessian


def label_shares(annotations: Any, n_classes: int, rows: Any = slice(None)) -> Floats:
    """Labels of these annotations as probabilities [M, C]; one-hot where a class was chosen."""
    if annotations.label_codes is None:
        return np.asarray(annotations.label_probabilities[rows])
    return np.asarray(np.eye(n_classes)[annotations.label_codes[rows]])


def mean_over_pairs(answers: Floats, rows: Ints) -> Floats:
    """The mean answer [N, C] of the pairs [P, C] of each text; ``rows`` [P] are their texts."""
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    sums: Floats = np.add.reduceat(answers, starts) if len(starts) else answers
    return sums / np.bincount(rows)[:, None]
