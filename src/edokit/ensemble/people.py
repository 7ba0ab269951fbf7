"""How people differ from the pool: effects of persons and of their attributes, in log-odds.

The pool answers item i with the log-odds z_i. Annotator a is modelled to answer with

    z_i + M o_a + s_a z_i,   (o_a, s_a) = b + sum of the effects of a's attribute levels + u_a

where ``M o`` moves the log-odds of the classes by the offsets o (of the thresholds between
neighbouring points on an ordinal scale, of each label for multi-label data), and the slope s says
how much more, or less, a person follows the pool than the average person does. ``b`` calibrates the
average person. The effects u_a of persons have a normal prior with covariance Σ, and those of the
levels of an attribute g have one with covariance τ_g Σ. Σ and every τ_g are estimated from the data
(empirical Bayes, with Laplace's approximation): τ_g by MacKay's update, and Σ by an EM update that
includes the uncertainty of calibration and attributes, as restricted maximum likelihood does.
Without it, the levels of four people could explain all of their differences. As a result, a few
labels hardly move an answer, and an attribute that explains nothing has no effect.

Effects of attributes may describe the people of the fit well and still not carry over to people
never seen. Answers for such people are shifted by only a part of the effects. The part is chosen by
cross-validation over people: it is the smallest that is not clearly worse than the best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from edokit._errors import InputError, counted, one_of
from edokit._io.documents import Count, Document, Names
from edokit._types import Floats, Ints
from edokit.annotations.core import Annotations
from edokit.annotations.people import Attribute, People
from edokit.annotator_effects import label_shares
from edokit.scales import Scale

SMALLEST_PROBABILITY = 1e-6
"""Probabilities are clipped to this distance from 0 and 1, where log-odds are infinite."""
_BLOCK = 1 << 16
"""Number of annotations that are processed at a time, so that memory stays bounded."""
_ROUNDS = 40
"""The largest number of rounds, each a Newton step and an update of the variances."""
_TOLERANCE = 1e-6
"""Rounds end when neither a step nor a relative change of Σ exceeds this."""
_SHORTEST_STEP = 1e-4
"""Newton steps are halved until the loss falls, but not below this length."""
_CALIBRATION_PENALTY = 1e-3
"""Keeps the calibration finite if all annotators always agree."""
_SMALLEST_LIKELIHOOD = 1e-300
"""Keeps the logarithm of a label's probability finite."""
_LEAST_SHARE = 1e-3
"""An attribute with a smaller variance, as a share of that between persons, gets no effect."""
_DRAWS = 64
"""Number of simulated persons over whom the answer for an attribute level is averaged.

It must be a power of two."""
_FOLDS = 5
"""Folds of people that show whether attributes carry over to people never seen."""
_PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The parts of the effects of attributes that are compared."""
_FOLD_ROUNDS = 8
"""The largest number of Newton steps in a fold of people."""
_FOLD_TOLERANCE = 1e-3
"""Newton steps in a fold of people end when one is smaller."""


class AttributeDocument(Document):
    """The effects of one attribute in ``ensemble.json``."""

    name: str
    levels: Names
    people: list[Count]
    share: float
    effects: list[list[float]]


class PeopleDocument(Document):
    """The effects of people in ``ensemble.json``."""

    annotators: Names
    labels: list[Count]
    attributes: list[AttributeDocument]
    levels: list[list[int]]
    calibration: list[float]
    effects: list[list[float]]
    covariance: list[list[float]]
    transfer: float = 1.0


@dataclass(frozen=True, eq=False)
class AttributeEffects:
    """The effects of one attribute.

    Attributes
    ----------
    name : str
        The attribute, such as ``gender``.
    levels : tuple of str
        Its levels among the annotators of the fit, in order.
    people : tuple of int
        Number of annotators with each level.
    share : float
        Variance of its effects as a share of the variance between persons (τ); 0 if the attribute
        explains nothing.
    effects : ndarray of shape (n_levels, n_effects)
        Offsets and slope of each level.
    """

    name: str
    levels: tuple[str, ...]
    people: tuple[int, ...]
    share: float
    effects: Floats

    def level_codes(self, values: Sequence[str]) -> Ints:
        """Return the position of each value among the levels; -1 where it is not one."""
        position = {level: code for code, level in enumerate(self.levels)}
        return np.array([position.get(value, -1) for value in values], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PeopleEffects:
    """How the annotators of a fit differ from its pool.

    Attributes
    ----------
    annotators : tuple of str
        The people who are known.
    labels : ndarray of shape (n_people,)
        Number of labels that each of them gave.
    attributes : tuple of AttributeEffects
        Their attributes.
    levels : ndarray of shape (n_people, n_attributes)
        Level of each person for each attribute; -1 where it is not known.
    calibration : ndarray of shape (n_effects,)
        Offsets and slope of the average person.
    effects : ndarray of shape (n_people, n_effects)
        Offsets and slope of each person, beyond calibration and attributes.
    covariance : ndarray of shape (n_effects, n_effects)
        Covariance of the persons' effects (Σ).
    scale : Scale
        The answer scale.
    transfer : float
        The part of the effects of attributes that carries over to people never seen, from 0 to 1.

    Examples
    --------
    Ann says yes where Ben says no:

    >>> import numpy as np
    >>> from edokit import Annotations
    >>> from edokit.ensemble.people import PeopleEffects
    >>> labels = np.array([[1, 0], [1, 0], [1, 1], [0, 0]] * 10)
    >>> annotations = Annotations.from_matrix(labels, annotators=["ann", "ben"])
    >>> pool = np.full((40, 2), 0.5)
    >>> people = PeopleEffects.fit(pool, annotations)
    >>> people.answers(pool[:2], people.person_codes(["ann", "ben"]))[:, 1].round(2)
    array([0.74, 0.26])
    """

    annotators: tuple[str, ...]
    labels: Ints
    attributes: tuple[AttributeEffects, ...]
    levels: Ints
    calibration: Floats
    effects: Floats
    covariance: Floats
    scale: Scale
    transfer: float = 1.0

    @classmethod
    def fit(
        cls,
        anonymous: Floats,
        annotations: Annotations,
        attributes: Sequence[str] | None = None,
    ) -> PeopleEffects:
        """Estimate the effects from cross-fitted answers and single labels.

        Parameters
        ----------
        anonymous : ndarray of shape (n_items, n_classes)
            The pool's answers, from members that have not seen the item's labels; for multi-label
            data the probability of each label.
        annotations : Annotations
            Who labelled which of these items how, in the same order of items.
        attributes : sequence of str, default=None
            Which attributes of the annotators to use; None for all of `Annotations.people`.

        Returns
        -------
        PeopleEffects

        Raises
        ------
        InputError
            If an attribute does not exist, or can't be used.
        """
        scale = annotations.scale
        names = tuple(str(name) for name in annotations.annotators)
        usable_attributes = _usable_attributes(annotations.people, attributes)
        level_codes = np.full((len(names), 0), -1, dtype=np.int64)
        if usable_attributes:
            level_codes = np.column_stack([attribute.codes for attribute in usable_attributes])
        n_levels = [len(attribute.levels) for attribute in usable_attributes]
        labels = _SingleLabels.from_annotations(anonymous, annotations)
        estimate = _estimate(labels, level_codes, n_levels)
        effects_of_attributes = []
        for g, attribute in enumerate(usable_attributes):
            effects_of_attributes.append(
                AttributeEffects(
                    name=attribute.name,
                    levels=attribute.levels,
                    people=attribute.people,
                    share=float(estimate.shares[g]),
                    effects=estimate.level_effects[g],
                )
            )
        return cls(
            annotators=names,
            labels=np.bincount(annotations.annotator_codes, minlength=len(names)),
            attributes=tuple(effects_of_attributes),
            levels=level_codes,
            calibration=estimate.calibration,
            effects=estimate.person_effects,
            covariance=estimate.covariance,
            scale=scale,
            transfer=_transfer(labels, level_codes, estimate),
        )

    @classmethod
    def from_document(cls, document: PeopleDocument, scale: Scale, n_classes: int) -> PeopleEffects:
        """Return the effects from ``ensemble.json``; a ValueError says which sizes are wrong.

        Parameters
        ----------
        document : PeopleDocument
            What `to_document` returned.
        scale : Scale
            The answer scale of the ensemble.
        n_classes : int
            Number of its classes.
        """
        n_people = len(document.annotators)
        n_effects = scale.offset_basis(n_classes).shape[1] + 1
        n_attributes = len(document.attributes)
        attributes = []
        for stored in document.attributes:
            n_levels = len(stored.levels)
            if len(stored.people) != n_levels:
                raise ValueError("holds an attribute whose levels and people do not match")
            attributes.append(
                AttributeEffects(
                    name=stored.name,
                    levels=tuple(stored.levels),
                    people=tuple(stored.people),
                    share=stored.share,
                    effects=_array(stored.effects, n_levels, n_effects),
                )
            )
        levels = np.full((n_people, 0), -1, dtype=np.int64)
        if n_attributes:
            levels = _array(document.levels, n_people, n_attributes).astype(np.int64)
        for g, attribute in enumerate(attributes):
            if levels[:, g].max(initial=-1) >= len(attribute.levels):
                raise ValueError(f"holds people with unknown levels of {attribute.name!r}")
        return cls(
            annotators=tuple(document.annotators),
            labels=_array(document.labels, n_people).astype(np.int64),
            attributes=tuple(attributes),
            levels=levels,
            calibration=_array(document.calibration, n_effects),
            effects=_array(document.effects, n_people, n_effects),
            covariance=_array(document.covariance, n_effects, n_effects),
            scale=scale,
            transfer=document.transfer,
        )

    def to_document(self) -> dict[str, object]:
        """Return the content for ``ensemble.json``."""
        attributes = []
        for attribute in self.attributes:
            attributes.append(
                {
                    "name": attribute.name,
                    "levels": list(attribute.levels),
                    "people": list(attribute.people),
                    "share": attribute.share,
                    "effects": attribute.effects.tolist(),
                }
            )
        return {
            "annotators": list(self.annotators),
            "labels": self.labels.tolist(),
            "attributes": attributes,
            "levels": self.levels.tolist(),
            "calibration": self.calibration.tolist(),
            "effects": self.effects.tolist(),
            "covariance": self.covariance.tolist(),
            "transfer": self.transfer,
        }

    def attribute(self, name: str) -> AttributeEffects:
        """Return the attribute of this name; an unknown one is refused."""
        names = [attribute.name for attribute in self.attributes]
        one_of("attribute", name, names)
        return self.attributes[names.index(name)]

    def person_codes(self, annotators: Sequence[str]) -> Ints:
        """Return the position of each annotator among those known; -1 for people never seen."""
        position = {name: code for code, name in enumerate(self.annotators)}
        return np.array([position.get(str(name), -1) for name in annotators], dtype=np.int64)

    def people_with(self, attribute: str, levels: Sequence[str]) -> Ints:
        """Return the positions of the people who have one of these levels."""
        known_levels = self.attribute(attribute).levels
        for level in levels:
            one_of(f"level of {attribute}", level, known_levels)
        column = [effects.name for effects in self.attributes].index(attribute)
        codes = [known_levels.index(level) for level in levels]
        return np.flatnonzero(np.isin(self.levels[:, column], codes))

    def attributes_by_person(self) -> dict[str, dict[str, str]]:
        """Return the known levels of each person, as in ``{"ann": {"age": "29"}}``."""
        people: dict[str, dict[str, str]] = {}
        for code, name in enumerate(self.annotators):
            levels = {}
            for g, attribute in enumerate(self.attributes):
                level = self.levels[code, g]
                if level >= 0:
                    levels[attribute.name] = attribute.levels[level]
            people[name] = levels
        return people

    def answers(self, anonymous: Floats, people: Ints) -> Floats:
        """Return what each person would answer.

        Parameters
        ----------
        anonymous : ndarray of shape (n_rows, n_classes)
            The pool's answers.
        people : ndarray of shape (n_rows,)
            Position of the person of each row (`person_codes`); -1 for people never seen, who get
            the pool's answer.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        answers = np.array(anonymous, dtype=np.float64)
        is_known = people >= 0
        logits = _logits(answers[is_known], self.scale)
        effects = self.person_totals()[people[is_known]]
        answers[is_known] = _probabilities(logits, effects, self.scale)
        return answers

    def person_totals(self) -> Floats:
        """Return offsets and slope of each person, including calibration and attributes."""
        totals = self.calibration + self.effects
        for g, attribute in enumerate(self.attributes):
            has_level = self.levels[:, g] >= 0
            totals[has_level] += attribute.effects[self.levels[has_level, g]]
        return totals

    def answers_by_attributes(self, anonymous: Floats, attributes: Mapping[str, str]) -> Floats:
        """Return what a person would answer of whom only attributes are known.

        The level effects move the mean answer of simulated persons; the part `transfer` of this
        shift is added to the pool's log-odds. Levels never seen, and attributes that explain
        nothing, have no effect.

        Parameters
        ----------
        anonymous : ndarray of shape (n_rows, n_classes)
            The pool's answers.
        attributes : mapping of str to str
            Level of each attribute that is known, as in ``{"gender": "f"}``.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        level_effects = np.zeros_like(self.calibration)
        for name, level in attributes.items():
            attribute = self.attribute(name)
            if level in attribute.levels:
                level_effects = level_effects + attribute.effects[attribute.levels.index(level)]
        if self.transfer == 0 or not level_effects.any():
            return np.array(anonymous, dtype=np.float64)
        logits = _logits(anonymous, self.scale)
        effects = np.broadcast_to(level_effects, (len(logits), len(level_effects)))
        shift = _attribute_shift(logits, effects, self.calibration, self.covariance, self.scale)
        return np.asarray(self.scale.from_logits(logits + self.transfer * shift))


def _usable_attributes(people: People, names: Sequence[str] | None) -> tuple[Attribute, ...]:
    """The attributes of these names, which must exist; None for all attributes."""
    if names is None:
        return people.attributes
    return tuple(people.attribute(name) for name in names)


def _array(values: object, *shape: int) -> Floats:
    """Return numbers of a document as an array; a ValueError says that the shape is wrong."""
    array = np.array(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"holds numbers of shape {array.shape}, not {shape}")
    return array


# --- The model ------------------------------------------------------------------------------------


def _logits(p: Floats, scale: Scale) -> Floats:
    """Log-odds [n, C] of probabilities, which are clipped to be finite."""
    return scale.logits(np.clip(p, SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY))


def _probabilities(logits: Floats, effects: Floats, scale: Scale) -> Floats:
    """Probabilities [n, C] of the answers of people with these effects [n, n_effects]."""
    offsets = effects[:, :-1] @ scale.offset_basis(logits.shape[1]).T
    slopes = effects[:, -1:]
    return np.asarray(scale.from_logits(logits + offsets + slopes * logits))


def _attribute_shift(
    logits: Floats, level_effects: Floats, calibration: Floats, covariance: Floats, scale: Scale
) -> Floats:
    """How far level effects [n, E] shift the log-odds [n, C] of simulated persons' mean answer."""
    average = np.zeros_like(logits)
    with_attributes = np.zeros_like(logits)
    for person_effects in _simulated_effects(covariance):
        rows = np.broadcast_to(calibration + person_effects, level_effects.shape)
        average += _probabilities(logits, rows, scale)
        with_attributes += _probabilities(logits, rows + level_effects, scale)
    shift = _logits(with_attributes / _DRAWS, scale) - _logits(average / _DRAWS, scale)
    return np.asarray(shift)


