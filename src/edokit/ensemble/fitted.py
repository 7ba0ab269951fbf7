"""What a fit found: one frozen record, which is what ``ensemble.json`` stores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from enum import Enum
from typing import Any, Literal, get_args

import numpy as np

from edokit._errors import InputError, counted, money
from edokit._io.schema import (
    Check,
    WrongValueError,
    as_type,
    choice,
    distinct,
    flag,
    instance,
    listed,
    mapping,
    needs,
    number,
    optional,
    plain,
    record,
    scalar,
    text,
)
from edokit._io.tables import as_column
from edokit._lazy import pa
from edokit._names import as_name, factorized
from edokit._types import Floats, Ints, Strings
from edokit.ensemble.answers import ANSWERS_FOR, ORDERED_STEP, STEPS, Answer
from edokit.ensemble.inputs import Labels
from edokit.ensemble.options import Options, from_flat
from edokit.fitdata import FitData
from edokit.metrics import entropy_items
from edokit.metrics._arrays import medians
from edokit.objective import (
    CE,
    Objective,
    Pool,
    Problem,
    Regularize,
    Settings,
    average_groups,
    group_names,
    joint_loss,
    pool,
    sharpen,
)
from edokit.objective.loss import SMOOTHING
from edokit.objective.pools import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE
from edokit.objective.settings import LARGEST, TERMS
from edokit.panels import Panel, PanelAnswer, PanelComparison
from edokit.predictions.core import COST, INFO, MemberInfo
from edokit.scales import NOMINAL, Declared, Scale
from edokit.solvers import Certificate, Exact, Gumbel, Solution, Trajectory
from edokit.solvers.solution import SOLVERS


@dataclass(frozen=True, eq=False)
class Constant:
    """The same probabilities and the same label for every item: what an ensemble has to beat."""

    shares: Floats
    """Mean soft label [C]; of sets the mean share of each label [L]."""
    label: int | tuple[int, ...]
    """Majority class of the hard labels, as a position in the classes; of sets whether each label
    is in most of them [L]."""
    source: str = "fit"
    """Whose shares these are: ``train`` (training items), ``fit`` (those that the ensemble was
    fitted on) or ``items`` (those that are evaluated)."""

    @classmethod
    def of(cls, totals: Floats, hard_counts: Floats | Ints, source: str = "fit") -> Constant:
        """From the summed soft labels and the number of hard labels, both [C].

        Of sets both [L, 2]: without and with each label.
        """
        shares, most = totals / totals.sum(axis=-1, keepdims=True), np.argmax(hard_counts, axis=-1)
        if shares.ndim == 2:
            return cls(shares[:, 1], tuple(most.tolist()), source)
        return cls(shares, int(most), source)

    def ordered(self, own: Sequence[str], classes: Sequence[str]) -> Constant:
        """The same with other classes, which include its own."""
        at = [tuple(classes).index(name) for name in own]
        shares = np.zeros(len(classes))
        shares[at] = self.shares
        if isinstance(self.label, int):
            return Constant(shares, at[self.label], self.source)
        chosen = np.zeros(len(classes), dtype=int)
        chosen[at] = self.label
        return Constant(shares, tuple(chosen.tolist()), self.source)


@dataclass(frozen=True)
class LabelFit:
    """What was learned for one label of a set, where each has weights of its own."""

    lambda_reg: float
    """Weight of the squared norm."""
    objective: dict[str, float]
    """Terms of the loss on the fit data."""
    certificate: Certificate | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted:
    """A fitted ensemble; fields that are not explained here are attributes of `EDOEnsemble`."""

    members: tuple[str, ...]
    groups: tuple[str, ...] | None = None
    member_info: MemberInfo = field(default_factory=dict)
    """What is known about members, by name: ``model``, ``cost``, …; see `Predictions`."""
    classes: tuple[str, ...]
    """Names of the classes [C]."""
    labels: Labels | None = None
    """Class labels in the type that the user gave [C]; None where they are the names."""
    scale: Scale = NOMINAL
    weights: Floats
    label_weights: Floats | None = None
    label_fits: dict[str, LabelFit] | None = None
    """What was learned for each label, where each has weights of its own."""
    group_weights: Floats | None = None
    size: int
    temperature: float = 1.0
    settings: dict[str, Any]
    parameters: dict[str, Any]
    """Parameters of the estimator, as the user gave them."""
    objective: dict[str, float]
    certificate: Certificate | None = None
    trajectory: Trajectory | None = None
    metrics: dict[str, float | None]
    member_ce: Floats
    items: int
    pairs: int | None = None
    """How many pairs of an item and an annotator it learned from, where these were its rows."""
    data: dict[str, Any]
    explanation: tuple[Reason, ...]
    """Why each member has its weight, heaviest first."""
    constant: Constant | None = None
    """The constant answer; None in ensembles that earlier versions saved."""
    answers: dict[str, Answer] | None = None
    """Steps that make answers for a metric; None in ensembles that earlier versions saved."""

    @property
    def learned_from(self) -> str:
        """How many items it was fitted on, in words, and how many pairs of them and annotators."""
        items = counted(self.items, "item")
        return items if self.pairs is None else f"{counted(self.pairs, 'pair')} of {items}"

    @property
    def pool(self) -> str:
        """Kind of pool: ``linear`` or ``log``."""
        return str(self.settings["pool"])

    @property
    def unit_weights(self) -> tuple[tuple[str, ...], Floats]:
        """Names and weights of what weights were learned for: members, or groups of them."""
        if self.groups is None or self.group_weights is None:
            return self.members, self.weights
        return tuple(group_names(self.groups)), self.group_weights

    def cost(self, members: Sequence[str] | None = None) -> float | None:
        """What one item costs with these members (None: those with weight), where it is known."""
        if members is None:
            members = [name for name, w in zip(self.members, self.weights, strict=True) if w > ZERO]
        costs = [self.member_info.get(name, {}).get(COST) for name in members]
        known = [float(cost) for cost in costs if cost is not None]
        return math.fsum(known) if len(known) == len(costs) else None

    @property
    def cost_of_items(self) -> str | None:
        """What one item costs, in a sentence; None where costs are unknown."""
        heavy = int((self.weights > ZERO).sum())
        return costs_in_words(self.cost(), self.cost(self.members), heavy, "member")

    @property
    def regularization(self) -> str | None:
        """How ``lambda_reg`` was chosen, in a sentence; None where nothing was chosen."""
        return describe_lambda_reg(self.settings, self.items, self.pairs)

    @property
    def by_label(self) -> list[str]:
        """The weights of each label in a line, where each has its own."""
        if self.label_weights is None or self.label_fits is None:
            return []
        lines = []
        for name, weights in zip(self.classes, self.label_weights, strict=True):
            heaviest = [k for k in np.argsort(-weights, kind="stable")[:5] if weights[k] > ZERO]
            shown = ", ".join(f"{self.members[k]} {weights[k]:.3f}" for k in heaviest)
            fit = self.label_fits[name]
            lines.append(f"{name}: {shown} (CE {fit.objective['ce']:.4f}, L2 {fit.lambda_reg:g})")
        return lines

    @property
    def nothing_learned(self) -> str | None:
        """In words that, and why, gumbel's weights and sizes are as they were at the start."""
        if self.trajectory is None or not self.trajectory.unlearned:
            return None
        start = (
            "Nothing was learned: the weights are equal as at the start, and every size is as"
            f" likely as the chosen {self.size}"
        )
        epochs, rate = len(self.trajectory), float(self.settings["learning_rate"])
        rows, batch = self.pairs or self.items, max(int(self.settings["batch_size"]), 1)
        steps = epochs * math.ceil(rows / batch)
        # Adam moves a logit by about its learning rate per step.
        if steps * rate < 1.0:
            return (
                f"{start}, since the steps are few and small ({epochs} epochs at learning rate"
                f" {rate:.1g}). Use `edo search` with its default space, `edo fit` with its"
                " default preset, or more epochs and a higher learning rate."
            )
        return (
            f"{start}, so this objective prefers none of these members. Use the uniform mean, or"
            " members that differ more."
        )

    def summary(self) -> dict[str, Any]:
        """Weights by member, size, terms of the loss, certificate and metrics, ready for JSON."""
        certificate = self.certificate
        return {
            "weights": dict(zip(self.members, self.weights.tolist(), strict=True)),
            "size": self.size,
            "items": self.items,
            **({} if self.pairs is None else {"pairs": self.pairs}),
            "objective": dict(self.objective),
            "certificate": None if certificate is None else asdict(certificate),
            "temperature": self.temperature,
            "lambda_reg": self.settings["lambda_reg"],
            "lambda_reg_choice": self.settings.get("lambda_reg_choice"),
            "metrics": dict(self.metrics),
            "nothing_learned": self.nothing_learned,
            **({} if self.cost() is None else {"cost": self.cost()}),
            **({} if self.scale == NOMINAL else {"scale": self.scale.to_text(self.classes)}),
            **self._label_summary(),
        }

    def _label_summary(self) -> dict[str, Any]:
        if self.label_weights is None:
            return {}
        pairs = zip(self.classes, self.label_weights.tolist(), strict=True)
        return {"label_weights": {c: dict(zip(self.members, own, strict=True)) for c, own in pairs}}

    def pool_members(self, P: Floats) -> tuple[Floats, Floats]:
        """The pool [N, C] of P [N, k, C], the members that carry weight, and their spread [N]."""
        kept = self.weights > 0
        columns, spreads = [], []
        # Each label with its own weights, or all classes with the same.
        own = (
            [(P, self.weights)]
            if self.label_weights is None
            else [(P[:, :, [c]], weights) for c, weights in enumerate(self.label_weights)]
        )
        for part, weights in own:
            rows = self.scale.rows(part)
            pooled = sharpen(self._pool(rows, weights[kept]), self.temperature)
            columns.append(self.scale.from_rows(pooled, part.shape[2]))
            spreads.append(spread_items(self.scale.coordinates(part), weights[kept]))
        return np.concatenate(columns, axis=1), np.mean(spreads, axis=0)

    def _pool(self, rows: Floats, weights: Floats) -> Floats:
        """The pool [n, C] of rows [n, k, C] with these weights [k]."""
        if self.groups is not None and self.pool == "log":
            # A log pool of groups is not a log pool of members: average each group first.
            groups = [self.groups[k] for k in np.flatnonzero(self.weights > 0)]
            rows = average_groups(rows, groups)
            shares = zip(groups, weights.tolist(), strict=True)
            totals = dict.fromkeys(groups, 0.0)
            for name, share in shares:
                totals[name] += share
            weights = np.array(list(totals.values()))
        return np.asarray(pool(rows, weights, self.pool))

    def to_dict(self) -> dict[str, Any]:
        """Everything as numbers, text, lists and dictionaries, ready for JSON."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("labels", "label_weights", "label_fits", "answers"):
            if content[name] is None:
                del content[name]
        if not self.member_info:
            del content["member_info"]
        if self.pairs is None:
            del content["pairs"]
        del content["scale"]
        if self.scale != NOMINAL:
            content["scale"] = self.scale.to_text(self.classes)
        content["pool"] = self.pool
        content["parameters"] = stored_parameters(self.parameters)
        content["explanation"] = [str(reason) for reason in self.explanation]
        content["reasons"] = [reason.to_dict() for reason in self.explanation]
        plain: dict[str, Any] = _plain(content)
        return plain

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Fitted:
        """The record that ``to_dict`` described.

        Raises
        ------
        WrongValueError
            If parts are missing or do not fit together; anyone may have written the file.
        """
        held = _SCHEMA(content, "")
        try:
            scale = Declared(held.get("scale") or NOMINAL).on(held["classes"])
        except InputError as error:
            raise WrongValueError(f"scale is {held['scale']!r}: {error.message}") from error
        stored = {one.name: held.get(one.name) for one in fields(cls)}
        stored = {name: value for name, value in stored.items() if value is not None}
        stored |= {"scale": scale, "settings": {**held["settings"], "pool": held["pool"]}}
        fitted = cls(**{"data": {}, **stored, "explanation": held.get("reasons") or ()})
        fitted._check()
        try:
            # Parts that these sentences need may be missing.
            _ = fitted.regularization, fitted.nothing_learned
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            raise WrongValueError(
                f"settings and trajectory do not fit together ({type(error).__name__})"
            ) from error
        if held.get("reasons") is not None:
            return fitted
        # Older files hold sentences alone, heaviest unit first.
        names, weights = fitted.unit_weights
        order = np.argsort(-weights, kind="stable")
        reasons = [
            Reason.from_sentence(names[k], float(weights[k]), sentence)
            for k, sentence in zip(order, held.get("explanation") or (), strict=False)
        ]
        return replace(fitted, explanation=tuple(reasons))

    def _check(self) -> None:
        """Refuse parts that do not fit together."""
        members, groups, held = len(self.members), self.groups, self.group_weights
        needs(groups is None or len(groups) == members, "groups", "must be one per member")
        needs(set(self.member_info) <= set(self.members), "member_info", "must be of members")
        units = members if groups is None else len(set(groups))
        simplex = self.weights.shape == (members,) and on_simplex(self.weights)
        needs(simplex, "weights", "must be one per member, not negative and sum to 1")
        fits = held is None or (held.shape == (units,) and on_simplex(held))
        needs(fits, "group_weights", "must be one per group, not negative and sum to 1")
        heavy = int((self.unit_weights[1] > 0).sum())
        rule = f"is {self.size}, but {heavy} of {units} carry weight"
        needs(heavy <= self.size <= units, "size", rule)
        known = self.labels is None or tuple(map(as_name, self.labels)) == self.classes
        needs(known, "labels", "must be the classes, one for each")
        ces = self.member_ce.ndim == 1 and len(self.member_ce) in (members, units)
        needs(ces, "member_ce", "must be one per member")
        sets, classes = self.scale.is_multi_label, len(self.classes)
        needs(sets or classes > 1, "classes", "must be at least two")
        if (each := self.label_weights) is not None:
            right = sets and each.shape == (classes, members) and all(map(on_simplex, each))
            needs(right, "label_weights", "must be weights of the members for each label of sets")
            near = np.allclose(each.mean(axis=0), self.weights, rtol=0, atol=1e-6)
            needs(near, "weights", "must be the mean of label_weights")
        if (fits_of := self.label_fits) is not None:
            needs(tuple(fits_of) == self.classes, "label_fits", "must be one for each label")
        if (same := self.constant) is not None:
            shares, label = same.shares, same.label
            if sets:
                right = isinstance(label, tuple) and len(label) == classes and set(label) <= {0, 1}
            else:
                right = isinstance(label, int) and 0 <= label < classes and on_simplex(shares)
            right = right and shares.shape == (classes,)
            needs(right, "constant", "must be shares of the classes, and one of them")
        known = set(self.answers or ()) <= set(ANSWERS_FOR)
        ordered = self.scale.positions is not None
        steps = {one.step for one in (self.answers or {}).values()}
        known = known and (ordered or not steps & {ORDERED_STEP})
        needs(known, "answers", "must be steps for metrics of the scale")
        columns = [] if self.trajectory is None else list(vars(self.trajectory).values())
        needs(len(set(map(len, columns))) < 2, "trajectory", "must be equally long everywhere")


_MEANINGS = {term.flat_name: term.meaning for term in TERMS.values()}
_LAMBDAS = tuple(_MEANINGS)
_RATES = ("learning_rate", "temperature", "temperature_decay", "min_temperature")
_COUNTS = ("epochs", "batch_size", "min_members", "max_members")
_WORDS = (
    *("preset", "solver", "diversity", "ce", "regularize", "pool", "order", "ties"),
    *("scale", "label_weights"),
)
_CHOICES = {
    **dict.fromkeys((*_LAMBDAS, *_RATES), optional(number(0, LARGEST))),
    **dict.fromkeys(_COUNTS, optional(number(1, whole=True))),
    **dict.fromkeys((*_WORDS, "recalibrate"), optional(text)),
    **dict.fromkeys(("class_weights", "groups"), optional(flag)),
    "random_state": optional(number(0, whole=True)),
}


def _choices(value: Any, at: str) -> Any:
    """Settings, or parameters of the estimator as the user gave them."""
    held = mapping(plain)(value, at)
    return {name: _CHOICES.get(name, plain)(held[name], f"{at}.{name}") for name in held}


def _parameters(value: Any, at: str) -> dict[str, Any]:
    """Parameters of the estimator; earlier files name those of objects flat."""
    stored: dict[str, Any] = mapping(plain)(value, at)
    try:
        if "objective" not in stored:
            return dict(from_flat(_choices(stored, at)))
        if stored["objective"] is not None:
            stored["objective"] = Objective(**stored["objective"])
        if isinstance(stored["solver"], dict):
            options = dict(stored["solver"])
            stored["solver"] = SOLVERS[options.pop("name")](**options)
        Options.of(stored)
    except (InputError, TypeError, LookupError) as error:
        raise WrongValueError(f"{at}: {error}") from error
    return stored


def _reason(value: Any, at: str) -> Reason:
    """A reason, with the numbers that its kind needs."""
    numbers = {"ce": number(), "price": number(), "term_change": number()}
    whole = {"rank": number(1, whole=True), "limit": number(0, whole=True)}
    words = {"term": choice(*_MEANINGS), "text": text}
    needed = {"member": text, "weight": number(0, 1), "kind": choice(*get_args(Kind))}
    held = record(needed, {**numbers, **whole, **words}, only=True)(value, at)
    if held.get("text") is None:
        price, limit = ("price", "term", "term_change"), ("limit",)
        kinds = {"excluded_by_loss": price, "excluded_by_size": limit, "beyond_max_members": limit}
        for name in ("ce", "rank", *kinds.get(held["kind"], ())):
            needs(held.get(name) is not None, f"{at}.{name}", "is missing")
    return Reason(**held)


def _label(value: Any, at: str) -> int | tuple[int, ...]:
    """A class, or whether each label is chosen."""
    if isinstance(value, list):
        return tuple(listed(_COUNT)(value, at))
    return int(_COUNT(value, at))


def _floats(values: Any) -> Floats:
    return np.array(values, dtype=np.float64)


def _table(inner: Check) -> Check:
    """An array of rows of one length."""

    def check(value: Any, at: str) -> Floats:
        rows = listed(listed(inner))(value, at)
        needs(len(set(map(len, rows))) < 2, at, "must have rows of one length")
        return _floats(rows)

    return check


_COUNT = number(0, whole=True)
_SHARES = as_type(_floats, listed(number(0, 1)))
_NUMBERS = as_type(_floats, listed(optional(number())))
_TABLES = dict.fromkeys(("sizes", "weights", "theta", "pi"), _table(optional(number())))
_EPOCHS = {**dict.fromkeys(Trajectory.__dataclass_fields__, _NUMBERS), **_TABLES}
_DATA = record({"annotators": _COUNT, "annotations": _COUNT, "hard_labels": mapping(_COUNT)})
_CERTIFICATE = instance(
    Certificate, {"gap": number(), "convex": flag, "global_optimum": flag, "reason": text}
)
_LABEL_FIT = instance(
    LabelFit,
    {"lambda_reg": number(0, LARGEST), "objective": mapping(optional(number()))},
    {"certificate": _CERTIFICATE},
)
_TEMPERATURE = number(0.99 * LOWEST_TEMPERATURE, 1.01 * HIGHEST_TEMPERATURE)
_ANSWER = instance(
    Answer,
    {
        "step": choice(*STEPS),
        "temperature": _TEMPERATURE,
        "before": number(),
        "after": number(),
        "items": number(1, whole=True),
    },
)
_SCHEMA = record(
    {
        "members": as_type(tuple, distinct(listed(text, least=1))),
        "classes": as_type(tuple, distinct(listed(text, least=1))),
        "weights": _SHARES,
        "size": number(1, whole=True),
        "settings": _choices,
        "parameters": _parameters,
        "objective": mapping(optional(number())),
        "metrics": mapping(optional(number())),
        "member_ce": _NUMBERS,
        "items": number(1, whole=True),
        "temperature": _TEMPERATURE,
        "pool": choice(*(kind.value for kind in Pool)),
    },
    {
        "groups": as_type(tuple, listed(text)),
        "pairs": number(1, whole=True),
        "member_info": INFO,
        "group_weights": _SHARES,
        "labels": as_type(tuple, listed(scalar)),
        "data": lambda value, at: _DATA(value, at) if value else None,
        "certificate": _CERTIFICATE,
        "trajectory": instance(Trajectory, _EPOCHS),
        "reasons": as_type(tuple, listed(_reason)),
        "explanation": listed(text),
        "constant": instance(Constant, {"shares": _SHARES, "label": _label, "source": text}),
        "scale": text,
        "label_weights": _table(number(0, 1)),
        "label_fits": mapping(_LABEL_FIT),
        "answers": mapping(_ANSWER),
    },
)


CLEARLY = 1.96
"""Standard errors by which a difference is called clear."""
_FOLDS = {2: "two", 3: "three", 5: "five", 10: "ten"}


def describe_lambda_reg(
    settings: Mapping[str, Any], items: int, pairs: int | None = None
) -> str | None:
    """How the penalty of these settings was chosen, of a fit on so many items, or pairs of them."""
    choice = settings.get("lambda_reg_choice")
    if choice is None:
        return None
    penalty = f"L2 {settings['lambda_reg']:g}"
    seen, folds = int(choice["items"]), choice["folds"]
    if folds is None:
        return f"{penalty}: too few items to choose it by cross-validation."
    rows, noun = (items, "items") if pairs is None else (pairs, "pairs")
    among = f"{seen:,} {noun}" if seen == rows else f"{seen:,} of the {rows:,} {noun}"
    above, error = float(choice["uniform_above"]), float(choice["uniform_above_error"])
    standing, within = "not clearly worse", CLEARLY * error
    if clear := abs(above) > within + 1e-12:
        standing = "clearly worse" if above > 0 else "clearly better"
    # As many digits as show on which side of the interval zero is.
    digits = (d for d in range(4, 12) if (round(abs(above), d) > round(within, d)) == clear)
    shown = next(digits, 12)
    gap = f"{round(above, shown) + 0.0:+.{shown}f}".replace("-", "−")
    return (
        f"{penalty}, chosen by {_FOLDS.get(folds, folds)}-fold cross-validation on {among};"
        f" uniform weights were {standing} (held-out ΔCE {gap} ± {within:.{shown}f})."
    )


def costs_in_words(own: float | None, whole: float | None, heavy: int, unit: str) -> str | None:
    """What one item costs: with what carries weight, and with all; None where that is unknown."""
    if own is None or whole is None:
        return None
    carry = "carries" if heavy == 1 else "carry"
    return (
        f"One item costs {money(own)} with the {counted(heavy, unit)} that {carry} weight, and"
        f" {money(whole)} if all are asked."
    )


def stored_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of the estimator, a solver's options with its name."""
    solver = parameters["solver"]
    if isinstance(solver, Exact | Gumbel):
        return {**parameters, "solver": {"name": solver.name, **asdict(solver)}}
    return dict(parameters)


