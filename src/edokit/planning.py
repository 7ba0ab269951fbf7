"""Planning of annotation: how many annotators, how many items, and what they buy.

A pilot shows how the annotators of an item differ. What so many of them would answer is simulated
from the distribution that each item may have given its pilot labels: Dirichlet, fitted so that two
answers to an item differ as much as those of two annotators in the pilot. So every metric of every
answer scale is computed in one way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from edokit._errors import InputError, check_number, counted, money, option
from edokit._io.markup import Table
from edokit._types import Floats, Ints
from edokit.annotations.core import Annotations
from edokit.auditing import Answers, match_jury
from edokit.metrics import METRIC, headline_metric, item_values, main_metrics
from edokit.metrics.resampling import quantiles, resampled_means
from edokit.predictions.core import Predictions
from edokit.rows import sums
from edokit.runs import InputReader, merge_options
from edokit.scales import Scale

ANNOTATORS = (1, 2, 3, 4, 5, 7, 10, 15, 20)
# Lowest, first and highest values of log κ and of the smoothing of draws.
_DRAW_PARAMETERS = ((-6.0, 0.0), (0.0, 0.3), (7.0, 0.95))
# Items of a pilot that are simulated at most; more change little.
_MOST_ITEMS = 4000
# Metrics left out for soft labels, whose zeros may make the CE infinite.
_NO_DISTANCE = ("ce", "exact_match")
# The loss of a trained model falls with this power of the items, as measured on LeWiDi.
_POWER_OF_ITEMS = -0.25
_TRAINED_SHARES, _REPEATS, _FEWEST_TEXTS, _MOST_TEXTS = (0.2, 0.4, 0.8), 3, 80, 1200


@dataclass(frozen=True)
class PlanOptions:
    """What annotation costs, and how surely the plan is made.

    Parameters
    ----------
    budget : float, default=None
        What may be spent; by default what the labels of the pilot cost.
    price : float, default=1
        Of one label.
    item_price : float, default=0
        Of one item, however many annotators label it.
    annotators : sequence of int, default=(1, 2, 3, 4, 5, 7, 10, 15, 20)
        Numbers of annotators per item to compare.
    train : bool, default=True
        Whether a model (TF-IDF) is trained on parts of the pilot, if it has texts.
    power : float, default=0.8
        Probability with which a comparison is to show a difference.
    samples : int, default=100
        Bootstrap samples of the pilot.
    level : float, default=0.95
        Level of the intervals and of the comparison.
    random_state : int, default=0
        Seed.

    Examples
    --------
    >>> from edokit.planning import PlanOptions
    >>> PlanOptions(budget=500, price=0.1).items(5)
    1000
    """

    budget: float | None = None
    price: float = 1.0
    item_price: float = 0.0
    annotators: Sequence[int] = ANNOTATORS
    train: bool = True
    power: float = 0.8
    samples: int = 100
    level: float = 0.95
    random_state: int = 0

    def __post_init__(self) -> None:
        check_number("price", self.price, 0, above=True)
        check_number("item_price", self.item_price, 0)
        check_number("samples", self.samples, 50, whole=True)
        check_number("power", self.power, 0.5, 0.999)
        check_number("level", self.level, 0.5, 0.9999)
        for count in self.annotators:
            check_number("annotators", count, 1, whole=True)

    def items(self, annotators: int) -> int:
        """Return how many items the budget buys with so many annotators each."""
        return int((self.budget or 0.0) / (self.price * annotators + self.item_price))


@dataclass(frozen=True, eq=False)
class Plan:
    """What annotators and items buy, as `edokit.plan` returns it.

    Attributes
    ----------
    items, labels : int
        Of the pilot.
    scale : str
        The kind of the answer scale.
    metric : str
        The loss of a model: ``ce``, on an ordinal scale ``rps`` (to one annotator's answer).
    budget, price, item_price : float
    level, power : float
    curve : list of dict
        For each number of ``annotators`` per item: the ``items`` that the budget buys,
        ``soft_label`` (the soft label of so many annotators against the distribution of all that
        could be asked), ``model`` (the loss of a model that is trained on them) and ``comparison``
        (the smallest difference between two models that a test on these items shows with this
        power), each by metric as ``[estimate, low, high]``; empty where it could not be planned.
    best : dict of str to list of int
        For ``model`` and ``comparison`` (in ``metric``), the best number of annotators, then those
        that are not clearly worse.
    compared : list of str
        The two models of the comparison.
    notes : list of str
        What could not be planned, and why.
    """

    items: int
    labels: int
    scale: str
    metric: str
    budget: float
    price: float
    item_price: float
    level: float
    power: float
    curve: Sequence[Mapping[str, Any]]
    best: Mapping[str, Sequence[int]] = field(default_factory=dict)
    compared: Sequence[str] = ()
    notes: Sequence[str] = ()

    def __repr__(self) -> str:
        return f"Plan({counted(self.items, 'item')}, {counted(self.labels, 'label')}, {self.best})"

    @property
    def _budget(self) -> str:
        unit = " annotations" if self.price == 1 and not self.item_price else ""
        return f"a budget of {money(self.budget)}{unit}"

    @property
    def headline(self) -> list[str]:
        """The decision in sentences."""
        rows, lines = {row["annotators"]: row for row in self.curve}, []
        purposes = {
            "model": "To train a model",
            "comparison": f"To compare two models in {METRIC[self.metric].short}",
        }
        for purpose, words in purposes.items():
            if counts := self.best.get(purpose):
                row, alike = rows[counts[0]], sorted(counts)
                lines.append(
                    f"{words}, {self._budget} is best spent on"
                    f" {counted(row['annotators'], 'annotator')} for each of"
                    f" {counted(row['items'], 'item')}"
                    + (f"; {alike[0]} to {alike[-1]} are not clearly worse." if alike[1:] else ".")
                )
        return [*lines, *self.notes]

    def tables(self) -> list[Table]:
        """Return what a terminal and a page show.

        Returns
        -------
        list of Table
            The error of the soft label, and what the budget buys.
        """
        return [self._soft_labels(), self._splits()]

    def _soft_labels(self) -> Table:
        records = [
            {"annotators": str(row["annotators"])}
            | {METRIC[name].label: _cell(ends) for name, ends in row["soft_label"].items()}
            for row in self.curve
        ]
        note = (
            "Of the soft label of so many annotators, against the distribution of all that could be"
            f" asked; {self.level:.0%} intervals from the pilot."
        )
        return Table.of("The soft label of an item", records, [note])

    def _splits(self) -> Table:
        short = METRIC[self.metric].short
        records = [
            {"annotators": str(row["annotators"]), "items": row["items"]}
            | {f"{short} of a model": _cell(ends) for ends in row["model"].values()}
            | {
                f"Δ{METRIC[name].short}": _cell(ends, 4) if name == self.metric else ends[0]
                for name, ends in row["comparison"].items()
            }
            for row in self.curve
        ]
        note = (
            f"Δ: the smallest difference between {' and '.join(self.compared)} that a test of"
            f" level {1 - self.level:.0%} shows with probability {self.power:.0%}."
        )
        return Table.of(f"What {self._budget} buys", records, [note] * bool(self.compared))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as ``edo plan --json`` prints it.

        Returns
        -------
        dict
            The attributes, and ``headline``.
        """
        return {**asdict(self), "headline": self.headline}


def plan(
    annotations: Annotations | str | Path,
    options: PlanOptions | None = None,
    *,
    predictions: Predictions | str | Path | Any = None,
    split: str | Sequence[str] | None = None,
    **settings: Any,
) -> Plan:
    """Plan annotation from a pilot: how many annotators an item needs, and how many items.

    Parameters
    ----------
    annotations : Annotations, str or Path
        The pilot, of which some items have two annotators or more.
    options : PlanOptions, default=None
        What annotation costs, and how surely the plan is made.
    predictions : Predictions, array of shape (N, K, C), str or Path, default=None
        Answers of models to the items of the pilot: the two best are what a comparison compares
        (a single one is compared with a constant answer).
    split : str or sequence of str, default=None
        Only these splits of the annotations.
    **settings
        Single fields of `PlanOptions`, such as ``budget=500``, and further arguments of
        `read_annotations` for annotations that are files.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        If no item has two annotators, the budget buys no item, or items and classes of the
        predictions do not match.

    Examples
    --------
    >>> import edokit
    >>> pilot = edokit.simulate("crowd", random_state=0, items=(150, 1, 1)).annotations
    >>> plan = edokit.plan(pilot, budget=600, annotators=(1, 3, 9), train=False)
    >>> [(row["annotators"], row["items"]) for row in plan.curve]
    [(1, 600), (3, 200), (9, 66)]
    >>> errors = [row["soft_label"]["md"][0] for row in plan.curve]
    >>> errors[0] > errors[1] > errors[2]
    True
    """
    options, reading = merge_options(PlanOptions, options, settings)
    files = InputReader(**reading)
    pilot, jury = files.annotations("annotations", annotations, split), None
    if predictions is not None:
        jury, pilot = match_jury(files.predictions("predictions", predictions), pilot)
    options, counts = _affordable(options, pilot)
    answers, metric = Answers(pilot), headline_metric(pilot.scale)
    models, names = _models_to_compare(jury, answers)
    factor = sum(map(NormalDist().inv_cdf, ((1 + options.level) / 2, options.power)))
    shows = factor / np.sqrt([options.items(count) for count in counts])
    spreads = difference_spreads(answers, models, counts, options) if models else {}
    losses, reason = _learn(pilot, answers, counts, options)
    needs = "How large a difference between two models shows needs their predictions."
    samples = {
        "soft_label": soft_label_errors(answers, counts, options),
        "comparison": {name: spread * shows for name, spread in spreads.items()},
        "model": {} if losses is None else {metric: losses},
    }
    return Plan(
        *(len(pilot.items), len(pilot), pilot.scale.kind, metric),
        *(float(options.budget or 0), options.price, options.item_price),
        *(options.level, options.power),
        curve=[
            {"annotators": count, "items": options.items(count)}
            | {kind: _intervals(by_metric, k, options) for kind, by_metric in samples.items()}
            for k, count in enumerate(counts)
        ],
        best={
            purpose: _best(samples[purpose][metric], counts, options.level)
            for purpose in ("model", "comparison")
            if metric in samples[purpose]
        },
        compared=names,
        notes=[*[needs] * (not models), *[reason] * bool(reason), *_limits(answers)],
    )


def _limits(answers: Answers) -> list[str]:
    """A note on a pilot in which nobody disagrees."""
    if np.nansum(answers.spread):
        return []
    share = min(3 / int(answers.overlap.sum()), 1)
    return [
        "All annotators of an item agree in the pilot. So few items may only hide that they differ:"
        f" up to {share:.0%} of the items may divide them."
    ]


def _affordable(options: PlanOptions, pilot: Annotations) -> tuple[PlanOptions, list[int]]:
    """The options with a budget, and the numbers of annotators for which it buys an item."""
    if not (pilot.annotations_per_item > 1).any():
        raise InputError(
            "no item of the pilot has labels of two annotators, so it does not show how much they"
            " differ",
            "have at least 50 items labelled by two annotators or more",
        )
    cost = len(pilot) * options.price + len(pilot.items) * options.item_price
    options = replace(options, budget=cost if options.budget is None else options.budget)
    counts = [count for count in sorted(set(options.annotators)) if options.items(count) > 0]
    if not counts:
        raise InputError(
            f"{option('budget', options.budget)} does not buy the labels of one item",
            f"raise it, or lower {option('annotators')}",
        )
    return options, counts


def _intervals(
    samples: Mapping[str, Floats], k: int, options: PlanOptions
) -> dict[str, list[float]]:
    """Estimate and ends of column ``k`` of resampled values [B, counts], by metric."""
    return {
        name: [float(np.median(values[:, k])), *quantiles(values[:, k], options.level)]
        for name, values in samples.items()
    }


def _best(samples: Floats, counts: Sequence[int], level: float) -> list[int]:
    """The number of annotators with the lowest value, then those that are not clearly worse."""
    lowest = int(np.median(samples, axis=0).argmin())
    above = np.quantile(samples - samples[:, [lowest]], (1 - level) / 2, axis=0)
    alike = [count for count, gap in zip(counts, above, strict=True) if gap <= 0]
    return list(dict.fromkeys([counts[lowest], *alike]))


def _models_to_compare(
    jury: Predictions | None, answers: Answers
) -> tuple[tuple[Floats, Floats] | None, list[str]]:
    """The probabilities [N, C] of the two models to compare, and their names."""
    if jury is None:
        return None, []
    P = np.asarray(jury.probabilities, dtype=np.float64)
    losses = [answers.losses(P[answers.item_codes, k]).mean() for k in range(P.shape[1])]
    order = np.argsort(losses, kind="stable")[:2]
    names, models = [jury.members[k] for k in order], [P[:, k] for k in order]
    if len(models) == 1:
        names.append("a constant answer")
        models.append(np.tile(answers.shares.mean(axis=0), (len(P), 1)))
    return (models[0], models[1]), names


def draw_distributions(shares: Floats, labels: Ints, scale: Scale, rng: Any) -> Floats:
    """A distribution that each item may have [N, C], given its soft label and number of labels.

    Every item has two labels or more.
    """
    tables = [
        _draw(table, labels[:, None], scale, rng) for table in scale.tables(shares)
    ]  # one, or of sets one a label [N, 2]
    rows = np.stack(tables, axis=1).reshape(-1, tables[0].shape[1])
    return scale.from_rows(rows, shares.shape[1])


def _draw(shares: Floats, labels: Ints, scale: Scale, rng: Any) -> Floats:
    """Distributions [N, C] from Dirichlet((n − 1) · soft label + κ · what others answer).

    For κ = 1 + α this is the posterior where the distributions of items are Dirichlet with
    concentration α. On an ordinal scale, draws are smoothed over near points. κ and the smoothing
    are such that two answers to an item differ as much as those of two annotators do.
    """
    from scipy.optimize import least_squares

    classes, others = shares.shape[1], others_answers(shares, labels)
    vectors = scale.vectors(classes, absolute=True)
    distances = [np.square(vectors[:, None] - vectors).sum(axis=2)]
    steps = distances[0] * (classes - 1)
    if scale.positions is not None and classes > 2:
        # Where both can't be met, the distance has priority.
        distances.append(0.1 * (1 - np.eye(classes)))
    # The squared distance between the labels of two annotators of an item.
    targets = [(shares @ d * shares * labels / (labels - 1)).sum(axis=1).mean() for d in distances]

    def concentrations(log_weight: float) -> Floats:
        return np.asarray((labels - 1) * shares + np.exp(log_weight) * others)

    def kernel(smoothing: float = 0.0) -> Floats:
        near = shares.mean(axis=0) * smoothing ** np.square(steps) + 1e-12 * np.eye(classes)
        return np.asarray(near / near.sum(axis=1, keepdims=True))

    def gaps(x: Floats) -> Floats:
        a, smooth = concentrations(x[0]), kernel(*x[1:])
        total = a.sum(axis=1)
        products = [smooth @ d @ smooth.T for d in distances]
        sums_of_pairs = [
            (a @ product * a).sum(axis=1) + a @ np.diag(product) for product in products
        ]
        drawn = [(pairs / total / (total + 1)).mean() for pairs in sums_of_pairs]
        return np.subtract(drawn, targets)

    lower, start, upper = (ends[: len(distances)] for ends in _DRAW_PARAMETERS)
    x = least_squares(gaps, start, bounds=(lower, upper)).x
    draws = np.maximum(rng.standard_gamma(concentrations(x[0])), 1e-300)
    return np.asarray(draws / draws.sum(axis=1, keepdims=True) @ kernel(*x[1:]))


def others_answers(shares: Floats, labels: Ints) -> Floats:
    """What another annotator would answer [N, C], given one label of an item.

    Pairs of annotators of all items show it. So what is near on a scale stays together.
    """
    counts = shares * labels
    weighted = counts / (labels * (labels - 1))
    pairs = np.maximum(weighted.T @ counts - np.diag(weighted.sum(axis=0)), 0.0)
    return np.asarray(shares @ (pairs / np.maximum(pairs.sum(axis=1, keepdims=True), 1e-300)))


def draw_soft_labels(q: Floats, annotators: int, scale: Scale, rng: Any) -> Floats:
    """The soft label [N, C] of so many annotators of items with these distributions."""
    rows = scale.rows(q)
    labels = rng.multinomial(annotators, rows / rows.sum(axis=1, keepdims=True))
    return scale.from_rows(labels / annotators, q.shape[1])


def soft_label_errors(
    answers: Answers, counts: Sequence[int], options: PlanOptions, reference: int | None = None
) -> dict[str, Floats]:
    """By metric, the error [samples, counts] of the soft label of so many annotators.

    It is compared with that of ``reference`` other annotators; None: of all that could be asked.
    """
    scale, rng = answers.scale, np.random.default_rng(options.random_state)
    shares, labels = answers.by_item(answers.shares), answers.counts
    shares, labels = shares[answers.overlap], labels[answers.overlap]
    names = [name for name in main_metrics(scale) if name not in _NO_DISTANCE]
    values, shape = item_values(scale), (options.samples, len(counts))
    errors = {name: np.zeros(shape) for name in names}
    for sample in range(options.samples):
        items = rng.integers(len(shares), size=min(len(shares), _MOST_ITEMS))
        q = draw_distributions(shares[items], labels[items], scale, rng)
        target = q if reference is None else draw_soft_labels(q, reference, scale, rng)
        for k, count in enumerate(counts):
            draws = draw_soft_labels(q, count, scale, rng)
            for name in names:
                errors[name][sample, k] = values[name](draws, target, scale.hard(target)).mean()
    return errors


def difference_spreads(
    answers: Answers, models: Sequence[Floats], counts: Sequence[int], options: PlanOptions
) -> dict[str, Floats]:
    """By metric, how much the difference of two models varies over items [samples, counts].

    Its variance is *between + within / annotators*, exactly so for metrics that are linear in the
    soft label. Both parts follow from the variance with one label an item and with all of them.
    """
    scale, shared = answers.scale, answers.overlap
    shares = answers.by_item(answers.shares)
    inverse = float((1 / answers.counts[shared]).mean())
    spreads = {}
    for name, value in item_values(scale).items():
        if name not in main_metrics(scale):
            continue
        hard, hard_labels = scale.hard(shares), scale.hard(answers.shares)
        losses, other_losses = (value(p, shares, hard) for p in models)
        singles = [value(p[answers.item_codes], answers.shares, hard_labels) for p in models]
        gaps, single = (losses - other_losses)[shared], singles[0] - singles[1]
        columns = [
            answers.by_item(single)[shared],
            answers.by_item(single**2)[shared],
            gaps,
            gaps**2,
        ]
        rng = np.random.default_rng(options.random_state)
        means = resampled_means(columns, options.samples, rng, None)
        with_one, with_all = means[1] - means[0] ** 2, means[3] - means[2] ** 2
        within = np.maximum(with_one - with_all, 0) / (1 - inverse)
        between = np.maximum(with_one - within, 0)
        spreads[name] = np.sqrt(between[:, None] + within[:, None] / np.array(counts))
    return spreads


def _learn(
    pilot: Annotations, answers: Answers, counts: Sequence[int], options: PlanOptions
) -> tuple[Floats | None, str]:
    """Loss [samples, counts] of a model that the budget could train, or why there is none.

    TF-IDF members are trained on parts of the pilot's items and labels. Their held-out loss, as
    c + (a + b / annotators) · items^−¼ with a, b ≥ 0, is carried on to the items of the budget.
    """
    from scipy.optimize import nnls

    if not options.train:
        return None, ""
    if pilot.texts is None or len(pilot.items) < _FEWEST_TEXTS:
        reason = "has no texts" if pilot.texts is None else f"has fewer than {_FEWEST_TEXTS} items"
        return None, f"The loss of a trained model is not planned: the pilot {reason}."
    rng = np.random.default_rng(options.random_state)
    sizes, inverses, losses = _train_on_parts(pilot, answers, rng)

    def terms(items: Any, inverse: Any) -> Floats:
        falls = np.asarray(items, dtype=np.float64) ** _POWER_OF_ITEMS
        return np.column_stack([np.ones(len(falls)), falls, falls * inverse])

    design = terms(sizes, inverses)
    planned = terms([options.items(count) for count in counts], 1 / np.array(counts))
    is_held_out = ~np.isnan(losses)
    resampled = np.zeros((options.samples, len(counts)))
    for sample in range(options.samples):
        # Items and runs are both drawn again: test loss and training vary.
        weights = rng.multinomial(losses.shape[1], np.full(losses.shape[1], 1 / losses.shape[1]))
        means = (np.nan_to_num(losses) @ weights) / (is_held_out @ weights)
        runs = np.sqrt(rng.exponential(size=len(means)))
        coefficients, _ = nnls(design * runs[:, None], means * runs)
        resampled[sample] = planned @ coefficients
    return resampled, ""


def _train_on_parts(
    pilot: Annotations, answers: Answers, rng: np.random.Generator
) -> tuple[list[int], list[float], Floats]:
    """Items, mean inverse number of annotators and losses by item (NaN: trained on) of each run."""
    from edokit.members.recipe import MemberData, find_recipe

    texts = pilot.whole_texts
    assert texts is not None
    scale, items = pilot.scale, rng.permutation(len(pilot.items))[:_MOST_TEXTS]
    usual_count, sizes, inverses, losses = int(np.median(answers.counts)), [], [], []
    for share in _TRAINED_SHARES * _REPEATS:
        for limit in {1, usual_count}:
            trained = rng.permutation(items)[: int(len(items) * share)]
            targets, label_counts = _fewer_labels(answers, limit, rng)
            data = MemberData(
                [texts[i] for i in trained],
                lambda epoch, rows=targets[trained]: rows,  # type: ignore[misc]
                scale=scale,
                classes=pilot.classes,
                corpus=tuple(texts[items]),
            )
            member = find_recipe("linear")(len(pilot.classes))  # type: ignore[call-arg]
            tested = np.setdiff1d(items, trained)
            p = np.full((len(pilot.items), len(pilot.classes)), 1 / len(pilot.classes))
            p[tested] = member.fit(data).predict_proba([texts[i] for i in tested])
            row = answers.losses(p[answers.item_codes])
            row[trained] = np.nan
            sizes.append(len(trained))
            inverses.append(float((1 / label_counts[trained]).mean()))
            losses.append(row[np.sort(items)])
    return sizes, inverses, np.array(losses)


def _fewer_labels(answers: Answers, limit: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Soft labels [N, C] of this many annotators at most, drawn at random, and how many [N]."""
    order = rng.permutation(len(answers.item_codes))
    order = order[np.argsort(answers.item_codes[order], kind="stable")]
    starts = np.cumsum(answers.counts) - answers.counts
    place = np.arange(len(order)) - np.repeat(starts, answers.counts)
    sampled = order[place < limit]
    label_counts = np.minimum(answers.counts, limit)
    totals = sums(answers.shares[sampled], answers.item_codes[sampled], len(label_counts))
    return totals / label_counts[:, None], label_counts


def _cell(interval: Sequence[float], digits: int = 3) -> str:
    """``0.312 (0.291–0.330)``."""
    estimate, low, high = (f"{value:.{digits}f}" for value in interval)
    return f"{estimate} ({low}–{high})"