def _simulated_effects(covariance: Floats) -> Floats:
    """Effects [_DRAWS, E] of simulated persons, a quasi-random sample from Σ with a fixed seed."""
    from scipy.special import ndtri
    from scipy.stats import qmc  # slow to import

    n_effects = len(covariance)
    uniform = qmc.Sobol(n_effects, seed=0).random(_DRAWS)
    normal = ndtri(uniform)
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(normal * np.sqrt(np.maximum(values, 0.0)) @ vectors.T)


# --- The estimate ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _SingleLabels:
    """M single labels, sorted by annotator, and the pool's log-odds for their items."""

    logits: Floats
    """Log-odds of the pool by item [N, C]."""
    items: Ints
    """The item of each label [M]."""
    people: Ints
    """The annotator of each label [M]."""
    targets: Floats
    """The labels [M, C]: one-hot, or indicators for multi-label data."""
    scale: Scale
    n_people: int

    @classmethod
    def from_annotations(cls, anonymous: Floats, annotations: Annotations) -> _SingleLabels:
        """Return the labels of annotations with the pool's answers for their items."""
        if len(anonymous) != len(annotations.items):
            raise InputError(
                f"there are {counted(len(anonymous), 'answer')} for"
                f" {counted(len(annotations.items), 'item')}",
                "give one answer of the pool for each annotated item",
                code="lengths-differ",
            )
        order = np.argsort(annotations.annotator_codes, kind="stable")
        return cls(
            logits=_logits(np.asarray(anonymous, dtype=np.float64), annotations.scale),
            items=np.asarray(annotations.item_codes, dtype=np.int64)[order],
            people=np.asarray(annotations.annotator_codes, dtype=np.int64)[order],
            targets=label_shares(annotations, anonymous.shape[1])[order],
            scale=annotations.scale,
            n_people=len(annotations.annotators),
        )

    def select(self, rows: Ints) -> _SingleLabels:
        """Return the labels at these positions; people keep their numbers."""
        return replace(
            self, items=self.items[rows], people=self.people[rows], targets=self.targets[rows]
        )

    def value(self, effects: Floats) -> float:
        """Return the sum of the labels' cross-entropies, given the effects [A, E] of people."""
        total = 0.0
        for start in range(0, len(self.items), _BLOCK):
            block = slice(start, start + _BLOCK)
            logits = self.logits[self.items[block]]
            p = _probabilities(logits, effects[self.people[block]], self.scale)
            rows = self.scale.rows(p)
            targets = self.scale.rows(self.targets[block])
            total -= float((targets * np.log(np.maximum(rows, _SMALLEST_LIKELIHOOD))).sum())
        return total

    def derivatives(self, effects: Floats) -> tuple[Floats, Floats]:
        """Return gradient [A, E] and Hessian [A, E, E] of `value`, which is a sum over persons."""
        n_effects = effects.shape[1]
        gradient = np.zeros((self.n_people, n_effects))
        hessian = np.zeros((self.n_people, n_effects, n_effects))
        basis = self.scale.offset_basis(self.logits.shape[1])
        for start in range(0, len(self.items), _BLOCK):
            block = slice(start, start + _BLOCK)
            people = self.people[block]
            logits = self.logits[self.items[block]]
            p = _probabilities(logits, effects[people], self.scale)
            offsets = np.broadcast_to(basis, (len(p), *basis.shape))
            # X: how the log-odds [C] of a row change with its effects [E].
            design = np.concatenate([offsets, logits[:, :, None]], axis=2)
            slopes = np.einsum("mce,mc->me", design, p - self.targets[block])
            weighted = self.scale.curvature_product(p, design)
            curvatures = np.einsum("mce,mcf->mef", design, weighted)
            present, starts = np.unique(people, return_index=True)
            gradient[present] += np.add.reduceat(slopes, starts, axis=0)
            hessian[present] += np.add.reduceat(curvatures, starts, axis=0)
        return gradient, hessian