def on_simplex(weights: Floats) -> bool:
    """Whether weights are not negative and sum to 1."""
    return bool((weights >= 0).all() and abs(weights.sum() - 1.0) < 1e-6)


def _plain(value: Any) -> Any:
    """Numbers, text, lists and dictionaries only; what is not finite becomes None."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, Enum):
        return value.value
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True, eq=False)
class Pooled:
    """One distribution per item, with its entropy and the spread of the members around it.

    Of sets, a probability per label.
    """

    items: Strings
    """Item ids [N]."""
    classes: tuple[str, ...]
    """Class names [C]."""
    probabilities: Floats
    """The pool [N, C]."""
    spread: Floats
    """Weighted mean distance of the members to their linear pool [N], 0 if they agree: L1, of sets
    its mean over labels, on an ordinal scale Wasserstein-1 in its units."""
    scale: Scale = NOMINAL
    """The answer scale."""
    answer_for: str | None = None
    """Metric that ``answers`` are for, where they were asked for."""
    answers: Floats | None = None
    """Answers for this metric [N, C], made from the pool."""
    annotators: Strings | None = None
    """Whose label each row predicts, where rows are pairs of an item and an annotator; empty for
    the anonymous answer of an item."""
    votes: tuple[Floats, Floats] | None = None
    """Ends of the interval of each share of a panel's votes [N, C], where a panel answers."""

    @classmethod
    def concatenate(cls, parts: Sequence[Pooled]) -> Pooled:
        """Further items after the first, as those of several shards."""
        made = [part.answers for part in parts if part.answers is not None]
        whose = [part.annotators for part in parts if part.annotators is not None]
        low, high = ([part.votes[k] for part in parts if part.votes is not None] for k in (0, 1))
        return replace(
            parts[0],
            items=np.concatenate([part.items for part in parts]),
            probabilities=np.concatenate([part.probabilities for part in parts]),
            spread=np.concatenate([part.spread for part in parts]),
            answers=np.concatenate(made) if made else None,
            annotators=np.concatenate(whose) if whose else None,
            votes=(np.concatenate(low), np.concatenate(high)) if low else None,
        )

    def mean_over_annotators(self) -> Pooled:
        """Return one row per item: the mean over its annotators, else its anonymous answer."""
        whose = self._annotators_of_rows()
        codes, items = factorized(self.items)
        # The anonymous answer counts where there is no other.
        named = np.bincount(codes, whose != "")[codes] > 0
        share = np.where(named, whose != "", 1.0)
        share /= np.bincount(codes, share)[codes]

        def mean(values: Floats) -> Floats:
            total = np.zeros((len(items), *values.shape[1:]))
            np.add.at(total, codes, values * share.reshape(-1, *[1] * (values.ndim - 1)))
            return total

        return replace(
            self,
            items=np.asarray(items),
            probabilities=mean(self.probabilities),
            spread=mean(self.spread),
            answers=None if self.answers is None else mean(self.answers),
            annotators=None,
        )

    def panel(self, panel: Panel, *, level: float = 0.9) -> Pooled:
        """Return what a panel would answer, one row per item, from rows for its annotators.

        Parameters
        ----------
        panel : Panel
        level : float, default=0.9
            Level of the intervals of the panel's votes.

        Returns
        -------
        Pooled
            With ``votes``, the ends of these intervals (one person has one vote, and no share of
            votes); the spread is the panel's mean.
        """
        rows = self.items, self._annotators_of_rows()
        shown = self.probabilities if self.answers is None else self.answers
        answer, pooled = (panel.answer(*rows, p, level=level) for p in (shown, self.probabilities))
        spread = panel.answer(*rows, self.spread[:, None]).probabilities[:, 0]
        return replace(
            self,
            items=answer.items,
            probabilities=pooled.probabilities,
            spread=spread,
            answers=None if self.answers is None else answer.probabilities,
            annotators=None,
            votes=(answer.low, answer.high) if panel.size or len(panel.annotators) > 1 else None,
        )

    def compare(self, one: Panel, other: Panel, *, level: float = 0.9) -> PanelComparison:
        """Return what two panels would answer side by side, from rows for their annotators.

        Parameters
        ----------
        one, other : Panel
        level : float, default=0.9
            Level of the intervals of the panels' votes.

        Returns
        -------
        PanelComparison
            With the anonymous answers, where the rows hold them.
        """
        whose = self._annotators_of_rows()
        shown = self.probabilities if self.answers is None else self.answers

        def answer(panel: Panel) -> PanelAnswer:
            return panel.answer(self.items, whose, shown, level=level)

        nobody = answer(Panel(("",), name="anonymous")) if (whose == "").any() else None
        answers = answer(one), answer(other)
        return PanelComparison(*answers, self.classes, self.scale, nobody, level)

    def _annotators_of_rows(self) -> Strings:
        if self.annotators is None:
            raise InputError(
                "a panel needs answers for its annotators, but these are of items",
                "score the items for annotators: `edo score --annotators`",
                parameters=("panel",),
            )
        return self.annotators

    @property
    def entropy(self) -> Floats:
        """Of each distribution of the pool, in nats [N]; of sets, the mean over labels."""
        rows = entropy_items(self.scale.rows(self.probabilities))
        return np.asarray(self.scale.per_item(rows, len(self.items)))

    @property
    def labels(self) -> Strings:
        """The likeliest class of each item [N]; the first of equals. Of sets, the labels above one
        half as a JSON list."""
        return self.scale.names(self.scale.hard(self.probabilities), self.classes)

    @property
    def medians(self) -> Strings | None:
        """The median of each item [N]: the answer with the least expected distance on an ordinal
        scale; None of other scales."""
        if self.scale.positions is None:
            return None
        names = np.array(self.classes, dtype=object)
        return np.asarray(names[medians(self.probabilities)])

    def to_table(self) -> pa.Table:
        """One row per item: ``item, p_<class> …, entropy, spread, label``.

        On an ordinal scale also ``median``; the scale is in ``answer_scale``, unless it is nominal.
        Where answers are for a metric, ``p_<class>`` are these, and ``answer_for`` names it; all
        other columns describe the pool. Pairs also have ``annotator``; of a panel, ``low_<class>``
        and ``high_<class>`` are the ends of the interval of its votes.
        """
        from edokit.annotations.long_table import SCALE

        columns: dict[str, Any] = {"item": self.items}
        if self.annotators is not None:
            columns["annotator"] = self.annotators
        shown = self.probabilities if self.answers is None else self.answers
        for c, name in enumerate(self.classes):
            columns[f"p_{name}"] = shown[:, c]
        for end, shares in zip(("low", "high"), self.votes or (), strict=False):
            columns |= {f"{end}_{name}": shares[:, c] for c, name in enumerate(self.classes)}
        columns |= {"entropy": self.entropy, "spread": self.spread, "label": self.labels}
        if (middle := self.medians) is not None:
            columns["median"] = middle
        noted = {"answer_for": self.answer_for}
        if self.scale != NOMINAL:
            noted[SCALE] = self.scale.to_text(self.classes)
        for name, value in noted.items():
            if value is not None:
                columns[name] = [value] * len(self.items)
        return pa.table({name: as_column(values) for name, values in columns.items()})