class _FittedEffects(NamedTuple):
    """The estimated effects and variances; `PeopleEffects` describes them."""

    calibration: Floats
    person_effects: Floats
    level_effects: list[Floats]
    covariance: Floats
    shares: Floats


def _estimate(labels: _SingleLabels, level_codes: Ints, n_levels: Sequence[int]) -> _FittedEffects:
    """Alternate Newton steps for all effects with updates of the variances until both converge."""
    model = _Model(labels, level_codes, n_levels)
    for _ in range(_ROUNDS):
        posterior = model.newton_step()
        change = model.update_variances(posterior)
        if change < _TOLERANCE and posterior.step < _TOLERANCE:
            break
    level_effects = []
    for g, first_column in enumerate(model.first_columns):
        effects = model.shared_effects[first_column : first_column + n_levels[g]]
        if model.shares[g] < _LEAST_SHARE:
            model.shares[g] = 0.0
            effects = np.zeros_like(effects)
        level_effects.append(effects)
    return _FittedEffects(
        model.shared_effects[0], model.person_effects, level_effects, model.covariance, model.shares
    )


def _transfer(labels: _SingleLabels, level_codes: Ints, estimate: _FittedEffects) -> float:
    """The part of the effects of attributes that carries over to people never seen.

    People are left out in folds, and their answers are predicted by the level effects that are
    estimated without them; Σ and the variances of attributes are kept. The result is the smallest
    part whose mean loss over people is within one standard error of the lowest: it is 0 unless
    attributes clearly help.
    """
    contributing = np.flatnonzero(estimate.shares > 0)
    people = np.unique(labels.people)
    if not len(contributing) or len(people) < 2 * _FOLDS:
        return 0.0
    level_codes = level_codes[:, contributing]
    n_levels = [len(estimate.level_effects[g]) for g in contributing]
    fold_of_person = np.zeros(labels.n_people, dtype=np.int64)
    fold_of_person[people] = np.random.default_rng(0).permutation(len(people)) % _FOLDS
    fold_of_label = fold_of_person[labels.people]
    losses = np.zeros((labels.n_people, len(_PARTS)))
    for fold in range(_FOLDS):
        model = _Model(labels.select(np.flatnonzero(fold_of_label != fold)), level_codes, n_levels)
        model.covariance = estimate.covariance
        model.shares = estimate.shares[contributing]
        for _ in range(_FOLD_ROUNDS):
            if model.newton_step().step < _FOLD_TOLERANCE:
                break
        level_effects = model.membership[:, 1:] @ model.shared_effects[1:]
        left_out = labels.select(np.flatnonzero(fold_of_label == fold))
        losses += _losses_by_part(
            left_out, level_effects, model.shared_effects[0], estimate.covariance
        )
    counts = np.bincount(labels.people, minlength=labels.n_people)
    losses = losses[people] / counts[people, None]
    best = losses[:, np.argmin(losses.mean(axis=0))]
    for number, part in enumerate(_PARTS):
        excess = losses[:, number] - best
        if excess.mean() <= excess.std(ddof=1) / np.sqrt(len(people)):
            return part
    return 1.0  # only if losses are NaN: the best part is not worse than itself