def spread_items(P: Floats, weights: Floats) -> Floats:
    """Σ_k v_k ‖p_k − φ‖₁ of each item [N], φ the linear pool of P [N, K, C]."""
    centre = np.einsum("nkc,k->nc", P, weights)
    spread = np.zeros(len(P))
    for k, weight in enumerate(weights):
        spread += weight * np.abs(P[:, k] - centre).sum(axis=1)
    return spread


Kind = Literal[
    "kept",
    "dominant",
    "not_learned",
    "excluded_by_loss",
    "excluded_by_size",
    "beyond_max_members",
    "excluded",
]
ZERO = 1e-6
"""Weights up to this count as none, as in the exact solver."""
DOMINANT = 0.6
"""Share of the weight above which a member has most of it."""
# Ensembles of the first build stored sentences alone.
_OLD_SENTENCES: Mapping[str, Kind] = {
    "beyond max_members": "beyond_max_members",
    "the loss would grow": "excluded_by_loss",
    "leaves it out": "excluded_by_size",
    "most of the weight": "dominant",
}


@dataclass(frozen=True)
class Reason:
    """Why a member (or a group of members) has its weight; ``str`` makes a sentence of it."""

    member: str
    """Name of the member, or of the group where weights are learned between groups."""
    weight: float
    kind: Kind
    """``dominant`` (above 0.6), ``not_learned`` (gumbel's weights and sizes are as at the start) or
    ``kept`` for members with weight; for the others
    ``excluded_by_loss`` (weight would raise the loss), ``excluded_by_size`` (the size that gumbel
    chose), ``beyond_max_members`` (ranked too low), ``excluded`` (not recorded)."""
    ce: float | None = None
    """Its own cross-entropy on the fit data."""
    rank: int | None = None
    """Rank by this cross-entropy; 1 is the best."""
    price: float | None = None
    """How much the loss would grow per unit of weight, where that excludes it."""
    term: str | None = None
    """Weight of the term that grows most: ``lambda_f1``, ``lambda_ce``, …"""
    term_change: float | None = None
    """How much that term grows per unit of weight."""
    limit: int | None = None
    """``max_members``, or the size that was chosen, where that excludes it."""
    text: str | None = None
    """The reason in words, of ensembles that stored nothing else."""

    @property
    def has_weight(self) -> bool:
        """Whether the member counts in the pool."""
        return self.kind in ("kept", "dominant", "not_learned")

    @property
    def detail(self) -> str:
        """The reason without name and weight."""
        if self.text is not None:
            return self.text
        alone = f"own cross-entropy {self.ce:.4f}, rank {self.rank}"
        if self.kind == "dominant":
            best = " as the best alone" if self.rank == 1 else ""
            return f"most of the weight{best}; {alone}"
        if self.kind == "not_learned":
            return f"{alone}; nothing was learned, weights are as at the start"
        if self.kind == "excluded_by_loss":
            return (
                f"{alone}: with weight the loss would grow by {self.price:.4f} per unit, above all"
                f" through {_MEANINGS[str(self.term)]} ({self.term_change:+.4f})"
            )
        if self.kind == "excluded_by_size":
            return f"{alone}: the chosen size {self.limit} leaves it out"
        if self.kind == "beyond_max_members":
            return f"{alone}, beyond max_members={self.limit}"
        return alone

    def __str__(self) -> str:
        # A small weight must not read as none.
        shown = f"{self.weight:.3f}" if self.weight >= 5e-4 else f"{self.weight:.1g}"
        weight = shown if self.has_weight else "0"
        return f"{self.member}: weight {weight} ({self.detail})"

    def to_dict(self) -> dict[str, Any]:
        """The fields that are set, ready for JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_sentence(cls, member: str, weight: float, sentence: str) -> Reason:
        """The reason in a sentence, as the first build stored it."""
        text = sentence.removeprefix(f"{member}: weight {weight:.3f} ").removeprefix("(")
        text = text.replace("): ", ": ", 1) if "): " in text else text.removesuffix(")")
        kinds = (kind for words, kind in _OLD_SENTENCES.items() if words in text)
        kind: Kind = next(kinds, "excluded")
        if weight > ZERO:
            kind = "dominant" if kind == "dominant" else "kept"
        return cls(member, weight, kind, text=text)


def explain(
    units: FitData, solution: Solution, settings: Settings, max_members: int
) -> tuple[Reason, ...]:
    """One reason per member, or group of members, heaviest first."""
    sums, weights = units.summaries(), solution.weights
    own = sums.member_ce()
    problem = Problem.from_summaries(
        sums,
        class_weights=settings.class_weights,
        pool=settings.pool,
        classes=units.row_classes,
        steps=units.scale.steps,
    )
    # With its gradient known, the cross-entropy of the pool is as good as a linear term.
    problem = replace(problem, member_ce=solution.ce_gradient)
    silent: dict[str, Any] = {"ce": CE.ALL, "regularize": Regularize.EFFECTIVE}
    silent |= dict.fromkeys(TERMS, 0.0)
    slopes = {}  # what each term gains per unit of each member's weight [K]
    for name, term in TERMS.items():
        if name == "w1" and settings.w1:  # needs the items
            (curvature,) = units.w1_curvatures(weights[None], None, SMOOTHING)
            slopes[term.flat_name] = settings.w1 * curvature.gradient / curvature.items
            continue
        alone = replace(settings, **{**silent, name: getattr(settings, name)})
        slopes[term.flat_name] = joint_loss(weights, problem, alone).gradient
    total = np.sum(list(slopes.values()), axis=0)
    prices = total - total @ weights
    reach = set(solution.order[:max_members].tolist())
    reasons = []
    for k in np.argsort(-weights, kind="stable"):
        kind: Kind = "kept"
        more: dict[str, Any] = {}
        if weights[k] > ZERO and solution.trajectory is not None and solution.trajectory.unlearned:
            kind = "not_learned"
        elif weights[k] > ZERO:
            kind = "dominant" if weights[k] > DOMINANT and len(weights) > 1 else "kept"
        elif k not in reach:
            kind, more = "beyond_max_members", {"limit": max_members}
        elif prices[k] > 0:
            changes = {name: float(slope[k] - slope @ weights) for name, slope in slopes.items()}
            worst = max(changes, key=lambda name: changes[name])
            kind = "excluded_by_loss"
            more = {"price": float(prices[k]), "term": worst, "term_change": changes[worst]}
        else:
            kind, more = "excluded_by_size", {"limit": solution.size}
        rank = int((own < own[k]).sum()) + 1
        weight, ce = float(weights[k]), float(own[k])
        reasons.append(Reason(units.members[k], weight, kind, ce, rank, **more))
    return tuple(reasons)


def over_labels(
    reasons: Sequence[tuple[Reason, ...]], weights: Floats, units: FitData
) -> tuple[Reason, ...]:
    """One reason per member, heaviest first, where each label has weights of its own.

    ``reasons`` are those of each label, ``weights`` the means over labels [K]. A member without any
    has the reason of the label that it would raise the loss of least.
    """
    own = units.member_ce()
    found = []
    for k in np.argsort(-weights, kind="stable"):
        name, weight = units.members[k], float(weights[k])
        each = [one for of_label in reasons for one in of_label if one.member == name]
        best = min(each, key=lambda one: (-one.weight, one.price or 0.0))
        kind = best.kind
        if weight > ZERO:
            kind = "dominant" if weight > DOMINANT and len(weights) > 1 else "kept"
        rank = int((own < own[k]).sum()) + 1
        found.append(replace(best, weight=weight, kind=kind, ce=float(own[k]), rank=rank))
    return tuple(found)