def _losses_by_part(
    labels: _SingleLabels, level_effects: Floats, calibration: Floats, covariance: Floats
) -> Floats:
    """Cross-entropy of each person's labels [A, parts], predicted with each part of the effects."""
    scale = labels.scale
    losses = np.zeros((labels.n_people, len(_PARTS)))
    for start in range(0, len(labels.items), _BLOCK):
        block = slice(start, start + _BLOCK)
        people = labels.people[block]
        logits = labels.logits[labels.items[block]]
        targets = scale.rows(labels.targets[block])
        shift = _attribute_shift(logits, level_effects[people], calibration, covariance, scale)
        for number, part in enumerate(_PARTS):
            p = scale.rows(scale.from_logits(logits + part * shift))
            row_losses = -(targets * np.log(np.maximum(p, _SMALLEST_LIKELIHOOD))).sum(axis=1)
            label_losses = scale.per_item(row_losses, len(people))
            losses[:, number] += np.bincount(people, label_losses, minlength=labels.n_people)
    return losses


class _Posterior(NamedTuple):
    """Covariances of the effects by Laplace's approximation, and the size of the last step."""

    person_covariances: Floats
    """Covariance of each person's effects [A, E, E], with uncertainty of the shared effects."""
    shared_covariance: Floats
    """Covariance of the shared effects [S·E, S·E]."""
    step: float
    """The largest change of a person's effect before the step was shortened."""


class _Model:
    """The effects and variances while they are estimated.

    There are shared effects (the calibration, then those of the levels of each attribute) and
    effects of persons. In the Hessian, no two persons interact, so persons are eliminated first
    (Schur complement): what remains has a block for the calibration and one for each level.
    """

    def __init__(self, labels: _SingleLabels, level_codes: Ints, n_levels: Sequence[int]) -> None:
        self.labels = labels
        self.n_effects = labels.scale.offset_basis(labels.logits.shape[1]).shape[1] + 1
        self.n_levels = n_levels
        self.membership, self.first_columns = _membership(level_codes, n_levels)
        self.shared_effects = np.zeros((self.membership.shape[1], self.n_effects))
        self.person_effects = np.zeros((labels.n_people, self.n_effects))
        self.covariance = np.eye(self.n_effects) / 4
        self.shares = np.full(len(n_levels), 0.3)
        self.has_labels = np.bincount(labels.people, minlength=labels.n_people) > 0

    def newton_step(self) -> _Posterior:
        """Take a Newton step for all effects at once, shortened until it lowers the penalised loss.

        The penalised loss is convex, so such steps converge to its optimum.
        """
        membership = self.membership
        n_shared = membership.shape[1]
        size = n_shared * self.n_effects
        precision = self._precision()
        gradient, hessian = self.labels.derivatives(
            membership @ self.shared_effects + self.person_effects
        )
        person_posterior = np.asarray(np.linalg.inv(hessian + precision), dtype=np.float64)
        person_gradient = gradient + self.person_effects @ precision
        # Gradient and Hessian for the shared effects after persons are eliminated.
        elimination = hessian @ person_posterior
        reduced_hessian = hessian - elimination @ hessian
        reduced_gradient = gradient - np.einsum("aef,af->ae", elimination, person_gradient)
        shared_hessian = self._sum_over_persons(reduced_hessian).reshape(size, size)
        shared_gradient = membership.T @ reduced_gradient
        penalties = self._shared_penalties()
        for row, penalty in enumerate(penalties):
            block = slice(row * self.n_effects, (row + 1) * self.n_effects)
            shared_hessian[block, block] += penalty
            shared_gradient[row] += penalty @ self.shared_effects[row]
        shared_posterior = np.asarray(np.linalg.inv(shared_hessian), dtype=np.float64)
        shared_step = -(shared_posterior @ shared_gradient.ravel()).reshape(
            self.shared_effects.shape
        )
        # The gradient for each person after the step of the shared effects.
        next_gradient = person_gradient + np.einsum("aef,af->ae", hessian, membership @ shared_step)
        person_step = -np.einsum("aef,af->ae", person_posterior, next_gradient)
        length = self._step_length(shared_step, person_step, precision, penalties)
        self.shared_effects = self.shared_effects + length * shared_step
        self.person_effects = self.person_effects + length * person_step
        # Uncertainty of calibration and attributes adds to that of a person's effects.
        shared_covariance = self._shared_covariance_by_person(shared_posterior)
        added = elimination.swapaxes(1, 2) @ shared_covariance @ elimination
        return _Posterior(
            person_covariances=person_posterior + added,
            shared_covariance=shared_posterior,
            step=float(np.abs(person_step).max()),
        )

    def _sum_over_persons(self, hessian: Floats) -> Floats:
        """[S, E, S, E] the sum of persons' blocks [A, E, E], for each pair of shared effects."""
        n_shared = self.membership.shape[1]
        system = np.empty((n_shared, self.n_effects, n_shared, self.n_effects))
        for e in range(self.n_effects):
            for f in range(self.n_effects):
                weighted = self.membership * hessian[:, e, f, None]
                system[:, e, :, f] = self.membership.T @ weighted
        return system

    def _precision(self) -> Floats:
        """The inverse of Σ."""
        return np.asarray(np.linalg.inv(self.covariance), dtype=np.float64)

    def _shared_penalties(self) -> list[Floats]:
        """The penalty matrices of the shared effects: of the calibration, then of each level."""
        precision = self._precision()
        penalties = [_CALIBRATION_PENALTY * np.eye(self.n_effects)]
        for g, count in enumerate(self.n_levels):
            penalties += [precision / self.shares[g]] * count
        return penalties

    def _step_length(
        self,
        shared_step: Floats,
        person_step: Floats,
        precision: Floats,
        penalties: Sequence[Floats],
    ) -> float:
        """The largest of 1, 1/2, 1/4, … with which the step lowers the penalised loss."""

        def penalised_loss(length: float) -> float:
            shared = self.shared_effects + length * shared_step
            persons = self.person_effects + length * person_step
            loss = self.labels.value(self.membership @ shared + persons)
            loss += 0.5 * float(np.einsum("ae,ef,af->", persons, precision, persons))
            for row, penalty in enumerate(penalties):
                loss += 0.5 * float(shared[row] @ penalty @ shared[row])
            return loss

        loss_before = penalised_loss(0.0)
        length = 1.0
        # "not <=" also shortens a step whose loss is NaN.
        while length > _SHORTEST_STEP and not penalised_loss(length) <= loss_before:
            length /= 2
        return length

    def _shared_covariance_by_person(self, shared_posterior: Floats) -> Floats:
        """Covariance [A, E, E] of the sum of the shared effects that each person has."""
        n_shared = self.membership.shape[1]
        blocks = shared_posterior.reshape(n_shared, self.n_effects, n_shared, self.n_effects)
        blocks = blocks.transpose(0, 2, 1, 3)
        patterns, pattern_of_person = np.unique(self.membership, axis=0, return_inverse=True)
        by_pattern = np.empty((len(patterns), self.n_effects, self.n_effects))
        for number, pattern in enumerate(patterns):
            columns = np.flatnonzero(pattern)
            by_pattern[number] = blocks[np.ix_(columns, columns)].sum(axis=(0, 1))
        return by_pattern[pattern_of_person.ravel()]

    def update_variances(self, posterior: _Posterior) -> float:
        """Update Σ and the shares of attributes; return the relative change of Σ."""
        covariance = _person_covariance(
            self.person_effects[self.has_labels], posterior.person_covariances[self.has_labels]
        )
        change = np.abs(covariance - self.covariance).max() / np.abs(covariance).max()
        self.covariance = covariance
        precision = self._precision()
        for g, first_column in enumerate(self.first_columns):
            levels = slice(first_column, first_column + self.n_levels[g])
            self.shares[g] = _attribute_share(
                self.shared_effects[levels],
                posterior.shared_covariance,
                levels,
                precision,
                self.shares[g],
            )
        return float(change)


def _membership(level_codes: Ints, n_levels: Sequence[int]) -> tuple[Floats, list[int]]:
    """Indicators of the shared effects of each person [A, S], and each attribute's first column."""
    n_people = len(level_codes)
    membership = np.zeros((n_people, 1 + sum(n_levels)))
    membership[:, 0] = 1.0
    first_columns = []
    column = 1
    for g, count in enumerate(n_levels):
        first_columns.append(column)
        has_level = np.flatnonzero(level_codes[:, g] >= 0)
        membership[has_level, column + level_codes[has_level, g]] = 1.0
        column += count
    return membership, first_columns


def _person_covariance(persons: Floats, person_covariances: Floats) -> Floats:
    """Σ from persons' effects [n, E] and their posterior covariances [n, E, E] (an EM step).

    It is shrunk towards a diagonal matrix with equal variances of the offsets, which counts as much
    as E people: five annotators do not determine a covariance of six effects.
    """
    n_people, n_effects = persons.shape
    spread = persons.T @ persons + person_covariances.sum(axis=0)
    variances = np.full(n_effects, np.trace(spread[:-1, :-1]) / (n_effects - 1))
    variances[-1] = spread[-1, -1]
    return np.asarray((spread + np.diag(variances / n_people) * n_effects) / (n_people + n_effects))


def _attribute_share(
    effects: Floats, shared_covariance: Floats, levels: slice, precision: Floats, share: float
) -> float:
    """τ of an attribute by MacKay's update; it falls to 0 if the attribute explains nothing.

    It is the squared norm of the effects divided by how many of them the data determine.
    """
    n_effects = effects.shape[1]
    squared_norm = float(np.einsum("le,ef,lf->", effects, precision, effects))
    uncertainty = 0.0
    for row in range(levels.start, levels.stop):
        block = slice(row * n_effects, (row + 1) * n_effects)
        uncertainty += float(np.trace(precision @ shared_covariance[block, block]))
    n_determined = max(effects.size - uncertainty / share, 1e-6)
    return float(np.clip(squared_norm / n_determined, 1e-6, 10.0))
